"""What rules that predict k labels a row are judged by: one number for the confusions of all labels together.

A rule that predicts exactly k labels a row has no threshold for each label: to predict one label more is to predict
another one less. So what it is worth is a function of all labels' true positives and predicted rows at once. Each
average of a metric, and each metric of several classes, is written as sums over the labels of a few *terms*, and a
function of these sums. A search then only computes the terms of the labels that change.

To add a metric of several classes: write a frozen dataclass of a `MulticlassMetric` with `name`, `terms` and `combine`,
and list it in `MULTICLASS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from surecut._inputs import plain_name
from surecut.averages import undefined_labels
from surecut.confusion import Confusion
from surecut.metrics import ALIASES, LinearFractionalMetric, Metric, NoTheoremError, get_metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MACRO, MICRO, WEIGHTED, MULTICLASS_AVERAGE, COST = "macro", "micro", "weighted", "multiclass", "cost"

TOP_K_AVERAGES = (MACRO, MICRO, WEIGHTED, MULTICLASS_AVERAGE)

STEP_OF_ROW, STEP_OF_ALL = 1e-3, 1e-6
"""The difference quotient of a slope is over this share of the smallest cell: of its share of one row, or of all."""

ROUNDING = 1e-14
"""Differences of shares that are no larger are 0."""

CELL_ROUNDING = 1e-13
"""Cells of a confusion matrix that are no larger, relative to the rows that they are counted from, are 0."""

SMALLEST = 1e-300
"""Stands for 0 where a logarithm is taken; values are computed without it."""


@dataclass(frozen=True)
class MulticlassMetric(ABC):
    """A metric of the confusion matrix of several classes, of which each row has one and is predicted one.

    It is larger for better predictions, and depends on three numbers for each class only: its rows, the rows that are
    predicted to have it, and those of them that do.

    Attributes
    ----------
    name
        What the metric is called in `MULTICLASS`.
    can_be_bounded
        As in `LabelObjective`.
    """

    name: ClassVar[str]
    can_be_bounded: ClassVar[bool] = False

    @abstractmethod
    def terms(self, tp: Any, predicted: Any, positives: Any, total: Any) -> tuple[Any, ...]:
        """What each class adds to the sums."""

    @abstractmethod
    def combine(self, sums: tuple[Any, ...], positives: NDArray[Any], total: Any) -> Any:
        """The metric, from the sums over all classes."""

    def is_zero(self, tp: Any, positives: NDArray[Any]) -> Any:
        """Where the metric is 0, although its sums, which hold no logarithm of 0, say otherwise."""
        return False

    def ratios(self, positives: NDArray[Any], total: Any) -> tuple[Any, ...] | None:
        """The metric as a sum of ratios, or None: see `LabelObjective.ratios`."""
        return None

    def slope_bounds(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each class the most that the metric gains per true positive more, of equally many predicted rows.

        The metrics that have no theorem have none.
        """
        raise NoTheoremError(f"the {self.name} of several classes has no bounded slopes: no theorem bounds its regret")

    def parameters(self) -> dict[str, Any]:
        """What, with the name, makes the metric again."""
        return {}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class MulticlassAccuracy(MulticlassMetric):
    """The share of rows whose class is predicted."""

    name = "accuracy"
    can_be_bounded = True

    def terms(self, tp: Any, predicted: Any, positives: Any, total: Any) -> tuple[Any, ...]:
        return (tp,)

    def combine(self, sums: tuple[Any, ...], positives: NDArray[Any], total: Any) -> Any:
        return sums[0] / total

    def ratios(self, positives: NDArray[Any], total: Any) -> tuple[Any, ...]:
        return 1 / total, 0, 1, 0, 1, 0, 0

    def slope_bounds(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones_like(priors)


@dataclass(frozen=True)
class BalancedAccuracy(MulticlassMetric):
    """The mean over the classes with rows of the share of these that is predicted: the macro recall."""

    name = "balanced_accuracy"
    can_be_bounded = True

    def terms(self, tp: Any, predicted: Any, positives: Any, total: Any) -> tuple[Any, ...]:
        return (_share(tp, positives),)

    def combine(self, sums: tuple[Any, ...], positives: NDArray[Any], total: Any) -> Any:
        return sums[0] / np.count_nonzero(positives)

    def ratios(self, positives: NDArray[Any], total: Any) -> tuple[Any, ...]:
        return 1 / np.count_nonzero(positives), 0, 1, 0, positives, 0, 0

    def slope_bounds(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_share(1.0, priors) / np.count_nonzero(priors, axis=-1)[..., None])


@dataclass(frozen=True)
class MulticlassGMean(MulticlassMetric):
    """The geometric mean over the classes with rows of the share of these that is predicted."""

    name = "gmean"
    can_be_bounded = True

    def terms(self, tp: Any, predicted: Any, positives: Any, total: Any) -> tuple[Any, ...]:
        present = np.asarray(positives) > 0
        return (np.where(present, np.log(np.maximum(_share(tp, positives), SMALLEST)), 0.0),)

    def combine(self, sums: tuple[Any, ...], positives: NDArray[Any], total: Any) -> Any:
        return np.exp(sums[0] / np.count_nonzero(positives))

    def is_zero(self, tp: Any, positives: NDArray[Any]) -> Any:
        return ((np.asarray(tp) == 0) & (positives > 0)).any(axis=-1)


@dataclass(frozen=True)
class MulticlassKappa(MulticlassMetric):
    """Cohen's κ: the accuracy beyond that of predictions drawn with the same frequencies, relative to what is left."""

    name = "kappa"

    def terms(self, tp: Any, predicted: Any, positives: Any, total: Any) -> tuple[Any, ...]:
        return tp / total, (positives / total) * (predicted / total)

    def combine(self, sums: tuple[Any, ...], positives: NDArray[Any], total: Any) -> Any:
        accuracy, by_chance = sums
        return _ratio(accuracy - by_chance, 1 - by_chance)

    def slope_bounds(self, priors: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 / (1 − Σ P_j q_j), which is largest where the most frequent class is predicted for all rows."""
        largest = priors.max(axis=-1, keepdims=True)
        if (largest >= 1).any():
            raise NoTheoremError("kappa is constant where all rows have one class: every rule is optimal")
        return np.broadcast_to(1 / (1 - largest), np.shape(priors))


@dataclass(frozen=True)
class MulticlassMCC(MulticlassMetric):
    """The correlation of the true with the predicted classes (Matthews, Gorodkin); 0 where it is undefined."""

    name = "mcc"

    def terms(self, tp: Any, predicted: Any, positives: Any, total: Any) -> tuple[Any, ...]:
        share = predicted / total
        return tp / total, (positives / total) * share, share * share

    def combine(self, sums: tuple[Any, ...], positives: NDArray[Any], total: Any) -> Any:
        accuracy, by_chance, squares = sums
        true_squares = float(((positives / total) ** 2).sum())
        square = np.maximum(1 - squares, 0) * max(1 - true_squares, 0)
        return _ratio(accuracy - by_chance, np.sqrt(np.where(square > ROUNDING, square, 0)))


MULTICLASS: dict[str, Callable[[], MulticlassMetric]] = {
    "accuracy": MulticlassAccuracy,
    "balanced_accuracy": BalancedAccuracy,
    "gmean": MulticlassGMean,
    "kappa": MulticlassKappa,
    "mcc": MulticlassMCC,
}
"""Metrics of several classes by name."""


def multiclass_metric(name: Any) -> MulticlassMetric | None:
    """The metric of several classes with this name, or another name of it; None if there is none.

    >>> multiclass_metric("cohen_kappa_score").name, multiclass_metric("f1")
    ('kappa', None)
    """
    if isinstance(name, MulticlassMetric):
        return name
    if not isinstance(name, str):
        return None
    plain = plain_name(name)
    for spelling in (plain, plain.removesuffix("_score")):
        found = ALIASES.get(spelling, spelling)
        found = "balanced_accuracy" if found == "am" else found  # of one label it is the arithmetic mean of two recalls
        if found in MULTICLASS:
            return MULTICLASS[found]()
    return None


def averaged_metric(metric: Any, average: str) -> Metric | MulticlassMetric:
    """The metric that a name means under an average."""
    if average not in TOP_K_AVERAGES:
        raise ValueError(f"average= must be one of {', '.join(TOP_K_AVERAGES)}, got {average!r}")
    if average != MULTICLASS_AVERAGE:
        return get_metric(metric)
    if (found := multiclass_metric(metric)) is None:
        raise ValueError(
            f"average='multiclass' has the metrics {', '.join(MULTICLASS)}, got {metric!r}: other metrics are averaged "
            "over the classes, average='macro'"
        )
    return found


class LabelObjective(ABC):
    """A function of the confusions of all labels, for given rows.

    Attributes
    ----------
    positives, total
        Weight of the rows that have each label, and of all rows.
    can_be_bounded
        Whether it is one sum, whose terms never grow with more false positives or fewer true positives.
    """

    average: str
    metric: Any
    can_be_bounded = False

    def __init__(self, positives: NDArray[Any], total: Any) -> None:
        self.positives = np.asarray(positives)
        self.total = total

    @abstractmethod
    def terms(self, tp: Any, predicted: Any, label: Any = slice(None)) -> NDArray[np.float64]:
        """What labels add to the sums, of shape (sums, …); `label` are their positions."""

    @abstractmethod
    def combine(self, sums: NDArray[np.float64]) -> Any:
        """The value, from sums of shape (sums, …)."""

    @cached_property
    def ratios(self) -> NDArray[np.float64] | None:
        """The numbers w, n₀, n₁, n₂, d₀, d₁, d₂ of each label, shape (7, labels), or None.

        With them the value is the sum over labels of w (n₀ + n₁ TP + n₂ predicted) / (d₀ + d₁ TP + d₂ predicted), with
        0 where the denominator is 0; up to a constant.
        """
        return None

    def _ratios(self, *numbers: Any) -> NDArray[np.float64]:
        labels = len(self.positives)
        return np.stack([np.broadcast_to(np.asarray(number, dtype=float), (labels,)) for number in numbers])

    def of_labels(self, tp: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """What each label is worth by itself where all labels have these counts: its recall; NaN where it has none."""
        return recall_of_labels(tp, self.positives)

    def values(self, tp: NDArray[Any], predicted: NDArray[Any]) -> Any:
        """The values where all labels have these counts, of shape (…, labels)."""
        return self.combine(self.terms(tp, predicted).sum(axis=-1))

    def value(self, tp: NDArray[Any], predicted: NDArray[Any]) -> float:
        """The value where all labels have these counts."""
        return float(self.values(tp, predicted))

    def slopes(
        self, tp: NDArray[Any], predicted: NDArray[Any], of_row: float = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How fast the value grows with the true positives and with the predicted rows of each label.

        Predicting label j for a row that has it with probability η is worth η times the first slope plus the second:
        an affine function of η. The slopes are taken where one more row, of the weight `of_row`, is predicted at
        random, since ratios such as the precision have none where nothing is predicted.
        """
        share = np.asarray(self.positives, dtype=float) / float(self.total)
        random = of_row / (float(self.total) + of_row)
        tp = (1 - random) * np.asarray(tp, dtype=float) + random * self.positives / 2
        predicted = (1 - random) * np.asarray(predicted, dtype=float) + random * self.total / 2
        here = self.terms(tp, predicted)
        sums = here.sum(axis=-1)[:, None]
        smallest = np.where((share > SMALLEST) & (share < 1), np.minimum(share, 1 - share), 1.0)
        step = smallest * max(STEP_OF_ROW * of_row, STEP_OF_ALL * float(self.total))

        def slope(more_tp: Any) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore"):  # of a metric that is infinite there is none
                change = self.terms(tp + more_tp, predicted + step) - here
                return np.asarray((self.combine(sums + change) - self.combine(sums)) / step)

        of_negative = slope(0.0)
        return np.where(share > 0, slope(step) - of_negative, 0.0), of_negative


class AveragedMetric(LabelObjective):
    """A metric of one label, averaged over labels.

    A label on whose rows the metric is undefined counts 0 if scikit-learn has it so (F, precision, recall), else it is
    left out, as in `tune_thresholds`.
    """

    def __init__(self, metric: Metric, average: str, positives: NDArray[Any], total: Any) -> None:
        super().__init__(positives, total)
        self.metric, self.average = metric, average
        nothing = np.zeros(len(self.positives))
        totals = Confusion(nothing, nothing, self.positives, total - self.positives)
        undefined = [i for i, _ in undefined_labels(metric, totals)]
        self.undefined = np.zeros(len(self.positives), dtype=bool)
        self.undefined[undefined] = True
        counts = ~self.undefined if metric.needs_positives and metric.needs_negatives else np.ones(len(nothing), bool)
        weight = np.asarray(self.positives, dtype=float) * counts if average == WEIGHTED else counts.astype(float)
        if not weight.sum() > 0:
            raise ValueError(f"{metric.name} is undefined for every label: none has rows of both classes")
        self.weight = np.where(self.undefined, 0.0, weight / weight.sum())
        self.can_be_bounded = average != MICRO and metric.extremes_at_corners and metric.falls_with_errors

    def terms(self, tp: Any, predicted: Any, label: Any = slice(None)) -> NDArray[np.float64]:
        if self.average == MICRO:
            return np.stack(np.broadcast_arrays(np.asarray(tp, dtype=float), np.asarray(predicted, dtype=float)))
        return np.asarray(self.per_label(tp, predicted, label) * self.weight[label])[None]

    @cached_property
    def ratios(self) -> NDArray[np.float64] | None:
        if self.average == MICRO or not isinstance(self.metric, LinearFractionalMetric):
            return None
        numerator, denominator = ratio_of_counts(self.metric, np.asarray(self.positives, dtype=float), self.total)
        return self._ratios(self.weight, *numerator, *denominator)

    def per_label(self, tp: Any, predicted: Any, label: Any = slice(None)) -> NDArray[np.float64]:
        """The metric of labels; 0 where it is 0/0."""
        positives = self.positives[label]
        shape = np.broadcast_shapes(np.shape(tp), np.shape(positives))
        tp, predicted, positives = (np.broadcast_to(one, shape) for one in (tp, predicted, positives))
        confusion = confusion_of(tp, predicted, positives, self.total)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.asarray(self.metric.evaluate(_flat(confusion)), dtype=float).reshape(shape)
        return np.where(np.isnan(values), 0.0, values)

    def of_labels(self, tp: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """The metric of each label; NaN, or 0, where it is undefined."""
        needs_both = self.metric.needs_positives and self.metric.needs_negatives
        return np.where(self.undefined, np.nan if needs_both else 0.0, self.per_label(tp, predicted))

    def combine(self, sums: NDArray[np.float64]) -> Any:
        if self.average != MICRO:
            return sums[0]
        tp, predicted = sums
        positives, pairs = self.positives.sum(), self.total * len(self.positives)
        shape = np.shape(tp)
        confusion = _flat(confusion_of(tp, predicted, positives, pairs))
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.asarray(self.metric.evaluate(confusion), dtype=float)
        return np.where(np.isnan(values), 0.0, values).reshape(shape)[()]


class ClassObjective(LabelObjective):
    """A metric of several classes, on given rows."""

    average = MULTICLASS_AVERAGE

    def __init__(self, metric: MulticlassMetric, positives: NDArray[Any], total: Any) -> None:
        super().__init__(positives, total)
        self.metric = metric
        self.can_be_bounded = metric.can_be_bounded

    def terms(self, tp: Any, predicted: Any, label: Any = slice(None)) -> NDArray[np.float64]:
        found = self.metric.terms(tp, predicted, self.positives[label], self.total)
        return np.stack([np.asarray(one, dtype=float) for one in found])

    def combine(self, sums: NDArray[np.float64]) -> Any:
        return self.metric.combine(tuple(sums), self.positives, self.total)

    @cached_property
    def ratios(self) -> NDArray[np.float64] | None:
        numbers = self.metric.ratios(self.positives, self.total)
        return None if numbers is None else self._ratios(*numbers)

    def values(self, tp: NDArray[Any], predicted: NDArray[Any]) -> Any:
        return np.where(self.metric.is_zero(tp, self.positives), 0.0, super().values(tp, predicted))


class MeanCost(LabelObjective):
    """Minus the mean cost of a row.

    Labels are actions here, and the truth of a row and an action is what it saves there: how much less it costs than
    the most expensive action.
    """

    average, metric = COST, None
    can_be_bounded = True

    def __init__(self, highest: float, actions: int, total: Any) -> None:
        super().__init__(np.zeros(actions), total)
        self.highest = highest

    def terms(self, tp: Any, predicted: Any, label: Any = slice(None)) -> NDArray[np.float64]:
        return np.asarray(tp, dtype=float)[None]

    def combine(self, sums: NDArray[np.float64]) -> Any:
        return (sums[0] - self.highest * self.total) / self.total


def label_objective(
    metric: Metric | MulticlassMetric, average: str, positives: NDArray[Any], total: Any
) -> LabelObjective:
    """What a rule is to be best for, on rows with these numbers of positives.

    >>> from surecut import get_metric
    >>> objective = label_objective(get_metric("f1"), "macro", np.array([2, 2]), 4)
    >>> objective.value(np.array([2, 1]), np.array([3, 1]))
    0.7333333333333334
    """
    if isinstance(metric, MulticlassMetric):
        return ClassObjective(metric, positives, total)
    return AveragedMetric(metric, average, positives, total)


def values_of_confusion(
    metric: Metric | MulticlassMetric, average: str, confusion: Confusion
) -> tuple[float, NDArray[np.float64]]:
    """What labels with these cells, an array of each, are worth together, and each by itself."""
    objective = label_objective(metric, average, np.asarray(confusion.positives), np.asarray(confusion.total)[0])
    counts = np.asarray(confusion.tp), np.asarray(confusion.predicted_positives)
    return objective.value(*counts), objective.of_labels(*counts)


def recall_of_labels(tp: Any, positives: Any) -> NDArray[np.float64]:
    """The share of each label's rows that is predicted; NaN where it has none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.asarray(tp) / positives, dtype=float)


def ratio_of_counts(
    metric: LinearFractionalMetric, positives: NDArray[np.float64], total: Any
) -> tuple[tuple[Any, ...], ...]:
    """The numbers n and d of the metric as (n₀ + n₁ TP + n₂ predicted) / (d₀ + d₁ TP + d₂ predicted).

    Positives and the total are counts, and so are TP and predicted rows then, or all of them are rates.
    """
    negatives = total - positives
    numbers = []
    for cells in metric.cells(positives, negatives):
        of_tp, of_fp, of_fn, of_tn = (np.asarray(one, dtype=float) for one in cells)  # small integers could overflow
        numbers.append((of_fn * positives + of_tn * negatives, of_tp - of_fp - of_fn + of_tn, of_fp - of_tn))
    return tuple(numbers)


def _share(part: Any, whole: Any) -> Any:
    part, whole = np.broadcast_arrays(np.asarray(part, dtype=float), np.asarray(whole, dtype=float))
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole > 0)


def _ratio(numerator: Any, denominator: Any) -> Any:
    """A ratio; 0 where the denominator is 0 up to rounding."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.divide(numerator, denominator, out=np.zeros(np.shape(denominator)), where=denominator > ROUNDING)[()]


def confusion_of(tp: Any, predicted: Any, positives: Any, total: Any) -> Confusion:
    """The cells of labels, from their counts.

    Sums of weights differ by rounding: a cell that is 0 up to that is 0, so that a ratio of such cells is 0/0.
    """
    fp = predicted - tp
    cells = Confusion(tp, fp, positives - tp, total - positives - fp)
    if np.asarray(tp).dtype.kind in "iu" and np.asarray(predicted).dtype.kind in "iu":
        return cells
    of_positives, of_all = CELL_ROUNDING * np.asarray(positives), CELL_ROUNDING * total
    return Confusion(
        np.where(cells.tp > of_positives, cells.tp, 0),
        np.where(cells.fp > of_all, cells.fp, 0),
        np.where(cells.fn > of_positives, cells.fn, 0),
        np.where(cells.tn > of_all, cells.tn, 0),
    )


def _flat(confusion: Confusion) -> Confusion:
    """Cells in one dimension, as functions of one's own take them."""
    tp, fp, fn, tn = (np.asarray(getattr(confusion, cell)).reshape(-1) for cell in ("tp", "fp", "fn", "tn"))
    return Confusion(tp, fp, fn, tn)
