"""A decision beside the rows of a frame: what it says of each of them, lazily where the frame is lazy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from surecut._inputs import check_missing, check_unknown
from surecut._labels import label_parts
from surecut._warnings import MissingRowsWarning, UnknownLabelWarning
from surecut.decisions.bands import Bands, require_zone
from surecut.decisions.cut import Cut
from surecut.decisions.grouped_bands import GroupedBands
from surecut.decisions.top_k import TopK
from surecut.sources.columns import Columns, LongColumns, as_group_key, is_nan
from surecut.sources.engine_tables import thresholds_beside
from surecut.sources.row_ranks import RANK, RankedLines, numbers_of_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.multilabel import MultilabelCut

    Decision = Cut | MultilabelCut | Bands | GroupedBands | TopK


def applied_columns(
    decision: Decision, score: str, row: str | Sequence[str] | None, by: str | Sequence[str] | None
) -> Columns | LongColumns:
    """The columns that a decision is applied to: of a rule of k labels a row those that name rows and labels too."""
    if not isinstance(decision, TopK):
        if row is not None:
            raise ValueError("row= goes with a TopK, which compares the labels of a row; leave it out")
        return Columns(score, score, by=() if by is None else (by,) if isinstance(by, str) else tuple(by))
    if row is None or by is None:
        lacking = " and ".join(name for name, one in (("row=", row), ("by=", by)) if one is None)
        raise ValueError(
            f"a rule of k labels a row is applied to a long table, with a line for each row and label: say with "
            f"{lacking} which columns name them"
        )
    return LongColumns.of(row, by, label=score, score=score)


@dataclass(frozen=True)
class UnpredictedRows:
    """What happens to rows of which a decision says nothing: those without a score, or of a label it does not know.

    Attributes
    ----------
    missing, unknown
        ``"error"``; for a cut ``"negative"``; for bands the zone that they go to, or None for none.
    zones
        The zones of bands; empty for a cut.
    owner
        What the decision is called, if it is no bands.
    """

    missing: str | None
    unknown: str | None
    zones: tuple[str, ...] = ()
    owner: str = "cut"

    @classmethod
    def of(cls, decision: Decision, missing: str | None, unknown: str | None) -> UnpredictedRows:
        """What was asked for, or what is usual for the decision."""
        if isinstance(decision, (Bands, GroupedBands)):
            for option, value in (("missing", missing), ("unknown", unknown)):
                if value != "error":
                    require_zone(value, decision.zones, option, "error")
            return cls(missing, unknown, decision.zones)
        missing, unknown = ("negative" if one is None else one for one in (missing, unknown))
        check_missing(missing, "negative", "error")
        check_unknown(unknown, "negative", "error")
        return cls(missing, unknown, owner="rule" if isinstance(decision, TopK) else "cut")

    @property
    def may_raise(self) -> bool:
        return "error" in (self.missing, self.unknown)

    def settle(self, found: Predictions, score: str, keys: tuple[str, ...]) -> list[tuple[type[Warning], str]]:
        """Raise where such rows are an error; otherwise return what is to be said of them."""
        labels = ", ".join(map(repr, keys))
        kind, whose = ("group", "has no bands") if self.zones else ("label", f"is none of the {self.owner}'s")
        no_score = f"{found.missing:,} of {found.rows:,} rows have no score in {score!r}"
        no_threshold = f"{found.unknown:,} of {found.rows:,} rows have a {kind} in {labels} that {whose}"
        if found.missing and self.missing == "error":
            raise ValueError(f"{no_score}: fill them, or pass {self._way_out('missing')}")
        if found.unknown and self.unknown == "error":
            raise ValueError(f"{no_threshold}: tune on rows of these {kind}s too, or pass {self._way_out('unknown')}")
        said: list[tuple[type[Warning], str]] = []
        if found.missing:
            said.append((MissingRowsWarning, f"{no_score}: {self._outcome(self.missing)}"))
        if found.unknown:
            said.append((UnknownLabelWarning, f"{no_threshold}: {self._outcome(self.unknown)}"))
        return said

    def _way_out(self, option: str) -> str:
        if self.zones:
            zone = self.zones[len(self.zones) // 2]
            return f'{option}="{zone}" to put them into this zone'
        return f'{option}="negative" to predict them negative'

    def _outcome(self, option: str | None) -> str:
        if not self.zones:
            return "they are predicted negative"
        return "they are in no zone" if option is None else f"they are in the zone {option!r}"


class Predictions(NamedTuple):
    """How many rows there are, how many lack a score or a known label, and how many a decision puts where."""

    rows: int
    missing: int
    unknown: int
    outcomes: dict[str, int]
    """Of a cut the ``"positive"`` rows, of a rule the ``"predicted"`` ones, of bands those in each zone."""


class PredictedRows(NamedTuple):
    """How many rows a long table has, and how many of them a rule gives a label, another action, or nothing."""

    rows: int
    given: int
    actions: dict[Any, int]
    """The rows that get each action that is no label: none of their lines is predicted."""

    @property
    def without(self) -> int:
        """The rows that get nothing."""
        return self.rows - self.given - sum(self.actions.values())


class _Told(NamedTuple):
    """Expressions: what a decision says of a row, and where rows are that it says each thing of."""

    outcome: Any
    parts: dict[str, Any]


@dataclass(frozen=True)
class AppliedDecision:
    """The rows of a frame with their thresholds, and expressions of what they are."""

    frame: Any
    told: _Told
    is_missing: Any
    is_unknown: Any
    names: tuple[str, ...] = ()
    """The columns that the frame had before thresholds were joined to it; none where they were not."""
    position: str | None = None
    """The column with the place of each row, where joins may change it."""
    index: Any = None
    """The index of a pandas frame."""
    rows: tuple[str, ...] = ()
    """Of a rule: the columns that tell rows apart."""

    @classmethod
    def of(
        cls, frame: Any, decision: Decision, asked: Columns | LongColumns, unpredicted: UnpredictedRows
    ) -> AppliedDecision:
        """The frame is one of narwhals; `asked` names the column of scores, and those that labels come from.

        For a `TopK` they are `LongColumns`, which name rows too.
        """
        if isinstance(decision, TopK):
            assert isinstance(asked, LongColumns)  # see applied_columns
            return cls._of_rule(frame, decision, asked)
        columns = asked.columns if isinstance(asked, LongColumns) else asked
        score = nw.col(columns.score).cast(nw.Float64)
        is_missing = _true(score.is_null() | is_nan(score))
        if isinstance(decision, (Cut, Bands)):
            if columns.by:
                several = (
                    "a MultilabelCut; this cut has one threshold"
                    if isinstance(decision, Cut)
                    else "GroupedBands; these are the bands"
                )
                raise ValueError(f"by= goes with {several} for all rows")
            thresholds = [decision.threshold] if isinstance(decision, Cut) else decision.thresholds.tolist()
            reached = [
                nw.lit(False) if one == math.inf else _true((score >= one) & ~is_nan(score)) for one in thresholds
            ]
            told = _told(reached, is_missing, None, unpredicted)
            return cls(frame, told, is_missing, nw.lit(False))
        if not columns.by:
            raise ValueError(f"by= must name the columns that the {_kind(decision)} come from")
        labels, columns_of = _thresholds(decision, len(columns.by))
        joined = _Joined.of(frame, labels, columns_of, columns.by)
        limits = [nw.col(name) for name in joined.added]
        reached = [_true((score >= one) & (one < math.inf) & ~is_nan(score)) for one in limits]
        is_unknown = _true(limits[0].is_null())
        told = _told(reached, is_missing, is_unknown, unpredicted)
        return cls(joined.frame, told, is_missing, is_unknown, joined.names, joined.position, joined.index)

    @classmethod
    def _of_rule(cls, frame: Any, rule: TopK, asked: LongColumns) -> AppliedDecision:
        """The same of a rule of k labels a row: the lines of a long table that it predicts."""
        score = nw.col(asked.columns.score).cast(nw.Float64)
        labels = label_parts(rule.labels, len(asked.label_names), "the rule")
        joined = _Joined.of(frame, labels, numbers_of_labels(rule), asked.label_names)
        schema = joined.frame.collect_schema()
        rows = {_unused(f"surecut_row_{name}", joined.names): name for name in asked.row_names}
        lines = joined.frame.with_columns(**{own: as_group_key(name, schema[name]) for own, name in rows.items()})
        is_missing = score.is_null() | is_nan(score)
        for own, name in rows.items():
            key = nw.col(own)
            is_missing = is_missing | key.is_null() | (is_nan(key) if schema[name].is_float() else nw.lit(False))
        lines = lines.with_columns(surecut_missing=_true(is_missing))
        is_missing, is_unknown = nw.col("surecut_missing"), _true(nw.col(joined.added[0]).is_null())
        ranked = RankedLines(lines, rule, tuple(rows), joined.added)
        lines, is_predicted = ranked.predicted(score, is_missing | is_unknown)
        predicted = _true(is_predicted)
        told = _Told(predicted, {"predicted": predicted})
        return cls(lines, told, is_missing, is_unknown, joined.names, joined.position, joined.index, tuple(rows))

    def with_column(self, name: str) -> Any:
        """The native frame with a column of what the decision says: true for positive rows, or the row's zone."""
        if not self.names:
            return nw.to_native(self.frame.with_columns(self.told.outcome.alias(name)))
        frame = self.frame if self.position is None else self.frame.sort(self.position)
        native = nw.to_native(frame.select(*self.names, self.told.outcome.alias(name)))
        if self.index is not None:
            native.index = self.index
        return native

    def counted(self) -> Predictions:
        """The rows, by one query."""
        parts = {f"part_{i}": one for i, one in enumerate(self.told.parts.values())}
        marked = self.frame.select(missing=self.is_missing, unknown=self.is_unknown, **parts)
        counts = marked.select(
            nw.len().alias("rows"),
            *(nw.col(part).cast(nw.Int64).sum() for part in ("missing", "unknown", *parts)),
        )
        found = counts if isinstance(counts, nw.DataFrame) else counts.collect()
        number = {part: int(found[part].to_list()[0] or 0) for part in ("rows", "missing", "unknown", *parts)}
        outcomes = dict(zip(self.told.parts, (number[part] for part in parts), strict=True))
        return Predictions(number["rows"], number["missing"], number["unknown"], outcomes)

    def counted_rows(self, rule: TopK) -> PredictedRows:
        """The rows of a long table, of which lines without a key are none."""
        number = nw.col(RANK) if rule.a is None else nw.lit(-1.0)  # with costs, of the action of all lines of a row
        has_key = nw.all_horizontal(*(~nw.col(name).is_null() for name in self.rows), ignore_nulls=True)
        lines = self.frame.filter(has_key).with_columns(
            surecut_given=self.told.outcome.cast(nw.Int64), surecut_number=number.cast(nw.Float64)
        )
        rows = lines.group_by(*self.rows).agg(nw.col("surecut_given", "surecut_number").max())
        counts = rows.group_by("surecut_given", "surecut_number").agg(nw.len().alias("surecut_rows"))
        found = counts if isinstance(counts, nw.DataFrame) else counts.collect()
        given, actions = 0, {one: 0 for one in rule.actions if one not in rule.labels}
        for is_given, action, number_of_rows in found.select(
            "surecut_given", "surecut_number", "surecut_rows"
        ).iter_rows():
            chosen = rule.actions[int(action)] if action >= 0 else None
            if is_given:
                given += number_of_rows
            elif chosen in actions:
                actions[chosen] += number_of_rows
        return PredictedRows(sum(found["surecut_rows"].to_list()), given, actions)


class _Joined(NamedTuple):
    """The rows of a frame beside numbers of their labels, in columns that were `added`.

    `names`, `position` and `index` are those of `AppliedDecision`.
    """

    frame: Any
    added: list[str]
    names: tuple[str, ...]
    position: str | None
    index: Any

    @classmethod
    def of(cls, frame: Any, labels: Sequence[tuple[Any, ...]], numbers: Iterable[Any], by: Sequence[str]) -> _Joined:
        """Join arrays with a number for each label, which are the values of some columns of the frame."""
        names = tuple(frame.collect_schema().names())
        position, index = None, nw.maybe_get_index(frame)
        if isinstance(frame, nw.DataFrame):
            position = _unused("surecut_position", names)
            frame = frame.with_row_index(position)  # joins do not keep the order of rows in all engines
        schema, keys = frame.collect_schema(), tuple(_unused(f"surecut_key_{name}", names) for name in by)
        found = [as_group_key(name, schema[name]) for name in by]
        untyped = [_has_no_type(frame, name) for name in by]
        found = [key.cast(nw.String) if one else key for key, one in zip(found, untyped, strict=True)]
        frame = frame.with_columns(*(one.alias(key) for one, key in zip(found, keys, strict=True)))
        added = {_unused(f"surecut_threshold_{i}", names): column for i, column in enumerate(numbers)}
        table = thresholds_beside(frame, labels, keys, added)
        if position is not None and frame.implementation.is_pyarrow():
            of_rows = frame.select(position, *keys).join(table, on=list(keys), how="left").sort(position)
            joined = frame.with_columns(*(of_rows[name] for name in added))
        else:
            joined = frame.join(table, on=list(keys), how="left")
        return cls(joined, list(added), names, position, index)


def _told(reached: Sequence[Any], is_missing: Any, is_unknown: Any, unpredicted: UnpredictedRows) -> _Told:
    """What is said of rows that reach some of their thresholds, which ascend."""
    zones = unpredicted.zones
    if not zones:
        return _Told(reached[0], {"positive": reached[0]})
    outcome: Any = nw.lit(zones[0])
    for zone, one in zip(zones[1:], reached, strict=True):
        outcome = nw.when(one).then(nw.lit(zone)).otherwise(outcome)
    for which, goes_to in ((is_missing, unpredicted.missing), (is_unknown, unpredicted.unknown)):
        if which is not None:
            given = nw.lit(goes_to) if goes_to in zones else nw.lit(None, nw.String)
            outcome = nw.when(which).then(given).otherwise(outcome)
    return _Told(outcome, {zone: _true(outcome == nw.lit(zone)) for zone in zones})


def _kind(decision: MultilabelCut | GroupedBands) -> str:
    return "groups of GroupedBands" if isinstance(decision, GroupedBands) else "labels of a MultilabelCut"


def _thresholds(
    decision: MultilabelCut | GroupedBands, columns: int
) -> tuple[list[tuple[Any, ...]], NDArray[np.float64]]:
    """Labels, or groups, as the values of so many columns, and a row of thresholds for each boundary."""
    if isinstance(decision, GroupedBands):
        return decision.group_parts(columns), decision.thresholds.T
    return decision.label_parts(columns), decision.thresholds[None]


def _unused(name: str, names: tuple[str, ...]) -> str:
    """A name that no column has."""
    while name in names:
        name += "_"
    return name


def _true(condition: Any) -> Any:
    """A condition, false where it is null."""
    return nw.when(condition).then(nw.lit(True)).otherwise(nw.lit(False))


def _has_no_type(frame: Any, name: str) -> bool:
    """Whether a column of PyArrow or Ibis holds nothing but nulls, and no type in which it could be joined."""
    if frame.implementation.is_pyarrow():
        return str(frame.to_native().schema.field(name).type) == "null"
    return frame.implementation.is_ibis() and bool(frame.to_native().schema()[name].is_null())
