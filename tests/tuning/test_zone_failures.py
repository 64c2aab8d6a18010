"""How often conditions on zones fail on other rows, estimated by resampling."""

from __future__ import annotations

import numpy as np

from surecut import tune_bands


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
