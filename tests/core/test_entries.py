"""Entries: edges of one and of many samples, and the laws of coarser and finer resolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut.core.entries import Entries, concatenated, running_sums

COUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any)
SAMPLES = st.lists(st.lists(COUNTS, max_size=8), min_size=1, max_size=4)
"""Negatives and positives at each score of each sample."""


def entries_of(samples, *, weights=None):
    """Scores from high to low, those of each sample apart by ten; `weights` as the samples, None for counts."""
    sizes = [len(sample) for sample in samples]
    keys = np.array([1000 - 10 * i for size in sizes for i in range(size)], dtype=np.uint64)
    rows = np.array([counts for sample in samples for counts in sample], dtype=np.int64).reshape(-1, 2)
    weight = rows
    if weights is not None:
        weight = np.array([one for sample in weights for one in sample], dtype=float).reshape(-1, 2)
    return Entries.scores(keys, rows, weight, starts=np.concatenate(([0], np.cumsum(sizes))))


def cells(confusion):
    return np.column_stack([confusion.tp, confusion.fp, confusion.fn, confusion.tn])


def assert_same(mine, theirs):
    for name in ("starts", "low", "high", "rows", "weight", "absent", "exact"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), err_msg=name)
    assert mine.weighted == theirs.weighted


def groups(drawn, entries):
    """Firsts of some groups: every sample's first, and others as drawn."""
    own = set(entries.starts[:-1][np.diff(entries.starts) > 0].tolist())
    return np.array(sorted(own | {i for i in drawn if i < len(entries)}), dtype=np.intp)


SOME = st.sets(st.integers(0, 31))
WEIGHTED = pytest.mark.parametrize("weighted", [False, True])


def drawn_entries(samples, weighted):
    """Weights are eighths, whose sums are exact."""
    weights = [[(a / 8, b / 8) for a, b in sample] for sample in samples] if weighted else None
    return entries_of(samples, weights=weights)


# Edges


@WEIGHTED
@given(samples=SAMPLES)
def test_edges_are_what_counting_gives(weighted, samples):
    entries = drawn_entries(samples, weighted)
    absent = np.arange(2 * len(samples)).reshape(-1, 2).astype(entries.weight.dtype)
    entries = replace(entries, absent=absent)
    by_sample = np.split(entries.weight, entries.starts[1:-1])
    expected = []
    for own, (without_negatives, without_positives) in zip(by_sample, absent, strict=True):
        for accepted in range(len(own) + 1):
            fp, tp = own[:accepted].sum(axis=0)
            tn, fn = own[accepted:].sum(axis=0)
            expected.append((tp, fp, fn + without_positives, tn + without_negatives))
    np.testing.assert_array_equal(cells(entries.edges), expected)
    np.testing.assert_array_equal(entries.totals, [own.sum(axis=0) for own in by_sample] + absent)
    assert len(entries.edge_below) == len(entries)
    np.testing.assert_array_equal(entries.edge_starts, entries.starts + np.arange(len(samples) + 1))


def test_samples_without_entries_have_the_edge_that_accepts_nothing():
    entries = entries_of([[], [(1, 2)], [], []])
    assert entries.samples == 4
    np.testing.assert_array_equal(cells(entries.edges), [(0,) * 4, (0, 0, 2, 1), (2, 1, 0, 0), (0,) * 4, (0,) * 4])
    np.testing.assert_array_equal(entries.sample, [1])
    np.testing.assert_array_equal(entries.totals, [(0, 0), (1, 2), (0, 0), (0, 0)])
    alone = entries.of_sample(0)
    assert (len(alone), alone.samples, len(alone.edges.tp)) == (0, 1, 1)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_weights_are_added_up_from_both_ends(others):
    """Nothing is left below the last edge, and a small weight below a large one is all there."""
    one = [[0.0, 1e16], [0.1, 0.0], [0.2, 0.3], [0.3, 0.1], [0.0, 0.7]]
    weights = [[[1e20, 1e20]]] * others + [one]
    edges = entries_of([[(1, 1)] * len(sample) for sample in weights], weights=weights).of_sample(others).edges
    together = entries_of([[(1, 1)] * len(sample) for sample in weights], weights=weights).edges
    last = slice(2 * others, None)
    for own in (cells(edges), cells(together)[last]):
        assert own[-1, 2:].tolist() == [0, 0]
        assert own[-2, 2:].tolist() == [0.7, 0]
        assert own[-3, 2:].tolist() == [0.7 + 0.1, 0.3]
        assert own[0, :2].tolist() == [0, 0]
        assert own[2, :2].tolist() == [1e16, 0.1]


@given(st.lists(st.lists(st.floats(0, 1e6), max_size=9), min_size=1, max_size=6))
def test_running_sums_are_those_of_each_run_alone(runs):
    starts = np.concatenate(([0], np.cumsum([len(run) for run in runs])))
    values = np.array([value for run in runs for value in run])
    expected = np.concatenate([np.cumsum(run) for run in runs])
    np.testing.assert_array_equal(running_sums(values, starts), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_some_edges_are_those_of_all(weighted):
    rng = np.random.default_rng(3)
    samples = [[(int(a), int(b)) for a, b in rng.integers(0, 4, (size, 2))] for size in (3, 0, 1, 7)]
    weights = [[(a / 3, b / 7) for a, b in sample] for sample in samples] if weighted else None
    every = cells(entries_of(samples, weights=weights).edges)
    entries = entries_of(samples, weights=weights)
    sample = entries.of_edges(np.arange(len(samples)))
    for _ in range(20):
        which = np.sort(rng.choice(len(every), 4, replace=False))
        np.testing.assert_array_equal(cells(entries.edges_at(which, sample[which])), every[which])


# Which entries are wide


def test_a_single_row_and_a_single_score_cannot_be_divided():
    rows = np.array([[1, 0], [1, 1], [2, 0], [0, 1]])
    low, high = np.array([70, 50, 30, 10], dtype=np.uint64), np.array([79, 59, 30, 10], dtype=np.uint64)
    entries = Entries.of(low, high, rows, rows)
    assert entries.is_wide.tolist() == [False, True, False, False]
    assert entries.exact.tolist() == [False, False, True, True]
    assert Entries.of(low, high, rows, rows, exact=True).exact.all()


# Other resolutions


@WEIGHTED
@given(samples=SAMPLES, drawn=SOME)
def test_merged_entries_keep_some_of_the_edges(weighted, samples, drawn):
    entries = drawn_entries(samples, weighted)
    firsts = groups(drawn, entries)
    merged = entries.merged(firsts)
    assert (len(merged), merged.samples, merged.weighted) == (len(firsts), entries.samples, weighted)
    lasts = np.append(firsts, len(entries))[1:] - 1
    kept = np.sort(np.concatenate((entries.edge_starts[:-1], entries.edge_below[lasts])))
    np.testing.assert_array_equal(cells(merged.edges), cells(entries.edges)[kept])
    assert merged.exact.all()
    assert (merged.low <= merged.high).all()


def test_merged_ends_are_exact_where_those_of_the_parts_are():
    rows = np.array([[1, 1]] * 4)
    low = np.array([70, 50, 30, 10], dtype=np.uint64)
    exact = np.array([True, False, False, True])
    entries = Entries.of(low, low + np.uint64(5), rows, rows, exact=exact)
    assert entries.merged(np.array([0, 2])).exact.tolist() == [False, False]
    assert entries.merged(np.array([0])).exact.tolist() == [True]
    assert (entries.merged(np.array([0])).low[0], entries.merged(np.array([0])).high[0]) == (10, 75)


@WEIGHTED
@given(samples=SAMPLES, drawn=SOME, opened=SOME)
def test_what_is_merged_is_spliced_in_again(weighted, samples, drawn, opened):
    entries = drawn_entries(samples, weighted)
    firsts = groups(drawn, entries)
    merged = entries.merged(firsts)
    which = np.array([i in opened for i in range(len(merged))], dtype=bool)
    ends = np.append(firsts[1:], len(entries))
    sizes = (ends - firsts)[which]
    inside = np.repeat(which, ends - firsts)
    rows = entries.rows[inside]
    finer = Entries.scores(
        entries.low[inside],
        rows,
        entries.weight[inside] if weighted else rows,
        starts=np.concatenate(([0], np.cumsum(sizes))),
    )
    kept = np.flatnonzero(inside | np.isin(np.arange(len(entries)), firsts))
    assert_same(merged.spliced(which, finer), entries.merged(kept))


@WEIGHTED
@given(samples=SAMPLES, chosen=SOME)
def test_entries_as_samples_of_their_own_replace_themselves(weighted, samples, chosen):
    entries = drawn_entries(samples, weighted)
    which = np.array([i in chosen for i in range(len(entries))], dtype=bool)
    assert_same(entries.spliced(which, entries[which].one_each()), entries)
    assert entries[which].samples == entries.samples
    assert len(entries[which]) == which.sum()


@WEIGHTED
@given(samples=SAMPLES)
def test_samples_are_taken_apart_and_put_together(weighted, samples):
    entries = drawn_entries(samples, weighted)
    alone = [entries.of_sample(i) for i in range(entries.samples)]
    assert_same(concatenated(alone), entries)
    np.testing.assert_array_equal(np.concatenate([cells(one.edges) for one in alone]), cells(entries.edges))


def test_counts_beside_weights_become_weights():
    counted, weighed = entries_of([[(1, 2)]]), entries_of([[(1, 2)]], weights=[[(0.5, 0.25)]])
    both = concatenated((counted, weighed))
    assert both.weighted
    np.testing.assert_array_equal(both.weight, [(1, 2), (0.5, 0.25)])
    np.testing.assert_array_equal(both.rows, [(1, 2), (1, 2)])
