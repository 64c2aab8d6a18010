"""What a label has to beat in each row to be predicted, for the sweeps; in NumPy, and compiled where it pays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.kernels import LOADING, compiled_module, has_numba
from surecut.core.label_rows import DenseRows, StoredRows
from surecut.core.settings import settings
from surecut.core.top_rows import NO_LABEL, top_entries

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    from surecut.core.label_rows import LabelRows
    from surecut.core.sweeps import Flips

PASSES = 50
"""About so many times all scores are read in a search: numba is loaded at once where that is worth it."""


class Column(NamedTuple):
    """The scores of one label, in the rows that have one."""

    rows: Any
    entries: Any
    eta: NDArray[np.float64]


class Beaten(NamedTuple):
    """The k-th best of the other labels of each row: its gain, which label it is, whether the row has it."""

    gain: NDArray[np.float64]
    rival: NDArray[np.int64]
    truth: NDArray[Any]

    def joins(self, gain: NDArray[np.float64], label: int) -> NDArray[np.bool_]:
        """Where a label with these gains is predicted: it is larger, or equal and in the lower column."""
        won = (gain > self.gain) | ((gain == self.gain) & (label < self.rival))
        return np.asarray(won & (gain > -np.inf))


class Contest(ABC):
    """A label against all others, row by row. `gain` is that of all entries, in the shape of the rows' scores."""

    @abstractmethod
    def column(self, label: int) -> Column:
        """The scores of a label."""

    @abstractmethod
    def against(self, gain: NDArray[np.float64], label: int) -> Beaten:
        """What a label has to beat."""

    @abstractmethod
    def gain_of(self, gain: NDArray[np.float64], label: int) -> NDArray[np.float64]:
        """The gains of a label."""

    @abstractmethod
    def write(self, gain: NDArray[np.float64], label: int, column: NDArray[np.float64]) -> None:
        """Replace the gains of a label."""

    @abstractmethod
    def truth_of(self, label: int) -> NDArray[Any]:
        """Whether rows have a label."""

    @abstractmethod
    def weight_of(self, label: int) -> NDArray[Any]:
        """The weight of the rows that have a score for a label."""


class DenseContest(Contest):
    """Of a dense matrix."""

    def __init__(self, rows: DenseRows, module: ModuleType | None) -> None:
        self.of, self.module = rows, module
        size = len(rows.scores)
        self._row = np.arange(size)
        self._weight = np.ones(size, dtype=np.int64) if rows.weight is None else rows.weight
        kind = np.int64 if rows.truth.dtype.kind in "biu" else np.float64
        self._truth = rows.truth
        self._columns: dict[int, NDArray[Any]] = {}
        self._kind = kind

    def column(self, label: int) -> Column:
        return Column(slice(None), None, self.of.scores[:, label])

    def against(self, gain: NDArray[np.float64], label: int) -> Beaten:
        size, k = len(gain), self.of.k
        best, rival = np.empty(size), np.empty(size, dtype=np.int64)
        if self.module is not None:
            self.module.beaten_of_dense(gain, label, k, best, rival)
        else:
            beaten_of_dense(gain, label, k, best, rival)
        truth = np.where(rival >= 0, self._truth[self._row, rival], 0)
        return Beaten(best, rival, truth.astype(self._kind))

    def gain_of(self, gain: NDArray[np.float64], label: int) -> NDArray[np.float64]:
        return gain[:, label]

    def write(self, gain: NDArray[np.float64], label: int, column: NDArray[np.float64]) -> None:
        gain[:, label] = column

    def truth_of(self, label: int) -> NDArray[Any]:
        if label not in self._columns:
            self._columns[label] = self._truth[:, label].astype(self._kind)
        return self._columns[label]

    def weight_of(self, label: int) -> NDArray[Any]:
        return self._weight


class StoredContest(Contest):
    """Of a sparse matrix."""

    def __init__(self, rows: StoredRows, module: ModuleType | None) -> None:
        self.of, self.module = rows, module
        order = np.argsort(rows.columns, kind="stable")
        self._starts = np.searchsorted(rows.columns[order], np.arange(len(rows.positives) + 1))
        self._order = order
        size = len(rows.indptr) - 1
        self._weight = np.ones(size, dtype=np.int64) if rows.weight is None else rows.weight
        self._kind = np.int64 if rows.truth.dtype.kind in "biu" else np.float64

    def _entries(self, label: int) -> NDArray[np.int64]:
        return self._order[self._starts[label] : self._starts[label + 1]]

    def column(self, label: int) -> Column:
        entries = self._entries(label)
        return Column(self.of.row[entries], entries, self.of.scores[entries])

    def against(self, gain: NDArray[np.float64], label: int) -> Beaten:
        entries = self._entries(label)
        best, rival = np.empty(len(entries)), np.empty(len(entries), dtype=np.int64)
        rows = self.of.row[entries]
        kernel = beaten_of_stored if self.module is None else self.module.beaten_of_stored
        kernel(gain, self.of.indptr, rows, entries, self.of.k, best, rival)
        known = rival >= 0
        truth = np.where(known, self.of.truth[np.maximum(rival, 0)], 0).astype(self._kind)
        label_of = np.where(known, self.of.columns[np.maximum(rival, 0)], NO_LABEL).astype(np.int64)
        return Beaten(best, label_of, truth)

    def gain_of(self, gain: NDArray[np.float64], label: int) -> NDArray[np.float64]:
        return gain[self._entries(label)]

    def write(self, gain: NDArray[np.float64], label: int, column: NDArray[np.float64]) -> None:
        gain[self._entries(label)] = column

    def truth_of(self, label: int) -> NDArray[Any]:
        return self.of.truth[self._entries(label)].astype(self._kind)

    def weight_of(self, label: int) -> NDArray[Any]:
        return self._weight[self.of.row[self._entries(label)]]


def of(rows: LabelRows) -> Contest:
    """The contest of rows, compiled where numba is loaded or worth loading."""
    module = compiled_module(settings())
    worth_loading = settings().kernels is None and rows.eta.size * PASSES >= settings().compile_after
    if module is None and worth_loading and has_numba():
        module = LOADING.load()
    return DenseContest(rows, module) if isinstance(rows, DenseRows) else StoredContest(_stored(rows), module)


def _stored(rows: LabelRows) -> StoredRows:
    if not isinstance(rows, StoredRows):
        raise TypeError(f"expected rows of a dense or of a sparse matrix, got {type(rows).__name__}")
    return rows


def beaten_of_dense(
    gain: NDArray[np.float64], label: int, k: int, best: NDArray[np.float64], rival: NDArray[np.int64]
) -> None:
    """The k-th best of the other labels of each row, and which it is; equal ones are in the order of their columns."""
    others = gain.copy()
    others[:, label] = -np.inf
    if k >= others.shape[1]:
        best[:], rival[:] = -np.inf, NO_LABEL
        return
    if k == 1:
        rival[:] = others.argmax(axis=1)
    else:
        order = np.argsort(-others, axis=1, kind="stable")
        rival[:] = order[:, k - 1]
    best[:] = others[np.arange(len(others)), rival]
    rival[best == -np.inf] = NO_LABEL


def beaten_of_stored(
    gain: NDArray[np.float64],
    indptr: NDArray[np.int64],
    rows: NDArray[np.int64],
    entries: NDArray[np.int64],
    k: int,
    best: NDArray[np.float64],
    rival: NDArray[np.int64],
) -> None:
    """The same for some entries of a sparse matrix, one a row: the place of the k-th best other entry of its row."""
    best[:], rival[:] = -np.inf, NO_LABEL
    if not len(rows):
        return
    size = indptr[rows + 1] - indptr[rows]
    starts = np.concatenate(([0], np.cumsum(size)))
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], size) + np.repeat(indptr[rows], size)
    others = gain[place]
    others[np.isin(place, entries)] = -np.inf
    # top_entries gives the k best of each row, the largest first
    chosen = top_entries(starts, place, others, k)
    owner = np.searchsorted(starts, chosen, side="right") - 1
    rank = np.arange(len(chosen)) - np.searchsorted(owner, owner)
    last = rank == k - 1
    best[owner[last]] = others[chosen[last]]
    rival[owner[last]] = place[chosen[last]]


def bins_of(place: NDArray[np.float64], lowest: float, scale: float, bins: int) -> NDArray[np.int64]:
    """The bin of each place: of equal widths, with one for all lower and one for all higher places."""
    with np.errstate(over="ignore", invalid="ignore"):
        position = np.clip((place - lowest) * scale, -1.0, bins - 2.0)
    return np.floor(position).astype(np.int64) + 1


def binned(
    flips: Flips, lowest: float, scale: float, bins: int, labels: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """By bin: weight of rows without a rival; by bin and rival: weight of rows, and of those that have the rival; by
    bin: weight of the rows that have the label."""
    bin_of = bins_of(flips.place, lowest, scale, bins)
    known = flips.rival >= 0
    cell = bin_of * labels + flips.rival
    kind = flips.weight.dtype

    def summed(where: NDArray[np.int64], weight: NDArray[Any], size: int) -> NDArray[Any]:
        return np.bincount(where, weight, minlength=size).astype(np.result_type(kind, weight.dtype))

    alone = summed(bin_of[~known], flips.weight[~known], bins)
    cell = cell if known.all() else cell[known]
    of_rows = summed(cell, flips.weight if known.all() else flips.weight[known], bins * labels)
    of_lost = summed(cell, flips.lost if known.all() else flips.lost[known], bins * labels)
    return (
        alone,
        of_rows.reshape(bins, labels),
        of_lost.reshape(bins, labels),
        summed(bin_of, flips.gained, bins),
    )
