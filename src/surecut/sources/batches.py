"""Rows that are read as Arrow batches, again and again: files, DuckDB, Polars, PyArrow. They need not fit in memory.

The batches go through the kernels that arrays go through. Two passes are enough as a rule, and one pass often is:
while it counts, the first pass keeps the rows around the cut that is best on the first rows, and where the search asks
for no others, these are its survivors.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surecut._inputs import EXACT_DIGITS, LARGEST_EXACT_INTEGER, as_doubles, fits_double, not_doubles
from surecut._labels import (
    INVALID,
    LISTED,
    NEGATIVE,
    POSITIVE,
    LabelKind,
    LabelRule,
    Labels,
    as_written,
    stored,
    wrong_type,
)
from surecut._missing import Missing
from surecut._plurals import all_of
from surecut.core import kernels
from surecut.core.bins import KeyRanges, first_bins
from surecut.core.counts import Counts, Parts, RowMarks
from surecut.core.entries import Entries
from surecut.core.keys import ordered_keys, scores_of_keys
from surecut.core.search import SourceChangedError
from surecut.core.settings import settings
from surecut.core.tally import ScoreTally
from surecut.core.threads import on_stream
from surecut.overlap import RowSample
from surecut.positive_class import settle_absence
from surecut.sample import Sample
from surecut.sources.arrays import ArraySource
from surecut.sources.columns import Columns, not_numbers
from surecut.sources.rows import NO_WEIGHTS, FoundRows, Histogram, KeptRows, RowSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.bins import FirstBins
    from surecut.core.kernels import Kernels
    from surecut.core.rules import Objective

EVERY_KEY = np.zeros(1, dtype=np.uint64), np.full(1, np.iinfo(np.uint64).max)
"""The ends of a range that holds all scores."""

Range = tuple[float, float]
"""A closed range of scores, as float64."""


class Batches(Protocol):
    """What can be read again and again as Arrow batches of score, label and, where there are any, weight."""

    @property
    def schema(self) -> pa.Schema:
        """The columns' types."""

    def read(self, within: Range | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, or at least those with a score in a range."""


class Block(NamedTuple):
    """The columns of a batch as NumPy arrays, without the rows that lack a value."""

    scores: NDArray[Any]
    labels: NDArray[Any]
    weights: NDArray[np.float64]

    @property
    def columns(self) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float64]]:
        """What kernels take."""
        return as_doubles(self.scores).view(np.int64), self.labels, self.weights

    @classmethod
    def joined(cls, blocks: Iterable[Block]) -> Block:
        return cls(*(np.concatenate(column) for column in zip(*blocks, strict=True)))


@dataclass
class Findings:
    """What a worker has found in its batches of the first pass."""

    counts: Counts
    rows: int = 0
    invalid: int = 0
    nans: int = 0
    checksum: int = 0
    missing: Missing = field(default_factory=Missing)
    kept: list[FoundRows] = field(default_factory=list)
    seen: list[RowSample] = field(default_factory=list)

    def __iadd__(self, other: Findings) -> Findings:
        self.counts += other.counts
        self.rows += other.rows
        self.invalid += other.invalid
        self.nans += other.nans
        self.checksum += other.checksum
        self.missing = self.missing.plus(other.missing)
        self.kept += other.kept
        self.seen += other.seen
        return self


class Window:
    """Some ranges of keys (ascending) whose rows the first pass keeps, unless they become too many."""

    def __init__(self, ranges: list[tuple[Any, Any]], most: int) -> None:
        ends = (np.array(column, dtype=np.uint64) for column in zip(*_without_overlap(ranges), strict=True))
        self._ranges = KeyRanges.of(*ends)
        self._most = most
        self._rows = 0

    @property
    def is_open(self) -> bool:
        return self._rows <= self._most

    def found_in(self, reads: Kernels, block: Block, positive: Any) -> list[FoundRows]:
        """The rows of a block that are to be kept."""
        if not self.is_open:
            return []
        found = _found(reads, block, positive, self._ranges)
        self._rows += len(found)
        return [found]

    def kept(self, pieces: list[FoundRows]) -> KeptRows | None:
        """What all blocks have given; None where it was too much."""
        return KeptRows(self._ranges.low, self._ranges.high, pieces) if self.is_open and pieces else None


class BatchSource(RowSource):
    """Batches that are read again in every pass.

    `objectives` only guide the guess which rows the first pass should keep, and what is said of labels that do not do.
    """

    sorts_flat_curves = False

    def __init__(
        self, batches: Batches, columns: Columns, missing: str = "error", objectives: Sequence[Objective] = ()
    ) -> None:
        super().__init__(settings())
        self.batches, self.columns, self.missing, self.objectives = batches, columns, missing, objectives
        schema = batches.schema
        self._score = ScoreColumn(schema.types[0], columns.score)
        self._label = LabelColumn(schema.types[1], LabelRule(columns.pos_label, columns.label))
        if columns.weight is not None and not (pa.types.is_null(schema.types[2]) or _is_number(schema.types[2])):
            raise not_numbers(columns.weight, schema.types[2])
        self._in_memory: ArraySource | None = None
        self._seen: list[RowSample] = []
        self._marks = RowMarks.none()
        self._loops: kernels.Kernels = kernels.NumpyKernels()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._score.dtype

    @property
    def weighted(self) -> bool:
        return self.columns.weight is not None

    @property
    def _kernels(self) -> kernels.Kernels:
        """The loops for the next batch: compiled ones may be loaded while batches are read."""
        if isinstance(self._loops, kernels.NumpyKernels):
            newer = kernels.available(self.settings.batch, self.settings)
            self._loops = self._loops if isinstance(newer, kernels.NumpyKernels) else newer
        return self._loops

    @property
    def resolvable_rows(self) -> float:
        return self.settings.kept_rows  # more need not fit in memory

    @property
    def sample(self) -> Sample:
        if self._in_memory is None:
            return super().sample
        return replace(self._in_memory.sample, seen=self.seen())

    def count(self, every: bool = False) -> Entries:
        """All rows in bins; sources of few rows are read into memory, and counted there."""
        if every:
            return self._all_in_memory().count(every)
        stream = self.batches.read()
        head, ended = _take(stream, self.settings.head)
        if ended:
            return self._read_into_memory(head).count()
        self._stream: Iterator[pa.RecordBatch] = chain(head, stream)
        self._head = head
        return self.binned()

    def refine(self, wide: Entries) -> Entries | None:
        return super().refine(wide) if self._in_memory is None else self._in_memory.refine(wide)

    def histogram(self) -> Histogram:
        blocks = [self._block(batch)[0] for batch in self._head]
        scores = _spread(np.concatenate([as_doubles(block.scores) for block in blocks]))
        bins = first_bins(np.sort(scores), self.settings.first_bits)
        window = self._guess(blocks, bins)

        def work(found: Findings, batch: pa.RecordBatch) -> None:
            block, missing = self._block(batch)
            codes = self._label.positive, self._label.negative
            counts = found.counts
            seen = self._kernels.histogram(*block.columns, *codes, bins, counts.rows, counts.weight, marks=counts.marks)
            found.rows += batch.num_rows
            found.invalid += int(seen[0])
            found.nans += int(seen[1])
            found.checksum += int(seen[2])
            found.missing = found.missing.plus(missing)
            found.seen.append(self._seen_of(block))
            if window is not None:
                found.kept += window.found_in(self._kernels, block, self._label.positive)

        def nothing() -> Findings:
            return Findings(Counts.zeros(2 * int(bins.half), self.weighted, marked=True))

        found = functools.reduce(operator.iadd, self._each(self._stream, nothing, work))
        self._stream, self._head = iter(()), []
        self._check(found)
        self._seen = found.seen
        self.kept = None if window is None else window.kept(found.kept)
        _, low, high, counts = self._kernels.occupied(found.counts, bins)
        self._marks = RowMarks(low[::-1], high[::-1], counts.marks[::-1])
        return Histogram(low, high, counts, found.checksum % 2**64)

    def count_parts(self, parts: Parts, keep: bool) -> Counts:
        ranges = KeyRanges.of(parts.low, parts.high)

        def nothing() -> tuple[Counts, list[FoundRows]]:
            return Counts.zeros(parts.total, self.weighted, marked=True), []

        def work(found: tuple[Counts, list[FoundRows]], batch: pa.RecordBatch) -> None:
            block, _ = self._block(batch)
            rows = _found(self._kernels, block, self._label.positive, ranges)
            rows.add_to(found[0], parts)
            if keep:
                found[1].append(rows)

        stream = self.batches.read(self._within(parts.low, parts.high))
        counts, pieces = zip(*self._each(stream, nothing, work), strict=True)
        added: Counts = functools.reduce(operator.iadd, counts)
        self._require_same(parts.low, parts.high, int(added.marks.sum(dtype=np.uint64)))
        self._marks = self._marks.divided(parts, added)
        if keep:
            self.kept = KeptRows(parts.low, parts.high, list(chain.from_iterable(pieces)))
        return added

    def extent(self, low: Any, high: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        ranges = KeyRanges.of(low, high)

        def work(found: tuple[Any, Any, list[int]], batch: pa.RecordBatch) -> None:
            block, _ = self._block(batch)
            rows = _found(self._kernels, block, self._label.positive, ranges)
            rows.extend(low, high, *found[:2])
            found[2].append(rows.mark())

        stream = self.batches.read(self._within(low, high))
        smallest, largest, marks = zip(*self._each(stream, lambda: (high.copy(), low.copy(), []), work), strict=True)
        self._require_same(low, high, sum(chain.from_iterable(marks)))
        return np.minimum.reduce(smallest), np.maximum.reduce(largest)

    def collect(self, low: Any, high: Any) -> ScoreTally:
        ranges = KeyRanges.of(low, high)

        def work(found: list[FoundRows], batch: pa.RecordBatch) -> None:
            found.append(_found(self._kernels, self._block(batch)[0], self._label.positive, ranges))

        parts: list[list[FoundRows]] = self._each(self.batches.read(self._within(low, high)), list, work)
        found = list(chain.from_iterable(parts))
        if not found:
            raise SourceChangedError
        rows = FoundRows.joined(found).within(low, high)
        self._require_same(low, high, rows.mark())
        return rows.tally()

    def _require_same(self, low: Any, high: Any, marks: int) -> None:
        """Raise unless a pass has found the very rows in some bins (ascending) that the first pass found there."""
        if not self._marks.are_those(low, high, marks):
            raise SourceChangedError

    def tally(self) -> ScoreTally:
        """All rows, by distinct score; they have to fit in memory."""
        return self._all_in_memory().tally()

    def seen(self) -> tuple[RowSample, ...]:
        """Some rows, to recognise them by."""
        if self._in_memory is not None:
            rows = self._in_memory
            return (self._seen_of(Block(rows.scores, rows.labels.codes, rows.weights)),)
        scores, is_positive = (
            np.concatenate([getattr(one, column) for one in self._seen]) for column in ("scores", "is_positive")
        )
        return (RowSample.of_stream(scores, is_positive),)

    def _seen_of(self, block: Block) -> RowSample:
        """Some rows of a block; engines may read the same rows in another order, and in other batches, every time."""
        present = block.weights > 0 if self.weighted else slice(None)
        return RowSample.of_stream(block.scores[present], block.labels[present] == self._label.positive)

    def _all_in_memory(self) -> ArraySource:
        return self._in_memory or self._read_into_memory(list(self.batches.read()))

    def _read_into_memory(self, batches: list[pa.RecordBatch]) -> ArraySource:
        blocks = [self._block(batch) for batch in batches]
        if not blocks:
            raise ValueError("the frame holds no rows: at least one is needed")
        block = Block.joined(block for block, _ in blocks)
        found = Findings(Counts.zeros(1, self.weighted), rows=sum(batch.num_rows for batch in batches))
        found.missing = functools.reduce(Missing.plus, (missing for _, missing in blocks))
        labels = Labels(block.labels, self._label.positive, self._label.negative, self._label.rule)
        found.nans = int(np.count_nonzero(np.isnan(block.scores))) if self.dtype.kind == "f" else 0
        found.invalid = int(np.count_nonzero((labels.codes != labels.positive) & (labels.codes != labels.negative)))
        present = block.weights > 0 if self.weighted else slice(None)
        found.counts.rows[0] = np.bincount(labels.is_positive()[present], minlength=2)
        self._check(found)
        if self._rows:  # they were counted before
            keys, is_positive = ordered_keys(as_doubles(block.scores))[present], labels.is_positive()[present]
            rows = FoundRows(keys, is_positive, block.weights[present] if self.weighted else NO_WEIGHTS, self.dtype)
            self._require_same(*EVERY_KEY, rows.mark())
        self._in_memory = ArraySource(block.scores, labels, block.weights if self.weighted else None)
        return self._in_memory

    def _block(self, batch: pa.RecordBatch) -> tuple[Block, Missing]:
        """The columns as arrays, and the rows that had to be left out."""
        columns, missing = self._present(batch)
        weights = _weights(columns[2], str(self.columns.weight)) if self.weighted else NO_WEIGHTS
        return Block(self._score.values(columns[0]), self._label.codes(columns[1]), weights), missing

    def _present(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], Missing]:
        """The columns without the rows that lack a value, and how many these are."""
        columns = batch.columns
        absent = [
            self._score.is_absent(columns[0], nan_too=self.missing == "drop"),
            self._label.is_absent(columns[1]),
            *(_absent_weights(column) for column in columns[2:]),
        ]
        counted = [0, 0, 0]
        if any(mask is not None for mask in absent):
            gone = np.zeros(batch.num_rows, dtype=bool)
            for part, mask in enumerate(absent):
                if mask is not None:
                    lacking = mask.to_numpy(zero_copy_only=False) & ~gone
                    counted[part] = int(np.count_nonzero(lacking))
                    gone |= lacking
            columns = batch.filter(pa.array(~gone)).columns
        return columns, Missing(*counted)

    def _check(self, found: Findings) -> None:
        """Raise where rows lack a value, labels are more than two, or nothing is left."""
        if not found.rows:
            raise ValueError("the frame holds no rows: at least one is needed")
        missing = found.missing.plus(Missing(score=found.nans))
        missing.settle(self.missing, found.rows)
        negative, positive = found.counts.rows.sum(axis=0)
        if found.invalid or not self._label.is_settled(saw_positive=bool(positive)):
            classes = self._label.rule.classes(self._distinct_labels())
            settle_absence(classes.absent, [objective.metric for objective in self.objectives])
            if found.invalid:
                raise SourceChangedError
        if not negative + positive:
            raise ValueError(
                f"{self.columns.weight} is zero in {all_of(found.rows, 'row')}: nothing is left to tune on"
            )

    def _distinct_labels(self) -> list[Any]:
        found: dict[Any, None] = {}
        for batch in self.batches.read():
            found |= dict.fromkeys(self._label.distinct(self._present(batch)[0][1]))
            if len(found) > LISTED:
                break
        return list(found)

    def _within(self, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> Range:
        """The range of scores that some keys span; the last finite key stands for +inf too."""
        first, last = (float(end) for end in scores_of_keys(np.array([low[0], high[-1]])))
        largest = float(np.finfo(self.dtype).max) if self.dtype.kind == "f" else np.inf
        return first, np.inf if last >= largest else last

    def _guess(self, blocks: list[Block], bins: FirstBins) -> Window | None:
        """Where the search may ask for rows, judging from the first ones."""
        counts = Counts.zeros(2 * int(bins.half), self.weighted)
        codes = self._label.positive, self._label.negative
        for block in blocks:
            self._kernels.histogram(*block.columns, *codes, bins, counts.rows, counts.weight)
        _, low, high, counts = self._kernels.occupied(counts, bins)
        if not len(low) or not self.objectives:
            return None
        entries = Entries.of(low, high, counts.rows, counts.weight)
        ranges = []
        for objective in self.objectives:
            try:
                objective.check(entries.totals)
            except ValueError:  # no row of a class so far
                return None
            values = objective.values(entries.edges)
            if not (values > -np.inf).any():
                return None
            first, last = _around_the_best(values, counts.rows.sum(axis=1), self.settings.kept_share)
            ranges.append((entries.low[last], entries.high[first]))
        return Window(ranges, self.settings.kept_rows)

    def _each(self, stream: Iterable[pa.RecordBatch], nothing: Any, work: Any) -> list[Any]:
        return on_stream(stream, nothing, work, self.settings.available_cores)


class ScoreColumn:
    """Scores of an Arrow type in a NumPy dtype of their own."""

    def __init__(self, kind: pa.DataType, name: str) -> None:
        self.name = name
        self._is_decimal, self._is_bool = pa.types.is_decimal(kind), pa.types.is_boolean(kind)
        self._may_be_inexact = pa.types.is_int64(kind) or pa.types.is_uint64(kind)
        if self._is_decimal or self._is_bool:
            self.dtype = np.dtype(np.float64 if self._is_decimal else np.uint8)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            self.dtype = np.dtype(kind.to_pandas_dtype())
        else:
            raise not_numbers(name, kind)

    def is_absent(self, column: pa.Array, nan_too: bool) -> pa.Array | None:
        """Which rows have no score; None where all have one. NaN is counted by the kernels where it is an error."""
        if column.null_count or (nan_too and self.dtype.kind == "f" and not self._is_decimal):
            return _is_null_or_nan(column) if nan_too else column.is_null()
        return None

    def values(self, column: pa.Array) -> NDArray[Any]:
        if self._is_decimal:  # through text, since Arrow's own cast is off by a bit now and then
            text = column.cast(pa.string())
            digits = pc.utf8_trim(pc.replace_substring_regex(text, "[-.]|E.*", ""), characters="0")
            long = column.filter(pc.greater(pc.utf8_length(digits), EXACT_DIGITS))
            inexact = [value for value in long.drop_null().to_pylist() if not fits_double(value)]
            if inexact:
                raise not_doubles(self.name, inexact[0], len(inexact))
            column = text.cast(pa.float64())
        elif self._is_bool:
            column = column.cast(pa.uint8())
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if self._may_be_inexact and len(values):
            largest = max(abs(int(values.min())), abs(int(values.max())))
            if largest > LARGEST_EXACT_INTEGER:
                raise ValueError(
                    f"{self.name} holds the integer {largest}, beyond 2**53, where float64 cannot tell neighbours "
                    "apart: rescale or rank the scores"
                )
        return values


class LabelColumn:
    """Labels of an Arrow type as codes; `positive` and `negative` are the two that mean something.

    Numbers are their own codes, where their type holds the positive one. The negative label is the first other one met.
    """

    def __init__(self, kind: pa.DataType, rule: LabelRule) -> None:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        label_kind = _label_kind(kind, rule.name)
        self.rule = rule
        self.positive: Any = POSITIVE
        self.negative: Any = NEGATIVE
        self._lock = threading.Lock()
        self._other: Any = None
        self._may_be_nan = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        self._are_numbers = False
        self._scalar: pa.Scalar | None = None
        if pa.types.is_boolean(kind):
            self._type = pa.uint8()
        elif pa.types.is_float16(kind):
            self._type = pa.float32()
        else:
            self._type = pa.float64() if pa.types.is_decimal(kind) else kind
        wanted = rule.positive(label_kind)
        if label_kind is LabelKind.NUMBER:
            number = stored(wanted, np.dtype(self._type.to_pandas_dtype()))
            self._are_numbers = number is not None
            if self._are_numbers:
                self.positive = self.negative = number
        elif wanted is not None:
            with suppress(pa.ArrowInvalid, pa.ArrowTypeError):  # a value that no row can have
                self._scalar = pa.scalar(wanted, kind)

    def is_absent(self, column: pa.Array) -> pa.Array | None:
        """Which rows have no label; None where all have one."""
        if column.null_count or self._may_be_nan:
            return _is_null_or_nan(_plain(column))
        return None

    def codes(self, column: pa.Array) -> NDArray[Any]:
        column = _plain(column)
        column = column if column.type == self._type else column.cast(self._type)
        if self._are_numbers:
            values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
            if self._other is None:
                self._meet(values[values != self.positive])
            return values
        if self._scalar is None:
            is_positive = np.zeros(len(column), dtype=bool)
        else:
            is_positive = pc.equal(column, self._scalar).to_numpy(zero_copy_only=False)
        if self._other is None:
            self._meet(column.filter(pa.array(~is_positive)))
        codes = np.where(is_positive, POSITIVE, NEGATIVE)
        if self._other is not None:
            codes[~is_positive & pc.not_equal(column, self._other).to_numpy(zero_copy_only=False)] = INVALID
        return codes

    def is_settled(self, saw_positive: bool) -> bool:
        """Whether the rule has nothing to say of the labels that were met, none of which is invalid."""
        if not self._are_numbers:
            return self._scalar is not None and saw_positive
        if self.rule.pos_label is not None:
            return saw_positive
        return self._other is None or self.rule.is_known(self._other)

    def distinct(self, column: pa.Array) -> list[Any]:
        """The distinct labels of a column that lacks none, as plain values."""
        found = pc.unique(_plain(column))
        if pa.types.is_floating(found.type):
            return as_written(found.to_numpy(zero_copy_only=False))
        return list(found.to_pylist())

    def _meet(self, others: Any) -> None:
        with self._lock:
            if self._other is None and len(others):
                if self._are_numbers:
                    self.negative = others[0]
                self._other = others[0]  # last, since it is read without the lock


def _label_kind(kind: pa.DataType, name: str) -> LabelKind:
    if _is_number(kind):
        return LabelKind.NUMBER
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return LabelKind.TEXT
    if pa.types.is_temporal(kind):
        raise wrong_type(name, "dates or times")
    if pa.types.is_nested(kind):
        raise wrong_type(name, f"values of type {kind}")
    return LabelKind.OTHER


def _is_number(kind: pa.DataType) -> bool:
    is_plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(is_plain or pa.types.is_decimal(kind))


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_null_or_nan(column: pa.Array) -> pa.Array:
    # Not all versions of PyArrow find NaN in half precision
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    return column.is_null(nan_is_null=True)


def _absent_weights(column: pa.Array) -> pa.Array | None:
    """Which rows have no weight; None where all have one."""
    return _is_null_or_nan(column) if column.null_count or pa.types.is_floating(column.type) else None


def _weights(column: pa.Array, name: str) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    valid = (weights >= 0) & (weights < np.inf)
    if not valid.all():
        raise ValueError(f"{name} must be finite and not negative, got {weights[valid.argmin()]!s}")
    return weights


def _found(reads: Kernels, block: Block, positive: Any, ranges: KeyRanges) -> FoundRows:
    """The rows of a block that lie in some ranges of keys."""
    return FoundRows(*reads.inside(*block.columns, positive, ranges), block.scores.dtype)


def _take(stream: Iterator[pa.RecordBatch], rows: int) -> tuple[list[pa.RecordBatch], bool]:
    """The first batches, and whether there are no others."""
    head, taken = [], 0
    for batch in stream:
        head.append(batch)
        taken += batch.num_rows
        if taken > rows:
            return head, False
    return head, True


def _spread(scores: NDArray[np.float64], size: int = 4096) -> NDArray[np.float64]:
    """Some scores from all over."""
    return scores[:: max(1, len(scores) // size)] if len(scores) else np.zeros(1)


def _around_the_best(values: NDArray[np.float64], rows: NDArray[np.int64], share: float) -> tuple[int, int]:
    """First and last of the bins around the best edge that hold the best cuts, and no more than a share of all rows."""
    best = int(values.argmax())
    upward = np.maximum.accumulate(values)
    downward = np.maximum.accumulate(values[::-1])[::-1]
    budget = share * rows.sum()
    first, last = max(best - 1, 0), min(best, len(rows) - 1)
    taken = rows[first : last + 1].sum()
    while first > 0 or last < len(rows) - 1:
        above = upward[first] if first > 0 else -np.inf  # edge i stands above bin i
        below = downward[last + 1] if last < len(rows) - 1 else -np.inf
        grown = first - 1 if above >= below else last + 1
        if taken + rows[grown] > budget:
            break
        first, last, taken = min(first, grown), max(last, grown), taken + rows[grown]
    return first, last


def _without_overlap(ranges: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Closed ranges in ascending order, with those that overlap made one."""
    disjoint: list[tuple[Any, Any]] = []
    for low, high in sorted(ranges):
        if disjoint and low <= disjoint[-1][1]:
            disjoint[-1] = disjoint[-1][0], max(high, disjoint[-1][1])
        else:
            disjoint.append((low, high))
    return disjoint
