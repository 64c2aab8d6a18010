"""Rules for k labels a row: each number of a rule is put where no other would be better, whatever the rows are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from surecut import get_metric, tune_top_k
from surecut.core import sweeps
from surecut.core.fixed_point import Rule
from surecut.core.settings import using
from surecut.core.sweeps import Sweep
from surecut.label_objectives import MULTICLASS, label_objective, multiclass_metric
from surecut.tuning.validation_rows import validation_rows

AVERAGES = ("macro", "weighted", "micro")
METRICS = ("f1", "f2", "jaccard", "precision", "recall", "am", "kappa", "mcc", "gmean", "accuracy")


def drawn_rows(random, kind):
    """A few rows, of every kind: classes or indicators, dense or sparse, ties, infinities, weights, one row."""
    rows, labels = int(random.integers(1, 12)), int(random.integers(2, 6))
    k = int(random.integers(1, labels + 1)) if kind != "classes" else 1
    scores = random.normal(size=(rows, labels))
    if random.random() < 0.5:
        scores = np.round(scores)  # ties
    if random.random() < 0.3:
        scores = np.abs(scores)
    if random.random() < 0.2:
        scores[random.random(scores.shape) < 0.15] = random.choice([-np.inf, np.inf])
    weight = random.choice([0.5, 1.0, 2.0], rows) if random.random() < 0.3 else None
    truth = random.integers(0, labels, rows) if kind == "classes" else (random.random(scores.shape) < 0.4).astype(int)
    if kind == "sparse":
        stored = sparse.csr_array(np.where(random.random(scores.shape) < 0.7, np.where(scores == 0, 0.25, scores), 0))
        return validation_rows(sparse.csr_array(truth), stored, k, sample_weight=weight).rows
    classes = range(labels) if kind == "classes" else None
    return validation_rows(truth, scores, k, sample_weight=weight, classes=classes).rows


def drawn_objective(random, rows, kind):
    if kind == "classes" and random.random() < 0.5:
        return label_objective(
            multiclass_metric(str(random.choice(list(MULTICLASS)))), "multiclass", rows.positives, rows.total
        )
    metric = get_metric(str(random.choice(METRICS)))
    try:
        return label_objective(metric, str(random.choice(AVERAGES)), rows.positives, rows.total)
    except ValueError:  # undefined for every label
        return label_objective(get_metric("f1"), "macro", rows.positives, rows.total)


def value_of(rows, objective, a, offsets):
    return objective.value(*rows.counts(rows.choose(rows.affine(a, offsets))))


def best_by_trying(rows, objective, a, offsets, label, by_gain):
    """The best value of one number, by trying one between any two places where a row changes."""
    numbers = np.array([0.0])
    eta = rows.eta[np.isfinite(rows.eta)]
    others = rows.affine(a, offsets)
    others = others[np.isfinite(others)]
    with np.errstate(divide="ignore", invalid="ignore"):
        if by_gain:
            numbers = np.append(numbers, ((others[:, None] - offsets[label]) / eta).ravel())
            numbers = numbers[np.isfinite(numbers) & (numbers >= 0)]
        else:
            numbers = np.append(numbers, (others[:, None] - eta * a[label]).ravel())
    numbers = np.unique(numbers)
    tries = np.concatenate((numbers, (numbers[1:] + numbers[:-1]) / 2, numbers[:1] - 1))
    tries = tries[tries > 0] if by_gain else tries
    best = -np.inf
    for number in np.append(tries, numbers[-1] + 1):
        one, other = a.copy(), offsets.copy()
        (one if by_gain else other)[label] = number
        best = max(best, value_of(rows, objective, one, other))
    return best


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("kind", ["classes", "indicators", "sparse"])
def test_a_number_is_the_best_of_all(kind, kernels):
    if kernels == "compiled":
        pytest.importorskip("numba")
    random = np.random.default_rng({"classes": 1, "indicators": 2, "sparse": 3}[kind])
    with using(kernels=kernels):
        for _ in range(120):
            rows = drawn_rows(random, kind)
            objective = drawn_objective(random, rows, kind)
            labels = len(rows.positives)
            a, offsets = np.round(np.exp(random.normal(size=labels)), 2), np.round(random.normal(size=labels), 1)
            sweep = Sweep(rows, objective, Rule(a, offsets, np.nan))
            assert sweep.value == pytest.approx(value_of(rows, objective, a, offsets), abs=1e-12)
            label = int(random.integers(labels))
            for by_gain in [False, True] if (rows.eta >= 0).all() else [False]:
                found = max(sweep.best_of(label, by_gain).value, sweep.value)
                assert found == pytest.approx(best_by_trying(rows, objective, a, offsets, label, by_gain), abs=1e-9)


@pytest.mark.parametrize("kind", ["classes", "indicators", "sparse"])
def test_a_search_ends_where_no_number_is_better_and_its_value_is_that_of_its_rule(kind):
    random = np.random.default_rng(4)
    for _ in range(40):
        rows = drawn_rows(random, kind)
        objective = drawn_objective(random, rows, kind)
        labels = len(rows.positives)
        sweep = Sweep(rows, objective, Rule(np.ones(labels), np.zeros(labels), np.nan)).run(lines=5)
        rule = sweep.rule
        assert rule.value == pytest.approx(value_of(rows, objective, rule.a, rule.offsets), abs=1e-12)
        for label in range(labels):
            assert sweep.best_of(label).value <= rule.value + 1e-9
            if (rows.eta >= 0).all():
                assert sweep.best_of(label, by_gain=True).value <= rule.value + 1e-9


@pytest.mark.parametrize("kind", ["classes", "indicators", "sparse"])
def test_compiled_rows_are_predicted_and_counted_as_those_in_numpy(kind):
    pytest.importorskip("numba")
    random = np.random.default_rng(7)
    for _ in range(60):
        rows = drawn_rows(random, kind)
        labels = len(rows.positives)
        a, offsets = random.choice([0.0, 0.5, 1.0], labels), np.round(random.normal(size=labels))
        found = []
        for kernels in ["numpy", "compiled"]:
            with using(kernels=kernels):
                same = rows.with_eta(rows.eta)  # which knows of no kernels yet
                found.append((same.compiled, same.chosen(a, offsets), same.counts_of(a, offsets)))
        (none, chosen, counts), (module, compiled, counted) = found
        assert none is None
        assert module is not None
        np.testing.assert_array_equal(compiled, chosen)
        np.testing.assert_array_equal(counted, counts)
        assert counted.tp.dtype == counts.tp.dtype


def test_bins_of_many_rows_hide_nothing(monkeypatch):
    random = np.random.default_rng(5)
    codes = random.choice(4, 3000, p=[0.6, 0.25, 0.1, 0.05])
    scores = random.normal(size=(3000, 4))
    scores[np.arange(3000), codes] += 1.2
    scores[::3] = np.round(scores[::3], 1)
    for metric in ["f1", "recall", "jaccard"]:
        for weight in [None, random.choice([0.5, 1.0, 3.0], 3000)]:
            rows = validation_rows(codes, scores, 1, sample_weight=weight).rows
            objective = label_objective(get_metric(metric), "macro", rows.positives, rows.total)
            plain = Sweep(rows, objective, Rule(np.ones(4), np.zeros(4), np.nan))
            exact = [plain.best_of(label) for label in range(4)]
            with monkeypatch.context() as patch:
                patch.setattr(sweeps, "BINNED_ROWS", 0)
                patch.setattr(sweeps, "ROWS_PER_CELL", 0)
                binned = [plain.best_of(label) for label in range(4)]
            assert [one.place for one in binned] == [one.place for one in exact]
            assert [one.value for one in binned] == pytest.approx([one.value for one in exact], abs=1e-12)


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
def test_bins_of_scores_that_differ_by_hundreds_of_powers_of_ten(kernels, monkeypatch):
    if kernels == "compiled":
        pytest.importorskip("numba")
    random = np.random.default_rng(6)
    codes = random.integers(3, size=2000)
    logits = 900 * random.normal(size=(2000, 3)) + 300 * np.eye(3)[codes]
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))  # some are so small that no gain makes them the largest
    monkeypatch.setattr(sweeps, "BINNED_ROWS", 0)
    monkeypatch.setattr(sweeps, "ROWS_PER_CELL", 0)
    for factor in [1.0, 1e-310, 1e300]:
        rows = validation_rows(codes, scores * factor, 1).rows
        objective = label_objective(get_metric("f1"), "macro", rows.positives, rows.total)
        with using(kernels=kernels):
            rule = Sweep(rows, objective, Rule(np.ones(3), np.zeros(3), np.nan)).run().rule
        assert np.isfinite(rule.a).all()
        assert np.isfinite(rule.offsets).all()
        assert rule.value == pytest.approx(value_of(rows, objective, rule.a, rule.offsets), abs=1e-12)


def reachable(scores, labels, classes):
    """Whether a rule a·score + b with a ≥ 0 predicts these labels, without ties."""
    conditions = []
    for row, label in zip(scores, labels, strict=True):
        for other in set(range(classes)) - {label}:
            condition = np.zeros(2 * classes)
            condition[[label, classes + label]] = -row[label], -1
            condition[[other, classes + other]] = row[other], 1
            conditions.append(condition)
    bounds = [(0, None)] * classes + [(None, None)] * classes
    found = linprog(np.zeros(2 * classes), A_ub=conditions, b_ub=-np.ones(len(conditions)), bounds=bounds)
    return found.status == 0


def best_of_all_rules(scores, codes, objective):
    """The best value that any rule reaches, by trying all predictions from the best one on."""
    classes = scores.shape[1]
    predictions = np.array(list(itertools.product(range(classes), repeat=len(codes))))
    predicted = np.stack([(predictions == j).sum(axis=1) for j in range(classes)], axis=1)
    tp = np.stack([((predictions == j) & (codes == j)).sum(axis=1) for j in range(classes)], axis=1)
    values = np.array([objective.value(*pair) for pair in zip(tp, predicted, strict=True)])
    for one in np.argsort(-values, kind="stable"):
        if reachable(scores, predictions[one], classes):
            return values[one]
    raise AssertionError("some prediction can be reached")


@pytest.mark.parametrize("metric", ["f1", "accuracy", "balanced_accuracy", "gmean", "kappa", "mcc", "jaccard"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_of_few_rows_the_best_rule_of_all_is_found(metric, classes):
    random = np.random.default_rng(classes)
    for _ in range(6):
        size = int(random.integers(4, {2: 9, 3: 8, 4: 7}[classes]))
        codes = random.integers(0, classes, size)
        scores = random.normal(size=(size, classes))
        scores[np.arange(size), codes] += random.choice([0, 0.7])
        if random.random() < 0.5:
            scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        rule = tune_top_k(codes, scores, k=1, metric=metric, classes=range(classes))
        objective = label_objective(
            multiclass_metric(metric) or get_metric(metric), "macro", np.bincount(codes, minlength=classes), size
        )
        assert rule.value == pytest.approx(best_of_all_rules(scores, codes, objective), abs=1e-9)
