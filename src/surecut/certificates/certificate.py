"""A certificate: what is promised of a cut, in numbers and in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from surecut._plurals import counted
from surecut.notebook import card

FRESH = "the rows are a random sample, independent of one another, from where the cut will be used"

ONE_MODEL = "one fixed model gave all scores, and was not trained on these rows"

KEPT_ASIDE = "these rows did not tune the cut"

BY_WORD = "these rows took part neither in training nor in tuning, by the caller's word"


def check_confidence(confidence: float) -> None:
    """Raise unless a confidence is a probability."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence= must fulfil 0 < confidence < 1, such as 0.95, got {confidence}")


@dataclass(frozen=True)
class ConstraintPromise:
    """Whether a constraint of the cut holds on new rows.

    Attributes
    ----------
    constraint
        What was asked for, as ``"precision>=0.9"``.
    value, limit
        The quantity on the rows that were given, and what it surely reaches (``>=``) or does not exceed (``<=``). Of
        many labels with a cut each: those of the worst label.
    holds
        Whether the limit meets the level: then the constraint holds with the certificate's confidence, and all that do
        hold at once.
    labels
        Of how many labels that is sure, and how many there are.
    """

    constraint: str
    value: float
    limit: float
    holds: bool
    labels: tuple[int, int] | None = None

    def __str__(self) -> str:
        reaches = "at least" if ">=" in self.constraint.partition(" in ")[0] else "at most"  # a zone has any name
        if self.holds and math.isnan(self.value):
            return f"{self.constraint} holds there, too: no score can be in this zone."
        if self.holds:
            return f"{self.constraint} holds there, too, with this confidence: it is {reaches} {self.limit:.4f}."
        whose = ":"
        if self.labels is not None:
            whose = f" for {self.labels[1] - self.labels[0]:,} of {counted(self.labels[1], 'label')}: of the worst one"
        known = f"it is {reaches} {self.limit:.4f} ({self.value:.4f} on these rows)."
        return f"{self.constraint} is not sure to hold there{whose} {known}"


@dataclass(frozen=True)
class Certificate:
    """What is promised of a cut on new rows, with which confidence, and under which assumptions.

    Attributes
    ----------
    lower, upper
        Limits of the metric's value on new rows; *each* holds with the confidence, so that the value is at least
        `lower`, or at most `upper`, whichever one cares for.
    regret_bound
        By how much the best threshold of this same model can be better, with the same confidence; None where the
        method does not say. Never a statement on other models.
    value
        The metric on the rows that were given.
    metric, threshold, method, confidence, rows
        What was certified, how, and on how many rows. No threshold where each label has its own.
    exact
        Whether the limits are those of an exact test, without caution.
    assumptions
        What must be true for the promise to hold.
    threshold_spread
        With ``"bootstrap"`` on the tuning rows: the middle 80 % of the thresholds that resampled rows choose. It shows
        how settled the threshold is; it is no confidence interval.
    constraints
        Of a cut that was tuned with constraints: whether they hold on new rows. Together they hold with the confidence;
        that is a promise of its own, beside the one of the value.
    note
        Why the limits are wide, where something other than the number of rows makes them so; empty otherwise.
    """

    decision: ClassVar[str] = "cut"

    lower: float
    upper: float
    regret_bound: float | None
    value: float
    metric: str
    threshold: float | None
    method: str
    confidence: float
    rows: int
    exact: bool
    assumptions: tuple[str, ...]
    threshold_spread: tuple[float, float] | None = None
    constraints: tuple[ConstraintPromise, ...] = ()
    note: str = ""

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised that was not known before."""
        return bool(self.regret_bound is not None and self.method == "theorem" and self.regret_bound >= 1)

    def __str__(self) -> str:
        return sentence(self)

    def _repr_html_(self) -> str:
        return _html(self)


def _html(certificate: Certificate) -> str:
    """A certificate: the promise in words, its numbers, what it assumes."""
    facts = {"method": certificate.method + (" (exact)" if certificate.exact else "")}
    facts["limits"] = f"at least {certificate.lower:.4f}; at most {certificate.upper:.4f}"
    if certificate.regret_bound is not None:
        facts["regret"] = f"at most {certificate.regret_bound:.4f}"
    for number, assumption in enumerate(certificate.assumptions):
        facts["it holds if" if number == 0 else "\u00a0" * number] = assumption
    return card(str(certificate), facts.items())


def confident(certificate: Certificate) -> str:
    """The confidence, as a sentence begins."""
    return f"With {100 * certificate.confidence:.4g} % confidence"


def sentence(certificate: Certificate) -> str:
    """The promise in words that need no statistics."""
    name, rows = certificate.metric, counted(certificate.rows, "row")
    sure = confident(certificate)
    if certificate.method == "theorem":
        vacuous = " That says nothing: the bound is vacuous." if certificate.vacuous else ""
        return (
            f"{sure}, by Theorem 3 of the paper, tuning on {rows} costs at most "
            f"{certificate.regret_bound:.3g} of {name} against the best threshold of this model.{vacuous}"
        )
    about = "about " if certificate.method == "bootstrap" else ""
    promise = (
        f"{sure} the {name} of this {certificate.decision} on new rows is at least {about}{certificate.lower:.4f} "
        f"(it is {certificate.value:.4f} on {'this' if certificate.rows == 1 else 'these'} {rows})"
    )
    if certificate.regret_bound is not None:
        promise += f", and no other threshold of this model is better by more than {certificate.regret_bound:.4f}"
    return " ".join([f"{promise}.", *map(str, certificate.constraints), *filter(None, [certificate.note])])
