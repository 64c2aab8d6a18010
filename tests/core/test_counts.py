"""Counts by bin and class, and bins divided into parts."""

from __future__ import annotations

import numpy as np
import pytest

from surecut.core import counts
from surecut.core.counts import Counts, Parts, lie_in, range_of


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
