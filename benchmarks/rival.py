"""optimal-classification-cutoffs in an interpreter of its own: it needs Python 3.12, and surecut does not.

`speed.py` starts this file there with an ``.npz`` file of ``labels`` and ``scores``. It prints the F1 that it reaches,
and then, for each line with a number of calls that it reads, the seconds that so many calls take.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from optimal_cutoffs import optimize_thresholds


def main(path: str, clock: str) -> None:
    columns = np.load(path)
    labels, scores = columns["labels"], columns["scores"]
    now = getattr(time, clock)
    found = optimize_thresholds(labels, scores, metric="f1", comparison=">=")
    accepted = scores >= found.thresholds[0]
    print(2 * int(labels[accepted].sum()) / (int(accepted.sum()) + int(labels.sum())), flush=True)
    for line in sys.stdin:
        start = now()
        for _ in range(int(line)):
            optimize_thresholds(labels, scores, metric="f1", comparison=">=")
        print(now() - start, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
