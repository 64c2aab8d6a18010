"""Scores of each class in bars, over the range that is worth drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

if TYPE_CHECKING:
    from surecut.core.candidates import Candidates

BINS = 60
"""Bars of the histogram."""


class HistogramDict(TypedDict):
    """Weight of each class between edges, the outer bars holding whatever lies beyond."""

    edges: list[float]
    positive: list[float]
    negative: list[float]


def score_range(candidates: Candidates) -> tuple[float, float]:
    """The range of scores that is drawn: all finite ones, unless a few outliers would squeeze the rest."""
    scores = np.clip(candidates.accepted[1:], -1e300, 1e300)
    share = candidates.confusion.predicted_positives[1:] / candidates.confusion.total[-1]
    is_finite = np.abs(candidates.accepted[1:]) < np.finfo(float).max  # which stands for an infinite score
    if is_finite.any():
        scores, share = scores[is_finite], share[is_finite]
    low, high = float(scores[-1]), float(scores[0])
    inner_high, inner_low = (
        float(scores[min(int(np.searchsorted(share, at)), len(scores) - 1)]) for at in (0.005, 0.995)
    )
    reach = 1.5 * (inner_high - inner_low)
    if reach > 0:
        low, high = max(low, inner_low - reach), min(high, inner_high + reach)
    if low == high:
        width = abs(low) / 2 or 0.5
        low, high = low - width, high + width
    return low, high


def histogram(candidates: Candidates, axis: tuple[float, float]) -> HistogramDict:
    """The weight of each class in bars of equal width over a range.

    >>> from surecut import ScoreTally
    >>> bars = histogram(ScoreTally.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]).candidates, (0.0, 1.0))
    >>> bars["positive"][24], sum(bars["negative"])
    (1.0, 2.0)
    """
    edges = np.linspace(*axis, BINS + 1)
    bars = np.clip(np.searchsorted(edges, candidates.accepted[1:], side="right") - 1, 0, BINS - 1)
    positive, negative = (
        np.bincount(bars, weights=np.diff(cell), minlength=BINS)
        for cell in (candidates.confusion.tp, candidates.confusion.fp)
    )
    return HistogramDict(edges=edges.tolist(), positive=positive.tolist(), negative=negative.tolist())
