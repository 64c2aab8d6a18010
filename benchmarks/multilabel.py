"""Macro-F1 thresholds of many labels: surecut beside its peers, in time, memory and the value on new rows.

``python benchmarks/multilabel.py`` writes ``results/multilabel.md``; ``--quick`` is for trying it out, and writes
nothing. A peer that is not installed has no row, and the table says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import f1_score, precision_recall_curve

from surecut import tune_thresholds
from tuning import compiled, duration, load, table, times, version_of

RESULTS = Path(__file__).parent / "results" / "multilabel.md"
VERSIONS = ("surecut", "numpy", "scipy", "numba", "scikit-learn", "xcolumns", "libmultilabel")

Predict = Callable[[Any], Any]
"""From scores to predictions, of all labels."""


# --- Data ------------------------------------------------------------------------------------------------------------


def dense(rows: int, labels: int, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all frequencies with calibrated probabilities as scores, row after row in memory."""
    random = np.random.default_rng(seed)
    scores = np.empty((rows, labels), dtype=dtype)
    truth = np.empty((rows, labels), dtype=np.uint8)
    shift = random.uniform(-6, -1, size=labels)
    for start in range(0, rows, 10_000):
        block = slice(start, start + 10_000)
        probability = expit(2 * random.normal(size=scores[block].shape) + shift)
        scores[block], truth[block] = probability, random.random(probability.shape) < probability
    return truth, scores


def top_labels(rows: int, labels: int, stored: int = 100, seed: int = 1) -> tuple[Any, Any]:
    """Sparse scores, as extreme classifiers give them: of each row its top hundred labels, few labels in most rows."""
    random = np.random.default_rng(seed)
    column = np.minimum((labels * random.random((rows, stored)) ** 3).astype(np.int64), labels - 1)
    row = np.repeat(np.arange(rows), stored)
    scores = sparse.csr_matrix((random.beta(1, 8, size=row.size), (row, column.ravel())), shape=(rows, labels))
    scores.sum_duplicates()
    scores.data = np.minimum(scores.data, 1.0)
    truth = scores.copy()
    truth.data = (random.random(truth.nnz) < truth.data).astype(np.uint8)
    truth.eliminate_zeros()
    return truth, scores


# --- Competitors -----------------------------------------------------------------------------------------------------


def surecut_macro(truth: Any, scores: Any) -> Predict:
    return tune_thresholds(truth, scores).predict


def surecut_auto(truth: Any, scores: Any) -> Predict:
    return tune_thresholds(truth, scores, shrinkage="auto").predict


def curve_loop(truth: Any, scores: Any) -> Predict:
    """What people write: a precision-recall curve per label, and the best point of it."""
    thresholds = np.empty(truth.shape[1])
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")
        for label in range(truth.shape[1]):
            column = column_of(truth, label), column_of(scores, label)
            precision, recall, candidates = precision_recall_curve(*column)
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))[:-1]
            thresholds[label] = candidates[f1.argmax()]
    return lambda others: others >= thresholds


def frank_wolfe(truth: Any, scores: Any) -> Predict:
    """xCOLUMNs' randomised classifier, without a limit on the labels of a row. Each row draws one of its classifiers.

    Its own shorthand for macro-F1 is broken in 0.0.2, the function behind it is not.
    """
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    same_type = truth.astype(scores.dtype)
    found = find_classifier_using_fw(same_type, scores, macro_f1_score_on_conf_matrix, k=0, skip_tn=True, seed=0)
    shares = found.p.astype(np.float64) / found.p.sum(dtype=np.float64)

    def predict(others: np.ndarray) -> np.ndarray:
        drawn = np.random.default_rng(0).choice(len(shares), size=len(others), p=shares)
        return others * found.a[drawn] + found.b[drawn] >= 0

    return predict


def micro_plus_macro(truth: Any, scores: Any) -> Predict:
    """LibMultiLabel's rule, on scores that are there: of each of three folds the threshold with the best sum of macro-
    and micro-F1, and their mean. The library has the rule inside its training, which is made to return the scores."""
    from libmultilabel.linear import linear

    thresholds = np.empty(truth.shape[1])
    counted = {"tp": 0, "fp": 0, "fn": 0, "labels": 0}
    np.random.seed(0)  # noqa: NPY002 - the library draws its folds from there
    with mock.patch.object(linear, "_do_train", return_value=np.asmatrix([[1.0]])):
        positives = np.asarray(truth.sum(axis=0)).ravel()
        for label in np.argsort(-positives, kind="stable"):
            signs = 2 * column_of(truth, label).astype(np.int64) - 1
            column = np.asmatrix(column_of(scores, label).astype(np.float64)).T
            _, threshold, counted = linear._micromacro_one_label(signs, column, "", counted)
            thresholds[label] = -threshold
    return lambda others: others >= thresholds


def column_of(matrix: Any, label: int) -> np.ndarray:
    return matrix[:, [label]].toarray().ravel() if sparse.issparse(matrix) else matrix[:, label]


@dataclass(frozen=True)
class Competitor:
    """Who tunes, and on how many labels it is timed, if not on all: its time is then multiplied."""

    name: str
    tune: Callable[[Any, Any], Predict]
    labels: int | None = None
    sparse_labels: int | None = None
    package: str = "surecut"

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


SURECUT = Competitor("surecut", surecut_macro)
AUTO = Competitor('surecut, `shrinkage="auto"`', surecut_auto)
LOOP = Competitor("loop of sklearn `precision_recall_curve` + argmax", curve_loop, 40, 20, "sklearn")
FRANK_WOLFE = Competitor("xCOLUMNs Frank–Wolfe", frank_wolfe, 20, 500, "xcolumns")
MICRO_PLUS_MACRO = Competitor("LibMultiLabel micro + macro", micro_plus_macro, 2, 2, "libmultilabel")
PEERS = (LOOP, FRANK_WOLFE, MICRO_PLUS_MACRO)


# --- Measuring -------------------------------------------------------------------------------------------------------


def timed(work: Callable[[], Any], turns: int = 1) -> tuple[float, Any]:
    """The median of some turns, and the last result."""
    seconds = []
    for _ in range(turns):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), result


def peak_memory(work: Callable[[], Any]) -> int:
    """Bytes that a call has allocated at once, NumPy's too."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@dataclass
class Column:
    """One matrix: what each competitor takes for it, and the F1 it reaches on these rows, on labels that all have."""

    name: str
    seconds: dict[str, float] = field(default_factory=dict)
    f1: dict[str, float] = field(default_factory=dict)
    memory: float = 0.0

    def cell(self, one: Competitor, all_labels: int, labels: int | None) -> str:
        seconds, ours = self.seconds[one.name], self.seconds[SURECUT.name]
        mark = "¹" if labels is not None and labels < all_labels else ""
        return f"{duration(seconds)}{mark} ({times(seconds / ours)}), {self.f1[one.name]:.4f}"


def speed(rows: int, labels: int) -> list[str]:
    """Dense matrices of two kinds of floats."""
    columns = []
    for dtype in ("float64", "float32"):
        truth, scores = dense(rows, labels, dtype)
        compiled(lambda truth=truth, scores=scores: tune_thresholds(truth[:, :64], scores[:, :64]))
        column = Column(dtype)
        column.seconds[SURECUT.name], predict = timed(lambda t=truth, s=scores: surecut_macro(t, s), 3)
        column.memory = peak_memory(lambda t=truth, s=scores: surecut_macro(t, s)) / scores.nbytes
        column.f1[SURECUT.name] = macro_f1(truth[:, :2], predict(scores)[:, :2])
        for peer in installed(PEERS):
            part = truth[:, : peer.labels], scores[:, : peer.labels]
            seconds, predict = timed(lambda p=peer, part=part: p.tune(*part))
            column.seconds[peer.name] = seconds * labels / part[0].shape[1]
            column.f1[peer.name] = macro_f1(part[0][:, :2], predict(part[1])[:, :2])
        columns.append(column)
        say(f"{dtype}: {column.seconds}, memory {column.memory:.3f}")
        del truth, scores, predict, part
    body = [
        [one.name, *(column.cell(one, labels, one.labels) for column in columns)]
        for one in (SURECUT, *installed(PEERS))
    ]
    loop = [column.seconds[LOOP.name] / column.seconds[SURECUT.name] for column in columns]
    return [
        f"## {rows:,} × {labels:,} dense scores",
        table(["time (ratio to surecut), macro-F1² on these rows", *(column.name for column in columns)], body),
        "¹ measured on some labels "
        f"({', '.join(f'{peer.name}: {peer.labels}' for peer in installed(PEERS))}), multiplied. ² of the first two "
        "labels, which all have tuned; xCOLUMNs' and LibMultiLabel's rules weigh all of their labels together.",
        table(
            ["target", "float64", "float32", "verdict"],
            [
                ["at least 30× faster than the loop", *map(times, loop), verdict(min(loop) >= 30)],
                [
                    "memory of the search below 0.1 of the scores",
                    *(f"{column.memory:.3f}" for column in columns),
                    verdict(max(column.memory for column in columns) < 0.1),
                ],
            ],
        ),
    ]


def many_labels(rows: int, labels: int) -> list[str]:
    """A sparse matrix with about as many labels as rows."""
    truth, scores = top_labels(rows, labels)
    seconds, cut = timed(lambda: tune_thresholds(truth, scores), 3)
    columns = truth.tocsc(), scores.tocsc()
    body = [[SURECUT.name, duration(seconds), "1×"]]
    for peer in installed(PEERS):
        some = np.linspace(0, labels - 1, min(labels, peer.sparse_labels or labels)).astype(np.int64)
        part = [matrix[:, some].tocsr() for matrix in columns]
        taken, _ = timed(lambda p=peer, part=part: p.tune(*part))
        taken *= labels / len(some)
        body.append([f"{peer.name} ({len(some)} labels, multiplied)", duration(taken), times(taken / seconds)])
        say(f"sparse: {peer.name} {taken:.1f} s against {seconds:.2f} s")
    return [
        f"## {rows:,} rows × {labels:,} labels, {scores.nnz:,} sparse scores",
        table(["tuner", "time", "ratio to surecut"], body),
        f"{truth.nnz / labels:.0f} positives a label in the mean; {len(cut.shared):,} labels without a positive took "
        "the shared threshold. The loop and LibMultiLabel get each label's column with zeros for absent scores.",
    ]


def quality(rows: int, labels: int, repetitions: int) -> list[str]:
    """Test macro-F1 with calibrated scores, and with their squares, which order rows alike but are no probabilities."""
    test_rows = 20_000
    scales = {"calibrated": 1, "σ(f)²": 2}
    contenders = (SURECUT, AUTO, *installed(PEERS))
    found = {(one.name, scale): [] for one in contenders for scale in scales}
    for repetition in range(repetitions):
        truth, scores = dense(rows + test_rows, labels, seed=10 + repetition)
        for scale, power in scales.items():
            powered = scores**power
            for one in contenders:
                predict = one.tune(truth[:rows], powered[:rows])
                found[one.name, scale].append(macro_f1(truth[rows:], predict(powered[rows:])))
        say(f"test value, {rows} rows: repetition {repetition + 1} of {repetitions}")

    def cell(one: Competitor, scale: str) -> str:
        values = np.array(found[one.name, scale])
        if one is AUTO:
            return f"{values.mean():.4f}"
        less = np.array(found[AUTO.name, scale]) - values
        return f"{values.mean():.4f} ({less.mean():+.4f} ± {less.std(ddof=1) / repetitions**0.5:.4f})"

    def is_beaten(peer: Competitor, scale: str) -> bool:
        less = np.array(found[AUTO.name, scale]) - np.array(found[peer.name, scale])
        return bool(less.mean() < -2 * less.std(ddof=1) / repetitions**0.5)

    lost = [f"{peer.name} ({scale})" for peer in installed(PEERS) for scale in scales if is_beaten(peer, scale)]
    return [
        f"## Macro-F1 on {test_rows:,} new rows, after tuning on {rows:,} rows of {labels} labels",
        table(["tuner", *scales], [[one.name, *(cell(one, scale) for scale in scales)] for one in contenders]),
        f'Means of {repetitions} repetitions; in brackets what `shrinkage="auto"` is better by, with its paired '
        f"standard error. Peers above it by two standard errors: {', '.join(lost) or 'none'}.",
    ]


def macro_f1(truth: np.ndarray, predicted: Any) -> float:
    return float(f1_score(truth, predicted, average="macro", zero_division=0))


def installed(competitors: tuple[Competitor, ...]) -> list[Competitor]:
    return [one for one in competitors if one.is_installed]


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    start, load_before = time.perf_counter(), load()
    sections = [
        *speed(*((20_000, 250) if quick else (100_000, 1000))),
        *many_labels(*((2000, 10_000) if quick else (100_000, 100_000))),
        *quality(*((300, 20, 2) if quick else (1000, 100, 10))),
        *quality(*((600, 20, 2) if quick else (10_000, 50, 3))),
    ]
    absent = [peer.name for peer in PEERS if not peer.is_installed]
    parts = [
        "# Macro-F1 of many labels: times, memory, quality",
        f"Written by `make bench` (`benchmarks/multilabel.py`). Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores; load before {load_before}, after {load()}. "
        f"Versions: {', '.join(f'{package} {version_of(package)}' for package in VERSIONS)}.",
        *([f"Could not be installed, and is left out: {', '.join(absent)}."] if absent else []),
        "Labels are positive with the probability that is their score, or whose square is. Scores are kept row after "
        "row. xCOLUMNs' F-beta is inverted (its F2 is F0.5), which F1 does not feel, and has 1e-6 in its denominator. "
        "LibMultiLabel tunes the sum of macro- and micro-F1, inside its own training; its rule is given the scores.",
        *sections,
        f"The run took {(time.perf_counter() - start) / 60:.1f} minutes.",
    ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if not quick:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
