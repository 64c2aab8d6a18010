"""Promises of rules of k labels a row, on held-out rows: limits of the value, of each label's recall and precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from guarantees.configuration import Configuration
from surecut import TopK, TopKCertificate, certify, tune_top_k
from surecut.certificates.top_k_limits import worth
from surecut.confusion import Confusion

ERROR = 0.1
SIDES = ("lower", "upper")
LABELS = ("all lower limits of labels", "all upper limits of labels")
REJECTING = 0.3
"""What it costs to predict nothing, where an error costs 1."""


@dataclass(frozen=True, eq=False)
class Domain:
    """A few points, each with a probability, scores, and its own distribution of label sets.

    Attributes
    ----------
    mass
        The probability of each point.
    scores
        Shape (points, labels).
    sets
        Shape (points, sets): how probable each set of labels is at each point.
    labels_of
        Shape (sets, labels): which labels are in each set.
    """

    mass: np.ndarray
    scores: np.ndarray
    sets: np.ndarray
    labels_of: np.ndarray

    @property
    def eta(self) -> np.ndarray:
        """How probable each label is at each point."""
        return self.sets @ self.labels_of

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows, as labels and scores; class numbers where each set is one class."""
        point = rng.choice(len(self.mass), size=rows, p=self.mass)
        drawn = (rng.random(rows)[:, None] > self.sets.cumsum(axis=1)[point][:, :-1]).sum(axis=1)
        truth = self.labels_of[drawn]
        return (truth.argmax(axis=1) if self.is_multiclass else truth), self.scores[point]

    @property
    def is_multiclass(self) -> bool:
        return np.array_equal(self.labels_of, np.eye(len(self.labels_of)))

    def confusion(self, rule: TopK) -> Confusion:
        """Of each label, as shares of all rows."""
        positions, labels = rule.predict(self.scores, as_="positions"), self.scores.shape[1]
        predicted = (positions[:, :, None] == np.arange(labels)).any(axis=1)
        tp, positives = self.mass @ (predicted * self.eta), self.mass @ self.eta
        fp = self.mass @ predicted - tp
        return Confusion(tp, fp, positives - tp, 1 - positives - fp)

    def value(self, rule: TopK) -> float:
        """What the rule is worth."""
        if rule.costs is not None:
            actions = rule.predict(self.scores, as_="positions")[:, 0]
            return -float(self.mass @ (self.eta * rule.costs.T[actions]).sum(axis=1))
        return worth(rule.metric, rule.average, self.confusion(rule))


@cache
def classes(labels: int = 4, points: int = 60) -> Domain:
    """One class a row, of which the last is rare; scores are probabilities that are a little off."""
    rng = np.random.default_rng(labels)
    prior = 0.5 ** np.arange(labels)
    eta = np.array([rng.dirichlet(0.15 + 1.2 * prior) for _ in range(points)])
    off = eta * rng.uniform(0.5, 2.0, size=eta.shape)
    return Domain(rng.dirichlet(np.full(points, 2.0)), off / off.sum(axis=1, keepdims=True), eta, np.eye(labels))


@cache
def tags(labels: int = 6, points: int = 60) -> Domain:
    """Several labels a row, or none, which depend on each other: few sets of labels occur."""
    rng = np.random.default_rng(100 + labels)
    labels_of = (rng.random((12, labels)) < np.linspace(0.6, 0.1, labels)).astype(float)
    labels_of[0] = 0
    sets = rng.dirichlet(np.full(12, 0.3), size=points)
    scores = np.clip(sets @ labels_of + rng.normal(scale=0.05, size=(points, labels)), 0.001, 0.999)
    return Domain(rng.dirichlet(np.full(points, 2.0)), scores, sets, labels_of)


@cache
def tuned(domain: Callable[[], Domain], k: int, metric: str, average: str | None) -> TopK:
    """A rule of 300 rows."""
    return tune_top_k(*domain().draw(np.random.default_rng(0), 300), k=k, metric=metric, average=average)


@cache
def costly() -> TopK:
    """A rule that may reject rows."""
    return tune_top_k(*classes().draw(np.random.default_rng(0), 300), k=1, reject_cost=REJECTING)


def broken(found: TopKCertificate, rule: TopK, domain: Domain) -> tuple[bool, ...]:
    """Whether a limit of the value, or any limit of a label, is on the wrong side."""
    truth, confusion = domain.value(rule), domain.confusion(rule)
    failed = [found.lower > truth + 1e-12, found.upper < truth - 1e-12]
    below = above = False
    assert found.recall is not None
    assert found.precision is not None
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = confusion.tp / (confusion.tp + confusion.fn), confusion.tp / (confusion.tp + confusion.fp)
    for limits, share in zip((found.recall, found.precision), shares, strict=True):
        below |= bool((limits.lower > share + 1e-12).any())
        above |= bool((limits.upper < share - 1e-12).any())
    return (*failed, below, above)


def _certified(
    domain: Callable[[], Domain],
    k: int,
    metric: str,
    average: str | None,
    rows: int,
    rng: np.random.Generator,
) -> tuple[bool, ...] | None:
    rule = costly() if metric == "cost" else tuned(domain, k, metric, average)
    found = _certificate(rule, *domain().draw(rng, rows))
    return None if found is None else broken(found, rule, domain())


def _certificate(rule: TopK, y: np.ndarray, scores: np.ndarray) -> TopKCertificate | None:
    try:
        return certify(rule, y, scores, confidence=1 - ERROR, held_out=True)
    except ValueError as error:
        if "come sorted" in str(error):  # now and then rows in no order look sorted
            return None
        raise


def _on_validation_rows(rng: np.random.Generator) -> bool | None:
    y, scores = classes(8).draw(rng, 60)
    rule = tune_top_k(y, scores, k=1, metric="accuracy", classes=range(8))
    found = _certificate(rule, y, scores)
    return None if found is None else found.lower > classes(8).value(rule)


UNPROMISED = Configuration("top k: a certificate of validation rows", ERROR, _on_validation_rows)
"""What is refused, unless the caller says that these rows are held out: the tests have to notice it."""

MULTICLASS = [
    ("macro", "f1", "macro"),
    ("micro", "f1", "micro"),
    ("weighted", "f1", "weighted"),
    ("macro", "am", "macro"),
    ("", "accuracy", None),
    ("", "balanced_accuracy", None),
    ("", "gmean", None),
    ("", "kappa", None),
    ("", "mcc", None),
    ("mean", "cost", None),
]

CONFIGURATIONS: list[Configuration] = [
    Configuration(
        " ".join(f"top 1 of 4 classes: {name} {metric}, {rows} rows".split()),
        ERROR,
        partial(_certified, classes, 1, metric, average, rows),
        (*SIDES, *LABELS),
    )
    for name, metric, average in MULTICLASS
    for rows in (60, 400)
] + [
    Configuration(
        f"top 2 of 6 labels: {average} {metric}, 200 rows",
        ERROR,
        partial(_certified, tags, 2, metric, average, 200),
        (*SIDES, *LABELS),
    )
    for average in ("macro", "micro", "weighted")
    for metric in ("f1", "precision", "recall")
]
