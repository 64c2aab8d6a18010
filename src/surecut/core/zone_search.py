"""The best thresholds between zones of one score: exactly, as if all combinations of thresholds had been tried.

The sum of what rows in each zone are worth is a sum over boundaries: what rows above a boundary gain by being there. So
each boundary has an objective of its own, and is searched like a single cut (`ZoneTask.objectives`), as long as the
results are in order and no condition is on a zone between two others. Otherwise all boundaries are found together, from
the lowest to the highest, by the best that the lower ones can add to each edge (`best_edges`): a running maximum, where
a condition bounds the share of a zone the maximum over a window, and where it bounds what a zone consists of the
maximum over all edges that may follow.

Among combinations that are worth the same, the one with the highest thresholds wins, the highest boundary first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion
from surecut.constraints import TOLERANCE, InfeasibleError
from surecut.core.rules import least_tie
from surecut.core.zone_task import Aim, ZoneTask, cells_of_zone, gain_at, named, of_decided
from surecut.metrics import NOISE
from surecut.zones import QUANTITIES, BoundaryGain, Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries

MOST_PAIRED = 20_000
"""Of more edges, not all pairs are tried for a condition on what an inner zone consists of."""

PAIRS_AT_ONCE = 1 << 20
"""Pairs of edges that are looked at together."""

MOST_ROUNDS = 60
"""A ratio is maximised in a handful of rounds; this many are never needed."""

Allowed = Sequence["NDArray[np.bool_] | None"]
"""Of each boundary, the lowest first: which edges it may be at; None for all."""


def rows_between(entries: Entries, edges: Sequence[int]) -> NDArray[Any]:
    """The weight of each class in each zone, shape (zones, 2), lowest zone first; edges in the same order."""
    ends = [len(entries), *edges, 0]
    if entries.in_floats:
        return np.array([entries.weight[high:low].sum(axis=0) for low, high in itertools.pairwise(ends)])
    return -np.diff(np.stack(entries.accepted_at(np.array(ends), 0), axis=1), axis=0)


def zones_between(cuts: Confusion, edges: Sequence[int]) -> list[Confusion]:
    """What is inside each zone between some of the cuts of one sample, the lowest zone first."""
    ends = [len(cuts.tp) - 1, *edges, 0]
    return [zone_of(cuts, high, low) for low, high in itertools.pairwise(ends)]


def zone_of(cuts: Confusion, high: Any, low: Any) -> Confusion:
    """What is between two cuts, the first of which is the higher one."""
    tp, fp = cuts.tp[low] - cuts.tp[high], cuts.fp[low] - cuts.fp[high]
    return Confusion(tp=tp, fp=fp, fn=cuts.positives[0] - tp, tn=cuts.negatives[0] - fp)


def best_edges(entries: Entries, task: ZoneTask, allowed: Allowed | None = None, *, explain: bool = True) -> list[int]:
    """The edges of one sample's entries between which the zones are best, the lowest boundary first.

    Where `allowed` is given it stands for the conditions that bind one boundary alone. Where nothing is feasible the
    error says what would be, unless nobody is to `explain` it.
    """
    search = ZoneSearch.of(entries, task, allowed)
    aim = task.aim
    edges = search.best_ratio(aim) if aim.metric is not None else search.best(aim.gains)
    if edges is None:
        raise infeasible(entries, task) if explain and allowed is None else InfeasibleError("no thresholds meet all")
    if aim.errors is not None:
        edges = replace(search, inner=(*search.inner, fewest_between(search, edges))).best(aim.errors) or edges
    return edges


def fewest_between(search: ZoneSearch, edges: Sequence[int]) -> Condition:
    """The condition that no more rows are between the outer zones than there are between two edges."""
    share = QUANTITIES["share"]
    return Condition(share, "<=", min(1.0, float(share.evaluate(search.inside(*edges[::-1])))), zone=1)


@dataclass(frozen=True, eq=False)
class ZoneSearch:
    """The edges of one sample, and what restricts their combinations."""

    edges: Confusion
    allowed: Allowed
    inner: tuple[Condition, ...]

    @classmethod
    def of(cls, entries: Entries, task: ZoneTask, allowed: Allowed | None = None) -> ZoneSearch:
        edges = task.at_prior(entries.edges)
        if allowed is None:
            allowed = [_met(edges, task.at_cut(boundary)) for boundary in task.boundaries]
        return cls(edges, allowed, task.inner)

    def parts(self, gains: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """For each boundary, the lowest first, what rows gain by being above each edge; −inf where it may not be."""
        found = []
        for boundary, mask in enumerate(self.allowed, 1):
            values = np.asarray(gain_at(gains, boundary).evaluate(self.edges), dtype=float)
            found.append(values if mask is None else np.where(mask, values, -np.inf))
        return found

    def best(self, gains: NDArray[np.float64], least: float | None = None) -> list[int] | None:
        """The edges with the largest sum of gains per row, or the highest that gain at least so much."""
        found = self.best_and_least(gains, least)
        return None if found is None else found[0]

    def best_and_least(self, gains: NDArray[np.float64], least: float | None = None) -> tuple[list[int], float] | None:
        """The same, and the least sum over boundaries that ties with it."""
        parts = self.parts(gains)
        reach = [parts[0]]
        for boundary, part in enumerate(parts[1:], 2):
            reach.append(part + self._best_below(reach[-1], boundary - 1))
        best = float(reach[-1].max())
        if best == -np.inf:
            return None
        rounding = NOISE * len(gains) * self._scale(gains, parts, best)
        if least is None:
            wanted = float(least_tie(best, rounding))
        else:
            negatives, positives = float(self.edges.negatives[0]), float(self.edges.positives[0])
            wanted = least - float(gains[0] @ (negatives, positives)) / (negatives + positives) - rounding
        if best < wanted:
            return None
        edge = int((reach[-1] >= wanted).argmax())
        chosen, gained = [edge], float(parts[-1][edge])
        for boundary in range(len(parts) - 1, 0, -1):
            values = np.where(self._may_follow(edge, boundary), reach[boundary - 1], -np.inf)
            enough = np.flatnonzero(values + gained >= wanted)
            edge = int(enough[0]) if len(enough) else int(values.argmax())
            chosen.append(edge)
            gained += float(parts[boundary - 1][edge])
        return chosen[::-1], wanted

    def _scale(self, gains: NDArray[np.float64], parts: Sequence[NDArray[np.float64]], best: float) -> float:
        """How large the numbers are that add up to the best sums, or to sums that may tie with them."""
        largest = [float(part.max()) for part in parts]
        found = 0.0
        for boundary, (part, own) in enumerate(zip(parts, largest, strict=True), 1):
            near = part >= best - (sum(largest) - own) - abs(best)
            gain = gain_at(gains, boundary)
            terms = BoundaryGain(abs(gain.positive), abs(gain.negative)).evaluate(self.edges)
            found += float(np.asarray(terms)[near].max(initial=0.0))
        return found

    def best_ratio(self, aim: Aim) -> list[int] | None:
        """The edges with the largest ratio, by a few sums of gains (Dinkelbach's method).

        What stands below the bar is positive where the highest or the lowest zone has something of it: each of the two
        is tried alone.
        """
        assert aim.metric is not None
        above, below = (of_decided(weights, len(aim.gains)) for weights in cells_of_zone(aim.metric))
        above = above + aim.gains
        found: list[tuple[float, list[int]]] = []
        for zone in (len(aim.gains) - 1, 0):
            boundary = max(zone, 1)
            confusion = self.edges
            cells = (confusion.fp, confusion.tp) if zone else (confusion.tn, confusion.fn)
            decides = below[zone, 0] * cells[0] + below[zone, 1] * cells[1] > 0
            mask = self.allowed[boundary - 1]
            allowed = list(self.allowed)
            allowed[boundary - 1] = decides if mask is None else decides & mask
            one = replace(self, allowed=allowed)._best_ratio(above, below)
            if one is not None:
                found.append(one)
        if not found:
            return None
        least = float(least_tie(max(value for value, _ in found)))
        return min((edges for value, edges in found if value >= least), key=lambda edges: edges[::-1])

    def _best_ratio(self, above: NDArray[np.float64], below: NDArray[np.float64]) -> tuple[float, list[int]] | None:
        edges = self.best(above)
        value = -np.inf if edges is None else self._ratio(edges, above, below)
        if edges is None or value == -np.inf:
            return None
        for _ in range(MOST_ROUNDS):
            better = self.best(above - value * below)
            assert better is not None
            found = self._ratio(better, above, below)
            if found <= value:
                break
            value, edges = found, better
        least = float(least_tie(value))
        return value, self.best(above - least * below, 0.0) or edges

    def _ratio(self, edges: list[int], above: NDArray[np.float64], below: NDArray[np.float64]) -> float:
        zones = zones_between(self.edges, edges)
        top, bottom = (
            sum(one[0] * zone.fp + one[1] * zone.tp for one, zone in zip(weights.tolist(), zones, strict=True))
            for weights in (above, below)
        )
        return float(top / bottom) if bottom > 0 else -np.inf  # weights so small that they vanish beside others

    def inside(self, high: Any, low: Any) -> Confusion:
        """What is between two edges, the first of which is the higher one."""
        return zone_of(self.edges, high, low)

    def _conditions(self, zone: int) -> list[Condition]:
        return [one for one in self.inner if one.zone == zone]

    def _may_follow(self, edge: int, zone: int) -> NDArray[np.bool_]:
        """Which edges may be the lower end of a zone whose upper end is this one."""
        edges = np.arange(len(self.edges.tp))
        met = edges >= edge
        for one in self._conditions(zone):
            met &= one.is_met(self.inside(edge, edges))
        return met

    def _best_below(self, reach: NDArray[np.float64], zone: int) -> NDArray[np.float64]:
        """For each edge as the upper end of a zone, the best that its lower end can reach."""
        conditions = self._conditions(zone)
        if not all(one.moves_one_way for one in conditions):
            return self._best_of_pairs(reach, zone)
        known = [(one, *self.amounts(one)) for one in conditions]
        return best_after(reach, [(one, of, of, total) for one, of, total in known if total > 0], TOLERANCE)

    def amounts(self, condition: Condition) -> tuple[NDArray[Any], float]:
        """How much of what a condition bounds is above each edge, and in all."""
        (of_tp, of_fp, _, _), (all_tp, all_fp, _, _) = cells_of_zone(condition.quantity)
        amounts = of_tp * self.edges.tp + of_fp * self.edges.fp
        return amounts, float(all_tp * self.edges.positives[0] + all_fp * self.edges.negatives[0])

    def _best_of_pairs(self, reach: NDArray[np.float64], zone: int) -> NDArray[np.float64]:
        """By trying all pairs of edges."""
        size = len(reach)
        if size > MOST_PAIRED:
            raise ValueError(
                f"a condition on the PPV or NPV of a zone between two others tries all pairs of {size - 1:,} distinct "
                f"scores, and no more than {MOST_PAIRED - 1:,} are: round the scores, or bound its share"
            )
        found = np.full(size, -np.inf)
        step = max(1, PAIRS_AT_ONCE // size)
        edges = np.arange(size)
        for start in range(0, size, step):
            high = edges[start : start + step, None]
            met = edges >= high
            for one in self._conditions(zone):
                met &= one.is_met(self.inside(high, edges))
            found[start : start + step] = np.where(met, reach, -np.inf).max(axis=1)
        return found


def _met(edges: Confusion, conditions: Iterable[Condition]) -> NDArray[np.bool_] | None:
    """Which edges meet all conditions of a cut; None where there is none."""
    masks = [np.asarray(one.is_met(edges)) for one in conditions]
    return np.logical_and.reduce(masks) if masks else None


def best_after(
    reach: NDArray[np.float64],
    amounts: Sequence[tuple[Condition, NDArray[Any], NDArray[Any], float]],
    slack: float,
) -> NDArray[np.float64]:
    """For each position as the upper end of a zone, the best that its lower end can reach.

    `amounts` are for each condition on the zone how much of what it bounds is above each position, at least and at
    most, and in all.
    """
    if not amounts:
        return np.maximum.accumulate(reach[::-1])[::-1]
    first, last = np.arange(len(reach)), np.full(len(reach), len(reach) - 1)
    for one, least, most, total in amounts:
        if one.sense == "<=":
            end = np.searchsorted(least, most + (one.level + slack) * total, side="right") - 1
            last = np.minimum(last, end)
        else:
            first = np.maximum(first, np.searchsorted(most, least + (one.level - slack) * total))
    return largest_in(reach, first, last)


def largest_in(values: NDArray[np.float64], first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest value in each window; −inf in empty ones. Of windows twice as long it takes one step more.

    >>> largest_in(np.array([1.0, 3.0, 2.0]), np.array([0, 2, 2]), np.array([1, 2, 1])).tolist()
    [3.0, 2.0, -inf]
    """
    length = last - first + 1
    found = np.full(len(first), -np.inf)
    largest, size = values, 1
    while (length >= size).any():
        now = np.flatnonzero((length >= size) & (length < 2 * size))
        found[now] = np.maximum(largest[first[now]], largest[last[now] - size + 1])
        largest = np.maximum(largest[:-size], largest[size:]) if len(largest) > size else largest[:0]
        size *= 2
    return found


def infeasible(entries: Entries, task: ZoneTask) -> InfeasibleError:
    """Why no thresholds meet all conditions, and what can be attained instead."""

    def without(some: Callable[[Condition], bool]) -> ZoneTask:
        aim = Aim(np.zeros((len(task.names), 2)))
        return replace(task, aim=aim, conditions=tuple(one for one in task.conditions if not some(one)))

    def is_met(one: ZoneTask) -> bool:
        return ZoneSearch.of(entries, one).best(one.aim.gains) is not None

    for one in task.conditions:
        if not is_met(without(lambda other, one=one: other is not one)):  # type: ignore[misc]
            return InfeasibleError(f"no thresholds meet {named(one, task.names)}: {_attainable(entries, task, one)}")
    for one in dict.fromkeys((*task.inner, *task.conditions)):  # people want to know how large a budget would do
        relaxed = without(lambda other, one=one: other is one)  # type: ignore[misc]
        if is_met(relaxed):
            what = named(one, task.names)
            told = _attainable(entries, relaxed, one)
            return InfeasibleError(
                f"each condition can be met, but not all at once: for {what}, {told} with the others"
            )
    listed = " and ".join(named(one, task.names) for one in task.conditions)
    return InfeasibleError(f"each condition can be met, but no thresholds meet all of them: {listed}")


def _attainable(entries: Entries, task: ZoneTask, condition: Condition) -> str:
    """The best level of a condition that thresholds attain which meet the conditions of a task, in words."""
    low, high = 0.0, 1.0
    rising = condition.sense == ">="
    aim, others = Aim(np.zeros((len(task.names), 2))), tuple(one for one in task.conditions if one is not condition)

    def meets(level: float) -> bool:
        tried = replace(task, aim=aim, conditions=(*others, replace(condition, level=level)))
        return ZoneSearch.of(entries, tried).best(aim.gains) is not None

    for _ in range(40):
        middle = (low + high) / 2
        if meets(middle) == rising:
            low = middle
        else:
            high = middle
    end = "highest" if rising else "lowest"
    return f"the {end} {condition.quantity.name} attainable is {low if rising else high:.6g}"
