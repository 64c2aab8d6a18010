"""Distributions that are known, so that optimal classifiers and regrets are exact.

Everything is in rates. Arrays may have leading dimensions: many domains at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from surecut._inputs import plain_number
from surecut.confusion import Confusion
from surecut.core.exchanges import Ratios, improved
from surecut.core.keys import reaches
from surecut.core.rules import first_best
from surecut.core.top_rows import NO_LABEL, top_positions
from surecut.label_objectives import (
    MACRO,
    MICRO,
    WEIGHTED,
    MulticlassMetric,
    averaged_metric,
    label_objective,
    ratio_of_counts,
)
from surecut.losses import get_loss
from surecut.metrics import LinearFractionalMetric, NoTheoremError, get_metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.losses import CompositeLoss
    from surecut.metrics import Metric

ENUMERATED_POINTS = 16
"""Where the best classifier need not be a threshold on η, all 2**k classifiers are tried up to this many points."""

ENUMERATED_RULES = 100_000
"""With k labels at each point, all deterministic rules are tried if there are no more."""

STARTS = 4
"""So many of the best deterministic rules are what the search for a randomised one begins with."""


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
class TopKDomain:
    """Finitely many points, at each of which exactly k of m labels are predicted; with k = 1 one of m classes.

    A rule is an array of shape (..., points, m): for each point the probabilities with which its labels are predicted,
    which sum to k. Booleans, as `TopK.predict` with ``as_="indicator"`` has them, are a rule that is not randomised.

    Parameters
    ----------
    probability
        Pr(x), shape (..., points), summing to 1 over the last axis; or one number, if all are equal.
    eta
        η_j(x) = Pr(label j | x), shape (..., points, m): a row for each point, as `predict_proba` has them. The rows
        sum to 1 where the labels are classes.
    k
        How many labels are predicted at each point.

    Examples
    --------
    One point with two classes that are equally likely. To predict always the same class is worth less than to predict
    each of them half of the time:

    >>> domain = TopKDomain([1.0], [[0.5, 0.5]])
    >>> round(domain.optimum("f1", randomised=False), 4), domain.optimum("f1")
    (0.3333, 0.5)
    >>> domain.optimal_rule("f1")
    array([[0.5, 0.5]])
    """

    probability: ArrayLike
    eta: ArrayLike
    k: int = 1

    def __post_init__(self) -> None:
        eta = np.asarray(self.eta, dtype=float)
        if eta.ndim < 2 or 0 in eta.shape[-2:]:
            raise ValueError(f"eta must have a row for each point and a column for each label, got shape {eta.shape}")
        if not 1 <= self.k <= eta.shape[-1]:
            raise ValueError(f"k must be at least 1 and at most the number of labels, {eta.shape[-1]}, got {self.k}")
        probability = np.asarray(self.probability, dtype=float)
        if probability.ndim == 0:
            probability = np.full(eta.shape[-2], float(probability))
        probability, _ = np.broadcast_arrays(probability, eta[..., 0])
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "eta", np.broadcast_to(eta, (*probability.shape, eta.shape[-1])))
        _ = self.labels  # its checks

    @cached_property
    def labels(self) -> FiniteDomain:
        """Each label as a domain of its own, on a last axis."""
        return FiniteDomain(np.asarray(self.probability)[..., None, :], np.swapaxes(np.asarray(self.eta), -1, -2))

    @property
    def prior(self) -> NDArray[np.float64]:
        """P_j of each label, shape (..., m)."""
        return np.asarray(self.labels.prior)

    def confusion(self, h: ArrayLike) -> Confusion:
        """Rates of each label under a rule; each cell has the shape (..., m)."""
        rule = np.asarray(h, dtype=float)
        if rule.shape[-2:] != np.shape(self.eta)[-2:] or not np.allclose(rule.sum(axis=-1), self.k):
            raise ValueError(
                f"a rule must have the shape of eta, {np.shape(self.eta)}, and rows that sum to k = {self.k}; got "
                f"shape {rule.shape}"
            )
        return self.labels.confusion(np.swapaxes(rule, -1, -2))

    def value(self, metric: str | Metric | MulticlassMetric, h: ArrayLike, average: str = MACRO) -> Any:
        """Ψ(h): the average over labels, or a metric of several classes, as `tune_top_k` has them."""
        confusion = self.confusion(h)
        tp = np.asarray(confusion.tp)
        return plain_number(self._values(metric, average, tp[..., None, :], (tp + confusion.fp)[..., None, :])[..., 0])

    def classify(self, f: ArrayLike, a: ArrayLike = 1.0, offsets: ArrayLike = 0.0) -> NDArray[np.bool_]:
        """The k labels with the largest a·f + b at each point; of equal ones that in the lower column."""
        gains = np.asarray(f, dtype=float) * np.asarray(a, dtype=float) + np.asarray(offsets, dtype=float)
        found = top_positions(gains.reshape(-1, gains.shape[-1]), self.k)
        chosen = np.zeros((len(found), gains.shape[-1] + 1), dtype=bool)  # one column more, for labels that are lacking
        np.put_along_axis(chosen, np.where(found == NO_LABEL, gains.shape[-1], found), True, axis=1)
        return chosen[:, :-1].reshape(gains.shape)

    def optimum(self, metric: str | Metric | MulticlassMetric, average: str = MACRO, *, randomised: bool = True) -> Any:
        """Ψ*, the best value over all rules, or over those that are not randomised."""
        return self.value(metric, self.optimal_rule(metric, average, randomised=randomised), average)

    def optimal_rule(
        self, metric: str | Metric | MulticlassMetric, average: str = MACRO, *, randomised: bool = True
    ) -> NDArray[Any]:
        """The best rule.

        All deterministic rules are tried. With ``randomised=True`` the best of them, and the uniform rule, are then
        improved by exchanges between two labels at one point, each of them exact, until none gains: the best result is
        a maximum in all directions. That it is the largest of several such maxima is not proven.
        """
        found = averaged_metric(metric, average)
        if average == MICRO and found.monotone_by_construction:  # type: ignore[union-attr]  # not of several classes
            return self.classify(np.asarray(self.eta))
        if not randomised or self._gains_nothing_from_randomising(found, average):
            rules = self._deterministic_rules()
            best = self._values(found, average, *self._rates(rules)).argmax(axis=-1)
            return np.asarray(rules[best].astype(bool))
        improved_rules = self._improved(found, average, np.asarray(self.eta, dtype=float))
        return self._best_of(found, average, improved_rules)

    def plug_in_rule(self, metric: str | Metric, f: ArrayLike, average: str = MACRO) -> NDArray[np.float64]:
        """The best rule that is found if estimates f are taken for η, at the true priors.

        It predicts the k labels with the largest a·f + b for some a and b, with ties broken at random. Of several such
        rules that no exchange improves, the one that is the best on the domain.
        """
        found = averaged_metric(metric, average)
        estimates = np.broadcast_to(np.asarray(f, dtype=float), np.shape(self.eta))
        if not ((estimates >= 0) & (estimates <= 1)).all():
            raise ValueError("f must be estimates of probabilities, in [0, 1]")
        if average == MICRO:
            return self.classify(estimates).astype(float)
        return self._best_of(found, average, _by_estimate(self._improved(found, average, estimates), self, estimates))

    def regret(self, metric: str | Metric | MulticlassMetric, h: ArrayLike, average: str = MACRO) -> Any:
        """Reg_Ψ(h) = Ψ* − Ψ(h), against all randomised rules."""
        return self.optimum(metric, average) - self.value(metric, h, average)

    def cost_regret(self, costs: ArrayLike, h: ArrayLike) -> Any:
        """Expected cost beyond that of the best action at each point.

        `costs` has a row for each true class and a column for each action; `h` has the shape (..., points, actions).
        """
        self._require_classes("a matrix of costs")
        expected = np.asarray(self.eta) @ np.asarray(costs, dtype=float)
        excess = (np.asarray(h, dtype=float) * (expected - expected.min(axis=-1, keepdims=True))).sum(axis=-1)
        return plain_number((np.asarray(self.probability) * excess).sum(axis=-1))

    def log_loss_regret(self, f: ArrayLike) -> Any:
        """The regret of class probabilities f for the log loss: the expected Kullback–Leibler divergence, in nats."""
        self._require_classes("the log loss of several classes")
        divergence = special.rel_entr(np.asarray(self.eta), np.asarray(f, dtype=float)).sum(axis=-1)
        probability = np.asarray(self.probability)
        return plain_number(np.where(probability == 0, 0.0, probability * divergence).sum(axis=-1))

    def probability_error(self, f: ArrayLike) -> NDArray[np.float64]:
        """E|η_j − f_j| of each label, shape (..., m); the sum over labels is E‖η − f‖₁."""
        error = np.abs(np.asarray(self.eta) - np.asarray(f, dtype=float))
        return np.asarray((np.asarray(self.probability)[..., None] * error).sum(axis=-2))

    def _require_classes(self, what: str) -> None:
        if not np.allclose(np.asarray(self.eta).sum(axis=-1), 1):
            raise ValueError(f"{what} needs class probabilities: the rows of eta must sum to 1")

    def _values(self, metric: Any, average: str, tp: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """Ψ from rates of shape (..., rules, m)."""
        found = averaged_metric(metric, average)
        leading, rules, labels = tp.shape[:-2], tp.shape[-2], tp.shape[-1]
        priors = np.broadcast_to(self.prior, (*leading, labels)).reshape(-1, labels)
        rates = zip(priors, tp.reshape(-1, rules, labels), predicted.reshape(-1, rules, labels), strict=True)
        values = []
        for prior, of_domain, predicted_there in rates:
            objective = label_objective(found, average, prior, 1.0)
            values.append(objective.values(of_domain, predicted_there))
        return np.reshape(values, (*leading, rules))

    def _rates(self, rules: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """True positives and predicted rows of several rules, of shape (..., rules, m)."""
        mass = np.asarray(self.probability)
        spread = "rxj" if rules.ndim == 3 else "...rxj"
        positive = mass[..., None] * np.asarray(self.eta)
        return (
            np.einsum(f"{spread},...xj->...rj", rules, positive, optimize=True),
            np.einsum(f"{spread},...x->...rj", rules, mass, optimize=True),
        )

    def _deterministic_rules(self) -> NDArray[np.float64]:
        """All of them, of shape (rules, points, m)."""
        points, labels = np.shape(self.eta)[-2:]
        number = comb(labels, self.k) ** points
        if number > ENUMERATED_RULES:
            raise ValueError(
                f"the best rule is found by trying all deterministic ones, up to {ENUMERATED_RULES:,}; with {self.k} "
                f"of {labels} labels at {points} points there are {number:,}"
            )
        rows = np.zeros((comb(labels, self.k), labels))
        for row, chosen in zip(rows, itertools.combinations(range(labels), self.k), strict=True):
            row[list(chosen)] = 1
        return np.asarray(rows[np.array(list(itertools.product(range(len(rows)), repeat=points)))])

    def _gains_nothing_from_randomising(self, metric: Any, average: str) -> bool:
        """Whether the metric is one ratio of linear functions of the rule, whose maximum is at a vertex."""
        if isinstance(metric, MulticlassMetric):
            if metric.name in ("gmean", "mcc"):
                raise ValueError(
                    f"the best randomised rule is not known for the {metric.name} of several classes: ask for the best "
                    "deterministic one, randomised=False"
                )
            return True
        if not isinstance(metric, LinearFractionalMetric):
            raise ValueError(
                f"{metric.name} is not linear-fractional: ask for the best deterministic rule, randomised=False"
            )
        return average == MICRO

    def _improved(self, metric: Any, average: str, eta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rules that no exchange improves, of shape (..., rules, points, m), where `eta` is taken for η."""
        if isinstance(metric, MulticlassMetric) or not isinstance(metric, LinearFractionalMetric):
            raise ValueError(f"{metric.name} is no average of linear-fractional metrics")
        leading, (points, labels) = eta.shape[:-2], eta.shape[-2:]
        mass, estimates = np.reshape(self.probability, (-1, points)), eta.reshape(-1, points, labels)
        prior = self.prior.reshape(-1, labels)
        weight = prior / prior.sum(axis=-1, keepdims=True) if average == WEIGHTED else np.full_like(prior, 1 / labels)
        ratios = _ratios(metric, prior, weight)
        every = self._deterministic_rules()
        predicted = np.einsum("rxj,dx->drj", every, mass, optimize=True)
        tp = np.einsum("rxj,dxj->drj", every, mass[..., None] * estimates, optimize=True)
        order = np.argsort(-ratios.value(tp, predicted), axis=-1, kind="stable")[:, :STARTS]
        uniform = np.full((len(mass), 1, points, labels), self.k / labels)
        starts = np.concatenate((every[order], uniform), axis=1)
        return improved(ratios, mass, estimates, starts).reshape(*leading, -1, points, labels)

    def _best_of(self, metric: Any, average: str, rules: NDArray[np.float64]) -> NDArray[np.float64]:
        best = self._values(metric, average, *self._rates(rules)).argmax(axis=-1)
        return np.asarray(np.take_along_axis(rules, best[..., None, None, None], axis=-3)[..., 0, :, :])


def _ratios(metric: LinearFractionalMetric, prior: Any, weight: Any) -> Ratios:
    """A metric of each label in its true positives and predicted rows, which are rates."""
    (n0, n1, n2), (d0, d1, d2) = (
        [np.broadcast_to(one, np.shape(prior)) for one in line] for line in ratio_of_counts(metric, prior, 1.0)
    )
    return Ratios((weight * n0, weight * n1, weight * n2), (d0, d1, d2))


def _by_estimate(rules: NDArray[Any], domain: TopKDomain, f: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rules as functions of the estimates: points whose estimates are equal are treated alike."""
    mass = np.asarray(domain.probability)
    shared = (f[..., :, None, :] == f[..., None, :, :]).all(axis=-1) * mass[..., None, :]
    total = shared.sum(axis=-1, keepdims=True)
    share = np.where(total > 0, shared / np.where(total > 0, total, 1.0), np.eye(np.shape(mass)[-1]))
    return np.asarray(share[..., None, :, :] @ rules)


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
