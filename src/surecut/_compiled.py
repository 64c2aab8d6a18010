"""The kernels of `_kernels`, compiled by numba.

No fastmath and no `parallel=True`: all passes over the rows must map alike, and threads come from the caller's pool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from surecut._kernels import (
    HALF_WORD,
    INFINITY,
    KEY_OF_INFINITY,
    KEY_OF_MINUS_ZERO,
    LOW_WORD,
    MAGNITUDE,
    NO_BINS,
    NONE,
    POSITIVE_MARK,
    SEVERAL,
    SIGN,
    FirstBins,
)

LARGEST = float(np.finfo(np.float64).max)
SIGN_SHIFT = np.int64(63)
ONE = np.uint64(1)
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


@numba.njit(inline="always")
def _key(bits: Any) -> Any:
    key = np.uint64(bits) ^ (np.uint64(bits >> SIGN_SHIFT) | SIGN)
    key += np.uint64(key == KEY_OF_MINUS_ZERO)
    key -= np.uint64(key == KEY_OF_INFINITY)
    return key


@numba.njit(inline="always")
def _mixed(bits: Any, is_positive: Any) -> Any:
    mixed = (bits ^ (bits >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
    return mixed * mixed


@numba.njit
def _ends(lowest: Any, highest: Any) -> tuple[Any, Any]:
    """The scores of two keys; the larger of them holds +inf too, where its key does."""
    bits = np.empty(2, np.uint64)
    bits[0], bits[1] = lowest, highest
    for i in range(2):
        bits[i] = bits[i] ^ SIGN if bits[i] >= SIGN else ~bits[i]
    scores = bits.view(np.float64)
    return scores[0], np.inf if scores[1] == LARGEST else scores[1]


@numba.njit
def _near(scores: Any, lowest: Any, highest: Any, index: Any) -> Any:
    """The indices of the scores of a piece that lie between two; without a branch, since most do not."""
    found = np.uint64(0)
    for i in range(scores.size):
        index[found] = i
        found += np.uint64((scores[i] >= lowest) & (scores[i] <= highest))
    return np.int64(found)


@numba.njit(inline="always")
def _locate(key: Any, low: Any, high: Any) -> Any:
    """The bin that holds a key, or −1."""
    first, last = 0, low.size
    while last - first > 1:
        middle = (first + last) >> 1
        if low[middle] <= key:
            first = middle
        else:
            last = middle
    if low[first] <= key <= high[first]:
        return first
    return -1


@numba.njit(inline="always")
def _slot(bits: Any, bins: Any) -> Any:
    """Where a negative row is counted; a positive one stands right behind."""
    smallest, largest, shift, half = bins
    j = (min(max(bits & MAGNITUDE, smallest), largest) - smallest) >> shift
    return ((j ^ (bits >> SIGN_SHIFT)) + half) << 1


@numba.njit(inline="always")
def _note_score(bits: Any, part: Any, only: Any) -> None:
    """Note the one score of a part, or that there are several."""
    if only[part] != bits:
        only[part] = bits if only[part] == NONE else SEVERAL


def _histogram(
    bits: Any, labels: Any, positive: Any, negative: Any, bins: Any, row_slots: Any, only: Any
) -> tuple[Any, Any, Any]:
    slot = np.empty(PIECE, np.uint64)
    known: Any = 0
    nans: Any = 0
    checksum: Any = np.int64(0)
    for start in range(0, bits.size, PIECE):
        score, label = bits[start : start + PIECE], labels[start : start + PIECE]
        for i in range(score.size):
            is_positive = np.int64(label[i] == positive)
            known += is_positive | np.int64(label[i] == negative)
            nans += np.int64((score[i] & MAGNITUDE) > INFINITY)
            checksum += _mixed(score[i], is_positive)
            slot[i] = _slot(score[i], bins) + is_positive
        for i in range(score.size):
            row_slots[slot[i]] += 1
        if only.size:
            for i in range(score.size):
                _note_score(score[i], slot[i] >> ONE, only)
    return bits.size - known, nans, checksum


def _weighted_histogram(
    bits: Any,
    labels: Any,
    weights: Any,
    positive: Any,
    negative: Any,
    bins: Any,
    row_slots: Any,
    sum_slots: Any,
    only: Any,
) -> tuple[Any, Any, Any]:
    known: Any = 0
    nans: Any = 0
    checksum: Any = np.int64(0)
    for i in range(bits.size):
        is_positive = np.int64(labels[i] == positive)
        known += is_positive | np.int64(labels[i] == negative)
        nans += np.int64((bits[i] & MAGNITUDE) > INFINITY)
        if weights[i] > 0:
            checksum += _mixed(bits[i], is_positive)
            slot = np.uint64(_slot(bits[i], bins) + is_positive)
            row_slots[slot] += 1
            sum_slots[slot] += weights[i]
            if only.size:
                _note_score(bits[i], slot >> ONE, only)
    return bits.size - known, nans, checksum


def _count(
    bits: Any, labels: Any, weights: Any, positive: Any, bins: tuple[Any, Any, Any, Any], rows: Any, sums: Any
) -> None:
    low, high, shift, offset = bins
    scores, index = bits.view(np.float64), np.empty(PIECE, np.uint64)
    lowest, highest = _ends(low[0], high[-1])
    for start in range(0, bits.size, PIECE):
        for n in range(_near(scores[start : start + PIECE], lowest, highest, index)):
            i = start + index[n]
            key = _key(bits[i])
            j = _locate(key, low, high)
            if j >= 0 and (weights.size == 0 or weights[i] > 0):
                part = offset[j] + np.int64((key - low[j]) >> shift[j])
                rows[part, np.int64(labels[i] == positive)] += 1
                if weights.size:
                    sums[part, np.int64(labels[i] == positive)] += weights[i]


def _extent(bits: Any, weights: Any, low: Any, high: Any, smallest: Any, largest: Any) -> None:
    scores, index = bits.view(np.float64), np.empty(PIECE, np.uint64)
    lowest, highest = _ends(low[0], high[-1])
    for start in range(0, bits.size, PIECE):
        for n in range(_near(scores[start : start + PIECE], lowest, highest, index)):
            i = start + index[n]
            key = _key(bits[i])
            j = _locate(key, low, high)
            if j >= 0 and (weights.size == 0 or weights[i] > 0):
                smallest[j] = min(smallest[j], key)
                largest[j] = max(largest[j], key)


def _select(bits: Any, labels: Any, weights: Any, positive: Any, low: Any, high: Any, out: tuple[Any, Any, Any]) -> int:
    keys, classes, out_weights = out
    scores, index = bits.view(np.float64), np.empty(PIECE, np.uint64)
    lowest, highest = _ends(low[0], high[-1])
    found = 0
    for start in range(0, bits.size, PIECE):
        near = _near(scores[start : start + PIECE], lowest, highest, index)
        if low.size > 1 or weights.size:
            near, some = 0, near
            for n in range(some):
                i = start + index[n]
                if _locate(_key(bits[i]), low, high) >= 0 and (weights.size == 0 or weights[i] > 0):
                    index[near] = index[n]
                    near += 1
        for n in range(near):
            keys[found + n] = _key(bits[start + index[n]])
        for n in range(near):  # far apart in memory: a loop that does nothing else waits for several at once
            classes[found + n] = labels[start + index[n]] == positive
        if weights.size:
            for n in range(near):
                out_weights[found + n] = weights[start + index[n]]
        found += near
    return found


def _label_histogram(bits: Any, positive: Any, bins: Any, counts: Any, checksums: Any) -> Any:
    """Count the scores of many labels, a column each, by bin and class; return the NaNs."""
    nans: Any = 0
    for i in range(bits.shape[0]):
        for label in range(bits.shape[1]):
            score, is_positive = bits[i, label], np.int64(positive[i, label])
            nans += np.int64((score & MAGNITUDE) > INFINITY)
            checksums[label] += _mixed(score, is_positive)
            counts[label, _slot(score, bins[label]) >> 1, is_positive] += 1
    return nans


def _label_select(
    bits: Any, positive: Any, bins: Any, needed: Any, keys: Any, labels: Any, classes: Any, found: int
) -> int:
    """Copy key, label and class of the scores that lie in bins that are needed, behind those found already."""
    for i in range(bits.shape[0]):
        for label in range(bits.shape[1]):
            score = bits[i, label]
            slot = _slot(score, bins[label]) >> 1
            half = bins[label][3]
            if needed[label, half if slot == half - 1 else slot]:
                keys[found] = _key(score)
                labels[found] = label
                classes[found] = positive[i, label] != 0
                found += 1
    return found


class CompiledKernels:
    """The compiled kernels; each is compiled, or read from numba's cache, when it is first called."""

    def __init__(self) -> None:
        self._histogram = _Kernel(_histogram)
        self._weighted_histogram = _Kernel(_weighted_histogram)
        self.count = _Kernel(_count)
        self.extent = _Kernel(_extent)
        self.select = _Kernel(_select)
        self.label_histogram = _Kernel(_label_histogram)
        self.label_select = _Kernel(_label_select)

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
        """Count every row by bin and class. Less to compile at once: no weights, and counts that are flat already."""
        found: tuple[int, int, int]
        if len(weights):
            flat = (rows.reshape(-1), sums.reshape(-1))
            found = self._weighted_histogram(bits, labels, weights, positive, negative, tuple(bins), *flat, only)
        else:
            found = self._histogram(bits, labels, positive, negative, tuple(bins), rows.reshape(-1), only)
        return found
