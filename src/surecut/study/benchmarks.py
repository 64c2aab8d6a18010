"""The benchmark data as the experiments use it: scaled, and split at random."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from surecut import datasets
from surecut.datasets import Part

TEST_ROWS = {"covtype": 181_012, "gisette": 3_000, "mnist49": 3_000}
"""How many rows the paper takes out for testing; mnist49 as gisette."""

TITLES = {"mnist49": "mnist49 (gisette's digits)"}
"""What a picture says of a data set that stands in for another."""


def binary_names() -> tuple[str, ...]:
    """The binary data sets: covtype and gisette, or mnist49, under its own name, where gisette is absent."""
    return "covtype", "gisette" if datasets.is_present("gisette") else "mnist49"


@lru_cache(maxsize=2)
def binary_rows(name: str) -> Part:
    """All rows of a binary data set: covtype's features scaled to [0, 1], mnist49's pixels too, gisette as it is."""
    X, y = datasets.load(name).rows
    if name == "covtype":
        from sklearn.preprocessing import MinMaxScaler

        X = sparse.csr_matrix(MinMaxScaler(copy=False).fit_transform(X.toarray()))
    elif name == "mnist49":
        X = sparse.csr_matrix(X / 255)
    return Part(X, y)


class Split(NamedTuple):
    """Rows to learn from, to tune on, and to test on."""

    learn: Part
    tune: Part
    test: Part


def random_split(name: str, n: int, generator: np.random.Generator) -> Split:
    """A test set, and n other rows: two thirds to learn from, one third to tune on."""
    rows = binary_rows(name)
    order = generator.permutation(len(rows.y))
    test, train = order[: TEST_ROWS[name]], order[TEST_ROWS[name] :][:n]
    if len(train) < n:
        raise ValueError(f"{name} has {len(train):,} rows beside its test set, and n is {n:,}")
    learn = 2 * n // 3
    return Split(*(_take(rows, chosen) for chosen in (train[:learn], train[learn:], test)))


def _take(rows: Part, chosen: Any) -> Part:
    return Part(rows.X[chosen], rows.y[chosen])
