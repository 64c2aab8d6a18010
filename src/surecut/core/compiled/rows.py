"""Loops over the rows of one sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from surecut.core.compiled.kernel import Kernel
from surecut.core.kernels import NONE, SEVERAL
from surecut.core.keys import (
    CLASS_BIT,
    FIRST_FACTOR,
    HALF_KEY,
    HALF_WORD,
    INFINITY,
    KEY_OF_INFINITY,
    KEY_OF_MINUS_INFINITY,
    KEY_OF_MINUS_ZERO,
    LOW_WORD,
    MAGNITUDE,
    POSITIVE_KEY,
    POSITIVE_MARK,
    SECOND_FACTOR,
    SIGN,
    SIGN_SHIFT,
)

PIECE = 1 << 14
"""Rows whose intermediate results stay in cache, while memory is read in long runs. Loops over slices of this many
rows vectorise: an index that is a plain loop variable needs no check for being negative, and neither does an unsigned
one."""

LARGEST_SINGLE = np.float32(np.finfo(np.float32).max)

LOOK = 1 << 12

GROUP = 8
"""In pieces of `LOOK` rows, `GROUP` flags of one byte each are looked at as one word, and float32 scores are converted,
since these pieces stay in the first cache."""


def _histogram(
    bits: Any,
    doubles: Any,
    narrow: Any,
    labels: Any,
    weights: Any,
    positive: Any,
    negative: Any,
    bins: Any,
    buffer: Any,
    out: Any,
    only: Any,
    marks: Any,
    weight_bits: Any,
) -> tuple[Any, Any, Any]:
    """`buffer` is for a piece; `out` holds two counts (and two sums) per bin; what follows, and `weights`, may be None.

    `narrow` are float32 scores, or None. With them, `bits` and `doubles` are a buffer for a piece, seen in two ways.
    `weight_bits` are for `marks` only.
    """
    smallest, largest, shift, half = bins
    rows, sums = out
    known, nans, checksum = np.int64(0), np.int64(0), np.int64(0)
    piece = PIECE if narrow is None else LOOK
    for start in range(0, labels.size, piece):
        label = labels[start : start + piece]
        if narrow is None:
            score = bits[start : start + piece]
        else:
            score, single = bits[: label.size], narrow[start : start + piece]
            for i in range(single.size):
                doubles[i] = LARGEST_SINGLE if single[i] > LARGEST_SINGLE else single[i]
        for i in range(score.size):
            is_positive = np.int64(label[i] == positive)
            known += is_positive | np.int64(label[i] == negative)
            magnitude = score[i] & MAGNITUDE
            nans += np.int64(magnitude > INFINITY)
            mixed = (score[i] ^ (score[i] >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
            if weights is not None:
                mixed = mixed if weights[start + i] > 0 else np.int64(0)
            checksum += mixed * mixed
            magnitude = smallest if magnitude < smallest else magnitude
            magnitude = largest if magnitude > largest else magnitude
            j = (magnitude - smallest) >> shift
            buffer[i] = (((j ^ (score[i] >> SIGN_SHIFT)) + half) << CLASS_BIT) + is_positive
        if weights is None:
            for i in range(score.size):
                rows[buffer[i]] += 1
        else:
            weight = weights[start : start + piece]
            for i in range(score.size):
                rows[buffer[i]] += weight[i] > 0
                sums[buffer[i]] += weight[i]
        if only is not None:
            for i in range(score.size):
                if weights is None or weights[start + i] > 0:
                    part = buffer[i] >> np.uint64(1)
                    if only[part] != score[i]:
                        only[part] = score[i] if only[part] == NONE else SEVERAL
        if marks is not None:
            for i in range(score.size):
                key = np.uint64(score[i]) ^ (np.uint64(score[i] >> SIGN_SHIFT) | SIGN)
                key = key + np.uint64(key == KEY_OF_MINUS_ZERO) - np.uint64(key == KEY_OF_INFINITY)
                mark = (key + np.uint64(buffer[i] & np.uint32(1)) * POSITIVE_KEY) * FIRST_FACTOR
                if weights is not None:
                    mark += weight_bits[start + i] * POSITIVE_KEY
                mark ^= mark >> HALF_KEY
                mark *= SECOND_FACTOR
                if weights is None or weights[start + i] > 0:
                    marks[buffer[i] >> np.uint32(1)] += mark
    return labels.size - known, nans, checksum


def _occupied(rows: Any, sums: Any, bins: Any, number: Any, low: Any, high: Any, out: Any) -> Any:
    """Numbers, ends and counts of the bins in which there are rows, descending; returns how many.

    `sums` may be None.
    """
    smallest, _, shift, half = bins
    out_rows, out_sums = out
    found = np.uint64(0)
    for b in range(half + half - 1, -1, -1):  # without a branch, which could not be predicted
        number[found] = b
        found += np.uint64((rows[b, 0] | rows[b, 1]) != 0)
    width = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    lowest, highest = np.int64(0 if half > 1 else half), half + half - 1
    for i in range(found):
        b = number[i]
        out_rows[i, 0], out_rows[i, 1] = rows[b, 0], rows[b, 1]
        if sums is not None:
            out_sums[i, 0], out_sums[i, 1] = sums[b, 0], sums[b, 1]
        distance = np.uint64(smallest + (max(abs(b - half), np.int64(1)) << shift))
        low[i] = SIGN + distance if b > half else SIGN - distance
        high[i] = SIGN + distance - np.uint64(1) if b == half else low[i] + width
        if b == lowest:
            low[i] = KEY_OF_MINUS_INFINITY
        if b == highest:
            high[i] = KEY_OF_INFINITY - np.uint64(1)
    return found


def _inside(
    bits: Any,
    doubles: Any,
    narrow: Any,
    labels: Any,
    weights: Any,
    positive: Any,
    ranges: Any,
    cells: Any,
    buffer: Any,
    out: Any,
) -> Any:
    """Most scores are outside: flag those that are not, find the groups of flags that are not empty, open these.

    None of it branches. `buffer` is for a piece: flags, groups of flags as words, those that are not empty, and the
    rows to copy, which are known before they are copied, so that many are fetched at once. Rows between several ranges,
    or without weight, are dropped afterwards. Weights and cells may be None; `narrow`, `bits` and `doubles` are as in
    `_histogram`, and the lowest and the highest score are float32 if scores are.
    """
    (low, high, lowest, highest), (flags, words, groups, rows, places) = ranges, buffer
    keys, classes, found_weights = out
    near = np.uint64(0)
    for start in range(0, labels.size, LOOK):
        label = labels[start : start + LOOK]
        if narrow is None:
            score, bit = doubles[start : start + LOOK], bits[start : start + LOOK]
        else:
            score, bit, single = doubles[: label.size], bits[: label.size], narrow[start : start + LOOK]
        if cells is not None:
            if narrow is not None:
                for i in range(single.size):
                    score[i] = LARGEST_SINGLE if single[i] > LARGEST_SINGLE else single[i]
            is_hit, _, base, shift = cells
            last = np.uint64(is_hit.size - 1)
            for i in range(score.size):
                key = np.uint64(bit[i]) ^ (np.uint64(bit[i] >> SIGN_SHIFT) | SIGN)
                key = key + np.uint64(key == KEY_OF_MINUS_ZERO) - np.uint64(key == KEY_OF_INFINITY)
                place = (key - base) >> shift
                places[i] = last if place > last else place
            for i in range(score.size):
                flags[i] = is_hit[places[i]]
        elif narrow is not None:
            for i in range(single.size):
                flags[i] = (single[i] >= lowest) & (single[i] <= highest)
        else:
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
        if narrow is not None:  # most need not be converted
            for i in range(copied):
                score[i] = LARGEST_SINGLE if single[rows[i]] > LARGEST_SINGLE else single[rows[i]]
        for i in range(copied):
            own = bit[rows[i]] if narrow is None else bit[i]
            key = np.uint64(own) ^ (np.uint64(own >> SIGN_SHIFT) | SIGN)
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
        if cells is not None:
            _, firsts, base, shift = cells
            first = firsts[(keys[n] - base) >> shift]
            while high[first] < keys[n]:
                first += 1
                if first == last:
                    break
            first = min(first, last - 1)
        else:
            while last - first > 1:
                middle = (first + last) >> 1
                if low[middle] <= keys[n]:
                    first = middle
                else:
                    last = middle
        keys[found], classes[found] = keys[n], classes[n]
        belongs = (low[first] <= keys[n]) & (keys[n] <= high[first])
        if weights is not None:
            found_weights[found] = found_weights[n]
            belongs &= found_weights[n] > 0
        found += np.uint64(belongs)
    return found


def _codes(bits: Any, labels: Any, positive: Any, negative: Any, codes: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Write keys, less the lowest one and with the class as last bit, unless they take more than 64 bits.

    Returns the numbers of positives, of labels that are neither of the two and of NaNs, the checksum, the lowest and
    the highest key.
    """
    positives, known, nans, checksum = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    lowest, highest = ~np.uint64(0), np.uint64(0)
    for i in range(bits.size):
        is_positive = np.int64(labels[i] == positive)
        positives += is_positive
        known += is_positive | np.int64(labels[i] == negative)
        nans += np.int64((bits[i] & MAGNITUDE) > INFINITY)
        mixed = (bits[i] ^ (bits[i] >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
        checksum += mixed * mixed
        key = np.uint64(bits[i]) ^ (np.uint64(bits[i] >> SIGN_SHIFT) | SIGN)
        key = key + np.uint64(key == KEY_OF_MINUS_ZERO) - np.uint64(key == KEY_OF_INFINITY)
        codes[i] = key
        lowest, highest = min(lowest, key), max(highest, key)
    if (highest - lowest) >> np.uint64(63) == 0:
        for i in range(bits.size):
            codes[i] = ((codes[i] - lowest) << np.uint64(1)) | np.uint64(labels[i] == positive)
    return positives, bits.size - known, nans, checksum, lowest, highest


def _runs(codes: Any, lowest: Any, keys: Any, rows: Any) -> Any:
    """Distinct keys of sorted codes, descending, and their rows by class; returns how many."""
    if codes.size == 0:
        return np.uint64(0)
    run = np.uint64(0)
    last = codes[codes.size - 1] >> np.uint64(1)
    negatives, positives = np.int64(0), np.int64(0)
    for i in range(codes.size - 1, -1, -1):
        code = codes[i]
        key, is_positive = code >> np.uint64(1), np.int64(code & np.uint64(1))
        if key != last:
            keys[run], rows[run, 0], rows[run, 1] = last + lowest, negatives, positives
            run += np.uint64(1)
            last, negatives, positives = key, np.int64(0), np.int64(0)
        positives += is_positive
        negatives += np.int64(1) - is_positive
    keys[run], rows[run, 0], rows[run, 1] = last + lowest, negatives, positives
    return run + np.uint64(1)


def _count_at(
    bits: Any, scores: Any, labels: Any, positive: Any, negative: Any, threshold: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """What `RowsAt` holds."""
    tp, accepted, positives, known, nans = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    checksum = np.int64(0)
    for i in range(bits.size):
        is_positive, reached = np.int64(labels[i] == positive), np.int64(scores[i] >= threshold)
        tp += is_positive & reached
        accepted += reached
        positives += is_positive
        known += is_positive | np.int64(labels[i] == negative)
        nans += np.int64((bits[i] & MAGNITUDE) > INFINITY)
        mixed = (bits[i] ^ (bits[i] >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
        checksum += mixed * mixed
    return tp, accepted, positives, bits.size - known, nans, checksum


def _flagged(bits: Any, flags: Any, shift: Any, rows: Any) -> Any:
    """Write the positions of flagged rows; returns how many."""
    found, last = np.uint64(0), np.uint64(flags.size - 1)
    for i in range(bits.size):
        rows[found] = i
        found += np.uint64(flags[np.uint64(bits[i] >> shift) & last])
    return found


def _positions(run: Any, free: Any, ends: Any, found: Any) -> Any:
    """Write the position of each row; returns whether all runs had one left."""
    for i in range(run.size):
        own = np.uint64(run[i])
        position = free[own]
        if position >= ends[own]:
            return False
        free[own] = position + 1
        found[i] = position
    return True


HISTOGRAM, OCCUPIED, INSIDE, CODES, RUNS, COUNT_AT, FLAGGED, POSITIONS = (
    Kernel(one) for one in (_histogram, _occupied, _inside, _codes, _runs, _count_at, _flagged, _positions)
)
"""Compiled, or read from numba's cache, when they are first called."""
