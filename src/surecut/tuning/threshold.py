"""The second step of the procedure: the threshold where the metric is best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from surecut.constraints import ConstraintLike
from surecut.tuning.request import MetricLike, Request, RowOptions
from surecut.tuning.tune import array_source, tune

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from surecut.decisions.cut import Cut


@overload
def tune_threshold(  # type: ignore[overload-overlap]  # a string is a sequence, of strings
    y_true: ArrayLike, y_score: ArrayLike, *, metric: MetricLike = ..., **options: Unpack[RowOptions]
) -> Cut: ...
@overload
def tune_threshold(
    y_true: ArrayLike, y_score: ArrayLike, *, metric: Sequence[MetricLike], **options: Unpack[RowOptions]
) -> dict[str, Cut]: ...
def tune_threshold(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    metric: MetricLike | Sequence[MetricLike] = "f1",
    sample_weight: ArrayLike | None = None,
    weights: str | None = None,
    pos_label: Any = None,
    constraint: ConstraintLike | Iterable[ConstraintLike] | None = None,
    confidence: float | None = None,
    prior: float | None = None,
    shrinkage: float | str = 0.0,
    stable: bool = False,
    missing: str = "error",
    random_state: int | None = 0,
) -> Cut | dict[str, Cut]:
    """Find the threshold at which a metric is best: exactly, as if every score had been tried.

    Parameters
    ----------
    y_true
        Labels: {0, 1}, {−1, 1}, booleans, or any two values with `pos_label`.
    y_score
        Any real scores, larger for positives: probabilities, margins, ranks. ±inf is allowed, NaN is not.
    metric
        A name (see `surecut.metrics.get_metric`), a metric, a scikit-learn scorer, a function of a `Confusion`, or a
        list of these, which gives a dict of the metrics' own names (`"am"` for balanced accuracy) to cuts, all from the
        same passes over the data. Metrics that share a name are distinguished by their parameters.
    sample_weight
        Weights of the rows, not negative. The cut is that of rows which are repeated as often.
    weights
        With `confidence` and weights: what the weights mean. ``"counts"`` if a weight of 2 means the row twice; with
        ``"importance"``, as for costs, no constraint can be promised. Weights that are all 0 or 1
        mean the same either way, which rows are there, and need no word.
    pos_label
        The label that counts as positive.
    constraint
        Conditions on the cut: ``"precision>=0.9"``, ``("precision", 0.9)``, ``"predicted_positive_rate<=0.01"``, or a
        list of them. They hold on these rows; on new rows each is missed about every second time, unless:
    confidence
        A probability, such as 0.95, with which what is promised of a cut holds on new data: its constraints, all of
        them together, or, where there are none, `Cut.lower_limit` of the metric. Without constraints the cut is the one
        that a small random part of the rows, the pilot, expects to be best; the other rows give the limit. Of several
        metrics, each cut has this confidence. Needs one fixed model that was not trained on these rows.
    prior
        The share of positives where the cut will be used, if it is not that of these rows.
    shrinkage
        κ, the prior strength of a calibrated model of the scores, in equivalent positives, for samples with few
        positives: 0 tunes on these rows alone, ``"auto"`` finds κ and the model from them. See `tune_thresholds`.
    stable
        Whether the cut is for new rows: settled between the best cuts of resamples and that of a calibrated model.
        Where the metric's curve is smooth it has about half the regret of the best cut of these rows, which is what
        False gives. `Cut.value` is what it is worth on these rows, and `Cut.stability` how settled it is. See "Stable
        cuts" in the documentation.
    missing
        What to do with rows without a label, a score or a weight (NaN, None, NA): ``"error"``, or ``"drop"``, which
        warns how many were dropped.
    random_state
        The seed of the resamples that `stable` needs.

    Returns
    -------
    Cut
        The threshold, its value, and where they came from. Among equal values the highest threshold wins. With
        weights, values that differ by no more than rounding errors (2e-15 of the metric's largest value) count as
        equal: if weights range over 24 orders of magnitude, an F1 of 1e-24 is as good as 0.

    Examples
    --------
    >>> cut = tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75], metric="f1")
    >>> cut.threshold, cut.value, cut.interval
    (0.25, 0.8, (0.125, 0.375))
    >>> print(cut)
    predict positive where score >= 0.25: f1 = 0.8000 on 4 rows, 50.00% positive, 3 accepted
    """
    request = Request.of(
        metric,
        constraint=constraint,
        confidence=confidence,
        weights=weights,
        prior=prior,
        shrinkage=shrinkage,
        stable=stable,
        pos_label=pos_label,
        missing=missing,
        random_state=random_state,
    )
    cuts = tune(array_source(y_true, y_score, sample_weight, request), request)
    return cast("Cut | dict[str, Cut]", request.named(cuts))
