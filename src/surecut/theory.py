"""The theorems of the paper as functions: constants, thresholds, bounds, each with its parts.

Notation: P the prior, Ψ* the best value of the metric, λ the strong properness of the loss, δ = 1 − confidence.
Numbers or arrays: many populations at once.

The by-product that stands out: *one training serves every misclassification cost*. The bound on the cost-sensitive
regret (Proposition 5) holds for all costs at once, with the same f and the same loss; costs only move the threshold,
to ψ(α) (`cost_threshold`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import plain_number
from surecut.losses import get_loss
from surecut.metrics import MetricConstants, NoTheoremError, get_metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from surecut.losses import CompositeLoss
    from surecut.metrics import Metric


@dataclass(frozen=True)
class Bound:
    """An upper bound on a regret, and what it is made of.

    Attributes
    ----------
    value
        The bound: `approximation + estimation`.
    approximation
        What the model's ℓ-regret costs: C √(2/λ) √Reg_ℓ.
    estimation
        What tuning on a sample of n rows costs; 0 where the threshold is tuned on the population.
    constants
        γ, C, α, D of the metric (None for a bound on cost-sensitive regret).
    strong_properness
        λ of the loss (None for a bound by cost-sensitive regret).
    n, confidence
        The sample size and the probability with which the bound holds; None where it always does.
    """

    value: Any
    approximation: Any
    estimation: Any = 0.0
    constants: MetricConstants | None = None
    strong_properness: float | None = None
    n: int | None = None
    confidence: float | None = None

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing about a metric that lives in an interval of length 1."""
        return bool(np.all(np.asarray(self.value) >= 1))


def constants(metric: str | Metric, prior: ArrayLike, optimum: ArrayLike) -> MetricConstants:
    """γ, C, α and D of a metric at a prior, given the best attainable value.

    >>> constants("am", prior=0.1, optimum=0.8).alpha
    0.1
    """
    return get_metric(metric).constants(_array(prior), _array(optimum))


def optimal_threshold(metric: str | Metric, loss: str | CompositeLoss, prior: ArrayLike, optimum: ArrayLike) -> Any:
    """θ* = ψ(α), equation (3): one threshold for every f.

    >>> optimal_threshold("accuracy", "logistic", prior=0.3, optimum=0.9)
    0.0
    """
    return cost_threshold(constants(metric, prior, optimum).alpha, loss)


def cost_threshold(alpha: ArrayLike, loss: str | CompositeLoss) -> Any:
    """ψ(α): where to cut f if a false positive costs α and a false negative 1 − α.

    One training serves every cost: the loss is minimised without knowing α.

    >>> float(np.round(cost_threshold(0.1, "logistic"), 4))
    -2.1972
    """
    share = np.asarray(alpha, dtype=float)
    if not ((share >= 0) & (share <= 1)).all():
        raise ValueError(f"alpha must lie in [0, 1], got {alpha!r}")
    return get_loss(loss).link(share)


def cost_regret_bound(loss: str | CompositeLoss, loss_regret: ArrayLike) -> Bound:
    """Proposition 5: Reg_α(h_{f,ψ(α)}) ≤ √(2/λ) √Reg_ℓ(f), for all α at once."""
    strength = _strength(loss)
    approximation = plain_number(np.sqrt(2 / strength) * np.sqrt(_array(loss_regret)))
    return Bound(approximation, approximation, strong_properness=strength)


def regret_bound_by_cost(metric: str | Metric, prior: ArrayLike, optimum: ArrayLike, cost_regret: ArrayLike) -> Bound:
    """Proposition 4: Reg_Ψ(h) ≤ C · Reg_α(h) for every classifier h."""
    parts = constants(metric, prior, optimum)
    approximation = plain_number(parts.C * _array(cost_regret))
    return Bound(approximation, approximation, constants=parts)


def regret_bound(
    metric: str | Metric, loss: str | CompositeLoss, prior: ArrayLike, optimum: ArrayLike, loss_regret: ArrayLike
) -> Bound:
    """Lemma 1 and Theorem 2: Reg_Ψ ≤ C √(2/λ) √Reg_ℓ(f), for f cut at θ* (Lemma 1) or at its own best threshold.

    >>> round(regret_bound("f1", "logistic", prior=0.5, optimum=0.8, loss_regret=0.001).value, 4)
    0.0894
    """
    parts, strength = constants(metric, prior, optimum), _strength(loss)
    approximation = plain_number(parts.C * np.sqrt(2 / strength) * np.sqrt(_array(loss_regret)))
    return Bound(approximation, approximation, constants=parts, strong_properness=strength)


def finite_sample_bound(
    metric: str | Metric,
    loss: str | CompositeLoss,
    prior: ArrayLike,
    optimum: ArrayLike,
    loss_regret: ArrayLike,
    n: int,
    confidence: float = 0.95,
) -> Bound:
    """Theorem 3: with probability `confidence` over the n rows that tune the threshold,

    Reg_Ψ ≤ C √(2/λ) √Reg_ℓ(f) + 16 D/γ · √((4 (1 + log n) + 2 log(16/δ)) / n).

    True, and vacuous in practice:

    >>> round(finite_sample_bound("f1", "logistic", 0.1, 0.6, 0.0, n=10**6).value, 1)
    2.7
    """
    bound = regret_bound(metric, loss, prior, optimum, loss_regret)
    estimation = estimation_term(constants(metric, prior, optimum), n, confidence)
    return _with_estimation(bound, estimation, n, confidence)


def macro_regret_bound(
    metric: str | Metric,
    loss: str | CompositeLoss,
    prior: ArrayLike,
    optimum: ArrayLike,
    loss_regret: ArrayLike,
    n: int | None = None,
    confidence: float = 0.95,
) -> Bound:
    """Theorem 6: the mean over labels of Theorem 2, each label with its own P, Ψ* and ℓ-regret (arrays of length m).

    With n, Theorem 3 for every label at δ/m, which holds for all labels at once.
    """
    labels = len(np.atleast_1d(_array(prior)))
    bound = regret_bound(metric, loss, prior, optimum, loss_regret)
    mean = float(np.mean(bound.approximation))
    averaged = replace(bound, value=mean, approximation=mean)
    if n is None:
        return averaged
    of_labels = estimation_term(constants(metric, prior, optimum), n, 1 - (1 - confidence) / labels)
    estimation = float(np.mean(of_labels))
    return _with_estimation(averaged, estimation, n, confidence)


def micro_regret_bound(
    metric: str | Metric,
    loss: str | CompositeLoss,
    prior: float,
    optimum: float,
    loss_regret: ArrayLike,
    n: int | None = None,
    confidence: float = 0.95,
) -> Bound:
    """Theorem 7: √(2/λ) (C/m) Σ √Reg_ℓ of the labels, with C at the mean prior P̄ and the best micro value.

    `loss_regret` is an array of length m. With n, the deviations of every label's FP and FN are bounded at δ/m: rows,
    not pairs of row and label, are independent.
    """
    regrets = np.atleast_1d(_array(loss_regret))
    parts, strength = constants(metric, prior, optimum), _strength(loss)
    approximation = float(parts.C * np.sqrt(2 / strength) * np.mean(np.sqrt(regrets)))
    bound = Bound(approximation, approximation, constants=parts, strong_properness=strength)
    if n is None:
        return bound
    estimation = estimation_term(parts, n, 1 - (1 - confidence) / len(regrets))
    return _with_estimation(bound, estimation, n, confidence)


def estimation_term(parts: MetricConstants, n: int, confidence: float) -> Any:
    """16 D/γ · √((4 (1 + log n) + 2 log(16/δ)) / n), the second term of Theorem 3."""
    if not n >= 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must fulfil 0 < confidence < 1, got {confidence}")
    deviation = np.sqrt((4 * (1 + np.log(n)) + 2 * np.log(16 / (1 - confidence))) / n)
    return plain_number(16 * parts.D / parts.gamma * deviation)


def _with_estimation(bound: Bound, estimation: Any, n: int, confidence: float) -> Bound:
    value = plain_number(bound.approximation + estimation)
    return replace(bound, value=value, estimation=estimation, n=n, confidence=confidence)


def _strength(loss: str | CompositeLoss) -> float:
    loss = get_loss(loss)
    if loss.strong_properness is None:
        raise NoTheoremError(f"the {loss.name} loss is not strongly proper: no theorem bounds a metric by its regret")
    return loss.strong_properness


def _array(values: ArrayLike) -> Any:
    array = np.asarray(values, dtype=float)
    return float(array) if array.ndim == 0 else array
