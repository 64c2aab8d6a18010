"""A small table of ours beside a frame in an engine, so that the engine can join them; and frames in batches."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from surecut.core.settings import settings
from surecut.sources.column_types import BITS
from surecut.sources.text_numbers import literal, quoted

if TYPE_CHECKING:
    from surecut.decisions.multilabel import MultilabelCut

THRESHOLD = "surecut_threshold"


@contextmanager
def table_beside(frame: nw.LazyFrame[Any], table: nw.DataFrame[Any]) -> Iterator[nw.LazyFrame[Any]]:
    """The table in the engine of the frame; it lives as long as the context."""
    if frame.implementation.is_duckdb():
        import pyarrow.parquet

        with tempfile.TemporaryDirectory() as folder:  # a relation does not tell its connection, but can read a file
            path = Path(folder) / "table.parquet"
            pyarrow.parquet.write_table(table.to_arrow(), path)
            query = f"SELECT * FROM read_parquet({literal(str(path))})"
            yield nw.from_native(nw.to_native(frame).query("surecut_frame", query))
    else:
        yield _in_engine_of(frame, table).lazy()


def can_stream(frame: nw.LazyFrame[Any]) -> bool:
    """Whether the rows of a frame are in memory, or come in batches without being collected."""
    engine = frame.implementation
    return engine.is_duckdb() or engine.is_polars() or engine.is_pyarrow() or engine.is_pandas_like()


def batches_of(frame: nw.LazyFrame[Any]) -> Iterator[nw.DataFrame[Any]]:
    """The rows of a frame that can be streamed, in any order."""
    native = nw.to_native(frame)
    if frame.implementation.is_duckdb():
        import pyarrow

        from surecut.sources.readers import arrow_reader

        for batch in arrow_reader(native):
            yield nw.from_native(pyarrow.Table.from_batches([batch]), eager_only=True)
        return
    pieces = polars_batches(native) if frame.implementation.is_polars() else [nw.to_native(frame.collect())]
    for piece in pieces:
        whole: nw.DataFrame[Any] = nw.from_native(piece, eager_only=True)
        for start in range(0, len(whole), settings().batch):
            yield whole[start : start + settings().batch]


def polars_batches(frame: Any) -> Any:
    """A Polars lazy frame as frames in memory, in any order."""
    if hasattr(frame, "collect_batches"):
        return frame.collect_batches(chunk_size=settings().batch, maintain_order=False)
    return [frame.collect()]  # pragma: no cover  # an older Polars has no collect_batches


def thresholds_beside(frame: Any, cut: MultilabelCut, keys: tuple[str, ...]) -> Any:
    """The labels of a cut in columns named as the frame's keys, with their thresholds, in the engine of the frame."""
    rows = [(*label, t) for label, t in zip(cut.label_parts(len(keys)), cut.thresholds.tolist(), strict=True)]
    columns = {column: [row[part] for row in rows] for part, column in enumerate((*keys, THRESHOLD))}
    engine = frame.implementation
    if engine.is_duckdb():
        relation = nw.to_native(frame)
        types = dict(zip(relation.columns, map(str, relation.types), strict=True)) | {THRESHOLD: "DOUBLE"}
        listed = (
            f"unnest(TRY_CAST([{', '.join(_text_in(types[name], value) for value in column)}] AS {types[name]}[])) "
            f"AS {quoted(name)}"
            for name, column in columns.items()
        )
        names = ", ".join(map(quoted, keys))
        # labels that are one in the type of the column, 1 and 01, would make two rows of one
        once = f"SELECT {names}, any_value({THRESHOLD}) AS {THRESHOLD} FROM (SELECT {', '.join(listed)})"
        return nw.from_native(relation.query("surecut_frame", f"{once} GROUP BY {names} HAVING count(*) = 1"))
    backend: Any = "pandas"
    if engine.is_polars() or engine.is_pyarrow() or engine.is_ibis():
        backend = "polars" if engine.is_polars() else "pyarrow"
    table: nw.DataFrame[Any] = nw.from_dict(columns, backend=backend)
    # Most engines join columns of one type only
    native, schema = nw.to_native(frame), frame.collect_schema()
    if engine.is_pyarrow():
        import pyarrow

        fields = [native.schema.field(key) for key in keys]
        wanted = pyarrow.schema([*fields, pyarrow.field(THRESHOLD, pyarrow.float64())])
        table = nw.from_native(table.to_arrow().cast(wanted), eager_only=True)
    elif engine.is_pandas() or engine.is_dask():
        typed = table.to_pandas().astype({key: native.dtypes[key] for key in keys})
        table = nw.from_native(typed, eager_only=True)
    elif backend != "pandas":
        table = table.with_columns(*(nw.col(key).cast(schema[key]) for key in keys))
    beside = _in_engine_of(frame, table)
    return beside if isinstance(frame, nw.DataFrame) else beside.lazy()


def _text_in(kind: str, value: Any) -> str:
    """SQL of a value as text, null where a column of integers cannot hold it: DuckDB would round it."""
    text = str(value)
    if kind in BITS and _number(text) % 1 != 0:
        return "NULL"
    return literal(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _in_engine_of(frame: Any, table: nw.DataFrame[Any]) -> Any:
    engine = frame.implementation
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return nw.from_native(nw.to_native(frame).sparkSession.createDataFrame(table.to_pandas()))
    if engine.is_dask():
        import dask.dataframe

        own = dask.dataframe.from_pandas(table.to_pandas(), npartitions=1)  # type: ignore[no-untyped-call]
        return nw.from_native(own)
    if engine.is_ibis():
        import ibis

        return nw.from_native(ibis.memtable(table.to_arrow()))
    if engine.is_polars():
        return nw.from_native(table.to_polars())
    if engine.is_pyarrow():
        return nw.from_native(table.to_arrow())
    return nw.from_native(table.to_pandas())
