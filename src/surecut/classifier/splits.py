"""Which rows train the model and which tune its cut."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, check_cv

from surecut.classifier.stratification import MultilabelSplit
from surecut.overlap import positions

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Splits(NamedTuple):
    """Which rows train and which tune, and whether the model is trained again on all rows.

    Where a model was fitted before, no rows train (None), and all tune (a slice).
    """

    splits: list[tuple[Any, Any]]
    refit: bool

    @property
    def held_out(self) -> Any:
        """The rows that tune, of all splits."""
        if self.splits[0][0] is None:
            return slice(None)
        return np.concatenate([tune for _, tune in self.splits])

    def trained_on(self, rows: int) -> NDArray[np.intp] | None:
        """Some of the rows that trained the model that predicts; None where it was fitted before."""
        trained = np.arange(rows) if self.refit else self.splits[0][0]
        return None if trained is None else trained[positions(len(trained))]


def splitter_of(cv: Any, y: Any, random_state: Any) -> Any:
    """The splitter behind a number of folds, a share, a splitter or an iterable of splits."""
    if isinstance(cv, bool):
        raise ValueError(f"cv must be a number, a share, a splitter, splits or 'prefit', got {cv!r}")
    if isinstance(cv, Real) and not isinstance(cv, Integral):
        if not 0 < float(cv) < 1:
            raise ValueError(f"a share of rows for tuning must fulfil 0 < cv < 1, got {cv}")
        if y.ndim == 2:
            return MultilabelSplit.holding_out(float(cv), random_state)
        return StratifiedShuffleSplit(n_splits=1, test_size=float(cv), random_state=random_state)
    if isinstance(cv, Integral):
        if cv < 2:
            raise ValueError(f"a number of folds must be at least 2, got {cv}")
        if y.ndim == 2:
            return MultilabelSplit.into_folds(int(cv), random_state)
        return StratifiedKFold(int(cv))
    return check_cv(cv, y=y, classifier=True)


def check_split(train: NDArray[Any], tune: NDArray[Any], groups: NDArray[Any] | None, certifies: bool) -> None:
    """Raise where rows tune a cut of a model that they trained or, where they certify, are not there just once."""
    if len(shared := np.intersect1d(train, tune)):
        raise ValueError(
            f"cv gives a split in which {len(shared):,} rows, such as row {shared[0]}, both train the model and tune "
            "its cut: a model's scores of its own training rows are too good; give splits whose two parts are disjoint"
        )
    if not certifies:
        return
    rows, times = np.unique(tune, return_counts=True)
    if (times > 1).any():
        raise ValueError(
            f"confidence= counts independent rows, and cv gives row {rows[times.argmax()]} {times.max()} times among "
            "those that tune: give each row once, and how often it is there by sample_weight and weights='counts'"
        )
    if groups is not None and len(shared := np.intersect1d(groups[train], groups[tune])):
        raise ValueError(
            f"confidence= needs groups that the model was not trained on, and {len(shared):,} groups have rows on both "
            "sides of the split: use a splitter that keeps groups whole, such as GroupShuffleSplit"
        )
