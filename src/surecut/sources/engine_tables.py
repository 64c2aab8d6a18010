"""A small table of ours beside a frame in an engine, so that the engine can join them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from surecut.sources.columns import is_nan
from surecut.sources.text_numbers import literal, quoted

if TYPE_CHECKING:
    from surecut.decisions.multilabel import MultilabelCut

THRESHOLD, POSITION = "surecut_threshold", "surecut_position"


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


def with_thresholds(frame: Any, cut: MultilabelCut, score: Any, keys: tuple[str, ...], name: str) -> Any:
    """The native frame with a column that says which rows reach the threshold of their group."""
    labels = cut.label_parts(len(keys))
    reached = [(*label, t) for label, t in zip(labels, cut.thresholds.tolist(), strict=True) if t < math.inf]
    columns = {column: [row[part] for row in reached] for part, column in enumerate((*keys, THRESHOLD))}
    eager = isinstance(frame, nw.DataFrame)
    if eager:
        frame = frame.with_row_index(POSITION)  # joins do not keep the order of rows in all engines
    joined = frame.join(_thresholds_beside(frame, columns, keys), on=list(keys), how="left")
    reaches = (score >= nw.col(THRESHOLD)) & ~is_nan(score)
    added = joined.with_columns(nw.when(reaches).then(nw.lit(True)).otherwise(nw.lit(False)).alias(name))
    if eager:
        added = added.sort(POSITION).drop(POSITION)
    return nw.to_native(added.drop(THRESHOLD))


def _thresholds_beside(frame: Any, columns: dict[str, list[Any]], keys: tuple[str, ...]) -> Any:
    engine = frame.implementation
    if engine.is_duckdb():
        relation = nw.to_native(frame)
        types = dict(zip(relation.columns, map(str, relation.types), strict=True)) | {THRESHOLD: "DOUBLE"}
        listed = (
            f"unnest(CAST([{', '.join(map(literal, map(str, column)))}] AS {types[name]}[])) AS {quoted(name)}"
            for name, column in columns.items()
        )
        return nw.from_native(relation.query("surecut_frame", f"SELECT {', '.join(listed)}"))
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
