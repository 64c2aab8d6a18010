"""The search finds what trying every score finds: bit for bit, whatever the scores, the weights, the constraint."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecut import InfeasibleError, ScoreTally, _kernels, tune_threshold
from surecut import rows as rows_module
from surecut import search as search_module
from surecut.metrics import CATALOGUE, LinearFractional, get_metric

FEW = ("f1", "precision", "mcc")

LEVELS = [
    (None, []),
    ("precision>=0.5", [("precision", ">=", Fraction(1, 2))]),
    ("predicted_positive_rate<=0.3", [("predicted_positive_rate", "<=", Fraction(3, 10))]),
    (
        ["recall>=0.5", "fpr<=0.5"],
        [("recall", ">=", Fraction(1, 2)), ("false_positive_rate", "<=", Fraction(1, 2))],
    ),
    ("f2<=0.6", [("f2", "<=", Fraction(3, 5))]),
    ("precision>=0.99", [("precision", ">=", Fraction(99, 100))]),
]
"""Constraints, as a person writes them and as the oracle reads them."""


def outcome(tune):
    """A cut, or the words with which it is refused."""
    try:
        return tune()
    except ValueError as error:
        return type(error), str(error)


def meets(formula, sense, level):
    """A condition for the oracle: an undefined quantity meets no level, and rounding is forgiven."""
    slack = Fraction(1, 10**12)

    def condition(*cells):
        value = formula(*cells)
        if value is None:
            return False
        return Fraction(value) >= level - slack if sense == ">=" else Fraction(value) <= level + slack

    return condition


@pytest.mark.parametrize("weighing", ["unweighted", "counts", "reals"])
def test_the_search_finds_what_plain_python_finds(family, weighing, kernels, searching, sample_of, oracle):
    """Every metric (under a constraint, a few), against brute force over all thresholds in exact fractions."""
    labels, scores, weighings = sample_of(family, 75)
    weights = weighings[weighing]
    present = np.ones(75, bool) if weights is None else weights > 0
    attempts = oracle.attempts(labels, scores, weights)
    for written, levels in LEVELS:
        conditions = [meets(oracle.formulas[name], sense, level) for name, sense, level in levels]
        for name in FEW if levels else oracle.metrics:
            best = oracle.best(attempts, oracle.formulas[name], conditions)
            options = {"metric": oracle.metrics[name], "sample_weight": weights, "constraint": written}
            with searching(kernels, block=40):
                found = outcome(lambda options=options: tune_threshold(labels, scores, **options))
            if best is None:
                assert found[0] is InfeasibleError
                continue
            value, attempt = best
            assert found.value == pytest.approx(float(value), rel=1e-12, abs=1e-15), (name, written)
            assert found.predict(scores)[present].tolist() == np.array(attempt.predictions)[present].tolist()
            held = [found.confusion.tp, found.confusion.fp, found.confusion.fn, found.confusion.tn]
            assert held == pytest.approx([float(cell) for cell in attempt.cells], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("weighing", ["unweighted", "counts"])
def test_the_search_finds_what_sorting_finds_to_the_last_bit(family, weighing, kernels, searching, sample_of):
    """Threshold, value, interval, confusion, fingerprint, and the words of a refusal."""
    labels, scores, weighings = sample_of(family, 150, seed=1)
    weights = weighings[weighing]
    tally = ScoreTally.from_scores(labels, scores, sample_weight=weights)
    free = [(name, None) for name in CATALOGUE]
    bound = [("f1", written) for written, levels in LEVELS if levels]
    for name, written in free + bound:
        sorted_out = outcome(lambda name=name, written=written: tally.best_cut(name, written))
        options = {"metric": name, "sample_weight": weights, "constraint": written}
        with searching(kernels):
            found = outcome(lambda options=options: tune_threshold(labels, scores, **options))
        assert found == sorted_out, (name, written)


def test_the_search_finds_what_sorting_finds_up_to_rounding_of_weights(family, kernels, searching, sample_of):
    labels, scores, weighings = sample_of(family, 150, seed=2)
    tally = ScoreTally.from_scores(labels, scores, sample_weight=weighings["reals"])
    for name in FEW:
        with searching(kernels):
            found = tune_threshold(labels, scores, metric=name, sample_weight=weighings["reals"])
        sorted_out = tally.best_cut(name)
        assert found.value == pytest.approx(sorted_out.value, rel=1e-12, abs=1e-15)
        assert (found.threshold, found.interval) == (sorted_out.threshold, sorted_out.interval)
        assert found.fingerprint == sorted_out.fingerprint


def test_every_setting_of_the_search_is_made_small(small_settings):
    """A setting that the tests do not know would leave the search of a few rows without work."""
    assert {name for name, value in vars(search_module).items() if type(value) is int} == set(small_settings)


@pytest.mark.parametrize(("at_once", "share"), [(0, 1), (0, 10**6), (8, 2), (10**6, 10**6)])
@pytest.mark.parametrize("group", [1, 3, 10**6])
@pytest.mark.parametrize("parts", [1, 1 << 15])
@pytest.mark.parametrize(("block", "bits"), [(1, 15), (7, 1), (10**6, 4)])
def test_no_setting_changes_the_answer(at_once, share, group, parts, block, bits, kernels, searching, sample_of):
    labels, scores, _ = sample_of("all_magnitudes", 64)
    expected = tune_threshold(labels, scores)
    settings = {"SORTED_AT_ONCE": at_once, "SORTED_SHARE": share, "GROUP": group, "PARTS": parts}
    with searching(kernels, block=block, bits=bits, **settings):
        assert tune_threshold(labels, scores) == expected


@pytest.mark.parametrize("covered", [True, False])
@pytest.mark.parametrize("weighing", ["unweighted", "counts"])
def test_rows_that_are_copied_first_give_the_same_answer(
    family, weighing, covered, kernels, searching, sample_of, monkeypatch
):
    """Half of the rows may be copied and divided once more; where that does not cover the question, all are asked."""
    labels, scores, weighings = sample_of(family, 150, seed=3)
    weights = weighings[weighing]
    tally = ScoreTally.from_scores(labels, scores, sample_weight=weights)
    if not covered:
        monkeypatch.setattr(search_module, "lie_in", lambda *ranges: False)
    for name, written in [("f1", None), ("gmean", None), ("f1", "precision>=0.5")]:
        expected = outcome(lambda name=name, written=written: tally.best_cut(name, written))
        options = {"metric": name, "sample_weight": weights, "constraint": written}
        for group in (1, 4):
            with searching(kernels, SORTED_SHARE=2, GROUP=group):
                found = outcome(lambda options=options: tune_threshold(labels, scores, **options))
            assert found == expected, (name, written, group)


@pytest.mark.parametrize("order", ["ascending", "descending", "ties first", "ties last"])
def test_a_sample_by_position_may_mislead(order, kernels, searching):
    """What the first look sees of ties, signs and magnitudes need not hold for the other rows."""
    random = np.random.default_rng(12)
    tied, others = random.integers(-3, 4, 300) / 4, random.normal(size=300) * 10.0 ** random.uniform(-9, 9, 300)
    scores = np.concatenate((tied, others) if order == "ties first" else (others, tied))
    if "scending" in order:
        scores = np.sort(scores)[:: 1 if order == "ascending" else -1]
    labels = random.random(600) < 0.2 + 0.6 * (scores > 0.1)
    for share in (2, 10**6):
        with searching(kernels, bits=8, SORTED_SHARE=share):
            found = tune_threshold(labels, scores)
        assert found == ScoreTally.from_scores(labels, scores).best_cut("f1")


class Passes(_kernels.NumpyKernels):
    """Kernels that note which of them were called."""

    def __init__(self):
        self.called = set()
        super().__init__()

    def __getattribute__(self, name):
        if name in ("histogram", "inside"):
            self.called.add(name)
        return super().__getattribute__(name)


def test_tied_scores_are_read_once(searching):
    random = np.random.default_rng(4)
    scores = random.random(5000).round(2)
    labels = random.random(5000) < scores
    passes = Passes()
    with searching(passes, block=1000, bits=15, GROUP=64):
        found = tune_threshold(labels, scores)
    assert found == ScoreTally.from_scores(labels, scores).best_cut("f1")
    assert passes.called == {"histogram"}


@pytest.mark.parametrize("name", ["f1", "kappa"])
def test_hundreds_of_thousands_of_rows(name, kernels, monkeypatch):
    """Enough for what is left to be copied, divided and sorted, with nothing patched but the kernels."""
    random = np.random.default_rng(6)
    scores = 1 / (1 + np.exp(-random.normal(size=400_000)))
    labels = random.random(400_000) < scores
    monkeypatch.setattr(_kernels, "available", lambda count: kernels)
    monkeypatch.setattr(rows_module, "first_bins", lambda sample: _kernels.first_bins(sample, 9))
    assert tune_threshold(labels, scores, metric=name) == ScoreTally.from_scores(labels, scores).best_cut(name)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("label", [0, 1])
def test_a_handful_of_rows(size, label, kernels, searching):
    labels, scores = [label] * size, np.arange(size) / 7
    expected = tune_threshold(labels, scores, metric="accuracy")
    with searching(kernels):
        assert tune_threshold(labels, scores, metric="accuracy") == expected
    assert expected.predict(scores).tolist() == labels


@pytest.mark.parametrize("position", [0, 50, 99])
def test_one_positive_among_many(position, kernels, searching):
    scores = np.linspace(-1, 1, 100)
    labels = np.arange(100) == position
    with searching(kernels):
        cut = tune_threshold(labels, scores)
    accepted = 100 - position
    assert cut.value == pytest.approx(2 / (1 + accepted))
    assert cut.predict(scores).sum() == accepted
    assert cut.interval == (scores[position - 1] if position else -math.inf, scores[position])


def test_one_crowded_bin_is_divided_until_its_scores_are_told_apart(kernels, searching):
    """Almost all scores within a few floats of each other, and a few far away."""
    random = np.random.default_rng(5)
    crowd = 0.5 + random.integers(0, 300, 400) * 2.0**-53
    scores = np.concatenate((crowd, [1e300, -1e300, 5e-324, 0.0]))
    labels = random.random(404) < np.argsort(np.argsort(scores)) / 404
    labels[0] = True
    with searching(kernels):
        found = tune_threshold(labels, scores)
    assert found == ScoreTally.from_scores(labels, scores).best_cut("f1")


class Counting(_kernels.NumpyKernels):
    """Kernels that note how many rows were copied out."""

    def __init__(self):
        self.copied = 0
        super().__init__()

    def inside(self, *arguments):
        found = super().inside(*arguments)
        self.copied += len(found[0])
        return found


@pytest.mark.parametrize("name", ["f1", "kappa", "gmean"])
def test_few_rows_are_ever_copied(name, searching):
    """What makes it a search: of many rows only those that matter are gathered and sorted."""
    random = np.random.default_rng(8)
    scores = random.normal(size=100_000)
    labels = random.random(100_000) < 1 / (1 + np.exp(1 - 2 * scores))
    counting = Counting()
    with searching(counting, block=1 << 18, bits=15, SORTED_AT_ONCE=1000, PARTS=1 << 15, GROUP=64):
        found = tune_threshold(labels, scores, metric=name)
    assert found == ScoreTally.from_scores(labels, scores).best_cut(name)
    assert 0 < counting.copied <= 100_000 // 8


@pytest.mark.parametrize("group", [2, 64])
def test_where_all_cuts_are_worth_nothing_the_highest_wins(group, kernels, searching):
    """Precision is 0/0 where nothing is predicted, which must not hide the first score, of precision 0 as well."""
    random = np.random.default_rng(0)
    scores = random.random(5000)
    labels = (random.random(5000) < 0.1) & (scores < 0.9)
    options = {"metric": "precision", "constraint": "predicted_positive_rate<=0.05"}
    with searching(kernels, bits=10, GROUP=group):
        found = tune_threshold(labels, scores, **options)
    assert found == ScoreTally.from_scores(labels, scores).best_cut(*options.values())
    assert found.confusion.predicted_positives == 1


ODDS = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 1, 0, 0))
"""TP/FP: the bins before the first negative have no bound."""


@pytest.mark.parametrize("asked", [(ODDS, None), ("specificity", (ODDS, ">=", 8))], ids=["objective", "constraint"])
@pytest.mark.parametrize("seed", range(12))
def test_a_metric_that_is_undefined_without_false_positives(seed, asked, kernels, searching):
    random = np.random.default_rng(seed)
    scores = random.random(400)
    labels = random.random(400) < 0.1 + 0.85 * scores
    expected = outcome(lambda: ScoreTally.from_scores(labels, scores).best_cut(*asked))
    with searching(kernels, bits=6):
        found = outcome(lambda: tune_threshold(labels, scores, metric=asked[0], constraint=asked[1]))
    assert found == expected


def test_where_nothing_is_predicted_few_rows_are_sorted(monkeypatch):
    """Bins beside an edge that wins must be known; what was judged before, and made one with its neighbours, must not
    come back with all of its rows."""
    random = np.random.default_rng(1)
    apart, crowded, below = 60_000, 10_000, 130_000
    scores = np.concatenate(
        (
            1 + random.random(apart),
            0.5 - random.integers(1, 4001, crowded) * 2.0**-54,
            0.5 - 2.0**-40 - random.random(below) * 2.0**-18,
        )
    )
    upper_half = scores[apart : apart + crowded] > np.median(scores[apart : apart + crowded])
    chances = np.concatenate(
        (np.where(scores[:apart] < 1.99, 0.48, 0.0), np.where(upper_half, 0.3, 0.9), np.full(below, 0.02))
    )
    labels = random.random(len(scores)) < chances
    sizes = []
    tally = rows_module.FoundRows.tally

    def noted(found):
        sizes.append(len(found))
        return tally(found)

    monkeypatch.setattr(rows_module.FoundRows, "tally", noted)
    cut = tune_threshold(labels, scores, metric="accuracy")
    assert cut == ScoreTally.from_scores(labels, scores).best_cut("accuracy")
    assert cut.predicts_nothing
    assert sum(sizes) <= len(scores) // 16


@pytest.mark.parametrize("large", ["sigmoid", "ties", "float32", "all_magnitudes", "bytes"])
def test_many_rows_with_nothing_patched(large, sample_of):
    labels, scores, weighings = sample_of(large, 30_000)
    for weighing, weights in weighings.items():
        tally = ScoreTally.from_scores(labels, scores, sample_weight=weights)
        cuts = tune_threshold(labels, scores, metric=["f1", "kappa", "gmean"], sample_weight=weights)
        for name, cut in cuts.items():
            expected = tally.best_cut(name)
            assert cut.interval == expected.interval
            assert cut.fingerprint == expected.fingerprint
            assert cut.value == (pytest.approx(expected.value, rel=1e-12) if weighing == "reals" else expected.value)


# Laws

SCORES = st.one_of(
    st.floats(allow_nan=False), st.integers(-5, 5).map(float), st.floats(0, 1).map(lambda x: round(x, 1))
)
ROWS = st.lists(st.tuples(st.booleans(), SCORES, st.integers(0, 3)), max_size=60).map(
    lambda rows: [(True, 0.5, 1), (False, 0.25, 1), *rows]
)
NAMES = st.sampled_from(sorted(CATALOGUE))


def unzipped(rows):
    labels, scores, weights = zip(*rows, strict=True)
    return np.array(labels), np.array(scores), np.array(weights, dtype=float)


@given(rows=ROWS, name=NAMES)
def test_any_rows(searching, kernels, oracle, rows, name):
    labels, scores, _ = unzipped(rows)
    value, attempt = oracle.best(oracle.attempts(labels, scores), oracle.formulas[name])
    with searching(kernels):
        cut = tune_threshold(labels, scores, metric=name)
    assert cut.predict(scores).tolist() == attempt.predictions
    assert cut.value == pytest.approx(float(value), rel=1e-12, abs=1e-15)


@given(rows=ROWS, name=NAMES, order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(searching, rows, name, order):
    shuffled = rows.copy()
    order.shuffle(shuffled)
    with searching(_kernels.NumpyKernels()):
        cuts = [tune_threshold(*unzipped(some)[:2], metric=name) for some in (rows, shuffled)]
    assert cuts[0] == cuts[1]


@given(rows=ROWS, name=NAMES)
def test_a_weight_is_that_many_rows_and_none_is_absence(searching, rows, name):
    labels, scores, weights = unzipped(rows)
    repeated = unzipped([row for row in rows for _ in range(row[2])])
    with searching(_kernels.NumpyKernels()):
        weighted = tune_threshold(labels, scores, metric=name, sample_weight=weights)
        plain = tune_threshold(*repeated[:2], metric=name)
        present = weights > 0
        dropped = tune_threshold(
            labels[present], scores[present], metric=name, sample_weight=weights[present], constraint=None
        )
    assert weighted == dropped
    for part in ("threshold", "value", "interval", "confusion", "prior"):
        assert getattr(weighted, part) == getattr(plain, part)


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 7.7, 1e-12])
@given(rows=ROWS, name=NAMES)
def test_equal_weights_are_no_weights(searching, weight, rows, name):
    """Sums of 0.1 are rounded, so that cuts that tie have values that differ in the last bits: they still tie."""
    labels, scores, _ = unzipped(rows)
    with searching(_kernels.NumpyKernels()):
        weighted = tune_threshold(labels, scores, metric=name, sample_weight=np.full(len(labels), weight))
    plain = tune_threshold(labels, scores, metric=name)
    assert (weighted.threshold, weighted.interval) == (plain.threshold, plain.interval)
    assert weighted.value == pytest.approx(plain.value, rel=1e-12, abs=1e-12)


def test_equal_weights_are_no_weights_where_many_cuts_tie(searching, kernels):
    """Positives among negatives in such a rhythm that many cuts have the same F₁, Jaccard, accuracy, precision."""
    for period in range(2, 8):
        labels = np.arange(60) % period == 0
        scores = -np.arange(60.0)
        for name in CATALOGUE:
            with searching(kernels):
                weighted = tune_threshold(labels, scores, metric=name, sample_weight=np.full(60, 0.1))
            plain = tune_threshold(labels, scores, metric=name)
            assert (weighted.threshold, weighted.interval) == (plain.threshold, plain.interval), (name, period)


@pytest.mark.parametrize(
    "increasing",
    [lambda x: 3 * x - 7, np.exp, lambda x: x**3, lambda x: np.exp(40 * x), lambda x: x * 1e-300, np.arctan],
    ids=["affine", "exponential", "cube", "steep", "tiny", "arctangent"],
)
@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(-12, 12)), max_size=40).map(
        lambda rows: [(True, 1), (False, 0), *rows]
    ),
    name=NAMES,
)
def test_a_strictly_increasing_map_of_the_scores_changes_no_prediction(searching, increasing, rows, name):
    labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    mapped = increasing(scores.astype(float))
    with searching(_kernels.NumpyKernels()):
        before, after = (tune_threshold(labels, some, metric=name) for some in (scores, mapped))
    assert before.predict(scores).tolist() == after.predict(mapped).tolist()
    assert (before.value, before.confusion) == (after.value, after.confusion)


@given(rows=ROWS)
def test_metrics_that_share_their_cut(searching, rows):
    labels, scores, _ = unzipped(rows)
    with searching(_kernels.NumpyKernels()):
        cuts = tune_threshold(labels, scores, metric=["f1", "jaccard", "kappa", "gilbert"])
    assert cuts["f1"].interval == cuts["jaccard"].interval
    assert cuts["kappa"].interval == cuts["gilbert"].interval
    assert cuts["f1"].value / (2 - cuts["f1"].value) == pytest.approx(cuts["jaccard"].value)
    assert cuts["kappa"].value / (2 - cuts["kappa"].value) == pytest.approx(cuts["gilbert"].value)


@given(rows=ROWS, name=NAMES)
def test_no_threshold_does_better(rows, name):
    labels, scores, _ = unzipped(rows)
    metric = get_metric(name)
    cut = tune_threshold(labels, scores, metric=metric)
    assert metric.score(labels, cut.predict(scores)) == cut.value
    for threshold in scores:
        assert metric.score(labels, scores >= threshold) <= cut.value * (1 + 1e-12) + 1e-300
