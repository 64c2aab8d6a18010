"""A tally at a resolution: how much of each class stands in each run of scores, for one sample or for many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY = 1 << 12
"""More entries than this are worth some care with memory."""

UNTAGGED = -1
"""The tag of entries that a source knows nothing more about."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Runs of scores, sample after sample, each sample's in descending order.

    A sample is what gets a cut of its own: all rows, a label, a group. An entry with ``low == high`` is one score;
    otherwise it is a bin, and cuts inside it have not been looked at. Histograms, sketches and full tallies differ only
    in how wide their entries are.

    Attributes
    ----------
    starts
        Where each sample's entries begin; one more than there are samples.
    low, high
        The ends of each entry, as order-preserving keys. Entries of a sample do not overlap.
    rows, weight
        Shape (entries, 2), negatives first: number of rows and sum of weights. Without weights they are one array.
    absent
        Shape (samples, 2): weight of rows without a score, which no cut accepts.
    exact
        Whether both ends of each entry are scores that occur.
    tag
        What the source that made an entry knows it by.
    """

    starts: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    rows: NDArray[np.int64]
    weight: NDArray[Any]
    absent: NDArray[Any]
    exact: NDArray[np.bool_]
    tag: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        low: NDArray[np.uint64],
        high: NDArray[np.uint64],
        rows: NDArray[np.int64],
        weight: NDArray[Any],
        *,
        starts: NDArray[np.int64] | None = None,
        absent: NDArray[Any] | None = None,
        exact: NDArray[np.bool_] | bool = False,
        totals: NDArray[Any] | None = None,
    ) -> Entries:
        """Entries of one sample, or of the samples that begin at `starts`; those of one score are exact anyway.

        `totals` are for whoever knows them already.
        """
        if starts is None:
            starts = np.array([0, len(low)])
        if absent is None:
            absent = np.zeros((len(starts) - 1, 2), dtype=weight.dtype)
        known = constant(True, len(low)) if low is high else (low == high) | exact
        entries = cls(starts, low, high, rows, weight, absent, known, constant(UNTAGGED, len(low)))
        if totals is not None:
            entries.__dict__["totals"] = totals  # where the cached property keeps them
        return entries

    @classmethod
    def scores(
        cls,
        keys: NDArray[np.uint64],
        rows: NDArray[np.int64],
        weight: NDArray[Any],
        *,
        starts: NDArray[np.int64] | None = None,
        absent: NDArray[Any] | None = None,
        totals: NDArray[Any] | None = None,
    ) -> Entries:
        """Entries of one score each."""
        return cls.of(keys, keys, rows, weight, starts=starts, absent=absent, totals=totals)

    @classmethod
    def of_totals(cls, totals: NDArray[Any]) -> Entries:
        """Samples of which nothing but the weight of each class is known: shape (samples, 2), negatives first."""
        none = np.zeros((0, 2), dtype=totals.dtype)
        starts = np.zeros(len(totals) + 1, dtype=np.int64)
        return cls.scores(np.zeros(0, dtype=np.uint64), none, none, starts=starts, absent=totals)

    def __len__(self) -> int:
        return len(self.low)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.starts) - 1

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weight is not self.rows

    @cached_property
    def sample(self) -> NDArray[np.int64]:
        """The sample of each entry."""
        return np.repeat(np.arange(self.samples), np.diff(self.starts))

    def sample_of(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """The samples of some entries, by their positions."""
        return np.zeros(len(entries), dtype=np.int64) if self.samples == 1 else self.sample[entries]

    @property
    def in_scores(self) -> bool:
        """Whether every entry is one score, so that there is nothing more to know."""
        return self.low is self.high or bool(self.exact.all() and not self.is_wide.any())

    @cached_property
    def is_wide(self) -> NDArray[np.bool_]:
        """Entries inside which there may be cuts: a single row cannot be divided."""
        wide: NDArray[np.bool_] = self.low < self.high
        candidates = np.flatnonzero(wide)
        wide[candidates] = both_classes(self.rows[candidates]) > 1
        return wide

    # --- Edges: of each sample the cut that accepts nothing, then the cut below each of its entries ------------------

    @cached_property
    def edge_starts(self) -> NDArray[np.int64]:
        """Where each sample's edges begin; one more than there are samples."""
        return self.starts + np.arange(self.samples + 1)

    @cached_property
    def edge_below(self) -> NDArray[np.int64]:
        """The edge below each entry; the one above it is the edge before."""
        return np.arange(1, len(self) + 1) + self.sample

    @cached_property
    def edges(self) -> Confusion:
        """The confusion of every edge."""
        if not self.in_floats:
            if self.samples == 1:
                return self.edges_at(slice(None), 0)
            return self.edges_at(np.arange(len(self) + self.samples), self.of_edges(np.arange(self.samples)))
        tp, fp = (self._accepted(column) for column in (1, 0))
        fn, tn = (self._rejected(column) for column in (1, 0))
        return Confusion(tp=tp, fp=fp, fn=fn, tn=tn)

    def edges_at(self, which: Any, sample: Any) -> Confusion:
        """The confusion of some edges of some samples. Those of counts are looked up without computing all others."""
        if self.in_floats:
            return self.edges[which]
        fp, tp = self.accepted_at(which, sample)
        negatives, positives = self.totals[sample].T
        return Confusion(tp=tp, fp=fp, fn=positives - tp, tn=negatives - fp)

    def edge(self, position: int) -> Confusion:
        """The confusion of one edge of the only sample, in plain numbers."""
        if self.in_floats:
            return self.edges[position]
        above = self.weight[:position]
        return self.with_accepted(int(above[:, 0].sum()), int(above[:, 1].sum()))

    def with_accepted(self, fp: int, tp: int) -> Confusion:
        """The confusion of the cut of the only sample that accepts so many rows of each class, of counts."""
        negatives, positives = self.totals[0].tolist()
        return Confusion(tp=tp, fp=fp, fn=positives - tp, tn=negatives - fp)

    def accepted_at(self, which: Any, sample: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Negatives and positives above some edges of some samples, of counts."""
        negatives, positives = self._counted
        if self.samples == 1:
            return negatives[which], positives[which]
        position, first = which - sample, self.starts[sample]
        return negatives[position] - negatives[first], positives[position] - positives[first]

    @property
    def in_floats(self) -> bool:
        """Whether sums of weights may be rounded."""
        return self.weight.dtype.kind == "f"

    @cached_property
    def totals(self) -> NDArray[Any]:
        """Shape (samples, 2), negatives first: weight of each class, with and without a score."""
        if not self.in_floats:
            if self.samples == 1:
                return np.asarray(np.array([[self.weight[:, 0].sum(), self.weight[:, 1].sum()]]) + self.absent)
            negatives, positives = self._counted
            first, end = self.starts[:-1], self.starts[1:]
            above = np.column_stack((negatives[end] - negatives[first], positives[end] - positives[first]))
            return np.asarray(above + self.absent)
        tn, fn = self.edges.tn, self.edges.fn
        first = self.edge_starts[:-1]
        return np.column_stack((tn[first], fn[first]))

    @property
    def rows_by_class(self) -> tuple[int, int]:
        """Rows that have a score, negatives first, of all samples together."""
        if not self.weighted:
            negatives, positives = (self.totals - self.absent).sum(axis=0).tolist()
            return negatives, positives
        return int(self.rows[:, 0].sum()), int(self.rows[:, 1].sum())  # quicker than a sum along the long axis

    @cached_property
    def _counted(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Negatives and positives in the entries before each place, of all samples together."""
        negatives, positives = np.empty((2, len(self) + 1), dtype=self.weight.dtype)
        negatives[0] = positives[0] = 0
        self.weight[:, 0].cumsum(out=negatives[1:])
        self.weight[:, 1].cumsum(out=positives[1:])
        return negatives, positives

    def _accepted(self, column: int) -> NDArray[Any]:
        """Weight of a class above every edge."""
        weight = self.weight[:, column]
        above = np.zeros(len(weight) + self.samples, dtype=weight.dtype)
        if self.samples == 1:
            np.cumsum(weight, out=above[1:])
        else:
            above[self.edge_below] = running_sums(weight, self.starts)
        return above

    def _rejected(self, column: int) -> NDArray[Any]:
        """Weight of a class below every edge, and of its rows without a score.

        Weights are added up from both ends. A difference of sums would not be 0 where nothing is left, and small
        weights would be lost beside large ones.
        """
        absent, weight = self.absent[:, column], self.weight[:, column]
        below = np.zeros(len(weight) + self.samples)
        if self.samples == 1:
            below[:-1] = np.cumsum(weight[::-1])[::-1]
            return np.asarray(below + absent)
        backward = running_sums(weight[::-1], len(weight) - self.starts[::-1])[::-1]
        below[self.edge_below - 1] = backward
        return np.asarray(below + self.of_edges(absent))

    def of_edges(self, per_sample: Any) -> Any:
        """What is known of each sample, for each of its edges."""
        return np.repeat(per_sample, np.diff(self.edge_starts))

    def of_entries(self, per_sample: Any) -> Any:
        """What is known of each sample, for each of its entries."""
        if self.samples == 1 or np.ndim(per_sample) == 0:
            return per_sample
        return per_sample[self.sample]

    # --- Other resolutions -------------------------------------------------------------------------------------------

    def __getitem__(self, which: NDArray[np.bool_]) -> Entries:
        """Some of the entries, of the same samples."""
        positions = np.flatnonzero(which)  # few, as a rule
        return self.taken(positions, np.searchsorted(positions, self.starts), self.absent)

    def taken(self, which: Any, starts: NDArray[np.int64], absent: NDArray[Any] | None = None) -> Entries:
        """Some of the entries, by any index, as samples that begin at `starts`; `absent` is by default nothing."""
        rows = self.rows[which]
        if absent is None:
            absent = np.zeros((len(starts) - 1, 2), dtype=self.weight.dtype)
        return Entries(
            starts,
            self.low[which],
            self.high[which],
            rows,
            self.weight[which] if self.weighted else rows,
            absent,
            self.exact[which],
            self.tag[which],
        )

    def of_sample(self, sample: int) -> Entries:
        """The entries of one sample."""
        first, end = self.starts[sample : sample + 2].tolist()
        return self.taken(slice(first, end), np.array([0, end - first]), self.absent[sample : sample + 1])

    def merged(self, firsts: NDArray[np.intp]) -> Entries:
        """Fewer and wider entries, each of which begins with one of these; every sample's first has to be among them.

        Their ends are exact where those of their parts are.
        """
        ends = np.append(firsts, len(self))[1:] - 1
        rows = np.add.reduceat(self.rows, firsts, axis=0) if len(firsts) else self.rows[:0]
        weight = rows
        if self.weighted:
            weight = np.add.reduceat(self.weight, firsts, axis=0) if len(firsts) else self.weight[:0]
        return Entries(
            np.searchsorted(firsts, self.starts),
            self.low[ends],
            self.high[firsts],
            rows,
            weight,
            self.absent,
            self.exact[firsts] & self.exact[ends],
            constant(UNTAGGED, len(firsts)),
        )

    def spliced(self, which: NDArray[np.bool_], finer: Entries) -> Entries:
        """These entries with some of them replaced: by the samples of `finer`, one after the other."""
        size = np.ones(len(self), dtype=np.int64)
        size[which] = np.diff(finer.starts)
        source = np.repeat(np.arange(len(self)), size)  # of each entry: one of these, or behind them a finer one
        source[which[source]] = np.arange(len(self), len(self) + len(finer))
        starts = np.array([0, len(source)])
        if self.samples > 1:
            starts = np.concatenate(([0], np.cumsum(size)))[self.starts]

        def joined(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate((mine, theirs)).take(source, axis=0)

        rows = joined(self.rows, finer.rows)
        return Entries(
            starts,
            joined(self.low, finer.low),
            joined(self.high, finer.high),
            rows,
            joined(self.weight, finer.weight) if self.weighted else rows,
            self.absent,
            joined(self.exact, finer.exact),
            joined(self.tag, finer.tag),
        )

    def one_each(self) -> Entries:
        """The same entries, each a sample of its own: what `spliced` takes, with nothing replaced."""
        return self.taken(slice(None), np.arange(len(self) + 1))


def concatenated(parts: Sequence[Entries]) -> Entries:
    """The samples of several entries, one after the other."""
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    rows = np.concatenate([part.rows for part in parts])
    weighted = any(part.weighted for part in parts)
    return Entries(
        np.concatenate(([0], *(part.starts[1:] + offset for part, offset in zip(parts, offsets, strict=False)))),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        rows,
        np.concatenate([part.weight for part in parts]) if weighted else rows,
        np.concatenate([part.absent for part in parts]),
        np.concatenate([part.exact for part in parts]),
        np.concatenate([part.tag for part in parts]),
    )


def constant(value: Any, size: int) -> NDArray[Any]:
    """An array of one value, that is not written to and takes no memory."""
    return _few_of(value)[:size] if size <= MANY else np.broadcast_to(value, size)


@lru_cache(maxsize=8, typed=True)
def _few_of(value: Any) -> NDArray[Any]:
    few = np.full(MANY, value)
    few.flags.writeable = False
    return few


def both_classes(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows or weights of both classes, from an array of shape (entries, 2); NumPy's sum along a short axis is slow."""
    return np.asarray(rows[:, 0] + rows[:, 1])


def running_sums(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of each value and those before it, run by run: from each run's first value on, so that no other rounds them.

    >>> running_sums(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 2, 2, 4]))
    array([1., 3., 3., 7.])
    """
    sums = np.empty_like(values)
    for where, taken in runs_of_like_length(starts):
        matrix = np.zeros(taken.shape)
        matrix[taken] = values[where]
        sums[where] = np.cumsum(matrix, axis=1)[taken]
    return sums


def runs_of_like_length(starts: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Runs of values, those of about one length together, as rows of a matrix: where the values of all its rows are,
    and which places of the matrix they take. Less than half of the places are left empty.

    >>> for where, taken in runs_of_like_length(np.array([0, 3, 3, 5, 9])):
    ...     print(where, taken.shape)
    [3 4] (1, 2)
    [0 1 2 5 6 7 8] (2, 4)
    """
    lengths = np.diff(starts)
    widths = np.int64(1) << np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for width in np.unique(widths[lengths > 0]).tolist():
        runs = np.flatnonzero((widths == width) & (lengths > 0))
        position = np.arange(width)
        taken = position < lengths[runs][:, None]
        yield (starts[runs][:, None] + position)[taken], taken
