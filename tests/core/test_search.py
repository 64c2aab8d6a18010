"""The search finds what trying every score finds: bit for bit, whatever the scores, the weights, the constraint."""

from __future__ import annotations

import inspect
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecut import InfeasibleError, ScoreTally, tune_threshold
from surecut.core.kernels import NumpyKernels
from surecut.core.search import SourceChangedError
from surecut.core.settings import Settings, using
from surecut.metrics import CATALOGUE, LinearFractional, get_metric
from surecut.sources import arrays, rows

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
def test_the_search_finds_what_plain_python_finds(family, weighing, kernels_name, searching, sample_of, oracle):
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
            with searching(kernels_name, block=40):
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
def test_the_search_finds_what_sorting_finds_to_the_last_bit(family, weighing, kernels_name, searching, sample_of):
    """Threshold, value, interval, confusion, fingerprint, and the words of a refusal."""
    labels, scores, weighings = sample_of(family, 150, seed=1)
    weights = weighings[weighing]
    tally = ScoreTally.from_scores(labels, scores, sample_weight=weights)
    free = [(name, None) for name in CATALOGUE]
    bound = [("f1", written) for written, levels in LEVELS if levels]
    for name, written in free + bound:
        sorted_out = outcome(lambda name=name, written=written: tally.best_cut(name, written))
        options = {"metric": name, "sample_weight": weights, "constraint": written}
        with searching(kernels_name):
            found = outcome(lambda options=options: tune_threshold(labels, scores, **options))
        assert found == sorted_out, (name, written)


def test_the_search_finds_what_sorting_finds_up_to_rounding_of_weights(family, kernels_name, searching, sample_of):
    labels, scores, weighings = sample_of(family, 150, seed=2)
    tally = ScoreTally.from_scores(labels, scores, sample_weight=weighings["reals"])
    for name in FEW:
        with searching(kernels_name):
            found = tune_threshold(labels, scores, metric=name, sample_weight=weighings["reals"])
        sorted_out = tally.best_cut(name)
        assert found.value == pytest.approx(sorted_out.value, rel=1e-12, abs=1e-15)
        assert (found.threshold, found.interval) == (sorted_out.threshold, sorted_out.interval)
        assert found.fingerprint == sorted_out.fingerprint


def test_every_setting_of_the_search_is_made_small(small_settings):
    """A setting that the tests do not know would leave the search of a few rows without work."""
    source = inspect.getsource(rows) + inspect.getsource(arrays)
    read = set(re.findall(r"settings\.([a-z_]+)", source)) & set(Settings.__dataclass_fields__)
    about_threads = {"blocks_at_once", "rows_per_worker", "compiled_rows_per_worker"}
    assert read - about_threads == set(small_settings)


@pytest.mark.parametrize(("at_once", "share"), [(0, 1), (0, 10**6), (8, 2), (10**6, 10**6)])
@pytest.mark.parametrize("group", [1, 3, 10**6])
@pytest.mark.parametrize(("parts", "flat_share"), [(1, 0), (1 << 15, 2)])
@pytest.mark.parametrize(("block", "bits"), [(1, 15), (7, 1), (10**6, 4)])
def test_no_setting_changes_the_answer(
    at_once, share, group, parts, flat_share, block, bits, kernels_name, searching, sample_of
):
    labels, scores, _ = sample_of("all_magnitudes", 64)
    expected = tune_threshold(labels, scores)
    sizes = {"sorted_at_once": at_once, "sorted_share": share, "group": group, "parts": parts}
    with searching(kernels_name, block=block, first_bits=bits, flat_share=flat_share, **sizes):
        assert tune_threshold(labels, scores) == expected


@pytest.mark.parametrize("covered", [True, False])
@pytest.mark.parametrize("weighing", ["unweighted", "counts"])
def test_rows_that_are_copied_first_give_the_same_answer(
    family, weighing, covered, kernels_name, searching, sample_of, monkeypatch
):
    """Half of the rows may be copied and divided once more; where that does not cover the question, all are asked."""
    labels, scores, weighings = sample_of(family, 150, seed=3)
    weights = weighings[weighing]
    tally = ScoreTally.from_scores(labels, scores, sample_weight=weights)
    if not covered:
        monkeypatch.setattr(rows, "lie_in", lambda *ranges: False)
    for name, written in [("f1", None), ("gmean", None), ("f1", "precision>=0.5")]:
        expected = outcome(lambda name=name, written=written: tally.best_cut(name, written))
        options = {"metric": name, "sample_weight": weights, "constraint": written}
        for group in (1, 4):
            with searching(kernels_name, sorted_share=2, group=group):
                found = outcome(lambda options=options: tune_threshold(labels, scores, **options))
            assert found == expected, (name, written, group)


@pytest.mark.parametrize("order", ["ascending", "descending", "ties first", "ties last"])
def test_a_sample_by_position_may_mislead(order, kernels_name, searching):
    """What the first look sees of ties, signs and magnitudes need not hold for the other rows."""
    random = np.random.default_rng(12)
    tied, others = random.integers(-3, 4, 300) / 4, random.normal(size=300) * 10.0 ** random.uniform(-9, 9, 300)
    scores = np.concatenate((tied, others) if order == "ties first" else (others, tied))
    if "scending" in order:
        scores = np.sort(scores)[:: 1 if order == "ascending" else -1]
    labels = random.random(600) < 0.2 + 0.6 * (scores > 0.1)
    for share in (2, 10**6):
        with searching(kernels_name, first_bits=8, sorted_share=share):
            found = tune_threshold(labels, scores)
        assert found == ScoreTally.from_scores(labels, scores).best_cut("f1")


@pytest.fixture
def passes(monkeypatch):
    """Calls of the NumPy kernels: the name of each, and the number of rows that it copied out."""
    noted = []
    histogram, inside = NumpyKernels.histogram, NumpyKernels.inside

    def noted_histogram(self, *columns):
        noted.append(("histogram", 0))
        return histogram(self, *columns)

    def noted_inside(self, *columns):
        found = inside(self, *columns)
        noted.append(("inside", len(found[0])))
        return found

    monkeypatch.setattr(NumpyKernels, "histogram", noted_histogram)
    monkeypatch.setattr(NumpyKernels, "inside", noted_inside)
    return noted


def test_tied_scores_are_read_once(searching, passes):
    random = np.random.default_rng(4)
    scores = random.random(5000).round(2)
    labels = random.random(5000) < scores
    with searching(block=1000, first_bits=15, group=64):
        found = tune_threshold(labels, scores)
    assert found == ScoreTally.from_scores(labels, scores).best_cut("f1")
    assert {name for name, _ in passes} == {"histogram"}


@pytest.mark.parametrize("name", ["f1", "kappa"])
def test_hundreds_of_thousands_of_rows(name, kernels_name):
    """Enough for what is left to be copied, divided and sorted, with the sizes that users have but wider bins."""
    random = np.random.default_rng(6)
    scores = 1 / (1 + np.exp(-random.normal(size=400_000)))
    labels = random.random(400_000) < scores
    with using(kernels=kernels_name, first_bits=9):
        found = tune_threshold(labels, scores, metric=name)
    assert found == ScoreTally.from_scores(labels, scores).best_cut(name)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("label", [0, 1])
def test_a_handful_of_rows(size, label, kernels_name, searching):
    labels, scores = [label] * size, np.arange(size) / 7
    expected = tune_threshold(labels, scores, metric="accuracy")
    with searching(kernels_name):
        assert tune_threshold(labels, scores, metric="accuracy") == expected
    assert expected.predict(scores).tolist() == labels


@pytest.mark.parametrize("position", [0, 50, 99])
def test_one_positive_among_many(position, kernels_name, searching):
    scores = np.linspace(-1, 1, 100)
    labels = np.arange(100) == position
    with searching(kernels_name):
        cut = tune_threshold(labels, scores)
    accepted = 100 - position
    assert cut.value == pytest.approx(2 / (1 + accepted))
    assert cut.predict(scores).sum() == accepted
    assert cut.interval == (scores[position - 1] if position else -math.inf, scores[position])


def test_one_crowded_bin_is_divided_until_its_scores_are_distinct(kernels_name, searching):
    """Almost all scores within a few floats of each other, and a few far away."""
    random = np.random.default_rng(5)
    crowd = 0.5 + random.integers(0, 300, 400) * 2.0**-53
    scores = np.concatenate((crowd, [1e300, -1e300, 5e-324, 0.0]))
    labels = random.random(404) < np.argsort(np.argsort(scores)) / 404
    labels[0] = True
    with searching(kernels_name):
        found = tune_threshold(labels, scores)
    assert found == ScoreTally.from_scores(labels, scores).best_cut("f1")


@pytest.mark.parametrize("name", ["f1", "kappa", "gmean"])
def test_few_rows_are_ever_copied(name, searching, passes):
    """What makes it a search: of many rows only those that matter are gathered and sorted."""
    random = np.random.default_rng(8)
    scores = random.normal(size=100_000)
    labels = random.random(100_000) < 1 / (1 + np.exp(1 - 2 * scores))
    with searching(block=1 << 18, first_bits=15, sorted_at_once=1000, parts=1 << 15, group=64):
        found = tune_threshold(labels, scores, metric=name)
    assert found == ScoreTally.from_scores(labels, scores).best_cut(name)
    assert 0 < sum(copied for _, copied in passes) <= 100_000 // 8


@pytest.mark.parametrize("group", [2, 64])
def test_where_all_cuts_are_worth_nothing_the_highest_wins(group, kernels_name, searching):
    """Precision is 0/0 where nothing is predicted, which must not hide the first score, of precision 0 as well."""
    random = np.random.default_rng(0)
    scores = random.random(5000)
    labels = (random.random(5000) < 0.1) & (scores < 0.9)
    options = {"metric": "precision", "constraint": "predicted_positive_rate<=0.05"}
    with searching(kernels_name, first_bits=10, group=group):
        found = tune_threshold(labels, scores, **options)
    assert found == ScoreTally.from_scores(labels, scores).best_cut(*options.values())
    assert found.confusion.predicted_positives == 1


ODDS = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 1, 0, 0))
"""TP/FP: the bins before the first negative have no bound."""


@pytest.mark.parametrize("asked", [(ODDS, None), ("specificity", (ODDS, ">=", 8))], ids=["objective", "constraint"])
@pytest.mark.parametrize("seed", range(12))
def test_a_metric_that_is_undefined_without_false_positives(seed, asked, kernels_name, searching):
    random = np.random.default_rng(seed)
    scores = random.random(400)
    labels = random.random(400) < 0.1 + 0.85 * scores
    expected = outcome(lambda: ScoreTally.from_scores(labels, scores).best_cut(*asked))
    with searching(kernels_name, first_bits=6):
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
    tally = rows.FoundRows.tally

    def noted(found):
        sizes.append(len(found))
        return tally(found)

    monkeypatch.setattr(rows.FoundRows, "tally", noted)
    with using(flat_share=0):  # in so few bins most rows are candidates at first, as on a flat curve
        cut = tune_threshold(labels, scores, metric="accuracy")
    assert cut == ScoreTally.from_scores(labels, scores).best_cut("accuracy")
    assert cut.predicts_nothing
    assert sum(sizes) <= len(scores) // 16


def test_a_flat_curve_is_sorted_after_the_first_bins(monkeypatch):
    scores, labels = np.linspace(0, 1, 200_000), np.arange(200_000) % 2
    passes = []
    for name in ("histogram", "count_parts", "extent", "collect", "_sorted"):
        method = getattr(arrays.ArraySource, name)

        def noted(source, *args, name=name, method=method):
            passes.append(name)
            return method(source, *args)

        monkeypatch.setattr(arrays.ArraySource, name, noted)
    cut = tune_threshold(labels, scores, metric="am")
    assert passes == ["histogram", "_sorted"]
    assert cut == ScoreTally.from_scores(labels, scores).best_cut("am")


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
def test_any_rows(searching, kernels_name, oracle, rows, name):
    labels, scores, _ = unzipped(rows)
    value, attempt = oracle.best(oracle.attempts(labels, scores), oracle.formulas[name])
    with searching(kernels_name):
        cut = tune_threshold(labels, scores, metric=name)
    assert cut.predict(scores).tolist() == attempt.predictions
    assert cut.value == pytest.approx(float(value), rel=1e-12, abs=1e-15)


@given(rows=ROWS, name=NAMES, order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(searching, rows, name, order):
    shuffled = rows.copy()
    order.shuffle(shuffled)
    with searching():
        cuts = [tune_threshold(*unzipped(some)[:2], metric=name) for some in (rows, shuffled)]
    assert cuts[0] == cuts[1]


@given(rows=ROWS, name=NAMES)
def test_a_weight_is_that_many_rows_and_none_is_absence(searching, rows, name):
    labels, scores, weights = unzipped(rows)
    repeated = unzipped([row for row in rows for _ in range(row[2])])
    with searching():
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
    with searching():
        weighted = tune_threshold(labels, scores, metric=name, sample_weight=np.full(len(labels), weight))
    plain = tune_threshold(labels, scores, metric=name)
    assert (weighted.threshold, weighted.interval) == (plain.threshold, plain.interval)
    assert weighted.value == pytest.approx(plain.value, rel=1e-12, abs=1e-12)


def test_equal_weights_are_no_weights_where_many_cuts_tie(searching, kernels_name):
    """Positives among negatives in such a rhythm that many cuts have the same F₁, Jaccard, accuracy, precision."""
    for period in range(2, 8):
        labels = np.arange(60) % period == 0
        scores = -np.arange(60.0)
        for name in CATALOGUE:
            with searching(kernels_name):
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
    with searching():
        before, after = (tune_threshold(labels, some, metric=name) for some in (scores, mapped))
    assert before.predict(scores).tolist() == after.predict(mapped).tolist()
    assert (before.value, before.confusion) == (after.value, after.confusion)


@given(rows=ROWS)
def test_metrics_that_share_their_cut(searching, rows):
    labels, scores, _ = unzipped(rows)
    with searching():
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


def test_a_flat_curve_of_weighted_rows_is_sorted_too():
    random = np.random.default_rng(0)
    scores, labels, weights = np.linspace(0, 1, 50_000), np.arange(50_000) % 2, random.random(50_000) * 1e3
    cut = tune_threshold(labels, scores, metric="am", sample_weight=weights)
    expected = ScoreTally.from_scores(labels, scores, sample_weight=weights).best_cut("am")
    assert cut.threshold == expected.threshold


def test_rows_that_change_before_they_are_sorted_are_noticed(monkeypatch):
    scores, labels = np.linspace(0, 1, 50_000), np.arange(50_000) % 2
    fewer = ScoreTally.from_scores(labels[1:], scores[1:])
    monkeypatch.setattr(arrays.ArraySource, "_sorted", lambda source: fewer.entries)
    with pytest.raises(SourceChangedError):
        tune_threshold(labels, scores, metric="am")
