"""Paired differences: mean, standard error, Student's t, and Holm's procedure over many cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.05
NEGLIGIBLE = 1e-12
"""Differences up to this are rounding errors, and count as 0."""


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, its standard error, and the one-sided p-value of "it is not below 0"."""

    mean: float
    error: float
    p_below: float

    @classmethod
    def of(cls, values: np.ndarray, baseline: np.ndarray | float = 0.0) -> Difference:
        """Of values and a baseline, repetition by repetition.

        Without variance the sign decides: p is 0 below 0, and 1 otherwise.
        """
        found = np.asarray(values, dtype=float) - baseline
        found = np.where(np.abs(found) <= NEGLIGIBLE, 0.0, found)
        mean = float(found.mean())
        error = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
        if error <= NEGLIGIBLE:
            return cls(mean, 0.0, float(mean >= -NEGLIGIBLE))
        return cls(mean, error, float(stats.t.cdf(mean / error, len(found) - 1)))

    def __str__(self) -> str:
        return f"{self.mean:+.4f} ± {self.error:.4f}"


def holm(p: Sequence[float] | np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Which hypotheses Holm's procedure rejects."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    passed = np.logical_and.accumulate(p[order] <= level / (len(p) - np.arange(len(p))))
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = passed
    return rejected


@dataclass(frozen=True)
class Count:
    """How many cells are better, even and worse in the mean, and which are worse after Holm's correction."""

    better: int
    even: int
    worse: int
    rejected: np.ndarray

    @classmethod
    def of(cls, found: Sequence[Difference]) -> Count:
        means = np.array([one.mean for one in found])
        even = np.abs(means) <= NEGLIGIBLE
        rejected = holm([one.p_below for one in found])
        return cls(int((means > NEGLIGIBLE).sum()), int(even.sum()), int((means < -NEGLIGIBLE).sum()), rejected)

    def row(self) -> tuple[str, ...]:
        """Cells of a table: number, better, its share, even, worse, worse after Holm."""
        cells = len(self.rejected)
        share = f"{self.better / cells:.0%}" if cells else "–"
        return (str(cells), str(self.better), share, str(self.even), str(self.worse), str(int(self.rejected.sum())))


COUNTED = ("cells", "better", "share better", "even", "worse", f"worse after Holm at {LEVEL:.0%}")
"""What `Count.row` has."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A Markdown table; columns after the first `words` are numbers, to the right."""
    rule = ["---" if column < words else "---:" for column in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))
