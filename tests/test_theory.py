"""The theorems: never violated on random distributions, and the checks can fail."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import theory
from surecut.losses import CATALOGUE, get_loss
from surecut.metrics import (
    AM,
    Accuracy,
    CohenKappa,
    FBeta,
    GilbertSkill,
    Jaccard,
    NoTheoremError,
    Tversky,
    WeightedAccuracy,
)
from surecut.population import FiniteDomain, MultilabelDomain

METRICS = [
    Accuracy(),
    FBeta(),
    FBeta(0.5),
    FBeta(2),
    Jaccard(),
    AM(),
    WeightedAccuracy(1, 4),
    Tversky(0.3, 0.8),
    CohenKappa(),
    GilbertSkill(),
]
LOSSES = [name for name in CATALOGUE if name != "hinge"]
DRAWS = 2000


def draws(seed, points=6, number=DRAWS):
    """Random domains and random functions on them, from nearly right to nonsense."""
    rng = np.random.default_rng(seed)
    eta = rng.beta(*rng.uniform(0.2, 3, (2, number, 1)), (number, points)).clip(1e-6, 1 - 1e-6)
    domain = FiniteDomain(rng.dirichlet(np.ones(points), number), eta)
    forecast = (eta + rng.normal(0, rng.choice([0.001, 0.05, 0.3], (number, 1)), eta.shape)).clip(1e-6, 1 - 1e-6)
    return domain, forecast


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_lemma_1_theorem_2_and_both_propositions_hold(metric, loss):
    domain, forecast = draws(seed=0)
    loss = get_loss(loss)
    f = loss.link(forecast)
    optimum, loss_regret = domain.optimum(metric), domain.loss_regret(loss, f)
    bound = theory.regret_bound(metric, loss, domain.prior, optimum, loss_regret)

    theta = theory.optimal_threshold(metric, loss, domain.prior, optimum)
    at_theta_star = domain.classify(f, theta)
    at_its_best = optimum - domain.best_cut(metric, f).value
    regret = optimum - domain.value(metric, at_theta_star)
    assert (regret <= bound.value + 1e-9).all()  # Lemma 1
    assert (at_its_best <= bound.value + 1e-9).all()  # Theorem 2
    assert (at_its_best <= regret + 1e-9).all()

    alpha = theory.constants(metric, domain.prior, optimum).alpha
    cost_regret = domain.cost_regret(alpha, at_theta_star)
    by_cost = theory.regret_bound_by_cost(metric, domain.prior, optimum, cost_regret)
    assert (regret <= by_cost.value + 1e-9).all()  # Proposition 4
    for share in (0.0, 0.1, 0.5, 0.9, alpha):  # Proposition 5: all costs at once, with the same f
        cut = domain.classify(f, np.broadcast_to(theory.cost_threshold(share, loss), (DRAWS,)))
        of_cost = domain.cost_regret(np.broadcast_to(share, (DRAWS,)), cut)
        assert (of_cost <= theory.cost_regret_bound(loss, loss_regret).value + 1e-9).all()


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_proposition_4_holds_for_every_classifier(metric):
    domain, _ = draws(seed=1)
    h = np.random.default_rng(2).random((DRAWS, 6)) < 0.5
    optimum = domain.optimum(metric)
    alpha = theory.constants(metric, domain.prior, optimum).alpha
    bound = theory.regret_bound_by_cost(metric, domain.prior, optimum, domain.cost_regret(alpha, h))
    assert (optimum - domain.value(metric, h) <= bound.value + 1e-9).all()


def spoiled_fails(regret, bound):
    """The check passes, and the same check with the constant halved does not."""
    return regret <= bound + 1e-9 and not regret <= bound / 2 + 1e-9


def test_tight_for_squared_loss_and_accuracy():
    """One point, η just below ½, f = 0: cut at θ* = 0 it is predicted positive, and the bounds hold with equality."""
    eta = 0.5 - 1e-3
    domain = FiniteDomain([1.0], [eta])
    f = np.array([0.0])
    optimum = domain.optimum("accuracy")
    theta = theory.optimal_threshold("accuracy", "squared", domain.prior, optimum)
    assert theta == 0
    regret = domain.regret("accuracy", f, theta)
    cost_regret = domain.cost_regret(0.5, domain.classify(f, theta))
    loss_regret = domain.loss_regret("squared", f)
    lemma = theory.regret_bound("accuracy", "squared", domain.prior, optimum, loss_regret)
    assert regret == pytest.approx(lemma.value)
    assert spoiled_fails(regret, lemma.value)
    proposition_4 = theory.regret_bound_by_cost("accuracy", domain.prior, optimum, cost_regret)
    assert regret == pytest.approx(proposition_4.value)
    assert spoiled_fails(regret, proposition_4.value)
    proposition_5 = theory.cost_regret_bound("squared", loss_regret)
    assert cost_regret == pytest.approx(proposition_5.value)
    assert spoiled_fails(cost_regret, proposition_5.value)


@pytest.mark.parametrize("metric", [FBeta(), AM(), Jaccard()], ids=repr)
def test_theorem_3_holds_on_samples(metric):
    rng = np.random.default_rng(3)
    domain = FiniteDomain(1 / 8, rng.random(8))
    f = get_loss("logistic").link((np.asarray(domain.eta) + rng.normal(0, 0.1, 8)).clip(0.01, 0.99))
    optimum, loss_regret = domain.optimum(metric), domain.loss_regret("logistic", f)
    bound = theory.finite_sample_bound(metric, "logistic", domain.prior, optimum, loss_regret, n=200, confidence=0.9)
    from surecut import tune_threshold

    held = 0
    for _ in range(200):
        x = rng.integers(0, 8, 200)
        y = rng.random(200) < np.asarray(domain.eta)[x]
        held += domain.regret(metric, f, tune_threshold(y, f[x], metric=metric).threshold) <= bound.value
    assert held / 200 >= 0.9
    assert bound.value == pytest.approx(bound.approximation + bound.estimation)


def test_theorem_3_is_true_and_vacuous():
    bound = theory.finite_sample_bound("f1", "logistic", prior=0.1, optimum=0.6, loss_regret=0.0, n=10**6)
    assert bound.value == pytest.approx(2.7, abs=0.05)
    assert bound.vacuous
    parts = bound.constants
    deviation = np.sqrt((4 * (1 + np.log(10**6)) + 2 * np.log(16 / 0.05)) / 10**6)
    assert bound.estimation == pytest.approx(16 * parts.D / parts.gamma * deviation)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("metric", [FBeta(), AM(), Jaccard(), Accuracy()], ids=repr)
def test_macro_and_micro_theorems(metric, loss):
    rng = np.random.default_rng(4)
    loss = get_loss(loss)
    for _ in range(200):
        eta = rng.beta(0.6, 1.2, (4, 5)).clip(1e-4, 1 - 1e-4)
        domain = MultilabelDomain(rng.dirichlet(np.ones(5)), eta)
        f = loss.link((eta + rng.normal(0, 0.1, eta.shape)).clip(1e-4, 1 - 1e-4))
        regrets = domain.loss_regret(loss, f)
        macro = theory.macro_regret_bound(metric, loss, domain.macro.prior, domain.macro.optimum(metric), regrets)
        assert domain.regret(metric, f, domain.macro.best_cut(metric, f).threshold) <= macro.value + 1e-9
        optimum = domain.optimum(metric, "micro")
        micro = theory.micro_regret_bound(metric, loss, domain.micro.prior, optimum, regrets)
        shared = domain.micro.best_cut(metric, f.ravel()).threshold
        assert domain.regret(metric, f, shared, "micro") <= micro.value + 1e-9


def test_finite_sample_forms_split_the_confidence_over_labels():
    priors, optima, regrets = np.array([0.1, 0.3]), np.array([0.5, 0.6]), np.array([0.01, 0.02])
    macro = theory.macro_regret_bound("f1", "logistic", priors, optima, regrets, n=1000, confidence=0.9)
    single = [
        theory.finite_sample_bound("f1", "logistic", *label, n=1000, confidence=0.95).value
        for label in zip(priors, optima, regrets, strict=True)
    ]
    assert macro.value == pytest.approx(np.mean(single))
    micro = theory.micro_regret_bound("f1", "logistic", 0.2, 0.55, regrets, n=1000, confidence=0.9)
    term = theory.estimation_term(theory.constants("f1", 0.2, 0.55), 1000, 0.95)
    assert micro.estimation == pytest.approx(term)


def test_one_threshold_serves_accuracy_under_all_losses():
    for loss in LOSSES:
        assert theory.optimal_threshold("accuracy", loss, prior=0.3, optimum=0.9) == pytest.approx(0, abs=1e-12)


def test_what_no_theorem_covers():
    with pytest.raises(NoTheoremError, match="hinge"):
        theory.regret_bound("f1", "hinge", 0.2, 0.5, 0.1)
    with pytest.raises(NoTheoremError, match="precision"):
        theory.constants("precision", 0.2, 0.9)
    with pytest.raises(NoTheoremError, match="gmean"):
        theory.constants("gmean", 0.2, 0.9)
    with pytest.raises(ValueError, match="alpha must lie"):
        theory.cost_threshold(1.2, "logistic")
    with pytest.raises(ValueError, match="confidence"):
        theory.finite_sample_bound("f1", "logistic", 0.2, 0.5, 0.1, n=100, confidence=1.0)
