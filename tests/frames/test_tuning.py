"""tune_frame gives the cut of tune_threshold on the collected columns, on every engine, or a clear error."""

from __future__ import annotations

import decimal
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from surecut import (
    MultilabelCut,
    ScoreTally,
    apply_frame,
    certify,
    tune_frame,
    tune_threshold,
)
from surecut.constraints import InfeasibleError
from surecut.frames import batches, by_group, grouped
from surecut.frames.columns import MissingRowsWarning
from surecut.frames.readers import DuckReader
from surecut.multilabel.averaging import tune_tallies
from surecut.rows import SourceChangedError

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")

IN_PROCESS = {
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: polars.from_pandas(frame),
    "polars lazy": lambda frame, folder: polars.from_pandas(frame).lazy(),
    "pyarrow": lambda frame, folder: pyarrow.Table.from_pandas(frame),
    "pyarrow data set": lambda frame, folder: as_data_set(frame),
    "duckdb": lambda frame, folder: duckdb.connect().from_df(frame),
    "parquet": lambda frame, folder: as_parquet(frame, folder),
    "ibis": lambda frame, folder: ibis.memtable(frame),
}


def as_data_set(frame):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(pyarrow.Table.from_pandas(frame))


def as_parquet(frame, folder):
    path = folder / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pandas(frame), path, row_group_size=100)
    return path


@pytest.fixture(params=IN_PROCESS)
def engine(request, tmp_path):
    """How an engine holds a pandas frame."""
    make = IN_PROCESS[request.param]

    def held(frame):
        return make(frame, tmp_path)

    held.name = request.param
    return held


@pytest.fixture(scope="session")
def spark():
    """A Spark of two cores in this process."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    builder = sql.SparkSession.builder.master("local[2]").appName("surecut")
    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "2", "driver.memory": "1g", "log.level": "ERROR"}
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def dask_frames():
    """A Dask cluster of two workers, and its data frames."""
    distributed = pytest.importorskip("distributed")
    frames = pytest.importorskip("dask.dataframe")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        yield frames


@pytest.fixture
def in_small_steps(monkeypatch):
    """Settings with which a handful of rows is read in many batches and searched in many steps."""
    for module, settings in (
        (grouped, {"SHIPPED": 16, "PARTS": 16, "RUNS": 2}),
        (batches, {"BATCH": 32, "HEAD": 64, "KEPT_SHARE": 0.1}),
    ):
        for name, value in settings.items():
            monkeypatch.setattr(module, name, value)


def frame_of(sample, weights=None):
    columns = {"label": sample.labels, "score": sample.scores}
    return pandas.DataFrame(columns if weights is None else columns | {"weight": weights})


def assert_same(cut, expected, *, exactly=True):
    assert cut.value == (expected.value if exactly else pytest.approx(expected.value, rel=1e-12))
    assert (cut.threshold, cut.interval, cut.rows) == (expected.threshold, expected.interval, expected.rows)
    assert (cut.weighted, cut.constraints) == (expected.weighted, expected.constraints)
    if exactly:
        assert cut.confusion == expected.confusion


def check_contract(held, sample, metric="f1", **options):
    for name, weights in sample.weights.items():
        expected = tune_threshold(sample.labels, sample.scores, metric=metric, sample_weight=weights, **options)
        weight = None if weights is None else "weight"
        cut = tune_frame(
            held(frame_of(sample, weights)), label="label", score="score", weight=weight, metric=metric, **options
        )
        assert_same(cut, expected, exactly=name != "reals")


# The contract


def test_the_cut_is_that_of_the_collected_columns(engine, family, sample_of):
    if family == "float16" and engine.name not in ("pandas", "pyarrow", "pyarrow data set"):
        pytest.skip("the engine has no half floats")
    check_contract(engine, sample_of(family, 300))


@pytest.mark.parametrize("name", ["polars lazy", "pyarrow", "duckdb", "ibis"])
def test_it_is_in_many_small_steps_too(name, family, sample_of, in_small_steps, tmp_path):
    if family == "float16" and name != "pyarrow":
        pytest.skip("the engine has no half floats")
    sample = sample_of(family, 300)
    some = sample._replace(weights={"unweighted": None, "counts": sample.weights["counts"]})
    check_contract(lambda frame: IN_PROCESS[name](frame, tmp_path), some, metric="mcc")


def test_constraints_hold_on_every_engine(engine, sample_of, in_small_steps):
    check_contract(engine, sample_of("sigmoid", 400), metric="recall", constraint="precision>=0.5")
    sample = sample_of("sigmoid", 400)
    with pytest.raises(InfeasibleError, match="no cut meets predicted_positive_rate<=-1"):
        tune_frame(engine(frame_of(sample)), label="label", score="score", constraint="predicted_positive_rate<=-1")


def test_several_metrics_come_from_the_same_passes(engine, sample_of):
    sample = sample_of("sigmoid", 400)
    cuts = tune_frame(engine(frame_of(sample)), label="label", score="score", metric=["f1", "am", "gmean"])
    assert list(cuts) == ["f1", "am", "gmean"]
    for name, cut in cuts.items():
        assert_same(cut, tune_threshold(sample.labels, sample.scores, metric=name))


def test_a_function_of_the_confusion_is_tried_at_every_score(engine, sample_of):
    sample = sample_of("ties", 200)

    def closeness(confusion):
        return -np.abs(confusion.tp - 3 * confusion.fp)

    cut = tune_frame(engine(frame_of(sample)), label="label", score="score", metric=closeness)
    assert_same(cut, tune_threshold(sample.labels, sample.scores, metric=closeness))


def test_the_tally_comes_on_request(engine, sample_of):
    for family in ("sigmoid", "ties"):
        sample = sample_of(family, 300)
        weights = sample.weights["counts"]
        frame = engine(frame_of(sample, weights))
        cut, tally = tune_frame(frame, label="label", score="score", weight="weight", return_tally=True)
        expected = ScoreTally.from_scores(sample.labels, sample.scores, sample_weight=weights)
        assert tally == expected
        assert np.array_equal(tally.squares, expected.squares)
        assert_same(cut, expected.best_cut("f1"))
        cut, tally = tune_frame(frame, label="label", score="score", return_tally=True)
        assert cut.fingerprint == tune_threshold(sample.labels, sample.scores).fingerprint
        assert certify(cut, tally=tally, method="uniform").lower <= cut.value


def test_spark_gives_the_same_cut(spark, sample_of, monkeypatch):
    families = ("sigmoid", "float32_infinities", "all_magnitudes", "large_integers", "signed_zeros", "denormal")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PySpark's, of the newest pandas
        for family in families:
            sample = sample_of(family, 300)
            weights = sample.weights["counts"]
            held = spark.createDataFrame(frame_of(sample, weights))
            cut = tune_frame(held, label="label", score="score", weight="weight")
            assert_same(cut, tune_threshold(sample.labels, sample.scores, sample_weight=weights))
        monkeypatch.setattr(grouped, "SHIPPED", 16)
        sample = sample_of("outliers", 300)
        held = spark.createDataFrame(frame_of(sample))
        assert_same(tune_frame(held, label="label", score="score"), tune_threshold(sample.labels, sample.scores))
        monkeypatch.setattr(by_group, "SHIPPED", 50)
        frame = groups_frame(300)
        held = spark.createDataFrame(frame)
        cut = tune_frame(held, label="label", score="score", by=["key", "part"])
        assert_same_groups(cut, expected_groups(frame))
        applied = apply_frame(held, cut, score="score", by=["key", "part"]).toPandas()
        assert int(applied["predicted"].sum()) == int((cut.confusion.tp + cut.confusion.fp).sum())


CONNECT = """
import json, sys, warnings
warnings.simplefilter("ignore")
import pandas
from pyspark.sql import SparkSession
from surecut import tune_frame
spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
frame = spark.createDataFrame(pandas.DataFrame(json.load(open(sys.argv[1]))))
cut = tune_frame(frame, label="label", score="score")
json.dump([type(frame).__module__, cut.to_dict()], open(sys.argv[2], "w"))
"""


def test_spark_connect_gives_the_same_cut(tmp_path, sample_of):
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    sample = sample_of("sigmoid", 200)
    rows, result = tmp_path / "rows.json", tmp_path / "cut.json"
    rows.write_text(json.dumps({"label": sample.labels.tolist(), "score": sample.scores.tolist()}))
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(rows), str(result)], capture_output=True, text=True, timeout=300
    )
    assert result.exists(), done.stderr[-2000:]
    module, cut = json.loads(result.read_text())
    assert "connect" in module
    expected = tune_threshold(sample.labels, sample.scores).to_dict()
    assert {**cut, "tuning": None} == {**expected, "tuning": None}


def test_dask_gives_the_same_cut(dask_frames, sample_of, monkeypatch):
    for family in ("sigmoid", "infinities", "all_magnitudes"):
        sample = sample_of(family, 300)
        weights = sample.weights["counts"]
        held = dask_frames.from_pandas(frame_of(sample, weights), npartitions=2)
        cut = tune_frame(held, label="label", score="score", weight="weight")
        assert_same(cut, tune_threshold(sample.labels, sample.scores, sample_weight=weights))
    frame = groups_frame(200)
    cut = tune_frame(dask_frames.from_pandas(frame, npartitions=2), label="label", score="score", by=["key", "part"])
    assert_same_groups(cut, expected_groups(frame))


# Kinds of columns

KINDS = {
    "booleans": (lambda labels: labels.astype(bool), None),
    "minus one": (lambda labels: 2 * labels - 1, None),
    "floats": (lambda labels: labels.astype(float), None),
    "text": (lambda labels: np.where(labels, "spam", "ham"), "spam"),
    "categories": (lambda labels: pandas.Categorical(np.where(labels, "spam", "ham")), "spam"),
    "other numbers": (lambda labels: labels + 6, 7),
    "bytes": (lambda labels: labels.astype(np.uint8), None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_many_kinds(engine, kind, sample_of, in_small_steps):
    convert, pos_label = KINDS[kind]
    sample = sample_of("sigmoid", 200)
    frame = frame_of(sample).assign(label=convert(sample.labels))
    cut = tune_frame(engine(frame), label="label", score="score", pos_label=pos_label)
    assert_same(cut, tune_threshold(sample.labels, sample.scores))
    assert cut.pos_label == pos_label


def test_decimal_scores(engine, sample_of):
    if engine.name in ("ibis", "polars", "polars lazy", "duckdb"):
        make = {"polars": lambda t: polars.from_arrow(t), "polars lazy": lambda t: polars.from_arrow(t).lazy()}
        make |= {"duckdb": lambda t: duckdb.connect().from_arrow(t), "ibis": ibis.memtable}
        held = make[engine.name]
    else:
        held = None
    scores = [decimal.Decimal(n) / 100 for n in (12, 40, 35, 80)]
    table = pyarrow.table({"label": [0, 0, 1, 1], "score": pyarrow.array(scores, pyarrow.decimal128(10, 2))})
    frame = held(table) if held else engine(table.to_pandas())
    cut = tune_frame(frame, label="label", score="score")
    assert_same(cut, tune_threshold([0, 0, 1, 1], [0.12, 0.4, 0.35, 0.8]))


def test_csv_files_and_globs(tmp_path, sample_of):
    sample = sample_of("sigmoid", 300)
    frame = frame_of(sample)
    frame[:100].to_csv(tmp_path / "a.csv", index=False)
    frame[100:].to_csv(tmp_path / "b.csv", index=False)
    expected = tune_threshold(sample.labels, sample.scores)
    assert_same(tune_frame(str(tmp_path / "*.csv"), label="label", score="score"), expected)
    (tmp_path / "folder").mkdir()
    as_parquet(frame, tmp_path / "folder")
    assert_same(tune_frame(tmp_path / "folder", label="label", score="score"), expected)


# What is refused


def small(**columns):
    return pandas.DataFrame({"label": [0, 1, 1, 0], "score": [0.1, 0.2, 0.3, 0.4]} | columns)


REFUSED = {
    "no such column": (small(), {"score": "scores"}, "there is no column 'scores' in the frame: did you mean 'score'?"),
    "three classes": (small(label=[0, 1, 2, 1]), {}, "label must hold two classes, found 3"),
    "minus one and zero": (small(label=[0, 1, -1, 1]), {}, "label must hold two classes, found 3"),
    "text": (small(label=["a", "b", "b", "a"]), {}, "label holds the labels 'a', 'b': say which one is positive"),
    "which number": (small(label=[1, 2, 2, 1]), {}, "say which one is positive|not known which label is positive"),
    "absent": (small(label=["a", "b", "b", "a"]), {"pos_label": "c"}, "pos_label='c' is none of the labels in label"),
    "third text": (small(label=["a", "b", "c", "a"]), {"pos_label": "a"}, "label must hold two classes, found 3"),
    "NaN": (small(score=[0.1, np.nan, 0.3, 0.4]), {}, "1 of 4 rows are null or NaN.*1 without a score.*missing="),
    "no label": (small(label=[0, 1, None, None]), {}, "2 of 4 rows are null or NaN.*2 without a label"),
    "no weight": (small(w=[1, 1, 1, None]), {"weight": "w"}, "1 of 4 rows are null or NaN.*1 without a weight"),
    "negative weight": (small(w=[1.0, -1, 1, 1]), {"weight": "w"}, "w must be finite and not negative"),
    "zero weights": (small(w=[0.0, 0, 0, 0]), {"weight": "w"}, "w is zero in all 4 rows"),
    "large integers": (small(score=[1, 2, 3, 2**53 + 2]), {}, "beyond 2\\*\\*53"),
    "no rows": (small()[:0], {}, "holds no rows"),
    "policy": (small(), {"missing": "ignore"}, 'missing must be "error" or "drop", got \'ignore\''),
    "average": (small(g=1), {"by": "g", "average": "samples"}, 'average must be "macro" or "micro"'),
    "no metric": (small(), {"metric": []}, "metric is an empty list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tuned_is_refused(engine, case):
    frame, options, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        tune_frame(engine(frame), **{"label": "label", "score": "score"} | options)


@pytest.mark.parametrize("case", ["three classes", "third text", "NaN", "no label", "negative weight", "absent"])
def test_it_is_refused_in_many_small_steps_too(engine, case, in_small_steps):
    frame, options, message = REFUSED[case]
    frame = pandas.concat([small()] * 60 + [frame], ignore_index=True)
    if case in ("third text", "absent"):
        frame["label"] = ["a", "b"] * 120 + list(REFUSED[case][0]["label"])
    if "weight" in options:
        frame["w"] = frame["w"].fillna(1.0)
    with pytest.raises(ValueError, match=message.replace("of 4 rows", "of 244 rows")):
        tune_frame(engine(frame), **{"label": "label", "score": "score"} | options)


def test_text_is_no_score(engine):
    with pytest.raises(TypeError, match="score must be numbers"):
        tune_frame(engine(small(score=["a", "b", "c", "d"])), label="label", score="score")


def test_other_things_are_no_frames(tmp_path):
    with pytest.raises(TypeError, match=r"expected a pandas, Polars, .* got list"):
        tune_frame([1, 2], label="label", score="score")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        tune_frame(tmp_path / "none.parquet", label="label", score="score")
    (tmp_path / "rows.xlsx").write_text("")
    with pytest.raises(ValueError, match="expected a Parquet or CSV file"):
        tune_frame(tmp_path / "rows.xlsx", label="label", score="score")
    reader = pyarrow.Table.from_pandas(small()).to_reader()
    with pytest.raises(TypeError, match="can be read only once"):
        tune_frame(reader, label="label", score="score")


def test_missing_rows_are_dropped_on_request_and_reported(engine):
    frame = small(
        label=pandas.array([0, 1, 1, None], dtype="Int8"), score=[0.1, 0.2, np.nan, 0.4], w=[1.0, 2.0, 1.0, 1.0]
    )
    with pytest.warns(MissingRowsWarning, match=r"dropped rows: 2 of 4 rows .*1 without a score, 1 without a label"):
        cut = tune_frame(engine(frame), label="label", score="score", weight="w", missing="drop")
    assert_same(cut, tune_threshold([0, 1], [0.1, 0.2], sample_weight=[1, 2]))


# Passes, and sources that change between them


def reads(monkeypatch):
    """The ranges that a DuckDB reader is asked for."""
    asked = []
    read = DuckReader.read

    def noted(self, within=None):
        asked.append(within)
        return read(self, within)

    monkeypatch.setattr(DuckReader, "read", noted)
    return asked


def many_rows(size):
    random = np.random.default_rng(3)
    scores = random.random(size)
    return pandas.DataFrame({"label": (random.random(size) < scores**2).astype(int), "score": scores})


def test_one_pass_is_enough_where_the_first_rows_are_like_the_others(monkeypatch):
    monkeypatch.setattr(batches, "HEAD", 50_000)
    asked = reads(monkeypatch)
    frame = many_rows(200_000)
    cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    assert_same(cut, tune_threshold(frame["label"], frame["score"]))
    assert asked == [None]


def test_two_passes_are_enough_where_they_are_not(monkeypatch):
    monkeypatch.setattr(batches, "HEAD", 50_000)
    monkeypatch.setattr(batches, "KEPT_AT_MOST", 100)
    asked = reads(monkeypatch)
    frame = many_rows(200_000)
    cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    assert_same(cut, tune_threshold(frame["label"], frame["score"]))
    assert len(asked) == 2


def test_sorted_rows_give_the_same_cut(monkeypatch):
    monkeypatch.setattr(batches, "HEAD", 10_000)
    frame = many_rows(100_000).sort_values("score", ascending=False)
    cut = tune_frame(duckdb.connect().from_df(frame), label="label", score="score")
    assert_same(cut, tune_threshold(frame["label"], frame["score"]))


def test_a_source_that_changes_between_passes_is_noticed(in_small_steps, monkeypatch):
    monkeypatch.setattr(batches, "KEPT_AT_MOST", 0)
    query = "SELECT random() + (range % 3 = 0)::INT / 2 AS score, (range % 3 = 0)::INT AS label FROM range(20000)"
    relation = duckdb.connect().sql(query)
    with pytest.raises(SourceChangedError, match=r"not deterministic .* persist it first"):
        tune_frame(relation, label="label", score="score")
    table = ibis.range(0, 20_000).unnest().name("row").as_table()
    table = table.mutate(label=(table.row % 3 == 0).cast("int8"))
    table = table.mutate(score=ibis.random() + table.label / 2)
    with pytest.raises(SourceChangedError, match="persist it first"):
        tune_frame(table, label="label", score="score")


def test_no_engine_ships_more_than_bins_and_survivors(monkeypatch):
    shipped = []
    counted = grouped.GroupedRows.counted

    def noted(self, frame, *by):
        answer = counted(self, frame, *by)
        shipped.append(len(answer))
        return answer

    monkeypatch.setattr(grouped.GroupedRows, "counted", noted)
    monkeypatch.setattr(grouped, "SHIPPED", 1000)
    frame = many_rows(200_000)
    cut = tune_frame(ibis.memtable(frame), label="label", score="score")
    assert_same(cut, tune_threshold(frame["label"], frame["score"]))
    assert len(shipped) <= 4
    assert max(shipped) < 70_000
    assert sum(shipped) < 100_000


# Groups


def groups_frame(size, seed=0):
    random = np.random.default_rng(seed)
    frame = pandas.DataFrame(
        {
            "key": random.choice(["a", "b", "it's"], size),
            "part": random.integers(0, 3, size),
            "score": random.normal(size=size).round(2),
            "weight": random.integers(0, 3, size).astype(float),
        }
    )
    frame["label"] = (random.random(size) < 1 / (1 + np.exp(1 - frame["score"]))).astype(int)
    frame.loc[(frame["key"] == "a") & (frame["part"] == 1), "label"] = 0
    return frame


def expected_groups(frame, weight=None, **options):
    parts = dict(list(frame.groupby(["key", "part"])))
    tallies = [
        ScoreTally.from_scores(part["label"], part["score"], sample_weight=part[weight] if weight else None)
        for part in parts.values()
    ]
    return tune_tallies(tallies, parts, **options)


def assert_same_groups(cut, expected):
    assert isinstance(cut, MultilabelCut)
    assert cut.labels == expected.labels
    np.testing.assert_array_equal(cut.thresholds, expected.thresholds)
    np.testing.assert_array_equal(cut.intervals, expected.intervals)
    np.testing.assert_array_equal(cut.rows, expected.rows)
    assert cut.confusion == expected.confusion
    assert cut.value == expected.value
    assert (cut.shared, cut.average, cut.weighted) == (expected.shared, expected.average, expected.weighted)


@pytest.mark.parametrize("bins", [None, 64, 1 << 21], ids=["at once", "coarse bins", "fine bins"])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_groups_have_the_cuts_of_their_own_rows(engine, average, bins, monkeypatch):
    if engine.name == "pyarrow data set":
        pytest.skip("a data set is read, not asked")
    if bins is not None:
        monkeypatch.setattr(by_group, "SHIPPED", 50)
        monkeypatch.setattr(by_group, "BINS", bins)
    frame = groups_frame(1000)
    by = ["key", "part"]
    cut = tune_frame(engine(frame), label="label", score="score", by=by, average=average)
    assert_same_groups(cut, expected_groups(frame, average=average))
    cut = tune_frame(engine(frame), label="label", score="score", by=by, average=average, weight="weight", metric="mcc")
    assert_same_groups(cut, expected_groups(frame, average=average, weight="weight", metric="mcc"))


def test_groups_under_a_constraint(monkeypatch):
    monkeypatch.setattr(by_group, "SHIPPED", 50)
    frame = groups_frame(1000)
    frame.loc[frame.index[:9], "label"] = 1
    frame = frame[~((frame["key"] == "a") & (frame["part"] == 1))]
    options = {"metric": "recall", "constraint": "precision>=0.4"}
    cut = tune_frame(polars.from_pandas(frame), label="label", score="score", by=["key", "part"], **options)
    assert_same_groups(cut, expected_groups(frame, **options))


def test_one_column_names_the_groups_by_its_values():
    frame = groups_frame(300)
    cut = tune_frame(frame, label="label", score="score", by="key")
    assert cut.labels == ("a", "b", "it's")
    assert_same(cut["b"], tune_threshold(*(frame[frame["key"] == "b"][c] for c in ("label", "score"))))
    several = tune_frame(frame, label="label", score="score", by="key", metric=["f1", "am"])
    assert list(several) == ["f1", "am"]
    with pytest.raises(ValueError, match="return_tally=True goes with one cut"):
        tune_frame(frame, label="label", score="score", by="key", return_tally=True)


def test_rows_without_a_key_are_missing(engine):
    if engine.name == "pyarrow data set":
        pytest.skip("a data set is read, not asked")
    frame = groups_frame(200)
    frame.loc[:4, "key"] = None
    frame.loc[9, "score"] = np.nan
    with pytest.raises(ValueError, match=r"6 of 200 rows are null or NaN \(1 without a score, 5 without a key"):
        tune_frame(engine(frame), label="label", score="score", by=["key", "part"])
    with pytest.warns(MissingRowsWarning, match="1 without a score, 5 without a key") as noted:
        cut = tune_frame(engine(frame), label="label", score="score", by=["key", "part"], missing="drop")
    assert [one.category for one in noted].count(MissingRowsWarning) == 1
    assert_same_groups(cut, expected_groups(frame.dropna()))


def test_a_million_groups(monkeypatch):
    shipped = []
    counted = grouped.GroupedRows.counted

    def noted(self, frame, *by):
        answer = counted(self, frame, *by)
        shipped.append(len(answer))
        return answer

    monkeypatch.setattr(grouped.GroupedRows, "counted", noted)
    monkeypatch.setattr(by_group, "SHIPPED", 1000)
    random = np.random.default_rng(0)
    groups = np.concatenate((np.arange(1_000_000), random.integers(0, 1_000_000, 1_000_000)))
    scores = random.random(2_000_000)
    labels = (random.random(2_000_000) < scores).astype(np.int8)
    frame = polars.DataFrame({"group": groups, "score": scores, "label": labels})
    cut = tune_frame(frame, label="label", score="score", by="group")
    assert len(cut) == 1_000_000
    assert max(shipped) <= 2_000_000  # no more than occupied bins, and no more than rows
    for group in (0, 1234, 999_999):
        rows = groups == group
        if labels[rows].any():
            assert_same(cut[group], tune_threshold(labels[rows], scores[rows]))


# Applying a cut


def collected(frame):
    for name in ("collect", "compute", "df", "execute"):
        if hasattr(frame, name):
            frame = getattr(frame, name)()
            break
    return frame if isinstance(frame, pandas.DataFrame) else frame.to_pandas()


def test_a_cut_is_applied_where_the_rows_are(engine, sample_of):
    if engine.name == "pyarrow data set":
        pytest.skip("a data set is read, not asked")
    for family in ("infinities", "sigmoid"):
        sample = sample_of(family, 200)
        frame = frame_of(sample)
        cut = tune_frame(frame, label="label", score="score")
        applied = collected(apply_frame(engine(frame), cut, score="score", name="flag"))
        assert list(applied.columns) == ["label", "score", "flag"]
        assert applied.sort_values(["score", "label"])["flag"].tolist() == (
            frame.assign(flag=cut.predict(sample.scores)).sort_values(["score", "label"])["flag"].tolist()
        )
        said = duckdb.sql(f"SELECT score, label, {cut.to_sql('score', 'duckdb')} AS flag FROM frame").df()
        assert said["flag"].tolist() == cut.predict(sample.scores).tolist()


def test_nothing_is_predicted_without_a_score_or_at_infinity(engine):
    if engine.name == "pyarrow data set":
        pytest.skip("a data set is read, not asked")
    cut = tune_threshold([0, 1], [0.25, 0.75])
    never = tune_threshold([1, 0, 0], [1.0, np.inf, np.inf], metric="accuracy")
    assert never.predicts_nothing
    frame = small(score=[0.6, np.nan, np.inf, -np.inf])
    assert sorted(collected(apply_frame(engine(frame), cut, score="score"))["predicted"]) == [False, False, True, True]
    assert not collected(apply_frame(engine(frame), never, score="score"))["predicted"].any()


def test_the_cuts_of_groups_are_applied_by_their_keys(engine):
    if engine.name == "pyarrow data set":
        pytest.skip("a data set is read, not asked")
    frame = groups_frame(300).astype({"part": "int32"})
    cut = tune_frame(frame, label="label", score="score", by=["key", "part"])
    threshold = dict(zip(cut.labels, cut.thresholds, strict=True))
    frame = pandas.concat([frame, frame[:1].assign(key="new", score=9.0)], ignore_index=True)
    expected = [
        bool(score >= threshold.get((key, part), np.inf))
        for key, part, score in zip(frame["key"], frame["part"], frame["score"], strict=True)
    ]
    applied = collected(apply_frame(engine(frame), cut, score="score", by=["key", "part"]))
    columns = ["key", "part", "score", "label"]
    assert list(applied.columns) == [*frame.columns, "predicted"]
    assert applied.sort_values(columns)["predicted"].tolist() == (
        frame.assign(predicted=expected).sort_values(columns)["predicted"].tolist()
    )
    with pytest.raises(ValueError, match="by= must name the columns"):
        apply_frame(engine(frame), cut, score="score")
    with pytest.raises(ValueError, match="do not come from 1 columns"):
        apply_frame(engine(frame), cut, score="score", by="key")


# Failures: the right answer or a clear error


def test_a_truncated_file_is_an_error(tmp_path):
    path = as_parquet(many_rows(5_000), tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"cannot read .*rows.parquet"):
        tune_frame(path, label="label", score="score")


def test_damage_in_the_middle_of_a_file_is_an_error(tmp_path):
    path = as_parquet(many_rows(50_000), tmp_path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 5000] = bytes(5000)
    path.write_bytes(content)
    try:
        cut = tune_frame(path, label="label", score="score")
    except (OSError, ValueError):
        return
    collected_again = duckdb.connect().read_parquet(str(path)).df()  # zeros are scores, too, if they can be decoded
    assert_same(cut, tune_threshold(collected_again["label"], collected_again["score"]))


def test_a_file_that_disappears_between_passes_is_an_error(tmp_path, monkeypatch, in_small_steps):
    monkeypatch.setattr(batches, "KEPT_AT_MOST", 0)
    path = as_parquet(many_rows(5_000), tmp_path)
    read = DuckReader.read

    def read_and_remove(self, within=None):
        if within is not None:
            Path(path).unlink(missing_ok=True)
        return read(self, within)

    monkeypatch.setattr(DuckReader, "read", read_and_remove)
    with pytest.raises(OSError, match=r"cannot read .*rows.parquet"):
        tune_frame(path, label="label", score="score")


def test_a_worker_that_dies_is_replaced(dask_frames, tmp_path):
    frame = many_rows(2_000)
    marker = tmp_path / "died"

    def part(number):
        if number == 1 and not marker.exists():
            marker.touch()
            os._exit(1)
        return frame[number * 500 : (number + 1) * 500]

    held = dask_frames.from_map(part, range(4), meta=frame[:0])
    cut = tune_frame(held, label="label", score="score")
    assert marker.exists()
    assert_same(cut, tune_threshold(frame["label"], frame["score"]))


def test_a_partition_that_raises_is_an_error(dask_frames):
    frame = many_rows(1_000)

    def part(number):
        if number == 1:
            raise RuntimeError("the scores of this partition are lost")
        return frame

    held = dask_frames.from_map(part, range(2), meta=frame[:0])
    with pytest.raises(RuntimeError, match="the scores of this partition are lost"):
        tune_frame(held, label="label", score="score")
