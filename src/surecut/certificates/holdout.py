"""``method="holdout"``: rows that neither trained nor tuned. Valid for every sample size.

- One label: by `limits`. Exact for accuracy, F₁, Jaccard, precision, recall and specificity; a little cautious for the
  others. Of groups of rows: by `clusters`.
- Many labels: macro by `averages` (one bet on the values of all labels), micro by `clusters` (a row is a cluster of
  pairs), samples by a bet on the rows' values. From tallies alone, in which the rows are no longer together, by the
  labels' limits at error / m.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import undefined_labels
from surecut.certificates.averages import label_limits, mean_limits
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certificate import FRESH, KEPT_ASIDE, Certificate
from surecut.certificates.clusters import (
    GROUPS,
    NO_ORDER,
    bounded_mean_limits,
    cluster_limits,
    ratio_limits,
    require_no_order,
    terms_of,
    unequal_note,
)
from surecut.certificates.evidence import Asked, Evidence, row_values
from surecut.certificates.limits import value_limits
from surecut.certificates.priors import value_range
from surecut.certificates.uniform import pooled_limits, single_shares
from surecut.confusion import Confusion
from surecut.decisions.multilabel import MultilabelCut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric

LimitsOfEach = tuple["NDArray[np.float64]", "NDArray[np.float64]"]
"""Lower and upper limits of labels."""


def holdout_certificate(evidence: Evidence, asked: Asked) -> Certificate:
    """From the counts of each label, or from those of independent clusters: of groups, or of rows of many labels."""
    cut, cells = evidence.cut, evidence.cells
    exact, note, drawn, others = False, "", [FRESH], [KEPT_ASIDE]
    if cells is None:
        value = evidence.value
        lower, upper, exact = _of_each_label(evidence, asked.error)
        if evidence.prior is not None:
            others.append(
                f"a share {evidence.prior:g} of the new rows is positive, and within the classes nothing changed"
            )
    else:
        what = "groups" if evidence.grouped else "rows"
        if evidence.grouped:
            drawn = [GROUPS if evidence.average else f"{GROUPS} ({cells.largest:.0f})"]
            note = unequal_note(cells.pooled().sum(axis=1), asked.error)
        if evidence.grouped or evidence.average != "macro" or terms_of(cut.metric) is not None:  # then it is a bet
            require_no_order(cut.metric, cells, what)
            drawn.append(NO_ORDER.format(what=what))
        value, lower, upper = _of_clusters(evidence, cells, asked.error)
    return evidence.certificate(asked, value, (lower, upper, None), drawn, others, exact, note=note)


def _of_each_label(evidence: Evidence, error: float) -> tuple[float, float, bool]:
    """Limits from the labels' counts alone; whether they are exact."""
    metric, confusion = evidence.cut.metric, evidence.confusion
    if evidence.average is None:
        return value_limits(metric, cells_of(confusion)[0], error, evidence.prior)
    if evidence.average == "macro":
        return *labels_alone(metric, confusion, error), False
    return *pooled_limits(metric, confusion, single_shares, error), False


def _of_clusters(evidence: Evidence, cells: ClusterCells, error: float) -> tuple[float, float, float]:
    """The value and its limits."""
    cut, grouped = evidence.cut, evidence.grouped
    if isinstance(cut, MultilabelCut) and cut.average == "samples":
        if grouped:
            raise ValueError(
                "the samples average of dependent rows has no finite-sample limit here: use method='bootstrap'"
            )
        values = row_values(cut, cells)
        return float(values.mean()), *bounded_mean_limits(values, value_range(cut.metric, cut.zero_division), error)
    value = evidence.value if evidence.average else float(cut.metric.evaluate(evidence.confusion[0]))
    limits = macro_limits if evidence.average == "macro" else micro_limits
    return value, *limits(cut.metric, cells, cut.confusion, error, grouped)


def micro_limits(
    metric: Metric,
    cells: ClusterCells,
    reference: Confusion,
    error: float,
    grouped: bool,
    predicted: float | None = None,
) -> tuple[float, float]:
    """Of all labels together, or of one; `reference` are the labels' confusions on other rows.

    `predicted` is how many labels of a cluster can be predicted, where that is known.
    """
    pooled = cells.pooled()
    terms = terms_of(metric)
    if terms is None or len(terms) == 1 or grouped or cells.rows.ndim > 1:
        only_predicted = terms is not None and not any(side[2:].any() for term in terms for side in term[1:])
        largest = cells.largest if predicted is None or not only_predicted else predicted
        return cluster_limits(metric, pooled, largest, error)
    from scipy import sparse

    shares = pooled / cells.labels
    tp, fp, fn = (sparse.csr_array(shares[:, [cell]]) for cell in range(3))
    before = Confusion(*(np.atleast_1d(cell) for cell in cells_of(reference).sum(axis=0)))

    def by_rows(above: Any, below: Any, _: Any, error: float) -> Any:
        low, high = ratio_limits(shares, (above, below), 1.0, error)
        return np.array([low]), np.array([high])

    return mean_limits(terms, ClusterCells(tp, fp, fn, np.ones(len(cells))), before, error, by_rows)


def macro_limits(
    metric: Metric, cells: ClusterCells, reference: Confusion, error: float, grouped: bool
) -> tuple[float, float]:
    """Of the mean of the labels' values; `reference` are their confusions on other rows."""
    if grouped:
        return means_of(limits_of_each(metric, cells, error / cells.labels, grouped))
    terms = terms_of(metric)
    if terms is None or cells.rows.ndim > 1:
        return labels_alone(metric, cells.confusion(), error)
    return mean_limits(terms, cells, reference, error)


def labels_alone(metric: Metric, confusion: Confusion, error: float) -> tuple[float, float]:
    """The mean of the labels' limits, each at error / m."""
    return means_of(_limits_alone(metric, confusion, error / len(confusion.tp)))


def means_of(limits: LimitsOfEach) -> tuple[float, float]:
    """The means of lower and of upper limits."""
    low, high = limits
    return float(low.mean()), float(high.mean())


def limits_of_each(metric: Metric, cells: ClusterCells, each: float, grouped: bool) -> LimitsOfEach:
    """Lower and upper limits of each label's value, each of which fails with probability at most `each`."""
    if not grouped:
        return _limits_alone(metric, cells.confusion(), each)
    found = [
        cluster_limits(metric, of_label, float(of_label.sum(axis=1).max()), each)
        for of_label in map(cells.of_label, range(cells.labels))
    ]
    low, high = np.array(found).T
    return low, high


def _limits_alone(metric: Metric, confusion: Confusion, each: float) -> LimitsOfEach:
    totals = cells_of(confusion)
    terms = terms_of(metric)
    if terms is not None and len(terms) == 1:
        return label_limits(terms[0][1], terms[0][2], totals, each)
    undefined = {i for i, _ in undefined_labels(metric, confusion)}
    found = [
        value_range(metric) if i in undefined else value_limits(metric, of_label, each)[:2]
        for i, of_label in enumerate(totals)
    ]
    low, high = np.array(found).T
    return low, high
