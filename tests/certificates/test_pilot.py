"""A pilot sample says where to look, the other rows decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surecut import InfeasibleError, ScoreTally, certify, tune_threshold
from surecut.certificates.assurance import limited_cut
from surecut.certificates.brackets import _bracket_weights, bracket_limits
from surecut.certificates.limits import value_limits
from surecut.certificates.pilot import LARGEST_SHARE, Pilot
from surecut.constraints import parse_constraints
from surecut.core.entries import Entries
from surecut.metrics import FBeta, get_metric

MEAN, PRIOR = 1.5, 0.3


def draw(rng, rows):
    y = rng.random(rows) < PRIOR
    return y, rng.normal(size=rows) + MEAN * y


def truth(metric, threshold):
    fpr, fnr = stats.norm.sf(threshold), stats.norm.cdf(threshold - MEAN)
    return float(metric.value(fp=fpr * (1 - PRIOR), fn=fnr * PRIOR, prior=PRIOR))


def tally_of(rows, seed=0):
    return ScoreTally.from_scores(*draw(np.random.default_rng(seed), rows))


@pytest.mark.parametrize("rows", [50, 700, 20_000])
def test_pilot_and_others_are_all_rows(rows):
    tally = tally_of(rows)
    pilot = Pilot.of(tally.entries)
    assert ((pilot.others >= 0) & (pilot.others <= tally.rows)).all()
    assert (pilot.others.sum(axis=0) + pilot.classes).tolist() == tally.rows.sum(axis=0).tolist()
    assert pilot.classes.sum() < 1.5 * LARGEST_SHARE * rows + 10
    assert (np.diff(pilot.cuts) > 0).all()
    assert len(pilot) == pilot.classes.sum()
    assert 20 < len(pilot.thinned(30)) <= 30 if len(pilot) > 30 else pilot.thinned(30) is pilot
    at = int(pilot.cuts[len(pilot) // 2])
    tp, fp, fn, tn = pilot.cells(at)
    assert (tp, fp) == (pilot.others[:at, 1].sum(), pilot.others[:at, 0].sum())
    assert (tp + fn, fp + tn) == tuple(pilot.others.sum(axis=0)[::-1])


def test_of_few_scores_another_order_gives_another_pilot():
    y, score = draw(np.random.default_rng(0), 500)
    order = np.random.default_rng(1).permutation(500)
    for decimals, is_same in ((3, True), (0, False)):
        rounded = np.round(score, decimals)
        first, second = (
            Pilot.of(tally.entries, tally.order)
            for tally in (ScoreTally.from_scores(y, rounded), ScoreTally.from_scores(y[order], rounded[order]))
        )
        assert np.array_equal(first.others, second.others) == is_same


def test_equal_rows_give_equal_pilots_and_other_rows_others():
    first, again, other = (Pilot.of(tally_of(500, seed).entries) for seed in (0, 0, 1))
    assert np.array_equal(first.others, again.others)
    assert not np.array_equal(first.cuts, other.cuts)


@pytest.mark.parametrize("rows", [20, 60])
@pytest.mark.parametrize("share", [0.18, 0.61, 0.9])
def test_a_limit_holds_where_all_rows_have_one_score(rows, share):
    """Equal counts must not give the same pilot each time: then the limit would fail in whole samples, not on average.

    The order of the rows is what differs. Failures are counted in all numbers of positives, several orders of each.
    """
    rng, error, orders, failed = np.random.default_rng(0), 0.2, 12, 0.0
    for positives in range(1, rows + 1):
        mass = stats.binom.pmf(positives, rows, share)
        if mass < 1e-4:
            continue
        for _ in range(orders):
            y = rng.permutation(np.arange(rows) < positives)
            try:
                limit = tune_threshold(y, np.full(rows, 0.5), metric="precision", confidence=1 - error).lower_limit
            except ValueError:  # nobody is in the pilot
                continue
            failed += mass / orders * (limit > share)
    assert failed <= error + 0.07  # of some 200 samples that matter


def test_rows_without_a_score_are_below_every_cut():
    tally = tally_of(500)
    absent = np.array([[300, 20]])
    pilot = Pilot.of(Entries.scores(tally.keys, tally.rows, tally.rows, absent=absent))
    assert (pilot.others.sum(axis=0) + pilot.absent + pilot.classes).tolist() == (
        tally.rows.sum(axis=0) + absent[0]
    ).tolist()
    assert np.sin(pilot.angles.max()) ** 2 < 0.8
    assert pilot.cells(len(tally)).sum() == (pilot.others.sum() + pilot.absent.sum())


def test_the_pilot_expects_what_the_others_show():
    tally = tally_of(50_000)
    pilot = Pilot.of(tally.entries)
    f1 = FBeta(1)
    found = np.array([float(f1.evaluate(tally.confusion[int(cut)])) for cut in pilot.cuts])
    assert np.abs(pilot.expected_values(f1, None) - found).max() < 0.06
    margins = pilot.expected_margins(f1, 0.5, None)
    assert np.array_equal(margins > 0, pilot.expected_values(f1, None) > 0.5)


def test_a_limit_without_constraints_holds_on_new_data_and_is_narrow():
    """At 80 % confidence; the limit of held-out data at the best cut of the same rows would fail far more often."""
    rng, draws, error, metric = np.random.default_rng(5), 400, 0.2, FBeta(1)
    failed = flattered = 0
    for _ in range(draws):
        tally = ScoreTally.from_scores(*draw(rng, 300))
        cut = limited_cut(tally.candidates, metric, 1 - error)
        failed += cut.lower_limit > truth(metric, cut.threshold)
        best = tally.best_cut(metric)
        at = best.confusion
        plain = value_limits(metric, np.array([at.tp, at.fp, at.fn, at.tn], dtype=float), error)[0]
        flattered += plain > truth(metric, best.threshold)
    noise = 3 * np.sqrt(error * (1 - error) / draws)
    assert error / 2 < failed / draws <= error + noise
    assert flattered / draws > error + noise  # the check can fail


@pytest.mark.parametrize("metric", ["f1", "am", "kappa"])
@pytest.mark.parametrize("decimals", [None, 0])
def test_brackets_hold_at_a_cut_of_the_same_rows(metric, decimals):
    rng, draws, error, metric = np.random.default_rng(6), 60, 0.2, get_metric(metric)
    failed = 0
    for _ in range(draws):
        y, score = draw(rng, 300)
        score = score if decimals is None else np.round(score, decimals)
        tally = ScoreTally.from_scores(y, score)
        cut = tally.best_cut(metric)
        lower, upper = bracket_limits(metric, tally, cut.threshold, error)
        at = cut.threshold if decimals is None else np.ceil(cut.threshold) - 0.5
        failed += not lower <= truth(metric, at) <= upper
    assert failed / draws <= 2 * error


def test_parts_of_the_error_add_up_to_one():
    pilot = Pilot.of(tally_of(2_000).entries)
    weights = _bracket_weights(pilot, FBeta(1), None, ())
    assert len(weights) == len(pilot) + 1
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    fewer = _bracket_weights(pilot, FBeta(1), None, parse_constraints("predicted_positive_rate<=0.1"))
    assert np.argmax(fewer) < np.argmax(weights)  # fewer rows are accepted


def test_a_pilot_without_both_classes_leaves_bands():
    y = np.zeros(200, dtype=bool)
    y[:4] = True
    score = np.random.default_rng(0).normal(size=200) + 2 * y
    lower, upper = bracket_limits(FBeta(1), ScoreTally.from_scores(y, score), 1.5, 0.05)
    assert 0 <= lower < upper <= 1


def test_the_theorem_does_not_cover_a_cut_of_a_pilot_sample():
    y, score = draw(np.random.default_rng(0), 500)
    cut = tune_threshold(y, score, confidence=0.9)
    with pytest.raises(ValueError, match="a pilot sample of them chose this one: use method='uniform'"):
        certify(cut, method="theorem")
    assert certify(cut, y, score, method="uniform").lower < cut.lower_limit


def test_too_few_rows_are_refused_by_name():
    with pytest.raises(InfeasibleError, match=r"too few rows to promise anything with confidence=: 1 row$"):
        tune_threshold([1], [0.5], metric="accuracy", confidence=0.9)
