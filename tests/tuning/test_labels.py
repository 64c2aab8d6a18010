"""tune_thresholds, tune_tallies and tune_expected against one label at a time, and against trying every threshold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.metrics import f1_score, jaccard_score

from surecut import (
    Confusion,
    InfeasibleError,
    MultilabelCut,
    ScoreTally,
    get_metric,
    tune_expected,
    tune_threshold,
    tune_thresholds,
)
from surecut.core.settings import using
from surecut.metrics import LinearFractional
from surecut.sources.matrices import BinnedColumns, DenseSource
from surecut.tuning.labels import tune_tallies

NAMES = ["f1", "f2", "jaccard", "am", "kappa", "accuracy", "precision", "recall", "mcc", "gmean"]

ODDS = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 1, 0, 0))
"""TP/FP, which is undefined at the scores of the first positives."""

HITS_PER_MISS = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 0, 1, 0))
"""TP/FN, which is undefined at the score of the last positive."""

SCORES = {
    "normal": lambda random, shape: random.normal(size=shape),
    "far apart": lambda random, shape: random.normal(size=shape) * random.choice([0.0, 1.0, 1e100], size=shape),
    "tied": lambda random, shape: np.round(random.random(shape), 1),
    "float32": lambda random, shape: random.normal(size=shape).astype(np.float32),
    "float16": lambda random, shape: random.normal(size=shape).astype(np.float16),
    "float32 infinities": lambda random, shape: random.choice(
        [np.inf, -np.inf, np.finfo(np.float32).max, 0.0, 1.0], size=shape
    ).astype(np.float32),
    "integers": lambda random, shape: random.integers(-3, 3, size=shape),
    "infinities": lambda random, shape: random.choice([np.inf, -np.inf, 0.0, 1.0], size=shape),
    "outliers": lambda random, shape: random.normal(size=shape) * 10.0 ** random.integers(-300, 300, size=shape),
    "constant": lambda random, shape: np.full(shape, 0.3),
}


def sample(kind: str, seed: int, rows: int = 30, labels: int = 4):
    random = np.random.default_rng(seed)
    truth = (random.random((rows, labels)) < random.choice([0.1, 0.5, 0.9], size=labels)).astype(int)
    truth[0] = 1
    return truth, SCORES[kind](random, (rows, labels))


def is_undefined(metric, column):
    return (metric.needs_positives and not column.any()) or (metric.needs_negatives and column.all())


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("name", NAMES)
def test_macro_is_the_best_cut_of_each_label_bit_for_bit(kind, name, kernels_name):
    for seed in range(4):
        truth, scores = sample(kind, seed)
        metric = get_metric(name)
        if all(is_undefined(metric, column) for column in truth.T):
            continue
        with using(kernels=kernels_name):
            cut = tune_thresholds(truth, scores, metric=name)
        for i in range(truth.shape[1]):
            if is_undefined(metric, truth[:, i]):
                assert i in cut.shared
            else:
                assert cut[i] == tune_threshold(truth[:, i], scores[:, i], metric=name)


@pytest.mark.parametrize("name", [*NAMES, ODDS, HITS_PER_MISS])
@pytest.mark.parametrize("seed", range(4))
def test_both_sets_of_kernels_sort_the_same_labels(name, seed, both_kernels):
    """Matrices of all kinds, in any order in memory; many ties, classes that are absent, several blocks."""
    random = np.random.default_rng(seed)
    truth = (random.random((40, 24)) < random.choice([0.0, 0.1, 0.5, 1.0], size=24)).astype(
        [np.uint8, bool, np.int32, np.float32][seed]
    )
    scores = random.integers(-2, 4, size=truth.shape) * random.choice([1.0, 0.25, 1e300, 5e-324], size=24)
    scores += np.where(random.random(24) < 0.3, random.normal(size=truth.shape), 0.0)
    for one, other in (
        (truth, scores),
        (np.asfortranarray(truth), scores),
        (truth, np.asfortranarray(scores)),
        (truth[:, ::2], scores[::-1, 1::2]),
    ):
        other.flags.writeable = seed % 2 == 0
        cuts = []
        for kernels in both_kernels:
            with using(kernels=kernels, entries_at_once=250):
                cuts.append(tune_thresholds(one, other, metric=name))
        assert cuts[0] == cuts[1]
        np.testing.assert_array_equal(cuts[0].checksums, cuts[1].checksums)


def test_compiled_kernels_sort_labels_that_can_be_judged_in_one_go(both_kernels, monkeypatch):
    """A constraint, weights, a metric that is no ratio: these are searched."""
    truth, scores = sample("normal", 0)
    searched, entries = [], DenseSource.entries
    monkeypatch.setattr(DenseSource, "entries", lambda self, labels: searched.append(labels) or entries(self, labels))
    for kernels, number in zip(both_kernels, (1, 0), strict=True):
        with using(kernels=kernels):
            tune_thresholds(truth, scores)
        assert len(searched) == number
        searched.clear()
    for options in ({"metric": "mcc"}, {"constraint": "recall>=0.5"}, {"sample_weight": np.arange(1, 31)}):
        with using(kernels="compiled"):
            tune_thresholds(truth, scores, **options)
        assert searched
        searched.clear()
    outliers = scores * 10.0 ** np.random.default_rng(0).integers(-300, 300, size=scores.shape)  # keys of 64 bits
    with using(kernels="compiled"):
        tune_thresholds(truth, outliers)
    assert searched


@pytest.mark.parametrize("kind", SCORES)
def test_weights_count_rows(kind):
    truth, scores = sample(kind, 0)
    weights = np.random.default_rng(1).integers(0, 3, size=len(truth))
    repeated = tune_thresholds(np.repeat(truth, weights, axis=0), np.repeat(scores, weights, axis=0))
    weighted = tune_thresholds(truth, scores, sample_weight=weights)
    assert weighted.thresholds.tolist() == repeated.thresholds.tolist()
    assert weighted.value == pytest.approx(repeated.value)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("search_from", [0, 20_000])
def test_micro_is_the_best_cut_of_all_entries(kind, order, search_from):
    truth, scores = sample(kind, 2)
    with using(sort_below=search_from):
        cut = tune_thresholds(np.asarray(truth, order=order), np.asarray(scores, order=order), average="micro")
    pooled = tune_threshold(truth.ravel(), scores.ravel())
    assert set(cut.thresholds) == {pooled.threshold}
    assert cut.value == pooled.value
    assert f1_score(truth, cut.predict(scores), average="micro") == pytest.approx(cut.value)


def test_micro_with_weights_is_the_best_cut_of_weighted_entries():
    truth, scores = sample("normal", 3)
    weights = np.random.default_rng(0).random(len(truth))
    cut = tune_thresholds(truth, scores, average="micro", sample_weight=weights)
    pooled = tune_threshold(truth.ravel(), scores.ravel(), sample_weight=np.repeat(weights, truth.shape[1]))
    assert cut.thresholds[0] == pooled.threshold
    assert cut.value == pytest.approx(pooled.value)


@pytest.fixture
def both_kernels():
    """NumPy's, which are the reference, and the compiled ones."""
    pytest.importorskip("numba")
    return "numpy", "compiled"


@pytest.fixture(params=["numpy", "compiled"])
def searching_in_bins(request):
    """Small matrices are searched as large ones are, by both sets of kernels, in bins of `bits`."""
    if request.param == "compiled":
        pytest.importorskip("numba")

    def context(bits, **sizes):
        binned = {"binned_rows": 0, "binned_size": 0, "copied_rows": 17, "copied_share": 1, "label_bits": bits}
        return using(kernels=request.param, **binned, **sizes)

    return context


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize(("order", "bits", "group"), [("C", 2, 2), ("F", 5, 16), ("C", 11, 2)])  # none knows the others
def test_the_search_in_bins_is_exact(kind, bits, order, group, searching_in_bins, monkeypatch):
    truth, scores = (np.asarray(matrix, order=order) for matrix in sample(kind, bits, rows=200, labels=5))
    truth[:, 1] = 0
    truth[1:, 2] = 0
    truth[:, 3] = 1
    expected = {name: tune_thresholds(truth, scores, metric=name) for name in NAMES}
    searched = []
    count = BinnedColumns.count

    def counted(self, every=False):
        searched.append(every)
        return count(self, every)

    monkeypatch.setattr(BinnedColumns, "count", counted)
    with searching_in_bins(bits, label_group=group, label_sample=4 * group, labels_at_once=group):
        for name, cut in expected.items():
            assert tune_thresholds(truth, scores, metric=name) == cut
    assert searched
    assert not any(searched)


def test_compiled_kernels_count_columns_where_they_stand(both_kernels, monkeypatch):
    truth, scores = sample("normal", 0, rows=200)
    copied, copy = [], DenseSource._copied
    monkeypatch.setattr(DenseSource, "_copied", lambda self, *given: copied.append(given) or copy(self, *given))
    for kernels in both_kernels:
        copied.clear()
        with using(kernels=kernels, binned_rows=0, binned_size=0):
            tune_thresholds(truth, scores)
        assert bool(copied) == (kernels == "numpy")


@pytest.mark.parametrize("seed", range(6))
def test_the_search_in_bins_keeps_to_the_rule_for_ties(seed, searching_in_bins):
    """Few rows and few scores: many cuts tie, and edges of bins among them."""
    random = np.random.default_rng(seed)
    truth = (random.random((12, 40)) < 0.5).astype([np.uint8, bool, float][seed % 3])
    scores = random.integers(-2, 3, size=truth.shape) * random.choice([1.0, 0.25, 1e300, 5e-324], size=40)
    expected = {name: tune_thresholds(truth, scores, metric=name) for name in NAMES}
    with searching_in_bins(3):
        for name, cut in expected.items():
            assert tune_thresholds(truth, scores, metric=name) == cut


def test_the_search_in_bins_says_where_a_score_is_missing(searching_in_bins):
    truth, scores = sample("normal", 0)
    scores[7, 2] = np.nan
    with searching_in_bins(5), pytest.raises(ValueError, match="NaN, first in row 7 of column 2"):
        tune_thresholds(truth, scores)


def best_by_brute_force(metric, truth, scores):
    """Every threshold of one label with absent scores as −inf, which nothing predicts; the highest of ties."""
    best = None
    for threshold in [math.inf, *sorted(set(scores[scores > -np.inf].tolist()), reverse=True)]:
        predicted = (scores >= threshold) & (threshold < math.inf)
        tp, fp = int((predicted & (truth == 1)).sum()), int((predicted & (truth == 0)).sum())
        confusion = Confusion(tp, fp, int(truth.sum()) - tp, int((truth == 0).sum()) - fp)
        value = metric.evaluate(confusion)
        if not np.isnan(value) and (best is None or value > best[0] + 1e-12):
            best = (value, threshold, confusion)
    return best


@pytest.mark.parametrize("name", ["f1", "accuracy", "am"])
@pytest.mark.parametrize("seed", range(8))
def test_an_absent_score_is_never_predicted(name, seed):
    random = np.random.default_rng(seed)
    rows, labels = 25, 5
    present = random.random((rows, labels)) < 0.4
    dense = np.where(present, np.round(random.normal(size=(rows, labels)), 1), -np.inf)
    row, column = np.nonzero(present)
    scores = sparse.csr_array((dense[present], (row, column)), shape=(rows, labels))
    truth = (random.random((rows, labels)) < 0.4).astype(int)
    metric = get_metric(name)
    for given in (truth, sparse.csr_matrix(truth), sparse.coo_array(truth)):
        cut = tune_thresholds(given, scores, metric=name)
        for i in range(labels):
            value, threshold, confusion = best_by_brute_force(metric, truth[:, i], dense[:, i])
            assert cut[i].interval[1] == threshold
            assert cut[i].confusion == confusion
            assert cut[i].value == pytest.approx(value)
        predicted = cut.predict(scores)
        assert sparse.issparse(predicted)
        expected = (dense >= cut.thresholds) & (cut.thresholds < np.inf) & (dense > -np.inf)
        assert (predicted.toarray() == expected).all()
    micro = tune_thresholds(truth, scores, metric=name, average="micro")
    value, threshold, confusion = best_by_brute_force(metric, truth.ravel(), dense.ravel())
    assert micro.intervals[0, 1] == threshold
    assert micro.value == pytest.approx(value)
    assert micro.confusion.tp.sum() == confusion.tp


def test_a_stored_zero_is_a_score_and_a_stored_minus_infinity_is_absent():
    scores = sparse.csr_array((np.array([0.0, -np.inf, 1.0]), ([0, 1, 2], [0, 0, 0])), shape=(4, 1))
    cut = tune_thresholds([[1], [1], [1], [0]], scores)
    assert cut.thresholds.tolist() == [0.0]
    assert cut.predict(scores).toarray().ravel().tolist() == [True, False, True, False]


def test_a_matrix_without_any_score_predicts_nothing():
    cut = tune_thresholds([[1, 0], [0, 1]], sparse.csr_array((2, 2)), average="macro")
    assert cut.thresholds.tolist() == [math.inf, math.inf]
    assert tune_thresholds([[1, 0], [0, 1]], sparse.csr_array((2, 2)), average="micro").value == 0


def test_many_sparse_labels():
    random = np.random.default_rng(0)
    scores = sparse.random(500, 20_000, density=0.002, random_state=random, format="csr")
    truth = sparse.random(500, 20_000, density=0.001, random_state=random, format="csr").astype(bool)
    cut = tune_thresholds(truth, scores)
    counts = np.asarray(truth.sum(axis=0)).ravel()
    assert set(cut.shared) == set(np.flatnonzero(counts == 0).tolist())
    dense = scores[:, [7]].toarray().ravel()
    dense[dense == 0] = -np.inf
    some = int(np.flatnonzero(counts > 0)[3])
    column = scores[:, [some]].toarray().ravel()
    column[column == 0] = -np.inf
    best = best_by_brute_force(get_metric("f1"), truth[:, [some]].toarray().ravel().astype(int), column)
    assert cut[some].interval[1] == best[1]


def test_labels_without_a_positive_take_the_shared_threshold_and_say_so():
    truth, scores = sample("normal", 5)
    truth[:, 2] = 0
    micro = tune_thresholds(truth, scores, average="micro")
    cut = tune_thresholds(truth, scores)
    assert cut.shared == {2: "no positive row"}
    assert cut.thresholds[2] == cut.shared_threshold == micro.thresholds[0]
    assert cut.per_label[2] == 0
    assert cut.value == pytest.approx(f1_score(truth, cut.predict(scores), average="macro", zero_division=0))
    assert "1 took the shared threshold" in str(cut)


def test_labels_of_one_class_are_left_out_of_a_mean_that_needs_both():
    truth, scores = sample("normal", 5)
    truth[:, 1], truth[:, 2] = 1, 0
    cut = tune_thresholds(truth, scores, metric="am")
    assert cut.shared == {1: "no negative row", 2: "no positive row"}
    assert cut.left_out == 2
    assert cut.value == pytest.approx(np.mean([cut[0].value, cut[3].value]))
    assert "2 left out of the mean" in str(cut)


def test_a_metric_that_no_label_defines_is_an_error():
    with pytest.raises(ValueError, match="without rows of the positive class"):
        tune_thresholds(np.zeros((4, 2)), np.random.default_rng(0).random((4, 2)))
    with pytest.raises(ValueError, match="undefined for all 2 labels"):
        tune_thresholds([[1, 0], [1, 0]], [[0.1, 0.2], [0.3, 0.4]], metric="am")


def test_a_constraint_holds_for_every_label_or_names_the_one_that_cannot():
    truth, scores = sample("normal", 7, rows=200)
    cut = tune_thresholds(truth, scores, metric="recall", constraint="predicted_positive_rate<=0.3")
    assert (cut.confusion.predicted_positives <= 60).all()
    for i in range(4):
        one = tune_threshold(truth[:, i], scores[:, i], metric="recall", constraint="predicted_positive_rate<=0.3")
        assert cut[i] == one
    truth[:, 0], scores[0, 0] = [0, 1] + [0] * 198, 99
    scores[1, 0] = -99
    with pytest.raises(InfeasibleError, match=r"label 'rare'.*precision>=0.99"):
        tune_thresholds(truth[:, :1], scores[:, :1], constraint="precision>=0.99", labels=["rare"])


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["normal", "tied", "float32", "integers", "constant"])
def test_the_samples_average_is_that_of_trying_every_threshold(kind, zero_division):
    for seed in range(3):
        truth, scores = sample(kind, seed)
        truth[3:6] = 0  # rows without labels
        cut = tune_thresholds(truth, scores, average="samples", zero_division=zero_division)
        thresholds = [math.inf, *sorted(set(scores.ravel().tolist()), reverse=True)]
        values = [
            f1_score(truth, (scores >= t) & (t < math.inf), average="samples", zero_division=zero_division)
            for t in thresholds
        ]
        best = next(i for i, value in enumerate(values) if value >= max(values) - 1e-12)
        assert cut.intervals[0, 1] == thresholds[best]
        assert cut.value == pytest.approx(values[best])


def test_the_samples_average_of_sparse_scores_and_weights():
    random = np.random.default_rng(3)
    dense = np.where(random.random((20, 6)) < 0.5, np.round(random.random((20, 6)), 1) + 0.1, 0)
    truth = (random.random((20, 6)) < 0.4).astype(int)
    weights = random.integers(1, 4, size=20)
    cut = tune_thresholds(truth, sparse.csr_array(dense), metric="jaccard", average="samples", sample_weight=weights)
    values = {
        t: jaccard_score(truth, dense >= t, average="samples", sample_weight=weights, zero_division=0)
        for t in sorted(set(dense[dense > 0]), reverse=True)
    }
    assert cut.value == pytest.approx(max(values.values()))


def test_the_samples_average_takes_no_constraint_and_no_shrinkage():
    truth, scores = sample("normal", 0)
    with pytest.raises(ValueError, match="under a constraint"):
        tune_thresholds(truth, scores, average="samples", constraint="precision>=0.1")
    with pytest.raises(ValueError, match="average='samples' cannot be tuned with shrinkage"):
        tune_thresholds(truth, scores, average="samples", shrinkage=10)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_tallies_give_the_same_as_matrices(average):
    truth, scores = sample("tied", 1)
    truth[:, 3] = 0
    tallies = [ScoreTally.from_scores(truth[:, i], scores[:, i]) for i in range(4)]
    assert tune_tallies(tallies, range(4), average=average) == tune_thresholds(truth, scores, average=average)


@pytest.mark.parametrize("shrinkage", [3.0, "auto"])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_tallies_are_smoothed_as_matrices_are(average, shrinkage):
    truth, scores = sample("normal", 1)
    truth[:, 3] = 0
    tallies = [ScoreTally.from_scores(truth[:, i], scores[:, i]) for i in range(4)]
    found = tune_tallies(tallies, range(4), average=average, shrinkage=shrinkage)
    assert found == tune_thresholds(truth, scores, average=average, shrinkage=shrinkage)


def test_tallies_of_different_dtypes_keep_theirs():
    columns = [np.array([1, 2, 3, 4]), np.array([0.2, 0.3, 0.1, 0.5], dtype=np.float32), np.array([0.1, 0.3, 0.2, 0.7])]
    tallies = [ScoreTally.from_scores([0, 0, 1, 1], column) for column in columns]
    cut = tune_tallies(tallies, "abc")
    assert cut.thresholds.tolist() == [tally.best_cut("f1").threshold for tally in tallies]


def test_a_metric_that_is_undefined_above_some_positives():
    truth, scores = np.array([1, 1, 1, 0, 0, 1, 0]), np.arange(7, 0, -1.0)
    assert tune_thresholds(truth[:, None], scores[:, None], metric=ODDS).value == 3.0
    assert tune_threshold(truth, scores, metric=ODDS).value == 3.0


def test_tallies_that_cannot_be_tuned_together_are_refused():
    tally = ScoreTally.from_scores([0, 1], [0.1, 0.9])
    with pytest.raises(ValueError, match="one tally per label, and at least one: 2 labels, 1 tallies"):
        tune_tallies([tally], ["a", "b"])
    with pytest.raises(ValueError, match="prior that is given is for a single cut"):
        tune_tallies([tally, tally.with_prior(0.2)], ["a", "b"])


def test_tallies_may_have_different_rows_and_any_names():
    tallies = [ScoreTally.from_scores([0, 1], [0.1, 0.9]), ScoreTally.from_scores([0, 1, 1], [0.5, 0.4, 0.8])]
    cut = tune_tallies(tallies, [("eu", 1), ("us", 2)], average="micro")
    pooled = tune_threshold([0, 1, 0, 1, 1], [0.1, 0.9, 0.5, 0.4, 0.8])
    assert cut["eu", 1].threshold == pooled.threshold
    assert cut.value == pooled.value
    assert cut.rows.tolist() == [2, 3]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_name_the_labels_and_may_have_other_orders(make):
    truth, scores = sample("normal", 4)
    names = ["a", "b", "c", "d"]
    frame = make({name: scores[:, i] for i, name in enumerate(names)})
    labels = make({name: truth[:, names.index(name)] for name in "dbca"})
    cut = tune_thresholds(labels, frame)
    assert cut.labels == tuple(names)
    assert cut.thresholds.tolist() == tune_thresholds(truth, scores).thresholds.tolist()
    reordered = make({name: scores[:, names.index(name)] for name in "dcba"})
    assert (cut.predict(reordered) == cut.predict(scores)).all()
    with_others = make({"row": scores[:, 0]} | {name: scores[:, names.index(name)] for name in "dcba"})
    assert (cut.predict(with_others) == cut.predict(scores)).all()
    with pytest.raises(ValueError, match="no column for 1 of the cut's 4 labels, such as 'd'"):
        cut.predict(make(dict.fromkeys("abce", scores[:, 0])))
    with pytest.raises(ValueError, match="different columns"):
        tune_thresholds(labels, make({f"score_{name}": scores[:, 0] for name in names}))


@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        ([0, 1], [0.1, 0.2], "rows and columns"),
        ([[0, 1]], [[0.1, 0.2, 0.3]], "one shape"),
        ([[0, 2]], [[0.1, 0.2]], "found 2"),
        ([["a"], ["b"]], [[0.1], [0.2]], "MultiLabelBinarizer"),
        ([[1, 0], [0, 1]], [[0.1, np.nan], [0.2, 0.3]], "row 0 of column 1"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "empty"),
        ([[0, 1], [1]], [[0.1, 0.2], [0.3, 0.4]], "ragged"),
    ],
)
def test_bad_input_is_told(truth, scores, message):
    with pytest.raises(ValueError, match=message):
        tune_thresholds(truth, scores)


def test_a_bad_average_is_told():
    with pytest.raises(ValueError, match="macro, micro, samples"):
        tune_thresholds([[0, 1]], [[0.1, 0.2]], average="weighted")


def test_one_label_and_one_row():
    assert tune_thresholds([[1]], [[0.5]]).thresholds.tolist() == [0.5]
    assert tune_thresholds([[1]], [[0.5]], average="samples").value == 1


@pytest.mark.parametrize("name", ["f1", "am", "kappa", "accuracy"])
def test_expected_thresholds_are_best_for_the_expected_confusion(name):
    random = np.random.default_rng(0)
    probability = np.round(random.random((40, 3)), 2)
    metric = get_metric(name)
    cut = tune_expected(probability, metric=name)
    for i in range(3):
        p = probability[:, i]
        values = []
        for t in sorted(set(p), reverse=True):
            tp, fp = p[p >= t].sum(), (1 - p[p >= t]).sum()
            values.append(metric.evaluate(Confusion(tp, fp, p.sum() - tp, (1 - p).sum() - fp)))
        assert cut.per_label[i] == pytest.approx(max(values))
    micro = tune_expected(probability, metric=name, average="micro")
    single = tune_expected(probability.reshape(-1, 1), metric=name)
    assert micro.thresholds[0] == pytest.approx(single.thresholds[0])
    assert micro.value == pytest.approx(single.value)
    assert "expected micro" in str(micro)


def test_expected_samples_average():
    probability = np.array([[0.9, 0.2], [0.6, 0.7]])
    cut = tune_expected(probability, average="samples")
    values = {}
    for t in probability.ravel():
        accepted = probability >= t
        tp = (probability * accepted).sum(axis=1)
        values[t] = (2 * tp / (accepted.sum(axis=1) + probability.sum(axis=1))).mean()
    assert cut.value == pytest.approx(max(values.values()))


def test_expected_thresholds_of_sparse_probabilities_and_of_nonsense():
    probability = sparse.csr_array(np.array([[0.9, 0.0], [0.0, 0.6]]))
    cut = tune_expected(probability)
    assert cut.predict(probability).toarray().tolist() == [[True, False], [False, True]]
    with pytest.raises(ValueError, match="between 0 and 1"):
        tune_expected([[1.5]])
    with pytest.raises(ValueError, match="between 0 and 1"):
        tune_expected([[np.nan]])


def test_the_result_is_a_multilabel_cut():
    assert isinstance(tune_thresholds([[0, 1], [1, 0]], [[0.1, 0.2], [0.3, 0.1]]), MultilabelCut)


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
@pytest.mark.parametrize(
    "sizes", [{}, {"entries_at_once": 1, "matrix_rows": 1}, {"sort_below": 0}, {"binned_rows": 0, "binned_size": 0}]
)
def test_nan_is_named_by_row_and_column(average, sizes):
    Y = np.tile([[1, 0, 1], [0, 1, 0]], (4, 1))
    scores = np.arange(24.0).reshape(8, 3)
    scores[5, 1] = scores[6, 0] = np.nan
    with using(**sizes), pytest.raises(ValueError, match="NaN, first in row 5 of column 1:"):
        tune_thresholds(Y, scores, average=average)
    weight = np.ones(8)
    weight[2] = 0  # rows of weight zero do not shift the others
    with using(**sizes), pytest.raises(ValueError, match="NaN, first in row 5 of column 1:"):
        tune_thresholds(Y, scores, average=average, sample_weight=weight)


@pytest.mark.parametrize("sizes", [{}, {"entries_at_once": 1}, {"entries_at_once": 1, "cores": 1}])
def test_the_first_infeasible_label_is_named_whatever_the_blocks(sizes):
    Y = np.tile([[0], [1]], (20, 6))
    scores = np.where(np.arange(6) % 2, 1 - Y, Y)  # b, d and f are ranked the wrong way
    for matrix in (scores, sparse.csr_array(scores + 1)):
        with using(**sizes), pytest.raises(InfeasibleError, match=r"^label 'b' \(and 2 other labels\): no cut meets"):
            tune_thresholds(Y, matrix, metric="recall", constraint="precision>=0.99", labels=list("abcdef"))
