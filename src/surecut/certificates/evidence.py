"""Evidence: what rows say of a cut, of one label or of many, made once from whatever was passed.

Methods take it and know nothing of matrices, long tables, tallies or columns. What is independent are clusters: the
rows of a group, or the labels of a row, never the pairs of a row and a label. Rows of one label without groups, and
rows of many labels of which only tallies are left, have no clusters to speak of: each label is looked at by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from surecut._inputs import check_missing, require_same_length
from surecut._matrices import present_rows, require_keys
from surecut._plurals import counted
from surecut.averages import averaged_value, undefined_labels
from surecut.certificates.cells import ClusterCells, cells_of, group_codes
from surecut.certificates.certificate import ONE_MODEL, Certificate
from surecut.certificates.held_out import require_valid_rows, worded_for
from surecut.certificates.label_rows import LabelRows, TableRows, have_names, thresholds_of
from surecut.certificates.priors import at_prior
from surecut.certificates.rows import HeldOutRows
from surecut.certificates.weights import frequencies, require_both, require_whole, without_ones
from surecut.confusion import Confusion
from surecut.core.tally import ScoreTally
from surecut.decisions.cut import Cut
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.saving import UnknownMetric
from surecut.metrics import FunctionMetric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.decisions.top_k import TopK

Decision = Cut | MultilabelCut

GROUPS_NEED_ROWS = "groups need the rows themselves: pass y_true and y_score, not a tally"
ROWS_AND_TALLY = "pass either rows or their tally, not both"


@dataclass(frozen=True)
class Asked:
    """What is asked of a method: the options of `certify` that do not hold rows."""

    confidence: float = 0.95
    method: str = "holdout"
    weights: str | None = None
    held_out: bool | None = None
    missing: str = "error"
    resamples: int = 2000
    random_state: Any = 0
    progress: bool | None = None

    @property
    def error(self) -> float:
        """The probability with which a limit may fail."""
        return 1 - self.confidence

    def counted(self, tally: ScoreTally) -> ScoreTally:
        """A tally with weights that count rows as numbers of rows; other weights are refused."""
        return frequencies(tally, f"method={self.method!r}", self.weights)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What rows say of a cut, which may certify it; without rows, what the cut remembers of its own.

    Attributes
    ----------
    cut
        Of one label or of many.
    tuned_here
        Whether these rows tuned it.
    tallies
        A tally of each label; none of rows that have all labels, for methods that take them whole.
    rows
        Rows that come in clusters: those of many labels, or of groups. None where only tallies are left, or needed.
    """

    cut: Decision
    tuned_here: bool = False
    tallies: Sequence[ScoreTally] = ()
    rows: LabelRows | TableRows | None = None

    @property
    def average(self) -> str | None:
        """What a value is an average of; None of one label."""
        return self.cut.average if isinstance(self.cut, MultilabelCut) else None

    @property
    def grouped(self) -> bool:
        """Whether groups of rows are independent, not rows."""
        return self.rows is not None and self.rows.groups is not None

    @property
    def number(self) -> int:
        """How many rows there are: of a matrix, of one label, or of a long table."""
        if isinstance(self.rows, LabelRows):
            return int(self.rows.scores.shape[0])
        of_label = [int(tally.rows.sum()) for tally in self.tallies] or [int(np.max(self.cut.rows))]
        return of_label[0] if self.rows is None and len(set(of_label)) == 1 else sum(of_label)

    @property
    def prior(self) -> float | None:
        """The share of positives that was given for a cut of one label."""
        return self.tallies[0].given_prior if self.average is None else None

    @cached_property
    def cells(self) -> ClusterCells | None:
        """The counts of each independent cluster and label at the cut; None where labels are looked at one by one."""
        return None if self.rows is None else self.rows.cells(self.cut)

    @cached_property
    def confusion(self) -> Confusion:
        """Of each label, at its threshold."""
        if self.tallies:
            return at_thresholds(self.cut, self.tallies)
        return self.cut.confusion if self.cells is None else self.cells.confusion()

    @cached_property
    def value(self) -> float:
        """The metric on these rows, or its average over labels."""
        cut = self.cut
        if isinstance(cut, MultilabelCut):
            return averaged_value(cut.metric, cut.average, self.confusion)
        value = float(cut.metric.evaluate(at_prior(self.confusion[0], self.prior)))
        if math.isnan(value):
            raise ValueError(
                f"{cut.metric.name} is undefined for this cut on these rows: it predicts none of them positive"
            )
        return value

    def certificate(
        self,
        asked: Asked,
        value: float,
        limits: tuple[float, float, float | None],
        drawn: Sequence[str],
        others: Sequence[str] = (),
        exact: bool = False,
        **more: Any,
    ) -> Certificate:
        """A certificate of a value.

        `limits` are the lower one, the upper one, and the bound of the regret; `drawn` says how the rows have to be
        drawn, `others` what else is assumed.
        """
        metric, average = self.cut.metric, self.average
        assumptions = [*drawn, ONE_MODEL, *others] if average is None else [*drawn, *others, ONE_MODEL]
        if average == "macro" and (lacking := len(undefined_labels(metric, self.confusion))):
            labels = counted(lacking, "label")
            assumptions.append(f"of {labels} these rows lack a class: nothing is known there, and the worst is assumed")
        return Certificate(
            *limits,
            value=value,
            metric=metric.name if average is None else f"{average} {metric.name}",
            threshold=None if average == "macro" else float(thresholds_of(self.cut)[0]),
            method=asked.method,
            confidence=asked.confidence,
            rows=self.number,
            exact=exact,
            assumptions=tuple(assumptions),
            **more,
        )


def evidence_of(
    cut: Decision,
    asked: Asked,
    y_true: Any = None,
    y_score: Any = None,
    *,
    tally: ScoreTally | Sequence[ScoreTally] | None = None,
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Any = None,
) -> Evidence:
    """The evidence for a method, from the arguments of `certify`; raises where these rows may not certify the cut."""
    check_missing(asked.missing, "error", "drop")
    if y_score is not None:
        require_both(asked.weights, sample_weight is not None)
    if by is not None and isinstance(cut, Cut):
        raise ValueError("by= says which label a row is of, and this cut has one label: leave it out")
    if asked.missing == "drop" and y_true is not None and y_score is not None:
        columns = present_rows(y_true, y_score, sample_weight, by, groups)
        y_true, y_score, sample_weight, by, groups = columns
    require_keys(by, groups)
    if sample_weight is not None and np.ndim(y_score):
        number = y_score.shape[0] if hasattr(y_score, "shape") else len(y_score)
        sample_weight = without_ones(sample_weight, number)
    check_metric(cut)
    if isinstance(cut, MultilabelCut) and isinstance(tally, ScoreTally):
        raise ValueError(f"the cut has {len(cut)} labels: pass a tally of each, in a list, or the rows themselves")
    if asked.method == "theorem":
        return Evidence(cut)
    if isinstance(cut, Cut):
        return _of_one_label(cut, asked, y_true, y_score, tally, sample_weight, groups, pos_label)
    if tally is not None:
        if groups is not None or by is not None:
            raise ValueError(GROUPS_NEED_ROWS)
        if y_true is not None or y_score is not None or sample_weight is not None:
            raise ValueError(ROWS_AND_TALLY)
        return _of_tallies(cut, asked, list(cast("Sequence[ScoreTally]", tally)))
    if y_true is None or y_score is None:
        raise ValueError(f"method={asked.method!r} needs rows: pass Y_true and Y_score")
    pos_label = cut.positive_in(y_true, pos_label)
    if by is None:
        return _of_matrices(cut, asked, LabelRows.of(cut, y_true, y_score, sample_weight, pos_label), groups)
    return _of_table(cut, asked, TableRows.of(cut, y_true, y_score, by, sample_weight, pos_label), groups)


def check_metric(decision: Decision | TopK) -> None:
    """Raise where nothing is known of a decision's metric."""
    metric = decision.metric
    if isinstance(metric, UnknownMetric):
        unknown = f"the cut was tuned for the function {metric.name!r}, which no file holds"
        raise ValueError(worded_for(decision, unknown))
    if isinstance(metric, FunctionMetric):
        raise ValueError(
            f"{metric.name!r} is a function of which nothing is known: certificates need a metric of the catalogue or "
            "a LinearFractional one, which do not increase in FP or FN"
        )


def _of_one_label(
    cut: Cut,
    asked: Asked,
    y_true: Any,
    y_score: Any,
    tally: Any,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    pos_label: Any,
) -> Evidence:
    method, weights = asked.method, asked.weights
    if groups is not None:
        if tally is not None or y_true is None or y_score is None:
            raise ValueError(GROUPS_NEED_ROWS)
        if method == "holdout" and (sample_weight is not None or cut.prior_given):
            raise ValueError(
                "groups of rows with weights, or for a prior that was given, have no finite-sample limit here: use "
                "method='bootstrap'"
            )
    compared: ScoreTally | HeldOutRows
    if tally is None:
        if y_true is None or y_score is None:
            raise ValueError(f"method={method!r} needs rows: pass y_true and y_score, or a tally of them")
        pos_label = cut.positive_in(y_true, pos_label)
        if method == "holdout":  # which needs no more than the counts at the cut
            compared = HeldOutRows.of(y_true, y_score, sample_weight, pos_label)
            counts = compared.at(cut.threshold, exact=not cut.fingerprint)
        else:
            compared = counts = ScoreTally.from_scores(
                y_true, y_score, sample_weight=sample_weight, pos_label=pos_label
            )
        if sample_weight is not None:
            require_whole(np.asarray(sample_weight, dtype=float), weights)
    elif not isinstance(tally, ScoreTally):
        raise ValueError("a cut of one label has one tally")
    elif y_true is not None or y_score is not None or sample_weight is not None:
        raise ValueError(ROWS_AND_TALLY)
    else:
        compared = counts = tally
    if cut.prior_given and counts.given_prior is None:
        counts = counts.with_prior(cut.prior)
    elif counts.given_prior is not None and counts.given_prior != (cut.prior if cut.prior_given else None):
        raise ValueError(
            f"the tally has the prior {counts.given_prior:g} given, the cut was tuned at {cut.prior:g}: certify the "
            "cut that was tuned with this prior"
        )
    tuned_here = require_valid_rows(cut, {0: compared}, counts.has_tuned(cut), method, asked.held_out)
    cut.metric.check_classes(*counts.rows.sum(axis=0)[::-1])
    if method != "bootstrap" or (weights == "counts" and groups is None):
        counts = asked.counted(counts)
    if groups is None:
        return Evidence(cut, tuned_here, [counts])
    rows = TableRows.of(cut, y_true, y_score, None, sample_weight, pos_label)
    codes = numbered_groups(groups, y_true=rows.scores)
    return Evidence(cut, tuned_here, [counts], replace(rows, groups=codes))


def _of_tallies(cut: MultilabelCut, asked: Asked, tallies: list[ScoreTally]) -> Evidence:
    if len(tallies) != len(cut):
        raise ValueError(f"expected a tally for each of the {len(cut)} labels, got {len(tallies)}")
    _require_label_average(cut)
    if asked.method == "bootstrap":
        raise ValueError("whole rows are resampled, and tallies of labels do not hold them: pass Y_true and Y_score")
    return Evidence(cut, _tuned_by(cut, asked, tallies), [asked.counted(tally) for tally in tallies])


def _of_table(cut: MultilabelCut, asked: Asked, rows: TableRows, groups: ArrayLike | None) -> Evidence:
    """From a long table: of rows that are independent, or of groups that are."""
    rows.require_every_label()
    tallies = rows.tallies()
    if rows.weights is not None:
        require_whole(rows.weights, asked.weights)
    if asked.method == "bootstrap":
        raise ValueError(
            "whole rows are resampled, and a long table does not say which of its rows belong together: pass matrices, "
            "or use method='holdout' on held-out rows, or method='uniform'"
        )
    if groups is None:
        return _of_tallies(cut, asked, tallies)
    if rows.weights is not None:
        raise ValueError(
            "groups of rows with weights have no finite-sample limit here: leave the weights out, or pass matrices and "
            "use method='bootstrap'"
        )
    _require_label_average(cut)
    tuned_here = _tuned_by(cut, asked, tallies)
    return Evidence(cut, tuned_here, tallies, replace(rows, groups=numbered_groups(groups, Y_true=rows.scores)))


def _of_matrices(cut: MultilabelCut, asked: Asked, rows: LabelRows, groups: ArrayLike | None) -> Evidence:
    tuned_here = require_valid_rows(cut, rows.some_tallies(cut), rows.tuned(cut), asked.method, asked.held_out)
    if groups is not None:
        rows = replace(rows, groups=numbered_groups(groups, Y_true=np.empty(rows.scores.shape[0])))
    if rows.weights is not None:
        require_whole(rows.weights, asked.weights)
    if asked.method == "bootstrap":
        if asked.weights == "counts" and groups is None:
            rows = rows.counted("it", asked.weights)
        return Evidence(cut, tuned_here, rows=rows)
    if groups is not None and rows.weights is not None:
        raise ValueError("groups of rows with weights have no finite-sample limit here: use method='bootstrap'")
    rows = rows.counted(f"method={asked.method!r}", asked.weights)
    if asked.method == "uniform":  # whose limits are those of each label
        _require_label_average(cut)
        return Evidence(cut, tuned_here, rows.tallies())
    return Evidence(cut, tuned_here, rows=rows)


def numbered_groups(groups: ArrayLike, **column: Any) -> NDArray[np.intp]:
    """Numbers of the groups, one for each row of a column, which is named in the error."""
    named = np.asarray(groups)
    require_same_length(**column, groups=named)
    return group_codes(named)


def _require_label_average(cut: MultilabelCut) -> None:
    """Refuse a mean over rows, for methods that look at labels."""
    if cut.average == "samples":
        raise ValueError(
            "a samples average is a mean over rows, of which tallies of labels know nothing, and no band holds for it "
            "at all thresholds: use method='holdout' on held-out rows of matrices, or method='bootstrap'"
        )


def _tuned_by(cut: MultilabelCut, asked: Asked, tallies: Sequence[ScoreTally]) -> bool:
    """Whether rows of which tallies are left tuned the cut; raises where they may not certify it.

    A cut that was tuned in an engine knows its counts, but no fingerprint.
    """
    if not cut.checksums.any():
        identical = np.array_equal(cells_of(at_thresholds(cut, tallies)), cells_of(cut.confusion))
    else:
        identical = any(
            is_named and tally.sample.fingerprint == cut[label].fingerprint
            for tally, label, is_named in zip(tallies, cut, have_names(cut), strict=True)
        )
    return require_valid_rows(cut, dict(enumerate(tallies)), identical, asked.method, asked.held_out)


def at_thresholds(cut: Decision, tallies: Sequence[ScoreTally]) -> Confusion:
    """Each label's confusion at its threshold."""
    found = [
        cells_of(tally.confusion_at(threshold))
        for threshold, tally in zip(thresholds_of(cut).tolist(), tallies, strict=True)
    ]
    return Confusion(*np.array(found).T)


def row_values(cut: MultilabelCut, cells: ClusterCells) -> NDArray[np.float64]:
    """The metric of each row, over its labels."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.asarray(cut.metric.evaluate(Confusion(*cells.pooled().T)), dtype=float)
    return np.where(np.isnan(values), cut.zero_division, values)
