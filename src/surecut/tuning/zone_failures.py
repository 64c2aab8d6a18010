"""How often conditions on zones fail on other rows than those that bands were tuned on.

The shares of zones and classes in the population are drawn from what the validation rows say of them: a Dirichlet
distribution of the counts, with Jeffreys' prior. That is about right on average over samples, also for few and for tied
scores. It takes thresholds as given, although they were chosen where conditions just hold, so rates are somewhat low.

(To tune again on resamples, and to look conditions up on the rows themselves, knows of that choice, but is wrong for
tied scores: there a threshold at which the condition holds on the rows holds for most resamples, too.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.zone_task import ZoneTask

DRAWS = 2_000

PRIOR = 0.5
"""Rows of each class that are added to every zone with rows."""


def failure_rates(counts: NDArray[Any], rows: int, task: ZoneTask, random_state: Any) -> tuple[float, ...]:
    """How often each condition fails, in their order, and how often any of them does; empty without conditions.

    `counts` are the weights of each class in each zone, shape (zones, 2), of so many rows.
    """
    if not task.conditions:
        return ()
    in_rows = counts / counts.sum() * rows
    has_rows = in_rows.sum(axis=1, keepdims=True) > 0
    random = np.random.default_rng(random_state)
    drawn = random.standard_gamma(np.where(has_rows, in_rows + PRIOR, 0.0), size=(DRAWS, *counts.shape))
    n, p = np.moveaxis(drawn, 2, 0)
    failed = []
    for one in task.conditions:
        tp, fp = p[:, one.zone], n[:, one.zone]
        inside = task.at_prior(Confusion(tp=tp, fp=fp, fn=p.sum(axis=1) - tp, tn=n.sum(axis=1) - fp))
        failed.append(~np.asarray(one.is_met(inside)))
    return (*(float(one.mean()) for one in failed), float(np.any(failed, axis=0).mean()))
