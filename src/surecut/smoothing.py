"""Cuts of smoothed labels: shrinkage applied to a source of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.label_search import LabelCuts, LabelEntries, has_classes
from surecut.label_sources import LabelSource, on_all_cores
from surecut.shrinkage import Calibration, Groups, calibrate, effective_kappa, shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from surecut.search import Objective

POOLED_EXACTLY = 1 << 22
"""So many entries of all labels are pooled score by score; of more, scores that agree in 28 leading bits are one."""

COARSE = np.uint64(36)


class Smoothed:
    """A source with smoothed labels, and what was chosen for it."""

    def __init__(self, source: LabelSource, kappa: float | str, objective: Objective) -> None:
        groups = Groups.joined(on_all_cores(lambda block: source.entries(block).groups(), source.blocks()))
        self.source, self.objective = source, objective
        self.calibration: Calibration = calibrate(groups)
        self.rho = shares(kappa, objective.metric, groups, self.calibration, source.totals)
        self.kappa: NDArray[np.float64] = effective_kappa(self.rho, objective.metric, source.totals)

    def entries(self, block: slice) -> LabelEntries:
        return self.source.entries(block).smoothed(self.calibration, self.rho, block)

    def best_cuts(self, names: Sequence[Any]) -> LabelCuts:
        """The best cut of each label; those whose metric is undefined on the real labels are marked."""

        def work(block: slice) -> LabelCuts:
            return self.entries(block).best_cuts(self.objective, names[block])

        cuts = LabelCuts.joined(on_all_cores(work, self.source.blocks()))
        defined = cuts.defined & has_classes(self.objective.metric, self.source.totals)
        return LabelCuts(cuts.thresholds, cuts.intervals, cuts.confusion, defined)

    def pooled_cut(self) -> LabelCuts:
        """The best cut of all labels' smoothed entries taken together."""
        keys, masses, totals = np.zeros(0, dtype=np.uint64), np.zeros((0, 2)), np.zeros(2)
        for block in self.source.blocks():
            entries = self.entries(block)
            found = entries.keys if self.source.size <= POOLED_EXACTLY else entries.keys >> COARSE << COARSE
            keys, where = np.unique(np.concatenate((keys, found)), return_inverse=True)
            both = np.concatenate((masses, np.column_stack((entries.negative, entries.positive))))
            masses = np.column_stack([np.bincount(where, both[:, c], minlength=len(keys)) for c in (0, 1)])
            totals = totals + entries.totals.sum(axis=0)
        negative, positive = masses[::-1].T
        totals = np.maximum(totals, [np.cumsum(negative)[-1], np.cumsum(positive)[-1]] if len(keys) else 0.0)
        starts = np.array([0, len(keys)])
        pooled = LabelEntries(starts, keys[::-1], positive, negative, totals[None], self.source.dtype, weighted=True)
        return pooled.best_cuts(self.objective, ["all labels"])
