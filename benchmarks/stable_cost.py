"""The time of a stable cut, beside one exact cut of the same arrays.

    python benchmarks/stable_cost.py           # writes results/stable_cost.md
    python benchmarks/stable_cost.py --quick   # smaller jobs and fewer turns, not written

Both run in this process and take turns; a time is the shortest of its turns. "NumPy" is without compiled kernels, as in
the first calls of a process and where numba is not installed; "compiled" is with them, loaded before times are taken.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import multilabel
import tuning
from paired import table
from stable_cache import RESULTS, STABLE, command, stable_call
from surecut import tune_threshold, tune_thresholds
from surecut.core.kernels import has_numba
from surecut.core.settings import using

ORDINARY = tuning.Kind(0.3)
TIMES = {10_000: 60, 1_000_000: 40}
"""Rows, and how many times as long as an exact cut a stable one may take."""

LABELS, ROWS, LIMIT = 1_000, 10_000, 120
"""Labels and rows of the multilabel job, and the seconds that it may take."""


@dataclass(frozen=True)
class Job:
    """A call without options, and with those of a stable cut."""

    title: str
    call: Callable[..., Any]
    turns: int
    times: float | None = None
    seconds: float | None = None

    def row(self, kernels: str) -> tuple[str, ...]:
        exact, stable = measured(self.call, self.turns)
        met = stable / exact <= self.times if self.times else stable <= (self.seconds or 0)
        target = f"≤ {self.times:g}×" if self.times else f"≤ {self.seconds:g} s"
        row = (
            self.title,
            kernels,
            tuning.duration(exact),
            tuning.duration(stable),
            f"{stable / exact:.1f}×",
            target,
            "met" if met else "missed",
        )
        print(*row, sep="; ", flush=True)
        return row


def measured(call: Callable[..., Any], turns: int) -> tuple[float, float]:
    """The shortest times of an exact and of a stable call, which take turns."""
    found: list[tuple[float, float]] = []
    for _ in range(turns):
        taken = []
        for options in ({}, STABLE):
            start = time.perf_counter()
            call(**options)
            taken.append(time.perf_counter() - start)
        found.append((taken[0], taken[1]))
    exact, stable = np.min(found, axis=0)
    return float(exact), float(stable)


def jobs(quick: bool) -> list[Job]:
    found = []
    for rows, times in TIMES.items():
        rows = min(rows, 100_000) if quick else rows
        case = tuning.Case.make(rows, ORDINARY)
        call = partial(tune_threshold, case.labels, case.scores, metric="f1")
        turns = 3 if quick else (31 if rows <= 10_000 else 9)
        found.append(Job(f"`tune_threshold`, {rows:,} rows, F1", call, turns, times=times))
    labels, rows = (20, 1_000) if quick else (LABELS, ROWS)
    many = partial(tune_thresholds, *multilabel.dense(rows, labels), metric="f1")
    title = f"`tune_thresholds`, {labels:,} labels × {rows:,} rows, macro-F1"
    return [*found, Job(title, many, 1 if quick else 2, seconds=LIMIT)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller jobs, fewer turns, no file")
    options = parser.parse_args()
    load, start, rows = tuning.load(), time.perf_counter(), []
    every = jobs(options.quick)
    with using(kernels="numpy"):
        for job in every:
            if job.times:  # a call until its arrays are in the caches
                job.call(**STABLE)
            rows.append(job.row("NumPy"))
    for job in every if has_numba() else []:
        tuning.compiled(job.call)
        tuning.compiled(partial(job.call, **STABLE))
        with using(kernels="compiled"):
            rows.append(job.row("compiled"))
    lines = [
        "# Time of a stable cut",
        f"Written by `{command()}`; *stable* is `{stable_call()}`. Both calls in one process, in turns; the shortest"
        f" time of each. Python {platform.python_version()}, {platform.system()} {platform.machine()},"
        f" {tuning.available_cores()} cores; load before {load}, after {tuning.load()}; NumPy"
        f" {tuning.version_of('numpy')}, numba {tuning.version_of('numba')}; surecut's sources"
        f" {tuning.digest_of_sources()}. *NumPy* is without compiled kernels, as in the first calls of a process;"
        " *compiled* has them loaded before times are taken.",
        table(("job", "kernels", "exact", "stable", "ratio", "to reach", "verdict"), rows, words=2),
        f"The run took {(time.perf_counter() - start) / 60:.1f} minutes.",
    ]
    text = "\n\n".join(lines) + "\n"
    print(text)
    if not options.quick:
        (RESULTS / "stable_cost.md").write_text(text)


if __name__ == "__main__":
    main()
