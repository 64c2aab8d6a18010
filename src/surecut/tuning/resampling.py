"""Best cuts of resamples: of rows drawn again with replacement, from the counts at each score alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles
from surecut.core import rules
from surecut.core.draws import Draw, bin_starts, counts_drawn
from surecut.core.entries import Entries, both_classes, constant
from surecut.core.keys import ordered_keys, scores_of_keys
from surecut.core.threads import on_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.rules import Objective

RESAMPLES = 200

AT_ONCE = 1 << 17
"""Counts of resamples that are drawn at once, by one thread, with random numbers of their own."""


@dataclass(frozen=True)
class EdgeCurve:
    """The edges of one sample's entries: what each accepts, and is worth."""

    entries: Entries
    objective: Objective
    best: int
    values: NDArray[np.float64]
    accepted: NDArray[np.float64]
    """Numbers of rows."""

    @classmethod
    def known(cls, entries: Entries, objective: Objective) -> EdgeCurve:
        """Of entries that have a cut which can be chosen."""
        curve = cls.of(entries, objective)
        assert curve is not None
        return curve

    @classmethod
    def of(cls, entries: Entries, objective: Objective) -> EdgeCurve | None:
        """None where no cut can be chosen."""
        verdict = rules.judge(entries, objective)
        if not verdict.best[0] > -np.inf:
            return None
        accepted = np.concatenate(([0.0], np.cumsum(both_classes(entries.rows))))
        return cls(entries, objective, int(verdict.winner[0]), objective.values(entries.edges), accepted)

    def nearest(self, position: float) -> int:
        """The edge that accepts about so many rows, among those that can be chosen; the higher of two."""
        distance = np.where(self.values > -np.inf, np.abs(self.accepted - position), np.inf)
        return int(distance.argmin())

    def loss(self, edge: int) -> float:
        """By how much an edge is worth less than the best one."""
        with np.errstate(invalid="ignore"):
            return max(0.0, float(np.nan_to_num(self.values[self.best] - self.values[edge], nan=0.0, posinf=np.inf)))

    def threshold(self, edge: int, dtype: np.dtype[Any]) -> float:
        """Where the threshold of an edge is put."""
        return float(rules.placed_one(self.entries, edge, dtype).thresholds)

    def within(self, edge: int, tolerance: float) -> tuple[float, float]:
        """(lower, upper]: the thresholds around an edge that lose at most so much."""
        entries = self.entries
        floor = min(self.values[self.best] - tolerance, self.values[edge])  # a difference of floats may be an ulp off
        below = np.flatnonzero(~(self.values >= floor))
        where = int(np.searchsorted(below, edge))
        first = int(below[where - 1]) + 1 if where else 0
        last = int(below[where]) - 1 if where < len(below) else len(entries)
        ends = scores_of_keys(np.array([entries.high[min(last, len(entries) - 1)], entries.low[max(first, 1) - 1]]))
        lower, upper = ends.tolist()
        return -np.inf if last == len(entries) else lower, np.inf if first == 0 else upper


@dataclass(frozen=True)
class ResampledCuts:
    """The best cuts of resamples, and what they gain on those resamples.

    Attributes
    ----------
    position
        How many rows each accepts, ascending: halfway to the next row of the resample, where rows are not drawn.
    gain
        How much more each is worth on its resample than the best cut of all rows is there.
    """

    position: NDArray[np.float64]
    gain: NDArray[np.float64]

    def tell_of(self, curve: EdgeCurve) -> bool:
        """Whether losses on a curve can be compared with gains: there are some, and the best value is finite."""
        return len(self.gain) > 0 and math.isfinite(curve.values[curve.best])

    def in_gains(self, loss: float) -> float:
        """A loss on the rows in units of what resamples gain by chance, in the mean."""
        gain = float(self.gain.mean())
        return loss / gain if gain > 0 else math.copysign(math.inf, loss) if loss else 0.0

    def quantile(self, share: float) -> float:
        """That of the positions which so many are not above; an actual one."""
        return float(self.position[max(0, math.ceil(share * len(self.position)) - 1)])

    def clipped(self, position: float, share: float) -> float:
        """The nearest position that leaves at least such a share of the cuts on each side."""
        last = len(self.position) - 1
        low = math.floor(share * last)
        high = last - low
        if high - low <= 1:  # one cut, the median: two neighbours in this order may be at different peaks
            high = low = last // 2
        return min(max(position, float(self.position[low])), float(self.position[high]))


def resample(curve: EdgeCurve, rng: np.random.Generator, folds: Folds | None = None, workers: int = 1) -> ResampledCuts:
    """The best cut of each of some resamples of the rows; where the metric is undefined on one, it is left out.

    Weighted rows come with the mean weight of their bin and class. Rows without a score stay as they are.
    """
    entries, objective = curve.entries, curve.objective
    if not len(entries):  # a label of a sparse matrix without a stored score
        return ResampledCuts(np.zeros(0), np.zeros(0))
    starts = bin_starts(entries.rows, [curve.best])
    rows = np.add.reduceat(entries.rows, starts, axis=0)
    mean = np.add.reduceat(entries.weight, starts, axis=0) / np.maximum(rows, 1) if entries.weighted else None
    above = np.concatenate(([0.0], np.cumsum(both_classes(rows))))
    here = int(np.searchsorted(starts, curve.best))
    draw, bins = counts_drawn(rows) if folds is None else folds.drawn(entries, starts), len(rows)
    keys = constant(np.uint64(0), RESAMPLES * bins)  # bins are as good as scores here

    def work(chunk: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        size, seed = chunk
        counts = draw(np.random.default_rng(seed), size)
        flat = counts.reshape(-1, 2)
        weight = flat if mean is None else (counts * mean).reshape(-1, 2)
        of_all = keys[: len(flat)]
        absent = np.repeat(entries.absent, size, axis=0)
        drawn = Entries.scores(of_all, flat, weight, starts=np.arange(size + 1) * bins, absent=absent)
        verdict = rules.judge(drawn, objective)
        kept = np.flatnonzero(verdict.best > -np.inf)
        first = verdict.winner[kept] - drawn.edge_starts[:-1][kept]
        there = objective.values(drawn.edges_at(drawn.edge_starts[:-1] + here, np.arange(size)))[kept]
        with np.errstate(invalid="ignore"):
            gain = verdict.value[kept] - np.where(there > rules.LOWEST, there, -np.inf)
        last = _next_drawn(counts[kept], first)
        return (above[first] + above[last]) / 2, gain[np.isfinite(gain)]

    at_once = max(1, AT_ONCE // (2 * bins))
    sizes = [min(at_once, RESAMPLES - done) for done in range(0, RESAMPLES, at_once)]
    chunks = list(zip(sizes, rng.integers(2**63, size=len(sizes)).tolist(), strict=True))
    positions, gains = zip(*on_each(work, chunks, workers), strict=True)
    return ResampledCuts(np.sort(np.concatenate(positions)), np.maximum(np.concatenate(gains), 0.0))


def _next_drawn(counts: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest edge of each resample that predicts what one of its edges predicts: above the next bin with a row.

    >>> counts = np.array([[[1, 0], [0, 0], [0, 0], [0, 2]]])
    >>> _next_drawn(counts, np.array([1])), _next_drawn(counts, np.array([4]))
    (array([3]), array([4]))
    """
    bins = counts.shape[1]
    found = edges.copy()
    for i, (edge, own) in enumerate(zip(edges.tolist(), counts, strict=True)):
        while edge < bins and not (own[edge, 0] or own[edge, 1]):
            edge += 1
        found[i] = edge
    return found


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows whose scores come from several models, one for each fold; a column for each label."""

    scores: NDArray[Any]
    is_positive: NDArray[np.bool_]
    fold: NDArray[np.int64]

    def __getitem__(self, label: int) -> Folds:
        """Those of one label."""
        return Folds(self.scores[:, [label]], self.is_positive[:, [label]], self.fold)

    def drawn(self, entries: Entries, starts: NDArray[np.intp]) -> Draw:
        """As many folds as there are, drawn with replacement, and of each of them as many rows as it has.

        What several models have in common is less than what their rows have in common: as if the pooled rows were one
        sample, resamples would be too much alike.
        """
        keys = ordered_keys(as_doubles(self.scores))
        bins = len(entries) - np.searchsorted(entries.high[::-1], keys, side="left") - 1
        bins = np.searchsorted(starts, bins, side="right") - 1
        number = int(self.fold.max()) + 1
        cell = 2 * bins + self.is_positive + (2 * len(starts) * self.fold)[:, None]
        rows = np.bincount(cell.ravel(), minlength=number * 2 * len(starts)).reshape(number, -1)
        sizes = rows.sum(axis=1)
        shares = rows / sizes[:, None]

        def draw(rng: np.random.Generator, size: int) -> NDArray[Any]:
            times = rng.multinomial(number, np.full(number, 1 / number), size=size)
            counts = np.zeros((size, rows.shape[1]), dtype=np.int64)
            for of_fold, share, one in zip(times.T, shares, sizes.tolist(), strict=True):
                counts += rng.multinomial(of_fold * one, share)
            return counts.reshape(size, len(starts), 2)

        return draw
