"""``surecut study …``: run the paper's experiments, draw their figures, write the report."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from surecut.study import NAMES, SCALES, get_experiment

app = typer.Typer(help="The paper's experiments: run, figures, report.", no_args_is_help=True)

Scale = Enum("Scale", {name: name for name in SCALES}, type=str)  # type: ignore[misc]  # typer wants an Enum
Name = Enum("Name", {name: name for name in (*NAMES, "all")}, type=str)  # type: ignore[misc]  # the same

Experiments = Annotated[Name, typer.Argument(help=f"{', '.join(NAMES)}; or all.", show_default=False)]
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
            typer.echo(f"{name}\n    {experiment.title} (paper: {experiment.section})\n    cells: {cells}")


@app.command()
def run(
    name: Experiments,
    scale: Annotated[
        Scale, typer.Option(metavar="|".join(SCALES), help="Seconds, minutes, or the paper's own sizes.")
    ] = QUICK,
    seed: Annotated[int, typer.Option(min=0, help="Decides every random draw.")] = 0,
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

        for chosen in _chosen(name):
            try:
                with _progress(chosen) as tell:
                    store = run_cells(
                        chosen, out, scale=scale.value, seed=seed, n_jobs=n_jobs, minutes=minutes, tell=tell
                    )
            except KeyboardInterrupt:
                again = f"surecut study run {chosen} --scale {scale.value} --seed {seed} --n-jobs {n_jobs} --out {out}"
                typer.echo(f"\nstopped; the finished cells are saved. To go on: {again}", err=True)
                raise typer.Exit(130) from None
            typer.echo(f"{store.folder}/results.csv")


@app.command()
def plot(name: Experiments, out: Out = FOLDER) -> None:
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


def _chosen(name: Name) -> tuple[str, ...]:
    return NAMES if name.value == "all" else (name.value,)


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
            bar.update(task, completed=done, total=total)

        yield tell
