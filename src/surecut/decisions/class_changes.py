"""What a rule does to each label, beside the k largest scores: numbers for text, notebooks, the page and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.decisions.saving import UnknownMetric
from surecut.label_objectives import COST, MULTICLASS_AVERAGE, recall_of_labels, values_of_confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.decisions.top_k import TopK

READABLE = 30
"""A confusion matrix of more classes, or actions, is not drawn unless it is asked for."""


@dataclass(frozen=True, eq=False)
class ClassChanges:
    """Each label before and after tuning: arrays of shape (2, labels), the k largest scores first, then the rule.

    Attributes
    ----------
    predicted
        The share of the rows that are predicted to have the label.
    recall, precision
        NaN where no row has the label, or none is predicted to.
    value
        The metric of the label, or its recall: see `TopK.per_label`. NaN where it is not known.
    moved
        Of shape (labels,): the weight of rows by which true or false positives differ.
    """

    predicted: NDArray[np.float64]
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    value: NDArray[np.float64]
    moved: NDArray[np.float64]

    @classmethod
    def of(cls, rule: TopK) -> ClassChanges:
        """The changes that a rule makes."""
        pair = rule.baseline.confusion, rule.confusion
        before, after = pair
        return cls(
            predicted=np.array([one.predicted_positives / one.total for one in pair], dtype=float),
            recall=np.array([recall_of_labels(one.tp, one.positives) for one in pair]),
            precision=np.array([recall_of_labels(one.tp, one.predicted_positives) for one in pair]),
            value=np.array([_values_before(rule), rule.per_label], dtype=float),
            moved=np.asarray(abs(after.tp - before.tp) + abs(after.fp - before.fp), dtype=float),
        )

    def most(self, count: int) -> list[int]:
        """The labels that change most, as positions."""
        return [int(i) for i in np.argsort(-self.moved, kind="stable")[:count]]


def quantity_of_labels(rule: TopK) -> str:
    """What `TopK.per_label` holds."""
    return "recall" if rule.metric is None or rule.average in (MULTICLASS_AVERAGE, COST) else rule.metric.name


def other_actions(rule: TopK) -> dict[Any, tuple[float, float]]:
    """Actions that are no labels, such as rejecting: the shares of the rows before and after, where they are known."""
    known = set(rule.labels)
    if rule.matrix is None or rule.baseline.matrix is None or known.issuperset(rule.actions):
        return {}
    total = float(np.asarray(rule.confusion.total)[0])
    pairs = np.column_stack([one.sum(axis=0) / total for one in (rule.baseline.matrix, rule.matrix)]).tolist()
    return {
        action: (before, after)
        for action, (before, after) in zip(rule.actions, pairs, strict=True)
        if action not in known
    }


def _values_before(rule: TopK) -> NDArray[np.float64]:
    confusion: Confusion = rule.baseline.confusion
    if rule.metric is None:
        return recall_of_labels(confusion.tp, confusion.positives)
    unknown = np.full(len(rule), np.nan)
    if isinstance(rule.metric, UnknownMetric):
        return unknown
    try:
        return values_of_confusion(rule.metric, rule.average, confusion)[1]
    except ValueError:  # the metric is known at another prior only
        return unknown
