"""Parts of the documentation that a command makes: help, what is printed of bands, a saved cut, explorer pages."""

from __future__ import annotations

import contextlib
import re
import shlex
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_all(folder: Path) -> None:
    """Write all parts, under `folder`."""
    (folder / "extra").mkdir(parents=True, exist_ok=True)
    _keep(folder / "command_line.md", help_of_every_command())
    (folder / "bands").mkdir(exist_ok=True)
    for name, printed in printed_of_bands().items():
        _keep(folder / "bands" / f"{name}.txt", printed)
    (folder / "top_k").mkdir(exist_ok=True)
    for name, printed in printed_of_rules().items():
        _keep(folder / "top_k" / f"{name}.txt", printed)
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


COMMANDS_OF_BANDS = {
    "tune": """surecut tune scores.csv --upper "ppv>=0.9" --lower "npv>=0.95" --out bands.json""",
    "gain": """surecut tune scores.csv --gain "no: 0, -10" --gain "ask: -1" --gain "yes: -5, 0" --stable""",
    "confidence": """surecut tune scores.csv --upper "ppv>=0.8" --lower "npv>=0.9" --confidence 0.95""",
    "groups": """surecut tune scores.csv --by site --upper "ppv>=0.9" --condition "ask: share<=0.2\"""",
    "apply": """surecut apply new.csv --cut bands.json --name action --missing ask --out actions.csv""",
    "certify": """surecut certify held_out.csv --cut bands.json""",
    "check": """surecut check new.csv --cut bands.json""",
}
"""What the page on the command line shows of bands; the scores of `new.csv` are blurred."""


def printed_of_bands() -> dict[str, str]:
    """What these commands print of rows of two sites."""
    import numpy as np

    generator = np.random.default_rng(0)

    def write(path: Path, size: int, noise: float = 0) -> None:
        score = 1 / (1 + np.exp(1.5 - 3 * generator.normal(size=size)))
        is_positive = generator.random(size) < score
        score = (1 - noise) * score + noise * generator.random(size)
        rows = zip(is_positive, score, generator.choice(["north", "south"], size), strict=True)
        path.write_text("label,score,site\n" + "".join(f"{int(y)},{p:.6f},{site}\n" for y, p, site in rows))

    def write_files() -> None:
        write(Path("scores.csv"), 1500)
        write(Path("held_out.csv"), 3000)
        write(Path("new.csv"), 3000, noise=0.3)

    return _printed(COMMANDS_OF_BANDS, write_files)


COMMANDS_OF_RULES = {
    "tune": """surecut tune long.csv --top-k 1 --row id --by animal --metric f1 --out rule.json""",
    "costs": """surecut tune long.csv --top-k 1 --row id --by animal --costs costs.csv""",
    "apply": """surecut apply new.csv --cut rule.json --row id --by animal --out predictions.csv""",
    "certify": """surecut certify new.csv --cut rule.json --row id --by animal""",
}
"""What the page on the command line shows of long tables."""


def printed_of_rules() -> dict[str, str]:
    """What these commands print of photographs of animals, one class each."""
    import numpy as np

    generator, animals = np.random.default_rng(0), ["cat", "dog", "fox", "owl"]

    def write(path: Path, size: int) -> None:
        logits = generator.normal(size=(size, 4)) + np.array([1.5, 0.5, 0, -1.5])
        scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        lines = ["id,animal,label,score"]
        for row, own in enumerate(scores):
            true = generator.choice(4, p=own)
            lines += [f"{row},{animal},{int(place == true)},{own[place]:.6f}" for place, animal in enumerate(animals)]
        path.write_text("\n".join(lines) + "\n")

    def write_files() -> None:
        write(Path("long.csv"), 1000)
        write(Path("new.csv"), 1000)
        Path("costs.csv").write_text(
            "true,cat,dog,fox,owl,ask\ncat,0,1,1,1,0.5\ndog,1,0,1,1,0.5\nfox,1,1,0,1,0.5\nowl,5,5,5,0,0.5\n"
        )

    return _printed(COMMANDS_OF_RULES, write_files)


def _printed(commands: dict[str, str], write_files: Callable[[], None]) -> dict[str, str]:
    """What commands print, one after the other, in a folder with some files and in 80 plain columns."""
    from typer.testing import CliRunner

    from surecut.cli.app import app

    runner, found = CliRunner(env={"NO_COLOR": "1"}), {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files()
        for name, command in commands.items():
            printed = runner.invoke(app, shlex.split(command)[1:]).stdout
            lines = [part for line in printed.splitlines() for part in textwrap.wrap(line, 80) or [""]]
            found[name] = "\n".join([f"$ {command}", *lines]) + "\n"
    return found


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
