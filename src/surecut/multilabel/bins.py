"""The exact best cut of each label of a dense matrix, without sorting: the idea of `search`, many labels at a time.

The scores of a run of labels are counted in bins; bins that cannot hold a label's best cut are left alone, and only
rows in the others are collected and sorted. The matrix is read twice, block by block, in the order it has in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles
from surecut._kernels import FirstBins, compiled, first_bins
from surecut.confusion import Confusion
from surecut.multilabel.search import LabelCuts, LabelEntries, has_classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from surecut.search import Objective

BITS = 11
"""Bins per label, as a power of two."""

LABELS_AT_ONCE = 64
ROWS_AT_ONCE = 2048

FROM_ROWS = 8192
"""With fewer rows sorting is quicker."""

FROM_SIZE = 4_000_000
"""With fewer scores sorting is done before numba is loaded."""


def can_be_binned(scores: NDArray[Any], objective: Objective) -> bool:
    """Whether this search is worth while, and possible."""
    return (
        len(scores) >= FROM_ROWS
        and scores.size >= FROM_SIZE
        and objective.can_be_bounded
        and not objective.constraints
        and compiled() is not None
    )


def binned_cuts(
    scores: NDArray[Any], truth: NDArray[Any], columns: slice, objective: Objective, names: Sequence[Any]
) -> LabelCuts | None:
    """The best cuts of some labels; None where a score is NaN, which whoever sorts will say."""
    kernels: Any = compiled()
    bins = [first_bins(sample, BITS) for sample in _samples(scores, columns)]
    parameters = np.array([tuple(map(int, one)) for one in bins], dtype=np.int64)
    count = 2 * int(parameters[:, 3].max())
    counts = np.zeros((len(bins), count, 2), dtype=np.int64)
    checksums = np.zeros(len(bins), dtype=np.int64)
    for bits, positive in _blocks(scores, truth, columns):
        if kernels.label_histogram(bits, positive, parameters, counts, checksums):
            return None
    for one, half in zip(counts, parameters[:, 3], strict=True):  # the bins on both sides of zero are one
        one[half] += one[half - 1]
        one[half - 1] = 0
    totals = counts.sum(axis=1)
    needed = _needed(counts[:, ::-1], totals, objective)[:, ::-1]
    size = int((counts.sum(axis=2) * needed).sum())
    keys, label = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.int64)
    is_positive, found = np.empty(size, dtype=np.bool_), 0
    for bits, positive in _blocks(scores, truth, columns):
        found = kernels.label_select(bits, positive, parameters, needed, keys, label, is_positive, found)
    entries = _entries(bins, counts, needed, totals, (keys, label, is_positive), scores.dtype)
    return replace(entries.best_cuts(objective, names), checksums=checksums.view(np.uint64))


def _samples(scores: NDArray[Any], columns: slice) -> NDArray[np.float64]:
    """Some scores of each label, from all over."""
    rows = np.unique(np.linspace(0, len(scores) - 1, 1024).astype(np.int64))
    return as_doubles(scores[rows, columns].T)


def _blocks(
    scores: NDArray[Any], truth: NDArray[Any], columns: slice
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8]]]:
    for start in range(0, len(scores), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        positive = np.ascontiguousarray(truth[rows, columns]) != 0
        yield as_doubles(scores[rows, columns]).view(np.int64), positive.view(np.uint8)


def _needed(counts: NDArray[np.int64], totals: NDArray[np.int64], objective: Objective) -> NDArray[np.bool_]:
    """Bins (descending) in which a label's optimum may hide, and those beside an edge that may win.

    As in `search`: a cut inside a bin accepts at most all of its positives and none of its negatives; among ties the
    highest wins, so that an edge may win only if it ties with the best and no higher edge is as good.
    """
    above = np.concatenate((np.zeros((len(counts), 1, 2), dtype=np.int64), np.cumsum(counts, axis=1)), axis=1)
    fp, tp = above[..., 0], above[..., 1]
    negatives, positives = totals[:, :1], totals[:, 1:]
    metric, defined = objective.metric, has_classes(objective.metric, totals)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.asarray(metric.evaluate(Confusion(tp, fp, positives - tp, negatives - fp)))
        corner = Confusion(tp[:, 1:], fp[:, :-1], positives - tp[:, 1:], negatives - fp[:, :-1])
        bounds = np.nan_to_num(np.asarray(metric.evaluate(corner)), nan=-np.inf)
    values = np.where(np.isnan(values), -np.inf, values)
    best = values.max(axis=1, keepdims=True)
    least = best - 1e-12 * np.abs(np.where(np.isinf(best), 0.0, best))
    higher = np.concatenate((np.full((len(counts), 1), -np.inf), np.maximum.accumulate(values, axis=1)[:, :-1]), axis=1)
    occupied = counts.any(axis=2)
    place = np.arange(counts.shape[1])
    hiding = occupied & np.where(place < values.argmax(axis=1)[:, None], bounds >= least, bounds > best)
    winners = (values >= least) & (values > higher)

    needed = hiding.copy()
    last = np.maximum.accumulate(np.where(occupied, place, -1), axis=1)  # the nearest occupied bin at or above
    next_ = np.minimum.accumulate(np.where(occupied, place, len(place))[:, ::-1], axis=1)[:, ::-1]  # at or below
    label, edge = np.nonzero(winners)
    at = np.where(edge > 0, last[label, edge - 1], -1)
    needed[label[at >= 0], at[at >= 0]] = True
    inside = edge < len(place)
    at = np.where(inside, next_[label, np.minimum(edge, len(place) - 1)], len(place))
    needed[label[at < len(place)], at[at < len(place)]] = True
    return np.asarray(needed & defined[:, None])


def _entries(
    bins: list[FirstBins],
    counts: NDArray[np.int64],
    needed: NDArray[np.bool_],
    totals: NDArray[np.int64],
    collected: tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.bool_]],
    dtype: np.dtype[Any],
) -> LabelEntries:
    """Collected rows one by one; of the bins between them each run as one entry, where no best cut is."""
    keys, label, is_positive = collected
    by_label = np.argsort(label, kind="stable")
    edges = np.searchsorted(label[by_label], np.arange(len(bins) + 1))
    parts = []
    for i, one in enumerate(bins):
        chosen = by_label[edges[i] : edges[i + 1]]
        mine, positive = keys[chosen], is_positive[chosen].astype(np.int64)
        idle = np.flatnonzero(counts[i].any(axis=1) & ~needed[i])
        if len(idle):
            apart = np.concatenate(([0], np.cumsum(needed[i, idle[0] : idle[-1] + 1])))[idle - idle[0]]
            starts = np.flatnonzero(np.concatenate(([True], np.diff(apart) > 0)))
            lowest, _ = one.ends(idle[starts])
            masses = np.add.reduceat(counts[i, idle], starts)
        else:
            lowest, masses = np.zeros(0, dtype=np.uint64), np.zeros((0, 2), dtype=np.int64)
        every = np.concatenate((mine, lowest))
        order = np.argsort(every)[::-1]
        parts.append(
            (
                every[order],
                np.concatenate((positive, masses[:, 1]))[order],
                np.concatenate((1 - positive, masses[:, 0]))[order],
            )
        )
    sizes = [len(part[0]) for part in parts]
    return LabelEntries(
        starts=np.concatenate(([0], np.cumsum(sizes))),
        keys=np.concatenate([part[0] for part in parts]),
        positive=np.concatenate([part[1] for part in parts]),
        negative=np.concatenate([part[2] for part in parts]),
        totals=totals,
        dtype=dtype,
        weighted=False,
    )
