"""Whether an answer is right: compared with every threshold in exact arithmetic, as far as floats can promise.

Without weights, and with a metric whose float arithmetic is exact on counts, ties are exact and only the best cut
with the highest threshold is accepted. Otherwise an answer may differ by rounding, of two kinds. Values carry some
units in the last place of the metric's extreme values: the tie rule's own tolerance, from half of which on a tie must
be seen, and beyond one and a half of which none may be. And sums of float weights carry rounding of their own: every
cell that is not zero is taken for anything within the error bound of a plain sum, and what follows is accepted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.measures import Condition, Formula, Measure
from oracle import Attempt, Oracle, largest_of

TIE = Fraction(1, 10**12)
ROUNDING = 16 * Fraction(np.finfo(float).eps)
"""Half of it is what a tie rule must forgive; one and a half of it what it may."""

MET, NEARLY_MET = Fraction(9, 10**13), Fraction(11, 10**13)
"""A constraint is met if it is missed by 1e-12 at most: certainly below, possibly up to."""


CELLS = 4
"""So many times the error of a plain sum a cell may be off: sums are made of sums. Zeros must be zeros all the same."""


class Problem:
    """Rows to tune on, and every threshold of them, tried once."""

    def __init__(
        self,
        labels: Any,
        scores: Any,
        weights: Any = None,
        *,
        absent: float | None = None,
        prior: float | None = None,
    ) -> None:
        self.labels, self.scores, self.weights = np.asarray(labels), np.asarray(scores), weights
        self.prior, self.scale = prior, 1
        # A plain sum of n terms is off by less than n units in the last place, and a difference of two by twice that.
        rounds = weights is not None and (any(float(w) % 1 for w in weights) or math.fsum(weights) >= 2.0**53)
        self.error = Fraction(2 * (len(self.labels) + 4), 2**53) if rounds else Fraction(0)
        self.value_error = max(self.error, Fraction(16, 2**53) if prior is not None else Fraction(0))
        whole = None
        if weights is not None:
            exact = [Fraction(float(weight)) for weight in weights]
            self.scale = max(weight.denominator for weight in exact)  # powers of two, so that the largest serves all
            self.scale <<= 60 if rounds else 0  # errors are whole numbers, too
            whole = [int(weight * self.scale) for weight in exact]
        self.attempts: list[Attempt] = Oracle.attempts(self.labels, self.scores, whole, absent=absent)
        self.present = np.ones(len(self.labels), bool) if weights is None else np.asarray(weights) > 0
        tp, fp, fn, tn = self.attempts[0].cells
        self.positives, self.negatives = tp + fn, fp + tn

    @property
    def float_prior(self) -> float:
        if self.prior is not None:
            return self.prior
        return float(Fraction(self.positives, self.positives + self.negatives))

    def seen(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        """The cells as a metric sees them: at a prior that was given, each class is weighed anew."""
        if self.prior is None:
            return cells
        prior = Fraction(self.prior)
        positive, negative = prior.numerator * self.negatives, (prior.denominator - prior.numerator) * self.positives
        tp, fp, fn, tn = cells
        return tp * positive, fp * negative, fn * positive, tn * negative

    def attainable(self, formula: Formula) -> list[Any]:
        """The value of every threshold."""
        return [formula(*self.seen(attempt.cells)) for attempt in self.attempts]

    def ranges(self, formula: Formula, *, monotone: bool = False) -> list[tuple[Any, Any, Any, bool]]:
        """For every threshold the exact value, the least and largest that floats may see, and whether it is surely
        defined."""
        found = []
        for attempt in self.attempts:
            cells = self.seen(attempt.cells)
            value = formula(*cells)
            if not self.value_error:
                found.append((value, value, value, value is not None))
                continue
            seen = [formula(*nearby) for nearby in self._nearby(cells, monotone)]
            defined = [one for one in [value, *seen] if one is not None]
            sure = len(defined) == len(seen) + 1
            found.append((value, min(defined, default=None), max(defined, default=None), sure))
        return found

    def _nearby(self, cells: tuple[Any, ...], monotone: bool) -> list[tuple[Any, ...]]:
        tp, fp, fn, tn = cells
        of_positive, of_negative = (math.ceil(self.value_error * whole) for whole in (tp + fn, fp + tn))
        nearby = []
        for up in (-1, 1):
            for right in (-1, 1):
                if not monotone or up == right:
                    first = _moved(tp, fn, -up * of_positive)
                    second = _moved(tn, fp, -right * of_negative)
                    nearby.append((first[0], second[1], first[1], second[0]))
        return nearby

    def cells_complaint(self, found: tuple[Any, ...], chosen: int) -> tuple[str, str] | None:
        """What is wrong with a confusion at one of the thresholds."""
        tp, fp, fn, tn = exact = self.attempts[chosen].cells
        for name, one, true, whole in zip(
            ("tp", "fp", "fn", "tn"), found, exact, (tp + fn, fp + tn, tp + fn, fp + tn), strict=True
        ):
            if not math.isfinite(one) or abs(Fraction(float(one)) * self.scale - true) > CELLS * self.error * whole:
                return "confusion", f"{name} is {one!r}, expected {float(Fraction(true) / self.scale)!r}"
            if true == 0 and one != 0:
                return "confusion not zero", f"{name} is {one!r}, expected 0"
        return None

    def largest_corner(self, measure: Measure) -> Fraction:
        """The metric's largest absolute value at the corners of what could be predicted."""
        positives, negatives = self.positives, self.negatives
        corners = [(positives, 0, 0, negatives), (positives, negatives, 0, 0)]
        corners += [(0, 0, positives, negatives), (0, negatives, positives, 0)]
        values = [measure.formula(*self.seen(corner)) for corner in corners]
        return max((abs(Fraction(v)) for v in values if v is not None and math.isfinite(v)), default=Fraction(0))


def _moved(right: Any, wrong: Any, shift: Any) -> tuple[Any, Any]:
    """Weight moved between two cells of a class; what is zero stays zero, and what comes near zero may be it."""
    if right == 0 or wrong == 0:
        return right, wrong
    shift = max(-right, min(wrong, shift))
    return right + shift, wrong - shift


@dataclass
class Found:
    """What a path answers for one problem."""

    threshold: float
    value: float | None
    predicted: Any
    """Of the problem's rows."""
    interval: tuple[float, float] | None = None
    cells: tuple[Any, Any, Any, Any] | None = None


@dataclass
class Candidate:
    value: Any
    low: Any
    high: Any
    sure: bool


class Verdict:
    """What the oracle says about a problem, a metric and constraints."""

    def __init__(
        self, problem: Problem, measure: Measure, conditions: tuple[Condition, ...], only: list[int] | None = None
    ) -> None:
        self.problem, self.measure = problem, measure
        self.refused = measure.is_refused(problem.positives, problem.negatives)
        self.candidates: dict[int, Candidate] = {}
        if self.refused:
            return
        allowed = [2] * len(problem.attempts)
        for condition in conditions:
            for i, (value, low, high, sure) in enumerate(problem.ranges(condition.formula)):
                allowed[i] = min(allowed[i], _allowed(condition, value, low, high, sure))
        self.attempted = [i for i in range(len(allowed)) if only is None or i in only]
        self.meets_none = not any(allowed[i] for i in self.attempted)
        for i, (value, low, high, sure) in enumerate(problem.ranges(measure.formula, monotone=measure.bounded)):
            if i in self.attempted and high is not None and allowed[i]:
                self.candidates[i] = Candidate(value, low, high, sure and allowed[i] == 2)
        exact = measure.exact and problem.weights is None and problem.prior is None
        self.rounding = Fraction(0) if exact else ROUNDING * max(problem.largest_corner(measure), measure.scale)
        sure = [candidate.low for candidate in self.candidates.values() if candidate.sure]
        self.surely = max(sure, default=-math.inf)
        self.possibly = max((candidate.high for candidate in self.candidates.values()), default=-math.inf)
        self.tolerance = TIE * abs(_finite(self.surely)) + self.rounding

    @property
    def must_raise(self) -> bool:
        return self.refused or not self.candidates

    @property
    def may_raise(self) -> bool:
        return self.must_raise or self.surely == -math.inf

    def complaint(self, found: Found) -> tuple[str, str] | None:
        """What is wrong with an answer, as a kind and in words; None if it is right."""
        problem = self.problem
        lowest = [attempt.lowest for attempt in problem.attempts]
        clipped = np.minimum(problem.scores.astype(float), largest_of(problem.scores))
        accepted = set(clipped[problem.present & np.asarray(found.predicted)].tolist())
        rejected = set(clipped[problem.present & ~np.asarray(found.predicted)].tolist())
        chosen = sum(one in accepted for one in lowest)
        if accepted & rejected or accepted != set(lowest[1 : chosen + 1]):
            return "predictions", f"the threshold {found.threshold!r} does not part the scores as thresholds do"
        if self.must_raise:
            return (
                "answered",
                f"value {found.value!r} at threshold {found.threshold!r}, but no cut is allowed and defined",
            )
        best = self._best()
        if chosen not in self.candidates:
            return "not allowed", f"chose {self._said(chosen)}, undefined or not allowed; best is {best}"
        here = self.candidates[chosen]
        if not _at_least(here.high, self.surely, Fraction(3, 2) * self.tolerance):
            return "worse", f"chose {self._said(chosen)}; best is {best}"
        for i in sorted(self.candidates):
            higher = self.candidates[i]
            if i < chosen and higher.sure and _at_least(higher.low, self.possibly, self.tolerance / 2):
                return "tie", f"chose {self._said(chosen)}, and the higher {self._said(i)} ties"
        if found.value is not None and not self._is_value(found.value, here):
            return "value", f"says {found.value!r} at {self._said(chosen)}"
        if found.interval is not None:
            lower = lowest[chosen + 1] if chosen + 1 < len(lowest) else -math.inf
            if tuple(found.interval) != (lower, lowest[chosen]):
                return "interval", f"says {found.interval}, expected {(lower, lowest[chosen])}"
            if not (found.threshold == lowest[chosen] or lower < found.threshold <= lowest[chosen]):
                return "interval", f"the threshold {found.threshold!r} is not in {(lower, lowest[chosen])}"
        if found.cells is not None:
            return problem.cells_complaint(found.cells, chosen)
        return None

    def bracket_complaint(self, lower: float, upper: float) -> tuple[str, str] | None:
        """Whether a bracket holds the best value of all cuts."""
        if not self.candidates:
            return None
        slack = Fraction(2) * self.tolerance
        if not _at_least(self.possibly, lower, slack):
            return "bracket", f"lower end {lower!r}, and the best is {self._best()}"
        if not _at_least(upper, self.surely, slack):
            return "bracket", f"upper end {upper!r}, and the best is {self._best()}"
        return None

    def _is_value(self, value: float, here: Candidate) -> bool:
        if math.isnan(value):
            return False
        slack = Fraction(3, 2) * (TIE * abs(_finite(here.high)) + self.rounding)
        return _at_least(value, here.low, slack) and _at_least(here.high, value, slack)

    def _best(self) -> str:
        ordered = [i for i in sorted(self.candidates) if _at_least(self.candidates[i].high, self.surely, Fraction(0))]
        return self._said(ordered[0]) if ordered else "none"

    def _said(self, i: int) -> str:
        attempt = self.problem.attempts[i]
        value = self.candidates[i].value if i in self.candidates else None
        cells = tuple(float(Fraction(cell) / self.problem.scale) for cell in attempt.cells)
        shown = "undefined" if value is None else f"{float(value)!r}"
        return f"{shown} at >= {attempt.lowest!r} (tp, fp, fn, tn = {cells})"


def _finite(value: Any) -> Fraction:
    return Fraction(value) if math.isfinite(value) else Fraction(0)


def _at_least(value: Any, other: Any, slack: Fraction) -> bool:
    """value >= other − slack, where both may be infinite."""
    if math.isfinite(value) and math.isfinite(other):
        return Fraction(value) >= Fraction(other) - slack
    return bool(value >= other)


def _allowed(condition: Condition, value: Any, low: Any, high: Any, sure: bool) -> int:
    """2 where a constraint is surely met, 1 where it may be, 0 where it is not."""
    if high is None:
        return 0
    level = Fraction(condition.constraint.level)
    above = condition.constraint.sense == ">="
    least, most = (low, high) if above else (-high, -low)
    wanted = level if above else -level
    if sure and least >= wanted - MET:
        return 2
    return int(most >= wanted - NEARLY_MET)
