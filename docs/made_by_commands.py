"""Parts of the documentation that a command makes: the help of every command, a saved cut, explorer pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def write_all(folder: Path) -> None:
    """Write all parts, under `folder`."""
    (folder / "extra").mkdir(parents=True, exist_ok=True)
    _keep(folder / "command_line.md", help_of_every_command())
    write_cut(folder / "cut.json")
    write_explorer(folder / "extra" / "explorer_page.html")
    write_bands_page(folder / "extra" / "bands_page.html")


def help_of_every_command() -> str:
    """What `--help` prints, command by command, in 80 plain columns."""
    import typer
    from typer.testing import CliRunner

    from surecut.cli.app import app

    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
    pieces = []
    for name in names_of_commands(typer.main.get_command(app)):
        command = f"surecut {name}".strip()
        text = runner.invoke(app, [*name.split(), "--help"], prog_name="surecut").output
        text = "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).strip().splitlines())
        pieces.append(f"## `{command}`\n\n```text\n{text}\n```\n")
    return "\n".join(pieces)


def names_of_commands(command: Any, prefix: str = "") -> list[str]:
    """A command and all those below it."""
    names = [prefix]
    for name, below in getattr(command, "commands", {}).items():
        names += names_of_commands(below, f"{prefix} {name}".strip())
    return names


def write_cut(path: Path) -> None:
    """The cut of the page on deploying."""
    from surecut import tune_threshold

    tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75], metric="f1").save(path)


def write_explorer(path: Path) -> None:
    """The explorer on the tuning rows of `surecut demo`."""
    from surecut.cli.demo import measure
    from surecut.report import save_html, summarize

    save_html(summarize(measure().tuning, title="Which digits are an 8?"), path)


def write_bands_page(path: Path) -> None:
    """The page of bands, on two measurements of tumours: which are benign, which malignant, and which need a look?"""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from surecut import ScoreTally, tune_bands
    from surecut.report import save_html, summarize_bands

    data = load_breast_cancer()
    is_malignant = data.target == 0
    model = make_pipeline(StandardScaler(), LogisticRegression())
    scores = cross_val_predict(model, data.data[:, :2], is_malignant, method="predict_proba")[:, 1]
    gains = {"benign": (0, -10), "look": -1, "malignant": (-5, 0)}
    bands = tune_bands(is_malignant, scores, gains=gains, zones=tuple(gains), lower="npv>=0.95")
    tally = ScoreTally.from_scores(is_malignant, scores)
    save_html(summarize_bands(bands, tally, title="Which tumours are malignant?"), path)


def _keep(path: Path, text: str) -> None:
    """Write only what has changed, so that a second build is quick."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
