"""The exact best cut of each label of a dense matrix, without sorting: the idea of `search`, some labels at a time.

The columns of some labels are copied so that each label's scores stand together, the only time that the matrix is
read. They are counted in bins; bins that cannot hold a label's best cut are left alone, and only rows in the others
are collected and sorted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles
from surecut._kernels import FirstBins, Kernels, compiled, first_bins, ordered_keys, score_ranges
from surecut.candidates import TIE
from surecut.confusion import Confusion
from surecut.multilabel.search import LabelCuts, LabelEntries, has_classes
from surecut.rows import joined_ranges
from surecut.tally import sorted_with_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.search import Objective

BITS = 11
"""Bins per label, as a power of two."""

SAMPLE = 1024
"""Scores of a label that its bins are made for."""

LABELS_AT_ONCE = 32
"""Labels that are copied together: their scores of a row are a few whole cache lines."""

COPIED_SHARE = 16
"""At most one in so many scores is copied at a time, by all threads together."""

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
    """How many labels a thread should work on together."""
    return max(1, min(LABELS_AT_ONCE, int(scores.shape[1]) // (COPIED_SHARE * workers)))


class BinnedLabels:
    """Labels of a dense matrix, some at a time; what they are copied into serves again and again."""

    def __init__(self, kernels: Kernels, scores: NDArray[Any], truth: NDArray[Any], objective: Objective) -> None:
        self._kernels = kernels
        self._scores = Turned(scores, scores.dtype)
        self._truth = Turned(truth, np.dtype(np.uint8))
        self._objective = objective

    def best_cuts(self, columns: slice, names: Sequence[Any]) -> LabelCuts | None:
        """The best cuts of some labels; None where a score is NaN, which whoever sorts will say."""
        scores, positive = self._scores[columns], self._truth[columns]
        bins = [first_bins(as_doubles(column[:: 1 + len(column) // SAMPLE]), BITS) for column in scores]
        counts = np.zeros((len(bins), 2 * max(int(one.half) for one in bins), 2), dtype=np.int64)
        checksums = np.zeros(len(bins), dtype=np.uint64)
        for i, (one, found) in enumerate(zip(bins, counts, strict=True)):
            bits = as_doubles(scores[i]).view(np.int64)
            rows = positive[i], NO_WEIGHTS, POSITIVE, NEGATIVE
            _, nans, checksum = self._kernels.histogram(bits, *rows, one, found, found)
            if nans:
                return None
            checksums[i] = checksum % 2**64
            found[one.half] += found[one.half - 1]  # the bins on both sides of zero are one
            found[one.half - 1] = 0
        needed, totals = needed_bins(counts, self._objective)
        parts = [
            self._entries(as_doubles(scores[i]), positive[i], one, counts[i], needed[i]) for i, one in enumerate(bins)
        ]
        entries = LabelEntries(
            starts=np.concatenate(([0], np.cumsum([len(part[0]) for part in parts]))),
            keys=np.concatenate([part[0] for part in parts]),
            positive=np.concatenate([part[1] for part in parts]),
            negative=np.concatenate([part[2] for part in parts]),
            totals=totals,
            dtype=scores.dtype,
            weighted=False,
        )
        return replace(entries.best_cuts(self._objective, names), checksums=checksums)

    def _entries(
        self,
        scores: NDArray[np.float64],
        is_positive: NDArray[np.uint8],
        bins: FirstBins,
        counts: NDArray[np.int64],
        needed: NDArray[np.bool_],
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """A label's keys, positives and negatives, descending: rows in needed bins one by one, and each run of the
        bins between them as one entry, where no best cut is."""
        keys, positive = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        which = np.flatnonzero(needed)
        if len(which):
            where = self._kernels.inside(scores, *score_ranges(*joined_ranges(*bins.ends(which))))
            keys, positive = sorted_with_class(ordered_keys(scores[where]), is_positive[where])
        idle = np.flatnonzero((counts[:, 0] + counts[:, 1] > 0) & ~needed)
        if not len(idle):
            return keys, positive, 1 - positive
        between = np.searchsorted(which, idle)
        starts = np.flatnonzero(np.concatenate(([True], between[1:] > between[:-1])))
        masses = np.add.reduceat(counts[idle], starts)[::-1]
        lowest = bins.ends(idle[starts][::-1])[0]
        at = len(keys) - np.searchsorted(keys[::-1], lowest)
        negative = np.insert(1 - positive, at, masses[:, 0])
        return np.insert(keys, at, lowest), np.insert(positive, at, masses[:, 1]), negative


class Turned:
    """A matrix of which some columns at a time are asked for as rows. What was given before is written over."""

    def __init__(self, matrix: NDArray[Any], dtype: np.dtype[Any]) -> None:
        self._matrix = matrix
        self._room = np.empty((0, len(matrix)), dtype=dtype)

    def __getitem__(self, columns: slice) -> NDArray[Any]:
        labels = columns.stop - columns.start
        if self._matrix.flags.f_contiguous and self._matrix.dtype == self._room.dtype:
            return self._matrix.T[columns]
        if len(self._room) < labels:
            self._room = np.empty((labels, len(self._matrix)), dtype=self._room.dtype)
        for start in range(0, len(self._matrix), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            self._room[:labels, rows] = self._matrix[rows, columns].T
        return self._room[:labels]


def needed_bins(counts: NDArray[np.int64], objective: Objective) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Bins in which a label's optimum may hide, and those beside an edge that may win; and each label's totals.

    `counts` has shape (labels, bins, 2). As in `search`: a cut inside a bin accepts at most all of its positives and
    none of its negatives; among ties the highest wins, so that an edge may win only if it ties with the best and no
    higher edge is as good.
    """
    needed = np.zeros(counts.shape[:2], dtype=bool)
    used = np.flatnonzero(counts.any(axis=(0, 2)))
    stretch = slice(used[0], used[-1] + 1)
    negative, positive = (np.ascontiguousarray(counts[:, stretch, cell][:, ::-1]) for cell in (0, 1))  # descending
    fp, tp = (np.zeros((len(counts), negative.shape[1] + 1), dtype=np.int64) for _ in range(2))
    np.cumsum(negative, axis=1, out=fp[:, 1:])
    np.cumsum(positive, axis=1, out=tp[:, 1:])
    totals = np.column_stack((fp[:, -1], tp[:, -1]))
    tn, fn = fp[:, -1:] - fp, tp[:, -1:] - tp
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.asarray(objective.metric.evaluate(Confusion(tp, fp, fn, tn)))
        corner = Confusion(tp[:, 1:], fp[:, :-1], fn[:, 1:], tn[:, :-1])
        bounds = np.asarray(objective.metric.evaluate(corner))
    values = np.where(np.isnan(values), -np.inf, values)
    best = values.max(axis=1, keepdims=True)
    least = best - TIE * np.abs(np.where(np.isinf(best), 0.0, best))
    occupied = negative + positive > 0
    place = np.arange(negative.shape[1])
    highest = values.argmax(axis=1)[:, None]
    hiding = occupied & np.where(place < highest, bounds >= least, bounds > best)  # NaN is neither
    higher = np.concatenate((np.full((len(counts), 1), -np.inf), np.maximum.accumulate(values, axis=1)[:, :-1]), axis=1)
    label, edge = np.nonzero((values >= least) & (values > higher))
    # Edge i lies below bins 0 … i − 1: beside it stand the nearest occupied bins of the label on both sides.
    everywhere = np.flatnonzero(occupied)
    below = np.searchsorted(everywhere, label * len(place) + edge)
    for beside in (below - 1, below):
        inside = (beside >= 0) & (beside < len(everywhere))
        of_label, at = np.divmod(everywhere[beside[inside]], len(place))
        own = of_label == label[inside]
        hiding[of_label[own], at[own]] = True
    needed[:, stretch] = (hiding & has_classes(objective.metric, totals)[:, None])[:, ::-1]
    return needed, totals
