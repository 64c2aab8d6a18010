"""The rules of `core.rules` for ratios of whole numbers: of entries, and of columns of a matrix that are sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.core.compiled.kernel import Kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries
    from surecut.metrics import WholeRatio


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


JUDGE, BEST_EDGES = Kernel(_judge), Kernel(_best_edges)
"""Compiled, or read from numba's cache, when they are first called."""


def judge(
    entries: Entries, ratio: WholeRatio, needs: tuple[bool, bool], tie: float, waits: bool
) -> tuple[Any, ...] | None:
    """What `rules.judge` finds of a ratio of whole numbers; None while the kernel is not ready, unless it `waits`."""
    samples = entries.samples
    ratios = coefficients(ratio, samples)
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


def coefficients(ratio: WholeRatio, samples: int) -> NDArray[np.int64]:
    """Shape (samples, 6): numerator and denominator in (1, TP, FP)."""
    if samples == 1:
        return np.array([[*ratio.numerator, *ratio.denominator]]).reshape(1, 6)
    ratios = np.empty((samples, 6), dtype=np.int64)
    for column, coefficient in enumerate((*ratio.numerator, *ratio.denominator)):
        ratios[:, column] = coefficient
    return ratios
