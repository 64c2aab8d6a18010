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
from surecut._labels import as_labels, warn_of_absence
from surecut.core.keys import ordered_keys, reaches, row_marks
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
    """Checked rows, none of which has weight zero."""

    scores: NDArray[Any]
    is_positive: NDArray[np.bool_]
    weights: NDArray[np.float64] | None
    pos_label: Any = None

    @classmethod
    def of(cls, y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, pos_label: Any) -> HeldOutRows:
        """Rows as `certify` takes them."""
        labels, scores = as_labels(y_true, pos_label=pos_label), as_scores(y_score)
        require_same_length(y_true=labels, y_score=scores)
        require_no_nan(scores)
        warn_of_absence(labels.absent)
        is_positive = labels.is_positive()
        if sample_weight is None:
            return cls(scores, is_positive, None, pos_label)
        weights = as_weights(sample_weight, len(scores))
        present = weights > 0
        return cls(scores[present], is_positive[present], weights[present], pos_label)

    @cached_property
    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""
        return replace(tally_rows(self.scores, self.is_positive, self.weights), pos_label=self.pos_label)

    def at(self, threshold: float, exact: bool = True) -> ScoreTally:
        """The rows in two entries, those that reach a threshold and the others, with the checksum of all.

        They stand at the lowest score that is accepted and at the highest that is rejected; unless these are to be
        `exact`, at the threshold and right below.
        """

        def work(share: range) -> tuple[NDArray[np.int64], int]:
            counts, marks, buffers = np.zeros((2, 2), dtype=np.int64), 0, np.empty((2, BLOCK), dtype=np.int64)
            for block, doubles in self._blocks(share):
                positive, reached = self.is_positive[block], reaches(doubles, threshold)
                marked = row_marks(doubles.view(np.int64), positive, buffers[:, : len(doubles)])
                marks += int(marked.sum(dtype=np.uint64))
                both, positives, reaching = map(np.count_nonzero, (positive & reached, positive, reached))
                counts += [[reaching - both, both], [len(positive) - positives - reaching + both, positives - both]]
            return counts, marks

        parts = self._on_all_cores(work)
        counts = np.sum([part[0] for part in parts], axis=0)
        present = counts.any(axis=1)
        sums = squares = rows = counts[present]
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
        checksum = sum(part[1] for part in parts) % 2**64
        return ScoreTally(
            ordered_keys(ends[present]), sums, rows, squares, self.scores.dtype, checksum, pos_label=self.pos_label
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
            return [
                may_be.take(doubles.view(np.int64) >> SHIFT).nonzero()[0] + block.start
                for block, doubles in self._blocks(share)
            ]

        rows = np.concatenate(list(itertools.chain.from_iterable(self._on_all_cores(work))))
        tally = tally_rows(self.scores[rows], self.is_positive[rows], None)
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
        sizes = settings()
        workers = min(sizes.available_cores, 1 + len(self.scores) // sizes.rows_per_worker)
        ends = [len(self.scores) * share // workers for share in range(workers + 1)]
        return on_each(work, [range(*pair) for pair in itertools.pairwise(ends)], workers)

    def _blocks(self, share: range) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Scores as doubles, block by block."""
        for start in share[::BLOCK]:
            block = slice(start, min(start + BLOCK, share.stop))
            yield block, as_doubles(self.scores[block])


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
