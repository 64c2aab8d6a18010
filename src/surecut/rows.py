"""Rows of scores, labels and weights in arrays, read block by block by the kernels, on all cores."""

from __future__ import annotations

import functools
import itertools
import operator
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from surecut import _kernels
from surecut._inputs import Labels, as_doubles, require_no_nan
from surecut._kernels import NO_BINS, NONE, SEVERAL, KeyRanges, add_counts, are_tied, first_bins, ordered_keys
from surecut.counts import Counts, Parts, range_of
from surecut.overlap import RowSample, positions
from surecut.tally import ScoreTally, tally_keys, tally_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut._kernels import Kernels

BLOCK = 1 << 17
"""Rows that a kernel reads at once: so few that converted scores stay in cache."""

BLOCKS_AT_ONCE = 4
"""So many blocks are read as one where nothing has to be converted. Ctrl-C is still heard."""

ROWS_PER_WORKER = 1 << 19
"""Fewer rows are not worth another thread."""

NO_WEIGHTS = np.empty(0)

MINUS_ZERO = np.array(-0.0).view(np.int64)


class Histogram(NamedTuple):
    """Occupied bins, descending: lowest and highest key, counts; and the checksum of all rows."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    counts: Counts
    checksum: int


class SourceChangedError(RuntimeError):
    """Two passes over the rows found different rows."""

    def __init__(self) -> None:
        super().__init__(
            "the rows changed between two passes over them: the source is being written to, or it is not deterministic "
            "(random numbers, a model that is scored lazily); persist it first (cache it, or write it to a file), and "
            "tune on that"
        )


class Rows(Protocol):
    """What a search asks of its source; every call is a pass over the rows."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The scores' own dtype, in which thresholds are put."""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""

    def histogram(self) -> Histogram:
        """All rows, counted in bins that suit them. Checks labels, scores and weights."""

    def count(self, parts: Parts) -> Counts:
        """Counts of bins that are divided, by part."""

    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The smallest and the largest key in each of some bins (ascending)."""

    def collect(self, low: Any, high: Any) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""

    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""

    def seen(self) -> tuple[RowSample, ...]:
        """Some rows, to recognise them by; asked for after `histogram`."""


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
        add_counts(parts.holding(self.keys), self.is_positive, self.weights, counts.rows, counts.weight)

    def extend(self, low: Any, high: Any, smallest: Any, largest: Any) -> None:
        """Lower `smallest` and raise `largest` to the keys found in each of some bins (ascending)."""
        keys = np.sort(self.keys)
        first, last = np.searchsorted(keys, low), np.searchsorted(keys, high, side="right") - 1
        found = first <= last
        smallest[found] = np.minimum(smallest[found], keys[first[found]])
        largest[found] = np.maximum(largest[found], keys[last[found]])

    def tally(self) -> ScoreTally:
        """The rows by distinct score."""
        return tally_keys(self.keys, self.is_positive, self.weights if len(self.weights) else None, self.dtype)


class NearRows(NamedTuple):
    """The rows that a pass found in bins that are divided, counted by part.

    They are kept in the pieces that they were found in, which are small enough to stay in cache.
    """

    pieces: list[FoundRows]
    counts: Counts

    def collect(self, low: Any, high: Any) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""
        return FoundRows.joined([piece.within(low, high) for piece in self.pieces]).tally()


@dataclass(frozen=True)
class ArrayRows:
    """The source of a search: three columns in memory."""

    scores: NDArray[Any]
    labels: Labels
    weights: NDArray[np.float64]
    kernels: Kernels
    workers: int

    @classmethod
    def of(cls, scores: NDArray[Any], labels: Labels, weights: NDArray[np.float64] | None) -> ArrayRows:
        kernels = _kernels.available(len(scores))
        workers = min(available_cores(), 1 + len(scores) // ROWS_PER_WORKER)
        return cls(scores, labels, NO_WEIGHTS if weights is None else weights, kernels, workers)

    @property
    def weighted(self) -> bool:
        return len(self.weights) > 0

    @property
    def rows_at_once(self) -> int:
        """Rows in a block."""
        as_they_are = self.kernels.reads_once and self.scores.dtype == np.float64 and self.scores.flags.c_contiguous
        return BLOCK * BLOCKS_AT_ONCE if as_they_are else BLOCK

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scores.dtype

    def __len__(self) -> int:
        return len(self.scores)

    def histogram(self) -> Histogram:
        """All rows, counted in bins that suit them. Checks labels and scores.

        Where scores are tied, the first look tells those that have a bin of their own: such a bin's ends are its score.
        """
        sample = np.sort(self._sample())
        bins = first_bins(sample)
        tied = are_tied(sample)
        small = np.int32 if self.scores.size < 2**31 else np.int64  # what is small stays in cache

        def work(blocks: Iterator[slice]) -> tuple[Counts, Any, int, int, int]:
            counts = Counts.zeros(2 * int(bins.half), self.weighted, small)
            only = np.full(2 * int(bins.half), NONE) if tied else NO_BINS
            strangers = nans = checksum = 0
            classes = self.labels.positive, self.labels.negative
            for block in blocks:
                found = self.kernels.histogram(*self._columns(block), *classes, bins, counts.rows, counts.weight, only)
                strangers, nans, checksum = strangers + found[0], nans + found[1], checksum + int(found[2])
            return counts, only, strangers, nans, checksum

        parts = self._on_all_cores(work)
        if any(part[2] for part in parts):
            self.labels.check()
        if any(part[3] for part in parts):
            require_no_nan(self.scores)
        counts = functools.reduce(operator.iadd, [part[0] for part in parts])
        counts.move(int(bins.half) - 1, int(bins.half))
        occupied = counts.occupied[::-1]
        low, high = bins.ends(occupied)
        if tied:
            score = _agreed([part[1] for part in parts], int(bins.half))[occupied].view(np.float64)
            alone = ~np.isnan(score)
            low[alone] = high[alone] = ordered_keys(score[alone])
        return Histogram(low, high, counts[occupied].widened(), sum(part[4] for part in parts) % 2**64)

    def count(self, parts: Parts) -> Counts:
        """Counts of bins that are divided, by part."""

        def work(blocks: Iterator[slice]) -> Counts:
            counts = Counts.zeros(parts.total, self.weighted)
            for found in self._found(blocks, parts.low, parts.high):
                found.add_to(counts, parts)
            return counts

        counts: Counts = functools.reduce(operator.iadd, self._on_all_cores(work))
        return counts

    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The smallest and the largest key in each of some bins (ascending)."""

        def work(blocks: Iterator[slice]) -> tuple[Any, Any]:
            smallest, largest = high.copy(), low.copy()
            for found in self._found(blocks, low, high):
                found.extend(low, high, smallest, largest)
            return smallest, largest

        parts = self._on_all_cores(work)
        return np.minimum.reduce([part[0] for part in parts]), np.maximum.reduce([part[1] for part in parts])

    def collect(self, low: Any, high: Any) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""
        found = self._on_all_cores(lambda blocks: [*self._found(blocks, low, high)])
        return FoundRows.joined(list(itertools.chain.from_iterable(found))).tally()

    def near(self, parts: Parts) -> NearRows:
        """The rows that lie in bins that are divided, and their counts by part."""

        def work(blocks: Iterator[slice]) -> tuple[list[FoundRows], Counts]:
            pieces, counts = [], Counts.zeros(parts.total, self.weighted)
            for found in self._found(blocks, parts.low, parts.high):
                found.add_to(counts, parts)
                pieces.append(found)
            return pieces, counts

        pieces, counts = zip(*self._on_all_cores(work), strict=True)
        return NearRows(list(itertools.chain.from_iterable(pieces)), functools.reduce(operator.iadd, counts))

    def _found(self, blocks: Iterator[slice], low: Any, high: Any) -> Iterator[FoundRows]:
        """The rows that lie in some bins (ascending), block by block."""
        ranges = KeyRanges.of(low, high)
        for block in blocks:
            found = self.kernels.inside(*self._columns(block), self.labels.positive, ranges)
            yield FoundRows(*found, self.dtype)

    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""
        return tally_rows(self.scores, self.labels.is_positive(), self.weights if self.weighted else None)

    def seen(self) -> tuple[RowSample, ...]:
        """Some rows, to recognise them by."""
        kept = positions(len(self))
        if self.weighted:
            kept = kept[self.weights[kept] > 0]
        return (RowSample.of_rows(self.scores[kept], self.labels.codes[kept] == self.labels.positive),)

    def _sample(self) -> NDArray[np.float64]:
        """Some scores from all over."""
        starts = np.linspace(0, len(self) - 64, 64).astype(np.int64) if len(self) > 4096 else [0]
        return as_doubles(np.concatenate([self.scores[start : start + 64] for start in starts]))

    def _columns(self, block: slice) -> tuple[Any, Any, Any]:
        scores = self.kernels.doubles(self.scores[block])
        labels = np.ascontiguousarray(self.labels.codes[block])
        weights = np.ascontiguousarray(self.weights[block]) if self.weighted else NO_WEIGHTS
        return scores.view(np.int64), labels, weights

    def _on_all_cores(self, work: Callable[[Iterator[slice]], Any]) -> list[Any]:
        """Run `work` on as many shares of the blocks as there are workers.

        Whoever is free takes the next block; but weights, whose sums are rounded, are added up in the same order every
        time. The pool lives as long as the call, so that neither a fork nor another thread meets it half-used.
        """
        if self.weighted:
            ends = [round(len(self) * share / self.workers) for share in range(self.workers + 1)]
            shares = [_blocks(start, end, self.rows_at_once) for start, end in itertools.pairwise(ends)]
        else:
            shares = [Shared(_blocks(0, len(self), self.rows_at_once))] * self.workers
        if self.workers == 1:
            return [work(shares[0])]
        with ThreadPoolExecutor(self.workers - 1) as pool:
            others = [pool.submit(work, share) for share in shares[1:]]
            return [work(shares[0]), *(other.result() for other in others)]


@dataclass(frozen=True)
class MatrixRows(ArrayRows):
    """The entries of a matrix of scores as rows, all labels in one: the source of a micro-averaged search."""

    @classmethod
    def of(cls, scores: NDArray[Any], labels: Labels, weights: NDArray[np.float64] | None) -> MatrixRows:
        entries = scores.size
        kernels = _kernels.available(entries)
        workers = min(available_cores(), 1 + entries // ROWS_PER_WORKER, len(scores))
        return cls(scores, labels, NO_WEIGHTS if weights is None else weights, kernels, workers)

    @property
    def rows_at_once(self) -> int:
        return max(1, BLOCK // int(self.scores.shape[1]))

    def tally(self) -> ScoreTally:
        weights = np.repeat(self.weights, self.scores.shape[1]) if self.weighted else None
        return tally_rows(self.scores.reshape(-1), self.labels.is_positive().reshape(-1), weights)

    def seen(self) -> tuple[RowSample, ...]:
        return ()  # rows of many labels are recognised label by label

    def _sample(self) -> NDArray[np.float64]:
        some = np.linspace(0, len(self) - 1, min(len(self), 64)).astype(np.int64)
        return as_doubles(self.scores[some][:, :: 1 + self.scores.shape[1] // 64].reshape(-1))

    def _columns(self, block: slice) -> tuple[Any, Any, Any]:
        scores = self.kernels.doubles(self.scores[block]).reshape(-1)
        labels = np.ascontiguousarray(self.labels.codes[block]).reshape(-1)
        weights = np.repeat(self.weights[block], self.scores.shape[1]) if self.weighted else NO_WEIGHTS
        return scores.view(np.int64), labels, weights


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Shared(Iterator[slice]):
    """Blocks of which every thread may take the next one."""

    def __init__(self, blocks: Iterator[slice]) -> None:
        self._blocks = blocks
        self._lock = threading.Lock()

    def __next__(self) -> slice:
        with self._lock:
            return next(self._blocks)


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
