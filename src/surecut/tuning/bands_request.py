"""What is asked of bands: one object, validated once, wherever the rows are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from surecut.core.zone_task import Aim, ZoneTask
from surecut.metrics import LinearFractionalMetric, get_metric
from surecut.tuning.request import check_options
from surecut.zones import ConditionsLike, Gain, parse_conditions, parse_gains

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.rules import Objective
    from surecut.metrics import Metric
    from surecut.tuning.request import MetricLike
    from surecut.zones import Condition

TRIAGE = ("no", "ask", "yes")


@dataclass(frozen=True)
class BandsRequest:
    """A validated request for bands. `BandsRequest.of` makes one from what a person writes."""

    task: ZoneTask
    has_gains: bool = False
    confidence: float | None = None
    weights: str | None = None
    stable: bool = False
    pos_label: Any = None
    missing: str = "error"
    random_state: Any = 0

    @classmethod
    def of(
        cls,
        *,
        upper: ConditionsLike | None = None,
        lower: ConditionsLike | None = None,
        conditions: Mapping[str, ConditionsLike] | None = None,
        gains: Mapping[str, Gain] | None = None,
        zones: Sequence[str] = TRIAGE,
        metric: MetricLike | None = None,
        confidence: float | None = None,
        weights: str | None = None,
        prior: float | None = None,
        stable: bool = False,
        pos_label: Any = None,
        missing: str = "error",
        random_state: Any = 0,
        by: Sequence[Any] = (),
    ) -> BandsRequest:
        """Validate what was asked for, by itself and together."""
        names = _checked_names(zones)
        met = parse_conditions(conditions or {}, names, upper=upper, lower=lower)
        ratio = None if metric is None else _checked_ratio(get_metric(metric))
        aim = _aim_of(names, met, ratio, gains)
        check_options(confidence, weights, prior, stable, missing, random_state)
        if confidence is not None and not met:
            raise ValueError("confidence= is for conditions, which zones keep on new data: add upper= or lower=")
        if confidence is not None and stable:
            raise ValueError(
                "confidence= chooses thresholds by tests of its own: leave out stable=True, or certify stable bands on "
                "held-out rows"
            )
        if by and prior is not None:
            raise ValueError("prior= is for one sample: groups have class balances of their own; tune each by itself")
        task = ZoneTask(names, aim, met, prior)
        return cls(
            task,
            has_gains=gains is not None,
            confidence=confidence,
            weights=weights,
            stable=bool(stable),
            pos_label=pos_label,
            missing=missing,
            random_state=random_state,
        )

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """What sources are asked for: the cut at each boundary."""
        return self.task.objectives

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What needs rows of both classes."""
        return tuple(objective.metric for objective in self.objectives)


class BandsOptions(TypedDict, total=False):
    """What `tune_bands` and `tune_bands_frame` have in common."""

    upper: ConditionsLike | None
    lower: ConditionsLike | None
    conditions: Mapping[str, ConditionsLike] | None
    gains: Mapping[str, Gain] | None
    zones: Sequence[str]
    metric: MetricLike | None
    confidence: float | None
    weights: str | None
    prior: float | None
    stable: bool
    pos_label: Any
    missing: str
    random_state: int | None


class TableBandsOptions(BandsOptions, total=False):
    """Those of `tune_bands_frame`."""

    weight: str | None


def _aim_of(
    names: Sequence[str],
    conditions: Sequence[Condition],
    ratio: LinearFractionalMetric | None,
    gains: Mapping[str, Gain] | None,
) -> Aim:
    """What zones should be best for; raise where nothing says it, or where it means nothing."""
    if gains is None and ratio is None:
        if not conditions:
            raise ValueError(
                "say what the zones are for: conditions such as upper='ppv>=0.9', lower='npv>=0.95', or gains such as "
                f"gains={{{names[0]!r}: (0, -10), {names[-1]!r}: (-1, 1)}}"
            )
        if len(names) > 3 and {one.zone for one in conditions} == set(range(len(names))):
            raise ValueError(
                "each of the zones has conditions, and nothing says which of them should be large: leave one without, "
                "or say with gains= what rows are worth"
            )
        return Aim.of_conditions(len(names), conditions)
    if ratio is not None and gains is None and not conditions and len(names) > 2:
        other = names[1]
        raise ValueError(
            f"metric={ratio.name!r} of the rows that are decided is best where hardly any is: say what another row "
            f"costs, gains={{{other!r}: -0.2}}, or how many there may be, conditions={{{other!r}: 'share<=0.2'}}"
        )
    table = _checked_gains(parse_gains(gains or {}, names), names)
    if ratio is None:
        _require_choice(table, names, conditions)
    return Aim(table, metric=ratio)


def _checked_names(zones: Sequence[str]) -> tuple[str, ...]:
    is_list = isinstance(zones, (list, tuple))
    if not is_list or not all(isinstance(zone, str) and zone and _is_unicode(zone) for zone in zones):
        raise ValueError(f"zones= must be the names of the zones, from the lowest score to the highest, got {zones!r}")
    names = tuple(map(str, zones))
    if "error" in names:
        raise ValueError(
            "a zone cannot be called 'error', which is what options such as missing='error' mean: rename it"
        )
    if len(names) < 2:
        raise ValueError(f"at least two zones are needed, got {len(names)}")
    if len(set(names)) < len(names):
        raise ValueError(f"each zone needs a name of its own, got {', '.join(map(repr, names))}")
    return names


def _is_unicode(name: str) -> bool:
    """Whether a name can be written: a part of a surrogate pair cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _checked_ratio(metric: Metric) -> LinearFractionalMetric:
    """A ratio of cells with constant weights: of decided rows the class totals depend on the thresholds."""
    if isinstance(metric, LinearFractionalMetric):
        cells = {metric.cells(*totals) for totals in ((1, 1), (1, 2), (2, 1))}
        if len(cells) == 1:
            return metric
    raise ValueError(
        f"{metric.name} depends on the class totals, which differ between thresholds where only some rows are decided: "
        "use a ratio of cells such as 'f1', 'jaccard' or 'accuracy', or gains="
    )


def _checked_gains(gains: Any, names: Sequence[str]) -> Any:
    """Gains whose zones are in order: higher zones must not be worse for positives and better for negatives."""
    for (below, low), (above, high) in itertools.combinations(zip(names, gains.tolist(), strict=True), 2):
        if high[0] > low[0] and high[1] < low[1]:
            raise ValueError(
                f"zones are named from the lowest score to the highest, and {above!r} gains more than {below!r} on "
                "negatives and less on positives: write costs as negative gains, reverse zones=, or reverse the pairs "
                "of gains=, which are (if negative, if positive)"
            )
    return gains


def _require_choice(gains: NDArray[np.float64], names: Sequence[str], conditions: Sequence[Condition]) -> None:
    """Raise where no row gains by being in another zone than one, of which nothing is asked."""
    for zone, name in enumerate(names):
        others = np.delete(gains, zone, axis=0)
        if (gains[zone] >= others).all() and not any(one.zone == zone for one in conditions):
            raise ValueError(
                f"with these gains no row is worth more than in {name!r}, and all rows would be there: say what a row "
                f"there costs, such as gains={{{name!r}: -0.5}}, or how many there may be, such as "
                f"conditions={{{name!r}: 'share<=0.2'}}"
            )
