"""A picture of the cuts of many labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut.decisions.wording import label_text
from surecut.plots.axes import pyplot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.multilabel import MultilabelCut
    from surecut.tuning.request import MetricLike


@dataclass
class MultilabelDisplay:
    """The thresholds of many labels beside the value that each reaches, labels with the most positives on top.

    Whiskers on the thresholds of a stable cut hold 90 % of the resampled thresholds.

    Attributes
    ----------
    cut
        The cut whose labels are drawn.
    positions
        Which labels are drawn, as positions in `cut.labels`, from top to bottom.
    threshold_dots_, value_dots_, whiskers_, axes_, figure_
        What `plot` has drawn.

    Examples
    --------
    >>> Y_true = [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> Y_score = [[0.5, 0.25], [0.25, 0.75], [1.0, 0.5], [0.75, 1.0]]
    >>> MultilabelDisplay.from_predictions(Y_true, Y_score).cut.value
    0.9
    """

    cut: MultilabelCut
    positions: NDArray[np.intp]
    threshold_dots_: Any = field(default=None, init=False, repr=False)
    value_dots_: Any = field(default=None, init=False, repr=False)
    whiskers_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, axes: Any = None, **dot_options: Any) -> Self:
        """Draw thresholds and values side by side.

        Parameters
        ----------
        axes
            Two axes to draw on; new ones unless given.
        **dot_options
            For matplotlib's `Axes.plot`.
        """
        if axes is None:
            height = max(2.4, 1.2 + 0.24 * len(self.positions))
            self.figure_, axes = pyplot().subplots(1, 2, sharey=True, figsize=(8, height), layout="constrained")
        self.axes_, self.figure_ = tuple(axes), axes[0].figure
        left, right = self.axes_
        rows = np.arange(len(self.positions))
        options = {"marker": "o", "linestyle": "none", **dot_options}
        thresholds = self.cut.thresholds[self.positions]
        (self.threshold_dots_,) = left.plot(np.where(np.isfinite(thresholds), thresholds, np.nan), rows, **options)
        (self.value_dots_,) = right.plot(self.cut.per_label[self.positions], rows, **options)
        if self.cut.stability is not None:
            ends = self.cut.stability.quantiles[self.positions][:, [0, -1]]
            finite = np.concatenate((ends[np.isfinite(ends)], thresholds[np.isfinite(thresholds)]))
            if len(finite):  # infinite whiskers reach as far as the longest finite one
                low, high = np.clip(ends, finite.min(), finite.max()).T
                self.whiskers_ = left.hlines(
                    rows,
                    low,
                    high,
                    color=self.threshold_dots_.get_color(),
                    alpha=0.5,
                    label="90 % of resampled thresholds",
                )
                left.legend(loc="best")
        if self.cut.shared_threshold is not None and np.isfinite(self.cut.shared_threshold):
            left.axvline(
                self.cut.shared_threshold, color="grey", linestyle=":", label="shared by labels that cannot be tuned"
            )
            left.legend(loc="best")
        right.axvline(self.cut.value, color="grey", linestyle="--", label=f"{self.cut.average} {self.cut.value:.4g}")
        right.legend(loc="best")
        left.set_yticks(rows, [label_text(self.cut.labels[i]) for i in self.positions])
        if not left.yaxis_inverted():
            left.invert_yaxis()
        left.set_xlabel("threshold")
        right.set_xlabel(f"{self.cut.metric.name} of the label")
        return self

    @classmethod
    def from_cut(cls, cut: MultilabelCut, *, most: int = 30, axes: Any = None, **dot_options: Any) -> Self:
        """Draw a cut: the labels with the most positives, at most so many."""
        positives = np.asarray(cut.confusion.positives)
        return cls(cut, np.argsort(-positives, kind="stable")[:most]).plot(axes, **dot_options)

    @classmethod
    def from_predictions(
        cls,
        Y_true: Any,
        Y_score: Any,
        *,
        metric: MetricLike = "f1",
        average: str = "macro",
        labels: Iterable[Any] | None = None,
        most: int = 30,
        axes: Any = None,
        **dot_options: Any,
    ) -> Self:
        """Tune labels and scores of shape (rows, labels), and draw the cut."""
        from surecut.tuning.labels import tune_thresholds

        cut = tune_thresholds(Y_true, Y_score, metric=metric, average=average, labels=labels)
        return cls.from_cut(cut, most=most, axes=axes, **dot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        *,
        metric: MetricLike = "f1",
        average: str = "macro",
        labels: Iterable[Any] | None = None,
        response_method: str = "auto",
        most: int = 30,
        axes: Any = None,
        **dot_options: Any,
    ) -> Self:
        """Tune a fitted multilabel classifier on rows that did not train it, and draw the cut.

        Its scores are those of `predict_proba`, or of `decision_function` where it has none, unless `response_method`
        names one of them.
        """
        from surecut.classifier.outputs import label_names, label_scores

        scores = label_scores(estimator, X, response_method, len(label_names(Y)))
        return cls.from_predictions(
            Y, scores, metric=metric, average=average, labels=labels, most=most, axes=axes, **dot_options
        )
