"""``surecut demo``: what a tuned cut is worth, on data that scikit-learn ships.

Handwritten digits, each picture reduced to the means of its eight columns of pixels: which of them are an 8? One in
ten is. A logistic regression is trained on some pictures, its scores are cut on others, and all cuts are judged on the
rest. One such split says little, so it is made again and again.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._files import require_folder, write_whole
from surecut.core.tally import ScoreTally
from surecut.metrics import AM, Accuracy, FBeta, Jaccard, Metric, Utility
from surecut.tuning.threshold import tune_threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.cut import Cut

METRICS: dict[str, Metric] = {
    "F1": FBeta(1),
    "F2": FBeta(2),
    "Jaccard": Jaccard(),
    "AM (balanced accuracy)": AM(),
    "cost: miss 10, alarm 1": Utility(fn=-10, fp=-1),
    "accuracy": Accuracy(),
}
USUAL = 0.5

SPLITS = 20
"""So many random splits of the pictures; values are means over them."""


@dataclass(frozen=True)
class Row:
    """One metric on the test rows, in the mean of all splits: at the usual cut, at the best cut of the tuning rows, and
    at the stable one. The stable cut of the first split comes with it."""

    name: str
    cut: Cut
    usual: float
    exact: float
    stable: float


@dataclass(frozen=True)
class Story:
    """What the demo measured; `tuning` are the tuning rows of the first split."""

    rows: list[Row]
    tuning: ScoreTally
    sizes: dict[str, int]
    prior: float


class Split(NamedTuple):
    """Tuning and test rows of one split, with the model's probabilities."""

    tune: NDArray[np.bool_]
    tune_scores: NDArray[np.float64]
    test: NDArray[np.bool_]
    test_scores: NDArray[np.float64]
    trained: int


def measure(random_state: int = 0, splits: int = SPLITS) -> Story:
    """Train, tune and test on three disjoint parts of the data, again and again."""
    every = [_split(random_state + i) for i in range(splits)]
    first = every[0]
    metrics = list(METRICS.values())
    values = np.zeros((splits, 3, len(metrics)))
    cuts: list[Cut] = []
    for i, one in enumerate(every):
        exact, stable = (
            list(tune_threshold(one.tune, one.tune_scores, metric=metrics, stable=is_stable).values())
            for is_stable in (False, True)
        )
        predicted = [
            [one.test_scores >= USUAL] * len(metrics),
            *([cut.predict(one.test_scores) for cut in found] for found in (exact, stable)),
        ]
        values[i] = [
            [metric.score(one.test, p) for metric, p in zip(metrics, of_cut, strict=True)] for of_cut in predicted
        ]
        cuts = cuts or stable
    means = values.mean(axis=0).T.tolist()
    rows = [Row(name, cut, *mean) for name, cut, mean in zip(METRICS, cuts, means, strict=True)]
    sizes = {"train": first.trained, "tune": len(first.tune), "test": len(first.test)}
    prior = float(np.concatenate((first.tune, first.test)).mean())
    return Story(rows, ScoreTally.from_scores(first.tune, first.tune_scores), sizes, prior)


def _split(random_state: int) -> Split:
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pictures, digits = load_digits(return_X_y=True)
    columns, is_eight = pictures.reshape(-1, 8, 8).mean(axis=1), digits == 8

    def split(X: Any, y: Any, share: float) -> Any:
        return train_test_split(X, y, test_size=share, stratify=y, random_state=random_state)

    X_rest, X_test, y_rest, y_test = split(columns, is_eight, 0.4)
    X_train, X_tune, y_train, y_tune = split(X_rest, y_rest, 1 / 3)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
    tune_scores, test_scores = (model.predict_proba(X)[:, 1] for X in (X_tune, X_test))
    return Split(y_tune, tune_scores, y_test, test_scores, len(y_train))


def show(out: Path, random_state: int = 0) -> None:
    """Print the table and save the picture."""
    from rich.console import Console
    from rich.table import Table

    require_folder(out)  # before the work, not after it
    story = measure(random_state)
    console = Console()
    sizes = ", ".join(f"{part} {number}" for part, number in story.sizes.items())
    console.print(
        "Handwritten digits, each seen as the mean of every column of its pixels:\n"
        f"which are an 8? {story.prior:.1%} are. Logistic regression, {sizes}.\n"
        f"Values on test rows, which neither training nor tuning saw: means of {SPLITS}\n"
        "random splits.\n",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("metric")
    for heading in ("cut at 0.5", "best cut", "stable cut", "gain"):
        table.add_column(heading, justify="right")
    for row in story.rows:
        gain = round(row.stable, 3) - round(row.usual, 3)
        colour = "green" if gain > 0 else "red" if gain < 0 else "dim"
        table.add_row(
            row.name, f"{row.usual:.3f}", f"{row.exact:.3f}", f"{row.stable:.3f}", f"[{colour}]{gain:+.3f}[/]"
        )
    console.print(table)
    console.print(
        "\nLarger is better; the cost is per row, as a negative number. The best cut is\n"
        "that of the tuning rows; a stable cut is for new rows. For accuracy 0.5 is a\n"
        "good cut already: tuning pays where the metric is another one.",
        highlight=False,
    )
    try:
        draw(story, out)
    except ModuleNotFoundError:
        console.print("For the picture: pip install 'surecut\\[plots]'")
        return
    console.print(f"Picture saved: {out}", highlight=False, soft_wrap=True)


def draw(story: Story, out: Path) -> None:
    """Curves on the tuning rows, and both cuts' values on the test rows."""
    from matplotlib.figure import Figure

    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#222222")  # Okabe and Ito, safe for all eyes
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    curves, bars = figure.subplots(1, 2, width_ratios=(1.25, 1))
    shown = [(row, colour) for row, colour in zip(story.rows, colours, strict=True) if row.usual >= 0]
    for row, colour in shown:
        thresholds, values = story.tuning.curve(row.cut.metric)
        curves.step(thresholds[1:], values[1:], where="post", color=colour, label=row.name, linewidth=1.6)
        curves.plot(row.cut.threshold, row.cut.value, "o", color=colour, markersize=7)
        if row.cut.stability is not None:
            curves.plot(
                np.clip(row.cut.stability.spread, 0, 1), [row.cut.value] * 2, color=colour, linewidth=3, alpha=0.35
            )
    curves.axvline(USUAL, color="#777777", linestyle="--", linewidth=1)
    curves.text(USUAL + 0.01, 0.97, "usual cut", color="#555555", fontsize=9)
    curves.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="threshold on the probability of an 8", ylabel="value")
    curves.set_title("Tuning rows of one split: stable cuts, and 90 % of resampled ones", fontsize=11)
    curves.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=5, frameon=False)

    position = np.arange(len(shown))[::-1]
    for offset, label, colour, height in (
        (0.27, "cut at 0.5", "#CCCCCC", [row.usual for row, _ in shown]),
        (0.0, "best cut of the tuning rows", "#888888", [row.exact for row, _ in shown]),
        (-0.27, "stable cut", "#333333", [row.stable for row, _ in shown]),
    ):
        drawn = bars.barh(position + offset, height, height=0.25, color=colour, label=label)
        bars.bar_label(drawn, fmt="%.3f", padding=3, fontsize=8)
    bars.set_yticks(position, [row.name for row, _ in shown])
    bars.set(xlim=(0, 1.12), xlabel=f"value on test rows, mean of {SPLITS} splits")
    bars.set_title("Test rows: what the cuts are worth", fontsize=11)
    bars.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3, frameon=False)
    for axes in (curves, bars):
        axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format=out.suffix.lstrip(".") or "png", dpi=130)
    write_whole(out, picture.getvalue())
