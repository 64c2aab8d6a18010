"""Corrections in blocks: the recursion against the sum over every way of cutting."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import lgamma

import numpy as np
import pytest

from surecut.calibration.corrections import CHANGES, Atoms, Correction, corrections


def some_atoms(random, size):
    weight = random.integers(1, 9, size)
    eta = np.sort(random.random(size))[::-1]
    positive = random.binomial(weight, eta**2).astype(float)
    return Atoms(np.arange(size - 1, 0, -1) - 0.5, weight - positive, positive, weight * eta)


def log_beta(a, b):
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def by_enumeration(atoms):
    """Evidence, offset and factor, by trying every way of cutting into blocks."""
    size = len(atoms.positive)
    change = min(0.5, CHANGES / size)
    total, offset, factor = 0.0, np.zeros(size), np.zeros(size)
    for changes in range(size):
        for inner in combinations(range(1, size), changes):
            probability = change**changes * (1 - change) ** (size - 1 - changes)
            blocks = []
            for start, end in pairwise((0, *inner, size)):
                k, n = atoms.positive[start:end].sum(), atoms.negative[start:end].sum()
                p = atoms.expected[start:end].sum() / (k + n)
                a, b = p / min(p, 1 - p), (1 - p) / min(p, 1 - p)
                ratio = np.exp(log_beta(a + k, b + n) - log_beta(a, b)) / (p**k * (1 - p) ** n)
                new = (a + k) / (a + b + k + n)
                line = (1 - (1 - new) / (1 - p), (1 - new) / (1 - p)) if new > p else (0.0, new / p)
                probability *= (1 + ratio) / 2
                blocks.append((slice(start, end), ratio / (1 + ratio), *line))
            total += probability
            for part, weight, up, times in blocks:
                offset[part] += probability * weight * up
                factor[part] += probability * (1 - weight + weight * times)
    return np.log(total), offset / total, factor / total


def test_the_recursion_sums_over_every_way_of_cutting():
    random = np.random.default_rng(0)
    labels = [some_atoms(random, size) for size in (5, 8, 2, 1)]
    found, evidence = corrections(labels)
    for atoms, correction, log_evidence in zip(labels, found, evidence, strict=True):
        expected, offset, factor = by_enumeration(atoms)
        assert log_evidence == pytest.approx(expected, abs=1e-10)
        assert correction.offset == pytest.approx(offset, abs=1e-10)
        assert correction.factor == pytest.approx(factor, abs=1e-10)


def test_a_true_curve_stays_and_a_false_one_is_mended():
    random = np.random.default_rng(1)
    score = np.sort(random.random(5000))[::-1]
    for truth, is_rejected in ((score, False), (np.where(score > 0.5, 0.8, 0.1), True)):
        positive = (random.random(5000) < truth).astype(float)
        (correction,), evidence = corrections([Atoms.of(score, 1 - positive, positive, score)])
        mended = correction(score, score)
        assert (evidence[0] > 10) == is_rejected
        assert np.abs(mended - truth).mean() < 0.04
        assert mended.min() >= 0
        assert mended.max() <= 1


def test_no_weight_is_no_correction():
    correction = Correction(np.array([0.5]), np.array([0.25, 0.0]), np.array([0.5, 0.5])).weighed(0.0)
    assert correction(np.array([0.7, 0.1]), np.array([0.3, 0.2])) == pytest.approx([0.3, 0.2])
