"""One threshold for each of many labels, tuned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from surecut._inputs import check_missing
from surecut._labels import label_parts, plain_label
from surecut._matrices import ROWS_AT_ONCE, is_sparse, score_matrix
from surecut._plurals import counted
from surecut.averages import AVERAGES, NEARLY_ALL, OVERPREDICTED, macro_value, undefined_labels, values_per_label
from surecut.confusion import Confusion, stacked
from surecut.constraints import Constraint
from surecut.core.keys import reaches
from surecut.decisions import consistency, html, saving, sql, wording
from surecut.decisions.cut import Cut, positive_in
from surecut.decisions.stability import LabelStability
from surecut.metrics import Metric
from surecut.overlap import TRAINING, VALIDATION, RowSample, positions, sampled_labels, samples_from_json
from surecut.sample import Sample, checksum_of, fingerprint, fingerprint_of_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE_FACTS = {"out_of_fold", "pos_label", "seen", "weighted"}
"""What the validation rows of all labels have in common; the rest of a `Sample` is known for each label."""

NAN_SCORES = (
    'scores holds NaN: a row without a score cannot be cut; drop or fill these rows, or pass missing="negative"'
)


class LabelsPerRow(NamedTuple):
    """The mean number of labels of a row: those predicted, and the true ones."""

    predicted: float
    true: float


@dataclass(frozen=True, eq=False)
class MultilabelCut(saving.Saved):
    """A threshold for each of many labels, tuned for an average of a metric over them.

    Attributes
    ----------
    labels
        The labels' names: column names, positions, or the values of a grouping (tuples where several columns group).
    thresholds
        One per label: a label is predicted where its score is at least the label's threshold, and never at +inf.
    value
        The averaged metric on the validation rows.
    metric, average
        What the thresholds are best for: ``"macro"``, the mean over labels of the metric, each with a threshold of its
        own; ``"micro"``, the metric of the labels' added counts; ``"samples"``, the mean over rows of the metric of
        each row. The last two have one threshold for all labels.
    per_label
        The metric of each label on its validation rows. Where it is undefined it counts 0 if scikit-learn has it so (F,
        Jaccard, precision, recall), else NaN, and then the label is left out of `value`.
    confusion
        Counts, or weights, of each label's validation rows at its threshold, as arrays.
    intervals
        Shape (labels, 2): (lower, upper], every threshold in it makes the same predictions on the validation rows.
    rows
        The number of validation rows of each label.
    shared_threshold
        The threshold of the micro cut, where some label had to take it.
    shared
        The labels that took the shared threshold, and why: the metric is undefined on their rows, or, with shrinkage,
        their scores do not separate their positives. Empty unless the average is macro: the others have one threshold
        for all labels anyway.
    constraints
        What every label's cut (the pooled cut, if micro) had to meet.
    confidence
        The probability with which the constraints of all labels hold on new data together; None where they hold on the
        validation rows only.
    weighted
        Whether the validation rows had weights.
    out_of_fold
        Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing.
    checksums
        Numbers that name each label's validation rows whatever their order.
    shrinkage
        κ of each label, the prior strength of a calibrated model of the scores, in equivalent positives; zeros where
        there was none.
    calibration
        That model: "sigmoid" or "beta", and for which labels it was rejected by a goodness-of-fit test and corrected;
        or "given" where the scores were taken as probabilities and everything here is expected.
    zero_division
        What a row is worth in the samples average where the metric is 0/0.
    pos_label
        The label of the positive class, where rows were grouped and it is not 1 or True.
    stability
        How settled each threshold is, as in `Cut`; None for exact cuts. Where all labels have one threshold, its record
        is that of the average, and single labels have none: the best threshold of the average is not theirs.
    seen
        Some rows of some labels, as in `Cut`.

    Examples
    --------
    >>> from surecut import tune_thresholds
    >>> Y_true = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> Y_score = np.array([[0.5, 0.25], [0.25, 0.75], [1.0, 0.5], [0.75, 1.0]])
    >>> cut = tune_thresholds(Y_true, Y_score, metric="f1", average="macro")
    >>> cut.thresholds, cut.value
    (array([0.375, 0.625]), 0.9)
    >>> cut.predict([[0.5, 0.5]])
    array([[ True, False]])
    >>> print(cut)
    2 labels, each with a threshold of its own: macro f1 = 0.9000 on 4 rows each
    """

    schema = saving.MULTILABEL_CUT

    labels: tuple[Any, ...]
    thresholds: NDArray[np.float64]
    value: float
    metric: Metric
    average: str
    per_label: NDArray[np.float64]
    confusion: Confusion
    intervals: NDArray[np.float64]
    rows: NDArray[np.int64]
    shared_threshold: float | None = None
    shared: Mapping[Any, str] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    confidence: float | None = None
    weighted: bool = False
    out_of_fold: bool = False
    checksums: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    shrinkage: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    calibration: str = ""
    zero_division: float = 0.0
    pos_label: Any = None
    stability: LabelStability | None = None
    seen: tuple[RowSample, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos_label", plain_label(self.pos_label))

    @classmethod
    def at(
        cls,
        confusion: Confusion,
        metric: Metric,
        *,
        value: float | None = None,
        shared: Mapping[Any, str] | None = None,
        **known: Any,
    ) -> MultilabelCut:
        """A cut with the labels' confusions at its thresholds; `value` is the macro average if it is not given.

        `shared` are labels whose metric is defined, and which took the shared threshold all the same.
        """
        per_label = values_per_label(metric, confusion)
        value = macro_value(metric, per_label) if value is None else value
        reasons = dict(shared or {})
        if known["average"] == "macro" and known.get("shared_threshold") is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                raw = np.asarray(metric.evaluate(confusion), dtype=float)
            # A label that has no value at the shared threshold has none at any, unless it is among `shared`
            undefined = {known["labels"][i]: reason for i, reason in undefined_labels(metric, confusion, raw)}
            reasons = undefined | reasons
        return cls(confusion=confusion, metric=metric, per_label=per_label, value=value, shared=reasons, **known)

    @classmethod
    def from_cuts(
        cls,
        labels: Iterable[Any],
        cuts: Sequence[Cut],
        *,
        average: str = "macro",
        value: float | None = None,
        shared_threshold: float | None = None,
    ) -> MultilabelCut:
        """Put the cuts of single labels together.

        A label whose metric is undefined comes with the shared threshold and its own confusion there; its value does
        not matter. `value` is the averaged metric; the macro average is computed if it is not given.
        """
        names = tuple(labels)
        if not cuts or len(names) != len(cuts):
            raise ValueError(f"expected one cut per label, and at least one: {len(names)} labels, {len(cuts)} cuts")
        metric = cuts[0].metric
        if any(cut.metric != metric or cut.constraints != cuts[0].constraints for cut in cuts):
            raise ValueError("the cuts were tuned for different metrics or constraints")
        if value is None and average != "macro":
            raise ValueError(f"the {average} average is not a mean of the labels' values: pass value=")
        records = [cut.stability for cut in cuts]
        return cls.at(
            stacked([cut.confusion for cut in cuts]),
            metric,
            value=value,
            labels=names,
            thresholds=np.array([cut.threshold for cut in cuts]),
            average=average,
            intervals=np.array([cut.interval for cut in cuts]),
            rows=np.array([cut.rows for cut in cuts]),
            shared_threshold=shared_threshold,
            constraints=cuts[0].constraints,
            confidence=_joint_confidence(cuts),
            weighted=any(cut.weighted for cut in cuts),
            out_of_fold=any(cut.out_of_fold for cut in cuts),
            shrinkage=np.array([cut.shrinkage for cut in cuts]),
            calibration=_joint_calibration(names, cuts),
            checksums=np.array([checksum_of(cut.fingerprint) for cut in cuts], dtype=np.uint64),
            pos_label=cuts[0].pos_label,
            stability=LabelStability.joined(records) if any(records) else None,
            seen=_samples(cuts),
        )

    def with_sample(self, **facts: Any) -> MultilabelCut:
        """The same cut with other facts about its validation rows: `out_of_fold`, `pos_label`, `seen`, `weighted`."""
        if others := sorted(facts.keys() - SAMPLE_FACTS):
            raise TypeError(
                f"expected facts about all labels' rows, {', '.join(sorted(SAMPLE_FACTS))}; got {others[0]}"
            )
        return replace(self, **facts)

    @property
    def labels_per_row(self) -> LabelsPerRow:
        """How many labels a validation row is predicted, and has, in the mean.

        NaN where labels have different numbers of rows, as groups do: then a row does not have all labels.
        """
        if not (self.rows == self.rows[0]).all():
            return LabelsPerRow(np.nan, np.nan)
        rows = float(np.asarray(self.confusion.total)[0])
        predicted, true = self.confusion.predicted_positives, self.confusion.positives
        return LabelsPerRow(float(np.sum(predicted)) / rows, float(np.sum(true)) / rows)

    @property
    def flags_nearly_all(self) -> tuple[Any, ...]:
        """The labels whose cut accepts 90 % of the validation rows or more, at most a tenth of them positive.

        For F1 this is the best cut of a rare label whose scores do not separate its positives. New data are flagged in
        the same way: see `labels_per_row`.
        """
        accepted = np.asarray(self.confusion.predicted_positives)
        nearly_all = accepted >= NEARLY_ALL * np.asarray(self.confusion.total)
        return tuple(self.labels[i] for i in np.flatnonzero(nearly_all & self._overpredicted).tolist())

    def worst(self, count: int) -> tuple[Any, ...]:
        """The labels to look at first: those predicted too often, by their false positives, then by lowest value.

        A label is predicted too often where its cut accepts ten rows or more for each positive. Labels without a
        positive are listed only if they are.
        """
        known = ~np.isnan(self.per_label) & (np.asarray(self.confusion.positives) > 0)
        excess = np.where(self._overpredicted, np.asarray(self.confusion.fp), 0)
        order = np.lexsort((self.per_label, -excess))
        listed = order[(known | self._overpredicted)[order]]
        return tuple(self.labels[i] for i in listed[:count].tolist())

    @property
    def _overpredicted(self) -> NDArray[np.bool_]:
        accepted = np.asarray(self.confusion.predicted_positives)
        return (accepted > 0) & (accepted >= OVERPREDICTED * np.asarray(self.confusion.positives))

    @property
    def left_out(self) -> int:
        """How many labels are no part of a macro `value`: their metric is undefined, and does not count as 0."""
        return int(np.isnan(self.per_label).sum())

    @property
    def fingerprint(self) -> str:
        """A name for the validation rows that depends on the labels' order, but not on the rows'."""
        return fingerprint_of_labels(int(self.rows.sum()), self.checksums)

    def __len__(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._position

    def __getitem__(self, label: Any) -> Cut:
        """The cut of one label."""
        i = self.position(label)
        confusion = self.confusion[i]
        return Cut(
            threshold=float(self.thresholds[i]),
            value=float(self.per_label[i]),
            metric=self.metric,
            confusion=confusion,
            interval=(float(self.intervals[i, 0]), float(self.intervals[i, 1])),
            prior=float(confusion.prior),
            constraints=self.constraints if self.average == "macro" else (),
            confidence=1 - (1 - self.confidence) / len(self) if self.confidence and self.average == "macro" else None,
            shrinkage=float(self.shrinkage[i]) if len(self.shrinkage) else 0.0,
            calibration=self.calibration,
            stability=self.stability[i] if self.stability is not None and self.average == "macro" else None,
            sample=Sample(
                rows=int(self.rows[i]),
                weighted=self.weighted,
                fingerprint=fingerprint(int(self.rows[i]), int(self.checksums[i])) if len(self.checksums) else "",
                out_of_fold=self.out_of_fold,
                pos_label=self.pos_label,
                seen=tuple(sample.of_label(i) for sample in self.seen),
            ),
        )

    def position(self, label: Any) -> int:
        """Where a label stands in `labels`."""
        try:
            return self._position[label]
        except KeyError:
            known = ", ".join(map(repr, self.labels[:5])) + (", …" if len(self.labels) > 5 else "")
            raise KeyError(f"{label!r} is not among the {counted(len(self.labels), 'label')}: {known}") from None

    def positive_in(self, y_true: Any, pos_label: Any = None) -> Any:
        """Which value of new rows' labels is positive: the one that is named, else the cut's own."""
        return positive_in(self, y_true, pos_label)

    def predict(self, scores: Any, *, missing: str = "error") -> Any:
        """Which labels are predicted: a boolean array, or a sparse one for sparse scores.

        Columns stand in the order of `labels`; those of a frame are found by their names, and others are left alone.
        An absent score of a sparse matrix is never predicted. A missing score (NaN) is an error, or with
        ``missing="negative"`` not predicted.
        """
        check_missing(missing, "error", "negative")
        one_column = "cut[label].predict takes one label's scores"
        matrix, names = score_matrix(scores, "scores", one_column, may_be_empty=True)
        if names is not None and names != self.labels and not _are_positions(names, self.labels):
            position = {name: i for i, name in enumerate(names)}
            if lacking := [label for label in self.labels if label not in position]:
                raise ValueError(
                    f"scores has no column for {len(lacking):,} of the cut's {counted(len(self), 'label')}, such as "
                    f"{lacking[0]!r}"
                )
            matrix = matrix[:, [position[label] for label in self.labels]]
        if matrix.shape[1] != len(self):
            raise ValueError(
                f"scores has {counted(matrix.shape[1], 'column')}, but the cut has {counted(len(self), 'label')}"
            )
        if is_sparse(matrix):
            return _sparse_predictions(matrix, self.thresholds, missing)
        predicted = np.empty(matrix.shape, dtype=bool)
        for start in range(0, len(matrix), ROWS_AT_ONCE):
            block = matrix[start : start + ROWS_AT_ONCE].astype(np.float64, copy=False)
            if missing == "error" and np.isnan(block).any():
                raise ValueError(NAN_SCORES)
            predicted[start : start + ROWS_AT_ONCE] = reaches(block, self.thresholds)
        return predicted

    def to_sql(self, score: str, *, by: str | Sequence[str], dialect: str = "ansi") -> str:
        """The cut as one SQL expression over a table with a row per label: true where the row's label is predicted.

        Parameters
        ----------
        score
            The column of the scores.
        by
            The column of the labels; several where labels are tuples, one for each part.
        dialect
            One of ansi, duckdb, postgres, snowflake, spark, bigquery, mysql, sqlite.

        Returns
        -------
        str
            An expression that is false, never null, where the score is null or NaN, and where the cut does not know
            the label.

        Raises
        ------
        ValueError
            Where labels do not come from these columns, or cannot be written in SQL: they must be text, finite numbers,
            booleans, dates or times without a time zone, and of one type in each column. SQLite has no dates: they are
            compared as ISO text.

        Examples
        --------
        >>> from surecut import tune_thresholds
        >>> cut = tune_thresholds([[1, 0], [0, 1]], [[0.75, 0.5], [0.25, 1.0]], labels=["a", "b"])
        >>> print(cut.to_sql("score", by="tag", dialect="mysql"))
        (`score` IS NOT NULL AND CASE WHEN `tag` IN (CAST('a' AS BINARY)) THEN CAST(`score` AS DOUBLE) >= 5e-01
        WHEN `tag` IN (CAST('b' AS BINARY)) THEN CAST(`score` AS DOUBLE) >= 7.5e-01 ELSE FALSE END)
        """
        known, columns = sql.find_dialect(dialect), (by,) if isinstance(by, str) else tuple(by)
        pairs = zip(self.label_parts(len(columns)), self.thresholds.tolist(), strict=True)
        return sql.reaches_by(known.name(score), [known.name(column) for column in columns], pairs, known)

    def label_parts(self, columns: int) -> list[tuple[Any, ...]]:
        """Each label as the values of so many columns."""
        return label_parts(self.labels, columns)

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        if document["average"] not in AVERAGES:
            raise ValueError(f"its average must be one of {', '.join(AVERAGES)}")
        per_label, confidence = document["per_label"], document["confidence"]

        def numbers(name: str) -> NDArray[np.float64]:
            return saving.numbers_from_json(saving.column(per_label, name))

        def texts(name: str) -> list[str]:
            return [saving.text_from_json(value) for value in saving.column(per_label, name)]

        thresholds = numbers("threshold")
        if np.isnan(thresholds).any() or not len(thresholds):
            raise ValueError("a threshold is NaN" if len(thresholds) else "it has no labels")
        labels = tuple(saving.label_from_json(label) for label in saving.column(per_label, "label"))
        if len(set(labels)) != len(labels):
            raise ValueError("a label occurs twice")
        is_stable = saving.flag_from_json(document["stable"])
        rows = [saving.count_from_json(value) for value in saving.column(per_label, "rows")]
        return cls(
            labels=labels,
            thresholds=thresholds,
            value=saving.number_from_json(document["value"]),
            metric=saving.metric_from_dict(document["metric"]),
            average=document["average"],
            per_label=numbers("value"),
            confusion=saving.confusions_from_json(per_label),
            intervals=np.column_stack((numbers("lower"), numbers("upper"))),
            rows=np.array(rows, dtype=np.int64),
            shared_threshold=saving.optional_number(document["shared_threshold"]),
            shared={label: reason for label, reason in zip(labels, texts("shared"), strict=True) if reason},
            constraints=tuple(map(saving.constraint_from_dict, saving.list_from_json(document["constraints"]))),
            confidence=None if confidence is None else saving.share_from_json(confidence),
            weighted=saving.flag_from_json(document["weighted"]),
            out_of_fold=saving.flag_from_json(document["out_of_fold"]),
            checksums=np.array([int(text, 16) for text in texts("checksum")], dtype=np.uint64),
            shrinkage=numbers("shrinkage"),
            calibration=saving.text_from_json(document["calibration"]),
            zero_division=saving.number_from_json(document["zero_division"]),
            pos_label=saving.label_from_json(document["pos_label"]),
            stability=LabelStability.from_columns(partial(saving.column, per_label)) if is_stable else None,
            seen=samples_from_json(document["seen"], len(thresholds)),
        )

    def _check(self) -> None:
        """Raise where the parts of the cut contradict each other."""
        consistency.require_thresholds(self.thresholds, self.intervals, self.labels)
        takes_it = np.array([label in self.shared for label in self.labels])
        consistency.require_shared(self.thresholds, self.average, self.shared_threshold, takes_it)
        consistency.require_values(self.per_label, self.metric, self.confusion, self.labels)
        consistency.require_average(self.value, self.metric, self.average, self.confusion)
        consistency.require_rows(self.rows, self.confusion, self.weighted, self.labels)
        if self.stability is not None:
            values = self.per_label if self.average == "macro" else np.full(len(self), self.value)
            consistency.require_stability(self.stability, values, self.labels)
            if self.average != "macro" and self.stability != LabelStability.joined([self.stability[0]] * len(self)):
                raise ValueError(f"the {self.average} average has one threshold, and its resamples differ by label")

    def __str__(self) -> str:
        return wording.multilabel_text(self)

    def __repr__(self) -> str:
        return f"<MultilabelCut: {self}>"

    def _repr_html_(self) -> str:
        return html.labels_html(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultilabelCut):
            return NotImplemented
        mine, theirs = ({**cut.to_dict(), "seen": None, "checksum": None} for cut in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    @cached_property
    def _position(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def _fields(self) -> dict[str, Any]:
        pooled = float(self.confusion.positives.sum() / self.confusion.total.sum())
        return {
            "average": self.average,
            "metric": saving.metric_to_dict(self.metric, pooled),
            "value": saving.number_to_json(self.value),
            "shared_threshold": None if self.shared_threshold is None else saving.number_to_json(self.shared_threshold),
            "confidence": self.confidence,
            "constraints": [saving.constraint_to_dict(one, pooled) for one in self.constraints],
            "weighted": self.weighted,
            "out_of_fold": self.out_of_fold,
            "calibration": self.calibration,
            "stable": self.stability is not None,
            "zero_division": saving.number_to_json(self.zero_division),
            "pos_label": saving.positive_to_json(self.pos_label),
            "seen": [sample.to_dict() for sample in self.seen],
        }

    def _columns(self) -> dict[str, list[Any]]:
        checksums = self.checksums if len(self.checksums) else np.zeros(len(self), dtype=np.uint64)
        return {
            "label": [saving.label_to_json(label) for label in self.labels],
            "threshold": self.thresholds.tolist(),
            "lower": self.intervals[:, 0].tolist(),
            "upper": self.intervals[:, 1].tolist(),
            "value": self.per_label.tolist(),
            **saving.confusions_to_columns(self.confusion),
            "rows": self.rows.tolist(),
            "shared": [self.shared.get(label, "") for label in self.labels],
            "shrinkage": (self.shrinkage if len(self.shrinkage) else np.zeros(len(self))).tolist(),
            "checksum": [f"{checksum:016x}" for checksum in checksums.tolist()],
            **(self.stability.columns() if self.stability is not None else {}),
        }


def _are_positions(*namings: Sequence[Any]) -> bool:
    """Whether columns or labels are only numbered, so that they are known by their place."""
    return any(list(names) == list(range(len(names))) for names in namings)


def _sparse_predictions(matrix: Any, thresholds: NDArray[np.float64], missing: str) -> Any:
    from scipy import sparse

    entries = matrix.tocoo()
    scores = entries.data.astype(np.float64, copy=False)
    if missing == "error" and np.isnan(scores).any():
        raise ValueError(NAN_SCORES)
    predicted = reaches(scores, thresholds[entries.col]) & (scores > -np.inf)
    coordinates = (entries.row[predicted], entries.col[predicted])
    return sparse.csr_array((np.ones(int(predicted.sum()), dtype=bool), coordinates), shape=matrix.shape)


def _joint_confidence(cuts: Sequence[Cut]) -> float | None:
    """The probability with which the constraints of all cuts hold together, if each has the same; otherwise None."""
    each = cuts[0].confidence
    if each is None or len({cut.confidence for cut in cuts}) > 1 or len(cuts) * (1 - each) >= 1:
        return None
    return 1 - len(cuts) * (1 - each)


def _joint_calibration(labels: Sequence[Any], cuts: Sequence[Cut]) -> str:
    """The calibration of all labels, or each with the labels that it was used for."""
    if len({cut.calibration for cut in cuts}) == 1:
        return cuts[0].calibration
    used = {label: cut.calibration for label, cut in zip(labels, cuts, strict=True) if cut.calibration}
    return wording.by_text(used)


def _samples(cuts: Sequence[Cut]) -> tuple[RowSample, ...]:
    """Some rows of some labels, from the rows that the cuts of single labels keep."""
    confusion = stacked([cut.confusion for cut in cuts])
    labels, size = sampled_labels(confusion.positives, confusion.negatives)
    found = []
    for role in (VALIDATION, TRAINING):
        parts = {
            label: sample.taken(kept)
            for label in labels.tolist()
            for sample in cuts[label].seen
            if sample.role == role and len(kept := positions(len(sample), size))
        }
        if parts:
            found.append(replace(RowSample.of_labels(parts), role=role))
    return tuple(found)
