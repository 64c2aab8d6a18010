"""How results show themselves in a notebook: small pieces of HTML that follow its light or dark style."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

CELL = "padding:.15em .7em;text-align:right"
"""The style of a table's cell."""


def card(title: str, facts: Iterable[tuple[str, str]], more: str = "") -> str:
    """A frame with a title, a table of facts, and `more`, which is HTML already."""
    rows = "".join(
        f'<tr><th style="{CELL};text-align:left;font-weight:normal;opacity:.75">{escape(name)}</th>'
        f'<td style="{CELL};text-align:left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return (
        '<div style="display:inline-block;border:1px solid rgba(128,128,128,.5);border-radius:.5em;padding:.6em .9em">'
        f'<b>{escape(title)}</b><table style="margin:.3em 0;border-collapse:collapse">{rows}</table>{more}</div>'
    )
