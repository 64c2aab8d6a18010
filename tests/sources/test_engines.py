"""Rows that stay in their engine: Spark and Dask on real local clusters, and Ibis."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace

import narwhals.stable.v2 as nw
import pytest

from engines import start_without_fork
from surecut import apply_frame, certify, tune_bands, tune_bands_frame, tune_frame, tune_threshold
from surecut.core.search import SourceChangedError
from surecut.core.settings import using
from surecut.sources.engines import BIN, ENTRY, EngineGroups, EngineRows

ibis = pytest.importorskip("ibis")


HARD_TO_SHIP = ("float32", "infinities", "all_magnitudes", "denormal", "large_integers", "bytes", "signed_zeros")
"""Scores that an engine could round, order or read differently. All families: Ibis, and `make fuzz` on clusters."""


def check_cluster(held, sample_of, make, same, families=HARD_TO_SHIP):
    """The contract on a cluster that is worth starting only once."""
    for family in families:
        same.contract(held, sample_of(family, 300), weightings=("counts",))
    sample = sample_of("sigmoid", 300)
    cut = tune_frame(held(make.frame(sample)), label="label", score="score")
    with pytest.raises(ValueError, match="these are the validation rows"):
        certify(cut, sample.labels, sample.scores)
    with using(shipped=16, engine_bins=16, fine=4):
        same.contract(held, sample_of("outliers", 300), weightings=("unweighted",))
    frame = make.groups(300)
    with using(grouped_bytes=0, shipped_by_group=20, shipped_each=1, engine_bins=16):
        cut = tune_frame(held(frame), label="label", score="score", by=["key", "part"])
    same.groups(cut, make.cuts_of_groups(frame))
    return held(frame), cut


def check_bands(held, make):
    """Bands of all rows and of groups, and their zones beside the rows."""
    frame = make.groups(300)
    asked = {"label": "label", "score": "score", "gains": {"no": (0, -4), "ask": -1, "yes": (-3, 0)}}
    with using(shipped=16, engine_bins=16, fine=4):
        bands = tune_bands_frame(held(frame), **asked)
    expected = tune_bands(frame["label"], frame["score"], gains=asked["gains"])
    assert bands.thresholds.tolist() == expected.thresholds.tolist()
    assert bands.confusion.tolist() == expected.confusion.tolist()
    grouped = tune_bands_frame(held(frame), **asked, by="part")
    assert grouped.thresholds.tolist() == tune_bands_frame(frame, **asked, by="part").thresholds.tolist()
    applied = apply_frame(held(frame), grouped, score="score", by="part")
    zones = (applied.toPandas() if hasattr(applied, "toPandas") else applied.compute())["predicted"]
    assert sorted(zones) == sorted(grouped.predict(frame["score"], frame["part"]))


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux forks")
def test_spark_starts_beside_more_reserved_than_there_is_memory():
    """As where several databases of DuckDB 1.5 are open: a process of such mappings cannot fork."""
    size = int(0.8 * os.sysconf("SC_PHYS_PAGES")) * mmap.PAGESIZE
    try:
        reserved = [mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(4)]
    except OSError:
        pytest.skip("this machine does not reserve more than it has")
    started = start_without_fork([sys.executable, "-c", ""], preexec_fn=os.getpid)
    assert started.wait() == 0
    assert len(reserved) == 4


def test_spark_gives_the_same_cut(spark, sample_of, make, same, shipped):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PySpark's, of the newest pandas
        frame, cut = check_cluster(spark.createDataFrame, sample_of, make, same)
        applied = apply_frame(frame, cut, score="score", by=["key", "part"]).toPandas()
        check_bands(spark.createDataFrame, make)
    assert int(applied["predicted"].sum()) == int((cut.confusion.tp + cut.confusion.fp).sum())
    assert (ENTRY, BIN) in [by for by, _ in shipped]  # bins of groups were divided


def test_spark_joins_without_a_sort_and_without_computing_bins_twice(spark, make, monkeypatch, tmp_path):
    """A table of ours is sent to the workers, and no filter computes the bins from the columns of the frame."""
    plans, counted = [], EngineRows.counted

    def noted(self, frame, *by, **options):
        plans.append(nw.to_native(frame)._jdf.queryExecution().executedPlan().toString())
        return counted(self, frame, *by, **options)

    monkeypatch.setattr(EngineRows, "counted", noted)
    with warnings.catch_warnings(), using(shipped=16, shipped_by_group=20, shipped_each=1, engine_bins=16, fine=4):
        warnings.simplefilter("ignore", FutureWarning)  # PySpark's, of the newest pandas
        spark.createDataFrame(make.groups(300)).write.parquet(str(tmp_path / "rows"))
        frame = spark.read.parquet(str(tmp_path / "rows"))
        for by in (None, "key"):
            tune_frame(frame, label="label", score="score", by=by)
    joining = [plan for plan in plans if "Join" in plan]
    assert len(joining) > 2
    for plan in joining:
        assert "BroadcastHashJoin" in plan
        assert "SortMergeJoin" not in plan
        assert not any("Filter" in line and "FLOOR" in line for line in plan.splitlines())


def test_spark_asks_for_some_rows_of_groups_only_once(spark, make, monkeypatch):
    asked = []
    monkeypatch.setattr(EngineGroups, "_lowest", lambda self, chosen: asked.append(chosen))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PySpark's, of the newest pandas
        frame = spark.createDataFrame(make.groups(3000))
        for sizes in ({}, {"shipped_by_group": 20, "shipped_each": 1}):
            with using(**sizes):
                cut = tune_frame(frame, label="label", score="score", by="key")
            assert len(cut.seen[0]) > 100
    assert not asked


def test_spark_and_its_sql_take_a_missing_score_for_negative(spark):
    scores = [0.25, 0.75, float("nan"), float("inf"), float("-inf"), 0.5, None]
    frame = spark.createDataFrame([(score,) for score in scores], "`the score` double")
    for threshold in (0.5, -3.25, float("inf"), float("-inf"), 1e300):
        cut = replace(tune_threshold([0, 1], [0.25, 0.75]), threshold=threshold)
        expected = [s is not None and s >= threshold and threshold < float("inf") for s in scores]
        said = frame.selectExpr(f"{cut.to_sql('the score', 'spark')} AS flag").collect()
        assert [row["flag"] for row in said] == expected
        applied = apply_frame(frame, cut, score="the score", name="flag").collect()
        assert [row["flag"] for row in applied] == expected


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


def test_spark_connect_gives_the_same_cut(tmp_path, sample_of, java_options):
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    sample = sample_of("sigmoid", 200)
    rows, result = tmp_path / "rows.json", tmp_path / "cut.json"
    rows.write_text(json.dumps({"label": sample.labels.tolist(), "score": sample.scores.tolist()}))
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, str(rows), str(result)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "JAVA_TOOL_OPTIONS": java_options},
    )
    assert result.exists(), done.stderr[-2000:]
    module, cut = json.loads(result.read_text())
    assert "connect" in module
    expected = tune_threshold(sample.labels, sample.scores).to_dict()
    ignored = {"tuning": None, "checksum": None}  # an engine does not name its rows
    assert cut | ignored == expected | ignored


def test_dask_gives_the_same_cut(dask_frames, sample_of, make, same, shipped):
    def held(frame):
        return dask_frames.from_pandas(frame, npartitions=2)

    # Dask plans for long and computes in pandas, whose scores others test: those that its partitions could change.
    check_cluster(held, sample_of, make, same, families=("float32", "infinities", "large_integers"))
    check_bands(held, make)
    assert (ENTRY, BIN) in [by for by, _ in shipped]


def test_no_engine_ships_more_than_bins_and_survivors(shipped, make, same):
    frame = make.many(200_000)
    with using(shipped=1000):
        cut = tune_frame(ibis.memtable(frame), label="label", score="score")
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))
    answers = [rows for _, rows in shipped]
    assert len(answers) <= 4
    assert max(answers) < 70_000
    assert sum(answers) < 100_000


def test_a_table_that_changes_between_queries_is_noticed(in_small_steps):
    table = ibis.range(0, 20_000).unnest().name("row").as_table()
    table = table.mutate(label=(table.row % 3 == 0).cast("int8"))
    table = table.mutate(score=ibis.random() + table.label / 2)
    with pytest.raises(SourceChangedError, match="persist it first"):
        tune_frame(table, label="label", score="score")


def test_a_worker_that_dies_is_replaced(dask_frames, tmp_path, make, same):
    frame = make.many(2_000)
    marker = tmp_path / "died"

    def part(number):
        if number == 1 and not marker.exists():
            marker.touch()
            os._exit(1)
        return frame[number * 500 : (number + 1) * 500]

    held = dask_frames.from_map(part, range(4), meta=frame[:0])
    cut = tune_frame(held, label="label", score="score")
    assert marker.exists()
    same.cut(cut, tune_threshold(frame["label"], frame["score"]))


def test_a_partition_that_raises_is_an_error(dask_frames, make):
    frame = make.many(1_000)

    def part(number):
        if number == 1:
            raise RuntimeError("the scores of this partition are lost")
        return frame

    held = dask_frames.from_map(part, range(2), meta=frame[:0])
    with pytest.raises(RuntimeError, match="the scores of this partition are lost"):
        tune_frame(held, label="label", score="score")
