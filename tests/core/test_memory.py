"""Entries that are kept in groups: what is opened is what was put in."""

from __future__ import annotations

import numpy as np
import pytest

from surecut.core.entries import Entries
from surecut.core.memory import Memory


def bins(keys):
    """Bins of ten keys each, descending, of one row of each class."""
    keys = np.array(keys, dtype=np.uint64)
    return Entries.of(keys, keys + np.uint64(9), np.ones((len(keys), 2), dtype=np.int64), np.ones((len(keys), 2)))


def test_few_entries_are_no_groups():
    few = bins([30, 20, 10])
    memory = Memory(2)
    assert memory.grouped(few) is few
    assert memory.opened(few) is None


def test_a_group_opens_beside_entries_that_are_none():
    memory, fine = Memory(2), bins(range(1100, 1000, -10))
    groups = memory.grouped(fine)
    assert groups.tag.tolist() == [0, 1, 2, 3, 4]
    single = bins([500])
    mixed = groups.spliced(np.array([False, True, False, False, False]), single)
    assert mixed.tag.tolist() == [0, -1, 2, 3, 4]
    opened = memory.opened(mixed)
    assert np.diff(opened.starts).tolist() == [2, 1, 2, 2, 2]
    assert opened.low.tolist() == [1100, 1090, 500, 1060, 1050, 1040, 1030, 1020, 1010]


def test_groups_of_two_countings_are_kept_apart():
    memory = Memory(2)
    first, second = (memory.grouped(bins(range(start, start - 60, -10))) for start in (1060, 2060))
    assert second.tag.tolist() == [3, 4, 5]
    for groups, start in ((first, 1060), (second, 2060)):
        assert memory.opened(groups).low.tolist() == list(range(start, start - 60, -10))


@pytest.mark.parametrize("kind", ["scores", "bins"])
def test_scores_are_judged_one_by_one_where_as_many_bins_are_not(kind):
    fine = bins(range(1060, 1000, -10))
    if kind == "scores":
        fine = Entries.scores(fine.low, fine.rows, fine.weight)
    assert (Memory(2).grouped(fine) is fine) == (kind == "scores")
