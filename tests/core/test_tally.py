"""The tally: a commutative monoid from which everything else is read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut import Confusion, ScoreTally, get_metric
from surecut.metrics import CATALOGUE

FINITE_OR_NOT = st.one_of(
    st.floats(allow_nan=False), st.integers(-3, 3).map(float), st.sampled_from([0.0, -0.0, np.inf, -np.inf])
)
ROWS = st.lists(st.tuples(st.booleans(), FINITE_OR_NOT, st.integers(0, 16).map(lambda k: k / 8)), max_size=25)
"""Weights are eighths, whose sums are exact, so that tallies can be compared bit by bit."""


def columns(rows):
    labels, scores, weights = zip(*rows, strict=True)
    return np.array(labels), np.array(scores), np.array(weights)


def some(rows):
    return [(True, 0.5, 1.0), *rows]


def tally_of(rows, weighted):
    labels, scores, weights = columns(rows)
    return ScoreTally.from_scores(labels, scores, sample_weight=weights if weighted else None)


def same(mine, theirs):
    return (
        mine == theirs
        and np.array_equal(mine.squares, theirs.squares)
        and mine.sample == theirs.sample
        and mine.sample.seen == theirs.sample.seen
        and mine.confusion == theirs.confusion
    )


# What it holds


@given(ROWS)
def test_it_counts_by_score_and_class(rows):
    rows = some(rows)
    tally = tally_of(rows, weighted=True)
    expected = {}
    for label, score, weight in rows:
        if weight > 0:
            entry = expected.setdefault(min(score, np.finfo(float).max) + 0.0, [[0, 0, 0], [0, 0, 0]])[label]
            entry[0] += weight
            entry[1] += 1
            entry[2] += weight**2
    assert tally.scores.tolist() == sorted(expected, reverse=True)
    for i, score in enumerate(tally.scores.tolist()):
        for label in (0, 1):
            held = [tally.weight[i, label], tally.rows[i, label], tally.squares[i, label]]
            assert held == expected[score][label]


def test_without_weights_it_holds_integers():
    tally = ScoreTally.from_scores([1, 0, 1], [0.5, 0.5, 0.7])
    assert tally.weight is tally.rows
    assert tally.weight.dtype == np.int64
    assert tally.confusion.tp.tolist() == [0, 1, 2]
    assert tally.confusion.fp.tolist() == [0, 0, 1]
    assert tally.prior == 2 / 3
    assert len(tally) == 2
    assert repr(tally) == "<ScoreTally of 3 rows, 2 positive, 2 distinct scores>"


def test_thresholds_begin_with_predicting_nothing():
    tally = ScoreTally.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    assert tally.thresholds.tolist() == [np.inf, 0.8, 0.4, 0.1]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_curve_is_the_metric_at_every_threshold(name):
    random = np.random.default_rng(1)
    labels, scores = random.integers(0, 2, 30), np.round(random.normal(size=30), 1)
    curve = ScoreTally.from_scores(labels, scores).curve(name)
    assert curve.thresholds.tolist() == [np.inf, *sorted(set((scores + 0.0).tolist()), reverse=True)]
    for threshold, value in zip(curve.thresholds, curve.values, strict=True):
        confusion = Confusion.from_predictions(labels, scores >= threshold)
        np.testing.assert_equal(value, get_metric(name).evaluate(confusion))


# The laws


@pytest.mark.parametrize("weighted", [False, True])
@given(first=ROWS, second=ROWS)
def test_the_tally_of_a_union_is_the_sum_of_tallies(weighted, first, second):
    first, second = some(first), some(second)
    together = tally_of(first + second, weighted)
    assert same(tally_of(first, weighted) + tally_of(second, weighted), together)
    assert same(tally_of(second, weighted) + tally_of(first, weighted), together)


@given(ROWS, ROWS, ROWS)
def test_addition_is_associative(first, second, third):
    a, b, c = (tally_of(some(rows), weighted=False) for rows in (first, second, third))
    assert same((a + b) + c, a + (b + c))
    assert same(sum([a, b, c]), a + b + c)


def test_a_different_sample_is_a_different_tally():
    tally = ScoreTally.from_scores([1, 0], [0.5, 0.7])
    for labels, scores in (([0, 1], [0.5, 0.7]), ([1, 0], [0.5, 0.8]), ([1, 0, 0], [0.5, 0.7, 0.7])):
        other = ScoreTally.from_scores(labels, scores)
        assert tally != other
        assert tally.sample.fingerprint != other.sample.fingerprint
    assert tally != "tally"


def test_a_cut_without_a_fingerprint_is_known_by_its_counts():
    random = np.random.default_rng(0)
    scores = random.random(200)
    labels = random.random(200) < scores
    tally = ScoreTally.from_scores(labels, scores)
    named = tally.best_cut("f1")
    cut = named.with_sample(fingerprint="")
    assert tally.has_tuned(named)
    assert tally.has_tuned(cut)
    assert tally.with_prior(0.1).has_tuned(cut)
    accepted = int((scores >= cut.threshold).argmax())
    inside, other = scores.copy(), labels.copy()
    inside[accepted] = np.nextafter(cut.threshold, 2)  # it stays accepted, but stands in the interval
    other[accepted] = not other[accepted]
    for changed in ((labels, inside), (other, scores), (labels[:-1], scores[:-1])):
        assert not ScoreTally.from_scores(*changed).has_tuned(cut)
    assert not ScoreTally.from_scores(labels, scores, sample_weight=np.full(200, 2.0)).has_tuned(
        cut.with_sample(weighted=True)
    )
    assert not tally.has_tuned(cut.with_sample(rows=0))


def test_weighted_and_unweighted_tallies_add():
    both = ScoreTally.from_scores([1], [1]) + ScoreTally.from_scores([1, 0], [1, 0], sample_weight=[0.5, 0.25])
    assert both.weight.tolist() == [[0, 1.5], [0.25, 0]]
    assert both.rows.tolist() == [[0, 2], [1, 0]]
    assert both.squares.tolist() == [[0, 1.25], [0.0625, 0]]
    assert both.sample.weighted


def test_tallies_of_different_dtypes_keep_the_wider():
    single = ScoreTally.from_scores([1], np.array([0.5], dtype=np.float32))
    double = ScoreTally.from_scores([0], np.array([0.25]))
    assert (single + single).dtype == np.float32
    assert (single + double).dtype == (double + single).dtype == np.float64


def test_what_is_no_tally_does_not_add():
    tally = ScoreTally.from_scores([1, 0], [0.5, 0.7])
    with pytest.raises(TypeError):
        tally + 1
    with pytest.raises(TypeError):
        1 + tally
    with pytest.raises(ValueError, match=r"different priors given: 0\.1 and None"):
        tally.with_prior(0.1) + tally


@pytest.mark.parametrize("weighted", [False, True])
@given(rows=ROWS, order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(weighted, rows, order):
    rows = some(rows)
    shuffled = rows.copy()
    order.shuffle(shuffled)
    assert same(tally_of(rows, weighted), tally_of(shuffled, weighted))


@given(st.lists(st.tuples(st.booleans(), FINITE_OR_NOT, st.integers(0, 3)), max_size=25))
def test_a_weight_is_that_many_rows(rows):
    rows = some(rows)
    weighted = tally_of(rows, weighted=True)
    repeated = tally_of([row for row in rows for _ in range(int(row[2]))], weighted=False)
    assert np.array_equal(weighted.keys, repeated.keys)
    assert np.array_equal(weighted.weight, repeated.weight)
    assert weighted.confusion == repeated.confusion


@given(ROWS)
def test_a_row_without_weight_is_absent(rows):
    rows = some(rows)
    assert same(tally_of(rows, weighted=True), tally_of([row for row in rows if row[2] > 0], weighted=True))


def test_keys_that_span_more_than_63_bits_are_sorted_too():
    tally = ScoreTally.from_scores([1, 0, 1], [-1e300, 1e300, 0.0])
    assert tally.scores.tolist() == [1e300, 0.0, -1e300]
    assert tally.weight.tolist() == [[1, 0], [0, 1], [0, 1]]


# Another prior


@pytest.mark.parametrize("prior", [0.02, 0.5, 0.97])
def test_another_prior_is_another_weighing_of_the_classes(metric, prior, oracle):
    random = np.random.default_rng([17, int(100 * prior)])
    scores = np.round(random.normal(size=40), 1)
    labels = (random.random(40) < 1 / (1 + np.exp(-scores))).astype(int)
    name = next(name for name, one in oracle.metrics.items() if one is metric)
    formula = oracle.at_prior(oracle.formulas[name], Fraction(prior))
    value, attempt = oracle.best(oracle.attempts(labels, scores), formula)

    tally = ScoreTally.from_scores(labels, scores).with_prior(prior)
    cut = tally.best_cut(metric)
    assert cut.predict(scores).tolist() == attempt.predictions
    assert cut.value == pytest.approx(float(value), rel=1e-9, abs=1e-12)
    assert cut.confusion == Confusion(*attempt.cells)
    weights = np.where(labels == 1, prior / labels.sum(), (1 - prior) / (1 - labels).sum())
    weighed = ScoreTally.from_scores(labels, scores, sample_weight=weights).best_cut(metric)
    assert weighed.value == pytest.approx(cut.value, rel=1e-9, abs=1e-12)


def test_the_samples_own_prior_changes_nothing(metric):
    labels, scores = [0, 1, 0, 1, 1, 0, 0, 0], [1, 2, 3, 4, 5, 6, 2, 0]
    tally = ScoreTally.from_scores(labels, scores)
    given_prior, own = tally.with_prior(tally.prior).best_cut(metric), tally.best_cut(metric)
    assert given_prior.value == pytest.approx(own.value, rel=1e-12, abs=1e-15)
    assert given_prior.interval == own.interval


@pytest.mark.parametrize("prior", [0.02, 0.3, 0.97])
def test_a_cut_holds_the_prior_that_was_given(prior):
    for negatives in (1, 4, 7):
        tally = ScoreTally.from_scores([1, 1] + [0] * negatives, range(2 + negatives)).with_prior(prior)
        cut = tally.best_cut("f1")
        assert tally.prior == prior
        assert cut.prior_given
        assert cut.prior == prior


@pytest.mark.parametrize("prior", [0, 1, -0.1, 1.1, float("nan")])
def test_what_is_no_prior_is_refused(prior):
    with pytest.raises(ValueError, match=f"0 < prior < 1, got {prior}"):
        ScoreTally.from_scores([1, 0], [1, 2]).with_prior(prior)


def test_another_prior_needs_both_classes():
    with pytest.raises(ValueError, match="rows of both classes"):
        ScoreTally.from_scores([1, 1], [1, 2]).with_prior(0.5)
