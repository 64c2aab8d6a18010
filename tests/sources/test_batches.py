"""Rows that are read as batches: as many passes as needed, all of which see the same rows."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surecut import tune_frame, tune_threshold
from surecut.core.search import SourceChangedError
from surecut.core.settings import using
from surecut.sources.batches import BatchSource
from surecut.sources.columns import Columns
from surecut.sources.readers import DuckReader
from surecut.tuning.request import Request
from surecut.tuning.tune import tune

duckdb = pytest.importorskip("duckdb")


def reads(monkeypatch):
    """The ranges that a DuckDB reader is asked for."""
    asked = []
    read = DuckReader.read

    def noted(self, within=None):
        asked.append(within)
        return read(self, within)

    monkeypatch.setattr(DuckReader, "read", noted)
    return asked


def test_one_pass_is_enough_where_the_first_rows_are_like_the_others(monkeypatch, make, same):
    asked = reads(monkeypatch)
    frame = make.many(200_000)
    with using(head=50_000):
        cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))
    assert asked == [None]


def test_two_passes_are_enough_where_they_are_not(monkeypatch, make, same):
    asked = reads(monkeypatch)
    frame = make.many(200_000)
    with using(head=50_000, kept_rows=100):
        cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))
    assert len(asked) == 2


def test_sorted_rows_give_the_same_cut(make, same):
    frame = make.many(100_000).sort_values("score", ascending=False)
    with using(head=10_000):
        cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))


def test_candidate_rows_are_kept_by_the_pass_that_counts_them(monkeypatch, make, same):
    """The first rows are unlike the others, so that none that matters is kept by the first pass."""
    kept = []
    count_parts = BatchSource.count_parts

    def noted(self, parts, keep):
        counts = count_parts(self, parts, keep)
        kept.append(keep and self.kept is not None)
        return counts

    monkeypatch.setattr(BatchSource, "count_parts", noted)
    frame = make.many(100_000).sort_values("score", ascending=False)
    with using(head=10_000, sorted_at_once=2, kept_share=1e-4):
        cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))
    assert any(kept)


def test_a_source_that_changes_between_passes_is_noticed(in_small_steps):
    query = "SELECT random() + (range % 3 = 0)::INT / 2 AS score, (range % 3 = 0)::INT AS label FROM range(20000)"
    relation = duckdb.connect().sql(query)

    def tuned_until_noticed():
        for _ in range(20):  # once in a while the few rows that are looked at again are as many
            tune_frame(relation, label="label", score="score")

    with using(kept_rows=0), pytest.raises(SourceChangedError, match=r"not deterministic .* persist it first"):
        tuned_until_noticed()


class ReplacedBatches:
    """Rows that become others after so many passes, as a file does that is replaced."""

    def __init__(self, before, after, passes):
        self.versions, self.passes, self.read_so_far = (before, after), passes, 0

    @property
    def schema(self):
        return self.versions[0].schema

    def read(self, within=None):
        version = self.versions[self.read_so_far >= self.passes]
        self.read_so_far += 1
        return iter(version.to_batches(max_chunksize=5_000))


def version(kind, weighted):
    """Rows, or rows that have as many of each class in each bin of every pass."""
    generator = np.random.default_rng(0)
    score = np.round(generator.random(40_000), 3) + 2.0**-20
    label = (generator.random(40_000) < score).astype(np.int8)
    weight = generator.integers(1, 9, 40_000) / 8
    if kind == "other scores":  # all of them a little higher
        score += 2.0**-45
    elif kind == "one other score":  # of the last row in the bin of each decimal: whichever is read again
        _, last = np.unique(np.round(score, 3)[::-1], return_index=True)
        score[len(score) - 1 - last] += 2.0**-45
    elif kind == "other weights":  # two that are swapped, of one class, at each score
        order = np.lexsort((label, score))
        alike = (np.diff(score[order]) == 0) & (np.diff(label[order]) == 0)
        weight[order[np.flatnonzero(alike)]] += 2.0**-30
    columns = {"score": score, "label": label} | ({"weight": weight} if weighted else {})
    return pa.table(columns)


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize(
    ("kind", "weighted"),
    [("one other score", False), ("one other score", True), ("other weights", True)],
)
@pytest.mark.parametrize(
    "sizes",
    [
        {"sorted_at_once": 10_000},  # rows are collected
        {"sorted_at_once": 2, "sorted_share": 2},  # bins are divided, and their rows kept
        {"sorted_at_once": 2, "sorted_share": 40_000},  # bins are drawn in, divided, and divided again
    ],
)
def test_rows_that_change_between_any_two_passes_are_noticed(kind, weighted, sizes, kernels):
    """Not only their numbers are compared, which are the same here."""
    before, after = version("", weighted), version(kind, weighted)
    columns = Columns("score", "label", "weight" if weighted else None)
    request = Request.of("f1")

    def tuned(passes):
        batches = ReplacedBatches(before, after, passes)
        with using(head=1_000, kept_share=1e-9, first_bits=6, rows_per_part=256, kernels=kernels, **sizes):
            (cut,) = tune(BatchSource(batches, columns, objectives=request.objectives), request)
        return cut, batches.read_so_far

    cut, passes = tuned(1_000)
    assert passes > 1
    assert cut.value == tuned(passes)[0].value
    for earlier in range(1, passes):
        with pytest.raises(SourceChangedError):
            tuned(earlier)


def test_rows_that_change_before_all_are_tallied_are_noticed():
    """A limit for weighted rows needs all of them once more."""
    request = Request.of("f1", confidence=0.9, weights="counts")
    before, after = (
        version(kind, True).set_column(2, "weight", pa.array(np.ones(40_000))) for kind in ("", "other scores")
    )
    for passes in (1, 1_000):
        batches = ReplacedBatches(before, after, passes)
        with using(head=1_000):
            source = BatchSource(batches, Columns("score", "label", "weight"), objectives=request.objectives)
            if passes > 1:
                tune(source, request)
                assert batches.read_so_far > 1
            else:
                with pytest.raises(SourceChangedError):
                    tune(source, request)


def replace_after(monkeypatch, passes, replace):
    """Let a file be replaced as soon as it is read for the given time."""
    read, done = DuckReader.read, []

    def noted(self, within=None):
        done.append(within)
        yield from read(self, within)
        if len(done) == passes:
            replace()

    monkeypatch.setattr(DuckReader, "read", noted)
    return done


@pytest.mark.parametrize("how", ["renamed", "in place", "removed"])
def test_a_file_that_is_replaced_while_it_is_read_is_noticed(how, tmp_path, monkeypatch):
    """Also where one pass is enough, as its rows may be of several files, and its columns were looked at before."""
    path, other = tmp_path / "rows.parquet", tmp_path / "other.parquet"
    pq.write_table(version("", False), path)
    pq.write_table(version("other scores", False), other)
    assert tune_frame(path, label="label", score="score").rows == 40_000

    def replace():
        if how == "renamed":
            os.replace(other, path)
        elif how == "removed":
            path.unlink()
        else:
            path.write_bytes(other.read_bytes())
            os.utime(path, ns=(1, 1))  # clocks of file systems may be too coarse for two writes of a test

    done = replace_after(monkeypatch, 1, replace)
    with using(head=1_000), pytest.raises(SourceChangedError, match="being written to"):
        tune_frame(path, label="label", score="score")
    assert done == [None]


def test_rows_that_are_kept_do_not_depend_on_their_file(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("label,score\n0,0.25\n1,0.75\n")
    replace_after(monkeypatch, 1, path.unlink)
    assert tune_frame(path, label="label", score="score").threshold == 0.5
