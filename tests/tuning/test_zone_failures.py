"""How often conditions on zones fail on other rows, estimated by resampling."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from surecut import tune_bands
from surecut.tuning import zone_failures


def draw(rng, rows):
    y = rng.random(rows) < 0.5
    return y, np.where(y, rng.beta(3, 1, rows), rng.beta(1, 3, rows))


def test_conditions_that_cross_are_resampled_as_they_are_tuned():
    """One cut meets both with room to spare: they fail far less often than each at its own extreme threshold."""
    rng = np.random.default_rng(0)
    crossing, apart = [], []
    for _ in range(10):
        y, score = draw(rng, 3_000)
        bands = tune_bands(y, score, upper="ppv>=0.85", lower="npv>=0.8")
        assert bands.thresholds[0] == bands.thresholds[1]
        crossing.append(bands.failure_rates[-1])
        apart.append(tune_bands(y, score, upper="ppv>=0.95", lower="npv>=0.95").failure_rates[-1])
    assert np.mean(crossing) < 0.1  # 0.022 of 1,000 samples
    assert np.mean(apart) > 0.5


def test_resamples_are_drawn_when_the_rates_are_asked_for(monkeypatch):
    y, score = draw(np.random.default_rng(0), 300)
    bands = tune_bands(y, score, upper="ppv>=0.9", lower="npv>=0.9")
    again = pickle.loads(pickle.dumps(bands))  # it was just written
    expected = tuple(bands.failure_rates)
    assert len(expected) == 3
    assert again.failure_rates == bands.failure_rates == expected
    assert repr(bands.failure_rates) == repr(expected)
    assert bands.failure_rates[-1] == expected[-1]
    assert bands.failure_rates[:1] == expected[:1]
    monkeypatch.setattr(zone_failures, "_drawn", None)
    assert tuple(bands.failure_rates) == expected  # once only
    tune_bands(y, score, upper="ppv>=0.9").predict(score)
    with pytest.raises(TypeError):
        len(tune_bands(y, score, upper="ppv>=0.9").failure_rates)
