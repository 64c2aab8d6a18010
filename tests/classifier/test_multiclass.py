"""PlugInClassifier on three and more classes: the rule of `tune_top_k` on rows that the model was not trained on."""

from __future__ import annotations

import copy
import io
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from surecut import Cut, LinearSurrogate, PlugInClassifier, TopK, certify, tune_top_k
from surecut.plots import MetricThresholdDisplay

NAMES = np.array(["common", "rare", "scarce", "usual"])


@pytest.fixture(scope="module")
def data():
    """Four classes, of which two are rare."""
    return make_classification(
        450, 8, n_informative=5, n_classes=4, weights=[0.6, 0.07, 0.05], class_sep=0.8, flip_y=0.02, random_state=0
    )


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


def same(rule, expected):
    """Whether two rules predict the same, and are worth the same."""
    assert (rule.labels, rule.average, rule.metric) == (expected.labels, expected.average, expected.metric)
    assert (rule.value, rule.baseline.value) == (expected.value, expected.baseline.value)
    np.testing.assert_array_equal(rule.a, expected.a)
    np.testing.assert_array_equal(rule.offsets, expected.offsets)
    np.testing.assert_array_equal(rule.matrix, expected.matrix)
    return True


class Recorder(ClassifierMixin, BaseEstimator):
    """Scores are the first features; remembers what its fit was given."""

    def fit(self, X, y, sample_weight=None, colour=None):
        self.classes_ = np.unique(y)
        self.weight_, self.colour_ = sample_weight, colour
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, : len(self.classes_)]


class TestTheTwoSteps:
    @pytest.mark.parametrize(
        "metric", ["f1", "f2", "jaccard", "accuracy", "balanced_accuracy", "gmean", "kappa", "mcc"]
    )
    def test_folds_pool_out_of_fold_scores_and_refit(self, data, metric):
        X, y = data
        classifier = PlugInClassifier(LogisticRegression(), metric=metric).fit(X, y)
        scores = cross_val_predict(LogisticRegression(), X, y, cv=StratifiedKFold(5), method="predict_proba")
        order = np.concatenate([tune for _, tune in StratifiedKFold(5).split(X, y)])
        expected = tune_top_k(y[order], scores[order], k=1, metric=metric)
        assert isinstance(classifier.top_k_, TopK)
        assert same(classifier.top_k_, expected)
        assert classifier.top_k_.out_of_fold
        assert classifier.best_score_ == expected.value >= expected.baseline.value
        refitted = LogisticRegression().fit(X, y)
        np.testing.assert_array_equal(classifier.predict_proba(X), refitted.predict_proba(X))
        np.testing.assert_array_equal(classifier.predict_log_proba(X), refitted.predict_log_proba(X))
        np.testing.assert_array_equal(classifier.predict(X), expected.predict(refitted.predict_proba(X)))

    def test_a_share_trains_on_the_rest_and_does_not_refit(self, data):
        X, y = data
        classifier = PlugInClassifier(LogisticRegression(), cv=1 / 3, random_state=3).fit(X, y)
        ((train, tune),) = StratifiedShuffleSplit(1, test_size=1 / 3, random_state=3).split(X, y)
        alone = LogisticRegression().fit(X[train], y[train])
        assert same(classifier.top_k_, tune_top_k(y[tune], alone.predict_proba(X[tune]), k=1))
        assert not classifier.top_k_.out_of_fold
        np.testing.assert_array_equal(classifier.predict_proba(X), alone.predict_proba(X))

    @pytest.mark.parametrize("wrap", [lambda model: (model, "prefit"), lambda model: (FrozenEstimator(model), 5)])
    def test_a_fitted_model_is_only_tuned(self, data, model, wrap):
        X, y = data
        estimator, cv = wrap(model)
        classifier = PlugInClassifier(estimator, metric="balanced_accuracy", cv=cv).fit(X, y)
        assert same(classifier.top_k_, tune_top_k(y, model.predict_proba(X), k=1, metric="balanced_accuracy"))
        assert not classifier.top_k_.out_of_fold

    @pytest.mark.parametrize("average", ["macro", "weighted", "micro", "multiclass"])
    def test_averages(self, data, model, average):
        X, y = data
        metric = "kappa" if average == "multiclass" else "f1"
        classifier = PlugInClassifier(model, metric=metric, average=average, cv="prefit").fit(X, y)
        assert same(classifier.top_k_, tune_top_k(y, model.predict_proba(X), k=1, metric=metric, average=average))
        assert classifier.top_k_.average == average

    @pytest.mark.parametrize("options", [{"stable": True}, {"shrinkage": "auto"}, {"shrinkage": 20.0}], ids=str)
    def test_stable_and_shrunken_rules(self, data, model, options):
        X, y = data
        classifier = PlugInClassifier(model, cv="prefit", **options).fit(X, y)
        assert same(classifier.top_k_, tune_top_k(y, model.predict_proba(X), k=1, **options))
        assert classifier.top_k_.stable == ("stable" in options)
        assert classifier.top_k_.calibration is not None
        np.testing.assert_array_equal(classifier.predict(X), classifier.top_k_.predict(model.predict_proba(X)))

    def test_tuning_is_worth_it_on_new_rows(self):
        X, y = make_classification(
            6000, 8, n_informative=5, n_classes=4, weights=[0.7, 0.06, 0.04], class_sep=0.7, random_state=1
        )
        classifier = PlugInClassifier(LogisticRegression()).fit(X[:3000], y[:3000])
        tuned = f1_score(y[3000:], classifier.predict(X[3000:]), average="macro")
        plain = f1_score(y[3000:], classifier.estimator_.predict(X[3000:]), average="macro")
        assert tuned > plain + 0.05

    def test_digits(self):
        X, y = load_digits(return_X_y=True)
        classifier = PlugInClassifier(GaussianNB(), metric="balanced_accuracy", cv=3).fit(X[:1200], y[:1200])
        tuned, plain = (
            balanced_accuracy_score(y[1200:], one.predict(X[1200:])) for one in (classifier, classifier.estimator_)
        )
        assert classifier.top_k_.matrix.sum() == 1200
        assert tuned > plain


MODELS = {
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "ridge": RidgeClassifier(),
    "svm": SVC(),
    "linear svm": LinearSVC(),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(20, random_state=0),
    "neighbours": KNeighborsClassifier(),
    "one against the rest": OneVsRestClassifier(LogisticRegression()),
    "surrogate": OneVsRestClassifier(LinearSurrogate()),
}


@pytest.mark.parametrize("estimator", MODELS.values(), ids=MODELS)
def test_any_estimator_with_scores_of_either_kind(data, estimator):
    X, y = data
    classifier = PlugInClassifier(estimator, cv=3, stable=not isinstance(estimator, RidgeClassifier | SVC)).fit(
        X, NAMES[y]
    )
    predicted = classifier.predict(X)
    decision = classifier.decision_function(X)
    assert decision.shape == (450, 4)
    np.testing.assert_array_equal(classifier.classes_, NAMES)
    np.testing.assert_array_equal(NAMES[decision.argmax(axis=1)], predicted)
    assert predicted.dtype == NAMES.dtype
    assert hasattr(classifier, "predict_proba") == hasattr(estimator, "predict_proba")
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    scores = getattr(classifier.estimator_, method)(X)
    np.testing.assert_array_equal(predicted, classifier.top_k_.predict(scores))


def test_the_method_that_gives_scores_can_be_chosen(data):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), cv=3, response_method="decision_function").fit(X, y)
    np.testing.assert_array_equal(
        classifier.predict(X), classifier.top_k_.predict(classifier.estimator_.decision_function(X))
    )
    assert not np.array_equal(
        classifier.decision_function(X), PlugInClassifier(LogisticRegression(), cv=3).fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_scores_of_pairs_of_classes_are_refused(data, classes):
    X, y = data
    machine = make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))
    kept = y < classes
    if classes == 2:
        assert isinstance(PlugInClassifier(machine).fit(X[kept], y[kept]).cut_, Cut)
        return
    for estimator in (machine, GridSearchCV(machine, {"svc__C": [1.0]}, cv=2)):
        with pytest.raises(ValueError, match="a score for each pair of classes: set decision_function_shape='ovr'"):
            PlugInClassifier(estimator, cv=3).fit(X[kept], y[kept])


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64, object, "U8"])
def test_labels_of_any_type_come_back_as_they_were(data, dtype):
    X, y = data
    target = (NAMES[y] if dtype in (object, "U8") else y + 3).astype(dtype)
    classifier = PlugInClassifier(LogisticRegression(), cv=3, stable=True).fit(X, target)
    assert classifier.predict(X).dtype == classifier.estimator_.predict(X).dtype
    assert set(classifier.predict(X)) <= set(target)
    plain = PlugInClassifier(LogisticRegression(), cv=3, stable=True).fit(X, y).top_k_
    assert classifier.top_k_.labels == tuple(np.unique(target).tolist())
    assert same(classifier.top_k_, replace(plain, labels=classifier.top_k_.labels))


class TestClassesThatAreMissing:
    @pytest.fixture
    def rare(self, data):
        """The last class stands in one fold only."""
        X, y = data
        y = np.where(y == 3, 0, y)
        y[:3] = 3
        return X, y

    @pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
    def test_in_a_fold_they_are_never_predicted(self, rare, method):
        X, y = rare
        classifier = PlugInClassifier(LogisticRegression(), cv=KFold(3), response_method=method).fit(X, y)
        absent = 0.0 if method == "predict_proba" else -np.inf
        scores = np.full((len(y), 4), absent)
        for train, tune in KFold(3).split(X):
            model = LogisticRegression().fit(X[train], y[train])
            scores[np.ix_(tune, model.classes_)] = getattr(model, method)(X[tune])
        assert (scores[:150, 3] == absent).all()
        assert same(classifier.top_k_, tune_top_k(y, scores, k=1))
        assert classifier.top_k_.matrix[3].sum() == 3
        assert classifier.decision_function(X).shape == (450, 4)

    def test_a_fold_of_two_classes(self):
        """Its model has one column of scores for two of three classes."""
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], [40, 40, 8])
        X = rng.normal(size=(88, 3)) + 2 * np.eye(3)[y]
        order = np.arange(88)
        splits = [(order[:80], order[80:]), (order[8:], order[:8])]
        classifier = PlugInClassifier(LinearSVC(), cv=splits).fit(X, y)
        margin = LinearSVC().fit(X[:80], y[:80]).decision_function(X[80:])
        np.testing.assert_array_equal(
            classifier._validation.scores[:8], np.column_stack((-margin, margin, np.full(8, -np.inf)))
        )
        assert classifier.top_k_.matrix[2, 2] == 0

    def test_from_the_model_that_predicts_they_are_an_error(self, rare):
        X, y = rare
        split = [(np.arange(3, 450), np.arange(3))]
        with pytest.raises(ValueError, match=r"knows the classes 0, 1, 2, but y also holds 3"):
            PlugInClassifier(LogisticRegression(), cv=split).fit(X, y)
        with pytest.raises(ValueError, match=r"the model knows the classes 0, 1, but y also holds 2, 3"):
            PlugInClassifier(LogisticRegression().fit(X[y < 2], y[y < 2]), cv="prefit").fit(X, y)

    def test_from_the_rows_that_tune_a_fitted_model_they_are_none(self, data, model):
        X, y = data
        for kept in (y != 1, y < 2):
            classifier = PlugInClassifier(model, cv="prefit").fit(X[kept], y[kept])
            assert classifier.top_k_.labels == (0, 1, 2, 3)
            assert same(classifier.top_k_, tune_top_k(y[kept], model.predict_proba(X[kept]), k=1, classes=range(4)))

    def test_from_the_rows_that_are_held_out(self, rare):
        X, y = rare
        order = np.arange(3, 450)
        classifier = PlugInClassifier(LogisticRegression(), cv=[(np.r_[:3, order[::2]], order[1::2])]).fit(X, y)
        assert classifier.top_k_.matrix[3].sum() == 0


class TestWeightsAndRouting:
    def test_weights_reach_both_steps(self, data, model):
        X, y = data
        weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
        tuned = PlugInClassifier(model, cv="prefit").fit(X, y, sample_weight=weights)
        assert same(tuned.top_k_, tune_top_k(y, model.predict_proba(X), k=1, sample_weight=weights))
        trained = PlugInClassifier(Recorder()).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(trained.estimator_.weight_, weights)
        assert trained.top_k_.weighted

    @pytest.mark.parametrize("metric", ["f1", "balanced_accuracy"])
    def test_a_weight_of_two_is_the_row_twice(self, data, model, metric):
        X, y = data
        weights = np.random.default_rng(0).integers(0, 3, len(y))
        twice = np.repeat(np.arange(len(y)), weights)
        weighted = PlugInClassifier(model, metric=metric, cv="prefit").fit(X, y, sample_weight=weights)
        expected = PlugInClassifier(model, metric=metric, cv="prefit").fit(X[twice], y[twice])
        np.testing.assert_array_equal(weighted.top_k_.baseline.matrix, expected.top_k_.baseline.matrix)
        assert weighted.best_score_ == pytest.approx(expected.best_score_, abs=0.01)  # searches may end elsewhere

    def test_so_it_is_in_both_steps(self, data):
        X, y = data
        weights = np.random.default_rng(0).integers(0, 3, len(y))
        fold = np.arange(len(y)) % 3
        twice = np.repeat(np.arange(len(y)), weights)
        splits, repeated = (
            [(np.flatnonzero(of_rows != one), np.flatnonzero(of_rows == one)) for one in range(3)]
            for of_rows in (fold, fold[twice])
        )
        weighted = PlugInClassifier(GaussianNB(), cv=splits).fit(X, y, sample_weight=weights)
        expected = PlugInClassifier(GaussianNB(), cv=repeated).fit(X[twice], y[twice])
        np.testing.assert_allclose(weighted.predict_proba(X), expected.predict_proba(X), rtol=1e-6)
        np.testing.assert_allclose(weighted.top_k_.baseline.matrix, expected.top_k_.baseline.matrix)
        assert weighted.best_score_ == pytest.approx(expected.best_score_, abs=0.01)  # scores differ in the last digits

    def test_a_pipeline_gets_weights_at_its_last_step(self, data):
        X, y = data
        weights = np.random.default_rng(0).random(len(y))
        classifier = PlugInClassifier(make_pipeline(StandardScaler(), Recorder())).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(classifier.estimator_[-1].weight_, weights)

    def test_groups_and_parameters_by_metadata_routing(self, data):
        X, y = data
        groups = np.arange(len(y)) % 30
        with sklearn.config_context(enable_metadata_routing=True):
            inner = Recorder().set_fit_request(colour=True)
            classifier = PlugInClassifier(inner, cv=GroupKFold(3)).fit(X, y, groups=groups, colour="red")
        assert classifier.estimator_.colour_ == "red"
        splits = list(GroupKFold(3).split(X, y, groups))
        assert same(classifier.top_k_, PlugInClassifier(Recorder(), cv=splits).fit(X, y).top_k_)


class TestRetarget:
    @pytest.mark.parametrize(
        ("metric", "options"),
        [("f2", {}), ("mcc", {"cv": 1 / 3}), ("gmean", {"stable": True}), ("jaccard", {"shrinkage": 10.0})],
        ids=str,
    )
    def test_gives_what_a_new_fit_gives(self, data, metric, options):
        X, y = data
        fitted = PlugInClassifier(LogisticRegression(), **options).fit(X, y)
        before = fitted.top_k_
        again = PlugInClassifier(LogisticRegression(), metric=metric, **options).fit(X, y)
        other = fitted.retarget(metric)
        assert same(other.top_k_, again.top_k_)
        assert (other.metric, other.best_score_) == (metric, again.best_score_)
        assert other.top_k_.out_of_fold == again.top_k_.out_of_fold == ("cv" not in options)
        assert other.top_k_.sample.seen == again.top_k_.sample.seen
        np.testing.assert_array_equal(other.predict(X), again.predict(X))
        assert fitted.top_k_ is before

    def test_the_average_stays_unless_another_is_given(self, data, model):
        X, y = data
        fitted = PlugInClassifier(model, average="weighted", cv="prefit").fit(X, y)
        assert fitted.retarget("jaccard").top_k_.average == "weighted"
        other = fitted.retarget("jaccard", average="micro")
        assert (other.average, other.top_k_.average, fitted.average) == ("micro", "micro", "weighted")

    def test_arrays_that_change_afterwards_do_not_matter(self, data):
        X, y = data[0].copy(), data[1].copy()
        weights = np.random.default_rng(0).random(len(y))
        fitted = PlugInClassifier(Recorder().fit(X, y), cv="prefit").fit(X, y, sample_weight=weights)
        expected = fitted.retarget("f2").top_k_
        for array in (X, y, weights):
            array[:] = 0
        assert same(fitted.retarget("f2").top_k_, expected)

    def test_what_cannot_be_asked_for_is_told(self, data, model):
        X, y = data
        fitted = PlugInClassifier(model, cv="prefit").fit(X, y)
        with pytest.raises(ValueError, match="unknown metric"):
            fitted.retarget("f_one")
        with pytest.raises(ValueError, match="average= must be one of"):
            fitted.retarget("f1", average="samples")
        with pytest.raises(ValueError, match="give one of them"):
            fitted.retarget()
        with pytest.raises(ValueError, match="give one of them"):
            fitted.retarget("f1", reject_cost=0.1)
        with pytest.raises(NotFittedError):
            clone(fitted).retarget("f2")


COSTS = np.array([[0, 1, 4, 2], [5, 0, 1, 2], [9, 1, 0, 2], [1, 1, 1, 0]])


class TestCosts:
    @pytest.mark.parametrize("stable", [False, True])
    def test_the_rule_is_that_of_the_scores(self, data, model, stable):
        X, y = data
        classifier = PlugInClassifier(model, costs=COSTS, cv="prefit", stable=stable).fit(X, y)
        expected = tune_top_k(y, model.predict_proba(X), k=1, costs=COSTS, stable=stable)
        assert classifier.best_score_ == expected.value >= expected.baseline.value
        np.testing.assert_array_equal(classifier.top_k_.cost_gains, expected.cost_gains)
        np.testing.assert_array_equal(classifier.predict(X), expected.predict(model.predict_proba(X)))
        np.testing.assert_array_equal(classifier.decision_function(X).argmax(axis=1), classifier.predict(X))
        assert -COSTS[y, classifier.predict(X)].mean() == pytest.approx(classifier.best_score_)

    @pytest.mark.parametrize("named", [False, True])
    def test_nothing_is_predicted_where_that_costs_least(self, data, named):
        X, y = data
        target = NAMES[y] if named else y
        classifier = PlugInClassifier(LogisticRegression(), reject_cost=0.25, cv=3).fit(X, target)
        predicted = classifier.predict(X)
        assert set(predicted) <= {*target, "reject" if named else -1}
        rejected = predicted == ("reject" if named else -1)
        assert 0 < rejected.mean() < 1
        largest = classifier.predict_proba(X).max(axis=1)
        assert largest[rejected].mean() < largest[~rejected].mean()
        assert classifier.decision_function(X).shape == (450, 5)
        assert classifier.top_k_.matrix.shape == (4, 5)

    def test_actions_that_are_no_classes(self, data):
        X, y = data
        costs = {"leave": [0, 5, 5, 0], "treat": [1, 0, 0, 1]}
        predicted = PlugInClassifier(LogisticRegression(), costs=costs, cv=3).fit(X, y).predict(X)
        assert set(predicted) == {"leave", "treat"}
        assert np.isin(y, [1, 2])[predicted == "treat"].mean() > np.isin(y, [1, 2])[predicted == "leave"].mean()

    def test_two_classes_with_costs_have_a_rule_too(self, data):
        X, y = data[0], (data[1] > 0).astype(int)
        classifier = PlugInClassifier(LogisticRegression(), costs=[[0, 1], [4, 0]], cv=3).fit(X, y)
        decision = classifier.decision_function(X)
        assert decision.shape == (450,)
        np.testing.assert_array_equal(decision > 0, classifier.predict(X) == 1)
        assert classifier.predict(X).mean() > classifier.estimator_.predict(X).mean()
        with pytest.raises(ValueError, match="set costs=None, reject_cost=None and fit again"):
            classifier.retarget("f1")
        rejecting = PlugInClassifier(LogisticRegression(), reject_cost=0.1, cv=3).fit(X, y)
        assert rejecting.decision_function(X).shape == (450, 3)
        assert -1 in set(rejecting.predict(X)) < {-1, 0, 1, 2}

    def test_retarget_to_costs_and_back(self, data, model):
        X, y = data
        fitted = PlugInClassifier(model, metric="f2", average="weighted", cv="prefit").fit(X, y)
        costly = fitted.retarget(costs=COSTS, reject_cost=0.5)
        again = PlugInClassifier(model, costs=COSTS, reject_cost=0.5, cv="prefit").fit(X, y)
        np.testing.assert_array_equal(costly.predict(X), again.predict(X))
        assert costly.get_params()["metric"] == "f1"
        back = costly.retarget("f2", average="weighted")
        assert same(back.top_k_, fitted.top_k_)
        assert (back.costs, back.reject_cost) == (None, None)
        assert (back.metric, back.average) == ("f2", "weighted")

    def test_in_a_search(self, data):
        X, y = data
        search = GridSearchCV(
            PlugInClassifier(LogisticRegression(), reject_cost=0.3, cv=3), {"estimator__C": [0.01, 1.0]}, cv=2
        ).fit(X, y)
        assert 0 < search.best_score_ < 1

    def test_costs_that_are_none_are_told_before_training(self, data):
        with pytest.raises(ValueError, match="4 × 4"):
            PlugInClassifier(Untrained(), costs=np.eye(3)).fit(*data)
        with pytest.raises(ValueError, match="leave metric and average out"):
            PlugInClassifier(Untrained(), costs=COSTS, metric="f2").fit(*data)
        with pytest.raises(ValueError, match="shrinkage= has no meaning"):
            PlugInClassifier(Untrained(), costs=COSTS, shrinkage=3).fit(*data)
        with pytest.raises(ValueError, match="y has a column per label"):
            PlugInClassifier(Untrained(), reject_cost=0.1).fit(data[0], np.eye(4)[data[1]])
        with pytest.raises(ValueError, match="a cut has no costs"):
            PlugInClassifier(LogisticRegression()).fit(data[0], data[1] > 0).retarget(reject_cost=0.1)


class Untrained(ClassifierMixin, BaseEstimator):
    """An estimator that must not be reached."""

    def fit(self, X, y):
        raise AssertionError("what is asked for is validated before anything is trained")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "precision>=0.5"}, r"conditions are on one threshold.*fit\(X, y == c\)"),
        ({"confidence": 0.9, "cv": 1 / 3}, r"certify\(model.top_k_, y, scores\)"),
        ({"weights": "counts"}, "pass it to certify"),
        ({"prior": 0.1}, "sample_weight"),
        ({"pos_label": 1}, "which of two classes"),
        ({"zero_division": 1.0}, "zero_division=1.0 is for average='samples'"),
        ({"average": "samples"}, "average= must be one of macro, micro, weighted, multiclass"),
        ({"average": "multiclass"}, "average='multiclass' has the metrics"),
        ({"metric": "f_one"}, "unknown metric"),
        ({"metric": "roc_auc"}, "ranking"),
        (
            {"metric": "f1_macro"},
            "written metric='f1', average='macro', in tune_thresholds, tune_top_k and PlugInClass",
        ),
        ({"metric": "f1_weighted"}, "average='weighted', in tune_top_k and PlugInClassifier; for one label pass 'f1'"),
        ({"stable": True, "shrinkage": 3.0}, "leave shrinkage=0"),
        ({"stable": "yes"}, "stable= must be True or False"),
        ({"shrinkage": -1.0}, "shrinkage= must"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_told_before_training(data, options, message):
    with pytest.raises(ValueError, match=message):
        PlugInClassifier(Untrained(), **options).fit(*data)


def test_a_list_of_metrics_is_refused(data):
    with pytest.raises(TypeError, match="expected a metric"):
        PlugInClassifier(Untrained(), metric=["f1", "f2"]).fit(*data)


def test_scores_that_are_no_column_per_class_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match=r"decision_function gives scores of shape \(450, 2\), but it knows 4 classes"):
        PlugInClassifier(Recorder().fit(X, y), cv="prefit").fit(X[:, :2], y)


class Unsorted(LogisticRegression):
    """A model that lists its classes from the last to the first."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_, self.coef_, self.intercept_ = self.classes_[::-1], self.coef_[::-1], self.intercept_[::-1]
        return self


def test_the_order_of_the_classes_is_that_of_the_columns(data):
    X, y = data
    with pytest.raises(ValueError, match=r"classes_ of Unsorted must be sorted, got \[3, 2, 1, 0\]"):
        PlugInClassifier(Unsorted()).fit(X, y)
    unsorted = PlugInClassifier(Unsorted().fit(X, y), cv="prefit").fit(X, y)
    usual = PlugInClassifier(LogisticRegression().fit(X, y), cv="prefit").fit(X, y)
    assert unsorted.top_k_.labels == (3, 2, 1, 0)
    np.testing.assert_allclose(unsorted.top_k_.baseline.matrix[::-1, ::-1], usual.top_k_.baseline.matrix)
    assert unsorted.best_score_ == pytest.approx(usual.best_score_, abs=0.02)


class TestAttributes:
    def test_a_rule_of_classes_has_no_threshold_and_says_so(self, data, model):
        classifier = PlugInClassifier(model, cv="prefit").fit(*data)
        for name in ("cut_", "best_threshold_", "thresholds_", "hull_"):
            assert not hasattr(classifier, name)
            with pytest.raises(AttributeError, match=f"a rule of 4 classes has no {name}: it is top_k_"):
                getattr(classifier, name)
        assert not hasattr(classifier, "certificate_")
        with pytest.raises(AttributeError, match=r"call certify\(classifier.top_k_, y, scores\) on held-out rows"):
            classifier.certificate_  # noqa: B018  # raises

    def test_certify_names_the_rule_of_a_classifier(self, data, model):
        X, y = data
        classifier = PlugInClassifier(model, cv="prefit").fit(X, y)
        with pytest.raises(
            TypeError, match=r"got PlugInClassifier: pass classifier\.top_k_ and scores of held-out rows"
        ):
            certify(classifier, y, X)
        two = PlugInClassifier(LogisticRegression()).fit(X, y > 0)
        with pytest.raises(TypeError, match=r"got PlugInClassifier: pass classifier\.cut_ and scores of held-out rows"):
            certify(two, y > 0, X)

    def test_a_cut_is_no_rule_of_classes_and_says_so(self, data):
        classifier = PlugInClassifier(LogisticRegression()).fit(data[0], data[1] > 0)
        with pytest.raises(AttributeError, match="this classifier has cut_"):
            classifier.top_k_  # noqa: B018  # raises
        with pytest.raises(AttributeError, match="no attribute 'colour'"):
            classifier.colour  # noqa: B018  # raises
        with pytest.raises(AttributeError, match="predict_log_proba"):
            PlugInClassifier(LinearSVC()).predict_log_proba  # noqa: B018  # raises

    def test_before_fitting_there_is_nothing(self):
        classifier = PlugInClassifier(LogisticRegression())
        assert not any(hasattr(classifier, name) for name in ("top_k_", "cut_", "hull_", "best_score_"))
        for method in (classifier.predict, classifier.decision_function, classifier.predict_proba):
            with pytest.raises(NotFittedError):
                method(np.zeros((2, 2)))

    def test_after_a_fit_that_failed_there_is_nothing(self, data):
        X, y = data
        classifier = PlugInClassifier(Recorder())
        with pytest.raises(ValueError, match="but it knows 4 classes"):
            classifier.fit(X[:, :2], y)
        with pytest.raises(NotFittedError):
            classifier.predict(X)

    def test_a_second_fit_forgets_the_first_target(self, data):
        X, y = data
        classifier = PlugInClassifier(LogisticRegression(), cv=3)
        for target, has_rule in ((y, True), (y > 0, False), (y, True)):
            classifier.fit(X, target)
            assert hasattr(classifier, "top_k_") == has_rule
            assert hasattr(classifier, "cut_") == hasattr(classifier, "hull_") != has_rule
            assert hasattr(classifier, "best_threshold_") != has_rule
            assert len(np.unique(classifier.predict(X))) == (4 if has_rule else 2)

    @pytest.mark.parametrize(
        ("estimator", "expected"), [(LogisticRegression(), True), (LinearSurrogate(), False), (RidgeClassifier(), True)]
    )
    def test_the_tag_is_that_of_the_estimator(self, estimator, expected):
        assert get_tags(PlugInClassifier(estimator)).classifier_tags.multi_class == expected

    def test_an_estimator_of_two_classes_says_what_to_do(self, data):
        with pytest.raises(ValueError, match=r"OneVsRestClassifier\(LinearSurrogate\(\)\)"):
            PlugInClassifier(LinearSurrogate()).fit(*data)


@pytest.mark.parametrize("way", ["pickle", "joblib", "copy", "deepcopy"])
def test_copies_predict_and_retarget_alike(data, way):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), cv=3, stable=True).fit(X, NAMES[y])
    if way == "joblib":
        held = io.BytesIO()
        joblib.dump(classifier, held)
        held.seek(0)
        again = joblib.load(held)
    else:
        made = {"pickle": lambda one: pickle.loads(pickle.dumps(one)), "copy": copy.copy, "deepcopy": copy.deepcopy}
        again = made[way](classifier)
    np.testing.assert_array_equal(again.predict(X), classifier.predict(X))
    assert same(again.retarget("mcc").top_k_, classifier.retarget("mcc").top_k_)
    assert not hasattr(clone(again), "top_k_")


def test_feature_names_repr_and_html(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    classifier = PlugInClassifier(make_pipeline(StandardScaler(), LogisticRegression()), metric="mcc").fit(
        frame, pd.Series(NAMES[y])
    )
    assert list(classifier.feature_names_in_) == list(frame.columns)
    assert classifier.n_features_in_ == 8
    assert "metric='mcc'" in repr(classifier)
    assert "LogisticRegression" in classifier._repr_html_()


def test_grid_search_over_both_steps(data):
    X, y = data
    grid = {"estimator__C": [0.001, 1.0], "metric": ["accuracy", "f1"]}
    search = GridSearchCV(PlugInClassifier(LogisticRegression(), cv=2), grid, scoring="f1_macro", cv=3).fit(X, y)
    assert search.best_params_["metric"] == "f1"
    assert isinstance(search.best_estimator_.top_k_, TopK)
    plain = GridSearchCV(LogisticRegression(), {"C": [0.001, 1.0]}, scoring="f1_macro", cv=3).fit(X, y)
    assert search.best_score_ > plain.best_score_


def test_inside_a_pipeline_and_one_against_the_rest(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), PlugInClassifier(LogisticRegression(), cv=3)).fit(X, y)
    assert pipeline[-1].top_k_.labels == (0, 1, 2, 3)
    many = OneVsRestClassifier(PlugInClassifier(LogisticRegression(), cv=3)).fit(X, y)
    assert all(isinstance(one.cut_, Cut) for one in many.estimators_)
    decisions = np.column_stack([one.decision_function(X) for one in many.estimators_])
    np.testing.assert_array_equal(many.predict(X), decisions.argmax(axis=1))


def test_the_rows_that_trained_the_model_are_kept_to_be_recognised(data):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), cv=1 / 3).fit(X, y)
    (training,) = (one for one in classifier.top_k_.sample.seen if one.role == "training")
    assert set(training.labels) == {0, 1, 2, 3}
    probabilities = classifier.predict_proba(X)
    for label in range(4):
        assert np.isin(training.of_label(label).scores, probabilities[:, label]).all()
    assert not any(
        one.role == "training"
        for one in PlugInClassifier(classifier.estimator_, cv="prefit").fit(X, y).top_k_.sample.seen
    )


@pytest.mark.parametrize("cv", [5, 1 / 3])
def test_its_rule_is_certified_on_other_rows_only(cv, tmp_path):
    X, y = make_classification(
        2400, 8, n_informative=5, n_classes=4, weights=[0.6, 0.07, 0.05], class_sep=0.8, random_state=0
    )
    classifier = PlugInClassifier(LogisticRegression(), cv=cv, stable=True).fit(X[:1200], y[:1200])
    certificate = certify(classifier.top_k_, y[1200:], classifier.predict_proba(X[1200:]))
    assert certificate.value == pytest.approx(f1_score(y[1200:], classifier.predict(X[1200:]), average="macro"))
    assert 0 < certificate.lower < certificate.value
    classifier.top_k_.save(tmp_path / "rule.json")
    for rule in (classifier.top_k_, TopK.load(tmp_path / "rule.json")):
        with pytest.raises(ValueError, match="these rows trained the model"):
            certify(rule, y[:1200], classifier.predict_proba(X[:1200]))


def test_the_same_rows_are_drawn_unless_it_is_asked_otherwise(data):
    def offsets(**options):
        return PlugInClassifier(LogisticRegression(), cv=1 / 3, **options).fit(*data).top_k_.offsets.tolist()

    assert offsets(stable=True) == offsets(stable=True, random_state=0) != offsets(stable=True, random_state=1)
    assert len(offsets(random_state=None, stable=True)) == 4


def test_pictures_of_a_threshold_are_of_two_classes(data, model):
    for estimator in (model, PlugInClassifier(model, cv="prefit").fit(*data)):
        with pytest.raises(ValueError, match=r"from_predictions\(y == c, scores\[:, c\]\)"):
            MetricThresholdDisplay.from_estimator(estimator, *data)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")  # it would rather have a series
def test_one_column_of_a_frame_is_a_column(data):
    X, y = data
    one, frame = (
        PlugInClassifier(LogisticRegression(), average="weighted", cv=3).fit(X, target)
        for target in (y, pd.DataFrame({"class": y}))
    )
    assert same(frame.top_k_, one.top_k_)


def test_iris_in_a_frame():
    X, y = load_iris(return_X_y=True, as_frame=True)
    classifier = PlugInClassifier(LogisticRegression(max_iter=1000)).fit(X, y)
    assert classifier.score(X, y) > 0.95
    assert classifier.top_k_.rows == 150
