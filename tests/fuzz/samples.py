"""Rows to tune on: hard scores, labels with ties and of one class, and weights of every size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from oracle import FAMILIES

WEIGHTS = {
    "none": 0.42,
    "whole": 0.15,
    "uniform": 0.17,
    "uneven 1e6": 0.08,
    "equal 1e200": 0.04,
    "equal 1e-200": 0.04,
    "equal 0.1": 0.04,
    "uneven 1e12": 0.06,
}
"""How often rows are weighed how."""

ROWS = ("usual", "one row", "one class")
"""How many rows there are, and of which classes: of each label, or of each group."""


@dataclass(frozen=True)
class Wanted:
    """What a case should be of; what is None is drawn.

    `variant` says which of its path's variants a case takes, as far as it says anything.
    """

    metric: str | None = None
    family: str | None = None
    weighing: str | None = None
    constraints: str | None = None
    rows: str | None = None
    variant: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """What is wanted in the name of a case, empty where all is drawn."""
        plain = {name: value for name, value in vars(self).items() if name != "variant" and value is not None}
        return urlencode(plain | {f"variant.{name}": value for name, value in self.variant.items()})

    @classmethod
    def named(cls, text: str) -> Wanted:
        """What `str` wrote."""
        given = dict(parse_qsl(text))
        variant = {name.removeprefix("variant."): given.pop(name) for name in list(given) if "." in name}
        return cls(**given, variant=variant)


ANY = Wanted()


def one_of(random: np.random.Generator, shares: dict[str, float]) -> str:
    given = np.array(list(shares.values()))
    return list(shares)[int(random.choice(len(given), p=given / given.sum()))]


def draw_size(random: np.random.Generator, most: int = 60, wanted: Wanted = ANY) -> int:
    if wanted.rows is not None:
        return 1 if wanted.rows == "one row" else int(random.integers(3, 25))
    kind = random.random()
    if kind < 0.05:
        return int(random.integers(1, 4))
    if kind < 0.55:
        return int(random.integers(3, 13))
    if kind < 0.98 or most < 60:
        return int(random.integers(5, most + 1))
    return 300


def draw_scores(
    random: np.random.Generator, size: int, without: tuple[str, ...] = (), wanted: Wanted = ANY
) -> tuple[str, Any]:
    """Scores of one family; small samples take few distinct values more often, so that there are ties."""
    family = wanted.family or str(random.choice([name for name in FAMILIES if name not in without]))
    scores = FAMILIES[family](random, max(size, 3))[:size]
    if size > 3 and random.random() < 0.25:
        scores = scores[random.integers(0, max(2, size // 2), size)]
    return family, scores


def draw_labels(random: np.random.Generator, scores: Any, wanted: Wanted = ANY) -> Any:
    """Labels that follow the scores loosely, or hardly; now and then all of one class, or all but one."""
    size = len(scores)
    kind = random.random()
    if kind < 0.05 or wanted.rows == "one class":
        return np.full(size, int(random.integers(2)))
    rank = np.argsort(np.argsort(scores.astype(float), kind="stable")) / size
    slope, base = random.choice([0.0, 0.6, 0.9]), random.choice([0.02, 0.1, 0.3])
    labels = (random.random(size) < base + slope * rank).astype(int)
    if kind < 0.15:
        labels[:] = 0
        labels[int(random.integers(size))] = 1
    if kind > 0.95:
        labels = 1 - labels
    return labels


def draw_weights(
    random: np.random.Generator, size: int, *, zeros: bool = True, wanted: Wanted = ANY
) -> tuple[str, Any]:
    kind = wanted.weighing or one_of(random, WEIGHTS)
    if kind == "none":
        return kind, None
    if kind == "whole":
        weights = random.integers(0 if zeros else 1, 4, size).astype(float)
        if not weights.any():
            weights[0] = 1.0
    elif kind == "uniform":
        weights = 0.001 + random.random(size)
        if random.random() < 0.3:
            weights = random.choice([0.1, 0.2, 0.3, 0.7], size)  # sums that round, and cells that are alike
    elif kind.startswith("equal"):
        weights = np.full(size, float(kind.split()[1]))
    else:
        weights = 10.0 ** random.uniform(0, float(kind.split()[1][2:]), size)
    return kind, weights
