"""One cut for a request: what `tune_threshold`, `tune_frame`, the classifier and the commands share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from surecut._inputs import as_scores, as_weights, require_same_length, without_missing
from surecut._labels import as_labels
from surecut.certificates.weights import require_both, require_whole
from surecut.core.candidates import cut_of
from surecut.core.memory import Counted
from surecut.core.search import RANGES, Source, resolved, search
from surecut.core.tally import CoarseTally, ScoreTally
from surecut.positive_class import settle_absence
from surecut.sample import checksum_of
from surecut.sources.arrays import ArraySource
from surecut.tuning.promised import promised_cut
from surecut.tuning.smoothing import shrunken_cut
from surecut.tuning.stable import stable_cuts

if TYPE_CHECKING:
    from surecut.decisions.cut import Cut
    from surecut.sample import Sample
    from surecut.tuning.request import Request, RowsRequest
    from surecut.tuning.resampling import Folds


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
        super().__init__(tally.entries, tally.dtype, refines=not isinstance(tally, CoarseTally))
        self._tally = tally
        self.sample = tally.sample

    def tally(self) -> ScoreTally:
        return self._tally


def array_source(y_true: Any, y_score: Any, sample_weight: Any, request: RowsRequest) -> ArraySource:
    """Labels and scores in memory as a source of rows."""
    require_both(request.weights, sample_weight is not None)
    if request.missing == "drop":
        y_true, y_score, sample_weight = without_missing(y_true, y_score, sample_weight)
    labels = as_labels(y_true, pos_label=request.pos_label, check=False)
    settle_absence(labels.absent, request.metrics)
    scores = as_scores(y_score)
    require_same_length(y_true=labels, y_score=scores)
    weights = None if sample_weight is None else as_weights(sample_weight, len(scores))
    if weights is not None:
        require_whole(weights, request.weights)
    return ArraySource(scores, labels, weights)


def tune(source: RowsToTune, request: Request, folds: Folds | None = None) -> list[Cut]:
    """The cut of one sample for each metric of a request.

    Resamples of stable cuts draw whole `folds` where scores come from several models.
    """
    if request.shrinkage != 0:
        tally = source.tally()
        cuts = [shrunken_cut(tally, request.shrinkage, objective) for objective in request.objectives]
    elif request.stable:
        cuts = stable_cuts(source, request, folds)
    elif request.confidence is not None:
        tally = tally_for_limits(source)
        tally = tally if request.prior is None else tally.with_prior(request.prior)
        cuts = [promised_cut(tally, objective, request) for objective in request.objectives]
    else:
        every = search(source, request.objectives)
        sample = source.sample
        cuts = [cut_of(found, sample) for found in every]
    if request.pos_label is None:
        return cuts
    return [cut.with_sample(pos_label=request.pos_label) for cut in cuts]


def tally_for_limits(source: RowsToTune, thresholds: Sequence[float] = ()) -> ScoreTally:
    """All rows by distinct score; where they are too many for that, by ranges of scores, for confidence limits.

    What is known at the thresholds is exact. Ranges end at scores of rows, which may be rows that test a cut: limits
    take the end of a range for a fixed number, which neglects one row among all of those that do not fit in memory.
    """
    if source.resolvable_rows == math.inf:
        return source.tally()
    entries = source.count()
    if entries.weighted or entries.rows.sum() <= source.resolvable_rows:
        return source.tally()
    entries = resolved(source, entries, RANGES, thresholds)
    sample = source.sample
    return CoarseTally(
        entries.low,
        entries.rows,
        entries.rows,
        entries.rows,
        source.dtype,
        checksum_of(sample.fingerprint),
        highest=entries.high,
        seen=sample.seen,
    )
