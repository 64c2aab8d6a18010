"""The explorer: its numbers in Python, and the page in a real browser."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from surecut import LabelStability, ScoreSketch, ScoreTally, Stability, get_metric, tune_threshold, tune_thresholds
from surecut.metrics import CATALOGUE, LinearFractional, Utility
from surecut.report import save_html, summarize, summarize_labels, to_html

jinja2 = pytest.importorskip("jinja2", reason="the page needs jinja2")


def sample(size=5_000, seed=0):
    random = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(2 - 2 * random.normal(size=size)))
    return random.random(size) < scores, scores


@pytest.fixture(scope="module")
def tally():
    return ScoreTally.from_scores(*sample())


def stable_cut(tally, **changed):
    """A cut with a record of resampled thresholds."""
    cut = tally.best_cut("f1")
    record = Stability(200, (0.1, 0.15, 0.2, 0.25, 0.3), (0.16, 0.24), 0.008, cut.value, cut.threshold)
    return replace(cut, stability=replace(record, **changed))


def grid_value(summary, metric, at, prior=None):
    """What the page computes at a cut of its grid, by Python's own formula."""
    from surecut import Confusion

    tp, fp = summary["grid"]["tp"][at], summary["grid"]["fp"][at]
    confusion = Confusion(tp, fp, summary["positives"] - tp, summary["negatives"] - fp)
    return float(metric.evaluate(confusion if prior is None else confusion.at_prior(prior)))


class TestSummary:
    def test_a_small_sample_is_whole(self):
        summary = summarize(ScoreTally.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]))
        assert summary["is_whole"]
        assert summary["grid"] == {
            "threshold": ["inf", 0.6000000000000001, 0.25, 0.1],
            "tp": [0, 1, 2, 2],
            "fp": [0, 0, 1, 2],
        }

    @pytest.mark.parametrize("name", CATALOGUE)
    @pytest.mark.parametrize("prior", [None, 0.001, 0.7])
    def test_the_grid_holds_the_best_cut_of_every_metric_at_every_prior(self, tally, name, prior):
        summary = summarize(tally)
        assert not summary["is_whole"]
        assert len(summary["grid"]["tp"]) < 2_000
        metric = get_metric(name)
        cut = (tally if prior is None else tally.with_prior(prior)).best_cut(metric)
        values = [grid_value(summary, metric, at, prior) for at in range(len(summary["grid"]["tp"]))]
        assert max(v for v in values if not math.isnan(v)) == pytest.approx(cut.value, rel=1e-12)
        assert cut.threshold in [float(t) for t in summary["grid"]["threshold"]]

    def test_every_cut_of_the_grid_is_a_cut_of_the_scores(self, tally):
        y, scores = sample()
        grid = summarize(tally)["grid"]
        for at in range(0, len(grid["tp"]), 97):
            flagged = scores >= float(grid["threshold"][at])
            assert (flagged & y).sum() == grid["tp"][at]
            assert (flagged & ~y).sum() == grid["fp"][at]

    def test_the_chosen_cut_is_found_on_the_grid(self, tally):
        cut = tally.best_cut("recall", "precision>=0.8")
        summary = summarize(tally, cut=cut)
        assert summary["chosen"]["constraints"] == ["precision>=0.8"]
        assert summary["grid"]["tp"][summary["chosen"]["at"]] == cut.confusion.tp
        assert summary["grid"]["fp"][summary["chosen"]["at"]] == cut.confusion.fp

    def test_a_stable_cut_comes_with_its_spread(self, tally):
        assert summarize(tally)["chosen"]["stability"] is None
        found = summarize(tally, cut=stable_cut(tally, quantiles=(-math.inf, 0.15, 0.2, 0.25, math.inf)))
        shown = found["chosen"]["stability"]
        assert shown["quantiles"] == ["-inf", 0.15, 0.2, 0.25, "inf"]
        assert shown["near_optimal"] == [0.16, 0.24]
        sentence = summarize(tally, cut=stable_cut(tally))["chosen"]["stability"]["sentence"]
        assert "90 % of 200 resamples of the validation rows put the threshold in 0.10 to 0.30, half" in sentence
        assert "thresholds in (0.160, 0.240] lose at most 0.008" in sentence
        assert "The cut is stable" in to_html(found)
        assert "The cut is stable" not in to_html(summarize(tally))

    def test_labels_have_their_spread_as_places_on_their_curves(self):
        y, scores = sample(200)
        cut = tune_thresholds(np.column_stack([y, y]), np.column_stack([scores, scores]))
        tally = ScoreTally.from_scores(y, scores)
        assert not summarize_labels(cut, [tally] * 2)["is_stable"]
        low, high = scores.min(), scores.max()
        record = stable_cut(tally, quantiles=(-math.inf, low, low, low, (low + high) / 2)).stability
        found = summarize_labels(replace(cut, stability=LabelStability.joined([record, None])), [tally] * 2)
        assert found["is_stable"]
        assert [label["spread"] for label in found["labels"]] == [(0.0, pytest.approx(0.5)), None]
        assert "shaded, where 90 % of resamples put it" in to_html(found)

    def test_the_histogram_holds_every_row(self, tally):
        histogram = summarize(tally)["histogram"]
        assert sum(histogram["positive"]) == tally.confusion.positives[0]
        assert sum(histogram["negative"]) == tally.confusion.negatives[0]

    def test_metrics_that_the_rows_do_not_define_are_left_out_with_the_reason(self):
        summary = summarize(ScoreTally.from_scores([1, 1], [0.1, 0.2]), metric="f1")
        assert any("am is undefined without rows of the negative class" in reason for reason in summary["left_out"])
        assert "am" not in [metric["name"] for metric in summary["metrics"]]

    def test_a_sketch_shows_the_edges_of_its_bins(self):
        y, scores = sample()
        sketch = ScoreSketch()
        sketch.update(y, scores)
        summary = summarize(sketch, metric="am")
        assert summary["in_bins"]
        assert summary["rows"] == len(y)
        assert summary["chosen"]["value"] == sketch.best_cut("am").value
        for at in range(0, len(summary["grid"]["tp"]), 211):
            flagged = scores >= float(summary["grid"]["threshold"][at])
            assert (flagged & y).sum() == summary["grid"]["tp"][at]
        assert "counted in bins" in to_html(summary)

    def test_ones_own_metrics_are_numbers_at_the_prior(self, tally):
        of_the_prior = LinearFractional(lambda p: p, 0, -1, lambda p: p, 1, 0, name="mine")
        summary = summarize(tally, metrics=[of_the_prior, Utility(fp=-1, fn=-5), lambda c: c.tp - c.fp])
        mine, utility, function = summary["metrics"][1:4]
        assert mine["fixed_prior"]
        assert not utility["fixed_prior"]
        assert utility["numerator"]["constant"] == [0, -1, -5, 0]
        assert function["kind"] == "values"
        assert len(function["values"]) == len(summary["grid"]["tp"])

    @pytest.mark.parametrize(
        "scores",
        [
            [0.5] * 6,
            [np.inf, -np.inf, 0, 1, 2, 3],
            [1e300, -1e300, 0, 1, 2, 3],
            np.float32([1, 2, 3, 4, 5, 6]),
            [0] * 5 + [7],
        ],
        ids=["constant", "infinities", "outliers", "float32", "integers"],
    )
    def test_odd_scores_make_a_page(self, scores):
        summary = summarize(ScoreTally.from_scores([0, 1, 0, 1, 1, 0], scores))
        assert np.isfinite(summary["axis"]).all()
        assert summary["axis"][0] < summary["axis"][1]
        assert sum(summary["histogram"]["positive"]) == 3
        json.dumps(summary, allow_nan=False)
        assert "</html>" in to_html(summary)


class TestPage:
    def test_text_from_the_data_is_escaped(self, tally):
        nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
        page = to_html(summarize(tally, title=nasty))
        assert nasty not in page
        assert "<img" not in page
        assert page.count("</script>") == 2

    def test_the_positive_label_is_named(self, tally):
        assert "positive." in to_html(summarize(tally))
        labels = np.where(sample()[0], "<ja>", "nein")
        named = ScoreTally.from_scores(labels, sample()[1], pos_label="<ja>")
        assert "positive (&lt;ja&gt;)." in to_html(summarize(named))

    def test_nothing_is_fetched(self, tally):
        page = to_html(summarize(tally))
        addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert "default-src 'none'" in page

    def test_a_million_rows_make_a_small_page(self):
        page = to_html(summarize(ScoreTally.from_scores(*sample(1_000_000))))
        assert len(page.encode()) < 500_000

    def test_the_file_is_written_whole_or_not_at_all(self, tally, tmp_path):
        save_html(summarize(tally), tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            save_html(summarize(tally), tmp_path / "nowhere" / "page.html")


def exact_value(page):
    return float(page.locator("#value").get_attribute("data-exact"))


def threshold(page):
    return float(page.locator("#threshold").input_value())


def test_the_page_opens_at_pythons_cut(load, tally):
    cut = tally.best_cut("f1")
    page = load(summarize(tally))
    assert exact_value(page) == cut.value
    assert page.locator("#value").text_content() == f"{cut.value:.4f}"
    assert threshold(page) == cut.threshold
    for cell in ("tp", "fp", "fn", "tn"):
        assert page.locator(f"#{cell}").text_content().startswith(f"{getattr(cut.confusion, cell):,}")
    assert page.locator("#versus").text_content() == "This is the best cut."
    assert page.locator("#rule").text_content() == f"score >= {cut.threshold}"


def test_every_metric_shows_pythons_best_value(load, tally):
    page = load(summarize(tally))
    for name in CATALOGUE:
        page.select_option("#metric", name)
        cut = tally.best_cut(name)
        assert exact_value(page) == cut.value, name
        if not cut.predicts_nothing:
            assert threshold(page) == cut.threshold, name


@pytest.mark.parametrize("name", ["f1", "am", "kappa", "mcc", "gmean"])
def test_another_prior_moves_the_best_cut(load, tally, name):
    page = load(summarize(tally, metric=name))
    page.fill("#prior", "2")
    cut = tally.with_prior(0.02).best_cut(name)
    assert exact_value(page) == pytest.approx(cut.value, rel=1e-14)
    assert threshold(page) == cut.threshold
    page.fill("#prior", "200")
    assert "between 0 and 100" in page.locator("#prior-message").text_content()
    page.fill("#prior", "")
    assert exact_value(page) == tally.best_cut(name).value


def test_the_spread_of_a_stable_cut_is_shaded(load, tally):
    page = load(summarize(tally, cut=stable_cut(tally)))
    note, bands = page.locator("#spread-note"), page.locator("#curve .spread")
    assert note.is_visible()
    assert "Bar at the bottom" in note.text_content()

    def edges(which):
        box = page.locator(which).bounding_box()
        return box["x"], box["x"] + box["width"]

    for _ in range(2):
        assert bands.count() == 2
        (start, end), (lower, upper) = edges("#curve .spread:not(.half)"), edges("#curve .spread.half")
        near = edges("#curve .near-optimal")
        assert start < lower < near[0] < near[1] < upper < end
        page.fill("#threshold", "0.2")
        page.keyboard.press("Enter")
        assert lower < edges("#curve line.cut")[0] < upper
        page.click("#axis-share")
    page.select_option("#metric", "am")  # the spread is that of another metric
    assert bands.count() == 0
    assert not note.is_visible()
    page.click("#reset")
    assert bands.count() == 2
    page.fill("#prior", "2")
    assert bands.count() == 0


def test_infinite_resampled_thresholds_reach_the_edge(load, tally):
    cut = stable_cut(tally, quantiles=(-math.inf, 0.15, 0.2, 0.25, math.inf), near_optimal=(-math.inf, math.inf))
    page = load(summarize(tally, cut=cut))
    for _ in range(2):
        band, curve = (page.locator(f"#curve {which}").bounding_box() for which in (".spread:not(.half)", "path.main"))
        assert band["x"] <= curve["x"] + 2
        assert band["x"] + band["width"] >= curve["x"] + curve["width"] - 2
        page.click("#axis-share")


def test_typed_costs_move_the_best_cut(load, tally):
    page = load(summarize(tally))
    assert not page.locator("#worth").is_visible()
    page.select_option("#metric", "costs")
    page.fill("#worth-fn", "-25")
    page.fill("#worth-fp", "-2,5")
    cut = tally.best_cut(Utility(fp=-2.5, fn=-25))
    assert exact_value(page) == cut.value
    assert threshold(page) == cut.threshold
    assert "like 10 false alarms" in page.locator("#words").text_content()
    page.fill("#worth-fp", "3")
    assert "must not be worth more" in page.locator("#prior-message").text_content()


def test_dragging_moves_the_cut(load, tally):
    y, scores = sample()
    page = load(summarize(tally), viewport={"width": 1280, "height": 900})
    box = page.locator("#curve svg").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    seen = []
    for share in (0.4, 0.6, 0.8):
        page.mouse.move(box["x"] + box["width"] * share, middle, steps=4)
        seen.append(threshold(page))
    page.mouse.up()
    page.mouse.move(box["x"], middle)
    assert seen == sorted(seen)
    assert threshold(page) == seen[-1]
    assert seen[0] > 0.2
    assert exact_value(page) == get_metric("f1").score(y, scores >= seen[-1])
    assert "loses" in page.locator("#versus").text_content()
    for chart in ("#roc", "#pr", "#histogram"):
        before = threshold(page)
        page.locator(f"{chart} svg").click()
        assert threshold(page) != before
        assert exact_value(page) == get_metric("f1").score(y, scores >= threshold(page))
    page.click("#best")
    assert exact_value(page) == tally.best_cut("f1").value


def test_the_keyboard_is_enough(load, tally):
    page = load(summarize(tally))
    page.locator("#slider").focus()
    before = threshold(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert threshold(page) > before
    assert "flagged" in page.locator("#slider").get_attribute("aria-valuetext")
    page.keyboard.press("Home")
    assert page.locator("#fn").text_content().startswith("0")
    page.keyboard.press("End")
    assert page.locator("#rule").text_content() == "predict nothing"
    page.fill("#threshold", "0.5")
    page.keyboard.press("Enter")
    assert threshold(page) == pytest.approx(0.5, abs=0.01)
    page.locator("#all button", has_text="Jaccard").focus()
    page.keyboard.press("Enter")
    assert page.locator("#metric").input_value() == "jaccard"
    page.click("#reset")
    assert page.locator("#metric").input_value() == "f1"
    assert threshold(page) == before


def test_everything_that_can_be_used_has_a_name(load, tally):
    page = load(summarize(tally))
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button")].filter((control) =>
            !(control.labels && control.labels.length) && !control.textContent.trim()).map((control) => control.id)"""
    )
    assert unnamed == []
    assert page.locator("svg:not([aria-label])").count() == 0


@pytest.mark.parametrize("width", [360, 768, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_window_is_too_narrow(load, tally, width, scheme):
    page = load(summarize(tally), viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 100) == (scheme == "dark")
    page.click("#axis-share")
    assert page.locator("#axis-share").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("width", [320, 400, 1400])
@pytest.mark.parametrize("seed", range(3))
def test_every_axis_has_three_to_nine_marks(load, width, seed):
    random = np.random.default_rng(seed)
    scores = random.random(300) ** 2 * 10.0 ** random.integers(-3, 4) + random.normal()
    page = load(
        summarize(ScoreTally.from_scores(random.random(300) < 0.3, scores)), viewport={"width": width, "height": 800}
    )
    counts = page.evaluate(
        """() => [...document.querySelectorAll(".chart svg .axis")].map((axis) =>
             [...axis.querySelectorAll('text[text-anchor="middle"]')].length - 1)"""
    )
    assert len(counts) == 4
    assert all(3 <= count <= 9 for count in counts), counts


def test_the_band_holds_the_curve(tally):
    summary = summarize(tally, confidence=0.9)
    assert "90 % confidence" in summary["band_note"]
    for name in ("f1", "mcc"):
        curve = [grid_value(summary, get_metric(name), at) for at in range(len(summary["grid"]["tp"]))]
        band = summary["bands"][name]
        assert all(low <= value + 1e-3 for low, value in zip(band["lower"], curve, strict=True))
        assert all(high >= value - 1e-3 for high, value in zip(band["upper"], curve, strict=True))
    weighted = ScoreTally.from_scores(*sample(200), sample_weight=np.full(200, 0.5))
    assert summarize(weighted)["bands"] == {}


def test_the_band_is_drawn_where_it_holds(load, tally):
    page = load(summarize(tally))
    assert page.locator("#curve .band").count() == 1
    assert page.locator("#band-note").is_visible()
    page.fill("#prior", "3")
    assert page.locator("#curve .band").count() == 0
    page.select_option("#metric", "costs")
    assert not page.locator("#band-note").is_visible()


class TestLabels:
    @pytest.fixture
    def many(self):
        random = np.random.default_rng(0)
        scores = random.random((400, 30))
        truth = random.random((400, 30)) < scores * np.linspace(0.02, 0.9, 30)
        truth[:, 0] = False
        names = [f"tag {i}" for i in range(29)] + ["<b>&"]
        cut = tune_thresholds(truth, scores, labels=names)
        return cut, [ScoreTally.from_scores(truth[:, i], scores[:, i]) for i in range(30)]

    def test_the_summary_holds_every_label(self, many):
        cut, tallies = many
        summary = summarize_labels(cut, tallies)
        json.dumps(summary, allow_nan=False)
        by_name = {label["name"]: label for label in summary["labels"]}
        assert by_name["tag 0"]["shared"]
        for i, name in enumerate(cut.labels):
            assert float(by_name[name]["threshold"]) == cut.thresholds[i]
            assert by_name[name]["value"] == pytest.approx(cut.per_label[i], rel=1e-5)
        assert summarize_labels(cut)["labels"][0]["curve"] == []

    def test_the_table_sorts_and_finds(self, load, many):
        cut, tallies = many
        page = load(summarize_labels(cut, tallies, title="Tags"))
        rows = page.locator(".labels tbody tr")
        assert rows.count() == 30
        assert page.locator(".labels svg[aria-label]").count() == 30
        page.locator(".labels thead button", has_text="threshold").click()
        cells = [float(text) for text in page.locator(".labels tbody td:nth-child(4)").all_text_contents()]
        assert cells == sorted(cells, reverse=True)
        page.locator(".labels thead button", has_text="threshold").focus()
        page.keyboard.press("Enter")
        cells = [float(text) for text in page.locator(".labels tbody td:nth-child(4)").all_text_contents()]
        assert cells == sorted(cells)
        assert page.locator(".labels th[aria-sort=ascending]").count() == 1
        page.fill("#filter", "<B>")
        assert rows.count() == 1
        assert page.locator(".labels tbody th").text_content() == "<b>&"
        assert page.locator("#count").text_content() == "1 of 30 labels"

    @pytest.mark.parametrize("width", [360, 1400])
    def test_no_window_is_too_narrow(self, load, many, width):
        page = load(summarize_labels(*many), viewport={"width": width, "height": 700}, color_scheme="dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints(load, tally):
    page = load(summarize(tally))
    assert page.pdf().startswith(b"%PDF")


def test_the_prior_of_the_tally_and_a_constrained_cut_are_kept(load, tally):
    there = tally.with_prior(0.05)
    cut = there.best_cut("recall", "precision>=0.5")
    page = load(summarize(there, cut=cut))
    assert page.locator("#prior").input_value() == "5"
    assert exact_value(page) == pytest.approx(cut.value, rel=1e-14)
    assert threshold(page) == cut.threshold
    assert "subject to precision>=0.5" in page.locator("header").text_content()


def test_weighted_rows_and_ones_own_function(load):
    y, scores = sample(300)
    weights = np.random.default_rng(1).random(300)
    tally = ScoreTally.from_scores(y, scores, sample_weight=weights)
    page = load(summarize(tally, metrics=[lambda c: c.tp - c.fp]))
    cut = tally.best_cut("f1")
    assert exact_value(page) == pytest.approx(cut.value, rel=1e-14)
    page.select_option("#metric", "lambda")
    assert exact_value(page) == tally.best_cut(lambda c: c.tp - c.fp).value
    assert page.locator("#prior").is_disabled()


def test_odd_scores_open(load):
    for scores in ([0.5] * 4, [np.inf, -np.inf, 0.0, 1.0], [1e300, -1e300, 0.0, 1.0]):
        tally = ScoreTally.from_scores([0, 1, 0, 1], scores)
        page = load(summarize(tally))
        assert exact_value(page) == tally.best_cut("f1").value
        page.click("#axis-share")
    page = load(summarize(ScoreTally.from_scores([1, 1], [0.1, 0.2]), metric="f1"))
    assert exact_value(page) == 1


def test_a_constrained_cut_opens_at_its_own_threshold():
    random = np.random.default_rng(0)
    score = random.random(600)
    y = random.random(600) < score
    tally = ScoreTally.from_scores(y, score)
    cut = tune_threshold(y, score, metric="recall", constraint="precision>=0.6", confidence=0.9)
    summary = summarize(tally, cut=cut)
    assert summary["grid"]["threshold"][summary["chosen"]["at"]] == cut.threshold
    assert "without that constraint" in to_html(summary)
