"""Many labels: a threshold for each (macro), or one for all (micro, samples)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import numpy as np

from surecut._inputs import as_weights
from surecut._matrices import aligned, is_sparse, label_matrix, one_column_hint, present_rows, score_matrix
from surecut.averages import NOT_SEPARATED, OVERPREDICTED, averaged_value
from surecut.constraints import ConstraintLike
from surecut.core.rules import Objective
from surecut.core.search import search
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.stability import LabelStability
from surecut.sources.labels import LabelSource, TallySource, best_cuts
from surecut.sources.matrices import DenseSource, label_source, no_labels
from surecut.tuning.promised import promised_cuts
from surecut.tuning.request import LabelOptions, MetricLike, Request
from surecut.tuning.resampling import Folds
from surecut.tuning.samples import best_samples_cut
from surecut.tuning.smoothing import Smoothed
from surecut.tuning.stable import LabelThreshold, settle, stable_cuts_of_labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.core.tally import ScoreTally


@overload
def tune_thresholds(
    Y_true: Any, Y_score: Any, *, metric: MetricLike = ..., **options: Unpack[LabelOptions]
) -> MultilabelCut: ...
@overload
def tune_thresholds(
    Y_true: Any, Y_score: Any, *, metric: Sequence[MetricLike], **options: Unpack[LabelOptions]
) -> dict[str, MultilabelCut]: ...
def tune_thresholds(
    Y_true: Any,
    Y_score: Any,
    *,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    average: str = "macro",
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    constraint: ConstraintLike | Iterable[ConstraintLike] | None = None,
    confidence: float | None = None,
    prior: float | None = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    zero_division: float = 0.0,
    missing: str = "error",
    labels: Iterable[Any] | None = None,
    random_state: int | None = 0,
) -> MultilabelCut | dict[str, MultilabelCut]:
    """Find the thresholds at which a metric, averaged over labels, is best: exactly.

    Parameters
    ----------
    Y_true
        Labels of shape (rows, labels), 0 and 1 unless `pos_label` is given: an array, a sparse matrix, or a pandas or
        Polars frame.
    Y_score
        Scores of the same shape. In a sparse matrix an absent score is never predicted; a stored 0 is a score.
    metric
        A name, a metric, a scikit-learn scorer, a function of a `Confusion`, or a list of these, which gives a dict.
    average
        ``"macro"``: the mean of the labels' values, a threshold for each label. ``"micro"``: the value of the added
        counts, one threshold for all. ``"samples"``: the mean of the rows' values, one threshold for all.
    sample_weight
        Weights of the rows, not negative. A weight of 2 means the row twice.
    pos_label
        The value that counts as positive, where `Y_true` does not hold 0 and 1.
    constraint
        Conditions on each label's cut (on the pooled cut, if micro), as in `tune_threshold`.
    confidence
        With `constraint` and ``average="macro"``: a probability, such as 0.95, with which every label's cut meets the
        constraint on new data, those of all labels together; each label has its share of the error. Needs one fixed
        model that was not trained on these rows, and rows without weights (`tune_frame` takes ``weights="counts"``).
    prior
        For one cut only: refused here, with the way out.
    shrinkage
        κ, the prior strength of a calibrated model of the scores, in equivalent positives: with few positives of its
        own a label is cut where the model has it, with many where its rows have it. 0 tunes on the labels alone, the
        paper's procedure; ``"auto"`` finds κ, and the model, from these rows: recommended for labels with few
        positives.
    stable
        Whether the thresholds are for new rows, as in `tune_threshold`. Labels with few positives then lean on the
        others, through a model of all labels' scores.
    zero_division
        What a row is worth in the samples average where the metric is 0/0: F1 of a row without labels and predictions.
    missing
        What to do with rows that lack a label, a score (NaN, None, NA) or their weight: ``"error"``, or ``"drop"``,
        which drops the row for all labels, since a matrix has it for all, and warns how many were dropped. To keep the
        others' scores, make the one that is missing absent from a sparse matrix, or tune a long table, `tune_frame`.
    labels
        Names of the labels; else the frame's column names, or positions.
    random_state
        The seed of the resamples that `stable` needs.

    Returns
    -------
    MultilabelCut
        The thresholds, the averaged value, each label's value. A label on whose rows the metric is undefined (F1
        without a positive) takes the shared threshold, that of the micro cut, and `MultilabelCut.shared` says so. With
        shrinkage so does a label whose scores do not separate its positives, if its own cut would accept ten rows or
        more for each of them and the metric counts no true negatives.

    Examples
    --------
    >>> Y_true = [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> Y_score = [[0.5, 0.25], [0.25, 0.75], [1.0, 0.5], [0.75, 1.0]]
    >>> print(tune_thresholds(Y_true, Y_score, average="micro"))
    2 labels, all predicted where score >= 0.375: micro f1 = 0.8000 on 4 rows each
    """
    request = Request.of(
        metric,
        average=average,
        constraint=constraint,
        confidence=confidence,
        prior=prior,
        shrinkage=shrinkage,
        stable=stable,
        zero_division=zero_division,
        pos_label=pos_label,
        missing=missing,
        random_state=random_state,
    )
    if missing == "drop":
        Y_true, Y_score, sample_weight = present_rows(Y_true, Y_score, sample_weight)
    scores, score_names = score_matrix(Y_score, one_column=one_column_hint(Y_true, "tune_threshold takes one column"))
    one_class = "for a column of class labels call tune_top_k(y, scores, k=1)"
    truth, truth_names = label_matrix(Y_true, pos_label, one_column=one_class)
    truth, names = aligned(truth, truth_names, scores, score_names, labels)
    weights = None if sample_weight is None else as_weights(sample_weight, scores.shape[0])
    source = label_source(truth, scores, weights)
    if average != "samples":
        return cast("MultilabelCut | dict[str, MultilabelCut]", request.named(tune_labels(source, request, names)))
    if isinstance(source, DenseSource):
        source.require_no_nan()  # before rows and labels change places
    cuts = []
    for objective in request.objectives:
        cut = best_samples_cut(truth, scores, weights, objective, request.zero_division)
        found = _with_one_threshold(source, *cut, objective, names, average)
        cuts.append(replace(found, zero_division=request.zero_division, pos_label=pos_label))
    return cast("MultilabelCut | dict[str, MultilabelCut]", request.named(cuts))


@overload
def tune_expected(
    Y_probability: Any,
    *,
    metric: MetricLike = ...,
    average: str = ...,
    sample_weight: ArrayLike | None = ...,
    zero_division: float = ...,
    missing: str = ...,
    labels: Iterable[Any] | None = ...,
) -> MultilabelCut: ...
@overload
def tune_expected(
    Y_probability: Any,
    *,
    metric: Sequence[MetricLike],
    average: str = ...,
    sample_weight: ArrayLike | None = ...,
    zero_division: float = ...,
    missing: str = ...,
    labels: Iterable[Any] | None = ...,
) -> dict[str, MultilabelCut]: ...
def tune_expected(
    Y_probability: Any,
    *,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    average: str = "macro",
    sample_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
    missing: str = "error",
    labels: Iterable[Any] | None = None,
) -> MultilabelCut | dict[str, MultilabelCut]:
    """Find the thresholds at which a metric of the *expected* confusion is best: no labels, only probabilities.

    The plug-in rule of the literature, and the limit of `tune_thresholds` for a shrinkage without bound, if the
    probabilities are taken at their word. It is as good as they are calibrated.

    Parameters
    ----------
    Y_probability
        Probabilities of shape (rows, labels); those absent from a sparse matrix are 0, and never predicted.
    metric, average, sample_weight, zero_division, missing, labels
        As in `tune_thresholds`.

    Returns
    -------
    MultilabelCut
        `value`, `per_label` and `confusion` are expected ones; a dict of them for several metrics.

    Examples
    --------
    >>> cut = tune_expected([[0.75, 0.25], [0.5, 0.25], [0.25, 0.5]], metric="f1")
    >>> cut.thresholds, round(cut.value, 4)
    (array([0.375, 0.375]), 0.6071)
    """
    request = Request.of(metric, average=average, zero_division=zero_division, missing=missing)
    if missing == "drop":
        _, Y_probability, sample_weight = present_rows(None, Y_probability, sample_weight)
    scores, names = score_matrix(Y_probability, name="Y_probability")
    stored = scores.data if is_sparse(scores) else scores
    if stored.size and not (stored.min() >= 0 and stored.max() <= 1):
        raise ValueError(
            "Y_probability must lie between 0 and 1, without NaN: calibrate scores, or use tune_thresholds"
        )
    truth, names = aligned(no_labels(scores), None, scores, names, labels)
    weights = None if sample_weight is None else as_weights(sample_weight, scores.shape[0])
    source = label_source(truth, scores, weights)
    cuts = [_expected(source, scores, weights, objective, request, names) for objective in request.objectives]
    return cast("MultilabelCut | dict[str, MultilabelCut]", request.named(cuts))


def _expected(
    source: LabelSource,
    scores: Any,
    weights: NDArray[np.float64] | None,
    objective: Objective,
    request: Request,
    names: tuple[Any, ...],
) -> MultilabelCut:
    """The thresholds at which the metric of the expected confusion is best."""
    average, zero_division = str(request.average), request.zero_division
    expected = Smoothed.by_probability(source, objective)
    shared = value = None
    if average == "macro":
        cuts = expected.best_cuts(names)
        thresholds, intervals = cuts.thresholds, cuts.intervals
        if not cuts.defined.all():
            pooled = expected.pooled_cut()
            shared = float(pooled.thresholds[0])
            thresholds, intervals = cuts.sharing(cuts.defined, shared, pooled.intervals)
    else:
        if average == "micro":
            pooled = expected.pooled_cut()
            threshold, interval = pooled.thresholds[0], pooled.intervals[0]
        else:
            threshold, interval, value = best_samples_cut(None, scores, weights, objective, zero_division)
        thresholds, intervals = np.full(len(names), threshold), np.tile(np.asarray(interval), (len(names), 1))
    confusion = expected.confusion_at(thresholds)
    if average == "micro":
        value = averaged_value(objective.metric, average, confusion)
    result = _result(source, objective, names, average, thresholds, intervals, confusion, value=value, shared=shared)
    return replace(
        result,
        shrinkage=np.full(len(names), np.inf),
        calibration=str(expected.calibration),
        zero_division=zero_division,
        seen=(),  # labels took no part
    )


@overload
def tune_tallies(  # type: ignore[overload-overlap]  # a string is a sequence, of strings
    tallies: Sequence[ScoreTally],
    labels: Iterable[Any],
    *,
    metric: MetricLike = ...,
    average: str = ...,
    constraint: ConstraintLike | Iterable[ConstraintLike] | None = ...,
    confidence: float | None = ...,
    shrinkage: float | str = ...,
    stable: bool = ...,
    random_state: int | None = ...,
) -> MultilabelCut: ...
@overload
def tune_tallies(
    tallies: Sequence[ScoreTally],
    labels: Iterable[Any],
    *,
    metric: Sequence[MetricLike],
    average: str = ...,
    constraint: ConstraintLike | Iterable[ConstraintLike] | None = ...,
    confidence: float | None = ...,
    shrinkage: float | str = ...,
    stable: bool = ...,
    random_state: int | None = ...,
) -> dict[str, MultilabelCut]: ...
def tune_tallies(
    tallies: Sequence[ScoreTally],
    labels: Iterable[Any],
    *,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    average: str = "macro",
    constraint: ConstraintLike | Iterable[ConstraintLike] | None = None,
    confidence: float | None = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    random_state: int | None = 0,
) -> MultilabelCut | dict[str, MultilabelCut]:
    """The same from each label's tally, whatever it was made of.

    Labels may have different numbers of rows: micro then means the added counts, as in scikit-learn.

    >>> from surecut import ScoreTally
    >>> tallies = [ScoreTally.from_scores([0, 1, 1], [0.25, 0.5, 1.0]), ScoreTally.from_scores([0, 1], [0.75, 0.5])]
    >>> tune_tallies(tallies, ["a", "b"], average="macro").thresholds
    array([0.375, 0.5  ])
    """
    names = tuple(labels)
    if not tallies or len(names) != len(tallies):
        raise ValueError(f"expected one tally per label, and at least one: {len(names)} labels, {len(tallies)} tallies")
    if any(tally.given_prior is not None for tally in tallies):
        raise ValueError("a prior that is given is for a single cut, not for many labels: tune each tally by itself")
    options: dict[str, Any] = {
        "constraint": constraint,
        "confidence": confidence,
        "shrinkage": shrinkage,
        "stable": stable,
        "pos_label": tallies[0].pos_label,
        "random_state": random_state,
    }
    request = Request.of_table(metric, by=names, average=average, **options)
    cuts = tune_labels(TallySource(tallies), request, names)
    return cast("MultilabelCut | dict[str, MultilabelCut]", request.named(cuts))


def tune_labels(
    source: LabelSource, request: Request, names: tuple[Any, ...], folds: Folds | None = None
) -> list[MultilabelCut]:
    """The thresholds of labels, wherever their scores are, for each metric of a request.

    Resamples of stable cuts draw whole `folds` where scores come from several models.
    """
    average, cuts = str(request.average), []
    for objective in request.objectives:
        if request.shrinkage != 0:
            cut = _shrunken(source, request.shrinkage, objective, names, average)
        elif request.stable:
            cut = _stable(source, objective, names, average, request.random_state, folds)
        elif request.confidence is not None:
            cut = _promised(source, objective, names, request)
        elif average == "macro":
            cut = _macro(source, objective, names)
        else:
            cut = _with_one_threshold(source, *_pooled_cut(source, objective), objective, names, average)
        cuts.append(replace(cut, pos_label=request.pos_label))
    return cuts


def _macro(source: LabelSource, objective: Objective, names: tuple[Any, ...]) -> MultilabelCut:
    cuts = best_cuts(source, objective, names)
    thresholds, intervals, confusion = cuts.thresholds, cuts.intervals, cuts.confusion
    shared = None
    if not cuts.defined.all():
        shared, interval, _ = _pooled_cut(source, objective)
        thresholds, intervals = cuts.sharing(cuts.defined, shared, interval)
        confusion = source.confusion_at(thresholds)
    return _result(source, objective, names, "macro", thresholds, intervals, confusion, shared=shared)


def _promised(source: LabelSource, objective: Objective, names: tuple[Any, ...], request: Request) -> MultilabelCut:
    """Cuts that keep the constraints on new data, those of all labels together with the confidence."""
    cuts = promised_cuts(source, objective, names, request)
    found = _result(source, objective, names, "macro", cuts.thresholds, cuts.intervals, cuts.confusion)
    return replace(found, confidence=request.confidence)


def _pooled_cut(source: LabelSource, objective: Objective) -> tuple[float, tuple[float, float], float]:
    """Threshold, interval and value of the best cut of all labels' scores taken together."""
    pooled = source.pooled()
    (found,) = search(pooled, [objective])
    placed = found.placed()
    interval = float(placed.lower[0]), float(placed.upper[0])
    return float(placed.thresholds[0]), interval, float(found.verdict.value[0])


def _with_one_threshold(
    source: LabelSource,
    threshold: float,
    interval: tuple[float, float],
    value: float | None,
    objective: Objective,
    names: tuple[Any, ...],
    average: str,
) -> MultilabelCut:
    thresholds = np.full(len(names), threshold)
    intervals = np.tile(np.array(interval), (len(names), 1))
    confusion = source.confusion_at(thresholds)
    value = averaged_value(objective.metric, average, confusion) if value is None else value
    return _result(source, objective, names, average, thresholds, intervals, confusion, value=value)


def _shrunken(
    source: LabelSource, kappa: float | str, objective: Objective, names: tuple[Any, ...], average: str
) -> MultilabelCut:
    negatives, positives = source.totals.sum(axis=0)
    objective.metric.check_classes(positives, negatives)
    smoothed = Smoothed.by_shrinkage(source, kappa, objective)
    if average == "micro":
        pooled = smoothed.pooled_cut()
        threshold, interval = (
            float(pooled.thresholds[0]),
            (float(pooled.intervals[0, 0]), float(pooled.intervals[0, 1])),
        )
        result = _with_one_threshold(source, threshold, interval, None, objective, names, average)
    else:
        cuts = smoothed.best_cuts(names)
        thresholds, intervals, shared = cuts.thresholds, cuts.intervals, None
        accepted = cuts.confusion.predicted_positives  # smoothing divides the rows' weight, and keeps its sum
        wasteful = cuts.defined & ~smoothed.separated & (accepted >= OVERPREDICTED * source.totals[:, 1])
        if objective.metric.needs_negatives:  # one half of the rows is a fair share where true negatives count as much
            wasteful[:] = False
        own = cuts.defined & ~wasteful
        if not own.all():
            pooled = smoothed.pooled_cut()
            shared = float(pooled.thresholds[0])
            thresholds, intervals = cuts.sharing(own, shared, pooled.intervals)
        confusion = source.confusion_at(thresholds)
        reasons = {names[i]: NOT_SEPARATED for i in np.flatnonzero(wasteful).tolist()}
        result = _result(
            source, objective, names, average, thresholds, intervals, confusion, shared=shared, reasons=reasons
        )
    return replace(result, shrinkage=smoothed.kappa, calibration=str(smoothed.calibration))


def _stable(
    source: LabelSource,
    objective: Objective,
    names: tuple[Any, ...],
    average: str,
    random_state: Any,
    folds: Folds | None,
) -> MultilabelCut:
    """Thresholds for new rows: of each label, or of all labels' scores taken together."""

    def pooled() -> LabelThreshold:
        (one,) = settle(source.pooled(), [objective], random_state, folds)
        return one.placed(source.dtype)

    if average == "micro":
        threshold, interval, stability = pooled()
        found = _with_one_threshold(source, threshold, interval, None, objective, names, average)
        return replace(found, stability=LabelStability.joined([stability] * len(names)))
    objective.check_each(source.totals)
    cuts = stable_cuts_of_labels(source, objective, names, random_state, folds)
    own = np.array([cut is not None for cut in cuts])
    shared, interval = None, (np.nan, np.nan)
    if not own.all():
        shared, interval, _ = pooled()
    placed = [(shared, interval, None) if cut is None else cut for cut in cuts]
    thresholds = np.array([threshold for threshold, _, _ in placed], dtype=float)
    intervals = np.array([interval for _, interval, _ in placed])
    found = _result(
        source, objective, names, average, thresholds, intervals, source.confusion_at(thresholds), shared=shared
    )
    return replace(found, stability=LabelStability.joined([stability for _, _, stability in placed]))


def _result(
    source: LabelSource,
    objective: Objective,
    names: tuple[Any, ...],
    average: str,
    thresholds: Any,
    intervals: Any,
    confusion: Any,
    *,
    value: float | None = None,
    shared: float | None = None,
    reasons: Mapping[Any, str] | None = None,
) -> MultilabelCut:
    return MultilabelCut.at(
        confusion,
        objective.metric,
        value=value,
        labels=names,
        thresholds=thresholds,
        average=average,
        intervals=intervals,
        rows=np.full(len(names), source.rows, dtype=np.int64),
        shared_threshold=shared,
        shared=reasons or {},
        constraints=objective.constraints,
        weighted=source.weighted,
        checksums=source.checksums(),
        seen=source.seen(np.column_stack((confusion.negatives, confusion.positives))),
    )
