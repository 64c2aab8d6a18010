"""What rows say of a cut: its confusion, its value, and how many rows there are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from surecut.tally import ScoreTally

if TYPE_CHECKING:
    from surecut.confusion import Confusion
    from surecut.cut import Cut


def confusion_at(cut: Cut, tally: ScoreTally) -> Confusion:
    """The confusion of a cut on a tally's rows, in counts or weights."""
    return tally.confusion[tally.candidates.at(cut.threshold)]


def at_prior(confusion: Confusion, tally: ScoreTally) -> Confusion:
    """What metrics see: the counts, or the rates at the prior that was given."""
    return confusion if tally.given_prior is None else confusion.at_prior(tally.given_prior)


def value_at(cut: Cut, confusion: Confusion, tally: ScoreTally) -> float:
    value = float(cut.metric.evaluate(at_prior(confusion, tally)))
    if math.isnan(value):
        raise ValueError(
            f"{cut.metric.name} is undefined for this cut on these rows: it predicts none of them positive"
        )
    return value


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
