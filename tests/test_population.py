"""Known distributions: optima against all classifiers, regrets against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut import tune_top_k
from surecut.confusion import Confusion
from surecut.metrics import AM, MCC, CohenKappa, FBeta, GilbertSkill, GMean, HMean, Jaccard, NoTheoremError, Tversky
from surecut.population import FiniteDomain, LogisticModel, MultilabelDomain, TopKDomain

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


# k labels at each point


def every_rule(points, labels, k):
    rows = [row for row in itertools.product((0, 1), repeat=labels) if sum(row) == k]
    return [np.array(rule) for rule in itertools.product(rows, repeat=points)]


def macro_by_definition(metric, domain, h):
    values = []
    for label in range(np.shape(domain.eta)[1]):
        p, eta, accepted = np.asarray(domain.probability), np.asarray(domain.eta)[:, label], np.asarray(h)[:, label]
        cells = [(p * e * a).sum() for a in (accepted, 1 - accepted) for e in (eta, 1 - eta)]
        tp, fp, fn, tn = cells
        values.append(metric.evaluate(Confusion(tp, fp, fn, tn)))
    return np.nan_to_num(values).mean()


@pytest.mark.parametrize("metric", [FBeta(), Jaccard(), AM(), CohenKappa(), MCC()], ids=str)
@pytest.mark.parametrize(("labels", "k"), [(2, 1), (3, 1), (4, 2)])
def test_the_best_deterministic_rule_is_the_best_of_all(metric, labels, k):
    rng = np.random.default_rng(labels)
    for _ in range(10):
        eta = rng.dirichlet(np.ones(labels), 3) if k == 1 else rng.random((3, labels))
        domain = TopKDomain(rng.dirichlet(np.ones(3)), eta, k)
        values = [macro_by_definition(metric, domain, h) for h in every_rule(3, labels, k)]
        assert domain.optimum(metric, randomised=False) == pytest.approx(max(values), abs=1e-7)
        assert domain.value(metric, every_rule(3, labels, k)[5]) == pytest.approx(values[5], abs=1e-12)


@pytest.mark.parametrize("metric", [FBeta(), FBeta(2), Jaccard(), GilbertSkill(), CohenKappa()], ids=str)
def test_the_best_randomised_rule_against_a_grid_of_all(metric):
    steps = 24
    shares = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    rules = np.stack([np.repeat(shares, len(shares), axis=0), np.tile(shares, (len(shares), 1))], axis=1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        domain = TopKDomain(rng.dirichlet(np.ones(2)), rng.dirichlet(np.full(3, 0.7), 2))
        tp = np.einsum("rxj,xj->rj", rules, np.asarray(domain.probability)[:, None] * domain.eta)
        predicted = np.einsum("rxj,x->rj", rules, domain.probability)
        grid = np.zeros(len(rules))
        for label, prior in enumerate(domain.prior):
            fp, fn = predicted[:, label] - tp[:, label], prior - tp[:, label]
            grid = grid + np.nan_to_num(metric.value(fp, fn, prior)) / 3
        optimum = domain.optimum(metric)
        assert grid.max() - 1e-9 <= optimum <= grid.max() + 2e-3
        assert optimum >= domain.optimum(metric, randomised=False) - 1e-12


def test_two_classes_randomised_are_a_threshold_with_one_tie():
    """With two classes a rule is a threshold on the first one's η, and predicts it at one more point by chance."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        eta = rng.random(5)
        domain = TopKDomain(1 / 5, np.column_stack([eta, 1 - eta]))
        order, best = np.argsort(-eta), -1.0
        for place in range(5):
            for share in np.linspace(0, 1, 201):
                first = np.zeros(5)
                first[order[:place]], first[order[place]] = 1, share
                best = max(best, macro_by_definition(FBeta(), domain, np.column_stack([first, 1 - first])))
        assert best - 1e-9 <= domain.optimum("f1") <= best + 1e-4


@pytest.mark.parametrize("metric", [FBeta(), Jaccard(), CohenKappa()], ids=str)
def test_optimal_and_plug_in_rules_take_the_largest_affine_gains(metric):
    rng = np.random.default_rng(2)
    shape = (60, 4, 3)
    domain = TopKDomain(rng.dirichlet(np.ones(4), 60), rng.dirichlet(np.ones(3), shape[:2]))
    estimate = 0.9 * np.asarray(domain.eta) + 0.1 * rng.dirichlet(np.ones(3), shape[:2])
    for eta, rule in (
        (np.asarray(domain.eta), domain.optimal_rule(metric)),
        (estimate, domain.plug_in_rule(metric, estimate)),
    ):
        mass = np.asarray(domain.probability)
        tp, predicted = np.einsum("dxj,dxj->dj", rule, mass[..., None] * eta), np.einsum("dxj,dx->dj", rule, mass)
        values = lambda t, q: metric.value(q - t, domain.prior - t, domain.prior)  # noqa: E731
        step = 1e-7
        a = (values(tp + step, predicted) - values(tp - step, predicted)) / (2 * step)
        b = (values(tp, predicted + step) - values(tp, predicted - step)) / (2 * step)
        gains = a[:, None] * eta + b[:, None]
        lost = gains.max(axis=-1, keepdims=True) - gains
        assert (lost[rule > 1e-3] < 1e-3).all()
    assert ((rule > 1e-3) & (rule < 1 - 1e-3)).any()


def test_the_gmean_of_many_classes_is_0_where_one_of_them_is_never_predicted():
    domain = TopKDomain(1 / 40, np.full((40, 40), 1 / 40))
    rule = np.eye(40)
    assert domain.value("gmean", rule, "multiclass") == pytest.approx(1 / 40)
    rule[0], rule[1] = rule[1], rule[1]
    assert domain.value("gmean", rule, "multiclass") == 0


def test_estimates_that_are_equal_are_treated_alike():
    domain = TopKDomain([0.2, 0.3, 0.5], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    rule = domain.plug_in_rule("f1", [[0.5, 0.5], [0.5, 0.5], [0.7, 0.3]])
    np.testing.assert_allclose(rule[0], rule[1])


def test_many_top_k_domains_at_once_are_each_alone():
    rng = np.random.default_rng(3)
    eta, mass = rng.dirichlet(np.ones(3), (6, 4)), rng.dirichlet(np.ones(4), 6)
    estimate = 0.5 * eta + 0.5 / 3
    many = TopKDomain(mass, eta)
    alone = [TopKDomain(*one) for one in zip(mass, eta, strict=True)]
    np.testing.assert_allclose(many.prior, [d.prior for d in alone])
    for metric, average in (("f1", "macro"), ("f1", "weighted"), ("f1", "micro"), ("kappa", "multiclass")):
        np.testing.assert_allclose(many.optimum(metric, average), [d.optimum(metric, average) for d in alone])
    np.testing.assert_allclose(
        many.plug_in_rule("f1", estimate),
        [d.plug_in_rule("f1", f) for d, f in zip(alone, estimate, strict=True)],
        atol=1e-5,
    )
    np.testing.assert_allclose(
        many.log_loss_regret(estimate), [d.log_loss_regret(f) for d, f in zip(alone, estimate, strict=True)]
    )
    np.testing.assert_array_equal(
        many.classify(estimate), [d.classify(f) for d, f in zip(alone, estimate, strict=True)]
    )


@pytest.mark.parametrize(
    ("metric", "average"), [("f1", "macro"), ("f1", "weighted"), ("f1", "micro"), ("mcc", "multiclass")]
)
def test_values_of_a_tuned_rule_are_those_of_its_own_rows(metric, average):
    """Rows as a domain: each is a point, and its label is certain."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 60)
    scores = np.eye(3)[y] + rng.normal(0, 0.7, (60, 3))
    rule = tune_top_k(y, scores, k=1, metric=metric, average=average)
    domain = TopKDomain(1 / 60, np.eye(3)[y])
    predicted = rule.predict(scores, as_="indicator")
    np.testing.assert_array_equal(predicted, domain.classify(scores, rule.a, rule.offsets))
    assert domain.value(metric, predicted, average) == pytest.approx(rule.value, abs=1e-12)
    np.testing.assert_allclose(np.asarray(domain.confusion(predicted).tp) * 60, rule.confusion.tp)


def test_regrets_of_classes_by_their_definitions():
    eta = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4]])
    f = np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])
    domain = TopKDomain([0.4, 0.6], eta)
    risk = lambda q: -(np.array([0.4, 0.6])[:, None] * eta * np.log(q)).sum()  # noqa: E731
    assert domain.log_loss_regret(f) == pytest.approx(risk(f) - risk(eta))
    assert domain.log_loss_regret(eta) == 0
    np.testing.assert_allclose(domain.probability_error(f), 0.4 * np.abs(eta - f)[0] + 0.6 * np.abs(eta - f)[1])
    costs = np.array([[0, 1, 0.3], [5, 0, 0.3], [1, 1, 0.3]])
    rule = np.array([[1, 0, 0], [0, 0.5, 0.5]])
    expected = 0.4 * (eta[0] @ costs)[0] + 0.6 * (eta[1] @ costs)[1:].mean()
    best = 0.4 * (eta[0] @ costs).min() + 0.6 * (eta[1] @ costs).min()
    assert domain.cost_regret(costs, rule) == pytest.approx(expected - best)


def test_a_micro_average_needs_no_enumeration():
    rng = np.random.default_rng(5)
    large = TopKDomain(1 / 500, rng.random((500, 20)), k=3)
    assert large.regret("f1", large.classify(large.eta), "micro") == 0
    small = TopKDomain(1 / 3, rng.random((3, 4)), k=2)
    values = [small.value("f1", h, "micro") for h in every_rule(3, 4, 2)]
    assert small.optimum("f1", "micro") == pytest.approx(max(values), abs=1e-12)


def test_bad_top_k_domains_and_rules():
    with pytest.raises(ValueError, match="a row for each point"):
        TopKDomain([0.5, 0.5], [0.1, 0.2])
    with pytest.raises(ValueError, match="k must be at least 1 and at most the number of labels, 2, got 3"):
        TopKDomain([1.0], [[0.5, 0.5]], k=3)
    with pytest.raises(ValueError, match=r"eta must lie in \[0, 1\]"):
        TopKDomain([1.0], [[0.5, 1.5]])
    domain = TopKDomain([0.5, 0.5], [[0.5, 0.5], [0.2, 0.8]])
    with pytest.raises(ValueError, match="rows that sum to k = 1"):
        domain.value("f1", [[1, 1], [0, 1]])
    with pytest.raises(ValueError, match="randomised=False"):
        domain.optimum("mcc", "multiclass")
    with pytest.raises(ValueError, match="mcc is not linear-fractional"):
        domain.optimum("mcc")
    with pytest.raises(ValueError, match="no average of linear-fractional"):
        domain.plug_in_rule("accuracy", domain.eta, "multiclass")
    with pytest.raises(ValueError, match="estimates of probabilities"):
        domain.plug_in_rule("f1", [[2, 0], [0, 1]])
    with pytest.raises(ValueError, match="there are 1,073,741,824"):
        TopKDomain(1 / 30, np.full((30, 2), 0.5)).optimum("f1")
    with pytest.raises(ValueError, match="the rows of eta must sum to 1"):
        TopKDomain([1.0], [[0.5, 0.9]]).log_loss_regret([[0.5, 0.5]])
