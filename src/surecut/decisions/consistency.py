"""Whether the parts of a decision agree with each other: what a saved one must hold, besides its checksum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import averaged_value, undefined_labels
from surecut.confusion import Confusion
from surecut.decisions.saving import UnknownMetric
from surecut.decisions.stability import LEVELS, LabelStability
from surecut.label_objectives import MulticlassMetric, values_of_confusion
from surecut.metrics import FunctionMetric, Metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""Values that differ by no more are equal up to rounding."""


def require_thresholds(thresholds: ArrayLike, intervals: ArrayLike, labels: Sequence[Any] | None = None) -> None:
    """Raise unless each threshold lies in its interval (lower, upper]; infinite ones may be all three."""
    threshold, (lower, upper) = np.asarray(thresholds, dtype=float), np.asarray(intervals, dtype=float).T
    inside = (lower < threshold) & (threshold <= upper)
    if len(bad := np.flatnonzero(~(inside | (np.isinf(threshold) & (lower == threshold) & (threshold == upper))))):
        i = bad[0]
        raise ValueError(
            f"the threshold{_of(labels, i)} is {threshold[i]}, outside of its interval ({lower[i]}, {upper[i]}]"
        )


def require_shared(
    thresholds: NDArray[np.float64], average: str, shared_threshold: float | None, takes_it: NDArray[np.bool_]
) -> None:
    """Raise unless labels that share a threshold have it: some of a macro average, all of another one."""
    if average != "macro":
        if takes_it.any() or not (thresholds == thresholds[0]).all():
            raise ValueError(f"the {average} average has one threshold for all labels, and these have several")
    elif takes_it.any() and not (thresholds[takes_it] == shared_threshold).all():
        raise ValueError("labels that take the shared threshold have another one")


def require_prior(prior: float, confusion: Confusion) -> None:
    """Raise unless a prior is the share of positives of a confusion matrix."""
    if not _equal(prior, confusion.prior):
        raise ValueError(f"the prior is {prior}, but the share of positives in the confusion matrix {confusion.prior}")


def require_values(
    values: ArrayLike, metric: Metric, confusion: Confusion, labels: Sequence[Any] | None = None
) -> None:
    """Raise unless each value is the metric of its confusion matrix, where a file holds all of the metric.

    A metric that is undefined there, or lacks a class that it needs, is NaN or counts 0.
    """
    expected = _known(metric, lambda: np.array(metric.evaluate(confusion), dtype=float))
    if expected is None:
        return
    given, undefined = np.asarray(values, dtype=float), np.zeros(len(expected), dtype=bool)
    undefined[[i for i, _ in undefined_labels(metric, confusion, expected)]] = True
    same = np.where(undefined, np.isnan(given) | (given == 0), _equal(given, expected))
    if not same.all():
        i = int(np.argmin(same))
        raise ValueError(
            f"the value{_of(labels, i)} is {given[i]}, but {metric.name} of its confusion matrix is {expected[i]}"
        )


def require_average(value: float, metric: Metric, average: str, confusion: Confusion) -> None:
    """Raise unless a value is the average of a metric over labels; that over rows is not known."""
    if average == "samples":
        return
    expected = _known(metric, lambda: averaged_value(metric, average, confusion))
    if expected is not None and not _equal(value, expected):
        raise ValueError(f"the value is {value}, but the {average} {metric.name} of its labels is {expected}")


def require_rows(rows: ArrayLike, confusion: Confusion, weighted: bool, labels: Sequence[Any] | None = None) -> None:
    """Raise unless confusion matrices count their rows; those with weights, and unknown rows (0), are not compared."""
    count, total = np.asarray(rows), np.asarray(confusion.total, dtype=float)
    if not ((total > 0) & np.isfinite(total)).all():
        raise ValueError("the sum of a confusion matrix must be positive and finite")
    if len(bad := np.flatnonzero(~(weighted | (count == 0) | _equal(count, total)))):
        i = bad[0]
        raise ValueError(f"the confusion matrix{_of(labels, i)} has {total[i]:g} rows, but {count[i]} were tuned on")


def require_stability(stability: LabelStability, values: ArrayLike, labels: Sequence[Any] | None = None) -> None:
    """Raise unless the records of resampled thresholds are possible, and no value is above the best one.

    A label without resamples has no record.
    """
    given = np.asarray(values, dtype=float)
    if len(stability) != len(given) or stability.quantiles.shape[1] != len(LEVELS):
        raise ValueError(
            f"expected {len(LEVELS)} quantiles of resampled thresholds for each threshold, got an array of shape "
            f"{stability.quantiles.shape} for {len(given)}"
        )
    known, best, tolerance = stability.resamples > 0, stability.best_value, stability.tolerance
    lower, upper = stability.near_optimal.T
    quantiles = stability.quantiles
    ordered = (quantiles[:, :-1] <= quantiles[:, 1:]).all(axis=1)
    if len(bad := np.flatnonzero(known & ~ordered)):
        i = bad[0]
        shown = ", ".join(map(str, quantiles[i].tolist()))
        raise ValueError(f"the quantiles of resampled thresholds{_of(labels, i)} are not ascending: {shown}")
    if len(bad := np.flatnonzero(known & ~((lower < upper) | (np.isinf(lower) & (lower == upper))))):
        i = bad[0]
        raise ValueError(f"the near-optimal range{_of(labels, i)} is empty: ({lower[i]}, {upper[i]}]")
    if len(bad := np.flatnonzero(known & ~((tolerance >= 0) & np.isfinite(tolerance)))):
        i = bad[0]
        raise ValueError(f"the tolerance{_of(labels, i)} must be finite and at least 0, got {tolerance[i]}")
    if len(bad := np.flatnonzero(known & (np.isnan(best) | np.isnan(stability.best_threshold)))):
        raise ValueError(f"the best value or threshold{_of(labels, bad[0])} is NaN")
    if len(bad := np.flatnonzero(known & ~((given <= best) | _equal(given, best)))):
        i = bad[0]
        raise ValueError(f"the value{_of(labels, i)} is {given[i]}, above the best value, {best[i]}")


def require_objective(
    value: float,
    metric: Metric | MulticlassMetric,
    average: str,
    confusion: Confusion,
    labels: Sequence[Any],
    per_label: NDArray[np.float64] | None = None,
) -> None:
    """Raise unless a value, and the values of labels, are those of the confusions of all labels together."""

    known = _known(metric, lambda: values_of_confusion(metric, average, confusion))
    if known is None:
        return
    expected, values = known
    if not _equal(value, expected):
        raise ValueError(f"the value is {value}, but the {average} {metric.name} of its confusion matrices {expected}")
    if per_label is None:
        return
    if len(bad := np.flatnonzero(~_equal(per_label, values))):
        i = bad[0]
        raise ValueError(f"the value{_of(labels, i)} is {per_label[i]}, but its confusion matrix gives {values[i]}")


def require_same_rows(one: Confusion, other: Confusion, labels: Sequence[Any]) -> None:
    """Raise unless the confusion matrices of two rules count the same rows, of which all labels have as many."""
    for confusion in (one, other):
        for cell in (confusion.tp, confusion.fp, confusion.fn, confusion.tn):
            if len(bad := np.flatnonzero(~(np.asarray(cell) >= 0))):
                raise ValueError(f"a number of rows{_of(labels, bad[0])} is {cell[bad[0]]}")
    same = _equal(one.positives, other.positives) & _equal(one.total, other.total)
    same &= _equal(one.total, np.asarray(one.total)[0])
    if not same.all():
        raise ValueError(f"the confusion matrices{_of(labels, int(np.argmin(same)))} do not count the same rows")


def require_matrix(matrix: NDArray[Any], confusion: Confusion, actions: Sequence[Any], labels: Sequence[Any]) -> None:
    """Raise unless a matrix of rows by class and action agrees with the confusion matrices of the classes.

    Rows for which nothing is predicted, since their scores are all −inf, are missing in it.
    """
    column = {action: i for i, action in enumerate(actions)}
    place = np.array([column.get(label, -1) for label in labels])
    is_action = place >= 0
    predicted = np.where(is_action, matrix.sum(axis=0)[place], 0)
    tp = np.where(is_action, matrix[np.arange(len(labels)), place], 0)
    rows, of_all = matrix.sum(axis=1), ABSOLUTE * np.asarray(confusion.total)  # sums are rounded
    same = rows <= confusion.positives + RELATIVE * rows + of_all
    for one, other in ((predicted, confusion.predicted_positives), (tp, confusion.tp)):
        same &= np.isclose(one, other, rtol=RELATIVE, atol=of_all)
    if not same.all():
        i = int(np.argmin(same))
        raise ValueError(f"rows by class and action do not agree with the confusion matrix{_of(labels, i)}")


def require_cost(value: float, costs: NDArray[np.float64], matrix: NDArray[Any] | None) -> None:
    """Raise unless a value is minus the mean cost of rows by class and action."""
    if matrix is not None and matrix.shape == costs.shape:
        expected = -float((matrix * costs).sum()) / float(matrix.sum())
        if not _equal(value, expected):
            raise ValueError(f"the value is {value}, but rows cost {-expected} in the mean")


def require_bound(value: float, bound: float) -> None:
    """Raise where a value is above the bound that none exceeds; NaN is no bound."""
    if value > bound and not _equal(value, bound):
        raise ValueError(f"the value is {value}, above its upper bound, {bound}")


def _known(metric: Metric | MulticlassMetric, evaluate: Any) -> Any:
    """What a metric evaluates to; None where a file holds not all of it."""
    if isinstance(metric, (UnknownMetric, FunctionMetric)):
        return None
    try:
        with np.errstate(all="ignore"):
            return evaluate()
    except ValueError:  # coefficients that are known at another prior, or a metric that is undefined for all labels
        return None


def _equal(one: Any, other: Any) -> NDArray[np.bool_]:
    return np.asarray(np.isclose(one, other, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))


def _of(labels: Sequence[Any] | None, i: Any) -> str:
    return "" if labels is None else f" of the label {labels[i]!r}"
