"""Sizes at which the work is done in another way. No answer depends on them; tests shrink them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Sizes that sources read when they are made.

    Attributes
    ----------
    cores
        Threads to work with; None for as many as the process may use.
    kernels
        ``"numpy"`` or ``"compiled"``; None for compiled ones where numba is installed and has been loaded.
    compile_after
        Once NumPy has read so many rows, numba is loaded in the background.
    block, blocks_at_once
        Rows that a kernel reads at once, so few that converted scores stay in cache; and how many such blocks are read
        as one where nothing has to be converted.
    rows_per_worker, compiled_rows_per_worker
        Fewer rows are not worth another thread, whose memory is new: rows that NumPy reads, and that compiled loops do.
    sort_below
        Fewer rows than this are sorted; a search would not be faster.
    first_bits
        About 2**first_bits first bins of each sign.
    group
        So many neighbouring entries are judged as one, since most groups hold no better cut either.
    sorted_at_once, sorted_share
        So few candidate rows are sorted at once; beyond that, at most one in `sorted_share` of all rows.
    flat_share, flat_bins
        Where more than one in `flat_share` rows are candidates, in at least `flat_bins` bins or after a division, the
        curve is flat: they are sorted.
    rows_per_part, parts
        Unresolved bins are divided into about one part for so many of their rows, and at most so many parts in all.
    entries_at_once
        Scores of labels that are sorted together, if a label has no more.
    matrix_rows
        Rows of a matrix that are looked at together where each entry is looked at once.
    binned_rows, binned_size
        With fewer rows, or fewer scores, labels of a dense matrix are sorted instead of binned.
    label_bits
        The bins of a label are a power of two; None for one that suits its rows.
    label_sample
        Scores of a label that its bins are made for.
    label_group
        Bins of a label that are judged as one.
    labels_at_once, copied_share, copied_bytes, copied_rows
        Columns of a matrix that are read together: their scores of a row are a few whole cache lines. All threads
        together copy at most one in `copied_share` bytes at a time, or `copied_bytes` if this is more, `copied_rows`
        rows after the other.
    batch, head
        Rows of a batch; and how many rows are looked at before the counting starts. A source that has no more is read
        once, into memory.
    kept_share, kept_rows
        The share of rows that the first pass over batches keeps, around the cut that is best on the first ones, and how
        many it keeps at most.
    shipped, shipped_by_group, shipped_each
        So many rows may be fetched from an engine by distinct score; with groups, and for each group.
    grouped_bytes
        With groups, the rows of a frame that can be streamed are read into memory if they need no more bytes.
    engine_bins
        First bins of all groups in an engine together, as far as one bin per octave allows, and parts of bins.
    broadcast
        A table of no more rows is sent to every worker of Spark, to be joined where the rows are.
    duckdb_memory
        What an embedded DuckDB may keep in memory before it writes temporary files, in its own notation.
    fine
        First bins in an engine per octave around 1; fewer the further away.
    parts_each
        A bin in an engine is divided into at least so many parts.
    """

    cores: int | None = None
    kernels: str | None = None
    compile_after: int = 15_000_000
    block: int = 1 << 17
    blocks_at_once: int = 4
    rows_per_worker: int = 1 << 19
    compiled_rows_per_worker: int = 3 << 19
    sort_below: int = 30_000
    first_bits: int = 15
    group: int = 64
    sorted_at_once: int = 1 << 14
    sorted_share: int = 16
    flat_share: int = 4
    flat_bins: int = 1024
    rows_per_part: int = 16
    parts: int = 1 << 15
    entries_at_once: int = 1 << 17
    matrix_rows: int = 1024
    binned_rows: int = 8192
    binned_size: int = 4_000_000
    label_bits: int | None = None
    label_sample: int = 512
    label_group: int = 32
    labels_at_once: int = 64
    copied_share: int = 15
    copied_bytes: int = 1 << 24
    copied_rows: int = 512
    batch: int = 1 << 17
    head: int = 1 << 20
    kept_share: float = 1 / 32
    kept_rows: int = 1 << 23
    shipped: int = 1 << 17
    shipped_by_group: int = 1 << 22
    shipped_each: int = 16
    grouped_bytes: int = 1 << 28
    engine_bins: int = 1 << 21
    broadcast: int = 1 << 21
    duckdb_memory: str = "700MB"
    fine: int = 1024
    parts_each: int = 4

    @property
    def available_cores(self) -> int:
        """The threads to work with."""
        if self.cores is not None:
            return self.cores
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1

    def workers(self, rows: int, compiled: bool) -> int:
        """How many threads are worth starting for so many rows, read by compiled loops or by NumPy."""
        return min(
            self.available_cores, 1 + rows // (self.compiled_rows_per_worker if compiled else self.rows_per_worker)
        )


_CURRENT: ContextVar[Settings] = ContextVar("surecut_settings", default=Settings())  # noqa: B039  # it is frozen


def settings() -> Settings:
    """The settings in force."""
    return _CURRENT.get()


@contextmanager
def using(**sizes: Any) -> Iterator[Settings]:
    """Other settings, for sources that are made within this context.

    >>> with using(sort_below=10) as shrunk:
    ...     settings().sort_below
    10
    """
    token = _CURRENT.set(replace(_CURRENT.get(), **sizes))
    try:
        yield _CURRENT.get()
    finally:
        _CURRENT.reset(token)
