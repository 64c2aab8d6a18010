"""Known distributions: optima against all classifiers, regrets against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut.confusion import Confusion
from surecut.metrics import AM, MCC, CohenKappa, FBeta, GilbertSkill, GMean, HMean, Jaccard, NoTheoremError, Tversky
from surecut.population import FiniteDomain, LogisticModel, MultilabelDomain

METRICS = [FBeta(), FBeta(2), Jaccard(), AM(), CohenKappa(), GilbertSkill(), Tversky(0.3, 0.8), MCC(), GMean(), HMean()]


@st.composite
def domains(draw, points=5):
    weights = np.array(draw(st.lists(st.integers(1, 9), min_size=2, max_size=points)), dtype=float)
    eta = draw(
        st.lists(st.sampled_from([0.05, 0.2, 0.2, 0.5, 0.6, 0.9, 1.0]), min_size=len(weights), max_size=len(weights))
    )
    return FiniteDomain(weights / weights.sum(), eta)


def every_value(domain, metric):
    values = []
    for h in itertools.product((0, 1), repeat=len(domain.eta)):
        h = np.array(h)
        tp, fn = (domain.probability * domain.eta * h).sum(), (domain.probability * domain.eta * (1 - h)).sum()
        fp, tn = (
            (domain.probability * (1 - domain.eta) * h).sum(),
            (domain.probability * (1 - domain.eta) * (1 - h)).sum(),
        )
        values.append(metric.evaluate(Confusion(tp, fp, fn, tn)))
    return np.array(values)


@pytest.mark.parametrize("metric", METRICS, ids=str)
@given(domain=domains())
def test_the_optimum_is_the_best_of_all_classifiers(metric, domain):
    if domain.prior > 1 - 1e-9:
        return
    assert domain.optimum(metric) == pytest.approx(np.nanmax(every_value(domain, metric)), abs=1e-12)
    assert domain.value(metric, domain.optimal_classifier(metric)) == domain.optimum(metric)


@pytest.mark.parametrize("metric", [FBeta(), FBeta(0.5), Jaccard(), AM(), CohenKappa(), Tversky(0.3, 0.8)], ids=str)
@pytest.mark.parametrize("loss", ["logistic", "squared", "spherical"])
@given(domain=domains())
def test_theta_star_of_equation_3_attains_the_optimum(metric, loss, domain):
    if domain.prior > 1 - 1e-9:
        return
    from surecut.losses import get_loss

    scores = get_loss(loss).link(domain.eta)
    threshold = domain.optimal_threshold(metric, loss)
    regret = domain.regret(metric, scores, threshold)
    exactly_at = domain.regret(metric, scores, np.nextafter(threshold, np.inf))  # η = α may fall on either side
    assert min(regret, exactly_at) == pytest.approx(0, abs=1e-9)


def test_best_cut_over_the_scores_tries_every_threshold():
    rng = np.random.default_rng(0)
    for _ in range(50):
        domain = FiniteDomain(rng.dirichlet(np.ones(6)), rng.random(6))
        f = rng.integers(0, 4, 6).astype(float)
        cut = domain.best_cut("f1", f)
        values = [domain.value("f1", domain.classify(f, t)) for t in [*np.unique(f), np.inf]]
        assert cut.value == pytest.approx(np.nanmax(values), abs=1e-12)
        assert domain.value("f1", domain.classify(f, cut.threshold)) == pytest.approx(cut.value, abs=1e-12)


def test_many_domains_at_once_are_each_alone():
    rng = np.random.default_rng(1)
    eta, f = rng.random((40, 25)), rng.normal(size=(40, 25))
    many = FiniteDomain(1 / 25, eta)
    for metric in ("f1", "am", "jaccard", "mcc"):
        alone = [FiniteDomain(1 / 25, row) for row in eta]
        np.testing.assert_allclose(many.optimum(metric), [d.optimum(metric) for d in alone], atol=1e-14)
        cuts = many.best_cut(metric, f)
        np.testing.assert_allclose(
            cuts.threshold, [d.best_cut(metric, g).threshold for d, g in zip(alone, f, strict=True)]
        )
        np.testing.assert_allclose(
            many.regret(metric, f, cuts.threshold),
            [d.regret(metric, g, t) for d, g, t in zip(alone, f, cuts.threshold, strict=True)],
        )
    np.testing.assert_allclose(many.alpha("f1"), [d.alpha("f1") for d in alone])
    np.testing.assert_allclose(many.alpha("f1"), many.optimum("f1") / 2)  # the classic: half the optimal F1


def test_regrets_by_their_definitions():
    domain = FiniteDomain([0.5, 0.3, 0.2], [0.1, 0.4, 0.9])
    f = np.array([0.0, -1.0, 2.0])
    risk = lambda scores: np.sum(  # noqa: E731
        domain.probability * (domain.eta * np.log1p(np.exp(-scores)) + (1 - domain.eta) * np.log1p(np.exp(scores)))
    )
    best = np.log(domain.eta / (1 - domain.eta))
    assert domain.loss_regret("logistic", f) == pytest.approx(risk(f) - risk(best))
    assert domain.loss_regret("logistic", best) == pytest.approx(0, abs=1e-15)
    cost = lambda h, a: domain.confusion(h).fp * a + domain.confusion(h).fn * (1 - a)  # noqa: E731
    for alpha in (0.0, 0.2, 0.5, 1.0):
        for h in itertools.product((False, True), repeat=3):
            smallest = min(cost(g, alpha) for g in itertools.product((False, True), repeat=3))
            assert domain.cost_regret(alpha, h) == pytest.approx(cost(h, alpha) - smallest, abs=1e-12)
    assert domain.loss_regret("hinge", np.sign(domain.eta - 0.5)) == pytest.approx(0, abs=1e-15)


def test_a_loss_that_cannot_happen_costs_nothing():
    domain = FiniteDomain([0.5, 0.5], [0.0, 1.0])
    assert domain.loss_regret("logistic", [-np.inf, np.inf]) == 0


def test_large_domains_of_metrics_without_a_threshold_form_are_refused():
    domain = FiniteDomain(1 / 30, np.linspace(0.01, 0.99, 30))
    with pytest.raises(ValueError, match="need not be a threshold"):
        domain.optimum(GMean())
    with pytest.raises(NoTheoremError):
        domain.alpha(MCC())
    assert domain.optimum(MCC()) > 0


def test_bad_domains():
    with pytest.raises(ValueError, match="sum to 1"):
        FiniteDomain([0.5, 0.6], [0.1, 0.2])
    with pytest.raises(ValueError, match=r"eta must lie in \[0, 1\]"):
        FiniteDomain([0.5, 0.5], [0.1, 1.2])
    with pytest.raises(ValueError, match="at least one point"):
        FiniteDomain(1.0, [])


def test_multilabel_macro_and_micro_against_all_classifiers():
    rng = np.random.default_rng(2)
    domain = MultilabelDomain(rng.dirichlet(np.ones(3)), rng.random((2, 3)))
    best_macro, best_micro = -1.0, -1.0
    for h in itertools.product((0, 1), repeat=6):
        h = np.reshape(h, (2, 3))
        confusions = domain.macro.confusion(h)
        best_macro = max(best_macro, float(np.mean(FBeta().evaluate(confusions))))
        fp, fn, prior = confusions.fp.mean(), confusions.fn.mean(), domain.macro.prior.mean()
        best_micro = max(best_micro, FBeta().value(fp, fn, prior))
    assert domain.optimum("f1", "macro") == pytest.approx(best_macro)
    assert domain.optimum("f1", "micro") == pytest.approx(best_micro)
    f = rng.normal(size=(2, 3))
    thresholds = domain.macro.best_cut("f1", f).threshold
    values = domain.macro.best_cut("f1", f).value
    assert domain.regret("f1", f, thresholds) == pytest.approx(best_macro - values.mean())
    shared = domain.micro.best_cut("f1", f.ravel())
    assert domain.regret("f1", f, shared.threshold, "micro") == pytest.approx(best_micro - shared.value)
    with pytest.raises(ValueError, match="macro"):
        domain.optimum("f1", "samples")


def test_logistic_model():
    model = LogisticModel([1.0, -2.0], intercept=-1.0)
    X, y = model.sample(200_000, random_state=0)
    points, domain = model.sample_domain(200_000, random_state=1)
    assert y.mean() == pytest.approx(domain.prior, abs=0.005)
    linear = X @ [1.0, -2.0] - 1
    np.testing.assert_allclose(model.eta(X), 1 / (1 + np.exp(-linear)))
    assert domain.loss_regret("logistic", points @ [1.0, -2.0] - 1) == pytest.approx(0, abs=1e-12)
    assert domain.regret("f1", points @ [1.0, -2.0] - 1, domain.optimal_threshold("f1", "logistic")) == pytest.approx(
        0, abs=1e-9
    )
    again, _ = model.sample(10, random_state=0)
    np.testing.assert_array_equal(again, model.sample(10, random_state=0)[0])
