"""Limits at a threshold that any rows chose, also these: those of held-out data, at brackets that a pilot chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from surecut.certificates.bands import band_limits
from surecut.certificates.limits import value_limit
from surecut.certificates.pilot import Pilot
from surecut.certificates.priors import is_defined, require_monotone, value_range
from surecut.confusion import Confusion
from surecut.core.tally import CoarseTally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.constraints import Constraint
    from surecut.core.tally import ScoreTally
    from surecut.metrics import Metric

PILOT_SHARE = 0.12
"""The largest share of the rows that is in the pilot sample: it only has to find the place."""

FEWEST_IN_PILOT = 5
"""The fewest rows of a class with which a pilot sample places brackets."""

BRACKETS = 4.0
"""There are so many times √n brackets for n rows: each is a small part of a standard error wide."""

SPREAD = 0.3
"""How far from the cut that a pilot of n rows expects the chosen one is: so many times n^(−1/3), in arcsin √share, …"""

EVERYWHERE = 0.2
"""… and the part of the error that all brackets share evenly, for cuts that are somewhere else."""


def bracket_limits(
    metric: Metric, tally: ScoreTally, threshold: float, error: float, constraints: Sequence[Constraint] = ()
) -> tuple[float, float]:
    """Lower and upper limit of the value at a threshold, each one-sided, whatever rows chose it.

    The cuts of a pilot sample are the ends of brackets. Whatever threshold inside a bracket was chosen, its positives
    are at least those at the higher end, and its negatives at most those at the lower one. Counts of the other rows at
    these fixed ends are those of held-out data, and so are their limits, of each bracket with its part of the error.
    `constraints` are those that the cut had to meet: they say where to expect it.
    """
    require_monotone(metric, np.array([tally.prior]))
    pilot, edge = Pilot.of(tally.entries, tally.order, PILOT_SHARE), int(tally.candidates.at(threshold))
    if pilot.classes.min() < FEWEST_IN_PILOT:  # it does not know where the cut will be
        return band_limits(metric, Confusion(*pilot.cells(edge)), tally.given_prior, error)
    pilot = pilot.thinned(int(BRACKETS * np.sqrt(pilot.others.sum())))
    ends = np.concatenate(([0], pilot.cuts, [len(tally) + 1]))
    bracket = int(np.searchsorted(ends, edge, side="right")) - 1
    # Ranges of scores may end at the threshold itself: then its neighbours belong to the bracket, three in all.
    beside = 1 if isinstance(tally, CoarseTally) else 0
    first, last = max(bracket - beside, 0), min(bracket + 1 + beside, len(ends) - 1)
    above, below = int(ends[first]), int(ends[last]) - 1
    weights = _bracket_weights(pilot, metric, tally.given_prior, constraints)
    each = error * float(weights[first:last].sum() / (2 * beside + 1))
    return (
        _limit(metric, pilot.cells(above, below), each, tally.given_prior, upper=False),
        _limit(metric, pilot.cells(below, above), each, tally.given_prior, upper=True),
    )


def _limit(metric: Metric, cells: NDArray[np.float64], error: float, prior: float | None, upper: bool) -> float:
    if not is_defined(metric, cells):
        return value_range(metric)[int(upper)]
    return value_limit(metric, cells, error, prior, upper=upper)


def _bracket_weights(
    pilot: Pilot, metric: Metric, prior: float | None, constraints: Sequence[Constraint]
) -> NDArray[np.float64]:
    """The part of the error for each bracket: more for those near the cut that the pilot expects to be best."""
    values = pilot.expected_values(metric, prior)
    allowed = np.ones(len(pilot), dtype=bool)
    for one in constraints:
        allowed &= one.allows(pilot.expected_values(one.quantity, prior))
    values = np.where(allowed, values, -np.inf) if allowed.any() else values
    angles = np.concatenate(([0.0], pilot.angles, [np.pi / 2]))
    middle = (angles[1:] + angles[:-1]) / 2
    expected = angles[1 + int(np.argmax(values))]
    near = np.exp(-np.abs(middle - expected) / (SPREAD * float(pilot.classes.sum()) ** (-1 / 3)))
    return np.asarray((1 - EVERYWHERE) * near / near.sum() + EVERYWHERE / len(middle))
