"""Whether rows are among those that a model or a cut has seen: a few of the seen rows, looked up in the new ones.

A cut keeps up to 256 pairs of score and class of its validation rows, and of the rows that trained its model. Rows that
share them share scores to the last digit, or to the digits that either side was rounded to; other rows share scores by
chance only. How often by chance, the new rows say themselves: a row that stands beside exactly one other one with its
score and class would, were it a row of its own, match one by chance. So the pairs that are found exactly once are
compared with the new rows that have exactly one twin; pairs that are found more often are ties, such as a score of 0
that many rows have, and say nothing. Where chance explains half of the rows being shared, as with scores of ten levels,
nothing can be told.

A sample recognises samples that are largely the same, not a few rows of many: of 100 rows taken from a million seen
ones none is, as a rule, among the 256.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from surecut._inputs import as_doubles
from surecut.core.keys import ordered_keys, scores_of_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE = 256
"""Rows that are kept of a sample."""

LABELS, LABELS_SIZE = 16, 1024
"""Labels, and rows of all of them together, that are kept of a sample of many labels."""

LEAST = 10
"""Of samples with fewer distinct rows than this nothing can be told, where they share one."""

ENOUGH = 20
"""So many of the rows that are looked up, and of the new ones, must stand alone or in twos (all, if there are fewer):
where nearly all rows are tied, the few that are not say little of how often scores coincide by chance."""

LEVEL = 1e-3
"""Other rows are taken for seen ones with about this probability, or less."""

DIGITS = 6
"""Scores are compared as they are, and to so many digits: a model that scores rows again may differ in the last."""

UNTIED = 1000
"""Scores that are not rounded and without a single tie coincide by chance in less than one of so many rows."""

PAIRS = 30
"""Few rows say less: no tie among n rows is no tie among n² / 2 pairs, which count as so many times fewer rows."""

VALIDATION, TRAINING = "validation", "training"

NO_LABELS = np.zeros(0, dtype=np.int64)


class Overlap(enum.Enum):
    """What can be said of rows and a sample of seen ones."""

    NONE = "other rows"
    SHARED = "more shared rows than chance explains"
    UNKNOWN = "scores so coarse that other rows would look alike"


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some of the rows that a cut, or its model, has seen: their scores and classes.

    Attributes
    ----------
    keys, is_positive
        Score, as an order-preserving key, and class of each row that is kept.
    role
        What the rows were used for: "validation" (they tuned the cut) or "training" (they trained the model).
    labels
        For many labels: the position of the label that each score belongs to. Else empty.
    """

    keys: NDArray[np.uint64]
    is_positive: NDArray[np.bool_]
    role: str = VALIDATION
    labels: NDArray[np.int64] = field(default_factory=lambda: NO_LABELS)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The score of each row that is kept: made when rows are compared, since most cuts never are."""
        return scores_of_keys(self.keys)

    @classmethod
    def none(cls) -> RowSample:
        """No rows."""
        return cls(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=bool))

    @classmethod
    def of_rows(cls, scores: NDArray[Any], is_positive: NDArray[Any], role: str = VALIDATION) -> RowSample:
        """Rows from all over some columns."""
        kept = positions(len(scores))
        return cls(ordered_keys(as_doubles(scores[kept])), np.asarray(is_positive[kept], dtype=bool), role)

    @classmethod
    def of_distinct(cls, keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> RowSample:
        """Rows of distinct scores, at evenly spaced ones of them, so that ties take no place."""
        kept = positions(len(keys))
        return cls(keys[kept], rows[kept, 1] > 0)

    @classmethod
    def of_stream(cls, scores: NDArray[Any], is_positive: NDArray[Any]) -> RowSample:
        """Rows that are chosen by their values, so that it does not matter in which order they come, or in which parts.

        Distinct pairs of score and class with the smallest hashes. The sample of the samples of several parts is the
        sample of them all.
        """
        doubles = as_doubles(np.ascontiguousarray(scores)) + 0.0  # −0 is 0
        hashes = _hashes(doubles, is_positive)
        likely = np.flatnonzero(hashes <= np.uint64(min(1.0, 16 * SIZE / max(len(hashes), 1)) * (2**64 - 2**11)))
        found, first = np.unique(hashes[likely], return_index=True)
        chosen = likely[first[:SIZE]]
        if len(found) < SIZE:  # few rows, or many ties
            chosen = np.unique(hashes, return_index=True)[1][:SIZE]
        chosen = chosen[np.lexsort((is_positive[chosen], doubles[chosen]))]
        return cls(ordered_keys(doubles[chosen]), np.asarray(is_positive[chosen], dtype=bool))

    @classmethod
    def of_counts(cls, keys: NDArray[np.uint64], rows: NDArray[np.int64], size: int = SIZE) -> RowSample:
        """Rows at evenly spaced ranks, from the number of rows of each class at each score."""
        above = np.cumsum(rows.ravel())
        cells = np.searchsorted(above, positions(int(above[-1]), size), side="right")
        cells = cells[np.concatenate(([True], cells[1:] != cells[:-1]))]
        return cls(keys[cells >> 1], (cells & 1).astype(bool))

    @classmethod
    def of_labels(cls, parts: Mapping[int, RowSample]) -> RowSample:
        """The samples of several labels as one."""
        if not parts:
            return cls.none()
        return cls(
            np.concatenate([part.keys for part in parts.values()]),
            np.concatenate([part.is_positive for part in parts.values()]),
            labels=np.repeat(np.array(list(parts), dtype=np.int64), [len(part) for part in parts.values()]),
        )

    def __len__(self) -> int:
        return len(self.keys)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowSample):
            return NotImplemented
        columns = ("keys", "is_positive", "labels")
        return self.role == other.role and all(np.array_equal(getattr(self, c), getattr(other, c)) for c in columns)

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def of_label(self, label: int) -> RowSample:
        """The rows of one label."""
        return self.taken(self.labels == label)

    def taken(self, chosen: NDArray[Any]) -> RowSample:
        """Some of the rows, without their labels."""
        return RowSample(self.keys[chosen], self.is_positive[chosen], self.role)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values: text that stays on one line."""
        document = {
            "role": self.role,
            "scores": " ".join(map(repr, self.scores.tolist())),
            "classes": "".join("1" if one else "0" for one in self.is_positive.tolist()),
        }
        return document | ({"labels": " ".join(map(str, self.labels.tolist()))} if len(self.labels) else {})

    @classmethod
    def from_dict(cls, document: Any, labels: int = 1) -> RowSample:
        """Read what `to_dict` wrote; anything else is a `ValueError`."""
        if not isinstance(document, dict):
            raise ValueError(f"a sample of rows must be an object, got {type(document).__name__}")
        role, scores, classes = (document.get(name) for name in ("role", "scores", "classes"))
        if role not in (VALIDATION, TRAINING):
            raise ValueError(f"the role of a sample of rows must be {VALIDATION!r} or {TRAINING!r}")
        if not isinstance(scores, str) or not isinstance(classes, str) or set(classes) - {"0", "1"}:
            raise ValueError("a sample of rows must have its scores as text, and its classes as a text of 0 and 1")
        numbers = np.array([float(one) for one in scores.split()])
        if len(numbers) != len(classes) or np.isnan(numbers).any():
            raise ValueError(f"a sample of rows has {len(numbers)} scores and {len(classes)} classes, or a NaN")
        of_label = document.get("labels", "")
        if not isinstance(of_label, str):
            raise ValueError("a sample of rows must have the positions of its labels as text")
        places = np.array([int(one) for one in of_label.split()], dtype=np.int64)
        if len(places) not in (0, len(numbers)) or (places < 0).any() or (places >= labels).any():
            raise ValueError("a sample of rows must have one label of the cut for each score")
        return cls(ordered_keys(numbers), np.array([one == "1" for one in classes], dtype=bool), role, places)


def _hashes(doubles: NDArray[np.float64], is_positive: NDArray[Any]) -> NDArray[np.uint64]:
    """64 bits of each pair of score and class, of which the first ones depend on all of the score's."""
    mixed = doubles.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.asarray(is_positive, dtype=bool) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed


def samples_from_json(document: Any, labels: int = 1) -> tuple[RowSample, ...]:
    """The samples of a saved cut."""
    if not isinstance(document, list):
        raise ValueError(f"samples of rows must be a list, got {type(document).__name__}")
    return tuple(RowSample.from_dict(one, labels) for one in document)


@lru_cache(maxsize=64)
def positions(rows: int, size: int = SIZE) -> NDArray[np.intp]:
    """At most so many positions, evenly spaced, in an array that is not written to."""
    kept = np.arange(rows) if rows <= size else (np.arange(size) * (rows / size)).astype(np.intp)
    kept.flags.writeable = False
    return kept


def sampled_labels(positives: NDArray[Any], negatives: NDArray[Any]) -> tuple[NDArray[np.intp], int]:
    """Of which labels rows are kept, those with most rows of their rarer class, and how many rows of each."""
    chosen = np.argsort(-np.minimum(positives, negatives), kind="stable")[:LABELS]
    return np.sort(chosen), min(SIZE, LABELS_SIZE // max(len(chosen), 1))


class ScoreCounts(Protocol):
    """Rows by distinct score, as a `ScoreTally` has them."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """The distinct scores, descending."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """Shape (scores, 2), negatives first: the number of rows."""


def overlap(seen: RowSample, rows: Mapping[int, ScoreCounts]) -> Overlap:
    """Whether new rows are among those of which a sample was kept.

    `rows` are the new rows' tallies by position of the label; one label is label 0.

    >>> from surecut import ScoreTally
    >>> rng = np.random.default_rng(0)
    >>> y, score = rng.random(500) < 0.5, rng.random(500)
    >>> seen = ScoreTally.from_scores(y, score).sample.seen[0]
    >>> overlap(seen, {0: ScoreTally.from_scores(y[:-1], score[:-1].astype(np.float32))})
    <Overlap.SHARED: 'more shared rows than chance explains'>
    >>> overlap(seen, {0: ScoreTally.from_scores(y, rng.random(500))})
    <Overlap.NONE: 'other rows'>
    >>> overlap(seen, {0: ScoreTally.from_scores(y, rng.integers(10, size=500))})
    <Overlap.UNKNOWN: 'scores so coarse that other rows would look alike'>
    """
    known = _Cells.of_sample(seen)
    new = _Cells.of_tallies({label: tally for label, tally in rows.items() if label in known.labels})
    if not len(known.scores) or not len(new.scores):
        return Overlap.NONE
    grid = _Grid.of(known.scores).common(_Grid.of(new.scores))
    if min(len(known.scores), len(new.scores)) < LEAST:
        return Overlap.UNKNOWN if new.at(grid).counts_of(known.at(grid)).any() else Overlap.NONE
    grids = dict.fromkeys((grid, grid.common(_Grid(digits=DIGITS))))
    compared = [_compared(known.at(one), new.at(one), one) for one in grids]
    if any(one.is_significant(LEVEL / len(compared)) for one in compared):
        return Overlap.SHARED
    for one in dict.fromkeys(grid.common(other) for other in COARSER):
        if _compared(known.at(one), new.at(one), one).is_significant(LEVEL**2):
            return Overlap.SHARED
    return Overlap.NONE if any(one.can_tell(LEVEL / len(compared)) for one in compared) else Overlap.UNKNOWN


class _Grid(NamedTuple):
    """To what scores were rounded: to float16, to float32, to decimals, to significant digits."""

    half: bool = False
    single: bool = False
    decimals: int | None = None
    digits: int | None = None

    @classmethod
    def of(cls, scores: NDArray[np.float64]) -> _Grid:
        """The coarsest grid on which all scores lie; a few of them exclude most grids at once."""
        some = scores[positions(len(scores))]
        with np.errstate(over="ignore", invalid="ignore"):
            half, single = (
                all(np.array_equal(part, part.astype(kind)) for part in (some, scores))
                for kind in (np.float16, np.float32)
            )
            tolerance = 2.0**-23 if single else 2.0**-50
            for decimals in range(DIGITS + 1):
                if all(_are_whole(part * 10.0**decimals, tolerance) for part in (some, scores)):
                    return cls(half, single, decimals=decimals)
            for digits in range(1, DIGITS + 1):
                if all(_are_whole(_mantissas(part, digits)[0], tolerance) for part in (some, scores)):
                    return cls(half, single, digits=digits)
        return cls(half, single)

    def common(self, other: _Grid) -> _Grid:
        """The coarser of two, part by part."""

        def least(one: int | None, two: int | None) -> int | None:
            return min((given for given in (one, two) if given is not None), default=None)

        return _Grid(
            self.half or other.half,
            self.single or other.single,
            least(self.decimals, other.decimals),
            least(self.digits, other.digits),
        )

    def at(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers, in the order of the scores, that are equal where the rounded scores are."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.half or self.single:
                scores = scores.astype(np.float16 if self.half else np.float32).astype(np.float64)
            if self.decimals is not None:
                scores = np.rint(scores * 10.0**self.decimals) / 10.0**self.decimals
            if self.digits is None:
                return scores
            mantissa, magnitude = _mantissas(scores, self.digits)
            mantissa = np.rint(mantissa)
            carried = mantissa >= 10.0**self.digits
            mantissa, magnitude = np.where(carried, mantissa / 10, mantissa), magnitude + carried
            return np.where(scores == 0, 0.0, np.sign(scores) * ((magnitude + 400) * 10.0**self.digits + mantissa))


COARSER = (
    _Grid(decimals=4),
    _Grid(digits=4),
    _Grid(decimals=3),
    _Grid(digits=3),
    _Grid(half=True),
)
"""Rounded rows may be mixed with others. Seen rows are then found so often that a much smaller level will do."""


def _are_whole(numbers: NDArray[np.float64], tolerance: float) -> bool:
    return bool((np.abs(numbers - np.rint(numbers)) <= tolerance * np.abs(numbers)).all())


def _mantissas(scores: NDArray[np.float64], digits: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """|score| = mantissa · 10^(magnitude + 1 − digits), with so many digits before the point of the mantissa."""
    size = np.clip(np.abs(scores), 1e-300, 1e300)
    magnitude = np.floor(np.log10(size))
    return np.where(scores == 0, 0.0, size * 10.0 ** (digits - 1 - magnitude)), magnitude


@dataclass(frozen=True)
class _Cells:
    """Distinct triples of label, class and score, in order, and how many rows have each."""

    cell: NDArray[np.int64]
    scores: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of_sample(cls, seen: RowSample) -> _Cells:
        labels = seen.labels if len(seen.labels) else np.zeros(len(seen), dtype=np.int64)
        cell = 2 * labels + seen.is_positive
        order = np.lexsort((seen.scores, cell))
        return cls(cell[order], seen.scores[order], np.ones(len(seen), dtype=np.int64)).joined()

    @classmethod
    def of_tallies(cls, rows: Mapping[int, ScoreCounts]) -> _Cells:
        parts = []
        for label, tally in rows.items():
            scores = tally.scores[::-1]
            for positive in (0, 1):
                counts = tally.rows[::-1, positive]
                present = counts > 0
                parts.append((np.full(int(present.sum()), 2 * label + positive), scores[present], counts[present]))
        parts.sort(key=lambda part: int(part[0][0]) if len(part[0]) else -1)
        if not parts:
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @property
    def labels(self) -> set[int]:
        return set((self.cell >> 1).tolist())

    def at(self, grid: _Grid) -> _Cells:
        return replace(self, scores=grid.at(self.scores)).joined()

    def joined(self) -> _Cells:
        """Those that are equal as one."""
        if not len(self.cell):
            return self
        new = (self.cell[1:] != self.cell[:-1]) | (self.scores[1:] != self.scores[:-1])
        starts = np.flatnonzero(np.concatenate(([True], new)))
        return _Cells(self.cell[starts], self.scores[starts], np.add.reduceat(self.counts, starts))

    def counts_of(self, others: _Cells) -> NDArray[np.int64]:
        """How many rows there are here of each of the others; 0 where there are none."""
        found = np.zeros(len(others.cell), dtype=np.int64)
        for cell in np.unique(others.cell):
            wanted, here = others.cell == cell, self.cell == cell
            scores, counts = self.scores[here], self.counts[here]
            if len(scores):
                at = np.minimum(np.searchsorted(scores, others.scores[wanted]), len(scores) - 1)
                found[wanted] = np.where(scores[at] == others.scores[wanted], counts[at], 0)
        return found


class _Comparison(NamedTuple):
    """Seen rows that are found once or never, how many once; the same of the new rows among each other."""

    looked_up: int
    found: int
    rows: int
    twins: int
    single: int
    is_enough: bool

    def is_significant(self, level: float) -> bool:
        return self.is_enough and _tail(self.found, self.looked_up, self.twins, self.rows) <= level

    def can_tell(self, level: float) -> bool:
        """Whether half of the rows that could be shared would be significant."""
        if not self.is_enough:
            return False
        chance = self.twins / self.rows
        half = chance * self.looked_up + (1 - chance) * min(self.looked_up, self.single) / 2
        return _tail(min(math.ceil(half), self.looked_up), self.looked_up, self.twins, self.rows) <= level


def _compared(known: _Cells, new: _Cells, grid: _Grid) -> _Comparison:
    times = int(np.gcd.reduce(new.counts))  # rows that were repeated are still those rows
    found = new.counts_of(known)
    once, twice = (int(np.count_nonzero(new.counts == number * times)) for number in (1, 2))
    # Of a pair of twins both match or neither: they count as one.
    is_fine = not twice and grid in (_Grid(), _Grid(single=True))
    looked_up = int(np.count_nonzero(found <= times))
    return _Comparison(
        looked_up=looked_up,
        found=int(np.count_nonzero(found == times)),
        rows=(once // 2 if twice else once) + twice + min(UNTIED, once**2 // PAIRS) * is_fine,
        twins=twice,
        single=once,
        is_enough=looked_up >= min(ENOUGH, len(found)) and once + twice >= min(ENOUGH, len(new.counts)),
    )


def _tail(found: int, looked_up: int, twins: int, rows: int) -> float:
    """Fisher's exact test: that so many are found, or more, if it were as rare as twins are among the new rows."""
    if not found:
        return 1.0
    from scipy.special import betaln

    def log_choose(n: Any, k: Any) -> Any:
        return -betaln(n - k + 1.0, k + 1.0) - np.log(n + 1.0)

    total, marked = looked_up + rows, found + twins
    several = np.arange(found, min(looked_up, marked) + 1)
    logs = log_choose(marked, several) + log_choose(total - marked, looked_up - several) - log_choose(total, looked_up)
    return float(np.exp(logs).sum())
