"""What `surecut tune --by --out` saves does not depend on whether a page is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import MultilabelCut, ScoreTally, certify, tune_frame

pytest.importorskip("duckdb")
pytest.importorskip("typer")
pandas = pytest.importorskip("pandas")


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    scores = np.round(random.random(900), 4)
    scores[:5] = [-0.0, 0.0, np.inf, np.inf, 1e-310]
    return pandas.DataFrame({"tag": np.arange(900) % 3, "score": scores, "label": random.random(900) < scores})


def tallies_of(table):
    return [ScoreTally.from_scores(part["label"], part["score"]) for _, part in table.groupby("tag")]


def test_the_saved_cut_is_the_same_with_and_without_a_page(table, tmp_path):
    from typer.testing import CliRunner

    from surecut.cli.app import app

    table.astype({"label": int}).to_parquet(tmp_path / "rows.parquet")
    asked = ["tune", str(tmp_path / "rows.parquet"), "--label", "label", "--score", "score", "--by", "tag", "--out"]
    for name, more in (("plain", []), ("with_page", ["--report", str(tmp_path / "page.html")])):
        result = CliRunner().invoke(app, [*asked, str(tmp_path / f"{name}.json"), *more])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "plain.json").read_bytes() == (tmp_path / "with_page.json").read_bytes()
    saved = MultilabelCut.load(tmp_path / "plain.json")
    assert saved.checksums.tolist() == [tally.checksum for tally in tallies_of(table)]
    assert "sparkline" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_groups_of_files_are_named_as_their_rows_are(table, tmp_path, kind, average):
    table = table.astype({"score": kind})
    table.to_parquet(tmp_path / "rows.parquet")
    cut = tune_frame(tmp_path / "rows.parquet", label="label", score="score", by="tag", average=average)
    tallies = tallies_of(table)
    assert cut.checksums.tolist() == [tally.checksum for tally in tallies]
    with pytest.raises(ValueError, match="validation rows"):
        certify(cut, tally=tallies, method="holdout")


def test_groups_keep_some_rows_to_recognise_a_part_of_them_by(table, tmp_path):
    table.to_parquet(tmp_path / "rows.parquet")
    cut = tune_frame(tmp_path / "rows.parquet", label="label", score="score", by="tag")
    (seen,) = cut.seen
    assert set(seen.labels.tolist()) == {0, 1, 2}
    for label in range(3):
        own, rows = seen.of_label(label), table[table["tag"] == label]
        capped = np.minimum(rows["score"].to_numpy(), np.finfo(float).max)
        pairs = set(zip(capped.tolist(), rows["label"].tolist(), strict=True))
        assert set(zip(own.scores.tolist(), own.is_positive.tolist(), strict=True)) <= pairs
