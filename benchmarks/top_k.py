"""k labels a row: macro-F1 of several classes, and macro metrics of 1, 3 and 5 labels, on new rows, beside rivals.

    SURECUT_DATA=... python benchmarks/top_k.py                          # all but times, then the report
    SURECUT_DATA=... python benchmarks/top_k.py --parts multiclass --quick    # a few cells and repetitions, not written
    SURECUT_DATA=... python benchmarks/top_k.py --parts time             # CPU seconds
    SURECUT_DATA=... python benchmarks/top_k.py --report                 # run nothing

*multiclass*: one class for each row, macro-F1. *budgets*: 1, 3 and 5 labels for each row; macro-F1, precision, recall.
Rivals run in interpreters of their own, which are made once. Blocks of one repetition and method are kept in surecut's
cache: a run that was stopped goes on. Written: ``results/top_k.md``.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import stable_cache
import top_k_blocks as blocks
import top_k_data
from paired import COUNTED, Count, Difference, table
from top_k_blocks import (
    ARGMAX,
    BLOCK_COORDINATE,
    BUDGETS,
    CLASSES,
    CUTOFFS,
    FRANK_WOLFE,
    LARGEST,
    METRICS,
    ONE_VS_REST,
    OURS,
    SIZES,
)
from top_k_data import Extreme, Tags

PARTS = ("multiclass", "budgets", "time")
QUICK = r"^(3|7|20|50) classes, Dirichlet\(0.7\)|^7 classes|covtype"
QUICK_REPETITIONS = 3
REPORTED = "stable"
"""The rule for new rows, which the targets are about."""


@dataclass(frozen=True)
class Cell:
    """What was measured of every method in one setting: (repetitions, `blocks.MEASURED`), NaN where nothing was."""

    name: str
    group: str
    values: dict[str, np.ndarray]

    def new(self, method: str) -> np.ndarray:
        return self.values[method][:, 0]

    def tuning(self, method: str) -> np.ndarray:
        return self.values[method][:, 1]

    def has(self, *methods: str) -> bool:
        """Whether two repetitions have all of some methods."""
        return bool(np.isfinite([self.new(method) for method in methods]).all(axis=0).sum() >= 2)

    def against(self, other: str, ours: str = REPORTED) -> Difference:
        """Over the repetitions that both have."""
        found = self.new(ours) - self.new(other)
        return Difference.of(found[np.isfinite(found)])

    def mean(self, method: str) -> str:
        """With the number of repetitions where it is another than that of `REPORTED`."""
        if not self.has(method):
            return "–"
        number = int(np.isfinite(self.new(method)).sum())
        return f"{np.nanmean(self.new(method)):.4f}" + (f" ({number})" if number != self.repetitions else "")

    @property
    def repetitions(self) -> int:
        return int(np.isfinite(self.new(REPORTED)).sum())


def class_cells(chosen: Sequence[top_k_data.Cell], repetitions: int) -> list[Cell]:
    """What is there of each cell."""
    nothing = np.full(len(blocks.MEASURED), np.nan)
    found = []
    for cell in chosen:
        paths = {m: [blocks.class_path(cell, number, m) for number in range(repetitions)] for m in CLASSES}
        values = {m: np.array([loaded(path, nothing) for path in some]) for m, some in paths.items()}
        found.append(Cell(cell.name, cell.model, values))
    return [cell for cell in found if cell.has(REPORTED, ARGMAX)]


def budget_cells(chosen: Sequence[Tags | Extreme], repetitions: int) -> list[Cell]:
    """What is there of each problem, size and metric."""
    nothing = np.full((len(SIZES), len(METRICS), len(blocks.MEASURED)), np.nan)
    found = []
    for problem in chosen:
        paths = {m: [blocks.budget_path(problem, number, m) for number in range(repetitions)] for m in BUDGETS}
        values = {m: np.array([loaded(path, nothing) for path in some]) for m, some in paths.items()}
        for i, k in enumerate(SIZES):
            for j, metric in enumerate(METRICS):
                here = {method: array[:, i, j] for method, array in values.items()}
                found.append(Cell(f"{problem.name}, k = {k}, {metric}", problem.name, here))
    return [cell for cell in found if cell.has(REPORTED, LARGEST)]


def loaded(path: Path, otherwise: np.ndarray) -> np.ndarray:
    return np.load(path) if path.exists() else otherwise


# --- Tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """One of our rules against a rival, in the cells that have both."""

    cells: list[Cell]
    ours: str
    other: str

    @classmethod
    def of(cls, found: Sequence[Cell], other: str, ours: str = REPORTED) -> Contest:
        return cls([cell for cell in found if cell.has(ours, other)], ours, other)

    @property
    def differences(self) -> list[Difference]:
        return [cell.against(self.other, self.ours) for cell in self.cells]

    @property
    def mean(self) -> float:
        return float(np.mean([one.mean for one in self.differences]))

    @property
    def worse(self) -> list[tuple[str, str, str]]:
        rejected = Count.of(self.differences).rejected
        every = zip(self.cells, self.differences, rejected, strict=True)
        return [(cell.name, self.other, str(one)) for cell, one, no in every if no]

    def row(self) -> tuple[str, ...]:
        return (f"{self.ours} − {self.other}", f"{self.mean:+.4f}", *Count.of(self.differences).row())


def counts(found: Sequence[Cell], others: Sequence[str]) -> str:
    contests = [Contest.of(found, other, ours) for ours in reversed(OURS) for other in others]
    return table(("difference", "mean", *COUNTED), [one.row() for one in contests if one.cells])


def worse(found: Sequence[Cell], others: Sequence[str]) -> str:
    rows = [row for other in others for row in Contest.of(found, other).worse]
    return table(("cell", "against", "difference"), rows, words=2) if rows else "None."


def means(found: Sequence[Cell], methods: Sequence[str], others: Sequence[str]) -> str:
    header = ("cell", "repetitions", *methods, *(f"{REPORTED} − {other}" for other in others))
    rows = [
        (
            cell.name,
            str(cell.repetitions),
            *(cell.mean(method) for method in methods),
            *(str(cell.against(other)) if cell.has(REPORTED, other) else "–" for other in others),
        )
        for cell in found
    ]
    return table(header, rows)


Target = tuple[str, str, str]
"""What was asked for, what was measured, and whether it is met."""


def above(found: Sequence[Cell], other: str) -> Target:
    contest = Contest.of(found, other)
    lost = len(contest.worse)
    measured = f"{contest.mean:+.4f} in the mean; worse in {lost} of {len(contest.cells)} cells"
    return f"not worse than {other} in any cell, above it in the mean", measured, verdict(lost == 0 < contest.mean)


def verdict(met: bool) -> str:
    return "met" if met else "**missed**"


# --- Report ----------------------------------------------------------------------------------------------------------


def classes_report(found: Sequence[Cell]) -> tuple[list[str], list[Target]]:
    others = (ARGMAX, ONE_VS_REST, CUTOFFS)
    targets = [above(found, other) for other in others]
    both = [cell for cell in found if cell.has("exact", CUTOFFS)]
    if both:
        gaps = [cell.tuning("exact") - cell.tuning(CUTOFFS) for cell in both]
        below = [cell.name for cell, gap in zip(both, gaps, strict=True) if np.nanmin(gap) < -1e-12]
        number = sum(int(np.isfinite(gap).sum()) for gap in gaps)
        lowest, mean = min(float(np.nanmin(gap)) for gap in gaps), float(np.mean([np.nanmean(gap) for gap in gaps]))
        single = sum(int((gap < -1e-12).sum()) for gap in gaps)
        least = min(float(np.nanmean(gap)) for gap in gaps)
        measured = (
            f"{mean:+.4f} in the mean, no cell's mean below {least:+.6f}; {single} of {number} repetitions"
            f" in {len(both)} cells below it, {lowest:+.6f} at the least"
        )
        asked = f"*exact* has at least the value of {CUTOFFS} on the tuning rows"
        targets.append((asked, measured + (f"; below it: {'; '.join(below)}" if below else ""), verdict(not below)))
    lines = [
        "## Several classes: macro-F1, one class for each row",
        "Every repetition draws training, tuning and new rows: of a population that is fixed (normal classes; priors"
        " are a draw of a symmetric Dirichlet distribution, and none is below .002, which is that of the rarest class"
        " where the parameter is .7), or a new split of a data set. Each model is trained once a repetition, and all"
        f" methods get its probabilities. *{ONE_VS_REST}*: a threshold for each class by `stable=True`, and the class"
        " with the largest score minus threshold, as `OneVsRestClassifier` decides with `PlugInClassifier`; its models"
        f" are not trained class by class. *{CUTOFFS}*: optimal-classification-cutoffs 3.0.0 with numba, coordinate"
        " ascent of macro-F1. Mnist: the 10,000 digits of its test files, where they are in the folder of data.",
        counts(found, others),
        f"Cells where *{REPORTED}* is worse after Holm:",
        worse(found, others),
        means(found, CLASSES, others),
    ]
    return lines, targets


def budgets_report(found: Sequence[Cell]) -> tuple[list[str], list[Target]]:
    others = (LARGEST, FRANK_WOLFE, BLOCK_COORDINATE)
    lines = [
        "## k labels for each row: macro-F1, precision and recall",
        "scene, yeast and mediamill: linear step 1 on two thirds of the training rows that are drawn (all, or 9,000 of"
        " mediamill), a third tunes; new rows are test rows, at most 3,000 drawn anew in every repetition. Extreme:"
        f" {Extreme().tuning:,} tuning and {Extreme().new_rows:,} new rows of {Extreme().labels:,} labels, sparse"
        f" scores of {Extreme().stored} labels a row, which are true probabilities. xCOLUMNs 0.0.2: *{FRANK_WOLFE}*"
        " is inductive as ours are, a randomised rule from the tuning rows; labels without a positive are withheld from"
        " it, since its 1e-6 in denominators would make it predict only these."
        f" *{BLOCK_COORDINATE}* is transductive: it has no rule and no tuning rows, but chooses the predictions of all"
        " new rows together, from their scores. Both start from two places, and the better one on their own objective"
        " counts, on the time of one.",
        counts(found, others),
        f"Cells where *{REPORTED}* is worse after Holm:",
        worse(found, others),
        means(found, BUDGETS, others),
    ]
    return lines, [above(found, other) for other in others[1:]]


def times_report() -> tuple[list[str], list[Target]]:
    """What was measured of times, if anything."""
    lines: list[str] = []
    targets: list[Target] = []
    if (path := blocks.times_path("classes")).exists():
        seconds, values = np.load(path).T
        names = (*OURS, CUTOFFS)
        rows = [
            (name, f"{one:.3f} s", f"{seconds[-1] / one:.1f}×", f"{value:.5f}")
            for name, one, value in zip(names, seconds, values, strict=True)
        ]
        header = ("", "time", f"{CUTOFFS} takes", "macro-F1 on these rows")
        lines += ["100,000 rows × 10 classes, true probabilities:", table(header, rows)]
        ratio = {name: seconds[-1] / one for name, one in zip(names, seconds, strict=True)}
        measured = ", ".join(f"*{name}* {ratio[name]:.1f}×" for name in OURS)
        targets.append((f"20× faster than {CUTOFFS} at 100,000 × 10", measured, verdict(ratio["exact"] >= 20)))
    rows, ratios = [], []
    for problem in top_k_data.BUDGET_PROBLEMS:
        if (path := blocks.times_path(problem.name)).exists():
            for (i, j), own in np.ndenumerate(np.empty((len(SIZES), len(METRICS)))):
                own = dict(zip(blocks.TIMED, np.load(path)[i, j], strict=True))
                here = [own[rival] / own[REPORTED] for rival in (FRANK_WOLFE, BLOCK_COORDINATE)]
                ratios.append(here)
                shown = ("–" if np.isnan(own[method]) else f"{own[method]:.3f} s" for method in blocks.TIMED)
                name = f"{problem.name}, k = {SIZES[i]}, {METRICS[j]}"
                rows.append((name, *shown, *(f"{one:.1f}×" for one in here)))
    if rows:
        header = ("cell", *blocks.TIMED, *(f"{one} / {REPORTED}" for one in (FRANK_WOLFE, BLOCK_COORDINATE)))
        lines += ["k labels for each row, the first repetition:", table(header, rows)]
        for rival, found in zip((FRANK_WOLFE, BLOCK_COORDINATE), np.array(ratios).T, strict=True):
            measured = f"{found.min():.1f}× at the least, {np.median(found):.1f}× in the median of {len(found)} cells"
            targets.append((f"10× faster than {rival}", measured, verdict(bool(found.min() >= 10))))
    note = "CPU seconds of tuning, those of all threads together: the median of three turns after one that compiles."
    return (["## Times", note, *lines] if lines else []), targets


def report(parts: Sequence[tuple[list[str], list[Target]]]) -> str:
    targets = [target for _, some in parts for target in some]
    head = [
        "# k labels for each row, beside rivals",
        f"Written by `{stable_cache.command()}`. Python {platform.python_version()}, {platform.machine()}, "
        f'{os.cpu_count()} cores. *exact*: `tune_top_k(y, scores, k=...)`; *shrunken*: `shrinkage="auto"`; *stable*:'
        " `stable=True`, the rule for new rows, which the targets are about. Values on new rows, means over"
        " repetitions; differences with paired standard errors; *better* and *worse* are signs of the mean difference,"
        " p-values those of one-sided paired t-tests, Holm's correction over the cells of a line. Repetitions draw from"
        " one data set: the standard errors are of these data. In brackets: repetitions of a method, if they are others"
        " than those of the line.",
        table(("target", "measured", ""), targets, words=3),
    ]
    return "\n\n".join([*head, *(line for lines, _ in parts for line in lines)]) + "\n"


# --- Running ---------------------------------------------------------------------------------------------------------


def run(work: Sequence[tuple[Callable[..., np.ndarray], tuple[object, ...]]]) -> None:
    """Measure what is not there yet."""
    begin = time.perf_counter()
    for done, (measure, arguments) in enumerate(work, 1):
        measure(*arguments)
        if done % 60 == 0:
            print(f"{done} of {len(work)} blocks, {time.perf_counter() - begin:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["multiclass", "budgets"])
    parser.add_argument("--quick", action="store_true", help="few cells and repetitions, not written")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--only", default="", metavar="REGEX", help="cells in whose name it is found, not written")
    every = list(dict.fromkeys((*CLASSES, *BUDGETS)))
    parser.add_argument("--methods", nargs="+", choices=every, default=every, help="measure these alone")
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    repetitions = min(options.repetitions, QUICK_REPETITIONS) if options.quick else options.repetitions
    only = options.only or (QUICK if options.quick else "")
    classes = [cell for cell in top_k_data.cells() if re.search(only, cell.name)]
    budgets = [problem for problem in top_k_data.BUDGET_PROBLEMS if re.search(options.only, problem.name)]
    if not options.report:
        asked: dict[str, list[tuple[Callable[..., np.ndarray], tuple[object, ...]]]] = {
            "multiclass": [
                (blocks.class_block, (cell, number, method))
                for number in range(repetitions)
                for cell in classes
                for method in CLASSES
                if method in options.methods
            ],
            "budgets": [
                (blocks.budget_block, (problem, number, method))
                for number in range(repetitions)
                for problem in budgets
                for method in BUDGETS
                if method in options.methods and (method, type(problem)) not in blocks.TOO_LONG
            ],
            "time": [
                (blocks.times, ("classes", blocks.class_times)),
                *((blocks.times, (one.name, partial(blocks.budget_times, one))) for one in budgets),
            ],
        }
        run([one for part in options.parts for one in asked[part]])
    whole = not (options.quick or options.only)
    parts = []
    if (whole or "multiclass" in options.parts) and (found := class_cells(classes, repetitions)):
        parts.append(classes_report(found))
    if (whole or "budgets" in options.parts) and (found := budget_cells(budgets, repetitions)):
        parts.append(budgets_report(found))
    if whole:
        parts.append(times_report())
    text = report(parts)
    print(text)
    if whole and options.methods == every:
        (stable_cache.RESULTS / "top_k.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
