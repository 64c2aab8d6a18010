"""Confidence limits of a metric that several unknown shares determine, for every sample size.

Shares that remain unknown beside the value are nuisance parameters. The limit is the least value at which the outcomes
that are ordered as high as the one observed, or higher, have a probability of more than `error`, *whatever* the other
shares are (Buehler 1957), among those within limits that fail with a small part of the error (Berger and Boos 1994).
At given nuisance shares that probability falls in the share that is left, so that one equation is solved at each point
of a grid of them, and closer and closer to the points with the least value.

- `least_value`: any value of two or three binomial shares (balanced accuracy, kappa, the correlation coefficient).
- `three_part_limit`: three kinds of rows count, and the counts of each are multinomial (F-beta, Tversky, costs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from surecut.certificates.confidence import share_limits
from surecut.certificates.regions import Estimate, Region, Sampling, Statistic, StatisticOfParts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LIMITS_OF_NUISANCE = 0.02
"""The share of the error that is spent on limits of the shares that must be known beside the value."""

MARGIN = 0.01
"""The part of the error that is left for what lies between the points of a search."""

POINTS_OF_ONE, POINTS_OF_FEW, POINTS = 17, 13, 7
"""Points between the limits of a nuisance share: of one; and of each of two, for few outcomes and for many."""

FEW = 2_000
"""So many outcomes of the counts before the innermost one are few."""

WITHIN = 1.5
"""Values that are larger than the least so far by so many standard errors are not looked at more closely."""

BISECTIONS = 12
"""Bisections on the way to a limit of the nuisance shares."""

PEAKS = 2
"""Points around which the least value is looked for, …"""

FEWEST_ROUNDS, ROUNDS = 2, 8
"""… and how often, at least and at most, half as far each time, …"""

ENOUGH = 2e-3
"""… until it falls by less than this, in standard errors; the limit is lower by as much."""

AROUND = np.array([(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b])
"""The neighbours of a point."""

CLOSE, CLOSEST = 0.03, 2e-3
"""An equation is solved if its sides differ by this at most, in normal quantiles, and one step more is made. The first
is where the slope is known: what the step misses is less than the margin is worth."""

RIGHT = np.pi / 2
"""The angle of a share of 1: shares are looked at in the scale in which all have the same standard error."""

MOST_STEPS = 60
"""Steps to the solution of an equation; bisection alone needs no more."""


def least_value(statistics: Sequence[Statistic], error: float) -> float:
    """Lower limit of a value from binomial counts.

    Parameters
    ----------
    statistics
        Ways to look at the same counts, with one order of outcomes. The one whose innermost share has the largest part
        in the variance is taken.
    error
        The probability with which the limit may fail.
    """
    observed = [statistic.observed() for statistic in statistics]
    best = int(np.argmax([float(one.parts()[2][0] / max(one.deviation()[0], 1e-300) ** 2) for one in observed]))
    each = error * LIMITS_OF_NUISANCE / len(statistics)
    return _Search(statistics[best], observed[best], error * (1 - LIMITS_OF_NUISANCE), each).limit()


def drawn_limits(count: float, rows: float, error: float) -> tuple[float, float]:
    """Limits of the prior, within which `least_value` looks at two statistics of classes that are drawn."""
    low, high = share_limits(count, rows, _least_product(error * LIMITS_OF_NUISANCE / 2) / 2)
    return float(low), float(high)


class _Nuisance:
    """The nuisance shares P and p that are within joint limits, as points of the square [−1, 1]².

    Two p-values, each of a share, have a product of t or less with the probability t (1 − log t) at most (Fisher).
    The sides of the square are the shares with the product t, its centre is what was observed, and lines through
    the centre are lines in the angles of the shares.
    """

    def __init__(self, sampling: Sampling, error: float) -> None:
        (count, rows), first = sampling.drawn, sampling.first
        self.counts = [(count, rows), (first, sampling.trials(count, first)[0])]
        self.least = _least_product(error) if rows else error
        limits = [share_limits(*of_share, self.least / 2) for of_share in self.counts]
        self.priors, self.shares = ((float(low), float(high)) for low, high in limits)
        if not rows:
            self.priors = 0.5, 0.5
        self.centre = np.array([_to_angle(count / trials if trials else 0.5) for count, trials in self.counts])
        self.ends = _to_angle(np.array([self.priors, self.shares]))
        self.free = np.array([rows > 0, True])

    def at(self, points: Array) -> tuple[Array, Array]:
        """The shares P and p at points of the square, one in each row."""
        size = np.abs(points).max(axis=1, keepdims=True)
        ray = points / np.where(size > 0, size, 1.0)
        reach = np.where(ray < 0, self.centre - self.ends[:, 0], self.ends[:, 1] - self.centre) * ray
        low, high = np.zeros(len(points)), np.ones(len(points))
        if self.free.all():
            for _ in range(BISECTIONS):  # what is within limits is too much, if anything
                middle = (low + high) / 2
                inside = self._product(self.centre + middle[:, None] * reach) > self.least
                low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        prior, first = _to_share(self.centre + size * high[:, None] * reach).T
        return np.clip(prior, *self.priors), np.clip(first, *self.shares)

    def _product(self, angles: Array) -> Array:
        shares = _to_share(angles.T)
        return _two_sided(*self.counts[0], shares[0]) * _two_sided(*self.counts[1], shares[1])


def _two_sided(count: float, trials: float, share: Array) -> Array:
    """The p-value of a share: twice the probability of the tail in which the count is, 1 at most."""
    upper = special.betainc(count, trials - count + 1, share) if count > 0 else np.ones_like(share)
    lower = special.betainc(trials - count, count + 1, 1 - share) if count < trials else np.ones_like(share)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(upper, lower)))


def _least_product(error: float) -> float:
    """The t with t (1 − log t) = error."""
    product = error
    for _ in range(50):
        product = error / (1 - np.log(product))
    return float(product)


class _Roots:
    """Equations that are solved together for an angle in which their excess falls.

    Secant steps, and bisection where they leave the interval in which the solution is.
    """

    def __init__(self, start: Array, slope: Array, known: bool) -> None:
        self.now, self.slope = start.copy(), slope.copy()
        self.known = np.full(len(start), known)
        self.low, self.high = np.full_like(start, -1.0), np.full_like(start, RIGHT + 1)
        self.last, self.last_excess = np.full_like(start, np.nan), np.full_like(start, np.nan)

    def advance(self, active: NDArray[np.intp], excess: Array) -> NDArray[np.bool_]:
        """One step of some equations, from the excess where they are; whether they are solved then."""
        here = self.now[active]
        self.low[active] = left = np.where(excess > 0, here, self.low[active])
        self.high[active] = right = np.where(excess > 0, self.high[active], here)
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = (excess - self.last_excess[active]) / (here - self.last[active])
        better = (np.abs(excess - self.last_excess[active]) > 1e-4) & (secant < 0)  # than rounding alone
        self.known[active] |= better
        self.slope[active] = np.where(better, secant, self.slope[active])
        self.last[active], self.last_excess[active] = here, excess
        new = np.clip(here - excess / self.slope[active], 0.0, RIGHT)
        outside = (new <= left) | (new >= right)
        small = np.abs(new - here) <= CLOSE
        solved = (np.abs(excess) <= CLOSEST) & small
        nearly = (np.abs(excess) <= CLOSE) & self.known[active] & small & ~outside
        middle = (np.maximum(left, 0.0) + np.minimum(right, RIGHT)) / 2
        whole = (here == RIGHT) & (excess > 0)
        new = np.where(outside, np.where(solved, here, middle), new)
        self.now[active] = np.where(whole, RIGHT, new)
        return np.asarray(whole | solved | nearly | (right - left < 1e-12))


class _Search:
    """The least value over the nuisance shares P and p, each at the largest q that is not rejected."""

    def __init__(self, statistic: Statistic, observed: Estimate, error: float, of_limits: float) -> None:
        self.value_at = statistic.value_at
        self.nuisance = _Nuisance(statistic.sampling, of_limits)
        self.target = float(special.ndtri(error * (1 - MARGIN)))
        self.region = Region(statistic, self.nuisance.priors, self.nuisance.shares, error)
        self.centre = [float(share[0]) for share in observed.shares]
        self.slopes = [float(slope[0]) for slope in observed.slopes]
        self.deviation = float(observed.deviation()[0])
        steep = 2 * self.slopes[2] * np.sqrt(self.centre[2] * (1 - self.centre[2]))
        self.slope = float(steep / self.deviation) if steep < 0 else -1.0

    def limit(self) -> float:
        """The least value that is not rejected."""
        free = self.nuisance.free
        few = POINTS_OF_FEW if self.region.whole and len(self.region) <= FEW else POINTS
        number = few if free.all() else POINTS_OF_ONE
        axes = [np.linspace(-1.0, 1.0, number) if one else np.zeros(1) for one in free]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        points, step = grid.reshape(-1, 2), 2 / (number - 1) * free
        values, away, slopes, whole = self.solved(points)
        whole &= values <= values.min() + WITHIN * self.deviation
        if whole.any() and not whole.all():
            edges = self._edges(grid, whole.reshape(grid.shape[:2]))
            points, found = np.concatenate((points, edges)), self.solved(edges, np.full(len(edges), RIGHT))
            values, away, slopes = (np.append(a, b) for a, b in zip((values, away, slopes), found[:3], strict=True))
        for round_ in range(ROUNDS):
            step, least = step / 2, values.min()
            near = np.argsort(values)[:PEAKS]
            new = np.clip((points[near][:, None] + AROUND * step).reshape(-1, 2), -1.0, 1.0)
            new, kept = np.unique(new, axis=0, return_index=True)
            nearest = np.repeat(near, len(AROUND))[kept]
            found = self.solved(new, away[nearest], slopes[nearest], least)
            points = np.concatenate((points, new))
            values, away, slopes = (np.append(a, b) for a, b in zip((values, away, slopes), found[:3], strict=True))
            if round_ >= FEWEST_ROUNDS and values.min() > least - ENOUGH * self.deviation:
                break
        lowest = float(values.min())
        return lowest - ENOUGH * self.deviation if np.isfinite(lowest) else -np.inf

    def solved(
        self, points: Array, away: Array | None = None, slopes: Array | None = None, least: float = np.inf
    ) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
        """The value at the largest q that is not rejected; how far that is from a guess; a slope; and whether q is 1.

        Points that cannot have the least value, or one below `least`, are given up. The value is infinite where every q
        is rejected. `away` and `slopes` are those of points nearby.
        """
        prior, first = self.nuisance.at(points)
        guess = self._guess(prior, first)
        start = np.clip(guess if away is None else guess + away, 0.0, RIGHT)
        roots = _Roots(start, np.full_like(start, self.slope) if slopes is None else slopes, slopes is not None)
        values, unsure = np.full_like(start, np.inf), np.full_like(start, np.inf)
        active = np.arange(len(start))
        for _ in range(MOST_STEPS):
            here = roots.now[active]
            probability = self.region.probability(prior[active], first[active], _to_share(here))
            excess = special.ndtri(np.clip(probability, 1e-300, 1 - 1e-16)) - self.target
            done = roots.advance(active, excess)
            none = (here == 0) & (excess <= 0)
            values[active] = self._values(prior[active], first[active], _to_share(roots.now[active]))
            values[active[none]] = np.inf
            rough = np.where((np.abs(excess) < 0.5) & roots.known[active], np.abs(excess) * self.deviation, np.inf)
            unsure[active] = np.where(done | none, 0.0, rough)
            lowest = min(least, float(np.min(values + unsure)))
            active = np.flatnonzero((unsure > 0) & ~(values - unsure > lowest))
            if not len(active):
                break
        roots.now[active] = np.minimum(roots.high[active], RIGHT)  # not solved, which is the safe side
        values[active] = self._values(prior[active], first[active], _to_share(roots.now[active]))
        return values, roots.now - guess, roots.slope, roots.now == RIGHT

    def _edges(self, grid: Array, whole: NDArray[np.bool_]) -> Array:
        """Points between neighbours of a grid, of which one does not even reject q = 1: the last ones that do not."""
        inside, outside = [], []
        for axis in (0, 1):
            ends = [np.moveaxis(grid, axis, 0)[part].reshape(-1, 2) for part in (slice(None, -1), slice(1, None))]
            flags = [np.moveaxis(whole, axis, 0)[part].ravel() for part in (slice(None, -1), slice(1, None))]
            for first, second in ((0, 1), (1, 0)):
                change = flags[first] & ~flags[second]
                inside.append(ends[first][change])
                outside.append(ends[second][change])
        low, high = np.concatenate(inside), np.concatenate(outside)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            prior, first_share = self.nuisance.at(middle)
            probability = self.region.probability(prior, first_share, np.ones(len(middle)))
            accepted = (probability > special.ndtr(self.target))[:, None]
            low, high = np.where(accepted, middle, low), np.where(accepted, high, middle)
        return low

    def _guess(self, prior: Array, first: Array) -> Array:
        """The angle of the solution, by the normal distribution."""
        of_prior, of_first, of_second = self.slopes
        moved = of_prior * (prior - self.centre[0]) + of_first * (first - self.centre[1])
        change = (self.target * self.deviation - moved) / of_second if of_second < 0 else np.zeros_like(moved)
        return np.asarray(_to_angle(np.clip(self.centre[2] + change, 0.0, 1.0)))

    def _values(self, prior: Array, first: Array, second: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.asarray(self.value_at(prior)(first, second), dtype=float)
        return np.where(np.isnan(found), np.inf, found)  # where it is undefined, there is nothing to cover


def three_part_limit(numerators: Array, denominators: Array, counts: Array, error: float) -> float:
    """Lower limit of Σ n q / Σ d q from multinomial counts of three kinds of rows, worth n and d above and below.

    The kinds must have one order for all values (`has_one_order`).
    """
    least, most = extremes(numerators, denominators)
    order = np.argsort(numerators - (least + most) / 2 * denominators)
    statistics = [
        StatisticOfParts(numerators[kinds], denominators[kinds], counts[kinds], error)
        for kinds in (order, order[[1, 0, 2]], order[[2, 0, 1]])
    ]
    return float(np.clip(least_value(statistics, error), least, most))


def has_one_order(numerators: Array, denominators: Array) -> bool:
    """Whether n − ψd ranks the kinds of rows alike for every value ψ that there is, and each has a value of its own."""
    if not (denominators > 0).all():
        return False
    least, most = extremes(numerators, denominators)
    differences = [np.subtract.outer(worth, worth) for worth in (numerators - v * denominators for v in (least, most))]
    rounding = 1e-12 * max(float(np.abs(numerators).max()), float(np.abs(denominators).max()), 1e-300)
    signs = [np.where(np.abs(difference) <= rounding, 0, np.sign(difference)) for difference in differences]
    return bool((signs[0] * signs[1] >= 0).all())


def extremes(numerators: Array, denominators: Array) -> tuple[float, float]:
    """The least and the largest value: those of a single kind of rows, of those that count below the bar."""
    counting = denominators > 0
    values = numerators[counting] / denominators[counting]
    return float(values.min()), float(values.max())


def _to_angle(share: Any) -> Any:
    return np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0)))


def _to_share(angle: Any) -> Any:
    return np.sin(angle) ** 2
