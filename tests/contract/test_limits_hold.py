"""Limits fail no more often than they say: every outcome enumerated at the worst shares, and simulation elsewhere.

Each check is shown to be able to fail, on a spoiled version of what it checks.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy import special, stats

from guarantees import run as guarantees_run
from guarantees.configuration import Configuration
from guarantees.enumeration import Enumerated, outcomes
from guarantees.limits import CONFIGURATIONS, alarms
from surecut import ScoreTally, certify, tune_threshold, tune_thresholds
from surecut.certificates import nuisance
from surecut.certificates.bands import Bands, band_limits, bands
from surecut.certificates.bootstrap import _optimism
from surecut.certificates.cells import group_codes
from surecut.certificates.clusters import _is_rejected, _steps, cluster_limits, is_sorted, least_ratio
from surecut.certificates.drift import check_drift
from surecut.certificates.label_rows import LabelRows
from surecut.certificates.limits import row_worth, value_limits
from surecut.certificates.nuisance import _Search, has_one_order, three_part_limit
from surecut.certificates.priors import depends_on_prior
from surecut.certificates.regions import Region, Statistic, StatisticOfParts
from surecut.certificates.resampling import OPTIMISM
from surecut.confusion import Confusion
from surecut.metrics import (
    AM,
    MCC,
    Accuracy,
    CohenKappa,
    FBeta,
    GilbertSkill,
    GMean,
    HMean,
    LinearFractional,
    Precision,
    Recall,
    Specificity,
    Utility,
    WeightedAccuracy,
)

ERROR = 0.05
NOISE = 1e-4

# --- Hold-out limits of metrics that three kinds of rows determine ---------------------------------------------------

THREE_KINDS = {
    "f2": ((5.0, 0.0, 0.0), (5.0, 1.0, 4.0)),
    "f0.5": ((1.25, 0.0, 0.0), (1.25, 1.0, 0.25)),
    "tversky(0.3, 0.7)": ((1.0, 0.0, 0.0), (1.0, 0.3, 0.7)),
    "utility(fp=-4, fn=-3)": ((0.0, -4.0, -3.0), (1.0, 1.0, 1.0)),
    "utility(fp=-1, fn=-5)": ((0.0, -1.0, -5.0), (1.0, 1.0, 1.0)),
    "utility(fp=-1, fn=-50)": ((0.0, -1.0, -50.0), (1.0, 1.0, 1.0)),
    "utility(tp=7, tn=6)": ((7.0, 6.0, 0.0), (1.0, 1.0, 1.0)),
}


def of_three_kinds(name, rows, limit):
    numerators, denominators = map(np.array, THREE_KINDS[name])

    def limits(counts):
        lower = limit(numerators, denominators, counts, ERROR)
        return lower, -limit(-numerators, denominators, counts, ERROR)

    def value(shares):
        return shares @ numerators / (shares @ denominators)

    return Enumerated(limits, value, outcomes(rows, 3))


@pytest.mark.parametrize("name", THREE_KINDS)
def test_limits_of_three_kinds_of_rows_hold_at_the_worst_shares(name):
    found = of_three_kinds(name, 8, three_part_limit)
    for side in (0, 1):
        worst, shares = found.worst(side)
        assert worst <= ERROR * (1 + 1e-9), (side, shares)
        assert worst > ERROR / 2  # not merely because nothing is promised


@pytest.fixture
def coarse_search(monkeypatch):
    """A spoiled version: the other share is looked at in three points only."""
    monkeypatch.setattr(nuisance, "POINTS_OF_ONE", 3)
    monkeypatch.setattr(nuisance, "ROUNDS", 0)
    monkeypatch.setattr(nuisance, "MARGIN", 0.0)
    monkeypatch.setattr(nuisance._Search, "_edges", lambda _, grid, __: grid.reshape(-1, 2)[:1])


@pytest.mark.usefixtures("coarse_search")
@pytest.mark.parametrize("name", ["f2", "utility(fp=-4, fn=-3)"])
def test_a_few_points_of_the_other_share_are_caught(name):
    found = of_three_kinds(name, 10, three_part_limit)
    assert max(found.worst(side)[0] for side in (0, 1)) > ERROR + 0.005


def test_one_order_of_outcomes_for_each_kind_apart_is_caught(monkeypatch):
    """A spoiled version: each way to look at the counts has its own order, and the counts decide which is taken."""
    monkeypatch.setattr(StatisticOfParts, "ordering", Statistic.ordering)
    found = of_three_kinds("utility(fp=-1, fn=-5)", 8, three_part_limit)
    assert max(found.worst(side)[0] for side in (0, 1)) > ERROR


@pytest.mark.parametrize("rows", [50, 3_000])
def test_where_there_are_no_false_negatives_the_upper_limit_of_f2_holds(rows):
    """Two kinds of rows are left, so that every outcome can be enumerated: the share of true positives is binomial."""
    share = 0.85
    true = 5 * share / (5 * share + 1 - share)
    counts = np.arange(rows + 1)
    mass = stats.binom.pmf(counts, rows, share)
    likely = counts[(mass > 1e-4) & (counts < rows)]
    # the limit rises with the count: the first that holds decides
    low, high = 0, len(likely) - 1

    def fails(count):
        cells = np.array([count, rows - count, 0.0, 5.0])
        return value_limits(FBeta(2), cells, ERROR)[1] < true

    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fails(likely[middle]) else (low, middle)
    assert mass[counts < likely[low]].sum() <= ERROR + NOISE


@pytest.mark.parametrize(
    "counts", [(5, 30, 400), (0, 12, 80), (3, 0, 5000), (40, 40, 40), (1, 2000, 3), (700, 5, 0), (2, 3, 30_000)]
)
@pytest.mark.parametrize("name", ["f2", "utility(fp=-1, fn=-50)"])
def test_the_search_over_the_other_share_misses_no_minimum(name, counts, monkeypatch):
    """Beside a grid of 2,001 points between the limits of the other share."""
    searches, limit = [], _Search.limit

    def kept(search):
        searches.append(search)
        return limit(search)

    monkeypatch.setattr(_Search, "limit", kept)
    numerators, denominators = map(np.array, THREE_KINDS[name])
    for sign in (1, -1):
        found = three_part_limit(sign * numerators, denominators, np.array(counts, dtype=float), ERROR)
        every = searches[-1].solved(np.column_stack((np.zeros(2_001), np.linspace(-1, 1, 2_001))))[0]
        assert found <= every.min() + 0.005 * searches[-1].deviation


def test_kinds_of_rows_that_change_their_order_have_other_limits():
    """TP is worth more than TN up to a value of 8/9, and less beyond: the test of three kinds does not apply."""
    own = LinearFractional.from_cells(numerator=(1, 0, 0, 9), denominator=(1, 1, 1, 10), name="own")
    assert not has_one_order(np.array([1.0, 0.0, 9.0]), np.array([1.0, 1.0, 10.0]))
    assert has_one_order(*map(np.array, THREE_KINDS["f2"]))
    lower, upper, exact = value_limits(own, np.array([10.0, 3, 3, 10]), ERROR)
    assert lower < own.evaluate(Confusion(10, 3, 3, 10)) < upper
    assert not exact


# --- Hold-out limits of all other metrics -----------------------------------------------------------------------------

BY_CLASS = {
    "am": AM(),
    "kappa": CohenKappa(),
    "gilbert": GilbertSkill(),
    "weighted_accuracy(1, 3)": WeightedAccuracy(1, 3),
    "utility of four cells": Utility(tp=1, fp=-1, fn=-5, tn=0.1),
    "own": LinearFractional.from_cells(numerator=(1, 0, 0, 9), denominator=(1, 1, 1, 10), name="own"),
    "accuracy": Accuracy(),
    "f1": FBeta(1),
    "precision": Precision(),
    "recall": Recall(),
    "specificity": Specificity(),
}
NOT_LINEAR = {"mcc": MCC(), "gmean": GMean(), "hmean": HMean()}
ROWS = {"am": 10, "gmean": 8, "kappa": 6, "mcc": 6}


def of_four_cells(metric, rows, error=ERROR):
    def limits(cells):
        try:
            metric.check_classes(cells[0] + cells[2], cells[1] + cells[3])
        except ValueError:
            return np.nan, np.nan
        with np.errstate(invalid="ignore"):
            if np.isnan(metric.evaluate(Confusion(*cells))):
                return np.nan, np.nan
        return value_limits(metric, cells, error)[:2]

    def value(shares):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(metric.evaluate(Confusion(*shares.T)), dtype=float)

    return Enumerated(limits, value, outcomes(rows, 4))


@pytest.mark.parametrize("name", [*BY_CLASS, *NOT_LINEAR])
def test_hold_out_limits_hold_at_the_worst_shares(name):
    found = of_four_cells({**BY_CLASS, **NOT_LINEAR}[name], ROWS.get(name, 4))
    for side in (0, 1):
        worst, shares = found.worst(side, starts=1500, rounds=20)
        assert worst <= ERROR * (1 + 1e-9), (side, shares)


@lru_cache(maxsize=1)
def of_three_positives():
    """AM from 3 positives and 12 negatives, which are given: every outcome of two binomial counts."""
    cells = [(tp, fp, 3 - tp, 12 - fp) for tp in range(4) for fp in range(13)]
    limits = np.array([value_limits(AM(), np.array(one, dtype=float), ERROR)[:2] for one in cells])
    return np.array(cells, dtype=float), limits


def worst_of_three_positives(cells, limits, side):
    recall, specificity = (
        grid.ravel()[:, None] for grid in np.meshgrid(np.linspace(0, 1, 121), np.linspace(0, 1, 121))
    )
    mass = stats.binom.pmf(cells[:, 0], 3, recall) * stats.binom.pmf(cells[:, 3], 12, specificity)
    truth = (recall + specificity) / 2
    failed = limits[:, 0] > truth + 1e-9 if side == 0 else limits[:, 1] < truth - 1e-9
    return (mass * failed).sum(axis=1).max()


@pytest.mark.parametrize("side", [0, 1])
def test_balanced_accuracy_of_three_positives_holds_at_the_worst_rates(side):
    assert worst_of_three_positives(*of_three_positives(), side) <= ERROR


@pytest.mark.usefixtures("coarse_search")
def test_a_search_over_few_rates_is_caught():
    cells, limits = of_three_positives.__wrapped__()
    assert max(worst_of_three_positives(cells, limits, side) for side in (0, 1)) > ERROR + 0.005


@pytest.mark.parametrize("name", ["am", "kappa", "utility of four cells", "mcc", "gmean"])
def test_limits_at_twice_the_error_are_caught(name):
    found = of_four_cells({**BY_CLASS, **NOT_LINEAR}[name], 5, 2 * ERROR)
    assert max(found.worst(side, starts=1500, rounds=20)[0] for side in (0, 1)) > ERROR + 0.005


@pytest.mark.parametrize("metric", [HMean(), GMean()], ids=str)
def test_limits_of_a_curve_that_is_bisected_hold_for_the_outcome_itself(metric):
    """13 positives, all found, and 24 negatives, of which the outcome decides: the rest of the region is empty."""
    counts = np.arange(20, 25)  # the others have no chance
    lower = np.array([value_limits(metric, np.array([13.0, j, 0, 24 - j]), ERROR)[0] for j in counts])
    for share in np.linspace(0.95, 0.996, 25):
        truth = float(metric.value(share * 0.5, 0.0, 0.5))
        assert stats.binom.pmf(counts, 24, share)[lower > truth + 1e-9].sum() <= ERROR + NOISE


def test_limits_of_kinds_that_are_worth_nearly_the_same_hold():
    """The difference of two kinds is a ten millionth of their worth, and rounding another of the difference."""
    metric, counts = Utility(tp=1 + 1e-7, tn=1), np.arange(11)
    lower = np.array([value_limits(metric, np.array([tp, 0.0, 10 - tp, 0]), ERROR)[0] for tp in counts])
    for share in np.linspace(0.3, 0.99, 70):
        assert stats.binom.pmf(counts, 10, share)[lower > share * (1 + 1e-7)].sum() <= ERROR + NOISE


@pytest.mark.parametrize(
    ("metric", "cells"),
    [(Utility(fp=-1, fn=-1000), (3e3, 2e4, 1e3, 7.6e4)), (FBeta(100.0), (9e4, 3e5, 1e4, 2.6e6))],
    ids=str,
)
def test_long_curves_are_searched_in_a_few_steps(metric, cells, monkeypatch):
    """And the limits are near those of the normal distribution, as they must be for so many rows."""
    steps, probability = [], Region.probability

    def counted(*arguments):
        steps.append(arguments)
        assert len(steps) <= 40
        return probability(*arguments)

    monkeypatch.setattr(Region, "probability", counted)
    cells = np.array(cells)
    lower, upper, _ = value_limits(metric, cells, ERROR)
    shares = cells / cells.sum()
    value = float(metric.evaluate(Confusion(*shares)))
    slopes = np.array([float(metric.evaluate(Confusion(*(shares + 1e-7 * one)))) - value for one in np.eye(4)]) / 1e-7
    width = stats.norm.isf(ERROR) * np.sqrt((shares @ slopes**2 - (shares @ slopes) ** 2) / cells.sum())
    assert 0.9 < (value - lower) / width < 1.5
    assert 0.9 < (upper - value) / width < 1.5


# --- Whether a metric depends on the prior ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "metric", [Utility(fp=-4, fn=-3), Utility(tp=7, tn=6), WeightedAccuracy(1, 2), Accuracy(), Precision(), MCC()]
)
def test_metrics_that_depend_on_the_prior(metric):
    assert depends_on_prior(metric)


@pytest.mark.parametrize(
    "metric",
    [
        AM(),
        GMean(),
        HMean(),
        Recall(),
        Specificity(),
        WeightedAccuracy(1, 0),
        LinearFractional(1, lambda p: -0.5 / (1 - p), lambda p: -0.5 / p, 1, 0, 0, name="own"),
    ],
)
def test_metrics_that_do_not(metric):
    assert not depends_on_prior(metric)


@pytest.mark.parametrize(("metric", "rates"), [(Utility(fp=-4, fn=-3), (0.0, 1.0)), (Utility(tp=7, tn=6), (0.0, 0.0))])
def test_uniform_limits_of_costs_count_the_chance_of_the_prior(metric, rates):
    """Rates of 0 and 1 leave nothing to chance but the number of positives: enumerated."""
    rows, prior = 60, 0.4
    below = above = 0.0
    truth = float(metric.value(fp=rates[0] * (1 - prior), fn=rates[1] * prior, prior=prior))
    for positives in range(1, rows):
        fp, fn = int(rates[0] * (rows - positives)), int(rates[1] * positives)
        counts = np.array([[fp, positives - fn], [rows - positives - fp, fn]])
        tally = ScoreTally(np.array([1, 0], dtype=np.uint64), counts, counts, counts, np.dtype(np.float64))
        lower, upper = band_limits(metric, tally.confusion[1], tally.given_prior, ERROR)
        mass = stats.binom.pmf(positives, rows, prior)
        below, above = below + mass * (lower > truth), above + mass * (upper < truth)
    assert max(below, above) <= ERROR


KINKED = LinearFractional(lambda p: max(p, 0.2), 0, -1, lambda p: max(p, 0.2), 1, 0, name="kinked")
"""Jaccard's index at priors of 0.2 and more, and another function below."""


def test_a_metric_that_is_constant_in_its_cells_at_some_priors_only_is_not_taken_for_one():
    assert row_worth(KINKED) is None
    assert row_worth(LinearFractional(lambda p: p, 0, -1, lambda p: p, 1, 0)) is not None
    assert depends_on_prior(KINKED)


def test_limits_of_a_metric_that_is_another_at_rare_priors_hold():
    """One row of twenty is positive, and all are predicted negative: the number of positives decides."""
    rows, prior = 100, 0.05
    truth, below, above = float(KINKED.value(fp=0.0, fn=prior, prior=prior)), 0.0, 0.0
    for positives in range(1, 20):
        lower, upper, _ = value_limits(KINKED, np.array([0.0, 0.0, positives, rows - positives]), ERROR)
        mass = stats.binom.pmf(positives, rows, prior)
        below, above = below + mass * (lower > truth), above + mass * (upper < truth)
    assert max(below, above) <= ERROR


RISING = LinearFractional.from_cells(numerator=(1, -1, 0, 0), denominator=(1, 1, 1, 3), name="rising")
"""Does not increase in FP up to a share of positives of 3/4, and does beyond."""


def test_a_metric_that_grows_with_errors_at_a_possible_prior_is_refused():
    y, scores = np.repeat([1, 0], [140, 60]), np.tile([0.9, 0.9, 0.9, 0.1], 50)
    cut = tune_threshold(np.repeat([1, 0], [7, 3]), np.repeat([0.9, 0.1], [7, 3]), metric=RISING)
    for method in ("holdout", "uniform"):
        with pytest.raises(ValueError, match=r"rising grows with errors at a share of positives that these rows allow"):
            certify(cut, y, scores, method=method, held_out=True)
    rare = np.repeat([1, 0], [60, 140])
    found = certify(cut, rare, scores, held_out=True)
    assert found.lower < found.value < found.upper


@pytest.mark.parametrize("metric", [CohenKappa(), GilbertSkill()], ids=str)
def test_the_worst_case_over_priors_is_looked_for_between_the_points_of_a_grid(metric):
    """It is at a prior of one half, where more negatives than positives are predicted."""
    counts = np.array([[30, 5], [6, 27]])
    tally = ScoreTally(np.array([1, 0], dtype=np.uint64), counts, counts, counts, np.dtype(np.float64))
    found = bands(metric, tally.rows.sum(axis=0), tally.given_prior, tally.confusion[1], ERROR, sides=1)
    dense = np.linspace(found.priors[0], found.priors[-1], 20_001)
    lower, _ = band_limits(metric, tally.confusion[1], tally.given_prior, ERROR)
    assert lower <= Bands(found.fpr, found.fnr, dense).value(metric, best=False).min() + 1e-7


@pytest.mark.parametrize("metric", [CohenKappa(), GilbertSkill(), MCC()], ids=str)
def test_limits_are_numbers_that_the_metric_can_have(metric):
    few = np.array([[3.0, 1, 0, 0], [0, 1, 1, 1], [2, 0, 0, 0]])
    least = -1 / 3 if isinstance(metric, GilbertSkill) else -1.0
    lower, upper = cluster_limits(metric, few, 4.0, ERROR)
    assert least <= lower < upper <= 1
    lower, upper, _ = value_limits(metric, np.array([5.0, 0, 0, 5]), ERROR)
    assert least <= lower < upper <= 1


# --- The bootstrap ----------------------------------------------------------------------------------------------------


def labels_of(rng, rows, labels, prior):
    truth = rng.random((rows, labels)) < prior
    return truth.astype(int), rng.normal(size=(rows, labels)) + 1.5 * truth


def test_the_bootstrap_refuses_a_macro_average_of_labels_with_few_positives():
    rng = np.random.default_rng(0)
    truth, scores = labels_of(rng, 140, 20, 0.1)
    cut = tune_thresholds(truth, scores, metric="am", average="macro")
    with pytest.raises(ValueError, match=r"needs 25 positive rows of every label.*'holdout'.*'uniform'"):
        certify(cut, truth, scores, method="bootstrap", resamples=100)
    micro = tune_thresholds(truth, scores, metric="f1", average="micro")
    assert certify(micro, truth, scores, method="bootstrap", resamples=100).lower < micro.value


def test_the_bootstrap_subtracts_no_less_than_tuning_flatters():
    """The mean of 20 labels, three times. Its factor in the limit, 2^(1/3), is too small."""
    rng = np.random.default_rng(1)
    true, estimated = [], []
    for _ in range(3):
        truth, scores = labels_of(rng, 250, 20, 0.2)
        cut = tune_thresholds(truth, scores, metric="am", average="macro")
        actual = np.mean((stats.norm.sf(cut.thresholds - 1.5) + stats.norm.cdf(cut.thresholds)) / 2)
        true.append(cut.value - actual)
        estimated.append(_optimism(cut, LabelRows.of(cut, truth, scores, None), rng, False))
    assert np.mean(true) <= OPTIMISM * np.mean(estimated) + 0.005  # about one standard error of the mean
    assert np.mean(true) > 2 ** (1 / 3) * np.mean(estimated)


def test_the_upper_limit_of_the_bootstrap_reaches_1_where_no_mistake_was_seen():
    """As Clopper–Pearson's does: nothing that was seen excludes that there are none."""
    y = np.arange(400) % 2 == 0
    scores = np.where(y, 0.75, 0.25)
    cut = tune_threshold([0, 1], [0.25, 0.75])
    found = certify(cut, y, scores, method="bootstrap", held_out=True)
    assert found.upper == pytest.approx(1)
    assert found.lower < value_limits(FBeta(1), np.array([200.0, 0, 0, 200]), ERROR)[0]


@pytest.mark.parametrize("kind", ["groups", "weights"])
def test_the_bootstrap_of_groups_or_weights_refuses_what_it_never_saw(kind):
    y = np.arange(600) % 2 == 0
    scores = np.where(y, 0.75, 0.25)
    cut = tune_threshold([0, 1], [0.25, 0.75])
    options = {"groups": np.arange(600) // 3} if kind == "groups" else {"sample_weight": 0.5 + np.arange(600) / 600}
    with pytest.raises(ValueError, match=r"cannot tell how rare false positives are from 0 .*'holdout'"):
        certify(cut, y, scores, method="bootstrap", held_out=True, **options)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_the_bootstrap_of_many_labels_refuses_what_it_never_saw(average):
    """Rows of many labels are drawn whole, as groups are, also without weights."""
    truth = np.random.default_rng(0).random((400, 3)) < 0.5
    cut = tune_thresholds(np.eye(3), np.where(np.eye(3), 0.75, 0.25), average=average)
    with pytest.raises(ValueError, match=r"cannot tell how rare false positives are from 0 rows .*'holdout'"):
        certify(cut, truth, np.where(truth, 0.75, 0.25), method="bootstrap", held_out=True)


# --- Bets on groups, one after the other ------------------------------------------------------------------------------


def of_shares(right):
    return least_ratio(right, np.ones(len(right)), 1.0, (0.0, 1.0), ERROR)


def test_limits_of_a_few_groups_hold_over_all_orders():
    """All 0/1 groups in every order, so that each sample has each order equally often."""
    number = 8
    every = np.array([[number_ >> bit & 1 for bit in range(number)] for number_ in range(2**number)], dtype=float)
    limits = np.array([of_shares(right) for right in every])
    for share in np.linspace(0.02, 0.98, 49):
        mass = stats.binom.pmf(every.sum(axis=1), number, share)
        mass /= special.comb(number, every.sum(axis=1))
        assert mass[limits > share].sum() <= ERROR


@pytest.mark.parametrize(("number", "size", "share"), [(20, 1.0, 0.58), (35, 7.0, 0.63)])
def test_limits_of_groups_in_random_order_hold(number, size, share):
    """A value at which the bet is won is below the limit. In one fixed order of each sample it fails in 16 to 20 %."""
    rng, draws, failures = np.random.default_rng(0), 1_500, 0
    for _ in range(draws):
        a, b = _steps(size * (rng.random(number) < share), np.full(number, size))
        failures += bool(_is_rejected(a, b, np.array([share]), size, ERROR)[0])
    assert failures <= stats.binom.ppf(0.999, draws, ERROR)


def test_each_order_of_one_sample_is_bet_on_as_it_comes():
    """A permutation of sorted groups would be the same whatever their order."""
    rng = np.random.default_rng(0)
    right = np.repeat([0.0, 1.0], [9, 26])
    assert len({of_shares(rng.permutation(right)) for _ in range(20)}) > 5


def of_groups(order, **options):
    """300 groups of 4 rows: accuracy, of a cut that other rows tuned."""
    rng = np.random.default_rng(0)
    right = rng.random((300, 4)) < rng.beta(8, 2, 300)[:, None]
    right = right[order(right, rng)].ravel()
    y = np.tile([True, False], 600)
    cut = tune_threshold([0, 1], [0.25, 0.75], metric="accuracy")
    group = np.repeat(np.arange(300), 4)
    return certify(cut, y, np.where(right == y, 0.75, 0.25), groups=group, held_out=True, **options)


def test_groups_that_come_sorted_by_their_mistakes_are_refused():
    with pytest.raises(ValueError, match=r"the groups come sorted.*Put whole groups in an order drawn by random"):
        of_groups(lambda right, rng: np.argsort(right.sum(axis=1)))
    found = of_groups(lambda right, rng: rng.permutation(len(right)))
    assert any("in an order that has nothing to do with" in one for one in found.assumptions)
    assert of_groups(lambda right, rng: np.argsort(right.sum(axis=1)), method="bootstrap").lower < found.value


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
def test_rows_of_many_labels_that_come_sorted_are_refused(average):
    rng = np.random.default_rng(0)
    truth, scores = labels_of(rng, 900, 4, 0.3)
    cut = tune_thresholds(truth[:400], scores[:400], average=average)
    fresh, by = slice(400, None), 400 + np.argsort(((scores[400:] > 0.75) != truth[400:]).sum(axis=1))
    assert "order that has nothing to do" in " ".join(certify(cut, truth[fresh], scores[fresh]).assumptions)
    with pytest.raises(ValueError, match="the rows come sorted"):
        certify(cut, truth[by], scores[by])


@pytest.mark.parametrize(("number", "share"), [(12, 0.5), (40, 0.2), (300, 0.01), (4_000, 0.3)])
def test_an_order_that_means_nothing_is_seldom_taken_for_a_sorted_one(number, share):
    rng, draws = np.random.default_rng(0), 1_500
    sorted_ = sum(is_sorted((rng.random(number) < share).astype(float), 1e-3) for _ in range(draws))
    assert sorted_ <= stats.binom.ppf(0.999, draws, 1e-3)
    assert is_sorted((np.arange(number) < max(number * share, 6)).astype(float), 3e-3)


def test_groups_of_shuffled_rows_come_in_no_order_of_their_size():
    """A large group has an early row: the first one would put large groups first."""
    groups = np.repeat(np.arange(200), np.repeat([1, 9], 100))
    places = [group_codes(np.random.default_rng(i).permutation(groups)) for i in range(20)]
    of_large = [codes[np.random.default_rng(i).permutation(groups) >= 100] for i, codes in enumerate(places)]
    assert np.mean([np.unique(codes).mean() for codes in of_large]) == pytest.approx(99.5, abs=4)
    assert (group_codes(np.array(["b", "b", "a", "c", "c"])) == [0, 0, 1, 2, 2]).all()


# --- Groups of unequal size -------------------------------------------------------------------------------------------


def grouped(sizes):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    y = np.arange(len(group)) % 2 == 0
    right = rng.random(len(group)) < 0.9
    cut = tune_threshold([0, 1], [0.25, 0.75], metric="accuracy")
    return certify(cut, y, np.where(right == y, 0.75, 0.25), groups=group, held_out=True)


def test_groups_of_unequal_size_are_named_as_the_reason_of_wide_limits():
    found = grouped([800, *[4] * 800])
    assert found.value - found.lower > 0.2
    assert "unequal size: the largest has 800 of 4,000 rows" in found.note
    assert found.note in str(found)
    assert "method='bootstrap'" in found.note


def test_groups_of_equal_size_are_not():
    found = grouped([4] * 1000)
    assert found.value - found.lower < 0.05
    assert found.note == ""
    assert "unequal" not in str(found)


# --- Checks that are repeated -----------------------------------------------------------------------------------------


def test_planned_looks_keep_the_rate_of_false_alarms_and_unplanned_ones_do_not():
    """Of 12 series with 40 looks each, in which nothing changes."""
    series, looks = 12, 40
    planned = sum(alarms(np.random.default_rng(seed), looks, looks) for seed in range(series))
    unplanned = sum(alarms(np.random.default_rng(seed), looks, 1) for seed in range(series))
    most = stats.binom.ppf(0.999, series, ERROR)
    assert planned <= most < unplanned


def test_a_look_has_its_part_of_the_error():
    rng = np.random.default_rng(0)

    def draw(rows, shift=0.0):
        score = rng.random(rows)
        return rng.random(rows) < score - shift, score

    cut = tune_threshold(*draw(2_000))
    new = ScoreTally.from_scores(*draw(2_000))
    planned, surer = (
        check_drift(cut, tally=new, looks=20).prior,
        check_drift(cut, tally=new, confidence=1 - 0.05 / 20).prior,
    )
    assert planned.now_limits == pytest.approx(surer.now_limits)
    assert planned.now_limits[0] < check_drift(cut, tally=new).prior.now_limits[0]
    assert check_drift(cut, tally=ScoreTally.from_scores(*draw(2_000, shift=0.2)), looks=20).moved
    for looks in (0, -1, 1.5):
        with pytest.raises(ValueError, match="looks= must be a whole number"):
            check_drift(cut, tally=new, looks=looks)


# --- The long simulations ---------------------------------------------------------------------------------------------


def test_a_draw_of_every_configuration_runs():
    for one in CONFIGURATIONS:
        if "3000 rows" in one.name or "20 looks" in one.name:  # as the others, and slower
            continue
        drawn = one.fails(np.random.default_rng(0))
        assert drawn is None or len(np.atleast_1d(drawn)) == len(one.parts), one.name
        assert 0 < one.error < 1


def often(rng):
    return bool(rng.random() < 0.3)


def seldom(rng):
    return None if rng.random() < 0.2 else bool(rng.random() < 0.01)


def test_a_run_that_was_stopped_goes_on_to_the_same_result(tmp_path, monkeypatch):
    known = {one.name: one for one in (Configuration("often", ERROR, often), Configuration("seldom", ERROR, seldom))}
    monkeypatch.setattr(guarantees_run, "configurations", lambda: known)
    at_once = guarantees_run.run(known, tmp_path / "at_once.csv", 200, 1, block=50)
    guarantees_run.run(known, tmp_path / "stopped.csv", 200, 1, minutes=0, block=50)
    begun = guarantees_run.read_blocks(tmp_path / "stopped.csv")
    assert 0 < len(begun) < len(at_once) == 8
    after = guarantees_run.run(known, tmp_path / "stopped.csv", 200, 1, block=50)
    assert after == at_once
    assert (tmp_path / "stopped.csv").read_bytes() == (tmp_path / "at_once.csv").read_bytes()
    text, kept = guarantees_run.table(after.values(), known)
    assert not kept
    assert "BROKEN" in text.splitlines()[2]
    assert "kept" in text.splitlines()[3]


def test_names_of_configurations_differ():
    assert len(guarantees_run.configurations()) >= len(CONFIGURATIONS) == len({one.name for one in CONFIGURATIONS})
