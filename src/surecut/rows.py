"""Rows of scores, labels and weights in arrays, read block by block by the kernels, on all cores."""

from __future__ import annotations

import functools
import itertools
import operator
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from surecut import _kernels
from surecut._inputs import Labels, as_doubles, require_no_nan
from surecut._kernels import NO_BINS, NONE, SEVERAL, are_tied, first_bins, ordered_keys, scores_of_keys
from surecut.tally import ScoreTally, tally_keys, tally_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut._kernels import Kernels

BLOCK = 1 << 17
"""Rows that a kernel reads at once: small enough that converted scores stay in cache, and Ctrl-C is heard."""

ROWS_PER_WORKER = 1 << 19
"""Fewer rows are not worth another thread."""

NO_WEIGHTS = np.empty(0)

MINUS_ZERO = np.array(-0.0).view(np.int64)


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

    def __getitem__(self, index: Any) -> Counts:
        rows = self.rows[index]
        return Counts(rows, rows if self.weight is self.rows else self.weight[index])

    def __add__(self, other: Counts) -> Counts:
        rows = self.rows + other.rows
        return Counts(rows, rows if self.weight is self.rows else self.weight + other.weight)


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

    def count(self, low: Any, high: Any, shift: Any) -> Counts:
        """Counts of bins (ascending), each divided into parts of 2**shift keys, part after part."""

    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The smallest and the largest key in each of some bins (ascending)."""

    def collect(self, low: Any, high: Any) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""

    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""


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
        threaded = not isinstance(kernels, _kernels.NumpyKernels)  # NumPy's counting holds the interpreter's lock
        workers = min(available_cores(), 1 + len(scores) // ROWS_PER_WORKER) if threaded else 1
        return cls(scores, labels, NO_WEIGHTS if weights is None else weights, kernels, workers)

    @property
    def weighted(self) -> bool:
        return len(self.weights) > 0

    @property
    def rows_at_once(self) -> int:
        """Rows in a block."""
        return BLOCK

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scores.dtype

    def __len__(self) -> int:
        return len(self.scores)

    def histogram(self) -> Histogram:
        """All rows, counted in bins that suit them. Checks labels and scores.

        Where scores are tied, the first look tells those that have a bin of their own: such a bin's ends are its score.
        """
        sample = self._sample()
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
        counts = functools.reduce(operator.add, [part[0] for part in parts])
        counts.move(int(bins.half) - 1, int(bins.half))
        occupied = np.flatnonzero(counts.rows[:, 0] | counts.rows[:, 1])[::-1]
        low, high = bins.ends(occupied)
        if tied:
            score = _agreed([part[1] for part in parts], int(bins.half))[occupied].view(np.float64)
            alone = ~np.isnan(score)
            low[alone] = high[alone] = ordered_keys(score[alone])
        return Histogram(low, high, counts[occupied].widened(), sum(part[4] for part in parts) % 2**64)

    def count(self, low: Any, high: Any, shift: Any) -> Counts:
        """Counts of bins (ascending), each divided into parts of 2**shift keys, part after part."""
        parts_of_bin = ((high - low) >> shift).astype(np.int64) + 1
        offset = np.concatenate(([0], np.cumsum(parts_of_bin)[:-1]))

        def work(blocks: Iterator[slice]) -> Counts:
            counts = Counts.zeros(int(parts_of_bin.sum()), self.weighted)
            for block in blocks:
                self.kernels.count(
                    *self._columns(block), self.labels.positive, (low, high, shift, offset), counts.rows, counts.weight
                )
            return counts

        counts: Counts = functools.reduce(operator.add, self._on_all_cores(work))
        return counts

    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The smallest and the largest key in each of some bins (ascending)."""

        def work(blocks: Iterator[slice]) -> tuple[Any, Any]:
            smallest, largest = high.copy(), low.copy()
            for block in blocks:
                bits, _, weights = self._columns(block)
                self.kernels.extent(bits, weights, low, high, smallest, largest)
            return smallest, largest

        parts = self._on_all_cores(work)
        return np.minimum.reduce([part[0] for part in parts]), np.maximum.reduce([part[1] for part in parts])

    def collect(self, low: Any, high: Any) -> ScoreTally:
        """The tally of the rows that lie in some bins (ascending)."""
        keys, is_positive, weights = self._selected(low, high)
        return tally_keys(keys, is_positive, weights if self.weighted else None, self.scores.dtype)

    def near(self, low: Any, high: Any) -> ArrayRows:
        """The rows that lie in some bins (ascending), as a source of their own."""
        keys, is_positive, weights = self._selected(low, high)
        return ArrayRows(scores_of_keys(keys), Labels(is_positive, True, False), weights, self.kernels, workers=1)

    def _selected(self, low: Any, high: Any) -> tuple[Any, Any, Any]:
        low, high = joined_ranges(low, high)

        def work(blocks: Iterator[slice]) -> list[tuple[Any, Any, Any]]:
            found = []
            out = (np.empty(0, np.uint64), np.empty(0, np.bool_), NO_WEIGHTS)
            for block in blocks:
                bits, labels, weights = self._columns(block)
                if len(bits) > len(out[0]):  # at the first block
                    out = (np.empty(len(bits), np.uint64), np.empty(len(bits), np.bool_), np.empty(len(weights)))
                n = self.kernels.select(bits, labels, weights, self.labels.positive, low, high, out)
                found.append((out[0][:n].copy(), out[1][:n].copy(), out[2][:n].copy()))
            return found

        found = [columns for part in self._on_all_cores(work) for columns in part]
        keys, is_positive, weights = (np.concatenate(column) for column in zip(*found, strict=True))
        return keys, is_positive, weights

    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""
        return tally_rows(self.scores, self.labels.is_positive(), self.weights if self.weighted else None)

    def _sample(self) -> NDArray[np.float64]:
        """Some scores from all over."""
        starts = np.linspace(0, len(self) - 64, 64).astype(np.int64) if len(self) > 4096 else [0]
        return as_doubles(np.concatenate([self.scores[start : start + 64] for start in starts]))

    def _columns(self, block: slice) -> tuple[Any, Any, Any]:
        scores = as_doubles(self.scores[block])
        labels = np.ascontiguousarray(self.labels.codes[block])
        weights = np.ascontiguousarray(self.weights[block]) if self.weighted else NO_WEIGHTS
        return scores.view(np.int64), labels, weights

    def _on_all_cores(self, work: Callable[[Iterator[slice]], Any]) -> list[Any]:
        """Run `work` on as many shares of the blocks as there are workers.

        The pool lives as long as the call, so that neither a fork nor another thread meets it half-used.
        """
        ends = [round(len(self) * share / self.workers) for share in range(self.workers + 1)]
        shares = [_blocks(start, end, self.rows_at_once) for start, end in itertools.pairwise(ends)]
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
        threaded = not isinstance(kernels, _kernels.NumpyKernels)
        workers = min(available_cores(), 1 + entries // ROWS_PER_WORKER) if threaded else 1
        return cls(scores, labels, NO_WEIGHTS if weights is None else weights, kernels, min(workers, len(scores)))

    @property
    def rows_at_once(self) -> int:
        return max(1, BLOCK // int(self.scores.shape[1]))

    def tally(self) -> ScoreTally:
        weights = np.repeat(self.weights, self.scores.shape[1]) if self.weighted else None
        return tally_rows(self.scores.reshape(-1), self.labels.is_positive().reshape(-1), weights)

    def _sample(self) -> NDArray[np.float64]:
        some = np.linspace(0, len(self) - 1, min(len(self), 64)).astype(np.int64)
        return as_doubles(self.scores[some][:, :: 1 + self.scores.shape[1] // 64].reshape(-1))

    def _columns(self, block: slice) -> tuple[Any, Any, Any]:
        scores = as_doubles(self.scores[block]).reshape(-1)
        labels = np.ascontiguousarray(self.labels.codes[block]).reshape(-1)
        weights = np.repeat(self.weights[block], self.scores.shape[1]) if self.weighted else NO_WEIGHTS
        return scores.view(np.int64), labels, weights


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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


def joined_ranges(low: NDArray[np.uint64], high: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Ranges of keys, with those that touch made one."""
    apart = high[:-1] + np.uint64(1) != low[1:]
    return low[np.concatenate(([True], apart))], high[np.concatenate((apart, [True]))]
