"""Cuts of which something is promised on new data: of one sample, or of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.constraints import InfeasibleError
from surecut.core.candidates import Candidates
from surecut.core.entries import Entries
from surecut.core.search import InfeasibleLabelError
from surecut.core.threads import on_each
from surecut.decisions.cut import Cut
from surecut.sample import Sample
from surecut.sources.labels import LabelCuts

if TYPE_CHECKING:
    from surecut.core.rules import Objective
    from surecut.core.tally import ScoreTally
    from surecut.sources.labels import LabelSource
    from surecut.tuning.request import Request

CONSTRAINT = "a constraint with confidence"


def promised_cut(tally: ScoreTally, objective: Objective, request: Request) -> Cut:
    """The best cut that keeps the constraints on new data with the confidence; without any, one with a limit."""
    from surecut.certificates.assurance import assured_cut, limited_cut
    from surecut.certificates.weights import frequencies

    assert request.confidence is not None
    metric, constraints = objective.metric, objective.constraints
    counts = frequencies(tally, CONSTRAINT if constraints else "a limit of the metric", request.weights)
    if constraints:
        cut = assured_cut(counts.candidates, metric, constraints, request.confidence, tally.order)
    else:
        cut = limited_cut(counts.candidates, metric, request.confidence, tally.order)
    return cut.with_sample(fingerprint=tally.sample.fingerprint)  # of the rows, before counts repeat them


def promised_cuts(source: LabelSource, objective: Objective, names: Sequence[Any], request: Request) -> LabelCuts:
    """The same for each label, all of them together with the confidence."""
    orders = source.orders()
    from surecut.certificates.assurance import assured_cut, require_known
    from surecut.certificates.weights import require_counts

    require_known(objective.constraints)
    confidence = request.confidence
    assert confidence is not None
    if source.weighted and request.weights is None:
        raise ValueError(
            f"{CONSTRAINT} counts rows, and weights need not be numbers of rows: leave them out, or tune a long table "
            "with tune_frame(..., by=..., weights='counts') if a weight of 2 means the row twice"
        )
    if source.weighted:
        require_counts(request.weights, CONSTRAINT)

    wanted = objective.metric, objective.constraints

    def work(block: slice) -> list[Cut | InfeasibleLabelError]:
        found: list[Cut | InfeasibleLabelError] = []
        entries, dtype = source.entries(block), source.dtype_of(block)
        for position, (name, order) in enumerate(zip(names[block], orders[block], strict=True)):
            own = _of_label(entries, position)
            candidates = Candidates(own, Sample(int(own.totals.sum())), dtype)
            try:
                _require_classes(objective, own)
                found.append(assured_cut(candidates, *wanted, confidence, order, len(names)))
            except InfeasibleError as error:
                found.append(InfeasibleLabelError(name, str(error)))
        return found

    every = [cut for part in on_each(work, source.blocks(), source.settings.available_cores) for cut in part]
    if errors := [one for one in every if isinstance(one, InfeasibleLabelError)]:
        raise InfeasibleLabelError(errors[0].label, errors[0].reason, len(errors))
    cuts = [one for one in every if isinstance(one, Cut)]
    thresholds = np.array([cut.threshold for cut in cuts])
    intervals = np.array([cut.interval for cut in cuts])
    return LabelCuts(thresholds, intervals, source.confusion_at(thresholds), np.ones(len(cuts), dtype=bool))


def _require_classes(objective: Objective, entries: Entries) -> None:
    """Raise where a label lacks a class that the metric needs."""
    try:
        objective.check(entries.totals)
    except ValueError as error:
        raise InfeasibleError(str(error)) from None


def _of_label(entries: Entries, position: int) -> Entries:
    """The scores of one label, in numbers of rows."""
    from surecut.certificates.weights import whole_counts

    part = slice(*entries.starts[position : position + 2].tolist())
    rows, absent = entries.rows[part], entries.absent[[position]]
    if entries.weighted:
        rows, absent = whole_counts(entries.weight[part]), whole_counts(absent)
    return Entries.scores(entries.low[part], rows, rows, absent=absent)
