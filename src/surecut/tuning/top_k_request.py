"""What is asked of `tune_top_k`, validated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.label_objectives import MACRO, MULTICLASS_AVERAGE, MulticlassMetric, averaged_metric, multiclass_metric
from surecut.metrics import Metric
from surecut.tuning.request import check_options
from surecut.tuning.shrinkage import check_shrinkage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.tuning.request import MetricLike

CostsLike = Mapping[Any, Any] | Any

REJECT_TEXT, REJECT_NUMBER = "reject", -1
"""What is predicted where an action is to reject: with classes that are text, and with numbers."""


@dataclass(frozen=True)
class TopKRequest:
    """A validated request.

    Attributes
    ----------
    k
        How many labels a row gets.
    metrics, is_list
        What rules should be best for, each with its average; and whether it was a list, which gives a dict.
    shrinkage, stable
        κ, or ``"auto"``; whether rules are for new rows.
    costs
        What actions cost; None where a metric is asked for.
    """

    k: int
    metrics: tuple[tuple[Metric | MulticlassMetric, str], ...]
    is_list: bool
    shrinkage: float | str
    stable: bool
    costs: Costs | None = None

    @classmethod
    def of(
        cls,
        metric: MetricLike | Sequence[MetricLike],
        *,
        k: Any,
        average: str | None,
        multiclass: bool,
        shrinkage: float | str,
        stable: bool,
        missing: str,
        random_state: Any,
        costs: Costs | None = None,
    ) -> TopKRequest:
        """Validate what was asked for; `multiclass` says whether each row has one class."""
        check_options(None, None, None, stable, missing, random_state)
        check_k(k)
        if multiclass and k != 1:
            raise ValueError(f"a row of one class is predicted one: k must be 1, got {k}; for more pass indicators")
        if average == MULTICLASS_AVERAGE and not multiclass:
            raise ValueError(
                "average='multiclass' needs rows of one class each: pass class labels with k=1, or another average"
            )
        kappa = check_shrinkage(shrinkage)
        if stable and kappa != 0:
            raise ValueError("stable=True fits a model of the scores itself: leave shrinkage=0")
        is_list = isinstance(metric, Sequence) and not isinstance(metric, str)
        asked: Any = metric if is_list else [metric]
        if not len(asked):
            raise ValueError("metric is an empty list: name at least one metric")
        metrics = tuple(_with_average(one, average, multiclass) for one in asked)
        if costs is not None:
            if metric != "f1" or average is not None:
                raise ValueError("costs= and reject_cost= are what the rule is best for: leave metric and average out")
            if kappa != 0:
                raise ValueError("costs are compared by probabilities of a model: shrinkage= has no meaning with them")
        return cls(int(k), metrics, is_list, kappa, bool(stable), costs)

    def named(self, rules: Sequence[Any]) -> Any:
        """The rule, or rules of several metrics by name."""
        if not self.is_list:
            return rules[0]
        return dict(zip([metric.name for metric, _ in self.metrics], rules, strict=True))


def _with_average(metric: Any, average: str | None, multiclass: bool) -> tuple[Metric | MulticlassMetric, str]:
    """A metric and how it is averaged: names that mean a metric of several classes mean it where there are classes."""
    if average is None:
        average = MULTICLASS_AVERAGE if multiclass and multiclass_metric(metric) is not None else MACRO
    return averaged_metric(metric, average), average


def check_k(k: Any, labels: int | None = None) -> int:
    """How many labels a row gets, checked."""
    whole = int(k) if isinstance(k, Integral) and not isinstance(k, bool) else 0
    if whole < 1:
        raise ValueError(f"k= must be a whole number of labels, 1 or more, got {k!r}")
    if labels is not None and whole > labels:
        raise ValueError(f"k= must be at most the number of labels, {labels}, got {k}")
    return whole


@dataclass(frozen=True)
class Costs:
    """What actions cost.

    Attributes
    ----------
    actions
        What can be done with a row: predict one of the classes, or something else.
    matrix
        Shape (classes, actions).
    """

    actions: tuple[Any, ...]
    matrix: NDArray[np.float64]

    @classmethod
    def of(cls, costs: CostsLike | None, reject_cost: ArrayLike | None, classes: Sequence[Any]) -> Costs | None:
        """Costs as they are written: a matrix with a row per true class, or a mapping of actions; None without any."""
        if costs is None and reject_cost is None:
            return None
        size = len(classes)
        if isinstance(costs, Mapping):
            actions = tuple(costs)
            columns = [_column(cost, size, f"costs[{action!r}]") for action, cost in costs.items()]
            matrix = np.column_stack(columns) if columns else np.zeros((size, 0))
        else:
            actions = tuple(classes)
            matrix = 1.0 - np.eye(size) if costs is None else np.asarray(costs, dtype=float)
            if matrix.shape != (size, size):
                raise ValueError(
                    f"costs= must have a row per true class and a column per predicted one, {size} × {size} as "
                    f"confusion_matrix has them, got shape {matrix.shape}; other actions are named by a mapping"
                )
        if reject_cost is not None:
            name: Any = REJECT_TEXT if any(isinstance(one, str) for one in classes) else REJECT_NUMBER
            if name in actions:
                raise ValueError(f"{name!r} is a class or an action already: name rejecting in a mapping of costs=")
            actions = (*actions, name)
            matrix = np.column_stack((matrix, _column(reject_cost, size, "reject_cost")))
        if len(actions) < 2:
            raise ValueError(f"costs= must name two actions or more, got {list(actions)}")
        if not np.isfinite(matrix).all():
            raise ValueError("costs= must be finite numbers")
        return cls(actions, matrix)

    @property
    def highest(self) -> float:
        """What the dearest action of all costs."""
        return float(self.matrix.max())

    @property
    def saved(self) -> NDArray[np.float64]:
        """How much less each action costs than the dearest one of all, in the shape of the matrix."""
        return np.asarray(self.highest - self.matrix)

    def usual_actions(
        self,
        scores: NDArray[np.float64],
        codes: NDArray[np.int64],
        weight: NDArray[np.float64] | None,
        class_of: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """What would be done without a rule, as a column: the class with the largest score is predicted; where a class
        is no action, what is cheapest for all rows is done. `class_of` has the class of each action, or -1."""
        action_of = np.full(scores.shape[1], -1)
        action_of[class_of[class_of >= 0]] = np.flatnonzero(class_of >= 0)
        if (action_of < 0).any():
            cheapest = int(np.average(self.matrix[codes], axis=0, weights=weight).argmin())
            return np.full((len(codes), 1), cheapest)
        return np.asarray(action_of[scores.argmax(axis=1)])[:, None]


def _column(cost: Any, classes: int, name: str) -> NDArray[np.float64]:
    """What one action costs, by true class; one number is the same for all."""
    column = np.asarray(cost, dtype=float)
    if column.shape not in ((), (classes,)):
        raise ValueError(f"{name} must be a number, or one for each of the {classes} classes, got shape {column.shape}")
    return np.broadcast_to(column, (classes,)).astype(float)
