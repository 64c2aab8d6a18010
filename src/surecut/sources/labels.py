"""Many labels: what tuning asks of them, wherever their scores are, and the best cut of each."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion, joined, stacked
from surecut.core.entries import Entries, runs_of_like_length
from surecut.core.kernels import by_class, sorted_with_class
from surecut.core.keys import reaches, scores_of_keys
from surecut.core.memory import Counted
from surecut.core.search import InfeasibleLabelError, Source, search
from surecut.core.settings import settings
from surecut.core.tally import ScoreTally
from surecut.core.threads import on_each
from surecut.overlap import RowSample, sampled_labels
from surecut.sample import Sample, fingerprint_of_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.rules import Objective, Placed


class LabelSource(ABC):
    """Labels, or groups, each of which is a sample; they are worked on in blocks of neighbours."""

    def __init__(self) -> None:
        self.settings = settings()

    @property
    @abstractmethod
    def rows(self) -> int | NDArray[np.int64]:
        """The number of rows, or of each label's."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of scores."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The scores' own dtype."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    @abstractmethod
    def totals(self) -> NDArray[Any]:
        """Shape (labels, 2), negatives first: weight of each class."""

    @abstractmethod
    def blocks(self) -> list[slice]:
        """Labels that are worked on together."""

    @abstractmethod
    def entries(self, labels: slice) -> Entries:
        """All scores of a block, sorted."""

    @abstractmethod
    def pooled(self) -> Source:
        """All labels' scores as one sample."""

    @abstractmethod
    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The confusion of each label at its threshold."""

    def part(self, labels: slice, objective: Objective) -> Source:
        """A block as a source of as many samples."""
        return Counted(self.entries(labels), self.dtype_of(labels))

    def cuts(self, labels: slice, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        """The best cut of each label of a block; `names` are theirs."""
        return cuts_of(self.part(labels, objective), objective, names)

    def dtype_of(self, labels: slice) -> np.dtype[Any]:
        """The dtype of a block's scores, in which thresholds are put."""
        return self.dtype

    def blocks_for(self, objective: Objective) -> list[slice]:
        """The blocks that `cuts` and `part` are asked for."""
        return self.blocks()

    def orders(self) -> list[int]:
        """A hash of the order of each label's rows; 0 where that is not known."""
        return [0] * len(self.totals)

    def checksums(self) -> NDArray[np.uint64]:
        """A number for each label that names its rows, whatever their order; none where they cannot be named."""
        return np.zeros(0, dtype=np.uint64)

    @abstractmethod
    def seen(self, totals: NDArray[Any]) -> tuple[RowSample, ...]:
        """Some rows of some labels, to recognise them by; `totals` are the labels', known from their confusions."""

    def sample(self) -> Sample:
        """What one decision for all labels of a row remembers of its validation rows."""
        rows, checksums = int(np.max(self.rows)), self.checksums()
        name = fingerprint_of_labels(rows, checksums) if checksums.any() else ""
        return Sample(rows=rows, weighted=self.weighted, fingerprint=name, seen=self.seen(self.totals))


@dataclass(frozen=True, eq=False)
class LabelCuts:
    """The cuts of some labels; where the metric is not `defined`, the cut means nothing."""

    thresholds: NDArray[np.float64]
    intervals: NDArray[np.float64]
    confusion: Confusion
    defined: NDArray[np.bool_]

    @classmethod
    def of(cls, placed: Placed, defined: NDArray[np.bool_]) -> LabelCuts:
        """The cuts that the rules have placed."""
        return cls(placed.thresholds, np.column_stack((placed.lower, placed.upper)), placed.confusion, defined)

    @classmethod
    def joined(cls, parts: Sequence[LabelCuts]) -> LabelCuts:
        """The cuts of several blocks as those of one."""
        return cls(
            np.concatenate([part.thresholds for part in parts]),
            np.concatenate([part.intervals for part in parts]),
            joined([part.confusion for part in parts]),
            np.concatenate([part.defined for part in parts]),
        )

    def sharing(
        self, own: NDArray[np.bool_], threshold: float, interval: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Thresholds and intervals, with one in common for the labels that have no cut of their own."""
        return np.where(own, self.thresholds, threshold), np.where(own[:, None], self.intervals, interval)


def cuts_of(source: Source, objective: Objective, names: Sequence[Any]) -> LabelCuts:
    """The best cut of each sample of a source."""
    (found,) = search(source, [objective], names)
    return LabelCuts.of(found.placed(), found.defined)


def best_cuts(source: LabelSource, objective: Objective, names: Sequence[Any]) -> LabelCuts:
    """The best cut of each label, blocks on all cores."""

    def work(block: slice) -> LabelCuts | InfeasibleLabelError:
        try:
            return source.cuts(block, objective, names[block])
        except InfeasibleLabelError as error:
            return error  # a block before this one may hold one, too

    found = on_each(work, source.blocks_for(objective), source.settings.available_cores)
    if errors := [part for part in found if isinstance(part, InfeasibleLabelError)]:
        raise InfeasibleLabelError(errors[0].label, errors[0].reason, sum(error.labels for error in errors))
    return LabelCuts.joined([part for part in found if isinstance(part, LabelCuts)])


class TallySource(LabelSource):
    """Labels that were tallied one by one; they may have different numbers of rows."""

    def __init__(self, tallies: Sequence[ScoreTally]) -> None:
        super().__init__()
        self.tallies = tallies

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
        at_once = max(1, self.settings.entries_at_once * len(self.tallies) // self.size)
        alike = [tally.dtype == other.dtype for tally, other in itertools.pairwise(self.tallies)]
        edges = [0, *(i for i, same in enumerate(alike, 1) if not same), len(self.tallies)]
        return [block for start, end in itertools.pairwise(edges) for block in runs(start, end, at_once)]

    def dtype_of(self, labels: slice) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.tallies[labels.start].dtype
        return dtype

    def entries(self, labels: slice) -> Entries:
        some = self.tallies[labels]
        rows = np.concatenate([tally.rows for tally in some])
        return Entries.scores(
            np.concatenate([tally.keys for tally in some]),
            rows,
            np.concatenate([tally.weight for tally in some]) if self.weighted else rows,
            starts=np.concatenate(([0], np.cumsum([len(tally) for tally in some]))),
        )

    def pooled(self) -> Source:
        pooled = sum(self.tallies[1:], self.tallies[0])
        return Counted(pooled.entries, pooled.dtype)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        return stacked(
            [tally.confusion_at(threshold) for tally, threshold in zip(self.tallies, thresholds.tolist(), strict=True)]
        )

    def orders(self) -> list[int]:
        return [tally.order for tally in self.tallies]

    def checksums(self) -> NDArray[np.uint64]:
        return np.array([tally.checksum for tally in self.tallies], dtype=np.uint64)

    def seen(self, totals: NDArray[Any]) -> tuple[RowSample, ...]:
        labels, size = sampled_labels(*totals.T)
        tallies = {label: self.tallies[label] for label in labels.tolist()}
        parts = {label: RowSample.of_counts(tally.keys, tally.rows, size) for label, tally in tallies.items()}
        return (RowSample.of_labels(parts),)


def confusion_at(entries: Entries, thresholds: NDArray[np.float64]) -> Confusion:
    """The confusion of each sample at a threshold of its own; all entries are scores."""
    accepted = reaches(scores_of_keys(entries.low), entries.of_entries(thresholds))
    return confusion_by_sample(entries.sample, accepted, entries.weight, entries.absent)


def confusion_by_sample(
    sample: NDArray[Any], accepted: NDArray[np.bool_], weight: NDArray[Any], absent: NDArray[Any]
) -> Confusion:
    """The confusion of each sample from scores that are accepted or not, and their weight by class.

    `absent` is the weight, by sample and class, of rows that are not accepted and have no score.
    """

    def added(which: NDArray[np.bool_], column: int) -> NDArray[Any]:
        values = weight[:, column]
        total: NDArray[Any] = np.bincount(sample[which], values[which], minlength=len(absent))
        return total.astype(absent.dtype) if values.dtype.kind in "iu" else total  # bincount adds floats

    rejected = ~accepted
    return Confusion(
        tp=added(accepted, 1),
        fp=added(accepted, 0),
        fn=added(rejected, 1) + absent[:, 1],
        tn=added(rejected, 0) + absent[:, 0],
    )


def runs(start: int, end: int, step: int) -> list[slice]:
    """Consecutive slices of a length."""
    return [slice(first, min(first + step, end)) for first in range(start, end, step)]


def sorted_entries(
    starts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    is_positive: NDArray[np.bool_],
    weights: NDArray[np.float64] | None,
    absent: NDArray[Any],
) -> Entries:
    """Rows of several samples, sample after sample, by distinct score."""
    if weights is None:
        keys, positive = sorted_runs(starts, keys, is_positive)
        rows = by_class(positive, 1)
        weight = rows
    else:
        order = np.lexsort((~keys, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))
        keys, is_positive, weights = keys[order], is_positive[order], weights[order]
        rows = np.column_stack((~is_positive, is_positive)).astype(np.int64)
        weight = np.where(rows, weights[:, None], 0.0)
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    is_new[starts[:-1][np.diff(starts) > 0]] = True
    if not is_new.all():
        firsts = np.flatnonzero(is_new)
        keys, starts = keys[firsts], np.searchsorted(firsts, starts)
        weight = np.add.reduceat(weight, firsts, axis=0)
        rows = weight if weights is None else np.add.reduceat(rows, firsts, axis=0)
    return Entries.scores(keys, rows, weight, starts=starts, absent=absent)


def sorted_runs(
    starts: NDArray[np.int64], keys: NDArray[np.uint64], is_positive: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Keys with their class, in descending order within each run.

    >>> sorted_runs(np.array([0, 2, 5]), np.array([3, 4, 7, 9, 8], dtype=np.uint64), np.array([1, 0, 1, 1, 0]))
    (array([4, 3, 9, 8, 7], dtype=uint64), array([0, 1, 1, 0, 1]))
    """
    lengths = np.diff(starts)
    if len(lengths) and len(keys) and (lengths == lengths[0]).all():
        shape = (len(lengths), int(lengths[0]))
        ordered, positive = sorted_with_class(keys.reshape(shape), is_positive.reshape(shape))
        return ordered.reshape(-1), positive.reshape(-1)
    ordered, positive = np.empty_like(keys), np.empty(len(keys), dtype=np.int64)
    below_all = keys.min(initial=np.iinfo(np.uint64).max) - np.uint64(1)
    for where, taken in runs_of_like_length(starts):
        matrix, classes = np.full(taken.shape, below_all), np.zeros(taken.shape, dtype=bool)
        matrix[taken], classes[taken] = keys[where], is_positive[where]
        matrix, positives = sorted_with_class(matrix, classes)  # what is not taken comes last
        ordered[where], positive[where] = matrix[taken], positives[taken]
    return ordered, positive
