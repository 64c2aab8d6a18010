"""Splits of multilabel rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from surecut.classifier.stratification import MultilabelSplit, stratified_parts


@pytest.mark.parametrize("seed", range(5))
def test_rare_labels_stand_on_every_side(seed):
    random = np.random.default_rng(seed)
    Y = (random.random((500, 12)) < np.r_[np.full(8, 0.2), np.full(4, 0.0)]).astype(int)
    for label in range(8, 12):
        Y[random.choice(500, size=5, replace=False), label] = 1
    parts = stratified_parts(Y, [0.2] * 5, random_state=seed)
    counts = np.array([Y[parts == part].sum(axis=0) for part in range(5)])
    assert (counts[:, 8:] >= 1).mean() > 0.9  # where rare labels meet in a row, one of them must give way
    assert np.abs(counts[:, :8] - Y[:, :8].sum(axis=0) / 5).max() <= 4
    assert np.ptp(np.bincount(parts)) <= 12


def test_shares_and_rows_without_labels():
    Y = sparse.csr_array(np.array([[1, 0]] * 30 + [[0, 0]] * 60))
    parts = stratified_parts(Y, [1 / 3, 2 / 3], random_state=0)
    assert np.bincount(parts).tolist() == [30, 60]
    assert np.bincount(parts[:30]).tolist() == [10, 20]


def test_folds_hold_every_row_once_and_are_the_same_every_time():
    Y = np.random.default_rng(0).integers(0, 2, size=(40, 3))
    splits = list(MultilabelSplit.into_folds(4).split(None, Y))
    assert sorted(np.concatenate([tune for _, tune in splits]).tolist()) == list(range(40))
    again = list(MultilabelSplit.into_folds(4).split(None, Y))
    assert all((one[1] == other[1]).all() for one, other in zip(splits, again, strict=True))
    ((train, tune),) = MultilabelSplit.holding_out(0.25, random_state=1).split(None, Y)
    assert len(tune) == 10
    assert not set(train) & set(tune)


def test_too_few_rows_are_told():
    with pytest.raises(ValueError, match="too few"):
        list(MultilabelSplit.into_folds(3).split(None, np.array([[1, 0]])))
