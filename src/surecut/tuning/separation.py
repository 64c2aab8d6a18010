"""Whether the scores of a label separate its positives from its negatives: a rank test for each of many labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries

QUANTILE = 1.6448536269514722
"""The normal quantile of the one-sided test at 5 %."""


def separated(entries: Entries) -> NDArray[np.bool_]:
    """Whether each sample's positives rank above its negatives: the one-sided Mann-Whitney test at 5 %.

    Ties count one half, and rows without a score rank below all others. The variance is that without ties, which is the
    larger one: a constant score never passes, and a single positive passes within the highest 2.5 % of the rows. A
    sample of one class has nothing to separate, and passes.

    >>> from surecut import ScoreTally
    >>> useful = ScoreTally.from_scores([0] * 99 + [1], np.arange(100.0))
    >>> constant = ScoreTally.from_scores([0] * 99 + [1], np.ones(100))
    >>> bool(separated(useful.entries)[0]), bool(separated(constant.entries)[0])
    (True, False)
    """
    sample, samples = entries.sample, len(entries.starts) - 1
    negative, positive = entries.weight.astype(float).T
    absent_negatives, absent_positives = entries.absent.astype(float).T
    negatives = np.bincount(sample, negative, minlength=samples)
    running = np.concatenate(([0.0], np.cumsum(negative)))
    above = running[1:] - running[entries.starts[:-1]][sample]  # of its own score too
    below = (negatives + absent_negatives)[sample] - above
    wins = np.bincount(sample, positive * (below + negative / 2), minlength=samples)
    wins = wins + absent_positives * absent_negatives / 2
    negatives = negatives + absent_negatives
    positives = np.bincount(sample, positive, minlength=samples) + absent_positives
    pairs = positives * negatives
    with np.errstate(divide="ignore", invalid="ignore"):
        auc, deviation = wins / pairs, np.sqrt((positives + negatives + 1) / (12 * pairs))
        return np.asarray((auc - 0.5 > QUANTILE * deviation) | ~(pairs > 0))
