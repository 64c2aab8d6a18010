"""Numbers of rows and sums of weights, by bin of scores and class; and how bins are divided into parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW_RANGES = 8
"""So few are compared with one by one."""


@dataclass
class Counts:
    """Number of rows and sum of weights, by bin and class (negatives first). Without weights they are one array."""

    rows: NDArray[Any]
    weight: NDArray[Any]

    @classmethod
    def zeros(cls, bins: int, weighted: bool, dtype: type[np.signedinteger[Any]] = np.int64) -> Counts:
        rows = np.zeros((bins, 2), dtype=dtype)
        return cls(rows, np.zeros((bins, 2)) if weighted else rows)

    def move(self, source: int, target: int) -> None:
        """Add one bin's counts to another's."""
        for counts in {id(self.rows): self.rows, id(self.weight): self.weight}.values():
            counts[target] += counts[source]
            counts[source] = 0

    def widened(self) -> Counts:
        """The same with numbers of rows that can be multiplied."""
        rows = self.rows.astype(np.int64)
        return Counts(rows, rows if self.weight is self.rows else self.weight)

    @property
    def occupied(self) -> NDArray[np.intp]:
        """The bins in which there are rows."""
        return np.flatnonzero(self.rows[:, 0] | self.rows[:, 1])

    def __iadd__(self, other: Counts) -> Counts:
        self.rows += other.rows
        if self.weight is not self.rows:
            self.weight += other.weight
        return self

    def __getitem__(self, index: Any) -> Counts:
        rows = self.rows[index]
        return Counts(rows, rows if self.weight is self.rows else self.weight[index])


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
