"""Scores as order-preserving integers, and numbers that name rows whatever their order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIGN = np.uint64(1 << 63)
MAGNITUDE = np.int64((1 << 63) - 1)
INFINITY = np.int64(0x7FF0_0000_0000_0000)
LARGEST_FINITE = np.int64(0x7FEF_FFFF_FFFF_FFFF)
LARGEST = float(np.finfo(np.float64).max)
INF = np.float64(np.inf)
KEY_OF_MINUS_ZERO = np.uint64(0x7FFF_FFFF_FFFF_FFFF)
KEY_OF_MINUS_INFINITY = np.uint64(0x000F_FFFF_FFFF_FFFF)
KEY_OF_INFINITY = np.uint64(0xFFF0_0000_0000_0000)

SIGN_SHIFT = np.int64(63)
CLASS_BIT = np.int64(1)
HALF_WORD = np.int64(32)
LOW_WORD = np.int64(0xFFFF_FFFF)
POSITIVE_MARK = np.int64(0x9E37_79B9)

DOUBLE, BITS = struct.Struct("=d"), struct.Struct("=Q")

HALF_KEY = np.uint64(32)
POSITIVE_KEY = np.uint64(0x9E37_79B9_7F4A_7C15)
FIRST_FACTOR = np.uint64(0xBF58_476D_1CE4_E5B9)
SECOND_FACTOR = np.uint64(0x94D0_49BB_1331_11EB)


def ordered_keys(scores: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Keys of float64 scores.

    >>> keys = ordered_keys(np.array([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.797e308, np.inf]))
    >>> bool((np.diff(keys.astype(float)) >= 0).all()), bool(keys[2] == keys[3])
    (True, True)
    """
    bits = np.ascontiguousarray(scores).view(np.uint64)
    keys = (bits.view(np.int64) >> 63).view(np.uint64)
    keys |= SIGN
    keys ^= bits
    keys += keys == KEY_OF_MINUS_ZERO
    keys -= keys == KEY_OF_INFINITY
    return keys


def scores_of_keys(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """The scores again."""
    bits = ~keys
    bits.view(np.int64)[...] >>= 63
    bits |= SIGN
    bits ^= keys
    return bits.view(np.float64)


def score_of_key(key: int) -> float:
    """The score of one key, in plain numbers.

    >>> score_of_key(int(ordered_keys(np.array([-0.25]))[0]))
    -0.25
    """
    bits = key ^ int(SIGN) if key >> 63 else key ^ (2**64 - 1)
    score: float = DOUBLE.unpack(BITS.pack(bits))[0]
    return score


def reaches(scores: Any, threshold: Any) -> NDArray[np.bool_]:
    """Whether scores are predicted positive: `score >= threshold`, compared in float64. +inf predicts nothing.

    >>> reaches(np.array([0.25, np.inf, np.nan]), 0.25), reaches(np.array([0.25, np.inf]), np.inf)
    (array([ True,  True, False]), array([False, False]))
    """
    reached = np.asarray(np.asarray(scores, dtype=np.float64) >= threshold)
    if isinstance(threshold, float) and threshold < INF:  # the rest would take longer than to compare one score
        return reached
    return np.asarray(reached & (np.asarray(threshold) < np.inf))


def checksum(bits: NDArray[np.int64], is_positive: NDArray[np.bool_]) -> int:
    """A number that names rows whatever their order: the sum over rows of a square of a mix of bits and class.

    It is additive modulo 2**64: the checksum of two samples together is the sum of theirs.
    """
    return int(row_marks(bits, is_positive).sum(dtype=np.uint64))


def row_marks(bits: NDArray[np.int64], is_positive: NDArray[Any], buffers: Any = None) -> NDArray[np.uint64]:
    """What each row adds to the checksum; `buffers` are two arrays of their shape to work in.

    Classes are booleans, or 0 and 1 in 64 bits, which is quicker.
    """
    mixed, mark = np.empty((2, *bits.shape), dtype=np.int64) if buffers is None else buffers
    np.right_shift(bits, HALF_WORD, out=mixed)
    mixed ^= bits
    mixed ^= np.multiply(is_positive, POSITIVE_MARK, out=mark)
    mixed &= LOW_WORD
    marks: NDArray[np.uint64] = mixed.view(np.uint64)
    marks *= marks
    return marks


def key_marks(
    keys: NDArray[np.uint64], is_positive: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.uint64]:
    """Numbers whose sum names rows by key, class and weight; `weights` is empty where rows are not weighted.

    Two passes over the same rows give the same sum, in any order. It is stronger than `checksum`, which is saved with
    cuts and does not depend on weights.
    """
    marks = np.multiply(is_positive, POSITIVE_KEY, dtype=np.uint64)
    marks += keys
    marks *= FIRST_FACTOR
    if len(weights):
        marks += weights.view(np.uint64) * POSITIVE_KEY
    marks ^= marks >> HALF_KEY
    marks *= SECOND_FACTOR
    return marks
