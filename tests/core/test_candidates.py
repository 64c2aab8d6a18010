"""Where a threshold is put, which of equal cuts is chosen, and the hull."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from surecut import Cut, Hull, ScoreTally, tune_threshold
from surecut.constraints import parse_constraints
from surecut.core.rules import place
from surecut.metrics import FBeta, GMean, Precision, Recall, Utility

LARGEST = np.finfo(float).max
DOUBLE, SINGLE, HALF = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16)


# Placing


@pytest.mark.parametrize(("dtype", "width"), [(HALF, 16), (SINGLE, 32), (DOUBLE, 64)])
def test_a_threshold_stands_between_its_neighbours_in_the_scores_own_dtype(dtype, width):
    limits = np.finfo(dtype)

    @given(st.lists(st.floats(width=width, allow_nan=False, allow_infinity=False), min_size=2, max_size=2, unique=True))
    def law(pair):
        lower, upper = sorted(pair)
        threshold = place(lower, upper, dtype)
        assert lower < threshold <= upper
        assert float(dtype.type(threshold)) == threshold
        adjacent = np.nextafter(dtype.type(lower), dtype.type(np.inf)) == upper
        if adjacent:
            assert threshold == upper
        else:
            rounding = float(limits.eps) * max(abs(lower), abs(upper)) + float(limits.smallest_subnormal)
            assert abs(threshold - (lower / 2 + upper / 2)) <= rounding

    law()


@given(st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=2, unique=True))
def test_a_threshold_between_integers_is_an_integer(pair):
    lower, upper = sorted(pair)
    threshold = place(float(lower), float(upper), np.dtype(np.int64))
    assert threshold.is_integer()
    assert lower < threshold <= upper


def test_thresholds_next_to_infinities_are_finite():
    assert place(-math.inf, 0.5, DOUBLE) == 0.5
    assert place(1.0, LARGEST, DOUBLE) == LARGEST / 2 + 0.5
    assert place(1.0, math.inf, DOUBLE) == math.inf
    assert place(-math.inf, -math.inf, DOUBLE) == -math.inf


def test_the_middle_of_extremes_does_not_overflow():
    assert place(-LARGEST, LARGEST, DOUBLE) == 0
    assert place(LARGEST / 2, LARGEST, DOUBLE) == 0.75 * LARGEST
    assert place(0.0, 5e-324, DOUBLE) == 5e-324
    assert place(-5e-324, 5e-324, DOUBLE) == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_infinite_scores_get_a_finite_threshold_of_their_own_dtype(dtype):
    """A threshold that only float64 can hold would be +inf, predict nothing, to whoever compares in float32."""
    scores = np.array([np.inf, 1, 2, np.inf, -np.inf], dtype=dtype)
    cut = tune_threshold([1, 0, 0, 1, 0], scores)
    assert cut.predict(scores).tolist() == [True, False, False, True, False]
    assert cut.interval[0] == 2
    assert math.isfinite(cut.threshold)
    with np.errstate(over="ignore"):
        assert float(dtype(cut.threshold)) == cut.threshold


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_adjacent_scores_are_told_apart_in_their_own_dtype(dtype):
    upper = dtype(0.7)
    lower = np.nextafter(upper, dtype(0))
    scores = np.array([lower, upper])
    cut = tune_threshold([0, 1], scores)
    assert cut.threshold == upper
    assert cut.value == 1
    for predictions in (cut.predict(scores), scores >= cut.threshold, scores >= dtype(cut.threshold)):
        assert predictions.tolist() == [False, True]


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-1, 1, width=32)), max_size=12).map(lambda rows: [(True, 0.5), *rows])
)
def test_numpy_compares_float32_scores_as_the_cut_does(rows):
    labels, scores = zip(*rows, strict=True)
    column = np.array(scores, dtype=np.float32)
    cut = tune_threshold(labels, column)
    np.testing.assert_array_equal(column >= cut.threshold, cut.predict(column))
    np.testing.assert_array_equal(column.astype(float) >= cut.threshold, cut.predict(column))


def test_predicting_nothing_means_it_even_for_an_infinite_score():
    scores = [np.inf, np.inf, 1.0, -np.inf]
    cut = tune_threshold([0, 0, 1, 0], scores, metric="accuracy")
    assert cut.predicts_nothing
    assert cut.threshold == math.inf
    assert not cut.predict(scores).any()
    assert cut.interval == (LARGEST, math.inf)


def test_predicting_everything_takes_minus_infinity_too():
    scores = [-np.inf, -np.inf]
    cut = tune_threshold([1, 1], scores)
    assert cut.threshold == -math.inf
    assert cut.predict([*scores, 0.0, np.inf]).all()


def test_minus_infinity_can_be_rejected_alone():
    cut = tune_threshold([0, 1, 1], [-np.inf, -1e308, 5.0])
    assert cut.threshold == -1e308
    assert cut.interval == (-math.inf, -1e308)
    assert cut.predict([-np.inf, -1e308]).tolist() == [False, True]


def test_signed_zeros_are_one_score():
    cut = tune_threshold([1, 1, 0], [0.0, -0.0, -1.0])
    assert cut.predict([0.0, -0.0]).tolist() == [True, True]
    assert len(ScoreTally.from_scores([1, 0], [0.0, -0.0])) == 1


def test_every_threshold_of_the_interval_predicts_the_same():
    random = np.random.default_rng(4)
    for _ in range(50):
        scores = np.round(random.normal(size=12), 1)
        labels = random.integers(0, 2, 12)
        labels[0] = 1
        cut = tune_threshold(labels, scores)
        lower, upper = cut.interval
        assert lower < cut.threshold <= upper
        for threshold in (upper, cut.threshold, np.nextafter(lower, np.inf)):
            np.testing.assert_array_equal(scores >= threshold, cut.predict(scores))
        assert lower == -np.inf or (scores >= lower).sum() > cut.predict(scores).sum()
        assert lower == -np.inf or lower in scores
        assert upper == np.inf or upper in scores


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, bool])
def test_integer_scores(dtype):
    scores = np.array([0, 1, 1, 0], dtype=dtype)
    cut = tune_threshold([0, 1, 1, 0], scores)
    assert (cut.threshold, cut.interval) == (1, (0, 1))
    assert cut.predict(scores).tolist() == [False, True, True, False]


# Choosing


def test_among_ties_the_first_wins():
    assert chosen_of([0.1, 0.5, 0.5 * (1 + 1e-13), 0.4]) == 1
    assert chosen_of([0.1, 0.5, 0.5 * (1 + 1e-11), 0.4]) == 2
    assert chosen_of([-3.0, -1.0, -1.0 + 1e-13]) == 1
    assert chosen_of([0.0, math.nan, 0.0]) == 0


def chosen_of(values):
    """How many rows the best cut accepts, where accepting i rows has the i-th value."""
    rows = len(values) - 1
    table = np.array(values)
    cut = tune_threshold([True] * rows, np.arange(rows), metric=lambda confusion: table[confusion.predicted_positives])
    return int(cut.predict(np.arange(rows)).sum())


def test_the_highest_of_equal_thresholds_is_taken():
    """F₁ is 2/3 when one of two positives is accepted, and when all four rows are."""
    cut = tune_threshold([1, 0, 0, 1], [4, 3, 2, 1])
    assert cut.value == pytest.approx(2 / 3)
    assert cut.predict([4, 3, 2, 1]).tolist() == [True, False, False, False]


# The hull


def upper_hull(points):
    """Vertices, by definition: points above every chord between two others that span them."""

    def below(point, left, right):
        return (point[0] - left[0]) * (right[1] - left[1]) >= (point[1] - left[1]) * (right[0] - left[0])

    return [
        point
        for i, point in enumerate(points)
        if not any(below(point, left, right) for left in points[:i] for right in points[i + 1 :])
    ]


def test_the_hull_takes_names_of_metrics():
    hull = ScoreTally.from_scores([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]).hull
    assert hull.best_cut("f2") == hull.best_cut(FBeta(2.0))


def test_the_hull_of_more_rows_than_products_of_counts_can_hold(on_hull):
    random = np.random.default_rng(0)
    scores = random.normal(size=500).round(2)
    tally = ScoreTally.from_scores(random.random(500) < 1 / (1 + np.exp(-scores)), scores)
    rows = tally.rows * 10**10
    many = replace(tally, weight=rows, rows=rows, squares=rows)
    cut = tally.best_cut(on_hull)
    assert many.hull.best_cut(on_hull).threshold == many.best_cut(on_hull).threshold == cut.threshold
    np.testing.assert_array_equal(many.hull.accepted, tally.hull.accepted)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=1, max_size=30))
def test_the_hull_has_the_vertices_and_nothing_else(rows):
    labels, scores = zip(*rows, strict=True)
    tally = ScoreTally.from_scores(labels, scores)
    points = list(zip(tally.confusion.fp.tolist(), tally.confusion.tp.tolist(), strict=True))
    hull = tally.hull
    assert isinstance(hull, Hull)
    found = list(zip(hull.confusion.fp.tolist(), hull.confusion.tp.tolist(), strict=True))
    negatives, positives = points[-1]
    # A metric may be undefined nowhere, at a side of the box, or at a corner: then the hull is that of the others.
    undefined = [
        lambda fp, tp: False,
        lambda fp, tp: fp == 0,
        lambda fp, tp: tp == 0,
        lambda fp, tp: fp == negatives,
        lambda fp, tp: tp == positives,
        lambda fp, tp: fp == tp == 0,
        lambda fp, tp: (fp, tp) == (negatives, positives),
        lambda fp, tp: (fp, tp) == (0, positives),
    ]
    wanted = {p for where in undefined for p in upper_hull([one for one in points if not where(*one)])}
    assert found == sorted(wanted)


def test_a_long_convex_curve_is_cleaned_up():
    """A curve on which dropping points one layer at a time takes many rounds."""
    random = np.random.default_rng(2)
    scores = np.arange(3000)
    labels = (random.random(3000) < scores / 3000).astype(int)
    tally = ScoreTally.from_scores(labels, scores)
    fp, tp = tally.hull.confusion.fp, tally.hull.confusion.tp
    vertices = upper_hull(list(zip(fp.tolist(), tp.tolist(), strict=True)))
    assert 10 < len(vertices) <= len(fp) <= len(vertices) + 20  # what is kept beside them is for undefined vertices
    fp, tp = np.array(vertices).T
    assert (tally.confusion.tp <= np.interp(tally.confusion.fp, fp, tp) + 1e-9).all()


def test_steps_that_vanish_in_rounding_do_not_cost_a_vertex():
    """A weight of 1e-20 beside 1 moves no point of the curve: two points are then the same, and one must stay."""
    tally = ScoreTally.from_scores([1, 1, 0], [3, 2, 1], sample_weight=[1, 1e-20, 1])
    assert tally.hull.best_cut(FBeta(1)).value == tally.best_cut("f1").value == 1


both_classes = st.tuples(
    st.integers(0, 12), st.integers(0, 12), st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=40)
).map(lambda drawn: [(True, drawn[0]), (False, drawn[1]), *drawn[2]])


@pytest.mark.parametrize("given_prior", [None, 0.03, 0.9])
def test_the_hull_holds_the_best_cut(on_hull, given_prior):
    """The same cut, from the vertices alone. (Where nothing has skill, see below.)"""

    @settings(max_examples=30)
    @given(both_classes)
    @example([(True, 3), (True, 2), (False, 1)])
    def law(rows):
        labels, scores = zip(*rows, strict=True)
        tally = ScoreTally.from_scores(labels, scores)
        if given_prior is not None:
            tally = tally.with_prior(given_prior)
        best, vertex = tally.best_cut(on_hull), tally.hull.best_cut(on_hull)
        assume(abs(best.value) > 1e-9)
        assert vertex.value == pytest.approx(best.value, rel=1e-12, abs=1e-15)
        assert vertex.predict(scores).tolist() == best.predict(scores).tolist()
        assert (vertex.threshold, vertex.interval) == (best.threshold, best.interval)
        assert vertex.fingerprint == best.fingerprint

    law()


@pytest.mark.parametrize("given_prior", [None, 0.03, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("name", ["kappa", "gilbert", "mcc"])
def test_scores_without_skill_predict_nothing_at_any_prior(name, given_prior):
    """TPR = FPR at every cut: all values are 0, and rounding at another prior must not choose among them."""
    counts = [3, 1, 4, 1, 5, 9, 2, 6]
    scores = np.concatenate([np.full(3 * count, score) for score, count in enumerate(counts)])
    labels = np.concatenate([np.arange(3 * count) < count for count in counts])
    tally = ScoreTally.from_scores(labels, scores)
    if given_prior is not None:
        tally = tally.with_prior(given_prior)
    cut = tally.best_cut(name)
    assert cut.value == pytest.approx(0, abs=1e-12)
    assert cut.predicts_nothing


def test_what_need_not_be_on_the_hull_is_refused():
    tally = ScoreTally.from_scores([0, 1, 0, 1], [1, 2, 3, 4])
    with pytest.raises(ValueError, match="the best cut for gmean need not lie on the ROC hull"):
        tally.hull.best_cut(GMean())
    with pytest.raises(ValueError, match="a constrained cut need not lie on the ROC hull"):
        tally.hull.best_cut(Recall(), parse_constraints("precision>=0.5"))


def test_costs_are_retargeted_on_the_hull():
    random = np.random.default_rng(9)
    labels = random.integers(0, 2, 500)
    scores = labels + 2 * random.normal(size=500)
    tally = ScoreTally.from_scores(labels, scores)
    assert len(tally.hull.accepted) < 60
    for missed in (0.2, 1, 7):
        cost = Utility(fp=-1, fn=-missed)
        assert tally.hull.best_cut(cost) == tally.best_cut(cost)
        assert isinstance(tally.hull.best_cut(cost), Cut)


def test_undefined_precision_is_never_chosen():
    cut = tune_threshold([0, 1, 0], [3, 2, 1], metric=Precision())
    assert not cut.predicts_nothing
    assert cut.value == 0.5
