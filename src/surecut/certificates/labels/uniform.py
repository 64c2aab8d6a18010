"""``method="uniform"`` for many labels: any rows, also those that tuned the cut. Valid for every sample size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import undefined_labels
from surecut.certificates.cells import cells_of
from surecut.certificates.confidence import least_shares, share_limits
from surecut.certificates.priors import PRIORS, require_monotone, value_range, worst_over_priors
from surecut.certificates.uniform import uniform_regret, uniform_value_limits
from surecut.progress import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.core.tally import ScoreTally
    from surecut.metrics import Metric

THRESHOLDS = 1024
"""Thresholds at which the bands of all labels are averaged."""


def uniform_macro(
    metric: Metric, tallies: list[ScoreTally], confusion: Confusion, error: float, progress: bool | None
) -> tuple[float, float, float]:
    """Each label's limits and regret at error / m, which hold together; a label of one class counts at its worst."""
    undefined = {i for i, _ in undefined_labels(metric, confusion)}
    least, most = value_range(metric)
    found = []
    for i, tally in shown(list(enumerate(tallies)), "labels", len(tallies), progress=progress):
        if i in undefined:
            found.append((least, most, most - least))
            continue
        at = confusion[i]
        each = error / len(tallies)
        found.append((*uniform_value_limits(metric, tally, at, each), uniform_regret(metric, tally, at, each)))
    lower, upper, regret = np.mean(found, axis=0)
    return float(lower), float(upper), float(regret)


Shares = Callable[[Any, Any, float], Any]
"""(counts, rows, error) → lower limits of shares, one of each label in the last axis."""


def single_shares(counts: Any, rows: Any, error: float) -> Any:
    """Lower limits at a threshold that these rows did not choose."""
    return share_limits(counts, rows, error)[0]


def simultaneous_shares(counts: Any, rows: Any, error: float) -> Any:
    """Lower limits for all thresholds at once."""
    columns = [least_shares(counts[..., i] / n, int(n), error) for i, n in enumerate(rows)]
    return np.stack(columns, axis=-1)


class PooledRates:
    """Limits of FP and FN as shares of all pairs of row and label, from limits of each label at error / 3m.

    `rows` and `positives` are those of each label; the priors are between the limits of the pooled one.
    """

    def __init__(self, confusion: Confusion, shares: Shares, error: float, sides: int) -> None:
        self.rows, positives = np.asarray(confusion.total, dtype=float), confusion.positives
        self.weight = self.rows / self.rows.sum()
        self.shares, self.error = shares, error / 3 / len(self.rows) / sides
        low, high = (limit @ self.weight for limit in share_limits(positives, self.rows, error / 6 / len(self.rows)))
        self.priors = np.linspace(low, high, PRIORS)

    def least(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """Of counts with the labels in the last axis."""
        return np.asarray(self.shares(counts, self.rows, self.error) @ self.weight)

    def most(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        return 1 - self.least(self.rows - counts)

    def worst(self, metric: Metric, fp: Any, fn: Any) -> Callable[[Any], NDArray[np.float64]]:
        """The metric at the largest rates that are possible, as a function of priors."""
        return self._valued(metric, self.most(fp), self.most(fn), value_range(metric)[0])

    def best(self, metric: Metric, fp: Any, fn: Any) -> Callable[[Any], NDArray[np.float64]]:
        """The metric at the least rates that are possible."""
        return self._valued(metric, self.least(fp), self.least(fn), value_range(metric)[1])

    @staticmethod
    def _valued(metric: Metric, fp: Any, fn: Any, undefined: float) -> Callable[[Any], NDArray[np.float64]]:
        fp, fn = np.atleast_1d(fp), np.atleast_1d(fn)

        def values(prior: Any) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore", divide="ignore"):
                value = metric.value(fp, np.minimum(fn, prior), prior)
            return np.where(np.isnan(value), undefined, value)

        return values


def pooled_limits(metric: Metric, confusion: Confusion, shares: Shares, error: float) -> tuple[float, float]:
    """Limits of the pooled value."""
    rates = PooledRates(confusion, shares, error, sides=1)
    require_monotone(metric, rates.priors)
    fp, fn = confusion.fp, confusion.fn
    return (
        float(worst_over_priors(rates.worst(metric, fp, fn), rates.priors)[0]),
        float(worst_over_priors(rates.best(metric, fp, fn), rates.priors, largest=True)[0]),
    )


def uniform_micro(
    metric: Metric, tallies: list[ScoreTally], confusion: Confusion, error: float
) -> tuple[float, float, float]:
    """Bands of each label's FP and FN at error / m, at one threshold for all labels, added up.

    Between two of the thresholds that are looked at, a rival has at least the FP of the higher and the FN of the lower.
    """
    lower, upper = pooled_limits(metric, confusion, simultaneous_shares, error)
    every = np.unique(np.concatenate([tally.scores[:: max(1, len(tally) // THRESHOLDS)] for tally in tallies]))[::-1]
    every = np.append(every[:: max(1, len(every) // THRESHOLDS)], -np.inf)
    at = [cells_of(tally.confusion_at(every))[:, 1:3] for tally in tallies]
    fp, fn = np.stack(at, axis=1).transpose(2, 0, 1)
    higher = np.concatenate((np.zeros_like(fp[:1]), fp[:-1]))
    rates = PooledRates(confusion, simultaneous_shares, error, sides=2)
    best, worst = rates.best(metric, higher, fn), rates.worst(metric, confusion.fp, confusion.fn)
    ahead = worst_over_priors(lambda prior: best(prior) - worst(prior), rates.priors, largest=True)
    return lower, upper, float(max(0.0, ahead.max()))
