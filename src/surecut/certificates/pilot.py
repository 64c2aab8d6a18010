"""A pilot sample: a random part of the rows, which says where to look, and the others, which decide.

Limits at one threshold are far narrower than limits at all thresholds. They hold at a threshold that their rows did not
choose. So a small random part of the rows, the pilot, chooses the thresholds and the order in which they are looked at;
given the pilot, the other rows are still independent draws, and every limit for held-out data holds at every threshold
that depends on the pilot alone. What is expected of the other rows is read off a calibrated curve of the pilot's
scores, which needs few rows.

A row is in the pilot with a probability that depends on nothing but the number of rows. The random numbers come from a
hash of the counts of each score and class: equal rows give equal results, whatever reads them, and as good as no two
samples have the same counts. Where all rows share a few scores, some counts are likely, and would give the same pilot
each time. There the hash is of the order of the rows, too: the order of rows that were drawn at random has nothing to
do with their counts. Where it is not known (rows that an engine counted, tallies that were put together), the error of
a promise is the one that is stated on average over samples only, not for each of these counts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.calibration.curves import calibrate, grouped
from surecut.certificates.cells import cells_of, slopes_of
from surecut.certificates.priors import at_prior
from surecut.confusion import Confusion
from surecut.core.entries import Entries
from surecut.core.keys import scores_of_keys
from surecut.core.tally import FEW_SCORES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.metrics import Metric

ROWS = 2.0
"""The pilot has about this times n^(2/3) of n rows, …"""

LARGEST_SHARE = 0.25
"""… and at most this share of them, unless another is asked for."""


ADDED = 2.0
"""Rows that are added to each cell for a standard error, so that a few rows without a mistake are no sure sign."""


@dataclass(frozen=True, eq=False)
class Pilot:
    """Some cuts that a pilot chose, what is expected of the other rows there, and those rows.

    Attributes
    ----------
    entries
        All rows. Cuts are edges of these entries, by position: edge i accepts the first i of them.
    others
        Shape (entries, 2), negatives first: the rows that are not in the pilot.
    absent
        Those of them without a score.
    classes
        The pilot's negatives and positives.
    cuts
        Edges, from the highest threshold to the lowest; each accepts the scores down to that of a row of the pilot. One
        for each score of the pilot, or some of them.
    expected
        The confusion of the other rows at each cut, as the pilot's calibrated curve has it.
    """

    entries: Entries
    others: NDArray[np.int64]
    absent: NDArray[np.int64]
    classes: NDArray[np.int64]
    cuts: NDArray[np.intp]
    expected: Confusion

    @classmethod
    def of(cls, entries: Entries, order: int = 0, largest_share: float = LARGEST_SHARE) -> Pilot:
        """Draw a pilot from the rows of one sample, which have no weights; `order` is a hash of the rows' order."""
        rows, absent = entries.rows, entries.absent.reshape(2).astype(np.int64)
        total = int(rows.sum() + absent.sum())
        share = min(ROWS * max(total, 1) ** (-1 / 3), largest_share)
        random = np.random.default_rng(seed_of(entries, order))
        taken, taken_absent = random.binomial(rows, share), random.binomial(absent, share)
        kept = np.flatnonzero(taken.sum(axis=1))
        others, without_score = rows - taken, absent - taken_absent
        expected = _expected(entries.low[kept], taken[kept], taken_absent, int(others.sum() + without_score.sum()))
        return cls(entries, others, without_score, taken.sum(axis=0) + taken_absent, kept + 1, expected)

    def thinned(self, most: int) -> Pilot:
        """The pilot with so many cuts at most, closer to each other where few rows, or nearly all, are accepted.

        Their distances are even in arcsin √share, in which a share has the same standard error everywhere.
        """
        if len(self) <= most:
            return self
        angles = self.angles
        wanted = np.linspace(angles[0], angles[-1], most)
        chosen = np.unique(np.searchsorted(angles, wanted).clip(0, len(self) - 1))
        return replace(self, cuts=self.cuts[chosen], expected=self.expected[chosen])

    def __len__(self) -> int:
        """The number of cuts."""
        return len(self.cuts)

    @property
    def uncertainty(self) -> float:
        """The standard error of an expected margin, because the pilot has fewer rows than the part that it predicts."""
        return float(np.sqrt((self.others.sum() + self.absent.sum()) / max(int(self.classes.sum()), 1)))

    @property
    def angles(self) -> NDArray[np.float64]:
        """arcsin √share of the other rows that is expected to be accepted at each cut."""
        shares = self.expected.predicted_positives / np.maximum(self.expected.total, 1e-300)
        return np.asarray(np.arcsin(np.sqrt(np.clip(shares, 0.0, 1.0))))

    def cells(self, accepted_positives: int, accepted_negatives: int | None = None) -> NDArray[np.float64]:
        """Counts (tp, fp, fn, tn) of the other rows at an edge, or with the negatives of another edge."""
        above = self._above
        tp = int(above[accepted_positives, 1])
        fp = int(above[accepted_positives if accepted_negatives is None else accepted_negatives, 0])
        negatives, positives = (above[-1] + self.absent).tolist()
        return np.array([tp, fp, positives - tp, negatives - fp], dtype=float)

    @cached_property
    def _above(self) -> NDArray[np.int64]:
        """The other rows of each class that every edge accepts."""
        return np.concatenate((np.zeros((1, 2), dtype=np.int64), np.cumsum(self.others, axis=0)))

    def expected_values(self, metric: Metric, prior: float | None) -> NDArray[np.float64]:
        """The metric that is expected at each cut; −inf where it is undefined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.asarray(metric.evaluate(at_prior(self.expected, prior)), dtype=float)
        return np.where(np.isnan(values), -np.inf, values)

    def expected_margins(self, metric: Metric, level: float, prior: float | None) -> NDArray[np.float64]:
        """How many standard errors the metric is expected to lie above a level at each cut; −inf where undefined."""
        cells = cells_of(self.expected) + ADDED
        total = cells.sum(axis=1, keepdims=True)

        def value(at: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(metric.evaluate(at_prior(Confusion(*at.T), prior)), dtype=float)

        with np.errstate(invalid="ignore", divide="ignore"):
            centre, slopes = value(cells), slopes_of(value, cells, 1e-4 * total)
            means = (cells * slopes).sum(axis=1, keepdims=True) / total
            margins = (centre - level) / np.sqrt((cells * (slopes - means) ** 2).sum(axis=1))
        return np.where(np.isfinite(margins), margins, -np.inf)


def seed_of(entries: Entries, order: int) -> Any:
    """A seed that the rows determine, and, of few scores, their order."""
    digest = hashlib.blake2b(np.ascontiguousarray(entries.low).tobytes(), digest_size=16)
    digest.update(np.ascontiguousarray(entries.rows).tobytes())
    digest.update(np.ascontiguousarray(entries.absent).tobytes())
    if len(entries) < FEW_SCORES:
        digest.update(order.to_bytes(8, "little"))
    return np.frombuffer(digest.digest(), dtype=np.uint32)


def _expected(keys: NDArray[np.uint64], taken: NDArray[np.int64], absent: NDArray[np.int64], others: int) -> Confusion:
    """The confusion of so many other rows at the score of each row of the pilot; labels as the curve has them."""
    rows = taken.sum(axis=1)
    total = int(rows.sum() + absent.sum())
    curve = calibrate(grouped(Entries.scores(keys, taken, taken)))
    probability = curve.probability(scores_of_keys(keys), np.zeros(len(keys), dtype=np.int64))
    tp, fp = np.cumsum(rows * probability), np.cumsum(rows * (1 - probability))
    positives, negatives = (rows * probability).sum() + absent[1], (rows * (1 - probability)).sum() + absent[0]
    cells = np.array([tp, fp, positives - tp, negatives - fp]).clip(0.0) * (others / max(total, 1))
    return Confusion(*cells)
