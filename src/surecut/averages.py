"""A metric of many labels: its value for each label, and the macro and micro averages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from surecut._plurals import all_of
from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric

AVERAGES = ("macro", "micro", "samples")

NEARLY_ALL = 0.9
"""A cut that accepts this share of a label's rows accepts nearly all."""

OVERPREDICTED = 10
"""A label is predicted too often where its cut accepts so many rows, or more, for each positive."""

NO_POSITIVES, NO_NEGATIVES, UNDEFINED = "no positive row", "no negative row", "the metric is undefined at every cut"
NOT_SEPARATED = "its scores do not separate its positives"


def undefined_labels(
    metric: Metric, confusion: Confusion, values: NDArray[np.float64] | None = None
) -> list[tuple[int, str]]:
    """Positions of the labels on whose rows a metric has no value, and why."""
    positives, negatives = np.asarray(confusion.positives), np.asarray(confusion.negatives)
    reasons: dict[int, str] = {}
    if values is not None:
        reasons |= dict.fromkeys(np.flatnonzero(np.isnan(values)).tolist(), UNDEFINED)
    if metric.needs_negatives:
        reasons |= dict.fromkeys(np.flatnonzero(~(negatives > 0)).tolist(), NO_NEGATIVES)
    if metric.needs_positives:
        reasons |= dict.fromkeys(np.flatnonzero(~(positives > 0)).tolist(), NO_POSITIVES)
    return sorted(reasons.items())


def values_per_label(metric: Metric, confusion: Confusion) -> NDArray[np.float64]:
    """A metric's value for each label; where a class is missing, 0 or NaN, as `MultilabelCut.per_label` says.

    0/0 at a cut that predicts nothing counts 0, as scikit-learn has it.
    """
    with np.errstate(invalid="ignore", divide="ignore"):  # where a class is missing
        values = np.array(metric.evaluate(confusion), dtype=float)
    undefined = [i for i, _ in undefined_labels(metric, confusion)]
    needs_both = metric.needs_positives and metric.needs_negatives
    if metric.extremes_at_corners:  # a function of one's own says NaN where it means NaN
        values[np.isnan(values)] = 0.0
    values[undefined] = np.nan if needs_both else 0.0
    return values


def macro_value(metric: Metric, per_label: NDArray[np.float64]) -> float:
    """The mean over the labels whose metric is defined, or counts 0."""
    known = per_label[~np.isnan(per_label)]
    if not len(known):
        raise ValueError(
            f"{metric.name} is undefined for {all_of(len(per_label), 'label')}: none has rows of both classes"
        )
    return float(known.mean())


def averaged_value(metric: Metric, average: str, confusion: Confusion) -> float:
    """The macro or micro value of the labels' confusions; 0 where the micro one is 0/0, as in scikit-learn."""
    if average == "macro":
        return macro_value(metric, values_per_label(metric, confusion))
    value = float(metric.evaluate(Confusion(*(getattr(confusion, cell).sum() for cell in ("tp", "fp", "fn", "tn")))))
    return 0.0 if math.isnan(value) else value
