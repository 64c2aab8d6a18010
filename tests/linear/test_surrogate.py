"""LinearSurrogate: scikit-learn's contract, its minimisers, every loss, every shape of labels."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_classifier_multioutput, parametrize_with_checks
from threadpoolctl import threadpool_limits

from estimator_checks import BROKEN_CHECKS
from surecut import LinearSurrogate, PlugInClassifier
from surecut.linear.training import DenseDesign, SparseDesign, make_design
from surecut.losses import CATALOGUE, CompositeLoss, Hinge, Logistic, MarginLoss, NoLinkError, get_loss

SMOOTH = sorted(CATALOGUE.keys() - {"hinge"})


def saturating(estimator):
    check = "check_classifiers_multilabel_output_format_predict_proba"
    reason = "it wants 0 < p < 1, but scores beyond the range of the link stand for 0 and 1"
    return BROKEN_CHECKS | ({} if estimator.loss == "logistic" else {check: reason})


@parametrize_with_checks(
    [LinearSurrogate(), LinearSurrogate("squared"), LinearSurrogate("squared_hinge", C=0.1)],
    expected_failed_checks=saturating,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_scikit_learns_check_of_matrices_of_labels():
    check_classifier_multioutput("LinearSurrogate", LinearSurrogate())


# --- Oracles ---------------------------------------------------------------------------------------------------------


def objectives(loss, X, Y, coefficients, intercepts, C=1.0, weights=None):
    """½‖w‖² + C Σ cᵢ ℓ(yᵢ, w·xᵢ + b) for each column of Y, written out."""
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    Y = Y.reshape(len(Y), -1)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    totals = []
    for label, (w, b) in enumerate(zip(coefficients.astype(float), intercepts.astype(float), strict=True)):
        signs = np.where(Y[:, label] > 0, 1, -1)
        totals.append(w @ w / 2 + C * weights @ get_loss(loss).value(signs, X @ w + b))
    return np.array(totals)


def of(model, X, Y, weights=None):
    return objectives(model.loss, X, Y, model.coef_, model.intercept_, model.C, weights)


def by_scipy(loss, X, y, C=1.0, weights=None, fit_intercept=True):
    """The smallest objective that a general minimiser finds from two starts."""
    loss, X = get_loss(loss), X.toarray() if sparse.issparse(X) else X
    signs, weights = np.where(y > 0, 1, -1), np.ones(len(X)) if weights is None else weights

    def objective(point):
        w, b = point[:-1], point[-1] * fit_intercept
        with np.errstate(over="ignore", invalid="ignore"):
            scores = X @ w + b
            slopes = C * weights * loss.gradient(signs, scores)
            value = w @ w / 2 + C * weights @ loss.value(signs, scores)
            return value, np.append(w + X.T @ slopes, slopes.sum() * fit_intercept)

    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    return min(
        optimize.minimize(objective, np.full(X.shape[1] + 1, start), jac=True, method="L-BFGS-B", options=options).fun
        for start in (0.0, 0.01)
    )


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(400, 15, n_classes=9, random_state=0)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    Y[:, 8] = 0
    Y[[3, 5], 8] = 1  # a rare label
    return StandardScaler().fit_transform(X) + np.arange(15), Y


@pytest.fixture(scope="module")
def sparse_data():
    random = np.random.default_rng(1)
    X = sparse.csr_array(sparse.random(300, 80, density=0.05, random_state=random)) * 3
    truth = random.normal(size=(80, 5))
    return sparse.csr_array(X), (X @ truth + random.normal(size=(300, 5)) > 0.8).astype(int)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_logistic_is_logistic_regression(data, sparse_data, kind, C):
    X, Y = data if kind == "dense" else sparse_data
    model = LinearSurrogate(C=C).fit(X, Y)
    peer = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    for label, own in enumerate(of(model, X, Y)):
        peer.fit(X.toarray() if sparse.issparse(X) else X, Y[:, label])
        theirs = objectives("logistic", X, Y[:, label], peer.coef_, peer.intercept_, C)[0]
        assert own == pytest.approx(theirs, rel=1e-6)
        np.testing.assert_allclose(model.decision_function(X)[:, label], peer.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_squared_is_ridge(data, sparse_data, kind, fit_intercept):
    X, Y = data if kind == "dense" else sparse_data
    weights = np.random.default_rng(2).uniform(0, 3, X.shape[0])
    model = LinearSurrogate("squared", C=0.3, fit_intercept=fit_intercept).fit(X, Y, sample_weight=weights)
    solver = "auto" if fit_intercept else "sparse_cg"
    peer = Ridge(alpha=1 / 0.6, fit_intercept=fit_intercept, tol=1e-12, solver=solver)
    peer.fit(X.toarray() if sparse.issparse(X) else X, 2 * Y - 1, sample_weight=weights)
    intercepts = np.broadcast_to(peer.intercept_, len(peer.coef_))
    np.testing.assert_allclose(
        of(model, X, Y, weights), objectives("squared", X, Y, peer.coef_, intercepts, 0.3, weights), rtol=1e-6
    )
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, intercepts, atol=2e-3)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_loss_reaches_its_minimum(data, sparse_data, loss, kind, weighted, fit_intercept):
    X, Y = data if kind == "dense" else sparse_data
    X, Y = X[:120], Y[:120, [0, 4]]
    weights = np.random.default_rng(3).uniform(0.1, 4, 120) if weighted else None
    model = LinearSurrogate(loss, C=0.5, fit_intercept=fit_intercept).fit(X, Y, sample_weight=weights)
    for label, own in enumerate(of(model, X, Y, weights)):
        assert own <= by_scipy(loss, X, Y[:, label], 0.5, weights, fit_intercept) * (1 + 1e-7)
    assert fit_intercept or not model.intercept_.any()


class Tilted(CompositeLoss):
    """The logistic loss of −f, doubled, and moved by 1: its link is not odd, and ψ(½) = −1."""

    name = "tilted"

    def value(self, y, f):
        return 2 * Logistic().value(y, np.asarray(f) + 1)

    def gradient(self, y, f):
        return 2 * Logistic().gradient(y, np.asarray(f) + 1)

    def link(self, p):
        return Logistic().link(p) - 1

    def inverse_link(self, f):
        return Logistic().inverse_link(np.asarray(f) + 1)


class SmoothHinge(MarginLoss):
    """The hinge with a round corner: smooth, but without a link."""

    name = "smooth_hinge"

    def margin_value(self, m):
        return np.where(m < 0, 0.5 - m, np.maximum(0.0, 1 - m) ** 2 / 2)

    def margin_slope(self, m):
        return np.where(m < 0, -1.0, -np.maximum(0.0, 1 - m))

    def link(self, p):
        raise NoLinkError("no link")

    def inverse_link(self, f):
        raise NoLinkError("no link")


def test_a_loss_of_ones_own(data):
    X, Y = data
    model = LinearSurrogate(Tilted()).fit(X, Y)
    plain = LinearSurrogate(C=2.0).fit(X, Y)
    np.testing.assert_allclose(of(model, X, Y), of(plain, X, Y), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-3)
    assert (model.predict(X) == (model.predict_proba(X) > 0.5)).all()
    assert (model.predict(X) != (model.decision_function(X) > 0)).any()
    again = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_loss_without_a_link(data):
    X, Y = data
    Y = np.column_stack((Y[:, :2], np.zeros(len(Y)), np.ones(len(Y)))).astype(int)
    model = LinearSurrogate(SmoothHinge()).fit(X, Y)
    for label in (0, 1):
        assert of(model, X, Y)[label] <= by_scipy(SmoothHinge(), X, Y[:, label]) * (1 + 1e-7)
    assert model.intercept_[2:].tolist() == [-1, 1]
    assert not hasattr(model, "predict_proba")
    assert (model.predict(X) == (model.decision_function(X) > 0)).all()


# --- Losses that cannot train ----------------------------------------------------------------------------------------


class Ramp(Logistic):
    """Bounded, so not convex."""

    def margin_value(self, m):
        return -np.tanh(m)

    def margin_slope(self, m):
        return np.tanh(m) ** 2 - 1


class Wrong(Logistic):
    """A gradient of something else."""

    def margin_slope(self, m):
        return 2 * super().margin_slope(m)


class NoGradient(Tilted):
    gradient = CompositeLoss.gradient


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ("hinge", r"not differentiable \(for y = 1 its slope jumps by 1 near f = 1\)"),
        (Hinge(), "squared_hinge"),
        (Ramp(), "not convex"),
        (Wrong(), "gradient is not the derivative"),
        (NoGradient(), "NoGradient has no gradient: define it to train with this loss"),
    ],
)
def test_losses_that_cannot_train_say_why(data, loss, reason):
    with pytest.raises(ValueError, match=reason):
        LinearSurrogate(loss).fit(*data)


def test_an_unknown_loss_is_told_the_names(data):
    with pytest.raises(ValueError, match="did you mean 'logistic'"):
        LinearSurrogate("logstic").fit(*data)


# --- Labels ----------------------------------------------------------------------------------------------------------


def test_two_classes_of_any_name():
    X, y = make_classification(200, random_state=0)
    named = np.array(["no", "yes"])[y]
    model = LinearSurrogate().fit(X, named)
    assert model.classes_.tolist() == ["no", "yes"]
    assert not model.multilabel_
    assert (model.coef_.shape, model.intercept_.shape, model.n_iter_.shape) == ((1, 20), (1,), (1,))
    scores, probabilities = model.decision_function(X), model.predict_proba(X)
    assert (scores.shape, probabilities.shape) == ((200,), (200, 2))
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    with pytest.warns(DataConversionWarning):
        column = LinearSurrogate().fit(X, named[:, None])
    np.testing.assert_array_equal(column.coef_, model.coef_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_a_matrix_of_labels_in_any_form(data, form):
    X, Y = data
    expected = OneVsRestClassifier(LogisticRegression(tol=1e-10, max_iter=5000)).fit(X, Y)
    model = LinearSurrogate().fit(X, form(Y))
    assert model.multilabel_
    assert model.classes_.tolist() == expected.classes_.tolist()
    assert model.coef_.shape == (9, 15)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=2e-3)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=3e-2)
    predicted = model.predict(X)
    assert sparse.issparse(predicted) == sparse.issparse(form(Y))
    predicted = predicted.toarray() if sparse.issparse(predicted) else predicted
    np.testing.assert_array_equal(predicted, model.decision_function(X) > 0)
    assert predicted.dtype.kind == "i"


def test_explicit_zeros_of_a_sparse_matrix_are_zeros(data):
    X, Y = data
    stored = sparse.csr_array(np.ones_like(Y))
    stored.data = Y.ravel().copy()
    np.testing.assert_array_equal(LinearSurrogate().fit(X, stored).coef_, LinearSurrogate().fit(X, Y).coef_)


@pytest.mark.parametrize("loss", SMOOTH)
def test_labels_of_one_class_have_a_constant_score(data, loss):
    X, Y = data[0], data[1].copy()
    Y[:, 2], Y[:, 5] = 0, 1
    model = LinearSurrogate(loss).fit(X, Y)
    assert not model.coef_[[2, 5]].any()
    limit = 2 * len(X) + 1
    never = {"logistic": -np.log(limit), "exponential": -np.log(limit) / 2}.get(loss, -1.0)
    np.testing.assert_allclose(model.intercept_[[2, 5]], [never, -never])
    assert (model.predict(X)[:, [2, 5]] == [0, 1]).all()
    others = np.delete(np.arange(9), [2, 5])
    np.testing.assert_allclose(
        of(model, X, Y)[others], of(LinearSurrogate(loss).fit(X, Y[:, others]), X, Y[:, others]), rtol=1e-8
    )
    weighted = LinearSurrogate(loss).fit(X, Y, sample_weight=np.full(len(X), 2.0))
    assert weighted.intercept_[5] >= model.intercept_[5]


def test_only_constant_labels(data):
    X, _ = data
    model = LinearSurrogate().fit(X, np.zeros((len(X), 3), dtype=int))
    assert not model.coef_.any()
    assert not model.predict(X).any()


def test_a_label_of_one_class_without_intercept_is_a_problem_like_others(data):
    X, _ = data
    Y = np.zeros((len(X), 2), dtype=int)
    model = LinearSurrogate(fit_intercept=False).fit(X, Y)
    assert of(model, X, Y)[0] <= by_scipy("logistic", X, Y[:, 0], fit_intercept=False) * (1 + 1e-7)


def test_many_labels_are_each_solved_as_if_alone(data):
    X, _ = data
    labels = 2 * DenseDesign.block + 7
    random = np.random.default_rng(5)
    scores = X @ random.normal(size=(15, labels)) + random.normal(size=(len(X), labels))
    Y = (scores > np.quantile(scores, 0.8, axis=0)).astype(int)
    together = LinearSurrogate().fit(X, Y)
    with threadpool_limits(1):
        alone = LinearSurrogate().fit(X, Y)
    np.testing.assert_allclose(of(together, X, Y), of(alone, X, Y), rtol=1e-8)
    for label in (0, DenseDesign.block, labels - 1):
        single = LinearSurrogate().fit(X, Y[:, label])
        assert of(single, X, Y[:, label])[0] == pytest.approx(of(together, X, Y)[label], rel=1e-8)


# --- Features and weights --------------------------------------------------------------------------------------------


def test_weights_are_repetitions_and_zero_is_absence(data):
    X, Y = data
    times = np.random.default_rng(4).integers(0, 4, len(X))
    weighted = LinearSurrogate().fit(X, Y, sample_weight=times)
    repeated = LinearSurrogate().fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


def test_float32_stays_float32(data):
    X, Y = data
    single = LinearSurrogate().fit(X.astype(np.float32), Y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    assert single.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert single.predict_proba(X).dtype == np.float64
    binary = LinearSurrogate().fit(X.astype(np.float32), Y[:, 0])
    probability = binary.predict_proba(X.astype(np.float32))
    assert probability.dtype == np.float32
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(of(single, X, Y), of(LinearSurrogate().fit(X, Y), X, Y), rtol=1e-6)


def test_features_of_very_different_scales():
    X, y = load_breast_cancer(return_X_y=True)
    X = X * np.geomspace(1e-5, 1e5, X.shape[1])
    model = LinearSurrogate(max_iter=20_000).fit(X, y)
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-12, max_iter=5000).fit(X, y)
    theirs = objectives("logistic", X, y, peer.coef_, peer.intercept_)
    assert of(model, X, y)[0] <= theirs[0] * (1 + 1e-6)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_problems_that_are_slow_to_converge(loss, form, fit_intercept):
    random = np.random.default_rng(8)
    X = random.normal(size=(150, 25)) * (random.random((150, 25)) < 0.2) @ np.diag(np.geomspace(1e-2, 1e3, 25))
    y = (np.sign(X) @ random.normal(size=25) + random.normal(size=150) > 0).astype(int)
    model = LinearSurrogate(loss, C=30.0, fit_intercept=fit_intercept).fit(form(X), y)
    closer = LinearSurrogate(loss, C=30.0, fit_intercept=fit_intercept, tol=1e-13).fit(form(X), y)
    assert of(model, X, y)[0] <= of(closer, X, y)[0] * (1 + 1e-7)
    assert of(closer, X, y)[0] <= by_scipy(loss, X, y, 30.0, fit_intercept=fit_intercept) * (1 + 1e-9)


@pytest.mark.parametrize("shape", [(2, 1), (3, 40), (50, 200), (30, 1)])
def test_few_rows_and_many_features(shape):
    random = np.random.default_rng(6)
    X = random.normal(size=shape)
    y = np.arange(shape[0]) % 2
    for form, loss in itertools.product((np.asarray, sparse.csr_array), SMOOTH):
        model = LinearSurrogate(loss).fit(form(X), y)
        assert of(model, X, y)[0] <= by_scipy(loss, X, y) * (1 + 1e-7)


def test_features_that_say_nothing():
    random = np.random.default_rng(7)
    X = np.column_stack((np.zeros(90), np.full(90, 7.0), *[random.normal(size=90)] * 3))
    y = random.integers(0, 2, 90)
    model = LinearSurrogate().fit(X, y)
    np.testing.assert_allclose(model.coef_[0, :2], 0, atol=1e-12)
    np.testing.assert_allclose(model.coef_[0, 2:], model.coef_[0, 2], rtol=1e-6)
    nothing = LinearSurrogate().fit(np.zeros((90, 2)), y)
    np.testing.assert_allclose(nothing.intercept_, np.log(y.mean() / (1 - y.mean())))


def test_separable_classes_and_the_exponential_loss():
    X = np.linspace(-1000, 1000, 60)[:, None]
    y = (X[:, 0] > 0).astype(int)
    for loss in SMOOTH:
        model = LinearSurrogate(loss, C=1e4).fit(X, y)
        assert model.score(X, y) == 1
        assert np.isfinite(model.coef_).all()


def test_the_coordinates_suit_the_features(data):
    X, _ = data
    weights = np.ones(len(X))
    rotated = make_design(X, weights, fit_intercept=True, labels=9)
    assert isinstance(rotated, DenseDesign)
    np.testing.assert_allclose(rotated.adjoint(rotated.scores(np.eye(16))), np.diag(rotated.squares), atol=1e-9)
    wide = make_design(np.random.default_rng(0).normal(size=(3, 50)), np.ones(3), fit_intercept=True, labels=1)
    assert np.count_nonzero(wide.adjoint(wide.scores(np.eye(51)))) > 51
    assert isinstance(make_design(sparse.csr_array(X), weights, fit_intercept=True, labels=9), DenseDesign)
    thin = sparse.csr_array(sparse.random(50, 40, density=0.1, random_state=np.random.default_rng(0)))
    assert isinstance(make_design(thin, np.ones(50), fit_intercept=False, labels=9), SparseDesign)


def test_squares_that_overflow_are_refused(data):
    X, Y = data[0].copy(), data[1]
    X[0, 0] = 1e300
    with pytest.raises(ValueError, match="overflow: scale them"), np.errstate(over="ignore"):
        LinearSurrogate().fit(X, Y)


# --- Messages --------------------------------------------------------------------------------------------------------


def test_too_few_steps_warn_and_say_what_to_do(data):
    X, Y = data
    with pytest.warns(
        ConvergenceWarning, match=r"of 9 labels \(the first at position \d\).*StandardScaler.*max_iter=2"
    ):
        LinearSurrogate(max_iter=2).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="before it had converged"):
        LinearSurrogate(max_iter=1).fit(X, Y[:, 0])


def test_a_tolerance_beyond_rounding_ends(data):
    X, Y = data
    model = LinearSurrogate(tol=1e-300).fit(X, Y)
    assert of(model, X, Y) == pytest.approx(of(LinearSurrogate().fit(X, Y), X, Y), rel=1e-7)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be a positive finite number, got 0"),
        ({"C": np.inf}, "C must be a positive finite number, got inf"),
        ({"tol": -1.0}, "tol must be a positive finite number"),
        ({"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        ({"max_iter": 1.5}, "max_iter must be a positive integer, got 1.5"),
    ],
)
def test_parameters_are_checked(data, parameters, message):
    with pytest.raises(ValueError, match=message):
        LinearSurrogate(**parameters).fit(*data)


def test_labels_are_checked(data):
    X, Y = data
    with pytest.raises(ValueError, match=r"column of zeros and ones for each label, got values such as \['-1', '1'\]"):
        LinearSurrogate().fit(X, 2 * Y - 1)
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        LinearSurrogate().fit(X, sparse.csr_array(2 * Y))
    with pytest.raises(ValueError, match=r"multiclass.*OneVsRestClassifier\(LinearSurrogate\(\)\)"):
        LinearSurrogate().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="rows of two classes"):
        LinearSurrogate().fit(X, Y[:, 0], sample_weight=Y[:, 0])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        LinearSurrogate().fit(X, sparse.csr_array((len(X), 0), dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        LinearSurrogate().fit(np.where(X == X[0, 0], np.nan, X), Y)


# --- In company ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", SMOOTH)
def test_as_the_first_of_the_two_steps(loss):
    X, y = make_classification(400, weights=[0.8], random_state=0)
    classifier = PlugInClassifier(LinearSurrogate(loss), metric="f1", cv=1 / 3, random_state=0).fit(X, y)
    assert classifier.best_score_ > 0.5
    assert np.ptp(classifier.predict_proba(X)[:, 1]) > 0


def test_several_classes_by_one_against_the_rest():
    X, y = make_classification(300, n_classes=3, n_informative=6, random_state=0)
    assert OneVsRestClassifier(LinearSurrogate()).fit(X, y).score(X, y) > 0.6
