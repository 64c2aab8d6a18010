"""tune_top_k_frame gives the rule of tune_top_k on the matrices, on every engine; its predictions line by line."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from surecut import (
    MissingRowsWarning,
    TopK,
    UnknownLabelWarning,
    apply_frame,
    tune_threshold,
    tune_top_k,
    tune_top_k_frame,
)
from surecut.core.settings import using
from surecut.label_objectives import MULTICLASS
from surecut.metrics import CATALOGUE

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis")

LABELS = ("cat", "dog", "fox", "owl")
COLUMNS = {"row": "id", "by": "animal", "label": "is_true", "score": "p"}
APPLIED = {"row": "id", "by": "animal", "score": "p"}
LAZY = ("polars lazy", "pyarrow data set", "duckdb", "parquet", "ibis")


def classes_of(rows, seed=0):
    """Classes of rows, as positions, and scores with ties."""
    random = np.random.default_rng(seed)
    scores = random.dirichlet([3, 2, 1, 0.5], rows).round(2)
    wanted = scores + 0.02
    return np.array([random.choice(4, p=row / row.sum()) for row in wanted]), scores


def tags_of(rows, seed=0):
    """An indicator matrix, and scores with ties."""
    random = np.random.default_rng(seed)
    scores = random.random((rows, 4)).round(2)
    return (random.random((rows, 4)) < scores * [0.9, 0.6, 0.4, 0.2]).astype(int), scores


def long(truth, scores, seed=0, **columns):
    """A long table in an order of its own; `columns` hold a value for each row."""
    rows, labels = scores.shape
    frame = pandas.DataFrame(
        {
            "id": np.repeat(np.arange(rows), labels),
            "animal": np.tile(LABELS, rows),
            "is_true": np.asarray(truth).ravel(),
            "p": scores.ravel(),
            **{name: np.repeat(values, labels) for name, values in columns.items()},
        }
    )
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def indicators(codes):
    return np.eye(4, dtype=int)[codes]


def collected(frame):
    frame = frame.collect() if hasattr(frame, "collect") else frame
    for name in ("to_pandas", "df", "execute"):
        if hasattr(frame, name):
            return getattr(frame, name)()
    return frame


def assert_same_rule(found, expected):
    assert isinstance(found, TopK)
    assert (found.labels, found.k, found.value, found.average) == (
        expected.labels,
        expected.k,
        expected.value,
        expected.average,
    )
    for name in ("a", "offsets", "per_label", "matrix", "shrinkage"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.confusion == expected.confusion
    assert found.baseline.value == expected.baseline.value
    assert (found.rows, found.weighted, found.fingerprint) == (expected.rows, expected.weighted, expected.fingerprint)


# The contract

ASKED_OF_CLASSES = {
    "f1": {},
    "accuracy": {"metric": "accuracy"},
    "kappa": {"metric": "kappa", "average": "multiclass"},
    "micro": {"metric": "jaccard", "average": "micro"},
    "stable": {"stable": True},
    "shrinkage": {"shrinkage": 5.0},
}


FEWER = ("pandas", "polars", "pyarrow", "duckdb")
"""Engines for what comes after the matrices."""


def test_the_rule_of_classes_is_that_of_class_labels(engine):
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    assert_same_rule(tune_top_k_frame(engine(frame), **COLUMNS, k=1), tune_top_k(np.array(LABELS)[codes], scores, k=1))


@pytest.mark.parametrize("name", ASKED_OF_CLASSES)
def test_every_request_of_classes_is_that_of_class_labels(engine_named, name):
    codes, scores = classes_of(60)
    frame = engine_named("polars")(long(indicators(codes), scores))
    found = tune_top_k_frame(frame, **COLUMNS, k=1, **ASKED_OF_CLASSES[name])
    assert_same_rule(found, tune_top_k(np.array(LABELS)[codes], scores, k=1, **ASKED_OF_CLASSES[name]))


ASKED_OF_TAGS = {
    "one": {"k": 1},
    "two": {"k": 2},
    "weighted": {"k": 2, "metric": "recall", "average": "weighted"},
    "micro": {"k": 3, "metric": "precision", "average": "micro"},
    "stable": {"k": 2, "stable": True},
}


def test_the_rule_of_tags_is_that_of_the_matrices(engine):
    truth, scores = tags_of(60)
    weight = np.random.default_rng(1).integers(0, 3, 60).astype(float)
    found = tune_top_k_frame(engine(long(truth, scores, w=weight)), **COLUMNS, weight="w", k=2)
    assert_same_rule(found, tune_top_k(truth, scores, k=2, labels=LABELS, sample_weight=weight))


@pytest.mark.parametrize("name", ASKED_OF_TAGS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_every_request_of_tags_is_that_of_the_matrices(name, is_weighted):
    truth, scores = tags_of(60)
    weight = np.random.default_rng(1).integers(0, 3, 60).astype(float)
    frame = long(truth, scores, w=weight)
    found = tune_top_k_frame(frame, **COLUMNS, weight="w" if is_weighted else None, **ASKED_OF_TAGS[name])
    given = {"labels": LABELS, "sample_weight": weight if is_weighted else None}
    assert_same_rule(found, tune_top_k(truth, scores, **given, **ASKED_OF_TAGS[name]))


def test_pairs_without_a_line_are_absent_scores_of_sparse_matrices(engine):
    truth, scores = tags_of(60)
    is_there = np.random.default_rng(2).random(scores.shape) < 0.6
    frame = long(truth, scores)
    frame = frame.loc[is_there[frame["id"], frame["animal"].map(LABELS.index)] | (frame["is_true"] == 1)]
    has_score = is_there[frame["id"], frame["animal"].map(LABELS.index)]
    frame = frame.assign(p=frame["p"].where(has_score))  # true labels that are no candidates have no score
    found = tune_top_k_frame(engine(frame), **COLUMNS, k=2)
    stored = sparse.csr_array((scores[is_there], np.nonzero(is_there)), shape=scores.shape)
    expected = tune_top_k(sparse.csr_array(truth), stored, k=2, labels=LABELS)
    assert_same_rule(found, expected)
    assert found.confusion.positives.tolist() == truth.sum(axis=0).tolist()
    applied = collected(apply_frame(engine(frame), found, **APPLIED))
    predicted = applied.loc[applied["predicted"].astype(bool)]
    said = found.predict(stored, as_="indicator").toarray()
    assert sorted(zip(predicted["id"], predicted["animal"], strict=True)) == sorted(
        (row, LABELS[label]) for row, label in zip(*np.nonzero(said), strict=True)
    )


@pytest.mark.parametrize(
    ("metric", "average"), [(one, "macro") for one in CATALOGUE] + [(one, "multiclass") for one in MULTICLASS]
)
def test_every_metric_has_the_same_rule_from_every_source(metric, average, engine_named, tmp_path):
    codes, scores = classes_of(24, seed=3)
    frame = long(indicators(codes), scores)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    asked = {"k": 1, "metric": metric, "average": average}
    expected = tune_top_k(np.array(LABELS)[codes], scores, classes=LABELS, **asked)
    held = [engine_named(name)(frame) for name in ("pandas", "duckdb", "parquet")]
    for one in [*held, tmp_path / "rows.csv"]:
        assert_same_rule(tune_top_k_frame(one, **COLUMNS, **asked), expected)


def test_costs_are_those_of_class_labels(engine):
    codes, scores = classes_of(60)
    for options in ({"reject_cost": 0.3}, {"costs": {"cat": [0, 1, 1, 1], "ask": 0.4}}):
        found = tune_top_k_frame(engine(long(indicators(codes), scores)), **COLUMNS, k=1, stable=True, **options)
        expected = tune_top_k(np.array(LABELS)[codes], scores, k=1, stable=True, **options)
        assert (found.actions, found.value) == (expected.actions, expected.value)
        np.testing.assert_array_equal(found.matrix, expected.matrix)
        applied = collected(apply_frame(engine(long(indicators(codes), scores)), found, **APPLIED))
        applied = applied.sort_values(["id", "animal"])["predicted"].to_numpy().astype(bool).reshape(-1, 4)
        gain = np.sort(expected.gain_of(scores), axis=1)
        is_clear = gain[:, -1] - gain[:, -2] > 1e-6  # engines add up in orders of their own
        assert is_clear.sum() > 40
        said = expected.predict(scores)[:, None] == np.array(LABELS)
        np.testing.assert_array_equal(applied[is_clear], said[is_clear])


def test_several_metrics_give_a_dict(engine):
    codes, scores = classes_of(60)
    found = tune_top_k_frame(engine(long(indicators(codes), scores)), **COLUMNS, k=1, metric=["f1", "accuracy"])
    assert list(found) == ["f1", "accuracy"]
    assert found["accuracy"].average == "multiclass"


@pytest.mark.parametrize("name", ["polars lazy", "pyarrow", "duckdb"])
def test_the_rule_does_not_depend_on_batches_or_on_the_order_of_lines(name, engine_named):
    truth, scores = tags_of(60)
    with using(batch=16):
        found = [tune_top_k_frame(engine_named(name)(long(truth, scores, seed)), **COLUMNS, k=2) for seed in range(3)]
    for one in found:
        assert_same_rule(one, tune_top_k(truth, scores, k=2, labels=LABELS))


# Kinds of columns


def test_rows_and_labels_may_be_named_by_several_columns(engine):
    truth, scores = tags_of(60)
    frame = long(truth, scores).assign(part=lambda one: one["id"] % 7, of=lambda one: one["id"] // 7, kind="x")
    asked = COLUMNS | {"row": ["of", "part"], "by": ["kind", "animal"]}
    found = tune_top_k_frame(engine(frame), **asked, k=2)
    assert_same_rule(found, tune_top_k(truth, scores, k=2, labels=[("x", one) for one in LABELS]))
    applied = collected(apply_frame(engine(frame), found, score="p", row=asked["row"], by=asked["by"]))
    assert applied["predicted"].sum() == 2 * 60


@pytest.mark.parametrize(
    "kind", [int, float, str, "category", lambda one: one == "cat"], ids=["int", "float", "text", "category", "bool"]
)
@pytest.mark.parametrize("name", FEWER)
def test_labels_may_be_of_any_kind(engine_named, name, kind):
    engine = engine_named(name)
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    if kind in (int, float):
        frame["animal"] = frame["animal"].map(LABELS.index).astype(kind)
    elif callable(kind) and kind is not str:
        frame = frame.loc[frame["animal"].isin(LABELS[:2])]
        frame = frame.loc[frame.groupby("id")["is_true"].transform("sum") == 1]
        frame["animal"] = frame["animal"].map(kind)
    else:
        frame["animal"] = frame["animal"].astype(kind)
    found = tune_top_k_frame(engine(frame), **COLUMNS, k=1, metric="accuracy")
    assert found.is_multiclass
    assert list(found.labels) == sorted(frame["animal"].unique())
    applied = collected(apply_frame(engine(frame), found, **APPLIED))
    assert (applied["predicted"].astype(bool) & (applied["is_true"] == 1)).sum() == np.trace(found.matrix)


def test_truth_may_be_in_words():
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    expected = tune_top_k_frame(frame, **COLUMNS, k=1)
    frame["is_true"] = np.where(frame["is_true"] == 1, "yes", "no")
    assert_same_rule(tune_top_k_frame(frame, **COLUMNS, k=1, pos_label="yes"), expected)
    with pytest.raises(ValueError, match="is_true holds the labels 'no', 'yes': say which one is positive with"):
        tune_top_k_frame(frame, **COLUMNS, k=1)


# Missing values


def test_a_line_without_a_value_leaves_out_its_row(engine):
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    is_broken = (frame["id"] == 7) & (frame["is_true"] == 0)
    frame["p"] = frame["p"].where(~is_broken)
    with pytest.raises(ValueError, match=r'3 of 240 rows are null or NaN \(3 without a score\).*missing="drop"'):
        tune_top_k_frame(engine(frame), **COLUMNS, k=1)
    with pytest.warns(MissingRowsWarning, match="dropped rows: 3 of 240 rows are null or NaN"):
        found = tune_top_k_frame(engine(frame), **COLUMNS, k=1, missing="drop")
    kept = np.arange(60) != 7
    assert_same_rule(found, tune_top_k(np.array(LABELS)[codes[kept]], scores[kept], k=1))


def test_a_line_without_a_row_or_a_label_is_left_out_alone(engine):
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    expected = tune_top_k_frame(frame, **COLUMNS, k=1)
    nameless = frame[:2].assign(animal=[None, "cat"], id=[3, None])
    frame = pandas.concat([frame.astype({"id": float}), nameless.astype({"id": float})], ignore_index=True)
    with pytest.raises(ValueError, match="2 without a key"):
        tune_top_k_frame(engine(frame), **COLUMNS, k=1)
    with pytest.warns(MissingRowsWarning, match="2 without a key"):
        assert_same_rule(tune_top_k_frame(engine(frame), **COLUMNS, k=1, missing="drop"), expected)


# What is refused

REFUSED = [
    ({"k": 0}, "k= must be a whole number of labels"),
    ({"k": 5}, "k= must be at most the number of labels, 4, got 5"),
    ({"row": "no"}, "there is no column 'no' in the frame"),
    ({"row": []}, "row= must name a column, or several"),
    ({"by": "id"}, "'id' cannot tell both rows and labels apart"),
    ({"by": "p"}, "'p' is the column of the score"),
    ({"weight": "p"}, r"p must be the same in all lines of a row, and is .* for row 0"),
    ({"row": "w"}, r"lines repeat the row and label of another line, the first of row 0.0 and label 'cat'.*row="),
    ({"metric": "accuracy"}, r"average='macro' is the mean of accuracy .* 2 of 60 rows do not have exactly one"),
    ({"average": "multiclass", "metric": "mcc"}, r"2 of 60 rows .* \(1 has none, 1 has several\)"),
    ({"reject_cost": 0.3}, "costs= are of rows with one class each, and 2 of 60 rows do not have exactly one"),
    ({"reject_cost": 0.3, "k": 2}, "are of rows with one class each: k= must be 1, got 2"),
    ({"metric": "f1", "average": "multiclass"}, "average='multiclass' has the metrics"),
    ({"missing": "keep"}, "missing must be"),
    ({"shrinkage": "often"}, "shrinkage= must be a number or 'auto'"),
]


@pytest.mark.parametrize(("options", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_had_is_refused_with_the_reason(options, reason):
    codes, scores = classes_of(60)
    truth = indicators(codes)
    truth[0], truth[1] = 0, 1 - truth[1] * 0
    truth[1, 2:] = 0
    frame = long(truth, scores, w=np.zeros(60) + (np.arange(60) % 2))
    if "weight" in options or "row" in options:
        frame = frame.sort_values(["id", "animal"])
    with pytest.raises(ValueError, match=reason):
        tune_top_k_frame(frame, **(COLUMNS | {"k": 1} | options))


def test_rows_of_classes_need_all_scores():
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    fewer = frame.loc[(frame["id"] != 5) | (frame["is_true"] == 1)]
    assert tune_top_k_frame(fewer, **COLUMNS, k=1).matrix is None
    with pytest.raises(ValueError, match=r"1 of 60 rows lacks the score of a label: .* for each of the 4 labels"):
        tune_top_k_frame(fewer, **COLUMNS, k=1, metric="accuracy")


def test_a_pair_is_named_that_has_two_lines(engine):
    codes, scores = classes_of(60)
    frame = long(indicators(codes), scores)
    again = frame.loc[(frame["id"] == 7) & (frame["animal"] == "dog")]
    with pytest.raises(ValueError, match="1 line repeats the row and label of another line, of row 7 and label 'dog'"):
        tune_top_k_frame(engine(pandas.concat([frame, again])), **COLUMNS, k=1)


# Applied


@pytest.mark.parametrize("name", ["one", "two", "stable"])
def test_predicted_lines_are_those_of_predict_on_every_engine(engine, name):
    truth, scores = tags_of(60)
    rule = tune_top_k(truth, scores, labels=LABELS, **ASKED_OF_TAGS[name])
    scores[:3, 0], scores[3:5, 1] = np.inf, -np.inf
    scores[5] = -np.inf
    frame = long(truth, scores)
    applied = collected(apply_frame(engine(frame), rule, **APPLIED, name="shown")).sort_values(["id", "animal"])
    assert list(applied.columns) == [*frame.columns, "shown"]
    found = applied["shown"].to_numpy().astype(bool).reshape(-1, 4)
    np.testing.assert_array_equal(found, rule.predict(scores, as_="indicator"))


@pytest.mark.parametrize("name", ["f1", "stable"])
def test_predicted_classes_are_those_of_predict_on_every_engine(engine, name):
    codes, scores = classes_of(60)
    rule = tune_top_k(np.array(LABELS)[codes], scores, k=1, **ASKED_OF_CLASSES[name])
    applied = collected(apply_frame(engine(long(indicators(codes), scores)), rule, **APPLIED))
    chosen = applied.loc[applied["predicted"].astype(bool)].sort_values("id")
    assert chosen["animal"].tolist() == rule.predict(scores).tolist()


def test_ties_go_to_the_label_that_comes_first_in_the_rule(engine):
    truth, scores = tags_of(40)
    rule = tune_top_k(truth, scores, k=2, labels=LABELS)
    rule = replace(rule, labels=LABELS[::-1], actions=LABELS[::-1], a=np.zeros(4), offsets=np.zeros(4))
    applied = collected(apply_frame(engine(long(truth, scores)), rule, **APPLIED))
    assert set(applied.loc[applied["predicted"].astype(bool), "animal"]) == {"owl", "fox"}


def test_lines_without_a_score_or_a_known_label_do_not_count_among_the_k(engine):
    truth, scores = tags_of(40)
    rule = replace(tune_top_k(truth, scores, k=1, labels=LABELS), a=np.ones(4), offsets=np.zeros(4))
    odd = pandas.DataFrame(
        {
            "id": [1, 1, 1, 2, 2],
            "animal": ["cat", "dog", "yak", "cat", "dog"],
            "p": [np.nan, 0.5, 0.9, 0.25, 0.125],
            "is_true": [0, 0, 0, 1, 0],
        }
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        applied = collected(apply_frame(engine(odd), rule, **APPLIED)).sort_values(["id", "animal"])
    assert applied["predicted"].astype(bool).tolist() == [False, True, False, True, False]
    said = {one.category: str(one.message) for one in caught if issubclass(one.category, UserWarning)}
    if engine.name not in LAZY:
        assert said[MissingRowsWarning] == "1 of 5 rows have no score in 'p': they are predicted negative"
        assert "1 of 5 rows have a label in 'animal' that is none of the rule's" in said[UnknownLabelWarning]
    for option in ("missing", "unknown"):
        with pytest.raises(ValueError, match=f'1 of 5 rows have .*{option}="negative"'):
            apply_frame(engine(odd), rule, **APPLIED, **{option: "error"})


def test_a_rule_needs_a_long_table_and_a_cut_none():
    truth, scores = tags_of(40)
    frame = long(truth, scores)
    rule = tune_top_k(truth, scores, k=1, labels=LABELS)
    with pytest.raises(ValueError, match=r"say with row= and by= which columns name them"):
        apply_frame(frame, rule, score="p")
    with pytest.raises(ValueError, match=r"say with row= which columns name them"):
        apply_frame(frame, rule, score="p", by="animal")
    with pytest.raises(ValueError, match=r"row= goes with a TopK"):
        apply_frame(frame, tune_threshold(frame["is_true"], frame["p"]), score="p", row="id")
    with pytest.raises(ValueError, match="labels of the rule, such as 'cat', do not come from 2 columns"):
        apply_frame(frame, rule, score="p", row="id", by=["animal", "is_true"])
