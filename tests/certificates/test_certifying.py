"""Certificates: what they promise, that they keep it, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from surecut import Confusion, Cut, PlugInClassifier, ScoreTally, certify, tune_threshold
from surecut.certificates.bootstrap import FEWEST
from surecut.certificates.certifying import METHODS
from surecut.certificates.limits import row_worth, value_limits
from surecut.certificates.priors import depends_on_prior, value_range
from surecut.certificates.uniform import uniform_limits
from surecut.metrics import (
    AM,
    CATALOGUE,
    Accuracy,
    CohenKappa,
    FBeta,
    Jaccard,
    LinearFractional,
    Precision,
    Recall,
    Specificity,
    Tversky,
    Utility,
    WeightedAccuracy,
)

EXACT = [Accuracy(), FBeta(1), Jaccard(), Precision(), Recall(), Specificity(), Tversky(0.5, 0.5)]
CAUTIOUS = [FBeta(2), AM(), CohenKappa(), Utility(fp=-1, fn=-5), WeightedAccuracy(1, 3)]


def draw(rng, rows, offset=1.5):
    score = 1 / (1 + np.exp(offset - 2 * rng.normal(size=rows)))
    return rng.random(rows) < score, score


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return draw(rng, 800), draw(rng, 1500)


@pytest.fixture(scope="module")
def cut(samples):
    return tune_threshold(*samples[0])


@pytest.mark.parametrize("metric", EXACT, ids=lambda metric: metric.name)
def test_exact_metrics_are_a_share_with_clopper_pearsons_limits(metric):
    cells = np.array([30.0, 12.0, 9.0, 60.0])
    lower, upper, exact = value_limits(metric, cells, 0.05)
    assert exact
    shares = {
        "accuracy": (90, 111),
        "f1": (30, 51),
        "jaccard": (30, 51),
        "precision": (30, 42),
        "recall": (30, 39),
        "specificity": (60, 72),
        "tversky": (30, 51),
    }
    count, total = shares[metric.name]
    share = np.array([stats.beta.ppf(0.05, count, total - count + 1), stats.beta.ppf(0.95, count + 1, total - count)])
    expected = 2 * share / (1 + share) if metric.name in ("f1", "tversky") else share
    assert [lower, upper] == pytest.approx(expected.tolist())


@pytest.mark.parametrize("metric", [make() for make in CATALOGUE.values()] + CAUTIOUS, ids=repr)
def test_limits_stand_around_the_value_and_close_in(metric):
    width = []
    for factor in (1, 16):
        cells = factor * np.array([30.0, 12.0, 9.0, 60.0])
        lower, upper, _ = value_limits(metric, cells, 0.05)
        assert lower < metric.evaluate(Confusion(*cells)) < upper
        width.append(upper - lower)
    assert 0.2 < width[1] / width[0] < 0.32  # as one over the root of the rows


@pytest.mark.parametrize("metric", CAUTIOUS, ids=repr)
def test_cautious_limits_cover(metric):
    """Notices a limit that fails in half of the draws. Finer differences: enumeration and `make test-guarantees`."""
    rng, draws = np.random.default_rng(3), 40
    prior, fpr, fnr = 0.2, 0.1, 0.4
    shares = [prior * (1 - fnr), (1 - prior) * fpr, prior * fnr, (1 - prior) * (1 - fpr)]
    truth = metric.value(fp=shares[1], fn=shares[2], prior=prior)
    drawn = rng.multinomial(120, shares, draws).astype(float)
    limits = np.array([value_limits(metric, cells, 0.2)[:2] for cells in drawn])
    for missed in (limits[:, 0] > truth, limits[:, 1] < truth):
        assert missed.mean() <= 0.2 + 3 * np.sqrt(0.16 / draws)


def test_a_metric_of_ones_own_has_the_limits_of_its_twin():
    cells = np.array([30.0, 12.0, 9.0, 60.0])
    own = LinearFractional(lambda p: 2 * p, 0, -2, lambda p: 2 * p, 1, -1)
    assert value_limits(own, cells, 0.05) == value_limits(FBeta(1), cells, 0.05)
    cells_of_own = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(1, 1, 1, 0))
    assert value_limits(cells_of_own, cells, 0.05) == value_limits(Jaccard(), cells, 0.05)


def test_what_is_computed_once_is_computed_for_a_metric_without_a_hash_too():
    class Unhashable(AM):
        __hash__ = None

    cells = np.array([30.0, 12.0, 9.0, 60.0])
    assert value_limits(Unhashable(), cells, 0.05) == value_limits(AM(), cells, 0.05)
    assert value_range(Unhashable()) == value_range(AM()) == (0.0, 1.0)


def test_what_a_row_is_worth():
    numerators, denominators = row_worth(FBeta(2))
    assert numerators.tolist() == [5, 0, 0, 0]
    assert denominators.tolist() == [5, 1, 4, 0]
    assert row_worth(AM()) is None
    assert [depends_on_prior(metric) for metric in (AM(), Recall(), FBeta(1))] == [False, False, True]


def test_the_confusion_of_a_cut_is_that_of_its_predictions(samples, cut):
    y, score = samples[1]
    tally = ScoreTally.from_scores(y, score)
    assert tally.confusion_at(cut.threshold) == Confusion.from_predictions(y, cut.predict(score))
    assert tally.confusion_at(np.inf) == Confusion(0, 0, int(y.sum()), int((~y).sum()))
    on_a_score = replace(cut, threshold=float(score[17]))
    assert tally.confusion_at(on_a_score.threshold) == Confusion.from_predictions(y, on_a_score.predict(score))


@pytest.mark.parametrize("method", METHODS)
def test_rows_and_their_tally_give_one_certificate(method, samples, cut):
    y, score = samples[1]
    from_rows = certify(cut, y, score, method=method, resamples=200)
    if method != "theorem":
        assert certify(cut, tally=ScoreTally.from_scores(y, score), method=method, resamples=200) == from_rows
    assert from_rows.lower < from_rows.value < from_rows.upper
    assert from_rows.assumptions
    assert "95 % confidence" in str(from_rows)
    assert certify(cut, y, score, method=method, confidence=0.8, resamples=200).lower > from_rows.lower


def test_weights_that_are_whole_count_rows(samples, cut):
    y, score = samples[1]
    weight = np.random.default_rng(5).integers(1, 4, len(y))
    repeated = certify(cut, np.repeat(y, weight), np.repeat(score, weight))
    assert certify(cut, y, score, sample_weight=weight, weights="counts") == repeated
    uniform = certify(cut, y, score, sample_weight=weight.astype(float), weights="counts", method="uniform")
    assert uniform.regret_bound == pytest.approx(
        certify(cut, np.repeat(y, weight), np.repeat(score, weight), method="uniform").regret_bound
    )


@pytest.mark.parametrize("method", ["holdout", "uniform"])
def test_other_weights_are_refused_and_resampled(method, samples, cut):
    y, score = samples[1]
    weight = np.random.default_rng(5).random(len(y))
    with pytest.raises(ValueError, match=r"not said what their weights mean.*bootstrap"):
        certify(cut, y, score, sample_weight=weight, method=method)
    with pytest.raises(ValueError, match=r"not numbers of rows.*bootstrap"):
        certify(cut, y, score, sample_weight=weight, weights="counts", method=method)
    certificate = certify(cut, y, score, sample_weight=weight, method="bootstrap", resamples=300)
    assert certificate.value == pytest.approx(cut.metric.score(y, cut.predict(score), sample_weight=weight))
    assert certificate.lower < certificate.value < certificate.upper


def test_the_rows_that_tuned_are_refused_by_holdout(samples, cut):
    y, score = samples[0]
    order = np.random.default_rng(0).permutation(len(y))
    with pytest.raises(ValueError, match=r"validation rows.*'uniform'"):
        certify(cut, y[order], score[order])
    assert certify(cut, y, score, method="uniform").lower < cut.value


def test_a_saved_cut_knows_the_rows_that_tuned_it(samples, cut, tmp_path):
    cut.save(tmp_path / "cut.json")
    with pytest.raises(ValueError, match="validation rows"):
        certify(Cut.load(tmp_path / "cut.json"), *samples[0])


def test_out_of_fold_scores_are_refused():
    X, y = make_classification(300, random_state=0)
    classifier = PlugInClassifier(LogisticRegression()).fit(X, y)
    assert classifier.cut_.out_of_fold
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    scores = cross_val_predict(LogisticRegression(), X, y, cv=StratifiedKFold(5), method="predict_proba")[:, 1]
    for method in ("holdout", "uniform", "bootstrap"):
        with pytest.raises(ValueError, match="pooled from folds"):
            certify(classifier.cut_, y, scores, method=method)
    with pytest.raises(ValueError, match="pooled from folds"):
        certify(classifier.cut_, method="theorem")


def test_one_row_per_group_or_a_bootstrap_of_groups(samples, cut):
    y, score = samples[1]
    groups = np.arange(len(y)) // 5
    with pytest.raises(ValueError, match=r"not independent.*bootstrap"):
        certify(cut, y, score, groups=groups, method="uniform")
    with pytest.raises(ValueError, match="not a tally"):
        certify(cut, tally=ScoreTally.from_scores(y, score), groups=groups, method="bootstrap")
    with pytest.raises(ValueError, match="needs 50 groups, got 1"):
        certify(cut, y, score, groups=np.zeros(len(y)), method="bootstrap")


def test_rows_that_repeat_in_a_group_widen_the_limits(samples, cut):
    y, score = (np.repeat(column, 8) for column in samples[1])
    groups = np.arange(len(y)) // 8
    naive = certify(cut, y, score, method="bootstrap", resamples=500)
    grouped = certify(cut, y, score, groups=groups, method="bootstrap", resamples=500)
    single = certify(cut, *samples[1], method="bootstrap", resamples=500)
    assert (grouped.upper - grouped.lower) / (naive.upper - naive.lower) == pytest.approx(np.sqrt(8), rel=0.15)
    assert grouped.upper - grouped.lower == pytest.approx(single.upper - single.lower, rel=0.15)


def test_the_bootstrap_takes_the_flattery_off_a_tuned_value(samples):
    y, score = (column[:400] for column in samples[0])
    cut = tune_threshold(y, score)
    tuned = certify(cut, y, score, method="bootstrap")
    assert (tuned.lower + tuned.upper) / 2 < cut.value
    low, high = tuned.threshold_spread
    assert low <= cut.threshold <= high
    fresh = certify(cut, *samples[1], method="bootstrap")
    assert fresh.threshold_spread is None


def test_the_bootstrap_refuses_few_rows_of_a_class(samples, cut):
    y, score = samples[1]
    few = ~y | (np.cumsum(y) <= FEWEST - 1)
    with pytest.raises(ValueError, match=rf"needs {FEWEST} rows of each class, got {FEWEST - 1}.*uniform"):
        certify(cut, y[few], score[few], method="bootstrap")


def test_the_bootstrap_does_not_take_an_empty_cell_to_be_impossible():
    y, score = np.repeat([True, False], 200), np.repeat([1.0, 0.0], 200)
    cut = tune_threshold(y, score, metric="recall", constraint="precision>=0.9")
    certificate = certify(cut, y, score, method="bootstrap")
    assert cut.value == 1
    assert certificate.lower == pytest.approx(stats.beta.ppf(0.05, 200, 1), abs=0.002)  # Clopper–Pearson's limit


def test_the_bootstrap_is_the_same_twice_and_in_bins(samples, cut):
    y, score = samples[1]
    assert certify(cut, y, score, method="bootstrap") == certify(cut, y, score, method="bootstrap")
    binned = certify(cut, y, score, method="bootstrap")  # 1,500 scores in fewer bins
    rounded = np.where(score >= cut.threshold, 1.0, 0.0)  # all that the value at the cut depends on
    whole = certify(replace(cut, threshold=0.5), y, rounded, method="bootstrap", held_out=True)
    assert [binned.lower, binned.upper] == pytest.approx([whole.lower, whole.upper], abs=0.004)


def test_uniform_bounds_hold_for_every_cut_of_the_sample(samples):
    """A band that covers the truth bounds all thresholds at once: it is checked on a large second sample."""
    rng = np.random.default_rng(9)
    truth = ScoreTally.from_scores(*draw(rng, 400_000))
    tally = ScoreTally.from_scores(*samples[1])
    best = truth.best_cut("f1").value
    for threshold in (0.2, 0.35, 0.5, 0.7):
        cut = replace(tally.best_cut("f1"), threshold=threshold)
        certificate = certify(cut, tally=tally, method="uniform")
        actual = float(cut.metric.evaluate(truth.confusion_at(cut.threshold)))
        assert certificate.lower < actual < certificate.upper
        assert best - actual < certificate.regret_bound


def test_uniform_is_far_tighter_than_the_theorem():
    rng = np.random.default_rng(2)
    tally = ScoreTally.from_scores(*draw(rng, 100_000))
    cut = tally.best_cut("f1")
    uniform, theorem = certify(cut, tally=tally, method="uniform"), certify(cut, method="theorem")
    assert theorem.regret_bound > 90 * uniform.regret_bound
    assert theorem.vacuous
    assert "vacuous" in str(theorem)
    assert not uniform.vacuous


def test_many_thresholds_are_bounded_in_blocks(samples, monkeypatch):
    import surecut.certificates.uniform as module

    tally = ScoreTally.from_scores(*samples[1])
    threshold = tally.best_cut("f1").threshold
    whole = uniform_limits(FBeta(1), tally, threshold, 0.05)
    monkeypatch.setattr(module, "THRESHOLDS", 200)
    blocks = uniform_limits(FBeta(1), tally, threshold, 0.05)
    assert blocks[:2] == whole[:2]
    assert whole[2] <= blocks[2] < whole[2] + 0.05


def test_a_prior_that_is_given_is_certified_at_that_prior(samples):
    tally = ScoreTally.from_scores(*samples[0]).with_prior(0.05)
    cut = tally.best_cut("f1")
    fresh = certify(cut, *samples[1])
    fresh_tally = ScoreTally.from_scores(*samples[1])
    assert fresh.value == pytest.approx(
        float(FBeta(1).evaluate(fresh_tally.confusion_at(cut.threshold).at_prior(0.05)))
    )
    assert fresh.lower < fresh.value
    assert not fresh.exact
    assert any("0.05" in assumption for assumption in fresh.assumptions)
    assert certify(cut, tally=tally, method="uniform").lower < cut.value
    with pytest.raises(ValueError, match="prior that was given"):
        certify(cut, method="theorem")
    with pytest.raises(ValueError, match="has the prior"):
        certify(cut, tally=fresh_tally.with_prior(0.5))


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in ("precision", "recall", "specificity")])
@pytest.mark.parametrize("method", ["holdout", "uniform", "bootstrap"])
def test_every_metric_of_the_catalogue(name, method, samples):
    cut = tune_threshold(*samples[0], metric=name)
    certificate = certify(cut, *samples[1], method=method, resamples=100)
    assert certificate.lower < certificate.value < certificate.upper


def test_refusals(samples, cut):
    y, score = samples[1]
    own = tune_threshold(*samples[0], metric=lambda confusion: confusion.tp - confusion.fp)
    with pytest.raises(ValueError, match="nothing is known"):
        certify(own, y, score)
    with pytest.raises(ValueError, match="method= must be one of"):
        certify(cut, y, score, method="jackknife")
    with pytest.raises(ValueError, match="0 < confidence < 1"):
        certify(cut, y, score, confidence=95)
    with pytest.raises(ValueError, match="needs rows"):
        certify(cut)
    with pytest.raises(ValueError, match="either rows or their tally"):
        certify(cut, y, score, tally=ScoreTally.from_scores(y, score))
    with pytest.raises(ValueError, match="at least 100"):
        certify(cut, y, score, method="bootstrap", resamples=10)
    with pytest.raises(ValueError, match="without rows of the positive class"):
        certify(cut, np.zeros(10, int), score[:10], held_out=True)
    constrained = tune_threshold(*samples[0], constraint="precision>=0.5")
    with pytest.raises(ValueError, match="constraint"):
        certify(constrained, method="theorem")
    weighted = tune_threshold(*samples[0], sample_weight=np.full(800, 0.5))
    with pytest.raises(ValueError, match="weighted"):
        certify(weighted, method="theorem")
    nothing = replace(tune_threshold(*samples[0], metric="precision"), threshold=np.inf)
    with pytest.raises(ValueError, match="predicts none of them"):
        certify(nothing, y, score)


def test_row_dependent_costs_are_weights():
    """Fraud of different amounts: the weighted recall is the share of the money that is caught."""
    rng = np.random.default_rng(4)
    y, score = draw(rng, 4000)
    amount = rng.lognormal(4, 1, 4000)
    weight = np.where(y, amount, 5.0)  # a fraud costs its amount, a needless call 5
    money = Utility(fp=-1, fn=-1)
    cut = tune_threshold(y, score, metric=money, sample_weight=weight)
    costs = np.array([weight[y & (score < t)].sum() + weight[~y & (score >= t)].sum() for t in np.unique(score)])
    predicted = cut.predict(score)
    assert weight[y != predicted].sum() == pytest.approx(costs.min())
    fresh_y, fresh_score = draw(rng, 4000)
    fresh_weight = np.where(fresh_y, rng.lognormal(4, 1, 4000), 5.0)
    certificate = certify(cut, fresh_y, fresh_score, sample_weight=fresh_weight, method="bootstrap")
    assert certificate.lower < certificate.value < certificate.upper < 0


@pytest.fixture(scope="module")
def data():
    return make_classification(1800, weights=[0.7], flip_y=0.1, random_state=1)


class TestClassifier:
    def test_a_share_trains_tunes_and_certifies(self, data):
        X, y = data
        classifier = PlugInClassifier(LogisticRegression(), cv=1 / 3, confidence=0.9, random_state=0).fit(X, y)
        assert classifier.cut_.rows == 600
        assert 450 <= classifier.certificate_.rows < 600  # all but the pilot sample, which chose the cut
        assert classifier.certificate_.lower == classifier.cut_.lower_limit
        assert classifier.certificate_.confidence == 0.9
        assert classifier.certificate_.method == "holdout"
        assert not classifier.cut_.out_of_fold
        with pytest.raises(ValueError, match="certificate is for the metric"):
            classifier.retarget("f2")

    def test_a_fitted_model_tunes_and_certifies(self, data):
        X, y = data
        model = LogisticRegression().fit(X[:900], y[:900])
        classifier = PlugInClassifier(model, cv="prefit", confidence=0.95, random_state=0).fit(X[900:], y[900:])
        assert classifier.cut_.rows == 900
        assert 675 <= classifier.certificate_.rows < 900

    def test_with_shrinkage_a_quarter_tunes_and_the_rest_certifies(self, data):
        X, y = data
        model = LogisticRegression().fit(X[:900], y[:900])
        options = {"cv": "prefit", "confidence": 0.95, "shrinkage": "auto", "random_state": 0}
        classifier = PlugInClassifier(model, **options).fit(X[900:], y[900:])
        assert (classifier.cut_.rows, classifier.certificate_.rows) == (225, 675)

    def test_folds_and_refitting_are_refused(self, data):
        for parameters in ({"cv": 5}, {"cv": 1 / 3, "refit": True}):
            with pytest.raises(ValueError, match="confidence= needs one model"):
                PlugInClassifier(LogisticRegression(), confidence=0.95, **parameters).fit(*data)

    def test_a_constraint_holds_with_confidence(self, data):
        classifier = PlugInClassifier(
            LogisticRegression(), metric="recall", constraint="precision>=0.5", cv=0.5, confidence=0.9, random_state=0
        ).fit(*data)
        assert classifier.cut_.confidence == 0.9
        assert "90 % confidence" in str(classifier.cut_)


def test_a_cut_that_was_forgotten_is_asked_for():
    with pytest.raises(TypeError, match="needs a cut, bands or a rule of k labels first, got list"):
        certify([0, 1], [0.25, 0.75])
