"""The cuts that scores allow, and the choice among them: the one place for ties and for where a threshold is put.

Whatever path leads here (a sorted sample, the survivors of a search, a hull) the same candidates give the same cut:

- `score >= threshold` is positive; a threshold of +inf predicts nothing, even where a score is +inf;
- values within 1e-12, relatively, are ties; among ties the highest threshold wins;
- the threshold is put midway between the lowest accepted and the highest rejected score, in the scores' own dtype.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut import _kernels
from surecut.confusion import Confusion
from surecut.constraints import Constraint, InfeasibleError, listed
from surecut.decisions.cut import Cut
from surecut.metrics import NOISE, Metric, get_metric
from surecut.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

DOUBLE = np.dtype(np.float64)

TIE = 1e-12
"""Values closer than this, relatively, are equal."""

ROUNDING = NOISE
"""What a sum of four rounded products may be off, relatively to its largest values."""


class UndefinedMetricError(ValueError):
    """The metric is 0/0 at every cut of these rows."""


@dataclass(frozen=True)
class Candidates:
    """Cuts in descending order of threshold, the first of which predicts nothing.

    Attributes
    ----------
    accepted
        The lowest score that a cut accepts; +inf where it accepts none.
    rejected
        The highest score that it rejects; −inf where it rejects none.
    confusion
        Its confusion, in counts or weights.
    sample
        The rows behind them.
    dtype
        The scores' own dtype, in which thresholds are put.
    given_prior
        The class balance of the deployment, where it is not the rows' own.
    """

    accepted: NDArray[np.float64]
    rejected: NDArray[np.float64]
    confusion: Confusion
    sample: Sample
    dtype: np.dtype[Any] = DOUBLE
    given_prior: float | None = None

    def best_cut(self, metric: Metric, constraints: tuple[Constraint, ...] = ()) -> Cut:
        """The cut with the largest value among those that meet the constraints; the highest of those that tie."""
        self.check(metric)
        confusion, prior = self.at_prior(), self.prior
        values = np.asarray(metric.evaluate(confusion))
        allowed = ~np.isnan(values)
        for constraint in constraints:
            allowed &= constraint.is_met(confusion)
        if not allowed.any():
            raise self._infeasible(metric, confusion, constraints)
        least = self.least_tie(metric, prior, float(values[allowed].max()))
        with np.errstate(invalid="ignore"):
            chosen = int((allowed & (values >= least)).argmax())
        lower, upper = float(self.rejected[chosen]), float(self.accepted[chosen])
        return Cut(
            threshold=place(lower, upper, self.dtype),
            value=float(values[chosen]),
            metric=metric,
            confusion=self.confusion[chosen],
            interval=(lower, upper),
            prior=prior,
            prior_given=self.given_prior is not None,
            constraints=constraints,
            sample=self.sample,
        )

    def cut_at(self, cut: Cut) -> Cut:
        """The threshold of a cut that was tuned elsewhere, with its confusion and value here, for the same metric.

        The value is NaN where the metric is undefined on these rows.
        """
        confusion = self.confusion[self.at(cut.threshold)]
        try:
            cut.metric.check_classes(confusion.positives, confusion.negatives)
            value = float(cut.metric.evaluate(confusion))
        except ValueError:
            value = np.nan
        return replace(
            cut,
            value=value,
            confusion=confusion,
            prior=float(confusion.prior),
            sample=replace(self.sample, out_of_fold=cut.out_of_fold, pos_label=cut.pos_label),
        )

    def at(self, threshold: float) -> int:
        """Which of the cuts predicts what a threshold predicts."""
        return int(np.searchsorted(-self.accepted, -threshold, side="right")) - 1

    @property
    def prior(self) -> float:
        """The share of positives: that of the rows, or the one that was given."""
        if self.given_prior is not None:
            return self.given_prior
        positives, negatives = self.confusion.positives[0], self.confusion.negatives[0]
        return float(positives / (positives + negatives))

    def check(self, metric: Metric) -> None:
        """Raise where the metric is undefined on these rows, or grows with errors."""
        metric.check_classes(self.confusion.positives[0], self.confusion.negatives[0])
        metric.check_monotone(self.prior)

    def least_tie(self, metric: Metric, prior: float, best: float) -> float:
        """The smallest value that ties with the best: 1e-12 below it, relatively.

        Counts give exact values. Weights, and rates at a prior that was given, carry rounding of the size of the
        metric's extreme values, which must not choose among cuts that are worth nothing.
        """
        if self.sample.weighted or self.given_prior is not None:
            return float(least_tie(best, rounding_of(metric, prior)))
        return float(least_tie(best))

    def at_prior(self) -> Confusion:
        """What metrics see: the counts, or the rates at a prior that was given."""
        if self.given_prior is None:
            return self.confusion
        return self.confusion.at_prior(self.given_prior)

    def _infeasible(self, metric: Metric, confusion: Confusion, constraints: tuple[Constraint, ...]) -> ValueError:
        if not constraints:
            return UndefinedMetricError(f"{metric.name} is undefined at every cut of these {self.sample.rows} rows")
        unmet = [constraint for constraint in constraints if not constraint.is_met(confusion).any()]
        if not unmet:
            return InfeasibleError(
                f"each of {listed(constraints)} can be met by some cut, but no cut meets all of them"
            )
        worst = unmet[0]
        levels = np.asarray(worst.quantity.evaluate(confusion))
        if np.isnan(levels).all():
            return InfeasibleError(f"no cut meets {worst}: {worst.quantity.name} is undefined at every cut")
        best, which = (np.nanmax(levels), "highest") if worst.sense == ">=" else (np.nanmin(levels), "lowest")
        return InfeasibleError(f"no cut meets {worst}: the {which} {worst.quantity.name} attainable is {best:.6g}")


def least_tie(best: Any, rounding: Any = 0.0) -> Any:
    """The smallest values that tie with some best ones: 1e-12 below them, relatively, and less what is rounding.

    >>> float(least_tie(0.5)), float(least_tie(np.inf)), float(least_tie(-np.inf))
    (0.4999999999995, inf, -inf)
    """
    return best - (TIE * np.abs(np.where(np.isfinite(best), best, 0.0)) + rounding)


def rounding_of(metric: Metric, prior: Any) -> Any:
    """By how much values of weighted rows may be off at each prior: a few ulp of the metric's extreme values there."""
    positive, negative = np.asarray(prior, dtype=float).ravel(), 1 - np.asarray(prior, dtype=float).ravel()
    none = np.zeros_like(positive)
    fp = np.concatenate((none, none, negative, negative))
    fn = np.concatenate((none, positive, none, positive))
    with np.errstate(invalid="ignore", divide="ignore"):  # classes that are absent
        corners = Confusion(tp=np.tile(positive, 4) - fn, fp=fp, fn=fn, tn=np.tile(negative, 4) - fp)
        sizes = np.abs(np.asarray(metric.evaluate(corners), dtype=float)).reshape(4, *np.shape(prior))
    return ROUNDING * np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0)


def bound_of(metric: Metric, best_corner: Confusion) -> Any:
    """What a metric is at most inside a box of confusions, of which the corner with fewest errors is given.

    Where it is undefined there, as 0/0 is, it is not bounded: what stands beside the corner may be anything.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        bounds = np.asarray(metric.evaluate(best_corner), dtype=float)
    return np.where(np.isnan(bounds), np.inf, bounds)


def place(lower: float, upper: float, dtype: np.dtype[Any]) -> float:
    """Where in (lower, upper] the threshold stands: midway, in the scores' own dtype, never equal to `lower`.

    >>> place(0.2, 0.4, np.dtype(np.float64)), place(3, 4, np.dtype(np.int64)), place(-np.inf, 0.5, np.dtype(float))
    (0.30000000000000004, 4.0, 0.5)

    With nothing below (or −inf, which has no middle) the threshold is the lowest accepted score itself.
    """
    return float(places(np.array([lower]), np.array([upper]), dtype)[0])


def places(lower: NDArray[np.float64], upper: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """The same for many cuts."""
    with np.errstate(over="ignore", invalid="ignore"):
        middle = lower / 2 + upper / 2
        rounded = np.ceil(middle) if dtype.kind in "iu" else middle.astype(dtype).astype(np.float64)
    return np.where(np.isfinite(lower) & (lower < rounded) & (rounded <= upper), rounded, upper)


def candidates_of(
    accepted: NDArray[np.uint64],
    rejected: NDArray[np.uint64],
    counts: NDArray[Any],
    sample: Sample,
    *,
    dtype: np.dtype[Any] = DOUBLE,
    given_prior: float | None = None,
    absent: Any = 0,
) -> Candidates:
    """Candidates from entries in descending order: lowest and highest key of each, and its weight by class.

    `absent` is the weight, by class, of rows that have no score, which no cut accepts.
    """
    largest, smallest = np.array([np.inf]), np.array([-np.inf])
    return Candidates(
        accepted=np.concatenate((largest, _kernels.scores_of_keys(accepted))),
        rejected=np.concatenate((_kernels.scores_of_keys(rejected), smallest)),
        confusion=confusion_of(counts, absent),
        sample=sample,
        dtype=dtype,
        given_prior=given_prior,
    )


def confusion_of(counts: NDArray[Any], absent: Any = 0) -> Confusion:
    """The confusion of every cut of entries in descending order, by their weight by class: none accepted, then each.

    `absent` is the weight, by class, of rows that no cut accepts. Weights are added up from both ends: a remainder of
    a subtraction would not be 0 where nothing is left, and a cell of small weights would drown beside large ones.
    """
    zero = np.zeros((1, 2), dtype=counts.dtype)
    above = np.concatenate((zero, np.cumsum(counts, axis=0)))
    if counts.dtype.kind == "f":
        below = np.concatenate((zero, np.cumsum(counts[::-1], axis=0)))[::-1] + absent
    else:
        below = above[-1] - above + absent
    return Confusion(tp=above[:, 1], fp=above[:, 0], fn=below[:, 1], tn=below[:, 0])


class Hull(Candidates):
    """The candidates on the upper convex hull of the ROC curve.

    It holds the best cut of every linear-fractional metric and of MCC, at any prior and for any costs, and stays
    small: some 300 vertices at ten million rows.
    """

    def best_cut(self, metric: str | Metric = "f1", constraints: tuple[Constraint, ...] = ()) -> Cut:
        metric = get_metric(metric)
        if not metric.on_hull or constraints:
            what = "a constrained cut" if constraints else f"the best cut for {metric.name}"
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
    return Hull(
        accepted=candidates.accepted[which],
        rejected=candidates.rejected[which],
        confusion=candidates.confusion[which],
        sample=candidates.sample,
        dtype=candidates.dtype,
        given_prior=candidates.given_prior,
    )


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
