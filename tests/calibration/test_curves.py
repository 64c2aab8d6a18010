"""Calibration: groups of scores, and curves that are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from surecut.calibration.curves import Groups, calibrate, group_edges, grouped
from surecut.sources.matrices import label_source


def test_rows_of_one_score_are_never_in_two_groups():
    random = np.random.default_rng(13)
    scores = random.integers(0, 7, size=(500, 3)) / 7
    truth = random.random(scores.shape) < scores
    source = label_source(truth, scores, None)
    groups = grouped(source.entries(slice(0, 3)))
    for label in range(3):
        part = slice(groups.starts[label], groups.starts[label + 1])
        assert (np.diff(groups.scores[part]) < 0).all()
        assert (groups.positive + groups.negative)[part].sum() == 500


def test_groups_hold_every_row_once():
    for entries in (1, 63, 64, 65, 1000, 12_345):
        edges = group_edges(entries)
        assert edges[0] == 0
        assert edges[-1] < entries
        assert (np.diff(edges) > 0).all()


def test_a_calibration_finds_the_curve():
    random = np.random.default_rng(10)
    s = expit(2 * random.normal(size=50_000) - 3)
    y = random.random(50_000) < s
    order = np.argsort(-s)
    edges = group_edges(len(s))
    middle = (edges + np.append(edges[1:], len(s))) // 2
    positive = np.add.reduceat(y[order].astype(float), edges)
    total = np.diff(edges, append=len(s)).astype(float)
    groups = Groups(np.array([0, len(edges)]), s[order][middle], total - positive, positive, s.min(), s.max())
    at = np.array([0.05, 0.2, 0.5, 0.8])
    assert calibrate(groups).probability(at, np.zeros(4, dtype=int)) == pytest.approx(at, abs=0.03)
