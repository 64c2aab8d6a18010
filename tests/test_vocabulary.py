"""Code and documentation use the words of scikit-learn's documentation, one for each thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

INSTEAD = {
    r"strangers?": "invalid labels, unknown labels",
    r"told[ _]apart": "distinct",
    r"made anew": "recomputed",
    r"by halves": "partially written",
    r"(?<!agreement )(?<!jaccard )beyond chance": "statistically significant",
    r"(is|are) dear": "expensive",
    r"rows that (have )?tuned": "validation rows",
    r"rows to come": "new data",
    r"fresh (rows|data)": "held-out data, new data",
    r"refut(e|es|ed)": "rejected",
    r"as chance makes": "within simulation error",
    r"mend(s|ed|ing)?": "fix",
}
"""Words that a reader would stumble over, and what to write."""

TEXTS = [
    path
    for pattern in ("src/surecut/**/*.py", "src/surecut/**/*.html", "docs/*.md", "docs/examples/*.py", "*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "CHANGELOG.md"
]


@pytest.mark.parametrize("word", INSTEAD)
def test_the_words_are_those_of_the_field(word):
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, f"write {INSTEAD[word]!r}:\n" + "\n".join(found)


def test_there_is_something_to_read():
    assert len(TEXTS) > 100
