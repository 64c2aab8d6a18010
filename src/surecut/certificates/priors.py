"""The share of positives: whether a metric depends on it, and where it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut.certificates.confidence import share_limits
from surecut.metrics import LinearFractionalMetric, Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIORS = 33
"""Priors between their limits at which the worst case is looked for."""

PRIORS_COMPARED = np.array([0.013, 0.07, 0.191, 0.31, 0.44, 0.5, 0.587, 0.7, 0.83, 0.937, 0.982])
"""Priors at which it is decided whether a metric depends on the prior."""

RATES = np.array([0.0, 0.02, 0.11, 0.3, 0.5, 0.63, 0.8, 0.97, 1.0])
"""Rates at which metrics that are no ratio are compared."""


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
