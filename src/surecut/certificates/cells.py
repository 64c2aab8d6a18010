"""Counts of independent clusters, label by label: of rows that have many labels, of groups that have many rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClusterCells:
    """How many rows of each cluster are in each cell, for each label; sparse arrays of shape (clusters, labels).

    `rows` are all of them; where every cluster has as many rows of each label, a single column does.
    """

    tp: Any
    fp: Any
    fn: Any
    rows: Any

    @classmethod
    def of_matrices(cls, truth: Any, predicted: Any, weights: NDArray[np.float64] | None = None) -> ClusterCells:
        """A cluster for each row of two matrices, dense or sparse: which labels it has, and which are predicted."""
        from scipy import sparse

        truth, predicted = (sparse.csr_array(matrix != 0).astype(np.float64) for matrix in (truth, predicted))
        size = np.ones(truth.shape[0])
        if weights is not None:
            truth, predicted, size = (sparse.diags_array(weights) @ truth, predicted, weights)
            predicted = sparse.diags_array(weights) @ predicted
        tp = predicted.minimum(truth).tocsr()
        return cls(tp, (predicted - tp).tocsr(), (truth - tp).tocsr(), size)

    @classmethod
    def of_rows(
        cls,
        is_positive: NDArray[np.bool_],
        is_predicted: NDArray[np.bool_],
        cluster: NDArray[np.intp],
        label: NDArray[np.intp] | None = None,
        labels: int = 1,
    ) -> ClusterCells:
        """Clusters of rows, each of which has one label, or all the same one."""
        from scipy import sparse

        column = np.zeros(len(cluster), dtype=np.intp) if label is None else label
        shape = (int(cluster.max()) + 1, labels)

        def counted(kept: NDArray[np.bool_]) -> Any:
            return sparse.csr_array((np.ones(int(kept.sum())), (cluster[kept], column[kept])), shape=shape)

        tp, fp, fn = (
            counted(kept)
            for kept in (is_positive & is_predicted, ~is_positive & is_predicted, is_positive & ~is_predicted)
        )
        return cls(tp, fp, fn, counted(np.ones(len(cluster), dtype=bool)))

    def __len__(self) -> int:
        """The number of clusters."""
        return int(self.tp.shape[0])

    @property
    def labels(self) -> int:
        return int(self.tp.shape[1])

    @property
    def largest(self) -> float:
        """The most rows, of all labels together, that a cluster has."""
        return float(self.rows.max() * self.labels if self.rows.ndim == 1 else self.rows.sum(axis=1).max())

    def by_group(self, groups: NDArray[np.intp]) -> ClusterCells:
        """Clusters of clusters: the rows of one group together."""
        from scipy import sparse

        shape = (int(groups.max()) + 1, len(groups))
        member = sparse.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=shape)
        return ClusterCells(member @ self.tp, member @ self.fp, member @ self.fn, member @ self.rows)

    def confusion(self, times: Any = None) -> Confusion:
        """The confusion of each label, each cluster counted once or as often as `times` says (a row of it a count)."""
        counts = np.ones((1, len(self))) if times is None else times
        tp, fp, fn, rows = (np.asarray(counts @ part) for part in (self.tp, self.fp, self.fn, self.rows))
        rows = rows[:, None] if rows.ndim == 1 else rows
        cells = (tp, fp, fn, np.maximum(rows - tp - fp - fn, 0))
        return Confusion(*(cell[0] if times is None else cell for cell in cells))

    def pooled(self) -> NDArray[np.float64]:
        """Shape (clusters, 4): tp, fp, fn, tn of all labels together."""
        tp, fp, fn = (np.asarray(part.sum(axis=1)).ravel() for part in (self.tp, self.fp, self.fn))
        rows = self.rows * self.labels if self.rows.ndim == 1 else np.asarray(self.rows.sum(axis=1)).ravel()
        return np.column_stack((tp, fp, fn, rows - tp - fp - fn))

    def of_label(self, label: int) -> NDArray[np.float64]:
        """Shape (clusters, 4): tp, fp, fn, tn of one label."""
        tp, fp, fn = (part[:, [label]].toarray().ravel() for part in (self.tp, self.fp, self.fn))
        rows = self.rows if self.rows.ndim == 1 else self.rows[:, [label]].toarray().ravel()
        return np.column_stack((tp, fp, fn, rows - tp - fp - fn))

    def worth(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each cluster is worth, if a row of a label and cell is worth weights[label, cell]."""
        of_tp, of_fp, of_fn, of_tn = weights.T
        rest = self.rows * of_tn.sum() if self.rows.ndim == 1 else self.rows @ of_tn
        return np.asarray(rest + self.tp @ (of_tp - of_tn) + self.fp @ (of_fp - of_tn) + self.fn @ (of_fn - of_tn))


def group_codes(groups: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers of the groups in the order in which they come, whatever their names.

    Rows that were shuffled meet a large group earlier than a small one. So a group stands where one of its rows does
    that is chosen beforehand, and not where its first one does; for rows group by group that is the same.
    """
    codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    chosen = np.cumsum(sizes) - sizes + np.floor(np.random.default_rng(0).random(len(sizes)) * sizes).astype(np.intp)
    position = np.argsort(codes, kind="stable")[chosen]
    return np.asarray(np.argsort(np.argsort(position))[codes])


def cells_of(confusion: Confusion) -> NDArray[np.float64]:
    """The four cells in the last axis."""
    return np.stack([np.asarray(getattr(confusion, cell), dtype=float) for cell in ("tp", "fp", "fn", "tn")], axis=-1)


def slopes_of(
    value: Callable[[NDArray[np.float64]], NDArray[np.float64]], cells: NDArray[np.float64], step: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How a value changes with each of the four cells in the last axis, by differences of one step (a column)."""
    centre = value(cells)
    return np.stack([value(cells + step * one) - centre for one in np.eye(4)], axis=-1) / step
