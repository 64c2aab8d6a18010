"""What the certificates promise, and how often they keep it: coverage, gap, regret, beside MAPIE and normal theory.

Scores are s = sigmoid(2z − b) of a normal z, labels are drawn with s as probability, so that the truth at a cut is an
integral that is known to the last digit that matters. One sample serves all metrics and methods. The work is cut into
blocks, each of which is kept in a file: a run that was stopped goes on where it was.

    python benchmarks/certificates.py             # everything; some 25 minutes on two cores
    python benchmarks/certificates.py --blocks 1  # a first look: the first block of every cell
    python benchmarks/certificates.py --report    # only tables and picture, of the blocks that are there

Written: ``results/certificates.md``, ``results/certificates.csv`` and ``docs/images/certificates.svg``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

import surecut
from surecut import ScoreTally, certify, tune_thresholds
from surecut.certificates.assurance import limited_cut
from surecut.certificates.bootstrap import FEWEST
from surecut.certificates.brackets import bracket_limits
from surecut.certificates.cells import ClusterCells
from surecut.certificates.holdout import labels_alone
from surecut.certificates.limits import value_limits
from surecut.certificates.resampling import resample
from surecut.certificates.uniform import uniform_regret
from surecut.confusion import Confusion
from surecut.decisions.cut import Cut
from surecut.metrics import Metric, Utility, get_metric
from surecut.theory import constants, estimation_term

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PICTURE = HERE.parent / "docs" / "images" / "certificates.svg"

ERROR = 0.05
METRICS: tuple[Metric, ...] = (*map(get_metric, ("f1", "f2", "jaccard", "am", "kappa")), Utility(fp=-1, fn=-5))
NAMES = ("F1", "F2", "Jaccard", "AM", "kappa", "cost 1 : 5")
PRIORS = (0.5, 0.1, 0.01)
SIZES = (500, 2_000, 10_000, 100_000)
TUNING_SHARE = 1 / 3

BLOCK = 250
BLOCKS = 8
"""Of 250 repetitions each."""
BLOCKS_OF = {"coverage": {100_000: 2}, "bootstrap": {10_000: 4, 100_000: 2}}
"""Fewer of many rows."""
RESAMPLES = 400
"""The bootstrap is slow to simulate: fewer resamples than the 2,000 by default, and fewer blocks of many rows."""
CASE = 1.5
"""The b of the case beside MAPIE."""


# --- The truth -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """s = sigmoid(2z − b), y ~ Bernoulli(s); the scores as they are, or rounded to two decimals."""

    b: float
    tied: bool = False

    @classmethod
    def of_prior(cls, prior: float, tied: bool = False) -> Population:
        return cls(float(optimize.brentq(lambda b: cls(b).prior - prior, -20, 20)), tied)

    def draw(self, random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and scores."""
        probability = special.expit(2 * random.standard_normal(rows) - self.b)
        labels = random.random(rows) < probability
        return labels, probability.round(2) if self.tied else probability

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A grid of z, and the mass of negatives and of positives above each of its points."""
        z = np.linspace(-10, 10, 200_001)
        density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        positive = special.expit(2 * z - self.b)

        def above(values: np.ndarray) -> np.ndarray:
            steps = (values[1:] + values[:-1]) / 2 * np.diff(z)
            return np.concatenate((np.cumsum(steps[::-1])[::-1], [0.0]))

        return z, above(density * (1 - positive)), above(density * positive)

    @property
    def prior(self) -> float:
        return float(self.table[2][0])

    def rates(self, threshold: Any) -> tuple[Any, Any]:
        """FP and FN of cuts, as shares of all rows."""
        lowest = np.asarray(threshold, dtype=float)
        if self.tied:  # the lowest probability that is rounded to an accepted score
            lowest = np.ceil(100 * lowest - 1e-9) / 100 - 0.005
        z, fp, tp = self.table
        at = np.where(np.isposinf(threshold), 10.0, (special.logit(np.clip(lowest, 0, 1)) + self.b) / 2)
        return np.interp(at, z, fp), self.prior - np.interp(at, z, tp)

    def value(self, metric: Metric, threshold: float) -> float:
        fp, fn = self.rates(threshold)
        return float(metric.value(fp=fp, fn=fn, prior=self.prior))

    @cache  # noqa: B019  # a handful of populations, for the whole run
    def best(self, metric: Metric) -> float:
        """The value of the best threshold."""
        every = np.arange(1, 101) / 100 if self.tied else special.expit(2 * self.table[0][::10] - self.b)
        fp, fn = self.rates(every)
        return float(np.nanmax(metric.value(fp=fp, fn=fn, prior=self.prior)))


# --- Work that can be stopped ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A block of repetitions of one experiment in one cell."""

    part: str
    prior: float
    """Of the population; NaN for the case beside MAPIE."""
    rows: int
    tied: bool
    block: int
    labels: int = 1
    """With many labels, `prior` is the correlation between them."""

    @property
    def name(self) -> str:
        if self.labels > 1:
            return f"{self.part}_{self.labels}_{self.prior}_{self.rows}_{self.block}.npz"
        return f"{self.part}_{self.prior}_{self.rows}_{'tied' if self.tied else 'continuous'}_{self.block}.npz"

    @property
    def population(self) -> Population:
        return Population(CASE) if math.isnan(self.prior) else Population.of_prior(self.prior, self.tied)

    @property
    def random(self) -> np.random.Generator:
        seed = hashlib.sha256(self.name.encode()).digest()
        return np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))


def run(task: Task, folder: Path) -> None:
    """Do a block unless its file is there; the file comes whole or not at all."""
    path = folder / task.name
    if path.exists():
        return
    warnings.simplefilter("ignore")  # MAPIE warns about undefined precision at the ends of its grid
    start = time.process_time()
    arrays = PARTS[task.part](task)
    unfinished = path.with_suffix(".unfinished.npz")
    np.savez(unfinished, seconds=time.process_time() - start, **arrays)
    unfinished.rename(path)
    print(f"{time.strftime('%H:%M:%S')} {task.name}", file=sys.stderr, flush=True)


def load(folder: Path, tasks: Iterable[Task]) -> dict[str, np.ndarray]:
    """The blocks of one cell that are there, one after the other; empty where there is none."""
    found = [np.load(folder / task.name) for task in tasks if (folder / task.name).exists()]
    if not found:
        return {}
    return {name: np.concatenate([np.atleast_1d(block[name]) for block in found]) for name in found[0]}


# --- Coverage and gap ------------------------------------------------------------------------------------------------


def tuned(tally: ScoreTally, metric: Metric) -> Cut | None:
    """The best cut, or None where the metric is not defined on these rows: nothing is promised then."""
    try:
        return tally.best_cut(metric)
    except ValueError:
        return None


@cache
def cached_limits(metric: int, cells: tuple[float, ...]) -> tuple[float, float]:
    """`holdout`, which depends on the four counts only."""
    lower, upper, _ = value_limits(METRICS[metric], np.array(cells), ERROR)
    return lower, upper


def holdout(metric: int, cut: Cut, tally: ScoreTally) -> tuple[float, float] | None:
    """As `certify` does it, with repeated counts looked up."""
    negatives, positives = tally.rows.sum(axis=0)
    at = tally.confusion_at(cut.threshold)
    cells = tuple(map(float, (at.tp, at.fp, at.fn, at.tn)))
    if not positives or not negatives or math.isnan(METRICS[metric].evaluate(at)):
        return None
    return cached_limits(metric, cells)


def coverage(task: Task) -> dict[str, np.ndarray]:
    """Truth, lower and upper limit, (repetitions, metrics, 3), by method; NaN where nothing is promised."""
    random, population, rows = task.random, task.population, task.rows
    by_holdout, by_uniform = np.full((2, BLOCK, len(METRICS), 3), np.nan)
    theorem = np.full((BLOCK, len(METRICS)), np.nan)
    for repetition in range(BLOCK):
        labels, scores = population.draw(random, rows)
        first = round(rows * TUNING_SHARE)
        tuning = ScoreTally.from_scores(labels[:first], scores[:first])
        kept = ScoreTally.from_scores(labels[first:], scores[first:])
        everything = tuning + kept
        for index, metric in enumerate(METRICS):
            cut = tuned(tuning, metric)
            if cut is not None and (limits := holdout(index, cut, kept)) is not None:
                by_holdout[repetition, index] = population.value(metric, cut.threshold), *limits
            if (cut := tuned(everything, metric)) is not None:
                limits = bracket_limits(metric, everything, cut.threshold, ERROR)
                by_uniform[repetition, index] = population.value(metric, cut.threshold), *limits
                if repetition < 20:
                    theorem[repetition, index] = certify(cut, method="theorem", confidence=1 - ERROR).regret_bound
    return {"holdout": by_holdout, "uniform": by_uniform, "theorem": theorem}


def bootstrapped(task: Task) -> dict[str, np.ndarray]:
    """The same for the bootstrap of the tuning rows; one set of resamples serves all metrics."""
    random, population = task.random, task.population
    found = np.full((BLOCK, len(METRICS), 3), np.nan)
    for repetition in range(BLOCK):
        tally = ScoreTally.from_scores(*population.draw(random, task.rows))
        cuts = [tuned(tally, metric) for metric in METRICS]
        if None in cuts or tally.rows.sum(axis=0).min() < FEWEST:
            continue
        drawn = resample(cuts, tally, True, None, RESAMPLES, random, False)
        for index, (metric, cut, one) in enumerate(zip(METRICS, cuts, drawn, strict=True)):
            lower, upper = np.nanquantile(one.values, [ERROR, 1 - ERROR]) - one.optimism
            found[repetition, index] = population.value(metric, cut.threshold), lower, upper
    return {"bootstrap": found}


# --- The case beside MAPIE -------------------------------------------------------------------------------------------

SHARES = {"1/2": 1 / 2, "1/3": 1 / 3, "1/4": 1 / 4, "1/5": 1 / 5, "1/8": 1 / 8, "n^(−1/3)": None}
"""Shares of the rows that tune; the last one falls with their number."""
CASE_SIZES = (500, 2_000, 10_000)
MAPIE_BLOCK = {500: 100, 2_000: 60, 10_000: 20}
MAPIE_BLOCKS = 4


def shares(task: Task) -> dict[str, np.ndarray]:
    """(repetitions, shares, 2): the truth and the certified value of F1 for several shares of tuning rows.

    Last where a pilot sample chooses the cut, by `tune_threshold(confidence=...)`.
    """
    random, population, metric = task.random, task.population, METRICS[0]
    found = np.full((BLOCK, len(SHARES) + 1, 2), np.nan)
    for repetition in range(BLOCK):
        labels, scores = population.draw(random, task.rows)
        everything = ScoreTally.from_scores(labels, scores)
        if tuned(everything, metric) is not None:
            cut = limited_cut(everything.candidates, metric, 1 - ERROR)
            found[repetition, -1] = population.value(metric, cut.threshold), cut.lower_limit
        for index, share in enumerate(SHARES.values()):
            first = round(task.rows * (share or task.rows ** (-1 / 3)))
            cut = tuned(ScoreTally.from_scores(labels[:first], scores[:first]), metric)
            if cut is None:
                continue
            limits = holdout(0, cut, ScoreTally.from_scores(labels[first:], scores[first:]))
            if limits is not None:
                found[repetition, index] = population.value(metric, cut.threshold), limits[0]
    return {"found": found}


def controller(scores: np.ndarray, labels: np.ndarray, risk: Any, level: float, best: Any) -> float | None:
    """MAPIE's threshold, at its own 100 candidates; None where it finds none."""
    from mapie.risk_control import BinaryClassificationController

    found = BinaryClassificationController(
        predict_function=lambda scores: np.column_stack((1 - scores, scores)),
        risk=risk,
        target_level=level,
        confidence_level=1 - ERROR,
        best_predict_param_choice=best,
    ).calibrate(scores, labels.astype(int))
    return None if found.best_predict_param is None else float(found.best_predict_param)


def mapie(task: Task) -> dict[str, np.ndarray]:
    """(repetitions, 2): the truth and the certified F1 of MAPIE: the highest level for which it finds a threshold.

    It has no F1, which is no mean over rows; but the Jaccard index J is one over the rows that are or are called
    positive, and F1 = 2 J / (1 + J).
    """
    from mapie.risk_control import BinaryRisk

    jaccard = BinaryRisk(
        risk_occurrence=lambda truth, predicted: (truth == 1) & (predicted == 1),
        risk_condition=lambda truth, predicted: (truth == 1) | (predicted == 1),
        higher_is_better=True,
    )
    random, population, metric = task.random, task.population, METRICS[0]
    repetitions = MAPIE_BLOCK[task.rows]
    found = np.full((repetitions, 2), np.nan)
    for repetition in range(repetitions):
        labels, scores = population.draw(random, task.rows)
        low, high = 0.2, 0.6
        while high - low > 0.001:
            middle = (low + high) / 2
            threshold = controller(scores, labels, jaccard, middle, jaccard)
            if threshold is None:
                high = middle
            else:
                low = middle
                found[repetition] = population.value(metric, threshold), 2 * low / (1 + low)
    return {"found": found}


# --- Regret ----------------------------------------------------------------------------------------------------------

REGRET_BLOCK = {500: 250, 2_000: 100, 10_000: 50, 100_000: 25}
REGRET_BLOCKS = 2


def regret(task: Task) -> dict[str, np.ndarray]:
    """(repetitions, metrics, 3): the true regret against the best threshold, uniform's bound, and Theorem 3's."""
    random, population = task.random, task.population
    repetitions = REGRET_BLOCK[task.rows]
    found = np.full((repetitions, len(METRICS), 3), np.nan)
    for repetition in range(repetitions):
        tally = ScoreTally.from_scores(*population.draw(random, task.rows))
        for index, metric in enumerate(METRICS):
            if (cut := tuned(tally, metric)) is None:
                continue
            bound = uniform_regret(metric, tally, cut.confusion, ERROR)
            best = population.best(metric)
            known = estimation_term(constants(metric, population.prior, best), task.rows, 1 - ERROR)
            found[repetition, index] = best - population.value(metric, cut.threshold), bound, known
    return {"found": found}


# --- Beside the normal distribution ----------------------------------------------------------------------------------

SLACK_METRICS: tuple[Metric, ...] = (*map(get_metric, ("f2", "am", "mcc", "kappa", "gmean")), Utility(fp=-1, fn=-5))
SLACK_NAMES = ("F2", "AM", "MCC", "kappa", "G-mean", "cost 1 : 5")
SLACK_SIZES = (375, 1_500, 7_500)
SLACK_BLOCKS = 2


def best_rates(population: Population, metric: Metric) -> np.ndarray:
    """Shares of the four cells at the population's best threshold."""
    every = special.expit(2 * population.table[0][::100] - population.b)
    fp, fn = population.rates(every)
    prior = population.prior
    best = int(np.nanargmax(metric.value(fp=fp, fn=fn, prior=prior)))
    return np.array([prior - fn[best], fp[best], fn[best], 1 - prior - fp[best]])


def normal_gap(metric: Metric, shares: np.ndarray, rows: int) -> float:
    """What the normal distribution leaves between a value and its lower limit: z times the standard error."""

    def value(at: np.ndarray) -> float:
        return float(metric.evaluate(Confusion(*at)))

    slopes = np.array([(value(shares + 1e-6 * one) - value(shares - 1e-6 * one)) / 2e-6 for one in np.eye(4)])
    variance = float(shares @ slopes**2 - (shares @ slopes) ** 2)
    return float(-special.ndtri(ERROR)) * math.sqrt(variance / rows)


def slack(task: Task) -> dict[str, np.ndarray]:
    """(repetitions, metrics, 2): the truth less the lower limit of held-out rows, and of the upper limit."""
    random, population = task.random, task.population
    found = np.full((BLOCK, len(SLACK_METRICS), 2), np.nan)
    for index, metric in enumerate(SLACK_METRICS):
        shares = best_rates(population, metric)
        truth = float(metric.evaluate(Confusion(*shares)))
        for repetition, counts in enumerate(random.multinomial(task.rows, shares / shares.sum(), size=BLOCK)):
            lower, upper, _ = value_limits(metric, counts.astype(float), ERROR)
            found[repetition, index] = truth - lower, upper - truth
    return {"found": found}


# --- Many labels -----------------------------------------------------------------------------------------------------

CORRELATIONS = (0.0, 0.3, 0.8)
LABELS = (10, 100)
LABEL_BLOCK = {500: 75, 2_000: 40, 10_000: 12}
LABEL_BLOCKS = 4
LABEL_RESAMPLES = 200
AVERAGES = ("macro", "micro")
LABEL_METHODS = ("holdout", "labels alone", "pairs", "bootstrap")


@cache
def label_populations(labels: int) -> list[Population]:
    """Labels from 2 % to 30 % positive."""
    return [Population.of_prior(float(prior)) for prior in np.geomspace(0.02, 0.3, labels)]


def draw_labels(random: np.random.Generator, rows: int, labels: int, correlation: float) -> tuple[np.ndarray, Any]:
    """Scores of one row go together, and so does what is left to chance in its labels; each label is as one alone."""

    def normal() -> np.ndarray:
        shared = math.sqrt(correlation) * random.standard_normal((rows, 1))
        return shared + math.sqrt(1 - correlation) * random.standard_normal((rows, labels))

    scores = special.expit(2 * normal() - np.array([population.b for population in label_populations(labels)]))
    return (special.ndtr(normal()) < scores).astype(np.uint8), scores


def true_average(average: str, thresholds: np.ndarray, metric: Metric) -> float:
    populations = label_populations(len(thresholds))
    rates = np.array(
        [population.rates(at) for population, at in zip(populations, thresholds, strict=True)], dtype=float
    )
    priors = np.array([population.prior for population in populations])
    if average == "micro":
        return float(metric.value(*rates.mean(axis=0), priors.mean()))
    return float(np.mean(metric.value(*rates.T, priors)))


def many_labels(task: Task) -> dict[str, np.ndarray]:
    """(repetitions, averages, methods, 3): truth, lower and upper limit of F1. Two methods are there for comparison:
    the labels' own limits at error / m (macro), and Clopper–Pearson on all pairs (micro), which is not valid."""
    random, metric = task.random, METRICS[0]
    repetitions = LABEL_BLOCK[task.rows]
    found = np.full((repetitions, len(AVERAGES), len(LABEL_METHODS), 3), np.nan)
    for repetition in range(repetitions):
        labels, scores = draw_labels(random, task.rows, task.labels, task.prior)
        first = round(task.rows * TUNING_SHARE)
        for index, average in enumerate(AVERAGES):
            cut = tune_thresholds(labels[:first], scores[:first], metric=metric, average=average)
            truth = true_average(average, cut.thresholds, metric)
            rows = labels[first:], scores[first:]
            cells = ClusterCells.of_matrices(rows[0], cut.predict(rows[1]))
            limits: dict[str, tuple[float, float]] = {}
            certificate = certify(cut, *rows, confidence=1 - ERROR, held_out=True)
            limits["holdout"] = certificate.lower, certificate.upper
            if average == "macro":
                limits["labels alone"] = labels_alone(metric, cells.confusion(), ERROR)
            else:
                limits["pairs"] = value_limits(metric, cells.pooled().sum(axis=0), ERROR)[:2]
            try:
                resampled = certify(
                    cut,
                    *rows,
                    confidence=1 - ERROR,
                    method="bootstrap",
                    held_out=True,
                    resamples=LABEL_RESAMPLES,
                    random_state=random,
                )
                limits["bootstrap"] = resampled.lower, resampled.upper
            except ValueError:  # too few positives of some labels
                pass
            for method, pair in limits.items():
                found[repetition, index, LABEL_METHODS.index(method)] = truth, *pair
    return {"found": found}


PARTS: dict[str, Callable[[Task], dict[str, np.ndarray]]] = {
    "shares": shares,
    "mapie": mapie,
    "coverage": coverage,
    "regret": regret,
    "bootstrap": bootstrapped,
    "slack": slack,
    "labels": many_labels,
}
MOST_BLOCKS = {"mapie": MAPIE_BLOCKS, "regret": REGRET_BLOCKS, "slack": SLACK_BLOCKS, "labels": LABEL_BLOCKS}


def cells(part: str) -> Iterator[tuple[float, int, bool]]:
    """Prior, rows and ties of an experiment's cells."""
    if part in ("coverage", "regret", "bootstrap"):
        for rows in SIZES:
            for prior in PRIORS:
                for tied in (False, True):
                    yield prior, rows, tied
        return
    if part == "slack":
        yield from ((prior, rows, False) for prior in PRIORS for rows in SLACK_SIZES)
        return
    for rows in CASE_SIZES:
        yield math.nan, rows, False
        if part == "shares":
            for prior in PRIORS:
                yield prior, rows, False


def tasks(part: str, blocks: int = BLOCKS) -> Iterator[Task]:
    """The blocks of one experiment, the first ones of every cell first."""
    for block in range(min(blocks, MOST_BLOCKS.get(part, BLOCKS))):
        if part == "labels":
            for rows in CASE_SIZES:
                for labels in LABELS:
                    for correlation in CORRELATIONS:
                        yield Task(part, correlation, rows, False, block, labels)
            continue
        for cell in cells(part):
            task = Task(part, *cell, block)
            if block < BLOCKS_OF.get(part, {}).get(task.rows, BLOCKS):
                yield task


# --- Tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One cell of the coverage experiment, one metric, one method: a line of the CSV."""

    method: str
    metric: str
    prior: float
    rows: int
    scores: str
    repetitions: int
    promised: float
    """The share of the repetitions in which there was a promise at all; none is made without rows of both classes."""
    coverage_lower: float
    """The share of all repetitions in which the truth was not below the lower limit (no promise is kept, too)."""
    coverage_upper: float
    gap: float
    """Mean of the truth less the lower limit."""
    certified: float
    """Mean of the lower limit."""
    truth: float

    @classmethod
    def of(cls, method: str, metric: str, cell: tuple[float, int, bool], found: np.ndarray) -> Row:
        truth, lower, upper = found.T
        promised = ~np.isnan(truth)
        return cls(
            method,
            metric,
            cell[0],
            cell[1],
            "two decimals" if cell[2] else "continuous",
            len(found),
            float(promised.mean()),
            float(1 - (lower > truth).mean()),
            float(1 - (upper < truth).mean()),
            *(
                float(values[promised].mean()) if promised.any() else math.nan
                for values in (truth - lower, lower, truth)
            ),
        )


def coverage_rows(folder: Path) -> list[Row]:
    """What was found, cell by cell; of methods of which there are no blocks, what is in the CSV of an earlier run."""
    found = []
    for part, methods in (("coverage", ("holdout", "uniform")), ("bootstrap", ("bootstrap",))):
        for cell in cells(part):
            blocks = load(folder, (task for task in tasks(part) if (task.prior, task.rows, task.tied) == cell))
            for method in methods if blocks else ():
                for index, name in enumerate(NAMES):
                    found.append(Row.of(method, name, cell, blocks[method][:, index]))
    ran = {row.method for row in found}
    return found + [row for row in earlier_rows() if row.method not in ran]


def earlier_rows() -> list[Row]:
    """The rows of the CSV that is there."""
    path = RESULTS / "certificates.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    texts, whole = {"method", "metric", "scores"}, {"rows", "repetitions"}
    return [
        Row(**{name: text if name in texts else (int if name in whole else float)(text) for name, text in line.items()})
        for line in lines
    ]


def table(header: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """A Markdown table, aligned for the eye too."""
    lines = [list(header), *map(list, body)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    def joined(line: list[str]) -> str:
        others = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        return "| " + " | ".join([line[0].ljust(widths[0]), *others]) + " |"

    return "\n".join([joined(lines[0]), "| " + " | ".join(rule) + " |", *map(joined, lines[1:])])


def by_cell(found: list[Row], method: str, show: Callable[[Row], str]) -> str:
    """A line for every cell, a column for every metric."""
    lines: dict[tuple[Any, ...], dict[str, str]] = {}
    repetitions: dict[tuple[Any, ...], int] = {}
    for row in found:
        if row.method == method:
            cell = (row.prior, row.rows, row.scores)
            lines.setdefault(cell, {})[row.metric] = show(row)
            repetitions[cell] = row.repetitions
    return table(
        ["P", "rows", "scores", "repetitions", *NAMES],
        [
            [f"{cell[0]:g}", f"{cell[1]:,}", cell[2], f"{repetitions[cell]:,}", *(line[name] for name in NAMES)]
            for cell, line in lines.items()
        ],
    )


def least_by_chance(found: list[Row]) -> Callable[[Row], float]:
    """The coverage below which a cell of exactly 95 % falls so rarely that one of all cells does in 1 of 100 runs."""
    from scipy import stats

    return lambda row: float(stats.binom.ppf(0.01 / len(found), row.repetitions, 1 - ERROR) / row.repetitions)


def coverage_verdict(found: list[Row], method: str) -> list[str]:
    of_method = [row for row in found if row.method == method]
    if not of_method:
        return [method, "not run", "", "", ""]
    limit = least_by_chance(of_method)
    worst = min(of_method, key=lambda row: row.coverage_lower)
    if method == "bootstrap":
        near = [row for row in of_method if row.coverage_lower >= 1 - ERROR - 0.02]
        verdict = f"{len(near)} of {len(of_method)} cells at 0.93 or above"
    else:
        low = [row for row in of_method if row.coverage_lower < limit(row)]
        verdict = "met" if not low else f"missed in {len(low)} cells"
    return [
        method,
        f"{worst.coverage_lower:.3f} ({worst.metric}, P = {worst.prior:g}, {worst.rows:,} rows, {worst.scores})",
        f"{limit(worst):.3f}",
        f"{np.mean([row.coverage_lower for row in of_method]):.3f}",
        verdict,
    ]


def coverage_sections(found: list[Row]) -> list[str]:
    parts = [
        "## Coverage of the lower limit, nominally 0.95",
        "A draw in which nothing could be promised (no rows of a class, or too few to be drawn again) counts as kept."
        " *By chance* is the lowest"
        " coverage that one of all cells of a method would show in one run of a hundred if each had exactly 0.95.",
        table(
            ["method", "lowest", "by chance", "mean", "verdict"],
            [coverage_verdict(found, method) for method in ("holdout", "uniform", "bootstrap")],
        ),
    ]
    for method, words in (
        ("holdout", f"tuned on {TUNING_SHARE:.0%} of the rows, certified on the others"),
        ("uniform", "tuned and certified on all rows"),
        ("bootstrap", f"tuned and certified on all rows, {RESAMPLES} resamples"),
    ):
        if any(row.method == method for row in found):
            parts += [
                f"### {method}: {words}",
                "Coverage of the lower limit:",
                by_cell(found, method, lambda row: f"{row.coverage_lower:.3f}"),
                "Mean gap, the truth at the cut less the lower limit:",
                by_cell(found, method, lambda row: f"{row.gap:.4f}"),
            ]
    return parts


def standard_error(values: np.ndarray) -> float:
    return float(np.nanstd(values) / math.sqrt(max(1, np.isfinite(values).sum())))


WANTED = {500: (0.070, 0.59), 2_000: (0.034, 0.635), 10_000: (0.015, 0.658)}
"""Gap at most, certified F1 at least."""


def case_sections(folder: Path) -> list[str]:
    lines, shares_lines = [], []
    for rows in CASE_SIZES:
        ours = load(folder, (task for task in tasks("shares") if task.rows == rows and math.isnan(task.prior)))
        theirs = load(folder, (task for task in tasks("mapie") if task.rows == rows))
        if not ours:
            continue
        names = (*(f"holdout, {name} tunes" for name in SHARES), "confidence=, a pilot chooses")
        for name, found in (*((name, ours["found"][:, i]) for i, name in enumerate(names)),) + (
            (("MAPIE, Jaccard risk", theirs["found"]),) if theirs else ()
        ):
            gap, certified = found[:, 0] - found[:, 1], found[:, 1]
            met = np.nanmean(gap) <= WANTED[rows][0] and np.nanmean(certified) >= WANTED[rows][1]
            lines.append(
                [
                    name,
                    f"{rows:,}",
                    f"{len(found):,}",
                    f"{np.nanmean(gap):.4f} ± {standard_error(gap):.4f}",
                    f"{np.nanmean(certified):.4f} ± {standard_error(certified):.4f}",
                    f"{1 - (gap < 0).mean():.3f}",
                    "met" if met else "missed",
                ]
            )
    for prior in PRIORS:
        for rows in CASE_SIZES:
            ours = load(folder, (task for task in tasks("shares") if task.rows == rows and task.prior == prior))
            if ours:
                certified = np.nan_to_num(ours["found"][..., 1])
                shares_lines.append([f"{prior:g}", f"{rows:,}", *(f"{mean:.4f}" for mean in certified.mean(axis=0))])
    return [
        "## The case s = sigmoid(2z − 1.5): F1, beside MAPIE",
        "Wanted: a mean gap of at most "
        + " / ".join(f"{WANTED[rows][0]:.3f}" for rows in CASE_SIZES)
        + " and a mean certified F1 of at least "
        + " / ".join(f"{WANTED[rows][1]:g}" for rows in CASE_SIZES)
        + f" at {' / '.join(f'{rows:,}' for rows in CASE_SIZES)} rows. MAPIE's certified value is the highest level for"
        " which its controller finds a threshold, by bisection to 0.001 of Jaccard; its gap depends on that, too.",
        table(["", "rows", "repetitions", "gap", "certified F1", "coverage", "wanted"], lines),
        "Which share of the rows should tune: the mean certified F1 at other priors, 0 where nothing is promised.",
        table(["P", "rows", *SHARES, "pilot"], shares_lines),
    ]


def regret_sections(folder: Path) -> list[str]:
    lines = []
    for cell in cells("regret"):
        found = load(folder, (task for task in tasks("regret") if (task.prior, task.rows, task.tied) == cell))
        if not found or cell[2]:
            continue
        truth, bound, theorem = np.moveaxis(found["found"], -1, 0)
        lines.append(
            [
                f"{cell[0]:g}",
                f"{cell[1]:,}",
                f"{len(truth)}",
                *(
                    f"{np.nanmean(truth[:, i]):.4f} / {np.nanmean(bound[:, i]):.4f} /"
                    f" {np.nanmean(theorem[:, i]):.3g} ({np.nanmean(theorem[:, i]) / np.nanmean(bound[:, i]):.0f}×)"
                    for i in range(len(METRICS))
                ),
            ]
        )
    every = [
        load(folder, (task for task in tasks("regret") if (task.prior, task.rows, task.tied) == cell))
        for cell in cells("regret")
    ]
    every = [found["found"] for found in every if found]
    broken = sum(int((found[..., 0] > found[..., 1]).sum()) for found in every)
    total = sum(found[..., 0].size for found in every)
    return [
        "## Regret against the best threshold: uniform beside Theorem 3",
        "Mean of the true regret / the uniform bound / the second term of Theorem 3 with P and Ψ* known, and how many"
        f" times the uniform bound is tighter. The uniform bound was broken in {broken} of {total:,} cases"
        " (continuous and rounded scores together).",
        table(["P", "rows", "repetitions", *NAMES], lines),
    ]


def slack_sections(folder: Path) -> list[str]:
    """How much wider the limits of held-out rows are than those of the normal distribution, and whether they hold."""
    lines = []
    for prior, rows, tied in cells("slack"):
        found = load(folder, (task for task in tasks("slack") if (task.prior, task.rows) == (prior, rows)))
        if not found:
            continue
        gaps, population = found["found"], Population.of_prior(prior, tied)
        shown = []
        for index, metric in enumerate(SLACK_METRICS):
            normal = normal_gap(metric, best_rates(population, metric), rows)
            lower, upper = gaps[:, index].T
            shown.append(f"{lower.mean() / normal:.2f} ({(lower >= 0).mean():.3f}, {(upper >= 0).mean():.3f})")
        lines.append([f"{prior:g}", f"{rows:,}", f"{len(gaps):,}", *shown])
    return [
        "## Held-out rows: beside the normal distribution",
        "Mean of the truth less the lower limit, divided by what the normal distribution (delta method, at the truth)"
        " leaves, at the population's best threshold; in brackets the coverage of the lower and of the upper limit,"
        " nominally 0.95. The normal distribution is right in the limit only; these limits hold for every sample size.",
        table(["P", "rows", "repetitions", *SLACK_NAMES], lines),
    ]


def label_sections(folder: Path) -> list[str]:
    """Many labels: coverage and gap, and what the simpler ways would give."""
    lines = []
    for average in AVERAGES:
        for labels in LABELS:
            for rows in CASE_SIZES:
                for correlation in CORRELATIONS:
                    cell = (correlation, rows, labels)
                    blocks = load(folder, (t for t in tasks("labels") if (t.prior, t.rows, t.labels) == cell))
                    if not blocks:
                        continue
                    found = blocks["found"][:, AVERAGES.index(average)]
                    shown = []
                    for method in LABEL_METHODS:
                        truth, lower, _ = found[:, LABEL_METHODS.index(method)].T
                        ran = ~np.isnan(truth)
                        if not ran.any():
                            shown.append("")
                            continue
                        shown.append(f"{(lower <= truth)[ran].mean():.3f} / {np.mean((truth - lower)[ran]):.4f}")
                    truth, lower, upper = found[:, 0].T
                    lines.append(
                        [
                            average,
                            f"{labels}",
                            f"{rows:,}",
                            f"{correlation:g}",
                            f"{len(found)}",
                            f"{truth.mean():.3f}",
                            *shown,
                            f"{(upper >= truth).mean():.3f}",
                        ]
                    )
    return [
        "## Many labels: F1, macro and micro",
        "Coverage of the lower limit, nominally 0.95, and mean gap, the truth less the limit. Labels are 2 % to 30 %"
        f" positive; a third of the rows tunes, the others certify. The bootstrap has {LABEL_RESAMPLES} resamples of"
        " the rows that certify, and refuses labels with fewer than 25 positives. *Labels alone* averages the labels'"
        " own limits at error / m, which is valid and wide;"
        " *pairs* is Clopper–Pearson on the added counts, as if pairs of row and label were independent, which is not"
        " valid.",
        table(
            ["", "labels", "rows", "correlation", "repetitions", "truth", *LABEL_METHODS, "holdout, upper"],
            lines,
        ),
    ]


def draw_picture(folder: Path, found: list[Row]) -> None:
    """The four methods' width against n, for F1."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "surecut"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(PRIORS), figsize=(10, 3.6), sharey=True, layout="constrained")
    colours = {"theorem": "0.55", "uniform": "C1", "holdout": "C0", "bootstrap": "C2"}
    for axis, prior in zip(axes, PRIORS, strict=True):
        for method, colour in colours.items():
            if method == "theorem":
                points = []
                for rows in SIZES:
                    blocks = load(
                        folder, (t for t in tasks("coverage") if (t.prior, t.rows, t.tied) == (prior, rows, False))
                    )
                    if blocks:
                        points.append((rows, np.nanmean(blocks["theorem"][:, 0]) / 2))
            else:
                points = [
                    (row.rows, row.gap)
                    for row in found
                    if (row.method, row.metric, row.prior, row.scores) == (method, NAMES[0], prior, "continuous")
                ]
            if points:
                axis.loglog(*zip(*points, strict=True), marker="o", markersize=4, color=colour, label=method)
        axis.axhline(1.0, color="0.8", linewidth=1, zorder=0)
        axis.set_title(f"{prior:.0%} positive", fontsize=10)
        axis.set_xlabel("rows")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("F1 less its 95 % lower limit")
    axes[0].text(SIZES[0], 1.08, "above: says nothing", fontsize=8, color="0.4")
    axes[-1].legend(frameon=False, fontsize=9)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})
    plt.close(figure)


def report(folder: Path) -> None:
    """Tables, CSV and picture of the blocks that are there."""
    from importlib.metadata import version

    found = coverage_rows(folder)
    seconds = sum(float(np.load(path)["seconds"]) for path in folder.glob("*.npz"))
    parts = [
        "# Certificates: are they kept, and what do they leave?",
        "Written by `python benchmarks/certificates.py`."
        f" Python {platform.python_version()}, NumPy {np.__version__}, MAPIE {version('mapie')};"
        f" {seconds / 60:.0f} minutes of one core.",
        "Scores are s = sigmoid(2z − b) of a normal z, labels are drawn with s as probability, b is chosen for the"
        " share P of positives. The truth at a cut is an integral. Everything is at 95 % confidence. The cost is 1 for"
        " a false positive and 5 for a false negative, as a utility per row.",
        *coverage_sections(found),
        *case_sections(folder),
        *regret_sections(folder),
        *slack_sections(folder),
        *label_sections(folder),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "certificates.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    with (RESULTS / "certificates.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        for row in found:
            writer.writerow([f"{value:.5g}" if isinstance(value, float) else value for value in astuple(row)])
    draw_picture(folder, found)


def default_folder() -> Path:
    """Blocks are kept per version of the sources that they depend on."""
    sources = sorted((Path(surecut.__file__).parent / "certificates").rglob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in (*sources, Path(__file__)))).hexdigest()[:12]
    return Path.home() / ".cache" / "surecut" / f"certificates-{digest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=BLOCKS, help="how many blocks of each cell (8 are 2,000 draws)")
    parser.add_argument("--folder", type=Path, help="where finished blocks are kept")
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS), help="only these experiments")
    parser.add_argument("--report", action="store_true", help="run nothing: tables and picture of what is there")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    folder = options.folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    if not options.report:
        from joblib import Parallel, delayed

        wanted = [task for part in options.parts for task in tasks(part, options.blocks)]
        wanted.sort(key=lambda task: task.block)  # stable: a first look at everything comes first
        Parallel(n_jobs=options.jobs, backend="multiprocessing")(delayed(run)(task, folder) for task in wanted)
    report(folder)


if __name__ == "__main__":
    main()
