"""The samples average: the metric of each row over its labels, averaged over rows, at one threshold for all labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._kernels import scores_of_keys
from surecut.candidates import ROUNDING, least_tie, place
from surecut.multilabel.smoothing import Smoothed
from surecut.multilabel.sources import label_source, no_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric
    from surecut.multilabel.search import LabelEntries
    from surecut.search import Objective


def best_samples_cut(
    truth: Any, scores: Any, weights: NDArray[np.float64] | None, objective: Objective, zero_division: float
) -> tuple[float, tuple[float, float], float]:
    """Threshold, interval and value of the best cut: an exact sweep over all scores.

    Lowering the threshold past a score changes the value of the rows that have it; the changes, added up from the top,
    are the value at every threshold. A row's value where the metric is undefined is `zero_division`. Without labels
    (`truth` is None) the scores are probabilities, and a row's value is that of its expected confusion.
    """
    expected = truth is None
    if expected:
        truth = no_labels(scores)
    if weights is not None and not weights.all():
        present = np.flatnonzero(weights)
        truth, scores, weights = truth[present], scores[present], weights[present]
    rows = label_source(truth.T, scores.T, None)  # a row is to its labels what a label is to its rows
    weight = np.full(rows.totals.shape[0], 1.0) if weights is None else weights
    source = Smoothed.by_probability(rows, objective) if expected else rows
    parts = [_changes(source.entries(block), objective.metric, zero_division, weight[block]) for block in rows.blocks()]
    start = sum((part[2] for part in parts), np.longdouble(0))
    keys = np.concatenate([part[0] for part in parts])
    order = np.argsort(keys, kind="stable")[::-1]
    keys, change = keys[order], np.concatenate([part[1] for part in parts])[order]

    values = np.concatenate(([start], start + np.cumsum(change, dtype=np.longdouble))) / weight.sum()
    ends = np.concatenate(([True], keys[1:] != keys[:-1], [True]))[: len(keys) + 1]
    values = values.astype(float)
    best = float(values[ends].max())
    least = least_tie(best, ROUNDING * max(1.0, abs(zero_division)))
    chosen = int((ends & (values >= least)).argmax())
    ordered = scores_of_keys(keys)
    upper = float(ordered[chosen - 1]) if chosen else np.inf
    lower = float(ordered[chosen]) if chosen < len(keys) else -np.inf
    return place(lower, upper, scores.dtype), (lower, upper), float(values[chosen])


def _changes(
    entries: LabelEntries, metric: Metric, zero_division: float, weight: NDArray[np.float64]
) -> tuple[NDArray[np.uint64], NDArray[np.float64], np.longdouble]:
    """Each score, what accepting it adds to the weighted sum of the rows' values, and that sum with none accepted."""
    values, nothing = entries.every_value(metric)
    if np.isinf(values).any() or np.isinf(nothing).any():
        raise ValueError(f"{metric.name} is infinite for some rows, and has no mean over rows: use macro or micro")
    values = np.where(np.isnan(values), zero_division, values)
    nothing = np.where(np.isnan(nothing), zero_division, nothing)
    last = np.concatenate((entries.keys[1:] != entries.keys[:-1], [True])) if len(entries.keys) else np.zeros(0, bool)
    last[entries.starts[1:][entries.starts[1:] > 0] - 1] = True
    row = np.repeat(np.arange(len(nothing)), np.diff(entries.starts))[last]
    at_cut = values[last]
    before = np.concatenate(([0.0], at_cut[:-1]))
    first = np.concatenate(([True], row[1:] != row[:-1])) if len(row) else np.zeros(0, bool)
    before[first] = nothing[row[first]]
    total = (nothing.astype(np.longdouble) * weight).sum()
    return entries.keys[last], (at_cut - before) * weight[row], total
