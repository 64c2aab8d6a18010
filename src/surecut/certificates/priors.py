"""The share of positives: whether a metric depends on it, and where it can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import numpy as np

from surecut.certificates.confidence import share_limits
from surecut.confusion import Confusion
from surecut.metrics import LinearFractionalMetric, Metric, NotMonotoneError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Of = TypeVar("Of", bound=Metric)
Others = ParamSpec("Others")
Found = TypeVar("Found")

PRIORS = 33
"""Priors between their limits at which the worst case is looked for."""

PRIORS_COMPARED = np.unique(
    np.concatenate(
        (
            np.linspace(0, 1, 101)[1:-1],
            *(
                t * np.array([1, -1]) + np.array([0, 1])
                for t in (1e-6, 1e-4, 0.0013, 0.0037, 0.0071, 0.191, 0.3137, 0.4413)
            ),
        )
    )
)
"""Priors at which it is decided whether a metric depends on the prior, and how."""

CLOSER = np.array([-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75])
"""Where a worst case is looked for around the worst prior so far, in units of the distance to its neighbours, …"""

CLOSER_STILL = 3
"""… and how often, a quarter as far each time."""

RATES = np.array([0.0, 0.02, 0.11, 0.3, 0.5, 0.63, 0.8, 0.97, 1.0])
"""Rates at which metrics that are no ratio are compared."""


def cached_by_metric(function: Callable[Concatenate[Of, Others], Found]) -> Callable[Concatenate[Of, Others], Found]:
    """Compute a property of a metric once: limits of many cells, errors or labels ask for it again and again."""
    cached = lru_cache(maxsize=256)(function)

    @wraps(function)
    def found(metric: Of, /, *args: Others.args, **kwargs: Others.kwargs) -> Found:
        if not _is_hashable(metric):  # parameters of one's own that cannot be hashed
            return function(metric, *args, **kwargs)
        return cached(metric, *args, **kwargs)  # type: ignore[arg-type]  # the others are numbers

    return found


def _is_hashable(metric: Metric) -> bool:
    try:
        hash(metric)
    except TypeError:
        return False
    return True


def possible_priors(
    metric: Metric, positives: float, rows: float, error: float, given: float | None, share: float, points: int
) -> tuple[NDArray[np.float64], float]:
    """Priors that must be reckoned with, and the error that is left for the rest."""
    if given is not None:
        return np.array([given]), error
    if not depends_on_prior(metric):
        return np.array([positives / rows]), error
    low, high = share_limits(positives, rows, error * share / 2)
    return np.linspace(low, high, points), error * (1 - share)


def worst_over_priors(
    values: Callable[[NDArray[np.float64]], NDArray[np.float64]], priors: NDArray[np.float64], largest: bool = False
) -> NDArray[np.float64]:
    """The least (or largest) value of each column over all priors between the first and the last of an even grid.

    `values` takes priors of shape (k, 1), or (k, columns), and returns values of shape (k, columns).
    """
    sign = -1.0 if largest else 1.0
    found = sign * values(priors[:, None])
    worst = found.min(axis=0)
    if len(priors) < 2 or priors[0] == priors[-1]:
        return np.asarray(sign * worst)
    centre, step = priors[found.argmin(axis=0)], float(priors[1] - priors[0])
    for _ in range(CLOSER_STILL):
        near = np.clip(centre + step * CLOSER[:, None], priors[0], priors[-1])
        found = sign * values(near)
        centre = np.take_along_axis(near, found.argmin(axis=0)[None], axis=0)[0]
        worst, step = np.minimum(worst, found.min(axis=0)), step / 4
    return np.asarray(sign * worst)


def require_monotone(metric: Metric, priors: NDArray[np.float64]) -> None:
    """Refuse a metric that grows with FP or FN at a prior that must be reckoned with."""
    try:
        metric.check_monotone(np.clip(priors, 1e-9, 1 - 1e-9))
    except NotMonotoneError as error:
        raise NotMonotoneError(
            f"{metric.name} grows with errors at a share of positives that these rows allow, {priors[0]:.3g} to "
            f"{priors[-1]:.3g}, so that no limit can be given ({error}). Certify on more rows, if it is monotone at "
            "their own share of positives, or choose a metric that never grows with errors"
        ) from error


@cached_by_metric
def value_range(metric: Metric, undefined: float = math.nan) -> tuple[float, float]:
    """The least and the largest value that a metric can have, at any prior; its extremes stand at corners."""
    share = np.array([0.0, 1.0])

    def at(priors: NDArray[np.float64]) -> NDArray[np.float64]:
        prior = priors[:, None, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(metric.value(share[:, None] * (1 - prior), share[None, :] * prior, prior), dtype=float)

    priors = np.linspace(0, 1, 101)
    try:
        values = at(priors)
    except ArithmeticError:  # a coefficient of one's own that is defined inside only
        values = at(np.clip(priors, 1e-9, 1 - 1e-9))
    values = np.append(values[np.isfinite(values)], [] if math.isnan(undefined) else [undefined])
    least, most = (float(end) for end in (values.min(), values.max()))
    return _near_whole(least), _near_whole(most)


def _near_whole(value: float) -> float:
    """1 for the number after it, which a quotient of roots may be."""
    return float(round(value)) if abs(value - round(value)) <= 1e-14 * abs(value) else value


@cached_by_metric
def depends_on_prior(metric: Metric) -> bool:
    """Whether the metric changes with the prior at any fixed true and false positive rates.

    A linear-fractional metric is a ratio N/D of two linear functions of the rates, at every prior. Two such ratios are
    the same function where N₁D₂ = N₂D₁, coefficient by coefficient: that is decided for several priors. Other metrics
    are compared on a dense set of rates, corners included. In doubt a metric depends on the prior, which is safe.
    """
    if isinstance(metric, LinearFractionalMetric):
        return _ratios_differ(metric)
    fpr, fnr = np.meshgrid(RATES, RATES)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.array(
            [metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior) for prior in PRIORS_COMPARED], dtype=float
        )
    undefined = np.isnan(values)
    if (undefined.any(axis=0) != undefined.all(axis=0)).any():
        return True
    values = values[:, ~undefined.any(axis=0)]
    return bool((np.ptp(values, axis=0) > 1e-9 * max(float(np.abs(values).max(initial=0.0)), 1e-300)).any())


def _ratios_differ(metric: LinearFractionalMetric) -> bool:
    above, below = [], []
    for prior in PRIORS_COMPARED.tolist():
        scale = np.array([1.0, 1 - prior, prior])  # rates of a class as shares of all rows
        (numerator, denominator) = (np.array(side, dtype=float) * scale for side in metric.coefficients(prior))
        above.append(numerator)
        below.append(denominator)
    for numerator, denominator in zip(above[1:], below[1:], strict=True):
        first, second = np.outer(above[0], denominator), np.outer(numerator, below[0])
        difference = (first - second) + (first - second).T  # coefficients of the products, x y and y x together
        size = max(float(np.abs(first).max()), float(np.abs(second).max()))
        if np.abs(difference).max() > 1e-11 * size:
            return True
    return False


def is_defined(metric: Metric, cells: NDArray[np.float64]) -> bool:
    """Whether a metric has a value on rows with the counts (tp, fp, fn, tn)."""
    confusion = Confusion(*cells)
    try:
        metric.check_classes(confusion.positives, confusion.negatives)
    except ValueError:
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        return not np.isnan(float(metric.evaluate(confusion)))


def at_prior(confusion: Confusion, given: float | None) -> Confusion:
    """What metrics see: the counts, or the rates at the prior that was given."""
    return confusion if given is None else confusion.at_prior(given)
