"""A threshold for every group of a long table, or one for all of them: `tune_frame(..., by=...)`.

The engine says how many rows each group has. Few rows altogether are fetched by distinct score. Where rows are many, it
counts them by group and bin; the bins that cannot hold a group's best cut are left alone, the others are divided, until
few rows are in question, and these are fetched by distinct score. So no answer has more than one row per group,
occupied bin and class.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut._kernels import ordered_keys, scores_of_keys
from surecut.confusion import Confusion
from surecut.decisions.multilabel import MultilabelCut
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
from surecut.multilabel.search import LabelEntries
from surecut.rows import SourceChangedError
from surecut.search import Objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut

SHIPPED, SHIPPED_EACH = 1 << 22, 16
"""So many rows, or so many for each group, may be fetched at once by distinct score: bins would hardly be fewer."""

BINS = 1 << 21
"""Bins of all groups together, as far as one bin per octave allows, and so many parts of bins."""

PARTS_EACH = 4
"""A bin is divided into at least so many parts."""

SHRUNK = 0.75
"""Where more than this share of the rows stays in question, dividing again does not help: they are tied, or as good."""

GROUP, ENTRY, PARENT = "surecut_group", "surecut_entry", "surecut_parent"
OFFSET, SCALE, IN_OCTAVES = "surecut_offset", "surecut_scale", "surecut_in_octaves"


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

    group: NDArray[np.int32]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    rows: NDArray[np.int64]
    weight: NDArray[Any]

    @classmethod
    def of(cls, group: Any, low: Any, high: Any, is_positive: Any, rows: Any, weight: Any) -> tuple[Entries, Any]:
        """Merge what overlaps within a group; also say where each of the given ones went."""
        order = np.lexsort((low, group))
        group_, low_ = group[order], low[order]
        reached = low_ if high is low else _highest_so_far(group_, high[order])
        begins = np.concatenate(([True], (group_[1:] != group_[:-1]) | (low_[1:] > reached[:-1])))
        starts = np.flatnonzero(begins)
        ends = np.append(starts[1:], len(order)) - 1
        home = np.empty(len(order), dtype=np.int64)
        home[order] = np.cumsum(begins) - 1
        counts = _sums_by_class(rows[order], is_positive[order], starts)
        sums = counts if weight is None else _sums_by_class(weight[order], is_positive[order], starts)
        return cls(group_[starts], low_[starts], reached[ends], counts, sums), home

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, which: NDArray[np.bool_]) -> Entries:
        return Entries(self.group[which], self.low[which], self.high[which], self.rows[which], self.weight[which])

    def with_others(self, others: Entries) -> tuple[Entries, NDArray[np.int64]]:
        """These and other entries in order, and where the others stand."""
        group = np.concatenate((self.group, others.group))
        low = np.concatenate((self.low, others.low))
        order = np.lexsort((low, group))
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        high, rows, weight = (
            np.concatenate(pair)[order]
            for pair in ((self.high, others.high), (self.rows, others.rows), (self.weight, others.weight))
        )
        return Entries(group[order], low[order], high, rows, weight), position[len(self) :]


@dataclass(frozen=True)
class Level:
    """Rows in the engine that are in bins, and what it counted there.

    `answer` has a row for each bin and class, which the columns `by` and what the rows are tell apart; it belongs to
    the entry `home` of `entries`.
    """

    frame: nw.LazyFrame[Any]
    by: list[str]
    answer: nw.DataFrame[Any]
    entries: Entries
    home: NDArray[np.int64]


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
        at_once = max(SHIPPED, SHIPPED_EACH * len(self.table))
        if self.totals[0].sum() <= at_once or not all(objective.can_be_bounded for objective in objectives):
            return self._all_entries(self.rows.counted(self.rows.valid, *self.rows.keys, SCORE))[0]
        level = self._first_level()
        settled = level.entries[np.zeros(len(level.entries), dtype=bool)]
        before = math.inf
        with ExitStack() as tables:
            while True:
                every, position = settled.with_others(level.entries)
                promising = np.zeros(len(every), dtype=bool)
                for objective in objectives:
                    promising |= self._promising(every, objective)
                survive = promising[position] & (level.entries.low < level.entries.high)
                if not survive.any():
                    return every
                settled = settled.with_others(level.entries[~survive])[0]
                in_question = int(level.entries.rows[survive].sum())
                opened = self._opened(level, survive, tables)
                if in_question <= at_once or in_question > SHRUNK * before:
                    scores = self._level(opened, SCORE, level.entries[survive]).entries
                    return settled.with_others(scores)[0]
                level, before = self._level(_in_parts(opened), BIN, level.entries[survive]), in_question

    def _first_level(self) -> Level:
        """All rows in bins by octave."""
        fine = 1 << min(FINE.bit_length() - 1, max(0, (BINS // len(self.table)).bit_length() - 5))
        binned = self.rows.binned(fine).filter(nw.col(KIND) <= MINUS_ONE)
        binned = binned.with_columns(nw.col(BIN).cast(nw.Int64))
        by = [*self.rows.keys, BIN]
        answer = self.rows.counted(binned, *by)
        return Level(binned, by, answer.select(*by, KIND), *self._all_entries(answer))

    def _opened(self, level: Level, survive: NDArray[np.bool_], tables: ExitStack) -> nw.LazyFrame[Any]:
        """The rows in the bins that survive, with the number of their bin among these and how it is to be divided."""
        number = np.cumsum(survive) - 1
        asked = survive[level.home]
        some = level.answer.filter(nw.new_series("asked", asked, backend=level.answer.implementation))
        parent = number[level.home[asked]]
        columns = {PARENT: parent} | {
            name: values[parent] for name, values in _division(level.entries[survive]).items()
        }
        added = (nw.new_series(name, values, backend=some.implementation) for name, values in columns.items())
        beside = tables.enter_context(table_beside(self.rows.frame, some.with_columns(*added)))
        opened = level.frame.join(beside, on=[*level.by, KIND], how="inner")
        return opened.drop(level.by).rename({PARENT: ENTRY})

    def _level(self, opened: nw.LazyFrame[Any], by: str, parents: Entries) -> Level:
        """What the engine counts in parts of some bins, which has to be what was counted in the bins."""
        answer = self.rows.counted(opened, ENTRY, by)
        parent = answer[ENTRY].to_numpy().astype(np.int64)
        _require_same_rows(answer, parent, parents.rows)
        return Level(opened, [ENTRY, by], answer.select(ENTRY, by, KIND), *self._entries(answer, parents.group[parent]))

    def macro(self, entries: Entries, objective: Objective) -> MultilabelCut:
        cuts = self._cuttable(entries).best_cuts(objective, self.names)
        thresholds, intervals, confusion, shared = cuts.thresholds, cuts.intervals, cuts.confusion, None
        if not cuts.defined.all():
            pooled = self.pooled([objective])[0]
            shared = pooled.threshold
            thresholds = np.where(cuts.defined, thresholds, shared)
            intervals = np.where(cuts.defined[:, None], intervals, pooled.interval)
            confusion = confusion.where(cuts.defined, self._confusion_at(shared))
        return self._result(objective, "macro", thresholds, intervals, confusion, shared=shared)

    def with_one_threshold(self, cut: Cut) -> MultilabelCut:
        thresholds = np.full(len(self.names), cut.threshold)
        intervals = np.tile(np.array(cut.interval), (len(self.names), 1))
        confusion = self._confusion_at(cut.threshold)
        result = self._result(Objective(cut.metric), "micro", thresholds, intervals, confusion, value=cut.value)
        return replace(result, constraints=cut.constraints)

    def pooled(self, objectives: list[Objective]) -> list[Cut]:
        """The cuts of all rows together."""
        self._totals  # noqa: B018  # it checks the rows, and says what there is to say of them
        together = replace(self.rows, was_checked=True)
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
        return MultilabelCut.at(
            confusion,
            objective.metric,
            value=value,
            labels=self.names,
            thresholds=thresholds,
            average=average,
            intervals=intervals,
            rows=self.totals[0].sum(axis=1),
            shared_threshold=shared,
            constraints=objective.constraints,
            weighted=self.rows.weighted,
        )

    def _confusion_at(self, threshold: float) -> Confusion:
        """The confusion of each group at one threshold."""
        accepted, rejected = np.zeros_like(self.totals[1]), self.totals[1]
        if threshold < np.inf:
            above, below = (
                self.rows.valid.filter(nw.col(SCORE) >= threshold),
                self.rows.valid.filter(nw.col(SCORE) < threshold),
            )
            accepted, rejected = (
                self._by_class(self.rows.counted(some, *self.rows.keys))[1] for some in (above, below)
            )
        return Confusion(tp=accepted[:, 1], fp=accepted[:, 0], fn=rejected[:, 1], tn=rejected[:, 0])

    def _group_of(self, answer: nw.DataFrame[Any]) -> NDArray[np.int32]:
        """The number of each row's group."""
        keys = answer.select(*self.rows.keys).with_row_index(PARENT)
        numbered = keys.join(self.table, on=self.rows.keys, how="inner")
        if len(numbered) != len(answer):
            raise SourceChangedError
        group = np.empty(len(answer), dtype=np.int32)
        group[numbered[PARENT].to_numpy()] = numbered[GROUP].to_numpy()
        return group

    def _by_class(self, answer: nw.DataFrame[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        group = self._group_of(answer)
        rows = _by_class(answer, ROWS, group, len(self.table)).astype(np.int64)
        return rows, _by_class(answer, SUM, group, len(self.table)) if self.rows.weighted else rows

    def _all_entries(self, answer: nw.DataFrame[Any]) -> tuple[Entries, Any]:
        """Entries from an answer by group that tells of all rows."""
        group = self._group_of(answer)
        _require_same_rows(answer, group, self.totals[0])
        return self._entries(answer, group)

    def _entries(self, answer: nw.DataFrame[Any], group: NDArray[np.int32]) -> tuple[Entries, Any]:
        found = as_arrays(answer.select(*(name for name in answer.columns if name not in self.rows.keys)))
        del answer  # an answer of millions of rows is the largest thing here
        is_positive, rows = found.pop(KIND) == POSITIVE, found.pop(ROWS)
        weight = found.pop(SUM).astype(float) if self.rows.weighted else None
        low = ordered_keys(found.pop(LOW if LOW in found else SCORE))
        high = ordered_keys(found.pop(HIGH)) if HIGH in found else low
        return Entries.of(group, low, high, is_positive, rows, weight)

    def _promising(self, bins: Entries, objective: Objective) -> NDArray[np.bool_]:
        """Bins whose bound reaches the best edge of their group."""
        downward = self._downward(bins)
        return self._label_entries(bins, downward, bins.low[downward]).promising(objective)[downward]

    def _cuttable(self, entries: Entries) -> LabelEntries:
        """Descending, a bin as its highest score without weight and its lowest with all of it: no cut is in between."""
        wide, downward = entries.low < entries.high, self._downward(entries)
        twice = np.repeat(downward, 1 + wide[downward])
        is_top = wide[twice] & np.concatenate((twice[1:] == twice[:-1], [False]))
        keys = np.where(is_top, entries.high[twice], entries.low[twice])
        return self._label_entries(entries, twice, keys, is_top)

    def _downward(self, entries: Entries) -> NDArray[np.int64]:
        """Positions of the entries in descending order within each group; its own inverse."""
        first, last = (np.searchsorted(entries.group, np.arange(len(self.names)), side=s) for s in ("left", "right"))
        return np.asarray((first + last - 1)[entries.group] - np.arange(len(entries)))

    def _label_entries(
        self, entries: Entries, order: NDArray[np.int64], keys: NDArray[np.uint64], is_empty: Any = False
    ) -> LabelEntries:
        negative, positive = np.where(is_empty, 0, entries.weight[order].T)
        starts = np.searchsorted(entries.group[order], np.arange(len(self.names) + 1))
        absent = np.zeros((len(self.names), 2), dtype=entries.weight.dtype)
        return LabelEntries(starts, keys, positive, negative, absent, self.rows.dtype, self.rows.weighted)


def _highest_so_far(group: NDArray[np.int32], high: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The running maximum within each group, over steps that double."""
    highest = high.copy()
    step = 1
    while step < len(group) and (same := group[step:] == group[:-step]).any():
        highest[step:] = np.where(same, np.maximum(highest[step:], highest[:-step]), highest[step:])
        step *= 2
    return highest


def _by_class(answer: nw.DataFrame[Any], what: str, of: NDArray[Any], number: int) -> NDArray[Any]:
    """Sums of an answer's column, by what its rows belong to and by class, negatives first."""
    at = 2 * of.astype(np.int64) + (answer[KIND].to_numpy() == POSITIVE)
    sums: NDArray[Any] = np.bincount(at, answer[what].to_numpy().astype(float), 2 * number)
    return sums.reshape(number, 2)


def _require_same_rows(answer: nw.DataFrame[Any], of: NDArray[Any], before: NDArray[np.int64]) -> None:
    """Raise unless an answer tells of the rows that were counted before, by what they belong to and class."""
    if not np.array_equal(_by_class(answer, ROWS, of, len(before)), before):
        raise SourceChangedError


def _sums_by_class(values: NDArray[Any], is_positive: NDArray[np.bool_], starts: NDArray[np.intp]) -> NDArray[Any]:
    apart = np.column_stack((np.where(is_positive, 0, values), np.where(is_positive, values, 0)))
    sums: NDArray[Any] = np.add.reduceat(apart, starts, axis=0)
    return sums


def _division(bins: Entries) -> dict[str, NDArray[Any]]:
    """How bins are to be divided: from where, into parts of which size, and whether by octaves."""
    low, high = scores_of_keys(bins.low), scores_of_keys(bins.high)
    near, far = np.sort(np.abs((low, high)), axis=0)
    in_octaves = (far > 2 * near) & (near > 0) & np.isfinite(far)
    parts = max(PARTS_EACH, BINS // len(bins))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # of denormals, and of −inf
        offset = np.where(in_octaves, np.log2(near), low)
        scale = parts / np.where(in_octaves, np.log2(far) - np.log2(near), high - low)
    return {SCALE: np.nan_to_num(scale), OFFSET: np.nan_to_num(offset), IN_OCTAVES: in_octaves}


def _in_parts(opened: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Opened bins with the number of each row's part; parts need not be in order, since their ends are counted too."""
    size = nw.col(SCORE).abs()
    octave = nw.when(nw.col(IN_OCTAVES)).then(size).otherwise(nw.lit(1.0)).log(2.0)
    value = nw.when(nw.col(IN_OCTAVES)).then(octave).otherwise(nw.col(SCORE))
    part = ((value - nw.col(OFFSET)) * nw.col(SCALE)).floor().clip(0.0, float(BINS))
    return opened.with_columns(part.cast(nw.Int64).alias(BIN)).drop(OFFSET, SCALE, IN_OCTAVES)
