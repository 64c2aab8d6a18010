"""Whether the constraints that a cut was tuned with hold on new rows: a limit of each constrained quantity.

Each constraint has its share of the error, so that what is said of all of them holds at once, with the confidence. That
is a promise beside the one of the value, which has the whole error to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from surecut.certificates.averages import label_limits
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certificate import ConstraintPromise
from surecut.certificates.clusters import cluster_limits, is_ratio
from surecut.certificates.evidence import Asked, Evidence
from surecut.certificates.limits import row_worth, value_limits
from surecut.certificates.priors import at_prior
from surecut.certificates.quantities import constraint_limit, uniform_constraint_limit
from surecut.certificates.resampling import resample
from surecut.confusion import Confusion
from surecut.constraints import Constraint
from surecut.decisions.cut import Cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.label_rows import TableRows

Limit = Callable[[Constraint, float], float]
"""(constraint, error) → what its quantity surely reaches (``>=``) or does not exceed (``<=``)."""


def promises_of(
    constraints: Sequence[Constraint], confusion: Confusion, error: float, limit_of: Limit
) -> tuple[ConstraintPromise, ...]:
    """A promise for each constraint of a cut with a confusion."""
    found = []
    for one in constraints:
        limit = limit_of(one, error / len(constraints))
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(one.quantity.evaluate(confusion))
        found.append(ConstraintPromise(str(one), value, float(limit), bool(one.allows(limit))))
    return tuple(found)


def holdout_promises(evidence: Evidence, asked: Asked) -> tuple[ConstraintPromise, ...]:
    """From rows that did not tune the cut: of one label, of labels pooled, or of each label at error / m.

    Nothing is promised from tallies of many labels.
    """
    cells, prior = evidence.cells, evidence.prior
    if cells is not None and evidence.average not in (None, "micro"):
        return _promises_of_labels(evidence.cut.constraints, cells, evidence.grouped, asked.error)
    if cells is None and evidence.average is not None:
        return ()

    def limit(one: Constraint, each: float) -> float:
        side = int(one.sense == "<=")
        if cells is not None:
            return cluster_limits(one.quantity, cells.pooled(), cells.largest, each)[side]
        limit = constraint_limit(one, cells_of(evidence.confusion)[0], each, prior)
        return one.quantity.value_range[side] if np.isnan(limit) else limit  # undefined: nothing is known

    together = Confusion(*cells_of(evidence.confusion).sum(axis=0))
    return promises_of(evidence.cut.constraints, at_prior(together, prior), asked.error, limit)


def uniform_promises(evidence: Evidence, asked: Asked) -> tuple[ConstraintPromise, ...]:
    """From any rows: limits that hold for all cuts; or what was promised when these rows tuned the cut."""
    if evidence.average is not None:
        return ()
    cut, tally, confusion = evidence.cut, evidence.tallies[0], evidence.confusion[0]
    assured = evidence.tuned_here and cut.confidence is not None and asked.confidence <= cut.confidence

    def limit(one: Constraint, each: float) -> float:
        return one.level if assured else uniform_constraint_limit(one, tally, confusion, each)

    return promises_of(cut.constraints, at_prior(confusion, evidence.prior), asked.error, limit)


def bootstrap_promises(evidence: Evidence, asked: Asked) -> tuple[ConstraintPromise, ...]:
    """From resampled rows of one label; right for large samples that did not tune the cut."""
    cut = evidence.cut
    if not isinstance(cut, Cut) or evidence.tuned_here:
        return ()
    tally = evidence.tallies[0]
    quantities = [replace(cut, metric=one.quantity) for one in cut.constraints]
    groups = cast("TableRows | None", evidence.rows)
    drawn = iter(resample(quantities, tally, False, groups, asked.resamples, asked.random_state, False))

    def limit(one: Constraint, each: float) -> float:
        return next(drawn).limits(each)[int(one.sense == "<=")]

    confusion = tally.confusion_at(cut.threshold)
    return promises_of(cut.constraints, at_prior(confusion, evidence.prior), asked.error, limit)


def _promises_of_labels(
    constraints: Sequence[Constraint], cells: ClusterCells, grouped: bool, error: float
) -> tuple[ConstraintPromise, ...]:
    """For each label at error / m; of the worst one it is told."""
    totals = cells_of(cells.confusion())
    each = error / len(constraints) / len(totals)
    found = []
    for one in constraints:
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
