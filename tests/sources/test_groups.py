"""Rows of groups in memory: they are put in order as they come, and tuned as each group alone would be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from surecut import tune_frame, tune_threshold
from surecut.core.search import SourceChangedError
from surecut.core.settings import using
from surecut.sources.engines import EngineRows
from surecut.sources.groups import GroupSource
from surecut.sources.matrices import SparseSource

pd = pytest.importorskip("pandas")
duckdb = pytest.importorskip("duckdb")

COUNTS = np.array([[2, 1], [0, 3], [1, 0]])
PLACES = np.array([0, 3, 4, 3, 1, 0, 3])
SCORES = np.array([0.5, 0.25, 0.125, 0.75, 1.0, 0.375, 0.625])


def rows_in_batches(*sizes, weights=None):
    rows = GroupSource(COUNTS, COUNTS, np.dtype(float), weighted=weights is not None)
    ends = np.cumsum([0, *sizes])
    for first, end in itertools.pairwise(ends):
        rows.add(PLACES[first:end], SCORES[first:end], None if weights is None else weights[first:end])
    return rows


@pytest.mark.parametrize("sizes", [(7,), (1, 0, 6), (3, 4), (1,) * 7])
def test_rows_are_put_where_their_group_is(sizes):
    rows = rows_in_batches(*sizes, weights=10 * SCORES)
    rows.require_complete()
    runs = [sorted(rows.scores[a:b].tolist()) for a, b in itertools.pairwise(rows.starts)]
    assert runs == [[0.375, 0.5, 1.0], [0.25, 0.625, 0.75], [0.125]]
    assert rows.is_positive.tolist() == [False, False, True, True, True, True, False]
    assert rows.scores[rows.is_positive][0] == 1.0
    assert rows.entry_weights.tolist() == (10 * rows.scores).tolist()


def test_rows_of_more_groups_than_fit_in_a_half_word_are_put_where_they_belong():
    """Groups and positions in a batch are sorted as one integer, of 64 bits where 32 are too few."""
    groups, at_once = 1 << 17, 1 << 16
    random = np.random.default_rng(0)
    counts = np.column_stack((np.ones(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)))
    rows = GroupSource(counts, counts, np.dtype(float), weighted=False)
    order = random.permutation(groups)
    for some in np.split(order, groups // at_once):
        rows.add(2 * some, some.astype(float), None)
    rows.require_complete()
    assert np.array_equal(rows.scores, np.arange(groups))


@pytest.mark.parametrize(("groups", "at_once"), [(5, 4), (32, 4), (80, 10), (1000, 16)])
def test_many_groups_are_counted_together_as_long_as_each_core_has_several_blocks(groups, at_once):
    counts = np.ones((groups, 2), dtype=np.int64)
    with using(cores=2, labels_at_once=4):
        blocks = GroupSource(counts, counts, np.dtype(float), weighted=False).binned_blocks()
    assert [group for block in blocks for group in range(block.start, block.stop)] == list(range(groups))
    assert max(block.stop - block.start for block in blocks) == at_once


def test_rows_that_were_not_counted_or_do_not_come_are_noticed():
    with pytest.raises(SourceChangedError):
        rows_in_batches(6).require_complete()
    rows = rows_in_batches(7)
    with pytest.raises(SourceChangedError):
        rows.add(np.array([2]), np.array([0.5]), None)


CHANGES = {
    "no score": "score = NULL",
    "NaN": "score = 'nan'",
    "no label": "label = NULL",
    "no weight": "weight = NULL",
    "a weight of zero": "weight = 0",
    "a negative weight": "weight = -1",
    "an infinite weight": "weight = 'inf'",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_row_that_lost_a_value_since_it_was_counted_is_noticed(change, monkeypatch):
    """What rows are is asked once; the second pass reads them as they come."""
    connection = duckdb.connect()
    connection.sql(
        "CREATE TABLE rows AS SELECT range % 3 AS key, range / 8 AS score, (range % 2)::DOUBLE AS label, 1.5 AS weight "
        "FROM range(12)"
    )
    connection.sql("ALTER TABLE rows ALTER weight TYPE DOUBLE")
    counted = EngineRows.counted

    def counted_before(*arguments, **options):
        found = counted(*arguments, **options)
        connection.sql(f"UPDATE rows SET {change} WHERE score = 0.5")
        return found

    monkeypatch.setattr(EngineRows, "counted", counted_before)
    with pytest.raises(SourceChangedError):
        tune_frame(connection.table("rows"), label="label", score="score", weight="weight", by="key")


def table(kind, rows=3000):
    """Groups of unequal size, one of them without positives and one without negatives."""
    random = np.random.default_rng(0)
    group = np.sort(random.integers(0, 40, rows) ** 2 // 40)
    score = random.normal(size=rows)
    label = (score + random.normal(size=rows) > 1).astype(int)
    label[group == 3] = 0
    label[group == 5] = 1
    if kind == "int16":
        score = np.round(100 * score)
    elif kind.startswith("infinite"):
        score = np.where(np.abs(score) > 2, np.copysign(np.inf, score), score)
        kind = kind.removeprefix("infinite ")
    elif kind == "tied":
        score, kind = np.round(score, 1), "float64"
    frame = pd.DataFrame({"group": group, "score": score.astype(kind), "label": label})
    frame["weight"] = random.integers(0, 4, rows)
    return frame.sample(frac=1, random_state=0)


IN_BINS = {"binned_rows": 0, "binned_size": 0, "label_bits": 3, "label_group": 2, "labels_at_once": 7}


@pytest.mark.parametrize("kind", ["float64", "float32", "int16", "infinite float64", "infinite float32", "tied"])
@pytest.mark.parametrize("sizes", [{"batch": 100}, IN_BINS, IN_BINS | {"kernels": "numpy"}, {"entries_at_once": 64}])
@pytest.mark.parametrize("options", [{}, {"weight": "weight"}, {"average": "micro"}, {"metric": "mcc"}], ids=str)
def test_rows_in_memory_give_the_cuts_that_the_engine_gives(kind, sizes, options):
    frame = duckdb.connect().from_df(table(kind))
    columns = {"label": "label", "score": "score", "by": "group"} | options
    with using(grouped_bytes=0):
        expected = tune_frame(frame, **columns)
    with using(**sizes):
        cut = tune_frame(frame, **columns)
    assert cut.labels == expected.labels
    assert cut.thresholds.tolist() == expected.thresholds.tolist()
    assert cut.intervals.tolist() == expected.intervals.tolist()
    for cell in ("tp", "fp", "fn", "tn"):
        assert getattr(cut.confusion, cell).tolist() == getattr(expected.confusion, cell).tolist()
    assert cut.rows.tolist() == expected.rows.tolist()
    assert cut.checksums.tolist() == expected.checksums.tolist()
    assert cut.seen == expected.seen
    assert cut.shared_threshold == expected.shared_threshold


@pytest.mark.parametrize("kind", ["float64", "float32", "int16", "infinite float64", "infinite float32", "tied"])
def test_rows_in_memory_give_each_group_the_cut_of_its_rows(kind):
    frame = table(kind)
    cut = tune_frame(frame, label="label", score="score", by="group")
    for group, rows in frame.groupby("group"):
        if rows["label"].any():
            alone = tune_threshold(rows["label"], rows["score"])
            assert (cut[group].threshold, cut[group].value) == (alone.threshold, alone.value)


def test_a_score_that_is_nan_is_named():
    source = SparseSource(sparse.csr_array(np.eye(3)), sparse.csr_array(np.eye(3)), None)
    source.require_no_nan()
    source.scores[1] = np.nan
    with pytest.raises(ValueError, match="NaN in 1 of 3 rows"):
        source.require_no_nan()
