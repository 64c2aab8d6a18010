"""Constraints that hold on new rows, not only on those that tuned the cut.

A cut that just meets ``precision>=0.9`` on its tuning rows misses it on new rows about every second time. Here a cut
is allowed only if a confidence limit of the constrained quantity meets the level, and the limits hold for all the cuts
that are compared, at once:

- Precision and the false discovery rate concern the rows above a threshold. They are judged at ranks that are fixed
  beforehand; above the row of a given rank the others are a sample of their own, so that Clopper–Pearson's limit holds.
- Recall, specificity, the false positive and negative rate, and the rate of predicted positives are shares of nested
  sets: one band, simultaneous over all thresholds.
- Everything else by the bands of the uniform certificate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._plurals import counted
from surecut.certificates.certificate import check_confidence
from surecut.certificates.confidence import least_shares
from surecut.certificates.limits import row_worth, value_limits
from surecut.certificates.priors import worst_over_priors
from surecut.certificates.uniform import Bands, bands
from surecut.certificates.weights import frequencies
from surecut.constraints import InfeasibleError, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.constraints import Constraint
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric

FIRST_RANK = 16
"""The first rank at which precision is judged."""

LEAST_STEP = 1 / 300
"""The least distance of two ranks, as a share of the rank: up to 2**53 rows there are some thousands of ranks."""


def assured_cut(
    tally: ScoreTally,
    metric: Metric,
    constraints: tuple[Constraint, ...],
    confidence: float,
    weights: str | None = None,
) -> Cut:
    """The cut with the largest value among those that meet every constraint on new rows with the confidence.

    `weights` says what the rows' weights mean, as in `certify`.
    """
    check_confidence(confidence)
    if not constraints:
        raise ValueError(
            "confidence= is the probability with which a constraint holds on new rows, and there is no constraint: to "
            "learn what the metric will be on new rows, use certify(cut, ...)"
        )
    for constraint in constraints:
        if not constraint.quantity.extremes_at_corners:
            raise ValueError(
                f"{constraint.quantity.name!r} is a function of which nothing is known: a constraint that holds on new "
                "rows needs a metric of the catalogue, a rate, or a LinearFractional metric"
            )
    named = tally.sample.fingerprint  # of the rows, before counts repeat them
    tally = frequencies(tally, "a constraint with confidence", weights)
    error = (1 - confidence) / len(constraints)
    allowed = np.ones(len(tally) + 1, dtype=bool)
    for constraint in constraints:
        limits = _limits(constraint, tally, error)
        met = constraint.allows(limits)
        if not met.any():
            raise _infeasible(constraint, limits, confidence, int(tally.rows.sum()))
        allowed &= met
    if not allowed.any():
        raise InfeasibleError(f"each of {listed(constraints)} can be promised for some cut, but all of them for none")
    cut = tally.candidates.best_cut_among(metric, allowed)
    return replace(
        cut,
        threshold=_just_above(cut.interval[0], cut.threshold, tally.dtype),
        constraints=constraints,
        confidence=confidence,
        sample=replace(cut.sample, fingerprint=named),
    )


def _just_above(rejected: float, threshold: float, dtype: np.dtype[Any]) -> float:
    """The lowest threshold that rejects a score: the limits concern all rows above that score, not only those above
    the middle of the gap."""
    if not (np.isfinite(rejected) and np.isfinite(threshold)):
        return threshold
    if dtype.kind in "iu":
        return rejected + 1
    return float(np.nextafter(dtype.type(rejected), dtype.type(np.inf)))


def _limits(constraint: Constraint, tally: ScoreTally, error: float) -> NDArray[np.float64]:
    """What the quantity surely reaches (``>=``) or surely does not exceed (``<=``) at every cut; NaN: not judged."""
    worth = row_worth(constraint.quantity)
    if tally.given_prior is None and worth is not None and not any(side[2:].any() for side in worth):
        return _at_fixed_ranks(constraint, tally, error)
    if (nested := _counted_share(constraint, tally)) is not None:
        return _of_nested_sets(constraint, tally, error, *nested)
    return _by_bands(constraint, tally, tally.confusion, error)


def uniform_limit(
    constraint: Constraint, tally: ScoreTally, confusion: Confusion, error: float, is_assured: bool
) -> float:
    """The same at one cut, whatever rows chose it; `is_assured` where it is one of those that `_limits` compares."""
    if is_assured:
        accepted = int(np.searchsorted(np.cumsum(tally.rows.sum(axis=1)), confusion.predicted_positives - 0.5)) + 1
        return float(_limits(constraint, tally, error)[accepted if confusion.predicted_positives else 0])
    nested = _counted_share(constraint, tally)
    if nested is None:
        return float(_by_bands(constraint, tally, confusion, error)[0])
    classes, is_predicted = nested
    counts = np.array([[confusion.tn, confusion.fn], [confusion.fp, confusion.tp]])[:, classes].sum(axis=1)
    share, total = np.array([counts[int(is_predicted)] / max(counts.sum(), 1)]), int(counts.sum())
    if constraint.sense == ">=":
        return float(least_shares(share, total, error)[0])
    return float(1 - least_shares(1 - share, total, error)[0])


def _at_fixed_ranks(constraint: Constraint, tally: ScoreTally, error: float) -> NDArray[np.float64]:
    """Limits at the cuts right above the rows of some ranks, which do not depend on the data."""
    ranks = _ranks(int(tally.rows.sum()))
    above = np.cumsum(tally.rows.sum(axis=1))
    cuts = np.unique(np.searchsorted(above, ranks))  # accept the scores above that of the rank
    limits = np.full(len(tally) + 1, np.nan)
    for cut in cuts[cuts > 0]:
        at = tally.confusion[int(cut)]
        lower, upper, _ = value_limits(
            constraint.quantity, np.array([at.tp, at.fp, 0, 0], dtype=float), error / len(ranks)
        )
        limits[cut] = lower if constraint.sense == ">=" else upper
    return limits


def _ranks(rows: int) -> NDArray[np.float64]:
    """16, 19, 23, …: each a fifth beyond the last, later as far as the sampling error of a precision (3√rank).

    A coarse grid skips cuts that could be promised; a fine one divides the error by more. Beyond 810,000 rows, where
    3√rank is less than `LEAST_STEP` of a rank, it would have too many.

    >>> _ranks(40)
    array([16., 19., 23., 28., 34.])
    """
    ranks = [float(FIRST_RANK)]
    while ranks[-1] <= rows:
        step = min(ranks[-1] / 5, max(3 * np.sqrt(ranks[-1]), LEAST_STEP * ranks[-1]))
        ranks.append(np.round(ranks[-1] + step))
    return np.array(ranks[:-1])


def _counted_share(constraint: Constraint, tally: ScoreTally) -> tuple[NDArray[np.bool_], bool] | None:
    """The quantity as a share of rows that can be counted; None where it mixes classes that a given prior weighs."""
    worth = row_worth(constraint.quantity)
    nested = None if worth is None else _nested_share(*worth)
    if nested is not None and tally.given_prior is not None and nested[0].all():
        return None
    return nested


def _nested_share(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], bool] | None:
    """Whether the quantity is the share of the predicted (or of the other) rows in a class or in all rows."""
    base = denominators == denominators.max()
    if not ((denominators == 0) | base).all() or denominators.max() <= 0:
        return None
    scaled = numerators / denominators.max()
    predicted = np.array([True, True, False, False])
    for is_predicted in (True, False):
        if np.array_equal(scaled, (base & (predicted == is_predicted)).astype(float)):
            positives, negatives = bool(base[0] and base[2]), bool(base[1] and base[3])
            if base.sum() == 2 * (positives + negatives):
                return np.array([negatives, positives]), is_predicted
    return None


def _of_nested_sets(
    constraint: Constraint, tally: ScoreTally, error: float, classes: NDArray[np.bool_], is_predicted: bool
) -> NDArray[np.float64]:
    counts = tally.rows[:, classes].sum(axis=1)
    total = int(counts.sum())
    accepted = np.concatenate(([0], np.cumsum(counts))) / max(total, 1)
    share = accepted if is_predicted else 1 - accepted
    if constraint.sense == ">=":
        return least_shares(share, total, error)
    return 1 - least_shares(1 - share, total, error)


def _by_bands(constraint: Constraint, tally: ScoreTally, confusion: Confusion, error: float) -> NDArray[np.float64]:
    """The worst corner of the bands at some confusions, whichever way the quantity goes."""
    found = bands(constraint.quantity, tally, confusion, error, sides=2)
    corners = [Bands((found.fpr[i],) * 2, (found.fnr[j],) * 2, found.priors) for i in (0, 1) for j in (0, 1)]
    upper = constraint.sense != ">="
    limits = [
        worst_over_priors(partial(one.value_at, constraint.quantity, True), found.priors, largest=upper)
        for one in corners
    ]
    worst = np.max if upper else np.min  # NaN, where a corner is undefined, stays
    return np.asarray(worst(limits, axis=0))


def _infeasible(constraint: Constraint, limits: NDArray[np.float64], confidence: float, rows: int) -> InfeasibleError:
    where = f"with {100 * confidence:.4g} % confidence from {counted(rows, 'row')}"
    if np.isnan(limits).all():
        return InfeasibleError(f"no cut meets {constraint} {where}: there are too few rows to promise anything")
    best, which = (np.nanmax(limits), "highest") if constraint.sense == ">=" else (np.nanmin(limits), "lowest")
    return InfeasibleError(
        f"no cut meets {constraint} {where}: the {which} {constraint.quantity.name} that can be promised is {best:.6g}"
    )
