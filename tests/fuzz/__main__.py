"""The fuzzer as a program: `python -m fuzz --runs 50000 --seed 1`, with the tests on the path."""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from fuzz.measures import DRAWN
from fuzz.paths import PATHS, SkippedError
from fuzz.running import IMPORTS, OBJECTIVES, Difference, case_named, made_small, run, snippet, worked

CHUNK = 40
"""Samples of one path that a process works on before it reports."""


def chunks(paths: list[str], runs: int, seed: int, metrics: set[str] | None) -> Iterator[tuple[str, range]]:
    """Samples to work on, path after path in turn, each as often as its share says."""
    shares = {path: PATHS[path].share for path in paths}
    whole = sum(shares.values())
    per_path = {path: max(1, round(runs * share / whole / OBJECTIVES * 1.25)) for path, share in shares.items()}
    waiting = [
        [(path, range(start, min(start + CHUNK, count))) for start in range(0, count, CHUNK)]
        for path, count in per_path.items()
    ]
    # In turn by progress, so that a run that is stopped early has seen all paths.
    placed = [(i / len(one), chunk) for one in waiting for i, chunk in enumerate(one)]
    return (chunk for _, chunk in sorted(placed, key=lambda pair: pair[0]))


def replay(name: str) -> int:
    case = case_named(name)
    print(IMPORTS + snippet(case, "as drawn"))
    print()
    try:
        found = run(case)
    except SkippedError:
        print("skipped: the metric grows with errors on these rows, or is not for this path")
        return 0
    if found is None:
        print("no difference")
        return 0
    small, what = made_small(case, seconds=30)
    print(f"{found[0]}: {found[1]}\n\nMade small:\n{IMPORTS}{snippet(small, what[1])}")
    return 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--runs", type=int, default=50_000, help="about how many cuts to compare")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--paths", default="", help=f"some of: {', '.join(PATHS)}")
    parser.add_argument("--metrics", default="", help=f"some of: {', '.join(DRAWN)}")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start nothing new after this time")
    parser.add_argument("--engines", action="store_true", help="also Dask and Spark, which are slow")
    parser.add_argument("--shown", type=int, default=30, help="how many kinds of differences to show as code")
    parser.add_argument("--replay", metavar="CASE", help="run one case again, by the name that a report gives it")
    options = parser.parse_args(arguments)
    if options.replay:
        return replay(options.replay)
    paths = [name for name in PATHS if options.engines or not PATHS[name].engine]
    if options.paths:
        paths = options.paths.split(",")
        if unknown := set(paths) - set(PATHS):
            parser.error(f"unknown paths {', '.join(sorted(unknown))}: expected some of {', '.join(PATHS)}")
    metrics = set(filter(None, options.metrics.split(","))) or None
    if metrics and (strange := metrics - set(DRAWN)):
        parser.error(f"unknown metrics {', '.join(sorted(strange))}: expected some of {', '.join(DRAWN)}")
    found, counted = compared(paths, options, metrics)
    return summary(found, counted, options.shown)


def compared(
    paths: list[str], options: argparse.Namespace, metrics: set[str] | None
) -> tuple[list[Difference], dict[str, Counter[str]]]:
    counted: dict[str, Counter[str]] = {path: Counter() for path in paths}
    found: list[Difference] = []
    started = last = time.monotonic()
    work = list(chunks(paths, options.runs, options.seed, metrics))
    with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = iter(work)
        futures = {
            pool.submit(worked, path, options.seed, indices, metrics)
            for path, indices in itertools.islice(waiting, 2 * options.jobs)
        }
        done = 0
        while futures:
            future = next(as_completed(futures))
            futures.remove(future)
            path, counts, differences = future.result()
            counted[path] += counts
            counted[path]["differences"] += len(differences)
            found += differences
            done += 1
            for one in differences:
                sys.stderr.write(f"{one.case}: {one.metric}, {one.weighing}: {one.kind}: {one.what}\n")
            if time.monotonic() - started > options.seconds:
                waiting = iter(())
            for path, indices in itertools.islice(waiting, 1):
                futures.add(pool.submit(worked, path, options.seed, indices, metrics))
            if time.monotonic() - last > 5 or not futures:
                last = time.monotonic()
                runs = sum(one["runs"] for one in counted.values())
                spent = last - started
                sys.stderr.write(
                    f"{runs:,} runs, {len(found):,} differences, {done}/{len(work)} chunks, {spent:.0f} s, "
                    f"{runs / spent:.0f} runs/s\n"
                )
    return found, counted


def summary(found: list[Difference], counted: dict[str, Counter[str]], shown: int) -> int:
    kinds: dict[tuple[str, str, str], list[Difference]] = {}
    for one in found:
        kinds.setdefault((one.path, one.kind, one.metric), []).append(one)
    if kinds and shown:
        print(f"# All of these begin with\n{IMPORTS}")
    for (path, kind, metric), some in sorted(kinds.items(), key=lambda pair: -len(pair[1]))[:shown]:
        smallest = min(some, key=lambda one: one.rows)
        case, what = made_small(case_named(smallest.case))
        print(f"--- {path}, {metric}, {kind}: {len(some)} times, as in\n{snippet(case, what[1])}\n")
    if len(kinds) > shown:
        print(f"… and {len(kinds) - shown} more kinds of differences; --shown shows more\n")
    print(f"{'path':14} {'runs':>9} {'skipped':>9} {'differences':>12}")
    for path, counts in counted.items():
        print(f"{path:14} {counts['runs']:9,} {counts['skipped']:9,} {counts['differences']:12,}")
    runs = sum(counts["runs"] for counts in counted.values())
    skipped = sum(counts["skipped"] for counts in counted.values())
    print(f"{'all':14} {runs:9,} {skipped:9,} {len(found):12,}")
    return 1 if found else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
