"""The best cut of each of many labels at once: the rules of `candidates`, over arrays that hold label after label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from surecut._kernels import scores_of_keys
from surecut.candidates import Candidates, bound_of, confusion_of, least_tie, places, rounding_of
from surecut.confusion import Confusion
from surecut.constraints import InfeasibleError
from surecut.multilabel.calibration import Groups, group_edges
from surecut.sample import Sample
from surecut.tally import sorted_with_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from surecut.metrics import Metric
    from surecut.search import Objective


class Curves(Protocol):
    """What labels are smoothed with."""

    def probability(self, scores: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability of a positive, given a score and its label's position."""


@dataclass(frozen=True, eq=False)
class LabelEntries:
    """The scores of many labels, label after label, each label's in descending order.

    Attributes
    ----------
    starts
        Where each label's entries begin; one more than there are labels.
    keys
        Scores as order-preserving integers.
    positive, negative
        Weight of each class in each entry: counts, or floats if `weighted`.
    absent
        Shape (labels, 2), negatives first: weight of each class in rows that no cut accepts, having no score.
    dtype
        The scores' own dtype, in which thresholds are put.
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    positive: NDArray[Any]
    negative: NDArray[Any]
    absent: NDArray[Any]
    dtype: np.dtype[Any]
    weighted: bool

    @cached_property
    def totals(self) -> NDArray[Any]:
        """Shape (labels, 2), negatives first: weight of each class."""
        scored = np.column_stack([self._last(self._above(one)) for one in (self.negative, self.positive)])
        return np.asarray(self.absent + scored)

    @cached_property
    def confusion(self) -> Confusion:
        """The confusion with each entry, and those before it, accepted.

        Weights are added up from both ends: a remainder of a subtraction would not be 0 where nothing is left, and a
        cell of small weights would drown beside large ones.
        """
        tp, fp = self._above(self.positive), self._above(self.negative)
        tn, fn = (
            self._below(one, above, absent)
            for one, above, absent in ((self.negative, fp, self.absent[:, 0]), (self.positive, tp, self.absent[:, 1]))
        )
        return Confusion(tp=tp, fp=fp, fn=fn, tn=tn)

    @cached_property
    def nothing(self) -> Confusion:
        """The confusion of each label with none of its entries accepted."""
        zero = np.zeros(len(self.absent), dtype=self.totals.dtype)
        return Confusion(tp=zero, fp=zero, fn=self.totals[:, 1], tn=self.totals[:, 0])

    @property
    def _of_entry(self) -> NDArray[np.int64]:
        """The label of each entry."""
        return np.repeat(np.arange(len(self.absent)), np.diff(self.starts))

    def best_cuts(self, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        """Each label's best cut, as `Candidates.best_cut` would find it; `names` are for messages."""
        metric = objective.metric
        defined = has_classes(metric, self.totals)
        if defined.any():
            negatives, positives = self.totals[defined].T
            metric.check_monotone(positives / (positives + negatives))
        of_entry = self._of_entry
        nothing = self._judged(objective, self.nothing)
        ends = self._candidates(skips=objective.can_be_bounded and not objective.constraints)
        values = self._judged(objective, self.confusion[ends])
        undefined = np.isneginf(nothing) & defined
        undefined[of_entry[ends][np.isneginf(values)]] = True
        if not objective.constraints and (undefined & defined).any():
            ends = self._candidates(skips=False)
            values = self._judged(objective, self.confusion[ends])
        label = of_entry[ends]

        best = nothing.copy()
        first = np.searchsorted(label, np.arange(len(self.absent) + 1))
        some = first[1:] > first[:-1]
        if some.any():
            best[some] = np.maximum(best[some], np.maximum.reduceat(values, first[:-1][some]))
        if objective.constraints and (unmet := defined & (best == -np.inf)).any():
            self._raise_infeasible(objective, int(unmet.argmax()), int(unmet.sum()), names)
        least = least_tie(best, self._rounding(metric))
        hits = np.flatnonzero(values >= least[label])
        chosen = np.full(len(best), -1, dtype=np.int64)
        if len(hits):
            position = np.searchsorted(hits, first[:-1])
            found = position < np.searchsorted(hits, first[1:])
            chosen[found] = ends[hits[position[found]]]
        chosen[nothing >= least] = -1
        return self._cuts(chosen, np.where(defined, best, -np.inf) > -np.inf)

    def promising(self, objective: Objective) -> NDArray[np.bool_]:
        """Entries that are bins: whether a cut inside could be as good as the best edge of their label.

        A cut inside a bin accepts at most all of its positives and none of its negatives.
        """
        after, nothing = self.confusion, self.nothing
        first = self.starts[:-1][np.diff(self.starts) > 0]
        of_first = self._of_entry[first]
        before = Confusion(*(np.roll(cell, 1) for cell in (after.tp, after.fp, after.fn, after.tn)))
        for cell in ("tp", "fp", "fn", "tn"):
            getattr(before, cell)[first] = getattr(nothing, cell)[of_first]
        best = self._judged(objective, nothing)
        best[of_first] = np.maximum(best[of_first], np.maximum.reduceat(self._judged(objective, after), first))
        least = least_tie(best, self._rounding(objective.metric))[self._of_entry]
        best_corner = Confusion(tp=after.tp, fp=before.fp, fn=after.fn, tn=before.tn)
        worst_corner = Confusion(tp=before.tp, fp=after.fp, fn=before.fn, tn=after.tn)
        hiding = bound_of(objective.metric, best_corner) >= least
        for constraint in objective.constraints:
            hiding &= constraint.is_met_by_any((before, after, best_corner, worst_corner))
        return np.asarray(hiding)

    def every_value(self, metric: Metric) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The metric with each entry and those before it accepted, and with none accepted; NaN where undefined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            some, none = metric.evaluate(self.confusion), metric.evaluate(self.nothing)
        return np.asarray(some, dtype=float), np.asarray(none, dtype=float)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The confusion of each label at a threshold of its own."""
        label = self._of_entry
        of_entry = thresholds[label]
        accepted = (scores_of_keys(self.keys) >= of_entry) & (of_entry < np.inf)
        masses = np.column_stack((self.negative, self.positive))
        return confusion_by_label(label, accepted, masses, self.absent)

    def groups(self) -> Groups:
        """The same scores in few groups per label, for a calibration."""
        if not len(self.keys):
            none = np.zeros(0)
            return Groups(np.zeros_like(self.starts), none, none, none, np.inf, -np.inf)
        sizes = np.diff(self.starts)
        edges = [
            (self.starts[:-1][sizes == size][:, None] + group_edges(size)).ravel()
            for size in np.unique(sizes[sizes > 0]).tolist()
        ]
        new = np.concatenate(([True], self.keys[1:] != self.keys[:-1]))
        new[self.starts[:-1][sizes > 0]] = True
        # Rows of one score are not told apart: a group begins where a score does.
        first = np.unique(np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))[np.concatenate(edges)])
        middle = (first + np.append(first[1:], len(self.keys))) // 2
        return Groups(
            starts=np.searchsorted(first, self.starts),
            scores=scores_of_keys(self.keys[middle]),
            negative=np.add.reduceat(self.negative.astype(float), first),
            positive=np.add.reduceat(self.positive.astype(float), first),
            lowest=float(scores_of_keys(self.keys.min(keepdims=True))[0]),
            highest=float(scores_of_keys(self.keys.max(keepdims=True))[0]),
        )

    def smoothed(self, calibration: Curves, rho: NDArray[np.float64], labels: slice) -> LabelEntries:
        """The same entries with smoothed labels: a share ρ of each row's weight is divided as the model has it.

        `labels` are the positions of these labels in the calibration. Rows without a score keep their class.
        """
        label = self._of_entry
        weight = self.positive + self.negative
        probability = calibration.probability(scores_of_keys(self.keys), label + labels.start)
        share = rho[labels][label]
        positive = (1 - share) * self.positive + share * weight * probability
        negative = (1 - share) * self.negative + share * weight * (1 - probability)
        return LabelEntries(self.starts, self.keys, positive, negative, self.absent.astype(float), self.dtype, True)

    def _last(self, above: NDArray[Any]) -> NDArray[Any]:
        """What stands at each label's last entry; 0 where it has none."""
        last = np.zeros(len(self.absent), dtype=above.dtype)
        some = self.starts[1:] > self.starts[:-1]
        last[some] = above[self.starts[1:][some] - 1]
        return last

    def _candidates(self, skips: bool) -> NDArray[np.int64]:
        """Positions of the entries above which cuts are tried: the last ones of each distinct score.

        A metric that does not grow with errors is best, and best highest, where a score of some positive is the
        lowest accepted, and all other scores may be skipped; unless it is undefined there, or a constraint needs them.
        """
        if not len(self.keys):
            return np.zeros(0, dtype=np.int64)
        ends = np.concatenate((self.keys[1:] != self.keys[:-1], [True]))
        ends[self.starts[1:][self.starts[1:] > 0] - 1] = True
        if skips:
            if ends.all():
                ends = np.asarray(self.positive > 0)
            else:
                at = np.flatnonzero(ends)
                groups = np.concatenate(([0], at[:-1] + 1))
                return at[np.add.reduceat(self.positive, groups) > 0]
        return np.flatnonzero(ends)

    def _judged(self, objective: Objective, confusion: Confusion) -> NDArray[np.float64]:
        """Values of cuts; −inf where the metric is undefined or a constraint is not met."""
        with np.errstate(invalid="ignore", divide="ignore"):  # labels of one class are sorted out by the caller
            values = np.asarray(objective.metric.evaluate(confusion), dtype=float)
        allowed = ~np.isnan(values)
        for constraint in objective.constraints:
            allowed &= constraint.is_met(confusion)
        return np.where(allowed, values, -np.inf)

    def _rounding(self, metric: Metric) -> Any:
        if not self.weighted:
            return 0.0
        negatives, positives = self.totals.T
        with np.errstate(invalid="ignore", divide="ignore"):
            return rounding_of(metric, positives / (positives + negatives))

    def _above(self, weight: NDArray[Any]) -> NDArray[Any]:
        """Weight of each entry and of those before it, within its label."""
        if weight.dtype.kind == "f":  # each label's sums from its first entry on, so that others do not round them
            above = np.empty_like(weight)
            for where, taken in runs_of_like_length(self.starts):
                matrix = np.zeros(taken.shape)
                matrix[taken] = weight[where]
                above[where] = np.cumsum(matrix, axis=1)[taken]
            return above
        above = np.cumsum(weight)
        if len(self.absent) > 1:
            before = np.concatenate(([0], above))[self.starts]
            above -= np.repeat(before[:-1], np.diff(self.starts))
        return above

    def _below(self, weight: NDArray[Any], above: NDArray[Any], absent: NDArray[Any]) -> NDArray[Any]:
        """Weight of the entries after each one, within its label, and of the rows that have no score."""
        label = self._of_entry
        if weight.dtype.kind != "f":
            return np.asarray((self._last(above) + absent)[label] - above)
        backward = LabelEntries(
            len(weight) - self.starts[::-1], self.keys, weight[::-1], weight, self.absent, self.dtype, self.weighted
        )
        below = np.concatenate((backward._above(weight[::-1])[::-1][1:], [0.0]))
        below[self.starts[1:][np.diff(self.starts) > 0] - 1] = 0.0
        return np.asarray(below + absent[label])

    def _cuts(self, chosen: NDArray[np.int64], defined: NDArray[np.bool_]) -> LabelCuts:
        nothing = chosen < 0
        if len(self.keys):
            at = np.where(nothing, np.minimum(self.starts[:-1], len(self.keys) - 1), chosen)
            below = np.where(nothing, self.starts[:-1], chosen + 1)
            scores = scores_of_keys(np.concatenate((self.keys[at], self.keys[np.minimum(below, len(self.keys) - 1)])))
            upper = np.where(nothing, np.inf, scores[: len(at)])
            lower = np.where(below < self.starts[1:], scores[len(at) :], -np.inf)
            confusion = self.nothing.where(nothing, self.confusion[at])
        else:
            upper, lower = np.full(len(chosen), np.inf), np.full(len(chosen), -np.inf)
            confusion = self.nothing
        return LabelCuts(
            thresholds=places(lower, upper, self.dtype),
            intervals=np.column_stack((lower, upper)),
            confusion=confusion,
            defined=defined,
        )

    def _raise_infeasible(self, objective: Objective, label: int, count: int, names: Sequence[Any]) -> None:
        """Raise what the label's own search raises, with the label's name."""
        entries = slice(self.starts[label], self.starts[label + 1])
        keys = self.keys[entries]
        ends = np.concatenate(([True], keys[1:] != keys[:-1], [True]))[: len(keys) + 1]
        masses = np.column_stack((self.negative[entries], self.positive[entries]))
        scores = scores_of_keys(keys[ends[1:]])
        candidates = Candidates(
            accepted=np.concatenate(([np.inf], scores)),
            rejected=np.concatenate((scores, [-np.inf])),
            confusion=confusion_of(masses, self.absent[label])[ends],
            sample=Sample(weighted=self.weighted),
            dtype=self.dtype,
        )
        try:
            candidates.best_cut(objective.metric, objective.constraints)
        except InfeasibleError as error:
            others = f" (and {count - 1} other labels)" if count > 1 else ""
            raise InfeasibleError(f"label {names[label]!r}{others}: {error}") from None


@dataclass(frozen=True, eq=False)
class LabelCuts:
    """The cuts of some labels; where the metric is not `defined`, the cut means nothing."""

    thresholds: NDArray[np.float64]
    intervals: NDArray[np.float64]
    confusion: Confusion
    defined: NDArray[np.bool_]
    checksums: NDArray[np.uint64] | None = None

    @classmethod
    def joined(cls, parts: Sequence[LabelCuts]) -> LabelCuts:
        """The cuts of several runs of labels as those of one."""
        return cls(
            np.concatenate([part.thresholds for part in parts]),
            np.concatenate([part.intervals for part in parts]),
            joined([part.confusion for part in parts]),
            np.concatenate([part.defined for part in parts]),
            None if any(part.checksums is None for part in parts) else np.concatenate([p.checksums for p in parts]),
        )


def joined(confusions: Sequence[Confusion]) -> Confusion:
    """Confusions of several runs of labels as that of one."""
    cells = ("tp", "fp", "fn", "tn")
    return Confusion(*(np.concatenate([getattr(one, cell) for one in confusions]) for cell in cells))


def confusion_by_label(
    label: NDArray[Any], accepted: NDArray[np.bool_], masses: NDArray[Any], absent: NDArray[Any]
) -> Confusion:
    """The confusion of each label from entries that are accepted or not, and their weight by class.

    `absent` is the weight, by label and class, of rows that are not accepted and have no entry.
    """

    def added(which: NDArray[np.bool_], column: int) -> NDArray[Any]:
        mass = masses[:, column]
        total: NDArray[Any] = np.bincount(label[which], mass[which], minlength=len(absent))
        return total.astype(absent.dtype) if mass.dtype.kind in "iu" else total  # bincount adds floats

    rejected = ~accepted
    return Confusion(
        tp=added(accepted, 1),
        fp=added(accepted, 0),
        fn=added(rejected, 1) + absent[:, 1],
        tn=added(rejected, 0) + absent[:, 0],
    )


def has_classes(metric: Metric, totals: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a metric is defined on each label's rows, as far as classes go."""
    defined = np.ones(len(totals), dtype=bool)
    if metric.needs_negatives:
        defined &= totals[:, 0] > 0
    if metric.needs_positives:
        defined &= totals[:, 1] > 0
    return defined


def runs_of_like_length(starts: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Runs of entries, those of about one length together, as rows of a matrix: where the entries of all its rows
    are, and which places of the matrix they take. No place is wasted for two that are taken.

    >>> for where, taken in runs_of_like_length(np.array([0, 3, 3, 5, 9])):
    ...     print(where, taken.shape)
    [3 4] (1, 2)
    [0 1 2 5 6 7 8] (2, 4)
    """
    lengths = np.diff(starts)
    widths = np.int64(1) << np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for width in np.unique(widths[lengths > 0]).tolist():
        runs = np.flatnonzero((widths == width) & (lengths > 0))
        position = np.arange(width)
        taken = position < lengths[runs][:, None]
        yield (starts[runs][:, None] + position)[taken], taken


def sorted_runs(
    starts: NDArray[np.int64], keys: NDArray[np.uint64], is_positive: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Keys with their class, in descending order within each run.

    >>> sorted_runs(np.array([0, 2, 5]), np.array([3, 4, 7, 9, 8], dtype=np.uint64), np.array([1, 0, 1, 1, 0]))
    (array([4, 3, 9, 8, 7], dtype=uint64), array([0, 1, 1, 0, 1]))
    """
    ordered, positive = np.empty_like(keys), np.empty(len(keys), dtype=np.int64)
    below_all = keys.min(initial=np.iinfo(np.uint64).max) - np.uint64(1)
    for where, taken in runs_of_like_length(starts):
        matrix, classes = np.full(taken.shape, below_all), np.zeros(taken.shape, dtype=bool)
        matrix[taken], classes[taken] = keys[where], is_positive[where]
        matrix, positives = sorted_with_class(matrix, classes)  # what is not taken comes last
        ordered[where], positive[where] = matrix[taken], positives[taken]
    return ordered, positive
