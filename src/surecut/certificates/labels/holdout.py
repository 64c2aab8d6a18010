"""``method="holdout"`` for many labels: rows that neither trained nor tuned. Valid for every sample size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import averaged_value, undefined_labels
from surecut.certificates.averages import label_limits, mean_limits
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certificate import FRESH, KEPT_ASIDE, Certificate
from surecut.certificates.clusters import (
    GROUPS,
    NO_ORDER,
    cluster_limits,
    least_ratio,
    ratio_limits,
    require_no_order,
    terms_of,
    unequal_note,
)
from surecut.certificates.labels.values import average_certificate, row_values
from surecut.certificates.limits import value_limits
from surecut.certificates.priors import value_range
from surecut.certificates.promises import label_promises
from surecut.confusion import Confusion
from surecut.decisions.multilabel import MultilabelCut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric


def holdout_labels(cut: MultilabelCut, cells: ClusterCells, confidence: float, grouped: bool, rows: int) -> Certificate:
    """From the counts of independent clusters: of rows, or of groups of them."""
    error = 1 - confidence
    confusion = cells.confusion()
    what = "groups" if grouped else "rows"
    bets = grouped or cut.average != "macro" or terms_of(cut.metric) is not None
    if bets:
        require_no_order(cut.metric, cells, what)
    if cut.average == "samples":
        if grouped:
            raise ValueError(
                "the samples average of dependent rows has no finite-sample limit here: use method='bootstrap'"
            )
        values = row_values(cut, cells)
        value, limits = float(values.mean()), _mean_of_rows(values, value_range(cut.metric, cut.zero_division), error)
    else:
        value = averaged_value(cut.metric, cut.average, confusion)
        limits = _micro(cut, cells, error, grouped) if cut.average == "micro" else _macro(cut, cells, error, grouped)
    assumptions = [GROUPS if grouped else FRESH, *([NO_ORDER.format(what=what)] if bets else []), KEPT_ASIDE]
    found = average_certificate(cut, value, (*limits, None), rows, "holdout", confidence, assumptions, confusion)
    if grouped:
        found = replace(found, note=unequal_note(cells.pooled().sum(axis=1), error))
    return replace(found, constraints=label_promises(cut, cells, grouped, error)) if cut.constraints else found


def _micro(cut: MultilabelCut, cells: ClusterCells, error: float, grouped: bool) -> tuple[float, float]:
    pooled = cells.pooled()
    terms = terms_of(cut.metric)
    if terms is None or len(terms) == 1 or grouped or cells.rows.ndim > 1:
        return cluster_limits(cut.metric, pooled, cells.largest, error)
    from scipy import sparse

    shares = pooled / cells.labels
    tp, fp, fn = (sparse.csr_array(shares[:, [cell]]) for cell in range(3))
    before = Confusion(*(np.atleast_1d(cell) for cell in cells_of(cut.confusion).sum(axis=0)))

    def by_rows(above: Any, below: Any, _: Any, error: float) -> Any:
        low, high = ratio_limits(shares, (above, below), 1.0, error)
        return np.array([low]), np.array([high])

    return mean_limits(terms, ClusterCells(tp, fp, fn, np.ones(len(cells))), before, error, by_rows)


def _macro(cut: MultilabelCut, cells: ClusterCells, error: float, grouped: bool) -> tuple[float, float]:
    if grouped:
        each = [
            cluster_limits(cut.metric, of_label, float(of_label.sum(axis=1).max()), error / cells.labels)
            for of_label in map(cells.of_label, range(cells.labels))
        ]
        lower, upper = np.mean(each, axis=0)
        return float(lower), float(upper)
    terms = terms_of(cut.metric)
    if terms is None or cells.rows.ndim > 1:
        return labels_alone(cut.metric, cells.confusion(), error)
    return mean_limits(terms, cells, cut.confusion, error)


def labels_alone(metric: Metric, confusion: Confusion, error: float) -> tuple[float, float]:
    """The mean of the labels' limits, each at error / m."""
    totals = cells_of(confusion)
    each = error / len(totals)
    terms = terms_of(metric)
    if terms is not None and len(terms) == 1:
        low, high = label_limits(terms[0][1], terms[0][2], totals, each)
        return float(low.mean()), float(high.mean())
    undefined = {i for i, _ in undefined_labels(metric, confusion)}
    found = [
        value_range(metric) if i in undefined else value_limits(metric, of_label, each)[:2]
        for i, of_label in enumerate(totals)
    ]
    lower, upper = np.mean(found, axis=0)
    return float(lower), float(upper)


def _mean_of_rows(values: NDArray[np.float64], extremes: tuple[float, float], error: float) -> tuple[float, float]:
    least, most = extremes
    reach, one = (most - least, most - least), np.ones(len(values))
    return (
        least_ratio(values, one, reach, (least, most), error),
        -least_ratio(-values, one, reach, (-most, -least), error),
    )
