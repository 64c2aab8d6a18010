"""The confusion matrix, weighted, at one threshold or at many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_weights, plain_number, require_same_length
from surecut._labels import as_labels, as_predictions, warn_of_absence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LARGE = 2**31
"""From so many rows on, products of two counts may exceed 64-bit integers."""

LARGEST_FACTOR = 1e150
"""Products of two floats between one over this and this are floats."""


@dataclass(frozen=True, eq=False)
class Confusion:
    """True and false positives and negatives: scalars, or arrays of one shape.

    The cells are counts, sums of weights, or rates (which sum to 1): a metric does not care, because it is
    a ratio. Integer counts stay integers, so that nothing computed from them depends on an order of summation.

    Examples
    --------
    >>> confusion = Confusion(tp=8, fp=2, fn=4, tn=86)
    >>> confusion.prior
    0.12
    >>> (confusion + confusion).tp
    16
    """

    tp: Any
    fp: Any
    fn: Any
    tn: Any

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
    ) -> Confusion:
        """Count the cells of predictions.

        Predictions are either boolean or drawn from the same labels as `y_true`.
        """
        truth = as_labels(y_true, pos_label=pos_label)
        actual, predicted = truth.is_positive(), as_predictions(y_pred, pos_label=pos_label)
        require_same_length(y_true=actual, y_pred=predicted)
        warn_of_absence(truth.absent)
        if sample_weight is None:
            tp = int(np.count_nonzero(actual & predicted))
            fp = int(np.count_nonzero(predicted)) - tp
            fn = int(np.count_nonzero(actual)) - tp
            return cls(tp, fp, fn, len(actual) - tp - fp - fn)
        weights = as_weights(sample_weight, len(actual))
        cells = (actual & predicted, ~actual & predicted, actual & ~predicted, ~actual & ~predicted)
        return cls(*(float(weights[cell].sum()) for cell in cells))

    @property
    def positives(self) -> Any:
        """Weight of the rows that are positive."""
        return self.tp + self.fn

    @property
    def negatives(self) -> Any:
        """Weight of the rows that are negative."""
        return self.fp + self.tn

    @property
    def predicted_positives(self) -> Any:
        """Weight of the rows that are predicted positive."""
        return self.tp + self.fp

    @property
    def total(self) -> Any:
        """Weight of all rows."""
        return self.positives + self.negatives

    @property
    def prior(self) -> Any:
        """P, the share of the positives."""
        return self.positives / self.total

    def at_prior(self, prior: float) -> Confusion:
        """Rates of the same classifier where a share `prior` is positive (label shift): TPR and FPR stay.

        >>> Confusion(tp=8, fp=2, fn=2, tn=8).at_prior(0.1)
        Confusion(tp=0.08, fp=0.18, fn=0.02, tn=0.72)
        """
        positive, negative = prior / self.positives, (1 - prior) / self.negatives
        return Confusion(self.tp * positive, self.fp * negative, self.fn * positive, self.tn * negative)

    def ready_for_products(self) -> Confusion:
        """The same cells, up to a power of two, so that a product of two of them is neither rounded nor out of range.

        Counts become floats where a product of two would not fit 64-bit integers; weights are scaled where it would
        not fit a float.

        >>> Confusion(tp=8, fp=2, fn=4, tn=10**12).ready_for_products()
        Confusion(tp=8.0, fp=2.0, fn=4.0, tn=1000000000000.0)
        """
        total = np.asarray(self.total)
        if total.dtype.kind in "iu" and np.max(total, initial=0) < LARGE:
            return self
        cells = [np.asarray(cell, dtype=float) for cell in (self.tp, self.fp, self.fn, self.tn)]
        total = total.astype(float)
        if np.max(total, initial=0) > LARGEST_FACTOR or np.min(total, initial=1, where=total > 0) < 1 / LARGEST_FACTOR:
            _, exponent = np.frexp(total)
            cells = [np.ldexp(cell, -exponent) for cell in cells]
        elif self.tp is cells[0]:
            return self
        return Confusion(*map(plain_number, cells))

    def where(self, condition: NDArray[np.bool_], other: Confusion) -> Confusion:
        """These cells where a condition holds, another's elsewhere."""
        pairs = ((self.tp, other.tp), (self.fp, other.fp), (self.fn, other.fn), (self.tn, other.tn))
        return Confusion(*(np.where(condition, mine, theirs) for mine, theirs in pairs))

    def __add__(self, other: Confusion) -> Confusion:
        return Confusion(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn)

    def __getitem__(self, index: Any) -> Confusion:
        """Cells at some of the thresholds; one index gives plain Python numbers."""
        tp, fp, fn, tn = (np.asarray(cell)[index] for cell in (self.tp, self.fp, self.fn, self.tn))
        if np.ndim(tp) == 0:
            return Confusion(tp.item(), fp.item(), fn.item(), tn.item())
        return Confusion(tp, fp, fn, tn)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Confusion):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs)
            for mine, theirs in ((self.tp, other.tp), (self.fp, other.fp), (self.fn, other.fn), (self.tn, other.tn))
        )

    def __hash__(self) -> int:
        """Of scalars; arrays cannot be hashed."""
        return hash((self.tp, self.fp, self.fn, self.tn))


def stacked(confusions: Sequence[Confusion]) -> Confusion:
    """Confusions of single labels as one of arrays."""
    return Confusion(*(np.array([getattr(one, cell) for one in confusions]) for cell in ("tp", "fp", "fn", "tn")))


def joined(confusions: Sequence[Confusion]) -> Confusion:
    """Confusions of several blocks of labels as that of one."""
    return Confusion(*(np.concatenate([getattr(one, cell) for one in confusions]) for cell in ("tp", "fp", "fn", "tn")))
