"""The loops of `core.label_rows`, `core.contests` and `core.sweeps`, as these have them in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from surecut.core.compiled.kernel import Kernel


def _join(
    gain: Any,
    eta: Any,
    truth: Any,
    weight: Any,
    columns: Any,
    indptr: Any,
    rows: Any,
    entries: Any,
    labels: Any,
    label: Any,
    k: Any,
    slope: Any,
    offset: Any,
    by_gain: Any,
    place: Any,
    rival: Any,
    gained: Any,
    lost: Any,
    size: Any,
    threshold_of: Any,
    eta_of: Any,
    tp: Any,
    predicted: Any,
) -> Any:
    """Write where rows join a label, and return how many may; `tp` and `predicted` become those where none has joined.

    `labels` is 0 for a sparse matrix, otherwise the number of columns of a dense one.
    """
    values = np.empty(k)
    places = np.empty(k, dtype=np.int64)
    count = rows.size if labels == 0 else gain.size // labels
    weighted = weight.size > 0
    moved = 0
    for i in range(count):
        if labels == 0:
            row, p = rows[i], entries[i]
            start, end = indptr[row], indptr[row + 1]
        else:
            row, p = i, i * labels + label
            start, end = i * labels, i * labels + labels
        threshold, q = -np.inf, -1
        if k == 1:
            for one in range(start, end):
                if gain[one] > threshold and one != p:
                    threshold, q = gain[one], one
        else:
            for c in range(k):
                values[c] = -np.inf
                places[c] = -1
            for one in range(start, end):
                value = gain[one]
                if one != p and value > values[k - 1]:
                    c = k - 1
                    while c > 0 and value > values[c - 1]:
                        values[c] = values[c - 1]
                        places[c] = places[c - 1]
                        c -= 1
                    values[c] = value
                    places[c] = one
            threshold, q = values[k - 1], places[k - 1]
        other = -1
        if q >= 0:
            other = q - start if labels > 0 else columns[q]
        own, score = gain[p], eta[p]
        present = own > -np.inf and (own > threshold or (own == threshold and label < other))
        always = present
        mass = weight[row] if weighted else 1.0
        if abs(score) < np.inf and abs(threshold) < np.inf:
            moves = True
            at = threshold - score * slope
            if by_gain:
                moves = score > 0
                if moves:
                    at = (threshold - offset) / score
                    if at <= 0:
                        moves = False
                        always = True
            moves = moves and abs(at) < np.inf  # no finite number is enough for others
            if moves:
                always = False
                place[moved] = at
                rival[moved] = other
                gained[moved] = mass * truth[p]
                lost[moved] = mass * truth[q]
                size[moved] = mass
                threshold_of[moved] = threshold
                eta_of[moved] = score
                moved += 1
        if present != always:
            sign = mass if always else -mass
            predicted[label] += sign
            tp[label] += sign * truth[p]
            if other >= 0:
                predicted[other] -= sign
                tp[other] -= sign * truth[q]
    return moved


def _walk(
    order: Any,
    place: Any,
    rival: Any,
    gained: Any,
    lost: Any,
    size: Any,
    tp: Any,
    predicted: Any,
    label: Any,
    ratios: Any,
    terms: Any,
    better: Any,
) -> Any:
    """The row after which the sum of ratios is best, as rows join in this order, and the sum; -1 for none of them."""
    rest = 0.0
    for j in range(tp.size):
        below = ratios[4, j] + ratios[5, j] * tp[j] + ratios[6, j] * predicted[j]
        terms[j] = 0.0
        if below != 0:
            terms[j] = ratios[0, j] * (ratios[1, j] + ratios[2, j] * tp[j] + ratios[3, j] * predicted[j]) / below
        rest += terms[j]
    best, found = rest, -1
    rest -= terms[label]
    true, accepted = tp[label], predicted[label]
    for t in range(order.size):
        i = order[t]
        r = rival[i]
        tp[r] -= lost[i]
        predicted[r] -= size[i]
        true += gained[i]
        accepted += size[i]
        below = ratios[4, r] + ratios[5, r] * tp[r] + ratios[6, r] * predicted[r]
        term = 0.0
        if below != 0:
            term = ratios[0, r] * (ratios[1, r] + ratios[2, r] * tp[r] + ratios[3, r] * predicted[r]) / below
        rest += term - terms[r]
        terms[r] = term
        if t + 1 < order.size and place[order[t + 1]] == place[i]:
            continue
        below = ratios[4, label] + ratios[5, label] * true + ratios[6, label] * accepted
        value = rest
        if below != 0:
            above = ratios[1, label] + ratios[2, label] * true + ratios[3, label] * accepted
            value += ratios[0, label] * above / below
        if value > best + better:
            best, found = value, i
    return found, best


def _bin(
    place: Any,
    rival: Any,
    gained: Any,
    lost: Any,
    size: Any,
    lowest: Any,
    scale: Any,
    bin_of: Any,
    of_rows: Any,
    of_lost: Any,
    of_gained: Any,
) -> None:
    """Count rows by bin of their place and by rival, as `contests.binned` does."""
    highest = np.float64(of_gained.size - 2)
    for i in range(place.size):
        at = (place[i] - lowest) * scale
        if at < -1.0:
            at = -1.0
        if at > highest:
            at = highest
        b = np.int64(np.floor(at)) + 1
        bin_of[i] = b
        of_rows[b, rival[i]] += size[i]
        of_lost[b, rival[i]] += lost[i]
        of_gained[b] += gained[i]


def _choose(
    scores: Any, truth: Any, weight: Any, a: Any, offsets: Any, k: Any, found: Any, tp: Any, predicted: Any
) -> None:
    """Write the k labels of each row of a dense matrix whose a·score + b is largest, the largest first, and count them.

    `found` has a row for each row, or a single one that is written again and again where the counts alone are wanted.
    """
    labels = scores.shape[1]
    values = np.empty(k)
    for i in range(scores.shape[0]):
        row = found[i if found.shape[0] > 1 else 0]
        for c in range(k):
            values[c] = -np.inf
            row[c] = -1
        for j in range(labels):
            value = scores[i, j]
            if abs(value) < np.inf:
                value = value * a[j] + offsets[j]
            if value > values[k - 1]:
                c = k - 1
                while c > 0 and value > values[c - 1]:
                    values[c] = values[c - 1]
                    row[c] = row[c - 1]
                    c -= 1
                values[c] = value
                row[c] = j
        mass = weight[i] if weight.size > 0 else 1.0
        for c in range(k):
            j = row[c]
            if j >= 0:
                predicted[j] += mass
                tp[j] += mass * truth[i, j]


def _choose_stored(scores: Any, columns: Any, indptr: Any, a: Any, offsets: Any, k: Any, found: Any) -> Any:
    """The same of the entries of a sparse matrix, row by row; and how many they are."""
    values = np.empty(k)
    places = np.empty(k, dtype=np.int64)
    number = 0
    for i in range(indptr.size - 1):
        filled = 0
        for c in range(k):
            values[c] = -np.inf
        for p in range(indptr[i], indptr[i + 1]):
            value = scores[p]
            if abs(value) < np.inf:
                value = value * a[columns[p]] + offsets[columns[p]]
            if value > values[k - 1]:
                c = k - 1
                while c > 0 and value > values[c - 1]:
                    values[c] = values[c - 1]
                    places[c] = places[c - 1]
                    c -= 1
                values[c] = value
                places[c] = p
                filled = min(filled + 1, k)
        for c in range(filled):
            found[number] = places[c]
            number += 1
    return number


join = Kernel(_join)
walk = Kernel(_walk)
count_in_bins = Kernel(_bin)
choose = Kernel(_choose)
choose_stored = Kernel(_choose_stored)
