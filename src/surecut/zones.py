"""Zones of one score: what is asked of each, and what a row in it is worth.

Thresholds divide a score into zones, from the lowest scores to the highest. What is inside a zone is a `Confusion`: its
positives are `tp`, its negatives `fp`, the rows outside of it `fn` and `tn`. So the share of positives in a zone (PPV),
the share of negatives (NPV), the share of all rows, of all positives or of all negatives are ratios of cells, and a
condition is a constraint on one of them. An empty zone has no PPV and no NPV, and breaks no condition on them.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import plain_name
from surecut.confusion import Confusion
from surecut.constraints import TOLERANCE, Constraint, ConstraintLike, Rate, parse_parts
from surecut.metrics import LinearFractionalMetric, Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Cells, WholeRatio

QUANTITIES = {
    rate.name: rate
    for rate in (
        Rate((1, 0, 0, 0), (1, 1, 0, 0), name="ppv"),
        Rate((0, 1, 0, 0), (1, 1, 0, 0), name="npv"),
        Rate((1, 1, 0, 0), (1, 1, 1, 1), name="share"),
        Rate((1, 0, 0, 0), (1, 0, 1, 0), name="recall"),
        Rate((0, 1, 0, 0), (0, 1, 0, 1), name="specificity"),
        Rate((0, 1, 0, 0), (1, 1, 0, 0), name="false_discovery_rate"),
        Rate((1, 0, 0, 0), (1, 1, 0, 0), name="false_omission_rate"),
        Rate((1, 0, 0, 0), (1, 0, 1, 0), name="false_negative_rate"),
        Rate((0, 1, 0, 0), (0, 1, 0, 1), name="false_positive_rate"),
    )
}
"""What a condition can bound: of the rows inside a zone. Recall and the false negative rate are both the share of all
positives that are inside: which of the two it is depends on what is done with the zone. So are specificity and the
false positive rate."""

QUANTITY_ALIASES = {
    "precision": "ppv",
    "positive_predictive_value": "ppv",
    "negative_predictive_value": "npv",
    "predicted_positive_rate": "share",
    "rate": "share",
    "sensitivity": "recall",
    "tpr": "recall",
    "true_positive_rate": "recall",
    "tnr": "specificity",
    "true_negative_rate": "specificity",
    "fdr": "false_discovery_rate",
    "for": "false_omission_rate",
    "fnr": "false_negative_rate",
    "fpr": "false_positive_rate",
}

AT_MOST = frozenset(
    {"share", "false_discovery_rate", "false_omission_rate", "false_negative_rate", "false_positive_rate"}
)
"""Quantities that a pair without a sense bounds from above: ``("share", 0.2)``."""

LARGEST_GAIN = 1e100
"""Sums of larger ones may overflow."""

ConditionsLike = ConstraintLike | Iterable[ConstraintLike]
Gain = float | tuple[float, float]


@dataclass(frozen=True)
class Condition(Constraint):
    """A constraint on what is inside a zone; an empty zone, where the quantity is 0/0, meets it.

    Attributes
    ----------
    zone
        The position of the zone, 0 for the one with the lowest scores.
    """

    zone: int = 0

    def is_met(self, confusion: Confusion) -> Any:
        """Whether each confusion (of what is inside the zone) meets the level, or has no rows inside."""
        values = self.quantity.evaluate(confusion)
        return self.allows(values) | np.isnan(values)

    def __str__(self) -> str:
        return f"{self.quantity.name}{self.sense}{self.level:.6g}"

    @property
    def moves_one_way(self) -> bool:
        """Whether the quantity grows with every row that a zone takes in, as shares of fixed totals do."""
        _, (tp, fp, fn, tn) = self.quantity.cells(1, 1)  # type: ignore[attr-defined]  # a Rate
        return bool((tp, fp) == (fn, tn))

    def below_a_cut(self) -> Condition:
        """The same of the confusion of a cut: the lowest zone is what the cut rejects."""
        (tp, fp, fn, tn), (of_tp, of_fp, of_fn, of_tn) = self.quantity.cells(1, 1)  # type: ignore[attr-defined]
        turned = Rate((fn, tn, tp, fp), (of_fn, of_tn, of_tp, of_fp), name=self.quantity.name)
        return replace(self, quantity=turned)


@dataclass(frozen=True)
class BoundaryGain(LinearFractionalMetric):
    """What is gained per row where a boundary between two zones is a cut: rows above it are worth more, or less."""

    positive: float
    negative: float
    name = "gain"

    @property
    def falls_with_errors(self) -> bool:  # type: ignore[override]
        return self.negative <= 0 <= self.positive

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (self.positive, self.negative, 0, 0), (1, 1, 1, 1)

    def check_monotone(self, prior: Any) -> None:
        """It may grow with errors: `best_corner` knows."""

    def best_corner(self, before: Confusion, after: Confusion) -> Confusion:
        of_positives = after if self.positive >= 0 else before
        of_negatives = after if self.negative > 0 else before
        return Confusion(tp=of_positives.tp, fp=of_negatives.fp, fn=of_positives.fn, tn=of_negatives.tn)

    def in_accepted(self, positives: Any, negatives: Any) -> WholeRatio | None:
        return super().in_accepted(positives, negatives) if self.falls_with_errors else None


def parse_conditions(
    given: Mapping[str, ConditionsLike],
    zones: Sequence[str],
    *,
    upper: ConditionsLike | None = None,
    lower: ConditionsLike | None = None,
) -> tuple[Condition, ...]:
    """Conditions on zones, by their names; `upper` and `lower` are more of them on the highest and the lowest one.

    >>> [str(one) for one in parse_conditions({"ask": "share <= 20%", "no": ["npv>=0.95"]}, ("no", "ask", "yes"))]
    ['npv>=0.95', 'share<=0.2']
    """
    found: list[Condition] = []
    named = [*_by_zone(given, zones, "conditions={'ask': 'share<=0.2'}").items(), (zones[-1], upper), (zones[0], lower)]
    for name, conditions in named:
        for one in _each(conditions):
            quantity, sense, level = _parts(one)
            _require_meant(quantity.name, sense, level, name, zones)
            condition = Condition(quantity, sense, level, list(zones).index(name))
            if condition not in found:
                found.append(condition)
    for one, other in itertools.permutations(found, 2):
        is_pair = one.zone == other.zone and one.quantity == other.quantity
        if is_pair and one.sense == ">=" and other.sense == "<=" and one.level > other.level + TOLERANCE:
            raise ValueError(f"{one} and {other} in {zones[one.zone]!r} contradict each other")
    return tuple(sorted(found, key=lambda condition: condition.zone))


def _require_meant(quantity: str, sense: str, level: float, name: str, zones: Sequence[str]) -> None:
    """Raise where a condition on an outer zone asks for rows that do not belong there.

    High scores speak for positives. So the highest zone is not asked for more negatives, nor the lowest one for more
    positives; the rates of a cut say the opposite in a zone: a rule-out threshold of sensitivity 0.95 leaves 5 % of the
    positives in the lowest zone, not 95 %.
    """
    of_positives = {"ppv", "recall", "false_negative_rate", "false_omission_rate"}
    asks_for_positives = (quantity in of_positives) == (sense == ">=")
    if quantity == "share" or name not in (zones[0], zones[-1]) or asks_for_positives == (name == zones[-1]):
        return
    if (quantity, sense) in (("recall", "<="), ("specificity", "<=")):  # how much a zone may take
        return
    condition = f"{quantity}{sense}{level:.6g}"
    turned = {("recall", ">="): "fnr", ("specificity", ">="): "fpr"}.get((quantity, sense))
    other, option = (zones[0], "lower") if name == zones[-1] else (zones[-1], "upper")
    if turned is not None:
        rows = "positives" if turned == "fnr" else "negatives"
        way_out = f"for at most {1 - level:.6g} of the {rows} there write {turned}<={1 - level:.6g}"
    elif (quantity, sense) in (
        ("ppv", ">="),
        ("npv", ">="),
        ("false_positive_rate", "<="),
        ("false_negative_rate", "<="),
    ):
        way_out = f"for the zone {other!r} write {option}='{condition}'"
    else:
        way_out = f"did you mean {quantity}{'>=' if sense == '<=' else '<='}{level:.6g}?"
    wrong = "negatives into the zone of the highest" if name == zones[-1] else "positives into the zone of the lowest"
    raise ValueError(f"{condition} in {name!r} asks for more {wrong} scores: {way_out}")


def _by_zone(given: Any, zones: Sequence[str], example: str) -> Mapping[str, Any]:
    """What is given for each of some zones; raise where that is no mapping, or names another zone."""
    if not isinstance(given, Mapping):
        raise ValueError(f"expected what is asked of each zone, by its name, such as {example}, got {given!r}")
    for name in given:
        if name not in zones:
            raise ValueError(f"there is no zone {name!r}: the zones are {', '.join(map(repr, zones))}")
    return given


def _each(given: ConditionsLike | None) -> list[ConstraintLike]:
    """The conditions of a zone as a list: there may be none, and one may stand alone."""
    if given is None:
        return []
    if isinstance(given, (str, tuple, Constraint)):
        return [given]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"expected a condition on a zone like 'ppv>=0.9', or a list of such, got {given!r}")
    return list(given)


def _parts(condition: ConstraintLike) -> tuple[Metric, str, float]:
    if isinstance(condition, Constraint):
        return find_quantity(condition.quantity.name), condition.sense, condition.level
    if isinstance(condition, tuple) and len(condition) == 2:
        quantity, _, level = parse_parts(condition, find_quantity, "")
        return quantity, "<=" if quantity.name in AT_MOST else ">=", level
    return parse_parts(condition, find_quantity, "")


def find_quantity(name: Any) -> Metric:
    """The quantity of a zone with a name.

    >>> find_quantity("precision").name
    'ppv'
    """
    plain = plain_name(str(name))
    plain = QUANTITY_ALIASES.get(plain, plain)
    if plain in QUANTITIES:
        return QUANTITIES[plain]
    near = difflib.get_close_matches(plain, [*QUANTITIES, *QUANTITY_ALIASES], n=1, cutoff=0.6)
    hint = f": did you mean {near[0]!r}?" if near else "."
    raise ValueError(f"unknown quantity {name!r} of a zone{hint} A condition bounds one of {', '.join(QUANTITIES)}")


def parse_gains(given: Mapping[str, Gain], zones: Sequence[str]) -> NDArray[np.float64]:
    """Gains per zone and class: a pair (of a negative row, of a positive row), or one number for both; 0 elsewhere.

    >>> parse_gains({"yes": (-5, 1), "ask": -0.5}, ("no", "ask", "yes")).tolist()
    [[0.0, 0.0], [-0.5, -0.5], [-5.0, 1.0]]
    """
    gains = np.zeros((len(zones), 2))
    for name, gain in _by_zone(given, zones, "gains={'ask': -0.5}").items():
        pair = gain if isinstance(gain, (tuple, list, np.ndarray)) else (gain, gain)
        try:
            negative, positive = (float(one) for one in pair)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"the gain of {name!r} must be a number, or a pair (if negative, if positive), got {gain!r}"
            ) from None
        if not max(abs(negative), abs(positive)) <= LARGEST_GAIN:
            raise ValueError(f"the gains of {name!r} must be finite, and at most {LARGEST_GAIN:g}, got {gain!r}")
        gains[list(zones).index(name)] = negative, positive
    return gains
