"""``method="uniform"``: any rows, also those that tuned the cut. Valid for every sample size.

The limits hold for all thresholds at once, so that it does not matter how the threshold was chosen; so does the bound
on the regret against the best threshold of this model. Of many labels: the limits of each at error / m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import undefined_labels
from surecut.certificates.bands import Bands, bands, defined
from surecut.certificates.brackets import bracket_limits
from surecut.certificates.cells import cells_of
from surecut.certificates.certificate import FRESH
from surecut.certificates.confidence import least_shares, share_limits
from surecut.certificates.label_rows import thresholds_of
from surecut.certificates.priors import (
    PRIORS,
    require_monotone,
    value_range,
    worst_over_priors,
)
from surecut.confusion import Confusion
from surecut.core.tally import CoarseTally
from surecut.metrics import LinearFractionalMetric, Metric
from surecut.progress import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.certificate import Certificate
    from surecut.certificates.evidence import Asked, Evidence
    from surecut.constraints import Constraint
    from surecut.core.tally import ScoreTally

STEPS_SHARE = 0.2
"""The share of the error of a regret bound that is spent on what lies between two thresholds."""

THRESHOLDS = 4096
"""More thresholds than this are bounded in blocks."""

POOLED_THRESHOLDS = 1024
"""Thresholds at which the bands of all labels are averaged."""


def uniform_certificate(evidence: Evidence, asked: Asked) -> Certificate:
    """Bands of each label at error / m: averaged, or added up to those of all labels together."""
    cut = evidence.cut
    value = evidence.value
    if evidence.average == "micro":
        limits = uniform_micro(cut.metric, evidence.tallies, evidence.confusion, asked.error)
    else:
        limits = uniform_macro(evidence, asked.error, asked.progress if evidence.average else False)
    limits = min(limits[0], value), max(limits[1], value), limits[2]  # a pilot sample takes no part in them
    others = ["the regret is against every threshold, also those that break the constraint"] if cut.constraints else []
    return evidence.certificate(asked, value, limits, [FRESH], others)


def uniform_limits(
    metric: Metric, tally: ScoreTally, threshold: float, error: float, constraints: Sequence[Constraint] = ()
) -> tuple[float, float, float]:
    """Lower and upper limit of the value at a threshold, and of its regret, whatever rows chose it."""
    regret = uniform_regret(metric, tally, tally.confusion_at(threshold), error)
    return *bracket_limits(metric, tally, threshold, error, constraints), regret


def uniform_regret(metric: Metric, tally: ScoreTally, confusion: Confusion, error: float) -> float:
    """Upper limit of what the best threshold of this model is worth more than the cut, whatever rows chose it.

    Against far rivals by the bands: the worst of the cut, the best of the rival. Against near ones by what lies between
    the two thresholds, which is known far better than either side of it: a rival that rejects thirty positives fewer
    has about thirty fewer, whatever the number itself. So the bound falls with the sample about as n^(−2/3), as the
    regret does.
    """
    cells = ("tp", "fp", "fn", "tn")
    blocks = _blocks_of(tally)
    rivals = Confusion(*(np.append(getattr(confusion, cell), getattr(blocks, cell)) for cell in cells))
    of_bands = error * (1 - STEPS_SHARE) if isinstance(metric, LinearFractionalMetric) else error
    classes, prior = tally.rows.sum(axis=0), tally.given_prior
    at_cut, at_rivals = (bands(metric, classes, prior, some, of_bands, sides=2) for some in (confusion, rivals))
    require_monotone(metric, at_cut.priors)
    ends = value_range(metric)
    by_steps = isinstance(metric, LinearFractionalMetric)
    fpr, fnr = _steps(tally, confusion, rivals, error * STEPS_SHARE) if by_steps else (np.empty(0), np.empty(0))

    def ahead(prior: NDArray[np.float64]) -> NDArray[np.float64]:
        worst = defined(at_cut.value_at(metric, False, prior), ends, worst=True)
        found = at_rivals.value_at(metric, True, prior) - worst
        if isinstance(metric, LinearFractionalMetric):
            found = np.fmin(found, _ahead_by_steps(metric, at_cut, fpr, fnr, prior))
        return np.where(np.isnan(found), -np.inf, found)

    return float(max(0.0, np.max(worst_over_priors(ahead, at_cut.priors, largest=True))))


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
    metric: LinearFractionalMetric,
    at_cut: Bands,
    fpr: NDArray[np.float64],
    fnr: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What rivals are ahead by at most, given steps from the cut: (a − Ψ b)·Δ / (denominator at the rival).

    Ψ and the denominator at the cut are those that the bands allow. NaN where a step leads out of the unit square.
    """
    (_, a1, a2), (b0, b1, b2) = metric.coefficients(prior)
    fp, fn = fpr * (1 - prior), fnr * prior
    corners = [(i, j) for i in (0, 1) for j in (0, 1)]
    denominators = [b0 + b1 * at_cut.fpr[i] * (1 - prior) + b2 * at_cut.fnr[j] * prior for i, j in corners]
    change = b1 * fp + b2 * fn
    least, most = (pick.reduce(denominators) + change for pick in (np.minimum, np.maximum))
    found = np.full(np.broadcast_shapes(least.shape, fp.shape), -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        for best in (False, True):
            value = at_cut.value_at(metric, best, prior)
            gain = (a1 - value * b1) * fp + (a2 - value * b2) * fn
            found = np.maximum(found, np.where(gain > 0, gain / least, gain / most))
    outside = (at_cut.fpr[0] + fpr < 0) | (at_cut.fnr[0] + fnr < 0) | (least <= 0)
    return np.where(outside, np.nan, found)


def _blocks_of(tally: ScoreTally) -> Confusion:
    """The best that the thresholds of a block could have: its smallest FP and its smallest FN.

    Few thresholds stand for themselves, unless others are not known, inside ranges of scores.
    """
    confusion, many = tally.confusion, len(tally) + 1
    if many <= THRESHOLDS and not isinstance(tally, CoarseTally):
        return confusion
    edges = np.linspace(0, many - 1, min(many, THRESHOLDS)).astype(int)
    first, last = confusion[edges[:-1]], confusion[edges[1:]]
    return Confusion(tp=last.tp, fp=first.fp, fn=last.fn, tn=first.tn)


def uniform_macro(evidence: Evidence, error: float, progress: bool | None) -> tuple[float, float, float]:
    """Each label's limits and regret at error / m, which hold together; a label of one class counts at its worst."""
    metric, constraints, tallies = evidence.cut.metric, evidence.cut.constraints, evidence.tallies
    undefined = {i for i, _ in undefined_labels(metric, evidence.confusion)}
    least, most = value_range(metric)
    thresholds, found = thresholds_of(evidence.cut).tolist(), []
    for i, tally in shown(list(enumerate(tallies)), "labels", len(tallies), progress=progress):
        if i in undefined:
            found.append((least, most, most - least))
            continue
        found.append(uniform_limits(metric, tally, thresholds[i], error / len(tallies), constraints))
    lower, upper, regret = np.mean(found, axis=0)
    return float(lower), float(upper), float(regret)


Shares = Callable[[Any, Any, float], Any]
"""(counts, rows, error) → lower limits of shares, one of each label in the last axis."""


def single_shares(counts: Any, rows: Any, error: float) -> Any:
    """Lower limits at a threshold that these rows did not choose."""
    return share_limits(counts, rows, error)[0]


def simultaneous_shares(counts: Any, rows: Any, error: float) -> Any:
    """Lower limits for all thresholds at once."""
    columns = [least_shares(counts[..., i] / n, int(n), error) for i, n in enumerate(rows)]
    return np.stack(columns, axis=-1)


class PooledRates:
    """Limits of FP and FN as shares of all pairs of row and label, from limits of each label at error / 3m.

    `rows` and `positives` are those of each label; the priors are between the limits of the pooled one.
    """

    def __init__(self, confusion: Confusion, shares: Shares, error: float, sides: int) -> None:
        self.rows, positives = np.asarray(confusion.total, dtype=float), confusion.positives
        self.weight = self.rows / self.rows.sum()
        self.shares, self.error = shares, error / 3 / len(self.rows) / sides
        low, high = (limit @ self.weight for limit in share_limits(positives, self.rows, error / 6 / len(self.rows)))
        self.priors = np.linspace(low, high, PRIORS)

    def least(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """Of counts with the labels in the last axis."""
        return np.asarray(self.shares(counts, self.rows, self.error) @ self.weight)

    def most(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        return 1 - self.least(self.rows - counts)

    def worst(self, metric: Metric, fp: Any, fn: Any) -> Callable[[Any], NDArray[np.float64]]:
        """The metric at the largest rates that are possible, as a function of priors."""
        return self._valued(metric, self.most(fp), self.most(fn), value_range(metric)[0])

    def best(self, metric: Metric, fp: Any, fn: Any) -> Callable[[Any], NDArray[np.float64]]:
        """The metric at the least rates that are possible."""
        return self._valued(metric, self.least(fp), self.least(fn), value_range(metric)[1])

    @staticmethod
    def _valued(metric: Metric, fp: Any, fn: Any, undefined: float) -> Callable[[Any], NDArray[np.float64]]:
        fp, fn = np.atleast_1d(fp), np.atleast_1d(fn)

        def values(prior: Any) -> NDArray[np.float64]:
            with np.errstate(invalid="ignore", divide="ignore"):
                value = metric.value(fp, np.minimum(fn, prior), prior)
            return np.where(np.isnan(value), undefined, value)

        return values


def pooled_limits(metric: Metric, confusion: Confusion, shares: Shares, error: float) -> tuple[float, float]:
    """Limits of the pooled value."""
    rates = PooledRates(confusion, shares, error, sides=1)
    require_monotone(metric, rates.priors)
    fp, fn = confusion.fp, confusion.fn
    return (
        float(worst_over_priors(rates.worst(metric, fp, fn), rates.priors)[0]),
        float(worst_over_priors(rates.best(metric, fp, fn), rates.priors, largest=True)[0]),
    )


def uniform_micro(
    metric: Metric, tallies: Sequence[ScoreTally], confusion: Confusion, error: float
) -> tuple[float, float, float]:
    """Bands of each label's FP and FN at error / m, at one threshold for all labels, added up.

    Between two of the thresholds that are looked at, a rival has at least the FP of the higher and the FN of the lower.
    """
    lower, upper = pooled_limits(metric, confusion, simultaneous_shares, error)
    every = np.unique(np.concatenate([tally.scores[:: max(1, len(tally) // POOLED_THRESHOLDS)] for tally in tallies]))[
        ::-1
    ]
    every = np.append(every[:: max(1, len(every) // POOLED_THRESHOLDS)], -np.inf)
    at = [cells_of(tally.confusion_at(every))[:, 1:3] for tally in tallies]
    fp, fn = np.stack(at, axis=1).transpose(2, 0, 1)
    higher = np.concatenate((np.zeros_like(fp[:1]), fp[:-1]))
    rates = PooledRates(confusion, simultaneous_shares, error, sides=2)
    best, worst = rates.best(metric, higher, fn), rates.worst(metric, confusion.fp, confusion.fn)
    ahead = worst_over_priors(lambda prior: best(prior) - worst(prior), rates.priors, largest=True)
    return lower, upper, float(max(0.0, ahead.max()))
