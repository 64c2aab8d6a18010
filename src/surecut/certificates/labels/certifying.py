"""`certify` for a cut of many labels: which method, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import require_same_length
from surecut.averages import averaged_value
from surecut.certificates.cells import cells_of, group_codes
from surecut.certificates.certificate import FRESH, KEPT_ASIDE, Certificate
from surecut.certificates.groups import GROUPS_NEED_ROWS
from surecut.certificates.held_out import require_valid_rows
from surecut.certificates.labels.bootstrap import bootstrap_labels
from surecut.certificates.labels.holdout import holdout_labels, labels_alone
from surecut.certificates.labels.rows import LabelRows, TableRows, have_names
from surecut.certificates.labels.theorem import theorem_labels
from surecut.certificates.labels.uniform import pooled_limits, single_shares, uniform_macro, uniform_micro
from surecut.certificates.labels.values import average_certificate
from surecut.certificates.weights import frequencies, require_whole
from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.core.tally import ScoreTally
    from surecut.decisions.multilabel import MultilabelCut


def certify_labels(
    cut: MultilabelCut,
    Y_true: Any,
    Y_score: Any,
    *,
    tallies: Sequence[ScoreTally] | None,
    confidence: float,
    method: str,
    sample_weight: ArrayLike | None,
    weights: str | None,
    by: ArrayLike | None,
    groups: ArrayLike | None,
    pos_label: Any,
    held_out: bool | None,
    resamples: int,
    random_state: Any,
    progress: bool | None,
) -> Certificate:
    """What `certify` does with a cut of many labels."""
    error = 1 - confidence
    if method == "theorem":
        return average_certificate(
            cut, cut.value, theorem_labels(cut, error), int(cut.rows.max()), method, confidence, [FRESH]
        )
    if tallies is not None:
        if groups is not None or by is not None:
            raise ValueError(GROUPS_NEED_ROWS)
        return _from_tallies(cut, list(tallies), method, confidence, weights, held_out, progress)
    if Y_true is None or Y_score is None:
        raise ValueError(f"method={method!r} needs rows: pass Y_true and Y_score")
    pos_label = cut.positive_in(Y_true, pos_label)
    if by is not None:
        table = TableRows.of(cut, Y_true, Y_score, by, sample_weight, pos_label)
        table.require_every_label()
        return _from_table(cut, table, method, confidence, weights, groups, held_out, progress)
    rows = LabelRows.of(cut, Y_true, Y_score, sample_weight, pos_label)
    tuned_here = require_valid_rows(cut, rows.some_tallies(cut), rows.tuned(cut), method, held_out)
    codes = None if groups is None else _codes(groups, rows.scores.shape[0])
    if rows.weights is not None:
        require_whole(rows.weights, weights)
    if method == "bootstrap":
        if weights == "counts" and codes is None:
            rows = rows.counted("it", weights)
        return bootstrap_labels(cut, rows, tuned_here, confidence, codes, resamples, random_state, progress)
    if codes is not None and rows.weights is not None:
        raise ValueError("groups of rows with weights have no finite-sample limit here: use method='bootstrap'")
    rows = rows.counted(f"method={method!r}", weights)
    if method == "uniform":
        return _uniform_or_alone(cut, rows.tallies(), method, confidence, progress)
    cells = rows.cells(cut)
    if codes is None:
        return holdout_labels(cut, cells, confidence, False, len(cells))
    return holdout_labels(cut, cells.by_group(codes), confidence, True, len(cells))


def _from_table(
    cut: MultilabelCut,
    rows: TableRows,
    method: str,
    confidence: float,
    weights: str | None,
    groups: ArrayLike | None,
    held_out: bool | None,
    progress: bool | None,
) -> Certificate:
    """From a long table: of rows that are independent, or of groups that are."""
    tallies = rows.tallies()
    if rows.weights is not None:
        require_whole(rows.weights, weights)
    if method == "bootstrap":
        raise ValueError(
            "whole rows are resampled, and a long table does not say which of its rows belong together: pass matrices, "
            "or use method='holdout' on held-out rows, or method='uniform'"
        )
    if groups is None:
        return _from_tallies(cut, tallies, method, confidence, weights, held_out, progress)
    if rows.weights is not None:
        raise ValueError(
            "groups of rows with weights have no finite-sample limit here: leave the weights out, or pass matrices and "
            "use method='bootstrap'"
        )
    _require_average(cut)
    require_valid_rows(
        cut, dict(enumerate(tallies)), _tuned(cut, tallies, _at_thresholds(cut, tallies)), method, held_out
    )
    cells = rows.cells(cut, _codes(groups, len(rows.scores)))
    return holdout_labels(cut, cells, confidence, True, len(rows.scores))


def _codes(groups: ArrayLike, rows: int) -> NDArray[np.intp]:
    named = np.asarray(groups)
    require_same_length(Y_true=np.empty(rows), groups=named)
    return group_codes(named)


def _from_tallies(
    cut: MultilabelCut,
    tallies: list[ScoreTally],
    method: str,
    confidence: float,
    weights: str | None,
    held_out: bool | None,
    progress: bool | None,
) -> Certificate:
    if len(tallies) != len(cut):
        raise ValueError(f"expected a tally for each of the {len(cut)} labels, got {len(tallies)}")
    _require_average(cut)
    if method == "bootstrap":
        raise ValueError("whole rows are resampled, and tallies of labels do not hold them: pass Y_true and Y_score")
    identical = _tuned(cut, tallies, _at_thresholds(cut, tallies))
    require_valid_rows(cut, dict(enumerate(tallies)), identical, method, held_out)
    counted = [frequencies(tally, f"method={method!r}", weights) for tally in tallies]
    return _uniform_or_alone(cut, counted, method, confidence, progress)


def _require_average(cut: MultilabelCut) -> None:
    if cut.average == "samples":
        raise ValueError(
            "a samples average is a mean over rows, of which tallies of labels know nothing, and no band holds for it "
            "at all thresholds: use method='holdout' on held-out rows of matrices, or method='bootstrap'"
        )


def _uniform_or_alone(
    cut: MultilabelCut, tallies: list[ScoreTally], method: str, confidence: float, progress: bool | None
) -> Certificate:
    """From tallies of rows that may certify: bands, or the limits of each label by itself."""
    error = 1 - confidence
    _require_average(cut)
    confusion = _at_thresholds(cut, tallies)
    value = averaged_value(cut.metric, cut.average, confusion)
    of_label = np.array([tally.rows.sum() for tally in tallies])
    rows = int(of_label[0] if (of_label == of_label[0]).all() else of_label.sum())  # of a matrix, or of a long table
    if method == "holdout":
        limits = (
            labels_alone(cut.metric, confusion, error)
            if cut.average == "macro"
            else pooled_limits(cut.metric, confusion, single_shares, error)
        )
        return average_certificate(
            cut, value, (*limits, None), rows, method, confidence, [FRESH, KEPT_ASIDE], confusion
        )
    found = (
        uniform_macro(cut.metric, tallies, confusion, error, progress)
        if cut.average == "macro"
        else uniform_micro(cut.metric, tallies, confusion, error)
    )
    assumptions = [FRESH]
    if cut.constraints:
        assumptions.append("the regret is against every threshold, also those that break the constraint")
    return average_certificate(cut, value, found, rows, method, confidence, assumptions, confusion)


def _tuned(cut: MultilabelCut, tallies: list[ScoreTally], confusion: Confusion) -> bool:
    """Whether these rows tuned the cut. One that was tuned in an engine knows its counts, but no fingerprint."""
    if not cut.checksums.any():
        return bool(np.array_equal(cells_of(confusion), cells_of(cut.confusion)))
    return any(
        is_named and tally.sample.fingerprint == cut[label].fingerprint
        for tally, label, is_named in zip(tallies, cut, have_names(cut), strict=True)
    )


def _at_thresholds(cut: MultilabelCut, tallies: list[ScoreTally]) -> Confusion:
    """Each label's confusion at its threshold."""
    found = [
        cells_of(tally.confusion_at(threshold))
        for threshold, tally in zip(cut.thresholds.tolist(), tallies, strict=True)
    ]
    return Confusion(*np.array(found).T)
