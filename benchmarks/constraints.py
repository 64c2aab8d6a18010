"""Constraints that hold on new data: surecut beside MAPIE, on MAPIE's own example and on scores of known quality.

Rows are drawn from a pool of a million rows, which is the population: what a cut is worth there is counted, not
estimated. The circles are those of MAPIE's examples for binary classification, with its model and its levels; the other
scores are s = sigmoid(2z − b) of a normal z, and labels are drawn with s as probability. The work is cut into blocks,
each of which is kept in a file: a run that was stopped goes on where it was.

    python benchmarks/constraints.py             # everything; some 25 minutes on two cores
    python benchmarks/constraints.py --blocks 1  # a first look: the first block of every cell
    python benchmarks/constraints.py --report    # only the table, of the blocks that are there

Written: ``results/constraints.md``. Procedures of MAPIE that are valid for the task take part: its default
(Bonferroni–Holm over 100 thresholds), Bonferroni, a fixed sequence for quantities that are monotone in the threshold,
and a fixed sequence that one half of the rows learns and the other half tests.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

import surecut
from surecut import InfeasibleError, tune_threshold
from surecut.confusion import Confusion
from surecut.constraints import parse_constraints
from surecut.metrics import get_metric

RESULTS = Path(__file__).parent / "results"
SIZES = (500, 2_000, 5_000)
BLOCK, BLOCKS = 250, 4
POOL = 1_000_000


@dataclass(frozen=True)
class Task:
    """What is asked for: the most of a metric under constraints, with a confidence, from rows of a population."""

    population: str
    metric: str
    constraints: tuple[str, ...]
    confidence: float

    @property
    def words(self) -> str:
        return f"most {self.metric}, {' and '.join(self.constraints)} ({self.confidence:.0%})"

    @property
    def monotone(self) -> bool:
        """Whether a fixed sequence of thresholds is valid: one constraint on a quantity that moves one way."""
        return len(self.constraints) == 1 and not self.constraints[0].startswith(("precision", "accuracy"))


TASKS = (
    Task("circles", "recall", ("precision>=0.8",), 0.9),
    Task("circles", "recall", ("fpr<=0.1",), 0.9),
    Task("circles", "precision", ("recall>=0.8",), 0.7),
    Task("circles", "accuracy", ("accuracy>=0.8",), 0.9),
    Task("28 % positive", "recall", ("fpr<=0.1",), 0.95),
    Task("5 % positive", "precision", ("recall>=0.8",), 0.95),
    Task("28 % positive", "recall", ("predicted_positive_rate<=0.05",), 0.95),
    Task("circles", "recall", ("precision>=0.75", "recall>=0.7"), 0.9),
    Task("circles", "recall", ("precision>=0.85", "recall>=0.8"), 0.9),
)
METHODS = ("surecut", "MAPIE, default", "MAPIE, Bonferroni", "MAPIE, fixed sequence", "MAPIE, split")
MAPIE = ("", "bonferroni_holm", "bonferroni", "fixed_sequence", "split_fixed_sequence")
SPLIT_DRAWS = 50
"""Learning the order of tests takes MAPIE longer than everything else: the first draws only."""


class Pool:
    """Rows that are the population, in ascending order of their scores."""

    def __init__(self, labels: np.ndarray, scores: np.ndarray) -> None:
        order = np.argsort(scores)
        self.labels, self.scores = labels[order].astype(int), scores[order]
        self.positives = np.concatenate(([0], np.cumsum(self.labels)))

    def draw(self, random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = random.integers(len(self.labels), size=rows)
        return self.labels[chosen], self.scores[chosen]

    def confusion(self, threshold: float) -> Confusion:
        rejected = int(np.searchsorted(self.scores, threshold, side="left"))
        fn, positives = int(self.positives[rejected]), int(self.positives[-1])
        fp = len(self.labels) - rejected - (positives - fn)
        return Confusion(positives - fn, fp, fn, len(self.labels) - positives - fp)


@cache
def pool(name: str) -> Pool:
    """The population of a name."""
    random = np.random.default_rng(7)
    if name != "circles":
        prior = {"28 % positive": 0.285, "5 % positive": 0.05}[name]
        z = np.linspace(-10, 10, 20_001)
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        b = optimize.brentq(lambda b: float((density * special.expit(2 * z - b)).sum()) - prior, -20, 20)
        scores = special.expit(2 * random.standard_normal(POOL) - b)
        return Pool(random.random(POOL) < scores, scores)
    from sklearn.datasets import make_circles
    from sklearn.neural_network import MLPClassifier

    rows = {"noise": 0.3, "factor": 0.3}
    X, y = make_circles(n_samples=3_500, random_state=42, **rows)
    model = MLPClassifier(max_iter=150, random_state=42).fit(X, y)
    X, y = make_circles(n_samples=POOL, random_state=7, **rows)
    return Pool(y, model.predict_proba(X)[:, 1])


def by_surecut(task: Task, labels: np.ndarray, scores: np.ndarray) -> float | None:
    try:
        cut = tune_threshold(
            labels, scores, metric=task.metric, constraint=list(task.constraints), confidence=task.confidence
        )
    except InfeasibleError:
        return None
    return cut.threshold


def by_mapie(task: Task, labels: np.ndarray, scores: np.ndarray, procedure: str) -> float | None:
    from mapie.risk_control import BinaryClassificationController

    names = {"predicted_positive_rate": "predicted_positive_fraction"}
    asked = [one.replace("<=", ">=").split(">=") for one in task.constraints]
    risks, levels = [names.get(name, name) for name, _ in asked], [float(level) for _, level in asked]
    controller = BinaryClassificationController(
        predict_function=lambda scores: np.column_stack((1 - scores, scores)),
        risk=risks if len(risks) > 1 else risks[0],
        target_level=levels if len(levels) > 1 else levels[0],
        confidence_level=task.confidence,
        best_predict_param_choice=names.get(task.metric, task.metric),
        fwer_method=procedure,
    )
    if procedure == "split_fixed_sequence":
        half = len(labels) // 2
        controller.learn_fixed_sequence_order(scores[:half], labels[:half], binary=True)
        labels, scores = labels[half:], scores[half:]
    found = controller.calibrate(scores, labels).best_predict_param
    return None if found is None else float(found)


def block(task: Task, rows: int, number: int) -> np.ndarray:
    """(draws, methods, 3): whether a cut was given, what it is worth, whether it breaks a constraint; NaN: no part."""
    seed = hashlib.sha256(f"{task}/{rows}/{number}".encode()).digest()
    random, population = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32)), pool(task.population)
    metric, constraints = get_metric(task.metric), parse_constraints(list(task.constraints))
    found = np.full((BLOCK, len(METHODS), 3), np.nan)
    for draw in range(BLOCK):
        labels, scores = population.draw(random, rows)
        for index in range(len(METHODS)):
            if (index == 3 and not task.monotone) or (index == 4 and (number or draw >= SPLIT_DRAWS)):
                continue
            threshold = by_mapie(task, labels, scores, MAPIE[index]) if index else by_surecut(task, labels, scores)
            if threshold is None:
                found[draw, index] = 0.0, 0.0, 0.0
                continue
            at = population.confusion(threshold)
            value = float(np.nan_to_num(metric.evaluate(at)))
            found[draw, index] = 1.0, value, not all(one.is_met(at) for one in constraints)
    return found


def path_of(folder: Path, task: int, rows: int, number: int) -> Path:
    return folder / f"{task}_{rows}_{number}.npy"


def run(folder: Path, task: int, rows: int, number: int) -> None:
    """Do a block unless its file is there; the file comes whole or not at all."""
    path = path_of(folder, task, rows, number)
    if path.exists():
        return
    warnings.simplefilter("ignore")  # MAPIE warns about undefined precision at the ends of its grid
    found = block(TASKS[task], rows, number)
    unfinished = path.with_suffix(".unfinished.npy")
    np.save(unfinished, found)
    unfinished.rename(path)
    print(f"{time.strftime('%H:%M:%S')} {path.name}", file=sys.stderr, flush=True)


def cells(folder: Path) -> Iterator[tuple[Task, int, np.ndarray]]:
    """The finished draws of each task and size."""
    for index, task in enumerate(TASKS):
        for rows in SIZES:
            paths = [path_of(folder, index, rows, number) for number in range(BLOCKS)]
            found = [np.load(path) for path in paths if path.exists()]
            if found:
                yield task, rows, np.concatenate(found)


def line(task: Task, rows: int, found: np.ndarray) -> tuple[list[str], str]:
    """A line of the table, and whether surecut is ahead of the best procedure of MAPIE, even with it, or behind."""
    worth, ran = found[..., 1], ~np.isnan(found[..., 1]).all(axis=0)
    means, broken_by = (np.nanmean(np.where(ran, found[..., part], 0.0), axis=0) for part in (1, 2))
    complete = ~np.isnan(found[..., 1]).any(axis=0)
    best = max((i for i in range(1, len(METHODS)) if complete[i]), key=lambda i: float(means[i]))
    ahead = worth[:, 0] - worth[:, best]
    error = float(ahead.std() / math.sqrt(len(ahead)))
    allowed, broken = 1 - task.confidence, float(found[:, 0, 2].mean())
    distance = float(ahead.mean()) / error if error else 0.0
    verdict = "ahead" if distance > 2 else "even" if distance >= -2 else "behind"
    others = [f"{means[i]:.4f} ({broken_by[i]:.3f})" if ran[i] else "" for i in range(1, len(METHODS))]
    return [
        task.population,
        task.words,
        f"{rows:,}",
        f"{len(found):,}",
        f"{means[0]:.4f}",
        f"{found[:, 0, 0].mean():.3f}",
        f"{broken:.3f} of {allowed:.2f}",
        *others,
        f"{ahead.mean():+.4f} ± {error:.4f}",
        verdict,
    ], verdict


def report(folder: Path) -> None:
    """The table of the blocks that are there."""
    from importlib.metadata import version

    lines, verdicts, worst = [], [], 0.0
    for task, rows, found in cells(folder):
        cells_of_line, verdict = line(task, rows, found)
        lines.append(cells_of_line)
        verdicts.append(verdict)
        allowed, broken = 1 - task.confidence, float(found[:, 0, 2].mean())
        worst = max(worst, (broken - allowed) / math.sqrt(allowed * (1 - allowed) / len(found)))
    header = [
        "rows from",
        "wanted",
        "n",
        "draws",
        "surecut",
        "a cut is given",
        "broken",
        *METHODS[1:],
        "surecut − best of MAPIE",
        "verdict",
    ]
    table = [header, ["---"] * len(header), *lines]
    parts = [
        "# Constraints that hold on new data, beside MAPIE",
        "Written by `python benchmarks/constraints.py`."
        f" Python {platform.python_version()}, NumPy {np.__version__}, MAPIE {version('mapie')}.",
        "What the cut is worth in the population on average, 0 where none is given. *Broken*: how often the cut that is"
        " given breaks a constraint in the population, of what is allowed; of MAPIE's procedures in brackets. *Verdict*"
        ": whether the mean difference to the best of MAPIE's procedures in the same draws, of those with all draws,"
        " is above 2 standard errors, below −2, or between. MAPIE's default and split procedures stop where precision"
        f" is undefined at a threshold of its grid; the split one has the first {SPLIT_DRAWS} draws only.",
        f"Ahead in {verdicts.count('ahead')} of {len(lines)} cells, even in {verdicts.count('even')}, behind in"
        f" {verdicts.count('behind')}. The largest excess of broken constraints over what is allowed is {worst:+.1f}"
        " standard errors.",
        "\n".join("| " + " | ".join(cells) + " |" for cells in table),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "constraints.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def default_folder() -> Path:
    """Blocks are kept per version of the sources that they depend on."""
    names = ("assurance", "pilot", "quantities", "ranks", "testing", "limits", "confidence")
    sources = [Path(surecut.__file__).parent / "certificates" / f"{name}.py" for name in names]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in (*sources, Path(__file__)))).hexdigest()[:12]
    return Path.home() / ".cache" / "surecut" / f"constraints-{digest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=BLOCKS, help=f"how many blocks of each cell, of {BLOCK} draws")
    parser.add_argument("--folder", type=Path, help="where finished blocks are kept")
    parser.add_argument("--report", action="store_true", help="run nothing: the table of what is there")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    folder: Any = options.folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    if not options.report:
        from joblib import Parallel, delayed

        wanted = [
            (task, rows, number) for number in range(options.blocks) for rows in SIZES for task in range(len(TASKS))
        ]
        Parallel(n_jobs=options.jobs, backend="multiprocessing")(delayed(run)(folder, *one) for one in wanted)
    report(folder)


if __name__ == "__main__":
    main()
