"""The page that puts each claim of the paper's Section 6 beside what was measured, as Markdown and as HTML."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surecut._files import write_whole
from surecut.study import NAMES, get_experiment
from surecut.study.experiment import Finding
from surecut.study.store import RESULTS, Store, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from surecut.study.experiment import Claim, Experiment

TITLE = "The paper's experiments, run again"
INTRODUCTION = (
    "Each claim of Section 6 of Kotłowski and Dembczyński, Surrogate regret bounds for generalized classification "
    "performance metrics, beside what was measured here. Numbers are means with their standard errors. A verdict "
    "follows from the numbers by the rule that stands beside them. Claims marked (Ours) are not the paper's."
)
UNFINISHED = "Not all repetitions are finished; of these there are:"
COMMANDS = """pip install "surecut[cli,study]"
surecut study run all --scale paper --n-jobs 2
surecut study plot all
surecut study report"""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { border-bottom: 1px solid #ddd; padding: .5rem; text-align: left;
vertical-align: top; overflow-wrap: anywhere } td:first-child { width: 30% } td:nth-child(2) { width: 6.5rem }
td p { margin: 0 0 .4rem } figure { margin: 1.5rem 0 } figcaption { color: #444; font-size: .9rem }
img { max-width: 100% } .holds { color: #00704f } .does-not-hold { color: #b04400 } .not-testable { color: #555 }
.rule { color: #555; font-size: .9rem } pre { background: #f4f4f4; padding: .7rem; overflow-x: auto }
@media (max-width: 40rem) { tr, td { display: block; width: auto !important; border: 0; padding: .2rem 0 }
tr { border-bottom: 1px solid #ddd; padding: .6rem 0 } tr:first-child { display: none } }
"""


@dataclass(frozen=True)
class Chapter:
    """One experiment in the report."""

    experiment: Experiment
    manifest: dict[str, Any]
    claims: list[Claim]
    figures: dict[str, str]
    """Captions by the path of the picture."""

    @property
    def where(self) -> str:
        """Where the paper has it."""
        return f"Section {self.experiment.section}." if self.experiment.section else "Not in the paper."

    @property
    def how(self) -> str:
        made = self.manifest
        finished = f"{made['finished']:,} of {made['cells']:,} cells"
        versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
        return f"{finished}, {made['seconds_of_computing'] / 60:.1f} minutes of computing on one core, {versions}."

    @property
    def unfinished(self) -> list[str]:
        """What lacks repetitions, and how many it has."""
        return [f"{name}: {count}" for name, count in self.manifest["unfinished"].items()]


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
    paths = {f"{name}/{figure}.svg": caption for figure, caption in experiment.captions.items()}
    drawn = {path: caption for path, caption in paths.items() if (out / path).exists()}
    return Chapter(experiment, store.manifest(), experiment.claims(store.table()), drawn)


def summary(chapters: list[Chapter]) -> str:
    """How many claims have which verdict."""
    verdicts = [claim.verdict for chapter in chapters for claim in chapter.claims]
    counts = ", ".join(f"{verdict.value}: {verdicts.count(verdict)}" for verdict in Finding)
    return f"Of {len(verdicts)} claims, {counts}."


def exceptions(chapters: list[Chapter]) -> list[tuple[str, str]]:
    """The claims that do not hold or cannot be tested, each with its experiment."""
    return [
        (chapter.experiment.name, f"{claim.verdict.value}: {claim.text}")
        for chapter in chapters
        for claim in chapter.claims
        if claim.verdict is not Finding.HOLDS
    ]


def _markdown(chapters: list[Chapter]) -> str:
    lines = [f"# {TITLE}", "", INTRODUCTION, summary(chapters), ""]
    lines += [f"- {name}, {what}" for name, what in exceptions(chapters)]
    lines += ["", "```sh", COMMANDS, "```", ""]
    for chapter in chapters:
        experiment = chapter.experiment
        lines += [f"## {experiment.name}: {experiment.title}", "", f"{chapter.where} Made by", ""]
        lines += ["```sh", chapter.manifest["command"], "```", "", chapter.how, ""]
        if chapter.unfinished:
            lines += [UNFINISHED, "", *(f"- {what}" for what in chapter.unfinished), ""]
        for path, caption in chapter.figures.items():
            lines += [f"![{caption}]({path})", "", f"*{caption}*", ""]
        lines += ["| the paper | here | measured |", "|---|---|---|"]
        for claim in chapter.claims:
            measured = "<br>".join(sentences for _, sentences in _measured(claim))
            lines.append(f"| {_cell(claim.text)} | **{claim.verdict.value}** | {_cell(measured)} |")
        lines.append("")
    return "\n".join(lines)


def _measured(claim: Claim) -> list[tuple[str, str]]:
    """What stands beside a claim, and what kind of sentence each is."""
    parts = [("evidence", f"{claim.evidence}."), ("remark", claim.remark), ("rule", f"Holds if {claim.rule}.")]
    if claim.first_rule:
        parts.append(("rule", f"This rule was chosen after the numbers had been seen. Before: {claim.first_rule}."))
    return [(kind, sentences) for kind, sentences in parts if sentences]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    """Text as HTML, what stands between backticks as code.

    >>> _code("`a < b`, so")
    '<code>a &lt; b</code>, so'
    """
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _html(chapters: list[Chapter]) -> str:
    say = html.escape
    opening = f"{INTRODUCTION} {summary(chapters)}"
    listed = "".join(
        f'<li><a href="#{say(name)}">{say(name)}</a>, {_code(what)}</li>' for name, what in exceptions(chapters)
    )
    parts = [f"<h1>{say(TITLE)}</h1>", f"<p>{say(opening)}</p>", f"<ul>{listed}</ul>", f"<pre>{say(COMMANDS)}</pre>"]
    for chapter in chapters:
        experiment = chapter.experiment
        parts.append(f'<h2 id="{say(experiment.name)}">{say(experiment.name)}: {say(experiment.title)}</h2>')
        parts.append(f"<p>{say(chapter.where)} Made by</p>")
        parts.append(f"<pre>{say(chapter.manifest['command'])}</pre>\n<p>{say(chapter.how)}</p>")
        if chapter.unfinished:
            listed = "".join(f"<li>{say(what)}</li>" for what in chapter.unfinished)
            parts.append(f"<details><summary>{say(UNFINISHED)}</summary><ul>{listed}</ul></details>")
        for path, caption in chapter.figures.items():
            picture = f'<img src="{say(path)}" alt="{say(caption)}">'
            parts.append(f"<figure>{picture}<figcaption>{say(caption)}</figcaption></figure>")
        parts.append("<table><tr><th>the paper</th><th>here</th><th>measured</th></tr>")
        for claim in chapter.claims:
            verdict = claim.verdict.value
            measured = "".join(f'<p class="{kind}">{_code(sentences)}</p>' for kind, sentences in _measured(claim))
            parts.append(
                f'<tr><td>{_code(claim.text)}</td><td class="{verdict.replace(" ", "-")}"><b>{say(verdict)}</b></td>'
                f"<td>{measured}</td></tr>"
            )
        parts.append("</table>")
    body = "\n".join(parts)
    metas = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{metas}<title>{say(TITLE)}</title><style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'
