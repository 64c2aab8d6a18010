"""Rows that stay in their engine: Spark, Dask, and whatever Ibis speaks to, asked by GROUP BY through narwhals.

The engine counts rows by bin and class and says which scores each bin begins and ends with. Its arithmetic makes the
bins, so nothing is concluded from their numbers: a bin is the scores that were found in it, and bins that overlap are
one. What is shipped is the first counts, the counts of the divided survivors, and at last the survivors' scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut._inputs import LARGEST_EXACT_INTEGER, absence, as_labels, settle_absence
from surecut._kernels import checksum, ordered_keys, scores_of_keys
from surecut._missing import Missing
from surecut.candidates import candidates_of
from surecut.constraints import InfeasibleError, listed
from surecut.counts import Counts
from surecut.frames.columns import Columns, is_nan
from surecut.overlap import RowSample
from surecut.rows import SourceChangedError
from surecut.sample import Sample
from surecut.search import Bins, Objective, needed_bins, require_defined
from surecut.tally import ScoreTally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric

SHIPPED = 1 << 17
"""So many rows may be fetched at last, by distinct score; where more are in question, their bins are divided again."""

PARTS = 1 << 14
"""Into so many parts the bins in question are divided, all together."""

RUNS = 16
"""The bins in question are asked for in at most so many runs of neighbours; an idle bin between them comes along."""

FINE, WIDE = 1024, 16
"""First bins: FINE per octave around 1, fewer the further away: half of them within a factor of 2**WIDE. They are at
most 4 · FINE · WIDE, and any arithmetic of an engine's own may make them."""

NEGATIVE, POSITIVE, MINUS_ONE, STRANGER, NO_LABEL, NO_SCORE, NO_WEIGHT, BAD_WEIGHT, ABSENT, NO_KEY, TOO_LARGE = range(
    11
)
"""What a row is. Only the first three are counted in bins."""

SCORE, LABEL, WEIGHT, KIND, BIN = "surecut_score", "surecut_label", "surecut_weight", "surecut_kind", "surecut_bin"
ROWS, LOW, HIGH, SUM, SQUARES = "surecut_rows", "surecut_low", "surecut_high", "surecut_sum", "surecut_squares"
FIRST_LABEL, LAST_LABEL = "surecut_first_label", "surecut_last_label"


def search_groups(rows: GroupedRows, objectives: list[Objective]) -> list[Cut]:
    """The best cut for each objective, from the same queries."""
    bins, sample = rows.histogram()
    require_defined(bins, sample, objectives)
    while True:
        promising, _ = needed_bins(bins, sample, objectives)
        unknown = promising & (bins.low < bins.high)
        if not unknown.any():
            break
        runs = Runs.of(in_few_runs(unknown, bins), bins)
        in_question = int(runs.rows.sum())
        parts = rows.distinct(runs) if in_question <= SHIPPED else rows.divided(runs)
        runs.require_same_rows(parts)
        bins = bins.replaced(runs.asked, parts)
    candidates = candidates_of(bins.low, bins.high, bins.counts.weight, sample, dtype=rows.dtype)
    try:
        return [candidates.best_cut(objective.metric, objective.constraints) for objective in objectives]
    except InfeasibleError:
        if sample.rows > SHIPPED:
            raise InfeasibleError(f"no cut meets {listed(objectives[0].constraints)}") from None
        candidates = rows.tally().candidates  # which level is attainable only all scores tell
        return [candidates.best_cut(objective.metric, objective.constraints) for objective in objectives]


@dataclass(frozen=True)
class GroupedRows:
    """A lazy frame in an engine, and the questions that are put to it."""

    frame: nw.LazyFrame[Any]
    columns: Columns
    missing: str = "error"
    metrics: tuple[Metric, ...] = ()
    """What the rows are asked for: some metrics need rows of the positive class."""
    was_checked: bool = False
    """Whether these are further questions to rows that were checked, of which there is nothing more to say."""

    def __post_init__(self) -> None:
        self.columns.require_in(self._schema.names())

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
        raise TypeError(f"{self.columns.score} must be numbers, got values of type {kind}")

    @property
    def weighted(self) -> bool:
        return self.columns.weight is not None

    @property
    def keys(self) -> list[str]:
        """The columns of group keys, under names of our own."""
        return [f"surecut_key_{number}" for number in range(len(self.columns.by))]

    def histogram(self) -> tuple[Bins, Sample]:
        """All rows, counted in the first bins. Checks labels, scores and weights."""
        found = self._counted(self.binned(), BIN)
        self.check(found)
        bins = self._bins(found)
        # What names rows on every path would have to be computed row by row, in an arithmetic that all engines share
        total = int(bins.counts.rows.sum())
        return bins, Sample(total, self.weighted, seen=(_lowest_rows(found),))

    def divided(self, runs: Runs) -> Bins:
        """The rows in some runs of scores, counted in parts of them."""
        part: Any = nw.lit(-1.0)
        offset = 0
        for first, last, parts in zip(runs.low.tolist(), runs.high.tolist(), runs.parts(), strict=True):
            inside = (nw.col(SCORE) >= first) & (nw.col(SCORE) <= last)
            share = nw.when(inside).then(_share(nw.col(SCORE), first, last)).otherwise(nw.lit(0.0))
            index = (share * float(parts)).floor().clip(0.0, parts - 1.0) + float(offset)
            part = nw.when(inside).then(index).otherwise(part)
            offset += parts
        return self._bins(self._counted(self.valid.with_columns(part.alias(BIN)).filter(nw.col(BIN) >= 0.0), BIN))

    def distinct(self, runs: Runs) -> Bins:
        """The rows in some runs of scores, by distinct score."""
        inside = nw.lit(False)
        for first, last in zip(runs.low.tolist(), runs.high.tolist(), strict=True):
            inside = inside | ((nw.col(SCORE) >= first) & (nw.col(SCORE) <= last))
        return self._bins(self._counted(self.valid.filter(inside), SCORE))

    def tally(self) -> ScoreTally:
        """All rows, by distinct score, shipped: they have to fit in memory."""
        self.histogram()
        found = self._counted(self.valid, SCORE)
        bins = self._bins(found)
        rows, weight = bins.counts.rows, bins.counts.weight
        squares = rows
        if self.weighted:
            squares = self._bins(found | {SUM: found[SQUARES]}).counts.weight
        bits = scores_of_keys(bins.low).view(np.int64)
        named = sum(
            checksum(np.repeat(bits, rows[:, one]), np.repeat(np.full(len(bits), bool(one)), rows[:, one]))
            for one in (0, 1)
        )
        return ScoreTally(bins.low, weight, rows, squares, self.dtype, named % 2**64)

    # --- Expressions -------------------------------------------------------------------------------------------------

    @cached_property
    def prepared(self) -> nw.LazyFrame[Any]:
        """Score, label and weight under names of our own, and what each row is.

        Rows without a finite score get one here, before anything is computed from it: engines disagree about NaN, nulls
        and infinities in arithmetic and in casts.
        """
        columns = self.columns
        raw, label = nw.col(columns.score), nw.col(columns.label)
        score = raw.cast(nw.Float64)
        label_kind = self._schema[columns.label]
        if label_kind in (nw.Categorical, nw.Enum):
            label = label.cast(nw.String)
        elif label_kind == nw.Decimal:
            label = label.cast(nw.Float64)
        selected = [score.alias(SCORE), label.alias(LABEL)]
        too_large = nw.lit(False)
        if self._schema[columns.score] in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128):
            too_large = (raw > LARGEST_EXACT_INTEGER) | (raw < -LARGEST_EXACT_INTEGER)
        if columns.weight is not None:
            selected.append(nw.col(columns.weight).cast(nw.Float64).alias(WEIGHT))
        keys = [nw.col(column).alias(key) for column, key in zip(columns.by, self.keys, strict=True)]
        frame = self.frame.select(*selected, *keys, too_large.alias(KIND))
        without_score = nw.col(SCORE).is_null() | is_nan(nw.col(SCORE))
        kind = self._kind_of_label()
        if columns.weight is not None:
            weight = nw.col(WEIGHT)
            kind = nw.when(weight == 0.0).then(nw.lit(ABSENT)).otherwise(kind)
            kind = nw.when((weight < 0.0) | (weight == math.inf)).then(nw.lit(BAD_WEIGHT)).otherwise(kind)
            kind = nw.when(weight.is_null() | is_nan(weight)).then(nw.lit(NO_WEIGHT)).otherwise(kind)
        kind = nw.when(nw.col(KIND)).then(nw.lit(TOO_LARGE)).otherwise(kind)
        without_label = nw.col(LABEL).is_null()
        if label_kind.is_float() or label_kind == nw.Decimal:
            without_label = without_label | is_nan(nw.col(LABEL))
        kind = nw.when(without_label).then(nw.lit(NO_LABEL)).otherwise(kind)
        kind = nw.when(without_score).then(nw.lit(NO_SCORE)).otherwise(kind)
        for column, key in zip(columns.by, self.keys, strict=True):
            without_key = nw.col(key).is_null()
            if self._schema[column].is_float():
                without_key = without_key | is_nan(nw.col(key))
            kind = nw.when(without_key).then(nw.lit(NO_KEY)).otherwise(kind)
        largest = float(np.finfo(self.dtype).max) if self.dtype.kind == "f" else np.finfo(np.float64).max
        capped = nw.when(nw.col(SCORE) > largest).then(nw.lit(largest)).otherwise(nw.col(SCORE))
        # Through cast, since a literal is of the narrowest type in some engines
        return frame.with_columns(
            kind.cast(nw.Int64).alias(KIND), nw.when(without_score).then(nw.lit(0.0)).otherwise(capped).alias(SCORE)
        )

    @cached_property
    def valid(self) -> nw.LazyFrame[Any]:
        return self.prepared.filter(nw.col(KIND) <= MINUS_ONE)

    def binned(self, fine: int = FINE) -> nw.LazyFrame[Any]:
        """All rows with their first bins; rows that do not count share one.

        In steps, since Spark compiles each to Java, and Java does not compile what is too long.
        """
        size = nw.col(SCORE).abs()
        usual = (nw.col(KIND) <= MINUS_ONE) & (size > 0.0) & (size <= float(np.finfo(np.float64).max))
        octave = nw.when(usual).then(size).otherwise(nw.lit(1.0)).log(2.0)
        frame = self.prepared.with_columns(octave.alias(BIN))
        number = (nw.col(BIN) / (nw.col(BIN).abs() + float(WIDE)) * float(WIDE * fine)).floor()
        frame = frame.with_columns((number + float(2 * WIDE * fine)).alias(BIN))
        unusual = nw.when(size > 0.0).then(nw.lit(-4.0 * WIDE * fine)).otherwise(nw.lit(0.0))  # −inf, and zero
        above_zero = nw.when(usual).then(nw.col(BIN)).otherwise(unusual)
        return frame.with_columns(nw.when(nw.col(SCORE) < 0.0).then(above_zero * -1.0).otherwise(above_zero).alias(BIN))

    @cached_property
    def _compares_labels(self) -> bool:
        """Whether the other label is any: then it has to be seen that it is always the same one."""
        return self._schema[self.columns.label] != nw.Boolean and self.columns.pos_label is not None

    def _kind_of_label(self) -> Any:
        label, wanted = nw.col(LABEL), self.columns.pos_label
        kind = self._schema[self.columns.label]
        is_number = kind.is_numeric() or kind == nw.Boolean
        if (wanted is None and not is_number) or (
            wanted is not None and is_number != isinstance(wanted, (bool, int, float, np.number, np.bool_))
        ):
            self._complain_about_labels()
        if kind == nw.Boolean:
            positive = label if wanted is None or wanted else ~label
            return nw.when(positive).then(nw.lit(POSITIVE)).otherwise(nw.lit(NEGATIVE))
        if wanted is not None:
            wanted = wanted.item() if isinstance(wanted, np.generic) else wanted
            return nw.when(label == wanted).then(nw.lit(POSITIVE)).otherwise(nw.lit(NEGATIVE))
        other = nw.when(label == 0).then(nw.lit(NEGATIVE)).otherwise(nw.lit(STRANGER))
        if not str(kind).startswith("UInt"):
            other = nw.when(label == -1).then(nw.lit(MINUS_ONE)).otherwise(other)
        return nw.when(label == 1).then(nw.lit(POSITIVE)).otherwise(other)

    # --- Answers -----------------------------------------------------------------------------------------------------

    def counted(self, frame: nw.LazyFrame[Any], *by: str) -> nw.DataFrame[Any]:
        """Rows by some columns and what they are: counts, sums of weights, and lowest and highest score and label."""
        asked = [nw.len().alias(ROWS)]
        if SCORE not in by:
            asked += [nw.col(SCORE).min().alias(LOW), nw.col(SCORE).max().alias(HIGH)]
            if self._compares_labels:
                asked += [nw.col(LABEL).min().alias(FIRST_LABEL), nw.col(LABEL).max().alias(LAST_LABEL)]
        if self.weighted:
            frame = frame.with_columns((nw.col(WEIGHT) * nw.col(WEIGHT)).alias(SQUARES))
            asked += [nw.col(WEIGHT).sum().alias(SUM), nw.col(SQUARES).sum()]
        return frame.group_by(*by, KIND).agg(*asked).collect()

    def _counted(self, frame: nw.LazyFrame[Any], by: str) -> dict[str, NDArray[Any]]:
        return as_arrays(self.counted(frame, by))

    def check(self, found: dict[str, NDArray[Any]]) -> None:
        """Raise where rows lack a value, labels are more than two, or nothing is left."""
        rows = np.bincount(found[KIND], weights=found[ROWS], minlength=TOO_LARGE + 1).astype(np.int64).tolist()
        total = sum(rows)
        if not total:
            raise ValueError("the frame holds no rows: at least one is needed")
        missing = Missing(score=rows[NO_SCORE], label=rows[NO_LABEL], weight=rows[NO_WEIGHT], key=rows[NO_KEY])
        if not self.was_checked:
            missing.settle(self.missing, total)
        if rows[TOO_LARGE]:
            raise ValueError(
                f"{self.columns.score} holds integers beyond 2**53 in {rows[TOO_LARGE]:,} rows, where float64 cannot "
                "tell neighbours apart: rescale or rank the scores"
            )
        if rows[BAD_WEIGHT]:
            raise ValueError(
                f"{self.columns.weight} must be finite and not negative, which it is not in {rows[BAD_WEIGHT]:,} rows"
            )
        both = rows[NEGATIVE] and rows[MINUS_ONE]
        if rows[STRANGER] or both or (self.columns.pos_label is not None and self._has_several_others(found)):
            self._complain_about_labels()
        if self.columns.pos_label is not None and rows[NEGATIVE] and not rows[POSITIVE] + rows[ABSENT]:
            other = (
                found[FIRST_LABEL][found[KIND] == NEGATIVE][0] if self._compares_labels else not self.columns.pos_label
            )
            if not self.was_checked:
                settle_absence(absence(self.columns.pos_label, other, self.columns.label), self.metrics)
        if not rows[NEGATIVE] + rows[POSITIVE] + rows[MINUS_ONE]:
            raise ValueError(f"{self.columns.weight} is zero in all {total:,} rows: nothing is left to tune on")

    def _has_several_others(self, found: dict[str, NDArray[Any]]) -> bool:
        """With `pos_label`: whether the other labels are not always the same."""
        if not self._compares_labels:
            return False
        others = found[KIND] == NEGATIVE
        return len({*found[FIRST_LABEL][others].tolist(), *found[LAST_LABEL][others].tolist()}) > 1

    def _complain_about_labels(self) -> None:
        """Raise with what is wrong about the labels, which have to be looked at once more."""
        column = self.frame.select(nw.col(self.columns.label).alias(LABEL))
        found = column.filter(~nw.col(LABEL).is_null()).unique(LABEL).head(1000).collect()[LABEL].to_list()
        as_labels(found, pos_label=self.columns.pos_label, name=self.columns.label)
        raise SourceChangedError

    def _bins(self, found: dict[str, NDArray[Any]]) -> Bins:
        """Bins in descending order. Classes were counted apart: what overlaps is one bin, what does not is several."""
        valid = found[KIND] <= MINUS_ONE
        if not valid.any():
            raise SourceChangedError
        low, high = (ordered_keys(found[name if name in found else SCORE][valid]) for name in (LOW, HIGH))
        order = np.argsort(low, kind="stable")
        reached = np.maximum.accumulate(high[order])
        starts = np.flatnonzero(np.concatenate(([True], low[order][1:] > reached[:-1])))
        is_positive = found[KIND][valid][order] == POSITIVE
        rows = _by_class(found[ROWS][valid][order], is_positive, starts)
        weight = _by_class(found[SUM][valid][order].astype(float), is_positive, starts) if self.weighted else rows
        ends = np.append(starts[1:], len(order)) - 1
        return Bins.unjudged(low[order][starts][::-1], reached[ends][::-1], Counts(rows, weight), exact=True)


def as_arrays(answer: nw.DataFrame[Any]) -> dict[str, NDArray[Any]]:
    """The columns of an answer, in the dtypes that we count on: engines differ about the width of integers."""
    wanted = {ROWS: np.int64, KIND: np.int64, SCORE: np.float64, LOW: np.float64, HIGH: np.float64}
    arrays = {name: answer[name].to_numpy() for name in answer.columns}
    return {name: array.astype(wanted[name], copy=False) if name in wanted else array for name, array in arrays.items()}


def _lowest_rows(found: dict[str, NDArray[Any]]) -> RowSample:
    """The lowest score of each class in some bins: rows that there are, to recognise them by."""
    valid = np.flatnonzero(found[KIND] <= MINUS_ONE)
    valid = valid[np.argsort(found[LOW][valid], kind="stable")]
    return RowSample.of_rows(found[LOW][valid], found[KIND][valid] == POSITIVE)


def in_few_runs(unknown: NDArray[np.bool_], bins: Bins) -> NDArray[np.bool_]:
    """The bins in question, and idle ones between them with the fewest rows, so that all stand in at most RUNS runs."""
    which = np.flatnonzero(unknown)
    above = np.concatenate(([0], np.cumsum(bins.counts.rows.sum(axis=1))))
    gaps = np.flatnonzero(np.diff(which) > 1)
    between = above[which[gaps + 1]] - above[which[gaps] + 1]
    asked = unknown.copy()
    for gap in gaps[np.argsort(between, kind="stable")][: max(0, len(gaps) + 1 - RUNS)].tolist():
        asked[which[gap] : which[gap + 1]] = True
    return asked


@dataclass(frozen=True)
class Runs:
    """Neighbouring bins, taken together, in descending order: lowest and highest score, and what was counted there.

    A run does not reach across zero, so that its scores are of one sign.
    """

    asked: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bins: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, asked: NDArray[np.bool_], bins: Bins) -> Runs:
        low, high = scores_of_keys(bins.low), scores_of_keys(bins.high)
        sign = np.sign(low)
        first = asked & np.concatenate(([True], ~asked[:-1] | (sign[1:] != sign[:-1])))
        last = asked & np.concatenate((~asked[1:] | (sign[1:] != sign[:-1]), [True]))
        starts, ends = np.flatnonzero(first), np.flatnonzero(last) + 1
        above = np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(bins.counts.rows, axis=0)))
        return cls(asked, low[last], high[first], ends - starts, above[ends] - above[starts])

    def parts(self) -> list[int]:
        """Into how many parts each run is to be divided: more than it has now, and more where rows are many."""
        share = self.rows.sum(axis=1) / self.rows.sum()
        return [int(number) for number in 4 * self.bins + np.ceil(PARTS * share)]

    def require_same_rows(self, parts: Bins) -> None:
        """Raise unless parts of the runs hold, in every run, what was counted there before."""
        low, high = ordered_keys(self.low[::-1]), ordered_keys(self.high[::-1])
        run = np.searchsorted(low, parts.low, side="right").astype(np.int64) - 1
        now = np.zeros((len(low), 2), dtype=np.int64)
        if (run >= 0).all() and (parts.high <= high[run]).all():
            np.add.at(now, run, parts.counts.rows)
        if not np.array_equal(now[::-1], self.rows):
            raise SourceChangedError


def _share(score: Any, low: float, high: float) -> Any:
    """How far a score stands between two others of its sign, from 0 to 1: in octaves where they are octaves apart."""
    if low == high:
        return score * 0.0
    near, far = sorted((abs(low), abs(high)))
    if math.isfinite(far) and far > 2 * near > 0:
        octaves = math.log2(far) - math.log2(near)
        size = nw.when(score.abs() > 0.0).then(score.abs()).otherwise(nw.lit(near))
        share = (size.log(2.0) - math.log2(near)) / octaves
        return share if low > 0 else share * -1.0 + 1.0
    return (score - low) / (high - low)


def _by_class(values: NDArray[Any], is_positive: NDArray[np.bool_], starts: NDArray[np.intp]) -> NDArray[Any]:
    """Sums over runs of ascending entries, negatives and positives apart; in descending order."""
    apart = np.column_stack((np.where(is_positive, 0, values), np.where(is_positive, values, 0)))
    return np.ascontiguousarray(np.add.reduceat(apart, starts, axis=0)[::-1])
