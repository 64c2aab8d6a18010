"""A small table of ours beside a frame in an engine, so that the engine can join them; and frames in batches."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from surecut.core.settings import settings
from surecut.sources.key_values import unique_keys
from surecut.sources.text_numbers import literal, quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@contextmanager
def table_beside(frame: nw.LazyFrame[Any], table: nw.DataFrame[Any]) -> Iterator[nw.LazyFrame[Any]]:
    """The table in the engine of the frame; it lives as long as the context."""
    if frame.implementation.is_duckdb():
        import pyarrow.parquet

        with tempfile.TemporaryDirectory() as folder:  # a relation does not tell its connection, but can read a file
            path = Path(folder) / "table.parquet"
            pyarrow.parquet.write_table(table.to_arrow(), path, compression="none", use_dictionary=False)
            query = f"SELECT * FROM read_parquet({literal(str(path))})"
            yield nw.from_native(nw.to_native(frame).query("surecut_frame", query))
    else:
        yield _in_engine_of(frame, table).lazy()


def can_stream(frame: nw.LazyFrame[Any]) -> bool:
    """Whether the rows of a frame are in memory, or come in batches without being collected."""
    engine = frame.implementation
    return bool(engine.is_duckdb() or engine.is_polars() or engine.is_pyarrow() or engine.is_pandas_like())


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


def thresholds_beside(
    frame: Any, labels: Sequence[tuple[Any, ...]], keys: tuple[str, ...], thresholds: Mapping[str, NDArray[np.float64]]
) -> Any:
    """Labels in columns named as the frame's keys, with named columns of thresholds, in the engine of the frame.

    Only labels that the columns can hold, each once: a join with it never adds rows.
    """
    native, engine, schema = nw.to_native(frame), frame.implementation, frame.collect_schema()
    kinds = [_kind_of_values(native, key, schema[key]) for key in keys]
    found = unique_keys(labels, kinds)
    if engine.is_pyarrow():
        arrow = [native.schema.field(key).type for key in keys]
        found = {place: label for place, label in found.items() if all(map(_is_arrow_value, label, arrow))}
    columns: dict[str, list[Any]] = {key: [label[part] for label in found.values()] for part, key in enumerate(keys)}
    columns |= {name: values[list(found)].tolist() for name, values in thresholds.items()}
    if engine.is_duckdb():
        types = dict(zip(native.columns, map(str, native.types), strict=True)) | dict.fromkeys(thresholds, "DOUBLE")
        listed = (
            f"unnest(TRY_CAST([{', '.join(map(_text, column))}] AS {types[name]}[])) AS {quoted(name)}"
            for name, column in columns.items()
        )
        names = ", ".join(map(quoted, keys))
        # labels that are one in a type that only DuckDB knows would make two rows of one
        any_of = ", ".join(f"any_value({quoted(name)}) AS {quoted(name)}" for name in thresholds)
        once = f"SELECT {names}, {any_of} FROM (SELECT {', '.join(listed)})"
        return nw.from_native(native.query("surecut_frame", f"{once} GROUP BY {names} HAVING count(*) = 1"))
    # Most engines join columns of one type only
    table: Any
    if engine.is_pyarrow():
        import pyarrow

        fields = {key: native.schema.field(key).type for key in keys} | dict.fromkeys(thresholds, pyarrow.float64())
        table = pyarrow.table({name: _arrow(column, fields[name]) for name, column in columns.items()})
    elif engine.is_polars() or engine.is_ibis():
        types = {key: schema[key] for key in keys} | dict.fromkeys(thresholds, nw.Float64())
        table = nw.from_dict(columns, types, backend="polars" if engine.is_polars() else "pyarrow")
    else:
        import pandas

        typed = {} if engine.is_pyspark() or engine.is_pyspark_connect() else {key: native.dtypes[key] for key in keys}
        typed |= dict.fromkeys(thresholds, "float64")
        table = pandas.DataFrame(
            {name: pandas.Series(column, dtype=typed.get(name)) for name, column in columns.items()}
        )
        table = table.dropna(subset=list(keys))  # categories that the column has not
    beside = _in_engine_of(frame, nw.from_native(table, eager_only=True).unique(list(keys), keep="none"))
    return beside if isinstance(frame, nw.DataFrame) else beside.lazy()


def _kind_of_values(native: Any, key: str, kind: Any) -> Any:
    """The type of a column's values in narwhals; of categories that are not text, theirs."""
    if kind != nw.Categorical or not hasattr(native, "iloc"):  # pandas and Dask
        return kind
    categories: Any = getattr(native.dtypes[key], "categories", None)  # Arrow's own have none
    if categories is None:
        return kind
    return nw.from_native(categories.to_series(), series_only=True).dtype


def _is_arrow_value(value: Any, kind: Any) -> bool:
    """Whether a type of Arrow that narwhals does not know, such as a decimal of two digits, holds a value."""
    import pyarrow

    try:
        pyarrow.array([value], kind.value_type if pyarrow.types.is_dictionary(kind) else kind)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError):
        return False
    return True


def _arrow(values: list[Any], kind: Any) -> Any:
    import pyarrow

    if not pyarrow.types.is_dictionary(kind):
        return pyarrow.array(values, kind)
    return pyarrow.array(values, kind.value_type).dictionary_encode().cast(kind)


def _text(value: Any) -> str:
    """SQL of a value as text, which DuckDB casts to the type of the column."""
    return literal("".join(f"\\x{byte:02X}" for byte in value) if isinstance(value, bytes) else str(value))


def _in_engine_of(frame: Any, table: nw.DataFrame[Any]) -> Any:
    engine = frame.implementation
    if engine.is_pyspark() or engine.is_pyspark_connect():
        own = nw.to_native(frame).sparkSession.createDataFrame(table.to_pandas())
        # Spark does not know how small the table is, and would sort the rows of the frame to join them
        return nw.from_native(own.hint("broadcast") if len(table) <= settings().broadcast else own)
    if engine.is_dask():
        import dask.dataframe

        return nw.from_native(dask.dataframe.from_pandas(table.to_pandas(), npartitions=1))  # type: ignore[no-untyped-call]
    if engine.is_ibis():
        import ibis

        return nw.from_native(ibis.memtable(table.to_arrow()))
    if engine.is_polars():
        return nw.from_native(table.to_polars())
    if engine.is_pyarrow():
        return nw.from_native(table.to_arrow())
    return nw.from_native(table.to_pandas())
