"""Bands on new rows: conditions with confidence, how often they fail without, certificates and checks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

from guarantees.bands import CONFIGURATIONS, UNPROMISED, breaks, normal_above, normal_rows, zones_in
from guarantees.run import verdict
from surecut import (
    Bands,
    GroupedBands,
    ScoreTally,
    certify,
    check_drift,
    tune_bands,
    tune_threshold,
)
from surecut.constraints import InfeasibleError

GAINS = {"no": (0, -4), "ask": -1, "yes": (-4, 0)}


def drawn(size, seed=0):
    return normal_rows(np.random.default_rng(seed), size)


def test_a_draw_of_every_configuration_runs():
    for one in CONFIGURATIONS:
        found = one.fails(np.random.default_rng(0))
        assert found is None or len(np.atleast_1d(found)) == len(one.parts), one.name


KEPT = [
    "bands: ppv and npv with confidence, 400 rows, normal scores",
    "bands: recall and fnr with confidence, 400 rows, normal scores",
    "bands: ppv and a budget with confidence, 100 rows, normal scores",
    "bands: ppv and npv with confidence, 400 rows, no zone meets them",
]


@pytest.mark.parametrize("name", KEPT)
def test_conditions_hold_on_new_rows_with_the_confidence(name):
    (one,) = (one for one in CONFIGURATIONS if one.name == name)
    rng = np.random.default_rng(5)
    failed = [one.fails(rng) for _ in range(100)]
    assert verdict(sum(failed), len(failed), one.error) == "kept"


def test_the_simulation_notices_conditions_that_nothing_promises():
    rng = np.random.default_rng(5)
    failed = [UNPROMISED.fails(rng) for _ in range(60)]
    assert verdict(sum(failed), len(failed), UNPROMISED.error) == "BROKEN"


def test_how_often_conditions_fail_without_a_promise_is_told():
    """The estimate beside what happens: the mean of both over samples of one population."""
    rng = np.random.default_rng(6)
    told, happened = [], []
    for _ in range(60):
        bands = tune_bands(*normal_rows(rng, 500), upper="ppv>=0.8", lower="npv>=0.8")
        told.append(bands.failure_rates[-1])
        happened.append(breaks(bands, normal_above))
    assert abs(np.mean(told) - np.mean(happened)) < 0.15
    stable = tune_bands(*normal_rows(rng, 500), upper="ppv>=0.8", lower="npv>=0.8", stable=True)
    assert len(stable.failure_rates) == 3
    together = tune_bands(*normal_rows(rng, 500), upper="ppv>=0.8", conditions={"ask": "share<=0.2"})
    assert len(together.failure_rates) == 3
    assert tune_bands(*normal_rows(rng, 500), gains=GAINS).failure_rates == ()
    assert tune_bands(*normal_rows(rng, 500), upper="ppv>=0.6", confidence=0.9).failure_rates == ()


def test_zones_may_stay_empty_where_nothing_can_be_promised():
    y, score = drawn(60)
    bands = tune_bands(y, score, upper="ppv>=0.99", lower="npv>=0.99", confidence=0.95)
    assert bands.thresholds.tolist() == [-np.inf, np.inf]
    assert bands.shares.tolist() == [0, 1, 0]
    assert str(bands).endswith(
        "; npv>=0.99 in no and ppv>=0.99 in yes could not be promised on new data (95 % confidence): "
        "no and yes are empty"
    )


def test_what_is_promised_and_what_is_not_are_told_apart():
    bands = tune_bands(*drawn(400), upper="ppv>=0.7", lower="npv>=0.999", confidence=0.9)
    assert str(bands).endswith(
        "; ppv>=0.7 in yes on new data (90 % confidence); npv>=0.999 in no could not be promised: no is empty"
    )


def test_an_empty_zone_breaks_nothing_on_new_rows():
    bands = tune_bands(*drawn(60), upper="ppv>=0.99", lower="npv>=0.99", confidence=0.95)
    text = str(check_drift(bands, *drawn(60, seed=1)))
    assert "\n  ppv>=0.99 in 'yes' holds: no score can be in this zone\n" in text
    assert "nan" not in text
    far = tune_bands([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], upper="ppv>=0.9", lower="npv>=0.9")
    assert "in 'yes' may hold now: none of these rows tell\n" in str(check_drift(far, [0, 1] * 5, [0.1] * 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"upper": "recall>=0.99", "lower": "fnr<=0.001"}, "recall>=0.99.*zone 'yes'"),
        (
            {"upper": "ppv>=0.9", "lower": "npv>=0.9", "conditions": {"ask": "share<=0.1"}},
            "no thresholds meet share<=0.1 in 'ask' with 95 %",
        ),
        ({"conditions": {"ask": "share<=0.001"}}, "cannot be promised from 200 rows: they are too few"),
        ({"conditions": {"ask": "ppv>=0.2"}}, "cannot be promised, since it binds two thresholds at once"),
        ({"conditions": {"ask": "share>=0.2"}}, "cannot be promised, since it binds two thresholds at once"),
        ({"conditions": {"ask": "share<=0.5"}, "prior": 0.2}, "mixes two classes at a prior that was given"),
    ],
)
def test_what_cannot_be_promised_is_refused_with_the_reason(options, message):
    with pytest.raises((InfeasibleError, ValueError), match=message):
        tune_bands(*drawn(200), **options, confidence=0.95)


def test_a_budget_alone_is_promised():
    rng = np.random.default_rng(3)
    for _ in range(20):
        bands = tune_bands(*normal_rows(rng, 300), conditions={"ask": "share<=0.3"}, gains=GAINS, confidence=0.9)
        assert float(zones_in(bands, normal_above)[1].predicted_positives) <= 0.3


def test_weights_that_count_rows_promise_as_much_as_the_rows():
    y, score = drawn(300)
    twice = tune_bands(np.repeat(y, 2), np.repeat(score, 2), upper="ppv>=0.7", confidence=0.9)
    weight = np.full(300, 2)
    counted = tune_bands(y, score, sample_weight=weight, weights="counts", upper="ppv>=0.7", confidence=0.9)
    assert counted.thresholds.tolist() == twice.thresholds.tolist()
    for weights, message in ((None, "weights='counts'"), ("importance", "not numbers of rows")):
        with pytest.raises(ValueError, match=message):
            tune_bands(y, score, sample_weight=weight, weights=weights, upper="ppv>=0.7", confidence=0.9)


# Certificates


@pytest.fixture(scope="module")
def bands():
    return tune_bands(*drawn(400), upper="ppv>=0.8", lower="npv>=0.8", gains=GAINS)


def by_hand(bands, y, score, error):
    """Clopper–Pearson limits from SciPy, of counts that predict gives."""
    zone = bands.predict(score)

    def limits(count, total):
        low = stats.binomtest(count, total).proportion_ci(1 - 2 * error, "exact")
        return low.low, low.high

    return {
        ("no", "npv"): limits(int((~y[zone == "no"]).sum()), int((zone == "no").sum())),
        ("yes", "ppv"): limits(int(y[zone == "yes"].sum()), int((zone == "yes").sum())),
        **{(one, "share"): limits(int((zone == one).sum()), len(y)) for one in bands.zones},
    }


def test_limits_of_held_out_rows_are_exact(bands):
    y, score = drawn(300, seed=1)
    found = certify(bands, y, score, confidence=0.9)
    expected = by_hand(bands, y, score, 0.1)
    assert {(one.zone, one.quantity) for one in found.zones} == set(expected)
    for one in found.zones:
        np.testing.assert_allclose((one.lower, one.upper), expected[one.zone, one.quantity], rtol=1e-9)
        assert one.lower <= one.value <= one.upper
    zone = bands.predict(score, as_numbers=True)
    gained = bands.gains[zone, y.astype(int)]
    assert found.gain.value == pytest.approx(gained.mean())
    assert found.gain.lower < gained.mean() < found.gain.upper
    halved = certify(bands, y, score, confidence=0.95)
    worst = {one.constraint: one.limit for one in found.conditions}
    single = {f"{one.quantity}>=0.8 in '{one.zone}'": one.lower for one in halved.zones if one.quantity != "share"}
    assert worst == pytest.approx(single)  # each condition has one half of the error


def test_a_tally_certifies_like_its_rows_but_for_the_gain(bands):
    y, score = drawn(300, seed=1)
    rows, tally = certify(bands, y, score), certify(bands, tally=ScoreTally.from_scores(y, score))
    assert tally.zones == rows.zones
    assert tally.conditions == rows.conditions
    assert tally.gain is None
    assert "not from a tally" in tally.note
    assert rows.note == ""


def test_rows_that_come_sorted_say_nothing_of_the_gain(bands):
    y, score = drawn(300, seed=1)
    order = np.argsort(y, kind="stable")
    found = certify(bands, y[order], score[order])
    assert found.gain is None
    assert "sorted rows" in found.note
    assert found.zones == certify(bands, y, score).zones


def test_a_prior_that_is_given_is_that_of_the_new_rows():
    y, score = drawn(2000)
    given = tune_bands(y, score, gains=GAINS, prior=0.1)
    new_y, new_score = drawn(4000, seed=1)
    found = certify(given, new_y, new_score)
    kept = np.flatnonzero(~new_y | (np.random.default_rng(0).random(len(new_y)) < (1 / 9) / (2 / 3)))
    at_prior = certify(tune_bands(y, score, gains=GAINS, prior=0.1), new_y[kept], new_score[kept])
    for one, other in zip(found.zones, at_prior.zones, strict=True):
        assert one.value == pytest.approx(other.value, abs=0.05)
        assert one.lower <= other.value + 0.03
    assert found.gain.value == pytest.approx(at_prior.gain.value, abs=0.05)
    assert any("a share 0.1 of the new rows is positive" in one for one in found.assumptions)


def test_validation_rows_are_refused_or_taken_at_limits_for_all_thresholds(bands):
    y, score = drawn(400)
    with pytest.raises(ValueError, match=r"validation rows of the bands: .*method='uniform', which is valid on them"):
        certify(bands, y, score)
    uniform = certify(bands, y, score, method="uniform")
    fresh = certify(bands, *drawn(400, seed=1))
    for one, other in zip(uniform.zones, fresh.zones, strict=True):
        assert one.upper - one.lower > other.upper - other.lower
    promised = tune_bands(y, score, upper="ppv>=0.7", confidence=0.9)
    assert all(one.holds for one in certify(promised, y, score, method="uniform", confidence=0.9).conditions)


def test_an_empty_zone_is_not_known_and_breaks_no_condition():
    empty = tune_bands(*drawn(100), upper="ppv>=0.99", lower="npv>=0.99", confidence=0.99)
    found = certify(empty, *drawn(100, seed=1))
    top = next(one for one in found.zones if one.quantity == "ppv")
    assert np.isnan(top.value)
    assert (top.lower, top.upper) == (0, 1)
    assert "ppv of yes is not known: no row here is in this zone" in str(found)
    assert all(one.holds for one in found.conditions)  # no score can be there
    assert "ppv>=0.99 in 'yes' holds there, too: no score can be in this zone." in str(found)


def test_weights_have_to_count_rows_to_certify(bands):
    y, score = drawn(300, seed=1)
    weight = np.full(300, 2.0)
    twice = certify(bands, y, score, sample_weight=weight, weights="counts", held_out=True)
    assert twice.rows == 600
    assert "without weights" in twice.note
    with pytest.raises(ValueError, match="weights='counts'"):
        certify(bands, y, score, sample_weight=weight)


def test_what_is_no_method_for_bands_is_refused(bands):
    y, score = drawn(300, seed=1)
    with pytest.raises(ValueError, match="give both"):
        certify(bands, y, score, weights="counts")
    assert certify(bands, y, score, sample_weight=np.ones(300)).gain is not None
    for method in ("bootstrap", "theorem"):
        with pytest.raises(ValueError, match=f"method='{method}' is for cuts: bands are certified by method='holdout'"):
            certify(bands, y, score, method=method)
    with pytest.raises(ValueError, match="these are bands of one sample"):
        certify(bands, y, score, by=y)
    with pytest.raises(ValueError, match="keep one row of each group"):
        certify(bands, y, score, groups=y)
    with pytest.raises(ValueError, match="either rows or their tally"):
        certify(bands, y, score, tally=ScoreTally.from_scores(y, score))
    with pytest.raises(ValueError, match="needs rows"):
        certify(bands)
    with pytest.raises(ValueError, match="need the rows themselves and their groups: pass y_true, y_score and by="):
        certify(GroupedBands(("a",), (bands,)), y, score)
    with pytest.raises(ValueError, match=r"has the prior 0\.2 given"):
        certify(bands, tally=ScoreTally.from_scores(y, score).with_prior(0.2))


def test_groups_are_certified_all_at_once(bands):
    both = GroupedBands(("a", "b"), (bands, tune_bands(*drawn(400, seed=7), upper="ppv>=0.8", gains=GAINS)))
    (y, score), (other_y, other_score) = drawn(300, seed=1), drawn(200, seed=2)
    order = np.random.default_rng(0).permutation(500)
    rows = (np.concatenate(one)[order] for one in ((y, other_y), (score, other_score)))
    by = np.repeat(["a", "b"], [300, 200])[order]
    found = certify(both, *rows, by=by, confidence=0.9)
    assert found.confidence == 0.9
    alone = certify(bands, y, score, confidence=0.95)
    assert found.certificates["a"].confidence == pytest.approx(0.95)
    for one, other in zip(found.certificates["a"].zones, alone.zones, strict=True):
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), nan_ok=True)
    assert str(found).startswith("a: On new rows, each with 95 % confidence, from 300 rows:")
    with pytest.raises(ValueError, match="there are no rows of the group 'b': give rows of every group"):
        certify(both, y, score, by=["a"] * 300)
    with pytest.raises(ValueError, match="300 rows are of a group that has no bands"):
        certify(both, y, score, by=["c"] * 300)


def test_a_certificate_prints_a_line_for_each_quantity(bands):
    text = str(certify(bands, *drawn(300, seed=1), confidence=0.9))
    assert text.startswith("On new rows, each with 90 % confidence, from 300 rows:\n  npv of no at least 0.")
    assert re.search(r"\n  share of ask at most 0\.\d{4} \(0\.\d{4} on these rows\)\n", text)
    assert re.search(r"\n  gain per row at least -0\.\d+ \(-0\.\d+ on these rows\)\n", text)
    assert "ppv>=0.8 in 'yes' " in text
    assert "npv of no" in certify(bands, *drawn(300, seed=1))._repr_html_()


def test_a_ratio_of_decided_rows_has_no_limit():
    found = certify(tune_bands(*drawn(300), metric="f1", gains={"ask": -0.2}), *drawn(300, seed=1))
    assert found.gain is None
    assert "has no limit" in found.note


# Checks


def test_nothing_has_moved_where_nothing_changed(bands):
    report = check_drift(bands, *drawn(500, seed=1))
    assert not report.moved
    assert set(report.zones) == {"npv of no", "ppv of yes", "share of ask"}
    assert report.rows == 500
    assert report.then_rows == 400
    assert not report.has_reference


def test_a_worse_model_is_noticed_beside_reference_rows(bands):
    y, score = drawn(2000, seed=1)
    worse = np.where(np.random.default_rng(0).random(2000) < 0.4, np.random.default_rng(1).permutation(score), score)
    report = check_drift(bands, y, worse, reference=ScoreTally.from_scores(*drawn(2000, seed=2)))
    assert report.moved
    assert report.zones["npv of no"].direction == "fell"
    assert report.zones["ppv of yes"].direction == "fell"
    assert set(report.broken) == {"npv>=0.8 in 'no'", "ppv>=0.8 in 'yes'"}
    assert report.conditions["ppv>=0.8 in 'yes'"].limit < 0.8


def test_a_report_prints_a_line_for_each_quantity(bands):
    text = str(check_drift(bands, *drawn(500, seed=1)))
    assert text.startswith("500 rows beside 400 validation rows:\n  share of positives 0.")
    assert re.search(r"\n  ppv of yes 0\.\d{4} then, 0\.\d{4} now: no sign of a change\n", text)
    assert re.search(r"\n  ppv>=0\.8 in 'yes' may hold now \(0\.\d{4} on these rows\)\n", text)
    assert text.endswith("No sign of a change (95 % confidence).")


def test_another_share_of_positives_is_noticed(bands):
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.7
    report = check_drift(bands, y, rng.normal(size=2000) + 1.5 * y)
    assert report.prior.direction == "rose"
    assert report.moved


def test_checks_of_a_prior_that_was_given_leave_shares_out():
    given = tune_bands(*drawn(400), gains=GAINS, prior=0.4)
    report = check_drift(given, *drawn(400, seed=1))
    assert set(report.zones) == {"npv of no", "ppv of yes"}
    assert report.prior.then == 0.4


def test_validation_rows_as_reference_are_taken_at_limits_for_all_thresholds(bands):
    then = ScoreTally.from_scores(*drawn(400))
    report = check_drift(bands, *drawn(400, seed=1), reference=then)
    assert report.has_reference
    lower, upper = report.zones["ppv of yes"].then_limits
    aside = check_drift(bands, *drawn(400, seed=1), reference=ScoreTally.from_scores(*drawn(400, seed=2)))
    assert upper - lower > np.subtract(*aside.zones["ppv of yes"].then_limits[::-1])


def test_what_a_check_cannot_take_is_refused(bands):
    y, score = drawn(300, seed=1)
    weighted = tune_bands(y, score, sample_weight=np.linspace(1, 2, 300), gains=GAINS)
    with pytest.raises(ValueError, match="give reference rows"):
        check_drift(weighted, y, score)
    with pytest.raises(TypeError, match="needs a cut of one label, or bands, first"):
        check_drift(GroupedBands(("a",), (bands,)), y, score)


def test_an_empty_outer_zone_is_not_watched():
    nothing = tune_bands(*drawn(100), upper="ppv>=0.99", lower="npv>=0.99", confidence=0.99)
    assert isinstance(nothing, Bands)
    report = check_drift(nothing, *drawn(200, seed=1))
    assert set(report.zones) == {"share of ask"}
    assert not report.broken


def test_the_outer_boundaries_are_watched_like_cuts(bands):
    """The change of a zone's PPV is that of the precision of a cut at its threshold, from the same rows."""
    y, score = drawn(400)
    cut = tune_threshold(y, score, metric="precision", constraint="recall>=0.1")
    assert cut.fingerprint == bands.fingerprint
    report = check_drift(bands, *drawn(600, seed=1))
    zone = bands.predict(score)
    assert report.zones["ppv of yes"].then == pytest.approx(y[zone == "yes"].mean())
