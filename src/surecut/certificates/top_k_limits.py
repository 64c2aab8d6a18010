"""Limits of what a rule of k labels a row is worth, from rows that did not tune it. Valid for every sample size.

The predictions of a row are labels like any other, many for each row, and rows are independent:

- Macro, micro: the limits of a `MultilabelCut` (`holdout`), and balanced accuracy is the macro recall. Weighted: limits
  of each label's value and of its share of the rows, at the worst of what they allow.
- Where each row has one class and is predicted one, only whether it is right counts for a micro average: a share, with
  exact limits, as for accuracy.
- G-mean: limits of each class's recall, all at once. The mean cost: that of a bounded variable, by a bet; by a test
  where a row can cost three amounts only, and exact where two.
- Kappa and MCC: the agreement by chance, Σ πq, is the probability that the class of a row is what is predicted for
  another one. So it is the mean of a function of pairs of rows, and 1 − kappa a ratio of two such means, of which one
  bet gives a limit. Kappa is at most MCC where it is positive: 1 − Σ πq is at least the root of (1 − Σ π²)(1 − Σ q²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.averages import undefined_labels
from surecut.certificates.cells import ClusterCells, cells_of
from surecut.certificates.clusters import (
    RECALL,
    bounded_mean_limits,
    is_sorted,
    least_ratio,
    ratio_limits,
    require_no_order,
    sorted_clusters,
    terms_of,
)
from surecut.certificates.confidence import share_limits
from surecut.certificates.holdout import limits_of_each, macro_limits, micro_limits
from surecut.certificates.nuisance import three_part_limit
from surecut.confusion import Confusion
from surecut.label_objectives import (
    MACRO,
    MICRO,
    MULTICLASS_AVERAGE,
    WEIGHTED,
    BalancedAccuracy,
    MulticlassAccuracy,
    MulticlassGMean,
    MulticlassKappa,
    MulticlassMCC,
    MulticlassMetric,
    values_of_confusion,
)
from surecut.metrics import Recall

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.top_k import TopK

PRECISION = (np.array([1.0, 0, 0, 0]), np.array([1.0, 1, 0, 0]))
PREVALENCE = (np.array([1.0, 0, 1, 0]), np.ones(4))

FURTHER, FEWEST_WRONG = 1.5, 1e-3
"""Ratios up to so many times the validation rows' are considered; rows that are all right count as so many wrong."""

NEEDS_CLASSES = (
    "{what} needs rows of one class each, and some rows here have none, or several: pass a column of class labels"
)


@dataclass(frozen=True, eq=False)
class RuleRows:
    """Rows, and what a rule predicts for them.

    Attributes
    ----------
    rule
        The rule.
    truth
        Which labels each row has: a matrix, dense or sparse.
    actions
        The predicted positions among the rule's actions, −1 for none; shape (rows, k).
    weights, groups
        The weight of each row, and the number of its group; or None.
    """

    rule: TopK
    truth: Any
    actions: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    groups: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.actions)

    @cached_property
    def cells_of_rows(self) -> ClusterCells:
        """The counts of each row and label, times its weight."""
        from scipy import sparse

        position = {label: i for i, label in enumerate(self.rule.labels)}
        of_action = np.array([position.get(action, -1) for action in self.rule.actions] + [-1])
        label = of_action[self.actions]
        row, place = np.nonzero(label >= 0)
        shape = (len(self), len(self.rule))
        predicted = sparse.csr_array((np.ones(len(row)), (row, label[row, place])), shape=shape)
        return ClusterCells.of_matrices(self.truth, predicted, self.weights)

    @cached_property
    def cells(self) -> ClusterCells:
        """The counts of what is independent: of each row, or of each group."""
        return self.cells_of_rows if self.groups is None else self.cells_of_rows.by_group(self.groups)

    @cached_property
    def confusion(self) -> Confusion:
        """Of each label."""
        return self.cells.confusion()

    @cached_property
    def classes(self) -> NDArray[np.int64] | None:
        """The position of each row's class; None where rows do not have one each."""
        from scipy import sparse

        truth = sparse.csr_array(self.truth)
        truth.eliminate_zeros()
        return truth.indices.astype(np.int64) if (np.diff(truth.indptr) == 1).all() else None

    @property
    def predictable(self) -> NDArray[np.intp]:
        """The positions of the labels that are among the rule's actions."""
        actions = set(self.rule.actions)
        return np.flatnonzero([label in actions for label in self.rule.labels])

    @property
    def have_one_each(self) -> bool:
        """Whether every row has one class and is predicted one."""
        return self.rule.k == 1 and self.classes is not None and bool((self.actions >= 0).all())

    @cached_property
    def gained(self) -> NDArray[np.float64]:
        """Minus the cost of each row."""
        assert self.rule.costs is not None
        return np.asarray(-self.rule.costs[self.one_class("a cost"), self.actions[:, 0]])

    @property
    def possible(self) -> NDArray[np.float64]:
        """What a row can gain, in ascending order."""
        assert self.rule.costs is not None
        return np.unique(-self.rule.costs)

    @property
    def what(self) -> str:
        """What is independent, in a word."""
        return "rows" if self.groups is None else "groups"

    def one_class(self, what: str) -> NDArray[np.int64]:
        """The position of each row's class; raises where rows do not have one each."""
        if self.classes is None or (self.rule.costs is not None and (self.actions < 0).any()):
            raise ValueError(NEEDS_CLASSES.format(what=what))
        return self.classes

    def value(self, times: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """What the rule is worth on these rows, clusters counted once or as often as each row of `times` says."""
        counted = np.ones((1, len(self.cells))) if times is None else times
        if self.rule.costs is not None:
            weight = np.ones(len(self)) if self.weights is None else self.weights
            by_cluster = np.arange(len(self)) if self.groups is None else self.groups
            gained, weights = (
                np.bincount(by_cluster, of_row, minlength=len(self.cells)) for of_row in (weight * self.gained, weight)
            )
            return np.asarray(counted @ gained / (counted @ weights), dtype=np.float64)
        drawn = self.cells.confusion(counted)
        return np.array([worth(self.rule.metric, self.rule.average, drawn[i]) for i in range(len(counted))])


def worth(metric: Any, average: str, confusion: Confusion) -> float:
    """A metric of all labels on their confusions."""
    return values_of_confusion(metric, average, confusion)[0]


@dataclass(frozen=True)
class ValueLimits:
    """Lower and upper limit of a value; whether they are exact, and whether the rows' order has to mean nothing."""

    limits: tuple[float, float]
    exact: bool = False
    is_bet: bool = False


def value_limits_of(rows: RuleRows, error: float) -> ValueLimits:
    """Limits of the rule's value on new rows, each of which fails with probability at most `error`."""
    rule, grouped = rows.rule, rows.groups is not None
    if rule.costs is not None:
        return _of_mean(rows, rows.gained, rows.possible, error)
    metric: Any = rule.metric
    if isinstance(metric, MulticlassAccuracy):
        return _of_mean(rows, _hits(rows, "the accuracy"), np.array([0.0, 1.0]), error)
    if isinstance(metric, BalancedAccuracy):
        rows.one_class("the balanced accuracy")
        return _of_average(rows, Recall(), MACRO, error)
    if isinstance(metric, MulticlassGMean):
        rows.one_class("the G-mean")
        low, high = limits_of_each(Recall(), rows.cells, error / len(rule), grouped)
        if grouped:
            require_no_order(Recall(), rows.cells, rows.what)
        with np.errstate(divide="ignore"):
            lower, upper = (float(np.exp(np.log(side).mean())) for side in (low, high))
        return ValueLimits((lower, upper), is_bet=grouped)
    if isinstance(metric, (MulticlassKappa, MulticlassMCC)):
        return _of_pairs(rows, metric, error)
    average = MICRO if rule.average == WEIGHTED and isinstance(metric, Recall) else rule.average  # they are the same
    if average == MICRO and not grouped and rows.have_one_each:
        lower, upper = _of_mean(rows, _hits(rows, "the value"), np.array([0.0, 1.0]), error).limits
        return ValueLimits((_micro_at(metric, lower, len(rule)), _micro_at(metric, upper, len(rule))), exact=True)
    if average in (MACRO, MICRO):
        return _of_average(rows, metric, average, error)
    return _of_weighted(rows, metric, error)


def _hits(rows: RuleRows, what: str) -> NDArray[np.float64]:
    """Which rows are predicted their class."""
    return np.asarray(rows.one_class(what) == rows.actions[:, 0], dtype=np.float64)


def _micro_at(metric: Any, share: float, labels: int) -> float:
    """The micro average where so many rows are predicted their class: it does not fall in that share."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = float(metric.evaluate(Confusion(share, 1 - share, 1 - share, labels - 2 + share)))
    return 0.0 if math.isnan(found) else found


def _of_average(rows: RuleRows, metric: Any, average: str, error: float) -> ValueLimits:
    grouped = rows.groups is not None
    is_bet = grouped or average != MACRO or terms_of(metric) is not None
    if is_bet:
        _require_no_order(rows)
        require_no_order(metric, rows.cells, rows.what)
    asked = metric, rows.cells, rows.rule.confusion, error, grouped
    if average == MACRO:
        return ValueLimits(macro_limits(*asked), is_bet=is_bet)
    predicted = rows.rule.k * float(rows.cells.rows.max())
    return ValueLimits(micro_limits(*asked, predicted), is_bet=is_bet)


def _of_mean(rows: RuleRows, values: NDArray[np.float64], possible: NDArray[np.float64], error: float) -> ValueLimits:
    """Of the mean of values of rows, of which these are the possible ones."""
    least, most = float(possible[0]), float(possible[-1])
    if least == most:
        return ValueLimits((least, most), exact=True)
    if rows.groups is not None:
        sums = np.bincount(rows.groups, values).astype(np.float64)
        size = np.bincount(rows.groups).astype(np.float64)
        _require_no_order(rows, sums / size)
        reach = float(size.max()) * (most - least)
        lower = least_ratio(sums, size, reach, (least, most), error)
        upper = -least_ratio(-sums, size, reach, (-most, -least), error)
        return ValueLimits((lower, upper), is_bet=True)
    if len(possible) == 2:
        low, high = share_limits(int((values == most).sum()), len(values), error)
        return ValueLimits((least + (most - least) * low, least + (most - least) * high), exact=True)
    if len(possible) == 3:
        return ValueLimits(_of_three(values, possible, error))
    _require_no_order(rows, values)
    return ValueLimits(bounded_mean_limits(values, (least, most), error), is_bet=True)


def _of_three(values: NDArray[np.float64], possible: NDArray[np.float64], error: float) -> tuple[float, float]:
    """Of the mean of independent values, each of which is one of three."""
    least, most = float(possible[0]), float(possible[-1])
    worth, one = (possible - least) / (most - least), np.ones(3)
    counts = (values[:, None] == possible).sum(axis=0).astype(float)
    low, high = three_part_limit(worth, one, counts, error), -three_part_limit(-worth, one, counts, error)
    return least + (most - least) * low, least + (most - least) * high


def _of_weighted(rows: RuleRows, metric: Any, error: float) -> ValueLimits:
    """Of the labels' values, weighted by their positives: half of the error for the values, half for the weights."""
    grouped, labels = rows.groups is not None, rows.cells.labels
    if grouped:
        require_no_order(metric, rows.cells, rows.what)
    low, high = limits_of_each(metric, rows.cells, error / (2 * labels), grouped)
    least, most = _shares(rows, np.arange(labels), PREVALENCE, error / (4 * labels))
    return ValueLimits((_least_mean(low, least, most), -_least_mean(-high, least, most)), is_bet=grouped)


def _least_mean(values: NDArray[np.float64], least: NDArray[np.float64], most: NDArray[np.float64]) -> float:
    """The least mean of values with weights between these: the largest weights for the least values."""
    order = np.argsort(values)
    values, least, most = values[order], least[order], most[order]

    def with_the_first(of_least: NDArray[np.float64], of_most: NDArray[np.float64]) -> NDArray[np.float64]:
        rest = of_least.sum() - np.concatenate(([0.0], np.cumsum(of_least)))
        return np.asarray(np.concatenate(([0.0], np.cumsum(of_most))) + rest)

    sums, weights = with_the_first(values * least, values * most), with_the_first(least, most)
    return float((sums[weights > 0] / weights[weights > 0]).min())


def _of_pairs(rows: RuleRows, metric: Any, error: float) -> ValueLimits:
    """Of kappa and MCC: by the agreement of pairs of rows, the first with the second, the third with the fourth, …"""
    true = rows.one_class(str(metric))
    if rows.groups is not None:
        raise ValueError(
            f"{metric} of groups of rows has no finite-sample limit here: use method='bootstrap', or keep one row of "
            "each group"
        )
    predicted = rows.actions[:, 0]
    _require_no_order(rows, (true == predicted).astype(float))
    number = len(true) // 2
    first, second = slice(0, 2 * number, 2), slice(1, 2 * number, 2)
    right = (true == predicted)[: 2 * number].reshape(-1, 2).mean(axis=1)
    crossed = (true[first] == predicted[second]) / 2 + (true[second] == predicted[first]) / 2
    before = 1 - worth(MulticlassKappa(), MULTICLASS_AVERAGE, rows.rule.confusion)
    wrong, by_chance = 1 - right, 1 - crossed  # kappa is one minus the ratio of their means

    def least(numerators: NDArray[np.float64], denominators: NDArray[np.float64], reference: float) -> float:
        most = FURTHER * max(reference, FEWEST_WRONG)
        return least_ratio(numerators, denominators, most, (0.0, most), error) if number else 0.0

    lower = 1 - 1 / max(least(by_chance, wrong, 1 / max(before, FEWEST_WRONG)), 0.5)
    if isinstance(metric, MulticlassKappa):
        return ValueLimits((lower, 1 - least(wrong, by_chance, before)), is_bet=True)
    return ValueLimits((lower if lower >= 0 else -1.0, _upper_mcc(rows, right - crossed, error)), is_bet=True)


def _upper_mcc(rows: RuleRows, together: NDArray[np.float64], error: float) -> float:
    """Covariance over the root of the variances: half of the error for the first, a quarter for each of the others."""
    number = len(together)
    if not number:
        return 1.0
    covariance = bounded_mean_limits(together, (-1.0, 1.0), error / 2)[1]
    variances = []
    for codes in (rows.one_class("MCC"), rows.actions[:, 0]):
        first, second = codes[: 2 * number].reshape(-1, 2).T
        variances.append(float(share_limits(int(((first != second) | (first < 0)).sum()), number, error / 4)[0]))
    if covariance <= 0:
        return 0.0
    return min(1.0, covariance / math.sqrt(math.prod(variances))) if min(variances) > 0 else 1.0


def _require_no_order(rows: RuleRows, *worths: NDArray[np.float64]) -> None:
    """Refuse rows that come sorted by class, or by what they are worth."""
    of_class = [] if rows.classes is None or rows.groups is not None else [rows.classes.astype(float)]
    if any(is_sorted(one) for one in (*of_class, *worths)):
        raise sorted_clusters(rows.what)


@dataclass(frozen=True, eq=False)
class LabelLimits:
    """A share of each label's rows on new rows; with the confidence, all lower limits hold at once, and all upper ones.

    Attributes
    ----------
    rows
        Of how many rows the share is: those that have the label, for the recall, or are predicted it, for the
        precision.
    value
        The share on the rows that were given; NaN where there are none.
    lower, upper
        Its limits on new rows.
    """

    rows: NDArray[np.float64]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def limits_of_labels(rows: RuleRows, error: float) -> tuple[LabelLimits, LabelLimits]:
    """Recall and precision of all labels that can be predicted, at once: each of the 2m has its part of the error."""
    labels, found = rows.predictable, []
    for share in (RECALL, PRECISION):
        part, whole = (cells_of(rows.confusion)[labels] @ counted for counted in share)
        value = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
        found.append(LabelLimits(whole, value, *_shares(rows, labels, share, error / (2 * max(len(labels), 1)))))
    return found[0], found[1]


def _shares(
    rows: RuleRows, labels: NDArray[np.intp], share: tuple[NDArray[np.float64], NDArray[np.float64]], each: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Limits of a share of some labels' rows: exact where rows are independent."""
    if rows.groups is None or not len(labels):
        part, whole = (cells_of(rows.confusion)[labels] @ counted for counted in share)
        low, high = share_limits(part, whole, each)
        return np.asarray(low), np.asarray(high)
    found = []
    for counts in map(rows.cells.of_label, labels.tolist()):
        has_rows = bool((counts @ share[1]).any())
        found.append(ratio_limits(counts, share, float(counts.sum(axis=1).max()), each) if has_rows else (0.0, 1.0))
    low, high = np.array(found).T
    return low, high


def lacking_labels(rows: RuleRows) -> int:
    """Of how many labels these rows lack a class that the metric needs."""
    metric = rows.rule.metric
    if metric is None or rows.rule.average == MICRO or isinstance(metric, MulticlassAccuracy):
        return 0
    return len(undefined_labels(Recall() if isinstance(metric, MulticlassMetric) else metric, rows.confusion))
