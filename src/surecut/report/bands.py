"""What the page of bands shows, as plain values.

The page finds the best thresholds by itself, for any gains and any prior: what zones are worth is a sum over
boundaries, so that the best cut at each boundary is a vertex of the ROC hull, and these are among the page's cuts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from surecut._version import __version__
from surecut.certificates.bands import curve_band
from surecut.constraints import TOLERANCE
from surecut.core.rules import TIE
from surecut.core.tally import CoarseTally, ScoreTally
from surecut.core.zone_task import Aim
from surecut.decisions.wording import between, conditions_text, label_text
from surecut.metrics import NOISE, get_metric
from surecut.report.histogram import HistogramDict, histogram, score_range
from surecut.report.summary import (
    BandDict,
    GridDict,
    MetricDict,
    Tallied,
    grid_cuts,
    metric_dict,
    placed_at,
    plain_number,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.decisions.bands import Bands

LIMIT_DIGITS = 6
"""Decimals of limits, which are rounded outward."""


class ConditionDict(TypedDict):
    """What a zone had to meet: a quantity of the rows inside it, by its cells."""

    text: str
    zone: int
    quantity: MetricDict
    sense: str
    level: float


class ThresholdsDict(TypedDict):
    """The tuned thresholds, the lowest first: where each stands on the grid; infinities are text."""

    at: list[int]
    threshold: list[float | str]
    spread: list[list[float | str]]


class BandsSummary(TypedDict):
    """Everything on the page of bands."""

    title: str
    rows: int
    weighted: bool
    positives: float
    negatives: float
    prior: float
    given_prior: float | None
    pos_label: str | None
    is_whole: bool
    in_bins: bool
    axis: list[float]
    grid: GridDict
    histogram: HistogramDict
    zones: list[str]
    chosen: ThresholdsDict
    gains: list[list[float]]
    has_gains: bool
    metric: MetricDict | None
    conditions: list[ConditionDict]
    conditions_note: str
    confidence: float | None
    limits: dict[str, BandDict]
    limits_note: str
    spread_note: str
    tie: float
    rounding: float
    tolerance: float
    surecut_version: str


def summarize_bands(
    bands: Bands, tally: Tallied, *, confidence: float = 0.95, title: str = "Where to decide"
) -> BandsSummary:
    """What the page shows of bands.

    Parameters
    ----------
    bands
        The bands that the page opens at.
    tally
        The scores, as a `ScoreTally`: those that bands were tuned on, or others. Its given prior, or else that of the
        bands, is the prior that the page opens with. A `ScoreSketch` knows the cuts at the edges of its bins only: a
        threshold inside a bin is moved to one of them.
    confidence
        The confidence of the limits of the PPV of the highest zone and of the NPV of the lowest one, which hold at all
        thresholds and for both zones at once. Weighted rows get none.
    title
        The page's heading.

    Examples
    --------
    >>> from surecut import ScoreTally, tune_bands
    >>> y_true, y_score = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> bands = tune_bands(y_true, y_score, upper="ppv>=0.9", lower="npv>=0.9")
    >>> summary = summarize_bands(bands, ScoreTally.from_scores(y_true, y_score))
    >>> summary["zones"], summary["chosen"]["at"], summary["chosen"]["threshold"]
    (['no', 'ask', 'yes'], [5, 3], [0.35, 0.55])
    """
    candidates = tally.candidates
    if candidates.given_prior is None and bands.prior_given:
        candidates = replace(candidates, given_prior=bands.prior)
    axis = score_range(candidates)
    at = grid_cuts(candidates, tally.hull, bands.thresholds.tolist(), axis)
    confusion = candidates.confusion[at]
    positives, negatives = candidates.confusion.positives[0], candidates.confusion.negatives[0]
    # With all rows above a threshold, nothing is known of scores below: the zone below it stays empty
    thresholds = np.array([*(placed_at(candidates, int(i)) for i in at[:-1]), -np.inf])
    where = np.searchsorted(at, candidates.at(bands.thresholds))
    inside_a_bin = (bands.thresholds <= candidates.rejected[at[where]]) | (
        bands.thresholds > candidates.accepted[at[where]]
    )
    chosen = np.where(inside_a_bin, thresholds[where], bands.thresholds)
    spread = [[] if one is None else [plain_number(end) for end in one.quantiles] for one in bands.stability]
    return BandsSummary(
        title=title,
        rows=candidates.sample.rows,
        weighted=candidates.sample.weighted,
        positives=positives.item(),
        negatives=negatives.item(),
        prior=float(positives / (positives + negatives)),
        given_prior=candidates.given_prior,
        pos_label=None if bands.pos_label is None else label_text(bands.pos_label),
        is_whole=len(at) == len(candidates.accepted),
        in_bins=isinstance(tally, CoarseTally) or not isinstance(tally, ScoreTally),
        axis=list(axis),
        grid=GridDict(
            threshold=[plain_number(one) for one in thresholds.tolist()],
            tp=confusion.tp.tolist(),
            fp=confusion.fp.tolist(),
        ),
        histogram=histogram(candidates, axis),
        zones=list(bands.zones),
        chosen=ThresholdsDict(
            at=where.tolist(),
            threshold=[plain_number(one) for one in chosen.tolist()],
            spread=spread,
        ),
        gains=_starting_gains(bands).tolist(),
        has_gains=bands.gains is not None,
        metric=None if bands.metric is None else metric_dict(bands.metric, candidates, at),
        conditions=[
            ConditionDict(
                text=str(one),
                zone=one.zone,
                quantity=metric_dict(one.quantity, candidates, at),
                sense=one.sense,
                level=one.level,
            )
            for one in bands.conditions
        ],
        conditions_note=conditions_text(bands),
        confidence=bands.confidence,
        limits=_limits(tally, candidates.given_prior, confusion, confidence),
        limits_note="Shaded: where the two curves of all rows of this kind run, at every threshold and for both at "
        f"once, with {100 * confidence:g} % confidence, if the model was not trained on these rows.",
        spread_note=_spread_note(bands),
        tie=TIE,
        rounding=NOISE,
        tolerance=TOLERANCE,
        surecut_version=__version__,
    )


def _starting_gains(bands: Bands) -> NDArray[np.float64]:
    """The gains of the bands; where conditions alone were given, those that mean as much."""
    if bands.gains is not None:
        return bands.gains
    return Aim.of_conditions(len(bands.zones), bands.conditions).gains


def _limits(tally: Tallied, prior: float | None, confusion: Confusion, confidence: float) -> dict[str, BandDict]:
    """Limits of what the outer zones consist of, at every cut of the grid; of rows that are not counts, none.

    The limits of both follow from the same limits of error rates and of the prior, and so hold together.
    """
    if not isinstance(tally, ScoreTally) or tally.weight is not tally.rows or not all(tally.weight.sum(axis=0)):
        return {}
    at_prior = tally if prior is None else tally.with_prior(prior)
    found = {}
    for name in ("precision", "npv"):
        lower, upper = curve_band(get_metric(name), at_prior, confusion, confidence)
        scale = 10**LIMIT_DIGITS
        found[name] = BandDict(
            lower=(np.floor(lower * scale) / scale).tolist(), upper=(np.ceil(upper * scale) / scale).tolist()
        )
    return found


def _spread_note(bands: Bands) -> str:
    """Write where resamples put the thresholds of stable bands."""
    known = [(zone, one) for zone, one in zip(bands.zones[1:], bands.stability, strict=False) if one is not None]
    if not known:
        return ""
    where = ", ".join(f"that of {zone} in {' to '.join(between(*one.spread))}" for zone, one in known)
    return f"Vertical bands: 90 % and half of the resampled thresholds; 90 % put {where}."
