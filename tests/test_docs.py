"""The documentation: its snippets run, and its API page lists exactly the public names."""

from __future__ import annotations

import doctest
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import surecut

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def snippets(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.stem)
def test_snippets_run_in_the_order_in_which_they_stand(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, snippet in enumerate(snippets(page)):
        if ">>>" not in snippet:
            exec(compile(snippet, f"{page.name}[{number}]", "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(snippet, names, f"{page.name}[{number}]", str(page), 0)
        said: list[str] = []
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False).failed
        assert not failed, "".join(said)
        names.update(test.globs)


def listed() -> dict[str, list[str]]:
    """Names on the API page, by module."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for module, names in re.findall(r"currentmodule:: (\S+)\n\.\. autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)", text):
        found.setdefault(module, []).extend(names.split())
    return found


def public_names(module: ModuleType) -> set[str]:
    if hasattr(module, "__all__"):
        return set(module.__all__)
    return {
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    }


def test_the_api_page_lists_exactly_the_public_names():
    page = listed()
    modules = {name for name in surecut.__all__ if isinstance(getattr(surecut, name), ModuleType)}
    top = set(surecut.__all__) - modules
    assert sorted(page["surecut"]) == sorted(top)
    assert set(page) == {"surecut"} | {f"surecut.{name}" for name in modules}
    for name in modules:
        module = getattr(surecut, name)
        elsewhere = {
            other
            for other in public_names(module)
            if other in top and getattr(surecut, other) is getattr(module, other)
        }
        assert sorted(page[module.__name__]) == sorted(public_names(module) - elsewhere), module.__name__


def test_every_page_is_in_the_table_of_contents():
    contents = (DOCS / "index.md").read_text(encoding="utf-8")
    entries = {line for tree in re.findall(r"```\{toctree\}\n(.*?)```", contents, re.DOTALL) for line in tree.split()}
    assert {page.stem for page in PAGES} - {"index"} <= entries


def test_the_stated_versions_of_python_are_those_that_are_tested():
    root = DOCS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (tested,) = re.findall(r"python: \[(.*)\]", (root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = re.findall(r"\d+\.\d+", tested)
    stated = [found[1] for line in project["classifiers"] if (found := re.search(r":: Python :: (\d+\.\d+)$", line))]
    assert stated == versions
    assert project["requires-python"] == f">={versions[0]}"
    assert f"OLDEST_PYTHON ?= python{versions[0]}\n" in (root / "Makefile").read_text(encoding="utf-8")
