"""``method="theorem"`` for many labels: Theorem 3 for each at error / m, averaged as Theorems 6 and 7 average."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut import theory
from surecut.averages import undefined_labels
from surecut.certificates.confidence import share_limits
from surecut.certificates.priors import PRIORS, value_range
from surecut.certificates.theorem import change_with_prior, theorem_bound
from surecut.metrics import NoTheoremError

if TYPE_CHECKING:
    from surecut.decisions.multilabel import MultilabelCut


def theorem_labels(cut: MultilabelCut, error: float) -> tuple[float, float, float]:
    """Theorem 3 for each label at error / m; averaged (macro), or with the constants of the pooled prior (micro)."""
    if cut.average == "samples":
        raise ValueError("no theorem covers the samples average: use 'holdout' on held-out rows, or 'bootstrap'")
    if cut.constraints or cut.weighted or cut.out_of_fold or cut.calibration == "given":
        raise ValueError(
            "the theorems cover cuts without constraint, tuned on labelled, unweighted rows that one model scored: use "
            "method='uniform' or 'bootstrap'"
        )
    labels = len(cut)
    if cut.average == "macro":
        undefined = {cut.labels[i] for i, _ in undefined_labels(cut.metric, cut.confusion)}
        not_tuned = undefined | set(cut.shared)  # the theorem is about a label's own best threshold
        least, most = value_range(cut.metric)
        bounds = [
            (most - least, most - least) if label in not_tuned else theorem_bound(cut[label], error / labels)
            for label in cut
        ]
        deviation, regret = np.mean(bounds, axis=0)
    else:
        positives, rows = cut.confusion.positives, int(cut.rows.min())
        low, high = (float(np.mean(limit)) for limit in share_limits(positives, cut.rows, error / 4 / labels))
        priors = np.clip(np.linspace(low, high, PRIORS), 1e-12, 1 - 1e-12)
        constants = cut.metric.constants(priors, np.full(PRIORS, cut.value))
        term = float(np.max(theory.estimation_term(constants, rows, 1 - error / 2 / labels)))
        moved = change_with_prior(cut.metric, priors, float(positives.sum() / cut.rows.sum()))
        deviation = regret = term + 2 * moved
        if np.any(cut.shrinkage):
            raise NoTheoremError("no theorem bounds a shrunken micro cut: use method='uniform'")
    return cut.value - float(deviation) / 2, cut.value + float(deviation) / 2, float(regret)
