"""Rows with a score for each label, of which k labels are chosen: what a search of rules needs to know of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.kernels import LOADING, compiled_module, has_numba
from surecut.core.settings import settings
from surecut.core.top_rows import NO_LABEL, affine, top_entries, top_positions

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray


PASSES, ROWS_OF_A_CALL = 50, 100_000
"""About so many times all scores are read in a search, and so many rows could be read in the time that a search spends
on each label besides: numba is loaded at once where that is worth it."""


class Counts(NamedTuple):
    """By label: weight of the rows that it is predicted for, and of those of them that have it."""

    tp: NDArray[Any]
    predicted: NDArray[Any]


class LabelRows(ABC):
    """The validation rows of a rule.

    Attributes
    ----------
    k
        How many labels a row gets.
    weight
        Of each row; None where rows count once.
    truth
        Whether a row has a label, for each of its entries: 0 and 1, or shares of a smoothed label.
    positives, total
        Weight of the rows that have each label, and of all rows.
    """

    k: int
    weight: NDArray[np.float64] | None
    truth: NDArray[Any]
    positives: NDArray[Any]
    total: Any

    @property
    @abstractmethod
    def eta(self) -> NDArray[np.float64]:
        """The scores, or probabilities, of all entries, in the shape of `truth`."""

    @abstractmethod
    def with_eta(self, eta: NDArray[np.float64]) -> LabelRows:
        """The same rows with other scores, such as probabilities that were made of them."""

    @abstractmethod
    def with_truth(self, truth: NDArray[Any]) -> LabelRows:
        """The same rows with other labels, such as smoothed ones; those of absent entries stay."""

    @abstractmethod
    def affine(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """a·η + b of each entry."""

    @cached_property
    def of_row(self) -> float:
        """The weight of one row: 1, or the mean weight where that is less, as of weights that add up to 1."""
        return 1.0 if self.weight is None else min(1.0, float(self.weight.mean()))

    @cached_property
    def compiled(self) -> ModuleType | None:
        """The compiled loops, if they are loaded, or if there are so many rows that it pays to load them now."""
        module = compiled_module(settings())
        reads = max(self.eta.size * PASSES, len(self.positives) * ROWS_OF_A_CALL)
        worth_loading = settings().kernels is None and reads >= settings().compile_after
        return LOADING.load() if module is None and worth_loading and has_numba() else module

    def chosen(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> Any:
        """The k entries of each row whose a·η + b is largest."""
        return self.choose(self.affine(a, offsets))

    def counts_of(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> Counts:
        """The counts of the rule a·η + b."""
        return self.counts(self.chosen(a, offsets))

    @abstractmethod
    def choose(self, gain: NDArray[np.float64]) -> Any:
        """The k entries of each row whose gain is largest."""

    @abstractmethod
    def counts(self, chosen: Any) -> Counts:
        """By label, the predicted rows and the true ones among them."""

    @property
    def _type(self) -> Any:
        """The type of counts: whole numbers as long as rows and labels count once."""
        return np.int64 if self.weight is None and self.truth.dtype.kind in "biu" else np.float64


@dataclass
class DenseRows(LabelRows):
    """Rows of a dense matrix."""

    scores: NDArray[np.float64]
    truth: NDArray[Any]
    k: int
    weight: NDArray[np.float64] | None
    positives: NDArray[Any]
    total: Any

    @property
    def eta(self) -> NDArray[np.float64]:
        return self.scores

    def with_eta(self, eta: NDArray[np.float64]) -> DenseRows:
        return DenseRows(eta, self.truth, self.k, self.weight, self.positives, self.total)

    def with_truth(self, truth: NDArray[Any]) -> DenseRows:
        weighed = truth if self.weight is None else truth * self.weight[:, None]
        return DenseRows(self.scores, truth, self.k, self.weight, weighed.sum(axis=0), self.total)

    def affine(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        return affine(self.scores, a, offsets)

    def chosen(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.compiled is None:
            return np.asarray(super().chosen(a, offsets))
        found = np.empty((len(self.scores), self.k), dtype=np.int64)
        self._choose_compiled(a, offsets, found)
        return found

    def counts_of(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> Counts:
        if self.compiled is None:
            return super().counts_of(a, offsets)
        return self._choose_compiled(a, offsets, np.empty((1, self.k), dtype=np.int64))

    def _choose_compiled(
        self, a: NDArray[np.float64], offsets: NDArray[np.float64], found: NDArray[np.int64]
    ) -> Counts:
        """Write what is chosen, and count it."""
        tp, predicted = np.zeros(len(a)), np.zeros(len(a))
        weight = np.empty(0) if self.weight is None else self.weight
        assert self.compiled is not None
        self.compiled.choose(self.scores, self.truth, weight, a, offsets, self.k, found, tp, predicted)
        return Counts(tp.astype(self._type), predicted.astype(self._type))

    def choose(self, gain: NDArray[np.float64]) -> NDArray[np.int64]:
        return top_positions(gain, self.k)

    def counts(self, chosen: NDArray[np.int64]) -> Counts:
        labels = self.scores.shape[1]
        row = np.arange(len(chosen))
        tp, predicted = np.zeros(labels, dtype=self._type), np.zeros(labels, dtype=self._type)
        for column in chosen.T:
            known = slice(None) if (column != NO_LABEL).all() else column != NO_LABEL
            label, true = column[known], self.truth[row[known], column[known]]
            weight = None if self.weight is None else self.weight[known]
            predicted += _summed(label, weight, labels, self._type)
            tp += _summed(label, true if weight is None else true * weight, labels, self._type)
        return Counts(tp, predicted)


@dataclass
class StoredRows(LabelRows):
    """Rows of a sparse matrix: a label without a stored score is never predicted."""

    indptr: NDArray[np.int64]
    columns: NDArray[Any]
    scores: NDArray[np.float64]
    truth: NDArray[Any]
    k: int
    weight: NDArray[np.float64] | None
    positives: NDArray[Any]
    total: Any

    @property
    def eta(self) -> NDArray[np.float64]:
        return self.scores

    @cached_property
    def row(self) -> NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def with_eta(self, eta: NDArray[np.float64]) -> StoredRows:
        return self._with(eta, self.truth, self.positives)

    def with_truth(self, truth: NDArray[Any]) -> StoredRows:
        labels = len(self.positives)
        weight = None if self.weight is None else self.weight[self.row]
        before, now = (
            _summed(self.columns, one if weight is None else one * weight, labels, np.float64)
            for one in (self.truth, truth)
        )
        return self._with(self.scores, truth, self.positives - before + now)

    def _with(self, scores: NDArray[np.float64], truth: NDArray[Any], positives: NDArray[Any]) -> StoredRows:
        return StoredRows(self.indptr, self.columns, scores, truth, self.k, self.weight, positives, self.total)

    def affine(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        return affine(self.scores, a[self.columns], offsets[self.columns])

    def chosen(self, a: NDArray[np.float64], offsets: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.compiled is None:
            return np.asarray(super().chosen(a, offsets))
        found = np.empty(min(len(self.scores), self.k * (len(self.indptr) - 1)), dtype=np.int64)
        number = self.compiled.choose_stored(self.scores, self.columns, self.indptr, a, offsets, self.k, found)
        return found[:number]

    def choose(self, gain: NDArray[np.float64]) -> NDArray[np.int64]:
        return top_entries(self.indptr, self.columns, gain, self.k)

    def counts(self, chosen: NDArray[np.int64]) -> Counts:
        labels, label, true = len(self.positives), self.columns[chosen], self.truth[chosen]
        weight = None if self.weight is None else self.weight[self.row[chosen]]
        return Counts(
            _summed(label, true if weight is None else true * weight, labels, self._type),
            _summed(label, weight, labels, self._type),
        )


def _summed(label: NDArray[Any], weight: NDArray[Any] | None, labels: int, kind: Any) -> NDArray[Any]:
    """Weight by label; counts stay whole numbers."""
    return np.bincount(label, weight, minlength=labels).astype(kind, copy=False)
