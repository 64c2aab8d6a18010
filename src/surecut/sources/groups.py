"""Rows of groups that fit in memory: put in order of their groups as they come, then tuned like labels of a matrix."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._labels import Labels
from surecut.core.kernels import available
from surecut.core.search import SourceChangedError
from surecut.overlap import RowSample, positions, sampled_labels
from surecut.sources.arrays import ArraySource
from surecut.sources.matrices import NEGATIVE, POSITIVE, LabelRuns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.search import Source


class GroupSource(LabelRuns):
    """The rows of groups, group after group, each group's negatives before its positives.

    Parameters
    ----------
    counts
        Shape (groups, 2), negatives first: the number of rows that will come.
    totals
        The same of their weights.
    dtype
        The scores' own dtype.
    weighted
        Whether rows have weights.
    """

    def __init__(self, counts: NDArray[np.int64], totals: NDArray[Any], dtype: np.dtype[Any], weighted: bool) -> None:
        self._starts_by_class = np.concatenate(([0], np.cumsum(counts.ravel())))
        size = int(self._starts_by_class[-1])
        is_positive = np.repeat(np.tile([False, True], len(counts)), counts.ravel())
        weights = np.empty(size) if weighted else None
        absent = np.zeros((len(counts), 2), dtype=totals.dtype)
        super().__init__(self._starts_by_class[::2], np.empty(size, dtype=dtype), is_positive, weights, absent)
        self._totals = totals
        self._next = self._starts_by_class[:-1].copy()
        self._lock = threading.Lock()
        self._placing = available(0, self.settings)  # these rows are counted when they are tuned

    @staticmethod
    def bytes_per_row(dtype: np.dtype[Any], weighted: bool) -> int:
        """What a row needs in memory: its score, its class, its weight."""
        return dtype.itemsize + 1 + (8 if weighted else 0)

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._totals)

    # --- Rows that come in batches -----------------------------------------------------------------------------------

    def add(self, place: NDArray[Any], scores: NDArray[Any], weights: NDArray[np.float64] | None) -> None:
        """Put a batch of rows where they belong: `place` is twice the number of their group, and 1 more if positive.

        Threads may add batches at the same time.
        """
        with self._lock:
            position = self._placing.positions(place, self._next, self._starts_by_class[1:])
        if position is None:
            raise SourceChangedError
        self.scores[position] = scores
        if self.entry_weights is not None and weights is not None:
            self.entry_weights[position] = weights

    def require_complete(self) -> None:
        """Raise unless all rows came."""
        if not np.array_equal(self._next, self._starts_by_class[1:]):
            raise SourceChangedError

    # --- As labels ---------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    @property
    def totals(self) -> NDArray[Any]:
        return self._totals

    @property
    def worth_binning(self) -> bool:
        return self.size >= max(self.settings.binned_size, self.settings.binned_rows * len(self))

    def pooled(self) -> Source:
        labels = Labels(self.is_positive.view(np.uint8), POSITIVE, NEGATIVE)
        return ArraySource(self.scores, labels, self.entry_weights)

    def seen(self, totals: NDArray[Any]) -> tuple[RowSample, ...]:
        """Some rows of some groups, the same in whatever order the rows came."""
        chosen, size = sampled_labels(*self._totals.T)
        parts = {}
        for group in chosen.tolist():
            own = self._run(slice(group, group + 1))[1]
            sample = RowSample.of_stream(self.scores[own], self.is_positive[own])
            some = positions(len(sample), size)
            parts[group] = sample.taken(some)
        return (RowSample.of_labels(parts),)
