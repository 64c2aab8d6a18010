"""Exactly k labels for each row of a long table, tuned where the table is: in memory, in files, or in an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._labels import LabelKind, kind_of
from surecut._plurals import counted
from surecut.decisions.top_k import named
from surecut.label_objectives import MULTICLASS_AVERAGE, multiclass_metric
from surecut.sources.columns import LongColumns
from surecut.sources.engines import EngineRows
from surecut.sources.long_tables import LongMatrices, long_matrices
from surecut.tuning.frame import lazy_rows, opened
from surecut.tuning.top_k import tune_top_k
from surecut.tuning.top_k_request import TopKRequest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.decisions.top_k import TopK
    from surecut.tuning.request import MetricLike
    from surecut.tuning.top_k_request import CostsLike


def tune_top_k_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    row: str | Sequence[str],
    k: int,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    by: str | Sequence[str],
    average: str | None = None,
    costs: CostsLike | None = None,
    reject_cost: ArrayLike | None = None,
    weight: str | None = None,
    pos_label: Any = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    missing: str = "error",
    random_state: int | None = 0,
) -> TopK | dict[str, TopK]:
    """Find the rule that predicts k labels for each row of a long table: that of `tune_top_k` on its matrices.

    A long table has a line for each row and each of its labels or candidates: whether the row has the label, and the
    score. The engine of the table numbers rows and labels; the numbers, truths and scores of all lines are then kept in
    memory, some 80 bytes for each line.

    Parameters
    ----------
    frame
        As in `tune_frame`: a data frame, a relation, or the path of files.
    label, score, weight
        Names of columns: whether the row of a line has the label of the line, its score, and the weight of the row,
        which all lines of a row repeat.
    row
        The name of the column that tells rows apart, or of several which do so together.
    k, metric, average, costs, reject_cost, shrinkage, stable, random_state
        As in `tune_top_k`.
    by
        The name of the column that holds labels, or of several. The labels of the rule are its values, sorted.
    pos_label
        The value of `label` that counts as positive, where it is not booleans, {0, 1} or {−1, 1}.
    missing
        What to do with lines that have a null or NaN: ``"error"``, or ``"drop"``, which warns how many there are and
        leaves out all lines of their rows; of a line without a row or a label, the line itself. Positive lines need no
        score.

    Returns
    -------
    TopK
        A dict of them for several metrics. It does not depend on the order of the lines.

    Notes
    -----
    A pair of a row and a label without a line has no score, and is never predicted: the matrices are sparse. A true
    label that is no candidate of its row needs a line without a score (null), or it is not counted among the label's
    positives.

    With ``k=1``, rows are of one class each where each has a score for each label, and exactly one true label; labels
    are numbers or text. Then the rule is that of class labels: `matrix` is there, and metrics of several classes and
    `costs` can be asked for, which otherwise are an error that says how many rows are not of one class.

    Examples
    --------
    >>> import pandas
    >>> from surecut import tune_top_k_frame
    >>> table = pandas.DataFrame(
    ...     {
    ...         "id": [1, 1, 1, 2, 2, 2, 3, 3, 3],
    ...         "class": ["a", "b", "c"] * 3,
    ...         "y": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    ...         "p": [0.6, 0.3, 0.1, 0.5, 0.4, 0.1, 0.5, 0.1, 0.4],
    ...     }
    ... )
    >>> rule = tune_top_k_frame(table, row="id", by="class", label="y", score="p", k=1)
    >>> rule.labels, rule.value, round(rule.baseline.value, 4)
    (('a', 'b', 'c'), 1.0, 0.1667)
    """
    request: dict[str, Any] = {
        "metric": metric,
        "k": k,
        "average": average,
        "shrinkage": shrinkage,
        "stable": stable,
        "random_state": random_state,
    }
    TopKRequest.of(multiclass=k == 1, missing=missing, **request)  # before anything is read
    columns = LongColumns.of(row, by, label=label, score=score, weight=weight, pos_label=pos_label)
    matrices = read_long_table(frame, columns, missing)
    return tune_matrices(matrices, costs=costs, reject_cost=reject_cost, **request)


def read_long_table(frame: Any, asked: LongColumns, missing: str) -> LongMatrices:
    """The lines of a frame as matrices."""
    with opened(frame) as lines:
        lazy = lazy_rows(lines, asked.columns)
        return long_matrices(EngineRows(lazy, asked.columns, missing, positives_need_scores=False), asked.rows)


def tune_matrices(
    matrices: LongMatrices, *, costs: CostsLike | None = None, reject_cost: ArrayLike | None = None, **request: Any
) -> TopK | dict[str, TopK]:
    """What `tune_top_k_frame` does with a long table that was read: rows of one class each have class labels."""
    request |= {"costs": costs, "reject_cost": reject_cost, "sample_weight": matrices.weight}
    codes = class_codes_of(matrices) if request["k"] == 1 else None
    if codes is not None:
        classes = named(matrices.labels)[codes]
        return tune_top_k(classes, matrices.scores, classes=matrices.labels, **request)
    if request["k"] != 1 and (costs is not None or reject_cost is not None):
        raise ValueError(f"costs= and reject_cost= are of rows with one class each: k= must be 1, got {request['k']}")
    if request["k"] == 1 and (what := _asked_of_classes(**request)):
        raise ValueError(f"{what} of rows with one class each, and {_not_of_one_class(matrices)}")
    return tune_top_k(matrices.truth, matrices.scores, labels=matrices.labels, **request)


def class_codes_of(matrices: LongMatrices) -> NDArray[np.int64] | None:
    """The position of each row's class; None unless each has one, a score for each, and classes that can be labels."""
    if matrices.rows_without_a_score or not _are_class_labels(matrices.labels):
        return None
    if (matrices.labels_of_rows != 1).any():
        return None
    return np.asarray(matrices.truth.argmax(axis=1), dtype=np.int64)


def _are_class_labels(labels: Sequence[Any]) -> bool:
    try:
        return kind_of(labels, "by") is not LabelKind.OTHER
    except TypeError:
        return False


def _asked_of_classes(*, metric: Any, average: str | None, costs: Any, reject_cost: Any, **_: Any) -> str:
    """What is asked for that has a meaning only, or another one, where rows have one class each; empty if nothing."""
    if costs is not None or reject_cost is not None:
        return "costs= are"
    if average == MULTICLASS_AVERAGE:
        return f"average={MULTICLASS_AVERAGE!r} is"
    asked = [metric] if isinstance(metric, str) or not isinstance(metric, Sequence) else metric
    if average is None and (found := [one for one in map(multiclass_metric, asked) if one is not None]):
        return f"average='macro' is the mean of {found[0].name} over the labels; without it {found[0].name} is"
    return ""


def _not_of_one_class(matrices: LongMatrices) -> str:
    """Why rows are not of one class each, and what to do."""
    number, rows = matrices.labels_of_rows, len(matrices)
    without, several = int((number == 0).sum()), int((number > 1).sum())
    if without or several:
        others = without + several
        none, more = (f"{one:,} {'has' if one == 1 else 'have'}" for one in (without, several))
        return (
            f"{others:,} of {counted(rows, 'row')} {'does' if others == 1 else 'do'} not have exactly one true label "
            f"({none} none, {more} several): each row needs one line that is true"
        )
    if lacking := matrices.rows_without_a_score:
        return (
            f"{lacking:,} of {counted(rows, 'row')} {'lacks' if lacking == 1 else 'lack'} the score of a label: each "
            f"row needs a line with a score for each of the {counted(len(matrices.labels), 'label')}"
        )
    return f"labels such as {matrices.labels[0]!r} are no class labels: name one column of numbers or text in by="
