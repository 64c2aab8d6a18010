"""Names of columns and labels that try to leave their quotation marks: SQL stays one expression over these names."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from surecut import MultilabelCut, tune_threshold, tune_thresholds, tune_top_k
from surecut.decisions.sql import DIALECTS

HOSTILE = [
    "plain",
    "two words",
    "it's",
    'say "x"',
    "a`b",
    "``",
    '"" OR TRUE --',
    "`, 1 AS `x",
    "'); DROP TABLE scored; --",
    '"; DROP TABLE scored; --',
    "`; DROP TABLE scored; --",
    "\\",
    "a\\",
    "\\'; DROP TABLE scored; --",
    "\\`; DROP TABLE scored; --",
    '\\"; DROP TABLE scored; --',
    "\\\\'; DROP TABLE scored; --",
    "\\n\\u0027\\x27\\047",
    "new\nline\r\n-- comment",
    "/* comment */ -- comment",
    "$$; DROP TABLE scored; $$",
    "E'\\''",
    "{score} {0} %s %(x)s ? :x @x #x",
    "ß ﬁ 𝔘 \u2019 \u02bc \uff07 \u200b",
    "a.b.c",
    "NULL",
    "\t",
]
"""What stands for a column and for a label."""


def cut_by(labels) -> MultilabelCut:
    """A cut whose labels have thresholds of their own, all near 0.5."""
    scores = np.linspace(0, 1, 8)[:, None] + np.linspace(0, 0.1, len(labels))
    return tune_thresholds(np.tile(np.arange(8) >= 4, (len(labels), 1)).T, scores, labels=labels)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_expression_is_one_whatever_the_names(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    from sqlglot import exp

    labels, by = cut_by(HOSTILE), "tag"
    for column in HOSTILE:
        if dialect == "bigquery" and "." in column:
            continue  # no column of BigQuery has such a name, and sqlglot takes it for a path
        for expression, names, texts in (
            (tune_threshold([0, 1], [0.25, 0.75]).to_sql(column, dialect), {column}, set()),
            (labels.to_sql(column, by=by, dialect=dialect), {column, by}, set(HOSTILE)),
            (labels.to_sql(by, by=column, dialect=dialect), {column, by}, set(HOSTILE)),
        ):
            (statement,) = sqlglot.parse(f"SELECT {expression} FROM scored", dialect=dialect.replace("ansi", ""))
            assert isinstance(statement, exp.Select)
            (selected,) = statement.expressions
            assert isinstance(selected, exp.Paren)  # not an alias, not a list
            assert {one.this for one in selected.find_all(exp.Identifier)} == names
            assert {one.name for one in selected.find_all(exp.Column)} == names
            found = {one.name for one in selected.find_all(exp.Literal) if one.is_string} - {"NaN"}
            escaped = {one.this for one in selected.find_all(exp.ByteString)}  # E'...' in Postgres
            assert found | escaped == texts
            assert not list(selected.find_all(exp.Drop, exp.Command, exp.Subquery))
            assert not any(one.comments for one in statement.walk())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_rule_of_classes_is_one_expression_whatever_the_names(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    from sqlglot import exp

    columns = [one for one in HOSTILE if dialect != "bigquery" or "." not in one]
    y = np.array(columns)[np.arange(4 * len(columns)) % len(columns)]
    rule = tune_top_k(y, np.random.default_rng(0).random((len(y), len(columns))), k=1)
    case = rule.to_sql(dialect=dialect)
    (statement,) = sqlglot.parse(f"SELECT {case} FROM scored", dialect=dialect.replace("ansi", ""))
    (selected,) = statement.expressions
    assert isinstance(selected, exp.Case)
    assert {one.name for one in selected.find_all(exp.Column)} == set(columns)
    found = {one.name for one in selected.find_all(exp.Literal) if one.is_string} - {"NaN"}
    assert found | {one.this for one in selected.find_all(exp.ByteString)} == set(columns)
    assert not list(selected.find_all(exp.Drop, exp.Command, exp.Subquery))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_classes_of_any_name_are_predicted(dialect):
    connect = sqlite3.connect if dialect == "sqlite" else pytest.importorskip("duckdb").connect
    y = np.array(HOSTILE)[np.arange(4 * len(HOSTILE)) % len(HOSTILE)]
    rule = tune_top_k(y, np.random.default_rng(0).random((len(y), len(HOSTILE))), k=1)
    scores = np.random.default_rng(1).random((30, len(HOSTILE)))
    connection = connect(":memory:")
    columns = ", ".join(f"{DIALECTS[dialect].name(label)} DOUBLE" for label in rule.labels)
    connection.execute(f"CREATE TABLE scored (i INTEGER, {columns})")
    holders = ", ".join("?" * (len(HOSTILE) + 1))
    connection.executemany(
        f"INSERT INTO scored VALUES ({holders})", [(i, *row) for i, row in enumerate(scores.tolist())]
    )
    said = connection.execute(f"SELECT {rule.to_sql(dialect=dialect)} FROM scored ORDER BY i").fetchall()
    connection.close()
    assert [one for (one,) in said] == rule.predict(scores).tolist()


def rows_of(cut):
    """Each label with scores on both sides of its threshold, and what the cut predicts of them."""
    rows = [(label, score) for label in [*HOSTILE, "other", None] for score in (0.1, 0.5, 0.9, None)]
    expected = [
        label in cut and score is not None and score >= cut.thresholds[cut.position(label)] for label, score in rows
    ]
    assert 0 < sum(expected) < len(rows)
    return rows, expected


@pytest.mark.parametrize("column", HOSTILE)
def test_sqlite_runs_it(column):
    name = DIALECTS["sqlite"].name(column)
    cut = cut_by(HOSTILE)
    rows, expected = rows_of(cut)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE scored ({name} TEXT, score REAL)")
    connection.executemany("INSERT INTO scored VALUES (?, ?)", rows)
    for by, score in ((column, "score"), ("tag", column)):
        connection.execute("DROP TABLE IF EXISTS other")
        tag, number = DIALECTS["sqlite"].name(by), DIALECTS["sqlite"].name(score)
        connection.execute(f"CREATE TABLE other ({tag} TEXT, {number} REAL)")
        connection.executemany("INSERT INTO other VALUES (?, ?)", rows)
        said = connection.execute(f"SELECT {cut.to_sql(score, by=by, dialect='sqlite')} FROM other ORDER BY rowid")
        assert [bool(flag) for (flag,) in said] == expected
    assert connection.execute("SELECT count(*) FROM scored").fetchone() == (len(rows),)
    connection.close()


@pytest.mark.parametrize("dialect", ["duckdb", "ansi"])
def test_duckdb_runs_it(dialect):
    duckdb = pytest.importorskip("duckdb")
    cut = cut_by(HOSTILE)
    rows, expected = rows_of(cut)
    connection = duckdb.connect()
    for column in HOSTILE:
        for by, score in ((column, "score"), ("tag", column)):
            tag, number = (DIALECTS[dialect].name(name) for name in (by, score))
            connection.execute(f"CREATE OR REPLACE TABLE scored (row INTEGER, {tag} VARCHAR, {number} DOUBLE)")
            connection.executemany("INSERT INTO scored VALUES (?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
            query = f"SELECT {cut.to_sql(score, by=by, dialect=dialect)} FROM scored ORDER BY row"
            assert [flag for (flag,) in connection.execute(query).fetchall()] == expected
    connection.close()


def test_spark_runs_it(spark):
    labels = [*HOSTILE, "${spark.app.name}", "${env:HOME}", "$\\{x}"]
    cut = cut_by(labels)
    rows = [(label, score) for label in labels for score in (0.1, 0.9)]
    expected = [score >= cut.thresholds[cut.position(label)] for label, score in rows]
    names = [name for name in HOSTILE if name != "score"]
    for column in names:
        frame = spark.createDataFrame(rows, f"{DIALECTS['spark'].name(column)} string, score double")
        frame.createOrReplaceTempView("scored")
        expression = cut.to_sql("score", by=column, dialect="spark")
        assert [row[0] for row in frame.selectExpr(expression).collect()] == expected
        if column == names[0]:  # spark.sql replaces ${...} before it reads anything
            assert [row[0] for row in spark.sql(f"SELECT {expression} FROM scored").collect()] == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", ["nul\0byte", "half \ud800 a pair"])
def test_what_no_engine_can_hold_is_refused(dialect, text):
    with pytest.raises(ValueError, match=r"^the column .* cannot be written in SQL: .*; rename it"):
        tune_threshold([0, 1], [0.25, 0.75]).to_sql(text, dialect)
    with pytest.raises(ValueError, match=r"^the label .* cannot be written in SQL: .*; rename it"):
        cut_by(["a", text]).to_sql("score", by="tag", dialect=dialect)


def test_a_reference_to_settings_in_a_name_is_refused_for_spark():
    cut = tune_threshold([0, 1], [0.25, 0.75])
    with pytest.raises(ValueError, match=r"it contains '\$\{'"):
        cut.to_sql("${spark.app.name}", "spark")
    assert "${x}" in cut.to_sql("${x}", "duckdb")
