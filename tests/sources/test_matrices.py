"""Matrices of labels: sparse scores of every type are those of the dense matrix, and NaN is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from surecut import tune_thresholds


@pytest.fixture
def tags():
    random = np.random.default_rng(2)
    scores = random.integers(1, 9, (60, 3))
    return (random.random(scores.shape) < scores / 12).astype(int), scores


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
def test_sparse_scores_of_any_type_give_the_cuts_of_dense_ones(tags, dtype, average):
    truth, scores = tags
    dense = tune_thresholds(truth, scores.astype(dtype), average=average)
    cut = tune_thresholds(truth, sparse.csr_array(scores.astype(dtype)), average=average)
    np.testing.assert_array_equal(cut.thresholds, dense.thresholds)
    assert cut.value == dense.value


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_nan_among_stored_scores_is_refused(tags, average):
    truth, scores = tags
    scores = scores.astype(float)
    scores[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in 1 of 180 stored entries"):
        tune_thresholds(truth, sparse.csr_array(scores), average=average)


def test_labels_without_positives_share_a_smoothed_threshold(tags):
    truth, scores = tags
    truth[:, 1] = 0
    dense, cut = (
        tune_thresholds(truth, matrix, shrinkage=5.0) for matrix in (scores.astype(float), sparse.csr_array(scores / 1))
    )
    np.testing.assert_array_equal(cut.thresholds, dense.thresholds)
    assert cut.shared == dense.shared


def test_whole_weights_are_rows_repeated_where_labels_are_smoothed(tags):
    truth, scores = tags[0], tags[1].astype(float)
    weights = np.arange(len(truth)) % 3
    weighted, repeated = (
        tune_thresholds(*matrices, shrinkage=2.0, sample_weight=own)
        for matrices, own in (
            ((truth, scores), weights.astype(float)),
            ((np.repeat(truth, weights, axis=0), np.repeat(scores, weights, axis=0)), None),
        )
    )
    np.testing.assert_allclose(weighted.thresholds, repeated.thresholds)
