"""Counts of resamples, drawn as in `core.draws`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.core.compiled.kernel import Kernel
from surecut.core.draws import LEVELS, DrawnCells

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _draw_counts(
    uniforms: Any, size: Any, cell: Any, cell_of: Any, cumulated: Any, guide: Any, counts: Any, missing: Any
) -> None:
    """`draws.draw_counts_in_numpy`, resample by resample."""
    for r in range(counts.shape[0]):
        uniform, count = uniforms[r], counts[r]
        for j in range(count.size):
            count[j] = 0
        left = np.int64(cell_of.size)
        for k in range(cell.size):
            table = np.uint64(size[k]) * np.uint64(LEVELS)
            number = np.uint64(guide[table + np.uint64(uniform[k] * LEVELS)])
            while uniform[k] >= cumulated[table + number]:
                number += np.uint64(1)
            count[np.uint64(cell[k])] += np.int64(number)
            left -= np.int64(number)
        missing[r] = left
        if left <= uniform.size - cell.size:
            for k in range(cell.size, cell.size + left):
                count[np.uint64(cell_of[np.uint64(uniform[k] * cell_of.size)])] += 1


DRAW_COUNTS = Kernel(_draw_counts)


def draw_counts(
    drawn: DrawnCells, uniforms: NDArray[np.float64], counts: NDArray[np.int64], waits: bool
) -> NDArray[np.int64] | None:
    """What `draws.draw_counts` finds; None while the kernel is not ready, unless it `waits`."""
    columns = drawn.size, drawn.cell, drawn.cell_of, drawn.cumulated.reshape(-1), drawn.guide.reshape(-1)
    missing = np.empty(len(uniforms), dtype=np.int64)
    if not waits and not DRAW_COUNTS.is_ready((), lambda: (uniforms[:0], *columns, counts[:0], missing[:0])):
        return None
    DRAW_COUNTS(uniforms, *columns, counts, missing)
    return missing
