"""How much positive and negative weight stands at each score: all that the second step needs of the data."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

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
from surecut._labels import as_labels, plain_label, warn_of_absence
from surecut._plurals import counted
from surecut.constraints import ConstraintLike, parse_constraints
from surecut.core.candidates import Candidates, Hull, hull_of
from surecut.core.entries import Entries
from surecut.core.kernels import distinct, run_starts, sorted_with_class
from surecut.core.keys import checksum, ordered_keys, scores_of_keys
from surecut.core.rules import are_equal
from surecut.metrics import get_metric
from surecut.overlap import RowSample
from surecut.sample import Sample, fingerprint

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.confusion import Confusion
    from surecut.decisions.cut import Cut
    from surecut.metrics import Metric


FEW = 1 << 17
"""Rows whose scores are hashed, too, to know their order."""

FEW_SCORES = 16
"""With fewer distinct scores, counts are likely to come again, and the order of the rows is remembered, too."""


class Curve(NamedTuple):
    """A metric at every threshold, highest threshold first; NaN where it is undefined."""

    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoreTally:
    """Weight of each class at each distinct score. Tallies add up: ``a + b`` is the tally of both samples' rows.

    Made by `from_scores`. From it alone come the best cut for any metric, the curve, the constrained cut, the hull.

    Attributes
    ----------
    keys
        The distinct scores, descending, as order-preserving integers.
    weight, rows, squares
        Shape (k, 2), negatives first: the sum of weights, the number of rows, and the sum of squared weights at each
        score. Without weights all three are the same integers.
    dtype
        The scores' own dtype, in which thresholds are put.
    checksum
        A number that names the rows whatever their order; it adds up too.
    given_prior
        The class balance of the deployment, where it is not the sample's.
    pos_label
        The label that counts as positive, where it was named.
    order
        A hash of the rows in the order in which they came, for random numbers that have nothing to do with what is
        tallied; 0 where the order is not known, or scores are many or not tied.

    Examples
    --------
    >>> tally = ScoreTally.from_scores([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> tally.thresholds
    array([inf, 0.8, 0.4, 0.1])
    >>> tally.confusion.tp
    array([0, 1, 2, 2])
    >>> tally.best_cut("f1").value
    0.8
    """

    keys: NDArray[np.uint64]
    weight: NDArray[Any]
    rows: NDArray[np.int64]
    squares: NDArray[Any]
    dtype: np.dtype[Any]
    checksum: int = 0
    given_prior: float | None = None
    pos_label: Any = None
    order: int = 0

    @classmethod
    def from_scores(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        missing: str = "error",
    ) -> ScoreTally:
        """Tally scores. Labels are {0, 1}, {−1, 1}, booleans, or anything with `pos_label`.

        Rows without a label, a score or a weight are an error, or with ``missing="drop"`` left out, with a warning that
        counts them.
        """
        check_missing(missing, "error", "drop")
        if missing == "drop":
            y_true, y_score, sample_weight = without_missing(y_true, y_score, sample_weight)
        labels, scores = as_labels(y_true, pos_label=pos_label), as_scores(y_score)
        require_same_length(y_true=labels, y_score=scores)
        require_no_nan(scores)
        warn_of_absence(labels.absent)
        weights = None if sample_weight is None else as_weights(sample_weight, len(scores))
        tally = tally_rows(scores, labels.is_positive(), weights)
        return tally if pos_label is None else replace(tally, pos_label=pos_label)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The distinct scores, descending; +inf stands as the largest finite float."""
        return scores_of_keys(self.keys)

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """One threshold per distinct cut, descending: +inf, which predicts nothing, then every distinct score."""
        return self.candidates.accepted

    @property
    def confusion(self) -> Confusion:
        """The confusion at every threshold."""
        return self.candidates.confusion

    @property
    def prior(self) -> float:
        """The share of positives: the one that was given, or the sample's own."""
        if self.given_prior is not None:
            return self.given_prior
        negative, positive = self.weight.sum(axis=0)
        return float(positive / (negative + positive))

    @cached_property
    def candidates(self) -> Candidates:
        """Every distinct cut."""
        return Candidates(self.entries, self.sample, self.dtype, self.given_prior)

    def confusion_at(self, threshold: Any) -> Confusion:
        """The confusion at a threshold, or at each of some; it need not be one of `thresholds`."""
        return self.confusion[self.candidates.at(threshold)]

    @cached_property
    def entries(self) -> Entries:
        """The tally as entries of one score each."""
        return Entries.scores(self.keys, self.rows, self.weight)

    @cached_property
    def sample(self) -> Sample:
        """What a decision remembers of the rows."""
        rows = int(self.rows.sum())
        return Sample(
            rows=rows,
            weighted=self.weight is not self.rows,
            fingerprint=fingerprint(rows, self.checksum),
            pos_label=plain_label(self.pos_label),
            seen=(RowSample.of_counts(self.keys, self.rows),),
        )

    @cached_property
    def hull(self) -> Hull:
        """The vertices of the ROC convex hull: every linear-fractional optimum, at any prior, is one of them."""
        return hull_of(self.candidates)

    def with_prior(self, prior: float) -> ScoreTally:
        """The same scores where a share `prior` is positive: for a deployment with another class balance.

        The counts stay; the metric is evaluated at the true and false positive *rates* and this prior.
        """
        if not 0 < prior < 1:
            raise ValueError(f"prior must fulfil 0 < prior < 1, got {prior}")
        negative, positive = self.rows.sum(axis=0)
        if not (negative and positive):
            raise ValueError("another prior needs rows of both classes")
        return replace(self, given_prior=float(prior))

    def best_cut(
        self, metric: str | Metric = "f1", constraint: ConstraintLike | Iterable[ConstraintLike] | None = None
    ) -> Cut:
        """The cut with the largest value, by trying every one that meets the constraint."""
        return self.candidates.best_cut(get_metric(metric), parse_constraints(constraint))

    def has_tuned(self, cut: Cut) -> bool:
        """Whether a cut was tuned on these very rows.

        Cuts carry the fingerprint of their rows, and equal fingerprints are equal rows. An engine that was asked to
        count cannot name its rows, and a cut from there has none. Then these rows are taken for those that tuned it if
        they are as many, give the same confusion at the cut, and none of them stands inside its interval. Other rows
        do so by chance about once in n**1.5 times where they are n as well: a certificate that is refused too often is
        harmless, one that promises too much is not.

        >>> from surecut import tune_threshold
        >>> tally = ScoreTally.from_scores([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75])
        >>> cut = tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75])
        >>> tally.has_tuned(cut), tally.has_tuned(tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.25, 0.75]))
        (True, False)
        """
        sample, candidates = self.sample, self.candidates
        if cut.fingerprint or cut.rows != sample.rows:
            return cut.fingerprint == sample.fingerprint
        here = candidates.at(cut.threshold)
        interval = float(candidates.rejected[here]), float(candidates.accepted[here])
        if cut.weighted != sample.weighted:
            return interval == cut.interval
        cells = ("tp", "fp", "fn", "tn")
        then, now = ([float(getattr(one, cell)) for cell in cells] for one in (cut.confusion, self.confusion[here]))
        is_empty = interval[0] <= cut.interval[0] and cut.interval[1] <= interval[1]
        return is_empty and are_equal(then, now, scale=sum(then))

    def curve(self, metric: str | Metric = "f1") -> Curve:
        """The metric at every threshold."""
        values = get_metric(metric).evaluate(self.candidates.at_prior())
        return Curve(self.thresholds, np.asarray(values, dtype=float))

    def __add__(self, other: ScoreTally) -> ScoreTally:
        if not isinstance(other, ScoreTally):
            return NotImplemented
        if self.given_prior != other.given_prior:
            raise ValueError(f"the tallies have different priors given: {self.given_prior} and {other.given_prior}")
        if plain_label(self.pos_label) != plain_label(other.pos_label):
            raise ValueError(
                f"the tallies have different labels as positive: {self.pos_label!r} and {other.pos_label!r}"
            )
        keys, where = np.unique(np.concatenate((self.keys, other.keys)), return_inverse=True)

        def merged(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
            total = np.zeros((len(keys), 2), dtype=np.result_type(mine, theirs))
            np.add.at(total, where[: len(self.keys)], mine)
            np.add.at(total, where[len(self.keys) :], theirs)
            return total[::-1]

        rows = merged(self.rows, other.rows)
        unweighted = self.weight is self.rows and other.weight is other.rows
        return ScoreTally(
            keys=keys[::-1],
            weight=rows if unweighted else merged(self.weight, other.weight),
            rows=rows,
            squares=rows if unweighted else merged(self.squares, other.squares),
            dtype=_common_dtype(self.dtype, other.dtype),
            checksum=(self.checksum + other.checksum) % 2**64,
            given_prior=self.given_prior,
            pos_label=self.pos_label,
            order=zlib.crc32(self.order.to_bytes(4, "little"), other.order) if self.order and other.order else 0,
        )

    def __radd__(self, other: object) -> ScoreTally:
        return self if other == 0 else NotImplemented  # so that sum() adds tallies up

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreTally):
            return NotImplemented
        return (
            np.array_equal(self.keys, other.keys)
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.rows, other.rows)
            and self.given_prior == other.given_prior
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __len__(self) -> int:
        """The number of distinct scores."""
        return len(self.keys)

    def __repr__(self) -> str:
        negative, positive = self.rows.sum(axis=0)
        rows, scores = counted(positive + negative, "row"), counted(len(self), "distinct score")
        return f"<ScoreTally of {rows}, {positive:,} positive, {scores}>"


@dataclass(frozen=True, eq=False)
class CoarseTally(ScoreTally):
    """A tally of more rows than memory should hold: neighbouring scores share an entry, and cuts inside are not known.

    The ranges are chosen by the scores alone, without a look at labels. A range holds at most a small share of the rows
    unless it is one score. What is known at a cut between two ranges is exact.

    Attributes
    ----------
    highest
        The highest score of each entry, as a key; `keys` are the lowest ones.
    seen
        Some of the rows, to recognise them by.
    """

    highest: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    seen: tuple[RowSample, ...] = ()

    @cached_property
    def entries(self) -> Entries:
        """The ranges, whose ends are scores."""
        return Entries.of(self.keys, self.highest, self.rows, self.weight, exact=True)

    @cached_property
    def sample(self) -> Sample:
        """What a decision remembers of the rows."""
        return replace(super().sample, seen=self.seen)

    def __add__(self, other: ScoreTally) -> ScoreTally:
        raise TypeError("tallies by ranges of scores do not add up: add ScoreTally or ScoreSketch objects")


def tally_rows(scores: NDArray[Any], is_positive: NDArray[np.bool_], weights: NDArray[np.float64] | None) -> ScoreTally:
    """Tally checked rows; rows of weight zero are as good as absent."""
    if weights is not None and not weights.all():
        present = weights > 0
        scores, is_positive, weights = scores[present], is_positive[present], weights[present]
    doubles = as_doubles(scores)
    named = checksum(doubles.view(np.int64), is_positive)
    tally = tally_keys(ordered_keys(doubles), is_positive, weights, scores.dtype, named)
    return replace(tally, order=order_of(doubles, is_positive)) if len(tally) < min(FEW_SCORES, len(doubles)) else tally


def order_of(scores: NDArray[np.float64], is_positive: NDArray[np.bool_]) -> int:
    """A hash of rows in the order in which they came; of many rows, of their classes alone, which is quicker."""
    hashed = zlib.crc32(np.packbits(is_positive).tobytes())
    return zlib.crc32(scores.tobytes(), hashed) if len(scores) <= FEW else hashed


def tally_keys(
    keys: NDArray[np.uint64],
    is_positive: NDArray[np.bool_],
    weights: NDArray[np.float64] | None,
    dtype: np.dtype[Any],
    checksum: int = 0,
) -> ScoreTally:
    """Tally rows that are keys already; there may be none."""
    if not len(keys):
        nothing = np.zeros((0, 2), dtype=np.int64)
        return ScoreTally(keys, nothing, nothing, nothing, dtype, checksum)
    if weights is None:
        ordered, rows = distinct(*sorted_with_class(keys, is_positive))
        return ScoreTally(ordered, rows, rows, rows, dtype, checksum)
    order = np.argsort(keys)[::-1]
    ordered, positive, weights = keys[order], is_positive[order].astype(np.int64), weights[order]
    starts = run_starts(ordered)
    keys, rows = distinct(ordered, positive, starts)
    with np.errstate(over="ignore"):  # squares beyond a float are infinite
        squares = _weight_by_class(weights**2, positive, starts)
    return ScoreTally(keys, _weight_by_class(weights, positive, starts), rows, squares, dtype, checksum)


def _weight_by_class(
    weights: NDArray[np.float64], positive: NDArray[np.int64], starts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Shape (scores, 2), negatives first: the sum of weights in each run of rows."""
    sums = np.zeros((len(starts), 2))
    if len(starts) == len(weights):
        sums[np.arange(len(weights)), positive] = weights
        return sums
    for column in (0, 1):
        sums[:, column] = np.add.reduceat(np.where(positive == column, weights, 0.0), starts)
    return sums


def _common_dtype(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    return first if first == second else np.result_type(first, second)
