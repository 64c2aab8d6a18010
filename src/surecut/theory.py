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
from surecut.label_objectives import MACRO, MICRO, WEIGHTED, MulticlassMetric, averaged_metric
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
        γ, C, α, D of the metric (None for a bound on cost-sensitive regret, and for k labels a row).
    strong_properness
        λ of the loss (None for a bound by cost-sensitive regret, and for k labels a row).
    n, confidence
        The sample size and the probability with which the bound holds; None where it always does.
    slopes
        For k labels a row: what the error of each label's probabilities is multiplied by, its weight in the average
        times A, its `slope_bound`. None elsewhere.
    """

    value: Any
    approximation: Any
    estimation: Any = 0.0
    constants: MetricConstants | None = None
    strong_properness: float | None = None
    n: int | None = None
    confidence: float | None = None
    slopes: Any = None

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


def slope_bound(metric: str | Metric, prior: ArrayLike) -> Any:
    """A = sup |∂Ψ/∂TP − ∂Ψ/∂FP| over all confusions of a prior, with FN = P − TP.

    One true positive in place of a false one, in shares of all rows, changes the metric by at most A. It is exact: the
    supremum is at a corner of the box 0 ≤ FP ≤ 1 − P, 0 ≤ FN ≤ P, or at a single point of one of its edges.

    >>> slope_bound("f1", prior=0.5), slope_bound("accuracy", prior=0.5)
    (4.0, 2.0)
    """
    return get_metric(metric).slope_bound(_array(prior))


def probability_error_bound(loss_regret: ArrayLike, loss: str | CompositeLoss | None = None) -> Any:
    """How far estimated probabilities are from the true ones, in the mean, by the regret of the loss they minimise.

    Without `loss`: E‖η − η̂‖₁ ≤ √(2 Reg), where Reg is the regret of the log loss of several classes, E KL(η ‖ η̂) in
    nats (Pinsker's and Jensen's inequalities). With a strongly proper loss of one label: E|η − η̂| ≤ √(2/λ) √Reg_ℓ.

    >>> round(probability_error_bound(0.02), 10), round(probability_error_bound(0.02, "logistic"), 10)
    (0.2, 0.1)
    """
    strength = 1.0 if loss is None else _strength(loss)
    return plain_number(np.sqrt(2 / strength * _array(loss_regret)))


def top_k_regret_bound(
    metric: str | Metric | MulticlassMetric, prior: ArrayLike, probability_error: ArrayLike, average: str = MACRO
) -> Bound:
    """Exactly k labels for each row: Reg_Ψ ≤ (1/m) Σ A_j E|η_j − η̂_j| ≤ (1/m) max A_j · E‖η − η̂‖₁.

    It bounds the regret, against all randomised rules with k labels a row, of the plug-in rule, which is the best one
    if η̂ is taken for η. That rule predicts the k labels with the largest a_j η̂_j + b_j and breaks ties at random: so
    the bound holds for the best rule of this form as well. k = 1 is one class for each row.

    Parameters
    ----------
    metric
        A linear-fractional metric with γ > 0. With ``average="multiclass"`` accuracy, balanced accuracy or kappa of
        several classes.
    prior
        P_j of the m labels, on the last axis.
    probability_error
        E|η_j − η̂_j| of each label, of the shape of `prior`; or E‖η − η̂‖₁, without the axis of labels.
        `probability_error_bound` has both from regrets of losses.
    average
        ``"macro"``, ``"weighted"``, ``"micro"`` or ``"multiclass"``, as in `tune_top_k`. It replaces the weight 1/m:
        P_j / Σ P for the weighted average, 1 for a metric of several classes. With ``"micro"`` A is that of the mean
        prior, and the bound holds for the k largest η̂.

    Notes
    -----
    Write Ψ = (1/m) Σ G_j(t_j, q_j), with t_j = E[h_j η_j] = TP_j and q_j = E[h_j], the predicted rows. Then ∂G_j/∂t is
    ∂Ψ_j/∂TP − ∂Ψ_j/∂FP, which lies in [0, A_j], for Ψ_j increases in neither FP nor FN. Let Ψ̃ be the same function of
    t̃_j = E[h_j η̂_j], where G_j is continued linearly in t beyond FN ≥ 0 and TN ≥ 0, with the slope that it has there: a
    continuous derivative remains, and slopes in [0, A_j]. Let h* maximise Ψ, and ĥ Ψ̃, among functions of η̂ with values
    in [0, 1] that sum to k. These make a convex set of (t̃, q), on which the gradient of Ψ̃ has its largest product at
    the maximum: so ĥ takes the k largest a_j η̂_j + b_j, a_j = ∂G_j/∂t, b_j = ∂G_j/∂q, with ties broken at random. And,
    since no rule has a larger Ψ̃ (h* can be replaced by its mean given η̂),

        Ψ(h*) − Ψ(ĥ) ≤ [Ψ(h*) − Ψ̃(h*)] + [Ψ̃(ĥ) − Ψ(ĥ)] = (1/m) Σ E[(s_j h*_j − ŝ_j ĥ_j)(η_j − η̂_j)]

    with mean slopes s_j and ŝ_j in [0, A_j]. Both products lie there, and so does the size of their difference.

    The gains need not be those at the optimum of Ψ: Proposition 4 does not carry over to a sum of ratios.

    Examples
    --------
    >>> error = probability_error_bound(0.00005)  # a log loss that is 0.00005 above the best one
    >>> round(top_k_regret_bound("f1", [0.5, 0.3, 0.2], error).value, 4)
    0.0333
    """
    slopes = _top_k_slopes(metric, np.atleast_1d(_array(prior)), average)
    error = np.asarray(_array(probability_error))
    by_label = error.ndim == slopes.ndim
    approximation = plain_number(np.sum(slopes * error, axis=-1) if by_label else slopes.max(axis=-1) * error)
    return Bound(approximation, approximation, slopes=slopes)


def cost_matrix_regret_bound(costs: ArrayLike, probability_error: ArrayLike) -> Bound:
    """The classical bound: the action with the least expected cost under η̂ has a regret of at most c · E‖η − η̂‖₁.

    `costs` has a row for each true class and a column for each action, and `probability_error` is E‖η − η̂‖₁. With the
    columns C_a of two actions, c is half the largest max(C_a − C_b) − min(C_a − C_b): in place of the action b that is
    best for η, a is taken where Σ η̂ (C_a − C_b) ≤ 0, and then its cost Σ η (C_a − C_b) is at most
    Σ (η − η̂)(C_a − C_b). Since η − η̂ sums to 0, that is at most half its size times the range of the other factor.

    >>> cost_matrix_regret_bound([[0, 1, 1], [1, 0, 1], [1, 1, 0]], 0.02).value
    0.02
    """
    matrix = np.asarray(costs, dtype=float)
    if matrix.ndim != 2 or matrix.size == 0 or not np.isfinite(matrix).all():
        raise ValueError(
            "costs must be a matrix of finite numbers with a row for each true class and a column for each action, got "
            f"shape {matrix.shape}"
        )
    between = matrix[:, :, None] - matrix[:, None, :]
    factor = float(np.max(between.max(axis=0) - between.min(axis=0))) / 2
    approximation = plain_number(factor * _array(probability_error))
    return Bound(approximation, approximation, slopes=factor)


def _top_k_slopes(metric: Any, prior: Any, average: str) -> Any:
    """What the error of each label's probabilities is multiplied by."""
    found = averaged_metric(metric, average)
    if isinstance(found, MulticlassMetric):
        return found.slope_bounds(prior)
    labels = prior.shape[-1]
    if average == MICRO:
        mean = np.mean(prior, axis=-1, keepdims=True)
        return np.broadcast_to(np.asarray(slope_bound(found, mean)) / labels, prior.shape)
    slopes = np.asarray(slope_bound(found, prior))
    weight = prior / prior.sum(axis=-1, keepdims=True) if average == WEIGHTED else 1 / labels
    return weight * np.broadcast_to(slopes, prior.shape)


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
