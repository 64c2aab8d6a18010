"""Data sets: the paper's benchmark data, and synthetic ones.

The benchmark data of the paper are LIBSVM text: found, checked, parsed once.

A file is looked for in the folder that the environment variable ``SURECUT_DATA`` names, then in the cache
(``SURECUT_CACHE``, or ``surecut`` in the user's cache folder), and is downloaded into the cache if it is in neither. It
may be plain text or end in ``.bz2``, ``.xz`` or ``.gz``. What was parsed is kept in the cache as plain arrays.

`make_judged_answers` draws rows by itself and needs no file.
"""

from __future__ import annotations

import bz2
import difflib
import functools
import gzip
import hashlib
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from surecut._files import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
"""Where the paper's data sets come from."""

OPENERS: dict[str, Callable[[Path], Any]] = {
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".gz": gzip.open,
    "": functools.partial(open, mode="rb"),
}
"""How a file is read, by the end of its name."""


class Part(NamedTuple):
    """Rows of a data set.

    `X` is sparse, one row per example. `y` holds 1 for positive and 0 for negative: shape (n,), or (n, labels).
    """

    X: sparse.csr_matrix
    y: NDArray[np.int8]


@dataclass(frozen=True)
class Dataset:
    """A data set as the paper has it.

    Attributes
    ----------
    name
        Its name.
    train, test
        Its two parts; `test` is None where the file is not split.
    """

    name: str
    train: Part
    test: Part | None

    @property
    def rows(self) -> Part:
        """All rows, the training part first."""
        if self.test is None:
            return self.train
        X = sparse.vstack((self.train.X, self.test.X), format="csr")
        return Part(X, np.concatenate((self.train.y, self.test.y)))


@dataclass(frozen=True)
class OriginFile:
    """One file of a data set, and what must be found in it.

    Attributes
    ----------
    name
        The file's name without the ending of a compression.
    rows, positives
        The number of rows, and of ones among the labels.
    url
        Where it can be had, if anywhere.
    sha256
        The checksum of what stands at `url`, where it is known.
    """

    name: str
    rows: int
    positives: int
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Origin:
    """What is known of a data set before it is read: its files, its number of features, what counts as positive."""

    files: tuple[OriginFile, ...]
    features: int
    positive: int = 1
    labels: int | None = None


ORIGINS: dict[str, Origin] = {
    "covtype": Origin(
        (OriginFile("covtype.libsvm.binary", 581_012, 283_301, f"{PAGE}/binary/covtype.libsvm.binary.bz2"),),
        features=54,
        positive=2,
    ),
    "gisette": Origin(
        (
            OriginFile("gisette_scale", 6_000, 3_000, f"{PAGE}/binary/gisette_scale.bz2"),
            OriginFile("gisette_scale.t", 1_000, 500, f"{PAGE}/binary/gisette_scale.t.bz2"),
        ),
        features=5_000,
    ),
    # The digits 4 (positive) and 9 of MNIST, of which gisette was made; the page does not have them as a file.
    "mnist49": Origin((OriginFile("mnist49", 6_000, 3_000), OriginFile("mnist49.t", 1_000, 500)), features=784),
    "scene": Origin(
        (
            OriginFile("scene_train", 1_211, 1_286, f"{PAGE}/multilabel/scene_train.bz2"),
            OriginFile("scene_test", 1_196, 1_299, f"{PAGE}/multilabel/scene_test.bz2"),
        ),
        features=294,
        labels=6,
    ),
    "yeast": Origin(
        (
            OriginFile("yeast_train.svm", 1_500, 6_342, f"{PAGE}/multilabel/yeast_train.svm.bz2"),
            OriginFile("yeast_test.svm", 917, 3_899, f"{PAGE}/multilabel/yeast_test.svm.bz2"),
        ),
        features=103,
        labels=14,
    ),
    "mediamill": Origin(
        (
            OriginFile("train-exp1.svm", 30_993, 135_217, f"{PAGE}/multilabel/mediamill/train-exp1.svm.bz2"),
            OriginFile("test-exp1.svm", 12_914, 56_901, f"{PAGE}/multilabel/mediamill/test-exp1.svm.bz2"),
        ),
        features=120,
        labels=101,
    ),
}
"""The data sets by name. `mnist49` is no data set of the paper: it stands in where gisette cannot be had."""


class JudgedAnswers(NamedTuple):
    """Answers with the score of an automatic judge and the verdict of a person.

    `y_true` is 1 where the person found the answer right, `y_score` is the judge's score, `source` says where the
    question came from: ``"handbook"`` or ``"forum"``.
    """

    y_true: NDArray[np.int8]
    y_score: NDArray[np.float64]
    source: NDArray[np.str_]


JUDGE_SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
"""The scores that the judge of `make_judged_answers` gives: few, and closer to each other at the upper end."""

_UP_TO = (-1.9, -1.4, -1.1, -0.8, -0.5, -0.25, 0.0, 0.3, 0.6, 0.95, 1.35, 1.8, 2.4)
"""The largest impression that leads to each score but the last."""


class DataError(ValueError):
    """A data file that is damaged, or is not the one that was expected."""


def load(name: str, *, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set of the paper.

    Parameters
    ----------
    name
        covtype, gisette, mnist49 (binary), scene, yeast, mediamill (multilabel).
    folder
        Where to look for its files first; the folder that ``SURECUT_DATA`` names, if not given.

    Returns
    -------
    Dataset
        Positive is 1: label 2 of covtype (cover type 2), +1 of gisette and of mnist49 (the digit 4).

    Raises
    ------
    FileNotFoundError
        If a file is absent and cannot be downloaded: it says which file to put where.
    DataError
        If a file is damaged or has other rows than it should: it is named, and nothing of it is returned.

    Examples
    --------
    >>> from surecut import datasets
    >>> scene = datasets.load("scene")  # doctest: +SKIP
    >>> scene.train.X.shape, scene.train.y.shape  # doctest: +SKIP
    ((1211, 294), (1211, 6))
    """
    if name not in ORIGINS:
        nearest = difflib.get_close_matches(name, ORIGINS, n=1)
        hint = f": did you mean {nearest[0]!r}?" if nearest else "."
        raise ValueError(f"unknown data set {name!r}{hint} The names are {', '.join(ORIGINS)}")
    source = ORIGINS[name]
    paths = _find(source.files, folder)  # all of them, before the first is parsed
    parts = [_read(path, file, source) for path, file in zip(paths, source.files, strict=True)]
    return Dataset(name, parts[0], parts[1] if len(parts) > 1 else None)


def make_judged_answers(n_samples: int = 300, *, random_state: int | np.random.Generator | None = 0) -> JudgedAnswers:
    """Draw answers as a language model judges them: scores with many ties, and a person's verdict on each answer.

    Two in three questions are about a handbook, where 70 % of the answers are right. The others are from a forum: 45 %
    of their answers are right, and the judge distinguishes them less well. The person errs in 2 % of the verdicts.

    Parameters
    ----------
    n_samples
        The number of answers.
    random_state
        A seed or a generator.

    Returns
    -------
    JudgedAnswers
        The arrays `y_true`, `y_score` and `source`.

    Examples
    --------
    >>> from surecut.datasets import make_judged_answers
    >>> y_true, y_score, source = make_judged_answers(3)
    >>> y_true.tolist(), y_score.tolist(), source.tolist()
    ([1, 0, 1], [1.0, 0.6, 0.1], ['handbook', 'forum', 'forum'])
    """
    if n_samples < 1:
        raise ValueError(f"n_samples= must be at least 1, got {n_samples}")
    random = np.random.default_rng(random_state)
    from_forum = random.random(n_samples) < 1 / 3
    is_right = random.random(n_samples) < np.where(from_forum, 0.45, 0.7)
    mean = np.where(from_forum, 1.0, 1.5) * np.where(is_right, 1, -1)
    y_score = np.array(JUDGE_SCORES)[np.searchsorted(_UP_TO, random.normal(mean))]
    y_true = is_right ^ (random.random(n_samples) < 0.02)
    return JudgedAnswers(y_true.astype(np.int8), y_score, np.where(from_forum, "forum", "handbook"))


def is_present(name: str, *, folder: str | os.PathLike[str] | None = None) -> bool:
    """Whether `load` would find every file of a data set without a download."""
    return all(_look_for(file, folder) for file in ORIGINS[name].files)


def _find(files: tuple[OriginFile, ...], folder: str | os.PathLike[str] | None = None) -> list[Path]:
    """The paths of files: in the folder, in the cache, or downloaded into the cache."""
    found = [_look_for(file, folder) for file in files]
    absent = [file for file, path in zip(files, found, strict=True) if path is None]
    places = _folders(folder)
    names = " and ".join(file.name for file in absent)
    wanted = f"put {names} (plain, or with the ending {', '.join(filter(None, OPENERS))}) into {places[0]}" + (
        "" if len(places) > 1 else ", or set SURECUT_DATA to the folder that has it"
    )
    return [path or _download(file, wanted) for file, path in zip(files, found, strict=True)]


def cache_folder() -> Path:
    """Where downloads and parsed arrays are kept."""
    if chosen := os.environ.get("SURECUT_CACHE"):
        return Path(chosen)
    home = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "surecut"


def _folders(folder: str | os.PathLike[str] | None) -> list[Path]:
    asked = folder or os.environ.get("SURECUT_DATA")
    return [*([Path(asked)] if asked else []), cache_folder()]


def _look_for(file: OriginFile, folder: str | os.PathLike[str] | None) -> Path | None:
    candidates = (place / f"{file.name}{ending}" for place in _folders(folder) for ending in OPENERS)
    return next((path for path in candidates if path.is_file()), None)


def _download(file: OriginFile, wanted: str) -> Path:
    """Fetch a file, or say how to come by it."""
    if file.url is None:
        raise FileNotFoundError(f"{file.name} is not here, and no address is known to download it: {wanted}")
    try:
        import pooch
    except ModuleNotFoundError:
        raise FileNotFoundError(
            f"{file.name} is not here: {wanted}; or let it be downloaded: pip install 'surecut[study]'"
        ) from None
    try:
        known = f"sha256:{file.sha256}" if file.sha256 else None
        name = file.url.rpartition("/")[2]
        return Path(pooch.retrieve(file.url, known, fname=name, path=cache_folder(), progressbar=False))
    except OSError as error:  # requests' errors are OSErrors, and some tell their whole history
        reason = str(error) if len(str(error)) < 120 else type(error).__name__
        raise FileNotFoundError(
            f"{file.name} is not here, and {file.url} could not be downloaded ({reason}): {wanted}"
        ) from None
    except ValueError as error:
        raise DataError(f"{file.url} is not what it should be: {error}") from None


def _read(path: Path, file: OriginFile, source: Origin) -> Part:
    """Parse a file, or take what was parsed of the same bytes before."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    parsed = cache_folder() / f"{file.name}-{digest[:16]}.npz"
    part = _read_parsed(parsed)
    if part is None:
        part = _parse(path, source)
        _check(part, path, file)
        _keep_parsed(part, parsed)
    return part


def _parse(path: Path, source: Origin) -> Part:
    from sklearn.datasets import load_svmlight_file

    try:
        with OPENERS[path.suffix if path.suffix in OPENERS else ""](path) as file:
            text = file.read()
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path} is damaged or truncated: {error}") from None
    if not text.endswith(b"\n"):
        raise DataError(f"{path} is truncated: its last line has no end")
    several = source.labels is not None
    try:
        X, labels = load_svmlight_file(
            io.BytesIO(text), n_features=source.features, multilabel=several, zero_based=False
        )
    except ValueError as error:
        raise DataError(f"{path} is not LIBSVM text with {source.features} features: {error}") from None
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what LIBLINEAR takes
    if source.labels is None:
        return Part(X, (labels == source.positive).astype(np.int8))
    y = np.zeros((len(labels), source.labels), dtype=np.int8)
    row = np.repeat(np.arange(len(labels)), [len(present) for present in labels])
    column = np.fromiter((label for present in labels for label in present), dtype=float, count=len(row))
    if len(column) and not (0 <= column.min() and column.max() < source.labels):
        raise DataError(f"{path} must have labels from 0 to {source.labels - 1}, got {column.min()} … {column.max()}")
    y[row, column.astype(int)] = 1
    return Part(X, y)


def _check(part: Part, path: Path, file: OriginFile) -> None:
    found = (len(part.y), int(part.y.sum()))
    if found != (file.rows, file.positives):
        raise DataError(
            f"{path} is damaged, truncated or another file: expected {file.rows:,} rows and {file.positives:,} "
            f"positive labels, got {found[0]:,} and {found[1]:,}"
        )


def _read_parsed(path: Path) -> Part | None:
    """What was parsed before; None if nothing was, or if it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            matrix = (arrays["data"], arrays["indices"], arrays["indptr"])
            return Part(sparse.csr_matrix(matrix, shape=tuple(arrays["shape"])), arrays["y"])
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def _keep_parsed(part: Part, path: Path) -> None:
    """Write what was parsed; a cache that cannot be written is no cache, and no error."""
    content = io.BytesIO()
    X = part.X
    np.savez(content, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=part.y)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.getvalue())
    except OSError:
        return
