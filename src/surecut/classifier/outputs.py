"""Multilabel targets and scores as scikit-learn's many estimators have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._matrices import is_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESPONSES = ("predict_proba", "decision_function")


def is_multilabel(y: Any, average: str | None) -> bool:
    """Whether a target has a column per label; one column alone is a label if an average is asked for."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # ragged: no target at all, which is said elsewhere
        return False
    return len(shape) == 2 and (shape[1] > 1 or average is not None)


def checked_indicators(y: Any) -> Any:
    """A multilabel target of 0 and 1 as an array or a CSR array; frames lose their names."""
    from surecut._matrices import label_matrix

    matrix, _ = label_matrix(y, name="y")
    return matrix.tocsr() if is_sparse(matrix) else np.asarray(matrix).astype(np.int64, copy=False)


def label_names(y: Any) -> tuple[Any, ...]:
    """A frame's columns, or positions."""
    if hasattr(y, "columns"):
        return tuple(y.columns)
    return tuple(range((y if hasattr(y, "shape") else np.asarray(y)).shape[1]))


def takes_many_labels(estimator: Any) -> bool:
    """Whether an estimator says that it takes targets with a column per label."""
    from sklearn.utils import get_tags

    tags = get_tags(estimator)
    return bool(tags.target_tags.multi_output or (tags.classifier_tags and tags.classifier_tags.multi_label))


def response(model: Any, response_method: str) -> str:
    """The method of a model that gives its scores."""
    if response_method not in ("auto", *RESPONSES):
        raise ValueError(f"response_method must be one of auto, {', '.join(RESPONSES)}, got {response_method!r}")
    asked = RESPONSES if response_method == "auto" else (response_method,)
    method = next((method for method in asked if hasattr(model, method)), None)
    if method is None:
        raise AttributeError(f"{type(model).__name__} has no {' or '.join(asked)}: nothing can be cut")
    return method


def label_scores(model: Any, X: Any, response_method: str, labels: int) -> NDArray[Any]:
    """Scores of shape (rows, labels), out of a matrix or of a list with one matrix per label."""
    method = response(model, response_method)
    scores = getattr(model, method)(X)
    if isinstance(scores, list):
        classes = getattr(model, "classes_", [None] * len(scores))
        scores = np.column_stack([_of_one(one, known) for one, known in zip(scores, classes, strict=True)])
    scores = np.asarray(scores)
    if labels == 1 and method == "predict_proba":  # one label is two classes to most models
        scores = _of_one(scores, getattr(model, "classes_", None)) if scores.shape[1:] != (1,) else scores
    if scores.ndim == 1:
        scores = scores[:, None]
    if scores.shape[1] != labels:
        raise ValueError(
            f"{type(model).__name__}.{method} gives scores of shape {scores.shape}, but there are {labels} labels"
        )
    return scores


def _of_one(scores: Any, classes: Any) -> NDArray[Any]:
    """The column of the class 1; where a label had one class only, the model is sure of it."""
    scores = np.asarray(scores)
    if scores.ndim == 1:
        return np.asarray(scores)
    if scores.shape[1] == 2:
        return np.asarray(scores[:, 1])
    is_one = classes is not None and len(classes) == 1 and classes[0] == 1
    return np.full(len(scores), 1.0 if is_one else 0.0)
