"""Scores of many labels in a matrix: dense, or the stored ones of a sparse matrix."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import DROP_OR_FILL, as_doubles, require_no_nan
from surecut._labels import LabelRule, Labels
from surecut._matrices import is_sparse
from surecut.confusion import Confusion, joined
from surecut.core.bins import FirstBins, KeyRanges, first_bins
from surecut.core.entries import Entries, both_classes
from surecut.core.kernels import Buffers, Kernels, available
from surecut.core.keys import ordered_keys, reaches, row_marks
from surecut.core.memory import Counted
from surecut.core.rules import placed_columns
from surecut.core.search import Source
from surecut.core.tally import order_of, tally_rows
from surecut.overlap import RowSample, positions, sampled_labels
from surecut.sources.arrays import PooledSource
from surecut.sources.labels import LabelCuts, LabelSource, confusion_by_sample, runs, sorted_entries
from surecut.sources.rows import NO_WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.rules import Objective

ROWS_PER_BIN = 32
"""About so many rows share a bin, if scores are spread evenly: finer bins take longer to judge than they save."""

MOST_BITS = 13
"""The most bins per label, as a power of two."""

BINNED_BYTES = 3
"""What kernels need for each row of a column that they count in bins: two for its place, and a share of the bins."""

NEGATIVE, POSITIVE = np.uint8(0), np.uint8(1)


def label_source(y_true: Any, y_score: Any, weights: NDArray[np.float64] | None) -> LabelSource:
    """The source for checked matrices; rows of weight zero are as good as absent."""
    present = None
    if weights is not None and not weights.all():
        present = np.flatnonzero(weights)
        y_true, y_score, weights = y_true[present], y_score[present], weights[present]
    if is_sparse(y_score):
        return SparseSource(y_true, y_score, weights)
    return DenseSource(y_score, y_true.toarray() if is_sparse(y_true) else y_true, weights, present)


def no_labels(y_score: Any) -> Any:
    """A matrix of the scores' shape without a single positive, in no memory."""
    if is_sparse(y_score):
        from scipy import sparse

        return sparse.csc_array(y_score.shape, dtype=np.uint8)
    return np.broadcast_to(np.uint8(0), y_score.shape)


AT_ONCE = 4
"""So many times the labels of a matrix are counted together, and so many blocks each core has then."""


class StoredLabels(LabelSource):
    """Labels whose scores are one array in memory. Without weights, and if it pays, they are counted in bins."""

    def __init__(self, scores: NDArray[Any]) -> None:
        super().__init__()
        self.scores = scores
        self._checksums: NDArray[np.uint64] | None = None

    @property
    def size(self) -> int:
        return int(self.scores.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scores.dtype

    @property
    def worth_binning(self) -> bool:
        """Whether labels have so many rows that bins are quicker than a sort."""
        return False

    def blocks_for(self, objective: Objective) -> list[slice]:
        if not self._is_binned(objective):
            return self.blocks()
        blocks = self.binned_blocks()
        self._checksums = np.zeros(blocks[-1].stop, dtype=np.uint64)
        return blocks

    def part(self, labels: slice, objective: Objective) -> Source:
        if not self._is_binned(objective):
            return super().part(labels, objective)
        return BinnedColumns(self, labels, self._kernels)

    def _is_binned(self, objective: Objective) -> bool:
        return not self.weighted and self.worth_binning and objective.can_be_bounded

    @cached_property
    def _kernels(self) -> Kernels:
        return available(self.size, self.settings)

    def checksums(self) -> NDArray[np.uint64]:
        return self.computed_checksums() if self._checksums is None else self._checksums

    def name_rows(self, labels: slice, checksums: NDArray[np.uint64]) -> None:
        """Remember the checksums of some labels, where a pass over their scores has found them."""
        assert self._checksums is not None
        self._checksums[labels] = checksums

    @abstractmethod
    def computed_checksums(self) -> NDArray[np.uint64]:
        """The checksums of all labels, from their scores."""

    @abstractmethod
    def binned_blocks(self) -> list[slice]:
        """Labels that are counted in bins together."""

    @abstractmethod
    def columns(self, labels: slice, kernels: Kernels) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """The scores of each of some labels, and their classes as 0 and 1; each label's stand together."""

    @abstractmethod
    def require_no_nan(self) -> None:
        """Raise on NaN among the scores."""


class DenseSource(StoredLabels):
    """Matrices of one shape, (rows, labels), read in blocks of columns or of rows.

    `present` are the positions of the rows in the matrix that they were taken from; None if they are all of its rows.
    """

    def __init__(
        self,
        scores: NDArray[Any],
        truth: NDArray[Any],
        weights: NDArray[np.float64] | None,
        present: NDArray[np.intp] | None = None,
    ) -> None:
        super().__init__(scores)
        self.truth, self.weights, self.present = truth, weights, present
        self._sorts_columns = False

    @property
    def rows(self) -> int:
        return len(self.scores)

    def orders(self) -> list[int]:
        columns = zip(self.scores.T, self.truth.T, strict=True)
        return [order_of(as_doubles(scores), truth != 0) for scores, truth in columns]

    @property
    def weighted(self) -> bool:
        return self.weights is not None

    @cached_property
    def totals(self) -> NDArray[Any]:
        if self.weights is None:
            positives = np.zeros(self.scores.shape[1], dtype=np.int64)
            for block in self._row_blocks():
                positives += np.count_nonzero(self.truth[block], axis=0)
            return np.column_stack((self.rows - positives, positives))
        positive = self.weights @ (self.truth != 0)
        negative = self.weights @ (self.truth == 0)
        return np.column_stack((negative, positive))

    def blocks(self) -> list[slice]:
        return runs(0, self.scores.shape[1], max(1, self.settings.entries_at_once // self.rows))

    @property
    def worth_binning(self) -> bool:
        return self.rows >= self.settings.binned_rows and self.size >= self.settings.binned_size

    def part(self, labels: slice, objective: Objective) -> Source:
        if self._is_binned(objective) and self._bins_columns:
            return BinnedMatrix(self, labels, self._kernels)
        return super().part(labels, objective)

    @property
    def _bins_columns(self) -> bool:
        """Whether kernels count columns where they stand, in bins whose numbers are small."""
        return (self.settings.label_bits or 0) <= MOST_BITS and self._kernels.bins_columns(self.scores, self.truth)

    def binned_blocks(self) -> list[slice]:
        labels = self.scores.shape[1]
        workers = min(self.settings.available_cores, labels)
        copied = self.rows * (BINNED_BYTES if self._bins_columns else self.scores.itemsize + 1)
        allowed = max(self.scores.nbytes // self.settings.copied_share, self.settings.copied_bytes)
        at_once = allowed // (workers * copied)
        return runs(0, labels, max(1, min(self.settings.labels_at_once, at_once)))

    def blocks_for(self, objective: Objective) -> list[slice]:
        blocks = super().blocks_for(objective)
        self._sorts_columns = self._can_sort_columns(objective)
        if self._sorts_columns:
            self._checksums = np.zeros(blocks[-1].stop, dtype=np.uint64)
        return blocks

    def cuts(self, labels: slice, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        """As a rule those of `search`. Few rows per label are quicker sorted and judged in one go."""
        if not self._sorts_columns:
            return super().cuts(labels, objective, names)
        columns = self._kernels.sorted_columns(self.scores, self.truth, labels)
        if columns.nans:
            self.require_no_nan()
        self.name_rows(labels, columns.checksums)
        totals = np.column_stack((self.rows - columns.positives, columns.positives))
        objective.check_each(totals)
        found = placed_columns(columns, totals, self._kernels, objective, self.dtype)
        return super().cuts(labels, objective, names) if found is None else LabelCuts.of(*found)

    def _can_sort_columns(self, objective: Objective) -> bool:
        """Whether kernels sort columns and judge them, for an objective that has no need of `search`."""
        if self.weighted or self._is_binned(objective) or not objective.can_be_bounded:
            return False
        some = Entries.of_totals(np.ones((1, 2), dtype=np.int64))
        return objective.whole_ratio(some) is not None and self._kernels.sorts_columns(self.scores, self.truth)

    def entries(self, labels: slice) -> Entries:
        keys = ordered_keys(self._doubles(labels))
        is_positive = np.ascontiguousarray(self.truth[:, labels].T) != 0
        columns, rows = keys.shape
        weights = None if self.weights is None else np.tile(self.weights, columns)
        absent = np.zeros((columns, 2), dtype=np.int64 if weights is None else np.float64)
        starts = np.arange(columns + 1) * rows
        return sorted_entries(starts, keys.reshape(-1), is_positive.reshape(-1), weights, absent)

    def pooled(self) -> Source:
        truth = self.truth.view(np.uint8) if self.truth.dtype == bool else self.truth
        labels = Labels(truth, truth.dtype.type(1), truth.dtype.type(0), LabelRule(name="Y_true"))
        return PooledSource(self.scores, labels, self.weights, self.require_no_nan)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        cells = np.zeros((4, len(thresholds)), dtype=np.int64 if self.weights is None else np.float64)
        for block in self._row_blocks():
            accepted = reaches(self.scores[block], thresholds)
            truth = self.truth[block] != 0
            for cell, which in zip(cells, (accepted & truth, accepted & ~truth, ~accepted & truth), strict=False):
                cell += np.count_nonzero(which, axis=0) if self.weights is None else self.weights[block] @ which
            if self.weights is not None:
                cells[3] += self.weights[block] @ ~(accepted | truth)
        if self.weights is None:
            cells[3] = self.rows - cells[:3].sum(axis=0)
        return Confusion(*cells)

    def computed_checksums(self) -> NDArray[np.uint64]:
        sums = np.zeros(self.scores.shape[1], dtype=np.uint64)
        for block in self._row_blocks():
            bits = as_doubles(self.scores[block]).view(np.int64)
            sums += row_marks(bits, self.truth[block] != 0).sum(axis=0, dtype=np.uint64)
        return sums

    def seen(self, totals: NDArray[Any]) -> tuple[RowSample, ...]:
        labels, size = sampled_labels(*totals.T)
        rows = positions(self.rows, size)
        scores, truth = self.scores[np.ix_(rows, labels)], self.truth[np.ix_(rows, labels)] != 0
        parts = {label: RowSample.of_rows(scores[:, i], truth[:, i]) for i, label in enumerate(labels.tolist())}
        return (RowSample.of_labels(parts),)

    def columns(self, labels: slice, kernels: Kernels) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        scores = self._copied(self.scores, labels, kernels.buffers, "scores", self.dtype)
        return [*scores], [*self._copied(self.truth, labels, kernels.buffers, "truth", np.dtype(np.uint8))]

    def _copied(
        self, matrix: NDArray[Any], labels: slice, buffers: Buffers, name: str, dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Columns of a matrix as rows, copied unless they stand so already; each thread has a buffer for the copy."""
        if matrix.flags.f_contiguous and matrix.dtype == dtype:
            return matrix.T[labels]
        number = labels.stop - labels.start
        copied = buffers.array(name, number * len(matrix), dtype).reshape(number, len(matrix))
        step = self.settings.copied_rows
        for first in range(0, len(matrix), step):
            copied[:, first : first + step] = matrix[first : first + step, labels].T
        return copied

    def _doubles(self, columns: slice) -> NDArray[np.float64]:
        """Some columns as rows of doubles; NaN is refused."""
        doubles = as_doubles(self.scores[:, columns].T)
        if np.isnan(doubles).any():
            self.require_no_nan()
        return doubles

    def require_no_nan(self) -> None:
        """Raise on NaN, saying where the first one stands: the same one, whatever is read first."""
        if self.scores.dtype.kind != "f":
            return
        for block in self._row_blocks():
            missing = np.isnan(self.scores[block])
            if missing.any():
                row, column = np.argwhere(missing)[0]
                row = block.start + row if self.present is None else self.present[block.start + row]
                raise ValueError(
                    f"Y_score holds NaN, first in row {row} of column {column}: a row without a score cannot be "
                    f"ranked; {DROP_OR_FILL}, or pass a sparse matrix, where an absent score is never predicted"
                )

    def _row_blocks(self) -> list[slice]:
        return runs(0, self.rows, max(1, self.settings.matrix_rows * 128 // self.scores.shape[1]))


class BinnedColumns:
    """Some labels without weights as samples, counted in bins.

    Their scores are read here for the only time. Bins that cannot hold a label's best cut are not looked at again; only
    rows in the others are collected and sorted. A tag is the number of a group of bins, or, beyond all of these, of a
    bin.
    """

    refines = True
    resolvable_rows = float("inf")

    def __init__(self, source: StoredLabels, labels: slice, kernels: Kernels) -> None:
        self._source, self._labels, self._kernels = source, labels, kernels
        self._settings = source.settings
        self.dtype = source.dtype

    def count(self, every: bool = False) -> Entries:
        if every:
            return self._source.entries(self._labels)
        nans, checksums = self._count_bins()
        if nans:
            self._source.require_no_nan()
        self._source.name_rows(self._labels, checksums)
        each, half = np.arange(len(self._bins)), self._bins[:, 3]
        self._counts[each, half] += self._counts[each, half - 1]  # the bins on both sides of zero are one
        self._counts[each, half - 1] = 0
        group = self._settings.label_group
        # Two counts of 32 bits are added up as one number.
        both = self._counts.view(np.int64).reshape(len(self._bins), -1, group).sum(axis=2)
        label, place = np.nonzero(both[:, ::-1])
        which = both.shape[1] - 1 - place
        self._groups = both.shape
        rows_of = np.ascontiguousarray(both[label, which])[:, None].view(np.int32).astype(np.int64)
        return self._entries(label, which * group, group, rows_of, label * both.shape[1] + which)

    def _count_bins(self) -> tuple[int, NDArray[np.uint64]]:
        """Choose bins, and count rows in them; returns the number of NaNs, and the checksums of the labels."""
        self._scores, self._truth = self._source.columns(self._labels, self._kernels)
        some = [np.sort(as_doubles(scores[:: self._every(len(scores))])) for scores in self._scores]
        self._bins = np.array([self._bins_for(*one) for one in zip(some, map(len, self._scores), strict=True)])
        self._counts = np.zeros((len(self._bins), self._width, 2), dtype=np.int32)
        nans, checksums = 0, []
        for i, counts in enumerate(self._counts):
            bins = FirstBins(*self._bins[i])
            found = self._kernels.histogram(*self._rows(i), POSITIVE, NEGATIVE, bins, counts, counts)
            nans += found[1]
            checksums.append(int(found[2]) % 2**64)
        return nans, np.array(checksums, dtype=np.uint64)

    def _every(self, rows: int) -> int:
        """The step at which scores are taken that bins are made for."""
        return 1 + rows // self._settings.label_sample

    def _bins_for(self, ordered: NDArray[np.float64], rows: int) -> FirstBins:
        """Bins that suit a label of so many rows, from some of its scores, ascending."""
        bits = self._settings.label_bits or min(MOST_BITS, max(2, (rows // ROWS_PER_BIN).bit_length()))
        return first_bins(ordered, bits)

    @property
    def _width(self) -> int:
        """Bins of each label, in whole groups."""
        width = 2 * int(self._bins[:, 3].max())
        return width + -width % self._settings.label_group

    def refine(self, wide: Entries) -> Entries:
        """Open groups of bins; then collect the rows in bins."""
        number = self._groups[0] * self._groups[1]
        is_group = wide.tag < number
        if not is_group.any():
            return self._collected(wide)
        opened = self._opened(wide.tag[is_group])
        return opened if is_group.all() else wide.one_each().spliced(is_group, opened)

    def _opened(self, tag: NDArray[np.int64]) -> Entries:
        """The occupied bins of some groups."""
        label, which = np.divmod(tag, self._groups[1])
        group = self._settings.label_group
        own = self._counts.reshape(len(self._bins), -1, group, 2)[label, which][:, ::-1]
        parent, place = np.nonzero(own.any(axis=2))
        bin_number = which[parent] * group + group - 1 - place
        rows = own[parent, place].astype(np.int64)
        tags = self._groups[0] * self._groups[1] + label[parent] * self._counts.shape[1] + bin_number
        return self._entries(label[parent], bin_number, 1, rows, tags, np.searchsorted(parent, np.arange(len(tag) + 1)))

    def _entries(
        self,
        label: NDArray[np.int64],
        first: NDArray[np.int64],
        size: int,
        rows: NDArray[np.int64],
        tag: NDArray[np.int64],
        starts: NDArray[np.int64] | None = None,
    ) -> Entries:
        """Runs of `size` bins of some labels as entries, samples being the labels unless said otherwise."""
        bins = FirstBins(*self._bins[label].T)
        low, high = bins.ends(np.maximum(first, np.where(bins.half > 1, 0, bins.half)))
        if size > 1:
            last = np.minimum(first + size - 1, 2 * bins.half - 1)
            last -= last == bins.half - 1  # the bin below zero is part of the one above it
            high = bins.ends(last)[1]
        starts = np.searchsorted(label, np.arange(len(self._bins) + 1)) if starts is None else starts
        return replace(Entries.of(low, high, rows, rows, starts=starts), tag=tag)

    def _collected(self, wide: Entries) -> Entries:
        """The rows of some bins by distinct score."""
        label = (wide.tag - self._groups[0] * self._groups[1]) // self._counts.shape[1]
        edges = np.searchsorted(label, np.arange(len(self._bins) + 1))
        found = []
        for one in np.unique(label).tolist():
            own = slice(edges[one], edges[one + 1])
            ranges = KeyRanges.of(wide.low[own][::-1], wide.high[own][::-1])
            found.append(self._kernels.inside(*self._rows(one), POSITIVE, ranges))
        keys, classes, _ = (np.concatenate(column) for column in zip(*found, strict=True))
        starts = np.concatenate(([0], np.cumsum([len(part[0]) for part in found])))
        by_label = sorted_entries(starts, keys, classes, None, np.zeros((len(found), 2), dtype=np.int64))
        above = np.concatenate(([0], np.cumsum(both_classes(by_label.rows))))
        ends = np.searchsorted(above, np.concatenate(([0], np.cumsum(both_classes(wide.rows)))))
        return Entries.scores(by_label.low, by_label.rows, by_label.rows, starts=ends)

    def _rows(self, label: int) -> tuple[Any, Any, Any]:
        return self._kernels.doubles(self._scores[label]).view(np.int64), self._truth[label], NO_WEIGHTS


class BinnedMatrix(BinnedColumns):
    """The same of columns of a matrix that compiled kernels read where they stand, all at once."""

    def __init__(self, source: DenseSource, labels: slice, kernels: Kernels) -> None:
        super().__init__(source, labels, kernels)
        self._matrix, self._indicators = source.scores, source.truth

    def _count_bins(self) -> tuple[int, NDArray[np.uint64]]:
        rows = len(self._matrix)
        some = np.sort(as_doubles(self._matrix[:: self._every(rows), self._labels].T), axis=1)
        self._bins = np.array([self._bins_for(scores, rows) for scores in some])
        found = self._kernels.binned_columns(self._matrix, self._indicators, self._labels, self._bins, self._width)
        self._places, self._counts = found.places, found.counts
        return found.nans, found.checksums

    def _collected(self, wide: Entries) -> Entries:
        label, which = np.divmod(wide.tag - self._groups[0] * self._groups[1], self._counts.shape[1])
        number, half = len(self._bins), self._bins[label, 3]
        lowest = which - (which == half)  # the bin below zero is part of the one above it
        entry = np.full(self._counts.shape[:2], -1, dtype=np.int32)
        entry[label, lowest] = entry[label, which] = np.arange(len(wide))
        ends = np.empty((number, 2), dtype=np.uint16)
        ends[:] = 1, 0  # no place is between these
        edges = np.searchsorted(label, np.arange(number + 1))
        some = np.flatnonzero(np.diff(edges))
        ends[some, 0], ends[some, 1] = 2 * lowest[edges[some + 1] - 1], 2 * which[edges[some]] + 1
        starts = np.concatenate(([0], np.cumsum(both_classes(wide.rows))))
        rows = self._kernels.collected_columns(self._matrix, self._labels, self._places, entry, ends, starts)
        return sorted_entries(starts, *rows, None, np.zeros((len(wide), 2), dtype=np.int64))


class LabelRuns(StoredLabels):
    """Scores label after label in one array; labels may have different numbers of them.

    `starts` says where each label's begin, `absent` is the weight by label and class of rows without a score.
    """

    def __init__(
        self,
        starts: NDArray[np.int64],
        scores: NDArray[Any],
        is_positive: NDArray[np.bool_],
        weights: NDArray[np.float64] | None,
        absent: NDArray[Any],
    ) -> None:
        super().__init__(scores)
        self.starts, self.is_positive = starts, is_positive
        self.entry_weights, self.absent = weights, absent

    @property
    def weighted(self) -> bool:
        return self.entry_weights is not None

    def blocks(self) -> list[slice]:
        ends = np.searchsorted(self.starts, np.arange(0, self.starts[-1], 2 * self.settings.entries_at_once))
        edges = np.unique(np.concatenate(([0], ends, [len(self.absent)])))
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]

    def entries(self, labels: slice) -> Entries:
        starts, part = self._run(labels)
        weights = None if self.entry_weights is None else self.entry_weights[part]
        keys = ordered_keys(as_doubles(self.scores[part]))
        return sorted_entries(starts, keys, self.is_positive[part], weights, self.absent[labels])

    def orders(self) -> list[int]:
        parts = [slice(start, end) for start, end in itertools.pairwise(self.starts.tolist())]
        return [order_of(as_doubles(self.scores[part]), self.is_positive[part]) for part in parts]

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        return joined([self._confusion_at(block, thresholds[block]) for block in self.blocks()])

    def _confusion_at(self, labels: slice, thresholds: NDArray[np.float64]) -> Confusion:
        starts, part = self._run(labels)
        accepted = reaches(self.scores[part], np.repeat(thresholds, np.diff(starts)))
        is_positive, absent = self.is_positive[part], self.absent[labels]
        if self.entry_weights is None:
            tp, fp, positives = (
                _sums_of(which, starts) for which in (accepted & is_positive, accepted & ~is_positive, is_positive)
            )
            negatives = np.diff(starts) - positives
            return Confusion(tp=tp, fp=fp, fn=positives - tp + absent[:, 1], tn=negatives - fp + absent[:, 0])
        label = np.repeat(np.arange(len(thresholds)), np.diff(starts))
        weight = self.entry_weights[part]
        weights = np.column_stack((np.where(is_positive, 0, weight), np.where(is_positive, weight, 0)))
        return confusion_by_sample(label, accepted, weights, absent)

    def binned_blocks(self) -> list[slice]:
        """More labels at once than columns of a matrix, since nothing is copied; but several blocks for each core."""
        labels, sizes = len(self.absent), self.settings
        most = min(AT_ONCE * sizes.labels_at_once, labels // (AT_ONCE * sizes.available_cores))
        return runs(0, labels, max(sizes.labels_at_once, most))

    def columns(self, labels: slice, kernels: Kernels) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        starts, part = self._run(labels)
        inner = starts[1:-1]
        return np.split(self.scores[part], inner), np.split(self.is_positive[part].view(np.uint8), inner)

    def require_no_nan(self) -> None:
        require_no_nan(self.scores)

    def computed_checksums(self) -> NDArray[np.uint64]:
        return np.concatenate([self._checksums_of(block) for block in self.blocks()])

    def _checksums_of(self, labels: slice) -> NDArray[np.uint64]:
        starts, part = self._run(labels)
        marks = row_marks(as_doubles(self.scores[part]).view(np.int64), self.is_positive[part])
        return _sums_of(marks, starts)

    def _run(self, labels: slice) -> tuple[NDArray[np.int64], slice]:
        """Where each of some labels begins in the run of their scores, and where this is."""
        starts = self.starts[labels.start : labels.stop + 1]
        return starts - starts[0], slice(int(starts[0]), int(starts[-1]))


class SparseSource(LabelRuns):
    """The stored scores of a sparse matrix; an absent score, like −inf, is never predicted."""

    def __init__(self, y_true: Any, y_score: Any, weights: NDArray[np.float64] | None) -> None:
        from scipy import sparse

        rows, labels = y_score.shape
        y_score, truth = sparse.csc_array(y_score), sparse.csc_array(y_true)  # no copy of what is by columns
        truth_label = np.repeat(np.arange(labels), np.diff(truth.indptr))
        stored = y_score.data > -np.inf if y_score.dtype.kind == "f" else np.ones(y_score.nnz, dtype=bool)
        if y_score.dtype.kind == "f":
            require_no_nan_entries(y_score.data)
        label = np.repeat(np.arange(labels), np.diff(y_score.indptr))[stored]
        where = y_score.indices[stored]
        starts = np.searchsorted(label, np.arange(labels + 1)).astype(np.int64)
        true_codes = truth_label * rows + truth.indices
        codes = label * rows + where
        position = np.searchsorted(true_codes, codes)
        is_positive = np.zeros(len(codes), dtype=bool)
        inside = position < len(true_codes)
        is_positive[inside] = true_codes[position[inside]] == codes[inside]
        entry_weights = None if weights is None else weights[where]
        unscored = np.ones(len(true_codes), dtype=bool)
        unscored[position[is_positive]] = False
        positives = np.bincount(truth_label[unscored], minlength=labels)
        negatives = rows - np.diff(starts) - positives
        if weights is None:
            absent = np.column_stack((negatives, positives))
        else:
            of_positives = np.bincount(truth_label[unscored], weights[truth.indices[unscored]], minlength=labels)
            taken = np.concatenate((label, truth_label[unscored])), np.concatenate((where, truth.indices[unscored]))
            absent = np.column_stack((_rest_of(weights, *taken, negatives), of_positives))
        super().__init__(starts, y_score.data[stored], is_positive, entry_weights, absent)
        self._rows = int(rows)

    @property
    def rows(self) -> int:
        return self._rows

    @cached_property
    def totals(self) -> NDArray[Any]:
        weights = self.entry_weights
        stored = [
            np.bincount(self.label[which], None if weights is None else weights[which], minlength=len(self.absent))
            for which in (~self.is_positive, self.is_positive)
        ]
        return self.absent + np.column_stack(stored)

    @cached_property
    def label(self) -> NDArray[np.int64]:
        """The label of each entry."""
        return np.repeat(np.arange(len(self.absent)), np.diff(self.starts))

    def pooled(self) -> Source:
        absent = self.absent.sum(axis=0, keepdims=True)
        if not len(self.scores):
            none = np.zeros((0, 2), dtype=absent.dtype)
            rows = none if self.entry_weights is None else np.zeros((0, 2), dtype=np.int64)
            return Counted(Entries.scores(np.zeros(0, dtype=np.uint64), rows, none, absent=absent), self.dtype)
        tally = tally_rows(self.scores, self.is_positive, self.entry_weights)
        return Counted(Entries.scores(tally.keys, tally.rows, tally.weight, absent=absent), tally.dtype)

    def seen(self, totals: NDArray[Any]) -> tuple[RowSample, ...]:
        labels, size = sampled_labels(*totals.T)
        parts = {}
        for label in labels.tolist():
            start, end = self.starts[label : label + 2].tolist()
            entries = start + positions(end - start, size)
            parts[label] = RowSample.of_rows(self.scores[entries], self.is_positive[entries])
        return (RowSample.of_labels(parts),)


def _sums_of(values: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[Any]:
    """The sums of runs of whole numbers; a run may be empty."""
    dtype = np.int64 if values.dtype == bool else values.dtype
    above = np.zeros(len(values) + 1, dtype=dtype)
    np.cumsum(values, dtype=dtype, out=above[1:])
    return np.asarray(above[starts[1:]] - above[starts[:-1]])


def require_no_nan_entries(scores: NDArray[Any]) -> None:
    """Raise on NaN among the stored scores of a sparse matrix."""
    if np.isnan(scores).any():
        some = f"{int(np.isnan(scores).sum()):,} of {len(scores):,}"
        raise ValueError(f"Y_score holds NaN in {some} stored entries: {DROP_OR_FILL}")


def _rest_of(
    weights: NDArray[np.float64], label: NDArray[Any], row: NDArray[Any], rest: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The weight, for each label, of the rows that are not listed for it; `rest` is their number.

    A difference of large sums. So weights are split into multiples of three units, each so coarse that sums of its
    multiples are exact; what is left of the weights after that is far below rounding.
    """
    scale = 2.0 ** np.frexp(weights.max())[1]
    found, part = np.zeros(len(rest)), weights / scale
    for _ in range(3):
        unit = 2.0 ** np.ceil(np.log2(np.abs(part).max(initial=0.0) or 1.0) + np.log2(len(weights)) + 2)
        multiples = (part + unit) - unit
        found += multiples.sum() - np.bincount(label, multiples[row], minlength=len(rest))
        part = part - multiples
    return np.where(rest > 0, np.maximum(found * scale, weights.min() * rest), 0.0)
