"""Bands whose conditions hold on new data: surecut beside MAPIE's abstention, on MAPIE's example; and their time.

Scores are those of MAPIE's example of a judge that abstains: Beta(3, 1) of positives and Beta(1, 3) of negatives, each
with probability 1/2. So what zones consist of in the population is computed. The aim is the fewest rows between the two
decided zones, with conditions on the PPV of the highest and the NPV of the lowest, both at once with 90 % confidence.
The work is cut into blocks, each of which is kept in a file: a run that was stopped goes on where it was.

    python benchmarks/bands.py                       # violations and rows referred; some 20 minutes on one core
    python benchmarks/bands.py --blocks 1 --jobs 1   # a first look: the first block of every cell, in one process
    python benchmarks/bands.py --report              # only the tables, of the blocks that are there
    python benchmarks/bands.py --part times          # the time of bands of a million rows; some two minutes

Written: ``results/bands.md`` and ``results/bands_times.md``. MAPIE gets the grid of its example, 5 × 5 pairs of
thresholds, and one of 30 × 30 in the same range, each without pairs in the wrong order. Of its procedures two take
part: its default (Bonferroni–Holm), and a fixed sequence that one half of the rows learns and the other half tests. For
pairs of thresholds it refuses a fixed sequence that is not learned, and Bonferroni rejects nothing that Bonferroni–Holm
keeps.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

import stable_cache
import surecut
import tuning
from paired import Difference, table
from stable_cache import RESULTS, command
from stable_populations import Population
from surecut import InfeasibleError, tune_bands, tune_threshold

POPULATION = Population(stats.beta(3, 1), stats.beta(1, 3), 0.5)
CONFIDENCE = 0.9
SIZES = (100, 300, 1_000, 3_000)
BLOCK, BLOCKS = 100, 10
BELOW = 2 / 3
"""What the excess of surecut is compared with: this part of MAPIE's."""

Thresholds = tuple[float, float]
NOTHING_DECIDED = -np.inf, np.inf
"""Every row is between the thresholds."""


class Task(NamedTuple):
    """The PPV above the upper threshold and the NPV below the lower one."""

    ppv: float
    npv: float

    @property
    def words(self) -> str:
        return f"PPV ≥ {self.ppv:g} above, NPV ≥ {self.npv:g} below"


TASKS = (Task(0.85, 0.80), Task(0.95, 0.95))


def accepted(threshold: float) -> tuple[float, float]:
    """The shares of all rows that are negative and at or above a threshold, and that are positive and there."""
    prior = POPULATION.prior
    return float((1 - prior) * POPULATION.negative.sf(threshold)), float(prior * POPULATION.positive.sf(threshold))


def referred(thresholds: Thresholds) -> float:
    """The share of the population between two thresholds."""
    low, high = (sum(accepted(one)) for one in thresholds)
    return low - high


def violates(task: Task, thresholds: Thresholds) -> bool:
    """Whether one of the conditions does not hold in the population; an empty zone meets its condition."""
    (low_fp, low_tp), (fp, tp) = (accepted(one) for one in thresholds)
    fn, tn = POPULATION.prior - low_tp, 1 - POPULATION.prior - low_fp
    return tp < task.ppv * (tp + fp) or tn < task.npv * (tn + fn)


def optimum(task: Task) -> float:
    """The fewest rows between: both PPV and NPV move one way; where the conditions cross nobody is between."""

    def ppv(threshold: float) -> float:
        fp, tp = accepted(threshold)
        return tp / (tp + fp)

    def npv(threshold: float) -> float:
        fp, tp = accepted(threshold)
        return (0.5 - fp) / (1 - fp - tp)

    upper = optimize.brentq(lambda t: ppv(t) - task.ppv, 1e-6, 1 - 1e-6)
    lower = optimize.brentq(lambda t: npv(t) - task.npv, 1e-6, 1 - 1e-6)
    return max(0.0, referred((lower, upper)))


def by_surecut(task: Task, labels: np.ndarray, scores: np.ndarray, confidence: float | None) -> Thresholds:
    try:
        bands = tune_bands(labels, scores, upper=f"ppv>={task.ppv}", lower=f"npv>={task.npv}", confidence=confidence)
    except InfeasibleError:
        return NOTHING_DECIDED
    low, high = bands.thresholds.tolist()
    return low, high


def pairs(points: int) -> np.ndarray:
    """The pairs of thresholds of MAPIE's example, with so many values of each."""
    lower, upper = np.linspace(0.3, 0.7, points), np.linspace(0.4, 0.8, points)
    return np.array([(low, high) for low in lower for high in upper if high >= low])


def zones(scores: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """The predictions of MAPIE's example: 0, 1, and NaN between the thresholds."""
    return np.where(scores >= upper, 1.0, np.where(scores <= lower, 0.0, np.nan))


def controller(task: Task, points: int, procedure: str) -> Any:
    from mapie.risk_control import BinaryClassificationController

    return BinaryClassificationController(
        predict_function=zones,
        risk=["positive_predictive_value", "negative_predictive_value"],
        target_level=[task.ppv, task.npv],
        confidence_level=CONFIDENCE,
        best_predict_param_choice="abstention_rate",
        list_predict_params=pairs(points),
        fwer_method=procedure,
    )


def by_mapie(task: Task, labels: np.ndarray, scores: np.ndarray, points: int, procedure: str) -> Thresholds:
    control = controller(task, points, procedure)
    if procedure == "split_fixed_sequence":
        half = len(labels) // 2
        learn_order(control, scores[:half], labels[:half])
        labels, scores = labels[half:], scores[half:]
    found = control.calibrate(scores, labels).best_predict_param
    return NOTHING_DECIDED if found is None else found


def learn_order(control: Any, scores: np.ndarray, labels: np.ndarray) -> None:
    """What ``learn_fixed_sequence_order`` does, in arrays: its loops take seconds for a grid of 30 × 30.

    `check_order` compares the two.
    """
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    predictions = control._get_predictions_per_param(scores, control._predict_params, is_calibration_step=True)
    risks, rows = control._get_risk_values_and_eff_sample_sizes(labels, predictions, control._risk)
    p_values = [
        compute_hoeffding_bentkus_p_value(*of_risk, np.array([level]), True)[:, 0]
        for *of_risk, level in zip(risks, rows, control._alpha, strict=True)
    ]
    wanted = np.logspace(-25, 0, 1000)[:, None]
    nearest = np.max([np.abs(one - wanted) for one in p_values], axis=0).argmin(axis=1)
    order = control._predict_params[list(dict.fromkeys(nearest.tolist()))]
    control._learned_fixed_sequence = order.astype(object)


def check_order(task: Task, labels: np.ndarray, scores: np.ndarray, points: int) -> None:
    """Raise where `learn_order` is not MAPIE's."""
    ours, theirs = (controller(task, points, "split_fixed_sequence") for _ in range(2))
    learn_order(ours, scores, labels)
    theirs.learn_fixed_sequence_order(scores, labels, binary=True)
    if not np.array_equal(ours._learned_fixed_sequence, theirs._learned_fixed_sequence):
        raise ValueError(f"{task}, {len(labels)} rows, {points} points: the order of tests is not MAPIE's")


@dataclass(frozen=True)
class Method:
    """A way to find thresholds, and whether it promises that conditions hold."""

    name: str
    find: Callable[[Task, np.ndarray, np.ndarray], Thresholds]
    promises: bool = True
    points: int = 0
    """Of MAPIE's grid."""

    @property
    def is_mapie(self) -> bool:
        return self.points > 0


PROCEDURES = {"Holm": "bonferroni_holm", "split": "split_fixed_sequence"}
SURECUT = Method("surecut", partial(by_surecut, confidence=CONFIDENCE))
METHODS = (
    SURECUT,
    *(
        Method(
            f"MAPIE {points} × {points}, {name}", partial(by_mapie, points=points, procedure=procedure), True, points
        )
        for points in (5, 30)
        for name, procedure in PROCEDURES.items()
    ),
    Method("surecut, exact without confidence", partial(by_surecut, confidence=None), promises=False),
)

FOUND, REFERRED, VIOLATED = range(3)


def measure(task: Task, rows: int, number: int, method: Method) -> np.ndarray:
    """(draws, 3): whether any row is decided, the share referred, whether a condition is violated.

    The draws are the same for every method.
    """
    warnings.simplefilter("ignore")  # MAPIE warns where it finds nothing
    seed = hashlib.sha256(f"{task.ppv}/{task.npv}/{rows}/{number}".encode()).digest()
    random = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
    found = np.empty((BLOCK, 3))
    for draw in range(BLOCK):
        labels, scores = POPULATION.draw(random, rows)
        if draw == 0 and number == 0 and method.is_mapie:
            check_order(task, labels.astype(int), scores, method.points)
        thresholds = method.find(task, labels.astype(int), scores)
        share = referred(thresholds)
        found[draw] = share < 1, share, violates(task, thresholds)
    return found


def of_promises() -> bytes:
    """The sources that bands depend on, those with confidence too."""
    package = Path(surecut.__file__).parent
    paths = (*sorted((package / "certificates").glob("*.py")), package / "zones.py")
    return stable_cache.sources() + b"".join(path.read_bytes() for path in paths)


def of_mapie() -> bytes:
    return version("mapie").encode()


@cache
def folder(is_mapie: bool) -> Path:
    of_both = (measure, Task, accepted, referred, violates, str(BLOCK))
    if is_mapie:
        used = (by_mapie, learn_order, controller, zones, pairs, str(CONFIDENCE))
        return stable_cache.folder("bands", *of_both, *used, measured=of_mapie)
    return stable_cache.folder("bands", *of_both, by_surecut, str(CONFIDENCE), measured=of_promises)


def path(task: Task, rows: int, number: int, method: Method) -> Path:
    """The file of a block."""
    name = "".join(letter if letter.isalnum() else "_" for letter in method.name)
    return folder(method.is_mapie) / f"{name}_{task.ppv}_{task.npv}_{rows}_{number}.npy"


def run(task: Task, rows: int, number: int, method: Method) -> None:
    """Do a block unless its file is there."""
    here = path(task, rows, number, method)
    if not here.exists():
        stable_cache.kept(here, lambda: measure(task, rows, number, method))
        print(f"{time.strftime('%H:%M:%S')} {here.name}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cell:
    """The finished draws of a task and a size, shape (methods, draws, 3): of the blocks that every method has."""

    task: Task
    rows: int
    found: np.ndarray

    @classmethod
    def read(cls, task: Task, rows: int) -> Cell | None:
        paths = [[path(task, rows, number, method) for method in METHODS] for number in range(BLOCKS)]
        blocks = [[np.load(one) for one in block] for block in paths if all(one.exists() for one in block)]
        return cls(task, rows, np.concatenate(blocks, axis=1)) if blocks else None

    @property
    def excess(self) -> np.ndarray:
        """The share referred in excess of the population's optimum: (methods, draws)."""
        return self.found[..., REFERRED] - optimum(self.task)

    @property
    def best_of_mapie(self) -> int | None:
        """The grid and procedure that refer the fewest rows; None where none finds anything."""
        those = [i for i, method in enumerate(METHODS) if method.is_mapie and self.found[i, :, FOUND].any()]
        return min(those, key=lambda i: float(self.excess[i].mean())) if those else None

    def rows_of_table(self) -> list[tuple[str, ...]]:
        lines = []
        for i, method in enumerate(METHODS):
            found = self.found[i, :, FOUND] > 0
            violated, excess = Difference.of(self.found[i, :, VIOLATED]), Difference.of(self.excess[i])
            where_found = f"{self.excess[i][found].mean():.4f}" if found.any() else "–"
            lines.append(
                (
                    f"{self.rows:,}",
                    f"**{method.name}**" if i == self.best_of_mapie or method is SURECUT else method.name,
                    f"{violated.mean:.3f} ± {violated.error:.3f}",
                    f"{found.mean():.3f}",
                    f"{self.found[i, :, REFERRED].mean():.4f}",
                    f"{excess.mean:.4f} ± {excess.error:.4f}",
                    where_found,
                )
            )
        return lines

    def row_of_verdicts(self) -> tuple[str, ...]:
        """The excess of surecut beside that of MAPIE's best, in the same draws."""
        ours, best = self.excess[METHODS.index(SURECUT)], self.best_of_mapie
        start = self.task.words, f"{self.rows:,}", f"{ours.mean():.4f}"
        if best is None:
            decided = float(self.found[METHODS.index(SURECUT), :, FOUND].mean())
            return (*start, "nothing found", "–", "–", f"surecut finds something in {decided:.0%}")
        theirs = self.excess[best]
        ratio = float(ours.mean() / theirs.mean())
        error = Difference.of(ours, ratio * theirs).error / float(theirs.mean())
        verdict = "met" if ratio <= BELOW else "missed"
        if abs(ratio - BELOW) <= 2 * error:
            verdict += ", within 2 standard errors"
        return (
            *start,
            f"{theirs.mean():.4f} ({METHODS[best].name.removeprefix('MAPIE ')})",
            f"{ratio:.3f} ± {error:.3f}",
            str(Difference.of(ours, theirs)),
            verdict,
        )


def worst(cells: Sequence[Cell], promises: bool) -> str:
    """The largest share of violations among methods of surecut, and by how much it exceeds what is allowed."""
    allowed = 1 - CONFIDENCE
    those = [i for i, method in enumerate(METHODS) if not method.is_mapie and method.promises == promises]
    shares = [(float(cell.found[i, :, VIOLATED].mean()), len(cell.found[i])) for cell in cells for i in those]
    share, draws = max(shares)
    above = (share - allowed) / np.sqrt(allowed * (1 - allowed) / draws)
    return f"{share:.3f}, {above:+.1f} standard errors from {allowed:.2f}"


def report() -> None:
    """The tables of the blocks that are there."""
    cells = [cell for task in TASKS for rows in SIZES if (cell := Cell.read(task, rows)) is not None]
    draws = sorted({cell.found.shape[1] for cell in cells})
    header = ("n", "method", "violations", "anything found", "referred", "excess", "excess where found")
    parts = [
        "# Bands whose conditions hold on new data, beside MAPIE",
        f"Written by `{command()}`. Python {platform.python_version()}, NumPy {np.__version__}, MAPIE"
        f" {version('mapie')}, surecut's sources {tuning.digest_of_sources()};"
        f" {' to '.join(f'{one:,}' for one in draws[:: max(len(draws) - 1, 1)])} draws of each cell, the same for every"
        " method.",
        "Scores are Beta(3, 1) of positives and Beta(1, 3) of negatives, each with probability 1/2, as in MAPIE's"
        " example of a judge that abstains; what thresholds are worth in the population is computed. *Violations*: how"
        f" often at least one condition does not hold there; at most {1 - CONFIDENCE:.2f} are allowed. *Referred*: the"
        " mean share of the population between the thresholds; where nothing is found every row is referred. *Excess*:"
        " that minus the fewest rows with which both conditions hold in the population; also over the draws in which"
        " something is found alone, which are not the same for different methods. After ± is the standard error. Set in"
        " bold: surecut, and the grid and procedure of MAPIE with the smallest excess.",
        f"Violations of surecut: at most {worst(cells, True)}. The exact bands without confidence, which promise"
        f" nothing, show that violations are found where there are some: at most {worst(cells, False)}.",
        "## The excess of surecut beside that of MAPIE's best",
        "*To reach*: at most two thirds of the excess of MAPIE's best grid and procedure.",
        table(
            ("task", "n", "surecut", "MAPIE's best", "ratio", "difference", "verdict"),
            [cell.row_of_verdicts() for cell in cells],
        ),
    ]
    for task in TASKS:
        lines = [line for cell in cells if cell.task == task for line in cell.rows_of_table()]
        best = f"The optimum refers {optimum(task):.4f} of the rows."
        parts += [
            f"## {task.words}",
            best,
            table(header, lines, words=2),
        ]
    write("bands.md", parts)


def write(name: str, parts: Sequence[str]) -> None:
    text = "\n\n".join(parts) + "\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(text, encoding="utf-8")


TIMED_ROWS, TURNS = 1_000_000, 31


def times() -> None:
    """The time of bands of a million rows, beside one cut and beside sorting: medians of calls that take turns."""
    load, begin = tuning.load(), time.perf_counter()
    labels, scores = POPULATION.draw(np.random.default_rng(0), TIMED_ROWS)
    labels = labels.astype(np.int64)
    harder, easier = ({"upper": f"ppv>={one.ppv}", "lower": f"npv>={one.npv}"} for one in reversed(TASKS))
    coupled = {"upper": easier["upper"], "conditions": {"ask": "share<=0.1"}}
    calls: dict[str, Callable[[], Any]] = {
        '`tune_threshold`, `metric="f1"`': partial(tune_threshold, labels, scores, metric="f1"),
        "`np.sort`": partial(np.sort, scores),
    }
    gains = {"gains": {"no": (0, -10), "ask": -1, "yes": (-5, 0)}}
    for options in (harder, easier, gains, coupled, {**harder, "confidence": CONFIDENCE}):
        words = ", ".join(f"`{name}={value!r}`" for name, value in options.items())
        calls[f"`tune_bands`, {words}"] = partial(tune_bands, labels, scores, **options)
    for call in calls.values():
        tuning.compiled(call)
    taken = np.empty((TURNS, len(calls)))
    for turn in range(TURNS):
        for i, call in enumerate(calls.values()):
            start = time.perf_counter()
            call()
            taken[turn, i] = time.perf_counter() - start
    medians, beside_cut, beside_sort = (
        np.median(taken / one, axis=0).tolist() for one in (1.0, taken[:, :1], taken[:, 1:2])
    )
    lines = [
        (name, tuning.duration(median), f"{cut:.1f}×", f"{sort:.1f}×")
        for name, median, cut, sort in zip(calls, medians, beside_cut, beside_sort, strict=True)
    ]
    try:
        numba = version("numba")
    except PackageNotFoundError:
        numba = "none"
    write(
        "bands_times.md",
        [
            "# Time of bands",
            f"Written by `{command()}`: {TIMED_ROWS:,} rows of the population in `bands.md`; medians of {TURNS} turns,"
            f" ratios too; compiled kernels loaded before. Python {platform.python_version()}, {platform.system()}"
            f" {platform.machine()}, {tuning.available_cores()} cores; load before {load}, after {tuning.load()}; NumPy"
            f" {np.__version__}, numba {numba}; surecut's sources {tuning.digest_of_sources()}.",
            table(("call", "time", "beside one cut", "beside sorting"), lines),
            f"The run took {(time.perf_counter() - begin) / 60:.1f} minutes.",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("draws", "times"), default="draws", help="what to measure")
    parser.add_argument("--blocks", type=int, default=BLOCKS, help=f"how many blocks of each cell, of {BLOCK} draws")
    parser.add_argument("--report", action="store_true", help="run nothing: the tables of what is there")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    if options.part == "times":
        times()
        return
    if not options.report:
        from joblib import Parallel, delayed

        wanted = [
            (task, rows, number, method)
            for number in range(options.blocks)
            for rows in SIZES
            for task in TASKS
            for method in METHODS
        ]
        Parallel(n_jobs=options.jobs, backend="multiprocessing")(delayed(run)(*one) for one in wanted)
    report()


if __name__ == "__main__":
    main()
