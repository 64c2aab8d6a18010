"""tune_frame gives the cut of tune_threshold on the collected columns, on every engine, or a clear error."""

from __future__ import annotations

import datetime
import decimal
import warnings

import numpy as np
import pytest

from surecut import (
    MissingRowsWarning,
    MultilabelCut,
    ScoreTally,
    UnknownLabelWarning,
    apply_frame,
    certify,
    tally_frame,
    tune_frame,
    tune_threshold,
)
from surecut.constraints import InfeasibleError

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")


# The contract


def test_the_cut_is_that_of_the_collected_columns(engine, family, sample_of, same):
    if family == "float16" and engine.name not in ("pandas", "pyarrow", "pyarrow data set"):
        pytest.skip("the engine has no half floats")
    same.contract(engine, sample_of(family, 300))


@pytest.mark.parametrize("name", ["polars lazy", "pyarrow", "duckdb", "ibis"])
def test_it_is_in_many_small_steps_too(name, engine_named, family, sample_of, same, in_small_steps):
    if family == "float16" and name != "pyarrow":
        pytest.skip("the engine has no half floats")
    same.contract(engine_named(name), sample_of(family, 300), metric="mcc", weightings=("unweighted", "counts"))


def test_constraints_hold_on_every_engine(engine, sample_of, in_small_steps, make, same):
    same.contract(engine, sample_of("sigmoid", 400), metric="recall", constraint="precision>=0.5")
    sample = sample_of("sigmoid", 400)
    with pytest.raises(InfeasibleError, match="no cut meets accuracy>=1"):
        tune_frame(engine(make.frame(sample)), label="label", score="score", constraint="accuracy>=1")


def test_several_metrics_come_from_the_same_passes(engine, sample_of, make, same):
    sample = sample_of("sigmoid", 400)
    cuts = tune_frame(engine(make.frame(sample)), label="label", score="score", metric=["f1", "am", "gmean"])
    assert list(cuts) == ["f1", "am", "gmean"]
    for name, cut in cuts.items():
        same.cut(cut, tune_threshold(sample.labels, sample.scores, metric=name))


def test_a_function_of_the_confusion_is_tried_at_every_score(engine, sample_of, make, same):
    sample = sample_of("ties", 200)

    def closeness(confusion):
        return -np.abs(confusion.tp - 3 * confusion.fp)

    cut = tune_frame(engine(make.frame(sample)), label="label", score="score", metric=closeness)
    same.cut(cut, tune_threshold(sample.labels, sample.scores, metric=closeness))


def test_the_tally_comes_on_request(engine, sample_of, make, same):
    for family in ("sigmoid", "ties"):
        sample = sample_of(family, 300)
        weights = sample.weights["counts"]
        frame = engine(make.frame(sample, weights))
        cut = tune_frame(frame, label="label", score="score", weight="weight")
        tally = tally_frame(frame, label="label", score="score", weight="weight")
        expected = ScoreTally.from_scores(sample.labels, sample.scores, sample_weight=weights)
        assert tally == expected
        assert np.array_equal(tally.squares, expected.squares)
        same.cut(cut, expected.best_cut("f1"))
        cut = tune_frame(frame, label="label", score="score")
        tally = tally_frame(frame, label="label", score="score")
        assert tally.sample.fingerprint == tune_threshold(sample.labels, sample.scores).fingerprint
        assert certify(cut, tally=tally, method="uniform").lower <= cut.value


@pytest.mark.parametrize("family", ["sigmoid", "ties", "float32_infinities", "only_infinities"])
def test_rows_that_tuned_a_cut_do_not_certify_it_as_rows_kept_aside(engine, family, sample_of, make):
    sample = sample_of(family, 300)
    weights = sample.weights["counts"]
    frame = engine(make.frame(sample, weights))
    plain = tune_frame(frame, label="label", score="score")
    weighted = tune_frame(frame, label="label", score="score", weight="weight")
    present = weights > 0
    for cut, labels, scores, given in (
        (plain, sample.labels, sample.scores, None),
        (weighted, sample.labels, sample.scores, weights),
        (weighted, sample.labels[present], sample.scores[present], None),
    ):
        with pytest.raises(ValueError, match="these are the validation rows"):
            certify(cut, labels, scores, sample_weight=given)
    fresh = sample_of(family, 300, seed=1)
    word = None if family == "sigmoid" else True  # of tied scores it cannot be told whether rows are others
    assert certify(plain, fresh.labels, fresh.scores, held_out=word).lower < 1
    counted = {"sample_weight": fresh.weights["counts"], "weights": "counts"}
    assert certify(weighted, fresh.labels, fresh.scores, **counted, held_out=word).lower < 1


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
def test_labels_of_many_kinds(engine, kind, sample_of, in_small_steps, make, same):
    convert, pos_label = KINDS[kind]
    sample = sample_of("sigmoid", 200)
    frame = make.frame(sample).assign(label=convert(sample.labels))
    cut = tune_frame(engine(frame), label="label", score="score", pos_label=pos_label)
    same.cut(cut, tune_threshold(sample.labels, sample.scores))
    assert cut.pos_label == pos_label


def test_decimal_scores(engine, sample_of, same):
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
    same.cut(cut, tune_threshold([0, 0, 1, 1], [0.12, 0.4, 0.35, 0.8]))


# What is refused


def small(**columns):
    return pandas.DataFrame({"label": [0, 1, 1, 0], "score": [0.1, 0.2, 0.3, 0.4]} | columns)


REFUSED = {
    "no such column": (small(), {"score": "scores"}, "there is no column 'scores' in the frame: did you mean 'score'?"),
    "three classes": (small(label=[0, 1, 2, 1]), {}, "label must hold two classes, found 3"),
    "minus one and zero": (small(label=[0, 1, -1, 1]), {}, "label must hold two classes, found 3"),
    "text": (small(label=["a", "b", "b", "a"]), {}, "label holds the labels 'a', 'b': say which one is positive"),
    "which number": (small(label=[1, 2, 2, 1]), {}, "label holds the labels 1, 2: say which one is positive"),
    "absent": (small(label=["a", "b", "b", "a"]), {"pos_label": "c"}, "pos_label='c' is not among the labels in label"),
    "third text": (small(label=["a", "b", "c", "a"]), {"pos_label": "a"}, "label must hold two classes, found 3"),
    "NaN": (small(score=[0.1, np.nan, 0.3, 0.4]), {}, "1 of 4 rows are null or NaN.*1 without a score.*missing="),
    "no label": (small(label=[0, 1, None, None]), {}, "2 of 4 rows are null or NaN.*2 without a label"),
    "no weight": (small(w=[1, 1, 1, None]), {"weight": "w"}, "1 of 4 rows are null or NaN.*1 without a weight"),
    "negative weight": (small(w=[1.0, -1, 1, 1]), {"weight": "w"}, "w must be finite and not negative"),
    "zero weights": (small(w=[0.0, 0, 0, 0]), {"weight": "w"}, "w is zero in all 4 rows"),
    "large integers": (small(score=[1, 2, 3, 2**53 + 2]), {}, "beyond 2\\*\\*53"),
    "no rows": (small()[:0], {}, "holds no rows"),
    "policy": (small(), {"missing": "ignore"}, 'missing must be "error" or "drop", got \'ignore\''),
    "average": (small(g=1), {"by": "g", "average": "mean"}, "average= must be one of macro, micro, samples"),
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
    in_file = engine.name == "parquet"  # text in a file may be numbers
    message = "'score' must hold numbers, but 4 rows do not" if in_file else "score must be numbers"
    with pytest.raises(ValueError if in_file else TypeError, match=message):
        tune_frame(engine(small(score=["a", "b", "c", "d"])), label="label", score="score")


NO_WEIGHTS = {
    "text": ["heavy"] * 4,
    "digits": ["1", "2", "3", "4"],
    "categorical": pandas.Categorical(["a", "b", "a", "b"]),
    "dates": [datetime.datetime(2020, 1, 1)] * 4,
}


@pytest.mark.parametrize("options", [{}, {"by": "g"}, {"weights": "counts", "confidence": 0.9}], ids=str)
@pytest.mark.parametrize("kind", NO_WEIGHTS)
def test_weights_are_of_a_type_of_numbers(engine, kind, options):
    if engine.name == "parquet" and kind != "dates":
        pytest.skip("text in a file may be numbers")
    with pytest.raises(TypeError, match=r"^w must be numbers, got values of type"):
        tune_frame(engine(small(w=NO_WEIGHTS[kind], g=1)), label="label", score="score", weight="w", **options)


def test_dates_are_no_weights_of_an_array():
    dates = np.array(["2020-01-01"] * 4, dtype="M8[D]")
    for weights in (dates, dates - dates[0]):
        with pytest.raises(TypeError, match=r"sample_weight must be numbers .*got dates or durations"):
            tune_threshold([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], sample_weight=weights)


def test_weights_are_rounded_to_doubles_in_every_engine(engine):
    frame = small(w=[2**60 + 1, 1, 2**60 + 1, 1])
    cut = tune_frame(engine(frame), label="label", score="score", weight="w")
    assert cut.threshold == tune_threshold(frame["label"], frame["score"], sample_weight=frame["w"]).threshold


def test_other_things_are_no_frames(tmp_path):
    with pytest.raises(TypeError, match=r"expected a pandas, Polars, .* got list"):
        tune_frame([1, 2], label="label", score="score")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        tune_frame(tmp_path / "none.parquet", label="label", score="score")
    (tmp_path / "rows.xlsx").write_text("")
    with pytest.raises(ValueError, match=r"has the ending '.xlsx'; expected one of .csv"):
        tune_frame(tmp_path / "rows.xlsx", label="label", score="score")


def test_what_may_be_gone_after_one_pass_is_no_frame():
    table = pyarrow.Table.from_pandas(small(g=1))
    cut = tune_frame(table, label="label", score="score")
    for once in (table.to_reader(), pyarrow.dataset.dataset(table).scanner()):
        for by in (None, "g"):
            with pytest.raises(TypeError, match=f"a {type(once).__name__} can be read only once.* pass a table"):
                tune_frame(once, label="label", score="score", by=by)
        with pytest.raises(TypeError, match="can be read only once"):
            apply_frame(once, cut, score="score")


def test_missing_rows_are_dropped_on_request_and_reported(engine, same):
    frame = small(
        label=pandas.array([0, 1, 1, None], dtype="Int8"), score=[0.1, 0.2, np.nan, 0.4], w=[1.0, 2.0, 1.0, 1.0]
    )
    with pytest.warns(MissingRowsWarning, match=r"dropped rows: 2 of 4 rows .*1 without a score, 1 without a label"):
        cut = tune_frame(engine(frame), label="label", score="score", weight="w", missing="drop")
    same.cut(cut, tune_threshold([0, 1], [0.1, 0.2], sample_weight=[1, 2]))


# Applying a cut


def test_one_threshold_for_all_rows_is_not_applied_by_groups():
    frame = small(g=1)
    cut = tune_frame(frame, label="label", score="score")
    with pytest.raises(ValueError, match="by= goes with a MultilabelCut; this cut has one threshold for all rows"):
        apply_frame(frame, cut, score="score", by="g")


def collected(frame):
    for name in ("collect", "compute", "df", "execute"):
        if hasattr(frame, name):
            frame = getattr(frame, name)()
            break
    return frame if isinstance(frame, pandas.DataFrame) else frame.to_pandas()


def test_a_cut_is_applied_where_the_rows_are(engine, sample_of, make):
    for family in ("infinities", "sigmoid"):
        sample = sample_of(family, 200)
        frame = make.frame(sample)
        cut = tune_frame(frame, label="label", score="score")
        applied = collected(apply_frame(engine(frame), cut, score="score", name="flag"))
        assert list(applied.columns) == ["label", "score", "flag"]
        assert applied.sort_values(["score", "label"])["flag"].tolist() == (
            frame.assign(flag=cut.predict(sample.scores)).sort_values(["score", "label"])["flag"].tolist()
        )
        said = duckdb.sql(f"SELECT score, label, {cut.to_sql('score', 'duckdb')} AS flag FROM frame").df()
        assert said["flag"].tolist() == cut.predict(sample.scores).tolist()


def test_nothing_is_predicted_without_a_score_or_at_infinity(engine):
    cut = tune_threshold([0, 1], [0.25, 0.75])
    never = tune_threshold([1, 0, 0], [1.0, np.inf, np.inf], metric="accuracy")
    assert never.predicts_nothing
    frame = small(score=[0.6, np.nan, np.inf, -np.inf])
    assert sorted(collected(apply_frame(engine(frame), cut, score="score"))["predicted"]) == [False, False, True, True]
    assert not collected(apply_frame(engine(frame), never, score="score"))["predicted"].any()


def test_the_cuts_of_groups_are_applied_by_their_keys(engine, make):
    frame = make.groups(300).astype({"part": "int32"})
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
    with pytest.raises(ValueError, match=r"do not come from 1 column$"):
        apply_frame(engine(frame), cut, score="score", by="key")


# Rows that a cut cannot predict

LAZY = ("polars lazy", "pyarrow data set", "duckdb", "parquet", "ibis")


@pytest.fixture
def unpredictable():
    """A cut of two groups, and rows of which one has no score, and two belong to no group that the cut knows."""
    rows = small(score=[0.25, 0.75, 0.25, 0.75], label=[0, 1, 0, 1], key=["a", "a", "b", "b"])
    cut = tune_frame(rows, label="label", score="score", by="key")
    return cut, pandas.DataFrame({"score": [0.9, np.nan, 0.1, 0.9, 0.9], "key": ["a", "b", "b", "c", None]})


def test_rows_without_a_score_or_a_known_label_are_negative(engine, unpredictable):
    cut, frame = unpredictable
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        applied = apply_frame(engine(frame), cut, score="score", by="key")
    found = {one.category: str(one.message) for one in caught if issubclass(one.category, UserWarning)}
    if engine.name in LAZY:
        assert not {MissingRowsWarning, UnknownLabelWarning} & found.keys()
    else:
        assert found[MissingRowsWarning] == "1 of 5 rows have no score in 'score': they are predicted negative"
        assert found[UnknownLabelWarning].startswith(
            "2 of 5 rows have a label in 'key' that is none of the cut's: they"
        )
        assert {one.filename for one in caught if one.category in (MissingRowsWarning, UnknownLabelWarning)} == {
            __file__
        }
    assert sorted(collected(applied)["predicted"]) == [False] * 4 + [True]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_without_a_score_or_a_known_label_are_an_error_on_request(engine, unpredictable):
    cut, frame = unpredictable
    options = {"score": "score", "by": "key"}
    with pytest.raises(ValueError, match=r"1 of 5 rows have no score in 'score': fill them, or pass missing=\"neg"):
        apply_frame(engine(frame), cut, **options, missing="error")
    with pytest.raises(ValueError, match=r"2 of 5 rows have a label in 'key' .*tune on rows.* pass unknown=\"neg"):
        apply_frame(engine(frame), cut, **options, unknown="error")
    complete = frame[:1]
    applied = apply_frame(engine(complete), cut, **options, missing="error", unknown="error")
    assert collected(applied)["predicted"].tolist() == [True]
    for option in ("missing", "unknown"):
        with pytest.raises(ValueError, match=f'{option} must be "negative" or "error", got \'drop\''):
            apply_frame(engine(complete), cut, **options, **{option: "drop"})


def test_a_label_whose_cut_predicts_nothing_is_known(engine):
    rows = small(score=[0.25, 0.75, 0.25, 0.75], label=[0, 1, 0, 0], key=["a", "a", "b", "b"])
    cut = tune_frame(rows, label="label", score="score", by="key", metric="accuracy")
    assert cut.thresholds.tolist()[1] == np.inf
    applied = apply_frame(engine(rows), cut, score="score", by="key", unknown="error")
    assert sorted(collected(applied)["predicted"]) == [False, False, False, True]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("labels", "keys", "dtype", "expected"),
    [
        (["1.5", "7", "01", "1", "x"], [2, 7, 1, 44], "int64", [False, True, False, False]),
        ([2.0, 1.5, "2"], [1, 2, 3, 4], "int64", [False] * 4),
        ([1.0, 1.5], [1, 2, 3, 4], "int64", [True, False, False, False]),
        ([300, 7], [44, 7, 1, 2], "int8", [False, True, False, False]),
        ([2**63 + 1, -1], [2**63 + 1, 2**63, 2**64 - 1, 1], "uint64", [True, False, False, False]),
        ([2**53 + 1, 2, "0.5"], [2.0**53, 2.0, 0.5, 1.0], "float64", [False, True, True, False]),
        ([0.1, float(np.float32(0.2)), 0.3 + 1e-12], [0.1, 0.2, 0.3, 0.4], "float32", [True, True, False, False]),
        ([7, "a"], ["7", "a", "b", "c"], "str", [True, True, False, False]),
        ([7, "a"], ["7", "a", "b", "c"], "category", [True, True, False, False]),
        ([0, "true"], [True, False, True, False], "bool", [True] * 4),
    ],
    ids=["text", "equal", "halves", "int8", "uint64", "float64", "float32", "str", "category", "bool"],
)
def test_labels_match_rows_of_any_type_exactly_or_not_at_all(engine, labels, keys, dtype, expected):
    cut = MultilabelCut.from_cuts(labels, [tune_threshold([0, 1], [0.25, 0.75])] * len(labels))
    rows = pandas.DataFrame({"score": 0.9, "key": pandas.Series(keys, dtype=dtype), "row": range(4)})
    applied = collected(apply_frame(engine(rows), cut, score="score", by="key"))
    assert list(applied.columns) == ["score", "key", "row", "predicted"]
    assert applied.sort_values("row")["predicted"].tolist() == expected
    if not all(expected):
        with pytest.raises(ValueError, match=f"{expected.count(False)} of 4 rows have a label"):
            apply_frame(engine(rows), cut, score="score", by="key", unknown="error")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_that_are_no_category_match_no_row():
    cut = MultilabelCut.from_cuts(["a", "z", 1], [tune_threshold([0, 1], [0.25, 0.75])] * 3)
    text = polars.DataFrame({"s": [0.9, 0.9], "g": ["a", "b"]}, schema_overrides={"g": polars.Enum(["a", "b"])})
    for frame in (text, text.lazy(), duckdb.sql("SELECT s, g::ENUM('a', 'b') AS g FROM text ORDER BY g")):
        assert collected(apply_frame(frame, cut, score="s", by="g"))["predicted"].tolist() == [True, False]
    numbers = pandas.DataFrame({"s": [0.9, 0.9, 0.9], "g": pandas.Categorical([1, 2, None])})
    assert apply_frame(numbers, cut, score="s", by="g")["predicted"].tolist() == [True, False, False]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("labels", "kind"),
    [([decimal.Decimal("2.5"), 2.501, "x"], pyarrow.decimal128(3, 1)), ([b"a", "b", 3], pyarrow.large_binary())],
    ids=["decimal", "bytes"],
)
def test_labels_that_arrow_cannot_hold_match_no_row(labels, kind):
    cut = MultilabelCut.from_cuts(labels, [tune_threshold([0, 1], [0.25, 0.75])] * 3)
    rows = pyarrow.table({"s": [0.9, 0.9], "g": pyarrow.array([labels[0], None], kind)})
    assert apply_frame(rows, cut, score="s", by="g")["predicted"].to_pylist() == [True, False]


def test_groups_of_bytes_are_applied():
    rows = duckdb.sql("SELECT * FROM (VALUES (0, 0.25, 'a\\xFF'::BLOB), (1, 0.75, 'a\\xFF'::BLOB)) AS t(y, s, g)")
    cut = tune_frame(rows, label="y", score="s", by="g")
    assert apply_frame(rows, cut, score="s", by="g", unknown="error").order("s").df()["predicted"].tolist() == [0, 1]


@pytest.mark.parametrize("by", [None, "key"])
def test_columns_of_any_name_stay_as_they_are(engine, by):
    rows = small(key=["a"] * 4, surecut_threshold=1.5, surecut_position=[3, 2, 1, 0])
    cut = tune_frame(rows, label="label", score="score", by=by)
    for name in ("predicted", "surecut_threshold_"):
        applied = collected(apply_frame(engine(rows), cut, score="score", by=by, name=name))
        applied = applied.sort_values("surecut_position", ascending=False)
        assert list(applied.columns) == [*rows.columns, name]
        assert applied["surecut_threshold"].tolist() == [1.5] * 4
        assert (
            applied[name].tolist() == (rows["score"] >= (cut.threshold if by is None else cut.thresholds[0])).tolist()
        )


@pytest.mark.parametrize(
    "index", [[5, 3, 9, 3], pandas.MultiIndex.from_product([["u", "v"], [1, 2]], names=["a", "b"])]
)
def test_a_cut_of_groups_keeps_the_index(index):
    rows = small(key=["b", "a", "b", "a"]).set_axis(index)
    cut = tune_frame(rows, label="label", score="score", by="key", metric="accuracy")
    applied = apply_frame(rows, cut, score="score", by="key")
    pandas.testing.assert_index_equal(applied.index, rows.index)
    pandas.testing.assert_frame_equal(applied[list(rows.columns)], rows)


# Labels, keys and weights at the edges of their types


def edges(**columns):
    scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    return pandas.DataFrame({"label": [0, 1] * 4, "score": scores, "g": 1} | columns)


@pytest.mark.parametrize("by", [None, "g"])
def test_a_positive_label_is_compared_with_integers_as_an_integer(engine, by):
    rows = edges(label=[2**60, 2**60 + 1] * 4)
    expected = tune_threshold(rows["label"], rows["score"], pos_label=2**60).confusion
    for label in (2**60, float(2**60)):
        cut = tune_frame(engine(rows), label="label", score="score", by=by, pos_label=label)
        assert (cut if by is None else cut[1]).confusion == expected
    with pytest.raises(ValueError, match="is not among the labels"):
        tune_frame(engine(rows), label="label", score="score", by=by, pos_label=2.0**60 + 2**9)


@pytest.mark.parametrize("by", [None, "g"])
def test_a_positive_label_may_be_a_float32(engine, by):
    rows = edges(label=np.tile(np.array([0.1, 0.2], dtype=np.float32), 4))
    for label in (np.float32(0.1), 0.1):
        assert tune_frame(engine(rows), label="label", score="score", by=by, pos_label=label).value == pytest.approx(
            2 / 3
        )


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("name", ["pandas", "pyarrow"])
def test_labels_may_be_half_floats_and_categories_of_numbers(name, by, engine_named):
    for label in (np.array([0, 1] * 4, dtype=np.float16), pandas.Categorical([0, 1] * 4)):
        cut = tune_frame(engine_named(name)(edges(label=label)), label="label", score="score", by=by)
        assert cut.value == pytest.approx(8 / 11)
    halves = edges(label=np.tile(np.array([0.1, 0.2], dtype=np.float16), 4))
    cut = tune_frame(engine_named(name)(halves), label="label", score="score", by=by, pos_label=np.float16(0.1))
    assert cut.value == pytest.approx(2 / 3)
    absent = edges(label=pandas.Categorical([0, 1, None, 1] * 2))
    with pytest.warns(MissingRowsWarning, match="2 without a label"):
        cut = tune_frame(engine_named(name)(absent), label="label", score="score", by=by, missing="drop")
    assert cut.value == pytest.approx(8 / 9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_minus_zero_and_zero_are_one_group(engine, dtype, same):
    zeros = np.array([0.0, -0.0, -0.0, 0.0, 1, 1, 1, 1], dtype=dtype)
    rows = edges(g=zeros)
    cut = tune_frame(engine(rows), label="label", score="score", by="g")
    same.groups(cut, tune_frame(edges(g=zeros + 0), label="label", score="score", by="g"))
    applied = collected(apply_frame(engine(rows), cut, score="score", by="g", unknown="error")).sort_values("score")
    assert applied["predicted"].tolist() == (rows["score"] >= np.repeat(cut.thresholds, 4)).tolist()
    np.testing.assert_array_equal(np.signbit(applied["g"]), np.signbit(zeros))


@pytest.mark.parametrize("by", [None, "g"])
def test_integer_weights_beyond_2_53_are_the_nearest_doubles(engine, by):
    rows = edges(weight=[2**53 + 1] * 8)
    cut = tune_frame(engine(rows), label="label", score="score", weight="weight", by=by)
    assert cut.value == pytest.approx(8 / 11)


def test_a_column_groups_once(engine):
    with pytest.raises(ValueError, match="a column groups the rows twice: 'g', 'g'"):
        tune_frame(engine(edges()), label="label", score="score", by=["g", "g"])


def test_rows_are_not_grouped_by_their_label_score_or_weight(engine):
    rows = engine(edges(weight=[2] * 8))
    for part in ("label", "score", "weight"):
        with pytest.raises(ValueError, match=f"'{part}' is the column of the {part}: rows cannot be grouped by it"):
            tune_frame(rows, label="label", score="score", weight="weight", by=["g", part])
    cut = tune_frame(rows, label="label", score="score", by="g")
    with pytest.raises(ValueError, match="'score' is the column of the score: rows cannot be grouped by it"):
        apply_frame(rows, cut, score="score", by="score")


def test_columns_of_a_file_that_differ_in_case_are_not_mistaken(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("label,Score,score\n1,0.5,0.1\n0,0.25,0.2\n")
    for name in ("score", "Score", "score_1"):
        with pytest.raises(ValueError, match="2 columns with the same name, but for case: 'Score', 'score'"):
            tune_frame(path, label="label", score=name)


def test_columns_are_named_by_text_and_once():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    values = [[0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75], [0.125, 0.5, 0.375, 0.75]]
    with pytest.raises(ValueError, match="columns must be named by text, got 1: rename it"):
        tune_frame(pandas.DataFrame(dict(enumerate(values))), label=0, score=1)
    names = ["label", "score", "score"]
    for frame in (pandas.DataFrame(zip(*values, strict=True), columns=names), pyarrow.table(values, names=names)):
        with pytest.raises(ValueError, match="the frame has several columns named 'score': rename all but one"):
            tune_frame(frame, label="label", score="score")
        with pytest.raises(ValueError, match="the frame has several columns named 'score': rename all but one"):
            apply_frame(frame, tune_threshold(*values[:2]), score="score")


def test_columns_of_nothing_but_nulls_stay_as_they_are():
    """PyArrow does not join columns that have no type."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"y": [0, 1, 0, 1], "s": [0.1, 0.2, 0.3, 0.4], "g": ["a", "a", "b", "b"]})
    cut = tune_frame(table, label="y", score="s", by="g")
    empty = table.append_column("nothing", pa.nulls(4))
    applied = apply_frame(empty, cut, score="s", by="g")
    assert applied.schema.names == ["y", "s", "g", "nothing", "predicted"]
    assert applied["nothing"].type == pa.null()
    assert applied["predicted"].to_pylist() == [False, True, False, True]
    without_keys = empty.set_column(2, "g", pa.nulls(4))
    with pytest.warns(UserWarning, match="none of the cut's"):
        assert not any(apply_frame(without_keys, cut, score="s", by="g")["predicted"].to_pylist())
