"""Entries that a source keeps in memory, and hands out in groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surecut.core.entries import Entries, concatenated
from surecut.core.settings import settings

SCORES = 4
"""So many times more scores than bins are judged one by one: scores hide nothing, and need no bounds."""

MANY_SCORES = 64
"""The same for each of many samples, whose groups are made and opened together."""


class Memory:
    """Fine entries in groups of neighbours. Most groups can hide no best cut, and are never opened.

    A group is known by its tag, its number among all groups that were handed out.
    """

    def __init__(self, group: int) -> None:
        self._group = group
        self._fine: Entries | None = None
        self._first = np.zeros(0, dtype=np.int64)
        self._end = np.zeros(0, dtype=np.int64)

    def grouped(self, fine: Entries) -> Entries:
        """Keep entries, and hand them out in groups within each sample; few of them as they are."""
        if len(fine) <= self._group**2 * (SCORES if fine.low is fine.high else 1):
            return fine
        groups = -(-np.diff(fine.starts) // self._group)  # of each sample, rounded up
        number = np.arange(groups.sum()) - np.repeat(np.cumsum(groups) - groups, groups)
        firsts = np.repeat(fine.starts[:-1], groups) + self._group * number
        coarse = fine.merged(firsts)
        offset = 0 if self._fine is None else len(self._fine)
        tag = np.arange(len(firsts)) + len(self._first)
        self._first = np.concatenate((self._first, firsts + offset))
        self._end = np.concatenate((self._end, np.append(firsts[1:], len(fine)) + offset))
        self._fine = fine if self._fine is None else concatenated((self._fine, fine))
        return replace(coarse, tag=tag)

    def opened(self, wide: Entries) -> Entries | None:
        """Groups opened, other entries as they are; None where none of them is a group."""
        is_group = wide.tag >= 0
        if self._fine is None or not is_group.any():
            return None
        first, end = self._first[wide.tag[is_group]], self._end[wide.tag[is_group]]
        sizes = end - first
        starts = np.concatenate(([0], np.cumsum(sizes)))
        which = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
        opened = self._fine.taken(which, starts)
        if is_group.all():
            return opened
        return wide.one_each().spliced(is_group, opened)


class Counted:
    """A source that is in memory at its finest resolution: a tally, sorted labels, the bins of a sketch.

    A sketch cannot be refined beyond its bins; then a search gives the best of their edges, and a bound.
    """

    resolvable_rows = float("inf")

    def __init__(self, entries: Entries, dtype: np.dtype[Any], *, refines: bool = True) -> None:
        self.dtype, self.refines = dtype, refines
        self._entries = entries
        self._group = settings().group
        self._memory = Memory(self._group)

    def count(self, every: bool = False) -> Entries:
        """All entries, in groups where samples are large: the bounds of groups tell little of a small one."""
        entries = self._entries
        few = (SCORES if entries.samples == 1 else MANY_SCORES * entries.samples) * self._group**2
        return entries if every or not self.refines or len(entries) <= few else self._memory.grouped(entries)

    def refine(self, wide: Entries) -> Entries:
        opened = self._memory.opened(wide)
        assert opened is not None, "what is no group is a score, of which there is nothing more to know"
        return opened
