"""What is kept of many labels' validation rows, so that thresholds for another metric or average can be found later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion
from surecut.core.candidates import Hull
from surecut.core.rules import Objective
from surecut.core.tally import tally_rows
from surecut.decisions.multilabel import MultilabelCut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric


@dataclass(frozen=True, eq=False)
class LabelHulls:
    """The ROC hull of each label, that of all labels together, and every label's counts at the latter's vertices.

    From these come the best macro and micro cuts for every linear-fractional metric and for MCC.
    """

    labels: tuple[Any, ...]
    of_label: list[Hull]
    pooled: Hull
    at_pooled: list[Confusion]
    """Each label's confusion at every vertex of `pooled`."""

    @classmethod
    def of(
        cls,
        truth: NDArray[Any],
        scores: NDArray[Any],
        weights: NDArray[np.float64] | None,
        labels: tuple[Any, ...],
    ) -> LabelHulls:
        """The hulls of validation rows, dense and checked."""
        tallies = [tally_rows(scores[:, i], truth[:, i] != 0, weights) for i in range(len(labels))]
        flat_weights = None if weights is None else np.repeat(weights, len(labels))
        pooled = tally_rows(scores.reshape(-1), (truth != 0).reshape(-1), flat_weights).hull
        at_pooled = [tally.confusion_at(pooled.accepted) for tally in tallies]
        return cls(labels, [tally.hull for tally in tallies], pooled, at_pooled)

    def best_cut(self, metric: Metric, average: str) -> MultilabelCut:
        """The thresholds for a metric and an average."""
        if average == "samples":
            raise ValueError(
                "the samples average cannot be found from labels' counts: set average='samples' and fit again"
            )
        nothing = [hull.confusion[0] for hull in self.of_label]
        totals = np.array([(confusion.negatives, confusion.positives) for confusion in nothing])
        defined = Objective(metric).has_classes(totals) & (average == "macro")
        pooled = None if defined.all() else self.pooled.best_cut(metric)
        cuts = [
            hull.best_cut(metric) if defined[i] or pooled is None else self._at(pooled, i)
            for i, hull in enumerate(self.of_label)
        ]
        if average == "macro":
            shared = None if pooled is None else pooled.threshold
            return MultilabelCut.from_cuts(self.labels, cuts, average=average, shared_threshold=shared)
        value = pooled.value if pooled is not None else None
        return MultilabelCut.from_cuts(self.labels, cuts, average=average, value=value)

    def _at(self, pooled: Cut, label: int) -> Cut:
        """The pooled cut with one label's counts."""
        vertex = int(np.flatnonzero(self.pooled.accepted == pooled.interval[1])[0])
        hull = self.of_label[label]
        return hull.cut_with(pooled, self.at_pooled[label][vertex])
