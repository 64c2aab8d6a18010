"""Limits of the quantities that constraints bound: shares, metrics, and rates, which are no metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.certificates.bands import Bands, bands
from surecut.certificates.confidence import least_shares, share_limits
from surecut.certificates.limits import row_worth, value_limit
from surecut.certificates.priors import is_defined, worst_over_priors
from surecut.confusion import Confusion
from surecut.constraints import Rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.constraints import Constraint
    from surecut.core.tally import ScoreTally
    from surecut.metrics import Metric


@dataclass(frozen=True)
class NestedShare:
    """The share of predicted rows, or of the others, in the negatives, in the positives, or in all rows."""

    negatives: bool
    positives: bool
    predicted: bool

    def met_above(self, sense: str) -> bool:
        """Whether a constraint is met by a threshold that is high enough."""
        return self.predicted == (sense == "<=")

    def limits(self, confusion: Confusion, sense: str, error: float, prior: float | None) -> Any:
        """Lower limits (``>=``) or upper ones (``<=``) of the share at one threshold each.

        For a prior that was given, the share of both classes is a mean of two shares, each with half of the error.
        """
        side = 0 if sense == ">=" else 1
        if prior is not None and self.negatives and self.positives:
            of_negatives, of_positives = (
                share_limits(*NestedShare(not of_class, of_class, self.predicted).counts(confusion), error / 2)[side]
                for of_class in (False, True)
            )
            return (1 - prior) * of_negatives + prior * of_positives
        return share_limits(*self.counts(confusion), error)[side]

    def uniform_limits(self, confusion: Confusion, sense: str, error: float) -> Any:
        """The same for all thresholds and all levels at once."""
        counts, total = self.counts(confusion)
        shares = np.asarray(counts / np.maximum(total, 1), dtype=float)
        rows = int(np.max(total))
        return least_shares(shares, rows, error) if sense == ">=" else 1 - least_shares(1 - shares, rows, error)

    def counts(self, confusion: Confusion) -> tuple[Any, Any]:
        """How many rows the share is of, and among how many."""
        of_class = (confusion.fp, confusion.tn, self.negatives), (confusion.tp, confusion.fn, self.positives)
        chosen = [(one, other) if self.predicted else (other, one) for one, other, is_in in of_class if is_in]
        return sum(one for one, _ in chosen), sum(one + other for one, other in chosen)


def nested_share(quantity: Metric) -> NestedShare | None:
    """The quantity as a share of the predicted (or of the other) rows in a class or in all rows; None if it is not."""
    worth = row_worth(quantity)
    if worth is None:
        return None
    numerators, denominators = worth
    base = denominators == denominators.max()
    if not ((denominators == 0) | base).all() or denominators.max() <= 0:
        return None
    scaled = numerators / denominators.max()
    predicted = np.array([True, True, False, False])
    for is_predicted in (True, False):
        if np.array_equal(scaled, (base & (predicted == is_predicted)).astype(float)):
            positives, negatives = bool(base[0] and base[2]), bool(base[1] and base[3])
            if base.sum() == 2 * (positives + negatives):
                return NestedShare(negatives, positives, is_predicted)
    return None


@dataclass(frozen=True)
class SideShare:
    """The share of one class among the rows on one side of a cut, such as precision or NPV."""

    positives: bool
    predicted: bool


def side_share(quantity: Metric) -> SideShare | None:
    """The quantity as the share of a class among the predicted (or among the other) rows; None if it is not."""
    worth = row_worth(quantity)
    if worth is None:
        return None
    numerators, denominators = worth
    for predicted, (positive, negative) in ((True, (0, 1)), (False, (2, 3))):
        side = np.zeros(4)
        side[[positive, negative]] = denominators.max()
        if denominators.max() > 0 and np.array_equal(denominators, side):
            for of_class in (positive, negative):
                if np.array_equal(numerators, np.where(np.arange(4) == of_class, side, 0.0)):
                    return SideShare(of_class == positive, predicted)
    return None


def quantity_limit(
    quantity: Metric, cells: NDArray[np.float64], error: float, prior: float | None, upper: bool
) -> float:
    """By `value_limit`; a rate for a prior that was given, which may rise in FP, at the worst corner of two shares."""
    if prior is None or not isinstance(quantity, Rate):
        return value_limit(quantity, cells, error, prior, upper=upper)
    tp, fp, fn, tn = cells
    fprs, fnrs = share_limits(fp, fp + tn, error / 4), share_limits(fn, tp + fn, error / 4)
    corners = [quantity.value(fpr * (1 - prior), fnr * prior, prior) for fpr in fprs for fnr in fnrs]
    return float(np.nanmax(corners) if upper else np.nanmin(corners))


def constraint_limit(constraint: Constraint, cells: NDArray[np.float64], error: float, prior: float | None) -> float:
    """What the quantity surely reaches (``>=``) or does not exceed (``<=``), at a threshold that these rows did not
    choose; NaN where it is undefined."""
    quantity = constraint.quantity
    if not is_defined(quantity, cells):
        return np.nan
    if (share := nested_share(quantity)) is not None:
        return float(share.limits(Confusion(*cells), constraint.sense, error, prior))
    return quantity_limit(quantity, cells, error, prior, upper=constraint.sense == "<=")


def uniform_constraint_limit(constraint: Constraint, tally: ScoreTally, confusion: Confusion, error: float) -> float:
    """The same at a cut that any rows chose, also these."""
    share = nested_share(constraint.quantity)
    if share is not None and not (tally.given_prior is not None and share.negatives and share.positives):
        return float(share.uniform_limits(confusion, constraint.sense, error))
    found = bands(constraint.quantity, tally.rows.sum(axis=0), tally.given_prior, confusion, error, sides=2)
    corners = [Bands((found.fpr[i],) * 2, (found.fnr[j],) * 2, found.priors) for i in (0, 1) for j in (0, 1)]
    upper = constraint.sense != ">="
    limits = [
        worst_over_priors(partial(one.value_at, constraint.quantity, True), found.priors, largest=upper)
        for one in corners
    ]
    worst = np.max if upper else np.min  # NaN, where a corner is undefined, stays
    return float(worst(limits, axis=0)[0])
