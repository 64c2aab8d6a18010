"""Section 6.2: LR and SVM on binary data, as the training set grows.

The distribution is unknown, so the losses and metrics themselves are measured, on a test set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut import get_metric, tune_threshold
from surecut.losses import get_loss
from surecut.study.benchmarks import TITLES, binary_names, random_split
from surecut.study.experiment import Cell, Claim, Estimate, Experiment, Finding, Row, cheap_first
from surecut.study.learners import BINARY, SURROGATES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

METRICS = {"f1": "F-measure", "am": "AM"}
SIZES = {
    "covtype": (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 400_000),
    "mnist49": (100, 200, 500, 1_000, 2_000, 3_000, 4_000),
}
SIZES["gisette"] = SIZES["mnist49"]
ALIKE = 0.01
"""A difference in F or AM that is almost none."""


def cells(scale: str) -> list[Cell]:
    largest, repetitions = {"smoke": (1_000, 2), "quick": (50_000, 5), "paper": (400_000, 20)}[scale]
    every: list[Cell] = [
        {"dataset": dataset, "n": n, "repetition": repetition}
        for dataset in binary_names()
        for n in SIZES[dataset]
        if n <= largest
        for repetition in range(repetitions)
    ]
    return cheap_first(every)


def run(cell: Cell, generator: np.random.Generator) -> list[Row]:
    learn, tune, test = random_split(cell["dataset"], cell["n"], generator)
    rows: list[Row] = []
    for learner, train in BINARY.items():
        scorer = train(learn.X, learn.y, int(generator.integers(2**31)))
        f, tuning_scores = scorer.score(test.X), scorer.score(tune.X)
        row: Row = {"learner": learner, "converged": scorer.converged}
        for loss in SURROGATES.values():
            row[f"{loss}_loss"] = get_loss(loss).risk(test.y, f)
        row["error_rate"] = float(np.mean((f >= 0) != test.y))
        for metric in METRICS:
            cut = tune_threshold(tune.y, tuning_scores, metric=metric)
            row[metric] = get_metric(metric).score(test.y, cut.predict(f))
            row[f"{metric}_threshold"] = cut.threshold
        rows.append(row)
    return rows


def figures(table: pd.DataFrame) -> dict[str, Figure]:
    from surecut.study.figures import curve, means, panels, sizes_axis, tidy

    names = [dataset for dataset in SIZES if dataset in set(table.dataset)]
    figure, axes = panels(3, len(names))
    for column, dataset in enumerate(names):
        rows = table[table.dataset == dataset]
        for look, learner in enumerate(BINARY):
            own = rows[rows.learner == learner]
            line = means(own, f"{SURROGATES[learner]}_loss")
            curve(axes[0, column], line.n, line["mean"], line.error, f"{SURROGATES[learner]} loss ({learner})", look)
            for panel, metric in enumerate(METRICS, 1):
                line = means(own, metric)
                curve(axes[panel, column], line.n, line["mean"], line.error, learner, look)
        for panel, label in enumerate(("average loss", *METRICS.values())):
            tidy(axes[panel, column], title=TITLES.get(dataset, dataset) if panel == 0 else "", ylabel=label)
            sizes_axis(axes[panel, column], rows)
            axes[panel, column].legend(frameon=False)
    return {"test-performance": figure}


def difference(table: pd.DataFrame, column: str) -> Estimate:
    """SVM's mean minus LR's, at the largest n: over repetitions, in each of which both saw the same rows."""
    last = table[table.n == table.n.max()].pivot_table(index="repetition", columns="learner", values=column)
    return Estimate.of(last.SVM - last.LR)


def claims(table: pd.DataFrame) -> list[Claim]:
    listed: list[Claim] = []
    for dataset, better in (("covtype", "SVM"), ("gisette", "LR")):
        listed += _claims_of(table, dataset, better)
    return listed


def _claims_of(table: pd.DataFrame, dataset: str, better: str) -> list[Claim]:
    wins = f"{better} performs better on {dataset}."
    alike = f"Almost no difference between SVM and LR in F and AM on {dataset}."
    rules = {
        wins: f"{better}'s error rate, uncut, is lower by two standard errors",
        alike: f"both mean differences are smaller than {ALIKE}",
    }
    measured = dataset if dataset in set(table.dataset) else "mnist49"
    rows = table[table.dataset == measured]
    if rows.empty:
        return [Claim(text, Finding.NOT_TESTABLE, f"{dataset} is not here", rule) for text, rule in rules.items()]
    largest, repetitions = int(rows.n.max()), rows.repetition.nunique()
    at = rows[rows.n == largest]
    losses = {learner: Estimate.of(at[at.learner == learner][f"{loss}_loss"]) for learner, loss in SURROGATES.items()}
    wrong, f1, am = (difference(rows, column) for column in ("error_rate", "f1", "am"))
    where = f"{measured}, n = {largest:,}, {repetitions} repetitions"
    remark = (
        "Two different losses have no common scale, and which number is smaller depends on the logarithm (natural "
        f"here; with base 2 LR's is {losses['LR'].mean / np.log(2):.3f}): the error rate decides."
    )
    smaller = losses["SVM"].mean < losses["LR"].mean
    first_rule = f"the smaller number of the two losses: {Finding.of(smaller == (better == 'SVM')).value}"
    of_losses = (
        f"{where}: SVM's hinge loss {losses['SVM']}, LR's logistic loss {losses['LR']}; "
        f"error rate of the uncut classifiers, SVM minus LR: {wrong}"
    )
    of_metrics = f"{where}: SVM minus LR, F {f1}, AM {am}"
    if measured != dataset:
        absent = f"{dataset} itself is not here; mnist49, the digits it was made from, stands in under its own name"
        return [
            Claim(text, Finding.NOT_TESTABLE, found, rules[text], remark=f"{absent}.")
            for text, found in ((wins, of_losses), (alike, of_metrics))
        ]
    ahead = wrong.is_below(0) if better == "SVM" else wrong.is_above(0)
    return [
        Claim(wins, Finding.of(ahead), of_losses, rules[wins], remark, first_rule),
        Claim(alike, Finding.of(max(abs(f1.mean), abs(am.mean)) < ALIKE), of_metrics, rules[alike]),
    ]


EXPERIMENT = Experiment(
    name="binary-benchmarks",
    title="binary benchmark data: LR against SVM",
    section="6.2",
    cells=cells,
    run=run,
    figures=figures,
    claims=claims,
    captions={
        "test-performance": "Average test-set performance as the training set grows (20 repetitions at the paper's "
        "scale). Top: logistic and hinge loss; centre: F-measure; bottom: AM.",
    },
    paired=("n",),
)
