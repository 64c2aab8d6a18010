"""Confidence limits that hold for every sample size: of a share, and of all shares of nested sets at once.

Each limit is one-sided: it fails with probability at most `error`.

- `share_limits`: Clopper–Pearson, for one share.
- `least_shares`: for the shares of all sets {score >= t} at once. The envelope of some straight lines, each of which an
  empirical distribution function crosses with a probability that is known exactly.

Limits of a metric that two or three unknown shares determine are in `nuisance` and `regions`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
