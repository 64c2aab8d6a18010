"""Fixtures of the tests of frames: engines, rows for them, and what counts as the same answer.

Libraries are imported when a test asks for them, so that other tests of the folder run without them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from surecut import MultilabelCut, ScoreTally, tune_frame, tune_threshold
from surecut.core.settings import using
from surecut.tuning.labels import tune_tallies

library = pytest.importorskip

# Engines


def as_arrow(frame):
    return library("pyarrow").Table.from_pandas(frame)


def as_parquet(frame, folder):
    path = folder / "rows.parquet"
    library("pyarrow.parquet").write_table(as_arrow(frame), path, row_group_size=100)
    return path


IN_PROCESS = {
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: library("polars").from_pandas(frame),
    "polars lazy": lambda frame, folder: library("polars").from_pandas(frame).lazy(),
    "pyarrow": lambda frame, folder: as_arrow(frame),
    "pyarrow data set": lambda frame, folder: library("pyarrow.dataset").dataset(as_arrow(frame)),
    "duckdb": lambda frame, folder: library("duckdb").connect().from_df(frame),
    "parquet": as_parquet,
    "ibis": lambda frame, folder: library("ibis").memtable(frame),
}


@pytest.fixture
def engine_named(tmp_path):
    """How an engine holds a pandas frame, by its name."""

    def named(name):
        def held(frame):
            return IN_PROCESS[name](frame, tmp_path)

        held.name = name
        return held

    return named


@pytest.fixture(params=IN_PROCESS)
def engine(request, engine_named):
    """How each engine that runs in this process holds a pandas frame."""
    return engine_named(request.param)


JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Queries of a few hundred rows: to compile them further takes longer than to run them."""


@pytest.fixture(scope="session")
def java_options():
    return JAVA_OPTIONS


def start_without_fork(command, preexec_fn=None, **options):
    """Start Spark's Java as PySpark does, but by vfork, which copies no mappings of memory.

    DuckDB 1.5 reserves 80 % of the memory for each database, and Linux does not fork a process in which such mappings
    are neighbours, and so have become one that is larger than the memory. PySpark forks because of `preexec_fn`, in
    which it ignores Ctrl-C; a session of its own is not sent Ctrl-C either.
    """
    return subprocess.Popen(command, start_new_session=True, **options)


def spark_session():
    """A Spark of two cores for this process; the same one each time."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # not the path's python3, which may be another
    builder = sql.SparkSession.builder.master("local[2]").appName("surecut")
    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "2", "driver.memory": "1g", "log.level": "ERROR"}
    settings |= {"driver.extraJavaOptions": JAVA_OPTIONS, "ui.showConsoleProgress": "false"}
    settings |= {"sql.execution.arrow.pyspark.enabled": "true"}  # Spark 4.0 makes doubles of float32 without it
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyspark.java_gateway.Popen", start_without_fork)
        return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark():
    """A Spark of two cores for this process."""
    session = spark_session()
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
def in_small_steps():
    """Settings with which a handful of rows is read in many batches and searched in many steps."""
    in_batches = {"batch": 32, "head": 64, "kept_share": 0.1, "sorted_at_once": 8, "sorted_share": 10**6, "group": 4}
    with using(shipped=16, engine_bins=16, fine=4, **in_batches):
        yield


@pytest.fixture
def shipped(monkeypatch):
    """What engines ship: for each answer, the columns that its rows differ in, and their number."""
    library("narwhals")
    from surecut.sources.engines import EngineRows

    answers: list[tuple[tuple[str, ...], int]] = []
    counted = EngineRows.counted

    def noted(self, frame, *by, **options):
        answer = counted(self, frame, *by, **options)
        answers.append((by, len(answer)))
        return answer

    monkeypatch.setattr(EngineRows, "counted", noted)
    return answers


# Rows


def frame_of(sample, weights=None):
    columns = {"label": sample.labels, "score": sample.scores}
    return library("pandas").DataFrame(columns if weights is None else columns | {"weight": weights})


def many_rows(size):
    random = np.random.default_rng(3)
    scores = random.random(size)
    return library("pandas").DataFrame({"label": (random.random(size) < scores**2).astype(int), "score": scores})


def rows_of_groups(size, seed=0):
    """Nine groups of two columns, one of them without positives."""
    random = np.random.default_rng(seed)
    frame = library("pandas").DataFrame(
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


def cuts_of_groups(frame, weight=None, **options):
    """The cuts of these groups, from a tally of each."""
    parts = dict(list(frame.groupby(["key", "part"])))
    tallies = [
        ScoreTally.from_scores(part["label"], part["score"], sample_weight=part[weight] if weight else None)
        for part in parts.values()
    ]
    return tune_tallies(tallies, parts, **options)


@pytest.fixture(scope="session")
def make() -> Any:
    return SimpleNamespace(
        frame=frame_of, many=many_rows, groups=rows_of_groups, cuts_of_groups=cuts_of_groups, parquet=as_parquet
    )


# What is the same


def assert_same_cut(cut, expected, *, exactly=True):
    assert cut.value == (expected.value if exactly else pytest.approx(expected.value, rel=1e-12))
    assert (cut.threshold, cut.interval, cut.rows) == (expected.threshold, expected.interval, expected.rows)
    assert (cut.weighted, cut.constraints) == (expected.weighted, expected.constraints)
    if exactly:
        assert cut.confusion == expected.confusion


def assert_same_groups(cut, expected):
    assert isinstance(cut, MultilabelCut)
    assert cut.labels == expected.labels
    np.testing.assert_array_equal(cut.thresholds, expected.thresholds)
    np.testing.assert_array_equal(cut.intervals, expected.intervals)
    np.testing.assert_array_equal(cut.rows, expected.rows)
    assert cut.confusion == expected.confusion
    assert cut.value == expected.value
    assert (cut.shared, cut.average, cut.weighted) == (expected.shared, expected.average, expected.weighted)


def assert_contract(held, sample, metric="f1", weightings=None, **options):
    """The cut of a frame is that of the collected columns, with each of the sample's weights."""
    for name in weightings or sample.weights:
        weights = sample.weights[name]
        expected = tune_threshold(sample.labels, sample.scores, metric=metric, sample_weight=weights, **options)
        frame, weight = held(frame_of(sample, weights)), None if weights is None else "weight"
        cut = tune_frame(frame, label="label", score="score", weight=weight, metric=metric, **options)
        assert_same_cut(cut, expected, exactly=name != "reals")


@pytest.fixture(scope="session")
def same() -> Any:
    return SimpleNamespace(cut=assert_same_cut, groups=assert_same_groups, contract=assert_contract)
