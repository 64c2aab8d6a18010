"""Random options of every command: whatever is asked, an answer or a sentence, and no file is lost or half written.

`SURECUT_OPTION_RUNS=5000 pytest tests/hostile/test_command_options.py` draws more command lines,
`SURECUT_OPTION_SEED=1` others. What fails is printed as it would be typed.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from surecut import tune_bands, tune_bands_frame, tune_threshold, tune_thresholds

pytest.importorskip("duckdb", reason="files are read by DuckDB")
pandas = pytest.importorskip("pandas")
typer = pytest.importorskip("typer")
testing = pytest.importorskip("typer.testing")

RUNS = int(os.environ.get("SURECUT_OPTION_RUNS", "280"))
SEED = int(os.environ.get("SURECUT_OPTION_SEED", "0"))

RUNNER = testing.CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})

CODES = {"check": {0, 1, 2, 3}}
"""Exit codes that the documentation names, where they are more than done, does not fit, and misspelt."""

NONSENSE = [
    "",
    " ",
    "-",
    "--",
    "x",
    "\x1b[31m",
    "ü",
    "½",
    "١",
    "𝔘\u200b",
    "new\nline",
    "'; DROP TABLE parsed; --",
    '"',
    "{metric}",
    "{0!r}",
    "%s",
    "[bold]",
    "*",
    "[",
    "a" * 5_000,
]
"""What no option expects."""

NUMBERS = [
    "0",
    "1",
    "-1",
    "0.5",
    "0.95",
    "0.999999999999",
    "1e-9",
    "5e-324",
    "2",
    "7",
    "100",
    "1e6",
    "1e308",
    "1e400",
    "nan",
    "-nan",
    "inf",
    "-inf",
    "0,5",
    "50%",
    "1_0",
    "0x10",
    "9" * 400,
    "9" * 5_000,
    "-0.0",
]

COLUMNS = ["label", "score", "y", "LABEL", " score ", "tag", "weight", "fraction", "group", "text", "empty", "no such"]

METRICS = [
    "f1",
    "F1",
    "accuracy",
    "am",
    "mcc",
    "precision",
    "recall",
    "f1.5",
    "f0",
    "f-1",
    "fnan",
    "finf",
    "f1e200",
    "f1e-200",
    "fbeta(2)",
    "fbeta(1e200)",
    "fbeta(beta=1e-300)",
    "f1,f2",
    "utility(fp=-2, fn=-100)",
    "utility(fp=nan)",
    "utility(fp=1e308, fn=-1e308)",
    "utility()",
    "utility(fp=2)",
    "utility(",
    "tversky(0, 0)",
    "tversky(0.3, 0.7)",
    "tversky(alpha=-1, beta=1)",
    "weighted_accuracy(0, 0)",
    "weighted_accuracy(1, 1e300)",
    "__import__('os')",
    "f1)",
    "kappa",
    "gilbert",
    "hmean",
    "gmean",
    "specificity",
]

CONSTRAINTS = [
    "precision>=0.5",
    "precision >= 0.9",
    "recall>=1",
    "recall<=0",
    "fpr<=0.1",
    "predicted_positive_rate<=0.01",
    "precision>=nan",
    "precision>=1e400",
    "precision>=-1",
    "fpr<=5",
    "precision>0.5",
    "precision=0.5",
    ">=0.5",
    "precision>=",
    "precision>=0.5>=0.5",
    "no_such_rate>=0.5",
    "f1>=0.5",
    "fbeta(1e200)>=0.1",
    "recall>=0.9999999999999999999",
]

CONDITIONS = [
    "ppv>=0.5",
    "ppv >= 90%",
    "npv>=0.5",
    "npv>=1",
    "ppv>=1",
    "ppv<=0",
    "share<=0.5",
    "share>=0.2",
    "share<=0",
    "recall>=0.5",
    "fpr<=0.1",
    "fnr<=0.1",
    "f1>=0.5",
    "ppv>=0.5 and recall>=0.2",
    "ppv>=nan",
    "ppv>=2",
    "ppv",
    ">=",
    "prevalence>=0.5",
]

READ = [
    "rows.csv",
    "rows.parquet",
    "rows.jsonl",
    "rows.csv.gz",
    "folder",
    "a[1].csv",
    "*.csv",
    "hostile.csv",
    "one row.csv",
    "negatives.csv",
    "other.csv",
    "header.csv",
    "nothing.csv",
    "broken.csv.gz",
    "broken.parquet",
    "no such.csv",
    "empty folder",
    "loop.csv",
    "cut.json",
    "/dev/null",
    "/dev/full",
    ".",
    "rows.csv/rows.csv",
    "a" * 300 + ".csv",
    "~/rows.csv",
    "rows.xlsx",
    "-",
]

CUTS = [
    "cut.json",
    "cuts.json",
    "cuts.parquet",
    "constrained.json",
    "weighted.json",
    "texts.json",
    "bands.json",
    "sure bands.json",
    "groups.json",
    "broken.json",
    "broken bands.json",
    "rows.csv",
    "folder",
    "loop.csv",
    "no such.json",
    "/dev/null",
    "",
    "cut.json/cut.json",
]

WRITTEN = [
    "out.json",
    "out.csv",
    "out.tsv",
    "out.jsonl",
    "out.parquet",
    "out.html",
    "out.svg",
    "out.png",
    "out-{metric}.json",
    "out",
    "out.xlsx",
    "kept.json",
    "kept.csv",
    "kept.html",
    "kept.png",
    "kept.parquet",
    "rows.csv",
    "cut.json",
    "link.json",
    "loop.csv",
    "loop.json",
    "loop.html",
    "folder",
    "folder/out.csv",
    "folder.html",
    "no such/out.json",
    "rows.csv/out.json",
    "/dev/null",
    "/dev/full",
    "",
    ".",
    "/",
    "b" * 300 + ".json",
]

VALUES = {
    "file": READ,
    "reference": READ,
    "cut": CUTS,
    "out": WRITTEN,
    "report": WRITTEN,
    "label": COLUMNS,
    "score": COLUMNS,
    "weight": COLUMNS,
    "groups": COLUMNS,
    "by": COLUMNS,
    "name": ["predicted", "score", "Score", "flag", "surecut: score", "surecut: key 0", "discrete", "all"],
    "negative": ["0", "1", "no", "true"],
    "pos_label": ["1", "0", "true", "yes", "a", "1.0", "nan", "no such"],
    "metric": METRICS,
    "constraint": CONSTRAINTS,
    "upper": CONDITIONS,
    "lower": CONDITIONS,
    "condition": [f"{zone}: {one}" for one in CONDITIONS for zone in ("ask", "no", "yes", "maybe", "")] + CONDITIONS,
    "gain": [
        "yes: -5, 1",
        "no: 0, -4",
        "ask: -0.5",
        "ask:-1",
        "no: 1, 0",
        "yes: 0, 1",
        "yes: 1, -5",
        "maybe: 1",
        "yes: nan",
        "yes: 1e308, -1e308",
        "yes: inf, 0",
        "yes: 1, 2, 3",
        "yes: ,",
        "yes",
        ": 1",
        "yes: x",
    ],
    "zones": [
        "no,ask,yes",
        "yes,ask,no",
        "no, yes",
        "no",
        "",
        ",",
        "no,no",
        "a,b,c,d,e",
        "[/b],\\[/b],yes",
        ",".join(f"zone {i}" for i in range(80)),
    ],
    "shrinkage": ["auto", "AUTO", *NUMBERS],
    "resamples": [*NUMBERS, "20"],
    "average": ["macro", "micro", "samples", "MACRO"],
    "weights": ["counts", "importance", "count"],
    "missing": ["error", "drop", "negative", "ask"],
    "unknown": ["error", "negative", "drop", "ask"],
    "method": ["holdout", "uniform", "bootstrap", "theorem", "Holdout"],
    "output": ["table", "json", "JSON", "csv"],
    "scale": ["quick", "paper", "slow"],
    "n_jobs": ["0", "-2", "x", "", "1.5", "nan"],  # what starts processes is not drawn
}
"""What an option may be given, by its name; all others are numbers."""

OF_BANDS = {"bands", "upper", "lower", "condition", "gain", "zones"}
OF_CUTS = {"constraint", "shrinkage", "average"}
"""Options of which a command line rarely has both kinds, since that is refused."""

LIKELY = {
    "file": ["rows.csv", "rows.parquet", "hostile.csv"],
    "reference": ["rows.csv", "other.csv"],
    "cut": ["cut.json", "cuts.json", "bands.json", "groups.json"],
    "label": ["label"],
    "score": ["score"],
    "weight": ["weight"],
    "by": ["tag"],
    "groups": ["group"],
    "resamples": ["20"],
}
"""What lets a command go on, so that the other options are reached."""


def commands(command, path=()):
    """Every command that does something, with its options."""
    if not getattr(command, "commands", {}):
        yield path, command.params
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


def app():
    from surecut.cli.app import app

    return app


COMMANDS = dict(commands(typer.main.get_command(app())))


def values_of(option, chance):
    """A value of an option: what it expects, what is nearly that, or nonsense."""
    if chance.random() < 0.06:
        return chance.choice(NONSENSE)
    if option.name in LIKELY and chance.random() < 0.6:
        return chance.choice(LIKELY[option.name])
    if option.name in VALUES:
        return chance.choice(VALUES[option.name])
    return chance.choice(NUMBERS)


def drawn(seed):
    """A command line, by its seed."""
    chance = random.Random(seed)
    path, options = chance.choice([one for one in COMMANDS.items() if one[0][0] != "study" or chance.random() < 0.3])
    line, is_bands = list(path), chance.random() < 0.4
    for option in options:
        if option.param_type_name == "argument":
            if chance.random() < 0.98:
                line.append(values_of(option, chance))
            continue
        often = 0.95 if option.required else 0.7 if option.name in LIKELY else 0.18
        if option.name in OF_BANDS | OF_CUTS:
            often = 0.3 if (option.name in OF_BANDS) == is_bands else 0.03
        for _ in range(chance.choice([1, 1, 1, 2]) if chance.random() < often else 0):
            name = chance.choice([*option.opts, *option.secondary_opts])
            if name in ("--help", "-h"):
                continue
            line += [name] if option.is_flag else [name, values_of(option, chance)]
    if path == ("study", "run"):
        line += ["--minutes", "0"]  # the last one counts
    if chance.random() < 0.03:
        line.insert(chance.randrange(len(line)), chance.choice(["--no-such", "-x", "--debug", "--out", *NONSENSE]))
    return line


# Files


def write_files(folder):
    """What the commands read, and what they may not damage."""
    generator = np.random.default_rng(0)
    scores = np.round(generator.random(60), 3)
    rows = pandas.DataFrame(
        {
            "label": (generator.random(60) < scores).astype(int),
            "score": scores,
            "tag": ["a", "b", "c"] * 20,
            "weight": generator.integers(0, 3, 60),
            "fraction": np.linspace(0, 1, 60),
            "group": generator.integers(0, 30, 60),
            "text": ["it's", "é"] * 30,
            "empty": [None] * 60,
        }
    )
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_csv(folder / "a[1].csv", index=False)
    rows.to_csv(folder / "rows.csv.gz", index=False)
    rows.to_parquet(folder / "rows.parquet")
    rows.to_json(folder / "rows.jsonl", orient="records", lines=True)
    rows[:1].to_csv(folder / "one row.csv", index=False)
    rows[:0].to_csv(folder / "header.csv", index=False)
    rows.assign(label=0).to_csv(folder / "negatives.csv", index=False)
    rows.assign(score=1 - rows["score"], tag="new").to_csv(folder / "other.csv", index=False)
    odd = rows.astype({"label": object, "score": object, "weight": object})
    odd.loc[3, ["label", "score", "tag", "weight"]] = [None, "inf", None, -1]
    odd.loc[4, ["label", "score", "weight"]] = [2, None, "nan"]
    odd.to_csv(folder / "hostile.csv", index=False)
    (folder / "nothing.csv").write_bytes(b"")
    (folder / "rows.xlsx").write_bytes(b"PK\x03\x04")
    (folder / "broken.csv.gz").write_bytes((folder / "rows.csv.gz").read_bytes()[:200])
    (folder / "broken.parquet").write_bytes((folder / "rows.parquet").read_bytes()[:-50])
    (folder / "folder").mkdir()
    (folder / "folder.html").mkdir()
    (folder / "empty folder").mkdir()
    shutil.copy(folder / "rows.csv", folder / "folder")
    for name in ("loop.csv", "loop.json", "loop.html"):
        (folder / name).symlink_to(name)
    for name in ("json", "csv", "html", "png", "parquet"):
        (folder / f"kept.{name}").write_bytes(b"kept")
    (folder / "link.json").symlink_to("kept.json")

    label, matrix = rows["label"], np.column_stack([rows["score"]] * 3)
    tune_threshold(label, scores).save(folder / "cut.json")
    tune_threshold(label, scores, sample_weight=rows["fraction"]).save(folder / "weighted.json")
    tune_threshold(label, scores, constraint="precision>=0.5", confidence=0.5).save(folder / "constrained.json")
    tune_threshold(np.where(label, "yes", "no"), scores, pos_label="yes").save(folder / "texts.json")
    many = tune_thresholds(np.column_stack([label] * 3), matrix, labels=["a", "b", "c"])
    many.save(folder / "cuts.json")
    many.save(folder / "cuts.parquet")
    bands = tune_bands(label, scores, upper="ppv>=0.6", lower="npv>=0.6")
    bands.save(folder / "bands.json")
    tune_bands(label, scores, upper="ppv>=0.4", confidence=0.5).save(folder / "sure bands.json")
    tune_bands_frame(rows, label="label", score="score", by="tag", upper="ppv>=0.5").save(folder / "groups.json")
    (folder / "broken.json").write_bytes((folder / "cut.json").read_bytes()[:-40])
    (folder / "broken bands.json").write_bytes((folder / "bands.json").read_bytes().replace(b"ask", b"ASK"))


def contents(folder):
    """Every file with what is in it; links as links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path)] = os.readlink(path)
        elif path.is_file():
            found[str(path)] = path.read_bytes()
        else:
            found[str(path)] = None
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    write_files(folder)
    return folder


@pytest.fixture(autouse=True)
def place(folder, monkeypatch, offline):
    """Commands run in the folder; the picture of the demo takes no second each time, and DuckDB downloads nothing."""
    from surecut.cli import demo

    monkeypatch.chdir(folder)
    story = None

    def measured(random_state=0):
        nonlocal story
        story = story or measure(0)
        return story

    measure = demo.measure
    monkeypatch.setattr(demo, "measure", measured)
    monkeypatch.setattr(demo, "draw", lambda story, out: demo.write_whole(out, b"a picture"))


# The law


def broken(line, folder, before):
    """What a command did that it must not, if anything; `before` is what was in the folder."""
    standard_input = (folder / "rows.csv").read_bytes()
    result = RUNNER.invoke(app(), line, input=standard_input)
    after, name = contents(folder), line[0] if line else ""
    said = result.stderr
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        if "--debug" in line and result.exit_code == 1:
            return None
        return f"{type(result.exception).__name__}: {result.exception}"
    if result.exit_code not in CODES.get(name, {0, 1, 2}):
        return f"exit code {result.exit_code}"
    if "Traceback" in result.output:
        return "a traceback"
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if hidden := [path for path in changed if Path(path).name.startswith(".")]:
        return f"left behind {hidden}"
    if result.exit_code in (0, 3):
        asked = [Path(folder, value).resolve() for value in outputs(line)]
        if others := [path for path in changed if not any(Path(path).resolve().is_relative_to(one) for one in asked)]:
            return f"wrote {others}"
        formats = [line[i + 1] for i in at(line, "--format")]
        return not_json(result.stdout) if formats[-1:] == ["json"] else None
    if changed:
        return f"failed, and changed {changed}"
    if result.exit_code == 2 and not said and "Usage:" in result.stdout:
        return None
    if not said.strip().startswith("surecut: ") and "\nsurecut: " not in said:
        return f"said {said!r}"
    if not names_something(said, line):
        return f"names neither an option nor a file: {said!r}"
    return None


def at(line, option):
    """Where an option stands that has a value."""
    return [i for i, one in enumerate(line[:-1]) if one == option]


def outputs(line):
    """Where a command line says to write, for each metric."""
    for option in ("--out", "--report"):
        for i in at(line, option)[-1:]:
            value = line[i + 1]
            yield value
            if "{metric}" in value:
                from surecut.metrics import get_metric

                yield value.replace("{metric}", "bands")

                for j in at(line, "--metric"):
                    try:
                        yield value.replace("{metric}", get_metric(line[j + 1]).name)
                    except ValueError:
                        continue
    command = next((word for word in line if not word.startswith("-")), "")
    yield from (
        {"demo": ["surecut-demo.png"], "study": ["surecut-study"]}.get(command, []) if "--out" not in line else []
    )


def not_json(text):
    try:
        json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}"
    return None


def names_something(said, line):
    """Whether a message holds an option, a value that was given, or what a column or a file is called."""
    known = r"--[a-z]|[Oo]ption|[Cc]ommand|[Mm]issing argument|standard input|column '|no file|metric '|experiment '"
    known += r"|\bzones?\b|the gains of|bands need rows|rows of one group|same score|(missing|unknown) must be"
    if re.search(rf"{known}|constraint|of the file|cannot write|undefined without rows", said):
        return True
    words = {word for value in line for word in (value, os.path.basename(value), value.partition("(")[0])}
    words |= {" .:"} if "" in line else set()  # to paths the empty text is this folder
    words |= {"* has", *os.listdir()} if "*" in "".join(line) else set()
    return any(word in said for word in words - {"", "x", "-", " ", "*"})


FOUND = {
    "apply rows.csv --cut cut.json --out loop.csv": "leads back to itself",
    "tune rows.csv --out ''": "it is a folder",
    "tune rows.csv --out /": "it is a folder",
    "tune ''": "there is no file ''",
    "tune rows.csv --metric f0": "cannot make the metric 'f0': beta must fulfil",
    "tune rows.csv --metric 'fbeta(1e200)'": "cannot make the metric 'fbeta(1e200)': beta must fulfil",
    "metrics --optimum inf": "--optimum must be",
    "metrics --optimum 1e308": "--optimum must be",
    "metrics --prior 1_0": "--prior must be a share",
    "metrics --prior 5e-324": "--prior must be a share",
    "tune broken.csv.gz": "broken.csv.gz",
    "tune broken.parquet": "broken.parquet",
}
"""Lines that once showed a traceback, or a message without its cause."""


@pytest.mark.parametrize("line", FOUND)
def test_what_was_found_is_told_in_a_sentence(line, folder):
    assert broken(shlex.split(line), folder, contents(folder)) is None
    result = RUNNER.invoke(app(), shlex.split(line))
    assert result.exit_code == 1
    assert FOUND[line] in " ".join(result.stderr.split())


CHUNKS = 8
"""Tests that the runs are divided into, for several processes."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_command_line_is_answered(chunk, folder):
    before, found = contents(folder), {}
    for run in range(chunk, RUNS, CHUNKS):
        line = drawn(f"{SEED}/{run}")
        if what := broken(line, folder, before):
            found[shlex.join(line)] = what
        restore(folder, before)
    assert not found, "\n\n".join(f"surecut {line}\n  {what}" for line, what in found.items())


def restore(folder, before):
    """The files as they were."""
    after = contents(folder)
    for path in sorted(after.keys() - before.keys(), reverse=True):
        os.rmdir(path) if after[path] is None and os.path.isdir(path) else os.unlink(path)
    for path, content in before.items():
        if after.get(path) != content:
            Path(path).write_bytes(content)


def test_the_drawn_lines_reach_every_option_and_every_command():
    """The generator knows the options that there are, and most of what it draws is not refused at once."""
    lines = [drawn(f"{SEED}/{run}") for run in range(3_000)]
    given = {
        (tuple(line[:2]) if line[:1] == ["study"] else (line[0],), part) for line in lines if line for part in line
    }
    for path, options in COMMANDS.items():
        for option in options:
            if option.param_type_name == "option" and not {"--help", "-h"} & set(option.opts):
                assert any((path, name) in given for name in option.opts), (path, option.opts)
