"""Run the cells of an experiment that are not done yet."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from importlib import metadata
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from surecut.study import get_experiment
from surecut.study.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from surecut.study.experiment import Cell

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "joblib")


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
    When it is interrupted, what is finished has been saved, and the table of it is written.
    """
    from joblib import Parallel, delayed

    experiment = get_experiment(name)
    store, cells = Store(out / name), experiment.cells(scale)
    store.open(seed)
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
        store.write_table(cells, manifest_of(name, scale, seed))
    return store


def run_cell(name: str, store: Store, cell: Cell, seed: int) -> None:
    """Run one cell and save it, with its CPU time.

    One thread, so that sums are formed in the same order whatever else runs.
    """
    experiment = get_experiment(name)
    start = time.process_time()
    with threadpool_limits(1):
        rows = experiment.run(cell, experiment.generator(cell, seed))
    store.save(cell, rows, time.process_time() - start)


def manifest_of(name: str, scale: str, seed: int) -> dict[str, Any]:
    """How results were made."""
    from surecut import __version__

    return {
        "experiment": name,
        "command": f"surecut study run {name} --scale {scale} --seed {seed}",
        "scale": scale,
        "seed": seed,
        "versions": {"surecut": __version__, "python": platform.python_version()}
        | {package: metadata.version(package) for package in PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
