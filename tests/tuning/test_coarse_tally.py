"""Rows that do not fit in memory: limits and curves come from ranges of scores, exact at the cuts between them."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest
from typer.testing import CliRunner

from surecut import ScoreTally, certify, tune_frame, tune_threshold
from surecut.certificates import uniform
from surecut.cli.app import app
from surecut.cli.files import Rows
from surecut.core.search import resolved
from surecut.core.settings import using
from surecut.core.tally import CoarseTally
from surecut.sources.batches import BatchSource
from surecut.sources.columns import Columns
from surecut.sources.readers import DuckReader
from surecut.tuning.frame import tally_table
from surecut.tuning.request import Request
from surecut.tuning.tune import TalliedRows, tune

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = Columns("score", "label")
FEW = {"head": 2_000, "kept_rows": 1_000, "first_bits": 10}
"""Sizes with which some thousand rows are more than memory should hold."""


@pytest.fixture(scope="module", params=["normal", "ties", "float32", "one cluster"])
def rows(request):
    random = np.random.default_rng(5)
    margin = random.normal(size=20_000) * 2 - 1
    score = 1 / (1 + np.exp(-margin))
    label = (random.random(20_000) < score).astype(np.int8)
    if request.param == "ties":
        score = np.round(score, 2)
    elif request.param == "float32":
        score = score.astype(np.float32)
    elif request.param == "one cluster":  # nearly all in one first bin
        score = np.where(np.arange(20_000) % 50 == 0, score * 1e9, 1 + score * 1e-9)
    return label, score


def relation(rows):
    label, score = rows
    return duckdb.connect().from_arrow(pa.table({"label": label, "score": score}))


@pytest.fixture
def not_in_memory(monkeypatch):
    """All rows in memory would be too many."""

    def refused(self):
        raise AssertionError("all rows were read into memory")

    monkeypatch.setattr(BatchSource, "_all_in_memory", refused)


def test_ranges_are_small_and_end_in_scores(rows, not_in_memory):
    label, score = rows
    exact = ScoreTally.from_scores(label, score)
    thresholds = [exact.best_cut("f1").threshold, 0.25]
    with using(**FEW):
        source = BatchSource(DuckReader(relation(rows), COLUMNS), COLUMNS)
        entries = resolved(source, source.count(), 256, thresholds)
    assert entries.exact.all()
    assert np.isin(entries.low, exact.keys).all()
    assert np.isin(entries.high, exact.keys).all()
    assert (entries.low[:-1] > entries.high[1:]).all()
    assert entries.rows.sum() == len(label)
    assert not (entries.is_wide & (entries.rows.sum(axis=1) > len(label) // 256)).any()
    coarse = CoarseTally(entries.low, entries.rows, entries.rows, entries.rows, score.dtype, highest=entries.high)
    for threshold in thresholds:
        assert coarse.confusion_at(threshold) == exact.confusion_at(threshold)


def test_every_cut_between_ranges_is_exact(rows, not_in_memory):
    label, score = rows
    exact = ScoreTally.from_scores(label, score)
    with using(**FEW):
        coarse = tally_table(relation(rows), COLUMNS, Request.of("f1"))
    assert len(coarse) < len(exact) or len(exact) < 2_000
    for threshold in coarse.thresholds[:: max(1, len(coarse) // 50)]:
        assert coarse.confusion_at(threshold) == exact.confusion_at(threshold)
    assert coarse.sample.fingerprint == exact.sample.fingerprint
    assert len(coarse.sample.seen[0])


@pytest.mark.parametrize("constraint", ["precision>=0.6", "recall>=0.7", "predicted_positive_rate<=0.2"])
def test_promised_constraints_need_no_row_in_memory(rows, constraint, not_in_memory):
    label, score = rows
    with using(**FEW):
        tally = tally_table(relation(rows), COLUMNS, Request.of("f1"))
        cut = tune_frame(relation(rows), label="label", score="score", constraint=constraint, confidence=0.9)
    (of_tally,) = tune(TalliedRows(tally), Request.of("f1", constraint=constraint, confidence=0.9))
    accepted = cut.predict(score)
    assert cut.confusion.tp == (accepted & (label == 1)).sum()
    assert cut.confusion.fp == (accepted & (label == 0)).sum()
    best = tune_threshold(label, score, constraint=constraint, confidence=0.9)
    assert cut.value == pytest.approx(best.value, abs=0.01)  # other cuts are compared
    promised = certify(of_tally, tally=tally, method="uniform", confidence=0.9)
    assert all(promise.holds for promise in promised.constraints)


def test_a_limit_of_the_metric_needs_no_row_in_memory(rows, not_in_memory):
    label, score = rows
    with using(**FEW):
        cut = tune_frame(relation(rows), label="label", score="score", confidence=0.9)
    expected = tune_threshold(label, score, confidence=0.9)
    assert cut.lower_limit == pytest.approx(expected.lower_limit, abs=0.05)  # the pilot samples differ
    assert cut.lower_limit < cut.value


def test_a_coarse_certificate_is_as_wide_or_wider(rows, not_in_memory, monkeypatch):
    label, score = rows
    cut = tune_threshold(label, score)
    with using(**FEW):
        coarse = tally_table(relation(rows), COLUMNS, Request.of("f1"), [cut.threshold])
    found = certify(cut, tally=coarse, method="uniform")
    monkeypatch.setattr(uniform, "THRESHOLDS", 10**6)  # the regret against every threshold
    expected = certify(cut, label, score, method="uniform")
    assert found.value == expected.value
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper), abs=0.05)  # other pilots
    assert found.regret_bound >= expected.regret_bound - 1e-9


@pytest.mark.parametrize("constraint", ["precision>=0.6", "recall>=0.7", "predicted_positive_rate<=0.2"])
@pytest.mark.parametrize("tuned_on", ["ranges", "rows"])
def test_promised_constraints_are_certified_without_rows_in_memory(
    rows, constraint, tuned_on, tmp_path, not_in_memory, monkeypatch
):
    """By the command, of a cut that it has tuned between ranges, and of one that was tuned among all scores."""
    label, score = rows
    pq.write_table(pa.table({"label": label, "score": score}), tmp_path / "rows.parquet")
    promised = [str(tmp_path / "rows.parquet"), "--confidence", "0.9"]
    path, printed = tmp_path / "cut.json", ["--format", "json"]

    def run(*arguments):
        with using(**FEW):
            found = CliRunner().invoke(app, [*map(str, arguments), *printed])
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)

    if tuned_on == "ranges":
        tuned = run("tune", *promised, "--constraint", constraint, "--out", path)["cuts"][0]["certificate"]
    else:
        cut = tune_threshold(label, score, constraint=constraint, confidence=0.9)
        cut.save(path)
        tuned = asdict(certify(cut, label, score, method="uniform", confidence=0.9))
    monkeypatch.setattr(Rows, "arrays", lambda self: pytest.fail("all rows were fetched"))
    found = run("certify", *promised, "--cut", path, "--method", "uniform")
    assert [one["holds"] for one in found["constraints"]] == [True]
    assert found["constraints"] == list(tuned["constraints"])
    assert found["value"] == tuned["value"]
    assert found["lower"] == pytest.approx(tuned["lower"], abs=0.05)  # the pilot samples differ


def test_ranges_do_not_add_up(rows):
    label, score = rows
    exact = ScoreTally.from_scores(label, score)
    coarse = CoarseTally(exact.keys, exact.rows, exact.rows, exact.rows, exact.dtype, highest=exact.keys)
    with pytest.raises(TypeError, match="do not add up"):
        coarse + exact
