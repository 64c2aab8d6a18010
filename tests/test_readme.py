"""The README's snippets run, in the order in which they stand, and say what they print."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def snippets() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_every_snippet_runs(snippets, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(snippets) == 5
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
    printed = iter(capsys.readouterr().out.splitlines())
    promises = re.findall(r"^print\(.*\)\s+# (.*)", "\n".join(snippets), flags=re.MULTILINE)
    assert len(promises) == 4
    for promised in promises:
        pattern = ".*".join(re.escape(piece) for piece in promised.split("…"))
        assert any(re.match(pattern, line) for line in printed), f"the README promises {promised!r}; it is not printed"
    assert (tmp_path / "cut.json").exists()


def test_the_benchmark_table_is_that_of_the_last_results():
    spec = importlib.util.spec_from_file_location("readme_table", README.parent / "benchmarks" / "readme_table.py")
    readme_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme_table)
    results = readme_table.RESULTS.read_text(encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    assert readme_table.with_table(text, results) == text, "run python benchmarks/readme_table.py"
    assert text.count("(1×)") == 3


def test_every_picture_is_there():
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / picture).is_file()


def test_the_readme_names_the_two_commands():
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
