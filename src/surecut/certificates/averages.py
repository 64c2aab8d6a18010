"""Limits of a mean of many labels' values, from rows in which the labels depend on each other in any way.

A label's value is a ratio, Ψ = E A / E B, or a sum of two. Limits of each label, all at once, can be averaged; but such
a mean is as wide as one label is, although chance moves labels up and down and the mean much less. So one bet is placed
on the values of all labels (`joint_bets`), and limits of each are needed for what is of second order only. Where B is
the same for every row, the mean is one over rows, and a bet on it is all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.clusters import STEPS, bounded_mean_limits, permutation
from surecut.certificates.confidence import share_limits
from surecut.certificates.joint_bets import Ratios, Reference, is_narrower, least_sum
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

BOX_SHARE = 0.1
"""The share of the error that is spent on limits of the single labels, where they are joined."""

MOST_CELLS = 4_000_000
"""Steps times ratios at most; more rows are added up in blocks, each of which is one step of the bet."""


def mean_limits(
    terms: list[Term], cells: ClusterCells, reference: Confusion, error: float, limits: LabelLimits | None = None
) -> tuple[float, float]:
    """Lower and upper limit of the mean over labels of the sum of the terms, from independent rows.

    `reference` are the confusions of other rows, at the same cut. `limits` are those of the labels' own ratios, where
    they are not shares of independent rows.
    """
    if cells.labels > 1 and all(np.ptp(denominators) == 0 for _, _, denominators in terms):
        return _mean_over_rows(terms, cells, error)
    totals, ends = cells_of(cells.confusion()), [extremes(*term[1:]) for term in terms]
    spans = np.array([factor * (most - least) for (factor, *_), (least, most) in zip(terms, ends, strict=True)])
    start = sum(factor * least for (factor, *_), (least, _) in zip(terms, ends, strict=True))
    weight = np.repeat(spans, cells.labels) / cells.labels

    @cache
    def own_limits(each: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [(limits or label_limits)(*term[1:], totals, each) for term in terms]
        scaled = [
            [(of - least) / (most - least) for of in pair] for pair, (least, most) in zip(found, ends, strict=True)
        ]
        low, high = (np.concatenate(side) for side in zip(*scaled, strict=True))
        return low, high

    if len(weight) == 1:
        low, high = own_limits(error)
        return float(start + weight @ low), float(start + weight @ high)
    ratios, others = _ratios(terms, ends, cells, cells_of(reference), weight)
    lower = _lower_limit(ratios, others, own_limits, error)

    def complements(each: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low, high = own_limits(each)
        return 1 - high, 1 - low

    upper = _lower_limit(ratios.complement(), others.complement(), complements, error)
    return float(start + lower), float(start + spans.sum() - upper)


def _lower_limit(
    ratios: Ratios,
    reference: Reference,
    own_limits: Callable[[float], tuple[NDArray[np.float64], NDArray[np.float64]]],
    error: float,
) -> float:
    """Of the weighted sum: by one bet, or by the sum of the ratios' own limits; the reference decides which."""
    each = error / len(ratios.weight)
    of_box, of_bet = each * BOX_SHARE / 2, error * (1 - BOX_SHARE)
    away, alone = -special.ndtri(of_box), -special.ndtri(each)
    if is_narrower(ratios, reference, away, of_bet, alone):
        return least_sum(ratios, reference, own_limits(of_box), away, of_bet)
    return float(ratios.weight @ own_limits(each)[0])


def _mean_over_rows(terms: list[Term], cells: ClusterCells, error: float) -> tuple[float, float]:
    """Where a row counts the same below the bar whatever its cell: its own mean over labels is bounded."""
    worth = sum(factor * numerators / denominators for factor, numerators, denominators in terms)
    of_row = cells.worth(np.tile(worth / cells.labels, (cells.labels, 1)))
    return bounded_mean_limits(of_row, (float(np.min(worth)), float(np.max(worth))), error)


def _ratios(
    terms: list[Term],
    ends: list[tuple[float, float]],
    cells: ClusterCells,
    before: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[Ratios, Reference]:
    """Each label's ratios on a scale from 0 to 1, step by step, and the reference."""
    steps = _steps(terms, cells, len(weight))
    size = np.ceil(len(cells) / steps.shape[0])
    counts = [np.asarray((steps @ part).toarray()) for part in (cells.tp, cells.fp, cells.fn)]
    counts.append((steps @ cells.rows)[:, None] - sum(counts))
    above, below, old_above, old_below, reach, height = [], [], [], [], [], []
    for (_, numerators, denominators), (least, most) in zip(terms, ends, strict=True):
        scaled = (numerators - least * denominators) / (most - least)
        above.append(sum(worth * count for worth, count in zip(scaled, counts, strict=True) if worth))
        below.append(sum(worth * count for worth, count in zip(denominators, counts, strict=True) if worth))
        old_above.append(before @ scaled)
        old_below.append(before @ denominators)
        reach.append(np.full(cells.labels, size * (denominators - scaled).max()))
        height.append(np.full(cells.labels, size * scaled.max()))
    then = np.tile(before.sum(axis=1), len(terms)) / size
    reference = Reference(np.concatenate(old_above), np.concatenate(old_below), then)
    sizes = np.concatenate(reach), np.concatenate(height)
    return Ratios(np.hstack(above), np.hstack(below), weight, *sizes), reference


def _steps(terms: list[Term], cells: ClusterCells, number: int) -> Any:
    """Which rows are in which step: in an order that depends on the rows that there are, in blocks if they are many."""
    from scipy import sparse

    sums = [sum(term[side] for term in terms) for side in (1, 2)]
    order = permutation(*(cells.worth(np.tile(worth, (cells.labels, 1))) for worth in sums))
    size = int(np.ceil(len(cells) / min(STEPS, max(MOST_CELLS // number, 1))))
    step = np.arange(len(cells)) // size
    return sparse.csr_array((np.ones(len(cells)), (step, order)), shape=(int(step[-1]) + 1, len(cells)))


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
