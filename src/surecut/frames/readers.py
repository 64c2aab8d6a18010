"""How files, DuckDB relations, Polars lazy frames and PyArrow data are read as Arrow batches."""

from __future__ import annotations

import glob
import math
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from surecut.frames.batches import BATCH, Range
from surecut.frames.columns import Columns
from surecut.frames.text_numbers import quoted, text_numbers


@dataclass(frozen=True)
class ArrowReader:
    """A PyArrow table or data set."""

    data: Any
    columns: Columns

    def __post_init__(self) -> None:
        self.columns.require_in(self.data.schema.names)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.data.schema.field(name) for name in self.columns.names])

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        if isinstance(self.data, pa.Table):
            yield from self.data.select(self.columns.names).to_batches(max_chunksize=BATCH)
        else:
            yield from self.data.to_batches(columns=self.columns.names, batch_size=BATCH)


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
            pieces = frame.collect_batches(chunk_size=BATCH, maintain_order=False)
        else:
            pieces = [frame.collect()]
        for piece in pieces:
            yield from piece.to_arrow().to_batches(max_chunksize=BATCH)

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
        return _arrow_reader(self._selected(self.relation).limit(0)).schema

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        relation = self.relation
        if within is not None:
            low, high = map(_double, within)
            relation = relation.filter(f"CAST({quoted(self.columns.score)} AS DOUBLE) BETWEEN {low} AND {high}")
        yield from _arrow_reader(self._selected(relation))

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
            return DuckReader(open_files(self.path, (self.columns.score, self.columns.weight)), self.columns)

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


def open_files(path: str, numbers: Iterable[str | None] = ()) -> Any:
    """A relation over a Parquet or CSV file, a glob of them, or a folder of Parquet files.

    Columns that should be `numbers` are read as such where a CSV file has them as text.
    """
    if "://" not in path:
        if Path(path).is_dir():
            path = str(Path(path) / "**" / "*.parquet")
        if not glob.glob(path, recursive=True):
            raise FileNotFoundError(f"there is no file {path}")
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".parquet", ".pq")):
        return _connected().read_parquet(path)
    if name.endswith((".csv", ".tsv", ".txt")):
        return _with_numbers(path, _opened_csv(path), numbers)
    raise ValueError(f"expected a Parquet or CSV file (.parquet, .pq, .csv, .tsv, .txt), got {path}")


def _opened_csv(path: str) -> Any:
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise ValueError(f"{path} is empty: at least a header and one row are needed")
    relation = _connected().read_csv(path)
    if len(relation.columns) == 1 and any(mark in relation.columns[0] for mark in ",;\t|"):
        raise ValueError(
            f"{path} was read as a single column, {relation.columns[0]!r}: see whether all its lines have the same "
            "number of fields"
        )
    return relation


def _with_numbers(path: str, relation: Any, numbers: Iterable[str | None]) -> Any:
    """The relation with some columns of text as numbers."""
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    replaced = []
    for column in numbers:
        if column is None or types.get(column) != "VARCHAR":
            continue
        found = text_numbers(column, lambda select: relation.aggregate(select).fetchall()[0])
        if found.in_percent:
            warnings.warn(f"{column} is in percent in {path}: it is divided by 100", PercentWarning, stacklevel=2)
        replaced.append(f"{found.sql} AS {quoted(column)}")
    return relation.project(f"* REPLACE ({', '.join(replaced)})") if replaced else relation


class PercentWarning(UserWarning):
    """Scores or weights in a file have percent signs."""


def open_data_set(data_set: Any) -> Any:
    """A relation over a PyArrow data set."""
    return _connected().from_arrow(data_set)


def _connected() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    return connection


def _arrow_reader(relation: Any) -> pa.RecordBatchReader:
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(BATCH)
    return relation.fetch_arrow_reader(BATCH)


def _double(number: float) -> str:
    """A double to the last bit; without an exponent DuckDB would read a decimal."""
    return f"{number:.17e}" if math.isfinite(number) else f"'{number}'::DOUBLE"
