"""Every metric keeps the same contract; scikit-learn and the paper's tables are the oracles."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from surecut import get_metric, tune_threshold
from surecut.confusion import Confusion
from surecut.core.settings import using
from surecut.metrics import (
    AM,
    CATALOGUE,
    MCC,
    NPV,
    Accuracy,
    CohenKappa,
    FBeta,
    FunctionMetric,
    GilbertSkill,
    GMean,
    HMean,
    Jaccard,
    LinearFractional,
    LinearFractionalMetric,
    Metric,
    NoTheoremError,
    NotMonotoneError,
    Precision,
    Recall,
    Specificity,
    Tversky,
    Utility,
    WeightedAccuracy,
    Youden,
)


def box(prior, points=41):
    """A grid over FP ∈ [0, 1−P], FN ∈ [0, P], corners included."""
    return np.meshgrid(np.linspace(0, 1 - prior, points), np.linspace(0, prior, points), indexing="ij")


# The contract of the registry


def test_the_formula_is_the_textbooks(metric, oracle, some_confusions):
    name = next(name for name, one in oracle.metrics.items() if one is metric)
    for confusion in some_confusions:
        cells = (confusion.tp, confusion.fp, confusion.fn, confusion.tn)
        value = oracle.formulas[name](*cells)
        expected = math.nan if value is None else float(value)  # NPV, where everything is predicted
        assert metric.evaluate(confusion) == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)


def test_values_lie_in_the_range(metric):
    least, largest = metric.value_range
    for prior in (0.01, 0.5, 0.9):
        values = metric.value(*box(prior), prior)
        values = values[~np.isnan(values)]
        assert values.min() >= least - 1e-12
        assert values.max() <= largest + 1e-12


def test_a_subclass_may_have_another_range():
    class Doubled(Precision):
        def evaluate(self, confusion):
            return 2 * super().evaluate(confusion)

    assert Precision.value_range == (0, 1)
    assert Doubled.value_range == (-math.inf, math.inf)


def test_the_value_from_rates_is_the_value_from_counts(metric, some_confusions):
    for confusion in some_confusions:
        rates = metric.value(confusion.fp / confusion.total, confusion.fn / confusion.total, confusion.prior)
        assert rates == pytest.approx(metric.evaluate(confusion), rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("times", [10**9, 10**12])
def test_more_rows_than_products_of_counts_can_hold(metric, some_confusions, times):
    for confusion in some_confusions:
        many = Confusion(*(times * cell for cell in (confusion.tp, confusion.fp, confusion.fn, confusion.tn)))
        value = metric.evaluate(confusion)
        assert metric.evaluate(many) == pytest.approx(value, rel=1e-12, abs=1e-15, nan_ok=True)
        assert metric.evaluate(many[np.newaxis])[0] == pytest.approx(value, rel=1e-12, abs=1e-15, nan_ok=True)


def test_arrays_and_scalars_give_the_same_values(metric, some_confusions):
    cells = [np.array([getattr(one, cell) for one in some_confusions]) for cell in ("tp", "fp", "fn", "tn")]
    together = metric.evaluate(Confusion(*cells))
    assert together.shape == (len(some_confusions),)
    one_by_one = [metric.evaluate(confusion) for confusion in some_confusions]
    assert all(type(value) is float for value in one_by_one)
    np.testing.assert_array_equal(together, one_by_one)


def test_the_coefficients_reproduce_the_value(linear_fractional, prior):
    fp, fn = box(prior)
    (a0, a1, a2), (b0, b1, b2) = linear_fractional.coefficients(prior)
    numerator, denominator = a0 + a1 * fp + a2 * fn, b0 + b1 * fp + b2 * fn
    inside = denominator > 1e-12
    np.testing.assert_allclose(
        linear_fractional.value(fp, fn, prior)[inside], numerator[inside] / denominator[inside], rtol=1e-9, atol=1e-12
    )


def test_no_metric_increases_in_fp_or_fn(metric, prior):
    metric.check_monotone(prior)
    values = metric.value(*box(prior), prior)
    for axis in (0, 1):
        steps = np.diff(values, axis=axis)
        assert not (steps > 1e-12).any()
    assert np.nanmax(values) > np.nanmin(values)


def _all_subclasses(kind):
    return {kind, *itertools.chain.from_iterable(map(_all_subclasses, kind.__subclasses__()))}


SURELY_MONOTONE = {
    FBeta: st.builds(FBeta, st.floats(1e-6, 1e6)),
    WeightedAccuracy: st.builds(WeightedAccuracy, st.floats(0, 1e6), st.floats(1e-6, 1e6)),
    Tversky: st.builds(Tversky, st.floats(0, 1e6), st.floats(1e-6, 1e6)),
    Utility: st.builds(
        lambda low, high: Utility(tp=max(low), fn=min(low), tn=max(high), fp=min(high)),
        *[st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))] * 2,
    ),
    **{kind: st.builds(kind) for kind in (Accuracy, Jaccard, AM, Precision, Recall, Specificity, NPV, Youden)},
    **{kind: st.builds(kind) for kind in (CohenKappa, GilbertSkill)},
}


def test_every_metric_that_is_not_checked_is_known_here():
    declared = {kind for kind in _all_subclasses(Metric) if kind.monotone_by_construction}
    assert {kind for kind in declared if kind.__module__ == "surecut.metrics"} == set(SURELY_MONOTONE)


@settings(max_examples=300, deadline=None)
@given(st.one_of(*SURELY_MONOTONE.values()), st.floats(1e-6, 1 - 1e-6))
def test_metrics_that_are_monotone_by_construction_pass_the_check(metric, prior):
    metric.check_monotone(prior)


def test_a_subclass_is_not_monotone_by_construction():
    class Reversed(FBeta):
        def cells(self, positives, negatives):
            numerator, denominator = super().cells(positives, negatives)
            return tuple(-weight for weight in numerator), denominator

    assert not Reversed().monotone_by_construction
    with pytest.raises(NotMonotoneError):
        tune_threshold([0, 1, 1], [0.25, 0.5, 0.75], metric=Reversed())


def test_the_value_is_defined_where_the_corner_is_written_in_decimals(metric):
    """1 − 0.9 − 0.1 is not 0 in floats; the corner is a legitimate point all the same."""
    exact = metric.value(fp=1 - 0.9, fn=0.0, prior=0.9)
    assert metric.value(fp=0.1, fn=0.0, prior=0.9) == pytest.approx(exact, abs=1e-9, nan_ok=metric.name == "npv")


def test_gamma_is_the_smallest_denominator_and_d_the_largest_slope(with_theorem, prior):
    fp, fn = box(prior, points=101)
    (a0, a1, a2), (b0, b1, b2) = with_theorem.coefficients(prior)
    denominator = b0 + b1 * fp + b2 * fn
    values = (a0 + a1 * fp + a2 * fn) / denominator
    slopes = np.maximum(np.abs(b1 * values - a1), np.abs(b2 * values - a2))
    constants = with_theorem.constants(prior, optimum=with_theorem.value(0.2 * (1 - prior), 0.1 * prior, prior))
    assert constants.gamma == pytest.approx(denominator.min(), rel=1e-9)
    assert with_theorem.gamma(prior) == constants.gamma
    assert constants.D == pytest.approx(slopes.max(), rel=1e-9)
    assert 0 <= constants.alpha <= 1
    assert constants.C > 0


def test_regret_is_the_cost_regret_times_c_gamma_over_the_denominator(with_theorem, prior):
    """The identity behind Lemma 1: Ψ* − Ψ = C γ (α ΔFP + (1 − α) ΔFN) / B, which holds for no other C, α."""
    best_fp, best_fn = 0.1 * (1 - prior), 0.2 * prior
    optimum = with_theorem.value(best_fp, best_fn, prior)
    constants = with_theorem.constants(prior, optimum)
    fp, fn = box(prior, points=7)
    _, (b0, b1, b2) = with_theorem.coefficients(prior)
    cost = constants.alpha * (fp - best_fp) + (1 - constants.alpha) * (fn - best_fn)
    expected = constants.C * constants.gamma * cost / (b0 + b1 * fp + b2 * fn)
    np.testing.assert_allclose(optimum - with_theorem.value(fp, fn, prior), expected, rtol=1e-7, atol=1e-10)


def test_constants_at_many_priors_are_those_at_each(with_theorem):
    priors, optima = np.array([0.1, 0.4, 0.75]), np.array([0.3, 0.5, 0.6])
    together = with_theorem.constants(priors, optima)
    for i, (p, optimum) in enumerate(zip(priors.tolist(), optima.tolist(), strict=True)):
        alone = with_theorem.constants(p, optimum)
        for name in ("gamma", "C", "alpha", "D"):
            at_each = np.broadcast_to(getattr(together, name), priors.shape)
            assert at_each[i] == pytest.approx(getattr(alone, name), rel=1e-12)
            assert type(getattr(alone, name)) is float


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(
    ("metric", "gamma", "factor"),
    [
        (Accuracy(), lambda p: 1, lambda p, best: 2),
        (FBeta(1), lambda p: p, lambda p, best: 2 / p),
        (FBeta(2), lambda p: 4 * p, lambda p, best: 5 / (4 * p)),
        (FBeta(0.5), lambda p: 0.25 * p, lambda p, best: 1.25 / (0.25 * p)),
        (Jaccard(), lambda p: p, lambda p, best: (best + 1) / p),
        (AM(), lambda p: 2 * p * (1 - p), lambda p, best: 1 / (2 * p * (1 - p))),
        (WeightedAccuracy(2, 5), lambda p: 2 * (1 - p) + 5 * p, lambda p, best: 7 / (2 * (1 - p) + 5 * p)),
    ],
    ids=lambda part: part.name if hasattr(part, "name") else "",
)
def test_table_3_of_the_paper(metric, gamma, factor, p):
    constants = metric.constants(prior=p, optimum=0.625)
    assert constants.gamma == pytest.approx(gamma(p), rel=1e-12)
    assert constants.C == pytest.approx(factor(p, 0.625), rel=1e-12)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.8])
def test_gamma_of_the_metrics_that_the_paper_does_not_list(p):
    assert CohenKappa().gamma(p) == pytest.approx(min(p, 1 - p), rel=1e-12)
    assert GilbertSkill().gamma(p) == pytest.approx(p * (1 - p), rel=1e-12)
    assert Precision().gamma(p) == 0


def test_optimal_thresholds_on_the_probability():
    """α: ½ for accuracy, half the optimum for F₁, P for AM."""
    assert Accuracy().constants(0.2, 0.9).alpha == pytest.approx(0.5)
    assert FBeta(1).constants(0.2, 0.7).alpha == pytest.approx(0.35)
    assert AM().constants(0.2, 0.7).alpha == pytest.approx(0.2)
    assert WeightedAccuracy(1, 4).constants(0.2, 0.7).alpha == pytest.approx(0.2)


def test_metrics_without_a_theorem_say_so():
    with pytest.raises(NoTheoremError, match=r"denominator of precision reaches 0 at P = 0\.3"):
        Precision().constants(0.3, 0.9)
    for metric in (MCC(), GMean(), HMean(), FunctionMetric(lambda confusion: confusion.tp)):
        with pytest.raises(NoTheoremError, match=f"{metric.name} is not linear-fractional"):
            metric.constants(0.3, 0.9)
    with pytest.raises(NoTheoremError, match="constant"):
        Utility().constants(0.3, 0.0)


# scikit-learn is the oracle

rows_of_predictions = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.floats(0.125, 8)), min_size=1, max_size=40
).map(lambda rows: [(True, True, 1.0), (False, False, 0.5), *rows])


@pytest.mark.parametrize(
    ("metric", "function"),
    [
        (Accuracy(), sklearn.metrics.accuracy_score),
        (FBeta(0.5), lambda *columns, **weights: sklearn.metrics.fbeta_score(*columns, beta=0.5, **weights)),
        (FBeta(1), sklearn.metrics.f1_score),
        (FBeta(2), lambda *columns, **weights: sklearn.metrics.fbeta_score(*columns, beta=2, **weights)),
        (Jaccard(), sklearn.metrics.jaccard_score),
        (AM(), sklearn.metrics.balanced_accuracy_score),
        (CohenKappa(), sklearn.metrics.cohen_kappa_score),
        (MCC(), sklearn.metrics.matthews_corrcoef),
        (
            Precision(),
            lambda *columns, **weights: sklearn.metrics.precision_score(*columns, zero_division=0, **weights),
        ),
        (Recall(), sklearn.metrics.recall_score),
        (Specificity(), lambda *columns, **weights: sklearn.metrics.recall_score(*columns, pos_label=0, **weights)),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
@settings(max_examples=25)
@given(rows=rows_of_predictions)
def test_scores_are_those_of_scikit_learn(metric, function, rows):
    truth, predicted, weights = (np.array(column) for column in zip(*rows, strict=True))
    truth, predicted = truth.astype(int), predicted.astype(int)
    assert metric.score(truth, predicted) == pytest.approx(function(truth, predicted), rel=1e-12, abs=1e-12)
    weighted = function(truth, predicted, sample_weight=weights)
    assert metric.score(truth, predicted, sample_weight=weights) == pytest.approx(weighted, rel=1e-9, abs=1e-9)


def test_nothing_predicted_scores_zero_as_in_scikit_learn():
    truth, nothing = [1, 0, 1], [0, 0, 0]
    for metric in (Precision(), FBeta(1), MCC(), Jaccard()):
        assert metric.score(truth, nothing) == 0.0
    assert math.isnan(Precision().evaluate(Confusion(0, 0, 2, 1)))


def test_scores_of_named_labels():
    truth, predicted = ["spam", "ham", "spam", "ham"], ["spam", "spam", "ham", "ham"]
    expected = sklearn.metrics.f1_score(truth, predicted, pos_label="spam")
    assert FBeta(1).score(truth, predicted, pos_label="spam") == expected
    assert FBeta(1).score(truth, np.array([True, True, False, False]), pos_label="spam") == expected


@pytest.mark.parametrize("predicted", [[1, np.nan, 1], [1, 2, 1], ["1", "1", "1"]], ids=["nan", "stranger", "text"])
def test_predictions_that_are_no_labels_are_refused(predicted):
    with pytest.raises((TypeError, ValueError), match="y_pred"):
        FBeta(1).score([1, 0, 1], predicted)


# Identities

cells_with_both_classes = st.tuples(*[st.integers(0, 50)] * 4, st.booleans(), st.booleans()).map(
    lambda drawn: (drawn[0] + drawn[4], drawn[1] + drawn[5], drawn[2] + (not drawn[4]), drawn[3] + (not drawn[5]))
)


@given(cells_with_both_classes)
def test_identities_between_metrics(cells):
    confusion = Confusion(*cells)
    p = confusion.prior

    def value(metric):
        return pytest.approx(metric.evaluate(confusion), rel=1e-9, abs=1e-12)

    assert Tversky(1, 1).evaluate(confusion) == value(Jaccard())
    assert Tversky(0.5, 0.5).evaluate(confusion) == value(FBeta(1))
    assert WeightedAccuracy(p, 1 - p).evaluate(confusion) == value(AM())
    assert WeightedAccuracy(2, 2).evaluate(confusion) == value(Accuracy())
    assert Utility(tp=1, tn=1).evaluate(confusion) == value(Accuracy())
    kappa = CohenKappa().evaluate(confusion)
    assert kappa / (2 - kappa) == value(GilbertSkill())
    f1 = FBeta(1).evaluate(confusion)
    assert f1 / (2 - f1) == value(Jaccard())
    both = Recall().evaluate(confusion), Specificity().evaluate(confusion)
    assert sum(both) / 2 == value(AM())
    assert math.sqrt(both[0] * both[1]) == value(GMean())


def test_am_and_the_weighted_accuracy_share_their_coefficients_up_to_a_factor():
    """The misprint of Table 3: with w₁ = P, w₂ = 1 − P it must give AM's 2P(1−P)."""
    assert WeightedAccuracy(0.2, 0.8).gamma(0.2) == pytest.approx(AM().gamma(0.2))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.75])
def test_own_coefficients_equal_the_catalogues(p):
    jaccard = LinearFractional(lambda prior: prior, 0, -1, lambda prior: prior, 1, 0)
    in_cells = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(1, 1, 1, 0))
    assert jaccard.coefficients(p) == in_cells.coefficients(p) == Jaccard().coefficients(p)
    assert jaccard.constants(p, 0.5) == Jaccard().constants(p, 0.5)


# Refusals


def test_a_metric_that_increases_is_refused_with_the_corner():
    increasing_in_fp = LinearFractional(0, 1, 0, 1, 0, 0, name="mine")
    with pytest.raises(NotMonotoneError, match=r"mine must not increase in FP.*corner FN = 0 for P = 0\.5"):
        increasing_in_fp.check_monotone(0.5)
    increasing_in_fn = LinearFractional(0, 0, 1, 1, 0, 0)
    with pytest.raises(NotMonotoneError, match=r"must not increase in FN.*corner FP = 0 for P = 0\.25"):
        increasing_in_fn.check_monotone(0.25)


def test_the_other_corner_is_looked_at_too():
    only_where_positives_are_missed = LinearFractional(1, 0.5, -2, 1, 1, 0)
    only_where_positives_are_missed.check_monotone(0.1)
    with pytest.raises(NotMonotoneError, match=r"in FP.*corner FN = (P|0\.5) for P = 0\.5"):
        only_where_positives_are_missed.check_monotone(0.5)
    mirrored = LinearFractional(1, -2, 0.5, 1, 0, 1)
    with pytest.raises(NotMonotoneError, match=r"in FN.*corner FP = (1 − P|0\.5) for P = 0\.5"):
        mirrored.check_monotone(0.5)


def test_a_negative_denominator_is_refused_with_the_corner():
    with pytest.raises(NotMonotoneError, match=r"denominator of mine must .*, got -0\.5 at .*corner.* for P = 0\.5"):
        LinearFractional(1, -3, -1, 1, -3, 0, name="mine").check_monotone(0.5)


def test_tuning_and_constants_refuse_a_metric_that_increases():
    from surecut import tune_threshold

    increasing = LinearFractional(0, 1, 0, 1, 0, 0)
    with pytest.raises(NotMonotoneError, match=r"P = 0\.75.*pass a function of the confusion"):
        tune_threshold([1, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], metric=increasing)
    with pytest.raises(NotMonotoneError, match="must not increase in FP"):
        increasing.constants(0.5, 0.5)


@given(st.tuples(*[st.integers(-4, 4)] * 3), st.tuples(st.integers(5, 9), *[st.integers(-4, 4)] * 2))
def test_monotonicity_is_decided_exactly(a, b):
    """With P = ½: the corners' values, in fractions, increase along an edge exactly where the check raises."""
    none, half = Fraction(0), Fraction(1, 2)

    def value(fp, fn):
        return (a[0] + a[1] * fp + a[2] * fn) / (b[0] + b[1] * fp + b[2] * fn)

    increases = any(
        value(half, other) > value(none, other) or value(other, half) > value(other, none) for other in (none, half)
    )
    metric = LinearFractional(*a, *b)
    if increases:
        with pytest.raises(NotMonotoneError, match="must not increase"):
            metric.check_monotone(0.5)
    else:
        metric.check_monotone(0.5)


@pytest.mark.parametrize("beta", [0, -1, math.inf, math.nan])
def test_beta_is_checked(beta):
    with pytest.raises(ValueError, match=rf"0 < beta < 1e\+100, got {beta}"):
        FBeta(beta)


def test_beta_in_a_name_is_checked():
    with pytest.raises(ValueError, match="0 < beta"):
        get_metric("f0")


@pytest.mark.parametrize("weights", [(-1, 1), (1, -1), (0, 0), (math.nan, 1), (1, math.nan), (math.inf, 1)])
def test_weights_are_checked(weights):
    with pytest.raises(ValueError, match="negative_weight="):
        WeightedAccuracy(*weights)
    with pytest.raises(ValueError, match="alpha="):
        Tversky(*weights)


def test_the_worth_of_cells_is_checked():
    with pytest.raises(ValueError, match="must be finite"):
        Utility(tp=math.nan)
    with pytest.raises(ValueError, match="must be finite"):
        Utility(fn=-math.inf)
    with pytest.raises(NotMonotoneError, match="false positive must not be worth more than a true negative"):
        Utility(fp=1)
    with pytest.raises(NotMonotoneError, match="false negative must not be worth more than a true positive"):
        Utility(fn=1)


def test_a_missing_class_is_refused_where_the_metric_is_undefined():
    for metric in (FBeta(1), Jaccard(), AM(), Recall(), Precision(), CohenKappa(), MCC(), Tversky(1, 2)):
        with pytest.raises(ValueError, match=f"{metric.name} is undefined without rows of the positive class"):
            metric.score([0, 0], [0, 1])
    for metric in (AM(), Specificity(), CohenKappa(), GilbertSkill(), GMean(), HMean()):
        with pytest.raises(ValueError, match=f"{metric.name} is undefined without rows of the negative class"):
            metric.score([1, 1], [0, 1])
    assert Accuracy().score([0, 0], [0, 1]) == 0.5
    assert FBeta(1).score([1, 1], [1, 1]) == 1


# Names


@pytest.mark.parametrize("name", CATALOGUE)
def test_names_lead_to_metrics_that_bear_them(name):
    assert get_metric(name).name == name
    assert get_metric(f" {name.upper()} ") == get_metric(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("balanced_accuracy", AM()),
        ("matthews_corrcoef", MCC()),
        ("g-mean", GMean()),
        ("true positive rate", Recall()),
        ("f1.5", FBeta(1.5)),
        ("f_beta_3", FBeta(3)),
        ("f1", FBeta(1)),
    ],
)
def test_aliases(name, expected):
    assert get_metric(name) == expected


def test_metrics_are_values():
    assert get_metric(FBeta(2)) == FBeta(2)
    assert {FBeta(2), FBeta(2.0), FBeta(1)} == {FBeta(1), FBeta(2)}
    with pytest.raises(AttributeError):
        FBeta(2).beta = 3
    assert str(FBeta(2)) == "f2"


@pytest.mark.parametrize(
    ("typo", "suggestion"), [("jacard", "jaccard"), ("acuracy", "accuracy"), ("balanced_acuracy", "balanced_accuracy")]
)
def test_typos_are_answered_with_a_suggestion(typo, suggestion):
    with pytest.raises(ValueError, match=f"unknown metric '{typo}': did you mean '{suggestion}'"):
        get_metric(typo)


def test_an_unknown_metric_is_answered_with_the_names():
    with pytest.raises(ValueError, match=r"unknown metric 'zzz'. The names are accuracy, f1, .*f<beta>"):
        get_metric("zzz")


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("utility(fp=-2, fn=-100)", Utility(fp=-2, fn=-100)),
        ("utility(0, -2, -1e2)", Utility(fp=-2, fn=-100)),
        (" Tversky( 0.3 , beta = .7 ) ", Tversky(0.3, 0.7)),
        ("weighted accuracy(1, 2)", WeightedAccuracy(1, 2)),
        ("fbeta(1.5)", FBeta(1.5)),
        ("fbeta()", FBeta(1)),
    ],
)
def test_parameters_can_be_written(text, metric):
    assert get_metric(text) == metric


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tversky", r"'tversky' has parameters: write 'tversky\(alpha=…, beta=…\)'"),
        ("utility(fb=-2)", "unexpected keyword argument 'fb'.*parameters are tp, fp, fn, tn"),
        ("utility(fp)", "expected a number or name=number, got 'fp'"),
        ("utility(fp=-1, fp=-2)", "'fp' is given twice"),
        ("utility(fp=2)", "must not be worth more than a true negative"),
        ("tversky(1)", "missing a required argument: 'beta'"),
        ("tversky(alpha=1, 2)", "stands after a parameter with a name"),
        ("tversky(1, 2, 3)", "too many positional arguments"),
        ("jaccard(2)", "those with parameters are fbeta, weighted_accuracy, tversky, utility"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        get_metric(text)


def test_what_is_no_metric_is_refused():
    with pytest.raises(TypeError, match=r"the class FBeta: write FBeta\(\.\.\.\)"):
        get_metric(FBeta)
    with pytest.raises(TypeError, match=r"got 3\.5"):
        get_metric(3.5)


# scikit-learn's names and scorers

DECISION_SCORERS = ["accuracy", "balanced_accuracy", "f1", "jaccard", "matthews_corrcoef", "precision", "recall"]


@pytest.mark.parametrize("name", DECISION_SCORERS)
def test_scorer_names_and_scorers_mean_what_scikit_learn_means(name):
    random = np.random.default_rng(3)
    truth, predicted = random.integers(0, 2, 50), random.integers(0, 2, 50)
    scorer = sklearn.metrics.get_scorer(name)
    expected = scorer._score_func(truth, predicted)
    assert get_metric(name).score(truth, predicted) == pytest.approx(expected)
    assert get_metric(scorer) == get_metric(scorer._score_func) == get_metric(name)


def test_make_scorer_is_unwrapped():
    make = sklearn.metrics.make_scorer
    assert get_metric(make(sklearn.metrics.fbeta_score, beta=2)) == FBeta(2)
    assert get_metric(make(sklearn.metrics.fbeta_score, beta=0.5, zero_division=0)) == FBeta(0.5)
    assert get_metric(make(sklearn.metrics.cohen_kappa_score)) == CohenKappa()


@pytest.mark.parametrize("name", ["roc_auc", "average_precision", "roc_auc_ovr", "neg_log_loss", "neg_brier_score"])
def test_metrics_that_no_cut_changes_are_refused_with_a_reason(name):
    with pytest.raises(ValueError, match=f"'{name}' cannot be tuned by a cut: it judges"):
        get_metric(name)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_scorers_that_no_cut_changes_are_refused_with_a_reason(name):
    with pytest.raises(ValueError, match="judges the ranking of the scores, which no threshold changes"):
        get_metric(sklearn.metrics.get_scorer(name))


@pytest.mark.parametrize(
    ("base", "average"), list(itertools.product(["f1", "precision"], ["macro", "micro", "samples"]))
)
def test_averages_point_to_tune_thresholds(base, average):
    with pytest.raises(ValueError, match=f"metric='{base}', average='{average}', in tune_thresholds"):
        get_metric(f"{base}_{average}")
    with pytest.raises(ValueError, match="tune_thresholds"):
        get_metric(sklearn.metrics.get_scorer(f"{base}_{average}"))


def test_scorers_that_mean_something_else_are_refused():
    make = sklearn.metrics.make_scorer
    for scorer, reason in [
        (make(sklearn.metrics.fbeta_score), "needs a beta"),
        (make(sklearn.metrics.f1_score, pos_label="yes"), "pass pos_label="),
        (make(sklearn.metrics.balanced_accuracy_score, adjusted=True), "adjusted"),
        (make(sklearn.metrics.cohen_kappa_score, weights="linear"), "linear"),
        (make(sklearn.metrics.zero_one_loss, greater_is_better=False), "greater_is_better=False"),
        (make(sklearn.metrics.r2_score), "r2_score is not one that surecut knows"),
        (FBeta(2).as_scorer(), r"pass the metric itself, FBeta\(beta=2\)"),
    ]:
        with pytest.raises(ValueError, match=reason):
            get_metric(scorer)


def test_a_metric_as_a_scorer():
    random = np.random.default_rng(5)
    features = random.normal(size=(80, 2))
    labels = np.where(features[:, 0] + random.normal(size=80) > 0.5, "yes", "no")
    model = LogisticRegression().fit(features, labels)
    expected = sklearn.metrics.fbeta_score(labels, model.predict(features), beta=2, pos_label="yes")
    assert FBeta(2).as_scorer(pos_label="yes")(model, features, labels) == pytest.approx(expected)


# Functions as metrics


def test_a_function_works_on_arrays_or_on_numbers():
    arrays = Confusion(*np.array([[0, 1, 3], [0, 2, 2], [3, 2, 0], [5, 3, 3]]))

    def net_gain(confusion):
        return 3 * confusion.tp - confusion.fp

    def only_numbers(confusion):
        if confusion.tp == 0:
            return 0
        return max(3 * confusion.tp - confusion.fp, 0)

    assert get_metric(net_gain).name == "net_gain"
    assert get_metric(lambda confusion: 1).name == "lambda"
    np.testing.assert_array_equal(get_metric(net_gain).evaluate(arrays), [0, 1, 7])
    np.testing.assert_array_equal(get_metric(only_numbers).evaluate(arrays), [0, 1, 7])
    np.testing.assert_array_equal(get_metric(lambda confusion: 2).evaluate(arrays), [2, 2, 2])


def test_scorers_with_parameters_at_their_defaults_are_unwrapped():
    score, make_scorer = sklearn.metrics.accuracy_score, sklearn.metrics.make_scorer
    assert get_metric(make_scorer(score, normalize=True)) == Accuracy()
    with pytest.raises(ValueError, match="parameters that change the metric"):
        get_metric(make_scorer(score, normalize=False))


@pytest.mark.parametrize("name", ["f1_score", "f1score", "F1 score"])
def test_a_name_may_end_in_score(name):
    assert get_metric(name) == FBeta(1)


@pytest.mark.parametrize("kind", [int, float, np.float64, np.int64, np.int32, np.int16, np.int8, Fraction])
@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
def test_cells_of_a_users_metric_may_be_numbers_of_any_kind(kind, kernels):
    class Gain(LinearFractionalMetric):
        name = "gain"

        def cells(self, positives, negatives):
            return tuple(map(kind, (100, -20, -100, 0))), tuple(map(kind, (1, 1, 1, 1)))

    random = np.random.default_rng(0)
    labels = random.random(2000) < 0.3
    scores = random.random(2000) + labels * random.random(2000)
    with using(kernels=kernels):
        cut = tune_threshold(labels, scores, metric=Gain())
    gains = [
        Fraction(int(100 * (2 * (accepted & labels).sum() - labels.sum()) - 20 * (accepted & ~labels).sum()), 2000)
        for accepted in (scores >= score for score in scores)
    ]
    assert cut.value == float(max(gains))
