"""What can be promised of bands on new rows: of each zone how many rows it takes, and how many of them are right.

The rows in a zone, those outside of it, and the classes of both are a confusion matrix (`surecut.zones`), so limits are
those of constraints: exact for shares and for what a zone consists of, unless a prior is given. What a row gains on
average is a bet on the rows in their order (`clusters`).

Two methods are valid at every sample size: ``"holdout"`` for rows that did not tune the bands, and ``"uniform"`` for
any rows, also for those that did, since its limits hold for all thresholds at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import check_missing, in_brief, require_same_length
from surecut._labels import as_labels
from surecut._matrices import present_rows
from surecut._plurals import counted
from surecut.certificates.cells import cells_of
from surecut.certificates.certificate import FRESH, KEPT_ASIDE, ONE_MODEL, ConstraintPromise
from surecut.certificates.clusters import NO_ORDER, bounded_mean_limits, is_sorted
from surecut.certificates.evidence import ROWS_AND_TALLY, Asked
from surecut.certificates.held_out import require_valid_rows, worded_for
from surecut.certificates.quantities import NestedShare, constraint_limit, uniform_constraint_limit
from surecut.certificates.weights import require_both, require_whole, without_ones
from surecut.constraints import Constraint
from surecut.core.tally import ScoreTally
from surecut.core.zone_search import zones_between
from surecut.core.zone_task import named
from surecut.notebook import card
from surecut.zones import QUANTITIES, Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.decisions.bands import Bands
    from surecut.decisions.grouped_bands import GroupedBands

METHODS = ("holdout", "uniform")

SIDES = (">=", "<=")

ANY = (0.0, 1.0)
"""Limits of a share of which nothing is known."""


@dataclass(frozen=True)
class ZoneLimit:
    """A quantity of a zone on new rows.

    Attributes
    ----------
    zone, quantity
        Which zone, and what of it: ``"ppv"``, ``"npv"`` or ``"share"``.
    value
        What it is on the rows that were given; NaN where the zone is empty, and has no PPV or NPV.
    lower, upper
        Its limits on new rows; *each* holds with the confidence.

    Examples
    --------
    >>> print(ZoneLimit("yes", "ppv", value=0.95, lower=0.91, upper=0.98))
    ppv of yes at least 0.9100 (0.9500 on these rows)
    """

    zone: str
    quantity: str
    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"{self.quantity} of {self.zone} is not known: no row here is in this zone"
        limit = f"at most {self.upper:.4f}" if self.quantity == "share" else f"at least {self.lower:.4f}"
        return f"{self.quantity} of {self.zone} {limit} ({self.value:.4f} on these rows)"


@dataclass(frozen=True)
class BandsCertificate:
    """What is promised of bands on new rows, with which confidence, and under which assumptions.

    Attributes
    ----------
    zones
        Limits for each zone, the lowest first: the share of all rows in it; of the lowest zone the NPV, of the highest
        the PPV. Each limit holds with the confidence.
    gain
        Limits of what a row gains on average; None where bands have no gains, and where that cannot be told.
    conditions
        Whether the conditions that bands were tuned for hold on new rows. Those that do hold all at once with the
        confidence; that is a promise of its own, beside the limits.
    method, confidence, rows
        How it was certified, and on how many rows.
    assumptions
        What must be true for the promise to hold.
    note
        What is not certified, and why; empty otherwise.

    Examples
    --------
    >>> from surecut import certify, tune_bands
    >>> rng = np.random.default_rng(0)
    >>> def draw(n):
    ...     score = rng.random(n)
    ...     return rng.random(n) < score, score
    >>> bands = tune_bands(*draw(500), upper="ppv>=0.8", lower="npv>=0.8")
    >>> certificate = certify(bands, *draw(500))
    >>> [(one.zone, one.quantity, round(one.lower, 2)) for one in certificate.zones if one.quantity != "share"]
    [('no', 'npv', 0.7...), ('yes', 'ppv', 0.7...)]
    """

    zones: tuple[ZoneLimit, ...]
    gain: ZoneLimit | None
    conditions: tuple[ConstraintPromise, ...]
    method: str
    confidence: float
    rows: int
    assumptions: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        lines = [f"On new rows, each with {100 * self.confidence:.4g} % confidence, from {counted(self.rows, 'row')}:"]
        lines += [f"  {one}" for one in self.zones]
        if self.gain is not None:
            lines.append(f"  gain per row at least {self.gain.lower:.4g} ({self.gain.value:.4g} on these rows)")
        return "\n".join([*lines, *map(str, self.conditions), *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        facts = [("method", self.method)]
        facts += [("" if number else "limits", str(one)) for number, one in enumerate(self.zones)]
        if self.gain is not None:
            facts.append(("gain per row", f"at least {self.gain.lower:.4g}, at most {self.gain.upper:.4g}"))
        facts += [("" if number else "conditions", str(one)) for number, one in enumerate(self.conditions)]
        facts += [("" if number else "it holds if", assumption) for number, assumption in enumerate(self.assumptions)]
        return card(f"Bands on new rows, {100 * self.confidence:.4g} % confidence", facts)


@dataclass(frozen=True)
class GroupsCertificate:
    """The certificate of each group's bands; what is said of all groups holds at once, with the confidence.

    Attributes
    ----------
    certificates
        By group, each at the confidence of 1 − (1 − `confidence`) / groups.
    confidence
        That of all groups together.
    """

    certificates: dict[Any, BandsCertificate]
    confidence: float

    def __str__(self) -> str:
        return "\n".join(f"{group}: {one}" for group, one in self.certificates.items())


def groups_certificate(
    bands: GroupedBands, asked: Asked, y_true: Any, y_score: Any, *, by: Any, **rows: Any
) -> GroupsCertificate:
    """The same for bands of groups, from rows of all of them; `by` holds the group of each row."""
    if by is None or y_true is None or y_score is None or rows.get("tally") is not None:
        raise ValueError("bands of groups need the rows themselves and their groups: pass y_true, y_score and by=")
    weight = rows.pop("sample_weight", None)
    if asked.missing == "drop":
        y_true, y_score, weight, by = present_rows(y_true, y_score, weight, by)
    number = bands.numbers(by)
    columns = [np.asarray(one) for one in (y_true, y_score)]
    require_same_length(y_true=columns[0], y_score=columns[1], by=number)
    if (number < 0).any():
        raise ValueError(f"{int((number < 0).sum()):,} rows are of a group that has no bands: leave these rows out")
    each = replace(asked, confidence=bands.each_confidence(asked.confidence))
    found = {}
    for position, group in enumerate(bands):
        own = number == position
        if not own.any():
            raise ValueError(f"there are no rows of the group {in_brief(repr(group))}: give rows of every group")
        weights = None if weight is None else np.asarray(weight)[own]
        try:
            found[group] = bands_certificate(
                bands[group], each, *(one[own] for one in columns), sample_weight=weights, **rows
            )
        except ValueError as error:
            raise ValueError(f"group {in_brief(repr(group))}: {error}") from None
    return GroupsCertificate(found, asked.confidence)


def bands_certificate(
    bands: Bands,
    asked: Asked,
    y_true: Any = None,
    y_score: Any = None,
    *,
    tally: Any = None,
    by: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    pos_label: Any = None,
) -> BandsCertificate:
    """The certificate for rows, as `certify` takes them; raises where they may not certify the bands."""
    _require_possible(asked, by, groups)
    check_missing(asked.missing, "error", "drop")
    order: tuple[NDArray[np.int64], NDArray[np.bool_]] | None = None
    if tally is None:
        if y_true is None or y_score is None:
            raise ValueError(f"method={asked.method!r} needs rows: pass y_true and y_score, or a tally of them")
        require_both(asked.weights, sample_weight is not None)
        if asked.missing == "drop":
            y_true, y_score, sample_weight = present_rows(y_true, y_score, sample_weight)
        sample_weight = without_ones(sample_weight, len(y_score))
        pos_label = bands.positive_in(y_true, pos_label)
        tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        if sample_weight is not None:
            require_whole(np.asarray(sample_weight, dtype=float), asked.weights)
        else:
            is_positive = as_labels(y_true, pos_label=pos_label).is_positive()
            order = bands.predict(y_score, as_numbers=True), is_positive
    elif not isinstance(tally, ScoreTally):
        raise ValueError("bands of one sample have one tally")
    elif y_true is not None or y_score is not None or sample_weight is not None:
        raise ValueError(ROWS_AND_TALLY)
    if bands.prior_given and tally.given_prior is None:
        tally = tally.with_prior(bands.prior)
    elif tally.given_prior is not None and tally.given_prior != (bands.prior if bands.prior_given else None):
        raise ValueError(
            f"the tally has the prior {tally.given_prior:g} given, the bands were tuned at {bands.prior:g}: certify "
            "bands that were tuned with this prior"
        )
    tuned_here = require_valid_rows(bands, {0: tally}, _has_tuned(tally, bands), asked.method, asked.held_out)
    counts = asked.counted(tally)
    negatives, positives = (int(total) for total in counts.rows.sum(axis=0))
    if bands.prior_given and not (negatives and positives):
        raise ValueError("a prior that is given needs rows of both classes")
    evidence = _ZoneEvidence(bands, counts, asked, tuned_here)
    gain, note = _gain(evidence, order)
    assumptions = [worded_for(bands, FRESH), ONE_MODEL]
    if asked.method == "holdout":
        assumptions.append(worded_for(bands, KEPT_ASIDE))
        if gain is not None:
            assumptions.append(NO_ORDER.format(what="rows"))
    if bands.prior_given:
        assumptions.append(
            f"a share {bands.prior:g} of the new rows is positive, and within the classes nothing changed"
        )
    return BandsCertificate(
        zones=tuple(evidence.limits()),
        gain=gain,
        conditions=tuple(evidence.promises()),
        method=asked.method,
        confidence=asked.confidence,
        rows=negatives + positives,
        assumptions=tuple(assumptions),
        note=note,
    )


def _require_possible(asked: Asked, by: Any, groups: Any) -> None:
    if asked.method not in METHODS:
        raise ValueError(
            f"method={asked.method!r} is for cuts: bands are certified by method='holdout' on held-out rows, or by "
            "method='uniform' on any"
        )
    if by is not None:
        raise ValueError("by= says which label a row is of, and these are bands of one sample: leave it out")
    if groups is not None:
        raise ValueError(
            "rows of one group are not independent, which the limits of bands need: leave out groups=, and keep one "
            "row of each group"
        )


def _has_tuned(tally: ScoreTally, bands: Bands) -> bool:
    """Whether bands were tuned on these very rows; of rows that an engine counted, whether they look so."""
    sample = tally.sample
    if bands.fingerprint or bands.rows != sample.rows:
        return bands.fingerprint == sample.fingerprint
    edges = [int(edge) for edge in tally.candidates.at(bands.thresholds)]
    counts = np.array([(zone.fp, zone.tp) for zone in zones_between(tally.confusion, edges)])
    if bands.weighted != sample.weighted:  # a certificate that is refused too often is harmless
        return True
    return bool(np.allclose(counts, bands.confusion, rtol=1e-9))


@dataclass(frozen=True, eq=False)
class _ZoneEvidence:
    """Rows in numbers, at the thresholds of bands that they may certify."""

    bands: Bands
    counts: ScoreTally
    asked: Asked
    tuned_here: bool

    @property
    def cuts(self) -> Confusion:
        """The confusion at each threshold, the lowest first."""
        return self.counts.confusion_at(self.bands.thresholds)

    @property
    def zones(self) -> list[Confusion]:
        """What is inside each zone, in numbers of rows."""
        edges = [int(edge) for edge in self.counts.candidates.at(self.bands.thresholds)]
        return zones_between(self.counts.confusion, edges)

    def limits(self) -> list[ZoneLimit]:
        """For each zone its share, and how many of its rows are right."""
        last, found = len(self.bands.zones) - 1, []
        for zone in range(last + 1):
            quantities = ["npv"] * (zone == 0) + ["ppv"] * (zone == last) + ["share"]
            for name in quantities:
                lower, upper = (self.limit(zone, name, sense, self.asked.error) for sense in SIDES)
                found.append(ZoneLimit(self.bands.zones[zone], name, self.value(zone, name), lower, upper))
        return found

    def promises(self) -> list[ConstraintPromise]:
        """For each condition whether it holds, with its part of the error."""
        bands, found = self.bands, []
        is_assured = self.tuned_here and bands.confidence is not None and self.asked.confidence <= bands.confidence
        for one in bands.conditions:
            value = self.value(one.zone, one.quantity.name)
            each = self.asked.error / len(bands.conditions)
            is_impossible = not self.bands.may_hold_scores(one.zone)  # such a zone breaks no condition
            is_known = is_assured or (is_impossible and math.isnan(value))
            limit = one.level if is_known else self.limit(one.zone, one.quantity.name, one.sense, each)
            found.append(ConstraintPromise(named(one, bands.zones), value, limit, bool(one.allows(limit))))
        return found

    def value(self, zone: int, name: str) -> float:
        """A quantity on these rows."""
        inside = self.zones[zone]
        prior = self.counts.given_prior
        return float(QUANTITIES[name].evaluate(inside if prior is None else inside.at_prior(prior)))

    def limit(self, zone: int, name: str, sense: str, error: float) -> float:
        """What a quantity surely reaches (``>=``) or does not exceed (``<=``)."""
        condition = Condition(QUANTITIES[name], sense, 0.5, zone)
        prior = self.counts.given_prior
        if self.asked.method == "holdout":
            found = constraint_limit(condition, cells_of(self.zones[zone]), error, prior)
        elif zone == len(self.bands.zones) - 1:
            found = self._uniform(condition, -1, error)
        elif zone == 0:
            found = self._uniform(condition.below_a_cut(), 0, error)
        else:
            found = self._uniform_between(condition, zone, error)
        return ANY[SIDES.index(sense)] if math.isnan(found) else found

    def _uniform(self, constraint: Constraint, boundary: int, error: float) -> float:
        return uniform_constraint_limit(constraint, self.counts, self.cuts[boundary], error)

    def _uniform_between(self, condition: Condition, zone: int, error: float) -> float:
        """Of a share of a zone between two others: what is above its lower end, less what is above its upper one."""
        (of_tp, of_fp, _, _), _ = condition.quantity.cells(1, 1)  # type: ignore[attr-defined]  # a Rate
        if not condition.moves_one_way or (self.counts.given_prior is not None and of_tp and of_fp):
            return math.nan
        share, other = NestedShare(bool(of_fp), bool(of_tp), True), SIDES[1 - SIDES.index(condition.sense)]
        low = share.uniform_limits(self.cuts[zone - 1], condition.sense, error / 2)
        high = share.uniform_limits(self.cuts[zone], other, error / 2)
        return float(np.clip(low - high, 0, 1))


def _gain(
    evidence: _ZoneEvidence, order: tuple[NDArray[np.int64], NDArray[np.bool_]] | None
) -> tuple[ZoneLimit | None, str]:
    """Limits of what a row gains; or why there are none."""
    bands, error = evidence.bands, evidence.asked.error
    if bands.gains is None and bands.metric is None:
        return None, ""
    if bands.metric is not None or bands.gains is None:
        return None, "The ratio of decided rows has no limit here: conditions and shares have."
    if evidence.asked.method != "holdout" or order is None:
        return None, "What a row gains has limits from held-out rows themselves, without weights: not from a tally."
    zone, is_positive = order
    if is_sorted(is_positive.astype(float)):
        return None, "What a row gains has no limit from sorted rows: put them in a random order of your own."
    gained = bands.gains[zone, is_positive.astype(np.int64)]
    prior = evidence.counts.given_prior
    if prior is None:
        value, limits = float(gained.mean()), bounded_mean_limits(gained, _extremes(bands.gains), error)
    else:
        parts = [(1 - prior, ~is_positive, 0), (prior, is_positive, 1)]
        means = [(share, gained[of_class], bands.gains[:, c]) for share, of_class, c in parts]
        value = sum(share * float(rows.mean()) for share, rows, _ in means)
        each = [(share, bounded_mean_limits(rows, _extremes(possible), error / 2)) for share, rows, possible in means]
        limits = sum(share * low for share, (low, _) in each), sum(share * high for share, (_, high) in each)
    return ZoneLimit("all", "gain", value, *limits), ""


def _extremes(possible: NDArray[np.float64]) -> tuple[float, float]:
    return float(possible.min()), float(possible.max())
