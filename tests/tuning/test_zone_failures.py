"""How often conditions on zones fail on other rows, estimated from the counts of the zones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surecut import tune_bands
from surecut.datasets import make_judged_answers


def draw(rng, rows):
    y = rng.random(rows) < 0.5
    return y, np.where(y, rng.beta(3, 1, rows), rng.beta(1, 3, rows))


def test_the_rate_of_a_share_is_that_of_its_posterior_distribution():
    """Of a zone with so many positives and negatives, the PPV has a beta distribution."""
    y, score = draw(np.random.default_rng(0), 500)
    bands = tune_bands(y, score, upper="ppv>=0.9", lower="npv>=0.9")
    (no_n, no_p), _, (yes_n, yes_p) = bands.confusion.tolist()
    npv, ppv, either = bands.failure_rates
    assert npv == pytest.approx(stats.beta.cdf(0.9, no_n + 0.5, no_p + 0.5), abs=0.03)
    assert ppv == pytest.approx(stats.beta.cdf(0.9, yes_p + 0.5, yes_n + 0.5), abs=0.03)
    assert either == pytest.approx(1 - (1 - npv) * (1 - ppv), abs=0.03)


def truth(bands, y, score):
    """Whether a condition on PPV or NPV fails on many other rows."""
    zone, failed = bands.predict(score), False
    for one in bands.conditions:
        share = y[zone == bands.zones[one.zone]].mean() if (zone == bands.zones[one.zone]).any() else None
        if share is not None:
            failed |= (share if one.quantity.name == "ppv" else 1 - share) < one.level
    return failed


def judged(rng, rows):
    return make_judged_answers(rows, random_state=int(rng.integers(2**31)))[:2]


@pytest.mark.parametrize("conditions", [("ppv>=0.95", "npv>=0.95"), ("ppv>=0.85", "npv>=0.8")])
@pytest.mark.parametrize("rows", [300, 3_000])
@pytest.mark.parametrize("drawn", [draw, judged], ids=["continuous", "tied"])
def test_the_mean_estimate_is_what_happens(drawn, rows, conditions):
    rng = np.random.default_rng(0)
    y, score = drawn(rng, 200_000)
    told, happened = [], []
    for _ in range(100):
        bands = tune_bands(*drawn(rng, rows), upper=conditions[0], lower=conditions[1])
        told.append(bands.failure_rates[-1])
        happened.append(truth(bands, y, score))
    assert abs(np.mean(told) - np.mean(happened)) < 0.15


@pytest.mark.parametrize("rows", [1_000, 20_000, 200_000])
def test_a_condition_that_just_holds_fails_about_every_second_time_however_many_rows_there_are(rows):
    rng = np.random.default_rng(0)
    for stable in (False, True):
        bands = tune_bands(*draw(rng, rows), upper="ppv>=0.95", lower="npv>=0.95", stable=stable)
        assert bands.failure_rates[0] == pytest.approx(0.5, abs=0.15)
        assert bands.failure_rates[1] == pytest.approx(0.5, abs=0.15)


def test_weights_count_in_units_of_rows():
    y, score = draw(np.random.default_rng(0), 500)
    plain = tune_bands(y, score, upper="ppv>=0.9", lower="npv>=0.9")
    scaled = tune_bands(y, score, sample_weight=np.full(500, 1e-9), upper="ppv>=0.9", lower="npv>=0.9")
    assert scaled.failure_rates == pytest.approx(plain.failure_rates)


def test_an_empty_zone_breaks_nothing():
    bands = tune_bands([0, 1, 0, 1], [0.4, 0.3, 0.2, 0.1], upper="ppv>=0.9")
    assert bands.confusion[2].tolist() == [0, 0]
    assert bands.failure_rates == (0, 0)
