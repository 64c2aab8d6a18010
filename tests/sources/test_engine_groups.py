"""Groups of a long table have the cuts of their own rows."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import MissingRowsWarning, certify, tune_frame, tune_threshold
from surecut.core.search import SourceChangedError
from surecut.core.settings import using
from surecut.sources.engines import BIN, ENTRY, SCORE

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")


@pytest.mark.parametrize(
    ("average", "bins"),
    [("macro", None), ("macro", 64), ("macro", 1 << 21), ("micro", 64)],
    ids=["macro-at once", "macro-coarse bins", "macro-fine bins", "micro-coarse bins"],
)
def test_groups_have_the_cuts_of_their_own_rows(engine, average, bins, make, same):
    sizes = (
        {}
        if bins is None
        else {"grouped_bytes": 0, "shipped_by_group": 50, "shipped_each": 1, "shipped": 50, "engine_bins": bins}
    )
    frame = make.groups(1000)
    columns = {"label": "label", "score": "score", "by": ["key", "part"]}
    with using(**sizes):
        cut = tune_frame(engine(frame), **columns, average=average)
        same.groups(cut, make.cuts_of_groups(frame, average=average))
        cut = tune_frame(engine(frame), **columns, average=average, weight="weight", metric="mcc")
    same.groups(cut, make.cuts_of_groups(frame, average=average, weight="weight", metric="mcc"))


def test_groups_under_a_constraint(make, same):
    frame = make.groups(1000)
    frame.loc[frame.index[:9], "label"] = 1
    frame = frame[~((frame["key"] == "a") & (frame["part"] == 1))]
    options = {"metric": "recall", "constraint": "precision>=0.4"}
    with using(grouped_bytes=0, shipped_by_group=50, shipped_each=1, engine_bins=64):
        cut = tune_frame(polars.from_pandas(frame), label="label", score="score", by=["key", "part"], **options)
    same.groups(cut, make.cuts_of_groups(frame, **options))


def test_one_column_names_the_groups_by_its_values(make, same):
    frame = make.groups(300)
    cut = tune_frame(frame, label="label", score="score", by="key")
    assert cut.labels == ("a", "b", "it's")
    same.cut(cut["b"], tune_threshold(*(frame[frame["key"] == "b"][c] for c in ("label", "score"))))
    several = tune_frame(frame, label="label", score="score", by="key", metric=["f1", "am"])
    assert list(several) == ["f1", "am"]
    with pytest.raises(ValueError, match="average='samples' needs each row's labels together"):
        tune_frame(frame, label="label", score="score", by="key", average="samples")


def test_rows_without_a_key_are_missing(engine, make, same):
    frame = make.groups(200)
    frame.loc[:4, "key"] = None
    frame.loc[9, "score"] = np.nan
    with pytest.raises(ValueError, match=r"6 of 200 rows are null or NaN \(1 without a score, 5 without a key"):
        tune_frame(engine(frame), label="label", score="score", by=["key", "part"])
    with pytest.warns(MissingRowsWarning, match="1 without a score, 5 without a key") as noted:
        cut = tune_frame(engine(frame), label="label", score="score", by=["key", "part"], missing="drop")
    assert [one.category for one in noted].count(MissingRowsWarning) == 1
    same.groups(cut, make.cuts_of_groups(frame.dropna()))


def test_a_cut_of_a_group_is_not_certified_by_its_own_rows(engine, make):
    frame = make.groups(1000)
    for average in ("macro", "micro"):
        cut = tune_frame(engine(frame), label="label", score="score", by="key", average=average)
        for key, rows in frame.groupby("key"):
            with pytest.raises(ValueError, match="these are the validation rows"):
                certify(cut[key], rows["label"], rows["score"])


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_groups_are_not_certified_by_all_but_one_of_their_own_rows(engine, average):
    frame, other = (long_table(3, 900, seed).to_pandas() for seed in (0, 1))
    with using(batch=100):
        cut = tune_frame(engine(frame), label="label", score="score", by="group", average=average)
    assert cut.checksums.any() == (engine.name != "ibis")
    rows = frame[3:]  # without one row of each group
    with pytest.raises(ValueError, match="some of these rows tuned the cut"):
        certify(cut, rows["label"], rows["score"], by=rows["group"])
    for key, own in rows.groupby("group"):
        with pytest.raises(ValueError, match="some of these rows tuned the cut"):
            certify(cut[key], own["label"], own["score"])
    assert certify(cut, other["label"], other["score"], by=other["group"]).rows == 900


# Many rows, many groups


def long_table(groups, rows, seed=0):
    """Every group occurs; the labels follow the scores."""
    random = np.random.default_rng(seed)
    keys = np.concatenate((np.arange(groups), random.integers(0, groups, rows - groups)))
    scores = random.random(rows)
    labels = (random.random(rows) < scores).astype(np.int8)
    return polars.DataFrame({"group": keys, "score": scores, "label": labels})


def assert_some_groups_same(cut, frame, groups, same):
    for group in groups:
        rows = frame.filter(polars.col("group") == group)
        if rows["label"].sum():
            same.cut(cut[group], tune_threshold(rows["label"].to_numpy(), rows["score"].to_numpy()))


@pytest.mark.parametrize("name", ["polars", "duckdb", "ibis"])
def test_bins_of_groups_are_divided_until_few_rows_are_unresolved(name, engine_named, shipped, same):
    groups, rows = 20, 100_000
    frame = long_table(groups, rows)
    with using(grouped_bytes=0, shipped_by_group=1000, shipped_each=1, engine_bins=1 << 12):
        cut = tune_frame(engine_named(name)(frame.to_pandas()), label="label", score="score", by="group")
    assert_some_groups_same(cut, frame, range(groups), same)
    divisions = [answer for by, answer in shipped if by == (ENTRY, BIN)]
    assert len(divisions) >= 1
    assert max(answer for _, answer in shipped) <= 2 * (1 << 12) + 4 * groups  # occupied bins or parts, by class
    assert shipped[-1][0] == (ENTRY, SCORE)
    assert shipped[-1][1] <= 1000


@pytest.mark.parametrize("family", ["ties", "constant", "infinities", "all_magnitudes", "denormal", "negative"])
def test_divided_bins_hold_hard_scores_too(family, sample_of, same):
    sample = sample_of(family, 400)
    frame = polars.DataFrame({"group": np.arange(400) % 2, "score": sample.scores, "label": sample.labels})
    with using(grouped_bytes=0, shipped_by_group=16, shipped_each=1, engine_bins=8):
        cut = tune_frame(frame, label="label", score="score", by="group")
    assert_some_groups_same(cut, frame, (0, 1), same)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("what", ["score", "label", "g"])
def test_groups_that_change_between_queries_are_noticed(at_once, what):
    if at_once and what == "score":
        pytest.skip("one query asks for scores, and nothing else depends on them")
    columns = {"g": "range % 7", "label": "(range % 3 = 0)::INT", "score": "sqrt(range % 1013)"}
    columns |= {what: {"g": "floor(random() * 7)", "label": "(random() < 0.3)::INT", "score": "random()"}[what]}
    query = f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in columns.items())} FROM range(20000)"
    sizes = {} if at_once else {"grouped_bytes": 0, "shipped_by_group": 100, "shipped_each": 1, "engine_bins": 64}
    with using(**sizes), pytest.raises(SourceChangedError, match="persist it first"):
        tune_frame(duckdb.connect().sql(query), label="label", score="score", by="g")


def test_a_million_groups(shipped, same):
    frame = long_table(1_000_000, 2_000_000)
    cut = tune_frame(frame, label="label", score="score", by="group")
    assert len(cut) == 1_000_000
    assert max(answer for _, answer in shipped) <= 2_000_000  # no more than groups, occupied bins and classes
    assert_some_groups_same(cut, frame, (0, 1234, 999_999), same)
