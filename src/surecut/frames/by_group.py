"""A threshold for every group of a long table, or one for all of them: `tune_frame(..., by=...)`.

The engine says how many rows each group has. Few rows altogether are fetched by distinct score. Where rows are many, it
counts them by group and bin, the bins that cannot hold a group's best cut are left alone, and only the scores in the
others are fetched. So what is shipped is at most one row per group, occupied bin and class, and the survivors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut._kernels import ordered_keys
from surecut.candidates import ROUNDING, TIE
from surecut.confusion import Confusion
from surecut.frames.engine_tables import table_beside
from surecut.frames.grouped import (
    BIN,
    FINE,
    HIGH,
    KIND,
    LOW,
    MINUS_ONE,
    POSITIVE,
    ROWS,
    SCORE,
    SUM,
    GroupedRows,
    as_arrays,
    search_groups,
)
from surecut.multilabel.cut import MultilabelCut, macro_value, values_per_label
from surecut.multilabel.search import LabelEntries
from surecut.rows import SourceChangedError
from surecut.search import Objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.cut import Cut

SHIPPED = 1 << 22
"""So many rows may be fetched at once by distinct score; where there are more, they are counted in bins first."""

BINS = 1 << 21
"""Bins of all groups together, as far as one bin per octave allows."""

GROUP = "surecut_group"


def tune_groups(rows: GroupedRows, objectives: list[Objective], average: str) -> list[MultilabelCut]:
    """The cuts of all groups, for each objective."""
    groups = Groups(rows)
    if average == "micro":
        cuts = groups.pooled(objectives)
        return [groups.with_one_threshold(cut) for cut in cuts]
    entries = groups.entries(objectives)
    return [groups.macro(entries, objective) for objective in objectives]


@dataclass(frozen=True)
class Entries:
    """Bins of groups: ascending by group, and by score within a group."""

    group: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    rows: NDArray[np.int64]
    weight: NDArray[Any]

    @classmethod
    def of(cls, group: Any, low: Any, high: Any, is_positive: Any, rows: Any, weight: Any) -> tuple[Entries, Any]:
        """Merge what overlaps within a group; also say where each of the given ones went."""
        order = np.lexsort((low, group))
        group_, low_ = group[order], low[order]
        # The highest score so far in the group: a running maximum of ranks, which groups set apart
        distinct, rank = np.unique(high[order], return_inverse=True)
        offset = group_ * len(distinct)
        reached = distinct[np.maximum.accumulate(offset + rank) - offset]
        begins = np.concatenate(([True], (group_[1:] != group_[:-1]) | (low_[1:] > reached[:-1])))
        starts = np.flatnonzero(begins)
        ends = np.append(starts[1:], len(order)) - 1
        home = np.empty(len(order), dtype=np.int64)
        home[order] = np.cumsum(begins) - 1
        apart = np.column_stack((np.where(is_positive, 0, rows), np.where(is_positive, rows, 0)))[order]
        counts = np.add.reduceat(apart, starts, axis=0)
        sums = counts
        if weight is not None:
            apart = np.column_stack((np.where(is_positive, 0.0, weight), np.where(is_positive, weight, 0.0)))[order]
            sums = np.add.reduceat(apart, starts, axis=0)
        return cls(group_[starts], low_[starts], reached[ends], counts, sums), home


@dataclass(frozen=True)
class Groups:
    """The groups of a frame, numbered in the order of their keys."""

    rows: GroupedRows

    @cached_property
    def _totals(self) -> nw.DataFrame[Any]:
        """Rows by group and what they are; checks labels, scores, weights and keys."""
        found = self.rows.counted(self.rows.prepared, *self.rows.keys)
        self.rows.check(as_arrays(found))
        return found.filter(nw.col(KIND) <= MINUS_ONE)

    @cached_property
    def table(self) -> nw.DataFrame[Any]:
        """Keys and number of every group."""
        keys = self.rows.keys
        return self._totals.select(*keys).unique().sort(*keys).with_row_index(GROUP)

    @cached_property
    def names(self) -> tuple[Any, ...]:
        columns = [self.table[key].to_list() for key in self.rows.keys]
        return tuple(columns[0]) if len(columns) == 1 else tuple(zip(*columns, strict=True))

    @cached_property
    def totals(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Rows, and weight, of each group and class."""
        return self._by_class(self._totals)

    def entries(self, objectives: list[Objective]) -> Entries:
        """All scores of all groups: one by one where a best cut may be, in bins elsewhere."""
        total = int(self.totals[0].sum())
        bounded = all(objective.can_be_bounded for objective in objectives)
        if total <= SHIPPED or not bounded:
            return self._distinct(self.rows.valid)
        fine = 1 << min(FINE.bit_length() - 1, max(0, (BINS // len(self.table)).bit_length() - 5))
        binned = self.rows.binned(fine).filter(nw.col(KIND) <= MINUS_ONE)
        binned = binned.with_columns(nw.col(BIN).cast(nw.Int64))
        answer = self._numbered(self.rows.counted(binned, *self.rows.keys, BIN))
        bins, home = self._entries(answer)
        survive = np.zeros(len(bins.low), dtype=bool)
        for objective in objectives:
            survive |= self._promising(bins, objective)
        survive &= bins.low < bins.high
        if not survive.any():
            return bins
        wanted = answer.filter(nw.new_series("survives", survive[home], backend=answer.implementation))
        by = [*self.rows.keys, BIN, KIND]
        wanted = wanted.select(*by)
        with table_beside(self.rows.frame, wanted) as beside:
            scores = self._distinct(binned.join(beside, on=by, how="inner"))
        return _replaced(bins, survive, scores)

    def macro(self, entries: Entries, objective: Objective) -> MultilabelCut:
        cuts = self._label_entries(entries).best_cuts(objective, self.names)
        thresholds, intervals, confusion, shared = cuts.thresholds, cuts.intervals, cuts.confusion, None
        if not cuts.defined.all():
            pooled = self.pooled([objective])[0]
            shared = pooled.threshold
            thresholds = np.where(cuts.defined, thresholds, shared)
            intervals = np.where(cuts.defined[:, None], intervals, pooled.interval)
            at_shared = self._confusion_at(shared)
            confusion = Confusion(
                *(
                    np.where(cuts.defined, getattr(confusion, cell), getattr(at_shared, cell))
                    for cell in ("tp", "fp", "fn", "tn")
                )
            )
        return self._result(objective, "macro", thresholds, intervals, confusion, shared=shared)

    def with_one_threshold(self, cut: Cut) -> MultilabelCut:
        thresholds = np.full(len(self.names), cut.threshold)
        intervals = np.tile(np.array(cut.interval), (len(self.names), 1))
        confusion = self._confusion_at(cut.threshold)
        result = self._result(Objective(cut.metric), "micro", thresholds, intervals, confusion, value=cut.value)
        return replace(result, constraints=cut.constraints)

    def pooled(self, objectives: list[Objective]) -> list[Cut]:
        """The cuts of all rows together."""
        together = self.rows
        if together.missing == "drop":
            together = replace(together, missing="drop quietly")  # it was said how many
        if all(objective.can_be_bounded for objective in objectives):
            return search_groups(together, objectives)
        candidates = together.tally().candidates
        return [candidates.best_cut(objective.metric, objective.constraints) for objective in objectives]

    def _result(
        self,
        objective: Objective,
        average: str,
        thresholds: Any,
        intervals: Any,
        confusion: Confusion,
        *,
        value: float | None = None,
        shared: float | None = None,
    ) -> MultilabelCut:
        per_label = values_per_label(objective.metric, confusion)
        return MultilabelCut(
            labels=self.names,
            thresholds=thresholds,
            value=macro_value(objective.metric, per_label) if value is None else value,
            metric=objective.metric,
            average=average,
            per_label=per_label,
            confusion=confusion,
            intervals=intervals,
            rows=self.totals[0].sum(axis=1),
            shared_threshold=shared,
            constraints=tuple(map(str, objective.constraints)),
            weighted=self.rows.weighted,
        )

    def _confusion_at(self, threshold: float) -> Confusion:
        """The confusion of each group at one threshold."""
        negatives, positives = self.totals[1].T
        accepted = np.zeros_like(self.totals[1])
        if threshold < np.inf:
            above = self.rows.valid.filter(nw.col(SCORE) >= threshold)
            accepted = self._by_class(self.rows.counted(above, *self.rows.keys))[1]
        fp, tp = accepted.T
        return Confusion(tp=tp, fp=fp, fn=np.maximum(positives - tp, 0), tn=np.maximum(negatives - fp, 0))

    def _numbered(self, answer: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """An answer by group with the groups' numbers."""
        numbered = answer.join(self.table, on=self.rows.keys, how="inner")
        if len(numbered) != len(answer):
            raise SourceChangedError
        return numbered

    def _by_class(self, answer: nw.DataFrame[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        found = as_arrays(self._numbered(answer))
        at = found[GROUP].astype(np.int64), (found[KIND] == POSITIVE).astype(np.int64)
        rows = np.zeros((len(self.table), 2), dtype=np.int64)
        np.add.at(rows, at, found[ROWS])
        if not self.rows.weighted:
            return rows, rows
        weight = np.zeros((len(self.table), 2))
        np.add.at(weight, at, found[SUM].astype(float))
        return rows, weight

    def _distinct(self, frame: nw.LazyFrame[Any]) -> Entries:
        return self._entries(self._numbered(self.rows.counted(frame, *self.rows.keys, SCORE)))[0]

    def _entries(self, answer: nw.DataFrame[Any]) -> tuple[Entries, Any]:
        found = as_arrays(answer)
        if not len(found[ROWS]):
            raise SourceChangedError
        low, high = (ordered_keys(found[name if name in found else SCORE]) for name in (LOW, HIGH))
        weight = found[SUM].astype(float) if self.rows.weighted else None
        return Entries.of(found[GROUP].astype(np.int64), low, high, found[KIND] == POSITIVE, found[ROWS], weight)

    def _promising(self, bins: Entries, objective: Objective) -> NDArray[np.bool_]:
        """Bins whose bound reaches the best edge of their group."""
        metric = objective.metric
        totals = self.totals[1][bins.group]
        after = _from_above(bins)
        before = after - bins.weight

        def confusion(tp: Any, fp: Any) -> Confusion:
            return Confusion(tp=tp, fp=fp, fn=np.maximum(totals[:, 1] - tp, 0), tn=np.maximum(totals[:, 0] - fp, 0))

        def judged(tp: Any, fp: Any) -> NDArray[np.float64]:
            some = confusion(tp, fp)
            with np.errstate(invalid="ignore", divide="ignore"):  # groups of one class
                values = np.asarray(metric.evaluate(some), dtype=float)
                allowed = ~np.isnan(values)
                for constraint in objective.constraints:
                    allowed &= constraint.is_met(some)
            return np.where(allowed, values, -np.inf)

        edges = judged(after[:, 1], after[:, 0])
        nothing = judged(0 * after[:, 1], 0 * after[:, 0])
        starts = np.flatnonzero(np.concatenate(([True], bins.group[1:] != bins.group[:-1])))
        best = np.maximum.reduceat(np.maximum(edges, nothing), starts)
        best = np.repeat(best, np.diff(starts, append=len(edges)))
        (fp_before, tp_before), (fp_after, tp_after) = before.T, after.T
        corners = [(tp_after, fp_before), (tp_before, fp_after), (tp_before, fp_before), (tp_after, fp_after)]
        with np.errstate(invalid="ignore", divide="ignore"):
            bounds = np.asarray(metric.evaluate(confusion(*corners[0])), dtype=float)
            sizes = [np.abs(metric.evaluate(confusion(*corner))) for corner in corners]
            scale = np.nanmax([*sizes, np.zeros(len(bounds))], axis=0)
            reachable = np.ones(len(bounds), dtype=bool)
            for constraint in objective.constraints:
                reachable &= constraint.is_met_by_any([confusion(*corner) for corner in corners])
        slack = TIE * np.abs(np.where(np.isfinite(best), best, 0.0)) + (ROUNDING * scale if self.rows.weighted else 0.0)
        return np.asarray(reachable & ~np.isnan(bounds) & (bounds >= best - slack))

    def _label_entries(self, entries: Entries) -> LabelEntries:
        """Descending, a bin as its highest score without weight and its lowest with all of it: no cut is in between."""
        wide = entries.low < entries.high
        none = np.zeros_like(entries.weight[wide])
        group = np.concatenate((entries.group, entries.group[wide]))
        keys = np.concatenate((entries.low, entries.high[wide]))
        weight = np.concatenate((entries.weight, none))
        order = np.lexsort((~keys, group))
        starts = np.searchsorted(group[order], np.arange(len(self.names) + 1))
        negative, positive = weight[order].T
        return LabelEntries(
            starts, keys[order], positive, negative, self.totals[1], self.rows.dtype, self.rows.weighted
        )


def _from_above(bins: Entries) -> NDArray[Any]:
    """Weight in each bin and those above it in its group."""
    from_below = np.cumsum(bins.weight, axis=0)
    ends = np.flatnonzero(np.append(bins.group[1:] != bins.group[:-1], True))
    total = np.repeat(from_below[ends], np.diff(ends, prepend=-1), axis=0)
    above: NDArray[Any] = total - from_below + bins.weight
    return above


def _replaced(bins: Entries, survive: NDArray[np.bool_], scores: Entries) -> Entries:
    """Bins with some of them replaced by the scores in them, which have to be as many as were counted."""
    groups = int(bins.group[-1]) + 1
    for column in (0, 1):
        before = np.bincount(bins.group[survive], bins.rows[survive, column], groups)
        if not np.array_equal(before, np.bincount(scores.group, scores.rows[:, column], groups)):
            raise SourceChangedError
    pairs = zip(
        (bins.group, bins.low, bins.high, bins.rows, bins.weight),
        (scores.group, scores.low, scores.high, scores.rows, scores.weight),
        strict=True,
    )
    return Entries(*(np.concatenate((mine[~survive], theirs)) for mine, theirs in pairs))
