"""The oracle of the tests and of the fuzzer: every threshold tried, in exact fractions, by textbook formulas.

Nothing of surecut is used to judge; its metrics appear here only beside the formulas that they are held to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from surecut.metrics import CATALOGUE, LinearFractional, Metric, Tversky, Utility, WeightedAccuracy

METRICS: dict[str, Metric] = {name: make() for name, make in CATALOGUE.items()} | {
    "weighted_accuracy": WeightedAccuracy(negative_weight=1, positive_weight=3),
    "tversky": Tversky(alpha=0.3, beta=0.9),
    "utility": Utility(tp=1, fp=-1, fn=-5),
    "linear_fractional": LinearFractional(lambda prior: 2 * prior, -0.5, -2, lambda prior: prior + 1, 1, 0),
    "from_cells": LinearFractional.from_cells(numerator=(3, 0, 0, 1), denominator=(3, 1, 2, 1), name="from_cells"),
}


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


# The oracle: plain Python, exact fractions, textbook formulas, every threshold tried. Nothing of surecut is used.

LARGEST = sys.float_info.max


def ratio(numerator: Any, denominator: Any) -> Any:
    return None if denominator == 0 else Fraction(numerator) / Fraction(denominator)


def as_exact(number: Any) -> Any:
    """A number without rounding; whole numbers stay what they are, which is quicker."""
    return number if isinstance(number, int) else Fraction(float(number))


def largest_of(scores: Any) -> float:
    """The largest finite float of the scores' own dtype, which +inf counts as."""
    dtype = getattr(scores, "dtype", None)
    return float(np.finfo(dtype).max) if dtype is not None and dtype.kind == "f" else LARGEST


def root(square: Any) -> float:
    """The square root of an exact number, however large its parts are."""
    return math.sqrt(float(square))


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
    covariance = tp * tn - fp * fn
    return (1 if covariance > 0 else -1) * root(ratio(covariance**2, square)) if square else 0.0


def mean_of_rates(mean: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A mean of the true positive and the true negative rate, undefined without one of the classes."""

    def formula(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        sensitivity, specificity = ratio(tp, tp + fn), ratio(tn, tn + fp)
        return None if sensitivity is None or specificity is None else mean(sensitivity, specificity)

    return formula


FORMULAS: dict[str, Callable[..., Any]] = {
    "accuracy": lambda tp, fp, fn, tn: ratio(tp + tn, tp + fp + fn + tn),
    "f1": f_beta(Fraction(1)),
    "f2": f_beta(Fraction(4)),
    "f0.5": f_beta(Fraction(1, 4)),
    "jaccard": lambda tp, fp, fn, tn: ratio(tp, tp + fp + fn),
    "am": mean_of_rates(lambda sensitivity, specificity: (sensitivity + specificity) / 2),
    "precision": lambda tp, fp, fn, tn: ratio(tp, tp + fp),
    "recall": lambda tp, fp, fn, tn: ratio(tp, tp + fn),
    "specificity": lambda tp, fp, fn, tn: ratio(tn, tn + fp),
    "npv": lambda tp, fp, fn, tn: ratio(tn, tn + fn),
    "youden": mean_of_rates(lambda sensitivity, specificity: sensitivity + specificity - 1),
    "kappa": kappa,
    "gilbert": gilbert,
    "mcc": mcc,
    "gmean": mean_of_rates(lambda sensitivity, specificity: root(sensitivity * specificity)),
    "hmean": mean_of_rates(lambda one, other: 2 * one * other / (one + other) if one + other else Fraction(0)),
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


NEED_POSITIVES = {
    "f1",
    "f2",
    "f0.5",
    "jaccard",
    "am",
    "precision",
    "recall",
    "youden",
    "kappa",
    "gilbert",
    "mcc",
    "gmean",
    "hmean",
}
NEED_NEGATIVES = {"am", "specificity", "npv", "youden", "kappa", "gilbert", "mcc", "gmean", "hmean"}
"""Metrics that are refused on rows without the class, whatever the formula says."""


class Attempt(NamedTuple):
    """One threshold, tried: the lowest score that it accepts, all scores, and the cells."""

    lowest: float
    scores: list[float]
    cells: tuple[Any, Any, Any, Any]

    @property
    def predictions(self) -> list[bool]:
        return [score >= self.lowest for score in self.scores]


class Oracle:
    """Brute force over all thresholds."""

    metrics = METRICS
    formulas = FORMULAS

    @staticmethod
    def attempts(labels: Any, scores: Any, weights: Any = None, *, absent: float | None = None) -> list[Attempt]:
        """Predict nothing, then every distinct score, descending. No threshold parts +inf from the largest float.

        A score that equals `absent` is never predicted: what is not stored in a sparse matrix is −inf.
        """
        largest = largest_of(scores)
        values = [min(float(score), largest) for score in scores]
        weighed = [1] * len(values) if weights is None else [as_exact(weight) for weight in weights]
        by_score: dict[float, list[Any]] = {}
        for value, label, weight in zip(values, labels, weighed, strict=True):
            if weight:
                by_score.setdefault(value, [0, 0])[bool(label)] += weight
        negatives, positives = (sum(entry[label] for entry in by_score.values()) for label in (0, 1))
        fp = tp = 0
        attempts = [Attempt(math.inf, values, (tp, fp, positives, negatives))]
        for value in sorted(by_score, reverse=True):
            if value != absent:
                fp, tp = fp + by_score[value][0], tp + by_score[value][1]
                attempts.append(Attempt(value, values, (tp, fp, positives - tp, negatives - fp)))
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
