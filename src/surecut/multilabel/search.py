"""The best cut of each of many labels at once: the rules of `candidates`, over arrays that hold label after label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from surecut._kernels import scores_of_keys
from surecut.candidates import ROUNDING, TIE, Candidates, Sample, places
from surecut.confusion import Confusion
from surecut.constraints import InfeasibleError
from surecut.multilabel.calibration import Groups, group_edges
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
    totals
        Shape (labels, 2), negatives first: weight of each class, with that of rows that have no score.
    dtype
        The scores' own dtype, in which thresholds are put.
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    positive: NDArray[Any]
    negative: NDArray[Any]
    totals: NDArray[Any]
    dtype: np.dtype[Any]
    weighted: bool

    def best_cuts(self, objective: Objective, names: Sequence[Any]) -> LabelCuts:
        """Each label's best cut, as `Candidates.best_cut` would find it; `names` are for messages."""
        metric = objective.metric
        defined = has_classes(metric, self.totals)
        if defined.any():
            negatives, positives = self.totals[defined].T
            metric.check_monotone(positives / (positives + negatives))
        tp, fp = self._above(self.positive), self._above(self.negative)
        of_entry = np.repeat(np.arange(len(self.totals)), np.diff(self.starts))
        ends = self._candidates(skips=objective.can_be_bounded and not objective.constraints)
        values = self._judged(objective, tp[ends], fp[ends], of_entry[ends])
        if not objective.constraints and (np.isneginf(values) & defined[of_entry[ends]]).any():
            ends = self._candidates(skips=False)
            values = self._judged(objective, tp[ends], fp[ends], of_entry[ends])
        label = of_entry[ends]
        nothing = self._judged(objective, self._zero(), self._zero(), np.arange(len(self.totals)))

        best = nothing.copy()
        first = np.searchsorted(label, np.arange(len(self.totals) + 1))
        some = first[1:] > first[:-1]
        if some.any():
            best[some] = np.maximum(best[some], np.maximum.reduceat(values, first[:-1][some]))
        if objective.constraints and (unmet := defined & (best == -np.inf)).any():
            self._raise_infeasible(objective, int(unmet.argmax()), int(unmet.sum()), names)
        least = best - self._tie(metric, best)
        hits = np.flatnonzero(values >= least[label])
        chosen = np.full(len(best), -1, dtype=np.int64)
        if len(hits):
            position = np.searchsorted(hits, first[:-1])
            found = position < np.searchsorted(hits, first[1:])
            chosen[found] = ends[hits[position[found]]]
        chosen[nothing >= least] = -1
        return self._cuts(chosen, tp, fp, np.where(defined, best, -np.inf) > -np.inf)

    def every_value(self, metric: Metric) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The metric with each entry and those before it accepted, and with none accepted; NaN where undefined."""
        label = np.repeat(np.arange(len(self.totals)), np.diff(self.starts))
        some = self._values(metric, self._above(self.positive), self._above(self.negative), label)
        return some[0], self._values(metric, self._zero(), self._zero(), np.arange(len(self.totals)))[0]

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The confusion of each label at a threshold of its own."""
        label = np.repeat(np.arange(len(self.totals)), np.diff(self.starts))
        of_entry = thresholds[label]
        accepted = (scores_of_keys(self.keys) >= of_entry) & (of_entry < np.inf)
        tp = np.bincount(label[accepted], self.positive[accepted], minlength=len(thresholds))
        fp = np.bincount(label[accepted], self.negative[accepted], minlength=len(thresholds))
        negatives, positives = self.totals.T
        return Confusion(tp=tp, fp=fp, fn=np.maximum(positives - tp, 0), tn=np.maximum(negatives - fp, 0))

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
        label = np.repeat(np.arange(len(self.totals)), np.diff(self.starts))
        weight = self.positive + self.negative
        probability = calibration.probability(scores_of_keys(self.keys), label + labels.start)
        share = rho[labels][label]
        positive = (1 - share) * self.positive + share * weight * probability
        negative = weight - positive
        totals = np.empty(self.totals.shape)
        for column, before, after in ((0, self.negative, negative), (1, self.positive, positive)):
            absent = self.totals[:, column] - self._last(self._above(before))
            absent = np.where(absent > 1e-9 * self.totals[:, column], absent, 0.0)  # what is less is rounding
            totals[:, column] = absent + self._last(self._above(after))
        return LabelEntries(self.starts, self.keys, positive, negative, totals, self.dtype, weighted=True)

    def _last(self, above: NDArray[Any]) -> NDArray[Any]:
        """What stands at each label's last entry; 0 where it has none."""
        last = np.zeros(len(self.totals), dtype=above.dtype)
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

    def _judged(self, objective: Objective, tp: Any, fp: Any, label: Any) -> NDArray[np.float64]:
        """Values of cuts; −inf where the metric is undefined or a constraint is not met."""
        values, confusion = self._values(objective.metric, tp, fp, label)
        allowed = ~np.isnan(values)
        for constraint in objective.constraints:
            allowed &= constraint.is_met(confusion)
        return np.where(allowed, values, -np.inf)

    def _values(self, metric: Metric, tp: Any, fp: Any, label: Any) -> tuple[NDArray[np.float64], Confusion]:
        negatives, positives = self.totals[label].T
        confusion = Confusion(tp=tp, fp=fp, fn=np.maximum(positives - tp, 0), tn=np.maximum(negatives - fp, 0))
        with np.errstate(invalid="ignore", divide="ignore"):  # labels of one class are sorted out by the caller
            return np.asarray(metric.evaluate(confusion), dtype=float), confusion

    def _tie(self, metric: Metric, best: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            tie = TIE * np.abs(np.where(best == -np.inf, 0.0, best))
        if self.weighted:
            negatives, positives = self.totals.T
            with np.errstate(invalid="ignore", divide="ignore"):
                prior = positives / (positives + negatives)
                corners = [
                    np.abs(metric.evaluate(Confusion(prior - fn, fp, fn, 1 - prior - fp)))
                    for fp in (0 * prior, 1 - prior)
                    for fn in (0 * prior, prior)
                ]
            tie = tie + ROUNDING * np.nanmax([np.zeros(len(tie)), *corners], axis=0)
        return np.asarray(tie)

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
        if len(self.totals) > 1:
            before = np.concatenate(([0], above))[self.starts]
            above -= np.repeat(before[:-1], np.diff(self.starts))
        return above

    def _zero(self) -> NDArray[Any]:
        return np.zeros(len(self.totals), dtype=self.totals.dtype)

    def _cuts(self, chosen: NDArray[np.int64], tp: Any, fp: Any, defined: NDArray[np.bool_]) -> LabelCuts:
        nothing = chosen < 0
        if len(self.keys):
            at = np.where(nothing, np.minimum(self.starts[:-1], len(self.keys) - 1), chosen)
            below = np.where(nothing, self.starts[:-1], chosen + 1)
            scores = scores_of_keys(np.concatenate((self.keys[at], self.keys[np.minimum(below, len(self.keys) - 1)])))
            upper = np.where(nothing, np.inf, scores[: len(at)])
            lower = np.where(below < self.starts[1:], scores[len(at) :], -np.inf)
            tp, fp = np.where(nothing, 0, tp[at]), np.where(nothing, 0, fp[at])
        else:
            upper, lower, tp, fp = (
                np.full(len(chosen), np.inf),
                np.full(len(chosen), -np.inf),
                self._zero(),
                self._zero(),
            )
        negatives, positives = self.totals.T
        return LabelCuts(
            thresholds=places(lower, upper, self.dtype),
            intervals=np.column_stack((lower, upper)),
            confusion=Confusion(tp=tp, fp=fp, fn=np.maximum(positives - tp, 0), tn=np.maximum(negatives - fp, 0)),
            defined=defined,
        )

    def _raise_infeasible(self, objective: Objective, label: int, count: int, names: Sequence[Any]) -> None:
        """Raise what the label's own search raises, with the label's name."""
        entries = slice(self.starts[label], self.starts[label + 1])
        keys, zero = self.keys[entries], self._zero()[:1]
        ends = np.concatenate(([True], keys[1:] != keys[:-1], [True]))[: len(keys) + 1]
        tp = np.concatenate((zero, np.cumsum(self.positive[entries])))[ends]
        fp = np.concatenate((zero, np.cumsum(self.negative[entries])))[ends]
        negatives, positives = self.totals[label]
        scores = scores_of_keys(keys[ends[1:]])
        candidates = Candidates(
            accepted=np.concatenate(([np.inf], scores)),
            rejected=np.concatenate((scores, [-np.inf])),
            confusion=Confusion(tp=tp, fp=fp, fn=positives - tp, tn=negatives - fp),
            sample=Sample(0, self.dtype, "", self.weighted),
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
