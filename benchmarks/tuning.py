"""The best F1 cut: surecut beside its peers and beside the limits of the machine, in one run.

All competitors get the same arrays and take turns; a time is the median over its turns. What is printed is Markdown,
and goes to ``results/tuning.md`` too. ``--quick`` leaves out ten million rows and writes no file.

Libraries are imported where they are used: one that is missing costs a row and not the run, and the probes, which run
this file again in fresh processes, measure a process that has loaded NumPy only.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "tuning.md"
VERSIONS = ("surecut", "numpy", "numba", "scikit-learn", "MAPIE", "xcolumns")

SMALL, LARGE, HUGE = 100_000, 1_000_000, 10_000_000
TINY = 2_000
"""The one size at which every peer can be run, those that are quadratic in the rows too."""
LOADS_NUMBA = 600_000
"""Enough rows for surecut to use its compiled kernels."""

NOT_RUN = "not run"
ONCE = "¹"
"""Marks a time that is no median."""

Rule = Callable[[np.ndarray], np.ndarray]
"""How a competitor would predict: from scores to the probability, mostly 0 or 1, of calling each row positive."""


# --- Data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What the scores of a case are like."""

    positives: float
    scores: str = "float64"
    """float64, float32, tied (rounded to three decimals) or heavy-tailed (Cauchy margins instead of probabilities)."""

    def __str__(self) -> str:
        return f"{self.positives:.0%} {self.scores}"

    @property
    def is_double(self) -> bool:
        return self.scores != "float32"

    @property
    def has_probabilities(self) -> bool:
        return self.scores != "heavy-tailed"


KINDS = tuple(
    Kind(positives, scores) for scores in ("float64", "float32", "tied", "heavy-tailed") for positives in (0.01, 0.3)
)
TINY_KINDS = (Kind(0.3), Kind(0.3, "tied"))


@dataclass(frozen=True)
class Case:
    """One sample of labels and scores."""

    kind: Kind
    labels: np.ndarray
    scores: np.ndarray

    @classmethod
    def make(cls, rows: int, kind: Kind, seed: int = 0) -> Case:
        """Draw margins, and labels that are positive with the margins' sigmoid as probability."""
        offset = offset_for(kind)
        labels = np.empty(rows, dtype=np.int64)
        scores = np.empty(rows, dtype=np.float32 if kind.scores == "float32" else np.float64)
        random = np.random.default_rng([seed, rows])
        for start in range(0, rows, SMALL):  # in blocks, so that the memory probe finds no large heap to reuse
            block = slice(start, min(start + SMALL, rows))
            margins = draw_margins(random, block.stop - block.start, kind)
            probabilities = sigmoid(margins + offset)
            labels[block] = random.random(len(margins)) < probabilities
            if not kind.has_probabilities:
                scores[block] = margins
            elif kind.scores == "tied":
                scores[block] = probabilities.round(3)
            else:
                scores[block] = probabilities
        return cls(kind, labels, scores)

    def f1(self, rule: Rule) -> float:
        """The F1 of a rule; of a randomised one, that of its expected confusion."""
        accepted = rule(self.scores)
        true_positives = float(accepted[self.labels == 1].sum(dtype=np.float64))
        return 2 * true_positives / (float(accepted.sum(dtype=np.float64)) + int(self.labels.sum()))


def draw_margins(random: np.random.Generator, rows: int, kind: Kind) -> np.ndarray:
    return random.standard_normal(rows) if kind.has_probabilities else random.standard_cauchy(rows)


def sigmoid(margins: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(margins / 2)


def offset_for(kind: Kind) -> float:
    """The offset of the margins at which the share of positives is as wanted, by bisection."""
    margins = draw_margins(np.random.default_rng(1), SMALL, kind)
    low, high = -1000.0, 1000.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(margins + middle).mean() < kind.positives else (low, middle)
    return low


# --- Competitors -----------------------------------------------------------------------------------------------------


class NotRunError(Exception):
    """A competitor does not apply to a case."""


def at_or_above(threshold: float) -> Rule:
    return lambda scores: scores >= np.float64(threshold)


def surecut(case: Case) -> Rule:
    """As installed, with compiled kernels where there is numba: `compiled` has them loaded before times are taken."""
    from surecut import tune_threshold

    return at_or_above(tune_threshold(case.labels, case.scores, metric="f1").threshold)


def surecut_in_numpy(case: Case) -> Rule:
    """As without numba."""
    from surecut.core.settings import using

    with using(kernels="numpy"):
        return surecut(case)


def scores_sum(case: Case) -> None:
    """One pass over the scores: no method that looks at all of them is faster on one core."""
    case.scores.sum()


def scores_sort(case: Case) -> None:
    """What a method that sorts the scores alone, without labels, would take at least."""
    np.sort(case.scores)


def precision_recall_curve(case: Case) -> Rule:
    from sklearn.metrics import precision_recall_curve

    precision, recall, thresholds = precision_recall_curve(case.labels, case.scores)
    with np.errstate(invalid="ignore"):
        f1 = 2 * precision * recall / (precision + recall)
    return at_or_above(thresholds[np.nanargmax(f1[:-1])])


def confusion_matrix_at_thresholds(case: Case) -> Rule:
    from sklearn.metrics import confusion_matrix_at_thresholds

    _, false_positives, false_negatives, true_positives, thresholds = confusion_matrix_at_thresholds(
        case.labels, case.scores
    )
    f1 = 2 * true_positives / (2 * true_positives + false_positives + false_negatives)
    return at_or_above(thresholds[f1.argmax()])


def metric_at_thresholds(case: Case) -> Rule:
    from sklearn.metrics import f1_score, metric_at_thresholds

    values, thresholds = metric_at_thresholds(case.labels, case.scores, f1_score)
    return at_or_above(thresholds[values.argmax()])


def model_of_given_scores() -> Any:
    """A scikit-learn model that is fitted already and whose prediction costs nothing: its only feature is the score."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.frozen import FrozenEstimator

    class GivenScores(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, features: np.ndarray, labels: np.ndarray) -> GivenScores:
            return self

        def predict_proba(self, features: np.ndarray) -> np.ndarray:
            return np.column_stack((1 - features[:, 0], features[:, 0]))

        def predict(self, features: np.ndarray) -> np.ndarray:
            return (features[:, 0] >= 0.5).astype(np.int64)

    return FrozenEstimator(GivenScores())


def tuned_threshold_classifier(case: Case) -> Rule:
    """A model that is done already and whose prediction costs nothing, tuned at scikit-learn's 100 thresholds."""
    from sklearn.model_selection import TunedThresholdClassifierCV

    tuner = TunedThresholdClassifierCV(model_of_given_scores(), cv="prefit", refit=False, scoring="f1")
    return at_or_above(tuner.fit(case.scores.reshape(-1, 1), case.labels).best_threshold_)


def mapie_controller(case: Case) -> Rule:
    """MAPIE's risk control, at its own 100 thresholds.

    It has no F1, which is no mean over rows; but the Jaccard index J is one over the rows that are or are called
    positive, and F1 = 2 J / (1 + J) is best where J is.
    """
    if not case.kind.has_probabilities:
        raise NotRunError("needs probabilities")
    from mapie.risk_control import BinaryClassificationController, BinaryRisk

    jaccard = BinaryRisk(
        risk_occurrence=lambda truth, predicted: (truth == 1) & (predicted == 1),
        risk_condition=lambda truth, predicted: (truth == 1) | (predicted == 1),
        higher_is_better=True,
    )
    controller = BinaryClassificationController(
        predict_function=lambda scores: np.column_stack((1 - scores, scores)),
        risk=jaccard,
        target_level=0.01,
        best_predict_param_choice=jaccard,
    )
    threshold = controller.calibrate(case.scores, case.labels).best_predict_param
    if threshold is None:
        raise NotRunError("found no valid threshold")
    return at_or_above(threshold)


def xcolumns_frank_wolfe(case: Case) -> Rule:
    """xCOLUMNs' Frank-Wolfe, with one label.

    Its own shorthand, `find_classifier_optimizing_macro_f1_score_using_fw`, is broken in 0.0.2 (it passes a metric of
    predictions where one of a confusion matrix is called); the function behind it is not.
    """
    if not case.kind.has_probabilities:
        raise NotRunError("needs probabilities")
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    scores = case.scores.reshape(-1, 1)
    found = find_classifier_using_fw(
        case.labels.reshape(-1, 1).astype(scores.dtype),
        scores,
        macro_f1_score_on_conf_matrix,
        k=0,
        skip_tn=True,
        seed=0,
    )
    slopes, constants = found.a.ravel().astype(np.float64), found.b.ravel().astype(np.float64)
    shares = found.p.astype(np.float64) / found.p.sum(dtype=np.float64)

    def rule(scores: np.ndarray) -> np.ndarray:
        accepted = np.zeros(len(scores))
        for slope, constant, share in zip(slopes, constants, shares, strict=True):
            accepted += share * (slope * scores + constant >= 0)
        return accepted

    return rule


@dataclass(frozen=True)
class Competitor:
    """A row of the tables."""

    name: str
    run: Callable[[Case], Rule | None]
    most_rows: int = HUGE
    """More would take over about a minute."""
    turns: int = 99
    """At most so many turns per case."""


SURECUT = Competitor("surecut", surecut)
IN_NUMPY = Competitor("surecut, NumPy only", surecut_in_numpy)
SUM = Competitor("limit: `s.sum()`", scores_sum)
SORT = Competitor("limit: `np.sort(s)`", scores_sort)
CURVE = Competitor("sklearn `precision_recall_curve` + argmax", precision_recall_curve, turns=3)
CONFUSIONS = Competitor("sklearn `confusion_matrix_at_thresholds` + argmax", confusion_matrix_at_thresholds, turns=3)
TUNER = Competitor("sklearn `TunedThresholdClassifierCV`", tuned_threshold_classifier, LARGE, turns=3)
EVERY_METRIC = Competitor("sklearn `metric_at_thresholds`", metric_at_thresholds, TINY, turns=3)
MAPIE = Competitor("MAPIE `BinaryClassificationController`", mapie_controller, SMALL, turns=3)
XCOLUMNS = Competitor("xCOLUMNs Frank–Wolfe", xcolumns_frank_wolfe, turns=1)
COMPETITORS = (SURECUT, IN_NUMPY, SUM, SORT, CURVE, CONFUSIONS, TUNER, EVERY_METRIC, MAPIE, XCOLUMNS)


# --- Measuring -------------------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """What one competitor did on one case: times and an F1, or the reason why there are none."""

    times: list[float]
    f1: float | None = None
    reason: str = ""

    @property
    def seconds(self) -> float | None:
        """The median time."""
        return statistics.median(self.times) if self.times and not self.reason else None


@dataclass(frozen=True)
class Effort:
    """How often to repeat."""

    turns: int
    patience: float
    """A competitor that has used up so many seconds on a case gets no further turn."""


Results = dict[tuple[int, Kind], dict[Competitor, Entry]]


def run_case(rows: int, kind: Kind, effort: Effort, absent: dict[Competitor, str]) -> dict[Competitor, Entry]:
    """Let all competitors take turns on one case, the first of each round being another one every time."""
    case = Case.make(rows, kind)
    entries = {one: Entry([], reason=absent.get(one, "")) for one in COMPETITORS}
    for one, entry in entries.items():
        if rows > one.most_rows:
            entry.reason = entry.reason or NOT_RUN
    for turn in range(effort.turns):
        first = turn % len(COMPETITORS)
        for one in COMPETITORS[first:] + COMPETITORS[:first]:
            entry = entries[one]
            if not entry.reason and len(entry.times) < one.turns and sum(entry.times) < effort.patience:
                take_turn(one, case, entry)
    return entries


def take_turn(competitor: Competitor, case: Case, entry: Entry) -> None:
    """One timed run; the first one's rule is judged as well."""
    try:
        start = time.perf_counter()
        rule = competitor.run(case)
        entry.times.append(time.perf_counter() - start)
        if rule is not None and entry.f1 is None:
            entry.f1 = case.f1(rule)
    except Exception as error:  # a peer's crash is its result
        entry.reason = reason_of(error)


def reason_of(error: Exception) -> str:
    if isinstance(error, NotRunError):
        return str(error)
    if isinstance(error, ImportError):
        return "not in this version" if error.name and importlib.util.find_spec(error.name) else "not installed"
    return f"{type(error).__name__}: {error}".splitlines()[0][:60]


def warm_up() -> dict[Competitor, str]:
    """Load and compile everything; return which competitors cannot be had, and why."""
    absent = {}
    for one in COMPETITORS:
        for kind in (Kind(0.3), Kind(0.3, "float32")):
            entry = Entry([])
            take_turn(one, Case.make(TINY, kind), entry)
            if entry.reason:
                absent[one] = entry.reason
    for kind in KINDS:
        compiled(functools.partial(surecut, Case.make(LOADS_NUMBA, kind)))
    return absent


def compiled(function: Callable[[], Any]) -> None:
    """Call a function of surecut until its kernels are compiled for its arrays, and no thread compiles any more."""
    from surecut.core.settings import using

    with using(kernels="compiled"):
        function()
    function()
    for _ in range(600):
        before = time.process_time()
        time.sleep(0.05)
        if time.process_time() - before < 0.01:
            return


def run_cases(sizes: Sequence[int], effort: Effort) -> Results:
    absent = warm_up()
    results: Results = {}
    for rows in sizes:
        for kind in TINY_KINDS if rows == TINY else KINDS:
            start = time.perf_counter()
            results[rows, kind] = run_case(rows, kind, effort, absent)
            print(f"{rows:>10,} rows, {kind}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return results


# --- Probes: what only a fresh process can tell ----------------------------------------------------------------------


def probe_memory(rows: int, kind: Kind) -> dict[str, float]:
    """Peak extra memory of one call, allocated and resident, as a share of the scores' own size."""
    import tracemalloc

    case = Case.make(rows, kind)
    compiled(functools.partial(surecut, Case.make(LOADS_NUMBA, kind)))
    before = restart_resident_peak()
    surecut(case)
    resident = resident_peak() - before
    tracemalloc.start()
    surecut(case)
    traced = tracemalloc.get_traced_memory()[1]
    return {"traced": traced / case.scores.nbytes, "resident": resident / case.scores.nbytes}


def resident_peak() -> float:
    """The high-water mark of resident memory in bytes, NaN where the system does not tell.

    Not `ru_maxrss`, which a process inherits from the one that started it: a large parent would hide all growth.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return float("nan")


def restart_resident_peak() -> float:
    """Set the high-water mark to what is resident now, and return it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return float("nan")
    return resident_peak()


def probe_first_call(rows: int, kind: Kind, kernels: str | None = None) -> dict[str, float]:
    """Seconds that ``import surecut`` takes, that the first call takes, and the second."""
    case = Case.make(rows, kind)
    times = [time.perf_counter()]
    import surecut
    from surecut.core.settings import using

    times.append(time.perf_counter())
    with using(kernels=kernels):
        for _ in range(2):
            surecut.tune_threshold(case.labels, case.scores, metric="f1")
            times.append(time.perf_counter())
    return {"import": times[1] - times[0], "first": times[2] - times[1], "second": times[3] - times[2]}


PROBES = {
    "memory": probe_memory,
    "first-call": probe_first_call,
    "first-call-in-numpy": functools.partial(probe_first_call, kernels="numpy"),
}


def probe(name: str, rows: int, kind: Kind, **environment: str) -> dict[str, float]:
    """Run a probe in a process of its own."""
    output = subprocess.run(
        [sys.executable, __file__, "--probe", name, str(rows), str(kind.positives), kind.scores],
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(output)


def probe_cold(rows: int, kind: Kind) -> dict[str, float]:
    """The first call where numba has nothing in its cache."""
    with tempfile.TemporaryDirectory() as empty:
        return probe("first-call", rows, kind, NUMBA_CACHE_DIR=empty)


Probed = dict[Kind, dict[str, float]]


def probe_kinds(name: str, run: Callable[[Kind], dict[str, float]], kinds: Iterable[Kind]) -> Probed:
    """Probe several kinds of scores, one after the other."""
    start = time.perf_counter()
    probed = {kind: run(kind) for kind in kinds}
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return probed


# --- Verdicts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """A target, and what was measured on each kind of scores."""

    target: str
    measured: dict[Kind, float]
    needed: float
    at_least: bool
    form: str

    def row(self) -> list[str]:
        if not self.measured:
            return [self.target, "not measured", "not measured", "–"]
        pick = min if self.at_least else max
        worst = pick(self.measured, key=self.measured.__getitem__)
        median = statistics.median(self.measured.values())
        verdict = "met" if self._meets(self.measured[worst]) else "missed"
        if verdict == "missed" and self._meets(median):
            verdict = "missed (the median meets it)"
        return [
            self.target,
            f"{self.form.format(self.measured[worst])} ({worst})",
            self.form.format(median),
            verdict,
        ]

    def _meets(self, value: float) -> bool:
        return value >= self.needed if self.at_least else value <= self.needed


def ratios(
    results: Results, rows: int, above: Competitor, below: Competitor, kinds: Iterable[Kind]
) -> dict[Kind, float]:
    """How many times as long one competitor takes as another, for each kind on which both were run."""
    found = {}
    for kind in kinds:
        entries = results.get((rows, kind))
        if entries and (longer := entries[above].seconds) and (shorter := entries[below].seconds):
            found[kind] = longer / shorter
    return found


def verdicts(results: Results, memory: Probed, cached: Probed, cold: Probed, coldest: Probed) -> list[Verdict]:
    doubles = [kind for kind in KINDS if kind.is_double]
    huge, large = f"{HUGE:,} rows, float64", f"{LARGE:,} rows"

    def times_faster(target: str, needed: float, rows: int, peer: Competitor, ours: Competitor = SURECUT) -> Verdict:
        kinds = doubles if rows == HUGE else KINDS
        return Verdict(target, ratios(results, rows, peer, ours, kinds), needed, True, "{:,.0f}×")

    def column(probed: Probed, name: str) -> dict[Kind, float]:
        return {kind: values[name] for kind, values in probed.items()}

    at_sum = ratios(results, HUGE, SURECUT, SUM, doubles)
    return [
        times_faster(f"{huge}: at least 100× faster than `precision_recall_curve` + argmax", 100, HUGE, CURVE),
        Verdict(f"{huge}: at most 8× the time of `s.sum()`", at_sum, 8, False, "{:.1f}×"),
        Verdict(f"{huge}: extra memory below 0.5 of the scores", column(memory, "traced"), 0.5, False, "{:.2f}"),
        times_faster(f"{large}: at least 1000× faster than `TunedThresholdClassifierCV`", 1000, LARGE, TUNER),
        Verdict(f"{large}: first call below 3 s, cache present", column(cached, "first"), 3, False, "{:.2f} s"),
        Verdict(f"{large}: first call below 3 s, cache empty", column(cold, "first"), 3, False, "{:.2f} s"),
        Verdict(f"{huge}: first call below 3 s, cache empty", column(coldest, "first"), 3, False, "{:.2f} s"),
        times_faster(
            f"{huge}: NumPy only at least 20× faster than `precision_recall_curve` + argmax", 20, HUGE, CURVE, IN_NUMPY
        ),
    ]


# --- Report ----------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A Markdown table, aligned for the eye too."""
    lines = [list(header), *map(list, body)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def joined(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    def padded(line: Sequence[str]) -> str:
        others = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        return joined([line[0].ljust(widths[0]), *others])

    rule = joined(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])])
    return "\n".join([padded(lines[0]), rule, *map(padded, lines[1:])])


def duration(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    if seconds >= 1000:
        return f"{seconds:,.0f} s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{seconds * 1e9:.0f} ns"


def times(number: float) -> str:
    return f"{number:,.0f}×" if number >= 10 else f"{number:.2g}×"


def speed_table(results: Results, rows: int) -> str:
    """Median times, and ratios to surecut's."""
    kinds = [kind for size, kind in results if size == rows]

    def cell(one: Competitor, kind: Kind) -> str:
        entry, ours = results[rows, kind][one], results[rows, kind][SURECUT].seconds
        if entry.seconds is None or not ours:
            return entry.reason
        once = ONCE if len(entry.times) == 1 else ""
        return f"{duration(entry.seconds)}{once} ({times(entry.seconds / ours)})"

    return table(
        ["time (ratio to surecut)", *map(str, kinds)],
        [[one.name, *(cell(one, kind) for kind in kinds)] for one in COMPETITORS],
    )


def quality_table(results: Results, rows: int) -> str:
    """The F1 that each competitor's cut has on the same rows."""
    kinds = [kind for size, kind in results if size == rows]

    def cell(one: Competitor, kind: Kind) -> str:
        entry = results[rows, kind][one]
        return entry.reason or ("" if entry.f1 is None else f"{entry.f1:.7f}")

    return table(
        ["F1", *map(str, kinds)],
        [[one.name, *(cell(one, kind) for kind in kinds)] for one in COMPETITORS if one not in (SUM, SORT)],
    )


def largest_excess(results: Results) -> float:
    """By how much any competitor's F1 was above surecut's."""
    return max(
        entry.f1 - (entries[SURECUT].f1 or 0.0)
        for entries in results.values()
        for entry in entries.values()
        if entry.f1 is not None
    )


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def digest_of_sources() -> str:
    """A name for the code that is measured, which may be between two commits."""
    import surecut

    sources = sorted(Path(surecut.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> str:
    return ", ".join(f"{average:.1f}" for average in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def report(quick: bool) -> str:
    """Measure everything, and put it in words."""
    start, load_before, digest = time.perf_counter(), load(), digest_of_sources()
    sizes = (TINY, SMALL, LARGE) if quick else (TINY, SMALL, LARGE, HUGE)
    results = run_cases(sizes, Effort(turns=5, patience=1.0) if quick else Effort(turns=11, patience=12.0))
    doubles = [kind for kind in KINDS if kind.is_double]
    some = [Kind(0.01), Kind(0.3), Kind(0.01, "heavy-tailed")]
    memory_rows = LARGE if quick else HUGE
    memory = probe_kinds("memory", lambda kind: probe("memory", memory_rows, kind), doubles)
    cached = probe_kinds("first call", lambda kind: probe("first-call", LARGE, kind), some)
    cold = probe_kinds("first call, cache empty", lambda kind: probe_cold(LARGE, kind), some)
    cold_rows = LARGE if quick else HUGE
    coldest = probe_kinds("first call of more rows, cache empty", lambda kind: probe_cold(cold_rows, kind), some)

    changed = "" if digest_of_sources() == digest else " **The sources changed during the run: do not trust it.**"

    parts = [
        "# The best F1 cut: times, quality, memory",
        "Written by `make bench` (`benchmarks/tuning.py`)."
        f" Python {platform.python_version()}, {platform.system()} {platform.machine()}, {available_cores()} cores;"
        f" load before {load_before}, after {load()}."
        f" Versions: {', '.join(f'{package} {version_of(package)}' for package in VERSIONS)};"
        f" surecut's sources {digest}.{changed}",
        "Labels are int64. Scores are the sigmoid of a normal margin and labels are drawn with them as probabilities;"
        " *tied* scores are rounded to three decimals, *heavy-tailed* ones are Cauchy margins. Times are medians of"
        f" interleaved turns, fewer of slow peers; {ONCE} marks a single turn. surecut uses its compiled kernels from"
        " 500,000 rows on, and all cores; the limits use one."
        " *not run*: it would take over about a minute, or the time of the whole run.",
    ]
    for rows in sizes:
        parts += [f"## {rows:,} rows", speed_table(results, rows), quality_table(results, rows)]
    parts += [
        f"The largest amount by which any F1 above exceeds surecut's: {largest_excess(results):.1e}.",
        f"## Memory: peak of one call, as a share of the scores' own size, at {memory_rows:,} rows",
        table(
            ["measured by", *map(str, memory)],
            [
                ["tracemalloc", *(f"{values['traced']:.3f}" for values in memory.values())],
                [
                    "growth of the resident high-water mark",
                    *(f"{values['resident']:.3f}" for values in memory.values()),
                ],
            ],
        ),
        f"## First call in a fresh process, at {LARGE:,} rows",
        table(
            ["", *map(str, some)],
            [
                ["`import surecut`, NumPy loaded", *(duration(values["import"]) for values in cached.values())],
                ["first call, numba's cache present", *(duration(values["first"]) for values in cached.values())],
                ["first call, numba's cache empty", *(duration(values["first"]) for values in cold.values())],
                [
                    f"first call, numba's cache empty, {cold_rows:,} rows",
                    *(duration(values["first"]) for values in coldest.values()),
                ],
                ["second call", *(duration(values["second"]) for values in cached.values())],
            ],
        ),
        "## Targets",
        table(
            ["target", "worst", "median", "verdict"],
            [one.row() for one in verdicts(results, {} if quick else memory, cached, cold, {} if quick else coldest)],
        ),
        f"The run took {(time.perf_counter() - start) / 60:.1f} minutes.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="no ten million rows, fewer repetitions, no file")
    parser.add_argument("--probe", nargs=4, metavar=("NAME", "ROWS", "POSITIVES", "SCORES"), help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    warnings.simplefilter("ignore")  # peers warn about undefined precision at the ends of their grids
    if options.probe:
        name, rows, positives, scores = options.probe
        print(json.dumps(PROBES[name](int(rows), Kind(float(positives), scores))))
        return
    text = report(options.quick)
    print(text)
    if not options.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
