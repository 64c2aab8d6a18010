"""Problems of the benchmark of k labels a row: scores of trained models, on tuning rows and on new ones.

Scores are kept in surecut's cache, so that a second run only tunes.
"""

from __future__ import annotations

import gzip
import hashlib
import inspect
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shrinkage
from surecut import datasets

FEWEST = 3
"""Rows of each class that training and tuning rows must have; other draws are drawn again."""


class Scores(NamedTuple):
    """Scores and labels of tuning rows and of new ones: class numbers, or matrices of 0 and 1."""

    labels: Any
    scores: Any
    new_labels: Any
    new: Any


class Rows(NamedTuple):
    """Features and class numbers."""

    X: np.ndarray
    y: np.ndarray


# --- Classes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Synthetic:
    """Normal classes: priors of a symmetric Dirichlet distribution, none below `least`; means are normal, too.

    The population is one, every repetition draws other rows from it.
    """

    classes: int
    concentration: float
    tuning: int
    least: float = 0.002
    spread: float = 1.3
    training: int = 4_000
    new: int = 20_000
    features: int = 5

    @property
    def name(self) -> str:
        return f"{self.classes} classes, Dirichlet({self.concentration:g}), {self.tuning:,} rows"

    def population(self) -> tuple[np.ndarray, np.ndarray]:
        """Priors, and means; the rarest class has the least prior, if any is near it."""
        random = np.random.default_rng([self.classes, round(100 * self.concentration)])
        share = random.dirichlet(np.full(self.classes, self.concentration))
        if self.concentration < 2:
            share[share.argmin()] = 0.0
        priors = np.maximum(share, self.least)
        large = priors > self.least
        priors[large] *= (1 - self.least * (~large).sum()) / priors[large].sum()
        return priors, random.normal(0, self.spread, (self.classes, self.features))

    def draw(self, random: np.random.Generator) -> tuple[Rows, Rows, Rows]:
        priors, means = self.population()

        def rows(number: int) -> Rows:
            y = random.choice(self.classes, size=number, p=priors)
            return Rows(means[y] + random.normal(size=(number, self.features)), y)

        return rows(self.training), rows(self.tuning), rows(self.new)


@dataclass(frozen=True)
class Real:
    """A data set of several classes, split anew in every repetition."""

    name: str
    load: Callable[[], Rows] = field(repr=False)
    training: int
    tuning: int
    new: int

    def draw(self, random: np.random.Generator) -> tuple[Rows, Rows, Rows]:
        X, y = self.load()
        ends = np.cumsum((self.training, self.tuning, self.new))
        one, two, three, _ = np.split(random.permutation(len(y)), ends)
        return Rows(X[one], y[one]), Rows(X[two], y[two]), Rows(X[three], y[three])


@cache
def covtype() -> Rows:
    """The 7 cover types, from ``covtype.csv``: of the folder of data, of the cache, or of a wheel from PyPI.

    scikit-multiflow 0.4.1 carries the file; its wheel is downloaded and read as an archive, not installed.
    """
    name, rows = "covtype.csv", 581_012
    kept = datasets.cache_folder() / "covtype_classes.npz"
    if not kept.exists():
        places = [*filter(None, [os.environ.get("SURECUT_DATA")]), str(datasets.cache_folder())]
        path = next((Path(place) / name for place in places if (Path(place) / name).is_file()), None)
        content = path.read_bytes() if path else _from_wheel(name)
        table = np.loadtxt(content.decode().splitlines(), delimiter=",", skiprows=1, dtype=np.int16)
        if table.shape != (rows, 55):
            raise datasets.DataError(f"{name} must have {rows:,} rows of 55 columns, got {table.shape}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_name(f"{kept.stem}.{os.getpid()}.npz")
        np.savez_compressed(unfinished, X=table[:, :-1], y=table[:, -1] - 1)
        unfinished.rename(kept)
    with np.load(kept) as file:
        return Rows(file["X"], file["y"].astype(np.int64))


def _from_wheel(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = ["--python-version", "3.7", "--implementation", "cp", "--abi", "cp37m"]
        options = ["--no-deps", "--only-binary", ":all:", *target, "--platform", "manylinux1_x86_64"]
        command = [sys.executable, "-m", "pip", "download", *options, "--dest", folder, "scikit-multiflow==0.4.1"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            place = os.environ.get("SURECUT_DATA", datasets.cache_folder())
            raise FileNotFoundError(
                f"{name} is not here, and scikit-multiflow 0.4.1, which has it, could not be downloaded: put it into "
                f"{place}"
            ) from error
        (wheel,) = Path(folder).iterdir()
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(f"skmultiflow/data/datasets/{name}")


@cache
def digits() -> Rows:
    return Rows(*load_digits(return_X_y=True))


MNIST = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


def mnist_paths() -> list[Path] | None:
    """The two files of MNIST's 10,000 test digits; None where one is missing."""
    places = [*filter(None, [os.environ.get("SURECUT_DATA")]), str(datasets.cache_folder())]
    for place in places:
        paths = [Path(place) / name for name in MNIST]
        if all(path.is_file() for path in paths):
            return paths
    return None


@cache
def mnist() -> Rows:
    """10,000 digits, those of MNIST's test files."""
    paths = mnist_paths()
    assert paths is not None
    images, labels = (gzip.decompress(path.read_bytes()) for path in paths)
    X = np.frombuffer(images, dtype=np.uint8, offset=16).reshape(-1, 784)
    return Rows(X[:, X.any(axis=0)] / 255, np.frombuffer(labels, dtype=np.uint8, offset=8).astype(np.int64))


MODELS = ("logistic", "trees")


def model(name: str) -> Any:
    """Step 1."""
    if name == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=1e-3))
    return RandomForestClassifier(100, min_samples_leaf=3, random_state=0)


SYNTHETIC = (
    Synthetic(3, 5, 1_000),
    Synthetic(3, 0.7, 5_000),
    Synthetic(5, 5, 2_000),
    Synthetic(5, 0.7, 5_000),
    Synthetic(7, 5, 2_000),
    Synthetic(7, 0.7, 20_000),
    Synthetic(10, 5, 5_000),
    Synthetic(10, 0.7, 5_000),
    Synthetic(20, 5, 5_000),
    Synthetic(20, 0.7, 10_000),
    Synthetic(50, 5, 5_000),
    Synthetic(50, 0.7, 5_000),
)
PROBLEMS: tuple[Synthetic | Real, ...] = (
    *SYNTHETIC,
    Real("covtype", covtype, 5_000, 5_000, 20_000),
    Real("digits", digits, 500, 500, 797),
    Real("mnist", mnist, 2_000, 2_000, 6_000),
)


@dataclass(frozen=True)
class Cell:
    """A problem and a model."""

    problem: Synthetic | Real
    model: str

    @property
    def name(self) -> str:
        return f"{self.problem.name}, {self.model}"

    def scores(self, repetition: int) -> Scores:
        path = _folder(repr(self.problem)) / f"{file_name(self.name)}-{repetition}.npz"
        return _kept(path, lambda: self._trained(repetition))

    def _trained(self, repetition: int) -> Scores:
        random = np.random.default_rng([zlib.crc32(self.problem.name.encode()), repetition])
        while True:
            training, tuning, new = self.problem.draw(random)
            number = max(training.y.max(), tuning.y.max(), new.y.max()) + 1
            classes = getattr(self.problem, "classes", number)
            if all(np.bincount(part.y, minlength=classes).min() >= FEWEST for part in (training, tuning)):
                break
        fitted = model(self.model).fit(training.X, training.y)
        return Scores(tuning.y, fitted.predict_proba(tuning.X), new.y, fitted.predict_proba(new.X))


def cells() -> list[Cell]:
    """Every problem that is here, with every model."""
    present = [problem for problem in PROBLEMS if problem.name != "mnist" or mnist_paths() is not None]
    return [Cell(problem, model) for problem in present for model in MODELS]


# --- Many labels -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tags:
    """A data set of the paper: the linear step 1 of `shrinkage.py`, trained on two thirds of `size` training rows."""

    name: str
    size: int
    new: int = 3_000
    """At most so many of the test rows, drawn anew in every repetition."""

    def scores(self, repetition: int) -> Scores:
        found = shrinkage.scores(_loaded(self.name), self.size, "linear", "raw", repetition)
        rows = np.random.default_rng([7, repetition]).permutation(len(found.test))[: self.new]
        return Scores(found.tuning_labels, found.tuning, found.test_labels[rows], found.test[rows])


@dataclass(frozen=True)
class Extreme:
    """Sparse scores of the most probable labels of each row, calibrated; few labels are frequent."""

    labels: int = 5_000
    stored: int = 50
    tuning: int = 5_000
    new_rows: int = 3_000

    @property
    def name(self) -> str:
        return f"extreme, {self.labels:,} labels"

    def scores(self, repetition: int) -> Scores:
        random = np.random.default_rng([11, repetition])
        truth, scores = self._drawn(random, self.tuning + self.new_rows)
        return Scores(truth[: self.tuning], scores[: self.tuning], truth[self.tuning :], scores[self.tuning :])

    def _drawn(self, random: np.random.Generator, rows: int) -> tuple[Any, Any]:
        column = np.minimum((self.labels * random.random((rows, self.stored)) ** 3).astype(np.int64), self.labels - 1)
        row = np.repeat(np.arange(rows), self.stored)
        shape = (rows, self.labels)
        scores = sparse.csr_matrix((random.beta(0.3, 3, size=row.size), (row, column.ravel())), shape=shape)
        scores.sum_duplicates()
        scores.data = np.clip(scores.data, 1e-6, 1 - 1e-6)
        truth = scores.copy()
        truth.data = (random.random(truth.nnz) < truth.data).astype(np.uint8)
        truth.eliminate_zeros()
        return truth, scores


BUDGET_PROBLEMS: tuple[Tags | Extreme, ...] = (
    Tags("scene", 1_211),
    Tags("yeast", 1_500),
    Tags("mediamill", 9_000),
    Extreme(),
)


@cache
def _loaded(name: str) -> datasets.Dataset:
    return datasets.load(name)


# --- Files -----------------------------------------------------------------------------------------------------------


def _folder(problem: str) -> Path:
    """Where scores are kept: under a digest of what they depend on."""
    code = "".join(map(inspect.getsource, (Synthetic, Real, Cell, model)))
    return datasets.cache_folder() / "top_k_scores" / hashlib.sha256((code + problem).encode()).hexdigest()[:8]


def file_name(text: str) -> str:
    return "".join(character if character.isalnum() or character in "." else "_" for character in text)


def _kept(path: Path, compute: Callable[[], Scores]) -> Scores:
    if path.exists():
        with np.load(path) as file:
            return Scores(*(file[name] for name in Scores._fields))
    found = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.unfinished.npz")
    np.savez(unfinished, **found._asdict())
    unfinished.rename(path)
    return found
