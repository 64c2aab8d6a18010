"""A tally of bounded size, for streams that pass once."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import (
    as_doubles,
    as_scores,
    as_weights,
    check_missing,
    require_no_nan,
    require_same_length,
    without_missing,
)
from surecut._labels import as_labels
from surecut._plurals import counted
from surecut.constraints import ConstraintLike, listed, parse_constraints
from surecut.core import kernels, rules
from surecut.core.bins import FirstBins
from surecut.core.candidates import Candidates, Hull, cut_of, hull_of
from surecut.core.counts import Counts
from surecut.core.entries import Entries
from surecut.core.keys import LARGEST_FINITE
from surecut.core.memory import Counted
from surecut.core.rules import Objective
from surecut.core.search import search
from surecut.core.settings import settings
from surecut.core.tally import CoarseTally
from surecut.decisions.cut import Cut
from surecut.metrics import get_metric
from surecut.sample import Sample, fingerprint
from surecut.sources.rows import NO_WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.constraints import Constraint
    from surecut.metrics import Metric

MAGIC, VERSION = b"surecut sketch\n", 1
HEADER = struct.Struct("<15sBBBBQQ")
"""Magic, version, bits, dtype, weighted or not, checksum of the rows, number of bins."""
TRAILER = struct.Struct("<I")
"""CRC of all that stands before."""
DTYPES = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16))


@dataclass(frozen=True)
class SketchCut(Cut):
    """A cut from a sketch, with a bracket of the best value that any threshold attains on the same rows.

    The cut is the best among the edges of bins, and its value is exact: what the cut is worth on all rows of the
    sketch. It is `lower`. A threshold inside a bin may be better, but its value is at most `upper`.
    """

    lower: float = float("nan")
    upper: float = float("nan")


class CoarseSketchError(ValueError):
    """No edge of a sketch's bins will do, but a threshold inside one of them may."""

    def __init__(self, metric: Metric, constraints: tuple[Constraint, ...]) -> None:
        subject = f"meets {listed(constraints)}" if constraints else f"gives {metric.name} a value"
        super().__init__(
            f"no threshold at an edge of the sketch's bins {subject}, but one inside a bin may: use finer bins, "
            "ScoreSketch(bits=...), or a ScoreTally of all scores"
        )


class ScoreSketch:
    """Positive and negative weight in log-linear bins of scores: one pass, bounded memory, mergeable.

    A bin is a run of floats with the same leading bits; its ends differ by less than 2**-bits, relatively. There are at
    most 2**(12 + bits) bins, and only those that were met take memory: for probabilities some hundred kilobytes,
    whatever the number of rows. Sketches add up: ``a + b`` is the sketch of both streams, in any order.

    Parameters
    ----------
    bits
        2**bits bins per octave of scores.

    Examples
    --------
    >>> sketch = ScoreSketch()
    >>> sketch.update([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75])
    >>> cut = sketch.best_cut("f1")
    >>> cut.value, (cut.lower, cut.upper), cut.predict([0.375, 0.125])
    (0.8, (0.8, 0.8), array([ True, False]))
    """

    def __init__(self, bits: int = 7) -> None:
        if not 1 <= bits <= 12:
            raise ValueError(f"bits must fulfil 1 <= bits <= 12, got {bits}")
        self.bits = bits
        half = (int(LARGEST_FINITE) >> (52 - bits)) + 1
        self._bins = FirstBins(np.int64(0), LARGEST_FINITE, np.int64(52 - bits), np.int64(half))
        self._number = np.zeros(0, dtype=np.int64)
        self._counts = Counts.zeros(0, weighted=False)
        self._checksum = 0
        self._dtype: np.dtype[Any] | None = None

    @property
    def rows(self) -> int:
        """The number of rows with weight."""
        return int(self._counts.rows.sum())

    @property
    def weighted(self) -> bool:
        return self._counts.weight is not self._counts.rows

    def update(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        missing: str = "error",
    ) -> None:
        """Count more rows. Labels are {0, 1}, {−1, 1}, booleans, or any with `pos_label`; no rows at all are fine.

        Rows without a label, a score or a weight are an error, or with ``missing="drop"`` left out, with a warning that
        counts them.
        """
        check_missing(missing, "error", "drop")
        if not np.size(y_score) and not np.size(y_true):
            return
        if missing == "drop":
            y_true, y_score, sample_weight = without_missing(y_true, y_score, sample_weight, may_be_all=True)
            if not len(y_score):
                return
        labels, scores = as_labels(y_true, pos_label=pos_label, check=False), as_scores(y_score)
        require_same_length(y_true=labels, y_score=scores)
        weights = NO_WEIGHTS if sample_weight is None else as_weights(sample_weight, len(scores))
        sizes = settings()
        reads = kernels.available(len(scores), sizes)
        counts = Counts.zeros(2 * int(self._bins.half), weighted=sample_weight is not None)
        codes = labels.positive, labels.negative
        checksum = 0
        for start in range(0, len(scores), sizes.block):
            block = slice(start, start + sizes.block)
            bits = as_doubles(scores[block]).view(np.int64)
            label = np.ascontiguousarray(labels.codes[block])
            found = reads.histogram(bits, label, weights[block], *codes, self._bins, counts.rows, counts.weight)
            if found[0]:
                labels.check()
            if found[1]:
                require_no_nan(scores)
            checksum += int(found[2])
        counts.move(int(self._bins.half) - 1, int(self._bins.half))
        number = np.flatnonzero(counts.rows[:, 0] | counts.rows[:, 1])
        self._add(number, counts[number], checksum, scores.dtype if scores.dtype in DTYPES else DTYPES[0])

    @property
    def candidates(self) -> Candidates:
        """The cuts at the edges of bins, with their exact counts."""
        return Candidates(self.entries, self._sample, self._dtype or DTYPES[0])

    @property
    def entries(self) -> Entries:
        """The bins as entries."""
        if not self.rows:
            raise ValueError("the sketch holds no rows yet")
        counts = self._counts[::-1]
        return Entries.of(*self._bins.ends(self._number[::-1]), counts.rows, counts.weight)

    @property
    def tally(self) -> CoarseTally:
        """The bins as a tally by ranges of scores."""
        entries = self.entries
        counts = entries.weight, entries.rows, entries.weight
        return CoarseTally(entries.low, *counts, self._dtype or DTYPES[0], self._checksum, highest=entries.high)

    @property
    def hull(self) -> Hull:
        """The ROC hull of these cuts."""
        return hull_of(self.candidates)

    def best_cut(
        self, metric: str | Metric = "f1", constraint: ConstraintLike | Iterable[ConstraintLike] | None = None
    ) -> SketchCut:
        """The best cut among the edges of bins, and between which values the best of all cuts lies."""
        objective = Objective(get_metric(metric), parse_constraints(constraint))
        if not objective.can_be_bounded:
            raise ValueError(f"{objective.metric.name} cannot be bounded inside a bin: tune it on a ScoreTally")
        entries = self.entries
        (found,) = search(Counted(entries, self._dtype or DTYPES[0], refines=False), [objective])
        best, bound = float(found.verdict.best[0]), float(found.verdict.bound[0])
        if not found.defined[0]:
            error = rules.infeasible(objective, entries.edges, self.rows)
            if bound > -np.inf:
                raise CoarseSketchError(objective.metric, objective.constraints) from error
            raise error
        cut = cut_of(found, self._sample)
        known = {field.name: getattr(cut, field.name) for field in fields(cut)}
        return SketchCut(**known, lower=cut.value, upper=max(best, bound))

    def to_bytes(self) -> bytes:
        """The sketch as bytes, for another process or for later."""
        parts = [self._number.astype("<i8"), self._counts.rows.astype("<i8")]
        if self.weighted:
            parts.append(self._counts.weight.astype("<f8"))
        header = HEADER.pack(
            MAGIC,
            VERSION,
            self.bits,
            255 if self._dtype is None else DTYPES.index(self._dtype),
            self.weighted,
            self._checksum,
            len(self._number),
        )
        content = header + b"".join(part.tobytes() for part in parts)
        return content + TRAILER.pack(zlib.crc32(content))

    @classmethod
    def from_bytes(cls, content: bytes) -> ScoreSketch:
        """Read what `to_bytes` wrote; anything else is refused with the reason."""
        if len(content) < HEADER.size + TRAILER.size or not content.startswith(MAGIC):
            raise ValueError("this is not a ScoreSketch: it does not begin like one")
        _, version, bits, dtype, weighted, checksum, size = HEADER.unpack_from(content)
        if version != VERSION:
            raise ValueError(f"this ScoreSketch has version {version}, and this surecut reads {VERSION}")
        expected = HEADER.size + size * (8 + 16 + 16 * weighted) + TRAILER.size
        if len(content) != expected:
            raise ValueError(f"this ScoreSketch is incomplete: it has {len(content)} bytes instead of {expected}")
        if TRAILER.unpack(content[-TRAILER.size :])[0] != zlib.crc32(content[: -TRAILER.size]):
            raise ValueError("this ScoreSketch is damaged: its checksum does not fit")
        sketch = cls(bits)
        number = np.frombuffer(content, "<i8", size, HEADER.size)
        rows = np.frombuffer(content, "<i8", 2 * size, HEADER.size + 8 * size).reshape(size, 2)
        weight = np.frombuffer(content, "<f8", 2 * size * weighted, HEADER.size + 24 * size).reshape(-1, 2)
        if (
            (np.diff(number) <= 0).any()
            or (rows < 0).any()
            or (size and not 0 <= number[0] <= number[-1] < 2 * sketch._bins.half)
        ):
            raise ValueError("this ScoreSketch is damaged: its bins are out of order")
        sketch._number, sketch._checksum = number.astype(np.int64), checksum
        rows = rows.astype(np.int64)
        sketch._counts = Counts(rows, weight.astype(np.float64) if weighted else rows)
        sketch._dtype = DTYPES[dtype] if dtype < len(DTYPES) else None
        return sketch

    def __add__(self, other: ScoreSketch) -> ScoreSketch:
        if not isinstance(other, ScoreSketch):
            return NotImplemented
        if self.bits != other.bits:
            raise ValueError(f"sketches with {self.bits} and {other.bits} bits have different bins and do not add up")
        total = ScoreSketch(self.bits)
        for one in (self, other):
            total._add(one._number, one._counts, one._checksum, one._dtype)
        return total

    def __radd__(self, other: object) -> ScoreSketch:
        return self if other == 0 else NotImplemented  # so that sum() adds sketches up

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreSketch):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        negative, positive = self._counts.rows.sum(axis=0)
        rows, bins = counted(positive + negative, "row"), counted(len(self._number), "bin")
        return f"<ScoreSketch of {rows}, {positive:,} positive, in {bins}>"

    @property
    def _sample(self) -> Sample:
        return Sample(self.rows, self.weighted, fingerprint(self.rows, self._checksum))

    def _add(self, number: NDArray[np.int64], counts: Counts, checksum: int, dtype: np.dtype[Any] | None) -> None:
        """Add the counts of some bins (ascending)."""
        every = np.union1d(self._number, number)
        weighted = self.weighted or counts.weight is not counts.rows
        total = Counts.zeros(len(every), weighted)
        for where, part in ((self._number, self._counts), (number, counts)):
            at = np.searchsorted(every, where)
            total.rows[at] += part.rows
            if weighted:
                total.weight[at] += part.weight
        self._number, self._counts = every, total
        self._checksum = (self._checksum + checksum) % 2**64
        if dtype is not None:
            self._dtype = dtype if self._dtype in (None, dtype) else np.dtype(np.result_type(self._dtype, dtype))
