"""Thresholds of many labels in SQL: what engines select is what the cut predicts."""

from __future__ import annotations

import datetime
import math
import sqlite3

import numpy as np
import pytest

from surecut import Confusion, Cut, MultilabelCut, apply_frame, get_metric
from surecut.decisions.sql import DIALECTS

THRESHOLDS = (0.5, math.inf, -math.inf, 0.25, 0.5, 5e-324)
SCORES = (-math.inf, -1.0, 0.0, 0.25, math.nextafter(0.5, 0), 0.5, 1.0, math.inf, math.nan, None)
NOON = datetime.datetime(2024, 5, 1, 12)

KINDS = {
    "text": (["plain", "it's", 'say "x"', "back\\slash'", "new\nline", "", "ß{x}", "A", "a"], "other", "VARCHAR"),
    "integers": ([0, 1, -7, 2**53 + 1], 2**53, "BIGINT"),
    "floats": ([0.5, -1e-300, 0.1 + 0.2, 3.0], 0.3, "DOUBLE"),
    "numbers": ([0.5, 2, np.int64(3), np.float32(0.25)], 4, "DOUBLE"),
    "booleans": ([True, np.bool_(False)], None, "BOOLEAN"),
    "dates": ([datetime.date(2024, 5, 1), datetime.date(1969, 12, 31)], datetime.date(2024, 5, 2), "DATE"),
    "times": (
        [NOON, NOON.replace(microsecond=5), np.datetime64("2024-05-02", "ns")],
        NOON.replace(hour=3),
        "TIMESTAMP",
    ),
}


def cut_of(labels, thresholds=THRESHOLDS):
    """A cut of some labels, whose thresholds are repeated."""
    known = get_metric("f1"), Confusion(1, 1, 1, 1)
    chosen = [thresholds[i % len(thresholds)] for i in range(len(labels))]
    cuts = [Cut(threshold, 0.5, *known, (-math.inf, threshold), 0.5) for threshold in chosen]
    return MultilabelCut.from_cuts(labels, cuts)


def predicted(cut, label, score):
    """What the cut says of a row."""
    if label not in cut or score is None:
        return False
    row = np.full((1, len(cut)), float(score))
    said = cut.predict(row, missing="negative")[0, list(cut).index(label)]
    assert said == cut[label].predict([score], missing="negative")[0]
    return bool(said)


def plain(value):
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def in_sqlite(cut, rows, by):
    def stored(value):
        return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else str(value)

    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE scored ({', '.join(by)}, score REAL)")
    holders = ", ".join("?" * (len(by) + 1))
    rows = [[stored(value) if isinstance(value, datetime.date) else value for value in row] for row in rows]
    connection.executemany(f"INSERT INTO scored VALUES ({holders})", rows)
    found = connection.execute(f"SELECT {cut.to_sql('score', by=by, dialect='sqlite')} FROM scored ORDER BY rowid")
    said = [flag for (flag,) in found]
    connection.close()
    return said


def in_duckdb(cut, rows, by, types, dialect="duckdb"):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(by, types, strict=True))
    connection.execute(f"CREATE TABLE scored (row INTEGER, {columns}, score DOUBLE)")
    holders = ", ".join("?" * (len(by) + 2))
    connection.executemany(f"INSERT INTO scored VALUES ({holders})", [(i, *row) for i, row in enumerate(rows)])
    expression = cut.to_sql("score", by=by, dialect=dialect)
    said = [flag for (flag,) in connection.execute(f"SELECT {expression} FROM scored ORDER BY row").fetchall()]
    if dialect == "duckdb":
        frame = apply_frame(connection.table("scored"), cut, score="score", by=by)
        assert [flag for (flag,) in frame.order("row").project("predicted").fetchall()] == said
    connection.close()
    return said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "duckdb, with standard SQL"])
def test_sql_selects_what_the_cut_predicts(kind, engine):
    labels, unknown, column = KINDS[kind]
    cut = cut_of(labels)
    pairs = [(label, score) for label in (*labels, unknown, None) for score in SCORES]
    rows = [(plain(label), score) for label, score in pairs]
    if engine == "sqlite":
        said = in_sqlite(cut, rows, ["label"])
    else:
        said = in_duckdb(cut, rows, ["label"], [column], dialect="duckdb" if engine == "duckdb" else "ansi")
    assert None not in said
    assert said == [predicted(cut, *pair) for pair in pairs]
    assert any(said)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_labels_may_come_from_several_columns(engine):
    parts = [(text, number, flag) for text in ("a", "b'") for number in (1, 2.5) for flag in (True, False)]
    cut = cut_of(parts)
    labels = [*parts, ("a", 3, True), ("c", 1, True), (None, 1, True), ("a", None, False)]
    rows = [(*label, score) for label in labels for score in SCORES]
    by, types = ["text", "number", "flag"], ["VARCHAR", "DOUBLE", "BOOLEAN"]
    said = in_sqlite(cut, rows, by) if engine == "sqlite" else in_duckdb(cut, rows, by, types)
    assert None not in said
    assert said == [predicted(cut, row[:3], row[3]) for row in rows]


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("shared", [True, False])
def test_labels_may_be_many(engine, columns, shared):
    labels = [f"label {i}" if columns == 1 else (f"label {i}", i) for i in range(3000)]
    cut = cut_of(labels, [0.5] if shared else np.random.default_rng(0).random(3000).tolist())
    names = ["text", "number"][:columns]
    chosen = [labels[i] for i in (0, 1, 1500, 2999)]
    pairs = [(label, score) for label in chosen for score in (0.1, 0.5, 0.9)]
    rows = [(*(label if columns == 2 else (label,)), score) for label, score in pairs]
    said = (
        in_sqlite(cut, rows, names) if engine == "sqlite" else in_duckdb(cut, rows, names, ["VARCHAR", "INT"][:columns])
    )
    assert said == [predicted(cut, *pair) for pair in pairs]


def test_a_cut_that_was_loaded_gives_the_same_expression(tmp_path):
    for labels, _, _ in KINDS.values():
        cut = cut_of(labels)
        cut.save(tmp_path / "cut.json")
        assert MultilabelCut.load(tmp_path / "cut.json").to_sql("s", by="b") == cut.to_sql("s", by="b")


def test_labels_without_a_threshold_are_left_out():
    assert cut_of(["a", "b"], [math.inf]).to_sql("score", by="tag") == "FALSE"
    assert cut_of(["a", "b"], [-math.inf]).to_sql("score", by="tag", dialect="sqlite") == (
        """("score" IS NOT NULL AND CASE WHEN "tag" IN ('a', 'b') THEN TRUE ELSE FALSE END)"""
    )


def test_texts_in_dialects():
    """BigQuery and Spark do not read a doubled quote as one, and five engines may read a backslash as an escape."""
    cut = cut_of(["it's\n\\"], [0.5])
    written = {
        **dict.fromkeys(("ansi", "duckdb", "sqlite"), "('it''s\n\\')"),
        "postgres": "(E'it''s\n\\\\')",
        "snowflake": "('it''s\n\\\\')",
        "mysql": "(CAST('it''s\n\\\\' AS BINARY))",
        **dict.fromkeys(("spark", "bigquery"), "('it\\'s\\n\\\\')"),
    }
    assert written.keys() == DIALECTS.keys()
    for name, text in written.items():
        assert f" IN {text} THEN" in cut.to_sql("score", by="tag", dialect=name)
    assert "`tag` IN (CAST('a' AS BINARY))" in cut_of(["a"], [0.5]).to_sql("score", by="tag", dialect="mysql")
    assert "IN (DATETIME '2024-05-01 12:00:00')" in cut_of([NOON], [0.5]).to_sql("score", by="tag", dialect="bigquery")
    assert '"a""b" IN (' in cut_of(["a"], [0.5]).to_sql("score", by='a"b')


@pytest.mark.parametrize(
    ("labels", "by", "reason"),
    [
        (["a", "b"], ["one", "two"], "such as 'a', do not come from 2 columns"),
        ([("a", 1), ("b", 2)], "one", "do not come from 1 column"),
        (["a", 3], "one", r"several types, text \('a'\) and number \(3\)"),
        ([True, 2], "one", "boolean .* and number"),
        ([None], "one", "the label None cannot be written in SQL"),
        ([math.nan], "one", "the label nan cannot be written"),
        ([math.inf], "one", "the label inf cannot be written"),
        ([NOON.replace(tzinfo=datetime.UTC)], "one", "without a time zone"),
        ([frozenset({1})], "one", "cannot be written in SQL: expected text"),
    ],
)
def test_labels_that_sql_cannot_hold_are_refused(labels, by, reason):
    with pytest.raises(ValueError, match=reason):
        cut_of(labels, [0.5]).to_sql("score", by=by)


def test_an_unknown_dialect_is_refused():
    with pytest.raises(
        ValueError, match=r"unknown SQL dialect 'postgresql': did you mean 'postgres'\? The names are a"
    ):
        cut_of(["a"], [0.5]).to_sql("score", by="tag", dialect="postgresql")
    with pytest.raises(ValueError, match="unknown SQL dialect 'oracle'"):
        cut_of(["a"], [0.5]).to_sql("score", by="tag", dialect="oracle")
