"""Rows that stay in their engine: Spark, Dask, DuckDB, and whatever Ibis speaks to, asked by GROUP BY.

The engine counts rows by group, bin and class, and says which scores each bin begins and ends with. Its arithmetic
makes the bins, so nothing is concluded from their numbers: a bin is the scores that were found in it, and bins that
overlap are one. What is shipped is the first counts, the counts of the divided bins, and at last the scores of the rows
that are left. No answer has more than one row per group, occupied bin and class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from surecut._inputs import LARGEST_EXACT_INTEGER, as_doubles
from surecut._labels import LISTED, LabelKind, LabelRule, as_written, wrong_type
from surecut._missing import Missing
from surecut._plurals import all_of, counted
from surecut.confusion import Confusion
from surecut.core.entries import Entries
from surecut.core.keys import checksum, ordered_keys, row_marks, scores_of_keys
from surecut.core.search import Source, SourceChangedError, require_same_rows
from surecut.core.settings import Settings, settings
from surecut.core.tally import ScoreTally
from surecut.core.threads import on_stream
from surecut.overlap import RowSample, positions, sampled_labels
from surecut.positive_class import settle_absence
from surecut.sample import Sample
from surecut.sources.columns import Columns, as_group_key, is_nan, not_numbers
from surecut.sources.engine_tables import batches_of, can_stream, table_beside
from surecut.sources.groups import GroupSource
from surecut.sources.key_values import as_key
from surecut.sources.labels import LabelSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.rules import Objective
    from surecut.metrics import Metric

WIDE = 16
"""Half of the first bins lie within a factor of 2**WIDE of 1."""

SHRUNK = 0.75
"""Where more than this share of the rows stays unresolved, dividing again does not help: they are tied, or as good."""


class RowKind(IntEnum):
    """What a row is: its class, or what is wrong with it. Of several kinds that apply, the last one counts."""

    NEGATIVE = 0
    POSITIVE = 1
    NEGATIVE_WITHOUT_WEIGHT = 2
    POSITIVE_WITHOUT_WEIGHT = 3
    BAD_WEIGHT = 4
    MISSING_WEIGHT = 5
    TOO_LARGE = 6
    MISSING_LABEL = 7
    MISSING_SCORE = 8
    MISSING_KEY = 9


COUNTED = RowKind.POSITIVE
"""The last kind whose rows are counted in bins."""

LABELLED = RowKind.POSITIVE_WITHOUT_WEIGHT
"""The last kind whose rows have a label that the rule is asked about."""

SCORE, LABEL, WEIGHT, KIND, BIN = "surecut_score", "surecut_label", "surecut_weight", "surecut_kind", "surecut_bin"
ROWS, LOW, HIGH, SUM, SQUARES = "surecut_rows", "surecut_low", "surecut_high", "surecut_sum", "surecut_squares"
FIRST_LABEL, LAST_LABEL = "surecut_first_label", "surecut_last_label"
GROUP, ENTRY, PARENT = "surecut_group", "surecut_entry", "surecut_parent"
THRESHOLD, ACCEPTED = "surecut_threshold", "surecut_accepted"
TOO_LARGE = "surecut_too_large"
OFFSET, SCALE, IN_OCTAVES = "surecut_offset", "surecut_scale", "surecut_in_octaves"


@dataclass(frozen=True)
class EngineRows:
    """A lazy frame in an engine, and the queries for it."""

    frame: nw.LazyFrame[Any]
    columns: Columns
    missing: str = "error"
    metrics: tuple[Metric, ...] = ()
    """What is tuned: some metrics need rows of the positive class."""
    was_checked: bool = False
    """Whether the rows were checked before, so that nothing more is said of them."""
    positives_need_scores: bool = True
    """Whether a positive row without a score is a row that lacks a value."""

    def __post_init__(self) -> None:
        self.columns.require_in(self._schema.names())
        self.columns.require_number_weights(self._schema)

    @cached_property
    def _schema(self) -> Any:
        return self.frame.collect_schema()

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The scores' own dtype, in which thresholds are put."""
        kind = self._schema[self.columns.score]
        if kind == nw.Boolean:
            return np.dtype(np.uint8)
        if kind.is_integer() and kind not in (nw.Int128, nw.UInt128):
            return np.dtype(str(kind).lower())
        if kind == nw.Float32:
            return np.dtype(np.float32)
        if kind.is_numeric():
            return np.dtype(np.float64)
        raise not_numbers(self.columns.score, kind)

    @property
    def weighted(self) -> bool:
        return self.columns.weight is not None

    @property
    def keys(self) -> list[str]:
        """The columns of group keys, under names of our own."""
        return [f"surecut_key_{number}" for number in range(len(self.columns.by))]

    def tally(self) -> ScoreTally:
        """All rows, by distinct score, shipped: they have to fit in memory."""
        self.check(self.counted(self.prepared, with_labels=True))
        found = self.counted(self.valid, SCORE)
        entries = entries_of(found, np.zeros(len(found), dtype=np.int64), 1, self.weighted)[0]
        rows, squares = entries.rows, entries.rows
        if self.weighted:
            of_squares = found.with_columns(nw.col(SQUARES).alias(SUM))
            squares = entries_of(of_squares, np.zeros(len(found), dtype=np.int64), 1, weighted=True)[0].weight
        bits = scores_of_keys(entries.low).view(np.int64)
        named = sum(
            checksum(np.repeat(bits, rows[:, one]), np.repeat(np.full(len(bits), bool(one)), rows[:, one]))
            for one in (0, 1)
        )
        return ScoreTally(entries.low, entries.weight, rows, squares, self.dtype, named % 2**64)

    # --- Expressions -------------------------------------------------------------------------------------------------

    @cached_property
    def named(self) -> nw.LazyFrame[Any]:
        """Score, label, weight and keys under names of our own."""
        columns = self.columns
        raw, label = nw.col(columns.score), nw.col(columns.label)
        score = raw.cast(nw.Float64)
        label_type = self._schema[columns.label]
        if label_type in (nw.Categorical, nw.Enum):
            label = nw.when(~label.is_null()).then(label.cast(nw.String))  # pandas before 3 makes 'nan' of a null
        elif label_type == nw.Decimal:
            label = label.cast(nw.Float64)
        elif label_type == nw.Boolean:
            label = label.cast(nw.Int64)
        selected = [score.alias(SCORE), label.alias(LABEL)]
        too_large = nw.lit(False)
        if self._schema[columns.score] in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128):
            too_large = (raw > LARGEST_EXACT_INTEGER) | (raw < -LARGEST_EXACT_INTEGER)
        if columns.weight is not None:
            selected.append(nw.col(columns.weight).cast(nw.Float64).alias(WEIGHT))
        keys = [
            as_group_key(column, self._schema[column]).alias(key)
            for column, key in zip(columns.by, self.keys, strict=True)
        ]
        return self.frame.select(*selected, *keys, too_large.alias(TOO_LARGE))

    @cached_property
    def classified(self) -> nw.LazyFrame[Any]:
        """The same, and what each row is."""
        columns, is_positive = self.columns, self.is_positive
        kind = _kind(is_positive, RowKind.POSITIVE, RowKind.NEGATIVE)
        if columns.weight is not None:
            weight = nw.col(WEIGHT)
            without = _kind(is_positive, RowKind.POSITIVE_WITHOUT_WEIGHT, RowKind.NEGATIVE_WITHOUT_WEIGHT)
            kind = _kind(weight == 0.0, without, kind)
            kind = _kind((weight < 0.0) | (weight == math.inf), RowKind.BAD_WEIGHT, kind)
            kind = _kind(self._is_missing(weight), RowKind.MISSING_WEIGHT, kind)
        kind = _kind(nw.col(TOO_LARGE), RowKind.TOO_LARGE, kind)
        label_type = self._schema[columns.label]
        may_be_nan = label_type.is_float() or label_type == nw.Decimal
        kind = _kind(self._is_missing(nw.col(LABEL), may_be_nan), RowKind.MISSING_LABEL, kind)
        lacks_score = self.lacks_score if self.positives_need_scores else self.lacks_score & ~is_positive
        kind = _kind(lacks_score, RowKind.MISSING_SCORE, kind)
        for column, key in zip(columns.by, self.keys, strict=True):
            kind = _kind(self._is_missing(nw.col(key), self._schema[column].is_float()), RowKind.MISSING_KEY, kind)
        # Through cast, since a literal is of the narrowest type in some engines
        return self.named.with_columns(kind.cast(nw.Int64).alias(KIND))

    @cached_property
    def prepared(self) -> nw.LazyFrame[Any]:
        """The same with finite scores, before anything is computed from them.

        Engines disagree about NaN, nulls and infinities in arithmetic and in casts.
        """
        largest = float(np.finfo(self.dtype).max) if self.dtype.kind == "f" else np.finfo(np.float64).max
        capped = nw.when(nw.col(SCORE) > largest).then(nw.lit(largest)).otherwise(nw.col(SCORE))
        finite = nw.when(self._is_missing(nw.col(SCORE))).then(nw.lit(0.0)).otherwise(capped)
        return self.classified.with_columns(finite.alias(SCORE))

    @cached_property
    def valid(self) -> nw.LazyFrame[Any]:
        return self.prepared.filter(nw.col(KIND) <= COUNTED)

    def binned(self, fine: int) -> nw.LazyFrame[Any]:
        """All rows with their first bins; rows that do not count share one.

        In steps, since Spark compiles each to Java, and Java does not compile what is too long.
        """
        size = nw.col(SCORE).abs()
        usual = (nw.col(KIND) <= COUNTED) & (size > 0.0) & (size <= float(np.finfo(np.float64).max))
        octave = nw.when(usual).then(size).otherwise(nw.lit(1.0)).log(2.0)
        frame = self.prepared.with_columns(octave.alias(BIN))
        number = (nw.col(BIN) / (nw.col(BIN).abs() + float(WIDE)) * float(WIDE * fine)).floor()
        frame = frame.with_columns((number + float(2 * WIDE * fine)).alias(BIN))
        unusual = nw.when(size > 0.0).then(nw.lit(-4.0 * WIDE * fine)).otherwise(nw.lit(0.0))  # −inf, and zero
        above_zero = nw.when(usual).then(nw.col(BIN)).otherwise(unusual)
        number = nw.when(nw.col(SCORE) < 0.0).then(above_zero * -1.0).otherwise(above_zero)
        return frame.with_columns(_whole(number).alias(BIN))

    @property
    def _rule(self) -> LabelRule:
        return LabelRule(self.columns.pos_label, self.columns.label)

    def _is_missing(self, value: Any, may_be_nan: bool = True) -> Any:
        """Whether an expression is null, or NaN."""
        is_null = value.is_null()
        return is_null | is_nan(value, self.frame.implementation.is_duckdb()) if may_be_nan else is_null

    @property
    def lacks_score(self) -> Any:
        """Whether a row has no score."""
        return self._is_missing(nw.col(SCORE))

    @property
    def is_positive(self) -> Any:
        """Whether a row has the positive label; every other label is negative, until `check` has seen them."""
        kind = self._schema[self.columns.label]
        if kind.is_temporal():
            raise wrong_type(self.columns.label, "dates or times")
        if kind.is_nested():
            raise wrong_type(self.columns.label, f"values of type {kind}")
        if kind.is_numeric() or kind == nw.Boolean:
            positive = self._rule.positive(LabelKind.NUMBER)
        elif kind in (nw.String, nw.Categorical, nw.Enum) or isinstance(self.columns.pos_label, str):
            positive = self._rule.positive(LabelKind.TEXT)  # engines compare text with types of their own, such as UUID
        else:
            positive = self._rule.positive(LabelKind.OTHER)
        if positive is not None and (kind.is_integer() or kind.is_float()):
            positive = as_key(positive, kind)  # engines would compare large integers as floats
        return nw.lit(False) if positive is None else nw.col(LABEL) == positive

    # --- Answers -----------------------------------------------------------------------------------------------------

    def counted(self, frame: nw.LazyFrame[Any], *by: str, with_labels: bool = False) -> nw.DataFrame[Any]:
        """Rows by some columns and what they are: counts, and sums of weights.

        Also lowest and highest score of bins and, for `check`, lowest and highest label (`with_labels`).
        """
        asked = [nw.len().alias(ROWS)]
        if BIN in by:
            asked += [nw.col(SCORE).min().alias(LOW), nw.col(SCORE).max().alias(HIGH)]
        if with_labels:
            asked += [nw.col(LABEL).min().alias(FIRST_LABEL), nw.col(LABEL).max().alias(LAST_LABEL)]
        if self.weighted:
            frame = frame.with_columns((nw.col(WEIGHT) * nw.col(WEIGHT)).alias(SQUARES))
            asked += [nw.col(WEIGHT).sum().alias(SUM), nw.col(SQUARES).sum()]
        return frame.group_by(*by, KIND).agg(*asked).collect()

    def check(self, answer: nw.DataFrame[Any]) -> None:
        """Raise where rows lack a value, labels are more than two, or nothing is left."""
        counts = as_arrays(answer.select(KIND, ROWS))
        of_kind = np.bincount(counts[KIND], weights=counts[ROWS], minlength=len(RowKind)).astype(np.int64)
        rows = dict(zip(RowKind, of_kind.tolist(), strict=True))
        total = sum(rows.values())
        if not total:
            raise ValueError("the frame holds no rows: at least one is needed")
        missing = Missing(
            score=rows[RowKind.MISSING_SCORE],
            label=rows[RowKind.MISSING_LABEL],
            weight=rows[RowKind.MISSING_WEIGHT],
            key=rows[RowKind.MISSING_KEY],
        )
        if not self.was_checked:
            missing.settle(self.missing, total)
        if rows[RowKind.TOO_LARGE]:
            raise ValueError(
                f"{self.columns.score} holds integers beyond 2**53 in {counted(rows[RowKind.TOO_LARGE], 'row')}, where "
                "float64 cannot tell neighbours apart: rescale or rank the scores"
            )
        if rows[RowKind.BAD_WEIGHT]:
            raise ValueError(
                f"{self.columns.weight} must be finite and not negative, which it is not in "
                f"{counted(rows[RowKind.BAD_WEIGHT], 'row')}"
            )
        classes = self._rule.classes(self._labels_in(answer))
        if not self.was_checked:
            settle_absence(classes.absent, self.metrics)
        if not rows[RowKind.NEGATIVE] + rows[RowKind.POSITIVE]:
            raise ValueError(f"{self.columns.weight} is zero in {all_of(total, 'row')}: nothing is left to tune on")

    def _labels_in(self, answer: nw.DataFrame[Any]) -> list[Any]:
        """The distinct labels: the lowest and the highest of each class, if these are all there are."""
        kinds = answer.group_by(KIND, FIRST_LABEL, LAST_LABEL).agg(nw.len())  # of millions of groups few are left
        labelled = kinds.filter(nw.col(KIND) <= LABELLED)
        is_positive = nw.col(KIND).is_in([RowKind.POSITIVE, RowKind.POSITIVE_WITHOUT_WEIGHT])
        positives, others = (
            {label for name in (FIRST_LABEL, LAST_LABEL) for label in self._plain(labelled.filter(own)[name])}
            for own in (is_positive, ~is_positive)
        )
        if len(others) < 2:
            return [*positives, *others]
        found = self.prepared.filter(nw.col(KIND) <= LABELLED).select(LABEL).unique(LABEL).head(LISTED).collect()
        return self._plain(found[LABEL])

    def _plain(self, labels: nw.Series[Any]) -> list[Any]:
        """Labels as the rule takes them."""
        kind = self._schema[self.columns.label]
        if kind == nw.Boolean:
            return [bool(label) for label in labels.to_list()]
        return as_written(labels.to_numpy().astype(np.float32)) if kind == nw.Float32 else labels.to_list()


@dataclass(frozen=True)
class Level:
    """Rows in the engine that are in bins, and what it counted there.

    `answer` has a row for each bin and class, distinguished by the columns `by` and `KIND`; it belongs to the entry
    `home` of `entries`, whose tags begin at `offset`.
    """

    frame: nw.LazyFrame[Any]
    by: list[str]
    answer: nw.DataFrame[Any]
    entries: Entries
    home: NDArray[np.int64]
    offset: int


class EngineSource:
    """All rows of a frame in an engine as one sample, or each of its groups as one."""

    refines = True

    def __init__(self, rows: EngineRows, groups: EngineGroups | None = None) -> None:
        self._rows, self._groups = rows, groups
        self._settings = settings()
        self._levels: list[Level] = []
        self._unresolved = math.inf
        self._tables = ExitStack()
        self.dtype = rows.dtype
        self.sample = Sample()

    @property
    def samples(self) -> int:
        """The number of samples."""
        return 1 if self._groups is None else len(self._groups.table)

    @property
    def resolvable_rows(self) -> float:
        if self._groups is None:
            return self._settings.shipped
        return max(self._settings.shipped_by_group, self._settings.shipped_each * self.samples)

    def count(self, every: bool = False) -> Entries:
        rows, by = self._rows, self._rows.keys
        if self._groups is not None:
            every = every or self._groups.size <= self.resolvable_rows
        elif every:
            tally = self.tally()
            self.sample = tally.sample
            return tally.entries
        if every:
            answer = rows.counted(rows.valid, *by, SCORE)
            sample = self._sample_of(answer)
            return self._remember(answer, sample, entries_of(answer, sample, self.samples, rows.weighted)[0])
        fine = self._settings.fine if self._groups is None else first_bins_per_octave(self._settings, self.samples)
        binned = rows.binned(fine)
        if self._groups is not None:
            binned = binned.filter(nw.col(KIND) <= COUNTED)
        answer = rows.counted(binned, *by, BIN, with_labels=self._groups is None)
        if self._groups is None:
            rows.check(answer)
            answer = answer.filter(nw.col(KIND) <= COUNTED)
        sample = self._sample_of(answer)
        return self._remember(answer, sample, self._level(binned, [*by, BIN], answer, sample, self.samples))

    def tally(self) -> ScoreTally:
        """All rows, by distinct score; they have to fit in memory."""
        return self._rows.tally()

    def refine(self, wide: Entries) -> Entries:
        """Divide the newest bins, or fetch their rows by distinct score if these are few."""
        level = next(level for level in reversed(self._levels) if (wide.tag >= level.offset).any())
        own = wide.tag >= level.offset
        chosen = np.zeros(len(level.entries), dtype=bool)
        chosen[wide.tag[own] - level.offset] = True
        unresolved = int(level.entries.rows[chosen].sum())
        opened = self._opened(level, chosen)
        if unresolved <= self.resolvable_rows or unresolved > SHRUNK * self._unresolved:
            answer = self._rows.counted(opened, ENTRY, SCORE)
            finer = entries_of(answer, _numbers(answer, ENTRY), int(chosen.sum()), self._rows.weighted)[0]
        else:
            parts = _in_parts(opened, self._settings.engine_bins)
            answer = self._rows.counted(parts, ENTRY, BIN)
            finer = self._level(parts, [ENTRY, BIN], answer, _numbers(answer, ENTRY), int(chosen.sum()))
        self._unresolved = unresolved
        return finer if own.all() else wide.one_each().spliced(own, finer)

    def _remember(self, answer: nw.DataFrame[Any], sample: NDArray[np.int64], entries: Entries) -> Entries:
        """Note what a decision remembers of the rows; those of groups have to be the ones that were counted before."""
        if self._groups is not None:
            require_same_rows(entries, self._groups.counts)
            self._groups.remember(answer, sample)
        seen = (_lowest_rows(as_arrays(answer)),) if self._groups is None and LOW in answer.columns else ()
        # What names rows on every path would have to be computed row by row, in an arithmetic that all engines share
        self.sample = Sample(int(entries.rows.sum()), self._rows.weighted, seen=seen)
        return entries

    def _sample_of(self, answer: nw.DataFrame[Any]) -> NDArray[np.int64]:
        if self._groups is None:
            return np.zeros(len(answer), dtype=np.int64)
        return self._groups.number_of(answer)

    def _level(
        self,
        frame: nw.LazyFrame[Any],
        by: list[str],
        answer: nw.DataFrame[Any],
        sample: NDArray[np.int64],
        samples: int,
    ) -> Entries:
        """What was counted in bins, with tags by which they can be divided."""
        entries, home = entries_of(answer, sample, samples, self._rows.weighted)
        offset = self._levels[-1].offset + len(self._levels[-1].entries) if self._levels else 0
        entries = replace(entries, tag=np.arange(len(entries)) + offset)
        self._levels.append(Level(frame, by, answer.select(*by, KIND), entries, home, offset))
        return entries

    def _opened(self, level: Level, chosen: NDArray[np.bool_]) -> nw.LazyFrame[Any]:
        """The rows in some bins, with the number of their bin among these and how it is to be divided."""
        number = np.cumsum(chosen) - 1
        asked = chosen[level.home]
        some = level.answer.filter(nw.new_series("asked", asked, backend=level.answer.implementation))
        parent = number[level.home[asked]]
        division = _division(level.entries[chosen], self._settings.engine_bins, self._settings.parts_each)
        columns = {PARENT: parent} | {name: values[parent] for name, values in division.items()}
        added = (nw.new_series(name, values, backend=some.implementation) for name, values in columns.items())
        beside = self._tables.enter_context(table_beside(self._rows.frame, some.with_columns(*added)))
        opened = level.frame.join(beside, on=[*level.by, KIND], how="inner")
        return opened.drop(level.by).rename({PARENT: ENTRY})

    def __del__(self) -> None:
        self._tables.close()


class GroupCounts(NamedTuple):
    """The groups of a frame: keys and number of each, and by class its rows and their weight.

    `are_all` says whether these are all rows: none lacks a value, and none has a weight of zero.
    """

    table: nw.DataFrame[Any]
    rows: NDArray[np.int64]
    weight: NDArray[Any]
    are_all: bool


class EngineGroups(LabelSource):
    """The groups of a frame in an engine, numbered in the order of their keys."""

    def __init__(self, engine: EngineRows) -> None:
        super().__init__()
        self.engine = engine
        self._remembered: dict[int, RowSample] = {}

    @cached_property
    def _counted(self) -> GroupCounts:
        """Rows by group and class; checks labels, scores, weights and keys."""
        keys = self.engine.keys
        found = self.engine.counted(self.engine.classified, *keys, with_labels=True)
        self.engine.check(found)
        kinds = len(found)
        found = found.filter(nw.col(KIND) <= COUNTED).sort(*keys)
        are_all = len(found) == kinds
        is_first = np.zeros(len(found), dtype=bool)
        is_first[:1] = True
        for key in keys:
            is_first[1:] |= (found[key][1:] != found[key][:-1]).to_numpy().astype(bool)
        rows, weight = self._by_class(found, np.cumsum(is_first) - 1, int(is_first.sum()))
        first = nw.new_series("first", is_first, backend=found.implementation)
        return GroupCounts(found.filter(first).select(*keys).with_row_index(GROUP), rows, weight, are_all)

    @property
    def table(self) -> nw.DataFrame[Any]:
        """Keys and number of every group."""
        return self._counted.table

    @cached_property
    def names(self) -> tuple[Any, ...]:
        """The key of each group; a tuple where several columns group."""
        columns = [self.table[key].to_list() for key in self.engine.keys]
        return tuple(columns[0]) if len(columns) == 1 else tuple(zip(*columns, strict=True))

    @property
    def counts(self) -> NDArray[np.int64]:
        """Shape (groups, 2), negatives first: number of rows."""
        return self._counted.rows

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.asarray(self.counts.sum(axis=1))

    @property
    def size(self) -> int:
        return int(self.rows.sum())

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.engine.dtype

    @property
    def weighted(self) -> bool:
        return self.engine.weighted

    @property
    def totals(self) -> NDArray[Any]:
        return self._counted.weight

    def blocks(self) -> list[slice]:
        return [slice(0, len(self.table))]

    def part(self, labels: slice, objective: Objective) -> Source:
        return EngineSource(self.engine, self)

    def entries(self, labels: slice) -> Entries:
        return self._every_score

    @cached_property
    def _every_score(self) -> Entries:
        """All scores of all groups, shipped: they have to fit in memory."""
        return EngineSource(self.engine, self).count(every=True)

    def pooled(self) -> Source:
        self._counted  # noqa: B018  # it checks the rows, and says what there is to say of them
        columns = replace(self.engine.columns, by=())
        return EngineSource(replace(self.engine, columns=columns, was_checked=True))

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The confusion of each group at its threshold, counted in the engine."""
        limits = nw.new_series(THRESHOLD, thresholds, backend=self.table.implementation)
        reaches = nw.col(SCORE) >= nw.col(THRESHOLD)  # no score here is infinite
        with table_beside(self.engine.frame, self.table.drop(GROUP).with_columns(limits)) as beside:
            joined = self.engine.valid.join(beside, on=self.engine.keys, how="inner")
            answer = self.engine.counted(joined.with_columns(reaches.alias(ACCEPTED)), *self.engine.keys, ACCEPTED)
        is_accepted = answer[ACCEPTED].to_numpy().astype(bool)
        accepted, rejected = (
            self._by_class(some, self.number_of(some), len(self.table))[1]
            for some in (
                answer.filter(nw.new_series("asked", which, backend=answer.implementation))
                for which in (is_accepted, ~is_accepted)
            )
        )
        return Confusion(tp=accepted[:, 1], fp=accepted[:, 0], fn=rejected[:, 1], tn=rejected[:, 0])

    def collected(self) -> LabelSource:
        """The groups with their rows in memory, where these can be streamed and are not too many."""
        needed = self.size * GroupSource.bytes_per_row(self.dtype, self.weighted)
        if not can_stream(self.engine.frame) or needed > self.settings.grouped_bytes:
            return self
        rows = GroupSource(self.counts, self.totals, self.dtype, self.weighted)

        def add(_: None, batch: nw.DataFrame[Any]) -> None:
            rows.add(*self._columns(batch))

        with self._numbered() as stream:
            on_stream(stream, lambda: None, add, self.settings.available_cores)
        rows.require_complete()
        return rows

    @contextmanager
    def _numbered(self) -> Iterator[Iterator[nw.DataFrame[Any]]]:
        """All rows in batches: twice the number of their group, and 1 more if positive, their score and weight."""
        weight = [WEIGHT] if self.weighted else []
        engine, kind = self.engine, nw.Int32 if len(self.table) < 2**30 else nw.Int64
        if self._counted.are_all:  # what rows are is not asked again
            rows, is_positive = engine.named, engine.is_positive
        else:
            rows, is_positive = engine.classified.filter(nw.col(KIND) <= COUNTED), nw.col(KIND)
        with table_beside(engine.frame, self.table.with_columns((nw.col(GROUP) * 2).cast(kind))) as beside:
            joined = rows.join(beside, on=engine.keys, how="inner")
            place = nw.col(GROUP) + is_positive.cast(kind)
            yield batches_of(joined.select(place.alias(GROUP), SCORE, *weight))

    def _columns(self, batch: nw.DataFrame[Any]) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any] | None]:
        """The places of a batch, its scores and its weights; none of them is missing, as long as rows do not change."""
        if any(batch[name].null_count() for name in batch.columns):
            raise SourceChangedError
        scores = batch[SCORE].to_numpy()
        weights = batch[WEIGHT].to_numpy() if self.weighted else None
        if np.isnan(scores.max(initial=0.0)):
            raise SourceChangedError
        if weights is not None and not (weights.min(initial=1.0) > 0 and weights.max(initial=1.0) < np.inf):
            raise SourceChangedError
        return batch[GROUP].to_numpy(), scores, weights

    def checksums(self) -> NDArray[np.uint64]:
        return self._named[0]

    def seen(self, totals: NDArray[Any]) -> tuple[RowSample, ...]:
        return self._named[1]

    @cached_property
    def _named(self) -> tuple[NDArray[np.uint64], tuple[RowSample, ...]]:
        """The checksum of each group, and some rows of some groups, by one more pass over the rows.

        Engines that would have to ship all rows are asked for the lowest scores in bins: their groups have no checksum.
        """
        chosen, size = sampled_labels(*self.totals.T)
        if can_stream(self.engine.frame):
            sums, kept = self._streamed(chosen)
        else:
            sums, kept = super().checksums(), self._remembered or self._lowest(chosen)
        parts = {}
        for one, sample in kept.items():
            some = positions(len(sample), size)
            parts[one] = sample.taken(some)
        return sums, (RowSample.of_labels(parts),)

    def _streamed(self, chosen: NDArray[np.intp]) -> tuple[NDArray[np.uint64], dict[int, RowSample]]:
        """The checksum of each group, and some rows of the chosen ones, from all rows, batch by batch."""
        sums = np.zeros(len(self.table), dtype=np.uint64)
        kept = dict.fromkeys(chosen.tolist(), RowSample.none())
        with self._numbered() as stream:
            for batch in stream:
                place, scores, _ = self._columns(batch)
                scores = as_doubles(scores.astype(self.dtype, copy=False))  # +inf is the largest float of its dtype
                group, is_positive = place >> 1, place % 2 == 1
                np.add.at(sums, group, row_marks(scores.view(np.int64), is_positive))
                for one in np.intersect1d(chosen, group).tolist():
                    own, so_far = group == one, kept[one]
                    kept[one] = RowSample.of_stream(
                        np.concatenate((so_far.scores, scores[own])),
                        np.concatenate((so_far.is_positive, is_positive[own])),
                    )
        return sums, kept

    def _lowest(self, chosen: NDArray[np.intp]) -> dict[int, RowSample]:
        """The lowest score of each class in the first bins of the chosen groups, counted by the engine."""
        some = self.table.filter(nw.col(GROUP).is_in(chosen.tolist()))
        binned = self.engine.binned(first_bins_per_octave(self.settings, len(chosen)))
        with table_beside(self.engine.frame, some) as beside:
            joined = binned.filter(nw.col(KIND) <= COUNTED).join(beside, on=self.engine.keys, how="inner")
            answer = joined.group_by(GROUP, BIN, KIND).agg(nw.col(SCORE).min().alias(LOW)).collect()
        return _lowest_by_group(answer, _numbers(answer, GROUP), chosen)

    def remember(self, answer: nw.DataFrame[Any], group: NDArray[np.int64]) -> None:
        """Keep some rows of some groups from an answer by bin or by score, if it has enough of them.

        Nothing else has to be asked then. Frames that can be streamed are, for the checksums.
        """
        if can_stream(self.engine.frame):
            return
        chosen, size = sampled_labels(*self.totals.T)
        found = _lowest_by_group(answer, group, chosen)
        if SCORE in answer.columns or all(len(rows) >= size for rows in found.values()):
            self._remembered = found

    def number_of(self, answer: nw.DataFrame[Any]) -> NDArray[np.int64]:
        """The number of the group of each row of an answer."""
        keys = answer.select(*self.engine.keys).with_row_index(PARENT)
        numbered = keys.join(self.table, on=self.engine.keys, how="inner")
        if len(numbered) != len(answer):
            raise SourceChangedError
        group = np.empty(len(answer), dtype=np.int64)
        group[numbered[PARENT].to_numpy()] = numbered[GROUP].to_numpy()
        return group

    def _by_class(
        self, answer: nw.DataFrame[Any], group: NDArray[np.int64], groups: int
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Rows and weights by group and class, from an answer whose rows belong to some groups."""
        at = 2 * group + (answer[KIND].to_numpy() == RowKind.POSITIVE)

        def added(column: str) -> NDArray[Any]:
            return np.bincount(at, answer[column].to_numpy().astype(float), 2 * groups).reshape(-1, 2)

        rows = added(ROWS).astype(np.int64)
        return rows, added(SUM) if self.weighted else rows


def first_bins_per_octave(sizes: Settings, samples: int) -> int:
    """First bins per octave around 1, where several samples are counted at once."""
    most = sizes.fine.bit_length() - 1
    return 1 << min(most, max(0, (sizes.engine_bins // samples).bit_length() - 5))


def _kind(condition: Any, kind: Any, otherwise: Any) -> Any:
    """An expression that is one kind of row where a condition holds, and another elsewhere."""
    kinds = (nw.lit(int(one)) if isinstance(one, RowKind) else one for one in (kind, otherwise))
    return nw.when(condition).then(next(kinds)).otherwise(next(kinds))


def _whole(number: Any) -> Any:
    """A whole number as an integer of which the engine knows that it is never null.

    Before Spark joins rows by a column that may be null, it filters out the nulls. For that filter it computes the
    column from those of the frame in one expression, which is too long for Java to compile.
    """
    return number.cast(nw.Int64).fill_null(0)


def entries_of(
    answer: nw.DataFrame[Any], sample: NDArray[np.int64], samples: int, weighted: bool
) -> tuple[Entries, NDArray[np.int64]]:
    """Entries from an answer whose rows belong to some samples, and the entry that each row of it went to.

    Classes were counted separately: what overlaps within a sample is one entry.
    """
    found = as_arrays(answer.select(*(name for name in (KIND, ROWS, LOW, HIGH, SCORE, SUM) if name in answer.columns)))
    del answer  # an answer of millions of rows is the largest thing here
    if not len(sample):
        raise SourceChangedError
    is_positive = found.pop(KIND) == RowKind.POSITIVE
    low = ordered_keys(found.pop(LOW if LOW in found else SCORE))
    high = ordered_keys(found.pop(HIGH)) if HIGH in found else low
    order = np.lexsort((~high, sample))
    sample, top = sample[order], high[order]
    reached = top if high is low else ~_highest_so_far(sample, ~low[order])  # the lowest key so far
    begins = np.concatenate(([True], (sample[1:] != sample[:-1]) | (top[1:] < reached[:-1])))
    firsts = np.flatnonzero(begins)
    ends = np.append(firsts[1:], len(order)) - 1
    home = np.empty(len(order), dtype=np.int64)
    home[order] = np.cumsum(begins) - 1

    def by_class(values: NDArray[Any]) -> NDArray[Any]:
        columns = np.column_stack((np.where(is_positive, 0, values), np.where(is_positive, values, 0)))[order]
        return np.asarray(np.add.reduceat(columns, firsts, axis=0))

    rows = by_class(found.pop(ROWS))
    weight = by_class(found.pop(SUM).astype(float)) if weighted else rows
    starts = np.searchsorted(sample[firsts], np.arange(samples + 1))
    return Entries.of(reached[ends], top[firsts], rows, weight, starts=starts, exact=True), home


def as_arrays(answer: nw.DataFrame[Any]) -> dict[str, NDArray[Any]]:
    """The columns of an answer, in the dtypes that we count on: engines differ about the width of integers."""
    wanted = {ROWS: np.int64, KIND: np.int64, SCORE: np.float64, LOW: np.float64, HIGH: np.float64}
    arrays = {name: answer[name].to_numpy() for name in answer.columns}
    return {name: array.astype(wanted[name], copy=False) if name in wanted else array for name, array in arrays.items()}


def _numbers(answer: nw.DataFrame[Any], column: str) -> NDArray[np.int64]:
    return np.asarray(answer[column].to_numpy().astype(np.int64, copy=False))


def _lowest_rows(found: dict[str, NDArray[Any]]) -> RowSample:
    """The lowest score of each class in some bins: rows that there are, to recognise them by."""
    valid = np.flatnonzero(found[KIND] <= COUNTED)
    valid = valid[np.argsort(found[LOW][valid], kind="stable")]
    return RowSample.of_rows(found[LOW][valid], found[KIND][valid] == RowKind.POSITIVE)


def _lowest_by_group(
    answer: nw.DataFrame[Any], group: NDArray[np.int64], chosen: NDArray[np.intp]
) -> dict[int, RowSample]:
    """The lowest score of each class in bins of some groups, from an answer by bin or by score."""
    low = SCORE if SCORE in answer.columns else LOW
    found = as_arrays(answer.select(KIND, nw.col(low).alias(LOW)))
    return {
        one: _lowest_rows({name: column[group == one] for name, column in found.items()}) for one in chosen.tolist()
    }


def _highest_so_far(sample: NDArray[np.int64], high: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The running maximum within each sample, over steps that double."""
    highest = high.copy()
    step = 1
    while step < len(sample) and (same := sample[step:] == sample[:-step]).any():
        highest[step:] = np.where(same, np.maximum(highest[step:], highest[:-step]), highest[step:])
        step *= 2
    return highest


def _division(bins: Entries, most: int, least: int) -> dict[str, NDArray[Any]]:
    """How bins are to be divided: from where, into parts of which size, and whether by octaves."""
    low, high = scores_of_keys(bins.low), scores_of_keys(bins.high)
    near, far = np.sort(np.abs((low, high)), axis=0)
    in_octaves = (far > 2 * near) & (near > 0) & np.isfinite(far)
    parts = max(least, most // len(bins))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # of denormals, and of −inf
        offset = np.where(in_octaves, np.log2(near), low)
        scale = parts / np.where(in_octaves, np.log2(far) - np.log2(near), high - low)
    return {SCALE: np.nan_to_num(scale), OFFSET: np.nan_to_num(offset), IN_OCTAVES: in_octaves}


def _in_parts(opened: nw.LazyFrame[Any], most: int) -> nw.LazyFrame[Any]:
    """Opened bins with the number of each row's part; parts need not be in order, since their ends are counted too."""
    size = nw.col(SCORE).abs()
    octave = nw.when(nw.col(IN_OCTAVES)).then(size).otherwise(nw.lit(1.0)).log(2.0)
    value = nw.when(nw.col(IN_OCTAVES)).then(octave).otherwise(nw.col(SCORE))
    part = ((value - nw.col(OFFSET)) * nw.col(SCALE)).floor().clip(0.0, float(most))
    return opened.with_columns(_whole(part).alias(BIN)).drop(OFFSET, SCALE, IN_OCTAVES)
