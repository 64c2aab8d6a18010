"""Cuts: what they predict, how they are kept, and what they say."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pickle
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut import Confusion, Cut, ScoreTally, certify, tune_threshold
from surecut.constraints import Constraint, parse_constraints
from surecut.metrics import FBeta, LinearFractional, Metric, Tversky, Utility, WeightedAccuracy
from surecut.sample import Sample

LABELS, SCORES = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]


def cut_at(threshold, **fields):
    """A cut with a threshold of one's own."""
    known = {
        "value": 0.8,
        "metric": FBeta(1),
        "confusion": Confusion(2, 1, 0, 1),
        "interval": (-math.inf, threshold),
        "prior": 0.5,
        "sample": Sample(rows=4),
    }
    return Cut(threshold=threshold, **(known | fields))


# Predicting


def test_predictions_are_at_or_above_the_threshold():
    cut = cut_at(0.5)
    predictions = cut.predict([0.5, np.nextafter(0.5, 0), 0.6, -np.inf, np.inf])
    assert predictions.dtype == bool
    assert predictions.tolist() == [True, False, True, False, True]


def test_nan_is_not_predicted_but_refused():
    with pytest.raises(ValueError, match="scores holds NaN in 1 of 2 rows, the first at position 1"):
        cut_at(0.5).predict([0.5, math.nan])
    with pytest.raises(ValueError, match="NaN"):
        cut_at(math.inf).predict([math.nan])


def test_scores_are_compared_as_doubles():
    """0.1 in float32 is larger than 0.1 in float64."""
    assert cut_at(0.1).predict(np.array([0.1], dtype=np.float32)).tolist() == [True]
    assert cut_at(float(np.float32(0.1))).predict([0.1]).tolist() == [False]


def test_a_cut_is_frozen_and_can_be_pickled():
    cut = tune_threshold(LABELS, SCORES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cut.threshold = 0
    assert pickle.loads(pickle.dumps(cut)) == cut


def test_a_cut_tells_of_its_validation_rows():
    cut = tune_threshold(["a", "b", "b"], [0.1, 0.4, 0.9], sample_weight=[1, 2, 0.5], pos_label="b")
    sample = cut.sample
    assert (cut.rows, cut.weighted, cut.out_of_fold, cut.pos_label) == (3, True, False, "b")
    assert (cut.fingerprint, cut.seen) == (sample.fingerprint, sample.seen)
    other = cut.with_sample(out_of_fold=True, seen=())
    assert other.sample == dataclasses.replace(sample, out_of_fold=True)
    assert other != cut
    assert other.with_sample(out_of_fold=False) == cut  # the rows that are kept are not compared
    with pytest.raises(TypeError, match="threshold"):
        cut.with_sample(threshold=0.5)


def test_equal_cuts_have_equal_hashes(metric, tmp_path):
    cuts = [
        tune_threshold(LABELS, SCORES, metric=metric),
        tune_threshold(LABELS, SCORES, metric=metric, constraint=["recall>=0.5", "fpr<=0.9"]),
        tune_threshold(LABELS, SCORES, metric=metric, sample_weight=[0.5, 1, 2, 4]),
        tune_threshold(LABELS, SCORES, metric=metric).with_sample(pos_label="yes"),
    ]
    for cut in cuts:
        again = pickle.loads(pickle.dumps(cut)) if type(metric) is not LinearFractional else dataclasses.replace(cut)
        assert again == cut
        assert hash(again) == hash(cut)
        assert again in {cut}
        cut.save(tmp_path / "cut.json")
        loaded = Cut.load(tmp_path / "cut.json")
        assert hash(loaded) == hash(cut)
        assert (loaded in {cut}) == (loaded == cut)
    assert len(set(cuts)) == len(cuts)


def test_a_cut_for_a_metric_that_cannot_be_hashed_can_be():
    @dataclasses.dataclass
    class Gain(Metric):
        gains: dict[str, float]
        name = "gain"

        def evaluate(self, confusion):
            return self.gains["tp"] * confusion.tp - confusion.fp

    gain = Gain({"tp": 3.0})
    with pytest.raises(TypeError, match="unhashable"):
        hash(gain)
    cut = tune_threshold(LABELS, SCORES, metric=gain, constraint=Constraint(gain, ">=", 0.5))
    assert cut in {tune_threshold(LABELS, SCORES, metric=Gain({"tp": 3.0}), constraint=Constraint(gain, ">=", 0.5))}


# Files


@given(
    threshold=st.floats(allow_nan=False),
    lower=st.floats(allow_nan=False),
    prior=st.floats(1e-9, 1, exclude_max=True),
    cells=st.tuples(*[st.one_of(st.integers(1, 2**60), st.floats(1e-9, 1e30))] * 4),
)
def test_a_file_keeps_a_cut_to_the_last_bit(tmp_path_factory, threshold, lower, prior, cells):
    path = tmp_path_factory.getbasetemp() / "any.json"
    cut = cut_at(
        threshold,
        value=FBeta(1).evaluate(Confusion(*cells).at_prior(prior)),
        interval=(lower if lower < threshold else -math.inf, threshold),
        prior=prior,
        confusion=Confusion(*cells),
        constraints=parse_constraints(["precision>=0.9", "fpr≤0.1"]),
        prior_given=True,
        sample=Sample(12, weighted=True, fingerprint="12-00ff", out_of_fold=True, pos_label="yes"),
    )
    cut.save(path)
    loaded = Cut.load(path)
    assert loaded == cut
    assert math.copysign(1, loaded.threshold) == math.copysign(1, threshold)
    assert [type(cell) for cell in (loaded.confusion.tp, loaded.confusion.fn)] == [type(cells[0]), type(cells[2])]


@pytest.mark.parametrize("threshold", [math.inf, -math.inf, 5e-324, -0.0, 0.1 + 0.2, np.finfo(float).max])
def test_extreme_thresholds_survive_a_file(tmp_path, threshold):
    cut_at(threshold).save(tmp_path / "cut.json")
    loaded = Cut.load(tmp_path / "cut.json")
    assert loaded.threshold == threshold
    assert loaded.predicts_nothing == (threshold == math.inf)


@pytest.mark.parametrize("weights", [None, [0.1, 0.2, 0.3, 0.7]])
def test_a_tuned_cut_survives_a_file(metric, weights, tmp_path):
    cut = tune_threshold(LABELS, SCORES, metric=metric, sample_weight=weights, constraint="recall>=0.5")
    cut.save(str(tmp_path / "cut.json"))
    loaded = Cut.load(tmp_path / "cut.json")
    for field in dataclasses.fields(Cut):
        if field.name != "metric":
            assert getattr(loaded, field.name) == getattr(cut, field.name)
    assert loaded.metric.name == metric.name
    assert loaded.metric.evaluate(cut.confusion) == pytest.approx(cut.value, rel=1e-12)
    if type(metric) is not LinearFractional:
        assert loaded.metric == metric


def test_own_coefficients_are_kept_as_numbers(tmp_path):
    """A function of the prior cannot be written down; its value at the tuning rows' prior can."""
    jaccard = LinearFractional(lambda p: p, 0, -1, lambda p: p, 1, 0, name="my_jaccard")
    tune_threshold([0, 0, 0, 1], SCORES, metric=jaccard).save(tmp_path / "cut.json")
    document = json.loads((tmp_path / "cut.json").read_text())
    assert document["metric"]["coefficients"] == {"a": [0.25, 0, -1], "b": [0.25, 1, 0], "prior": 0.25}
    loaded = Cut.load(tmp_path / "cut.json").metric
    assert loaded.name == "my_jaccard"
    assert loaded.value(0.1, 0.05, 0.25) == pytest.approx(jaccard.value(0.1, 0.05, 0.25))
    with pytest.raises(ValueError, match=r"known at 0.25, and these rows have 0.5"):
        loaded.value(0.1, 0.05, 0.5)


def test_a_metric_of_cells_is_kept_at_every_prior(tmp_path):
    tripled = LinearFractional.from_cells(numerator=(3, 0, 0, 0), denominator=(3, 1, 1, 0), name="tripled")
    cut = tune_threshold([0, 0, 0, 1], SCORES, metric=tripled)
    cut.save(tmp_path / "cut.json")
    loaded = Cut.load(tmp_path / "cut.json")
    assert loaded == cut
    assert loaded.metric.evaluate(Confusion(6, 3, 2, 9)) == pytest.approx(18 / 23)


def test_a_function_is_kept_by_name_only(tmp_path):
    def net_gain(confusion):
        return 3 * confusion.tp - confusion.fp

    cut = tune_threshold(LABELS, SCORES, metric=net_gain)
    cut.save(tmp_path / "cut.json")
    loaded = Cut.load(tmp_path / "cut.json")
    assert loaded.metric.name == "net_gain"
    assert loaded.value == cut.value
    assert loaded.predict(SCORES).tolist() == cut.predict(SCORES).tolist()
    with pytest.raises(ValueError, match="the function 'net_gain', which a file cannot hold"):
        loaded.metric.evaluate(loaded.confusion)


@pytest.mark.parametrize("metric", [FBeta(1.5), FBeta(1 / 3), FBeta(1 + 1e-9), Tversky(0.1, 0.7)], ids=repr)
def test_parameters_are_kept_to_the_last_bit(metric, tmp_path):
    cut_at(0.5, metric=metric, value=metric.evaluate(Confusion(2, 1, 0, 1))).save(tmp_path / "cut.json")
    assert Cut.load(tmp_path / "cut.json").metric == metric


@pytest.mark.parametrize("name", ["accuracy", "f1", "utility"])
def test_an_own_metric_is_not_taken_for_the_catalogues_of_the_same_name(name, tmp_path):
    own = LinearFractional(1, -2, -1, 1, 0, 0, name=name)
    cut_at(0.5, metric=own, value=own.evaluate(Confusion(2, 1, 0, 1))).save(tmp_path / "cut.json")
    loaded = Cut.load(tmp_path / "cut.json").metric
    assert loaded.value(0.1, 0.05, 0.25) == own.value(0.1, 0.05, 0.25)


def test_a_function_is_not_taken_for_the_catalogues_metric_of_the_same_name(tmp_path):
    def f1(confusion):
        return confusion.tp - 2 * confusion.fp

    tune_threshold(LABELS, SCORES, metric=f1).save(tmp_path / "cut.json")
    assert Cut.load(tmp_path / "cut.json").metric != FBeta(1)


# What is no cut


def document(**changes):
    return json.loads(json.dumps(cut_at(0.5).to_dict())) | changes


def without(key):
    return {name: value for name, value in document().items() if name != key}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("threshold: 0.5", r"cut\.json is not a saved cut: it is not JSON"),
        ("", r"cut\.json is not a saved cut: it is empty"),
        (" \n", "it is empty"),
        ('{"threshold": 0.5}', 'expected an object with "schema": "surecut/cut"'),
        ("[1, 2]", 'expected an object with "schema"'),
        ("null", 'expected an object with "schema"'),
        (document(schema="other/thing"), 'expected an object with "schema"'),
        (
            document(schema_version=1),
            r"another version of surecut \(schema 1, this one reads 6\): tune and save it again",
        ),
        (without("schema_version"), "another version of surecut .schema None"),
        (without("threshold"), "'threshold' is missing"),
        (without("interval"), "'interval' is missing"),
        (without("confusion"), "'confusion' is missing"),
        (without("metric"), "'metric' is missing"),
        (without("tuning"), "'tuning' is missing"),
        (without("pos_label"), "'pos_label' is missing"),
        (document(threshold=math.nan), "it is not JSON .it holds NaN as a number"),
        (document(prior=math.inf), "it holds Infinity as a number"),
        (document(threshold="nan"), "its threshold is NaN"),
        (document(threshold=None), "expected a number, got None"),
        (document(threshold=True), "expected a number, got True"),
        (document(threshold="high"), "is not a saved cut: .*high"),
        (document(interval=[0.1]), "the two ends of an interval, got a list of 1"),
        (document(confusion={"tp": -1, "fp": 0, "fn": 0, "tn": 0}), "tp must be a finite number, not negative, got -1"),
        (document(confusion={"tp": 1, "fp": 0, "fn": 0}), "'tn' is missing"),
        (document(metric={"name": "f1", "parameters": {"beta": 1}}), "'type' is missing"),
        (document(metric={"name": "f0", "type": "FBeta", "parameters": {"beta": 0}}), "0 < beta"),
        (document(metric="f1"), "expected an object, got 'f1'"),
    ],
)
def test_a_file_that_is_no_cut_is_refused_with_the_reason(content, reason, tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError, match=reason):
        Cut.load(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "cut.json").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match="is not a saved cut: it is not JSON"):
        Cut.load(tmp_path / "cut.json")


def test_a_cut_is_not_saved_as_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    from surecut import tune_thresholds

    path = tmp_path / "cut.parquet"
    with pytest.raises(ValueError, match="a cut is saved as JSON, not as Parquet"):
        cut_at(0.5).save(path)
    assert not path.exists()
    tune_thresholds([[1, 0], [0, 1]], [[0.9, 0.2], [0.1, 0.8]]).save(path)
    with pytest.raises(ValueError, match=r"many labels: MultilabelCut.load reads it"):
        Cut.load(path)


def test_a_file_that_is_absent_is_said_to_be_absent(tmp_path):
    with pytest.raises(FileNotFoundError):
        Cut.load(tmp_path / "absent.json")
    with pytest.raises(FileNotFoundError):
        cut_at(0.5).save(tmp_path / "no" / "folder" / "cut.json")


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    path = tmp_path / "cut.json"
    cut_at(0.5).save(path)
    before = path.read_bytes()

    def fail(*arguments, **options):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="disk full"):
            cut_at(0.75).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["cut.json"]
    cut_at(0.75).save(path)
    assert Cut.load(path).threshold == 0.75


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_a_file_can_be_read_by_those_whom_the_umask_lets(tmp_path):
    previous = os.umask(0o022)
    try:
        cut_at(0.5).save(tmp_path / "cut.json")
    finally:
        os.umask(previous)
    assert (tmp_path / "cut.json").stat().st_mode & 0o777 == 0o644


# SQL

TABLE = [-math.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 0.1, 0.1 + 0.2, 0.3, 1, 7, 1e300, np.finfo(float).max, math.inf]


@pytest.mark.parametrize("threshold", [*TABLE, 0.25, 1 / 3, 2**53 + 2.0, np.nextafter(0.1, 1)])
def test_sql_selects_what_the_cut_predicts(threshold):
    cut = cut_at(float(threshold))
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE scored (row INTEGER, "the score" REAL)')
    connection.executemany("INSERT INTO scored VALUES (?, ?)", [*enumerate(map(float, TABLE)), (99, None)])
    expression = cut.to_sql("the score", dialect="sqlite")
    selected = {row for (row,) in connection.execute(f"SELECT row FROM scored WHERE {expression}")}
    connection.close()
    assert selected == set(np.flatnonzero(cut.predict(TABLE)).tolist())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_sql_holds_the_threshold_to_the_last_bit(threshold):
    written = cut_at(threshold).to_sql("score", "mysql").rpartition(" >= ")[2].removesuffix(")")
    assert float(written) == threshold
    assert "e" in written


def test_sql_in_dialects():
    assert cut_at(0.5).to_sql("score", "mysql") == "(`score` IS NOT NULL AND CAST(`score` AS DOUBLE) >= 5e-01)"
    assert cut_at(0.5).to_sql("score").startswith('("score" IS NOT NULL AND CAST("score" AS DOUBLE PRECISION) >= 5e-01')
    assert "CAST(`score` AS FLOAT64) >= 5e-01" in cut_at(0.5).to_sql("score", "bigquery")
    assert 'CAST("a""b" AS DOUBLE) >= 5e-01' in cut_at(0.5).to_sql('a"b', "DuckDB")
    assert cut_at(math.inf).to_sql("score") == "FALSE"
    assert cut_at(-math.inf).to_sql("score", "sqlite") == '("score" IS NOT NULL)'
    with pytest.raises(ValueError, match="unknown SQL dialect 'oracle': expected one of ansi, duckdb"):
        cut_at(0.5).to_sql("score", "oracle")


@pytest.mark.skipif(os.name != "posix", reason="named pipes are POSIX's")
def test_a_pipe_is_written_to_and_a_link_is_kept(tmp_path):
    import threading

    cut, pipe = cut_at(0.5), tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    read: list[str] = []
    reader.start()
    cut.save(pipe)
    reader.join(timeout=10)
    assert Cut.from_dict(json.loads(read[0])) == cut
    assert not pipe.is_file()  # what is no file is not replaced by one
    (tmp_path / "link.json").symlink_to(tmp_path / "cut.json")
    cut.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert Cut.load(tmp_path / "cut.json") == cut
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        cut.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.json", "link.json", "pipe"]


# What True means


@pytest.mark.parametrize("label", ["yes", 0, 2.5, False, "ja, gewiß", np.str_("no"), np.int64(3)])
def test_a_cut_remembers_the_positive_label(label, tmp_path):
    other = "other" if isinstance(label, str) else 1
    labels = [other, other, label, label]
    tuned = [
        tune_threshold(labels, SCORES, pos_label=label),
        tune_threshold(labels, SCORES, pos_label=label, metric=["f1"])["f1"],
        ScoreTally.from_scores(labels, SCORES, pos_label=label).best_cut(),
        sum([ScoreTally.from_scores(labels, SCORES, pos_label=label)] * 2).best_cut(),
    ]
    for cut in tuned:
        assert cut.pos_label == label
        assert type(cut.pos_label) in (str, int, float, bool)
        cut.save(tmp_path / "cut.json")
        assert Cut.load(tmp_path / "cut.json") == cut
        assert f"predict {cut.pos_label!r} where" in str(cut)


@pytest.mark.parametrize("label", [1, True, 1.0, np.int8(1), None])
def test_1_and_true_need_no_name(label):
    cut = tune_threshold([0, 0, 1, 1], SCORES, pos_label=label)
    assert cut.pos_label is None
    assert cut.to_dict()["pos_label"] == 1
    assert Cut.from_dict(cut.to_dict()) == cut


def test_new_rows_are_read_by_the_cuts_own_label():
    cut = tune_threshold(["a", "a", "b", "b"], SCORES, pos_label="b")
    fresh = ["b", "a"] * 50, np.linspace(0, 1, 100)
    named = certify(cut, *fresh)
    assert named == certify(cut, *fresh, pos_label="b")
    assert named == certify(cut, [label == "b" for label in fresh[0]], fresh[1])  # booleans say it themselves
    zero = tune_threshold([1, 1, 0, 0], SCORES, pos_label=0)
    assert zero.positive_in(np.array([True, False])) is None
    assert zero.positive_in([0, 1]) == 0
    assert zero.positive_in([0, 1], 1) == 1


def test_tallies_of_different_classes_do_not_add_up():
    first, second = (ScoreTally.from_scores([0, 1], [0.1, 0.9], pos_label=label) for label in (0, 1))
    with pytest.raises(ValueError, match="different labels as positive: 0 and 1"):
        first + second


# Words


def test_a_cut_says_what_it_does():
    assert str(tune_threshold([0, 1], [0.25, 0.75])) == (
        "predict positive where score >= 0.5: f1 = 1.0000 on 2 rows, 50.00% positive, 1 accepted"
    )
    assert "predict nothing: accuracy = 1.0000" in str(tune_threshold([0, 0], [1, 2], metric="accuracy"))
    constrained = tune_threshold(LABELS, SCORES, constraint=["precision>=0.5", "fpr<=0.5"])
    assert " subject to precision>=0.5 and false_positive_rate<=0.5 on 4 rows" in str(constrained)
    assert "10.00% positive (given)" in str(cut_at(0.5, prior=0.1, prior_given=True))
    assert "utility = -0.5000" in str(cut_at(0.5, metric=Utility(fp=-1), value=-0.5))
    assert "weighted_accuracy" in str(cut_at(0.5, metric=WeightedAccuracy(1, 2)))
    assert "on 1,234,567 rows" in str(cut_at(0.5, sample=Sample(1234567)))
    weighted = tune_threshold([0, 1], [0.25, 0.75], sample_weight=[1, 2.5])
    assert str(weighted).endswith("71.43% positive, a weight of 2.5 accepted")


def test_the_cuts_of_many_labels_are_told_apart(tmp_path):
    from surecut import MultilabelCut, tune_thresholds

    tune_thresholds([[1, 0], [0, 1]], [[0.9, 0.2], [0.1, 0.8]]).save(tmp_path / "cuts.json")
    with pytest.raises(ValueError, match=r"many labels: MultilabelCut.load reads it"):
        Cut.load(tmp_path / "cuts.json")
    assert len(MultilabelCut.load(tmp_path / "cuts.json")) == 2


def test_a_cut_shows_itself_in_a_line():
    cut = tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75])
    assert repr(cut) == f"<Cut: {cut}>"
