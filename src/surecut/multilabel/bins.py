"""The exact best cut of each label of a dense matrix, without sorting: the idea of `search`, some labels at a time.

The columns of some labels are copied so that each label's scores stand together, the only time that the matrix is
read. They are counted in bins; bins that cannot hold a label's best cut are left alone, and only rows in the others
are collected and sorted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._inputs import as_doubles
from surecut._kernels import FirstBins, Kernels, KeyRanges, compiled, first_bins
from surecut.candidates import bound_of, least_tie
from surecut.confusion import Confusion
from surecut.counts import Counts
from surecut.multilabel.search import LabelCuts, LabelEntries, has_classes, sorted_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.search import Objective

GROUP = 16
"""Bins are first judged in groups of so many."""

ROWS_PER_BIN = 32
"""About so many rows share a bin, if scores are spread evenly: finer bins take longer to judge than they save."""

MOST_BITS = 13
"""The most bins per label, as a power of two."""

SAMPLE = 512
"""Scores of a label that its bins are made for."""

LABELS_AT_ONCE = 32
"""Labels that are copied together: their scores of a row are a few whole cache lines."""

COPIED_SHARE = 15
"""At most one in so many bytes is copied at a time, by all threads together."""

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
    """How many labels a thread should work on together: few enough for memory."""
    copied = len(scores) * (scores.itemsize + 1)
    return max(1, min(LABELS_AT_ONCE, scores.nbytes // (COPIED_SHARE * workers * copied)))


def bits_for(rows: int) -> int:
    """How many bins a label of so many rows should have, as a power of two."""
    return min(MOST_BITS, max(2, (rows // ROWS_PER_BIN).bit_length()))


class BinnedLabels:
    """Labels of a dense matrix, some at a time; what they are copied into serves again and again."""

    def __init__(self, kernels: Kernels, scores: NDArray[Any], truth: NDArray[Any], objective: Objective) -> None:
        self._kernels = kernels
        self._scores = Turned(scores, scores.dtype)
        self._truth = Turned(truth, np.dtype(np.uint8))
        self._objective = objective

    def best_cuts(self, columns: slice, names: Sequence[Any]) -> LabelCuts | None:
        """The best cuts of some labels; None where a score is NaN, which whoever sorts will say."""
        scores, is_positive = self._scores[columns], self._truth[columns]
        bits = bits_for(scores.shape[1])
        bins = [first_bins(sample, bits) for sample in as_doubles(scores[:, :: 1 + scores.shape[1] // SAMPLE])]
        width = 2 * max(int(one.half) for one in bins)
        counts = np.zeros((len(bins), width + -width % GROUP, 2), dtype=np.int32)
        checksums = np.zeros(len(bins), dtype=np.uint64)
        for i, (one, found) in enumerate(zip(bins, counts, strict=True)):
            rows = self._kernels.doubles(scores[i]).view(np.int64), is_positive[i], NO_WEIGHTS
            _, nans, checksum = self._kernels.histogram(*rows, POSITIVE, NEGATIVE, one, found, found)
            if nans:
                return None
            checksums[i] = checksum % 2**64
            Counts(found, found).move(int(one.half) - 1, int(one.half))
        needed, totals = needed_bins(counts, self._objective)
        starts, keys, positive, negative = self._entries(scores, is_positive, bins, counts, needed)
        above = np.concatenate(
            (np.zeros((1, 2), dtype=np.int64), np.cumsum(np.column_stack((negative, positive)), axis=0))
        )
        below = totals - (above[starts[1:]] - above[starts[:-1]])  # rows below a label's last needed bin
        entries = LabelEntries(starts, keys, positive, negative, below, scores.dtype, weighted=False)
        cuts = entries.best_cuts(self._objective, names)
        return replace(cuts, checksums=checksums)

    def _entries(
        self,
        scores: NDArray[Any],
        is_positive: NDArray[np.uint8],
        bins: list[FirstBins],
        counts: NDArray[np.int32],
        needed: Needed,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """Where each label's entries start, keys, positives and negatives, descending: the rows in needed bins.

        What lies in other bins is added to the next entry below, so that sums are those of all rows.
        """
        label, which, _ = needed
        low, high = FirstBins(*np.array(bins)[label].T).ends(which)
        edges = np.searchsorted(label, np.arange(len(bins) + 1))
        found: list[tuple[Any, Any, Any]] = []
        for i in range(len(bins)):
            own = slice(edges[i], edges[i + 1])
            if own.stop > own.start:
                rows = self._kernels.doubles(scores[i]).view(np.int64), is_positive[i], NO_WEIGHTS
                found.append(self._kernels.inside(*rows, POSITIVE, KeyRanges.of(low[own][::-1], high[own][::-1])))
            else:
                found.append((np.empty(0, np.uint64), np.empty(0, np.bool_), NO_WEIGHTS))
        starts = np.concatenate(([0], np.cumsum([len(part[0]) for part in found])))
        keys, classes, _ = (np.concatenate(column) for column in zip(*found, strict=True))
        keys, positive = sorted_runs(starts, keys, classes)
        negative = 1 - positive
        masses = counts[label, which].astype(np.int64)
        first = np.concatenate(([0], np.cumsum(masses.sum(axis=1))))[:-1]  # where each bin's entries start
        skipped = needed.skipped(masses)
        negative[first] += skipped[:, 0]
        positive[first] += skipped[:, 1]
        return starts, keys, positive, negative


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


class Needed(NamedTuple):
    """Bins that are needed, label after label, descending: label, bin, and the rows above the bin by class."""

    label: NDArray[np.int64]
    which: NDArray[np.int64]
    above: NDArray[np.int64]

    def skipped(self, masses: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows between each bin and the one before it, by class; `masses` are those in the bins."""
        done = np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(masses, axis=0)))
        first = np.searchsorted(self.label, self.label)
        skipped = self.above - (done[:-1] - done[first])  # all that is above, but for the bins before
        skipped[1:] -= np.where((self.label[1:] == self.label[:-1])[:, None], skipped[:-1], 0)
        return np.asarray(skipped)


def needed_bins(counts: NDArray[np.int32], objective: Objective) -> tuple[Needed, NDArray[np.int64]]:
    """Bins in which a label's optimum may hide, and those beside an edge that may win; and each label's totals.

    `counts` has shape (labels, bins, 2). Bins are judged in groups first: where a group is not needed, none of its
    bins is.
    """
    labels, bins, _ = counts.shape
    groups = counts.reshape(labels, bins // GROUP, GROUP, 2)
    both = counts.view(np.int64).reshape(labels, bins // GROUP, GROUP).sum(axis=2)  # two counts in one number
    totals = both.sum(axis=1)[:, None].view(np.int32).astype(np.int64)
    used = np.flatnonzero(np.bitwise_or.reduce(both, axis=0))
    stretch = slice(int(used[0]), int(used[-1]) + 1)
    coarse = np.ascontiguousarray(both[:, stretch][:, ::-1]).view(np.int32).reshape(labels, -1, 2)
    opened = _judged(coarse, totals, np.False_, objective)
    opened = opened._replace(which=stretch.stop - 1 - opened.which)

    # What is in question, group after group: what was skipped before it, as one idle bin, and its own bins.
    own = groups[opened.label, opened.which][:, ::-1]
    turn = np.arange(len(opened.label)) - np.searchsorted(opened.label, opened.label)
    fine = np.zeros((labels, int(turn.max(initial=0)) + 1, GROUP + 1, 2), dtype=np.int64)
    fine[opened.label, turn, 0] = opened.skipped(own.sum(axis=1, dtype=np.int64))
    fine[opened.label, turn, 1:] = own
    idle = np.arange(fine.shape[1] * (GROUP + 1)) % (GROUP + 1) == 0
    needed = _judged(fine.reshape(labels, -1, 2), totals, idle, objective)
    turn, place = np.divmod(needed.which, GROUP + 1)
    group = opened.which[np.searchsorted(opened.label, needed.label) + turn]
    return needed._replace(which=group * GROUP + GROUP - place), totals


def _judged(
    counts: NDArray[Any], totals: NDArray[np.int64], idle: NDArray[np.bool_] | np.bool_, objective: Objective
) -> Needed:
    """Which of some bins, in descending order, are needed.

    As in `search`: a cut inside a bin accepts at most all of its positives and none of its negatives; among ties the
    highest wins, so that an edge may win only if it ties with the best and no higher edge is as good.
    """
    labels, bins, _ = counts.shape
    fp, tp = (np.zeros((labels, bins + 1)) for _ in range(2))  # floats, which metrics make of them anyway
    np.cumsum(counts[..., 0], axis=1, out=fp[:, 1:])
    np.cumsum(counts[..., 1], axis=1, out=tp[:, 1:])
    tn, fn = totals[:, :1] - fp, totals[:, 1:] - tp
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.asarray(objective.metric.evaluate(Confusion(tp, fp, fn, tn)))
    bounds = bound_of(objective.metric, Confusion(tp[:, 1:], fp[:, :-1], fn[:, 1:], tn[:, :-1]))
    values = np.where(np.isnan(values), -np.inf, values)
    best = values.max(axis=1, keepdims=True)
    least = least_tie(best)
    occupied = tp[:, 1:] + fp[:, 1:] > tp[:, :-1] + fp[:, :-1]
    above_best = np.arange(bins) < values.argmax(axis=1)[:, None]
    needed = occupied & ~idle & np.where(above_best, bounds >= least, bounds > best)
    label, edge = np.nonzero(values >= least)
    highest_yet = np.maximum.accumulate(values, axis=1)
    wins = (edge == 0) | (values[label, edge] > highest_yet[label, np.maximum(edge - 1, 0)])
    label, edge = label[wins], edge[wins]
    # Edge i lies below bins 0 … i − 1: beside it stand the nearest occupied bins of the label on both sides.
    everywhere = np.flatnonzero(occupied)
    below = np.searchsorted(everywhere, label * bins + edge)
    for beside in (below - 1, below):
        inside = (beside >= 0) & (beside < len(everywhere))
        of_label, at = np.divmod(everywhere[beside[inside]], bins)
        own = of_label == label[inside]
        needed[of_label[own], at[own]] = True
    label, at = np.nonzero(needed & ~idle & has_classes(objective.metric, totals)[:, None])
    return Needed(label, at, np.column_stack((fp[label, at], tp[label, at])).astype(np.int64))
