"""Independent clusters of dependent rows: limits that keep their promise where counting rows would not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from surecut import Confusion, certify, tune_threshold
from surecut.certificates.clusters import cluster_limits, least_ratio
from surecut.certificates.confidence import share_limits
from surecut.certificates.limits import value_limits
from surecut.metrics import Utility, get_metric

ERROR = 0.1
METRICS = ["f1", "f2", "accuracy", "am", "kappa", "mcc", "precision", Utility(fp=-1, fn=-5)]


def draw_counts(rng, clusters, largest=6):
    """Cells of clusters of one to `largest` rows, which agree with each other most of the time."""
    size = rng.integers(1, largest + 1, clusters)
    shape = np.array([0.2, 0.15, 0.15, 0.5]) * 1.0  # a Dirichlet of little weight: rows of a cluster are alike
    return np.array([rng.multinomial(n, p) for n, p in zip(size, rng.dirichlet(shape, clusters), strict=True)], float)


TRUE = Confusion(0.2, 0.15, 0.15, 0.5)


def most_failures(repetitions, error=ERROR):
    return stats.binom.ppf(0.999, repetitions, error)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_limits_hold_for_dependent_rows(metric):
    metric = get_metric(metric)
    rng, repetitions, actual = np.random.default_rng(0), 40, float(metric.evaluate(TRUE))
    limits = np.array([cluster_limits(metric, draw_counts(rng, 150), 6, ERROR) for _ in range(repetitions)])
    assert (limits[:, 0] > actual).sum() <= most_failures(repetitions)
    assert (limits[:, 1] < actual).sum() <= most_failures(repetitions)
    assert (limits[:, 0] < limits[:, 1]).all()


def test_counting_the_rows_as_independent_would_fail():
    rng, repetitions, metric = np.random.default_rng(1), 400, get_metric("f1")
    actual = float(metric.evaluate(TRUE))
    failures = sum(
        value_limits(metric, draw_counts(rng, 150).sum(axis=0), ERROR)[0] > actual for _ in range(repetitions)
    )
    assert failures > most_failures(repetitions)


def test_many_clusters_come_near_the_normal_limit():
    rng = np.random.default_rng(2)
    counts = draw_counts(rng, 5_000)
    a, b = counts[:, 0], counts[:, :3].sum(axis=1)
    estimate = a.sum() / b.sum()
    spread = np.sqrt(((a - estimate * b) ** 2).sum()) / b.sum()
    lower = least_ratio(a, b, 6.0, (0.0, 1.0), ERROR)
    assert 0.95 < (estimate - lower) / (stats.norm.isf(ERROR) * spread) < 1.15


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_limits_of_a_share_are_nearly_as_narrow_as_exact_ones(share):
    """Although they hold for clusters of any kind; a bet of one size at all values is wider by a third."""
    rng = np.random.default_rng(6)
    drawn = (rng.random((80, 333)) < share).astype(float)
    exact = share_limits(drawn.sum(axis=1), 333, ERROR)[0]
    bet = [least_ratio(right, np.ones(333), 1.0, (0.0, 1.0), ERROR) for right in drawn]
    assert np.mean(drawn.mean(axis=1) - bet) < 1.15 * np.mean(drawn.mean(axis=1) - exact)


def test_what_varies_little_has_narrow_limits():
    """Shares of many labels: a single cluster could be far off, and so little is paid for it."""
    rng = np.random.default_rng(7)
    counted = rng.poisson(12, 333)
    right = rng.binomial(counted, 0.4)
    value = right.sum() / counted.sum()
    assert value - least_ratio(right.astype(float), counted.astype(float), 100.0, (0.0, 1.0), ERROR) < 0.04


def test_limits_do_not_depend_on_the_scale_of_values():
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 17, 200) / 8, np.full(200, 2.0)
    lower = least_ratio(a, b, 2.0, (0.0, 1.0), ERROR)
    assert least_ratio(4 * a - 3 * b, b, 8.0, (-3.0, 1.0), ERROR) == pytest.approx(4 * lower - 3)


def test_the_order_of_the_clusters_matters_little():
    rng = np.random.default_rng(3)
    counts = draw_counts(rng, 300)
    shuffled = rng.permutation(counts)
    metric = get_metric("f1")
    assert cluster_limits(metric, counts, 6, ERROR) == pytest.approx(
        cluster_limits(metric, shuffled, 6, ERROR), abs=0.05
    )


def test_rejected_values_are_those_below_the_limit():
    from surecut.certificates.clusters import _is_rejected, _steps

    rng = np.random.default_rng(4)
    for _ in range(5):
        counts = draw_counts(rng, 80)
        a, b = _steps(counts[:, 0], counts[:, :3].sum(axis=1))
        rejected = _is_rejected(a, b, np.linspace(0, 1, 2_000), 6.0, ERROR)
        assert (np.diff(rejected.astype(int)) <= 0).all()


def test_blocks_of_clusters_are_steps(monkeypatch):
    import surecut.certificates.clusters as module

    rng = np.random.default_rng(5)
    counts, metric = draw_counts(rng, 4_000), get_metric("f1")
    whole = cluster_limits(metric, counts, 6, ERROR)
    monkeypatch.setattr(module, "STEPS", 1_000)
    blocks = cluster_limits(metric, counts, 6, ERROR)
    assert blocks == pytest.approx(whole, abs=0.03)


def test_nothing_seen_is_nothing_promised():
    nothing = np.zeros((20, 4))
    nothing[:, 3] = 1
    assert cluster_limits(get_metric("f1"), nothing, 1, ERROR) == (0.0, 1.0)


class TestGroups:
    """`certify(groups=…)` of a cut of one label."""

    @staticmethod
    def draw(rng, patients):
        """Four rows of each patient, whose level they share."""
        level = np.repeat(rng.normal(size=patients), 4)
        score = 1 / (1 + np.exp(1.5 - 1.5 * level - 0.5 * rng.normal(size=4 * patients)))
        common = np.repeat(rng.random(patients), 4)
        own = rng.random(4 * patients)
        return np.where(own < 0.8, common, rng.random(4 * patients)) < score, score, np.repeat(np.arange(patients), 4)

    def test_limits_of_groups_are_wider_and_say_so(self):
        rng = np.random.default_rng(0)
        cut = tune_threshold(*self.draw(rng, 300)[:2])
        y, score, patient = self.draw(rng, 400)
        rows, groups = certify(cut, y, score), certify(cut, y, score, groups=patient)
        assert groups.value == rows.value
        assert groups.lower < rows.lower < groups.value < rows.upper < groups.upper
        assert any("groups" in one and "(4)" in one for one in groups.assumptions)
        assert not groups.exact
        named = certify(cut, y, score, groups=np.array([f"patient {i}" for i in patient]))
        assert named.lower == groups.lower

    def test_coverage_with_dependent_rows(self):
        rng, repetitions = np.random.default_rng(1), 120
        cut = tune_threshold(*self.draw(rng, 300)[:2])
        y, score, _ = self.draw(rng, 200_000)
        actual = float(cut.metric.evaluate(Confusion.from_predictions(y, cut.predict(score))))
        by_rows = by_groups = 0
        for _ in range(repetitions):
            y, score, patient = self.draw(rng, 120)
            by_rows += certify(cut, y, score, confidence=1 - ERROR).lower > actual
            by_groups += certify(cut, y, score, confidence=1 - ERROR, groups=patient).lower > actual
        assert by_groups <= most_failures(repetitions)
        assert by_rows > most_failures(repetitions)  # four rows of one patient are not four patients

    def test_refusals(self):
        rng = np.random.default_rng(2)
        y, score, patient = self.draw(rng, 300)
        cut = tune_threshold(y, score)
        with pytest.raises(ValueError, match="validation rows"):
            certify(cut, y, score, groups=patient)
        fresh, scores, groups = self.draw(rng, 300)
        with pytest.raises(ValueError, match="'uniform' needs"):
            certify(cut, fresh, scores, groups=groups, method="uniform")
        with pytest.raises(ValueError, match="groups of rows with weights"):
            certify(cut, fresh, scores, groups=groups, sample_weight=np.full(1200, 2))
