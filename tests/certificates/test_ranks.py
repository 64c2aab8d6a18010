"""Cuts of small samples whose precision or NPV holds on new data, tested at fixed ranks by all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from surecut import InfeasibleError, ScoreTally, get_metric, tune_bands, tune_threshold
from surecut.certificates import ranks
from surecut.certificates.quantities import SideShare, side_share
from surecut.certificates.ranks import cuts_by_rank, starts
from surecut.constraints import Constraint, parse_constraints
from surecut.zones import parse_conditions


@dataclass(frozen=True)
class Pieces:
    """Scores that are uniform on [0, 1), [1, 2), … or, as atoms, at 0, 1, …, from the highest piece to the lowest."""

    mass: tuple[float, ...]
    positive: tuple[float, ...]
    atoms: bool = False

    def draw(self, rng, rows):
        piece = rng.choice(len(self.mass), rows, p=np.array(self.mass) / sum(self.mass))
        score = len(self.mass) - 1 - piece + (0 if self.atoms else rng.random(rows))
        return rng.random(rows) < np.array(self.positive)[piece], score

    def precision(self, threshold):
        """Of all rows that reach a threshold."""
        lowest = len(self.mass) - 1 - np.arange(len(self.mass))
        above = lowest >= threshold if self.atoms else np.clip(lowest + 1 - threshold, 0, 1)
        weight = above * self.mass
        return (weight * self.positive).sum() / weight.sum() if weight.sum() else 1.0

    def breaks(self, level, scores, edge):
        """Whether the precision is below a level at any threshold between the edge's lowest score and the next."""
        high = scores[edge - 1]
        low = scores[edge] if edge < len(scores) else -1.0
        inside = [t for t in range(len(self.mass)) if low < t <= high]
        candidates = [high, np.nextafter(low, np.inf), *inside]
        return min(self.precision(t) for t in candidates) < level - 1e-9


LEVEL, ERROR, ROWS = 0.8, 0.2, 150

POPULATIONS = {
    "just below the level": Pieces((1.0,), (0.799,)),
    "just below the level, tied": Pieces((1.0,) * 10, (0.799,) * 10, atoms=True),
    "falling": Pieces((1.0,) * 8, (0.99, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)),
    "good below a bad top": Pieces((0.05, 0.3, 0.65), (0.7, 0.83, 0.6)),
    "level crossed again and again": Pieces(
        (0.05, 0.04, 0.05, 0.06, 0.06, 0.1, 0.1, 0.54), (0.9, 0.6, 0.95, 0.6, 0.97, 0.6, 0.95, 0.5)
    ),
    "level crossed again and again, tied": Pieces(
        (0.05, 0.04, 0.05, 0.06, 0.06, 0.1, 0.1, 0.54), (0.9, 0.6, 0.95, 0.6, 0.97, 0.6, 0.95, 0.5), atoms=True
    ),
    "bad where tests begin": Pieces((0.06, 0.04, 0.1, 0.2, 0.6), (1.0, 0.3, 0.95, 0.85, 0.5)),
    "bad where tests begin, tied": Pieces((0.06, 0.04, 0.1, 0.2, 0.6), (1.0, 0.3, 0.95, 0.85, 0.5), atoms=True),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_cut_that_breaks_the_constraint_is_allowed_as_seldom_as_promised(name):
    """At any threshold between two scores, and any of the cuts: not only at the one that would be chosen."""
    population, rng, draws = POPULATIONS[name], np.random.default_rng(0), 1_000
    (constraint,) = parse_constraints(f"precision>={LEVEL}")
    broken = 0
    for _ in range(draws):
        y, score = population.draw(rng, ROWS)
        allowed, _ = cuts_by_rank(
            ScoreTally.from_scores(y, score).entries, constraint, SideShare(True, True), ERROR, int(rng.integers(2**32))
        )
        scores = np.unique(score)[::-1]
        broken += any(population.breaks(LEVEL, scores, edge) for edge in np.flatnonzero(allowed).tolist())
    assert broken / draws <= ERROR + 2 * np.sqrt(ERROR * (1 - ERROR) / draws)
    if name == "just below the level":
        assert broken / draws > ERROR / 2  # the error is used: a test that never fails would promise too little


def test_the_check_can_fail(monkeypatch):
    """With the whole error at each start, too many cuts pass."""
    monkeypatch.setattr(ranks, "starts", lambda *asked: [(rank, 2 * asked[2]) for rank, _ in starts(*asked)])
    with pytest.raises(AssertionError):
        test_a_cut_that_breaks_the_constraint_is_allowed_as_seldom_as_promised("just below the level")


@pytest.mark.parametrize(
    ("asked", "zone", "share"),
    [
        ("ppv>=0.9", "yes", SideShare(True, True)),
        ("false_discovery_rate<=0.1", "yes", SideShare(False, True)),
        ("npv>=0.9", "no", SideShare(False, False)),
        ("false_omission_rate<=0.1", "no", SideShare(True, False)),
        ("recall>=0.9", "yes", None),
        ("share<=0.9", "no", None),
    ],
)
def test_which_quantities_are_shares_of_one_side(asked, zone, share):
    (condition,) = parse_conditions({zone: asked}, ("no", "yes"))
    turned = condition.below_a_cut() if zone == "no" else condition
    assert side_share(turned.quantity) == share
    assert side_share(get_metric("precision")) == SideShare(True, True)
    assert all(side_share(get_metric(name)) is None for name in ("recall", "accuracy", "f1", "kappa"))


def test_both_ends_and_both_senses_are_the_same_question():
    rng = np.random.default_rng(0)
    for decimals in (6, 1):
        score = np.round(rng.random(400), decimals)
        y = rng.random(400) < score
        entries = ScoreTally.from_scores(y, score).entries
        (precision, discovery) = parse_constraints(["precision>=0.7", "false_discovery_rate<=0.3"])
        found = [
            cuts_by_rank(entries, precision, SideShare(True, True), 0.1)[0],
            cuts_by_rank(entries, discovery, SideShare(False, True), 0.1)[0],
        ]
        assert np.array_equal(*found)
        assert found[0].any()


def test_starts_have_the_whole_error_and_can_pass():
    for level, rows, error in [(0.5, 40, 0.1), (0.9, 1_000, 0.05), (0.99, 300, 0.05), (0.7, 1_000, 0.001)]:
        constraint = Constraint(get_metric("precision"), ">=", level)
        found = starts(constraint, rows, error)
        assert sum(part for _, part in found) == pytest.approx(error)
        assert all(level**rank <= part * (1 + 1e-9) for rank, part in found)
        assert all(rank <= rows / 2 for rank, _ in found[1:])
    assert starts(Constraint(get_metric("precision"), ">=", 0.99), 200, 0.05) == []


def test_small_samples_are_promised_more_than_a_pilot_would_find(monkeypatch):
    rng, decided = np.random.default_rng(0), np.zeros(2)
    for _ in range(40):
        y = rng.random(100) < 0.5
        score = np.where(y, rng.beta(3, 1, 100), rng.beta(1, 3, 100))
        for i, most in enumerate((ranks.MOST_ROWS, 0)):
            monkeypatch.setattr("surecut.certificates.assurance.MOST_ROWS", most)
            bands = tune_bands(y, score, upper="ppv>=0.85", lower="npv>=0.8", confidence=0.9)
            decided[i] += 1 - bands.shares[1]
    assert decided[0] > 2 * decided[1]


def test_cuts_stand_between_scores_and_errors_say_what_can_be_promised():
    rng = np.random.default_rng(3)
    score = rng.random(300)
    y = rng.random(300) < score
    cut = tune_threshold(y, score, metric="recall", constraint="precision>=0.8", confidence=0.9)
    assert cut.interval[0] < cut.threshold < cut.interval[1]
    with pytest.raises(InfeasibleError, match="too few rows to promise anything"):
        tune_threshold(y[:20], score[:20], metric="recall", constraint="precision>=0.95", confidence=0.9)
    with pytest.raises(InfeasibleError, match=r"the lowest false_discovery_rate that can be promised is 0\.[3-9]"):
        tune_threshold(~y, score, metric="recall", constraint="false_discovery_rate<=0.1", confidence=0.9)
