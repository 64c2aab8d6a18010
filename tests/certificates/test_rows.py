"""Held-out rows as columns: what they say without a sort is what their tally says."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import ScoreTally, certify, tune_threshold
from surecut.certificates import rows as module
from surecut.certificates.rows import HeldOutRows
from surecut.core.settings import using
from surecut.overlap import Overlap, RowSample, overlap

MANY = module.MANY + 5


def draw(rng, rows):
    score = 1 / (1 + np.exp(1.5 - 2 * rng.normal(size=rows)))
    return rng.random(rows) < score, score


@pytest.fixture(scope="module")
def tuned():
    return draw(np.random.default_rng(0), MANY)


@pytest.fixture(scope="module")
def other():
    return draw(np.random.default_rng(1), MANY)


class TestAtAThreshold:
    @pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int32"])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("threshold", [-np.inf, -1.0, 0.0, 1.25, 2.0, 99.0, np.inf])
    @pytest.mark.parametrize("exact", [False, True])
    def test_the_counts_and_the_checksum_are_those_of_the_tally(self, kind, weighted, threshold, exact):
        rng = np.random.default_rng(2)
        scores = rng.normal(scale=2, size=1000).round(1).astype(kind)
        scores[:3] = 0, -0.0, np.inf if kind.startswith("float") else 7
        y, weights = rng.random(1000) < 0.3, rng.integers(0, 4, 1000).astype(float) if weighted else None
        expected = ScoreTally.from_scores(y, scores, sample_weight=weights)
        found = HeldOutRows.of(y, scores, weights, None).at(threshold, exact)
        assert found.confusion_at(threshold) == expected.confusion_at(threshold)
        assert (found.sample, found.prior, found.dtype) == (expected.sample, expected.prior, expected.dtype)
        assert (found.weight is found.rows) == (not weighted)
        np.testing.assert_array_equal(found.squares.sum(axis=0), expected.squares.sum(axis=0))
        if exact:
            here, there = (one.candidates.at(threshold) for one in (found, expected))
            for end in ("accepted", "rejected"):
                assert getattr(found.candidates, end)[here] == getattr(expected.candidates, end)[there]

    @pytest.mark.parametrize("kernels", ["numpy", "compiled"])
    def test_invalid_rows_are_found_while_they_are_counted(self, tuned, kernels):
        cut = tune_threshold(*tuned)
        y, s = tuned[0][:2000].astype(int), tuned[1][:2000].copy()
        with using(kernels=kernels):
            with pytest.raises(ValueError, match="y_true must hold two classes, found 3: 0, 1, 2"):
                certify(cut, np.where(np.arange(2000) == 1999, 2, y), s)
            with pytest.raises(ValueError, match="y_true holds 1 missing label, the first at position 1999"):
                certify(cut, np.where(np.arange(2000) == 1999, np.nan, y), s)
            s[5] = np.nan
            with pytest.raises(ValueError, match="y_score holds NaN in 1 of 2,000 rows, the first at position 5"):
                certify(cut, y, s)

    def test_the_rows_of_a_cut_that_has_no_fingerprint_are_recognised(self, tuned):
        y, s = (column[:500] for column in tuned)
        cut = tune_threshold(y, s).with_sample(fingerprint="", seen=())
        with pytest.raises(ValueError, match="these are the validation rows"):
            certify(cut, y, s)

    @pytest.mark.parametrize("block", [100, 4096])
    def test_neither_blocks_nor_cores_change_anything(self, tuned, other, block, monkeypatch):
        expected = certify(tune_threshold(*tuned), *other)
        monkeypatch.setattr(module, "BLOCK", block)
        with using(cores=3, rows_per_worker=10_000, compiled_rows_per_worker=10_000):
            assert certify(tune_threshold(*tuned), *other) == expected


def single(y, s):
    return y, s.astype(np.float32)


def six_decimals(y, s):
    return y, s.round(6)


def three_decimals(y, s):
    return y, s.round(3)


def scored_again(y, s):
    return y, s * (1 + 1e-14)


def scored_again_lower(y, s):
    return y, s * (1 - 1e-14)


def one_less(y, s):
    return y[1:], s[1:]


def repeated(y, s):
    return np.repeat(y, 2), np.repeat(s, 2)


def half_and_others(y, s):
    others = draw(np.random.default_rng(5), MANY)
    return np.concatenate((y[::2], others[0][::2])), np.concatenate((s[::2], others[1][::2]))


VARIANTS = [
    single,
    six_decimals,
    three_decimals,
    scored_again,
    scored_again_lower,
    one_less,
    repeated,
    half_and_others,
]


class TestAroundSeenRows:
    def test_many_rows_are_certified_without_a_sort_of_all(self, tuned, other, monkeypatch):
        cut = tune_threshold(*tuned)
        expected = certify(cut, tally=ScoreTally.from_scores(*other))
        monkeypatch.setattr(HeldOutRows, "tally", None)
        assert certify(cut, *other) == expected

    @pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.__name__)
    def test_the_verdict_is_that_of_all_rows(self, variant, tuned):
        for seen, new in ((tuned, variant(*tuned)), (variant(*tuned), tuned)):
            sample, rows = RowSample.of_rows(seen[1], seen[0]), HeldOutRows.of(new[0], new[1], None, None)
            expected = overlap(sample, {0: rows.tally})
            assert expected is (Overlap.UNKNOWN if variant is three_decimals else Overlap.SHARED)
            assert overlap(sample, {0: rows.around(sample)}) is expected

    @pytest.mark.parametrize("round_to", [None, 5, 6, 7])
    def test_other_rows_are_no_seen_ones(self, tuned, other, round_to):
        (y, s), (_, before) = other, tuned
        if round_to is not None:
            s, before = s.round(round_to), before.round(round_to)
        sample, rows = RowSample.of_rows(before, tuned[0]), HeldOutRows.of(y, s, None, None)
        assert overlap(sample, {0: rows.around(sample)}) is overlap(sample, {0: rows.tally}) is Overlap.NONE

    def test_all_rows_that_have_a_seen_score_are_there(self):
        rng = np.random.default_rng(3)
        s = rng.standard_cauchy(MANY) * 10.0 ** rng.integers(-30, 30, MANY)
        s[:6] = np.inf, -np.inf, 0.0, -0.0, np.finfo(float).max, 5e-324
        y = rng.random(MANY) < 0.5
        seen = RowSample.of_rows(np.concatenate((s[:6], s[6::600])), np.concatenate((y[:6], y[6::600])))
        rows = HeldOutRows.of(y, s, None, None)
        around, every = rows.around(seen), rows.tally
        assert len(around) < len(every) / 4
        kept = np.isin(every.keys, around.keys)
        np.testing.assert_array_equal(every.rows[kept], around.rows)
        assert np.isin(seen.scores, around.scores).all()
