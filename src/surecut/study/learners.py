"""What learns the scores: each learner once, for one label or many."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

C = 1.0
"""LIBLINEAR's default."""

ITERATIONS = 10_000
"""Ten times LIBLINEAR's limit, within which its SVM seldom converges; many labels are left with that limit."""


class Scorer(NamedTuple):
    """A trained linear model: scores of rows, its weights, and whether the solver met its tolerance."""

    score: Callable[[Any], NDArray[np.float64]]
    weights: NDArray[np.float64]
    converged: bool


def logistic_regression(X: Any, y: Any, seed: int, sample_weight: Any = None, iterations: int = ITERATIONS) -> Scorer:
    """LIBLINEAR's ℓ₂-regularised logistic regression, its intercept regularised too (``-s 0 -B 1``)."""
    from sklearn.linear_model import LogisticRegression

    return _linear(
        LogisticRegression(C=C, solver="liblinear", max_iter=iterations, random_state=seed), X, y, sample_weight
    )


def support_vector_machine(
    X: Any, y: Any, seed: int, sample_weight: Any = None, iterations: int = ITERATIONS
) -> Scorer:
    """LIBLINEAR's linear SVM with the hinge loss, its intercept regularised too (``-s 3 -B 1``)."""
    from sklearn.svm import LinearSVC

    return _linear(LinearSVC(C=C, loss="hinge", dual=True, max_iter=iterations, random_state=seed), X, y, sample_weight)


def _linear(model: Any, X: Any, y: Any, sample_weight: Any) -> Scorer:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y, sample_weight=sample_weight)
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in told)
    return Scorer(model.decision_function, np.ravel(model.coef_), converged)


def class_probabilities(X: Any, y: Any) -> Callable[[Any], NDArray[np.float64]]:
    """Probabilities of several classes, of one model that minimises their log loss, ℓ₂-regularised."""
    from sklearn.linear_model import LogisticRegression

    score: Callable[[Any], NDArray[np.float64]] = (
        LogisticRegression(C=C, max_iter=LABEL_ITERATIONS).fit(X, y).predict_proba
    )
    return score


BINARY: dict[str, Callable[..., Scorer]] = {"LR": logistic_regression, "SVM": support_vector_machine}
"""The paper's two learners, by its names."""

SURROGATES = {"LR": "logistic", "SVM": "hinge"}
"""The loss that each of them minimises."""

LABEL_ITERATIONS = 1_000
"""LIBLINEAR's own limit."""


def linear_labels(learner: str, X: Any, Y: NDArray[np.int8], seed: int) -> Callable[[Any], NDArray[np.float64]]:
    """One of the paper's learners for every label."""
    train, constant = BINARY[learner], {"LR": log_odds, "SVM": majority}[learner]

    def fitted(y: NDArray[np.int8]) -> Callable[[Any], NDArray[np.float64]]:
        return train(X, y, seed, iterations=LABEL_ITERATIONS).score

    return _for_every_label(fitted, constant, Y)


def free_intercept(X: Any, Y: NDArray[np.int8], _: int) -> Callable[[Any], NDArray[np.float64]]:
    """Logistic regression whose intercept is not regularised, all labels at once."""
    from surecut import LinearSurrogate

    several = Y.min(axis=0) < Y.max(axis=0)
    constants = np.array([log_odds(y) for y in Y.T])
    model = LinearSurrogate("logistic", C=C).fit(X, Y[:, several] if several.sum() > 1 else Y[:, several].ravel())

    def score(X: Any) -> NDArray[np.float64]:
        scores = np.tile(constants, (X.shape[0], 1))
        scores[:, several] = np.reshape(model.decision_function(X), (X.shape[0], -1))
        return scores

    return score


def boosted_trees(X: Any, Y: NDArray[np.int8], seed: int) -> Callable[[Any], NDArray[np.float64]]:
    """Gradient-boosted trees on the logistic loss for every label: a stronger first step."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    def fitted(y: NDArray[np.int8]) -> Callable[[Any], NDArray[np.float64]]:
        settings = {"max_iter": 50, "max_leaf_nodes": 8, "early_stopping": False, "random_state": seed}
        score: Callable[[Any], NDArray[np.float64]] = (
            HistGradientBoostingClassifier(**settings).fit(X, y).decision_function
        )
        return score

    return _for_every_label(fitted, log_odds, Y)


def log_odds(y: NDArray[np.int8]) -> float:
    """The constant that is best for the logistic loss, half a row of each class added."""
    positives = int(y.sum())
    return float(np.log((positives + 0.5) / (len(y) - positives + 0.5)))


def majority(y: NDArray[np.int8]) -> float:
    """The constant that is best for the hinge loss."""
    return float(np.sign(2 * y.mean() - 1))


def _for_every_label(
    fitted: Callable[..., Callable[[Any], NDArray[np.float64]]], constant: Callable[..., float], Y: NDArray[np.int8]
) -> Callable[[Any], NDArray[np.float64]]:
    """A column of scores per label; where a label has one class only, which no learner takes, the best constant."""
    several = (Y.min(axis=0) < Y.max(axis=0)).tolist()
    columns = [fitted(y) if both else constant(y) for y, both in zip(Y.T, several, strict=True)]

    def score(X: Any) -> NDArray[np.float64]:
        return np.column_stack([column(X) if callable(column) else np.full(X.shape[0], column) for column in columns])

    return score


MULTILABEL: dict[str, Callable[..., Callable[[Any], NDArray[np.float64]]]] = {
    "LR": partial(linear_labels, "LR"),
    "SVM": partial(linear_labels, "SVM"),
    "LR, free intercept": free_intercept,
    "trees": boosted_trees,
}
"""The paper's two learners and two others, for many labels."""
