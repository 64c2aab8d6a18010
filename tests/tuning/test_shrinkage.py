"""Shrinkage: what it promises at both ends, that it helps where labels are few, and that it does no harm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, ndtri

from surecut import certify, get_metric, tune_expected, tune_threshold, tune_thresholds
from surecut.tuning.shrinkage import GRID, check_shrinkage


def draw(random, rows, shift=-3.0, slope=2.0):
    z = random.normal(size=rows)
    eta = expit(slope * z + shift)
    return (random.random(rows) < eta), eta


def population_value(metric, threshold, score, eta):
    accepted = score >= threshold
    tp, fp = (eta * accepted).mean(), ((1 - eta) * accepted).mean()
    return metric.value(fp, eta.mean() - tp, eta.mean())


def test_kappa_zero_is_the_plain_cut():
    random = np.random.default_rng(0)
    y, s = draw(random, 300)
    assert tune_threshold(y, s, shrinkage=0) == tune_threshold(y, s)
    Y, S = np.column_stack((y, ~y)), np.column_stack((s, 1 - s))
    assert tune_thresholds(Y, S, shrinkage=0.0) == tune_thresholds(Y, S)


def test_a_large_kappa_is_the_expected_cut_of_calibrated_scores():
    random = np.random.default_rng(1)
    y, s = draw(random, 20_000)
    shrunken = tune_threshold(y, s, shrinkage=1e9)
    expected = tune_expected(s[:, None])
    assert shrunken.threshold == pytest.approx(expected.thresholds[0], abs=0.03)
    assert shrunken.shrinkage == pytest.approx(1e9)


@pytest.mark.parametrize("name", ["f1", "am"])
@pytest.mark.parametrize("warp", [lambda p: p, lambda p: p**2, lambda p: 1000 * np.log(p / (1 - p)) + 7])
def test_on_few_rows_it_is_nearer_to_the_optimum(name, warp):
    random = np.random.default_rng(2)
    metric = get_metric(name)
    _, eta = draw(random, 20_000)
    plain, shrunken = [], []
    for _ in range(100):
        y, s = draw(random, 200)
        plain.append(population_value(metric, tune_threshold(y, warp(s), metric=name).threshold, warp(eta), eta))
        cut = tune_threshold(y, warp(s), metric=name, shrinkage="auto")
        shrunken.append(population_value(metric, cut.threshold, warp(eta), eta))
    difference = np.array(shrunken) - plain
    assert difference.mean() > 2 * difference.std(ddof=1) / 10


def test_with_many_positives_it_reaches_the_plain_cut_though_the_curve_is_no_sigmoid():
    random = np.random.default_rng(3)
    metric = get_metric("f1")

    def curve(s):
        return np.where(s > 0.8, 0.05, np.where(s > 0.6, 0.5, 0.01))

    s = random.random(100_000)
    y = random.random(len(s)) < curve(s)
    population = np.linspace(0, 1, 10_001)
    values = [
        population_value(metric, tune_threshold(y, s, shrinkage=kappa).threshold, population, curve(population))
        for kappa in (0, "auto")
    ]
    assert values[1] == pytest.approx(values[0], abs=1e-3)


CURVES = {
    "plateau": lambda z: np.where(z > 0, 0.3, 0.01),
    "step": lambda z: np.where(z > 1.4, 0.6, 0.02),
    "not monotone": lambda z: np.where(z > 2.2, 0.05, np.where(z > 0.85, 0.5, 0.02)),
}
POPULATION = ndtri((np.arange(20_000) + 0.5) / 20_000)


def gains(curve, name, rows, labels, draws, score=lambda z: z):
    """Mean gain of shrinkage over none, on the population, of labels with a curve; and its standard error."""
    metric = get_metric(name)
    shift = np.linspace(-0.5, 0.5, labels) if labels > 1 else np.zeros(1)
    found = []
    for draw in range(draws):
        random = np.random.default_rng([draw, rows])
        z = random.normal(size=(rows, labels))
        y = random.random(z.shape) < curve(z - shift)
        values = []
        for kappa in (0, "auto"):
            if labels == 1:
                thresholds = [tune_threshold(y[:, 0], score(z[:, 0]), metric=name, shrinkage=kappa).threshold]
            else:
                thresholds = tune_thresholds(y, score(z), metric=name, shrinkage=kappa).thresholds
            pairs = zip(thresholds, shift, strict=True)
            values.append(
                np.mean([population_value(metric, t, score(POPULATION), curve(POPULATION - by)) for t, by in pairs])
            )
        found.append(values[1] - values[0])
    return np.mean(found), np.std(found, ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize(
    ("curve", "name", "rows", "labels", "draws"),
    [
        ("plateau", "f1", 1000, 1, 60),
        ("plateau", "am", 1000, 1, 60),
        ("step", "am", 200, 1, 60),
        ("step", "am", 1000, 1, 60),
        ("not monotone", "am", 200, 1, 60),
        ("not monotone", "am", 1000, 1, 60),
        ("plateau", "f1", 200, 20, 8),
        ("step", "am", 200, 20, 8),
        ("not monotone", "am", 200, 20, 8),
    ],
)
def test_curves_that_no_family_follows_cost_nothing(curve, name, rows, labels, draws):
    """Without corrections and limits of κ each of these lost by more than two standard errors."""
    gain, error = gains(CURVES[curve], name, rows, labels, draws)
    assert gain > -2 * error
    assert error < 0.006


def test_few_distinct_scores_cost_nothing():
    gain, error = gains(CURVES["plateau"], "f1", 1000, 1, 40, score=lambda z: np.floor(2 * np.clip(z, -2, 2)))
    assert gain > -2 * error - 1e-9


@pytest.mark.parametrize("name", ["f1", "am"])
@pytest.mark.parametrize("curve", CURVES)
def test_with_ten_thousand_positives_it_reaches_the_plain_cut(curve, name):
    gain, _ = gains(CURVES[curve], name, 100_000, 1, 2)
    assert gain == pytest.approx(0, abs=1e-3)


def test_the_result_says_what_was_chosen_and_why():
    random = np.random.default_rng(11)
    z = random.normal(size=(2000, 4))
    smooth = random.random(z.shape) < expit(2 * z - 3)
    assert tune_thresholds(smooth, z, shrinkage="auto").calibration in ("sigmoid", "beta")
    jumps = random.random(z.shape) < CURVES["step"](z)
    cut = tune_thresholds(jumps, z, shrinkage="auto")
    assert "corrected for all labels together" in cut.calibration
    assert cut.calibration in str(cut)
    odd = np.column_stack((jumps[:, 0], smooth[:, 1:]))
    assert "corrected for 1 of 4 labels" in tune_thresholds(odd, z, shrinkage="auto").calibration
    single = tune_threshold(jumps[:, 0], z[:, 0], shrinkage="auto")
    assert "its rows reject it" in single.calibration
    assert single.calibration in str(single)
    assert single.shrinkage <= jumps[:, 0].sum() / 2


def test_one_label_trusts_its_curve_no_more_than_half_its_positives():
    y, s = draw(np.random.default_rng(12), 300)
    assert tune_threshold(y, s, shrinkage="auto").shrinkage <= y.sum() / 2 + 1e-9


def test_sparse_scores_without_an_entry():
    truth = sparse.csr_matrix(np.eye(5))
    cut = tune_thresholds(truth, sparse.csr_matrix((5, 5)), shrinkage="auto")
    assert cut.value == 0
    assert (cut.thresholds == np.inf).all()


def test_many_labels_share_what_they_have_in_common():
    random = np.random.default_rng(4)
    shifts = random.uniform(-5, -1, size=30)
    columns = [draw(random, 400, shift) for shift in shifts]
    truth, scores = (np.column_stack([column[i] for column in columns]) for i in (0, 1))
    metric = get_metric("f1")
    population = [draw(random, 20_000, shift)[1] for shift in shifts]

    def mean_value(cut):
        pairs = zip(cut.thresholds, population, strict=True)
        return np.mean([population_value(metric, threshold, eta, eta) for threshold, eta in pairs])

    plain, shrunken = tune_thresholds(truth, scores), tune_thresholds(truth, scores, shrinkage="auto")
    assert mean_value(shrunken) > mean_value(plain) + 0.01
    assert shrunken.calibration in ("sigmoid", "beta")
    defined = truth.any(axis=0)
    assert (shrunken.shrinkage[defined] <= GRID[-1]).all()
    assert set(shrunken.shared) == set(np.flatnonzero(~defined).tolist())


def test_the_value_is_that_of_the_real_labels():
    random = np.random.default_rng(5)
    columns = [draw(random, 300) for _ in range(3)]
    truth, scores = (np.column_stack([column[i] for column in columns]) for i in (0, 1))
    for average in ("macro", "micro"):
        cut = tune_thresholds(truth, scores, shrinkage=50, average=average)
        plain = tune_thresholds(truth, scores, average=average)
        assert cut.value <= plain.value + 1e-12
        predicted = cut.predict(scores)
        assert (cut.confusion.tp == (predicted & truth).sum(axis=0)).all()


def test_weights_of_two_are_rows_twice():
    random = np.random.default_rng(6)
    y, s = draw(random, 200)
    once = tune_threshold(np.repeat(y, 2), np.repeat(s, 2), shrinkage=30)
    twice = tune_threshold(y, s, sample_weight=np.full(200, 2.0), shrinkage=30)
    assert twice.threshold == pytest.approx(once.threshold, abs=0.02)


@pytest.mark.parametrize(
    "scores",
    [
        np.full(60, 0.5),
        np.tile([0.0, 1.0], 30),
        np.random.default_rng(0).choice([np.inf, -np.inf, 0.0], 60),
        np.random.default_rng(0).normal(size=60) * 1e300,
        np.r_[np.zeros(59), 1e300],
        np.random.default_rng(0).integers(0, 5, 60),
        np.random.default_rng(0).normal(size=60).astype(np.float32),
    ],
    ids=["constant", "zero and one", "infinities", "huge", "outlier", "integers", "float32"],
)
@pytest.mark.parametrize("kappa", [5.0, "auto"])
def test_strange_scores(scores, kappa):
    y = np.random.default_rng(1).random(60) < 0.3
    cut = tune_threshold(y, scores, shrinkage=kappa)
    assert not np.isnan(cut.threshold)
    assert 0 <= cut.value <= 1


def test_sparse_scores():
    random = np.random.default_rng(7)
    scores = sparse.random(400, 50, density=0.2, random_state=random, format="csr")
    truth = scores.copy()
    truth.data = (random.random(scores.nnz) < scores.data**2).astype(float)
    cut = tune_thresholds(truth, scores, shrinkage="auto")
    assert cut.predict(scores).shape == (400, 50)
    assert np.isfinite(cut.value)


def test_a_constraint_is_for_the_labels_themselves():
    y, s = draw(np.random.default_rng(8), 100)
    with pytest.raises(ValueError, match="leave shrinkage=0"):
        tune_threshold(y, s, shrinkage=5, constraint="precision>=0.1")
    with pytest.raises(ValueError, match="leave shrinkage=0"):
        tune_thresholds(y[:, None], s[:, None], shrinkage=5, constraint="precision>=0.1")


@pytest.mark.parametrize("bad", ["often", -1, np.inf, np.nan, True])
def test_bad_kappas_are_told(bad):
    with pytest.raises(ValueError, match="shrinkage= must"):
        check_shrinkage(bad)


def test_the_theorem_adds_what_shrinkage_may_cost():
    y, s = draw(np.random.default_rng(9), 5000)
    plain = certify(tune_threshold(y, s), method="theorem")
    shrunken = certify(tune_threshold(y, s, shrinkage=100), method="theorem")
    assert shrunken.regret_bound > plain.regret_bound
