"""One threshold, tuned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut._inputs import as_scores, check_missing, require_no_nan
from surecut.confusion import Confusion, stacked
from surecut.constraints import Constraint
from surecut.core.keys import reaches
from surecut.decisions import consistency, html, saving, sql, wording
from surecut.decisions.stability import LabelStability, Stability
from surecut.metrics import Metric
from surecut.overlap import RowSample
from surecut.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def positive_in(decision: Any, y_true: Any, pos_label: Any) -> Any:
    """Which label of new rows is positive: the one that is named, else the decision's own.

    Booleans need no label, whatever the labels of the validation rows were.
    """
    is_boolean = str(getattr(y_true, "dtype", "")).lower().startswith("bool") or (
        isinstance(y_true, (list, tuple)) and all(isinstance(label, (bool, np.bool_)) for label in y_true)
    )
    return decision.pos_label if pos_label is None and not is_boolean else pos_label


@dataclass(frozen=True)
class Cut(saving.Saved):
    """A threshold, tuned.

    Attributes
    ----------
    threshold
        `score >= threshold` is predicted positive. +inf predicts nothing, even where a score is +inf.
    value
        The metric's value on the validation rows (at `prior`, where that was given).
    metric
        What the cut is best for on the validation rows or, if it is stable, was tuned for.
    confusion
        Counts, or weights, of the validation rows at this cut.
    interval
        (lower, upper]: every threshold in it makes the same predictions on the validation rows. `lower` is the highest
        score rejected, `upper` the lowest accepted.
    prior
        The share of positives at which the metric was evaluated: that of the validation rows, unless `prior_given`.
    constraints
        What the cut had to meet.
    confidence
        The probability with which everything that is promised holds on new data: the constraints, or, where there are
        none, `lower_limit`. None where nothing is promised, and constraints hold on the validation rows only.
    lower_limit
        What the metric is at least on new data, with the confidence; None where that was not asked for.
    shrinkage
        κ, the prior strength of a calibrated model of the scores, in equivalent positives; 0 where there was none.
    calibration
        That model: "sigmoid" or "beta", and whether it was rejected by a goodness-of-fit test and corrected.
    stability
        How settled the threshold is: where tuning puts it on resamples of the validation rows, and what the best
        threshold is worth there. None for an exact cut, which is the best one.
    sample
        The validation rows: their number, whether they had weights, their fingerprint, which label is positive, …;
        each of these is also an attribute of the cut.
    """

    schema = saving.CUT

    threshold: float
    value: float
    metric: Metric = field(hash=False)  # custom metrics need not be hashable
    confusion: Confusion
    interval: tuple[float, float]
    prior: float
    prior_given: bool = False
    constraints: tuple[Constraint, ...] = field(default=(), hash=False)  # the same
    confidence: float | None = None
    lower_limit: float | None = None
    shrinkage: float = 0.0
    calibration: str = ""
    stability: Stability | None = None
    sample: Sample = field(default_factory=Sample)

    @property
    def rows(self) -> int:
        """The number of validation rows."""
        return self.sample.rows

    @property
    def weighted(self) -> bool:
        """Whether the validation rows had weights."""
        return self.sample.weighted

    @property
    def fingerprint(self) -> str:
        """A name for the validation rows that does not depend on their order; empty where an engine counted them."""
        return self.sample.fingerprint

    @property
    def out_of_fold(self) -> bool:
        """Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing."""
        return self.sample.out_of_fold

    @property
    def pos_label(self) -> Any:
        """The label that True stands for; None where it is 1 or True itself."""
        return self.sample.pos_label

    @property
    def seen(self) -> tuple[RowSample, ...]:
        """Some of the validation rows, and of the rows that trained the model, by which `certify` recognises them."""
        return self.sample.seen

    def with_sample(self, **facts: Any) -> Cut:
        """The same cut with other facts about its validation rows: `out_of_fold`, `pos_label`, `seen`, …"""
        return replace(self, sample=replace(self.sample, **facts))

    @property
    def predicts_nothing(self) -> bool:
        return self.threshold == math.inf

    def predict(self, scores: ArrayLike, *, missing: str = "error") -> NDArray[np.bool_]:
        """Which scores are predicted positive.

        A missing score (NaN, None, NA) is an error, or with ``missing="negative"`` not predicted positive.

        >>> from surecut import tune_threshold
        >>> cut = tune_threshold([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        >>> cut.predict([0.3, 0.9])
        array([ True,  True])
        >>> cut.predict([0.3, float("nan")], missing="negative")
        array([ True, False])
        """
        column = as_scores(scores, name="scores", may_be_empty=True)
        if missing == "error":
            require_no_nan(column, name="scores", way_out='drop or fill these rows, or pass missing="negative"')
        else:
            check_missing(missing, "error", "negative")
        return reaches(column, self.threshold)

    def positive_in(self, y_true: Any, pos_label: Any = None) -> Any:
        """Which label of new rows is positive: the one that is named, else the cut's own."""
        return positive_in(self, y_true, pos_label)

    def to_sql(self, column: str, dialect: str = "ansi") -> str:
        """The cut as one SQL expression: true where the row is predicted positive.

        `dialect` is one of ansi, duckdb, postgres, snowflake, spark, bigquery, mysql, sqlite. The score is compared
        as a double. It is false, never null, where the score is null or NaN, which most engines hold for the largest
        number.

        >>> from surecut import tune_threshold
        >>> tune_threshold([0, 1], [0.25, 0.75]).to_sql("score", "spark")
        '(`score` IS NOT NULL AND CAST(`score` AS DOUBLE) >= 5e-01 AND NOT isnan(CAST(`score` AS DOUBLE)))'
        """
        known = sql.find_dialect(dialect)
        return sql.reaches(known.name(column), self.threshold, known)

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        tuning, confidence = saving.object_from_json(document["tuning"]), document["confidence"]
        threshold = saving.number_from_json(document["threshold"])
        if math.isnan(threshold):
            raise ValueError("its threshold is NaN")
        return cls(
            threshold=threshold,
            value=saving.number_from_json(document["value"]),
            metric=saving.metric_from_dict(document["metric"]),
            confusion=saving.confusion_from_json(document["confusion"]),
            interval=saving.interval_from_json(document["interval"]),
            prior=saving.share_from_json(document["prior"]),
            prior_given=saving.flag_from_json(document["prior_given"]),
            constraints=tuple(map(saving.constraint_from_dict, saving.list_from_json(document["constraints"]))),
            confidence=None if confidence is None else saving.share_from_json(confidence),
            lower_limit=saving.optional_number(document["lower_limit"]),
            shrinkage=saving.number_from_json(tuning["shrinkage"]),
            calibration=saving.text_from_json(tuning["calibration"]),
            stability=None if document["stability"] is None else Stability.from_dict(document["stability"]),
            sample=saving.sample_from_json(tuning, document["pos_label"]),
        )

    def _check(self) -> None:
        """Raise where the parts of the cut contradict each other."""
        if not self.prior_given:
            consistency.require_prior(self.prior, self.confusion)
        confusion = self.confusion.at_prior(self.prior) if self.prior_given else self.confusion
        consistency.require_thresholds([self.threshold], [self.interval])
        consistency.require_values([self.value], self.metric, stacked([confusion]))
        consistency.require_rows([self.rows], stacked([self.confusion]), self.weighted)
        if self.stability is not None:
            if self.stability.resamples < 1:
                raise ValueError(f"expected at least 1 resample, got {self.stability.resamples}")
            consistency.require_stability(LabelStability.joined([self.stability]), [self.value])

    def __str__(self) -> str:
        return wording.cut_text(self)

    def __repr__(self) -> str:
        return f"<Cut: {self}>"

    def _repr_html_(self) -> str:
        return html.cut_html(self)

    def _fields(self) -> dict[str, Any]:
        confusion, number = self.confusion, saving.number_to_json
        return {
            "threshold": number(self.threshold),
            "pos_label": saving.positive_to_json(self.pos_label),
            "interval": [number(end) for end in self.interval],
            "value": number(self.value),
            "metric": saving.metric_to_dict(self.metric, self.prior),
            "prior": self.prior,
            "prior_given": self.prior_given,
            "constraints": [saving.constraint_to_dict(one, self.prior) for one in self.constraints],
            "confidence": self.confidence,
            "lower_limit": None if self.lower_limit is None else saving.number_to_json(self.lower_limit),
            "stability": None if self.stability is None else self.stability.to_dict(),
            "confusion": {"tp": confusion.tp, "fp": confusion.fp, "fn": confusion.fn, "tn": confusion.tn},
            "tuning": {
                **saving.sample_to_json(self.sample),
                "shrinkage": number(self.shrinkage),
                "calibration": self.calibration,
            },
        }
