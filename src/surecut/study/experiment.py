"""What an experiment is: cells, what one cell measures, figures, claims."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Cell = Mapping[str, Any]
"""The parameters of one piece of work: numbers and words. They alone, with the seed, decide what is measured."""

Row = dict[str, Any]
"""One line of results: what was measured, under which name."""


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, or one of ours beside them.

    Attributes
    ----------
    name, title, section
        What it is called here, what it is, and where the paper has it: empty where it has not.
    cells
        From a scale to the cells that it runs.
    run
        From a cell and a source of randomness to rows of results.
    figures
        From the table of results to pictures by name.
    captions
        What each picture shows, by the same names, in the order of the paper.
    claims
        From the table of results to what the paper says, and whether it is so.
    paired
        Parameters that do not change the random draws: what is compared under them sees the same data.
    """

    name: str
    title: str
    section: str
    cells: Callable[[str], list[Cell]]
    run: Callable[[Cell, np.random.Generator], list[Row]]
    figures: Callable[[pd.DataFrame], dict[str, Figure]]
    claims: Callable[[pd.DataFrame], list[Claim]]
    captions: Mapping[str, str] = field(default_factory=dict)
    paired: tuple[str, ...] = field(default=())

    def generator(self, cell: Cell, seed: int) -> np.random.Generator:
        """The randomness of a cell: the same wherever and in whichever order cells are run."""
        drawn = {name: value for name, value in cell.items() if name not in self.paired}
        key = json.dumps([self.name, drawn], sort_keys=True)
        words = np.frombuffer(hashlib.sha256(key.encode()).digest(), dtype=np.uint32)
        return np.random.default_rng(np.random.SeedSequence([seed, *words.tolist()]))


def cheap_first(cells: list[Cell]) -> list[Cell]:
    """Cells of n rows and several repetitions in the order of n times the repetition.

    A run that is stopped then has many repetitions of small training sets, and some of large ones.
    """
    return sorted(cells, key=lambda cell: cell["n"] * (cell["repetition"] + 1))


class Finding(Enum):
    """What our measurements say about a claim."""

    HOLDS = "holds"
    DOES_NOT = "does not hold"
    NOT_TESTABLE = "not testable"

    @classmethod
    def of(cls, true: bool) -> Finding:
        return cls.HOLDS if true else cls.DOES_NOT


@dataclass(frozen=True)
class Claim:
    """A statement of the paper's Section 6 beside what was measured.

    Attributes
    ----------
    text
        What the paper says.
    verdict
        Whether it is so here.
    evidence
        The numbers, each with its standard error.
    rule
        When the claim is said to hold.
    remark
        Where we differ, or where a convention decides: why.
    first_rule
        Where the rule was changed after the numbers had been seen: what it was before, and what it says.
    """

    text: str
    verdict: Finding
    evidence: str
    rule: str
    remark: str = ""
    first_rule: str = ""


REGRETS = {"loss_regret": "ℓ-regret", "f1_regret": "F-regret", "am_regret": "AM-regret"}
"""Regrets as columns of results and as words."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error.

    >>> print(Estimate.of([0.25, 0.5, 0.75]))
    0.50 ± 0.14
    """

    mean: float
    error: float

    @classmethod
    def of(cls, values: Any) -> Estimate:
        """Of independent values."""
        column = np.asarray(values, dtype=float)
        column = column[~np.isnan(column)]
        if len(column) < 2:
            return cls(float(column.mean()) if len(column) else float("nan"), float("nan"))
        return cls(float(column.mean()), float(column.std(ddof=1) / np.sqrt(len(column))))

    def is_above(self, level: float) -> bool:
        """Whether the mean is above a level by more than two standard errors."""
        return self.mean - 2 * self.error > level

    def is_below(self, level: float) -> bool:
        return self.mean + 2 * self.error < level

    def __str__(self) -> str:
        if not self.error > 0:
            return f"{self.mean:.3g}"
        digits = max(0, 1 - int(np.floor(np.log10(self.error))))
        return f"{self.mean:.{digits}f} ± {self.error:.{digits}f}"


def power(n: Any, means: Any) -> float:
    """The p with which means fall like nᵖ, fitted to the upper half of the sizes.

    >>> round(power([10, 100, 1000], [3.0, 0.3, 0.03]), 3)
    -1.0
    """
    n, means = np.asarray(n, dtype=float), np.asarray(means, dtype=float)
    upper = slice(min(len(n) // 2, len(n) - 2), None)
    return float(np.polyfit(np.log(n[upper]), np.log(means[upper]), 1)[0])
