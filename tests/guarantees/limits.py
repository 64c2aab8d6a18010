"""Limits of certificates, at parameters that are the worst for them, or that once broke them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy import stats

from guarantees.configuration import Configuration
from surecut import InfeasibleError, ScoreTally, certify, tune_threshold, tune_thresholds
from surecut.certificates.bands import band_limits
from surecut.certificates.brackets import bracket_limits
from surecut.certificates.drift import check_drift
from surecut.certificates.limits import value_limits
from surecut.confusion import Confusion
from surecut.constraints import parse_constraints
from surecut.metrics import (
    AM,
    Accuracy,
    CohenKappa,
    FBeta,
    GilbertSkill,
    Metric,
    Tversky,
    Utility,
)

ERROR = 0.05
SIDES = ("lower", "upper")
Fails = Callable[[np.random.Generator], tuple[bool, bool] | None]


def _value(metric: Metric, shares: np.ndarray) -> float:
    return float(metric.evaluate(Confusion(*shares)))


# Hold-out limits: shares of (tp, fp, fn, tn). The search over all shares (test_limits_hold) finds the most failures
# where one kind of rows is missing.
SHARES = {
    "balanced": (0.3, 0.15, 0.15, 0.4),
    "no false negatives": (0.34, 0.1799, 0.0001, 0.48),
}
METRICS: dict[str, Metric] = {
    "f2": FBeta(2),
    "tversky(0.3, 0.7)": Tversky(0.3, 0.7),
    "utility(fp=-4, fn=-3)": Utility(fp=-4, fn=-3),
    "utility(fp=-1, fn=-50)": Utility(fp=-1, fn=-50),
    "am": AM(),
    "kappa": CohenKappa(),
    "gilbert": GilbertSkill(),
    "f1": FBeta(1),
    "accuracy": Accuracy(),
}


@lru_cache(maxsize=100_000)
def _limits(metric: Metric, cells: tuple[int, int, int, int]) -> tuple[float, float]:
    return value_limits(metric, np.array(cells, dtype=float), ERROR)[:2]


def _holdout(metric: Metric, shares: np.ndarray, rows: int, rng: np.random.Generator) -> tuple[bool, bool] | None:
    cells = rng.multinomial(rows, shares).tolist()
    try:
        metric.check_classes(cells[0] + cells[2], cells[1] + cells[3])
    except ValueError:
        return None
    lower, upper = _limits(metric, tuple(cells))
    value = _value(metric, shares)
    return lower > value, upper < value


def _at_worst(metric: Metric, name: str, rows: int) -> Fails:
    return partial(_holdout, metric, np.array(SHARES[name]) / sum(SHARES[name]), rows)


HOLDOUT = [
    Configuration(f"holdout limits of {of}, {rows} rows, {name}", ERROR, _at_worst(metric, name, rows), SIDES)
    for of, metric in METRICS.items()
    for rows in (50, 3_000)
    for name in SHARES
]

# Rows with scores: positives are normal around a mean, negatives around 0.
MEAN = 1.5


def _rows(rng: np.random.Generator, rows: int, prior: float, mean: float = MEAN) -> tuple[np.ndarray, np.ndarray]:
    y = rng.random(rows) < prior
    return y, rng.normal(size=rows) + mean * y


def _truth(metric: Metric, threshold: float, prior: float, mean: float = MEAN) -> float:
    fpr, fnr = stats.norm.sf(threshold), stats.norm.cdf(threshold - mean)
    return float(metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior))


def _uniform(metric: Metric, rows: int, prior: float, rng: np.random.Generator) -> tuple[bool, bool] | None:
    y, score = _rows(rng, rows, prior)
    if not 0 < y.sum() < rows:
        return None
    tally = ScoreTally.from_scores(y, score)
    cut = tally.best_cut(metric)
    lower, upper = bracket_limits(metric, tally, cut.threshold, ERROR)
    truth = _truth(metric, cut.threshold, prior)
    return lower > truth, upper < truth


UNIFORM = [
    Configuration(
        f"uniform limits of {name} on validation rows, {rows} rows", ERROR, partial(_uniform, metric, rows, 0.3), SIDES
    )
    for name, metric in {
        "utility(fp=-4, fn=-3)": Utility(fp=-4, fn=-3),
        "utility(tp=7, tn=6)": Utility(tp=7, tn=6),
        "f1": FBeta(1),
        "am": AM(),
    }.items()
    for rows in (50, 1_000)
]


def _uniform_fixed(
    metric: Metric, shares: tuple[float, float], prior: float, rng: np.random.Generator
) -> tuple[bool, bool]:
    """At a threshold that is fixed, where nothing but the prior and two shares vary."""
    rows = 400
    positives = rng.binomial(rows, prior)
    fp, fn = rng.binomial(rows - positives, shares[0]), rng.binomial(positives, shares[1])
    counts = np.array([[fp, positives - fn], [rows - positives - fp, fn]])
    tally = ScoreTally(np.array([1, 0], dtype=np.uint64), counts, counts, counts, np.dtype(np.float64))
    limits = band_limits(metric, tally.confusion[1], None, ERROR)
    truth = float(metric.value(fp=shares[0] * (1 - prior), fn=shares[1] * prior, prior=prior))
    return limits[0] > truth, limits[1] < truth


UNIFORM += [
    Configuration(f"uniform limits of {name}, a fixed cut", ERROR, partial(_uniform_fixed, metric, shares, 0.5), SIDES)
    for name, metric, shares in (
        ("utility(fp=-4, fn=-3)", Utility(fp=-4, fn=-3), (0.0, 1.0)),
        ("utility(tp=7, tn=6)", Utility(tp=7, tn=6), (0.0, 0.0)),
    )
]


# The bootstrap.
def _bootstrap(
    metric: Metric, rows: int, prior: float, mean: float, digits: int | None, rng: np.random.Generator
) -> tuple[bool, bool] | None:
    y, score = _rows(rng, rows, prior, mean)
    if digits is not None:
        score = np.round(score * digits) / digits
    cut = tune_threshold(y, score, metric=metric)
    try:
        found = certify(cut, y, score, method="bootstrap", resamples=300, random_state=int(rng.integers(2**31)))
    except ValueError:
        return None
    # rounded scores are at least t where the others are at least t − half a step
    threshold = cut.threshold if digits is None else np.ceil(cut.threshold * digits - 1e-9) / digits - 0.5 / digits
    truth = _truth(metric, threshold, prior, mean)
    return found.lower > truth, found.upper < truth


BOOTSTRAP = [
    Configuration(
        f"bootstrap limits of {metric.name} on validation rows, {rows} rows, {kind}",
        ERROR,
        partial(_bootstrap, metric, rows, 0.3, mean, digits),
        SIDES,
    )
    for metric in (FBeta(1), AM())
    for rows, kind, mean, digits in (
        (1_000, "continuous scores", 1.5, None),
        (1_000, "few distinct scores", 1.5, 1),
        (1_000, "a value near 1", 7.0, None),
    )
]


def _macro(labels: int, positives: int, prior: float, rng: np.random.Generator) -> tuple[bool, bool] | None:
    rows = int(positives / prior)
    truth = rng.random((rows, labels)) < prior
    score = rng.normal(size=(rows, labels)) + MEAN * truth
    cut = tune_thresholds(truth.astype(int), score, metric="am", average="macro")
    try:
        found = certify(
            cut, truth.astype(int), score, method="bootstrap", resamples=100, random_state=int(rng.integers(2**31))
        )
    except ValueError:
        return None
    value = np.mean([_truth(AM(), threshold, prior) for threshold in cut.thresholds])
    return bool(found.lower > value), bool(found.upper < value)


MACRO = [
    Configuration(
        f"bootstrap limits of macro am on validation rows, {labels} labels, {positives} positives each, 100 resamples",
        ERROR,
        partial(_macro, labels, positives, 0.2),
        SIDES,
    )
    for labels, positives in ((40, 14), (20, 145))
]


# Checks: twenty looks at rows in which nothing has changed, all beside the same reference rows.
LOOKS = 20


def alarms(rng: np.random.Generator, looks: int, planned: int) -> bool:
    """Whether any of so many looks alarms, where nothing changes and so many were planned."""
    cut = tune_threshold(*_rows(rng, 300, 0.3))
    reference = ScoreTally.from_scores(*_rows(rng, 500, 0.3))
    return any(
        check_drift(cut, tally=ScoreTally.from_scores(*_rows(rng, 150, 0.3)), reference=reference, looks=planned).moved
        for _ in range(looks)
    )


CHECKS = [
    Configuration("check, one look", ERROR, lambda rng: alarms(rng, 1, 1)),
    Configuration(f"check, {LOOKS} looks that were planned", ERROR, lambda rng: alarms(rng, LOOKS, LOOKS)),
]


# Groups of unequal size, each of which is as good as its own share says.
def _groups(unequal: bool, rng: np.random.Generator) -> tuple[bool, bool] | None:
    groups = 120
    size = np.where(rng.random(groups) < 0.05, 60, 3) if unequal else np.full(groups, 5)
    largest = 60 if unequal else 5
    group = np.repeat(np.arange(groups), size)
    quality = np.repeat(rng.beta(2, 1, size=groups), size)
    y = rng.random(len(group)) < 0.5
    right = rng.random(len(group)) < quality
    score = np.where(right == y, 0.9, 0.1)
    cut = tune_threshold([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], metric="accuracy")
    if size.max() < largest:
        return None  # the assumption does not hold for this draw
    try:
        found = certify(cut, y, score, groups=group, held_out=True)
    except ValueError as error:  # now and then groups in no order look sorted
        if "come sorted" not in str(error):
            raise
        return None
    return found.lower > 2 / 3, found.upper < 2 / 3


GROUPS = [
    Configuration(
        f"holdout limits of accuracy, groups of {kind} size", ERROR, partial(_groups, kind == "unequal"), SIDES
    )
    for kind in ("equal", "unequal")
]


# Constraints with confidence: the cut that is chosen breaks the constraint on new rows.
def _constraint(text: str, metric: str, rng: np.random.Generator) -> bool | None:
    prior = 0.3
    y, score = _rows(rng, 400, prior)
    try:
        cut = tune_threshold(y, score, metric=metric, constraint=text.split(" and "), confidence=1 - ERROR)
    except InfeasibleError:
        return None
    return _breaks(text, cut.threshold, prior)


def _breaks(texts: str, threshold: float, prior: float) -> bool:
    """Whether a cut breaks one of some constraints in the population."""
    fpr, recall = stats.norm.sf(threshold), stats.norm.sf(threshold - MEAN)
    shares = Confusion(prior * recall, (1 - prior) * fpr, prior * (1 - recall), (1 - prior) * (1 - fpr))
    return not all(one.is_met(shares) for one in parse_constraints(texts.split(" and ")))


CONSTRAINTS = [
    Configuration(f"{text} with confidence, best {metric}", ERROR, partial(_constraint, text, metric))
    for text, metric in (
        ("precision>=0.7", "recall"),
        ("recall>=0.7", "precision"),
        ("fpr<=0.1", "recall"),
        ("predicted_positive_rate<=0.3", "recall"),
        ("accuracy>=0.78", "accuracy"),
        ("f1>=0.6", "recall"),
        ("precision>=0.45 and recall>=0.5", "recall"),
        ("fpr<=0.3 and recall>=0.5", "recall"),
    )
]


def _label_constraints(text: str, metric: str, rng: np.random.Generator) -> bool | None:
    """Four labels, whose rows go together; failures are those of any label."""
    prior, rows, labels = 0.3, 400, 4
    y = rng.random((rows, 1)) < prior
    y = np.where(rng.random((rows, labels)) < 0.5, y, rng.random((rows, labels)) < prior)
    score = (rng.normal(size=(rows, 1)) + rng.normal(size=(rows, labels))) / np.sqrt(2) + MEAN * y
    try:
        cut = tune_thresholds(y.astype(int), score, metric=metric, constraint=text, confidence=1 - ERROR)
    except InfeasibleError:
        return None
    return any(_breaks(text, float(threshold), prior) for threshold in cut.thresholds)


CONSTRAINTS += [
    Configuration(f"{text} of four labels with confidence", ERROR, partial(_label_constraints, text, metric))
    for text, metric in (("precision>=0.6", "recall"), ("fpr<=0.15", "recall"))
]


# A limit of the metric with confidence, and no constraint: the value is below it on new rows.
def _limited(metric: Metric, rows: int, prior: float, rng: np.random.Generator) -> bool | None:
    y, score = _rows(rng, rows, prior)
    if not 0 < y.sum() < rows:
        return None
    cut = tune_threshold(y, score, metric=metric, confidence=1 - ERROR)
    assert cut.lower_limit is not None
    return bool(cut.lower_limit > _truth(metric, cut.threshold, prior))


LIMITED = [
    Configuration(f"limit of {name} with confidence, {rows} rows", ERROR, partial(_limited, metric, rows, prior))
    for name, metric in {"f1": FBeta(1), "f2": FBeta(2), "am": AM(), "kappa": CohenKappa()}.items()
    for rows, prior in ((60, 0.3), (500, 0.1), (2_000, 0.3))
]

CONFIGURATIONS: list[Configuration] = [
    *HOLDOUT,
    *UNIFORM,
    *BOOTSTRAP,
    *MACRO,
    *CHECKS,
    *GROUPS,
    *CONSTRAINTS,
    *LIMITED,
]
