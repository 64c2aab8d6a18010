"""How files, DuckDB relations, Polars lazy frames and PyArrow data are read as Arrow batches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from surecut._inputs import EXACT_DIGITS, LARGEST_EXACT_INTEGER, not_doubles
from surecut._warnings import warn_caller
from surecut.core.settings import settings
from surecut.sources.batches import Range
from surecut.sources.column_types import NOTHING, common_type
from surecut.sources.columns import Columns
from surecut.sources.engine_tables import polars_batches
from surecut.sources.files import Files, connected
from surecut.sources.text_numbers import quoted


@dataclass(frozen=True)
class ArrowReader:
    """A PyArrow table or data set."""

    data: Any
    columns: Columns

    def __post_init__(self) -> None:
        self.columns.require_in(self.data.schema.names)
        _require_wide_types(self.data, self.columns.names)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.data.schema.field(name) for name in self.columns.names])

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        if isinstance(self.data, pa.Table):
            yield from self.data.select(self.columns.names).to_batches(max_chunksize=settings().batch)
        else:
            yield from self.data.to_batches(columns=self.columns.names, batch_size=settings().batch)


@dataclass(frozen=True)
class PolarsReader:
    """A Polars lazy frame, streamed where this Polars can."""

    frame: Any
    columns: Columns

    def __post_init__(self) -> None:
        self.columns.require_in(self.frame.collect_schema().names())

    @cached_property
    def schema(self) -> pa.Schema:
        return self._selected().head(0).collect().to_arrow().schema

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        import polars

        frame = self._selected()
        # Decimals are converted later, and not as Polars does it
        if within is not None and not frame.collect_schema()[self.columns.score].is_decimal():
            frame = frame.filter(polars.col(self.columns.score).cast(polars.Float64).is_between(*within))
        for piece in polars_batches(frame):
            yield from piece.to_arrow().to_batches(max_chunksize=settings().batch)

    def _selected(self) -> Any:
        return self.frame.select(self.columns.names)


@dataclass(frozen=True)
class DuckReader:
    """A DuckDB relation."""

    relation: Any
    columns: Columns

    def __post_init__(self) -> None:
        self.columns.require_in(self.relation.columns)

    @cached_property
    def schema(self) -> pa.Schema:
        self._require_doubles()
        return arrow_reader(self._selected(self.relation).limit(0)).schema

    def _require_doubles(self) -> None:
        """Raise where scores that have no NumPy dtype have no doubles of their own either."""
        types = _types(self.relation)
        name, kind = self.columns.score, types[self.columns.score]
        column = quoted(name)
        if _is_wide_decimal(kind):
            digits = f"replace(CAST(abs({column}) AS VARCHAR), '.', '')"
            again = f"CAST({_as_double(column, kind)} AS VARCHAR)"
            # the shortest text of the double, without an exponent as far as the type has digits
            is_other = f"TRY_CAST({again} AS {kind}) IS DISTINCT FROM {column}"
            is_inexact = f"{column} IS NOT NULL AND length(trim({digits}, '0')) > {EXACT_DIGITS} AND {is_other}"
        elif kind in ("HUGEINT", "UHUGEINT"):
            is_inexact = f"{column} > {LARGEST_EXACT_INTEGER} OR {column} < -{LARGEST_EXACT_INTEGER}"
        else:
            return
        asked = f"count(*) FILTER ({is_inexact}), any_value({column}) FILTER ({is_inexact})"
        inexact, such = self.relation.aggregate(asked).fetchall()[0]
        if inexact:
            raise not_doubles(name, such, inexact)

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        relation = self.relation
        if within is not None:
            low, high = map(_double, within)
            score = _as_double(quoted(self.columns.score), _types(relation)[self.columns.score])
            relation = relation.filter(f"{score} BETWEEN {low} AND {high}")
        yield from arrow_reader(self._selected(relation))

    def _selected(self, relation: Any) -> Any:
        """The columns; numbers that have no NumPy dtype become doubles here, so that all passes see the same ones."""
        types = _types(relation)
        selected = []
        for name in self.columns.names:
            column = quoted(name)
            if types[name].startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
                column = f"{_as_double(column, types[name])} AS {column}"
            selected.append(column)
        return relation.project(", ".join(selected))


def open_files(files: Files, columns: Columns, whole: bool = False) -> Any:
    """A relation of the columns that are needed, or of `whole` rows.

    Scores and weights are numbers. Of CSV and JSON lines the columns that are needed are read once, and kept; whole
    rows are read when the relation is.
    """
    needed = None if whole else columns.names
    files.require(needed)
    columns.require_in(files.types)
    if needed is None:
        files.settle()
    elif files.kind != "parquet":
        files.keep(needed)
    if needed is not None:
        files.require_rows()
    selected = {name: files.typed(name) for name in needed or files.types}
    if files.kind == "csv" and columns.label != columns.score and not isinstance(columns.pos_label, str):
        selected[columns.label] = _as_boolean(files, columns.label)
    for column in (columns.score, columns.weight):
        if column is not None:
            number = files.number(column)
            selected[column] = number.sql
            if number.in_percent:
                warn_caller(f"{column} is in percent in {files.name}: it is divided by 100", PercentWarning)
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in selected.items())
    return files.connection.sql(f"SELECT {listed} FROM {files.sql}")


def _as_boolean(files: Files, column: str) -> str:
    """Labels of a CSV file; words that mean true and false are booleans, which need no `pos_label`."""
    if files.types[column] != "VARCHAR":
        return files.typed(column)
    value = f"TRY_CAST(trim({quoted(column)}) AS BOOLEAN)"
    filled, words = files.ask(f"count(*) FILTER (trim({quoted(column)}) <> ''), count({value})")
    return value if filled == words else quoted(column)


class PercentWarning(UserWarning):
    """Scores or weights in a file have percent signs."""


def open_data_set(data_set: Any, needed: Iterable[str] | None = None) -> Any:
    """A relation over a PyArrow data set; types have to fit in the columns that are `needed`, if not in all."""
    names = data_set.schema.names
    columns = names if needed is None or not {*needed} <= {*names} else list(dict.fromkeys(needed))
    _require_wide_types(data_set, columns)
    return connected().from_arrow(_read_by_batches(data_set, columns))


def _read_by_batches(data_set: Any, columns: list[str]) -> Any:
    """Parquet files that are read a few batches ahead; PyArrow reads whole files ahead otherwise."""
    from pyarrow import dataset

    if not isinstance(getattr(data_set, "format", None), dataset.ParquetFileFormat):
        return data_set
    options = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    return data_set.scanner(
        columns=columns,
        batch_size=settings().batch,
        batch_readahead=2,
        fragment_readahead=1,
        fragment_scan_options=options,
    )


def _require_wide_types(data: Any, columns: Iterable[str]) -> None:
    """Raise where a file of a data set has values that the data set's own type, the first file's, does not hold.

    PyArrow would make true of 0.25, and 0.3 of 0.25 where the first file has decimals of one digit.
    """
    if not hasattr(data, "get_fragments"):
        return
    asked = [data.schema.field(name) for name in columns if name in data.schema.names]
    for fragment in data.get_fragments():
        own = fragment.physical_schema
        for field in asked:
            if field.name not in own.names or own.field(field.name).type.equals(field.type):
                continue
            kind, found = _duckdb_type(field.type), _duckdb_type(own.field(field.name).type)
            if kind != found and common_type(kind, found) != kind:
                first = next(iter(data.get_fragments()))
                raise ValueError(
                    f"column {field.name!r} is of type {field.type} in the data set, as in {_path_of(first)}, and of "
                    f"type {own.field(field.name).type} in {_path_of(fragment)}: pass the path of the files instead, "
                    "or give the data set a schema= with a type that holds both"
                )


def _path_of(fragment: Any) -> str:
    return str(getattr(fragment, "path", "a table"))


def _duckdb_type(kind: pa.DataType) -> str:
    """What DuckDB calls a number's type; others under their own names, text as text however it is kept."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return "VARCHAR"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    names = {
        pa.null(): NOTHING,
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.uint8(): "UTINYINT",
        pa.uint16(): "USMALLINT",
        pa.uint32(): "UINTEGER",
        pa.uint64(): "UBIGINT",
        pa.float16(): "FLOAT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
    }
    return names.get(kind, str(kind))


def arrow_reader(relation: Any) -> pa.RecordBatchReader:
    """Batches of a DuckDB relation."""
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(settings().batch)
    return relation.fetch_arrow_reader(settings().batch)  # pragma: no cover  # DuckDB before 1.5


def _types(relation: Any) -> dict[str, str]:
    """The columns of a DuckDB relation, and their types."""
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


def _is_wide_decimal(kind: str) -> bool:
    return kind.startswith("DECIMAL") and int(kind.removeprefix("DECIMAL(").partition(",")[0]) > EXACT_DIGITS


def _as_double(column: str, kind: str) -> str:
    """A number as a double; DuckDB before 2.0 rounds a decimal of many digits twice, but its text once."""
    return f"CAST({f'CAST({column} AS VARCHAR)' if _is_wide_decimal(kind) else column} AS DOUBLE)"


def _double(number: float) -> str:
    """A double to the last bit; without an exponent DuckDB would read a decimal."""
    return f"{number:.17e}" if math.isfinite(number) else f"'{number}'::DOUBLE"
