"""Ridge-regularised linear models of many labels: the objective, its coordinates, and the turns that labels take.

For each label, with y ∈ {−1, 1} and weights cᵢ: ½‖w‖² + C Σᵢ cᵢ ℓ(yᵢ, w·xᵢ + b).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_info, threadpool_limits

from surecut.linear.descent import minimise
from surecut.losses import CompositeLoss, NoLinkError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEW = 8
"""Labels for which a thread of their own pays."""
TILE = 2**15
"""Scores whose losses are computed at once, so that they stay in the cache."""
WORTH_ROTATING = 100
"""Features squared for each row of each label, up to which the eigenvectors cost less than they save."""
FEW_COORDINATES = 1000
"""Up to this many, labels that are slow to converge use their own second derivatives."""
UNEVEN = 1e6
"""The ratio of the features' scales beyond which a rotation would drown the small ones in rounding."""
DENSE_ENOUGH = 0.25
"""The share of non-zeros from which a sparse matrix is no smaller than a dense one."""


@dataclass(frozen=True)
class LinearModels:
    """Coefficients (m, d), intercepts (m,), the steps it took, and the decrease that the next step promised.

    A promise is a share of the objective.
    """

    coefficients: Array
    intercepts: Array
    iterations: NDArray[np.int64]
    promises: Array


def train(
    loss: CompositeLoss,
    X: Any,
    positive: Any,
    weights: Array,
    *,
    C: float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
) -> LinearModels:
    """Train a model for each column of `positive`, a boolean matrix, dense or sparse by columns.

    Blocks of labels take turns on as many threads as BLAS may use.
    """
    labels = positive.shape[1]
    design = make_design(X, C * weights, fit_intercept=fit_intercept, labels=labels)
    models = LinearModels(
        np.zeros((labels, X.shape[1])), np.zeros(labels), np.zeros(labels, dtype=np.int64), np.zeros(labels)
    )

    def solve(block: slice) -> None:
        truth = positive[:, block]
        truth = truth.toarray() if hasattr(truth, "toarray") else truth
        varies = np.ones(truth.shape[1], dtype=bool)
        if fit_intercept:
            never, always = ~truth.any(axis=0), truth.all(axis=0)
            models.intercepts[block][never] = constant_score(loss, False, weights.sum())
            models.intercepts[block][always] = constant_score(loss, True, weights.sum())
            varies = ~(never | always)
        if not varies.any():
            return
        chosen = np.arange(labels)[block][varies]
        objective = PenalizedRisk(loss, design, np.compress(varies, truth, axis=1), C * weights)
        minima = minimise(objective, *objective.start(), tol=tol, max_iter=max_iter)
        models.coefficients[chosen], models.intercepts[chosen] = design.undo(minima.columns)
        models.iterations[chosen], models.promises[chosen] = minima.iterations, minima.promises

    _share_out(solve, labels, design.block)
    return models


def constant_score(loss: CompositeLoss, positive: bool, rows: float) -> float:
    """The score of a label that always, or never, occurs: the best one, if it is finite.

    Otherwise the score of the probability (k + ½)/(n + 1), k = 0 or n. Without a link: −1 or 1.
    """
    score = link_or_none(loss, float(positive))
    if score is None:
        return 1.0 if positive else -1.0
    if np.isfinite(score):
        return score
    return float(loss.link((rows * positive + 0.5) / (rows + 1)))


def link_or_none(loss: CompositeLoss, probability: float) -> float | None:
    """The score that stands for a probability, if the loss has a link."""
    try:
        with np.errstate(divide="ignore"):
            return float(loss.link(probability))
    except NoLinkError:
        return None


def require_smooth_convex(loss: CompositeLoss) -> None:
    """Raise, with the reason, unless the loss can be minimised by descent; looked up on |f| ≤ 8."""
    scores = np.linspace(-8.0, 8.0, 400)  # an even number: 0, ±1 and other likely kinks are inside, not at the ends
    for sign in (1, -1):
        try:
            slopes = np.asarray(loss.gradient(sign, scores), dtype=float)
        except NotImplementedError as error:
            raise ValueError(f"{loss!r} cannot train: {error}") from None
        rises, width = np.diff(np.asarray(loss.value(sign, scores), dtype=float)), np.diff(scores)
        slack = 1e-9 * np.abs(slopes).max()
        falling = np.diff(slopes) < -slack
        if falling.any():
            raise ValueError(
                f"{loss!r} cannot train: it is not convex (for y = {sign} its slope falls near "
                f"f = {scores[falling.argmax()]:.3g}), and descent would find just any valley of it"
            )
        if not ((rises >= slopes[:-1] * width - slack) & (rises <= slopes[1:] * width + slack)).all():
            raise ValueError(f"{loss!r} cannot train: its gradient is not the derivative of its value for y = {sign}")
        jump, place = _largest_jump(loss, sign, scores, slopes)
        if jump > 1e-6 * np.abs(slopes).max():
            raise ValueError(
                f"{loss!r} cannot train: it is not differentiable (for y = {sign} its slope jumps by {jump:.3g} near "
                f"f = {place:.3g}). Take a smooth loss, such as 'squared_hinge' for the hinge"
            )


def _largest_jump(loss: CompositeLoss, sign: int, scores: Array, slopes: Array) -> tuple[float, float]:
    """What is left of the rise of a slope when intervals are halved, again and again, on the side that rises more."""
    low, high, below, above = scores[:-1], scores[1:], slopes[:-1], slopes[1:]
    for _ in range(40):
        middle = (low + high) / 2
        between = np.asarray(loss.gradient(sign, middle), dtype=float)
        upper = above - between > between - below
        low, below = np.where(upper, middle, low), np.where(upper, between, below)
        high, above = np.where(upper, high, middle), np.where(upper, above, between)
    largest = int((above - below).argmax())
    return float((above - below)[largest]), float(low[largest])


# --- The objective ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PenalizedRisk:
    """The objectives of some labels, in the coordinates of a design."""

    loss: CompositeLoss
    design: Design
    truth: NDArray[np.bool_]
    weights: Array

    def evaluate(self, columns: Array) -> tuple[Array, Array]:
        scores = self.design.scores(columns)
        values = np.zeros(columns.shape[1])
        height = max(1, TILE // columns.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # too far is found by the line search
            for start in range(0, len(scores), height):
                tile = slice(start, start + height)
                losses, slopes = self.loss.value_and_gradient(self.truth[tile], scores[tile])
                values += self.weights[tile] @ losses
                np.multiply(slopes, self.weights[tile, None], out=scores[tile])
            slope = self.design.adjoint(scores)
            penalised = self.design.penalty[:, None] * columns
            return values + np.einsum("ij,ij->j", penalised, columns) / 2, slope + penalised

    def second_derivatives(self, columns: Array) -> Iterable[Array] | None:
        if len(columns) > FEW_COORDINATES:
            return None
        scores, width = self.design.scores(columns), 1e-4
        with np.errstate(over="ignore", invalid="ignore"):
            rise = self.loss.gradient(self.truth, scores + width) - self.loss.gradient(self.truth, scores - width)
        curvature = np.maximum(rise / (2 * width), 0.0) * self.weights[:, None]
        return (self.design.gram(weights) + np.diag(self.design.penalty) for weights in curvature.T)

    def take(self, chosen: NDArray[np.bool_]) -> PenalizedRisk:
        return replace(self, truth=np.compress(chosen, self.truth, axis=1))

    def start(self) -> tuple[Array, Array]:
        """The best constant scores, and the curvature there: that of the mean loss, which every row shares."""
        rates = self.weights @ self.truth / self.weights.sum()
        scores = np.zeros(len(rates))
        columns = np.zeros((len(self.design.penalty), len(rates)))
        if not self.design.penalty[-1] and link_or_none(self.loss, 0.5) is not None:
            columns[-1] = scores = np.asarray(self.loss.link(rates), dtype=float)

        def mean_slope(moved: Array) -> Array:
            return np.asarray(rates * self.loss.gradient(1, moved) + (1 - rates) * self.loss.gradient(-1, moved))

        # The secant over a step of ±½ wants no second derivative, and sees across an edge nearby.
        curvature = np.maximum(mean_slope(scores + 0.5) - mean_slope(scores - 0.5), 1e-6)
        return columns, self.design.squares[:, None] * curvature + self.design.penalty[:, None]


# --- The coordinates -------------------------------------------------------------------------------------------------


class Design(Protocol):
    """The features in coordinates of one's own, the intercept last if there is one.

    `block` is how many labels are solved together, at most: enough for matrix products, few enough for the caches.
    `penalty` is 1 for coordinates that are penalised and 0 for the intercept; `squares` are the weighted sums of
    squares of the coordinates.
    """

    block: int
    penalty: Array
    squares: Array

    def scores(self, columns: Array) -> Array:
        """One row per row of the data, one column per label; the caller may overwrite it."""

    def adjoint(self, residuals: Array) -> Array:
        """The transposed map."""

    def gram(self, weights: Array) -> Array:
        """The weighted sums of the products of coordinates."""

    def undo(self, columns: Array) -> tuple[Array, Array]:
        """Coefficients (m, d) and intercepts (m,) of the features as they came."""


def make_design(X: Any, weights: Array, *, fit_intercept: bool, labels: int) -> Design:
    """Dense features are centred, and rotated where it pays; sparse ones stay as they are."""
    if hasattr(X, "toarray"):
        if X.nnz < DENSE_ENOUGH * X.shape[0] * X.shape[1]:
            return SparseDesign(X.astype(np.float64), weights, fit_intercept)
        X = X.toarray()
    return DenseDesign(np.asarray(X, dtype=np.float64), weights, fit_intercept, labels)


class SparseDesign:
    """Sparse features as they are."""

    block = 32

    def __init__(self, X: Any, weights: Array, fit_intercept: bool) -> None:
        self._matrix = X
        self._transposed = X.T
        self._fit_intercept = fit_intercept
        self.squares = _finite(X.multiply(X).T @ weights)
        self.penalty = np.ones(X.shape[1])
        if fit_intercept:
            self.squares = np.append(self.squares, weights.sum())
            self.penalty = np.append(self.penalty, 0.0)

    def scores(self, columns: Array) -> Array:
        if not self._fit_intercept:
            return np.asarray(self._matrix @ columns)
        scores = np.asarray(self._matrix @ columns[:-1])
        scores += columns[-1]
        return scores

    def adjoint(self, residuals: Array) -> Array:
        adjoint = np.asarray(self._transposed @ residuals)
        return np.vstack((adjoint, residuals.sum(axis=0))) if self._fit_intercept else adjoint

    def gram(self, weights: Array) -> Array:
        gram = (self._transposed @ self._matrix.multiply(weights[:, None])).toarray()
        if not self._fit_intercept:
            return np.asarray(gram)
        border = self._transposed @ weights
        return np.block([[gram, border[:, None]], [border, weights.sum()]])

    def undo(self, columns: Array) -> tuple[Array, Array]:
        if not self._fit_intercept:
            return columns.T, np.zeros(columns.shape[1])
        return columns[:-1].T, columns[-1]


class DenseDesign:
    """Dense features, centred if there is an intercept, and rotated by the eigenvectors of their Gram matrix.

    Then the second derivative where all scores are equal is diagonal. With very many features for the rows and labels
    there are, or features of very different scales, they are not rotated.
    """

    block = 64

    def __init__(self, X: Array, weights: Array, fit_intercept: bool, labels: int) -> None:
        features = X.shape[1]
        self._fit_intercept = fit_intercept
        self._means = weights @ X / weights.sum() if fit_intercept else np.zeros(features)
        self._matrix = np.ones((len(X), features + fit_intercept))
        self._matrix[:, :features] = X - self._means
        self.penalty = np.ones(features)
        centred = self._matrix[:, :features]
        self.squares = _finite(np.einsum("ij,ij,i->j", centred, centred, weights))
        self._rotation = None
        if features**2 <= WORTH_ROTATING * len(X) * labels and _even(self.squares):
            self.squares, self._rotation = linalg.eigh((centred * weights[:, None]).T @ centred)
            self._matrix[:, :features] = centred @ self._rotation
            self.squares = np.maximum(self.squares, 0.0)
        if fit_intercept:
            self.squares = np.append(self.squares, weights.sum())
            self.penalty = np.append(self.penalty, 0.0)

    def scores(self, columns: Array) -> Array:
        return self._matrix @ columns

    def adjoint(self, residuals: Array) -> Array:
        return self._matrix.T @ residuals

    def gram(self, weights: Array) -> Array:
        scaled = self._matrix * np.sqrt(weights)[:, None]
        return np.asarray(scaled.T @ scaled)

    def undo(self, columns: Array) -> tuple[Array, Array]:
        turned = columns[: len(self._means)]
        coefficients = (turned if self._rotation is None else self._rotation @ turned).T
        shift = columns[-1] if self._fit_intercept else np.zeros(columns.shape[1])
        return coefficients, shift - coefficients @ self._means


def _finite(squares: Array) -> Array:
    if not np.isfinite(squares).all():
        raise ValueError("the squares of the features overflow: scale them, for example by StandardScaler")
    return squares


def _even(squares: Array) -> bool:
    present = squares[squares > 0]
    return len(present) == 0 or bool(present.max() <= UNEVEN**2 * present.min())


# --- Turns -----------------------------------------------------------------------------------------------------------


def _share_out(solve: Callable[[slice], None], labels: int, block: int) -> None:
    """Solve labels in blocks of equal size, on as many threads as BLAS may use, which then uses one."""
    threads = max((library["num_threads"] for library in threadpool_info()), default=1)
    turns = max(-(-labels // block), min(threads, labels // FEW))
    if turns > threads:
        turns = -(-turns // threads) * threads
    edges = np.linspace(0, labels, turns + 1).astype(int)
    blocks = [slice(int(start), int(stop)) for start, stop in pairwise(edges)]
    if threads == 1 or turns == 1:
        _exhaust(map(solve, blocks))
        return
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        _exhaust(pool.map(solve, blocks))


def _exhaust(results: Iterable[None]) -> None:
    for _ in results:
        pass
