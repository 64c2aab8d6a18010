"""``method="bootstrap"``: resampled rows, or whole groups of them. Right for large samples only, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_scores, as_weights, require_no_nan, require_same_length
from surecut._labels import as_labels
from surecut.certificates.cells import ClusterCells, cells_of, group_codes
from surecut.certificates.certificate import FRESH, ONE_MODEL, Certificate
from surecut.certificates.priors import value_at
from surecut.certificates.resampling import GroupedRows, resample
from surecut.confusion import Confusion
from surecut.core.tally import ScoreTally

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric

FEWEST = 100
"""Fewer rows of a class than this, and the promise is broken more often than it says."""

FEWEST_GROUPS = 50
"""The same for groups of rows."""


def require_enough(number: int, fewest: int, what: str, grouped: bool = False) -> None:
    """Refuse samples that are too small to be resampled."""
    if number < fewest:
        instead = (
            "method='holdout' on held-out rows holds for any number of groups, and promises little with few"
            if grouped
            else "use method='uniform', which holds for any number of rows, or 'holdout' on held-out rows"
        )
        raise ValueError(
            f"the bootstrap is right for large samples only, and needs {fewest} {what}, got {number}: {instead}"
        )


FEWEST_IN_CELL = 10
"""So many groups, weighted rows or rows of many labels a cell that the metric counts needs: what is missing is not
resampled."""


def require_filled(metric: Metric, confusion: Confusion, clusters: NDArray[Any], what: str) -> None:
    """Refuse where a cell that the metric counts is nearly empty, as the mistakes are where a value is close to 1.

    `confusion` holds counts of all rows, or of each label; `clusters` are how many rows or groups each cell has.
    """
    cells = cells_of(confusion).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.asarray(metric.evaluate(Confusion(*(cells + 1.0).T)))
        for cell, name in enumerate(("true positives", "false positives", "false negatives", "true negatives")):
            more = np.asarray(metric.evaluate(Confusion(*(cells + 1.0 + 7.0 * (np.arange(4) == cell)).T)))
            if clusters[cell] < FEWEST_IN_CELL and (np.abs(more - value) > 1e-12).any():
                raise ValueError(
                    f"the bootstrap cannot tell how rare {name} are from {int(clusters[cell])} {what} that have some: "
                    f"it needs {FEWEST_IN_CELL}. Use method='holdout' on held-out rows, which holds for any number; "
                    "for rows that are independent and have no weights also 'uniform'"
                )


def filled_cells(cut: Cut, tally: ScoreTally, groups: GroupedRows | None) -> tuple[Confusion, NDArray[Any], str]:
    """The confusion in rows, how many rows or groups each cell has, and what these are."""
    if groups is None:
        rows = ScoreTally(tally.keys, tally.rows, tally.rows, tally.rows, tally.dtype)
        confusion = rows.confusion_at(cut.threshold)
        return confusion, cells_of(confusion), "rows"
    counts = ClusterCells.of_rows(groups.is_positive, np.asarray(cut.predict(groups.scores)), groups.group).pooled()
    return Confusion(*counts.sum(axis=0)), (counts > 0).sum(axis=0), "groups"


def bootstrap_certificate(
    cut: Cut,
    tally: ScoreTally,
    tuned_here: bool,
    confidence: float,
    groups: GroupedRows | None,
    resamples: int,
    random_state: Any,
    progress: bool | None,
) -> Certificate:
    if not resamples >= 100:
        raise ValueError(f"resamples must be at least 100, got {resamples}")
    require_enough(int(tally.rows.sum(axis=0).min()), FEWEST, "rows of each class")
    if groups is not None:
        require_enough(int(groups.group.max()) + 1, FEWEST_GROUPS, "groups", grouped=True)
    confusion = tally.confusion_at(cut.threshold)
    value = value_at(cut, confusion, tally)
    retune = tuned_here and not cut.constraints
    if groups is not None or tally.weight is not tally.rows:
        require_filled(cut.metric, *filled_cells(cut, tally, groups))
    drawn = resample([cut], tally, retune, groups, resamples, random_state, progress)[0]
    lower, upper = drawn.limits(1 - confidence)
    assumptions = [
        FRESH if groups is None else "the groups are a random sample, independent of one another",
        ONE_MODEL,
    ]
    assumptions.append("the sample is large: the bootstrap is right in the limit only")
    if tuned_here and cut.constraints:
        assumptions.append("the value is not corrected for the choice of a constrained cut")
    return Certificate(
        lower=lower,
        upper=upper,
        regret_bound=None,
        value=value,
        metric=cut.metric.name,
        threshold=cut.threshold,
        method="bootstrap",
        confidence=confidence,
        rows=int(tally.rows.sum()),
        exact=False,
        assumptions=tuple(assumptions),
        threshold_spread=drawn.threshold_spread,
    )


def grouped_rows(groups: ArrayLike, y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any) -> GroupedRows:
    labels, scores = as_labels(y_true, pos_label=pos_label), as_scores(y_score)
    require_no_nan(scores)
    named = np.asarray(groups)
    require_same_length(y_true=labels, groups=named)
    weights = np.ones(len(scores)) if sample_weight is None else as_weights(sample_weight, len(scores))
    return GroupedRows(group_codes(named), scores, labels.is_positive(), weights)
