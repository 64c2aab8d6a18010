"""tune_bands: what may be asked for, what is said where it cannot be had, and bands for new rows."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import (
    InfeasibleError,
    MissingRowsWarning,
    ScoreSketch,
    ScoreTally,
    tune_bands,
    tune_threshold,
)
from surecut.metrics import AM, NPV, Youden

GAINS = {"no": (0, -4), "ask": -1, "yes": (-4, 0)}
Y, SCORES = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]


def drawn(size, seed=0, power=3):
    random = np.random.default_rng(seed)
    y = random.random(size) < 0.5
    return y, np.where(y, random.beta(power, 1, size), random.beta(1, power, size))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say what the zones are for: conditions such as upper='ppv>=0.9'"),
        ({"upper": "ppv>=90"}, "for 90 percent write 90% or 0.9"),
        ({"upper": "ppv>0.9"}, "expected a constraint like"),
        ({"upper": 0.9}, "expected a condition on a zone like 'ppv>=0.9', or a list of such, got 0.9"),
        ({"upper": {"ppv": 0.9}}, "expected a condition on a zone like"),
        ({"upper": "ppv>=0.9 and recall>=0.5"}, r"is several constraints: pass a list, \['ppv>=0.9', 'recall>=0.5'\]"),
        ({"upper": "presicion>=0.9"}, "unknown quantity 'presicion' of a zone: did you mean 'precision'"),
        ({"conditions": "share<=0.1"}, "by its name, such as conditions="),
        ({"conditions": {"maybe": "share<=0.1"}}, "there is no zone 'maybe': the zones are 'no', 'ask', 'yes'"),
        ({"conditions": {"ask": ["share>=0.5", "share<=0.25"]}}, "share>=0.5 and share<=0.25 in 'ask' contradict"),
        ({"gains": [1, 2, 3]}, "by its name, such as gains="),
        ({"gains": {"maybe": 1}}, "there is no zone 'maybe'"),
        ({"gains": {"yes": (1, 2, 3)}}, "must be a number, or a pair"),
        ({"gains": {"yes": np.inf}}, "must be finite"),
        ({"gains": {"yes": (-1e308, 1e308)}}, r"must be finite, and at most 1e\+100"),
        ({"gains": {"yes": (-(10**400), 1)}}, "must be a number, or a pair"),
        ({"zones": ["\ud800", "b"], "upper": "ppv>=0.9"}, "zones= must be the names of the zones"),
        ({"zones": None, "upper": "ppv>=0.9"}, "zones= must be the names of the zones"),
        ({"zones": ("yes", "ask", "no"), "gains": GAINS}, "reverse zones=, or reverse the pairs of gains="),
        ({"gains": {"ask": (-1, -3), "yes": (1, -2)}}, "'yes' gains more than 'no' on negatives and less on positives"),
        ({"zones": "ab", "upper": "ppv>=0.9"}, "zones= must be the names of the zones"),
        ({"zones": ("no", "error"), "upper": "ppv>=0.9"}, "a zone cannot be called 'error'"),
        ({"zones": ("a",), "upper": "ppv>=0.9"}, "at least two zones are needed, got 1"),
        ({"zones": ("a", "a"), "upper": "ppv>=0.9"}, "each zone needs a name of its own"),
        ({"zones": tuple("abcdefghi"), "gains": {"i": (-1, 1)}}, "9 zones need at least as many distinct scores, and"),
        (
            {"lower": "sensitivity>=0.95"},
            "recall>=0.95 in 'no' asks for more positives .* at most 0.05 .* fnr<=0.05",
        ),
        ({"upper": "specificity>=0.9"}, "specificity>=0.9 in 'yes' asks for more negatives .* write fpr<=0.1"),
        ({"lower": "fnr>=0.05"}, "into the zone of the lowest scores: did you mean false_negative_rate<=0.05"),
        ({"upper": "ppv<=0.9"}, "into the zone of the highest scores: did you mean ppv>=0.9"),
        ({"upper": "npv>=0.9"}, "for the zone 'no' write lower='npv>=0.9'"),
        ({"lower": "ppv>=0.9"}, "for the zone 'yes' write upper='ppv>=0.9'"),
        ({"upper": "fnr<=0.05"}, "for the zone 'no' write lower='false_negative_rate<=0.05'"),
        (
            {"gains": {"no": (0, -10), "yes": (-5, 0)}},
            "no row is worth more than in 'ask', and all rows would be there",
        ),
        ({"gains": {"yes": 0}}, "no row is worth more than in 'no'"),
        (
            {"zones": tuple("abcd"), "conditions": dict.fromkeys("abcd", "share<=0.5")},
            "each of the zones has conditions, and nothing says which of them should be large",
        ),
        ({"metric": "f1"}, "is best where hardly any is: say what another row costs"),
        ({"metric": "am", "gains": {"ask": -1}}, "depends on the class totals"),
        ({"metric": "mcc", "gains": {"ask": -1}}, "depends on the class totals"),
        ({"gains": GAINS, "confidence": 0.9}, "confidence= is for conditions"),
        ({"upper": "ppv>=0.9", "confidence": 90}, "0 < confidence < 1"),
        ({"upper": "ppv>=0.9", "confidence": 0.9, "stable": True}, "leave out stable=True"),
        ({"upper": "ppv>=0.9", "conditions": {"ask": "share<=0.5"}, "stable": True}, "leave stable=False"),
        ({"upper": "ppv>=0.9", "weights": "counts"}, "give both"),
        ({"upper": "ppv>=0.9", "prior": 1}, "0 < prior < 1"),
        ({"upper": "ppv>=0.9", "random_state": -1}, "random_state= must be a whole number"),
        ({"upper": "ppv>=0.9", "stable": "yes"}, "stable= must be True or False"),
        ({"upper": "ppv>=0.9", "tally": 1}, "either rows or their tally"),
    ],
)
def test_what_cannot_be_asked_for_is_said(options, message):
    with pytest.raises(ValueError, match=message):
        tune_bands(Y, SCORES, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"upper": ["ppv>=0.9", "recall>=0.9"]},
            r"for ppv>=0\.9 in 'yes', the highest ppv attainable is 0\.8 with the",
        ),
        (
            {"upper": "recall>=0.9", "lower": "share>=0.75"},
            r"for share>=0\.75 in 'no', the highest share .* is 0\.375 ",
        ),
        ({"conditions": {"ask": "share>=0.9"}, "upper": "recall>=0.5"}, r"for share>=0\.9 in 'ask', the highest share"),
    ],
)
def test_what_is_attainable_is_said(options, message):
    with pytest.raises(InfeasibleError, match=f"each condition can be met, but not all at once: {message}"):
        tune_bands(Y, SCORES, **options)


@pytest.mark.parametrize(
    ("y", "score", "message"),
    [
        ([1, 1, 1], [0.1, 0.2, 0.3], "rows of both classes, and all rows are positive: add negative ones"),
        ([0, 0, 0], [0.1, 0.2, 0.3], "all rows are negative: add positive ones"),
        ([0, 1, 1], [0.5, 0.5, 0.5], "all rows have the same score"),
        ([0, 1], [0.1, 0.2], "3 zones need at least as many distinct scores, and there are 2: name at most 2 zones"),
        ([], [], "empty"),
        ([0, 1], [0.1], "one length"),
        ([0, 1, 1], [0.1, np.nan, 0.3], "NaN"),
    ],
)
def test_rows_that_say_nothing_of_zones_are_refused(y, score, message):
    with pytest.raises(ValueError, match=message):
        tune_bands(y, score, upper="ppv>=0.5")


def test_a_budget_is_used_up_where_the_outer_zones_have_no_conditions_of_their_own():
    y, score = drawn(1000)
    outer = {"upper": "ppv>=0.9", "lower": "npv>=0.9"}
    alone, more = (tune_bands(y, score, **outer, conditions=one) for one in (None, {"ask": "share<=0.4"}))
    assert more.thresholds.tolist() == alone.thresholds.tolist()
    assert alone.shares[1] < 0.4
    budget = tune_bands(y, score, conditions={"ask": "share<=0.4"})
    assert budget.shares[1] == pytest.approx(0.4, abs=0.002)
    assert tune_bands(y, score, upper="ppv>=0.9", conditions={"ask": "share<=0.4"}).shares[1] > 0.3
    free = {"no": (0, -10), "yes": (-5, 0)}
    assert tune_bands(y, score, gains=free, conditions={"ask": "share<=0.4"}).shares[1] == pytest.approx(0.4, abs=0.002)


def test_conditions_and_a_price_per_referral_go_together():
    y, score = drawn(1000)
    outer = {"upper": "ppv>=0.95", "lower": "npv>=0.95"}
    priced = tune_bands(y, score, **outer, gains={"ask": -0.5})
    assert priced.thresholds.tolist() == tune_bands(y, score, **outer).thresholds.tolist()
    assert priced.value == pytest.approx(-0.5 * priced.shares[1])


def test_a_budget_that_is_too_small_is_said_in_its_own_numbers():
    y, score = drawn(1000)
    with pytest.raises(InfeasibleError, match=r"for share<=0\.05 in 'ask', the lowest share attainable is 0\.[12]"):
        tune_bands(y, score, upper="ppv>=0.95", lower="npv>=0.95", conditions={"ask": "share<=5%"})


def test_rows_are_asked_for():
    with pytest.raises(ValueError, match="tune_bands needs rows: pass y_true and y_score, or tally="):
        tune_bands(upper="ppv>=0.5")


def test_rows_without_a_value_are_dropped_on_request():
    with pytest.warns(MissingRowsWarning, match="1 without a score"):
        found = tune_bands([*Y, 1], [*SCORES, np.nan], gains=GAINS, missing="drop")
    assert found == tune_bands(Y, SCORES, gains=GAINS)


@pytest.mark.parametrize(
    "spelled", ["ppv>=0.9", "precision >= 90%", ("ppv", 0.9), ("precision", ">=", 0.9), ["ppv>=9/10"]]
)
def test_conditions_have_several_spellings(spelled):
    expected = tune_bands(Y, SCORES, conditions={"yes": "ppv>=0.9"})
    assert tune_bands(Y, SCORES, upper=spelled).thresholds.tolist() == expected.thresholds.tolist()


def test_upper_and_lower_join_what_conditions_say():
    both = tune_bands(Y, SCORES, upper="ppv>=0.7", conditions={"yes": "recall<=0.5", "no": "npv>=0.7"})
    assert sorted(map(str, both.conditions)) == ["npv>=0.7", "ppv>=0.7", "recall<=0.5"]


def test_two_zones_are_a_cut():
    y, score = drawn(400)
    bands = tune_bands(y, score, zones=("no", "yes"), gains={"yes": (-3, 1)})
    cut = tune_threshold(y, score, metric="utility(tp=1, fp=-3)")
    assert bands.thresholds.tolist() == [cut.threshold]
    bands = tune_bands(y, score, zones=("no", "yes"), metric="f1")
    assert bands.thresholds.tolist() == [tune_threshold(y, score).threshold]


def test_the_seed_changes_the_resamples_alone():
    y, score = drawn(300)
    one, other = (tune_bands(y, score, upper="ppv>=0.9", lower="npv>=0.9", random_state=seed) for seed in (0, 1))
    assert one.thresholds.tolist() == other.thresholds.tolist()
    assert one.failure_rates != other.failure_rates
    assert one == tune_bands(y, score, upper="ppv>=0.9", lower="npv>=0.9")


# Bands for new rows


def test_stable_bands_are_nearer_to_the_best_ones_of_the_population():
    y, score = drawn(200_000, seed=99)
    truth = tune_bands(y, score, gains=GAINS)

    def loss(bands):
        zone = bands.predict(score, as_numbers=True)
        return truth.value - float(truth.gains[zone, y.astype(int)].mean())

    exact, stable = (
        [loss(tune_bands(*drawn(200, seed), gains=GAINS, stable=is_stable)) for seed in range(40)]
        for is_stable in (False, True)
    )
    assert np.mean(stable) < 0.8 * np.mean(exact)


def test_stable_bands_are_settled_boundary_by_boundary():
    y, score = drawn(300)
    bands = tune_bands(y, score, gains=GAINS, stable=True)
    assert len(bands.stability) == 2
    assert bands.value <= tune_bands(y, score, gains=GAINS).value
    for one, threshold in zip(bands.stability, bands.thresholds, strict=True):
        assert one.resamples == 200
        assert one.near_optimal[0] <= threshold <= one.near_optimal[1]
    zone = bands.predict(score, as_numbers=True)
    counts = [[int(((zone == k) & (y == c)).sum()) for c in (0, 1)] for k in range(3)]
    assert bands.confusion.tolist() == counts
    assert bands == tune_bands(y, score, gains=GAINS, stable=True)


def test_stable_boundaries_that_cross_become_one():
    y, score = drawn(300)
    bands = tune_bands(y, score, gains={"no": (0, -1), "ask": -2, "yes": (-1, 0)}, stable=True)
    assert bands.thresholds[0] == bands.thresholds[1]
    assert bands.confusion[1].tolist() == [0, 0]
    conditions = tune_bands(*drawn(300, power=6), upper="ppv>=0.6", lower="npv>=0.6", stable=True)
    assert (np.diff(conditions.thresholds) >= 0).all()


def test_stable_bands_meet_their_conditions_on_the_validation_rows():
    for seed in range(10):
        bands = tune_bands(*drawn(150, seed), upper="ppv>=0.9", lower="npv>=0.9", stable=True)
        no, _, yes = bands.confusion.tolist()
        assert no[0] >= 0.9 * sum(no) - 1e-9
        assert yes[1] >= 0.9 * sum(yes) - 1e-9


# Tallies and sketches


def test_a_tally_knows_its_prior_and_its_positive_label():
    y, score = drawn(300)
    labels = np.where(y, "spam", "ham")
    tally = ScoreTally.from_scores(labels, score, pos_label="spam").with_prior(0.1)
    found = tune_bands(tally=tally, gains=GAINS)
    assert found == tune_bands(labels, score, gains=GAINS, prior=0.1, pos_label="spam")
    with pytest.raises(ValueError, match=r"the tally has the prior 0\.1 given, and prior= is 0\.2"):
        tune_bands(tally=tally, gains=GAINS, prior=0.2)


def test_a_sketch_has_the_best_bands_at_the_edges_of_its_bins():
    y, score = drawn(3000)
    sketch = ScoreSketch(bits=4)
    sketch.update(y, score)
    found = tune_bands(tally=sketch, gains=GAINS)
    rounded = np.array([sketch.candidates.accepted[1:]])[0]
    at_edges = rounded[np.searchsorted(-rounded, -score)]
    expected = tune_bands(y, at_edges, gains=GAINS)
    assert found.confusion.tolist() == expected.confusion.tolist()
    assert found.value == pytest.approx(expected.value)
    zone = found.predict(score, as_numbers=True)
    assert found.confusion.tolist() == [[int(((zone == k) & (y == c)).sum()) for c in (0, 1)] for k in range(3)]
    weighted = ScoreSketch()
    weighted.update(y, score, sample_weight=np.full(3000, 1.5))
    with pytest.raises(ValueError, match="a sketch does not know the single weights"):
        tune_bands(tally=weighted, upper="ppv>=0.7", confidence=0.9)
    promised = tune_bands(tally=sketch, upper="ppv>=0.7", confidence=0.9)
    assert promised.confidence == 0.9


# Metrics by their clinical names


def test_youden_has_the_cut_of_balanced_accuracy_and_npv_is_that_of_rejected_rows():
    y, score = drawn(300)
    youden = tune_threshold(y, score, metric="youden")
    assert youden.threshold == tune_threshold(y, score, metric="am").threshold
    assert youden.value == pytest.approx(2 * tune_threshold(y, score, metric="am").value - 1)
    cut = tune_threshold(y, score, metric="npv", constraint="specificity>=0.5")
    assert cut.value == pytest.approx((~y[score < cut.threshold]).mean())
    assert NPV().evaluate(cut.confusion) == cut.value
    assert 2 * AM().evaluate(cut.confusion) - 1 == pytest.approx(Youden().evaluate(cut.confusion))


def test_a_gain_that_is_never_taken_changes_nothing():
    """Sums tie by the size of what adds up to them, not by that of the largest gain."""
    rng = np.random.default_rng(0)
    score = rng.random(20_000).round(4)
    y = rng.random(20_000) < score
    gains = {"no": (0, -3), "ask": -1, "yes": (-3, 0)}
    expected = tune_bands(y, score, gains=gains).thresholds.tolist()
    zones = ("no", "ask", "yes", "stop")
    for never in (-1e6, -1e10, -1e14):
        found = tune_bands(y, score, zones=zones, gains=gains | {"stop": never})
        together = tune_bands(y, score, zones=zones, gains=gains | {"stop": never}, conditions={"ask": "share<=1"})
        assert found.thresholds.tolist() == together.thresholds.tolist() == [*expected, np.inf]
    offset = {zone: tuple(1e6 + np.broadcast_to(gain, 2)) for zone, gain in gains.items()}
    assert tune_bands(y, score, gains=offset, conditions={"ask": "share<=1"}).thresholds.tolist() == expected


def test_weights_that_vanish_beside_others_are_no_error():
    y, score, weight = [0, 1, 1, 1], [2.0, 1, 3, 0], [1, 1, 1e-16, 1e-16]
    found = tune_bands(y, score, sample_weight=weight, metric="f1", lower="npv>=0.1", gains={"ask": -0.1})
    assert np.isfinite(found.value)
    with pytest.raises(ValueError, match=r"the weights add up to more than 1e\+150"):
        tune_bands(Y, SCORES, sample_weight=[1e308, *[1] * 7], conditions={"ask": "share<=0.5"}, gains=GAINS)
