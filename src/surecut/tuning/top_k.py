"""Exactly k labels for each row: several classes (k = 1), or the tags that are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_weights
from surecut._labels import class_codes
from surecut._matrices import aligned, is_sparse, label_matrix, present_rows, score_matrix
from surecut.calibration.classes import calibrate_classes
from surecut.confusion import Confusion
from surecut.core.fixed_point import Rule, fixed_point, usual_starts
from surecut.core.label_rows import Counts, DenseRows, LabelRows, StoredRows
from surecut.core.rules import Objective
from surecut.core.sweeps import Sweep
from surecut.decisions.score_map import ScoreMap
from surecut.decisions.top_k import Baseline, TopK
from surecut.label_objectives import AveragedMetric, LabelObjective, MulticlassMetric, label_objective
from surecut.metrics import get_metric
from surecut.sample import Sample
from surecut.sources.matrices import label_source
from surecut.tuning.smoothing import Smoothed
from surecut.tuning.top_k_request import Costs, TopKRequest

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
    labels: Iterable[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    missing: str = "error",
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
        The classes in the order of the columns, where these are not the sorted labels of `Y_true`.
    labels
        Names of the labels of an indicator matrix; else the frame's column names, or positions.
    sample_weight
        Weights of the rows, not negative. A weight of 2 means the row twice.
    shrinkage
        κ, the prior strength of a calibrated model of the scores, in equivalent positives, as in `tune_thresholds`.
    stable
        Whether the rule is for new rows: it is the best one for the probabilities of a calibrated model of the scores.
        Rare labels do not overfit then.
    missing
        What to do with rows that lack a label, a score or their weight: ``"error"``, or ``"drop"``.
    random_state
        Not used yet: the search is deterministic.

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
    asked = _rows_of(Y_true, Y_score, k, sample_weight, missing, classes, labels)
    request = TopKRequest.of(
        metric,
        k=k,
        average=average,
        multiclass=asked.codes is not None,
        shrinkage=shrinkage,
        stable=stable,
        missing=missing,
        random_state=random_state,
    )
    if k > len(asked.names):
        raise ValueError(f"k= must be at most the number of labels, {len(asked.names)}, got {k}")
    priced = Costs.of(costs, reject_cost, asked.names)
    if priced is not None:
        raise NotImplementedError
    rules = [_tuned(asked, one, average_of, request) for one, average_of in request.metrics]
    found: TopK | dict[str, TopK] = request.named(rules)
    return found


class ValidationRows:
    """The checked rows of a call, and what is computed of them once for all metrics."""

    def __init__(
        self,
        rows: LabelRows,
        names: tuple[Any, ...],
        codes: NDArray[np.int64] | None,
        matrices: tuple[Any, Any, NDArray[np.float64] | None],
    ) -> None:
        self.rows, self.names, self.codes, self.matrices = rows, names, codes, matrices
        self._maps: dict[Any, tuple[ScoreMap, NDArray[np.float64]]] = {}

    @cached_property
    def sample(self) -> Sample:
        """What rules remember of them."""
        return label_source(*self.matrices).sample()

    def score_map(self, request: TopKRequest, metric: Any) -> tuple[ScoreMap, NDArray[np.float64]]:
        """The map from scores to probabilities, and ρ, the share of the model in smoothed labels."""
        labels = len(self.names)
        kappa = "auto" if request.stable else request.shrinkage
        plain = get_metric("f1") if isinstance(metric, MulticlassMetric) else metric
        key = (kappa, plain.needs_negatives)
        if key in self._maps:
            return self._maps[key]
        by_class = self.codes is not None and isinstance(self.rows, DenseRows)
        smoothed = None
        if not (by_class and request.stable):
            smoothed = Smoothed.by_shrinkage(label_source(*self.matrices), kappa, Objective(plain, (), None))
        if by_class:
            assert self.codes is not None
            score_map = calibrate_classes(self.rows.eta, self.codes, self.rows.weight)
        else:
            assert smoothed is not None
            score_map = smoothed.calibration.score_map  # type: ignore[union-attr]
        rho = np.ones(labels) if request.stable or smoothed is None else smoothed.rho
        self._maps[key] = score_map, rho
        return self._maps[key]


def _rows_of(
    Y_true: Any, Y_score: Any, k: Any, sample_weight: Any, missing: str, classes: Any, labels: Any
) -> ValidationRows:
    if missing == "drop":
        Y_true, Y_score, sample_weight = present_rows(Y_true, Y_score, sample_weight)
    one_column = "tune_threshold takes one label's scores"
    scores, score_names = score_matrix(Y_score, one_column=one_column)
    by_class = not is_sparse(Y_true) and np.ndim(Y_true) == 1
    codes = None
    if by_class:
        if labels is not None:
            raise ValueError("labels= names the columns of an indicator matrix: with class labels pass classes=")
        known = score_names if classes is None and score_names is not None else classes
        codes, names = class_codes(Y_true, scores.shape[1], known)
        if len(codes) != scores.shape[0]:
            raise ValueError(f"Y_true and Y_score must have one length: got {len(codes)} and {scores.shape[0]} rows")
        truth = np.zeros(scores.shape, dtype=np.uint8)
        truth[np.arange(len(codes)), codes] = 1
    else:
        if classes is not None:
            raise ValueError("classes= names the classes of a column of labels: with indicators pass labels=")
        truth, truth_names = label_matrix(Y_true)
        truth, names = aligned(truth, truth_names, scores, score_names, labels)
    weight = None if sample_weight is None else as_weights(sample_weight, scores.shape[0])
    if weight is not None and not weight.all():
        present = np.flatnonzero(weight)
        truth, scores, weight = truth[present], scores[present], weight[present]
        codes = None if codes is None else codes[present]
    values = scores.data if is_sparse(scores) else scores
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError('Y_score holds NaN: labels without a score cannot be compared; fill them, or missing="drop"')
    rows = _sparse_rows(truth, scores, k, weight) if is_sparse(scores) else _dense_rows(truth, scores, k, weight)
    return ValidationRows(rows, names, codes, (truth, scores, weight))


def _dense_rows(truth: Any, scores: NDArray[Any], k: int, weight: NDArray[np.float64] | None) -> DenseRows:
    dense = truth.toarray() if is_sparse(truth) else np.asarray(truth)
    dense = dense.astype(np.uint8, copy=False)
    if weight is None:
        return DenseRows(scores.astype(np.float64), dense, k, None, dense.sum(axis=0, dtype=np.int64), len(dense))
    return DenseRows(scores.astype(np.float64), dense, k, weight, weight @ dense, float(weight.sum()))


def _sparse_rows(truth: Any, scores: Any, k: int, weight: NDArray[np.float64] | None) -> StoredRows:
    from scipy import sparse

    stored = scores.tocsr()
    stored.sort_indices()
    labels = sparse.csr_array(truth).astype(np.uint8)
    labels.sort_indices()
    row = np.repeat(np.arange(stored.shape[0]), np.diff(stored.indptr))
    owner = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
    place, known = row * np.int64(stored.shape[1]) + stored.indices, owner * np.int64(labels.shape[1]) + labels.indices
    true = np.isin(place, known[labels.data > 0]).astype(np.uint8)
    weights = None if weight is None else weight[owner]
    positives = np.bincount(labels.indices, weights, minlength=labels.shape[1])
    total = stored.shape[0] if weight is None else float(weight.sum())
    kind = np.int64 if weight is None else np.float64
    indptr = stored.indptr.astype(np.int64)
    data = stored.data.astype(np.float64)
    return StoredRows(indptr, stored.indices, data, true, k, weight, positives.astype(kind), total)


def _tuned(asked: ValidationRows, metric: Any, average: str, request: TopKRequest) -> TopK:
    rows = asked.rows
    objective = label_objective(metric, average, rows.positives, rows.total)
    score_map = None
    kappa = np.zeros(len(asked.names))
    if request.stable or request.shrinkage != 0:
        score_map, rho = asked.score_map(request, metric)
        probabilities = (
            score_map.probabilities(rows.eta)
            if isinstance(rows, DenseRows)
            else score_map.of_entries(rows.eta, rows.columns)  # type: ignore[attr-defined]
        )
        share = rho if isinstance(rows, DenseRows) else rho[rows.columns]  # type: ignore[attr-defined]
        known = np.maximum(probabilities, 0.0)
        soft = rows.with_eta(probabilities).with_truth(share * known + (1 - share) * rows.truth)
        expected = label_objective(metric, average, soft.positives, soft.total)
        found = [fixed_point(soft, expected, start) for start in usual_starts(soft)]
        if not request.stable:
            with np.errstate(divide="ignore", invalid="ignore"):
                kappa = np.where(rho < 1, rho * rows.positives / (1 - rho), np.inf)
        rows = rows.with_eta(probabilities)
    else:
        found = searched(rows, objective)
    best = max(found, key=lambda rule: rule.value)
    agreed = sum(rule.value >= best.value - 1e-9 for rule in found)
    return _record(asked, rows, best, objective, metric, request, len(found), agreed, score_map, kappa)


def searched(rows: LabelRows, objective: LabelObjective) -> list[Rule]:
    """Rules that no change of a single number improves, one from each start."""
    starts = usual_starts(rows)
    starts = [*starts, *(fixed_point(rows, objective, start) for start in starts)]
    if 0 <= rows.eta.min(initial=0) and rows.eta.max(initial=0) <= 1:
        soft = rows.with_truth(rows.eta)
        expected = label_objective(objective.metric, objective.average, soft.positives, soft.total)
        starts += [fixed_point(soft, expected, start) for start in starts[:2]]
    return [Sweep(rows, objective, start).run() for start in starts]


def _record(
    asked: ValidationRows,
    rows: LabelRows,
    rule: Rule,
    objective: LabelObjective,
    metric: Any,
    request: TopKRequest,
    starts: int,
    agreed: int,
    score_map: ScoreMap | None,
    kappa: NDArray[np.float64],
) -> TopK:
    labels = len(asked.names)
    chosen = rows.choose(rows.affine(rule.a, rule.offsets))
    plain = asked.rows.choose(asked.rows.affine(np.ones(labels), np.zeros(labels)))
    counts, before = rows.counts(chosen), asked.rows.counts(plain)
    return TopK(
        labels=asked.names,
        k=request.k,
        a=rule.a,
        offsets=rule.offsets,
        value=objective.value(*counts),
        metric=metric,
        average=objective.average,
        per_label=_per_label(objective, counts),
        confusion=_confusion(counts, rows),
        baseline=Baseline(objective.value(*before), _confusion(before, rows), _matrix(asked, plain)),
        matrix=_matrix(asked, chosen),
        actions=asked.names,
        starts=starts,
        agreed=agreed,
        calibration=score_map,
        shrinkage=kappa,
        stable=request.stable,
        sample=asked.sample,
    )


def _per_label(objective: LabelObjective, counts: Counts) -> NDArray[np.float64]:
    if isinstance(objective, AveragedMetric):
        values = objective.per_label(counts.tp, counts.predicted)
        needs_both = objective.metric.needs_positives and objective.metric.needs_negatives
        return np.where(objective.undefined, np.nan if needs_both else 0.0, values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(counts.tp / objective.positives, dtype=float)


def _confusion(counts: Counts, rows: LabelRows) -> Confusion:
    fp = counts.predicted - counts.tp
    return Confusion(counts.tp, fp, rows.positives - counts.tp, rows.total - rows.positives - fp)


def _matrix(asked: ValidationRows, chosen: Any) -> NDArray[Any] | None:
    """Rows by true class and by predicted one."""
    if asked.codes is None or not isinstance(asked.rows, DenseRows):
        return None
    size, weight = len(asked.names), asked.rows.weight
    table = np.bincount(asked.codes * size + chosen[:, 0], weight, minlength=size * size).reshape(size, size)
    return table.astype(np.int64) if weight is None else table
