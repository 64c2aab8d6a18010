"""The rules against trying every cut: winners are right, and no entry that hides something is passed over."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import surecut
from surecut.confusion import Confusion
from surecut.constraints import parse_constraints
from surecut.core import rules
from surecut.core.entries import Entries
from surecut.core.rules import Objective, judge
from surecut.metrics import LinearFractional, get_metric

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


# One place for the rules


def test_nothing_else_knows_when_values_tie():
    """The report hands the tolerance on by name; the core and what tunes have no number of their own."""
    package = Path(surecut.__file__).parent
    for path in package.rglob("*.py"):
        name, text = path.relative_to(package).as_posix(), path.read_text()
        if name == "core/rules.py":
            continue
        mentions = re.findall(r"^.*\bTIE\b.*$", text, re.MULTILINE)
        if name == "report/summary.py":
            assert "from surecut.core.rules import TIE" in text
        else:
            assert not mentions, name
        if name.partition("/")[0] in {"core", "sources", "decisions", "tuning", "classifier"}:
            beside_values = re.findall(r"^.*\b(?:best|values?|tied?|ties)\b.*\b1e-1[0-9]\b.*$", text, re.MULTILINE)
            assert not beside_values, (name, beside_values)
