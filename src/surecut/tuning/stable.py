"""Stable cuts: thresholds for new rows, not for the validation rows alone.

The best cut of a sample follows the raggedness of its curve. Other rows of the same kind have their best cuts
elsewhere, and what all of them have in common is a better place. It is looked for in two ways:

1. The rows are drawn again, with replacement, and the best cut of each such resample is found by the same rules as
   that of the rows. The mean of these cuts, as the number of rows that they accept, has about half the regret of the
   best cut, where the population's curve is smooth and has one peak.
2. A calibrated model of the scores (`calibration`) has a best cut as well. It has less regret where the family holds
   the truth, and a lasting one where it does not.

The stable cut is halfway between the two, moved into a central range of the resampled cuts. The range is wide while
nothing speaks against the place: it costs no more on the validation rows than what chance does, which is seen in the
gain of a resample's best cut on that resample over the best cut of all rows. It closes around the median of the
resampled cuts the more the place costs (`RANGE`), and the more likely it is that the model is wrong (`DOUBT`). So a
jump of the population is found nearly as exactly as by the best cut, and where several peaks compete, the median is at
one of them.

A label among many has a second place, by a model of all labels. It is taken unless it costs noticeably more on the
label's own rows than the label's own place (`SUPPORT`).

All of it depends on the counts at each score alone: it is the same for every strictly increasing function of scores
but for the model, which is fitted to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._inputs import as_doubles
from surecut.calibration.curves import Groups, calibrate, grouped
from surecut.core import rules
from surecut.core.candidates import cut_at_edge
from surecut.core.draws import Draw, bin_starts, counts_drawn
from surecut.core.entries import Entries, both_classes, constant
from surecut.core.keys import ordered_keys, scores_of_keys
from surecut.core.search import InfeasibleLabelError, refined, resolved, search
from surecut.core.settings import settings
from surecut.core.threads import on_each
from surecut.decisions.stability import LEVELS, Stability
from surecut.progress import shown
from surecut.tuning.shrinkage import shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.core.rules import Objective
    from surecut.core.search import Source
    from surecut.decisions.cut import Cut
    from surecut.sources.labels import LabelSource
    from surecut.tuning.request import Request
    from surecut.tuning.tune import RowsToTune

RESAMPLES = 200

TALLIED = 1 << 17
"""Of no more rows, every distinct score is known to the resamples: the cut is the same wherever the rows are."""

RANGES = 1 << 12
"""Of more rows, at most one in so many share a range of scores."""

AT_ONCE = 1 << 17
"""Counts of resamples that are drawn at once, by one thread, with random numbers of their own."""

STAGES = 100
"""How often the progress bar of many labels moves."""

RANGE = (2.0, 6.0), (0.05, 0.5)
"""What a place costs on the rows, in units of what resamples gain by chance; and the smallest share of the resampled
cuts on each side of the range: from 90 % of them, to their median alone."""

FEW = 10.0
"""With so few rows of the rarer class a place may cost twice as much: so few say little of what chance does."""

DOUBT = 0.15, 0.4
"""From which probability that the model is wrong the range is narrower, and from which it is the median."""

SUPPORT = (0.5, 2.0), (1.0, 0.0)
"""How much more the place of all labels' model costs on a label's own rows than the label's own place, in units of what
resamples gain by chance; and how far it is taken."""

LEAST_ROWS = 8
"""A label with fewer rows of a class has no model of its own."""

LARGEST_GAINS = 0.9
"""The near-optimal thresholds lose no more than this quantile of what resamples gain by chance."""


PlacedCut = tuple[float, tuple[float, float], Stability | None]
"""Threshold, interval and stability of a cut."""


@dataclass(frozen=True)
class Resampled:
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
        leaves = min(math.floor(share * last), last // 2)
        return min(max(position, float(self.position[leaves])), float(self.position[last - leaves]))


@dataclass(frozen=True)
class Curve:
    """The edges of one sample's entries: what each accepts, and is worth."""

    entries: Entries
    objective: Objective
    best: int
    values: NDArray[np.float64]
    accepted: NDArray[np.float64]
    """Numbers of rows."""

    @classmethod
    def known(cls, entries: Entries, objective: Objective) -> Curve:
        """Of entries that have a cut which can be chosen."""
        curve = cls.of(entries, objective)
        assert curve is not None
        return curve

    @classmethod
    def of(cls, entries: Entries, objective: Objective) -> Curve | None:
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
        entries, floor = self.entries, self.values[self.best] - tolerance
        below = np.flatnonzero(~(self.values >= floor))
        where = int(np.searchsorted(below, edge))
        first = int(below[where - 1]) + 1 if where else 0
        last = int(below[where]) - 1 if where < len(below) else len(entries)
        ends = scores_of_keys(np.array([entries.high[min(last, len(entries) - 1)], entries.low[max(first, 1) - 1]]))
        lower, upper = ends.tolist()
        return -np.inf if last == len(entries) else lower, np.inf if first == 0 else upper


class Settled(NamedTuple):
    """The stable cut of one sample: an edge of its entries, and how settled it is."""

    curve: Curve
    edge: int
    stability: Stability | None

    def placed(self, dtype: np.dtype[Any]) -> PlacedCut:
        """Threshold, interval and stability."""
        placed = rules.placed_one(self.curve.entries, self.edge, dtype)
        return placed.thresholds, (placed.lower, placed.upper), self.stability


def stable_cuts(source: RowsToTune, request: Request, folds: Folds | None = None) -> list[Cut]:
    """The stable cut of one sample for each metric of a request."""
    every = settle(source, request.objectives, request.random_state, folds)
    sample = source.sample
    cuts = [cut_at_edge(one.curve.entries, one.edge, one.curve.objective, source.dtype, sample) for one in every]
    return [replace(cut, stability=one.stability) for cut, one in zip(cuts, every, strict=True)]


def settle(
    source: Source, objectives: Sequence[Objective], random_state: Any, folds: Folds | None = None
) -> list[Settled]:
    """The stable cut of the only sample of a source for each objective, with exact ends on both sides."""
    entries = _resampled_entries(source, search(source, objectives)[0].entries)
    model = Model.of(entries)
    seed = seed_of(random_state)
    return [
        _settled(source, Curve.known(entries, one), model, np.random.default_rng([seed, 0]), folds)
        for one in objectives
    ]


def seed_of(random_state: Any) -> int:
    """A seed that every label and metric starts from."""
    return int(np.random.default_rng(random_state).integers(2**63))


def _resampled_entries(source: Source, entries: Entries) -> Entries:
    """Entries so fine that resamples of them are as good as resamples of the rows; no best cut is inside of any."""
    if entries.in_scores:
        return entries
    if source.refines and entries.rows.sum() <= TALLIED:
        return source.count(every=True)
    return resolved(source, entries, RANGES, exact=False) if source.refines else entries


def _settled(source: Source, curve: Curve, model: Model, rng: np.random.Generator, folds: Folds | None) -> Settled:
    entries, objective = curve.entries, curve.objective
    place = Place.of(curve, model, rng, folds, settings().available_cores)
    edge = curve.nearest(place.position)
    while source.refines and not (exact := entries.exact[max(0, edge - 1) : edge + 1]).all():
        beside = np.zeros(len(entries), dtype=bool)
        beside[max(0, edge - 1) : edge + 1] = ~exact
        entries = refined(source, entries, beside)
        curve = Curve.known(entries, objective)
        edge = curve.nearest(place.position)
    return Settled(curve, edge, place.stability(curve, edge, source.dtype))


class Model(NamedTuple):
    """What a calibrated model says of one sample's rows."""

    probability: NDArray[np.float64]
    """Of being positive, for the rows of each entry."""
    doubt: float
    """How likely it is that the model is wrong."""

    @classmethod
    def of(cls, entries: Entries) -> Model:
        """The model that is fitted to these rows alone."""
        calibration = calibrate(grouped(entries))
        only = np.zeros(len(entries), dtype=np.int64)
        return cls(calibration.probability(scores_of_keys(entries.low), only), float(calibration.rejected_alone[0]))


@dataclass(frozen=True)
class Place:
    """Where the stable cut of a sample is, as a number of rows, and the resampled cuts."""

    position: float
    resampled: Resampled

    @classmethod
    def of(
        cls, curve: Curve, model: Model, rng: np.random.Generator, folds: Folds | None = None, workers: int = 1
    ) -> Place:
        """Halfway between what the resamples and what the model say, in a central range of the resampled cuts."""
        place = cls(float(curve.accepted[curve.best]), resample(curve, rng, folds, workers))
        resampled = place.resampled
        if not (len(resampled.gain) and math.isfinite(curve.values[curve.best])):
            return place
        position = place.between(curve, model, 0.5)
        rarer = max(1, min(curve.entries.rows.sum(axis=0).tolist()))
        cost = resampled.in_gains(curve.loss(curve.nearest(position))) / (1 + FEW / rarer)
        share = float(np.interp(cost, *RANGE))
        share += (0.5 - share) * float(np.interp(model.doubt, DOUBT, (0.0, 1.0)))
        return cls(resampled.clipped(position, share), resampled)

    def between(self, curve: Curve, model: Model, weight: float) -> float:
        """A position between the mean of the resampled cuts and the cut of a model."""
        modelled = float(curve.accepted[_best_of_model(curve, model.probability)])
        return weight * modelled + (1 - weight) * float(self.resampled.position.mean())

    def supported(self, curve: Curve, model: Model, weight: float) -> Place:
        """This place, or the one that a model of all labels has, as far as that costs no more on the label's rows."""
        if not (len(self.resampled.gain) and math.isfinite(curve.values[curve.best])):
            return self
        other = self.between(curve, model, weight)
        own_loss, other_loss = (curve.loss(curve.nearest(position)) for position in (self.position, other))
        share = float(np.interp(self.resampled.in_gains(other_loss - own_loss), *SUPPORT))
        position = share * other + (1 - share) * self.position
        if curve.loss(curve.nearest(position)) > max(own_loss, other_loss):  # the two are at different peaks
            return self
        return replace(self, position=position)

    def stability(self, curve: Curve, edge: int, dtype: np.dtype[Any]) -> Stability | None:
        """How settled the cut at an edge is; None where no resample has a cut that can be chosen."""
        resampled, best = self.resampled, curve.best
        if not len(resampled.position):
            return None
        chance = float(np.quantile(resampled.gain, LARGEST_GAINS)) if len(resampled.gain) else 0.0
        tolerance = max(chance, curve.loss(edge))
        positions = [resampled.quantile(1 - level / 100) for level in LEVELS]
        value = float(curve.values[best])
        return Stability(
            resamples=len(resampled.position),
            quantiles=tuple(curve.threshold(curve.nearest(one), dtype) for one in positions),
            near_optimal=curve.within(edge, tolerance),
            tolerance=tolerance,
            best_value=-np.inf if value == rules.LOWEST else value,
            best_threshold=curve.threshold(best, dtype),
        )


def _best_of_model(curve: Curve, probability: NDArray[np.float64]) -> int:
    """The edge that is best where a share of each entry's rows is positive, among those that can be chosen."""
    entries = curve.entries
    expected = np.column_stack((1 - probability, probability)) * both_classes(entries.weight)[:, None]
    modelled = Entries.scores(entries.low, entries.rows, expected, absent=entries.absent.astype(float))
    values = curve.objective.metric_values(modelled.edges)
    values = np.where((curve.values > -np.inf) & ~np.isnan(values), values, -np.inf)
    return int(rules.first_best(values, curve.objective.rounding(entries.totals, True)))


def resample(curve: Curve, rng: np.random.Generator, folds: Folds | None = None, workers: int = 1) -> Resampled:
    """The best cut of each of some resamples of the rows; where the metric is undefined on one, it is left out.

    Weighted rows come with the mean weight of their bin and class. Rows without a score stay as they are.
    """
    entries, objective = curve.entries, curve.objective
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
            gain = verdict.best[kept] - there
        last = _next_drawn(counts[kept], first)
        return (above[first] + above[last]) / 2, gain[np.isfinite(gain)]

    at_once = max(1, AT_ONCE // (2 * bins))
    sizes = [min(at_once, RESAMPLES - done) for done in range(0, RESAMPLES, at_once)]
    chunks = list(zip(sizes, rng.integers(2**63, size=len(sizes)).tolist(), strict=True))
    positions, gains = zip(*on_each(work, chunks, workers), strict=True)
    return Resampled(np.sort(np.concatenate(positions)), np.maximum(np.concatenate(gains), 0.0))


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


def stable_cuts_of_labels(
    source: LabelSource, objective: Objective, names: Sequence[Any], random_state: Any, folds: Folds | None = None
) -> list[PlacedCut | None]:
    """Threshold, interval and stability of each label; None where no cut can be chosen without a constraint.

    Each label has a place of its own, and one by a model that is drawn toward that of all labels as far as they agree.
    """
    workers = source.settings.available_cores
    blocks = source.blocks()
    groups = Groups.joined(on_each(lambda block: grouped(source.entries(block)), blocks, workers))
    calibration, seed = calibrate(groups), seed_of(random_state)
    weights = np.maximum(0.5, shares("auto", objective.metric, groups, calibration, source.totals))

    def work(block: slice) -> list[PlacedCut | InfeasibleLabelError | None]:
        entries, dtype = source.entries(block), source.dtype_of(block)
        probability = calibration.probability(scores_of_keys(entries.low), entries.sample + block.start)
        found: list[PlacedCut | InfeasibleLabelError | None] = []
        for sample, label in enumerate(range(block.start, block.start + entries.samples)):
            part, own = slice(*entries.starts[sample : sample + 2].tolist()), entries.of_sample(sample)
            curve = Curve.of(own, objective)
            if curve is None:
                is_unmet = objective.constraints and objective.has_classes(own.totals)[0]
                reason = str(rules.infeasible(objective, own.edges, int(own.rows.sum()))) if is_unmet else ""
                found.append(InfeasibleLabelError(names[label], reason) if is_unmet else None)
                continue
            of_all = Model(probability[part], float(calibration.rejected_alone[label]))
            has_model = len(weights) > 1 and own.rows.sum(axis=0).min() >= LEAST_ROWS
            rng, of_label = np.random.default_rng([seed, label]), None if folds is None else folds[label]
            place = Place.of(curve, Model.of(own) if has_model else of_all, rng, of_label)
            place = place.supported(curve, of_all, float(weights[label]))
            edge = curve.nearest(place.position)
            found.append(Settled(curve, edge, place.stability(curve, edge, dtype)).placed(dtype))
        return found

    size = max(1, len(blocks) // STAGES)
    stages = [blocks[first : first + size] for first in range(0, len(blocks), size)]
    every = [
        one
        for stage in shown(stages, "resampling labels", len(blocks), size=len)
        for part in on_each(work, stage, workers)
        for one in part
    ]
    if errors := [one for one in every if isinstance(one, InfeasibleLabelError)]:
        raise InfeasibleLabelError(errors[0].label, errors[0].reason, len(errors))
    return [None if isinstance(one, InfeasibleLabelError) else one for one in every]


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
