"""Limits for independent clusters of rows that depend on each other: patients with several rows, rows with many labels.

What is independent is the cluster: the rows of a group, or the labels of a row. A cluster adds its counts to a
numerator A and a denominator B, and the value is the ratio of their means, E A / E B, over clusters: the metric of all
rows (all pairs of row and label) pooled. "The value is at most ψ" says that A − ψB has no positive mean, and A − ψB is
bounded, because a cluster has so many rows at most. That is a bet: a gambler who stakes on A − ψB, cluster after
cluster, cannot expect to gain, and multiplies a stake by 1/error with probability `error` at most, whatever the
distribution (Ville's inequality). A value at which the gambler does so is rejected, and the least value that is not is
the limit.

The gambler wants 1/error at the end and nothing else, which is what buys a binary option: the stake at each step is the
hedge of that option (Bachelier's), from the wealth that there is, the variance seen so far and the steps that are left.
In the limit this is the test by the normal distribution, and as narrow; for few clusters it is wider, and still valid.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special, stats

from surecut.certificates.bands import Bands
from surecut.certificates.cells import ClusterCells, cells_of, slopes_of
from surecut.certificates.limits import counted_kinds, row_worth, value_of_share
from surecut.certificates.priors import PRIORS, depends_on_prior
from surecut.confusion import Confusion
from surecut.metrics import LinearFractionalMetric, Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_ORDER = (
    "the {what} come in an order that has nothing to do with what they hold: not sorted by class, score or mistakes"
)

GROUPS = "the groups are a random sample, independent of one another, and none has more rows than the largest here"

UNEQUAL = 3.0
"""Groups are unequal where the largest has so many times the rows of the mean one, …"""

CLOSEST = 0.05
"""… and it matters where limits cannot come closer to the value than this."""

STEPS = 20_000
"""More clusters than this are added up in blocks, each of which is one step of the bet."""

SLACK = 0.2
"""The option pays this much more than is needed, so that what cannot be hedged at the end is not missed."""

CAUTION = 0.3
"""How much of its largest possible size a variance from few steps is taken to exceed its estimate by."""

AT_ONCE = 34
"""Values that are tried together."""

MOST_COMPARED = 2_000
"""Clusters in a row that are compared with their neighbours; more are added up in blocks first."""

SORTED = 1e-3
"""The probability with which clusters in an order that means nothing may be taken for sorted ones."""

_WEALTH = np.concatenate(([0.0], np.geomspace(1e-12, 0.01, 300), np.linspace(0.01, 0.99, 1500)[1:-1]))
_WEALTH = np.concatenate((_WEALTH, 1 - np.geomspace(0.01, 1e-12, 300), [1.0]))
_HEDGE = np.concatenate(([0.0], np.exp(-(special.ndtri(_WEALTH[1:-1]) ** 2) / 2) / np.sqrt(2 * np.pi), [0.0]))
"""φ(Φ⁻¹(u)), the hedge of an option that is worth u of its payment; straight lines between the points, so concave."""


def least_ratio(
    numerators: NDArray[np.float64],
    denominators: NDArray[np.float64],
    reach: float,
    values: tuple[float, float],
    error: float,
) -> float:
    """Lower limit of E A / E B from independent clusters (A, B), B not negative.

    Parameters
    ----------
    numerators, denominators
        A and B of each cluster.
    reach
        How far A can be below B times the largest value, whatever the cluster.
    values
        The least and the largest value v that there is: A is at least, and at most, v B in every cluster. The least one
        is returned if nothing better can be said. Where A can be more than B times any value, the largest one that is
        considered.
    error
        The probability with which the limit may fail.

    Notes
    -----
    On a scale on which values reach from 0 to 1, A is between 0 and B, and A − ψB not below −ψ · reach. The stake is
    the least of two: of a concave function of the wealth, 0 at the payment, and of the wealth over ψ · reach. So more
    wealth stays more wealth, whatever the next cluster, until the payment is reached. And at a smaller ψ a stake is not
    smaller, but at most by so much larger that stake times ψ is not. Hence a gain is not smaller at a smaller ψ, and a
    loss, stake · ψ · (B − A/ψ), not larger. So a value that is smaller never leaves the gambler poorer, the rejected
    values are those below a limit, and it can be searched for.

    A gambler who knows the order in which clusters come could bet on it. So that order must have nothing to do with
    what they hold: where it is exchangeable, it stays so under the permutation that is applied here, which a hash of
    the clusters chooses whatever their order. `require_no_order` refuses what is visibly sorted.
    """
    least, most = values
    if not (most > least and reach > 0) or not denominators.any():
        return least
    a, b = _steps((numerators - least * denominators) / (most - least), denominators)
    reach *= int(np.ceil(len(numerators) / len(a))) / (most - least)

    def edge(below: float, above: float, rounds: int) -> float | None:
        """The largest value that is rejected, to a small part of the interval; None where its lower end is not."""
        for _ in range(rounds):
            tried = np.linspace(below, above, AT_ONCE)
            rejected = _is_rejected(a, b, tried, reach, error)
            if rejected.all():
                return float(above)
            first = int(np.argmin(rejected))
            if first == 0:
                return None
            below, above = tried[first - 1], tried[first]
        return float(below)

    estimate = float(a.sum() / b.sum())
    spread = float(np.sqrt(((a - estimate * b) ** 2).sum()) / b.sum())
    start, end = (float(np.clip(estimate - by * spread, 0.0, 1.0)) for by in (8.0, 0.0))
    found = edge(start, end, 2) if start < end else None  # where it is as a rule
    if found is None:
        found = edge(0.0, max(start, end), 3)
    return least if found is None else least + (most - least) * found


def bounded_mean_limits(
    values: NDArray[np.float64], extremes: tuple[float, float], error: float
) -> tuple[float, float]:
    """Lower and upper limit of the mean of independent values, none of which is beyond the extremes."""
    (least, most), one = extremes, np.ones(len(values))
    return (
        least_ratio(values, one, most - least, (least, most), error),
        -least_ratio(-values, one, most - least, (-most, -least), error),
    )


def permutation(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.intp]:
    """Another order than the one in which clusters came.

    The permutation depends on which clusters there are, not on their order, and is applied to the order given. Applied
    to sorted clusters it would give each sample one fixed order, and the gambler could gain by it.
    """
    ordered = np.lexsort((b, a))
    seed = hashlib.sha256(a[ordered].tobytes() + b[ordered].tobytes()).digest()
    return np.random.default_rng(np.frombuffer(seed, dtype=np.uint32)).permutation(len(a))


def _steps(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The clusters in another order than they came, in blocks if they are many."""
    order = permutation(a, b)
    a, b = a[order], b[order]
    if len(a) > STEPS:
        starts = np.arange(0, len(a), int(np.ceil(len(a) / STEPS)))
        a, b = np.add.reduceat(a, starts), np.add.reduceat(b, starts)
    return a, b


def _stakes(
    a: NDArray[np.float64], b: NDArray[np.float64], values: NDArray[np.float64], reach: float
) -> NDArray[np.float64]:
    """One over the standard deviation of what is left to come, at each step and value: from the steps before it.

    Of few steps the variance is taken to be larger than it seems, but never larger than that of A between 0 and B with
    the mean ψB. It does not fall in ψ, and rises less than ψ² does.
    """
    seen = np.arange(len(a))
    (sum_a, sum_b, sum_aa, sum_ab, sum_bb) = (
        np.concatenate(([0.0], np.cumsum(terms)[:-1])) for terms in (a, b, a * a, a * b, b * b)
    )
    ratio = np.divide(sum_a, sum_b, out=np.zeros_like(sum_a), where=sum_b > 0)
    squares = np.maximum(sum_aa - 2 * ratio * sum_ab + ratio**2 * sum_bb, 0.0)[:, None]
    largest = ((sum_bb + reach**2) / (seen + 1))[:, None]
    often = np.maximum(seen, 1e-4)[:, None]
    share = np.minimum(values, 0.5)
    variance = np.minimum(
        squares / often + CAUTION * values * largest * len(a) / often**2, share * (1 - share) * largest
    )
    return np.asarray(1 / np.sqrt(variance * (len(a) - seen)[:, None]))


def _is_rejected(
    a: NDArray[np.float64], b: NDArray[np.float64], values: NDArray[np.float64], reach: float, error: float
) -> NDArray[np.bool_]:
    """At which values the wealth comes to 1/error; it is told as a share of what the option pays."""
    values = np.maximum(values, 1e-12)
    wealth = np.full(len(values), error * (1 - SLACK))
    most = wealth.copy()
    for of_a, of_b, stake in zip(a.tolist(), b.tolist(), _stakes(a, b, values, reach), strict=True):
        bet = stake * np.interp(wealth, _WEALTH, _HEDGE)
        np.minimum(bet, wealth / (values * reach), out=bet)
        wealth += bet * (of_a - values * of_b)
        np.clip(wealth, 0.0, 1.0, out=wealth)
        np.maximum(most, wealth, out=most)
    return np.asarray(most >= 1 - SLACK)


def ratio_limits(
    counts: NDArray[np.float64], worth: tuple[NDArray[np.float64], NDArray[np.float64]], largest: float, error: float
) -> tuple[float, float]:
    """Lower and upper limit of Σ n E c / Σ d E c for clusters with counts c of each kind, `largest` in all at most."""
    kinds, counts = counted_kinds(worth, counts)
    (numerators, denominators) = kinds
    if len(numerators) == 2:  # a share, and the value is a function of it
        better, value = value_of_share(numerators, denominators)
        a, b = counts[:, better], counts.sum(axis=1)
        low = least_ratio(a, b, largest, (0.0, 1.0), error)
        high = -least_ratio(-a, b, largest, (-1.0, 0.0), error)
        return float(value(low)), float(value(high))
    extremes = numerators / denominators
    least, most = float(extremes.min()), float(extremes.max())
    below, above = (most * denominators - numerators).max(), (numerators - least * denominators).max()
    a, b = counts @ numerators, counts @ denominators
    return (
        least_ratio(a, b, largest * float(below), (least, most), error),
        -least_ratio(-a, b, largest * float(above), (-most, -least), error),
    )


RECALL = (np.array([1.0, 0, 0, 0]), np.array([1.0, 0, 1, 0]))
SPECIFICITY = (np.array([0.0, 0, 0, 1]), np.array([0.0, 1, 0, 1]))
PRIOR = (np.array([1.0, 0, 1, 0]), np.ones(4))


def cluster_limits(metric: Metric, cells: NDArray[np.float64], largest: float, error: float) -> tuple[float, float]:
    """Lower and upper limit of a metric from each cluster's counts (tp, fp, fn, tn), a row a cluster.

    Where a row of each cell is worth something constant above and below the bar, by one bet on the value itself. Else
    by limits of recall, specificity and, where it matters, of the prior, at the worst of what they allow.
    """
    worth = row_worth(metric)
    if worth is not None and is_ratio(worth):
        return ratio_limits(cells, worth, largest, error)
    parts = 3 if depends_on_prior(metric) else 2
    recall = ratio_limits(cells, RECALL, largest, error / parts)
    specificity = ratio_limits(cells, SPECIFICITY, largest, error / parts)
    fpr, fnr = (np.array([[1 - side] for side in limits[::-1]]) for limits in (specificity, recall))
    if parts == 3:
        low, high = ratio_limits(cells, PRIOR, largest, error / parts / 2)
        priors = np.linspace(low, high, PRIORS)
    else:
        priors = np.array([0.5])
    box = Bands((fpr[0], fpr[1]), (fnr[0], fnr[1]), priors)
    return float(box.limit(metric, best=False)[0]), float(box.limit(metric, best=True)[0])


def require_no_order(metric: Metric, cells: ClusterCells, what: str) -> None:
    """Refuse clusters that are visibly sorted by what is bet on: by what they add to the value, or by their positives.

    Neighbours that are more alike than chance explains show it, by the ranks of both quantities.
    """
    totals = cells_of(cells.confusion())
    step = 1e-6 * np.maximum(totals.sum(axis=1), 1.0)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = slopes_of(lambda at: np.asarray(metric.evaluate(Confusion(*at.T))), totals + step, step)
    positives = np.tile([1.0, 0.0, 1.0, 0.0], (cells.labels, 1))
    for weights in (np.where(np.isfinite(slopes), slopes, 0.0), positives):
        if is_sorted(cells.worth(weights)):
            raise sorted_clusters(what)


def sorted_clusters(what: str) -> ValueError:
    """The error for clusters that are visibly sorted."""
    return ValueError(
        f"the {what} come sorted: neighbours are more alike than chance explains, and limits of {what} need an order "
        f"that has nothing to do with what they hold. Put whole {what} in an order drawn by random numbers of your own "
        "first, and keep it, whatever the limits then are; or use method='bootstrap'"
    )


def is_sorted(worth: NDArray[np.float64], error: float = SORTED / 2) -> bool:
    """Whether neighbours have more similar ranks than under all but a part `error` of the permutations."""
    size = int(np.ceil(len(worth) / MOST_COMPARED))
    worth = worth[: len(worth) // size * size].reshape(-1, size).sum(axis=1)
    ranks = stats.rankdata(np.round(worth, 12))
    ranks -= ranks.mean()
    number, squares = len(ranks), float(ranks @ ranks)
    together = float(ranks[1:] @ ranks[:-1])
    if number < 3 or not squares or together < squares * (2 / np.sqrt(number) - 1 / number):
        return False  # not even two standard errors above the mean, which decides nearly always
    rng = np.random.default_rng(0)
    draws = int(np.ceil(4 / error))
    most, as_much = int(error * draws) - 1, 0
    for _ in range(0, draws, 250):
        drawn = rng.permuted(np.broadcast_to(ranks, (250, number)), axis=1)
        as_much += int((np.sum(drawn[:, 1:] * drawn[:, :-1], axis=1) >= together * (1 - 1e-12)).sum())
        if as_much > most:
            return False
    return True


def unequal_note(sizes: NDArray[np.float64], error: float) -> str:
    """What to say where one group is so large that the limits are wide whatever the others hold.

    A bet on a value ψ multiplies its stake by at most 1 + (1/ψ − 1) · (rows of a group) / (rows of the largest) at each
    group, however good the group is. So where all groups are right, 1/ψ − 1 is log(1/error) · largest / rows at least.
    """
    largest, mean = float(sizes.max()), float(sizes.mean())
    away = 1 - 1 / (1 - np.log(error) * largest / float(sizes.sum()))
    if largest < UNEQUAL * mean or away < CLOSEST:
        return ""
    return (
        f"The limits are wide because the groups are of unequal size: the largest has {largest:,.0f} of "
        f"{sizes.sum():,.0f} rows, {largest / mean:,.0f} times the mean. They hold for groups of that size, all wrong "
        f"or all right, and come no closer than about {away:.2g} to the value, on a scale from 0 to 1. Bound "
        "the rows of a group by a rule that is fixed beforehand, or use method='bootstrap', which is right for many "
        "groups."
    )


def is_ratio(worth: tuple[Any, Any]) -> bool:
    """Whether no row is worth less than nothing below the bar, nor anything above it alone."""
    numerators, denominators = worth
    return bool((denominators >= 0).all() and not numerators[denominators == 0].any())


def terms_of(metric: Metric) -> list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] | None:
    """A metric as a sum of ratios, (factor, worth above the bar, worth below it); None where it is no such sum."""
    from surecut.metrics import AM

    if isinstance(metric, AM):
        return [(0.5, *RECALL), (0.5, *SPECIFICITY)]
    worth = row_worth(metric) if isinstance(metric, LinearFractionalMetric) else None
    return [(1.0, *worth)] if worth is not None and is_ratio(worth) else None
