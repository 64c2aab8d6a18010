"""The few hot loops, each in NumPy (the reference and the fallback) and, where numba is installed, compiled.

Scores are handled as *keys*: unsigned integers in the order of the floats. −0 counts as +0, and +inf as the largest
finite float, because a threshold of +inf means *predict nothing*. A bin of scores is a range of keys. The first bins
are made of leading bits, so that their widths grow with the scores: outliers, denormals and infinities fall into
place without a look at the range.

All kernels take one block of rows and add what they find to arrays of the caller's. `bits` is the block's float64
scores seen as int64, or its float32 scores as they are: `Kernels.column` gives either. `weights` is empty where rows
are not weighted; rows of weight zero count as absent. Those for columns of a matrix exist compiled only: without them,
column after column is copied, and is a block.
"""

from __future__ import annotations

import importlib.util
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._inputs import as_doubles
from surecut.core.counts import NO_MARKS, Counts, range_of
from surecut.core.keys import (
    CLASS_BIT,
    INF,
    KEY_OF_INFINITY,
    KEY_OF_MINUS_INFINITY,
    KEY_OF_MINUS_ZERO,
    LARGEST,
    LARGEST_FINITE,
    MAGNITUDE,
    SIGN,
    SIGN_SHIFT,
    checksum,
    key_marks,
    ordered_keys,
    reaches,
    row_marks,
    scores_of_keys,
)
from surecut.core.threads import Background

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.settings import Settings
    from surecut.metrics import WholeRatio

NONE, SEVERAL = np.int64(-1), np.int64(-2)
"""Bits of no score (they are NaNs), that say of a bin: no score was seen in it, or more than one."""

NO_BINS = np.empty(0, dtype=np.int64)

LOOSE = 4
"""Where all ranges together are so many times narrower than what lies between their ends, they lie far apart."""

CELL_BITS = 13
"""2**CELL_BITS cells at most, of a byte each, stay in the first cache."""

ROWS_OF_A_CALL = 10_000
"""Rows that NumPy reads in the time that a call takes anyway."""


class SortedRows(NamedTuple):
    """Distinct keys, descending, and their rows by class; and what a pass over the rows has found.

    The pass finds the number of positives, of labels that are neither of the two, of NaNs, and the checksum.
    """

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    positives: int
    invalid: int
    nans: int
    checksum: int


class RowsAt(NamedTuple):
    """What a pass over the rows has found at a threshold.

    Numbers of rows: positives that reach it, all that do, all positives, labels that are neither of the two, and NaNs;
    and the checksum.
    """

    tp: int
    accepted: int
    positives: int
    invalid: int
    nans: int
    checksum: int


class SortedColumns(NamedTuple):
    """Rows of some columns of a matrix, each a sample, sorted.

    Attributes
    ----------
    codes
        Shape (columns, rows), ascending: keys, less the column's `lowest`, with the class as last bit. Keys above
        `below_gap` are less by `gap`. None where codes take more than 64 bits.
    lowest, below_gap, gap, positives, checksums
        Of each column.
    nans
        The number of NaNs.
    """

    codes: NDArray[np.uint64] | None
    lowest: NDArray[np.uint64]
    below_gap: NDArray[np.uint64]
    gap: NDArray[np.uint64]
    positives: NDArray[np.int64]
    nans: int
    checksums: NDArray[np.uint64]

    def scores(self, which: NDArray[np.int64]) -> NDArray[np.float64]:
        """A score of each column, by its rank."""
        assert self.codes is not None
        keys = (self.codes[np.arange(len(which)), which] >> np.uint64(1)) + self.lowest
        return scores_of_keys(keys + np.where(keys > self.below_gap, self.gap, np.uint64(0)))


class BestEdges(NamedTuple):
    """The winning edge of each of some samples.

    Attributes
    ----------
    below, tp
        Rows below it, and positives above it.
    value
        Its value; −inf where no edge has one.
    lower, upper
        The scores on both sides of it; beyond the last one, the last one.
    """

    below: NDArray[np.int64]
    tp: NDArray[np.int64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class BinnedRows(NamedTuple):
    """Rows of some columns of a matrix, each a sample, in bins.

    Attributes
    ----------
    places
        Shape (columns, rows): twice the bin of each row, and 1 more if it is positive.
    counts
        Shape (columns, bins, 2), negatives first.
    nans
        The number of NaNs.
    checksums
        Of each column.
    """

    places: NDArray[np.uint16]
    counts: NDArray[np.int32]
    nans: int
    checksums: NDArray[np.uint64]


class FirstBins(NamedTuple):
    """Bins by leading bits, over a window of magnitudes; what is smaller or larger goes to the window's end bins.

    A score with the bits of its magnitude in m is in bin ``half + j`` if positive and ``half - 1 - j`` if negative,
    j = (clip(m, smallest, largest) - smallest) >> shift. The bins on both sides of zero are one, `half`.
    """

    smallest: Any
    largest: Any
    shift: Any
    half: Any

    def ends(self, which: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Lowest and highest key of some bins, where `half` stands for both bins beside zero.

        The fields may be arrays as long as `which`: bins of several kinds, one after the other.
        """
        steps = np.abs(which - self.half)
        np.maximum(steps, 1, out=steps)
        steps <<= self.shift
        steps += self.smallest
        distance = steps.view(np.uint64)
        low = SIGN - distance
        np.add(SIGN, distance, out=low, where=which > self.half)
        high = low + ((np.uint64(1) << self.shift.astype(np.uint64)) - np.uint64(1))
        np.add(SIGN - np.uint64(1), distance, out=high, where=which == self.half)
        lowest, highest = np.where(self.half > 1, 0, self.half), 2 * self.half - 1
        low[which == lowest], high[which == highest] = KEY_OF_MINUS_INFINITY, KEY_OF_INFINITY - np.uint64(1)
        return low, high


class OccupiedBins(NamedTuple):
    """First bins in which there are rows, descending: their numbers, lowest and highest keys, and counts of 64 bits."""

    number: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    counts: Counts


def first_bins(ordered: NDArray[np.float64], bits: int = 15) -> FirstBins:
    """Bins that suit the scores of a sample (ascending), about 2**bits of each sign. Any sample gives right answers.

    The window leaves out the sample's extremes, which would make it wide. Tied scores have no long tails, and should
    have a bin each: their window holds them all, down to a first bin for zero.
    """
    signs = 2 if ordered[0] < 0 < ordered[-1] else 1
    magnitude = np.minimum(ordered.view(np.int64) & MAGNITUDE, LARGEST_FINITE)
    if ordered[0] < 0:
        magnitude.sort()
    tied = are_tied(ordered)
    trimmed = 0 if tied else len(magnitude) // 1024
    if tied and magnitude[-1] > 0:
        magnitude = magnitude[magnitude > 0]
    smallest, largest = int(magnitude[trimmed]), int(magnitude[-1 - trimmed])
    shift = max(0, (largest - smallest).bit_length() - (bits - signs + 1))
    smallest = max(0, smallest - (1 << shift)) if tied else smallest
    half = ((largest - smallest) >> shift) + 1
    return FirstBins(np.int64(smallest), np.int64(largest), np.int64(shift), np.int64(half))


def are_tied(ordered: NDArray[np.float64]) -> bool:
    """Whether so many scores of a sample (ascending) are equal that few bins will hold more than one.

    >>> are_tied(np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.3])), are_tied(np.array([0.1, 0.2, 0.3, 0.4]))
    (True, False)
    """
    return bool(2 * np.count_nonzero(ordered[1:] == ordered[:-1]) >= len(ordered))


class Buffers(threading.local):
    """Arrays that serve block after block and call after call, in each thread its own.

    Memory that is new to a process costs more than the work that is done in it.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, size: int, dtype: Any) -> NDArray[Any]:
        """An array to write to; what it holds is what was last written to it."""
        array = self._arrays.get(name)
        if array is None or len(array) < size or array.dtype != dtype:
            array = self._arrays[name] = np.empty(size, dtype=dtype)
        return array[:size]


class Kernels(ABC):
    """The loops that read every row of a block.

    `reads_once` says whether they look at a row once, so that blocks need not stay in cache.
    """

    reads_once: bool
    buffers = Buffers()
    """Of all kernels: what a call has written to them, no later one needs."""

    def doubles(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Scores as float64 without gaps; converted ones stand in this thread's buffer until it converts others."""
        if scores.dtype == np.float64:
            return np.ascontiguousarray(scores)
        return as_doubles(scores, self.buffers.array("doubles", scores.size, np.float64).reshape(scores.shape))

    def column(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Scores as kernels take them: float32 as they are, others as float64 seen as int64."""
        return np.ascontiguousarray(scores) if scores.dtype == np.float32 else self.doubles(scores).view(np.int64)

    def bits_of(self, column: NDArray[Any]) -> NDArray[np.int64]:
        """What `column` gave as float64 seen as int64."""
        return column if column.dtype == np.int64 else self.doubles(column).view(np.int64)

    @abstractmethod
    def histogram(
        self,
        bits: Any,
        labels: Any,
        weights: Any,
        positive: Any,
        negative: Any,
        bins: FirstBins,
        rows: Any,
        sums: Any,
        only: Any = NO_BINS,
        marks: Any = NO_MARKS,
    ) -> tuple[int, int, int]:
        """Count every row by bin and class; return how many labels are neither of the two, the NaNs, the checksum.

        `only`, where it is not empty, says of each bin which one score was seen in it: its bits, `NONE` or `SEVERAL`.
        To `marks`, where they are not empty, what names the rows of each bin is added: `key_marks`.
        """

    def occupied(self, counts: Counts, bins: FirstBins) -> OccupiedBins:
        """The bins in which there are rows; the two beside zero are made one in `counts`."""
        counts.move(int(bins.half) - 1, int(bins.half))
        number = counts.occupied[::-1]
        return OccupiedBins(number, *bins.ends(number), counts[number].widened())

    @abstractmethod
    def sorted_rows(self, bits: Any, labels: Any, positive: Any, negative: Any) -> SortedRows:
        """Rows without weights by distinct score."""

    @abstractmethod
    def inside(self, bits: Any, labels: Any, weights: Any, positive: Any, ranges: KeyRanges) -> tuple[Any, Any, Any]:
        """Key, class and weight of the rows that lie in some ranges of keys."""

    @abstractmethod
    def positions(self, run: Any, free: Any, ends: Any) -> Any:
        """Where to put rows so that those of a run stand together; `run` is the number of each row's.

        `free` is the next free position of each run, and moved on; `ends` is where each run ends. None where rows are
        more than a run has positions for.
        """

    @abstractmethod
    def count_at(self, bits: Any, labels: Any, positive: Any, negative: Any, threshold: float) -> RowsAt:
        """Count the rows that reach a threshold; `bits` are those of float64 scores."""

    @abstractmethod
    def flagged(self, bits: Any, flags: NDArray[np.bool_], shift: np.int64) -> NDArray[np.int64]:
        """Positions of the rows whose bits above the lowest ones, as many as `shift`, are flagged.

        The bits are those of float64 scores. There is a flag for each number that the leading ones can be; those of
        negative scores count from the end.
        """

    def sorts_columns(self, scores: NDArray[Any], truth: NDArray[Any]) -> bool:
        """Whether `sorted_columns` and `best_edges` are there for these matrices; without them `rules` judges."""
        return False

    def sorted_columns(self, scores: NDArray[Any], truth: NDArray[Any], labels: slice) -> SortedColumns:
        """The rows of some columns, in this thread's buffer until it sorts others; `truth` holds 0 and 1."""
        raise NotImplementedError

    def best_edges(self, columns: SortedColumns, ratio: WholeRatio, needs: tuple[bool, bool], tie: float) -> BestEdges:
        """What `rules.judge` finds of a ratio of whole numbers that can be bounded."""
        raise NotImplementedError

    def bins_columns(self, scores: NDArray[Any], truth: NDArray[Any]) -> bool:
        """Whether `binned_columns` and `collected_columns` are there for these matrices; else columns are copied."""
        return False

    def binned_columns(
        self, scores: NDArray[Any], truth: NDArray[Any], labels: slice, bins: NDArray[np.int64], width: int
    ) -> BinnedRows:
        """Count the rows of some columns in `width` bins of their own, `bins`.

        Places are in this thread's buffer until it counts others; `truth` holds 0 and 1.
        """
        raise NotImplementedError

    def collected_columns(
        self,
        scores: NDArray[Any],
        labels: slice,
        places: NDArray[np.uint16],
        entry: NDArray[np.int32],
        ends: NDArray[np.uint16],
        starts: NDArray[np.int64],
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Key and class of the rows in some bins: those of an entry together, from its place in `starts` on.

        `entry` is by column and bin the entry it belongs to, or −1; `ends` are by column the lowest and the highest
        place of its entries, or (1, 0) where it has none.
        """
        raise NotImplementedError


class KeyCells(NamedTuple):
    """Equal cells of keys from `base` on, 2**shift wide, that tell quickly in which of some ranges a key is, if in any.

    Attributes
    ----------
    is_hit
        Whether a cell holds a part of a range; the last one stands for all keys outside.
    first
        The first range that may hold a key of the cell.
    """

    is_hit: NDArray[np.bool_]
    first: NDArray[np.int64]
    base: np.uint64
    shift: np.uint64

    @classmethod
    def of(cls, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> KeyCells:
        base = low[0]
        shift = np.uint64(max(0, int(high[-1] - base).bit_length() - CELL_BITS))
        begun, ended = np.zeros((2, int((high[-1] - base) >> shift) + 2), dtype=np.int64)
        np.add.at(begun, ((low - base) >> shift).view(np.int64), 1)
        np.add.at(ended, ((high - base) >> shift).view(np.int64) + 1, 1)
        first = np.cumsum(ended)
        return cls(np.cumsum(begun) > first, first, base, shift)


class KeyRanges(NamedTuple):
    """Some ranges of keys (ascending, ends inclusive, none touches another), and the scores between which they lie.

    Scores can be compared with `lowest` and `highest` before they have keys. Where ranges lie far apart, there are
    `cells`. No score has the key of −0; the last key stands for +inf.
    """

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    lowest: np.float64
    highest: np.float64
    cells: KeyCells | None

    @classmethod
    def of(cls, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> KeyRanges:
        """Ranges, with those that touch made one."""
        if len(low) > 1:
            apart = high[:-1] + np.uint64(1) != low[1:]
            low, high = low[np.concatenate(([True], apart))], high[np.concatenate((apart, [True]))]
        ends = np.array([low[0], high[-1] - np.uint64(high[-1] == KEY_OF_MINUS_ZERO)])
        lowest, highest = scores_of_keys(ends)
        low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        width = (high - low).sum(dtype=np.float64) + len(low)
        cells = KeyCells.of(low, high) if len(low) > 1 and float(high[-1] - low[0]) > LOOSE * width else None
        return cls(low, high, lowest, INF if highest == LARGEST else highest, cells)

    def singles(self) -> tuple[np.float32, np.float32]:
        """Lowest and highest float32 score between the ends; +inf counts as the largest other one.

        >>> KeyRanges.of(*ordered_keys(np.array([[0.1], [0.5]]))).singles()
        (np.float32(0.1), np.float32(0.5))
        """
        with np.errstate(over="ignore"):
            low, high = np.float32(self.lowest), np.float32(self.highest)
        low = low if low >= self.lowest else np.nextafter(low, np.float32(np.inf))
        high = high if high <= self.highest else np.nextafter(high, np.float32(-np.inf))
        if low == np.inf:  # above all of them
            return np.float32(np.nan), np.float32(np.nan)
        return low, np.float32(np.inf) if high == np.finfo(np.float32).max else high


class NumpyKernels(Kernels):
    """The kernels in NumPy."""

    reads_once = False

    def histogram(
        self,
        bits: Any,
        labels: Any,
        weights: Any,
        positive: Any,
        negative: Any,
        bins: FirstBins,
        rows: Any,
        sums: Any,
        only: Any = NO_BINS,
        marks: Any = NO_MARKS,
    ) -> tuple[int, int, int]:
        bits, is_positive = self.bits_of(bits), labels == positive
        invalid = len(labels) - int(np.count_nonzero(is_positive))
        if negative != positive:
            invalid -= int(np.count_nonzero(labels == negative))
        nans = int(np.count_nonzero(np.isnan(bits.view(np.float64))))
        if len(weights):
            bits, is_positive, weights = _drop_absent(weights, bits, is_positive)
        part, other, classes = (self.buffers.array(name, len(bits), np.int64) for name in ("part", "other", "classes"))
        np.copyto(classes, is_positive)
        has_signs = bits.min(initial=0) < 0
        magnitude = np.bitwise_and(bits, MAGNITUDE, out=part) if has_signs else bits
        np.clip(magnitude, bins.smallest, bins.largest, out=part)
        part -= bins.smallest
        part >>= bins.shift
        if has_signs:
            part ^= np.right_shift(bits, SIGN_SHIFT, out=other)
        part += bins.half
        if len(only):
            _note_scores(part, bits, only, other)
        if len(marks):
            np.add.at(marks, part, key_marks(ordered_keys(bits.view(np.float64)), is_positive, weights))
        add_counts(part, classes, weights, rows, sums)
        return invalid, nans, int(row_marks(bits, classes, (part, other)).sum(dtype=np.uint64))

    def sorted_rows(self, bits: Any, labels: Any, positive: Any, negative: Any) -> SortedRows:
        is_positive = labels == positive
        valid = positives = int(np.count_nonzero(is_positive))
        if negative != positive:
            valid += int(np.count_nonzero(labels == negative))
        nans = np.count_nonzero(np.isnan(bits.view(np.float64)))
        keys, rows = distinct(*sorted_with_class(ordered_keys(bits.view(np.float64)), is_positive))
        return SortedRows(keys, rows, positives, len(labels) - valid, int(nans), checksum(bits, is_positive))

    def inside(self, bits: Any, labels: Any, weights: Any, positive: Any, ranges: KeyRanges) -> tuple[Any, Any, Any]:
        scores, (low, high, lowest, highest, *_) = self.bits_of(bits).view(np.float64), ranges
        where = np.flatnonzero((scores >= lowest) & (scores <= highest))
        if len(weights):
            where = where[weights[where] > 0]
        keys = ordered_keys(scores[where])
        if len(low) > 1:
            among = keys <= high[range_of(keys, low)]
            where, keys = where[among], keys[among]
        return keys, np.asarray(labels[where] == positive), weights[where] if len(weights) else weights

    def positions(self, run: Any, free: Any, ends: Any) -> Any:
        bits = len(run).bit_length()
        small = len(free) << bits <= 2**32
        order: NDArray[Any] = run.astype(np.uint32 if small else np.uint64)
        order <<= bits
        order |= np.arange(len(run), dtype=order.dtype)
        order.sort()  # plain integers are sorted several times faster than positions by their run
        ordered = (order >> bits).astype(np.intp)
        order &= (1 << bits) - 1
        firsts = run_starts(ordered)
        sizes = np.diff(firsts, append=len(run))
        present = ordered[firsts]
        begin = free[present]
        free[present] = begin + sizes
        if (begin + sizes > ends[present]).any():
            return None
        found = self.buffers.array("positions", len(run), np.int64)
        found[order] = np.arange(len(run)) + np.repeat(begin - firsts, sizes)
        return found

    def count_at(self, bits: Any, labels: Any, positive: Any, negative: Any, threshold: float) -> RowsAt:
        scores, is_positive = bits.view(np.float64), labels == positive
        reached = reaches(scores, threshold)
        tp, accepted, positives = (int(np.count_nonzero(one)) for one in (is_positive & reached, reached, is_positive))
        valid = positives
        if negative != positive:
            valid += int(np.count_nonzero(labels == negative))
        nans = int(np.count_nonzero(np.isnan(scores)))
        buffers = [self.buffers.array(name, len(bits), np.int64) for name in ("part", "other")]
        marks = int(row_marks(bits, is_positive, buffers).sum(dtype=np.uint64))
        return RowsAt(tp, accepted, positives, len(labels) - valid, nans, marks)

    def flagged(self, bits: Any, flags: NDArray[np.bool_], shift: np.int64) -> NDArray[np.int64]:
        return np.flatnonzero(
            flags.take(np.right_shift(bits, shift, out=self.buffers.array("part", len(bits), np.int64)))
        )


def sorted_with_class(
    keys: NDArray[np.uint64], is_positive: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Keys in descending order (of their last axis), with their class. A spare bit for the class makes it a sort of
    plain integers."""
    lowest = keys.min()
    if int(keys.max() - lowest) >> 63:
        order = np.argsort(keys, axis=-1)[..., ::-1]
        return np.take_along_axis(keys, order, -1), np.take_along_axis(is_positive, order, -1).astype(np.int64)
    codes = keys - lowest
    codes <<= np.uint64(1)
    codes |= is_positive
    codes.sort(axis=-1)
    codes = codes[..., ::-1]
    positive = (codes & np.uint64(1)).view(np.int64)
    codes = codes >> np.uint64(1)
    codes += lowest
    return codes, positive


def distinct(
    ordered: NDArray[np.uint64], positive: NDArray[np.int64], starts: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Each of some ordered keys once, and the rows of each by class, from the class of every row.

    `starts` are the `run_starts` of the keys, for whoever has them.
    """
    starts = run_starts(ordered) if starts is None else starts
    if len(starts) == len(ordered):
        return ordered, by_class(positive, 1)
    return ordered[starts], by_class(np.add.reduceat(positive, starts), np.diff(starts, append=len(ordered)))


def by_class(positive: NDArray[np.int64], rows: Any) -> NDArray[np.int64]:
    """Shape (scores, 2), negatives first: how many of the rows at each score are of which class."""
    counts = np.empty((len(positive), 2), dtype=np.int64)
    counts[:, 1] = positive
    np.subtract(rows, positive, out=counts[:, 0])
    return counts


def run_starts(ordered: NDArray[Any]) -> NDArray[np.intp]:
    """Where each run of equal keys begins."""
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return is_new.nonzero()[0]


def add_counts(part: Any, is_positive: Any, weights: Any, rows: Any, sums: Any) -> None:
    """Count rows by part and class, in arrays of shape (parts, 2); `part` is written over."""
    part <<= CLASS_BIT
    part += is_positive
    np.add.at(rows.reshape(-1), part, rows.dtype.type(1))
    if len(weights):
        np.add.at(sums.reshape(-1), part, weights)


def _drop_absent(weights: Any, *columns: Any) -> tuple[Any, ...]:
    present = weights > 0
    if present.all():
        return (*columns, weights)
    return (*(column[present] for column in columns), weights[present])


def _note_scores(part: Any, bits: Any, only: Any, buffer: Any) -> None:
    """Note the one score of each part, or that there are several."""
    other = np.flatnonzero(np.take(only, part, out=buffer, mode="clip") != bits)  # "raise" would take another array
    if len(other):
        part, bits = part[other], bits[other]
        first = only[part] == NONE
        only[part[first]] = bits[first]
        only[part[only[part] != bits]] = SEVERAL


class Loading:
    """Whether numba and the compiled kernels are loaded: in the background, once enough has been done without them.

    Loading takes as long as tuning on some ten million rows with NumPy. So a process that tunes once never loads them,
    and one that tunes again and again has them soon, and never waits.
    """

    def __init__(self) -> None:
        self.module: ModuleType | None = None
        self.background = Background()
        self._rows = 0
        self._begun = False

    def note(self, rows: int, settings: Settings) -> None:
        """Count rows that are read by NumPy, and begin to load when these are enough."""
        self._rows += rows + ROWS_OF_A_CALL
        if self._rows >= settings.compile_after and not self._begun and has_numba():
            self._begun = True
            self.background.submit(self.load)

    def load(self) -> ModuleType:
        """Load now."""
        from surecut.core import compiled

        self.module = compiled
        return compiled


LOADING = Loading()


@cache
def has_numba() -> bool:
    """Whether numba is installed; it is not imported."""
    return importlib.util.find_spec("numba") is not None


def compiled() -> Kernels | None:
    """The kernels compiled by numba, loaded now, or None where it is not installed."""
    return LOADING.load().CompiledKernels(waits=True) if has_numba() else None


def available(rows: int, settings: Settings) -> Kernels:
    """Kernels for so many rows: the compiled ones if they are loaded, or asked for by the settings."""
    if (module := _compiled_module(settings)) is not None:
        kernels: Kernels = module.CompiledKernels(waits=settings.kernels == "compiled")
        return kernels
    if settings.kernels is None:
        LOADING.note(rows, settings)
    return NumpyKernels()


def compiled_judge(settings: Settings) -> Callable[..., Any] | None:
    """The compiled judge of `rules`, if it is loaded, or asked for by the settings."""
    module = _compiled_module(settings)
    return None if module is None else module.judge


def _compiled_module(settings: Settings) -> ModuleType | None:
    if settings.kernels == "numpy":
        return None
    if settings.kernels == "compiled" and LOADING.module is None and has_numba():
        return LOADING.load()
    return LOADING.module


# --- Rows that are drawn again ---------------------------------------------------------------------------------------

PIECE_ROWS = 64
"""A cell of more rows is drawn in pieces of so many."""

LEVELS = 256
"""Entries of a table: Poisson numbers of mean `PIECE_ROWS` are smaller, and the leading 8 bits of a uniform random
number say from which one on to look."""


class DrawnCells(NamedTuple):
    """Cells of rows from which rows are drawn with replacement, as Poisson numbers first.

    Attributes
    ----------
    pieces, filled
        How many Poisson numbers there are: one for every cell that has rows, and one more for every `PIECE_ROWS` of
        further rows; and how many cells have rows.
    size, cell
        The rows of each piece, and its cell: first a piece of each cell, then the others, cell by cell.
    cell_of
        The cell of each row.
    cumulated
        Shape (`PIECE_ROWS` + 1, `LEVELS`): by the rows of a piece, the probabilities of 0, of at most 1, and so on.
    guide
        Of the same shape: how many of these are at most i / `LEVELS`.
    """

    pieces: int
    filled: int
    size: NDArray[np.int64]
    cell: NDArray[np.int64]
    cell_of: NDArray[np.int64]
    cumulated: NDArray[np.float64]
    guide: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.int64], rate: float) -> DrawnCells:
        """Cells of so many rows each, whose Poisson numbers have `rate` times these rows as means."""
        filled = np.flatnonzero(rows)
        more = (rows - 1) // PIECE_ROWS
        cell = np.concatenate((filled, np.repeat(filled, more[filled])))
        size = np.full(len(cell), PIECE_ROWS)
        size[: len(filled)] = (rows - PIECE_ROWS * more)[filled]
        means = rate * np.arange(PIECE_ROWS + 1)
        factors = np.divide.outer(means, np.arange(1, LEVELS))
        chances = np.concatenate((np.ones((len(means), 1)), factors.cumprod(axis=1)), axis=1) * np.exp(-means)[:, None]
        cumulated = chances.cumsum(axis=1)
        cumulated[:, -1] = INF  # every number ends there
        steps = np.arange(LEVELS) / LEVELS
        guide = np.array([one.searchsorted(steps, side="right") for one in cumulated])
        return cls(len(cell), len(filled), size, cell, np.repeat(np.arange(len(rows)), rows), cumulated, guide)


def draw_counts(
    drawn: DrawnCells, uniforms: NDArray[np.float64], counts: NDArray[np.int64], settings: Settings
) -> NDArray[np.int64]:
    """Write how many rows are drawn from each cell to `counts`, of shape (resamples, cells).

    Each resample has a row of uniform random numbers: one for every piece, and some more for the rows that are missing,
    which are drawn one by one. Returns how many these are. Where the random numbers do not suffice for them, or there
    are too many rows already, none is added.
    """
    module = _compiled_module(settings)
    found = None if module is None else module.draw_counts(drawn, uniforms, counts, settings.kernels == "compiled")
    return draw_counts_in_numpy(drawn, uniforms, counts) if found is None else found


NUMBERS_AT_ONCE = 1 << 15
"""Random numbers that NumPy turns into counts at once: so few stay in cache."""


def draw_counts_in_numpy(
    drawn: DrawnCells, uniforms: NDArray[np.float64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`draw_counts` in NumPy."""
    counts[:] = 0
    missing = np.empty(len(uniforms), dtype=np.int64)
    at_once = max(1, NUMBERS_AT_ONCE // uniforms.shape[1])
    tables, (first_cells, more_cells) = drawn.size * LEVELS, np.split(drawn.cell, [drawn.filled])
    starts = run_starts(more_cells)
    for first in range(0, len(uniforms), at_once):
        part = slice(first, first + at_once)
        number = _poisson_numbers(drawn, uniforms[part, : drawn.pieces], tables)
        missing[part] = len(drawn.cell_of) - number.sum(axis=1)
        counts[part, first_cells] = number[:, : drawn.filled]
        if len(starts):
            counts[part, more_cells[starts]] += np.add.reduceat(number[:, drawn.filled :], starts, axis=1)
        _add_missing(drawn, uniforms[part, drawn.pieces :], missing[part], counts[part])
    return missing


def _poisson_numbers(drawn: DrawnCells, uniforms: NDArray[np.float64], tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each piece, in each resample: how many of its table's probabilities its random number reaches."""
    place = (uniforms * LEVELS).astype(np.intp)
    place += tables
    place = drawn.guide.take(place)
    place += tables
    few = np.flatnonzero(uniforms >= drawn.cumulated.take(place))
    some, high = place.take(few), uniforms.take(few)
    reached = np.ones(len(some), dtype=bool)
    while reached.any():
        some += reached
        reached = high >= drawn.cumulated.take(some)
    place.reshape(-1)[few] = some
    place -= tables
    return place


def _add_missing(
    drawn: DrawnCells, uniforms: NDArray[np.float64], missing: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """Add the rows that are missing in each resample, if there are random numbers for them."""
    used = np.arange(uniforms.shape[1]) < np.where(missing <= uniforms.shape[1], missing, 0)[:, None]
    cells = drawn.cell_of.take((uniforms[used] * len(drawn.cell_of)).astype(np.intp))
    cells += np.repeat(np.arange(len(counts)) * counts.shape[1], np.count_nonzero(used, axis=1))
    np.add.at(counts.reshape(-1), cells, np.int64(1))
