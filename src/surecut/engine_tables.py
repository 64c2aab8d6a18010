"""A small table of ours beside a frame in an engine, so that the engine can join them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw


@contextmanager
def table_beside(frame: nw.LazyFrame[Any], table: nw.DataFrame[Any]) -> Iterator[nw.LazyFrame[Any]]:
    """The table in the engine of the frame; it lives as long as the context."""
    engine, native = frame.implementation, nw.to_native(frame)
    if engine.is_duckdb():
        import pyarrow.parquet

        with tempfile.TemporaryDirectory() as folder:  # a relation of the same connection, which it does not tell
            path = Path(folder) / "table.parquet"
            pyarrow.parquet.write_table(table.to_arrow(), path)
            quoted = str(path).replace("'", "''")
            yield nw.from_native(native.query("surecut_frame", f"SELECT * FROM read_parquet('{quoted}')"))
        return
    yield nw.from_native(_native_table(engine, native, table)).lazy()


def _native_table(engine: nw.Implementation, native: Any, table: nw.DataFrame[Any]) -> Any:
    if engine.is_pyspark() or engine.is_pyspark_connect():
        return native.sparkSession.createDataFrame(table.to_pandas())
    if engine.is_dask():
        import dask.dataframe

        return dask.dataframe.from_pandas(table.to_pandas(), npartitions=1)
    if engine.is_ibis():
        import ibis

        return ibis.memtable(table.to_arrow())
    if engine.is_polars():
        return table.to_polars()
    if engine.is_pyarrow():
        return table.to_arrow()
    return table.to_pandas()


def with_thresholds(frame: Any, cut: MultilabelCut, score: Any, keys: tuple[str, ...], name: str) -> Any:
    """The native frame with a column that says which rows reach the threshold of their group."""
    labels = cut.labels if len(keys) > 1 else [(label,) for label in cut.labels]
    if any(not isinstance(label, tuple) or len(label) != len(keys) for label in labels):
        raise ValueError(f"the cut's labels do not come from {len(keys)} columns, as {cut.labels[0]!r} shows")
    columns = {key: [label[part] for label in labels] for part, key in enumerate(keys)}
    reachable = cut.thresholds < math.inf
    columns = {key: [value for value, one in zip(column, reachable, strict=True) if one] for key, column in columns.items()}
    columns[THRESHOLD] = cut.thresholds[reachable].tolist()
    table = nw.from_native(pandas_or_arrow(columns), eager_only=True)
    joined = frame.join(table_in(frame, table), on=list(keys), how="left")
    reaches = (score >= nw.col(THRESHOLD)) & ~score.is_nan()
    added = joined.with_columns(nw.when(reaches).then(nw.lit(True)).otherwise(nw.lit(False)).alias(name))
    return nw.to_native(added.drop(THRESHOLD))
