"""Bands: limits of the error rates that hold for every threshold at once, for every sample size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.certificates.confidence import least_shares
from surecut.certificates.priors import (
    PRIORS,
    depends_on_prior,
    possible_priors,
    require_monotone,
    value_range,
    worst_over_priors,
)
from surecut.certificates.weights import frequencies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.core.tally import ScoreTally
    from surecut.metrics import Metric

    Classes = Iterable[Any]
    """Numbers of negatives and of positives."""


@dataclass(frozen=True)
class Bands:
    """Limits of the false positive and the false negative rate of some thresholds, and of the prior, all at once."""

    fpr: tuple[NDArray[np.float64], NDArray[np.float64]]
    fnr: tuple[NDArray[np.float64], NDArray[np.float64]]
    priors: NDArray[np.float64]

    def value(self, metric: Metric, best: bool) -> NDArray[np.float64]:
        """The metric at the best (or worst) rates that are possible: a row for every prior, a column a threshold."""
        return self.value_at(metric, best, self.priors[:, None])

    def value_at(self, metric: Metric, best: bool, prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same at other priors, as a column, or with a column for each threshold."""
        fpr, fnr = (self.fpr[0], self.fnr[0]) if best else (self.fpr[1], self.fnr[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior))

    def limit(self, metric: Metric, best: bool) -> NDArray[np.float64]:
        """The best (or worst) value over all priors that are possible, of each threshold.

        Where it is undefined, as at a prior of 0, it can be any that the metric has.
        """
        require_monotone(metric, self.priors)
        ends = value_range(metric)

        def values(prior: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.clip(defined(self.value_at(metric, best, prior), ends, not best), *ends)

        return worst_over_priors(values, self.priors, largest=best)


def bands(
    metric: Metric, classes: Classes, prior: float | None, confusion: Confusion, error: float, sides: int
) -> Bands:
    """Bands that hold for every threshold at once, at the thresholds of some confusions, in numbers of rows.

    `classes` are all negatives and all positives. `sides` is 1 where only the lower or only the upper limits are used,
    2 where both are.
    """
    negatives, positives = (int(total) for total in classes)
    fixed = prior is not None or not depends_on_prior(metric)
    each = error / (2 if fixed else 3)
    priors, _ = possible_priors(metric, positives, positives + negatives, each, prior, 1.0, PRIORS)
    fpr = np.atleast_1d(confusion.fp) / max(negatives, 1)
    fnr = np.atleast_1d(confusion.fn) / max(positives, 1)
    return Bands(
        fpr=(least_shares(fpr, negatives, each / sides), 1 - least_shares(1 - fpr, negatives, each / sides)),
        fnr=(least_shares(fnr, positives, each / sides), 1 - least_shares(1 - fnr, positives, each / sides)),
        priors=priors,
    )


def band_limits(metric: Metric, confusion: Confusion, prior: float | None, error: float) -> tuple[float, float]:
    """Lower and upper limit of the value at a cut, each one-sided, whatever rows chose it, from its counts alone."""
    classes = (confusion.negatives, confusion.positives)
    one_sided = bands(metric, classes, prior, confusion, error, sides=1)
    return float(one_sided.limit(metric, best=False)[0]), float(one_sided.limit(metric, best=True)[0])


def curve_band(
    metric: Metric, tally: ScoreTally, confusion: Confusion, confidence: float, weights: str | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper limits of a metric's curve, which hold for every threshold at once, at some confusions.

    `weights` says what the rows' weights mean, as in `certify`.
    """
    counts = frequencies(tally, "the band of a curve", weights)
    both = bands(metric, counts.rows.sum(axis=0), counts.given_prior, confusion, 1 - confidence, sides=2)
    return both.limit(metric, best=False), both.limit(metric, best=True)


def defined(values: NDArray[np.float64], ends: tuple[float, float], worst: bool) -> NDArray[np.float64]:
    """Values with the metric's own extreme in place of undefined ones."""
    return np.where(np.isnan(values), ends[0] if worst else ends[1], values)
