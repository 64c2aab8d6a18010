"""Columns of every type that a frame may have, on the paths that read batches and on those that count in an engine."""

from __future__ import annotations

from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pytest

from surecut import MissingRowsWarning, tune_frame, tune_threshold
from surecut.core.keys import ordered_keys
from surecut.core.search import SourceChangedError
from surecut.core.settings import using
from surecut.sources import engines
from surecut.sources.batches import BatchSource, _without_overlap
from surecut.sources.columns import Columns
from surecut.sources.engines import SCORE, EngineGroups, EngineRows

duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")
pa = pytest.importorskip("pyarrow")


LABELS = [1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0]
SCORES = [0.9, 0.8, 0.75, 0.7, 0.5, 0.5, 0.4, 0.3, 0.25, 0.2, 0.1, 0.0]

HOLDERS = {
    "batches": lambda table: table,
    "engine": lambda table: ibis.memtable(table),
    "groups": lambda table: duckdb.connect().from_arrow(table),
}


@pytest.fixture(params=HOLDERS)
def tuned(request):
    """How each path tunes some columns; with groups, all rows are one group."""

    def tune(label=LABELS, score=SCORES, weight=None, **options):
        columns = {"label": label, "score": score} | ({} if weight is None else {"weight": weight})
        if request.param == "groups":
            columns["group"] = ["a"] * len(label)
            options["by"] = "group"
        frame = HOLDERS[request.param](pa.table(columns))
        cut = tune_frame(frame, label="label", score="score", weight=None if weight is None else "weight", **options)
        return cut["a"] if request.param == "groups" else cut

    return tune


def test_scores_may_be_true_and_false(tuned):
    scores = [score > 0.4 for score in SCORES]
    cut, expected = tuned(score=scores), tune_threshold(LABELS, scores)
    assert (cut.threshold, cut.value) == (expected.threshold, expected.value)


@pytest.mark.parametrize("kind", ["decimal", "categorical", "text", "float"])
def test_labels_may_be_of_any_type(tuned, kind):
    labels = {
        "decimal": pa.array([Decimal(label) for label in LABELS], pa.decimal128(4, 1)),
        "categorical": pa.array(["yes" if label else "no" for label in LABELS]).dictionary_encode(),
        "text": ["yes" if label else "no" for label in LABELS],
        "float": [float(label) for label in LABELS],
    }[kind]
    cut = tuned(label=labels, pos_label="yes" if kind in ("categorical", "text") else None)
    expected = tune_threshold(LABELS, SCORES)
    assert (cut.threshold, cut.value) == (expected.threshold, expected.value)


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [(["yes", "no"] * 6, 1), (pa.array(LABELS, pa.int8()), 300), (LABELS, "yes"), (pa.array(LABELS, pa.uint8()), -1)],
)
def test_a_positive_label_of_another_type_is_refused(tuned, labels, pos_label):
    with pytest.raises((ValueError, TypeError), match="pos_label"):
        tuned(label=labels, pos_label=pos_label)


def test_a_frame_without_rows_is_refused(tuned):
    with pytest.raises(ValueError, match="no rows"):
        tuned(label=pa.array([], pa.int64()), score=pa.array([], pa.float64()))


def test_of_very_many_labels_some_are_named():
    labels = np.arange(5000)
    frame = pa.table({"label": labels, "score": labels / 5000})
    with using(batch=500, head=1000), pytest.raises(ValueError, match="two"):
        tune_frame(frame, label="label", score="score")


def test_labels_that_are_valid_when_looked_at_again_are_noticed(monkeypatch):
    monkeypatch.setattr(BatchSource, "_distinct_labels", lambda self: [0, 1])
    frame = pa.table({"label": [0, 1, 2], "score": [0.1, 0.2, 0.3]})
    with pytest.raises(SourceChangedError, match="persist it first"):
        tune_frame(frame, label="label", score="score")


def test_first_rows_without_weight_guide_nothing():
    weights = [0.0] * 4 + [1.0] * 8
    frame = pa.table({"label": LABELS, "score": SCORES, "weight": weights})
    with using(batch=2, head=3):
        cut = tune_frame(frame, label="label", score="score", weight="weight")
    expected = tune_threshold(LABELS, SCORES, sample_weight=weights)
    assert (cut.threshold, cut.value) == (expected.threshold, expected.value)


@pytest.mark.parametrize("shrinkage", [2.0])
def test_groups_in_an_engine_are_smoothed_like_those_in_memory(shrinkage):
    random = np.random.default_rng(4)
    scores = random.random(300).round(2)
    columns = {"label": (random.random(300) < scores).astype(int), "score": scores, "group": np.arange(300) % 3}
    table = pa.table(columns)
    cuts = [
        tune_frame(frame, label="label", score="score", by="group", shrinkage=shrinkage)
        for frame in (table, duckdb.connect().from_arrow(table), ibis.memtable(table))
    ]
    for cut in cuts[1:]:
        np.testing.assert_array_equal(cut.thresholds, cuts[0].thresholds)


def test_labels_of_an_enumeration_are_compared_as_text():
    rows = ", ".join(
        f"('{'yes' if label else 'no'}', {score}, 'a')" for label, score in zip(LABELS, SCORES, strict=True)
    )
    query = f"SELECT col0::ENUM('no', 'yes') AS label, col1::DOUBLE AS score, col2 AS g FROM (VALUES {rows})"
    cut = tune_frame(duckdb.connect().sql(query), label="label", score="score", by="g", pos_label="yes")
    assert cut["a"].threshold == tune_threshold(LABELS, SCORES).threshold


# Rows that are gone when they are asked for again


class Batches:
    """A reader of what it is given."""

    schema = pa.schema({"score": pa.float64(), "label": pa.int64()})

    def __init__(self, *rows):
        self.rows = rows

    def read(self, within=None):
        for scores, labels in self.rows:
            columns = [pa.array(scores, pa.float64()), pa.array(labels, pa.int64())]
            yield pa.record_batch(columns, schema=self.schema)


COLUMNS = Columns("score", "label")


def test_batches_without_rows_are_no_rows():
    for batches in (Batches(), Batches(([], [])), Batches(([], []), ([], []))):
        with pytest.raises(ValueError, match="the frame holds no rows"):
            BatchSource(batches, COLUMNS).count()


def test_batches_that_are_gone_are_noticed():
    source = BatchSource(Batches(), COLUMNS)
    ends = (ordered_keys(np.array([end])) for end in (0.2, 0.3))
    with pytest.raises(SourceChangedError, match="persist it first"):
        source.collect(*ends)


def test_groups_that_were_not_there_before_are_noticed():
    columns = Columns("score", "label", by=("g",))

    def groups(keys):
        table = pa.table({"label": [0, 1], "score": [0.1, 0.2], "g": keys})
        return EngineGroups(EngineRows(nw.from_native(duckdb.connect().from_arrow(table)).lazy(), columns))

    before, after = groups([1, 2]), groups([2, 3])
    assert before.number_of(before.table).tolist() == [0, 1]
    with pytest.raises(SourceChangedError, match="persist it first"):
        before.number_of(after.table)
    answer = after.engine.counted(after.engine.valid, SCORE)
    with pytest.raises(SourceChangedError):
        engines.entries_of(answer[:0], np.zeros(0, dtype=np.int64), 1, False)


def test_ranges_that_overlap_are_read_once():
    assert _without_overlap([(7, 8), (2, 5), (1, 3), (4, 4)]) == [(1, 5), (7, 8)]


# Labels of other types


def test_labels_of_half_precision_are_labels():
    """DuckDB has no such numbers."""
    frame = pa.table({"label": pa.array(np.array(LABELS, dtype=np.float16)), "score": SCORES})
    cut = tune_frame(frame, label="label", score="score")
    assert cut.threshold == tune_threshold(LABELS, SCORES).threshold


@pytest.mark.parametrize("column", ["label", "score", "weight"])
def test_nan_of_half_precision_is_missing(column):
    values = {"label": [0, 1, 1, 0], "score": [0.25, 0.5, 0.75, 0.125], "weight": [1, 2, 1, 1]}
    values[column] = np.array([*values[column][:3], np.nan], dtype=np.float16)
    with pytest.warns(MissingRowsWarning):
        cut = tune_frame(pa.table(values), label="label", score="score", weight="weight", missing="drop")
    assert "on 3 rows" in str(cut)
    assert cut.threshold == 0.375


def test_fractions_are_no_labels(tuned):
    with pytest.raises(ValueError, match=r"2\.5"):
        tuned(label=[0.0, 1.0, 2.5] * 4)


@pytest.mark.parametrize(
    "labels",
    [pa.array([19000, 19001] * 6, pa.date32()), pa.array([[1], [0]] * 6)],
    ids=["dates", "lists"],
)
def test_dates_and_lists_are_no_labels(tuned, labels):
    with pytest.raises((TypeError, ValueError), match="label"):
        tuned(label=labels)


def test_bytes_may_be_labels(tuned):
    labels = pa.array([b"y" if label else b"n" for label in LABELS])
    assert tuned(label=labels, pos_label=b"y").threshold == tune_threshold(LABELS, SCORES).threshold
