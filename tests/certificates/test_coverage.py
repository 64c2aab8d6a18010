"""Certificates keep what they promise: small simulations in which the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surecut import ScoreTally, certify
from surecut.certificates.limits import value_limits
from surecut.certificates.uniform import uniform_limits
from surecut.metrics import Utility, get_metric

ERROR = 0.1
SCORES = 41


@pytest.fixture(scope="module")
def population():
    """Mass of negatives and positives at each of a few scores, highest first: labels that the scores announce."""
    score = np.linspace(1.0, 0.0, SCORES)
    mass = stats.beta.pdf(np.clip(score, 0.01, 0.99), 1.2, 3)
    mass /= mass.sum()
    return score, np.column_stack((mass * (1 - score), mass * score))


def draw(rng, population, rows):
    """A tally of so many rows."""
    score, mass = population
    cells = rng.multinomial(rows, mass.ravel()).reshape(mass.shape)
    y = np.repeat(np.tile([0, 1], len(score)), cells.ravel())
    return ScoreTally.from_scores(y, np.repeat(np.repeat(score, 2), cells.ravel()))


def truth(metric, population, threshold):
    score, mass = population
    accepted = score >= threshold
    return float(metric.value(fp=mass[accepted, 0].sum(), fn=mass[~accepted, 1].sum(), prior=mass[:, 1].sum()))


def most_failures(repetitions, error=ERROR):
    """More than this are seen once in a thousand runs if the error is kept."""
    return stats.binom.ppf(0.999, repetitions, error)


def metric_of(name):
    return Utility(fp=-1, fn=-5) if name == "cost" else get_metric(name)


def cells_at(tally, threshold):
    at = tally.confusion[int(np.searchsorted(-tally.scores, -threshold, side="right"))]
    return np.array([at.tp, at.fp, at.fn, at.tn], dtype=float)


@pytest.mark.parametrize("name", ["f1", "f2", "jaccard", "am", "kappa", "cost", "precision"])
def test_holdout_keeps_its_promise_and_is_not_idle(name, population):
    """Notices a limit that fails two times in five. Finer differences: enumeration and `make test-guarantees`."""
    metric, threshold = metric_of(name), 0.31
    rng, repetitions = np.random.default_rng(1), 120 if name in ("f1", "jaccard", "precision") else 50
    actual = truth(metric, population, threshold)
    limits = [value_limits(metric, cells_at(draw(rng, population, 150), threshold), ERROR) for _ in range(repetitions)]
    lower, upper, _ = np.array(limits).T
    assert (lower > actual).sum() <= most_failures(repetitions)
    assert (upper < actual).sum() <= most_failures(repetitions)
    assert (lower > actual).sum() + (upper < actual).sum() > 0  # never wrong at 90 % would promise too little


@pytest.mark.parametrize("name", ["f1", "am", "cost"])
def test_uniform_keeps_its_promise_on_the_tuning_rows(name, population):
    """Notices a limit that fails two times in five. Finer differences: `make test-guarantees`."""
    rng, metric, repetitions = np.random.default_rng(2), metric_of(name), 50
    score, _ = population
    best = max(truth(metric, population, threshold) for threshold in score)
    below = above = regrets = 0
    for _ in range(repetitions):
        tally = draw(rng, population, 200)
        cut = tally.best_cut(metric)
        actual = truth(metric, population, cut.threshold)
        lower, upper, regret = uniform_limits(metric, tally, cut.threshold, ERROR)
        below, above, regrets = below + (lower > actual), above + (upper < actual), regrets + (best - actual > regret)
    assert max(below, above, regrets) <= most_failures(repetitions)


def test_on_the_tuning_rows_holdout_would_promise_too_much(population):
    rng, metric, repetitions = np.random.default_rng(3), get_metric("f1"), 600
    failures = 0
    for _ in range(repetitions):
        tally = draw(rng, population, 60)
        cut = tally.best_cut(metric)
        lower, _, _ = value_limits(metric, cells_at(tally, cut.threshold), ERROR)
        failures += lower > truth(metric, population, cut.threshold)
    assert failures > most_failures(repetitions)
    with pytest.raises(ValueError, match="validation rows"):
        certify(cut, tally=tally)


@pytest.mark.parametrize("name", ["f1", "f2", "am", "kappa", "cost"])
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6])
def test_the_regret_of_any_cut_of_a_large_sample_is_bounded_closely(name, threshold, population):
    metric, score = metric_of(name), population[0]
    best = max(truth(metric, population, one) for one in score)
    tally = draw(np.random.default_rng(4), population, 200_000)
    actual = best - truth(metric, population, threshold)
    _, _, regret = uniform_limits(metric, tally, threshold, ERROR)
    scale = abs(best) + abs(truth(metric, population, 2.0))
    assert actual <= regret <= actual + 0.08 * scale


def test_the_regret_bound_falls_faster_than_the_bands(population):
    bounds = {}
    for rows in (4_000, 256_000):
        tally = draw(np.random.default_rng(5), population, rows)
        bounds[rows] = uniform_limits(get_metric("am"), tally, tally.best_cut("am").threshold, ERROR)[2]
    assert bounds[256_000] < bounds[4_000] / 8 * 0.75  # by 1/√n it would be an eighth


def test_an_outcome_at_the_edge_has_limits():
    for cells in ([0, 3, 4, 10], [5, 0, 0, 9], [0, 0, 6, 6], [4, 4, 0, 0.0]):
        for name in ("f2", "am", "kappa", "cost"):
            if name in ("am", "kappa") and cells[1] + cells[3] == 0:
                continue
            lower, upper, _ = value_limits(metric_of(name), np.array(cells, dtype=float), ERROR)
            assert lower < upper, (name, cells)
