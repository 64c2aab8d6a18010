"""Which columns of a frame play which part, and which values are NaN."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw


@dataclass(frozen=True)
class Columns:
    """The columns of scores, labels, weights and group keys, and the label that counts as positive."""

    score: str
    label: str
    weight: str | None = None
    by: tuple[str, ...] = ()
    pos_label: Any = None

    def __post_init__(self) -> None:
        require_distinct(self.by, {"score": self.score, "label": self.label, "weight": self.weight})

    @property
    def label_names(self) -> tuple[str, ...]:
        """The columns that name a label, or a group."""
        return self.by

    @property
    def names(self) -> list[str]:
        weight = [] if self.weight is None else [self.weight]
        return [self.score, self.label, *weight, *self.by]

    def require_in(self, present: Iterable[str]) -> None:
        """Raise unless each column is one of those of the frame, and no other has its name."""
        present = list(present)
        for name in self.names:
            if not isinstance(name, str):
                raise ValueError(
                    f"columns must be named by text, got {name!r}: rename it, or pass its values as arrays"
                )
            if present.count(name) > 1:
                raise same_names(name)
            if name not in present:
                near = difflib.get_close_matches(name, map(str, present), n=1)
                hint = f": did you mean {near[0]!r}?" if near else f", which has {', '.join(map(repr, present[:20]))}"
                raise ValueError(f"there is no column {name!r} in the frame{hint}")

    def require_number_weights(self, schema: Any) -> None:
        """Raise where weights are of a type, in a schema of narwhals, that other libraries turn into numbers or not."""
        if self.weight is None:
            return
        kind = schema[self.weight]
        is_text = kind in (nw.String, nw.Categorical, nw.Enum, nw.Binary)
        if is_text or kind.is_temporal() or kind.is_nested():  # what is of no type at all may hold numbers
            raise not_numbers(self.weight, kind)


class LongColumns(NamedTuple):
    """The columns of a long table, which is grouped by those that name a row, so many of them, and a label."""

    columns: Columns
    rows: int

    @classmethod
    def of(
        cls, row: str | Iterable[str], by: str | Iterable[str], *, label: str, score: str, **others: Any
    ) -> LongColumns:
        """Names as they are given."""
        rows, labels = ((one,) if isinstance(one, str) else tuple(one) for one in (row, by))
        for name, found in (("row", rows), ("by", labels)):
            if not found:
                raise ValueError(f"{name}= must name a column, or several")
        if both := [one for one in rows if one in labels]:
            raise ValueError(f"{both[0]!r} cannot tell both rows and labels apart: name it in row= or in by=")
        return cls(Columns(score, label, by=(*rows, *labels), **others), len(rows))

    @property
    def row_names(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return self.columns.by[: self.rows]

    @property
    def label_names(self) -> tuple[str, ...]:
        """The columns that name a label."""
        return self.columns.by[self.rows :]


def require_distinct(
    by: Collection[str], others: Mapping[str, str | None], error: type[ValueError] = ValueError
) -> None:
    """Raise where a column groups the rows twice, or is one of the `others`, which have another part."""
    if len(set(by)) < len(by):
        raise error(f"a column groups the rows twice: {', '.join(map(repr, by))}")
    for part, name in others.items():
        if name in by:
            raise error(f"{name!r} is the column of the {part}: rows cannot be grouped by it, name another in by=")


def same_names(*names: Any) -> ValueError:
    """What is wrong with a frame whose columns have the same name."""
    return ValueError(f"the frame has several columns named {', '.join(map(repr, names))}: rename all but one")


def not_numbers(name: str, kind: Any) -> TypeError:
    """What is wrong with a column of another type."""
    return TypeError(f"{name} must be numbers, got values of type {kind}")


def as_group_key(column: str, kind: Any) -> Any:
    """An expression of narwhals for a column, of a type, whose values group rows: −0 is 0, as it is for scores."""
    key = nw.col(column)
    return nw.when(key == 0.0).then(nw.lit(0.0, kind)).otherwise(key) if kind.is_float() else key


def is_nan(value: Any, in_duckdb: bool = False) -> Any:
    """Whether an expression of narwhals is NaN; null where it is null.

    Asked twice, because DuckDB believes the statistics of a Parquet file, which leave NaN out: it concludes that
    nothing in the column is NaN, or larger than its maximum. exp(−|x|) is at most 1 for every number, and NaN is not,
    whether an engine holds it for the largest number or for no number at all. Where all numbers are one, DuckDB sees
    through the second question, and not the first. `is_nan_sql` is the same in SQL.

    A frame that is known to be `in_duckdb` is asked for finite numbers instead, which takes a fraction of the time: its
    own isfinite asks no statistics. Ibis has none, and makes it of isnan.
    """
    if in_duckdb:
        return value.is_nan() | ~(value.is_finite() | (value.abs() == math.inf))
    return value.is_nan() | ~((value.abs() * -1.0).exp() <= 1.0)


def is_nan_sql(number: str) -> str:
    """The same for a double in DuckDB's SQL.

    >>> import duckdb
    >>> duckdb.sql(f"SELECT {is_nan_sql('x')} FROM (VALUES (0.5::DOUBLE), ('nan'), ('inf')) AS t(x)").fetchall()
    [(False,), (True,), (False,)]
    """
    return f"(isnan({number}) OR NOT exp(-abs({number})) <= 1)"
