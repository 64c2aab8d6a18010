"""Certificates of many labels: rows are independent, labels of a row are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, special, stats

from surecut import Confusion, MissingRowsWarning, MultilabelCut, ScoreTally, certify, tune_threshold, tune_thresholds
from surecut.averages import averaged_value
from surecut.certificates import bootstrap
from surecut.certificates.averages import label_limits, mean_limits
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certifying import METHODS
from surecut.certificates.clusters import cluster_limits, terms_of
from surecut.certificates.evidence import row_values
from surecut.certificates.label_rows import LabelRows
from surecut.certificates.limits import value_limits
from surecut.metrics import get_metric

ERROR = 0.1


def draw(rng, rows, labels=8, correlation=0.8):
    """Labels and scores; the labels of one row go up and down together."""

    def normal():
        shared = rng.standard_normal((rows, 1))
        return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal((rows, labels))

    score = special.expit(2 * normal() - 2 + np.linspace(-1, 1, labels))
    return (special.ndtr(normal()) < score).astype(int), score


def cells(truth, scores, threshold=0.35):
    return ClusterCells.of_matrices(truth, scores >= threshold)


def most_failures(repetitions, error=ERROR):
    return stats.binom.ppf(0.999, repetitions, error)


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return draw(rng, 700), draw(rng, 1200)


@pytest.fixture(scope="module")
def population():
    """The counts of many rows, as good as the truth."""
    return cells(*draw(np.random.default_rng(99), 200_000)).confusion()


def test_the_cells_of_matrices_are_those_of_each_label(samples):
    truth, scores = samples[0]
    found = cells(truth, scores)
    for i in range(truth.shape[1]):
        expected = Confusion.from_predictions(truth[:, i], scores[:, i] >= 0.35)
        assert found.confusion()[i] == expected
    assert np.array_equal(found.pooled().sum(axis=0), cells_of(found.confusion()).sum(axis=0))
    grouped = found.by_group(np.arange(len(truth)) // 7)
    assert len(grouped) == 100
    assert grouped.largest == 7 * truth.shape[1]
    assert np.array_equal(cells_of(grouped.confusion()), cells_of(found.confusion()))
    weights = np.random.default_rng(0).normal(size=(truth.shape[1], 4))
    each = [found.of_label(i) @ weights[i] for i in range(truth.shape[1])]
    assert np.allclose(found.worth(weights), np.sum(each, axis=0))


@pytest.mark.parametrize("name", ["f1", "am", "kappa"])
def test_micro_covers_although_labels_depend_on_each_other(name, population):
    metric, rng, repetitions = get_metric(name), np.random.default_rng(1), 40
    actual = float(metric.evaluate(Confusion(*cells_of(population).sum(axis=0))))
    limits = []
    for _ in range(repetitions):
        drawn = cells(*draw(rng, 120))
        limits.append(cluster_limits(metric, drawn.pooled(), drawn.largest, ERROR))
    lower, upper = np.array(limits).T
    assert (lower > actual).sum() <= most_failures(repetitions)
    assert (upper < actual).sum() <= most_failures(repetitions)


def test_counting_pairs_as_if_they_were_independent_would_fail(population):
    metric, rng, repetitions = get_metric("f1"), np.random.default_rng(1), 500
    actual = float(metric.evaluate(Confusion(*cells_of(population).sum(axis=0))))
    counts = [cells(*draw(rng, 120)).pooled().sum(axis=0) for _ in range(repetitions)]
    assert sum(value_limits(metric, of_draw, ERROR)[0] > actual for of_draw in counts) > most_failures(repetitions)


@pytest.mark.parametrize("name", ["f1", "am", "accuracy", "f2"])
def test_macro_covers_whatever_holds_between_labels(name, population):
    metric, rng, repetitions = get_metric(name), np.random.default_rng(2), 10 if name == "f2" else 40
    actual = float(np.mean(metric.evaluate(population)))
    failures = np.zeros(2)
    for _ in range(repetitions):
        before, drawn = cells(*draw(rng, 400)).confusion(), cells(*draw(rng, 800))
        lower, upper = mean_limits(terms_of(metric), drawn, before, ERROR)
        failures += lower > actual, upper < actual
    assert (failures <= most_failures(repetitions)).all()


@pytest.mark.parametrize("name", ["f1", "am", "accuracy"])
def test_macro_is_tighter_than_the_labels_limits_averaged(name):
    metric, rng = get_metric(name), np.random.default_rng(3)
    before, drawn = (cells(*draw(rng, 4_000, correlation=0.0)) for _ in range(2))
    terms = terms_of(metric)
    totals = cells_of(drawn.confusion())
    alone = sum(f * label_limits(n, d, totals, ERROR / 8 / len(terms))[0].mean() for f, n, d in terms)
    value = float(np.mean(metric.evaluate(drawn.confusion())))
    lower, upper = mean_limits(terms, drawn, before.confusion(), ERROR)
    assert lower < value < upper
    assert value - lower < 0.6 * (value - alone)


def test_a_reference_that_is_far_off_costs_only_width(population):
    metric, rng = get_metric("f1"), np.random.default_rng(4)
    off = Confusion(population.tp / 4, population.fp * 2, population.fn * 2, population.tn)
    drawn = cells(*draw(rng, 3_000))
    lower, upper = mean_limits(terms_of(metric), drawn, off, ERROR)
    assert lower < float(np.mean(metric.evaluate(population))) < upper


def test_samples_covers():
    rng, repetitions = np.random.default_rng(5), 40
    cut = tune_thresholds(*draw(rng, 500), average="samples", zero_division=1.0)
    truth, scores = draw(rng, 100_000)
    predicted = cut.predict(scores)
    with np.errstate(invalid="ignore"):
        each = 2 * (predicted & (truth == 1)).sum(1) / (predicted.sum(1) + truth.sum(1))
    actual = np.where(np.isnan(each), 1.0, each).mean()
    found = [certify(cut, *draw(rng, 200), confidence=1 - ERROR) for _ in range(repetitions)]
    assert sum(one.lower > actual for one in found) <= most_failures(repetitions)
    assert sum(one.upper < actual for one in found) <= most_failures(repetitions)
    assert abs(np.mean([one.value for one in found]) - actual) < 0.02


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_uniform_and_bootstrap_keep_their_promise_on_the_tuning_rows(average, population):
    rng, repetitions = np.random.default_rng(6), 6
    fresh = draw(rng, 50_000)
    uniform = regret = resampled = 0
    best = tune_thresholds(*fresh, average=average).value
    for _ in range(repetitions):
        rows = draw(rng, 600)
        cut = tune_thresholds(*rows, average=average)
        confusion = ClusterCells.of_matrices(fresh[0], cut.predict(fresh[1])).confusion()
        actual = averaged_value(cut.metric, cut.average, confusion)
        found = certify(cut, *rows, method="uniform", confidence=1 - ERROR)
        uniform, regret = uniform + (found.lower > actual), regret + (best - actual > found.regret_bound)
        resampled += certify(cut, *rows, method="bootstrap", confidence=1 - ERROR, resamples=200).lower > actual
    assert max(uniform, regret) <= most_failures(repetitions)
    assert resampled <= most_failures(repetitions, ERROR + 0.1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
@pytest.mark.parametrize("name", ["f1", "am", "kappa"])
def test_every_method_says_something_or_why_not(method, average, name, samples):
    cut = tune_thresholds(*samples[0], metric=name, average=average)
    if average == "samples" and method in ("uniform", "theorem"):
        with pytest.raises(ValueError, match="samples average"):
            certify(cut, *samples[1], method=method)
        return
    found = certify(cut, *samples[1], method=method, resamples=100)
    assert found.lower < found.value < found.upper
    assert found.metric == f"{average} {cut.metric.name}"
    assert (found.regret_bound is None) == (method in ("holdout", "bootstrap"))
    assert found.vacuous == (method == "theorem")
    assert f"{average} {cut.metric.name}" in str(found)


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
def test_the_rows_that_tuned_are_refused_by_holdout(average, samples, tmp_path):
    cut = tune_thresholds(*samples[0], average=average)
    cut.save(tmp_path / "cut.json")
    for known in (cut, MultilabelCut.load(tmp_path / "cut.json")):
        for rows in (samples[0], tuple(matrix[::-1] for matrix in samples[0])):
            with pytest.raises(ValueError, match="validation rows"):
                certify(known, *rows)
    with pytest.raises(ValueError, match="pooled from folds"):
        certify(replace(cut, out_of_fold=True), *samples[0], method="bootstrap")


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
@pytest.mark.parametrize("method", ["holdout", "uniform", "bootstrap"])
def test_sparse_rows_are_as_good_as_dense_ones(average, method, samples):
    if (average, method) == ("samples", "uniform"):
        pytest.skip("refused")
    cut = tune_thresholds(*samples[0], average=average)
    truth, scores = samples[1]
    some = scores > 0.2
    as_sparse = certify(cut, sparse.csr_array(truth), sparse.csr_array(scores * some), method=method, resamples=100)
    as_dense = certify(cut, truth, np.where(some, scores, -np.inf), method=method, resamples=100)
    assert as_sparse.lower == pytest.approx(as_dense.lower, abs=1e-12)
    assert as_sparse.value == pytest.approx(as_dense.value, abs=1e-12)
    assert as_sparse.regret_bound == as_dense.regret_bound


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_tallies_alone_allow_wider_limits(average, samples):
    cut = tune_thresholds(*samples[0], average=average)
    truth, scores = samples[1]
    tallies = [ScoreTally.from_scores(truth[:, i], scores[:, i]) for i in range(truth.shape[1])]
    rows, alone = certify(cut, *samples[1]), certify(cut, tally=tallies)
    assert alone.value == pytest.approx(rows.value)
    assert alone.lower < rows.lower
    assert certify(cut, tally=tallies, method="uniform") == certify(cut, *samples[1], method="uniform")
    with pytest.raises(ValueError, match="whole rows are resampled"):
        certify(cut, tally=tallies, method="bootstrap")
    with pytest.raises(ValueError, match="a tally for each of the 8 labels"):
        certify(cut, tally=tallies[:3])
    with pytest.raises(ValueError, match="pass a tally of each"):
        certify(cut, tally=tallies[0])


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("method", ["holdout", "bootstrap"])
def test_groups_of_rows(average, method, samples):
    cut = tune_thresholds(*samples[0], average=average)
    truth, scores = (np.tile(matrix[:400], (3, 1)) for matrix in samples[1])  # every row thrice
    rows = certify(cut, truth, scores, method=method, resamples=300)
    groups = certify(cut, truth, scores, method=method, resamples=300, groups=np.tile(np.arange(400), 3))
    assert groups.value == pytest.approx(rows.value)
    assert groups.lower < rows.lower
    with pytest.raises(ValueError, match="not independent"):
        certify(cut, truth, scores, method="uniform", groups=np.tile(np.arange(400), 3))


def test_a_label_without_positives_counts_at_its_worst_and_is_said(samples):
    cut = tune_thresholds(*samples[0])
    truth, scores = samples[1]
    emptied = truth.copy()
    emptied[:, 0] = 0
    for method in ("holdout", "uniform"):
        found = certify(cut, emptied, scores, method=method)
        assert any(one.startswith("of 1 label ") for one in found.assumptions)
        assert found.lower < certify(cut, truth, scores, method=method).lower
    both = certify(tune_thresholds(*samples[0], metric="am"), emptied, scores)
    assert both.lower < both.value < both.upper


def test_whole_weights_count_rows_and_others_are_resampled(samples):
    cut = tune_thresholds(*samples[0])
    truth, scores = samples[1]
    times = np.random.default_rng(0).integers(0, 3, len(truth))
    repeated = tuple(np.concatenate([matrix[times > 0], matrix[times > 1]]) for matrix in (truth, scores))
    counted = certify(cut, truth, scores, sample_weight=times, weights="counts")
    assert counted.lower == certify(cut, *repeated).lower
    with pytest.raises(ValueError, match="not numbers of rows"):
        certify(cut, truth, scores, sample_weight=times + 0.5, weights="counts")
    weighted = certify(cut, truth, scores, sample_weight=times + 0.5, method="bootstrap", resamples=100)
    assert weighted.lower < weighted.value


def test_columns_are_found_by_their_names(samples):
    pandas = pytest.importorskip("pandas")
    names = [f"label {i}" for i in range(8)]
    frames = [pandas.DataFrame(matrix, columns=names) for matrix in samples[0]]
    cut = tune_thresholds(*frames)
    fresh = [pandas.DataFrame(matrix, columns=names) for matrix in samples[1]]
    assert certify(cut, *fresh) == certify(cut, *(frame[names[::-1]] for frame in fresh))
    with pytest.raises(ValueError, match="8 labels"):
        certify(cut, *(frame[names[:3]] for frame in fresh))


def test_the_theorem_refuses_what_it_does_not_cover(samples):
    constrained = tune_thresholds(*samples[0], constraint="recall>=0.5")
    with pytest.raises(ValueError, match="without constraint"):
        certify(constrained, method="theorem")
    assert certify(tune_thresholds(*samples[0], shrinkage=5.0), method="theorem").regret_bound > 1


def test_the_tuning_rows_are_known_by_those_that_count(samples):
    truth, scores = samples[0]
    weights = np.ones(len(truth))
    weights[:5] = 0
    cut = tune_thresholds(truth, scores, sample_weight=weights)
    with pytest.raises(ValueError, match="these are the validation rows"):
        certify(cut, truth, scores, sample_weight=weights)


def test_a_label_that_looks_alike_in_every_sample_betrays_nothing(samples):
    (truth, scores), (fresh_truth, fresh_scores) = samples
    fresh_truth, fresh_scores = fresh_truth[: len(truth)], fresh_scores[: len(truth)]
    never, constant = np.zeros((len(truth), 1), dtype=int), np.full((len(truth), 1), 0.01)
    cut = tune_thresholds(np.hstack((truth, never)), np.hstack((scores, constant)))
    fresh = np.hstack((fresh_truth, never)), np.hstack((fresh_scores, constant))
    assert certify(cut, *fresh).lower < cut.value
    tallies = [ScoreTally.from_scores(*columns) for columns in zip(fresh[0].T, fresh[1].T, strict=True)]
    assert certify(cut, tally=tallies).lower < cut.value


def test_columns_of_other_names_are_refused(samples):
    truth, scores = samples[0]
    cut = tune_thresholds(truth[:, :3], scores[:, :3], labels=["a", "b", "c"])
    frame = pd.DataFrame(samples[1][1][:, :3], columns=["b", "a", "d"])
    with pytest.raises(ValueError, match="a column 'd', which is not among the cut's labels"):
        certify(cut, samples[1][0][:, :3], frame)


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
def test_the_optimism_is_what_counting_drawn_rows_says(average, samples, monkeypatch):
    """Beside resamples that are written out, row by row."""
    monkeypatch.setattr(bootstrap, "RETUNED", 3)
    truth, scores = samples[0]
    cut = tune_thresholds(truth, scores, average=average)
    rows, number = LabelRows.of(cut, truth, scores, None), len(truth)
    found = bootstrap._optimism(cut, rows, np.random.default_rng(0), False)

    def value(of, chosen):
        cells = ClusterCells.of_matrices(truth[chosen], of.predict(scores[chosen]))
        if average == "samples":
            return row_values(of, cells).mean()
        return averaged_value(of.metric, average, cells.confusion())

    rng, every, differences = np.random.default_rng(0), np.arange(number), []
    for _ in range(3):
        drawn = np.repeat(every, rng.multinomial(number, np.full(number, 1 / number)))
        anew = tune_thresholds(truth[drawn], scores[drawn], average=average)
        differences.append(value(anew, drawn) - value(cut, drawn) + value(cut, every) - value(anew, every))
    assert found == pytest.approx(max(0.0, np.mean(differences)), abs=1e-12)


def test_few_rows_and_few_groups_are_not_resampled(samples):
    truth, scores = samples[0]
    cut = tune_thresholds(truth, scores)
    with pytest.raises(ValueError, match=r"needs 100 pairs of a row and a label in each class"):
        certify(cut, samples[1][0][:12], samples[1][1][:12], method="bootstrap")
    with pytest.raises(ValueError, match=r"needs 50 groups, got 3"):
        certify(cut, *samples[1], groups=np.arange(1200) % 3, method="bootstrap")


def test_the_bootstrap_knows_how_much_macro_thresholds_flatter():
    """Twenty labels with few positives: the mean of what is taken off is what is lost on new rows."""
    rng = np.random.default_rng(3)
    population_rows = draw(rng, 50_000, labels=20, correlation=0.0)
    flattery, taken_off = [], []
    for _ in range(8):
        rows = draw(rng, 400, labels=20, correlation=0.0)
        cut = tune_thresholds(*rows)
        confusion = ClusterCells.of_matrices(population_rows[0], cut.predict(population_rows[1])).confusion()
        truth = averaged_value(cut.metric, cut.average, confusion)
        certificate = certify(cut, *rows, method="bootstrap", resamples=200)
        flattery.append(cut.value - truth)
        taken_off.append(cut.value - (certificate.lower + certificate.upper) / 2)
    assert np.mean(taken_off) == pytest.approx(np.mean(flattery), rel=0.25)


class TestLongTables:
    """Rows that have one label each, as `tune_frame(by=...)` reads them."""

    @staticmethod
    def table(truth, scores, names):
        """The columns of a matrix as rows, row after row."""
        return truth.reshape(-1), scores.reshape(-1), np.tile(np.array(names, dtype=object), len(truth))

    @pytest.mark.parametrize("average", ["macro", "micro"])
    def test_groups_are_what_is_independent(self, average, samples):
        (tuning, fresh), names = samples, [f"label {i}" for i in range(8)]
        cut = tune_thresholds(*tuning, average=average, labels=names)
        groups = np.arange(len(fresh[0])) // 3
        expected = certify(cut, *fresh, groups=groups)
        *columns, by = self.table(*fresh, names)
        found = certify(cut, *columns, by=by, groups=np.repeat(groups, 8))
        assert (found.lower, found.upper, found.value) == pytest.approx(
            (expected.lower, expected.upper, expected.value)
        )

    @pytest.mark.parametrize("method", ["holdout", "uniform"])
    def test_without_groups_they_are_tallies(self, method, samples):
        tuning, fresh = samples
        cut = tune_thresholds(*tuning)
        *columns, by = self.table(*fresh, range(8))
        tallies = [ScoreTally.from_scores(fresh[0][:, i], fresh[1][:, i]) for i in range(8)]
        assert certify(cut, *columns, by=by, method=method) == certify(cut, tally=tallies, method=method)

    def test_labels_of_several_columns(self, samples):
        tuning, fresh = samples
        pairs = [(f"label {i // 2}", i % 2) for i in range(8)]
        cut = tune_thresholds(*tuning, labels=pairs)
        *columns, by = self.table(*fresh, range(8))
        expected = certify(cut, *columns, by=[pairs[i] for i in by])
        assert certify(cut, *columns, by=np.array(pairs, dtype=object)[by.astype(int)]) == expected

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"by": ["none"] * 8}, "by= holds 'none', which is not among the cut's 8 labels"),
            ({"by": [0] * 8}, "no rows of 7 of the cut's 8 labels, such as 1"),
            ({"by": range(8), "sample_weight": [1] * 7 + [0]}, "no rows of 1 of the cut's 8 labels, such as 7"),
            ({"by": range(8), "method": "bootstrap"}, "does not say which of its rows belong together"),
            ({"by": range(8), "groups": range(8), "method": "uniform"}, "not independent, which method='uniform'"),
            ({"by": range(8), "groups": range(8), "sample_weight": range(1, 9)}, "leave the weights out"),
            ({"by": range(8), "sample_weight": np.full(8, 1.5), "weights": "counts"}, "not numbers of rows"),
        ],
    )
    def test_what_is_refused(self, options, message, samples):
        tuning, fresh = samples
        cut = tune_thresholds(*tuning)
        with pytest.raises(ValueError, match=message):
            certify(cut, fresh[0][0], fresh[1][0], held_out=True, **options)

    def test_tallies_have_no_groups(self, samples):
        tuning, fresh = samples
        tallies = [ScoreTally.from_scores(fresh[0][:, i], fresh[1][:, i]) for i in range(8)]
        with pytest.raises(ValueError, match="groups need the rows themselves"):
            certify(tune_thresholds(*tuning), tally=tallies, groups=np.arange(len(fresh[0])))

    def test_one_label_has_no_table(self, samples):
        tuning, fresh = samples
        with pytest.raises(ValueError, match="by= says which label a row is of"):
            certify(tune_threshold(tuning[0][:, 0], tuning[1][:, 0]), fresh[0][:, 0], fresh[1][:, 0], by=fresh[0][:, 0])


@pytest.mark.parametrize("method", ["holdout", "bootstrap"])
def test_rows_with_a_missing_value_can_be_dropped(method, samples):
    tuning, fresh = samples
    cut = tune_thresholds(*tuning)
    scores, groups = fresh[1].copy(), np.arange(len(fresh[0])) // 2
    scores[4, 2] = np.nan
    kept = np.arange(len(scores)) != 4
    expected = certify(cut, fresh[0][kept], scores[kept], groups=groups[kept], method=method)
    for make in (np.asarray, pd.DataFrame, sparse.csr_array):
        with pytest.warns(MissingRowsWarning, match="1 without a score"):
            found = certify(cut, fresh[0], make(scores), groups=groups, method=method, missing="drop")
        assert found == expected
    with pytest.raises(ValueError, match="NaN"):
        certify(cut, fresh[0], scores)


def test_the_positive_value_is_the_cuts_own_or_named(samples):
    tuning, fresh = samples
    words = [np.where(truth, "yes", "no") for truth, _ in (tuning, fresh)]
    cut = tune_thresholds(words[0], tuning[1], pos_label="yes")
    expected = certify(tune_thresholds(*tuning), *fresh)
    assert certify(cut, words[1], fresh[1]) == expected
    assert certify(tune_thresholds(*tuning), words[1], fresh[1], pos_label="yes") == expected
    assert certify(cut, fresh[0].astype(bool), fresh[1]) == expected


def test_one_column_of_scores_is_explained_where_it_is_passed():
    cut = tune_thresholds([[1, 0], [0, 1]], [[0.75, 0.5], [0.25, 1.0]])
    with pytest.raises(ValueError, match=r"got shape \(2,\): say with by= which label each row is of"):
        certify(cut, [0, 1], [0.25, 0.75])
    with pytest.raises(ValueError, match=r"got shape \(2,\): cut\[label\].predict takes one label's scores"):
        cut.predict([0.25, 0.75])
    with pytest.raises(ValueError, match=r"got shape \(2,\): tune_threshold takes one column"):
        tune_thresholds([0, 1], [0.25, 0.75])
