"""The page that puts each claim of the paper's Section 6 beside what was measured, as Markdown and as HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surecut.cut import write_whole
from surecut.study import NAMES, get_experiment
from surecut.study.experiment import Verdict
from surecut.study.store import RESULTS, Store, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from surecut.study.experiment import Claim, Experiment

TITLE = "The paper's experiments, run again"
INTRODUCTION = (
    "Each claim of Section 6 of Kotłowski and Dembczyński, Surrogate regret bounds for generalized classification "
    "performance metrics, beside what was measured here. Numbers are means with their standard errors."
)
COMMANDS = """pip install "surecut[cli,study]"
surecut study run all --scale paper --n-jobs 2
surecut study plot all
surecut study report"""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { border-bottom: 1px solid #ddd; padding: .5rem; text-align: left;
vertical-align: top } img { max-width: 100% } .holds { color: #00704f } .does-not-hold { color: #b04400 }
.not-testable { color: #666 } code { background: #f4f4f4 }
"""


@dataclass(frozen=True)
class Chapter:
    """One experiment in the report."""

    experiment: Experiment
    manifest: dict[str, Any]
    claims: list[Claim]
    figures: list[str]

    @property
    def how(self) -> str:
        made = self.manifest
        finished = f"{made['finished']:,} of {made['cells']:,} cells"
        versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
        return f"{finished}, {made['seconds_of_computing'] / 60:.1f} minutes of computing, {versions}{self._unfinished}"

    @property
    def _unfinished(self) -> str:
        if not self.manifest["unfinished"]:
            return ""
        listed = "; ".join(f"{name}: {count}" for name, count in self.manifest["unfinished"].items())
        return f". Repetitions finished, where not all are: {listed}"


def write_report(out: Path) -> list[Path]:
    """Write report.md and report.html from the results in a folder; figures are those that `plot` drew."""
    chapters = [_chapter(name, out) for name in NAMES if (out / name / RESULTS).exists()]
    if not chapters:
        raise StoreError(f"there are no results in {out}: surecut study run NAME --out {out} first")
    pages = {out / "report.md": _markdown(chapters), out / "report.html": _html(chapters)}
    for path, text in pages.items():
        write_whole(path, text.encode())
    return list(pages)


def _chapter(name: str, out: Path) -> Chapter:
    experiment, store = get_experiment(name), Store(out / name)
    figures = sorted(path.name for path in store.folder.glob("*.svg"))
    return Chapter(experiment, store.manifest(), experiment.claims(store.table()), figures)


def summary(chapters: list[Chapter]) -> str:
    """How many claims have which verdict."""
    verdicts = [claim.verdict for chapter in chapters for claim in chapter.claims]
    counts = ", ".join(f"{verdict.value}: {verdicts.count(verdict)}" for verdict in Verdict)
    return f"Of {len(verdicts)} claims, {counts}."


def _markdown(chapters: list[Chapter]) -> str:
    lines = [f"# {TITLE}", "", INTRODUCTION, summary(chapters), "", "```sh", COMMANDS, "```", ""]
    for chapter in chapters:
        experiment = chapter.experiment
        lines += [f"## {experiment.name}: {experiment.title}", "", f"Section {experiment.section}. Made by", ""]
        lines += ["```", chapter.manifest["command"], "```", "", f"({chapter.how}).", ""]
        for figure in chapter.figures:
            alternative = f"{experiment.name}, {figure.removesuffix('.svg').replace('-', ' ')}"
            lines += [f"![{alternative}]({experiment.name}/{figure})", ""]
        lines += ["| the paper | here | measured |", "|---|---|---|"]
        for claim in chapter.claims:
            measured = f"{claim.evidence}. {claim.remark}".rstrip()
            lines.append(f"| {_cell(claim.text)} | **{claim.verdict.value}** | {_cell(measured)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(chapters: list[Chapter]) -> str:
    say = html.escape
    opening = f"{INTRODUCTION} {summary(chapters)}"
    parts = [f"<h1>{say(TITLE)}</h1>", f"<p>{say(opening)}</p>", f"<pre>{say(COMMANDS)}</pre>"]
    for chapter in chapters:
        experiment = chapter.experiment
        parts.append(f"<h2>{say(experiment.name)}: {say(experiment.title)}</h2>")
        parts.append(f"<p>Section {say(experiment.section)}. Made by <code>{say(chapter.manifest['command'])}</code>")
        parts.append(f"({say(chapter.how)}).</p>")
        for figure in chapter.figures:
            source = say(f"{experiment.name}/{figure}")
            parts.append(
                f'<p><img src="{source}" alt="{say(experiment.name)}, {say(figure.removesuffix(".svg"))}"></p>'
            )
        parts.append("<table><tr><th>the paper</th><th>here</th><th>measured</th></tr>")
        for claim in chapter.claims:
            verdict = claim.verdict.value
            measured = f"{claim.evidence}. {claim.remark}".rstrip()
            parts.append(
                f'<tr><td>{say(claim.text)}</td><td class="{verdict.replace(" ", "-")}"><b>{say(verdict)}</b></td>'
                f"<td>{say(measured)}</td></tr>"
            )
        parts.append("</table>")
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>{say(TITLE)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
