"""Rows in arrays: what passes over them find is what is there."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import tune_threshold
from surecut._labels import Labels
from surecut.core.counts import Parts
from surecut.core.keys import ordered_keys
from surecut.core.settings import using
from surecut.sources.arrays import ArraySource


@pytest.fixture(params=["plain", "weighted"])
def source(request, kernels_name):
    """Some rows in blocks of seven, with many ties, on two workers; some have no weight."""
    generator = np.random.default_rng(3)
    scores = generator.integers(-40, 40, 300) / 8
    labels = Labels(generator.random(300) < 0.4, np.True_, np.False_)
    weights = generator.integers(0, 3, 300).astype(float) if request.param == "weighted" else None
    with using(
        kernels=kernels_name, block=7, blocks_at_once=1, cores=2, rows_per_worker=200, compiled_rows_per_worker=200
    ):
        source = ArraySource(scores, labels, weights)
    assert (source.workers, source.rows_at_once) == (2, 7)
    return source


BINS = ordered_keys(np.array([-4.5, -2.0, 0.0, 1.0, 3.0])), ordered_keys(np.array([-3.25, -1.0, 0.875, 2.5, 4.0]))
"""Lowest and highest key of some bins, between which there are gaps."""


def present(source):
    """Keys, classes and weights of the rows that count."""
    weights = source.weights if source.weighted else np.ones(len(source))
    kept = weights > 0
    return ordered_keys(source.scores)[kept], source.labels.codes[kept], weights[kept]


def in_bin(keys, low, high):
    return (keys >= low) & (keys <= high)


def test_bins_are_counted_by_part_and_class(source):
    low, high = BINS
    parts = Parts.of(low, high, np.full(len(low), 48, dtype=np.uint64))
    keys, classes, weights = present(source)
    for keep in (False, True):
        found = source.count_parts(parts, keep)
        for number, (first, last) in enumerate(zip(*parts.ends(np.arange(parts.total)), strict=True)):
            inside = in_bin(keys, first, last)
            for label in (0, 1):
                assert found.rows[number, label] == np.count_nonzero(inside & (classes == label))
                assert found.weight[number, label] == weights[inside & (classes == label)].sum()
        assert found.rows.sum() == sum(np.count_nonzero(in_bin(keys, *ends)) for ends in zip(low, high, strict=True))


def test_bins_are_drawn_in_to_the_scores_that_occur(source):
    keys, _, _ = present(source)
    smallest, largest = source.extent(*BINS)
    for i, ends in enumerate(zip(*BINS, strict=True)):
        inside = keys[in_bin(keys, *ends)]
        assert (smallest[i], largest[i]) == (inside.min(), inside.max())


def test_what_is_collected_is_what_lies_in_the_bins(source):
    everything = source.tally()
    inside = np.any([in_bin(everything.keys, *ends) for ends in zip(*BINS, strict=True)], axis=0)
    source.count_parts(Parts.of(BINS[0][:1], BINS[1][-1:], np.array([50], dtype=np.uint64)), keep=True)
    assert source.kept.covers(*BINS)
    for collected in (source.collect(*BINS), source.kept.collect(*BINS)):
        np.testing.assert_array_equal(collected.keys, everything.keys[inside])
        np.testing.assert_array_equal(collected.rows, everything.rows[inside])
        np.testing.assert_array_equal(collected.weight, everything.weight[inside])


def test_nothing_is_found_where_nothing_is(source):
    low, high = ordered_keys(np.array([100.0])), ordered_keys(np.array([200.0]))
    parts = Parts.of(low, high, np.array([50], dtype=np.uint64))
    assert source.count_parts(parts, keep=True).rows.sum() == 0
    assert not any(len(piece) for piece in source.kept.pieces)


@pytest.mark.parametrize("at", [0, 100, 299])
def test_the_first_pass_finds_what_may_not_be_there(at, searching):
    random = np.random.default_rng(0)
    labels, scores = random.integers(0, 2, 300), random.random(300)
    with searching():
        labels[at], was = 3, labels[at]
        with pytest.raises(ValueError, match="3"):
            tune_threshold(labels, scores)
        labels[at], scores[at] = was, np.nan
        with pytest.raises(ValueError, match="NaN"):
            tune_threshold(labels, scores)


def test_weights_are_added_up_in_one_order_whatever_reads_them():
    """A process may begin with NumPy and go on with compiled loops: to the last digit the same."""
    pytest.importorskip("numba")
    for seed in range(5):
        generator = np.random.default_rng(seed)
        scores, labels = generator.random(4000).round(1), generator.random(4000) < 0.3
        found = []
        for kernels in ("numpy", "compiled"):
            with using(kernels=kernels, cores=4, rows_per_worker=900, compiled_rows_per_worker=3000, sort_below=0):
                weights = np.random.default_rng(seed).random(4000)
                found.append(tune_threshold(labels, scores, metric="f1", sample_weight=weights))
        assert found[0].value == found[1].value
        assert repr(found[0].confusion) == repr(found[1].confusion)
