"""Internal sizes shrunk, so that a handful of rows goes through all the levels that millions go through."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from surecut import _kernels

Settings = dict[str, Any]
"""What is set, by "module.name"; numbers, or the words that `_value` knows."""


def draw_settings(random: np.random.Generator, *parts: str) -> Settings:
    """Sizes for some parts of surecut; sometimes they are tiny, sometimes merely small."""

    def one_of(*values: Any) -> Any:
        return values[int(random.integers(len(values)))]

    # Starting threads takes longer than the rows need; now and then they are started all the same.
    cores = f"cores {one_of(1, 1, 1, 1, 2)}"
    settings: Settings = {"rows.available_cores": cores, "multilabel.sources.available_cores": cores}
    if "search" in parts:
        settings |= {
            "tuning.SORT_BELOW": 0,
            "multilabel.sources.SORT_BELOW": 0,
            "rows.BLOCK": one_of(4, 16),
            "rows.first_bins": f"first_bins {one_of(1, 2, 3, 5)}",
            "search.SORTED_AT_ONCE": one_of(1, 2, 8),
            "search.SORTED_SHARE": 10**6,
            "search.GROUP": one_of(2, 4),
            "search.PARTS": one_of(2, 16),
            "search.ROWS_PER_PART": one_of(1, 4),
        }
    if "kernels" in parts:
        settings["_kernels.available"] = f"kernels {one_of('numpy', 'compiled')}"
    if "sources" in parts:
        settings["multilabel.sources.ENTRIES_AT_ONCE"] = one_of(1, 8, 64)
        settings["_matrices.ROWS_AT_ONCE"] = one_of(1, 7)
    if "bins" in parts:
        settings |= {
            "multilabel.bins.FROM_ROWS": 0,
            "multilabel.bins.FROM_SIZE": 0,
            "multilabel.bins.ROWS_AT_ONCE": one_of(3, 17),
            "multilabel.bins.COPIED_SHARE": 1,
            "multilabel.bins.GROUP": one_of(2, 16),
            "multilabel.bins.SAMPLE": one_of(1, 8),
            "multilabel.bins.bits_for": f"bits {one_of(2, 3, 5)}",
            "multilabel.bins.compiled": f"compiled {one_of('numpy', 'compiled')}",
        }
    if "batches" in parts:
        settings |= {
            "frames.batches.BATCH": one_of(3, 8),
            "frames.batches.HEAD": one_of(2, 8, 1000),
            "frames.batches.KEPT_SHARE": one_of(0.05, 0.5),
            "frames.batches.KEPT_AT_MOST": one_of(0, 4, 1000),
            "frames.batches.available_cores": cores,
            "frames.batches.first_bins": f"first_bins {one_of(1, 2, 3, 5)}",
        }
    if "grouped" in parts:
        settings |= {
            "frames.grouped.SHIPPED": one_of(2, 8),
            "frames.grouped.PARTS": one_of(4, 16),
            "frames.grouped.RUNS": one_of(1, 2),
            "frames.grouped.GroupedRows.binned.__defaults__": (one_of(1, 4),),  # FINE, bound when it was defined
        }
    if "by_group" in parts:
        settings |= {
            "frames.by_group.SHIPPED": one_of(2, 8),
            "frames.by_group.SHIPPED_EACH": one_of(0, 1),
            "frames.by_group.BINS": one_of(8, 64),
            "frames.by_group.PARTS_EACH": one_of(2, 4),
            "frames.by_group.FINE": one_of(1, 4),
        }
    return settings


def _kernels_named(name: str) -> Any:
    compiled = None if name == "numpy" else _kernels.compiled()
    return _kernels.NumpyKernels() if compiled is None else compiled


def _value(value: Any) -> Any:
    """What is set; a text names a function, so that settings can be printed, pickled and replayed."""
    if not isinstance(value, str):
        return value
    kind, argument = value.split()
    makers: dict[str, Callable[[], Any]] = {
        "first_bins": lambda: lambda sample, bits=None: _first_bins(sample, int(argument)),
        "cores": lambda: lambda: int(argument),
        "bits": lambda: lambda rows: int(argument),
        "kernels": lambda: lambda count: _kernels_named(argument),
        "compiled": lambda: lambda: _kernels_named(argument),
    }
    return makers[kind]()


_first_bins = _kernels.first_bins


@contextmanager
def shrunk(settings: Settings) -> Iterator[None]:
    """Within this context the sizes are these. A size that surecut no longer has is an error, not skipped."""
    before = []
    try:
        for path, value in settings.items():
            owner, name = _owner(path)
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, _value(value))
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


@functools.cache
def _owner(path: str) -> tuple[Any, str]:
    """The module, class or function that has an attribute, and the attribute's name."""
    *parents, name = path.split(".")
    owner: Any = importlib.import_module("surecut")
    for i, parent in enumerate(parents):
        if not hasattr(owner, parent):
            importlib.import_module(".".join(["surecut", *parents[: i + 1]]))
        owner = getattr(owner, parent)
    return owner, name
