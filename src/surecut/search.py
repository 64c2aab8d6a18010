"""The exact best cut of many rows in O(n), without sorting them.

Rows are counted in bins of scores. A cut *inside* a bin accepts some of its rows, so that its metric is at most the
value with all of the bin's positives accepted and none of its negatives: metrics do not increase in FP or FN. Bins
whose bound cannot beat the best bin edge are left alone; the few others are drawn in to the scores that occur and
divided, until what is left in question is sorted. The result is that of trying every score.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.candidates import Candidates, bound_of, candidates_of
from surecut.confusion import Confusion
from surecut.constraints import Constraint, InfeasibleError
from surecut.counts import Counts, Parts, lie_in
from surecut.metrics import Metric
from surecut.rows import ArrayRows, NearRows, Rows, SourceChangedError
from surecut.sample import Sample, fingerprint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut

SORTED_AT_ONCE = 1 << 12
"""So few rows are always sorted at once; beyond that, at most one in `SORTED_SHARE` of all rows."""

SORTED_SHARE = 16

GROUP = 64
"""Bins and sorted scores are first judged in groups of so many, since most groups hold no better cut either."""

ROWS_PER_PART = 16
"""Bins in question are divided into about one part for so many of their rows."""

PARTS = 1 << 15
"""Into so many parts the bins in question are divided at most, all together."""


@dataclass(frozen=True)
class Objective:
    """What a cut should be best for, and what it must meet."""

    metric: Metric
    constraints: tuple[Constraint, ...] = ()

    @property
    def can_be_bounded(self) -> bool:
        """Whether a bin can be judged unseen; otherwise every cut has to be tried."""
        return self.metric.extremes_at_corners and all(c.quantity.extremes_at_corners for c in self.constraints)


@dataclass(frozen=True)
class Bins:
    """A partition of the rows by score, in descending order.

    `low` and `high` are the ends of each bin, as keys; where `exact`, they are scores that occur. A bin of one score
    (`low == high`) holds no cut but its edge. A bin that was found to hold none of the best cuts is `idle` for good.
    """

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    exact: NDArray[np.bool_]
    idle: NDArray[np.bool_]
    counts: Counts

    @classmethod
    def unjudged(cls, low: NDArray[np.uint64], high: NDArray[np.uint64], counts: Counts, exact: Any = False) -> Bins:
        """Bins of which nothing is known but their ends and counts; those of one score are exact anyway."""
        return cls(low, high, (low == high) | exact, np.zeros(len(low), dtype=bool), counts)

    def merged(self, starts: NDArray[np.intp]) -> Bins:
        """These bins made into fewer, each of which starts with one of them."""
        ends = np.append(starts[1:], len(self.low)) - 1
        rows = np.add.reduceat(self.counts.rows, starts, axis=0)
        unweighted = self.counts.weight is self.counts.rows
        weight = rows if unweighted else np.add.reduceat(self.counts.weight, starts, axis=0)
        exact, idle = self.exact[starts] & self.exact[ends], np.logical_and.reduceat(self.idle, starts)
        return Bins(self.low[ends], self.high[starts], exact, idle, Counts(rows, weight))

    def replaced(self, gone: NDArray[np.bool_], *others: Bins) -> Bins:
        """These bins with some of them gone and others in their place."""
        kept = Bins(self.low[~gone], self.high[~gone], self.exact[~gone], self.idle[~gone], self.counts[~gone])
        every = (kept, *others)
        low = np.concatenate([bins.low for bins in every])
        order = np.argsort(low, kind="stable")[::-1]  # two sorted runs, which a merge sort joins
        rows = np.concatenate([bins.counts.rows for bins in every])[order]
        unweighted = self.counts.weight is self.counts.rows
        return Bins(
            low[order],
            np.concatenate([bins.high for bins in every])[order],
            np.concatenate([bins.exact for bins in every])[order],
            np.concatenate([bins.idle for bins in every])[order],
            Counts(rows, rows if unweighted else np.concatenate([bins.counts.weight for bins in every])[order]),
        )


def search(rows: Rows, objectives: list[Objective]) -> list[Cut]:
    """The best cut for each objective, from the same passes over the rows."""
    histogram = rows.histogram()
    total = int(histogram.counts.rows.sum())
    sample = Sample(total, rows.weighted, fingerprint(total, histogram.checksum), seen=rows.seen())
    budget = max(SORTED_AT_ONCE, total // SORTED_SHARE)
    bins = Bins.unjudged(histogram.low, histogram.high, histogram.counts)
    require_defined(bins, sample, objectives)
    question = _question(bins, sample, objectives)
    while question.rows > budget:
        if question.unseen.any():
            bins = _with_extents(question, rows)
        else:
            parts = question.parts()
            bins = _divided(question, parts, rows.count(parts))
        question = _question(bins, sample, objectives)
    source: Rows | NearRows = rows
    if question.rows > SORTED_AT_ONCE and isinstance(rows, ArrayRows):
        # What is found is counted in parts at once, and what is then left in question is as a rule among it.
        parts = question.parts()
        near = rows.near(parts)
        question = _question(_divided(question, parts, near.counts), sample, objectives)
        if lie_in(parts.low, parts.high, *question.ascending(question.unknown)):
            source = near
    bins = _sorted_out(question, source, sample, objectives) if question.unknown.any() else question.bins
    candidates = candidates_of(bins.low, bins.high, bins.counts.weight, sample, dtype=rows.dtype)
    try:
        return [candidates.best_cut(objective.metric, objective.constraints) for objective in objectives]
    except InfeasibleError:
        # The search knows that no cut meets the constraint; which level is attainable only all scores tell.
        candidates = rows.tally().candidates
        return [candidates.best_cut(objective.metric, objective.constraints) for objective in objectives]


def require_defined(bins: Bins, sample: Sample, objectives: list[Objective]) -> None:
    """Raise where bins could not be judged, because a metric is undefined on these rows or grows with errors."""
    whole = bins.merged(np.zeros(1, dtype=np.intp))
    edges = candidates_of(whole.low, whole.high, whole.counts.weight, sample)
    for objective in objectives:
        edges.check(objective.metric)


class Question(NamedTuple):
    """Bins, and what is not known of some: where the best cut is, and between which scores it stands."""

    bins: Bins
    unseen: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    rows: int

    def ascending(self, which: NDArray[np.bool_]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The ends of some of the bins."""
        return np.ascontiguousarray(self.bins.low[which][::-1]), np.ascontiguousarray(self.bins.high[which][::-1])

    def parts(self) -> Parts:
        """Into what the unknown bins are divided: runs of them at every edge that they have, and more finely."""
        low, high = self.ascending(self.unknown)
        width = high - low
        starts = np.flatnonzero(
            np.concatenate(([True], (high[:-1] + np.uint64(1) != low[1:]) | (width[1:] != width[:-1])))
        )
        first, last = low[starts], high[np.append(starts[1:], len(low)) - 1]
        fineness = max(2, (min(PARTS, self.rows // ROWS_PER_PART) // len(starts)).bit_length() - 1)
        shift = [
            max(0, min(int(run).bit_length() - fineness, int(one).bit_length() - 2))
            for run, one in zip(last - first, width[starts], strict=True)
        ]
        return Parts.of(first, last, np.array(shift, dtype=np.uint64))


def _question(bins: Bins, sample: Sample, objectives: list[Objective]) -> Question:
    """What is not known of some bins; those next to each other that hold none of the best cuts are made one."""
    promising, needed = needed_bins(bins, sample, objectives)
    starts = _representatives(~needed)
    promising, needed = promising[starts], needed[starts]
    bins = replace(bins.merged(starts), idle=~promising)
    unseen = needed & ~bins.exact
    unknown = unseen | promising & (bins.low < bins.high)
    return Question(bins, unseen, unknown, int(bins.counts.rows[unknown].sum()))


def needed_bins(bins: Bins, sample: Sample, objectives: list[Objective]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Bins in which an optimum may hide, and those whose scores must be known to place a threshold.

    Many bins are judged in groups first: where a group is not needed, none of its bins is.
    """
    if len(bins.low) <= GROUP**2:
        promising, above, below = _judged(bins, sample, objectives)
        return promising, promising | above | below
    starts = np.arange(0, len(bins.low), GROUP)
    opened = np.logical_or.reduce(_judged(bins.merged(starts), sample, objectives))
    idle = bins.idle | np.repeat(~opened, np.diff(starts, append=len(bins.low)))
    starts = _representatives(idle)
    promising, above, below = _judged(replace(bins.merged(starts), idle=idle[starts]), sample, objectives)
    hiding, needed = np.zeros((2, len(idle)), dtype=bool)
    hiding[starts] = promising
    needed[starts] = promising | below
    needed[np.append(starts[1:], len(idle)) - 1] |= above  # of a run of idle bins, the one beside the edge
    return hiding, needed


def _judged(
    bins: Bins, sample: Sample, objectives: list[Objective]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Bins in which an optimum may hide, and those above and below an edge that may win: its threshold is put between
    the lowest score of the one and the highest of the other."""
    promising, above, below = np.zeros((3, len(bins.low)), dtype=bool)
    edges = candidates_of(bins.low, bins.high, bins.counts.weight, sample)
    for objective in objectives:
        hiding, winners = _promising(edges, objective)
        promising |= hiding & ~bins.idle
        above[winners[winners > 0] - 1] = True  # edge i accepts bins 0 … i − 1
        below[winners[winners < len(below)]] = True
    below[1:] |= promising[:-1]
    return promising, above, below


def _promising(edges: Candidates, objective: Objective) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Bins whose bound reaches the best edge, and the edges that may win.

    Among ties the highest wins, so that an edge may win only if it ties with the best and no higher edge is as good.
    """
    confusion = edges.confusion
    before, after = confusion[:-1], confusion[1:]
    metric = objective.metric
    feasible, reachable = np.ones(len(confusion.tp), dtype=bool), np.ones(len(before.tp), dtype=bool)
    best_corner = Confusion(tp=after.tp, fp=before.fp, fn=after.fn, tn=before.tn)
    worst_corner = Confusion(tp=before.tp, fp=after.fp, fn=before.fn, tn=after.tn)
    for constraint in objective.constraints:
        feasible &= constraint.is_met(confusion)
        reachable &= constraint.is_met_by_any((before, after, best_corner, worst_corner))
    values = np.asarray(metric.evaluate(confusion))
    values = np.where(feasible & ~np.isnan(values), values, -np.inf)
    bounds = bound_of(metric, best_corner)
    best = float(values.max())
    if best == -np.inf:
        return reachable, np.array([], dtype=np.intp)
    least = edges.least_tie(metric, edges.prior, best)
    higher = np.concatenate(([-np.inf], np.maximum.accumulate(values)[:-1]))
    above = np.arange(len(bounds)) < values.argmax()
    hiding = reachable & np.where(above, bounds >= least, bounds > best)
    return hiding, np.flatnonzero((values >= least) & (values > higher))


def _with_extents(question: Question, rows: Rows) -> Bins:
    """The bins in question, drawn in to the scores that occur where these are unseen."""
    bins, which = question.bins, question.unseen
    smallest, largest = rows.extent(*question.ascending(which))
    low, high = bins.low.copy(), bins.high.copy()
    low[which], high[which] = smallest[::-1], largest[::-1]
    return replace(bins, low=low, high=high, exact=bins.exact | which)


def _divided(question: Question, parts: Parts, counts: Counts) -> Bins:
    """The bins in question, in parts."""
    low, _ = question.ascending(question.unknown)
    before = question.bins.counts.rows[question.unknown][::-1]
    _require_same_rows(np.add.reduceat(before, np.searchsorted(low, parts.low), axis=0), counts.rows, parts.first)
    occupied = counts.occupied
    return question.bins.replaced(question.unknown, Bins.unjudged(*parts.ends(occupied), counts[occupied]))


def _sorted_out(question: Question, rows: Rows | NearRows, sample: Sample, objectives: list[Objective]) -> Bins:
    """The bins in question replaced by the scores in them: in groups, and one by one where it matters."""
    bins, which = question.bins, question.unknown
    low, high = question.ascending(which)
    tally = rows.collect(low, high)
    first_of_bin = len(tally) - np.searchsorted(tally.keys[::-1], high, side="right")[::-1]
    _require_same_rows(bins.counts.rows[which], tally.rows, first_of_bin)
    of_bin = np.arange(len(tally)) - np.repeat(first_of_bin, np.diff(first_of_bin, append=len(tally)))
    starts = np.flatnonzero(of_bin % GROUP == 0)  # no group reaches across the edge of a bin
    sizes = np.diff(starts, append=len(tally))
    group_low = tally.keys[starts + sizes - 1]
    group_rows = np.add.reduceat(tally.rows, starts, axis=0)
    group_weight = group_rows if tally.weight is tally.rows else np.add.reduceat(tally.weight, starts, axis=0)
    groups = Bins.unjudged(group_low, tally.keys[starts], Counts(group_rows, group_weight), exact=True)
    bins = bins.replaced(which, groups)
    promising, _ = needed_bins(bins, sample, objectives)
    opened = np.repeat(np.isin(group_low, bins.low[promising]), sizes)
    keys, counts = tally.keys[opened], Counts(tally.rows, tally.weight)[opened]
    return bins.replaced(np.isin(bins.low, group_low) & promising, Bins.unjudged(keys, keys, counts))


def _require_same_rows(before: NDArray[np.int64], now: NDArray[np.int64], starts: NDArray[np.intp]) -> None:
    """Raise unless a later pass found in every bin what an earlier one had counted there."""
    ends = np.append(starts[1:], len(now))
    above = np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(now, axis=0)))
    if not np.array_equal(above[ends] - above[starts], before):
        raise SourceChangedError


def _representatives(idle: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The first of every run of idle bins, and every bin that is not idle."""
    return np.flatnonzero(np.concatenate(([True], ~(idle[1:] & idle[:-1]))))
