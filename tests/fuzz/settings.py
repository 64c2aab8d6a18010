"""Internal sizes shrunk, so that a handful of rows goes through all the levels that millions go through."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from surecut.core.settings import using

Settings = dict[str, Any]
"""Fields of `surecut.core.settings.Settings`."""


def draw_settings(random: np.random.Generator, *parts: str) -> Settings:
    """Sizes for some parts of surecut; sometimes they are tiny, sometimes merely small."""

    def one_of(*values: Any) -> Any:
        return values[int(random.integers(len(values)))]

    # Starting threads takes longer than the rows need; now and then they are started all the same.
    settings: Settings = {"cores": one_of(1, 1, 1, 1, 2), "rows_per_worker": one_of(8, 1 << 19)}
    settings["compiled_rows_per_worker"] = settings["rows_per_worker"]
    settings["group"] = one_of(2, 4, 64)
    if "search" in parts:
        settings |= {
            "sort_below": 0,
            "block": one_of(4, 16),
            "first_bits": one_of(1, 2, 3, 5),
            "sorted_at_once": one_of(1, 2, 8),
            "sorted_share": one_of(2, 10**6),
            "flat_share": one_of(1, 4, 0),
            "flat_bins": one_of(1, 3, 1024),
            "parts": one_of(2, 16),
            "rows_per_part": one_of(1, 4),
        }
    if "sources" in parts:
        settings["entries_at_once"] = one_of(1, 8, 64)
        settings["matrix_rows"] = one_of(1, 7)
    if "bins" in parts:
        settings |= {
            "binned_rows": 0,
            "binned_size": 0,
            "copied_rows": one_of(3, 17),
            "copied_share": 1,
            "label_group": one_of(2, 16),
            "label_sample": one_of(1, 8),
            "label_bits": one_of(2, 3, 5),
        }
    if "batches" in parts:
        settings |= {
            "batch": one_of(3, 8),
            "head": one_of(2, 8, 1000),
            "kept_share": one_of(0.05, 0.5),
            "kept_rows": one_of(0, 4, 1000),
        }
    if "grouped" in parts:
        settings |= {
            "grouped_bytes": one_of(0, 1 << 20),
            "shipped": one_of(2, 8),
            "shipped_by_group": one_of(2, 8),
            "shipped_each": one_of(0, 1),
            "engine_bins": one_of(8, 64),
            "parts_each": one_of(2, 4),
            "fine": one_of(1, 4),
        }
    return settings


def shrunk(settings: Settings) -> AbstractContextManager[Any]:
    """Within this context the sizes are these. A size that surecut no longer has is an error, not skipped."""
    return using(**settings)
