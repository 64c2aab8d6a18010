"""Cuts of smoothed labels: shrinkage applied to a source of labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.calibration.curves import Calibration, Groups, calibrate, grouped
from surecut.confusion import Confusion, joined
from surecut.core.entries import Entries
from surecut.core.keys import scores_of_keys
from surecut.core.memory import Counted
from surecut.core.threads import on_each
from surecut.sources.labels import LabelCuts, LabelSource, TallySource, confusion_at, cuts_of
from surecut.tuning.separation import separated
from surecut.tuning.shrinkage import effective_kappa, shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.core.rules import Objective
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut

POOLED_EXACTLY = 1 << 22
"""So many entries of all labels are pooled score by score; of more, scores that agree in 28 leading bits are one."""

COARSE = np.uint64(36)


class Given:
    """Scores that are probabilities already."""

    def __str__(self) -> str:
        return "given"

    def probability(self, scores: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        return scores


@dataclass(frozen=True)
class Smoothed:
    """A source with smoothed labels, and what was chosen for it."""

    source: LabelSource
    objective: Objective
    calibration: Calibration | Given
    rho: NDArray[np.float64]
    separated: NDArray[np.bool_]
    """Whether each label's scores separate its positives from its negatives."""

    @classmethod
    def by_shrinkage(cls, source: LabelSource, kappa: float | str, objective: Objective) -> Smoothed:
        """Labels drawn toward a model that is calibrated on them."""

        def work(block: slice) -> tuple[Groups, NDArray[np.bool_]]:
            entries = source.entries(block)
            return grouped(entries), separated(entries)

        parts, passed = zip(*on_each(work, source.blocks(), source.settings.available_cores), strict=True)
        groups = Groups.joined(list(parts))
        calibration = calibrate(groups)
        rho = shares(kappa, objective.metric, groups, calibration, source.totals)
        return cls(source, objective, calibration, rho, np.concatenate(passed))

    @classmethod
    def by_probability(cls, source: LabelSource, objective: Objective) -> Smoothed:
        """No labels at all: the scores are taken at their word."""
        labels = len(source.totals)
        return cls(source, objective, Given(), np.ones(labels), np.ones(labels, dtype=bool))

    @property
    def kappa(self) -> NDArray[np.float64]:
        """κ of each label."""
        return effective_kappa(self.rho, self.objective.metric, self.source.totals)

    def entries(self, block: slice) -> Entries:
        """All scores of a block, with smoothed labels: a share ρ of each row's weight is divided as the model has it.

        Rows without a score keep their class.
        """
        entries = self.source.entries(block)
        label, weight = entries.sample, entries.weight.sum(axis=1)
        probability = self.calibration.probability(scores_of_keys(entries.low), label + block.start)
        share = self.rho[block][label]
        expected = np.column_stack((1 - probability, probability)) * weight[:, None]
        smoothed = (1 - share)[:, None] * entries.weight + share[:, None] * expected
        return Entries.scores(
            entries.low, entries.rows, smoothed, starts=entries.starts, absent=entries.absent.astype(float)
        )

    def best_cuts(self, names: Sequence[Any]) -> LabelCuts:
        """The best cut of each label; those whose metric is undefined on the real labels are marked."""

        def work(block: slice) -> LabelCuts:
            return cuts_of(Counted(self.entries(block), self.source.dtype_of(block)), self.objective, names[block])

        cuts = LabelCuts.joined(on_each(work, self.source.blocks(), self.source.settings.available_cores))
        if isinstance(self.calibration, Given):
            return cuts
        defined = cuts.defined & self.objective.has_classes(self.source.totals)
        return replace(cuts, defined=defined)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The expected confusion of each label at its threshold."""
        blocks = self.source.blocks()
        return joined([confusion_at(self.entries(block), thresholds[block]) for block in blocks])

    def pooled_cut(self) -> LabelCuts:
        """The best cut of all labels' smoothed entries taken together."""
        keys, masses, rows, absent = np.zeros(0, dtype=np.uint64), np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(2)
        coarse = self.source.size > POOLED_EXACTLY
        for block in self.source.blocks():
            entries = self.entries(block)
            found = entries.low >> COARSE << COARSE if coarse else entries.low
            keys, where = np.unique(np.concatenate((keys, found)), return_inverse=True)
            both, counts = np.concatenate((masses, entries.weight)), np.concatenate((rows, entries.rows))
            masses = np.column_stack([np.bincount(where, both[:, c], minlength=len(keys)) for c in (0, 1)])
            rows = np.column_stack([np.bincount(where, counts[:, c], minlength=len(keys)) for c in (0, 1)])
            absent = absent + entries.absent.sum(axis=0)
        pooled = Entries.scores(keys[::-1], rows[::-1].astype(np.int64), masses[::-1], absent=absent[None])
        return cuts_of(Counted(pooled, self.source.dtype), self.objective, ["all labels"])


def shrunken_cut(tally: ScoreTally, kappa: float | str, objective: Objective) -> Cut:
    """The best cut of one label's smoothed rows, with its value and confusion on the real ones."""
    objective.check(tally.entries.totals)
    smoothed = Smoothed.by_shrinkage(TallySource([tally]), kappa, objective)
    found = smoothed.best_cuts(["y_true"])
    (lower, upper), threshold = found.intervals[0].tolist(), float(found.thresholds[0])
    plain = tally.candidates.best_cut(objective.metric)
    cut = tally.candidates.cut_at(replace(plain, threshold=threshold, interval=(lower, upper)))
    value = 0.0 if np.isnan(cut.value) else cut.value  # precision, say, where nothing is predicted
    return replace(cut, value=value, shrinkage=float(smoothed.kappa[0]), calibration=str(smoothed.calibration))
