"""The page of bands: its numbers in Python, and the page in a real browser."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from surecut import ScoreSketch, ScoreTally, Stability, get_metric, tune_bands
from surecut.certificates.bands import curve_band
from surecut.decisions.wording import rule_text
from surecut.report import summarize_bands, to_html

jinja2 = pytest.importorskip("jinja2", reason="the page needs jinja2")

GAINS = {"no": (0, -10), "ask": -1, "yes": (-5, 0)}
GRADES = {"D": (0, -3), "C": (-0.2, -1), "B": (-0.5, 0.2), "A": (-1, 1)}


def sample(size=5_000, seed=0):
    random = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(1 - 2 * random.normal(size=size)))
    return random.random(size) < scores, scores


@pytest.fixture(scope="module")
def tally():
    return ScoreTally.from_scores(*sample())


@pytest.fixture(scope="module")
def bands():
    return tune_bands(*sample(), gains=GAINS)


@pytest.fixture(scope="module")
def conditioned():
    return tune_bands(*sample(), upper="ppv>=0.9", lower="npv>=0.95")


def thresholds(page, zones=3):
    words = {"nothing above": math.inf, "nothing below": -math.inf}
    found = [page.locator(f"#threshold-{boundary}").input_value() for boundary in range(1, zones)]
    return [words[text] if text in words else float(text) for text in found]


def at_thresholds(bands, found):
    """The same bands at other thresholds, with the rows of `sample` in each zone."""
    y, scores = sample()
    moved = replace(bands, thresholds=np.array(found))
    number = moved.predict(scores, as_numbers=True)
    counts = np.array(
        [[((number == zone) & (y == label)).sum() for label in (0, 1)] for zone in range(len(bands.zones))]
    )
    return replace(moved, confusion=counts)


def table(page):
    """Share, rows, negatives, positives, NPV and PPV of each zone, the lowest first."""
    rows = page.evaluate(
        """() => [...document.querySelectorAll(".zones tbody tr")].map((row) =>
            [...row.querySelectorAll("td")].map((cell) => cell.dataset.exact))"""
    )
    found = [[float(value) for value in row[:4]] for row in rows]
    text = [row.split("\t") for row in page.locator(".zones tbody tr").all_inner_texts()]
    return np.array(found)[::-1], text[::-1]


def gain(page):
    return float(page.locator("#gain").get_attribute("data-exact"))


def require_pythons_values(page, bands, gains=None, prior=None):
    """Everything on the page is what Python says of the bands at the thresholds that the page shows."""
    found = thresholds(page, len(bands.zones))
    assert found == sorted(found)
    there = at_thresholds(bands, found)
    if prior is not None:
        there = replace(there, prior=prior, prior_given=True)
    exact, text = table(page)
    np.testing.assert_allclose(exact[:, 0], there.shares, rtol=1e-12)
    np.testing.assert_array_equal(exact[:, 2:], there.confusion)
    np.testing.assert_array_equal(exact[:, 1], there.confusion.sum(axis=1))
    at_prior = there.confusion / there.confusion.sum(axis=0)
    share = there.confusion.sum(axis=0)[1] / there.confusion.sum() if prior is None else prior
    at_prior = at_prior * (1 - share, share)
    for zone, (negative, positive) in enumerate(at_prior):
        for column, part in ((5, negative), (6, positive)):
            if negative + positive > 0:
                assert float(text[zone][column].split()[0]) == pytest.approx(
                    100 * part / (negative + positive), abs=0.051
                )
            else:
                assert text[zone][column] == "–"
    table_of_gains = np.array([np.broadcast_to((gains or {}).get(zone, 0), 2) for zone in bands.zones])
    if gains is not None:
        assert gain(page) == pytest.approx(float((at_prior * table_of_gains).sum()), rel=1e-12, abs=1e-15)
    rule = re.sub(r"(?<=from |elow )\S+?(?=,|$)", lambda match: f"{float(match[0]):.6g}", page.inner_text("#rule"))
    assert rule == rule_text(there)
    return there


class TestSummary:
    def test_it_holds_the_tuned_thresholds(self, tally, conditioned):
        summary = summarize_bands(conditioned, tally)
        assert summary["zones"] == ["no", "ask", "yes"]
        assert summary["chosen"]["threshold"] == conditioned.thresholds.tolist()
        for at, threshold in zip(summary["chosen"]["at"], conditioned.thresholds, strict=True):
            assert summary["grid"]["tp"][at] == tally.confusion_at(threshold).tp
            assert summary["grid"]["fp"][at] == tally.confusion_at(threshold).fp
        assert [one["text"] for one in summary["conditions"]] == ["npv>=0.95", "ppv>=0.9"]
        assert "on other rows at least one fails in about" in summary["conditions_note"]
        assert not summary["has_gains"]
        json.dumps(summary, allow_nan=False)

    def test_the_limits_are_those_of_the_curves(self, tally, bands):
        summary = summarize_bands(bands, tally, confidence=0.9)
        assert "90 % confidence" in summary["limits_note"]
        grid = summary["grid"]
        lower, upper = curve_band(get_metric("precision"), tally, tally.confusion, 0.9)
        for at in range(0, len(grid["tp"]), 50):
            where = np.flatnonzero((tally.confusion.tp == grid["tp"][at]) & (tally.confusion.fp == grid["fp"][at]))[0]
            assert (
                summary["limits"]["precision"]["lower"][at]
                <= lower[where]
                <= summary["limits"]["precision"]["lower"][at] + 1e-6
            )
            assert (
                summary["limits"]["precision"]["upper"][at] - 1e-6
                <= upper[where]
                <= summary["limits"]["precision"]["upper"][at]
            )
        assert set(summary["limits"]) == {"precision", "npv"}

    def test_weighted_rows_have_no_limits(self):
        y, scores = sample(300)
        weights = np.random.default_rng(0).random(300)
        bands = tune_bands(y, scores, gains=GAINS, sample_weight=weights)
        summary = summarize_bands(bands, ScoreTally.from_scores(y, scores, sample_weight=weights))
        assert summary["limits"] == {}
        assert "on new data" not in to_html(summary)

    def test_a_sketch_shows_the_edges_of_its_bins(self, bands):
        sketch = ScoreSketch()
        sketch.update(*sample())
        summary = summarize_bands(bands, sketch)
        assert summary["in_bins"]
        assert "counted in bins" in to_html(summary)
        _, scores = sample()
        for at, threshold in zip(summary["chosen"]["at"], summary["chosen"]["threshold"], strict=True):
            assert (scores >= threshold).sum() == summary["grid"]["tp"][at] + summary["grid"]["fp"][at]
        assert summary["chosen"]["threshold"] == pytest.approx(bands.thresholds, abs=0.01)

    def test_the_prior_of_the_bands_is_kept(self, tally):
        bands = tune_bands(*sample(), gains=GAINS, prior=0.1)
        assert summarize_bands(bands, tally)["given_prior"] == 0.1
        assert summarize_bands(bands, tally.with_prior(0.2))["given_prior"] == 0.2

    def test_a_page_of_bands_is_told_by_its_zones(self, tally, bands):
        page = to_html(summarize_bands(bands, tally, title="<b>Zones</b>"))
        assert "<b>Zones</b>" not in page
        assert 'id="threshold-2"' in page
        assert page.count("</script>") == 2

    def test_a_million_rows_make_a_small_page(self):
        rows = sample(1_000_000)
        page = to_html(summarize_bands(tune_bands(*rows, gains=GAINS), ScoreTally.from_scores(*rows)))
        assert len(page.encode()) < 500_000


def test_the_page_opens_at_pythons_bands(load, tally, bands, conditioned):
    page = load(summarize_bands(bands, tally))
    assert thresholds(page) == bands.thresholds.tolist()
    require_pythons_values(page, bands, GAINS)
    assert gain(page) == pytest.approx(bands.value, rel=1e-12)
    assert page.locator("#versus").text_content() == "These are the best thresholds."
    assert page.locator("#best").is_disabled()
    page = load(summarize_bands(conditioned, tally))
    require_pythons_values(page, conditioned)
    assert page.locator("#conditions .met").count() == 2
    share = float(page.locator("#headline").get_attribute("data-exact"))
    assert share == pytest.approx(conditioned.shares[1], rel=1e-12)


def test_the_sentence_adds_up(load, tally, conditioned):
    page = load(summarize_bands(conditioned, tally))
    text = page.locator("#words").text_content()
    per, *rows = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", re.sub(r"\(.*?\)", "", text)))
    assert per == 1000
    assert sum(rows) == 1000
    assert rows == pytest.approx(1000 * conditioned.shares, abs=1)
    wrong = [int(number) for number in re.findall(r"\((\d+) of them", text)]
    total = conditioned.confusion.sum() / 1000
    assert wrong == pytest.approx([conditioned.confusion[0, 1] / total, conditioned.confusion[2, 0] / total], abs=0.51)
    assert "of them positive), " in text
    assert "of them negative)." in text


def drag(page, boundary, share):
    """Drag a threshold to a place in the histogram, as a share of its width."""
    box = page.locator("#histogram svg").bounding_box()
    line = page.locator(f'#histogram line[data-boundary="{boundary}"]').bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(line["x"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * share, middle, steps=6)


def test_both_thresholds_are_dragged(load, tally, conditioned):
    page = load(summarize_bands(conditioned, tally), viewport={"width": 1280, "height": 1000})
    first, second = thresholds(page)
    drag(page, 1, 0.45)
    page.mouse.up()
    page.mouse.move(0, 0)
    moved = thresholds(page)
    assert first < moved[0] < second == moved[1]
    require_pythons_values(page, conditioned)
    assert page.locator("#conditions .broken").count() == 1
    drag(page, 2, 0.6)
    page.mouse.up()
    assert moved[0] == thresholds(page)[0] < thresholds(page)[1] < second
    require_pythons_values(page, conditioned)
    assert page.locator("#conditions .broken").count() == 2


def test_a_threshold_takes_along_those_that_it_passes(load, tally, bands):
    page = load(summarize_bands(bands, tally), viewport={"width": 1280, "height": 1000})
    before = thresholds(page)
    box = page.locator("#histogram svg").bounding_box()
    middle = box["y"] + box["height"] / 2
    drag(page, 1, 0.95)
    pushed = thresholds(page)
    assert pushed[0] == pushed[1] > before[1]
    page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=4)  # on the way back the other one returns
    assert thresholds(page)[1] == before[1]
    page.mouse.move(box["x"] + box["width"] * 0.999, middle, steps=4)
    assert thresholds(page) == [math.inf, math.inf]
    page.mouse.up()
    there = require_pythons_values(page, bands, GAINS)
    assert there.confusion[0].sum() == tally.confusion.total[0]
    assert page.locator("#rule").text_content() == "no always"
    drag(page, 1, 0.0)
    page.mouse.up()
    assert thresholds(page) == [-math.inf, math.inf]
    assert page.locator("#rule").text_content() == "ask always"


def test_thresholds_are_dragged_in_the_curves_too(load, tally, bands):
    page = load(summarize_bands(bands, tally), viewport={"width": 1280, "height": 1000})
    before = thresholds(page)
    box = page.locator("#curve svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    after = thresholds(page)
    assert after[0] == before[0]
    assert after[1] != before[1]
    require_pythons_values(page, bands, GAINS)


def test_the_keyboard_is_enough(load, tally, bands):
    page = load(summarize_bands(bands, tally))
    before = thresholds(page)
    for boundary in (1, 2):
        page.locator(f"#slider-{boundary}").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
    after = thresholds(page)
    assert all(low < high for low, high in zip(before, after, strict=True))
    require_pythons_values(page, bands, GAINS)
    assert "of rows in yes" in page.locator("#slider-2").get_attribute("aria-valuetext")
    page.keyboard.press("End")
    assert thresholds(page)[1] == math.inf
    page.locator("#slider-1").focus()
    page.keyboard.press("Home")
    assert thresholds(page) == [-math.inf, math.inf]
    page.fill("#threshold-1", "0,5")
    page.keyboard.press("Enter")
    assert thresholds(page)[0] == pytest.approx(0.5, abs=0.01)
    page.fill("#threshold-2", "much")
    page.keyboard.press("Enter")
    assert "must be a number" in page.locator("#prior-message").text_content()
    page.click("#reset")
    assert thresholds(page) == before
    require_pythons_values(page, bands, GAINS)


def type_gains(page, gains, zones):
    for number, zone in enumerate(zones):
        for name, value in zip(("negative", "positive"), np.broadcast_to(gains.get(zone, 0), 2), strict=True):
            page.fill(f"#gain-{number}-{name}", str(float(value)))


@pytest.mark.parametrize(
    "gains",
    [
        {"no": (0, -3), "ask": -0.5, "yes": (-8, 2)},
        {"no": (0, -1), "ask": -5, "yes": (-1, 0)},  # nobody is asked: the best cuts cross
        {"no": (0, -20), "ask": (-0.1, -2), "yes": (-1, 0)},
    ],
    ids=["ask", "crossing", "few no"],
)
def test_the_best_thresholds_are_pythons(load, tally, bands, gains):
    page = load(summarize_bands(bands, tally))
    type_gains(page, gains, bands.zones)
    assert thresholds(page) == bands.thresholds.tolist()  # typing moves nothing
    require_pythons_values(page, bands, gains)
    page.click("#best")
    best = tune_bands(*sample(), gains=gains)
    assert thresholds(page) == best.thresholds.tolist()
    assert gain(page) == pytest.approx(best.value, rel=1e-12)
    require_pythons_values(page, bands, gains)
    assert page.locator("#best").is_disabled()


@pytest.mark.parametrize(("zone", "threshold"), [("yes", -math.inf), ("no", math.inf)])
def test_all_rows_are_in_a_zone_that_is_best_for_each(load, tally, bands, zone, threshold):
    """Python refuses such gains, which the page cannot: they are typed number by number."""
    page = load(summarize_bands(bands, tally))
    type_gains(page, {zone: 1}, bands.zones)
    page.click("#best")
    assert thresholds(page) == [threshold, threshold]


@pytest.mark.parametrize("seed", range(6))
def test_drawn_gains_and_grades(load, tally, seed):
    random = np.random.default_rng(seed)
    bands = tune_bands(*sample(), gains=GRADES, zones=tuple("DCBA"))
    page = load(summarize_bands(bands, tally))
    assert thresholds(page, 4) == bands.thresholds.tolist()
    negative, positive = -np.sort(random.integers(0, 30, 4)), np.sort(random.integers(-30, 10, 4))
    gains = {zone: (float(negative[i]), float(positive[i])) for i, zone in enumerate("DCBA")}
    type_gains(page, gains, "DCBA")
    best = tune_bands(*sample(), gains=gains, zones=tuple("DCBA"))
    assert float(page.locator("#gain").get_attribute("data-best")) == pytest.approx(best.value, rel=1e-12)
    if not page.locator("#best").is_disabled():
        page.click("#best")
    assert thresholds(page, 4) == best.thresholds.tolist()
    require_pythons_values(page, bands, gains)


@pytest.mark.parametrize("prior", [0.02, 0.3, 0.9])
def test_another_prior(load, tally, bands, prior):
    page = load(summarize_bands(bands, tally))
    assert page.locator("#limits-note").is_visible()
    page.fill("#prior", f"{100 * prior:g}")
    assert thresholds(page) == bands.thresholds.tolist()
    require_pythons_values(page, bands, GAINS, prior)
    assert not page.locator("#limits-note").is_visible()
    if not page.locator("#best").is_disabled():
        page.click("#best")
    best = tune_bands(*sample(), gains=GAINS, prior=prior)
    assert thresholds(page) == best.thresholds.tolist()
    assert gain(page) == pytest.approx(best.value, rel=1e-12)
    page.fill("#prior", "200")
    assert "between 0 and 100" in page.locator("#prior-message").text_content()
    page.fill("#prior", "")
    page.click("#reset")
    assert thresholds(page) == bands.thresholds.tolist()


def test_a_given_prior_opens_the_page(load, tally):
    bands = tune_bands(*sample(), gains=GAINS, prior=0.1)
    page = load(summarize_bands(bands, tally))
    assert page.locator("#prior").input_value() == "10"
    require_pythons_values(page, bands, GAINS, 0.1)
    assert gain(page) == pytest.approx(bands.value, rel=1e-12)
    assert page.locator("#limits-note").is_visible()


@pytest.mark.parametrize(
    "conditions",
    [
        {"yes": "ppv>=0.85"},
        {"no": "npv>=0.97", "yes": ["ppv>=0.85", "recall>=0.2"]},
        {"ask": "share<=0.1"},
        {"ask": ["share<=0.2", "ppv>=0.5"], "no": "npv>=0.9"},
    ],
    ids=["one", "outer", "budget", "inner ratio"],
)
def test_the_best_may_keep_the_conditions(load, conditions):
    y, scores = sample(700)
    tally = ScoreTally.from_scores(y, scores)
    bands = tune_bands(y, scores, gains=GAINS, conditions=conditions)
    page = load(summarize_bands(bands, tally))
    gains = {"no": (0, -6), "ask": (-0.5, -1), "yes": (-3, 1)}
    type_gains(page, gains, bands.zones)
    free, kept = tune_bands(y, scores, gains=gains), tune_bands(y, scores, gains=gains, conditions=conditions)
    best = page.locator("#gain")
    assert float(best.get_attribute("data-best")) == pytest.approx(kept.value, rel=1e-12)
    if not page.locator("#best").is_disabled():
        page.click("#best")
    assert thresholds(page) == kept.thresholds.tolist()
    assert page.locator("#conditions .broken").count() == 0
    page.uncheck("#keep")
    assert float(best.get_attribute("data-best")) == pytest.approx(free.value, rel=1e-12)
    page.click("#best")
    assert thresholds(page) == free.thresholds.tolist()


def test_conditions_that_nothing_meets(load):
    y, scores = sample(400)
    bands = tune_bands(y, scores, upper=["ppv>=0.7", "recall>=0.5"], lower="npv>=0.8")
    page = load(summarize_bands(bands, ScoreTally.from_scores(y, scores)))
    assert not page.locator("#best").is_disabled()
    page.fill("#prior", "1")
    assert page.locator("#versus").text_content() == "No thresholds meet all conditions."
    assert page.locator("#best").is_disabled()
    assert page.locator("#conditions .broken").text_content().startswith("ppv>=0.7 in yes: broken, ")
    page.uncheck("#keep")
    assert not page.locator("#best").is_disabled()


def test_wrong_gains_are_refused(load, tally, bands):
    page = load(summarize_bands(bands, tally))
    message = page.locator("#gains-message")
    page.fill("#gain-0-negative", "x")
    assert message.text_content() == "A gain must be a number."
    page.fill("#gain-0-negative", "-9")
    page.fill("#gain-0-positive", "9")
    assert "turn the gains round" in message.text_content()
    page.click("#reset")
    assert message.text_content() == ""
    require_pythons_values(page, bands, GAINS)


def test_a_ratio_of_decided_rows_is_shown(load, tally):
    bands = tune_bands(*sample(), metric="f1", gains={"ask": -0.2})
    page = load(summarize_bands(bands, tally))
    ratio = page.locator("#ratio")
    assert ratio.text_content().startswith("F1 of decided rows with the gains they were tuned with: ")
    assert float(ratio.get_attribute("data-exact")) == pytest.approx(bands.value, rel=1e-12)


def test_two_zones_are_a_cut(load, tally):
    gains = {"no": (0, -3), "yes": (-1, 0)}
    bands = tune_bands(*sample(), gains=gains, zones=("no", "yes"))
    page = load(summarize_bands(bands, tally))
    assert thresholds(page, 2) == bands.thresholds.tolist()
    require_pythons_values(page, bands, gains)


def test_weighted_rows(load):
    y, scores = sample(300)
    weights = np.random.default_rng(1).random(300)
    bands = tune_bands(y, scores, sample_weight=weights, gains=GAINS)
    page = load(summarize_bands(bands, ScoreTally.from_scores(y, scores, sample_weight=weights)))
    assert thresholds(page) == bands.thresholds.tolist()
    assert gain(page) == pytest.approx(bands.value, rel=1e-12)
    assert page.locator("#versus").text_content() == "These are the best thresholds."
    np.testing.assert_allclose(table(page)[0][:, 0], bands.shares, rtol=1e-12)


def test_the_spread_of_stable_thresholds_is_shaded(load, tally, bands):
    record = Stability(200, (0.1, 0.15, 0.2, 0.25, math.inf), (0.16, 0.24), 0.008, bands.value, 0.2)
    stable = replace(bands, stability=(record, None))
    page = load(summarize_bands(stable, tally))
    assert page.locator("#histogram .spread").count() == 2
    assert "that of ask in 0.1 to inf" in page.locator("#spread-note").text_content()
    assert "stable" in page.locator("header").text_content()
    page.fill("#prior", "2")
    assert page.locator("#histogram .spread").count() == 0
    assert not page.locator("#spread-note").is_visible()


def test_the_limits_at_the_thresholds(load, tally, conditioned):
    page = load(summarize_bands(conditioned, tally))
    texts = {}
    for boundary, name, row in ((1, "precision", 0), (0, "npv", 2)):
        confusion = tally.confusion_at(conditioned.thresholds[boundary])
        lower, upper = curve_band(get_metric(name), tally, confusion, 0.95)
        texts[name] = page.locator(".zones tbody tr").nth(row).locator("td").last.text_content()
        low, high = (float(number) for number in re.findall(r"[\d.]+", texts[name]))
        assert low <= 100 * lower[0] <= low + 0.1
        assert high - 0.1 <= 100 * upper[0] <= high
    assert texts["precision"].startswith("PPV")
    assert texts["npv"].startswith("NPV")


def test_bands_of_other_rows_are_shown_on_these(load):
    y, scores = sample(3_000)
    bands = tune_bands(y[:1_000], scores[:1_000], gains=GAINS)
    tally = ScoreTally.from_scores(y[1_000:], scores[1_000:])
    page = load(summarize_bands(bands, tally))
    assert thresholds(page) == bands.thresholds.tolist()
    found = bands.predict(scores[1_000:], as_numbers=True)
    assert table(page)[0][:, 1].tolist() == np.bincount(found, minlength=3).tolist()


def test_odd_scores_open(load):
    for scores in ([np.inf, -np.inf, 0.0, 1.0], [1e300, -1e300, 0.0, 1.0], [3, 4, 5, 6]):
        bands = tune_bands([0, 1, 0, 1], scores, gains=GAINS)
        page = load(summarize_bands(bands, ScoreTally.from_scores([0, 1, 0, 1], scores)))
        assert thresholds(page) == bands.thresholds.tolist()
        assert gain(page) == pytest.approx(bands.value)
    bands = tune_bands([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], gains=GAINS)
    page = load(summarize_bands(bands, ScoreTally.from_scores([1, 1], [0.1, 0.2])))
    assert page.locator("#prior").is_disabled()


HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "{{ 7 * 7 }}", '" onfocus="alert(1)']


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_zones_are_text(load, tally, name):
    zones = (f"{name}0", f"{name}1", f"{name}2")
    bands = tune_bands(*sample(), gains=dict(zip(zones, GAINS.values(), strict=True)), zones=zones, upper="ppv>=0.5")
    page = load(summarize_bands(bands, tally, title=name))
    page.on("dialog", lambda dialog: pytest.fail("a name was run"))
    assert page.locator("h1").text_content() == name
    assert page.locator(".zones tbody th").all_text_contents() == list(zones[::-1])
    for text in ("#words", "#rule", "#conditions"):
        assert name in page.locator(text).text_content()
    assert page.locator("img").count() == 0
    page.fill("#gain-0-positive", "9")
    page.fill("#gain-0-negative", "-9")
    assert name in page.locator("#gains-message").text_content()


def test_everything_that_can_be_used_has_a_name(load, tally, conditioned):
    page = load(summarize_bands(conditioned, tally))
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button")].filter((control) =>
            !(control.labels && control.labels.length) && !control.textContent.trim()).map((control) => control.id)"""
    )
    assert unnamed == []
    assert page.locator("svg:not([aria-label])").count() == 0


@pytest.mark.parametrize(("width", "scheme"), list(itertools.product([320, 375, 768, 1600], ["light", "dark"])))
def test_no_window_is_too_narrow(load, tally, width, scheme):
    zones = ("approve at once", "ask a person of the day shift", "b" * 60, "block")
    gains = dict(zip(zones, GRADES.values(), strict=True))
    bands = tune_bands(*sample(), gains=gains, zones=zones, upper="ppv>=0.3")
    page = load(summarize_bands(bands, tally), viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", background))) < 100) == (scheme == "dark")


def test_it_prints(load, tally, bands):
    assert load(summarize_bands(bands, tally)).pdf().startswith(b"%PDF")
