"""The rules: what a cut is worth, what a bin can hide, which cut wins, and where its threshold is put.

This is the only module that knows them, for one sample and for many, at any resolution, but for compiled loops that
judge ratios of counts in the same way (`judge` and `best_edges` of `compiled`):

- `score >= threshold` is positive; a threshold of +inf predicts nothing, even where a score is +inf;
- a cut at which the metric is undefined, or which does not meet a constraint, is never chosen;
- a cut inside a bin is worth at most the metric with all of the bin's positives accepted and none of its negatives,
  because metrics do not increase in FP or FN (gains of zones may: each says which corner of the bin is its best);
- values within 1e-12, relatively, are ties; among ties the highest threshold wins;
- the threshold is put midway between the lowest accepted and the highest rejected score, in the scores' own dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.confusion import Confusion
from surecut.constraints import Constraint, InfeasibleError, listed
from surecut.core.entries import Entries
from surecut.core.kernels import compiled_judge
from surecut.core.keys import score_of_key, scores_of_keys
from surecut.core.settings import settings
from surecut.metrics import NOISE, LinearFractionalMetric, Metric, WholeRatio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.kernels import Kernels, SortedColumns

AT_ONCE = 1 << 15
"""Cuts that are evaluated together."""

SPARSE_FROM = 4096
"""With so few entries all edges are evaluated."""

TIE = 1e-12
"""Values closer than this, relatively, are equal."""

LOWEST = -float(np.finfo(np.float64).max) / 2
"""Stands for a metric's value of −inf, which is worth more than a cut that may not be chosen."""


class UndefinedMetricError(ValueError):
    """The metric is 0/0 at every cut of these rows."""


@dataclass(frozen=True)
class Objective:
    """What a cut should be best for, what it must meet, and the class balance at which both are evaluated.

    `prior` is that of the deployment, where it is not the sample's own.
    """

    metric: Metric
    constraints: tuple[Constraint, ...] = ()
    prior: float | None = None

    @property
    def can_be_bounded(self) -> bool:
        """Whether a bin can be bounded without a look inside; otherwise every cut has to be tried."""
        return self.metric.extremes_at_corners and all(c.quantity.extremes_at_corners for c in self.constraints)

    def at_prior(self, confusion: Confusion) -> Confusion:
        """What metrics are evaluated at: the counts, or the rates at a prior that was given."""
        if self.prior is None:
            return confusion
        with np.errstate(invalid="ignore", divide="ignore"):  # a sample without one of the classes has no rates
            return confusion.at_prior(self.prior)

    def metric_values(self, confusion: Confusion) -> NDArray[np.float64]:
        """The metric at each confusion; NaN where it is undefined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.metric.evaluate(self.at_prior(confusion)), dtype=float)

    def values(self, confusion: Confusion) -> NDArray[np.float64]:
        """What each cut is worth, at least `LOWEST`; −inf where the metric is undefined or a constraint is not met.

        Many cuts are evaluated piece by piece.
        """
        if np.size(confusion.tp) > AT_ONCE:
            return _in_pieces(len(confusion.tp), lambda piece: self.values(confusion[piece]))
        values = np.maximum(self.metric_values(confusion), LOWEST)
        allowed = ~np.isnan(values)
        if self.constraints:
            confusion = self.at_prior(confusion)
            for constraint in self.constraints:
                allowed &= constraint.is_met(confusion)
        return np.where(allowed, values, -np.inf)

    def whole_ratio(self, entries: Entries) -> WholeRatio | None:
        """What edges are worth as a ratio of whole numbers, with coefficients of each sample; None where it is not."""
        metric = self.metric
        if self.constraints or self.prior is not None or entries.weighted or entries.in_floats:
            return None
        if (
            not isinstance(metric, LinearFractionalMetric)
            or type(metric).evaluate is not LinearFractionalMetric.evaluate
        ):
            return None
        negatives, positives = entries.totals[0].tolist() if entries.samples == 1 else entries.totals.T
        return metric.in_accepted(positives, negatives)

    def bounds(self, before: Confusion, after: Confusion) -> NDArray[np.float64]:
        """What cuts between two edges are worth at most; −inf where none can meet the constraints.

        Where the metric is undefined at the best corner, as 0/0 is, it is not bounded: the value beside the corner may
        be anything.
        """
        values = self.metric_values(self.metric.best_corner(before, after))
        bounds = np.where(np.isnan(values), np.inf, np.maximum(values, LOWEST))
        if self.constraints:
            right = Confusion(tp=after.tp, fp=before.fp, fn=after.fn, tn=before.tn)
            wrong = Confusion(tp=before.tp, fp=after.fp, fn=before.fn, tn=after.tn)
            corners = [self.at_prior(corner) for corner in (before, after, right, wrong)]
            reachable = np.logical_and.reduce([one.is_met_by_any(corners) for one in self.constraints])
            bounds = np.where(reachable, bounds, -np.inf)
        return np.asarray(bounds)

    def has_classes(self, totals: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the metric is defined on each sample's rows, as far as classes go; totals as in `Entries.totals`."""
        defined = np.ones(len(totals), dtype=bool)
        if self.metric.needs_negatives:
            defined &= totals[:, 0] > 0
        if self.metric.needs_positives:
            defined &= totals[:, 1] > 0
        return defined

    def check(self, totals: NDArray[Any]) -> None:
        """Raise where the metric is undefined on the only sample, for want of a class, or grows with errors there."""
        negatives, positives = totals[0].tolist()
        self.metric.check_classes(positives, negatives)
        if not self.metric.monotone_by_construction:
            self.metric.check_monotone(positives / (positives + negatives) if self.prior is None else self.prior)

    def check_each(self, totals: NDArray[Any]) -> None:
        """Raise where the metric grows with errors on any of the samples that have the classes it needs."""
        if self.metric.monotone_by_construction:
            return
        defined = self.has_classes(totals)
        if defined.any():
            self.metric.check_monotone(self._priors(totals[defined]))

    def rounding(self, totals: NDArray[Any], weighted: bool) -> Any:
        """By how much values may be off on each sample.

        Counts give exact values. Weights, and rates at a prior that was given, carry rounding of the size of the
        metric's extreme values, which must not choose among cuts that are worth nothing.
        """
        if not weighted and self.prior is None:
            return 0.0
        return rounding_of(self.metric, self._priors(totals))

    def _priors(self, totals: NDArray[Any]) -> NDArray[np.float64]:
        if self.prior is not None:
            return np.full(len(totals), self.prior)
        with np.errstate(invalid="ignore"):
            return np.asarray(totals[:, 1] / totals.sum(axis=1))


def rounding_of(metric: Metric, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much values of weighted rows may be off at each prior: a few ulp of the metric's extreme values there."""
    none, negative = np.zeros_like(prior), 1 - prior
    fp = np.concatenate((none, none, negative, negative))
    fn = np.concatenate((none, prior, none, prior))
    with np.errstate(invalid="ignore", divide="ignore"):  # classes that are absent
        corners = Confusion(tp=np.tile(prior, 4) - fn, fp=fp, fn=fn, tn=np.tile(negative, 4) - fp)
        sizes = np.abs(np.asarray(metric.evaluate(corners), dtype=float)).reshape(4, len(prior))
    return np.asarray(NOISE * np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0))


def least_tie(best: Any, rounding: Any = 0.0) -> Any:
    """The smallest values that tie with some best ones: 1e-12 below them, relatively, and less what is rounding.

    >>> float(least_tie(0.5)), float(least_tie(np.inf)), float(least_tie(-np.inf))
    (0.4999999999995, inf, -inf)
    """
    return best - (TIE * np.abs(np.where(np.isfinite(best), best, 0.0)) + rounding)


def _in_pieces(size: int, values: Callable[[slice], NDArray[np.float64]]) -> NDArray[np.float64]:
    """What many cuts are worth, evaluated piece by piece, in memory that stays in cache."""
    every = np.empty(size)
    for first in range(0, size, AT_ONCE):
        piece = slice(first, min(first + AT_ONCE, size))
        every[piece] = values(piece)
    return every


def first_best(values: NDArray[np.float64], rounding: Any = 0.0) -> NDArray[np.intp]:
    """Along the last axis, in descending order of thresholds: the first value that ties with the best.

    >>> int(first_best(np.array([0.1, 0.3, 0.3 + 1e-15, -np.inf])))
    1
    """
    best = values.max(axis=-1, keepdims=True)
    return np.asarray((values >= least_tie(best, rounding)).argmax(axis=-1))


def are_equal(one: Any, other: Any, scale: float) -> bool:
    """Whether numbers are the same but for rounding, relatively to them or to a scale."""
    return bool(np.allclose(one, other, rtol=TIE, atol=TIE * scale))


class Verdict(NamedTuple):
    """What is known of each sample's best cut from its entries.

    Attributes
    ----------
    best
        The largest value of an edge, at least `LOWEST`; −inf where no edge has one.
    winner, value
        The edge that wins, and its value.
    unresolved
        Entries that may hide a better cut, or whose ends must be known to place a threshold.
    bound
        The most that a cut inside an entry can be worth, where one may be better than all edges; else −inf.
    is_final
        Whether no entry is unresolved.
    accepted
        Negatives and positives that the winner accepts, one row of each, where the judge has counted them.
    """

    best: NDArray[np.float64]
    winner: NDArray[np.int64]
    value: NDArray[np.float64]
    unresolved: NDArray[np.bool_]
    bound: NDArray[np.float64]
    is_final: bool
    accepted: NDArray[np.int64] | None = None


def judge(entries: Entries, objective: Objective) -> Verdict:
    """Judge the edges of all samples, and what their entries may hide.

    An edge may win only if it ties with the best and no higher edge is as good. Below the best edge an entry hides
    something only if a cut inside can be better; above it, also if one can tie.
    """
    ratio = objective.whole_ratio(entries)
    if ratio is not None and (compiled := compiled_judge(sizes := settings())) is not None:
        needs = objective.metric.needs_negatives, objective.metric.needs_positives
        judged = compiled(entries, ratio, needs, TIE, sizes.kernels == "compiled")
        if judged is not None:
            return Verdict(*judged)
    tried = _tried_edges(entries, objective, ratio)
    values, first = tried.values, tried.first
    defined = objective.has_classes(entries.totals)
    if entries.samples == 1 and entries.in_scores:
        return _best_score(entries, objective, tried, bool(defined[0]))
    if not defined.all():
        values = np.where(tried.of_samples(defined), values, -np.inf)
    best = np.maximum.reduceat(values, first)
    least = least_tie(best, objective.rounding(entries.totals, entries.weighted))
    tied = np.flatnonzero(values >= tried.of_samples(least))
    chosen = tied[np.searchsorted(tied, first)]
    unresolved = np.zeros(len(entries), dtype=bool)
    bound = np.full(entries.samples, -np.inf)
    value = np.where(values[chosen] == LOWEST, -np.inf, values[chosen])
    verdict = Verdict(best, tried.edge(chosen), value, unresolved, bound, True)
    if entries.in_scores:
        return verdict

    hits = tried.edge(_records(tied, values, tried))
    peak = hits[np.searchsorted(hits, entries.edge_starts[1:]) - 1]
    wide = np.flatnonzero(entries.is_wide & entries.of_entries(defined))
    if len(wide):
        sample = entries.sample_of(wide)
        below = wide + 1 + sample  # the edge below each of them
        bounds = objective.bounds(entries.edges_at(below - 1, sample), entries.edges_at(below, sample))
        hides = np.where(below <= peak[sample], bounds >= least[sample], bounds > best[sample])
        unresolved[wide[hides]] = True
        np.maximum.at(bound, sample[hides], bounds[hides])
    found = best > -np.inf
    sample = np.searchsorted(entries.edge_starts, hits, side="right") - 1
    hits, sample = hits[found[sample]], sample[found[sample]]
    position = hits - sample  # of the entry below the edge
    for beside, exists in (
        (position - 1, position > entries.starts[sample]),
        (position, position < entries.starts[sample + 1]),
    ):
        beside = beside[exists]
        unresolved[beside[~entries.exact[beside]]] = True
    return verdict._replace(is_final=not unresolved.any())


def _best_score(entries: Entries, objective: Objective, tried: Tried, defined: bool) -> Verdict:
    """The verdict on one sample whose entries are scores, and hide nothing: quicker, since this is the common case."""
    chosen = int(first_best(tried.values, objective.rounding(entries.totals, entries.weighted))) if defined else 0
    best = float(tried.values.max()) if defined else -np.inf
    value = float(tried.values[chosen]) if best > LOWEST else -np.inf
    edge = chosen if tried.asked is None else int(tried.asked[chosen])
    nothing = np.zeros(len(entries), dtype=bool)
    return Verdict(np.array([best]), np.array([edge]), np.array([value]), nothing, np.array([-np.inf]), True)


class Tried(NamedTuple):
    """The edges that were evaluated, in order: all, or those `asked` for.

    Attributes
    ----------
    values
        What each is worth.
    first
        Where each sample's begin.
    asked
        The edges, where they are not all.
    """

    values: NDArray[np.float64]
    first: NDArray[np.int64]
    asked: NDArray[np.int64] | None = None

    def edge(self, which: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of all edges some are."""
        return which if self.asked is None else self.asked[which]

    def of_samples(self, per_sample: Any) -> Any:
        """What is known of each sample, for each of its edges."""
        if len(self.first) == 1:
            return per_sample
        return np.repeat(per_sample, np.diff(self.first, append=len(self.values)))


def _tried_edges(entries: Entries, objective: Objective, ratio: WholeRatio | None) -> Tried:
    """What the edges are worth that have to be tried.

    An edge below an entry without positives is not better than the one above it, and lower. So where most entries have
    no positives, the others alone are evaluated, unless the metric is undefined somewhere or a constraint needs all.
    """
    first = entries.edge_starts[:-1]
    falls = objective.metric.falls_with_errors and objective.can_be_bounded
    if len(entries) > SPARSE_FROM and falls and not objective.constraints:
        some = np.flatnonzero(entries.weight[:, 1])
        if 2 * len(some) < len(entries):
            below = some + 1 + entries.sample_of(some)
            places = np.searchsorted(below, first) + np.arange(entries.samples)
            asked = np.insert(below, places - np.arange(entries.samples), first)
            sample = np.repeat(np.arange(entries.samples), np.diff(places, append=len(asked)))
            if ratio is None:
                found = objective.metric_values(entries.edges_at(asked, sample))
            else:
                found = _ratio_at(ratio, entries, asked, sample)
            if not np.isnan(found).any():
                return Tried(np.maximum(found, LOWEST), places, asked)
    if ratio is None:
        return Tried(objective.values(entries.edges), first)
    every = len(entries) + entries.samples
    if entries.samples == 1:
        values = _in_pieces(every, lambda piece: _ratio_at(ratio, entries, piece, 0))
    else:
        sample = entries.of_edges(np.arange(entries.samples))
        values = _in_pieces(
            every, lambda piece: _ratio_at(ratio, entries, np.arange(piece.start, piece.stop), sample[piece])
        )
    if np.isnan(values.max()):
        values[np.isnan(values)] = -np.inf
    return Tried(values, first)


def _ratio_at(ratio: WholeRatio, entries: Entries, which: Any, sample: Any) -> NDArray[np.float64]:
    """What some edges of some samples are worth; NaN where the metric is undefined."""
    if entries.samples > 1:
        ratio = WholeRatio(*(tuple(c[sample] if isinstance(c, np.ndarray) else c for c in line) for line in ratio))
    fp, tp = entries.accepted_at(which, sample)
    return np.asarray(ratio.at(tp, fp))


def _records(tied: NDArray[np.int64], values: NDArray[np.float64], tried: Tried) -> NDArray[np.int64]:
    """Those of some edges, in ascending order, whose value exceeds that of all before them in their sample."""
    samples = len(tried.first)
    if len(tied) == samples:
        return tied
    level = values[tied]
    if samples > 1:  # ranks, in each sample above all of the sample before it
        rank = np.unique(level, return_inverse=True)[1].astype(np.int64)
        level = rank + np.searchsorted(tried.first, tied, side="right") * (rank.max() + 1)
    is_record = np.ones(len(tied), dtype=bool)
    np.greater(level[1:], np.maximum.accumulate(level)[:-1], out=is_record[1:])
    return tied[is_record]


class Placed(NamedTuple):
    """The cut of each sample, or of one: its confusion, its threshold, and between which scores it stands."""

    confusion: Confusion
    thresholds: Any
    lower: Any
    upper: Any


def placed(entries: Entries, winner: NDArray[np.int64], dtype: np.dtype[Any]) -> Placed:
    """The cuts at some edges, one of each sample, whose entries on both sides are exact."""
    sample = np.arange(entries.samples)
    position = winner - sample
    accepts, rejects = position > entries.starts[:-1], position < entries.starts[1:]
    upper, lower = np.full((2, entries.samples), np.inf)
    lower[:] = -np.inf
    upper[accepts] = scores_of_keys(entries.low[position[accepts] - 1])
    lower[rejects] = scores_of_keys(entries.high[position[rejects]])
    return Placed(entries.edges_at(winner, sample), place(lower, upper, dtype), lower, upper)


def placed_one(entries: Entries, edge: int, dtype: np.dtype[Any], accepted: Sequence[int] | None = None) -> Placed:
    """The cut at an edge of the only sample, in plain numbers: what most calls come down to, without arrays of one.

    `accepted` are the negatives and positives above it, for whoever has counted them.
    """
    upper = score_of_key(int(entries.low[edge - 1])) if edge else math.inf
    lower = score_of_key(int(entries.high[edge])) if edge < len(entries) else -math.inf
    confusion = entries.edge(edge) if accepted is None else entries.with_accepted(*accepted)
    return Placed(confusion, place(lower, upper, dtype), lower, upper)


def placed_columns(
    columns: SortedColumns, totals: NDArray[np.int64], kernels: Kernels, objective: Objective, dtype: np.dtype[Any]
) -> tuple[Placed, NDArray[np.bool_]] | None:
    """The cuts of columns of a matrix that kernels have sorted, and which of them can be chosen.

    None where they have to be searched, since the objective is no ratio of whole numbers, or its bounds are not known.
    """
    ratio = objective.whole_ratio(Entries.of_totals(totals))
    if columns.codes is None or ratio is None or not objective.can_be_bounded:
        return None
    metric, rows = objective.metric, columns.codes.shape[1]
    best = kernels.best_edges(columns, ratio, (metric.needs_negatives, metric.needs_positives), TIE)
    upper = np.where(best.below < rows, best.upper, np.inf)
    lower = np.where(best.below > 0, best.lower, -np.inf)
    fp, (negatives, positives) = rows - best.below - best.tp, totals.T
    confusion = Confusion(tp=best.tp, fp=fp, fn=positives - best.tp, tn=negatives - fp)
    return Placed(confusion, place(lower, upper, dtype), lower, upper), best.value > -np.inf


def place(lower: Any, upper: Any, dtype: np.dtype[Any]) -> Any:
    """Where in (lower, upper] a threshold stands: midway, in the scores' own dtype, never equal to `lower`.

    With nothing below (or −inf, which has no middle) the threshold is the lowest accepted score itself. The ends are
    plain numbers, or arrays.

    >>> place(0.2, 0.4, np.dtype(np.float64)), place(3, 4, np.dtype(np.int64)), place(-np.inf, 0.5, np.dtype(float))
    (0.30000000000000004, 4.0, 0.5)
    """
    if isinstance(lower, np.ndarray):
        with np.errstate(invalid="ignore"):
            middle = _in_dtype(lower / 2 + upper / 2, dtype)
        return np.where((lower < middle) & (middle <= upper), middle, upper)
    middle = _in_dtype(lower / 2 + upper / 2, dtype)
    return float(middle if lower < middle <= upper else upper)


def _in_dtype(middle: Any, dtype: np.dtype[Any]) -> Any:
    """The value, or one above it, that scores of a dtype can have; of floats the nearest one."""
    if dtype == np.float64:
        return middle
    if dtype.kind in "iu":
        return np.ceil(middle)
    with np.errstate(over="ignore"):
        return np.asarray(middle).astype(dtype).astype(np.float64)[()]


def infeasible(objective: Objective, edges: Confusion, rows: int) -> ValueError:
    """Why none of all cuts of a sample can be chosen."""
    constraints = objective.constraints
    if not constraints:
        where = "this 1 row" if rows == 1 else f"these {rows:,} rows"
        return UndefinedMetricError(f"{objective.metric.name} is undefined at every cut of {where}")
    confusion = objective.at_prior(edges)
    unmet = [constraint for constraint in constraints if not constraint.is_met(confusion).any()]
    if not unmet:
        return InfeasibleError(f"each of {listed(constraints)} can be met by some cut, but no cut meets all of them")
    worst = unmet[0]
    levels = np.asarray(worst.quantity.evaluate(confusion))
    if np.isnan(levels).all():
        return InfeasibleError(f"no cut meets {worst}: {worst.quantity.name} is undefined at every cut")
    best, which = (np.nanmax(levels), "highest") if worst.sense == ">=" else (np.nanmin(levels), "lowest")
    return InfeasibleError(f"no cut meets {worst}: the {which} {worst.quantity.name} attainable is {best:.6g}")
