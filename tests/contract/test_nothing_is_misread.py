"""What goes in is read as it is written, or refused: files, missing scores, labels, outputs."""

from __future__ import annotations

import decimal
import json
import math
import os
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.multiclass import OneVsRestClassifier

import surecut
from surecut import (
    Cut,
    MissingRowsWarning,
    MultilabelCut,
    PlugInClassifier,
    ScoreSketch,
    ScoreTally,
    apply_frame,
    tune_frame,
    tune_threshold,
)
from surecut.confusion import Confusion
from surecut.metrics import CATALOGUE, Utility, get_metric
from surecut.positive_class import warn_of_assumed_positive

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
data_set = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")
typer_testing = pytest.importorskip("typer.testing")


def run(*arguments, code=0):
    """What a command prints, on both channels; user's mistakes leave no traceback."""
    from surecut.cli.app import app

    runner = typer_testing.CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def tuned_by_command(path, *options, folder):
    out = folder / "cut.json"
    run("tune", path, "--label", "label", "--score", "score", "--out", out, *options)
    return Cut.load(out)


# Files whose types differ

LABELS, SCORES = [0, 0, 1, 1, 0, 1], [0.0, 1.0, 1.0, 0.0, 0.25, 0.75]
FIRST_TYPES = {
    "integers": pyarrow.int64(),
    "small integers": pyarrow.int8(),
    "booleans": pyarrow.bool_(),
    "decimals": pyarrow.decimal128(3, 1),
    "float32": pyarrow.float32(),
}


def parquet_files(folder, kind, *, column="score", first=None, rest=None):
    """Two files of which the first has a narrower type in one column."""
    values = {"label": LABELS, "score": SCORES, "group": list("aababb")}
    narrow = values[column][:4] if first is None else first
    if pyarrow.types.is_decimal(kind):
        narrow = [decimal.Decimal(str(value)) for value in narrow]
    elif not pyarrow.types.is_floating(kind) and not pyarrow.types.is_string(kind):
        narrow = [bool(v) if pyarrow.types.is_boolean(kind) else int(v) for v in narrow]
    one = {name: values[name][:4] for name in values} | {column: pyarrow.array(narrow, kind)}
    two = {name: values[name][4:] for name in values} | ({column: rest} if rest is not None else {})
    for name, content in (("a.parquet", one), ("b.parquet", two)):
        parquet.write_table(pyarrow.table(content), folder / name)
    return folder


@pytest.mark.parametrize(
    ("kind", "path"), [*((kind, "*.parquet") for kind in FIRST_TYPES.values()), (pyarrow.int64(), "")], ids=str
)
def test_scores_of_the_second_file_are_read_in_their_own_type(tmp_path, kind, path):
    where = str(parquet_files(tmp_path, kind) / path)
    expected = tune_threshold(LABELS, SCORES, metric="accuracy")
    cut = tune_frame(where, label="label", score="score", metric="accuracy")
    assert (cut.threshold, cut.confusion, cut.fingerprint) == (
        expected.threshold,
        expected.confusion,
        expected.fingerprint,
    )
    by = tune_frame(where, label="label", score="score", metric="accuracy", by="group", average="micro")
    assert by.thresholds.tolist() == [expected.threshold] * 2
    applied = apply_frame(where, cut, score="score").df()
    assert sorted(applied["score"].tolist()) == sorted(SCORES)
    assert applied.sort_values(["score", "label"])["predicted"].tolist() == sorted(cut.predict(SCORES).tolist())


@pytest.mark.parametrize("kind", [pyarrow.int64(), pyarrow.decimal128(3, 1)], ids=str)
def test_commands_read_the_second_file_in_its_own_type(tmp_path, kind):
    (tmp_path / "data").mkdir()
    where = parquet_files(tmp_path / "data", kind) / "*.parquet"
    cut = tuned_by_command(where, "--metric", "accuracy", folder=tmp_path)
    assert cut.threshold == tune_threshold(LABELS, SCORES, metric="accuracy").threshold
    run("apply", where, "--cut", tmp_path / "cut.json", "--score", "score", "--out", tmp_path / "out.parquet")
    written = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert written["score"] == SCORES  # in the order of the files
    assert written["predicted"] == cut.predict(SCORES).tolist()


def test_boolean_labels_do_not_make_booleans_of_later_ones(tmp_path):
    parquet_files(tmp_path, pyarrow.bool_(), column="label", rest=[2, 0])
    for path in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(ValueError, match="label must hold two classes, found 3"):
            tune_frame(str(path), label="label", score="score")
    message = run("tune", tmp_path / "*.parquet", "--label", "label", "--score", "score", code=1)
    assert "must hold two classes" in message
    parquet_files(tmp_path, pyarrow.bool_(), column="label", rest=[0, 1])
    cut = tune_frame(str(tmp_path), label="label", score="score")
    assert cut.threshold == tune_threshold(LABELS, SCORES).threshold


BLANK_SECOND = {
    "labels": ([0, 0, 1, 1], None),
    "text labels": (["ham", "ham", "spam", "spam"], "spam"),
}


def half_blank_files(folder, labels, ending, blank_first):
    """Two files, one of which has no labels."""
    folder.mkdir()
    filled, blank = ("b", "a") if blank_first else ("a", "b")
    for name, column, scores in ((filled, labels, SCORES[:4]), (blank, None, SCORES[4:])):
        if ending == "parquet":
            column = pyarrow.nulls(len(scores)) if column is None else column
            parquet.write_table(
                pyarrow.table({"label": column, "score": scores, "group": ["g"] * len(scores)}),
                folder / f"{name}.parquet",
            )
        else:
            column = [""] * len(scores) if column is None else column
            lines = [f"{label},{score},g\n" for label, score in zip(column, scores, strict=True)]
            (folder / f"{name}.csv").write_text("label,score,group\n" + "".join(lines))
    return str(folder / f"*.{ending}")


@pytest.mark.parametrize("blank_first", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(("labels", "pos_label"), BLANK_SECOND.values(), ids=BLANK_SECOND)
def test_a_file_without_any_label_is_read_beside_one_with_labels(tmp_path, labels, pos_label, ending, blank_first):
    where = half_blank_files(tmp_path / "data", labels, ending, blank_first)
    expected = tune_threshold(labels, SCORES[:4], pos_label=pos_label)
    with pytest.warns(MissingRowsWarning, match="2 of 6 rows"):
        cut = tune_frame(where, label="label", score="score", pos_label=pos_label, missing="drop")
    assert (cut.confusion, cut.fingerprint) == (expected.confusion, expected.fingerprint)
    with pytest.warns(MissingRowsWarning, match="2 of 6 rows"):
        tune_frame(where, label="label", score="score", by="group", pos_label=pos_label, missing="drop")
    named = [] if pos_label is None else ["--pos-label", pos_label]
    by_command = tuned_by_command(where, "--missing", "drop", *named, folder=tmp_path)
    assert (by_command.confusion, by_command.fingerprint) == (expected.confusion, expected.fingerprint)
    with pytest.raises(ValueError, match="2 of 6 rows are null"):
        tune_frame(where, label="label", score="score", pos_label=pos_label)


@pytest.mark.parametrize(("labels", "pos_label"), BLANK_SECOND.values(), ids=BLANK_SECOND)
def test_a_data_set_may_have_files_without_any_label(tmp_path, labels, pos_label):
    half_blank_files(tmp_path / "data", labels, "parquet", blank_first=False)
    expected = tune_threshold(labels, SCORES[:4], pos_label=pos_label)
    with pytest.warns(MissingRowsWarning, match="2 of 6 rows"):
        cut = tune_frame(
            data_set.dataset(tmp_path / "data"), label="label", score="score", pos_label=pos_label, missing="drop"
        )
    assert cut.fingerprint == expected.fingerprint


def test_a_column_that_is_text_in_one_csv_file_is_text_in_all(tmp_path):
    for name, label in (("a", ""), ("b", "0"), ("c", "x")):
        (tmp_path / f"{name}.csv").write_text(f"label,score\n{label},0.5\n{label},0.25\n")
    with pytest.raises(ValueError, match=r"'0', 'x'"):
        tune_frame(str(tmp_path / "*.csv"), label="label", score="score", missing="drop")
    with pytest.warns(MissingRowsWarning):
        cut = tune_frame(str(tmp_path / "*.csv"), label="label", score="score", missing="drop", pos_label="x")
    assert cut.confusion.tp + cut.confusion.fn == 2


@pytest.mark.parametrize("column", ["label", "score"])
def test_types_without_a_common_one_are_refused_and_both_files_are_named(tmp_path, column):
    parquet_files(tmp_path, pyarrow.int64(), column=column, rest=["x", "y"])
    for attempt in (
        lambda: tune_frame(str(tmp_path), label="label", score="score"),
        lambda: tune_frame(str(tmp_path), label="label", score="score", by="group"),
    ):
        with pytest.raises(
            ValueError, match=rf"{column}' is of type BIGINT in .*a.parquet and of type VARCHAR in .*b.pa"
        ):
            attempt()
    message = run("tune", tmp_path / "*.parquet", "--label", "label", "--score", "score", code=1)
    assert "a.parquet and of type VARCHAR in" in message


def test_a_column_that_nobody_asks_for_may_have_any_types(tmp_path):
    for name, note in (("a", [1, 2]), ("b", ["x", "y"])):
        table = pyarrow.table({"label": [0, 1], "score": [0.25, 0.75], "note": note})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    cut = tune_frame(str(tmp_path), label="label", score="score")
    assert cut.confusion == Confusion(tp=2, fp=0, fn=0, tn=2)
    with pytest.raises(ValueError, match="'note' is of type BIGINT in"):  # a copy would have to hold it
        apply_frame(str(tmp_path), cut, score="score")


def test_a_column_that_a_file_lacks_is_not_made_up(tmp_path):
    parquet.write_table(pyarrow.table({"label": [0, 1], "score": [0.25, 0.75]}), tmp_path / "a.parquet")
    parquet.write_table(pyarrow.table({"label": [0, 1]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a.parquet has a column 'score', and .*b.parquet has not"):
        tune_frame(str(tmp_path), label="label", score="score")


def test_an_integer_that_has_no_double_is_refused_where_doubles_follow(tmp_path):
    parquet_files(tmp_path, pyarrow.int64(), first=[0, 1, 2**53 + 1, 3])
    for by in (None, "group"):
        with pytest.raises(ValueError, match=r"^score holds the integer 9007199254740993, beyond 2\*\*53"):
            tune_frame(str(tmp_path), label="label", score="score", by=by)
    assert "score holds the integer 9007199254740993, beyond 2**53" in run("tune", tmp_path, code=1)


@pytest.mark.parametrize("kind", FIRST_TYPES.values(), ids=FIRST_TYPES)
def test_a_data_set_with_the_first_files_type_is_refused_or_read_as_it_is(tmp_path, kind):
    opened = data_set.dataset(parquet_files(tmp_path, kind))
    for options in ({}, {"by": "group"}):
        with pytest.raises(
            ValueError, match=r"column 'score' is of type .* in the data set, as in .*a.parquet.*b.parq"
        ):
            tune_frame(opened, label="label", score="score", **options)
    schema = pyarrow.schema([("label", pyarrow.int64()), ("score", pyarrow.float64())])
    if not pyarrow.types.is_decimal(kind):
        wide = data_set.dataset(parquet_files(tmp_path, kind), schema=schema)
        expected = tune_threshold(LABELS, SCORES, metric="accuracy").threshold
        assert tune_frame(wide, label="label", score="score", metric="accuracy").threshold == expected


def test_polars_refuses_files_whose_types_differ(tmp_path):
    frame = polars.scan_parquet(parquet_files(tmp_path, pyarrow.int64()) / "*.parquet")
    with pytest.raises(polars.exceptions.PolarsError):
        tune_frame(frame, label="label", score="score")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("rows", [(12_000, 1), (1, 40)], ids=["in the last row", "in the last file"])
def test_a_fraction_behind_many_integers_is_not_rounded(tmp_path, suffix, rows):
    """DuckDB settles types by the first rows and files, and rounds what comes after them."""
    each, files = rows
    labels, scores = [], []
    (tmp_path / "data").mkdir()
    for number in range(files):
        some = [(i % 2, i % 2) for i in range(2 * each)] + ([(1, 0.75), (0, 0.25)] if number == files - 1 else [])
        labels, scores = labels + [y for y, _ in some], scores + [s for _, s in some]
        if suffix == ".csv":
            text = "label,score\n" + "".join(f"{y},{s}\n" for y, s in some)
        else:
            text = "".join(json.dumps({"label": y, "score": s}) + "\n" for y, s in some)
        (tmp_path / "data" / f"{number:02}{suffix}").write_text(text)
    path = tmp_path / "data" / f"*{suffix}"
    expected = tune_threshold(labels, scores)
    assert expected.interval == (0.25, 0.75)
    cut = tune_frame(str(path), label="label", score="score")
    assert (cut.threshold, cut.fingerprint) == (expected.threshold, expected.fingerprint)
    assert tuned_by_command(path, folder=tmp_path).interval == expected.interval
    for out in ("out.parquet", "out.csv"):
        run("apply", path, "--cut", tmp_path / "cut.json", "--score", "score", "--out", tmp_path / out)
    assert parquet.read_table(tmp_path / "out.parquet")["score"].to_pylist() == scores
    assert pandas.read_csv(tmp_path / "out.csv")["score"].tolist() == scores


def test_a_label_that_is_no_integer_behind_many_integers_is_not_rounded(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("label,score\n" + "0,0.25\n1,0.75\n" * 15_000 + "0.75,0.5\n")
    with pytest.raises(ValueError, match="label must hold two classes, found 3"):
        tune_frame(path, label="label", score="score")
    assert "must hold two classes, found 3: 0.0, 0.75, 1.0" in run(
        "tune", path, "--label", "label", "--score", "score", code=1
    )


def test_text_labels_in_a_later_csv_file_are_refused_or_listed(tmp_path):
    for number in range(14):
        labels = ("no", "yes") if number > 10 else (0, 1)
        (tmp_path / f"{number:02}.csv").write_text(f"label,score\n{labels[0]},0.25\n{labels[1]},0.75\n")
    (tmp_path / "13.csv").write_text("label,score\nham,0.25\nspam,0.75\n")
    with pytest.raises(ValueError, match=r"label must hold two classes, found 6"):
        tune_frame(str(tmp_path / "*.csv"), label="label", score="score")
    message = run("tune", tmp_path / "*.csv", "--label", "label", "--score", "score", code=1)
    assert "must hold two classes, found 6: '0', '1', 'ham'" in message


# A missing score means one thing everywhere

WITH_GAPS = np.array([0.25, 0.75, np.nan, np.inf, -np.inf, 0.5])


def cut_at(threshold):
    return Cut(threshold, 0.5, get_metric("f1"), Confusion(1, 1, 1, 1), (0.0, 1.0), 0.5)


def expected_at(threshold, scores=WITH_GAPS):
    return [bool(s >= threshold) and threshold < math.inf for s in scores]


THRESHOLDS = [0.5, -3.25, math.inf, -math.inf, 1e300]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_predict_refuses_a_missing_score_or_takes_it_for_negative(threshold):
    cut = cut_at(threshold)
    for scores in (WITH_GAPS, pandas.Series(WITH_GAPS, dtype="Float64"), [*map(float, WITH_GAPS[:2]), None]):
        with pytest.raises(ValueError, match=r"holds NaN in 1 of .* rows.*missing=\"negative\""):
            cut.predict(scores)
        given = [np.nan if s is None or s is pandas.NA else s for s in scores]
        assert cut.predict(scores, missing="negative").tolist() == expected_at(threshold, given)
    with pytest.raises(ValueError, match='missing must be "error" or "negative", got \'drop\''):
        cut.predict([0.5], missing="drop")


def test_predictions_of_many_labels_treat_missing_scores_alike():
    from scipy import sparse

    cut = MultilabelCut.from_cuts(range(len(THRESHOLDS)), [cut_at(t) for t in THRESHOLDS])
    matrix = np.tile(WITH_GAPS[:, None], len(THRESHOLDS))
    expected = np.column_stack([expected_at(t) for t in THRESHOLDS])
    for scores in (matrix, matrix.astype(np.float32), pandas.DataFrame(matrix)):
        with pytest.raises(ValueError, match=r"scores holds NaN.*missing=\"negative\""):
            cut.predict(scores)
        np.testing.assert_array_equal(cut.predict(scores, missing="negative"), expected)
    entries = sparse.csr_array(matrix)
    with pytest.raises(ValueError, match="scores holds NaN"):
        cut.predict(entries)
    never = expected & (matrix > -np.inf)  # an absent score is −inf, and is never predicted
    np.testing.assert_array_equal(cut.predict(entries, missing="negative").toarray(), never)


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("dialect", ["duckdb", "ansi", "snowflake", "postgres", "bigquery"])
def test_sql_is_false_for_a_missing_score_in_duckdb(threshold, dialect):
    """DuckDB holds NaN for the largest number, as Postgres, Snowflake and Spark do; it understands their words."""
    expression = cut_at(threshold).to_sql("the score", dialect).replace("`", '"').replace("FLOAT64", "DOUBLE")
    expression = expression.replace("IS_NAN", "isnan")
    frame = pyarrow.table({"the score": [*WITH_GAPS.tolist(), None]})
    said = [flag for (flag,) in duckdb.sql(f"SELECT {expression} FROM frame").fetchall()]
    assert len(frame) == len(said)
    assert said == [*expected_at(threshold), False]
    turned = [flag for (flag,) in duckdb.sql(f"SELECT NOT {expression} FROM frame").fetchall()]
    assert turned == [not flag for flag in said]  # the expression is one, whatever stands before it


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("dialect", ["sqlite", "mysql", "ansi"])
def test_sql_is_false_for_a_missing_score_in_sqlite(threshold, dialect):
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE scored ("the score" REAL)')
    connection.executemany("INSERT INTO scored VALUES (?)", [(float(s),) for s in WITH_GAPS])
    said = [
        flag for (flag,) in connection.execute(f"SELECT {cut_at(threshold).to_sql('the score', dialect)} FROM scored")
    ]
    connection.close()
    assert said == expected_at(threshold)


@pytest.mark.parametrize("missing", ["error", "negative"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_apply_command_refuses_a_missing_score_or_takes_it_for_negative(tmp_path, missing, ending):
    cut_at(0.5).save(tmp_path / "cut.json")
    scores = [0.25, 0.75, None, 0.5]
    if ending == ".csv":
        path = tmp_path / "new.csv"
        path.write_text("id,score\n" + "".join(f"{i},{'' if s is None else s}\n" for i, s in enumerate(scores)))
    else:
        path = tmp_path / "new.parquet"
        parquet.write_table(pyarrow.table({"score": [*scores[:2], float("nan"), 0.5]}), path)
    out = tmp_path / "out.parquet"
    options = ("apply", path, "--cut", tmp_path / "cut.json", "--out", out, "--missing", missing)
    if missing == "error":
        assert "1 of 4 rows have no score in 'score': fill them, or pass --missing negative" in run(*options, code=1)
        assert not out.exists()
    else:
        for asked in (options, options[:-2]):  # it is what happens unless said otherwise
            assert "2 of them positive" in run(*asked)
        assert parquet.read_table(out)["predicted"].to_pylist() == [False, True, False, True]
        run(*options, "--negative", "no", "--name", "word")
        assert parquet.read_table(out)["word"].to_pylist() == ["no", "1", "no", "1"]


@pytest.mark.parametrize("engine", [pandas.DataFrame, polars.DataFrame, polars.LazyFrame, pyarrow.table])
def test_apply_frame_is_false_for_a_missing_score(engine):
    frame = engine({"score": [0.25, 0.75, float("nan"), math.inf, None]})
    applied = apply_frame(frame, cut_at(0.5), score="score")
    applied = applied.collect() if hasattr(applied, "collect") else applied
    predicted = applied["predicted"]
    assert (predicted.to_pylist() if hasattr(predicted, "to_pylist") else predicted.to_list()) == [
        False, True, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_nan_in_a_parquet_file_is_seen_though_its_statistics_leave_it_out(tmp_path, threshold):
    """DuckDB's isnan() says of such a file that nothing in it is NaN, and its comparisons take NaN for a number."""
    path = tmp_path / "rows.parquet"
    scores = [0.25, 0.75, math.nan, 0.5]
    table = {"score": scores, "label": [0, 1, 0, 1], "key": list("aabb"), "weight": [1.0, 1.0, 1.0, math.nan]}
    parquet.write_table(pyarrow.table(table), path)
    cut = cut_at(threshold)
    said = duckdb.sql(f"SELECT {cut.to_sql('score', 'duckdb')} FROM '{path}'").fetchall()
    assert [flag for (flag,) in said] == expected_at(threshold, scores)
    for frame in (str(path), duckdb.read_parquet(str(path)), polars.scan_parquet(path)):
        applied = apply_frame(frame, cut, score="score")
        applied = applied.collect().to_pandas() if hasattr(applied, "collect") else applied.df()
        assert applied["predicted"].tolist() == expected_at(threshold, scores)
        groups = MultilabelCut.from_cuts(["a", "b"], [cut, cut])
        applied = apply_frame(frame, groups, score="score", by="key")
        applied = applied.collect().to_pandas() if hasattr(applied, "collect") else applied.df()
        assert sorted(applied["predicted"]) == sorted(expected_at(threshold, scores))
        for by in ({}, {"by": "key"}) if threshold == 0.5 else ():
            with pytest.raises(ValueError, match=r"1 of 4 rows are null or NaN \(1 without a score"):
                tune_frame(frame, label="label", score="score", **by)
            with pytest.warns(MissingRowsWarning, match=r"2 of 4 rows .*1 without a score, 1 without a weight"):
                tuned = tune_frame(frame, label="label", score="score", weight="weight", missing="drop", **by)
            assert np.sum(tuned.rows) == 2
    if threshold != 0.5:
        return
    cut.save(tmp_path / "cut.json")
    options = ("--cut", tmp_path / "cut.json", "--out", tmp_path / "out.csv", "--missing", "error")
    assert "1 of 4 rows" in run("apply", path, *options, code=1)
    assert "1 in 'score'" in run("tune", path, code=1)


def test_tuning_drops_missing_rows_when_asked():
    labels, scores, weights = [0, 1, 1, None, 0, 1], [0.25, 0.75, None, 0.5, 0.5, 0.125], [1, 1, 1, 1, math.nan, 1]
    with pytest.warns(
        MissingRowsWarning, match="3 of 6 rows .*1 without a score, 1 without a label, 1 without a weight"
    ):
        cut = tune_threshold(labels, scores, sample_weight=weights, missing="drop")
    expected = tune_threshold([0, 1, 1], [0.25, 0.75, 0.125], sample_weight=[1, 1, 1])
    assert cut == expected
    with pytest.raises(ValueError, match=r"NaN|missing"):
        tune_threshold(labels, scores, sample_weight=weights)
    with pytest.raises(ValueError, match='missing must be "error" or "drop"'):
        tune_threshold([0, 1], [0.25, 0.75], missing="negative")
    with pytest.raises(ValueError, match="nothing is left to tune on"):
        tune_threshold([0, 1], [math.nan, None], missing="drop")


def test_a_sketch_drops_missing_rows_when_asked():
    sketch, expected = ScoreSketch(), ScoreSketch()
    with pytest.raises(ValueError, match="holds NaN in 1 of 3 rows"):
        sketch.update([0, 1, 1], [0.25, 0.75, math.nan])
    assert not sketch.rows
    with pytest.warns(MissingRowsWarning, match="1 of 3 rows"):
        sketch.update([0, 1, 1], [0.25, 0.75, math.nan], missing="drop")
    with pytest.warns(MissingRowsWarning, match="2 of 2 rows"):  # a batch of a stream may hold nothing else
        sketch.update([0, 1], [None, math.nan], missing="drop")
    expected.update([0, 1], [0.25, 0.75])
    assert sketch == expected


# Which class is positive

X, TRUTH = np.random.default_rng(0).normal(size=(200, 2)), np.random.default_rng(1).random(200)
TRUTH = np.asarray(X[:, 0] + 0.5 * X[:, 1] > 1.5 * TRUTH)
FRAUD = np.where(TRUTH, "fraud", "legit")


def warned(metric="f1", y=FRAUD, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        PlugInClassifier(LogisticRegression(), metric=metric, cv=2, **options).fit(X, y)
    return [str(one.message) for one in told if one.category is surecut.PositiveClassWarning]


def test_a_class_that_is_taken_as_positive_is_named_with_its_share():
    (message,) = warned()
    share = np.mean(FRAUD == "legit")
    assert message.startswith(f"'legit' is taken as the positive class ({share:.3g} of the rows)")
    assert "f1 depends on which class is positive: pass pos_label='legit' or pos_label='fraud'" in message
    assert warned(y=np.where(TRUTH, 1, 2))
    assert issubclass(surecut.PositiveClassWarning, UserWarning)


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(surecut.PositiveClassWarning) as told:
        PlugInClassifier(LogisticRegression(), cv=2).fit(X, FRAUD)
    assert told[0].filename == __file__


@pytest.mark.parametrize("dtype", [bool, int, float, np.uint8])
@pytest.mark.parametrize("negative", [0, -1])
def test_labels_that_say_it_themselves_need_no_warning(dtype, negative):
    if negative == 0 or dtype in (int, float):
        assert not warned(y=np.where(TRUTH, 1, negative).astype(dtype))
    assert not warned(pos_label="legit")


SYMMETRIC = ("accuracy", "am", "youden", "kappa", "gilbert", "mcc", "gmean", "hmean")  # gilbert is κ/(2 − κ)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_warning_comes_where_swapping_the_classes_would_change_the_value(name):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_assumed_positive(np.array(["fraud", "legit"]), 0.9, [get_metric(name)])
    assert bool(told) == (name not in SYMMETRIC)


def test_costs_and_constraints_decide_whether_the_class_matters():
    assert not warned(Utility(tp=1, tn=1, fp=-3, fn=-3))
    assert warned(Utility(fp=-1, fn=-2))
    assert not warned(lambda confusion: (confusion.tp + confusion.tn) / confusion.total)
    assert warned(lambda confusion: confusion.tp / (confusion.tp + confusion.fp + 1))
    assert warned("accuracy", constraint="recall>=0.1")


def test_retargeting_to_a_metric_that_asks_for_it_names_the_class():
    fitted = PlugInClassifier(LogisticRegression(), metric="accuracy", cv=2).fit(X, FRAUD)
    with pytest.warns(surecut.PositiveClassWarning, match="'legit' is taken"):
        fitted.retarget("f1")


# Rows without a positive

NEGATIVES = {
    "numbers": ([0, 0, 0], None),
    "booleans": ([False, False, False], None),
    "numbers with a name": ([2, 2, 2], 3),
    "text": (["legit"] * 3, "fraud"),
    "NumPy text": (np.array(["legit"] * 3), np.str_("fraud")),
    "objects": (np.array(["legit"] * 3, dtype=object), "fraud"),
    "booleans with a name": ([True, True, True], False),
}
ENGINES = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "polars lazy": lambda columns: polars.DataFrame(columns).lazy(),
    "pyarrow": pyarrow.table,
    "duckdb": lambda columns: duckdb.connect().from_df(pandas.DataFrame(columns)),
    "ibis": lambda columns: pytest.importorskip("ibis").memtable(pandas.DataFrame(columns)),
}


def asked(labels, pos_label):
    """The same question to every function that takes labels."""
    scores = [0.25, 0.5, 0.75]
    yield lambda metric: tune_threshold(labels, scores, metric=metric, pos_label=pos_label)
    yield lambda metric: ScoreTally.from_scores(labels, scores, pos_label=pos_label).best_cut(metric)
    columns = {"label": list(np.asarray(labels).tolist()), "score": scores, "key": ["a", "a", "b"]}
    for name, make in ENGINES.items():
        frame = make(columns)
        for by in ({}, {"by": "key", "average": "micro"}) if name == "duckdb" else ({},):
            yield lambda metric, frame=frame, by=by: tune_frame(
                frame, label="label", score="score", metric=metric, pos_label=pos_label, **by
            )


@pytest.mark.parametrize(("labels", "pos_label"), NEGATIVES.values(), ids=NEGATIVES)
def test_rows_without_a_positive_are_taken_whatever_the_labels_are(labels, pos_label):
    for ask in asked(labels, pos_label):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            cut = ask("accuracy")
        absent = [one for one in told if one.category is surecut.AbsentPositiveWarning]
        assert bool(absent) == (pos_label is not None)
        assert all(one.filename == __file__ for one in absent)
        assert cut.value == 1.0
        assert np.all(cut.confusion.tp + cut.confusion.fp == 0)
        with pytest.raises(ValueError, match="f1 is undefined without rows of the positive class") as told:
            ask("f1")
        assert "positive class: all labels are negative" in str(told.value) or (
            f"pos_label={pos_label!r} is not among the labels in" in str(told.value)
            and f"which are all {np.asarray(labels).tolist()[0]!r}" in str(told.value)
        )


def test_a_positive_label_that_no_row_has_is_told_at_the_callers_line():
    labels, scores = ["spam"] * 3, [0.1, 0.2, 0.3]
    for ask in (
        lambda: tune_threshold(labels, scores, pos_label="Spam", metric="accuracy"),
        lambda: ScoreTally.from_scores(labels, scores, pos_label="Spam"),
        lambda: Confusion.from_predictions(labels, labels, pos_label="Spam"),
    ):
        with pytest.warns(surecut.AbsentPositiveWarning, match="pos_label='Spam' is not among .* all 'spam'") as told:
            ask()
        assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("kind", ["arrays", "pandas", "lazy", "by"])
def test_dropped_rows_are_told_at_the_callers_line(kind):
    frame = pandas.DataFrame({"label": [0, 1, 1, 0], "score": [0.25, 0.5, np.nan, 0.75], "group": list("aabb")})
    lazy = polars.from_pandas(frame).lazy()
    columns = {"label": "label", "score": "score", "missing": "drop"}
    ask = {
        "arrays": lambda: tune_threshold(frame["label"], frame["score"], missing="drop"),
        "pandas": lambda: tune_frame(frame, **columns),
        "lazy": lambda: tune_frame(lazy, **columns),
        "by": lambda: tune_frame(frame, **columns, by="group", average="micro", metric="accuracy"),
    }[kind]
    with pytest.warns(MissingRowsWarning) as told:
        ask()
    assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("labels", [["legit", "maybe", "legit"], [2, 4, 2]], ids=["text", "numbers"])
def test_an_absent_positive_among_two_other_labels_is_an_error_that_lists_them(labels):
    pos_label = "fruad" if isinstance(labels[0], str) else 3
    scores = [0.25, 0.5, 0.75]
    with pytest.raises(ValueError, match=r"is not among the labels in y_true, which are .*, "):
        tune_threshold(labels, scores, metric="accuracy", pos_label=pos_label)
    for make in ENGINES.values():
        frame = make({"label": labels, "score": scores})
        with pytest.raises(ValueError, match=r"is not among the labels in label, which are .*, "):
            tune_frame(frame, label="label", score="score", metric="accuracy", pos_label=pos_label)


def test_commands_take_rows_without_a_positive_and_advise_no_negative_label(tmp_path):
    words, numbers = tmp_path / "words.csv", tmp_path / "numbers.csv"
    words.write_text("label,score\n" + "legit,0.25\nlegit,0.75\n" * 5)
    numbers.write_text("label,score\n" + "0,0.25\n0,0.75\n" * 5)
    told = run("tune", words, "--metric", "accuracy", "--pos-label", "fraud", "--out", tmp_path / "cut.json")
    assert "the positive label 'fraud' is not among the labels in column 'label', which are all 'legit'" in told
    assert Cut.load(tmp_path / "cut.json").pos_label == "fraud"
    run("tune", numbers, "--metric", "accuracy")
    for arguments in ((words, "--pos-label", "fruad"), (numbers, "--pos-label", "1")):
        assert "f1 is undefined without rows of the positive class" in run("tune", *arguments, code=1)
    assert "'legit'" in run("tune", words, "--pos-label", "fruad", code=1)
    told = run("tune", words, code=1)
    assert "holds the label 'legit' only: say with --pos-label which label is positive, even if no row has it" in told
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("label,score\nlegit,0.25\nmaybe,0.75\n")
    assert "which are 'legit', 'maybe'" in run("tune", mixed, "--pos-label", "fraud", code=1)


@pytest.mark.parametrize("negative", ["legit", "0"])
def test_check_reads_new_rows_without_a_positive(tmp_path, negative):
    positive = "fraud" if negative == "legit" else "1"
    rng = np.random.default_rng(0)
    rows, new = tmp_path / "rows.csv", tmp_path / "new.csv"
    drawn = [(positive if rng.random() < s else negative, round(s, 3)) for s in rng.random(400).tolist()]
    rows.write_text("label,score\n" + "".join(f"{y},{s}\n" for y, s in drawn))
    new.write_text("label,score\n" + "".join(f"{negative},{s}\n" for _, s in drawn))
    run("tune", rows, "--metric", "accuracy", "--pos-label", positive, "--out", tmp_path / "cut.json")
    told = run("check", new, "--cut", tmp_path / "cut.json", code=3)
    assert "--pos-label" not in told
    assert "0 %" in told or "0.00" in told or "0%" in told


# Saved by another version


@pytest.mark.parametrize("kind", ["one label", "many labels"])
def test_a_cut_of_another_version_is_not_said_to_be_none(tmp_path, kind):
    path = tmp_path / "cut.json"
    cut = cut_at(0.5) if kind == "one label" else surecut.tune_thresholds([[0], [1]], [[0.25], [0.75]])
    cut.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 1}))
    with pytest.raises(ValueError, match=r"cut\.json was written by another version of surecut \(schema 1, this one"):
        type(cut).load(path)


# Copies of several files


@pytest.mark.parametrize("more_in", ["p1", "p2"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_files_with_different_columns_are_not_copied_into_one(tmp_path, ending, more_in):
    cut_at(0.5).save(tmp_path / "cut.json")
    for name in ("p1", "p2"):
        more = name == more_in
        (tmp_path / f"{name}.csv").write_text(f"score{',note' * more}\n0.25{',x' * more}\n0.75{',y' * more}\n")
    out = tmp_path / f"out.{ending}"
    options = ("--cut", tmp_path / "cut.json", "--score", "score", "--out", out)
    told = run("apply", tmp_path / "p*.csv", *options, code=1)
    assert "note" in told
    assert "p1.csv" in told
    assert "p2.csv" in told
    assert not out.exists()


# Decimals


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-7])
def test_decimals_that_are_the_text_of_doubles_are_taken(tmp_path, scale):
    rng = np.random.default_rng(0)
    doubles = (rng.random(300) * scale).tolist()
    labels = (rng.random(300) < 0.5).tolist()
    texts = [decimal.Decimal(repr(one)) for one in doubles]
    expected = tune_threshold(labels, doubles)
    assert tune_threshold(labels, texts).fingerprint == expected.fingerprint
    table = pyarrow.table({"label": labels, "score": pyarrow.array(texts, pyarrow.decimal128(38, 27))})
    parquet.write_table(table, tmp_path / "rows.parquet")
    for frame in (table, str(tmp_path / "rows.parquet"), polars.from_arrow(table).lazy()):
        cut = tune_frame(frame, label="label", score="score")
        assert (cut.threshold, cut.fingerprint) == (expected.threshold, expected.fingerprint)


def test_decimals_between_doubles_are_refused(tmp_path):
    one = 0.1234567890123456
    between = (decimal.Decimal(one) + decimal.Decimal(math.nextafter(one, 1))) / 2
    between = between.quantize(decimal.Decimal(10) ** -20)
    table = pyarrow.table({"label": [0, 1], "score": pyarrow.array([between, 1], pyarrow.decimal128(38, 20))})
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="1 number, such as"):
        tune_threshold([0, 1], [between, decimal.Decimal(1)])
    for frame in (table, str(tmp_path / "rows.parquet"), polars.from_arrow(table).lazy()):
        with pytest.raises(ValueError, match="1 number, such as"):
            tune_frame(frame, label="label", score="score")


# Metadata routing


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_routing_without_metadata_changes_nothing(routing):
    classifier = PlugInClassifier(LogisticRegression(), cv=3).fit(X, TRUTH)
    with sklearn.config_context(enable_metadata_routing=False):
        assert classifier.cut_ == PlugInClassifier(LogisticRegression(), cv=3).fit(X, TRUTH).cut_
    labels = np.column_stack([TRUTH, ~TRUTH]).astype(int)
    many = PlugInClassifier(OneVsRestClassifier(LogisticRegression()), cv=3).fit(X, labels)
    assert len(many.cut_) == 2


def test_routed_weights_reach_both_steps(routing):
    weights = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    classifier = PlugInClassifier(inner, cv=3).fit(X, TRUTH, sample_weight=weights)
    assert classifier.cut_.weighted
    with sklearn.config_context(enable_metadata_routing=False):
        expected = PlugInClassifier(LogisticRegression(), cv=3).fit(X, TRUTH, sample_weight=weights)
    assert classifier.cut_ == expected.cut_


def test_routed_groups_reach_the_splitter(routing):
    groups = np.arange(len(X)) % 7
    classifier = PlugInClassifier(LogisticRegression(), cv=GroupKFold(3)).fit(X, TRUTH, groups=groups)
    assert classifier.cut_.rows == len(X)


def test_routing_inside_a_grid_search(routing):
    search = GridSearchCV(PlugInClassifier(LogisticRegression(), cv=2), {"metric": ["f1", "am"]}, cv=2).fit(X, TRUTH)
    assert search.best_estimator_.cut_.rows == len(X)
    weighted = PlugInClassifier(LogisticRegression().set_fit_request(sample_weight=True), cv=2)
    weighted = weighted.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    search = GridSearchCV(weighted, {"metric": ["f1", "am"]}, cv=2).fit(X, TRUTH, sample_weight=np.ones(len(X)))
    assert search.best_estimator_.cut_.weighted


# Decision functions rank as the model does


class Scores(ClassifierMixin, BaseEstimator):
    """Scores each row by its first column."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


MAGNITUDES = np.array(
    sorted({s * m for s in (-1.0, 1.0) for m in (0.0, 5e-324, 1e-300, 1e-9, 0.25, 0.5, 1.0, 3.5, 1e9, 1e300, 1.7e308)})
)


def classifier_at(threshold, pos_label=1):
    classifier = PlugInClassifier(Scores().fit(X, [0, 1]), cv="prefit", pos_label=pos_label, metric="accuracy")
    classifier.fit(MAGNITUDES[:, None], np.arange(len(MAGNITUDES)) % 2)
    classifier.cut_ = cut_at(threshold)
    return classifier


@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize("threshold", [math.inf, -math.inf, 0.0, 0.5, -1e300, 1.7e308, -1.7e308, 5e-324])
def test_decision_function_ranks_as_the_model_and_agrees_with_predict(threshold, pos_label):
    scores = np.concatenate(([-np.inf], MAGNITUDES, [np.inf]))
    classifier = classifier_at(threshold, pos_label)
    decision = classifier.decision_function(scores[:, None])
    assert (np.diff(decision) >= 0).all()
    np.testing.assert_array_equal(decision > 0, classifier.predict(scores[:, None]) == 1)
    assert np.isfinite(decision[1:-1]).all()
    assert not np.isnan(decision).any()


def test_a_cut_that_predicts_nothing_keeps_scores_apart():
    scores = np.concatenate((np.linspace(-50, 50, 2001), [-1e15, 1e15]))
    decision = classifier_at(math.inf).decision_function(np.sort(scores)[:, None])
    assert (np.diff(decision) > 0).all()
    assert (decision < 0).all()
    expected = [s - 1 if s < 0 else -1 / (1 + s) for s in np.sort(scores)]
    np.testing.assert_array_equal(decision, expected)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_a_cut_that_predicts_nothing_can_be_judged_and_calibrated(pos_label):
    rng = np.random.default_rng(3)
    column = rng.normal(size=(300, 1))
    y = (rng.random(300) < 0.3 / (1 + np.exp(-column[:, 0]))).astype(int)
    utility = Utility(tp=1, fp=-100, tn=0, fn=0)  # no alarm is worth its price
    model = PlugInClassifier(LogisticRegression(), metric=utility, cv=3, pos_label=pos_label)
    if pos_label == 0:
        y = 1 - y
    fitted = model.fit(column, y)
    assert fitted.cut_.predicts_nothing
    decision = fitted.decision_function(column)
    assert roc_auc_score(y, decision) == roc_auc_score(y, fitted.predict_proba(column)[:, 1])
    margins = PlugInClassifier(Margins(), metric=model.metric, cv=3, pos_label=pos_label)
    calibrated = CalibratedClassifierCV(margins, cv=3).fit(column, y)
    assert np.isfinite(calibrated.predict_proba(column)).all()
    assert len(np.unique(calibrated.predict_proba(column)[:, 1])) > 100


class Margins(ClassifierMixin, BaseEstimator):
    """A logistic regression that shows its margins only."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def decision_function(self, X):
        return self.inner_.decision_function(X)


def test_labels_whose_cut_predicts_nothing_are_ranked_too():
    rng = np.random.default_rng(4)
    features = rng.normal(size=(200, 2))
    labels = (features + 3 * rng.normal(size=(200, 2)) > [0.0, 3.0]).astype(int)
    model = PlugInClassifier(OneVsRestClassifier(LogisticRegression()), metric=Utility(tp=1, fp=-100, tn=1), cv=3)
    fitted = model.fit(features, labels)
    assert (fitted.thresholds_ == np.inf).any()
    decision = fitted.decision_function(features)
    probabilities = fitted.predict_proba(features)
    np.testing.assert_array_equal(decision > 0, fitted.predict(features) == 1)
    for column in range(2):
        order = np.argsort(probabilities[:, column])
        assert (np.diff(decision[order, column]) >= 0).all()
    assert np.isfinite(decision).all()


# Commands lose no data

TABLE = "label,score\n0,0.25\n1,0.75\n0,0.5\n1,0.625\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "same.csv").write_text(TABLE)
    return tmp_path


def test_an_output_never_replaces_an_input(here):
    (here / "link.csv").symlink_to("same.csv")
    os.link(here / "same.csv", here / "hard.csv")
    (here / "sub").mkdir()
    for out in ("same.csv", "./same.csv", "sub/../same.csv", "link.csv", "hard.csv", here / "same.csv"):
        assert "is a file that is read" in run("tune", "same.csv", "--out", out, code=1)
        assert "is a file that is read" in run("tune", "s*.csv", "--out", out, code=1)
    (here / "page.html").write_text(TABLE)
    os.link(here / "page.html", here / "data.csv")
    assert "--report page.html is a file that is read" in run("tune", "data.csv", "--report", "page.html", code=1)
    cut_at(0.5).save("cut.json")
    for out in ("same.csv", "link.csv", "hard.csv"):
        assert "is a file that is read" in run("apply", "same.csv", "--cut", "cut.json", "--out", out, code=1)
    os.link(here / "cut.json", here / "cut.jsonl")
    assert "is a file that is read" in run("apply", "same.csv", "--cut", "cut.json", "--out", "cut.jsonl", code=1)
    assert (here / "same.csv").read_text() == (here / "hard.csv").read_text() == TABLE
    assert Cut.load("cut.json") == cut_at(0.5)


def test_two_outputs_never_share_a_file(here):
    for report in ("x.html", "./x.html", here / "x.html"):
        told = run("tune", "same.csv", "--out", "x.html", "--report", report, code=1)
        assert "--out and --report both write to" in told
    assert not (here / "x.html").exists()
    (here / "x.html").write_text("")
    (here / "y.html").symlink_to("x.html")
    assert "both write to" in run("tune", "same.csv", "--out", "x.html", "--report", "y.html", code=1)


NAMES = {"a[1].csv": "a1.csv", "a*.csv": "ab.csv", "a?.csv": "ab.csv", "a[[]1].csv": "a[1].csv"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", [".csv", ".parquet"])
def test_a_file_is_read_by_its_own_name(here, name, form):
    """Even if the name is also a pattern that other files match."""
    for file, shift in ((name, 0.0), (NAMES[name], 100.0)):
        frame = pandas.DataFrame({"label": [0, 1], "score": [0.25 + shift, 0.75 + shift]})
        if form == ".csv":
            frame.to_csv(here / file, index=False)
        else:
            frame.to_parquet(here / file.replace(".csv", form))
    path = name.replace(".csv", form)
    cut = tune_frame(path, label="label", score="score")
    assert (cut.threshold, cut.rows) == (0.5, 2)
    assert len(apply_frame(path, cut, score="score").df()) == 2
    assert tuned_by_command(path, folder=here).threshold == 0.5
    run("apply", path, "--cut", "cut.json", "--out", "out.csv")
    assert len(pandas.read_csv("out.csv")) == 2


def test_a_pattern_that_is_no_name_still_is_a_pattern(here):
    for part in ("one", "two"):
        (here / f"{part}.part.csv").write_text(TABLE)
    assert tune_frame("*.part.csv", label="label", score="score").rows == 8
    assert tuned_by_command("[ot]*.part.csv", folder=here).rows == 8
    (here / "odd[1]").mkdir()
    pandas.read_csv("same.csv").to_parquet("odd[1]/rows.parquet")
    assert tune_frame("odd[1]", label="label", score="score").rows == 4
    for attempt in ("none[1].csv", "none*.csv"):
        with pytest.raises(FileNotFoundError, match="no file matches none"):
            tune_frame(attempt, label="label", score="score")
        assert "no file matches none" in run("tune", attempt, code=1)


AMBIGUOUS = {
    "beside a whole number": ["3,185", "950", "12,000", "7"],
    "alone": ["3,185", "4,950", "1,500", "2,250"],
    "beside a decimal point": ["3,185", "0.5", "2,5", "1.25"],
}


@pytest.mark.parametrize("scores", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_comma_that_may_part_thousands_is_refused(tmp_path, scores):
    path = tmp_path / "rows.csv"
    path.write_text("label;score\n" + "".join(f"{i % 2};{s}\n" for i, s in enumerate(scores)))
    with pytest.raises(ValueError, match=r"holds numbers such as '.*,.*is the comma a decimal one, or does it"):
        tune_frame(path, label="label", score="score")
    assert "is the comma a decimal one" in run("tune", path, code=1)


@pytest.mark.parametrize("scores", [["0,185", "950", "0,5", "3,125"], ["3,185", "12,5", "1", "2"]], ids=str)
def test_a_comma_that_can_only_be_decimal_is_read(tmp_path, scores):
    path = tmp_path / "rows.csv"
    path.write_text("label;score\n" + "".join(f"{i % 2};{s}\n" for i, s in enumerate(scores)))
    numbers = [float(s.replace(",", ".")) for s in scores]
    expected = tune_threshold([0, 1, 0, 1], numbers)
    assert tune_frame(path, label="label", score="score").threshold == expected.threshold
    assert tuned_by_command(path, folder=tmp_path).threshold == expected.threshold


# --- Folders that are named like columns ------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_a_folder_named_like_a_column_does_not_replace_it(ending, tmp_path):
    random = np.random.default_rng(0)
    score = random.random(200)
    frame = pd.DataFrame({"y": (random.random(200) < score).astype(int), "p": score})
    expected = tune_threshold(frame["y"], frame["p"])
    folder = tmp_path / "p=0.7"
    folder.mkdir()
    path = folder / f"rows{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    out = tmp_path / "cut.json"
    run("tune", path, "--label", "y", "--score", "p", "--out", out)
    assert Cut.load(out).threshold == pytest.approx(expected.threshold, rel=1e-12)
    assert tune_frame(str(path), label="y", score="p").threshold == pytest.approx(expected.threshold, rel=1e-12)


def test_a_folder_that_no_column_is_named_like_is_a_column(tmp_path):
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "p": [0.1, 0.2, 0.3, 0.4]})
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        frame.to_parquet(tmp_path / f"day={day}" / "rows.parquet")
    assert len(tune_frame(str(tmp_path / "*" / "*.parquet"), label="y", score="p", by="day")) == 2


def test_folders_some_of_which_are_named_by_numbers_are_text(tmp_path):
    for day in ("01", "all"):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "rows.csv").write_text("y,p\n0,0.25\n1,0.75\n")
    assert tune_frame(tmp_path, label="y", score="p", by="day").labels == ("01", "all")


def test_unsigned_integers_of_two_sizes_are_read_in_the_larger_one(tmp_path):
    for name, kind, scores in (("a", pyarrow.uint8(), [1, 255]), ("b", pyarrow.uint16(), [2, 60_000])):
        table = pyarrow.table({"label": [0, 1], "score": pyarrow.array(scores, kind)})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    cut = tune_frame(tmp_path, label="label", score="score")
    expected = tune_threshold([0, 1, 0, 1], np.array([1, 255, 2, 60_000], dtype=np.uint16))
    assert (cut.fingerprint, cut.threshold) == (expected.fingerprint, expected.threshold)


@pytest.mark.parametrize("categories_first", [True, False])
def test_a_data_set_may_have_text_and_categories(tmp_path, categories_first):
    labels = pyarrow.array(["no", "yes"])
    files = [labels.dictionary_encode(), labels][:: 1 if categories_first else -1]
    for name, column in zip("ab", files, strict=True):
        parquet.write_table(pyarrow.table({"label": column, "score": [0.25, 0.75]}), tmp_path / f"{name}.parquet")
    options = {"label": "label", "score": "score", "pos_label": "yes"}
    assert tune_frame(data_set.dataset(tmp_path), **options).threshold == 0.5
    assert tune_frame(tmp_path, **options).threshold == 0.5
