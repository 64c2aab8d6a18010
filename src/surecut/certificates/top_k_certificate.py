"""What can be promised of a rule of k labels a row, on rows that nobody has seen: its value, and each label's shares.

Two methods: ``"holdout"`` for rows that did not tune the rule, valid at every sample size (`top_k_limits`), and
``"bootstrap"`` for such rows in large samples, with weights of any meaning. There is none for the validation rows: a
rule is chosen among so many that no limits are known for all of them at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from surecut._inputs import as_weights, check_missing
from surecut._labels import class_codes
from surecut._matrices import class_indicators, is_sparse, label_matrix, present_rows, require_keys, require_same_shape
from surecut._plurals import counted
from surecut.certificates.bootstrap import rule_drawn
from surecut.certificates.cells import cells_of
from surecut.certificates.certificate import FRESH, KEPT_ASIDE, ONE_MODEL, Certificate, confident, sentence
from surecut.certificates.clusters import GROUPS, NO_ORDER, unequal_note
from surecut.certificates.evidence import Asked, check_metric, numbered_groups
from surecut.certificates.held_out import require_valid_rows, worded_for
from surecut.certificates.label_rows import LabelRows
from surecut.certificates.top_k_limits import (
    LabelLimits,
    RuleRows,
    ValueLimits,
    lacking_labels,
    limits_of_labels,
    value_limits_of,
)
from surecut.certificates.weights import require_both, require_whole, without_ones
from surecut.label_objectives import COST, MULTICLASS_AVERAGE
from surecut.notebook import CELL, card
from surecut.sources.matrices import label_source

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from surecut.decisions.top_k import TopK

METHODS = ("holdout", "bootstrap")

MEAN_COST = "mean cost"
"""What the value of a rule of costs is, up to its sign."""

MOST = 20
"""Labels that are printed."""

REFUSED = {
    "uniform": "has no limits for all rules of k labels a row at once",
    "theorem": "is of thresholds",
}

LARGE = "the sample is large: the bootstrap is right in the limit only"


@dataclass(frozen=True)
class TopKCertificate(Certificate):
    """What is promised of a rule of k labels a row: a `Certificate` of its value, and of each label's shares.

    Attributes
    ----------
    labels
        The labels, or classes, that the rule can predict.
    recall
        Limits of the share of each label's rows that are predicted it. None for weights that say how much a row
        matters, of which no limits are known.
    precision
        Limits of the share of the rows predicted each label that have it. All lower limits of recall and precision hold
        at once with the confidence, beside the one of the value.

    Notes
    -----
    With costs `value`, `lower` and `upper` are those of minus the mean cost of a row, as in `TopK.value`.

    Examples
    --------
    >>> from surecut import certify, tune_top_k
    >>> rng = np.random.default_rng(0)
    >>> def draw(n):
    ...     y = rng.integers(3, size=n)
    ...     return np.array(["cat", "dog", "owl"])[y], rng.normal(size=(n, 3)) + 2 * np.eye(3)[y]
    >>> rule = tune_top_k(*draw(500), k=1, metric="balanced_accuracy")
    >>> certificate = certify(rule, *draw(1000))
    >>> certificate.lower < certificate.value, certificate.recall.lower.round(1)
    (True, array([0.8, 0.8, 0.8]))
    """

    decision: ClassVar[str] = "rule"

    labels: tuple[Any, ...] = ()
    recall: LabelLimits | None = field(default=None, compare=False)
    precision: LabelLimits | None = field(default=None, compare=False)

    def __str__(self) -> str:
        lines = [value_sentence(self)]
        if self.recall is not None and self.precision is not None and self.labels:
            lines.append(f"{confident(self)}, on new rows, all at once:")
            lines += [f"  {label}: {_shares(self, i)}" for i, label in enumerate(self.labels[:MOST])]
            if len(self.labels) > MOST:
                more = counted(len(self.labels) - MOST, "label")
                lines.append(f"  … and {more}: `recall` and `precision` have all of them")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = value_sentence(self)
        facts = [("method", self.method + (" (exact)" if self.exact else ""))]
        facts.append(("limits", f"at least {self.lower:.4f}; at most {self.upper:.4f}"))
        facts += [("" if number else "it holds if", one) for number, one in enumerate(self.assumptions)]
        return card(head, facts, _table(self))


def value_sentence(certificate: TopKCertificate) -> str:
    """What is promised of the value, in words."""
    return _cost_sentence(certificate) if certificate.metric == MEAN_COST else sentence(certificate)


def _cost_sentence(certificate: TopKCertificate) -> str:
    about = "about " if certificate.method == "bootstrap" else ""
    found = (
        f"{confident(certificate)} the mean cost of a new row with this rule is at most "
        f"{about}{-certificate.lower:.4g} (it is {-certificate.value:.4g} on these "
        f"{counted(certificate.rows, 'row')})."
    )
    return " ".join([found, *filter(None, [certificate.note])])


def _shares(certificate: TopKCertificate, i: int) -> str:
    """What is promised of one label, in words."""
    said = []
    for name, limits, lacking in (
        ("recall", certificate.recall, "no row here has it"),
        ("precision", certificate.precision, "no row here is predicted it"),
    ):
        assert limits is not None
        if math.isnan(limits.value[i]):
            said.append(f"{name} is not known: {lacking}")
        else:
            rows = counted(int(limits.rows[i]), "row")
            said.append(f"{name} at least {limits.lower[i]:.4f} ({limits.value[i]:.4f} of {rows})")
    return ", ".join(said)


def _table(certificate: TopKCertificate) -> str:
    """The limits of each label as a table."""
    recall, precision = certificate.recall, certificate.precision
    if recall is None or precision is None or not certificate.labels:
        return ""
    names = ("label", "rows", "recall", "at least", "predicted", "precision", "at least")
    head = "".join(f'<th style="{CELL};font-weight:normal;opacity:.75">{name}</th>' for name in names)
    rows = ""
    for i, label in enumerate(certificate.labels[:MOST]):
        texts = []
        for one in (recall, precision):
            value = "–" if math.isnan(one.value[i]) else f"{one.value[i]:.4f}"
            texts += [f"{int(one.rows[i]):,}", value, f"{one.lower[i]:.4f}"]
        first = f'<th style="{CELL};text-align:left;font-weight:normal">{escape(str(label))}</th>'
        rows += "<tr>" + first + "".join(f'<td style="{CELL}">{text}</td>' for text in texts) + "</tr>"
    left = len(certificate.labels) - MOST
    more = f"<div>… and {counted(left, 'label')}</div>" if left > 0 else ""
    return f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>{more}'


def top_k_certificate(
    rule: TopK,
    asked: Asked,
    y_true: Any = None,
    y_score: Any = None,
    *,
    tally: Any = None,
    by: Any = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Any = None,
) -> TopKCertificate:
    """The certificate for rows, as `certify` takes them; raises where they may not certify the rule."""
    _require_possible(rule, asked, tally, by, pos_label)
    if y_true is None or y_score is None:
        raise ValueError(f"method={asked.method!r} needs rows: pass y_true and y_score")
    require_both(asked.weights, sample_weight is not None)
    check_missing(asked.missing, "error", "drop")
    if asked.missing == "drop":
        y_true, y_score, sample_weight, groups = present_rows(y_true, y_score, sample_weight, groups)
    require_keys(groups)
    rows = _rows(rule, y_true, y_score, sample_weight, groups)
    require_valid_rows(rule, rows.some_tallies(rule), _have_tuned(rows, rule), asked.method, asked.held_out)
    if rows.weights is not None:
        require_whole(rows.weights, asked.weights)
        if asked.method == "holdout" and groups is not None:
            raise ValueError("groups of rows with weights have no finite-sample limit here: use method='bootstrap'")
        if asked.method == "holdout" or (asked.weights == "counts" and groups is None):
            rows = rows.counted(f"method={asked.method!r}", asked.weights)
    predicted = RuleRows(rule, rows.truth, rule.predict(rows.scores, as_="positions"), rows.weights, rows.groups)
    if asked.method == "holdout":
        found = value_limits_of(predicted, asked.error)
        value = float(predicted.value()[0])
    else:
        value, drawn = rule_drawn(predicted, asked)
        found = ValueLimits(drawn.limits(asked.error))
    recall, precision = (None, None) if rows.weights is not None else limits_of_labels(predicted, asked.error)
    name = rule.metric.name if rule.metric is not None else MEAN_COST
    return TopKCertificate(
        *found.limits,
        None,
        value=value,
        metric=name if rule.average in (MULTICLASS_AVERAGE, COST) else f"{rule.average} {name}",
        threshold=None,
        method=asked.method,
        confidence=asked.confidence,
        rows=len(predicted),
        exact=found.exact,
        assumptions=_assumptions(predicted, asked, found),
        note="" if rows.groups is None else unequal_note(predicted.cells.pooled().sum(axis=1), asked.error),
        labels=tuple(rule.labels[i] for i in predicted.predictable.tolist()),
        recall=recall,
        precision=precision,
    )


def _require_possible(rule: TopK, asked: Asked, tally: Any, by: Any, pos_label: Any) -> None:
    check_metric(rule)
    if asked.method not in METHODS:
        raise ValueError(
            f"method={asked.method!r} {REFUSED[asked.method]}: a rule is certified by method='holdout' on held-out "
            "rows, or by method='bootstrap' on many of them"
        )
    if tally is not None:
        raise ValueError("what a row is predicted depends on all of its scores: pass y_true and y_score, not tallies")
    if by is not None:
        raise ValueError("by= says which label a row of a long table is of: pass a matrix of scores, a row each")
    if pos_label is not None:
        raise ValueError("pos_label= is for cuts: pass class labels, or an indicator matrix of 0 and 1")


def _rows(
    rule: TopK, y_true: Any, y_score: Any, sample_weight: ArrayLike | None, groups: ArrayLike | None
) -> LabelRows:
    """The checked rows, columns in the order of the rule's labels; rows of weight zero are left out."""
    scores = rule.matrix_of(y_score)
    number = scores.shape[0]
    if number == 0:
        raise ValueError("there are no rows to certify from")
    weights = without_ones(None if sample_weight is None else as_weights(sample_weight, number), number)
    if not is_sparse(y_true) and np.ndim(y_true) == 1:
        codes, _ = class_codes(y_true, len(rule), rule.labels, "y_true", "which are not among the rule's classes")
        if len(codes) != number:
            raise ValueError(f"y_true and y_score must have one length: got {len(codes)} and {number} rows")
        truth: Any = class_indicators(codes, len(rule))
    else:
        truth, names = label_matrix(y_true, name="y_true")
        if names is not None and names != rule.labels and set(names) == set(rule.labels):
            position = {name: i for i, name in enumerate(names)}
            truth = truth[:, [position[label] for label in rule.labels]]
        require_same_shape(truth, scores)
    codes_of_groups = None if groups is None else numbered_groups(groups, y_true=np.empty(number))
    rows = LabelRows(truth, scores, weights, codes_of_groups)
    if weights is None or weights.all():
        return rows
    present = np.flatnonzero(weights)
    left = None if groups is None else numbered_groups(np.asarray(groups)[present], y_true=present)
    kept = without_ones(weights[present], len(present))
    return replace(rows.some(present), weights=kept, groups=left)


def _have_tuned(rows: LabelRows, rule: TopK) -> bool:
    """Whether these rows tuned the rule; of rows that an engine counted, whether they look so."""
    if rule.fingerprint:
        return label_source(rows.truth, rows.scores, rows.weights).sample().fingerprint == rule.fingerprint
    actions = rule.predict(rows.scores, as_="positions")
    confusion = RuleRows(rule, rows.truth, actions, rows.weights).confusion
    return bool(np.array_equal(cells_of(confusion), cells_of(rule.confusion)))


def _assumptions(rows: RuleRows, asked: Asked, found: ValueLimits) -> tuple[str, ...]:
    said = [GROUPS if rows.groups is not None else worded_for(rows.rule, FRESH)]
    if asked.method == "bootstrap":
        said.append(LARGE)
    elif found.is_bet:
        said.append(NO_ORDER.format(what=rows.what))
    said += [worded_for(rows.rule, KEPT_ASIDE), ONE_MODEL]
    if asked.method == "holdout" and (lacking := lacking_labels(rows)):
        labels = counted(lacking, "label")
        said.append(f"of {labels} these rows lack a class: nothing is known there, and the worst is assumed")
    return tuple(said)
