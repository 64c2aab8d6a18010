"""Long tables, with a line for each row and label, as matrices with a row for each row and a column for each label."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from surecut._inputs import in_brief
from surecut._matrices import is_sparse
from surecut._plurals import counted
from surecut.core.kernels import run_starts
from surecut.core.search import SourceChangedError
from surecut.sources.engine_tables import batches_of, can_stream, table_beside
from surecut.sources.engines import KIND, LABELLED, ROWS, SCORE, WEIGHT, EngineRows, RowKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROW, COLUMN, STATE = "surecut_row", "surecut_column", "surecut_state"


@dataclass(frozen=True, eq=False)
class LongMatrices:
    """A long table as matrices; rows and columns are in the order of their keys, whatever that of the lines is.

    Attributes
    ----------
    truth, scores
        Shape (rows, labels): 0 and 1, and the scores. Arrays where each row has a score for each label; otherwise
        sparse, and a pair without a line, or without a score, has none.
    labels
        The keys of the columns; tuples where several columns of the table name a label.
    weight
        Of each row, if there are any.
    """

    truth: Any
    scores: Any
    labels: tuple[Any, ...]
    weight: NDArray[np.float64] | None

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.scores.shape[0])

    def shuffled(self) -> LongMatrices:
        """The same rows in an order that says nothing of them, always the same."""
        order = np.random.default_rng(0).permutation(len(self))
        weight = None if self.weight is None else self.weight[order]
        return LongMatrices(self.truth[order], self.scores[order], self.labels, weight)

    @property
    def rows_without_a_score(self) -> int:
        """How many rows lack the score of some label."""
        return int((np.diff(self.scores.indptr) < len(self.labels)).sum()) if is_sparse(self.scores) else 0

    @property
    def pairs_without_a_score(self) -> int:
        """How many pairs of a row and a label have no line with a score."""
        return len(self) * len(self.labels) - self.scores.nnz if is_sparse(self.scores) else 0

    @property
    def labels_of_rows(self) -> NDArray[np.int64]:
        """How many true labels each row has."""
        return np.asarray(self.truth.sum(axis=1, dtype=np.int64)).reshape(-1)


def long_matrices(engine: EngineRows, row_columns: int) -> LongMatrices:
    """The matrices of a long table: its rows and labels are asked for, then the lines with the numbers of both.

    `engine` groups by the columns that name a row, so many of them, and then by those that name a label. Lines that
    lack a label, a score or a weight are an error, or leave out all lines of their row; those that lack a key leave out
    themselves.
    """
    answer = engine.counted(engine.classified, with_labels=True)
    engine.check(answer)
    keyed = answer.filter(nw.col(KIND) < int(RowKind.MISSING_KEY))
    lines = engine.classified.filter(nw.col(KIND) < int(RowKind.MISSING_KEY))
    row_keys, label_keys = engine.keys[:row_columns], engine.keys[row_columns:]
    rows = lines.select(*row_keys).unique().collect().sort(*row_keys)
    columns = lines.select(*label_keys).unique().collect()
    labels = _names(columns, label_keys)
    order = _sorted(labels)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    numbers = nw.new_series(COLUMN, number, backend=columns.implementation)
    with ExitStack() as stack:
        beside_rows = stack.enter_context(table_beside(engine.frame, rows.with_row_index(ROW)))
        beside_labels = stack.enter_context(table_beside(engine.frame, columns.with_columns(numbers)))
        joined = lines.join(beside_rows, on=row_keys, how="inner").join(beside_labels, on=label_keys, how="inner")
        found = _collected(engine, joined)
    if len(found.row) != keyed[ROWS].to_numpy().sum():
        raise SourceChangedError
    found = found.taken(np.argsort(found.row * len(labels) + found.column, kind="stable"))
    names = [labels[one] for one in order]

    def named(line: int) -> str:
        """The row of a line, for a message."""
        return in_brief(repr(_names(rows[int(found.row[line]) : int(found.row[line]) + 1], row_keys)[0]))

    _require_each_once(found, names, named)
    _require_one_weight(found, named, engine.columns)
    return _matrices(found.without_broken_rows(len(rows)), tuple(names), engine.dtype)


class _Lines(NamedTuple):
    """Lines: numbers of their row and label, what they are, whether they have a score, the score and the weight."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    kind: NDArray[np.int8]
    has_score: NDArray[np.bool_]
    score: NDArray[np.float64]
    weight: NDArray[np.float64] | None

    def taken(self, chosen: Any) -> _Lines:
        """Some of the lines, or all in another order."""
        weight = None if self.weight is None else self.weight[chosen]
        row, column, kind, has_score, score = (values[chosen] for values in self[:-1])
        return _Lines(row, column, kind, has_score, score, weight)

    def without_broken_rows(self, rows: int) -> _Lines:
        """The lines of rows of which no line lacks a value; these are numbered again."""
        is_broken = np.zeros(rows, dtype=bool)
        is_broken[self.row[self.kind > LABELLED]] = True
        if not is_broken.any():
            return self
        if is_broken.all():
            raise ValueError(f"each of {counted(rows, 'row')} has a line without a value: nothing is left to tune on")
        number = np.cumsum(~is_broken) - 1
        kept = self.taken(~is_broken[self.row])
        return kept._replace(row=number[kept.row])


def _collected(engine: EngineRows, joined: nw.LazyFrame[Any]) -> _Lines:
    """The lines in memory, from batches where there are some."""
    state = nw.col(KIND) * 2 + nw.when(engine.lacks_score).then(nw.lit(0)).otherwise(nw.lit(1))
    score = nw.when(engine.lacks_score).then(nw.lit(0.0)).otherwise(nw.col(SCORE))
    weight = nw.when(nw.col(KIND) == int(RowKind.MISSING_WEIGHT)).then(nw.lit(0.0)).otherwise(nw.col(WEIGHT))
    selected = joined.select(
        nw.col(ROW).cast(nw.Int64),
        nw.col(COLUMN).cast(nw.Int64),
        state.cast(nw.Int64).alias(STATE),
        score.alias(SCORE),
        *([weight.alias(WEIGHT)] if engine.weighted else []),
    )
    batches = batches_of(selected) if can_stream(engine.frame) else [selected.collect()]
    parts = []
    for batch in batches:
        row, column, states, *numbers = (batch[name].to_numpy() for name in batch.columns)
        parts.append((row, column, states.astype(np.int8), *numbers))
    if not parts:
        raise SourceChangedError
    row, column, states, scores, *weights = (np.concatenate(values) for values in zip(*parts, strict=True))
    return _Lines(row, column, states >> 1, states % 2 == 1, scores, weights[0] if weights else None)


def _matrices(lines: _Lines, labels: tuple[Any, ...], dtype: np.dtype[Any]) -> LongMatrices:
    """The matrices of lines in order of their rows and, in each, of their labels."""
    firsts = run_starts(lines.row)
    shape = len(firsts), len(labels)
    weight = None if lines.weight is None else lines.weight[firsts]
    is_positive = np.isin(lines.kind, (int(RowKind.POSITIVE), int(RowKind.POSITIVE_WITHOUT_WEIGHT)))
    scores = lines.score.astype(dtype, copy=False)
    if lines.has_score.all() and len(scores) == shape[0] * shape[1]:
        return LongMatrices(is_positive.view(np.uint8).reshape(shape), scores.reshape(shape), labels, weight)
    from scipy import sparse

    def stored(values: NDArray[Any], chosen: NDArray[np.bool_]) -> Any:
        ends = np.searchsorted(lines.row[chosen], np.arange(shape[0] + 1))
        return sparse.csr_array((values[chosen], lines.column[chosen], ends), shape=shape)

    return LongMatrices(
        stored(np.ones(len(scores), dtype=np.uint8), is_positive), stored(scores, lines.has_score), labels, weight
    )


def _require_each_once(lines: _Lines, labels: Sequence[Any], named: Any) -> None:
    """Raise where a row has two lines for one label."""
    is_again = (np.diff(lines.row) == 0) & (np.diff(lines.column) == 0)
    if not is_again.any():
        return
    first = int(is_again.argmax())
    label = in_brief(repr(labels[int(lines.column[first])]))
    number = int(is_again.sum())
    repeated = "1 line repeats" if number == 1 else f"{counted(number, 'line')} repeat"
    raise ValueError(
        f"{repeated} the row and label of another line, {'' if number == 1 else 'the first '}of row {named(first)} and "
        f"label {label}: keep one line of each, or name in row= all columns that make a row"
    )


def _require_one_weight(lines: _Lines, named: Any, columns: Any) -> None:
    """Raise where the lines of a row have different weights."""
    if lines.weight is None:
        return
    known = lines.taken(lines.kind <= LABELLED)
    assert known.weight is not None
    is_other = (np.diff(known.row) == 0) & (np.diff(known.weight) != 0)
    if is_other.any():
        line = int(np.flatnonzero(lines.kind <= LABELLED)[int(is_other.argmax())])
        number = int(is_other.argmax())
        raise ValueError(
            f"{columns.weight} must be the same in all lines of a row, and is {known.weight[number]:g} and "
            f"{known.weight[number + 1]:g} for row {named(line)}: weights are those of rows, not of labels"
        )


def _names(table: nw.DataFrame[Any], keys: Sequence[str]) -> list[Any]:
    """What the keys of each row of a table are called; tuples of several."""
    columns = [table[key].to_list() for key in keys]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _sorted(names: Sequence[Any]) -> list[int]:
    """The places of names in their order, which is not that of an engine; of what has none, in that of its text."""
    try:
        return sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        return sorted(range(len(names)), key=lambda place: str(names[place]))
