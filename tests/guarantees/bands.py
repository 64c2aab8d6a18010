"""Promises of bands: conditions with confidence, certificates, checks, at parameters that are the worst for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from guarantees.configuration import Configuration
from surecut import InfeasibleError, ScoreTally, certify, check_drift, tune_bands
from surecut.confusion import Confusion
from surecut.decisions.bands import Bands

ERROR = 0.1
SIDES = ("lower", "upper")

Rows = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, int], Rows]
Above = Callable[[np.ndarray], np.ndarray]
"""Thresholds → shares of negatives and of positives that reach them, in the population."""

MEAN, PRIOR = 1.5, 0.4


def normal_rows(rng: np.random.Generator, rows: int) -> Rows:
    y = rng.random(rows) < PRIOR
    return y, rng.normal(size=rows) + MEAN * y


def normal_above(thresholds: np.ndarray) -> np.ndarray:
    return np.stack(((1 - PRIOR) * stats.norm.sf(thresholds), PRIOR * stats.norm.sf(thresholds - MEAN)), axis=-1)


def _rounded(rng: np.random.Generator, rows: int) -> Rows:
    y, score = normal_rows(rng, rows)
    return y, np.round(score)


def _rounded_above(thresholds: np.ndarray) -> np.ndarray:
    return normal_above(np.ceil(thresholds) - 0.5)


BARELY = 0.78
"""The upper half of these scores is positive with this probability, the lower half negative: a condition of more than
this holds for no zone."""


def _barely(rng: np.random.Generator, rows: int) -> Rows:
    score = rng.random(rows)
    return rng.random(rows) < np.where(score < 0.5, 1 - BARELY, BARELY), score


def _barely_above(thresholds: np.ndarray) -> np.ndarray:
    at = np.clip(thresholds, 0.0, 1.0)
    high, low = 1 - np.maximum(at, 0.5), np.maximum(0.5 - at, 0.0)
    positive = BARELY * high + (1 - BARELY) * low
    return np.stack((high + low - positive, positive), axis=-1)


POPULATIONS: dict[str, tuple[Draw, Above]] = {
    "normal scores": (normal_rows, normal_above),
    "few distinct scores": (_rounded, _rounded_above),
    "no zone meets them": (_barely, _barely_above),
}


def zones_in(bands: Bands, above: Above) -> list[Confusion]:
    """What is inside each zone in a population, as shares of all rows."""
    ends = above(np.concatenate(([-np.inf], bands.thresholds, [np.inf])))
    total = ends[0]
    return [Confusion(tp=p, fp=n, fn=total[1] - p, tn=total[0] - n) for n, p in (ends[:-1] - ends[1:]).clip(0).tolist()]


def breaks(bands: Bands, above: Above) -> bool:
    """Whether a condition does not hold in a population; a zone without rows there meets what is said of its rows."""
    zones = zones_in(bands, above)
    return not all(bool(one.is_met(zones[one.zone])) for one in bands.conditions)


def _condition(
    population: str, rows: int, options: dict[str, Any], confidence: float | None, rng: np.random.Generator
) -> bool | None:
    draw, above = POPULATIONS[population]
    y, score = draw(rng, rows)
    try:
        bands = tune_bands(y, score, **options, confidence=confidence)
    except InfeasibleError:
        return None
    return breaks(bands, above)


OUTER: dict[str, dict[str, Any]] = {
    "ppv and npv": {"upper": "ppv>=0.8", "lower": "npv>=0.8"},
    "ppv alone": {"upper": "ppv>=0.8"},
    "recall and fnr": {"upper": "recall>=0.5", "lower": "fnr<=0.2"},
    "ppv and a budget": {"upper": "ppv>=0.8", "conditions": {"ask": "share<=0.4"}},
    "ppv, npv and gains": {"upper": "ppv>=0.8", "lower": "npv>=0.8", "gains": {"no": (0, -1), "yes": (-1, 1)}},
}

CONDITIONS = [
    Configuration(
        f"bands: {name} with confidence, {rows} rows, {population}",
        ERROR,
        partial(_condition, population, rows, options, 1 - ERROR),
    )
    for population in POPULATIONS
    for name, options in OUTER.items()
    for rows in (100, 400, 800)
    if not (population == "no zone meets them" and name == "recall and fnr")
] + [
    Configuration(
        "bands: grades with confidence, 400 rows",
        ERROR,
        partial(
            _condition,
            "normal scores",
            400,
            {
                "zones": ("low", "medium", "high", "urgent"),
                "conditions": {"urgent": "ppv>=0.8", "low": "npv>=0.85", "high": "share<=0.3"},
            },
            1 - ERROR,
        ),
    )
]

UNPROMISED = Configuration(
    "bands: ppv and npv without confidence",
    ERROR,
    partial(_condition, "normal scores", 400, OUTER["ppv and npv"], None),
)
"""Nothing is promised here, and the test that says how often promises break has to notice it."""


def _certified(method: str, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether the limits of the highest zone's PPV are on the wrong side."""
    rows = normal_rows(rng, 300)
    bands = tune_bands(*rows, upper="ppv>=0.8", lower="npv>=0.8", gains={"no": (0, -2), "yes": (-2, 1)})
    if method == "holdout":
        rows = normal_rows(rng, 300)
    found = certify(bands, *rows, method=method, confidence=1 - ERROR, held_out=None if method == "uniform" else True)
    zones = zones_in(bands, normal_above)
    top = next(one for one in found.zones if one.quantity == "ppv")
    truth = float(zones[-1].tp / zones[-1].predicted_positives) if zones[-1].predicted_positives else np.nan
    return bool(top.lower > truth), bool(top.upper < truth)


def _gain(rng: np.random.Generator) -> tuple[bool, bool] | None:
    bands = tune_bands(*normal_rows(rng, 300), gains={"no": (0, -3), "ask": -0.5, "yes": (-2, 1)})
    found = certify(bands, *normal_rows(rng, 200), confidence=1 - ERROR, held_out=True)
    assert bands.gains is not None
    zones = zones_in(bands, normal_above)
    truth = sum(n * zone.fp + p * zone.tp for (n, p), zone in zip(bands.gains.tolist(), zones, strict=True))
    if found.gain is None:  # now and then rows in no order look sorted
        return None
    return bool(found.gain.lower > truth), bool(found.gain.upper < truth)


def _share(method: str, rng: np.random.Generator) -> tuple[bool, bool]:
    rows = normal_rows(rng, 300)
    bands = tune_bands(*rows, upper="ppv>=0.8", lower="npv>=0.8")
    if method == "holdout":
        rows = normal_rows(rng, 300)
    found = certify(bands, *rows, method=method, confidence=1 - ERROR, held_out=None if method == "uniform" else True)
    middle = next(one for one in found.zones if one.zone == "ask")
    truth = float(zones_in(bands, normal_above)[1].predicted_positives)
    return bool(middle.lower > truth), bool(middle.upper < truth)


CERTIFICATES = [
    *(
        Configuration(f"bands: {method} limits of ppv", ERROR, partial(_certified, method), SIDES)
        for method in ("holdout", "uniform")
    ),
    *(
        Configuration(f"bands: {method} limits of a share", ERROR, partial(_share, method), SIDES)
        for method in ("holdout", "uniform")
    ),
    Configuration("bands: holdout limits of the gain", ERROR, _gain, SIDES),
]


def _alarms(reference: bool, rng: np.random.Generator) -> bool:
    bands = tune_bands(*normal_rows(rng, 300), upper="ppv>=0.8", lower="npv>=0.8")
    then = ScoreTally.from_scores(*normal_rows(rng, 400)) if reference else None
    return check_drift(
        bands, tally=ScoreTally.from_scores(*normal_rows(rng, 300)), reference=then, confidence=1 - ERROR
    ).moved


CHECKS = [
    Configuration(f"bands: check {against}", ERROR, partial(_alarms, against == "beside held-out rows"))
    for against in ("beside held-out rows", "beside the validation rows' counts")
]

CONFIGURATIONS: list[Configuration] = [*CONDITIONS, *CERTIFICATES, *CHECKS]
