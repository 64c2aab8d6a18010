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
    LinearFractional,
    NoTheoremError,
    Tversky,
    Utility,
    WeightedAccuracy,
    get_metric,
)
from surecut.population import FiniteDomain, MultilabelDomain, TopKDomain

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


# k labels a row


@pytest.mark.parametrize("prior", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize(
    "metric",
    [*METRICS, Tversky(0.2, 3), Utility(fp=-1, fn=-9)],
    ids=repr,
)
def test_the_slope_bound_is_the_supremum_over_all_confusions(metric, prior):
    steps = np.linspace(0, 1, 401)
    fp, fn = np.meshgrid(steps * (1 - prior), steps * prior)
    (a0, a1, a2), (b0, b1, b2) = metric.coefficients(prior)
    top, bottom = a0 + a1 * fp + a2 * fn, b0 + b1 * fp + b2 * fn
    slopes = -((a1 + a2) * bottom - (b1 + b2) * top) / bottom**2
    assert (slopes >= -1e-9).all()
    assert theory.slope_bound(metric, prior) == pytest.approx(slopes.max(), rel=1e-5)
    assert theory.slope_bound(metric, prior) >= slopes.max() * (1 - 1e-12)
    at, step = (100, 100), 1e-6  # the same by a difference quotient, with the metric itself
    moved = metric.value(fp[at] - step, fn[at] - step, prior) - metric.value(fp[at] + step, fn[at] + step, prior)
    assert moved / (2 * step) == pytest.approx(slopes[at], rel=1e-4)


def test_a_slope_may_be_largest_inside_an_edge():
    metric = LinearFractional(3, -4, -3, 3, -3, 1)
    fp, fn = np.meshgrid(np.linspace(0, 0.5, 1001), np.linspace(0, 0.5, 1001))
    slopes = (7 * (3 - 3 * fp + fn) - 2 * (3 - 4 * fp - 3 * fn)) / (3 - 3 * fp + fn) ** 2
    assert theory.slope_bound(metric, 0.5) == pytest.approx(slopes.max(), rel=1e-5)
    assert theory.slope_bound(metric, 0.5) > slopes[[0, 0, -1, -1], [0, -1, 0, -1]].max() * 1.01


def test_slope_bounds_of_many_labels_are_those_of_each():
    priors = np.array([0.1, 0.4, 0.5])
    for metric in METRICS:
        alone = [theory.slope_bound(metric, prior) for prior in priors]
        np.testing.assert_allclose(np.broadcast_to(theory.slope_bound(metric, priors), (3,)), alone)


def top_k_draws(seed, labels, k, number, points=3, ties=False):
    """Random domains and estimates of their η, from nearly right to nonsense; with `ties` many of them equal."""
    rng = np.random.default_rng(seed)
    shape = (number, points, labels)

    def probabilities():
        if ties:
            drawn = (
                rng.multinomial(4, np.ones(labels) / labels, shape[:2]) / 4 if k == 1 else rng.integers(0, 4, shape) / 3
            )
            return np.where(drawn.sum(axis=-2, keepdims=True) > 0, drawn, 1 / labels) if k > 1 else drawn
        return rng.dirichlet(np.full(labels, 0.7), shape[:2]) if k == 1 else rng.random(shape)

    eta, other = probabilities(), probabilities()
    keep = rng.choice([0.0, 0.5, 0.9, 0.999], (number, 1, 1))
    estimate = keep * eta + (1 - keep) * other
    mass = np.full((number, points), 1 / points) if ties else rng.dirichlet(np.ones(points), number)
    known = ((eta * mass[..., None]).sum(axis=1) > 1e-6).all(axis=1) & ((eta * mass[..., None]).sum(axis=1) < 1).all(
        axis=1
    )
    return TopKDomain(mass[known], eta[known], k), estimate[known]


WITH_AVERAGES = [
    *((metric, "macro") for metric in METRICS if metric not in (FBeta(0.5), AM())),
    (FBeta(), "weighted"),
    (AM(), "weighted"),
    (FBeta(), "micro"),
    (CohenKappa(), "micro"),
]


@pytest.mark.parametrize(
    ("labels", "k", "ties"), [(2, 1, False), (3, 1, False), (3, 1, True), (3, 2, False), (3, 2, True)]
)
@pytest.mark.parametrize(("metric", "average"), WITH_AVERAGES, ids=str)
def test_rules_with_k_labels_a_row_keep_their_bound(metric, labels, k, ties, average):
    domain, estimate = top_k_draws(seed=10 * labels + k, labels=labels, k=k, number=60, ties=ties)
    error = domain.probability_error(estimate)
    regret = domain.regret(metric, domain.plug_in_rule(metric, estimate, average), average)
    bound = theory.top_k_regret_bound(metric, domain.prior, error, average)
    of_all = theory.top_k_regret_bound(metric, domain.prior, error.sum(axis=-1), average)
    assert (regret >= -1e-9).all()
    assert (regret <= bound.value + 1e-9).all()
    assert (bound.value <= of_all.value + 1e-9).all()
    if k == 1:
        with np.errstate(divide="ignore"):
            by_log_loss = theory.probability_error_bound(domain.log_loss_regret(estimate))
        assert (error.sum(axis=-1) <= by_log_loss + 1e-9).all()


@pytest.mark.parametrize("ties", [False, True])
def test_metrics_of_several_classes_keep_their_bound(ties):
    domain, estimate = top_k_draws(seed=5, labels=3, k=1, number=300, ties=ties)
    error, prior = domain.probability_error(estimate), domain.prior[:, None, :]
    levels = np.linspace(-1, 1, 41)
    rules = {
        "accuracy": [domain.classify(estimate)],
        "balanced_accuracy": [domain.classify(estimate, 1 / prior)],
        "kappa": [domain.classify(estimate, 1.0, (level - 1) * prior) for level in levels],
    }
    for metric, candidates in rules.items():
        optimum = domain.optimum(metric, "multiclass")
        best = np.max([domain.value(metric, rule, "multiclass") for rule in candidates], axis=0)
        bound = theory.top_k_regret_bound(metric, domain.prior, error, "multiclass")
        assert (optimum - best >= -1e-9).all()
        assert (optimum - best <= bound.value + 1e-9).all()


def test_the_bound_of_k_labels_is_tight_for_accuracy_and_not_vacuous_for_f1():
    """η̂ cannot tell two classes apart: it may predict the wrong one, and the bound holds with equality."""
    domain = TopKDomain([1.0], [[0.49, 0.51]])
    estimate = np.array([[0.5, 0.5]])
    rule = domain.classify(estimate)
    error = domain.probability_error(estimate)
    for metric, average in (("accuracy", "macro"), ("accuracy", "multiclass"), ("accuracy", "micro")):
        regret = domain.regret(metric, rule, average)
        bound = theory.top_k_regret_bound(metric, domain.prior, error, average)
        assert regret == pytest.approx(bound.value)
        assert spoiled_fails(regret, bound.value)
    several, estimates = top_k_draws(seed=3, labels=2, k=1, number=400)
    regrets = several.regret("f1", several.plug_in_rule("f1", estimates))
    ratio = regrets / theory.top_k_regret_bound("f1", several.prior, several.probability_error(estimates)).value
    assert ratio.max() > 0.2


def test_pinsker_is_tight_for_probabilities_of_one_half():
    domain = TopKDomain([1.0], [[0.499, 0.501]])
    error = domain.probability_error([[0.5, 0.5]]).sum()
    bound = theory.probability_error_bound(domain.log_loss_regret([[0.5, 0.5]]))
    assert error == pytest.approx(bound, rel=1e-4)
    assert spoiled_fails(error, bound)
    label = FiniteDomain([1.0], [0.499])
    of_label = theory.probability_error_bound(label.loss_regret("logistic", [0.0]), "logistic")
    assert of_label == pytest.approx(0.001, rel=1e-4)


def test_proposition_4_does_not_carry_over_to_a_sum_of_ratios():
    """One point, two classes: *always class 1* has no regret for the gains at the optimum, and is not optimal."""
    domain = TopKDomain([1.0], [[0.5, 0.5]])
    best = domain.optimal_rule("f1")
    np.testing.assert_allclose(best, [[0.5, 0.5]])
    assert domain.value("f1", best) == pytest.approx(1 / 2)
    confusion = domain.confusion(best)
    denominators = domain.prior + confusion.tp + confusion.fp
    a, b = 2 / denominators, -2 * np.asarray(confusion.tp) / denominators**2
    gains = a * 0.5 + b
    assert gains[0] == pytest.approx(gains[1])  # both labels are optimal for the linear gains: no regret
    always_the_first = np.array([[1.0, 0.0]])
    assert domain.value("f1", always_the_first) == pytest.approx(1 / 3)
    assert domain.regret("f1", always_the_first) == pytest.approx(1 / 6)
    # The estimate is perfect and the bound 0: it holds for ties that are broken at random, and for no other rule
    bound = theory.top_k_regret_bound("f1", domain.prior, domain.probability_error([[0.5, 0.5]]))
    assert bound.value == 0
    assert domain.regret("f1", domain.plug_in_rule("f1", [[0.5, 0.5]])) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("actions", [2, 4])
def test_a_matrix_of_costs_keeps_the_classical_bound(actions):
    rng = np.random.default_rng(actions)
    for ties in (False, True):
        domain, estimate = top_k_draws(seed=actions, labels=3, k=1, number=300, ties=ties)
        for _ in range(5):
            costs = rng.integers(-2, 6, (3, actions)).astype(float)
            chosen = np.eye(actions)[(estimate @ costs).argmin(axis=-1)]
            bound = theory.cost_matrix_regret_bound(costs, domain.probability_error(estimate).sum(axis=-1))
            assert (domain.cost_regret(costs, chosen) <= bound.value + 1e-9).all()


def test_the_bound_of_a_matrix_of_costs_is_tight():
    domain = TopKDomain([1.0], [[0.49, 0.51]])
    estimate = np.array([[0.5, 0.5]])
    error = domain.probability_error(estimate).sum()
    regret = domain.cost_regret([[0, 1], [1, 0]], [[1, 0]])
    bound = theory.cost_matrix_regret_bound([[0, 1], [1, 0]], error)
    assert regret == pytest.approx(bound.value)
    assert spoiled_fails(regret, bound.value)
    with_reject = [[0, 1, 0.5], [1, 0, 0.5]]  # rejecting adds nothing to what a wrong class costs
    assert theory.cost_matrix_regret_bound(with_reject, error).value == pytest.approx(bound.value)
    assert theory.cost_matrix_regret_bound([[3, 3], [1, 1]], error).value == 0


def test_averages_weigh_the_labels():
    prior, error = np.array([0.6, 0.3, 0.1]), np.array([0.01, 0.02, 0.03])
    slopes = 2 / prior
    value = lambda average, given=error: theory.top_k_regret_bound("f1", prior, given, average).value  # noqa: E731
    assert value("macro") == pytest.approx(np.mean(slopes * error))
    assert value("weighted") == pytest.approx(np.sum(2 * error))
    assert value("micro") == pytest.approx(2 / prior.mean() * error.mean())
    assert value("macro", 0.06) == pytest.approx(slopes.max() * 0.06 / 3)
    balanced = theory.top_k_regret_bound("balanced_accuracy", prior, error, "multiclass")
    np.testing.assert_allclose(balanced.slopes, 1 / (3 * prior))


def test_what_no_theorem_of_k_labels_covers():
    with pytest.raises(NoTheoremError, match="precision"):
        theory.slope_bound("precision", 0.2)
    with pytest.raises(NoTheoremError, match="gmean is not linear-fractional"):
        theory.top_k_regret_bound("gmean", [0.2, 0.8], 0.1)
    with pytest.raises(NoTheoremError, match="gmean of several classes"):
        theory.top_k_regret_bound("gmean", [0.2, 0.8], 0.1, "multiclass")
    with pytest.raises(NoTheoremError, match="P = 0"):
        theory.top_k_regret_bound("f1", [0.0, 1.0], 0.1)
    with pytest.raises(NoTheoremError, match="hinge"):
        theory.probability_error_bound(0.1, "hinge")
    with pytest.raises(ValueError, match="'multiclass' has the metrics accuracy"):
        theory.top_k_regret_bound("f1", [0.2, 0.8], 0.1, "multiclass")
    with pytest.raises(ValueError, match="average= must be one of macro"):
        theory.top_k_regret_bound("f1", [0.2, 0.8], 0.1, "samples")
    with pytest.raises(ValueError, match="got shape"):
        theory.cost_matrix_regret_bound([0, 1], 0.1)
    assert get_metric("f1").slope_bound(0.5) == theory.slope_bound("f1", 0.5)
