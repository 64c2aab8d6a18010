"""Step 1, all labels at once: `LinearSurrogate` beside scikit-learn's one-vs-rest, on dense and on sparse features.

What is printed is Markdown, and goes to ``results/linear.md`` too. ``--quick`` takes fewer rows and labels, judges no
targets and writes no file. The dense case is mediamill, which is left out where `surecut.datasets` does not find it:
``SURECUT_DATA`` names the folder with its files.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from surecut import LinearSurrogate, datasets

RESULTS = Path(__file__).parent / "results" / "linear.md"
VERSIONS = ("surecut", "numpy", "scipy", "scikit-learn")
TURNS = 3
"""Repetitions of surecut's own fit, of which the median counts; peers take minutes, and run once."""


# --- Data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Features, and a matrix of labels."""

    name: str
    features: Any
    labels: np.ndarray

    @property
    def title(self) -> str:
        rows, columns = self.features.shape
        return f"{self.name}: {rows:,} × {columns:,}, {self.labels.shape[1]} labels"


def mediamill(rows: int, labels: int) -> Case | None:
    """The first rows of mediamill's training part, standardised."""
    if not datasets.is_present("mediamill"):
        return None
    X, Y = datasets.load("mediamill").train
    return Case("mediamill, standardised", StandardScaler().fit_transform(X.toarray()[:rows]), Y[:rows, :labels])


def text(rows: int, words: int, labels: int, distinct: int = 100, seed: int = 0) -> Case:
    """Documents with tf-idf of words drawn by Zipf's law, three in ten from the topics of their labels."""
    random = np.random.default_rng(seed)

    def zipf(size: int, shape: Any) -> np.ndarray:
        cumulated = np.cumsum(1 / (np.arange(size) + 10.0))
        return np.searchsorted(cumulated, random.random(shape) * cumulated[-1])

    count = 1 + random.poisson(2, rows)
    topics = zipf(labels, count.sum())
    Y = np.zeros((rows, labels), dtype=np.int64)
    Y[np.repeat(np.arange(rows), count), topics] = 1

    draws = 3 * distinct
    ranking = random.permuted(np.tile(np.arange(words), (labels, 1)), axis=1)
    rank, first = zipf(words, (rows, draws)), np.cumsum(count) - count
    topic = topics[first[:, None] + (random.random((rows, draws)) * count[:, None]).astype(int)]
    drawn = np.where(random.random((rows, draws)) < 0.3, ranking[topic, rank], rank)
    entries = []
    for row in range(rows):
        word, times = np.unique(drawn[row], return_counts=True)
        kept = random.permutation(len(word))[:distinct]
        entries.append((np.full(len(kept), row), word[kept], times[kept]))
    row, word, times = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    counts = sparse.csr_matrix((times.astype(float), (row, word)), shape=(rows, words))
    return Case("tf-idf, sparse", TfidfTransformer(sublinear_tf=True).fit_transform(counts), Y)


# --- Competitors -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """What a competitor took, and the objectives that it reached, NaN for labels that it was not given."""

    name: str
    seconds: float
    cpu: float
    objectives: np.ndarray


def objective(case: Case, label: int, w: np.ndarray, b: float) -> float:
    """½‖w‖² + Σ log(1 + e^(−y(w·x + b)))."""
    signs = np.where(case.labels[:, label] > 0, 1, -1)
    return float(w @ w / 2 + np.logaddexp(0, -signs * (case.features @ w + b)).sum())


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    model = fit()
    return model, time.perf_counter() - wall, time.process_time() - cpu


def ours(case: Case) -> Entry:
    turns = [timed(lambda: LinearSurrogate().fit(case.features, case.labels)) for _ in range(TURNS)]
    model = turns[0][0]
    return Entry(
        "surecut `LinearSurrogate()`",
        statistics.median(turn[1] for turn in turns),
        statistics.median(turn[2] for turn in turns),
        np.array(
            [objective(case, label, *one) for label, one in enumerate(zip(model.coef_, model.intercept_, strict=True))]
        ),
    )


def peer(case: Case, share: int = 1, **parameters: Any) -> Entry:
    """One-vs-rest on every `share`-th label; its time is a sum over labels, so a share of it tells the rest."""
    chosen = np.arange(0, case.labels.shape[1], share)
    some = Case(case.name, case.features, case.labels[:, chosen])
    model, seconds, cpu = timed(
        lambda: OneVsRestClassifier(LogisticRegression(**parameters)).fit(some.features, some.labels)
    )
    reached = np.full(case.labels.shape[1], np.nan)
    for label, one in zip(chosen, model.estimators_, strict=True):
        if hasattr(one, "coef_"):  # a label that never occurs is not fitted
            reached[label] = objective(case, label, one.coef_[0], one.intercept_[0])
    scale = case.labels.shape[1] / len(chosen)
    written = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    remark = f" ({len(chosen)} labels, times {scale:g})" if share > 1 else ""
    return Entry(f"`OneVsRestClassifier(LogisticRegression({written}))`{remark}", seconds * scale, cpu * scale, reached)


# --- Report ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """How many times as fast as a peer surecut is to be."""

    case: Case
    own: Entry
    peer: Entry
    needed: float

    def row(self) -> list[str]:
        faster = self.peer.seconds / self.own.seconds
        excess = largest_excess(self.own, self.peer)
        met = faster >= self.needed and excess <= 1e-6
        return [
            f"{self.case.name}: at least {self.needed:g}× faster than {self.peer.name}, objective not above theirs",
            f"{faster:.1f}× (by CPU time {self.peer.cpu / self.own.cpu:.1f}×)",
            f"{excess:.1e}",
            "met" if met else "missed",
        ]


def largest_excess(own: Entry, other: Entry) -> float:
    """The most by which surecut's objective is above another's on any label, relative; negative if it never is."""
    return float(np.nanmax(own.objectives / other.objectives - 1))


def table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(case: Case, entries: Sequence[Entry]) -> str:
    own = entries[0]
    rows = [
        [
            one.name,
            f"{one.seconds:.1f} s",
            f"{one.cpu:.1f} s",
            f"{one.seconds / own.seconds:.1f}×",
            "" if one is own else f"{largest_excess(one, own):.1e}",
        ]
        for one in entries
    ]
    header = ["", "time", "CPU time", "ratio to surecut", "objective above surecut's, largest over labels"]
    return f"## {case.title}\n\n{table(header, rows)}"


def load() -> str:
    return ", ".join(f"{average:.1f}" for average in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def report(quick: bool) -> str:
    """Measure everything, and put it in words."""
    start, load_before = time.perf_counter(), load()
    cases = [
        (mediamill(2_000, 20), 1) if quick else (mediamill(20_000, 101), 1),
        (text(2_000, 2_000, 40), 4) if quick else (text(20_000, 20_000, 200), 8),
    ]
    sections, targets = [], []
    for case, share in cases:
        if case is None:
            sections.append("mediamill is left out: SURECUT_DATA names no folder with its files.")
            continue
        own = ours(case)
        print(f"{case.title}: {own.seconds:.1f} s", file=sys.stderr)
        wanted = (
            [({"solver": "liblinear"}, 3)]
            if sparse.issparse(case.features)
            else [({"solver": "newton-cholesky"}, 3), ({"max_iter": 1000}, 15)]
        )
        entries = [own]
        for parameters, needed in wanted:
            entries.append(peer(case, share, **parameters))
            targets.append(Target(case, own, entries[-1], needed))
            print(f"{entries[-1].name}: {entries[-1].seconds:.1f} s", file=sys.stderr)
        sections.append(section(case, entries))
    threads = max((library["num_threads"] for library in threadpool_info()), default=1)
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in VERSIONS)
    parts = [
        "# Step 1: linear models of all labels",
        f"Written by `make bench` (`benchmarks/linear.py`). Python {platform.python_version()}, {platform.system()}"
        f" {platform.machine()}, {os.cpu_count()} cores, {threads} threads; load before {load_before}, after {load()}."
        f" Versions: {versions}.",
        "Logistic loss, C = 1. The objective of a label is ½‖w‖² + Σ log(1 + e^(−y(w·x + b))). surecut's times are"
        f" medians of {TURNS} fits; peers run once. liblinear penalises the intercept too, so its minimum is another.",
        *sections,
    ]
    if not quick:
        header = ["target", "measured", "surecut's objective above theirs", "verdict"]
        parts += ["## Targets", table(header, [one.row() for one in targets])]
    parts.append(f"The run took {(time.perf_counter() - start) / 60:.1f} minutes.")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows and labels, no file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # one-vs-rest warns of labels that never occur
    written = report(options.quick)
    print(written)
    if not options.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
