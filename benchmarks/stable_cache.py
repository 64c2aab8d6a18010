"""What the benchmarks of stable cuts share: the options that are compared, and files of measured blocks.

A block is kept under a digest of what it depends on: the package's sources for tuning, the code that measures, and the
options. An edit of the code that reports discards nothing. `bands.py` keeps its blocks in the same way.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import surecut
from surecut import datasets

RESULTS = Path(__file__).parent / "results"
STABLE: dict[str, Any] = {"stable": True}
SHRUNKEN: dict[str, Any] = {"shrinkage": "auto"}
OPTIONS: dict[str, dict[str, Any]] = {"exact": {}, "shrunken": SHRUNKEN, "stable": STABLE}


@cache
def sources() -> bytes:
    """The package's sources that a cut depends on."""
    package = Path(surecut.__file__).parent
    folders = ("core", "tuning", "calibration", "decisions")
    paths = [path for folder in folders for path in sorted((package / folder).rglob("*.py"))]
    return b"".join(path.read_bytes() for path in (*paths, package / "metrics.py"))


@cache
def folder(name: str, *measuring: Any, measured: Callable[[], bytes] = sources) -> Path:
    """Where the blocks of a benchmark are.

    `measuring` are the modules, classes and functions that measure them, and texts of the numbers they use; `measured`
    gives what they measure.
    """
    code = "".join(part if isinstance(part, str) else inspect.getsource(part) for part in measuring) + repr(OPTIONS)
    digest = hashlib.sha256(measured() + code.encode()).hexdigest()
    return datasets.cache_folder() / name / digest[:12]


def kept(path: Path, compute: Callable[[], np.ndarray]) -> np.ndarray:
    """An array from its file, or computed and written to it; a file is never seen half written."""
    if path.exists():
        return np.load(path)
    found = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.unfinished.npy")
    np.save(unfinished, found)
    unfinished.rename(path)
    return found


def command() -> str:
    """The command that makes what this process reports."""
    given = [argument for argument in sys.argv[1:] if argument != "--report"]
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *given])


def stable_call() -> str:
    """How the stable cut was asked for, for the text of a report."""
    return ", ".join(f"{name}={value!r}" for name, value in STABLE.items())
