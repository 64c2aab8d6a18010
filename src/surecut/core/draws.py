"""Rows that are drawn again: the counts of resamples, in NumPy; compiled where numba is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.kernels import Buffers, compiled_module, run_starts
from surecut.core.keys import INF
from surecut.core.settings import settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.settings import Settings

Draw = Callable[[np.random.Generator, int], "NDArray[Any]"]
"""From random numbers and a number of resamples to weights by resample, bin and class (negatives first).

The array may be a buffer, in each thread another one, that the next resamples are written to.
"""

ROWS_PER_CELL = 200
"""With no more rows by bin and class, in the mean, Poisson numbers of rows are drawn sooner than binomial ones."""

SHORT = 3.0
"""So many times √n of n rows are left, in the mean, to be drawn one by one after the Poisson numbers."""

COARSE = 200
"""Bins of equal weight over all scores, half of them for each class."""

NEAR = 1000
"""Bins around each cut."""

REACH = 5.0
"""So many times n^(2/3) rows to both sides of the cut: where a threshold that is tuned again may come to stand."""

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
        return cls(len(cell), len(filled), size, cell, np.repeat(np.arange(len(rows)), rows), *_poisson_tables(rate))


@lru_cache(maxsize=16)
def _poisson_tables(rate: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """`DrawnCells.cumulated` and `guide`; labels of one matrix have as many rows, and one rate."""
    means = rate * np.arange(PIECE_ROWS + 1)
    factors = np.divide.outer(means, np.arange(1, LEVELS))
    chances = np.concatenate((np.ones((len(means), 1)), factors.cumprod(axis=1)), axis=1) * np.exp(-means)[:, None]
    cumulated = chances.cumsum(axis=1)
    cumulated[:, -1] = INF  # every number ends there
    steps = np.arange(LEVELS) / LEVELS
    guide = np.array([one.searchsorted(steps, side="right") for one in cumulated])
    return cumulated, guide


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


def bin_starts(rows: NDArray[np.int64], cuts: Sequence[int]) -> NDArray[np.intp]:
    """Where bins begin, of entries with so many rows of each class (descending), from which rows are drawn again.

    `cuts` are numbers of entries that a cut accepts: a bin begins right below each, and bins are narrow around it.
    """
    if len(rows) <= COARSE + NEAR:
        return np.arange(len(rows))
    ends = []
    for column in rows.T:  # bins of equal weight in each class: rare positives get as many as the negatives
        cumulated = np.cumsum(column)
        ends.append(np.searchsorted(cumulated, np.linspace(0, cumulated[-1], COARSE // 2)))
    accepted = np.asarray(cuts)
    above = np.concatenate(([0], np.cumsum(rows.sum(axis=1))))
    around = REACH * above[-1] ** (2 / 3) * np.linspace(-1, 1, NEAR)
    ends.append(np.searchsorted(above, (above[accepted][:, None] + around).ravel()))
    starts = np.concatenate(([0], *ends, accepted))
    return np.unique(starts[starts < len(rows)])


def counts_drawn(rows: NDArray[np.int64]) -> Draw:
    """As many rows as there are, drawn with replacement: how many of each bin and class."""
    return _poisson_drawn(rows) if int(rows.sum()) <= ROWS_PER_CELL * rows.size else _binomial_drawn(rows)


def _binomial_drawn(rows: NDArray[np.int64]) -> Draw:
    """The number of rows in each cell (bin and class), one after the other."""
    total = int(rows.sum())
    shares = (rows / total).ravel()
    return lambda rng, size: rng.multinomial(total, shares, size=size).reshape(size, *rows.shape)


def _poisson_drawn(rows: NDArray[np.int64]) -> Draw:
    """The same numbers, of all cells independently.

    Independent Poisson numbers with means in the ratio of the cells are, given their sum, those of so many rows. Their
    means add up to somewhat less than all rows; the rows that are missing are drawn one by one. Where the sum is too
    large, or so small that the random numbers for these rows do not suffice, all are drawn again. That depends on
    nothing but the sum, so that the numbers have a multinomial distribution, to the precision of float64.
    """
    total, cells = int(rows.sum()), rows.ravel()
    short = SHORT * math.sqrt(total)
    drawn = DrawnCells.of(cells, max(0.0, 1 - short / total))
    numbers, buffers = drawn.pieces + math.ceil(2 * short), Buffers()

    def fill(rng: np.random.Generator, counts: NDArray[np.int64]) -> NDArray[np.intp]:
        """Draw counts; returns the resamples that have to be drawn again."""
        uniforms = buffers.array("uniforms", len(counts) * numbers, np.float64)
        missing = draw_counts(drawn, rng.random(out=uniforms).reshape(-1, numbers), counts, settings())
        return np.flatnonzero((missing < 0) | (missing > numbers - drawn.pieces))

    def draw(rng: np.random.Generator, size: int) -> NDArray[Any]:
        counts = buffers.array("counts", size * rows.size, np.int64).reshape(size, rows.size)
        again = fill(rng, counts)
        while len(again):
            others = np.empty((len(again), rows.size), dtype=np.int64)
            wrong = fill(rng, others)
            counts[again] = others
            again = again[wrong]
        return counts.reshape(size, *rows.shape)

    return draw
