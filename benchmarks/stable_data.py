"""Stable cuts on real data, beside the exact and the shrunken cut of the same tuning rows.

    SURECUT_DATA=... python benchmarks/stable_data.py                     # everything
    SURECUT_DATA=... python benchmarks/stable_data.py --part binary --only 'digits|wine'   # a part, not written
    SURECUT_DATA=... python benchmarks/stable_data.py --report            # run nothing

*multilabel*: the sections and sizes of `shrinkage.py`, whose scores are kept. *binary*: one model is trained in each
repetition, on a new split; the tuning rows of a size contain those of the smaller ones; the test rows are the same.
Blocks of one repetition are kept in surecut's cache: a run that was stopped goes on. Written:
``results/stable_data.md`` and ``results/stable_data_cells.csv``.
"""

from __future__ import annotations

import argparse
import csv
import re
import warnings
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import real_data
import shrinkage
import stable_cache
from paired import COUNTED, Count, Difference, table
from stable_cache import OPTIONS, RESULTS
from surecut import datasets, get_metric, tune_threshold, tune_thresholds
from surecut.sources import labels

CUTS = tuple(OPTIONS)


# --- What is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Multilabel:
    """A section of `shrinkage.py`, a data set and a number of rows."""

    section: shrinkage.Section
    name: str
    size: int

    metrics = tuple(shrinkage.METRICS)
    sizes = (0,)

    @property
    def title(self) -> str:
        return self.section.title

    def __str__(self) -> str:
        return f"{self.section.step_1} {self.section.scaling} {self.section.power} {self.name} {self.size}"

    def cells(self) -> list[str]:
        return [f"{self.name} {self.size}, {title}" for title in shrinkage.METRICS.values()]

    def measure(self, repetition: int) -> np.ndarray:
        """(1, metrics, cuts): test values."""
        found = self.section.scores(loaded(self.name), self.size, repetition)
        values = np.empty((1, len(self.metrics), len(CUTS)))
        for c, options in enumerate(OPTIONS.values()):
            for m, metric in enumerate(self.metrics):
                cut = tune_thresholds(found.tuning_labels, found.tuning, metric=metric, **options)
                values[0, m, c] = shrinkage.test_value(cut, found, metric)
        return values


class Split(NamedTuple):
    """Numbers of rows: to train, to tune (several), to test; and of repetitions."""

    training: int
    tuning: tuple[int, ...]
    test: int
    repetitions: int


SPLITS = {
    "covtype": Split(2_000, (100, 300, 1_000, 3_000), 20_000, 30),
    "mnist49": Split(1_000, (100, 300, 1_000, 3_000), 3_000, 30),
    "breast_cancer": Split(150, (100, 300), 119, 60),
    "digits": Split(400, (100, 300, 1_000), 397, 60),
    "wine": Split(40, (100,), 38, 60),
}


@dataclass(frozen=True)
class Binary:
    """A data set and a model."""

    name: str
    model: str

    metrics = ("f1", "f2", "am", "mcc")

    @property
    def title(self) -> str:
        return f"{self.name}, {self.model}"

    @property
    def sizes(self) -> tuple[int, ...]:
        return SPLITS[self.name].tuning

    def __str__(self) -> str:
        return f"binary {self.name} {self.model}"

    def cells(self) -> list[str]:
        return [f"{self.name}, {self.model}, {size:,} rows, {m}" for size in self.sizes for m in self.metrics]

    def measure(self, repetition: int) -> np.ndarray:
        """(sizes, metrics, cuts): test values. A split that lacks a class somewhere is drawn again."""
        X, y = real_data.load(self.name)
        split = SPLITS[self.name]
        random = np.random.default_rng([zlib.crc32(self.name.encode()), repetition])  # the split of every model
        ends = np.cumsum((split.training, split.tuning[-1], split.test))
        while True:
            training, tuning, test, _ = np.split(random.permutation(len(y)), ends)
            if all(0 < y[rows].sum() < len(rows) for rows in (training, tuning[: split.tuning[0]], test)):
                break
        model = real_data.MODELS[self.model]().fit(real_data.dense(X, training), y[training])
        tuning_scores, test_scores = (model.predict_proba(real_data.dense(X, rows))[:, 1] for rows in (tuning, test))
        asked = [get_metric(metric) for metric in self.metrics]
        values = np.empty((len(split.tuning), len(asked), len(CUTS)))
        for s, size in enumerate(split.tuning):
            for c, options in enumerate(OPTIONS.values()):
                cuts = tune_threshold(y[tuning[:size]], tuning_scores[:size], metric=asked, **options)
                for m, (metric, cut) in enumerate(zip(asked, cuts.values(), strict=True)):
                    values[s, m, c] = metric.score(y[test], test_scores >= cut.threshold)
        return values


Setting = Multilabel | Binary


@cache
def loaded(name: str) -> datasets.Dataset:
    return datasets.load(name)


def settings(part: str, only: str) -> list[Setting]:
    """Those of a part ("all" for both) whose name is matched."""
    many = [
        Multilabel(section, name, size)
        for section in shrinkage.sections(list(shrinkage.SIZES))
        for name in section.names
        for size in shrinkage.SIZES[name]
    ]
    binary = [Binary(name, model) for name in real_data.NAMES for model in real_data.MODELS]
    chosen: list[Setting] = [*(many if part != "binary" else []), *(binary if part != "multilabel" else [])]
    return [one for one in chosen if re.search(only, str(one))]


def path(setting: Setting, repetition: int) -> Path:
    measuring: tuple[Any, ...] = (
        (labels, Multilabel, shrinkage.scores, shrinkage.test_value, shrinkage.Linear, shrinkage.Nonlinear)
        if isinstance(setting, Multilabel)
        else (Binary, repr(SPLITS), real_data)
    )
    return stable_cache.folder("stable_data", *measuring) / f"{str(setting).replace(' ', '-')}-{repetition}.npy"


def block(setting: Setting, repetition: int) -> np.ndarray:
    warnings.filterwarnings("ignore", message=".*did not converge.*")
    return stable_cache.kept(path(setting, repetition), lambda: setting.measure(repetition))


# --- Report ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """The test values of all cuts in one setting and metric, repetition by repetition."""

    name: str
    title: str
    part: str
    values: dict[str, np.ndarray]

    def against(self, other: str) -> Difference:
        return Difference.of(self.values["stable"], self.values[other])

    def row(self) -> tuple[str, ...]:
        means = (f"{self.values[cut].mean():.4f}" for cut in CUTS)
        return (self.name, *means, str(self.against("exact")), str(self.against("shrunken")))


def repetitions_of(setting: Setting, multilabel: int, limit: int | None) -> int:
    number = multilabel if isinstance(setting, Multilabel) else SPLITS[setting.name].repetitions
    return min(number, limit or number)


def cells(chosen: Sequence[Setting], multilabel: int, limit: int | None) -> list[Cell]:
    """What is there of each setting: the repetitions that every one of its cells has."""
    found = []
    for setting in chosen:
        files = [path(setting, number) for number in range(repetitions_of(setting, multilabel, limit))]
        parts = [np.load(file) for file in files if file.exists()]
        if len(parts) < 2:
            continue
        values = np.stack(parts, axis=-1)  # (sizes, metrics, cuts, repetitions)
        flat = values.reshape(-1, *values.shape[-2:])
        part = type(setting).__name__.lower()
        for name, one in zip(setting.cells(), flat, strict=True):
            found.append(Cell(name, setting.title, part, dict(zip(CUTS, one, strict=True))))
    return found


def counts(found: Sequence[Cell]) -> str:
    rows = []
    for part in ("multilabel", "binary", "both"):
        chosen = [cell for cell in found if part in (cell.part, "both")]
        if chosen:
            rows += [
                (part, f"stable − {other}", *Count.of([cell.against(other) for cell in chosen]).row())
                for other in ("exact", "shrunken")
            ]
    return table(("data", "difference", *COUNTED), rows, words=2)


def report(found: Sequence[Cell], *, written: bool) -> None:
    if not found:
        raise SystemExit("no setting has two repetitions: run without --report")
    least, most = (limit(len(cell.values["exact"]) for cell in found) for limit in (min, max))
    splits = "; ".join(
        f"{name}: {s.training:,} to train, {', '.join(f'{n:,}' for n in s.tuning)} to tune, {s.test:,} to test"
        for name, s in SPLITS.items()
    )
    both = {other: Count.of([cell.against(other) for cell in found]) for other in ("exact", "shrunken")}
    rejected = [
        (cell.name if cell.part == "binary" else f"{cell.name} ({cell.title})", other, str(cell.against(other)))
        for other, count in both.items()
        for cell, worse in zip(found, count.rejected, strict=True)
        if worse
    ]
    lines = [
        "# Stable cuts on real data",
        f"Written by `{stable_cache.command()}`; *stable* is `{stable_cache.stable_call()}`, *shrunken* is"
        ' `shrinkage="auto"`. Values on test rows, means over repetitions; differences with paired standard errors;'
        f" {least} to {most} repetitions. *Better* and *worse* are signs of the mean difference; p-values are of"
        " one-sided paired t-tests, Holm's correction over the cells of a line. Repetitions draw from one data set, and"
        " those of the multilabel sets share their test rows: the standard errors are of these data.",
        counts(found),
        "## Worse after Holm, over both parts",
        table(("cell", "against", "difference"), rejected, words=2) if rejected else "None.",
    ]
    header = ("setting", *CUTS, "stable − exact", "stable − shrunken")
    for part in ("multilabel", "binary"):
        here = [cell for cell in found if cell.part == part]
        if not here:
            continue
        text = (
            "macro-F and macro-AM; settings of `benchmarks/shrinkage.py`: a third of the rows tunes."
            if part == "multilabel"
            else f"A new split in each repetition, the same for all models; rows: {splits}. Splits whose training, test"
            " or first tuning rows lack a class are drawn again."
        )
        lines += [f"## {part.capitalize()}", text]
        for title in dict.fromkeys(cell.title for cell in here):
            lines += [f"### {title}", table(header, [cell.row() for cell in here if cell.title == title])]
    text = "\n\n".join(lines) + "\n"
    print(text)
    if not written:
        return
    (RESULTS / "stable_data.md").write_text(text)
    with (RESULTS / "stable_data_cells.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns = [f"{what}_{other}" for other in both for what in ("minus", "error", "p", "worse_after_holm")]
        writer.writerow(("part", "step 1", "cell", "repetitions", *CUTS, *columns))
        for i, cell in enumerate(found):
            numbers = [f"{cell.values[cut].mean():.6g}" for cut in CUTS]
            for other, count in both.items():
                d = cell.against(other)
                numbers += [f"{d.mean:.6g}", f"{d.error:.6g}", f"{d.p_below:.6g}", str(bool(count.rejected[i]))]
            writer.writerow((cell.part, cell.title, cell.name, len(cell.values["exact"]), *numbers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("multilabel", "binary", "all"), default="all")
    parser.add_argument("--repetitions", type=int, default=20, help="of the multilabel settings")
    parser.add_argument("--limit", type=int, help="at most so many repetitions of any setting, not written")
    parser.add_argument("--only", default="", metavar="REGEX", help="settings in whose name it is found, not written")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    chosen = settings(options.part, options.only)
    if not options.report:
        real_data.check_present(sorted({setting.name for setting in chosen}))
        most = max(repetitions_of(setting, options.repetitions, options.limit) for setting in chosen)
        work = [
            (setting, number)
            for number in range(most)
            for setting in chosen
            if number < repetitions_of(setting, options.repetitions, options.limit)
        ]
        with ProcessPoolExecutor(options.jobs) as pool:
            running = [pool.submit(block, *one) for one in work]
            for done, future in enumerate(as_completed(running), 1):
                future.result()
                if done % 20 == 0:
                    print(f"{done} of {len(work)} blocks", flush=True)
    whole = options.part == "all" and not options.only and not options.limit
    report(cells(chosen, options.repetitions, options.limit), written=whole)


if __name__ == "__main__":
    main()
