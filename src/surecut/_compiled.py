"""The kernels of `_kernels` that read every row, compiled by numba.

They are written so that numba compiles them soon, because a process may call them only once: they call no function,
allocate nothing, take arrays in every form that they need them in (`.view` alone costs 0.3 s), and what an argument
of None makes unnecessary is left out.

No fastmath and no `parallel=True`: all passes over the rows must map alike, and threads come from the caller's pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from surecut._kernels import (
    CLASS_BIT,
    HALF_WORD,
    INFINITY,
    LOW_WORD,
    MAGNITUDE,
    NO_BINS,
    NONE,
    POSITIVE_MARK,
    SEVERAL,
    SIGN_SHIFT,
    FirstBins,
    Kernels,
)

PIECE = 1 << 14
"""Rows whose intermediate results stay in cache, while memory is read in long runs. Loops over slices of this many
rows vectorise: an index that is a plain loop variable needs no check for being negative, and neither does an unsigned
one."""

LOOK = 1 << 12
GROUP = 8
"""In pieces of `LOOK` rows, `GROUP` flags of one byte each are looked at as one word."""


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


def _inside(scores: Any, labels: Any, weights: Any, ranges: Any, room: Any, out: Any) -> Any:
    """Most scores are outside: flag those that are not, find the groups of flags that are not empty, open these.

    None of it branches. `room` is for a piece: flags, groups of flags as words, those that are not empty, and the rows
    to copy, which are known before they are copied, so that many are fetched at once. Rows between several ranges, or
    without weight, are dropped afterwards. Weights may be None.
    """
    (low, high), (flags, words, groups, rows) = ranges, room
    found_scores, found_labels, found_weights = out
    lowest, highest = low[0], high[-1]
    near = np.uint64(0)
    for start in range(0, scores.size, LOOK):
        score, label = scores[start : start + LOOK], labels[start : start + LOOK]
        for i in range(score.size):
            flags[i] = (score[i] >= lowest) & (score[i] <= highest)
        count = (score.size + GROUP - 1) // GROUP
        for i in range(score.size, count * GROUP):
            flags[i] = False
        opened = np.uint64(0)
        for g in range(count):
            groups[opened] = g
            opened += np.uint64(words[g] != 0)
        copied = np.uint64(0)
        for g in range(opened):
            for i in range(GROUP):
                rows[copied] = groups[g] * np.uint64(GROUP) + np.uint64(i)
                copied += np.uint64(flags[rows[copied]])
        for i in range(copied):
            found_scores[near], found_labels[near] = score[rows[i]], label[rows[i]]
            if weights is not None:
                found_weights[near] = weights[np.uint64(start) + rows[i]]
            near += np.uint64(1)
    if weights is None and low.size == 1:
        return near
    found = np.uint64(0)
    for n in range(near):
        score_found = found_scores[n]
        first_range, last_range = 0, low.size
        while last_range - first_range > 1:
            middle = (first_range + last_range) >> 1
            if low[middle] <= score_found:
                first_range = middle
            else:
                last_range = middle
        found_scores[found], found_labels[found] = score_found, found_labels[n]
        belongs = score_found <= high[first_range]
        if weights is not None:
            found_weights[found] = found_weights[n]
            belongs &= found_weights[n] > 0
        found += np.uint64(belongs)
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
        room = np.empty(PIECE, np.uint32)
        found: tuple[int, int, int]
        found = self._histogram(bits, labels, weighted, positive, negative, tuple(bins), room, out, noted)
        return found

    def inside(self, scores: Any, labels: Any, weights: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
        flags = np.empty(LOOK, np.bool_)
        room = flags, flags.view(np.uint64), np.empty(LOOK // GROUP + 1, np.uint64), np.empty(LOOK + 1, np.uint64)
        # Pages that are not written to cost nothing.
        out = tuple(np.empty(len(column) + 1, column.dtype) for column in (scores, labels, weights))
        found = self._inside(scores, labels, weights if len(weights) else None, (low, high), room, out)
        return out[0][:found].copy(), out[1][:found].copy(), out[2][: found if len(weights) else 0].copy()
