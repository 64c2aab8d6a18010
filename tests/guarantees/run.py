"""Run all simulated guarantees: ``PYTHONPATH=tests python -m guarantees.run``, or ``make test-guarantees``.

Draws come in blocks, each with random numbers that the configuration's name and the block's number determine. Finished
blocks are written to a CSV file, so that a run that was stopped goes on where it was, with the same result.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import os
import pkgutil
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from scipy import stats

import guarantees
from guarantees.configuration import Configuration

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
BLOCK = 100
COLUMNS = ("configuration", "block", "draws", "refused", "failures")
"""Failures of several parts stand with a semicolon between them."""


def configurations() -> dict[str, Configuration]:
    """All configurations of this package's modules, by name."""
    found: dict[str, Configuration] = {}
    for module in pkgutil.iter_modules(guarantees.__path__):
        if module.name == "run":
            continue
        for one in getattr(importlib.import_module(f"guarantees.{module.name}"), "CONFIGURATIONS", []):
            if one.name in found:
                raise ValueError(f"two configurations have the name {one.name!r}: a name is the seed of its draws")
            found[one.name] = one
    return found


def run_block(name: str, block: int, draws: int) -> dict[str, str | int]:
    """One block of draws, reproducible from its name and number."""
    seed = hashlib.sha256(f"{name}/{block}".encode()).digest()
    rng = np.random.default_rng(np.frombuffer(seed, dtype=np.uint32))
    one = configurations()[name]
    outcomes = [one.fails(rng) for _ in range(draws)]
    counted = [np.atleast_1d(outcome) for outcome in outcomes if outcome is not None]
    failures = np.sum(counted, axis=0, dtype=int) if counted else np.zeros(len(one.parts), dtype=int)
    return {
        "configuration": name,
        "block": block,
        "draws": draws,
        "refused": draws - len(counted),
        "failures": ";".join(map(str, failures.tolist())),
    }


def read_blocks(path: Path) -> dict[tuple[str, int, int], dict[str, str]]:
    """Finished blocks, by configuration, number and size."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(row["configuration"], int(row["block"]), int(row["draws"])): row for row in csv.DictReader(file)}


def write_blocks(path: Path, blocks: Iterable[dict[str, str | int] | dict[str, str]]) -> None:
    """All of the file or nothing: another file is written and takes its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with beside.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(blocks, key=lambda row: (str(row["configuration"]), int(row["block"]))))
    beside.replace(path)


def verdict(failures: int, draws: int, error: float) -> str:
    """By a binomial test: whether so many failures are too many for the error that is allowed."""
    if not draws:
        return "refused"
    return "kept" if stats.binomtest(failures, draws, error, alternative="greater").pvalue > 0.001 else "BROKEN"


def table(blocks: Iterable[dict[str, str]], known: dict[str, Configuration]) -> tuple[str, bool]:
    """A Markdown table of all configurations, and whether every guarantee is kept."""
    sums: dict[str, np.ndarray] = {name: np.zeros(2 + len(one.parts), dtype=int) for name, one in known.items()}
    for row in blocks:
        if row["configuration"] in sums:
            found = [row["draws"], row["refused"], *row["failures"].split(";")]
            sums[row["configuration"]] += np.array(list(map(int, found)))
    lines = [
        "| guarantee | error allowed | failures / draws | refused | measured | verdict |",
        "|---|---|---|---|---|---|",
    ]
    kept = True
    for name, (draws, refused, *failed) in sums.items():
        error, counted = known[name].error, int(draws - refused)
        for part, failures in zip(known[name].parts, failed, strict=True):
            rate = f"{failures / counted:.4f}" if counted else "–"
            said = verdict(int(failures), counted, error) if draws else "not run"
            kept &= said != "BROKEN"
            what = f"{name}: {part}" if part else name
            lines.append(f"| {what} | {error:g} | {failures:,} / {counted:,} | {refused:,} | {rate} | {said} |")
    return "\n".join(lines) + "\n", kept


def run(
    known: dict[str, Configuration],
    path: Path,
    draws: int,
    workers: int,
    minutes: float | None = None,
    block: int = BLOCK,
) -> dict[tuple[str, int, int], dict[str, str]]:
    """Run the blocks that are missing; every configuration gets its first block before any gets its second."""
    done = read_blocks(path)
    wanted = [(name, number, block) for number in range(-(-draws // block)) for name in known]
    missing = [one for one in wanted if one not in done]
    start = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        waiting = {pool.submit(run_block, *one): one for one in missing[: 2 * workers]}
        ahead = iter(missing[2 * workers :])
        finished = len(wanted) - len(missing)
        while waiting:
            future = next(as_completed(waiting))
            key = waiting.pop(future)
            done[key] = {name: str(value) for name, value in future.result().items()}
            write_blocks(path, done.values())
            finished += 1
            sys.stderr.write(
                f"\r{finished:,} of {len(wanted):,} blocks, {time.monotonic() - start:,.0f} s, {key[0]:<60}"
            )
            sys.stderr.flush()
            in_time = minutes is None or time.monotonic() - start < 60 * minutes
            if in_time and (following := next(ahead, None)) is not None:
                waiting[pool.submit(run_block, *following)] = following
    sys.stderr.write("\n")
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2_000, help="draws of each configuration")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=None, help="start no block after so many minutes")
    parser.add_argument("--only", default="", help="configurations whose name contains this")
    options = parser.parse_args()
    known = {name: one for name, one in configurations().items() if options.only in name}
    done = run(known, RESULTS / "guarantees.csv", options.draws, options.workers, options.minutes)
    every = configurations()
    text, kept = table(done.values(), every)
    head = (
        "# Simulated guarantees\n\nMade by `make test-guarantees`. *Kept*: a binomial test at 0.001 does not reject "
        "that the guarantee fails with the error allowed, or less. Refused draws are not counted.\n\n"
    )
    (RESULTS / "guarantees.md").write_text(head + text)
    sys.stdout.write(text)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
