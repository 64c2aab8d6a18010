"""``method="theorem"``: the paper's Theorem 3. True, and as a rule vacuous: it is shown for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut import theory
from surecut.certificates.certificate import FRESH, ONE_MODEL, Certificate
from surecut.certificates.confidence import share_limits
from surecut.certificates.priors import PRIORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric, MetricConstants


def theorem_certificate(cut: Cut, confidence: float) -> Certificate:
    """Theorem 3's second term: the prior within limits, and what its uncertainty adds."""
    if cut.weighted:
        raise ValueError("Theorem 3 counts independent rows, and this cut was tuned on weighted ones: use 'bootstrap'")
    if cut.constraints or cut.prior_given:
        which = "a constraint" if cut.constraints else "a prior that was given"
        raise ValueError(f"Theorem 3 does not cover a cut with {which}: use method='uniform'")
    if cut.out_of_fold:
        raise ValueError(
            "Theorem 3 covers one model and rows that it was not trained on, and this cut was tuned on scores that "
            "were pooled from folds: fit with cv=1/3"
        )
    deviation, regret = theorem_bound(cut, 1 - confidence)
    return Certificate(
        lower=cut.value - deviation / 2,
        upper=cut.value + deviation / 2,
        regret_bound=regret,
        value=cut.value,
        metric=cut.metric.name,
        threshold=cut.threshold,
        method="theorem",
        confidence=confidence,
        rows=cut.rows,
        exact=False,
        assumptions=(FRESH, ONE_MODEL),
    )


def theorem_bound(cut: Cut, error: float) -> tuple[float, float]:
    """Twice what the value may deviate by, and the regret, which a shrunken cut pays more of."""
    error /= 2
    low, high = share_limits(cut.confusion.positives, cut.rows, error / 2)
    priors = np.clip(np.linspace(low, high, PRIORS), 1e-12, 1 - 1e-12)
    constants = cut.metric.constants(priors, np.full(PRIORS, cut.value))
    estimation = float(np.max(theory.estimation_term(constants, cut.rows, 1 - error)))
    bound = estimation + 2 * change_with_prior(cut.metric, priors, cut.prior)
    return bound, bound + _cost_of_shrinkage(cut, constants)


def _cost_of_shrinkage(cut: Cut, constants: MetricConstants) -> float:
    """4Dρ/γ: what a cut may lose that was drawn toward a model, ρ = κ / (n₊ + κ)."""
    if not cut.shrinkage:
        return 0.0
    counted = cut.confusion.positives
    if cut.metric.needs_negatives:
        counted = min(counted, cut.confusion.negatives)
    rho = 1 / (1 + counted / cut.shrinkage)
    return float(np.max(4 * constants.D * rho / constants.gamma))


def change_with_prior(metric: Metric, priors: NDArray[np.float64], prior: float) -> float:
    """sup |Ψ(FP, FN, P) − Ψ(FP, FN, P̂)| over the priors that are possible and the rates that both allow."""
    share = np.linspace(0.0, 1.0, 17)
    p = priors[:, None, None]
    fp = share[:, None] * np.minimum(1 - p, 1 - prior)
    fn = share[None, :] * np.minimum(p, prior)
    return float(np.nanmax(np.abs(metric.value(fp, fn, p) - metric.value(fp, fn, prior))))
