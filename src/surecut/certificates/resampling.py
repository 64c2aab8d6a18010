"""Resampled tallies: how a cut's value, and the choice of its threshold, vary from sample to sample.

Rows are drawn again from their tally in some thousand bins, whose edges include the cut and are dense around it: ten
million rows are resampled as quickly as ten thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles
from surecut.certificates.cells import cells_of
from surecut.certificates.priors import at_prior
from surecut.confusion import Confusion
from surecut.core.draws import Draw, bin_starts, counts_drawn
from surecut.core.entries import Entries, constant
from surecut.core.kernels import compiled_judge
from surecut.core.keys import ordered_keys
from surecut.core.rules import Objective
from surecut.core.settings import settings
from surecut.core.threads import on_each
from surecut.progress import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.label_rows import TableRows
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric

OPTIMISM = 2.0
"""How much of the bootstrap's optimism is subtracted from a lower limit: no less than the true one has.

Near its top the metric's curve is a parabola plus a random walk, the sample's noise. A resample adds a second walk, as
rough, to the first, so that the resample's own part of what the top gains by noise falls short of the sample's: by
2^(1/3) in the limit, by 1.5 to 2 in simulations with 14 to 500 positives. Where scores are so tied that the same few
thresholds always compete, nothing is missing. An upper limit is not lowered at all: close to 1, where most samples are
without a mistake, the true value is as a rule above that mean.
"""

AT_ONCE = 1 << 17
"""Counts of resamples that are drawn at once, by one thread, with random numbers of their own: so few stay in cache."""

VALUES_AT_ONCE = 10_000
"""Edges that NumPy evaluates together."""

GROUPED_AT_ONCE = 100
"""Resamples of groups that are drawn at once."""

STAGES = 10
"""How often the progress bar moves."""


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
    groups: TableRows | None,
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

    What is drawn depends on `random_state` alone: not on the number of threads, nor on whether numba is loaded.
    """
    rng = np.random.default_rng(random_state)
    independent = groups is None and tally.weight is tally.rows
    found = [Resampled(np.zeros(0), np.zeros(0), 0.0, None) for _ in cuts]
    if retune or not independent:
        found = _resampled(cuts, tally, retune, groups, resamples, rng, progress)
    if independent:
        both = [_fixed_values(cut, tally, resamples, rng) for cut in cuts]
        return [replace(one, low=low, high=high) for one, (low, high) in zip(found, both, strict=True)]
    clusters = int(tally.rows.sum()) if groups is None else groups.clusters
    one_cluster = float(tally.weight.sum()) / clusters
    cells = [cells_of(tally.confusion_at(cut.threshold))[None] for cut in cuts]
    return [
        replace(one, steps=steps_of(cut.metric, of_cut, one_cluster, tally.given_prior))
        for cut, of_cut, one in zip(cuts, cells, found, strict=True)
    ]


def _resampled(
    cuts: Sequence[Cut],
    tally: ScoreTally,
    retune: bool,
    groups: TableRows | None,
    resamples: int,
    rng: np.random.Generator,
    progress: bool | None,
) -> list[Resampled]:
    """The values at each cut of rows that are drawn again, and what tuning on them chooses."""
    starts = bin_starts(tally.rows, [tally.candidates.at(cut.threshold) for cut in cuts])
    edges = _edge_thresholds(tally, starts)
    draw = _rows_drawn(tally, starts) if groups is None else _groups_drawn(tally, starts, groups)
    original = np.add.reduceat(tally.weight, starts, axis=0)[None]
    curves = [_values(cut, tally, original)[0] for cut in cuts]
    accepted = [int(np.searchsorted(starts, tally.candidates.at(cut.threshold))) for cut in cuts]

    def work(chunk: tuple[int, int]) -> list[_Drawn]:
        size, seed = chunk
        weight = draw(np.random.default_rng(seed), size)
        return [
            _Drawn.of(weight, cut, tally, at, curve, edges, retune)
            for cut, at, curve in zip(cuts, accepted, curves, strict=True)
        ]

    at_once = max(1, AT_ONCE // (2 * len(edges))) if groups is None else GROUPED_AT_ONCE
    sizes = [min(at_once, resamples - first) for first in range(0, resamples, at_once)]
    chunks = list(zip(sizes, rng.integers(2**63, size=len(sizes)).tolist(), strict=True))
    number = 1 if progress is False else STAGES  # each starts threads of its own
    stages = [chunks[len(chunks) * i // number : len(chunks) * (i + 1) // number] for i in range(number)]
    done: list[list[_Drawn]] = []
    for stage in shown(stages, "resampling", resamples, progress=progress, size=lambda stage: sum(n for n, _ in stage)):
        done += on_each(work, stage, settings().available_cores)
    return [_Drawn.joined(parts) for parts in zip(*done, strict=True)]


@dataclass(frozen=True)
class _Drawn:
    """What some resamples say of one cut: its values, the optimism of tuning again, and the thresholds that this gives.

    The last two are empty where nothing is tuned again. The values may be where rows are independent and have no
    weights: `_fixed_values` are taken for them.
    """

    values: NDArray[np.float64]
    optimism: NDArray[np.float64]
    chosen: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        weight: NDArray[Any],
        cut: Cut,
        tally: ScoreTally,
        accepted: int,
        original: NDArray[np.float64],
        edges: NDArray[np.float64],
        retune: bool,
    ) -> _Drawn:
        """From the weight in each bin; the cut is the edge that accepts a number of bins."""
        if retune and (judged := _judged(cut, tally, weight)) is not None:
            best, value = judged
            return cls(np.zeros(0), value - original[best], edges[best])
        values = _values(cut, tally, weight)
        fixed = values[:, accepted].copy()
        if not retune:
            return cls(fixed, np.zeros(0), np.zeros(0))
        values[np.isnan(values)] = -np.inf
        best = np.argmax(values, axis=1)
        return cls(fixed, values[np.arange(len(values)), best] - original[best], edges[best])

    @staticmethod
    def joined(parts: Sequence[_Drawn]) -> Resampled:
        values = np.concatenate([part.values for part in parts])
        chosen = np.concatenate([part.chosen for part in parts])
        if not len(chosen):
            return Resampled(values, values, 0.0, None)
        low, high = np.quantile(chosen, [0.1, 0.9], method="nearest")
        optimism = max(0.0, float(np.nanmean(np.concatenate([part.optimism for part in parts]))))
        return Resampled(values, values, optimism, (float(low), float(high)))


def _edge_thresholds(tally: ScoreTally, starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """The threshold that accepts the first j bins: their lowest score; +inf for none."""
    lowest = tally.scores[np.append(starts[1:], len(tally)) - 1]
    return np.concatenate(([np.inf], lowest))


def _cumulated(weight: NDArray[Any]) -> NDArray[Any]:
    """Shape (resamples, 2, bins + 1): weight above each edge."""
    above = np.zeros((len(weight), 2, weight.shape[1] + 1), dtype=weight.dtype)
    np.cumsum(weight.transpose(0, 2, 1), axis=-1, out=above[..., 1:])
    return above


def _judged(cut: Cut, tally: ScoreTally, weight: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """The first best edge of each resample, and its value; None unless the metric is a ratio of counts and the judge
    is compiled."""
    sizes = settings()
    if weight.dtype.kind == "f" or (judge := compiled_judge(sizes)) is None:
        return None
    resamples, bins, _ = weight.shape
    rows, keys = weight.reshape(-1, 2), constant(np.uint64(0), resamples * bins)  # bins are as good as scores here
    positives = weight[:, :, 1].sum(axis=1)
    totals = np.column_stack((int(tally.rows.sum()) - positives, positives))
    entries = Entries.scores(keys, rows, rows, starts=np.arange(resamples + 1) * bins, totals=totals)
    ratio = Objective(cut.metric, prior=tally.given_prior).whole_ratio(entries)
    judged = None if ratio is None else judge(entries, ratio, (False, False), 0.0, sizes.kernels == "compiled")
    return None if judged is None else (judged[1] - entries.edge_starts[:-1], judged[2])


def _values(cut: Cut, tally: ScoreTally, weight: NDArray[Any]) -> NDArray[np.float64]:
    """The metric at every edge of each resample."""
    resamples, bins, _ = weight.shape
    values = np.empty((resamples, bins + 1))
    at_once = max(1, VALUES_AT_ONCE // (bins + 1))
    for part in (slice(first, first + at_once) for first in range(0, resamples, at_once)):
        above = _cumulated(weight[part])
        fp, tp = above[:, 0], above[:, 1]
        confusion = Confusion(tp=tp, fp=fp, fn=tp[:, -1:] - tp, tn=fp[:, -1:] - fp)
        values[part] = _evaluated(cut, tally, confusion)
    return values


MISTAKES = np.array([0.0, 1.0, 1.0, 0.0])
"""The cells (tp, fp, fn, tn) that hold mistakes."""


def _fixed_values(
    cut: Cut, tally: ScoreTally, resamples: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values at the cut, of shares of the four cells drawn around the counted ones: for a lower and an upper limit."""
    cells = cells_of(tally.confusion_at(cut.threshold))

    def drawn(more: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = rng.standard_gamma(cells + more, size=(resamples, 4))  # an empty cell stays empty
        return _evaluated(cut, tally, Confusion(*(shares / shares.sum(axis=1, keepdims=True)).T))

    return drawn(MISTAKES), drawn(1 - MISTAKES)


def steps_of(
    metric: Metric, cells: NDArray[np.float64], size: float, prior: float | None = None
) -> tuple[float, float]:
    """By how much one more mistake lowers the mean of labels' values at most, and one more row that is right raises it.

    `cells` has a row of counts (tp, fp, fn, tn) for each label.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        value, *others = (
            np.asarray(metric.evaluate(at_prior(Confusion(*(cells + size * more).T), prior)), dtype=float)
            for more in (np.zeros(4), *np.eye(4))
        )
    changed = np.array(others) - value
    changed = changed[np.isfinite(changed)] / len(cells)
    return max(0.0, -float(changed.min(initial=0.0))), max(0.0, float(changed.max(initial=0.0)))


def _evaluated(cut: Cut, tally: ScoreTally, confusion: Confusion) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(cut.metric.evaluate(at_prior(confusion, tally.given_prior)))


def _rows_drawn(tally: ScoreTally, starts: NDArray[np.intp]) -> Draw:
    """Rows, drawn with replacement; the weights of rows in one bin vary as a gamma variable with their mean and
    variance."""
    rows = np.add.reduceat(tally.rows, starts, axis=0)
    counts_of = counts_drawn(rows)
    if tally.weight is tally.rows:
        return counts_of
    mean = np.add.reduceat(tally.weight, starts, axis=0) / np.maximum(rows, 1)
    variance = np.add.reduceat(tally.squares, starts, axis=0) / np.maximum(rows, 1) - mean**2
    scale = np.divide(variance, mean, out=np.zeros_like(mean), where=mean > 0)

    def draw(rng: np.random.Generator, size: int) -> NDArray[Any]:
        counts = counts_of(rng, size)
        sums = counts * mean
        varied = (variance > 1e-12 * mean**2) & (counts > 0)
        scales = np.broadcast_to(scale, sums.shape)[varied]
        sums[varied] = rng.gamma(sums[varied] / scales, scales)
        return sums

    return draw


def _groups_drawn(tally: ScoreTally, starts: NDArray[np.intp], rows: TableRows) -> Draw:
    """Whole groups, drawn with replacement."""
    from scipy import sparse

    keys = ordered_keys(as_doubles(rows.scores))
    place = len(tally) - np.searchsorted(tally.keys[::-1], keys, side="right")
    cell = 2 * (np.searchsorted(starts, place, side="right") - 1) + rows.is_positive
    groups = rows.clusters
    if groups < 2:
        raise ValueError("all rows are of one group: nothing can be resampled")
    weights = np.ones(len(cell)) if rows.weights is None else rows.weights
    by_cell = sparse.csr_array((weights, (cell, rows.cluster)), shape=(2 * len(starts), groups))

    def draw(rng: np.random.Generator, size: int) -> NDArray[Any]:
        drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(float)
        return np.ascontiguousarray((by_cell @ drawn.T).T).reshape(size, len(starts), 2)

    return draw
