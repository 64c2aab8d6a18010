"""Exactly k labels for each row, tuned: several classes (k = 1), or the tags that are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut._matrices import is_sparse, score_matrix
from surecut._plurals import counted
from surecut.confusion import Confusion
from surecut.core.top_rows import NO_LABEL, top_entries, top_positions
from surecut.decisions import saving
from surecut.decisions.score_map import ScoreMap
from surecut.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.label_objectives import MulticlassMetric
    from surecut.metrics import Metric
    from surecut.overlap import RowSample

DENSE_GAINS = 1000
"""The gains of so many labels are a dense matrix, those of more a sparse one."""

SHAPES = ("labels", "indicator", "positions")


@dataclass(frozen=True)
class Baseline:
    """What the k labels with the largest scores are worth on the validation rows: the rule without tuning.

    `confusion` holds an array per cell, `matrix` the rows by class and action where k = 1.
    """

    value: float
    confusion: Confusion
    matrix: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class TopK(saving.Saved):
    """A rule that predicts exactly k labels for each row: those with the largest a·η + b.

    η are the scores of a row or, where the rule has a `calibration`, the probabilities that it makes of them. Of equal
    values the label in the lower column wins. An absent score of a sparse matrix, or one of −inf, is never predicted: a
    row with fewer than k others gets fewer labels.

    Attributes
    ----------
    labels
        The labels' names, or the classes: the columns of the scores.
    k
        How many labels a row is predicted.
    a, offsets
        The rule: a label's score is multiplied by `a`, then the offset is added. With `costs` of other actions `a` is
        None, and `gains` is the rule's matrix.
    value
        The averaged metric on the validation rows; with costs minus the mean cost of a row.
    metric, average
        What the rule is best for. ``"macro"``: the mean over labels of the metric. ``"weighted"``: the same, each label
        weighted by its positives. ``"micro"``: the metric of the labels' added counts. ``"multiclass"``: a metric of
        the confusion matrix of all classes.
    per_label
        The metric of each label on the validation rows; with costs, and with a metric of several classes, the recall.
    confusion
        Counts, or weights, of each label's validation rows, as arrays.
    matrix
        For k = 1 and rows of one class each: validation rows by true class and by action, as `confusion_matrix` of
        scikit-learn has them. Otherwise None.
    baseline
        The same for the k labels with the largest scores.
    actions
        What can be predicted: the labels and, with costs, actions such as *reject*.
    costs
        Shape (classes, actions): what an action costs where a class is true. None where a metric was tuned for.
    starts, agreed
        From how many starts the rule was searched, and how many of them reached the best value.
    upper_bound
        A value that no rule of this kind can exceed on the validation rows; NaN where none is known.
    calibration
        The map from scores to probabilities; None where the rule compares scores as they are.
    shrinkage
        κ of each label, as in `MultilabelCut`; zeros where there was none.
    stable
        Whether the rule is for new rows, and not the best one of the validation rows.
    sample
        The validation rows: their number, whether they had weights, their fingerprint, …; each is also an attribute.
    """

    schema = saving.TOP_K

    labels: tuple[Any, ...]
    k: int
    a: NDArray[np.float64] | None
    offsets: NDArray[np.float64]
    value: float
    metric: Metric | MulticlassMetric | None
    average: str
    per_label: NDArray[np.float64]
    confusion: Confusion
    baseline: Baseline
    matrix: NDArray[Any] | None = None
    actions: tuple[Any, ...] = ()
    cost_gains: NDArray[np.float64] | None = None
    costs: NDArray[np.float64] | None = None
    starts: int = 1
    agreed: int = 1
    upper_bound: float = math.nan
    calibration: ScoreMap | None = None
    shrinkage: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    stable: bool = False
    sample: Sample = field(default_factory=Sample)

    @property
    def gains(self) -> Any:
        """Shape (actions, labels): what an action gains from each label's η. Sparse for more than 1,000 labels."""
        if self.a is None:
            return self.cost_gains
        if len(self.a) <= DENSE_GAINS:
            return np.diag(self.a)
        from scipy import sparse

        return sparse.diags_array(self.a)

    @property
    def is_multiclass(self) -> bool:
        """Whether each row has one class and is predicted one."""
        return self.matrix is not None

    @property
    def rows(self) -> int:
        """The number of validation rows."""
        return self.sample.rows

    @property
    def weighted(self) -> bool:
        """Whether the validation rows had weights."""
        return self.sample.weighted

    @property
    def out_of_fold(self) -> bool:
        """Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing."""
        return self.sample.out_of_fold

    @property
    def fingerprint(self) -> str:
        """A name for the validation rows that does not depend on their order."""
        return self.sample.fingerprint

    @property
    def seen(self) -> tuple[RowSample, ...]:
        """Some of the rows that the rule, or its model, has seen: what `certify` recognises them by."""
        return self.sample.seen

    def with_sample(self, **facts: Any) -> TopK:
        """The same rule with other facts about its validation rows."""
        return replace(self, sample=replace(self.sample, **facts))

    def __len__(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def predict(self, scores: Any, *, as_: str | None = None) -> Any:
        """The labels of each row.

        Parameters
        ----------
        scores
            One column per label, in the order of `labels`; the columns of a frame are found by their names.
        as_
            ``"labels"``: names, an array of one class per row if the rows have one class each, otherwise of shape
            (rows, k), the best one first. ``"indicator"``: a boolean matrix, sparse for sparse scores.
            ``"positions"``: columns of the scores, shape (rows, k), −1 where a row has no further label. Without it
            classes where each row has one, and otherwise the indicator matrix.
        """
        as_ = ("labels" if self.is_multiclass else "indicator") if as_ is None else as_
        if as_ not in SHAPES:
            raise ValueError(f"as_= must be one of {', '.join(SHAPES)}, got {as_!r}")
        matrix = self.matrix_of(scores)
        positions = sparse_positions(self, matrix) if is_sparse(matrix) else top_positions(self.gain_of(matrix), self.k)
        if as_ == "positions":
            return positions
        if as_ == "indicator":
            return _indicator(positions, len(self.actions), is_sparse(matrix))
        names = named(self.actions)
        found = names[np.maximum(positions, 0)]
        if (positions == NO_LABEL).any():
            found = found.astype(object)
            found[positions == NO_LABEL] = None
        return found[:, 0] if self.is_multiclass else found

    def matrix_of(self, scores: Any) -> Any:
        """Scores of new rows as a checked matrix, columns in the order of the labels."""
        matrix, names = score_matrix(scores, "scores", may_be_empty=True)
        numbered = list(range(len(self)))
        if names is not None and names != self.labels and list(names) != numbered:
            position = {name: i for i, name in enumerate(names)}
            if lacking := [label for label in self.labels if label not in position]:
                raise ValueError(
                    f"scores has no column for {len(lacking):,} of the {counted(len(self), 'label')}, such as "
                    f"{lacking[0]!r}"
                )
            matrix = matrix[:, [position[label] for label in self.labels]]
        if matrix.shape[1] != len(self):
            raise ValueError(
                f"scores has {counted(matrix.shape[1], 'column')}, but the rule has {counted(len(self), 'label')}"
            )
        values = matrix.data if is_sparse(matrix) else matrix
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError("scores holds NaN: labels without a score cannot be compared; drop or fill these rows")
        return matrix

    def gain_of(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """What each action is worth for each row of a dense matrix of scores."""
        eta = np.asarray(scores, dtype=np.float64)
        if self.calibration is not None:
            eta = self.calibration.probabilities(eta)
        if self.a is not None:
            return affine(eta, self.a, self.offsets)
        return np.asarray(eta @ np.asarray(self.cost_gains).T + self.offsets)

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        raise NotImplementedError

    def _fields(self) -> dict[str, Any]:
        raise NotImplementedError

    def _check(self) -> None:
        raise NotImplementedError

    def __str__(self) -> str:
        return f"top {self.k} of {counted(len(self), 'label')}: {self.average} {self.metric} = {self.value:.4f}"

    def __repr__(self) -> str:
        return f"<TopK: {self}>"


def affine(eta: NDArray[np.float64], a: Any, offsets: Any) -> NDArray[np.float64]:
    """a·η + b; infinite scores stay infinite, whatever a is."""
    with np.errstate(invalid="ignore"):
        gain = np.asarray(eta * a + offsets)
    return np.where(np.isinf(eta), eta, gain) if np.isinf(eta).any() else gain


def sparse_positions(rule: TopK, matrix: Any) -> NDArray[np.int64]:
    """The predicted columns of each row of a sparse matrix of scores."""
    stored = matrix.tocsr()
    stored.sort_indices()
    eta = stored.data.astype(np.float64)
    if rule.calibration is not None:
        eta = rule.calibration.of_entries(eta, stored.indices)
    assert rule.a is not None  # costs come with dense scores
    gain = affine(eta, rule.a[stored.indices], rule.offsets[stored.indices])
    best = top_entries(stored.indptr, stored.indices, gain, rule.k)
    row = np.repeat(np.arange(stored.shape[0]), np.diff(stored.indptr))[best]
    first = np.searchsorted(row, row)
    found = np.full((stored.shape[0], rule.k), NO_LABEL, dtype=np.int64)
    found[row, np.arange(len(row)) - first] = stored.indices[best]
    return found


def named(actions: Sequence[Any]) -> NDArray[Any]:
    """Names as an array of their own type; of mixed types, and of tuples, as objects."""
    names = np.empty(len(actions), dtype=object)
    names[:] = actions
    kinds = {type(one) for one in actions}
    return np.array(actions) if len(kinds) == 1 and kinds <= {str, int, float, bool} else names


def _indicator(positions: NDArray[np.int64], columns: int, sparse_wanted: bool) -> Any:
    row, place = np.nonzero(positions != NO_LABEL)
    if sparse_wanted:
        from scipy import sparse

        entries = (np.ones(len(row), dtype=bool), (row, positions[row, place]))
        return sparse.csr_array(entries, shape=(len(positions), columns))
    predicted = np.zeros((len(positions), columns), dtype=bool)
    predicted[row, positions[row, place]] = True
    return predicted
