"""Counts of rows as two or three binomial counts, one after the other, and the probability of an ordered set of them.

A value Ψ(P, p, q) falls in the share q. Outcomes are ordered by an approximate lower limit of the value, the estimate
less some standard errors: a set of outcomes {W >= w} then has nearly the same probability wherever the value is the
same, whatever the other shares are. Sums over outcomes are exact where they are few. Where they are many, the sum is
that of a smooth function, which equally spaced points give to many digits, and the innermost count is bounded by a
number that is not rounded to a whole one, which can only add to the probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Pair = tuple[float, float]

ValueAt = Callable[["Array"], Callable[[Any, Any], Any]]
"""Priors P → the value as a function of the shares p and q; not increasing in q."""

SMOOTHING = 0.25
"""Rows that are added to both sides of a share, times the squared normal quantile: fewer, and W need not fall in q."""

GRID = np.sin(np.linspace(0.0, np.pi / 2, 9)) ** 2
"""Shares of its trials at which the innermost count is looked at first."""

PRECISION = 1e-3
"""How near to the boundary of a set the innermost count is known, in rows."""

STEP = 0.9
"""Distance of the points of a sum, in standard deviations of what is summed: its error is exp(−2π²/STEP²)."""

MOST_OF_ONE, MOST_OF_TWO = 600, 6_000
"""So many outcomes of one count, or of two, before the innermost one are summed one by one, at most."""

LEAST_OF_ONE = 60
"""So many points of one count are taken at least: the boundary of the innermost count may have a kink."""

MOST_POINTS = 1_024
"""So many points of one count are taken at most. Where the sum would need more, it is bounded from above."""

FEWEST = 10.0
"""The mean count from which points may replace whole numbers: the sum ends smoothly before 0."""

NEGLIGIBLE = 1e-3
"""Outcomes less likely than this part of the error, all together, are not looked at; they count as part of the set."""


@dataclass(frozen=True)
class Sampling:
    """Binomial counts, one after the other: m of n rows (or none), then i with the share p, then j with the share q.

    Parameters
    ----------
    drawn
        m and n; both are 0 where the class counts are given.
    first, second
        i and j.
    first_trials
        (a, b): i has a + b·m trials.
    second_trials
        (a, b, c): j has a + b·m + c·i trials.
    """

    drawn: tuple[float, float]
    first: float
    second: float
    first_trials: tuple[float, float]
    second_trials: tuple[float, float, float]

    def trials(self, drawn: Any, first: Any) -> tuple[Any, Any]:
        """Trials of i and of j."""
        (a, b), (d, e, f) = self.first_trials, self.second_trials
        return a + b * drawn, d + e * drawn + f * first


@dataclass(frozen=True)
class Estimate:
    """The value at smoothed shares, its slopes in the shares, and the variances of the shares."""

    value: Any
    shares: tuple[Any, Any, Any]
    slopes: tuple[Any, Any, Any]
    variances: tuple[Any, Any, Any]

    def parts(self) -> tuple[Any, Any, Any]:
        """What each share adds to the variance of the value."""
        of_prior, of_first, of_second = (s * s * v for s, v in zip(self.slopes, self.variances, strict=True))
        return of_prior, of_first, of_second

    def deviation(self) -> Any:
        return np.sqrt(sum(self.parts()))


class Statistic:
    """The statistic W that orders outcomes: the estimate less `quantile` standard errors, by the delta method."""

    def __init__(self, sampling: Sampling, value_at: ValueAt, error: float) -> None:
        self.sampling, self.value_at = sampling, value_at
        self.quantile = max(0.0, float(-special.ndtri(error)))
        self.added = max(0.5, SMOOTHING * self.quantile**2)

    def estimates(self, drawn: Array, first: Array) -> Callable[[Any], Estimate]:
        """The estimate as a function of the innermost count, for some of the other two."""
        rows, added = self.sampling.drawn[1], self.added
        trials, inner_trials = self.sampling.trials(drawn, first)
        prior, p = (drawn + added) / (rows + 2 * added), (first + added) / (trials + 2 * added)
        steps = 1e-4 * prior * (1 - prior), 1e-4 * p * (1 - p)
        value = self.value_at(prior)
        more, less = (self.value_at(prior + sign * steps[0]) for sign in (1, -1)) if rows else (value, value)
        of_prior = prior * (1 - prior) / (rows + 2 * added) if rows else np.zeros_like(p)
        of_p = p * (1 - p) / (trials + 2 * added)

        def estimate(second: Any) -> Estimate:
            q = (second + added) / (inner_trials + 2 * added)
            step = 1e-4 * q * (1 - q)
            slopes = (
                (more(p, q) - less(p, q)) / (2 * steps[0]),
                (value(p + steps[1], q) - value(p - steps[1], q)) / (2 * steps[1]),
                (value(p, q + step) - value(p, q - step)) / (2 * step),
            )
            variances = of_prior, of_p, q * (1 - q) / (inner_trials + 2 * added)
            return Estimate(value(p, q), (prior, p, q), slopes, variances)

        return estimate

    def observed(self) -> Estimate:
        """The estimate at the counts that were observed."""
        sampling = self.sampling
        return self.estimates(np.array([sampling.drawn[0]]), np.array([sampling.first]))(np.array([sampling.second]))

    def ordering(self, drawn: Array, first: Array) -> Callable[[Any], Any]:
        """W as a function of the innermost count, for some of the other two."""
        estimates = self.estimates(drawn, first)

        def order(second: Any) -> Any:
            found = estimates(second)
            return found.value - self.quantile * found.deviation()

        return order

    def level(self) -> float:
        """W of the counts that were observed, less what rounding can add."""
        sampling = self.sampling
        order = self.ordering(np.array([sampling.drawn[0]]), np.array([sampling.first]))
        level = float(order(np.array([sampling.second]))[0])
        return level - 1e-9 * max(1.0, abs(level))

    def most(self, drawn: Array, first: Array) -> Array:
        """The largest j, a real number, at which W is as large as observed, for each of the others.

        Where there is none, it goes on smoothly from 0 to −1, at which a set is empty. The outermost of several points
        of a grid decides between which of them it lies, so that the sets are nested.
        """
        order, level = self.ordering(drawn, first), self.level()
        trials = self.sampling.trials(drawn, first)[1]

        def excess(second: Array) -> Array:
            return np.asarray(order(second) - level)

        values = np.array([excess(trials * share) for share in GRID])
        inside = values >= 0
        none, all_ = ~inside.any(axis=0), inside[-1]
        outermost = len(GRID) - 1 - np.argmax(inside[::-1], axis=0)
        ends = [np.minimum(outermost + beyond, len(GRID) - 1) for beyond in (0, 1)]
        columns, decided = np.arange(len(trials)), none | all_
        low, high = (trials * GRID[end] for end in ends)
        high = _crossing(excess, (low, high), (values[ends[0], columns], values[ends[1], columns]), decided)
        fall = values[0] - values[1]
        before = np.divide(values[0] * trials * GRID[1], fall, out=np.full_like(trials, -1.0), where=fall > 0)
        return np.asarray(np.where(all_, trials, np.where(none, np.maximum(before, -1.0), high)))


def _crossing(
    excess: Callable[[Array], Array],
    ends: tuple[Array, Array],
    at_ends: tuple[Array, Array],
    decided: NDArray[np.bool_],
) -> Array:
    """Where a falling excess is negative for the first time, and not much later; `decided` are those of no interest.

    The Illinois method: false position, and half the weight of an end that stays twice.
    """
    (low, high), (at_low, at_high) = ends, at_ends
    kept = np.zeros(len(low))  # which end stayed the last time
    for _ in range(20):
        if (decided | (high - low <= 2 * PRECISION)).all():
            break
        slope = np.where(decided | (at_low == at_high), 1.0, at_low - at_high)
        middle = low + (high - low) * np.clip(at_low / slope, 1e-9, 1 - 1e-9)
        middle = np.clip(middle + kept * PRECISION, low, high)  # a little further, to pass the solution
        here = excess(middle)
        up = here >= 0
        at_low = np.where(up, here, np.where(kept < 0, at_low / 2, at_low))
        at_high = np.where(up, np.where(kept > 0, at_high / 2, at_high), here)
        low, high = np.where(up, middle, low), np.where(up, high, middle)
        kept = np.where(up, 1.0, -1.0)
    return high


class StatisticOfParts(Statistic):
    """The same for three kinds of rows, one of them apart, with one order of outcomes whichever kind that is.

    Parameters
    ----------
    numerators, denominators
        What a row of each kind is worth above and below the bar: of the kind apart (i), of the worse one of the others
        (j), and of the better one.
    counts
        How many rows there are of each.
    error
        The probability with which the limit may fail.
    """

    def __init__(self, numerators: Array, denominators: Array, counts: Array, error: float) -> None:
        rows = float(counts.sum())
        sampling = Sampling((0.0, 0.0), float(counts[0]), float(counts[1]), (rows, 0.0), (rows, 0.0, -1.0))
        self.numerators, self.denominators, self.rows = numerators, denominators, rows

        def value(p: Any, q: Any) -> Any:
            shares = p, (1 - p) * q, (1 - p) * (1 - q)
            return _weighted(numerators, shares) / _weighted(denominators, shares)

        super().__init__(sampling, lambda _: value, error)

    def ordering(self, drawn: Array, first: Array) -> Callable[[Any], Any]:
        n, d = self.numerators, self.denominators

        def order(second: Any) -> Any:
            counts = [count + self.added for count in (first, second, self.rows - first - second)]
            value, below = _weighted(n, counts) / _weighted(d, counts), _weighted(d, counts)
            terms = (_weighted(worth, counts) for worth in (n * n, -2 * n * d, d * d))
            variance = np.maximum(sum(term * value**power for power, term in enumerate(terms)), 0.0)
            return value - self.quantile * np.sqrt(variance) / below

        return order


def _weighted(worth: Array, counts: Sequence[Any]) -> Any:
    return sum(of_row * count for of_row, count in zip(worth.tolist(), counts, strict=True))


class Region:
    """The outcomes with W as large as observed, as points of the counts that stand before the innermost one.

    Parameters
    ----------
    statistic
        What orders the outcomes.
    priors, shares
        Limits of P and of p, within which probabilities are asked for.
    error
        The size of the probabilities that matter.
    """

    def __init__(
        self, statistic: Statistic, priors: tuple[float, float], shares: tuple[float, float], error: float
    ) -> None:
        sampling, observed = statistic.sampling, statistic.observed()
        count, rows = sampling.drawn
        drawn, first, size, coarse = _outcomes(sampling, observed, (priors, shares), error)
        trials, self.trials = sampling.trials(drawn, first)
        self.log_ways = np.log(size) + _log_ways(trials, first) + _log_ways(rows, drawn)
        self.counts = np.stack((drawn, rows - drawn, first, trials - first))
        most = statistic.most(drawn, first)
        for beside in (-coarse / 2, coarse / 2) if coarse else ():  # the set is no smaller anywhere near a point
            most = np.maximum(most, statistic.most(np.clip(drawn + beside, 0.0, rows), first))
        self.whole = size == 1
        if self.whole:
            most = np.floor(most + 1e-9)
        same = (drawn == count) & (first == sampling.first)
        self.most = np.where(same, np.maximum(most, sampling.second), most)
        self.negligible = NEGLIGIBLE * error / len(drawn)

    def __len__(self) -> int:
        return len(self.trials)

    def probability(self, prior: Array, first: Array, second: Array) -> Array:
        """Pr(region) at shares (P, p, q), three arrays of one length; never less than it is, but for rounding."""
        shares = np.clip(np.stack((prior, 1 - prior, first, 1 - first)), 1e-300, 1.0)
        mass = np.exp(self.log_ways + np.log(shares).T @ self.counts)
        which, node = np.nonzero(mass > self.negligible)
        kept, most, trials, q = mass[which, node], self.most[node], self.trials[node], second[which]
        above = most - trials * q
        away = np.where(above > 0, above, np.minimum(above + 1, 0.0))  # to the next whole number
        with np.errstate(invalid="ignore", divide="ignore"):
            tail = np.exp(-away * away / (2 * (trials * q * (1 - q) + np.abs(away) / 3)))  # Bernstein's inequality
        small = (kept * tail <= self.negligible) & (away != 0)
        given = np.where((most >= trials) | (small & (above > 0)), 1.0, np.where(small, tail, 0.0))
        some = np.flatnonzero((most > -1) & (most < trials) & ~small)
        most = most[some]
        given[some] = special.betainc(trials[some] - most, most + 1, 1 - q[some])
        inside, all_ = (np.bincount(which, part, len(prior)) for part in (kept * given, kept))
        return np.asarray(inside + np.maximum(0.0, 1 - all_))


def _log_ways(trials: Any, count: Any) -> Any:
    return special.gammaln(trials + 1) - special.gammaln(count + 1) - special.gammaln(trials - count + 1)


def _outcomes(
    sampling: Sampling, observed: Estimate, limits: tuple[Pair, Pair], error: float
) -> tuple[Array, Array, float, float]:
    """The counts m and i that matter, or points that stand for more of them; for how many each stands; and the distance
    of points of m, where that is too large for a sum, and 0 otherwise."""
    (count, rows), first = sampling.drawn, sampling.first
    reach = float(-special.ndtri(NEGLIGIBLE * error))
    trials = sampling.trials(count, first)[0]
    ends = _range((rows, rows), limits[0], reach) if rows else (count, count)
    possible = sampling.trials(np.array(ends), 0.0)[0]
    others = first > trials / 2  # then the rows that are not of the first count are few, and they are counted
    shares = (1 - limits[1][1], 1 - limits[1][0]) if others else limits[1]
    first_ends = _range((possible.min(), possible.max()), shares, reach)
    of_prior, of_p, of_q = (max(float(part[0]), 1e-300) for part in observed.parts())
    smooth = np.sqrt((of_p + of_q) / (of_prior + of_p + of_q)), np.sqrt(of_q / (of_p + of_q))
    most = MOST_OF_TWO if rows else MOST_OF_ONE
    whole = (ends[1] - ends[0] + 1) * (first_ends[1] - first_ends[0] + 1) <= 4 * most
    for scale in ((0.0, 0.0), smooth) if whole else (smooth,):
        m, step, is_coarse = _points(ends, rows, limits[0], scale[0], 1)
        i, first_step, _ = _points(first_ends, trials, shares, scale[1], 1 if rows else LEAST_OF_ONE)
        m, i = (grid.ravel() for grid in np.meshgrid(m, i, indexing="ij"))
        possible = sampling.trials(m, i)[0]
        m, i = m[i <= possible], (possible - i if others else i)[i <= possible]
        away = np.hypot(_distance(m, rows, count), _distance(i, sampling.trials(m, i)[0], first, trials))
        farthest = max(
            float(np.max(_distance(np.multiply(total, limit), total, at)))
            for total, limit, at in ((rows, limits[0], count), (trials, limits[1], first))
        )
        kept = away <= farthest + reach + 1
        m, i = m[kept], i[kept]
        if len(m) <= most:
            break
    return m, i, step * first_step, step if is_coarse else 0.0


def _distance(count: Any, trials: Any, other: float, other_trials: float | None = None) -> Any:
    """The distance of two binomial shares in standard errors of the first, in the scale of angles."""
    angle, other_angle = (
        np.arcsin(np.sqrt(np.clip(np.divide(of, np.maximum(total, 1.0)), 0.0, 1.0)))
        for of, total in ((count, trials), (other, trials if other_trials is None else other_trials))
    )
    return 2 * np.sqrt(trials) * np.abs(angle - other_angle)


def _range(trials: tuple[float, float], shares: tuple[float, float], reach: float) -> tuple[float, float]:
    """Where a binomial count can be, for trials and shares between limits."""
    low, high = trials[0] * shares[0], trials[1] * shares[1]
    start = np.floor(low - reach * np.sqrt(low * (1 - shares[0]) + 1) - 1)
    end = np.ceil(high + reach * np.sqrt(high * (1 - shares[1]) + 1) + 1)
    return float(max(0.0, start)), float(min(trials[1], end))


def _points(ends: Pair, trials: float, shares: Pair, smooth: float, fewest: int) -> tuple[Array, float, bool]:
    """The whole numbers in a range, or fewer points at which a smooth function is summed as well; and their distance.

    `smooth` is the scale on which the function changes, in standard deviations of the count. The last is whether the
    points are too few for it.
    """
    step = STEP * smooth * min(np.sqrt(trials * share * (1 - share)) for share in shares)
    rare = trials * min(shares[0], 1 - shares[1]) < FEWEST
    if (rare or step < 1.5) and ends[1] - ends[0] <= MOST_POINTS:
        return np.arange(ends[0], ends[1] + 1), 1.0, False
    needed = max(fewest, int(np.ceil((ends[1] - ends[0]) / max(step, 1.0))))
    number = min(needed, MOST_POINTS)
    return np.linspace(*ends, number + 1), (ends[1] - ends[0]) / number, number < needed
