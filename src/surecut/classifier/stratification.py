"""Splits of multilabel rows that keep rare labels on every side where they can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def stratified_parts(Y: Any, shares: list[float], random_state: Any = 0) -> NDArray[np.int64]:
    """The part of each row, parts having given shares of all rows and, as nearly as can be, of each label's.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas, 2011): the rarest label first, each of its rows goes
    where that label is wanted most, then where rows are wanted most.

    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [0, 1]])
    >>> parts = stratified_parts(Y, [0.5, 0.5], random_state=0)
    >>> [Y[parts == part].sum(axis=0).tolist() for part in (0, 1)]
    [[1, 2], [1, 2]]
    """
    random = check_random_state(random_state)
    by_row = sparse.csr_array(Y)
    rows = by_row.shape[0]
    order = random.permutation(rows)
    by_label = sparse.csc_array(by_row[order])
    counts = np.diff(by_label.indptr)
    wanted_rows = rows * np.asarray(shares)
    wanted = counts[:, None] * np.asarray(shares)
    part = np.full(rows, -1, dtype=np.int64)
    for label in np.argsort(counts, kind="stable"):
        for shuffled in by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]:
            row = order[shuffled]
            if part[row] < 0:
                best = np.flatnonzero(wanted[label] >= wanted[label].max() - 1e-9)
                part[row] = best[wanted_rows[best].argmax()]
                wanted[by_row.indices[by_row.indptr[row] : by_row.indptr[row + 1]], part[row]] -= 1
                wanted_rows[part[row]] -= 1
    for row in order[part[order] < 0]:  # rows without labels
        part[row] = wanted_rows.argmax()
        wanted_rows[part[row]] -= 1
    return part


@dataclass(frozen=True)
class MultilabelSplit:
    """A splitter in scikit-learn's manner: folds, or one share that is held out."""

    shares: tuple[float, ...]
    folds: bool
    random_state: Any = 0

    @classmethod
    def into_folds(cls, folds: int, random_state: Any = 0) -> MultilabelSplit:
        return cls((1 / folds,) * folds, True, random_state)

    @classmethod
    def holding_out(cls, share: float, random_state: Any = 0) -> MultilabelSplit:
        return cls((share, 1 - share), False, random_state)

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        part = stratified_parts(y, list(self.shares), self.random_state)
        for held_out in range(len(self.shares) if self.folds else 1):
            if not (part == held_out).any() or (part == held_out).all():
                raise ValueError(f"{len(part)} rows are too few for the split that cv asks for")
            yield np.flatnonzero(part != held_out), np.flatnonzero(part == held_out)
