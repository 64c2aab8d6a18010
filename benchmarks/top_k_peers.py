"""optimal-classification-cutoffs and xCOLUMNs, each in an interpreter of its own: a request a line, a line an answer.

`interpreters.Peer` starts this file there. It imports nothing of surecut, and the rival when it is first asked for.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def cutoffs(arrays: Any, turns: int = 1) -> dict[str, Any]:
    """optimal-classification-cutoffs: coordinate ascent of macro-F1, and its predictions of tuning and of new rows."""
    from optimal_cutoffs import optimize_thresholds
    from optimal_cutoffs.core import Average, Task

    def tune(rows: slice) -> Any:
        return optimize_thresholds(
            arrays["labels"][rows],
            arrays["scores"][rows],
            metric="f1",
            task=Task.MULTICLASS,
            average=Average.MACRO,
            method="coord_ascent",
        )

    if turns > 1:  # compile first
        tune(slice(2_000))
    seconds = []
    for _ in range(turns):
        start = time.process_time()
        found = tune(slice(None))
        seconds.append(time.process_time() - start)
    return {
        "tuning": found.predict(arrays["scores"]),
        "new": found.predict(arrays["new"]),
        "seconds": np.median(seconds),
    }


METRICS = ("f1", "precision", "recall")
FULL_NAMES = {"f1": "f1_score", "precision": "precision", "recall": "recall"}


def columns_of(arrays: Any, name: str) -> Any:
    """A matrix as it was sent, dense or sparse."""
    if name in arrays:
        return arrays[name]
    from scipy.sparse import csr_matrix

    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return csr_matrix(parts, shape=tuple(arrays[f"{name}_shape"]))


STARTS = ("top", "random")
"""Where xCOLUMNs' searches start: both are tried, the better one on its own objective is taken, one is timed."""


def frank_wolfe(arrays: Any, metric: str, k: int, seed: int) -> dict[str, Any]:
    """xCOLUMNs' randomised classifier, found on the tuning rows; each new row draws one of its classifiers.

    The shorthand for macro-F1 is broken in 0.0.2, the functions behind it are not. Its shares are float32 and may not
    add up to 1: they are divided by their sum. It gets no label without a positive: 1e-6 in its denominators would make
    such a label worth more than any other, and the search would end with it.
    """
    from xcolumns import metrics
    from xcolumns.frank_wolfe import find_classifier_using_fw

    goal = getattr(metrics, f"macro_{FULL_NAMES[metric]}_on_conf_matrix")
    truth, scores, new = (columns_of(arrays, one) for one in ("truth", "scores", "new"))
    known = np.flatnonzero(np.asarray(truth.sum(axis=0)).ravel())
    truth, scores, new = truth[:, known], scores[:, known], new[:, known]
    found, seconds = [], []
    for start in STARTS:
        begin = time.process_time()
        options = {"skip_tn": True, "init_classifier": start, "seed": seed, "return_meta": True}
        found.append(find_classifier_using_fw(truth, scores, goal, k=k, **options))
        seconds.append(time.process_time() - begin)
    rule, _ = max(found, key=lambda one: one[1]["utilities"][-1])
    rule.p = rule.p.astype(np.float64) / rule.p.sum(dtype=np.float64)
    first, second = (named(known, positions(rule.predict(part, seed=seed), k)) for part in (scores, new))
    return {"tuning": first, "new": second, "seconds": min(seconds)}


def block_coordinate(arrays: Any, metric: str, k: int, seed: int) -> dict[str, Any]:
    """xCOLUMNs' predictions of the new rows, all at once: it sees all their scores, and no labels at all."""
    from xcolumns import block_coordinate as methods

    predict = getattr(methods, f"predict_optimizing_macro_{FULL_NAMES[metric]}_using_bc")
    found, seconds = [], []
    for start in STARTS:
        begin = time.process_time()
        new = columns_of(arrays, "new")
        found.append(predict(new, k, init_y_pred=start, seed=seed, return_meta=True))
        seconds.append(time.process_time() - begin)
    predicted, _ = max(found, key=lambda one: one[1]["utilities"][-1])
    return {"new": positions(predicted, k), "seconds": min(seconds)}


def positions(predicted: Any, k: int) -> np.ndarray:
    """The predicted columns of each row, −1 where a row has no further one."""
    found = np.full((predicted.shape[0], k), -1, dtype=np.int32)
    if isinstance(predicted, np.ndarray):
        row, column = np.nonzero(predicted)
    else:
        entries = predicted.tocoo()
        kept = entries.data > 0
        order = np.lexsort((entries.col[kept], entries.row[kept]))
        row, column = entries.row[kept][order], entries.col[kept][order]
    found[row, np.arange(len(row)) - np.searchsorted(row, row)] = column
    return found


def named(columns: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Positions among all columns, of positions among some."""
    return np.where(found < 0, -1, columns[found])


ANSWERS = {"cutoffs": cutoffs, "frank_wolfe": frank_wolfe, "block_coordinate": block_coordinate}


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        answer, path = ANSWERS[request.pop("method")], request.pop("answer")
        with np.load(request.pop("question")) as file:
            arrays = dict(file)
        np.savez(path, **answer(arrays, **request))
        print("done", flush=True)


if __name__ == "__main__":
    main()
