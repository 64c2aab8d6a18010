"""Zones whose thresholds are found together, without sorting all rows: entries that may hide a boundary are refined.

A boundary is at an edge between two entries, or inside of one. Inside it gains at most what the bound of its objective
says, and a zone between two boundaries holds no fewer rows, and no more, than the ends of their entries allow. So for
each entry there is a bound of all combinations with a boundary inside, by the same sums from the lowest boundary to the
highest as those of combinations of edges (`zone_search`), and by those from the highest to the lowest. Entries with a
bound below the best combination of edges are never refined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.core.rules import Objective
from surecut.core.search import refined
from surecut.core.zone_search import ZoneSearch, best_after, fewest_between, largest_in
from surecut.core.zone_task import Aim, ZoneTask, gain_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries
    from surecut.core.search import Source
    from surecut.zones import Condition

SLACK = 1e-9
"""Rounding of the share of a zone: a bound may be too large, but not too small."""


def search_zones(source: Source, entries: Entries, task: ZoneTask) -> tuple[Entries, list[int]] | None:
    """Entries of the only sample of a source, and the edges between which zones are best, the lowest boundary first.

    The search begins with the entries that the source has counted. None where bounds cannot tell: of ratios, and of
    conditions on what a zone between two others consists of; and where no thresholds meet the conditions.
    """
    if task.aim.metric is not None or not all(one.moves_one_way for one in task.inner):
        return None
    found = _refined_until_best(source, entries, task)
    if found is None or task.aim.errors is None:
        return found
    entries, edges = found
    fewest = fewest_between(ZoneSearch.of(entries, task), edges)
    return _refined_until_best(
        source, entries, replace(task, aim=Aim(task.aim.errors), conditions=(*task.conditions, fewest))
    )


def _refined_until_best(source: Source, entries: Entries, task: ZoneTask) -> tuple[Entries, list[int]] | None:
    """The best edges for the gains of a task, when no entry can hide better ones, and with exact ends on both sides."""
    while True:
        search = ZoneSearch.of(entries, task)
        found = search.best_and_least(task.aim.gains)
        todo = _unresolved(entries, task, search, -np.inf if found is None else found[1])
        if found is not None:
            beside = np.array(found[0])
            beside = np.concatenate((beside[beside > 0] - 1, beside[beside < len(entries)]))
            todo[beside] |= ~entries.exact[beside]
        if not (todo.any() and source.refines):
            return None if found is None else (entries, found[0])
        entries = refined(source, entries, todo)


def _unresolved(entries: Entries, task: ZoneTask, search: ZoneSearch, least: float) -> NDArray[np.bool_]:
    """Which entries may have a boundary inside such that the zones together gain at least so much."""
    positions = _Positions.of(entries, task, search)
    parts = positions.parts
    below: list[Any] = [0.0]
    for zone in range(1, len(parts)):
        below.append(positions.best_below(parts[zone - 1] + below[-1], zone))
    above: list[Any] = [0.0]
    for zone in range(len(parts) - 1, 0, -1):
        above.insert(0, positions.best_above(parts[zone] + above[0], zone))
    inside = np.zeros(len(entries), dtype=bool)
    for of_boundary in zip(parts, below, above, strict=True):
        bound = sum(np.asarray(one)[..., 1::2] if np.ndim(one) else one for one in of_boundary)
        inside |= (bound >= least) & (bound > -np.inf)
    return inside


@dataclass(frozen=True, eq=False)
class _Positions:
    """Where a boundary can be: at an edge, inside the next entry, at the next edge, …

    Attributes
    ----------
    parts
        For each boundary, the lowest first, what it gains at each position; at most, inside of entries.
    amounts
        For each condition on an inner zone how much of what it bounds is above each position, at least and at most, and
        in all.
    """

    parts: list[NDArray[np.float64]]
    amounts: dict[Condition, tuple[NDArray[Any], NDArray[Any], float]]

    @classmethod
    def of(cls, entries: Entries, task: ZoneTask, search: ZoneSearch) -> _Positions:
        edges, wide = entries.edges, entries.is_wide
        before, after = edges[:-1], edges[1:]
        parts = []
        for boundary, at_edges in zip(task.boundaries, search.parts(task.aim.gains), strict=True):
            objective = Objective(gain_at(task.aim.gains, boundary), task.at_cut(boundary), task.prior)
            parts.append(_interleaved(at_edges, np.where(wide, objective.bounds(before, after), -np.inf)))
        amounts = {}
        for one in task.inner:
            at_edge, total = search.amounts(one)
            amounts[one] = (_interleaved(at_edge, at_edge[:-1]), _interleaved(at_edge, at_edge[1:]), total)
        return cls(parts, amounts)

    def best_below(self, reach: NDArray[np.float64], zone: int) -> NDArray[np.float64]:
        """For each position as the upper end of a zone, the best that its lower end can reach."""
        return best_after(reach, [(one, *self.amounts[one]) for one in self._conditions(zone)], SLACK)

    def best_above(self, reach: NDArray[np.float64], zone: int) -> NDArray[np.float64]:
        """For each position as the lower end of a zone, the best that its upper end can reach."""
        conditions = self._conditions(zone)
        if not conditions:
            return np.maximum.accumulate(reach)
        first, last = np.zeros(len(reach), dtype=np.int64), np.arange(len(reach))
        for one in conditions:
            least, most, total = self.amounts[one]
            if one.sense == "<=":
                first = np.maximum(first, np.searchsorted(most, least - (one.level + SLACK) * total))
            else:
                start = np.searchsorted(least, most - (one.level - SLACK) * total, side="right") - 1
                last = np.minimum(last, start)
        return largest_in(reach, first, last)

    def _conditions(self, zone: int) -> list[Condition]:
        return [one for one, (_, _, total) in self.amounts.items() if one.zone == zone and total > 0]


def _interleaved(at_edges: NDArray[Any], inside: NDArray[Any]) -> NDArray[Any]:
    """Values at the edges and inside of the entries between, in the order of positions."""
    found = np.empty(len(at_edges) + len(inside), dtype=np.result_type(at_edges, inside))
    found[::2], found[1::2] = at_edges, inside
    return found
