"""Rows that are passed over again and again: what one pass counted, the next has to find."""

from __future__ import annotations

import numpy as np
import pytest

from surecut._labels import Labels
from surecut.core.entries import Entries
from surecut.core.keys import ordered_keys
from surecut.core.search import SourceChangedError, require_same_rows
from surecut.sources.arrays import ArraySource
from surecut.sources.rows import FoundRows

LABELS, SCORES = np.array([1, 0, 1, 0]), np.array([0.9, 0.6, 0.4, 0.1])


def source():
    return ArraySource(SCORES, Labels(LABELS, np.int64(1), np.int64(0)), None)


def wide(low, high, rows):
    ends = ordered_keys(np.array([low])), ordered_keys(np.array([high]))
    return Entries.of(*ends, np.array([rows]), np.array([rows]))


def test_a_bin_is_drawn_in_to_its_scores():
    drawn = source()._drawn_in(wide(0.3, 0.8, [1, 1]))
    np.testing.assert_array_equal(drawn.low, ordered_keys(np.array([0.4])))
    np.testing.assert_array_equal(drawn.high, ordered_keys(np.array([0.6])))
    assert drawn.exact.all()


def test_a_bin_whose_rows_are_gone_is_noticed():
    with pytest.raises(SourceChangedError, match="persist it first"):
        source()._drawn_in(wide(0.2, 0.3, [1, 1]))
    with pytest.raises(SourceChangedError):
        source().collect(*(ordered_keys(np.array([end])) for end in (0.2, 0.3)))
    with pytest.raises(SourceChangedError):
        FoundRows(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=bool), np.zeros(0), np.dtype(float)).tally()


def entries(starts, rows):
    keys = np.arange(len(rows), 0, -1).astype(np.uint64)
    rows = np.array(rows).reshape(-1, 2)
    return Entries.scores(keys, rows, rows, starts=np.array(starts))


def test_every_entry_has_to_come_back_with_its_rows():
    before = np.array([[1, 1], [2, 0]])
    require_same_rows(entries([0, 2, 3], [[1, 0], [0, 1], [2, 0]]), before)
    for starts, rows in (
        ([0, 2, 3], [[1, 0], [0, 1], [1, 1]]),  # another class
        ([0, 2, 3], [[1, 0], [0, 1], [3, 0]]),  # more rows
        ([0, 2, 2], [[1, 0], [0, 1]]),  # none in the second
        ([0, 0, 1], [[2, 0]]),  # none in the first
        ([0, 0, 0], []),  # none at all
    ):
        with pytest.raises(SourceChangedError):
            require_same_rows(entries(starts, rows), before)
