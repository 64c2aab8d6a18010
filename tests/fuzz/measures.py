"""What cuts are tuned for, and what they must meet: metrics of surecut beside the formulas that they are held to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oracle import FORMULAS, NEED_NEGATIVES, NEED_POSITIVES, f_beta, ratio
from surecut.confusion import Confusion
from surecut.constraints import RATES, Constraint
from surecut.metrics import (
    CATALOGUE,
    Affine,
    FBeta,
    FunctionMetric,
    LinearFractional,
    Metric,
    NotMonotoneError,
    Tversky,
    Utility,
    WeightedAccuracy,
)

Formula = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Measure:
    """A metric and its formula; None is undefined, +inf is a value.

    `exact` says that float arithmetic on counts has no rounding before the last division: ties are then exact.
    """

    name: str
    metric: Metric
    formula: Formula
    code: str
    exact: bool = True
    needs_positives: bool = False
    needs_negatives: bool = False
    bounded: bool = True
    on_hull: bool = False
    finite: bool = True
    scale: int = 0
    """Rounding is of this size at least, where the values at the corners do not show it."""

    def is_refused(self, positives: Any, negatives: Any) -> bool:
        """Whether rows of these classes are refused by name."""
        return bool((self.needs_positives and not positives) or (self.needs_negatives and not negatives))

    def is_monotone_at(self, prior: float) -> bool:
        try:
            self.metric.check_monotone(prior)
        except NotMonotoneError:
            return False
        return True


def linear(numerator: tuple[Any, ...], denominator: tuple[Any, ...]) -> Formula:
    def formula(*cells: Any) -> Any:
        top = sum(weight * cell for weight, cell in zip(numerator, cells, strict=True))
        return ratio(top, sum(weight * cell for weight, cell in zip(denominator, cells, strict=True)))

    return formula


def named(name: str) -> Measure:
    return Measure(
        name,
        CATALOGUE[name](),
        FORMULAS[name],
        repr(name),
        needs_positives=name in NEED_POSITIVES,
        needs_negatives=name in NEED_NEGATIVES,
        on_hull=name not in ("gmean", "hmean"),
    )


CELLS = {
    "npv": ((0, 0, 0, 1), (0, 0, 1, 1)),
    "tp/fp": ((1, 0, 0, 0), (0, 1, 0, 0)),
    "tn/fp": ((0, 0, 0, 1), (0, 1, 0, 0)),
    "tn/fn": ((0, 0, 0, 1), (0, 0, 1, 0)),
    "tp/fn": ((1, 0, 0, 0), (0, 0, 1, 0)),
    "tp/errors": ((1, 0, 0, 0), (0, 1, 1, 0)),
    "minus_omission": ((0, 0, -1, 0), (0, 0, 1, 1)),
    "minus_discovery": ((0, -1, 0, 0), (1, 1, 0, 0)),
    "net_precision": ((1, -1, 0, 0), (1, 1, 0, 0)),
    "net_npv": ((0, 0, -1, 1), (0, 0, 1, 1)),
    "own_precision": ((1, 0, 0, 0), (1, 1, 0, 0)),
    "weighted_ratio": ((3, 0, 0, 1), (3, 1, 2, 1)),
}
"""Ratios of one's own: 0/0 and x/0 where nothing, everything, the best or the worst is predicted."""


def from_cells(name: str, numerator: Any, denominator: Any) -> Measure:
    numerator, denominator = tuple(map(int, numerator)), tuple(map(int, denominator))
    code = f"LinearFractional.from_cells(numerator={numerator}, denominator={denominator}, name={name!r})"
    metric = LinearFractional.from_cells(numerator=numerator, denominator=denominator, name=name)
    return Measure(name, metric, linear(numerator, denominator), code, on_hull=True)


def random_cells(random: np.random.Generator) -> Measure:
    """Small whole weights; which of them make a metric that does not grow with errors depends on the rows."""
    while True:
        numerator = random.choice([-2, -1, 0, 0, 0, 1, 1, 2, 3], 4)
        denominator = random.choice([0, 0, 0, 1, 1, 2, 3], 4)
        if denominator.any() and numerator.any():
            measure = from_cells("random_cells", numerator, denominator)
            if any(measure.is_monotone_at(prior) for prior in (0.2, 0.5, 0.8)):
                return measure


def by_coefficients(random: np.random.Generator) -> Measure:
    """A metric of one's own by its coefficients in rates, with a denominator that nowhere vanishes."""
    kind = int(random.integers(3))
    if kind == 0:
        metric = LinearFractional(lambda prior: 2 * prior, -0.5, -2, lambda prior: prior + 1, 1, 0)
        code = "LinearFractional(lambda prior: 2 * prior, -0.5, -2, lambda prior: prior + 1, 1, 0)"
        formula = FORMULAS["linear_fractional"]
    elif kind == 1:
        metric, code = LinearFractional(1, -1, -3, 2, 0.5, 0), "LinearFractional(1, -1, -3, 2, 0.5, 0)"
        formula = linear((1, 0, -2, 1), (2, Fraction(5, 2), 2, 2))
    else:
        metric = LinearFractional(Affine(0.0, 1.0), 0, -1, Affine(1.0, 0.0), 1, 0)
        code = "LinearFractional(Affine(0.0, 1.0), 0, -1, Affine(1.0, 0.0), 1, 0)"
        formula = linear((1, 0, 0, 0), (1, 2, 1, 1))
    return Measure("coefficients", metric, formula, code, exact=False, on_hull=True)


def by_vanishing_coefficients(random: np.random.Generator) -> Measure:
    """The same where the denominator vanishes at a corner: the coefficients of a ratio of cells."""
    name = str(random.choice(["npv", "tp/fp", "tn/fp", "own_precision", "minus_omission"]))
    coefficients: list[Any] = []
    for tp, fp, fn, tn in CELLS[name]:
        coefficients += [Affine(tn, tp - tn), fp - tn, fn - tp]
    listed = ", ".join(map(repr, coefficients))
    return Measure(
        "coefficients_vanishing",
        LinearFractional(*coefficients, name=name),
        linear(*CELLS[name]),
        f"LinearFractional({listed}, name={name!r})",
        exact=False,
        on_hull=True,
        scale=100,
    )


def decimal(number: Any) -> Fraction:
    """What is meant by a number that a person wrote: .1 is a tenth."""
    return Fraction(repr(float(number)))


def utility(random: np.random.Generator) -> Measure:
    worth: dict[str, float]
    if random.random() < 0.3:
        worth = {"tp": 0.1, "fp": -0.3}
    else:
        gains = [-5.0, -1.0, -0.3, -0.1, 0.0, 0.1, 0.2, 0.7, 1.0]
        fp, tn = sorted(random.choice(gains, 2).tolist())
        fn, tp = sorted(random.choice(gains, 2).tolist())
        worth = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    cells = tuple(decimal(worth.get(cell, 0)) for cell in ("tp", "fp", "fn", "tn"))
    code = f"Utility({', '.join(f'{cell}={value}' for cell, value in worth.items())})"
    return Measure("utility", Utility(**worth), linear(cells, (1, 1, 1, 1)), code, exact=False, on_hull=True)


def tversky(random: np.random.Generator) -> Measure:
    alpha, beta = random.choice([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 3.0], 2).tolist()
    if alpha == beta == 0:
        alpha = 0.3
    return Measure(
        "tversky",
        Tversky(alpha, beta),
        linear((1, 0, 0, 0), (1, decimal(alpha), decimal(beta), 0)),
        f"Tversky({alpha}, {beta})",
        exact=False,
        needs_positives=True,
        on_hull=True,
    )


def weighted_accuracy(random: np.random.Generator) -> Measure:
    negative, positive = random.choice([0.0, 0.1, 0.3, 1.0, 3.0, 7.0], 2).tolist()
    if negative == positive == 0:
        positive = 1.0
    w1, w2 = decimal(negative), decimal(positive)
    return Measure(
        "weighted_accuracy",
        WeightedAccuracy(negative, positive),
        linear((w2, 0, 0, w1), (w2, w1, w2, w1)),
        f"WeightedAccuracy({negative}, {positive})",
        exact=False,
        on_hull=True,
    )


def f_with_beta(random: np.random.Generator) -> Measure:
    beta = float(random.choice([0.1, 0.3, 0.5, 1.5, 3.0, 7.0]))
    formula = f_beta(decimal(beta) ** 2)
    return Measure("fbeta", FBeta(beta), formula, f"FBeta({beta})", exact=False, needs_positives=True, on_hull=True)


# Functions of a confusion


def divided(numerator: Any, denominator: Any) -> Any:
    """As floats divide: x/0 is +inf, 0/0 is undefined. No numerator here is negative."""
    if numerator is None or denominator is None or numerator == math.inf == denominator:
        return None
    if denominator == 0:
        return math.inf if numerator else None
    if numerator == math.inf:
        return math.inf
    return Fraction(0) if denominator == math.inf else ratio(numerator, denominator)


def odds_ratio(confusion: Confusion) -> Any:
    return np.divide(np.divide(confusion.tp, confusion.fn), np.divide(confusion.fp, confusion.tn))


def likelihood_ratio(confusion: Confusion) -> Any:
    return np.divide(np.divide(confusion.tp, confusion.positives), np.divide(confusion.fp, confusion.negatives))


def distance_of_rates(confusion: Confusion) -> Any:
    return abs(np.divide(confusion.tp, confusion.positives) - np.divide(confusion.fp, confusion.negatives))


def precision_of_some(confusion: Confusion) -> float:
    """Written for single numbers, undefined where no positive is found."""
    return math.nan if confusion.tp == 0 else confusion.tp / (confusion.tp + confusion.fp)


def distance_formula(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    one, other = ratio(tp, tp + fn), ratio(fp, fp + tn)
    return None if one is None or other is None else abs(one - other)


FUNCTIONS: dict[str, tuple[Any, Formula, bool]] = {
    "odds_ratio": (odds_ratio, lambda tp, fp, fn, tn: divided(divided(tp, fn), divided(fp, tn)), False),
    "likelihood_ratio": (
        likelihood_ratio,
        lambda tp, fp, fn, tn: divided(ratio(tp, tp + fn), ratio(fp, fp + tn)),
        False,
    ),
    "distance_of_rates": (distance_of_rates, distance_formula, True),
    "precision_of_some": (precision_of_some, lambda tp, fp, fn, tn: ratio(tp, tp + fp) if tp else None, True),
}


def function_named(name: str) -> Measure:
    function, formula, finite = FUNCTIONS[name]
    # A function must not be judged by ties that its own rounding breaks, so that it counts as inexact.
    return Measure(name, FunctionMetric(function, name), formula, name, exact=False, bounded=False, finite=finite)


DRAWN: dict[str, tuple[float, Callable[[np.random.Generator], Measure]]] = {
    **{name: (1.0, lambda random, name=name: named(name)) for name in CATALOGUE},
    **{name: (1.0, lambda random, name=name: from_cells(name, *CELLS[name])) for name in CELLS},
    "random_cells": (4.0, random_cells),
    "coefficients": (1.0, by_coefficients),
    "coefficients_vanishing": (1.0, by_vanishing_coefficients),
    "utility": (2.0, utility),
    "tversky": (1.5, tversky),
    "weighted_accuracy": (1.0, weighted_accuracy),
    "fbeta": (1.0, f_with_beta),
    **{name: (1.0, lambda random, name=name: function_named(name)) for name in FUNCTIONS},
}
"""How often each kind of metric is drawn, and how."""


def draw_measure(random: np.random.Generator, name: str | None = None) -> Measure:
    """A metric of that name, or of any."""
    if name is not None:
        return DRAWN[name][1](random)
    shares = np.array([share for share, _ in DRAWN.values()])
    name = list(DRAWN)[int(random.choice(len(DRAWN), p=shares / shares.sum()))]
    return DRAWN[name][1](random)


# Constraints


@dataclass(frozen=True)
class Condition:
    """A constraint and the formula of its quantity."""

    constraint: Constraint
    formula: Formula
    code: str


QUANTITIES = [
    *("precision", "recall", "specificity", "accuracy", "f1", "am", "mcc", "hmean"),
    *RATES,
    *("npv", "tp/fp", "net_precision"),
]
USUAL: dict[str, tuple[str, list[float]]] = {
    "predicted_positive_rate": ("<=", [0.05, 0.1, 0.3]),
    "false_positive_rate": ("<=", [0.05, 0.2]),
    "precision": (">=", [0.5, 0.8, 0.9]),
    "recall": (">=", [0.5, 0.9]),
    "npv": (">=", [0.5, 0.9]),
}
"""What people ask for."""

KINDS: dict[str, tuple[str | None, ...]] = {
    "none": (),
    "one": (None,),
    "at least": (">=",),
    "at most": ("<=",),
    "several": (None, None),
    "several at least": (">=", ">="),
    "several at most": ("<=", "<="),
    "both senses": (">=", "<=", None),
}
"""Constraints by how many they are and in which senses; None is any sense."""

LEVELS = [-1.0, 0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 1.0, 2.0]


def draw_condition(
    random: np.random.Generator, attainable: Callable[[Formula], list[Any]], wanted: str | None = None
) -> Condition:
    """A quantity, a sense, and a level: a usual one, or one that some cut attains, or nearly."""
    often = [name for name, (sense, _) in USUAL.items() if wanted in (sense, None)]
    usual = random.random() < 0.3
    name = str(random.choice(often if usual else QUANTITIES))
    if name in CELLS:
        measure = from_cells(name, *CELLS[name])
        quantity, formula, code = measure.metric, measure.formula, measure.code
    elif name in RATES:
        quantity, formula, code = RATES[name], FORMULAS[name], f"RATES[{name!r}]"
    else:
        quantity, formula, code = CATALOGUE[name](), FORMULAS[name], f"get_metric({name!r})"
    sense = USUAL[name][0] if usual else wanted or str(random.choice([">=", "<="]))
    levels = [value for value in attainable(formula) if value is not None]
    if usual:
        level = float(random.choice(USUAL[name][1]))
    elif levels and random.random() < 0.6:
        level = float(levels[int(random.integers(len(levels)))])
        level *= float(random.choice([1.0, 1.0, 1.0, 1 - 1e-6, 1 + 1e-6]))
    else:
        level = float(random.choice(LEVELS))
    level = float(np.clip(level, *quantity.value_range))  # others are refused
    return Condition(Constraint(quantity, sense, level), formula, f"Constraint({code}, {sense!r}, {level!r})")
