"""The README's snippets run, in the order in which they stand, and say what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def snippets() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_every_snippet_runs(snippets, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(snippets) == 3
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
    printed = capsys.readouterr().out
    promised = re.search(r"print\(cut\)\s+# (.*)", snippets[0]).group(1)
    pattern = ".*".join(re.escape(piece) for piece in promised.split("…"))
    assert re.match(pattern, printed), f"the README promises {promised!r}, the snippet prints {printed!r}"
    assert (tmp_path / "cut.json").exists()


def test_the_readme_names_the_two_commands():
    text = README.read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text
