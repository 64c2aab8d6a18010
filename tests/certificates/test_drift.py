"""The drift check: silent where nothing has changed, loud where something has."""

from __future__ import annotations

import numpy as np
import pytest

import surecut
from surecut import ScoreTally, tune_threshold, tune_thresholds
from surecut.certificates.drift import _improbability, check_drift, check_label_drift
from surecut.constraints import parse_constraints
from surecut.core.tally import tally_rows


def draw(random, size, shift=0.0):
    scores = 1 / (1 + np.exp(1.5 - 2 * random.normal(size=size)))
    return random.random(size) < scores * (1 - shift), scores


def tally(*rows):
    return ScoreTally.from_scores(*rows)


def test_a_check_does_not_cry_wolf():
    """Against reference rows, where the check is sharpest."""
    random = np.random.default_rng(0)
    alarms = below = 0
    for _ in range(100):
        cut = tune_threshold(*draw(random, 300))
        found = check_drift(cut, tally=tally(*draw(random, 300)), reference=tally(*draw(random, 300)))
        alarms += found.moved
        below += found.value.now < cut.value
    assert alarms <= 11  # 5 % of 100 is 5, and three standard deviations are 6.5
    assert below > 60  # the tuned value is too good


@pytest.mark.parametrize("reference", ["none", "fresh", "tuning"])
def test_a_fall_of_the_metric_is_seen(reference):
    random = np.random.default_rng(1)
    rows = draw(random, 4_000)
    cut = tune_threshold(*rows)
    beside = {"none": None, "fresh": tally(*draw(random, 4_000)), "tuning": tally(*rows)}[reference]
    same = check_drift(cut, tally=tally(*draw(random, 4_000)), reference=beside)
    assert not same.moved
    assert same.value.direction == "no sign of a change"
    found = check_drift(cut, tally=tally(*draw(random, 4_000, shift=0.5)), reference=beside)
    assert found.prior.moved
    assert found.value.moved
    assert found.value.direction == "fell"
    assert found.value.p_value < 0.025
    assert found.value.now_limits[1] < found.value.then_limits[1]
    assert found.best.threshold != cut.threshold


def test_a_surer_check_still_alarms():
    random = np.random.default_rng(1)
    cut = tune_threshold(*draw(random, 2_000))
    reference, new = tally(*draw(random, 2_000)), tally(*draw(random, 2_000, shift=0.6))
    assert check_drift(cut, tally=new, reference=reference, confidence=0.999).value.moved


def test_a_rise_is_seen_too():
    random = np.random.default_rng(2)
    cut = tune_threshold(*draw(random, 4_000, shift=0.5))
    found = check_drift(cut, tally=tally(*draw(random, 4_000)))
    assert found.value.direction == "rose"


def test_a_change_of_the_share_alone_is_told_apart():
    random = np.random.default_rng(3)

    def classes(size, prior):
        positive = random.random(size) < prior
        return positive, random.normal(loc=2.0 * positive, size=size)

    cut = tune_threshold(*classes(4_000, 0.3))
    found = check_drift(cut, tally=tally(*classes(4_000, 0.1)))
    assert found.prior.direction == "fell"
    assert found.value.moved
    assert found.value_at_then_prior == pytest.approx(cut.value, abs=0.03)


def test_a_given_prior_is_what_is_expected():
    random = np.random.default_rng(4)
    rows = draw(random, 3_000)
    cut = tally(*rows).with_prior(0.05).best_cut("f1")
    found = check_drift(cut, tally=tally(*draw(random, 3_000)))
    assert found.prior.then == 0.05
    assert found.prior.direction == "rose"
    assert not found.value.moved  # both are values at the prior that was given


def test_constraints_are_told():
    random = np.random.default_rng(5)
    cut = tally(*draw(random, 2_000)).best_cut("recall", "precision>=0.7")
    found = check_drift(cut, tally=tally(*draw(random, 2_000)))
    assert list(found.constraints) == ["precision>=0.7"]
    assert 0.5 < found.constraints["precision>=0.7"] < 0.9
    assert found.best.constraints == parse_constraints("precision>=0.7")


def test_improbability_of_overlapping_limits_is_one():
    levels, apart = np.array([0.1, 0.01, 0.001]), np.array([0.1, 0.15, 0.2])
    assert _improbability(levels, 0.5 + apart, 0.5 - apart) == 1
    product = 0.001 * 1.0  # beyond the limits of one sample only the other speaks
    assert _improbability(levels, 0.2 + apart, 0.8 - apart) == pytest.approx(product * (1 - np.log(product)))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"weighted": True}, {}, "tuned on weighted rows"),
        ({"out_of_fold": True}, {}, "pooled from folds"),
        ({}, {"confidence": 1.0}, "0 < confidence < 1"),
    ],
)
def test_what_cannot_be_checked_is_refused(change, options, message):
    random = np.random.default_rng(6)
    cut = tune_threshold(*draw(random, 200)).with_sample(**change)
    with pytest.raises(ValueError, match=message):
        check_drift(cut, tally=tally(*draw(random, 200)), **options)


def test_functions_and_weights_are_refused():
    random = np.random.default_rng(7)
    y, scores = draw(random, 200)
    cut = tune_threshold(y, scores)
    with pytest.raises(ValueError, match="not said what their weights mean"):
        check_drift(cut, tally=ScoreTally.from_scores(y, scores, sample_weight=random.random(200)))
    with pytest.raises(ValueError, match="of which nothing is known"):
        check_drift(tune_threshold(y, scores, metric=lambda c: c.tp - c.fp), tally=tally(y, scores))
    with pytest.raises(ValueError, match="all labels are negative"):
        check_drift(cut, tally=tally(np.zeros(5, dtype=bool), np.arange(5.0)))


class TestManyLabels:
    """Every label at error / m."""

    @staticmethod
    def draw(rng, rows, labels=4, moved=0.0):
        score = rng.random((rows, labels))
        shift = np.zeros(labels)
        shift[0] = moved
        return (rng.random((rows, labels)) < score**2 - shift).astype(int), score

    @staticmethod
    def tallies(rows):
        truth, scores = rows
        return [ScoreTally.from_scores(truth[:, i], scores[:, i]) for i in range(truth.shape[1])]

    def test_the_label_that_moved_is_named(self):
        rng = np.random.default_rng(0)
        cut = tune_thresholds(*self.draw(rng, 3_000))
        found = check_label_drift(cut, self.tallies(self.draw(rng, 3_000, moved=0.15)))
        assert found.moved_labels == [0]
        assert found.each == pytest.approx(1 - 0.05 / 4)
        single = check_drift(cut[0], tally=self.tallies(self.draw(rng, 3_000))[0], confidence=found.each)
        assert single.confidence == found.reports[0].confidence

    def test_no_wolf_is_cried_for_any_label(self):
        rng, alarms, repetitions = np.random.default_rng(1), 0, 12
        for _ in range(repetitions):
            cut = tune_thresholds(*self.draw(rng, 400))
            alarms += check_label_drift(cut, self.tallies(self.draw(rng, 400)), confidence=0.9).moved
        assert alarms <= 5  # more are seen once in a thousand runs at one in ten

    def test_a_label_without_positives_is_not_checked(self):
        rng = np.random.default_rng(2)
        cut = tune_thresholds(*self.draw(rng, 400))
        truth, scores = self.draw(rng, 400)
        truth[:, 1] = 0
        found = check_label_drift(cut, self.tallies((truth, scores)))
        assert list(found.not_checked) == [1]
        assert len(found.reports) == 3

    @pytest.mark.parametrize("which", ["rows", "reference rows"])
    def test_a_label_without_rows_is_not_checked(self, which):
        rng = np.random.default_rng(3)
        cut = tune_thresholds(*self.draw(rng, 400))
        full, lacking = self.tallies(self.draw(rng, 400)), self.tallies(self.draw(rng, 400))
        lacking[2] = tally_rows(np.empty(0), np.empty(0, dtype=bool), None)
        now, then = (lacking, None) if which == "rows" else (full, lacking)
        found = check_label_drift(cut, now, reference=then)
        assert found.not_checked == {2: f"no {which}"}
        assert list(found.reports) == [0, 1, 3]
        for label in found.reports:  # others are checked as they were, at their part of the error of all labels
            then_one = None if then is None else then[label]
            assert found.reports[label] == check_drift(
                cut[label], tally=now[label], reference=then_one, confidence=found.each
            )
        with pytest.raises(ValueError, match=f"no {which} of 1 of the cut's 4 labels, such as 2: give rows"):
            check_label_drift(cut, now, reference=then, unknown="error")

    def test_reference_rows_of_one_class_are_not_compared(self):
        rng = np.random.default_rng(4)
        cut = tune_thresholds(*self.draw(rng, 400))
        truth, scores = self.draw(rng, 400)
        truth[:, 1] = 0
        found = check_label_drift(cut, self.tallies(self.draw(rng, 400)), reference=self.tallies((truth, scores)))
        assert list(found.not_checked) == [1]

    def test_something_has_to_be_checked(self):
        rng = np.random.default_rng(5)
        cut = tune_thresholds(*self.draw(rng, 400))
        nothing = [tally_rows(np.empty(0), np.empty(0, dtype=bool), None)] * 4
        with pytest.raises(ValueError, match="none of the cut's 4 labels can be checked, such as 0: no rows"):
            check_label_drift(cut, nothing)
        with pytest.raises(ValueError, match='unknown must be "drop" or "error", got \'skip\''):
            check_label_drift(cut, nothing, unknown="skip")


class TestWeights:
    """A weight of 2 means the row twice, if that is said."""

    @pytest.fixture
    def rows(self):
        random = np.random.default_rng(8)
        before, new = draw(random, 600), draw(random, 600, shift=0.3)
        return before, new, random.integers(1, 4, 600)

    @pytest.mark.parametrize("reference", [False, True])
    @pytest.mark.parametrize("prior", [None, 0.3])
    def test_counts_are_rows(self, rows, reference, prior):
        before, new, times = rows
        cut = tune_threshold(*before, prior=prior)

        def checked(make, **options):
            beside = make(*draw(np.random.default_rng(9), 600)) if reference else None
            return check_drift(cut, tally=make(*new), reference=beside, **options)

        by_weights = checked(lambda *r: ScoreTally.from_scores(*r, sample_weight=times), weights="counts")
        repeated = checked(lambda *r: tally(*(np.repeat(column, times) for column in r)))
        if not reference:  # rows that are repeated look like others, and of such rows less is known
            assert by_weights.value == repeated.value
        assert by_weights.value.then == repeated.value.then
        assert by_weights.value.now_limits == repeated.value.now_limits
        assert by_weights.prior == repeated.prior
        assert by_weights.rows == times.sum()
        assert by_weights.best.threshold == repeated.best.threshold

    def test_the_cut_and_its_tuning_rows_may_have_counts(self, rows):
        before, new, times = rows
        weighted = tune_threshold(*before, sample_weight=times)
        repeated = tune_threshold(*(np.repeat(column, times) for column in before))
        found = check_drift(weighted, tally=tally(*new), weights="counts")
        assert found.value == check_drift(repeated, tally=tally(*new)).value
        same = ScoreTally.from_scores(*before, sample_weight=times)
        assert same.has_tuned(weighted)
        assert check_drift(weighted, tally=same, reference=same, weights="counts").then_rows == times.sum()

    def test_weights_of_one_need_no_word(self, rows):
        before, new, _ = rows
        ones = ScoreTally.from_scores(*new, sample_weight=np.ones(600))
        assert check_drift(tune_threshold(*before), tally=ones).rows == 600

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (None, "it is not said what their weights mean: pass weights='counts'"),
            ("importance", "the check counts rows, and weights='importance' says"),
            ("twice", "weights must be one of"),
        ],
    )
    def test_other_weights_are_refused(self, rows, weights, message):
        before, new, times = rows
        weighted = ScoreTally.from_scores(*new, sample_weight=times)
        with pytest.raises(ValueError, match=message):
            check_drift(tune_threshold(*before), tally=weighted, weights=weights)

    def test_many_labels(self, rows):
        before, new, times = rows
        cut = tune_thresholds(np.column_stack([before[0]] * 2), np.column_stack([before[1]] * 2))
        weighted = [ScoreTally.from_scores(*new, sample_weight=times)] * 2
        repeated = [tally(*(np.repeat(column, times) for column in new))] * 2
        found = check_label_drift(cut, weighted, weights="counts")
        assert found.reports[1].value == check_label_drift(cut, repeated).reports[1].value
        with pytest.raises(ValueError, match="a tally for each of the 2 labels, got 1"):
            check_label_drift(cut, repeated, reference=repeated[:1])


def test_the_bootstrap_of_the_tuning_rows_has_its_random_numbers():
    random = np.random.default_rng(10)
    rows, new = draw(random, 400), tally(*draw(random, 400))
    cut = tune_threshold(*rows)
    one, again, other = (
        check_drift(cut, tally=new, reference=tally(*rows), random_state=state).value.then_limits for state in (0, 0, 1)
    )
    assert one == again == check_drift(cut, tally=new, reference=tally(*rows)).value.then_limits
    assert one != other


def test_rows_are_checked_as_their_tally_is():
    random = np.random.default_rng(5)
    cut, (y, scores) = tune_threshold(*draw(random, 500)), draw(random, 400)
    found = surecut.check_drift(cut, y, scores)
    assert found == check_drift(cut, tally=tally(y, scores))
    assert surecut.check_drift(cut, np.where(y, "no", "yes"), scores, pos_label="no").value == found.value
    counted = surecut.check_drift(cut, y, scores, sample_weight=np.full(400, 2), weights="counts")
    assert counted.rows == 800
    with pytest.warns(surecut.MissingRowsWarning):
        assert surecut.check_drift(cut, y, np.r_[np.nan, scores[1:]], missing="drop").rows == 399


def test_rows_or_a_tally_are_needed():
    random = np.random.default_rng(5)
    y, scores = draw(random, 400)
    cut = tune_threshold(y, scores)
    with pytest.raises(ValueError, match="needs new rows: pass y_true and y_score, or a tally"):
        check_drift(cut)
    with pytest.raises(ValueError, match="either rows or their tally, not both"):
        check_drift(cut, y, scores, tally=tally(y, scores))
    with pytest.raises(TypeError, match="needs a cut of one label, or bands, first, got ndarray"):
        check_drift(y, scores)
