"""The public edge for matrices: scores and labels of many labels, dense, sparse or in frames, checked."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_scores, is_missing, missing_values, without_missing
from surecut._labels import as_labels, warn_of_absence
from surecut._missing import Missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_AT_ONCE = 1024
"""Rows of a matrix that are looked at together where each entry is looked at once."""

Names = tuple[Any, ...]


def is_sparse(matrix: Any) -> bool:
    """Whether this is one of SciPy's sparse matrices or arrays."""
    return hasattr(matrix, "tocsc") and hasattr(matrix, "nnz")


def score_matrix(
    scores: Any, name: str = "Y_score", one_column: str = "", may_be_empty: bool = False
) -> tuple[Any, Names | None]:
    """Scores of shape (rows, labels): an array in a dtype of its own, or a CSC array; and the columns' names, if any.

    NaN is looked for elsewhere, where all entries are read anyway. `one_column` is what to do with one column instead.
    """
    if is_sparse(scores):
        matrix = _canonical(scores, name, may_be_empty)
        matrix.data = as_scores(matrix.data, name) if matrix.nnz else matrix.data.astype(np.float64)
        return matrix, None
    matrix, names = _dense(scores, name, one_column, may_be_empty)
    if matrix.dtype.kind not in "f" or matrix.dtype.itemsize > 8:
        matrix = as_scores(matrix.reshape(-1), name, may_be_empty).reshape(matrix.shape)
    return matrix, names


def class_indicators(codes: NDArray[np.int64], classes: int) -> NDArray[np.uint8]:
    """Class labels, as positions among so many classes, as a matrix with a column for each class.

    >>> class_indicators(np.array([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    found = np.zeros((len(codes), classes), dtype=np.uint8)
    found[np.arange(len(codes)), codes] = 1
    return found


def label_matrix(
    labels: Any, pos_label: Any = None, name: str = "Y_true", one_column: str = ""
) -> tuple[Any, Names | None]:
    """Labels of shape (rows, labels) as 0 and 1: an array, or a CSC array that holds the ones; and names, if any.

    With `pos_label`, a dense matrix may hold any two values. `one_column` is what to do with one column instead.
    """
    if not is_sparse(labels):
        require_no_lists(labels, name)
    if pos_label is not None and not is_sparse(labels):
        matrix, names = _dense(labels, name, one_column)
        column = as_labels(matrix.reshape(-1), pos_label=pos_label, name=name)
        warn_of_absence(column.absent)
        return column.is_positive().reshape(matrix.shape).view(np.uint8), names
    if is_sparse(labels):
        if pos_label is not None and pos_label != 1:
            raise ValueError(f"a sparse {name} holds its positives, as 1: leave out pos_label, or pass an array")
        matrix = _canonical(labels, name)
        _require_indicators(matrix.data, name)
        matrix = matrix.astype(np.uint8)
        matrix.eliminate_zeros()
        return matrix, None
    matrix, names = _dense(labels, name, one_column)
    if matrix.dtype.kind == "O":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            raise _not_indicators(name, f"values of type {matrix.dtype}") from None
    _require_indicators(matrix, name)
    return matrix.view(np.uint8) if matrix.dtype == bool else matrix, names


def one_column_hint(y_true: Any, otherwise: str) -> str:
    """What to do with one column of scores: swap it with labels that look like scores, or else something else."""
    return "are Y_true and Y_score swapped?" if getattr(y_true, "ndim", 1) == 2 else otherwise


def require_no_lists(labels: Any, name: str = "Y_true") -> None:
    """Raise where labels are a list for each row, such as tags, and not a column for each label.

    >>> require_no_lists([["red"], ["red", "blue"]])
    Traceback (most recent call last):
    ValueError: Y_true holds a list of labels for each row: pass MultiLabelBinarizer().fit_transform(Y_true)
    """
    if not (hasattr(labels, "__len__") and hasattr(labels, "__iter__")) or getattr(labels, "ndim", 1) != 1:
        return
    rows = [row for row in itertools.islice(labels, ROWS_AT_ONCE) if isinstance(row, (list, tuple, set, frozenset))]
    has_texts = any(isinstance(one, str) for row in rows for one in row)
    hint = f"pass MultiLabelBinarizer().fit_transform({name})"
    if has_texts or any(isinstance(row, (set, frozenset)) for row in rows):
        raise ValueError(f"{name} holds a list of labels for each row: {hint}")
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"{name} is a ragged sequence: if it holds a list of labels for each row, {hint}")


def require_same_shape(y_true: Any, y_score: Any) -> None:
    """Raise unless labels and scores have one shape."""
    if y_true.shape != y_score.shape:
        raise ValueError(f"Y_true and Y_score must have one shape: got {y_true.shape} and {y_score.shape}")


def aligned(
    y_true: Any, truth_names: Names | None, y_score: Any, score_names: Names | None, labels: Any
) -> tuple[Any, Names]:
    """Labels in the order of the scores' columns, and the names of both."""
    require_same_shape(y_true, y_score)
    columns = y_score.shape[1]
    if truth_names is not None and score_names is not None and truth_names != score_names:
        if set(truth_names) != set(score_names) or len(set(score_names)) < columns:
            raise ValueError(
                f"Y_true and Y_score have different columns: {list(truth_names[:5])} and {list(score_names[:5])}; name "
                "them alike, or pass arrays"
            )
        position = {name: i for i, name in enumerate(truth_names)}
        y_true = y_true[:, [position[name] for name in score_names]]
    names = score_names or truth_names or tuple(range(columns))
    if labels is not None:
        names = tuple(labels)
    if len(names) != columns:
        raise ValueError(f"labels must hold one name per column: {columns} columns, {len(names)} names")
    if len(set(names)) < len(names):
        raise ValueError("labels must have different names")
    return y_true, names


def _canonical(matrix: Any, name: str, may_be_empty: bool = False) -> Any:
    """A CSC array without duplicates, rows ascending; the caller's own matrix is left as it is."""
    from scipy import sparse

    if matrix.ndim != 2:
        raise ValueError(f"{name} must have rows and columns, got shape {matrix.shape}")
    _require_entries(matrix, name, may_be_empty)
    columns = sparse.csc_array(matrix)
    if not columns.has_canonical_format:
        columns = columns.copy()
        columns.sum_duplicates()
    return sparse.csc_array((columns.data, columns.indices, columns.indptr), shape=columns.shape)


def _dense(
    values: Any, name: str, one_column: str = "", may_be_empty: bool = False
) -> tuple[NDArray[Any], Names | None]:
    if hasattr(values, "predict"):
        raise TypeError(f"{name} must be a matrix, got {type(values).__name__}: pass model.predict_proba(X)")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked values: fill them or drop these rows")
    names = tuple(values.columns) if hasattr(values, "columns") and hasattr(values, "to_numpy") else None
    try:
        matrix = np.asarray(values.to_numpy() if names is not None else values)
    except ValueError as error:
        raise ValueError(f"{name} must have one column per label, got a ragged sequence ({error})") from None
    if matrix.ndim != 2:
        hint = f": {one_column}" if one_column and matrix.ndim == 1 else ""
        raise ValueError(f"{name} must have rows and columns, got shape {matrix.shape}{hint}")
    _require_entries(matrix, name, may_be_empty)
    return matrix, names


def _require_entries(matrix: Any, name: str, may_lack_rows: bool) -> None:
    rows, labels = matrix.shape
    if labels == 0 or (rows == 0 and not may_lack_rows):
        raise ValueError(f"{name} is empty: it has shape {matrix.shape}")


def _require_indicators(values: NDArray[Any], name: str) -> None:
    if values.dtype == bool or values.size == 0:
        return
    if values.dtype.kind not in "iuf":
        raise _not_indicators(name, f"values of type {values.dtype}")
    for start in range(0, len(values), ROWS_AT_ONCE):
        block = values[start : start + ROWS_AT_ONCE]
        if values.dtype.kind == "u" and block.max() <= 1:
            continue
        invalid = (block != 0) & (block != 1)
        if invalid.any():
            raise _not_indicators(name, str(block[invalid].flat[0]))


def _not_indicators(name: str, found: str) -> ValueError:
    return ValueError(
        f"{name} must hold 0 and 1, one column per label (as MultiLabelBinarizer makes them), found {found}"
    )


def present_rows(y_true: Any, y_score: Any, sample_weight: Any, *keys: Any) -> tuple[Any, ...]:
    """The rows that have all labels, all scores and a weight, of columns or of matrices; a warning counts the others.

    `keys` are columns that group the same rows, or None; a row without a key is left out as well.

    >>> present_rows([[1, 0], [0, 1]], np.array([[0.5, 0.25], [0.75, 1.0]]), None, ["a", "b"])[3]
    ['a', 'b']
    """
    given = (y_true, y_score, sample_weight)
    lacking = [None if values is None else _lacking(values) for values in given]
    without_key = _lacking_key(keys)
    gone = np.logical_or.reduce([rows for rows in (*lacking, without_key) if rows is not None])
    kept = np.flatnonzero(~gone)
    if np.ndim(y_score) == 1 and not is_sparse(y_score) and (without_key is None or not without_key.any()):
        return (*without_missing(*given), *(_taken(column, kept) for column in keys))
    counted, seen = {}, np.zeros(len(gone), dtype=bool)
    for part, rows in zip(("label", "score", "weight", "key"), (*lacking, without_key), strict=True):
        if rows is not None:
            counted[part], seen = int((rows & ~seen).sum()), seen | rows
    Missing(**counted).settle("drop", len(gone))
    return tuple(_taken(values, kept) for values in (*given, *keys))


def require_keys(*keys: Any) -> None:
    """Raise where rows lack a key, in columns that group them, or None."""
    if (lacking := _lacking_key(keys)) is not None:
        Missing(key=int(lacking.sum())).settle("error", len(lacking))


def _lacking_key(keys: tuple[Any, ...]) -> NDArray[np.bool_] | None:
    """Which rows lack a key; a key of several columns is a tuple, or a row of them."""
    found = []
    for column in keys:
        if column is None:
            continue
        listed = column.tolist() if hasattr(column, "tolist") else list(column)
        parts = (one if isinstance(one, (tuple, list)) else (one,) for one in listed)
        found.append(np.array([any(map(is_missing, one)) for one in parts], dtype=bool))
    return np.logical_or.reduce(found) if found else None


def _taken(values: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of an array, a list, a sparse matrix or a frame."""
    from sklearn.utils import _safe_indexing

    if values is None:
        return None
    return _safe_indexing(values.tocsr() if is_sparse(values) else values, rows)


def _lacking(values: Any) -> NDArray[np.bool_]:
    """Which rows of a column or a matrix lack a value."""
    if is_sparse(values):
        stored = values.tocoo()
        rows = stored.coords[0][np.isnan(stored.data)] if stored.dtype.kind == "f" else np.zeros(0, dtype=np.intp)
        return np.bincount(rows, minlength=values.shape[0]) > 0
    found = np.asarray(values.to_numpy() if hasattr(values, "columns") and hasattr(values, "to_numpy") else values)
    missing = missing_values(found.reshape(-1)).reshape(found.shape)
    return missing if missing.ndim == 1 else np.asarray(missing.any(axis=1))
