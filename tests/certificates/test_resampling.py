"""Rows that are drawn again: by number or one by one, the same whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import certify, tune_threshold
from surecut.certificates import resampling
from surecut.core.settings import using

ROWS = np.array([[3, 0, 900, 40, 1], [7, 12, 0, 30, 7]])


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    score = rng.beta(1, 3, 3000)
    return rng.random(3000) < score, score


@pytest.mark.parametrize("draw", [resampling._each_drawn, resampling._numbers_drawn])
@pytest.mark.parametrize("times", [1, 45, 65])  # of the 2**16 numbers most, about half, or nearly all stand for rows
def test_drawn_numbers_of_rows_have_the_mean_and_the_variance_of_a_multinomial(draw, times):
    rows = ROWS * times
    total = rows.sum()
    drawn = draw(rows)(np.random.default_rng(1), 4000)
    assert drawn.shape == (4000, *rows.shape)
    assert (drawn.sum(axis=(1, 2)) == total).all()
    variance = rows * (1 - rows / total)
    assert np.abs(drawn.mean(axis=0) - rows).max() < 5 * np.sqrt(variance.max() / 4000)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.15)
    expected = -rows[0, 2] * rows[0, 3] / total  # the covariance of two cells
    both = np.cov(drawn[:, 0, 2], drawn[:, 0, 3])
    assert abs(both[0, 1] - expected) < 5 * np.sqrt(both[0, 0] * both[1, 1] / 4000)


def test_rows_that_are_drawn_one_by_one_give_the_limits_of_their_numbers(sample, monkeypatch):
    cut = tune_threshold(*sample)
    each = certify(cut, *sample, method="bootstrap", held_out=False)
    monkeypatch.setattr(resampling, "FEW_ROWS", 0)
    numbers = certify(cut, *sample, method="bootstrap", held_out=False)
    assert each != numbers
    assert abs(each.lower - numbers.lower) < 0.01
    assert abs(each.upper - numbers.upper) < 0.01
    np.testing.assert_allclose(each.threshold_spread, numbers.threshold_spread, atol=0.02)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_nothing(sample, grouped, weighted):
    rng = np.random.default_rng(2)
    weights = rng.random(3000) if weighted else None
    cut = tune_threshold(*sample, sample_weight=weights)
    found = []
    for cores in (1, 3):
        with using(cores=cores):
            found.append(
                certify(
                    cut,
                    *sample,
                    method="bootstrap",
                    held_out=False,
                    resamples=200,
                    groups=np.arange(3000) % 100 if grouped else None,
                    sample_weight=weights,
                    weights="importance" if weighted else None,
                )
            )
    assert found[0] == found[1]


def test_nothing_is_drawn_where_nothing_is_tuned_again(sample, monkeypatch):
    cut = tune_threshold(*sample)
    rng = np.random.default_rng(3)
    score = rng.beta(1, 3, 3000)
    monkeypatch.setattr(resampling, "_bin_starts", None)
    assert certify(cut, rng.random(3000) < score, score, method="bootstrap").threshold_spread is None
