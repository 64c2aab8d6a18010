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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.calibration.curves import Groups, calibrate, grouped
from surecut.confusion import Confusion
from surecut.core import rules
from surecut.core.candidates import cut_at_edge
from surecut.core.entries import Entries, both_classes
from surecut.core.keys import scores_of_keys
from surecut.core.search import RANGES, InfeasibleLabelError, refined, resolved, search
from surecut.core.settings import settings
from surecut.core.threads import on_each
from surecut.decisions.stability import LEVELS, Stability
from surecut.progress import shown
from surecut.tuning.resampling import EdgeCurve, Folds, ResampledCuts, resample
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

TALLIED = 1 << 17
"""Of no more rows, every distinct score is known to the resamples: the cut is the same wherever the rows are."""

STAGES = 100
"""How often the progress bar of many labels moves."""

RANGE = (2.0, 6.0), (0.05, 0.5)
"""What a place costs on the rows, in units of what resamples gain by chance; and the smallest share of the resampled
cuts on each side of the range: from 90 % of them, to their median alone."""

FEW_ROWS = 10.0
"""With so few rows of the rarer class a place may cost twice as much: so few say little of what chance does."""

DOUBT = 0.15, 0.4
"""From which probability that the model is wrong the range is narrower, and from which it is the median."""

SUPPORT = (0.5, 2.0), (1.0, 0.0)
"""How much more the place of all labels' model costs on a label's own rows than the label's own place, in units of what
resamples gain by chance; and how far it is taken."""

LEAST_ROWS = 8
"""A label with fewer rows of a class has no model of its own, and takes the place of all labels' model: a curve of so
few rows is hardly more than its prior, and their resamples do not tell what chance does."""

LARGEST_GAINS = 0.9
"""The near-optimal thresholds lose no more than this quantile of what resamples gain by chance."""


LabelThreshold = tuple[float, tuple[float, float], Stability | None]
"""Threshold, interval and stability of a cut."""


class Settled(NamedTuple):
    """The stable cut of one sample: an edge of its entries, and how settled it is."""

    curve: EdgeCurve
    edge: int
    stability: Stability | None

    def placed(self, dtype: np.dtype[Any]) -> LabelThreshold:
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
    seed = [seed_of(random_state), 0]  # those of the first of many labels
    return [
        _settled(source, EdgeCurve.known(entries, one), model, np.random.default_rng(seed), folds) for one in objectives
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


def _settled(source: Source, curve: EdgeCurve, model: Model, rng: np.random.Generator, folds: Folds | None) -> Settled:
    entries, objective = curve.entries, curve.objective
    target = Target.of(curve, model, rng, folds, settings().available_cores)
    edge = curve.nearest(target.position)
    while source.refines and not (exact := entries.exact[max(0, edge - 1) : edge + 1]).all():
        beside = np.zeros(len(entries), dtype=bool)
        beside[max(0, edge - 1) : edge + 1] = ~exact
        entries = refined(source, entries, beside)
        curve = EdgeCurve.known(entries, objective)
        edge = curve.nearest(target.position)
    return Settled(curve, edge, target.stability(curve, edge, source.dtype))


def in_rows(entries: Entries, totals: NDArray[Any], rows: int) -> Entries:
    """Entries with weights that add up to so many rows, if the weights with these totals do.

    A model is fitted to as many rows as there are, whatever the size of their weights.
    """
    return replace(entries, weight=_scaled(entries.weight, totals, rows)) if entries.weighted else entries


def _scaled(weight: NDArray[Any], totals: NDArray[Any], rows: int) -> NDArray[np.float64]:
    """Weights in units in which these totals add up to so many rows."""
    largest = totals.max()
    return np.asarray(weight / largest * (rows / (totals / largest).sum()))  # the sum itself may overflow


class Model(NamedTuple):
    """What a calibrated model says of one sample's rows."""

    probability: NDArray[np.float64]
    """Of being positive, for the rows of each entry."""
    doubt: float
    """How likely it is that the model is wrong."""

    @classmethod
    def of(cls, entries: Entries) -> Model:
        """The model that is fitted to these rows alone."""
        calibration = calibrate(grouped(in_rows(entries, entries.totals - entries.absent, int(entries.rows.sum()))))
        only = np.zeros(len(entries), dtype=np.int64)
        return cls(calibration.probability(scores_of_keys(entries.low), only), float(calibration.rejected_alone[0]))


@dataclass(frozen=True)
class Target:
    """Where the stable cut of a sample is, as a number of rows, and the resampled cuts."""

    position: float
    resampled: ResampledCuts

    @classmethod
    def of(
        cls, curve: EdgeCurve, model: Model, rng: np.random.Generator, folds: Folds | None = None, workers: int = 1
    ) -> Target:
        """Halfway between what the resamples and what the model say, in a central range of the resampled cuts."""
        start = cls(float(curve.accepted[curve.best]), resample(curve, rng, folds, workers))
        resampled = start.resampled
        if not resampled.tell_of(curve):
            return start
        position = start.between(curve, model, 0.5)
        rarer = max(1, min(curve.entries.rows.sum(axis=0).tolist()))
        cost = resampled.in_gains(curve.loss(curve.nearest(position))) / (1 + FEW_ROWS / rarer)
        share = float(np.interp(cost, *RANGE))
        share += (0.5 - share) * float(np.interp(model.doubt, DOUBT, (0.0, 1.0)))
        return cls(resampled.clipped(position, share), resampled)

    def between(self, curve: EdgeCurve, model: Model, weight: float) -> float:
        """A position between the mean of the resampled cuts and the cut of a model."""
        modelled = float(curve.accepted[_best_of_model(curve, model.probability)])
        return weight * modelled + (1 - weight) * float(self.resampled.position.mean())

    def supported(self, curve: EdgeCurve, model: Model, weight: float, may_object: bool) -> Target:
        """This place, or the one that a model of all labels has, as far as that costs no more on the label's rows.

        A label with few rows of a class may not object: all resamples of a single positive have the same best cut, as
        if it were settled.
        """
        if not self.resampled.tell_of(curve):
            return self
        other = self.between(curve, model, weight)
        if not may_object:
            return replace(self, position=other)
        own_loss, other_loss = (curve.loss(curve.nearest(position)) for position in (self.position, other))
        share = float(np.interp(self.resampled.in_gains(other_loss - own_loss), *SUPPORT))
        position = share * other + (1 - share) * self.position
        if curve.loss(curve.nearest(position)) > max(own_loss, other_loss):  # the two are at different peaks
            return self
        return replace(self, position=position)

    def stability(self, curve: EdgeCurve, edge: int, dtype: np.dtype[Any]) -> Stability | None:
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


def _best_of_model(curve: EdgeCurve, probability: NDArray[np.float64]) -> int:
    """The edge that is best where a share of each entry's rows is positive, among those that can be chosen."""
    entries = curve.entries
    expected = np.column_stack((1 - probability, probability)) * both_classes(entries.weight)[:, None]
    modelled = Entries.scores(entries.low, entries.rows, expected, absent=entries.absent.astype(float))
    confusion, in_counts = modelled.edges, not entries.in_floats and not curve.objective.can_be_bounded
    if in_counts:  # a function of one's own may want whole numbers
        cells = (confusion.tp, confusion.fp, confusion.fn, confusion.tn)
        confusion = Confusion(*(np.rint(cell).astype(np.int64) for cell in cells))
    values = curve.objective.metric_values(confusion)
    values = np.where((curve.values > -np.inf) & ~np.isnan(values), values, -np.inf)
    return int(rules.first_best(values, curve.objective.rounding(entries.totals, not in_counts)))


def stable_cuts_of_labels(
    source: LabelSource, objective: Objective, names: Sequence[Any], random_state: Any, folds: Folds | None = None
) -> list[LabelThreshold | None]:
    """Threshold, interval and stability of each label; None where no cut can be chosen without a constraint.

    Each label has a place of its own, and one by a model that is drawn toward that of all labels as far as they agree.
    """
    workers = source.settings.available_cores
    blocks = source.blocks()
    totals = source.totals
    rows = int(np.broadcast_to(source.rows, len(totals)).sum())
    groups = Groups.joined(
        on_each(lambda block: grouped(in_rows(source.entries(block), totals, rows)), blocks, workers)
    )
    calibration, seed = calibrate(groups), seed_of(random_state)
    # As much of the labels' model as shrinkage would take; never less than a label takes of a model of its own
    counted = _scaled(totals, totals, rows) if source.weighted else totals
    weights = np.maximum(0.5, shares("auto", objective.metric, groups, calibration, counted))

    def work(block: slice) -> tuple[list[LabelThreshold | None], list[InfeasibleLabelError]]:
        entries, dtype = source.entries(block), source.dtype_of(block)
        probability = calibration.probability(scores_of_keys(entries.low), entries.sample + block.start)
        found: list[LabelThreshold | None] = []
        errors: list[InfeasibleLabelError] = []
        for sample, label in enumerate(range(block.start, block.start + entries.samples)):
            part, own = slice(*entries.starts[sample : sample + 2].tolist()), entries.of_sample(sample)
            curve = EdgeCurve.of(own, objective)
            if curve is None:
                found.append(None)
                if objective.constraints and objective.has_classes(own.totals)[0]:
                    reason = str(rules.infeasible(objective, own.edges, int(own.rows.sum())))
                    errors.append(InfeasibleLabelError(names[label], reason))
                continue
            of_all = Model(probability[part], float(calibration.rejected_alone[label]))
            has_model = len(weights) > 1 and own.rows.sum(axis=0).min() >= LEAST_ROWS
            rng, of_label = np.random.default_rng([seed, label]), None if folds is None else folds[label]
            target = Target.of(curve, Model.of(own) if has_model else of_all, rng, of_label)
            if len(weights) > 1:
                target = target.supported(curve, of_all, float(weights[label]), has_model)
            edge = curve.nearest(target.position)
            found.append(Settled(curve, edge, target.stability(curve, edge, dtype)).placed(dtype))
        return found, errors

    size = max(1, len(blocks) // STAGES)
    stages = [blocks[first : first + size] for first in range(0, len(blocks), size)]
    parts = [
        part
        for stage in shown(stages, "resampling labels", len(blocks), size=len)
        for part in on_each(work, stage, workers)
    ]
    if errors := [error for _, of_block in parts for error in of_block]:
        raise InfeasibleLabelError(errors[0].label, errors[0].reason, len(errors))
    return [cut for of_block, _ in parts for cut in of_block]
