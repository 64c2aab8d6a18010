"""Tables as other programs write them: each is read, or the message says what to change."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pytest

duckdb = pytest.importorskip("duckdb", reason="files are read by DuckDB")

from surecut.cli.files import SCORE, Table, literal, quoted  # noqa: E402


@pytest.fixture
def write(tmp_path):
    def written(content, name="scores.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return written


def read(path, **options):
    with Table(path) as table:
        rows = table.rows(**options)
        arrays = rows.arrays()
        assert len(rows) == len(arrays.scores)
        assert rows.positives == arrays.is_positive.sum()
        return arrays


PLAIN = "y,p\n1,0.5\n0,0.25\n1,0.75\n"
WRITTEN = {
    "plain": (PLAIN, {}),
    "windows": (PLAIN.replace("\n", "\r\n"), {}),
    "bom": ("\ufeff" + PLAIN, {}),
    "semicolons": (PLAIN.replace(",", ";"), {}),
    "tabs": (PLAIN.replace(",", "\t"), {}),
    "pipes": (PLAIN.replace(",", "|"), {}),
    "quotes": ('"y","p"\n"1","0.5"\n"0","0.25"\n"1","0.75"\n', {}),
    "odd_headers": ('" True Label ",Score (%)\n1,0.5\n0,0.25\n1,0.75\n', {"label": "true label", "score": "score (%)"}),
    "yes_no": ("y,p\nyes,0.5\nno,0.25\nyes,0.75\n", {}),
    "Yes_No": ("y,p\nYES,0.5\nNo,0.25\nYes ,0.75\n".replace("Yes ", "YES"), {}),
    "true_false": ("y,p\nTrue,0.5\nFalse,0.25\nTrue,0.75\n", {}),
    "words": ("y,p\nspam,0.5\nham,0.25\nspam,0.75\n", {"pos_label": "spam"}),
    "words_in_another_case": ("y,p\nspam,0.5\nham,0.25\nspam,0.75\n", {"pos_label": "SPAM"}),
    "two_and_one": ("y,p\n2,0.5\n1,0.25\n2,0.75\n", {"pos_label": "2"}),
    "floats_as_labels": ("y,p\n1.0,0.5\n0.0,0.25\n1.0,0.75\n", {}),
    "minus_one": ("y,p\n1,0.5\n-1,0.25\n1,0.75\n", {}),
    "negative_is_meant": ("y,p\nno,0.5\nyes,0.25\nno,0.75\n", {"pos_label": "no"}),
    "percent_signs": ("y;p\n1;50%\n0;25 %\n1;75.0%\n", {}),
    "decimal_commas": ('y;p\n1;"0,5"\n0;"0,25"\n1;"0,75"\n', {}),
    "percent_and_commas": ("y;p\n1;50,0 %\n0;25,0 %\n1;75,0 %\n", {}),
    "blanks": ("y , p\n1 , 0.5\n0 , 0.25\n1 , 0.75\n", {}),
    "other_columns": ('id,text,y,p\n1,"a, b",1,0.5\n2,"c\nd",0,0.25\n3,\'e,1,0.75\n', {}),
    "no_header": ("1,0.5\n0,0.25\n1,0.75\n", {"label": "column0", "score": "column1"}),
    "a_title": ("p\n" + PLAIN, {}),
    "a_blank_end": (PLAIN + "\n\n", {}),
    "latin_1": ("y,p,näme\n1,0.5,ä\n0,0.25,ö\n1,0.75,ü\n".encode("latin-1"), {}),
}


@pytest.mark.parametrize(("content", "options"), WRITTEN.values(), ids=WRITTEN)
def test_what_other_programs_write_is_read(write, content, options):
    rows = read(write(content), **options)
    assert rows.is_positive.tolist() == [True, False, True]
    assert rows.scores.tolist() == [0.5, 0.25, 0.75]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl", "json", "csv.gz"])
def test_every_format_is_read(tmp_path, ending):
    import polars as pl

    frame = pl.DataFrame({"y": [1, 0, 1], "p": pl.Series([0.5, 0.25, 0.75], dtype=pl.Float32), "w": [1.0, 2.0, 0.5]})
    path = tmp_path / f"scores.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending.startswith("json"):
        frame.write_ndjson(path)
    else:
        buffer = io.BytesIO()
        frame.write_csv(buffer, separator="\t" if ending == "tsv" else ",")
        path.write_bytes(gzip.compress(buffer.getvalue()) if ending == "csv.gz" else buffer.getvalue())
    rows = read(str(path), weight="w")
    assert rows.is_positive.tolist() == [True, False, True]
    assert rows.scores.tolist() == [0.5, 0.25, 0.75]
    assert rows.weights.tolist() == [1, 2, 0.5]
    assert rows.scores.dtype == (np.float32 if ending == "parquet" else np.float64)


def test_a_pattern_reads_all_files(write, tmp_path):
    write(PLAIN, "a.csv")
    write(PLAIN, "b.csv")
    assert len(read(str(tmp_path / "*.csv")).scores) == 6


@pytest.mark.parametrize("content", [PLAIN, '{"y": 1, "p": 0.5}\n{"y": 0, "p": 0.25}\n{"y": 1, "p": 0.75}\n'])
def test_standard_input_is_read(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert read("-").scores.tolist() == [0.5, 0.25, 0.75]


def test_a_value_far_below_may_be_of_another_kind(write):
    content = "y,p\n" + "1,0.5\n0,0.25\n" * 20_000 + "1,50\n"
    assert read(write(content)).scores[-1] == 50
    with pytest.raises(ValueError, match=r"column 'p' must hold numbers, but 1 row does not, such as 'oops'"):
        read(write(content + "0,oops\n"))


MISTAKES = {
    "empty_file": ("", {}, "is empty"),
    "blank_lines": ("\n\r\n\n", {}, "holds blank lines only"),
    "a_long_line": (PLAIN + "0,0.1,7\n", {}, "line 5 of .* has 3 fields, but its header has 2 fields.*commas"),
    "a_short_line": (
        "y;p\n1;0.5\n0\n1;0.25\n",
        {},
        "line 3 of .* has 1 field, but its header has 2 fields.*semicolons",
    ),
    "a_long_line_after_lines_in_quotes": ('y,p,t\n1,0.5,"a\nb"\n0,0.1,a,b\n', {}, "line 4 of .* has 4 fields"),
    "a_long_line_far_down": ("y,p\n" + "1,0.5\n0,0.25\n" * 30_000 + "1,0.5,0\n", {}, "line 60002 of .* 3 fields"),
    "the_same_group_twice": (PLAIN, {"groups": ["y", "Y"]}, "groups the rows twice"),
    "the_label_as_group": (
        PLAIN,
        {"groups": ["Y"], "label": "y"},
        "'y' is the column of the label: rows cannot be grouped by it",
    ),
    "no_label_beside_the_group": (PLAIN, {"groups": ["Y"]}, "which column holds the label?"),
    "no_score_beside_the_weight": (PLAIN, {"weight": "p"}, "which column holds the score?"),
    "only_a_header": ("y,p\n", {}, "holds no rows, only the columns 'y', 'p'"),
    "no_such_column": (PLAIN, {"score": "prob"}, "has no column 'prob': its columns are 'y', 'p'"),
    "near_column": (
        "label,probability\n1,0.5\n",
        {"score": "probabilty"},
        "no column 'probabilty': did you mean 'probability'",
    ),
    "which_column": ("a,b\n1,0.5\n", {}, "which column holds the label. Say --label NAME; its columns are 'a', 'b'"),
    "text_score": ("y,p\n1,high\n0,low\n", {}, "column 'p' must hold numbers, but 2 rows do not"),
    "mixed_percents": ("y,p\n1,50%\n0,0.2\n", {}, "percent sign in 1 of 2 rows only"),
    "unknown_labels": ("y,p\nspam,0.5\nham,0.2\n", {}, "'ham', 'spam': say which one is positive with --pos-label"),
    "wrong_label": (
        "y,p\nspam,0.5\nham,0.2\n",
        {"pos_label": "eggs"},
        "the positive label 'eggs' is not among the labels in column 'y', which are 'ham', 'spam'",
    ),
    "three_labels": (
        "y,p\na,0.5\nb,0.2\nc,0.1\n",
        {},
        "must hold two classes, found 3: 'a', 'b', 'c'. Is it the score",
    ),
    "missing_score": ("y,p\n1,0.5\n0,\n", {}, "rows without a value: 1 in 'p'. Fill them, or say --missing drop"),
    "missing_label": ("y,p\n1,0.5\n,0.2\n0,0.1\n", {}, "rows without a value: 1 in 'y'"),
    "nan_score": ("y,p\n1,0.5\n0,nan\n", {}, "rows without a value: 1 in 'p'"),
    "nothing_left": ("y,p\n1,\n,0.2\n", {"missing": "drop"}, "no row left with both a label and a score"),
    "underscores": ("y,p\n1,1_100\n0,2\n", {}, "column 'p' must hold numbers, but 1 row does not, such as '1_100'"),
    "a_thousand_labels": (
        "y,p\n" + "".join(f"{label},0.5\n" for label in range(2_000)),
        {},
        "must hold two classes, found 1000 or more: ",
    ),
    "utf_16_big_endian": (b"\xfe\xff" + PLAIN.encode("utf-16-be"), {}, "UTF-16, big-endian.*: save it as UTF-8"),
    "another_case": ("y,P,p\n1,0.5,1\n0,0.25,2\n", {"score": "p"}, "2 columns with the same name.*: 'P', 'p'. Rename"),
    "twice": ("y,p,p\n1,0.5,1\n0,0.25,2\n", {"score": "p"}, "2 columns with the same name, but for case: 'p', 'p'"),
    "the_next_name": ("y,p,p,p_1\n1,0.5,1,2\n0,0.25,2,3\n", {"score": "p_1"}, "2 columns with the same name"),
    "date_as_score": ("y,p\n1,2024-01-01\n0,2024-01-02\n", {}, "p must be numbers, got values of type DATE"),
}


@pytest.mark.parametrize(("content", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_explained(write, content, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read(write(content), **options)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_names_that_differ_in_case_are_refused_in_every_format(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    frame, path = pandas.DataFrame({"y": [1, 0], "P": [0.5, 0.25], "p": [1.0, 2.0]}), tmp_path / f"scores.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_json(path, orient="records", lines=True)
    with pytest.raises(ValueError, match="2 columns with the same name, but for case: 'P', 'p'"):
        read(str(path), score="p")


def test_a_number_after_a_name_is_no_second_column(write):
    assert read(write("y,p,p_1\n1,0.5,1\n0,0.25,2\n"), score="p_1").scores.tolist() == [1, 2]
    assert read(write("y,q,Q,p\n1,0.5,1,0.5\n0,0.25,2,0.75\n")).scores.tolist() == [0.5, 0.75]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("INTERVAL 1 DAY", "dates or times"),
        ("[1, 2]", r"values of type INTEGER\[\]"),
        ("{'a': 1}", "values of type STRUCT"),
    ],
)
def test_labels_of_other_types_are_refused(tmp_path, sql, kind):
    path = str(tmp_path / "scores.parquet")
    duckdb.sql(f"SELECT {sql} AS y, 0.5 AS p").write_parquet(path)
    with pytest.raises(ValueError, match=f"column 'y' must be numbers, booleans or text, got {kind}"):
        read(path)


def test_missing_rows_can_be_dropped(write):
    path = write("y,p\n1,0.5\n0,\n,0.1\n0,nan\n0,0.25\n")
    assert read(path, missing="drop").scores.tolist() == [0.5, 0.25]
    with Table(path) as table:
        assert table.rows(missing="drop").dropped == 3


def test_groups_are_positions_among_their_names(write):
    rows = read(write("y,p,tag\n1,0.5,b\n0,0.25,a\n1,0.75,b\n"), groups="tag")
    assert rows.group_names == ["a", "b"]
    assert rows.groups.tolist() == [1, 0, 1]


def test_groups_of_several_columns(write):
    rows = read(write("y,p,tag,day\n1,0.5,b,1\n0,0.25,a,2\n1,0.75,b,2\n0,0.1,a,2\n"), groups=["day", "tag"])
    assert rows.group_names == [(1, "b"), (2, "a"), (2, "b")]
    assert rows.groups.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize(
    ("content", "options", "label", "spelt"),
    [
        ("y,p\nyes,0.5\nno,0.25\n", {}, "yes", "yes"),
        ("y,p\nTrue,0.5\nFalse,0.25\n", {}, None, "True"),
        ("y,p\n1,0.5\n0,0.25\n", {}, None, "1"),
        ("y,p\n1.0,0.5\n0.0,0.25\n", {}, None, "1.0"),
        ("y,p\n1,0.5\n0,0.25\n", {"pos_label": "0"}, 0, "0"),
        ("y,p\n2.5,0.5\n0,0.25\n", {"pos_label": "2.5"}, 2.5, "2.5"),
    ],
)
def test_the_positive_label_is_kept_as_it_is(write, content, options, label, spelt):
    with Table(write(content)) as table:
        rows = table.rows(**options)
    assert (rows.pos_label, rows.positive) == (label, spelt)


def test_percentages_are_noted(write):
    with Table(write("y;p\n1;50,5 %\n0;25,0 %\n")) as table:
        (note,) = table.rows().notes
    assert "'p' holds percentages, read as shares: 50,5 % is 0.505" in note
    with Table(write(PLAIN)) as table:
        assert not table.rows().notes


def test_standard_input_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for content in (PLAIN, "", "y,p\n1\n", gzip.compress(PLAIN.encode())):
        data = content if isinstance(content, bytes) else content.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            assert read("-").scores.tolist() == [0.5, 0.25, 0.75]
        except ValueError:
            assert content in ("", "y,p\n1\n")
        assert not list(tmp_path.glob("surecut-*"))


def test_lines_of_compressed_files_are_counted(tmp_path):
    with gzip.open(tmp_path / "scores.csv.gz", "wt") as file:
        file.write(PLAIN + "1\n")
    with pytest.raises(ValueError, match=r"line 5 of .* has 1 field"):
        read(str(tmp_path / "scores.csv.gz"))


def test_files_that_are_not_there(tmp_path, write):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        Table(str(tmp_path / "nothing.csv"))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        Table(str(tmp_path / "*.csv"))
    with pytest.raises(FileNotFoundError, match="there is no file to read in the folder"):
        Table(str(tmp_path))
    with pytest.raises(ValueError, match=r"has the ending '.xlsx'; expected one of .csv"):
        Table(write(b"PK", "table.xlsx"))
    with pytest.raises(OSError, match=r"is not a complete Parquet file"):
        Table(write(b"not parquet", "table.parquet"))


def test_a_command_without_duckdb_says_what_to_install(write, monkeypatch):
    path = write(PLAIN)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ModuleNotFoundError, match=r"reading files needs duckdb: pip install 'surecut\[files\]'"):
        Table(path)


def test_text_is_copied_as_it_is_written(write, tmp_path):
    path = write("id,day,p\n007,01/02/2024,0.50\n010,,1e-3\n")
    with Table(path) as table:
        rows = table.with_score("p", (), as_text=True)
        table.write({"high": f"{quoted(SCORE)} > 0.1"}, rows, tmp_path / "out.csv", sort=False)
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines == ["id,day,p,high", "007,01/02/2024,0.50,true", "010,,1e-3,false"]


def test_names_and_texts_are_quoted(write):
    rows = read(write('"y""; DROP","p\'s"\nit\'s,0.5\nnot,0.25\n'), label='y"; DROP', score="p's", pos_label="it's")
    assert rows.is_positive.tolist() == [True, False]
    assert quoted('a"b') == '"a""b"'
    assert literal("a'b") == "'a''b'"


def test_writing_is_whole_or_not_at_all(write, tmp_path):
    path, out = write(PLAIN), tmp_path / "out.csv"
    with Table(path) as table:
        rows = table.with_score("p", (), as_text=False)

        def written(columns, name):
            return table.write(columns, rows, tmp_path / name, sort=False)

        assert written({"twice": "p * 2"}, "out.csv") == 3
        assert out.read_text().splitlines() == ["y,p,twice", "1,0.5,1.0", "0,0.25,0.5", "1,0.75,1.5"]
        with pytest.raises(ValueError, match="has a column 'p' already"):
            written({"p": "1"}, "other.csv")
        with pytest.raises(ValueError, match="its ending must be one of"):
            written({"q": "1"}, "other.xlsx")
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            written({"q": "1"}, "nowhere/other.csv")
        with pytest.raises(OSError, match="cannot read"):
            written({"q": "error('no')"}, "other.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.csv", "scores.csv"]
