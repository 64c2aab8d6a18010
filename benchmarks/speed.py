"""Every job that has to be fast, beside what it is measured by, in one run: one table of times, ratios and targets.

``python benchmarks/speed.py`` writes ``results/speed.md``. ``--quick`` takes smaller jobs and fewer turns, and writes
nothing; ``--only NAME`` runs the rows of this name, such as f1 or f1-100 (``--list`` prints the names); ``--cpu``
measures the time of the processors instead of the clock's, which other work on the machine disturbs less (threads add
up).

All that take part in a row get the same arrays and take turns, each of which begins with a call that is not timed; a
time is the median over its turns. Labels are int64 unless the row says otherwise. A peer that cannot be installed is
left out, and the row says why.
"""

from __future__ import annotations

import argparse
import functools
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import frames
import interpreters
import multilabel
import tuning
from surecut import PlugInClassifier, certify, tune_threshold, tune_thresholds
from surecut.core.keys import checksum
from tuning import KINDS, Case, Kind, duration, table, times

RESULTS = Path(__file__).parent / "results" / "speed.md"
VERSIONS = ("surecut", "numpy", "numba", "scikit-learn", "duckdb")
RIVAL = "optimal-classification-cutoffs"
RIVAL_VERSION = "3.0.0"

ORDINARY = Kind(0.3)
FIVE_METRICS = ["f1", "f2", "mcc", "am", "accuracy"]
RESAMPLES, LOOPED = 2000, 40
"""Resamples of a bootstrap certificate, and how many of them the loop is timed on."""

TURN = 2e-3
"""A turn repeats its call until it has lasted so many seconds."""

SHORT = 0.2
"""A turn of a call that takes fewer seconds begins with one that is not timed. What ran before it has filled the caches
with its own data: this would count for a call that takes a turn alone, and not for one that is repeated in it."""

OURS = "surecut"
CURVE = "sklearn `precision_recall_curve` + argmax"
ARGSORT = "`np.argsort(s)`"
SORT = "`np.sort(s)`"
SUM = "`s.sum()`"
LOOP = "loop of sklearn `precision_recall_curve` + argmax"

clock: Callable[[], float] = time.perf_counter


# --- What a row of the table is --------------------------------------------------------------------------------------

Timer = Callable[[int], float]
"""From a number of calls to the seconds that they take."""


@dataclass(frozen=True)
class Run:
    """One that takes part: how it is timed, how often, and what its time is multiplied by."""

    timer: Timer
    turns: int = 99
    times: float = 1.0
    repeats: bool = True
    """Whether a short call is repeated within a turn."""


def call(function: Callable[[], Any], **options: Any) -> Run:
    """A function of this process."""

    def timer(calls: int) -> float:
        start = clock()
        for _ in range(calls):
            function()
        return clock() - start

    return Run(timer, **options)


@dataclass(frozen=True)
class Target:
    """What a job is to reach beside one of the others, as a ratio of their times or as seconds above."""

    beside: str
    needed: float
    kind: str = "faster"
    """"faster": at least so many times; "within": at most so many times as long; "above": at most so many seconds."""

    def measured(self, found: dict[str, float]) -> float:
        ours, theirs = found[OURS], found[self.beside]
        return {"faster": theirs / ours, "within": ours / theirs, "above": ours - theirs}[self.kind]

    def is_met(self, found: dict[str, float]) -> bool:
        value = self.measured(found)
        return value >= self.needed if self.kind == "faster" else value <= self.needed

    def text(self) -> str:
        amount = duration(self.needed) if self.kind == "above" else f"{self.needed:g}×"
        return f"{'≥' if self.kind == 'faster' else '≤'} {amount}"


@dataclass(frozen=True)
class Contest:
    """All that take part in a row; `any_of` says that one of the targets will do."""

    runs: dict[str, Run]
    targets: tuple[Target, ...] = ()
    any_of: bool = False
    note: str = ""


@dataclass(frozen=True)
class Job:
    """A row of the table, or several: one for each yardstick."""

    name: str
    what: str
    prepare: Callable[[], Contest]

    def is_named(self, names: list[str]) -> bool:
        """Whether one of the names is the job's own, or that of a group of jobs: "f1" of "f1-100"."""
        return any(f"{self.name}-".startswith(f"{name}-") for name in names)


@dataclass
class Outcome:
    """The seconds of each that took part, and how many turns these are the median of."""

    job: Job
    contest: Contest
    seconds: dict[str, float] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)

    def rows(self) -> Iterator[list[str]]:
        """One row for each yardstick: its time, the ratio, the target and whether it is met."""
        if not self.seconds:
            yield [self.job.what, "", self.contest.note, "", "", "", ""]
            return
        ours = self._time(OURS)
        targets = {target.beside: target for target in self.contest.targets}
        met_by_one = self.contest.any_of and any(target.is_met(self.seconds) for target in self.contest.targets)
        for number, name in enumerate(one for one in self.seconds if one != OURS):
            target = targets.get(name)
            begins = [self.job.what, ours] if number == 0 else ["", ""]
            yield [*begins, name, self._time(name), *self._verdict(name, target, met_by_one)]
        if self.contest.note:
            yield ["", "", self.contest.note, "", "", "", ""]

    def _time(self, name: str) -> str:
        return duration(self.seconds[name]) + (tuning.ONCE if self.turns[name] == 1 else "")

    def _verdict(self, name: str, target: Target | None, met_by_one: bool) -> list[str]:
        if target is None:
            kind = "faster" if self.seconds[name] >= self.seconds[OURS] else "within"
            return [self._compared(Target(name, 1, kind)), "", ""]
        met = met_by_one or target.is_met(self.seconds)
        either = " (one of the two)" if self.contest.any_of else ""
        return [self._compared(target), target.text() + either, "met" if met else "missed"]

    def _compared(self, target: Target) -> str:
        value = target.measured(self.seconds)
        if target.kind == "above":
            return f"{value * 1e6:.2f} µs above"
        return f"{times(value)} {'faster' if target.kind == 'faster' else 'as long'}"


# --- Jobs ------------------------------------------------------------------------------------------------------------


def ours(case: Case, **options: Any) -> Run:
    return call(functools.partial(tune_threshold, case.labels, case.scores, **{"metric": "f1", **options}))


def curve(case: Case) -> Run:
    return call(lambda: tuning.precision_recall_curve(case), turns=5)


def one_cut(rows: int, kind: Kind, *targets: Target, labels: str = "int64", rival: bool = False) -> Contest:
    """The F1 cut, beside the curve and what arrays cost."""
    case = Case.make(rows, kind)
    case = replace(case, labels=case.labels.astype(labels))
    runs = {
        OURS: ours(case),
        CURVE: curve(case),
        ARGSORT: call(lambda: np.argsort(case.scores)),
        SUM: call(lambda: tuning.scores_sum(case)),
    }
    note = ""
    if rival:
        try:
            name, run = rival_on(case)
            runs[name] = run
        except tuning.NotRunError as error:
            note = f"{RIVAL} {RIVAL_VERSION} is left out: {error}"
    return Contest(runs, targets, note=note)


def in_numpy(rows: int, *targets: Target) -> Contest:
    case = Case.make(rows, ORDINARY)
    return Contest({OURS: call(lambda: tuning.surecut_in_numpy(case)), CURVE: curve(case)}, targets)


def single_beside_double(rows: int) -> Contest:
    """float32 scores beside the same scores as float64."""
    case = Case.make(rows, Kind(0.3, "float32"))
    double = replace(case, scores=case.scores.astype(np.float64))
    return Contest(
        {OURS: ours(case), "the same as float64": ours(double)}, (Target("the same as float64", 1, "within"),)
    )


def weighted(rows: int) -> Contest:
    case = Case.make(rows, ORDINARY)
    weights = np.random.default_rng(2).uniform(0.5, 2, rows)
    return Contest(
        {OURS: ours(case, sample_weight=weights), "without weights": ours(case)},
        (Target("without weights", 2, "within"),),
    )


def several_metrics(rows: int) -> Contest:
    case = Case.make(rows, ORDINARY)
    return Contest(
        {OURS: ours(case, metric=FIVE_METRICS), "f1 alone": ours(case)}, (Target("f1 alone", 1.5, "within"),)
    )


def alternating(rows: int) -> Case:
    """Sorted scores whose labels alternate: no bin is better than another."""
    return Case(ORDINARY, np.arange(rows, dtype=np.int64) % 2, np.arange(rows) / rows)


def nearly_tied(rows: int) -> Case:
    """A thousand values, each with neighbours in its last bits."""
    case = Case.make(rows, Kind(0.3, "tied"))
    last_bits = np.random.default_rng(3).integers(0, 64, rows)
    return replace(case, scores=(case.scores.view(np.int64) + last_bits).view(np.float64))


def noise(rows: int) -> Case:
    """Labels that have nothing to do with the scores: the curve is flat, and all bins survive."""
    random = np.random.default_rng(4)
    return Case(ORDINARY, random.integers(0, 2, rows), random.random(rows))


def hardest(make: Callable[[int], Case], metric: str, rows: int) -> Contest:
    case, ordinary = make(rows), Case.make(rows, ORDINARY)
    runs = {
        OURS: ours(case, metric=metric),
        "an ordinary case": ours(ordinary, metric=metric),
        SORT: call(lambda: tuning.scores_sort(case)),
    }
    return Contest(runs, (Target("an ordinary case", 5, "within"), Target(SORT, 1.5, "within")), any_of=True)


def first_call(rows: int, cached: bool) -> Contest:
    """A process that has loaded NumPy and surecut, and tunes for the first time."""

    def probed(name: str) -> Run:
        def timer(_: int) -> float:
            if name == "first-call" and not cached:
                return tuning.probe_cold(rows, ORDINARY)["first"]
            return tuning.probe(name, rows, ORDINARY)["first"]

        return Run(timer, turns=5, repeats=False)

    alone = "first call with NumPy alone"
    return Contest({OURS: probed("first-call"), alone: probed("first-call-in-numpy")}, (Target(alone, 1.1, "within"),))


def holdout(rows: int) -> Contest:
    cut = tuning_cut(Case.make(rows, ORDINARY, seed=1))
    case = Case.make(rows, ORDINARY)
    counting = "four cells and a checksum"

    def count() -> None:
        is_positive, accepted = case.labels == 1, case.scores >= cut.threshold
        np.count_nonzero(is_positive & accepted)
        np.count_nonzero(is_positive), np.count_nonzero(accepted)
        checksum(case.scores.view(np.int64), is_positive)

    runs = {OURS: call(lambda: certify(cut, case.labels, case.scores)), counting: call(count)}
    return Contest(runs, (Target(counting, 3, "within"),))


def tuning_cut(case: Case) -> Any:
    return tune_threshold(case.labels, case.scores)


def bootstrap(rows: int) -> Contest:
    """A certificate on the validation data, each of whose resamples is tuned again."""
    case = Case.make(rows, ORDINARY)
    cut, random = tuning_cut(case), np.random.default_rng(5)
    looped = f"loop of `tune_threshold` ({LOOPED} resamples, multiplied)"

    def loop() -> None:
        for _ in range(LOOPED):
            drawn = random.integers(0, rows, rows)
            tune_threshold(case.labels[drawn], case.scores[drawn])

    def certified() -> None:
        certify(cut, case.labels, case.scores, method="bootstrap", held_out=False, resamples=RESAMPLES, progress=False)

    return Contest({OURS: call(certified), looped: call(loop, times=RESAMPLES / LOOPED)}, (Target(looped, 20),))


def many_labels(truth: Any, scores: Any, labels: int, needed: float) -> Contest:
    """Thresholds of all labels, beside the loop over some of them."""
    some = np.linspace(0, truth.shape[1] - 1, labels).astype(np.int64)
    part = [
        matrix.tocsc()[:, some].tocsr() if multilabel.sparse.issparse(matrix) else matrix[:, some]
        for matrix in (truth, scores)
    ]
    looped = f"{LOOP} ({labels} labels, multiplied)"
    runs = {
        OURS: call(lambda: tune_thresholds(truth, scores)),
        looped: call(lambda: multilabel.curve_loop(*part), turns=3, times=truth.shape[1] / labels),
    }
    return Contest(runs, (Target(looped, needed),))


def classifier(rows: int) -> Contest:
    """A model that is fitted already, and costs nothing."""
    case = Case.make(rows, ORDINARY)
    features = case.scores.reshape(-1, 1)
    model = PlugInClassifier(tuning.model_of_given_scores(), cv="prefit")
    tuner = "sklearn `TunedThresholdClassifierCV`"
    runs = {
        OURS: call(lambda: model.fit(features, case.labels)),
        "the model's own prediction": call(lambda: model.estimator.predict_proba(features)),
        tuner: call(lambda: tuning.tuned_threshold_classifier(case), turns=2),
    }
    return Contest(runs, (Target(tuner, 500),))


def one_score(score: Any) -> Contest:
    cut = tuning_cut(Case.make(1000, ORDINARY))
    bare, threshold = "`np.asarray(s) >= t`", cut.threshold
    runs = {OURS: call(lambda: cut.predict(score)), bare: call(lambda: np.asarray(score) >= threshold)}
    return Contest(runs, (Target(bare, 3e-6, "above"),))


def grouped(rows: int, groups: int, needed: float) -> Contest:
    """A threshold for each group of a table in DuckDB, and the engine's own aggregation."""
    path = frames.parquet(frames.DATA, rows, "easy")
    found = frames.probe(f"groups-{groups}", path) | frames.probe(f"groups-{groups}-memory", path)
    engine = "DuckDB's `GROUP BY key, count(*), sum(score)`"

    def taken(name: str) -> Run:
        return Run(lambda _: found[name], turns=1, repeats=False)

    return Contest(
        {OURS: taken("seconds"), engine: taken("own")},
        (Target(engine, needed, "within"),),
        note=f"peak memory of the process {found['peak'] / 1024:.2f} GiB",
    )


def jobs(quick: bool) -> list[Job]:
    """All rows of the table."""
    small, large, huge = tuning.SMALL, tuning.LARGE, tuning.HUGE
    found = [
        Job("f1-100", "F1 cut, 10² rows", lambda: one_cut(100, ORDINARY, Target(CURVE, 5), rival=True)),
        Job(
            "f1-1000",
            "F1 cut, 10³ rows",
            lambda: one_cut(1000, ORDINARY, Target(CURVE, 5), Target(ARGSORT, 8, "within"), rival=True),
        ),
        Job("f1-10000", "F1 cut, 10⁴ rows", lambda: one_cut(10_000, ORDINARY, Target(CURVE, 8), rival=True)),
    ]
    for rows, name, faster, sums in ((small, "10⁵", 30, 30), (large, "10⁶", 80, 12)):
        targets = Target(CURVE, faster), Target(SUM, sums, "within")
        for labels in ("int64", "bool", "uint8"):
            what = f"F1 cut, {name} rows" + ("" if labels == "int64" else f", {labels} labels")
            found.append(
                Job(
                    f"f1-{rows}-{labels}",
                    what,
                    functools.partial(one_cut, rows, ORDINARY, *targets, labels=labels, rival=labels == "int64"),
                )
            )
    if not quick:
        for kind in KINDS:
            targets = Target(CURVE, 180), Target(SUM, 5, "within")
            found.append(
                Job(f"f1-{huge}", f"F1 cut, 10⁷ rows, {kind}", functools.partial(one_cut, huge, kind, *targets))
            )
    for rows, name in ((large, "10⁶"), (huge, "10⁷"))[: 1 if quick else 2]:
        found += [
            Job(f"float32-{rows}", f"float32 scores, {name} rows", functools.partial(single_beside_double, rows)),
            Job(f"weights-{rows}", f"weights, {name} rows", functools.partial(weighted, rows)),
        ]
    found.append(Job("metrics", "five metrics at once, 10⁶ rows", lambda: several_metrics(large)))
    for cached, name in ((True, "numba's cache present"), (False, "numba's cache empty")):
        found.append(
            Job(
                "first-call", f"first call of a process, 10⁵ rows, {name}", functools.partial(first_call, small, cached)
            )
        )
    for make, metric, name in (
        (alternating, "am", "sorted scores with alternating labels, AM"),
        (nearly_tied, "f1", "nearly tied scores, F1"),
        (noise, "am", "labels without relation to the scores, AM"),
    ):
        found.append(
            Job(
                f"hardest-{make.__name__}",
                f"hardest, 10⁶ rows: {name}",
                functools.partial(hardest, make, metric, large),
            )
        )
    dense, wide = ((20_000, 250), (1000, 2000)) if quick else ((100_000, 1000), (1000, 10_000))
    extreme = (2000, 10_000) if quick else (100_000, 100_000)
    found += [
        Job("numpy-100000", "NumPy alone, 10⁵ rows", lambda: in_numpy(small, Target(CURVE, 8))),
        Job("numpy-1000000", "NumPy alone, 10⁶ rows", lambda: in_numpy(large, Target(CURVE, 30))),
        Job("holdout", '`certify(method="holdout")`, 10⁶ rows', lambda: holdout(large)),
        Job("bootstrap", f"bootstrap certificate, {RESAMPLES:,} resamples, 10⁴ rows", lambda: bootstrap(10_000)),
        Job(
            "labels-dense",
            f"`tune_thresholds`, {dense[0]:,} × {dense[1]:,} dense",
            lambda: many_labels(*multilabel.dense(*dense), 40, 50),
        ),
        Job(
            "labels-wide",
            f"`tune_thresholds`, {wide[0]:,} × {wide[1]:,} dense",
            lambda: many_labels(*multilabel.dense(*wide), 200, 100),
        ),
        Job(
            "labels-sparse",
            f"`tune_thresholds`, {extreme[0]:,} × {extreme[1]:,} sparse",
            lambda: many_labels(*multilabel.top_labels(*extreme), 20, 100),
        ),
        Job("classifier", '`PlugInClassifier(cv="prefit").fit`, 10⁶ rows', lambda: classifier(large)),
        Job("predict-list", "`cut.predict([0.3])`", lambda: one_score([0.3])),
        Job("predict-array", "`cut.predict(np.array([0.3]))`", lambda: one_score(np.array([0.3]))),
    ]
    rows = large if quick else huge
    for groups, needed in zip(frames.GROUPS, (6, 10), strict=True):
        what = f"{rows:,} rows in {groups:,} groups in DuckDB"
        found.append(Job(f"groups-{groups}", what, functools.partial(grouped, rows, groups, needed)))
    return found


# --- The rival -------------------------------------------------------------------------------------------------------


def rival_interpreter() -> str:
    """A Python with the rival, in a virtual environment that is made once."""
    try:
        return interpreters.with_packages(f"{RIVAL}-{RIVAL_VERSION}", f"{RIVAL}=={RIVAL_VERSION}", oldest=12)
    except interpreters.NotInstalledError as error:
        raise tuning.NotRunError(str(error)) from error


def rival_on(case: Case) -> tuple[str, Run]:
    """The rival in a process of its own that has the same arrays, and its name with how far it falls short."""
    python = rival_interpreter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, labels=case.labels, scores=case.scores)
        command = [python, str(Path(__file__).with_name("rival.py")), str(path), clock.__name__]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            f1 = float(process.stdout.readline())
        except ValueError:
            raise tuning.NotRunError(f"it ended with code {process.wait()}") from None

    def timer(calls: int) -> float:
        process.stdin.write(f"{calls}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    short = case.f1(tuning.surecut(case)) - f1
    return f"{RIVAL} {RIVAL_VERSION}" + (f" (F1 lower by {short:.1e})" if short > 1e-12 else ""), Run(timer)


# --- Measuring -------------------------------------------------------------------------------------------------------


def measured(job: Job, effort: tuning.Effort) -> Outcome:
    """Let all take turns, the first of each round being another one every time."""
    contest = job.prepare()
    calls = {name: calls_of(run) for name, run in contest.runs.items()}
    taken: dict[str, list[float]] = {name: [] for name in contest.runs}
    names = list(contest.runs)
    for turn in range(effort.turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            run, before = contest.runs[name], taken[name]
            if len(before) < run.turns and sum(before) / run.times < effort.patience:
                if run.repeats and (not before or before[-1] / run.times < SHORT):
                    run.timer(1)
                before.append(run.timer(calls[name]) / calls[name] * run.times)
    outcome = Outcome(job, contest)
    for name, each in taken.items():
        outcome.seconds[name], outcome.turns[name] = statistics.median(each), len(each)
    return outcome


def calls_of(run: Run) -> int:
    """Warm up, and find how many calls last as long as a turn should."""
    if not run.repeats:
        return 1
    tuning.compiled(lambda: run.timer(1))
    once = run.timer(1)
    return max(1, min(1000, round(TURN / max(once, 1e-7))))


def report(outcomes: list[Outcome], load_before: str, minutes: float, unit: str) -> str:
    header = ["job", OURS, "beside it", "its time", "measured", "to reach", "verdict"]
    parts = [
        "# Speed: every job beside its yardsticks",
        "Written by `make bench` (`benchmarks/speed.py`)."
        f" Python {platform.python_version()}, {platform.system()} {platform.machine()},"
        f" {tuning.available_cores()} cores; load before {load_before}, after {tuning.load()}."
        f" Versions: {', '.join(f'{package} {tuning.version_of(package)}' for package in VERSIONS)};"
        f" surecut's sources {tuning.digest_of_sources()}.",
        f"Times are {unit}, medians of interleaved turns, each of which begins with a call that is not timed;"
        f" {tuning.ONCE} marks a single turn. Labels are int64 unless"
        " the row says otherwise. Scores are those of `benchmarks/tuning.py`, 30 % positive, float64. *n×"
        " faster*: the yardstick takes n times as long as surecut. *n× as long*: surecut takes n times as long as it.",
        table(header, [row for outcome in outcomes for row in outcome.rows()]),
        f"The run took {minutes:.1f} minutes.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    global clock
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller jobs, fewer turns, no file")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="only rows of this name, such as f1 or f1-100; no file"
    )
    parser.add_argument("--cpu", action="store_true", help="processor time instead of the clock's; no file")
    parser.add_argument("--list", action="store_true", help="only print the names of the rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn about undefined precision at the ends of their curves
    clock = time.process_time if options.cpu else time.perf_counter
    chosen = [job for job in jobs(options.quick) if not options.only or job.is_named(options.only)]
    if options.list:
        print("\n".join(f"{job.name:20} {job.what}" for job in chosen))
        return
    start, load_before = time.perf_counter(), tuning.load()
    effort = tuning.Effort(turns=5, patience=1.0) if options.quick else tuning.Effort(turns=11, patience=12.0)
    outcomes = []
    for job in chosen:
        begun = time.perf_counter()
        try:
            outcomes.append(measured(job, effort))
        except Exception as error:  # the other rows are still worth their time
            outcomes.append(Outcome(job, Contest({}, note=f"failed: {tuning.reason_of(error)}")))
        print(f"{job.what}: {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    unit = "processor time" if options.cpu else "wall time"
    text = report(outcomes, load_before, (time.perf_counter() - start) / 60, unit)
    print(text)
    if not (options.quick or options.only or options.cpu):
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
