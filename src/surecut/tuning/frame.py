"""The best cut of a frame, where the frame is: in memory, in files, or in an engine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import narwhals.stable.v2 as nw
import numpy as np

from surecut._inputs import as_scores, as_weights, missing_values
from surecut._labels import LabelKind, as_labels, kind_of
from surecut._missing import Missing
from surecut._warnings import warn_caller
from surecut.certificates.weights import require_both, require_whole
from surecut.constraints import ConstraintLike
from surecut.decisions.cut import Cut
from surecut.positive_class import settle_absence
from surecut.sources.arrays import ArraySource
from surecut.sources.columns import Columns, LongColumns, is_nan, same_names
from surecut.tuning.labels import tune_labels
from surecut.tuning.request import MetricLike, Request, RowsRequest, TableOptions
from surecut.tuning.tune import tally_for_limits, tune

if TYPE_CHECKING:
    from surecut.core.tally import ScoreTally
    from surecut.decisions.bands import Bands
    from surecut.decisions.grouped_bands import GroupedBands
    from surecut.decisions.multilabel import MultilabelCut
    from surecut.decisions.top_k import TopK
    from surecut.sources.engines import EngineRows

ACCEPTED = (
    "a pandas, Polars, PyArrow, DuckDB, Dask, PySpark or Ibis frame, or the path of Parquet, CSV or JSON lines files"
)

READ_ONCE = ("RecordBatchReader", "Scanner")
"""What of PyArrow may be gone after one pass."""


@overload
def tune_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    metric: MetricLike = ...,
    by: None = ...,
    **options: Unpack[TableOptions],
) -> Cut: ...
@overload
def tune_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    metric: Sequence[MetricLike],
    by: None = ...,
    **options: Unpack[TableOptions],
) -> dict[str, Cut]: ...
@overload
def tune_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    metric: MetricLike = ...,
    by: str | Sequence[str],
    **options: Unpack[TableOptions],
) -> MultilabelCut: ...
@overload
def tune_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    metric: Sequence[MetricLike],
    by: str | Sequence[str],
    **options: Unpack[TableOptions],
) -> dict[str, MultilabelCut]: ...
def tune_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    by: str | Sequence[str] | None = None,
    average: str = "macro",
    weight: str | None = None,
    weights: str | None = None,
    pos_label: Any = None,
    constraint: ConstraintLike | Iterable[ConstraintLike] | None = None,
    confidence: float | None = None,
    prior: float | None = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    missing: str = "error",
    random_state: int | None = 0,
) -> Cut | MultilabelCut | dict[str, Cut] | dict[str, MultilabelCut]:
    """Find the threshold at which a metric is best on the rows of a frame, exactly, without collecting them.

    The cut is that of `tune_threshold` on the collected columns. Files, DuckDB relations, Polars lazy frames and
    PyArrow data are read in batches, once or twice; Spark, Dask and Ibis are asked to count. Neither needs the rows to
    fit in memory.

    Parameters
    ----------
    frame
        A pandas or Polars frame (eager or lazy), a PyArrow table or data set, a DuckDB relation, a Dask, PySpark
        (classic or Connect) or Ibis frame, or a path: a file, a glob of files, a folder, or a URL. Files are Parquet,
        CSV (also TSV and TXT) or JSON lines, the latter two also as ``.gz`` or ``.zst``. A folder means its Parquet
        files at any depth, or else its CSV or JSON lines files. Folders such as ``day=1`` are columns.
    label, score, weight
        Names of columns. Scores are numbers, weights are finite and not negative.
    metric
        As in `tune_threshold`; a list gives a dict of name to cut, all from the same passes.
    by
        Names of columns that group the rows: one label each of a long table, a country, a model. Rows without a key
        count as missing.
    average
        With `by`: ``"macro"`` gives every group a threshold of its own; ``"micro"`` gives all groups the one that is
        best for their pooled counts, as in scikit-learn.
    pos_label
        The label that counts as positive, where labels are not booleans, {0, 1} or {−1, 1}.
    constraint, confidence, weights, prior, shrinkage, stable
        As in `tune_threshold`; with `by`, a confidence is that of all groups' constraints together, as in
        `tune_thresholds`, and a prior is refused. Shrinkage needs all distinct scores in memory; stable cuts of more
        than 131,072 rows need a few thousand ranges of scores.
    missing
        What to do with rows that have a null or NaN: ``"error"``, or ``"drop"``, which warns how many were dropped.
    random_state
        The seed of the resamples that `stable` needs.

    Returns
    -------
    Cut
        With `by` a `MultilabelCut`; a dict of them for several metrics. `tally_frame` gives the `ScoreTally`.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"clicked": [0, 0, 1, 1], "score": [0.125, 0.5, 0.375, 0.75]})
    >>> cut = tune_frame(frame, label="clicked", score="score")
    >>> cut.threshold, cut.value
    (0.25, 0.8)
    """
    keys = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    request = Request.of_table(
        metric,
        by=keys,
        average=average,
        constraint=constraint,
        confidence=confidence,
        weights=weights,
        prior=prior,
        shrinkage=shrinkage,
        stable=stable,
        pos_label=pos_label,
        missing=missing,
        random_state=random_state,
    )
    require_both(weights, weight is not None, "weight")
    cuts = tune_table(frame, Columns(score, label, weight, keys, pos_label), request)
    return cast("Cut | MultilabelCut | dict[str, Cut] | dict[str, MultilabelCut]", request.named(cuts))


def tune_table(frame: Any, columns: Columns, request: Request) -> list[Cut] | list[MultilabelCut]:
    """What `tune_frame` does with a request: a cut for each of its metrics."""
    with opened(frame) as rows:
        if not columns.by:
            source = rows_source(rows, columns, request)
            require_counted(rows, columns, request)
            return tune(source, request)
        from surecut.sources.engines import EngineGroups

        groups = EngineGroups(engine_rows(rows, columns, request))
        require_counted(rows, columns, request)
        return tune_labels(groups.collected(), request, groups.names)


def require_counted(frame: Any, columns: Columns, request: RowsRequest) -> None:
    """Raise where weights are said to count rows, and are no whole numbers: sums of them would not always show it."""
    weight = columns.weight
    if weight is None or request.weights != "counts":
        return
    column = nw.col(weight).cast(nw.Float64)
    is_broken = (column != column.round(0)) & ~is_nan(column)  # what is missing is another error
    broken = _typed(_wrapped(frame, columns), columns).lazy().select(column).filter(is_broken).head(1)
    require_whole(broken.collect().get_column(weight).to_numpy(), "counts")


def tally_frame(
    frame: Any, *, label: str, score: str, weight: str | None = None, pos_label: Any = None, missing: str = "error"
) -> ScoreTally:
    """The `ScoreTally` of a frame's rows: every distinct score, which has to fit in memory.

    The parameters are those of `tune_frame`.

    >>> import pandas
    >>> frame = pandas.DataFrame({"clicked": [0, 0, 1, 1], "score": [0.125, 0.5, 0.375, 0.75]})
    >>> tally_frame(frame, label="clicked", score="score")
    <ScoreTally of 4 rows, 2 positive, 4 distinct scores>
    """
    request = Request.of("accuracy", pos_label=pos_label, missing=missing)
    with opened(frame) as rows:
        tally: ScoreTally = rows_source(rows, Columns(score, label, weight, (), pos_label), request).tally()
    return replace(tally, pos_label=pos_label)


def tally_table(frame: Any, columns: Columns, request: Request, thresholds: Sequence[float] = ()) -> ScoreTally:
    """A tally for confidence limits and curves: of many rows by ranges of scores, exact at some thresholds."""
    with opened(frame) as rows:
        tally = tally_for_limits(rows_source(rows, columns, request), thresholds)
    return replace(tally, pos_label=request.pos_label)


def apply_frame(
    frame: Any,
    cut: Cut | MultilabelCut | Bands | GroupedBands | TopK,
    *,
    score: str,
    row: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    name: str = "predicted",
    missing: str | None = None,
    unknown: str | None = None,
) -> Any:
    """Add a column that says which rows are cut positive, in which zone, or among the k of their row, in the engine.

    Parameters
    ----------
    frame
        As in `tune_frame`. The path of files and a PyArrow data set give a DuckDB relation.
    cut
        The decision of `tune_frame` or `tune_bands_frame`, or of any other function.
    score
        The name of the column of scores.
    row
        With a `TopK`: the names of the columns that tell rows apart. The frame is a long table, with a line for each
        row and label, and a line is predicted if its label is one of the k of its row.
    by
        With a `MultilabelCut`, a `TopK` or `GroupedBands`: the names of the columns that its labels come from, in their
        order.
    name
        The name of the new column: of booleans, or of the names of zones.
    missing
        Rows without a score (null or NaN). ``"error"`` counts them first, by a query of its own, and raises. Otherwise
        a cut predicts them negative, and bands put them into the zone that is named here, or into none (null). With a
        `TopK`, lines without a score or a row are not predicted, and do not count among the k.
    unknown
        With `by`: rows of a label that the cut does not know, likewise.

    Returns
    -------
    frame
        Of the same kind, lazy where it is lazy; with `by` the rows of a lazy one may come in another order. The new
        column of a cut is true or false, never null, on any engine.

    Warns
    -----
    MissingRowsWarning, UnknownLabelWarning
        Where there are such rows, and they were counted: those of a frame in memory are. A lazy frame is not read here,
        and cannot tell.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"clicked": [0, 0, 1, 1], "score": [0.125, 0.5, 0.375, 0.75]})
    >>> apply_frame(frame, tune_frame(frame, label="clicked", score="score"), score="score")["predicted"].tolist()
    [False, True, True, True]
    """
    from surecut.sources.applying import AppliedDecision, UnpredictedRows, applied_columns

    unpredicted = UnpredictedRows.of(cut, missing, unknown)
    asked = applied_columns(cut, score, row, by)
    needed = asked.columns if isinstance(asked, LongColumns) else asked
    with opened(frame) as rows:
        wrapped = _wrapped(rows, needed, whole=True)
        columns = wrapped.collect_schema().names()
        needed.require_in(columns)
        if name in columns:
            raise ValueError(f"the frame has a column {name!r} already: choose another with name=")
        applied = AppliedDecision.of(wrapped, cut, asked, unpredicted)
        if unpredicted.may_raise or isinstance(wrapped, nw.DataFrame):
            for category, sentence in unpredicted.settle(applied.counted(), score, asked.label_names):
                warn_caller(sentence, category)
        return applied.with_column(name)


def rows_source(frame: Any, columns: Columns, request: RowsRequest) -> Any:
    """The rows of a frame, as a search can ask for them."""
    reader = _reader(frame, columns)
    if reader is not None:
        from surecut.sources.batches import BatchSource

        return BatchSource(reader, columns, request.missing, request.objectives)
    wrapped = _wrapped(frame, columns)
    if isinstance(wrapped, nw.DataFrame):
        return _array_source(wrapped, columns, request)
    from surecut.sources.engines import EngineSource

    return EngineSource(engine_rows(wrapped, columns, request))


def engine_rows(frame: Any, columns: Columns, request: RowsRequest) -> EngineRows:
    from surecut.sources.engines import EngineRows

    return EngineRows(lazy_rows(frame, columns), columns, request.missing, tuple(request.metrics))


def lazy_rows(frame: Any, columns: Columns) -> Any:
    """A frame as narwhals has lazy ones, with columns that engines can compare."""
    return _typed(_wrapped(frame, columns), columns).lazy()


@contextmanager
def opened(frame: Any) -> Iterator[Any]:
    """The frame itself, of a kind that can be asked more than once; a path as the files that it means."""
    frame = nw.to_native(frame, pass_through=True)
    if isinstance(frame, (str, os.PathLike)):
        files = _readers("files").Files(os.fspath(frame))
        with files.reading():
            yield files
        files.require_unchanged()
        return
    home, kind = _home(frame)
    if home == "pyarrow" and kind in READ_ONCE:
        raise TypeError(
            f"a {kind} can be read only once, and a search may need two passes: pass a table (its read_all() or "
            "to_table()) or a data set; a ScoreSketch takes streams batch by batch"
        )
    if home == "pyarrow" and kind == "RecordBatch":
        import pyarrow

        frame = pyarrow.Table.from_batches([frame])
    yield frame


def _home(frame: Any) -> tuple[str, str]:
    """The library that a frame comes from, and its class."""
    return type(frame).__module__.partition(".")[0].lstrip("_"), type(frame).__name__


def _is_data_set(frame: Any) -> bool:
    return _home(frame)[0] == "pyarrow" and _home(frame)[1].endswith("Dataset")


def _is_files(frame: Any) -> bool:
    return _home(frame) == ("surecut", "Files")


def _wrapped(frame: Any, columns: Columns, whole: bool = False) -> Any:
    """The frame as narwhals has it; what is not a frame but can be asked is opened in DuckDB.

    All columns are there if `whole` rows are asked for, otherwise only those that are needed may be.
    """
    if _is_files(frame):
        frame = _readers("files").open_files(frame, columns, whole)
    elif _is_data_set(frame):
        frame = _readers("a data set by groups").open_data_set(frame, None if whole else columns.names)
    try:
        return nw.from_native(frame)
    except TypeError:
        raise TypeError(f"expected {ACCEPTED}, got {type(frame).__name__}") from None
    except nw.exceptions.DuplicateError:
        names = list(frame.columns if hasattr(frame, "to_numpy") else frame.schema.names)
        raise same_names(*dict.fromkeys(name for name in names if names.count(name) > 1)) from None


def _reader(frame: Any, columns: Columns) -> Any:
    """What reads the frame as Arrow batches; None where it is not read but asked, or in memory already."""
    home, kind = _home(frame)
    if _is_files(frame):
        readers = _readers("files")
        return readers.DuckReader(readers.open_files(frame, columns), columns)
    if home == "duckdb":
        return _readers(home).DuckReader(frame, columns)
    if (home, kind) == ("polars", "LazyFrame"):
        return _readers(home, "pyarrow").PolarsReader(frame, columns)
    if home == "pyarrow" and (kind == "Table" or _is_data_set(frame)):
        return _readers(home, "pyarrow").ArrowReader(frame, columns)
    return None


def _readers(what: str, *needed: str) -> Any:
    """The module that reads batches, where the libraries are installed that it needs."""
    for library in needed or ("pyarrow", "duckdb"):
        if importlib.util.find_spec(library) is None:
            raise ImportError(f"reading {what} needs {library}: pip install surecut[files]")
    from surecut.sources import readers

    return readers


def _array_source(frame: nw.DataFrame[Any], columns: Columns, request: RowsRequest) -> ArraySource:
    """The rows of a frame that is in memory."""
    columns.require_in(frame.columns)
    columns.require_number_weights(frame.schema)
    if not len(frame):
        raise ValueError("the frame holds no rows: at least one is needed")
    gone = np.zeros(len(frame), dtype=bool)
    counted = []
    for name in [columns.score, columns.label, columns.weight]:
        lacking = np.zeros(0, dtype=bool) if name is None else _is_absent(frame[name]) & ~gone
        counted.append(int(lacking.sum()))
        gone = gone | lacking if name is not None else gone
    Missing(*counted).settle(request.missing, len(frame))
    present = slice(None) if not gone.any() else ~gone

    def column(name: str) -> Any:
        values = frame[name].to_numpy()[present]
        return values.astype(frame[name].drop_nulls().to_numpy().dtype) if gone.any() else values

    labels = as_labels(column(columns.label), pos_label=columns.pos_label, name=columns.label, check=False)
    settle_absence(labels.absent, request.metrics)
    scores = as_scores(column(columns.score), columns.score)
    weights = None if columns.weight is None else as_weights(column(columns.weight), len(scores), columns.weight)
    return ArraySource(scores, labels, weights)


def _typed(frame: Any, columns: Columns) -> Any:
    """A frame in memory with columns of types that can be compared and cast; a frame in an engine as it is."""
    if not isinstance(frame, nw.DataFrame):
        return frame
    present = [name for name in dict.fromkeys(columns.names) if name in frame.columns]
    if frame.implementation.is_pandas_like():
        halves = [name for name in present if str(nw.to_native(frame[name]).dtype) == "float16"]
        frame = frame.with_columns(*(nw.col(name).cast(nw.Float32) for name in halves))
    elif frame.implementation.is_pyarrow():
        import pyarrow

        for name in present:
            column = nw.to_native(frame[name])
            is_categories = name == columns.label and pyarrow.types.is_dictionary(column.type)
            if is_categories and not _is_arrow_text(column.type.value_type):
                column = column.cast(column.type.value_type)
            if pyarrow.types.is_float16(column.type):
                column = column.cast(pyarrow.float32())
            if name == columns.weight and pyarrow.types.is_integer(column.type):
                column = column.cast(pyarrow.float64(), safe=False)  # as NumPy does beyond 2**53
            frame = frame.with_columns(nw.from_native(column, series_only=True).alias(name))
    if columns.label in present:
        frame = frame.with_columns(_typed_labels(frame[columns.label]))
    return frame


def _is_arrow_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _typed_labels(labels: nw.Series[Any]) -> nw.Series[Any]:
    """Labels as an engine can compare them: objects and categories that are numbers, such as decimals, as floats."""
    native: Any = nw.to_native(labels)
    is_categories = labels.dtype == nw.Categorical and labels.implementation.is_pandas_like()
    if labels.dtype != nw.Object and not (is_categories and native.cat.categories.dtype.kind in "biufO"):
        return labels
    values = native.astype(object).to_numpy() if is_categories else labels.to_numpy()
    absent = missing_values(values)
    if absent.all() or kind_of(values[~absent], labels.name) is not LabelKind.NUMBER:
        return labels
    floats = np.full(len(values), np.nan)
    floats[~absent] = values[~absent].astype(np.float64)
    return nw.new_series(labels.name, floats, nw.Float64, backend=labels.implementation)


def _is_absent(series: nw.Series[Any]) -> Any:
    absent = series.is_null()
    if series.dtype.is_float():
        absent = absent | series.is_nan().fill_null(True)
    return absent.to_numpy().astype(bool)
