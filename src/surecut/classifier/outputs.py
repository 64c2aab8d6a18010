"""Targets and scores as scikit-learn's many estimators have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._matrices import is_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESPONSES = ("predict_proba", "decision_function")


def is_multilabel(y: Any, average: str | None) -> bool:
    """Whether a target has a column per label; one column of two values is a label if an average is asked for."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # ragged: no target at all, which is said elsewhere
        return False
    if len(shape) != 2 or shape[1] > 1 or average is None:
        return len(shape) == 2 and shape[1] > 1
    return is_sparse(y) or len(set(np.asarray(y).ravel().tolist())) <= 2


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


def two_class_scores(model: Any, X: Any, response_method: str, pos_label: Any) -> NDArray[Any]:
    """The score of the positive class: `pos_label`, or the second one."""
    known = known_classes(model)
    if len(known) != 2:
        raise ValueError(
            f"the model knows the classes {known.tolist()}, but it must know two: "
            "a split without rows of both classes cannot train"
        )
    return positive_scores(model, X, response_method, positive_class(pos_label, known))


def positive_class(pos_label: Any, classes: NDArray[Any]) -> Any:
    """The class that counts as positive."""
    if pos_label is None:
        return classes[1]
    if pos_label not in classes.tolist():
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {classes.tolist()}")
    return pos_label


def positive_scores(model: Any, X: Any, response_method: str, positive: Any) -> NDArray[Any]:
    """A model's score for the positive one of two classes."""
    method = response(model, response_method)
    scores = np.asarray(getattr(model, method)(X))
    is_second = positive == model.classes_[1]
    if method == "predict_proba":
        return scores[:, 1 if is_second else 0]
    return scores if is_second else -scores


def class_scores(model: Any, X: Any, response_method: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Scores of shape (rows, classes).

    A class that the model does not know, since none of its training rows had it, has probability 0, or else the score
    −inf, with which it is never predicted.
    """
    known = known_classes(model).tolist()
    method = response(model, response_method)
    scores = np.asarray(getattr(model, method)(X))
    if scores.ndim == 1 and len(known) == 2:
        scores = np.column_stack((-scores, scores))
    name = type(model).__name__
    if method == "decision_function" and len(known) > 2 and _is_one_vs_one(model):
        raise ValueError(
            f"{name}.{method} has a score for each pair of classes: set decision_function_shape='ovr', which is the "
            "default, to have one for each class"
        )
    if scores.ndim != 2 or scores.shape[1] != len(known):
        raise ValueError(f"{name}.{method} gives scores of shape {scores.shape}, but it knows {len(known)} classes")
    if known == classes.tolist():
        return scores
    filled = np.full((len(scores), len(classes)), 0.0 if method == "predict_proba" else -np.inf, dtype=scores.dtype)
    position = {label: i for i, label in enumerate(classes.tolist())}
    filled[:, [position[label] for label in known]] = scores
    return filled


def known_classes(model: Any) -> NDArray[Any]:
    """The classes of a fitted model."""
    if not hasattr(model, "classes_"):
        raise ValueError(f"{type(model).__name__} is not a classifier: it has no classes_")
    return np.asarray(model.classes_)


def _is_one_vs_one(model: Any) -> bool:
    """Whether a support vector machine, in a pipeline or a search, compares classes two by two."""
    while True:
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return getattr(model, "decision_function_shape", None) == "ovo"
