"""``method="holdout"`` for rows that come in groups: the groups are independent, not the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut.certificates.cells import ClusterCells
from surecut.certificates.certificate import KEPT_ASIDE, ONE_MODEL, Certificate
from surecut.certificates.clusters import GROUPS, NO_ORDER, cluster_limits, require_no_order, unequal_note
from surecut.confusion import Confusion

if TYPE_CHECKING:
    from surecut.certificates.resampling import GroupedRows
    from surecut.decisions.cut import Cut


GROUPS_NEED_ROWS = "groups need the rows themselves: pass y_true and y_score, not a tally"

NOT_INDEPENDENT = (
    "rows of one group are not independent, which method='uniform' needs: use method='holdout' on held-out rows, or "
    "method='bootstrap', which resamples whole groups, or keep one row of each group"
)


def group_certificate(cut: Cut, rows: GroupedRows, confidence: float) -> Certificate:
    """Limits of the value of all rows pooled, from independent groups: `clusters.cluster_limits`."""
    cells = ClusterCells.of_rows(rows.is_positive, np.asarray(cut.predict(rows.scores)), rows.group)
    require_no_order(cut.metric, cells, "groups")
    counts = cells.pooled()
    largest = float(counts.sum(axis=1).max())
    lower, upper = cluster_limits(cut.metric, counts, largest, 1 - confidence)
    return Certificate(
        lower=lower,
        upper=upper,
        regret_bound=None,
        value=float(cut.metric.evaluate(Confusion(*counts.sum(axis=0)))),
        metric=cut.metric.name,
        threshold=cut.threshold,
        method="holdout",
        confidence=confidence,
        rows=len(rows.group),
        exact=False,
        assumptions=(f"{GROUPS} ({largest:.0f})", NO_ORDER.format(what="groups"), ONE_MODEL, KEPT_ASIDE),
        note=unequal_note(counts.sum(axis=1), 1 - confidence),
    )
