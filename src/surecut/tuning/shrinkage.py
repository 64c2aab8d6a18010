"""Shrinkage: cuts of labels with few positives, shrunk toward those of a calibrated model of their scores.

A label with ten positives among the validation rows has a noisy curve, and the maximum of a noisy curve overfits. So
the labels y are replaced by smoothed ones,

    q = (1 − ρ) y + ρ η̂(score),   ρ = κ / (n₊ + κ),

where η̂ is a probability that was calibrated on the same rows: a curve per label, each shrunk toward the curve of all
labels as far as the labels agree (empirical Bayes). κ = 0 tunes on the labels alone; κ → ∞ on the model alone.
With enough positives the cut is driven by the data: for a fixed κ every guarantee stays, with an extra regret of at
most 4Dρ/γ.

`"auto"` finds η̂ and κ from the same rows:

1. A curve for each label, corrected where the rows are evidence against it (`calibration`).
2. κ is the prior strength of the curve, in equivalent positives. Seen as the concentration of a Dirichlet process
   around the curve's distribution of the positives over the scores, it has a likelihood: were the curve right, the
   positives would fall into bins of equal expected mass as evenly as in a multinomial; the worse it is, the more
   unevenly. A bounded grid of κ is weighed by that likelihood, with weights that the labels share.
3. A curve is not stronger than the data that it was fitted to: κ is at most half of the label's own positives and
   three times those of the other labels. The latter count less, the stronger the evidence against the curve. So a curve
   that the rows contradict, or that no other label shares, leaves the label near its own rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.calibration.curves import Calibration, Groups
    from surecut.metrics import Metric

GRID = np.array([3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0])
"""The κ that `"auto"` weighs."""

POSITIVES_PER_BIN = 4
MOST_BINS = 50

OWN_SHARE, OTHERS_SHARE = 0.5, 3.0
"""What a label's own positives, to which its curve was fitted, and those of other labels count in the largest
strength of the curve. (Tried for the latter: 1 is worse where labels are few, 10 is no better than 3.)"""


def shares(
    kappa: float | str, metric: Metric, groups: Groups, calibration: Calibration, totals: NDArray[Any]
) -> NDArray[np.float64]:
    """ρ of each label: the share of the model in its smoothed labels."""
    negatives, positives = totals.T
    counted = np.minimum(positives, negatives) if metric.needs_negatives else positives
    if kappa != "auto":
        return np.asarray(float(kappa) / (counted + float(kappa)))
    weights = _grid_weights(groups, calibration)
    others = OTHERS_SHARE * (1 - calibration.rejected) * (counted.sum() - counted)
    grid = np.minimum(GRID, (OWN_SHARE * counted + others)[:, None])
    with np.errstate(invalid="ignore"):  # no positive at all: the label takes the shared threshold
        rho = np.nan_to_num(grid / (counted[:, None] + grid), nan=1.0)
    return np.asarray((weights * rho).sum(axis=1))


def effective_kappa(rho: NDArray[np.float64], metric: Metric, totals: NDArray[Any]) -> NDArray[np.float64]:
    """The κ that gives each label its ρ."""
    negatives, positives = totals.T
    counted = np.minimum(positives, negatives) if metric.needs_negatives else positives
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rho < 1, rho * counted / (1 - rho), np.inf)


def check_shrinkage(shrinkage: Any) -> float | str:
    """κ as a number, or "auto"."""
    if isinstance(shrinkage, str):
        if shrinkage != "auto":
            raise ValueError(f"shrinkage= must be a number or 'auto', got {shrinkage!r}")
        return shrinkage
    if isinstance(shrinkage, bool) or not 0 <= shrinkage < np.inf:
        raise ValueError(f"shrinkage= must fulfil 0 <= shrinkage < inf, or be 'auto', got {shrinkage!r}")
    return float(shrinkage)


def _grid_weights(groups: Groups, calibration: Calibration) -> NDArray[np.float64]:
    """Shape (labels, grid): how likely each κ is for each label, given what is likely for all."""
    likelihood = _likelihood(groups, calibration)
    shared = np.full(len(GRID), 1 / len(GRID))
    for _ in range(200):
        weights = _softmax(likelihood + np.log(shared))
        new = (weights.sum(axis=0) + 1 / len(GRID)) / (len(weights) + 1)
        moved, shared = np.abs(new - shared).max(), new
        if moved < 1e-5:
            break
    return weights


def _likelihood(groups: Groups, calibration: Calibration) -> NDArray[np.float64]:
    """Log-likelihood of each κ: the positives, in bins of equal expected mass, as a Dirichlet-multinomial."""
    from scipy.special import gammaln

    labels = len(groups.starts) - 1
    label = np.repeat(np.arange(labels), np.diff(groups.starts))
    expected = (groups.negative + groups.positive) * calibration.curve(groups.scores, label)
    total = np.bincount(label, expected, minlength=labels)
    found = np.bincount(label, groups.positive, minlength=labels)
    bins = np.clip(np.minimum(total, found) // POSITIVES_PER_BIN, 1, MOST_BINS).astype(np.int64)
    before = np.concatenate(([0.0], np.cumsum(expected)))
    above = before[:-1] - before[groups.starts[:-1]][label]
    of_bin = np.minimum((above + expected / 2) / np.maximum(total[label], 1e-300) * bins[label], bins[label] - 1)
    slot = label * MOST_BINS + of_bin.astype(np.int64)
    mass = np.bincount(slot, expected, minlength=labels * MOST_BINS).reshape(labels, MOST_BINS)
    count = np.bincount(slot, groups.positive, minlength=labels * MOST_BINS).reshape(labels, MOST_BINS)
    mass = np.maximum(mass / np.maximum(total, 1e-300)[:, None], 1e-9)  # an empty bin must not rule κ out
    likelihood = np.empty((labels, len(GRID)))
    for i, kappa in enumerate(GRID):
        cells = np.where(count > 0, gammaln(kappa * mass + count) - gammaln(kappa * mass), 0.0)
        likelihood[:, i] = gammaln(kappa) - gammaln(kappa + found) + cells.sum(axis=1)
    likelihood[bins < 2] = 0.0
    return likelihood


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
