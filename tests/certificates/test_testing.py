"""Tests of several cuts that go wrong with a known probability, all together."""

from __future__ import annotations

import numpy as np
import pytest

from surecut.certificates.testing import passing, starting_weights


def passed(p_values, weights, worth, error):
    return passing(lambda cut, level: p_values[cut] <= level, weights, worth, error)


def test_a_row_of_cuts_that_pass_is_walked_through_with_the_whole_error():
    weights = np.array([0.0, 0.2, 0.6, 0.2, 0.0, 0.0])
    p_values = np.array([1.0, 0.001, 0.001, 0.001, 0.09, 0.5])
    assert passed(p_values, weights, np.arange(6.0), 0.1) == [1, 2, 3, 4]
    assert passed(p_values, weights, np.arange(6.0), 0.08) == [1, 2, 3]
    assert passed(p_values[::-1], weights[::-1], np.arange(6.0)[::-1], 0.1) == [1, 2, 3, 4]  # the other direction


def test_what_is_handed_on_does_not_depend_on_the_order_of_tests():
    """The part of each cut that is left is a function of which are left: of those before it, up to the one before."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        weights = rng.dirichlet(np.ones(6))
        p_values = rng.random(6) ** 4
        found = passed(p_values, weights, np.arange(6.0), 0.3)
        left = [cut for cut in range(6) if cut not in found]
        for cut in left:
            before = [other for other in left if other < cut]
            own = weights[(before[-1] + 1 if before else 0) : (6 if cut == left[-1] else cut + 1)].sum()
            assert p_values[cut] > 0.3 * own


@pytest.mark.parametrize("dependence", ["independent", "equal", "a random walk"])
def test_bad_cuts_pass_with_the_probability_allowed(dependence):
    from scipy import special

    rng, draws, error = np.random.default_rng(1), 4000, 0.1
    steps = rng.normal(size=(draws, 8))
    if dependence == "equal":
        steps[:] = steps[:, :1]
    elif dependence == "a random walk":
        steps = np.cumsum(steps, axis=1) / np.sqrt(np.arange(1, 9))
    good = np.array([False, False, True, True, True, False, False, False])
    p_values = special.ndtr(-np.where(good, steps + 3.5, steps))
    weights = starting_weights(np.array([-2.0, 0.0, 1.0, 2.0, 1.5, 0.5, -1.0, -3.0]), uncertainty=2.0)

    def failures(level):
        return sum(any(not good[cut] for cut in passed(p, weights, np.arange(8.0), level)) for p in p_values) / draws

    noise = 3 * np.sqrt(error * (1 - error) / draws)
    assert 0 < failures(error) <= error + noise
    assert failures(3 * error) > error + noise  # the check can fail


def test_parts_add_up_to_one():
    for margins in ([1.0], [2.0, 1.0], [0.0, 3.0, 0.0], np.linspace(0, 5, 128)):
        weights = starting_weights(np.asarray(margins), uncertainty=3.0)
        assert weights.sum() == pytest.approx(1.0)
        assert weights[int(np.argmax(margins))] >= 0.6 - 1e-12
