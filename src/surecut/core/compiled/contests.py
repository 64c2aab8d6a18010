"""What a label has to beat in each row, as `core.contests` has it in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from surecut.core.compiled.kernel import Kernel


def _beaten_of_dense(gain: Any, label: Any, k: Any, best: Any, rival: Any) -> None:
    labels = gain.shape[1]
    values = np.empty(k)
    places = np.empty(k, dtype=np.int64)
    for i in range(gain.shape[0]):
        for c in range(k):
            values[c] = -np.inf
            places[c] = -1
        for j in range(labels):
            value = gain[i, j]
            if j != label and value > values[k - 1]:
                c = k - 1
                while c > 0 and value > values[c - 1]:
                    values[c] = values[c - 1]
                    places[c] = places[c - 1]
                    c -= 1
                values[c] = value
                places[c] = j
        best[i] = values[k - 1]
        rival[i] = places[k - 1]


def _beaten_of_stored(gain: Any, indptr: Any, rows: Any, entries: Any, k: Any, best: Any, rival: Any) -> None:
    values = np.empty(k)
    places = np.empty(k, dtype=np.int64)
    for i in range(rows.size):
        for c in range(k):
            values[c] = -np.inf
            places[c] = -1
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value = gain[p]
            if p != entries[i] and value > values[k - 1]:
                c = k - 1
                while c > 0 and value > values[c - 1]:
                    values[c] = values[c - 1]
                    places[c] = places[c - 1]
                    c -= 1
                values[c] = value
                places[c] = p
        best[i] = values[k - 1]
        rival[i] = places[k - 1]


beaten_of_dense = Kernel(_beaten_of_dense)
beaten_of_stored = Kernel(_beaten_of_stored)
