"""Thousands of labels, most of them rare and without useful scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surecut import MultilabelCut, ScoreTally, certify, tune_thresholds
from surecut.averages import NO_POSITIVES, NOT_SEPARATED
from surecut.certificates.theorem import theorem_bound
from surecut.core.entries import Entries
from surecut.sources.labels import TallySource
from surecut.sources.matrices import label_source
from surecut.tuning.separation import separated

LABELS, USEFUL, ROWS = 2_000, 100, 800


class Tags:
    """Zipf-like tags: the frequent ones have useful scores, the others noise, or one score for all rows."""

    def __init__(self, seed: int = 0, useful: int = USEFUL) -> None:
        self.random, self.useful = np.random.default_rng(seed), useful
        self.prior = np.minimum(0.3, 0.5 / np.arange(1, LABELS + 1) ** 0.9)
        self.constant = np.arange(LABELS) % 2 == 0

    def draw(self) -> tuple[Any, Any]:
        truth = self.random.random((ROWS, LABELS)) < self.prior
        strength = np.where(np.arange(LABELS) < self.useful, 2.5, 0.0)
        odds = np.log(self.prior / (1 - self.prior)) - strength**2 / 2
        noise = self.random.normal(size=truth.shape)
        scores = 1 / (1 + np.exp(-odds - strength * (noise + strength * truth)))
        rare = np.arange(LABELS) >= self.useful
        scores[:, rare] *= np.exp(0.5 * noise[:, rare])
        scores[:, rare & self.constant] = self.prior[rare & self.constant]
        return truth, scores


def micro_f(truth: Any, predicted: Any) -> float:
    return float(2 * (truth & predicted).sum() / (truth.sum() + predicted.sum()))


@pytest.fixture(scope="module")
def tags() -> Tags:
    return Tags()


@pytest.fixture(scope="module")
def rows(tags: Tags) -> tuple[Any, Any]:
    return tags.draw()


@pytest.fixture(scope="module")
def exact(rows: tuple[Any, Any]) -> MultilabelCut:
    return tune_thresholds(*rows)


@pytest.fixture(scope="module")
def shrunken(rows: tuple[Any, Any]) -> MultilabelCut:
    return tune_thresholds(*rows, shrinkage="auto")


class TestWhatTheExactCutSays:
    def test_labels_per_row_are_those_of_the_predictions(self, rows, exact):
        truth, scores = rows
        predicted, true = exact.labels_per_row
        assert predicted == pytest.approx(exact.predict(scores).sum() / ROWS)
        assert true == pytest.approx(truth.sum() / ROWS)
        assert predicted > 100 * true

    def test_labels_that_flag_nearly_every_row_are_named(self, tags, rows, exact):
        truth, scores = rows
        shares = exact.predict(scores).mean(axis=0)
        expected = np.flatnonzero((shares >= 0.9) & (shares >= 10 * truth.mean(axis=0)))
        assert exact.flags_nearly_all == tuple(expected.tolist())
        tuned_constant = tags.constant & (np.arange(LABELS) >= USEFUL) & truth.any(axis=0)
        assert set(np.flatnonzero(tuned_constant).tolist()) <= set(exact.flags_nearly_all)

    def test_the_sentence_says_it(self, exact):
        predicted, true = exact.labels_per_row
        many = f"{len(exact.flags_nearly_all):,} labels flag nearly every row: {predicted:,.0f} labels a row"
        assert f"{many}, the rows have {true:.3g}" in str(exact)

    def test_worst_labels_come_first(self, exact):
        worst = exact.worst(5)
        positions = [exact.labels.index(label) for label in worst]
        assert len(worst) == 5
        assert exact.confusion.fp[positions[0]] == exact.confusion.fp.max()
        assert set(worst) <= set(exact.flags_nearly_all)


class TestWhenNothingIsWrong:
    def test_nothing_is_said(self):
        cut = tune_thresholds([[1, 0], [0, 1], [1, 0]], [[0.5, 0.2], [0.2, 0.7], [1.0, 0.5]])
        assert cut.flags_nearly_all == ()
        assert cut.labels_per_row == pytest.approx((1, 1))
        assert "a row" not in str(cut)

    def test_a_common_label_may_flag_all_rows(self):
        truth, scores = np.array([[1, 1], [1, 0], [0, 0]]), np.ones((3, 2))
        assert tune_thresholds(truth, scores).flags_nearly_all == ()

    def test_the_worst_are_then_those_with_the_lowest_value(self):
        truth = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0]])
        scores = np.array([[0.5, 0.25, 0.1], [0.25, 0.75, 0.2], [1.0, 0.5, 0.3], [0.75, 0.2, 0.4]])
        cut = tune_thresholds(truth, scores, labels=["a", "b", "never"])
        order = sorted("ab", key=lambda label: cut[label].value)
        assert cut.worst(5) == tuple(order)

    def test_groups_have_no_labels_per_row(self):
        groups = [ScoreTally.from_scores([0, 1], [0.1, 0.9]), ScoreTally.from_scores([0, 1, 1], [0.1, 0.9, 0.8])]
        cut = MultilabelCut.from_cuts(["a", "b"], [tally.best_cut("f1") for tally in groups])
        assert np.isnan(cut.labels_per_row).all()
        assert "a row" not in str(cut)


class TestShrinkage:
    def test_labels_without_useful_scores_no_longer_flood_new_data(self, tags, exact, shrunken):
        truth, scores = tags.draw()
        true = truth.sum() / ROWS
        before, after = exact.predict(scores), shrunken.predict(scores)
        assert before.sum() / ROWS > 100 * true  # the exact optimum, as before
        assert after.sum() / ROWS < 4 * true  # it was 137 times as many
        assert micro_f(truth, before) < 0.02
        assert micro_f(truth, after) > 0.2  # it was 0.008
        assert shrunken.flags_nearly_all == ()

    def test_the_reasons_are_given(self, rows, shrunken):
        truth, _ = rows
        rare = {label for label, reason in shrunken.shared.items() if reason == NOT_SEPARATED}
        assert len(rare) > 300
        assert min(rare) >= USEFUL
        assert {label for label, reason in shrunken.shared.items() if reason == NO_POSITIVES} == set(
            np.flatnonzero(~truth.any(axis=0)).tolist()
        )
        assert (shrunken.thresholds[list(shrunken.shared)] == shrunken.shared_threshold).all()
        assert "its scores do not separate its positives" in str(shrunken)

    @pytest.mark.parametrize("suffix", ["json", "parquet"])
    def test_the_reasons_are_saved(self, shrunken, tmp_path, suffix):
        shrunken.save(tmp_path / f"cut.{suffix}")
        again = MultilabelCut.load(tmp_path / f"cut.{suffix}")
        assert again.shared == shrunken.shared
        assert again == shrunken

    def test_labels_with_useful_scores_keep_their_own_thresholds(self):
        truth, scores = (column[:, :300] for column in Tags(useful=LABELS).draw())
        cut = tune_thresholds(truth, scores, shrinkage="auto")
        assert set(cut.shared) <= set(np.flatnonzero(~truth.any(axis=0)).tolist())

    def test_a_common_label_keeps_its_own_threshold_though_its_scores_are_useless(self):
        random = np.random.default_rng(1)
        truth, scores = random.random((200, 3)) < 0.4, random.random((200, 3))
        assert tune_thresholds(truth, scores, shrinkage=10.0).shared == {}

    def test_metrics_of_both_classes_accept_many_rows_of_a_rare_label_by_right(self):
        """Ten rows for each positive are few for balanced accuracy: its best cut accepts a share of all rows."""
        random = np.random.default_rng(3)
        scores = random.normal(size=(2_000, 40))
        truth = random.random(scores.shape) < 1 / (1 + np.exp(5.5 - 0.7 * scores))
        cut = tune_thresholds(truth, scores, metric="am", shrinkage="auto")
        assert NOT_SEPARATED not in cut.shared.values()

    def test_no_theorem_covers_labels_that_took_the_shared_threshold(self):
        random = np.random.default_rng(2)
        scores = random.random((3_000, 2))
        truth = random.random((3_000, 2)) < scores
        truth[:, 1] = np.arange(3_000) < 30
        scores[:, 1] = 0.5
        cut = tune_thresholds(truth, scores, shrinkage=10.0)
        assert cut.shared == {1: NOT_SEPARATED}
        own = theorem_bound(cut[0], 0.05 / 2)[1]
        assert certify(cut, method="theorem", confidence=0.95).regret_bound == pytest.approx((own + 1) / 2)


class TestSeparation:
    def test_it_is_the_rank_test(self):
        from scipy.stats import mannwhitneyu

        random = np.random.default_rng(3)
        truth = random.random((400, 60)) < 0.1
        scores = random.normal(size=truth.shape) + 0.3 * truth  # no ties: the variance is the test's
        source = label_source(truth, scores, None)
        passed = np.concatenate([separated(source.entries(block)) for block in source.blocks()])
        for label in range(60):
            p = mannwhitneyu(
                scores[truth[:, label], label],
                scores[~truth[:, label], label],
                alternative="greater",
                method="asymptotic",
                use_continuity=False,
            ).pvalue
            assert passed[label] == (p < 0.05)

    def test_useless_scores_pass_in_at_most_5_percent(self):
        random = np.random.default_rng(4)
        for positives in (1, 2, 5):
            tallies = []
            for _ in range(400):
                truth = np.arange(100) < positives
                tallies.append(ScoreTally.from_scores(truth, random.integers(0, 40, 100)))
            assert separated(TallySource(tallies).entries(slice(0, 400))).mean() <= 0.08

    def test_a_weight_of_2_is_the_row_twice(self):
        random = np.random.default_rng(5)
        truth, scores = random.random(50) < 0.3, random.integers(0, 9, 50)
        weights = random.integers(1, 4, 50)
        twice = ScoreTally.from_scores(np.repeat(truth, weights), np.repeat(scores, weights))
        weighted = ScoreTally.from_scores(truth, scores, sample_weight=weights.astype(float))
        assert separated(twice.entries) == separated(weighted.entries)

    def test_rows_without_a_score_rank_below_all(self):
        from scipy import sparse

        truth = sparse.csc_array(np.arange(100)[:, None] < 5)
        at_top = sparse.csc_array((np.arange(100)[:, None] < 5) * 0.5)
        elsewhere = sparse.csc_array((np.arange(100)[:, None] >= 95) * 0.5)
        for scores, expected in ((at_top, True), (elsewhere, False)):
            assert separated(label_source(truth, scores, None).entries(slice(0, 1))).tolist() == [expected]

    def test_labels_of_one_class_have_nothing_to_separate(self):
        assert separated(ScoreTally.from_scores([0, 0], [0.1, 0.2]).entries).all()
        assert separated(Entries.scores(np.zeros(0, dtype=np.uint64), *np.zeros((2, 0, 2), dtype=np.int64))).all()
