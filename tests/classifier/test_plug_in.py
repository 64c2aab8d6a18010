"""PlugInClassifier: scikit-learn's contract, the two steps, and the cut that is honoured everywhere."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

from estimator_checks import BROKEN_CHECKS
from surecut import PlugInClassifier, PositiveClassWarning, ScoreTally, tune_threshold
from surecut.classifier import plug_in, targets
from surecut.constraints import parse_constraints
from surecut.metrics import AM, GMean, Utility

ARGMAX = {"check_classifiers_train": "the argmax of the probabilities is not the cut; scikit-learn exempts its own"}


def expected_failures(estimator):
    return BROKEN_CHECKS | (ARGMAX if isinstance(estimator.estimator, LogisticRegression) else {})


@pytest.mark.filterwarnings("ignore::surecut.PositiveClassWarning")  # 1 and 2, and text, are what the checks have
@parametrize_with_checks(
    [
        PlugInClassifier(LinearSVC(dual=False, tol=1e-12, random_state=0)),
        PlugInClassifier(LogisticRegression()),
        PlugInClassifier(DecisionTreeClassifier(random_state=0), metric="am", cv=1 / 3, random_state=0),
        PlugInClassifier(make_pipeline(LinearSVC(dual=False, tol=1e-12, random_state=0)), metric="kappa"),
        PlugInClassifier(DecisionTreeClassifier(random_state=0), stable=True),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


class WithoutProbabilities(PlugInClassifier):
    """The same classifier, for the part of a check that does not compare probabilities with predictions."""

    @property
    def predict_proba(self):
        raise AttributeError("hidden")

    @property
    def predict_log_proba(self):
        raise AttributeError("hidden")


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_rest_of_the_check_that_is_expected_to_fail(readonly, dtype):
    estimator = WithoutProbabilities(LogisticRegression())
    check_classifiers_train("PlugInClassifier", estimator, readonly_memmap=readonly, X_dtype=dtype)


@pytest.fixture(scope="module")
def data():
    return make_classification(600, weights=[0.85], class_sep=0.6, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


def test_folds_pool_out_of_fold_scores_and_refit(data):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), metric="f2").fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, cv=StratifiedKFold(5), method="predict_proba")[:, 1]
    expected = tune_threshold(y, scores, metric="f2")
    assert classifier.cut_ == expected.with_sample(out_of_fold=True)
    assert (classifier.best_threshold_, classifier.best_score_) == (expected.threshold, expected.value)
    refitted = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), refitted.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(X), expected.predict(refitted.predict_proba(X)[:, 1]).astype(int))


def test_a_share_trains_on_the_rest_and_does_not_refit(data):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), cv=1 / 3, random_state=3).fit(X, y)
    assert classifier.cut_.rows == 200
    assert classifier.cut_.confusion.positives == pytest.approx(y.sum() / 3, abs=1)
    assert not np.array_equal(classifier.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
    again = PlugInClassifier(LogisticRegression(), cv=1 / 3, random_state=3, refit=True).fit(X, y)
    assert again.cut_ == classifier.cut_.with_sample(out_of_fold=True)
    np.testing.assert_array_equal(again.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


@pytest.mark.parametrize("wrap", [lambda m: (m, "prefit"), lambda m: (FrozenEstimator(m), 5)])
def test_a_fitted_model_is_only_tuned(data, model, wrap):
    X, y = data
    estimator, cv = wrap(model)
    classifier = PlugInClassifier(estimator, metric="am", cv=cv).fit(X, y)
    assert classifier.cut_ == tune_threshold(y, model.predict_proba(X)[:, 1], metric="am")
    np.testing.assert_array_equal(classifier.predict_proba(X), model.predict_proba(X))


def test_any_splitter_and_any_splits(data):
    X, y = data
    time = PlugInClassifier(LogisticRegression(), cv=TimeSeriesSplit(4)).fit(X, y)
    assert time.cut_.rows == 480
    splits = list(StratifiedKFold(5).split(X, y))
    listed = PlugInClassifier(LogisticRegression(), cv=splits).fit(X, y)
    assert listed.cut_ == PlugInClassifier(LogisticRegression()).fit(X, y).cut_
    single = PlugInClassifier(LogisticRegression(), cv=splits[:1]).fit(X, y)
    expected = LogisticRegression().fit(X[splits[0][0]], y[splits[0][0]])
    np.testing.assert_array_equal(single.estimator_.coef_, expected.coef_)


def test_groups_reach_the_splitter_by_routing(data):
    X, y = data
    groups = np.arange(len(y)) % 30
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = PlugInClassifier(LogisticRegression(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    scores = cross_val_predict(
        LogisticRegression(), X, y, cv=list(GroupKFold(3).split(X, y, groups)), method="predict_proba"
    )[:, 1]
    assert classifier.cut_ == tune_threshold(y, scores).with_sample(out_of_fold=True)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        PlugInClassifier(LogisticRegression(), cv=GroupKFold(3)).fit(X, y, groups=groups)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what its fit was given."""

    def fit(self, X, y, sample_weight=None, colour=None):
        self.classes_ = np.unique(y)
        self.weight_, self.colour_ = sample_weight, colour
        return self

    def decision_function(self, X):
        return X[:, 0]


def test_weights_reach_both_steps(data):
    X, y = data
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    fitted = Recorder().fit(X, y)
    tuned = PlugInClassifier(fitted, cv="prefit").fit(X, y, sample_weight=weights)
    assert tuned.cut_ == tune_threshold(y, X[:, 0], sample_weight=weights)
    trained = PlugInClassifier(Recorder()).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(trained.estimator_.weight_, weights)
    assert trained.cut_.weighted


def test_a_pipeline_gets_weights_at_its_last_step(data):
    X, y = data
    weights = np.random.default_rng(0).random(len(y))
    nested = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), Recorder()))
    classifier = PlugInClassifier(nested).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(classifier.estimator_[-1][-1].weight_, weights)


def test_an_estimator_that_takes_no_weights_is_trained_without_and_says_so(data):
    X, y = data
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no sample_weight"):
        classifier = PlugInClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.arange(len(y)) % 3)
    assert classifier.cut_.weighted


def test_parameters_go_by_metadata_routing(data):
    X, y = data
    weights = np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        inner = Recorder().set_fit_request(sample_weight=True, colour=True)
        classifier = PlugInClassifier(inner).fit(X, y, sample_weight=weights, colour="red")
        assert classifier.estimator_.colour_ == "red"
        np.testing.assert_array_equal(classifier.estimator_.weight_, weights)
        search = GridSearchCV(
            PlugInClassifier(inner).set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            {"metric": ["f1", "am"]},
            cv=2,
        ).fit(X, y, sample_weight=weights)
        assert search.best_estimator_.cut_.weighted


def test_string_labels_and_pos_label(data):
    X, y = data
    names = np.where(y == 1, "yes", "no")
    plain = PlugInClassifier(LogisticRegression()).fit(X, y)
    with pytest.warns(PositiveClassWarning, match="'yes' is taken as the positive class"):
        named = PlugInClassifier(LogisticRegression()).fit(X, names)
    np.testing.assert_array_equal(named.predict(X), np.where(plain.predict(X) == 1, "yes", "no"))
    other = PlugInClassifier(LogisticRegression(), pos_label="no").fit(X, names)
    scores = cross_val_predict(LogisticRegression(), X, names, cv=StratifiedKFold(5), method="predict_proba")[:, 0]
    assert other.cut_ == tune_threshold(names, scores, pos_label="no").with_sample(out_of_fold=True)
    with pytest.raises(ValueError, match="pos_label='maybe' is not among the classes"):
        PlugInClassifier(LogisticRegression(), pos_label="maybe").fit(X, names)


@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
def test_decision_function_is_above_zero_exactly_where_the_second_class_is_predicted(data, pos_label, response_method):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), pos_label=pos_label, response_method=response_method).fit(X, y)
    np.testing.assert_array_equal(classifier.decision_function(X) > 0, classifier.predict(X) == 1)


class Scores(ClassifierMixin, BaseEstimator):
    """The score is the first feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decision_function_where_score_equals_threshold_and_at_infinities(dtype):
    low, high = dtype(0.1), np.nextafter(dtype(0.1), dtype(1))  # adjacent: the threshold is the upper score itself
    X = np.array([[-np.inf], [low], [high], [np.inf]], dtype=dtype)
    y = [0, 0, 1, 1]
    classifier = PlugInClassifier(Scores().fit(X, y), cv="prefit").fit(X, y)
    assert classifier.best_threshold_ == high
    decision = classifier.decision_function(X)
    np.testing.assert_array_equal(decision > 0, classifier.predict(X) == 1)
    np.testing.assert_array_equal(classifier.predict(X), y)
    assert 0 < decision[2] == 5e-324


def test_a_cut_that_predicts_nothing_or_everything():
    X = np.array([[np.inf], [1.0], [-np.inf], [-np.inf]])
    nothing = PlugInClassifier(Scores().fit(X, [0, 0, 0, 1]), cv="prefit", metric="accuracy").fit(X, [0, 0, 0, 1])
    assert nothing.cut_.predicts_nothing
    assert not nothing.predict(X).any()
    decision = nothing.decision_function(X)
    assert (decision < 0).all()
    np.testing.assert_array_equal(np.argsort(-decision, kind="stable"), [0, 1, 2, 3])
    y = [1, 1, 1, 0]
    everything = PlugInClassifier(Scores().fit(X, y), cv="prefit", metric="recall").fit(X, y)
    assert everything.best_threshold_ == -np.inf
    assert everything.predict(X).all()
    assert (everything.decision_function(X) > 0).all()


def test_the_cut_is_honoured_inside_one_vs_rest():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 3)).astype(float)  # few values: scores equal thresholds
    Y = (X + rng.normal(0, 1.5, X.shape) > 2.5).astype(int)
    multilabel = OneVsRestClassifier(PlugInClassifier(LogisticRegression(), metric="f2")).fit(X, Y)
    columns = [PlugInClassifier(LogisticRegression(), metric="f2").fit(X, Y[:, label]).predict(X) for label in range(3)]
    np.testing.assert_array_equal(multilabel.predict(X), np.column_stack(columns))


def test_retarget_needs_neither_data_nor_model(data):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), metric="f1").fit(X, y)
    for metric in ("am", "mcc", "kappa", "f0.5", Utility(fn=-20, fp=-1)):
        other = classifier.retarget(metric)
        direct = PlugInClassifier(LogisticRegression(), metric=metric).fit(X, y)
        assert other.cut_ == direct.cut_
        assert other.get_params()["metric"] == metric
        assert other.estimator_ is classifier.estimator_
        np.testing.assert_array_equal(other.predict(X), direct.predict(X))
    assert classifier.metric == "f1"
    with pytest.raises(ValueError, match="need not lie on the ROC hull"):
        classifier.retarget(GMean())
    with pytest.raises(NotFittedError):
        PlugInClassifier(LogisticRegression()).retarget("f1")


def test_constraint(data):
    X, y = data
    classifier = PlugInClassifier(LogisticRegression(), metric="recall", constraint="precision>=0.6").fit(X, y)
    confusion = classifier.cut_.confusion
    assert confusion.tp / confusion.predicted_positives >= 0.6
    assert classifier.cut_.constraints == parse_constraints("precision>=0.6")
    with pytest.raises(ValueError, match="constrained"):
        classifier.retarget("f1")


def test_grid_search_over_both_steps(data):
    X, y = data
    grid = {"estimator__C": [0.01, 1.0], "metric": ["f1", "f2"]}
    search = GridSearchCV(
        PlugInClassifier(LogisticRegression(), cv=3), grid, scoring=make_scorer(fbeta_score, beta=2), cv=3
    ).fit(X, y)
    assert search.best_params_["metric"] == "f2"
    scored = GridSearchCV(PlugInClassifier(LogisticRegression()), {"cv": [3, 1 / 3]}, scoring=AM().as_scorer(), cv=2)
    assert 0.5 < scored.fit(X, y).best_score_ < 1


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LogisticRegression(), {"allow_nan": False, "positive_only": False}),
        (MultinomialNB(), {"allow_nan": False, "positive_only": True}),
        (HistGradientBoostingClassifier(), {"allow_nan": True, "positive_only": False}),
    ],
)
def test_what_the_inner_estimator_takes_is_said(estimator, expected):
    tags = get_tags(PlugInClassifier(estimator)).input_tags
    assert {name: getattr(tags, name) for name in expected} == expected
    assert tags.sparse == get_tags(estimator).input_tags.sparse  # scikit-learn 1.6 says it of few estimators


def test_feature_names_clone_and_html(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    classifier = PlugInClassifier(make_pipeline(StandardScaler(), LogisticRegression()), metric=AM()).fit(frame, y)
    assert list(classifier.feature_names_in_) == list(frame.columns)
    assert clone(classifier).metric == AM()
    assert "LogisticRegression" in classifier._repr_html_()


def test_tuning_is_worth_it_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    rare = np.flatnonzero((y == 1) | (np.arange(len(y)) % 8 == 0))  # make the malignant class rare
    X, y = X[rare], 1 - y[rare]
    classifier = PlugInClassifier(make_pipeline(StandardScaler(), LogisticRegression(C=0.001)), metric="f1").fit(X, y)
    usual = classifier.estimator_.predict(X)
    assert fbeta_score(y, classifier.predict(X), beta=1) > fbeta_score(y, usual, beta=1) + 0.1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cv": 1}, "at least 2"),
        ({"cv": 1.5}, "0 < cv < 1"),
        ({"cv": "five"}, "got 'five'"),
        ({"cv": True}, "got True"),
        ({"cv": []}, "no split"),
        ({"refit": False}, "refit must not be False"),
        ({"refit": "yes"}, "refit must be"),
        ({"cv": "prefit", "refit": True}, "not fitted again"),
        ({"response_method": "predict"}, "response_method must be one of"),
        ({"metric": "roc_auc"}, "ranking"),
        ({"metric": "f_one"}, "unknown metric"),
    ],
)
def test_bad_parameters(data, model, parameters, message):
    with pytest.raises(ValueError, match=message):
        PlugInClassifier(model, **parameters).fit(*data)


def test_bad_targets(data):
    X, y = data
    with pytest.raises(ValueError, match="one class or none"):
        PlugInClassifier(LogisticRegression()).fit(X, np.zeros(len(y)))
    with pytest.raises(NotFittedError):
        PlugInClassifier(LogisticRegression(), cv="prefit").fit(X, y)
    with pytest.raises(AttributeError, match="nothing can be cut"):
        PlugInClassifier(LinearSVC(), response_method="predict_proba").fit(X, y)


def test_the_hull_is_that_of_the_tuning_rows(data, model):
    X, y = data
    classifier = PlugInClassifier(model, cv="prefit").fit(X, y)
    expected = ScoreTally.from_scores(y, model.predict_proba(X)[:, 1]).hull
    np.testing.assert_array_equal(classifier.hull_.accepted, expected.accepted)


class TestTheHullIsMadeWhenItIsAskedFor:
    @pytest.fixture
    def made(self, monkeypatch):
        """How often a hull was made."""
        found = []
        make = plug_in._hull_of
        monkeypatch.setattr(plug_in, "_hull_of", lambda *columns: found.append(columns) or make(*columns))
        return found

    def test_not_by_fitting_and_predicting(self, data, model, made):
        classifier = PlugInClassifier(model, cv="prefit").fit(*data)
        classifier.predict(data[0])
        assert not made
        assert classifier.hull_ is classifier.hull_
        assert len(made) == 1

    def test_there_is_none_before_fitting(self, model):
        assert not hasattr(PlugInClassifier(model), "hull_")

    def test_a_pickle_holds_the_hull_and_no_rows(self, data, model):
        X, y = data
        rows = np.resize(np.arange(len(y)), 50 * len(y))
        classifier = PlugInClassifier(model, cv="prefit").fit(X[rows], y[rows])
        pickled = pickle.dumps(classifier)
        assert len(pickled) < len(rows)
        again = pickle.loads(pickled).retarget("f2")
        assert again.cut_ == PlugInClassifier(model, cv="prefit").fit(X[rows], y[rows]).retarget("f2").cut_

    @pytest.mark.parametrize("weighted", [False, True])
    def test_what_is_written_to_the_arrays_afterwards_does_not_matter(self, weighted):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 1))
        y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(np.int64)
        weights = rng.random(300) if weighted else None

        def fitted():
            return PlugInClassifier(OwnColumn(), cv="prefit").fit(X, y, sample_weight=weights)

        expected, classifier = fitted().retarget("f2").cut_, fitted()
        for array in (X, y, *([weights] if weighted else [])):
            array[:] = 0
        assert classifier.retarget("f2").cut_ == expected


class OwnColumn(ClassifierMixin, BaseEstimator):
    """A model whose scores are a column of its input, and no copy."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y, sample_weight=None):
        return self

    def decision_function(self, X):
        return X[:, 0]


@pytest.mark.parametrize("classes", [(0, 1), (-1, 1), (3, 7), (0.0, 1.0), (False, True), ("a", "b")])
def test_the_two_classes_are_found_whatever_their_type(data, classes):
    y = data[1]
    target = np.array(classes)[y]
    found, share = targets.checked_target(target)[1:]
    assert found.tolist() == list(classes)
    assert found.dtype == target.dtype
    assert share == y.mean()


@pytest.mark.parametrize("target", [[0.5, 1.5], [0.5, 1.5, 2.5]])
def test_targets_that_are_no_whole_numbers_are_refused(data, target):
    with pytest.raises(ValueError, match="Unknown label type"):
        PlugInClassifier(LogisticRegression()).fit(data[0], np.resize(target, len(data[1])))


def test_the_same_rows_are_drawn_unless_it_is_asked_otherwise(data):
    def threshold(**options):
        return PlugInClassifier(LogisticRegression(), **options).fit(*data).best_threshold_

    assert threshold(cv=1 / 3) == threshold(cv=1 / 3) == threshold(cv=1 / 3, random_state=0)
    assert threshold(cv=1 / 3) != threshold(cv=1 / 3, random_state=1)
    assert threshold(cv=5) == threshold(cv=5, random_state=1) == threshold(cv=StratifiedKFold(5))  # not shuffled


class TestStableCuts:
    """Where several folds tune, each has a model of its own."""

    @pytest.fixture
    def data(self):
        return make_classification(600, weights=[0.8], flip_y=0.1, class_sep=0.4, random_state=0)

    def test_a_share_and_a_fitted_model_have_the_cut_of_their_scores(self, data):
        X, y = data
        model = LogisticRegression().fit(X[:300], y[:300])
        classifier = PlugInClassifier(model, cv="prefit", stable=True).fit(X[300:], y[300:])
        expected = tune_threshold(
            y[300:], model.predict_proba(X[300:])[:, 1], stable=True, random_state=classifier._seed()
        )
        assert classifier.best_threshold_ == expected.threshold
        assert classifier.cut_.stability == expected.stability
        assert classifier.best_score_ == expected.value <= expected.stability.best_value

    def test_folds_are_resampled_whole(self, data):
        X, y = data
        exact = PlugInClassifier(KNeighborsClassifier(15)).fit(X, y)
        stable = clone(exact).set_params(stable=True).fit(X, y)
        assert stable.cut_.out_of_fold
        assert stable.cut_.stability.best_value == exact.best_score_
        scores = np.empty(len(y))
        for train, tune in StratifiedKFold(5).split(X, y):
            model = clone(exact.estimator).fit(X[train], y[train])
            scores[tune] = model.predict_proba(X[tune])[:, 1]
        pooled = tune_threshold(y, scores, stable=True, random_state=stable._seed())
        assert stable.cut_.stability.best_value == pooled.stability.best_value
        assert stable.cut_.stability.tolerance > pooled.stability.tolerance  # chance does more with whole folds

    def test_many_labels(self, data):
        X, y = data
        Y = np.column_stack((y, X[:, 0] > 1.5, X[:, 1] < -1.5)).astype(int)
        classifier = PlugInClassifier(
            OneVsRestClassifier(LogisticRegression()), average="macro", cv=3, stable=True
        ).fit(X, Y)
        assert classifier.cut_.stability.resamples.tolist() == [200, 200, 200]
        again = clone(classifier).fit(X, Y)
        assert again.thresholds_.tolist() == classifier.thresholds_.tolist()
        micro = clone(classifier).set_params(average="micro").fit(X, Y)
        assert len(set(micro.thresholds_)) == 1

    def test_rows_without_weight_take_no_part(self, data):
        X, y = data
        weight = np.where(np.arange(len(y)) % 3, 1.0, 0.0)
        classifier = PlugInClassifier(LogisticRegression(), stable=True).fit(X, y, sample_weight=weight)
        assert classifier.cut_.rows == np.count_nonzero(weight)
        assert classifier.cut_.stability is not None

    def test_a_certificate_comes_from_other_rows(self, data):
        X, y = data
        classifier = PlugInClassifier(LogisticRegression(), cv=0.6, confidence=0.9, stable=True).fit(X, y)
        assert classifier.cut_.stability is not None
        assert classifier.cut_.confidence is None
        assert classifier.certificate_.lower < classifier.certificate_.value

    def test_another_metric_is_fitted_again(self, data):
        X, y = data
        classifier = PlugInClassifier(LogisticRegression(), stable=True).fit(X, y)
        with pytest.raises(ValueError, match="a stable cut need not lie on the stored hull"):
            classifier.retarget("f2")

    @pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(0)])
    def test_any_random_state(self, data, random_state):
        X, y = data
        fitted = PlugInClassifier(LogisticRegression(), stable=True, random_state=random_state).fit(X, y)
        assert 0 < fitted.best_score_ <= fitted.cut_.stability.best_value

    def test_a_fold_without_weight(self, data):
        X, y = data
        for empty in (0, 4):
            weight = np.ones(len(y))
            weight[np.array_split(np.arange(len(y)), 5)[empty]] = 0
            classifier = PlugInClassifier(LogisticRegression(), cv=KFold(5), stable=True)
            assert classifier.fit(X, y, sample_weight=weight).cut_.stability is not None

    def test_exact_cuts_draw_nothing(self, data):
        X, y = data
        random_state = np.random.RandomState(0)
        PlugInClassifier(LogisticRegression(), random_state=random_state).fit(X, y)
        assert random_state.randint(10**9) == np.random.RandomState(0).randint(10**9)
        PlugInClassifier(LogisticRegression(), random_state=2**40).fit(X, y)
