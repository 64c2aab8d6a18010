"""Pictures of decisions, after scikit-learn's displays: made by ``from_…``, drawn by ``plot``, never shown by us.

A display holds the numbers; `plot(ax=…)` draws them, keeps the artists as attributes that end in an underscore, and
returns the display.
"""

from __future__ import annotations

from surecut.plots.bands import BandsDisplay
from surecut.plots.cuts import CertificateDisplay, MetricThresholdDisplay
from surecut.plots.multilabel import MultilabelDisplay
from surecut.plots.top_k import TopKDisplay

__all__ = ["BandsDisplay", "CertificateDisplay", "MetricThresholdDisplay", "MultilabelDisplay", "TopKDisplay"]
