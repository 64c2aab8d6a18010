"""Has anything moved since a cut was tuned? A check that does not cry wolf.

Two quantities are watched, the share of positives and the metric at the cut. A change is reported only if it is beyond
the chance of *both* samples. The metric is never compared with its tuned value, which is too good (such a check alarms
one time in five where nothing has changed), but with the limits that hold for the tuning rows although they chose the
cut, or with rows that were kept aside.

The share is compared by Fisher's exact test. For the metric, a value that both populations could share must be
improbable in the old rows and in the new ones at once: the two probabilities are combined as Fisher combines
independent ones, at the value that suits them best. The probability of any false alarm is at most 1 − confidence: a
half of it goes to the share, a quarter each to a fall and to a rise of the metric.

That holds for *one* look. A check that is run every week takes the risk every week: where nothing has changed, some of
many looks will alarm. `looks` spends the error over as many looks as are planned (Bonferroni: each has an equal part),
so that a false alarm of any of them has the probability 1 − confidence at most, whatever holds between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from surecut._inputs import check_missing, check_unknown, in_brief
from surecut._matrices import present_rows
from surecut._plurals import counted
from surecut.certificates.bands import band_limits
from surecut.certificates.cells import cells_of
from surecut.certificates.certificate import check_confidence
from surecut.certificates.confidence import share_limits
from surecut.certificates.held_out import rows_trained, rows_tuned
from surecut.certificates.limits import value_limits
from surecut.certificates.resampling import resample
from surecut.certificates.weights import check_weights, frequencies, require_whole
from surecut.constraints import InfeasibleError
from surecut.core.tally import ScoreTally
from surecut.decisions.bands import Bands
from surecut.decisions.cut import Cut
from surecut.decisions.saving import UnknownMetric
from surecut.decisions.top_k import TopK
from surecut.metrics import FunctionMetric
from surecut.overlap import Overlap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.certificates.zone_drift import BandsDrift
    from surecut.confusion import Confusion
    from surecut.decisions.multilabel import MultilabelCut

LEVELS = 8
"""Errors at which limits are looked at, from weak evidence to far stronger than an alarm needs."""

RESAMPLES = 4_000
"""Resamples of the tuning rows, where they are the reference."""

Limits = Callable[[float], tuple[float, float]]
"""Lower and upper limit, each of which fails with the probability given."""


@dataclass(frozen=True)
class Change:
    """A quantity then and now, each with limits, and whether the change is statistically significant.

    Attributes
    ----------
    then, now
        The quantity on the validation rows (or on the reference rows) and on the new rows.
    then_limits, now_limits
        Where its true value can be, in each population.
    p_value
        The probability of such a difference, or a larger one, where nothing has changed; never understated.
    moved
        Whether that is less than the check's share of the error.
    """

    then: float
    now: float
    then_limits: tuple[float, float]
    now_limits: tuple[float, float]
    p_value: float
    moved: bool

    @property
    def direction(self) -> str:
        """What happened, in a word."""
        return ("rose" if self.now > self.then else "fell") if self.moved else "no sign of a change"


@dataclass(frozen=True)
class DriftReport:
    """What has changed since a cut was tuned.

    Attributes
    ----------
    cut
        The cut that is in use.
    prior, value
        The share of positives and the metric at the cut.
    value_at_then_prior
        The metric now, if the share of positives were still what it was: what is left of a change is not the share's.
    constraints
        What each constraint's quantity is now.
    best
        The best cut of the new rows; None where none meets the constraints.
    rows, then_rows, confidence
        How many new rows there were, with how many they were compared, and how sure an alarm is.
    has_reference
        Whether these were reference rows, not the counts that the cut remembers.
    looks
        Over how many looks the error is spent: `confidence` is that of all of them together.
    """

    cut: Cut
    prior: Change
    value: Change
    value_at_then_prior: float
    constraints: dict[str, float]
    best: Cut | None
    rows: int
    then_rows: int
    confidence: float
    has_reference: bool = False
    looks: int = 1

    @property
    def moved(self) -> bool:
        """Whether any change is statistically significant."""
        return self.prior.moved or self.value.moved


class DriftOptions(TypedDict, total=False):
    """Options that do not change the type of a report, for the overloads of `check_drift`."""

    tally: ScoreTally | None
    reference: ScoreTally | None
    sample_weight: ArrayLike | None
    weights: str | None
    pos_label: Any
    confidence: float
    missing: str
    looks: int
    random_state: Any


@overload
def check_drift(
    cut: Bands, y_true: ArrayLike | None = ..., y_score: ArrayLike | None = ..., **options: Unpack[DriftOptions]
) -> BandsDrift: ...
@overload
def check_drift(
    cut: Cut, y_true: ArrayLike | None = ..., y_score: ArrayLike | None = ..., **options: Unpack[DriftOptions]
) -> DriftReport: ...
def check_drift(
    cut: Cut | Bands,
    y_true: ArrayLike | None = None,
    y_score: ArrayLike | None = None,
    *,
    tally: ScoreTally | None = None,
    reference: ScoreTally | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str | None = None,
    pos_label: Any = None,
    confidence: float = 0.95,
    missing: str = "error",
    looks: int = 1,
    random_state: Any = 0,
) -> DriftReport | BandsDrift:
    """Compare new rows with those that tuned a cut, or bands.

    Parameters
    ----------
    cut
        The cut in use, or the bands; it remembers the counts of its tuning rows.
    y_true, y_score
        Labels and scores of the new rows; or a `tally` of them.
    reference
        A tally of rows from the time of tuning, with which smaller changes are seen: best such that tuned nothing. The
        tuning rows themselves will do for a cut; its value is corrected by the bootstrap, which is right for large
        samples. They say no more of bands than the counts that bands remember.
    sample_weight
        Weights of the new rows, of which `weights` says what they mean.
    weights
        What the weights of all these rows mean, and of those that tuned the cut, as in `certify`: ``"counts"`` if a
        weight of 2 means the row twice. Has to be said, unless all weights are 0 or 1. ``"importance"`` is refused: the
        chance of rows is compared, and nothing is known of how large a weight can be.
    pos_label
        The label that counts as positive, if it is another than the cut's own.
    confidence
        Where nothing has changed, there is no alarm with at least this probability: at this look, or, with `looks`, at
        any of them.
    missing
        What to do with rows without a label, a score or a weight, as in `tune_threshold`.
    looks
        How many looks are planned, this one included: each spends an equal part of the error. One look alone, the
        default, is valid for one look only; repeated, it alarms sooner or later although nothing has changed.
    random_state
        The random numbers of the bootstrap.

    Examples
    --------
    >>> from surecut import tune_threshold
    >>> rng = np.random.default_rng(0)
    >>> def draw(size, shift=0.0):
    ...     score = rng.random(size)
    ...     return rng.random(size) < score**2 - shift, score
    >>> cut = tune_threshold(*draw(4_000))
    >>> check_drift(cut, *draw(4_000)).moved
    False
    >>> check_drift(cut, *draw(4_000, shift=0.2)).value.direction
    'fell'
    """
    if isinstance(cut, TopK):
        raise TypeError(
            "check_drift watches cuts of one label, and bands: what a rule of k labels is worth on its validation rows "
            "is too good to compare with, and no limits are known for all such rules at once. Certify the rule on "
            "held-out rows of then and on new ones, and compare: certify(rule, y_true, y_score) has the limits of its "
            "value, and of each label's recall and precision"
        )
    if not isinstance(cut, (Cut, Bands)):
        raise TypeError(
            f"check_drift(cut, y_true, y_score) needs a cut of one label, or bands, first, got {type(cut).__name__}; "
            "check many labels, or groups, one by one: check_drift(cut[label], ...)"
        )
    check_watch(confidence, weights, looks)
    check_missing(missing, "error", "drop")
    if tally is None:
        if y_true is None or y_score is None:
            raise ValueError("the check needs new rows: pass y_true and y_score, or a tally of them")
        if missing == "drop":
            y_true, y_score, sample_weight = present_rows(y_true, y_score, sample_weight)
        pos_label = cut.positive_in(y_true, pos_label)
        tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        if sample_weight is not None:
            require_whole(np.asarray(sample_weight, dtype=float), weights)
    elif y_true is not None or y_score is not None or sample_weight is not None:
        raise ValueError("pass either rows or their tally, not both")
    if isinstance(cut, Bands):
        from surecut.certificates.zone_drift import bands_drift

        return bands_drift(cut, tally, reference, weights, confidence, looks, random_state)
    if isinstance(cut.metric, (FunctionMetric, UnknownMetric)):
        raise ValueError(f"the cut was tuned for the function {cut.metric.name!r}, of which nothing is known here")
    kind = kind_of_reference(cut, reference)
    before = rows_then(cut, reference, weights)
    now = counted_rows(cut, tally, weights)
    negatives, positives = (int(total) for total in now.rows.sum(axis=0))
    cut.metric.check_classes(positives, negatives)

    error = (1 - confidence) / looks
    confusion = now.confusion_at(cut.threshold)
    return DriftReport(
        cut=cut,
        prior=prior_change(cut, before, positives, positives + negatives, error / 2),
        value=value_change(cut, before, kind, now, confusion, error / 2, random_state),
        value_at_then_prior=float(cut.metric.evaluate(confusion.at_prior(cut.prior)))
        if positives and negatives
        else math.nan,
        constraints={str(one): float(one.quantity.evaluate(confusion)) for one in cut.constraints},
        best=_best(cut, tally if not cut.prior_given else tally.with_prior(cut.prior)),
        rows=positives + negatives,
        then_rows=int(before.rows.sum()),
        confidence=confidence,
        has_reference=reference is not None,
        looks=looks,
    )


def check_watch(confidence: float, weights: str | None, looks: int) -> None:
    """Raise where the options of a check are none, before any rows are read."""
    check_confidence(confidence)
    check_weights(weights)
    if not (isinstance(looks, (int, np.integer)) and looks >= 1):
        raise ValueError(f"looks= must be a whole number of at least 1, got {looks!r}")


@dataclass(frozen=True)
class LabelDrift:
    """What has changed, label by label.

    Attributes
    ----------
    reports
        The report of each label that could be checked.
    not_checked
        The other labels, and why.
    confidence, each
        Where nothing has changed there is no alarm of any label with this probability; and of one label with this.
    looks
        Over how many looks the error is spent: both confidences are those of all of them together.
    """

    reports: dict[Any, DriftReport]
    not_checked: dict[Any, str]
    confidence: float
    each: float
    looks: int = 1

    @property
    def moved_labels(self) -> list[Any]:
        """The labels with a statistically significant change, the clearest first."""
        moved = [label for label, report in self.reports.items() if report.moved]

        def improbable(label: Any) -> float:
            report = self.reports[label]
            return min(report.prior.p_value, report.value.p_value)

        return sorted(moved, key=improbable)

    @property
    def moved(self) -> bool:
        """Whether any label has."""
        return bool(self.moved_labels)


def check_label_drift(
    cut: MultilabelCut,
    tallies: Sequence[ScoreTally],
    *,
    reference: Sequence[ScoreTally] | None = None,
    weights: str | None = None,
    confidence: float = 0.95,
    unknown: str = "drop",
    looks: int = 1,
    random_state: Any = 0,
) -> LabelDrift:
    """Compare new rows of each label with those that tuned its cut.

    Each label is checked at error / m, so that there is no false alarm of any with the confidence, whatever holds
    between the labels; at error / (m · looks) if so many looks are planned. A label without rows of both classes, where
    the metric needs them, is listed as not checked. So is a label without any rows, whose tally is empty, unless
    ``unknown="error"``. It is an error if no label can be checked. The other parameters are those of `check_drift`.
    """
    check_watch(confidence, weights, looks)
    check_unknown(unknown, "drop", "error")
    for some in (tallies, tallies if reference is None else reference):
        if len(some) != len(cut):
            raise ValueError(f"expected a tally for each of the {len(cut)} labels, got {len(some)}")
    if unknown == "error":
        _require_rows(cut, tallies, "rows")
        if reference is not None:
            _require_rows(cut, reference, "reference rows")
    options: dict[str, Any] = {"weights": weights, "looks": looks, "random_state": random_state}
    each = 1 - (1 - confidence) / len(cut)
    reports: dict[Any, DriftReport] = {}
    not_checked: dict[Any, str] = {}
    for i, (label, tally) in enumerate(zip(cut, tallies, strict=True)):
        then = None if reference is None else reference[i]
        one = cut[label]
        if reason := _unchecked(one, tally, then):
            not_checked[label] = reason
        else:
            reports[label] = check_drift(one, tally=tally, reference=then, confidence=each, **options)
    if not reports:
        label, reason = next(iter(not_checked.items()))
        raise ValueError(
            f"none of the cut's {counted(len(cut), 'label')} can be checked, such as {in_brief(repr(label))}: {reason}"
        )
    return LabelDrift(reports, not_checked, confidence, each, looks)


def _require_rows(cut: MultilabelCut, tallies: Sequence[ScoreTally], which: str) -> None:
    lacking = [label for label, tally in zip(cut, tallies, strict=True) if not tally.rows.any()]
    if lacking:
        raise ValueError(
            f"there are no {which} of {len(lacking):,} of the cut's {counted(len(cut), 'label')}, such as "
            f'{in_brief(repr(lacking[0]))}: give rows of them, or pass unknown="drop" to check the other labels'
        )


def _unchecked(cut: Cut, tally: ScoreTally, reference: ScoreTally | None) -> str | None:
    """Why a label cannot be checked; None where it can be."""
    if not tally.rows.any():
        return "no rows"
    if reference is not None and not reference.rows.any():
        return "no reference rows"
    classes = [(cut.confusion.negatives, cut.confusion.positives)]
    classes += [one.rows.sum(axis=0) for one in (tally, reference) if one is not None]
    try:
        for negatives, positives in classes:
            cut.metric.check_classes(positives, negatives)
    except ValueError as error:
        return str(error)
    return None


class Reference(Enum):
    """What the new rows are compared with."""

    COUNTS = "the counts that the cut remembers"
    TUNING = "the validation rows"
    PARTLY = "rows of which some tuned the cut, or may have"
    ASIDE = "rows that were kept aside"


def kind_of_reference(cut: Cut, reference: ScoreTally | None) -> Reference:
    """What the reference is, by its rows as they are, before weights repeat them."""
    if reference is None:
        return Reference.COUNTS
    if reference.has_tuned(cut):
        return Reference.TUNING
    if rows_trained(cut, {0: reference}) is Overlap.SHARED:
        raise ValueError(
            "the reference rows trained the model, all or many of them, and its scores of them are too good to "
            "compare with: give reference rows that it was not trained on"
        )
    return Reference.ASIDE if rows_tuned(cut, {0: reference}) is Overlap.NONE else Reference.PARTLY


def counted_rows(cut: Cut, tally: ScoreTally, weights: str | None) -> ScoreTally:
    """Rows as often as their weights say, at the prior of the cut."""
    counted = frequencies(tally, "the check", weights)
    return counted if not cut.prior_given else counted.with_prior(cut.prior)


def rows_then(cut: Cut, reference: ScoreTally | None, weights: str | None) -> ScoreTally:
    """The rows to compare with: the reference, or the four counts that a cut remembers."""
    if reference is not None:
        return counted_rows(cut, reference, weights)
    if cut.weighted:
        if weights != "counts":
            raise ValueError(
                "the cut was tuned on weighted rows, whose chance it does not know: give reference rows, or pass "
                "weights='counts' if a weight of 2 means the row twice"
            )
        require_whole(cells_of(cut.confusion), weights)
    if cut.out_of_fold:
        raise ValueError(
            "the cut was tuned on scores that were pooled from folds, each with a model of its own: give reference "
            "rows, scored by the model in use"
        )
    cells = cut.confusion
    counts = np.array([[cells.fp, cells.tp], [cells.tn, cells.fn]], dtype=np.int64)
    keys = np.array([1, 0], dtype=np.uint64)
    given = cut.prior if cut.prior_given else None
    return ScoreTally(keys, counts, counts, counts, np.dtype(np.float64), given_prior=given)


def prior_change(cut: Cut, before: ScoreTally, positives: int, rows: int, error: float) -> Change:
    """By Fisher's exact test; against a share that was given, by the binomial one."""
    from scipy import stats

    def limits(count: int, total: int) -> tuple[float, float]:
        lower, upper = share_limits(count, total, error / 2)
        return float(lower), float(upper)

    if cut.prior_given:
        then, then_limits = cut.prior, (cut.prior, cut.prior)
        p_value = float(stats.binomtest(positives, rows, cut.prior).pvalue)
    else:
        then_negatives, then_positives = (int(total) for total in before.rows.sum(axis=0))
        then_rows = then_positives + then_negatives
        then, then_limits = then_positives / then_rows, limits(then_positives, then_rows)
        p_value = float(
            stats.fisher_exact(np.array([[then_positives, then_negatives], [positives, rows - positives]]))[1]
        )
    return Change(then, positives / rows, then_limits, limits(positives, rows), p_value, p_value < error)


def value_change(
    cut: Cut,
    before: ScoreTally,
    kind: Reference,
    now: ScoreTally,
    confusion: Confusion,
    error: float,
    random_state: Any,
) -> Change:
    """A fall or a rise of the metric, each with half of the error."""
    then_confusion = cut.confusion if kind is Reference.COUNTS else before.confusion_at(cut.threshold)

    def now_limits(level: float) -> tuple[float, float]:
        lower, upper, _ = value_limits(cut.metric, cells_of(confusion), level, now.given_prior)
        return float(lower), float(upper)

    then_limits = _then_limits(cut, before, kind, then_confusion, random_state)
    return compared(_value(cut, then_confusion), _value(cut, confusion), then_limits, now_limits, error)


def compared(then: float, now: float, then_limits: Limits, now_limits: Limits, error: float) -> Change:
    """A fall or a rise of a quantity of which limits are known in both samples, each with half of the error."""
    levels = np.geomspace(0.3, error / 100, LEVELS)
    then_lower, then_upper = np.array([then_limits(level) for level in levels]).T
    now_lower, now_upper = np.array([now_limits(level) for level in levels]).T
    fall = _improbability(levels, now_upper, then_lower)
    rise = _improbability(levels, -now_lower, -then_upper)
    p_value = min(1.0, 2 * min(fall, rise))
    return Change(then, now, then_limits(error), now_limits(error), p_value, p_value < error)


def _then_limits(cut: Cut, before: ScoreTally, kind: Reference, confusion: Confusion, random_state: Any) -> Limits:
    """Limits of the value then: exact for rows kept aside, by the bootstrap or for all thresholds for tuning rows."""

    def of_rows(level: float) -> tuple[float, float]:
        lower, upper, _ = value_limits(cut.metric, cells_of(confusion), level, before.given_prior)
        return float(lower), float(upper)

    def of_counts(level: float) -> tuple[float, float]:
        return band_limits(cut.metric, confusion, before.given_prior, level)

    if kind is Reference.ASIDE:
        return of_rows
    if kind is not Reference.TUNING:
        return of_counts  # the limits for any rows that did not train the model
    (drawn,) = resample([cut], before, not cut.constraints, None, RESAMPLES, random_state, False)
    return drawn.limits


def _improbability(levels: NDArray[np.float64], upper: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """How probable it is, at most, that limits of one value lie this far apart: an upper one below a lower one.

    Both hold limits at the levels, which fall. At a value θ the first sample is improbable by the smallest level whose
    upper limit is below θ, the other by the smallest whose lower limit is above. Their product c has the probability
    c (1 − log c), since the samples are independent; the θ that suits them best counts.
    """
    upper, lower = np.maximum.accumulate(upper), np.minimum.accumulate(lower)
    theta = np.sort(np.concatenate((upper, lower)))
    theta = np.concatenate((theta[:1] - 1, theta, (theta[1:] + theta[:-1]) / 2, theta[-1:] + 1))[:, None]
    first = np.where(upper < theta, levels, 1.0).min(axis=1)
    second = np.where(lower > theta, levels, 1.0).min(axis=1)
    product = float((first * second).max())
    return product * (1 - math.log(product))


def _value(cut: Cut, confusion: Confusion) -> float:
    return float(cut.metric.evaluate(confusion.at_prior(cut.prior) if cut.prior_given else confusion))


def _best(cut: Cut, tally: ScoreTally) -> Cut | None:
    try:
        return tally.best_cut(cut.metric, list(cut.constraints))
    except InfeasibleError:
        return None
