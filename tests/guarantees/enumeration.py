"""The exact probability that a limit fails: every outcome of a few rows, at the worst shares that a search finds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy import special

Limits = Callable[[np.ndarray], tuple[float, float]]
"""Counts of the cells → lower and upper limit; NaN where no limit is given."""

Value = Callable[[np.ndarray], np.ndarray]
"""Shares of the cells, in the last axis → the true value."""


def outcomes(rows: int, kinds: int) -> np.ndarray:
    """All counts of so many kinds that add up to the number of rows."""
    first = np.array(list(product(range(rows + 1), repeat=kinds - 1)))
    first = first[first.sum(axis=1) <= rows]
    return np.column_stack((first, rows - first.sum(axis=1))).astype(float)


class Enumerated:
    """Limits of every outcome, and the probability with which they fail at given shares."""

    def __init__(self, limits: Limits, value: Value, counts: np.ndarray) -> None:
        self.value, self.counts = value, counts
        self.lower, self.upper = np.array([limits(one) for one in counts], dtype=float).T
        total = counts.sum(axis=1)
        self.log_ways = special.gammaln(total + 1) - special.gammaln(counts + 1).sum(axis=1)

    def failures(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability that the lower, and that the upper limit fails, at each row of shares."""
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(shares), -1e4)
        mass = np.exp(self.log_ways + logs @ self.counts.T)
        truth = self.value(shares)[:, None]
        margin = 1e-9 * np.maximum(1, np.abs(truth))
        below = (mass * (self.lower > truth + margin)).sum(axis=1)
        above = (mass * (self.upper < truth - margin)).sum(axis=1)
        return np.nan_to_num(below), np.nan_to_num(above)

    def worst(self, side: int, seed: int = 0, starts: int = 3000, rounds: int = 40) -> tuple[float, np.ndarray]:
        """The largest probability of a failure (0: of the lower limit, 1: of the upper), and the shares at which it is.

        Random shares, also at the edges of the simplex; then random steps of every size from the best ones.
        """
        rng = np.random.default_rng(seed)
        kinds = self.counts.shape[1]
        drawn = [rng.dirichlet(np.full(kinds, size), starts // 4) for size in (0.15, 0.5, 1.0, 4.0)]
        edge = rng.dirichlet(np.full(kinds, 0.7), starts)
        edge[np.arange(starts), rng.integers(kinds, size=starts)] = 0.0
        shares = np.concatenate((*drawn, edge / edge.sum(axis=1, keepdims=True)))
        found = self.failures(shares)[side]
        for _ in range(rounds):
            best = np.argsort(-found)[:60]
            scale = 10.0 ** rng.uniform(-5, 0, size=(len(best), 10, 1))
            steps = rng.normal(size=(len(best), 10, kinds)) * scale
            moved = (shares[best][:, None, :] * np.exp(steps)).reshape(-1, kinds)
            moved /= moved.sum(axis=1, keepdims=True)
            shares = np.concatenate((shares[best], moved))
            found = np.concatenate((found[best], self.failures(moved)[side]))
        return float(found.max()), shares[int(np.argmax(found))]
