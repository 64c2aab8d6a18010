"""Where the scores of many labels are: a dense matrix, the entries of a sparse one, or a tally of each label."""

from __future__ import annotations

import functools
import itertools
import operator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from surecut._inputs import Labels, as_doubles
from surecut._kernels import ordered_keys, row_marks
from surecut._matrices import ROWS_AT_ONCE, is_sparse
from surecut.averages import stacked
from surecut.candidates import candidates_of
from surecut.confusion import Confusion
from surecut.multilabel.bins import BinnedLabels, kernels_for, labels_at_once
from surecut.multilabel.search import LabelCuts, LabelEntries, confusion_by_label, sorted_runs
from surecut.overlap import RowSample, positions, sampled_labels
from surecut.rows import MatrixRows, Shared, available_cores
from surecut.sample import Sample, fingerprint
from surecut.search import search
from surecut.tally import sorted_with_class, tally_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut
    from surecut.search import Objective
    from surecut.tally import ScoreTally

ENTRIES_AT_ONCE = 1 << 17
"""Scores that are sorted together, if a label has no more."""


SORT_BELOW = 20_000
"""Fewer entries than this are sorted to find a cut of all labels; the search would not be faster."""


class LabelBlocks(Protocol):
    """Labels whose sorted scores can be had, run after run."""

    @property
    def totals(self) -> NDArray[Any]:
        """Shape (labels, 2), negatives first: weight of each class."""

    @property
    def size(self) -> int:
        """The number of scores."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The scores' own dtype."""

    def blocks(self) -> list[slice]:
        """Runs of labels that are worked on together."""

    def entries(self, columns: slice) -> LabelEntries:
        """Some labels' scores, sorted."""


class LabelSource(LabelBlocks, Protocol):
    """What averaging asks of the data."""

    @property
    def rows(self) -> int | NDArray[np.int64]:
        """The number of rows, or of each label's."""

    @property
    def weighted(self) -> bool: ...
    def best_cuts(self, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        """The best cut of each label."""

    def pooled_cut(self, objective: Objective) -> Cut:
        """The best cut of all labels' entries taken together."""

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The confusion of each label at its threshold."""

    def checksums(self) -> NDArray[np.uint64]:
        """A number for each label that names its rows, whatever their order."""

    def seen(self) -> RowSample:
        """Some rows of some labels, to recognise them by."""


def label_source(y_true: Any, y_score: Any, weights: NDArray[np.float64] | None) -> LabelSource:
    """The source for checked matrices; rows of weight zero are as good as absent."""
    if weights is not None and not weights.all():
        present = np.flatnonzero(weights)
        y_true, y_score, weights = y_true[present], y_score[present], weights[present]
    if is_sparse(y_score):
        return SparseSource.of(y_true, y_score, weights)
    return DenseSource(y_score, y_true.toarray() if is_sparse(y_true) else y_true, weights)


def no_labels(y_score: Any) -> Any:
    """A matrix of the scores' shape without a single positive, in no memory."""
    if is_sparse(y_score):
        from scipy import sparse

        return sparse.csc_array(y_score.shape, dtype=np.uint8)
    return np.broadcast_to(np.uint8(0), y_score.shape)


@dataclass(frozen=True, eq=False)
class DenseSource:
    """Matrices of one shape, (rows, labels), read in blocks of columns or of rows."""

    scores: NDArray[Any]
    truth: NDArray[Any]
    weights: NDArray[np.float64] | None

    @property
    def rows(self) -> int:
        return len(self.scores)

    @property
    def size(self) -> int:
        return int(self.scores.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scores.dtype

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
        return _runs(0, self.scores.shape[1], max(1, ENTRIES_AT_ONCE // self.rows))

    def best_cuts(self, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        kernels = kernels_for(self.scores, objective) if self.weights is None else None
        if kernels is None:
            return sorted_cuts(self, objective, names)

        def work(blocks: Iterator[slice]) -> dict[int, LabelCuts]:
            binned, found = BinnedLabels(kernels, self.scores, self.truth, objective), {}
            for block in blocks:
                cuts = binned.best_cuts(block, names[block])
                found[block.start] = self.entries(block).best_cuts(objective, names[block]) if cuts is None else cuts
            return found

        workers = min(available_cores(), self.scores.shape[1])
        blocks = _runs(0, self.scores.shape[1], labels_at_once(self.scores, workers))
        # Whoever is free takes the next labels: neighbours in memory, read at the same time.
        found = functools.reduce(operator.or_, on_all_cores(work, [Shared(iter(blocks))] * workers))
        return LabelCuts.joined([found[block.start] for block in blocks])

    def entries(self, columns: slice) -> LabelEntries:
        """Some labels' scores, sorted."""
        keys = ordered_keys(self._doubles(columns))
        is_positive = np.ascontiguousarray(self.truth[:, columns].T) != 0
        labels, rows = keys.shape
        if self.weights is None:
            keys, positive = sorted_with_class(keys, is_positive)
            negative: NDArray[Any] = 1 - positive
        else:
            order = np.argsort(keys, axis=1, kind="stable")[:, ::-1]
            keys, is_positive = np.take_along_axis(keys, order, 1), np.take_along_axis(is_positive, order, 1)
            weight = self.weights[order]
            positive, negative = np.where(is_positive, weight, 0.0), np.where(is_positive, 0.0, weight)
        return LabelEntries(
            starts=np.arange(labels + 1) * rows,
            keys=keys.reshape(-1),
            positive=positive.reshape(-1),
            negative=negative.reshape(-1),
            absent=np.zeros((labels, 2), dtype=positive.dtype),
            dtype=self.scores.dtype,
            weighted=self.weighted,
        )

    def pooled_cut(self, objective: Objective) -> Cut:
        truth = self.truth.view(np.uint8) if self.truth.dtype == bool else self.truth
        labels = Labels(truth, truth.dtype.type(1), truth.dtype.type(0), "Y_true")
        rows = MatrixRows.of(self.scores, labels, self.weights)
        if self.scores.size >= SORT_BELOW and objective.can_be_bounded:
            (cut,) = search(rows, [objective])
            return cut
        return rows.tally().candidates.best_cut(objective.metric, objective.constraints)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        cells = np.zeros((4, len(thresholds)), dtype=self.totals.dtype)
        for block in self._row_blocks():
            accepted = (self.scores[block] >= thresholds) & (thresholds < np.inf)
            truth = self.truth[block] != 0
            for cell, which in zip(cells, (accepted & truth, accepted & ~truth, ~accepted & truth), strict=False):
                cell += np.count_nonzero(which, axis=0) if self.weights is None else self.weights[block] @ which
            if self.weights is not None:
                cells[3] += self.weights[block] @ ~(accepted | truth)
        if self.weights is None:
            cells[3] = self.rows - cells[:3].sum(axis=0)
        return Confusion(*cells)

    def checksums(self) -> NDArray[np.uint64]:
        sums = np.zeros(self.scores.shape[1], dtype=np.uint64)
        for block in self._row_blocks():
            bits = as_doubles(self.scores[block]).view(np.int64)
            sums += row_marks(bits, self.truth[block] != 0).sum(axis=0, dtype=np.uint64)
        return sums

    def seen(self) -> RowSample:
        labels, size = sampled_labels(*self.totals.T)
        rows = positions(self.rows, size)
        scores, truth = self.scores[np.ix_(rows, labels)], self.truth[np.ix_(rows, labels)] != 0
        return RowSample.of_labels(
            {label: RowSample.of_rows(scores[:, i], truth[:, i]) for i, label in enumerate(labels.tolist())}
        )

    def _doubles(self, columns: slice) -> NDArray[np.float64]:
        """Some columns as rows of doubles; NaN is refused."""
        doubles = as_doubles(self.scores[:, columns].T)
        require_no_nan_matrix(doubles.T, columns.start)
        return doubles

    def _row_blocks(self) -> list[slice]:
        return _runs(0, self.rows, max(1, ROWS_AT_ONCE * 128 // self.scores.shape[1]))


@dataclass(frozen=True, eq=False)
class SparseSource:
    """The stored scores of a sparse matrix, label after label; an absent score, like −inf, is never predicted."""

    starts: NDArray[np.int64]
    scores: NDArray[Any]
    is_positive: NDArray[np.bool_]
    absent: NDArray[Any]
    rows: int
    entry_weights: NDArray[np.float64] | None

    @classmethod
    def of(cls, y_true: Any, y_score: Any, weights: NDArray[np.float64] | None) -> SparseSource:
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
        return cls(starts, y_score.data[stored], is_positive, absent, rows, entry_weights)

    @cached_property
    def totals(self) -> NDArray[Any]:
        weights = None if self.entry_weights is None else self.entry_weights
        stored = [
            np.bincount(self.label[which], None if weights is None else weights[which], minlength=len(self.absent))
            for which in (~self.is_positive, self.is_positive)
        ]
        return self.absent + np.column_stack(stored)

    @property
    def size(self) -> int:
        return int(self.scores.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.scores.dtype

    @property
    def weighted(self) -> bool:
        return self.entry_weights is not None

    @cached_property
    def label(self) -> NDArray[np.int64]:
        """The label of each entry."""
        return np.repeat(np.arange(len(self.absent)), np.diff(self.starts))

    def blocks(self) -> list[slice]:
        ends = np.searchsorted(self.starts, np.arange(0, self.starts[-1], 8 * ENTRIES_AT_ONCE))
        edges = np.unique(np.concatenate(([0], ends, [len(self.absent)])))
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]

    def best_cuts(self, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        return sorted_cuts(self, objective, names)

    def entries(self, columns: slice) -> LabelEntries:
        """Some labels' scores, sorted."""
        starts = self.starts[columns.start : columns.stop + 1]
        part = slice(int(starts[0]), int(starts[-1]))
        keys, is_positive = ordered_keys(as_doubles(self.scores[part])), self.is_positive[part]
        if self.entry_weights is None:
            keys, positive = sorted_runs(starts - starts[0], keys, is_positive)
            negative: NDArray[Any] = 1 - positive
        else:
            order = np.lexsort((~keys, self.label[part]))
            keys, is_positive, weight = keys[order], is_positive[order], self.entry_weights[part][order]
            positive, negative = np.where(is_positive, weight, 0.0), np.where(is_positive, 0.0, weight)
        return LabelEntries(
            starts=starts - starts[0],
            keys=keys,
            positive=positive,
            negative=negative,
            absent=self.absent[columns],
            dtype=self.scores.dtype,
            weighted=self.weighted,
        )

    def pooled_cut(self, objective: Objective) -> Cut:
        absent = self.absent.sum(axis=0)
        keys, counts, named = np.zeros(0, dtype=np.uint64), np.zeros((0, 2), dtype=absent.dtype), fingerprint(0, 0)
        dtype = self.scores.dtype
        if len(self.scores):
            tally = tally_rows(self.scores, self.is_positive, self.entry_weights)
            keys, counts, named, dtype = tally.keys, tally.weight, tally.sample.fingerprint, tally.dtype
        sample = Sample(self.rows * len(self.absent), self.weighted, named)
        candidates = candidates_of(keys, keys, counts, sample, dtype=dtype, absent=absent)
        return candidates.best_cut(objective.metric, objective.constraints)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        of_entry = thresholds[self.label]
        accepted = (self.scores.astype(np.float64, copy=False) >= of_entry) & (of_entry < np.inf)
        weight = np.ones(len(accepted), dtype=np.int64) if self.entry_weights is None else self.entry_weights
        masses = np.column_stack((np.where(self.is_positive, 0, weight), np.where(self.is_positive, weight, 0)))
        return confusion_by_label(self.label, accepted, masses, self.absent)

    def checksums(self) -> NDArray[np.uint64]:
        marks = row_marks(as_doubles(self.scores).view(np.int64), self.is_positive)
        above = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(marks, dtype=np.uint64)))
        return above[self.starts[1:]] - above[self.starts[:-1]]

    def seen(self) -> RowSample:
        labels, size = sampled_labels(*self.totals.T)
        parts = {}
        for label in labels.tolist():
            start, end = self.starts[label : label + 2].tolist()
            entries = start + positions(end - start, size)
            parts[label] = RowSample.of_rows(self.scores[entries], self.is_positive[entries])
        return RowSample.of_labels(parts)


@dataclass(frozen=True, eq=False)
class TallySource:
    """Labels that were tallied one by one; they may have different numbers of rows."""

    tallies: Sequence[ScoreTally]

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        return np.array([tally.rows.sum() for tally in self.tallies])

    @property
    def size(self) -> int:
        return sum(map(len, self.tallies))

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(*{tally.dtype for tally in self.tallies})

    @property
    def weighted(self) -> bool:
        return any(tally.weight is not tally.rows for tally in self.tallies)

    @cached_property
    def totals(self) -> NDArray[Any]:
        return np.array([tally.weight.sum(axis=0) for tally in self.tallies])

    def blocks(self) -> list[slice]:
        """Runs of labels whose scores are of one dtype, in which their thresholds are put."""
        at_once = max(1, ENTRIES_AT_ONCE * len(self.tallies) // self.size)
        alike = [tally.dtype == other.dtype for tally, other in itertools.pairwise(self.tallies)]
        edges = [0, *(i for i, same in enumerate(alike, 1) if not same), len(self.tallies)]
        return [block for start, end in itertools.pairwise(edges) for block in _runs(start, end, at_once)]

    def best_cuts(self, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        return sorted_cuts(self, objective, names)

    def entries(self, columns: slice) -> LabelEntries:
        """Some labels' scores, which are sorted already."""
        some = self.tallies[columns]
        negative, positive = np.concatenate([tally.weight for tally in some]).T
        return LabelEntries(
            starts=np.concatenate(([0], np.cumsum([len(tally) for tally in some]))),
            keys=np.concatenate([tally.keys for tally in some]),
            positive=positive,
            negative=negative,
            absent=np.zeros((len(some), 2), dtype=positive.dtype),
            dtype=some[0].dtype,
            weighted=self.weighted,
        )

    def pooled_cut(self, objective: Objective) -> Cut:
        pooled = sum(self.tallies[1:], self.tallies[0])
        return pooled.candidates.best_cut(objective.metric, objective.constraints)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        return stacked(
            [
                tally.candidates.confusion[tally.candidates.at(threshold)]
                for tally, threshold in zip(self.tallies, thresholds.tolist(), strict=True)
            ]
        )

    def checksums(self) -> NDArray[np.uint64]:
        return np.array([tally.checksum for tally in self.tallies], dtype=np.uint64)

    def seen(self) -> RowSample:
        labels, size = sampled_labels(*self.totals.T)
        tallies = {label: self.tallies[label] for label in labels.tolist()}
        parts = {label: RowSample.of_counts(tally.keys, tally.rows, size) for label, tally in tallies.items()}
        return RowSample.of_labels(parts)


def sorted_cuts(source: LabelSource, objective: Objective, names: Sequence[Any]) -> LabelCuts:
    """The best cut of each label by sorting all scores."""

    def work(block: slice) -> LabelCuts:
        return source.entries(block).best_cuts(objective, names[block])

    return LabelCuts.joined(on_all_cores(work, source.blocks()))


def require_no_nan_matrix(scores: NDArray[np.float64], first_column: int = 0) -> None:
    """Raise on NaN, saying how many and where the first one stands."""
    missing = np.isnan(scores)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            f"Y_score holds NaN, first in row {row} of column {first_column + column}: a row without a score cannot be "
            "ranked; drop or fill these rows, or pass a sparse matrix, where an absent score is never predicted"
        )


def require_no_nan_entries(scores: NDArray[Any]) -> None:
    """Raise on NaN among the stored scores of a sparse matrix."""
    if np.isnan(scores).any():
        raise ValueError(f"Y_score holds NaN in {int(np.isnan(scores).sum())} of {len(scores)} stored entries")


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


def _runs(start: int, end: int, step: int) -> list[slice]:
    return [slice(first, min(first + step, end)) for first in range(start, end, step)]


def on_all_cores(work: Callable[[Any], Any], blocks: list[Any]) -> list[Any]:
    """Work done on each block, by as many threads as there are cores."""
    workers = min(available_cores(), len(blocks))
    if workers == 1:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, blocks))
