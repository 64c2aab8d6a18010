"""Macro-F1 thresholds of many labels: surecut beside its peers, in time, memory and test value.

``python benchmarks/multilabel.py`` writes ``results/multilabel.md``; ``--quick`` is for trying it out, and writes
nothing. LibMultiLabel and xCOLUMNs have rows of their own where they are installed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.metrics import f1_score, precision_recall_curve

from surecut import tune_thresholds

RESULTS = Path(__file__).parent / "results" / "multilabel.md"


def dense(rows: int, labels: int, dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all frequencies with calibrated probabilities as scores."""
    random = np.random.default_rng(seed)
    scores = np.empty((rows, labels), dtype=dtype)
    truth = np.empty((rows, labels), dtype=np.uint8)
    shift = random.uniform(-6, -1, size=labels)
    for start in range(0, rows, 10_000):
        block = slice(start, start + 10_000)
        probability = expit(2 * random.normal(size=scores[block].shape) + shift)
        scores[block], truth[block] = probability, random.random(probability.shape) < probability
    return truth, scores


def curve_loop(truth: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """What people write: a precision-recall curve per label, and the best point of it."""
    thresholds = np.empty(truth.shape[1])
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")
        for label in range(truth.shape[1]):
            precision, recall, candidates = precision_recall_curve(truth[:, label], scores[:, label])
            f1 = np.nan_to_num(2 * precision * recall / (precision + recall))[:-1]
            thresholds[label] = candidates[f1.argmax()]
    return thresholds


def timed(work: Callable[[], Any], turns: int = 3) -> tuple[float, Any]:
    """The median of some turns, and the last result."""
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), result


def peak_memory(work: Callable[[], Any]) -> int:
    """Bytes by which the resident memory grew at most, looked at every two milliseconds."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    start, peak, done = resident(), 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident() - start)

    watcher = threading.Thread(target=look)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return peak


def speed(rows: int, labels: int) -> list[str]:
    """Dense matrices: the loop of curves is timed on some labels and multiplied."""
    lines = [
        f"## Speed: {rows:,} × {labels:,} dense scores, macro-F1\n",
        "| scores | loop of precision_recall_curve | surecut | times faster | memory of the search / of the scores |",
        "|---|---|---|---|---|",
    ]
    some = min(labels, 40)
    for dtype in ("float64", "float32"):
        truth, scores = dense(rows, labels, dtype)
        tune_thresholds(truth[:, :1], scores[:, :1])
        tune_thresholds(truth[:, :64], scores[:, :64])  # kernels are compiled, or read from their cache, once
        loop, expected = timed(lambda t=truth, s=scores: curve_loop(t[:, :some], s[:, :some]), 1)
        loop *= labels / some
        ours, cut = timed(lambda t=truth, s=scores: tune_thresholds(t, s))
        memory = peak_memory(lambda t=truth, s=scores: tune_thresholds(t, s))
        ours_f1 = f1_score(truth[:, :some], cut.predict(scores)[:, :some], average="macro", zero_division=0)
        loop_f1 = f1_score(truth[:, :some], scores[:, :some] >= expected, average="macro", zero_division=0)
        assert ours_f1 >= loop_f1 - 1e-12
        lines.append(f"| {dtype} | {loop:.1f} s¹ | {ours:.2f} s | {loop / ours:.0f} | {memory / scores.nbytes:.3f} |")
        print(lines[-1], flush=True)
        del truth, scores
    return [*lines, f"\n¹ measured on {some} labels, multiplied.\n"]


def many_labels(rows: int, labels: int) -> list[str]:
    """Sparse scores, as extreme classifiers give them: the top hundred labels of each row."""
    random = np.random.default_rng(1)
    column = np.minimum((labels * random.random((rows, 100)) ** 3).astype(np.int64), labels - 1)
    row = np.repeat(np.arange(rows), 100)
    scores = sparse.csr_array((random.beta(1, 8, size=row.size), (row, column.ravel())), shape=(rows, labels))
    scores.sum_duplicates()
    scores.data = np.minimum(scores.data, 1.0)
    truth = scores.copy()
    truth.data = (random.random(truth.nnz) < truth.data).astype(np.uint8)
    truth.eliminate_zeros()
    plain, cut = timed(lambda: tune_thresholds(truth, scores), 1)
    shrunken, _ = timed(lambda: tune_thresholds(truth, scores, shrinkage="auto"), 1)
    line = (
        f'{rows:,} rows × {labels:,} labels, {scores.nnz:,} scores: {plain:.1f} s, with `shrinkage="auto"` '
        f"{shrunken:.1f} s; {len(cut.shared):,} labels without a positive took the shared threshold."
    )
    print(line, flush=True)
    return ["## Many sparse labels\n", line, ""]


def macro_f1(truth: np.ndarray, predicted: Any) -> float:
    return float(f1_score(truth, predicted, average="macro", zero_division=0))


def frank_wolfe(truth: np.ndarray, scores: np.ndarray, test: np.ndarray) -> np.ndarray | None:
    """xCOLUMNs' randomised classifier, without a limit on the labels of a row."""
    if importlib.util.find_spec("xcolumns") is None:
        return None
    from xcolumns.frank_wolfe import find_classifier_optimizing_macro_f1_score_using_fw

    classifier = find_classifier_optimizing_macro_f1_score_using_fw(truth.astype(float), scores, k=0, seed=0)
    return np.asarray(classifier.predict(test, seed=0)) > 0


def quality(rows: int, labels: int, repetitions: int) -> list[str]:
    """Test macro-F1 with calibrated scores, and with their squares."""
    tuners: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Any]] = {
        "loop of precision_recall_curve": lambda Y, S, T: T >= curve_loop(Y, S),
        "xCOLUMNs Frank–Wolfe": frank_wolfe,
        "surecut": lambda Y, S, T: tune_thresholds(Y, S).predict(T),
        'surecut, shrinkage="auto"': lambda Y, S, T: tune_thresholds(Y, S, shrinkage="auto").predict(T),
    }
    lines = [
        f"## Test value: {rows:,} tuning rows, {labels} labels, {repetitions} repetitions\n",
        "| tuner | calibrated scores | σ(f)² | seconds |",
        "|---|---|---|---|",
    ]
    for name, tuner in tuners.items():
        values: dict[bool, list[float]] = {False: [], True: []}
        seconds = []
        for repetition in range(repetitions):
            truth, scores = dense(rows, labels, "float64", seed=10 + repetition)
            test_truth, test_scores = dense(20_000, labels, "float64", seed=10 + repetition)
            random = np.random.default_rng(repetition)
            test_truth = (random.random(test_scores.shape) < test_scores).astype(np.uint8)
            for squared in values:
                power = 2 if squared else 1
                start = time.perf_counter()
                predicted = tuner(truth, scores**power, test_scores**power)
                seconds.append(time.perf_counter() - start)
                if predicted is not None:
                    values[squared].append(macro_f1(test_truth, predicted))
        if values[False]:
            means = " | ".join(f"{np.mean(found):.4f}" for found in values.values())
            lines.append(f"| {name} | {means} | {np.median(seconds):.2f} |")
        else:
            lines.append(f"| {name} | not installed | | |")
        print(lines[-1], flush=True)
    installed = importlib.util.find_spec("libmultilabel") is not None
    note = "" if installed else "\nLibMultiLabel is not installed here (it needs PyTorch), and has no row.\n"
    return [*lines, note]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", "scikit-learn") if _has(name)
    )
    lines = [
        "# Many labels\n",
        f"Made by `python benchmarks/multilabel.py` on {platform.machine()}, {os.cpu_count()} cores, {versions}.\n",
        *speed(*((20_000, 100) if quick else (100_000, 1000))),
        *many_labels(*((2000, 10_000) if quick else (100_000, 100_000))),
        *quality(*((500, 20, 2) if quick else (1000, 100, 5))),
    ]
    if not quick:
        RESULTS.write_text("\n".join(lines))


def _has(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
