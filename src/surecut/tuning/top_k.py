"""Exactly k labels for each row: several classes (k = 1), or the tags that are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion
from surecut.core.label_rows import Counts, DenseRows, StoredRows
from surecut.core.top_rows import NO_LABEL, top_positions
from surecut.decisions.top_k import Baseline, TopK, gain_of_actions
from surecut.label_objectives import COST, confusion_of, label_objective, recall_of_labels, values_of_confusion
from surecut.tuning.top_k_request import Costs, TopKRequest
from surecut.tuning.top_k_search import search_cheapest, search_exactly, search_smoothed
from surecut.tuning.validation_rows import ValidationRows, validation_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.tuning.request import MetricLike
    from surecut.tuning.top_k_request import CostsLike


def tune_top_k(
    Y_true: Any,
    Y_score: Any,
    *,
    k: int,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    average: str | None = None,
    costs: CostsLike | None = None,
    reject_cost: ArrayLike | None = None,
    classes: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    missing: str = "error",
    labels: Iterable[Any] | None = None,
    random_state: int | None = 0,
) -> TopK | dict[str, TopK]:
    """Find the rule that predicts k labels for each row with which a metric, averaged over labels, is best.

    The rule predicts the k labels with the largest a·score + b: with k = 1 one class for each row.

    Parameters
    ----------
    Y_true
        Labels of shape (rows, labels), 0 and 1: an array, a sparse matrix or a frame. Or, with k = 1, a column of class
        labels.
    Y_score
        Scores of shape (rows, labels): probabilities, or any other scores. With class labels the columns are those of
        the sorted classes, as scikit-learn has them, or of `classes`.
    k
        How many labels each row gets.
    metric
        A name, a metric, a scikit-learn scorer, a function of a `Confusion`, or a list of these, which gives a dict.
    average
        ``"macro"``: the mean of the labels' values. ``"weighted"``: the same, weighted by the labels' positives.
        ``"micro"``: the value of the added counts. ``"multiclass"``: the metric of the confusion matrix of all classes,
        for accuracy, balanced_accuracy, gmean, kappa and mcc. Without it these five mean just that where `Y_true` is a
        column of classes, and all others the macro average.
    costs
        Instead of a metric: what a prediction costs, a matrix with a row for each true class and a column for each
        predicted one, or a mapping from actions to their costs, a number or one for each true class. Scores are turned
        into probabilities first.
    reject_cost
        What it costs to predict nothing: an action ``"reject"`` more (−1 where classes are numbers). Errors cost 1
        where `costs` is not given.
    classes
        The classes in the order of the columns, where these are not the sorted labels of `Y_true`. A
        `ClassOrderWarning` says where another order fits the scores far better.
    sample_weight
        Weights of the rows, not negative. A weight of 2 means the row twice.
    shrinkage
        κ, the prior strength of a calibrated model of the scores, in equivalent positives, as in `tune_thresholds`.
    stable
        Whether the rule is for new rows: it is the best one for the probabilities of a calibrated model of the scores.
        Rare labels do not overfit then.
    missing
        What to do with rows that lack a label, a score or their weight: ``"error"``, or ``"drop"``.
    labels
        Names of the labels of an indicator matrix; else the frame's column names, or positions.
    random_state
        Has no effect: nothing is drawn that depends on it, and equal rows give equal rules.

    Returns
    -------
    TopK
        The rule, its value, and that of the k largest scores beside it.

    Examples
    --------
    >>> import numpy as np
    >>> from surecut import tune_top_k
    >>> y = np.array(["a", "a", "a", "b", "b", "c"])
    >>> scores = [[0.6, 0.3, 0.1], [0.7, 0.2, 0.1], [0.5, 0.2, 0.3], [0.5, 0.4, 0.1], [0.4, 0.5, 0.1], [0.5, 0.1, 0.4]]
    >>> rule = tune_top_k(y, scores, k=1, metric="f1")
    >>> rule.value, round(rule.baseline.value, 4)
    (1.0, 0.4722)
    >>> rule.predict([[0.5, 0.1, 0.4]])
    array(['c'], dtype='<U1')
    """
    asked = validation_rows(
        Y_true, Y_score, k, sample_weight=sample_weight, missing=missing, classes=classes, labels=labels
    )
    if classes is not None:
        asked.warn_of_class_order()
    request = TopKRequest.of(
        metric,
        k=k,
        average=average,
        multiclass=asked.codes is not None,
        shrinkage=shrinkage,
        stable=stable,
        missing=missing,
        random_state=random_state,
        costs=Costs.of(costs, reject_cost, asked.names),
    )
    found: TopK | dict[str, TopK] = tune_rules(asked, request)
    return found


def tune_rules(asked: ValidationRows, request: TopKRequest) -> Any:
    """The rule of checked rows, or a dict of rules where a list of metrics was asked."""
    if request.costs is not None:
        return _cheapest(asked, request, request.costs)
    return request.named([_best(asked, metric, average, request) for metric, average in request.metrics])


def _best(asked: ValidationRows, metric: Any, average: str, request: TopKRequest) -> TopK:
    rows = asked.rows
    objective = label_objective(metric, average, rows.positives, rows.total)
    model = None
    if request.stable or request.shrinkage != 0:
        model = asked.model(request.stable, request.shrinkage, metric)
        probabilities = asked.probabilities(model.score_map)
        search = search_smoothed(rows, metric, average, probabilities, asked.by_entry(model.rho))
        rows = rows.with_eta(probabilities)
    else:
        search = search_exactly(rows, objective)
    rule, labels = search.rule, len(asked.names)
    chosen = rows.chosen(rule.a, rule.offsets)
    plain = asked.rows.chosen(np.ones(labels), np.zeros(labels))
    confusion, before = _confusion(asked, rows.counts(chosen)), _confusion(asked, asked.rows.counts(plain))
    value, per_label = values_of_confusion(metric, average, confusion)
    return TopK(
        labels=asked.names,
        k=request.k,
        a=rule.a,
        offsets=rule.offsets,
        value=value,
        metric=metric,
        average=objective.average,
        per_label=per_label,
        confusion=confusion,
        baseline=Baseline(values_of_confusion(metric, average, before)[0], before, _matrix(asked, plain)),
        matrix=_matrix(asked, chosen),
        actions=asked.names,
        starts=search.starts,
        agreed=search.agreed,
        calibration=None if model is None else model.score_map,
        shrinkage=np.zeros(labels) if model is None else model.kappa,
        stable=request.stable,
        sample=asked.sample,
    )


def _cheapest(asked: ValidationRows, request: TopKRequest, costs: Costs) -> TopK:
    """The rule that costs least. It has a number for each class and action, so it always compares probabilities."""
    codes, labels = asked.codes, len(asked.names)
    if codes is None or not isinstance(asked.rows, DenseRows):
        raise ValueError("costs= and reject_cost= need rows of one class each: pass class labels and dense scores, k=1")
    weight = asked.rows.weight
    score_map = asked.model(stable=True).score_map
    probabilities = asked.probabilities(score_map)
    search = search_cheapest(probabilities, codes, weight, costs, not request.stable)
    rule = search.rule
    cost_gains = rule.a[:, None] * costs.saved.T
    chosen = top_positions(gain_of_actions(probabilities, cost_gains, rule.offsets), 1)
    where = np.array([asked.names.index(one) if one in asked.names else NO_LABEL for one in costs.actions])
    usual = costs.usual_actions(asked.rows.scores, codes, weight, where)

    def confusion(actions: NDArray[np.int64]) -> Confusion:
        return _confusion(asked, asked.rows.counts(where[actions]))

    def value(actions: NDArray[np.int64]) -> float:
        return -float(np.average(costs.matrix[codes, actions[:, 0]], weights=weight))

    counted = confusion(chosen)
    return TopK(
        labels=asked.names,
        k=1,
        a=None,
        offsets=rule.offsets,
        cost_gains=cost_gains,
        value=value(chosen),
        metric=None,
        average=COST,
        per_label=recall_of_labels(counted.tp, asked.rows.positives),
        confusion=counted,
        baseline=Baseline(value(usual), confusion(usual), _matrix(asked, usual, len(costs.actions))),
        matrix=_matrix(asked, chosen, len(costs.actions)),
        actions=costs.actions,
        costs=costs.matrix,
        starts=search.starts,
        agreed=search.agreed,
        calibration=score_map,
        shrinkage=np.zeros(labels),
        stable=request.stable,
        sample=asked.sample,
    )


def _confusion(asked: ValidationRows, counts: Counts) -> Confusion:
    return confusion_of(counts.tp, counts.predicted, asked.rows.positives, asked.rows.total)


def _matrix(asked: ValidationRows, chosen: Any, actions: int | None = None) -> NDArray[Any] | None:
    """Rows by true class and by predicted one, or by action."""
    if asked.codes is None:
        return None
    classes, weight = len(asked.names), asked.rows.weight
    columns = classes if actions is None else actions
    if isinstance(asked.rows, StoredRows):  # `chosen` are entries
        row, column = asked.rows.row[chosen], asked.rows.columns[chosen]
    else:
        row = np.flatnonzero(chosen[:, 0] != NO_LABEL)  # a row whose scores are all -inf is predicted nothing
        column = chosen[row, 0]
    cell = asked.codes[row] * columns + column
    table = np.bincount(cell, None if weight is None else weight[row], minlength=classes * columns)
    table = table.reshape(classes, columns)
    return table.astype(np.int64) if weight is None else table
