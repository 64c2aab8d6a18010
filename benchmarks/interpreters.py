"""Rivals in interpreters of their own: virtual environments that are made once, and processes that answer requests."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

CACHE = Path.home() / ".cache" / "surecut"


class NotInstalledError(RuntimeError):
    """An environment that cannot be made here, and why."""


@functools.cache
def with_packages(name: str, *requirements: str, oldest: int = 11) -> str:
    """The Python of a virtual environment with some packages; `oldest` is the minor version that it needs."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    try:
        if not (folder / "ready").exists():
            subprocess.run([_python(oldest), "-m", "venv", "--clear", folder], check=True, capture_output=True)
            install = [python, "-m", "pip", "install", "--quiet", *requirements]
            subprocess.run(install, check=True, capture_output=True)
            (folder / "ready").touch()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotInstalledError(f"it could not be installed ({type(error).__name__})") from error
    return str(python)


def _python(oldest: int) -> str:
    """A Python 3 of some minor version or a newer one: the running one if it is."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob("3.1[0-9]*/bin/python"))
    new_enough = [path for path in installed if int(path.parts[-3].split(".")[1]) >= oldest]
    names = [f"python3.{minor}" for minor in range(oldest, 20)]
    running = [sys.executable] * (sys.version_info >= (3, oldest))
    for one in filter(None, [*running, *map(shutil.which, names), *map(str, new_enough)]):
        if subprocess.run([one, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return one
    raise NotInstalledError(f"it needs Python 3.{oldest} or newer, and none was found")


class Peer:
    """A process that runs a script with a rival in it: arrays go there and come back in ``.npz`` files."""

    def __init__(self, python: str, script: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, arrays: Mapping[str, Any], **options: Any) -> dict[str, np.ndarray]:
        """Send arrays and options, and wait for the arrays of the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            question, answer = Path(folder) / "question.npz", Path(folder) / "answer.npz"
            np.savez(question, **arrays)
            request = {"question": str(question), "answer": str(answer), **options}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            if not self._process.stdout.readline():
                raise RuntimeError(f"the rival's process ended with code {self._process.wait()}")
            with np.load(answer) as file:
                return dict(file)
