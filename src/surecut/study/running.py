"""Run the cells of an experiment that are not done yet."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from importlib import metadata
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from surecut.study import get_experiment
from surecut.study.store import RESULTS, Store, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from surecut.study.experiment import Cell, Experiment, Row

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib")

CLOCKS = {"seconds"}
"""Results that are measured by a clock, and so are never the same twice."""

TOLERANCE = 1e-3
"""How far, relatively, results may differ between machines, whose sums differ in the last bit: a few test rows."""


def run(
    name: str,
    out: Path,
    *,
    scale: str,
    seed: int,
    n_jobs: int,
    minutes: float = math.inf,
    tell: Callable[[int, int], None] = lambda *_: None,
) -> Store:
    """Run an experiment; cells that are finished are not run again.

    Parameters
    ----------
    minutes
        After this time no new cell is begun.
    tell
        Called with the number of finished cells and of all cells, first before anything is run.

    Notes
    -----
    When it is interrupted, what is finished has been saved, and the table of it is written. A folder that has only
    such a table and its manifest is gone on from as well, once some of its cells have been run again and agree.
    """
    import pandas as pd  # noqa: F401  # the table is written at the end; what is missing is said now
    from joblib import Parallel, delayed

    experiment = get_experiment(name)
    store, cells = Store(out / name), experiment.cells(scale)
    store.open(seed)
    take_over_table(experiment, store, seed)
    end = time.monotonic() + 60 * minutes
    waiting = [cell for cell in cells if not store.is_done(cell)]
    done = len(cells) - len(waiting)
    tell(done, len(cells))
    try:
        begun = takewhile(lambda _: time.monotonic() < end, waiting)
        jobs = (delayed(run_cell)(name, store, cell, seed) for cell in begun)
        for done_now, _ in enumerate(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs), done + 1):
            tell(done_now, len(cells))
    finally:
        store.write_table(cells, manifest_of(name, scale, seed, store.manifest().get("versions", {})))
    return store


def take_over_table(experiment: Experiment, store: Store, seed: int) -> None:
    """Make finished cells of a table that came without them, if this code and this machine reproduce it."""
    documents = store.only_in_table()
    for document in spot_checks(documents):
        cell = document["cell"]
        require_agreement(document["rows"], measure(experiment, cell, seed), cell, store)
    for document in documents:
        store.save(**document)


def spot_checks(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first cell with each word (a data set, a learner) that occurs among the cells, or the first one.

    >>> cells = [{"n": 1, "learner": "LR"}, {"n": 2, "learner": "LR"}, {"n": 1, "learner": "SVM"}]
    >>> [document["cell"] for document in spot_checks([{"cell": cell} for cell in cells])]
    [{'n': 1, 'learner': 'LR'}, {'n': 1, 'learner': 'SVM'}]
    """
    seen: set[str] = set()
    chosen: list[dict[str, Any]] = []
    for document in documents:
        words = {value for value in document["cell"].values() if isinstance(value, str)}
        if not chosen or not words <= seen:
            chosen.append(document)
        seen |= words
    return chosen


def require_agreement(tabulated: list[Row], measured: list[Row], cell: Cell, store: Store) -> None:
    """See that rows of a table and the same rows measured now agree, but for what a clock measured.

    One value in ten may differ: some, as the correlation of an SVM that gave up, are made of rounding errors alone.
    """
    values, different = 0, []
    none: Row = {}
    for old, new in zip_longest(tabulated, measured, fillvalue=none):
        for name in dict.fromkeys((*old, *new)):
            if name not in CLOCKS:
                was, now = old.get(name, math.nan), new.get(name, math.nan)
                values += 1
                if not agree(was, now):
                    different.append(f"{name} is {was} there and {now} here")
    if 10 * len(different) > values:
        named = ", ".join(f"{parameter} {value}" for parameter, value in cell.items())
        raise StoreError(
            f"{store.folder / RESULTS} was made by other code or versions: at {named}, {different[0]}. "
            "Remove its rows that are to be run again, or choose another --out"
        )


def agree(one: Any, other: Any) -> bool:
    """Whether two results are the same, up to what sums in another order change."""
    numbers = all(isinstance(value, float | int) for value in (one, other))
    if numbers and math.isnan(one):
        return math.isnan(other)
    return one == other or (numbers and math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE**2))


def run_cell(name: str, store: Store, cell: Cell, seed: int) -> None:
    """Run one cell and save it, with its CPU time."""
    start = time.process_time()
    rows = measure(get_experiment(name), cell, seed)
    store.save(cell, rows, time.process_time() - start)


def measure(experiment: Experiment, cell: Cell, seed: int) -> list[Row]:
    """The rows of one cell.

    One thread, so that sums are formed in the same order whatever else runs.
    """
    with threadpool_limits(1):
        return experiment.run(cell, experiment.generator(cell, seed))


def manifest_of(name: str, scale: str, seed: int, earlier: dict[str, str]) -> dict[str, Any]:
    """How results were made; where they were begun with other versions, those first."""
    from surecut import __version__

    versions = {"surecut": __version__, "python": platform.python_version()}
    versions |= {package: metadata.version(package) for package in PACKAGES}
    for package, version in versions.items():
        used = [*earlier.get(package, version).split(", "), version]
        versions[package] = ", ".join(dict.fromkeys(used))
    return {
        "experiment": name,
        "command": f"surecut study run {name} --scale {scale} --random-state {seed}",
        "scale": scale,
        "seed": seed,
        "versions": versions,
        "platform": f"{platform.system()} {platform.machine()}",
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
