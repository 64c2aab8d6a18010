"""The values a·η + b of labels, and the k largest of each row: of a dense matrix, or of the entries of a sparse one.

Of equal values the one in the lower column is the larger, as `numpy.argmax` has it. A value of −inf is never taken: a
row with fewer others has fewer labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_LABEL = -1
"""The position of a label that a row does not have."""

VALUES_AT_ONCE = 1 << 20
"""Values of a dense matrix that are looked at together."""


def affine(eta: NDArray[np.float64], a: Any, offsets: Any) -> NDArray[np.float64]:
    """a·η + b; infinite scores stay infinite, whatever a is."""
    with np.errstate(invalid="ignore", over="ignore"):
        gain = np.asarray(eta * a + offsets)
    is_infinite = np.isinf(eta)
    return np.where(is_infinite, eta, gain) if is_infinite.any() else gain


def top_positions(values: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Columns of the k largest values of each row, the largest first; `NO_LABEL` where a row has no further one.

    >>> top_positions(np.array([[1.0, 3.0, 3.0], [2.0, -np.inf, -np.inf]]), 2)
    array([[ 1,  2],
           [ 0, -1]])
    """
    rows, columns = values.shape
    found = np.full((rows, k), NO_LABEL, dtype=np.int64)
    at_once = max(1, VALUES_AT_ONCE // max(1, columns))
    for start in range(0, rows, at_once):
        block = values[start : start + at_once]
        part = found[start : start + at_once]
        if k == 1:
            part[:, 0] = block.argmax(axis=1)
        else:
            part[:, : min(k, columns)] = _several(block, min(k, columns))
        chosen = np.take_along_axis(block, np.maximum(part, 0), axis=1)
        part[chosen == -np.inf] = NO_LABEL
    return found


def _several(block: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The columns of the k largest values, where ties at the last place go to the lower columns."""
    last = -np.partition(-block, k - 1, axis=1)[:, k - 1 : k]
    taken = block > last
    tied = block == last
    taken |= tied & (np.cumsum(tied, axis=1) <= k - taken.sum(axis=1, keepdims=True))
    columns = np.nonzero(taken)[1].reshape(len(block), k)  # ascending in each row
    order = np.argsort(-np.take_along_axis(block, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def top_entries(indptr: NDArray[Any], columns: NDArray[Any], values: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Places of the entries that are among the k largest of their row, row by row, the largest first.

    The rows are those of a sparse matrix, whose columns ascend in each row.

    >>> top_entries(np.array([0, 3, 4]), np.array([0, 1, 2, 5]), np.array([1.0, 3.0, 3.0, 2.0]), 2)
    array([1, 2, 3])
    """
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((columns, -values, row))  # each row keeps its places
    rank = np.arange(len(values)) - np.asarray(indptr, dtype=np.int64)[row]
    return np.asarray(order[(rank < k) & (values[order] > -np.inf)], dtype=np.int64)
