"""Cuts of smoothed labels: shrinkage applied to a source of labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion
from surecut.multilabel.calibration import Calibration, Groups, calibrate
from surecut.multilabel.search import LabelCuts, LabelEntries, has_classes, joined
from surecut.multilabel.shrinkage import effective_kappa, shares
from surecut.multilabel.sources import LabelBlocks, TallySource, on_all_cores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut
    from surecut.search import Objective
    from surecut.tally import ScoreTally

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

    source: LabelBlocks
    objective: Objective
    calibration: Calibration | Given
    rho: NDArray[np.float64]

    @classmethod
    def by_shrinkage(cls, source: LabelBlocks, kappa: float | str, objective: Objective) -> Smoothed:
        """Labels drawn toward a model that is calibrated on them."""
        groups = Groups.joined(on_all_cores(lambda block: source.entries(block).groups(), source.blocks()))
        calibration = calibrate(groups)
        return cls(source, objective, calibration, shares(kappa, objective.metric, groups, calibration, source.totals))

    @classmethod
    def by_probability(cls, source: LabelBlocks, objective: Objective) -> Smoothed:
        """No labels at all: the scores are taken at their word."""
        return cls(source, objective, Given(), np.ones(len(source.totals)))

    @property
    def kappa(self) -> NDArray[np.float64]:
        """κ of each label."""
        return effective_kappa(self.rho, self.objective.metric, self.source.totals)

    def entries(self, block: slice) -> LabelEntries:
        return self.source.entries(block).smoothed(self.calibration, self.rho, block)

    def best_cuts(self, names: Sequence[Any]) -> LabelCuts:
        """The best cut of each label; those whose metric is undefined on the real labels are marked."""

        def work(block: slice) -> LabelCuts:
            return self.entries(block).best_cuts(self.objective, names[block])

        cuts = LabelCuts.joined(on_all_cores(work, self.source.blocks()))
        if isinstance(self.calibration, Given):
            return cuts
        defined = cuts.defined & has_classes(self.objective.metric, self.source.totals)
        return replace(cuts, defined=defined)

    def confusion_at(self, thresholds: NDArray[np.float64]) -> Confusion:
        """The expected confusion of each label at its threshold."""
        blocks = self.source.blocks()
        return joined([self.entries(block).confusion_at(thresholds[block]) for block in blocks])

    def pooled_cut(self) -> LabelCuts:
        """The best cut of all labels' smoothed entries taken together."""
        keys, masses, absent = np.zeros(0, dtype=np.uint64), np.zeros((0, 2)), np.zeros(2)
        coarse = self.source.size > POOLED_EXACTLY
        for block in self.source.blocks():
            entries = self.entries(block)
            found = entries.keys >> COARSE << COARSE if coarse else entries.keys
            keys, where = np.unique(np.concatenate((keys, found)), return_inverse=True)
            both = np.concatenate((masses, np.column_stack((entries.negative, entries.positive))))
            masses = np.column_stack([np.bincount(where, both[:, c], minlength=len(keys)) for c in (0, 1)])
            absent = absent + entries.absent.sum(axis=0)
        negative, positive = masses[::-1].T
        starts = np.array([0, len(keys)])
        pooled = LabelEntries(starts, keys[::-1], positive, negative, absent[None], self.source.dtype, weighted=True)
        return pooled.best_cuts(self.objective, ["all labels"])


def shrunken_cut(tally: ScoreTally, kappa: float | str, objective: Objective) -> Cut:
    """The best cut of one label's smoothed rows, with its value and confusion on the real ones."""
    tally.candidates.check(objective.metric)
    smoothed = Smoothed.by_shrinkage(TallySource([tally]), kappa, objective)
    found = smoothed.best_cuts(["y_true"])
    (lower, upper), threshold = found.intervals[0].tolist(), float(found.thresholds[0])
    plain = tally.candidates.best_cut(objective.metric)
    cut = tally.candidates.cut_at(replace(plain, threshold=threshold, interval=(lower, upper)))
    value = 0.0 if np.isnan(cut.value) else cut.value  # precision, say, where nothing is predicted
    return replace(cut, value=value, shrinkage=float(smoothed.kappa[0]), calibration=str(smoothed.calibration))
