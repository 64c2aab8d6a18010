"""``surecut study …``: run the paper's experiments, draw their figures, write the report."""

from __future__ import annotations

import math
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from surecut.study import NAMES, SCALES, get_experiment

app = typer.Typer(help="The paper's experiments: list, run, plot, report.", no_args_is_help=True)

Scale = Enum("Scale", {name: name for name in SCALES}, type=str)  # type: ignore[misc]  # typer wants an Enum
ALL = "all"

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help=f"{', '.join(NAMES)}, or {ALL}.",
        autocompletion=lambda: [*NAMES, ALL],
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of results.")]
FOLDER = Path("surecut-study")
QUICK = Scale("quick")


@app.command("list")
def list_experiments() -> None:
    """Say which experiments there are."""
    with _sentences():
        for name in NAMES:
            experiment = get_experiment(name)
            cells = ", ".join(f"{scale} {len(experiment.cells(scale)):,}" for scale in SCALES)
            where = f"{f'paper: {experiment.section}' if experiment.section else 'not in the paper'}; cells: {cells}"
            typer.echo("\n    ".join((name, *textwrap.wrap(experiment.title, 76), where)))


@app.command()
def run(
    name: Name,
    scale: Annotated[
        Scale, typer.Option(metavar="|".join(SCALES), help="Seconds, minutes, or the paper's own sizes.")
    ] = QUICK,
    random_state: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Decides every random draw.")] = 0,
    n_jobs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Processes; −1 is one per core. It does not change the numbers.")
    ] = 1,
    minutes: Annotated[
        float, typer.Option(min=0, help="Begin no new cell after this time.", show_default=False)
    ] = math.inf,
    out: Out = FOLDER,
) -> None:
    """Run an experiment. Each finished cell is saved at once; a run that was stopped goes on where it was."""
    with _sentences():
        from surecut.study.running import run as run_cells

        if n_jobs == 0 or n_jobs < -1:
            raise ValueError(f"--n-jobs must be a number of processes, or -1 for one per core, got {n_jobs}")

        for chosen in _chosen(name):
            try:
                with _terminated_as_interrupted(), _progress(chosen) as tell:
                    options = {"scale": scale.value, "seed": random_state, "n_jobs": n_jobs, "minutes": minutes}
                    store = run_cells(chosen, out, **options, tell=tell)
            except (KeyboardInterrupt, OSError, BrokenExecutor) as stop:  # the last: a process was killed
                interrupted = isinstance(stop, KeyboardInterrupt)
                again = (
                    f"surecut study run {chosen} --scale {scale.value} --random-state {random_state} --n-jobs {n_jobs} "
                    f"--out {out}"
                )
                reason = "stopped" if interrupted else f"surecut: {stop}"
                typer.echo(f"\n{reason}\nThe finished cells are saved. To go on: {again}", err=True)
                raise typer.Exit(130 if interrupted else 1) from None
            typer.echo(f"{store.folder}/results.csv")


@app.command()
def plot(name: Name, out: Out = FOLDER) -> None:
    """Draw an experiment's figures from its results, as SVG and PNG."""
    with _sentences():
        from surecut.study.figures import save
        from surecut.study.store import Store

        for chosen in _chosen(name):
            store = Store(out / chosen)
            for title, figure in get_experiment(chosen).figures(store.table()).items():
                for path in save(figure, store.folder, title):
                    typer.echo(path)


@app.command()
def report(out: Out = FOLDER) -> None:
    """Write the page of claims and verdicts, as Markdown and HTML."""
    with _sentences():
        from surecut.study.report import write_report

        for path in write_report(out):
            typer.echo(path)


def _chosen(name: str) -> tuple[str, ...]:
    return NAMES if name == ALL else (get_experiment(name).name,)


@contextmanager
def _sentences() -> Iterator[None]:
    """A mistake is told in a sentence, and what is not installed by the extra that has it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("surecut"):
            raise
        typer.echo(f"surecut: the study needs {error.name}: pip install 'surecut[study]'", err=True)
        raise typer.Exit(1) from None
    except (OSError, ValueError) as error:
        typer.echo(f"surecut: {error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """``kill`` stops a run as Ctrl-C does: a shell lets nobody interrupt what it started in the background."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time that is left, and a function that moves it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(name, total=None)

        def tell(done: int, total: int) -> None:
            if bar.tasks[0].total is None:  # what was finished before tells nothing of the time that is left
                bar.reset(task, completed=done, total=total)
            bar.update(task, completed=done)

        yield tell
