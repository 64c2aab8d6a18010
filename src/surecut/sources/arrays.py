"""Rows of scores, labels and weights in arrays, read block by block by the kernels, on all cores."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles, require_no_nan
from surecut._labels import Labels
from surecut.core.bins import KeyRanges, are_tied, first_bins
from surecut.core.counts import Counts, Parts
from surecut.core.entries import Entries
from surecut.core.kernels import NO_BINS, NONE, SEVERAL, Kernels, available
from surecut.core.keys import ordered_keys
from surecut.core.settings import settings
from surecut.core.tally import ScoreTally, tally_rows
from surecut.core.threads import Shared, on_each
from surecut.overlap import RowSample, positions
from surecut.sources.rows import NO_WEIGHTS, FoundRows, Histogram, KeptRows, RowSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLED = 4096
"""Of so many rows all scores are looked at to choose bins."""

MINUS_ZERO = np.array(-0.0).view(np.int64)


class ArraySource(RowSource):
    """Three columns in memory."""

    def __init__(self, scores: NDArray[Any], labels: Labels, weights: NDArray[np.float64] | None) -> None:
        super().__init__(settings())
        self.scores, self.labels = scores, labels
        self.weights = NO_WEIGHTS if weights is None else weights
        self._distinct: Entries | None = None

    @cached_property
    def kernels(self) -> Kernels:
        """The loops that read rows."""
        return available(self.scores.size, self.settings)

    @cached_property
    def workers(self) -> int:
        """The threads that read rows."""
        return min(self.settings.workers(self.scores.size, self.kernels.reads_once), len(self.scores))

    @property
    def weighted(self) -> bool:
        return len(self.weights) > 0

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scores.dtype

    @property
    def rows_at_once(self) -> int:
        """Rows in a block."""
        as_they_are = self.scores.dtype in (np.float64, np.float32) and self.scores.flags.c_contiguous
        return self.settings.block * (self.settings.blocks_at_once if self.kernels.reads_once and as_they_are else 1)

    def __len__(self) -> int:
        return len(self.scores)

    def count(self, every: bool = False) -> Entries:
        if not every and self.scores.size >= self.settings.sort_below:
            return self.binned()
        if self.weighted:
            tally = self.tally()
            self._rows, self._checksum, self._distinct = int(tally.rows.sum()), tally.checksum, tally.entries
        else:
            self._distinct = self._sorted()
        return self._distinct if every else self._memory.grouped(self._distinct)

    def _sorted(self) -> Entries:
        """All rows by distinct score."""
        scores, labels = as_doubles(self.scores), self.labels
        found = self.kernels.sorted_rows(
            scores.reshape(-1).view(np.int64),
            np.ascontiguousarray(labels.codes).reshape(-1),
            labels.positive,
            labels.negative,
        )
        if found.invalid:
            labels.check()
        if found.nans:
            self.require_no_nan()
        self._rows, self._checksum = self.scores.size, found.checksum
        totals = np.array([[self._rows - found.positives, found.positives]])
        return Entries.scores(found.keys, found.rows, found.rows, totals=totals)

    def histogram(self) -> Histogram:
        """All rows, counted in bins that suit them. Checks labels and scores.

        Where scores are tied, the first look tells those that have a bin of their own: such a bin's ends are its score.
        """
        ordered = np.sort(self._sample())
        bits = min(self.settings.first_bits, max(10, self.scores.size.bit_length() - 5))  # few rows need few bins
        bins = first_bins(ordered, bits)
        tied = are_tied(ordered)
        small = np.int32 if self.scores.size < 2**31 else np.int64  # what is small stays in cache

        def work(blocks: Iterator[slice]) -> tuple[Counts, Any, int, int, int]:
            counts = Counts.zeros(2 * int(bins.half), self.weighted, small)
            only = np.full(2 * int(bins.half), NONE) if tied else NO_BINS
            invalid = nans = checksum = 0
            classes = self.labels.positive, self.labels.negative
            for block in blocks:
                found = self.kernels.histogram(*self._columns(block), *classes, bins, counts.rows, counts.weight, only)
                invalid, nans, checksum = invalid + found[0], nans + found[1], checksum + int(found[2])
            return counts, only, invalid, nans, checksum

        parts = self._on_all_cores(work)
        if any(part[2] for part in parts):
            self.labels.check()
        if any(part[3] for part in parts):
            self.require_no_nan()
        counts = functools.reduce(operator.iadd, [part[0] for part in parts])
        number, low, high, counts = self.kernels.occupied(counts, bins)
        if tied:
            score = _agreed([part[1] for part in parts], int(bins.half))[number].view(np.float64)
            alone = ~np.isnan(score)
            low[alone] = high[alone] = ordered_keys(score[alone])
        return Histogram(low, high, counts, sum(part[4] for part in parts) % 2**64)

    def count_parts(self, parts: Parts, keep: bool) -> Counts:
        def work(blocks: Iterator[slice]) -> tuple[list[FoundRows], Counts]:
            pieces, counts = [], Counts.zeros(parts.total, self.weighted)
            for found in self._found(blocks, parts.low, parts.high):
                found.add_to(counts, parts)
                if keep:
                    pieces.append(found)
            return pieces, counts

        pieces, counts = zip(*self._on_all_cores(work), strict=True)
        if keep:
            self.kept = KeptRows(parts.low, parts.high, list(itertools.chain.from_iterable(pieces)))
        added: Counts = functools.reduce(operator.iadd, counts)
        return added

    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        def work(blocks: Iterator[slice]) -> tuple[Any, Any]:
            smallest, largest = high.copy(), low.copy()
            for found in self._found(blocks, low, high):
                found.extend(low, high, smallest, largest)
            return smallest, largest

        parts = self._on_all_cores(work)
        return np.minimum.reduce([part[0] for part in parts]), np.maximum.reduce([part[1] for part in parts])

    def collect(self, low: Any, high: Any) -> ScoreTally:
        found = self._on_all_cores(lambda blocks: [*self._found(blocks, low, high)])
        return FoundRows.joined(list(itertools.chain.from_iterable(found))).tally()

    def require_no_nan(self) -> None:
        """Raise on NaN among the scores, saying where the first one stands."""
        require_no_nan(self.scores)

    def tally(self) -> ScoreTally:
        self.labels.check()
        self.require_no_nan()
        return tally_rows(self.scores, self.labels.is_positive(), self.weights if self.weighted else None)

    def seen(self) -> tuple[RowSample, ...]:
        if self._distinct is not None:
            return (RowSample.of_distinct(self._distinct.low, self._distinct.rows),)
        kept = positions(len(self))
        if self.weighted:
            kept = kept[self.weights[kept] > 0]
        return (RowSample.of_rows(self.scores[kept], self.labels.codes[kept] == self.labels.positive),)

    def _found(self, blocks: Iterator[slice], low: Any, high: Any) -> Iterator[FoundRows]:
        """The rows that lie in some bins (ascending), block by block."""
        ranges = KeyRanges.of(low, high)
        for block in blocks:
            found = self.kernels.inside(*self._columns(block), self.labels.positive, ranges)
            yield FoundRows(*found, self.dtype)

    def _sample(self) -> NDArray[np.float64]:
        """Some scores from all over."""
        if len(self) <= SAMPLED:
            return as_doubles(self.scores)
        return as_doubles(self.scores[_sampled(len(self))])

    def _columns(self, block: slice) -> tuple[Any, Any, Any]:
        labels = np.ascontiguousarray(self.labels.codes[block])
        weights = np.ascontiguousarray(self.weights[block]) if self.weighted else NO_WEIGHTS
        return self.kernels.column(self.scores[block]), labels, weights

    def _on_all_cores(self, work: Callable[[Iterator[slice]], Any]) -> list[Any]:
        """Run `work` on as many shares of the blocks as there are workers.

        Whoever is free takes the next block; but weights, whose sums are rounded, are added up in the same order every
        time, whether loops are compiled or not.
        """
        if self.weighted:
            number = min(self.settings.workers(self.scores.size, compiled=False), len(self))
            ends = [round(len(self) * share / number) for share in range(number + 1)]
            shares: list[Iterator[slice]] = [
                _blocks(start, end, self.rows_at_once) for start, end in itertools.pairwise(ends)
            ]
        else:
            shares = [Shared(_blocks(0, len(self), self.rows_at_once))] * self.workers
        return on_each(work, shares, self.workers)


class PooledSource(ArraySource):
    """The entries of a dense matrix as rows of one sample, all labels together.

    `require_no_nan` raises on NaN, saying where in the matrix it stands.
    """

    def __init__(
        self,
        scores: NDArray[Any],
        labels: Labels,
        weights: NDArray[np.float64] | None,
        require_no_nan: Callable[[], None],
    ) -> None:
        super().__init__(scores, labels, weights)
        self._require_no_nan = require_no_nan

    def require_no_nan(self) -> None:
        self._require_no_nan()

    @property
    def rows_at_once(self) -> int:
        return max(1, self.settings.block // int(self.scores.shape[1]))

    def tally(self) -> ScoreTally:
        weights = np.repeat(self.weights, self.scores.shape[1]) if self.weighted else None
        self.require_no_nan()
        return tally_rows(self.scores.reshape(-1), self.labels.is_positive().reshape(-1), weights)

    def _sample(self) -> NDArray[np.float64]:
        some = np.linspace(0, len(self) - 1, min(len(self), 64)).astype(np.int64)
        return as_doubles(self.scores[some][:, :: 1 + self.scores.shape[1] // 64].reshape(-1))

    def _columns(self, block: slice) -> tuple[Any, Any, Any]:
        labels = np.ascontiguousarray(self.labels.codes[block]).reshape(-1)
        weights = np.repeat(self.weights[block], self.scores.shape[1]) if self.weighted else NO_WEIGHTS
        return self.kernels.column(self.scores[block]).reshape(-1), labels, weights


@lru_cache(maxsize=16)
def _sampled(rows: int) -> NDArray[np.intp]:
    """Positions all over some rows, in runs of neighbours; few rows need fewer."""
    runs = min(64, max(16, rows >> 14))
    starts = np.arange(runs) * ((rows - 64) // (runs - 1))
    return (starts[:, None] + np.arange(64)).reshape(-1)


def _blocks(start: int, end: int, size: int) -> Iterator[slice]:
    return (slice(first, min(first + size, end)) for first in range(start, end, size))


def _agreed(found: list[NDArray[np.int64]], half: int) -> NDArray[np.int64]:
    """What shares of the rows found to be the only score of each bin, put together; the bins about zero are one."""

    def both(one: Any, other: Any) -> Any:
        return np.where(one == NONE, other, np.where((one == other) | (other == NONE), one, SEVERAL))

    only = functools.reduce(both, found)
    below_zero = 0 if only[half - 1] == MINUS_ZERO else only[half - 1]
    only[half] = both(only[half], below_zero)
    return only
