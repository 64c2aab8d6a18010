"""ScoreSketch: its bracket holds, merging does not depend on order, and bytes are checked."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut import Cut, ScoreSketch, ScoreTally, get_metric, tune_threshold
from surecut.constraints import InfeasibleError
from surecut.sources.sketch import HEADER

LABELS, SCORES = [0, 0, 1, 1, 0, 1], [0.125, 0.5, 0.375, 0.75, -3.0, 1e300]


def sketch_of(labels, scores, weights=None, bits=7):
    sketch = ScoreSketch(bits)
    sketch.update(labels, scores, weights)
    return sketch


def test_the_bracket_holds_the_best_value_of_all_cuts(family, sample_of):
    for size in (3, 500):
        sample = sample_of(family, size)
        for weights in sample.weights.values():
            for metric in ("f1", "am", "mcc", "gmean"):
                best = tune_threshold(sample.labels, sample.scores, metric=metric, sample_weight=weights)
                cut = sketch_of(sample.labels, sample.scores, weights).best_cut(metric)
                slack = 1e-12 * (1 + abs(best.value))
                assert cut.lower - slack <= best.value <= cut.upper + slack
                assert cut.lower == cut.value


def test_the_cut_is_worth_what_it_says(family, sample_of):
    sample = sample_of(family, 400)
    cut = sketch_of(sample.labels, sample.scores).best_cut("f1")
    predicted = cut.predict(sample.scores)
    assert cut.metric.score(sample.labels, predicted) == cut.value
    assert int(predicted.sum()) == cut.confusion.tp + cut.confusion.fp
    assert cut.rows == 400
    assert cut.fingerprint == ScoreTally.from_scores(sample.labels, sample.scores).sample.fingerprint


def test_the_bracket_is_narrow_where_rows_are_many():
    random = np.random.default_rng(0)
    scores = random.random(200_000)
    labels = random.random(200_000) < scores**2
    cut = sketch_of(labels, scores).best_cut("f1")
    assert cut.upper - cut.lower < 0.01
    finer = sketch_of(labels, scores, bits=11).best_cut("f1")
    assert finer.upper - finer.lower < (cut.upper - cut.lower) / 4


def test_bins_are_narrow():
    sketch = ScoreSketch()
    low, high = sketch._bins.ends(np.arange(int(sketch._bins.half) + 200, 2 * int(sketch._bins.half) - 1))
    from surecut.core.keys import scores_of_keys

    assert ((scores_of_keys(high) - scores_of_keys(low)) / scores_of_keys(low) < 2**-7).all()


def test_a_constraint_bounds_the_bracket_too():
    random = np.random.default_rng(1)
    scores = np.round(random.random(5_000), 3)
    labels = random.random(5_000) < scores
    best = tune_threshold(labels, scores, metric="recall", constraint="precision>=0.8")
    cut = sketch_of(labels, scores).best_cut("recall", "precision>=0.8")
    assert cut.lower <= best.value <= cut.upper
    with pytest.raises(InfeasibleError, match="no cut meets accuracy>=1"):
        sketch_of(labels, scores).best_cut("recall", "accuracy>=1")


rows = st.lists(
    st.tuples(st.integers(0, 1), st.floats(allow_nan=False), st.integers(0, 3)),
    max_size=20,
)


def sketched(some, weighted=False):
    sketch = ScoreSketch()
    if some and (not weighted or any(weight for _, _, weight in some)):
        labels, scores, weights = map(list, zip(*some, strict=True))
        sketch.update(labels, scores, np.array(weights, dtype=float) if weighted else None)
    return sketch


@given(rows, rows, rows, st.booleans())
def test_sketches_add_up_in_any_order(a, b, c, weighted):
    first, second, third = (sketched(some, weighted) for some in (a, b, c))
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first + ScoreSketch() == first
    if not weighted:
        assert first + second == sketched(a + b)


@given(rows, st.booleans())
def test_bytes_are_read_back(some, weighted):
    sketch = sketched(some, weighted)
    again = ScoreSketch.from_bytes(sketch.to_bytes())
    assert again == sketch
    assert (again.rows, again.weighted, again.bits) == (sketch.rows, sketch.weighted, 7)


@given(st.binary(max_size=80))
def test_other_bytes_are_refused(content):
    with pytest.raises(ValueError, match="this is not a ScoreSketch"):
        ScoreSketch.from_bytes(content)


def test_damaged_bytes_are_refused():
    content = sketch_of(LABELS, SCORES, np.ones(6)).to_bytes()
    with pytest.raises(ValueError, match=f"it has {len(content) - 1} bytes instead of {len(content)}"):
        ScoreSketch.from_bytes(content[:-1])
    with pytest.raises(ValueError, match="version 9, and this surecut reads 1"):
        ScoreSketch.from_bytes(content[:15] + b"\x09" + content[16:])
    for position in range(HEADER.size, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 4
        with pytest.raises(ValueError, match="its checksum does not fit"):
            ScoreSketch.from_bytes(bytes(damaged))


def test_many_rows_and_both_kernels_agree():
    random = np.random.default_rng(2)
    scores = random.standard_cauchy(600_000)
    labels = random.random(600_000) < 0.3
    whole = sketch_of(labels, scores)
    parts = sum(sketch_of(labels[i::7], scores[i::7]) for i in range(7))
    assert whole == parts
    assert repr(whole).startswith("<ScoreSketch of 600,000 rows, ")


@pytest.mark.parametrize("scores", [[0.3, 0.71], [0.3, 0.71, 0.7101]], ids=["a row in each bin", "two in one"])
def test_the_hull_of_bins_has_their_edges(scores):
    sketch = sketch_of([0, 1, 1][: len(scores)], scores)
    for cut in (sketch.hull.best_cut("f1"), sketch.candidates.best_cut(get_metric("f1"))):
        assert cut == Cut(**{field.name: getattr(sketch.best_cut("f1"), field.name) for field in fields(Cut)})
        assert cut.predict(scores).tolist() == [False, True, True][: len(scores)]


def test_float32_keeps_its_dtype():
    scores = np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32)
    sketch = sketch_of([0, 0, 1, 1], scores)
    cut = sketch.best_cut()
    assert np.float32(cut.threshold) == cut.threshold
    assert cut.predict(scores).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ScoreSketch(0), "bits must fulfil 1 <= bits <= 12, got 0"),
        (lambda: ScoreSketch().best_cut(), "the sketch holds no rows yet"),
        (lambda: sketch_of([0, 1], [0.5, np.nan]), "y_score holds NaN in 1 of 2 rows"),
        (lambda: sketch_of([0, 1, 2], [0.5, 0.1, 0.2]), "must hold two classes"),
        (lambda: ScoreSketch() + ScoreSketch(8), "have different bins"),
        (lambda: sketch_of(LABELS, SCORES).best_cut(lambda tp, fp, fn, tn: tp), "cannot be bounded inside a bin"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bins_out_of_order_are_refused():
    sketch = sketch_of(LABELS, SCORES)
    for spoil in (lambda number: number[::-1], lambda number: number + 10**6, lambda number: number - number[0] - 1):
        broken = ScoreSketch.from_bytes(sketch.to_bytes())
        broken._number = spoil(broken._number).copy()
        with pytest.raises(ValueError, match="its bins are out of order"):
            ScoreSketch.from_bytes(broken.to_bytes())
    broken = ScoreSketch.from_bytes(sketch.to_bytes())
    broken._counts.rows[0, 0] = -1
    with pytest.raises(ValueError, match="its bins are out of order"):
        ScoreSketch.from_bytes(broken.to_bytes())


def test_a_sketch_is_added_to_and_compared_with_sketches_alone():
    sketch = sketch_of(LABELS, SCORES)
    with pytest.raises(TypeError):
        sketch + 1
    assert sketch != 1
    assert sum([sketch, sketch]).rows == 2 * sketch.rows


def test_no_rows_change_nothing():
    sketch = sketch_of(LABELS, SCORES)
    before = sketch.to_bytes()
    sketch.update([], [])
    assert sketch.to_bytes() == before
