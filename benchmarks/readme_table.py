"""The README's benchmark table, from the last results: `python benchmarks/readme_table.py` rewrites it.

`make bench` runs it after the measurement, and a test holds that the README shows what the results say.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "tuning.md"
README = ROOT / "README.md"

SIZES = ("100,000", "1,000,000", "10,000,000")
COLUMN = "30% float64"
ROWS = {
    "**surecut**": "surecut",
    "surecut, NumPy only": "surecut, NumPy only",
    "scikit-learn `precision_recall_curve` + argmax": "sklearn `precision_recall_curve` + argmax",
    "scikit-learn `TunedThresholdClassifierCV`": "sklearn `TunedThresholdClassifierCV`",
    "reading the scores once: `scores.sum()`": "limit: `s.sum()`",
}
BEGIN, END = "<!-- begin: benchmarks/readme_table.py -->", "<!-- end -->"


def times(results: str, size: str) -> dict[str, str]:
    """The first table of a size: what each contender took, in one column."""
    section = re.search(rf"^## {size} rows\n\n(.*?)\n\n", results, re.MULTILINE | re.DOTALL)
    if section is None:
        raise ValueError(f"the results have no section '## {size} rows': run make bench")
    heading, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in section[1].splitlines())
    column = heading.index(COLUMN)
    return {cells[0]: cells[column] for cells in lines}


def table(results: str) -> str:
    """The table in Markdown."""
    measured = {size: times(results, size) for size in SIZES}
    lines = [
        f"| time for the best F1 cut | {' | '.join(f'{size} rows' for size in SIZES)} |",
        "|---|" + "---:|" * len(SIZES),
    ]
    for shown, name in ROWS.items():
        lines.append(f"| {shown} | {' | '.join(measured[size][name] for size in SIZES)} |")
    return "\n".join(lines)


def with_table(readme: str, results: str) -> str:
    """The README with the table between its marks."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}"


if __name__ == "__main__":
    README.write_text(
        with_table(README.read_text(encoding="utf-8"), RESULTS.read_text(encoding="utf-8")), encoding="utf-8"
    )
