"""Confidence limits that hold for every sample size: of a share, of all shares of nested sets at once, of a metric.

Each limit is one-sided: it fails with probability at most `error`.

- `share_limits`: Clopper–Pearson, for one share.
- `least_shares`: for the shares of all sets {score >= t} at once. The envelope of some straight lines, each of which an
  empirical distribution function crosses with a probability that is known exactly.
- `two_share_limit`, `three_part_limit`: for a metric that two or three unknown shares determine, by the exact
  probability of an estimate as large as the one seen, made as large as the unknown shares allow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMITS_OF_NUISANCE = 0.02
"""The share of the error that is spent on limits for what must be known beside the quantity itself."""

BLOCKS = 64
NUISANCE_POINTS = 13


def share_limits(count: Any, total: Any, error: float) -> tuple[Any, Any]:
    """Lower and upper Clopper–Pearson limit of a share, each of which fails with probability at most `error`.

    >>> lower, upper = share_limits(8, 10, error=0.05)
    >>> round(float(lower), 3), round(float(upper), 3)
    (0.493, 0.963)
    """
    count, rest = np.asarray(count, dtype=float), np.asarray(total, dtype=float) - np.asarray(count, dtype=float)
    with np.errstate(invalid="ignore"):
        lower = np.where(count > 0, special.betaincinv(np.maximum(count, 1e-300), rest + 1, error), 0.0)
        upper = np.where(rest > 0, special.betaincinv(count + 1, np.maximum(rest, 1e-300), 1 - error), 1.0)
    return lower[()], upper[()]


def least_shares(observed: NDArray[np.float64], rows: int, error: float) -> NDArray[np.float64]:
    """Lower limits of the true shares of nested sets, all at once, from the shares observed in `rows` rows.

    Sharpest, relatively to their standard error, at every order of magnitude of the share and of its complement.
    """
    if rows == 0:
        return np.zeros_like(observed)
    intercept, slope = _lines(rows, error)
    limits = (observed[..., None] - intercept) / slope
    return np.asarray(np.clip(limits.max(axis=-1), 0.0, 1.0))


def crossing_probability(rows: int, intercept: float, slope: float) -> float:
    """The probability that the empirical distribution function of uniform rows rises above a line somewhere.

    The last crossing is at the point where the line has the height j/n, with j rows below; from there on the n − j
    others must stay below the line, which the ballot theorem answers (Daniels 1945, Dempster 1959).

    >>> round(crossing_probability(10, 0.0, 4.0), 6)  # a line through the origin: one over its slope
    0.25
    """
    if intercept >= 1:
        return 0.0
    j = _nodes(int(np.floor(rows * intercept)) + 1, rows)
    where = np.clip((j / rows - intercept) / slope, 1e-300, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mass = (
            special.gammaln(rows + 1)
            - special.gammaln(j + 1)
            - special.gammaln(rows - j + 1)
            + j * np.log(where)
            + special.xlog1py(rows - j, -where)
        )
    end = intercept + slope
    mass = np.exp(log_mass) * rows * (end - 1) / (rows * end - j)
    between = np.diff(j) * (mass[1:] + mass[:-1]) / 2
    return float(between.sum() + (mass[0] + mass[-1]) / 2)


def _nodes(first: int, last: int, most: int = 800) -> NDArray[np.float64]:
    """Integers from `first` to `last`: all of them, or so many that a smooth sum over all is one of trapezoids.

    Those that are kept stand close to each other at both ends, where the sum is not smooth.
    """
    steps = last - first
    if steps <= 2 * most:
        return np.arange(first, last + 1, dtype=float)
    away = np.round((steps / 2) ** np.linspace(0.0, 1.0, most))
    away = away[np.append(True, np.diff(away) > 0)]
    return np.concatenate(([first], first + away[:-1], last - away[::-1], [last])).astype(float)


@lru_cache(maxsize=4096)
def _lines(rows: int, error: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intercepts and slopes of lines, at most one of which is crossed with probability `error`.

    They come closest to the diagonal at ½, ⅛, 1/32, …, down to one row, and as near to 1. Those in the middle have the
    larger part of the error; a line costs little, since its distance grows with the square root of a logarithm only.
    """
    depth = max(1, int(np.ceil(np.log(max(rows, 4) / 2) / np.log(4))))
    weight = np.concatenate(([1.0], np.repeat(1 / np.sqrt(1.0 + np.arange(1, depth + 1)), 2)))
    halves = 0.5 * 4.0 ** -np.arange(1, depth + 1)
    tangents = np.concatenate(([0.5], np.column_stack((halves, 1 - halves)).ravel()))
    lines = [_line(rows, at, error * share) for at, share in zip(tangents, weight / weight.sum(), strict=True)]
    return np.array([line[0] for line in lines]), np.array([line[1] for line in lines])


def _line(rows: int, tangent: float, error: float) -> tuple[float, float]:
    """The line that comes closest to the diagonal at `tangent` and is crossed with probability `error`."""

    def with_intercept(log_intercept: float) -> tuple[float, float]:
        intercept = np.exp(log_intercept)
        return intercept, 1 - intercept + intercept * (1 - tangent) / tangent

    def excess(log_intercept: float) -> float:
        """In a scale in which it is nearly a line of slope −2, as for a Brownian bridge."""
        intercept, slope = with_intercept(log_intercept)
        probability = np.clip(crossing_probability(rows, intercept, slope), 1e-300, 1 - 1e-15)
        return float(np.log(np.log(error) / np.log(probability)))

    typical = np.log(np.sqrt(-np.log(error) * tangent / (1 - tangent) / (2 * rows)))
    low, high = typical - 0.02, typical + 0.02
    while excess(high) > 0:
        low, high = high, high + 2 * (high - low)
    while excess(low) < 0:
        low, high = low - 2 * (high - low), low
    found = optimize.brentq(excess, low, high, xtol=1e-5)
    return with_intercept(found + 1e-5)


@dataclass(frozen=True)
class _Region:
    """The outcomes (i, j) with j <= most(i), for i in blocks, where the probability of j falls with i.

    Each block counts with the probability of its first i, so that a probability is never understated.
    """

    first: NDArray[np.float64]
    most: NDArray[np.float64]
    trials: NDArray[np.float64]
    rows: float

    def probability(self, mass: NDArray[np.float64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pr(region) where i falls into the blocks with probability `mass` and j, given i, is binomial with `inner`."""
        return np.asarray((mass * _binomial_at_most(self.most, self.trials, inner[..., None])).sum(axis=-1))

    def masses(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """How likely each block is where i is binomial with `share`."""
        return np.diff(_binomial_at_most(self.first - 1, self.rows, share[..., None]), axis=-1, append=1.0)

    def alone(self, mass: NDArray[np.float64], of_value: int) -> Callable[[float], float]:
        """The same probability for one `mass` and of one of several values, quickly: what can be is reckoned once."""
        most = self.most if self.most.ndim == 1 else self.most[of_value, 0]
        possible = (mass > 1e-18) & (most >= 0)
        surely = possible & (most >= self.trials)
        left = possible & ~surely
        alpha, beta, weight = (self.trials - most)[left], most[left] + 1, mass[left]
        whole = mass[surely].sum()
        return lambda inner: float(whole + weight @ special.betainc(alpha, beta, 1 - inner))


def _binomial_at_most(k: NDArray[Any], trials: Any, share: Any) -> NDArray[np.float64]:
    k, trials, share = np.broadcast_arrays(k, trials, share)
    inside = (k >= 0) & (k < trials)
    with np.errstate(invalid="ignore"):
        value = special.betainc(np.where(inside, trials - k, 1.0), np.where(inside, k + 1, 1.0), 1 - share)
    return np.where(inside, value, np.where(k < 0, 0.0, 1.0))


def _blocks(rows: float, low: float, high: float) -> NDArray[np.float64]:
    """First elements of blocks of 0 … rows that are fine where a binomial share between two limits can be."""
    spread = 6 * np.sqrt(rows * 0.25 * min(1.0, 4 * max(high, 1 / max(rows, 1)))) + 6
    start, end = max(0.0, np.floor(rows * low - spread)), min(rows, np.ceil(rows * high + spread))
    return np.unique(np.concatenate(([0.0], np.floor(np.linspace(start, end, BLOCKS)))))


FallTo = Callable[[Any, float | Any], Any]
"""(p, ψ) → the share q at which a value that falls in p and q is ψ: below 0 where it is less for every q, above 1 where
it is more. It may have a leading axis: several values at once."""


def two_share_limit(
    fall_to: FallTo, first: tuple[float, float], second: tuple[float, float], least: float, estimates: Any, error: float
) -> float:
    """Lower limit of a value that falls in two shares, from two independent binomial counts (count, total).

    Of several values (one for every prior that is possible, say) the limit is that of the smallest. `estimates` are
    the values at the shares observed, `least` one that is surely reached.
    """
    (count, rows), (_, inner_rows) = first, second
    shares = _nuisance_shares(count, rows, error)
    blocks = _blocks(rows, shares[0], shares[-1])
    seen = np.reshape(estimates, (-1, 1))
    reached = fall_to(blocks / max(rows, 1), seen - 1e-9 * np.maximum(1.0, np.abs(seen)))
    most = np.minimum(np.floor(inner_rows * reached + 1e-9), inner_rows)
    region = _Region(blocks, most[:, None, :], np.full(len(blocks), inner_rows), rows)

    def inner_share(psi: float) -> Any:
        return fall_to(shares, np.full_like(seen, psi))

    return _limit(region, shares, inner_share, least, float(np.min(seen)), error * (1 - LIMITS_OF_NUISANCE))


def three_part_limit(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], counts: NDArray[np.float64], error: float
) -> float:
    """Lower limit of Σ n q / Σ d q from multinomial counts of three kinds of rows, worth n and d above and below."""
    rows = float(counts.sum())
    estimate = float(numerators @ counts / (denominators @ counts))
    worth = numerators - estimate * denominators
    order = np.argsort(worth)
    (n_low, n_middle, n_high), (d_low, d_middle, d_high) = numerators[order], denominators[order]
    worst, middle, best = worth[order]
    shares = np.minimum(_nuisance_shares(counts[order[0]], rows, error), 1 - 1e-12)
    blocks = _blocks(rows, shares[0], shares[-1])
    left = rows - blocks
    enough = left * best + blocks * worst
    if best > middle:
        most = np.floor(enough / (best - middle) + 1e-9 * max(1.0, rows))
    else:
        most = np.where(enough >= 0, left, -1.0)
    region = _Region(blocks, np.minimum(most, left), left, rows)

    def inner_share(psi: float) -> Any:
        of_best, of_middle = n_high - psi * d_high, n_middle - psi * d_middle
        if of_best <= of_middle:
            return np.zeros_like(shares)
        return (of_best + shares / (1 - shares) * (n_low - psi * d_low)) / (of_best - of_middle)

    with np.errstate(invalid="ignore", divide="ignore"):
        least = float(np.nanmin(np.where(denominators > 0, numerators / denominators, np.nan)))
    return _limit(region, shares, inner_share, least, estimate, error * (1 - LIMITS_OF_NUISANCE))


def _nuisance_shares(count: float, rows: float, error: float) -> NDArray[np.float64]:
    """Shares of the first kind between their limits, the worst of which is looked for."""
    low, high = (float(limit) for limit in share_limits(count, rows, error * LIMITS_OF_NUISANCE / 2))
    return np.linspace(low, high, NUISANCE_POINTS)


def _limit(
    region: _Region,
    shares: NDArray[np.float64],
    inner_share: Callable[[float], Any],
    least: float,
    estimate: float,
    error: float,
) -> float:
    """The value below the estimate at which what was seen has the probability `error` at most, for every share.

    The probability grows with the value, for each share. So the limit is the least of the shares' own limits: solve for
    one share, look for another at which the solution is still too likely, and go on from there.
    """
    if not estimate > least:
        return least
    precision = 1e-7 * max(1.0, abs(estimate), abs(least))
    masses = region.masses(shares)

    def at_every_share(psi: float) -> Any:
        inner = inner_share(psi)
        return np.where(inner > 1, 0.0, region.probability(masses, np.clip(inner, 0.0, 1.0)))

    def solved(share: int, of_value: int, start: float) -> float:
        at_share = region.alone(masses[share], of_value)

        def excess(psi: float) -> float:
            """In units of the normal distribution, in which it is nearly a straight line."""
            inner = np.atleast_2d(inner_share(psi))[of_value, share]
            probability = 0.0 if inner > 1 else at_share(max(inner, 0.0))
            return float(special.ndtri(min(max(probability, 1e-300), 1 - 1e-16)) - special.ndtri(error))

        high = start
        if excess(high) <= 0:
            return start
        step = (estimate - least) * min(0.25, 2 / np.sqrt(region.rows + 1))
        low = max(least, high - step)
        while excess(low) > 0:
            if low <= least:
                return least
            step *= 2
            low, high = max(least, low - step), low
        return max(least, float(optimize.brentq(excess, low, high, xtol=precision)) - precision)

    found = solved(len(shares) // 2, 0, estimate)
    while found > least and (likely := np.atleast_2d(at_every_share(found))).max() > error:
        of_value, share = np.unravel_index(np.argmax(likely), likely.shape)
        found = min(solved(int(share), int(of_value), found), found - precision)
    return max(least, found)
