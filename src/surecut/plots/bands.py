"""A picture of bands: the scores of each class, and what each zone holds of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut._inputs import check_missing, without_missing
from surecut.confusion import Confusion
from surecut.core.tally import ScoreTally
from surecut.core.zone_search import rows_between
from surecut.plots.axes import axes_of
from surecut.report.histogram import histogram, score_range
from surecut.zones import QUANTITIES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.decisions.bands import Bands

LABEL_WIDTH = 0.19
"""What the text of a zone takes of the width of the axes; texts closer than that stand above each other."""

LINE_HEIGHT = 0.17
"""What it takes of their height."""

VISIBLE = 0.005
"""A range that is narrower than this part of the axes cannot be seen, and is not in the legend."""


@dataclass
class BandsDisplay:
    """The scores of each class, the zones that bands divide them into, and what each zone holds.

    Attributes
    ----------
    bands
        The bands that are drawn.
    edges, positives, negatives
        The histogram: the share of each class between two edges; the outer bars hold what lies beyond.
    confusion
        Shape (zones, 2): these rows in each zone, negatives first.
    shares, ppv, npv
        The share of all rows in each zone, and the shares of positives and of negatives in it, at the prior for which
        the bands were tuned; NaN in empty zones.
    positive_bars_, negative_bars_, spans_, texts_, threshold_lines_, ranges_, ax_, figure_
        What `plot` has drawn. A zone that no score can be in has no span. The ranges at the bottom hold 90 % of the
        resampled thresholds where bands are stable; elsewhere all thresholds that leave every validation row in its
        zone.

    Examples
    --------
    >>> y_true, y_score = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> display = BandsDisplay.from_predictions(y_true, y_score, upper="ppv>=0.9", lower="npv>=0.9")
    >>> display.shares.tolist(), display.ppv.tolist()
    ([0.375, 0.25, 0.375], [0.0, 0.5, 1.0])
    """

    bands: Bands
    edges: NDArray[np.float64]
    positives: NDArray[np.float64]
    negatives: NDArray[np.float64]
    confusion: NDArray[Any]
    shares: NDArray[np.float64]
    ppv: NDArray[np.float64]
    npv: NDArray[np.float64]
    positive_bars_: Any = field(default=None, init=False, repr=False)
    negative_bars_: Any = field(default=None, init=False, repr=False)
    spans_: Any = field(default=None, init=False, repr=False)
    texts_: Any = field(default=None, init=False, repr=False)
    threshold_lines_: Any = field(default=None, init=False, repr=False)
    ranges_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, ax: Any = None, *, cmap: Any = "coolwarm_r", **bar_options: Any) -> Self:
        """Draw the histogram, positives upward and negatives downward, and the zones behind it.

        Parameters
        ----------
        ax
            Axes to draw on; new ones unless given.
        cmap
            The colours of zones, from the lowest to the highest: a colormap of matplotlib, or its name.
        **bar_options
            For matplotlib's `Axes.bar`.
        """
        self.ax_, self.figure_ = axes_of(ax)
        widths, options = np.diff(self.edges), {"align": "edge", **bar_options}
        self.positive_bars_ = self.ax_.bar(
            self.edges[:-1], self.positives, widths, **{"color": "#0072b2", "label": "positives", **options}
        )
        self.negative_bars_ = self.ax_.bar(
            self.edges[:-1], -self.negatives, widths, **{"color": "#c2560a", "label": "negatives", **options}
        )
        largest = max(self.positives.max(), self.negatives.max()) * 1.08
        self.ax_.set(xlim=(self.edges[0], self.edges[-1]), ylim=(-largest, largest))
        self.ax_.axhline(0, color="black", linewidth=0.6)
        self._draw_zones(cmap)
        self._draw_thresholds()
        self.ax_.yaxis.set_major_formatter(lambda value, _: f"{abs(value):.3g}")
        self.ax_.set(xlabel="score", ylabel="share of the class")
        self.ax_.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize="small")
        return self

    def _draw_zones(self, cmap: Any) -> None:
        """Draw a span and a text for each zone; texts stand above the axes, in as many lines as they need."""
        from matplotlib import colormaps
        from matplotlib.colors import Colormap

        colours = cmap if isinstance(cmap, Colormap) else colormaps[cmap]
        low, high = self.ax_.get_xlim()
        ends = np.clip([-np.inf, *self.bands.thresholds, np.inf], low, high)
        names = self.bands.zones
        edge = LABEL_WIDTH / 2
        centres = np.clip(((ends[:-1] + ends[1:]) / 2 - low) / (high - low), edge, 1 - edge)
        levels = _levels(centres, first=self.confusion.sum(axis=1) > 0)
        self.spans_, self.texts_ = [], []
        for zone, name in enumerate(names):
            if ends[zone] < ends[zone + 1]:
                colour = colours(0.12 + 0.76 * zone / (len(names) - 1))
                span = self.ax_.axvspan(ends[zone], ends[zone + 1], color=colour, alpha=0.28, linewidth=0, zorder=0)
                self.spans_.append(span)
            text = self.ax_.text(
                centres[zone],
                1.02 + LINE_HEIGHT * levels[zone],
                f"{_shortened(name)}\n{self._zone_text(zone)}",
                transform=self.ax_.transAxes,
                ha="center",
                va="bottom",
                fontsize="small",
                parse_math=False,
            )
            self.texts_.append(text)

    def _zone_text(self, zone: int) -> str:
        """Write the share of a zone, and the share of positives in it, or in the lowest zone that of negatives."""
        if not self.confusion[zone].sum():
            return "empty"
        what, value = ("NPV", self.npv[zone]) if zone == 0 else ("PPV", self.ppv[zone])
        return f"{self.shares[zone]:.1%} of rows\n{what} {value:.1%}"

    def _draw_thresholds(self) -> None:
        """Draw the thresholds that are inside the axes, and at the bottom where each may be."""
        low, high = self.ax_.get_xlim()
        inside = np.flatnonzero((self.bands.thresholds >= low) & (self.bands.thresholds <= high)).tolist()
        texts = list(dict.fromkeys(f"{self.bands.thresholds[boundary]:.4g}" for boundary in inside))
        label = f"threshold{'s' if len(texts) > 1 else ''} {', '.join(texts)}"
        said = "90 % of resampled thresholds" if self.bands.stability else "thresholds with the same zones"
        self.threshold_lines_, self.ranges_ = [], []
        for boundary in inside:
            stability = self.bands.stability[boundary] if self.bands.stability else None
            ends = np.clip(self.bands.intervals[boundary] if stability is None else stability.spread, low, high)
            is_visible = ends[1] - ends[0] > VISIBLE * (high - low)
            line = self.ax_.axvline(self.bands.thresholds[boundary], color="black", linewidth=1.2, label=label)
            (bar,) = self.ax_.plot(
                ends,
                (0.012, 0.012),
                transform=self.ax_.get_xaxis_transform(),
                color="black",
                linewidth=5,
                solid_capstyle="butt",
                label=said if is_visible else "",
            )
            label = ""
            said = "" if is_visible else said
            self.threshold_lines_.append(line)
            self.ranges_.append(bar)

    @classmethod
    def from_tally(cls, tally: ScoreTally, bands: Bands, *, ax: Any = None, **options: Any) -> Self:
        """Draw bands on tallied scores, at the prior that was given for the tally, or for the bands."""
        candidates = tally.candidates
        if tally.given_prior is None and bands.prior_given:
            candidates = tally.with_prior(bands.prior).candidates
        bars = histogram(candidates, score_range(candidates))
        counts = rows_between(candidates.entries, candidates.at(bands.thresholds).tolist())
        negatives, positives = counts.sum(axis=0)
        inside = Confusion(tp=counts[:, 1], fp=counts[:, 0], fn=positives - counts[:, 1], tn=negatives - counts[:, 0])
        if candidates.given_prior is not None:
            inside = inside.at_prior(candidates.given_prior)
        shares, ppv, npv = (QUANTITIES[name].evaluate(inside) for name in ("share", "ppv", "npv"))
        display = cls(
            bands=bands,
            edges=np.array(bars["edges"]),
            positives=np.array(bars["positive"]) / (positives or 1),
            negatives=np.array(bars["negative"]) / (negatives or 1),
            confusion=counts,
            shares=np.asarray(shares, dtype=float),
            ppv=np.asarray(ppv, dtype=float),
            npv=np.asarray(npv, dtype=float),
        )
        return display.plot(ax, **options)

    @classmethod
    def from_bands(
        cls,
        bands: Bands,
        y_true: ArrayLike | ScoreTally,
        y_score: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw bands that are already tuned on these rows: labels and scores, or a tally of them."""
        if isinstance(y_true, ScoreTally):
            return cls.from_tally(y_true, bands, ax=ax, **options)
        if y_score is None:
            raise TypeError("expected labels and scores, or a ScoreTally: y_score= is missing")
        pos_label = bands.positive_in(y_true, pos_label)
        tally = ScoreTally.from_scores(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label)
        return cls.from_tally(tally, bands, ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        bands: Bands | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        missing: str = "error",
        ax: Any = None,
        cmap: Any = "coolwarm_r",
        **asked: Any,
    ) -> Self:
        """Draw bands on labels and scores; unless some are given, they are tuned on these rows.

        Parameters
        ----------
        y_true, y_score, sample_weight, pos_label, missing
            The rows, as in `tune_bands`.
        bands
            Bands that were tuned elsewhere.
        ax, cmap
            As in `plot`.
        **asked
            What `tune_bands` takes, such as `upper`, `lower`, `gains` and `zones`.
        """
        from surecut.tuning.bands import tune_bands

        if bands is not None and asked:
            raise TypeError(f"bands= are tuned already: leave out {', '.join(asked)}")
        check_missing(missing, "error", "drop")
        if missing == "drop":
            y_true, y_score, sample_weight = without_missing(y_true, y_score, sample_weight)
        if bands is None:
            bands = tune_bands(y_true, y_score, sample_weight=sample_weight, pos_label=pos_label, **asked)
        return cls.from_bands(
            bands, y_true, y_score, sample_weight=sample_weight, pos_label=pos_label, ax=ax, cmap=cmap
        )


def _levels(centres: NDArray[np.float64], first: NDArray[np.bool_]) -> list[int]:
    """In which line each text stands so that none covers another: the lowest one with room; some choose first.

    >>> _levels(np.array([0.1, 0.2, 0.8]), np.array([False, True, True]))
    [1, 0, 0]
    """
    found: dict[int, int] = {}
    for one in np.argsort(~first, kind="stable").tolist():
        taken = {level for other, level in found.items() if abs(centres[one] - centres[other]) < LABEL_WIDTH - 1e-9}
        found[one] = next(level for level in range(len(centres)) if level not in taken)
    return [found[one] for one in range(len(centres))]


def _shortened(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"
