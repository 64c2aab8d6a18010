"""The exact best cut of each label of a dense matrix, without sorting: the idea of `search`, some labels at a time.

The columns of some labels are copied so that each label's scores stand together, the only time that the matrix is
read. They are counted in bins; bins that cannot hold a label's best cut are left alone, and only rows in the others
are collected and sorted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._kernels import FirstBins, Kernels, compiled, first_bins, ordered_keys, score_ranges
from surecut.candidates import TIE
from surecut.confusion import Confusion
from surecut.multilabel.search import LabelCuts, LabelEntries, has_classes, sorted_runs
from surecut.rows import joined_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.search import Objective

ROWS_PER_BIN = 64
"""About so many rows share a bin, if scores are spread evenly: finer bins take longer to judge than they save."""

MOST_BITS = 13
"""The most bins per label, as a power of two."""

SAMPLE = 512
"""Scores of a label that its bins are made for."""

LABELS_AT_ONCE = 32
"""Labels that are copied together: their scores of a row are a few whole cache lines."""

COPIED_SHARE = 12
"""At most one in so many bytes is copied at a time, by all threads together."""

CACHE_LINE = 64
"""Bytes."""

ROWS_AT_ONCE = 512
"""Rows of a matrix that are turned into columns together, while they are in cache."""

FROM_ROWS = 8192
"""With fewer rows sorting is quicker."""

FROM_SIZE = 4_000_000
"""With fewer scores sorting is done before numba is loaded."""

NEGATIVE, POSITIVE = np.uint8(0), np.uint8(1)
NO_WEIGHTS = np.empty(0)


def kernels_for(scores: NDArray[Any], objective: Objective) -> Kernels | None:
    """The kernels to search in bins with; None where this is impossible, or sorting is as quick."""
    if len(scores) < FROM_ROWS or scores.size < FROM_SIZE or objective.constraints or not objective.can_be_bounded:
        return None
    return compiled()


def labels_at_once(scores: NDArray[Any], workers: int) -> int:
    """How many labels a thread should work on together: few enough for memory, and whole cache lines if they can be."""
    labels = min(LABELS_AT_ONCE, scores.nbytes // (COPIED_SHARE * workers * 8 * len(scores)))
    return max(1, labels - labels % 8 if labels > 8 else labels)


def bits_for(rows: int) -> int:
    """How many bins a label of so many rows should have, as a power of two."""
    return min(MOST_BITS, (rows // ROWS_PER_BIN).bit_length())


class BinnedLabels:
    """Labels of a dense matrix, some at a time; what they are copied into serves again and again."""

    def __init__(self, kernels: Kernels, scores: NDArray[Any], truth: NDArray[Any], objective: Objective) -> None:
        self._kernels = kernels
        self._dtype = scores.dtype
        self._scores = Turned(scores, np.dtype(np.float64))
        self._truth = Turned(truth, np.dtype(np.uint8))
        self._objective = objective

    def best_cuts(self, columns: slice, names: Sequence[Any]) -> LabelCuts | None:
        """The best cuts of some labels; None where a score is NaN, which whoever sorts will say."""
        scores, is_positive = self._scores[columns], self._truth[columns]
        bits = bits_for(scores.shape[1])
        bins = [first_bins(column[:: 1 + len(column) // SAMPLE].copy(), bits) for column in scores]
        counts = np.zeros((len(bins), 2 * max(int(one.half) for one in bins), 2), dtype=np.int32)
        checksums = np.zeros(len(bins), dtype=np.uint64)
        for i, (one, found) in enumerate(zip(bins, counts, strict=True)):
            rows = scores[i].view(np.int64), is_positive[i], NO_WEIGHTS
            _, nans, checksum = self._kernels.histogram(*rows, POSITIVE, NEGATIVE, one, found, found)
            if nans:
                return None
            checksums[i] = checksum % 2**64
            found[one.half] += found[one.half - 1]  # the bins on both sides of zero are one
            found[one.half - 1] = 0
        needed, above, totals = needed_bins(counts, self._objective)
        entries = self._entries(scores, is_positive, bins, counts, needed, above)
        cuts = LabelEntries(*entries, totals, self._dtype, weighted=False).best_cuts(self._objective, names)
        return replace(cuts, checksums=checksums)

    def _entries(
        self,
        scores: NDArray[np.float64],
        is_positive: NDArray[np.uint8],
        bins: list[FirstBins],
        counts: NDArray[np.int32],
        needed: tuple[NDArray[np.int64], NDArray[np.int64]],
        above: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Where each label's entries start, keys, positives and negatives, descending: the rows in needed bins.

        What lies in other bins is added to the next entry below, so that sums are those of all rows.
        """
        label, which = needed
        low, high = FirstBins(*np.array(bins)[label].T).ends(which)
        edges = np.searchsorted(label, np.arange(len(bins) + 1))
        parts = []
        for i in range(len(bins)):
            own = slice(edges[i], edges[i + 1])
            if own.stop > own.start:
                ranges = joined_ranges(low[own][::-1], high[own][::-1])
                parts.append(self._kernels.inside(scores[i], *score_ranges(*ranges)))
            else:
                parts.append(np.zeros(0, dtype=np.int64))
        starts = np.concatenate(([0], np.cumsum([len(where) for where in parts])))
        keys = ordered_keys(np.concatenate([scores[i][where] for i, where in enumerate(parts)]))
        classes = np.concatenate([is_positive[i][where] for i, where in enumerate(parts)])
        keys, positive = sorted_runs(starts, keys, classes)
        negative = 1 - positive
        masses = counts[label, which].astype(np.int64)
        first = np.concatenate(([0], np.cumsum(masses.sum(axis=1))))[:-1]  # where each bin's entries start
        done = np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(masses, axis=0)))
        skipped = above - (done[:-1] - done[edges[label]])  # of all rows above a bin those that are no entries
        skipped[1:] -= np.where((label[1:] == label[:-1])[:, None], skipped[:-1], 0)
        negative[first] += skipped[:, 0]
        positive[first] += skipped[:, 1]
        return starts, keys, positive, negative


class Turned:
    """A matrix of which some columns at a time are asked for as rows. What was given before may be written over.

    Where its entries are small, so many columns are turned ahead that a row's are a whole cache line.
    """

    def __init__(self, matrix: NDArray[Any], dtype: np.dtype[Any]) -> None:
        self._matrix = matrix
        self._room = np.empty((0, len(matrix)), dtype=dtype)
        self._held = range(0)
        self._ahead = CACHE_LINE // matrix.itemsize if dtype.itemsize == 1 else 0
        widened = dtype.kind == matrix.dtype.kind == "f" and matrix.dtype != dtype
        self._largest = float(np.finfo(matrix.dtype).max) if widened else None

    def __getitem__(self, columns: slice) -> NDArray[Any]:
        if self._matrix.flags.f_contiguous and self._matrix.dtype == self._room.dtype:
            return self._matrix.T[columns]
        if columns.start not in self._held or columns.stop > self._held.stop:
            self._turn(columns.start, min(max(columns.stop, columns.start + self._ahead), self._matrix.shape[1]))
        return self._room[columns.start - self._held.start : columns.stop - self._held.start]

    def _turn(self, start: int, stop: int) -> None:
        if len(self._room) < stop - start:
            self._room = np.empty((stop - start, len(self._matrix)), dtype=self._room.dtype)
        turned = self._room[: stop - start]
        for first in range(0, len(self._matrix), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            turned[:, rows] = self._matrix[rows, start:stop].T
        if self._largest is not None:
            np.minimum(turned, self._largest, out=turned)  # as `as_doubles` does
        self._held = range(start, stop)


def needed_bins(
    counts: NDArray[np.int32], objective: Objective
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64], NDArray[np.int64]]:
    """Bins in which a label's optimum may hide, and those beside an edge that may win: label after label, descending;
    the rows above each of them, by class; and each label's totals.

    `counts` has shape (labels, bins, 2). As in `search`: a cut inside a bin accepts at most all of its positives and
    none of its negatives; among ties the highest wins, so that an edge may win only if it ties with the best and no
    higher edge is as good.
    """
    labels = len(counts)
    used = np.flatnonzero(np.bitwise_or.reduce(counts.reshape(labels, -1), axis=0)) // 2
    highest = int(used[-1])
    negative, positive = (counts[:, used[0] : highest + 1, cell][:, ::-1] for cell in (0, 1))  # descending
    fp, tp = (np.zeros((labels, negative.shape[1] + 1)) for _ in range(2))  # floats, which metrics make of them anyway
    np.cumsum(negative, axis=1, out=fp[:, 1:])
    np.cumsum(positive, axis=1, out=tp[:, 1:])
    totals = np.column_stack((fp[:, -1], tp[:, -1])).astype(np.int64)
    tn, fn = fp[:, -1:] - fp, tp[:, -1:] - tp
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.asarray(objective.metric.evaluate(Confusion(tp, fp, fn, tn)))
        corner = Confusion(tp[:, 1:], fp[:, :-1], fn[:, 1:], tn[:, :-1])
        bounds = np.asarray(objective.metric.evaluate(corner))
    values = np.where(np.isnan(values), -np.inf, values)
    best = values.max(axis=1, keepdims=True)
    least = best - TIE * np.abs(np.where(np.isinf(best), 0.0, best))
    occupied = tp[:, 1:] + fp[:, 1:] > tp[:, :-1] + fp[:, :-1]
    place = np.arange(occupied.shape[1])
    above_best = place < values.argmax(axis=1)[:, None]
    needed = occupied & np.where(above_best, bounds >= least, bounds > best)  # NaN is neither
    label, edge = np.nonzero(values >= least)
    highest_yet = np.maximum.accumulate(values, axis=1)
    wins = (edge == 0) | (values[label, edge] > highest_yet[label, np.maximum(edge - 1, 0)])
    label, edge = label[wins], edge[wins]
    # Edge i lies below bins 0 … i − 1: beside it stand the nearest occupied bins of the label on both sides.
    everywhere = np.flatnonzero(occupied)
    below = np.searchsorted(everywhere, label * len(place) + edge)
    for beside in (below - 1, below):
        inside = (beside >= 0) & (beside < len(everywhere))
        of_label, at = np.divmod(everywhere[beside[inside]], len(place))
        own = of_label == label[inside]
        needed[of_label[own], at[own]] = True
    label, at = np.nonzero(needed & has_classes(objective.metric, totals)[:, None])
    above = np.column_stack((fp[label, at], tp[label, at])).astype(np.int64)
    return (label, highest - at), above, totals
