"""`import surecut` is quick, and every public name is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import surecut

HEAVY = ["sklearn", "numba", "duckdb", "pandas", "polars", "pyarrow", "typer", "rich", "matplotlib", "jinja2"]


def modules_after(code):
    """What a fresh interpreter has loaded after some code."""
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{code}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in result.stdout.split()}


def test_importing_loads_nothing_heavy():
    loaded = modules_after("import surecut")
    assert "surecut" in loaded
    assert not loaded & set(HEAVY)


def test_tuning_a_few_rows_loads_nothing_heavy():
    code = "import surecut; surecut.tune_threshold([0, 1], [0.1, 0.2], metric=['f1', 'mcc'], constraint='recall>=0.5')"
    loaded = modules_after(f"{code}; dir(surecut); surecut.metrics.FBeta(2)")
    assert "numpy" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("name", surecut.__all__)
def test_every_public_name_is_there(name):
    thing = getattr(surecut, name)
    assert thing is getattr(surecut, name)
    assert getattr(thing, "__doc__", None)
    assert getattr(thing, "__name__", "").rpartition(".")[2] == name


def test_public_names_are_listed():
    assert sorted(surecut.__all__) == list(surecut.__all__)
    assert set(surecut.__all__) <= set(dir(surecut))
    assert surecut.__version__


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'surecut' has no attribute 'tune_treshold'"):
        surecut.tune_treshold  # noqa: B018


def test_a_star_import_gives_the_public_names():
    result = subprocess.run(
        [sys.executable, "-c", "from surecut import *; print(tune_threshold.__name__, PlugInClassifier.__name__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["tune_threshold", "PlugInClassifier"]
