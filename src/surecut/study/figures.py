"""The common look of the figures: lines with standard-error bands, safe for all eyes, as SVG and PNG."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from surecut._files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#999999")
"""Okabe and Ito's colours."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def panels(rows: int, columns: int, *, width: float = 4.6, height: float = 3.4) -> tuple[Figure, Any]:
    """A figure with a grid of axes."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def curve(axes: Axes, n: Iterable[float], mean: Any, error: Any, label: str, look: int, linestyle: str = "-") -> None:
    """A line through means with a band of one standard error on both sides."""
    n, mean, error = np.asarray(list(n), dtype=float), np.asarray(mean, dtype=float), np.asarray(error, dtype=float)
    colour, marker = COLOURS[look % len(COLOURS)], MARKERS[look % len(MARKERS)]
    axes.plot(n, mean, label=label, color=colour, marker=marker, markersize=4, linewidth=1.4, linestyle=linestyle)
    axes.fill_between(n, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def means(table: pd.DataFrame, column: str, by: Sequence[str] = ("n",)) -> pd.DataFrame:
    """Mean and standard error of a column of independent rows, for each value of some others."""
    grouped = table.groupby(list(by))[column]
    return grouped.agg(mean="mean", error="sem").reset_index()


def tidy(axes: Axes, *, title: str = "", xlabel: str = "training examples", ylabel: str = "") -> None:
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def sizes_axis(axes: Axes, table: pd.DataFrame, by: str = "learner") -> None:
    """A logarithmic axis whose ticks are the sizes that were run, with the repetitions where some are lacking."""
    counts = table.groupby(["n", by]).repetition.nunique()
    ticks = sorted({int(n) for n in table.n})
    labels = []
    for n in ticks:
        these = counts.xs(n, level="n")
        fewest, most = these.min(), these.max()
        size = f"{n // 1_000}k" if n % 1_000 == 0 else f"{n:,}"
        few = f"\n×{fewest}–{most}" if fewest < most else f"\n×{most}"
        labels.append(size + (few if fewest < counts.max() else ""))
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks(ticks, labels, fontsize=8)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG and PNG; the same figure gives the same bytes."""
    paths = []
    with mpl.rc_context({"svg.hashsalt": "surecut", "svg.fonttype": "path"}):
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, dpi=110, metadata=metadata)
            paths.append(folder / f"{name}.{kind}")
            write_whole(paths[-1], picture.getvalue())
    return paths
