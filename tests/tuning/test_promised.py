"""Constraints of many labels that hold on new data, all of them together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from surecut import InfeasibleError, MultilabelCut, ScoreTally, get_metric, tune_frame, tune_threshold, tune_thresholds
from surecut.tuning.labels import tune_tallies

LABELS = 4
SHIFTS = np.array([0.5, 1.0, 1.5, 2.0])


def draw(rng, rows):
    score = 1 / (1 + np.exp(SHIFTS - 2 * rng.normal(size=(rows, LABELS))))
    return (rng.random((rows, LABELS)) < score).astype(int), score


OPTIONS = {"metric": "recall", "constraint": "precision>=0.6", "confidence": 0.9}


def long_table(truth, score):
    tags = np.tile(np.arange(LABELS), len(truth))
    return pd.DataFrame({"y": truth.ravel(), "p": score.ravel(), "tag": tags, "w": 1.0})


@pytest.mark.parametrize(
    "constraint", ["precision>=0.6", "predicted_positive_rate<=0.1", "recall>=0.6", "accuracy>=0.7"]
)
def test_each_label_has_its_share_of_the_error(constraint):
    truth, score = draw(np.random.default_rng(0), 3000)
    metric = "precision" if constraint.startswith("recall") else "recall"
    options = {"metric": metric, "constraint": constraint}
    cut = tune_thresholds(truth, score, confidence=0.9, **options)
    for label in range(LABELS):
        alone = tune_threshold(truth[:, label], score[:, label], confidence=1 - 0.1 / LABELS, **options)
        assert cut.thresholds[label] == alone.threshold
        assert cut[label].confusion == alone.confusion
    assert cut.confidence == 0.9
    assert "(90 % confidence)" in str(cut)


@pytest.mark.parametrize("constraint", ["precision>=0.6", "fpr<=0.1"])
def test_matrices_tallies_and_long_tables_give_the_same_cuts(constraint, tmp_path):
    truth, score = draw(np.random.default_rng(1), 2000)
    options = {**OPTIONS, "constraint": constraint}
    cut = tune_thresholds(truth, score, **options)
    tallies = [ScoreTally.from_scores(truth[:, i], score[:, i]) for i in range(LABELS)]
    table = long_table(truth, score)
    others = [
        tune_tallies(tallies, range(LABELS), **options),
        tune_thresholds(sparse.csr_array(truth), sparse.csr_array(score), **options),
        tune_frame(table, label="y", score="p", by="tag", **options),
        tune_frame(table.assign(w=1), label="y", score="p", by="tag", weight="w", weights="counts", **options),
    ]
    for other in others[: 2 if constraint.startswith("precision") else 4]:  # an engine's counts have no order
        assert np.array_equal(other.thresholds, cut.thresholds)
    cut.save(tmp_path / "cut.json")
    loaded = MultilabelCut.load(tmp_path / "cut.json")
    assert loaded.confidence == 0.9
    assert np.array_equal(loaded.thresholds, cut.thresholds)


def test_absent_scores_are_never_predicted_and_count_as_rows():
    truth, score = draw(np.random.default_rng(2), 3000)
    few = sparse.csr_array(np.where(score > 0.4, score, 0.0))
    options = {"metric": "precision", "constraint": "predicted_positive_rate<=0.9", "confidence": 0.9}
    cut = tune_thresholds(truth, few, **options)
    assert (cut.thresholds >= 0.4).all()
    assert np.array_equal(cut.confusion.total, np.full(LABELS, 3000))
    with pytest.raises(InfeasibleError, match=r"label 0.*: no cut meets recall>=0\.99"):
        tune_thresholds(truth, few, metric="precision", constraint="recall>=0.99", confidence=0.9)


def test_all_labels_keep_their_constraints_together():
    """At 80 % confidence, over 40 samples; each label at 80 % by itself would break one of four far more often."""
    rng, draws = np.random.default_rng(3), 40
    options = {"metric": "recall", "constraint": "fpr<=0.1"}
    many, population = draw(rng, 300_000)
    negatives = [np.sort(population[many[:, i] == 0, i]) for i in range(LABELS)]

    def breaks(thresholds):
        above = [len(some) - np.searchsorted(some, at) for some, at in zip(negatives, thresholds, strict=True)]
        return any(count / len(some) > 0.1 for count, some in zip(above, negatives, strict=True))

    together = alone = 0
    for _ in range(draws):
        truth, score = draw(rng, 1000)
        together += breaks(tune_thresholds(truth, score, confidence=0.8, **options).thresholds)
        each = [tune_threshold(truth[:, i], score[:, i], confidence=0.8, **options) for i in range(LABELS)]
        alone += breaks([cut.threshold for cut in each])
    allowed = 0.2 + 2 * np.sqrt(0.16 / draws)
    assert together / draws <= allowed < alone / draws


def test_what_cannot_be_promised_names_the_label():
    truth, score = draw(np.random.default_rng(4), 300)
    with pytest.raises(
        InfeasibleError, match=r"label 0 \(and 3 other labels\): .* with 90 % confidence, 4 labels together"
    ):
        tune_thresholds(truth, score, metric="recall", constraint="precision>=0.97", confidence=0.9)
    truth[:, 1] = 0
    with pytest.raises(InfeasibleError, match=r"label 1: recall is undefined|label 1: .* no positive"):
        tune_thresholds(truth, score, metric="recall", constraint="predicted_positive_rate<=0.9", confidence=0.9)
    with pytest.raises(ValueError, match="is a function of which nothing is known"):
        tune_thresholds(truth, score, constraint=(get_metric(lambda confusion: confusion.tp), 1.0), confidence=0.9)
    with pytest.raises(ValueError, match="leave them out, or tune a long table"):
        tune_thresholds(truth, score, sample_weight=np.full(300, 2.0), **OPTIONS)
    table = long_table(truth, score).assign(w=1.5)
    with pytest.raises(ValueError, match="not numbers of rows"):
        tune_frame(table, label="y", score="p", by="tag", weight="w", weights="counts", **OPTIONS)
