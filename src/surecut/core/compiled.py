"""The kernels of `kernels`, and the judge of `rules` for ratios of counts, compiled by numba.

They are written so that numba compiles them soon, because a process may call them only once: they call no function,
allocate nothing, take arrays in every form that they need them in (`.view` alone costs 0.3 s), and what an argument
of None makes unnecessary is left out.

No fastmath and no `parallel=True`: all passes over the rows must map alike, and threads come from the caller's pool.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from surecut._inputs import highest_of
from surecut.core.counts import NO_MARKS, Counts
from surecut.core.kernels import (
    LEVELS,
    LOADING,
    NO_BINS,
    NONE,
    SEVERAL,
    BestEdges,
    BinnedRows,
    DrawnCells,
    FirstBins,
    Kernels,
    KeyRanges,
    NumpyKernels,
    OccupiedBins,
    RowsAt,
    SortedColumns,
    SortedRows,
)
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries
    from surecut.metrics import WholeRatio

PIECE = 1 << 14
"""Rows whose intermediate results stay in cache, while memory is read in long runs. Loops over slices of this many
rows vectorise: an index that is a plain loop variable needs no check for being negative, and neither does an unsigned
one."""

LARGEST_SINGLE = np.float32(np.finfo(np.float32).max)

LOOK = 1 << 12
GROUP = 8
"""In pieces of `LOOK` rows, `GROUP` flags of one byte each are looked at as one word, and float32 scores are converted,
since these pieces stay in the first cache."""

TILE = 64
"""Rows of a matrix whose scores of some tens of columns stay in cache while column after column is read."""


class _Kernel:
    """A compiled function whose cache on disk may be absent, unwritable or broken: then there is no cache.

    It is compiled, or read from the cache, for every kind of arguments: when it is called, or in the background.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._ready: set[tuple[Any, ...]] = set()
        self._asked: set[tuple[Any, ...]] = set()
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

    def is_ready(self, kind: tuple[Any, ...], prepare: Callable[[], Any]) -> bool:
        """Whether it can be called with arguments of a kind without waiting.

        If not, it will be: `prepare` gives arguments of the kind with which it has nothing to do, but to be compiled.
        """
        if kind in self._ready:
            return True
        if kind not in self._asked and LOADING.background.is_possible:
            self._asked.add(kind)
            arguments = prepare()
            LOADING.background.submit(lambda: self._compile(kind, arguments))
        return False

    def _compile(self, kind: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
        self(*arguments)
        self._ready.add(kind)


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


def _judge(
    starts: Any,
    weight: Any,
    absent: Any,
    low: Any,
    high: Any,
    exact: Any,
    ratios: Any,
    needs: Any,
    tie: Any,
    out: Any,
) -> Any:
    """The rules of `rules.judge` for ratios of whole numbers.

    Values tie with the best one if they are less by no more than `tie` of it. `low`, `high` and `exact` are None where
    all entries are scores, which hide nothing. `out` is by sample the best value, that of the winner and the bound; the
    winner, its FP and its TP; and by entry whether it is unresolved. Returns whether none is.
    """
    is_final = True
    numbers, edges, unresolved = out
    for s in range(starts.size - 1):
        first, end = starts[s], starts[s + 1]
        negatives, positives = absent[s, 0], absent[s, 1]
        for i in range(first, end):
            negatives += weight[i, 0]
            positives += weight[i, 1]
        numbers[0, s] = numbers[1, s] = numbers[2, s] = -np.inf
        edges[0, s], edges[1, s], edges[2, s] = first + s, 0, 0
        if (needs[0] and negatives == 0) or (needs[1] and positives == 0):
            continue
        n0, n1, n2, d0, d1, d2 = ratios[s, 0], ratios[s, 1], ratios[s, 2], ratios[s, 3], ratios[s, 4], ratios[s, 5]
        best, tp, fp = -np.inf, np.int64(0), np.int64(0)
        winner, value_there, is_first = first, -np.inf, True
        for i in range(first, end + 1):
            bottom = d0 + d1 * tp + d2 * fp
            if bottom != 0:
                value: Any = np.float64(n0 + n1 * tp + n2 * fp) / np.float64(bottom)
                if value > best:
                    least = value - tie * abs(value)
                    if best < least:
                        winner, value_there, is_first = i, value, True
                        edges[1, s], edges[2, s] = fp, tp
                    elif value_there < least:  # another edge before this one may still tie
                        is_first = False
                    best = value
            if i < end:
                fp += weight[i, 0]
                tp += weight[i, 1]
        numbers[0, s], least = best, best
        if best > -np.inf:
            least -= tie * abs(best)
        if exact is None:  # noqa: SIM102  # numba leaves out what follows from this condition alone
            if is_first:
                edges[0, s], numbers[1, s] = winner + s, value_there
                continue
        # values are computed again, since memory is slower
        tp, fp, record = np.int64(0), np.int64(0), -np.inf
        peak, peak_tp, peak_fp, may_tie = first, np.int64(0), np.int64(0), False
        for edge in range(first, end + 1):  # above an entry, or below the last one
            bottom = d0 + d1 * tp + d2 * fp
            value = -np.inf if bottom == 0 else np.float64(n0 + n1 * tp + n2 * fp) / np.float64(bottom)
            if value >= least and value > record:
                if record == -np.inf:
                    edges[0, s], edges[1, s], edges[2, s], numbers[1, s] = edge + s, fp, tp, value
                    if exact is None:
                        break
                if exact is not None:
                    if may_tie:  # entries since the last such edge turn out to lie above one
                        for i in range(peak, edge):
                            if low[i] < high[i] and weight[i, 0] + weight[i, 1] > 1:
                                corner = peak_tp + weight[i, 1]
                                bottom = d0 + d1 * corner + d2 * peak_fp
                                bound = np.inf
                                if bottom != 0:
                                    bound = np.float64(n0 + n1 * corner + n2 * peak_fp) / np.float64(bottom)
                                if bound >= least:
                                    unresolved[i] = True
                                    numbers[2, s] = max(numbers[2, s], bound)
                            peak_fp += weight[i, 0]
                            peak_tp += weight[i, 1]
                        is_final, may_tie = False, False
                    peak, peak_tp, peak_fp = edge, tp, fp
                    if edge > first and not exact[edge - 1]:
                        unresolved[edge - 1], is_final = True, False
                    if edge < end and not exact[edge]:
                        unresolved[edge], is_final = True, False
                record = value
            if edge < end:
                if exact is not None:  # noqa: SIM102  # the same
                    if low[edge] < high[edge] and weight[edge, 0] + weight[edge, 1] > 1:
                        corner = tp + weight[edge, 1]
                        bottom = d0 + d1 * corner + d2 * fp
                        bound = np.inf if bottom == 0 else np.float64(n0 + n1 * corner + n2 * fp) / np.float64(bottom)
                        if bound > best or (bound >= least and record == -np.inf):
                            unresolved[edge], is_final = True, False
                            numbers[2, s] = max(numbers[2, s], bound)
                        elif bound >= least:
                            may_tie = True
                fp += weight[edge, 0]
                tp += weight[edge, 1]
    return is_final


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


def _best_edges(codes: Any, positives: Any, ratios: Any, needs: Any, tie: Any, buffer: Any, out: Any) -> None:
    """The rules of `rules.judge` for ratios of whole numbers, of samples that are rows of sorted codes.

    An edge below a score without positives is not better than the one above it, so that others alone are tried, unless
    the ratio is undefined at one of these. `out` is by sample the number of codes below the edge, its TP, its value.
    `buffer` has places for one more than a sample's codes.
    """
    (places, edges, accepted), (below_of, tp_of, value_of) = buffer, out
    for s in range(codes.shape[0]):
        code = codes[s]
        rows = np.int64(code.size)
        below_of[s], tp_of[s], value_of[s] = rows, 0, -np.inf
        if (needs[0] and positives[s] == rows) or (needs[1] and positives[s] == 0):
            continue
        n0, n1, n2, d0, d1, d2 = ratios[s, 0], ratios[s, 1], ratios[s, 2], ratios[s, 3], ratios[s, 4], ratios[s, 5]
        at_none = -np.inf if d0 == 0 else np.float64(n0) / np.float64(d0)
        every, again = d0 == 0, True
        best, count = at_none, np.uint64(0)
        while again:
            best, count, again = at_none, np.uint64(0), False
            if every:
                tp = np.int64(0)
                for i in range(rows - 1, -1, -1):
                    tp += np.int64(code[i] & np.uint64(1))
                    if i == 0 or code[i - 1] >> np.uint64(1) != code[i] >> np.uint64(1):
                        edges[count], accepted[count] = i, tp
                        count += np.uint64(1)
            else:
                found: Any = np.uint64(0)
                for i in range(code.size):
                    places[found] = i
                    found += code[i] & np.uint64(1)
                for p in range(found):
                    edge: Any = places[found - np.uint64(1) - p]
                    key = code[edge] >> np.uint64(1)
                    if p + np.uint64(1) < found and code[places[found - np.uint64(2) - p]] >> np.uint64(1) == key:
                        continue  # another positive has the same score
                    while edge > np.uint64(0) and code[edge - np.uint64(1)] >> np.uint64(1) == key:
                        edge -= np.uint64(1)
                    edges[count], accepted[count] = edge, p + np.uint64(1)
                    count += np.uint64(1)
            for k in range(count):
                tp = accepted[k]
                fp = rows - edges[k] - tp
                bottom = d0 + d1 * tp + d2 * fp
                if bottom != 0:
                    best = max(best, np.float64(n0 + n1 * tp + n2 * fp) / np.float64(bottom))
                elif not every:
                    again = True
            every = True
        if best == -np.inf:
            continue
        least = best - tie * abs(best)
        value, tried = at_none, np.uint64(0)
        while value < least:
            tp = accepted[tried]
            fp = rows - edges[tried] - tp
            bottom = d0 + d1 * tp + d2 * fp
            value = -np.inf if bottom == 0 else np.float64(n0 + n1 * tp + n2 * fp) / np.float64(bottom)
            below_of[s], tp_of[s] = edges[tried], tp
            tried += np.uint64(1)
        value_of[s] = value


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


HISTOGRAM, OCCUPIED, INSIDE, CODES, RUNS, JUDGE, POSITIONS = (
    _Kernel(one) for one in (_histogram, _occupied, _inside, _codes, _runs, _judge, _positions)
)
COUNT_AT, FLAGGED = _Kernel(_count_at), _Kernel(_flagged)
COLUMN_CODES, BEST_EDGES, COLUMN_BINS, COLUMN_ROWS = (
    _Kernel(one) for one in (_column_codes, _best_edges, _column_bins, _column_rows)
)
"""Compiled, or read from numba's cache, when they are first called."""


def judge(
    entries: Entries, ratio: WholeRatio, needs: tuple[bool, bool], tie: float, waits: bool
) -> tuple[Any, ...] | None:
    """What `rules.judge` finds of a ratio of whole numbers; None while the kernel is not ready, unless it `waits`."""
    samples = entries.samples
    ratios = _coefficients(ratio, samples)
    given: list[Any] = [entries.starts, entries.weight, entries.absent]
    given += [None, None, None] if entries.in_scores else [entries.low, entries.high, entries.exact]
    given = [one if one is None or one.flags.c_contiguous else np.ascontiguousarray(one) for one in given]
    numbers, edges = np.empty((3, samples)), np.empty((3, samples), dtype=np.int64)
    unresolved = np.zeros(len(entries), dtype=bool)
    rest = ratios, needs, tie, (numbers, edges, unresolved)
    kind = tuple([one is not None and one.flags.writeable for one in given])
    if not waits and not JUDGE.is_ready(kind, lambda: (given[0][:1], *given[1:], *rest)):
        return None
    is_final = JUDGE(*given, *rest)
    best, value, bound = numbers
    return best, edges[0], value, unresolved, bound, is_final, edges[1:]


def _coefficients(ratio: WholeRatio, samples: int) -> NDArray[np.int64]:
    """Shape (samples, 6): numerator and denominator in (1, TP, FP)."""
    if samples == 1:
        return np.array([[*ratio.numerator, *ratio.denominator]]).reshape(1, 6)
    ratios = np.empty((samples, 6), dtype=np.int64)
    for column, coefficient in enumerate((*ratio.numerator, *ratio.denominator)):
        ratios[:, column] = coefficient
    return ratios


class CompiledKernels(Kernels):
    """The compiled kernels. While one is not compiled for some types of arrays, NumPy takes its place, or it `waits`.

    Labels are 64-bit integers or bytes; others become bytes.
    """

    reads_once = True

    def __init__(self, waits: bool = False) -> None:
        self._waits = waits

    @cached_property
    def _in_numpy(self) -> NumpyKernels:
        """What takes the place of kernels that are not compiled yet."""
        return NumpyKernels()

    def _scores(self, column: Any) -> tuple[Any, Any, Any]:
        """Scores as float64 in two views, or a buffer for a piece of them; and float32 scores, if they are."""
        if column.dtype == np.int64:
            return column, column.view(np.float64), None
        buffer = self.buffers.array("piece", LOOK, np.float64)
        return buffer.view(np.int64), buffer, column

    def _labels(self, labels: Any, positive: Any, negative: Any) -> tuple[Any, Any, Any]:
        if labels.dtype in (np.int64, np.uint8):
            return labels, positive, negative
        codes = self.buffers.array("labels", len(labels), np.uint8)
        np.not_equal(labels, negative, out=codes.view(bool))
        codes <<= 1
        codes[labels == positive] = 1
        return codes, np.uint8(1), np.uint8(1 if positive == negative else 0)

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
        marks: Any = NO_MARKS,
    ) -> tuple[int, int, int]:
        # What is known to be None when a kernel is compiled is left out of it.
        weighted = weights if len(weights) else None
        noted = only if len(only) else None
        out = rows.reshape(-1), sums.reshape(-1)
        buffer = self.buffers.array("bins", PIECE, np.uint32)
        codes, *classes = self._labels(labels, positive, negative)
        marked = marks if len(marks) else None
        weight_bits = None if weighted is None or marked is None else weights.view(np.uint64)
        columns = *self._scores(bits), codes, weighted
        rest = *classes, tuple(bins), buffer, out, noted, marked, weight_bits
        kind = (*_kind(*columns), rows.dtype, sums.dtype, noted is None, marked is None)
        if not self._waits and not HISTOGRAM.is_ready(kind, lambda: (*_nothing(*columns), *rest)):
            return self._in_numpy.histogram(bits, labels, weights, positive, negative, bins, rows, sums, only, marks)
        found: tuple[int, int, int] = HISTOGRAM(*columns, *rest)
        return found

    def occupied(self, counts: Counts, bins: FirstBins) -> OccupiedBins:
        weighted = counts.weight is not counts.rows
        size = len(counts.rows)
        number, rows = np.empty(size + 1, dtype=np.int64), np.empty((size, 2), dtype=np.int64)
        low, high = np.empty((2, size), dtype=np.uint64)
        weight = np.empty((size if weighted else 0, 2))
        given = counts.rows, counts.weight if weighted else None
        rest = tuple(bins), number, low, high, (rows, weight)
        kind = counts.rows.dtype, weighted
        if not self._waits and not OCCUPIED.is_ready(kind, lambda: (*given, (*rest[0][:3], np.int64(0)), *rest[1:])):
            return super().occupied(counts, bins)
        counts.move(int(bins.half) - 1, int(bins.half))
        found = OCCUPIED(*given, *rest)
        number, low, high, rows = number[:found], low[:found], high[:found], rows[:found]
        marks = counts.marks[number] if len(counts.marks) else NO_MARKS
        return OccupiedBins(number, low, high, Counts(rows, weight[:found] if weighted else rows, marks))

    def sorted_rows(self, bits: Any, labels: Any, positive: Any, negative: Any) -> SortedRows:
        size = len(bits)
        codes = np.empty(size, dtype=np.uint64)
        keys, rows = np.empty(size, dtype=np.uint64), np.empty((size, 2), dtype=np.int64)
        given, *classes = self._labels(labels, positive, negative)
        if not self._waits:
            kind = _kind(bits, given)
            can_code = CODES.is_ready(kind, lambda: (*_nothing(bits, given), *classes, codes[:0]))
            if not RUNS.is_ready((), lambda: (codes[:0], np.uint64(0), keys[:0], rows[:0])) or not can_code:
                return self._in_numpy.sorted_rows(bits, labels, positive, negative)
        positives, invalid, nans, checksum, lowest, highest = CODES(bits, given, *classes, codes)
        if (highest - lowest) >> 63:
            return self._in_numpy.sorted_rows(bits, labels, positive, negative)
        codes.sort()
        found = RUNS(codes, np.uint64(lowest), keys, rows)
        return SortedRows(keys[:found], rows[:found], positives, invalid, nans, checksum % 2**64)

    def inside(self, bits: Any, labels: Any, weights: Any, positive: Any, ranges: KeyRanges) -> tuple[Any, Any, Any]:
        keys = self.buffers.array("keys", len(bits), np.uint64)
        classes = self.buffers.array("classes", len(bits), np.bool_)
        copied = self.buffers.array("weights", len(weights), np.float64)
        weighted = weights if len(weights) else None
        given, marked = self._labels(labels, positive, positive)[:2]
        columns = *self._scores(bits), given, weighted
        cells = None if ranges.cells is None else tuple(ranges.cells)
        places = self.buffers.array("places", LOOK, np.uint32)
        buffer = *self._look(), places
        ends = ranges.singles() if bits.dtype == np.float32 else (ranges.lowest, ranges.highest)
        rest = marked, (ranges.low, ranges.high, *ends), cells, buffer, (keys, classes, copied)
        kind = (*_kind(*columns), cells is None)
        if not self._waits and not INSIDE.is_ready(kind, lambda: (*_nothing(*columns), *rest)):
            return self._in_numpy.inside(bits, labels, weights, positive, ranges)
        found = INSIDE(*columns, *rest)
        return keys[:found].copy(), classes[:found].copy(), copied[:found].copy()

    def positions(self, run: Any, free: Any, ends: Any) -> Any:
        found = self.buffers.array("positions", len(run), np.int64)
        kind = _kind(run, free, ends)
        if not self._waits and not POSITIONS.is_ready(kind, lambda: (run[:0], free, ends, found)):
            return self._in_numpy.positions(run, free, ends)
        return found if POSITIONS(run, free, ends, found) else None

    def _look(self) -> tuple[Any, ...]:
        """Flags, the same as words, groups of flags, and rows, for a piece."""
        flags = self.buffers.array("flags", LOOK, np.bool_)
        groups = self.buffers.array("groups", LOOK // GROUP + 1, np.uint64)
        return flags, flags.view(np.uint64), groups, self.buffers.array("rows", LOOK + 1, np.uint64)

    def sorts_columns(self, scores: NDArray[Any], truth: NDArray[Any]) -> bool:
        if not _are_plain(scores, truth):
            return False
        if self._waits:
            return True
        can_code = COLUMN_CODES.is_ready(
            _kind_of_matrices(scores, truth), lambda: self._nothing_sorted(scores, truth)[0]
        )
        can_judge = BEST_EDGES.is_ready((), lambda: self._nothing_sorted(scores, truth)[1])
        return can_code and can_judge

    def sorted_columns(self, scores: NDArray[Any], truth: NDArray[Any], labels: slice) -> SortedColumns:
        rows, number = len(scores), labels.stop - labels.start
        codes = self.buffers.array("codes", number * rows, np.uint64).reshape(number, rows)
        positives, checksums = np.empty((2, number), dtype=np.int64)
        lowest, below_gap, gap = np.empty((3, number), dtype=np.uint64)
        out = codes, positives, checksums, (lowest, below_gap, gap)
        nans, widest = COLUMN_CODES(scores, truth, labels.start, highest_of(scores.dtype), self._column(rows), *out)
        fit = widest >> 63 == 0
        if fit:
            codes.sort(axis=1)
        return SortedColumns(codes if fit else None, lowest, below_gap, gap, positives, nans, checksums.view(np.uint64))

    def best_edges(self, columns: SortedColumns, ratio: WholeRatio, needs: tuple[bool, bool], tie: float) -> BestEdges:
        codes = columns.codes
        assert codes is not None
        samples, rows = codes.shape
        below, tp = np.empty((2, samples), dtype=np.int64)
        value = np.empty(samples)
        buffer = self._edges(rows)
        BEST_EDGES(codes, columns.positives, _coefficients(ratio, samples), needs, tie, buffer, (below, tp, value))
        upper, lower = (columns.scores(beside) for beside in (np.minimum(below, rows - 1), np.maximum(below - 1, 0)))
        return BestEdges(below, tp, value, lower, upper)

    def bins_columns(self, scores: NDArray[Any], truth: NDArray[Any]) -> bool:
        if not _are_plain(scores, truth):
            return False
        if self._waits:
            return True
        kind = _kind_of_matrices(scores, truth)
        can_bin = COLUMN_BINS.is_ready(kind, lambda: self._nothing_binned(scores, truth)[0])
        can_collect = COLUMN_ROWS.is_ready(kind[:1], lambda: self._nothing_binned(scores, truth)[1])
        return can_bin and can_collect

    def binned_columns(
        self, scores: NDArray[Any], truth: NDArray[Any], labels: slice, bins: NDArray[np.int64], width: int
    ) -> BinnedRows:
        arguments = self._binned(scores, truth, labels, bins, width)
        nans = COLUMN_BINS(*arguments)
        places, counts, checksums = arguments[-3:]
        return BinnedRows(places, counts.reshape(-1, width, 2), nans, checksums.view(np.uint64))

    def collected_columns(
        self,
        scores: NDArray[Any],
        labels: slice,
        places: NDArray[np.uint16],
        entry: NDArray[np.int32],
        ends: NDArray[np.uint16],
        starts: NDArray[np.int64],
    ) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        arguments = self._collected(scores, labels, places, entry, ends, starts[:-1].copy(), int(starts[-1]))
        COLUMN_ROWS(*arguments)
        keys, classes = arguments[-1]
        return keys, classes

    def _binned(
        self, scores: NDArray[Any], truth: NDArray[Any], labels: slice, bins: NDArray[np.int64], width: int
    ) -> tuple[Any, ...]:
        """Arguments of the kernel that counts columns in bins."""
        number = labels.stop - labels.start
        places = self.buffers.array("binned", number * len(scores), np.uint16).reshape(number, len(scores))
        counts = np.zeros((number, 2 * width), dtype=np.int32)
        out = places, counts, np.zeros(number, dtype=np.int64)
        return scores, truth, labels.start, highest_of(scores.dtype), self._column(TILE), bins, *out

    def _collected(
        self,
        scores: NDArray[Any],
        labels: slice,
        places: NDArray[np.uint16],
        entry: NDArray[np.int32],
        ends: NDArray[np.uint16],
        starts: NDArray[np.int64],
        size: int,
    ) -> tuple[Any, ...]:
        """Arguments of the kernel that collects rows of columns."""
        buffer = *self._look(), *self._column(LOOK)[:2]
        out = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.bool_)
        return scores, labels.start, highest_of(scores.dtype), places, entry, ends, buffer, starts, out

    def _nothing_binned(self, scores: NDArray[Any], truth: NDArray[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The same of the kernels for bins."""
        none = slice(0, 0)
        binned = self._binned(scores, truth, none, np.empty((0, 4), dtype=np.int64), 0)
        wanted = np.empty((0, 0), dtype=np.int32), np.empty((0, 2), dtype=np.uint16), np.empty(0, dtype=np.int64)
        return binned, self._collected(scores, none, binned[-3], *wanted, 0)

    def _column(self, rows: int) -> tuple[Any, ...]:
        doubles = self.buffers.array("doubles", rows, np.float64)
        return doubles, doubles.view(np.int64), self.buffers.array("classes", rows, np.bool_)

    def _edges(self, rows: int) -> tuple[Any, ...]:
        positives = self.buffers.array("positives", rows + 1, np.uint64)
        return positives, self.buffers.array("edges", rows + 1, np.int64), self.buffers.array("tp", rows + 1, np.int64)

    def _nothing_sorted(self, scores: NDArray[Any], truth: NDArray[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arguments of the two kernels for no column."""
        codes, whole = np.empty((0, 0), dtype=np.uint64), np.empty(0, dtype=np.int64)
        out = codes, whole, whole, (codes.reshape(-1),) * 3
        ratios = np.empty((0, 6), dtype=np.int64)
        judged = codes, whole, ratios, (False, False), 0.0, self._edges(0), (whole, whole, np.empty(0))
        return (scores, truth, 0, highest_of(scores.dtype), self._column(0), *out), judged

    def count_at(self, bits: Any, labels: Any, positive: Any, negative: Any, threshold: float) -> RowsAt:
        codes, *classes = self._labels(labels, positive, negative)
        columns = bits, bits.view(np.float64), codes
        rest = *classes, np.float64(threshold if threshold < np.inf else np.nan)  # +inf accepts nothing
        if not self._waits and not COUNT_AT.is_ready(_kind(*columns), lambda: (*_nothing(*columns), *rest)):
            return self._in_numpy.count_at(bits, labels, positive, negative, threshold)
        found = RowsAt(*COUNT_AT(*columns, *rest))
        return found._replace(checksum=found.checksum % 2**64)

    def flagged(self, bits: Any, flags: NDArray[np.bool_], shift: np.int64) -> NDArray[np.int64]:
        rows = self.buffers.array("flagged", len(bits), np.int64)
        columns = bits, flags
        if not self._waits and not FLAGGED.is_ready(_kind(*columns), lambda: (bits[:0], flags, shift, rows[:0])):
            return self._in_numpy.flagged(bits, flags, shift)
        found = FLAGGED(*columns, shift, rows)
        return rows[:found].copy()


def _kind(*columns: Any) -> tuple[Any, ...]:
    """What kernels are compiled for."""
    return tuple(None if column is None else (column.dtype, column.flags.writeable) for column in columns)


def _kind_of_matrices(*matrices: NDArray[Any]) -> tuple[Any, ...]:
    """The same for matrices, which may stand in memory by row, by column, or as a part of others."""
    return tuple((*_kind(one), one.flags.c_contiguous, one.flags.f_contiguous) for one in matrices)


def _are_plain(*matrices: NDArray[Any]) -> bool:
    """Whether compiled kernels read these numbers as they are."""
    return all(
        one.dtype.isnative and (one.dtype.kind in "iu" or one.dtype in (np.float32, np.float64)) for one in matrices
    )


def _nothing(*columns: Any) -> list[Any]:
    """Columns of the same kind without rows."""
    return [None if column is None else column[:0] for column in columns]


# --- Rows that are drawn again ---------------------------------------------------------------------------------------


def _draw_counts(
    uniforms: Any, size: Any, cell: Any, cell_of: Any, cumulated: Any, guide: Any, counts: Any, missing: Any
) -> None:
    """`kernels.draw_counts_in_numpy`, resample by resample."""
    for r in range(counts.shape[0]):
        uniform, count = uniforms[r], counts[r]
        for j in range(count.size):
            count[j] = 0
        left = np.int64(cell_of.size)
        for k in range(cell.size):
            table = np.uint64(size[k]) * np.uint64(LEVELS)
            number = np.uint64(guide[table + np.uint64(uniform[k] * LEVELS)])
            while uniform[k] >= cumulated[table + number]:
                number += np.uint64(1)
            count[np.uint64(cell[k])] += np.int64(number)
            left -= np.int64(number)
        missing[r] = left
        if left <= uniform.size - cell.size:
            for k in range(cell.size, cell.size + left):
                count[np.uint64(cell_of[np.uint64(uniform[k] * cell_of.size)])] += 1


DRAW_COUNTS = _Kernel(_draw_counts)


def draw_counts(
    drawn: DrawnCells, uniforms: NDArray[np.float64], counts: NDArray[np.int64], waits: bool
) -> NDArray[np.int64] | None:
    """What `kernels.draw_counts` finds; None while the kernel is not ready, unless it `waits`."""
    columns = drawn.size, drawn.cell, drawn.cell_of, drawn.cumulated.reshape(-1), drawn.guide.reshape(-1)
    missing = np.empty(len(uniforms), dtype=np.int64)
    if not waits and not DRAW_COUNTS.is_ready((), lambda: (uniforms[:0], *columns, counts[:0], missing[:0])):
        return None
    DRAW_COUNTS(uniforms, *columns, counts, missing)
    return missing
