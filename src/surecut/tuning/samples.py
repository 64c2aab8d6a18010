"""The samples average: the metric of each row over its labels, averaged over rows, at one threshold for all labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.core.keys import scores_of_keys
from surecut.core.rules import first_best, place
from surecut.metrics import NOISE
from surecut.sources.matrices import label_source, no_labels
from surecut.tuning.smoothing import Smoothed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries
    from surecut.core.rules import Objective


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
    parts = [_changes(source.entries(block), objective, zero_division, weight[block]) for block in rows.blocks()]
    start = sum((part[2] for part in parts), np.longdouble(0))
    keys = np.concatenate([part[0] for part in parts])
    order = np.argsort(keys, kind="stable")[::-1]
    keys, change = keys[order], np.concatenate([part[1] for part in parts])[order]

    values = np.concatenate(([start], start + np.cumsum(change, dtype=np.longdouble))) / weight.sum()
    is_cut = np.concatenate(([True], keys[1:] != keys[:-1], [True]))[: len(keys) + 1]
    values = np.where(is_cut, values.astype(float), -np.inf)
    chosen = int(first_best(values, NOISE * max(1.0, abs(zero_division))))
    ordered = scores_of_keys(keys)
    upper = float(ordered[chosen - 1]) if chosen else np.inf
    lower = float(ordered[chosen]) if chosen < len(keys) else -np.inf
    return place(lower, upper, scores.dtype), (lower, upper), float(values[chosen])


def _changes(
    entries: Entries, objective: Objective, zero_division: float, weight: NDArray[np.float64]
) -> tuple[NDArray[np.uint64], NDArray[np.float64], np.longdouble]:
    """Each score, what accepting it adds to the weighted sum of the rows' values, and that sum with none accepted."""
    values = objective.metric_values(entries.edges)
    if np.isinf(values).any():
        name = objective.metric.name
        raise ValueError(f"{name} is infinite for some rows, and has no mean over rows: use macro or micro")
    values = np.where(np.isnan(values), zero_division, values)
    total = (values[entries.edge_starts[:-1]].astype(np.longdouble) * weight).sum()
    gained = values[entries.edge_below] - values[entries.edge_below - 1]
    return entries.low, gained * entries.of_entries(weight), total
