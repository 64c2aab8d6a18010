"""What commands print: tables for people, plain text in a pipe, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from surecut.metrics import CATALOGUE, NoTheoremError

if TYPE_CHECKING:
    from surecut.cut import Cut

WIDE = 10_000
"""Columns of a pipe: nothing is wrapped or cut off where a program reads."""


def console() -> Console:
    """Standard output: as wide as the terminal, or as wide as it takes."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=WIDE, no_color=True)


@contextmanager
def working(on: str) -> Iterator[None]:
    """Say on standard error what is being done, if a person looks."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield
        return
    with errors.status(on):
        yield


def as_json(document: Any) -> None:
    """Print a document as JSON, one field a line."""
    console().print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False), markup=False, soft_wrap=True)


def line(text: str, style: str | None = None) -> None:
    """Print a sentence; markup in it is text."""
    console().print(text, markup=False, style=style)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print aligned columns without a frame; those in `left` hold text, the others numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, heading in enumerate(headings):
        justify: Any = "left" if position in left else "right"
        made.add_column(heading, justify=justify, overflow="fold")
    for row in rows:
        made.add_row(*(cell.replace("[", "\\[") for cell in row))
    out = console()
    if out.is_terminal:
        out.print(made)
        return
    with out.capture() as captured:
        out.print(made)
    for text in captured.get().splitlines():
        line(text.rstrip())  # a table pads its last column


def share(part: float, whole: float) -> str:
    """A share as text; a dash where it is undefined."""
    return f"{part / whole:.1%}" if whole else "–"


def number(value: float, digits: int = 4) -> str:
    """A number for people."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}e}"
    return f"{value:.{digits}f}"


def threshold(value: float) -> str:
    """A threshold for people, with as many digits as help."""
    return number(value) if math.isinf(value) else f"{value:.6g}"


def cut_cells(cut: Cut) -> list[str]:
    """Metric, threshold, value, precision, recall and share flagged of a cut, on its tuning rows."""
    confusion = cut.confusion if not cut.prior_given else cut.confusion.at_prior(cut.prior)
    return [
        cut.metric.name,
        threshold(cut.threshold),
        number(cut.value),
        share(confusion.tp, confusion.predicted_positives),
        share(confusion.tp, confusion.positives),
        share(confusion.predicted_positives, confusion.total),
    ]


CUT_HEADINGS = ("metric", "threshold", "value", "precision", "recall", "flagged")


def catalogue(prior: float, optimum: float) -> list[dict[str, Any]]:
    """The metrics by name, with their formula and the paper's constants at a prior and a best value."""
    listed = []
    for name, make in CATALOGUE.items():
        metric = make()
        row: dict[str, Any] = {"name": name, "formula": (type(metric).__doc__ or "").strip().splitlines()[0]}
        try:
            constants = metric.constants(prior, optimum)
        except NoTheoremError:
            row |= {"gamma": None, "C": None, "alpha": None, "D": None}
        else:
            row |= {"gamma": constants.gamma, "C": constants.C, "alpha": constants.alpha, "D": constants.D}
        listed.append(row)
    return listed
