"""The compiled kernels do what the NumPy kernels do; a cache that fails does not matter."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from surecut._inputs import as_doubles
from surecut.core import kernels as core_kernels
from surecut.core.bins import KeyRanges, first_bins
from surecut.core.counts import Counts
from surecut.core.kernels import NONE, SEVERAL, NumpyKernels
from surecut.core.keys import KEY_OF_MINUS_ZERO, checksum, key_marks, ordered_keys, scores_of_keys
from surecut.core.settings import Settings

LARGEST = np.finfo(float).max
NO_WEIGHTS = np.empty(0)

any_scores = st.lists(
    st.one_of(st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, np.inf, -np.inf, LARGEST, 5e-324, -5e-324])),
    min_size=1,
    max_size=60,
).map(lambda scores: np.array(scores, dtype=float))


@pytest.fixture(scope="module")
def compiled():
    kernels = core_kernels.compiled()
    if kernels is None:
        pytest.skip("numba is not installed")
    return kernels


# Keys


@given(any_scores)
def test_keys_are_in_the_order_of_the_scores(scores):
    keys = ordered_keys(scores)
    capped = np.minimum(scores, LARGEST)
    np.testing.assert_array_equal(np.argsort(keys, kind="stable"), np.argsort(capped, kind="stable"))
    np.testing.assert_array_equal(keys[:, None] == keys, capped[:, None] == capped)
    np.testing.assert_array_equal(scores_of_keys(keys), capped)
    assert not np.signbit(scores_of_keys(keys)[capped == 0]).any()


@given(any_scores, st.integers(2, 15), st.randoms(use_true_random=False))
@example(np.array([0.5, -np.inf]), 15, random.Random(0))
@example(np.array([-np.inf]), 15, random.Random(0))
def test_first_bins_hold_their_scores_whatever_the_sample_they_were_made_for(scores, bits, choice):
    """The bin that a kernel counts a score in is the bin whose ends enclose its key."""
    sample = np.array([choice.choice(scores.tolist()) for _ in range(3)])
    bins = first_bins(np.sort(sample), bits)
    low, high = bins.ends(np.arange(2 * int(bins.half)))
    for score in scores:
        rows = np.zeros((2 * int(bins.half), 2), dtype=np.int64)
        column = np.array([score])
        NumpyKernels().histogram(column.view(np.int64), np.array([1]), NO_WEIGHTS, 1, 0, bins, rows, rows)
        (slot,) = np.flatnonzero(rows.any(axis=1))
        slot = max(slot, int(bins.half)) if slot == int(bins.half) - 1 else slot
        assert low[slot] <= ordered_keys(column)[0] <= high[slot]
    low, high = (np.delete(ends, int(bins.half) - 1) for ends in (low, high))
    assert (low <= high).all()
    assert (high[:-1] + np.uint64(1) == low[1:]).all()
    assert (low[0], high[-1]) == tuple(ordered_keys(np.array([-np.inf, np.inf])))


# The checksum


@given(st.lists(st.tuples(st.floats(allow_nan=False), st.booleans()), min_size=1), st.integers(0, 20))
def test_the_checksum_adds_up(rows, split):
    bits = np.array([score for score, _ in rows]).view(np.int64)
    positive = np.array([label for _, label in rows])
    parts = checksum(bits[:split], positive[:split]) + checksum(bits[split:], positive[split:])
    assert parts % 2**64 == checksum(bits, positive)
    assert checksum(bits[::-1], positive[::-1]) == checksum(bits, positive)


def test_different_samples_have_different_checksums():
    bits = np.array([0.1, 0.2, 0.7]).view(np.int64)
    seen = {checksum(bits, np.array(labels)) for labels in np.ndindex(2, 2, 2)}
    assert len(seen) == 8
    assert checksum(np.array([0.1, 0.2, 0.70000001]).view(np.int64), np.ones(3, bool)) not in seen


# One contract for both sets of kernels


def blocks():
    """Random blocks: lengths about the size of a piece, all kinds of scores, labels and weights."""
    generator = np.random.default_rng(11)
    for size in (1, 63, 1024, 1025, 2500):
        for scores in (
            generator.normal(size=size),
            generator.choice([np.inf, -np.inf, 0.0, -0.0, 5e-324, LARGEST, 1.0], size),
            generator.normal(size=size) * 10.0 ** generator.uniform(-300, 300, size),
            np.where(generator.random(size) < 0.1, np.nan, generator.random(size)),
        ):
            for dtype, values in (
                (np.uint8, (1, 0)),
                (np.int64, (7, -3)),
                (np.int64, (1, 1)),
                (np.float32, (0.5, 2.5)),
            ):
                labels = generator.choice(np.array([*values, *values, 9]), size).astype(dtype)
                for weights in (NO_WEIGHTS, generator.integers(0, 5, size) / 4):
                    yield scores.view(np.int64), labels, weights, dtype(values[0]), dtype(values[1])


def ranges(generator, bits, count):
    """Disjoint ranges of keys, ascending, that hold some of the rows."""
    scores = bits.view(float)
    lowest, highest = ordered_keys(np.array([-np.inf, np.inf]))
    some = generator.integers(lowest, highest, 40, dtype=np.uint64, endpoint=True)
    special = np.array([lowest, highest, KEY_OF_MINUS_ZERO])  # no score has the last one, but a range may end there
    ends = np.unique(np.concatenate((ordered_keys(scores[~np.isnan(scores)]), some, special)))
    chosen = np.sort(generator.choice(len(ends), min(2 * count, len(ends) // 2 * 2), replace=False))
    return np.ascontiguousarray(ends[chosen[::2]]), np.ascontiguousarray(ends[chosen[1::2]])


def test_histograms_are_the_same(compiled):
    for bits, labels, weights, positive, negative in blocks():
        bins = first_bins(np.sort(bits.view(float)[:64]))
        results = []
        for kernels in (NumpyKernels(), compiled):
            rows = np.zeros((2 * int(bins.half), 2), dtype=np.int64)
            sums = np.zeros((2 * int(bins.half), 2)) if len(weights) else rows
            marks = np.zeros(2 * int(bins.half), dtype=np.uint64)
            columns = bits, labels, weights, positive, negative
            invalid, nans, named = kernels.histogram(*columns, bins, rows, sums, marks=marks)
            results.append((int(invalid), int(nans), int(named) % 2**64, rows, sums, marks))
        for reference, fast in zip(*results, strict=True):
            np.testing.assert_array_equal(reference, fast)
        invalid, nans, _, rows, sums, marks = results[0]
        assert invalid == np.count_nonzero((labels != positive) & (labels != negative))
        assert nans == np.count_nonzero(np.isnan(bits.view(float)))
        present = weights > 0 if len(weights) else np.ones(len(bits), bool)
        assert rows[:, 1].sum() == np.count_nonzero((labels == positive) & present)
        assert rows.sum() == np.count_nonzero(present)
        assert sums.sum() == (weights.sum() if len(weights) else len(bits))
        named = key_marks(ordered_keys(bits.view(float)[present]), labels[present] == positive, weights[weights > 0])
        assert marks.sum(dtype=np.uint64) == named.sum(dtype=np.uint64)
        assert not marks[~rows.any(axis=1)].any()


def test_occupied_bins_are_the_same(compiled):
    """Also beside zero, at both ends, and with bins of one sign only."""
    generator = np.random.default_rng(5)
    for bits, labels, weights, positive, negative in blocks():
        for sample in (bits.view(float)[:64], np.array([0.25, 0.5, 0.5]), np.array([-3.0, -1.0, -1.0]), np.zeros(2)):
            bins = first_bins(np.sort(sample), int(generator.integers(2, 12)))
            results = []
            for kernels in (NumpyKernels(), compiled):
                for dtype in (np.int32, np.int64):
                    counts = Counts.zeros(2 * int(bins.half), len(weights) > 0, dtype, marked=True)
                    columns = bits, labels, weights, positive, negative
                    kernels.histogram(*columns, bins, counts.rows, counts.weight, marks=counts.marks)
                    number, low, high, found = kernels.occupied(counts, bins)
                    assert found.rows.dtype == np.int64
                    assert (found.weight is found.rows) == (not len(weights))
                    results.append((number, low, high, found.rows, found.weight, found.marks))
            for one in results[1:]:
                for reference, fast in zip(results[0], one, strict=True):
                    np.testing.assert_array_equal(reference, fast)
            number, low, high, rows = results[0][:4]
            assert (np.diff(number) < 0).all()
            assert (low <= high).all()
            assert (high[1:] < low[:-1]).all()
            assert (rows.sum(axis=1) > 0).all()


def test_histograms_note_the_same_only_scores(compiled):
    """Of every bin: no score, the one that was seen in it, or several."""
    for bits, labels, weights, positive, negative in blocks():
        bins = first_bins(np.sort(bits.view(float)[:64]), 8)
        count = 2 * int(bins.half)
        results = []
        for kernels in (NumpyKernels(), compiled):
            only = np.full(count, NONE)
            for part in (slice(0, 40), slice(40, None)):
                rows = np.zeros((count, 2), dtype=np.int64)
                sums = np.zeros((count, 2)) if len(weights) else rows
                columns = bits[part], labels[part], weights[part]
                kernels.histogram(*columns, positive, negative, bins, rows, sums, only)
            results.append(only)
        np.testing.assert_array_equal(*results)
        if len(bits) < 100:
            expected = np.full(count, NONE)
            for score in set((bits[weights > 0] if len(weights) else bits).tolist()):
                alone = np.zeros((count, 2), dtype=np.int64)
                NumpyKernels().histogram(np.array([score]), np.array([1]), NO_WEIGHTS, 1, 0, bins, alone, alone)
                (where,) = np.flatnonzero(alone.any(axis=1))
                expected[where] = score if expected[where] == NONE else SEVERAL
            np.testing.assert_array_equal(results[0], expected)


def test_tied_scores_have_a_bin_each():
    """Three decimals, zero too, of which a sample saw most."""
    scores = np.arange(1001) / 1000
    bins = first_bins(np.sort(np.random.default_rng(3).choice(scores, 4096)))
    only = np.full(2 * int(bins.half), NONE)
    rows = np.zeros((2 * int(bins.half), 2), dtype=np.int64)
    NumpyKernels().histogram(scores.view(np.int64), np.ones(1001, int), NO_WEIGHTS, 1, 0, bins, rows, rows, only)
    assert np.count_nonzero(rows.any(axis=1)) > 990
    assert np.count_nonzero(only == SEVERAL) < 10


@pytest.mark.parametrize("count", [1, 5, 40])
def test_the_rows_inside_some_ranges_are_the_same(compiled, count):
    generator = np.random.default_rng(count)
    for bits, labels, weights, positive, _ in blocks():
        low, high = ranges(generator, bits, count)
        rows = bits, labels, weights, positive
        results = [kernels.inside(*rows, KeyRanges.of(low, high)) for kernels in (NumpyKernels(), compiled)]
        for reference, fast in zip(*results, strict=True):
            np.testing.assert_array_equal(reference, fast)
            assert reference.dtype == fast.dtype
        keys = ordered_keys(bits.view(float))
        inside = ((keys[:, None] >= low) & (keys[:, None] <= high)).any(axis=1)
        inside &= weights > 0 if len(weights) else True
        for column, found in zip((keys, labels == positive, weights), results[0], strict=True):
            np.testing.assert_array_equal(found, column[inside] if len(column) else column)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 20_000])
def test_float32_scores_are_those_in_float64(kernels, size):
    """Converted piece by piece or all at once, +inf, −0 and denormals too; of NaN the number counts."""
    generator = np.random.default_rng(size)
    scores = generator.normal(size=size).astype(np.float32)
    special = np.float32([np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-45, 3.4028235e38, 1e-38])
    scores[::7] = generator.choice(special, len(scores[::7]))
    labels, doubles = generator.integers(0, 3, size), as_doubles(scores)
    weights = generator.integers(0, 3, size) / 2
    bins, ends = first_bins(np.sort(doubles)), ordered_keys(np.unique(doubles))
    low, high = ends[::50], ends[np.minimum(np.arange(0, len(ends), 50) + 25, len(ends) - 1)]
    for weight in (NO_WEIGHTS, weights):
        results = []
        for column in (kernels.column(scores), doubles.view(np.int64)):
            rows = np.zeros((2 * int(bins.half), 2), dtype=np.int64)
            sums = np.zeros(rows.shape) if len(weight) else rows
            only = np.full(len(rows), NONE)
            found = kernels.histogram(column, labels, weight, 1, 0, bins, rows, sums, only)
            inside = kernels.inside(column, labels, weight, 1, KeyRanges.of(low, high))
            results.append((*map(int, found[:2]), int(found[2]) % 2**64, rows, sums, only, *inside))
        for narrow, wide in zip(*results, strict=True):
            np.testing.assert_array_equal(narrow, wide)
    scores[::5] = np.nan
    found = kernels.histogram(kernels.column(scores), labels, NO_WEIGHTS, 1, 0, bins, rows, rows)
    assert int(found[1]) == len(scores[::5])


def test_a_range_that_ends_below_zero_does_not_hold_zero(kernels):
    scores = np.array([0.0, -0.0, -5e-324, 5e-324, -1.0])
    low, high = ordered_keys(np.array([-1.0])), np.array([KEY_OF_MINUS_ZERO])
    keys, _, _ = kernels.inside(scores.view(np.int64), np.ones(5), NO_WEIGHTS, 1, KeyRanges.of(low, high))
    np.testing.assert_array_equal(scores_of_keys(keys), [-5e-324, -1.0])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 4095, 4096, 4097, 20_000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_pieces_of_any_size_are_looked_at_whole(compiled, size, share):
    """Around the ends of the groups and pieces that the compiled kernel works in."""
    scores = np.random.default_rng(size).random(size)
    labels, ranges = (scores * 1000).astype(np.int64) % 2, KeyRanges.of(*ordered_keys(np.array([[0.0], [share]])))
    keys, classes, _ = compiled.inside(scores.view(np.int64), labels, NO_WEIGHTS, 1, ranges)
    np.testing.assert_array_equal(scores_of_keys(keys), scores[scores <= share])
    np.testing.assert_array_equal(classes, labels[scores <= share])


def test_kernels_add_to_what_is_there(kernels):
    """Blocks follow one another into the same arrays."""
    bits = np.array([0.5, -1.0, 0.5]).view(np.int64)
    labels, bins = np.array([1, 0, 1]), first_bins(np.array([0.5, 1.0]))
    once, twice = (np.zeros((2 * int(bins.half), 2), dtype=np.int64) for _ in range(2))
    for rows, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            kernels.histogram(bits, labels, NO_WEIGHTS, 1, 0, bins, rows, rows)
    assert once.sum() == 3
    np.testing.assert_array_equal(twice, 2 * once)


# Which kernels, and their cache


@pytest.fixture
def loading(monkeypatch):
    """A process that has done nothing yet."""
    fresh = core_kernels.Loading()
    monkeypatch.setattr(core_kernels, "LOADING", fresh)
    return fresh


def ended(loading):
    """Wait until the background has done what it was asked for."""
    done = threading.Event()
    loading.background.submit(done.set)
    assert done.wait(300)


def test_numpy_serves_until_enough_rows_have_been_read(compiled, loading):
    after = Settings().compile_after
    assert isinstance(core_kernels.available(after // 2, Settings()), NumpyKernels)
    assert core_kernels.compiled_judge(Settings()) is None
    assert isinstance(core_kernels.available(after, Settings()), NumpyKernels)  # begins to load, and does not wait
    ended(loading)
    assert isinstance(core_kernels.available(1, Settings()), type(compiled))
    assert core_kernels.compiled_judge(Settings()) is not None
    assert isinstance(core_kernels.available(10**9, Settings(kernels="numpy")), NumpyKernels)
    assert core_kernels.compiled_judge(Settings(kernels="numpy")) is None


def test_many_small_calls_load_the_compiled_kernels_too(compiled, loading):
    for _ in range(Settings().compile_after // core_kernels.ROWS_OF_A_CALL + 1):
        core_kernels.available(10, Settings())
    ended(loading)
    assert isinstance(core_kernels.available(10, Settings()), type(compiled))


def test_numpy_serves_where_numba_is_absent(monkeypatch, loading):
    monkeypatch.setattr(core_kernels, "has_numba", lambda: False)
    for sizes in (Settings(), Settings(kernels="compiled")):
        assert isinstance(core_kernels.available(10**9, sizes), NumpyKernels)
        assert core_kernels.compiled_judge(sizes) is None


def test_numpy_takes_the_place_of_a_kernel_that_is_not_compiled_yet(compiled, monkeypatch):
    """Nothing waits for a compiler; what is counted is the same before and after it is done."""
    from surecut.core.compiled import kernels as module

    asked = []
    names = {"HISTOGRAM", "INSIDE", "CODES", "RUNS", "COUNT_AT", "FLAGGED", "POSITIONS"}
    names |= {"COLUMN_CODES", "BEST_EDGES", "COLUMN_BINS", "COLUMN_ROWS"}
    for name in names:
        kernel = getattr(module, name)
        monkeypatch.setattr(kernel, "is_ready", lambda kind, prepare, name=name: asked.append(name))
        monkeypatch.setattr(kernel, "_compiled", None)  # cannot be called
    kernels = module.CompiledKernels()
    bits, labels = np.array([0.5, 0.25, 0.5]).view(np.int64), np.array([1, 0, 1])
    bins = first_bins(np.sort(bits.view(float)))
    rows = np.zeros((2 * int(bins.half), 2), dtype=np.int64)
    kernels.histogram(bits, labels, NO_WEIGHTS, 1, 0, bins, rows, rows)
    assert rows.sum(axis=0).tolist() == [1, 2]
    found = kernels.sorted_rows(bits, labels, 1, 0)
    assert (found.rows.tolist(), found.positives) == ([[0, 2], [1, 0]], 2)
    ranges_of_all = KeyRanges.of(*ordered_keys(np.array([[0.0], [9.0]])))
    assert len(kernels.inside(bits, labels, NO_WEIGHTS, 1, ranges_of_all)[0]) == 3
    matrices = bits[:, None].view(float), labels[:, None]
    assert not kernels.sorts_columns(*matrices)
    assert not kernels.bins_columns(*matrices)
    assert kernels.positions(np.array([1, 0, 1]), np.array([0, 1]), np.array([1, 3])).tolist() == [1, 0, 2]
    assert kernels.count_at(bits, labels, 1, 0, 0.5)[:5] == (2, 2, 2, 0, 0)
    assert kernels.flagged(bits, np.array([True, False, False, False]), np.int64(62)).tolist() == [0, 1, 2]
    assert set(asked) == names


def test_a_kernel_is_compiled_in_the_background(compiled):
    from surecut.core.compiled.kernel import Kernel

    kernel = Kernel(double)
    assert not kernel.is_ready((int,), lambda: (1,))
    ended(core_kernels.LOADING)
    assert kernel.is_ready((int,), lambda: (1,))


def test_sorted_rows_are_the_same(compiled):
    for bits, labels, weights, positive, negative in blocks():
        if len(weights):
            continue
        reference, fast = (
            kernels.sorted_rows(bits, labels, positive, negative) for kernels in (NumpyKernels(), compiled)
        )
        assert fast[2:] == reference[2:]
        if not reference.nans:
            np.testing.assert_array_equal(fast.keys, reference.keys)
            np.testing.assert_array_equal(fast.rows, reference.rows)
        assert reference.rows.sum() == len(bits)
        assert reference.positives == np.count_nonzero(labels == positive)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("runs", [1, 7, 5000])
def test_rows_are_put_in_order_of_their_runs(compiled, dtype, runs):
    random = np.random.default_rng(0)
    run = random.integers(0, runs, 4000).astype(dtype)
    ends = np.cumsum(np.bincount(run, minlength=runs))
    for kernels in (NumpyKernels(), compiled):
        free = np.append(0, ends[:-1])
        batches = run[:0], run[:1], run[1:3000], run[3000:]
        positions = np.concatenate([kernels.positions(batch, free, ends).copy() for batch in batches])
        assert sorted(positions.tolist()) == list(range(4000))
        assert (np.sort(run) == run[np.argsort(positions)]).all()
        assert free.tolist() == ends.tolist()
        assert kernels.positions(run[:1], free, ends) is None


def test_counts_at_a_threshold_are_the_same(compiled):
    for bits, labels, weights, positive, negative in blocks():
        if len(weights):
            continue
        scores = bits.view(float)
        for threshold in (-np.inf, -1.0, 0.0, float(scores[-1]), 2.0, np.inf):
            reference, fast = (
                kernels.count_at(bits, labels, positive, negative, threshold) for kernels in (NumpyKernels(), compiled)
            )
            assert fast == reference
            is_positive = labels == positive
            reached = (scores >= threshold) & (threshold < np.inf)
            assert reference == (
                np.count_nonzero(is_positive & reached),
                np.count_nonzero(reached),
                np.count_nonzero(is_positive),
                np.count_nonzero(~is_positive & (labels != negative)),
                np.count_nonzero(np.isnan(scores)),
                checksum(bits, is_positive),
            )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_flagged_rows_are_the_same(compiled, share):
    for bits, *_ in blocks():
        flags = np.random.default_rng(8).random(1 << 14) < share
        reference, fast = (kernels.flagged(bits, flags, np.int64(50)) for kernels in (NumpyKernels(), compiled))
        np.testing.assert_array_equal(fast, reference)
        expected = [row for row, bit in enumerate(bits.tolist()) if flags[bit >> 50]]
        assert reference.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_of_a_matrix_are_counted_and_collected_as_one_column_is(compiled, dtype, order):
    random = np.random.default_rng(5)
    scores = np.asarray(50 * random.normal(size=(300, 7)), dtype=dtype, order=order)
    truth = (random.random(scores.shape) < 0.3).astype(np.int64)
    if dtype != np.int32:
        scores[random.integers(300, size=5), random.integers(7, size=5)] = np.inf
    columns = [
        np.minimum(column.astype(float), np.finfo(dtype).max if dtype == np.float32 else np.inf)
        for column in np.ascontiguousarray(scores.T)
    ]
    bins = [first_bins(np.sort(column), 6) for column in columns]
    width = 2 * max(int(one.half) for one in bins)
    some = slice(2, 7)
    found = compiled.binned_columns(scores, truth, some, np.array(bins[some]), width)
    assert found.nans == 0
    expected = np.zeros((7, width, 2), dtype=np.int64)
    for i, column in enumerate(columns):
        labels = np.ascontiguousarray(truth[:, i])
        _, _, named = NumpyKernels().histogram(
            column.view(np.int64), labels, NO_WEIGHTS, 1, 0, bins[i], expected[i], expected[i]
        )
        if i >= some.start:
            assert found.checksums[i - some.start] == named % 2**64
    np.testing.assert_array_equal(found.counts, expected[some])

    entry = np.full((5, width), -1, dtype=np.int32)
    is_chosen = found.counts.any(axis=2) & (random.random((5, width)) < 0.4)
    is_chosen[3] = False
    chosen = np.argwhere(is_chosen)
    assert len(chosen) > 10
    entry[tuple(chosen.T)] = np.arange(len(chosen))
    of_labels = [chosen[chosen[:, 0] == i, 1] for i in range(5)]
    ends = np.array([[2 * own.min(), 2 * own.max() + 1] if len(own) else [1, 0] for own in of_labels])
    rows = found.counts[tuple(chosen.T)].sum(axis=1)
    starts = np.concatenate(([0], np.cumsum(rows)))
    keys, classes = compiled.collected_columns(scores, some, found.places, entry, ends.astype(np.uint16), starts)
    for one, (label, which) in enumerate(chosen):
        own = slice(starts[one], starts[one + 1])
        low, high = bins[2 + label].ends(np.array([which]))
        every = ordered_keys(columns[2 + label])
        inside = (every >= low) & (every <= high)
        inside &= found.places[label] >> 1 == which  # the two bins beside zero have the same ends
        np.testing.assert_array_equal(keys[own], every[inside])
        np.testing.assert_array_equal(classes[own], truth[inside, 2 + label])


def double(number):
    return 2 * number


def test_a_cache_that_fails_when_it_is_read_is_no_cache(compiled):
    from surecut.core.compiled.kernel import Kernel

    kernel = Kernel(double)
    calls = []

    def broken(*arguments):
        calls.append(arguments)
        raise EOFError("a truncated cache file")

    kernel._compiled = broken
    assert kernel(21) == 42
    assert kernel(4) == 8
    assert len(calls) == 1


def test_a_cache_with_no_place_to_write_is_no_cache(compiled, monkeypatch):
    from surecut.core.compiled import kernel as module

    original = module.numba.njit

    def njit(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return original(*arguments, **options)

    monkeypatch.setattr(module.numba, "njit", njit)
    assert module.Kernel(double)(21) == 42


SEARCH_IN_ANOTHER_PROCESS = """
import numpy as np
from surecut.core.bins import KeyRanges
from surecut.core.kernels import compiled
from surecut.core.keys import key_marks, ordered_keys, scores_of_keys
kernels = compiled()
bits = np.array([3.0, 1.0, 2.0, 10.0]).view(np.int64)
ranges = KeyRanges.of(*ordered_keys(np.array([[0.0], [9.0]])))
found = scores_of_keys(kernels.inside(bits, bits, np.empty(0), 0, ranges)[0])
print(found.min(), found.max())
"""


def run_with_cache(folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", SEARCH_IN_ANOTHER_PROCESS], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def cache(compiled, tmp_path_factory):
    """A folder with numba's cache of one kernel."""
    folder = tmp_path_factory.mktemp("numba")
    result = run_with_cache(folder)
    assert result.stdout.split() == ["1.0", "3.0"], result.stderr
    return folder


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"], ids=["index", "code"])
@pytest.mark.parametrize("garbage", [b"", b"garbage"], ids=["empty", "garbage"])
def test_a_spoiled_cache_on_disk_is_no_error(cache, suffix, garbage, tmp_path):
    shutil.copytree(cache, tmp_path / "numba")
    files = [path for path in (tmp_path / "numba").rglob(f"*{suffix}") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(garbage)
    result = run_with_cache(tmp_path / "numba")
    assert result.stdout.split() == ["1.0", "3.0"], result.stderr


def test_a_cache_folder_that_is_a_file_is_no_error(compiled, tmp_path):
    (tmp_path / "occupied").write_text("not a folder")
    result = run_with_cache(tmp_path / "occupied")
    assert result.stdout.split() == ["1.0", "3.0"], result.stderr
