"""Limits of a mean of many labels' values, from rows in which the labels depend on each other in any way.

A label's value is a ratio, Ψ = E A / E B, or a sum of two. Limits of each label, all at once, can be averaged; but such
a mean is as wide as one label is, although chance moves labels up and down and the mean much less. So the mean is
looked at itself. With a reference ψ for the value and v for 1 / E B, both from the validation rows, that is
fixed beforehand,

    Ψ − ψ = v E(A − ψB) + (Ψ − ψ)(1 − v E B).

The first part, averaged over labels, is the mean of a bounded quantity of a *row*, whatever holds between its labels:
one bet (`clusters.least_ratio`). The second is a product of two small numbers, and limits of each label's Ψ and E B,
all at once, bound it. A label with few rows to count on has v = 0 and counts with its own limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.clusters import least_ratio
from surecut.certificates.confidence import share_limits
from surecut.certificates.limits import counted_kinds, value_of_share
from surecut.certificates.nuisance import extremes, has_one_order, three_part_limit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion

Term = tuple[float, "NDArray[np.float64]", "NDArray[np.float64]"]
"""A factor, and what a row of each cell (tp, fp, fn, tn) is worth above and below the bar."""

LabelLimits = Callable[
    ["NDArray[np.float64]", "NDArray[np.float64]", "NDArray[np.float64]", float],
    tuple["NDArray[np.float64]", "NDArray[np.float64]"],
]
"""(worth above, worth below, counts of each label, error) → lower and upper limits of the labels' ratios."""

KNOWN = 0.5
"""A label is joined if its E B is known to this part of itself, all labels at once."""

BOX_SHARE = 0.4
"""The share of the error that is spent on limits of the single labels."""


def mean_limits(
    terms: list[Term], cells: ClusterCells, reference: Confusion, error: float, limits: LabelLimits | None = None
) -> tuple[float, float]:
    """Lower and upper limit of the mean over labels of the sum of the terms, from independent rows.

    `reference` are the confusions of other rows, at the same cut. `limits` are those of the labels' own ratios, where
    they are not shares of independent rows.
    """
    limits = limits or label_limits
    rows, labels = len(cells), cells.labels
    totals, before = cells_of(cells.confusion()), cells_of(reference)
    plans = [_plan(numerators, denominators, before, rows, error) for _, numerators, denominators in terms]
    joined = any(plan.inverse.any() for plan in plans)
    of_box = error * (BOX_SHARE if joined else 1.0)
    events = sum(int(np.where(plan.inverse > 0, 4, 1).sum()) for plan in plans)
    weights = np.zeros((labels, 4))
    alone, second = np.zeros(2), np.zeros(2)
    centre = 0.0
    span = 0.0
    for (factor, numerators, denominators), plan in zip(terms, plans, strict=True):
        low, high = limits(numerators, denominators, totals, of_box / events)
        low_b, high_b = mean_of_bounded(totals @ denominators / rows, denominators.max(), rows, of_box / events)
        if np.ptp(denominators) == 0:
            low_b = high_b = np.full(labels, denominators[0])
        share = factor / labels
        alone += share * np.array([low.sum(), high.sum()])
        centre += share * plan.value.sum()
        span += factor * float(np.ptp(extremes(numerators, denominators)))
        off = [1 - plan.inverse * bound for bound in (low_b, high_b)]
        products = [(end - plan.value) * one for end in (low, high) for one in off]
        second += share * np.array([np.minimum.reduce(products).sum(), np.maximum.reduce(products).sum()])
        weights += share * plan.inverse[:, None] * (numerators - plan.value[:, None] * denominators)
    if not joined:
        return float(alone[0]), float(alone[1])
    sides = []
    for sign in (1.0, -1.0):
        of_row = sign * cells.worth(weights)
        least, most = float((sign * weights).min(axis=1).sum()), float((sign * weights).max(axis=1).sum())
        limit = least_ratio(of_row, np.ones(rows), most - least, (least, most), error - of_box)
        sides.append(sign * limit)
    lower = max(alone[0], centre + sides[0] + second[0])
    upper = min(alone[1], centre + sides[1] + second[1])
    return float(lower), float(upper)


@dataclass(frozen=True)
class _Reference:
    """What is fixed beforehand for each label: a value ψ near the ratio, and v near one over E B, or 0."""

    value: NDArray[np.float64]
    inverse: NDArray[np.float64]


def _plan(
    numerators: NDArray[np.float64],
    denominators: NDArray[np.float64],
    before: NDArray[np.float64],
    rows: int,
    error: float,
) -> _Reference:
    """From the validation rows: a label is joined if the product of what is not known is small beside its limits."""
    then = before.sum(axis=1)
    above, below, counted = before @ numerators, before @ denominators, before @ (denominators > 0)
    least, most = extremes(numerators, denominators)
    value = np.divide(above, below, out=np.full(len(below), (least + most) / 2), where=below > 0)
    quantile = -special.ndtri(error * BOX_SHARE / 4 / len(before))
    with np.errstate(divide="ignore"):
        unsure = np.sqrt(1 / counted + then / (rows * counted))  # of both samples, relatively
    constant = np.ptp(denominators) == 0
    joined = (below > 0) & (constant | (quantile * unsure < KNOWN))
    joined &= joined.mean() > 0.5  # the others would pay for it
    return _Reference(value, np.divide(then, below, out=np.zeros(len(below)), where=joined))


def label_limits(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], totals: NDArray[np.float64], error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper limit of each label's ratio, each of which fails with probability at most `error`."""
    (above, below), counts = counted_kinds((numerators, denominators), totals)
    if len(above) == 2:
        better, value = value_of_share(above, below)
        low, high = share_limits(counts[:, better], counts.sum(axis=1), error)
        return np.asarray(value(low)), np.asarray(value(high))
    least, most = extremes(numerators, denominators)
    found = np.empty((len(counts), 2))
    known: dict[tuple[float, ...], tuple[float, float]] = {}
    for i, of_label in enumerate(counts):
        key = tuple(of_label)
        if key not in known:
            known[key] = _limits_of_kinds(above, below, of_label, error) if of_label.any() else (least, most)
        found[i] = known[key]
    return found[:, 0], found[:, 1]


def _limits_of_kinds(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], counts: NDArray[np.float64], error: float
) -> tuple[float, float]:
    if len(counts) == 3 and has_one_order(numerators, denominators):
        lower = three_part_limit(numerators, denominators, counts, error)
        return lower, -three_part_limit(-numerators, denominators, counts, error)
    # four kinds, or three that change their order: the bounded mean of A − ψB, by Hoeffding's inequality for the
    # largest relative entropy
    rows = counts.sum()
    least, most = extremes(numerators, denominators)

    def lower_of(above: NDArray[np.float64], start: float, end: float) -> float:
        low, high = start, end
        for _ in range(40):
            middle = (low + high) / 2
            worth = above - middle * denominators
            spread = float(np.ptp(worth))
            mean = float(worth @ counts / rows)
            limit = mean_of_bounded(np.array([(mean - worth.min()) / spread]), 1.0, int(rows), error)[0]
            low, high = (middle, high) if limit[0] * spread + worth.min() > 0 else (low, middle)
        return low

    return lower_of(numerators, least, most), -lower_of(-numerators, -most, -least)


def mean_of_bounded(
    means: NDArray[np.float64], largest: float, rows: int, error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper limit of means of variables between 0 and `largest`: Hoeffding's Theorem 1.

    Where the variables have two values only, that is Chernoff's bound of the binomial, wider than Clopper–Pearson's.
    """
    seen = np.clip(means / largest, 0.0, 1.0)
    most = -np.log(error) / rows

    def entropy(share: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(special.rel_entr(seen, share) + special.rel_entr(1 - seen, 1 - share))

    low, high = np.zeros_like(seen), seen.copy()
    lowest, highest = seen.copy(), np.ones_like(seen)
    for _ in range(50):
        middle, upper = (low + high) / 2, (lowest + highest) / 2
        outside, beyond = entropy(middle) > most, entropy(upper) > most
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
        lowest, highest = np.where(beyond, lowest, upper), np.where(beyond, upper, highest)
    return largest * low, largest * highest
