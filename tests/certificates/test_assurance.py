"""Constraints that hold on new rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from surecut import Cut, InfeasibleError, ScoreTally, certify, get_metric, tune_threshold
from surecut.certificates.assurance import assured_cut
from surecut.certificates.priors import at_prior
from surecut.certificates.quantities import nested_share
from surecut.confusion import Confusion
from surecut.constraints import parse_constraints


def draw(rng, rows, decimals=None):
    score = 1 / (1 + np.exp(1.5 - 2 * rng.normal(size=rows)))
    y = rng.random(rows) < score
    return y, score if decimals is None else np.round(score, decimals)


CONSTRAINTS = [
    "precision>=0.7",
    "false_discovery_rate<=0.3",
    "recall>=0.6",
    "specificity>=0.8",
    "false_positive_rate<=0.2",
    "false_negative_rate<=0.4",
    "predicted_positive_rate<=0.3",
    "f1>=0.5",
]


@lru_cache
def population(decimals=None):
    """The tally of many rows, as good as the truth."""
    return ScoreTally.from_scores(*draw(np.random.default_rng(99), 300_000, decimals))


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_constraint_holds_on_new_rows(constraint, decimals):
    """At 80 % confidence, over 40 samples of 1,500 rows; the plain cut misses about every second time."""
    rng, draws, truth = np.random.default_rng(8), 40, population(decimals)
    (parsed,) = parse_constraints(constraint)
    metric = "recall" if parsed.quantity.name in ("precision", "false_discovery_rate", "f1") else "precision"
    if "predicted" in constraint or "false_positive" in constraint or "specificity" in constraint:
        metric = "recall"
    kept, plain = 0, 0
    for _ in range(draws):
        y, score = draw(rng, 1500, decimals)
        cut = tune_threshold(y, score, metric=metric, constraint=constraint, confidence=0.8)
        kept += bool(parsed.is_met(truth.confusion_at(cut.threshold)))
        usual = tune_threshold(y, score, metric=metric, constraint=constraint)
        plain += bool(parsed.is_met(truth.confusion_at(usual.threshold)))
    assert kept / draws >= 0.8 - 2 * np.sqrt(0.16 / draws)
    if decimals is None and not constraint.startswith("f1"):
        assert plain < kept  # the check can fail: the plain cut is no promise


@pytest.mark.parametrize("constraint", ["precision>=0.3", "predicted_positive_rate<=0.1", "recall>=0.6", "f1>=0.3"])
def test_the_constraint_holds_at_a_prior_that_was_given(constraint):
    """The deployment has a quarter of the sample's share of positives; counting rows would promise too much."""
    rng = np.random.default_rng(9)
    truth = population().with_prior(0.08)
    (parsed,) = parse_constraints(constraint)
    metric = get_metric("precision" if constraint.startswith("recall") else "recall")
    for _ in range(10):
        tally = ScoreTally.from_scores(*draw(rng, 3000)).with_prior(0.08)
        cut = assured_cut(tally.candidates, metric, (parsed,), 0.999)
        assert parsed.is_met(at_prior(truth.confusion_at(cut.threshold), truth.given_prior))
        promise = certify(cut, tally=tally, method="uniform").constraints[0]
        value = float(parsed.quantity.evaluate(at_prior(tally.confusion_at(cut.threshold), tally.given_prior)))
        assert promise.value == pytest.approx(value)


def test_the_cut_says_so_and_is_saved(tmp_path):
    y, score = draw(np.random.default_rng(0), 3000)
    cut = tune_threshold(y, score, metric="recall", constraint="precision>=0.7", confidence=0.95)
    assert cut.confidence == 0.95
    assert "precision>=0.7 (95 % confidence)" in str(cut)
    cut.save(tmp_path / "cut.json")
    assert Cut.load(tmp_path / "cut.json") == cut
    assert cut.interval[0] < cut.threshold <= cut.interval[1]
    tp, fp = (y & cut.predict(score)).sum(), (~y & cut.predict(score)).sum()
    assert tp / (tp + fp) > 0.7
    assert (tp, fp) == (cut.confusion.tp, cut.confusion.fp)


def test_several_metrics_and_several_constraints():
    y, score = draw(np.random.default_rng(0), 5000)
    cuts = tune_threshold(y, score, metric=["f1", "f2"], constraint=["precision>=0.5", "recall>=0.5"], confidence=0.9)
    assert set(cuts) == {"f1", "f2"}


def test_float32_and_integer_scores():
    y, score = draw(np.random.default_rng(0), 3000)
    for column in (score.astype(np.float32), np.round(score * 1000).astype(int)):
        cut = tune_threshold(y, column, metric="recall", constraint="precision>=0.6", confidence=0.9)
        predicted = cut.predict(column)
        assert predicted.sum() == cut.confusion.predicted_positives
        assert (column[~predicted] < cut.threshold).all()


def test_an_error_names_no_level_that_is_met():
    """What came closest is below the level: it is from the cuts that were tested, at the errors that they had."""
    rng, named = np.random.default_rng(2), []
    for _ in range(60):
        y, score = draw(rng, 150)
        try:
            tune_threshold(y, score, metric="recall", constraint="precision>=0.7", confidence=0.8)
        except InfeasibleError as error:
            named.append(float(str(error).rpartition(" ")[2]))
    assert 0 < max(named) < 0.7


def test_what_cannot_be_promised_is_an_error():
    y, score = draw(np.random.default_rng(0), 300)
    with pytest.raises(InfeasibleError, match=r"precision>=0.99 with 95 % confidence from 300 rows: the highest"):
        tune_threshold(y, score, constraint="precision>=0.99", confidence=0.95)
    with pytest.raises(InfeasibleError, match=r"from 10 rows: th(e highest precision|ere are too few rows)"):
        tune_threshold(y[:10], score[:10], constraint="precision>=0.5", confidence=0.95)
    with pytest.raises(InfeasibleError, match="too few rows to promise anything"):
        tune_threshold([1], [0.5], metric="accuracy", constraint="precision>=0.5", confidence=0.95)
    with pytest.raises(InfeasibleError, match="all of them for none"):
        tune_threshold(y, score, constraint=["recall>=0.85", "specificity>=0.85"], confidence=0.95)
    with pytest.raises(InfeasibleError, match=r"all of them at once: where they come closest, recall is at least 0"):
        tune_threshold(y, score, constraint=["recall>=0.85", "precision>=0.85"], confidence=0.95)
    with pytest.raises(ValueError, match="0 < confidence < 1"):
        tune_threshold(y, score, constraint="recall>=0.5", confidence=95)
    with pytest.raises(ValueError, match="not numbers of rows"):
        tune_threshold(
            y, score, constraint="recall>=0.5", confidence=0.9, sample_weight=np.full(300, 0.3), weights="counts"
        )


@pytest.mark.parametrize(
    ("constraint", "classes", "predicted"),
    [
        ("recall>=0.5", [False, True], True),
        ("fnr<=0.5", [False, True], False),
        ("fpr<=0.5", [True, False], True),
        ("specificity>=0.5", [True, False], False),
        ("predicted_positive_rate<=0.5", [True, True], True),
    ],
)
def test_shares_of_nested_sets_are_known_as_such(constraint, classes, predicted):
    (parsed,) = parse_constraints(constraint)
    found = nested_share(parsed.quantity)
    assert ([found.negatives, found.positives], found.predicted) == (classes, predicted)


def test_other_quantities_are_not():
    for constraint in ("f1>=0.5", "accuracy>=0.5", "false_omission_rate<=0.1"):
        (parsed,) = parse_constraints(constraint)
        assert nested_share(parsed.quantity) is None


@pytest.mark.parametrize(
    ("constraint", "met_above"),
    [("recall>=0.8", False), ("fnr<=0.2", False), ("fpr<=0.1", True), ("specificity>=0.9", True)],
)
def test_one_limit_serves_all_thresholds_of_a_nested_quantity(constraint, met_above):
    """A threshold that breaks the constraint passes only if the last one that does passes too: enumerated there."""
    (parsed,) = parse_constraints(constraint)
    share = nested_share(parsed.quantity)
    assert share.met_above(parsed.sense) == met_above
    rows, error = 60, 0.1
    wrong = parsed.level if parsed.sense == "<=" else 1 - parsed.level  # of the rows that should not be there
    errors = np.arange(rows + 1)
    mass = stats.binom.pmf(errors, rows, wrong)
    positives, other = (errors, rows - errors) if share.predicted == (parsed.sense == "<=") else (rows - errors, errors)
    zero = np.zeros(rows + 1, dtype=int)
    cells = (positives, zero, other, zero) if share.positives else (zero, positives, zero, other)

    def probability(error):
        return mass[parsed.allows(share.limits(Confusion(*cells), parsed.sense, error, None))].sum()

    assert error / 4 < probability(error) <= error
    assert probability(2 * error) > error  # the check can fail


def test_constraints_that_are_met_the_same_way_do_not_share_the_error():
    y, score = draw(np.random.default_rng(3), 2000)
    options = {"metric": "recall", "confidence": 0.9}
    one = tune_threshold(y, score, constraint="fpr<=0.1", **options)
    both = tune_threshold(y, score, constraint=["fpr<=0.1", "predicted_positive_rate<=0.9"], **options)
    opposite = tune_threshold(y, score, constraint=["fpr<=0.1", "recall>=0.05"], **options)
    assert one.threshold == both.threshold < opposite.threshold


def test_equal_rows_give_equal_cuts_whatever_their_order():
    y, score = draw(np.random.default_rng(3), 1000)
    options = {"metric": "recall", "constraint": "precision>=0.6", "confidence": 0.9}
    order = np.random.default_rng(4).permutation(1000)
    assert tune_threshold(y, score, **options) == tune_threshold(y[order], score[order], **options)


def test_infinite_scores_can_be_promised():
    y, score = draw(np.random.default_rng(3), 2000)
    score = np.where(score > 0.8, np.inf, np.where(score < 0.05, -np.inf, score))
    for constraint, metric in (
        ("precision>=0.6", "recall"),
        ("accuracy>=0.6", "accuracy"),
        ("recall>=0.9", "precision"),
    ):
        cut = tune_threshold(y, score, metric=metric, constraint=constraint, confidence=0.9)
        assert cut.predict(score).sum() == cut.confusion.predicted_positives


def test_huge_counts_can_be_promised():
    y, score = draw(np.random.default_rng(0), 600)
    options = {"weights": "counts", "confidence": 0.9, "constraint": "precision>=0.5"}
    cut = tune_threshold(y, score, sample_weight=np.full(600, 1e12), **options)
    assert cut.confusion.tp >= cut.confusion.fp


@pytest.mark.parametrize("method", ["holdout", "uniform", "bootstrap"])
def test_counts_beyond_exact_integers_are_refused(method):
    y, score = draw(np.random.default_rng(0), 600)
    many = {"sample_weight": np.full(600, 1e17), "weights": "counts"}
    with pytest.raises(ValueError, match=r"add up to 6e\+19 rows, more than 2\*\*53"):
        certify(tune_threshold(y, score), y, score, held_out=method == "holdout", method=method, **many)
    with pytest.raises(ValueError, match=r"more than 2\*\*53"):
        tune_threshold(y, score, constraint="precision>=0.5", confidence=0.9, **many)


def test_weights_of_0_and_1_say_which_rows_are_there():
    y, score = draw(np.random.default_rng(0), 600)
    options = {"constraint": "precision>=0.5", "confidence": 0.9}
    weighted = tune_threshold(y, score, sample_weight=np.arange(600) >= 100, weights="importance", **options)
    assert weighted.threshold == tune_threshold(y[100:], score[100:], **options).threshold
