"""What the tests share: the metrics under contract, scores that are hard to search, and an oracle in plain Python."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import pytest

from surecut import _kernels, rows, search, tuning
from surecut.confusion import Confusion
from surecut.metrics import (
    CATALOGUE,
    LinearFractional,
    LinearFractionalMetric,
    Metric,
    Tversky,
    Utility,
    WeightedAccuracy,
)

hypothesis.settings.register_profile("surecut", deadline=None, max_examples=60)
hypothesis.settings.load_profile("surecut")

METRICS: dict[str, Metric] = {name: make() for name, make in CATALOGUE.items()} | {
    "weighted_accuracy": WeightedAccuracy(negative_weight=1, positive_weight=3),
    "tversky": Tversky(alpha=0.3, beta=0.9),
    "utility": Utility(tp=1, fp=-1, fn=-5),
    "linear_fractional": LinearFractional(lambda prior: 2 * prior, -0.5, -2, lambda prior: prior + 1, 1, 0),
    "from_cells": LinearFractional.from_cells(numerator=(3, 0, 0, 1), denominator=(3, 1, 2, 1), name="from_cells"),
}
LINEAR_FRACTIONAL = {name: metric for name, metric in METRICS.items() if isinstance(metric, LinearFractionalMetric)}
ON_HULL = LINEAR_FRACTIONAL | {"mcc": METRICS["mcc"]}
WITH_THEOREM = {name: metric for name, metric in LINEAR_FRACTIONAL.items() if name != "precision"}


@pytest.fixture(scope="session", params=METRICS.values(), ids=METRICS)
def metric(request: pytest.FixtureRequest) -> Metric:
    """Every metric of the registry, and one of each family that has parameters."""
    return request.param


@pytest.fixture(scope="session", params=LINEAR_FRACTIONAL.values(), ids=LINEAR_FRACTIONAL)
def linear_fractional(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="session", params=WITH_THEOREM.values(), ids=WITH_THEOREM)
def with_theorem(request: pytest.FixtureRequest) -> Any:
    """The linear-fractional metrics whose denominator never vanishes."""
    return request.param


@pytest.fixture(scope="session", params=ON_HULL.values(), ids=ON_HULL)
def on_hull(request: pytest.FixtureRequest) -> Any:
    """The metrics whose best cut is a vertex of the ROC convex hull."""
    return request.param


@pytest.fixture(scope="session", params=[0.001, 0.1, 0.5, 0.7, 0.99])
def prior(request: pytest.FixtureRequest) -> float:
    return request.param


@pytest.fixture(scope="session", params=["numpy", "compiled"])
def kernels(request: pytest.FixtureRequest) -> Any:
    """Both sets of kernels, one after the other."""
    if request.param == "numpy":
        return _kernels.NumpyKernels()
    compiled = _kernels.compiled()
    if compiled is None:
        pytest.skip("numba is not installed")
    return compiled


SMALL = {"SORTED_AT_ONCE": 8, "SORTED_SHARE": 10**6, "GROUP": 4, "PARTS": 16, "ROWS_PER_PART": 4}
"""Settings with which even a handful of rows is searched as if they were millions."""


@pytest.fixture(scope="session")
def searching() -> Callable[..., Any]:
    """A context in which a handful of rows is searched, in many small blocks and few first bins, 2**bits per sign."""

    @contextmanager
    def context(kernels: Any, *, block: int = 16, bits: int = 3, **settings: int) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tuning, "SORT_BELOW", 0)
            patch.setattr(rows, "BLOCK", block)
            patch.setattr(rows, "first_bins", lambda sample: _kernels.first_bins(sample, bits))
            patch.setattr(_kernels, "available", lambda count: kernels)
            for name, value in (SMALL | settings).items():
                patch.setattr(search, name, value, raising=False)  # that all are there is a test of its own
            yield

    return context


@pytest.fixture(scope="session")
def small_settings() -> dict[str, int]:
    return SMALL


# Scores that are hard to search. Each family makes `size` scores from a generator.

FAMILIES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "sigmoid": lambda random, size: 1 / (1 + np.exp(-random.normal(size=size))),
    "ties": lambda random, size: np.round(random.random(size), 1),
    "constant": lambda random, size: np.full(size, 0.3),
    "float32": lambda random, size: random.normal(size=size).astype(np.float32),
    "float16": lambda random, size: random.normal(size=size).astype(np.float16),
    "infinities": lambda random, size: random.choice([np.inf, -np.inf, 1.0, *random.normal(size=20)], size),
    "only_infinities": lambda random, size: random.choice([np.inf, -np.inf], size),
    "one_magnitude_and_infinities": lambda random, size: np.where(
        (np.arange(size) > 63) & (random.random(size) < 0.6), random.choice([np.inf, -np.inf], size), 0.5
    ),
    "float32_infinities": lambda random, size: random.choice([np.inf, -np.inf, 0.5, 1.5], size).astype(np.float32),
    "infinity_and_largest": lambda random, size: random.choice([np.inf, np.finfo(float).max, 1.0], size),
    "all_magnitudes": lambda random, size: random.normal(size=size) * 10.0 ** random.uniform(-300, 300, size),
    "outliers": lambda random, size: np.concatenate(([1e300, -1e300], random.normal(size=size - 2))),
    "late_outliers": lambda random, size: np.concatenate((random.random(size - 2), [-1e300, 1e300])),
    "denormal": lambda random, size: random.integers(-40, 40, size) * 5e-324,
    "integers": lambda random, size: random.integers(-20, 20, size),
    "large_integers": lambda random, size: random.choice([2**53, 2**53 - 1, -(2**53), 0, 7], size),
    "bytes": lambda random, size: random.integers(0, 256, size).astype(np.uint8),
    "signed_zeros": lambda random, size: random.choice([0.0, -0.0, 5e-324, -5e-324], size),
    "adjacent": lambda random, size: 1 + random.integers(0, 5, size) * np.finfo(float).eps,
    "adjacent_float32": lambda random, size: (1 + random.integers(0, 5, size) * 2.0**-23).astype(np.float32),
    "negative": lambda random, size: -1 - np.abs(random.normal(size=size)),
}


class Sample(NamedTuple):
    """Rows to tune on, and three ways to weigh them."""

    labels: Any
    scores: Any
    weights: dict[str, Any]


def make_sample(family: str, size: int, seed: int = 0) -> Sample:
    """Labels that follow the scores loosely; both classes occur, with weight."""
    random = np.random.default_rng([*family.encode(), size, seed])
    scores = FAMILIES[family](random, size)
    rank = np.argsort(np.argsort(scores.astype(float), kind="stable")) / size
    labels = (random.random(size) < 0.1 + 0.6 * rank).astype(int)
    labels[[0, -1]] = 1, 0
    counts, reals = random.integers(0, 4, size).astype(float), random.random(size)
    counts[[0, -1]] = reals[[0, -1]] = 1
    return Sample(labels, scores, {"unweighted": None, "counts": counts, "reals": reals})


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def families() -> list[str]:
    """All families, for a test that must not be divided among processes."""
    return list(FAMILIES)


@pytest.fixture(scope="session")
def sample_of() -> Callable[..., Sample]:
    return make_sample


# The oracle: plain Python, exact fractions, textbook formulas, every threshold tried. Nothing of surecut is used.

LARGEST = sys.float_info.max


def ratio(numerator: Any, denominator: Any) -> Any:
    return None if denominator == 0 else Fraction(numerator) / Fraction(denominator)


def f_beta(square: Fraction) -> Callable[..., Any]:
    return lambda tp, fp, fn, tn: ratio((1 + square) * tp, (1 + square) * tp + square * fn + fp)


def kappa(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    total = tp + fp + fn + tn
    observed = ratio(tp + tn, total)
    by_chance = ratio((tp + fn) * (tp + fp) + (fp + tn) * (fn + tn), total**2)
    return ratio(observed - by_chance, 1 - by_chance)


def gilbert(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    by_chance = ratio((tp + fn) * (tp + fp), tp + fp + fn + tn)
    return ratio(tp - by_chance, tp + fp + fn - by_chance)


def mcc(tp: Any, fp: Any, fn: Any, tn: Any) -> float:
    square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return float(tp * tn - fp * fn) / math.sqrt(square) if square else 0.0


def harmonic(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    sensitivity, specificity = ratio(tp, tp + fn), ratio(tn, tn + fp)
    both = sensitivity + specificity
    return 2 * sensitivity * specificity / both if both else Fraction(0)


FORMULAS: dict[str, Callable[..., Any]] = {
    "accuracy": lambda tp, fp, fn, tn: ratio(tp + tn, tp + fp + fn + tn),
    "f1": f_beta(Fraction(1)),
    "f2": f_beta(Fraction(4)),
    "f0.5": f_beta(Fraction(1, 4)),
    "jaccard": lambda tp, fp, fn, tn: ratio(tp, tp + fp + fn),
    "am": lambda tp, fp, fn, tn: (ratio(tp, tp + fn) + ratio(tn, tn + fp)) / 2,
    "precision": lambda tp, fp, fn, tn: ratio(tp, tp + fp),
    "recall": lambda tp, fp, fn, tn: ratio(tp, tp + fn),
    "specificity": lambda tp, fp, fn, tn: ratio(tn, tn + fp),
    "kappa": kappa,
    "gilbert": gilbert,
    "mcc": mcc,
    "gmean": lambda tp, fp, fn, tn: math.sqrt(ratio(tp, tp + fn) * ratio(tn, tn + fp)),
    "hmean": harmonic,
    "weighted_accuracy": lambda tp, fp, fn, tn: ratio(tn + 3 * tp, fp + tn + 3 * (tp + fn)),
    "tversky": lambda tp, fp, fn, tn: ratio(tp, tp + Fraction(0.3) * fp + Fraction(0.9) * fn),
    "utility": lambda tp, fp, fn, tn: ratio(tp - fp - 5 * fn, tp + fp + fn + tn),
    "linear_fractional": lambda tp, fp, fn, tn: ratio(2 * tp - Fraction(1, 2) * fp, 2 * (tp + fn + fp) + tn),
    "from_cells": lambda tp, fp, fn, tn: ratio(3 * tp + tn, 3 * tp + fp + 2 * fn + tn),
    "predicted_positive_rate": lambda tp, fp, fn, tn: ratio(tp + fp, tp + fp + fn + tn),
    "false_positive_rate": lambda tp, fp, fn, tn: ratio(fp, fp + tn),
    "false_negative_rate": lambda tp, fp, fn, tn: ratio(fn, fn + tp),
    "false_discovery_rate": lambda tp, fp, fn, tn: ratio(fp, tp + fp),
    "false_omission_rate": lambda tp, fp, fn, tn: ratio(fn, fn + tn),
}
"""By the names in `METRICS`, with the same parameters, and the rates that a constraint may name."""


class Attempt(NamedTuple):
    """One threshold, tried: what it predicts, and the cells."""

    predictions: list[bool]
    cells: tuple[Any, Any, Any, Any]


class Oracle:
    """Brute force over all thresholds."""

    metrics = METRICS
    formulas = FORMULAS

    @staticmethod
    def attempts(labels: Any, scores: Any, weights: Any = None) -> list[Attempt]:
        """Predict nothing, then every distinct score, descending. No threshold parts +inf from the largest float."""
        truth = [bool(label) for label in labels]
        values = [min(float(score), LARGEST) for score in scores]
        weighed = [1] * len(truth) if weights is None else [Fraction(float(weight)) for weight in weights]
        present = [value for value, weight in zip(values, weighed, strict=True) if weight]
        attempts = []
        for threshold in [math.inf, *sorted(set(present), reverse=True)]:
            predictions = [value >= threshold for value in values]
            cells = {(actual, predicted): 0 for actual in (True, False) for predicted in (True, False)}
            for actual, predicted, weight in zip(truth, predictions, weighed, strict=True):
                cells[actual, predicted] += weight
            tp, fp, fn, tn = cells[True, True], cells[False, True], cells[True, False], cells[False, False]
            attempts.append(Attempt(predictions, (tp, fp, fn, tn)))
        return attempts

    @staticmethod
    def best(
        attempts: list[Attempt], formula: Callable[..., Any], conditions: list[Callable[..., Any]] | None = None
    ) -> tuple[Any, Attempt] | None:
        """The largest value and the highest threshold that ties with it; None where no threshold is allowed."""
        allowed = [attempt for attempt in attempts if all(meets(*attempt.cells) for meets in conditions or [])]
        valued = [(formula(*attempt.cells), attempt) for attempt in allowed]
        defined = [(value, attempt) for value, attempt in valued if value is not None]
        if not defined:
            return None
        best = max(value for value, _ in defined)
        slack = Fraction(1, 10**12) * abs(Fraction(best))
        return next((value, attempt) for value, attempt in defined if Fraction(value) >= Fraction(best) - slack)

    @staticmethod
    def at_prior(formula: Callable[..., Any], prior: Fraction) -> Callable[..., Any]:
        """The formula where a share `prior` is positive: each class is weighed anew."""

        def weighed(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
            positive, negative = prior / Fraction(tp + fn), (1 - prior) / Fraction(fp + tn)
            return formula(tp * positive, fp * negative, fn * positive, tn * negative)

        return weighed


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture(scope="session")
def some_confusions() -> list[Confusion]:
    """Confusions in counts, with both classes, among them the corners of the box."""
    random = np.random.default_rng(7)
    drawn = [Confusion(*map(int, random.integers(1, 60, 4))) for _ in range(40)]
    corners = [Confusion(7, 0, 0, 13), Confusion(7, 13, 0, 0), Confusion(0, 13, 7, 0), Confusion(1, 0, 6, 13)]
    return drawn + corners
