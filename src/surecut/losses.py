"""Surrogate losses ℓ(y, f): what a model is trained by.

A *composite* loss is a loss of probabilities, c(y, p), seen through a link ψ: ℓ(y, f) = c(y, ψ⁻¹(f)). It is *proper*
if the true probability is its best forecast, and λ-*strongly* proper if the regret of a forecast p where η is true is
at least λ/2 (η − p)². That λ, with the metric's own constants, is all that the theorems need of a loss.

To add a loss: subclass `MarginLoss` (or `CompositeLoss`), write the loss, its derivatives, the link and its inverse,
and list it in `CATALOGUE`. `check_loss` tells whether it is proper and estimates λ; the contract tests run over the
catalogue.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from surecut._inputs import plain_name, plain_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class NoLinkError(ValueError):
    """The loss is not composite: its scores do not stand for probabilities."""


class CompositeLoss(ABC):
    """A loss of a label and a score. Labels are positive where ``y > 0``: {−1, 1}, {0, 1} and booleans will do.

    Attributes
    ----------
    name
        The name in the catalogue.
    strong_properness
        λ, or None where the loss is not strongly proper.
    """

    name: str
    strong_properness: float | None = None

    @abstractmethod
    def value(self, y: ArrayLike, f: ArrayLike) -> Any:
        """ℓ(y, f)."""

    @abstractmethod
    def link(self, p: ArrayLike) -> Any:
        """ψ(p): the score that stands for the probability p."""

    @abstractmethod
    def inverse_link(self, f: ArrayLike) -> Any:
        """ψ⁻¹(f): the probability that the score f stands for; 0 or 1 beyond the link's range."""

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Any:
        """∂ℓ/∂f."""
        raise NotImplementedError(f"{type(self).__name__} has no gradient: define it to train with this loss")

    def value_and_gradient(self, y: ArrayLike, f: ArrayLike) -> tuple[Any, Any]:
        """ℓ(y, f) and ∂ℓ/∂f, for training: together they may be cheaper than apart."""
        return self.value(y, f), self.gradient(y, f)

    def hessian(self, y: ArrayLike, f: ArrayLike) -> Any:
        """∂²ℓ/∂f²; 0 where the slope has a jump."""
        raise NotImplementedError(f"{type(self).__name__} has no second derivative")

    def probability_loss(self, y: ArrayLike, p: ArrayLike) -> Any:
        """c(y, p), the loss of the forecast p."""
        return self.value(y, self.link(p))

    def conditional_risk(self, eta: ArrayLike, f: ArrayLike) -> Any:
        """Expected loss of f where Pr(y = 1) = η; what cannot happen costs nothing, even if it would cost ∞."""
        eta, f = np.broadcast_arrays(np.asarray(eta, dtype=float), np.asarray(f, dtype=float))
        return plain_number(_expected(eta, self.value(1, f)) + _expected(1 - eta, self.value(-1, f)))

    def bayes_risk(self, eta: ArrayLike) -> Any:
        """H(η), the smallest conditional risk; concave, and λ-strongly so for a strongly proper loss."""
        return self.conditional_risk(eta, self.link(eta))

    def conditional_regret(self, eta: ArrayLike, f: ArrayLike) -> Any:
        """Conditional risk of f beyond the smallest; never negative."""
        with np.errstate(invalid="ignore"):
            return plain_number(np.maximum(self.conditional_risk(eta, f) - self.bayes_risk(eta), 0.0))

    def risk(self, y: ArrayLike, f: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """Mean loss of a sample."""
        return float(np.average(self.value(y, f), weights=None if sample_weight is None else np.asarray(sample_weight)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))


class MarginLoss(CompositeLoss):
    """A loss of the margin m = y f alone, y ∈ {−1, 1}: ℓ(y, f) = φ(y f)."""

    @abstractmethod
    def margin_value(self, m: NDArray[np.float64]) -> Any:
        """φ(m)."""

    @abstractmethod
    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        """φ′(m)."""

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        """φ″(m)."""
        raise NotImplementedError(f"{type(self).__name__} has no second derivative")

    def margin_value_and_slope(self, m: NDArray[np.float64]) -> tuple[Any, Any]:
        """φ(m) and φ′(m)."""
        return self.margin_value(m), self.margin_slope(m)

    def value(self, y: ArrayLike, f: ArrayLike) -> Any:
        with np.errstate(over="ignore"):
            return plain_number(self.margin_value(_margin(y, f)))

    def gradient(self, y: ArrayLike, f: ArrayLike) -> Any:
        with np.errstate(over="ignore"):
            return plain_number(_sign(y) * self.margin_slope(_margin(y, f)))

    def value_and_gradient(self, y: ArrayLike, f: ArrayLike) -> tuple[Any, Any]:
        sign = _sign(y)
        with np.errstate(over="ignore"):
            value, slope = self.margin_value_and_slope(np.asarray(sign * np.asarray(f, dtype=float)))
            return plain_number(value), plain_number(sign * slope)

    def hessian(self, y: ArrayLike, f: ArrayLike) -> Any:
        with np.errstate(over="ignore"):
            return plain_number(self.margin_curvature(_margin(y, f)))


class Logistic(MarginLoss):
    """log(1 + e^(−yf)), link log(p / (1 − p)), λ = 4. Its regret is the binary Kullback–Leibler divergence."""

    name = "logistic"
    strong_properness = 4.0

    def margin_value(self, m: NDArray[np.float64]) -> Any:
        return np.logaddexp(0.0, -m)

    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        return -special.expit(-m)

    def margin_value_and_slope(self, m: NDArray[np.float64]) -> tuple[Any, Any]:
        if type(self) is not Logistic:  # a subclass may have changed either
            return super().margin_value_and_slope(m)
        small = np.exp(-np.abs(m))  # one exponential serves both
        return special.log1p(small) - np.minimum(m, 0.0), np.maximum(small, m < 0) / (-1.0 - small)

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        return special.expit(m) * special.expit(-m)

    def link(self, p: ArrayLike) -> Any:
        return plain_number(special.logit(_probability(p)))

    def inverse_link(self, f: ArrayLike) -> Any:
        return plain_number(special.expit(np.asarray(f, dtype=float)))

    def bayes_risk(self, eta: ArrayLike) -> Any:
        eta = _probability(eta)
        return plain_number(special.entr(eta) + special.entr(1 - eta))


class Squared(MarginLoss):
    """(y − f)² for y ∈ {−1, 1}, link 2p − 1, λ = 8."""

    name = "squared"
    strong_properness = 8.0

    def margin_value(self, m: NDArray[np.float64]) -> Any:
        return (1 - m) ** 2

    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        return -2 * (1 - m)

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        return np.full_like(m, 2.0)

    def link(self, p: ArrayLike) -> Any:
        return plain_number(2 * _probability(p) - 1)

    def inverse_link(self, f: ArrayLike) -> Any:
        return plain_number(np.clip((1 + np.asarray(f, dtype=float)) / 2, 0.0, 1.0))


class Exponential(MarginLoss):
    """e^(−yf), the loss of AdaBoost, link ½ log(p / (1 − p)), λ = 4."""

    name = "exponential"
    strong_properness = 4.0

    def margin_value(self, m: NDArray[np.float64]) -> Any:
        return np.exp(-m)

    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        return -np.exp(-m)

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        return np.exp(-m)

    def link(self, p: ArrayLike) -> Any:
        return plain_number(special.logit(_probability(p)) / 2)

    def inverse_link(self, f: ArrayLike) -> Any:
        return plain_number(special.expit(2 * np.asarray(f, dtype=float)))

    def bayes_risk(self, eta: ArrayLike) -> Any:
        eta = _probability(eta)
        return plain_number(2 * np.sqrt(eta * (1 - eta)))


class SquaredHinge(MarginLoss):
    """max(0, 1 − yf)², link 2p − 1, λ = 8: the squared loss without a penalty for being too right."""

    name = "squared_hinge"
    strong_properness = 8.0

    def margin_value(self, m: NDArray[np.float64]) -> Any:
        return np.maximum(0.0, 1 - m) ** 2

    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        return -2 * np.maximum(0.0, 1 - m)

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        return np.where(m < 1, 2.0, 0.0)

    def link(self, p: ArrayLike) -> Any:
        return plain_number(2 * _probability(p) - 1)

    def inverse_link(self, f: ArrayLike) -> Any:
        return plain_number(np.clip((1 + np.asarray(f, dtype=float)) / 2, 0.0, 1.0))


class Spherical(MarginLoss):
    """1 − (√(2 − f²) + yf)/2 on |f| ≤ 1, max(0, −yf) beyond; the spherical score, c(1, p) = 1 − p/√(p² + (1−p)²).

    Link (2p − 1)/√(p² + (1−p)²), λ = 1, which is attained only toward p = 0 and p = 1.
    """

    name = "spherical"
    strong_properness = 1.0

    def margin_value(self, m: NDArray[np.float64]) -> Any:
        inner = np.clip(m, -1.0, 1.0)
        return np.where(np.abs(m) <= 1, 1 - (np.sqrt(2 - inner**2) + inner) / 2, np.maximum(0.0, -m))

    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        inner = np.clip(m, -1.0, 1.0)
        return np.where(np.abs(m) <= 1, (inner / np.sqrt(2 - inner**2) - 1) / 2, np.where(m < 0, -1.0, 0.0))

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        return np.where(np.abs(m) <= 1, (2 - np.clip(m, -1.0, 1.0) ** 2) ** -1.5, 0.0)

    def link(self, p: ArrayLike) -> Any:
        p = _probability(p)
        return plain_number((2 * p - 1) / np.hypot(p, 1 - p))

    def inverse_link(self, f: ArrayLike) -> Any:
        inner = np.clip(np.asarray(f, dtype=float), -1.0, 1.0)
        return plain_number((1 + inner / np.sqrt(2 - inner**2)) / 2)


class Hinge(MarginLoss):
    """max(0, 1 − yf), the loss of support vector machines: not proper.

    Its best score is sgn(2η − 1): it says on which side of ½ the probability is and forgets how far. There is no link,
    no λ, and no threshold on such scores that serves a metric whose optimum is not at ½.
    """

    name = "hinge"
    strong_properness = None

    def margin_value(self, m: NDArray[np.float64]) -> Any:
        return np.maximum(0.0, 1 - m)

    def margin_slope(self, m: NDArray[np.float64]) -> Any:
        return np.where(m < 1, -1.0, 0.0)

    def margin_curvature(self, m: NDArray[np.float64]) -> Any:
        return np.zeros_like(m)

    def link(self, p: ArrayLike) -> Any:
        raise NoLinkError("the hinge loss has no link: its scores do not stand for probabilities")

    def inverse_link(self, f: ArrayLike) -> Any:
        raise NoLinkError("the hinge loss has no link: its scores do not stand for probabilities")

    def bayes_risk(self, eta: ArrayLike) -> Any:
        eta = _probability(eta)
        return plain_number(2 * np.minimum(eta, 1 - eta))


CATALOGUE: dict[str, Callable[[], CompositeLoss]] = {
    "logistic": Logistic,
    "squared": Squared,
    "exponential": Exponential,
    "squared_hinge": SquaredHinge,
    "spherical": Spherical,
    "hinge": Hinge,
}
ALIASES = {"log": "logistic", "log_loss": "logistic", "squared_error": "squared", "brier": "squared", "svm": "hinge"}


def get_loss(loss: str | CompositeLoss) -> CompositeLoss:
    """The loss behind a name.

    >>> get_loss("logistic").strong_properness
    4.0
    """
    if isinstance(loss, CompositeLoss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"expected a loss or its name, got {loss!r}")
    plain = plain_name(loss)
    plain = ALIASES.get(plain, plain)
    if plain in CATALOGUE:
        return CATALOGUE[plain]()
    nearest = difflib.get_close_matches(plain, [*CATALOGUE, *ALIASES], n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise ValueError(f"unknown loss {loss!r}: {hint}The names are {', '.join(CATALOGUE)}")


@dataclass(frozen=True)
class LossReport:
    """What `check_loss` found.

    Attributes
    ----------
    proper
        Whether the true probability is the best forecast, on a grid.
    strong_properness
        The estimate of λ: the smallest of 2·regret / (η − p)² and of the curvature of H. None if not proper.
    declared
        The λ that the loss declares.
    problems
        Sentences; empty if all is well.
    """

    proper: bool
    strong_properness: float | None
    declared: float | None
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def check_loss(loss: CompositeLoss, points: int = 801) -> LossReport:
    """Tell whether a loss is proper composite, and estimate its λ.

    >>> check_loss(Squared()).ok, round(check_loss(Squared()).strong_properness, 2)
    (True, 8.0)
    >>> check_loss(Hinge()).problems
    ('the hinge loss has no link: its scores do not stand for probabilities',)
    """
    # Extremes may stand at the ends, so the grid comes close to 0 and 1 without reaching them.
    ends = np.geomspace(1e-4, 1e-2, 40)
    eta = np.unique(np.concatenate((ends, np.linspace(0.01, 0.99, points), 1 - ends)))
    try:
        scores = np.asarray(loss.link(eta), dtype=float)
        back = np.asarray(loss.inverse_link(scores), dtype=float)
    except NoLinkError as error:
        return LossReport(False, None, loss.strong_properness, (str(error),))
    problems = []
    if not (np.diff(scores) > 0).all():
        problems.append("the link must be strictly increasing, and is not")
    if not np.allclose(back, eta, atol=1e-9):
        problems.append("the inverse link does not undo the link")
    risk = loss.conditional_risk(eta[:, None], scores)
    best = np.diagonal(risk)
    regret = risk - best[:, None]
    proper = bool((regret >= -1e-9 * (1 + np.abs(best[:, None]))).all())
    if not proper:
        row, column = np.unravel_index(regret.argmin(), regret.shape)
        problems.append(
            f"not proper: where the probability is {eta[row]:.4g} the forecast {eta[column]:.4g} has the smaller risk"
        )
        return LossReport(False, None, loss.strong_properness, tuple(problems))
    estimate = _estimate_strength(loss, eta, regret)
    if loss.strong_properness is not None and loss.strong_properness > estimate * 1.02:
        problems.append(f"the declared λ = {loss.strong_properness:g} is too large: the grid allows {estimate:.4g}")
    return LossReport(True, estimate, loss.strong_properness, tuple(problems))


def _estimate_strength(loss: CompositeLoss, eta: NDArray[np.float64], regret: NDArray[np.float64]) -> float:
    """inf 2·reg/(η − p)² over pairs that are apart, and the curvature of H where they meet."""
    apart = np.abs(eta[:, None] - eta) > 0.005
    of_pairs = (2 * regret[apart] / ((eta[:, None] - eta)[apart]) ** 2).min()
    step = 5e-5
    inner = eta[(eta > 2 * step) & (eta < 1 - 2 * step)]
    curvature = -(loss.bayes_risk(inner + step) - 2 * loss.bayes_risk(inner) + loss.bayes_risk(inner - step)) / step**2
    return float(max(0.0, min(of_pairs, np.min(curvature))))


def _sign(y: ArrayLike) -> NDArray[np.float64]:
    return np.where(np.asarray(y) > 0, 1.0, -1.0)


def _margin(y: ArrayLike, f: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(_sign(y) * np.asarray(f, dtype=float))


def _probability(p: ArrayLike) -> NDArray[np.float64]:
    probability = np.asarray(p, dtype=float)
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError(f"a probability must lie in [0, 1], got {probability.ravel()[:5].tolist()}")
    return probability


def _expected(probability: NDArray[np.float64], loss: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.where(probability == 0, 0.0, probability * loss)
