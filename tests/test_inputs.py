"""What people pass by mistake, and the message that helps them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from surecut import Confusion, ScoreTally, tune_threshold
from surecut._inputs import as_scores, as_weights
from surecut._labels import as_labels

LABELS, SCORES = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]


@pytest.fixture(params=["sorted", "searched", "tallied"])
def tune(request, searching):
    """The three ways in: every bad input is refused on each, with the same message."""

    def searched(*columns, **options):
        with searching():
            return tune_threshold(*columns, **options)

    def tallied(*columns, metric="f1", constraint=None, **options):
        return ScoreTally.from_scores(*columns, **options).best_cut(metric, constraint)

    return {"sorted": tune_threshold, "searched": searched, "tallied": tallied}[request.param]


def refusal(tune, *columns, error=ValueError, **options):
    with pytest.raises(error) as caught:
        tune(*columns, **options)
    return str(caught.value)


# Scores


def test_nan_in_scores(tune):
    message = refusal(tune, LABELS, [0.1, np.nan, 0.3, np.nan])
    assert "y_score holds NaN in 2 of 4 rows, the first at position 1" in message
    assert 'missing="drop"' in message
    assert "drop these rows" in message


@pytest.mark.parametrize(
    "missing",
    [
        [0.1, None, 0.3, 0.4],
        np.array([0.1, np.nan, 0.3, 0.4], dtype=np.float32),
        np.array([0.1, np.nan, 0.3, 0.4], dtype=np.float16),
        pd.Series([0.1, None, 0.3, 0.4]),
        pd.Series([0.1, pd.NA, 0.3, 0.4], dtype="Float64"),
        pd.Series([1, pd.NA, 3, 4], dtype="Int64"),
        pl.Series([0.1, None, 0.3, 0.4]),
    ],
    ids=["list", "float32", "float16", "pandas", "pandas Float64", "pandas Int64", "polars"],
)
def test_a_missing_score_is_nan(tune, missing):
    assert "NaN in 1 of 4 rows, the first at position 1" in refusal(tune, LABELS, missing)


def test_two_columns_of_probabilities(tune):
    message = refusal(tune, LABELS, np.full((4, 2), 0.5))
    assert "shape (4, 2), the two columns of predict_proba" in message
    assert "y_score[:, 1]" in message


def test_a_column_vector(tune):
    assert "y_score[:, 0]" in refusal(tune, LABELS, np.full((4, 1), 0.5))


def test_a_matrix_of_scores_points_to_tune_thresholds(tune):
    assert "shape (4, 3): tune_thresholds" in refusal(tune, LABELS, np.full((4, 3), 0.5))
    assert "sparse matrix: tune_thresholds" in refusal(tune, LABELS, scipy.sparse.csr_array(np.eye(4)))


@pytest.mark.parametrize("largest", [2**53 + 1, -(2**53) - 1])
def test_integers_that_float64_cannot_tell_apart(tune, largest):
    message = refusal(tune, LABELS, np.array([0, 1, 2, largest]))
    assert f"the integer {abs(largest)}, beyond 2**53" in message
    assert "rescale or rank" in message


def test_unsigned_and_python_integers_beyond(tune):
    assert "beyond 2**53" in refusal(tune, LABELS, np.array([0, 1, 2, 2**63 + 5], dtype=np.uint64))
    assert "beyond 2**53" in refusal(tune, LABELS, [0, 1, 2**70, 2**70 + 1])


def test_integers_up_to_2_to_the_53_are_taken(tune):
    cut = tune(LABELS, np.array([-(2**53), 2**53 - 1, 0, 2**53]))
    assert cut.predict(np.array([2**53 - 1, 2**53 - 2**51, 0])).tolist() == [True, True, False]


def test_text_is_no_score(tune):
    assert "y_score must be numbers, got text" in refusal(tune, LABELS, list("abcd"), error=TypeError)


def test_complex_numbers_are_no_scores(tune):
    assert "y_score must be numbers" in refusal(tune, LABELS, np.array(SCORES) + 1j, error=TypeError)


def test_masked_arrays(tune):
    masked = np.ma.array(SCORES, mask=[0, 1, 0, 1])
    assert "y_score is a masked array with 2 masked values: drop these rows" in refusal(tune, LABELS, masked)
    masked = np.ma.array(LABELS, mask=[0, 1, 0, 0])
    assert "y_true is a masked array with 1 masked value:" in refusal(tune, masked, SCORES)
    assert tune(LABELS, np.ma.array(SCORES, mask=False)).value == tune(LABELS, SCORES).value


# Shapes


def test_columns_of_different_lengths(tune):
    message = refusal(tune, LABELS, SCORES[:3])
    assert message == "the columns must have one length: y_true has 4, y_score has 3 rows"


def test_empty_columns(tune):
    assert "y_true is empty: at least one row is needed" in refusal(tune, [], [])
    assert "y_score is empty" in refusal(tune, LABELS, [])


def test_what_is_no_column(tune):
    assert "one column of values, got a single int" in refusal(tune, 1, 0.5)
    assert "got a single generator" in refusal(tune, (label for label in LABELS), SCORES)
    assert "ragged" in refusal(tune, LABELS, [[1.0], [1.0, 2.0], [1.0], [1.0]])
    assert "y_true must be one-dimensional, got an array of shape (2, 2)" in refusal(tune, [[0, 1], [0, 1]], SCORES)


# Labels


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 2, 1], [1.0, 0.0, 0.5, 1.0], [-1, 0, 1, 0], list("abca"), [2, 1, 3, 1], pd.Series(list("abca"))],
    ids=str,
)
def test_more_than_two_classes_show_the_way(tune, labels):
    message = refusal(tune, labels, SCORES)
    assert "y_true must hold two classes, found 3" in message
    assert "tune_top_k(y, scores, k=1) or PlugInClassifier(estimator)" in message


def test_three_classes_are_found_late(tune):
    """A third class that stands only in the last row is still found."""
    labels = np.array([0, 1] * 3000 + [7])
    assert "found 3: 0, 1, 7" in refusal(tune, labels, np.arange(6001.0))


def test_text_labels_need_a_positive(tune):
    message = refusal(tune, ["ham", "spam", "ham", "spam"], SCORES)
    assert message == "y_true holds the labels 'ham', 'spam': say which one is positive with pos_label="


def test_unusual_numbers_need_a_positive(tune):
    message = refusal(tune, [1, 2, 1, 2], SCORES)
    assert message == "y_true holds the labels 1, 2: say which one is positive with pos_label="
    assert tune([1, 2, 1, 2], SCORES, pos_label=2).value == tune(LABELS, SCORES).value


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        (["ham", "spam", "ham", "spam"], "egg"),
        ([1, 2, 1, 2], 5),
        ([1, 2, 1, 2], "2"),
        ([1, 2, 1, 2], 1.5),
        ([1, 1, 1, 1], "2"),
        (np.array([1, 2, 1, 2], dtype=np.int8), 300),
        ([True, False, True, False], "yes"),
    ],
    ids=str,
)
def test_a_positive_label_that_does_not_occur(tune, labels, pos_label):
    message = refusal(tune, labels, SCORES, pos_label=pos_label, metric="accuracy")
    assert f"pos_label={pos_label!r} is not among the labels in y_true" in message


MISSING_LABELS = {
    "None among integers": ([0, None, 1, 1], None),
    "NaN among integers": ([0, float("nan"), 1, 1], None),
    "NaN with a positive label": ([1, float("nan"), 1, 0], 0),
    "None among booleans": ([True, None, False, True], None),
    "NA among integers": ([0, pd.NA, 1, 1], None),
    "None among text": (np.array(["a", None, "b", "b"], dtype=object), "b"),
    "NaN among text": (np.array(["a", float("nan"), "b", "b"], dtype=object), "b"),
    "pandas Int64": (pd.Series([0, pd.NA, 1, 1], dtype="Int64"), None),
    "pandas boolean": (pd.Series([True, pd.NA, False, True], dtype="boolean"), None),
    "pandas string": (pd.Series(["a", pd.NA, "b", "b"], dtype="string"), "b"),
    "pandas category": (pd.Series(["a", None, "b", "b"], dtype="category"), "b"),
    "pandas text": (pd.Series(["a", None, "b", "b"]), "b"),
    "polars integers": (pl.Series([0, None, 1, 1]), None),
    "polars booleans": (pl.Series([True, None, False, True]), None),
}


@pytest.mark.parametrize(("labels", "pos_label"), MISSING_LABELS.values(), ids=MISSING_LABELS)
def test_missing_labels(tune, labels, pos_label):
    message = refusal(tune, labels, SCORES, pos_label=pos_label)
    assert "y_true holds 1 missing label, the first at position 1: drop these rows" in message
    assert 'missing="drop"' in message


def test_labels_of_mixed_types(tune):
    mixed = np.array([1, "a", 1, "a"], dtype=object)
    assert "mixes labels of the types 'int', 'str'" in refusal(tune, mixed, SCORES, pos_label=1, error=TypeError)
    dates = np.array(["2020-01-01"] * 4, dtype="datetime64[D]")
    assert "must be numbers, booleans or text" in refusal(tune, dates, SCORES, error=TypeError)


LABELS_OF_ANY_KIND = {
    "bytes": (np.array(LABELS, dtype=np.uint8), None),
    "float16": (np.array(LABELS, dtype=np.float16), None),
    "float64": (np.array(LABELS, dtype=float), None),
    "booleans": (np.array(LABELS, dtype=bool), None),
    "boolean objects": (np.array([bool(label) for label in LABELS], dtype=object), None),
    "integer objects": (np.array(LABELS, dtype=object), None),
    "minus one and one": ([-1, 1, -1, 1], None),
    "True is positive": ([False, True, False, True], True),
    "False is positive": ([True, False, True, False], False),
    "text": (["no", "yes", "no", "yes"], "yes"),
    "any integers": ([3, -7, 3, -7], -7),
    "any floats": ([0.5, 2.5, 0.5, 2.5], 2.5),
    "pandas with an index": (pd.Series(LABELS, index=[7, 3, 9, 1]), None),
    "pandas Int64": (pd.Series(LABELS, dtype="Int64"), None),
    "pandas boolean": (pd.Series([False, True, False, True], dtype="boolean"), None),
    "pandas category": (pd.Series(["no", "yes", "no", "yes"], dtype="category"), "yes"),
    "polars integers": (pl.Series(LABELS), None),
    "polars text": (pl.Series(["no", "yes", "no", "yes"]), "yes"),
}


@pytest.mark.parametrize(("labels", "pos_label"), LABELS_OF_ANY_KIND.values(), ids=LABELS_OF_ANY_KIND)
def test_labels_of_any_kind_are_taken(tune, labels, pos_label):
    cut, expected = tune(labels, SCORES, pos_label=pos_label), tune(LABELS, SCORES)
    assert (cut.threshold, cut.value, cut.confusion) == (expected.threshold, expected.value, expected.confusion)
    assert cut.fingerprint == expected.fingerprint


SCORES_OF_ANY_KIND = {
    "tuple": tuple(SCORES),
    "pandas with an index": pd.Series(SCORES, index=[7, 3, 9, 1]),
    "pandas Float64": pd.Series(SCORES, dtype="Float64"),
    "polars": pl.Series(SCORES),
    "strided": np.array([SCORES, SCORES]).T[:, 0],
    "long double": np.array(SCORES, dtype=np.longdouble),
    "objects": np.array(SCORES, dtype=object),
}


@pytest.mark.parametrize("scores", SCORES_OF_ANY_KIND.values(), ids=SCORES_OF_ANY_KIND)
def test_scores_of_any_container_are_taken(tune, scores):
    assert tune(LABELS, scores) == tune(LABELS, SCORES)


# One class


@pytest.mark.parametrize("metric", ["f1", "jaccard", "am", "recall", "precision", "kappa", "mcc", "gmean"])
def test_no_positives(tune, metric):
    message = refusal(tune, [0, 0, 0, 0], SCORES, metric=metric)
    assert f"{metric} is undefined without rows of the positive class: all labels are negative" in message


@pytest.mark.parametrize("metric", ["am", "specificity", "kappa", "gilbert", "mcc", "gmean", "hmean"])
def test_no_negatives(tune, metric):
    message = refusal(tune, [1, 1, 1, 1], SCORES, metric=metric)
    assert f"{metric} is undefined without rows of the negative class: all labels are positive" in message


def test_one_class_where_the_metric_is_defined(tune):
    assert tune([0, 0, 0, 0], SCORES, metric="accuracy").predicts_nothing
    everything = tune([1, 1, 1, 1], SCORES, metric="f1")
    assert everything.value == 1
    assert everything.predict(SCORES).all()


def test_a_class_whose_rows_have_no_weight_is_absent(tune):
    message = refusal(tune, LABELS, SCORES, sample_weight=[1, 0, 1, 0])
    assert "f1 is undefined without rows of the positive class" in message


# Weights


def test_weights_that_are_no_weights(tune):
    def message(weights, error=ValueError):
        return refusal(tune, LABELS, SCORES, sample_weight=weights, error=error)

    assert message([0, 0, 0, 0]) == "sample_weight is zero in all 4 rows: nothing is left to tune on"
    assert "finite and not negative, got -1.0 at position 2 (1 such row)" in message([1, 1, -1, 1])
    assert "got nan at position 1 (2 such rows)" in message([1, np.nan, 1, np.nan])
    assert "got inf at position 3" in message([1, 1, 1, np.inf])
    assert "one weight per row: 4 rows, 3 weights" in message([1, 1, 1])
    assert "sample_weight must be numbers" in message(list("abcd"), error=TypeError)
    assert "sample_weight must be one-dimensional" in message([[1, 1], [1, 1]])


# Metrics and constraints


def test_metrics_that_are_no_metrics(tune):
    assert "unknown metric 'f-one'" in refusal(tune, LABELS, SCORES, metric="f-one")
    assert "cannot be tuned by a cut" in refusal(tune, LABELS, SCORES, metric="roc_auc")
    assert "0 < beta < 1e+100" in refusal(tune, LABELS, SCORES, metric="f0.0")


def test_constraints_that_cannot_be_met(tune):
    message = refusal(tune, [0, 1, 1, 0], SCORES, constraint="precision>=0.9")
    assert message == "no cut meets precision>=0.9: the highest precision attainable is 0.666667"


# The checked columns themselves


def test_scores_are_not_copied():
    scores = np.array(SCORES, dtype=np.float32)
    assert as_scores(scores) is scores
    assert as_scores([True, False]).tolist() == [1, 0]


def test_numeric_labels_are_not_copied():
    labels = np.array(LABELS, dtype=np.int8)
    assert as_labels(labels).codes is labels
    assert as_labels(labels).is_positive().tolist() == [False, True, False, True]


def test_messages_name_the_column():
    with pytest.raises(ValueError, match="scores holds NaN"):
        tune_threshold(LABELS, SCORES).predict([np.nan])
    with pytest.raises(ValueError, match="importance must be finite"):
        as_weights([-1], 1, name="importance")
    with pytest.raises(ValueError, match=re.escape("y_pred must be one-dimensional, got an array of shape (1, 2)")):
        Confusion.from_predictions([1], [[1, 0]])


def test_two_labels_neither_of_which_is_one(tune):
    assert "say which one is positive with pos_label=" in refusal(tune, [0, -1, 0, -1], SCORES)


@pytest.mark.parametrize("dtype", [">i4", ">f8", "longdouble"])
def test_labels_of_any_byte_order(dtype, kernels, searching):
    labels, scores = np.array([0, 1, 0, 1, 1] * 20), np.linspace(0, 1, 100)
    with searching(kernels):
        assert tune_threshold(labels.astype(dtype), scores.astype(">f8")) == tune_threshold(labels, scores)
