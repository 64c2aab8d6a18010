"""The paper's two steps around any scikit-learn classifier: train once, then cut where the metric is best."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _raise_for_params, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted, has_fit_parameter

from surecut._inputs import as_scores, as_weights
from surecut._labels import as_labels
from surecut._matrices import is_sparse
from surecut.classifier.outputs import (
    checked_indicators,
    class_scores,
    is_multilabel,
    label_names,
    label_scores,
    positive_class,
    positive_scores,
    takes_many_labels,
    two_class_scores,
)
from surecut.classifier.splits import Splits, check_split, splitter_of
from surecut.classifier.targets import checked_target, one_hot, refuse_threshold_options, require_classes
from surecut.constraints import ConstraintLike, parse_constraints
from surecut.core.tally import tally_rows
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.top_k import TopK, named
from surecut.metrics import Metric, get_metric
from surecut.overlap import TRAINING, RowSample, positions, sampled_labels
from surecut.positive_class import warn_of_assumed_positive
from surecut.progress import shown
from surecut.sources.arrays import ArraySource
from surecut.sources.matrices import label_source
from surecut.tuning import tune as tuning
from surecut.tuning.hulls import LabelHulls
from surecut.tuning.labels import tune_labels, tune_thresholds
from surecut.tuning.request import Request
from surecut.tuning.resampling import Folds
from surecut.tuning.shrinkage import check_shrinkage
from surecut.tuning.top_k import tune_rules
from surecut.tuning.top_k_request import Costs, TopKRequest
from surecut.tuning.validation_rows import validation_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.confusion import Confusion
    from surecut.core.candidates import Hull
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut
    from surecut.tuning.request import MetricLike
    from surecut.tuning.top_k_request import CostsLike

    ScoresOf = Callable[[Any, Any], NDArray[Any]]  # of a model, for some rows

CERTIFYING_SHARE = 3 / 4
"""Of the rows that are kept from training: a threshold needs few rows to be found, a narrow promise needs many."""


OF_CUTS = ("cut_", "best_threshold_", "thresholds_", "hull_", "certificate_")
"""Attributes that a classifier of three and more classes lacks."""


class _TuningRows(NamedTuple):
    """The rows that tune a rule of several classes: it can be tuned again for another metric."""

    truth: NDArray[Any]
    scores: NDArray[Any]
    weight: NDArray[np.float64] | None


def _inner_has(method: str) -> Any:
    def check(self: PlugInClassifier) -> bool:
        return hasattr(getattr(self, "estimator_", self.estimator), method)

    return check


class PlugInClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose scores are cut where a metric is best.

    Step 1 trains `estimator`, preferably by a proper loss (logistic regression, boosting, a calibrated model). Step 2
    tunes the threshold of its scores for `metric`, exactly, on rows that step 1 did not train on. Where the target has
    three and more classes it tunes the rule of `tune_top_k` with ``k=1``, which predicts the class with the largest
    a·score + b; where it has a column per label, a threshold for each.

    Parameters
    ----------
    estimator
        A scikit-learn classifier or pipeline with `predict_proba` or `decision_function`.
    metric
        A name, a metric, a scikit-learn scorer, or a function of a `Confusion`.
    average
        For three and more classes: ``"macro"``, ``"weighted"``, ``"micro"`` or ``"multiclass"``, as in `tune_top_k`.
        None is the macro average, and for accuracy, balanced_accuracy, gmean, kappa and mcc the metric of all classes.
        For targets with a column per label: ``"macro"`` (so if it is None), ``"micro"`` or ``"samples"``, as in
        `tune_thresholds`. The estimator must take such targets: `OneVsRestClassifier(...)`, trees, `MLPClassifier`.
    costs, reject_cost
        Instead of metric and average, for two and more classes: what a prediction costs, and what it costs to predict
        nothing, as in `tune_top_k`.
    cv
        Which rows tune.

        - A number of folds, a splitter or an iterable of splits: scores from the folds are pooled, then the model is
          trained again on all rows. The most accurate on small data; carries no guarantee, since the model that
          predicts is not one that was tuned.
        - A share such as ``1/3``: that share is kept for tuning, stratified, and the model is trained on the rest.
          This is the paper's procedure, the one that its theorems cover.
        - ``"prefit"``: `estimator` is fitted already, and all rows tune; so they do for a `FrozenEstimator`.
    refit
        Whether the model is trained again on all rows: ``"auto"`` does so if there are several splits.
    shrinkage
        For tuning rows with few positives, rare labels above all: ``"auto"``, or a number, as in `tune_thresholds`.
    stable
        Whether the cut is for new rows, as in `tune_threshold`, and not the best one of the tuning rows. Where several
        folds tune, whole folds are resampled, since each has a model of its own. For three and more classes it is that
        of `tune_top_k`.
    constraint
        Conditions on the cut, as in `tune_threshold`.
    confidence
        With a share for `cv`, or a model that is fitted already: `certificate_` says what the metric will be on new
        rows with this confidence. Of the rows that are kept from training a small random part, the pilot, chooses the
        cut, and the others certify it. With a constraint, which then holds on new rows as well, with shrinkage or with
        groups, one quarter of these rows tunes, and the rest certifies. If the splitter is given groups, by metadata
        routing, they stay whole, and are what is taken as independent.
    weights
        With `confidence` and weights: what they mean, as in `certify`. ``"counts"`` if a weight of 2 means the row
        twice; with ``"importance"`` nothing can be promised from so few rows, and `fit` says so.
    prior
        The share of positives where the classifier will be used, if it is not that of its rows, as in `tune_threshold`.
    zero_division
        What a row is worth in the samples average where the metric is 0/0, as in `tune_thresholds`.
    pos_label
        The class of two that counts as positive: `classes_[1]` unless said otherwise. With labels other than {0, 1},
        {−1, 1} and booleans, and a metric that depends on which class is positive, a `PositiveClassWarning` then names
        it.
    response_method
        ``"predict_proba"``, ``"decision_function"``, or ``"auto"``, the first of them that the estimator has.
    n_jobs
        Folds that are trained at once.
    random_state
        Which rows are drawn for a share, for folds of many labels, and, with `confidence`, to certify. None draws
        others at every fit. Folds of one label that are given as a number are not shuffled, as in scikit-learn: pass
        ``StratifiedKFold(5, shuffle=True)`` for that.

    Attributes
    ----------
    cut_ : Cut or MultilabelCut
        The cut, with its value and confusion on the tuning rows.
    top_k_ : TopK
        For three and more classes, and with `costs`: the rule, which has no `cut_`, `best_threshold_` or `hull_`. The
        classifier keeps the tuning rows' scores, labels and weights for `retarget`, also where it is pickled.
    best_threshold_, best_score_ : float
        The cut's threshold and value; with many labels the thresholds are in `thresholds_`.
    certificate_ : Certificate
        With `confidence`: limits for the metric's value on new rows.
    hull_ : Hull or LabelHulls
        The ROC hull of the tuning rows, from which `retarget` finds cuts for other metrics. It is computed
        when it is first used, or when the classifier is copied or pickled. Until then the classifier keeps the scores,
        labels and weights of the tuning rows in memory (9 to 24 bytes for each score of float64).
    estimator_, classes_
        The fitted model and its classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PlugInClassifier(make_pipeline(StandardScaler(), LogisticRegression()), metric="f2", pos_label=0)
    >>> model.fit(X, y).best_threshold_ < 0.5
    True
    >>> model.retarget("f0.5").best_threshold_ > model.best_threshold_
    True

    Three classes:

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PlugInClassifier(make_pipeline(StandardScaler(), LogisticRegression()), metric="f1").fit(X, y)
    >>> model.top_k_.average, model.best_score_ >= model.top_k_.baseline.value
    ('macro', True)
    """

    _validation: _TuningRows
    _hull: Hull | LabelHulls | Callable[[], Hull | LabelHulls]  # or what computes it

    def __init__(
        self,
        estimator: Any,
        *,
        metric: MetricLike = "f1",
        average: str | None = None,
        costs: CostsLike | None = None,
        reject_cost: ArrayLike | None = None,
        cv: Any = 5,
        refit: bool | str = "auto",
        weights: str | None = None,
        pos_label: Any = None,
        constraint: ConstraintLike | Iterable[ConstraintLike] | None = None,
        confidence: float | None = None,
        prior: float | None = None,
        shrinkage: float | str = 0.0,
        stable: bool = False,
        zero_division: float = 0.0,
        response_method: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.average = average
        self.costs = costs
        self.reject_cost = reject_cost
        self.cv = cv
        self.refit = refit
        self.prior = prior
        self.shrinkage = shrinkage
        self.stable = stable
        self.zero_division = zero_division
        self.constraint = constraint
        self.confidence = confidence
        self.weights = weights
        self.pos_label = pos_label
        self.response_method = response_method
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Train the model, then tune its cut.

        Parameters
        ----------
        X, y
            Training data of two or more classes, or with a column of 0 and 1 per label.
        sample_weight
            Weights of the rows in both steps. A pipeline gets them at its last step; an estimator that takes none is
            trained without, with a warning.
        **params
            Further parameters for the estimator and the splitter, by scikit-learn's metadata routing.
        """
        _raise_for_params(params, self, None)
        if is_multilabel(y, self.average):
            return self._fit_labels(X, y, get_metric(self.metric), sample_weight, params)
        X, y = indexable(X, y)
        y, classes, share = checked_target(y)
        if self._is_prefit:  # some of the model's classes may be so rare that no row has them
            known = np.asarray(getattr(self.estimator, "classes_", classes))
            if max(len(known), len(classes)) > 2:
                require_classes(classes, known, "the model")
                classes = known
        if len(classes) > 2 or self._has_costs:
            return self._fit_classes(X, y, classes, sample_weight, params)
        if self.average is not None:
            raise ValueError(
                f"average={self.average!r} is for three and more classes, and for targets with a column per label, but "
                "y is one column of two classes"
            )
        metric = get_metric(self.metric)
        if self.pos_label is None:
            warn_of_assumed_positive(classes, share, self._metrics(metric))
        weights = None if sample_weight is None else as_weights(sample_weight, _num_samples(X))
        routed = self._routed(params, sample_weight)
        groups = self._groups(routed)
        request = self._request(metric, groups is not None)
        self._check_promise(weights, groups)
        plan = self._plan(X, y, routed.splitter.split, groups)

        scores_of = functools.partial(two_class_scores, response_method=self.response_method, pos_label=self.pos_label)
        model, scores = self._trained(X, y, routed, plan, scores_of)
        self._set_estimator(model, X, y, routed, plan)

        # Copies: the hull is made later, and the caller may write to its arrays, or the model to its own, before that.
        scores = as_scores(scores)
        is_positive = y == self._positive()
        held_out = plan.held_out
        truth = is_positive[held_out]
        weight = None if weights is None else np.array(weights[held_out])
        group = None if groups is None else groups[held_out]
        # Without groups, constraints and shrinkage a pilot sample of the rows chooses the cut; the others certify it.
        by_pilot = request.confidence is not None and not request.constraints
        kept_aside = None if self.confidence is None or by_pilot else self._kept_aside(truth, group)

        def chosen(column: Any, rows: Any) -> Any:
            return column if column is None or rows is None else column[rows]

        tunes = None if kept_aside is None else ~kept_aside
        columns = chosen(scores, tunes), chosen(truth, tunes), chosen(weight, tunes)
        source = ArraySource(columns[0], as_labels(columns[1]), columns[2])
        folds = self._folds(plan, scores, truth, weight) if self.stable else None
        (cut,) = tuning.tune(source, replace(request, pos_label=self._positive()), folds)
        cut = cut.with_sample(out_of_fold=plan.refit)
        seen = (*cut.seen, *self._trained_on(X, is_positive, plan))
        self._set_cut(cut.with_sample(seen=seen), functools.partial(_hull_of, *columns, self.prior))
        if self.confidence is not None:
            from surecut.certificates.certifying import certificate
            from surecut.certificates.evidence import Asked

            asked = Asked(self.confidence, weights=self.weights, held_out=True)
            if by_pilot:
                self.certificate_ = certificate(self.cut_, asked, tally=self._without_pilot(source))
            else:
                self.certificate_ = certificate(
                    self.cut_,
                    asked,
                    chosen(truth, kept_aside),
                    chosen(scores, kept_aside),
                    sample_weight=chosen(weight, kept_aside),
                    groups=chosen(group, kept_aside),
                )
        return self

    def _fit_labels(self, X: Any, y: Any, metric: Metric, sample_weight: Any, params: dict[str, Any]) -> Self:
        """The two steps for a target with a column per label."""
        if self._has_costs:
            raise ValueError("costs= and reject_cost= are for rows of one class each, but y has a column per label")
        average = "macro" if self.average is None else self.average
        asked: dict[str, Any] = {
            "constraint": self.constraint,
            "confidence": self.confidence,
            "prior": self.prior,
            "shrinkage": self.shrinkage,
            "stable": self.stable,
            "zero_division": self.zero_division,
            "random_state": self._seed(),
        }
        request = Request.of(metric, average=average, weights=self.weights, **asked)  # before anything is trained
        names = label_names(y)
        X, y = indexable(X, checked_indicators(y))
        weights = None if sample_weight is None else as_weights(sample_weight, _num_samples(X))
        routed = self._routed(params, sample_weight)
        plan = self._plan(X, y, routed.splitter.split)
        scores_of = functools.partial(label_scores, response_method=self.response_method, labels=y.shape[1])
        model, scores = self._trained(X, y, routed, plan, scores_of, progress=None)
        self._set_estimator(model, X, y, routed, plan)
        # Copies, as for one label.
        held_out = plan.held_out
        truth, held_weights = y[held_out], None if weights is None else np.array(weights[held_out])
        truth = truth.toarray() if is_sparse(truth) else np.array(truth)
        if average == "samples":
            cut = tune_thresholds(
                truth, scores, metric=metric, average=average, sample_weight=held_weights, labels=names, **asked
            )
        else:
            folds = self._folds(plan, scores, truth, held_weights) if self.stable else None
            (cut,) = tune_labels(label_source(truth, scores, held_weights), request, names, folds)
        self.sparse_output_ = is_sparse(y)
        seen = (*cut.seen, *self._labels_trained_on(X, y, plan, cut.confusion, scores_of))
        cut = cut.with_sample(out_of_fold=plan.refit, seen=seen)
        self._set_cut(cut, functools.partial(LabelHulls.of, truth, scores, held_weights, names))
        return self

    def _fit_classes(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], sample_weight: Any, params: dict[str, Any]
    ) -> Self:
        """The two steps for a column of three and more classes, or of any number of them with costs."""
        request = self._request_of_classes(classes)
        weights = None if sample_weight is None else as_weights(sample_weight, _num_samples(X))
        routed = self._routed(params, sample_weight)
        plan = self._plan(X, y, routed.splitter.split)
        scores_of = functools.partial(class_scores, response_method=self.response_method, classes=classes)
        model, scores = self._trained(X, y, routed, plan, scores_of, progress=None)
        self._set_estimator(model, X, y, routed, plan)
        require_classes(classes, self.classes_, "the model that predicts")
        if self.classes_.tolist() != classes.tolist():
            raise ValueError(f"the classes_ of {type(model).__name__} must be sorted, got {self.classes_.tolist()}")
        # Copies, as for one label.
        held_out = plan.held_out
        rows = _TuningRows(np.array(y[held_out]), scores, None if weights is None else np.array(weights[held_out]))
        rule = self._rule_of(rows, request)
        trained_on = self._labels_trained_on(X, one_hot(y, classes), plan, rule.confusion, scores_of)
        seen = (*rule.sample.seen, *trained_on)
        self._set_rule(rule.with_sample(out_of_fold=plan.refit, seen=seen), rows)
        return self

    def _request_of_classes(self, classes: NDArray[Any]) -> TopKRequest:
        """What is asked of a rule of several classes, validated."""
        refuse_threshold_options(self.get_params(deep=False), len(classes))
        if isinstance(self.metric, list | tuple):
            get_metric(self.metric)  # which refuses lists: a classifier has one rule
        return TopKRequest.of(
            self.metric,
            k=1,
            average=self.average,
            multiclass=True,
            shrinkage=self.shrinkage,
            stable=self.stable,
            missing="error",
            random_state=self._seed(),
            costs=Costs.of(self.costs, self.reject_cost, classes.tolist()),
        )

    def _rule_of(self, rows: _TuningRows, request: TopKRequest) -> TopK:
        """The rule of several classes that is best on some rows."""
        truth, scores, weight = rows
        asked = validation_rows(truth, scores, 1, sample_weight=weight, classes=self.classes_.tolist())
        rule: TopK = tune_rules(asked, request)
        return rule

    def _trained(
        self,
        X: Any,
        y: Any,
        routed: Bunch,
        plan: Splits,
        scores_of: ScoresOf,
        progress: bool | None = False,
    ) -> tuple[Any, NDArray[Any]]:
        """The model of the first split, and the scores of the rows that tune, of all splits."""
        trained = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_fit_and_score)(self.estimator, X, y, train, tune, routed.estimator.fit, scores_of)
            for train, tune in plan.splits
        )
        results = list(shown(trained, "training", len(plan.splits), progress=progress))
        return results[0][0], np.concatenate([scores for _, scores in results])

    def _set_estimator(self, model: Any, X: Any, y: Any, routed: Bunch, plan: Splits) -> None:
        """The model that predicts: the one that was tuned, or one trained on all rows."""
        if plan.refit:
            model = clone(self.estimator).fit(X, y, **_check_method_params(X, routed.estimator.fit))
        self.estimator_ = model
        self.classes_: Any = model.classes_ if hasattr(model, "classes_") else np.arange(y.shape[1])
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, attribute):
                setattr(self, attribute, getattr(model, attribute))

    def _metrics(self, metric: Metric) -> list[Metric]:
        """The metric and the quantities of the constraints."""
        return [metric, *(constraint.quantity for constraint in parse_constraints(self.constraint))]

    def _trained_on(self, X: Any, is_positive: NDArray[np.bool_], plan: Splits) -> tuple[RowSample, ...]:
        """Some of the rows that trained the model, with its scores: it must not be certified on them."""
        rows = plan.trained_on(len(is_positive))
        if rows is None:
            return ()
        scores = positive_scores(self.estimator_, _safe_indexing(X, rows), self.response_method, self._positive())
        return (RowSample.of_rows(scores, is_positive[rows], TRAINING),)

    def _labels_trained_on(
        self, X: Any, y: Any, plan: Splits, tuned: Confusion, scores_of: ScoresOf
    ) -> tuple[RowSample, ...]:
        """The same of many labels, for those of which most validation rows were there."""
        rows = plan.trained_on(y.shape[0])
        if rows is None:
            return ()
        labels, size = sampled_labels(np.asarray(tuned.positives), np.asarray(tuned.negatives))
        rows = rows[positions(len(rows), size)]
        scores = scores_of(self.estimator_, _safe_indexing(X, rows))
        truth = y[rows].toarray() if is_sparse(y) else y[rows]
        parts = {label: RowSample.of_rows(scores[:, label], truth[:, label] != 0) for label in labels.tolist()}
        return (replace(RowSample.of_labels(parts), role=TRAINING),)

    def _groups(self, routed: Bunch) -> NDArray[Any] | None:
        """The groups that the splitter was given, where something is to be promised."""
        groups = routed.splitter.split.get("groups")
        return None if groups is None or self.confidence is None else np.unique(groups, return_inverse=True)[1]

    def _check_promise(self, weights: NDArray[np.float64] | None, groups: NDArray[Any] | None) -> None:
        """Raise, before anything is trained, where a certificate would be refused."""
        from surecut.certificates.weights import require_both, require_counts, require_whole, without_ones

        require_both(self.weights, weights is not None)
        require_whole(np.ones(1) if weights is None else weights, self.weights)
        if self.confidence is None:
            return
        weighted = weights is not None and without_ones(weights, len(weights)) is not None
        if weighted:
            require_counts(self.weights, "confidence=")
        if groups is not None and (weighted or self.constraint is not None):
            what = "weights" if weighted else "a constraint"
            raise ValueError(
                f"groups of rows that depend on each other cannot be certified here with {what}: leave confidence out, "
                "and certify on groups that were kept from fit, certify(model.cut_, ..., groups=...)"
            )

    def _without_pilot(self, source: ArraySource) -> ScoreTally:
        """The rows that certify a cut which a pilot sample of all of them chose."""
        from surecut.certificates.assurance import without_pilot
        from surecut.certificates.weights import frequencies

        return without_pilot(frequencies(source.tally(), "confidence=", self.weights))

    def _kept_aside(self, y: NDArray[Any], groups: NDArray[Any] | None) -> NDArray[np.bool_]:
        """Which of the rows that did not train certify, and do not tune."""
        kept = np.zeros(len(y), dtype=bool)
        kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
        splitter = kind(n_splits=1, test_size=CERTIFYING_SHARE, random_state=self.random_state)
        kept[next(splitter.split(y, y, groups))[1]] = True
        return kept

    def _request(self, metric: Metric, has_groups: bool) -> Request:
        """What is asked of the rows that tune; with groups, stable cuts and shrinkage, promises come from others."""
        asked: dict[str, Any] = {
            "constraint": self.constraint,
            "prior": self.prior,
            "shrinkage": self.shrinkage,
            "stable": self.stable,
            "zero_division": self.zero_division,
            "random_state": self._seed(),
        }
        promised: dict[str, Any] = {"confidence": self.confidence, "weights": self.weights}
        from_others = has_groups or self.stable or check_shrinkage(self.shrinkage) != 0
        if not parse_constraints(self.constraint) and from_others:
            Request.of(metric, **promised)
            promised = {}
        return Request.of(metric, **asked, **promised)

    def _seed(self) -> int:
        """The seed of resamples; nothing is drawn where there are none."""
        return int(check_random_state(self.random_state).randint(2**31)) if self.stable else 0

    def _folds(
        self, plan: Splits, scores: NDArray[Any], truth: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> Folds | None:
        """Which model has given each score, where there are several."""
        if len(plan.splits) < 2:
            return None
        fold = np.repeat(np.arange(len(plan.splits)), [len(tune) for _, tune in plan.splits])
        present = slice(None) if weights is None else weights > 0  # others are not among the rows that tune
        _, fold = np.unique(fold[present], return_inverse=True)
        many = scores.reshape(len(truth), -1)[present], truth.reshape(len(truth), -1)[present] != 0
        return Folds(*many, fold)

    def retarget(
        self,
        metric: MetricLike | None = None,
        average: str | None = None,
        *,
        costs: CostsLike | None = None,
        reject_cost: ArrayLike | None = None,
    ) -> PlugInClassifier:
        """A fitted copy for another metric (and average), or for costs; neither data nor model are touched.

        Of two classes, and of many labels, the cut comes from the stored hulls: so it does for every linear-fractional
        metric and for MCC, whose best cuts are vertices of the hull, and for the averages macro and micro. Of three and
        more classes the rule is tuned again on the stored scores, for anything that `fit` takes.
        """
        check_is_fitted(self, "best_score_")
        if (metric is None) == (costs is None and reject_cost is None):
            raise ValueError("retarget needs a metric, or costs: give one of them")
        if hasattr(self, "top_k_"):
            return self._retarget_classes(metric, average, costs, reject_cost)
        if metric is None:
            raise ValueError(
                "a cut has no costs: set costs= and fit again, or pass a metric such as utility(fp=-2, fn=-9)"
            )
        if self.constraint is not None:
            raise ValueError("a constrained cut need not lie on the stored hull: set the metric and fit again")
        if self.confidence is not None:
            raise ValueError("the certificate is for the metric that was fitted: set the metric and fit again")
        if check_shrinkage(self.shrinkage) != 0:
            raise ValueError(
                "the stored hull is that of the labels, not of smoothed ones: set the metric and fit again"
            )
        if self.stable:
            raise ValueError("a stable cut need not lie on the stored hull: set the metric and fit again")
        other = copy.copy(self)
        other.metric = metric
        cut: Cut | MultilabelCut
        if isinstance(self.hull_, LabelHulls):
            other.average = self.cut_.average if average is None else average
            cut = self.hull_.best_cut(get_metric(metric), other.average)
        elif average is not None:
            raise ValueError(f"average={average!r} is for many labels, and this classifier was fitted on one")
        else:
            cut = self.hull_.best_cut(get_metric(metric))
            if self.pos_label is None:
                warn_of_assumed_positive(self.classes_, self.cut_.prior, [cut.metric])
        before = self.cut_
        cut = cut.with_sample(out_of_fold=before.out_of_fold, pos_label=before.pos_label, seen=before.seen)
        other._set_cut(cut, self.hull_)
        return other

    def _retarget_classes(self, metric: Any, average: str | None, costs: Any, reject_cost: Any) -> PlugInClassifier:
        if metric is not None and len(self.classes_) == 2:
            raise ValueError("two classes without costs have a cut: set costs=None, reject_cost=None and fit again")
        other = copy.copy(self)
        other.costs, other.reject_cost = costs, reject_cost
        if metric is None:
            other.metric, other.average = "f1", average  # which costs stand instead of
        else:
            other.metric, other.average = metric, self.average if average is None else average
        rule = other._rule_of(self._validation, other._request_of_classes(self.classes_))
        before = self.top_k_.sample
        rule = rule.with_sample(out_of_fold=before.out_of_fold, seen=before.seen)
        other._set_rule(rule, self._validation)
        return other

    def predict(self, X: Any) -> Any:
        """The positive class where the score reaches the threshold, the other class elsewhere.

        With three and more classes: the one with the largest a·score + b; with costs an action. With many labels: 1
        where a label's score reaches its threshold, 0 elsewhere; sparse if `y` was.
        """
        check_is_fitted(self, "best_score_")
        if hasattr(self, "top_k_"):
            return self._predicted_actions(X)
        predicted = self.cut_.predict(self._scores(X))
        if isinstance(self.cut_, MultilabelCut):
            return csr_array(predicted, dtype=np.int64) if self.sparse_output_ else predicted.astype(np.int64)
        positive = self._positive()
        (other,) = (label for label in self.classes_ if label != positive)
        return np.asarray(np.where(predicted, positive, other), dtype=self.classes_.dtype)

    def _predicted_actions(self, X: Any) -> NDArray[Any]:
        # A row whose scores are all −inf has no label, and gets the first class, as by numpy.argmax.
        positions = np.maximum(self.top_k_.predict(self._scores(X), as_="positions")[:, 0], 0)
        if self.top_k_.actions == self.top_k_.labels:
            return np.asarray(self.classes_[positions])
        return np.asarray(named(self.top_k_.actions)[positions])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score minus threshold, above zero exactly where `predict` gives `classes_[1]`, or the label.

        It ranks rows as the model does, and is finite where scores are. A score that equals the threshold, which is
        accepted, gives the smallest positive float. Where the cut predicts nothing, it is s − 1 for scores s < 0 and
        −1/(1 + s) for others, which are all negative; where the cut is −inf and predicts everything, the mirror image.

        With three and more classes: a·score + b of each class, and with costs the gain of each action, of which
        `predict` gives the largest.
        """
        check_is_fitted(self, "best_score_")
        if hasattr(self, "top_k_"):
            gain = self.top_k_.gain_of(self.top_k_.matrix_of(self._scores(X)))
            return gain[:, 1] - gain[:, 0] if gain.shape[1] == len(self.classes_) == 2 else gain
        many = isinstance(self.cut_, MultilabelCut)
        scores = self._scores(X).astype(np.float64)
        distance = _distances(scores, self.cut_.thresholds if many else self.cut_.threshold)
        return np.asarray(distance if many or self._positive() == self.classes_[1] else -distance)

    @available_if(_inner_has("predict_proba"))  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: Any) -> Any:
        """The model's own probabilities: the cut does not change them."""
        check_is_fitted(self, "best_score_")
        return self.estimator_.predict_proba(X)

    @available_if(_inner_has("predict_log_proba"))  # type: ignore[untyped-decorator]  # as above
    def predict_log_proba(self, X: Any) -> Any:
        """The model's own log-probabilities."""
        check_is_fitted(self, "best_score_")
        return self.estimator_.predict_log_proba(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """Parameters of `fit` go to the estimator's `fit` and, where it is an object, to the splitter."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        if hasattr(self.cv, "get_metadata_routing"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.classifier_tags.multi_class = inner.classifier_tags is not None and inner.classifier_tags.multi_class
        tags.classifier_tags.multi_label = inner.classifier_tags is not None and inner.classifier_tags.multi_label
        for name in ("sparse", "allow_nan", "positive_only"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        return tags

    @property
    def hull_(self) -> Hull | LabelHulls:
        """The ROC hull of the tuning rows, or the hulls of many labels, computed when it is first used."""
        if "_hull" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no hull_ before it is fitted")
        hull = self._hull
        if callable(hull):
            self._hull = hull = hull()
        return hull

    def __getstate__(self) -> Any:
        """What is pickled and copied: the hull, and not the rows that it is made from."""
        if "_hull" in vars(self):
            self.hull_  # noqa: B018  # computes it
        return super().__getstate__()

    if not TYPE_CHECKING:  # which would take every attribute for one that exists

        def __getattr__(self, name: str) -> Any:
            """Say where a fitted classifier lacks an attribute which other targets have."""
            if name == "certificate_" and "top_k_" in vars(self):
                raise AttributeError(
                    f"a rule of {len(self.classes_)} classes has no certificate_ of its own: call "
                    "certify(classifier.top_k_, y, scores) on held-out rows"
                )
            if name in OF_CUTS and "top_k_" in vars(self):
                raise AttributeError(
                    f"a rule of {len(self.classes_)} classes has no {name}: it is top_k_, and has a number a and an "
                    "offset for each class"
                )
            if name == "top_k_" and "cut_" in vars(self):
                raise AttributeError("top_k_ is for three and more classes, and for costs: this classifier has cut_")
            return object.__getattribute__(self, name)  # which raises

    def _set_rule(self, rule: TopK, rows: _TuningRows) -> None:
        self._forget("_hull", *OF_CUTS)
        self.top_k_ = rule
        self._validation = rows
        self.best_score_ = rule.value

    def _forget(self, *names: str) -> None:
        """Remove what an earlier fit, on another kind of target, has left."""
        for name in names:
            self.__dict__.pop(name, None)

    def _set_cut(self, cut: Cut | MultilabelCut, hull: Hull | LabelHulls | Callable[[], Hull | LabelHulls]) -> None:
        self._forget("top_k_", "_validation")
        self.cut_: Any = cut
        self._hull = hull
        self.best_score_ = cut.value
        if isinstance(cut, MultilabelCut):
            self.thresholds_ = cut.thresholds
        else:
            self.best_threshold_ = cut.threshold

    def _positive(self) -> Any:
        return positive_class(self.pos_label, self.classes_)

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)

    @property
    def _has_costs(self) -> bool:
        return self.costs is not None or self.reject_cost is not None

    def _scores(self, X: Any) -> NDArray[Any]:
        if hasattr(self, "top_k_"):
            return class_scores(self.estimator_, X, self.response_method, self.classes_)
        if isinstance(self.cut_, MultilabelCut):
            return label_scores(self.estimator_, X, self.response_method, len(self.cut_))
        return positive_scores(self.estimator_, X, self.response_method, self._positive())

    def _routed(self, params: dict[str, Any], sample_weight: Any) -> Bunch:
        """What goes where: by metadata routing if it is enabled, else only weights, to whoever takes them."""
        from sklearn import get_config

        routed = Bunch(estimator=Bunch(fit={}), splitter=Bunch(split={}))
        if get_config()["enable_metadata_routing"]:
            if sample_weight is not None:
                params = {**params, "sample_weight": sample_weight}
            if params:  # of nothing scikit-learn makes an object that is no mapping
                routed.update(process_routing(self, "fit", **params))
        elif sample_weight is not None and (name := _weight_parameter(self.estimator)) is not None:
            routed.estimator.fit = {name: sample_weight}
        return routed

    def _plan(self, X: Any, y: Any, split_params: dict[str, Any], groups: NDArray[Any] | None = None) -> Splits:
        if self.refit not in (True, False, "auto"):
            raise ValueError(f"refit must be True, False or 'auto', got {self.refit!r}")
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(f"cv must be a number, a share, a splitter, splits or 'prefit', got {self.cv!r}")
        if self._is_prefit:
            if self.refit is True:
                raise ValueError("a model that is fitted already is not fitted again: leave refit at 'auto'")
            check_is_fitted(self.estimator)
            return Splits([(None, slice(None))], refit=False)
        everything = np.arange(_num_samples(X))
        splits = [
            (everything[train], everything[tune]) for train, tune in self._splitter(y).split(X, y, **split_params)
        ]
        if not splits:
            raise ValueError("cv gives no split at all")
        several = len(splits) > 1
        if several and self.refit is False:
            raise ValueError("cv has several splits, each with a model of its own: refit must not be False")
        if self.confidence is not None and (several or self.refit is True):
            raise ValueError(
                "confidence= needs one model and rows that it was not trained on, but with folds or refit=True the "
                "model that predicts is trained on all rows: pass a share such as cv=1/3, or cv='prefit'"
            )
        for train, tune in splits:
            check_split(train, tune, groups, self.confidence is not None)
        return Splits(splits, refit=several if self.refit == "auto" else bool(self.refit))

    def _splitter(self, y: Any) -> Any:
        return splitter_of(self.cv, y, self.random_state)


def _hull_of(
    scores: NDArray[Any], is_positive: NDArray[np.bool_], weights: NDArray[np.float64] | None, prior: float | None
) -> Hull:
    """The hull of validation rows, which are checked."""
    tally = tally_rows(scores, is_positive, weights)
    return (tally if prior is None else tally.with_prior(prior)).hull


def _fit_and_score(
    estimator: Any, X: Any, y: Any, train: Any, tune: Any, fit_params: Any, scores_of: ScoresOf
) -> tuple[Any, NDArray[Any]]:
    """The model of one split, and its scores for the rows that tune."""
    model = estimator
    if train is not None:
        params = _check_method_params(X, fit_params, indices=train)
        try:
            model = clone(estimator).fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
        except ValueError as error:
            if y.ndim == 1 or takes_many_labels(estimator):
                raise
            name = type(estimator).__name__
            raise ValueError(
                f"{name} takes one label at a time ({error}): wrap it, OneVsRestClassifier({name}()) or "
                f"MultiOutputClassifier({name}())"
            ) from error
    return model, scores_of(model, _rows_of(X, train, tune))


def _rows_of(X: Any, train: Any, tune: Any) -> Any:
    """The rows that tune: all of them, as they are, where none trains."""
    return X if train is None else _safe_indexing(X, tune)


def _distances(scores: NDArray[np.float64], thresholds: Any) -> NDArray[np.float64]:
    """How far scores lie above thresholds: positive exactly where they reach them, and in their order."""
    threshold = np.broadcast_to(thresholds, scores.shape)
    least, largest = np.nextafter(0.0, 1.0), np.finfo(np.float64).max
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        distance = scores - threshold
        above_all = np.where(scores < 0, scores - 1, -1 / (1 + np.maximum(scores, 0)))
        below_all = np.where(scores > 0, scores + 1, 1 / (1 - np.minimum(scores, 0)))
    distance = np.where(np.isfinite(scores), np.clip(distance, -largest, largest), distance)
    distance = np.where(scores == threshold, least, distance)
    distance = np.where(threshold == np.inf, np.minimum(above_all, -least), distance)
    return np.asarray(np.where(threshold == -np.inf, np.maximum(below_all, least), distance))


def _weight_parameter(estimator: Any) -> str | None:
    """The name under which an estimator's `fit` takes weights; None, with a warning, if it takes none."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    if has_fit_parameter(estimator, "sample_weight"):
        return f"{prefix}sample_weight"
    if not isinstance(estimator, FrozenEstimator):
        warnings.warn(
            f"{type(estimator).__name__} takes no sample_weight: it is trained without, and the weights only tune",
            UserWarning,
            stacklevel=4,
        )
    return None
