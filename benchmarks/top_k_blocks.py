"""Values of k labels a row, block by block: the part of `top_k.py` that measures."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

import interpreters
import stable_cache
import surecut
import top_k_data
import top_k_peers
from surecut import tune_thresholds, tune_top_k
from top_k_data import Cell, Extreme, Real, Scores, Synthetic, Tags

SIZES = (1, 3, 5)
METRICS = top_k_peers.METRICS
MEASURED = ("new", "tuning", "seconds")
"""What a block says of each method: the value on new rows, on the tuning rows, and the CPU time of tuning."""

OURS: dict[str, dict[str, Any]] = {"exact": {}, "shrunken": {"shrinkage": "auto"}, "stable": {"stable": True}}
CUTOFFS, FRANK_WOLFE, BLOCK_COORDINATE = "cutoffs", "Frank–Wolfe", "block coordinate"
ARGMAX, ONE_VS_REST, LARGEST = "argmax", "one-vs-rest", "k largest"
CLASSES = (ARGMAX, *OURS, ONE_VS_REST, CUTOFFS)
BUDGETS = (LARGEST, *OURS, FRANK_WOLFE, BLOCK_COORDINATE)
RIVALS = {
    CUTOFFS: ("optimal-classification-cutoffs", "3.0.0", "numba"),
    FRANK_WOLFE: ("xcolumns", "0.0.2", ""),
    BLOCK_COORDINATE: ("xcolumns", "0.0.2", ""),
}
"""The package of a rival, its version, and what makes it faster."""

TOO_LONG = {("exact", Extreme), ("shrunken", Extreme)}
"""What is left out: it takes minutes."""


@functools.cache
def peer(package: str, version: str, faster: str) -> interpreters.Peer:
    requirements = (f"{package}=={version}", *filter(None, [faster]))
    name = "-".join(filter(None, (package, version, faster)))
    python = interpreters.with_packages(name, *requirements, oldest=12 if faster else 11)
    return interpreters.Peer(python, Path(top_k_peers.__file__))


# --- Classes ---------------------------------------------------------------------------------------------------------


def macro_f1(labels: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    """F1 of classes that are neither there nor predicted is 0."""
    tp = np.bincount(labels[labels == predicted], minlength=classes)
    both = np.bincount(labels, minlength=classes) + np.bincount(predicted, minlength=classes)
    return float((2 * tp / np.maximum(both, 1)).mean())


def predictions(method: str, found: Scores) -> tuple[np.ndarray, np.ndarray, float]:
    """Predicted classes of the tuning rows and of new ones, and the seconds of tuning."""
    classes = found.scores.shape[1]
    start = time.process_time()
    if method == ARGMAX:
        return found.scores.argmax(axis=1), found.new.argmax(axis=1), 0.0
    if method in OURS:
        rule = tune_top_k(found.labels, found.scores, k=1, classes=range(classes), **OURS[method])
        seconds = time.process_time() - start
        return rule.predict(found.scores), rule.predict(found.new), seconds
    if method == ONE_VS_REST:
        indicators = (found.labels[:, None] == np.arange(classes)).astype(np.uint8)
        cut = tune_thresholds(indicators, found.scores, stable=True)
        seconds = time.process_time() - start
        first, second = (margins(scores, cut.thresholds).argmax(axis=1) for scores in (found.scores, found.new))
        return first, second, seconds
    arrays = {"labels": found.labels, "scores": found.scores, "new": found.new}
    answer = peer(*RIVALS[method]).ask(arrays, method="cutoffs")
    return answer["tuning"], answer["new"], float(answer["seconds"])


def margins(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """`PlugInClassifier.decision_function` of each class: with it `OneVsRestClassifier` takes the largest."""
    return np.where(
        np.isposinf(thresholds), -1 / (1 + scores), np.where(np.isneginf(thresholds), scores + 1, scores - thresholds)
    )


def class_block(cell: Cell, repetition: int, method: str) -> np.ndarray:
    """The numbers of `MEASURED`."""

    def measure() -> np.ndarray:
        found = cell.scores(repetition)
        classes = found.scores.shape[1]
        tuning, new, seconds = predictions(method, found)
        return np.array([macro_f1(found.new_labels, new, classes), macro_f1(found.labels, tuning, classes), seconds])

    return stable_cache.kept(class_path(cell, repetition, method), measure)


def class_path(cell: Cell, repetition: int, method: str) -> Path:
    options = repr((OURS.get(method), RIVALS.get(method), cell))
    measuring = (Synthetic, Real, Cell, top_k_data.model, macro_f1, predictions, margins, options)
    return folder(method, *measuring) / f"{top_k_data.file_name(f'{cell.name} {method}')}-{repetition}.npy"


# --- Labels ----------------------------------------------------------------------------------------------------------


def macro_values(truth: Any, positions: np.ndarray) -> dict[str, float]:
    """Macro-F1, precision and recall; a label without positives, or never predicted, has 0."""
    row, place = np.nonzero(positions >= 0)
    column = positions[row, place]
    hit = np.asarray(truth[row, column]).ravel() > 0
    labels = truth.shape[1]
    tp, predicted = np.bincount(column[hit], minlength=labels), np.bincount(column, minlength=labels)
    positives = np.asarray(truth.sum(axis=0)).ravel()
    below = {"f1": (positives + predicted) / 2, "precision": predicted, "recall": positives}
    return {metric: float((tp / np.maximum(below[metric], 0.5)).mean()) for metric in METRICS}


def chosen(method: str, found: Scores, metric: str, k: int, repetition: int) -> tuple[Any, np.ndarray, float]:
    """Predicted columns of the tuning rows (None where a method has none) and of new ones, and the seconds."""
    if method in OURS:
        start = time.process_time()
        rule = tune_top_k(found.labels, found.scores, k=k, metric=metric, average="macro", **OURS[method])
        seconds = time.process_time() - start
        return *(rule.predict(scores, as_="positions") for scores in (found.scores, found.new)), seconds
    if method == LARGEST:
        return *(largest(scores, k) for scores in (found.scores, found.new)), 0.0
    arrays: dict[str, np.ndarray] = {}
    for name, matrix in (("truth", found.labels), ("scores", found.scores), ("new", found.new)):
        if method == FRANK_WOLFE or name == "new":
            arrays |= sent(name, matrix.astype(np.float64))
    task = "frank_wolfe" if method == FRANK_WOLFE else "block_coordinate"
    answer = peer(*RIVALS[method]).ask(arrays, method=task, metric=metric, k=k, seed=repetition)
    return answer.get("tuning"), answer["new"], float(answer["seconds"])


def largest(scores: Any, k: int) -> np.ndarray:
    if not sparse.issparse(scores):
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.full((scores.shape[0], k), -1)
    for row in range(scores.shape[0]):
        part = slice(scores.indptr[row], scores.indptr[row + 1])
        best = scores.indices[part][np.argsort(-scores.data[part], kind="stable")[:k]]
        found[row, : len(best)] = best
    return found


def sent(name: str, matrix: Any) -> dict[str, np.ndarray]:
    if not sparse.issparse(matrix):
        return {name: matrix}
    parts = {part: getattr(matrix, part) for part in ("data", "indices", "indptr")}
    return {f"{name}_{part}": array for part, array in (parts | {"shape": np.array(matrix.shape)}).items()}


def budget_block(problem: Tags | Extreme, repetition: int, method: str) -> np.ndarray:
    """(sizes, metrics, `MEASURED`); sizes that are not smaller than the number of labels are NaN."""

    def measure() -> np.ndarray:
        found = problem.scores(repetition)
        values = np.full((len(SIZES), len(METRICS), len(MEASURED)), np.nan)
        for i, k in enumerate(SIZES):
            for m, metric in enumerate(METRICS):
                tuning, new, seconds = chosen(method, found, metric, k, repetition)
                before = np.nan if tuning is None else macro_values(found.labels, tuning)[metric]
                values[i, m] = macro_values(found.new_labels, new)[metric], before, seconds
        return values

    return stable_cache.kept(budget_path(problem, repetition, method), measure)


def budget_path(problem: Tags | Extreme, repetition: int, method: str) -> Path:
    options = repr((OURS.get(method), RIVALS.get(method), SIZES, METRICS, problem))
    measuring = (Tags, Extreme, macro_values, chosen, largest, options)
    return folder(method, *measuring) / f"{top_k_data.file_name(f'{problem.name} {method}')}-{repetition}.npy"


# --- Times -----------------------------------------------------------------------------------------------------------

TURNS = 3


def class_times(rows: int = 100_000, classes: int = 10) -> np.ndarray:
    """CPU seconds of macro-F1 on true probabilities, of each of `OURS` and of `CUTOFFS`; and their tuning values."""
    population = Synthetic(classes, 5, rows)
    random = np.random.default_rng(0)
    _, (X, y), _ = population.draw(random)
    priors, means = population.population()
    scores = softmax(np.log(priors) + X @ means.T - (means**2).sum(axis=1) / 2, axis=1)
    found = []
    for options in OURS.values():
        tune_top_k(y[:2_000], scores[:2_000], k=1, classes=range(classes), **options)  # compiled
        seconds = []
        for _ in range(TURNS):
            start = time.process_time()
            rule = tune_top_k(y, scores, k=1, classes=range(classes), **options)
            seconds.append(time.process_time() - start)
        found.append((np.median(seconds), macro_f1(y, rule.predict(scores), classes)))
    arrays = {"labels": y, "scores": scores, "new": scores[:1]}
    answer = peer(*RIVALS[CUTOFFS]).ask(arrays, method="cutoffs", turns=TURNS)
    found.append((float(answer["seconds"]), macro_f1(y, answer["tuning"], classes)))
    return np.array(found)


def budget_times(problem: Tags | Extreme) -> np.ndarray:
    """(sizes, metrics, methods): CPU seconds of one repetition, each the median of some turns after a first one."""
    found = problem.scores(0)
    values = np.full((len(SIZES), len(METRICS), len(TIMED)), np.nan)
    for i, k in enumerate(SIZES):
        for m, metric in enumerate(METRICS):
            for j, method in enumerate(TIMED):
                if (method, type(problem)) in TOO_LONG:
                    continue
                first = chosen(method, found, metric, k, 0)[-1]
                turns = TURNS if first < LONG else 1
                values[i, m, j] = np.median([chosen(method, found, metric, k, 0)[-1] for _ in range(turns)])
    return values


TIMED = (*OURS, FRANK_WOLFE, BLOCK_COORDINATE)
LONG = 5.0
"""Seconds from which one turn is enough."""


def times(name: str, measure: Callable[[], np.ndarray]) -> np.ndarray:
    """Times that were measured before with the same code, or new ones."""
    return stable_cache.kept(times_path(name), measure)


def times_path(name: str) -> Path:
    measuring = (Synthetic, Tags, Extreme, class_times, budget_times, chosen, top_k_peers, repr(OURS))
    return stable_cache.folder("top_k", *measuring, measured=sources) / f"times-{top_k_data.file_name(name)}.npy"


# --- Files -----------------------------------------------------------------------------------------------------------


def folder(method: str, *measuring: Any) -> Path:
    """Blocks of rivals do not depend on surecut's sources."""
    if method in OURS:
        return stable_cache.folder("top_k", *measuring, measured=sources)
    if method == ONE_VS_REST:
        return stable_cache.folder("top_k", *measuring, measured=sources_of_thresholds)
    return stable_cache.folder("top_k", *measuring, top_k_peers, measured=no_sources)


@functools.cache
def sources() -> bytes:
    return stable_cache.sources() + (Path(surecut.__file__).parent / "label_objectives.py").read_bytes()


@functools.cache
def sources_of_thresholds() -> bytes:
    """What thresholds of labels depend on, without what k labels a row need besides."""
    parts = ("tuning/labels", "tuning/stable", "tuning/smoothing", "calibration/curves", "core/search", "core/kernels")
    package = Path(surecut.__file__).parent
    return b"".join((package / f"{part}.py").read_bytes() for part in parts)


def no_sources() -> bytes:
    return b""
