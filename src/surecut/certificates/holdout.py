"""``method="holdout"``: rows that neither trained nor tuned. Valid for every sample size.

Exact for accuracy, F₁, Jaccard, precision, recall and specificity; a little cautious for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surecut.certificates.cells import cells_of
from surecut.certificates.certificate import FRESH, KEPT_ASIDE, ONE_MODEL, Certificate
from surecut.certificates.limits import value_limits
from surecut.certificates.priors import value_at

if TYPE_CHECKING:
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut


def holdout_certificate(cut: Cut, tally: ScoreTally, confidence: float) -> Certificate:
    confusion = tally.confusion_at(cut.threshold)
    value = value_at(cut, confusion, tally)
    cells = cells_of(confusion)
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
