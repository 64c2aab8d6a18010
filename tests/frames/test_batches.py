"""Rows that are read as batches: as many passes as needed, all of which see the same rows."""

from __future__ import annotations

import pytest

from surecut import tune_frame, tune_threshold
from surecut.frames import batches
from surecut.sources.readers import DuckReader
from surecut.sources.rows import SourceChangedError

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
    monkeypatch.setattr(batches, "HEAD", 50_000)
    asked = reads(monkeypatch)
    frame = make.many(200_000)
    cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))
    assert asked == [None]


def test_two_passes_are_enough_where_they_are_not(monkeypatch, make, same):
    monkeypatch.setattr(batches, "HEAD", 50_000)
    monkeypatch.setattr(batches, "KEPT_AT_MOST", 100)
    asked = reads(monkeypatch)
    frame = make.many(200_000)
    cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))
    assert len(asked) == 2


def test_sorted_rows_give_the_same_cut(monkeypatch, make, same):
    monkeypatch.setattr(batches, "HEAD", 10_000)
    frame = make.many(100_000).sort_values("score", ascending=False)
    cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))


def test_a_source_that_changes_between_passes_is_noticed(in_small_steps, monkeypatch):
    monkeypatch.setattr(batches, "KEPT_AT_MOST", 0)
    query = "SELECT random() + (range % 3 = 0)::INT / 2 AS score, (range % 3 = 0)::INT AS label FROM range(20000)"
    relation = duckdb.connect().sql(query)
    with pytest.raises(SourceChangedError, match=r"not deterministic .* persist it first"):
        tune_frame(relation, label="label", score="score")
