"""The fuzzer's cases as one property: `make hypofuzz` looks for a difference by coverage, and shrinks what it finds.

What Hypothesis chooses is a way, the values of some axes, and a seed for all that is left open.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fuzz.covering import AXES, WAYS, is_tried, pairs_of, wanted_of
from fuzz.paths import PATHS, SkippedError
from fuzz.running import case_of, run

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pytest.importorskip("polars")

IN_PROCESS = [way for way in WAYS if not PATHS[way.path].engine and "ibis" not in way.path]


@st.composite
def cases(draw):
    chosen = {"way": draw(st.sampled_from(IN_PROCESS))}
    for axis, values in AXES.items():
        if axis != "way":
            allowed = [value for value in values if all(map(is_tried, pairs_of(chosen | {axis: value})))]
            value = draw(st.none() | st.sampled_from(allowed))
            if value is not None:
                chosen[axis] = value
    path, wanted = wanted_of(chosen)
    case = case_of(path, draw(st.integers(0, 2**32 - 1)), 0, 0, wanted)
    assume(case is not None)
    return case


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(case=cases())
def test_no_case_differs_from_the_oracle(case):
    try:
        found = run(case)
    except SkippedError:
        assume(False)
    assert found is None, f"python -m fuzz --replay '{case.name}': {found[0]}: {found[1]}"
