"""The column that a classifier is trained on: its classes, and what can be asked for where there are more than two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from surecut._labels import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

OF_ONE_THRESHOLD = {
    "pos_label": "it says which of two classes is positive",
    "constraint": "conditions are on one threshold: tune a class c against the others, fit(X, y == c)",
    "confidence": "fit on some of the rows, and certify on the others: certify(model.top_k_, y, scores)",
    "weights": "it says what weights mean to confidence=: pass it to certify",
    "prior": "it is the share of one class: pass as sample_weight of each row the new share of its class over the old",
}
"""Options of a cut, and why a rule of several classes does not have them."""


def checked_target(y: Any) -> tuple[NDArray[Any], NDArray[Any], float]:
    """A target of two or more classes, these classes, and the share of the second one."""
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    if (found := _two_whole_numbers(y)) is not None:
        return y, *found
    check_classification_targets(y)
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"a cut needs rows of two classes, but y holds one class or none: {classes.tolist()}")
    return np.asarray(y), classes, counts[1] / len(y)


def _two_whole_numbers(y: NDArray[Any]) -> tuple[NDArray[Any], float] | None:
    """The classes and the share of the second one, if they are two whole numbers, as most are: without a sort."""
    if y.dtype.kind not in "biuf" or not len(y):
        return None
    classes = np.array([y.min(), y.max()])
    low, high = (np.count_nonzero(y == one) for one in classes)
    is_known = low + high == len(y) and classes[0] < classes[1] and (classes == np.rint(classes)).all()
    return (classes, high / len(y)) if is_known else None


def require_classes(found: NDArray[Any], known: NDArray[Any], whose: str) -> None:
    """Raise where rows have classes that a model cannot predict."""
    names = known.tolist()
    if lacking := [label for label in found.tolist() if label not in names]:
        raise ValueError(f"{whose} knows the classes {listed(names)}, but y also holds {listed(lacking)}")


def one_hot(y: NDArray[Any], classes: NDArray[Any]) -> sparse.csr_array:
    """A column per class, with 1 where a row has it.

    >>> one_hot(np.array(["b", "a", "b"]), np.array(["b", "a"])).toarray().tolist()
    [[1, 0], [0, 1], [1, 0]]
    """
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes[order], y)]
    entries = (np.ones(len(y), dtype=np.uint8), codes, np.arange(len(y) + 1))
    return sparse.csr_array(entries, shape=(len(y), len(classes)))


def refuse_threshold_options(options: dict[str, Any], classes: int) -> None:
    """Raise where an option is asked for that a rule of several classes does not have, and say what to do."""
    for name, reason in OF_ONE_THRESHOLD.items():
        if options[name] is not None:
            raise ValueError(f"{name}= is for a cut of two classes, but y holds {classes}: {reason}")
    if options["zero_division"] != 0:
        raise ValueError(
            f"zero_division={options['zero_division']!r} is for average='samples' of many labels: a class without rows "
            "and predictions counts 0"
        )
