"""Files as they are found: many, of many kinds, damaged, gone."""

from __future__ import annotations

import csv
import gzip
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from surecut import apply_frame, tune_frame, tune_threshold
from surecut.core.settings import using
from surecut.sources.readers import DuckReader, PercentWarning

duckdb = pytest.importorskip("duckdb")


def test_csv_files_and_globs(tmp_path, sample_of, make, same):
    sample = sample_of("sigmoid", 300)
    frame = make.frame(sample)
    frame[:100].to_csv(tmp_path / "a.csv", index=False)
    frame[100:].to_csv(tmp_path / "b.csv", index=False)
    expected = tune_threshold(sample.labels, sample.scores)
    same.cut(tune_frame(str(tmp_path / "*.csv"), label="label", score="score"), expected)
    (tmp_path / "folder").mkdir()
    make.parquet(frame, tmp_path / "folder")
    same.cut(tune_frame(tmp_path / "folder", label="label", score="score"), expected)


@pytest.mark.parametrize("library", ["duckdb", "pyarrow"])
def test_what_is_not_installed_is_named(library, tmp_path, monkeypatch, make):
    path = make.parquet(make.many(10), tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"reading files needs {library}: pip install surecut\[files\]"):
        tune_frame(path, label="label", score="score")


LABELS, SCORES = [0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75]

WRITTEN = {
    "semicolons": "score;label\n0.125;0\n0.5;0\n0.375;1\n0.75;1\n",
    "decimal commas": "score;label\n0,125;0\n0,5;0\n0,375;1\n0,75;1\n",
    "quoted commas": 'score,label\n"0,125",0\n"0,5",0\n"0,375",1\n"0,75",1\n',
    "tabs": "score\tlabel\n0.125\t0\n0.5\t0\n0.375\t1\n0.75\t1\n",
    "spaces": "score, label\n 0.125, 0\n 0.5, 0\n 0.375, 1\n 0.75, 1\n",
    "words": "score,label\n0.125,no\n0.5,no\n0.375,yes\n0.75,yes\n",
}


@pytest.mark.parametrize("how", WRITTEN)
def test_csv_as_other_programs_write_it(tmp_path, how, same):
    path = tmp_path / "rows.csv"
    path.write_text(WRITTEN[how])
    cut = tune_frame(path, label="label", score="score")
    same.cut(cut, tune_threshold(LABELS, SCORES))
    applied = apply_frame(path, cut, score="score").df()
    assert applied.sort_values("score")["predicted"].tolist() == [False, True, True, True]
    separator = next(one for one in ";\t," if one in WRITTEN[how].splitlines()[0])
    keys = ("group", "a", "b", "a", "b")
    path.write_text("\n".join(map(separator.join, zip(WRITTEN[how].splitlines(), keys, strict=True))) + "\n")
    by_group = tune_frame(path, label="label", score="score", by="group", average="micro")
    assert by_group.thresholds.tolist() == [cut.threshold] * 2


def test_percent_signs_are_reported(tmp_path, same):
    path = tmp_path / "rows.csv"
    path.write_text("score,label\n12.5%,0\n50%,0\n37.5 %,1\n75%,1\n")
    with pytest.warns(PercentWarning, match="score is in percent in .*rows.csv: it is divided by 100"):
        same.cut(tune_frame(path, label="label", score="score"), tune_threshold(LABELS, SCORES))


UNREADABLE = {
    "text": ("score,label\nabc,0\n0.5,1\n", ValueError, "column 'score' must hold numbers, but 1 row does not.*'abc'"),
    "some percent": ("score,label\n5%,0\n0.5,1\n", ValueError, "has a percent sign in 1 of 2 rows only"),
    "late text": ("score,label\n" + "0.1,0\n0.7,1\n" * 20_000 + "n/a,1\n", ValueError, "1 row does not, such as 'n/a'"),
    "ragged": ("score,label\n0.5,0\n0.5,0,7\n0.7,1\n", ValueError, "line 3 of .*rows.csv has 3 fields, but its header"),
    "empty": ("", ValueError, "rows.csv is empty"),
    "no rows": ("score,label\n", ValueError, "holds no rows"),
    "dates": ("score,label\n2020-01-01,0\n2021-01-01,1\n", TypeError, "score must be numbers, got values of type DATE"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_is_explained(tmp_path, what):
    content, kind, message = UNREADABLE[what]
    (tmp_path / "rows.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(kind, match=message):
        tune_frame(tmp_path / "rows.csv", label="label", score="score")


def test_a_truncated_file_is_an_error(tmp_path, make):
    path = make.parquet(make.many(5_000), tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"cannot read .*rows.parquet"):
        tune_frame(path, label="label", score="score")


def test_damage_in_the_middle_of_a_file_is_an_error(tmp_path, make, same):
    path = make.parquet(make.many(50_000), tmp_path)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 5000] = bytes(5000)
    path.write_bytes(content)
    try:
        cut = tune_frame(path, label="label", score="score")
    except (OSError, ValueError):
        return
    collected_again = duckdb.connect().read_parquet(str(path)).df()  # zeros are scores, too, if they can be decoded
    same.cut(cut, tune_threshold(collected_again["label"], collected_again["score"]))


def test_a_file_that_disappears_between_passes_is_an_error(tmp_path, monkeypatch, in_small_steps, make):
    path = make.parquet(make.many(5_000), tmp_path)
    read = DuckReader.read

    def read_and_remove(self, within=None):
        if within is not None:
            Path(path).unlink(missing_ok=True)
        return read(self, within)

    monkeypatch.setattr(DuckReader, "read", read_and_remove)
    with using(kept_rows=0), pytest.raises(OSError, match=r"cannot read .*rows.parquet"):
        tune_frame(path, label="label", score="score")


@pytest.mark.parametrize("version", ["1.5.0", "2.0.0"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_gzip_file_that_ends_between_two_rows_is_not_read(tmp_path, monkeypatch, ending, version):
    if int(version[0]) > int(duckdb.__version__[0]):
        pytest.skip("DuckDB before 2.0 does not find it")
    monkeypatch.setattr(duckdb, "__version__", version)
    rows = [(row % 2, row / 100) for row in range(100)]
    lines = [f'{{"label": {label}, "score": {score}}}\n' for label, score in rows]
    if ending == "csv":
        lines = ["label,score\n", *(f"{label},{score}\n" for label, score in rows)]
    compressor = zlib.compressobj(wbits=31)
    packed = compressor.compress("".join(lines[:50]).encode()) + compressor.flush(zlib.Z_FULL_FLUSH)
    whole = packed + compressor.compress("".join(lines[50:]).encode()) + compressor.flush()
    path = tmp_path / f"rows.{ending}.gz"
    path.write_bytes(whole)
    tune_frame(path, label="label", score="score")
    path.write_bytes(packed)
    with pytest.raises(OSError, match=rf"^cannot read .*rows.{ending}.gz: "):
        tune_frame(path, label="label", score="score")


def test_a_file_that_ends_behind_the_lines_that_settle_its_columns_is_named_once(tmp_path):
    random = np.random.default_rng(0)
    lines = "".join(f"{label},{score!r}\n" for label, score in enumerate(random.random(60_000).tolist()))
    packed = gzip.compress(("label,score\n" + lines).encode())
    (tmp_path / "rows.csv.gz").write_bytes(packed[: len(packed) * 9 // 10])
    with pytest.raises(OSError, match=r"^cannot read .*rows.csv.gz: (?!cannot read)"):
        tune_frame(tmp_path / "rows.csv.gz", label="label", score="score")


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (200_000, "line 3 of .*rows.csv has 4 fields, but its header has 3"),
        (3_000_000, "cannot read .* from line 2 on"),
    ],
)
def test_the_line_to_blame_is_found_behind_a_long_text(tmp_path, length, message):
    limit = csv.field_size_limit()
    (tmp_path / "rows.csv").write_text(f'label,score,note\n1,0.5,"{"x" * length}"\n0,0.25,b,c\n')
    with pytest.raises(ValueError, match=message):
        tune_frame(tmp_path / "rows.csv", label="label", score="score")
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT"])
def test_integers_of_128_bits_are_scores_where_they_are_doubles(kind):
    query = "SELECT unnest([1, 2, {}])::" + kind + " AS score, unnest([0, 1, 1]) AS label"
    connection = duckdb.connect()
    cut = tune_frame(connection.sql(query.format(2**53)), label="label", score="score")
    assert cut.interval == tune_threshold([0, 1, 1], [1.0, 2.0, 2.0**53]).interval
    with pytest.raises(ValueError, match=f"score holds 1 number, such as {2**53 + 1}, with more digits than a double"):
        tune_frame(connection.sql(query.format(2**53 + 1)), label="label", score="score")
