"""Whether the constraints that a cut was tuned with hold on new rows: a limit of each constrained quantity.

Each constraint has its share of the error, so that what is said of all of them holds at once, with the confidence. That
is a promise beside the one of the value, which has the whole error to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.certificates.assurance import uniform_limit
from surecut.certificates.averages import label_limits
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certificate import ConstraintPromise
from surecut.certificates.clusters import cluster_limits, is_ratio
from surecut.certificates.confidence import share_limits
from surecut.certificates.limits import row_worth, value_limits
from surecut.certificates.priors import at_prior
from surecut.certificates.resampling import GroupedRows, resample
from surecut.confusion import Confusion
from surecut.constraints import Constraint, Rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut
    from surecut.decisions.multilabel import MultilabelCut
    from surecut.metrics import Metric

Limits = Callable[[Constraint, float], tuple[float, float]]
"""(constraint, error) → lower and upper limit of its quantity."""


def promises_of(
    constraints: Sequence[Constraint], confusion: Confusion, error: float, limits: Limits
) -> tuple[ConstraintPromise, ...]:
    """A promise for each constraint of a cut with a confusion."""
    found = []
    for one in constraints:
        lower, upper = limits(one, error / len(constraints))
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(one.quantity.evaluate(confusion))
        limit = lower if one.sense == ">=" else upper
        found.append(ConstraintPromise(str(one), value, float(limit), bool(one.allows(limit))))
    return tuple(found)


def holdout_promises(cut: Cut, tally: ScoreTally, error: float) -> tuple[ConstraintPromise, ...]:
    """From rows that did not tune the cut."""
    counts, prior = tally.confusion_at(cut.threshold), tally.given_prior

    def limits(one: Constraint, each: float) -> tuple[float, float]:
        return _quantity_limits(one.quantity, cells_of(counts), each, prior)

    return promises_of(cut.constraints, at_prior(counts, tally), error, limits)


def _quantity_limits(
    quantity: Metric, cells: NDArray[np.float64], error: float, prior: float | None
) -> tuple[float, float]:
    """By `value_limits`; a rate for a prior that was given, which may rise in FP, at the worst corner of two shares."""
    if prior is None or not isinstance(quantity, Rate):
        return value_limits(quantity, cells, error, prior)[:2]
    tp, fp, fn, tn = cells
    fprs, fnrs = share_limits(fp, fp + tn, error / 4), share_limits(fn, tp + fn, error / 4)
    corners = [quantity.value(fpr * (1 - prior), fnr * prior, prior) for fpr in fprs for fnr in fnrs]
    return float(np.nanmin(corners)), float(np.nanmax(corners))


def group_promises(cut: Cut, rows: GroupedRows, error: float) -> tuple[ConstraintPromise, ...]:
    """From independent groups of rows that did not tune the cut."""
    cells = ClusterCells.of_rows(rows.is_positive, np.asarray(cut.predict(rows.scores)), rows.group)
    counts = cells.pooled()

    def limits(one: Constraint, each: float) -> tuple[float, float]:
        return cluster_limits(one.quantity, counts, cells.largest, each)

    return promises_of(cut.constraints, cells.confusion()[0], error, limits)


def uniform_promises(cut: Cut, tally: ScoreTally, tuned_here: bool, error: float) -> tuple[ConstraintPromise, ...]:
    """From any rows: limits that hold for all cuts, or for those that `confidence=` compared, if it chose this one."""
    confusion = tally.confusion_at(cut.threshold)
    assured = tuned_here and cut.confidence is not None

    def limits(one: Constraint, each: float) -> tuple[float, float]:
        limit = uniform_limit(one, tally, confusion, each, assured)
        return limit, limit

    return promises_of(cut.constraints, at_prior(confusion, tally), error, limits)


def bootstrap_promises(
    cut: Cut, tally: ScoreTally, groups: GroupedRows | None, resamples: int, random_state: Any, error: float
) -> tuple[ConstraintPromise, ...]:
    """From resampled rows; right for large samples that did not tune the cut."""
    quantities = [replace(cut, metric=one.quantity) for one in cut.constraints]
    drawn = iter(resample(quantities, tally, False, groups, resamples, random_state, False))

    def limits(_: Constraint, each: float) -> tuple[float, float]:
        return next(drawn).limits(each)

    return promises_of(cut.constraints, at_prior(tally.confusion_at(cut.threshold), tally), error, limits)


def label_promises(
    cut: MultilabelCut, cells: ClusterCells, grouped: bool, error: float
) -> tuple[ConstraintPromise, ...]:
    """Of many labels, from rows that did not tune the cut: for each label at error / m (macro), or for all pooled."""
    totals = cells_of(cells.confusion())
    if cut.average == "micro":
        pooled = cells.pooled()

        def limits(one: Constraint, each: float) -> tuple[float, float]:
            return cluster_limits(one.quantity, pooled, cells.largest, each)

        return promises_of(cut.constraints, Confusion(*totals.sum(axis=0)), error, limits)
    each = error / len(cut.constraints) / len(totals)
    found = []
    for one in cut.constraints:
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.asarray(one.quantity.evaluate(cells.confusion()), dtype=float)
        limits_of_labels = _of_labels(one, cells, totals, grouped, each)
        met = one.allows(limits_of_labels)
        worst = int(np.argmin(limits_of_labels) if one.sense == ">=" else np.argmax(limits_of_labels))
        found.append(
            ConstraintPromise(
                str(one),
                float(values[worst]),
                float(limits_of_labels[worst]),
                bool(met.all()),
                (int(met.sum()), len(totals)),
            )
        )
    return tuple(found)


def _of_labels(
    constraint: Constraint, cells: ClusterCells, totals: NDArray[np.float64], grouped: bool, error: float
) -> NDArray[np.float64]:
    side = 0 if constraint.sense == ">=" else 1
    worth = row_worth(constraint.quantity)
    if not grouped and worth is not None and is_ratio(worth):
        return np.asarray(label_limits(*worth, totals, error)[side])
    found = []
    for label, of_label in enumerate(totals):
        if grouped:
            counts = cells.of_label(label)
            found.append(cluster_limits(constraint.quantity, counts, float(counts.sum(axis=1).max()), error)[side])
        else:
            found.append(value_limits(constraint.quantity, of_label, error)[side])
    return np.array(found)
