"""Corrections of a calibration curve, in blocks of scores, as far as the rows are evidence against it.

A curve of a family cannot follow every label: a probability that jumps, or falls again, is none of a sigmoid's. So the
ordered scores are cut into blocks, and in some blocks the curve's mean p becomes another one, drawn from a beta
distribution around p. How much more likely that makes the block's rows is known in closed form (a Bayes factor), and
the sum over *all* ways of cutting into blocks is one recursion, as for change points. The correction is the mean over
all these ways; it vanishes where the curve is as good as any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surecut.core.kernels import run_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ATOMS = 64
"""Blocks begin and end at no more places than this."""

CHANGES = 2.0
"""Expected number of places where a correction begins or ends."""

CELLS_AT_ONCE = 1 << 19
"""Blocks of all labels that are judged together."""


@dataclass(frozen=True, eq=False)
class Correction:
    """η ↦ offset + factor · η, block by block along a descending quantity.

    >>> correction = Correction(edges=np.array([0.5]), offset=np.array([0.25, 0.0]), factor=np.array([0.75, 0.5]))
    >>> correction(np.array([0.75, 0.25]), np.array([0.5, 0.5]))
    array([0.625, 0.25 ])
    """

    edges: NDArray[np.float64]
    offset: NDArray[np.float64]
    factor: NDArray[np.float64]

    def __call__(self, along: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
        block = np.searchsorted(-self.edges, -along)
        return np.asarray(self.offset[block] + self.factor[block] * eta)

    def weighed(self, weight: float) -> Correction:
        """Only a part of it."""
        return Correction(self.edges, weight * self.offset, 1 - weight + weight * self.factor)


@dataclass(frozen=True, eq=False)
class Atoms:
    """One label's rows in few atoms, in descending order: what is never divided between blocks."""

    along: NDArray[np.float64]
    negative: NDArray[np.float64]
    positive: NDArray[np.float64]
    expected: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        along: NDArray[np.float64],
        negative: NDArray[np.float64],
        positive: NDArray[np.float64],
        eta: NDArray[np.float64],
    ) -> Atoms:
        """Groups in descending order, joined until each atom has about the same share of the positives."""
        expected = (negative + positive) * eta
        most = min(MOST_ATOMS, max(2, int(2 * positive.sum())))
        mass = positive / max(positive.sum(), 1e-300) + expected / max(expected.sum(), 1e-300)
        atom = np.minimum((np.cumsum(mass) - mass / 2) * most / 2, most - 1).astype(np.int64)
        first = run_starts(atom)
        edges = along[np.maximum(first - 1, 0)] / 2 + along[first] / 2
        parts = (np.add.reduceat(values, first) for values in (negative, positive, expected))
        return cls(edges[1:], *parts)


def corrections(labels: list[Atoms]) -> tuple[list[Correction], NDArray[np.float64]]:
    """The mean correction of each label, and its log-evidence against no correction at all."""
    found: list[Correction] = []
    evidence: list[NDArray[np.float64]] = []
    at_once = max(1, CELLS_AT_ONCE // MOST_ATOMS**2)
    for start in range(0, len(labels), at_once):
        some = labels[start : start + at_once]
        offset, factor, more = _mean_correction(some)
        evidence.append(more)
        for atoms, *line in zip(some, offset, factor, strict=True):
            found.append(Correction(atoms.along, *(values[: len(atoms.positive)] for values in line)))
    return found, np.concatenate(evidence) if evidence else np.zeros(0)


def _mean_correction(
    labels: list[Atoms],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    size = max(len(label.positive) for label in labels)
    first, end = np.triu_indices(size + 1, 1)

    def of_blocks(values: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        above = np.zeros((len(values), size + 1))
        for row, one in zip(above, values, strict=True):
            row[1 : len(one) + 1] = np.cumsum(one)
            row[len(one) + 1 :] = row[len(one)]
        return above[:, end] - above[:, first]

    positive = of_blocks([label.positive for label in labels])
    negative = np.maximum(of_blocks([label.negative for label in labels]), 0.0)
    weight = positive + negative
    mean = of_blocks([label.expected for label in labels]) / np.where(weight > 0, weight, 1.0)
    mean = np.where(weight > 0, np.clip(mean, 1e-12, 1 - 1e-12), 0.5)
    gain, corrected = _bayes_factor(positive, negative, mean)
    sizes = np.array([len(label.positive) for label in labels])[:, None]
    change = np.minimum(0.5, CHANGES / sizes)
    # Shorter labels end in atoms without rows: what is cut there does not matter, its probabilities sum to one.
    log_prior = (end - first - 1) * np.log1p(-change) + (first > 0) * np.log(change)
    either = np.logaddexp(0.0, gain) - np.log(2)  # every second block is as the curve has it

    step = np.full((len(labels), size + 1, size + 1), -np.inf)
    step[:, first, end] = log_prior + either
    both = _recursion(np.concatenate((step, step[:, ::-1, ::-1].transpose(0, 2, 1))))
    forward, backward = both[: len(labels)], both[len(labels) :, ::-1]
    evidence = forward[:, -1]
    posterior = np.exp(
        forward[:, first] + log_prior + gain - np.log(2) + backward[:, end] - evidence[:, None]
    )  # of a block that is corrected
    up = corrected > mean
    factor = np.where(up, (1 - corrected) / (1 - mean), corrected / mean)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        change_at = np.array([np.bincount(first, row, size + 1) - np.bincount(end, row, size + 1) for row in values])
        return np.cumsum(change_at, axis=1)[:, :size]

    return spread(posterior * np.where(up, 1 - factor, 0.0)), 1 + spread(posterior * (factor - 1)), evidence


def _bayes_factor(
    positive: NDArray[np.float64], negative: NDArray[np.float64], mean: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log of: blocks' rows if their mean is beta distributed around `mean`, over if it is `mean`; its posterior mean.

    The prior is worth one row of the rarer class, so it leaves the mean's order of magnitude open.
    """
    from scipy.special import betaln, xlog1py, xlogy

    strength = 1 / np.minimum(mean, 1 - mean)
    a, b = strength * mean, strength * (1 - mean)
    gain = betaln(a + positive, b + negative) - betaln(a, b) - xlogy(positive, mean) - xlog1py(negative, -mean)
    return np.asarray(gain), np.asarray((a + positive) / (strength + positive + negative))


def _recursion(step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the sum over all ways from the first place to each place, `step` being upper triangular."""
    total = np.full(step.shape[:2], -np.inf)
    total[:, 0] = 0.0
    for place in range(1, step.shape[1]):
        ways = total[:, :place] + step[:, :place, place]
        most = ways.max(axis=1, keepdims=True)
        most = np.where(np.isfinite(most), most, 0.0)
        with np.errstate(divide="ignore"):
            total[:, place] = most[:, 0] + np.log(np.exp(ways - most).sum(axis=1))
    return total
