"""Displays: their numbers, what they draw, and that they never show anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="displays need matplotlib")
matplotlib.use("agg")

import matplotlib.pyplot as plt  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from surecut import (  # noqa: E402
    LabelStability,
    PlugInClassifier,
    ScoreTally,
    Stability,
    certify,
    tune_bands,
    tune_threshold,
    tune_thresholds,
)
from surecut.plots import BandsDisplay, CertificateDisplay, MetricThresholdDisplay, MultilabelDisplay  # noqa: E402


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


class TestCertificateDisplay:
    def test_the_tuning_rows_get_the_uniform_certificate(self, scored):
        display = CertificateDisplay.from_predictions(*scored, confidence=0.9)
        cut = tune_threshold(*scored)
        assert display.certificate == certify(cut, *scored, method="uniform", confidence=0.9)
        assert (display.lower <= display.values).all()
        assert (display.values <= display.upper).all()
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "90 % band" in texts
        assert any(f"at least {display.certificate.lower:.4g}" in text for text in texts)

    def test_the_band_holds_the_certificate_of_every_cut(self, scored):
        """A band for both sides at once is wider than a limit for one side."""
        display = CertificateDisplay.from_predictions(*scored)
        at = np.searchsorted(display.thresholds, display.cut.interval[1])
        assert display.lower[at] <= display.certificate.lower
        assert display.upper[at] >= display.certificate.upper

    def test_fresh_rows_get_the_sharper_one(self, scored):
        y, scores = scored
        cut = tune_threshold(y[:200], scores[:200])
        display = CertificateDisplay.from_cut(cut, y[200:], scores[200:])
        assert display.certificate == certify(cut, y[200:], scores[200:], method="holdout")

    def test_from_estimator(self, rows):
        X, y = rows
        model = LogisticRegression().fit(X[:200], y[:200])
        display = CertificateDisplay.from_estimator(model, X[200:], y[200:], metric="am")
        assert display.certificate.method == "uniform"
        tuned = PlugInClassifier(LogisticRegression(), cv=1 / 3, random_state=0).fit(X[:200], y[:200])
        figure, ax = plt.subplots()
        display = CertificateDisplay.from_estimator(tuned, X[200:], y[200:], ax=ax)
        assert display.certificate.method == "holdout"
        assert display.figure_ is figure


class TestMultilabelDisplay:
    @pytest.fixture
    def labelled(self):
        random = np.random.default_rng(0)
        scores = random.random((300, 6))
        return random.random((300, 6)) < scores * np.linspace(0.1, 0.9, 6), scores

    def test_labels_with_the_most_positives_stand_on_top(self, labelled):
        display = MultilabelDisplay.from_predictions(*labelled, metric="f1", labels=list("abcdef"), most=4)
        cut = tune_thresholds(*labelled, labels=list("abcdef"))
        assert display.cut == cut
        positives = cut.confusion.positives[display.positions]
        assert len(positives) == 4
        assert (np.diff(positives) <= 0).all()
        left, right = display.axes_
        assert left.yaxis_inverted()
        assert [text.get_text() for text in left.get_yticklabels()] == [cut.labels[i] for i in display.positions]
        np.testing.assert_array_equal(display.value_dots_.get_xdata(), cut.per_label[display.positions])
        assert right.get_xlabel() == "f1 of the label"

    def test_given_axes(self, labelled):
        figure, axes = plt.subplots(1, 2, sharey=True)
        display = MultilabelDisplay.from_cut(tune_thresholds(*labelled), axes=axes, color="black")
        assert display.figure_ is figure
        assert display.threshold_dots_.get_color() == "black"

    def test_a_shared_threshold_is_drawn(self, labelled):
        Y, scores = labelled
        Y = Y.copy()
        Y[:, 0] = False
        display = MultilabelDisplay.from_predictions(Y, scores)
        assert display.axes_[0].get_legend().get_texts()[0].get_text() == "shared by labels that cannot be tuned"

    def test_from_estimator(self, rows):
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.multiclass import OneVsRestClassifier

        X, y = rows
        Y = np.column_stack((y, X[:, 1] > 0.5)).astype(int)
        linear = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
        assert MultilabelDisplay.from_estimator(linear, X, Y).cut == tune_thresholds(Y, linear.predict_proba(X))
        forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
        both = np.column_stack([part[:, 1] for part in forest.predict_proba(X)])
        assert MultilabelDisplay.from_estimator(forest, X, Y).cut == tune_thresholds(Y, both)
        with pytest.raises(AttributeError, match="nothing can be cut"):
            MultilabelDisplay.from_estimator(object(), X, Y)


def texts_of(display):
    return [text.get_text() for text in display.texts_]


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


class TestBandsDisplay:
    def test_each_zone_says_what_it_holds(self, scored):
        display = BandsDisplay.from_predictions(*scored, upper="ppv>=0.8", lower="npv>=0.95")
        bands = tune_bands(*scored, upper="ppv>=0.8", lower="npv>=0.95")
        assert display.bands == bands
        np.testing.assert_array_equal(display.confusion, bands.confusion)
        np.testing.assert_array_equal(display.shares, bands.shares)
        negatives, positives = bands.confusion.T
        np.testing.assert_allclose(display.ppv, positives / (negatives + positives))
        np.testing.assert_allclose(display.npv, negatives / (negatives + positives))
        no, ask, yes = texts_of(display)
        assert no == f"no\n{bands.shares[0]:.1%} of rows\nNPV {display.npv[0]:.1%}"
        assert ask == f"ask\n{bands.shares[1]:.1%} of rows\nPPV {display.ppv[1]:.1%}"
        assert yes == f"yes\n{bands.shares[2]:.1%} of rows\nPPV {display.ppv[2]:.1%}"

    def test_spans_reach_from_threshold_to_threshold(self, scored):
        display = BandsDisplay.from_predictions(*scored, upper="ppv>=0.8", lower="npv>=0.95")
        low, high = display.ax_.get_xlim()
        ends = [low, *display.bands.thresholds, high]
        assert [span.get_x() for span in display.spans_] == pytest.approx(ends[:-1])
        assert [span.get_x() + span.get_width() for span in display.spans_] == pytest.approx(ends[1:])
        assert [line.get_xdata()[0] for line in display.threshold_lines_] == display.bands.thresholds.tolist()
        for bar, interval in zip(display.ranges_, display.bands.intervals, strict=True):
            assert bar.get_xdata().tolist() == interval.tolist()

    def test_the_bars_are_shares_of_each_class(self, scored):
        display = BandsDisplay.from_predictions(*scored, upper="ppv>=0.8", lower="npv>=0.95")
        assert display.positives.sum() == pytest.approx(1)
        assert sum(bar.get_height() for bar in display.negative_bars_) == pytest.approx(-1)
        edges = display.edges
        y, scores = scored
        inner = (scores[y] >= edges[20]) & (scores[y] < edges[40])
        assert display.positives[20:40].sum() == pytest.approx(inner.mean())

    @pytest.mark.parametrize(
        "gains",
        [
            {"no": (0, -3), "yes": (-1, 1)},
            {"no": (0, -4), "ask": -0.6, "yes": (-2, 0)},
            {"D": (0, -3), "C": (-0.2, -1), "B": (-0.5, 0.2), "A": (-1, 1)},
        ],
        ids=len,
    )
    def test_any_number_of_zones(self, scored, gains):
        display = BandsDisplay.from_predictions(*scored, gains=gains, zones=tuple(gains))
        assert [text.split("\n")[0] for text in texts_of(display)] == list(gains)
        assert len(display.spans_) == len(gains)
        assert display.confusion.sum() == len(scored[0])

    def test_a_zone_that_no_score_is_in_has_no_span(self, scored):
        display = BandsDisplay.from_predictions(*scored, gains={"no": (0, -1), "ask": -5, "yes": (-1, 0)})
        assert texts_of(display)[1] == "ask\nempty"
        assert len(display.spans_) == 2
        assert np.isnan(display.ppv[1])
        assert legend_of(display).count(f"threshold {display.bands.thresholds[0]:.4g}") == 1
        everything = BandsDisplay.from_predictions(*scored, upper="ppv>=0.999", lower="npv>=0.999", confidence=0.999)
        assert texts_of(everything) == ["no\nempty", texts_of(everything)[1], "yes\nempty"]
        assert len(everything.spans_) == 1
        assert everything.threshold_lines_ == []

    def test_infinite_scores_are_in_the_outer_bars(self, scored):
        y, scores = scored
        with_infinities = np.where(np.arange(len(y)) < 10, np.inf, np.where(np.arange(len(y)) < 20, -np.inf, scores))
        display = BandsDisplay.from_predictions(y, with_infinities, upper="ppv>=0.4", lower="npv>=0.9")
        assert np.abs(display.edges).max() < 100
        assert display.negatives[0] >= (~y[10:20]).sum() / (~y).sum()
        assert display.confusion.sum() == len(y)

    def test_weights_and_a_prior(self, scored):
        y, scores = scored
        weights = np.random.default_rng(0).random(len(y))
        asked = {"upper": "ppv>=0.3", "lower": "npv>=0.98", "prior": 0.05}
        display = BandsDisplay.from_predictions(y, scores, sample_weight=weights, **asked)
        bands = tune_bands(y, scores, sample_weight=weights, **asked)
        assert display.bands == bands
        np.testing.assert_allclose(display.shares, bands.shares)
        assert display.ppv[2] >= 0.3 - 1e-12
        np.testing.assert_allclose(display.shares @ display.ppv, 0.05)

    def test_bands_of_other_rows_are_shown_on_these(self, scored):
        y, scores = scored
        bands = tune_bands(y[:200], scores[:200], upper="ppv>=0.8", lower="npv>=0.95")
        display = BandsDisplay.from_bands(bands, y[200:], scores[200:])
        assert display.bands is bands
        found = bands.predict(scores[200:], as_numbers=True)
        assert display.confusion.sum(axis=1).tolist() == np.bincount(found, minlength=3).tolist()
        tally = ScoreTally.from_scores(y[200:], scores[200:])
        for other in (
            BandsDisplay.from_bands(bands, tally),
            BandsDisplay.from_tally(tally, bands),
            BandsDisplay.from_predictions(y[200:], scores[200:], bands),
        ):
            np.testing.assert_array_equal(other.confusion, display.confusion)
        with pytest.raises(TypeError, match="y_score= is missing"):
            BandsDisplay.from_bands(bands, y)
        with pytest.raises(TypeError, match="tuned already: leave out upper"):
            BandsDisplay.from_predictions(y, scores, bands, upper="ppv>=0.9")

    def test_stable_bands_have_the_spread_of_their_thresholds(self, scored):
        bands = tune_bands(*scored, gains={"no": (0, -4), "ask": -0.6, "yes": (-2, 0)})
        record = settled(-1.0, -0.5, 0.0, 0.5, np.inf)
        stable = replace(bands, stability=(record, record))
        display = BandsDisplay.from_bands(stable, *scored)
        high = display.ax_.get_xlim()[1]
        assert [bar.get_xdata().tolist() for bar in display.ranges_] == [[-1.0, high]] * 2
        assert legend_of(display).count("90 % of resampled thresholds") == 1
        assert "90 % of resampled thresholds" not in legend_of(BandsDisplay.from_bands(bands, *scored))

    def test_it_draws_on_the_axes_it_is_given(self, scored):
        figure, ax = plt.subplots()
        names = ("$no", "ask a colleague of the day shift", "<b>yes</b>")
        display = BandsDisplay.from_predictions(
            *scored, gains={names[0]: (0, -4), names[1]: -0.6, names[2]: (-2, 0)}, zones=names, ax=ax, cmap="viridis"
        )
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert texts_of(display)[1].startswith("ask a colleague o…")
        figure.canvas.draw()
        assert display.plot(ax, color="grey") is display

    def test_rows_with_missing_values_are_left_out(self, scored):
        y, scores = scored
        holes = np.where(np.arange(len(y)) < 30, np.nan, scores)
        with pytest.warns(Warning, match="30"):
            display = BandsDisplay.from_predictions(y, holes, missing="drop", upper="ppv>=0.8", lower="npv>=0.95")
        assert display.confusion.sum() == len(y) - 30


def settled(*quantiles):
    return Stability(200, quantiles, (-0.5, 1.0), 0.008, 1.0, 0.25)


class TestStableCuts:
    def test_the_spread_and_the_near_optimal_range_are_drawn(self, scored):
        cut = replace(tune_threshold(*scored), stability=settled(-1.0, -0.25, 0.0, 0.25, 1.0))
        display = MetricThresholdDisplay.from_cut(cut, *scored)
        bands = [(band.get_x(), band.get_x() + band.get_width()) for band in display.spread_]
        assert bands == [(-1.0, 1.0), (-0.25, 0.25)]
        assert display.near_optimal_.get_xdata().tolist() == [-0.5, 1.0]
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert "resampled thresholds: 90 % and half of 200" in texts
        assert "near-optimal: lose at most 0.008" in texts

    def test_infinite_ends_reach_the_edge_and_leave_the_axes_as_they_are(self, scored):
        exact = tune_threshold(*scored)
        limits = MetricThresholdDisplay.from_cut(exact, *scored).ax_.get_xlim()
        cut = replace(exact, stability=settled(-np.inf, -0.25, 0.0, 0.25, np.inf))
        display = MetricThresholdDisplay.from_cut(cut, *scored)
        assert display.ax_.get_xlim() == limits
        assert display.spread_[0].get_width() == pytest.approx(limits[1] - limits[0])

    def test_an_exact_cut_has_none(self, scored):
        display = MetricThresholdDisplay.from_predictions(*scored)
        assert display.spread_ is None
        assert display.near_optimal_ is None

    def test_labels_have_whiskers(self, scored):
        y, scores = scored
        exact = tune_thresholds(np.column_stack([y] * 4), np.column_stack([scores] * 4))
        assert MultilabelDisplay.from_cut(exact).whiskers_ is None
        parts = [settled(-1, 0, 0, 0, 1), None, settled(0, 0, 0, 0, 2), settled(-1, 0, 0, 0, np.inf)]
        display = MultilabelDisplay.from_cut(replace(exact, stability=LabelStability.joined(parts)))
        ends = {int(line[0, 1]): line[:, 0].tolist() for line in display.whiskers_.get_segments() if len(line)}
        assert [ends[i] for i in (0, 2, 3)] == [[-1, 1], [0, 2], [-1, 2]]  # no farther than the longest finite one
        assert not np.isfinite(ends.get(1, [np.nan])).any()
