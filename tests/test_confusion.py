"""The confusion matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut import Confusion


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 8)), min_size=1, max_size=30))
def test_cells_are_counted(rows):
    truth, predicted, weights = zip(*rows, strict=True)
    pairs = list(zip(truth, predicted, strict=True))
    expected = [pairs.count(pair) for pair in ((True, True), (False, True), (True, False), (False, False))]
    confusion = Confusion.from_predictions(truth, predicted)
    assert confusion == Confusion(*expected)
    assert all(type(cell) is int for cell in (confusion.tp, confusion.fp, confusion.fn, confusion.tn))
    if any(weights):
        repeated = [row for row in rows for _ in range(row[2])]
        weighed = Confusion.from_predictions(truth, predicted, sample_weight=[weight / 4 for weight in weights])
        counted = Confusion.from_predictions([row[0] for row in repeated], [row[1] for row in repeated])
        assert weighed == Confusion(counted.tp / 4, counted.fp / 4, counted.fn / 4, counted.tn / 4)


@pytest.mark.parametrize(
    ("truth", "predicted", "pos_label"),
    [
        ([1, 0, 1, 0, 1], [1, 1, 0, 0, 1], None),
        ([1, -1, 1, -1, 1], [1, 1, -1, -1, 1], None),
        ([True, False, True, False, True], [True, True, False, False, True], None),
        ([2, 1, 2, 1, 2], [2, 2, 1, 1, 2], 2),
        (list("babab"), list("bbaab"), "b"),
        (["b", "a", "b", "a", "b"], [True, True, False, False, True], "b"),
        ([1.0, 0.0, 1.0, 0.0, 1.0], [1, 1, 0, 0, 1], None),
    ],
)
def test_labels_of_any_kind(truth, predicted, pos_label):
    assert Confusion.from_predictions(truth, predicted, pos_label=pos_label) == Confusion(tp=2, fp=1, fn=1, tn=1)


def test_totals():
    confusion = Confusion(tp=8, fp=2, fn=4, tn=86)
    assert (confusion.positives, confusion.negatives, confusion.predicted_positives) == (12, 88, 10)
    assert (confusion.total, confusion.prior) == (100, 0.12)


def test_confusions_add():
    assert Confusion(1, 2, 3, 4) + Confusion(10, 20, 30, 40) == Confusion(11, 22, 33, 44)


def test_another_prior_keeps_the_rates():
    confusion = Confusion(tp=6, fp=5, fn=2, tn=15)
    moved = confusion.at_prior(0.1)
    assert moved.total == pytest.approx(1)
    assert moved.prior == pytest.approx(0.1)
    assert moved.tp / moved.positives == pytest.approx(6 / 8)
    assert moved.fp / moved.negatives == pytest.approx(5 / 20)


def test_one_of_many_is_plain_numbers():
    many = Confusion(np.array([0, 1]), np.array([0, 2]), np.array([1, 0]), np.array([2, 0]))
    one = many[1]
    assert one == Confusion(1, 2, 0, 0)
    assert type(one.tp) is int
    assert many[:1] == Confusion(np.array([0]), np.array([0]), np.array([1]), np.array([2]))
    assert many != Confusion(1, 2, 0, 0)


def test_confusions_compare_by_value():
    assert Confusion(1, 2, 3, 4) == Confusion(1.0, 2.0, 3.0, 4.0)
    for other in (Confusion(0, 2, 3, 4), Confusion(1, 0, 3, 4), Confusion(1, 2, 0, 4), Confusion(1, 2, 3, 0)):
        assert Confusion(1, 2, 3, 4) != other
    assert Confusion(1, 2, 3, 4) != (1, 2, 3, 4)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="y_true has 3, y_pred has 2 rows"):
        Confusion.from_predictions([1, 0, 1], [1, 0])


def test_predictions_of_three_kinds_are_refused():
    with pytest.raises(ValueError, match="y_pred must hold two classes, found 3"):
        Confusion.from_predictions([1, 0, 1], [1, 0, 2])


def test_scalars_are_hashed_and_arrays_are_not():
    assert {Confusion(1, 2, 3, 4): "here"}[Confusion(1.0, np.int64(2), 3, 4)] == "here"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Confusion(*np.ones((4, 2))))
