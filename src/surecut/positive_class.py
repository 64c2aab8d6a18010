"""Which class is positive where nobody has said it, whether that matters, and what if no row is positive."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._labels import LabelRule, warn_of_absence
from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric

CELLS = ((3, 2, 5, 7), (40, 3, 11, 200), (1, 9, 2, 4), (120, 7, 60, 13), (6, 31, 17, 17))
"""TP, FP, FN, TN of confusions that no class survives being swapped in."""


class PositiveClassWarning(UserWarning):
    """A class was taken as the positive one without being named, and the metric depends on which one it is."""


def is_symmetric(metric: Metric) -> bool:
    """Whether a metric has the same value when the classes change places, so that it does not matter which is positive.

    >>> from surecut import get_metric
    >>> [is_symmetric(get_metric(name)) for name in ("accuracy", "mcc", "f1", "utility(fp=-1, fn=-1)")]
    [True, True, False, True]
    """
    try:
        with np.errstate(all="ignore"):
            for tp, fp, fn, tn in CELLS:
                value = float(metric.evaluate(Confusion(tp=tp, fp=fp, fn=fn, tn=tn)))
                swapped = float(metric.evaluate(Confusion(tp=tn, fp=fn, fn=fp, tn=tp)))
                if not np.isclose(value, swapped, rtol=1e-9, atol=1e-12, equal_nan=True):
                    return False
    except Exception:  # a function of one's own, which is not defined here: it is not known to be symmetric
        return False
    return True


def require_positives(absent: str, metrics: Iterable[Metric]) -> None:
    """Raise where a metric needs rows of the positive class, and `absent` says why there are none."""
    for metric in metrics:
        if absent and metric.needs_positives:
            raise ValueError(f"{metric.name} is undefined without rows of the positive class: {absent}")


def settle_absence(absent: str, metrics: Iterable[Metric]) -> None:
    """The same; where no metric needs such rows, warn: the positive label may be misspelt."""
    require_positives(absent, metrics)
    warn_of_absence(absent)


def warn_of_assumed_positive(classes: NDArray[Any], share: float, metrics: Iterable[Metric]) -> None:
    """Say which class is taken as positive, the second one, unless the labels say it or no metric asks.

    The warning stands in the caller's caller, which is the user's own code.
    """
    labels = classes.tolist()
    if LabelRule().is_known(*labels):
        return
    asking = [metric.name for metric in metrics if not is_symmetric(metric)]
    if asking:
        warnings.warn(
            f"{labels[1]!r} is taken as the positive class ({share:.3g} of the rows), because it is classes_[1], and "
            f"{asking[0]} depends on which class is positive: pass pos_label={labels[1]!r} or pos_label={labels[0]!r}",
            PositiveClassWarning,
            stacklevel=3,
        )
