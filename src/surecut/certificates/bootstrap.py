"""``method="bootstrap"``: resampled rows, or whole groups of them. Right for large samples only, and says so.

Rows of one label are drawn again from their tally (`resampling`). Rows of many labels are drawn whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from surecut.averages import averaged_value
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.certificate import FRESH, Certificate
from surecut.certificates.evidence import Asked, Evidence, row_values
from surecut.certificates.resampling import Resampled, resample, steps_of
from surecut.certificates.top_k_limits import worth
from surecut.confusion import Confusion
from surecut.core.tally import ScoreTally
from surecut.decisions.cut import Cut
from surecut.label_objectives import MulticlassAccuracy
from surecut.metrics import Metric
from surecut.progress import shown
from surecut.tuning.labels import tune_thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.label_rows import LabelRows, TableRows
    from surecut.certificates.top_k_limits import RuleRows
    from surecut.decisions.multilabel import MultilabelCut

FEWEST = 100
"""Fewer rows of a class than this, and the promise is broken more often than it says."""

FEWEST_GROUPS = 50
"""The same for groups of rows."""

FEWEST_OF_LABEL = 25
"""Fewer rows than this of a class that the metric needs, for any label, and a macro average is not resampled."""

FEWEST_IN_CELL = 10
"""So many groups, weighted rows or rows of many labels a cell that the metric counts needs: what is missing is not
resampled."""

RETUNED = 50
"""Resamples on which the thresholds of many labels are tuned again."""


def bootstrap_certificate(evidence: Evidence, asked: Asked) -> Certificate:
    """Limits from resamples, less the optimism of tuning where these rows tuned the cut without a constraint."""
    cut = evidence.cut
    if not asked.resamples >= 100:
        raise ValueError(f"resamples must be at least 100, got {asked.resamples}")
    if isinstance(cut, Cut):
        value, drawn = _drawn(cut, evidence, asked)
    else:
        value, drawn = _labels_drawn(cut, evidence, asked)
    others = ["the sample is large: the bootstrap is right in the limit only"]
    if evidence.tuned_here and cut.constraints:
        others.append("the value is not corrected for the choice of a constrained cut")
    sample = "the groups are a random sample, independent of one another" if evidence.grouped else FRESH
    limits = (*drawn.limits(asked.error), None)
    return evidence.certificate(asked, value, limits, [sample], others, threshold_spread=drawn.threshold_spread)


def require_enough(number: int, fewest: int, what: str, grouped: bool = False) -> None:
    """Refuse samples that are too small to be resampled."""
    if number < fewest:
        instead = (
            "method='holdout' on held-out rows holds for any number of groups, and promises little with few"
            if grouped
            else "use method='uniform', which holds for any number of rows, or 'holdout' on held-out rows"
        )
        raise ValueError(
            f"the bootstrap is right for large samples only, and needs {fewest} {what}, got {number}: {instead}"
        )


def require_filled(metric: Metric, counts: NDArray[np.float64], clusters: NDArray[Any], what: str) -> None:
    """Refuse where a cell that the metric counts is nearly empty, as the mistakes are where a value is close to 1.

    `counts` are all rows (tp, fp, fn, tn); `clusters` are how many rows or groups each cell has.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.asarray(metric.evaluate(Confusion(*(counts + 1.0))))
        for cell, name in enumerate(("true positives", "false positives", "false negatives", "true negatives")):
            more = np.asarray(metric.evaluate(Confusion(*(counts + 1.0 + 7.0 * (np.arange(4) == cell)))))
            if clusters[cell] < FEWEST_IN_CELL and np.abs(more - value) > 1e-12:
                raise ValueError(
                    f"the bootstrap cannot tell how rare {name} are from {int(clusters[cell])} {what} that have some: "
                    f"it needs {FEWEST_IN_CELL}. Use method='holdout' on held-out rows, which holds for any number; "
                    "for rows that are independent and have no weights also 'uniform'"
                )


def _drawn(cut: Cut, evidence: Evidence, asked: Asked) -> tuple[float, Resampled]:
    """Of one label: its value, and resamples of its rows or groups."""
    (tally,), groups = evidence.tallies, cast("TableRows | None", evidence.rows)
    require_enough(int(tally.rows.sum(axis=0).min()), FEWEST, "rows of each class")
    if groups is not None:
        require_enough(groups.clusters, FEWEST_GROUPS, "groups", grouped=True)
    value = evidence.value
    if groups is not None:
        counts = groups.cells(cut).pooled()
        require_filled(cut.metric, counts.sum(axis=0), (counts > 0).sum(axis=0), "groups")
    elif tally.weight is not tally.rows:
        unweighted = ScoreTally(tally.keys, tally.rows, tally.rows, tally.rows, tally.dtype)
        counts = cells_of(unweighted.confusion_at(cut.threshold))
        require_filled(cut.metric, counts, counts, "rows")
    retune = evidence.tuned_here and not cut.constraints
    (drawn,) = resample([cut], tally, retune, groups, asked.resamples, asked.random_state, asked.progress)
    return value, drawn


def _labels_drawn(cut: MultilabelCut, evidence: Evidence, asked: Asked) -> tuple[float, Resampled]:
    """Of many labels: the value, and resamples of whole rows or groups."""
    rows, clusters = cast("LabelRows", evidence.rows), cast("ClusterCells", evidence.cells)
    rng = np.random.default_rng(asked.random_state)
    number, codes = rows.clusters, rows.groups
    cells = clusters if codes is None else rows.cells_of_rows(cut)
    if codes is not None:
        require_enough(number, FEWEST_GROUPS, "groups", grouped=True)
    confusion = cells.confusion()
    fewest = min(int(np.sum(confusion.positives)), int(np.sum(confusion.negatives)))
    require_enough(fewest, FEWEST, "pairs of a row and a label in each class")
    if cut.average == "macro":
        _require_labels(cut, confusion)
    if cut.average != "samples":
        # Plain rows, too: a row of many labels is drawn whole, like a group, and a cell that no row has stays empty.
        counts = cells_of(confusion).sum(axis=0)
        require_filled(cut.metric, counts, (clusters.pooled() > 0).sum(axis=0), "rows" if codes is None else "groups")
    of_rows = row_values(cut, cells) if cut.average == "samples" else None
    weights = np.ones(len(cells)) if rows.weights is None else rows.weights

    def valued(times: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value on resamples, clusters as often as each row of `times` says."""
        if of_rows is not None:
            counted = (times if codes is None else times[:, codes]) * weights
            return np.asarray(counted @ of_rows / counted.sum(axis=1))
        drawn = clusters.confusion(times)
        return np.array([averaged_value(cut.metric, cut.average, drawn[i]) for i in range(len(times))])

    at_once = max(1, min(100, 10_000_000 // number))
    starts = list(range(0, asked.resamples, at_once))
    values = []
    for start in shown(starts, "resampling", len(starts), progress=asked.progress):
        size = min(at_once, asked.resamples - start)
        values.append(valued(rng.multinomial(number, np.full(number, 1 / number), size=size).astype(float)))
    value = float(valued(np.ones((1, number)))[0])
    retune = evidence.tuned_here and not cut.constraints
    optimism = _optimism(cut, rows, rng, asked.progress) if retune else 0.0
    steps = (0.0, 0.0)
    if cut.average != "samples":
        of_labels = cells_of(confusion)
        averaged = of_labels.sum(axis=0, keepdims=True) if cut.average == "micro" else of_labels
        steps = steps_of(cut.metric, averaged, float(weights.sum()) / number)
    drawn_values = np.concatenate(values)
    return value, Resampled(drawn_values, drawn_values, optimism, None, steps)


def rule_drawn(rows: RuleRows, asked: Asked) -> tuple[float, Resampled]:
    """Of a rule of k labels a row, on rows that did not tune it: its value, and resamples of whole rows or groups."""
    if not asked.resamples >= 100:
        raise ValueError(f"resamples must be at least 100, got {asked.resamples}")
    number = len(rows.cells)
    _require_enough_of_rule(rows)
    rng = np.random.default_rng(asked.random_state)
    at_once = max(1, min(100, 10_000_000 // number))
    starts, values = list(range(0, asked.resamples, at_once)), []
    for start in shown(starts, "resampling", len(starts), progress=asked.progress):
        size = min(at_once, asked.resamples - start)
        values.append(rows.value(rng.multinomial(number, np.full(number, 1 / number), size=size).astype(float)))
    drawn, value = np.concatenate(values), float(rows.value()[0])
    return value, Resampled(drawn, drawn, 0.0, None, _steps_of_rule(rows, value))


def _require_enough_of_rule(rows: RuleRows) -> None:
    """Refuse rows, or groups, of which too few say something."""
    fewest = FEWEST if rows.groups is None else FEWEST_GROUPS
    instead = "use method='holdout', which holds for any number"
    if len(rows.cells) < fewest:
        raise ValueError(
            f"the bootstrap is right for large samples only, and needs {fewest} {rows.what}, got {len(rows.cells)}: "
            f"{instead}"
        )
    wrong = rows.cells.pooled()[:, 1:3].sum(axis=1) > 0
    if wrong.sum() < FEWEST_IN_CELL:
        raise ValueError(
            f"the bootstrap cannot tell how rare mistakes are from {int(wrong.sum())} {rows.what} that have some: it "
            f"needs {FEWEST_IN_CELL}; {instead}"
        )
    if rows.rule.average == "micro" or rows.rule.costs is not None or isinstance(rows.rule.metric, MulticlassAccuracy):
        return
    unweighted = replace(rows, weights=None).confusion
    needed = [np.asarray(unweighted.positives, dtype=float)]
    if isinstance(rows.rule.metric, Metric) and rows.rule.metric.needs_negatives:
        needed.append(np.asarray(unweighted.negatives, dtype=float))
    counts = np.min(needed, axis=0)
    if (counts < FEWEST_OF_LABEL).any():
        first = int(np.argmax(counts < FEWEST_OF_LABEL))
        raise ValueError(
            f"the bootstrap of a value that is made of each label's needs {FEWEST_OF_LABEL} rows that have each label, "
            f"and as many that do not; {int((counts < FEWEST_OF_LABEL).sum())} of {len(counts)} labels have fewer "
            f"({rows.rule.labels[first]!r}: {counts[first]:g}): {instead}"
        )


def _steps_of_rule(rows: RuleRows, value: float) -> tuple[float, float]:
    """By how much one more row, or group, lowers the value if it is all wrong, and raises it if it is right."""
    rule, confusion = rows.rule, rows.confusion
    size = float(np.max(np.asarray(confusion.positives) + np.asarray(confusion.negatives))) / len(rows.cells)
    counts = cells_of(confusion)
    if rule.costs is not None:
        gains = rows.possible
        return (value - float(gains[0])) / len(rows.cells), (float(gains[-1]) - value) / len(rows.cells)
    if isinstance(rule.metric, Metric) and rule.average in ("macro", "micro"):
        averaged = counts.sum(axis=0, keepdims=True) if rule.average == "micro" else counts
        return steps_of(rule.metric, averaged, size)
    changed = []
    for label in range(len(counts)):
        other = int(np.argmax(np.where(np.arange(len(counts)) == label, -1.0, counts[:, :2].sum(axis=1))))
        right, wrong = counts.copy(), counts.copy()
        for cells in (right, wrong):
            cells[:, 3] += size
            cells[label, 3] -= size
        right[label, 0] += size
        wrong[label, 2] += size
        wrong[other] += size * np.array([0.0, 1.0, 0.0, -1.0])
        changed += [worth(rule.metric, rule.average, Confusion(*cells.T)) - value for cells in (right, wrong)]
    return max(0.0, -min(changed)), max(0.0, max(changed))


def _optimism(cut: MultilabelCut, rows: LabelRows, rng: np.random.Generator, progress: bool | None) -> float:
    """By how much tuned thresholds flatter: on resamples, tuned again, less what they are worth on the rows themselves.

    Both are compared with the cut's own thresholds on the same rows, which takes most of the chance out.
    """
    own = np.ones(rows.scores.shape[0]) if rows.weights is None else rows.weights
    number, kappa = rows.clusters, _shrinkage(cut)

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
        times = rng.multinomial(number, np.full(number, 1 / number))
        weights = np.asarray(own * (times if rows.groups is None else times[rows.groups]), dtype=float)
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


def _shrinkage(cut: MultilabelCut) -> Any:
    """κ to tune with again: the one that was given, or, where labels differ, "auto", which chose them."""
    kappas = np.unique(cut.shrinkage)
    if not len(kappas) or not np.isfinite(kappas).all():
        return 0.0
    return float(kappas[0]) if len(kappas) == 1 else "auto"
