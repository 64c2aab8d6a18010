"""The rules against trying every cut: winners are right, and no entry that hides something is passed over.

`make mutants` changes `core/rules.py` in every way that mutmut knows, and runs these tests on each mutant. Those that
survive are no other rules:

| in | changed | why nothing changes |
|---|---|---|
| `has_classes` | `defined &= totals[:, 0] > 0` to `defined = ...` | nothing was false before |
| `least_tie` | 0 for an infinite best value to 1 | ±inf less any number is ±inf |
| `_records` | ranks as floats; `rank.max() + 1` to `+ 2` | the same order, with wider gaps between samples |
| `_records` | `samples > 1` to `>= 1` | ranks of one sample are in the order of its values |
| `place` | `middle <= upper` to `<`, of numbers and of arrays | where they are equal, both choices are `upper` |
| `_in_dtype` | `"iu"` to `"XXiuXX"`; `astype(np.float64)` to `astype(None)` | no kind is X; None is float64 |
| `_ratio_at` | `samples > 1` to `>= 1` | the coefficients of one sample are plain numbers |
| `_tried_edges` | the sample 0 of the only one to another | it is not asked for |
| `judge` | the ratio that `_tried_edges` gets to None | the metric itself has the same value, more slowly |
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surecut
from surecut.confusion import Confusion
from surecut.constraints import InfeasibleError, parse_constraints
from surecut.core import rules
from surecut.core.entries import Entries
from surecut.core.kernels import BestEdges, SortedColumns
from surecut.core.keys import ordered_keys
from surecut.core.rules import Objective, judge
from surecut.core.settings import using
from surecut.metrics import (
    NOISE,
    CellRatio,
    FBeta,
    FunctionMetric,
    LinearFractional,
    Metric,
    NotMonotoneError,
    Utility,
    WholeRatio,
    get_metric,
)


@pytest.fixture(autouse=True)
def both_judges(kernels_name):
    """Each test in NumPy, and with the compiled judge where that serves."""
    with using(kernels=kernels_name):
        yield


OBJECTIVES = [
    Objective(metric, parse_constraints(constraint), prior)
    for metric, constraint, prior in (
        (get_metric("f1"), None, None),
        (get_metric("accuracy"), None, None),
        (get_metric("mcc"), None, None),
        (get_metric("gmean"), None, None),
        (get_metric("precision"), None, None),
        (get_metric("recall"), "precision>=0.5", None),
        (get_metric("precision"), "predicted_positive_rate<=0.3", None),
        (get_metric("f1"), ["recall>=0.5", "fpr<=0.5"], None),
        (get_metric("am"), "f2<=0.6", None),
        (LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 1, 0, 0), name="tp/fp"), None, None),
        (LinearFractional.from_cells(numerator=(0, 0, 0, 1), denominator=(0, 0, 1, 1), name="npv"), None, None),
        (get_metric("f1"), None, 0.2),
    )
]


def drawn_scores(random):
    """Scores of one to four samples, of few rows each, with both classes in most samples."""
    sizes = random.integers(0, 12, random.integers(1, 5))
    sizes[0] = max(sizes[0], 1)
    rows = random.integers(0, 3, (sizes.sum(), 2))
    rows[:, 1] *= random.random(len(rows)) < random.choice([0.3, 1.0])
    rows[rows.sum(axis=1) == 0, int(random.integers(2))] = 1
    keys = np.concatenate([np.sort(random.choice(100, size, replace=False))[::-1] for size in sizes])
    keys = (10 * keys + 1000).astype(np.uint64)
    weight = rows
    if random.random() < 0.3:
        weight = rows * random.choice([0.25, 2.0])
    return Entries.scores(keys, rows, weight, starts=np.concatenate(([0], np.cumsum(sizes))))


def coarsened(scores, random):
    """The scores at a random resolution; ends of some entries are no scores."""
    is_first = random.random(len(scores)) < random.choice([0.2, 0.5, 0.9])
    is_first[scores.starts[:-1][np.diff(scores.starts) > 0]] = True
    entries = scores.merged(np.flatnonzero(is_first))
    widened = random.random(len(entries)) < 0.4
    below, above = (random.integers(0, 4, len(entries)).astype(np.uint64) * widened for _ in range(2))
    low, high = entries.low - below, entries.high + above
    return replace(entries, low=low, high=high, exact=~widened | (low == high)), np.flatnonzero(is_first)


def tried(scores, objective):
    """What each cut of each sample is worth, one by one; −inf where it may not be chosen."""
    values = []
    for own in np.split(scores.weight, scores.starts[1:-1]):
        negatives, positives = own.sum(axis=0)
        lacks = (objective.metric.needs_positives and not positives) or (
            objective.metric.needs_negatives and not negatives
        )
        values.append([])
        for accepted in range(len(own) + 1):
            fp, tp = own[:accepted].sum(axis=0)
            confusion = Confusion(tp=tp, fp=fp, fn=positives - tp, tn=negatives - fp)
            if objective.prior is not None and positives and negatives:
                confusion = confusion.at_prior(objective.prior)
            with np.errstate(invalid="ignore", divide="ignore"):
                value = float(objective.metric.evaluate(confusion))
                met = all(bool(one.is_met(confusion)) for one in objective.constraints)
            values[-1].append(value if met and not lacks and not math.isnan(value) else -math.inf)
    return values


def mistakes(scores, entries, firsts, objective):
    """What is wrong with the verdict on some entries."""
    verdict = judge(entries, objective)
    ends = np.append(firsts[1:], len(scores))
    for sample, values in enumerate(tried(scores, objective)):
        start, own = scores.starts[sample], range(entries.starts[sample], entries.starts[sample + 1])
        edges = [0, *(int(ends[entry] - start) for entry in own)]
        best = max(values[edge] for edge in edges)
        slack = 1e-12 * abs(best) if math.isfinite(best) else 0.0
        rounding = 0.0 if objective.prior is None and not entries.weighted else 1e-14
        winner = next(i for i, edge in enumerate(edges) if values[edge] >= best - slack - rounding)
        if not (verdict.best[sample] == best or abs(verdict.best[sample] - best) <= slack + rounding):
            yield "best", sample
        if verdict.winner[sample] != entries.edge_starts[sample] + winner:
            yield "winner", sample
        for position, entry in enumerate(own):
            hidden = values[edges[position] + 1 : edges[position + 1]]
            better = any(value > best + 2 * slack + rounding for value in hidden)
            ties = any(value >= best - slack / 2 and value > -math.inf for value in hidden)
            if (better or (ties and position < winner)) and not verdict.unresolved[entry]:
                yield "hidden", sample
            if better and not verdict.bound[sample] >= max(hidden) - slack - rounding:
                yield "bound", sample
            beside = position in (winner - 1, winner)
            if beside and best > -math.inf and not entries.exact[entry] and not verdict.unresolved[entry]:
                yield "ends", sample


def all_mistakes(seed, cases):
    random = np.random.default_rng(seed)
    found = set()
    for _ in range(cases):
        scores = drawn_scores(random)
        entries, firsts = coarsened(scores, random)
        for objective in OBJECTIVES:
            if objective.prior is not None and (scores.totals == 0).any():
                continue
            found |= {(what, str(objective.metric)) for what, _ in mistakes(scores, entries, firsts, objective)}
    return found


@pytest.mark.parametrize("seed", range(2))
def test_the_verdict_is_that_of_trying_every_cut(seed):
    assert not all_mistakes(seed, 100)


# Each of these is noticed


def kinds(cases=60):
    return {what for what, _ in all_mistakes(0, cases)}


def test_a_bound_that_is_too_small_is_noticed(monkeypatch):
    bounds = Objective.bounds
    monkeypatch.setattr(Objective, "bounds", lambda *given: bounds(*given) - 0.05)
    assert "hidden" in kinds()


def test_a_bound_at_the_edges_alone_is_noticed(monkeypatch):
    def at_edges(self, before, after):
        return np.maximum(self.values(before), self.values(after))

    monkeypatch.setattr(Objective, "bounds", at_edges)
    assert "hidden" in kinds()


def test_ties_that_are_too_wide_are_noticed(monkeypatch):
    least_tie = rules.least_tie
    monkeypatch.setattr(rules, "least_tie", lambda *given: least_tie(*given) - 0.1)
    assert "winner" in kinds()


def test_the_lowest_of_ties_is_noticed(monkeypatch):
    def lowest(tied, values, tried):
        ends = np.append(tried.first[1:], len(values))
        return tied[np.searchsorted(tied, ends) - 1]

    monkeypatch.setattr(rules, "_records", lowest)
    assert "ends" in kinds()


# Scores alone


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_unresolved_where_every_entry_is_a_score(seed):
    random = np.random.default_rng(seed)
    for _ in range(30):
        scores = drawn_scores(random)
        for objective in OBJECTIVES[:-1]:
            assert not judge(scores, objective).unresolved.any()


# The verdict, rule by rule: one edge and one entry at a time, as the module's docstring has it


def cells(tp, fp, totals):
    return Confusion(tp=tp, fp=fp, fn=totals[1] - tp, tn=totals[0] - fp)


def seen(objective, confusion):
    return confusion if objective.prior is None else confusion.at_prior(objective.prior)


def worth(objective, confusion):
    confusion = seen(objective, confusion)
    value = float(objective.metric.evaluate(confusion))
    met = all(bool(one.is_met(confusion)) for one in objective.constraints)
    return value if met and not math.isnan(value) else -math.inf


def bound_of(objective, before, after):
    best = Confusion(tp=after.tp, fp=before.fp, fn=after.fn, tn=before.tn)
    worst = Confusion(tp=before.tp, fp=after.fp, fn=before.fn, tn=after.tn)
    corners = [seen(objective, corner) for corner in (before, after, best, worst)]
    if not all(bool(one.is_met_by_any(corners)) for one in objective.constraints):
        return -math.inf
    value = float(objective.metric.evaluate(corners[2]))
    return math.inf if math.isnan(value) else value


def verdict_on(entries, objective):
    """Winners, what is unresolved, and bounds, by loops."""
    winners, unresolved, bounds = [], set(), []
    rounding = np.broadcast_to(objective.rounding(entries.totals, entries.weighted), entries.samples)
    for sample in range(entries.samples):
        own = range(entries.starts[sample], entries.starts[sample + 1])
        totals = entries.weight[own.start : own.stop].sum(axis=0)
        metric = objective.metric
        lacks = (metric.needs_negatives and not totals[0] > 0) or (metric.needs_positives and not totals[1] > 0)
        above = [entries.weight[own.start : own.start + taken].sum(axis=0) for taken in range(len(own) + 1)]
        edges = [cells(tp, fp, totals) for fp, tp in above]
        values = [-math.inf if lacks else worth(objective, edge) for edge in edges]
        best = max(values)
        least = best if math.isinf(best) else best - (1e-12 * abs(best) + rounding[sample])
        hits = []
        for i, value in enumerate(values):
            if value >= least and (not hits or value > values[hits[-1]]):
                hits.append(i)
        winners.append(int(entries.edge_starts[sample]) + hits[0])
        found = [-math.inf]
        for i, entry in enumerate(own):
            if entries.low[entry] < entries.high[entry] and entries.rows[entry].sum() > 1 and not lacks:
                bound = bound_of(objective, edges[i], edges[i + 1])
                if bound >= least if i + 1 <= hits[-1] else bound > best:
                    unresolved.add(entry)
                    found.append(bound)
            if best > -math.inf and not entries.exact[entry] and (i in hits or i + 1 in hits):
                unresolved.add(entry)
        bounds.append(max(found))
    return winners, unresolved, bounds


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_is_that_of_the_rules_one_by_one(seed):
    random = np.random.default_rng([9, seed])
    for _ in range(40):
        scores = drawn_scores(random)
        if scores.weighted:
            scores = Entries.scores(scores.low, scores.rows, scores.rows * 0.25, starts=scores.starts)
        entries, _ = coarsened(scores, random)
        for objective in OBJECTIVES:
            if objective.prior is None or not (scores.totals == 0).any():
                winners, unresolved, bounds = verdict_on(entries, objective)
                verdict = judge(entries, objective)
                assert verdict.winner.tolist() == winners
                assert set(np.flatnonzero(verdict.unresolved).tolist()) == unresolved
                assert verdict.unresolved.dtype == bool
                np.testing.assert_allclose(verdict.bound, bounds, rtol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_edges_without_positives_above_them_need_no_look(seed, monkeypatch):
    """With few positives only some edges are evaluated; the verdict is the same."""
    random = np.random.default_rng([5, seed])
    asked = []
    metric_values = Objective.metric_values
    monkeypatch.setattr(
        Objective, "metric_values", lambda self, c: asked.append(np.size(c.tp)) or metric_values(self, c)
    )
    at = WholeRatio.at
    monkeypatch.setattr(WholeRatio, "at", lambda self, tp, fp: asked.append(np.size(tp)) or at(self, tp, fp))
    for _ in range(60):
        size = int(random.integers(9, 30))
        rows = np.column_stack((random.integers(1, 4, size), random.integers(1, 3, size)))
        rows[random.random(size) < random.choice([0.4, 0.8]), 1] = 0
        keys = np.sort(random.choice(1000, size, replace=False))[::-1].astype(np.uint64)
        starts = np.array([0, size]) if random.random() < 0.5 else np.array([0, size // 3, size])
        scores = Entries.scores(keys, rows, rows, starts=starts)
        for objective in OBJECTIVES[:-1]:
            expected = judge(scores, objective)
            with monkeypatch.context() as few:
                few.setattr(rules, "SPARSE_FROM", 8)
                asked.clear()
                with using(kernels="numpy"):
                    found = judge(scores, objective)
            for mine, theirs in zip(found._replace(accepted=None), expected._replace(accepted=None), strict=True):
                np.testing.assert_array_equal(mine, theirs)
            positives = int(np.count_nonzero(rows[:, 1]))
            fewer = 2 * positives < size and not objective.constraints
            assert asked[0] == (positives + scores.samples if fewer else size + scores.samples)


def test_few_entries_and_those_with_positives_are_all_evaluated(monkeypatch):
    keys, rows = np.array([40, 30, 20, 10], dtype=np.uint64), np.array([[1, 0], [1, 1], [1, 0], [1, 0]])
    scores, objective = Entries.scores(keys, rows, rows), Objective(get_metric("f1"))
    complete = objective.values(scores.edges)

    def tried_edges(entries, objective):
        found = rules._tried_edges(entries, objective, objective.whole_ratio(entries))
        return found.edge(np.arange(len(found.values))).tolist(), found.values.tolist(), found.first.tolist()

    for least, edges in ((3, [0, 2]), (4, [0, 1, 2, 3, 4])):
        monkeypatch.setattr(rules, "SPARSE_FROM", least)
        assert tried_edges(scores, objective) == (edges, complete[edges].tolist(), [0])
    monkeypatch.setattr(rules, "SPARSE_FROM", 3)
    worthless = Objective(Bare(lambda confusion: np.full(np.shape(confusion.tp), -np.inf)))
    assert tried_edges(scores, worthless) == ([0, 2], [rules.LOWEST] * 2, [0])
    by_function = Objective(FunctionMetric(lambda confusion: confusion.fp))
    assert tried_edges(scores, by_function) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0])
    several = Entries.scores(keys, rows, rows, starts=np.array([0, 1, 3, 4]))
    assert tried_edges(several, Objective(get_metric("accuracy")))[::2] == ([0, 2, 3, 5], [0, 1, 3])
    rows = np.array([[1, 1], [1, 1], [1, 0], [1, 0]])
    half = Entries.scores(keys, rows, rows)
    assert tried_edges(half, objective) == ([0, 1, 2, 3, 4], objective.values(half.edges).tolist(), [0])


def test_many_cuts_are_evaluated_piece_by_piece(monkeypatch):
    random = np.random.default_rng(0)
    tp, fp = np.sort(random.integers(0, 50, (2, 20)), axis=1)
    edges = Confusion(tp=tp, fp=fp, fn=50 - tp, tn=50 - fp)
    objective = Objective(get_metric("f1"), parse_constraints("recall>=0.5"))
    expected = objective.values(edges)
    sizes = []
    metric_values = Objective.metric_values
    monkeypatch.setattr(
        Objective, "metric_values", lambda self, c: sizes.append(np.size(c.tp)) or metric_values(self, c)
    )
    for at_once, asked in ((7, [7, 7, 6]), (20, [20]), (19, [19, 1])):
        monkeypatch.setattr(rules, "AT_ONCE", at_once)
        sizes.clear()
        np.testing.assert_array_equal(objective.values(edges), expected)
        assert sizes == asked


def test_ratios_of_many_cuts_are_evaluated_piece_by_piece(monkeypatch):
    random = np.random.default_rng(0)
    rows, keys = random.integers(0, 5, (20, 2)), np.arange(40, 20, -1).astype(np.uint64)
    for starts in ([0, 20], [0, 7, 9, 20]):
        entries = Entries.scores(keys, rows, rows, starts=np.array(starts))
        objective = Objective(get_metric("am"))
        with using(kernels="numpy"):
            expected = judge(entries, objective)
            monkeypatch.setattr(rules, "AT_ONCE", 6)
            found = judge(entries, objective)
        monkeypatch.undo()
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


# What is evaluated


@dataclass(frozen=True)
class Bare(Metric):
    """A metric as someone may write it: no care for divisions by zero."""

    function: Any
    name = "bare"

    def evaluate(self, confusion):
        return self.function(confusion)


RATIO = Bare(lambda confusion: np.divide(confusion.tp, confusion.fp))
SPREAD = Utility(tp=10, fp=-3, fn=-7, tn=2)
TP_OVER_FP = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 1, 0, 0), name="tp/fp")


def test_a_metric_may_divide_by_zero():
    edges = Confusion(tp=np.array([0, 1, 1]), fp=np.array([0, 0, 1]), fn=np.array([1, 0, 0]), tn=np.array([1, 1, 0]))
    objective = Objective(RATIO)
    np.testing.assert_array_equal(objective.metric_values(edges), [np.nan, np.inf, 1.0])
    assert objective.values(edges).tolist() == [-np.inf, np.inf, 1.0]
    np.testing.assert_array_equal(objective.bounds(edges[:2], edges[1:]), [np.inf, np.inf])
    absent = rules.rounding_of(Bare(lambda c: np.divide(c.tp - c.tn, c.fp + c.fn)), np.array([0.0, 0.25, 1.0]))
    np.testing.assert_allclose(absent, [0.0, 3 * NOISE, 0.0], rtol=1e-13)
    np.testing.assert_allclose(rules.rounding_of(RATIO, np.array([0.0, 0.5])), [0.0, NOISE], rtol=1e-13)


def test_values_are_floats():
    counted = Objective(Bare(lambda confusion: [1, 2]))
    edges = Confusion(tp=np.array([0, 1]), fp=np.array([0, 0]), fn=np.array([1, 0]), tn=np.array([1, 1]))
    assert counted.metric_values(edges).dtype == np.float64
    assert rules.rounding_of(Bare(lambda c: ["0.5"] * np.size(c.tp)), np.array([0.5])) == NOISE / 2


def test_what_no_cut_of_a_bin_can_meet_is_bounded_by_nothing():
    before, after = (
        Confusion(tp=np.array([n]), fp=np.array([n]), fn=np.array([9 - n]), tn=np.array([9 - n])) for n in (1, 2)
    )
    for constraint, bound in (("recall>=0.9", -np.inf), ("recall>=0.2", 2 / 9)):
        assert Objective(get_metric("recall"), parse_constraints(constraint)).bounds(before, after).tolist() == [bound]


def test_values_are_off_by_the_size_of_the_extremes():
    prior = np.array([0.1, 0.5, 0.9])
    corners = np.array([10 * prior + 2 * (1 - prior), -7 * prior + 2 * (1 - prior)])
    corners = np.concatenate((corners, [10 * prior - 3 * (1 - prior), -7 * prior - 3 * (1 - prior)]))
    np.testing.assert_allclose(rules.rounding_of(SPREAD, prior), NOISE * np.abs(corners).max(axis=0), rtol=1e-13)
    for low in (np.array([0.1, 0.2]), np.array([0.2])):  # what is infinite or undefined at a corner says nothing
        np.testing.assert_allclose(rules.rounding_of(TP_OVER_FP, low), NOISE * low / (1 - low), rtol=1e-13)
    for of_cell in ("tp", "fp", "fn", "tn"):
        share = prior if of_cell in ("tp", "fn") else 1 - prior
        single = Bare(lambda c, of_cell=of_cell: getattr(c, of_cell))
        np.testing.assert_allclose(rules.rounding_of(single, prior), NOISE * share, rtol=1e-13)


def test_counts_are_exact_and_weights_and_given_priors_are_not():
    totals = np.array([[3, 1], [2, 2], [0, 0]])
    assert Objective(SPREAD).rounding(totals, weighted=False) == 0.0
    shares = rules.rounding_of(SPREAD, np.array([0.25, 0.5]))
    np.testing.assert_array_equal(Objective(SPREAD).rounding(totals, weighted=True)[:2], shares)
    given = rules.rounding_of(SPREAD, np.full(3, 0.1))
    for weighted in (False, True):
        np.testing.assert_array_equal(Objective(SPREAD, prior=0.1).rounding(totals, weighted=weighted), given)


def test_classes_that_a_metric_needs():
    totals = np.array([[2, 1], [0.5, 0.5], [0, 3], [3, 0], [0, 0]])
    for name, expected in (
        ("accuracy", [True] * 5),
        ("f1", [True, True, True, False, False]),
        ("specificity", [True, True, False, True, False]),
        ("am", [True, True, False, False, False]),
    ):
        assert Objective(get_metric(name)).has_classes(totals).tolist() == expected


GROWS = LinearFractional.from_cells(numerator=(0, 3, 0, 1), denominator=(1, 1, 1, 1), name="grows")
BELOW_HALF = LinearFractional(0, lambda prior: prior - 0.5, 0, 1, 0, 0, name="below_half")


def test_one_sample_is_checked():
    for totals in ([[3, 2]], [[0.25, 0.125]]):
        Objective(get_metric("f1")).check(np.array(totals))
        with pytest.raises(NotMonotoneError, match="grows must not increase in FP"):
            Objective(GROWS).check(np.array(totals))
    with pytest.raises(ValueError, match="f1 is undefined without rows of the positive class"):
        Objective(get_metric("f1")).check(np.array([[3, 0]]))
    with pytest.raises(ValueError, match="specificity is undefined without rows of the negative class"):
        Objective(get_metric("specificity")).check(np.array([[0, 3]]))
    Objective(BELOW_HALF).check(np.array([[3, 1]]))
    with pytest.raises(NotMonotoneError, match=r"P = 0\.75"):
        Objective(BELOW_HALF).check(np.array([[1, 3]]))
    Objective(BELOW_HALF, prior=0.4).check(np.array([[1, 3]]))
    with pytest.raises(NotMonotoneError, match=r"P = 0\.6"):
        Objective(BELOW_HALF, prior=0.6).check(np.array([[3, 1]]))


def test_many_samples_are_checked_where_they_have_the_classes():
    totals = np.array([[3, 1], [1, 3]])
    Objective(get_metric("f1")).check_each(totals)
    Objective(BELOW_HALF).check_each(totals[:1])
    with pytest.raises(NotMonotoneError, match=r"P = 0\.75"):
        Objective(BELOW_HALF).check_each(totals)

    @dataclass(frozen=True)
    class Needy(CellRatio):
        needs_positives = True

    needy = Needy((0, 3, 0, 1), (1, 1, 1, 1), name="needy")
    Objective(needy).check_each(np.array([[3, 0], [2, 0]]))
    with pytest.raises(NotMonotoneError, match=r"P = 0\.25"):
        Objective(needy).check_each(np.array([[3, 0], [3, 1]]))


# Ties


def test_what_ties_with_the_best():
    assert float(rules.least_tie(0.5)) == 0.5 - 0.5e-12
    assert float(rules.least_tie(-2.0)) == -2.0 - 2e-12
    assert float(rules.least_tie(0.0)) == 0.0
    assert float(rules.least_tie(0.5, 0.25)) == 0.25 - 0.5e-12
    assert rules.least_tie(np.array([np.inf, -np.inf, 1.0]), 0.5).tolist() == [np.inf, -np.inf, 0.5 - 1e-12]


def test_the_first_of_ties_is_the_best():
    values = np.array([[0.1, 0.3, 0.3 + 1e-15, 0.2], [0.5, -np.inf, 0.5, 0.6], [-np.inf, -np.inf, -np.inf, -np.inf]])
    assert rules.first_best(values).tolist() == [1, 3, 0]
    assert rules.first_best(values, 0.2).tolist() == [0, 0, 0]
    assert int(rules.first_best(np.array([0.1, np.inf, np.inf]))) == 1
    assert int(rules.first_best(np.array([1.0, 1.0 + 1e-11]))) == 1


def test_numbers_that_are_equal_but_for_rounding():
    assert rules.are_equal(1.0, 1.0 + 5e-13, 0.0) is True
    assert rules.are_equal(1.0, 1.0 + 5e-12, 0.0) is False
    assert rules.are_equal(0.0, 5e-13, 1.0)
    assert not rules.are_equal(0.0, 5e-13, 0.1)
    assert not rules.are_equal(0.0, 5e-12, 1.0)


def test_weights_that_add_up_to_nothing_choose_no_cut():
    """0.1 + 0.2 − 0.3 is 5e-17, which is rounding beside a metric that reaches 0.5."""
    weight = np.array([[0.3, 0], [0, 0.1], [0, 0.2]])
    rows = (weight > 0).astype(np.int64)
    keys = np.array([30, 20, 10], dtype=np.uint64)
    objective = Objective(Bare(lambda c: (c.tp - c.fp) / (c.tp + c.fp + c.fn + c.tn)))
    verdict = judge(Entries.scores(keys, rows, weight), objective)
    assert (verdict.winner.tolist(), verdict.value.tolist()) == ([0], [0.0])
    assert verdict.best[0] > 0
    exactly = judge(Entries.scores(keys, rows, np.array([[3, 0], [0, 1], [0, 3]])), objective)
    assert exactly.winner.tolist() == [3]
    assert exactly.value.tolist() == [1 / 7]


def test_a_value_of_minus_infinity_is_chosen_where_there_is_no_other():
    keys, rows = np.array([20, 10], dtype=np.uint64), np.array([[1, 0], [0, 1]])
    worthless = Objective(FunctionMetric(lambda confusion: np.where(confusion.tp > 0, np.nan, -np.inf)))
    verdict = judge(Entries.scores(keys, rows, rows), worthless)
    assert verdict.best.tolist() == [rules.LOWEST]
    assert (verdict.winner.tolist(), verdict.value.tolist()) == ([0], [-np.inf])
    undefined = Objective(FunctionMetric(lambda confusion: np.full(np.shape(confusion.tp), np.nan)))
    assert judge(Entries.scores(keys, rows, rows), undefined).best.tolist() == [-np.inf]


def test_above_an_infinite_value_there_may_be_another():
    low, high = np.array([20, 5], dtype=np.uint64), np.array([29, 9], dtype=np.uint64)
    rows = np.array([[0, 2], [2, 0]])
    verdict = judge(Entries.of(low, high, rows, rows, exact=True), Objective(RATIO))
    assert (verdict.best.tolist(), verdict.winner.tolist()) == ([np.inf], [1])
    assert verdict.unresolved.tolist() == [True, False]


def test_of_ties_those_count_that_no_higher_one_equals():
    values = np.array([0.5, 0.7, 0.6, 0.7, 0.8, 0.8, 0.3, 0.9])

    def records(tied, values, *first):
        return rules._records(np.array(tied), values, rules.Tried(values, np.array(first))).tolist()

    assert records(range(8), values, 0) == [0, 1, 4, 7]
    assert records([2, 3, 6], values, 0) == [2, 3]
    assert records(range(8), values, 0, 4) == [0, 1, 4, 7]
    assert records(range(8), values[::-1], 0, 4) == [0, 4]
    assert records([1, 4, 5], values, 0, 4) == [1, 4]
    assert records([3, 5], values, 0, 4) == [3, 5]
    assert records([1, 4, 5, 7], values, 0, 4, 6) == [1, 4, 7]


# Where a threshold is put

FLOAT = np.dtype(np.float64)


def test_a_threshold_stands_midway():
    assert rules.place(0.25, 0.75, FLOAT) == 0.5
    assert rules.place(-np.inf, 0.5, FLOAT) == 0.5
    assert rules.place(0.5, np.inf, FLOAT) == np.inf
    assert rules.place(-np.inf, np.inf, FLOAT) == np.inf
    largest = float(np.finfo(np.float64).max)
    assert rules.place(largest / 2, largest, FLOAT) == 0.75 * largest
    assert rules.place(-largest, largest, FLOAT) == 0.0
    above = float(np.nextafter(1.0, 2.0))
    assert rules.place(1.0, above, FLOAT) == above
    assert rules.place(float(np.nextafter(1.0, 0.0)), 1.0, FLOAT) == 1.0


def test_a_threshold_is_of_the_scores_own_dtype():
    single, half = np.dtype(np.float32), np.dtype(np.float16)
    lower, upper = float(np.float32(1.0)), float(np.nextafter(np.float32(1.0), np.float32(2.0)))
    assert rules.place(lower, upper, single) == upper
    assert rules.place(0.1, 0.4, single) == float(np.float32(0.25))
    assert rules.place(1.0, 1.0 + 2.0**-9, half) == 1.0 + 2.0**-10
    assert rules.place(0.0, 2.0**16, half) == 2.0**15
    assert rules.place(60000.0, 1e6, half) == 1e6  # the middle is beyond the dtype
    for kind in (np.int64, np.uint8):
        whole = np.dtype(kind)
        assert [rules.place(low, 4, whole) for low in (0, 1, 2, 3)] == [2, 3, 3, 4]
    several = rules.place(np.array([0.0, -np.inf, 2.0, -np.inf]), np.array([1.0, 3.0, np.inf, np.inf]), FLOAT)
    assert several.tolist() == [0.5, 3.0, np.inf, np.inf]
    assert rules.place(np.array([lower]), np.array([upper]), single).tolist() == [upper]
    assert rules.place(np.array([0, 3]), np.array([4, 4]), np.dtype(np.int64)).tolist() == [2, 4]


def test_cuts_stand_between_the_scores_beside_them():
    scores = np.array([0.75, 0.5, 0.25, 3.0, 2.0])
    rows = np.array([[0, 1], [1, 0], [0, 1], [1, 1], [2, 0]])
    entries = Entries.scores(ordered_keys(scores), rows, rows, starts=np.array([0, 3, 5]))
    for winner, lower, upper, thresholds, tp in (
        ([0, 4], [0.75, 3.0], [np.inf, np.inf], [np.inf, np.inf], [0, 0]),
        ([1, 5], [0.5, 2.0], [0.75, 3.0], [0.625, 2.5], [1, 1]),
        ([2, 6], [0.25, -np.inf], [0.5, 2.0], [0.375, 2.0], [1, 1]),
        ([3, 4], [-np.inf, 3.0], [0.25, np.inf], [0.25, np.inf], [2, 0]),
    ):
        placed = rules.placed(entries, np.array(winner), FLOAT)
        assert (placed.lower.tolist(), placed.upper.tolist()) == (lower, upper)
        assert (placed.thresholds.tolist(), placed.confusion.tp.tolist()) == (thresholds, tp)
    bins = Entries.of(
        ordered_keys(scores - 0.1), ordered_keys(scores), rows, rows, starts=np.array([0, 3, 5]), exact=True
    )
    placed = rules.placed(bins, np.array([1, 5]), np.dtype(np.float32))
    np.testing.assert_array_equal(placed.upper, scores[[0, 3]] - 0.1)
    assert placed.lower.tolist() == [0.5, 2.0]
    assert placed.thresholds.tolist() == [float(np.float32(0.575)), float(np.float32(2.45))]


def test_the_only_cut_stands_where_those_of_many_samples_do():
    scores, rows = np.array([0.75, 0.5, 0.25]), np.array([[0, 1], [1, 0], [0, 2]])
    for weight in (rows, rows * 0.5):
        entries = Entries.scores(ordered_keys(scores), rows, weight, absent=np.array([[1, 2]], dtype=weight.dtype))
        for edge in range(4):
            one, many = rules.placed_one(entries, edge, FLOAT), rules.placed(entries, np.array([edge]), FLOAT)
            assert isinstance(one.thresholds, float)
            assert (one.thresholds, one.lower, one.upper) == (many.thresholds[0], many.lower[0], many.upper[0])
            assert one.confusion == many.confusion[0]
            assert isinstance(one.confusion.tp, int if weight is rows else float)


# Which judge


def test_ratios_of_counts_are_judged_as_such():
    @dataclass(frozen=True)
    class Doubled(type(get_metric("f1"))):
        def evaluate(self, confusion):
            return 2 * super().evaluate(confusion)

    scores, rows = np.array([0.75, 0.5, 0.25]), np.array([[0, 1], [1, 0], [0, 2]])
    one = Entries.scores(ordered_keys(scores), rows, rows)
    two = Entries.scores(ordered_keys(scores), rows, rows, starts=np.array([0, 2, 3]))
    f1 = get_metric("f1")
    assert Objective(f1).whole_ratio(one) == WholeRatio((0, 2, 0), (3, 1, 1))
    (n0, n1, n2), (d0, d1, d2) = Objective(f1).whole_ratio(two)
    assert (n0.tolist(), n1, n2, d0.tolist(), d1, d2) == ([0, 0], 2, 0, [1, 2], 1, 1)
    weighted = (Entries.scores(ordered_keys(scores), rows, weight) for weight in (rows * 0.5, 2 * rows))
    many = Entries.scores(ordered_keys(scores), rows << 30, rows << 30)
    large = Entries.scores(ordered_keys(scores), rows << 30, rows << 30, starts=np.array([0, 2, 3]))
    assert [Objective(f1).whole_ratio(entries) for entries in (*weighted, many, large)] == [None] * 4
    others = (
        Objective(f1, parse_constraints("recall>=0.1")),
        Objective(f1, (), 0.3),
        Objective(get_metric("mcc")),
        Objective(FunctionMetric(lambda confusion: confusion.tp)),
        Objective(Doubled()),
    )
    assert [objective.whole_ratio(entries) for objective in others for entries in (one, two)] == [None] * 10
    assert judge(one, others[-1]).value[0] == 2 * judge(one, Objective(f1)).value[0]


def test_the_compiled_judge_is_asked_where_it_is_loaded(kernels_name, monkeypatch):
    """Those of the compiled one, if it is there and ready; else those of NumPy."""
    scores, rows = np.array([0.75, 0.5, 0.25]), np.array([[0, 1], [1, 0], [0, 2]])
    entries, asked, ratios = Entries.scores(ordered_keys(scores), rows, rows), [], []
    at = WholeRatio.at
    monkeypatch.setattr(WholeRatio, "at", lambda self, tp, fp: ratios.append(self) or at(self, tp, fp))

    def judged(*given):
        asked.append(given[2:])
        return answer

    monkeypatch.setattr(rules, "compiled_judge", lambda sizes: judged)
    answer = (*(np.zeros(1),) * 5, True)
    assert judge(entries, Objective(get_metric("am"))) is not None
    assert asked == [((True, True), rules.TIE, kernels_name == "compiled")]
    assert judge(entries, Objective(get_metric("f1"))).best is answer[0]
    assert asked[-1][0] == (False, True)
    assert not ratios
    answer = None
    assert judge(entries, Objective(get_metric("f1"))).value[0] == pytest.approx(6 / 7)
    assert len(ratios) == 1
    assert judge(entries, Objective(get_metric("mcc"))).winner[0] in (1, 3)
    assert len(asked) == 3


def test_the_compiled_judge_counts_what_the_winner_accepts():
    """The same rows as those above the edge, for one sample and for several."""
    pytest.importorskip("numba")
    random = np.random.default_rng(8)
    for _ in range(50):
        rows = random.integers(0, 3, (9, 2))
        starts = np.array([0, 9]) if random.random() < 0.5 else np.array([0, 4, 9])
        entries = Entries.scores(np.arange(90, 0, -10, dtype=np.uint64), rows, rows, starts=starts)
        with using(kernels="compiled"):
            verdict = judge(entries, Objective(get_metric("f1")))
        fp, tp = entries.accepted_at(verdict.winner, np.arange(entries.samples))
        np.testing.assert_array_equal(verdict.accepted, (fp, tp))
        if entries.samples == 1:
            given = rules.placed_one(entries, int(verdict.winner[0]), FLOAT, (int(fp[0]), int(tp[0])))
            counted = rules.placed_one(entries, int(verdict.winner[0]), FLOAT)
            assert repr(given) == repr(counted)


def test_an_error_counts_the_rows_at_which_a_metric_is_undefined():
    undefined = Objective(FunctionMetric(lambda confusion: np.full(np.shape(confusion.tp), np.nan), name="nothing"))
    edges = Confusion(tp=np.zeros(2), fp=np.zeros(2), fn=np.ones(2), tn=np.zeros(2))
    said = {rows: str(rules.infeasible(undefined, edges, rows)) for rows in (1, 2, 1234)}
    assert said == {
        1: "nothing is undefined at every cut of this 1 row",
        2: "nothing is undefined at every cut of these 2 rows",
        1234: "nothing is undefined at every cut of these 1,234 rows",
    }


@pytest.mark.parametrize("tie", [0.0, 0.05, 0.2, 0.6])
def test_the_compiled_judge_takes_the_first_of_many_that_tie(tie):
    """Also where each of some edges ties with the next one, and the first of them not with the last."""
    pytest.importorskip("numba")
    from surecut.core.compiled import judge as compiled

    random = np.random.default_rng(12)
    for _ in range(300):
        rows = random.integers(0, 3, (12, 2))
        entries = Entries.scores(np.arange(120, 0, -10, dtype=np.uint64), rows, rows)
        for name in ("f1", "accuracy"):
            objective = Objective(get_metric(name))
            values = objective.values(entries.edges)
            if not objective.has_classes(entries.totals)[0]:
                continue
            best, winner, value, *_, accepted = compiled(
                entries, objective.whole_ratio(entries), (False, name == "f1"), tie, True
            )
            expected = int((values >= values.max() - tie * abs(values.max())).argmax())
            assert (best[0], winner[0], value[0]) == (values.max(), expected, values[expected])
            assert accepted[:, 0].tolist() == rows[:expected].sum(axis=0).tolist()


def test_a_verdict_is_final_if_no_entry_is_unresolved(kernels_name):
    random, seen = np.random.default_rng(11), set()
    for _ in range(60):
        rows = random.integers(0, 4, (6, 2))
        rows[:, 0] += rows.sum(axis=1) == 0
        low = np.arange(60, 0, -10, dtype=np.uint64)
        entries = Entries.of(low, low + random.integers(0, 9, 6).astype(np.uint64), rows, rows, exact=True)
        for objective in (Objective(get_metric("f1")), Objective(get_metric("mcc"))):
            with using(kernels=kernels_name):
                verdict = judge(entries, objective)
            assert verdict.is_final is (not verdict.unresolved.any())
            seen.add(verdict.is_final)
    assert seen == {True, False}


def test_a_cut_is_placed_with_the_rows_that_were_counted():
    entries = Entries.scores(np.array([30, 20, 10], dtype=np.uint64), *[np.array([[0, 1], [1, 0], [1, 1]])] * 2)
    confusion = rules.placed_one(entries, 1, FLOAT, (2, 0)).confusion  # not those of the entries
    assert (confusion.tp, confusion.fp, confusion.fn, confusion.tn) == (0, 2, 2, 0)


@dataclass
class ColumnKernels:
    """What `placed_columns` asks for, and what it gets."""

    found: Any
    asked: Any = None

    def best_edges(self, *given: Any) -> Any:
        self.asked = given
        return self.found


def test_sorted_columns_are_placed_where_kernels_find_the_best_edge():
    """Nothing is rejected below the lowest score, or accepted above the highest."""
    totals = np.array([[2, 1], [1, 2], [3, 0], [2, 1]])
    nothing = np.zeros(4, dtype=np.uint64)
    columns = SortedColumns(np.zeros((4, 3), dtype=np.uint64), nothing, nothing, nothing, totals[:, 1], 0, nothing)
    found = BestEdges(
        below=np.array([1, 0, 3, 3]),
        tp=np.array([1, 2, 0, 0]),
        value=np.array([0.5, 0.8, -np.inf, 0.0]),
        lower=np.array([0.25, 0.125, 1.0, 2.0]),
        upper=np.array([0.75, 0.25, 1.0, 2.0]),
    )
    kernels = ColumnKernels(found)
    placed, defined = rules.placed_columns(columns, totals, kernels, Objective(get_metric("f1")), FLOAT)
    asked, ratio, needs, tie = kernels.asked
    assert asked is columns
    assert (ratio.numerator[1:], ratio.denominator[0].tolist(), ratio.denominator[1:]) == ((2, 0), [1, 2, 0, 1], (1, 1))
    assert (needs, tie) == ((False, True), rules.TIE)
    assert placed.thresholds.tolist() == [0.5, 0.25, np.inf, np.inf]
    assert placed.lower.tolist() == [0.25, -np.inf, 1.0, 2.0]
    assert placed.upper.tolist() == [0.75, 0.25, np.inf, np.inf]
    assert [getattr(placed.confusion, cell).tolist() for cell in ("tp", "fp", "fn", "tn")] == [
        [1, 2, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 0, 1],
        [1, 0, 3, 2],
    ]
    assert defined.tolist() == [True, True, False, True]
    rules.placed_columns(columns, totals, kernels, Objective(get_metric("am")), FLOAT)
    assert kernels.asked[2] == (True, True)
    in_integers, _ = rules.placed_columns(columns, totals, kernels, Objective(get_metric("f1")), np.dtype(np.int64))
    assert in_integers.thresholds[0] == 0.75  # no integer is between


class Unbounded(FBeta):
    extremes_at_corners = False


def test_columns_are_searched_where_kernels_cannot_judge_them():
    totals, nothing = np.array([[2, 1]]), np.zeros(1, dtype=np.uint64)
    columns = SortedColumns(np.zeros((1, 3), dtype=np.uint64), nothing, nothing, nothing, totals[:, 1], 0, nothing)
    f1, unbounded = Objective(get_metric("f1")), Objective(Unbounded(1))
    assert unbounded.whole_ratio(Entries.of_totals(totals)) is not None
    for given, objective in (
        (columns._replace(codes=None), f1),
        (columns, Objective(get_metric("mcc"))),
        (columns, Objective(f1.metric, parse_constraints("recall>=0.1"))),
        (columns, unbounded),
    ):
        kernels = ColumnKernels(None)
        assert rules.placed_columns(given, totals, kernels, objective, FLOAT) is None
        assert kernels.asked is None


def test_rounding_of_weights_makes_no_best_cut_of_several_samples():
    rows = np.array([[1, 0], [1, 1], [1, 0], [1, 1]])
    for weight, winner in ((np.array([[1e20, 0], [1, 1], [1e20, 0], [1, 1]]), [0, 3]), (rows * 1.0, [2, 5])):
        entries = Entries.scores(np.array([40, 30, 20, 10], dtype=np.uint64), rows, weight, starts=np.array([0, 2, 4]))
        assert judge(entries, Objective(get_metric("f1"))).winner.tolist() == winner


def test_minus_infinity_is_the_value_of_several_samples_too():
    rows = np.array([[1, 1], [2, 0]])
    entries = Entries.scores(np.array([40, 10], dtype=np.uint64), rows, rows, starts=np.array([0, 1, 2]))
    worthless = Objective(Bare(lambda confusion: np.full(np.shape(confusion.tp), -np.inf)))
    verdict = judge(entries, worthless)
    assert verdict.value.tolist() == [-np.inf, -np.inf]
    assert verdict.value.dtype == float
    assert verdict.best.tolist() == [rules.LOWEST] * 2


# Why there is no cut


@pytest.mark.parametrize(
    ("constraint", "prior", "kind", "words"),
    [
        (None, None, rules.UndefinedMetricError, "precision is undefined at every cut of these 12 rows"),
        ("accuracy>=0.9", None, InfeasibleError, "no cut meets accuracy>=0.9: the highest accuracy attainable is 0.75"),
        ("accuracy<=0.2", None, InfeasibleError, "no cut meets accuracy<=0.2: the lowest accuracy attainable is 0.5"),
        ("accuracy<=0.2", 0.25, InfeasibleError, "no cut meets accuracy<=0.2: the lowest accuracy attainable is 0.25"),
        (
            ["recall>=0.5", "recall<=0.4", "accuracy>=1"],
            None,
            InfeasibleError,
            "no cut meets accuracy>=1: the highest accuracy attainable is 0.75",
        ),
        (
            ["recall>=1", "specificity>=1"],
            None,
            InfeasibleError,
            "each of recall>=1 and specificity>=1 can be met by some cut, but no cut meets all of them",
        ),
    ],
)
def test_why_no_cut_can_be_chosen_is_said(constraint, prior, kind, words):
    edges = Confusion(tp=np.array([0, 1, 2]), fp=np.array([0, 0, 2]), fn=np.array([2, 1, 0]), tn=np.array([2, 2, 0]))
    error = rules.infeasible(Objective(get_metric("precision"), parse_constraints(constraint), prior), edges, 12)
    assert (type(error), str(error)) == (kind, words)


def test_a_constraint_that_is_undefined_everywhere_is_named():
    edges = Confusion(tp=np.array([0, 0]), fp=np.array([0, 0]), fn=np.array([2, 2]), tn=np.array([2, 2]))
    error = rules.infeasible(Objective(get_metric("f1"), parse_constraints("precision>=0.5")), edges, 4)
    assert str(error) == "no cut meets precision>=0.5: precision is undefined at every cut"
    partly = Confusion(tp=np.array([0, 1]), fp=np.array([0, 3]), fn=np.array([2, 1]), tn=np.array([5, 2]))
    for constraint, words in (("precision>=0.5", "highest precision"), ("precision<=0.1", "lowest precision")):
        error = rules.infeasible(Objective(get_metric("f1"), parse_constraints(constraint)), partly, 4)
        assert str(error) == f"no cut meets {constraint}: the {words} attainable is 0.25"


# One place for the rules


def test_nothing_else_knows_when_values_tie():
    """The report hands the tolerance on by name; the core and what tunes have no number of their own."""
    package = Path(surecut.__file__).parent
    for path in package.rglob("*.py"):
        name, text = path.relative_to(package).as_posix(), path.read_text()
        if name == "core/rules.py":
            continue
        mentions = re.findall(r"^.*\bTIE\b.*$", text, re.MULTILINE)
        if name in ("report/summary.py", "report/bands.py"):
            assert "from surecut.core.rules import TIE" in text
        else:
            assert not mentions, name
        if name.partition("/")[0] in {"core", "sources", "decisions", "tuning", "classifier"}:
            beside_values = re.findall(r"^.*\b(?:best|values?|tied?|ties)\b.*\b1e-1[0-9]\b.*$", text, re.MULTILINE)
            assert not beside_values, (name, beside_values)
