"""Limits of a metric from the four counts of independent rows. Valid for every sample size.

Exact for accuracy, F₁, Jaccard, precision, recall and specificity; a little cautious for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.certificates.confidence import share_limits
from surecut.certificates.nuisance import drawn_limits, has_one_order, least_value, three_part_limit
from surecut.certificates.priors import (
    PRIORS,
    PRIORS_COMPARED,
    cached_by_metric,
    depends_on_prior,
    require_monotone,
    value_range,
)
from surecut.certificates.regions import Sampling, Statistic, ValueAt
from surecut.metrics import LinearFractionalMetric, Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray


def value_limits(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None = None
) -> tuple[float, float, bool]:
    """Lower and upper limit of a metric from the counts (tp, fp, fn, tn) of independent rows; whether they are exact.

    A row of each cell is worth something above and below the bar. Where only two kinds of rows count, their ratio is
    a share (F₁: TP among TP + FP + FN) and the limits are Clopper–Pearson's. Three kinds leave one unknown share beside
    the value. For other metrics the rates of both classes are unknown, and the prior, if it matters; `nuisance` has the
    limits of both.
    """
    worth = None if given_prior is not None else row_worth(metric)
    exact = worth is not None and counted_kinds(worth, cells)[0].shape[1] == 2
    lower, upper = (value_limit(metric, cells, error, given_prior, upper=side) for side in (False, True))
    return lower, upper, exact


def value_limit(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None = None, *, upper: bool = False
) -> float:
    """One of both limits."""
    worth = None if given_prior is not None else row_worth(metric)
    if worth is not None:
        (numerators, denominators), counts = counted_kinds(worth, cells)
        if len(counts) == 2:
            better, value = value_of_share(numerators, denominators)
            return float(value(share_limits(counts[better], counts.sum(), error)[int(upper)]))
        if len(counts) == 3 and has_one_order(numerators, denominators):
            sign = -1.0 if upper else 1.0
            return sign * three_part_limit(sign * numerators, denominators, counts, error)
    return _limit_by_class(metric, cells, error, given_prior, upper)


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


def _limit_by_class(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None, upper: bool
) -> float:
    """False positives and false negatives are binomial in their classes, and positives among all rows.

    Where the prior is given or does not matter, the class totals are taken as given.
    """
    tp, fp, fn, tn = (float(cell) for cell in cells)
    positives, rows = tp + fn, tp + fp + fn + tn
    if given_prior is None and depends_on_prior(metric):
        require_monotone(metric, np.linspace(*drawn_limits(positives, rows, error), PRIORS))
        fixed = None
    else:
        fixed = positives / rows if given_prior is None else given_prior
        require_monotone(metric, np.array([fixed]))
    value_at = _value_at_rates(metric, fixed)
    totals = positives, rows
    if upper:
        found = -least_value(_statistics(_mirrored(value_at), (tn, tp), totals, fixed is None, error), error)
    else:
        found = least_value(_statistics(value_at, (fp, fn), totals, fixed is None, error), error)
    return float(np.clip(found, *value_range(metric)))


def _statistics(
    value_at: ValueAt, counts: tuple[float, float], totals: tuple[float, float], drawn: bool, error: float
) -> list[Statistic]:
    """Of counts of negatives and of positives, either of them first; `drawn` is whether class totals are random."""
    (of_negatives, of_positives), (positives, rows) = counts, totals
    negatives = rows - positives
    if drawn:
        total, n, p = (positives, rows), (rows, -1.0), (0.0, 1.0)
    else:
        total, n, p = (0.0, 0.0), (negatives, 0.0), (positives, 0.0)

    def swapped(prior: Any) -> Callable[[Any, Any], Any]:
        value = value_at(prior)
        return lambda fnr, fpr: value(fpr, fnr)

    return [
        Statistic(Sampling(total, of_negatives, of_positives, n, (*p, 0.0)), value_at, error),
        Statistic(Sampling(total, of_positives, of_negatives, p, (*n, 0.0)), swapped, error),
    ]


def _value_at_rates(metric: Metric, fixed: float | None) -> ValueAt:
    """Priors → the value as a function of the false positive and the false negative rate; or at one fixed prior."""

    def ratio_at(prior: Any) -> Callable[[Any, Any], Any]:
        (a0, a1, a2), (b0, b1, b2) = metric.coefficients(prior)  # type: ignore[attr-defined]
        a1, b1, a2, b2 = a1 * (1 - prior), b1 * (1 - prior), a2 * prior, b2 * prior

        def value(fpr: Any, fnr: Any) -> Any:
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.divide(a0 + a1 * fpr + a2 * fnr, b0 + b1 * fpr + b2 * fnr)

        return value

    def value_at(prior: Any) -> Callable[[Any, Any], Any]:
        return lambda fpr, fnr: metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior)

    chosen = ratio_at if isinstance(metric, LinearFractionalMetric) else value_at
    if fixed is None:
        return chosen
    at_fixed = chosen(fixed)
    return lambda _: at_fixed


def _mirrored(value_at: ValueAt) -> ValueAt:
    """−Ψ as a function of the true rates, in which it falls."""

    def mirrored(prior: Any) -> Callable[[Any, Any], Any]:
        value = value_at(prior)
        return lambda tnr, tpr: -value(1 - tnr, 1 - tpr)

    return mirrored
