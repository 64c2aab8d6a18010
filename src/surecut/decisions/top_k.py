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
from surecut.core.top_rows import NO_LABEL, affine, top_entries, top_positions
from surecut.decisions import class_sql, class_wording, consistency, html, saving, sql
from surecut.decisions.score_map import ScoreMap, coefficients_of
from surecut.label_objectives import COST, TOP_K_AVERAGES
from surecut.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.label_objectives import MulticlassMetric
    from surecut.metrics import Metric
    from surecut.overlap import RowSample

DENSE_GAINS = 1000
"""The gains of so many labels are a dense matrix, those of more a sparse one."""

BASELINE, COEFFICIENT = "baseline_", "coefficient_"
"""How the columns of a saved rule begin that hold the confusion of the baseline, and the map of the scores."""

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
        return gain_of_actions(eta, np.asarray(self.cost_gains), self.offsets)

    def to_sql(self, columns: Sequence[str] | None = None, dialect: str = "ansi") -> str:
        """The rule of k = 1 as one SQL expression over a table with a column of scores for each label.

        Parameters
        ----------
        columns
            The columns of the scores, in the order of `labels`; without it those that are called like the labels.
        dialect
            One of ansi, duckdb, postgres, snowflake, spark, bigquery, mysql, sqlite.

        Returns
        -------
        str
            An expression with the predicted class, or action. It is null where a score is null or NaN, and where no
            label can be predicted since all scores are −inf. Scores are compared as doubles. Where `predict` computes
            probabilities, or costs, equal values may differ in the last digit: ties are those of the engine then.

        Raises
        ------
        ValueError
            Where the rule predicts more than one label, or classes cannot be written in SQL: they must be of one type,
            as in `MultilabelCut.to_sql`.

        Examples
        --------
        >>> from surecut import tune_top_k
        >>> rule = tune_top_k(["a", "a", "b"], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]], k=1)
        >>> print(rule.to_sql(dialect="sqlite"))
        CASE WHEN "a" IS NULL THEN NULL WHEN "b" IS NULL THEN NULL
        WHEN MAX(CAST("a" AS REAL), CAST("b" AS REAL)) < -1.7976931348623157e+308 THEN NULL
        ELSE CASE WHEN CAST("a" AS REAL) >= CAST("b" AS REAL) THEN 'a' ELSE 'b' END END
        """
        if self.k != 1:
            raise ValueError(
                f"to_sql writes the class of a row, k = 1, and this rule predicts {self.k} labels for each: "
                "apply_frame takes a table with a row for each row and label"
            )
        return class_sql.class_case(self, columns, sql.find_dialect(dialect))

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        average, table = document["average"], document["per_label"]
        if average not in (*TOP_K_AVERAGES, COST):
            raise ValueError(f"its average must be one of {', '.join((*TOP_K_AVERAGES, COST))}")

        def numbers(name: str) -> NDArray[np.float64]:
            return saving.numbers_from_json(saving.column(table, name))

        labels, actions = _names(saving.column(table, "label")), document["actions"]
        actions = labels if actions is None else _names(saving.list_from_json(actions))
        gains, costs, calibration = (document[name] for name in ("gains", "costs", "calibration"))
        metric, is_affine = document["metric"], gains is None
        message = f"expected {counted(len(actions), 'action')} of {counted(len(labels), 'label')}"
        finite = saving.finite_from_json
        return cls(
            labels=labels,
            k=saving.count_from_json(document["k"]),
            a=numbers("a") if is_affine else None,
            offsets=numbers("offset") if is_affine else saving.numbers_from_json(document["offsets"]),
            value=saving.number_from_json(document["value"]),
            metric=None if metric is None else saving.label_metric_from_dict(metric),
            average=average,
            per_label=numbers("value"),
            confusion=saving.confusions_from_json(table),
            baseline=_baseline(document["baseline"], table, len(actions)),
            matrix=_counts(document["matrix"], len(actions)),
            actions=actions,
            cost_gains=None
            if is_affine
            else saving.matrix_from_json(gains, finite, len(labels), message).astype(float),
            costs=None
            if costs is None
            else saving.matrix_from_json(costs, finite, len(actions), message).astype(float),
            starts=saving.count_from_json(document["starts"]),
            agreed=saving.count_from_json(document["agreed"]),
            upper_bound=saving.number_from_json(document["upper_bound"]),
            calibration=None if calibration is None else _score_map(calibration, table),
            shrinkage=numbers("shrinkage"),
            stable=saving.flag_from_json(document["stable"]),
            sample=saving.sample_from_json(document["tuning"], labels=len(labels)),
        )

    def _fields(self) -> dict[str, Any]:
        number, is_affine = saving.number_to_json, self.a is not None
        prior = float(self.confusion.positives.sum() / self.confusion.total.sum())
        return {
            "k": self.k,
            "average": self.average,
            "metric": None if self.metric is None else saving.metric_to_dict(self.metric, prior),
            "value": number(self.value),
            "actions": None if self.actions == self.labels else list(map(saving.label_to_json, self.actions)),
            "gains": None if is_affine else np.asarray(self.cost_gains).tolist(),
            "offsets": None if is_affine else self.offsets.tolist(),
            "costs": None if self.costs is None else self.costs.tolist(),
            "starts": self.starts,
            "agreed": self.agreed,
            "upper_bound": number(self.upper_bound),
            "stable": self.stable,
            "calibration": None if self.calibration is None else self.calibration.to_dict(with_coefficients=False),
            "matrix": None if self.matrix is None else self.matrix.tolist(),
            "baseline": {
                "value": number(self.baseline.value),
                "matrix": None if self.baseline.matrix is None else self.baseline.matrix.tolist(),
            },
            "tuning": saving.sample_to_json(self.sample),
        }

    def _columns(self) -> dict[str, list[Any]]:
        rule = {} if self.a is None else {"a": self.a.tolist(), "offset": self.offsets.tolist()}
        curves = [] if self.calibration is None else self.calibration.coefficients.T.tolist()
        return {
            "label": [saving.label_to_json(label) for label in self.labels],
            **rule,
            "value": self.per_label.tolist(),
            **saving.confusions_to_columns(self.confusion),
            **saving.confusions_to_columns(self.baseline.confusion, BASELINE),
            "shrinkage": (self.shrinkage if len(self.shrinkage) else np.zeros(len(self))).tolist(),
            **{f"{COEFFICIENT}{i + 1}": column for i, column in enumerate(curves)},
        }

    def _check(self) -> None:
        """Raise where the parts of the rule contradict each other."""
        labels, actions = self.labels, self.actions
        for names, noun in ((labels, "label"), (actions, "action")):
            if not names or len(set(names)) < len(names):
                raise ValueError(f"expected {noun}s that differ, and at least one")
        if not 1 <= self.k <= len(actions):
            raise ValueError(f"it predicts {self.k} of {counted(len(actions), 'label')}")
        if self.a is None:
            if (
                self.cost_gains is None
                or self.cost_gains.shape != (len(actions), len(labels))
                or len(self.offsets) != len(actions)
            ):
                raise ValueError("a rule without a has gains of each action for each label, and offsets of actions")
        elif actions != labels or not len(self.a) == len(self.offsets) == len(labels):
            raise ValueError("a rule a·η + b has an a and a b for each label, and predicts labels")
        numbers = [one for one in (self.a, self.cost_gains, self.offsets, self.costs) if one is not None]
        if not all(np.isfinite(one).all() for one in numbers):
            raise ValueError("gains, offsets and costs of a rule must be finite")
        if (self.metric is None) != (self.average == COST) or (self.costs is None) != (self.metric is not None):
            raise ValueError("a rule has a metric, or costs")
        if self.costs is not None and self.costs.shape != (len(labels), len(actions)):
            raise ValueError(f"costs must have a row per class and a column per action, got shape {self.costs.shape}")
        if self.calibration is not None:
            self.calibration.check(len(labels))
        if not 1 <= self.agreed <= self.starts:
            raise ValueError(f"{self.agreed} of {self.starts} starts agree")
        if len(self.shrinkage) not in (0, len(labels)) or not (self.shrinkage >= 0).all():
            raise ValueError("the shrinkage of a label is at least 0")
        self._check_values()

    def _check_values(self) -> None:
        """Raise where counts, values and the rows disagree."""
        labels, before = self.labels, self.baseline
        consistency.require_same_rows(self.confusion, before.confusion, labels)
        consistency.require_rows(np.full(len(self), self.rows), self.confusion, self.weighted, labels)
        if self.metric is not None:
            consistency.require_objective(self.value, self.metric, self.average, self.confusion, labels, self.per_label)
            consistency.require_objective(before.value, self.metric, self.average, before.confusion, labels)
        elif self.costs is not None:
            consistency.require_cost(self.value, self.costs, self.matrix)
            consistency.require_cost(before.value, self.costs, before.matrix)
        if math.isnan(self.value):
            raise ValueError("its value is NaN")
        for matrix, confusion in ((self.matrix, self.confusion), (before.matrix, before.confusion)):
            if matrix is not None:
                if self.k != 1 or matrix.shape != (len(labels), len(self.actions)):
                    raise ValueError("rows by class and action need k = 1, a row per class and a column per action")
                consistency.require_matrix(matrix, confusion, self.actions, labels)
        if self.calibration is None:  # it is of rules that compare scores as they are
            consistency.require_bound(self.value, self.upper_bound)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopK):
            return NotImplemented
        mine, theirs = (one.with_sample(seen=()).to_dict() for one in (self, other))  # as samples are compared
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __str__(self) -> str:
        return class_wording.top_k_text(self)

    def __repr__(self) -> str:
        return f"<TopK: {class_wording.headline(self)}>"

    def _repr_html_(self) -> str:
        return html.top_k_html(self)


def _names(values: list[Any]) -> tuple[Any, ...]:
    return tuple(map(saving.label_from_json, values))


def _counts(rows: Any, actions: int) -> NDArray[Any] | None:
    """Read the rows by class and action; None where they are not known."""
    message = f"expected the rows of a class by {counted(actions, 'action')}"
    return None if rows is None else saving.matrix_from_json(rows, saving.cell_from_json, actions, message)


def _baseline(document: Any, table: Any, actions: int) -> Baseline:
    document = saving.object_from_json(document)
    confusion = saving.confusions_from_json(table, BASELINE)
    return Baseline(saving.number_from_json(document["value"]), confusion, _counts(document["matrix"], actions))


def _score_map(document: Any, table: Any) -> ScoreMap:
    document = saving.object_from_json(document)
    count = coefficients_of(saving.text_from_json(document["family"]))
    columns = [saving.column(table, f"{COEFFICIENT}{i + 1}") for i in range(count)]
    return ScoreMap.from_dict({**document, "coefficients": list(map(list, zip(*columns, strict=True)))})


def gain_of_actions(
    probabilities: NDArray[np.float64], cost_gains: NDArray[np.float64], offsets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each action is expected to gain in each row; an absent class, of −inf, is as likely as 0."""
    return np.asarray(np.maximum(probabilities, 0.0) @ cost_gains.T + offsets)


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
