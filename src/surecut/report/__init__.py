"""The explorer: one self-contained HTML page on which a person finds the cut.

``summarize(tally)``, or ``summarize_labels(cut, tallies)``, gives plain values, ``to_html(summary)`` the page,
``save_html(summary, path)`` the file.
"""

from __future__ import annotations

from surecut.report.labels import LabelsSummary, summarize_labels
from surecut.report.page import save_html, to_html
from surecut.report.summary import Summary, summarize

__all__ = ["LabelsSummary", "Summary", "save_html", "summarize", "summarize_labels", "to_html"]
