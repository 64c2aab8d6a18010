"""One bet on the values of many labels: it is fair at the truth, and its least wealth is bounded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special, stats

from surecut import Confusion
from surecut.certificates import averages
from surecut.certificates.averages import label_limits, mean_limits
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.clusters import terms_of
from surecut.certificates.joint_bets import (
    Ratios,
    Reference,
    _bets,
    _least_logarithm,
    _moved,
    _of_pairs,
    least_sum,
)
from surecut.certificates.limits import value_limits
from surecut.metrics import get_metric

ERROR = 0.1
RATES = np.array([0.1, 0.3, 0.6])
VALUES = np.array([0.3, 0.7, 0.5])


def draw_ratios(rng, steps, copies=1):
    """F1 of labels that go together, as to which rows count and as to which are right: A = 2 tp, B = 2 tp + fp + fn."""
    rate, value = np.tile(RATES, copies), np.tile(VALUES, copies)

    def chance():
        own = rng.random((steps, len(rate)))
        return np.where(rng.random((steps, len(rate))) < 0.5, rng.random((steps, 1)), own)

    counted = chance() < rate
    right = counted & (chance() < value / (2 - value))
    one = np.ones(len(rate))
    return Ratios(2.0 * right, 1.0 * counted + right, one / len(rate), one, 2 * one), value


def reference_of(rng, steps, copies=1):
    other, _ = draw_ratios(rng, steps, copies)
    return Reference(other.above.sum(axis=0), other.below.sum(axis=0), np.full(3 * copies, float(steps)))


def logarithm(bets, values):
    return np.log1p(bets.stake * (bets.gain - bets.loss @ values)).sum()


def test_the_wealth_at_the_truth_is_fair():
    """Over all samples of four rows that two labels can have, however they depend on each other."""
    rng, kinds = np.random.default_rng(0), np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 2.0]])  # A and B of a row
    every = np.array(list(itertools.product(range(9), repeat=4)))
    for _ in range(2):
        mass = rng.dirichlet(np.full(9, 0.4))
        outcomes = kinds[np.column_stack(np.divmod(np.arange(9), 3))]
        value = np.divide(*np.tensordot(mass, outcomes, 1).T)
        reference, expected = Reference(np.array([3.0, 1.0]), np.array([5.0, 2.0]), np.full(2, 9.0)), 0.0
        for sample in every:
            drawn = outcomes[sample]
            ratios = Ratios(drawn[..., 0], drawn[..., 1], np.full(2, 0.5), np.ones(2), np.full(2, 2.0))
            bets = _bets(ratios, reference, 1.0, ERROR)
            expected += mass[sample].prod() * np.prod(1 + bets.stake * (bets.gain - bets.loss @ value))
        assert expected == pytest.approx(1, abs=1e-9)


def test_the_wealth_is_seldom_as_large_as_it_must_be_to_reject():
    rng, draws = np.random.default_rng(0), 1_000
    reference, rejected = reference_of(rng, 40), 0
    for _ in range(draws):
        ratios, value = draw_ratios(rng, 60)
        rejected += logarithm(_bets(ratios, reference, 3.0, ERROR), value) >= -np.log(ERROR)
    assert 0 < rejected <= stats.binom.ppf(0.999, draws, ERROR)


def test_no_row_loses_more_than_all_at_the_values_foretold():
    rng = np.random.default_rng(1)
    for steps in (30, 300):
        ratios, _ = draw_ratios(rng, steps)
        bets = _bets(ratios, reference_of(rng, 100), 3.0, ERROR)
        assert (bets.gain - bets.loss @ np.ones(3) >= -bets.worst.sum(axis=1) - 1e-12).all()
        assert (bets.stake * (bets.worst @ VALUES) < 1).mean() > 0.95


def test_budgets_are_spent_and_never_overdrawn():
    rng = np.random.default_rng(2)
    ratios, _ = draw_ratios(rng, 2_000)
    spent = _bets(ratios, reference_of(rng, 100), 3.0, ERROR).loss.sum(axis=0) / ratios.weight
    assert ((spent > 0.97) & (spent <= 1)).all()


@pytest.mark.parametrize("copies", [1, 4])
def test_the_least_wealth_is_not_below_its_bound(copies):
    """At vectors within the limits whose sum is that of the centre, or smaller; without curvature the bound fails."""
    rng = np.random.default_rng(3)
    beaten = 0
    for _ in range(5):
        ratios, value = draw_ratios(rng, 150, copies)
        bets, weight = _bets(ratios, reference_of(rng, 80, copies), 3.0, ERROR), ratios.weight
        low, high = value - 0.2, value + 0.25
        centre = _moved(value, float(weight @ value) - 0.02, weight, low, high)
        left, here = (1 + bets.stake * (bets.gain - bets.loss @ at) for at in (high, value))
        curvature = bets.stake**2 / (left * here)
        bound, flat = (
            _least_logarithm(bets, centre, (low - centre, high - centre), weight, by, _of_pairs(bets.loss, by, weight))
            for by in (curvature, 0 * curvature)
        )
        for _ in range(300):
            vertex = np.where(rng.random(len(value)) < 0.5, low, high)
            tried = _moved(vertex, float(weight @ centre), weight, low, high)
            assert logarithm(bets, tried) >= bound - 1e-9 or weight @ tried > weight @ centre + 1e-9
            beaten += bool(logarithm(bets, tried) < flat and weight @ tried <= weight @ centre + 1e-9)
    assert beaten


def test_the_limit_is_not_below_the_sum_of_the_own_limits_and_holds():
    rng, draws, failures = np.random.default_rng(4), 150, 0
    reference = reference_of(rng, 100, 4)
    for _ in range(draws):
        ratios, value = draw_ratios(rng, 200, 4)
        right, counted = ratios.above.sum(axis=0) / 2, (ratios.below - ratios.above / 2).sum(axis=0)
        each = ERROR / 10 / 24
        shares = (special.betaincinv(np.maximum(right, 1e-9), counted - right + 1, each) * (right > 0),)
        shares += (special.betaincinv(right + 1, np.maximum(counted - right, 1e-9), 1 - each),)
        low, high = (2 * share / (1 + share) for share in shares)
        limit = least_sum(ratios, reference, (low, high), 3.5, 0.9 * ERROR)
        assert limit >= ratios.weight @ low
        failures += limit > ratios.weight @ value
    assert failures <= stats.binom.ppf(0.999, draws, ERROR)


# --- Means of labels --------------------------------------------------------------------------------------------------


def draw(rng, rows, labels=60, shift=-2.5):
    score = special.expit(2 * rng.standard_normal((rows, labels)) + shift)
    return ClusterCells.of_matrices(rng.random((rows, labels)) < score, score >= 0.35)


@pytest.mark.parametrize("name", ["f1", "f2", "recall"])
def test_one_label_has_the_limits_of_one_label(name):
    metric, rng = get_metric(name), np.random.default_rng(5)
    drawn, before = draw(rng, 300, 1), draw(rng, 150, 1).confusion()
    found = mean_limits(terms_of(metric), drawn, before, ERROR)
    assert found == pytest.approx(value_limits(metric, cells_of(drawn.confusion())[0], ERROR)[:2])


@pytest.mark.parametrize("name", ["f1", "am"])
def test_many_labels_of_few_rows_have_less_than_half_the_gap_of_their_own_limits(name):
    metric, rng = get_metric(name), np.random.default_rng(6)
    terms, gaps = terms_of(metric), np.zeros(2)
    for _ in range(5):
        drawn, before = draw(rng, 330), draw(rng, 170).confusion()
        totals = cells_of(drawn.confusion())
        each = ERROR / 60 / len(terms)
        alone = sum(factor * label_limits(n, d, totals, each)[0].mean() for factor, n, d in terms)
        value = float(np.mean(metric.evaluate(drawn.confusion())))
        gaps += value - mean_limits(terms, drawn, before, ERROR)[0], value - alone
    assert gaps[0] < 0.5 * gaps[1]


def test_rows_in_blocks_are_as_good(monkeypatch):
    metric, rng = get_metric("f1"), np.random.default_rng(7)
    drawn, before = draw(rng, 4_000, 10), draw(rng, 2_000, 10).confusion()
    whole = mean_limits(terms_of(metric), drawn, before, ERROR)
    monkeypatch.setattr(averages, "MOST_CELLS", 20_000)
    assert mean_limits(terms_of(metric), drawn, before, ERROR) == pytest.approx(whole, abs=0.01)


def test_labels_that_no_row_counts_are_at_their_worst():
    metric, rng = get_metric("f1"), np.random.default_rng(8)
    drawn, before = draw(rng, 1_000, 20), draw(rng, 500, 20).confusion()
    lower, upper = mean_limits(terms_of(metric), drawn, before, ERROR)
    keep = np.arange(20) >= 5
    parts = (part @ np.diag(keep * 1.0) for part in (drawn.tp.toarray(), drawn.fp.toarray(), drawn.fn.toarray()))
    emptied = ClusterCells(*(type(drawn.tp)(part) for part in parts), drawn.rows)
    found = mean_limits(terms_of(metric), emptied, before, ERROR)
    kept = mean_limits(
        terms_of(metric),
        ClusterCells(*(part[:, keep] for part in (drawn.tp, drawn.fp, drawn.fn)), drawn.rows),
        Confusion(*cells_of(before)[keep].T),
        ERROR,
    )
    assert 0.75 * kept[0] - 0.05 < found[0] <= 0.75 * kept[0] + 1e-9 < lower
    assert found[1] >= 0.25 + 0.75 * kept[1] - 1e-9 > upper
