"""Tests at fixed ranks: cuts of a small sample whose precision or NPV holds on new data, tested by all of its rows.

A pilot sample costs rows, and of a few hundred rows each counts. So the rows are ranked, from the side of the cut that
a constraint is on: "after k rows" stands for the thresholds between the k-th and the next row. Some ranks begin with a
part of the error; from there rank after rank is tested, by the k rows alone, as long as the tests pass. A chain of
tests that comes to where another begins goes on with the error of both. Nothing of this depends on labels.

Why such tests go wrong with probability `error` at most, although the thresholds are scores of the rows that test:

- Order the population as the rows are, with equal scores in random order. Let r(u) be the share of mistakes among the
  first part u of it. r is continuous. Thresholds at u break the constraint where r(u) is above what is allowed, ε. So
  they do in intervals, at whose ends r(u) = ε, but for the outermost ends.
- Take the numbers of rows up to each of these ends as given. They say of each rank whether one of its thresholds breaks
  the constraint. And r is ε on average between the ends: given these numbers, the rows up to an end are mistakes with
  probability ε, independently, in as many draws as there are rows. Beyond it, up to a place that breaks the constraint,
  they are with a probability above ε. So a rank that breaks it has at least as many mistakes as so many draws with
  probability ε, and passes its test at an error e with probability e at most.
- So, given these numbers, there are fixed hypotheses with valid tests, and the order of tests is a fixed graph: a
  sequentially rejective procedure (`testing`) rejects none that is true but with probability `error`.

Equal scores are put in a random order, which rows determine as they do a pilot sample. Only cuts between different
scores are allowed in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut.certificates.confidence import share_limits
from surecut.certificates.pilot import seed_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.quantities import SideShare
    from surecut.constraints import Constraint
    from surecut.core.entries import Entries

MOST_ROWS = 400
"""Of more rows a pilot is a small part, and finds a good start even where the rows at the end are not the best.

Ranks are better than a pilot up to a thousand rows if scores are hardly tied, and up to some three hundred if they have
few levels, since ranks between equal scores are tested, too. It may not be chosen by how often scores are tied: the
proof takes numbers of rows as given, not which of them are equal.
"""

FIRST = 0.8
"""The part of the error with which the first rank begins that can pass: it passes without a mistake."""

STEP = 4
"""The next ranks that begin with a part of the error are each so many times as high, up to half of the rows."""


def starts(constraint: Constraint, rows: int, error: float) -> list[tuple[int, float]]:
    """The ranks that begin with a part of the error, and these parts; none where rows are too few for any.

    >>> from surecut.constraints import Constraint
    >>> from surecut.metrics import get_metric
    >>> [rank for rank, part in starts(Constraint(get_metric("precision"), ">=", 0.9), 300, error=0.05)]
    [31, 124]
    """
    ranks = np.arange(1, rows + 1)
    counts = ranks if constraint.sense == ">=" else np.zeros_like(ranks)

    def first(part: float) -> int:
        can_pass = constraint.allows(_limits(constraint, counts, ranks, part))
        return int(ranks[can_pass.argmax()]) if can_pass.any() else rows + 1

    found = [first(error * FIRST)]
    while found[-1] * STEP <= rows / 2:
        found.append(found[-1] * STEP)
    if len(found) == 1:
        return [(rank, error) for rank in [first(error)] if rank <= rows]
    return [(found[0], error * FIRST), *((rank, error * (1 - FIRST) / (len(found) - 1)) for rank in found[1:])]


def cuts_by_rank(
    entries: Entries, constraint: Constraint, share: SideShare, error: float, order: int = 0
) -> tuple[NDArray[np.bool_], float]:
    """Which edges keep a constraint on new data, all at once but with probability `error`; the best limit of a start.

    The limit is NaN where rows are too few for any test.
    """
    rows = entries.rows if share.predicted else entries.rows[::-1]
    ends = np.concatenate(([0], np.cumsum(rows.sum(axis=1))))
    total = int(ends[-1])
    counts = np.cumsum(_in_order(rows, seed_of(entries, order)) == share.positives)
    passed = np.zeros(total + 1, dtype=bool)
    begun = starts(constraint, total, error)
    left, reached = 0.0, []
    ranks_begun = [*(start for start, _ in begun), total + 1]
    for (start, part), end in zip(begun, ranks_begun[1:], strict=True):
        ranks = np.arange(start, end)
        limits = _limits(constraint, counts[ranks - 1], ranks, left + part)
        passed[ranks] = np.logical_and.accumulate(constraint.allows(limits))
        left = left + part if passed[end - 1] else 0.0
        reached.append(float(limits[0]))
    allowed = passed[ends]
    best = max if constraint.sense == ">=" else min
    return (allowed if share.predicted else allowed[::-1]), best(reached, default=np.nan)


def _limits(
    constraint: Constraint, counts: NDArray[np.int64], ranks: NDArray[np.int64], error: float
) -> NDArray[np.float64]:
    """What the share surely reaches (``>=``) or does not exceed (``<=``), from so many rows of the class."""
    return np.asarray(share_limits(counts, ranks, error)[0 if constraint.sense == ">=" else 1])


def _in_order(rows: NDArray[np.int64], seed: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The class of each row, in the order of the entries; those of one entry in random order."""
    classes = np.repeat(np.tile([0, 1], len(rows)), rows.ravel())
    entry = np.repeat(np.arange(len(rows)), rows.sum(axis=1))
    random = np.random.default_rng(seed).random(len(classes))
    return np.asarray(classes[np.lexsort((random, entry))])
