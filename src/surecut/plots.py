"""Pictures of cuts, after scikit-learn's display objects: made by ``from_…``, drawn by ``plot``, never shown by us.

A display holds the numbers; `plot(ax=…)` draws them, keeps the artists as attributes that end in an underscore, and
returns the display.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut.metrics import get_metric
from surecut.tally import ScoreTally

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.cut import Cut
    from surecut.tuning import MetricLike


@dataclass
class MetricThresholdDisplay:
    """A metric at every threshold, with the cut on it.

    Attributes
    ----------
    thresholds, values
        The curve, thresholds ascending; NaN where the metric is undefined.
    cut
        The cut that is marked.
    cut_value
        The metric's value at the cut on these rows.
    line_, cut_line_, ax_, figure_
        What `plot` has drawn.

    Examples
    --------
    >>> display = MetricThresholdDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], metric="f1")
    >>> display.cut.threshold, display.cut_value
    (0.25, 0.8)
    """

    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]
    cut: Cut
    cut_value: float
    line_: Any = field(default=None, init=False, repr=False)
    cut_line_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_options: Any) -> Self:
        """Draw the curve and the cut.

        Parameters
        ----------
        ax
            Axes to draw on; new ones unless given.
        name
            The curve's name in the legend; the metric's unless given.
        **line_options
            For matplotlib's `Axes.step`.
        """
        self.ax_, self.figure_ = _axes(ax)
        options = {"where": "pre", "label": name or self.cut.metric.name, **line_options}
        (self.line_,) = self.ax_.step(self.thresholds, self.values, **options)
        colour = self.line_.get_color()
        if np.isfinite(self.cut.threshold):
            label = f"cut {self.cut.threshold:.4g}: {self.cut_value:.4g}"
            self.cut_line_ = self.ax_.axvline(self.cut.threshold, color=colour, linestyle="--", linewidth=1)
            self.ax_.plot(self.cut.threshold, self.cut_value, "o", color=colour, label=label)
        self.ax_.set(xlabel="threshold", ylabel=self.cut.metric.name)
        self.ax_.legend(loc="best")
        return self

    @classmethod
    def from_tally(
        cls,
        tally: ScoreTally,
        *,
        metric: MetricLike = "f1",
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a metric of tallied scores, with its best cut."""
        return cls._of(tally, tally.best_cut(get_metric(metric))).plot(ax, name=name, **line_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        metric: MetricLike = "f1",
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a metric of labels and scores, with its best cut."""
        tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        return cls.from_tally(tally, metric=metric, ax=ax, name=name, **line_options)

    @classmethod
    def from_cut(
        cls,
        cut: Cut,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw the metric of a cut that is already tuned, on these rows, and where the cut stands."""
        tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        if cut.prior_given:
            tally = tally.with_prior(cut.prior)
        return cls._of(tally, cut).plot(ax, name=name, **line_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        metric: MetricLike | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        response_method: str = "auto",
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a fitted classifier's metric on these rows.

        A `PlugInClassifier` is drawn with its own metric, cut and positive class; any other classifier with the best
        cut for `metric` (F1 unless said otherwise).
        """
        from surecut.classifier import PlugInClassifier

        if isinstance(estimator, PlugInClassifier):
            tuned = estimator if metric is None else estimator.retarget(metric)
        else:
            tuned = PlugInClassifier(
                estimator, metric=metric or "f1", cv="prefit", pos_label=pos_label, response_method=response_method
            ).fit(X, y, sample_weight=sample_weight)
        is_positive = np.asarray(y) == tuned._positive()
        return cls.from_cut(
            tuned.cut_, is_positive, tuned._scores(X), sample_weight=sample_weight, ax=ax, name=name, **line_options
        )

    @classmethod
    def _of(cls, tally: ScoreTally, cut: Cut) -> Self:
        thresholds, values = tally.curve(cut.metric)
        at = np.searchsorted(-thresholds, -cut.threshold, side="right") - 1 if np.isfinite(cut.threshold) else 0
        return cls(thresholds[:0:-1], values[:0:-1], cut, float(values[at]))


def _axes(ax: Any) -> tuple[Any, Any]:
    """The axes to draw on and their figure; made by pyplot where none are given, as scikit-learn does."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ModuleNotFoundError:
            raise ModuleNotFoundError("displays need matplotlib: pip install 'surecut[plots]'") from None
        _, ax = plt.subplots()
    return ax, ax.figure
