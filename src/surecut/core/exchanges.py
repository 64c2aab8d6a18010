"""Randomised rules with k labels a row that no exchange of two labels improves, for sums of linear-fractional metrics.

A rule is a probability for each point and label; those of a point sum to k. An exchange moves probability from one
label to another at one point. What the sum of two ratios gains by it has at most one stationary point, which is known
in closed form: so each exchange is the best one, and no step size is needed. A rule that no exchange improves fulfils
the necessary conditions of a maximum, and takes the k largest a·η + b, a and b the slopes of the metrics at its
confusion.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ROUNDS = 400
"""After so many rounds over all points and pairs of labels the search ends."""

GAINED = 1e-12
"""A round that gains no more ends the search as well."""


class Ratios(NamedTuple):
    """(n₀ + n₁ t + n₂ q) / (d₀ + d₁ t + d₂ q) of each label, t its true positives and q its predicted rows, as rates.

    Each coefficient is an array of shape (domains, labels); weights of the labels are part of the numerators.
    """

    numerator: tuple[Array, Array, Array]
    denominator: tuple[Array, Array, Array]

    def parts(self, tp: Array, predicted: Array) -> tuple[Array, Array]:
        """Numerators and denominators of rules, of shape (domains, rules, labels)."""
        top, bottom = (
            constant[:, None] + of_tp[:, None] * tp + of_predicted[:, None] * predicted
            for constant, of_tp, of_predicted in (self.numerator, self.denominator)
        )
        return top, bottom

    def value(self, tp: Array, predicted: Array) -> Array:
        """The sum over the labels; −inf where a denominator is not positive."""
        return np.asarray(ratio(*self.parts(tp, predicted)).sum(axis=-1))


def ratio(top: Array, bottom: Array) -> Array:
    """top / bottom, −inf where the denominator is not positive."""
    return np.asarray(np.divide(top, bottom, out=np.full(np.shape(bottom), -np.inf), where=bottom > 0))


def improved(ratios: Ratios, mass: Array, eta: Array, rules: Array) -> Array:
    """The rules that exchanges lead to.

    Parameters
    ----------
    ratios
        What is to be maximised.
    mass, eta
        Pr(x) of shape (domains, points), and η of shape (domains, points, labels).
    rules
        Where to start, of shape (domains, rules, points, labels).
    """
    h = np.array(rules, dtype=float)
    predicted = np.einsum("drxj,dx->drj", h, mass)
    top, bottom = ratios.parts(np.einsum("drxj,dxj->drj", h, mass[..., None] * eta), predicted)
    # What a row more that is predicted with certainty adds to each numerator and denominator
    adds_top, adds_bottom = (
        mass[..., None] * (of_tp[:, None] * eta + of_predicted[:, None])
        for _, of_tp, of_predicted in (ratios.numerator, ratios.denominator)
    )
    for _ in range(ROUNDS):
        before = ratio(top, bottom).sum(axis=-1)
        for point in range(h.shape[2]):
            for taken, given in combinations(range(h.shape[3]), 2):
                pair = [given, taken]
                signed = np.array([1.0, -1.0])
                rates = adds_top[:, None, point, pair] * signed, adds_bottom[:, None, point, pair] * signed
                here = h[:, :, point, pair]
                moved = _best_exchange(top[:, :, pair], bottom[:, :, pair], *rates, here)[..., None]
                h[:, :, point, pair] = np.clip(here + moved * signed, 0.0, 1.0)
                top[:, :, pair] += moved * rates[0]
                bottom[:, :, pair] += moved * rates[1]
        if (ratio(top, bottom).sum(axis=-1) - before <= GAINED).all():
            break
    return h


def _best_exchange(top: Array, bottom: Array, top_rate: Array, bottom_rate: Array, share: Array) -> Array:
    """How much probability to move to the first of two labels from the second.

    On the last axis are the two labels. The derivative of the sum of their ratios is Σ c / bottom², with constants c:
    it is 0 where the denominators have the proportion √(−c₁/c₂).
    """
    lowest = np.maximum(-share[..., 0], share[..., 1] - 1)
    highest = np.minimum(share[..., 1], 1 - share[..., 0])
    constants = top_rate * bottom - top * bottom_rate
    with np.errstate(invalid="ignore", divide="ignore"):
        proportion = np.sqrt(-constants[..., 0] / constants[..., 1])
        level = (proportion * bottom[..., 1] - bottom[..., 0]) / (
            bottom_rate[..., 0] - proportion * bottom_rate[..., 1]
        )
    level = np.clip(np.where(np.isfinite(level), level, 0.0), lowest, highest)
    moves = np.stack([np.zeros_like(level), lowest, highest, level], axis=-1)
    at = moves[..., None]
    values: Any = ratio(
        top[..., None, :] + at * top_rate[..., None, :], bottom[..., None, :] + at * bottom_rate[..., None, :]
    ).sum(axis=-1)
    best = values.argmax(axis=-1)
    return np.take_along_axis(moves, best[..., None], axis=-1)[..., 0]
