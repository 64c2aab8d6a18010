"""Cuts with a promise: constraints that hold on new data, or a metric that is at least so large there.

A cut that just meets ``precision>=0.9`` on its validation rows misses it on new data about every second time. Here a
cut is allowed only if a confidence limit of the constrained quantity meets the level.

- *Nested quantities*: recall, specificity, the false positive and negative rate, the rate of predicted positives move
  one way along the thresholds. There a limit for a single threshold serves all thresholds at once. The thresholds that
  break the constraint are those beyond some t*. A threshold beyond t* has at least as many rows that count against the
  constraint as t* has, so that it passes a test only if t* passes it as well, which happens with probability `error`
  at most. Constraints that are met by moving the threshold the same way are each tested at the whole error; for two
  ways the error is divided by two.
- *Precision* and the like, of a small sample: cuts at fixed ranks are tested by all rows (`ranks`).
- *Other quantities* (accuracy, F₁ …), and precision of larger samples: a pilot sample chooses cuts and where to begin,
  the other rows test them (`pilot`, `testing`). A cut is tested for all constraints together: it passes if it passes
  each of them, at the same error, since a cut that breaks any of them passes with probability `error` at most.

Without constraints the cut is the one that the pilot expects to be best, and the other rows give the limit of its
value: the limit of held-out data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from surecut._plurals import counted
from surecut.certificates.certificate import check_confidence
from surecut.certificates.limits import value_limit
from surecut.certificates.pilot import Pilot
from surecut.certificates.priors import is_defined, value_range
from surecut.certificates.quantities import NestedShare, SideShare, constraint_limit, nested_share, side_share
from surecut.certificates.ranks import MOST_ROWS, cuts_by_rank
from surecut.certificates.testing import passing, starting_weights
from surecut.constraints import InfeasibleError, listed
from surecut.core.tally import ScoreTally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.constraints import Constraint
    from surecut.core.candidates import Candidates
    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric

MOST_CUTS = 128
"""The number of cuts that are tested at most."""


def assured_cut(
    candidates: Candidates,
    metric: Metric,
    constraints: tuple[Constraint, ...],
    confidence: float,
    order: int = 0,
    labels: int = 1,
) -> Cut:
    """The cut with the largest value among those that meet every constraint on new data with the confidence.

    `candidates` are the cuts of one sample in numbers of rows, `order` is a hash of the order of the rows. With many
    labels, each has its share of the error.
    """
    allowed, by_pilot = allowed_cuts(candidates, metric, constraints, confidence, order, labels)
    cut = candidates.best_cut_among(metric, allowed)
    threshold = cut.interval[1] if by_pilot else cut.threshold  # the score that the pilot chose
    return replace(cut, threshold=threshold, constraints=constraints, confidence=confidence)


def allowed_cuts(
    candidates: Candidates,
    metric: Metric,
    constraints: tuple[Constraint, ...],
    confidence: float,
    order: int = 0,
    labels: int = 1,
) -> tuple[NDArray[np.bool_], bool]:
    """Which cuts meet every constraint on new data, all of them at once with the confidence; raise where none does.

    Where a pilot chose them (which is returned, too), a threshold has to be at the lowest score that it accepts.
    """
    check_confidence(confidence)
    require_known(constraints)
    asked = _Asked(candidates, constraints, confidence, order, labels)
    nested = [nested_share(one.quantity) for one in constraints]
    known = [one for one in nested if one is not None]
    if len(known) == len(nested):
        return asked.by_nesting(known), False
    if len(constraints) == 1 and candidates.given_prior is None and candidates.entries.rows.sum() <= MOST_ROWS:
        share = side_share(constraints[0].quantity)
        if share is not None:
            return asked.by_ranks(share), False
    return asked.by_pilot(metric), True


def require_known(constraints: Sequence[Constraint]) -> None:
    """Raise where a constraint bounds a function of which nothing is known."""
    for constraint in constraints:
        if not constraint.quantity.extremes_at_corners:
            raise ValueError(
                f"{constraint.quantity.name!r} is a function of which nothing is known: a constraint that holds on new "
                "rows needs a metric of the catalogue, a rate, or a LinearFractional metric"
            )


def limited_cut(candidates: Candidates, metric: Metric, confidence: float, order: int = 0) -> Cut:
    """The cut that a pilot expects to be best, and what the metric is at least on new data with the confidence."""
    check_confidence(confidence)
    pilot, prior = Pilot.of(candidates.entries, order), candidates.given_prior
    metric.check_classes(*candidates.entries.totals[0][::-1])
    values = pilot.expected_values(metric, prior)
    if not np.isfinite(values).any():
        raise InfeasibleError(f"there are too few rows to promise anything with confidence=: {_rows(candidates)}")
    edge = int(pilot.cuts[int(np.argmax(values))])
    allowed = np.zeros(len(candidates.entries) + 1, dtype=bool)
    allowed[edge] = True
    cut = candidates.best_cut_among(metric, allowed)
    cells = pilot.cells(edge)
    lower = value_range(metric)[0]
    if is_defined(metric, cells):
        lower = value_limit(metric, cells, 1 - confidence, prior)
    return replace(cut, threshold=cut.interval[1], confidence=confidence, lower_limit=min(lower, cut.value))


def without_pilot(tally: ScoreTally) -> ScoreTally:
    """The rows that did not choose the cut of `limited_cut`, which are held-out data for it."""
    others = Pilot.of(tally.entries, tally.order).others
    left = others.any(axis=1)
    rows = others[left]
    return replace(tally, keys=tally.keys[left], rows=rows, weight=rows, squares=rows, checksum=0)


@dataclass(frozen=True)
class _Asked:
    """Constraints, the cuts of a sample, and the confidence with which the constraints of all labels hold together."""

    candidates: Candidates
    constraints: tuple[Constraint, ...]
    confidence: float
    order: int
    labels: int

    @property
    def error(self) -> float:
        """The part of one label."""
        return (1 - self.confidence) / self.labels

    def by_nesting(self, nested: list[NestedShare]) -> NDArray[np.bool_]:
        """Which cuts are allowed by constraints on nested quantities."""
        candidates = self.candidates
        ways = {share.met_above(one.sense) for share, one in zip(nested, self.constraints, strict=True)}
        allowed = np.ones(len(candidates.entries) + 1, dtype=bool)
        for share, one in zip(nested, self.constraints, strict=True):
            limits = share.limits(candidates.confusion, one.sense, self.error / len(ways), candidates.given_prior)
            met = one.allows(limits) & one.is_met(candidates.at_prior())  # an undefined quantity meets no level
            if not met.any():
                raise self.infeasible(one, float(np.max(limits) if one.sense == ">=" else np.min(limits)))
            allowed &= met
        if not allowed.any():
            raise InfeasibleError(
                f"each of {listed(self.constraints)} can be promised for some cut, but all of them for none"
            )
        return allowed

    def by_ranks(self, share: SideShare) -> NDArray[np.bool_]:
        """Which cuts pass the tests at fixed ranks, by a constraint on the rows of one side of the cut."""
        (constraint,) = self.constraints
        allowed, best = cuts_by_rank(self.candidates.entries, constraint, share, self.error, self.order)
        if not allowed.any():
            raise self.infeasible(constraint, best)
        return allowed

    def by_pilot(self, metric: Metric) -> NDArray[np.bool_]:
        """Which of the cuts that a pilot chose pass the tests by the other rows."""
        pilot, prior = Pilot.of(self.candidates.entries, self.order).thinned(MOST_CUTS), self.candidates.given_prior
        signs = [1 if one.sense == ">=" else -1 for one in self.constraints]
        margins = np.full(len(pilot), np.inf)
        for one, sign in zip(self.constraints, signs, strict=True):
            found = sign * pilot.expected_margins(one.quantity, one.level, prior)
            margins = np.minimum(margins, np.where(np.isfinite(found), found, -np.inf))
        if not np.isfinite(margins).any():
            raise self.infeasible()

        def limits(cut: int, error: float) -> list[float]:
            cells = pilot.cells(int(pilot.cuts[cut]))
            return [constraint_limit(one, cells, error, prior) for one in self.constraints]

        def passes(cut: int, error: float) -> bool:
            return all(one.allows(limit) for one, limit in zip(self.constraints, limits(cut, error), strict=True))

        weights = starting_weights(margins, pilot.uncertainty)
        passed = passing(passes, weights, pilot.expected_values(metric, prior), self.error)
        if not passed:
            tried = [limits(cut, self.error * float(weights[cut])) for cut in np.flatnonzero(weights).tolist()]
            raise self._none_passed(np.array(tried))
        allowed = np.zeros(len(self.candidates.entries) + 1, dtype=bool)
        allowed[pilot.cuts[passed]] = True
        return allowed

    def infeasible(self, constraint: Constraint | None = None, best: float = np.nan) -> InfeasibleError:
        """The error where no cut can be promised: the best level of a constraint that can be, if any."""
        which = constraint or listed(self.constraints)
        if constraint is None or np.isnan(best) or constraint.allows(best):
            return InfeasibleError(f"no cut meets {which} {self._where}: there are too few rows to promise anything")
        end = "highest" if constraint.sense == ">=" else "lowest"
        return InfeasibleError(
            f"no cut meets {which} {self._where}: the {end} {constraint.quantity.name} that can be promised is "
            f"{best:.6g}"
        )

    def _none_passed(self, tried: NDArray[np.float64]) -> InfeasibleError:
        """The error where no cut passes, from the limits of the constraints at the cuts that were tried first."""
        tried = tried[~np.isnan(tried).any(axis=1)]
        if not len(tried):
            return self.infeasible()
        if len(self.constraints) == 1:
            (one,) = self.constraints
            return self.infeasible(one, float(tried.max() if one.sense == ">=" else tried.min()))
        signs = np.array([1 if one.sense == ">=" else -1 for one in self.constraints])
        levels = np.array([one.level for one in self.constraints])
        closest = tried[int(np.argmax((signs * (tried - levels)).min(axis=1)))]
        told = ", ".join(
            f"{one.quantity.name} is {'at least' if one.sense == '>=' else 'at most'} {limit:.6g}"
            for one, limit in zip(self.constraints, closest.tolist(), strict=True)
        )
        return InfeasibleError(
            f"no cut meets {listed(self.constraints)} {self._where}, all of them at once: where they come closest, "
            f"{told}"
        )

    @property
    def _where(self) -> str:
        together = f", {self.labels:,} labels together," if self.labels > 1 else ""
        return f"with {100 * self.confidence:.4g} % confidence{together} from {_rows(self.candidates)}"


def _rows(candidates: Candidates) -> str:
    return counted(int(candidates.entries.totals[0].sum()), "row")
