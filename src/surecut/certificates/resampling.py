"""Resampled tallies: how a cut's value, and the choice of its threshold, vary from sample to sample.

Rows are drawn again from their tally in some thousand bins, whose edges include the cut and are dense around it: ten
million rows are resampled as quickly as ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles
from surecut.certificates.cells import cells_of
from surecut.certificates.counts import at_prior, confusion_at
from surecut.confusion import Confusion
from surecut.core.keys import ordered_keys
from surecut.progress import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut

COARSE = 200
"""Bins of equal weight over all scores, half of them for each class."""

NEAR = 1000
"""Bins around each cut."""

REACH = 5.0
"""So many times n^(2/3) rows to both sides of the cut: where a threshold that is tuned again may come to stand."""

OPTIMISM = 2.0
"""How much of the bootstrap's optimism is subtracted from a lower limit: no less than the true one has.

Near its top the metric's curve is a parabola plus a random walk, the sample's noise. A resample adds a second walk, as
rough, to the first, so that the resample's own part of what the top gains by noise falls short of the sample's: by
2^(1/3) in the limit, by 1.5 to 2 in simulations with 14 to 500 positives. Where scores are so tied that the same few
thresholds always compete, nothing is missing. An upper limit is not lowered at all: close to 1, where most samples are
without a mistake, the true value is as a rule above that mean.
"""

CHUNK = 100
"""Resamples that are drawn at once."""


@dataclass(frozen=True)
class GroupedRows:
    """Rows with the group that each belongs to."""

    group: NDArray[np.intp]
    scores: NDArray[Any]
    is_positive: NDArray[np.bool_]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Resampled:
    """Values of the fixed cut on resamples, the optimism of tuning, and where tuning puts the threshold.

    `low` and `high` are the values from which a lower and an upper limit are taken: where rows are independent and have
    no weights, each leans to its own side by a row, as Clopper–Pearson's limits do. Elsewhere `steps` are by how much
    one more mistake lowers the value, and one more row that is right raises it. `optimism` has no factor yet.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    optimism: float
    threshold_spread: tuple[float, float] | None
    steps: tuple[float, float] = (0.0, 0.0)

    def limits(self, error: float) -> tuple[float, float]:
        """Lower and upper limit of the value at the cut, each of which fails with about this probability."""
        lower = float(np.nanquantile(self.low, error)) - OPTIMISM * self.optimism - self.steps[0]
        upper = float(np.nanquantile(self.high, 1 - error)) + self.steps[1]
        return lower, upper


def resample(
    cuts: Sequence[Cut],
    tally: ScoreTally,
    retune: bool,
    groups: GroupedRows | None,
    resamples: int,
    random_state: Any,
    progress: bool | None,
) -> list[Resampled]:
    """Draw samples of the same size, the same ones for all cuts; where `retune`, also tune a threshold on each and
    value it on the original.

    The mean of what a tuned threshold is worth on its own resample, less what it is worth on the original, estimates
    by how much the tuned value flatters (its optimism), up to a factor, `OPTIMISM`.

    Rows that are independent and have no weights enter the fixed cut's value by four counts only. Their shares are
    drawn from a Dirichlet distribution (the Bayesian bootstrap): for a lower limit with one more row in each cell of
    mistakes, for an upper one with one more in each of the others. So a cell that happens to be empty is not taken to
    be impossible where that matters, and may be where it does not; for a single share that is Clopper–Pearson's limit.
    """
    rng = np.random.default_rng(random_state)
    starts = _bin_starts(tally, cuts)
    edges = _edge_thresholds(tally, starts)
    original = _cumulated(np.add.reduceat(tally.weight, starts, axis=0)[None])
    draws = (
        _drawn(tally, starts, resamples, rng)
        if groups is None
        else _drawn_groups(tally, starts, groups, resamples, rng)
    )
    collected = [_Collected(cut, int(np.searchsorted(starts, tally.candidates.at(cut.threshold)))) for cut in cuts]
    for counts in shown(draws, "resampling", resamples, progress=progress, size=len):
        above = _cumulated(counts)
        for one in collected:
            one.collect(_values(one.cut, tally, above), _values(one.cut, tally, original)[0], edges, retune)
    found = [one.result() for one in collected]
    if groups is None and tally.weight is tally.rows:
        both = [_fixed_values(cut, tally, resamples, rng) for cut in cuts]
        return [replace(one, low=low, high=high) for one, (low, high) in zip(found, both, strict=True)]
    clusters = int(tally.rows.sum()) if groups is None else int(groups.group.max()) + 1
    one_cluster = float(tally.weight.sum()) / clusters
    return [
        replace(one, steps=_steps(cut, tally, confusion_at(cut, tally), one_cluster))
        for cut, one in zip(cuts, found, strict=True)
    ]


@dataclass
class _Collected:
    """What the draws so far say of one cut, which accepts a number of bins."""

    cut: Cut
    accepted: int
    fixed: list[NDArray[np.float64]] = field(default_factory=list)
    flattery: list[NDArray[np.float64]] = field(default_factory=list)
    chosen: list[NDArray[np.float64]] = field(default_factory=list)

    def collect(
        self, values: NDArray[np.float64], original: NDArray[np.float64], edges: NDArray[np.float64], retune: bool
    ) -> None:
        self.fixed.append(values[:, self.accepted])
        if retune:
            best = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=1)
            self.flattery.append(values[np.arange(len(values)), best] - original[best])
            self.chosen.append(edges[best])

    def result(self) -> Resampled:
        values = np.concatenate(self.fixed)
        if not self.chosen:
            return Resampled(values, values, 0.0, None)
        low, high = np.quantile(np.concatenate(self.chosen), [0.1, 0.9], method="nearest")
        optimism = max(0.0, float(np.nanmean(np.concatenate(self.flattery))))
        return Resampled(values, values, optimism, (float(low), float(high)))


def _bin_starts(tally: ScoreTally, cuts: Sequence[Cut]) -> NDArray[np.intp]:
    """The first score of each bin, descending; one bin starts right below each cut."""
    if len(tally) <= COARSE + NEAR:
        return np.arange(len(tally))
    ends = []
    for column in tally.rows.T:  # bins of equal weight in each class: rare positives get as many as the negatives
        cumulated = np.cumsum(column)
        ends.append(np.searchsorted(cumulated, np.linspace(0, cumulated[-1], COARSE // 2)))
    accepted = np.array([tally.candidates.at(cut.threshold) for cut in cuts])
    above = np.concatenate(([0], np.cumsum(tally.rows.sum(axis=1))))
    around = REACH * above[-1] ** (2 / 3) * np.linspace(-1, 1, NEAR)
    ends.append(np.searchsorted(above, (above[accepted][:, None] + around).ravel()))
    starts = np.concatenate(([0], *ends, accepted))
    return np.unique(starts[starts < len(tally)])


def _edge_thresholds(tally: ScoreTally, starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """The threshold that accepts the first j bins: their lowest score; +inf for none."""
    lowest = tally.scores[np.append(starts[1:], len(tally)) - 1]
    return np.concatenate(([np.inf], lowest))


def _cumulated(counts: NDArray[Any]) -> NDArray[Any]:
    """Shape (resamples, bins + 1, 2): weight above each edge."""
    above = np.cumsum(counts, axis=1)
    return np.concatenate((np.zeros_like(above[:, :1]), above), axis=1)


def _values(cut: Cut, tally: ScoreTally, above: NDArray[Any]) -> NDArray[np.float64]:
    fp, tp = above[..., 0], above[..., 1]
    return _evaluated(cut, tally, Confusion(tp=tp, fp=fp, fn=tp[:, -1:] - tp, tn=fp[:, -1:] - fp))


MISTAKES = np.array([0.0, 1.0, 1.0, 0.0])
"""The cells (tp, fp, fn, tn) that hold mistakes."""


def _fixed_values(
    cut: Cut, tally: ScoreTally, resamples: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values at the cut, of shares of the four cells drawn around the counted ones: for a lower and an upper limit."""
    cells = cells_of(confusion_at(cut, tally))

    def drawn(more: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = rng.standard_gamma(cells + more, size=(resamples, 4))  # an empty cell stays empty
        return _evaluated(cut, tally, Confusion(*(shares / shares.sum(axis=1, keepdims=True)).T))

    return drawn(MISTAKES), drawn(1 - MISTAKES)


def _steps(cut: Cut, tally: ScoreTally, confusion: Confusion, size: float) -> tuple[float, float]:
    """By how much one more mistake lowers the value at most, and one more row that is right raises it."""
    cells = cells_of(confusion)
    changed = _evaluated(cut, tally, Confusion(*(cells + size * np.eye(4)).T)) - _evaluated(cut, tally, confusion)
    return max(0.0, -float(np.nanmin(changed))), max(0.0, float(np.nanmax(changed)))


def _evaluated(cut: Cut, tally: ScoreTally, confusion: Confusion) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(cut.metric.evaluate(at_prior(confusion, tally)))


def _drawn(
    tally: ScoreTally, starts: NDArray[np.intp], resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Rows by bin and class; the weights of rows in one bin vary as a gamma variable with their mean and variance."""
    rows = np.add.reduceat(tally.rows, starts, axis=0)
    total = int(rows.sum())
    share = (rows / total).ravel()
    for first in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - first)
        counts = rng.multinomial(total, share, size=size).reshape(size, *rows.shape)
        if tally.weight is tally.rows:
            yield counts
            continue
        mean = np.add.reduceat(tally.weight, starts, axis=0) / np.maximum(rows, 1)
        variance = np.add.reduceat(tally.squares, starts, axis=0) / np.maximum(rows, 1) - mean**2
        sums = counts * mean
        varied = (variance > 1e-12 * mean**2) & (counts > 0)
        scale = np.divide(variance, mean, out=np.zeros_like(mean), where=mean > 0)
        scales = np.broadcast_to(scale, sums.shape)[varied]
        sums[varied] = rng.gamma(sums[varied] / scales, scales)
        yield sums


def _drawn_groups(
    tally: ScoreTally, starts: NDArray[np.intp], rows: GroupedRows, resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[Any]]:
    """Whole groups, drawn with replacement."""
    from scipy import sparse

    keys = ordered_keys(as_doubles(rows.scores))
    place = len(tally) - np.searchsorted(tally.keys[::-1], keys, side="right")
    cell = 2 * (np.searchsorted(starts, place, side="right") - 1) + rows.is_positive
    groups = int(rows.group.max()) + 1
    if groups < 2:
        raise ValueError("all rows are of one group: nothing can be resampled")
    by_group = sparse.csr_array((rows.weights, (rows.group, cell)), shape=(groups, 2 * len(starts)))
    for first in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - first)
        drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(float)
        yield np.asarray((by_group.T @ drawn.T).T).reshape(size, len(starts), 2)
