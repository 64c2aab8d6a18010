"""Zones whose conditions hold on new data, all of them at once with a confidence.

- A condition on the highest or on the lowest zone binds one boundary, and is a constraint of a cut there: `assurance`
  says which cuts keep it. An empty zone keeps conditions on its PPV and NPV, and needs no test.
- A bound on the share of a zone between two others (or on its share of a class) limits the number of rows there. Of n
  rows those with ranks i and i + c + 1 have a share between them that is distributed like Beta(c + 1, n − c), or less
  where scores are tied. So with at most c rows between them no two thresholds, however they were chosen, have more than
  the share between them but with the probability of that for one i, times the n + 1 possible ones.

Each boundary with conditions, and each bound on an inner zone, has an equal part of the error. Given these, the zones
may be chosen by all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from surecut.certificates.assurance import allowed_cuts
from surecut.constraints import InfeasibleError
from surecut.core.zone_search import best_edges, rows_between
from surecut.core.zone_task import Aim, ZoneTask, named
from surecut.zones import Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.candidates import Candidates


def assured_edges(
    candidates: Candidates, task: ZoneTask, confidence: float, order: int = 0
) -> tuple[list[int], list[bool]]:
    """The best edges that keep all conditions on new data, the lowest boundary first; whether a pilot chose each.

    `candidates` are the cuts of one sample in numbers of rows, `order` is a hash of the order of the rows.
    """
    bound = [boundary for boundary in task.boundaries if task.at_cut(boundary)]
    parts = len(bound) + len(task.inner)
    each = 1 - (1 - confidence) / parts
    allowed: list[NDArray[np.bool_] | None] = [None for _ in task.boundaries]
    by_pilot = [False for _ in task.boundaries]
    for boundary in bound:
        allowed[boundary - 1], by_pilot[boundary - 1] = _at_boundary(candidates, task, boundary, each, order)
    inner = [_bounded(one, candidates, task, 1 - each) for one in task.inner]
    bounded = replace(task, conditions=(*(one for one in task.conditions if one not in task.inner), *inner))
    try:
        return best_edges(candidates.entries, bounded, allowed), by_pilot
    except InfeasibleError:
        raise _none(candidates, task, bounded, allowed, confidence) from None


def _at_boundary(
    candidates: Candidates, task: ZoneTask, boundary: int, confidence: float, order: int
) -> tuple[NDArray[np.bool_], bool]:
    """Which edges keep the conditions of one boundary."""
    conditions, edges = task.at_cut(boundary), candidates.at_prior()
    empty = np.zeros(len(candidates.entries) + 1, dtype=bool)
    zones = {condition.zone for condition in conditions}
    if len(zones) == 1:  # the zone that has conditions may be empty
        at = 0 if zones.pop() else len(candidates.entries)
        empty[at] = all(one.is_met(edges[at]) for one in conditions)
    try:
        metric = task.objectives[boundary - 1].metric
        allowed, by_pilot = allowed_cuts(candidates, metric, conditions, confidence, order)
    except InfeasibleError as error:
        if not empty.any():
            whose = " and ".join(repr(task.names[zone]) for zone in sorted({one.zone for one in conditions}))
            raise InfeasibleError(f"{error} (zone {whose})") from None
        return empty, False
    return allowed | empty, by_pilot


def _bounded(condition: Condition, candidates: Candidates, task: ZoneTask, error: float) -> Condition:
    """A bound on an inner zone's share, so much lower on these rows that it holds on new ones."""
    what = named(condition, task.names)
    if not condition.moves_one_way or condition.sense == ">=":
        raise ValueError(
            f"{what} cannot be promised, since it binds two thresholds at once: only an upper bound of a share can, "
            "such as 'share<=0.2'. Leave out confidence=, and certify the bands on held-out rows"
        )
    (of_tp, of_fp, _, _), _ = condition.quantity.cells(1, 1)  # type: ignore[attr-defined]  # a Rate
    negatives, positives = candidates.entries.totals[0].tolist()
    if candidates.given_prior is not None and of_tp and of_fp:
        raise ValueError(f"{what} mixes two classes at a prior that was given: it cannot be promised; leave out prior=")
    rows = int(of_tp * positives + of_fp * negatives)
    counts = np.arange(rows)
    failure = stats.beta.sf(condition.level, counts + 1, rows - counts) * (rows + 1)
    most = int(np.searchsorted(failure, error, side="right")) - 1  # the failure grows with the count
    if most < 0:
        raise InfeasibleError(f"{what} cannot be promised from {rows:,} rows: they are too few")
    return replace(condition, level=most / rows)


def _none(
    candidates: Candidates, task: ZoneTask, bounded: ZoneTask, allowed: Sequence[Any], confidence: float
) -> InfeasibleError:
    """Why no thresholds keep all conditions, in numbers of rows."""
    sure = f"with {100 * confidence:.4g} % confidence"
    budgets = [one for one in bounded.inner if one.quantity.name == "share"]
    if len(budgets) == 1 and len(task.names) == 3:
        fewest = replace(bounded, aim=Aim.of_conditions(3, ()), conditions=())
        edges = best_edges(candidates.entries, fewest, allowed)
        rows, between = int(candidates.entries.rows.sum()), int(rows_between(candidates.entries, edges)[1].sum())
        return InfeasibleError(
            f"no thresholds meet {named(task.inner[0], task.names)} {sure}: of these {rows:,} rows at most "
            f"{round(budgets[0].level * rows):,} may be there for that, and the other conditions leave no fewer than "
            f"{between:,}"
        )
    listed = " and ".join(named(one, task.names) for one in task.conditions)
    return InfeasibleError(f"no thresholds meet {listed} {sure}: each can be promised, but not all at once")
