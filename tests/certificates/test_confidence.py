"""Limits that hold for every sample size, against exact enumeration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surecut.certificates import regions
from surecut.certificates.confidence import _lines, crossing_probability, least_shares, share_limits
from surecut.certificates.limits import value_limits
from surecut.certificates.nuisance import _Search, least_value, three_part_limit
from surecut.certificates.regions import Region, Sampling, Statistic
from surecut.metrics import Utility


@pytest.mark.parametrize("total", [1, 7, 60])
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_clopper_pearson_covers_every_share(total, error):
    counts = np.arange(total + 1)
    lower, upper = share_limits(counts, total, error)
    for share in np.linspace(0.001, 0.999, 97):
        mass = stats.binom.pmf(counts, total, share)
        assert mass[lower > share].sum() <= error + 1e-12
        assert mass[upper < share].sum() <= error + 1e-12
    assert lower[0] == 0
    assert upper[-1] == 1


def test_clopper_pearson_is_not_cautious():
    lower, _ = share_limits(8, 10, 0.05)
    assert stats.binom.sf(7, 10, lower) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("rows", "intercept", "slope"), [(1, 0.2, 1.1), (20, 0.1, 1.3), (50, 0.02, 2.0), (50, 0.3, 0.9)]
)
def test_the_probability_of_crossing_a_line(rows, intercept, slope):
    uniform = np.sort(np.random.default_rng(0).random((40_000, rows)), axis=1)
    crossed = (np.arange(1, rows + 1) / rows > intercept + slope * uniform).any(axis=1)
    assert crossing_probability(rows, intercept, slope) == pytest.approx(
        crossed.mean(), abs=4 * crossed.std() / 200 + 1e-6
    )


def test_a_large_sample_sums_fewer_terms_to_the_same():
    intercept, slope = _lines(20_000, 0.05)
    for line in zip(intercept, slope, strict=True):
        coarse = crossing_probability(20_000, *line)
        j = np.arange(int(np.floor(20_000 * line[0])) + 1, 20_001)
        where = (j / 20_000 - line[0]) / line[1]
        end = sum(line)
        terms = stats.binom.pmf(j, 20_000, where) * 20_000 * (end - 1) / (20_000 * end - j)
        assert coarse == pytest.approx(terms.sum(), rel=1e-4)


@pytest.mark.parametrize("rows", [1, 10, 300])
def test_all_shares_are_covered_at_once(rows):
    uniform = np.sort(np.random.default_rng(1).random((20_000, rows)), axis=1)
    limits = least_shares(np.arange(1, rows + 1) / rows, rows, error=0.1)
    missed = (limits > uniform).any(axis=1).mean()
    assert missed <= 0.1 + 3 * np.sqrt(0.09 / 20_000)
    too_narrow = limits + 0.5 * (np.arange(1, rows + 1) / rows - limits)
    if rows > 1:
        assert (too_narrow > uniform).any(axis=1).mean() > 0.1


def test_no_rows_promise_nothing():
    assert least_shares(np.array([0.0, 0.5, 1.0]), 0, 0.05).tolist() == [0, 0, 0]


def test_a_share_is_bounded_sharply_at_every_order_of_magnitude():
    """The band is at most five standard errors wide: Dvoretzky–Kiefer–Wolfowitz needs 45 at a share of 1 in 1000."""
    shares = np.array([1e-3, 1e-2, 0.1, 0.5, 0.9, 0.99])
    width = shares - least_shares(shares, 100_000, 0.05)
    assert (width < 5 * np.sqrt(shares * (1 - shares) / 100_000)).all()


def _trinomial(rows, shares):
    """All outcomes of three kinds of rows, and their probabilities."""
    first, second = (grid.ravel() for grid in np.meshgrid(np.arange(rows + 1), np.arange(rows + 1)))
    counts = np.stack([first, second, rows - first - second], axis=1)[first + second <= rows]
    return counts, stats.multinomial.pmf(counts, rows, shares)


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.8, 0.15, 0.05), (0.2, 0.1, 0.7)])
def test_three_parts_are_covered(shares):
    """F₂ by its three kinds of rows (tp, fp, fn), over every outcome of 25 rows."""
    numerators, denominators = np.array([5.0, 0.0, 0.0]), np.array([5.0, 1.0, 4.0])
    truth = numerators @ shares / (denominators @ shares)
    counts, mass = _trinomial(25, shares)
    likely = mass > 1e-7
    lower = np.array([three_part_limit(numerators, denominators, row.astype(float), 0.1) for row in counts[likely]])
    missed = mass[likely][lower > truth].sum()
    assert missed <= 0.1
    assert missed > 0.01  # not merely because it promises nothing


def mean_of_true_rates(_):
    """Whatever the prior, the mean falls in both rates."""
    return lambda fpr, fnr: 1 - (fpr + fnr) / 2


def accuracy(prior):
    return lambda fpr, fnr: 1 - (1 - prior) * fpr - prior * fnr


def lower_limit(false_positives, false_negatives):
    """Of 30 negatives and 15 positives, either of them first: the mean is the same function of both orders."""
    counts = ((false_positives, 30.0), (false_negatives, 15.0))
    statistics = [
        Statistic(Sampling((0.0, 0.0), i, j, (rows, 0.0), (others, 0.0, 0.0)), mean_of_true_rates, 0.1)
        for (i, rows), (j, others) in (counts, counts[::-1])
    ]
    return least_value(statistics, 0.1)


@pytest.mark.parametrize(("fpr", "fnr"), [(0.1, 0.3), (0.02, 0.5), (0.4, 0.4)])
def test_two_shares_are_covered(fpr, fnr):
    truth = 1 - (fpr + fnr) / 2
    fp, fn = (grid.ravel() for grid in np.meshgrid(np.arange(31), np.arange(16)))
    mass = stats.binom.pmf(fp, 30, fpr) * stats.binom.pmf(fn, 15, fnr)
    likely = mass > 1e-5
    lower = np.array([lower_limit(float(i), float(j)) for i, j in zip(fp[likely], fn[likely], strict=True)])
    missed = mass[likely][lower > truth].sum()
    assert missed <= 0.1
    assert missed > 0.01


@pytest.mark.parametrize(
    ("sampling", "value_at"),
    [
        (Sampling((0.0, 0.0), 99.0, 0.0, (3985.0, 0.0), (15.0, 0.0, 0.0)), mean_of_true_rates),
        (Sampling((0.0, 0.0), 91.0, 13.0, (321.0, 0.0), (79.0, 0.0, 0.0)), mean_of_true_rates),
        (Sampling((150.0, 400.0), 40.0, 25.0, (400.0, -1.0), (0.0, 1.0, 0.0)), accuracy),
        (Sampling((60.0, 900.0), 50.0, 12.0, (900.0, -1.0), (0.0, 1.0, 0.0)), accuracy),
    ],
)
def test_points_never_understate_the_sum_over_all_outcomes(sampling, value_at, monkeypatch):
    statistic = Statistic(sampling, value_at, 0.05)
    search = _Search(statistic, statistic.observed(), 0.05, 0.001)
    shares = search.nuisance.at(np.random.default_rng(0).uniform(-1, 1, (40, 2)))
    second = np.linspace(0.05, 0.5, 40)
    limits = search.nuisance.priors, search.nuisance.shares
    probability = {}
    for most in (0, 10**6):
        monkeypatch.setattr(regions, "MOST_OF_ONE", most)
        monkeypatch.setattr(regions, "MOST_OF_TWO", most)
        region = Region(statistic, *limits, 0.05)
        assert region.whole == (most > 0)
        probability[most] = region.probability(*shares, second)
    assert (probability[0] >= probability[10**6] - 0.05 * regions.NEGLIGIBLE).all()


def test_limits_of_huge_counts_take_few_points():
    """Without errors only the number of positives varies: the sum over it is bounded in points, not row by row."""
    metric = Utility(tp=95, fp=-5, fn=-100)
    widths = []
    for rows in (1e5, 1e9):
        lower, upper, _ = value_limits(metric, np.array([rows, 0, 0, 7 * rows]), 0.05)
        assert lower < 95 / 8 < upper
        widths.append(upper - lower)
    assert widths[1] == pytest.approx(widths[0] / 100, rel=0.05)
