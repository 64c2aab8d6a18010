"""`PlugInClassifier(cv=5)`, exact and stable, beside scikit-learn's `TunedThresholdClassifierCV(cv=5)`.

    SURECUT_DATA=... python benchmarks/stable_folds.py
    SURECUT_DATA=... python benchmarks/stable_folds.py --only 'wine|digits' --repetitions 3   # a part, not written
    SURECUT_DATA=... python benchmarks/stable_folds.py --report                               # run nothing

Repeated nested cross-validation: five outer folds, shuffled anew in each repetition; the mean over outer folds is the
value of a repetition, and standard errors are over repetitions. The inner folds are the same for all three, so each
model is trained once per inner fold, and shared. Blocks of one repetition are kept in surecut's cache: a run that was
stopped goes on. Written: ``results/stable_folds.md``.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV

import real_data
import stable_cache
from paired import COUNTED, Count, Difference, table
from stable_cache import RESULTS, STABLE
from surecut import Confusion, PlugInClassifier, get_metric
from surecut.classifier import plug_in

FOLDS = 5
ROWS = {"covtype": 2_000, "mnist49": 1_000}
"""Rows that a repetition draws of a large data set."""

NAMES, MODELS = ("breast_cancer", "digits", "wine", *ROWS), ("logistic", "tree")
METRICS = ("f1", "f2", "am", "mcc")
TUNERS = ("exact", "stable", "scikit-learn")
PAIRS = (("stable", "exact"), ("stable", "scikit-learn"), ("exact", "scikit-learn"))


def value(y_true: np.ndarray, y_pred: np.ndarray, *, metric: str) -> float:
    """What scikit-learn's own functions give, 0 where the metric is 0/0.

    Those take a millisecond each, and scikit-learn's tuner calls the metric 500 times in a fit.
    """
    tn, fp, fn, tp = np.bincount(2 * y_true.astype(np.int64) + y_pred, minlength=4).tolist()
    return float(np.nan_to_num(get_metric(metric).evaluate(Confusion(tp, fp, fn, tn)), nan=0.0))


SCORERS = {metric: make_scorer(value, metric=metric) for metric in METRICS}


class Remembered(ClassifierMixin, BaseEstimator):
    """A classifier that is trained once on the same rows: `fit` looks the model up."""

    trained: dict[str, Any] = {}  # noqa: RUF012  # shared by all clones on purpose

    def __init__(self, model: str) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> Remembered:
        key = joblib.hash((self.model, X, y))
        if key not in self.trained:
            self.trained[key] = real_data.MODELS[self.model]().fit(X, y)
        self.fitted_ = self.trained[key]
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.fitted_.predict_proba(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.fitted_.predict(X)


@dataclass(frozen=True)
class Setting:
    """A data set and a model."""

    name: str
    model: str

    def __str__(self) -> str:
        return f"{self.name} {self.model}"

    def measure(self, repetition: int) -> np.ndarray:
        """(metrics, tuners): means over the outer folds."""
        random = np.random.default_rng([zlib.crc32(self.name.encode()), repetition])
        X, y = real_data.load(self.name)
        rows = random.permutation(len(y))[: ROWS.get(self.name)]
        X, y = real_data.dense(X, rows), y[rows]
        outer = StratifiedKFold(FOLDS, shuffle=True, random_state=repetition)
        values = np.zeros((len(SCORERS), len(TUNERS)))
        for training, test in outer.split(X, y):
            Remembered.trained.clear()
            for m, (metric, scorer) in enumerate(SCORERS.items()):
                model = Remembered(self.model)
                tuners = (
                    PlugInClassifier(model, metric=metric, cv=FOLDS),
                    PlugInClassifier(model, metric=metric, cv=FOLDS, **STABLE),
                    TunedThresholdClassifierCV(model, scoring=scorer, cv=FOLDS),
                )
                for t, tuner in enumerate(tuners):
                    values[m, t] += scorer(tuner.fit(X[training], y[training]), X[test], y[test]) / FOLDS
        return values


def path(setting: Setting, repetition: int) -> Path:
    numbers = repr((FOLDS, ROWS, METRICS))
    folder = stable_cache.folder("stable_folds", plug_in, Setting, Remembered, value, numbers, real_data)
    return folder / f"{setting.name}-{setting.model}-{repetition}.npy"


def block(setting: Setting, repetition: int) -> np.ndarray:
    return stable_cache.kept(path(setting, repetition), lambda: setting.measure(repetition))


@dataclass(frozen=True)
class Cell:
    """The values of all tuners in a setting and metric, repetition by repetition."""

    setting: Setting
    metric: str
    values: dict[str, np.ndarray]

    def difference(self, one: str, other: str) -> Difference:
        return Difference.of(self.values[one], self.values[other])

    def row(self) -> tuple[str, ...]:
        means = (f"{self.values[tuner].mean():.4f}" for tuner in TUNERS)
        return (f"{self.setting}, {self.metric}", *means, *(str(self.difference(*pair)) for pair in PAIRS))


def cells(chosen: Sequence[Setting], repetitions: int) -> list[Cell]:
    found = []
    for setting in chosen:
        files = [path(setting, number) for number in range(repetitions)]
        parts = [np.load(file) for file in files if file.exists()]
        if len(parts) >= 2:
            values = np.stack(parts, axis=-1)
            found += [
                Cell(setting, metric, dict(zip(TUNERS, one, strict=True)))
                for metric, one in zip(SCORERS, values, strict=True)
            ]
    return found


def report(found: Sequence[Cell], *, written: bool) -> None:
    if not found:
        raise SystemExit("no setting has two repetitions: run without --report")
    number = [len(cell.values["exact"]) for cell in found]
    rows, rejected = [], []
    for one, other in PAIRS:
        differences = [cell.difference(one, other) for cell in found]
        count, mean = Count.of(differences), np.mean([difference.mean for difference in differences])
        rows.append((f"{one} − {other}", f"{mean:+.4f}", *count.row()))
        rejected += [
            f"{cell.setting}, {cell.metric}: {one} − {other} {difference}"
            for cell, difference, worse in zip(found, differences, count.rejected, strict=True)
            if worse
        ]
    lines = [
        "# Stable cuts of cross-validated scores",
        f"Written by `{stable_cache.command()}`. *exact* is `PlugInClassifier(model, cv={FOLDS})`, *stable* the same"
        f" with `{stable_cache.stable_call()}`, *scikit-learn* `TunedThresholdClassifierCV(model, cv={FOLDS})` with the"
        f" same scoring. Nested cross-validation with {FOLDS} outer folds, {min(number)} to {max(number)} repetitions;"
        f" rows drawn in each repetition: {', '.join(f'{n:,} of {name}' for name, n in ROWS.items())}; all rows of the"
        " others. Means over repetitions; paired standard errors over repetitions, which reuse the rows of a set and do"
        " not cover the choice of the set; one-sided paired t-tests.",
        table(("difference", "mean over cells", *COUNTED), rows),
        "Worse after Holm: " + ("; ".join(rejected) if rejected else "none") + ".",
        table(
            ("setting", *TUNERS, *(f"{one} − {other}" for one, other in PAIRS)),
            [cell.row() for cell in found],
        ),
    ]
    text = "\n\n".join(lines) + "\n"
    print(text)
    if written:
        (RESULTS / "stable_folds.md").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--only", default="", metavar="REGEX", help="settings in whose name it is found, not written")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    every = [Setting(name, model) for name in NAMES for model in MODELS]
    chosen = [setting for setting in every if re.search(options.only, str(setting))]
    if not options.report:
        real_data.check_present([*dict.fromkeys(setting.name for setting in chosen)])
        with ProcessPoolExecutor(options.jobs) as pool:
            work = [(setting, number) for number in range(options.repetitions) for setting in chosen]
            running = [pool.submit(block, *one) for one in work]
            for done, future in enumerate(as_completed(running), 1):
                future.result()
                if done % 10 == 0:
                    print(f"{done} of {len(work)} blocks", flush=True)
    report(cells(chosen, options.repetitions), written=len(chosen) == len(every))


if __name__ == "__main__":
    main()
