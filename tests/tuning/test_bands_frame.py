"""tune_bands_frame gives the bands of tune_bands on the collected columns, on every engine; groups; zones applied."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from surecut import (
    GroupedBands,
    MissingRowsWarning,
    UnknownLabelWarning,
    apply_frame,
    tune_bands,
    tune_bands_frame,
)
from surecut.constraints import InfeasibleError

pandas = pytest.importorskip("pandas")
pytest.importorskip("polars")
pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis")

REQUESTS = {
    "conditions": {"upper": "ppv>=0.8", "lower": "npv>=0.8"},
    "budget": {"upper": "ppv>=0.7", "conditions": {"ask": "share<=0.2"}},
    "gains": {"gains": {"no": (0, -4), "ask": -0.75, "yes": (-3, 1)}},
    "grades": {
        "zones": ("low", "medium", "high", "urgent"),
        "conditions": {"urgent": "ppv>=0.8", "high": "share<=0.3"},
    },
    "ratio": {"metric": "f1", "gains": {"ask": -0.25}},
    "confidence": {"upper": "ppv>=0.6", "lower": "npv>=0.6", "confidence": 0.8},
    "stable": {"gains": {"no": (0, -4), "ask": -0.75, "yes": (-3, 1)}, "stable": True},
    "prior": {"upper": "ppv>=0.5", "prior": 0.2},
}
COLUMNS = {"label": "label", "score": "score"}


def rows_of(size, seed=0):
    random = np.random.default_rng(seed)
    label = random.random(size) < 0.4
    score = np.where(label, random.beta(3, 1.5, size), random.beta(1.5, 3, size))
    key = random.choice(["a", "b", "c"], size)
    return pandas.DataFrame({"label": label.astype(int), "score": score, "key": key, "row": np.arange(size)})


def collected(frame):
    frame = frame.collect() if hasattr(frame, "collect") else frame
    for name in ("toPandas", "to_pandas", "df", "execute", "compute"):
        if hasattr(frame, name):
            return getattr(frame, name)()
    return frame


def same_bands(found, expected):
    assert found.thresholds.tolist() == expected.thresholds.tolist()
    assert found.intervals.tolist() == expected.intervals.tolist()
    assert found.confusion.tolist() == expected.confusion.tolist()
    assert found.rows == expected.rows
    assert found.conditions == expected.conditions
    np.testing.assert_equal(found.value, expected.value)
    if found.fingerprint:
        assert found.fingerprint == expected.fingerprint


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_bands_are_those_of_the_collected_columns(engine, request_name):
    frame, options = rows_of(400), REQUESTS[request_name]
    found = tune_bands_frame(engine(frame), **COLUMNS, **options)
    same_bands(found, tune_bands(frame["label"], frame["score"], **options))


@pytest.mark.parametrize("request_name", ["conditions", "budget", "gains", "confidence"])
def test_weights_that_count_rows_repeat_them(engine, request_name):
    frame = rows_of(200).assign(weight=lambda rows: rows["row"] % 3)
    repeated = frame.loc[frame.index.repeat(frame["weight"])]
    options = REQUESTS[request_name]
    counts = {"weights": "counts"} if "confidence" in options else {}
    found = tune_bands_frame(engine(frame), **COLUMNS, weight="weight", **counts, **options)
    expected = tune_bands(repeated["label"], repeated["score"], **options)
    assert found.thresholds.tolist() == expected.thresholds.tolist()
    assert found.confusion.tolist() == expected.confusion.tolist()


@pytest.mark.parametrize("request_name", ["conditions", "gains", "confidence", "stable"])
def test_groups_have_the_bands_of_their_own_rows(engine, request_name):
    frame, options = rows_of(600), REQUESTS[request_name]
    found = tune_bands_frame(engine(frame), **COLUMNS, by="key", **options)
    assert isinstance(found, GroupedBands)
    assert list(found) == ["a", "b", "c"]
    assert found.confidence == pytest.approx(options["confidence"]) if "confidence" in options else True
    each = options | ({"confidence": 1 - 0.2 / 3} if "confidence" in options else {})
    for key, rows in frame.groupby("key"):
        same_bands(found[key], tune_bands(rows["label"], rows["score"], **each))


def test_zones_are_those_of_predict_on_every_engine(engine):
    frame = rows_of(300)
    bands = tune_bands(frame["label"], frame["score"], **REQUESTS["grades"])
    frame.loc[:3, "score"] = [np.inf, -np.inf, bands.thresholds[0], bands.thresholds[-1]]
    applied = collected(apply_frame(engine(frame), bands, score="score", name="zone")).sort_values("row")
    assert applied["zone"].tolist() == bands.predict(frame["score"]).tolist()
    said = duckdb.sql(f"SELECT row, {bands.to_sql('score', 'duckdb')} AS zone FROM frame ORDER BY row").df()
    assert said["zone"].tolist() == bands.predict(frame["score"]).tolist()


def test_zones_of_groups_are_those_of_predict_on_every_engine(engine):
    frame = rows_of(300)
    bands = tune_bands_frame(frame, **COLUMNS, by="key", **REQUESTS["gains"])
    applied = collected(apply_frame(engine(frame), bands, score="score", by="key", name="zone")).sort_values("row")
    expected = bands.predict(frame["score"], frame["key"])
    assert applied["zone"].tolist() == expected.tolist()
    case = bands.to_sql("score", by="key", dialect="duckdb")
    said = duckdb.sql(f"SELECT row, {case} AS zone FROM frame ORDER BY row").df()
    assert said["zone"].tolist() == expected.tolist()


LAZY = ("polars lazy", "pyarrow data set", "duckdb", "parquet", "ibis")


def test_rows_without_a_score_or_a_known_group_have_no_zone_or_the_one_that_is_named(engine):
    frame = rows_of(200)
    bands = tune_bands_frame(frame, **COLUMNS, by="key", **REQUESTS["gains"])
    odd = pandas.DataFrame(
        {"score": [0.99, np.nan, 0.5, 0.5], "key": ["a", "b", "new", None], "row": np.arange(4), "label": [1, 0, 1, 0]}
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        applied = collected(apply_frame(engine(odd), bands, score="score", by="key")).sort_values("row")
    assert [one if isinstance(one, str) else None for one in applied["predicted"]] == ["yes", None, None, None]
    said = {one.category: str(one.message) for one in caught if issubclass(one.category, UserWarning)}
    if engine.name not in LAZY:
        assert said[MissingRowsWarning] == "1 of 4 rows have no score in 'score': they are in no zone"
        assert said[UnknownLabelWarning] == "2 of 4 rows have a group in 'key' that has no bands: they are in no zone"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        named = apply_frame(engine(odd), bands, score="score", by="key", missing="ask", unknown="no")
    assert collected(named).sort_values("row")["predicted"].tolist() == ["yes", "ask", "no", "no"]
    for option, reason in (("missing", "1 of 4 rows have no score"), ("unknown", "2 of 4 rows have a group in 'key'")):
        with pytest.raises(ValueError, match=f'{reason}.*{option}="ask" to put them into this zone'):
            apply_frame(engine(odd), bands, score="score", by="key", **{option: "error"})
        with pytest.raises(ValueError, match=f"{option}= must be 'error' or one of the zones 'no', 'ask', 'yes', got"):
            apply_frame(engine(odd), bands, score="score", by="key", **{option: "negative"})


def test_columns_of_groups_are_asked_for_and_refused():
    frame = rows_of(200)
    bands = tune_bands_frame(frame, **COLUMNS, **REQUESTS["gains"])
    grouped = tune_bands_frame(frame, **COLUMNS, by=["key"], **REQUESTS["gains"])
    with pytest.raises(ValueError, match="by= goes with GroupedBands; these are the bands for all rows"):
        apply_frame(frame, bands, score="score", by="key")
    with pytest.raises(ValueError, match="by= must name the columns that the groups of GroupedBands come from"):
        apply_frame(frame, grouped, score="score")


def test_a_group_that_cannot_be_tuned_is_named():
    frame = rows_of(200)
    turned = frame["label"].where(frame["key"] != "b", 1 - frame["label"])
    with pytest.raises(
        InfeasibleError, match=r"group 'b': each condition can be met, but not all at once: for ppv>=0\.7"
    ):
        tune_bands_frame(
            frame.assign(label=turned), **COLUMNS, by="key", conditions={"yes": ["ppv>=0.7", "recall>=0.5"]}
        )
    with pytest.raises(ValueError, match="group 'c': bands need rows of both classes, and all rows are positive"):
        tune_bands_frame(
            frame.assign(label=(frame["key"] == "c") | frame["label"]), **COLUMNS, by="key", upper="ppv>=0"
        )
    with pytest.raises(ValueError, match="prior= is for one sample: groups have class balances of their own"):
        tune_bands_frame(frame, **COLUMNS, by="key", upper="ppv>=0", prior=0.5)


def test_weights_of_groups_that_are_not_said_to_count_rows_promise_nothing():
    frame = rows_of(200).assign(weight=1.5)
    with pytest.raises(ValueError, match="weights='counts'"):
        tune_bands_frame(frame, **COLUMNS, by="key", weight="weight", **REQUESTS["confidence"])
