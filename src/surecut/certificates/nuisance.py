"""Confidence limits of a metric that two or three unknown shares determine, for every sample size.

One share remains unknown beside the value: a nuisance parameter. A value ψ is rejected where an estimate as large as
the one seen has the probability `error` at most, *whatever* the other share is. So that probability is maximised over
the curve of all shares that have the value ψ, continuously: on a grid that is fine in units of the standard error, ends
of the curve included, and between the best points of that grid (Berger and Boos 1994: over those shares only that are
within limits which fail with a small part of the error).

- `three_part_limit`: three kinds of rows count, and the counts of each are multinomial (F-beta, Tversky, costs).
- `two_share_limit`: the value falls in two shares, of two independent binomial counts (balanced accuracy, kappa).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import optimize, special

from surecut.certificates.confidence import share_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMITS_OF_NUISANCE = 0.02
"""The share of the error that is spent on limits of the share that must be known beside the value."""

BLOCKS = 64
"""Blocks into which the outcomes of the first count are put, where there are more."""

SPACING = 0.4
"""Distance of grid points along the curve, in standard errors (Fisher information): a probability is smooth on 1."""

MOST_POINTS = 4096
"""Points on a curve at most; a curve that would need more has a bound for what lies between its points."""

ROUNDS = 12
"""Rounds in which points are added."""

MARGIN = 1e-3
"""The part of the error that is left, so that a search ends: beside it, a maximum is not known to the last digit."""

ZOOM = np.linspace(-1.0, 1.0, 9)
"""Where a maximum is looked for between the neighbours of a grid point."""

Shares = Any
"""A share, or an array of shares."""


class LevelCurve(Protocol):
    """The shares (p, q) at which a value that falls in both is ψ."""

    def second(self, first: Shares, psi: float) -> Shares:
        """The q that belongs to p: below 0 where the value is less for every q, above 1 where it is more."""

    def first(self, second: Shares, psi: float) -> Shares:
        """The p that belongs to q, in the same way."""


@dataclass(frozen=True)
class Swapped:
    """The same curve with the shares in the other order."""

    curve: LevelCurve

    def second(self, first: Shares, psi: float) -> Shares:
        return self.curve.first(first, psi)

    def first(self, second: Shares, psi: float) -> Shares:
        return self.curve.second(second, psi)


def two_share_limit(
    curve: LevelCurve,
    first: tuple[float, float],
    second: tuple[float, float],
    least: float,
    estimate: float,
    error: float,
    order: LevelCurve | None = None,
) -> float:
    """Lower limit of a value that falls in two shares, from two independent binomial counts (count, total).

    Parameters
    ----------
    curve
        The shares at which the value is ψ; of several values (one for every prior that is possible, say) the lowest q.
    first, second
        Both counts, each with its number of rows.
    least
        A value that is surely reached.
    estimate
        The value at the shares that were observed, by which outcomes are ordered.
    error
        The probability with which the limit may fail.
    order
        The curve that orders the outcomes, where it is another.
    """
    order = order or curve
    each = error * LIMITS_OF_NUISANCE / 4  # of both sides, and of either share: which one serves, the counts decide
    candidates = [
        _TwoShares(curve, order, first, second, estimate, each),
        _TwoShares(Swapped(curve), Swapped(order), second, first, estimate, each),
    ]
    shorter = min(candidates, key=lambda one: one.length(estimate))
    return _limit(shorter, least, estimate, error * (1 - LIMITS_OF_NUISANCE))


def three_part_limit(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], counts: NDArray[np.float64], error: float
) -> float:
    """Lower limit of Σ n q / Σ d q from multinomial counts of three kinds of rows, worth n and d above and below.

    The kinds must have one order for all values (`has_one_order`).
    """
    least, most = extremes(numerators, denominators)
    estimate = float(numerators @ counts / (denominators @ counts))
    order = np.argsort(numerators - (least + most) / 2 * denominators)
    parts = _ThreeParts(numerators[order], denominators[order], counts[order], estimate, error * LIMITS_OF_NUISANCE / 2)
    return _limit(parts, least, estimate, error * (1 - LIMITS_OF_NUISANCE))


def has_one_order(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> bool:
    """Whether n − ψd ranks the kinds of rows alike for every value ψ that there is, and each has a value of its own."""
    if not (denominators > 0).all():
        return False
    least, most = extremes(numerators, denominators)
    differences = [np.subtract.outer(worth, worth) for worth in (numerators - v * denominators for v in (least, most))]
    rounding = 1e-12 * max(float(np.abs(numerators).max()), float(np.abs(denominators).max()), 1e-300)
    signs = [np.where(np.abs(difference) <= rounding, 0, np.sign(difference)) for difference in differences]
    return bool((signs[0] * signs[1] >= 0).all())


def extremes(numerators: NDArray[np.float64], denominators: NDArray[np.float64]) -> tuple[float, float]:
    """The least and the largest value: those of a single kind of rows, of those that count below the bar."""
    counting = denominators > 0
    values = numerators[counting] / denominators[counting]
    return float(values.min()), float(values.max())


@dataclass(frozen=True)
class _Region:
    """The outcomes (i, j) with j <= most(i), for i in blocks, where the probability of j falls with i.

    Each block counts with the probability of its first i, so that a probability is never understated.
    """

    first: NDArray[np.float64]
    most: NDArray[np.float64]
    trials: NDArray[np.float64]
    rows: float

    def probability(self, shares: NDArray[np.float64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pr(region) at each pair of shares: i is binomial with the first, j, given i, with the other."""
        at_most = _binomial_at_most(self.first - 1, self.rows, shares[:, None])
        mass = np.diff(at_most, axis=-1, append=1.0)
        counting = mass.max(axis=0) > 1e-15
        given = _binomial_at_most(self.most[counting], self.trials[counting], inner[:, None])
        return np.asarray((mass[:, counting] * given).sum(axis=-1))


def _binomial_at_most(k: NDArray[np.float64], trials: Any, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pr(binomial <= k); k and trials are rows, the shares a column."""
    some, all_ = k >= 0, k >= trials
    alpha, beta = np.where(some & ~all_, trials - k, 1.0), np.where(some & ~all_, k + 1.0, 1.0)
    return np.asarray(np.where(all_, 1.0, np.where(some, special.betainc(alpha, beta, 1 - share), 0.0)))


def _blocks(rows: float, low: float, high: float) -> NDArray[np.float64]:
    """First elements of blocks of 0 … rows that are fine where a binomial share between two limits can be."""
    spread = 6 * np.sqrt(rows * 0.25 * min(1.0, 4 * max(high, 1 / max(rows, 1)))) + 6
    start, end = max(0.0, np.floor(rows * low - spread)), min(rows, np.ceil(rows * high + spread))
    return np.unique(np.concatenate(([0.0], np.floor(np.linspace(start, end, BLOCKS)))))


def _with_observed(
    most: NDArray[np.float64], blocks: NDArray[np.float64], count: float, inner_count: float
) -> NDArray[np.float64]:
    """A region with the outcome that was observed, and those with less of the first count, whatever was rounded."""
    return np.where(blocks <= count, np.maximum(most, inner_count), most)


class _Test(Protocol):
    """A test of a value: its region, and the shares that have the value or less."""

    region: _Region
    observed: float
    low: float
    high: float

    def inner(self, shares: NDArray[np.float64], psi: float) -> NDArray[np.float64]:
        """The other share, at which the value is ψ: below 0 where it is less for every one, above 1 where more."""

    def ends(self, psi: float) -> tuple[float, float]:
        """The first shares at which the other is 1, and 0."""

    def distances(self, shares: NDArray[np.float64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distances of neighbours, in standard errors: at least as long as the curve between them."""


class _TwoShares:
    """Two independent binomial counts."""

    def __init__(
        self,
        curve: LevelCurve,
        order: LevelCurve,
        first: tuple[float, float],
        second: tuple[float, float],
        estimate: float,
        error: float,
    ) -> None:
        (count, rows), (inner_count, inner_rows) = first, second
        self.curve, self.inner_rows = curve, inner_rows
        self.observed = float(count / max(rows, 1))
        self.low, self.high = (float(limit) for limit in share_limits(count, rows, error))
        blocks = _blocks(rows, self.low, self.high)
        reached = order.second(blocks / max(rows, 1), estimate - 1e-9 * max(1.0, abs(estimate)))
        # A curve that is bisected is known to 1e-9; an outcome too many makes the limit cautious, one too few wrong.
        most = np.minimum(np.floor(inner_rows * reached + (1e-8 * inner_rows + 1e-7)), inner_rows)
        self.region = _Region(
            blocks, _with_observed(most, blocks, count, inner_count), np.full(len(blocks), float(inner_rows)), rows
        )

    def inner(self, shares: NDArray[np.float64], psi: float) -> NDArray[np.float64]:
        return np.asarray(self.curve.second(shares, psi), dtype=float)

    def ends(self, psi: float) -> tuple[float, float]:
        at_one, at_zero = np.asarray(self.curve.first(np.array([1.0, 0.0]), psi), dtype=float)
        return float(at_one), float(at_zero)

    def distances(self, shares: NDArray[np.float64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_angle(shares) * np.sqrt(self.region.rows) + _angle(inner) * np.sqrt(self.inner_rows))

    def length(self, psi: float) -> float:
        """Length of the curve, about: what the search costs."""
        shares = np.linspace(self.low, self.high, 9)
        return float(self.distances(shares, np.clip(self.inner(shares, psi), 0.0, 1.0)).sum())


class _ThreeParts:
    """Multinomial counts of three kinds of rows, the worst first: its share, and that of the middle among the rest."""

    def __init__(
        self,
        numerators: NDArray[np.float64],
        denominators: NDArray[np.float64],
        counts: NDArray[np.float64],
        estimate: float,
        error: float,
    ) -> None:
        self.numerators, self.denominators = numerators, denominators
        rows = float(counts.sum())
        self.observed = float(counts[0] / rows)
        self.low, self.high = (float(limit) for limit in share_limits(counts[0], rows, error))
        blocks = _blocks(rows, self.low, self.high)
        worst, middle, best = numerators - estimate * denominators
        left = rows - blocks
        enough = left * best + blocks * worst
        scale = float(np.abs(np.array([worst, middle, best])).max())
        if best - middle > 1e-12 * scale:
            # What cancels in the differences is rounded to the size of what is subtracted, not to that of the rest.
            rounding = 1e-13 * rows * float(np.abs(numerators).max() + abs(estimate) * np.abs(denominators).max())
            most = np.floor((enough + rounding) / (best - middle) + 1e-9 * max(1.0, rows))
        else:
            most = np.where(enough >= -1e-9 * scale * rows, left, -1.0)
        most = _with_observed(np.minimum(most, left), blocks, counts[0], counts[1])
        self.region = _Region(blocks, most, left, rows)

    def inner(self, shares: NDArray[np.float64], psi: float) -> NDArray[np.float64]:
        worst, middle, best = self.numerators - psi * self.denominators
        left = 1 - shares
        above = best * left + shares * worst
        below = (best - middle) * left
        out = np.where(above > 0, 2.0, -1.0)
        return np.asarray(np.divide(above, below, out=out, where=below > 0))

    def ends(self, psi: float) -> tuple[float, float]:
        worst, middle, best = (float(worth) for worth in self.numerators - psi * self.denominators)

        def end(other: float) -> float:
            """The share of the worst at which a mixture with the other is worth nothing."""
            if other <= 0:
                return 0.0
            return 2.0 if worst >= 0 else other / (other - worst)

        return end(middle), end(best)

    def distances(self, shares: NDArray[np.float64], inner: NDArray[np.float64]) -> NDArray[np.float64]:
        left = np.sqrt(1 - np.minimum(shares[1:], shares[:-1]))
        return np.asarray((_angle(shares) + left * _angle(inner)) * np.sqrt(self.region.rows))


def _angle(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances of neighbouring shares in the scale in which a binomial share has the standard error 1/√n."""
    return np.asarray(np.abs(np.diff(2 * np.arcsin(np.sqrt(shares)))))


def _limit(test: _Test, least: float, estimate: float, error: float) -> float:
    """The largest value below the estimate such that it is rejected, and with it every smaller one.

    The largest probability along the curve grows with the value. So wherever a point of the curve is still too likely,
    the limit is below: solve for that point, look for the likeliest one on the curve of the solution, and go on.
    """
    if not estimate > least:
        return least
    precision = 1e-7 * max(1.0, abs(estimate), abs(least))
    step = (estimate - least) * min(0.25, 2 / np.sqrt(test.region.rows + 1))
    low, high = _to_angle(np.array(_range(test, estimate) or (test.low, test.high)))
    place = float(np.clip((_to_angle(test.observed) - low) / (high - low), 0.0, 1.0)) if high > low else 0.5
    found = _solved(test, place, estimate, least, step, error * (1 - MARGIN), precision)
    slack = precision
    while found > least:
        likely, place, is_bound = _likeliest(test, found, error)
        if likely <= error:
            return found
        if is_bound:  # no point to solve for: further and further down, until a bound suffices
            slack *= 2
        step = max(step / 4, 4 * precision)
        found = min(_solved(test, place, found, least, step, error * (1 - MARGIN), precision), found - slack)
    return least


def _range(test: _Test, psi: float) -> tuple[float, float] | None:
    """The possible first shares between which the curve of a value runs; None where all have larger values.

    Beyond the upper one the other share is 0, and the region gets less likely.
    """
    start, end = test.ends(psi)
    if start > test.high:
        return None
    low = max(test.low, start)
    return low, min(test.high, max(end, low))


def _likeliest(test: _Test, psi: float, error: float = 0.0) -> tuple[float, float, bool]:
    """The largest probability of the region where the value is ψ or less, and the place on the curve at which it is.

    Where it is at most `error`, that is all that is said. The last is whether a bound was needed instead of a point.
    """
    found = _range(test, psi)
    if found is None:
        return 0.0, 1.0, False
    low, high = found
    shares, probability, left = _points(test, psi, low, high, error)
    tops = np.flatnonzero(probability >= 0.9 * probability.max())
    after, before = np.minimum(tops + 1, len(shares) - 1), np.maximum(tops - 1, 0)
    peaks = tops[(probability[tops] >= probability[after]) & (probability[tops] >= probability[before])]
    peaks = peaks[np.argsort(-probability[peaks])][:3]
    angles = np.interp((peaks[:, None] + ZOOM).ravel(), np.arange(len(shares)), _to_angle(shares))
    closer = np.clip(_to_share(angles), low, high)
    refined = test.region.probability(closer, np.clip(test.inner(closer, psi), 0.0, 1.0))
    every, where = np.concatenate((probability, refined)), np.concatenate((shares, closer))
    best = int(np.argmax(every))
    largest = float(every[best])
    ends = _to_angle(np.array([low, high]))
    place = float((_to_angle(where[best]) - ends[0]) / (ends[1] - ends[0])) if ends[1] > ends[0] else 0.5
    return max(largest, left), place, left > max(largest, error)


def _points(
    test: _Test, psi: float, low: float, high: float, error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Points on the curve of a value, the probability at each, and a bound for gaps that are still wide.

    Branch and bound: gaps are divided, until they are narrow or are known to hold nothing larger than `error` or than
    what was found.
    """
    shares = _to_share(np.linspace(_to_angle(low), _to_angle(high), 17))
    shares[0], shares[-1] = low, high  # to the last digit: the curve may end there
    inner = np.clip(test.inner(shares, psi), 0.0, 1.0)
    probability = test.region.probability(shares, inner)
    for round_ in range(ROUNDS):
        gaps = test.distances(shares, inner)
        wide = np.flatnonzero(gaps > SPACING * (1 + 1e-6))
        bounds = _bounds(test, shares, inner, probability, gaps, wide)
        enough = max(error, float(probability.max()))
        wide, bounds = wide[bounds > enough], bounds[bounds > enough]
        if not len(wide) or round_ == ROUNDS - 1 or len(shares) > MOST_POINTS:
            break
        parts = np.clip(np.ceil(gaps[wide] / SPACING), 2, 16).astype(int)
        gap = np.repeat(wide, parts - 1)
        inside = (np.arange(len(gap)) - np.repeat(np.cumsum(parts - 1) - (parts - 1), parts - 1) + 1) / np.repeat(
            parts, parts - 1
        )
        angles = _to_angle(shares)
        new = np.clip(_to_share(angles[gap] + inside * np.diff(angles)[gap]), shares[gap], shares[gap + 1])
        new_inner = np.clip(test.inner(new, psi), 0.0, 1.0)
        new_probability = test.region.probability(new, new_inner)
        shares, inner, probability = (
            np.insert(all_, gap + 1, some)
            for all_, some in ((shares, new), (inner, new_inner), (probability, new_probability))
        )
    return shares, probability, float(bounds.max(initial=0.0))


def _bounds(
    test: _Test,
    shares: NDArray[np.float64],
    inner: NDArray[np.float64],
    probability: NDArray[np.float64],
    gaps: NDArray[np.float64],
    wide: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Bounds of the probability between the neighbours of some gaps.

    The region gets less likely with either share, so that the better end of both bounds it. And |d arcsin √p| is at
    most half of the curve's length (Cauchy–Schwarz).
    """
    if not len(wide):
        return np.empty(0)
    corner = test.region.probability(shares[wide], np.minimum(inner[wide], inner[wide + 1]))
    turned = np.arcsin(np.sqrt(np.clip(probability, 0.0, 1.0)))
    between = (turned[wide] + turned[wide + 1]) / 2 + gaps[wide] / 4
    return np.asarray(np.minimum(corner, np.sin(np.minimum(between, np.pi / 2)) ** 2))


def _to_angle(share: Any) -> Any:
    return np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0)))


def _to_share(angle: Any) -> Any:
    return np.sin(angle) ** 2


def _solved(
    test: _Test, place: float, start: float, least: float, step: float, error: float, precision: float
) -> float:
    """The value below `start` at which the region has the probability `error` at one place on the curve, or `least`.

    The place is where it is between the curve's ends, which move with the value.
    """

    def excess(psi: float) -> float:
        """In units of the normal distribution, in which it is nearly a straight line."""
        probability = 0.0
        if (found := _range(test, psi)) is not None:
            low, high = found
            between = float(_to_share(_to_angle(low) + place * (_to_angle(high) - _to_angle(low))))
            share = np.array([low if place == 0 else high if place == 1 else min(max(between, low), high)])
            probability = float(test.region.probability(share, np.clip(test.inner(share, psi), 0.0, 1.0))[0])
        return float(special.ndtri(min(max(probability, 1e-300), 1 - 1e-16)) - special.ndtri(error))

    high = start
    if excess(high) <= 0:
        return start
    low = max(least, high - step)
    while excess(low) > 0:
        if low <= least:
            return least
        step *= 2
        low, high = max(least, low - step), low
    return max(least, float(optimize.brentq(excess, low, high, xtol=precision)) - precision)
