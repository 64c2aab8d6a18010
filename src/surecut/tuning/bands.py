"""Zones on one score: yes, no, ask a person."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.certificates.weights import frequencies
from surecut.certificates.zone_assurance import assured_edges
from surecut.constraints import InfeasibleError
from surecut.core import rules
from surecut.core.search import search
from surecut.core.tally import ScoreTally
from surecut.core.zone_bounds import search_zones
from surecut.core.zone_search import best_edges, rows_between
from surecut.core.zone_task import ZoneTask
from surecut.decisions.bands import Bands
from surecut.tuning.bands_request import TRIAGE, BandsRequest
from surecut.tuning.stable import settle
from surecut.tuning.tune import TalliedRows, array_source, tally_for_limits
from surecut.tuning.zone_failures import failure_rates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from surecut.core.entries import Entries
    from surecut.core.rules import Placed
    from surecut.sample import Sample
    from surecut.sources.sketch import ScoreSketch
    from surecut.tuning.request import MetricLike
    from surecut.tuning.tune import RowsToTune
    from surecut.zones import ConditionsLike, Gain


LARGEST_WEIGHT = 1e150
"""Of heavier classes, products with gains may overflow."""


def tune_bands(
    y_true: ArrayLike | None = None,
    y_score: ArrayLike | None = None,
    *,
    tally: ScoreTally | ScoreSketch | None = None,
    upper: ConditionsLike | None = None,
    lower: ConditionsLike | None = None,
    conditions: Mapping[str, ConditionsLike] | None = None,
    gains: Mapping[str, Gain] | None = None,
    zones: Sequence[str] = TRIAGE,
    metric: MetricLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str | None = None,
    pos_label: Any = None,
    confidence: float | None = None,
    prior: float | None = None,
    stable: bool = False,
    missing: str = "error",
    random_state: int | None = 0,
) -> Bands:
    """Find the thresholds that divide a score into zones best: exactly, as if all combinations had been tried.

    Say what each zone must meet, what a row in it is worth, or both. With conditions alone as few rows as possible are
    between the lowest and the highest zone, and then as few errors as possible are in these two. Where a condition
    bounds how many rows are between, and not both of the outer zones have conditions: as few errors as possible. Of
    more than three zones, those with conditions are as large as possible, and the more so the farther they are from a
    zone without.

    Parameters
    ----------
    y_true, y_score
        Labels and scores, as in `tune_threshold`.
    tally
        Instead of labels and scores: a `ScoreTally` of the rows, or a `ScoreSketch`, whose bands are the best ones with
        thresholds at the edges of its bins.
    upper, lower
        Conditions on the highest and on the lowest zone: ``upper="ppv>=0.9"``, ``lower="npv>=0.95"``.
    conditions
        Conditions on any zone, by its name: ``{"ask": "share<=0.2"}``, or a list for a zone. What they can bound is of
        the rows in the zone: ``ppv`` (or precision) and ``npv``, the shares of positives and of negatives in it;
        ``share``, of all rows; ``recall`` (or ``fnr``), of all positives; ``fpr`` (or ``specificity``), of all
        negatives. *At most 200 of the 1,500 rows a day* is ``"share<=200/1500"``. An empty zone has no PPV and no NPV,
        and breaks no condition on them.
    gains
        What a row in a zone is worth: ``{zone: (if negative, if positive)}``, or one number for both. A cost is a
        negative gain; zones that are not named are worth 0.
    zones
        The names of the zones, from the lowest scores to the highest. Two are a cut, more than three are grades.
    metric
        A ratio such as ``"f1"`` to be best for, of the rows that are decided: those in the highest zone, as predicted
        positive, and in the lowest zone, as predicted negative. `gains` are added to its numerator: with ``"f1"`` and
        ``gains={"ask": -0.2}`` it is (2 TP − 0.2 asked) / (2 TP + FP + FN).
    sample_weight, weights, pos_label, prior, missing
        As in `tune_threshold`.
    confidence
        The probability with which all conditions hold on new data, at once.
    stable
        Whether thresholds are for new rows, as in `tune_threshold`: settled by resamples and a calibrated model.
    random_state
        The seed of random numbers: of the resamples of stable bands, and of `Bands.failure_rates`.

    Returns
    -------
    Bands
        Among combinations that are worth the same, the one with the highest thresholds.

    Examples
    --------
    >>> y_true, y_score = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> bands = tune_bands(y_true, y_score, upper="ppv>=0.9", lower="npv>=0.9")
    >>> bands.thresholds.tolist(), bands.shares.tolist()
    ([0.35, 0.55], [0.375, 0.25, 0.375])
    >>> tune_bands(y_true, y_score, gains={"no": (0, -4), "ask": -1, "yes": (-4, 0)}).confusion.tolist()
    [[3, 0], [1, 1], [0, 3]]
    """
    request = BandsRequest.of(
        upper=upper,
        lower=lower,
        conditions=conditions,
        gains=gains,
        zones=zones,
        metric=metric,
        confidence=confidence,
        weights=weights,
        prior=prior,
        stable=stable,
        pos_label=pos_label,
        missing=missing,
        random_state=random_state,
    )
    if tally is not None:
        if y_true is not None or y_score is not None or sample_weight is not None or pos_label is not None:
            raise ValueError("pass either rows or their tally, not both; a tally knows its positive label")
        return find_bands(*_tallied(tally, request))
    if y_true is None or y_score is None:
        raise ValueError("tune_bands needs rows: pass y_true and y_score, or tally=")
    return find_bands(array_source(y_true, y_score, sample_weight, request), request)


def _tallied(tally: ScoreTally | ScoreSketch, request: BandsRequest) -> tuple[TalliedRows, BandsRequest]:
    """The rows of a tally or a sketch, and the request at the tally's prior and for its positive label."""
    if isinstance(tally, ScoreTally):
        prior = request.task.prior if tally.given_prior is None else tally.given_prior
        if request.task.prior not in (None, prior):
            raise ValueError(
                f"the tally has the prior {tally.given_prior:g} given, and prior= is {request.task.prior:g}"
            )
        task = replace(request.task, prior=prior)
        return TalliedRows(tally), replace(request, task=task, pos_label=tally.pos_label)
    if request.confidence is not None and tally.weighted:
        raise ValueError(
            "a sketch does not know the single weights of its rows: leave out confidence=, or pass a tally"
        )
    return TalliedRows(tally.tally), request


def find_bands(source: RowsToTune, request: BandsRequest) -> Bands:
    """The bands of one sample for a request."""
    if request.confidence is not None:
        bands = _promised(source, request)
    elif request.stable:
        bands = _stable(source, request)
    else:
        bands = _exact(source, request)
    return bands if request.pos_label is None else bands.with_sample(pos_label=request.pos_label)


def _exact(source: RowsToTune, request: BandsRequest) -> Bands:
    """The best bands of the rows."""
    task = request.task
    found = None if task.is_joint else _separate(source, task)
    found = _together(source, task) if found is None else found
    if found is None:
        tally = source.tally()
        _require_scores(tally.entries, task)
        found = tally.entries, best_edges(tally.entries, task)
    return _with_failure_rates(bands_at(*found, request, source.dtype, source.sample), request)


def _with_failure_rates(bands: Bands, request: BandsRequest) -> Bands:
    rates = failure_rates(bands.confusion, bands.rows, request.task, request.random_state)
    return replace(bands, failure_rates=rates)


def _promised(source: RowsToTune, request: BandsRequest) -> Bands:
    """The best bands among those whose conditions hold on new data."""
    assert request.confidence is not None
    task = request.task
    rows = tally_for_limits(source)
    rows = rows if task.prior is None else rows.with_prior(task.prior)
    counts = frequencies(rows, "a condition with confidence", request.weights)
    _require_scores(counts.entries, task)
    edges, by_pilot = assured_edges(counts.candidates, task, request.confidence, rows.order)
    bands = bands_at(counts.entries, edges, request, counts.dtype, rows.sample)
    inside = (bands.thresholds > -np.inf) & (bands.thresholds < np.inf)
    at_score = np.array(by_pilot) & inside  # there the promise is of the score that the pilot chose
    thresholds = np.where(at_score, bands.intervals[:, 1], bands.thresholds)
    return replace(bands, thresholds=np.maximum.accumulate(thresholds))  # another one in the same interval may be lower


def _stable(source: RowsToTune, request: BandsRequest) -> Bands:
    """Bands for new rows: each boundary is settled by itself, and boundaries that cross are settled as one."""
    task = request.task
    if task.is_joint:
        raise ValueError(
            "stable=True settles each threshold by itself, and a condition on a zone between two others, or metric=, "
            "joins them: leave stable=False"
        )
    groups = [[boundary] for boundary in task.boundaries]
    while True:
        settled = settle(source, [task.of_cut(group) for group in groups], request.random_state)
        placed = [rules.placed_one(one.curve.entries, one.edge, source.dtype) for one in settled]
        crossed = [i for i, (low, high) in enumerate(itertools.pairwise(placed)) if low.thresholds > high.thresholds]
        if not crossed:
            break
        groups[crossed[0]] += groups.pop(crossed[0] + 1)
    numbers = [i for i, group in enumerate(groups) for _ in group]
    every = [settled[i] for i in numbers]
    _require_scores(every[0].curve.entries, task)
    bands = _bands([placed[i] for i in numbers], request, source.sample)
    return _with_failure_rates(replace(bands, stability=tuple(one.stability for one in every)), request)


def _separate(source: RowsToTune, task: ZoneTask) -> tuple[Entries, list[int]] | None:
    """The edges of boundaries that are searched one by one; None where they have to be found together.

    Where as few rows as possible should be between two boundaries, and these cross, a cut that meets the conditions of
    both has none between.
    """
    try:
        found = search(source, task.objectives)
        if not all(one.is_defined for one in found):  # of a sketch
            return None
        edges = [int(one.verdict.winner[0]) for one in found]
        in_order = all(low >= high for low, high in itertools.pairwise(edges))
        if not in_order and task.aim.errors is not None:
            found = search(source, [task.of_cut(task.boundaries)])
            if not found[0].is_defined:
                return None
            edges = [int(found[0].verdict.winner[0])] * len(edges)
            in_order = True
    except InfeasibleError:
        return None  # the zones together say why
    entries = found[0].entries
    if not in_order or len(entries) < len(task.names):
        return None
    _require_scores(entries, task)
    return entries, edges


def _together(source: RowsToTune, task: ZoneTask) -> tuple[Entries, list[int]] | None:
    """The edges of boundaries that are found together, in entries of many scores; None where every one is needed."""
    entries = source.count()
    if entries.in_scores or not (source.refines and entries.totals.all()):
        return None
    _require_finite(entries)
    found = search_zones(source, entries, task)
    return None if found is None or len(found[0]) < len(task.names) else found


def _require_finite(entries: Entries) -> None:
    """Raise where sums of weights may overflow."""
    if not float(entries.totals[0].max()) < LARGEST_WEIGHT:
        raise ValueError(f"the weights add up to more than {LARGEST_WEIGHT:g}: divide them by a constant")


def _require_scores(entries: Entries, task: ZoneTask) -> None:
    """Raise where rows say nothing of zones: they lack a class, or have too few distinct scores."""
    _require_finite(entries)
    negatives, positives = entries.totals[0].tolist()
    if not (negatives > 0 and positives > 0):
        only, other = ("positive", "negative") if positives > 0 else ("negative", "positive")
        raise ValueError(f"bands need rows of both classes, and all rows are {only}: add {other} ones")
    if len(entries) < len(task.names):
        raise ValueError(
            f"{len(task.names)} zones need at least as many distinct scores, and there are {len(entries)}: name at "
            f"most {max(len(entries), 2)} zones"
            if len(entries) > 1
            else "all rows have the same score: no threshold divides them"
        )


def bands_at(
    entries: Entries, edges: Sequence[int], request: BandsRequest, dtype: np.dtype[Any], sample: Sample
) -> Bands:
    """The bands at some edges of the entries of one sample, the lowest boundary first."""
    bands = _bands([rules.placed_one(entries, edge, dtype) for edge in edges], request, sample)
    return replace(bands, confusion=rows_between(entries, edges))


def _bands(placed: Sequence[Placed], request: BandsRequest, sample: Sample) -> Bands:
    """The bands with some cuts as their boundaries, the lowest first."""
    task, aim = request.task, request.task.aim
    accepted = [(one.confusion.fp, one.confusion.tp) for one in placed]
    rejected = placed[0].confusion
    inside = [(low[0] - high[0], low[1] - high[1]) for low, high in itertools.pairwise(accepted)]
    counts = np.array([(rejected.tn, rejected.fn), *inside, accepted[-1]])
    # Nothing is known of scores below all that were seen: where the zone below is empty, it stays so
    thresholds = [-np.inf if not one.confusion.tn + one.confusion.fn else one.thresholds for one in placed]
    return Bands(
        zones=task.names,
        thresholds=np.array(thresholds, dtype=float),
        confusion=counts,
        intervals=np.array([(one.lower, one.upper) for one in placed], dtype=float),
        value=task.value(counts) if request.has_gains or aim.metric is not None else float("nan"),
        gains=aim.gains if request.has_gains else None,
        metric=aim.metric,
        conditions=task.conditions,
        confidence=request.confidence,
        prior=float(rejected.prior) if task.prior is None else task.prior,
        prior_given=task.prior is not None,
        sample=sample,
    )
