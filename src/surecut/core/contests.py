"""A label against the others, row by row: which rows may join it, and where; in NumPy, and compiled where it pays.

A row joins a label when a·η + b overtakes the k-th best of the row's other labels, its *rival*, which loses the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.label_rows import Counts, DenseRows, StoredRows
from surecut.core.top_rows import NO_LABEL, affine, top_entries

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    from surecut.core.label_rows import LabelRows


class Joining(NamedTuple):
    """Rows that may join a label, and the counts where none of them has.

    Attributes
    ----------
    place
        Where each row joins: the offset, or the gain, of the label from which on it is predicted.
    rival
        The label that loses the row.
    gained, lost
        Weight of the row if it has the label, and if it has the rival.
    weight
        Of the row.
    threshold, eta
        What the label has to beat, and its score.
    base
        The counts where none of the rows has joined.
    """

    place: NDArray[np.float64]
    rival: NDArray[np.int64]
    gained: NDArray[np.float64]
    lost: NDArray[np.float64]
    weight: NDArray[np.float64]
    threshold: NDArray[np.float64]
    eta: NDArray[np.float64]
    base: Counts

    def some(self, rows: Any, base: Counts) -> Joining:
        """Some of the rows, with counts of their own."""
        columns: Any = [column[rows] for column in self[:-1]]
        return Joining._make([*columns, base])

    def counts(self, label: int, a: float, offset: float) -> Counts:
        """The counts with a gain and an offset of the label."""
        gain = affine(self.eta, a, offset)
        joined = np.flatnonzero((gain > self.threshold) | ((gain == self.threshold) & (label < self.rival)))
        labels = len(self.base.tp)
        rival, weight = self.rival[joined], self.weight[joined]
        tp = self.base.tp - np.bincount(rival, self.lost[joined], minlength=labels)
        predicted = self.base.predicted - np.bincount(rival, weight, minlength=labels)
        tp[label] += self.gained[joined].sum()
        predicted[label] += weight.sum()
        return Counts(tp, predicted)


class Contest(ABC):
    """The rows of a search, and the present gain a·η + b of each of their entries."""

    def __init__(self, rows: LabelRows, gain: NDArray[np.float64], module: ModuleType | None) -> None:
        self.gain, self.k, self.module = gain, rows.k, module
        self._row_weight = rows.weight
        self._eta = rows.eta
        self._truth = rows.truth
        self._buffers = [np.empty(0)] * 6
        self._rivals = np.empty(0, dtype=np.int64)

    @abstractmethod
    def column(self, label: int) -> tuple[Any, NDArray[np.int64]]:
        """Where the entries of a label are, and the rows that they belong to."""

    @abstractmethod
    def against(self, label: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        """What the label has to beat in each of its rows: the gain, whose it is, and whether the row has that label."""

    @abstractmethod
    def _plan(self, label: int) -> tuple[Any, ...]:
        """Columns, starts of rows, rows and entries of the label, as the compiled loop takes them; and how many."""

    def write(self, label: int, a: float, offset: float) -> None:
        """Replace the gains of a label."""
        where, _ = self.column(label)
        self.gain[where] = affine(self._eta[where], a, offset)

    def joining(self, label: int, a: float, offset: float, by_gain: bool, counts: Counts) -> Joining:
        """Which rows may join a label, where the other number is as it is; `counts` are those of the present gains."""
        if self.module is not None:
            return self._joining_compiled(label, a, offset, by_gain, counts)
        where, row = self.column(label)
        threshold, rival, rival_truth = self.against(label)
        eta, own, truth = self._eta[where], self.gain[where], self._truth[where].astype(float)
        weight = np.ones(len(row)) if self._row_weight is None else self._row_weight[row]
        present = ((own > threshold) | ((own == threshold) & (label < rival))) & (own > -np.inf)
        moves = np.isfinite(eta) & np.isfinite(threshold)  # no number changes what infinities decide
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            if by_gain:
                place = (threshold - offset) / eta
                moves &= (eta > 0) & (place < np.inf)  # no finite gain is enough for others
                always = np.where(moves, place <= 0, present)
                moves &= place > 0
            else:
                place = threshold - eta * a
                moves &= np.isfinite(place)
                always = present & ~moves
        changed = np.flatnonzero(present != always)
        sign = np.where(always[changed], weight[changed], -weight[changed])
        tp, predicted = counts.tp.astype(float), counts.predicted.astype(float)
        predicted[label] += sign.sum()
        tp[label] += (sign * truth[changed]).sum()
        known = rival[changed] != NO_LABEL
        whose, sign = rival[changed][known], sign[known]
        predicted -= np.bincount(whose, sign, minlength=len(tp))
        tp -= np.bincount(whose, sign * rival_truth[changed][known], minlength=len(tp))
        found = place, rival, weight * truth, weight * rival_truth, weight, threshold, eta
        columns: Any = [column[moves] for column in found]
        return Joining._make([*columns, Counts(tp, predicted)])

    def _joining_compiled(self, label: int, a: float, offset: float, by_gain: bool, counts: Counts) -> Joining:
        *plan, size = self._plan(label)
        if len(self._rivals) < size:
            self._buffers = [np.empty(size) for _ in range(6)]
            self._rivals = np.empty(size, dtype=np.int64)
        tp, predicted = counts.tp.astype(float), counts.predicted.astype(float)
        gain, eta, truth = self.gain.reshape(-1), self._eta.reshape(-1), self._truth.reshape(-1)
        weight = np.empty(0) if self._row_weight is None else self._row_weight
        place, *others = self._buffers
        numbers = label, self.k, float(a), float(offset), by_gain
        out = place, self._rivals, *others
        assert self.module is not None
        moved = self.module.join(gain, eta, truth, weight, *plan, *numbers, *out, tp, predicted)
        columns: Any = [column[:moved] for column in out]
        return Joining._make([*columns, Counts(tp, predicted)])


class DenseContest(Contest):
    """Of a dense matrix."""

    def __init__(self, rows: DenseRows, gain: NDArray[np.float64], module: ModuleType | None) -> None:
        super().__init__(rows, gain, module)
        self._row = np.arange(len(rows.scores))
        self._eta, self._truth = np.ascontiguousarray(rows.scores), np.ascontiguousarray(rows.truth)

    def column(self, label: int) -> tuple[Any, NDArray[np.int64]]:
        return (slice(None), label), self._row

    def against(self, label: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        others = self.gain.copy()
        others[:, label] = -np.inf
        if self.k >= others.shape[1]:
            nobody = np.full(len(others), NO_LABEL)
            return np.full(len(others), -np.inf), nobody, np.zeros(len(others))
        rival = others.argmax(axis=1) if self.k == 1 else np.argsort(-others, axis=1, kind="stable")[:, self.k - 1]
        best = others[self._row, rival]
        truth = self._truth[self._row, rival]
        return best, np.where(best == -np.inf, NO_LABEL, rival), np.where(best == -np.inf, 0, truth)

    def _plan(self, label: int) -> tuple[Any, ...]:
        rows, labels = self.gain.shape
        return NOTHING, NOTHING, NOTHING, NOTHING, labels, rows


class StoredContest(Contest):
    """Of a sparse matrix."""

    def __init__(self, rows: StoredRows, gain: NDArray[np.float64], module: ModuleType | None) -> None:
        super().__init__(rows, gain, module)
        self._columns, self._indptr, self._row = rows.columns.astype(np.int64), rows.indptr, rows.row
        self._order = np.argsort(rows.columns, kind="stable")
        self._starts = np.searchsorted(rows.columns[self._order], np.arange(len(rows.positives) + 1))

    def column(self, label: int) -> tuple[Any, NDArray[np.int64]]:
        entries = self._order[self._starts[label] : self._starts[label + 1]]
        return entries, self._row[entries]

    def against(self, label: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        entries, rows = self.column(label)
        best, rival = np.full(len(entries), -np.inf), np.full(len(entries), NO_LABEL)
        size = self._indptr[rows + 1] - self._indptr[rows]
        starts = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
        place = np.arange(starts[-1]) - np.repeat(starts[:-1], size) + np.repeat(self._indptr[rows], size)
        others = self.gain[place]
        others[np.isin(place, entries)] = -np.inf
        chosen = top_entries(starts, place, others, self.k)  # the k best of each row, the largest first
        owner = np.searchsorted(starts, chosen, side="right") - 1
        last = np.arange(len(chosen)) - np.searchsorted(owner, owner) == self.k - 1
        entry = place[chosen[last]]
        best[owner[last]], rival[owner[last]] = self.gain[entry], self._columns[entry]
        truth = np.zeros(len(entries))
        truth[owner[last]] = self._truth[entry]
        return best, rival, truth

    def _plan(self, label: int) -> tuple[Any, ...]:
        entries, rows = self.column(label)
        return self._columns, self._indptr, rows, entries, 0, len(rows)


NOTHING = np.empty(0, dtype=np.int64)


def contest(rows: LabelRows, gain: NDArray[np.float64]) -> Contest:
    """The contest of rows, compiled where numba is loaded or worth loading."""
    module = rows.compiled
    if isinstance(rows, StoredRows):
        return StoredContest(rows, gain, module)
    if isinstance(rows, DenseRows):
        return DenseContest(rows, gain, module)
    raise TypeError(f"expected rows of a dense or of a sparse matrix, got {type(rows).__name__}")


def bins_of(place: NDArray[np.float64], lowest: float, scale: float, bins: int) -> NDArray[np.int64]:
    """The bin of each place: of equal widths, with one for all lower and one for all higher places."""
    with np.errstate(over="ignore", invalid="ignore"):
        position = np.clip((place - lowest) * scale, -1.0, bins - 2.0)
    return np.floor(position).astype(np.int64) + 1


def binned(
    joining: Joining, lowest: float, scale: float, bins: int, module: ModuleType | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The bin of each row; by bin and rival: weight of rows, and of those that have the rival; by bin: weight of the
    rows that have the label."""
    labels = len(joining.base.tp)
    if module is not None:
        bin_of = np.empty(len(joining.place), dtype=np.int64)
        counted = np.zeros((bins, labels)), np.zeros((bins, labels)), np.zeros(bins)
        module.count_in_bins(*joining[:5], lowest, scale, bin_of, *counted)
        return bin_of, *counted
    bin_of = bins_of(joining.place, lowest, scale, bins)
    cell = bin_of * labels + joining.rival
    of_rows, of_lost = (
        np.bincount(cell, weight, minlength=bins * labels).reshape(bins, labels).astype(float)
        for weight in (joining.weight, joining.lost)
    )
    return bin_of, of_rows, of_lost, np.bincount(bin_of, joining.gained, minlength=bins).astype(float)
