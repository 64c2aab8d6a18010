"""All cuts that the entries of one sample allow, and those of them on the ROC hull."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.core import rules
from surecut.core.keys import scores_of_keys
from surecut.core.memory import Counted
from surecut.core.rules import Objective
from surecut.core.search import Found, search
from surecut.decisions.cut import Cut
from surecut.metrics import Metric, get_metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.constraints import Constraint
    from surecut.core.entries import Entries
    from surecut.core.rules import Placed
    from surecut.sample import Sample


def cut_of(found: Found, sample: Sample) -> Cut:
    """The cut of a search of one sample."""
    verdict = found.verdict
    accepted = None if verdict.accepted is None else verdict.accepted[:, 0].tolist()
    placed = rules.placed_one(found.entries, int(verdict.winner[0]), found.dtype, accepted)
    return _cut_of(placed, float(verdict.value[0]), found.objective, sample)


def cut_at_edge(entries: Entries, edge: int, objective: Objective, dtype: np.dtype[Any], sample: Sample) -> Cut:
    """The cut at an edge of the entries of one sample."""
    placed = rules.placed_one(entries, edge, dtype)
    (value,) = objective.metric_values(entries.edges_at(np.array([edge]), 0)).tolist()
    return _cut_of(placed, value, objective, sample)


def _cut_of(placed: Placed, value: float, objective: Objective, sample: Sample) -> Cut:
    confusion = placed.confusion
    return Cut(
        threshold=placed.thresholds,
        value=value,
        metric=objective.metric,
        confusion=confusion,
        interval=(placed.lower, placed.upper),
        prior=float(confusion.prior) if objective.prior is None else objective.prior,
        prior_given=objective.prior is not None,
        constraints=objective.constraints,
        sample=sample,
    )


@dataclass(frozen=True, eq=False)
class Candidates:
    """Cuts in descending order of threshold, the first of which predicts nothing: the edges of some entries.

    Attributes
    ----------
    entries
        Entries of one sample.
    sample
        The rows behind them.
    dtype
        The scores' own dtype, in which thresholds are put.
    given_prior
        The class balance of the deployment, where it is not the sample's.
    """

    entries: Entries
    sample: Sample
    dtype: np.dtype[Any]
    given_prior: float | None = None

    @cached_property
    def accepted(self) -> NDArray[np.float64]:
        """The lowest score that each cut accepts; +inf where it accepts none."""
        return np.concatenate(([np.inf], scores_of_keys(self.entries.low)))

    @cached_property
    def rejected(self) -> NDArray[np.float64]:
        """The highest score that each cut rejects; −inf where it rejects none."""
        return np.concatenate((scores_of_keys(self.entries.high), [-np.inf]))

    @property
    def confusion(self) -> Confusion:
        """The confusion of each cut, in counts or weights."""
        return self.entries.edges

    @property
    def prior(self) -> float:
        """The share of positives: that of the rows, or the one that was given."""
        if self.given_prior is not None:
            return self.given_prior
        negatives, positives = self.entries.totals[0]
        return float(positives / (positives + negatives))

    def at_prior(self) -> Confusion:
        """What metrics are evaluated at: the counts, or the rates at a prior that was given."""
        return self.confusion if self.given_prior is None else self.confusion.at_prior(self.given_prior)

    def at(self, threshold: Any) -> Any:
        """Which of the cuts predicts what a threshold predicts, or what each of some thresholds does."""
        return np.searchsorted(-self.accepted, np.negative(threshold), side="right") - 1

    def best_cut(self, metric: Metric, constraints: tuple[Constraint, ...] = ()) -> Cut:
        """The cut with the largest value among those that meet the constraints; the highest of those that tie."""
        objective = Objective(metric, constraints, self.given_prior)
        in_scores = bool((self.entries.low == self.entries.high).all())
        source = Counted(self.entries, self.dtype, refines=in_scores)
        (found,) = search(source, [objective])
        if not found.defined[0]:
            raise rules.infeasible(objective, self.confusion, self.sample.rows)
        return cut_of(found, self.sample)

    def best_cut_among(self, metric: Metric, allowed: NDArray[np.bool_]) -> Cut:
        """The best of some of the cuts."""
        objective = Objective(metric, (), self.given_prior)
        objective.check(self.entries.totals)
        values = np.where(allowed, objective.values(self.confusion), -np.inf)
        if not (values > -np.inf).any():
            raise rules.infeasible(objective, self.confusion, self.sample.rows)
        chosen = int(rules.first_best(values, objective.rounding(self.entries.totals, self.entries.weighted)))
        return cut_at_edge(self.entries, chosen, objective, self.dtype, self.sample)

    def cut_at(self, cut: Cut) -> Cut:
        """The threshold of a cut that was tuned elsewhere, with its confusion and value here, for the same metric.

        The value is NaN where the metric is undefined on these rows.
        """
        return self.cut_with(cut, self.confusion[self.at(cut.threshold)])

    def cut_with(self, cut: Cut, confusion: Confusion) -> Cut:
        """The threshold of a cut that was tuned elsewhere, with what it does to the rows of this sample."""
        try:
            cut.metric.check_classes(confusion.positives, confusion.negatives)
            value = float(cut.metric.evaluate(confusion))
        except ValueError:
            value = np.nan
        return replace(cut, value=value, confusion=confusion, prior=float(confusion.prior), sample=self.sample)


class Hull(Candidates):
    """The candidates on the upper convex hull of the ROC curve.

    It holds the best cut of every linear-fractional metric and of MCC, at any prior and for any costs, and stays
    small: some 300 vertices at ten million rows.
    """

    def best_cut(self, metric: str | Metric = "f1", constraint: Any = None) -> Cut:
        """The best cut for a metric whose optimum is a vertex; a constrained one need not be."""
        metric = get_metric(metric)
        if not metric.on_hull or constraint:
            what = "a constrained cut" if constraint else f"the best cut for {metric.name}"
            raise ValueError(f"{what} need not lie on the ROC hull: tune it on the scores, or on their ScoreTally")
        return super().best_cut(metric)


def hull_of(candidates: Candidates) -> Hull:
    """The vertices of the upper hull of (FP, TP), and what takes their place for a metric that is undefined at some.

    A linear-fractional metric is undefined where its denominator is 0: nowhere, at one corner, or along one side of
    the box of confusions. Its best cut is a vertex of the hull of all other cuts. Those at a side (no FP, no TP, no TN
    or no FN) and those at the corner where nothing, or everything, is accepted are the first or the last ones; those
    without any error are one. So beside each of these gaps the hull is continued.
    """
    confusion = candidates.confusion.ready_for_products()
    fp, tp, fn, tn = confusion.fp, confusion.tp, confusion.fn, confusion.tn
    last = len(tp) - 1
    vertices = _upper_hull(fp, tp, np.arange(last + 1))
    kept = [vertices]
    for some in (fp, tp, fp + tp):
        if some[last] > 0:
            first = int((some > 0).argmax())
            kept.append(_upper_hull(fp, tp, np.arange(first, vertices[np.searchsorted(vertices, first)] + 1)))
    for some in (tn, fn, fn + tn):
        if some[0] > 0:
            end = last - int((some[::-1] > 0).argmax())
            before = vertices[np.searchsorted(vertices, end, side="right") - 1]
            kept.append(_upper_hull(fp, tp, np.arange(before, end + 1)))
    for perfect in np.flatnonzero((fp == 0) & (fn == 0)).tolist():
        before = vertices[max(0, int(np.searchsorted(vertices, perfect)) - 1)]
        after = vertices[min(len(vertices) - 1, int(np.searchsorted(vertices, perfect, side="right")))]
        others = np.arange(before, after + 1)
        kept.append(_upper_hull(fp, tp, others[others != perfect]))
    which = np.unique(np.concatenate(kept))
    # Between two vertices the entries are one, whose lower edge is the second vertex.
    entries = candidates.entries.merged(which[which < last])
    return Hull(entries, candidates.sample, candidates.dtype, candidates.given_prior)


def _upper_hull(fp: NDArray[Any], tp: NDArray[Any], kept: NDArray[np.intp]) -> NDArray[np.intp]:
    """The vertices among some points, in order, by dropping points below the chord of their neighbours.

    A point below a chord of two others is no vertex, so all such points go at once, again and again; what is left
    after some rounds is cleaned by one monotone chain.
    """
    if len(kept) < 3:
        return kept
    moves = (np.diff(fp[kept]) != 0) | (np.diff(tp[kept]) != 0)
    kept = kept[np.concatenate(([True], moves))]
    for _ in range(64):
        inner = _above_chord(fp[kept], tp[kept])
        if inner.all():
            return kept
        kept = kept[np.concatenate(([True], inner, [True]))]
    return _monotone_chain(fp, tp, kept)


def _above_chord(fp: NDArray[Any], tp: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each inner point lies above the chord from its predecessor to its successor."""
    left = (fp[1:-1] - fp[:-2]) * (tp[2:] - tp[1:-1])
    right = (tp[1:-1] - tp[:-2]) * (fp[2:] - fp[1:-1])
    return np.asarray(right > left)


def _monotone_chain(fp: NDArray[Any], tp: NDArray[Any], kept: NDArray[np.intp]) -> NDArray[np.intp]:
    chain: list[int] = []
    for point in kept.tolist():
        while len(chain) > 1 and not _above_chord(fp[[*chain[-2:], point]], tp[[*chain[-2:], point]])[0]:
            chain.pop()
        chain.append(point)
    return np.array(chain, dtype=np.intp)
