"""Limits of a metric from the four counts of independent rows. Valid for every sample size.

Exact for accuracy, F₁, Jaccard, precision, recall and specificity; a little cautious for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.certificates.confidence import share_limits
from surecut.certificates.nuisance import has_one_order, three_part_limit, two_share_limit
from surecut.certificates.priors import (
    PRIORS,
    PRIORS_COMPARED,
    cached_by_metric,
    possible_priors,
    require_monotone,
    value_range,
    worst_over_priors,
)
from surecut.metrics import LinearFractionalMetric, Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIOR_SHARE = 0.2
"""The share of the error of a limit that is spent on the prior, where the metric depends on it."""


def value_limits(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None = None
) -> tuple[float, float, bool]:
    """Lower and upper limit of a metric from the counts (tp, fp, fn, tn) of independent rows; whether they are exact.

    A row of each cell is worth something above and below the bar. Where only two kinds of rows count, their ratio is
    a share (F₁: TP among TP + FP + FN) and the limits are Clopper–Pearson's. Three kinds leave one unknown share beside
    the value. For other metrics the classes are taken as given, and the prior, if it matters, within limits.
    """
    worth = None if given_prior is not None else row_worth(metric)
    if worth is not None:
        (numerators, denominators), counts = counted_kinds(worth, cells)
        if len(counts) == 2:
            better, value = value_of_share(numerators, denominators)
            low, high = share_limits(counts[better], counts.sum(), error)
            return float(value(low)), float(value(high)), True
        if len(counts) == 3 and has_one_order(numerators, denominators):
            lower = three_part_limit(numerators, denominators, counts, error)
            return lower, -three_part_limit(-numerators, denominators, counts, error), False
    return *_limits_by_class(metric, cells, error, given_prior), False


def counted_kinds(
    worth: tuple[NDArray[np.float64], NDArray[np.float64]], cells: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The kinds of rows that count, as columns (worth above and below the bar), and the counts of each.

    `cells` has the four cells in its last axis, the counts have the kinds there.
    """
    kinds, of_cell = np.unique(np.stack(worth), axis=1, return_inverse=True)
    counts = cells @ (of_cell.reshape(-1, 1) == np.arange(kinds.shape[1]))
    counting = (kinds != 0).any(axis=0)
    return kinds[:, counting], counts[..., counting]


def value_of_share(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64]
) -> tuple[int, Callable[[Any], Any]]:
    """Which of two kinds of rows is the better one, and the value where a share of the rows is of that kind."""
    (n0, n1), (d0, d1) = numerators, denominators
    if n1 * d0 > n0 * d1:
        return 1, lambda share: (n0 * (1 - share) + n1 * share) / (d0 * (1 - share) + d1 * share)
    return 0, lambda share: (n0 * share + n1 * (1 - share)) / (d0 * share + d1 * (1 - share))


def row_worth(metric: Metric) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """What a row of each cell (tp, fp, fn, tn) adds to the numerator and to the denominator, if that is constant.

    It is where the coefficients of FP and FN do not depend on the prior and the constant one is affine in it, at all of
    many priors. In doubt it is not constant, which is safe.
    """
    return _constant_worth(metric) if isinstance(metric, LinearFractionalMetric) else None


@cached_by_metric
def _constant_worth(metric: LinearFractionalMetric) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    at = np.array([np.concatenate(metric.coefficients(prior)) for prior in (0.25, 0.75, *PRIORS_COMPARED.tolist())])
    slope = 2 * (at[1] - at[0])
    line = at[0] + slope * (np.array([0.25, 0.75, *PRIORS_COMPARED])[:, None] - 0.25)
    bent = np.abs(at - line) > 1e-12 * np.abs(at[:2]).max()
    constant = np.abs(slope[[1, 2, 4, 5]]) <= 1e-12 * np.abs(at[:2]).max()
    if bent.any() or not constant.all():
        return None
    numerators, denominators = (
        _without_rounding(np.array([start + rise, start + of_fp, start + rise + of_fn, start]))
        for start, rise, of_fp, of_fn in (
            (at[0, i] - slope[i] / 4, slope[i], at[0, i + 1], at[0, i + 2]) for i in (0, 3)
        )
    )
    for worth in (numerators, denominators):
        worth.setflags(write=False)
    return numerators, denominators


def _without_rounding(worth: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.abs(worth).max()
    return np.asarray(np.round(worth / scale, 12) * scale) if scale else worth


def _limits_by_class(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None
) -> tuple[float, float]:
    """The class totals are taken as given; outcomes are ordered by the value at the share of positives observed."""
    tp, fp, fn, tn = cells
    positives, negatives = tp + fn, fp + tn
    priors, left = possible_priors(metric, positives, positives + negatives, error, given_prior, PRIOR_SHARE, PRIORS)
    observed = np.array([positives / (positives + negatives)]) if given_prior is None else priors
    shares = fp / max(negatives, 1), fn / max(positives, 1)
    estimate = float(_value_at_rates(metric, *shares, observed[0]))
    require_monotone(metric, priors)
    ends = value_range(metric)
    least, most = (
        float(worst_over_priors(partial(_value_at_rates, metric, share, share), priors, largest=not share)[0])
        for share in (1.0, 0.0)
    )
    least, most = (end if np.isnan(one) else one for one, end in zip((least, most), ends, strict=True))
    falling, ordered = _curve(metric, priors), _curve(metric, observed)
    lower = two_share_limit(falling, (fp, negatives), (fn, positives), least, estimate, left, order=ordered)
    upper = -two_share_limit(
        _Mirrored(falling), (tn, negatives), (tp, positives), -most, -estimate, left, _Mirrored(ordered)
    )
    return float(np.clip(lower, *ends)), float(np.clip(upper, *ends))


def _value_at_rates(metric: Metric, fpr: Any, fnr: Any, prior: Any) -> Any:
    return metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior)


def _curve(metric: Metric, priors: NDArray[np.float64]) -> _Curve:
    """The rates at which a metric has a value, at some priors."""
    kind = _LinearCurve if isinstance(metric, LinearFractionalMetric) else _BisectedCurve
    return kind(metric, priors)


class _Curve(ABC):
    """False positive and false negative rates at which a metric has a value; the least of all priors in a range."""

    def __init__(self, metric: Metric, priors: NDArray[np.float64]) -> None:
        self.metric, self.priors = metric, priors

    @abstractmethod
    def second_at(self, fpr: Any, value: float, prior: NDArray[np.float64]) -> Any:
        """The false negative rate: a row for each prior; below 0 or above 1 where the metric never has the value."""

    @abstractmethod
    def first_at(self, fnr: Any, value: float, prior: NDArray[np.float64]) -> Any:
        """The false positive rate, in the same way."""

    def second(self, fpr: Any, value: float) -> Any:
        return worst_over_priors(partial(self.second_at, fpr, value), self.priors)

    def first(self, fnr: Any, value: float) -> Any:
        return worst_over_priors(partial(self.first_at, fnr, value), self.priors)


class _LinearCurve(_Curve):
    """Of a linear-fractional metric: a line at each prior."""

    metric: LinearFractionalMetric

    def second_at(self, fpr: Any, value: float, prior: NDArray[np.float64]) -> Any:
        (a0, a1, a2), (b0, b1, b2) = self.metric.coefficients(prior)
        fp = fpr * (1 - prior)
        return _solved(a0 + a1 * fp - value * (b0 + b1 * fp), (value * b2 - a2) * prior)

    def first_at(self, fnr: Any, value: float, prior: NDArray[np.float64]) -> Any:
        (a0, a1, a2), (b0, b1, b2) = self.metric.coefficients(prior)
        fn = fnr * prior
        return _solved(a0 + a2 * fn - value * (b0 + b2 * fn), (value * b1 - a1) * (1 - prior))


def _solved(at_zero: Any, slope: Any) -> Any:
    at_zero, slope = np.broadcast_arrays(at_zero, slope)
    return np.divide(at_zero, slope, out=np.where(at_zero > 0, 2.0, -1.0), where=slope > 0)


class _BisectedCurve(_Curve):
    """Of any metric that does not increase in FP or FN."""

    def second_at(self, fpr: Any, value: float, prior: NDArray[np.float64]) -> Any:
        return self._bisected(lambda fnr: _value_at_rates(self.metric, fpr, fnr, prior) - value, fpr, prior)

    def first_at(self, fnr: Any, value: float, prior: NDArray[np.float64]) -> Any:
        return self._bisected(lambda fpr: _value_at_rates(self.metric, fpr, fnr, prior) - value, fnr, prior)

    @staticmethod
    def _bisected(excess: Callable[[Any], Any], other: Any, prior: NDArray[np.float64]) -> Any:
        low: Any = np.zeros(np.broadcast_shapes(np.shape(other), prior.shape))
        high: Any = low + 1
        never, at_once = excess(high) > 0, excess(low) <= 0
        for _ in range(30):
            middle = (low + high) / 2
            above = excess(middle) > 0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(never, 2.0, np.where(at_once, -1.0, low))


class _Mirrored:
    """The curve of −Ψ, which falls in the true rates."""

    def __init__(self, curve: _Curve) -> None:
        self.curve = curve

    def second(self, tnr: Any, value: float) -> Any:
        return 1 - worst_over_priors(partial(self.curve.second_at, 1 - tnr, -value), self.curve.priors, largest=True)

    def first(self, tpr: Any, value: float) -> Any:
        return 1 - worst_over_priors(partial(self.curve.first_at, 1 - tpr, -value), self.curve.priors, largest=True)
