"""Texts of any length in a Parquet file: a column that is not needed is not read, and messages stay short."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from surecut import tune_frame
from surecut.cli.app import app
from surecut.sources.files import Files

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")

HUGE = "x" * 20_000_000


def run(*arguments, code=0):
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == code, found.output[:1_000]
    return found.output


@pytest.fixture(scope="module", params=["plain", "dictionary"])
def path(request, tmp_path_factory):
    """Rows with a column of text, of which one value is huge, and of which many rows have a code."""
    random = np.random.default_rng(0)
    score = random.random(3_000)
    label, codes = (random.random(3_000) < score).astype(np.int8), random.integers(0, 2, 3_000)
    codes[7], label[7] = 2, 0  # a label without positives is named
    text = pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(["a", "b", HUGE]))
    text = text if request.param == "dictionary" else text.cast(pa.string())
    table = pa.table({"label": label, "text": text, "score": score})
    path = tmp_path_factory.mktemp("huge") / "rows.parquet"
    pq.write_table(table, path, dictionary_pagesize_limit=2**30, compression="zstd")
    return path


def test_a_column_that_is_not_needed_is_not_read(path, tmp_path):
    """Its bytes are no Parquet here: who reads them fails."""
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    written = bytearray(path.read_bytes())
    written[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(written)
    with pytest.raises(OSError, match="cannot read"):
        tune_frame(broken, label="label", score="score", by="text")
    columns = {"label": "label", "score": "score"}
    expected = tune_frame(path, **columns)
    for frame in (broken, dataset.dataset(broken), pl.scan_parquet(broken), duckdb.read_parquet(str(broken))):
        assert tune_frame(frame, **columns) == expected
    run("tune", broken, "--out", tmp_path / "cut.json")
    run("certify", broken, "--cut", tmp_path / "cut.json", "--method", "uniform")
    run("check", broken, "--cut", tmp_path / "cut.json")


def test_messages_show_the_first_characters(path, tmp_path):
    with pytest.raises(ValueError, match="must hold two classes, found 3: 'a', 'b', 'xxx") as error:
        tune_frame(path, label="text", score="score", pos_label="a")
    messages = [str(error.value), run("tune", path, "--label", "text", code=1)]
    cuts = tune_frame(path, label="label", score="score", by="text")
    assert HUGE in cuts.labels
    messages += [str(cuts), run("tune", path, "--by", "text", "--out", tmp_path / "cuts.json")]
    few, table = tmp_path / "few.parquet", pq.read_table(path)
    pq.write_table(pa.concat_tables([table[:7], table[8:]]), few)
    messages.append(run("check", few, "--cut", tmp_path / "cuts.json", "--by", "text"))
    options = ["--by", "text", "--unknown", "error"]
    messages.append(run("check", few, "--cut", tmp_path / "cuts.json", *options, code=1))
    pq.write_table(pa.table({"label": [0, 1], "score": [HUGE, HUGE]}), tmp_path / "texts.parquet")
    messages.append(run("tune", tmp_path / "texts.parquet", code=1))
    assert max(map(len, messages)) < 2_000
    assert [one for one in messages if "x…" not in one] == []


def test_labels_that_do_not_fit_in_a_batch_are_an_error_that_says_so(path):
    said = "Arrow Appender: The maximum total string size for regular string buffers is 2147483647 but the offset of"
    files = Files(str(path))
    with pytest.raises(ValueError, match="texts of more than 2 GB in 131,072 rows: labels and groups"), files.reading():
        raise duckdb.InvalidInputException(said)
