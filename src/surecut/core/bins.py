"""Bins of scores by their leading bits, and ranges of keys.

A bin of scores is a range of keys. The first bins are made of leading bits, so that their widths grow with the scores:
outliers, denormals and infinities fall into place without a look at the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.counts import Counts
from surecut.core.keys import (
    INF,
    KEY_OF_INFINITY,
    KEY_OF_MINUS_INFINITY,
    KEY_OF_MINUS_ZERO,
    LARGEST,
    LARGEST_FINITE,
    MAGNITUDE,
    SIGN,
    scores_of_keys,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOOSE = 4
"""Where all ranges together are so many times narrower than what lies between their ends, they lie far apart."""

CELL_BITS = 13
"""2**CELL_BITS cells at most, of a byte each, stay in the first cache."""


class FirstBins(NamedTuple):
    """Bins by leading bits, over a window of magnitudes; what is smaller or larger goes to the window's end bins.

    A score with the bits of its magnitude in m is in bin ``half + j`` if positive and ``half - 1 - j`` if negative,
    j = (clip(m, smallest, largest) - smallest) >> shift. The bins on both sides of zero are one, `half`.
    """

    smallest: Any
    largest: Any
    shift: Any
    half: Any

    def ends(self, which: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Lowest and highest key of some bins, where `half` stands for both bins beside zero.

        The fields may be arrays as long as `which`: bins of several kinds, one after the other.
        """
        steps = np.abs(which - self.half)
        np.maximum(steps, 1, out=steps)
        steps <<= self.shift
        steps += self.smallest
        distance = steps.view(np.uint64)
        low = SIGN - distance
        np.add(SIGN, distance, out=low, where=which > self.half)
        high = low + ((np.uint64(1) << self.shift.astype(np.uint64)) - np.uint64(1))
        np.add(SIGN - np.uint64(1), distance, out=high, where=which == self.half)
        lowest, highest = np.where(self.half > 1, 0, self.half), 2 * self.half - 1
        low[which == lowest], high[which == highest] = KEY_OF_MINUS_INFINITY, KEY_OF_INFINITY - np.uint64(1)
        return low, high


class OccupiedBins(NamedTuple):
    """First bins in which there are rows, descending: their numbers, lowest and highest keys, and counts of 64 bits."""

    number: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    counts: Counts


def first_bins(ordered: NDArray[np.float64], bits: int = 15) -> FirstBins:
    """Bins that suit the scores of a sample (ascending), about 2**bits of each sign. Any sample gives right answers.

    The window leaves out the sample's extremes, which would make it wide. Tied scores have no long tails, and should
    have a bin each: their window holds them all, down to a first bin for zero.
    """
    signs = 2 if ordered[0] < 0 < ordered[-1] else 1
    magnitude = np.minimum(ordered.view(np.int64) & MAGNITUDE, LARGEST_FINITE)
    if ordered[0] < 0:
        magnitude.sort()
    tied = are_tied(ordered)
    trimmed = 0 if tied else len(magnitude) // 1024
    if tied and magnitude[-1] > 0:
        magnitude = magnitude[magnitude > 0]
    smallest, largest = int(magnitude[trimmed]), int(magnitude[-1 - trimmed])
    shift = max(0, (largest - smallest).bit_length() - (bits - signs + 1))
    smallest = max(0, smallest - (1 << shift)) if tied else smallest
    half = ((largest - smallest) >> shift) + 1
    return FirstBins(np.int64(smallest), np.int64(largest), np.int64(shift), np.int64(half))


def are_tied(ordered: NDArray[np.float64]) -> bool:
    """Whether so many scores of a sample (ascending) are equal that few bins will hold more than one.

    >>> are_tied(np.array([0.1, 0.1, 0.2, 0.2, 0.2, 0.3])), are_tied(np.array([0.1, 0.2, 0.3, 0.4]))
    (True, False)
    """
    return bool(2 * np.count_nonzero(ordered[1:] == ordered[:-1]) >= len(ordered))


class KeyCells(NamedTuple):
    """Equal cells of keys from `base` on, 2**shift wide, that tell quickly in which of some ranges a key is, if in any.

    Attributes
    ----------
    is_hit
        Whether a cell holds a part of a range; the last one stands for all keys outside.
    first
        The first range that may hold a key of the cell.
    """

    is_hit: NDArray[np.bool_]
    first: NDArray[np.int64]
    base: np.uint64
    shift: np.uint64

    @classmethod
    def of(cls, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> KeyCells:
        base = low[0]
        shift = np.uint64(max(0, int(high[-1] - base).bit_length() - CELL_BITS))
        begun, ended = np.zeros((2, int((high[-1] - base) >> shift) + 2), dtype=np.int64)
        np.add.at(begun, ((low - base) >> shift).view(np.int64), 1)
        np.add.at(ended, ((high - base) >> shift).view(np.int64) + 1, 1)
        first = np.cumsum(ended)
        return cls(np.cumsum(begun) > first, first, base, shift)


class KeyRanges(NamedTuple):
    """Some ranges of keys (ascending, ends inclusive, none touches another), and the scores between which they lie.

    Scores can be compared with `lowest` and `highest` before they have keys. Where ranges lie far apart, there are
    `cells`. No score has the key of −0; the last key stands for +inf.
    """

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    lowest: np.float64
    highest: np.float64
    cells: KeyCells | None

    @classmethod
    def of(cls, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> KeyRanges:
        """Ranges, with those that touch made one."""
        if len(low) > 1:
            apart = high[:-1] + np.uint64(1) != low[1:]
            low, high = low[np.concatenate(([True], apart))], high[np.concatenate((apart, [True]))]
        ends = np.array([low[0], high[-1] - np.uint64(high[-1] == KEY_OF_MINUS_ZERO)])
        lowest, highest = scores_of_keys(ends)
        low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        width = (high - low).sum(dtype=np.float64) + len(low)
        cells = KeyCells.of(low, high) if len(low) > 1 and float(high[-1] - low[0]) > LOOSE * width else None
        return cls(low, high, lowest, INF if highest == LARGEST else highest, cells)

    def singles(self) -> tuple[np.float32, np.float32]:
        """Lowest and highest float32 score between the ends; +inf counts as the largest other one.

        >>> from surecut.core.keys import ordered_keys
        >>> [float(end) for end in KeyRanges.of(*ordered_keys(np.array([[0.25], [0.5]]))).singles()]
        [0.25, 0.5]
        """
        with np.errstate(over="ignore"):
            low, high = np.float32(self.lowest), np.float32(self.highest)
        low = low if low >= self.lowest else np.nextafter(low, np.float32(np.inf))
        high = high if high <= self.highest else np.nextafter(high, np.float32(-np.inf))
        if low == np.inf:  # above all of them
            return np.float32(np.nan), np.float32(np.nan)
        return low, np.float32(np.inf) if high == np.finfo(np.float32).max else high
