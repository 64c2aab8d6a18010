"""Bands are those of trying all combinations of thresholds: some of the cases of `fuzz.bands`."""

from __future__ import annotations

import pytest

from fuzz import bands

CASES = 48
"""Of each kind; ``make fuzz`` compares more."""


@pytest.mark.parametrize("kind", bands.KINDS)
def test_bands_are_those_of_trying_all_combinations(kind):
    counts = bands.compared(kind, range(CASES))
    assert counts["cases"] - counts["refused"] - counts["infeasible"] > CASES / 3
    assert counts["empty"]
    assert counts["crossed"] or kind == "cut"


def test_the_comparison_fails_where_bands_are_not_the_best(monkeypatch):
    right = bands.oracle
    monkeypatch.setattr(bands, "oracle", lambda *case: (found := right(*case)) and (found[0] + 1, *found[1:]))
    with pytest.raises(AssertionError, match="instead of"):
        bands.compared("gains", range(20))
