"""Conditions that a cut must meet: `precision>=0.9`, `predicted_positive_rate<=0.01`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surecut._inputs import plain_name
from surecut.confusion import Confusion
from surecut.metrics import ALIASES, CATALOGUE, WITH_PARAMETERS, CellRatio, Metric, get_metric

TOLERANCE = 1e-12
"""A level counts as reached when it is missed by no more than this, which is rounding."""


class InfeasibleError(ValueError):
    """No cut of these scores meets the constraint."""


@dataclass(frozen=True)
class Rate(CellRatio):
    """A share that a constraint may bound; not a metric, since larger is not better."""

    on_hull = False
    value_range = (0, 1)


RATES = {
    rate.name: rate
    for rate in (
        Rate((1, 1, 0, 0), (1, 1, 1, 1), name="predicted_positive_rate"),
        Rate((0, 1, 0, 0), (0, 1, 0, 1), name="false_positive_rate"),
        Rate((0, 0, 1, 0), (1, 0, 1, 0), name="false_negative_rate"),
        Rate((0, 1, 0, 0), (1, 1, 0, 0), name="false_discovery_rate"),
        Rate((0, 0, 1, 0), (0, 0, 1, 1), name="false_omission_rate"),
    )
}
RATE_ALIASES = {"fpr": "false_positive_rate", "fnr": "false_negative_rate", "fdr": "false_discovery_rate"}


@dataclass(frozen=True)
class Constraint:
    """A quantity, a sense (`>=` or `<=`) and a level.

    >>> parse_constraints("precision >= 0.9")
    (Constraint(quantity=Precision(), sense='>=', level=0.9),)
    """

    quantity: Metric
    sense: str
    level: float

    def __post_init__(self) -> None:
        if self.sense not in (">=", "<="):
            raise ValueError(f"the sense of a constraint must be >= or <=, got {self.sense!r}")
        if not np.isfinite(self.level):
            raise ValueError(
                f"the level of a constraint must be finite, got {self.quantity.name}{self.sense}{self.level}"
            )
        least, largest = self.quantity.value_range
        if not least - TOLERANCE <= self.level <= largest + TOLERANCE:
            is_percent = least == 0 and 1 < self.level <= 100
            hint = f"; for {self.level:g} percent write {self.level:g}% or {self.level / 100:g}" if is_percent else ""
            raise ValueError(
                f"{self.quantity.name} lies between {least:.3g} and {largest:g}, and so must its level in a "
                f"constraint, got {self}{hint}"
            )

    def is_met(self, confusion: Confusion) -> Any:
        """Whether each confusion meets the level; an undefined quantity meets none."""
        return self.allows(self.quantity.evaluate(confusion))

    def allows(self, value: Any) -> Any:
        """Whether each value of the quantity, or a limit of it, meets the level; NaN does not."""
        with np.errstate(invalid="ignore"):
            if self.sense == ">=":
                return np.asarray(value >= self.level - TOLERANCE)
            return np.asarray(value <= self.level + TOLERANCE)

    def is_met_by_any(self, corners: Sequence[Confusion]) -> Any:
        """Whether the level can be met inside a box of confusions: its extremes stand at the box's corners.

        A corner where the quantity is undefined says nothing about what is beside it.
        """
        undefined = [np.isnan(np.asarray(self.quantity.evaluate(corner), dtype=float)) for corner in corners]
        return np.logical_or.reduce([*(self.is_met(corner) for corner in corners), *undefined])

    def __str__(self) -> str:
        return f"{_spelled(self.quantity)}{self.sense}{_short(self.level)}"


ConstraintLike = str | Constraint | tuple[Any, ...]


def parse_constraints(constraint: ConstraintLike | Iterable[ConstraintLike] | None) -> tuple[Constraint, ...]:
    """Constraints out of a string, a tuple (name, level), or a list of either, which may be empty.

    >>> parse_constraints([]) == parse_constraints(()) == parse_constraints(None) == ()
    True
    """
    if constraint is None or constraint == ():
        return ()
    if isinstance(constraint, (str, Constraint, tuple)):
        return (_parse(constraint),)
    return tuple(_parse(one) for one in constraint)


def listed(constraints: Iterable[Constraint]) -> str:
    """Constraints for people."""
    return " and ".join(map(str, constraints))


def _spelled(quantity: Metric) -> str:
    """The quantity as `_quantity` reads it: by name, and with its parameters where a name does not determine it."""
    if quantity.name not in WITH_PARAMETERS:
        return quantity.name
    parameters = (f"{name}={_short(value)}" for name, value in quantity.parameters().items())
    return f"{quantity.name}({', '.join(parameters)})"


def _short(number: float) -> str:
    """A number in few digits, if these are all that it has."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def parse_parts(
    constraint: ConstraintLike, find: Callable[[Any], Metric], option: str = "constraint="
) -> tuple[Metric, str, float]:
    """The quantity, the sense and the level of what a person writes; `find` knows quantities by their names.

    `option` is where a list of them goes, for messages.
    """
    if isinstance(constraint, str):
        match = re.fullmatch(r"\s*([\w.\- ]+?(?:\([^()]*\))?)\s*(>=|<=|≥|≤)\s*([-+.\deE/]+)\s*(%?)\s*", constraint)
        if match is None:
            parts = [part.strip() for part in re.split(r"\band\b|[,;&]+", constraint)]
            if len(parts) > 1 and all(re.search("[<>=≥≤]", part) for part in parts):
                raise ValueError(f"{constraint!r} is several constraints: pass a list, {option}{parts}")
            raise ValueError(f"expected a constraint like 'precision>=0.9', with >= or <=, got {constraint!r}")
        name, sense, level, percent = match.groups()
        number = _number(level, constraint) / (100 if percent else 1)
        return find(name), sense.replace("≥", ">=").replace("≤", "<="), number
    if isinstance(constraint, (tuple, list)) and len(constraint) == 2:
        quantity = find(constraint[0])
        return quantity, "<=" if isinstance(quantity, Rate) else ">=", _number(constraint[1], constraint)
    if isinstance(constraint, (tuple, list)) and len(constraint) == 3 and constraint[1] in (">=", "<="):
        return find(constraint[0]), constraint[1], _number(constraint[2], constraint)
    raise ValueError(f"expected a constraint like ('precision', 0.9) or ('fpr', '<=', 0.1), got {constraint!r}")


def _parse(constraint: ConstraintLike) -> Constraint:
    return constraint if isinstance(constraint, Constraint) else Constraint(*parse_parts(constraint, _quantity))


def _number(level: Any, constraint: Any) -> float:
    try:
        part, divided, whole = str(level).partition("/")
        return float(part) / float(whole) if divided else float(level)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ValueError(f"the level of a constraint must be a number, got {constraint!r}") from None


def _quantity(name: Any) -> Metric:
    if not isinstance(name, str) or "(" in name:
        return get_metric(name)
    plain = plain_name(name)
    plain = RATE_ALIASES.get(plain, plain)
    if plain in RATES:
        return RATES[plain]
    try:
        return get_metric(plain)
    except ValueError as error:
        near_rate = difflib.get_close_matches(plain, [*RATES, *RATE_ALIASES], n=1, cutoff=0.6)
        near_metric = difflib.get_close_matches(plain, [*CATALOGUE, *ALIASES], n=1, cutoff=0.8)
        if near_rate and not near_metric:
            raise ValueError(f"unknown quantity {name!r} in a constraint: did you mean {near_rate[0]!r}?") from None
        raise ValueError(f"{error}. In a constraint also: {', '.join(RATES)}") from None
