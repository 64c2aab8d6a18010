"""Rows that are drawn again: the counts of resamples, in NumPy; compiled where numba is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surecut.core.kernels import compiled_module, run_starts
from surecut.core.keys import INF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.settings import Settings

PIECE_ROWS = 64
"""A cell of more rows is drawn in pieces of so many."""

LEVELS = 256
"""Entries of a table: Poisson numbers of mean `PIECE_ROWS` are smaller, and the leading 8 bits of a uniform random
number say from which one on to look."""

NUMBERS_AT_ONCE = 1 << 15
"""Random numbers that NumPy turns into counts at once: so few stay in cache."""


class DrawnCells(NamedTuple):
    """Cells of rows from which rows are drawn with replacement, as Poisson numbers first.

    Attributes
    ----------
    pieces, filled
        How many Poisson numbers there are: one for every cell that has rows, and one more for every `PIECE_ROWS` of
        further rows; and how many cells have rows.
    size, cell
        The rows of each piece, and its cell: first a piece of each cell, then the others, cell by cell.
    cell_of
        The cell of each row.
    cumulated
        Shape (`PIECE_ROWS` + 1, `LEVELS`): by the rows of a piece, the probabilities of 0, of at most 1, and so on.
    guide
        Of the same shape: how many of these are at most i / `LEVELS`.
    """

    pieces: int
    filled: int
    size: NDArray[np.int64]
    cell: NDArray[np.int64]
    cell_of: NDArray[np.int64]
    cumulated: NDArray[np.float64]
    guide: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.int64], rate: float) -> DrawnCells:
        """Cells of so many rows each, whose Poisson numbers have `rate` times these rows as means."""
        filled = np.flatnonzero(rows)
        more = (rows - 1) // PIECE_ROWS
        cell = np.concatenate((filled, np.repeat(filled, more[filled])))
        size = np.full(len(cell), PIECE_ROWS)
        size[: len(filled)] = (rows - PIECE_ROWS * more)[filled]
        means = rate * np.arange(PIECE_ROWS + 1)
        factors = np.divide.outer(means, np.arange(1, LEVELS))
        chances = np.concatenate((np.ones((len(means), 1)), factors.cumprod(axis=1)), axis=1) * np.exp(-means)[:, None]
        cumulated = chances.cumsum(axis=1)
        cumulated[:, -1] = INF  # every number ends there
        steps = np.arange(LEVELS) / LEVELS
        guide = np.array([one.searchsorted(steps, side="right") for one in cumulated])
        return cls(len(cell), len(filled), size, cell, np.repeat(np.arange(len(rows)), rows), cumulated, guide)


def draw_counts(
    drawn: DrawnCells, uniforms: NDArray[np.float64], counts: NDArray[np.int64], settings: Settings
) -> NDArray[np.int64]:
    """Write how many rows are drawn from each cell to `counts`, of shape (resamples, cells).

    Each resample has a row of uniform random numbers: one for every piece, and some more for the rows that are missing,
    which are drawn one by one. Returns how many these are. Where the random numbers do not suffice for them, or there
    are too many rows already, none is added.
    """
    module = compiled_module(settings)
    found = None if module is None else module.draw_counts(drawn, uniforms, counts, settings.kernels == "compiled")
    return draw_counts_in_numpy(drawn, uniforms, counts) if found is None else found


def draw_counts_in_numpy(
    drawn: DrawnCells, uniforms: NDArray[np.float64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`draw_counts` in NumPy."""
    counts[:] = 0
    missing = np.empty(len(uniforms), dtype=np.int64)
    at_once = max(1, NUMBERS_AT_ONCE // uniforms.shape[1])
    tables, (first_cells, more_cells) = drawn.size * LEVELS, np.split(drawn.cell, [drawn.filled])
    starts = run_starts(more_cells)
    for first in range(0, len(uniforms), at_once):
        part = slice(first, first + at_once)
        number = _poisson_numbers(drawn, uniforms[part, : drawn.pieces], tables)
        missing[part] = len(drawn.cell_of) - number.sum(axis=1)
        counts[part, first_cells] = number[:, : drawn.filled]
        if len(starts):
            counts[part, more_cells[starts]] += np.add.reduceat(number[:, drawn.filled :], starts, axis=1)
        _add_missing(drawn, uniforms[part, drawn.pieces :], missing[part], counts[part])
    return missing


def _poisson_numbers(drawn: DrawnCells, uniforms: NDArray[np.float64], tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each piece, in each resample: how many of its table's probabilities its random number reaches."""
    place = (uniforms * LEVELS).astype(np.intp)
    place += tables
    place = drawn.guide.take(place)
    place += tables
    few = np.flatnonzero(uniforms >= drawn.cumulated.take(place))
    some, high = place.take(few), uniforms.take(few)
    reached = np.ones(len(some), dtype=bool)
    while reached.any():
        some += reached
        reached = high >= drawn.cumulated.take(some)
    place.reshape(-1)[few] = some
    place -= tables
    return place


def _add_missing(
    drawn: DrawnCells, uniforms: NDArray[np.float64], missing: NDArray[np.int64], counts: NDArray[np.int64]
) -> None:
    """Add the rows that are missing in each resample, if there are random numbers for them."""
    used = np.arange(uniforms.shape[1]) < np.where(missing <= uniforms.shape[1], missing, 0)[:, None]
    cells = drawn.cell_of.take((uniforms[used] * len(drawn.cell_of)).astype(np.intp))
    cells += np.repeat(np.arange(len(counts)) * counts.shape[1], np.count_nonzero(used, axis=1))
    np.add.at(counts.reshape(-1), cells, np.int64(1))
