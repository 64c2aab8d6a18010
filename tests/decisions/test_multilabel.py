"""MultilabelCut: prediction, parts, files."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from surecut import MultilabelCut, tune_threshold, tune_thresholds


@pytest.fixture
def cut() -> MultilabelCut:
    random = np.random.default_rng(0)
    truth = random.random((50, 4)) < 0.3
    truth[:, 3] = False
    scores = random.random((50, 4)) + truth
    return tune_thresholds(truth, scores, labels=["a", ("b", 2), 3, datetime.date(2024, 5, 1)])


def test_predicts_where_a_score_reaches_its_threshold(cut):
    at = np.vstack((cut.thresholds, np.nextafter(cut.thresholds, -np.inf)))
    assert cut.predict(at).tolist() == [[True] * 4, [False] * 4]
    with pytest.raises(ValueError, match="3 columns, but the cut has 4 labels"):
        cut.predict(at[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        cut.predict(at * np.nan)


def test_a_threshold_of_infinity_predicts_nothing():
    cut = tune_thresholds([[1], [0]], [[0.1], [0.9]], metric="accuracy")
    assert cut.thresholds.tolist() == [math.inf]
    assert cut.predict([[math.inf]]).tolist() == [[False]]


def test_is_a_mapping_of_labels_to_cuts(cut):
    assert list(cut) == ["a", ("b", 2), 3, datetime.date(2024, 5, 1)]
    assert len(cut) == 4
    assert ("b", 2) in cut
    assert cut["a"].threshold == cut.thresholds[0]
    with pytest.raises(KeyError, match="not among the 4 labels"):
        cut["z"]


@pytest.mark.parametrize("name", ["cut.json", "cut.parquet"])
def test_reads_back_to_the_last_bit(cut, name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    cut.save(tmp_path / name)
    again = MultilabelCut.load(tmp_path / name)
    assert again == cut
    assert again.labels == cut.labels
    assert again.thresholds.tolist() == cut.thresholds.tolist()
    assert again.shared == cut.shared
    assert again.fingerprint == cut.fingerprint


def test_other_files_are_refused(cut, tmp_path):
    path = tmp_path / "cut.json"
    path.write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        MultilabelCut.load(path)
    tune_threshold([0, 1], [0.1, 0.2]).save(path)
    with pytest.raises(ValueError, match=r'"surecut/multilabel-cut", and it holds a single cut: Cut.load reads it'):
        MultilabelCut.load(path)
    document = cut.to_dict()
    del document["per_label"][0]["tp"]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="'tp' is missing"):
        MultilabelCut.load(path)
    pytest.importorskip("pyarrow")
    (tmp_path / "cut.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="not a Parquet file"):
        MultilabelCut.load(tmp_path / "cut.parquet")


def test_cuts_of_single_labels_put_together():
    first = tune_threshold([0, 1, 1], [0.1, 0.4, 0.9])
    second = tune_threshold([0, 1], [0.6, 0.3])
    cut = MultilabelCut.from_cuts(["x", "y"], [first, second])
    assert cut.value == pytest.approx((first.value + second.value) / 2)
    assert cut["x"] == first
    assert cut["y"] == second
    with pytest.raises(ValueError, match="different metrics"):
        MultilabelCut.from_cuts(["x", "y"], [first, tune_threshold([0, 1], [0.6, 0.3], metric="am")])
    with pytest.raises(ValueError, match="pass value="):
        MultilabelCut.from_cuts(["x"], [first], average="micro")
    with pytest.raises(ValueError, match="one cut per label"):
        MultilabelCut.from_cuts(["x", "y"], [first])


def test_cuts_put_together_keep_their_calibration():
    labels, scores = [0, 1, 0, 1, 1, 0], [0.1, 0.4, 0.5, 0.9, 0.7, 0.3]
    smoothed = tune_threshold(labels, scores, shrinkage=5.0)
    assert smoothed.calibration
    cut = MultilabelCut.from_cuts(["x", "y"], [smoothed, smoothed])
    assert cut.calibration == smoothed.calibration
    assert cut["x"] == smoothed
    assert f"shrinkage 5, {smoothed.calibration}" in str(cut)
    other, plain = replace(smoothed, calibration="other"), tune_threshold(labels, scores)
    cut = MultilabelCut.from_cuts(["x", "y", "z", "w"], [smoothed, other, smoothed, plain])
    assert cut.calibration == f"{smoothed.calibration} for x, z, other for y"
    assert MultilabelCut.from_cuts(["w"], [plain]).calibration == ""


@pytest.mark.parametrize("name", ["cut.json", "cut.parquet"])
def test_a_confidence_is_kept_and_said(name, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    random = np.random.default_rng(0)
    scores = random.random(300)
    labels = random.random(300) < scores
    sure = tune_threshold(labels, scores, constraint="precision>=0.6", confidence=0.9)
    cut = MultilabelCut.from_cuts(["x", "y"], [sure, sure])
    assert cut.confidence == pytest.approx(0.8)  # of both together
    assert cut["y"] == sure
    assert " subject to precision>=0.6 (80 % confidence) on 300 rows each" in str(cut)
    cut.save(tmp_path / name)
    assert MultilabelCut.load(tmp_path / name) == cut
    assert MultilabelCut.load(tmp_path / name).confidence == cut.confidence
    assert cut != replace(cut, confidence=None)
    surer = tune_threshold(labels, scores, constraint="precision>=0.6", confidence=0.95)
    assert MultilabelCut.from_cuts(["x", "y"], [sure, surer]).confidence is None


def test_facts_about_the_validation_rows_can_be_changed(cut):
    other = cut.with_sample(out_of_fold=True, pos_label="yes", seen=())
    assert (other.out_of_fold, other.pos_label, other.seen) == (True, "yes", ())
    assert other["a"].sample == replace(cut["a"].sample, out_of_fold=True, pos_label="yes")
    with pytest.raises(TypeError, match="out_of_fold, pos_label, seen, weighted; got thresholds"):
        cut.with_sample(thresholds=cut.thresholds)


def test_another_version_is_refused(cut, tmp_path):
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(cut.to_dict() | {"schema_version": 4}))
    with pytest.raises(ValueError, match=r"another version of surecut \(schema 4, this one reads 6\)"):
        MultilabelCut.load(path)


def test_labels_that_a_file_cannot_name_are_told(tmp_path):
    cut = tune_thresholds([[0], [1]], [[0.1], [0.2]], labels=[frozenset({1})])
    with pytest.raises(TypeError, match="frozenset cannot be saved"):
        cut.save(tmp_path / "cut.json")
