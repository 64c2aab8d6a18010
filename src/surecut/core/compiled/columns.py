"""Loops over the columns of a matrix, each of which is a sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from surecut.core.compiled.kernel import Kernel
from surecut.core.compiled.rows import GROUP, LOOK
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

TILE = 64
"""Rows of a matrix whose scores of some tens of columns stay in cache while column after column is read."""


def _column_codes(
    scores: Any, truth: Any, first: Any, cap: Any, column: Any, codes: Any, positives: Any, named: Any, ends: Any
) -> tuple[Any, Any]:
    """What `_codes` writes of one sample, of some columns of a matrix, the first one being `first`.

    Where keys take more than 63 bits, the gap between the highest negative score and the lowest other one is left out.
    `column` is for one column: its doubles, their bits, its classes. Scores above `cap` count as this. `positives` and
    `named`, the checksums, are by column, and so are `ends`: the lowest key, the one below the gap, and the gap.
    Returns the number of NaNs, and the largest code without its class.
    """
    (doubles, bits, classes), (lowest, below_gap, gaps) = column, ends
    nans, widest = np.int64(0), np.uint64(0)
    for j in range(codes.shape[0]):
        out, own, indicator = codes[j], scores[:, first + j], truth[:, first + j]
        for i in range(own.size):
            score = np.float64(own[i])
            doubles[i] = cap if score > cap else score
        for i in range(indicator.size):
            classes[i] = indicator[i] != 0
        count, checksum = np.int64(0), np.int64(0)
        least, most = ~np.uint64(0), np.uint64(0)
        for i in range(out.size):
            is_positive = np.int64(classes[i])
            count += is_positive
            nans += np.int64((bits[i] & MAGNITUDE) > INFINITY)
            mixed = (bits[i] ^ (bits[i] >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
            checksum += mixed * mixed
            key = np.uint64(bits[i]) ^ (np.uint64(bits[i] >> SIGN_SHIFT) | SIGN)
            key = key + np.uint64(key == KEY_OF_MINUS_ZERO) - np.uint64(key == KEY_OF_INFINITY)
            out[i] = key
            least, most = min(least, key), max(most, key)
        below, gap = ~np.uint64(0), np.uint64(0)
        if (most - least) >> np.uint64(63) != 0:
            below, above = np.uint64(0), ~np.uint64(0)
            for i in range(out.size):
                is_below = out[i] < SIGN
                below = max(below, out[i] if is_below else np.uint64(0))
                above = min(above, ~np.uint64(0) if is_below else out[i])
            gap = above - below - np.uint64(1)
        for i in range(out.size):
            key = out[i] - (gap if out[i] > below else np.uint64(0))
            out[i] = ((key - least) << np.uint64(1)) | np.uint64(classes[i])
        positives[j], named[j] = count, checksum
        lowest[j], below_gap[j], gaps[j] = least, below, gap
        widest = max(widest, most - gap - least)
    return nans, widest


def _column_bins(
    scores: Any, truth: Any, first: Any, cap: Any, piece: Any, bins: Any, places: Any, counts: Any, named: Any
) -> Any:
    """What `_histogram` counts of one sample, of some columns of a matrix, the first one being `first`.

    `piece` is for some rows of a column: doubles, their bits, classes. Scores above `cap` count as this. `places` keeps
    twice the bin of each row, and 1 more if it is positive; `counts` are by column and place, `named`, the checksums,
    by column. Returns the number of NaNs.
    """
    doubles, bits, classes = piece
    nans = np.int64(0)
    for start in range(0, scores.shape[0], doubles.size):
        size = min(doubles.size, scores.shape[0] - start)
        for j in range(places.shape[0]):
            own, indicator = scores[start : start + size, first + j], truth[start : start + size, first + j]
            for i in range(own.size):
                score = np.float64(own[i])
                doubles[i] = cap if score > cap else score
            for i in range(indicator.size):
                classes[i] = indicator[i] != 0
            smallest, largest, shift, half = bins[j, 0], bins[j, 1], bins[j, 2], bins[j, 3]
            out, checksum = places[j, start : start + size], np.int64(0)
            for i in range(out.size):
                is_positive = np.int64(classes[i])
                magnitude = bits[i] & MAGNITUDE
                nans += np.int64(magnitude > INFINITY)
                mixed = (bits[i] ^ (bits[i] >> HALF_WORD) ^ (-is_positive & POSITIVE_MARK)) & LOW_WORD
                checksum += mixed * mixed
                magnitude = smallest if magnitude < smallest else magnitude
                magnitude = largest if magnitude > largest else magnitude
                step = (magnitude - smallest) >> shift
                out[i] = (((step ^ (bits[i] >> SIGN_SHIFT)) + half) << CLASS_BIT) + is_positive
            named[j] += checksum
    for j in range(places.shape[0]):
        place, count = places[j], counts[j]
        for i in range(place.size):
            count[place[i]] += 1
    return nans


def _column_rows(
    scores: Any, first: Any, cap: Any, places: Any, entry: Any, ends: Any, buffer: Any, found: Any, out: Any
) -> None:
    """Key and class of the rows of some columns that are in some bins, those of each bin together.

    `entry` is by column and bin the position of `found`, where the bin's next row goes in `out`; negative where its
    rows are not looked for. `ends` are the lowest and the highest place of each column that are; the highest is less
    where there are none. Rows are looked for as in `_inside`.
    """
    (flags, words, groups, rows, doubles, bits), (keys, classes) = buffer, out
    for j in range(places.shape[0]):
        low, width, own = ends[j, 0], np.uint16(ends[j, 1] - ends[j, 0]), entry[j]
        if ends[j, 1] < low:
            continue
        for start in range(0, places.shape[1], LOOK):
            place = places[j, start : start + LOOK]
            for i in range(place.size):
                flags[i] = np.uint16(place[i] - low) <= width
            count = (place.size + GROUP - 1) // GROUP
            for i in range(place.size, count * GROUP):
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
            inside = np.uint64(0)
            for i in range(copied):
                rows[inside] = rows[i]
                inside += np.uint64(own[place[rows[i]] >> np.uint16(1)] >= 0)
            for i in range(inside):
                score = np.float64(scores[np.uint64(start) + rows[i], first + j])
                doubles[i] = cap if score > cap else score
            for i in range(inside):
                key = np.uint64(bits[i]) ^ (np.uint64(bits[i] >> SIGN_SHIFT) | SIGN)
                key = key + np.uint64(key == KEY_OF_MINUS_ZERO) - np.uint64(key == KEY_OF_INFINITY)
                which = own[place[rows[i]] >> np.uint16(1)]
                keys[found[which]] = key
                classes[found[which]] = place[rows[i]] & np.uint16(1)
                found[which] += 1


COLUMN_CODES, COLUMN_BINS, COLUMN_ROWS = (Kernel(one) for one in (_column_codes, _column_bins, _column_rows))
"""Compiled, or read from numba's cache, when they are first called."""
