"""Beyond the paper: several classes, one model that minimises the log loss, and five ways to decide for a class.

- argmax: the class with the largest probability;
- one-vs-rest: the best F1 threshold of each class by itself, then the class whose probability is the furthest above its
  threshold; the thresholds of the tuning rows, or stable ones;
- the tuned rule: the largest a·p + b, best for macro-F1 on the tuning rows (exact), or tuned for new rows (stable).

A training set whose learning or tuning part lacks a class is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from surecut import tune_thresholds, tune_top_k
from surecut.study.experiment import Cell, Claim, Estimate, Experiment, Finding, Row, cheap_first
from surecut.study.learners import class_probabilities

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from surecut import TopK

    Array = NDArray[np.float64]

SYNTHETIC = {"normal-4": 4, "normal-10": 10}
"""Data sets of Gaussian classes, and how many classes they have."""

SIZES = {"normal-4": (300, 1_000, 3_000, 10_000), "normal-10": (300, 1_000, 3_000, 10_000), "digits": (150, 300, 600)}
TITLES = {"normal-4": "4 normal classes", "normal-10": "10 normal classes", "digits": "digits, thinned"}

RATIO = {"normal-4": 0.4, "normal-10": 0.7, "digits": 0.85}
"""Each class has this share of the rows of the class before it."""

FEATURES = 5
TEST_ROWS = {"normal-4": 20_000, "normal-10": 20_000, "digits": 300}

ARGMAX, ONE_VS_REST, STABLE_ONE_VS_REST = "argmax", "one-vs-rest", "one-vs-rest, stable"
EXACT, STABLE = "tuned, exact", "tuned, stable"
METHODS = (ARGMAX, ONE_VS_REST, STABLE_ONE_VS_REST, EXACT, STABLE)

OVERFITS = (
    "The exact rule is the best one of its tuning rows, and follows them where they are few: of digits 200 rows tune "
    "ten classes. The stable rule is for such cases."
)


def cells(scale: str) -> list[Cell]:
    largest, repetitions = {"smoke": (300, 2), "quick": (3_000, 5), "paper": (10_000, 20)}[scale]
    every: list[Cell] = [
        {"dataset": dataset, "n": n, "repetition": repetition}
        for dataset, sizes in SIZES.items()
        for n in sizes
        if n <= largest
        for repetition in range(repetitions)
    ]
    return cheap_first(every)


def run(cell: Cell, generator: np.random.Generator) -> list[Row]:
    from sklearn.metrics import f1_score

    X, y, X_test, y_test, draws = draw(cell["dataset"], cell["n"], generator)
    learn = 2 * len(y) // 3
    probabilities = class_probabilities(X[:learn], y[:learn])
    tuning, test = probabilities(X[learn:]), probabilities(X_test)
    rows: list[Row] = []
    for method in METHODS:
        decide = decision(method, y[learn:], tuning)
        found = [f1_score(y, decide(p), average="macro") for y, p in ((y[learn:], tuning), (y_test, test))]
        rows.append({"method": method, "draws": draws, "tuning_f1": found[0], "f1": found[1]})
    return rows


def draw(dataset: str, n: int, generator: np.random.Generator) -> tuple[Array, Any, Array, Any, int]:
    """Rows to learn and tune on, rows to test on, and how often the former were drawn."""
    if dataset in SYNTHETIC:
        means = generator.standard_normal((SYNTHETIC[dataset], FEATURES))
        share = RATIO[dataset] ** np.arange(len(means))
        share /= share.sum()

        def sample(rows: int) -> tuple[Array, Any]:
            y = generator.choice(len(means), rows, p=share)
            return means[y] + generator.standard_normal((rows, FEATURES)), y

        X_test, y_test = sample(TEST_ROWS[dataset])
    else:
        X_all, y_all = thinned_digits()
        order = generator.permutation(len(y_all))
        test, others = order[: TEST_ROWS[dataset]], order[TEST_ROWS[dataset] :]
        X_test, y_test = X_all[test], y_all[test]

        def sample(rows: int) -> tuple[Array, Any]:
            chosen = generator.permutation(others)[:rows]
            return X_all[chosen], y_all[chosen]

    classes, draws = len(np.unique(y_test)), 0
    while True:
        draws += 1
        X, y = sample(n)
        learn = 2 * n // 3
        if all(len(np.unique(part)) == classes for part in (y[:learn], y[learn:])):
            return X, y, X_test, y_test, draws


@lru_cache(maxsize=1)
def thinned_digits() -> tuple[Array, Any]:
    """scikit-learn's digits, pixels in [0, 1], of each digit fewer than of the one before."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    kept = [np.flatnonzero(y == digit) for digit in range(10)]
    kept = [rows[: round(len(rows) * RATIO["digits"] ** digit)] for digit, rows in enumerate(kept)]
    chosen = np.sort(np.concatenate(kept))
    return X[chosen] / 16, y[chosen]


def decision(method: str, y: Any, probabilities: Array) -> Callable[[Array], Any]:
    """A function from probabilities to classes, tuned on some rows."""
    if method == ARGMAX:
        return lambda p: p.argmax(axis=1)
    if method in (EXACT, STABLE):
        rule = tune_top_k(y, probabilities, k=1, metric="f1", stable=method == STABLE)
        return cast("TopK", rule).predict  # one metric, one rule
    indicators = (y[:, None] == np.arange(probabilities.shape[1])).astype(np.int8)
    cuts = tune_thresholds(indicators, probabilities, metric="f1", stable=method == STABLE_ONE_VS_REST)
    thresholds = np.minimum(cuts.thresholds, 1.0)  # +inf, where nothing is predicted
    return lambda p: (p - thresholds).argmax(axis=1)


def gains(table: pd.DataFrame, dataset: str, n: int, ours: str, other: str) -> Estimate:
    """How much more macro-F1 a method has on the same test rows than another one."""
    rows = table[(table.dataset == dataset) & (table.n == n)]
    wide = rows.pivot_table(index="repetition", columns="method", values="f1")
    return Estimate.of(wide[ours] - wide[other])


def figures(table: pd.DataFrame) -> dict[str, Figure]:
    from surecut.study.figures import curve, means, panels, sizes_axis, tidy

    names = [dataset for dataset in SIZES if dataset in set(table.dataset)]
    figure, axes = panels(2, len(names), height=3.2)
    for column, dataset in enumerate(names):
        rows = table[table.dataset == dataset]
        plain = rows[rows.method == ARGMAX].set_index(["n", "repetition"]).f1
        for look, method in enumerate(METHODS):
            own = rows[rows.method == method]
            beyond = own.assign(gain=own.f1 - plain.loc[list(zip(own.n, own.repetition, strict=True))].to_numpy())
            linestyle = "--" if method in (ONE_VS_REST, STABLE_ONE_VS_REST) else "-"
            for panel, quantity in enumerate(("f1", "gain")):
                if quantity == "f1" or method != ARGMAX:
                    line = means(beyond, quantity)
                    curve(axes[panel, column], line.n, line["mean"], line.error, method, look, linestyle)
        axes[1, column].axhline(0, color="#222222", linewidth=0.8)
        tidy(axes[0, column], title=TITLES[dataset], ylabel="macro-F1 on the test set")
        tidy(axes[1, column], ylabel="minus that of argmax")
        for panel in axes[:, column]:
            sizes_axis(panel, rows, "method")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(METHODS), frameon=False, fontsize=9)
    return {"macro-f1": figure}


def claims(table: pd.DataFrame) -> list[Claim]:
    cases = {dataset: sorted(rows.n.unique().tolist()) for dataset, rows in table.groupby("dataset", sort=False)}
    ends = {dataset: sizes[-1] for dataset, sizes in cases.items()}
    starts = {dataset: sizes[0] for dataset, sizes in cases.items()}
    every = [(dataset, n) for dataset, sizes in cases.items() for n in sizes]
    above = "above 0 by two standard errors in each data set"

    def compared(ours: str, other: str, where: Any) -> dict[tuple[str, int], Estimate]:
        return {(dataset, int(n)): gains(table, dataset, n, ours, other) for dataset, n in where}

    of_argmax, of_thresholds = (compared(EXACT, other, ends.items()) for other in (ARGMAX, ONE_VS_REST))
    everywhere = compared(STABLE, ARGMAX, every)
    few = compared(STABLE, EXACT, starts.items())
    best = table.groupby(["dataset", "n", "repetition"]).tuning_f1.max()
    exact = table[table.method == EXACT].set_index(["dataset", "n", "repetition"]).tuning_f1
    behind = int((best - exact.reindex(best.index) > 0).sum())
    return [
        Claim(
            "(Ours) With enough rows the tuned rule has a larger macro-F1 on new rows than argmax.",
            Finding.of(all(gain.is_above(0) for gain in of_argmax.values())),
            f"tuned minus argmax: {_listed(of_argmax)}",
            f"at the largest n the difference on the same test rows is {above}",
            remark=OVERFITS,
        ),
        Claim(
            "(Ours) It is better than the best threshold of each class and the largest excess over it.",
            Finding.of(all(gain.is_above(0) for gain in of_thresholds.values())),
            f"tuned minus one-vs-rest: {_listed(of_thresholds)}",
            f"at the largest n the difference is {above}",
            remark=OVERFITS,
        ),
        Claim(
            "(Ours) The stable rule is nowhere worse than argmax.",
            Finding.of(not any(gain.is_below(0) for gain in everywhere.values())),
            f"stable minus argmax: {_listed(everywhere)}",
            "at no size of a data set is the difference below 0 by two standard errors",
        ),
        Claim(
            "(Ours) With few rows the stable rule is better on new rows than the best one of the tuning rows.",
            Finding.of(all(gain.is_above(0) for gain in few.values())),
            f"stable minus exact: {_listed(few)}",
            f"at the smallest n the difference is {above}",
        ),
        Claim(
            "(Ours) No other way has a larger macro-F1 on the tuning rows than the exact rule.",
            Finding.of(behind == 0),
            f"another way is ahead in {behind} of {len(best):,} training sets",
            "it happens in none",
            remark="The one-vs-rest rules are of the same form, with a = 1.",
        ),
    ]


def _listed(gains: dict[tuple[str, int], Estimate]) -> str:
    return "; ".join(f"{dataset}, n = {n:,}: {gain}" for (dataset, n), gain in gains.items())


EXPERIMENT = Experiment(
    name="classes",
    title="several classes: one model, and five ways to decide for a class",
    section="",
    cells=cells,
    run=run,
    figures=figures,
    claims=claims,
    captions={
        "macro-f1": "Macro-F1 on the test set (top), and how much of it is beyond that of argmax on the same rows "
        "(bottom), as the training set grows; means of 20 repetitions at the paper's scale, bands are standard errors. "
        "Two thirds of the training set are learned from, one third is tuned on.",
    },
    paired=("n",),
)
