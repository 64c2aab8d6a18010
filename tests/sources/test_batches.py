"""Rows that are read as batches: as many passes as needed, all of which see the same rows."""

from __future__ import annotations

import pytest

from surecut import tune_frame, tune_threshold
from surecut.core.search import SourceChangedError
from surecut.core.settings import using
from surecut.sources.batches import BatchSource
from surecut.sources.readers import DuckReader

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
