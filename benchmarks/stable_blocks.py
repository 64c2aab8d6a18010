"""Regrets on known populations, block by block: the part of `stable.py` that measures."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import stable_cache
import stable_populations
from stable_cache import SHRUNKEN, STABLE
from stable_populations import PAIRS, known, metrics
from surecut import Confusion, tune_threshold
from surecut.metrics import Metric

PRIORS, SIZES, FEWEST = (0.5, 0.1, 0.01), (60, 200, 1_000, 5_000, 50_000), 3
RESAMPLES = 60


class Setting(NamedTuple):
    """A population, the share of positives, and the number of rows."""

    name: str
    prior: float
    rows: int

    def priors_are_all(self) -> bool:
        return not self.name.startswith("two")


SETTINGS = [
    setting
    for name in PAIRS
    for prior in PRIORS
    for rows in SIZES
    if rows * prior >= FEWEST
    for setting in [Setting(name, prior, rows)]
    if prior == PRIORS[0] or setting.priors_are_all()
]

Cuts = Callable[[np.ndarray, np.ndarray, list[Metric], np.random.Generator], list[float]]
"""From labels, scores and metrics to thresholds; resamples are drawn by the generator."""


def tuned(**options: object) -> Cuts:
    def cuts(labels: np.ndarray, scores: np.ndarray, asked: list[Metric], _: np.random.Generator) -> list[float]:
        return [cut.threshold for cut in tune_threshold(labels, scores, metric=asked, **options).values()]

    return cuts


def resampled_mean(
    labels: np.ndarray, scores: np.ndarray, asked: list[Metric], random: np.random.Generator
) -> list[float]:
    """The arithmetic mean of the best thresholds of bootstrap resamples.

    A threshold lies in the middle between two neighbouring scores of its resample; to accept nothing is the float
    above the sample's largest score, to accept all is its smallest. Resamples of one class are left out.
    """
    values, place = np.unique(-scores, return_inverse=True)
    values, rows = -values, random.integers(0, len(labels), (RESAMPLES, len(labels)))
    kept = labels[rows].any(axis=1) & ~labels[rows].all(axis=1)
    if not kept.any():  # next to never: one row of a class, absent from all resamples
        rows, kept = np.arange(len(labels))[None], np.ones(1, dtype=bool)
    rows = rows[kept]
    cells = (place[rows] + len(values) * np.arange(len(rows))[:, None]).ravel()
    shape, size = (len(rows), len(values)), len(rows) * len(values)
    drawn = np.bincount(cells, minlength=size).reshape(shape)
    hits = np.bincount(cells[labels[rows].ravel()], minlength=size).reshape(shape)
    nothing = np.zeros((len(rows), 1), dtype=np.int64)
    tp = np.hstack((nothing, hits.cumsum(axis=1)))
    fp = np.hstack((nothing, (drawn - hits).cumsum(axis=1)))
    present = np.hstack((np.ones_like(nothing), drawn)) > 0
    confusion = Confusion(tp, fp, tp[:, -1:] - tp, fp[:, -1:] - fp)
    edges = np.concatenate(([np.nextafter(values[0], np.inf)], values))
    means = []
    for metric in asked:
        value = np.where(present, np.nan_to_num(metric.evaluate(confusion), nan=0.0), -np.inf)
        best = value.argmax(axis=1)  # the highest threshold among equal values
        lower = present & (np.arange(len(edges)) > best[:, None])
        below = np.where(lower.any(axis=1), lower.argmax(axis=1), len(edges) - 1)
        middle = (edges[best] + edges[below]) / 2
        means.append(float(np.where(best == 0, edges[0], np.where(lower.any(axis=1), middle, edges[-1])).mean()))
    return means


class Column(NamedTuple):
    """A way to cut, the largest number of rows that it is tried on, and on how many blocks at most."""

    cuts: Cuts
    rows: int = SIZES[-1]
    blocks: int = sys.maxsize


COLUMNS = {"exact": Column(tuned()), "stable": Column(tuned(**STABLE))}
MEAN, AUTO = f"mean of {RESAMPLES}", 'shrinkage="auto"'
REFERENCES = {MEAN: Column(resampled_mean, rows=5_000), AUTO: Column(tuned(**SHRUNKEN), rows=1_000, blocks=1)}
ALL = COLUMNS | REFERENCES


def path(setting: Setting, number: int, draws: int, column: str) -> Path:
    """The file of a block."""
    name = "".join(c if c.isalnum() else "_" for c in f"{setting.name} {setting.prior} {setting.rows} {column}")
    here = stable_cache.folder("stable", stable_populations, sys.modules[__name__])
    return here / f"{name}_{number}_{draws}.npy"


def block(setting: Setting, number: int, draws: int, column: str) -> np.ndarray:
    """(draws, metrics): regrets. The draws are the same for every column."""
    return stable_cache.kept(path(setting, number, draws, column), lambda: measure(setting, number, draws, column))


def measure(setting: Setting, number: int, draws: int, column: str) -> np.ndarray:
    name, prior, rows = setting
    seed = [zlib.crc32(name.encode()), round(1000 * prior), rows, number]
    random, resampling = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
    (population, best), asked = known(name, prior), metrics(prior)
    found = np.empty((draws, len(asked)))
    for draw in range(draws):
        labels, scores = population.draw(random, rows)
        thresholds = ALL[column].cuts(labels, scores, asked, resampling)
        values = [population.value(m, t) for m, t in zip(asked, thresholds, strict=True)]
        found[draw] = np.array(best) - np.nan_to_num(values, nan=0.0)
    if not found.min() >= -1e-9:
        raise ValueError(f"{setting}, {column}: a regret of {found.min()}: the optimum is not the best")
    return found
