"""A lower limit of a weighted sum of many ratios, from one bet on all of them at once.

Ratio j is Ψⱼ = E Aⱼ / E Bⱼ with 0 ≤ Aⱼ ≤ Bⱼ, and every row has an A and a B of each, which depend on each other in any
way. Before row t, numbers vⱼ and a stake λ are chosen from the rows before it. At the true values

    ξ = Σ cⱼ vⱼ (Aⱼ − Ψⱼ Bⱼ)

has the mean 0, whatever vⱼ is, so Π (1 + λξ) is the wealth of a gambler who cannot expect to gain. It comes to 1/error
with probability `error` at most. So the values that leave the gambler with less are a confidence set, of vectors, and
the least Σ cⱼψⱼ in it is the limit.

The stake does not depend on ψ. The logarithm of the wealth is concave in ψ, and falls. Were Σ vⱼBⱼ = 1 over all rows,
for each j, it would depend on Σ cⱼψⱼ only, to first order. So vⱼ spends a budget of 1: what is left of it, over what B
is still expected. What this misses is small, and bounded: by the slope and the curvature of the logarithm, over limits
of each ratio, all at once (`_least_logarithm`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESERVE = 3.0
"""So much more B than is expected: a budget is not spent on the last rows of all, where a single one decides."""

FIRST_STEPS = 10.0
"""What the variance that the reference suggests counts, in steps."""

ALL_IN = 0.92
"""The part of the wealth that is lost at most, in a row that has every ratio at its worst."""

MULTIPLIERS = 40
"""Lagrange multipliers that are tried."""

MOST_PAIRS = 1_000
"""Ratios up to which the curvature of each pair is looked at."""


@dataclass(frozen=True)
class Ratios:
    """A and B of each step and ratio, A between 0 and B.

    Attributes
    ----------
    above, below
        Shape (steps, ratios); the order of the steps has nothing to do with what they hold.
    weight
        What each ratio counts in the sum, c.
    reach
        How far A can be below B, in one step.
    height
        How large A can be, in one step.
    """

    above: NDArray[np.float64]
    below: NDArray[np.float64]
    weight: NDArray[np.float64]
    reach: NDArray[np.float64]
    height: NDArray[np.float64]

    def complement(self) -> Ratios:
        """One minus each ratio."""
        return Ratios(self.below - self.above, self.below, self.weight, self.height, self.reach)


@dataclass(frozen=True)
class Reference:
    """What other rows say: sums of A and B, and their number, in steps."""

    above: NDArray[np.float64]
    below: NDArray[np.float64]
    steps: NDArray[np.float64]

    def complement(self) -> Reference:
        """Of one minus each ratio."""
        return Reference(self.below - self.above, self.below, self.steps)


@dataclass(frozen=True)
class _Bets:
    """Stakes of each step: the gain is λ(gain − loss · ψ), not below −λ · worst · ψ in any row."""

    stake: NDArray[np.float64]
    gain: NDArray[np.float64]
    loss: NDArray[np.float64]
    worst: NDArray[np.float64]


def least_sum(
    ratios: Ratios,
    reference: Reference,
    limits: tuple[NDArray[np.float64], NDArray[np.float64]],
    deviations: float,
    error: float,
) -> float:
    """Lower limit of Σ c Ψ: where the ratios are within `limits`, it fails with probability at most `error`.

    `deviations` is how many standard deviations the limits are away, as a rule: stakes are such that a row can seldom
    lose more than all at values ψ within the limits. Where one can, the stake at ψ is so much smaller that it cannot,
    and no less than at the upper limits: what is missed is at most a part of the gain at the lower ones.
    """
    bets = _bets(ratios, reference, deviations, error)
    weight, (low, high) = ratios.weight, limits
    alone = float(weight @ low)
    most = np.maximum(bets.stake * (bets.gain - bets.loss @ low), 0.0)
    missed = np.log1p(most) - np.log1p(most / np.maximum(bets.stake * (bets.worst @ high), 1.0))
    needed = -np.log(error) + missed.sum()
    left = 1 + bets.stake * (bets.gain - bets.loss @ high)
    if left.min() <= 0:
        return alone
    totals = ratios.above.sum(axis=0), ratios.below.sum(axis=0)
    estimate = np.divide(*totals, out=(low + high) / 2, where=totals[1] > 0)
    estimate = np.clip(estimate, low, high)
    curvature = bets.stake**2 / (left * (1 + bets.stake * (bets.gain - bets.loss @ estimate)))
    pairs = _of_pairs(bets.loss, curvature, weight)
    below, above = alone, float(weight @ estimate)
    for _ in range(20):
        middle = (below + above) / 2
        centre = _moved(estimate, middle, weight, low, high)
        found = _least_logarithm(bets, centre, (low - centre, high - centre), weight, curvature, pairs)
        below, above = (middle, above) if found >= needed else (below, middle)
    return below


def is_narrower(ratios: Ratios, reference: Reference, deviations: float, error: float, alone: float) -> bool:
    """Whether to expect more of `least_sum` than of the ratios' own limits, so many standard deviations away (`alone`).

    It depends on the number of steps and on the reference only.
    """
    steps, largest = len(ratios.above), np.maximum(ratios.reach, ratios.height)
    total = (reference.below + 1.0) / (reference.steps + 1.0) * steps
    value, rows = (reference.above + 0.5) / (reference.below + 1.0), total / largest
    square = value * (1 - value) / rows
    variance = ratios.weight**2 @ (square + 1.5 * np.minimum(deviations**2 * square, 0.25) / rows)
    worst = ratios.weight * ratios.reach / total @ _upper_limit(value, rows, deviations)
    stake = min(np.sqrt(-2 * np.log(error) / variance), ALL_IN / worst)
    return bool(-np.log(error) / stake + stake * variance / 2 < alone * (ratios.weight @ np.sqrt(square)))


def _bets(ratios: Ratios, reference: Reference, deviations: float, error: float) -> _Bets:
    """Each step from those before it, and from the reference."""
    steps, weight = len(ratios.above), ratios.weight
    left = np.ones(len(weight))
    above, below, seen = reference.above + 0.5, reference.below + 1.0, reference.steps + 1.0
    inverse, largest = np.empty_like(ratios.above), np.maximum(ratios.reach, ratios.height)
    stake, squares = np.empty(steps), 0.0
    for step, (of_above, of_below) in enumerate(zip(ratios.above, ratios.below, strict=True)):
        expected = below / seen
        value = above / below
        inverse[step] = left / ((steps - step - 1) * expected + RESERVE * ratios.reach)
        share = weight * inverse[step]
        first = FIRST_STEPS * (share**2 @ (expected * largest * value * (1 - value)))
        variance = (squares + first) / (step + FIRST_STEPS)
        upper = _upper_limit(value, (below + (steps - step) * expected) / largest, deviations)
        stake[step] = min(np.sqrt(-2 * np.log(error) / (steps * variance)), ALL_IN / (share * ratios.reach @ upper))
        squares += float(share @ (of_above - value * of_below)) ** 2
        left = left - inverse[step] * of_below
        above, below, seen = above + of_above, below + of_below, seen + 1
    shares = weight * inverse
    return _Bets(stake, (shares * ratios.above).sum(axis=1), shares * ratios.below, shares * ratios.reach)


def _upper_limit(share: NDArray[np.float64], rows: NDArray[np.float64], deviations: float) -> NDArray[np.float64]:
    """Wilson's limit of a share, which foretells what limits will be; nothing rests on it."""
    more = deviations**2 / rows
    return np.asarray((share + more / 2 + np.sqrt(more * (share * (1 - share) + more / 4))) / (1 + more))


def _moved(
    estimate: NDArray[np.float64],
    total: float,
    weight: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The estimates moved together until they have a sum, or are at their limits."""
    least, most = -1.0, 0.0
    for _ in range(40):
        middle = (least + most) / 2
        if weight @ np.clip(estimate + middle, low, high) < total:
            least = middle
        else:
            most = middle
    return np.asarray(np.clip(estimate + most, low, high))


def _of_pairs(
    loss: NDArray[np.float64], curvature: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Bounds of the curvature along pairs of ratios, for changes that leave the sum as it is."""
    if loss.shape[1] > MOST_PAIRS:
        return None
    centred = loss - loss.sum(axis=1, keepdims=True) * (weight / weight.sum())
    return np.asarray(np.abs((centred * curvature[:, None]).T @ centred))


def _least_logarithm(
    bets: _Bets,
    centre: NDArray[np.float64],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    weight: NDArray[np.float64],
    curvature: NDArray[np.float64],
    pairs: NDArray[np.float64] | None,
) -> float:
    """A lower bound of the logarithm of the wealth, at all values within limits that have the sum of the centre.

    Since −log(1 − q) − q ≤ q² / (2 (1 − q)) for 0 ≤ q < 1, and ≤ q² / 2 for q < 0, the logarithm at centre + δ is at
    least that at the centre + gδ − ½ δHδ, with the slope g, and for H the sum over steps of the products of losses
    times λ² / (1 + gain at the centre) / (1 + gain at the upper limits); it is no smaller with a centre that is larger
    everywhere, here the estimates. Of all δ with cδ = 0, H may be centred. By Gershgorin's theorem for H scaled by the
    limits, δHδ ≤ Σ dδ², a sum of a function of each δⱼ. Adding ηcδ = 0, for any η, the least of each function is at an
    end of the limits, as it is concave; the best of some η is taken. Values with a smaller sum leave more wealth than
    some with the sum of the centre, as the logarithm falls in each.
    """
    lowest, highest = ends
    gain = bets.stake * (bets.gain - bets.loss @ centre)
    slope = -(bets.stake / (1 + gain)) @ bets.loss
    size = np.maximum(np.maximum(-lowest, highest), 1e-12)
    bounds = [bets.loss.T @ (curvature * (bets.loss @ size)) / size]
    if pairs is not None:
        bounds.append(pairs @ size / size)
    bound = min(bounds, key=lambda one: float(one @ size**2))
    multipliers = np.quantile(-slope / weight, np.linspace(0, 1, MULTIPLIERS))[:, None]
    linear = slope + multipliers * weight
    each = np.minimum(*(linear * end - bound * end**2 / 2 for end in (lowest, highest)))
    return float(np.log1p(gain).sum() + each.sum(axis=1).max())
