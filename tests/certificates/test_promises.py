"""Certificates of constrained cuts say whether the constraint holds on new rows."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from surecut import ScoreTally, certify, tune_threshold, tune_thresholds
from surecut.certificates.confidence import share_limits

ERROR = 0.1


def draw(rng, rows):
    score = rng.beta(1, 2, rows)
    return rng.random(rows) < score, score


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return draw(rng, 1500), draw(rng, 3000)


def test_a_constraint_has_a_limit_of_its_own(samples):
    cut = tune_threshold(*samples[0], metric="recall", constraint="precision>=0.6")
    y, score = samples[1]
    certificate = certify(cut, y, score)
    (promise,) = certificate.constraints
    accepted = cut.predict(score)
    exact = share_limits(int((y & accepted).sum()), int(accepted.sum()), 0.05)[0]
    assert promise.constraint == "precision>=0.6"
    assert promise.value == pytest.approx(y[accepted].mean())
    assert promise.limit == pytest.approx(exact)
    assert promise.holds == (exact >= 0.6)
    assert "precision>=0.6" in str(certificate)
    assert certify(tune_threshold(*samples[0]), y, score).constraints == ()
    assert asdict(certificate)["constraints"][0]["limit"] == promise.limit


def test_several_constraints_share_the_error(samples):
    cut = tune_threshold(*samples[0], constraint=["precision>=0.4", "predicted_positive_rate<=0.5"])
    y, score = samples[1]
    precision, rate = certify(cut, y, score).constraints
    accepted = cut.predict(score)
    assert precision.limit == pytest.approx(share_limits(int((y & accepted).sum()), int(accepted.sum()), 0.025)[0])
    assert rate.limit == pytest.approx(share_limits(int(accepted.sum()), len(y), 0.025)[1])
    assert rate.holds
    assert "at most" in str(rate)


@pytest.mark.parametrize("method", ["holdout", "uniform", "bootstrap"])
@pytest.mark.parametrize("constraint", ["precision>=0.6", "recall>=0.5", "fpr<=0.3", "predicted_positive_rate<=0.3"])
def test_every_method_and_kind_of_constraint(method, constraint, samples):
    cut = tune_threshold(*samples[0], constraint=constraint)
    (promise,) = certify(cut, *samples[1], method=method, resamples=200).constraints
    sign = 1 if ">=" in constraint else -1
    assert sign * promise.limit < sign * promise.value
    assert promise.holds == (sign * promise.limit >= sign * float(constraint.split("=")[1]))


def test_what_confidence_promised_is_said_again_by_uniform(samples):
    tally = ScoreTally.from_scores(*samples[0])
    for constraint in ("precision>=0.5", "recall>=0.5"):
        cut = tune_threshold(*samples[0], metric="f1", constraint=constraint, confidence=0.95)
        (promise,) = certify(cut, tally=tally, method="uniform").constraints
        assert promise.holds
    plain = tune_threshold(*samples[0], metric="recall", constraint="precision>=0.6")
    assert not certify(plain, tally=tally, method="uniform").constraints[0].holds
    assert "not sure" in str(certify(plain, tally=tally, method="uniform"))


def test_groups_and_a_prior_that_is_given(samples):
    cut = tune_threshold(*samples[0], constraint="precision>=0.5")
    y, score = samples[1]
    rows = certify(cut, y, score).constraints[0]
    groups = certify(cut, y, score, groups=np.arange(len(y)) // 3).constraints[0]
    assert groups.value == rows.value
    assert groups.limit == pytest.approx(rows.limit, abs=0.02)  # these rows are independent, in groups or not
    tally = ScoreTally.from_scores(*samples[0]).with_prior(0.2)
    shifted = tally.best_cut("f1", "predicted_positive_rate<=0.3")
    promise = certify(shifted, y, score).constraints[0]
    assert promise.value < promise.limit


def test_the_limit_of_a_constraint_is_kept():
    rng, repetitions = np.random.default_rng(1), 300
    cut = tune_threshold(*draw(rng, 1000), metric="recall", constraint="precision>=0.6")
    y, score = draw(rng, 1_000_000)
    actual = y[cut.predict(score)].mean()
    limits = [certify(cut, *draw(rng, 300), confidence=1 - ERROR).constraints[0].limit for _ in range(repetitions)]
    assert (np.array(limits) > actual).sum() <= stats.binom.ppf(0.999, repetitions, ERROR)


def test_many_labels(samples):
    rng = np.random.default_rng(2)

    def many(rows):
        score = rng.beta(1, 2, (rows, 5))
        return (rng.random((rows, 5)) < score).astype(int), score

    tuning, fresh = many(1500), many(3000)
    macro = tune_thresholds(*tuning, constraint="recall>=0.5")
    (promise,) = certify(macro, *fresh).constraints
    sure, labels = promise.labels
    each = [certify(macro[i], fresh[0][:, i], fresh[1][:, i], confidence=1 - 0.05 / 5) for i in range(5)]
    limits = [one.constraints[0].limit for one in each]
    assert labels == 5
    assert sure == sum(limit >= 0.5 for limit in limits)
    assert promise.limit == pytest.approx(min(limits))
    assert "labels" in str(certify(macro, *fresh)) or promise.holds
    micro = tune_thresholds(*tuning, average="micro", constraint="recall>=0.5")
    (promise,) = certify(micro, *fresh).constraints
    assert promise.labels is None
    assert promise.limit < promise.value
    (grouped,) = certify(macro, *fresh, groups=np.arange(3000) // 2).constraints
    assert grouped.limit < min(limits) + 0.02
