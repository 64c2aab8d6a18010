"""What the page of many labels shows, as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from surecut._version import __version__
from surecut.decisions.wording import amount, label_text
from surecut.report.summary import TITLES

if TYPE_CHECKING:
    from surecut.core.tally import ScoreTally
    from surecut.decisions.multilabel import MultilabelCut

MOST = 2_000
"""Labels on the page: those with the most positives, and the worst."""

WORST = 8
"""The worst labels, which the page lists by themselves."""

POINTS = 48
"""Points of a small curve."""


class LabelDict(TypedDict):
    """A row of the table; `curve` is the metric from the lowest to the highest score, `at` where the cut stands.

    `spread` holds 90 % of the resampled thresholds of a stable cut, as places on the curve.
    """

    name: str
    threshold: float | str
    value: float | None
    positives: float
    prior: float
    precision: float | None
    recall: float | None
    flagged: float
    shared: bool
    curve: list[float | None]
    at: float | None
    spread: tuple[float, float] | None


class LabelsSummary(TypedDict):
    """Everything on the page of many labels."""

    title: str
    metric: str
    average: str
    value: float
    sentence: str
    constraints: list[str]
    is_stable: bool
    labels: list[LabelDict]
    count: int
    worst: list[str]
    surecut_version: str


def summarize_labels(
    cut: MultilabelCut, tallies: Sequence[ScoreTally] = (), *, title: str = "Where to cut"
) -> LabelsSummary:
    """What the page shows of a cut of many labels.

    Parameters
    ----------
    cut
        The cut.
    tallies
        A tally for each of its labels, for the small curves; without them there are none.
    title
        The page's heading.

    Examples
    --------
    >>> from surecut import tune_thresholds
    >>> cut = tune_thresholds([[1, 0], [0, 1], [1, 0]], [[0.5, 0.2], [0.2, 0.7], [1.0, 0.5]], labels=["cat", "dog"])
    >>> [label["name"] for label in summarize_labels(cut)["labels"]]
    ['cat', 'dog']
    """
    worst = [cut.position(label) for label in cut.worst(WORST)]
    by_positives = np.argsort(-np.asarray(cut.confusion.positives), kind="stable").tolist()
    shown = list(dict.fromkeys([*by_positives[: MOST - len(worst)], *worst]))
    return LabelsSummary(
        title=title,
        metric=TITLES.get(cut.metric.name, cut.metric.name),
        average=cut.average,
        value=cut.value,
        sentence=str(cut),
        constraints=list(map(str, cut.constraints)),
        is_stable=cut.stability is not None,
        labels=[_label(cut, i, tallies[i] if len(tallies) else None) for i in shown],
        count=len(cut),
        worst=[_worst_text(cut, i) for i in worst],
        surecut_version=__version__,
    )


def _label(cut: MultilabelCut, i: int, tally: ScoreTally | None) -> LabelDict:
    confusion = cut.confusion[i]
    threshold, value = float(cut.thresholds[i]), float(cut.per_label[i])
    curve: list[float | None] = []
    at = spread = None
    if tally is not None:
        scores = np.clip(tally.thresholds[1:], -1e300, 1e300)
        low, high = float(scores[-1]), float(scores[0])
        grid = np.linspace(low, high, POINTS)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.asarray(cut.metric.evaluate(tally.confusion), dtype=float)
        curve = [_defined(v) for v in values[tally.candidates.at(grid)].tolist()]
        if high > low and math.isfinite(threshold):
            at = _place(threshold, low, high)
        if high > low and cut.stability is not None and (stability := cut.stability[i]) is not None:
            start, end = stability.spread
            spread = _place(start, low, high), _place(end, low, high)
    return LabelDict(
        name=label_text(cut.labels[i]),
        threshold=threshold if math.isfinite(threshold) else str(threshold),
        value=_defined(value),
        positives=confusion.positives,
        prior=confusion.prior,
        precision=_share(confusion.tp, confusion.predicted_positives),
        recall=_share(confusion.tp, confusion.positives),
        flagged=confusion.predicted_positives / confusion.total,
        shared=cut.labels[i] in cut.shared,
        curve=curve,
        at=at,
        spread=spread,
    )


def _place(threshold: float, low: float, high: float) -> float:
    """Where a threshold stands between the lowest and the highest score."""
    return min(1.0, max(0.0, (threshold - low) / (high - low)))


def _worst_text(cut: MultilabelCut, i: int) -> str:
    confusion = cut.confusion[i]
    return (
        f"{label_text(cut.labels[i])}: {cut.metric.name} {cut.per_label[i]:.4f}, "
        f"{amount(confusion.predicted_positives)} flagged, {amount(confusion.positives)} positive"
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _defined(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
