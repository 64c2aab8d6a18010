"""The public edge for matrices: scores and labels of many labels, dense, sparse or in frames, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_scores
from surecut._labels import as_labels, warn_of_absence

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_AT_ONCE = 1024
"""Rows of a matrix that are looked at together where each entry is looked at once."""

Names = tuple[Any, ...]


def is_sparse(matrix: Any) -> bool:
    """Whether this is one of SciPy's sparse matrices or arrays."""
    return hasattr(matrix, "tocsc") and hasattr(matrix, "nnz")


def score_matrix(scores: Any, name: str = "Y_score") -> tuple[Any, Names | None]:
    """Scores of shape (rows, labels): an array in a dtype of its own, or a CSC array; and the columns' names, if any.

    NaN is looked for elsewhere, where all entries are read anyway.
    """
    if is_sparse(scores):
        matrix = _canonical(scores, name)
        matrix.data = as_scores(matrix.data, name) if matrix.nnz else matrix.data.astype(np.float64)
        return matrix, None
    matrix, names = _dense(scores, name)
    if matrix.dtype.kind not in "f" or matrix.dtype.itemsize > 8:
        matrix = as_scores(matrix.reshape(-1), name).reshape(matrix.shape)
    return matrix, names


def label_matrix(labels: Any, pos_label: Any = None, name: str = "Y_true") -> tuple[Any, Names | None]:
    """Labels of shape (rows, labels) as 0 and 1: an array, or a CSC array that holds the ones; and names, if any.

    With `pos_label`, a dense matrix may hold any two values.
    """
    if pos_label is not None and not is_sparse(labels):
        matrix, names = _dense(labels, name)
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
    matrix, names = _dense(labels, name)
    if matrix.dtype.kind == "O":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            raise _not_indicators(name, f"values of type {matrix.dtype}") from None
    _require_indicators(matrix, name)
    return matrix.view(np.uint8) if matrix.dtype == bool else matrix, names


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


def _canonical(matrix: Any, name: str) -> Any:
    """A CSC array without duplicates, rows ascending; the caller's own matrix is left as it is."""
    from scipy import sparse

    if matrix.ndim != 2:
        raise ValueError(f"{name} must have rows and columns, got shape {matrix.shape}")
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: it has shape {matrix.shape}")
    columns = sparse.csc_array(matrix)
    if not columns.has_canonical_format:
        columns = columns.copy()
        columns.sum_duplicates()
    return sparse.csc_array((columns.data, columns.indices, columns.indptr), shape=columns.shape)


def _dense(values: Any, name: str) -> tuple[NDArray[Any], Names | None]:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with masked values: fill them or drop these rows")
    names = tuple(values.columns) if hasattr(values, "columns") and hasattr(values, "to_numpy") else None
    try:
        matrix = np.asarray(values.to_numpy() if names is not None else values)
    except ValueError as error:
        raise ValueError(f"{name} must have one column per label, got a ragged sequence ({error})") from None
    if matrix.ndim != 2:
        hint = ": tune_threshold takes one column" if matrix.ndim == 1 else ""
        raise ValueError(f"{name} must have rows and columns, got shape {matrix.shape}{hint}")
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: it has shape {matrix.shape}")
    return matrix, names


def _require_indicators(values: NDArray[Any], name: str) -> None:
    if values.dtype == bool or values.size == 0:
        return
    if values.dtype.kind not in "iuf":
        raise _not_indicators(name, f"values of type {values.dtype}")
    for start in range(0, len(values), ROWS_AT_ONCE):
        block = values[start : start + ROWS_AT_ONCE]
        invalid = (block != 0) & (block != 1)
        if invalid.any():
            raise _not_indicators(name, str(block[invalid].flat[0]))


def _not_indicators(name: str, found: str) -> ValueError:
    return ValueError(
        f"{name} must hold 0 and 1, one column per label (as MultiLabelBinarizer makes them), found {found}"
    )
