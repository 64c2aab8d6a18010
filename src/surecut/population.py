"""Distributions that are known, so that optimal classifiers and regrets are exact.

Everything is in rates. Arrays may have leading dimensions: many domains at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from surecut._inputs import plain_number
from surecut.confusion import Confusion
from surecut.core.keys import reaches
from surecut.core.rules import first_best
from surecut.losses import get_loss
from surecut.metrics import LinearFractionalMetric, NoTheoremError, get_metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.losses import CompositeLoss
    from surecut.metrics import Metric

ENUMERATED_POINTS = 16
"""Where the best classifier need not be a threshold on η, all 2**k classifiers are tried up to this many points."""


class TunedCut(NamedTuple):
    """The best threshold of a function on the whole population, and its value."""

    threshold: Any
    value: Any


@dataclass(frozen=True)
class FiniteDomain:
    """Finitely many points x with Pr(x) and η(x) = Pr(y = 1 | x).

    Parameters
    ----------
    probability
        Pr(x), shape (..., k), summing to 1 over the last axis; or one number, if all are equal.
    eta
        η(x), shape (..., k).

    Examples
    --------
    >>> domain = FiniteDomain([0.5, 0.3, 0.2], [0.1, 0.4, 0.9])
    >>> round(domain.prior, 2), round(domain.optimum("f1"), 4)
    (0.35, 0.7059)
    >>> domain.optimal_classifier("f1")
    array([False,  True,  True])
    """

    probability: ArrayLike
    eta: ArrayLike

    def __post_init__(self) -> None:
        eta = np.asarray(self.eta, dtype=float)
        if eta.ndim == 0 or eta.shape[-1] == 0:
            raise ValueError("eta must hold at least one point")
        probability = np.asarray(self.probability, dtype=float)
        if probability.ndim == 0:
            probability = np.full(eta.shape[-1], float(probability))
        probability, eta = np.broadcast_arrays(probability, eta)
        if not ((eta >= 0) & (eta <= 1)).all():
            raise ValueError("eta must lie in [0, 1]")
        if not ((probability >= 0).all() and np.allclose(probability.sum(axis=-1), 1)):
            raise ValueError("probability must not be negative and must sum to 1 over the points")
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "eta", eta)

    @cached_property
    def positive(self) -> NDArray[np.float64]:
        """Pr(x, y = 1)."""
        return np.asarray(np.multiply(self.probability, self.eta))

    @cached_property
    def negative(self) -> NDArray[np.float64]:
        """Pr(x, y = −1)."""
        return np.asarray(np.multiply(self.probability, 1 - np.asarray(self.eta)))

    @property
    def prior(self) -> Any:
        """P = Pr(y = 1)."""
        return plain_number(self.positive.sum(axis=-1))

    def confusion(self, h: ArrayLike) -> Confusion:
        """Rates of a classifier, given as booleans (or weights in [0, 1]) over the points."""
        accepted = np.asarray(h, dtype=float)
        tp, fp = (self.positive * accepted).sum(axis=-1), (self.negative * accepted).sum(axis=-1)
        rejected = 1 - accepted
        fn, tn = (self.positive * rejected).sum(axis=-1), (self.negative * rejected).sum(axis=-1)
        return Confusion(tp, fp, fn, tn)

    def value(self, metric: str | Metric, h: ArrayLike) -> Any:
        """Ψ(h)."""
        return get_metric(metric).evaluate(self.confusion(h))

    def optimum(self, metric: str | Metric) -> Any:
        """Ψ*, the best value over all classifiers."""
        return self.value(metric, self.optimal_classifier(metric))

    def optimal_classifier(self, metric: str | Metric) -> NDArray[np.bool_]:
        """h*, the best of all classifiers: a threshold on η, where the metric's optimum is on the ROC hull."""
        metric = get_metric(metric)
        if metric.on_hull:
            return self.classify(self.eta, self.best_cut(metric, self.eta).threshold)
        points = np.shape(self.eta)[-1]
        if points > ENUMERATED_POINTS:
            raise ValueError(
                f"the best classifier for {metric.name} need not be a threshold on η; all 2**k classifiers are tried "
                f"up to k = {ENUMERATED_POINTS} points, and there are {points}"
            )
        every = np.array(list(itertools.product((False, True), repeat=points)))
        values = np.stack([np.asarray(self.value(metric, h)) for h in every])
        return np.asarray(every[np.nanargmax(values, axis=0)])

    def best_cut(self, metric: str | Metric, f: ArrayLike) -> TunedCut:
        """The threshold of f that is best on the population, θ*_f, and its value; the highest of those that tie."""
        metric, f = get_metric(metric), np.broadcast_to(np.asarray(f, dtype=float), np.shape(self.eta))
        order = np.argsort(-f, axis=-1, kind="stable")
        ordered = np.take_along_axis(f, order, axis=-1)
        zero = np.zeros((*f.shape[:-1], 1))
        tp, fp = (
            np.concatenate((zero, np.cumsum(np.take_along_axis(mass, order, axis=-1), axis=-1)), axis=-1)
            for mass in (self.positive, self.negative)
        )
        confusion = Confusion(tp, fp, np.maximum(tp[..., -1:] - tp, 0), np.maximum(fp[..., -1:] - fp, 0))
        values = np.asarray(metric.evaluate(confusion))
        last_of_its_score = np.concatenate((ordered[..., 1:] != ordered[..., :-1], zero == 0), axis=-1)
        allowed = np.concatenate((zero == 0, last_of_its_score), axis=-1) & ~np.isnan(values)
        values = np.where(allowed, values, -np.inf)
        chosen = first_best(values)[..., None]
        thresholds = np.concatenate((zero + np.inf, ordered), axis=-1)
        threshold = np.take_along_axis(thresholds, chosen, axis=-1)[..., 0]
        return TunedCut(plain_number(threshold), plain_number(np.take_along_axis(values, chosen, axis=-1)[..., 0]))

    def classify(self, f: ArrayLike, threshold: ArrayLike) -> NDArray[np.bool_]:
        """h_{f,θ}: positive where f ≥ θ; θ = +inf predicts nothing."""
        return reaches(f, np.asarray(threshold, dtype=float)[..., None])

    def regret(self, metric: str | Metric, f: ArrayLike, threshold: ArrayLike) -> Any:
        """Reg_Ψ(h_{f,θ}) = Ψ* − Ψ(h_{f,θ})."""
        return self.optimum(metric) - self.value(metric, self.classify(f, threshold))

    def loss_regret(self, loss: str | CompositeLoss, f: ArrayLike) -> Any:
        """Reg_ℓ(f): the expected conditional regret."""
        regret = get_loss(loss).conditional_regret(self.eta, f)
        probability = np.asarray(self.probability)
        with np.errstate(invalid="ignore"):
            return plain_number(np.where(probability == 0, 0.0, probability * regret).sum(axis=-1))

    def cost_regret(self, alpha: ArrayLike, h: ArrayLike) -> Any:
        """Reg_α(h): expected α·[false positive] + (1−α)·[false negative], beyond that of sgn(η − α)."""
        share = np.asarray(alpha, dtype=float)[..., None]
        wrong = np.asarray(h, dtype=bool) != (np.asarray(self.eta) >= share)
        return plain_number((np.asarray(self.probability) * wrong * np.abs(np.asarray(self.eta) - share)).sum(axis=-1))

    def alpha(self, metric: str | Metric) -> Any:
        """α of equation (3): thresholding η at it attains Ψ*."""
        metric = get_metric(metric)
        if not isinstance(metric, LinearFractionalMetric):
            raise NoTheoremError(f"{metric.name} is not linear-fractional: equation (3) does not apply")
        return metric.constants(self.prior, self.optimum(metric)).alpha

    def optimal_threshold(self, metric: str | Metric, loss: str | CompositeLoss) -> Any:
        """θ* = ψ(α): one threshold that serves every f of small ℓ-regret."""
        return get_loss(loss).link(self.alpha(metric))


@dataclass(frozen=True)
class MultilabelDomain:
    """Finitely many points with Pr(x) and the probabilities of m labels, η of shape (m, k).

    How the labels depend on each other does not matter to macro and micro averages, so it is not asked for.
    """

    probability: ArrayLike
    eta: ArrayLike

    @cached_property
    def macro(self) -> FiniteDomain:
        """The labels as m domains: the macro average of anything is the mean over its first axis."""
        return FiniteDomain(self.probability, self.eta)

    @cached_property
    def micro(self) -> FiniteDomain:
        """Pairs of label and point as one domain: averaged FP and FN are those of the pairs."""
        labels = self.macro
        number = np.shape(labels.eta)[0]
        return FiniteDomain(np.ravel(labels.probability) / number, np.ravel(labels.eta))

    def optimum(self, metric: str | Metric, average: str = "macro") -> float:
        """The best macro- or micro-averaged value over all classifiers."""
        return float(np.mean(self._domain(average).optimum(metric)))

    def regret(self, metric: str | Metric, f: ArrayLike, threshold: ArrayLike, average: str = "macro") -> float:
        """Regret of f, shape (m, k), cut at one threshold per label (macro) or one for all (micro)."""
        domain = self._domain(average)
        scores = np.asarray(f, dtype=float) if average == "macro" else np.ravel(np.asarray(f, dtype=float))
        return float(np.mean(domain.regret(metric, scores, threshold)))

    def loss_regret(self, loss: str | CompositeLoss, f: ArrayLike) -> NDArray[np.float64]:
        """Reg_ℓ of each label."""
        return np.asarray(self.macro.loss_regret(loss, f))

    def _domain(self, average: str) -> FiniteDomain:
        if average not in ("macro", "micro"):
            raise ValueError(f"average must be 'macro' or 'micro', got {average!r}")
        return self.macro if average == "macro" else self.micro


@dataclass(frozen=True)
class LogisticModel:
    """Standard Gaussian x with η(x) = 1 / (1 + exp(−a₀ − aᵀx)), the paper's second synthetic model.

    Regrets have no closed form: `sample_domain` gives a large sample with η in place of labels, as a `FiniteDomain`.
    """

    weights: ArrayLike
    intercept: float = 0.0

    def eta(self, X: ArrayLike) -> NDArray[np.float64]:
        """Pr(y = 1 | x)."""
        return np.asarray(special.expit(self.intercept + np.asarray(X) @ np.asarray(self.weights, dtype=float)))

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> tuple[Any, Any]:
        """n points and their labels in {0, 1}."""
        generator = np.random.default_rng(random_state)
        X = generator.standard_normal((n, len(np.asarray(self.weights))))
        return X, (generator.random(n) < self.eta(X)).astype(int)

    def sample_domain(
        self, n: int, random_state: int | np.random.Generator | None = None
    ) -> tuple[NDArray[np.float64], FiniteDomain]:
        """n points, and the domain that they make with their η."""
        X = np.random.default_rng(random_state).standard_normal((n, len(np.asarray(self.weights))))
        return X, FiniteDomain(1 / n, self.eta(X))
