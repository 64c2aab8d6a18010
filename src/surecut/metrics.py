"""Metrics Ψ: what a classifier is judged by. Larger is better.

A metric is a function of the confusion matrix. Most are *linear-fractional*: a ratio of two linear functions of the
four cells. Such a metric is written once, as its cells,

    Ψ = (n_tp TP + n_fp FP + n_fn FN + n_tn TN) / (d_tp TP + d_fp FP + d_fn FN + d_tn TN),

and everything else follows in the base class: the value, the coefficients of the paper's form

    Ψ(FP, FN) = (a₀ + a₁ FP + a₂ FN) / (b₀ + b₁ FP + b₂ FN),

the constants γ, C, α, D of its theorems, and the check that Ψ does not increase in FP or FN.

To add a metric: write a frozen dataclass with `name`, a docstring and `cells`, and list it in `CATALOGUE`. The
contract tests run over the catalogue.
"""

from __future__ import annotations

import difflib
import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from inspect import signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut import _sklearn_names
from surecut._inputs import plain_name, plain_number
from surecut.confusion import LARGE, Confusion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Cells = tuple[Any, Any, Any, Any]
"""Weights of (tp, fp, fn, tn) in a linear function."""

NOISE = 8 * float(np.finfo(float).eps)
"""What a sum of four rounded products may be off, relatively to their sizes."""

LARGEST_BETA = 1e100
"""Beyond it, and below one over it, β² is no number to count with."""

LINE = (0.137, 0.5, 0.811)
"""Priors at which a coefficient is compared with a straight line."""

DIGITS = 9
"""Weights of no more decimals than this are counted with as whole numbers."""

FLOAT = np.dtype(float)

PLAIN_NUMBERS = {int, float}
"""Types of numbers that neither overflow nor have to be converted; booleans are none of them."""

Coefficient = float | Callable[[float], float]
"""A number, or a function of the prior."""

Triple = tuple[Any, Any, Any]


class NotMonotoneError(ValueError):
    """A metric grows where it should not: with more false positives or more false negatives."""


class NoTheoremError(ValueError):
    """The paper's theorems do not cover this metric, or not at this prior."""


class Metric(ABC):
    """A function of the confusion matrix, larger is better."""

    name: str
    needs_positives = False
    needs_negatives = False
    extremes_at_corners = True
    """Over a box of (FP, FN) the extremes stand at its corners, so that a bin of scores can be bounded unseen."""
    on_hull = False
    """The best cut of any scores is a vertex of their ROC convex hull, at any prior."""
    falls_with_errors = True
    """It does not increase in FP or FN: otherwise a bin of scores has its best corner elsewhere (`best_corner`)."""
    monotone_by_construction = False
    """No value of its parameters makes it grow with errors, at any prior: tests show it, and tuning need not look.
    It is not inherited, since a subclass may be another metric."""
    value_range: tuple[float, float] = (-math.inf, math.inf)
    """The least and the largest value that it can have, where they are known; not inherited either."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.value_range = vars(cls).get("value_range", (-math.inf, math.inf))
        cls.monotone_by_construction = vars(cls).get("monotone_by_construction", False)

    @abstractmethod
    def evaluate(self, confusion: Confusion) -> Any:
        """Value at a confusion, scalar or arrays; NaN where the metric is undefined."""

    def best_corner(self, before: Confusion, after: Confusion) -> Confusion:
        """The best corner of the box of confusions between two cuts, the second of which accepts more."""
        return Confusion(tp=after.tp, fp=before.fp, fn=after.fn, tn=before.tn)

    def value(self, fp: Any, fn: Any, prior: Any) -> Any:
        """Ψ(FP, FN) at a prior P; FP and FN are shares of all rows, scalars or arrays.

        >>> Accuracy().value(fp=0.1, fn=0.05, prior=0.3)
        0.85
        """
        fp, fn, prior = (np.asarray(part, dtype=float) for part in (fp, fn, prior))
        fp, fn, prior = np.broadcast_arrays(fp, fn, prior)
        tp, tn = (np.where(np.abs(rest) < 1e-15, 0.0, rest) for rest in (prior - fn, 1 - prior - fp))  # 1 − 0.9 − 0.1
        return self.evaluate(Confusion(tp=tp, fp=fp, fn=fn, tn=tn))

    def score(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
    ) -> float:
        """Value of predictions; 0 where the ratio is 0/0, as scikit-learn has it.

        >>> FBeta(1).score([1, 1, 0, 0], [1, 0, 0, 1])
        0.5
        """
        confusion = Confusion.from_predictions(y_true, y_pred, sample_weight=sample_weight, pos_label=pos_label)
        self.check_classes(confusion.positives, confusion.negatives)
        value = float(self.evaluate(confusion))
        return 0.0 if math.isnan(value) else value

    def as_scorer(self, *, pos_label: Any = None) -> Any:
        """The metric as a scikit-learn scorer, for `GridSearchCV(scoring=...)` and its like."""
        from sklearn.metrics import make_scorer

        return make_scorer(self.score, **({} if pos_label is None else {"pos_label": pos_label}))

    def check_classes(self, positives: float, negatives: float) -> None:
        """Raise where the metric is undefined for want of a class."""
        if self.needs_positives and not positives > 0:
            raise ValueError(f"{self.name} is undefined without rows of the positive class: all labels are negative")
        if self.needs_negatives and not negatives > 0:
            raise ValueError(f"{self.name} is undefined without rows of the negative class: all labels are positive")

    def check_monotone(self, prior: Any) -> None:  # noqa: B027  # the metrics that need no check pass
        """Raise where the metric increases in FP or FN."""

    def constants(self, prior: Any, optimum: Any) -> MetricConstants:
        """The constants of the paper's theorems; a metric that is not linear-fractional has none."""
        raise NoTheoremError(
            f"{self.name} is not linear-fractional: its cut is exact on the sample, and no theorem bounds its regret"
        )

    def slope_bound(self, prior: Any) -> Any:
        """A, the constant of the theorem for k labels a row; a metric that is not linear-fractional has none."""
        raise NoTheoremError(f"{self.name} is not linear-fractional: no theorem bounds its regret")

    def parameters(self) -> dict[str, Any]:
        """What, with the name, makes the metric again."""
        return {}

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class MetricConstants:
    """The constants of Lemma 1 and Theorem 3 for a metric at a prior P, given its best value Ψ*: numbers or arrays.

    Attributes
    ----------
    gamma
        γ, the smallest value of the denominator.
    C
        C = (Ψ*(b₁ + b₂) − (a₁ + a₂)) / γ, the factor of the regret bound.
    alpha
        α = (Ψ* b₁ − a₁) / (Ψ*(b₁ + b₂) − (a₁ + a₂)): the optimal threshold on Pr(y = 1 | x), equation (3).
    D
        D = max over the box of |b₁Ψ − a₁| and |b₂Ψ − a₂|; D/γ bounds the slope of Ψ.
    """

    gamma: Any
    C: Any
    alpha: Any
    D: Any


class WholeRatio(NamedTuple):
    """A ratio (n₀ + n₁ TP + n₂ FP) / (d₀ + d₁ TP + d₂ FP) of whole numbers, which 64 bits hold at every cut.

    A value depends on nothing but these numbers, whatever computes it. The coefficients are numbers, or arrays of
    several samples.
    """

    numerator: Triple
    denominator: Triple

    def at(self, tp: Any, fp: Any) -> Any:
        """The value where so many of each class are accepted; NaN where it is undefined."""
        top, bottom = (_along(line, tp, fp) for line in self)
        if np.all(bottom):
            return top / bottom
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(bottom == 0, np.nan, np.divide(top, bottom))


class LinearFractionalMetric(Metric):
    """A ratio of two linear functions of the cells."""

    on_hull = True

    @abstractmethod
    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        """Weights of (tp, fp, fn, tn) in the numerator and in the denominator.

        `positives` and `negatives` are the class totals, as counts or as rates: the weights must be such that the
        ratio is the same for both. With counts all sums are integers, and a value depends on nothing but them.
        """

    def evaluate(self, confusion: Confusion) -> Any:
        confusion = confusion.ready_for_products()  # the weights of some metrics are counts themselves
        positives, negatives = confusion.positives, confusion.negatives
        numerator, denominator = _in_whole_numbers(*self._plain_cells(positives, negatives))
        ratio = _in_accepted(numerator, denominator, positives, negatives)
        if ratio is not None:
            return plain_number(ratio.at(np.asarray(confusion.tp), np.asarray(confusion.fp)))
        with np.errstate(invalid="ignore", divide="ignore"):
            top, bottom = _dot(numerator, confusion), _dot(denominator, confusion)
            return plain_number(np.where(bottom == 0, np.nan, np.divide(top, bottom)))

    def in_accepted(self, positives: Any, negatives: Any) -> WholeRatio | None:
        """The metric as a ratio in TP and FP, for given class totals; None unless it can be had in whole numbers.

        The totals are counts, of one sample or of several; from 2**31 rows on the result is None.

        >>> FBeta(1).in_accepted(positives=30, negatives=70)
        WholeRatio(numerator=(0, 2, 0), denominator=(30, 1, 1))
        """
        cells = self._plain_cells(positives, negatives)
        return _in_accepted(*_in_whole_numbers(*cells), positives, negatives)

    def _plain_cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        """The cells, where a metric of one's own may have numbers that overflow, such as NumPy's of 32 bits."""
        numerator, denominator = self.cells(positives, negatives)
        return _as_plain(numerator), _as_plain(denominator)

    def coefficients(self, prior: Any) -> tuple[Triple, Triple]:
        """(a₀, a₁, a₂), (b₀, b₁, b₂) of the paper's form, in rates, at a prior.

        >>> FBeta(1).coefficients(0.25)
        ((0.5, 0.0, -2.0), (0.5, 1.0, -1.0))
        """
        numerator, denominator = self._plain_cells(prior, 1 - prior)
        return _in_fp_fn(numerator, prior), _in_fp_fn(denominator, prior)

    def check_monotone(self, prior: Any) -> None:
        """Decide *non-increasing in FP and FN* at the corners of FP ∈ [0, 1−P], FN ∈ [0, P].

        Where the denominator is positive, ∂Ψ/∂FP has the sign of a₁(b₀ + b₂FN) − b₁(a₀ + a₂FN), which is linear in
        FN alone, and the other way round: two corners decide each.
        """
        (a0, a1, a2), (b0, b1, b2) = self.coefficients(prior)
        size_of_a, size_of_b = (
            np.maximum.reduce(list(map(np.abs, np.broadcast_arrays(*c)))) for c in ((a0, a1, a2), (b0, b1, b2))
        )
        smallest = np.asarray(self.gamma(prior))
        if (bad := (smallest < -1e-12 * size_of_b) | (size_of_b == 0)).any():
            raise NotMonotoneError(
                f"the denominator of {self.name} must be positive, got {smallest[bad].flat[0]:g} at a corner for "
                f"P = {_first(prior, bad):g}"
            )
        # In units of their sizes, whose product need not be a float
        a0, a1, a2 = (one / np.where(size_of_a > 0, size_of_a, 1.0) for one in (a0, a1, a2))
        b0, b1, b2 = (one / size_of_b for one in (b0, b1, b2))
        rounding = 1e-12
        for name, fn in (("0", 0.0), ("P", prior)):
            if (bad := np.asarray(a1 * (b0 + b2 * fn) - b1 * (a0 + a2 * fn) > rounding)).any():
                raise self._increases("FP", f"FN = {name}", _first(prior, bad))
        for name, fp in (("0", 0.0), ("1 − P", 1 - prior)):
            if (bad := np.asarray(a2 * (b0 + b1 * fp) - b2 * (a0 + a1 * fp) > rounding)).any():
                raise self._increases("FN", f"FP = {name}", _first(prior, bad))

    def gamma(self, prior: Any) -> Any:
        """γ, the smallest value of the denominator over the box; 0 where no theorem applies."""
        _, (b0, b1, b2) = self.coefficients(prior)
        corners = [b0 + b1 * fp + b2 * fn for fp in (0.0, 1 - prior) for fn in (0.0, prior)]
        smallest = np.minimum.reduce(np.broadcast_arrays(*corners))
        return plain_number(np.where(np.abs(smallest) <= 1e-15 * (np.abs(b0) + np.abs(b1) + np.abs(b2)), 0.0, smallest))

    def constants(self, prior: Any, optimum: Any) -> MetricConstants:
        """γ, C, α, D at a prior, given the best attainable value Ψ*; scalars, or arrays of one shape.

        >>> FBeta(1).constants(prior=0.1, optimum=0.6)
        MetricConstants(gamma=0.1, C=20.0, alpha=0.3, D=2.0)
        """
        self.check_monotone(prior)
        (_, a1, a2), (_, b1, b2) = self.coefficients(prior)
        gamma = np.asarray(self.gamma(prior))
        if (bad := ~(gamma > 0)).any():
            raise NoTheoremError(
                f"the denominator of {self.name} reaches 0 at P = {_first(prior, bad):g} (γ = 0), so that no theorem "
                "applies; it can still be tuned, constrained and certified on held-out data"
            )
        negative_cost, positive_cost = optimum * b1 - a1, optimum * b2 - a2
        costs = np.asarray(positive_cost + negative_cost)
        if (bad := ~(costs > 0)).any():
            raise NoTheoremError(f"{self.name} is constant at P = {_first(prior, bad):g}: every cut is optimal")
        corners = [self.value(fp, fn, prior) for fp in (0.0, 1 - prior) for fn in (0.0, prior)]
        slopes = [np.abs(b * value - a) for value in corners for a, b in ((a1, b1), (a2, b2))]
        return MetricConstants(
            gamma=plain_number(gamma),
            C=plain_number(costs / gamma),
            alpha=plain_number(negative_cost / costs),
            D=plain_number(np.maximum.reduce(np.broadcast_arrays(*slopes))),
        )

    def slope_bound(self, prior: Any) -> Any:
        """A = sup |∂Ψ/∂TP − ∂Ψ/∂FP| at a fixed prior: the most that Ψ gains where a positive replaces a negative.

        The rate is that of one more true positive among equally many predicted rows: −(∂Ψ/∂FP + ∂Ψ/∂FN) = L/B², where
        B = b₀ + b₁ FP + b₂ FN and L, too, are linear in FP and FN. Its largest value over the box is at a corner, or
        at the one point of an edge where L/B² has a slope of zero.

        >>> FBeta(1).slope_bound(prior=0.5)
        4.0
        """
        self.check_monotone(prior)
        (a0, a1, a2), (b0, b1, b2) = self.coefficients(prior)
        gamma = np.asarray(self.gamma(prior))
        if (bad := ~(gamma > 0)).any():
            raise NoTheoremError(
                f"the denominator of {self.name} reaches 0 at P = {_first(prior, bad):g} (γ = 0), so that no theorem "
                "applies; it can still be tuned"
            )
        of_a, of_b = a1 + a2, b1 + b2
        corner = of_b * a0 - of_a * b0  # of L, where FP = FN = 0
        l1, l2 = of_b * a1 - of_a * b1, of_b * a2 - of_a * b2
        negatives = 1 - prior
        edges = [(corner + l2 * fn, l1, b0 + b2 * fn, b1, negatives) for fn in (0.0, prior)] + [
            (corner + l1 * fp, l2, b0 + b1 * fp, b2, prior) for fp in (0.0, negatives)
        ]
        rates = [_largest_rate(*edge) for edge in edges]
        return plain_number(np.maximum.reduce(np.broadcast_arrays(*rates)))

    def _increases(self, rate: str, corner: str, prior: float) -> NotMonotoneError:
        return NotMonotoneError(
            f"{self.name} must not increase in {rate}, but it does at the corner {corner} for P = {prior:g}. "
            "If that is meant, pass a function of the confusion instead: it is searched by full enumeration"
        )


@dataclass(frozen=True)
class Accuracy(LinearFractionalMetric):
    """(TP + TN) / (TP + FP + FN + TN)."""

    value_range = (0, 1)
    monotone_by_construction = True
    name = "accuracy"

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (1, 0, 0, 1), (1, 1, 1, 1)


@dataclass(frozen=True)
class FBeta(LinearFractionalMetric):
    """(1 + β²) TP / ((1 + β²) TP + FP + β² FN); β > 1 favours recall."""

    value_range = (0, 1)
    monotone_by_construction = True
    beta: float = 1.0
    needs_positives = True

    def __post_init__(self) -> None:
        _with_plain_numbers(self)
        if not 1 / LARGEST_BETA < self.beta < LARGEST_BETA:
            raise ValueError(f"beta must fulfil 0 < beta < {LARGEST_BETA:g}, got {self.beta}")

    @property
    def name(self) -> str:  # type: ignore[override]
        short = f"{self.beta:g}"
        return f"f{short}" if float(short) == self.beta else f"f{float(self.beta)!r}"

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        square = self.beta**2
        return (1 + square, 0, 0, 0), (1 + square, 1, square, 0)

    def parameters(self) -> dict[str, Any]:
        return {"beta": self.beta}


@dataclass(frozen=True)
class Jaccard(LinearFractionalMetric):
    """TP / (TP + FP + FN), the overlap of the predicted and the actual positives."""

    value_range = (0, 1)
    monotone_by_construction = True
    name = "jaccard"
    needs_positives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (1, 0, 0, 0), (1, 1, 1, 0)


@dataclass(frozen=True)
class AM(LinearFractionalMetric):
    """Mean of the true positive and the true negative rate: balanced accuracy.

    The weighted accuracy with negative weight P and positive weight 1 − P.
    """

    value_range = (0, 1)
    monotone_by_construction = True
    name = "am"
    needs_positives = True
    needs_negatives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (negatives, 0, 0, positives), (negatives, positives, negatives, positives)


@dataclass(frozen=True)
class WeightedAccuracy(LinearFractionalMetric):
    """(w₁ TN + w₂ TP) / (w₁ (FP + TN) + w₂ (TP + FN)): w₁ weighs the negatives, w₂ the positives."""

    value_range = (0, 1)
    monotone_by_construction = True
    negative_weight: float
    positive_weight: float
    name = "weighted_accuracy"

    def __post_init__(self) -> None:
        _with_plain_numbers(self)
        if not _are_weights(self.negative_weight, self.positive_weight):
            raise ValueError(
                "weights must be finite, not negative and not both zero, got "
                f"negative_weight={self.negative_weight}, positive_weight={self.positive_weight}"
            )

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        w1, w2 = self.negative_weight, self.positive_weight
        return (w2, 0, 0, w1), (w2, w1, w2, w1)

    def parameters(self) -> dict[str, Any]:
        return {"negative_weight": self.negative_weight, "positive_weight": self.positive_weight}


@dataclass(frozen=True)
class Tversky(LinearFractionalMetric):
    """TP / (TP + α FP + β FN). Tversky(1, 1) is Jaccard, Tversky(½, ½) is F₁."""

    value_range = (0, 1)
    monotone_by_construction = True
    alpha: float
    beta: float
    name = "tversky"
    needs_positives = True

    def __post_init__(self) -> None:
        _with_plain_numbers(self)
        if not _are_weights(self.alpha, self.beta):
            raise ValueError(
                "alpha and beta must be finite, not negative and not both zero, got "
                f"alpha={self.alpha}, beta={self.beta}"
            )

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (1, 0, 0, 0), (1, self.alpha, self.beta, 0)

    def parameters(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "beta": self.beta}


@dataclass(frozen=True)
class Precision(LinearFractionalMetric):
    """TP / (TP + FP), undefined where nothing is predicted: γ = 0, so no theorem applies."""

    value_range = (0, 1)
    monotone_by_construction = True
    name = "precision"
    needs_positives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (1, 0, 0, 0), (1, 1, 0, 0)


@dataclass(frozen=True)
class Recall(LinearFractionalMetric):
    """TP / (TP + FN), the true positive rate. Alone it is best when everything is predicted."""

    value_range = (0, 1)
    monotone_by_construction = True
    name = "recall"
    needs_positives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (1, 0, 0, 0), (1, 0, 1, 0)


@dataclass(frozen=True)
class Specificity(LinearFractionalMetric):
    """TN / (TN + FP), the true negative rate. Alone it is best when nothing is predicted."""

    value_range = (0, 1)
    monotone_by_construction = True
    name = "specificity"
    needs_negatives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (0, 0, 0, 1), (0, 1, 0, 1)


@dataclass(frozen=True)
class NPV(LinearFractionalMetric):
    """TN / (TN + FN), the negative predictive value; undefined where everything is predicted: γ = 0, no theorem."""

    value_range = (0, 1)
    monotone_by_construction = True
    name = "npv"
    needs_negatives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (0, 0, 0, 1), (0, 0, 1, 1)


@dataclass(frozen=True)
class Youden(LinearFractionalMetric):
    """TPR + TNR − 1, Youden's J (informedness). It has the cut of `AM`, of which it is 2 AM − 1."""

    value_range = (-1, 1)
    monotone_by_construction = True
    name = "youden"
    needs_positives = True
    needs_negatives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (negatives, -positives, -negatives, positives), (negatives, positives, negatives, positives)


@dataclass(frozen=True)
class CohenKappa(LinearFractionalMetric):
    """Agreement beyond chance (Heidke skill): 2 (TP·TN − FP·FN) / ((TP+FP)(FP+TN) + (TP+FN)(FN+TN)).

    Linear-fractional once the class totals are given. It shares its cut with `GilbertSkill`, which is κ / (2 − κ).
    """

    value_range = (-1, 1)
    monotone_by_construction = True
    name = "kappa"
    needs_positives = True
    needs_negatives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (2 * negatives, -2 * positives, 0, 0), (negatives, negatives, positives, positives)


@dataclass(frozen=True)
class GilbertSkill(LinearFractionalMetric):
    """Jaccard beyond chance (equitable threat score): (TP − r) / (TP + FP + FN − r), r = (TP+FN)(TP+FP)/n."""

    value_range = (-1 / 3, 1)
    monotone_by_construction = True
    name = "gilbert"
    needs_positives = True
    needs_negatives = True

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (negatives, -positives, 0, 0), (negatives, negatives, positives + negatives, 0)


@dataclass(frozen=True)
class Utility(LinearFractionalMetric):
    """Mean gain per row: each cell is worth what you say. Costs are negative gains.

    Examples
    --------
    A missed fraud costs 100, a needless call 2:

    >>> cost = Utility(fp=-2, fn=-100)
    >>> cost.evaluate(Confusion(tp=9, fp=10, fn=1, tn=80))
    -1.2
    """

    monotone_by_construction = True
    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0
    name = "utility"

    def __post_init__(self) -> None:
        _with_plain_numbers(self)
        gains = self.parameters()
        if not all(math.isfinite(gain) for gain in gains.values()):
            raise ValueError(f"the worth of each cell must be finite, got {gains}")
        if self.fp > self.tn:
            raise NotMonotoneError(
                f"a false positive must not be worth more than a true negative (costs are negative), got {gains}"
            )
        if self.fn > self.tp:
            raise NotMonotoneError(
                f"a false negative must not be worth more than a true positive (costs are negative), got {gains}"
            )

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return (self.tp, self.fp, self.fn, self.tn), (1, 1, 1, 1)

    def parameters(self) -> dict[str, Any]:
        return {"tp": self.tp, "fp": self.fp, "fn": self.fn, "tn": self.tn}


@dataclass(frozen=True)
class Affine:
    """A coefficient that is linear in the prior: constant + slope · P."""

    constant: float
    slope: float

    def __call__(self, prior: float) -> float:
        return self.constant + self.slope * prior


@dataclass(frozen=True)
class KnownAt:
    """A coefficient of which only the value at one prior is known: all that a file holds of a function."""

    value: float
    prior: float

    def __call__(self, prior: float) -> float:
        if not math.isclose(prior, self.prior, rel_tol=1e-9):
            raise ValueError(
                f"the metric's coefficients are functions of the share of positives, which a file cannot hold: they "
                f"are known at {self.prior:.6g}, and these rows have {prior:.6g}. Take the metric that made the cut"
            )
        return self.value


@dataclass(frozen=True)
class CellRatio(LinearFractionalMetric):
    """A metric of one's own by its cells: weights of (tp, fp, fn, tn) above and below the bar.

    Whole weights, and decimal ones such as 0.1, are counted with exactly: what is 0/0 in the formula is undefined,
    and what is equal in the formula ties.

    >>> npv = CellRatio((0, 0, 0, 1), (0, 0, 1, 1), name="npv")
    >>> npv.evaluate(Confusion(tp=4, fp=1, fn=0, tn=0))
    nan
    """

    numerator: Cells
    denominator: Cells
    name: str = field(default="linear_fractional", kw_only=True)

    def __post_init__(self) -> None:
        for what in ("numerator", "denominator"):
            weights = getattr(self, what)
            if len(weights) != 4 or not all(isinstance(one, Real) and math.isfinite(one) for one in weights):
                raise ValueError(f"the {what} must be four finite weights, of (tp, fp, fn, tn), got {weights}")
            object.__setattr__(self, what, tuple(map(_plain, weights)))

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        return self.numerator, self.denominator

    def parameters(self) -> dict[str, Any]:
        return {"numerator": list(self.numerator), "denominator": list(self.denominator)}


@dataclass(frozen=True)
class LinearFractional(LinearFractionalMetric):
    """A metric of one's own: (a₀ + a₁ FP + a₂ FN) / (b₀ + b₁ FP + b₂ FN), in rates.

    Each coefficient is a number or a function of the prior P. An `Affine` one is saved with a cut; of others a file
    holds the value at the tuning prior. The metric must not increase in FP or FN: that is decided exactly, at the
    corners, when the prior is known.

    Examples
    --------
    The Jaccard index, (P − FN) / (P + FP):

    >>> jaccard = LinearFractional(lambda p: p, 0, -1, lambda p: p, 1, 0, name="my_jaccard")
    >>> round(jaccard.value(fp=0.1, fn=0.1, prior=0.3), 12)
    0.5

    The same in cells:

    >>> jaccard = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(1, 1, 1, 0))
    """

    a0: Coefficient
    a1: Coefficient
    a2: Coefficient
    b0: Coefficient
    b1: Coefficient
    b2: Coefficient
    name: str = field(default="linear_fractional", kw_only=True)

    @classmethod
    def from_cells(
        cls,
        *,
        numerator: tuple[float, float, float, float],
        denominator: tuple[float, float, float, float],
        name: str = "linear_fractional",
    ) -> CellRatio:
        """The metric from its weights of (tp, fp, fn, tn), for people who think in counts."""
        return CellRatio(numerator, denominator, name=name)

    def parameters(self) -> dict[str, Any]:
        """The coefficients; none if one of them is a function that only Python knows."""
        given = {name: getattr(self, name) for name in ("a0", "a1", "a2", "b0", "b1", "b2")}
        if any(callable(one) and not isinstance(one, Affine) for one in given.values()):
            return {}
        return {name: asdict(one) if isinstance(one, Affine) else one for name, one in given.items()}

    def coefficients(self, prior: Any) -> tuple[Triple, Triple]:
        a0, a1, a2, b0, b1, b2 = (plain_number(c) for c in self._at(prior))
        return (a0, a1, a2), (b0, b1, b2)

    def cells(self, positives: Any, negatives: Any) -> tuple[Cells, Cells]:
        prior = positives / (positives + negatives)
        a0, a1, a2, b0, b1, b2 = self._at(prior)
        if self._constant_cells is not None and _agree(self._constant_cells, ((a0, a1, a2), (b0, b1, b2)), prior):
            return self._constant_cells
        return _in_cells((a0, a1, a2), positives, negatives), _in_cells((b0, b1, b2), positives, negatives)

    @cached_property
    def _constant_cells(self) -> tuple[Cells, Cells] | None:
        """The weights of the cells, where they seem not to depend on the prior; None where they do.

        A constant c₀(1 − P) + c₁P is worth c₀ to each negative row and c₁ to each positive one. Such weights are exact
        at every prior at which they give the coefficients; that is looked at where they are used.
        """
        found = []
        for constant, of_fp, of_fn in ((self.a0, self.a1, self.a2), (self.b0, self.b1, self.b2)):
            ends, per_fp, per_fn = _ends_of_line(constant), _ends_of_line(of_fp), _ends_of_line(of_fn)
            if ends is None or per_fp is None or per_fn is None or per_fp[0] != per_fp[1] or per_fn[0] != per_fn[1]:
                return None
            tn, tp = ends
            fp, fn = (
                float(_without_rounding(one[0] + whole, abs(one[0]) + abs(whole)))
                for one, whole in ((per_fp, tn), (per_fn, tp))
            )
            found.append((tp, fp, fn, tn))
        return found[0], found[1]

    def _at(self, prior: Any) -> list[Any]:
        """The six coefficients at a prior, or at an array of priors, which as a rule are all the same."""
        distinct, where = np.unique(np.asarray(prior), return_inverse=True)
        given = (self.a0, self.a1, self.a2, self.b0, self.b1, self.b2)
        return [np.array([c(float(p)) for p in distinct])[where][()] if callable(c) else c for c in given]


@dataclass(frozen=True)
class MCC(Metric):
    """Matthews correlation coefficient, 0 where it is undefined. Not linear-fractional: no theorem."""

    value_range = (-1, 1)
    name = "mcc"
    on_hull = True
    needs_positives = True
    needs_negatives = True

    def evaluate(self, confusion: Confusion) -> Any:
        confusion = confusion.ready_for_products()
        tp, fp, fn, tn = map(_float, (confusion.tp, confusion.fp, confusion.fn, confusion.tn))
        covariance = _without_rounding(tp * tn - fp * fn, tp * tn + fp * fn)
        scale = np.sqrt((tp + fp) * (fn + tn)) * np.sqrt((tp + fn) * (fp + tn))
        return plain_number(np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0))


@dataclass(frozen=True)
class GMean(Metric):
    """Geometric mean √(TPR · TNR). Monotone, so searched exactly; no theorem, since it is not linear-fractional."""

    value_range = (0, 1)
    name = "gmean"
    needs_positives = True
    needs_negatives = True

    def evaluate(self, confusion: Confusion) -> Any:
        sensitivity = _share(confusion.tp, confusion.positives)
        return plain_number(np.sqrt(sensitivity * _share(confusion.tn, confusion.negatives)))


@dataclass(frozen=True)
class HMean(Metric):
    """Harmonic mean 2 TPR · TNR / (TPR + TNR), 0 where both are 0. Monotone, searched exactly; no theorem."""

    value_range = (0, 1)
    name = "hmean"
    needs_positives = True
    needs_negatives = True

    def evaluate(self, confusion: Confusion) -> Any:
        sensitivity = _share(confusion.tp, confusion.positives)
        specificity = _share(confusion.tn, confusion.negatives)
        both = sensitivity + specificity  # NaN where a class is absent, and so is the value
        return plain_number(np.divide(2 * sensitivity * specificity, both, out=np.zeros_like(both), where=both != 0))


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """Any function of a `Confusion`, monotone or not: its cut is found by trying every threshold.

    The function may work on arrays (it is tried) or on single numbers. NaN means undefined, and is never chosen.
    """

    function: Callable[[Confusion], Any]
    name: str = "function"
    extremes_at_corners = False

    def evaluate(self, confusion: Confusion) -> Any:
        shape = np.shape(confusion.tp)
        if shape == ():
            return self._value_of(confusion)
        try:
            with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 is how a function says that it is undefined
                values = np.asarray(self.function(confusion), dtype=float)
        except (TypeError, ValueError, ZeroDivisionError):  # written for numbers: `if`, `max`, `math`
            values = np.asarray(math.nan)
        if values.shape == shape:
            return values
        return np.array([self._value_of(confusion[i]) for i in range(shape[0])])

    def _value_of(self, confusion: Confusion) -> float:
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                return float(self.function(confusion))
        except ZeroDivisionError:
            return math.nan
        except TypeError as error:
            raise TypeError(
                f"the metric {self.name!r} must be a function of one Confusion that returns a number ({error})"
            ) from error


CATALOGUE: dict[str, Callable[[], Metric]] = {
    "accuracy": Accuracy,
    "f1": FBeta,
    "f2": lambda: FBeta(2.0),
    "f0.5": lambda: FBeta(0.5),
    "jaccard": Jaccard,
    "am": AM,
    "precision": Precision,
    "recall": Recall,
    "specificity": Specificity,
    "npv": NPV,
    "youden": Youden,
    "kappa": CohenKappa,
    "gilbert": GilbertSkill,
    "mcc": MCC,
    "gmean": GMean,
    "hmean": HMean,
}
"""Metrics by name; those with parameters of their own are made by their class."""

ALIASES: dict[str, str] = {
    "balanced_accuracy": "am",
    "cohen_kappa": "kappa",
    "heidke": "kappa",
    "gilbert_skill": "gilbert",
    "equitable_threat_score": "gilbert",
    "threat_score": "jaccard",
    "csi": "jaccard",
    "matthews": "mcc",
    "matthews_corrcoef": "mcc",
    "sensitivity": "recall",
    "true_positive_rate": "recall",
    "tpr": "recall",
    "true_negative_rate": "specificity",
    "tnr": "specificity",
    "positive_predictive_value": "precision",
    "ppv": "precision",
    "negative_predictive_value": "npv",
    "youden_j": "youden",
    "informedness": "youden",
    "g_mean": "gmean",
    "h_mean": "hmean",
}

WITH_PARAMETERS: dict[str, type[Metric]] = {
    "fbeta": FBeta,
    "weighted_accuracy": WeightedAccuracy,
    "tversky": Tversky,
    "utility": Utility,
}
"""Metrics that a name alone does not determine."""


def get_metric(metric: str | Metric | Callable[..., Any]) -> Metric:
    """The metric behind a name, a scikit-learn scorer, or a function of a `Confusion`.

    A metric with parameters is written as its call: by position, by name, or both.

    Examples
    --------
    >>> get_metric("f2")
    FBeta(beta=2.0)
    >>> get_metric("utility(fp=-2, fn=-100)")
    Utility(tp=0.0, fp=-2.0, fn=-100.0, tn=0.0)
    >>> get_metric("balanced_accuracy")
    AM()
    >>> get_metric("jacard")
    Traceback (most recent call last):
        ...
    ValueError: unknown metric 'jacard': did you mean 'jaccard'? ...
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _by_name(metric)
    if isinstance(metric, type) and issubclass(metric, Metric):
        raise TypeError(f"expected a metric, got the class {metric.__name__}: write {metric.__name__}(...)")
    if callable(metric):
        unwrapped = _sklearn_names.unwrap(metric)
        if unwrapped is None:
            return FunctionMetric(metric, name=getattr(metric, "__name__", "function").strip("<>"))
        name, parameters = unwrapped
        return FBeta(**parameters) if parameters else _by_name(name)
    raise TypeError(f"expected a metric, its name, a scorer or a function of a Confusion, got {metric!r}")


@lru_cache(maxsize=256)
def _by_name(name: str) -> Metric:
    if call := re.fullmatch(r"([^()]*)\(([^()]*)\)", name.strip()):
        return _called(name, plain_name(call.group(1)), call.group(2))
    if name.count("(") != name.count(")"):
        raise ValueError(f"{name!r} has a bracket that is not closed, or not opened: write 'utility(fp=-2, fn=-100)'")
    plain = plain_name(name)
    plain = ALIASES.get(plain, plain)
    if plain in CATALOGUE:
        return CATALOGUE[plain]()
    if match := re.fullmatch(r"f_?(?:beta_?)?(\d+(?:\.\d+)?)", plain):
        return _called(name, "fbeta", match.group(1))
    if plain in WITH_PARAMETERS:
        named = ", ".join(f"{parameter}=…" for parameter in signature(WITH_PARAMETERS[plain]).parameters)
        raise ValueError(f"{name!r} has parameters: write '{plain}({named})'")
    if reason := _sklearn_names.refusal(plain):
        raise ValueError(reason)
    if plain.endswith("score") and (shorter := plain.removesuffix("score").removesuffix("_")):
        return _by_name(shorter)
    known = [*CATALOGUE, *ALIASES, *WITH_PARAMETERS]
    spellings = {name: name for name in known} | {f"{name}_score": name for name in CATALOGUE}
    nearest = [spellings[near] for near in difflib.get_close_matches(plain, spellings, n=1, cutoff=0.5)]
    hint = f": did you mean {nearest[0]!r}?" if nearest else "."
    raise ValueError(f"unknown metric {name!r}{hint} The names are {', '.join(CATALOGUE)}, and f<beta> such as f1.5")


def _called(text: str, name: str, listed: str) -> Metric:
    """A metric with parameters, from the text of its call."""
    if name not in WITH_PARAMETERS:
        raise ValueError(
            f"cannot make the metric {text!r}: those with parameters are {', '.join(WITH_PARAMETERS)}, the others are "
            "names alone"
        )
    given: list[float] = []
    named: dict[str, float] = {}
    try:
        for part in filter(None, map(str.strip, listed.split(","))):
            parameter, equals, number = part.rpartition("=")
            value = _parameter(number, part)
            if not equals and named:
                raise ValueError(f"{part!r} stands after a parameter with a name: give it one, too")
            if parameter.strip() in named:
                raise ValueError(f"{parameter.strip()!r} is given twice")
            if equals:
                named[parameter.strip()] = value
            else:
                given.append(value)
        bound = signature(WITH_PARAMETERS[name]).bind(*given, **named)  # its errors speak of parameters, not of Python
        return WITH_PARAMETERS[name](*bound.args, **bound.kwargs)
    except (TypeError, ValueError) as error:
        expected = ", ".join(signature(WITH_PARAMETERS[name]).parameters)
        raise ValueError(f"cannot make the metric {text!r}: {error} (its parameters are {expected})") from None


def _parameter(number: str, part: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise ValueError(f"expected a number or name=number, got {part!r}") from None


def _largest_rate(start: Any, slope: Any, bottom: Any, bottom_slope: Any, length: Any) -> Any:
    """The largest value of (start + slope·x) / (bottom + bottom_slope·x)² for 0 ≤ x ≤ length."""
    start, slope, bottom, bottom_slope, length = (_float(one) for one in (start, slope, bottom, bottom_slope, length))
    with np.errstate(invalid="ignore", divide="ignore"):
        level = (slope * bottom - 2 * bottom_slope * start) / (bottom_slope * slope)
    level = np.clip(np.where(np.isfinite(level), level, 0.0), 0.0, length)
    rates = [(start + slope * x) / (bottom + bottom_slope * x) ** 2 for x in (0.0, level, length)]
    return np.maximum.reduce(np.broadcast_arrays(*rates))


def _dot(weights: Cells, confusion: Confusion) -> Any:
    """Weighted sum of the cells; absent cells are not added, so that 0 · inf never arises.

    Where terms of both signs cancel up to rounding, the sum is 0: such a remainder must neither be taken for a value
    nor be divided by.
    """
    terms = [
        weight * np.asarray(cell)
        for weight, cell in zip(weights, (confusion.tp, confusion.fp, confusion.fn, confusion.tn), strict=True)
        if isinstance(weight, np.ndarray) or weight != 0
    ]
    if not terms:
        return np.zeros(np.shape(confusion.tp))
    total = sum(terms[1:], np.asarray(terms[0], dtype=float))
    rounded = len(terms) > 1 and any(term.dtype.kind == "f" for term in terms)
    if rounded and any((weight < 0).any() if isinstance(weight, np.ndarray) else weight < 0 for weight in weights):
        return _without_rounding(total, sum(map(np.abs, terms)))
    return total


def _in_accepted(numerator: Cells, denominator: Cells, positives: Any, negatives: Any) -> WholeRatio | None:
    """A ratio of the cells in (1, TP, FP): FN = P − TP, TN = N − FP. None unless all of it is in whole numbers."""
    if not (_is_whole(positives) and _is_whole(negatives)):
        return None
    most = _largest(positives + negatives)
    if most >= LARGE:
        return None
    lines = []
    for weights in (numerator, denominator):
        size = _size_of_whole(*weights) if type(positives) is int else _sizes_of_whole(weights)
        if size is None or size * most >= 2**62:
            return None
        tp, fp, fn, tn = weights
        lines.append((fn * positives + tn * negatives, tp - fn, fp - tn))
    return WholeRatio(*lines)


@lru_cache(maxsize=1024, typed=True)  # 1.0 is no whole number
def _size_of_whole(*weights: Any) -> int | None:
    """The sum of the sizes of some weights; None unless all are whole numbers."""
    return _sizes_of_whole(weights)


def _sizes_of_whole(weights: Cells) -> int | None:
    """The same of weights that may be arrays, with the largest size of each."""
    return sum(map(_largest, weights)) if all(map(_is_whole, weights)) else None


def _is_whole(weight: Any) -> bool:
    return type(weight) is int or getattr(weight, "dtype", FLOAT).kind == "i"


def _largest(weight: Any) -> int:
    return abs(weight) if type(weight) is int else int(np.max(np.abs(weight), initial=0))


def _along(line: Triple, tp: Any, fp: Any) -> Any:
    """Constant + a TP + b FP; terms whose coefficient is 0 are left out."""
    constant, of_tp, of_fp = line
    terms = [
        cell if type(weight) is int and weight == 1 else weight * cell
        for weight, cell in ((of_tp, tp), (of_fp, fp))
        if not (type(weight) is int and weight == 0)
    ]
    if not terms:
        return np.broadcast_to(constant, np.shape(tp))
    total = terms[0] if len(terms) == 1 else terms[0] + terms[1]
    return total if type(constant) is int and constant == 0 else total + constant


def _without_rounding(difference: Any, size: Any) -> Any:
    """A difference of numbers of some size; 0 where it is no more than their rounding."""
    return np.where(np.abs(difference) <= NOISE * size, 0.0, difference)


def _in_whole_numbers(numerator: Cells, denominator: Cells) -> tuple[Cells, Cells]:
    """Both functions times one power of ten that makes their weights whole, if a small one does: 0.1 means 1/10.

    >>> _in_whole_numbers((0.1, -0.3, 0, 0), (1, 1, 1, 1))
    ((1, -3, 0, 0), (10, 10, 10, 10))
    """
    weights = (*numerator, *denominator)
    types = set(map(type, weights))
    if types <= PLAIN_NUMBERS and (float in types or max(weights) >= LARGE or min(weights) <= -LARGE):
        return _scaled(weights)
    return numerator, denominator


@lru_cache(maxsize=256)
def _scaled(weights: tuple[float, ...]) -> tuple[Cells, Cells]:
    for digits in range(DIGITS + 1):
        whole = [round(weight * 10**digits) for weight in weights]
        if max(map(abs, whole)) >= LARGE:
            break
        if all(one / 10**digits == weight for one, weight in zip(whole, weights, strict=True)):
            return _halves(whole)
    largest = math.frexp(max(map(abs, weights)))[1]  # sums of counts times weights must be floats
    return _halves([math.ldexp(weight, -largest) for weight in weights])


def _halves(weights: Sequence[float]) -> tuple[Cells, Cells]:
    tp, fp, fn, tn, *others = weights
    return (tp, fp, fn, tn), tuple(others)  # type: ignore[return-value]  # four others


def _share(part: Any, whole: Any) -> Any:
    """A part of a whole; NaN where there is none."""
    part, whole = _float(part), _float(whole)
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def _in_fp_fn(weights: Cells, prior: Any) -> Triple:
    """Rewrite a linear function of the cells in (1, FP, FN): TP = P − FN, TN = 1 − P − FP."""
    tp, fp, fn, tn = weights
    return plain_number(tp * prior + tn * (1 - prior)), plain_number(fp - tn), plain_number(fn - tp)


def _ends_of_line(coefficient: Coefficient) -> tuple[float, float] | None:
    """The values of a coefficient at the priors 0 and 1, if it is linear between them; None if it is not."""
    if not callable(coefficient):
        return float(coefficient), float(coefficient)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            start, end, *between = (float(coefficient(prior)) for prior in (0.0, 1.0, *LINE))
    except Exception:  # a function of one's own that need not be defined there
        return None
    size = abs(start) + abs(end)
    line = [start * (1 - prior) + end * prior for prior in LINE]
    straight = all(abs(one - other) <= NOISE * size for one, other in zip(between, line, strict=True))
    return (start, end) if math.isfinite(size) and straight else None


def _agree(cells: tuple[Cells, Cells], coefficients: tuple[Triple, Triple], prior: Any) -> bool:
    """Whether weights of cells give some coefficients at every prior, up to rounding."""
    for weights, given in zip(cells, coefficients, strict=True):
        size = sum(map(abs, weights))
        for one, other in zip(_in_fp_fn(weights, prior), given, strict=True):
            if not np.all(np.abs(one - np.asarray(other)) <= NOISE * size):
                return False
    return True


def _in_cells(coefficients: Triple, positives: Any, negatives: Any) -> Cells:
    """Rewrite a linear function of (1, FP, FN) in the cells, without a difference of near-equal numbers.

    The constant can be charged to the positives (TP + FN = P) or to the negatives (FP + TN = 1 − P). Charging the
    positives just enough that none of their two weights is negative leaves none negative at all, provided that the
    function is not negative on the box: 1 − FN, say, becomes TP, not a large sum that cancels.
    """
    constant, of_fp, of_fn = (np.asarray(one, dtype=float) for one in coefficients)
    total = positives + negatives
    tp = np.maximum(0.0, -of_fn)
    charged = tp * (positives / total)
    size = np.abs(constant) + charged + np.abs(of_fp) + np.abs(of_fn)
    with np.errstate(invalid="ignore", divide="ignore"):
        per_negative = np.where(negatives == 0, 0.0, total / negatives)
    tn = _without_rounding(constant - charged, size) * per_negative
    fp = _without_rounding(tn + of_fp, size * np.maximum(per_negative, 1.0))
    tp = np.where(negatives == 0, constant, tp)
    return tp[()], fp[()], (tp + of_fn)[()], tn[()]


def _plain(number: Any) -> int | float:
    """A number as Python has it: NumPy's and fractions are neither saved nor counted with as they are."""
    return int(number) if isinstance(number, Integral) and abs(int(number)) < LARGE else float(number)


def _as_plain(weights: Cells) -> Cells:
    """Weights as `_plain` has them, and arrays of them in 64 bits; most are plain already."""
    if PLAIN_NUMBERS.issuperset(map(type, weights)):
        return weights
    tp, fp, fn, tn = (
        weight if type(weight) in (int, float) else _plain(weight) if np.ndim(weight) == 0 else _in_64_bits(weight)
        for weight in weights
    )
    return tp, fp, fn, tn


def _in_64_bits(weights: Any) -> Any:
    return np.asarray(weights, dtype=np.int64 if np.asarray(weights).dtype.kind in "bi" else np.float64)


def _with_plain_numbers(metric: Metric) -> None:
    for name, value in metric.parameters().items():
        if isinstance(value, Real) and math.isfinite(value):
            object.__setattr__(metric, name, _plain(value))


def _are_weights(*weights: float) -> bool:
    return all(0 <= weight < math.inf for weight in weights) and sum(weights) > 0


def _first(prior: Any, where: Any) -> float:
    """The first prior at which something holds, for a message."""
    return float(np.broadcast_to(prior, np.shape(where))[np.asarray(where)].flat[0])


def _float(values: Any) -> Any:
    return np.asarray(values, dtype=float)
