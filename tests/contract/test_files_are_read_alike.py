"""A file means the same to every function and every command: the same cut, or the same error."""

from __future__ import annotations

import gzip
import json
import warnings

import numpy as np
import pytest

from surecut import Cut, MultilabelCut, apply_frame, certify, tally_frame, tune_frame, tune_threshold
from surecut.sources.readers import PercentWarning

duckdb = pytest.importorskip("duckdb")
pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
typer_testing = pytest.importorskip("typer.testing")

pytestmark = pytest.mark.usefixtures("offline")

RANDOM = np.random.default_rng(0)
SCORES = np.round(RANDOM.random(40), 3)
ROWS = pandas.DataFrame(
    {"label": (RANDOM.random(40) < SCORES).astype(int), "score": SCORES, "tag": ["a", "b"] * 20, "note": ["x,1"] * 40}
)
HALVES = (ROWS[:20], ROWS[20:])


def csv(frame, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, **options)
    return path


def in_latin_1(frame, path):
    return csv(frame.assign(note="ä"), path, encoding="latin-1")


def jsonl(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dict("records")))
    return path


def arrow(frame, path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(frame.to_dict("list") | columns), path)
    return path


def packed(path):
    """The file compressed by gzip."""
    out = path.with_name(f"{path.name}.gz")
    out.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return out


def zst(path, kind):
    """The rows as a file that DuckDB compresses."""
    options = "FORMAT csv, HEADER" if kind == "csv" else "FORMAT json"
    duckdb.connect().from_df(ROWS).query("rows", f"COPY (SELECT * FROM rows) TO '{path}' ({options}, COMPRESSION zstd)")
    return path


def halves(write, folder, ending, days=None):
    """Two files, in folders named like days if there are any."""
    for place, half in enumerate(HALVES):
        write(half, folder / (f"day={days[place]}" if days else "") / f"part-{place}.{ending}")
    return folder


def text(content, name="rows.csv"):
    def written(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def changed(**columns):
    return ROWS.assign(**columns)


def with_commas():
    return ROWS["score"].astype(str).str.replace(".", ",", regex=False)


def several(folder, *files):
    for name, frame in files:
        {"csv": csv, "jsonl": jsonl, "parquet": arrow}[name.rpartition(".")[2]](frame, folder / name)
    return folder


READ = {
    **{ending: lambda f, e=ending: csv(ROWS, f / f"rows.{e}") for ending in ("csv", "txt", "CSV")},
    **{ending: lambda f, e=ending: csv(ROWS, f / f"rows.{e}", sep="\t") for ending in ("tsv", "tab")},
    **{ending: lambda f, e=ending: jsonl(ROWS, f / f"rows.{e}") for ending in ("json", "jsonl", "ndjson")},
    **{ending: lambda f, e=ending: arrow(ROWS, f / f"rows.{e}") for ending in ("parquet", "pq")},
    "csv.gz": lambda f: packed(csv(ROWS, f / "rows.csv")),
    "jsonl.gz": lambda f: packed(jsonl(ROWS, f / "rows.jsonl")),
    "csv.zst": lambda f: zst(f / "rows.csv.zst", "csv"),
    "jsonl.zst": lambda f: zst(f / "rows.jsonl.zst", "json"),
    "glob of csv": lambda f: halves(csv, f, "csv") / "*.csv",
    "glob of jsonl": lambda f: halves(jsonl, f, "jsonl") / "*.jsonl",
    "glob of parquet": lambda f: halves(arrow, f, "parquet") / "**" / "*.parquet",
    "folder of parquet": lambda f: csv(ROWS[:1], halves(arrow, f / "deep", "parquet") / "other.csv").parent.parent,
    "folder of csv": lambda f: text("not a table", "README.txt")(halves(csv, f, "csv")).parent,
    "folder of jsonl": lambda f: text("{}", "cut.json")(halves(jsonl, f, "jsonl")).parent,
    "folder of json": lambda f: halves(jsonl, f, "json"),
    "array of json": lambda f: text(json.dumps(ROWS.to_dict("records")), "rows.json")(f),
    "encodings": lambda f: csv(HALVES[0].assign(note="ä"), in_latin_1(HALVES[1], f / "b.csv").parent / "a.csv").parent,
    "semicolons": lambda f: csv(ROWS, f / "rows.csv", sep=";"),
    "decimal commas": lambda f: csv(changed(score=with_commas()), f / "rows.csv", sep=";"),
    "percent": lambda f: csv(changed(score=(ROWS["score"] * 100).map("{:.1f}%".format)), f / "rows.csv"),
    "text in parquet": lambda f: arrow(changed(score=with_commas()), f / "rows.parquet"),
    "text in json": lambda f: jsonl(changed(score=with_commas()), f / "rows.jsonl"),
    "blanks": lambda f: csv(changed(score=" " + ROWS["score"].astype(str)), f / "rows.csv"),
    "latin-1": lambda f: in_latin_1(ROWS, f / "rows.csv"),
    "integers in csv": lambda f: csv(changed(score=(ROWS["score"] * 1000).astype(int)), f / "rows.csv"),
    "integers in parquet": lambda f: arrow(changed(score=(ROWS["score"] * 1000).astype(int)), f / "rows.parquet"),
    "integers in json": lambda f: jsonl(changed(score=(ROWS["score"] * 1000).astype(int)), f / "rows.jsonl"),
    "negative integers in json": lambda f: jsonl(changed(score=ROWS.index - 20), f / "rows.jsonl"),
    "integers up to 2**53": lambda f: csv(changed(score=2**53 - ROWS.index), f / "rows.csv"),
    "float32": lambda f: arrow(ROWS, f / "rows.parquet", score=pyarrow.array(SCORES, pyarrow.float32())),
    "decimals": lambda f: arrow(ROWS, f / "rows.parquet", score=pyarrow.array(SCORES).cast(pyarrow.decimal128(9, 3))),
    "integers, then fractions": lambda f: several(
        f, ("a.csv", ROWS[:4].assign(score=1)), ("b.csv", HALVES[1]), ("c.csv", ROWS[4:20])
    ),
    "points, then commas": lambda f: several(
        f, ("a.csv", ROWS[:20].assign(score=1)), ("b.csv", changed(score=with_commas())[20:])
    ),
    "columns in another order": lambda f: several(f, ("a.csv", HALVES[0]), ("b.csv", HALVES[1][list(ROWS)[::-1]])),
    "other delimiters": lambda f: csv(HALVES[0], csv(HALVES[1], f / "a.csv", sep=";").parent / "b.csv").parent,
    "types in parquet": lambda f: several(
        f, ("a.parquet", ROWS[:4].assign(score=1, label=[True, False] * 2)), ("b.parquet", ROWS[4:])
    ),
    "keys that are text later": lambda f: several(f, ("a.csv", ROWS[:4].assign(tag=7)), ("b.csv", ROWS[4:])),
    **{
        f"{kind} in folders of days {days}": lambda f, w=write, k=kind, d=days: halves(w, f, k, days=d)
        for kind, write in (("csv", csv), ("jsonl", jsonl), ("parquet", arrow))
        for days in ((1, 2), (1, "all"))
    },
}

ODD = {
    "empty": text(""),
    "blank": text("\n \n"),
    "only a header": text("label,score,tag\n"),
    "ragged": text("label,score,tag\n1,0.5,a\n0,0.5,a,7\n"),
    "ragged far down": text("label,score,tag\n" + "1,0.5,a\n0,0.2,b\n" * 30_000 + "1\n"),
    "text as scores": text("label,score,tag\n1,high,a\n0,low,b\n"),
    "text far down": text("label,score,tag\n" + "1,0.5,a\n0,0.2,b\n" * 30_000 + "1,n/a,a\n"),
    "dates as scores": text("label,score,tag\n1,2024-01-01,a\n0,2024-01-02,b\n"),
    "some percent": text("label,score,tag\n1,5%,a\n0,0.5,b\n"),
    "thousands": text('label,score,tag\n1,"3,185",a\n0,950,b\n'),
    "an unknown ending": text("PK", "rows.xlsx"),
    "a parquet file in gzip": text("PK", "rows.parquet.gz"),
    "no parquet": text("no parquet at all", "rows.parquet"),
    "no json": text('{"label": 1, "score": 0.5, "tag": "a"}\n{"label": 0, "sco', "rows.jsonl"),
    "no gzip": text("label,score,tag\n1,0.5,a\n", "rows.csv.gz"),
    "half a parquet file": lambda f: text((p := arrow(ROWS, f / "rows.parquet")).read_bytes()[:900], p.name)(f),
    "half a gzip file": lambda f: text((p := packed(csv(ROWS, f / "x.csv"))).read_bytes()[:90], p.name)(f),
    "no such file": lambda f: f / "rows.csv",
    "no match": lambda f: f / "*.csv",
    "nothing in the folder": lambda f: f,
    "two kinds in the folder": lambda f: jsonl(ROWS, csv(ROWS, f / "rows.csv").with_suffix(".jsonl")).parent,
    "two kinds in a pattern": lambda f: arrow(ROWS, csv(ROWS, f / "rows.csv").with_suffix(".parquet")).parent / "*",
    "a file without the score": lambda f: several(f, ("a.csv", ROWS), ("b.csv", ROWS.drop(columns="score"))),
    "a parquet file without the score": lambda f: several(
        f, ("a.parquet", ROWS), ("b.parquet", ROWS.drop(columns="score"))
    ),
    "types with nothing in common": lambda f: several(f, ("a.parquet", ROWS), ("b.parquet", changed(score="x"))),
    "integers beyond 2**53 and fractions in csv": lambda f: csv(
        changed(score=["9007199254740993", *ROWS["score"][1:].astype(str)]), f / "rows.csv"
    ),
    "integers beyond 2**53 and fractions in json": lambda f: jsonl(
        changed(score=pandas.Series([2**53 + 1, *ROWS["score"][1:]], dtype=object)), f / "rows.jsonl"
    ),
    "integers beyond 2**64 in csv": lambda f: csv(changed(score="99999999999999999999"), f / "rows.csv"),
    "integers beyond 2**53 and fractions in parquet": lambda f: several(
        f, ("a.parquet", changed(score=2**53 + 1)), ("b.parquet", ROWS)
    ),
    "a URL": lambda _: "https://127.0.0.1:1/rows.parquet",
    "a URL of csv": lambda _: "https://127.0.0.1:1/rows.csv?token=1",
    "a bucket": lambda _: "s3://nowhere/rows-*.jsonl",
}

NOT_APPLIED = {
    # Rows that apply_frame does not miss, or meets when its result is read
    "only a header",
    "integers beyond 2**53 and fractions in parquet",
}

TOO_LARGE = {
    # The error of grouped rows counts them, that of arrays calls them y_score
    "integers beyond 2**53 in csv": lambda f: csv(changed(score=2**53 + 1 + ROWS.index), f / "rows.csv"),
    "integers beyond 2**53 in parquet": lambda f: arrow(changed(score=2**53 + 1 + ROWS.index), f / "rows.parquet"),
    "integers beyond 2**53 in json": lambda f: jsonl(changed(score=2**53 + 1 + ROWS.index), f / "rows.jsonl"),
}


def run(*arguments):
    """Run a command, and raise what it raises."""
    from surecut.cli.app import app

    result = typer_testing.CliRunner().invoke(app, ["--debug", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


def of_cut(cut):
    return (cut.threshold, cut.value, cut.fingerprint)


def of_groups(cut):
    return (cut.labels, cut.thresholds.tolist(), cut.value)


def tuned(path, folder):
    return of_cut(tune_frame(path, label="label", score="score"))


def tallied(path, folder):
    return of_cut(tally_frame(path, label="label", score="score").best_cut("f1"))


def tuned_by_command(path, folder):
    run("tune", path, "--out", folder / "cut.json")
    return of_cut(Cut.load(folder / "cut.json"))


def tuned_with_a_page(path, folder):
    run("tune", path, "--out", folder / "cut.json", "--report", folder / "page.html")
    return of_cut(Cut.load(folder / "cut.json"))


def grouped(path, folder):
    return of_groups(tune_frame(path, label="label", score="score", by=key_of(path)))


def grouped_by_command(path, folder):
    run("tune", path, "--out", folder / "cuts.json", "--by", key_of(path))
    return of_groups(MultilabelCut.load(folder / "cuts.json"))


def key_of(path):
    return "day" if "days" in str(path) else "tag"


CUT = tune_threshold(ROWS["label"], ROWS["score"])


def applied(path, folder):
    rows = apply_frame(path, CUT, score="score").df()
    return sorted(zip(rows["label"].astype(int).tolist(), rows["predicted"].tolist(), strict=True))


def applied_by_command(path, folder, ending="parquet"):
    CUT.save(folder / "cut.json")
    out = folder / f"out.{ending}"
    run("apply", path, "--cut", folder / "cut.json", "--out", out, "--score", "score")
    rows = pandas.read_csv(out) if ending == "csv" else parquet.read_table(out).to_pandas()
    return sorted(zip(rows["label"].astype(int).tolist(), rows["predicted"].tolist(), strict=True))


def applied_as_text(path, folder):
    return applied_by_command(path, folder, "csv")


def certified(path, folder):
    tally = tally_frame(path, label="label", score="score")
    found = certify(CUT, tally=tally, method="uniform")
    return found.lower


def certified_by_command(path, folder):
    from surecut.cli.files import Table

    with Table(str(path)) as table:
        rows = table.rows(label="label", score="score").arrays()
    found = certify(CUT, rows.is_positive, rows.scores, method="uniform")
    return found.lower


TUNING = (tuned, tallied, tuned_by_command, tuned_with_a_page)
GROUPING = (grouped, grouped_by_command)
APPLYING = (applied, applied_by_command, applied_as_text)
CERTIFYING = (certified, certified_by_command)


def outcome(ask, path, folder):
    """The answer, or the type and the text of the error."""
    folder.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PercentWarning)
        try:
            return ask(path, folder)
        except (ValueError, TypeError, OSError) as error:
            return type(error).__name__, str(error)


@pytest.fixture
def place(tmp_path, request):
    folder = tmp_path / ("days" if "days" in request.node.callspec.id else "rows")
    folder.mkdir()
    return folder


@pytest.mark.parametrize("same", [TUNING, GROUPING, APPLYING, CERTIFYING], ids=["tune", "by", "apply", "certify"])
@pytest.mark.parametrize("make", READ.values(), ids=READ)
def test_every_function_and_command_reads_the_same_rows(tmp_path, place, make, same):
    path = str(make(place))
    first, *others = [outcome(ask, path, tmp_path / "out") for ask in same]
    assert first[0] not in ("ValueError", "TypeError", "OSError") if isinstance(first, tuple) else True, first
    assert all(other == first for other in others), [first, *others]


@pytest.mark.parametrize("make", [READ[name] for name in ("csv", "json", "parquet", "folder of csv", "percent")])
def test_they_are_the_rows_that_were_written(tmp_path, make):
    (tmp_path / "rows").mkdir()
    found = outcome(tuned, str(make(tmp_path / "rows")), tmp_path / "out")
    assert found[:2] == (CUT.threshold, CUT.value)


@pytest.mark.parametrize("what", ODD)
def test_every_function_and_command_raises_the_same_error(tmp_path, place, what):
    path = str(ODD[what](place))
    asks = [*TUNING, *GROUPING, *(() if what in NOT_APPLIED else APPLYING)]
    first, *others = [outcome(ask, path, tmp_path / "out") for ask in asks]
    assert first[0] in ("ValueError", "TypeError", "OSError", "FileNotFoundError"), first
    assert all(other == first for other in others), [first, *others]
    assert "\n" not in first[1]


@pytest.mark.parametrize("same", [TUNING[:3], GROUPING], ids=["tune", "by"])
@pytest.mark.parametrize("make", TOO_LARGE.values(), ids=TOO_LARGE)
def test_integers_that_have_no_double_are_refused_alike(tmp_path, place, make, same):
    path = str(make(place))
    first, *others = [outcome(ask, path, tmp_path / "out") for ask in same]
    assert first[0] == "ValueError"
    assert "beyond 2**53" in first[1]
    assert all(other == first for other in others), [first, *others]


@pytest.mark.parametrize("write", [csv, jsonl, arrow])
@pytest.mark.parametrize(
    "scores",
    [ROWS.index - 20, ROWS.index + 0.5, 10.0 ** (7 * ROWS.index - 140)],
    ids=["integers", "fractions", "magnitudes"],
)
def test_numbers_are_those_of_arrays(tmp_path, write, scores):
    ending = {csv: "csv", jsonl: "jsonl", arrow: "parquet"}[write]
    found = tune_frame(write(changed(score=scores), tmp_path / f"rows.{ending}"), label="label", score="score")
    assert of_cut(found) == of_cut(tune_threshold(ROWS["label"], scores))


def test_groups_are_found_in_folders_by_every_kind_of_path(tmp_path):
    halves(csv, tmp_path / "days", "csv", days=(1, 2))
    for path in (tmp_path / "days", tmp_path / "days" / "*" / "*.csv", tmp_path / "days" / "**" / "*.csv"):
        cut = tune_frame(str(path), label="label", score="score", by="day")
        assert cut.labels == (1, 2)
        assert cut.rows.tolist() == [20, 20]
