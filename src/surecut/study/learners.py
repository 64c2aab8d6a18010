"""What learns the scores: each learner once, for one label or many."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

C = 1.0
"""LIBLINEAR's default."""

ITERATIONS = 10_000
"""Ten times LIBLINEAR's limit, which its SVM seldom meets: the objective is then off by less than a part in 10⁵."""


class Scorer(NamedTuple):
    """A trained linear model: scores of rows, its weights, and whether the solver met its tolerance."""

    score: Callable[[Any], NDArray[np.float64]]
    weights: NDArray[np.float64]
    converged: bool


def logistic_regression(X: Any, y: Any, seed: int, sample_weight: Any = None) -> Scorer:
    """LIBLINEAR's ℓ₂-regularised logistic regression, its intercept regularised too (``-s 0 -B 1``)."""
    from sklearn.linear_model import LogisticRegression

    return _linear(
        LogisticRegression(C=C, solver="liblinear", max_iter=ITERATIONS, random_state=seed), X, y, sample_weight
    )


def support_vector_machine(X: Any, y: Any, seed: int, sample_weight: Any = None) -> Scorer:
    """LIBLINEAR's linear SVM with the hinge loss, its intercept regularised too (``-s 3 -B 1``)."""
    from sklearn.svm import LinearSVC

    return _linear(LinearSVC(C=C, loss="hinge", dual=True, max_iter=ITERATIONS, random_state=seed), X, y, sample_weight)


def _linear(model: Any, X: Any, y: Any, sample_weight: Any) -> Scorer:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y, sample_weight=sample_weight)
    converged = not any(issubclass(warning.category, ConvergenceWarning) for warning in told)
    return Scorer(model.decision_function, np.ravel(model.coef_), converged)


BINARY: dict[str, Callable[..., Scorer]] = {"LR": logistic_regression, "SVM": support_vector_machine}
"""The paper's two learners, by its names."""

SURROGATES = {"LR": "logistic", "SVM": "hinge"}
"""The loss that each of them minimises."""
