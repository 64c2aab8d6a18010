"""Displays: their numbers, what they draw, and that they never show anything."""

from __future__ import annotations

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="displays need matplotlib")
matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from surecut import PlugInClassifier, ScoreTally, tune_threshold  # noqa: E402
from surecut.plots import MetricThresholdDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def quietly(monkeypatch):
    def shown(*arguments, **options):
        raise AssertionError("a display must not call show")

    monkeypatch.setattr(plt, "show", shown)
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    return X, X[:, 0] + random.normal(size=400) > 1


@pytest.fixture(scope="module")
def scored(rows):
    X, y = rows
    return y, X[:, 0]


class TestMetricThresholdDisplay:
    def test_the_curve_is_the_tallys(self, scored):
        display = MetricThresholdDisplay.from_predictions(*scored, metric="f2")
        thresholds, values = ScoreTally.from_scores(*scored).curve("f2")
        np.testing.assert_array_equal(display.thresholds, thresholds[:0:-1])
        np.testing.assert_array_equal(display.line_.get_ydata(), values[:0:-1])
        assert display.cut == tune_threshold(*scored, metric="f2")
        assert display.cut_value == display.cut.value
        assert display.ax_.get_ylabel() == "f2"

    def test_it_draws_on_the_axes_it_is_given(self, scored):
        figure, ax = plt.subplots()
        display = MetricThresholdDisplay.from_predictions(*scored, ax=ax, name="mine", color="black", linewidth=3)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert display.line_.get_color() == "black"
        assert ax.get_legend().get_texts()[0].get_text() == "mine"
        assert display.plot(ax) is display

    def test_a_cut_from_elsewhere_is_shown_at_its_value_here(self, scored):
        y, scores = scored
        cut = tune_threshold(y[:100], scores[:100])
        display = MetricThresholdDisplay.from_cut(cut, y[100:], scores[100:])
        assert display.cut is cut
        assert display.cut_value == cut.metric.score(y[100:], cut.predict(scores[100:]))

    def test_a_plug_in_classifier_brings_its_metric_cut_and_class(self, rows):
        X, y = rows
        named = np.where(y, "yes", "no")
        model = PlugInClassifier(LogisticRegression(), metric="f2", pos_label="no").fit(X, named)
        display = MetricThresholdDisplay.from_estimator(model, X, named)
        assert display.cut is model.cut_
        assert display.cut_value == model.cut_.metric.score(named, model.predict(X), pos_label="no")
        assert MetricThresholdDisplay.from_estimator(model, X, named, metric="jaccard").ax_.get_ylabel() == "jaccard"

    def test_any_classifier_gets_its_best_cut(self, rows):
        X, y = rows
        model = LogisticRegression().fit(X, y)
        display = MetricThresholdDisplay.from_estimator(model, X, y, metric="am")
        assert display.cut == tune_threshold(y, model.predict_proba(X)[:, 1], metric="am")

    def test_a_cut_that_predicts_nothing_has_no_line(self):
        display = MetricThresholdDisplay.from_predictions([0, 0, 1], [0.1, 0.9, 0.5], metric="specificity")
        assert display.cut.predicts_nothing
        assert display.cut_line_ is None
        assert display.cut_value == 1

    def test_a_given_prior_is_kept(self, scored):
        tally = ScoreTally.from_scores(*scored).with_prior(0.01)
        cut = tally.best_cut("f1")
        assert MetricThresholdDisplay.from_cut(cut, *scored).cut_value == pytest.approx(cut.value)
