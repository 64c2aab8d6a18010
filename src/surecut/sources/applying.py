"""A cut beside the rows of a frame: which of them reach their threshold, lazily where the frame is lazy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw

from surecut._inputs import check_missing, check_unknown
from surecut._warnings import MissingRowsWarning, UnknownLabelWarning
from surecut.decisions.cut import Cut
from surecut.sources.columns import Columns, as_group_key, is_nan
from surecut.sources.engine_tables import thresholds_beside

if TYPE_CHECKING:
    from surecut.decisions.multilabel import MultilabelCut


@dataclass(frozen=True)
class UnpredictedRows:
    """What happens to rows that a cut cannot predict: those without a score, and those of a label it does not know."""

    missing: str = "negative"
    unknown: str = "negative"

    def __post_init__(self) -> None:
        check_missing(self.missing, "negative", "error")
        check_unknown(self.unknown, "negative", "error")

    @property
    def may_raise(self) -> bool:
        return "error" in (self.missing, self.unknown)

    def settle(self, found: Predictions, score: str, keys: tuple[str, ...]) -> list[tuple[type[Warning], str]]:
        """Raise where such rows are an error; otherwise return what is to be said of them."""
        labels = ", ".join(map(repr, keys))
        no_score = f"{found.missing:,} of {found.rows:,} rows have no score in {score!r}"
        no_threshold = f"{found.unknown:,} of {found.rows:,} rows have a label in {labels} that is none of the cut's"
        if found.missing and self.missing == "error":
            raise ValueError(f'{no_score}: fill them, or pass missing="negative" to predict them negative')
        if found.unknown and self.unknown == "error":
            raise ValueError(
                f'{no_threshold}: tune on rows of these labels too, or pass unknown="negative" to predict them negative'
            )
        said: list[tuple[type[Warning], str]] = []
        if found.missing:
            said.append((MissingRowsWarning, f"{no_score}: they are predicted negative"))
        if found.unknown:
            said.append((UnknownLabelWarning, f"{no_threshold}: they are predicted negative"))
        return said


class Predictions(NamedTuple):
    """How many rows there are, how many are predicted positive, and how many lack a score or a known label."""

    rows: int
    positive: int
    missing: int
    unknown: int


@dataclass(frozen=True)
class AppliedCut:
    """The rows of a frame with their thresholds, and expressions of what they are."""

    frame: Any
    is_positive: Any
    is_missing: Any
    is_unknown: Any
    names: tuple[str, ...] = ()
    """The columns that the frame had before thresholds were joined to it; none where they were not."""
    position: str | None = None
    """The column with the place of each row, where joins may change it."""
    index: Any = None
    """The index of a pandas frame."""

    @classmethod
    def of(cls, frame: Any, cut: Cut | MultilabelCut, columns: Columns) -> AppliedCut:
        """The frame is one of narwhals; `columns` names that of scores, and those that the cut's labels come from."""
        score = nw.col(columns.score).cast(nw.Float64)
        is_missing = _true(score.is_null() | is_nan(score))
        if isinstance(cut, Cut):
            if columns.by:
                raise ValueError("by= goes with a MultilabelCut; this cut has one threshold for all rows")
            never = cut.threshold == math.inf
            reaches = nw.lit(False) if never else _true((score >= cut.threshold) & ~is_nan(score))
            return cls(frame, reaches, is_missing, nw.lit(False))
        if not columns.by:
            raise ValueError("by= must name the columns that the labels of a MultilabelCut come from")
        names = tuple(frame.collect_schema().names())
        threshold_name, position, index = _unused("surecut_threshold", names), None, nw.maybe_get_index(frame)
        if isinstance(frame, nw.DataFrame):
            position = _unused("surecut_position", names)
            frame = frame.with_row_index(position)  # joins do not keep the order of rows in all engines
        schema, keys = frame.collect_schema(), tuple(_unused(f"surecut_key_{name}", names) for name in columns.by)
        found = [as_group_key(name, schema[name]) for name in columns.by]
        untyped = [_has_no_type(frame, name) for name in columns.by]
        found = [key.cast(nw.String) if one else key for key, one in zip(found, untyped, strict=True)]
        frame = frame.with_columns(*(one.alias(key) for one, key in zip(found, keys, strict=True)))
        table = thresholds_beside(frame, cut, keys, threshold_name)
        if position is not None and frame.implementation.is_pyarrow():
            of_rows = frame.select(position, *keys).join(table, on=list(keys), how="left").sort(position)
            joined = frame.with_columns(of_rows[threshold_name])
        else:
            joined = frame.join(table, on=list(keys), how="left")
        threshold = nw.col(threshold_name)
        reaches = (score >= threshold) & (threshold < math.inf) & ~is_nan(score)
        return cls(joined, _true(reaches), is_missing, _true(threshold.is_null()), names, position, index)

    def with_column(self, name: str) -> Any:
        """The native frame with a column that is true for positive rows, and false for all others."""
        if not self.names:
            return nw.to_native(self.frame.with_columns(self.is_positive.alias(name)))
        frame = self.frame if self.position is None else self.frame.sort(self.position)
        native = nw.to_native(frame.select(*self.names, self.is_positive.alias(name)))
        if self.index is not None:
            native.index = self.index
        return native

    def counted(self) -> Predictions:
        """The rows, by one query."""
        marked = self.frame.select(positive=self.is_positive, missing=self.is_missing, unknown=self.is_unknown)
        counts = marked.select(
            nw.len().alias("rows"),
            *(nw.col(part).cast(nw.Int64).sum() for part in ("positive", "missing", "unknown")),
        )
        found = counts if isinstance(counts, nw.DataFrame) else counts.collect()
        return Predictions(**{part: int(found[part].to_list()[0] or 0) for part in Predictions._fields})


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
