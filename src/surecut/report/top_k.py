"""What the page of k labels a row shows, as plain values: each label before and after, and the confusion of classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from surecut._version import __version__
from surecut.decisions.class_changes import READABLE, ClassChanges, quantity_of_labels
from surecut.decisions.class_wording import (
    baseline_text,
    class_lines,
    headline,
    shown_value,
    value_name,
)
from surecut.decisions.wording import capitalized, label_text
from surecut.report.summary import TITLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.top_k import TopK

MOST = 2_000
"""Labels on the page: those that change most, and those with the most positives."""

PAIRS = 12
"""Confusions that are listed: those of two classes that change most."""

Pair = tuple[float | None, float | None]


class ChangeDict(TypedDict):
    """A row of the table; pairs are before and after, shares of all rows where nothing else is said."""

    name: str
    positives: float
    prior: float
    predicted: Pair
    value: Pair
    recall: Pair
    precision: Pair
    moved: float


class MatrixDict(TypedDict):
    """Rows by true class and by what is predicted, before and after.

    `right` has the column of each class, −1 where it cannot be predicted; `others` those of actions that are no class.
    """

    classes: list[str]
    actions: list[str]
    right: list[int]
    others: list[int]
    before: list[list[float]]
    after: list[list[float]]


class ConfusedDict(TypedDict):
    """How many rows of a class are predicted to have another one, before and after."""

    true: str
    predicted: str
    before: float
    after: float


class TopKSummary(TypedDict):
    """Everything on the page of k labels a row."""

    title: str
    sentence: str
    lines: list[str]
    noun: str
    metric: str
    value_name: str
    value: float
    before: float
    before_by: str
    is_cost: bool
    rows: int
    weighted: bool
    changes: list[ChangeDict]
    count: int
    matrix: MatrixDict | None
    confused: list[ConfusedDict]
    surecut_version: str


def summarize_top_k(rule: TopK, *, title: str = "What is predicted, before and after") -> TopKSummary:
    """What the page shows of a rule that predicts k labels a row.

    Parameters
    ----------
    rule
        The rule.
    title
        The page's heading.

    Examples
    --------
    >>> from surecut import tune_top_k
    >>> y, scores = ["a", "a", "a", "b"], [[0.75, 0.25], [0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]
    >>> summary = summarize_top_k(tune_top_k(y, scores, k=1))
    >>> summary["matrix"]["before"], summary["matrix"]["after"]
    ([[3, 0], [1, 0]], [[3, 0], [0, 1]])
    """
    changes = ClassChanges.of(rule)
    by_positives = np.argsort(-np.asarray(rule.confusion.positives), kind="stable")[: MOST // 2].tolist()
    chosen = list(dict.fromkeys([*by_positives, *changes.most(MOST)]))[:MOST]
    if not set(rule.labels) & set(rule.actions):
        chosen = []  # no label is ever predicted
    quantity = quantity_of_labels(rule)
    return TopKSummary(
        title=title,
        sentence=capitalized(headline(rule)),
        lines=[capitalized(line).replace(" -> ", " → ") for line in class_lines(rule)],
        noun="classes" if rule.is_multiclass else "labels",
        metric=TITLES.get(quantity, quantity),
        value_name=value_name(rule),
        value=shown_value(rule, rule.value),
        before=shown_value(rule, rule.baseline.value),
        before_by=baseline_text(rule),
        is_cost=rule.metric is None,
        rows=rule.rows,
        weighted=rule.weighted,
        changes=[_change(rule, changes, i) for i in chosen],
        count=len(rule),
        matrix=_matrix(rule),
        confused=_confused(rule),
        surecut_version=__version__,
    )


def _change(rule: TopK, changes: ClassChanges, i: int) -> ChangeDict:
    positives, total = (float(np.asarray(one)[i]) for one in (rule.confusion.positives, rule.confusion.total))
    return ChangeDict(
        name=label_text(rule.labels[i]),
        positives=positives,
        prior=positives / total,
        predicted=_pair(changes.predicted, i),
        value=_pair(changes.value, i),
        recall=_pair(changes.recall, i),
        precision=_pair(changes.precision, i),
        moved=float(changes.moved[i]),
    )


def _pair(values: NDArray[np.float64], i: int) -> Pair:
    before, after = (float(f"{value:.6g}") if math.isfinite(value) else None for value in values[:, i].tolist())
    return before, after


def _matrix(rule: TopK) -> MatrixDict | None:
    """The confusion matrices; None where there are none, or they are too large to be read."""
    matrix, before = rule.matrix, rule.baseline.matrix
    if matrix is None or before is None or max(matrix.shape) > READABLE:
        return None
    column = {action: i for i, action in enumerate(rule.actions)}
    return MatrixDict(
        classes=[label_text(label) for label in rule.labels],
        actions=[label_text(action) for action in rule.actions],
        right=[column.get(label, -1) for label in rule.labels],
        others=[i for i, action in enumerate(rule.actions) if action not in set(rule.labels)],
        before=before.tolist(),
        after=matrix.tolist(),
    )


def _confused(rule: TopK) -> list[ConfusedDict]:
    """The pairs of a class and another prediction whose numbers of rows change most."""
    matrix, before = rule.matrix, rule.baseline.matrix
    if matrix is None or before is None:
        return []
    change: NDArray[Any] = np.abs(matrix - before).astype(float)
    change[[[label == action for action in rule.actions] for label in rule.labels]] = 0
    order = np.argsort(-change, axis=None, kind="stable")[:PAIRS]
    pairs = [divmod(int(place), change.shape[1]) for place in order if change.flat[place] > 0]
    return [
        ConfusedDict(
            true=label_text(rule.labels[i]),
            predicted=label_text(rule.actions[j]),
            before=before[i, j].item(),
            after=matrix[i, j].item(),
        )
        for i, j in pairs
    ]
