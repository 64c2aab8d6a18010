"""Pictures of a cut: its metric at every threshold, and what is promised of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut.core.tally import ScoreTally
from surecut.decisions.wording import tolerance_text
from surecut.metrics import get_metric
from surecut.plots.axes import axes_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.certificates.certificate import Certificate
    from surecut.decisions.cut import Cut
    from surecut.decisions.stability import Stability
    from surecut.tuning.request import MetricLike


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
    line_, cut_line_, spread_, near_optimal_, ax_, figure_
        What `plot` has drawn. Of a stable cut it draws two bands, which hold 90 % and half of the resampled thresholds,
        and a bar at the top, the thresholds that are near-optimal on the validation rows.

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
    spread_: Any = field(default=None, init=False, repr=False)
    near_optimal_: Any = field(default=None, init=False, repr=False)
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
        self.ax_, self.figure_ = axes_of(ax)
        options = {"where": "pre", "label": name or self.cut.metric.name, **line_options}
        (self.line_,) = self.ax_.step(self.thresholds, self.values, **options)
        colour = self.line_.get_color()
        if np.isfinite(self.cut.threshold):
            label = f"cut {self.cut.threshold:.4g}: {self.cut_value:.4g}"
            self.cut_line_ = self.ax_.axvline(self.cut.threshold, color=colour, linestyle="--", linewidth=1)
            self.ax_.plot(self.cut.threshold, self.cut_value, "o", color=colour, label=label)
        if self.cut.stability is not None:
            self._draw_stability(self.cut.stability, colour)
        self.ax_.set(xlabel="threshold", ylabel=self.cut.metric.name)
        self.ax_.legend(loc="best")
        return self

    def _draw_stability(self, stability: Stability, colour: Any) -> None:
        """Draw the spread of resampled thresholds and the near-optimal range; infinite ends reach the axes' edge."""
        limits = self.ax_.get_xlim()
        lowest, lower_quarter, _, upper_quarter, highest = np.clip(stability.quantiles, *limits)
        name = f"resampled thresholds: 90 % and half of {stability.resamples:,}"
        self.spread_ = (
            self.ax_.axvspan(lowest, highest, color=colour, alpha=0.12, linewidth=0, label=name),
            self.ax_.axvspan(lower_quarter, upper_quarter, color=colour, alpha=0.18, linewidth=0),
        )
        (self.near_optimal_,) = self.ax_.plot(
            np.clip(stability.near_optimal, *limits),
            (0.988, 0.988),
            transform=self.ax_.get_xaxis_transform(),
            color="black",
            linewidth=4,
            solid_capstyle="butt",
            label=f"near-optimal: {tolerance_text(stability)}",
        )
        self.ax_.set_xlim(limits)

    @classmethod
    def from_tally(
        cls,
        tally: ScoreTally,
        *,
        metric: MetricLike = "f1",
        cut: Cut | None = None,
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a metric of tallied scores, with its best cut or with one that was tuned elsewhere."""
        if cut is None:
            cut = tally.best_cut(get_metric(metric))
        thresholds, values = tally.curve(cut.metric)
        display = cls(thresholds[:0:-1], values[:0:-1], cut, float(values[tally.candidates.at(cut.threshold)]))
        return display.plot(ax, name=name, **line_options)

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
        tally = _tally_for(cut, y_true, y_score, sample_weight, pos_label)
        return cls.from_tally(tally, cut=cut, ax=ax, name=name, **line_options)

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
        tally, cut = _of_estimator(estimator, X, y, metric, sample_weight, pos_label, response_method)
        return cls.from_tally(tally, cut=cut, ax=ax, name=name, **line_options)


@dataclass
class CertificateDisplay:
    """A metric's curve within its simultaneous band, and what is promised of the cut.

    The band holds the true curve at every threshold at once with the confidence; so it does at the cut, although the
    same rows may have chosen it.

    Attributes
    ----------
    thresholds, values, lower, upper
        The curve and its band, thresholds ascending.
    cut, certificate
        The cut that is marked, and its certificate.
    line_, band_, limits_, ax_, figure_
        What `plot` has drawn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(500)
    >>> display = CertificateDisplay.from_predictions(rng.random(500) < y_score, y_score, metric="f1")
    >>> display.certificate.lower < display.cut.value
    True
    """

    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    cut: Cut
    certificate: Certificate
    line_: Any = field(default=None, init=False, repr=False)
    band_: Any = field(default=None, init=False, repr=False)
    limits_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_options: Any) -> Self:
        """Draw the curve, its band, and the certificate's limits at the cut."""
        self.ax_, self.figure_ = axes_of(ax)
        sure = f"{100 * self.certificate.confidence:g} %"
        (self.line_,) = self.ax_.plot(
            self.thresholds, self.values, **{"label": name or self.cut.metric.name, **line_options}
        )
        colour = self.line_.get_color()
        self.band_ = self.ax_.fill_between(
            self.thresholds, self.lower, self.upper, color=colour, alpha=0.2, linewidth=0, label=f"{sure} band"
        )
        if np.isfinite(self.cut.threshold):
            value, low, high = self.certificate.value, self.certificate.lower, self.certificate.upper
            self.limits_ = self.ax_.errorbar(
                self.cut.threshold,
                value,
                yerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
                fmt="o",
                color="black",
                capsize=4,
                label=f"at least {low:.4g} ({sure}, {self.certificate.method})",
            )
        self.ax_.set(xlabel="threshold", ylabel=self.cut.metric.name)
        self.ax_.legend(loc="best")
        return self

    @classmethod
    def from_tally(
        cls,
        tally: ScoreTally,
        *,
        metric: MetricLike = "f1",
        cut: Cut | None = None,
        confidence: float = 0.95,
        weights: str | None = None,
        held_out: bool | None = None,
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a metric of tallied scores; the certificate is that of the band, which any rows allow.

        For a cut that was tuned on other rows these rows are kept aside, and the certificate is the sharper
        ``"holdout"``. `weights` and `held_out` are those of `certify`.
        """
        from surecut.certificates.bands import curve_band
        from surecut.certificates.certifying import certify
        from surecut.certificates.held_out import rows_tuned
        from surecut.overlap import Overlap

        if cut is None:
            cut = tally.best_cut(get_metric(metric))
        others = not tally.has_tuned(cut) and rows_tuned(cut, {0: tally}) is Overlap.NONE
        method = "holdout" if held_out or (others and held_out is None) else "uniform"
        certificate = certify(
            cut, tally=tally, confidence=confidence, method=method, weights=weights, held_out=held_out
        )
        lower, upper = curve_band(cut.metric, tally, tally.confusion, confidence, weights)
        thresholds, values = tally.curve(cut.metric)
        drawn = slice(None, 0, -1)
        display = cls(thresholds[drawn], values[drawn], lower[drawn], upper[drawn], cut, certificate)
        return display.plot(ax, name=name, **line_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        metric: MetricLike = "f1",
        confidence: float = 0.95,
        pos_label: Any = None,
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a metric of labels and scores, with the best cut and what can be promised of it."""
        tally = ScoreTally.from_scores(y_true, y_score, pos_label=pos_label)
        return cls.from_tally(tally, metric=metric, confidence=confidence, ax=ax, name=name, **line_options)

    @classmethod
    def from_cut(
        cls,
        cut: Cut,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        confidence: float = 0.95,
        held_out: bool | None = None,
        pos_label: Any = None,
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw what these rows, fresh or those that tuned it, promise of a cut."""
        tally = _tally_for(cut, y_true, y_score, None, pos_label)
        return cls.from_tally(
            tally, cut=cut, confidence=confidence, held_out=held_out, ax=ax, name=name, **line_options
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        metric: MetricLike | None = None,
        confidence: float = 0.95,
        held_out: bool | None = None,
        pos_label: Any = None,
        response_method: str = "auto",
        ax: Any = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw what rows that did not train it promise of a classifier's cut."""
        tally, cut = _of_estimator(estimator, X, y, metric, None, pos_label, response_method)
        return cls.from_tally(
            tally, cut=cut, confidence=confidence, held_out=held_out, ax=ax, name=name, **line_options
        )


def _tally_for(cut: Cut, y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any) -> ScoreTally:
    """Rows at the prior for which a cut was tuned."""
    pos_label = cut.positive_in(y_true, pos_label)
    tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
    return tally.with_prior(cut.prior) if cut.prior_given else tally


def _of_estimator(
    estimator: Any, X: Any, y: Any, metric: Any, sample_weight: Any, pos_label: Any, response_method: str
) -> tuple[ScoreTally, Cut]:
    """A classifier's scores on some rows, and its cut: its own, or the best one on these rows."""
    from surecut.classifier.plug_in import PlugInClassifier

    if isinstance(estimator, PlugInClassifier):
        tuned = estimator if metric is None else estimator.retarget(metric)
    else:
        tuned = PlugInClassifier(
            estimator, metric=metric or "f1", cv="prefit", pos_label=pos_label, response_method=response_method
        ).fit(X, y, sample_weight=sample_weight)
    if hasattr(tuned, "top_k_"):
        raise ValueError(
            f"a threshold is for one class, and this is a rule of {len(tuned.classes_)}: for a class c against the "
            "others draw from_predictions(y == c, scores[:, c])"
        )
    is_positive = np.asarray(y) == tuned._positive()
    return _tally_for(tuned.cut_, is_positive, tuned._scores(X), sample_weight, None), tuned.cut_
