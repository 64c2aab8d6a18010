"""Held-out rows as columns: what a hold-out certificate needs of them, without a sort.

It needs the counts at one threshold, the rows' checksum, and to know whether the rows are among those that the cut has
seen. For the last, `overlap` compares distinct scores. Of many rows whose scores are hardly tied it is given only those
around the seen ones: in the ranges between some of the new rows, in order, in which a seen row lies, or beside them.
Such a range is chosen whatever else the new rows in it are like, and these tell how often scores coincide by chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import as_doubles, as_scores, as_weights, require_no_nan, require_same_length
from surecut._labels import Labels, as_labels, warn_of_absence
from surecut.core.kernels import Kernels, RowsAt, available
from surecut.core.keys import ordered_keys, reaches
from surecut.core.settings import settings
from surecut.core.tally import ScoreTally, tally_rows
from surecut.core.threads import on_each
from surecut.overlap import positions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.overlap import RowSample

BLOCK = 1 << 15
"""Rows that are read at once: so few that what is computed of them stays in cache."""

MANY = 1 << 17
"""Fewer rows are compared all with the seen ones."""

SAMPLE, TIED = 1 << 12, 1 / 100
"""Of so many rows at most this share may have the score of another one; otherwise all rows are compared."""

ROWS_PER_RANGE = 16
"""Rows of a range of scores in the mean."""

DIGITS = 5
"""Seen scores of so few digits are rounded: then all rows are compared, since a row need not be close to its rounded
score."""

SHIFT = np.int64(39)
"""Whether a score lies in one of the ranges is first looked up by its bits above these."""

POSITIVE_SCORES = 1 << (63 - int(SHIFT))
"""The numbers that such bits can be of scores that are not negative."""


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows, none of which has weight zero. Labels and scores without weights are checked when they are counted."""

    scores: NDArray[Any]
    labels: Labels
    weights: NDArray[np.float64] | None
    pos_label: Any = None

    @classmethod
    def of(cls, y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, pos_label: Any) -> HeldOutRows:
        """Rows as `certify` takes them."""
        labels, scores = as_labels(y_true, pos_label=pos_label, check=sample_weight is not None), as_scores(y_score)
        require_same_length(y_true=labels, y_score=scores)
        if sample_weight is None:
            return cls(scores, labels, None, pos_label)
        require_no_nan(scores)  # also where it has no weight
        weights = as_weights(sample_weight, len(scores))
        present = weights > 0
        return cls(scores[present], replace(labels, codes=labels.codes[present]), weights[present], pos_label)

    @cached_property
    def is_positive(self) -> NDArray[np.bool_]:
        """The class of each row."""
        return self.labels.is_positive()

    @cached_property
    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""
        return replace(tally_rows(self.scores, self.is_positive, self.weights), pos_label=self.pos_label)

    def at(self, threshold: float, exact: bool = True) -> ScoreTally:
        """The rows in two entries, those that reach a threshold and the others, with the checksum of all.

        They stand at the lowest score that is accepted and at the highest that is rejected; unless these are to be
        `exact`, at the threshold and right below. Raises where a label or a score is invalid.
        """
        labels = self.labels
        asked = labels.positive, labels.negative, threshold

        def work(share: range) -> list[RowsAt]:
            return [
                self._kernels.count_at(bits, np.ascontiguousarray(labels.codes[block]), *asked)
                for block, bits in self._blocks(share)
            ]

        parts = itertools.chain.from_iterable(self._on_all_cores(work))
        found = RowsAt(*map(sum, zip(*parts, strict=True)))
        if found.invalid:
            labels.check()
        if found.nans:
            require_no_nan(self.scores)
        warn_of_absence(labels.absent)
        fp, fn = found.accepted - found.tp, found.positives - found.tp
        counts = np.array([[fp, found.tp], [len(self.scores) - found.positives - fp, fn]])
        present = counts.any(axis=1)
        sums = squares = rows = counts[present]
        with np.errstate(over="ignore"):  # below the lowest float there is −inf
            ends = np.array([threshold, np.nextafter(threshold, -np.inf)])
        if exact or self.weights is not None:
            doubles = as_doubles(self.scores)
            accepted = reaches(doubles, threshold)
            if exact:
                ends = np.array([doubles[accepted].min(initial=np.inf), doubles[~accepted].max(initial=-np.inf)])
            if self.weights is not None:
                cells = 2 * ~accepted + self.is_positive
                sums, squares = (
                    np.bincount(cells, values, minlength=4).reshape(2, 2)[present]
                    for values in (self.weights, self.weights**2)
                )
        return ScoreTally(
            ordered_keys(ends[present]),
            sums,
            rows,
            squares,
            self.scores.dtype,
            found.checksum % 2**64,
            pos_label=self.pos_label,
        )

    def around(self, seen: RowSample) -> ScoreTally:
        """The rows to look for seen ones in: all of them, or of many rows those in the same ranges of scores."""
        if len(self.scores) < MANY or self._is_tied or _are_rounded(seen):
            return self.tally
        number = len(self.scores) // ROWS_PER_RANGE
        ends = np.unique(as_doubles(self.scores[positions(len(self.scores), number)]))
        ends = np.concatenate(([-np.inf], ends, [np.inf]))
        within = np.zeros(len(ends) + 1, dtype=bool)
        within[np.searchsorted(ends[1:-1], seen.scores, side="right")[:, None] + np.arange(3)] = True
        within[[0, -1]] = False  # what was beside the first range, and the last one
        low, high = ends[within[1:] & ~within[:-1]], ends[within[:-1] & ~within[1:]]
        may_be = _bits_within(low, high)

        def work(share: range) -> list[NDArray[np.intp]]:
            return [self._kernels.flagged(bits, may_be, SHIFT) + block.start for block, bits in self._blocks(share)]

        rows = np.concatenate(list(itertools.chain.from_iterable(self._on_all_cores(work))))
        tally = tally_rows(self.scores[rows], self.labels.codes[rows] == self.labels.positive, None)
        steps = np.zeros(len(tally) + 1, dtype=np.int64)
        for edges, step in ((low, 1), (high, -1)):
            np.add.at(steps, np.searchsorted(tally.scores[::-1], edges), step)
        inside = steps[:-1].cumsum()[::-1] > 0
        counts = tally.rows[inside]
        return ScoreTally(tally.keys[inside], counts, counts, counts, tally.dtype)

    @cached_property
    def _is_tied(self) -> bool:
        some = self.scores[positions(len(self.scores), SAMPLE)]
        return len(np.unique(some)) < (1 - TIED) * len(some)

    def _on_all_cores(self, work: Callable[[range], Any]) -> list[Any]:
        """Run `work` on shares of the rows, in their order."""
        workers = settings().workers(len(self.scores), self._kernels.reads_once)
        ends = [len(self.scores) * share // workers for share in range(workers + 1)]
        return on_each(work, [range(*pair) for pair in itertools.pairwise(ends)], workers)

    @cached_property
    def _kernels(self) -> Kernels:
        return available(len(self.scores), settings())

    def _blocks(self, share: range) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Bits of scores, block by block; those that are read once, and as they are, as one block."""
        as_they_are = self._kernels.reads_once and self.scores.dtype == np.float64 and self.scores.flags.c_contiguous
        size = max(BLOCK, len(share)) if as_they_are else BLOCK
        for start in share[::size]:
            block = slice(start, min(start + size, share.stop))
            yield block, self._kernels.doubles(self.scores[block]).view(np.int64)


def _bits_within(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which leading bits a score between two ends can have, by number; those of negative scores count from the end."""
    within = np.zeros(2 * POSITIVE_SCORES, dtype=bool)
    for start, smallest, largest in ((0, low, high), (POSITIVE_SCORES, -high, -low)):
        exist = largest >= 0
        first, last = ((np.maximum(one[exist], 0.0) + 0.0).view(np.int64) >> SHIFT for one in (smallest, largest))
        for one, other in zip((start + first).tolist(), (start + last).tolist(), strict=True):
            within[one : other + 1] = True
    return within


def _are_rounded(seen: RowSample) -> bool:
    return all(float(f"{score:.{DIGITS}g}") == score for score in seen.scores.tolist())
