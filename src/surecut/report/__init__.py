"""The explorer: one self-contained HTML page on which a person finds the cut.

``summarize(tally)``, ``summarize_bands(bands, tally)``, ``summarize_labels(cut, tallies)`` or ``summarize_top_k(rule)``
gives plain values, ``to_html(summary)`` the page, ``save_html(summary, path)`` the file.
"""

from __future__ import annotations

from surecut.report.bands import BandsSummary, summarize_bands
from surecut.report.labels import LabelsSummary, summarize_labels
from surecut.report.page import save_html, to_html
from surecut.report.summary import Summary, summarize
from surecut.report.top_k import TopKSummary, summarize_top_k

__all__ = [
    "BandsSummary",
    "LabelsSummary",
    "Summary",
    "TopKSummary",
    "save_html",
    "summarize",
    "summarize_bands",
    "summarize_labels",
    "summarize_top_k",
    "to_html",
]
