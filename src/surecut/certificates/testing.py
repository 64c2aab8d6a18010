"""Tests of several cuts, one after the other, that go wrong with probability `error` at most, all together.

Each cut begins with a part of the error. A cut that passes its test hands its part on to its neighbour; so cuts in a
row that all pass are tested with the error undivided (a sequentially rejective graphical procedure: Bretz, Maurer,
Brannath, Posch 2009). Parts and neighbours must not depend on the rows that test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BESIDE = (0.4, 0.8)
"""How much lower the margin is at the cuts on either side that begin with a part of the error, in units of its own
standard error, …"""

BESIDE_WEIGHT = 0.1
"""… and how large that part is."""


def starting_weights(margins: NDArray[np.float64], uncertainty: float) -> NDArray[np.float64]:
    """The part of the error with which each cut begins.

    The cut with the largest margin has most of it. The rest is for cuts on both sides, in case a small pilot
    sample, which knows margins with some uncertainty, misjudged the place.

    >>> starting_weights(np.array([0.0, 0.9, 2.0, 3.0, 2.4, 1.9, 0.5]), uncertainty=2.5)
    array([0. , 0.1, 0.1, 0.6, 0. , 0.1, 0.1])
    """
    weights = np.zeros(len(margins))
    start = int(np.argmax(margins))
    for step in (-1, 1):
        for lower in BESIDE:
            cut = start
            while 0 <= cut + step < len(margins) and margins[cut] > margins[start] - lower * uncertainty:
                cut += step
            weights[cut] += BESIDE_WEIGHT
    weights[start] += 1 - 2 * len(BESIDE) * BESIDE_WEIGHT
    return weights


def passing(
    passes: Callable[[int, float], bool],
    weights: NDArray[np.float64],
    worth: NDArray[np.float64],
    error: float,
) -> list[int]:
    """The cuts that pass.

    Parameters
    ----------
    passes
        (cut, error) → whether a test passes that a bad cut passes with probability `error` at most.
    weights
        The part of the error with which each cut begins; together 1.
    worth
        What each cut is expected to be worth: errors are handed on in the direction in which that grows.
    error
        The probability that any bad cut passes.
    """
    weights = weights.copy()
    start = int(np.argmax(weights))
    after, before = min(start + 1, len(weights) - 1), max(start - 1, 0)
    direction = 1 if worth[after] >= worth[before] else -1
    waiting = np.ones(len(weights), dtype=bool)
    untested = weights > 0
    while untested.any():
        cut = int(np.argmax(np.where(untested, weights, 0.0)))
        untested[cut] = False
        if not passes(cut, error * float(weights[cut])):
            continue
        waiting[cut] = False
        following = _next(waiting, cut, direction)
        if following is not None:
            weights[following] += weights[cut]
            untested[following] = True
        weights[cut] = 0.0
    return np.flatnonzero(~waiting).tolist()


def _next(waiting: NDArray[np.bool_], cut: int, direction: int) -> int | None:
    """The nearest cut that has not passed, in a direction, or else in the other one."""
    ahead, behind = np.flatnonzero(waiting[cut + 1 :]) + cut + 1, np.flatnonzero(waiting[:cut])[::-1]
    first, second = (ahead, behind) if direction > 0 else (behind, ahead)
    return int(first[0]) if len(first) else int(second[0]) if len(second) else None
