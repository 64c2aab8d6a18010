"""The command line: ``surecut …``. A command loads what it needs when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surecut.study.commands import app as study

app = typer.Typer(
    help="Cut the scores of a classifier where its metric is best: exactly, at any size.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(study, name="study")


def _show_version(asked: bool) -> None:
    if asked:
        from surecut import __version__

        typer.echo(f"surecut {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("surecut-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="Which random split of the data.")] = 0,
) -> None:
    """Show on real data what a tuned cut is worth: six metrics, at 0.5 and at their own cut."""
    from surecut import demo as story

    try:
        story.show(out, seed)
    except (OSError, ValueError) as error:
        typer.secho(f"surecut: {error}", fg="red", err=True)
        raise typer.Exit(1) from None
