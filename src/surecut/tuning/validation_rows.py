"""The checked rows of a rule that predicts k labels a row, and what is computed of them once for all metrics."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from surecut._inputs import as_weights, check_missing
from surecut._labels import class_codes, listed
from surecut._matrices import (
    aligned,
    class_indicators,
    is_sparse,
    label_matrix,
    one_column_hint,
    present_rows,
    require_no_lists,
    score_matrix,
)
from surecut._warnings import ClassOrderWarning, warn_caller
from surecut.calibration.classes import calibrate_classes
from surecut.core.label_rows import DenseRows, LabelRows, StoredRows
from surecut.core.rules import Objective
from surecut.metrics import Metric, get_metric
from surecut.sample import Sample
from surecut.sources.matrices import label_source
from surecut.tuning.smoothing import Smoothed
from surecut.tuning.top_k_request import check_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.calibration.curves import Calibration
    from surecut.decisions.score_map import ScoreMap
    from surecut.sources.labels import LabelSource


MOST_CLASSES = 1_000
"""Of more classes the best order is not looked for."""

FEWEST_ROWS = 10
"""With fewer rows for each class, their order is not looked at."""


class ScoreModel(NamedTuple):
    """A model of the labels given the scores.

    Attributes
    ----------
    score_map
        From scores to probabilities.
    rho, kappa
        How far each label is drawn toward it: the share of the model in smoothed labels, and κ.
    """

    score_map: ScoreMap
    rho: NDArray[np.float64]
    kappa: NDArray[np.float64]


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
        self._models: dict[Any, ScoreModel] = {}

    @cached_property
    def _source(self) -> LabelSource:
        return label_source(*self.matrices)

    @cached_property
    def sample(self) -> Sample:
        """What rules remember of the rows."""
        return self._source.sample()

    def model(self, stable: bool, shrinkage: float | str = 0.0, metric: Any = None) -> ScoreModel:
        """The model of the scores, and how far labels are drawn toward it: wholly where the rule is to be stable."""
        plain = metric if isinstance(metric, Metric) else get_metric("f1")
        key = ("auto" if stable else shrinkage, plain.needs_negatives)
        if key not in self._models:
            self._models[key] = self._fitted(stable, key[0], plain)
        return self._models[key]

    def _fitted(self, stable: bool, kappa: float | str, metric: Metric) -> ScoreModel:
        ones, zeros = np.ones(len(self.names)), np.zeros(len(self.names))
        of_classes = self.codes is not None and isinstance(self.rows, DenseRows)
        if of_classes and stable:
            return ScoreModel(self._of_classes(), ones, zeros)
        smoothed = Smoothed.by_shrinkage(self._source, kappa, Objective(metric, (), None))
        found = self._of_classes() if of_classes else cast("Calibration", smoothed.calibration).score_map
        return ScoreModel(found, ones, zeros) if stable else ScoreModel(found, smoothed.rho, smoothed.kappa)

    def _of_classes(self) -> ScoreMap:
        assert self.codes is not None
        assert isinstance(self.rows, DenseRows)
        return calibrate_classes(self.rows.scores, self.codes, self.rows.weight)

    def probabilities(self, score_map: ScoreMap) -> NDArray[np.float64]:
        """Probabilities of all entries."""
        if isinstance(self.rows, StoredRows):
            return score_map.of_entries(self.rows.scores, self.rows.columns)
        return score_map.probabilities(self.rows.eta)

    def warn_of_class_order(self) -> None:
        """Warn where the largest score is mostly wrong, and would be right with the columns in another order."""
        if self.codes is None or not isinstance(self.rows, DenseRows) or len(self.names) > MOST_CLASSES:
            return
        if len(self.codes) < FEWEST_ROWS * len(self.names):
            return  # some order always fits a few rows
        from scipy.optimize import linear_sum_assignment

        classes = len(self.names)
        largest = self.rows.scores.argmax(axis=1)
        table = np.bincount(largest * classes + self.codes, minlength=classes**2).reshape(classes, classes)
        columns, fitting = linear_sum_assignment(table, maximize=True)
        given, best, rows = int(table.trace()), int(table[columns, fitting].sum()), len(self.codes)
        if 2 * given < best and 2 * best > rows:
            warn_caller(
                f"the largest score is that of the row's class for {given / rows:.0%} of the rows, and would be for "
                f"{best / rows:.0%} if the columns were those of {listed([self.names[i] for i in fitting])}: do "
                "classes= name the columns in their order?",
                ClassOrderWarning,
            )

    def by_entry(self, by_label: NDArray[np.float64]) -> NDArray[np.float64]:
        """A number of each label, for all entries."""
        return by_label[self.rows.columns] if isinstance(self.rows, StoredRows) else by_label


def validation_rows(
    Y_true: Any,
    Y_score: Any,
    k: int,
    *,
    sample_weight: Any = None,
    missing: str = "error",
    classes: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
) -> ValidationRows:
    """Check labels and scores: rows of one class each if `Y_true` is one column, otherwise indicators."""
    check_missing(missing, "error", "drop")
    check_k(k)
    if missing == "drop":
        Y_true, Y_score, sample_weight = present_rows(Y_true, Y_score, sample_weight)
    one_column = one_column_hint(Y_true, "tune_threshold takes one label's scores")
    scores, score_names = score_matrix(Y_score, one_column=one_column)
    require_no_lists(Y_true)
    by_class = not is_sparse(Y_true) and np.ndim(Y_true) == 1
    codes = None
    if by_class:
        if labels is not None:
            raise ValueError("labels= names the columns of an indicator matrix: with class labels pass classes=")
        known = score_names if classes is None and score_names is not None else classes
        codes, names = class_codes(Y_true, scores.shape[1], known)
        if len(codes) != scores.shape[0]:
            raise ValueError(f"Y_true and Y_score must have one length: got {len(codes)} and {scores.shape[0]} rows")
        truth = class_indicators(codes, len(names))
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
    check_k(k, scores.shape[1])
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
