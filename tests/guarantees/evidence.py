"""Which rows may certify a cut, and what their weights mean: promises kept from end to end, and few refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupShuffleSplit

from guarantees.configuration import Configuration
from surecut import Confusion, PlugInClassifier, ScoreTally, certify, tune_threshold
from surecut.metrics import get_metric
from surecut.overlap import Overlap, overlap

CONFIDENCE = 0.95

FALSE_REFUSALS = 0.005
"""Other rows may be taken for seen ones, or be said to be indistinguishable from them, in so many draws."""


def scored_rows(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a model whose scores are the probability of a positive."""
    score = 1 / (1 + np.exp(1.5 - 2 * rng.normal(size=rows)))
    return rng.random(rows) < score, score


KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "continuous": lambda score: score,
    "float32": lambda score: score.astype(np.float32),
    "three digits": lambda score: np.round(score, 3),
    "six digits": lambda score: np.round(score, 6),
    "60 % zeros": lambda score: np.where(score < np.quantile(score, 0.6), 0.0, score),
}


def is_refused(
    rng: np.random.Generator, kind: Callable[[np.ndarray], np.ndarray], tuning: int, certifying: int
) -> bool:
    """Whether rows that were drawn anew are not taken for other rows."""
    y, score = scored_rows(rng, tuning)
    cut = tune_threshold(y, kind(score))
    y, score = scored_rows(rng, certifying)
    try:
        certify(cut, y, kind(score))
    except ValueError as error:
        if "tuned the cut" in str(error) or "cannot be determined" in str(error):
            return True
        raise
    return False


def is_recognised_by_mistake(rng: np.random.Generator, rows: int, levels: int) -> bool:
    """Whether other rows are taken for seen ones where scores have few levels, as after isotonic regression."""
    scores, shares = np.sort(rng.random(levels)), rng.dirichlet(np.full(levels, 0.3))

    def drawn() -> ScoreTally:
        score = rng.choice(scores, size=rows, p=shares)
        return ScoreTally.from_scores(rng.random(rows) < score, score)

    return overlap(drawn().sample.seen[0], {0: drawn()}) is Overlap.SHARED


def drawn_features(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, of which eight say nothing, so that a model fits its training rows better than others."""
    X = rng.normal(size=(rows, 10))
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=rows) > 0.8).astype(int)


def classifier_fails(rng: np.random.Generator, cv: float) -> bool:
    """Whether a classifier that trains, tunes and certifies has promised more than it keeps."""
    X, y = drawn_features(rng, 600)
    seed = int(rng.integers(2**31))
    model = PlugInClassifier(LogisticRegression(), cv=cv, confidence=CONFIDENCE, random_state=seed).fit(X, y)
    return model.certificate_.lower > _value(model, *drawn_features(rng, 20_000))


def grouped_features(rng: np.random.Generator, groups: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a group have an effect in common, on their features and on their labels."""
    group = np.repeat(np.arange(groups), size)
    effect = rng.normal(size=groups)[group]
    X = np.column_stack((0.3 * rng.normal(size=len(group)) + effect, rng.normal(size=len(group))))
    return X, (rng.normal(size=groups)[group] + effect > 0.3).astype(int), group


def grouped_classifier_fails(rng: np.random.Generator) -> bool | None:
    """The same with groups that a splitter is given by metadata routing."""
    X, y, group = grouped_features(rng, 150, 8)
    seed = int(rng.integers(2**31))
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.5, random_state=seed)
    with sklearn.config_context(enable_metadata_routing=True):
        model = PlugInClassifier(LogisticRegression(), cv=splitter, confidence=CONFIDENCE, random_state=seed)
        try:
            model.fit(X, y, groups=group)
        except ValueError as error:  # the few groups to tune on are all negative, or look sorted
            if not any(reason in str(error) for reason in ("undefined without rows of the positive", "come sorted")):
                raise
            return None
    new_X, new_y, _ = grouped_features(rng, 5000, 8)
    return model.certificate_.lower > _value(model, new_X, new_y)


def _value(model: PlugInClassifier, X: np.ndarray, y: np.ndarray) -> float:
    return float(model.cut_.metric.evaluate(Confusion.from_predictions(y == 1, model.predict(X) == 1)))


def counts_fail(rng: np.random.Generator, method: str) -> bool:
    """Whether rows that are counted, score by score, are promised more of than they keep."""
    levels = np.linspace(0, 1, 21)
    chance = levels**2
    shares = np.column_stack((1 - chance, chance)).ravel() / len(levels)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        times = rng.multinomial(rows, shares)
        return np.tile([0, 1], len(levels)), np.repeat(levels, 2), times

    y, score, times = drawn(100)
    cut = tune_threshold(y, score, metric="f1", sample_weight=times)
    accepted = levels >= cut.threshold
    truth = float(
        get_metric("f1").value(
            fp=(1 - chance)[accepted].sum() / len(levels), fn=chance[~accepted].sum() / len(levels), prior=chance.mean()
        )
    )
    y, score, times = drawn(150)
    certificate = certify(
        cut, y, score, sample_weight=times, weights="counts", method=method, confidence=CONFIDENCE, held_out=True
    )
    return certificate.lower > truth


def constraint_from_counts_fails(rng: np.random.Generator) -> bool | None:
    """Whether a constraint that was promised from counts is not met."""
    levels = np.linspace(0, 1, 21)
    shares = np.column_stack((1 - levels, levels)).ravel() / len(levels)
    times = rng.multinomial(800, shares)
    try:
        cut = tune_threshold(
            np.tile([0, 1], len(levels)),
            np.repeat(levels, 2),
            metric="recall",
            constraint="precision>=0.7",
            confidence=CONFIDENCE,
            sample_weight=times,
            weights="counts",
        )
    except ValueError:  # no cut can be promised
        return None
    return float(levels[levels >= cut.threshold].mean()) < 0.7


def broken_promise(rng: np.random.Generator, change: Callable[[np.ndarray, np.ndarray], tuple]) -> bool:
    """Whether validation rows that were changed promise too much; rows that are recognised promise nothing."""
    y, score = scored_rows(rng, 300)
    cut = tune_threshold(y, score)
    try:
        found = certify(cut, *change(y, score), confidence=CONFIDENCE)
    except ValueError as error:
        if "tuned the cut" not in str(error):
            raise
        return False
    truth = ScoreTally.from_scores(*scored_rows(rng, 100_000))
    return found.lower > float(cut.metric.evaluate(truth.confusion[truth.candidates.at(cut.threshold)]))


CHANGES: dict[str, Callable[[np.ndarray, np.ndarray], tuple]] = {
    "float32": lambda y, score: (y, score.astype(np.float32)),
    "three digits": lambda y, score: (y, np.round(score, 3)),
    "without one row": lambda y, score: (y[1:], score[1:]),
    "a tenth of them": lambda y, score: (y[:30], score[:30]),
}

SIZES = ((300, 300), (300, 2000), (2000, 300))

CONFIGURATIONS: list[Configuration] = [
    *(
        Configuration(
            f"other rows are not refused: {name}, {tuning} and {certifying} rows",
            FALSE_REFUSALS,
            partial(is_refused, kind=kind, tuning=tuning, certifying=certifying),
        )
        for name, kind in KINDS.items()
        for tuning, certifying in SIZES
    ),
    Configuration(
        "other rows are not taken for seen ones: 30 levels of unequal size, 3000 and 3000 rows",
        FALSE_REFUSALS,
        partial(is_recognised_by_mistake, rows=3000, levels=30),
    ),
    *(
        Configuration(f"validation rows are recognised: {name}", 1 - CONFIDENCE, partial(broken_promise, change=one))
        for name, one in CHANGES.items()
    ),
    Configuration(
        "PlugInClassifier(confidence=0.95, cv=1/2) on 600 rows", 1 - CONFIDENCE, partial(classifier_fails, cv=1 / 2)
    ),
    Configuration(
        "PlugInClassifier(confidence=0.95, cv=GroupShuffleSplit) on 150 groups",
        1 - CONFIDENCE,
        grouped_classifier_fails,
    ),
    Configuration("weights='counts' by holdout", 1 - CONFIDENCE, partial(counts_fail, method="holdout")),
    Configuration("weights='counts' by uniform", 1 - CONFIDENCE, partial(counts_fail, method="uniform")),
    Configuration("a constraint with confidence from weights='counts'", 1 - CONFIDENCE, constraint_from_counts_fails),
]
