"""What can be promised of a cut on rows that nobody has seen.

Four methods, from the strictest to the most modest:

- ``"holdout"``: rows that took part neither in training nor in tuning. Exact for accuracy, F₁, Jaccard, precision,
  recall and specificity; valid for every sample size and a little cautious for the others.
- ``"uniform"``: the very rows that tuned the cut. Limits that hold for all thresholds at once, so that it does not
  matter how the threshold was chosen; also for the regret against the best threshold of this model.
- ``"theorem"``: the paper's Theorem 3. True, and as a rule vacuous: it is shown for comparison.
- ``"bootstrap"``: resampled rows, or whole groups of them. Right for large samples only, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut import theory
from surecut._inputs import as_labels, as_scores, as_weights, require_no_nan, require_same_length
from surecut.certificates import bootstrap
from surecut.certificates.confidence import FallTo, least_shares, share_limits, three_part_limit, two_share_limit
from surecut.confusion import Confusion
from surecut.cut import Cut, UnknownMetric
from surecut.metrics import FunctionMetric, LinearFractionalMetric, Metric, MetricConstants
from surecut.tally import ScoreTally

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

METHODS = ("holdout", "uniform", "theorem", "bootstrap")

PRIOR_SHARE = 0.2
"""The share of the error of a hold-out limit that is spent on the prior, where the metric depends on it."""

PRIORS = 33
"""Priors between their limits at which the worst case is looked for."""

STEPS_SHARE = 0.2
"""The share of the error of a regret bound that is spent on what lies between two thresholds."""

THRESHOLDS = 4096
"""More thresholds than this are bounded in blocks."""


@dataclass(frozen=True)
class Certificate:
    """What is promised of a cut on new rows, with which confidence, and under which assumptions.

    Attributes
    ----------
    lower, upper
        Limits of the metric's value on new rows; *each* holds with the confidence, so that the value is at least
        `lower`, or at most `upper`, whichever one cares for.
    regret_bound
        By how much the best threshold of this same model can be better, with the same confidence; None where the
        method does not say. Never a statement on other models.
    value
        The metric on the rows that were given.
    metric, threshold, method, confidence, rows
        What was certified, how, and on how many rows.
    exact
        Whether the limits are those of an exact test, without caution.
    assumptions
        What must be true for the promise to hold.
    threshold_spread
        With ``"bootstrap"`` on the tuning rows: the middle 80 % of the thresholds that resampled rows choose. It shows
        how settled the threshold is; it is no confidence interval.
    """

    lower: float
    upper: float
    regret_bound: float | None
    value: float
    metric: str
    threshold: float
    method: str
    confidence: float
    rows: int
    exact: bool
    assumptions: tuple[str, ...]
    threshold_spread: tuple[float, float] | None = None

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised that was not known before."""
        return bool(self.regret_bound is not None and self.method == "theorem" and self.regret_bound >= 1)

    def __str__(self) -> str:
        return _sentence(self)

    def _repr_html_(self) -> str:
        from surecut.notebook import certificate_html

        return certificate_html(self)


def certify(
    cut: Cut,
    y_true: ArrayLike | None = None,
    y_score: ArrayLike | None = None,
    *,
    tally: ScoreTally | None = None,
    confidence: float = 0.95,
    method: str = "holdout",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Any = None,
    resamples: int = 2000,
    random_state: Any = 0,
    progress: bool | None = None,
) -> Certificate:
    """Limits for a cut's value on new rows.

    Parameters
    ----------
    cut
        A cut, however it was found.
    y_true, y_score
        Labels and scores by the model that will be deployed; or a `tally` of them. ``method="theorem"`` needs none.
    confidence
        The probability with which each limit holds, over the draw of the rows.
    method
        ``"holdout"`` for rows that did not tune the cut, ``"uniform"`` for any, also those that did, ``"theorem"`` for
        the paper's bound, ``"bootstrap"`` for large samples, weights, and groups.
    sample_weight
        Weights that are whole numbers count repeated rows. With others only ``"bootstrap"`` is valid.
    groups
        Rows of one group (a patient, a day) depend on each other: whole groups are resampled, by ``"bootstrap"``.
    pos_label
        The label that counts as positive.
    resamples, random_state, progress
        For ``"bootstrap"``: how often, by which random numbers, and whether to show a progress bar (by default when it
        takes long and a person looks).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def draw(n):
    ...     score = rng.random(n)
    ...     return rng.random(n) < score**2, score
    >>> from surecut import tune_threshold
    >>> cut = tune_threshold(*draw(1000))
    >>> print(certify(cut, *draw(2000)))
    With 95 % confidence the f1 of this cut on new rows is at least 0.6... (it is 0.6... on these 2,000 rows).
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must fulfil 0 < confidence < 1, got {confidence}")
    _check_metric(cut.metric)
    if method == "theorem":
        return _theorem(cut, confidence)
    if groups is not None:
        if method != "bootstrap":
            raise ValueError(
                f"rows of one group are not independent, which {method!r} needs: use method='bootstrap', which "
                "resamples whole groups, or keep one row of each group"
            )
        if tally is not None or y_true is None or y_score is None:
            raise ValueError("groups need the rows themselves: pass y_true and y_score, not a tally")
    if tally is None:
        if y_true is None or y_score is None:
            raise ValueError(f"method={method!r} needs rows: pass y_true and y_score, or a tally of them")
        tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
    elif y_true is not None or y_score is not None or sample_weight is not None:
        raise ValueError("pass either rows or their tally, not both")
    if cut.prior_given and tally.given_prior is None:
        tally = tally.with_prior(cut.prior)
    elif tally.given_prior is not None and tally.given_prior != (cut.prior if cut.prior_given else None):
        raise ValueError(
            f"the tally has the prior {tally.given_prior:g} given, the cut was tuned at {cut.prior:g}: certify the cut "
            "that was tuned with this prior"
        )
    tuned_here = tally.has_tuned(cut)
    if tuned_here and cut.out_of_fold:
        raise ValueError(
            "these scores were pooled from folds, each with a model of its own, and the model that predicts was "
            "trained on all of these rows: nothing can be promised from them. Certify on fresh rows, or fit with "
            "cv=1/3 and confidence="
        )
    cut.metric.check_classes(*tally.rows.sum(axis=0)[::-1])
    if method == "bootstrap":
        codes = None if groups is None else _group_codes(groups, y_true, y_score, sample_weight, pos_label)
        return _bootstrap(cut, tally, tuned_here, confidence, codes, resamples, random_state, progress)
    tally = frequencies(tally, f"method={method!r}")
    if method == "uniform":
        return _uniform(cut, tally, confidence)
    if tuned_here:
        raise ValueError(
            "these are the rows that tuned the cut: their value is too good, and 'holdout' would promise too much. "
            "Use method='uniform', which is valid on them, or rows that were kept aside"
        )
    return _holdout(cut, tally, confidence)


def confusion_at(cut: Cut, tally: ScoreTally) -> Confusion:
    """The confusion of a cut on a tally's rows, in counts or weights."""
    return tally.confusion[tally.candidates.at(cut.threshold)]


def _check_metric(metric: Metric) -> None:
    if isinstance(metric, UnknownMetric):
        raise ValueError(f"the cut was tuned for the function {metric.name!r}, which a saved cut does not hold")
    if isinstance(metric, FunctionMetric):
        raise ValueError(
            f"{metric.name!r} is a function of which nothing is known: certificates need a metric of the catalogue or "
            "a LinearFractional one, which do not increase in FP or FN"
        )


def frequencies(tally: ScoreTally, what: str) -> ScoreTally:
    """The tally with whole-number weights as counts of rows; other weights are refused."""
    if tally.weight is tally.rows:
        return tally
    whole = all(np.array_equal(sums, np.round(sums)) for sums in (tally.weight, tally.squares))
    if not whole:
        raise ValueError(
            f"{what} counts rows, and these weights are not numbers of rows: leave the weights out, or use "
            "certify(method='bootstrap'), which resamples weighted rows"
        )
    counts = tally.weight.astype(np.int64)
    return ScoreTally(tally.keys, counts, counts, counts, tally.dtype, tally.checksum, tally.given_prior)


FRESH = "the rows are a random sample, one independent of the other, from where the cut will be used"
ONE_MODEL = "one fixed model gave all scores, and was not trained on these rows"
KEPT_ASIDE = "these rows did not tune the cut"


def _holdout(cut: Cut, tally: ScoreTally, confidence: float) -> Certificate:
    confusion = confusion_at(cut, tally)
    value = _value(cut, confusion, tally)
    cells = np.array([confusion.tp, confusion.fp, confusion.fn, confusion.tn], dtype=float)
    lower, upper, exact = value_limits(cut.metric, cells, 1 - confidence, tally.given_prior)
    assumptions = [FRESH, ONE_MODEL, KEPT_ASIDE]
    if tally.given_prior is not None:
        assumptions.append(
            f"a share {tally.given_prior:g} of the new rows is positive, and within the classes nothing changed"
        )
    return Certificate(
        lower=lower,
        upper=upper,
        regret_bound=None,
        value=value,
        metric=cut.metric.name,
        threshold=cut.threshold,
        method="holdout",
        confidence=confidence,
        rows=int(cells.sum()),
        exact=exact,
        assumptions=tuple(assumptions),
    )


def _value(cut: Cut, confusion: Confusion, tally: ScoreTally) -> float:
    at_prior = confusion if tally.given_prior is None else confusion.at_prior(tally.given_prior)
    value = float(cut.metric.evaluate(at_prior))
    if math.isnan(value):
        raise ValueError(
            f"{cut.metric.name} is undefined for this cut on these rows: it predicts none of them positive"
        )
    return value


def value_limits(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None = None
) -> tuple[float, float, bool]:
    """Lower and upper limit of a metric from the counts (tp, fp, fn, tn) of independent rows; whether they are exact.

    A row of each cell is worth something above and below the bar. Where only two kinds of rows count, their ratio is
    a share (F₁: TP among TP + FP + FN) and the limits are Clopper–Pearson's. Three kinds leave one unknown share beside
    the value. For other metrics the classes are taken as given, and the prior, if it matters, within limits.
    """
    worth = None if given_prior is not None else row_worth(metric)
    if worth is not None:
        kinds, of_cell = np.unique(np.stack(worth), axis=1, return_inverse=True)
        counts = np.bincount(of_cell.ravel(), weights=cells, minlength=kinds.shape[1])
        counting = (kinds != 0).any(axis=0)
        (numerators, denominators), counts = kinds[:, counting], counts[counting]
        if len(counts) == 2:
            return *_binomial_limits(numerators, denominators, counts, error), True
        if len(counts) == 3 and (denominators > 0).all():
            lower = three_part_limit(numerators, denominators, counts, error)
            return lower, -three_part_limit(-numerators, denominators, counts, error), False
    return *_limits_by_class(metric, cells, error, given_prior), False


def row_worth(metric: Metric) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """What a row of each cell (tp, fp, fn, tn) adds to the numerator and to the denominator, if that is constant.

    It is where the coefficients of FP and FN do not depend on the prior and the constant one is affine in it.
    """
    if not isinstance(metric, LinearFractionalMetric):
        return None
    at = np.array([np.concatenate(metric.coefficients(prior)) for prior in (0.25, 0.5, 0.75)])
    slope = 4 * (at[1] - at[0])
    bent = np.abs(at[2] - 2 * at[1] + at[0]) > 1e-12 * np.abs(at).max()
    constant = np.abs(slope[[1, 2, 4, 5]]) <= 1e-12 * np.abs(at).max()
    if bent.any() or not constant.all():
        return None
    numerators, denominators = (
        _without_rounding(np.array([start + rise, start + of_fp, start + rise + of_fn, start]))
        for start, rise, of_fp, of_fn in (
            (at[0, i] - slope[i] / 4, slope[i], at[0, i + 1], at[0, i + 2]) for i in (0, 3)
        )
    )
    return numerators, denominators


def _without_rounding(worth: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.abs(worth).max()
    return np.asarray(np.round(worth / scale, 12) * scale) if scale else worth


def _binomial_limits(
    numerators: NDArray[np.float64], denominators: NDArray[np.float64], counts: NDArray[np.float64], error: float
) -> tuple[float, float]:
    (n0, n1), (d0, d1) = numerators, denominators
    better = 1 if n1 * d0 > n0 * d1 else 0
    low, high = share_limits(counts[better], counts.sum(), error)

    def value(share: float) -> float:
        of_kind = np.array([1 - share, share]) if better else np.array([share, 1 - share])
        return float(numerators @ of_kind / (denominators @ of_kind))

    return value(low), value(high)


def _limits_by_class(
    metric: Metric, cells: NDArray[np.float64], error: float, given_prior: float | None
) -> tuple[float, float]:
    tp, fp, fn, tn = cells
    positives, negatives = tp + fn, fp + tn
    priors, left = _possible_priors(metric, positives, positives + negatives, error, given_prior, PRIOR_SHARE, 7)
    fall_to = _fall_to(metric, priors[:, None])

    def rise_to(tnr: Any, value: Any) -> Any:  # the same for −Ψ, which falls in the true rates
        return 1 - fall_to(1 - tnr, -value)

    estimates = metric.value(fp=fp / negatives * (1 - priors), fn=fn / positives * priors, prior=priors)
    least, most = (metric.value(fp=share * (1 - priors), fn=share * priors, prior=priors) for share in (1.0, 0.0))
    lower = two_share_limit(fall_to, (fp, negatives), (fn, positives), float(np.min(least)), estimates, left)
    upper = two_share_limit(rise_to, (tn, negatives), (tp, positives), float(np.min(-most)), -estimates, left)
    return lower, -upper


def _fall_to(metric: Metric, prior: NDArray[np.float64]) -> FallTo:
    """For a false positive rate and a value, the false negative rate at which the metric has that value."""
    if isinstance(metric, LinearFractionalMetric):
        (a0, a1, a2), (b0, b1, b2) = metric.coefficients(prior)

        def solved(fpr: Any, value: Any) -> Any:
            fp = fpr * (1 - prior)
            at_zero, slope = a0 + a1 * fp - value * (b0 + b1 * fp), (value * b2 - a2) * prior
            return np.divide(at_zero, slope, out=np.where(at_zero > 0, 2.0, -1.0), where=slope > 0)

        return solved

    def bisected(fpr: Any, value: Any) -> Any:
        def excess(fnr: Any) -> Any:
            return metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior) - value

        low: Any = np.zeros(np.broadcast_shapes(np.shape(fpr), prior.shape))
        high: Any = low + 1
        never, at_once = excess(high) > 0, excess(low) <= 0
        for _ in range(45):
            middle = (low + high) / 2
            above = excess(middle) > 0
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(never, 2.0, np.where(at_once, -1.0, low))

    return bisected


def _possible_priors(
    metric: Metric, positives: float, rows: float, error: float, given: float | None, share: float, points: int
) -> tuple[NDArray[np.float64], float]:
    """Priors that must be reckoned with, and the error that is left for the rest."""
    if given is not None:
        return np.array([given]), error
    if not depends_on_prior(metric):
        return np.array([positives / rows]), error
    low, high = share_limits(positives, rows, error * share / 2)
    return np.linspace(low, high, points), error * (1 - share)


def depends_on_prior(metric: Metric) -> bool:
    """Whether the metric changes with the prior at fixed true and false positive rates."""
    prior = np.array([0.2, 0.5, 0.8])
    values = metric.value(fp=0.3 * (1 - prior), fn=0.4 * prior, prior=prior)
    return bool(np.ptp(values) > 1e-9 * np.abs(values).max())


def _uniform(cut: Cut, tally: ScoreTally, confidence: float) -> Certificate:
    confusion = confusion_at(cut, tally)
    value = _value(cut, confusion, tally)
    lower, upper, regret = uniform_limits(cut.metric, tally, confusion, 1 - confidence)
    assumptions = [FRESH, ONE_MODEL]
    if cut.constraints:
        assumptions.append("the regret is against every threshold, also those that break the constraint")
    return Certificate(
        lower=lower,
        upper=upper,
        regret_bound=regret,
        value=value,
        metric=cut.metric.name,
        threshold=cut.threshold,
        method="uniform",
        confidence=confidence,
        rows=int(tally.rows.sum()),
        exact=False,
        assumptions=tuple(assumptions),
    )


@dataclass(frozen=True)
class Bands:
    """Limits of the false positive and the false negative rate of some thresholds, and of the prior, all at once."""

    fpr: tuple[NDArray[np.float64], NDArray[np.float64]]
    fnr: tuple[NDArray[np.float64], NDArray[np.float64]]
    priors: NDArray[np.float64]

    def value(self, metric: Metric, best: bool) -> NDArray[np.float64]:
        """The metric at the best (or worst) rates that are possible: a row for every prior, a column a threshold."""
        prior = self.priors[:, None]
        fpr, fnr = (self.fpr[0], self.fnr[0]) if best else (self.fpr[1], self.fnr[1])
        return np.asarray(metric.value(fp=fpr * (1 - prior), fn=fnr * prior, prior=prior))


def bands(metric: Metric, tally: ScoreTally, confusion: Confusion, error: float, sides: int) -> Bands:
    """Bands that hold for every threshold at once, at the thresholds of some confusions (counts of this tally's rows).

    `sides` is 1 where only the lower or only the upper limits are used, 2 where both are.
    """
    negatives, positives = (int(total) for total in tally.rows.sum(axis=0))
    fixed = tally.given_prior is not None or not depends_on_prior(metric)
    each = error / (2 if fixed else 3)
    priors, _ = _possible_priors(metric, positives, positives + negatives, each, tally.given_prior, 1.0, PRIORS)
    fpr = np.atleast_1d(confusion.fp) / max(negatives, 1)
    fnr = np.atleast_1d(confusion.fn) / max(positives, 1)
    return Bands(
        fpr=(least_shares(fpr, negatives, each / sides), 1 - least_shares(1 - fpr, negatives, each / sides)),
        fnr=(least_shares(fnr, positives, each / sides), 1 - least_shares(1 - fnr, positives, each / sides)),
        priors=priors,
    )


def uniform_limits(metric: Metric, tally: ScoreTally, confusion: Confusion, error: float) -> tuple[float, float, float]:
    """Lower and upper limit of the value at a cut, and of its regret, whatever rows chose it."""
    return *uniform_value_limits(metric, tally, confusion, error), uniform_regret(metric, tally, confusion, error)


def uniform_value_limits(metric: Metric, tally: ScoreTally, confusion: Confusion, error: float) -> tuple[float, float]:
    """Lower and upper limit of the value at a cut, each one-sided, whatever rows chose it."""
    one_sided = bands(metric, tally, confusion, error, sides=1)
    lower = float(_defined(one_sided.value(metric, best=False), metric, worst=True).min())
    upper = float(_defined(one_sided.value(metric, best=True), metric, worst=False).max())
    return lower, upper


def uniform_regret(metric: Metric, tally: ScoreTally, confusion: Confusion, error: float) -> float:
    """Upper limit of what the best threshold of this model is worth more than the cut, whatever rows chose it.

    Against far rivals by the bands: the worst of the cut, the best of the rival. Against near ones by what lies between
    the two thresholds, which is known far better than either side of it: a rival that rejects thirty positives fewer
    has about thirty fewer, whatever the number itself. So the bound falls with the sample about as n^(−2/3), as the
    regret does.
    """
    cells = ("tp", "fp", "fn", "tn")
    blocks = _blocks_of(tally.confusion)
    rivals = Confusion(*(np.append(getattr(confusion, cell), getattr(blocks, cell)) for cell in cells))
    of_bands = error * (1 - STEPS_SHARE) if isinstance(metric, LinearFractionalMetric) else error
    at_cut, at_rivals = (bands(metric, tally, some, of_bands, sides=2) for some in (confusion, rivals))
    ahead = at_rivals.value(metric, best=True) - _defined(at_cut.value(metric, best=False), metric, worst=True)
    if isinstance(metric, LinearFractionalMetric):
        fpr, fnr = _steps(tally, confusion, rivals, error * STEPS_SHARE)
        ahead = np.fmin(ahead, _ahead_by_steps(metric, at_cut, fpr, fnr))
    return float(max(0.0, np.nanmax(ahead)))


def _steps(
    tally: ScoreTally, confusion: Confusion, rivals: Confusion, error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least that the false positive and the false negative rate change by from the cut to each rival.

    Between a row and the k-th after it lies as much as before the k-th of all rows, in distribution: so one band, at
    the error divided by the number of rows, holds from every row on. A rival lies on one side of the cut, where it has
    more of one kind and fewer of the other; where that is not known, as for the first, which predicts like the cut,
    it has fewer of both.
    """
    negatives, positives = (int(total) for total in tally.rows.sum(axis=0))
    more_fp, fewer_fn = rivals.fp - confusion.fp, confusion.fn - rivals.fn
    below = (more_fp >= 0) & (fewer_fn >= 0)
    above = (more_fp <= 0) & (fewer_fn <= 0)
    below[0] = above[0] = False
    below, above = below & ~above, above & ~below

    def changes(more: NDArray[Any], grows: NDArray[np.bool_], rows: int) -> NDArray[np.float64]:
        each = error / 4 / (rows + 1)
        at_least = least_shares(np.maximum(more - 1, 0) / max(rows, 1), rows, each)
        at_most = 1 - least_shares(1 - np.maximum(-more, 0) / max(rows, 1), rows, each)
        return np.where(grows, at_least, -at_most)

    return changes(more_fp, below, negatives), changes(-fewer_fn, above, positives)


def _ahead_by_steps(
    metric: LinearFractionalMetric, at_cut: Bands, fpr: NDArray[np.float64], fnr: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What rivals are ahead by at most, given steps from the cut: (a − Ψ b)·Δ / (denominator at the rival).

    Ψ and the denominator at the cut are those that the bands allow. NaN where a step leads out of the unit square.
    """
    prior = at_cut.priors[:, None]
    (_, a1, a2), (b0, b1, b2) = metric.coefficients(prior)
    fp, fn = fpr * (1 - prior), fnr * prior
    corners = [(i, j) for i in (0, 1) for j in (0, 1)]
    denominators = [b0 + b1 * at_cut.fpr[i] * (1 - prior) + b2 * at_cut.fnr[j] * prior for i, j in corners]
    change = b1 * fp + b2 * fn
    least, most = (pick.reduce(denominators) + change for pick in (np.minimum, np.maximum))
    found = np.full(np.broadcast_shapes(least.shape, fp.shape), -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        for best in (False, True):
            value = at_cut.value(metric, best)
            gain = (a1 - value * b1) * fp + (a2 - value * b2) * fn
            found = np.maximum(found, np.where(gain > 0, gain / least, gain / most))
    outside = (at_cut.fpr[0] + fpr < 0) | (at_cut.fnr[0] + fnr < 0) | (least <= 0)
    return np.where(outside, np.nan, found)


def curve_band(
    metric: Metric, tally: ScoreTally, confusion: Confusion, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper limits of a metric's curve, which hold for every threshold at once, at some confusions."""
    both = bands(metric, frequencies(tally, "the band of a curve"), confusion, 1 - confidence, sides=2)
    lower = _defined(both.value(metric, best=False), metric, worst=True).min(axis=0)
    upper = _defined(both.value(metric, best=True), metric, worst=False).max(axis=0)
    return lower, upper


def _defined(values: NDArray[np.float64], metric: Metric, worst: bool) -> NDArray[np.float64]:
    """Values with the metric's own extreme in place of undefined ones."""
    if not np.isnan(values).any():
        return values
    corners = np.array([metric.value(fp=fp, fn=fn, prior=0.5) for fp in (0.0, 0.5) for fn in (0.0, 0.5)])
    return np.where(np.isnan(values), np.nanmin(corners) if worst else np.nanmax(corners), values)


def _blocks_of(confusion: Confusion) -> Confusion:
    """The best that the thresholds of a block could have: its smallest FP and its smallest FN."""
    many = len(confusion.tp)
    if many <= THRESHOLDS:
        return confusion
    edges = np.linspace(0, many - 1, THRESHOLDS).astype(int)
    first, last = confusion[edges[:-1]], confusion[edges[1:]]
    return Confusion(tp=last.tp, fp=first.fp, fn=last.fn, tn=first.tn)


def _theorem(cut: Cut, confidence: float) -> Certificate:
    """Theorem 3's second term: the prior within limits, and what its uncertainty adds."""
    if cut.weighted:
        raise ValueError("Theorem 3 counts independent rows, and this cut was tuned on weighted ones: use 'bootstrap'")
    if cut.constraints or cut.prior_given:
        which = "a constraint" if cut.constraints else "a prior that was given"
        raise ValueError(f"Theorem 3 does not cover a cut with {which}: use method='uniform'")
    if cut.out_of_fold:
        raise ValueError(
            "Theorem 3 covers one model and rows that it was not trained on, and this cut was tuned on scores that "
            "were pooled from folds: fit with cv=1/3"
        )
    metric, rows = cut.metric, cut.rows
    error = (1 - confidence) / 2
    low, high = share_limits(cut.confusion.positives, rows, error / 2)
    priors = np.clip(np.linspace(low, high, PRIORS), 1e-12, 1 - 1e-12)
    optimum = np.full(PRIORS, cut.value)
    constants = metric.constants(priors, optimum)
    estimation = float(np.max(theory.estimation_term(constants, rows, 1 - error)))
    moved = _change_with_prior(metric, priors, cut.prior)
    bound = estimation + 2 * moved
    return Certificate(
        lower=cut.value - bound / 2,
        upper=cut.value + bound / 2,
        regret_bound=bound + _cost_of_shrinkage(cut, constants),
        value=cut.value,
        metric=metric.name,
        threshold=cut.threshold,
        method="theorem",
        confidence=confidence,
        rows=rows,
        exact=False,
        assumptions=(FRESH, ONE_MODEL),
    )


def _cost_of_shrinkage(cut: Cut, constants: MetricConstants) -> float:
    """4Dρ/γ: what a cut may lose that was drawn toward a model, ρ = κ / (n₊ + κ)."""
    if not cut.shrinkage:
        return 0.0
    counted = cut.confusion.positives
    if cut.metric.needs_negatives:
        counted = min(counted, cut.confusion.negatives)
    rho = 1 / (1 + counted / cut.shrinkage)
    return float(np.max(4 * constants.D * rho / constants.gamma))


def _change_with_prior(metric: Metric, priors: NDArray[np.float64], prior: float) -> float:
    """sup |Ψ(FP, FN, P) − Ψ(FP, FN, P̂)| over the priors that are possible and the rates that both allow."""
    share = np.linspace(0.0, 1.0, 17)
    p = priors[:, None, None]
    fp = share[:, None] * np.minimum(1 - p, 1 - prior)
    fn = share[None, :] * np.minimum(p, prior)
    return float(np.nanmax(np.abs(metric.value(fp, fn, p) - metric.value(fp, fn, prior))))


def _bootstrap(
    cut: Cut,
    tally: ScoreTally,
    tuned_here: bool,
    confidence: float,
    groups: bootstrap.GroupedRows | None,
    resamples: int,
    random_state: Any,
    progress: bool | None,
) -> Certificate:
    if not resamples >= 100:
        raise ValueError(f"resamples must be at least 100, got {resamples}")
    confusion = confusion_at(cut, tally)
    value = _value(cut, confusion, tally)
    retune = tuned_here and not cut.constraints
    drawn = bootstrap.resample([cut], tally, retune, groups, resamples, random_state, progress)[0]
    error = 1 - confidence
    assumptions = [
        FRESH if groups is None else "the groups are a random sample, one independent of the other",
        ONE_MODEL,
    ]
    assumptions.append("the sample is large: the bootstrap is right in the limit only")
    if tuned_here and cut.constraints:
        assumptions.append("the value is not corrected for the choice of a constrained cut")
    return Certificate(
        lower=float(np.nanquantile(drawn.values, error)) - drawn.optimism,
        upper=float(np.nanquantile(drawn.values, confidence)) - drawn.optimism,
        regret_bound=None,
        value=value,
        metric=cut.metric.name,
        threshold=cut.threshold,
        method="bootstrap",
        confidence=confidence,
        rows=int(tally.rows.sum()),
        exact=False,
        assumptions=tuple(assumptions),
        threshold_spread=drawn.threshold_spread,
    )


def _group_codes(
    groups: ArrayLike, y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any
) -> bootstrap.GroupedRows:
    labels, scores = as_labels(y_true, pos_label=pos_label), as_scores(y_score)
    require_no_nan(scores)
    named = np.asarray(groups)
    require_same_length(y_true=labels, groups=named)
    weights = np.ones(len(scores)) if sample_weight is None else as_weights(sample_weight, len(scores))
    codes = np.unique(named, return_inverse=True)[1]
    return bootstrap.GroupedRows(codes, scores, labels.is_positive(), weights)


def _sentence(certificate: Certificate) -> str:
    """The promise in words that need no statistics."""
    name, rows = certificate.metric, f"{certificate.rows:,}"
    confident = f"With {certificate.confidence:.4g} % confidence".replace(
        f"{certificate.confidence:.4g}", f"{100 * certificate.confidence:.4g}"
    )
    if certificate.method == "theorem":
        vacuous = " That says nothing: the bound is vacuous." if certificate.vacuous else ""
        return (
            f"{confident}, by Theorem 3 of the paper, tuning on {rows} rows costs at most "
            f"{certificate.regret_bound:.3g} of {name} against the best threshold of this model.{vacuous}"
        )
    about = "about " if certificate.method == "bootstrap" else ""
    promise = (
        f"{confident} the {name} of this cut on new rows is at least {about}{certificate.lower:.4f} "
        f"(it is {certificate.value:.4f} on these {rows} rows)"
    )
    if certificate.regret_bound is not None:
        promise += f", and no other threshold of this model is better by more than {certificate.regret_bound:.4f}"
    return f"{promise}."
