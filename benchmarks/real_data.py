"""Binary data sets and models for the benchmarks on real data: those of `surecut.datasets`, and scikit-learn's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from surecut import datasets

POSITIVE = {"breast_cancer": 1, "digits": 8, "wine": 1}
"""The class that counts as positive in scikit-learn's data sets."""

LOADERS = {"breast_cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
NAMES = ("covtype", "mnist49", *LOADERS)

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
    "10-NN": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(10)),
}


@cache
def load(name: str) -> datasets.Part:
    """All rows of a data set, labels 0 and 1. Features of scikit-learn's data sets are dense."""
    if name in LOADERS:
        X, y = LOADERS[name](return_X_y=True)
        return datasets.Part(X, (y == POSITIVE[name]).astype(np.int8))
    return datasets.load(name).rows


def dense(X: Any, rows: np.ndarray) -> np.ndarray:
    """Some rows, as an array."""
    part = X[rows]
    return part.toarray() if hasattr(part, "toarray") else part


def check_present(names: list[str]) -> None:
    """Parse what is not parsed yet, before several processes would; or say what is missing."""
    for name in names:
        if name in datasets.ORIGINS and not datasets.is_present(name):
            place = os.environ.get("SURECUT_DATA", "not set")
            raise SystemExit(f"{name} is not here: set SURECUT_DATA to the folder with the data (it is {place})")
        datasets.load(name) if name in datasets.ORIGINS else load(name)
