"""From the paper's related work: is one training enough to be good at the F-measure?

Beside the two steps (train once, tune the threshold):

- the sequence of cost-sensitive trainings of Puthiya Parambath, Usunier and Grandvalet (2014): for t on a grid in
  (0, 1], false negatives cost 2 − t and false positives t; of the classifiers, cut at 0, the best on the tuning part;
- the bisection of Narasimhan, Ramaswamy, Saha and Agarwal (2015) on a model of probabilities: is an F of γ reached
  by the cut of η̂ at γ/2? An SVM, which has no probabilities, is first calibrated by Platt's sigmoid.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from surecut import get_metric, tune_threshold
from surecut.study.benchmarks import TITLES, binary_names, random_split
from surecut.study.experiment import Cell, Claim, Estimate, Experiment, Finding, Row, cheap_first
from surecut.study.learners import BINARY

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from surecut.datasets import Part

COSTS = np.arange(1, 21) / 20
HALVINGS = 30
MARGIN = 0.005
"""A difference in F that is not worth another training."""
SIZES = {"covtype": (1_000, 10_000, 100_000), "mnist49": (500, 1_000, 4_000), "gisette": (500, 1_000, 4_000)}


class Classifier(NamedTuple):
    """What a method ends up with, and how many trainings it took."""

    predict: Callable[[Any], NDArray[np.bool_]]
    trainings: int


def two_steps(learner: str, learn: Part, tune: Part, seed: int) -> Classifier:
    """Train once, cut the scores where F is best."""
    scorer = BINARY[learner](learn.X, learn.y, seed)
    cut = tune_threshold(tune.y, scorer.score(tune.X), metric="f1")
    return Classifier(lambda X: cut.predict(scorer.score(X)), 1)


def cost_sensitive_sequence(learner: str, learn: Part, tune: Part, seed: int) -> Classifier:
    """Train for every cost of the grid, take the classifier whose F is best."""
    f1 = get_metric("f1")
    weights = (np.where(learn.y == 1, 2 - t, t) for t in COSTS)
    trained = [BINARY[learner](learn.X, learn.y, seed, sample_weight=weight) for weight in weights]
    best = max(trained, key=lambda scorer: f1.score(tune.y, scorer.score(tune.X) >= 0))
    return Classifier(lambda X: best.score(X) >= 0, len(trained))


def bisection(learner: str, learn: Part, tune: Part, seed: int) -> Classifier:
    """Train once, halve the interval in which the best F lies, on probabilities."""
    scorer = BINARY[learner](learn.X, learn.y, seed)
    scores = scorer.score(tune.X)
    slope, intercept = (1.0, 0.0) if learner == "LR" else platt(scores, tune.y)
    probability = special.expit(slope * scores + intercept)
    f1 = get_metric("f1")
    lower, upper, threshold = 0.0, 1.0, 0.5
    for _ in range(HALVINGS):
        gamma = (lower + upper) / 2
        if f1.score(tune.y, probability >= gamma / 2) >= gamma:
            lower, threshold = gamma, gamma / 2
        else:
            upper = gamma
    return Classifier(lambda X: special.expit(slope * scorer.score(X) + intercept) >= threshold, 1)


def platt(scores: NDArray[np.float64], y: NDArray[np.int8]) -> tuple[float, float]:
    """Slope and intercept of the sigmoid that turns scores into probabilities."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=np.inf).fit(scores[:, None], y)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


METHODS: dict[str, tuple[Callable[..., Classifier], str]] = {
    "two steps, LR": (two_steps, "LR"),
    "two steps, SVM": (two_steps, "SVM"),
    "cost-sensitive sequence, LR": (cost_sensitive_sequence, "LR"),
    "cost-sensitive sequence, SVM": (cost_sensitive_sequence, "SVM"),
    "bisection, LR": (bisection, "LR"),
    "bisection, calibrated SVM": (bisection, "SVM"),
}


def cells(scale: str) -> list[Cell]:
    largest, repetitions = {"smoke": (1_000, 2), "quick": (10_000, 5), "paper": (100_000, 20)}[scale]
    every: list[Cell] = [
        {"dataset": dataset, "n": n, "repetition": repetition, "method": method}
        for dataset in binary_names()
        for n in SIZES[dataset]
        if n <= largest
        for repetition in range(repetitions)
        for method in METHODS
    ]
    return cheap_first(every)


def run(cell: Cell, generator: np.random.Generator) -> list[Row]:
    learn, tune, test = random_split(cell["dataset"], cell["n"], generator)
    build, learner = METHODS[cell["method"]]
    from sklearn import linear_model, svm  # noqa: F401  # loaded before the clock starts

    start = time.process_time()
    classifier = build(learner, learn, tune, int(generator.integers(2**31)))
    seconds = time.process_time() - start
    value = get_metric("f1").score(test.y, classifier.predict(test.X))
    return [{"f1": value, "trainings": classifier.trainings, "seconds": round(seconds, 4)}]


def figures(table: pd.DataFrame) -> dict[str, Figure]:
    from surecut.study.figures import curve, means, panels, sizes_axis, tidy

    names = [dataset for dataset in SIZES if dataset in set(table.dataset)]
    figure, axes = panels(2, len(names), height=3.6)
    for column, dataset in enumerate(names):
        for look, method in enumerate(METHODS):
            own = table[(table.dataset == dataset) & (table.method == method)]
            for panel, quantity in enumerate(("f1", "seconds")):
                line = means(own, quantity)
                linestyle = "--" if METHODS[method][1] == "SVM" else "-"
                curve(axes[panel, column], line.n, line["mean"], line.error, method, look, linestyle)
        tidy(axes[0, column], title=TITLES.get(dataset, dataset), ylabel="F-measure on the test set")
        tidy(axes[1, column], ylabel="CPU seconds to train and tune")
        axes[1, column].set_yscale("log")
        for panel in axes[:, column]:
            sizes_axis(panel, table[table.dataset == dataset], "method")
    lines, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return {"one-training-is-enough": figure}


def claims(table: pd.DataFrame) -> list[Claim]:
    names = [dataset for dataset in SIZES if dataset in set(table.dataset)]
    return [_claim(table, dataset, learner) for dataset in names for learner in ("LR", "SVM")]


def _claim(table: pd.DataFrame, dataset: str, learner: str) -> Claim:
    rows = table[table.dataset == dataset]
    last = rows[rows.n == rows.n.max()]
    wide = last.pivot_table(index="repetition", columns="method", values="f1")
    ours = f"two steps, {learner}"
    others = [method for method, (_, used) in METHODS.items() if used == learner and method != ours]
    gains = {method: Estimate.of(wide[ours] - wide[method]) for method in others}
    costs = last.groupby("method")[["trainings", "seconds"]].mean()
    parts = [
        f"minus {method.removesuffix(f', {learner}')} {gain} (trainings: {costs.trainings[method]:.0f}, "
        f"{costs.seconds[method]:.3g} CPU s)"
        for method, gain in gains.items()
    ]
    return Claim(
        f"One training is enough for the F-measure: {learner} on {dataset}.",
        Finding.of(all(gain.mean > -MARGIN for gain in gains.values())),
        f"n = {int(last.n.max()):,}, {len(wide.dropna())} repetitions: two steps {Estimate.of(wide[ours])} "
        f"({costs.seconds[ours]:.3g} CPU s), " + ", ".join(parts),
        f"no other method is ahead by more than {MARGIN} in the mean",
    )


EXPERIMENT = Experiment(
    name="alternatives",
    title="one training against sequences of trainings and bisection, for the F-measure",
    section="1.1, related work",
    cells=cells,
    run=run,
    figures=figures,
    claims=claims,
    captions={
        "one-training-is-enough": "The F-measure on the test set (top) and the CPU time of training and tuning "
        "(bottom) as the training set grows, 20 repetitions at the paper's scale.",
    },
    paired=("n", "method"),
)
