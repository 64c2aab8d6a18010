"""The kernels of `kernels` that read every row, compiled by numba.

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

from surecut.core.kernels import NO_BINS, NONE, SEVERAL, FirstBins, Kernels, KeyRanges
from surecut.core.keys import (
    CLASS_BIT,
    HALF_WORD,
    INFINITY,
    KEY_OF_INFINITY,
    KEY_OF_MINUS_ZERO,
    LOW_WORD,
    MAGNITUDE,
    POSITIVE_MARK,
    SIGN,
    SIGN_SHIFT,
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
    bits: Any, labels: Any, weights: Any, positive: Any, negative: Any, bins: Any, buffer: Any, out: Any, only: Any
) -> tuple[Any, Any, Any]:
    """`buffer` is for a piece; `out` holds two counts (and two sums) per bin; `weights` and `only` may be None."""
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
            buffer[i] = (((j ^ (score[i] >> SIGN_SHIFT)) + half) << CLASS_BIT) + is_positive
        if weights is None:
            for i in range(score.size):
                rows[buffer[i]] += 1
        else:
            for i in range(score.size):
                if weights[start + i] > 0:
                    rows[buffer[i]] += 1
                    sums[buffer[i]] += weights[start + i]
        if only is not None:
            for i in range(score.size):
                if weights is None or weights[start + i] > 0:
                    part = buffer[i] >> np.uint64(1)
                    if only[part] != score[i]:
                        only[part] = score[i] if only[part] == NONE else SEVERAL
    return bits.size - known, nans, checksum


def _inside(
    bits: Any, scores: Any, labels: Any, weights: Any, positive: Any, ranges: Any, buffer: Any, out: Any
) -> Any:
    """Most scores are outside: flag those that are not, find the groups of flags that are not empty, open these.

    None of it branches. `buffer` is for a piece: flags, groups of flags as words, those that are not empty, and the
    rows to copy, which are known before they are copied, so that many are fetched at once. Rows between several ranges,
    or without weight, are dropped afterwards. Weights may be None.
    """
    (low, high, lowest, highest), (flags, words, groups, rows) = ranges, buffer
    keys, classes, found_weights = out
    near = np.uint64(0)
    for start in range(0, scores.size, LOOK):
        score, bit, label = scores[start : start + LOOK], bits[start : start + LOOK], labels[start : start + LOOK]
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
            key = np.uint64(bit[rows[i]]) ^ (np.uint64(bit[rows[i]] >> SIGN_SHIFT) | SIGN)
            keys[near] = key + np.uint64(key == KEY_OF_MINUS_ZERO) - np.uint64(key == KEY_OF_INFINITY)
            classes[near] = label[rows[i]] == positive
            if weights is not None:
                found_weights[near] = weights[np.uint64(start) + rows[i]]
            near += np.uint64(1)
    if weights is None and low.size == 1:
        return near
    found = np.uint64(0)
    for n in range(near):
        first, last = 0, low.size
        while last - first > 1:
            middle = (first + last) >> 1
            if low[middle] <= keys[n]:
                first = middle
            else:
                last = middle
        keys[found], classes[found] = keys[n], classes[n]
        belongs = keys[n] <= high[first]
        if weights is not None:
            found_weights[found] = found_weights[n]
            belongs &= found_weights[n] > 0
        found += np.uint64(belongs)
    return found


HISTOGRAM, INSIDE = _Kernel(_histogram), _Kernel(_inside)
"""Compiled, or read from numba's cache, when they are first called."""


class CompiledKernels(Kernels):
    """The compiled kernels."""

    reads_once = True

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
        buffer = self.buffers.array("bins", PIECE, np.uint32)
        found: tuple[int, int, int]
        found = HISTOGRAM(bits, labels, weighted, positive, negative, tuple(bins), buffer, out, noted)
        return found

    def inside(self, bits: Any, labels: Any, weights: Any, positive: Any, ranges: KeyRanges) -> tuple[Any, Any, Any]:
        flags = self.buffers.array("flags", LOOK, np.bool_)
        groups = self.buffers.array("groups", LOOK // GROUP + 1, np.uint64)
        rows = self.buffers.array("rows", LOOK + 1, np.uint64)
        keys = self.buffers.array("keys", len(bits), np.uint64)
        classes = self.buffers.array("classes", len(bits), np.bool_)
        copied = self.buffers.array("weights", len(weights), np.float64)
        found = INSIDE(
            bits,
            bits.view(np.float64),
            labels,
            weights if len(weights) else None,
            positive,
            tuple(ranges),
            (flags, flags.view(np.uint64), groups, rows),
            (keys, classes, copied),
        )
        return keys[:found].copy(), classes[:found].copy(), copied[:found].copy()
