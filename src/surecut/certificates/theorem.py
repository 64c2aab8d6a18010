"""``method="theorem"``: the paper's Theorem 3. True, and as a rule vacuous: it is shown for comparison.

Of many labels: Theorem 3 for each at error / m, averaged as Theorems 6 and 7 average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut import theory
from surecut.averages import undefined_labels
from surecut.certificates.certificate import FRESH, Certificate
from surecut.certificates.confidence import share_limits
from surecut.certificates.evidence import Asked, Decision, Evidence
from surecut.certificates.priors import PRIORS, value_range
from surecut.decisions.cut import Cut
from surecut.metrics import NoTheoremError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.multilabel import MultilabelCut
    from surecut.metrics import Metric, MetricConstants


def theorem_certificate(evidence: Evidence, asked: Asked) -> Certificate:
    """Theorem 3's second term, from what the cut remembers: the prior within limits, and what its uncertainty adds."""
    cut = evidence.cut
    _require_covered(cut)
    if evidence.average == "micro":
        deviation, regret = _pooled_bound(cut, asked.error)
    else:
        deviation, regret = np.mean(_bounds(cut, asked.error), axis=0).tolist()
    limits = (cut.value - deviation / 2, cut.value + deviation / 2, regret)
    return evidence.certificate(asked, cut.value, limits, [FRESH])


def _require_covered(cut: Decision) -> None:
    if cut.stability is not None:
        raise ValueError(
            "Theorem 3 covers the best cut of the validation rows, and a stable cut is another one: use "
            "method='uniform', or 'holdout' on held-out rows"
        )
    if not isinstance(cut, Cut):
        _require_labels_covered(cut)
        return
    if cut.weighted:
        raise ValueError("Theorem 3 counts independent rows, and this cut was tuned on weighted ones: use 'bootstrap'")
    if cut.constraints or cut.prior_given:
        which = "a constraint" if cut.constraints else "a prior that was given"
        raise ValueError(f"Theorem 3 does not cover a cut with {which}: use method='uniform'")
    if cut.lower_limit is not None:
        raise ValueError(
            "Theorem 3 covers the best cut of the validation rows, and a pilot sample of them chose this one: use "
            "method='uniform'"
        )
    if cut.out_of_fold:
        raise ValueError(
            "Theorem 3 covers one model and rows that it was not trained on, and this cut was tuned on scores that "
            "were pooled from folds: fit with cv=1/3"
        )


def _require_labels_covered(cut: MultilabelCut) -> None:
    if cut.average == "samples":
        raise ValueError("no theorem covers the samples average: use 'holdout' on held-out rows, or 'bootstrap'")
    if cut.constraints or cut.weighted or cut.out_of_fold or cut.calibration == "given":
        raise ValueError(
            "the theorems cover cuts without constraint, tuned on labelled, unweighted rows that one model scored: use "
            "method='uniform' or 'bootstrap'"
        )


def _bounds(cut: Decision, error: float) -> list[tuple[float, float]]:
    """`theorem_bound` of each label; all that the metric can change by where it is not the label's own best cut."""
    if isinstance(cut, Cut):
        return [theorem_bound(cut, error)]
    undefined = {cut.labels[i] for i, _ in undefined_labels(cut.metric, cut.confusion)}
    not_tuned = undefined | set(cut.shared)  # the theorem is about a label's own best threshold
    least, most = value_range(cut.metric)
    return [
        (most - least, most - least) if label in not_tuned else theorem_bound(cut[label], error / len(cut))
        for label in cut
    ]


def theorem_bound(cut: Cut, error: float) -> tuple[float, float]:
    """Twice what the value may deviate by, and the regret, which a shrunken cut pays more of."""
    limits = share_limits(cut.confusion.positives, cut.rows, error / 4)
    bound, constants = _bound(cut, limits, cut.rows, cut.prior, error / 2)
    return bound, bound + _cost_of_shrinkage(cut, constants)


def _pooled_bound(cut: Decision, error: float) -> tuple[float, float]:
    """The same with the constants of the pooled prior, from labels that each have an equal part of the error."""
    positives, rows = cut.confusion.positives, np.asarray(cut.rows)
    limits = tuple(float(np.mean(limit)) for limit in share_limits(positives, rows, error / 4 / len(rows)))
    bound, _ = _bound(cut, limits, int(rows.min()), float(positives.sum() / rows.sum()), error / 2 / len(rows))
    if np.any(cut.shrinkage):
        raise NoTheoremError("no theorem bounds a shrunken micro cut: use method='uniform'")
    return bound, bound


def _bound(
    cut: Decision, limits: tuple[Any, ...], rows: int, prior: float, error: float
) -> tuple[float, MetricConstants]:
    """The estimation term at the worst prior within limits, and what the metric changes by with the prior."""
    priors = np.clip(np.linspace(limits[0], limits[1], PRIORS), 1e-12, 1 - 1e-12)
    constants = cut.metric.constants(priors, np.full(PRIORS, cut.value))
    estimation = float(np.max(theory.estimation_term(constants, rows, 1 - error)))
    return estimation + 2 * _change_with_prior(cut.metric, priors, prior), constants


def _cost_of_shrinkage(cut: Cut, constants: MetricConstants) -> float:
    """4Dρ/γ: what a cut may lose that was drawn toward a model, ρ = κ / (n₊ + κ)."""
    if not cut.shrinkage:
        return 0.0
    counted = cut.confusion.positives
    if cut.metric.needs_negatives:
        counted = min(counted, cut.confusion.negatives)
    rho = 1 / (1 + counted / cut.shrinkage)
    return float(np.max(4 * constants.D * rho / constants.gamma))


def _change_with_prior(metric: Metric, priors: NDArray[np.float64], prior: float) -> float:
    """sup |Ψ(FP, FN, P) − Ψ(FP, FN, P̂)| over the priors that are possible and the rates that both allow."""
    share = np.linspace(0.0, 1.0, 17)
    p = priors[:, None, None]
    fp = share[:, None] * np.minimum(1 - p, 1 - prior)
    fn = share[None, :] * np.minimum(p, prior)
    return float(np.nanmax(np.abs(metric.value(fp, fn, p) - metric.value(fp, fn, prior))))
