"""Rows that are drawn again: as Poisson or binomial numbers, the same whatever draws them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surecut import certify, tune_threshold
from surecut.certificates import resampling
from surecut.core import draws, kernels
from surecut.core.draws import DrawnCells, draw_counts, draw_counts_in_numpy
from surecut.core.kernels import has_numba
from surecut.core.settings import Settings, using

ROWS = np.array([[3, 0, 900, 40, 1], [7, 12, 0, 30, 7]])


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    score = rng.beta(1, 3, 3000)
    return rng.random(3000) < score, score


DRAWS = [draws._poisson_drawn, draws._binomial_drawn]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("times", [1, 45, 650])  # cells of one piece, of several, of many
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


def p_value(drawn, rows):
    """Of a chi-square test that numbers of three cells are multinomial; outcomes expected less than 5 times are one."""
    total, size = int(rows.sum()), len(drawn)
    expected, found = np.zeros((2, total + 1, total + 1))
    first, second = np.indices(expected.shape)
    possible = first + second <= total
    outcomes = np.stack((first, second, total - first - second), axis=-1)[possible]
    expected[possible] = size * stats.multinomial(total, rows / total).pmf(outcomes)
    np.add.at(found, (drawn[:, 0], drawn[:, 1]), 1)
    often = expected >= 5
    expected, found = (np.append(one[often], one[~often].sum()) for one in (expected, found))
    return stats.chisquare(found, expected).pvalue


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("rows", [(3, 2, 4), (25, 9, 6), (70, 2, 8)], ids=str)
def test_drawn_numbers_of_rows_are_multinomial(draw, rows, kind):
    if kind == "compiled" and not has_numba():
        pytest.skip("numba is not installed")
    rows = np.array(rows)
    with using(kernels=kind):
        drawn = draw(rows[:, None])(np.random.default_rng(4), 40_000)[:, :, 0]
    assert p_value(drawn, rows) > 1e-3
    assert p_value(drawn, rows + np.array([1, -1, 0])) < 1e-6


def test_resamples_that_are_often_drawn_again_are_multinomial(monkeypatch):
    monkeypatch.setattr(draws, "SHORT", 0.5)  # of three resamples two have too many rows, or too few
    rows = np.array([25, 9, 6])
    drawn = draws._poisson_drawn(rows[:, None])(np.random.default_rng(4), 40_000)[:, :, 0]
    assert (drawn.sum(axis=1) == 40).all()
    assert p_value(drawn, rows) > 1e-3


def test_tables_hold_the_poisson_distribution():
    drawn = DrawnCells.of(np.array([3, 0, 64, 65, 200]), rate=0.9)
    for rows in range(1, draws.PIECE_ROWS + 1):
        exact = stats.poisson(0.9 * rows).cdf(np.arange(draws.LEVELS - 1))
        np.testing.assert_allclose(drawn.cumulated[rows, :-1], exact, rtol=0, atol=1e-14)
    assert drawn.cell.tolist() == [0, 2, 3, 4, 3, 4, 4, 4]
    np.testing.assert_array_equal(np.bincount(drawn.cell, drawn.size), [3, 0, 64, 65, 200])


def numbers_for(drawn, rng, size):
    """Uniform numbers, some of which are the ends of tables' steps or right below."""
    uniforms = rng.random((size, drawn.pieces + 60))
    steps = drawn.cumulated[:, :40][drawn.cumulated[:, :40] < 1]
    some = rng.random(uniforms.shape) < 0.2
    chosen = rng.choice(np.concatenate(([0.0, 1 - 2**-53], steps, np.nextafter(steps, 0))), int(some.sum()))
    uniforms[some] = chosen
    return uniforms


@pytest.mark.parametrize("at_once", [1, 1 << 15])
@pytest.mark.parametrize("rate", [0.0, 0.7, 1.0])
def test_compiled_counts_are_those_of_numpy(rate, at_once, monkeypatch):
    if not has_numba():
        pytest.skip("numba is not installed")
    monkeypatch.setattr(draws, "NUMBERS_AT_ONCE", at_once)
    rng = np.random.default_rng(6)
    drawn = DrawnCells.of(np.array([0, 1, 2, 63, 64, 65, 0, 129, 40, 0]), rate)
    uniforms = numbers_for(drawn, rng, 300)
    found, expected = np.full((2, 300, 10), -1)
    missing = draw_counts(drawn, uniforms, found, Settings(kernels="compiled"))
    np.testing.assert_array_equal(missing, draw_counts_in_numpy(drawn, uniforms, expected))
    np.testing.assert_array_equal(found, expected)
    added = np.where((missing < 0) | (missing > 60), 0, missing)
    np.testing.assert_array_equal(found.sum(axis=1), 364 - missing + added)


def test_numpy_draws_until_the_kernel_is_compiled(monkeypatch):
    if not has_numba():
        pytest.skip("numba is not installed")
    module = kernels.LOADING.load().draws
    asked = []
    monkeypatch.setattr(module.DRAW_COUNTS, "is_ready", lambda kind, prepare: asked.append(prepare()))
    monkeypatch.setattr(module.DRAW_COUNTS, "_compiled", None)  # cannot be called
    drawn = DrawnCells.of(np.array([7, 130]), 0.8)
    uniforms = np.random.default_rng(7).random((5, drawn.pieces + 80))
    found, expected = np.empty((2, 5, 2), dtype=np.int64)
    assert (draw_counts(drawn, uniforms, found, Settings()) == draw_counts_in_numpy(drawn, uniforms, expected)).all()
    np.testing.assert_array_equal(found, expected)
    assert len(asked) == 1


@pytest.mark.parametrize("metric", ["f1", "accuracy", "kappa", "mcc", "am"])
@pytest.mark.parametrize("decimals", [2, 16])
def test_the_certificate_does_not_depend_on_what_computes_it(sample, metric, decimals):
    if not has_numba():
        pytest.skip("numba is not installed")
    y, score = sample[0], sample[1].round(decimals)
    cut = tune_threshold(y, score, metric=metric)
    found = []
    for kind in ("numpy", "compiled"):
        with using(kernels=kind):
            found.append(certify(cut, y, score, method="bootstrap", held_out=False, resamples=300))
    assert found[0] == found[1]


def test_poisson_numbers_give_the_limits_of_binomial_ones(sample, monkeypatch):
    cut = tune_threshold(*sample)
    poisson = certify(cut, *sample, method="bootstrap", held_out=False)
    monkeypatch.setattr(draws, "ROWS_PER_CELL", 0)
    binomial = certify(cut, *sample, method="bootstrap", held_out=False)
    assert poisson != binomial
    assert abs(poisson.lower - binomial.lower) < 0.01
    assert abs(poisson.upper - binomial.upper) < 0.01
    np.testing.assert_allclose(poisson.threshold_spread, binomial.threshold_spread, atol=0.02)


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
    monkeypatch.setattr(resampling, "bin_starts", None)
    assert certify(cut, rng.random(3000) < score, score, method="bootstrap").threshold_spread is None
