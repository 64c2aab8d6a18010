"""Constraints: how they are written, when they are met, and what is said when they cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import Confusion, InfeasibleError, ScoreTally, get_metric, tune_threshold
from surecut.constraints import RATES, Constraint, parse_constraints
from surecut.metrics import FBeta, Precision


def parsed(constraint):
    (one,) = parse_constraints(constraint)
    return one.quantity.name, one.sense, one.level


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("precision>=0.9", ("precision", ">=", 0.9)),
        ("  Precision  >=  .9 ", ("precision", ">=", 0.9)),
        ("precision≥0.9", ("precision", ">=", 0.9)),
        ("predicted_positive_rate<=0.01", ("predicted_positive_rate", "<=", 0.01)),
        ("predicted positive rate ≤ 1e-2", ("predicted_positive_rate", "<=", 0.01)),
        ("predicted-positive-rate <= 1%", ("predicted_positive_rate", "<=", 0.01)),
        ("fpr<=0.1", ("false_positive_rate", "<=", 0.1)),
        ("f0.5>=0.2", ("f0.5", ">=", 0.2)),
        ("mcc>=-0.5", ("mcc", ">=", -0.5)),
        (("precision", 0.9), ("precision", ">=", 0.9)),
        (("fpr", 0.1), ("false_positive_rate", "<=", 0.1)),
        (("recall", "<=", 0.5), ("recall", "<=", 0.5)),
        (("fnr", ">=", 0.5), ("false_negative_rate", ">=", 0.5)),
        ((FBeta(2), 0.5), ("f2", ">=", 0.5)),
        (Constraint(Precision(), ">=", 0.9), ("precision", ">=", 0.9)),
    ],
    ids=str,
)
def test_ways_to_write_a_constraint(written, expected):
    assert parsed(written) == expected


def test_lists_of_constraints():
    assert parse_constraints(None) == ()
    both = parse_constraints(["precision>=0.9", ("fpr", 0.1)])
    assert [str(one) for one in both] == ["precision>=0.9", "false_positive_rate<=0.1"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("precision", "expected a constraint like 'precision>=0.9', with >= or <=, got 'precision'"),
        ("precision>0.9", "expected a constraint like"),
        ("precision>=high", "expected a constraint like"),
        ("precision>=1e", "must be a number"),
        (("precision", "high"), "must be a number"),
        (("precision", None), "must be a number"),
        (("precision", float("nan")), "must be finite"),
        (("precision", "==", 0.5), "expected a constraint like"),
        (("precision",), "expected a constraint like"),
        ("precison>=0.9", "did you mean 'precision'"),
        ("predicted_positve_rate<=0.1", "did you mean 'predicted_positive_rate'"),
        ("roc_auc>=0.9", "cannot be tuned by a cut"),
        ("predicted_positive_rate<=5", "lies between 0 and 1, .*; for 5 percent write 5% or 0.05"),
        (("precision", 1.5), "precision lies between 0 and 1, and so must its level"),
        ("recall>=-0.1", r"got recall>=-0.1$"),
        ("precision>=150%", "lies between 0 and 1"),
        ("f2>=120", r"got f2>=120$"),
        ("kappa>=2", r"kappa lies between -1 and 1, .* got kappa>=2$"),
        (
            "recall>=0.5 and precision>=0.3",
            r"several constraints: pass a list, constraint=\['recall>=0.5', 'precision>=0",
        ),
        ("zzz>=0.9", "In a constraint also: predicted_positive_rate, false_positive_rate"),
    ],
    ids=str,
)
def test_what_is_no_constraint_is_refused(written, message):
    with pytest.raises(ValueError, match=message):
        parse_constraints(written)


def test_a_constraint_that_is_made_by_hand_is_checked_too():
    for sense, level, message in (("<=", 5, "write 5% or 0.05"), ("=", 0.5, ">= or <="), ("<=", np.inf, "finite")):
        with pytest.raises(ValueError, match=message):
            Constraint(RATES["predicted_positive_rate"], sense, level)


def test_levels_of_quantities_without_a_known_range_are_free():
    assert parsed("utility(fp=-2, fn=-100)>=-7") == ("utility", ">=", -7)
    assert parsed("recall>=1.0000000000000002")[2] == pytest.approx(1)


def test_rates_are_what_their_names_say():
    confusion = Confusion(tp=6, fp=3, fn=2, tn=9)
    expected = {
        "predicted_positive_rate": 9 / 20,
        "false_positive_rate": 3 / 12,
        "false_negative_rate": 2 / 8,
        "false_discovery_rate": 3 / 9,
        "false_omission_rate": 2 / 11,
    }
    assert {name: rate.evaluate(confusion) for name, rate in RATES.items()} == pytest.approx(expected)


def test_rates_are_no_metrics():
    with pytest.raises(ValueError, match="unknown metric 'predicted_positive_rate'"):
        get_metric("predicted_positive_rate")


def test_a_level_is_met_up_to_rounding():
    two_thirds = Confusion(tp=2, fp=1, fn=0, tn=0)
    assert Constraint(Precision(), ">=", 2 / 3 + 1e-13).is_met(two_thirds)
    assert not Constraint(Precision(), ">=", 2 / 3 + 1e-11).is_met(two_thirds)
    assert Constraint(Precision(), "<=", 2 / 3 - 1e-13).is_met(two_thirds)
    assert not Constraint(Precision(), "<=", 2 / 3 - 1e-11).is_met(two_thirds)


@pytest.mark.parametrize("sense", [">=", "<="])
def test_an_undefined_quantity_meets_no_level(sense):
    nothing_predicted = Confusion(tp=0, fp=0, fn=3, tn=4)
    assert not Constraint(Precision(), sense, 0.0 if sense == ">=" else 1.0).is_met(nothing_predicted)


# What tuning makes of them

LABELS = [1, 0, 1, 1, 0, 0, 1, 0]
SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]


@pytest.mark.parametrize(
    ("constraint", "accepted"),
    [(None, 4), ("precision>=0.9", 1), ("predicted_positive_rate<=0.125", 1), ("recall>=0.8", 7), ("fpr<=0.5", 4)],
)
def test_the_best_cut_that_meets_it(constraint, accepted):
    cut = tune_threshold(LABELS, SCORES, constraint=constraint)
    assert cut.predict(SCORES).sum() == accepted
    assert cut.constraints == parse_constraints(constraint)


def test_an_alert_budget_may_leave_nothing():
    cut = tune_threshold(LABELS, SCORES, constraint="predicted_positive_rate<=0.1")
    assert cut.predicts_nothing
    assert cut.value == 0


def test_a_constraint_on_a_given_prior_is_met_there():
    tally = ScoreTally.from_scores(LABELS, SCORES).with_prior(0.1)
    cut = tally.best_cut("recall", "predicted_positive_rate<=0.3")
    rates = cut.confusion.at_prior(0.1)
    assert rates.tp + rates.fp <= 0.3 + 1e-12
    unconstrained = ScoreTally.from_scores(LABELS, SCORES).best_cut("recall", "predicted_positive_rate<=0.3")
    assert unconstrained.predict(SCORES).sum() < cut.predict(SCORES).sum()


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ("kappa>=0.9", "no cut meets kappa>=0.9: the highest kappa attainable is 0.5"),
        ("mcc<=-0.5", "no cut meets mcc<=-0.5: the lowest mcc attainable is 0"),
        (["precision>=0.9", "recall>=0.9"], "can be met by some cut, but no cut meets all of them"),
        (["recall>=0.9", "kappa>=0.9"], "no cut meets kappa>=0.9"),
    ],
    ids=str,
)
def test_infeasible_names_the_level_attainable(constraint, message):
    with pytest.raises(InfeasibleError, match=message):
        tune_threshold(LABELS, SCORES, constraint=constraint)


def test_infeasible_is_exact_where_rows_are_many():
    """The attainable level stands inside a bin that the search has no other reason to open."""
    random = np.random.default_rng(0)
    scores = random.random(60_000)
    labels = (random.random(60_000) < 0.3 * scores).astype(int)
    order = np.argsort(-scores)
    labels[order[:3]] = 0
    attainable = (np.cumsum(labels[order]) / np.arange(1, 60_001)).max()
    with pytest.raises(InfeasibleError, match=f"the highest precision attainable is {attainable:.6g}$"):
        tune_threshold(labels, scores, constraint="precision>=0.9")
    cut = tune_threshold(labels, scores, metric="recall", constraint=("precision", attainable))
    assert get_metric("precision").evaluate(cut.confusion) == attainable


@pytest.mark.parametrize("nothing", [None, (), [], iter(())])
def test_no_constraint_is_no_constraint(nothing):
    assert parse_constraints(nothing) == ()
