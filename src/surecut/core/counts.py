"""Numbers of rows and sums of weights, by bin of scores and class; and how bins are divided into parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_MARKS = np.empty(0, dtype=np.uint64)

FEW_RANGES = 8
"""So few are compared with one by one."""


@dataclass
class Counts:
    """Number of rows and sum of weights, by bin and class (negatives first). Without weights they are one array.

    `marks`, where they are kept, are sums of what names the rows of each bin: `key_marks`.
    """

    rows: NDArray[Any]
    weight: NDArray[Any]
    marks: NDArray[np.uint64] = field(default_factory=lambda: NO_MARKS)

    @classmethod
    def zeros(
        cls, bins: int, weighted: bool, dtype: type[np.signedinteger[Any]] = np.int64, marked: bool = False
    ) -> Counts:
        rows = np.zeros((bins, 2), dtype=dtype)
        weight = np.zeros((bins, 2)) if weighted else rows
        return cls(rows, weight, np.zeros(bins, dtype=np.uint64) if marked else NO_MARKS)

    def move(self, source: int, target: int) -> None:
        """Add one bin's counts to another's."""
        for counts in {id(self.rows): self.rows, id(self.weight): self.weight, id(self.marks): self.marks}.values():
            if len(counts):
                counts[target : target + 1] += counts[source]
                counts[source] = 0

    def widened(self) -> Counts:
        """The same with numbers of rows that can be multiplied."""
        rows = self.rows.astype(np.int64)
        return Counts(rows, rows if self.weight is self.rows else self.weight, self.marks)

    @property
    def occupied(self) -> NDArray[np.intp]:
        """The bins in which there are rows."""
        return np.flatnonzero(self.rows[:, 0] | self.rows[:, 1])

    def __iadd__(self, other: Counts) -> Counts:
        self.rows += other.rows
        if self.weight is not self.rows:
            self.weight += other.weight
        if len(self.marks):
            self.marks += other.marks
        return self

    def __getitem__(self, index: Any) -> Counts:
        rows = self.rows[index]
        weight = rows if self.weight is self.rows else self.weight[index]
        return Counts(rows, weight, self.marks[index] if len(self.marks) else NO_MARKS)


class RowMarks:
    """What names the rows in each of some ranges of keys (ascending, disjoint), as an earlier pass found them."""

    def __init__(self, low: NDArray[np.uint64], high: NDArray[np.uint64], marks: NDArray[np.uint64]) -> None:
        self._low, self._high, self._marks = low, high, marks

    @classmethod
    def none(cls) -> RowMarks:
        """Before the first pass."""
        return cls(NO_MARKS, NO_MARKS, NO_MARKS)

    def are_those(self, low: NDArray[np.uint64], high: NDArray[np.uint64], marks: int) -> bool:
        """Whether rows with marks of this sum are all that were found between the ends of some bins (ascending).

        Bins are those of an earlier pass, or neighbours of them made one, or what is left of them if their ends are
        drawn in to the scores that occur.
        """
        return int(self._marks[self._within(low, high)].sum(dtype=np.uint64)) == marks % 2**64

    def divided(self, parts: Parts, counts: Counts) -> RowMarks:
        """The same, with what a pass has found by part in place of the ranges that were divided."""
        others = np.ones(len(self._low), dtype=bool)
        others[self._within(parts.low, parts.high)] = False
        occupied = counts.occupied
        low, high = parts.ends(occupied)
        columns = (self._low, low), (self._high, high), (self._marks, counts.marks[occupied])
        low, high, marks = (np.concatenate((kept[others], new)) for kept, new in columns)
        order = np.argsort(low)
        return RowMarks(low[order], high[order], marks[order])

    def _within(self, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The ranges that overlap some bins (ascending)."""
        first, last = np.searchsorted(self._high, low), np.searchsorted(self._low, high, side="right")
        changes = np.zeros(len(self._low) + 1, dtype=np.int64)
        np.add.at(changes, first, 1)
        np.add.at(changes, np.maximum(first, last), -1)
        return np.flatnonzero(np.cumsum(changes[:-1]))


class Parts(NamedTuple):
    """Some bins of keys (ascending, disjoint, ends inclusive), each divided into parts of 2**shift keys.

    Parts are numbered through all bins, in ascending order; `first` is the number of each bin's first part.
    """

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    shift: NDArray[np.uint64]
    first: NDArray[np.int64]
    total: int

    @classmethod
    def of(cls, low: NDArray[np.uint64], high: NDArray[np.uint64], shift: NDArray[np.uint64]) -> Parts:
        last = np.cumsum(((high - low) >> shift).astype(np.int64) + 1)
        return cls(low, high, shift, np.concatenate(([0], last[:-1])), int(last[-1]))

    def holding(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The parts that some keys belong to, each of which lies in a bin."""
        if len(self.low) == 1:
            return np.asarray(((keys - self.low[0]) >> self.shift[0]).view(np.int64))
        which = range_of(keys, self.low)
        return np.asarray(((keys - self.low[which]) >> self.shift[which]).view(np.int64) + self.first[which])

    def ends(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Lowest and highest key of some parts."""
        which = np.searchsorted(self.first, numbers, side="right") - 1
        shift = self.shift[which]
        start = (numbers - self.first[which]).astype(np.uint64) << shift
        end = np.minimum(start + ((np.uint64(1) << shift) - np.uint64(1)), (self.high - self.low)[which])
        return self.low[which] + start, self.low[which] + end


def range_of(keys: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Which of some ranges, by their lowest keys, each key lies in or above; −1 below all."""
    if len(low) > FEW_RANGES:
        return np.searchsorted(low, keys, side="right") - 1
    which = np.full(len(keys), -1, dtype=np.int64)
    for end in low:
        which += keys >= end
    return which


def lie_in(range_low: Any, range_high: Any, low: Any, high: Any) -> bool:
    """Whether all bins lie in some ranges of keys (ascending)."""
    which = np.searchsorted(range_low, low, side="right") - 1
    return bool((which >= 0).all() and (high <= range_high[which]).all())
