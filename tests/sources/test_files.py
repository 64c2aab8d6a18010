"""Files as DuckDB reads them: corners that the comparison of entry points does not reach."""

from __future__ import annotations

import contextlib
import gzip
import os

import numpy as np
import pytest

from surecut import tune_frame
from surecut.core.settings import using
from surecut.sources.paths import files_of

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_folders_whose_names_are_no_common_type_are_text(tmp_path):
    for day in ("1", "all"):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "rows.csv").write_text("y,p\n0,0.1\n1,0.8\n1,0.4\n0,0.3\n")
    assert tune_frame(tmp_path, label="y", score="p", by="day").labels == ("1", "all")


def test_a_broken_page_is_explained_once(tmp_path):
    """Text scores are looked at as a whole, within the reading of the rows: its error is not explained again."""
    path = tmp_path / "rows.parquet"
    scores = [f"{score:.17f}" for score in np.random.default_rng(0).random(5_000)]
    pq.write_table(pa.table({"y": [0, 1] * 2_500, "p": scores}), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2_000] = bytes(2_000)
    path.write_bytes(content)
    with pytest.raises(OSError, match="cannot read") as error:
        tune_frame(path, label="y", score="p")
    assert str(error.value).count("cannot read") == 1


def test_a_lack_of_memory_is_not_told_as_a_broken_file(tmp_path):
    path = tmp_path / "rows.parquet"
    random = np.random.default_rng(0)
    pq.write_table(pa.table({"y": random.integers(0, 2, 300_000), "p": random.random(300_000)}), path)
    with using(duckdb_memory="1MB"), pytest.raises(MemoryError, match="not enough memory"):
        tune_frame(path, label="y", score="p")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("codec", ["zst", "gz"])
def test_a_compressed_file_that_is_broken_off_is_refused(tmp_path, kind, codec):
    lines = [
        f'{{"y": {i % 2}, "p": {i / 20_000}}}' if kind == "jsonl" else f"{i % 2},{i / 20_000}" for i in range(20_000)
    ]
    text = "\n".join([*(["y,p"] if kind == "csv" else []), *lines, ""]).encode()
    content = pa.compress(text, codec="zstd", asbytes=True) if codec == "zst" else gzip.compress(text)
    path = tmp_path / f"rows.{kind}.{codec}"
    path.write_bytes(content)
    assert tune_frame(path, label="y", score="p").rows == 20_000
    path.write_bytes(content[: len(content) * 9 // 10])
    with pytest.raises(
        OSError, match=r"cannot read .* complete (gzip|zstd) file; was its writing or copying broken off"
    ):
        tune_frame(path, label="y", score="p")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_parquet_file_by_another_name_is_said_to_be_one(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    pq.write_table(pa.table({"y": [0, 1], "p": [0.25, 0.75]}), path)
    with pytest.raises(OSError, match=r"cannot read .*: it is a Parquet file: let its name end in \.parquet"):
        tune_frame(path, label="y", score="p")


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX's")
def test_links_that_lead_back_to_a_folder_above_are_not_followed(tmp_path):
    rows = tmp_path / "rows"
    (rows / "deep").mkdir(parents=True)
    for folder in (rows, rows / "deep"):
        (folder / "part.csv").write_text("label,score\n0,0.1\n1,0.9\n")
        for name in ("first", "second", "third"):  # glob follows them to the 40th level: 3**40 folders
            (folder / name).symlink_to(rows)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "part.csv").write_text("label,score\n0,0.2\n1,0.8\n")
    (rows / "day=2").symlink_to(tmp_path / "elsewhere")
    (rows / "day=3").symlink_to(tmp_path / "elsewhere")  # another day with the same rows
    (rows / ".hidden").mkdir()
    (rows / ".hidden" / "part.csv").write_text("no table")
    expected = [str(rows / place / "part.csv") for place in ("", "day=2", "day=3", "deep")]
    for path in (rows, f"{rows}/", rows / "**" / "*.csv", rows / "**", f"{tmp_path}/r*/**/p*.csv"):
        assert [os.path.normpath(one) for one in files_of(str(path))] == sorted(expected)
    with contextlib.chdir(rows):
        assert len(files_of("**/*.csv")) == len(files_of("./**/part.csv")) == len(files_of(".")) == 4
    assert tune_frame(rows, label="label", score="score").rows == 8


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_cannot_be_listed_is_passed_over(tmp_path, monkeypatch):
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.csv").write_text("label,score\n0,0.1\n1,0.9\n")
    scandir = os.scandir

    def refusing(folder):
        if str(folder).rstrip("/").endswith("closed"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    assert tune_frame(f"{tmp_path}/**/open/*.csv", label="label", score="score").rows == 2


def test_texts_that_arrow_cannot_hold_are_said_to_be_long(tmp_path):
    (tmp_path / "rows.csv").write_text("label,score\n0,0.1\n1,0.9\n")
    from surecut.sources.files import Files

    error = Files(str(tmp_path / "rows.csv")).explained(ValueError("Arrow Appender: the maximum total string size"))
    assert "texts of more than 2 GB" in str(error)
