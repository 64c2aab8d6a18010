"""Step 1 for linear models: any smooth loss, ridge-regularised, all labels trained together."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from surecut._inputs import as_weights
from surecut.linear.training import link_or_none, require_smooth_convex, train
from surecut.losses import CompositeLoss, get_loss

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

REACHABLE = 1e-12
"""Relative decreases below this cannot be told from rounding, whatever `tol` says."""


def _has_link(self: LinearSurrogate) -> bool:
    return link_or_none(get_loss(self.loss), 0.5) is not None


class LinearSurrogate(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier trained by any smooth convex loss, for one label or for many at once.

    For each label, with y ∈ {−1, 1}, it minimises ½‖w‖² + C Σᵢ ℓ(yᵢ, w·xᵢ + b) over w and the unpenalised b. With the
    logistic loss this is `LogisticRegression(C=C)`; with the squared loss it is `Ridge(alpha=1/(2*C))` on −1 and 1.

    All labels share the matrix products of one quasi-Newton method, on as many threads as BLAS may use. Dense features
    are centred and rotated first, so that the second derivative at the start is diagonal. Labels that are slow to
    converge take Newton steps of their own where there are at most a thousand features.

    Parameters
    ----------
    loss
        A name or a loss of `surecut.losses`, or one's own: convex, with a continuous gradient. The hinge has none.
    C
        Weight of the data against the penalty.
    fit_intercept
        Whether there is a b.
    tol
        A label is done when the next step promises to lower its objective by less than this share.
    max_iter
        Steps at most. Labels that are not done by then are told in a `ConvergenceWarning`.

    Attributes
    ----------
    coef_ : ndarray of shape (m, d)
        One row per label; one row in the binary case.
    intercept_ : ndarray of shape (m,)
        One b per label.
    classes_ : ndarray
        The two classes, sorted, of which the second is positive; in the multilabel case the labels' positions.
    multilabel_ : bool
        Whether y was a matrix.
    n_iter_ : ndarray of shape (m,)
        Steps taken.

    Notes
    -----
    A label that never occurs, or always, has a constant score if there is an intercept: the best one for the loss.
    Where that is infinite, as for the logistic loss, it is ψ((k + ½)/(n + 1)) for k positives in n rows, so
    −log(2n + 1) or log(2n + 1); n is the sum of the weights if there are any. For a loss without a link it is −1 or 1.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    >>> model = LinearSurrogate("squared_hinge", C=0.1).fit(X, Y)
    >>> model.coef_.shape, model.predict_proba(X).shape
    ((4, 20), (300, 4))
    """

    def __init__(
        self,
        loss: str | CompositeLoss = "logistic",
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-9,
        max_iter: int = 1000,
    ) -> None:
        self.loss = loss
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X
            Features, (n, d), dense or sparse.
        y
            Labels of two classes, (n,), or a matrix of zeros and ones, (n, m), dense or sparse.
        sample_weight
            Weights of the rows in the objective.
        """
        loss = get_loss(self.loss)
        require_smooth_convex(loss)
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], multi_output=True)
        weights = np.ones(X.shape[0]) if sample_weight is None else as_weights(sample_weight, X.shape[0])
        if not weights.all():
            present = np.flatnonzero(weights)
            X, y, weights = X[present], y[present], weights[present]
        models = train(
            loss,
            X,
            self._set_classes(y),
            weights,
            C=float(self.C),
            fit_intercept=bool(self.fit_intercept),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )
        self.coef_, self.intercept_ = models.coefficients.astype(X.dtype), models.intercepts.astype(X.dtype)
        self.n_iter_ = models.iterations
        self._warn_unless_done(models.promises)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The scores w·x + b: (n,) for two classes, (n, m) for a matrix of labels."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores if self.multilabel_ else np.ravel(scores)

    @available_if(_has_link)  # type: ignore[untyped-decorator]  # scikit-learn ships no types
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probabilities that the scores stand for.

        Of both classes, (n, 2), or of each label, (n, m), in the scores' own dtype. A loss without a link has no such
        method.
        """
        scores = self.decision_function(X)
        probability = np.asarray(get_loss(self.loss).inverse_link(scores))
        if not self.multilabel_:
            probability = np.column_stack((1 - probability, probability))
        return probability.astype(scores.dtype, copy=False)

    def predict(self, X: Any) -> Any:
        """The classes that are more probable than not, or a matrix of zeros and ones; sparse if y was."""
        half = link_or_none(get_loss(self.loss), 0.5) or 0.0
        predicted = self.decision_function(X) > half
        if not self.multilabel_:
            return np.asarray(self.classes_[predicted.astype(int)])
        return sparse.csr_array(predicted, dtype=np.int64) if self._sparse_labels else predicted.astype(np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
                raise ValueError(f"{name} must be a positive finite number, got {value!r}")
        if not isinstance(self.max_iter, Integral) or isinstance(self.max_iter, bool) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a positive integer, got {self.max_iter!r}")

    def _set_classes(self, y: Any) -> Any:
        """Learn what the labels are; return which are positive, one column per label."""
        self._sparse_labels = hasattr(y, "tocsc")
        self.multilabel_ = bool(self._sparse_labels or (y.ndim == 2 and y.shape[1] != 1))
        if self.multilabel_:
            self.classes_ = np.arange(y.shape[1])
            return _checked_indicators(y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. For several classes train "
                "each against the rest: OneVsRestClassifier(LinearSurrogate())"
            )
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"training needs rows of two classes, but y holds one class or none: {self.classes_.tolist()}"
            )
        return (y == self.classes_[1])[:, None]

    def _warn_unless_done(self, promises: NDArray[np.float64]) -> None:
        behind = np.flatnonzero(promises > max(float(self.tol), REACHABLE))
        if not len(behind):
            return
        which = f"{len(behind)} of {len(promises)} labels (the first at position {behind[0]})"
        warnings.warn(
            f"LinearSurrogate stopped before {which if self.multilabel_ else 'it'} had converged: after "
            f"{self.n_iter_[behind].max()} steps the next one promised to lower the objective by "
            f"{promises[behind].max():.1g} of it, and tol={self.tol:g}. Scale the features (StandardScaler), raise "
            f"max_iter={self.max_iter}, or lower C",
            ConvergenceWarning,
            stacklevel=3,
        )


def _checked_indicators(y: Any) -> Any:
    """Which labels are present: a boolean matrix, by columns if sparse."""
    values = y.data if hasattr(y, "tocsc") else y
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        found = np.unique(values[:50].astype(str)).tolist()[:5]
        raise ValueError(
            f"a matrix y must hold a column of zeros and ones for each label, got values such as {found}: "
            "turn it into one, for example by MultiLabelBinarizer or (y > 0)"
        )
    if not hasattr(y, "tocsc"):
        return np.asarray(y, dtype=bool)
    y = y.tocsc().astype(bool)
    y.sum_duplicates()
    return y
