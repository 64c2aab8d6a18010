"""surecut: cut the scores of a classifier where its metric is best: exactly, at any size, with a guarantee."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surecut._version import __version__ as __version__

if TYPE_CHECKING:
    from surecut import datasets, losses, metrics, plots, population, report, theory
    from surecut._warnings import AbsentPositiveWarning, ClassOrderWarning, MissingRowsWarning, UnknownLabelWarning
    from surecut.certificates.certificate import Certificate
    from surecut.certificates.certifying import certify
    from surecut.certificates.drift import DriftReport, check_drift
    from surecut.certificates.top_k_certificate import TopKCertificate
    from surecut.certificates.top_k_limits import LabelLimits
    from surecut.certificates.zone_certificate import BandsCertificate, GroupsCertificate, ZoneLimit
    from surecut.certificates.zone_drift import BandsDrift
    from surecut.classifier.plug_in import PlugInClassifier
    from surecut.confusion import Confusion
    from surecut.constraints import Constraint, InfeasibleError
    from surecut.core.candidates import Hull
    from surecut.core.search import SourceChangedError
    from surecut.core.tally import ScoreTally
    from surecut.decisions.bands import Bands
    from surecut.decisions.cut import Cut
    from surecut.decisions.grouped_bands import GroupedBands
    from surecut.decisions.multilabel import MultilabelCut
    from surecut.decisions.stability import LabelStability, Stability
    from surecut.decisions.top_k import TopK
    from surecut.linear.surrogate import LinearSurrogate
    from surecut.metrics import get_metric
    from surecut.positive_class import PositiveClassWarning
    from surecut.sources.sketch import ScoreSketch, SketchCut
    from surecut.tuning.bands import tune_bands
    from surecut.tuning.bands_frame import tune_bands_frame
    from surecut.tuning.frame import apply_frame, tally_frame, tune_frame
    from surecut.tuning.labels import tune_expected, tune_thresholds
    from surecut.tuning.threshold import tune_threshold
    from surecut.tuning.top_k import tune_top_k
    from surecut.tuning.top_k_frame import tune_top_k_frame

_HOME = {
    "Bands": "surecut.decisions.bands",
    "BandsCertificate": "surecut.certificates.zone_certificate",
    "BandsDrift": "surecut.certificates.zone_drift",
    "Certificate": "surecut.certificates.certificate",
    "Confusion": "surecut.confusion",
    "Constraint": "surecut.constraints",
    "Cut": "surecut.decisions.cut",
    "DriftReport": "surecut.certificates.drift",
    "GroupedBands": "surecut.decisions.grouped_bands",
    "GroupsCertificate": "surecut.certificates.zone_certificate",
    "Hull": "surecut.core.candidates",
    "InfeasibleError": "surecut.constraints",
    "LabelLimits": "surecut.certificates.top_k_limits",
    "LabelStability": "surecut.decisions.stability",
    "LinearSurrogate": "surecut.linear.surrogate",
    "MultilabelCut": "surecut.decisions.multilabel",
    "PlugInClassifier": "surecut.classifier.plug_in",
    "PositiveClassWarning": "surecut.positive_class",
    "AbsentPositiveWarning": "surecut._warnings",
    "ClassOrderWarning": "surecut._warnings",
    "MissingRowsWarning": "surecut._warnings",
    "UnknownLabelWarning": "surecut._warnings",
    "ZoneLimit": "surecut.certificates.zone_certificate",
    "ScoreSketch": "surecut.sources.sketch",
    "SketchCut": "surecut.sources.sketch",
    "SourceChangedError": "surecut.core.search",
    "ScoreTally": "surecut.core.tally",
    "Stability": "surecut.decisions.stability",
    "TopK": "surecut.decisions.top_k",
    "TopKCertificate": "surecut.certificates.top_k_certificate",
    "apply_frame": "surecut.tuning.frame",
    "certify": "surecut.certificates.certifying",
    "check_drift": "surecut.certificates.drift",
    "get_metric": "surecut.metrics",
    "tally_frame": "surecut.tuning.frame",
    "tune_bands": "surecut.tuning.bands",
    "tune_bands_frame": "surecut.tuning.bands_frame",
    "tune_expected": "surecut.tuning.labels",
    "tune_frame": "surecut.tuning.frame",
    "tune_threshold": "surecut.tuning.threshold",
    "tune_thresholds": "surecut.tuning.labels",
    "tune_top_k": "surecut.tuning.top_k",
    "tune_top_k_frame": "surecut.tuning.top_k_frame",
}
_MODULES = ("datasets", "losses", "metrics", "plots", "population", "report", "theory")

__all__ = [
    "AbsentPositiveWarning",
    "Bands",
    "BandsCertificate",
    "BandsDrift",
    "Certificate",
    "ClassOrderWarning",
    "Confusion",
    "Constraint",
    "Cut",
    "DriftReport",
    "GroupedBands",
    "GroupsCertificate",
    "Hull",
    "InfeasibleError",
    "LabelLimits",
    "LabelStability",
    "LinearSurrogate",
    "MissingRowsWarning",
    "MultilabelCut",
    "PlugInClassifier",
    "PositiveClassWarning",
    "ScoreSketch",
    "ScoreTally",
    "SketchCut",
    "SourceChangedError",
    "Stability",
    "TopK",
    "TopKCertificate",
    "UnknownLabelWarning",
    "ZoneLimit",
    "apply_frame",
    "certify",
    "check_drift",
    "datasets",
    "get_metric",
    "losses",
    "metrics",
    "plots",
    "population",
    "report",
    "tally_frame",
    "theory",
    "tune_bands",
    "tune_bands_frame",
    "tune_expected",
    "tune_frame",
    "tune_threshold",
    "tune_thresholds",
    "tune_top_k",
    "tune_top_k_frame",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that ``import surecut`` stays quick."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"surecut.{name}")
    raise AttributeError(f"module 'surecut' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
