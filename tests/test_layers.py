"""Imports run one way through the layers that CONTRIBUTING.md lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "surecut"
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def layers() -> dict[str, int]:
    """The layer of every module and package in the table, the lowest layer first."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"^\| layer \| modules \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    assert table is not None
    rows = [line.split("|")[2] for line in table[1].splitlines()]
    return {name: number for number, row in enumerate(rows) for name in re.findall(r"`([^`]+)`", row)}


LAYERS = layers()


def layer_of(module: str) -> int:
    """The layer of a file: its own, or that of the innermost package that has one."""
    parts = module.split("/")
    packages = ["/".join(parts[:end]) + "/" for end in range(len(parts) - 1, 0, -1)]
    for name in (module, *packages):
        if name in LAYERS:
            return LAYERS[name]
    raise KeyError(f"{module} is in no row of the table in CONTRIBUTING.md")


def file_of(dotted: str) -> str | None:
    """The file of a module of the package; None for anything else."""
    first, *rest = dotted.split(".")
    if first != "surecut":
        return None
    for candidate in ("/".join(rest) + ".py", "/".join([*rest, "__init__.py"])):
        if candidate in MODULES:
            return candidate
    return None


def imported(code: str, module: str) -> Iterator[str]:
    """The files of the package that some code of a module imports: at the top, in functions, for type checkers."""
    package = ["surecut", *module.split("/")[:-1]]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (file := file_of(alias.name)) is not None:
                    yield file
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                file = file_of(f"{origin}.{alias.name}") or file_of(origin)
                if file is not None:
                    yield file


def upward(code: str, module: str) -> list[str]:
    """What a module imports although it stands in a higher layer."""
    own = layer_of(module)
    return sorted({file for file in imported(code, module) if layer_of(file) > own})


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_nothing_from_higher_layers(module):
    assert upward((PACKAGE / module).read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize("name", LAYERS)
def test_the_table_lists_only_what_there_is(name):
    path = PACKAGE / name
    assert path.is_dir() if name.endswith("/") else path.is_file()


def test_the_architecture_page_names_only_files_that_there_are():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+(?:\.py|\.html|\.js|/))`", text))
    assert {"core/search.py", "sources/"} <= named
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in (PACKAGE, ROOT))] == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from surecut.tuning.threshold import tune_threshold", ["tuning/threshold.py"]),
        ("import surecut.sources.arrays", ["sources/arrays.py"]),
        ("from surecut.sources import arrays, rows", ["sources/arrays.py", "sources/rows.py"]),
        ("from ..sources.arrays import ArraySource", ["sources/arrays.py"]),
        ("from .. import tuning", ["tuning/__init__.py"]),
        ("from surecut import tune_threshold", ["__init__.py"]),
        ("def f():\n    from surecut.report import summarize", ["report/__init__.py"]),
        ("if TYPE_CHECKING:\n    from surecut.sources.arrays import ArraySource", ["sources/arrays.py"]),
        ("from surecut.metrics import get_metric\nfrom surecut.core import rules\nimport numpy", []),
        ("from . import rules\nfrom .entries import Entries", []),
    ],
)
def test_an_upward_import_is_found(code, found):
    assert upward(code, "core/search.py") == found


def test_a_module_that_is_named_itself_does_not_stand_with_its_package():
    assert layer_of("core/keys.py") < layer_of("overlap.py") < layer_of("core/entries.py")
    assert (
        layer_of("certificates/assurance.py") < layer_of("tuning/threshold.py") < layer_of("certificates/certifying.py")
    )


def test_a_module_without_a_row_is_an_error():
    with pytest.raises(KeyError, match="orphan is in no row"):
        layer_of("orphan")
