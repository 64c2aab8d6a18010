"""MultilabelDisplay takes the scores that everything else takes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from surecut import tune_thresholds
from surecut.plots import MultilabelDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    return X, (X[:, :2] + random.normal(size=(200, 2)) > 0).astype(int)


def test_probabilities_are_preferred(rows):
    X, Y = rows
    linear = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    assert MultilabelDisplay.from_estimator(linear, X, Y).cut == tune_thresholds(Y, linear.predict_proba(X))
    margins = MultilabelDisplay.from_estimator(linear, X, Y, response_method="decision_function")
    assert margins.cut == tune_thresholds(Y, linear.decision_function(X))


@pytest.mark.parametrize("one", [0, 1])
def test_a_label_of_one_class_in_training_is_drawn(rows, one):
    X, Y = rows
    trained = np.column_stack((Y, np.full(len(Y), one)))
    forest = RandomForestClassifier(5, random_state=0).fit(X, trained)
    mixed = np.column_stack((Y, np.arange(len(Y)) % 2))
    display = MultilabelDisplay.from_estimator(forest, X, mixed)
    assert (display.cut[2].confusion.predicted_positives) == len(Y)  # one score for all rows: F1 accepts them
    assert len(display.positions) == 3


@pytest.mark.parametrize("metric", ["f1", "am"])
def test_a_label_of_one_class_in_validation_is_drawn(rows, metric):
    X, Y = rows
    linear = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    validation = Y.copy()
    validation[:, 0] = 0
    display = MultilabelDisplay.from_estimator(linear, X, validation, metric=metric)
    assert list(display.cut.shared) == [0]
    assert display.axes_[0].get_legend().get_texts()[0].get_text() == "shared by labels that cannot be tuned"
