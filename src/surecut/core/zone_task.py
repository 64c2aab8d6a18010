"""What is asked of zones on one score: what they should be best for, and what they must meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.core.rules import Objective
from surecut.metrics import LinearFractionalMetric
from surecut.zones import BoundaryGain, Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion


@dataclass(frozen=True, eq=False)
class Aim:
    """What zones should be best for.

    Attributes
    ----------
    gains
        Shape (zones, 2), negatives first: what a row in a zone is worth. The sum is maximised.
    errors
        The same, for a second look: of thresholds that gain as much, those with the fewest errors win. None where the
        highest ones do.
    metric
        A ratio of cells, of the rows that are decided: those in the highest zone as predicted positive, those in the
        lowest one as predicted negative. Gains are added to its numerator.
    """

    gains: NDArray[np.float64]
    errors: NDArray[np.float64] | None = None
    metric: LinearFractionalMetric | None = None

    @classmethod
    def of_conditions(cls, zones: int, conditions: Sequence[Condition]) -> Aim:
        """What is meant where nobody says what rows are worth.

        Of two zones: the fewest errors. Of three: the fewest rows between, then the fewest errors in the outer zones;
        where a condition is on the zone between, and not on both of the others, the fewest errors alone. Of more: as
        many rows as possible in zones with conditions, and the more so, the farther a zone is from one without.
        """
        errors = np.zeros((zones, 2))
        errors[0, 1] = errors[-1, 0] = -1
        bounded = {condition.zone for condition in conditions}
        if zones == 2 or (zones == 3 and 1 in bounded and bounded != {0, 1, 2}):
            return cls(errors)
        if zones == 3:
            return cls(np.array([[0.0, 0.0], [-1.0, -1.0], [0.0, 0.0]]), errors)
        free = [zone for zone in range(zones) if zone not in bounded]
        distance = [min((abs(zone - one) for one in free), default=0) for zone in range(zones)]
        return cls(np.repeat(np.array(distance, dtype=float)[:, None], 2, axis=1))


@dataclass(frozen=True, eq=False)
class ZoneTask:
    """What zones should be best for, what they must meet, and the class balance at which both are evaluated."""

    names: tuple[str, ...]
    aim: Aim
    conditions: tuple[Condition, ...] = ()
    prior: float | None = None

    @property
    def boundaries(self) -> range:
        """The boundaries, by the zone above each of them."""
        return range(1, len(self.names))

    @property
    def inner(self) -> tuple[Condition, ...]:
        """The conditions on zones between two others, which join two boundaries."""
        return tuple(one for one in self.conditions if 0 < one.zone < len(self.names) - 1)

    @property
    def is_joint(self) -> bool:
        """Whether boundaries cannot be searched one by one."""
        return bool(self.inner) or self.aim.metric is not None

    def at_cut(self, boundary: int) -> tuple[Condition, ...]:
        """The conditions that bind one boundary alone, as constraints of a cut there."""
        last = len(self.names) - 1
        found = [one for one in self.conditions if one.zone == last == boundary]
        found += [one.below_a_cut() for one in self.conditions if one.zone == 0 == boundary - 1]
        return tuple(found)

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """What the cut at each boundary should be best for, the lowest boundary first."""
        return tuple(self.of_cut([boundary]) for boundary in self.boundaries)

    def of_cut(self, boundaries: Sequence[int]) -> Objective:
        """What a cut should be best for that is at some neighbouring boundaries, so that zones between are empty."""
        below, above = boundaries[0] - 1, boundaries[-1]
        gains = self.aim.gains
        if self.aim.errors is not None and (gains[above] == gains[below]).all():
            gains = self.aim.errors
        negative, positive = (gains[above] - gains[below]).tolist()
        conditions = tuple(one for boundary in dict.fromkeys((boundaries[0], above)) for one in self.at_cut(boundary))
        return Objective(BoundaryGain(positive, negative), conditions, self.prior)

    def at_prior(self, confusion: Confusion) -> Confusion:
        """What zones are evaluated at: counts, or rates at a prior that was given."""
        return self.objectives[0].at_prior(confusion)

    def value(self, counts: NDArray[Any]) -> float:
        """What zones with these rows, shape (zones, 2), are worth: per row, or as a ratio; NaN where it is 0/0."""
        negatives, positives = counts.sum(axis=0)
        scaled = counts.astype(float)
        if self.prior is not None:
            scaled = scaled * np.array([(1 - self.prior) / negatives, self.prior / positives])
        gain = float((scaled * self.aim.gains).sum())
        if self.aim.metric is None:
            return gain / float(scaled.sum())
        above, below = (of_decided(weights, len(self.aim.gains)) for weights in cells_of_zone(self.aim.metric))
        bottom = float((scaled * below).sum())
        return (float((scaled * above).sum()) + gain) / bottom if bottom else float("nan")


def gain_at(gains: NDArray[np.float64], boundary: int) -> BoundaryGain:
    """What a row gains by being above a boundary instead of below it."""
    negative, positive = (gains[boundary] - gains[boundary - 1]).tolist()
    return BoundaryGain(positive, negative)


def cells_of_zone(metric: Any) -> tuple[Any, Any]:
    """The weights of the cells of a metric in which class totals do not matter."""
    return metric.cells(1, 1)  # type: ignore[no-any-return]


def of_decided(weights: Sequence[float], zones: int) -> NDArray[np.float64]:
    """The weights of (tp, fp, fn, tn) as those of zones and classes: cells of the rows in the outer zones."""
    tp, fp, fn, tn = weights
    found = np.zeros((zones, 2))
    found[-1] += fp, tp
    found[0] += tn, fn
    return found


def named(condition: Condition, names: Sequence[str]) -> str:
    """Write a condition with the name of its zone.

    >>> from surecut.zones import QUANTITIES
    >>> named(Condition(QUANTITIES["ppv"], ">=", 0.9, zone=2), ("no", "ask", "yes"))
    "ppv>=0.9 in 'yes'"
    """
    return f"{condition} in {names[condition.zone]!r}"
