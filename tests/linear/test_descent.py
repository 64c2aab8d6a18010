"""The batched quasi-Newton method, on functions whose minima are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from surecut.linear.descent import minimise


@dataclass
class Bowls:
    """Σⱼ aⱼ(xⱼ − cⱼ)²/2 + depth, one column each."""

    stiffness: np.ndarray
    centres: np.ndarray
    depths: np.ndarray

    def evaluate(self, columns):
        moved = columns - self.centres
        return (self.stiffness * moved**2).sum(axis=0) / 2 + self.depths, self.stiffness * moved

    def second_derivatives(self, columns):
        return None

    def take(self, chosen):
        return Bowls(self.stiffness[:, chosen], self.centres[:, chosen], self.depths[chosen])


@dataclass
class Walls:
    """x − log(x) for each coordinate: infinite, then undefined, where x ≤ 0."""

    columns: int

    def evaluate(self, columns):
        with np.errstate(divide="ignore", invalid="ignore"):
            return (columns - np.log(columns)).sum(axis=0), 1 - 1 / columns

    def take(self, chosen):
        return replace(self, columns=int(chosen.sum()))


@dataclass
class Lying(Bowls):
    """Slopes that point uphill: no step descends."""

    def evaluate(self, columns):
        values, slopes = super().evaluate(columns)
        return values, -slopes

    def take(self, chosen):
        return Lying(self.stiffness[:, chosen], self.centres[:, chosen], self.depths[chosen])


def bowls(kind=Bowls):
    random = np.random.default_rng(0)
    return kind(random.uniform(0.01, 100, (6, 5)), random.normal(size=(6, 5)), np.array([1.0, 1.0, 5.0, 0.1, 2.0]))


def test_a_parabola_whose_curvature_is_known_takes_one_step():
    functions = bowls()
    minima = minimise(functions, np.zeros((6, 5)), functions.stiffness, tol=1e-12, max_iter=50)
    np.testing.assert_allclose(minima.columns, functions.centres, atol=1e-9)
    assert minima.iterations.tolist() == [1] * 5
    assert (minima.promises <= 1e-12).all()


def test_an_unknown_curvature_is_learnt():
    functions = bowls()
    minima = minimise(functions, np.zeros((6, 5)), np.ones((6, 5)), tol=1e-13, max_iter=200)
    np.testing.assert_allclose(functions.evaluate(minima.columns)[0], functions.depths, rtol=1e-9)
    assert (minima.iterations > 1).all()
    assert (minima.iterations < 60).all()


def test_columns_leave_alone():
    functions = bowls()
    start = functions.centres.copy()
    start[:, 2] += 1.0
    minima = minimise(functions, start, np.full((6, 5), 3.0), tol=1e-12, max_iter=200)
    assert (np.delete(minima.iterations, 2) == 1).all()
    assert minima.iterations[2] > 3
    np.testing.assert_array_equal(np.delete(minima.columns, 2, axis=1), np.delete(functions.centres, 2, axis=1))


def test_steps_too_far_are_shortened():
    start = np.array([[0.01, 30.0], [5.0, 0.5]])
    minima = minimise(Walls(2), start, np.full((2, 2), 1e-3), tol=1e-13, max_iter=300)
    np.testing.assert_allclose(minima.columns, 1.0, rtol=1e-5)


def test_steps_run_out():
    functions = bowls()
    minima = minimise(functions, np.zeros((6, 5)), np.ones((6, 5)), tol=1e-13, max_iter=2)
    assert minima.iterations.tolist() == [2] * 5
    assert (minima.promises > 1e-13).all()
    assert (functions.evaluate(minima.columns)[0] < functions.evaluate(np.zeros((6, 5)))[0]).all()


def test_what_cannot_descend_stays_and_says_so():
    functions = bowls(Lying)
    minima = minimise(functions, np.zeros((6, 5)), np.ones((6, 5)), tol=1e-9, max_iter=10)
    np.testing.assert_allclose(minima.columns, 0, atol=1e-9)
    assert (minima.promises > 1e-3).all()


@dataclass
class Valleys:
    """Σ cosh of the coordinates of Ax − c: narrow valleys, across all coordinates."""

    matrix: np.ndarray
    centres: np.ndarray
    knows: bool
    asked: list[int]

    def evaluate(self, columns):
        inner = self.matrix @ columns - self.centres
        with np.errstate(over="ignore", invalid="ignore"):
            return np.cosh(inner).sum(axis=0), self.matrix.T @ np.sinh(inner)

    def second_derivatives(self, columns):
        self.asked.append(columns.shape[1])
        inner = self.matrix @ columns - self.centres
        return [(self.matrix.T * weights) @ self.matrix for weights in np.cosh(inner).T] if self.knows else None

    def take(self, chosen):
        return replace(self, centres=self.centres[:, chosen])


@pytest.mark.parametrize("knows", [True, False])
def test_what_is_slow_uses_second_derivatives_if_it_has_them(knows):
    random = np.random.default_rng(1)
    turned = np.linalg.qr(random.normal(size=(30, 30)))[0]
    functions = Valleys(np.geomspace(1e-4, 10, 30)[:, None] * turned, random.normal(size=(30, 3)), knows, [])
    minima = minimise(functions, np.zeros((30, 3)), np.ones((30, 3)), tol=1e-13, max_iter=150)
    assert functions.asked
    reached = functions.evaluate(minima.columns)[0] - 30
    assert (reached < 1e-9).all() == knows
    assert (minima.iterations < 100).all() == knows


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-10])
def test_the_promise_tells_the_distance_from_the_minimum(tol):
    functions = bowls()
    minima = minimise(functions, np.zeros((6, 5)), np.ones((6, 5)), tol=tol, max_iter=200)
    gaps = functions.evaluate(minima.columns)[0] / functions.depths - 1
    assert (gaps <= 20 * tol).all()
