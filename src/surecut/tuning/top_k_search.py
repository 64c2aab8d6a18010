"""Searches of rules that predict k labels a row: exact ones, those for smoothed labels, and those for costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.fixed_point import GAINED, Rule, fixed_point, random_starts, usual_starts
from surecut.core.label_rows import DenseRows
from surecut.core.sweeps import Sweep
from surecut.label_objectives import MeanCost, label_objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.label_rows import LabelRows
    from surecut.label_objectives import LabelObjective
    from surecut.tuning.top_k_request import Costs

MOST_RANDOM_STARTS, RANDOM_ENTRIES = 64, 20_000
"""Few rows are searched from as many random rules too, and so many scores at least, those of all rules together."""

RACED_WORK = 1 << 20
"""If the numbers of scores and of labels multiply to more, two starts are searched: the first one, and the best of the
others."""

LINED_ENTRIES, FEW_ENTRIES, FEWEST_LINED = 1 << 14, 1_000, 2
"""Of so many scores gains and offsets are searched together too; of that many in all, and for at least two rules."""

MOST_LINES, FEW_LINES, LINED_LABELS = 30, 2, 200
"""So many times at most; and only twice for the best rule of more scores, if there are no more labels than these."""

AGREED = 1e-9
"""Values of exact searches that differ by no more are the same."""


class Search(NamedTuple):
    """The best rule, from how many starts it was searched, and how many of them reached its value."""

    rule: Rule
    starts: int
    agreed: int

    @classmethod
    def best(cls, rules: list[Rule], agreed: float = AGREED) -> Search:
        """The first of the best rules; values that differ by no more than `agreed` are the same."""
        best = max(rules, key=lambda rule: rule.value)
        return cls(best, len(rules), sum(rule.value >= best.value - agreed for rule in rules))


def search_exactly(rows: LabelRows, objective: LabelObjective) -> Search:
    """The best of the rules that no change of a single number improves, one from each start.

    The first search begins with the offsets of the k largest scores alone; the others with both numbers of each label.
    """
    first, *starts = _starts(rows, objective)
    sweeps = [Sweep(rows, objective, start) for start in starts]
    if rows.eta.size * len(rows.positives) > RACED_WORK:
        sweeps = [max(sweeps, key=lambda sweep: sweep.value)]
    sweeps = [Sweep(rows, objective, first).run(gains=False), *sweeps]
    sweeps = sorted((sweep.run() for sweep in sweeps), key=lambda sweep: -sweep.value)
    if rows.eta.size <= LINED_ENTRIES:
        for sweep in sweeps[: max(FEWEST_LINED, FEW_ENTRIES // max(1, rows.eta.size))]:
            sweep.run(lines=MOST_LINES)
    elif len(rows.positives) <= LINED_LABELS:
        sweeps[0].run(lines=FEW_LINES)
    return Search.best([sweep.rule for sweep in sweeps])


def _starts(rows: LabelRows, objective: LabelObjective) -> list[Rule]:
    """Where searches begin: usual rules, fixed points from these, and of few rows random rules."""
    starts = usual_starts(rows)
    starts = [*starts, *(fixed_point(rows, objective, start) for start in starts)]
    if 0 <= rows.eta.min(initial=0) and rows.eta.max(initial=0) <= 1:
        soft = rows.with_truth(rows.eta)
        expected = label_objective(objective.metric, objective.average, soft.positives, soft.total)
        starts += [fixed_point(soft, expected, start) for start in starts[:2]]
    return starts + random_starts(rows, min(MOST_RANDOM_STARTS, RANDOM_ENTRIES // max(1, rows.eta.size)))


def search_smoothed(
    rows: LabelRows, metric: Any, average: str, probabilities: NDArray[np.float64], share: Any
) -> Search:
    """The best rule where a share of each label is replaced by the probability that a model gives to it."""
    known = np.maximum(probabilities, 0.0)
    soft = rows.with_eta(probabilities).with_truth(share * known + (1 - share) * rows.truth)
    expected = label_objective(metric, average, soft.positives, soft.total)
    return Search.best([fixed_point(soft, expected, start) for start in usual_starts(soft)], GAINED)


def search_cheapest(
    probabilities: NDArray[np.float64],
    codes: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    costs: Costs,
    exact: bool,
) -> Search:
    """The rule whose mean cost is least: of the actions' expected costs, on the rows themselves if `exact`.

    Its gains multiply, and its offsets are added to, what each action is expected to save.
    """
    size, actions, saved = len(codes), len(costs.actions), costs.saved
    total = size if weight is None else float(weight.sum())
    expected = np.maximum(probabilities, 0.0) @ saved
    for action in np.flatnonzero((saved == saved[0]).all(axis=0)):
        expected[:, action] = saved[0, action]  # and no rounding of it
    rows = DenseRows(expected, saved[codes], 1, weight, np.zeros(actions), total)
    objective = MeanCost(costs.highest, actions, total)
    plain = Sweep(rows, objective, Rule(np.ones(actions), np.zeros(actions), np.nan))
    return Search.best([(plain.run(lines=MOST_LINES) if exact else plain).rule])
