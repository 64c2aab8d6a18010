"""Rows of one label or of many, checked against a cut: matrices, which have all labels, or a table of rows with one.

Either may come in groups of rows that depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_scores, as_weights, require_no_nan, require_same_length
from surecut._labels import as_labels
from surecut._matrices import aligned, is_sparse, label_matrix, score_matrix
from surecut._plurals import counted
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.weights import require_counts, require_whole
from surecut.core.keys import ordered_keys, reaches
from surecut.core.tally import ScoreTally, tally_rows
from surecut.decisions.cut import Cut
from surecut.sources.matrices import label_source

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.decisions.multilabel import MultilabelCut
    from surecut.decisions.top_k import TopK


def thresholds_of(cut: Cut | MultilabelCut) -> NDArray[np.float64]:
    """The threshold of each label."""
    return np.array([cut.threshold]) if isinstance(cut, Cut) else cut.thresholds


def have_names(cut: MultilabelCut) -> NDArray[np.bool_]:
    """Labels that a checksum can recognise: of labels that all rows have, or none, many samples look alike."""
    return np.asarray((cut.checksums != 0) & (cut.confusion.positives > 0) & (cut.confusion.negatives > 0))


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Checked rows of many labels, columns in the order of a cut's labels; and the group of each, if they have some."""

    truth: Any
    scores: Any
    weights: NDArray[np.float64] | None
    groups: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls, cut: MultilabelCut, Y_true: Any, Y_score: Any, sample_weight: ArrayLike | None, pos_label: Any = None
    ) -> LabelRows:
        scores, score_names = score_matrix(Y_score, one_column="say with by= which label each row is of")
        truth, truth_names = label_matrix(Y_true, pos_label)
        truth, names = aligned(truth, truth_names, scores, score_names, None)
        if len(names) != len(cut):
            given = counted(len(names), "column")
            raise ValueError(f"Y_score has {given}, but the cut has {counted(len(cut), 'label')}")
        has_names = score_names is not None and tuple(cut.labels) != tuple(range(len(cut)))
        if has_names and set(names) != set(cut.labels):
            strange = next(name for name in names if name not in cut.labels)
            raise ValueError(f"Y_score has a column {strange!r}, which is not among the cut's labels")
        if names != cut.labels and set(names) == set(cut.labels):
            position = {name: i for i, name in enumerate(names)}
            order = [position[label] for label in cut.labels]
            truth, scores = truth[:, order], scores[:, order]
        weights = None if sample_weight is None else as_weights(sample_weight, scores.shape[0])
        return cls(truth, scores, weights)

    @cached_property
    def checksums(self) -> NDArray[np.uint64]:
        return label_source(self.truth, self.scores, self.weights).checksums()

    def tuned(self, cut: MultilabelCut) -> bool:
        """Whether these rows tuned the cut: a label has the very scores and classes, or all have the very counts."""
        if not cut.checksums.any():
            return bool(np.array_equal(cells_of(self.cells_of_rows(cut).confusion()), cells_of(cut.confusion)))
        rows = self.scores.shape[0] if self.weights is None else np.count_nonzero(self.weights)
        same = (cut.checksums == self.checksums) & (cut.rows == rows)
        return bool((same & have_names(cut)).any())

    def counted(self, what: str, weights: str | None = None) -> LabelRows:
        """Rows as often as their weights say; weights that do not count rows are refused."""
        if self.weights is None:
            return self
        require_counts(weights, what)
        require_whole(self.weights, weights)
        times = self.weights.astype(np.int64)
        rows = np.repeat(np.arange(len(times)), times)
        # All rows once, then the second of each, and so on: copies are not neighbours, which would look sorted.
        rows = rows[np.argsort(np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times), kind="stable")]
        return self.some(rows)

    def some(self, rows: NDArray[np.intp]) -> LabelRows:
        """Some of the rows, some of them perhaps several times, without weights and groups."""
        truth, scores = (
            (matrix.tocsr() if is_sparse(matrix) else matrix)[rows] for matrix in (self.truth, self.scores)
        )
        return LabelRows(truth, scores, None)

    @property
    def clusters(self) -> int:
        """How many rows are independent, or groups of them."""
        return int(self.scores.shape[0] if self.groups is None else self.groups.max() + 1)

    def cells_of_rows(self, cut: Cut | MultilabelCut) -> ClusterCells:
        """The counts of each row at a cut."""
        return ClusterCells.of_matrices(self.truth, cut.predict(self.scores), self.weights)

    def cells(self, cut: Cut | MultilabelCut) -> ClusterCells:
        """The counts of what is independent: of each row, or of each group."""
        of_rows = self.cells_of_rows(cut)
        return of_rows if self.groups is None else of_rows.by_group(self.groups)

    def some_tallies(self, cut: MultilabelCut | TopK) -> dict[int, ScoreTally]:
        """Tallies of the labels, by position, of which a cut keeps rows."""
        labels = sorted({label for sample in cut.seen for label in sample.labels.tolist()})
        rows = self
        if self.weights is not None and not self.weights.all():
            rows = self.some(np.flatnonzero(self.weights))
        return dict(zip(labels, rows.tallies(labels), strict=True))

    def tallies(self, labels: Sequence[int] | None = None) -> list[ScoreTally]:
        """A tally of each label, or of some. An absent score of a sparse matrix stands below all others."""
        found = []
        for label in range(self.scores.shape[1]) if labels is None else labels:
            truth = self.truth[:, [label]].toarray().ravel() if is_sparse(self.truth) else self.truth[:, label]
            if not is_sparse(self.scores):
                found.append(tally_rows(self.scores[:, label], truth != 0, None))
                continue
            column = self.scores[:, [label]].tocoo()
            stored = tally_rows(column.data, truth[column.coords[0]] != 0, None) if column.nnz else None
            found.append(_with_absent(stored, truth != 0, column.coords[0], self.scores.dtype))
        return found


@dataclass(frozen=True, eq=False)
class TableRows:
    """Checked rows, each of which has one label of a cut, by position; and the group of each, if they have some."""

    is_positive: NDArray[np.bool_]
    scores: NDArray[Any]
    weights: NDArray[np.float64] | None
    label: NDArray[np.intp]
    labels: tuple[Any, ...]
    groups: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls,
        cut: Cut | MultilabelCut,
        y_true: Any,
        y_score: Any,
        by: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> TableRows:
        """Rows as `certify` takes them; `by` says which of many labels each has."""
        labels, scores = as_labels(y_true, pos_label=pos_label), as_scores(y_score)
        require_no_nan(scores)
        label = np.zeros(len(scores), dtype=np.intp) if isinstance(cut, Cut) else _positions(cut, by)
        require_same_length(y_true=labels, y_score=scores, by=label)
        weights = None if sample_weight is None else as_weights(sample_weight, len(scores))
        return cls(labels.is_positive(), scores, weights, label, (None,) if isinstance(cut, Cut) else tuple(cut.labels))

    @property
    def clusters(self) -> int:
        """How many rows are independent, or groups of them."""
        return int(self.cluster.max()) + 1

    @property
    def cluster(self) -> NDArray[np.intp]:
        """Which of them each row is of."""
        return np.arange(len(self.scores)) if self.groups is None else self.groups

    def require_every_label(self) -> None:
        """Raise where a label has no rows, or none with a weight: an average is one of all labels."""
        present = self.label if self.weights is None else self.label[self.weights > 0]
        lacking = np.flatnonzero(np.bincount(present, minlength=len(self.labels)) == 0)
        if len(lacking):
            raise ValueError(
                f"there are no rows of {len(lacking):,} of the cut's {counted(len(self.labels), 'label')}, such as "
                f"{self.labels[lacking[0]]!r}: give rows of every label, since the certificate is of their average"
            )

    def tallies(self) -> list[ScoreTally]:
        """A tally of each label; it is empty where a label has no rows."""
        order = np.argsort(self.label, kind="stable")
        starts = np.searchsorted(self.label[order], np.arange(len(self.labels) + 1))
        chosen = (order[start:end] for start, end in pairwise(starts))
        return [
            tally_rows(self.scores[own], self.is_positive[own], None if self.weights is None else self.weights[own])
            for own in chosen
        ]

    def cells(self, cut: Cut | MultilabelCut) -> ClusterCells:
        """The counts of what is independent, at the cut: of each row, or of each group."""
        predicted = reaches(self.scores, thresholds_of(cut)[self.label])
        return ClusterCells.of_rows(self.is_positive, predicted, self.cluster, self.label, len(self.labels))


def _positions(cut: MultilabelCut, by: Any) -> NDArray[np.intp]:
    """The position of each row's label among those of a cut; a label of several columns is a tuple."""
    values = by.to_numpy() if hasattr(by, "to_numpy") else by
    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    position = {label: i for i, label in enumerate(cut.labels)}
    try:
        found = [position[tuple(value) if isinstance(value, list) else value] for value in values]
    except KeyError as error:
        known = counted(len(cut), "label")
        raise ValueError(f"by= holds {error.args[0]!r}, which is not among the cut's {known}") from None
    return np.array(found, dtype=np.intp)


def _with_absent(
    stored: ScoreTally | None, is_positive: NDArray[np.bool_], present: NDArray[Any], dtype: np.dtype[Any]
) -> ScoreTally:
    absent = np.ones(len(is_positive), dtype=bool)
    absent[present] = False
    positives = int(is_positive[absent].sum())
    counts = np.array([[int(absent.sum()) - positives, positives]])
    key = ordered_keys(np.array([-np.inf]))
    rest = ScoreTally(key, counts, counts, counts, np.dtype(dtype))
    return rest if stored is None else stored + rest if counts.any() else stored
