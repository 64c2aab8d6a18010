"""The summary as one HTML file: markup, style, script and data inside it, and nothing fetched."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surecut._files import write_whole

if TYPE_CHECKING:
    from surecut.report.bands import BandsSummary
    from surecut.report.labels import LabelsSummary
    from surecut.report.summary import Summary
    from surecut.report.top_k import TopKSummary


SCRIPTS = {
    "explorer": ("charts.js", "explorer.js"),
    "bands": ("charts.js", "bands.js"),
    "labels": ("table.js", "labels.js"),
    "top_k": ("table.js", "top_k.js"),
}
"""The scripts of each kind of page."""

PARTS = {"top_k": "changes", "labels": "labels", "bands": "zones"}
"""By which part of a summary its kind of page is known."""


def to_html(summary: Summary | LabelsSummary | BandsSummary | TopKSummary) -> str:
    """The page of one column of scores, of bands on it, of many labels, or of k labels a row; text is escaped.

    >>> from surecut import ScoreTally
    >>> from surecut.report import summarize
    >>> page = to_html(summarize(ScoreTally.from_scores([0, 1], [0.1, 0.9]), title="<scores>"))
    >>> "<scores>" in page, "&lt;scores&gt;" in page
    (False, True)
    """
    kind = next((kind for kind, part in PARTS.items() if part in summary), "explorer")
    folder = files("surecut.report")
    style, *scripts = ((folder / name).read_text(encoding="utf-8") for name in ("explorer.css", *SCRIPTS[kind]))
    script = "\n".join(scripts)
    page: str = _environment().get_template(f"{kind}.html").render(summary=summary, style=style, script=script)
    return page


def save_html(summary: Summary | LabelsSummary | BandsSummary | TopKSummary, path: str | os.PathLike[str]) -> None:
    """Write the page: whole or not at all."""
    write_whole(Path(path), to_html(summary).encode())


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ModuleNotFoundError:
        raise ModuleNotFoundError("the explorer page needs jinja2: pip install 'surecut[report]'") from None
    return Environment(
        loader=PackageLoader("surecut.report", package_path="."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
