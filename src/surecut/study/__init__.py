"""The paper's computational study: each experiment is one file; cells are run → results → figures → report.

An `Experiment` says which cells there are, what one cell measures, how its figures look and what they say about the
paper's claims. A `Store` keeps what was measured. Everything else only combines the two.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surecut.study.experiment import Experiment

NAMES = ("discrete", "logistic-model", "binary-benchmarks", "multilabel-benchmarks", "alternatives", "classes")
"""The experiments, in the order of the paper, then our own. Each is the file of that name in this folder."""

SCALES = ("smoke", "quick", "paper")
"""How much is run: seconds, minutes, the paper's own sizes."""


def get_experiment(name: str) -> Experiment:
    """An experiment by name.

    >>> get_experiment("discrete").section
    '6.1, first experiment'
    """
    if name not in NAMES:
        nearest = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.4)
        hint = f": did you mean {nearest[0]!r}?" if nearest else "."
        raise ValueError(f"unknown experiment {name!r}{hint} The names are {', '.join(NAMES)}")
    experiment: Experiment = importlib.import_module(f"surecut.study.{name.replace('-', '_')}").EXPERIMENT
    return experiment
