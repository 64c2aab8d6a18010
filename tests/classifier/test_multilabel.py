"""PlugInClassifier on targets with a column per label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimator_checks import BROKEN_CHECKS
from surecut import MultilabelCut, PlugInClassifier, tune_thresholds

X, Y = make_multilabel_classification(n_samples=300, n_features=8, n_classes=4, n_labels=2, random_state=0)
LINEAR = OneVsRestClassifier(LogisticRegression())

MODELS = {
    "one-vs-rest": LINEAR,
    "multi-output": MultiOutputClassifier(LogisticRegression()),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "k-NN": KNeighborsClassifier(),
    "network": MLPClassifier((4,), max_iter=20, random_state=0),
    "margins": OneVsRestClassifier(LinearSVC()),
    "ridge": RidgeClassifier(),
}


@pytest.mark.filterwarnings("ignore::surecut.PositiveClassWarning")  # 1 and 2, and text, are what the checks have
@parametrize_with_checks(
    [PlugInClassifier(DecisionTreeClassifier(random_state=0), cv=1 / 3, random_state=0)],
    expected_failed_checks=lambda estimator: BROKEN_CHECKS,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("average", [None, "micro", "samples"])
@pytest.mark.parametrize("cv", [3, 1 / 3])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_any_multilabel_estimator(model, cv, average):
    classifier = PlugInClassifier(model, average=average, cv=cv, random_state=0).fit(X, Y)
    predicted = classifier.predict(X)
    assert predicted.shape == Y.shape
    assert set(np.unique(predicted)) <= {0, 1}
    assert ((classifier.decision_function(X) > 0) == predicted).all()
    assert isinstance(classifier.cut_, MultilabelCut)
    assert classifier.cut_.average == (average or "macro")
    assert classifier.cut_.out_of_fold == (cv == 3)
    assert classifier.thresholds_.shape == (4,)
    assert classifier.best_score_ == classifier.cut_.value


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.DataConversionWarning"
)  # it would rather have y without columns
@pytest.mark.parametrize("model", [model for name, model in MODELS.items() if name != "multi-output"])
def test_one_label_is_a_case_of_many(model):
    classifier = PlugInClassifier(model, average="macro", cv=1 / 3, random_state=0).fit(X, Y[:, :1])
    ((train, tune),) = classifier._splitter(Y[:, :1]).split(X, Y[:, :1])
    binary = PlugInClassifier(clone(model).fit(X[train], Y[train, 0]), cv="prefit").fit(X[tune], Y[tune, 0])
    assert classifier.cut_[0].threshold == pytest.approx(binary.best_threshold_, rel=1e-6)
    assert classifier.predict(X).shape == (300, 1)


def test_a_share_is_the_papers_procedure():
    classifier = PlugInClassifier(LINEAR, cv=1 / 3, random_state=3).fit(X, Y)
    ((train, tune),) = classifier._splitter(Y).split(X, Y)
    model = clone(LINEAR).fit(X[train], Y[train])
    assert classifier.cut_ == tune_thresholds(Y[tune], model.predict_proba(X[tune]))
    assert (Y[tune].sum(axis=0) > 0).all()


@pytest.mark.parametrize("prefit", [lambda model: (model, "prefit"), lambda model: (FrozenEstimator(model), 5)])
def test_a_fitted_model_is_tuned_on_all_rows(prefit):
    model = clone(LINEAR).fit(X[:100], Y[:100])
    estimator, cv = prefit(model)
    classifier = PlugInClassifier(estimator, cv=cv).fit(X, Y)
    assert classifier.cut_ == tune_thresholds(Y, model.predict_proba(X))


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("metric", ["am", "f2", "jaccard", "mcc", "precision"])
def test_retarget_gives_what_a_new_fit_gives(metric, average):
    rare = Y.copy()
    rare[:, 3] = 0
    rare[:2, 3] = 1  # may have no positive among the rows that tune
    fitted = PlugInClassifier(LINEAR, cv=1 / 3, random_state=0).fit(X, rare)
    again = PlugInClassifier(LINEAR, metric=metric, average=average, cv=1 / 3, random_state=0).fit(X, rare)
    assert fitted.retarget(metric, average=average).cut_ == again.cut_


def test_what_cannot_be_retargeted_is_told():
    fitted = PlugInClassifier(LINEAR, cv=1 / 3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="samples average cannot be found"):
        fitted.retarget("f1", average="samples")
    with pytest.raises(ValueError, match="ROC hull"):
        fitted.retarget("gmean")
    shrunken = PlugInClassifier(LINEAR, cv=1 / 3, shrinkage="auto", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="smoothed"):
        shrunken.retarget("am")
    with pytest.raises(ValueError, match="for many labels"):
        PlugInClassifier(LogisticRegression()).fit(X, Y[:, 0]).retarget("am", average="micro")


def test_shrinkage_is_passed_on():
    classifier = PlugInClassifier(LINEAR, cv=1 / 3, shrinkage=30.0, random_state=0).fit(X, Y)
    assert classifier.cut_.shrinkage == pytest.approx(30.0)
    binary = PlugInClassifier(LogisticRegression(), cv=1 / 3, shrinkage=30.0, random_state=0).fit(X, Y[:, 0])
    assert binary.cut_.shrinkage == pytest.approx(30.0)


def test_sparse_targets_give_sparse_predictions():
    classifier = PlugInClassifier(LINEAR, cv=3).fit(X, sparse.csr_matrix(Y))
    assert sparse.issparse(classifier.predict(X))
    dense = PlugInClassifier(LINEAR, cv=3).fit(X, Y)
    assert (classifier.predict(X).toarray() == dense.predict(X)).all()


def test_frames_name_the_labels():
    classifier = PlugInClassifier(LINEAR, cv=3).fit(X, pd.DataFrame(Y, columns=list("abcd")))
    assert classifier.cut_.labels == ("a", "b", "c", "d")


@pytest.mark.filterwarnings("ignore:Label not 3 is present")
def test_a_label_that_no_training_row_has():
    rare = Y.copy()
    rare[:, 3] = 0
    for model in (LINEAR, MODELS["tree"], MODELS["k-NN"]):
        classifier = PlugInClassifier(model, cv=3).fit(X, rare)
        assert classifier.cut_.shared == {3: "no positive row"}


def test_own_splits_weights_and_searches():
    weights = np.random.default_rng(0).random(len(X))
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    classifier = PlugInClassifier(tree, cv=KFold(3)).fit(X, Y, sample_weight=weights)
    assert classifier.cut_.weighted
    search = GridSearchCV(PlugInClassifier(tree, cv=1 / 3, random_state=0), {"metric": ["f1", "am"]}, cv=2)
    search.fit(X, Y)
    assert search.best_estimator_.predict(X).shape == Y.shape


def test_tuning_is_worth_it():
    classifier = PlugInClassifier(LINEAR, cv=5).fit(X[:200], Y[:200])
    plain = clone(LINEAR).fit(X[:200], Y[:200])
    tuned = f1_score(Y[200:], classifier.predict(X[200:]), average="macro")
    assert tuned > f1_score(Y[200:], plain.predict(X[200:]), average="macro")


@pytest.mark.parametrize(
    "wrong",
    [
        {"average": "weighted"},
        {"shrinkage": -1},
        {"shrinkage": 5, "constraint": "precision>=0.1"},
        {"average": "samples", "shrinkage": 5},
        {"average": "samples", "constraint": "precision>=0.1"},
    ],
    ids=str,
)
def test_what_cannot_be_asked_for_is_told_before_training(wrong):
    class Never(DecisionTreeClassifier):
        def fit(self, X, y):
            raise AssertionError("trained")

    with pytest.raises(ValueError, match=r"must|cannot"):
        PlugInClassifier(Never(), **wrong).fit(X, Y)


def test_what_does_not_fit_is_told():
    with pytest.raises(ValueError, match="wrap it, OneVsRestClassifier"):
        PlugInClassifier(LogisticRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="y is one column"):
        PlugInClassifier(LogisticRegression(), average="macro").fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="must hold 0 and 1"):
        PlugInClassifier(LINEAR).fit(X, Y * 2)
    with pytest.raises(ValueError, match="confidence= of many labels is for constraints"):
        PlugInClassifier(LINEAR, cv=1 / 3, confidence=0.9).fit(X, Y)
