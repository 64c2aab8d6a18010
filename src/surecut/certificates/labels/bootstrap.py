"""``method="bootstrap"`` for many labels: whole rows are drawn again. Right for large samples only, and says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import averaged_value
from surecut.certificates.bootstrap import FEWEST, FEWEST_GROUPS, require_enough, require_filled
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certificate import FRESH, Certificate
from surecut.certificates.labels.values import average_certificate, row_values
from surecut.certificates.resampling import Resampled
from surecut.confusion import Confusion
from surecut.progress import shown
from surecut.tuning.labels import tune_thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.labels.rows import LabelRows
    from surecut.decisions.multilabel import MultilabelCut

RETUNED = 50
"""Resamples on which the thresholds are tuned again."""


FEWEST_OF_LABEL = 25
"""Fewer rows than this of a class that the metric needs, for any label, and a macro average is not resampled."""


def bootstrap_labels(
    cut: MultilabelCut,
    rows: LabelRows,
    tuned_here: bool,
    confidence: float,
    codes: NDArray[np.intp] | None,
    resamples: int,
    random_state: Any,
    progress: bool | None,
) -> Certificate:
    if not resamples >= 100:
        raise ValueError(f"resamples must be at least 100, got {resamples}")
    rng = np.random.default_rng(random_state)
    cells = rows.cells(cut)
    number = len(cells)
    groups = number if codes is None else int(codes.max()) + 1
    if codes is not None:
        require_enough(groups, FEWEST_GROUPS, "groups", grouped=True)
    confusion = cells.confusion()
    fewest = min(int(np.sum(confusion.positives)), int(np.sum(confusion.negatives)))
    require_enough(fewest, FEWEST, "pairs of a row and a label in each class")
    if cut.average == "macro":
        _require_labels(cut, confusion)
    clusters = cells if codes is None else cells.by_group(codes)
    if cut.average != "samples":
        # Plain rows, too: a row of many labels is drawn whole, like a group, and a cell that no row has stays empty.
        filled = (clusters.pooled() > 0).sum(axis=0)
        require_filled(
            cut.metric, Confusion(*cells_of(confusion).sum(axis=0)), filled, "rows" if codes is None else "groups"
        )
    of_rows = row_values(cut, cells) if cut.average == "samples" else None
    weights = np.ones(number) if rows.weights is None else rows.weights

    def valued(times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value on resamples, clusters as often as each row of `times` says."""
        if of_rows is not None:
            counted = (times if codes is None else times[:, codes]) * weights
            return np.asarray(counted @ of_rows / counted.sum(axis=1))
        drawn = clusters.confusion(times)
        return np.array([averaged_value(cut.metric, cut.average, drawn[i]) for i in range(len(times))])

    at_once = max(1, min(100, 10_000_000 // groups))
    starts = list(range(0, resamples, at_once))
    values = []
    for start in shown(starts, "resampling", len(starts), progress=progress):
        size = min(at_once, resamples - start)
        values.append(valued(rng.multinomial(groups, np.full(groups, 1 / groups), size=size).astype(float)))
    value = float(valued(np.ones((1, groups)))[0])
    optimism = _optimism(cut, rows, codes, groups, rng, progress) if tuned_here and not cut.constraints else 0.0
    drawn_values = np.concatenate(values)
    steps = (0.0, 0.0) if cut.average == "samples" else _steps(cut, confusion, float(weights.sum()) / groups)
    lower, upper = Resampled(drawn_values, drawn_values, optimism, None, steps).limits(1 - confidence)
    assumptions = [FRESH if codes is None else "the groups are a random sample, independent of one another"]
    assumptions.append("the sample is large: the bootstrap is right in the limit only")
    if tuned_here and cut.constraints:
        assumptions.append("the value is not corrected for the choice of a constrained cut")
    limits = (float(lower), float(upper), None)
    return average_certificate(cut, value, limits, number, "bootstrap", confidence, assumptions, cells.confusion())


def _optimism(
    cut: MultilabelCut,
    rows: LabelRows,
    codes: NDArray[np.intp] | None,
    groups: int,
    rng: np.random.Generator,
    progress: bool | None,
) -> float:
    """By how much tuned thresholds flatter: on resamples, tuned again, less what they are worth on the rows themselves.

    Both are compared with the cut's own thresholds on the same rows, which takes most of the chance out.
    """
    own = np.ones(rows.scores.shape[0]) if rows.weights is None else rows.weights
    kappa = _shrinkage(cut)

    def valued(of: MultilabelCut) -> Callable[[NDArray[np.float64]], float]:
        """The value of thresholds as a function of the rows' weights."""
        cells = ClusterCells.of_matrices(rows.truth, of.predict(rows.scores))
        if of.average == "samples":
            of_rows = row_values(of, cells)
            return lambda weights: float(np.average(of_rows, weights=weights))
        return lambda weights: averaged_value(of.metric, of.average, cells.confusion(weights[None])[0])

    of_cut = valued(cut)
    value = of_cut(own)
    found = []
    for _ in shown(range(RETUNED), "tuning again", RETUNED, progress=progress):
        times = rng.multinomial(groups, np.full(groups, 1 / groups))
        weights = np.asarray(own * (times if codes is None else times[codes]), dtype=float)
        anew = tune_thresholds(
            rows.truth,
            rows.scores,
            metric=cut.metric,
            average=cut.average,
            sample_weight=weights,
            shrinkage=kappa,
            zero_division=cut.zero_division,
            labels=cut.labels,
        )
        of_anew = valued(anew)
        found.append(of_anew(weights) - of_cut(weights) + value - of_anew(own))
    return max(0.0, float(np.mean(found)))


def _require_labels(cut: MultilabelCut, confusion: Confusion) -> None:
    """Refuse a macro average in which a label has too few rows of a class that its metric needs."""
    for needed, counts, name in (
        (cut.metric.needs_positives, confusion.positives, "positive"),
        (cut.metric.needs_negatives, confusion.negatives, "negative"),
    ):
        counts = np.asarray(counts, dtype=float)
        scarce = counts < FEWEST_OF_LABEL
        if needed and scarce.any():
            first = cut.labels[int(np.flatnonzero(scarce)[0])]
            raise ValueError(
                f"the bootstrap of a macro average needs {FEWEST_OF_LABEL} {name} rows of every label, and "
                f"{int(scarce.sum())} of {len(scarce)} labels have fewer ({first!r}: {counts[scarce][0]:g}): "
                "use method='holdout' on held-out rows or 'uniform', which hold for any number, or leave out such "
                "labels"
            )


def _steps(cut: MultilabelCut, confusion: Confusion, size: float) -> tuple[float, float]:
    """By how much one more row that is wrong for a label lowers the average, and one that is right raises it."""
    cells = cells_of(confusion)
    if cut.average == "micro":
        cells = cells.sum(axis=0, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.asarray(cut.metric.evaluate(Confusion(*cells.T)), dtype=float)
        changes = [
            np.asarray(cut.metric.evaluate(Confusion(*(cells + size * one).T)), dtype=float) - value
            for one in np.eye(4)
        ]
    changed = np.array(changes)
    changed = changed[np.isfinite(changed)] / len(cells)
    return max(0.0, -float(changed.min(initial=0.0))), max(0.0, float(changed.max(initial=0.0)))


def _shrinkage(cut: MultilabelCut) -> Any:
    """κ to tune with again: the one that was given, or, where labels differ, "auto", which chose them."""
    kappas = np.unique(cut.shrinkage)
    if not len(kappas) or not np.isfinite(kappas).all():
        return 0.0
    return float(kappas[0]) if len(kappas) == 1 else "auto"
