"""Zones that are found together in entries of many scores are those of all scores; ``fuzz.bands`` compares more."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import tune_bands
from surecut._labels import as_labels
from surecut.core import zone_bounds
from surecut.core.zone_search import best_edges
from surecut.sources.arrays import ArraySource
from surecut.tuning import bands as tuning
from surecut.tuning.bands_request import BandsRequest

REQUESTS = {
    "budget": {"upper": "ppv>=0.9", "conditions": {"ask": "share<=0.1"}},
    "floor": {"conditions": {"ask": "share>=0.3"}, "gains": {"no": (0, -3), "yes": (-2, 1)}},
    "limit": {"upper": "ppv>=0.95", "lower": "npv>=0.95", "conditions": {"ask": "share<=0.6"}},
    "crossing gains": {"gains": {"no": (0, -1), "ask": -2, "yes": (-1, 0)}},
    "grades": {"zones": tuple("abcd"), "conditions": {"d": "ppv>=0.9", "c": "share<=0.2", "b": "fnr<=0.1"}},
    "prior": {"prior": 0.1, "upper": "ppv>=0.5", "conditions": {"ask": "share<=0.1"}},
}


def drawn(kind, size=60_000):
    random = np.random.default_rng(0)
    y = random.random(size) < 0.5
    score = np.where(y, random.beta(3, 1, size), random.beta(1, 3, size))
    weight = random.integers(0, 5, size).astype(float) if kind == "weights" else None
    score = {"tied": np.round(score, 3), "float32": score.astype(np.float32)}.get(kind, score)
    if kind == "infinite":
        score[:100], score[100:200] = np.inf, -np.inf
    return y, score, weight


@pytest.mark.parametrize("kind", ["continuous", "tied", "float32", "infinite", "weights"])
@pytest.mark.parametrize("name", REQUESTS)
def test_the_bands_are_those_of_all_scores(name, kind, monkeypatch):
    y, score, weight = drawn(kind)
    hidden = []
    real = zone_bounds._unresolved
    monkeypatch.setattr(zone_bounds, "_unresolved", lambda *given: hidden.append(real(*given)) or hidden[-1])
    found = tune_bands(y, score, sample_weight=weight, **REQUESTS[name])
    assert hidden or name == "crossing gains"
    assert kind == "tied" or not hidden or hidden[0].any()
    monkeypatch.setattr(tuning, "_together", lambda *_: None)
    expected = tune_bands(y, score, sample_weight=weight, **REQUESTS[name])
    assert found.thresholds.tolist() == expected.thresholds.tolist()
    assert found.intervals.tolist() == expected.intervals.tolist()
    np.testing.assert_allclose(found.confusion, expected.confusion, rtol=1e-12)


def test_few_rows_are_looked_at():
    y, score, _ = drawn("continuous", 200_000)
    source = ArraySource(score, as_labels(y, check=False), None)
    task = BandsRequest.of(**REQUESTS["budget"]).task
    entries, edges = zone_bounds.search_zones(source, source.count(), task)
    assert len(entries) < 20_000
    assert edges[0] >= edges[1]
    tally = ArraySource(score, as_labels(y, check=False), None).tally().entries
    whole = best_edges(tally, task)
    assert [entries.low[edge - 1] for edge in edges] == [tally.low[edge - 1] for edge in whole]


def test_a_bound_that_is_too_small_loses_the_best_bands(monkeypatch):
    """The comparison above can fail."""
    y, score, _ = drawn("continuous")
    expected = tune_bands(y, score, **REQUESTS["crossing gains"])
    monkeypatch.setattr(zone_bounds, "_unresolved", lambda entries, *_: np.zeros(len(entries), dtype=bool))
    assert tune_bands(y, score, **REQUESTS["crossing gains"]).thresholds.tolist() != expected.thresholds.tolist()


def test_what_cannot_be_bounded_needs_every_score():
    source = ArraySource(np.arange(50_000.0), as_labels(np.arange(50_000) % 2, check=False), None)
    for options in (
        {"metric": "f1", "gains": {"ask": -0.2}},
        {"conditions": {"ask": ["ppv>=0.4", "share<=0.5"]}},
        {"upper": "ppv>=0.99", "conditions": {"yes": ["share>=0.5"], "ask": "share<=0.1"}},
    ):
        assert zone_bounds.search_zones(source, source.count(), BandsRequest.of(**options).task) is None
