"""Many smooth convex functions, minimised together.

Each column of a matrix is the argument of a function of its own. They share matrix products, which is where the time
goes, and nothing else: every column has its own quasi-Newton model (limited-memory BFGS), its own step length, and
leaves when it has arrived. The few for which that is slow go on with their own second derivatives, if they have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MEMORY = 20
"""Pairs of steps and changes of slope that the model of a column is made of."""
PATIENCE = 40
"""Steps after which second derivatives are asked for, and then every so often."""
REFRESH = 4
"""Steps for which second derivatives are kept."""
SUFFICIENT = 1e-4
"""The share of the decrease promised by the slope that a step must keep."""
SHORTEST = 2.0**-60
"""Step lengths below this change nothing."""
ROUNDING = 1e-13
"""Relative differences of function values that cannot be told from rounding."""


class Functions(Protocol):
    """Functions of one column each."""

    def evaluate(self, columns: Array) -> tuple[Array, Array]:
        """The values, (m,), and the slopes, of the shape of `columns`. A value may be infinite or NaN: too far."""

    def second_derivatives(self, columns: Array) -> Iterable[Array] | None:
        """A symmetric matrix per column, ours to change; None where they would cost more than they save."""

    def take(self, chosen: NDArray[np.bool_]) -> Self:
        """Some of the functions."""


@dataclass(frozen=True)
class Minima:
    """Where the search ended.

    Attributes
    ----------
    columns
        The arguments.
    iterations
        Steps of each column.
    promises
        The decrease that the next step of each column promised, relative to its value.
    """

    columns: Array
    iterations: NDArray[np.int64]
    promises: Array


def minimise(functions: Functions, start: Array, curvature: Array, *, tol: float, max_iter: int) -> Minima:
    """Descend from `start` until the next step of a column promises at most `tol` of its value.

    Parameters
    ----------
    functions
        Convex functions with continuous slopes.
    start
        Arguments at which all values are finite.
    curvature
        Second derivatives along the coordinates, of the shape of `start`, positive; the better they are the faster.
    tol, max_iter
        When a column leaves: for the promise, and for the steps.
    """
    tol = max(tol, ROUNDING)
    minima = Minima(start.copy(), np.zeros(start.shape[1], dtype=np.int64), np.zeros(start.shape[1]))
    places = np.arange(start.shape[1])
    model = _Model(_Diagonal(curvature))
    here = _Point(start, *functions.evaluate(start))
    stuck = np.zeros(len(places), dtype=bool)
    for iteration in range(max_iter + 1):
        if iteration >= PATIENCE and (iteration - PATIENCE) % REFRESH == 0:
            model = _refreshed(model, functions, here)
        direction = -model.solve(here.slopes)
        descent = _dot(direction, here.slopes)
        if iteration == max_iter:
            leaves = np.ones(len(places), dtype=bool)
        elif iteration == 0:
            leaves = stuck  # the first model has seen one point only: nobody trusts its promise
        else:
            leaves = stuck | (-descent / 2 <= tol * np.abs(here.values))
        if leaves.any():
            left = places[leaves]
            minima.columns[:, left] = here.columns[:, leaves]
            minima.iterations[left] = iteration
            minima.promises[left] = _relative(-descent[leaves] / 2, here.values[leaves])
            stays = ~leaves
            if not stays.any():
                break
            places, functions, model, here = places[stays], functions.take(stays), model.take(stays), here.take(stays)
            direction, descent = _chosen(direction, stays), descent[stays]
        there = _step(functions, here, direction, descent)
        steps = there.columns - here.columns
        stuck = np.asarray(~steps.any(axis=0))
        model.learn(steps, there.slopes - here.slopes)
        here = there
    return minima


@dataclass(frozen=True)
class _Point:
    """Arguments, with the values and slopes there."""

    columns: Array
    values: Array
    slopes: Array

    def take(self, chosen: NDArray[np.bool_]) -> _Point:
        return _Point(_chosen(self.columns, chosen), self.values[chosen], _chosen(self.slopes, chosen))

    def replace(self, chosen: NDArray[np.bool_], other: _Point) -> None:
        self.columns[:, chosen] = other.columns
        self.values[chosen] = other.values
        self.slopes[:, chosen] = other.slopes


@dataclass(frozen=True)
class _Diagonal:
    """Second derivatives along the coordinates."""

    curvature: Array

    def solve(self, slopes: Array) -> Array:
        return slopes / self.curvature

    def take(self, chosen: NDArray[np.bool_]) -> _Diagonal:
        return _Diagonal(_chosen(self.curvature, chosen))


@dataclass(frozen=True)
class _Factors:
    """Cholesky factors of second derivatives, one per column."""

    factors: list[Array]

    def solve(self, slopes: Array) -> Array:
        columns = zip(self.factors, slopes.T, strict=True)
        return np.column_stack([linalg.cho_solve((factor, True), column) for factor, column in columns])

    def take(self, chosen: NDArray[np.bool_]) -> _Factors:
        return _Factors([factor for factor, is_chosen in zip(self.factors, chosen, strict=True) if is_chosen])


@dataclass(frozen=True)
class _Model:
    """Limited-memory BFGS for each column, around what is known of the second derivative."""

    known: _Diagonal | _Factors
    pairs: list[tuple[Array, Array, Array]] = field(default_factory=list)
    """Steps, changes of slope, and the inverse of their products; 0 where a pair says nothing."""

    def solve(self, slopes: Array) -> Array:
        """The inverse of the modelled second derivative, times the slopes."""
        result = slopes.copy()
        shares = []
        for step, change, inverse in reversed(self.pairs):
            share = inverse * _dot(step, result)
            result -= share * change
            shares.append(share)
        result = self.known.solve(result)
        for (step, change, inverse), share in zip(self.pairs, reversed(shares), strict=True):
            result += (share - inverse * _dot(change, result)) * step
        return result

    def learn(self, step: Array, change: Array) -> None:
        product = _dot(step, change)
        # A function that is flat, or only rounding, along the step has nothing to teach.
        speaks = product > ROUNDING * np.sqrt(_dot(step, step) * _dot(change, change))
        self.pairs.append((step, change, np.divide(1.0, product, out=np.zeros_like(product), where=speaks)))
        del self.pairs[:-MEMORY]

    def take(self, chosen: NDArray[np.bool_]) -> _Model:
        pairs = [
            (_chosen(step, chosen), _chosen(change, chosen), inverse[chosen]) for step, change, inverse in self.pairs
        ]
        return _Model(self.known.take(chosen), pairs)


def _refreshed(model: _Model, functions: Functions, here: _Point) -> _Model:
    """A model around the second derivatives where we are; the old one if there are none, or they are not positive."""
    matrices = functions.second_derivatives(here.columns)
    if matrices is None:
        return model
    try:
        return _Model(_Factors([_factor(matrix) for matrix in matrices]))
    except linalg.LinAlgError:
        return model


def _factor(matrix: Array) -> Array:
    diagonal = np.einsum("ii->i", matrix)
    diagonal += ROUNDING * diagonal.max()
    return np.asarray(linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False))


def _step(functions: Functions, here: _Point, direction: Array, descent: Array) -> _Point:
    """The full step, shortened in each column until it descends; a column that cannot descend stays."""
    there = _evaluated(functions, here.columns + direction)
    length = np.ones(len(descent))
    while True:
        promised = here.values + SUFFICIENT * length * descent + ROUNDING * np.abs(here.values)
        short = ~(there.values <= promised)  # NaN is too far as well
        if not short.any():
            return there
        length[short] *= _shortening(here.values, there.values, length * descent)[short]
        hopeless = short & (length < SHORTEST)
        there.replace(hopeless, here.take(hopeless))
        short &= ~hopeless
        if not short.any():
            return there
        columns = _chosen(here.columns, short) + length[short] * _chosen(direction, short)
        there.replace(short, _evaluated(functions.take(short), columns))


def _evaluated(functions: Functions, columns: Array) -> _Point:
    return _Point(columns, *functions.evaluate(columns))


def _shortening(values: Array, beyond: Array, descent: Array) -> Array:
    """By how much to shorten a step: to the minimum of the parabola that was seen, within reason."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        parabola = -descent / (2 * (beyond - values - descent))
    return np.where(np.isfinite(beyond), np.clip(parabola, 0.1, 0.5), 0.1)


def _chosen(matrix: Array, columns: NDArray[np.bool_]) -> Array:
    return np.compress(columns, matrix, axis=1)  # indexing would give it column by column, which slows the products


def _dot(left: Array, right: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->j", left, right))


def _relative(differences: Array, values: Array) -> Array:
    return np.asarray(differences / np.maximum(np.abs(values), np.finfo(float).tiny))
