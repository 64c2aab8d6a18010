"""Every metric on every path gives the cut of trying each threshold in exact fractions.

The cases are those of the fuzzer; here they are not left to chance. Each pair of a path (by engine, kernels, average)
and a metric is tried, as is each pair of two of: path, metric, family of scores, weights, constraints, rows. What is
not tried stands in `EXCLUDED` of `fuzz.covering`, with the reason. `make fuzz` goes on, for as long as one likes.
"""

from __future__ import annotations

import numpy as np
import pytest

from engines import spark_session
from fuzz.covering import AXES, EXCLUDED, WAYS, all_pairs, covering, example, is_tried, pairs_of, reason, tried, ways_of
from fuzz.measures import DRAWN
from fuzz.paths import PATHS
from fuzz.running import case_named
from surecut.core import rules
from surecut.metrics import CATALOGUE, WITH_PARAMETERS

LIBRARIES = {"dask": "dask.dataframe", "spark": "pyspark", "ibis": "ibis"}
for library in ("pyarrow", "duckdb", "polars"):
    pytest.importorskip(library)


SEEDS = 3
"""So often rows are drawn for each case; once where they go into a frame, which takes longer than all else."""


def cases_of(way):
    return [case for case in covering() if case["way"] == way]


def need(path):
    engine = path.removesuffix("_groups")
    if engine in LIBRARIES:
        pytest.importorskip(LIBRARIES[engine])
    if engine == "spark":
        spark_session()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_cut_differs_from_the_oracle(way):
    need(way.path)
    seeds = range(1 if "engine" in PATHS[way.path].variants else SEEDS)
    results = [tried(case, seed) for case in cases_of(way) for seed in seeds]
    found = [(drawn.name, *what) for drawn, what in results if what is not None]
    assert results
    assert not found, "\n".join(f"python -m fuzz --replay '{name}': {kind}: {what}" for name, kind, what in found)


# Nothing is left out


def test_every_metric_is_among_the_cases():
    assert set(CATALOGUE) | set(WITH_PARAMETERS) <= set(AXES["metric"]) == set(DRAWN)
    for name, made in WITH_PARAMETERS.items():
        assert type(example(name).metric) is made


def test_every_path_is_among_the_cases():
    assert {way.path for way in WAYS} == set(PATHS)
    assert {value for way in WAYS for name, value in way.variant if name == "kernels"} == {"numpy", "compiled"}


def test_every_pair_is_tried_or_excluded_with_a_reason():
    covered = {pair for case in covering() for pair in pairs_of(case)}
    untried = {pair for pair in all_pairs() if pair not in covered}
    assert all(not is_tried(pair) for pair in untried)
    assert not any(not is_tried(pair) for pair in covered)
    used = {reason(first, one, second, other) for (first, one), (second, other) in untried}
    assert used == set(EXCLUDED), "a reason that excludes nothing"


def test_what_is_excluded_is_refused_or_slow():
    """No pair of a path and a metric is left out because the path would fail."""
    for way in WAYS:
        for metric in DRAWN:
            if not is_tried((("way", way), ("metric", metric))):
                assert PATHS[way.path].engine or PATHS[way.path].refuses(example(metric))


def test_a_case_is_found_again_by_its_name():
    for case in covering()[::97]:
        if not PATHS[case["way"].path].engine:
            drawn, _ = tried(case)
            again = case_named(drawn.name)
            assert again.name == drawn.name
            assert again.wanted == drawn.wanted
            assert again.objective.measure.code == drawn.objective.measure.code
            np.testing.assert_array_equal(again.data.scores, drawn.data.scores)
            assert again.data.settings == drawn.data.settings


# It can fail


def kinds(*paths, seeds=(0,)):
    """The kinds of differences on some paths, on other rows for each seed."""
    return kinds_among((case for path in paths for way in ways_of(path) for case in cases_of(way)), seeds)


def kinds_among(cases, seeds):
    found = (tried(case, seed)[1] for case in cases for seed in seeds)
    return {what[0] for what in found if what is not None}


def test_ties_that_are_too_wide_are_found(monkeypatch):
    monkeypatch.setattr(rules, "TIE", 0.1)
    assert "worse" in kinds("sorted")


def test_ties_that_are_not_seen_are_found(monkeypatch):
    monkeypatch.setattr(rules, "least_tie", lambda best, rounding=0.0: best)
    cases = [{"way": way, "metric": "accuracy", "weighing": "equal 0.1"} for way in ways_of("sorted")]
    assert "tie" in kinds_among(cases, range(100))


def test_a_bound_that_is_too_low_is_found(monkeypatch):
    bounds = rules.Objective.bounds
    monkeypatch.setattr(rules.Objective, "bounds", lambda *given: bounds(*given) - 0.2)
    assert "worse" in kinds("search", "dense_bins", seeds=range(6))


def test_a_constraint_that_is_not_met_is_found(monkeypatch):
    monkeypatch.setattr(rules.Objective, "values", lambda self, confusion: self.metric_values(confusion))
    assert "not allowed" in kinds("tally")


def test_a_threshold_in_another_dtype_is_found(monkeypatch):
    place = rules.place
    monkeypatch.setattr(rules, "place", lambda lower, upper, dtype: place(lower, upper, np.dtype(np.float64)))
    assert "predictions" in kinds("sorted", "tally", "search", seeds=range(6))


def test_a_threshold_at_the_highest_rejected_score_is_found(monkeypatch):
    place = rules.place
    monkeypatch.setattr(
        rules, "place", lambda lower, upper, dtype: np.where(np.isfinite(lower), lower, place(lower, upper, dtype))[()]
    )
    assert {"worse", "not allowed"} <= kinds("sparse")
