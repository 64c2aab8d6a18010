"""The share of positives: whether a metric depends on it, and where it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut.certificates.confidence import share_limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric

PRIORS = 33
"""Priors between their limits at which the worst case is looked for."""


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
    """Whether the metric changes with the prior at fixed true and false positive rates."""
    prior = np.array([0.2, 0.5, 0.8])
    values = metric.value(fp=0.3 * (1 - prior), fn=0.4 * prior, prior=prior)
    return bool(np.ptp(values) > 1e-9 * np.abs(values).max())
