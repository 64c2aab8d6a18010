"""Does shrinkage improve macro-tuning on few rows? Test values on the paper's data, and where it might do harm.

``python benchmarks/shrinkage.py --part data`` needs the data (``SURECUT_DATA`` names their folder) and writes
``results/shrinkage.md``. Step 1 is trained on two thirds of the rows drawn, step 2 tunes on the last third, as in the
paper; every repetition draws anew. Scores of trained models are kept in surecut's cache: a second run only tunes.

``python benchmarks/shrinkage.py --part curves`` writes ``results/shrinkage_curves.md``: labels whose calibration curves
are known, most of them none that a sigmoid or a beta calibration can follow, against tuning without shrinkage.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, ndtri
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from surecut import Confusion, LinearSurrogate, datasets, get_metric, tune_expected, tune_thresholds
from surecut.averages import macro_value, values_per_label
from surecut.classifier.outputs import label_scores

RESULTS = Path(__file__).parent / "results"
SIZES = {"scene": (300, 600, 1211), "yeast": (300, 600, 1500), "mediamill": (1000, 3000, 30993)}
METRICS = {"f1": "macro-F", "am": "macro-AM"}


@dataclass(frozen=True)
class Scores:
    """Margins of tuning and of test rows, with their labels."""

    tuning: np.ndarray
    tuning_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


Tuner = Callable[[np.ndarray, np.ndarray, str], Any]
TUNERS: dict[str, Tuner] = {
    "macro": lambda Y, S, metric: tune_thresholds(Y, S, metric=metric),
    "micro": lambda Y, S, metric: tune_thresholds(Y, S, metric=metric, average="micro"),
    "shrunken": lambda Y, S, metric: tune_thresholds(Y, S, metric=metric, shrinkage="auto"),
    "label-free": lambda _, S, metric: tune_expected(S, metric=metric),
}


class Linear:
    """Step 1 of the paper: logistic regression with C = 1."""

    def __init__(self) -> None:
        self.model = LinearSurrogate("logistic", C=1.0)

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Linear:
        self.known = (Y.min(axis=0) == 0) & (Y.max(axis=0) == 1)
        self.constant = np.log((Y.sum(axis=0) + 0.5) / (len(Y) - Y.sum(axis=0) + 0.5))
        self.model.fit(X, Y[:, self.known])
        return self

    def probability(self, X: np.ndarray) -> np.ndarray:
        margin = np.tile(self.constant, (len(X), 1))  # a label without a positive, or a negative, to learn from
        margin[:, self.known] = self.model.decision_function(X)
        return expit(margin)


class Nonlinear:
    """A scikit-learn model of all labels."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Nonlinear:
        self.labels = Y.shape[1]
        self.model.fit(X, Y)
        return self

    def probability(self, X: np.ndarray) -> np.ndarray:
        return label_scores(self.model, X, "predict_proba", self.labels)


STEP_1: dict[str, Callable[[], Any]] = {
    "linear": Linear,
    "tree": lambda: Nonlinear(DecisionTreeClassifier(min_samples_leaf=10, random_state=0)),
    "k-NN": lambda: Nonlinear(KNeighborsClassifier(10)),
}


def scores(data: datasets.Dataset, size: int, step_1: str, scaling: str, repetition: int) -> Scores:
    """Scores of one repetition, from the cache if they are there."""
    random = np.random.default_rng([repetition, size])
    chosen = random.permutation(data.train.X.shape[0])[:size]
    tuning, training = chosen[: round(size / 3)], chosen[round(size / 3) :]
    kept = datasets.cache_folder() / "shrinkage" / f"{data.name}-{size}-{step_1}-{scaling}-{repetition}.npz"
    if kept.exists():
        with np.load(kept) as file:
            return Scores(file["tuning"], data.train.y[tuning], file["test"], data.test.y)
    X, X_tuning, X_test = (part.toarray() for part in (data.train.X[training], data.train.X[tuning], data.test.X))
    if scaling == "standardised":
        scaler = StandardScaler().fit(X)
        X, X_tuning, X_test = scaler.transform(X), scaler.transform(X_tuning), scaler.transform(X_test)
    model = STEP_1[step_1]().fit(X, data.train.y[training])
    result = Scores(model.probability(X_tuning), data.train.y[tuning], model.probability(X_test), data.test.y)
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_name(f"{kept.stem}.{os.getpid()}.unfinished.npz")
    np.savez(unfinished, tuning=result.tuning, test=result.test)
    unfinished.rename(kept)  # another process must not read half of it
    return result


def test_value(cut: Any, found: Scores, metric: str) -> float:
    """The macro average on the test rows."""
    predicted, actual = cut.predict(found.test), found.test_labels == 1
    tp, positives, accepted = (predicted & actual).sum(0), actual.sum(0), predicted.sum(0)
    confusion = Confusion(tp, accepted - tp, positives - tp, len(actual) - positives - accepted + tp)
    return macro_value(get_metric(metric), values_per_label(get_metric(metric), confusion))


@dataclass(frozen=True)
class Cell:
    """The test values of all tuners in one setting, repetition by repetition."""

    name: str
    values: dict[str, np.ndarray]

    def against(self, other: str) -> tuple[float, float]:
        """Mean difference of the shrunken cut to another, and its paired standard error."""
        difference = self.values["shrunken"] - self.values[other]
        return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))

    @property
    def better(self) -> str:
        """The better of macro- and micro-tuned."""
        return max(("macro", "micro"), key=lambda tuner: self.values[tuner].mean())

    def row(self) -> str:
        means = " | ".join(f"{self.values[tuner].mean():.4f}" for tuner in TUNERS)
        signs = " | ".join(f"{mean:+.4f} ± {error:.4f}" for mean, error in map(self.against, (self.better, "macro")))
        return f"| {self.name} | {means} | {signs} |"


HEAD = (
    f"| setting | {' | '.join(TUNERS)} | shrunken − better of macro, micro | shrunken − macro |\n"
    f"|---|{'---|' * len(TUNERS)}---|---|"
)


@dataclass(frozen=True)
class Section:
    """One way of step 1, on some data."""

    title: str
    step_1: str
    scaling: str
    names: list[str]
    power: int = 1
    """Scores are the model's probabilities to this power."""

    def cells(self, repetitions: int, jobs: int) -> list[Cell]:
        """Every data set, size and metric."""
        settings = [(name, size) for name in self.names for size in SIZES[name]]
        with ProcessPoolExecutor(jobs) as pool:
            parts = pool.map(partial(self.cells_of, repetitions), *zip(*settings, strict=True))
            return [cell for part in parts for cell in part]

    def scores(self, data: datasets.Dataset, size: int, repetition: int) -> Scores:
        """The scores of one repetition, to the section's power."""
        found = scores(data, size, self.step_1, self.scaling, repetition)
        return replace(found, tuning=found.tuning**self.power, test=found.test**self.power)

    def cells_of(self, repetitions: int, name: str, size: int) -> list[Cell]:
        data = datasets.load(name)
        values: dict[str, dict[str, list[float]]] = {m: {tuner: [] for tuner in TUNERS} for m in METRICS}
        for repetition in range(repetitions):
            found = self.scores(data, size, repetition)
            for metric in METRICS:
                for tuner, tune in TUNERS.items():
                    cut = tune(found.tuning_labels, found.tuning, metric)
                    values[metric][tuner].append(test_value(cut, found, metric))
        cells = [
            Cell(f"{name} {size}, {title}", {t: np.array(v) for t, v in values[metric].items()})
            for metric, title in METRICS.items()
        ]
        for cell in cells:
            print(cell.row(), flush=True)
        return cells


def sections(names: list[str]) -> tuple[Section, ...]:
    """Every way of step 1; those that are slow only on the small data sets."""
    few = [name for name in names if name != "mediamill"]
    return (
        Section("Logistic regression, C = 1, standardised features", "linear", "standardised", names),
        Section("The same on raw features", "linear", "raw", names),
        Section("The same on standardised features, scores σ(f)²", "linear", "standardised", few, power=2),
        Section("Decision trees as step 1", "tree", "standardised", few),
        Section("10-NN as step 1", "k-NN", "standardised", few),
    )


def summary(found: list[Cell]) -> str:
    """How many cells reach what was hoped for."""
    against_better = [cell.against(cell.better) for cell in found]
    against_macro = [cell.against("macro") for cell in found]
    within = sum(mean > -error for mean, error in against_better)
    above = sum(mean > 0 for mean, _ in against_better)
    clearly = sum(mean > 2 * error for mean, error in against_macro)
    return (
        f"Of {len(found)} settings the shrunken cut is above the better of macro- and micro-tuned, or within one "
        f"paired standard error of it, in {within}; above it in {above}; above macro-tuned by two standard errors in "
        f"{clearly}."
    )


def stairs(z: np.ndarray) -> np.ndarray:
    return np.select([z > 2, z > 1, z > 0], [0.7, 0.35, 0.1], 0.01)


CURVES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "sigmoid": (lambda z: expit(2 * z - 3), lambda z: z),
    "σ(f)²": (lambda z: expit(2 * z - 3), lambda z: expit(2 * z - 3) ** 2),
    "plateau": (lambda z: np.where(z > 0, 0.3, 0.01), lambda z: z),
    "step": (lambda z: np.where(z > 1.4, 0.6, 0.02), lambda z: z),
    "stairs": (stairs, lambda z: z),
    "stairs, few scores": (stairs, lambda z: np.floor(np.clip(2 * z, -4, 5))),
    "not monotone": (lambda z: np.where(z > 2.2, 0.05, np.where(z > 0.85, 0.5, 0.02)), lambda z: z),
    "two humps": (
        lambda z: 0.02 + 0.5 * np.exp(-(((z - 2) / 0.3) ** 2)) + 0.4 * np.exp(-(((z - 0.7) / 0.3) ** 2)),
        lambda z: z,
    ),
}
"""Probability and score of a label, both as functions of a normal margin."""

POPULATION = ndtri((np.arange(20_000) + 0.5) / 20_000)
"""Margins that stand for all there are."""

KINDS = {"1": 1, "20": 20, "1 odd of 20": 20}
"""Labels that are tuned together: all with the curve, their margins shifted; or one, and 19 sigmoids, and the values
are those of the odd one."""


def curve_values(curve: str, rows: int, kind: str, draw: int) -> dict[str, tuple[float, float]]:
    """The metrics' values on the population, tuned without shrinkage and with, for one draw of tuning rows."""
    eta, score = CURVES[curve]
    labels, is_odd = KINDS[kind], kind == "1 odd of 20"
    random = np.random.default_rng([draw, rows, labels, list(CURVES).index(curve)])
    shift = np.linspace(-0.5, 0.5, labels) if labels > 1 else np.zeros(1)
    shift[0] *= not is_odd
    margin = random.normal(size=(rows, labels))
    probability = (CURVES["sigmoid"][0] if is_odd else eta)(margin - shift)
    if is_odd:
        probability[:, 0] = eta(margin[:, 0])
    scores = score(margin)
    truth = random.random((rows, labels)) < probability
    judged = range(1 if is_odd else labels)
    values = {}
    for metric in METRICS:
        cuts = [TUNERS[tuner](truth, scores, metric) for tuner in ("macro", "shrunken")]
        found = [
            [
                population_value(metric, eta(POPULATION - shift[i]), score(POPULATION) >= cut.thresholds[i])
                for i in judged
            ]
            for cut in cuts
        ]
        values[metric] = (float(np.mean(found[0])), float(np.mean(found[1])))
    return values


def population_value(metric: str, eta: np.ndarray, accepted: np.ndarray) -> float:
    """A metric where the probabilities are known."""
    prior, tp, fp = eta.mean(), (eta * accepted).mean(), ((1 - eta) * accepted).mean()
    return float(get_metric(metric).value(fp, prior - tp, prior))


def known_curves(repetitions: int, jobs: int) -> Iterator[str]:
    """A row for each curve, number of labels and of rows, and metric."""
    pool = ProcessPoolExecutor(jobs)
    for kind, labels in KINDS.items():
        for rows in (200, 1000, 10_000, 100_000)[: 4 if labels == 1 else 3]:
            draws = min(6 * repetitions, max(5, 40_000 * repetitions // (rows * labels)))
            for curve in CURVES:
                if kind == "1 odd of 20" and curve in ("sigmoid", "σ(f)²"):
                    continue
                found = list(pool.map(partial(curve_values, curve, rows, kind), range(draws), chunksize=5))
                for metric, title in METRICS.items():
                    plain, shrunken = np.array([values[metric] for values in found]).T
                    difference = shrunken - plain
                    error = difference.std(ddof=1) / np.sqrt(draws)
                    row = (
                        f"| {curve} | {kind} | {rows:,} | {title.removeprefix('macro-')} | {draws} "
                        f"| {plain.mean():.4f} | {shrunken.mean():.4f} | {difference.mean():+.4f} ± {error:.4f} |"
                    )
                    print(row, flush=True)
                    yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--data", default="scene,yeast,mediamill")
    parser.add_argument("--part", choices=("data", "curves", "all"), default="all")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*did not converge.*")
    if arguments.part != "curves":
        write_data(arguments.data.split(","), arguments.repetitions, arguments.jobs)
    if arguments.part != "data":
        write_curves(arguments.repetitions, arguments.jobs)


def write_data(names: list[str], repetitions: int, jobs: int) -> None:
    command = f"python benchmarks/shrinkage.py --part data --repetitions {repetitions} --data {','.join(names)}"
    text = [
        "# Shrinkage on the paper's multilabel data\n",
        f"Made by `{command}`. Test macro-F and macro-AM, mean over repetitions; differences with paired standard "
        "errors. A label without positives counts 0 in macro-F and is left out of macro-AM. *shrunken* is "
        '`shrinkage="auto"`, *label-free* is `tune_expected` on the model\'s own probabilities.\n',
    ]
    for section in sections(names):
        found = section.cells(repetitions, jobs)
        text += [f"## {section.title}\n", HEAD, *(cell.row() for cell in found), "", summary(found), ""]
    (RESULTS / "shrinkage.md").write_text("\n".join(text))


def write_curves(repetitions: int, jobs: int) -> None:
    text = [
        "# Shrinkage where the calibration curve is known\n",
        f"Made by `python benchmarks/shrinkage.py --part curves --repetitions {repetitions}`. Values on the "
        'population, mean over draws of the tuning rows: κ = 0 and `shrinkage="auto"`; differences with paired '
        "standard errors. Margins are normal; *20* labels have the same curve, their margins shifted; *1 odd of 20* "
        "stands among 19 sigmoids, and the values are its own.\n",
        "| curve | labels | tuning rows | metric | draws | κ = 0 | shrunken | difference |\n"
        "|---|---|---|---|---|---|---|---|",
        *known_curves(repetitions, jobs),
        "",
    ]
    (RESULTS / "shrinkage_curves.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
