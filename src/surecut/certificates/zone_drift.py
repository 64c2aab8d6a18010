"""Has anything moved since bands were tuned?

Watched are the share of positives, how many rows of the outer zones are right, and how many rows the zones between
take. The share of positives has half of the error, as for a cut (`drift`). The other quantities have equal parts of the
rest, each for a fall and for a rise. Thresholds were chosen on the rows then, so those are taken at limits that hold
for all thresholds at once; held-out reference rows are as good as new rows.

Whether a condition holds now is another question, with an error of its own: conditions that were met on the validation
rows, without confidence, fail on other rows about as often as not although nothing has changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._plurals import counted
from surecut.certificates.cells import cells_of
from surecut.certificates.confidence import share_limits
from surecut.certificates.drift import (
    Change,
    Limits,
    Reference,
    compared,
    counted_rows,
    kind_of_reference,
    prior_change,
    rows_then,
    value_change,
)
from surecut.certificates.quantities import NestedShare, constraint_limit
from surecut.confusion import Confusion
from surecut.core.zone_search import zones_between
from surecut.core.zone_task import named
from surecut.decisions.cut import Cut
from surecut.metrics import NPV, Precision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surecut.core.tally import ScoreTally
    from surecut.decisions.bands import Bands
    from surecut.metrics import Metric
    from surecut.zones import Condition

ALL_ROWS = NestedShare(negatives=True, positives=True, predicted=True)


@dataclass(frozen=True)
class ConditionNow:
    """What the quantity of a condition is on new rows.

    Attributes
    ----------
    value
        Its value there; NaN where the zone is empty.
    limit
        What it is at most there (of a condition with ``>=``), or at least.
    broken
        Whether the limit misses the level: then the condition does not hold now.
    reachable
        Whether a score can be in the zone.
    """

    value: float
    limit: float
    broken: bool
    reachable: bool = True

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "may hold now: none of these rows tell" if self.reachable else "holds: no score can be in this zone"
        return f"{'does not hold now' if self.broken else 'may hold now'} ({self.value:.4f} on these rows)"


@dataclass(frozen=True)
class BandsDrift:
    """What has changed since bands were tuned.

    Attributes
    ----------
    bands
        The bands that are in use.
    prior
        The share of positives.
    zones
        The NPV of the lowest zone, the PPV of the highest, and the share of all rows in each zone between, by names
        such as ``"ppv of yes"``. An outer zone that was empty then is left out, and so are shares where a prior was
        given.
    conditions
        What the quantity of each condition is now, and whether it surely misses its level.
    rows, then_rows, confidence
        How many new rows there were, with how many they were compared, and how sure an alarm is.
    has_reference
        Whether these were reference rows, not the counts that the bands remember.
    looks
        Over how many looks the error is spent: `confidence` is that of all of them together.

    Examples
    --------
    >>> from surecut import check_drift, tune_bands
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, prior):
    ...     y = rng.random(n) < prior
    ...     return y, rng.normal(size=n) + 2 * y
    >>> bands = tune_bands(*draw(1_000, prior=0.5), upper="ppv>=0.9", lower="npv>=0.9")
    >>> report = check_drift(bands, *draw(1_000, prior=0.3))
    >>> report.moved, report.prior.direction, report.broken
    (True, 'fell', ("ppv>=0.9 in 'yes'",))
    """

    bands: Bands
    prior: Change
    zones: dict[str, Change]
    conditions: dict[str, ConditionNow]
    rows: int
    then_rows: int
    confidence: float
    has_reference: bool = False
    looks: int = 1

    @property
    def moved(self) -> bool:
        """Whether any change is statistically significant."""
        return any(one.moved for one in (self.prior, *self.zones.values()))

    @property
    def broken(self) -> tuple[str, ...]:
        """The conditions that do not hold now, whether anything has changed or not."""
        return tuple(name for name, one in self.conditions.items() if one.broken)

    def __str__(self) -> str:
        whose = "reference" if self.has_reference else "validation"
        lines = [f"{counted(self.rows, 'row')} beside {counted(self.then_rows, f'{whose} row')}:"]
        for name, one in {"share of positives": self.prior, **self.zones}.items():
            lines.append(f"  {name} {one.then:.4f} then, {one.now:.4f} now: {one.direction}")
        lines += [f"  {name} {one}" for name, one in self.conditions.items()]
        sure = f"{100 * self.confidence:.4g} % confidence"
        said = "There is a statistically significant change" if self.moved else "No sign of a change"
        return "\n".join([*lines, f"{said} ({sure})."])


def bands_drift(
    bands: Bands,
    tally: ScoreTally,
    reference: ScoreTally | None,
    weights: str | None,
    confidence: float,
    looks: int,
    random_state: Any,
) -> BandsDrift:
    """Compare new rows with the validation rows of bands; the parameters are those of `check_drift`."""
    outer = list(_outer_cuts(bands))
    any_cut = _cut_at(bands, 0, NPV())
    kind = kind_of_reference(any_cut, reference)
    kind = Reference.PARTLY if kind is Reference.TUNING else kind  # which the bootstrap of one cut knows how to correct
    now = counted_rows(any_cut, tally, weights)
    before = rows_then(any_cut, reference, weights)
    negatives, positives = (int(total) for total in now.rows.sum(axis=0))
    zones_now = _zones(bands, now)
    between = [] if bands.prior_given else range(1, len(bands.zones) - 1)
    error = (1 - confidence) / looks
    each = error / 2 / max(1, len(outer) + len(between))
    zones = {}
    for name, cut in outer:
        then = before if reference is not None else rows_then(cut, None, weights)
        zones[name] = value_change(cut, then, kind, now, now.confusion_at(cut.threshold), each, random_state)
    for zone in between:
        zones[f"share of {bands.zones[zone]}"] = _share_change(bands, zone, kind, before, reference, zones_now, each)
    return BandsDrift(
        bands=bands,
        prior=prior_change(any_cut, before, positives, positives + negatives, error / 2),
        zones=zones,
        conditions={
            named(one, bands.zones): _condition_now(bands, one, zones_now[one.zone], error / len(bands.conditions))
            for one in bands.conditions
        },
        rows=positives + negatives,
        then_rows=int(before.rows.sum()),
        confidence=confidence,
        has_reference=reference is not None,
        looks=looks,
    )


def _outer_cuts(bands: Bands) -> Iterator[tuple[str, Cut]]:
    """The outer boundaries as cuts, for what the outer zones consist of; of zones with rows."""
    last = len(bands.zones) - 1
    if bands.confusion[0].sum() > 0:
        yield f"npv of {bands.zones[0]}", _cut_at(bands, 0, NPV())
    if bands.confusion[last].sum() > 0:
        yield f"ppv of {bands.zones[last]}", _cut_at(bands, last - 1, Precision())


def _cut_at(bands: Bands, boundary: int, metric: Metric) -> Cut:
    """A boundary of bands as a cut."""
    (tn, fn), (fp, tp) = bands.confusion[: boundary + 1].sum(axis=0), bands.confusion[boundary + 1 :].sum(axis=0)
    confusion = Confusion(tp=tp.item(), fp=fp.item(), fn=fn.item(), tn=tn.item())
    lower, upper = bands.intervals[boundary].tolist()
    return Cut(
        threshold=float(bands.thresholds[boundary]),
        value=float(metric.evaluate(confusion.at_prior(bands.prior) if bands.prior_given else confusion)),
        metric=metric,
        confusion=confusion,
        interval=(lower, upper),
        prior=bands.prior,
        prior_given=bands.prior_given,
        sample=bands.sample,
    )


def _zones(bands: Bands, tally: ScoreTally) -> list[Confusion]:
    """What is inside each zone."""
    return zones_between(tally.confusion, [int(edge) for edge in tally.candidates.at(bands.thresholds)])


def _condition_now(bands: Bands, condition: Condition, inside: Confusion, error: float) -> ConditionNow:
    """The quantity of a condition among new rows, and its limit on the side where the condition fails."""
    prior = bands.prior if bands.prior_given else None
    value = float(condition.quantity.evaluate(inside if prior is None else inside.at_prior(prior)))
    failing = replace(condition, sense="<=" if condition.sense == ">=" else ">=")
    limit = constraint_limit(failing, cells_of(inside), error, prior)
    ends = [-math.inf, *bands.thresholds.tolist(), math.inf]
    reachable = ends[condition.zone] < ends[condition.zone + 1]
    return ConditionNow(value, limit, not (math.isnan(limit) or bool(condition.allows(limit))), reachable)


def _share_change(
    bands: Bands,
    zone: int,
    kind: Reference,
    before: ScoreTally,
    reference: ScoreTally | None,
    zones_now: list[Confusion],
    error: float,
) -> Change:
    """The share of all rows in a zone between two others."""
    if reference is None:
        counts = bands.confusion.sum(axis=1)
    else:
        counts = np.array([inside.predicted_positives for inside in _zones(bands, before)])
    inside, above, total = int(counts[zone]), int(counts[zone + 1 :].sum()), int(counts.sum())
    now = zones_now[zone]
    of_now, all_now = int(now.predicted_positives), int(now.total)

    def now_limits(level: float) -> tuple[float, float]:
        lower, upper = share_limits(of_now, all_now, level)
        return float(lower), float(upper)

    def reference_limits(level: float) -> tuple[float, float]:
        lower, upper = share_limits(inside, total, level)
        return float(lower), float(upper)

    def any_thresholds(level: float) -> tuple[float, float]:
        def accepted(count: int, sense: str) -> float:
            confusion = Confusion(
                tp=np.array([count]), fp=np.array([0]), fn=np.array([total - count]), tn=np.array([0])
            )
            return float(ALL_ROWS.uniform_limits(confusion, sense, level / 2)[0])

        lower = accepted(inside + above, ">=") - accepted(above, "<=")
        upper = accepted(inside + above, "<=") - accepted(above, ">=")
        return max(0.0, lower), min(1.0, upper)

    then_limits: Limits = reference_limits if kind is Reference.ASIDE else any_thresholds
    return compared(inside / total, of_now / all_now, then_limits, now_limits, error)
