"""Counts by bin and class, and bins divided into parts."""

from __future__ import annotations

import numpy as np
import pytest

from surecut.core import counts
from surecut.core.counts import Counts, Parts, RowMarks, lie_in, range_of


def some_ranges(count, generator):
    """Disjoint ranges of keys, ascending, some of one key."""
    ends = np.sort(generator.choice(10_000, 2 * count, replace=False)).astype(np.uint64)
    low, high = ends[::2], ends[1::2]
    return low, np.where(generator.random(count) < 0.2, low, high)


@pytest.mark.parametrize("count", [1, 2, counts.FEW_RANGES, counts.FEW_RANGES + 1, 40])
def test_every_key_of_a_bin_is_in_one_part_between_its_ends(count):
    generator = np.random.default_rng(count)
    low, high = some_ranges(count, generator)
    parts = Parts.of(low, high, generator.integers(0, 6, count).astype(np.uint64))
    keys = np.concatenate([np.arange(first, last + 1, dtype=np.uint64) for first, last in zip(low, high, strict=True)])
    number = parts.holding(keys)
    assert (np.diff(number) >= 0).all()
    np.testing.assert_array_equal(np.unique(number), np.arange(parts.total))
    part_low, part_high = parts.ends(np.arange(parts.total))
    np.testing.assert_array_equal(part_low, keys[np.flatnonzero(np.diff(number, prepend=-1))])
    np.testing.assert_array_equal(part_high, keys[np.flatnonzero(np.diff(number, append=parts.total))])


@pytest.mark.parametrize("count", [1, counts.FEW_RANGES, counts.FEW_RANGES + 1])
def test_few_and_many_ranges_are_distinguished_alike(count):
    generator = np.random.default_rng(7)
    low, _ = some_ranges(count, generator)
    keys = generator.integers(0, 10_000, 500).astype(np.uint64)
    np.testing.assert_array_equal(range_of(keys, low), np.searchsorted(low, keys, side="right") - 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_moved_counts_are_lost_nowhere(weighted):
    both = Counts.zeros(3, weighted)
    both.rows[...] = [[1, 2], [3, 4], [5, 6]]
    both.weight[...] = both.rows
    both.move(0, 2)
    np.testing.assert_array_equal(both.rows, [[0, 0], [3, 4], [6, 8]])
    np.testing.assert_array_equal(both.weight, both.rows)


def test_whether_bins_lie_in_ranges():
    ranges = np.array([10, 30], dtype=np.uint64), np.array([20, 40], dtype=np.uint64)
    for low, high, inside in (
        ([10, 15], [12, 20], True),
        ([31], [40], True),
        ([9], [12], False),
        ([19], [21], False),
        ([10, 41], [10, 41], False),
        ([], [], True),
    ):
        ends = (np.array(end, dtype=np.uint64) for end in (low, high))
        assert lie_in(*ranges, *ends) is inside


def test_rows_are_named_by_range_and_by_part():
    def ends(*keys):
        return np.array(keys, dtype=np.uint64)

    known = RowMarks(ends(0, 16, 32, 48), ends(15, 31, 47, 63), ends(1, 2**64 - 1, 7, 9))
    assert known.are_those(ends(0), ends(15), 1)
    assert known.are_those(ends(18), ends(19), 2**64 - 1)  # drawn in
    assert known.are_those(ends(16), ends(47), 6 + 2**64)  # neighbours as one
    assert known.are_those(ends(0, 50), ends(9, 60), 10)
    assert not known.are_those(ends(0, 50), ends(9, 60), 11)
    parts = Parts.of(ends(16), ends(47), ends(3))
    found = Counts.zeros(parts.total, weighted=False, marked=True)
    found.rows[[0, 3], 1] = 1
    found.marks[[0, 3]] = 4, 2
    finer = known.divided(parts, found)
    assert finer.are_those(ends(16), ends(23), 4)
    assert finer.are_those(ends(40), ends(47), 2)
    assert finer.are_those(ends(0, 40), ends(15, 63), 12)
    assert RowMarks.none().are_those(ends(1), ends(2), 0)
