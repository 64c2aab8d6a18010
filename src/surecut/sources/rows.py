"""Rows of one sample that are read block by block: how they are counted, and how bins of them are refined.

`RowSource` is what arrays and batches have in common. A source that can be read again and again writes four passes:
`histogram`, `count_parts`, `extent` and `collect`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.counts import Counts, Parts, lie_in, range_of
from surecut.core.entries import Entries
from surecut.core.kernels import add_counts
from surecut.core.keys import key_marks
from surecut.core.memory import Memory
from surecut.core.search import SourceChangedError
from surecut.core.settings import Settings
from surecut.core.tally import ScoreTally, tally_keys
from surecut.sample import Sample, fingerprint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.overlap import RowSample

NO_WEIGHTS = np.empty(0)


class Histogram(NamedTuple):
    """Occupied bins, descending: lowest and highest key, counts; and the checksum of all rows."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    counts: Counts
    checksum: int


@dataclass(frozen=True)
class FoundRows:
    """The few rows that a pass over many found in some ranges of scores.

    `weights` is empty where rows are not weighted; no row has a weight of zero.
    """

    keys: NDArray[np.uint64]
    is_positive: NDArray[np.bool_]
    weights: NDArray[np.float64]
    dtype: np.dtype[Any]

    @classmethod
    def joined(cls, parts: list[FoundRows]) -> FoundRows:
        if len(parts) == 1:
            return parts[0]
        keys, is_positive, weights = (
            np.concatenate([getattr(part, column) for part in parts]) for column in ("keys", "is_positive", "weights")
        )
        return cls(keys, is_positive, weights, parts[0].dtype)

    def __len__(self) -> int:
        return len(self.keys)

    def within(self, low: Any, high: Any) -> FoundRows:
        """Those of the rows that lie in some ranges of keys (ascending)."""
        where = np.flatnonzero((self.keys >= low[0]) & (self.keys <= high[-1]))
        if len(low) > 1:
            keys = self.keys[where]
            where = where[keys <= high[range_of(keys, low)]]
        weights = self.weights[where] if len(self.weights) else self.weights
        return FoundRows(self.keys[where], self.is_positive[where], weights, self.dtype)

    def add_to(self, counts: Counts, parts: Parts) -> None:
        """Count the rows, all of which lie in bins that are divided, by part."""
        part = parts.holding(self.keys)
        if len(counts.marks):
            np.add.at(counts.marks, part, key_marks(self.keys, self.is_positive, self.weights))
        add_counts(part, self.is_positive, self.weights, counts.rows, counts.weight)

    def mark(self) -> int:
        """A number that names the rows."""
        return int(key_marks(self.keys, self.is_positive, self.weights).sum(dtype=np.uint64))

    def extend(self, low: Any, high: Any, smallest: Any, largest: Any) -> None:
        """Lower `smallest` and raise `largest` to the keys found in each of some bins (ascending)."""
        keys = np.sort(self.keys)
        first, last = np.searchsorted(keys, low), np.searchsorted(keys, high, side="right") - 1
        found = first <= last
        smallest[found] = np.minimum(smallest[found], keys[first[found]])
        largest[found] = np.maximum(largest[found], keys[last[found]])

    def tally(self) -> ScoreTally:
        """The rows by distinct score."""
        if not len(self):
            raise SourceChangedError
        return tally_keys(self.keys, self.is_positive, self.weights if len(self.weights) else None, self.dtype)


class KeptRows(NamedTuple):
    """Rows in some ranges of keys (ascending) that a pass has kept in memory.

    They stay in the pieces that they were found in, which are small enough for the cache.
    """

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    pieces: list[FoundRows]

    def covers(self, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> bool:
        """Whether all rows of some bins are among them."""
        return lie_in(self.low, self.high, low, high)

    def collect(self, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""
        return FoundRows.joined([piece.within(low, high) for piece in self.pieces]).tally()


class RowSource(ABC):
    """A source of one sample whose rows can be passed over again and again."""

    refines = True
    sorts_flat_curves = True
    """Whether all rows may be sorted in memory, where a curve is so flat that bins tell nothing."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.kept: KeptRows | None = None
        self._memory = Memory(settings.group)
        self._rows = 0
        self._checksum = 0
        self._divides = False

    # --- What a source writes ----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The scores' own dtype, in which thresholds are put."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @abstractmethod
    def histogram(self) -> Histogram:
        """All rows, counted in bins that suit them. Checks labels, scores and weights."""

    @abstractmethod
    def count_parts(self, parts: Parts, keep: bool) -> Counts:
        """Counts of bins that are divided, by part. With `keep`, the rows may be kept in `kept`."""

    @abstractmethod
    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The smallest and the largest key in each of some bins (ascending)."""

    @abstractmethod
    def collect(self, low: Any, high: Any) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""

    @abstractmethod
    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""

    @abstractmethod
    def seen(self) -> tuple[RowSample, ...]:
        """Some rows, to recognise them by; asked for after `count`."""

    @abstractmethod
    def count(self, every: bool = False) -> Entries:
        """All rows: `binned` as a rule, or by every distinct score."""

    # --- What a search asks for --------------------------------------------------------------------------------------

    @property
    def resolvable_rows(self) -> float:
        return float("inf")

    @property
    def sample(self) -> Sample:
        """What a decision remembers of the rows; asked for after `count`."""
        return Sample(
            rows=self._rows,
            weighted=self.weighted,
            fingerprint=fingerprint(self._rows, self._checksum),
            seen=self.seen(),
        )

    def binned(self) -> Entries:
        """All rows in bins, in groups of neighbours."""
        low, high, counts, self._checksum = self.histogram()
        self._rows = int(counts.rows.sum())
        return self._memory.grouped(Entries.of(low, high, counts.rows, counts.weight))

    def refine(self, wide: Entries) -> Entries | None:
        """Open groups, draw bins in to the scores that occur, divide them, or sort their rows if these are few.

        On a flat curve nearly all rows would be sorted: then all are.
        """
        if (opened := self._memory.opened(wide)) is not None:
            return opened
        low, high = np.ascontiguousarray(wide.low[::-1]), np.ascontiguousarray(wide.high[::-1])
        if self.kept is not None and self.kept.covers(low, high):
            return self._in_scores(wide, self.kept.collect(low, high))
        rows = int(wide.rows.sum())
        are_most = self.sorts_flat_curves and rows * self.settings.flat_share > self._rows
        # many narrow bins tell little, or neither bins nor their parts do
        if are_most and (self._divides or len(wide) >= self.settings.flat_bins):
            return None
        few = max(self.settings.sorted_at_once, min(self._rows // self.settings.sorted_share, self.settings.kept_rows))
        if rows > few:
            if not wide.exact.all() and not are_most:
                return self._drawn_in(wide)
            return self._divided(wide, keep=False)
        if rows > self.settings.sorted_at_once and wide.is_wide.all():
            return self._divided(wide, keep=True)
        return self._in_scores(wide, self.collect(low, high))

    def _drawn_in(self, wide: Entries) -> Entries:
        """The entries with ends that are scores."""
        inexact = ~wide.exact
        smallest, largest = self.extent(
            np.ascontiguousarray(wide.low[inexact][::-1]), np.ascontiguousarray(wide.high[inexact][::-1])
        )
        if (smallest > largest).any():
            raise SourceChangedError
        low, high = wide.low.copy(), wide.high.copy()
        low[inexact], high[inexact] = smallest[::-1], largest[::-1]
        return replace(wide, low=low, high=high, exact=np.ones(len(wide), dtype=bool)).one_each()

    def _divided(self, wide: Entries, keep: bool) -> Entries:
        """The entries in parts."""
        self._divides = True
        parts = self._parts(wide)
        counts = self.count_parts(parts, keep)
        occupied = counts.occupied[::-1]
        low, high = parts.ends(occupied)
        counts = counts[occupied]
        return self._memory.grouped(Entries.of(low, high, counts.rows, counts.weight, starts=_starts_within(wide, low)))

    def _parts(self, wide: Entries) -> Parts:
        """Into what some entries are divided. Neighbours of one width, a power of two, are divided as one."""
        low, high = wide.low[::-1], wide.high[::-1]
        width = high - low
        aligned = (width[1:] == width[:-1]) & (width[1:] & (width[1:] + np.uint64(1)) == 0)
        firsts = np.flatnonzero(np.concatenate(([True], (high[:-1] + np.uint64(1) != low[1:]) | ~aligned)))
        first, last = low[firsts], high[np.append(firsts[1:], len(low)) - 1]
        rows = int(wide.rows.sum())
        number = min(self.settings.parts, rows // self.settings.rows_per_part) // len(firsts)
        fineness = max(2, number.bit_length() - 1)
        shift = [
            max(0, min(int(run).bit_length() - fineness, int(one).bit_length() - 2))
            for run, one in zip(last - first, width[firsts], strict=True)
        ]
        return Parts.of(first, last, np.array(shift, dtype=np.uint64))

    def _in_scores(self, wide: Entries, tally: ScoreTally) -> Entries:
        """The entries by distinct score, in groups of neighbours."""
        starts = _starts_within(wide, tally.keys)
        return self._memory.grouped(Entries.scores(tally.keys, tally.rows, tally.weight, starts=starts))


def _starts_within(wide: Entries, low: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where those of some finer entries (descending) begin that lie in each of the wide ones."""
    return np.append(len(low) - np.searchsorted(low[::-1], wide.high, side="right"), len(low))
