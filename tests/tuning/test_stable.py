"""Stable cuts: thresholds for new rows, exactly placed, the same from every source, honest about what they are."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from oracle import FAMILIES, METRICS, make_sample
from surecut import (
    Confusion,
    InfeasibleError,
    MultilabelCut,
    ScoreTally,
    certify,
    tune_frame,
    tune_threshold,
    tune_thresholds,
)
from surecut.core.kernels import has_numba
from surecut.metrics import get_metric
from surecut.population import FiniteDomain
from surecut.tuning import resampling, stable
from surecut.tuning.labels import tune_tallies
from surecut.tuning.resampling import Folds


def drawn(seed: int, size: int = 400, steepness: float = 2.0, offset: float = 1.5) -> tuple:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=size)
    return rng.random(size) < 1 / (1 + np.exp(offset - steepness * z)), z


def confusion_of(labels, scores, cut, weights=None) -> Confusion:
    weight = np.ones(len(labels)) if weights is None else weights
    accepted, positive = cut.predict(scores), np.asarray(labels) == 1
    cells = (positive & accepted, ~positive & accepted, positive & ~accepted, ~positive & ~accepted)
    return Confusion(*(weight[cell].sum() for cell in cells))


# What it is worth on new rows


def regrets(seed: int, size: int, metric: str = "f1") -> tuple[float, float]:
    """Of the exact and of the stable cut, where positives are normal and one and a half to the right of negatives."""
    rng = np.random.default_rng(seed)
    positive = rng.random(size) < 0.3
    score = rng.normal(size=size) + 1.5 * positive
    grid = np.linspace(-4, 6, 4001)

    def value(threshold):
        tp, fp = 0.3 * ndtr(1.5 - threshold), 0.7 * ndtr(-threshold)
        return np.asarray(get_metric(metric).evaluate(Confusion(tp, fp, 0.3 - tp, 0.7 - fp)))

    best = value(grid).max()
    return tuple(
        best - value(tune_threshold(positive, score, metric=metric, stable=s).threshold) for s in (False, True)
    )


@pytest.mark.parametrize(("metric", "size"), [("f1", 200), ("am", 200), ("mcc", 200), ("f1", 1000)])
def test_the_regret_on_new_rows_is_about_half(metric, size):
    exact, found = np.array([regrets(seed, size, metric) for seed in range(60)]).T
    assert found.mean() < 0.65 * exact.mean()


FOUR_PEAKS = FiniteDomain(0.25, [0.1, 0.9, 0.1, 0.9])


@pytest.mark.parametrize(("metric", "size"), [("am", 2000), ("am", 100_000), ("f1", 2000), ("kappa", 2000)])
def test_several_peaks_do_not_lose(metric, size):
    """The mean of the resampled cuts lies between two peaks, and keeps a regret however many rows there are."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        score = rng.integers(4, size=size)
        positive = rng.random(size) < np.asarray(FOUR_PEAKS.eta)[score]
        worth = [
            FOUR_PEAKS.value(metric, tune_threshold(positive, score, metric=metric, stable=s).predict(np.arange(4)))
            for s in (False, True)
        ]
        assert worth[1] >= worth[0] - 1e-12


def test_the_mean_of_resampled_cuts_would_lose_there():
    lost = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score = rng.integers(4, size=2000)
        positive = rng.random(2000) < np.asarray(FOUR_PEAKS.eta)[score]
        curve = resampling.EdgeCurve.known(ScoreTally.from_scores(positive, score).entries, _objective("am"))
        lost.append(curve.loss(curve.nearest(resampling.resample(curve, np.random.default_rng(0)).position.mean())))
    assert max(lost) > 0.05


def test_a_jump_is_found_nearly_as_exactly():
    """The probability jumps from 1 % to 60 %: a mean of cuts on both sides would miss it."""
    exact, found = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        score = rng.random(3000)
        positive = rng.random(3000) < np.where(score > 0.8, 0.6, 0.01)
        for cuts, is_stable in ((exact, False), (found, True)):
            cuts.append(abs(tune_threshold(positive, score, stable=is_stable).threshold - 0.8))
    assert np.mean(found) < 1.5 * np.mean(exact) + 1e-3


def test_an_odd_label_is_not_drawn_to_the_others():
    """One label has a plateau where 19 have sigmoids: shrinkage loses half of what that label is worth."""
    lost = {"stable": [], "shrunken": []}
    margins = np.linspace(-4, 4, 4001)
    density = np.exp(-(margins**2) / 2)
    eta = np.where(margins > 0, 0.3, 0.01)
    positives, rows = (eta * density).sum(), density.sum()

    def value(threshold):
        accepted = margins >= threshold
        return 2 * (eta * density)[accepted].sum() / (positives + density[accepted].sum())

    for seed in range(12):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(200, 20))
        probability = 1 / (1 + np.exp(3 - 2 * z))
        probability[:, 0] = np.where(z[:, 0] > 0, 0.3, 0.01)
        truth = rng.random(z.shape) < probability
        exact = value(tune_thresholds(truth, z).thresholds[0])
        lost["stable"].append(exact - value(tune_thresholds(truth, z, stable=True).thresholds[0]))
        lost["shrunken"].append(exact - value(tune_thresholds(truth, z, shrinkage="auto").thresholds[0]))
    assert rows > positives
    assert np.mean(lost["shrunken"]) > 0.03
    assert np.mean(lost["stable"]) < 0.6 * np.mean(lost["shrunken"])


def test_rare_labels_gain_most():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(4200, 30))
    truth = rng.random(z.shape) < 1 / (1 + np.exp(4 - 2 * z))
    tuning, new = slice(200), slice(200, None)
    values = []
    for options in ({}, {"stable": True}):
        predicted = tune_thresholds(truth[tuning], z[tuning], **options).predict(z[new])
        values.append(np.mean([get_metric("f1").score(truth[new, i], predicted[:, i]) for i in range(30)]))
    assert values[1] > values[0] + 0.01


# It is a cut like any other: value, tie, place, constraints


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("weighing", ["unweighted", "counts", "reals"])
def test_its_value_is_what_it_is_worth_on_the_validation_rows(name, weighing):
    metric = METRICS[name]
    sample = make_sample("ties", 80, seed=len(name))
    weights = sample.weights[weighing]
    try:
        exact = tune_threshold(sample.labels, sample.scores, metric=metric, sample_weight=weights)
    except ValueError as error:
        with pytest.raises(type(error)):
            tune_threshold(sample.labels, sample.scores, metric=metric, sample_weight=weights, stable=True)
        return
    cut = tune_threshold(sample.labels, sample.scores, metric=metric, sample_weight=weights, stable=True)
    confusion = confusion_of(sample.labels, sample.scores, cut, weights)
    assert cut.value == pytest.approx(float(metric.evaluate(confusion)), rel=1e-12, nan_ok=False)
    assert cut.stability.best_value == exact.value
    assert cut.stability.best_threshold == exact.threshold
    assert cut.value <= exact.value or cut.value == pytest.approx(exact.value)
    assert type(cut).from_dict(cut.to_dict()).to_dict() == cut.to_dict()


@pytest.mark.parametrize("family", FAMILIES)
def test_hard_scores_are_placed_by_the_same_rules(family):
    sample = make_sample(family, 120)
    for metric in ("f1", "am", "mcc"):
        cut = tune_threshold(sample.labels, sample.scores, metric=metric, stable=True)
        scores = np.asarray(sample.scores, dtype=float)
        clipped = np.clip(scores, -np.inf, np.finfo(float).max)
        lower, upper = cut.interval
        accepted = cut.predict(sample.scores)
        assert upper == (clipped[accepted].min() if accepted.any() else np.inf)
        assert lower == (scores[~accepted].max() if not accepted.all() else -np.inf)
        assert cut.threshold == np.asarray(cut.threshold, dtype=np.asarray(sample.scores).dtype) or cut.predicts_nothing
        quantiles = cut.stability.quantiles
        assert list(quantiles) == sorted(quantiles)
        assert not np.isnan(quantiles).any()
        assert cut.value == pytest.approx(
            float(get_metric(metric).evaluate(confusion_of(sample.labels, sample.scores, cut))), abs=1e-12
        )


@pytest.mark.parametrize("constraint", ["precision>=0.5", "recall>=0.6", "predicted_positive_rate<=0.1"])
def test_constraints_are_met_on_the_validation_rows(constraint):
    for seed in range(5):
        labels, scores = drawn(seed)
        cut = tune_threshold(labels, scores, metric="f1", constraint=constraint, stable=True)
        assert all(one.is_met(cut.confusion) for one in cut.constraints)


def test_what_no_cut_meets_is_the_same_error():
    labels, scores = drawn(0)
    messages = []
    for is_stable in (False, True):
        with pytest.raises(InfeasibleError) as raised:
            tune_threshold(labels, scores, constraint=["precision>=0.99", "recall>=0.9"], stable=is_stable)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    truth, matrix = np.column_stack((scores > 0, ~labels, ~labels)), np.column_stack((scores, scores, scores))
    for is_stable in (False, True):
        with pytest.raises(InfeasibleError, match=r"label 1 \(and 1 other label\)"):
            tune_thresholds(truth, matrix, constraint=["precision>=0.95", "recall>=0.9"], stable=is_stable)


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        ([1], [0.5]),
        ([1, 1], [0.5, 0.7]),
        ([0, 1], [-np.inf, np.inf]),
        ([0, 1], [0.3, 0.3]),
        ([0, 0, 0, 1], [1e300, -1e300, 0.0, 1e308]),
    ],
)
def test_few_rows_have_a_stable_cut_as_well(labels, scores):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = tune_threshold(labels, scores)
        cut = tune_threshold(labels, scores, stable=True)
    assert 0 <= cut.value <= exact.value
    assert 0 < cut.stability.resamples <= resampling.RESAMPLES


def test_another_prior_and_functions_of_ones_own():
    labels, scores = drawn(1)
    cut = tune_threshold(labels, scores, metric="f1", prior=0.05, stable=True)
    assert cut.prior_given
    assert cut.prior == 0.05
    assert cut.threshold > tune_threshold(labels, scores, metric="f1", stable=True).threshold

    def informedness(confusion):
        return confusion.tp / confusion.positives - confusion.fp / confusion.negatives

    own, am = (tune_threshold(labels, scores, metric=metric, stable=True) for metric in (informedness, "am"))
    lower, upper = am.stability.near_optimal
    assert lower < own.threshold <= upper


def test_a_metric_without_bound_keeps_the_exact_cut():
    def ratio(confusion):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(confusion.tp, confusion.fp)

    labels, scores = [0, 0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0, 5.0]
    exact, found = (tune_threshold(labels, scores, metric=ratio, stable=is_stable) for is_stable in (False, True))
    assert exact.value == np.inf
    assert found.threshold == exact.threshold


# The same from every source


def test_the_order_of_rows_and_the_seed():
    labels, scores = drawn(2)
    order = np.random.default_rng(0).permutation(len(labels))
    first = tune_threshold(labels, scores, stable=True)
    assert tune_threshold(labels[order], scores[order], stable=True) == first
    others = {tune_threshold(labels, scores, stable=True, random_state=seed).stability.quantiles for seed in range(4)}
    assert len(others) > 1


def test_several_metrics_are_those_of_one_at_a_time():
    labels, scores = drawn(3)
    every = tune_threshold(labels, scores, metric=["f1", "am", "mcc"], stable=True)
    for name, cut in every.items():
        assert cut == tune_threshold(labels, scores, metric=name, stable=True)


def test_frames_groups_and_tallies_have_the_cut_of_arrays():
    labels, scores = drawn(4, size=600)
    group = np.arange(600) % 3
    frame = pd.DataFrame({"y": labels, "p": scores, "g": group})
    one = tune_threshold(labels, scores, stable=True)
    framed = tune_frame(frame, label="y", score="p", stable=True)
    assert (framed.threshold, framed.value, framed.stability) == (one.threshold, one.value, one.stability)
    tallies = [ScoreTally.from_scores(labels[group == g], scores[group == g]) for g in range(3)]
    by_tally = tune_tallies(tallies, [0, 1, 2], stable=True)
    by_frame = tune_frame(frame, label="y", score="p", by="g", stable=True)
    matrix = tune_thresholds(labels.reshape(-1, 3), scores.reshape(-1, 3), stable=True)
    for found in (by_frame, matrix):
        assert found.thresholds.tolist() == by_tally.thresholds.tolist()
        assert found.stability == by_tally.stability
    micro = tune_thresholds(labels.reshape(-1, 3), scores.reshape(-1, 3), average="micro", stable=True)
    assert micro.thresholds[0] == one.threshold
    assert micro.stability[0] == one.stability


def test_engines_have_the_cut_of_arrays():
    duckdb = pytest.importorskip("duckdb")
    labels, scores = drawn(5, size=500)
    frame = pd.DataFrame({"y": labels, "p": scores})
    found = tune_frame(duckdb.from_df(frame), label="y", score="p", stable=True)
    assert found.stability == tune_threshold(labels, scores, stable=True).stability


def test_kernels_make_no_difference(searching):
    if not has_numba():
        pytest.skip("numba is not installed")
    labels, scores = drawn(6)
    found = []
    for kernels in ("numpy", "compiled"):
        with searching(kernels=kernels):
            found.append(tune_threshold(labels, scores, metric=["f1", "am", "kappa"], stable=True))
    assert found[0] == found[1]


def test_many_rows_are_resampled_in_ranges(monkeypatch, searching):
    labels, scores = drawn(7, size=20_000)
    full = tune_threshold(labels, scores, stable=True)
    monkeypatch.setattr(stable, "TALLIED", 1000)
    monkeypatch.setattr(stable, "RANGES", 500)
    with searching(sort_below=100):
        coarse = tune_threshold(labels, scores, stable=True)
    lower, upper = coarse.interval
    assert not ((scores > lower) & (scores < upper)).any()
    assert lower in scores
    assert upper in scores
    assert coarse.value == pytest.approx(full.value, abs=full.stability.tolerance)
    low, high = full.stability.spread
    assert low <= coarse.threshold <= high


def test_sparse_scores_and_labels_without_positives():
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    truth = rng.random((300, 5)) < 0.2
    scores = np.where(rng.random(truth.shape) < 0.5, rng.random(truth.shape) + truth, 0.0)
    truth[:, 4] = False
    cut = tune_thresholds(sparse.csr_array(truth.astype(int)), sparse.csr_array(scores), stable=True)
    assert list(cut.shared) == [4]
    assert cut.stability[4] is None
    assert cut[4].stability is None
    assert cut.thresholds[4] == cut.shared_threshold
    assert isinstance(cut, MultilabelCut)
    predicted = cut.predict(sparse.csr_array(scores)).toarray()
    f1 = [get_metric("f1").score(truth[:, i], predicted[:, i]) if truth[:, i].any() else 0.0 for i in range(5)]
    assert cut.value == pytest.approx(np.mean(f1))


# What is said of it


def test_the_record_says_how_settled_it_is():
    labels, scores = drawn(8, size=2000)
    cut = tune_threshold(labels, scores, stable=True)
    found = cut.stability
    assert found.best_value >= cut.value
    lower, upper = found.near_optimal
    assert lower < cut.threshold <= upper
    inside = scores[(scores > lower) & (scores <= upper)]
    for threshold in np.quantile(inside, [0, 0.3, 0.7, 1]):
        value = get_metric("f1").score(labels, scores >= threshold)
        assert value >= found.best_value - found.tolerance - 1e-12
    few = tune_threshold(labels[:100], scores[:100], stable=True).stability
    assert few.spread[1] - few.spread[0] > found.spread[1] - found.spread[0]
    assert "not settled" in str(tune_threshold(labels[:100], scores[:100], stable=True))


def test_promises_hold_for_it_as_for_any_threshold():
    labels, scores = drawn(9, size=1000)
    cut = tune_threshold(labels, scores, stable=True)
    fresh = drawn(10, size=1000)
    assert certify(cut, *fresh).lower < certify(cut, *fresh).value
    assert certify(cut, labels, scores, method="uniform").lower < cut.value
    with pytest.raises(ValueError, match="stable"):
        certify(cut, labels, scores, method="theorem")


# Folds


def test_folds_are_drawn_whole():
    """Two models with scores of other sizes: pooled rows would settle a threshold that the models do not agree on."""
    labels, scores = drawn(11, size=600)
    fold = np.arange(600) % 2
    scores = scores + 1.5 * fold
    curve = resampling.EdgeCurve.known(ScoreTally.from_scores(labels, scores).entries, _objective("f1"))
    one_sample = resampling.resample(curve, np.random.default_rng(0)).position
    folds = Folds(scores[:, None], labels[:, None], fold)
    whole = resampling.resample(curve, np.random.default_rng(0), folds).position
    assert whole.std() > 1.5 * one_sample.std()


def test_rows_of_folds_are_all_counted():
    labels, scores = drawn(12, size=300)
    entries = ScoreTally.from_scores(labels, scores).entries
    starts = np.arange(0, len(entries), 7)
    rows = np.add.reduceat(entries.rows, starts, axis=0)
    one = Folds(scores[:, None], labels[:, None], np.zeros(300, dtype=np.int64)).drawn(entries, starts)
    counts = one(np.random.default_rng(0), 2000)
    assert (counts.sum(axis=(1, 2)) == 300).all()
    assert np.allclose(counts.mean(axis=0), rows, atol=5 * np.sqrt(rows.max() / 2000))
    assert not counts[:, rows == 0].any()


def _objective(metric: str):
    from surecut.core.rules import Objective

    return Objective(get_metric(metric))


# What an attack found


@pytest.mark.parametrize("metric", ["gilbert", "kappa", "mcc", "f0.5"])
def test_near_optimal_thresholds_hold_the_threshold(metric):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(5, 16))
        labels, scores = rng.random(size) < 0.5, np.round(rng.random(size), 1)
        labels[:2] = True, False
        cut = tune_threshold(labels, scores, metric=metric, stable=True)
        lower, upper = cut.stability.near_optimal
        assert lower < cut.threshold <= upper
        assert type(cut).from_dict(cut.to_dict()).stability == cut.stability


@pytest.mark.parametrize(
    ("truth", "scores"),
    [([[1], [0]], [[0.0], [0.0]]), ([[1, 1], [0, 0]], [[0.0, 0.5], [0.0, 0.2]]), ([[0, 1], [0, 0]], np.zeros((2, 2)))],
)
def test_labels_without_a_stored_score(truth, scores):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.asarray(scores, dtype=float))
    for average in ("macro", "micro"):
        exact, found = (tune_thresholds(truth, matrix, average=average, stable=one) for one in (False, True))
        assert found.thresholds[0] == exact.thresholds[0]
        assert found.value == exact.value


@pytest.mark.parametrize("weight", [1e15, 1e140, 1e290, 1e300])
def test_large_weights(weight):
    labels, scores = drawn(13, size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cut = tune_threshold(labels, scores, sample_weight=np.full(60, weight), stable=True)
        tune_threshold([0, 1, 1], [0.3, 0.3, 0.3], sample_weight=[weight] * 3, stable=True)
    assert cut.threshold == tune_threshold(labels, scores, sample_weight=np.ones(60) * 2, stable=True).threshold


def test_the_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(0)
    labels, scores = drawn(14, size=300)
    weights = rng.exponential(size=300)
    found = [
        tune_threshold(labels, scores, sample_weight=weights * 2.0**scale, stable=True).threshold
        for scale in (-60, -3, 0, 10)
    ]
    assert len(set(found)) == 1
    truth, matrix = labels.reshape(-1, 3), scores.reshape(-1, 3)
    many = [
        tune_thresholds(truth, matrix, sample_weight=weights[:100] * 2.0**scale, stable=True).thresholds.tolist()
        for scale in (-60, 0, 10)
    ]
    assert many[0] == many[1] == many[2]


def test_a_prior_of_one_class_and_of_small_samples():
    cut = tune_threshold([1, 1], [0.1, 0.2], metric="recall", prior=0.5, sample_weight=[1, 1], stable=True)
    assert cut.value == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = np.arange(1, 7) / 10
        tune_threshold([0, 0, 1, 0, 1, 0], scores, prior=0.5, constraint="recall>=0.5", stable=True)


@pytest.mark.parametrize("random_state", ["a", 1.5, -1, True])
def test_seeds_are_whole_numbers(random_state):
    for is_stable in (False, True):
        with pytest.raises(ValueError, match="random_state= must be a whole number"):
            tune_threshold([0, 1], [0.1, 0.2], stable=is_stable, random_state=random_state)


def test_functions_that_are_minus_infinity_or_want_whole_counts():
    def log_positives(confusion):
        with np.errstate(divide="ignore"):
            return np.log(confusion.tp) - 0.05 * confusion.fp

    def last_bits(confusion):
        return np.bitwise_and(confusion.tp, 3) - 0.01 * confusion.fp

    labels, scores = drawn(15, size=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for metric in (log_positives, last_bits):
            cut = tune_threshold(labels, scores, metric=metric, stable=True)
            assert np.isfinite(cut.stability.tolerance)
            assert cut.stability.tolerance < 10


def test_one_column_is_one_label():
    for seed in range(10):
        labels, scores = drawn(seed, size=100)
        one = tune_threshold(labels, scores, stable=True)
        assert tune_thresholds(labels[:, None], scores[:, None], stable=True)[0].stability == one.stability
        assert tune_thresholds(labels[:, None], scores[:, None], stable=True).thresholds[0] == one.threshold


def test_the_median_is_one_of_the_resampled_cuts():
    """Half of the resamples choose one peak and half another: between the two is a valley."""
    for size in (1, 2, 3, 4, 200, 201):
        position = np.where(np.arange(size) < size / 2, 10.0, 90.0)
        found = resampling.ResampledCuts(position, np.zeros(size)).clipped(50.0, 0.5)
        assert found in position
