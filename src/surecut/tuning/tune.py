"""One cut for a request: what `tune_threshold`, `tune_frame`, the classifier and the commands share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from surecut.core.candidates import cut_of
from surecut.core.memory import Counted
from surecut.core.search import Source, search
from surecut.tuning.smoothing import shrunken_cut

if TYPE_CHECKING:
    from surecut.core.rules import Objective
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut
    from surecut.sample import Sample
    from surecut.tuning.request import Request


class RowsToTune(Source, Protocol):
    """A source of one sample that knows its rows and can tally them."""

    @property
    def sample(self) -> Sample:
        """What a decision remembers of the rows; asked for after `count`."""

    def tally(self) -> ScoreTally:
        """All rows, by distinct score."""


class TalliedRows(Counted):
    """Rows that are tallied already."""

    def __init__(self, tally: ScoreTally) -> None:
        super().__init__(tally.entries, tally.dtype)
        self._tally = tally
        self.sample = tally.sample

    def tally(self) -> ScoreTally:
        return self._tally


def tune(source: RowsToTune, request: Request) -> list[Cut]:
    """The cut of one sample for each metric of a request."""
    if request.shrinkage != 0:
        tally = source.tally()
        cuts = [shrunken_cut(tally, request.shrinkage, objective) for objective in request.objectives]
    elif request.confidence is not None:
        tally = source.tally() if request.prior is None else source.tally().with_prior(request.prior)
        cuts = [_promised_cut(tally, objective, request) for objective in request.objectives]
    else:
        every = search(source, request.objectives)
        sample = source.sample
        cuts = [cut_of(found, sample) for found in every]
    if request.pos_label is None:
        return cuts
    return [cut.with_sample(pos_label=request.pos_label) for cut in cuts]


def _promised_cut(tally: ScoreTally, objective: Objective, request: Request) -> Cut:
    """A cut that keeps the constraints on new data; without constraints, the best one and what its value is at least.

    Everything holds jointly with the confidence.
    """
    from surecut.certificates.assurance import assured_cut
    from surecut.certificates.counts import frequencies
    from surecut.certificates.uniform import uniform_value_limits

    confidence = request.confidence
    assert confidence is not None
    if objective.constraints:
        return assured_cut(tally, objective.metric, objective.constraints, confidence, request.weights)
    cut = tally.best_cut(objective.metric)
    counts = frequencies(tally, "a limit of the metric", request.weights)
    lower, _ = uniform_value_limits(objective.metric, counts, cut.confusion, 1 - confidence)
    return replace(cut, confidence=confidence, lower_limit=lower)
