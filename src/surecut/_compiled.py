"""The kernels of `_kernels` that read every row, compiled by numba.

They are written so that numba compiles them soon, because a process may call them only once: they call no function,
allocate nothing, take arrays in every form that they need them in (`.view` alone costs 0.3 s), and what an argument
of None makes unnecessary is left out.

No fastmath and no `parallel=True`: all passes over the rows must map alike, and threads come from the caller's pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from surecut._kernels import (
    HALF_WORD,
    INFINITY,
    LOW_WORD,
    MAGNITUDE,
    NO_BINS,
    NONE,
    POSITIVE_MARK,
    SEVERAL,
    FirstBins,
    Kernels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIGN_SHIFT = np.int64(63)
CLASS_BIT = np.int64(1)
PIECE = 1024
"""Rows whose intermediate results stay in the first-level cache. Loops over slices of this many rows vectorise: an
index that is a plain loop variable needs no check for being negative, and neither does an unsigned one."""


class _Kernel:
    """A compiled function whose cache on disk may be absent, unwritable or broken: then there is no cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        try:
            self._compiled = numba.njit(nogil=True, cache=True)(function)
        except RuntimeError:  # no place to write a cache
            self._compiled = numba.njit(nogil=True)(function)

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self._compiled(*arguments)
        except Exception:  # the kernels raise nothing: what fails is the reading or writing of the cache
            self._compiled = numba.njit(nogil=True)(self._function)
            return self._compiled(*arguments)


def _histogram(
    bits: Any, labels: Any, weights: Any, positive: Any, negative: Any, bins: Any, room: Any, out: Any, only: Any
) -> tuple[Any, Any, Any]:
    """`room` is for a piece; `out` holds two counts (and two sums) per bin; `weights` and `only` may be None."""
    smallest, largest, shift, half = bins
    rows, sums = out
    known, nans, checksum = np.int64(0), np.int64(0), np.int64(0)
    for start in range(0, bits.size, PIECE):
        score, label = bits[start : start + PIECE], labels[start : start + PIECE]
        for i in range(score.size):
            is_positive = np.int64(label[i] == positive)
            known += is_positive | np.int64(label[i] == negative)
            magnitude = score[i] & MAGNITUDE
            nans += np.int64(magnitude > INFINITY)
            mixed = (score[i] ^ (score[i] >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
            if weights is not None:
                mixed *= np.int64(weights[start + i] > 0)
            checksum += mixed * mixed
            magnitude = smallest if magnitude < smallest else magnitude
            magnitude = largest if magnitude > largest else magnitude
            j = (magnitude - smallest) >> shift
            room[i] = (((j ^ (score[i] >> SIGN_SHIFT)) + half) << CLASS_BIT) + is_positive
        if weights is None:
            for i in range(score.size):
                rows[room[i]] += 1
        else:
            for i in range(score.size):
                if weights[start + i] > 0:
                    rows[room[i]] += 1
                    sums[room[i]] += weights[start + i]
        if only is not None:
            for i in range(score.size):
                if weights is None or weights[start + i] > 0:
                    part = room[i] >> np.uint64(1)
                    if only[part] != score[i]:
                        only[part] = score[i] if only[part] == NONE else SEVERAL
    return bits.size - known, nans, checksum


def _inside(scores: Any, low: Any, high: Any, index: Any) -> Any:
    """Without a branch, since most scores are outside; those between several ranges are dropped afterwards."""
    lowest, highest = low[0], high[-1]
    near = np.uint64(0)
    for i in range(scores.size):
        index[near] = i
        near += np.uint64((scores[i] >= lowest) & (scores[i] <= highest))
    if low.size == 1:
        return near
    found = np.uint64(0)
    for n in range(near):
        score = scores[index[n]]
        first, last = 0, low.size
        while last - first > 1:
            middle = (first + last) >> 1
            if low[middle] <= score:
                first = middle
            else:
                last = middle
        index[found] = index[n]
        found += np.uint64(score <= high[first])
    return found


class CompiledKernels(Kernels):
    """The compiled kernels; each is compiled, or read from numba's cache, when it is first called."""

    def __init__(self) -> None:
        self._histogram = _Kernel(_histogram)
        self._inside = _Kernel(_inside)

    def histogram(
        self,
        bits: Any,
        labels: Any,
        weights: Any,
        positive: Any,
        negative: Any,
        bins: FirstBins,
        rows: Any,
        sums: Any,
        only: Any = NO_BINS,
    ) -> tuple[int, int, int]:
        # What is known to be None when a kernel is compiled is left out of it.
        weighted = weights if len(weights) else None
        noted = only if len(only) else None
        out = rows.reshape(-1), sums.reshape(-1)
        room = np.empty(PIECE, np.uint64)
        found: tuple[int, int, int]
        found = self._histogram(bits, labels, weighted, positive, negative, tuple(bins), room, out, noted)
        return found

    def inside(self, scores: Any, low: Any, high: Any) -> NDArray[np.int64]:
        index = np.empty(len(scores) + 1, np.int64)  # pages that are not written to cost nothing
        return index[: self._inside(scores, low, high, index)].copy()
