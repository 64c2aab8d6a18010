"""The fuzzer: a fixed sample of its cases finds no difference, and it does find those that are put in."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np
import pytest

from fuzz import running
from fuzz.__main__ import main
from fuzz.judging import Found, Problem, Verdict
from fuzz.measures import CELLS, DRAWN, draw_measure, from_cells, function_named, named
from fuzz.paths import PATHS
from fuzz.settings import draw_settings, shrunk
from surecut.core import rules
from surecut.core.entries import Entries
from surecut.core.settings import settings
from surecut.metrics import CATALOGUE

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("polars")

SAMPLES = {"batches": 3, "counting": 1, "groups": 2, "search": 8, "sorted": 10}
"""Samples of a path in the suite, six objectives each; 5 where nothing is said."""


@pytest.mark.parametrize("path", [name for name, path in PATHS.items() if not path.engine])
def test_no_path_differs_from_the_oracle(path):
    _, counted, found = running.worked(path, 2024, range(SAMPLES.get(path, 5)))
    assert counted["runs"] > 0
    assert not found, "\n".join(f"python -m fuzz --replay {one.case}: {one.kind}: {one.what}" for one in found)


# It can fail


def differences(path, samples=range(12)):
    return {one.kind for one in running.worked(path, 1, samples, {"f1", "accuracy", "recall", "tp/fp"})[2]}


def test_a_broken_tie_rule_is_found(monkeypatch):
    least_tie = rules.least_tie
    monkeypatch.setattr(rules, "least_tie", lambda *given: least_tie(*given) - 0.3)
    assert "worse" in differences("sorted")


def test_a_lower_threshold_among_ties_is_found(monkeypatch):
    judge = rules.judge

    def lowest(entries, objective):
        verdict = judge(entries, objective)
        values = objective.values(entries.edges)
        ties = values >= entries.of_edges(verdict.best)
        last = [np.flatnonzero(ties[:end])[-1] for end in entries.edge_starts[1:]]
        return verdict._replace(winner=np.array(last), value=values[last])

    monkeypatch.setattr(rules, "judge", lowest)
    assert "tie" in differences("tally")


def test_a_bound_that_is_too_low_is_found(monkeypatch):
    bounds = rules.Objective.bounds
    monkeypatch.setattr(rules.Objective, "bounds", lambda *given: bounds(*given) - 0.2)
    assert {"worse", "tie"} <= differences("search", range(6, 12))


def test_weights_below_a_cut_by_subtraction_are_found(monkeypatch):
    """A difference of sums, each rounded, is not 0 where nothing is left."""

    def subtracted(self, column):
        own = (self.of_sample(sample).weight[::-1, column] for sample in range(self.samples))
        added = [reduce(add, weights.tolist(), 0.0) for weights in own]  # from Python 3.12 on, sum() rounds only once
        total = np.array(added) + self.absent[:, column]
        return self.of_edges(total) - self._accepted(column)

    monkeypatch.setattr(Entries, "_rejected", subtracted)
    assert "confusion not zero" in differences("sorted", range(20))


def test_a_warning_and_an_exception_are_differences(monkeypatch):
    import fuzz.paths

    def warns(*given, **named):
        np.float64(1) / np.zeros(1)
        raise AssertionError

    monkeypatch.setattr(fuzz.paths, "tune_threshold", warns)
    assert differences("sorted", range(2)) == {"warning"}
    monkeypatch.setattr(fuzz.paths, "tune_threshold", lambda *given, **named: {}["missing"])
    assert differences("sorted", range(2)) == {"raised KeyError"}


def test_the_program_says_what_it_found(monkeypatch, capsys):
    monkeypatch.setattr(rules, "TIE", 0.3)
    found = running.worked("tally", 1, range(8), {"f1"})[2]
    assert found
    assert main(["--replay", found[0].case]) == 1
    said = capsys.readouterr().out
    assert "Made small" in said
    assert "ScoreTally.from_scores(labels, scores, sample_weight=weights).best_cut(metric, constraint)" in said
    monkeypatch.undo()
    assert main(["--replay", found[0].case]) == 0
    assert "no difference" in capsys.readouterr().out


@pytest.mark.parametrize("path", [name for name, path in PATHS.items() if not path.engine])
def test_a_case_is_written_as_python(path, capsys):
    drawn = (case for index in range(30) for case in running.cases(path, 3, index, {"accuracy"}))
    case = next(case for case in drawn if not case.objective.conditions and case.data.weighing == "none")
    exec(compile(running.IMPORTS + running.snippet(case, "as drawn"), path, "exec"), {})
    assert "accuracy = " in capsys.readouterr().out


# How it judges


def found(problem, chosen, value):
    lowest = problem.attempts[chosen].lowest
    return Found(lowest, value, np.array(problem.attempts[chosen].predictions))


def kind_of(complaint):
    return complaint and complaint[0]


def test_counts_are_judged_exactly():
    problem = Problem([1, 0, 1, 0], np.array([0.9, 0.8, 0.7, 0.6]))
    verdict = Verdict(problem, named("f1"), ())
    assert verdict.complaint(found(problem, 3, 0.8)) is None
    assert kind_of(verdict.complaint(found(problem, 3, 0.8 + 1e-11))) == "value"
    assert kind_of(verdict.complaint(found(problem, 1, 2 / 3))) == "worse"
    recall = Verdict(problem, named("recall"), ())
    assert kind_of(recall.complaint(found(problem, 4, 1.0))) == "tie"
    negative_predictive_value = Verdict(problem, from_cells("npv", *CELLS["npv"]), ())
    assert kind_of(negative_predictive_value.complaint(found(problem, 4, 1.0))) == "not allowed"


def test_infinity_is_the_best_value_of_a_function():
    problem = Problem([1, 0], np.array([0.9, 0.1]))
    verdict = Verdict(problem, function_named("likelihood_ratio"), ())
    assert verdict.complaint(found(problem, 1, math.inf)) is None
    assert kind_of(verdict.complaint(found(problem, 2, 1.0))) == "worse"


@pytest.mark.parametrize("weights", [np.full(4, 0.1), np.full(4, 1e200), np.array([1e11, 1.0, 1e11, 1.0])])
def test_rounding_of_weights_is_forgiven_and_no_more(weights):
    problem = Problem([1, 0, 1, 0], np.array([0.9, 0.8, 0.7, 0.6]), weights)
    verdict = Verdict(problem, named("precision"), ())
    assert verdict.complaint(found(problem, 1, 1.0 - 2e-16)) is None
    assert kind_of(verdict.complaint(found(problem, 2, 0.5))) == "worse"
    assert kind_of(verdict.complaint(found(problem, 1, 1.0 - 1e-9))) == "value"


def test_every_metric_of_the_registry_is_drawn():
    assert set(CATALOGUE) <= set(DRAWN)
    random = np.random.default_rng(0)
    assert {draw_measure(random).name for _ in range(800)} == set(DRAWN)


def test_all_sizes_that_are_shrunk_exist():
    sizes = draw_settings(np.random.default_rng(0), "search", "kernels", "sources", "bins", "batches", "grouped")
    with shrunk(sizes):
        assert settings().sort_below == 0
    assert settings().sort_below > 0
