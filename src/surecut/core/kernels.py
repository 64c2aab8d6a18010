"""The few hot loops, each in NumPy (the reference and the fallback) and, where numba is installed, compiled.

Scores are handled as *keys*: unsigned integers in the order of the floats. −0 counts as +0, and +inf as the largest
finite float, because a threshold of +inf means *predict nothing*. Bins of them are in `bins`.

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
from surecut.core.bins import FirstBins, KeyRanges, OccupiedBins
from surecut.core.counts import NO_MARKS, Counts, range_of
from surecut.core.keys import (
    CLASS_BIT,
    MAGNITUDE,
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
    """Of all kernels. Whoever keeps a view of one from call to call (sorted or binned columns, converted scores) is
    done with it before its thread asks for that buffer again: a block of columns is tuned before the next is read."""

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
        """Rows without weights by distinct score; `bits` are of float64."""

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
        part, other, classes = (self.buffers.array(name, len(bits), np.int64) for name in ("part", "other", "class"))
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
    if (module := compiled_module(settings)) is not None:
        kernels: Kernels = module.CompiledKernels(waits=settings.kernels == "compiled")
        return kernels
    if settings.kernels is None:
        LOADING.note(rows, settings)
    return NumpyKernels()


def compiled_judge(settings: Settings) -> Callable[..., Any] | None:
    """The compiled judge of `rules`, if it is loaded, or asked for by the settings."""
    module = compiled_module(settings)
    return None if module is None else module.judge


def compiled_module(settings: Settings) -> ModuleType | None:
    """The compiled kernels, if they are loaded, or asked for by the settings."""
    if settings.kernels == "numpy":
        return None
    if settings.kernels == "compiled" and LOADING.module is None and has_numba():
        return LOADING.load()
    return LOADING.module
