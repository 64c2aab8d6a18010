"""How files, DuckDB relations, Polars lazy frames and PyArrow data are read as Arrow batches."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from surecut._inputs import EXACT_DIGITS, LARGEST_EXACT_INTEGER, not_doubles
from surecut._warnings import warn_caller
from surecut.core.settings import settings
from surecut.sources.batches import Range
from surecut.sources.columns import Columns
from surecut.sources.paths import NOTHING, Opened, common_type, files_of, opened_csv, opened_parquet
from surecut.sources.text_numbers import quoted, text_numbers


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
        if hasattr(frame, "collect_batches"):
            pieces = frame.collect_batches(chunk_size=settings().batch, maintain_order=False)
        else:
            pieces = [frame.collect()]
        for piece in pieces:
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
        types = dict(zip(self.relation.columns, map(str, self.relation.types), strict=True))
        name, kind = self.columns.score, types[self.columns.score]
        column = quoted(name)
        if kind.startswith("DECIMAL") and int(kind.removeprefix("DECIMAL(").partition(",")[0]) > EXACT_DIGITS:
            digits = f"replace(CAST(abs({column}) AS VARCHAR), '.', '')"
            again = f"CAST(CAST({column} AS DOUBLE) AS VARCHAR)"
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
            relation = relation.filter(f"CAST({quoted(self.columns.score)} AS DOUBLE) BETWEEN {low} AND {high}")
        yield from arrow_reader(self._selected(relation))

    def _selected(self, relation: Any) -> Any:
        """The columns; numbers that have no NumPy dtype become doubles here, so that all passes see the same ones."""
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        selected = []
        for name in self.columns.names:
            column = quoted(name)
            if name == self.columns.weight or types[name].startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
                column = f"CAST({column} AS DOUBLE) AS {column}"
            selected.append(column)
        return relation.project(", ".join(selected))


@dataclass(frozen=True)
class FileReader:
    """Parquet or CSV files, in an embedded DuckDB of their own."""

    path: str
    columns: Columns

    @cached_property
    def _reader(self) -> DuckReader:
        with _told(self.path):
            numbers = (self.columns.score, self.columns.weight)
            return DuckReader(open_files(self.path, numbers, self.columns.names), self.columns)

    @property
    def schema(self) -> pa.Schema:
        reader = self._reader
        with _told(self.path):
            return reader.schema

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        with _told(self.path):
            yield from self._reader.read(within)


class _told:
    """What DuckDB says of a file that cannot be read, as an `OSError` that names the file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        import duckdb

        ours = isinstance(error, FileNotFoundError | duckdb.BinderException)
        if isinstance(error, duckdb.Error | pa.ArrowException | OSError) and not ours:
            reason = str(error).split("\n\n")[0]  # what follows are DuckDB's settings
            raise OSError(f"cannot read {self._path}: {reason}") from error


def open_files(path: str, numbers: Iterable[str | None] = (), needed: Iterable[str] | None = None) -> Any:
    """A relation over a Parquet or CSV file, a glob of them, or a folder of Parquet files.

    A column that has different types in different files gets one that holds all its values. Where there is none, it is
    an error if the column is `needed`, as all are unless said otherwise. Columns that should be `numbers` are read as
    such where a CSV file has them as text.
    """
    files = files_of(path)
    names = {one.lower().removesuffix(".gz").removesuffix(".zst") for one in files}
    connection = _connected()
    numbers = tuple(numbers)
    is_parquet = all(name.endswith((".parquet", ".pq")) for name in names)
    if is_parquet:
        opened = opened_parquet(connection, files)
    elif all(name.endswith((".csv", ".tsv", ".txt")) for name in names):
        opened = _opened_csv(connection, path, files, numbers)
    else:
        raise ValueError(
            f"expected Parquet or CSV files (.parquet, .pq, .csv, .tsv, .txt), all of one kind, got {path}"
        )
    opened.require(needed)
    relation = connection.sql(f"SELECT * FROM {opened.sql}")
    return relation if is_parquet else _with_numbers(path, relation, numbers)


def _opened_csv(connection: Any, path: str, files: list[str], numbers: Iterable[str | None]) -> Opened:
    for one in files:
        if os.path.isfile(one) and os.path.getsize(one) == 0:
            raise ValueError(f"{one} is empty: at least a header and one row are needed")
    opened = opened_csv(connection, files, numbers)
    columns = list(opened.types)
    if len(columns) == 1 and any(mark in columns[0] for mark in ",;\t|"):
        raise ValueError(
            f"{path} was read as a single column, {columns[0]!r}: see whether all its lines have the same "
            "number of fields"
        )
    return opened


def _with_numbers(path: str, relation: Any, numbers: Iterable[str | None]) -> Any:
    """The relation with some columns of text as numbers."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    replaced = []
    for column in numbers:
        if column is None or types.get(column) != "VARCHAR":
            continue
        found = text_numbers(column, lambda select: relation.aggregate(select).fetchall()[0])
        if found.in_percent:
            warn_caller(f"{column} is in percent in {path}: it is divided by 100", PercentWarning)
        replaced.append(f"{found.sql} AS {quoted(column)}")
    return relation.project(f"* REPLACE ({', '.join(replaced)})") if replaced else relation


class PercentWarning(UserWarning):
    """Scores or weights in a file have percent signs."""


def open_data_set(data_set: Any, needed: Iterable[str] | None = None) -> Any:
    """A relation over a PyArrow data set; types have to fit in the columns that are `needed`, if not in all."""
    _require_wide_types(data_set, data_set.schema.names if needed is None else needed)
    return _connected().from_arrow(data_set)


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


def _connected() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    return connection


def arrow_reader(relation: Any) -> pa.RecordBatchReader:
    """Batches of a DuckDB relation."""
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(settings().batch)
    return relation.fetch_arrow_reader(settings().batch)


def _double(number: float) -> str:
    """A double to the last bit; without an exponent DuckDB would read a decimal."""
    return f"{number:.17e}" if math.isfinite(number) else f"'{number}'::DOUBLE"
