"""What the explorer shows, as plain values: the contract between the numbers and the page.

The page finds best cuts by itself, for any costs and any prior. It is exact because of what it is given: the *grid*
of cuts holds every vertex of the ROC hull (where every linear-fractional optimum stands, and MCC's) and the best cut of
each listed metric that need not lie there; in between it holds enough cuts for smooth curves. A grid cut is an exact
cut of the data with its exact counts, and the page moves from one to another, so that no number on it is interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NotRequired, Protocol, TypedDict

import numpy as np

from surecut._plurals import counted
from surecut._version import __version__
from surecut.certificates.bands import curve_band
from surecut.core.candidates import Candidates, Hull
from surecut.core.rules import TIE, place
from surecut.core.tally import CoarseTally, ScoreTally
from surecut.decisions.wording import (
    between,
    capitalized,
    label_text,
    positives_worth,
    range_text,
    tolerance_text,
    unsettled_text,
)
from surecut.metrics import CATALOGUE, NOISE, LinearFractionalMetric, Metric, get_metric
from surecut.report.histogram import HistogramDict, histogram, score_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.confusion import Confusion
    from surecut.decisions.cut import Cut
    from surecut.tuning.request import MetricLike

ALL_CUTS_UP_TO = 2_000
"""Samples with no more distinct cuts than this are shown whole."""

POINTS = 700
"""Cuts picked evenly by score, and as many evenly by the share that is predicted positive, from larger samples."""

TITLES = {
    "accuracy": "Accuracy",
    "am": "AM (balanced accuracy)",
    "f0.5": "F0.5",
    "f1": "F1",
    "f2": "F2",
    "gilbert": "Gilbert skill",
    "gmean": "G-mean",
    "hmean": "H-mean",
    "jaccard": "Jaccard",
    "kappa": "Cohen's kappa",
    "mcc": "MCC",
    "npv": "NPV",
    "precision": "Precision",
    "recall": "Recall",
    "specificity": "Specificity",
    "tversky": "Tversky",
    "utility": "Utility",
    "weighted_accuracy": "Weighted accuracy",
    "youden": "Youden's J",
}
LAST = ("precision", "recall", "specificity", "npv")
"""Metrics that alone are best at an end of the curve: they are context, and stand last."""


class Tallied(Protocol):
    """What a summary reads: a `ScoreTally`, a `ScoreSketch`, or anything that knows its cuts."""

    @property
    def candidates(self) -> Candidates: ...
    @property
    def hull(self) -> Hull: ...


class CellsDict(TypedDict):
    """Weights of (tp, fp, fn, tn), each `constant + positives · P + negatives · N` in the class totals."""

    constant: list[float]
    positives: list[float]
    negatives: list[float]


class MetricDict(TypedDict):
    """A metric as the page evaluates it: by its cells, by a formula it knows, or by values it is given."""

    name: str
    title: str
    formula: str
    kind: str
    numerator: NotRequired[CellsDict]
    denominator: NotRequired[CellsDict]
    values: NotRequired[list[float | None]]
    fixed_prior: bool


class GridDict(TypedDict):
    """Cuts in descending order of threshold, the first of which predicts nothing; infinities are text."""

    threshold: list[float | str]
    tp: list[float]
    fp: list[float]


class StabilityDict(TypedDict):
    """How settled the chosen threshold is; infinities are text, as among thresholds."""

    quantiles: list[float | str]
    near_optimal: list[float | str]
    sentence: str


class CutDict(TypedDict):
    """A cut that somebody chose: where it stands on the grid, and what is said about it."""

    at: int
    threshold: float | str
    metric: str
    value: float | None
    constraints: list[str]
    shrinkage: str
    stability: StabilityDict | None


class BandDict(TypedDict):
    """Limits of a metric at every cut of the grid."""

    lower: list[float | None]
    upper: list[float | None]


class Summary(TypedDict):
    """Everything on the page."""

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
    metrics: list[MetricDict]
    left_out: list[str]
    bands: dict[str, BandDict]
    band_note: str
    chosen: CutDict
    tie: float
    rounding: float
    surecut_version: str


def summarize(
    tally: Tallied,
    *,
    metric: MetricLike = "f1",
    metrics: Iterable[MetricLike] = (),
    cut: Cut | None = None,
    confidence: float = 0.95,
    title: str = "Where to cut",
) -> Summary:
    """What the explorer shows of a tally.

    Parameters
    ----------
    tally
        The scores, as a `ScoreTally`; its given prior, if it has one, is the prior that the page opens with. A
        `ScoreSketch` knows the cuts at the edges of its bins only: the page says so.
    metric
        The metric that the page opens with; with `cut`, that of the cut.
    metrics
        Further metrics of one's own; the catalogue and costs are always there.
    cut
        The cut that the page opens at; the best for `metric` unless said otherwise.
    confidence
        The confidence of the band around the curve, which holds at all thresholds at once. Weighted rows get no band.
    title
        The page's heading.

    Examples
    --------
    >>> from surecut import ScoreTally
    >>> summary = summarize(ScoreTally.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]))
    >>> summary["grid"]["tp"], summary["chosen"]["value"]
    ([0, 1, 2, 2], 0.8)
    """
    candidates = tally.candidates
    first = cut.metric if cut is not None else get_metric(metric)
    if cut is None:
        cut = candidates.best_cut(first)
    best, left_out = _best_cuts(tally, [first, *map(get_metric, metrics)])
    listed = [one.metric for one in best]
    axis = score_range(candidates)
    at = grid_cuts(candidates, tally.hull, [one.threshold for one in (cut, *best)], axis)
    chosen = int(candidates.at(cut.threshold))
    confusion = candidates.confusion[at]
    prior = candidates.given_prior
    positives, negatives = candidates.confusion.positives[0], candidates.confusion.negatives[0]
    return Summary(
        title=title,
        rows=candidates.sample.rows,
        weighted=candidates.sample.weighted,
        positives=positives.item(),
        negatives=negatives.item(),
        prior=float(positives / (positives + negatives)),
        given_prior=prior,
        pos_label=None if cut.pos_label is None else label_text(cut.pos_label),
        is_whole=len(at) == len(candidates.accepted),
        in_bins=isinstance(tally, CoarseTally) or not isinstance(tally, ScoreTally),
        axis=list(axis),
        grid=GridDict(
            threshold=[plain_number(cut.threshold if i == chosen else placed_at(candidates, int(i))) for i in at],
            tp=confusion.tp.tolist(),
            fp=confusion.fp.tolist(),
        ),
        histogram=histogram(candidates, axis),
        metrics=[metric_dict(one, candidates, at) for one in listed],
        left_out=left_out,
        bands=curve_bands(tally, [one for one in listed if one.name not in LAST], confusion, confidence),
        band_note=f"Shaded: where the curve of all rows of this kind runs, at every threshold at once, with "
        f"{100 * confidence:g} % confidence, if the model was not trained on these rows.",
        chosen=CutDict(
            at=int(np.searchsorted(at, chosen)),
            threshold=plain_number(cut.threshold),
            metric=first.name,
            value=None if math.isnan(cut.value) else cut.value,
            constraints=list(map(str, cut.constraints)),
            shrinkage=positives_worth(cut.shrinkage) if cut.shrinkage else "",
            stability=_stability(cut),
        ),
        tie=TIE,
        rounding=NOISE,
        surecut_version=__version__,
    )


def _stability(cut: Cut) -> StabilityDict | None:
    if (stability := cut.stability) is None:
        return None
    most, half = (
        " to ".join(between(stability.quantiles[low], stability.quantiles[high])) for low, high in ((0, -1), (1, -2))
    )
    unsettled = unsettled_text(cut)
    return StabilityDict(
        quantiles=[plain_number(one) for one in stability.quantiles],
        near_optimal=[plain_number(end) for end in stability.near_optimal],
        sentence=f"Vertical bands: 90 % of {counted(stability.resamples, 'resample')} of the validation rows put the "
        f"threshold in {most}, half of them in {half}. Bar at the bottom: thresholds in {range_text(stability)} "
        f"{tolerance_text(stability)} on the validation rows." + (f" {capitalized(unsettled)}." if unsettled else ""),
    )


def placed_at(candidates: Candidates, which: int) -> float:
    return float(place(float(candidates.rejected[which]), float(candidates.accepted[which]), candidates.dtype))


def _best_cuts(tally: Tallied, asked: Sequence[Metric]) -> tuple[list[Cut], list[str]]:
    """The best cut of each metric that these rows define, asked for first; and why the others are left out."""
    catalogue = {name: make() for name, make in CATALOGUE.items()}
    names = [name for name in catalogue if name not in LAST] + list(LAST)
    metrics = {metric.name: metric for metric in [*asked, *(catalogue[name] for name in names)]}
    best, left_out = [], []
    for metric in metrics.values():
        try:
            best.append((tally.hull if metric.on_hull else tally.candidates).best_cut(metric))
        except ValueError as error:
            left_out.append(str(error))
    return best, left_out


def grid_cuts(
    candidates: Candidates, hull: Hull, thresholds: Iterable[float], axis: tuple[float, float]
) -> NDArray[np.intp]:
    """Positions of the cuts that the page knows, those at some thresholds among them."""
    accepted = candidates.accepted
    if len(accepted) <= ALL_CUTS_UP_TO:
        return np.arange(len(accepted))
    share = candidates.confusion.predicted_positives
    exact = [0, len(accepted) - 1, *(int(candidates.at(threshold)) for threshold in thresholds)]
    by_share = np.searchsorted(share, np.linspace(0, share[-1], POINTS))
    by_score = np.searchsorted(-accepted, -np.linspace(*axis, POINTS))
    on_hull = np.searchsorted(-accepted, -hull.accepted)
    picked = np.unique(np.concatenate((exact, by_share, by_score, on_hull)))
    return picked[picked < len(accepted)]


def metric_dict(metric: Metric, candidates: Candidates, at: NDArray[np.intp]) -> MetricDict:
    shown = MetricDict(
        name=metric.name,
        title=TITLES.get(metric.name, metric.name.upper() if metric.name.startswith("f") else metric.name),
        formula=(type(metric).__doc__ or "").strip().splitlines()[0],
        kind=type(metric).__name__,
        fixed_prior=False,
    )
    if isinstance(metric, LinearFractionalMetric):
        shown["kind"] = "cells"
        shown["numerator"], shown["denominator"], shown["fixed_prior"] = _cells(metric, candidates)
    elif metric.name not in CATALOGUE:
        values = np.asarray(metric.evaluate(candidates.at_prior()), dtype=float)[at]
        shown["kind"], shown["fixed_prior"] = "values", True
        shown["values"] = [value if math.isfinite(value) else None for value in values.tolist()]
    return shown


def _cells(metric: LinearFractionalMetric, candidates: Candidates) -> tuple[CellsDict, CellsDict, bool]:
    """The metric's cells as functions of the class totals; as numbers at the present prior where that fails.

    The catalogue's cells are affine in the totals. A metric of one's own may be any function of the prior, which no
    page can hold.
    """
    confusion = candidates.at_prior()
    positives, negatives = float(confusion.positives[0]), float(confusion.negatives[0])
    try:
        at_zero, at_positive, at_negative = (_weights(metric, *totals) for totals in ((0, 0), (1, 0), (0, 1)))
        by_positives, by_negatives = at_positive - at_zero, at_negative - at_zero
        trials = ((0.25, 0.75), (3.0, 5.0), (positives, negatives))
        if all(
            np.array_equal(at_zero + by_positives * p + by_negatives * n, _weights(metric, p, n)) for p, n in trials
        ):
            numerator, denominator = (
                CellsDict(constant=c.tolist(), positives=p.tolist(), negatives=n.tolist())
                for c, p, n in zip(at_zero, by_positives, by_negatives, strict=True)
            )
            return numerator, denominator, False
    except ZeroDivisionError:
        pass  # a function of the prior, which does not exist without rows
    none = [0.0] * 4
    numerator, denominator = (
        CellsDict(constant=weights.tolist(), positives=none, negatives=none)
        for weights in _weights(metric, positives, negatives)
    )
    return numerator, denominator, True


def _weights(metric: LinearFractionalMetric, positives: float, negatives: float) -> NDArray[np.float64]:
    return np.array(metric.cells(positives, negatives), dtype=float)


def curve_bands(
    tally: Tallied, metrics: Sequence[Metric], confusion: Confusion, confidence: float
) -> dict[str, BandDict]:
    """The band of each metric of which something is known; of rows that are not counts, none."""
    if not isinstance(tally, ScoreTally) or tally.weight is not tally.rows:
        return {}
    found = {}
    for metric in metrics:
        if metric.extremes_at_corners:
            lower, upper = curve_band(metric, tally, confusion, confidence)
            found[metric.name] = BandDict(lower=rounded(lower), upper=rounded(upper))
    return found


def rounded(values: NDArray[np.float64]) -> list[float | None]:
    """For drawing only: four digits are more than a screen shows."""
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values.tolist()]


def plain_number(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)
