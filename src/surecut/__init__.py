"""surecut: cut the scores of a classifier where its metric is best: exactly, at any size."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surecut import losses, metrics, population, theory
    from surecut.candidates import Hull
    from surecut.classifier import PlugInClassifier
    from surecut.confusion import Confusion
    from surecut.constraints import Constraint, InfeasibleError
    from surecut.cut import Cut
    from surecut.frames import apply_frame, tune_frame
    from surecut.metrics import get_metric
    from surecut.sketch import ScoreSketch
    from surecut.tally import ScoreTally
    from surecut.tuning import tune_threshold

__version__ = "0.1.0.dev0"

_HOME = {
    "Confusion": "surecut.confusion",
    "Constraint": "surecut.constraints",
    "Cut": "surecut.cut",
    "Hull": "surecut.candidates",
    "InfeasibleError": "surecut.constraints",
    "PlugInClassifier": "surecut.classifier",
    "ScoreSketch": "surecut.sketch",
    "ScoreTally": "surecut.tally",
    "apply_frame": "surecut.frames",
    "get_metric": "surecut.metrics",
    "tune_frame": "surecut.frames",
    "tune_threshold": "surecut.tuning",
}
_MODULES = ("losses", "metrics", "population", "theory")

__all__ = [
    "Confusion",
    "Constraint",
    "Cut",
    "Hull",
    "InfeasibleError",
    "PlugInClassifier",
    "ScoreSketch",
    "ScoreTally",
    "apply_frame",
    "get_metric",
    "losses",
    "metrics",
    "population",
    "theory",
    "tune_frame",
    "tune_threshold",
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
