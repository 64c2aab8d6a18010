"""The compiled kernels, in the form of those in NumPy."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import highest_of
from surecut.core.bins import FirstBins, KeyRanges, OccupiedBins
from surecut.core.compiled.columns import COLUMN_BINS, COLUMN_CODES, COLUMN_ROWS, TILE
from surecut.core.compiled.judging import BEST_EDGES, coefficients
from surecut.core.compiled.kernel import kind_of, without_rows
from surecut.core.compiled.rows import (
    CODES,
    COUNT_AT,
    FLAGGED,
    GROUP,
    HISTOGRAM,
    INSIDE,
    LOOK,
    OCCUPIED,
    PIECE,
    POSITIONS,
    RUNS,
)
from surecut.core.counts import NO_MARKS, Counts
from surecut.core.kernels import (
    NO_BINS,
    BestEdges,
    BinnedRows,
    Kernels,
    NumpyKernels,
    RowsAt,
    SortedColumns,
    SortedRows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import WholeRatio


class CompiledKernels(Kernels):
    """The compiled kernels. While one is not compiled for some types of arrays, NumPy takes its place, or it `waits`.

    Labels are 64-bit integers or bytes; others become bytes.
    """

    reads_once = True

    def __init__(self, waits: bool = False) -> None:
        self._waits = waits

    @cached_property
    def _in_numpy(self) -> NumpyKernels:
        """What takes the place of kernels that are not compiled yet."""
        return NumpyKernels()

    def _scores(self, column: Any) -> tuple[Any, Any, Any]:
        """Scores as float64 in two views, or a buffer for a piece of them; and float32 scores, if they are."""
        if column.dtype == np.int64:
            return column, column.view(np.float64), None
        buffer = self.buffers.array("piece", LOOK, np.float64)
        return buffer.view(np.int64), buffer, column

    def _labels(self, labels: Any, positive: Any, negative: Any) -> tuple[Any, Any, Any]:
        if labels.dtype in (np.int64, np.uint8):
            return labels, positive, negative
        codes = self.buffers.array("labels", len(labels), np.uint8)
        np.not_equal(labels, negative, out=codes.view(bool))
        codes <<= 1
        codes[labels == positive] = 1
        return codes, np.uint8(1), np.uint8(1 if positive == negative else 0)

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
        # What is known to be None when a kernel is compiled is left out of it.
        weighted = weights if len(weights) else None
        noted = only if len(only) else None
        out = rows.reshape(-1), sums.reshape(-1)
        buffer = self.buffers.array("bins", PIECE, np.uint32)
        codes, *classes = self._labels(labels, positive, negative)
        marked = marks if len(marks) else None
        weight_bits = None if weighted is None or marked is None else weights.view(np.uint64)
        columns = *self._scores(bits), codes, weighted
        rest = *classes, tuple(bins), buffer, out, noted, marked, weight_bits
        kind = (*kind_of(*columns), rows.dtype, sums.dtype, noted is None, marked is None)
        if not self._waits and not HISTOGRAM.is_ready(kind, lambda: (*without_rows(*columns), *rest)):
            return self._in_numpy.histogram(bits, labels, weights, positive, negative, bins, rows, sums, only, marks)
        found: tuple[int, int, int] = HISTOGRAM(*columns, *rest)
        return found

    def occupied(self, counts: Counts, bins: FirstBins) -> OccupiedBins:
        weighted = counts.weight is not counts.rows
        size = len(counts.rows)
        number, rows = np.empty(size + 1, dtype=np.int64), np.empty((size, 2), dtype=np.int64)
        low, high = np.empty((2, size), dtype=np.uint64)
        weight = np.empty((size if weighted else 0, 2))
        given = counts.rows, counts.weight if weighted else None
        rest = tuple(bins), number, low, high, (rows, weight)
        kind = counts.rows.dtype, weighted
        if not self._waits and not OCCUPIED.is_ready(kind, lambda: (*given, (*rest[0][:3], np.int64(0)), *rest[1:])):
            return super().occupied(counts, bins)
        counts.move(int(bins.half) - 1, int(bins.half))
        found = OCCUPIED(*given, *rest)
        number, low, high, rows = number[:found], low[:found], high[:found], rows[:found]
        marks = counts.marks[number] if len(counts.marks) else NO_MARKS
        return OccupiedBins(number, low, high, Counts(rows, weight[:found] if weighted else rows, marks))

    def sorted_rows(self, bits: Any, labels: Any, positive: Any, negative: Any) -> SortedRows:
        size = len(bits)
        codes = np.empty(size, dtype=np.uint64)
        keys, rows = np.empty(size, dtype=np.uint64), np.empty((size, 2), dtype=np.int64)
        given, *classes = self._labels(labels, positive, negative)
        if not self._waits:
            kind = kind_of(bits, given)
            can_code = CODES.is_ready(kind, lambda: (*without_rows(bits, given), *classes, codes[:0]))
            if not RUNS.is_ready((), lambda: (codes[:0], np.uint64(0), keys[:0], rows[:0])) or not can_code:
                return self._in_numpy.sorted_rows(bits, labels, positive, negative)
        positives, invalid, nans, checksum, lowest, highest = CODES(bits, given, *classes, codes)
        if (highest - lowest) >> 63:
            return self._in_numpy.sorted_rows(bits, labels, positive, negative)
        codes.sort()
        found = RUNS(codes, np.uint64(lowest), keys, rows)
        return SortedRows(keys[:found], rows[:found], positives, invalid, nans, checksum % 2**64)

    def inside(self, bits: Any, labels: Any, weights: Any, positive: Any, ranges: KeyRanges) -> tuple[Any, Any, Any]:
        keys = self.buffers.array("keys", len(bits), np.uint64)
        classes = self.buffers.array("classes", len(bits), np.bool_)
        copied = self.buffers.array("weights", len(weights), np.float64)
        weighted = weights if len(weights) else None
        given, marked = self._labels(labels, positive, positive)[:2]
        columns = *self._scores(bits), given, weighted
        cells = None if ranges.cells is None else tuple(ranges.cells)
        places = self.buffers.array("places", LOOK, np.uint32)
        buffer = *self._look(), places
        ends = ranges.singles() if bits.dtype == np.float32 else (ranges.lowest, ranges.highest)
        rest = marked, (ranges.low, ranges.high, *ends), cells, buffer, (keys, classes, copied)
        kind = (*kind_of(*columns), cells is None)
        if not self._waits and not INSIDE.is_ready(kind, lambda: (*without_rows(*columns), *rest)):
            return self._in_numpy.inside(bits, labels, weights, positive, ranges)
        found = INSIDE(*columns, *rest)
        return keys[:found].copy(), classes[:found].copy(), copied[:found].copy()

    def positions(self, run: Any, free: Any, ends: Any) -> Any:
        found = self.buffers.array("positions", len(run), np.int64)
        kind = kind_of(run, free, ends)
        if not self._waits and not POSITIONS.is_ready(kind, lambda: (run[:0], free, ends, found)):
            return self._in_numpy.positions(run, free, ends)
        return found if POSITIONS(run, free, ends, found) else None

    def _look(self) -> tuple[Any, ...]:
        """Flags, the same as words, groups of flags, and rows, for a piece."""
        flags = self.buffers.array("flags", LOOK, np.bool_)
        groups = self.buffers.array("groups", LOOK // GROUP + 1, np.uint64)
        return flags, flags.view(np.uint64), groups, self.buffers.array("rows", LOOK + 1, np.uint64)

    def sorts_columns(self, scores: NDArray[Any], truth: NDArray[Any]) -> bool:
        if not _are_plain(scores, truth):
            return False
        if self._waits:
            return True
        can_code = COLUMN_CODES.is_ready(
            _kind_of_matrices(scores, truth), lambda: self._nothing_sorted(scores, truth)[0]
        )
        can_judge = BEST_EDGES.is_ready((), lambda: self._nothing_sorted(scores, truth)[1])
        return can_code and can_judge

    def sorted_columns(self, scores: NDArray[Any], truth: NDArray[Any], labels: slice) -> SortedColumns:
        rows, number = len(scores), labels.stop - labels.start
        codes = self.buffers.array("codes", number * rows, np.uint64).reshape(number, rows)
        positives, checksums = np.empty((2, number), dtype=np.int64)
        lowest, below_gap, gap = np.empty((3, number), dtype=np.uint64)
        out = codes, positives, checksums, (lowest, below_gap, gap)
        nans, widest = COLUMN_CODES(scores, truth, labels.start, highest_of(scores.dtype), self._column(rows), *out)
        fit = widest >> 63 == 0
        if fit:
            codes.sort(axis=1)
        return SortedColumns(codes if fit else None, lowest, below_gap, gap, positives, nans, checksums.view(np.uint64))

    def best_edges(self, columns: SortedColumns, ratio: WholeRatio, needs: tuple[bool, bool], tie: float) -> BestEdges:
        codes = columns.codes
        assert codes is not None
        samples, rows = codes.shape
        below, tp = np.empty((2, samples), dtype=np.int64)
        value = np.empty(samples)
        buffer = self._edges(rows)
        BEST_EDGES(codes, columns.positives, coefficients(ratio, samples), needs, tie, buffer, (below, tp, value))
        upper, lower = (columns.scores(beside) for beside in (np.minimum(below, rows - 1), np.maximum(below - 1, 0)))
        return BestEdges(below, tp, value, lower, upper)

    def bins_columns(self, scores: NDArray[Any], truth: NDArray[Any]) -> bool:
        if not _are_plain(scores, truth):
            return False
        if self._waits:
            return True
        kind = _kind_of_matrices(scores, truth)
        can_bin = COLUMN_BINS.is_ready(kind, lambda: self._nothing_binned(scores, truth)[0])
        can_collect = COLUMN_ROWS.is_ready(kind[:1], lambda: self._nothing_binned(scores, truth)[1])
        return can_bin and can_collect

    def binned_columns(
        self, scores: NDArray[Any], truth: NDArray[Any], labels: slice, bins: NDArray[np.int64], width: int
    ) -> BinnedRows:
        arguments = self._binned(scores, truth, labels, bins, width)
        nans = COLUMN_BINS(*arguments)
        places, counts, checksums = arguments[-3:]
        return BinnedRows(places, counts.reshape(-1, width, 2), nans, checksums.view(np.uint64))

    def collected_columns(
        self,
        scores: NDArray[Any],
        labels: slice,
        places: NDArray[np.uint16],
        entry: NDArray[np.int32],
        ends: NDArray[np.uint16],
        starts: NDArray[np.int64],
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        arguments = self._collected(scores, labels, places, entry, ends, starts[:-1].copy(), int(starts[-1]))
        COLUMN_ROWS(*arguments)
        keys, classes = arguments[-1]
        return keys, classes

    def _binned(
        self, scores: NDArray[Any], truth: NDArray[Any], labels: slice, bins: NDArray[np.int64], width: int
    ) -> tuple[Any, ...]:
        """Arguments of the kernel that counts columns in bins."""
        number = labels.stop - labels.start
        places = self.buffers.array("binned", number * len(scores), np.uint16).reshape(number, len(scores))
        counts = np.zeros((number, 2 * width), dtype=np.int32)
        out = places, counts, np.zeros(number, dtype=np.int64)
        return scores, truth, labels.start, highest_of(scores.dtype), self._column(TILE), bins, *out

    def _collected(
        self,
        scores: NDArray[Any],
        labels: slice,
        places: NDArray[np.uint16],
        entry: NDArray[np.int32],
        ends: NDArray[np.uint16],
        starts: NDArray[np.int64],
        size: int,
    ) -> tuple[Any, ...]:
        """Arguments of the kernel that collects rows of columns."""
        buffer = *self._look(), *self._column(LOOK)[:2]
        out = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.bool_)
        return scores, labels.start, highest_of(scores.dtype), places, entry, ends, buffer, starts, out

    def _nothing_binned(self, scores: NDArray[Any], truth: NDArray[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The same of the kernels for bins."""
        none = slice(0, 0)
        binned = self._binned(scores, truth, none, np.empty((0, 4), dtype=np.int64), 0)
        wanted = np.empty((0, 0), dtype=np.int32), np.empty((0, 2), dtype=np.uint16), np.empty(0, dtype=np.int64)
        return binned, self._collected(scores, none, binned[-3], *wanted, 0)

    def _column(self, rows: int) -> tuple[Any, ...]:
        doubles = self.buffers.array("column", rows, np.float64)
        return doubles, doubles.view(np.int64), self.buffers.array("classes", rows, np.bool_)

    def _edges(self, rows: int) -> tuple[Any, ...]:
        positives = self.buffers.array("positives", rows + 1, np.uint64)
        return positives, self.buffers.array("edges", rows + 1, np.int64), self.buffers.array("tp", rows + 1, np.int64)

    def _nothing_sorted(self, scores: NDArray[Any], truth: NDArray[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arguments of the two kernels for no column."""
        codes, whole = np.empty((0, 0), dtype=np.uint64), np.empty(0, dtype=np.int64)
        out = codes, whole, whole, (codes.reshape(-1),) * 3
        ratios = np.empty((0, 6), dtype=np.int64)
        judged = codes, whole, ratios, (False, False), 0.0, self._edges(0), (whole, whole, np.empty(0))
        return (scores, truth, 0, highest_of(scores.dtype), self._column(0), *out), judged

    def count_at(self, bits: Any, labels: Any, positive: Any, negative: Any, threshold: float) -> RowsAt:
        codes, *classes = self._labels(labels, positive, negative)
        columns = bits, bits.view(np.float64), codes
        rest = *classes, np.float64(threshold if threshold < np.inf else np.nan)  # +inf accepts nothing
        if not self._waits and not COUNT_AT.is_ready(kind_of(*columns), lambda: (*without_rows(*columns), *rest)):
            return self._in_numpy.count_at(bits, labels, positive, negative, threshold)
        found = RowsAt(*COUNT_AT(*columns, *rest))
        return found._replace(checksum=found.checksum % 2**64)

    def flagged(self, bits: Any, flags: NDArray[np.bool_], shift: np.int64) -> NDArray[np.int64]:
        rows = self.buffers.array("flagged", len(bits), np.int64)
        columns = bits, flags
        if not self._waits and not FLAGGED.is_ready(kind_of(*columns), lambda: (bits[:0], flags, shift, rows[:0])):
            return self._in_numpy.flagged(bits, flags, shift)
        found = FLAGGED(*columns, shift, rows)
        return rows[:found].copy()


def _kind_of_matrices(*matrices: NDArray[Any]) -> tuple[Any, ...]:
    """The same for matrices, which may stand in memory by row, by column, or as a part of others."""
    return tuple((*kind_of(one), one.flags.c_contiguous, one.flags.f_contiguous) for one in matrices)


def _are_plain(*matrices: NDArray[Any]) -> bool:
    """Whether compiled kernels read these numbers as they are."""
    return all(
        one.dtype.isnative and (one.dtype.kind in "iu" or one.dtype in (np.float32, np.float64)) for one in matrices
    )
