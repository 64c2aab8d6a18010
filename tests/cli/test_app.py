"""The command line as a person meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from surecut import Cut, MultilabelCut, ScoreTally, certify, tune_frame, tune_threshold
from surecut.certificates.drift import check_drift, check_label_drift
from surecut.cli import demo
from surecut.cli.app import app
from surecut.cli.options import in_options
from surecut.metrics import CATALOGUE, Tversky, Utility
from surecut.sources.files import Files
from surecut.tuning.labels import tune_tallies

runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})


def run(*arguments, code=0, **options):
    result = runner.invoke(app, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def draw(size, seed=0, shift=0.0):
    random = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(2 - 2 * random.normal(size=size)))
    labels = random.random(size) < scores
    return labels, np.round(scores + shift * random.random(size), 6)


def save(path, labels, scores):
    lines = [f"{int(label)},{score}" for label, score in zip(labels, scores.tolist(), strict=True)]
    path.write_text("y,p\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def rows():
    return draw(2_000)


@pytest.fixture
def file(tmp_path, rows):
    pytest.importorskip("duckdb", reason="files are read by DuckDB")
    return save(tmp_path / "scores.csv", *rows)


@pytest.fixture
def cut(tmp_path, file):
    run("tune", file, "--out", tmp_path / "cut.json")
    return tmp_path / "cut.json"


class TestTune:
    def test_the_table_holds_pythons_cut(self, file, rows):
        expected = tune_threshold(*rows)
        printed = run("tune", file, "--label", "y", "--score", "p").stdout
        assert f"{expected.threshold:.6g}" in printed
        assert f"{expected.value:.4f}" in printed
        assert "2,000 rows" in printed
        assert not any(line != line.rstrip() for line in printed.splitlines())

    def test_json_is_for_programs(self, file, rows):
        document = json.loads(run("tune", file, "--metric", "f1", "--metric", "am", "--format", "json").stdout)
        assert document["rows"] == 2_000
        assert [Cut.from_dict(one) for one in document["cuts"]] == list(
            tune_threshold(*rows, metric=["f1", "am"]).values()
        )

    def test_the_saved_cut_is_pythons(self, cut, rows):
        assert Cut.load(cut) == tune_threshold(*rows)

    def test_constraints(self, file, rows):
        printed = run("tune", file, "--metric", "recall", "--constraint", "precision>=0.8", "--format", "json").stdout
        expected = tune_threshold(*rows, metric="recall", constraint="precision>=0.8")
        assert json.loads(printed)["cuts"][0]["threshold"] == expected.threshold
        both = ["--constraint", "precision>=0.8", "--constraint", "recall>=1"]
        assert "no cut meets all of them" in run("tune", file, *both, code=1).output

    def test_a_given_prior(self, file, rows):
        printed = run("tune", file, "--prior", "0.02", "--format", "json").stdout
        expected = ScoreTally.from_scores(*rows).with_prior(0.02).best_cut("f1")
        assert json.loads(printed)["cuts"][0]["threshold"] == expected.threshold
        assert "0 < prior < 1" in run("tune", file, "--prior", "2", code=1).output

    @pytest.mark.parametrize(
        ("text", "metric"),
        [("utility(fp=-2, fn=-100)", Utility(fp=-2, fn=-100)), ("Tversky(alpha=0.3,beta=0.7)", Tversky(0.3, 0.7))],
    )
    def test_metrics_with_parameters(self, file, rows, text, metric):
        printed = run("tune", file, "--metric", text, "--format", "json").stdout
        assert json.loads(printed)["cuts"][0]["threshold"] == tune_threshold(*rows, metric=metric).threshold

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("jacard", "did you mean 'jaccard'"),
            ("utility(fp=2)", "must not be worth more than a true negative"),
            ("utility(fb=-2)", "unexpected keyword argument 'fb'"),
            ("utility(fp)", "expected a number or name=number"),
            ("tversky(alpha=1)", "missing a required argument: 'beta'"),
        ],
    )
    def test_metrics_that_do_not_exist(self, file, text, message):
        assert message in run("tune", file, "--metric", text, code=1).output.replace("\n", " ")

    def test_the_page(self, file, tmp_path, rows):
        pytest.importorskip("jinja2")
        run("tune", file, "--report", tmp_path / "page.html", "--metric", "f2", "--metric", "utility(fn=-3,fp=-1)")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "<h1>scores.csv</h1>" in page
        assert str(tune_threshold(*rows, metric="f2").threshold) in page

    def test_several_metrics_make_several_files(self, file, tmp_path):
        both = ["--metric", "f1", "--metric", "am"]
        assert (
            "write --out with {metric} in the name"
            in run("tune", file, *both, "--out", tmp_path / "c.json", code=1).output
        )
        run("tune", file, *both, "--out", tmp_path / "cut-{metric}.json")
        assert Cut.load(tmp_path / "cut-am.json").metric.name == "am"
        assert Cut.load(tmp_path / "cut-f1.json").metric.name == "f1"

    def test_weights_and_standard_input(self, rows):
        labels, scores = rows
        text = "y;w;p\n" + "".join(f"{int(y)};2;{s}\n" for y, s in zip(labels, scores.tolist(), strict=True))
        printed = run("tune", "-", "--weight", "w", "--format", "json", input=text.encode()).stdout
        (found,) = json.loads(printed)["cuts"]
        assert found["tuning"]["weighted"]
        assert found["threshold"] == tune_threshold(labels, scores).threshold

    def test_a_folder_that_is_not_there_is_said_before_the_work(self, tmp_path):
        assert (
            "there is no folder" in run("tune", tmp_path / "no.csv", "--out", tmp_path / "a" / "b.json", code=1).output
        )


class TestApply:
    @pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "tsv"])
    def test_the_new_column_is_the_cuts_prediction(self, file, cut, tmp_path, rows, ending):
        import duckdb

        out = tmp_path / f"predictions.{ending}"
        run("apply", file, "--cut", cut, "--out", out)
        relation = duckdb.connect().sql(f"SELECT * FROM '{out}'")
        assert relation.columns == ["y", "p", "predicted"]
        predicted = [bool(row[2]) for row in relation.fetchall()]
        assert predicted == Cut.load(cut).predict(rows[1]).tolist()

    def test_rows_without_a_score(self, cut, tmp_path):
        (tmp_path / "new.csv").write_text("id,p\na,0.9\nb,\nc,nan\nd,inf\n")
        options = [tmp_path / "new.csv", "--cut", cut, "--out", tmp_path / "o.csv", "--name", "hit"]
        message = run("apply", *options, "--missing", "error", code=1).output
        assert "2 of 4 rows have no score in 'p': fill them, or pass --missing negative" in message.replace("\n", " ")
        assert not (tmp_path / "o.csv").exists()
        assert "note: 2 of 4 rows have no score in 'p': they are predicted negative" in run("apply", *options).stderr
        assert (tmp_path / "o.csv").read_text().splitlines() == [
            "id,p,hit",
            "a,0.9,true",
            "b,,false",
            "c,nan,false",
            "d,inf,true",
        ]

    def test_percentages_are_read_as_in_tuning(self, cut, tmp_path):
        (tmp_path / "new.csv").write_text("p\n90 %\n1 %\n")
        run("apply", tmp_path / "new.csv", "--cut", cut, "--out", tmp_path / "o.csv")
        assert (tmp_path / "o.csv").read_text().splitlines()[1:] == ["90 %,true", "1 %,false"]

    def test_a_file_that_is_no_cut(self, file, tmp_path):
        (tmp_path / "no.json").write_text("{}")
        assert (
            "is not a saved cut"
            in run("apply", file, "--cut", tmp_path / "no.json", "--out", tmp_path / "o.csv", code=1).output
        )


class TestPositiveLabel:
    @pytest.fixture
    def worded(self, tmp_path, rows):
        labels, scores = rows
        lines = [f"{'ja' if y else 'nein'},{100 * s:.4f}%" for y, s in zip(labels, scores.tolist(), strict=True)]
        (tmp_path / "worded.csv").write_text("y,p\n" + "\n".join(lines) + "\n")
        return tmp_path / "worded.csv"

    @pytest.mark.parametrize("more", [[], ["--prior", "0.1"], ["--confidence", "0.9"], ["--report", "page.html"]])
    def test_the_cut_keeps_it(self, worded, tmp_path, monkeypatch, more):
        monkeypatch.chdir(tmp_path)
        run("tune", worded, "--pos-label", "ja", "--out", "cut.json", *more)
        assert Cut.load("cut.json").pos_label == "ja"

    def test_later_commands_know_it(self, worded, tmp_path):
        cut, out = tmp_path / "cut.json", tmp_path / "o.csv"
        run("tune", worded, "--pos-label", "ja", "--out", cut)
        run("certify", worded, "--cut", cut, "--method", "uniform")
        run("check", worded, "--cut", cut)
        result = run("apply", worded, "--cut", cut, "--negative", "nein", "--out", out)
        assert "holds percentages, read as shares" in result.stderr
        written = [line.rpartition(",")[2] for line in out.read_text().splitlines()[1:]]
        scores = [float(line.split(",")[1].rstrip("%")) / 100 for line in worded.read_text().splitlines()[1:]]
        assert written == ["ja" if hit else "nein" for hit in Cut.load(cut).predict(scores)]
        assert (
            "names the other one" in run("apply", worded, "--cut", cut, "--negative", "ja", "--out", out, code=1).output
        )

    def test_a_note_stays_out_of_the_output(self, worded):
        result = run("tune", worded, "--pos-label", "ja", "--format", "json")
        document = json.loads(result.stdout)
        assert document["cuts"][0]["pos_label"] == "ja"
        assert "holds percentages" in document["notes"][0]
        assert "holds percentages" in result.stderr


def test_a_constrained_cut_says_on_how_many_rows_it_stands(file, rows):
    asked = ["--metric", "recall", "--constraint", "precision>=0.95"]
    cut = tune_threshold(*rows, metric="recall", constraint="precision>=0.95")
    accepted = int(cut.predict(rows[1]).sum())
    assert f"  {accepted:,} ({accepted / 2_000:.1%})" in run("tune", file, *asked).stdout


class TestConfidence:
    def test_the_table_says_what_is_promised(self, file, rows):
        printed = run("tune", file, "--confidence", "0.9", "--metric", "f1").stdout
        assert f"≥ {tune_threshold(*rows, confidence=0.9).lower_limit:.4f}" in printed
        assert "new rows (90 %)" in printed

    def test_constraints_hold_with_the_confidence(self, file, rows):
        asked = ["--metric", "recall", "--constraint", "precision>=0.6", "--confidence", "0.95", "--format", "json"]
        (found,) = json.loads(run("tune", file, *asked).stdout)["cuts"]
        expected = tune_threshold(*rows, metric="recall", constraint="precision>=0.6", confidence=0.95)
        assert found["threshold"] == expected.threshold
        assert found["confidence"] == 0.95
        assert found["certificate"]["method"] == "uniform"


@pytest.mark.parametrize("shrinkage", ["auto", "12.5"])
def test_a_cut_is_drawn_toward_a_model(file, rows, shrinkage):
    (found,) = json.loads(run("tune", file, "--shrinkage", shrinkage, "--format", "json").stdout)["cuts"]
    expected = tune_threshold(*rows, shrinkage=shrinkage if shrinkage == "auto" else float(shrinkage))
    assert found["threshold"] == expected.threshold
    assert found["tuning"]["shrinkage"] == expected.shrinkage
    printed = run("tune", file, "--shrinkage", shrinkage).stdout
    assert f"worth {expected.shrinkage:.3g} positives" in printed


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--shrinkage", "some"], "--shrinkage must be a number or 'auto', got 'some'"),
        (["--shrinkage", "-1"], "shrinkage"),
        (["--shrinkage", "auto", "--prior", "0.2"], "leave --shrinkage 0, or leave out --prior"),
        (["--metric", "f1,f2"], "for several repeat it: --metric f1 --metric f2"),
        (["--metric", "utility(fp=-2"], "has a bracket that is not closed"),
        (["--metric", "f1_scor"], "did you mean 'f1'?"),
        (["--average", "micro"], "say with --by which column holds the label"),
        (["--report", "page.pdf"], "the page is HTML: give --report a name such as page.html"),
        (["--out", "cut.parquet"], "a single cut is saved as JSON: give --out a name such as cut.json"),
    ],
)
def test_options_that_do_not_fit_are_explained(file, asked, said):
    result = run("tune", file, *asked, code=1)
    assert said in result.stderr


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (["--shrinkage", "1", "--constraint", "precision>=0.5"], {"shrinkage": 1.0, "constraint": "precision>=0.5"}),
        (["--shrinkage", "1", "--confidence", "0.9"], {"shrinkage": 1.0, "confidence": 0.9}),
        (["--shrinkage", "auto", "--prior", "0.5"], {"shrinkage": "auto", "prior": 0.5}),
        (["--confidence", "2"], {"confidence": 2.0}),
        (["--prior", "0"], {"prior": 0.0}),
        (["--weights", "counts"], {"weights": "counts"}),
        (["--average", "micro"], {"average": "micro"}),
        (["--by", "tag", "--average", "samples"], {"by": "tag", "average": "samples"}),
        (["--by", "tag", "--confidence", "0.9"], {"by": "tag", "confidence": 0.9}),
        (["--by", "tag", "--prior", "0.9"], {"by": "tag", "prior": 0.9}),
        (["--constraint", "precision"], {"constraint": "precision"}),
        (["--metric", "jacard"], {"metric": "jacard"}),
    ],
)
def test_the_command_refuses_with_the_reason_of_the_function_before_it_reads(tmp_path, asked, options):
    with pytest.raises(ValueError, match=r"\w") as refused:
        tune_frame(pd.DataFrame(), label="y", score="p", **options)
    said = run("tune", tmp_path / "there is no such file.csv", *asked, code=1).stderr
    assert said == f"surecut: {in_options(str(refused.value))}\n"


def test_what_is_saved_does_not_depend_on_the_page(file, tmp_path):
    pytest.importorskip("jinja2")
    for asked in ([], ["--prior", "0.1"], ["--confidence", "0.9"], ["--shrinkage", "3"]):
        run("tune", file, *asked, "--out", tmp_path / "a.json")
        run("tune", file, *asked, "--out", tmp_path / "b.json", "--report", tmp_path / "page.html")
        assert Cut.load(tmp_path / "a.json") == Cut.load(tmp_path / "b.json")


def test_a_promise_counts_whole_weights(tmp_path, rows):
    labels, scores = rows
    frame = pd.DataFrame({"y": labels.astype(int), "p": scores, "w": np.tile([1, 2], 1_000)})
    asked = ["--weight", "w", "--confidence", "0.9", "--format", "json"]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (found,) = json.loads(run("tune", tmp_path / "rows.csv", *asked, "--weights", "counts").stdout)["cuts"]
    expected = tune_threshold(labels, scores, sample_weight=frame["w"], weights="counts", confidence=0.9)
    assert found["lower_limit"] == pytest.approx(expected.lower_limit)
    assert "pass --weights counts" in run("tune", tmp_path / "rows.csv", *asked, code=1).stderr
    frame.assign(w=1.5).to_csv(tmp_path / "rows.csv", index=False)  # sums of eight of them look whole
    for more in ([], ["--report", tmp_path / "page.html"]):
        said = run("tune", tmp_path / "rows.csv", *asked, "--weights", "counts", *more, code=1).stderr
        assert "these weights are not numbers of rows, such as 1.5" in said


@pytest.mark.parametrize(("label", "what"), [(1, "positive"), (0, "negative")])
def test_rows_of_one_class_are_noted(tmp_path, label, what):
    file = tmp_path / "one.csv"
    file.write_text("y,p\n" + f"{label},0.5\n{label},0.25\n")
    result = run("tune", file, "--metric", "accuracy")
    assert f"note: all 2 rows are {what}" in result.stderr


def test_one_row_is_not_1_rows(tmp_path):
    (tmp_path / "one.csv").write_text("y,p\n1,0.5\n0,\n")
    result = run("tune", tmp_path / "one.csv", "--metric", "accuracy", "--missing", "drop")
    assert "1 row (1 row without a value was dropped), 100.00% positive" in result.stdout
    assert "note: the only row is positive, which cannot tell where to cut" in result.stderr


class TestLabels:
    @pytest.fixture
    def tagged(self, tmp_path, rows):
        labels, scores = rows
        lines = [f"{int(y)},{s},{'abc'[i % 3]}" for i, (y, s) in enumerate(zip(labels, scores.tolist(), strict=True))]
        (tmp_path / "tagged.csv").write_text("y,p,tag\n" + "\n".join(lines) + "\n")
        return tmp_path / "tagged.csv"

    @pytest.mark.parametrize("average", ["macro", "micro"])
    def test_a_cut_for_each(self, tagged, tmp_path, rows, average):
        out = tmp_path / "cut.json"
        printed = run("tune", tagged, "--by", "tag", "--average", average, "--out", out).stdout
        labels, scores = rows
        columns = [slice(k, None, 3) for k in range(3)]
        tallies = [ScoreTally.from_scores(labels[one], scores[one]) for one in columns]
        expected = tune_tallies(tallies, list("abc"), average=average)
        loaded = MultilabelCut.load(out)
        assert loaded.labels == expected.labels
        assert loaded.thresholds.tolist() == expected.thresholds.tolist()
        assert loaded.value == expected.value
        assert str(expected) in printed
        run("apply", tagged, "--cut", out, "--by", "tag", "--out", tmp_path / "o.csv")
        predicted = [line.endswith("true") for line in (tmp_path / "o.csv").read_text().splitlines()[1:]]
        for k, threshold in enumerate(expected.thresholds):
            assert predicted[k::3] == (scores[k::3] >= threshold).tolist()

    @pytest.mark.parametrize("average", ["macro", "micro"])
    def test_labels_are_drawn_toward_a_model(self, tagged, tmp_path, rows, average):
        out = tmp_path / "cut.json"
        asked = ["--by", "tag", "--average", average, "--shrinkage", "25", "--out", out]
        assert "shrinkage 25" in run("tune", tagged, *asked).stdout
        labels, scores = rows
        tallies = [ScoreTally.from_scores(labels[k::3], scores[k::3]) for k in range(3)]
        expected = tune_tallies(tallies, list("abc"), average=average, shrinkage=25)
        assert MultilabelCut.load(out).thresholds.tolist() == expected.thresholds.tolist()

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_rows_stay_in_their_order(self, tagged, tmp_path, ending):
        cut, out = tmp_path / "cut.json", tmp_path / f"o.{ending}"
        lines = tagged.read_text().splitlines()
        many = [*lines[:1], *(lines[1:] * 60)]  # several of DuckDB's vectors
        numbered = [f"{line},{i - 1 if i else 'number'}" for i, line in enumerate(many)]
        (tmp_path / "many.csv").write_text("\n".join(numbered) + "\n")
        run("tune", tagged, "--by", "tag", "--out", cut)
        run("apply", tmp_path / "many.csv", "--cut", cut, "--by", "tag", "--out", out)
        read = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
        assert read["number"].tolist() == list(range(len(many) - 1))
        assert read.columns.tolist() == ["y", "p", "tag", "number", "predicted"]

    def test_a_page_of_several_metrics_says_which_it_shows(self, tagged, tmp_path):
        asked = ["--by", "tag", "--metric", "f1", "--metric", "f2", "--report", tmp_path / "page.html"]
        assert "(it shows f1)" in run("tune", tagged, *asked).stdout

    def test_a_cut_for_each_pair(self, tmp_path, rows):
        labels, scores = rows
        keys = [("ab"[i % 2], i % 3) for i in range(len(labels))]
        lines = [f"{int(y)},{s},{a},{b}" for y, s, (a, b) in zip(labels, scores.tolist(), keys, strict=True)]
        file, out = tmp_path / "pairs.csv", tmp_path / "cut.json"
        file.write_text("y,p,letter,number\n" + "\n".join(lines) + "\n")
        both = ["--by", "letter", "--by", "number"]
        printed = run("tune", file, *both, "--out", out).stdout
        assert "2,000 rows, " in printed
        assert "on 2,000 rows in all" in printed
        cut = MultilabelCut.load(out)
        assert sorted(cut.labels) == sorted(set(keys))
        run("tune", file, *both, "--out", tmp_path / "again.json", "--report", tmp_path / "page.html")
        again = MultilabelCut.load(tmp_path / "again.json")
        threshold = dict(zip(cut.labels, cut.thresholds, strict=True))
        assert threshold == dict(zip(again.labels, again.thresholds, strict=True))
        run("apply", file, "--cut", out, *both, "--out", tmp_path / "o.csv")
        predicted = [line.endswith("true") for line in (tmp_path / "o.csv").read_text().splitlines()[1:]]
        assert predicted == [bool(s >= threshold[key]) for s, key in zip(scores, keys, strict=True)]
        message = run("apply", file, "--cut", out, "--by", "letter", "--out", tmp_path / "o.csv", code=1).output
        assert "come from 2 columns" in message

    def test_equal_groups_are_counted_each(self, tmp_path):
        (tmp_path / "even.csv").write_text("y,p,tag\n1,0.9,a\n0,0.1,a\n1,0.8,b\n0,0.2,b\n")
        printed = run("tune", tmp_path / "even.csv", "--by", "tag").stdout
        assert "4 rows, " in printed
        assert "on 2 rows each" in printed

    def test_the_page_of_many_labels(self, tagged, tmp_path):
        run("tune", tagged, "--by", "tag", "--report", tmp_path / "page.html")
        assert "3 labels, each with a threshold of its own" in (tmp_path / "page.html").read_text(encoding="utf-8")

    def test_mistakes(self, tagged, tmp_path, cut):
        assert "--prior is for one cut" in run("tune", tagged, "--by", "tag", "--prior", "0.1", code=1).output
        run("tune", tagged, "--by", "tag", "--out", tmp_path / "many.json")
        out = ["--out", tmp_path / "o.csv"]
        assert "say with --by" in run("apply", tagged, "--cut", tmp_path / "many.json", *out, code=1).output
        assert "leave out --by" in run("apply", tagged, "--cut", cut, "--by", "tag", *out, code=1).output
        header, *lines = tagged.read_text().splitlines()
        dated = tmp_path / "dated.csv"
        dated.write_text("\n".join([f"{header},day", *(f"{line},monday" for line in lines)]))
        wrong = [dated, "--cut", tmp_path / "many.json", "--by", "day", *out]
        assert "label in 'day' that is none of" in run("apply", *wrong, "--unknown", "error", code=1).output
        assert "2,000 of 2,000 rows have a label in 'day'" in run("apply", *wrong).stderr
        for command in ("check", "certify"):
            assert "say with --by" in run(command, tagged, "--cut", tmp_path / "many.json", code=1).output
            assert "leave out --by" in run(command, tagged, "--cut", cut, "--by", "tag", code=1).output
            unknown = run(command, dated, "--cut", tmp_path / "many.json", "--by", "day", code=1).output
            assert (
                f"no label of {dated} is known to the cut: the file has labels such as 'monday', the cut 'a';"
                in unknown
            )
            assert "are these the column of --by and the file that you mean?" in unknown
        dated.write_text(tagged.read_text() + "1,0.5,z\n")
        checked = [dated, "--cut", tmp_path / "many.json", "--by", "tag"]
        told = (
            f"1 label of {dated} is not among the cut's 3 labels, such as 'z': remove these rows, or tune on them too"
        )
        assert f"{told}; --unknown drop leaves them out" in run("check", *checked, "--unknown", "error", code=1).output
        assert "--unknown" not in run("certify", *checked, code=1).output

    def test_certify_and_check_label_by_label(self, tagged, tmp_path):
        run("tune", tagged, "--by", "tag", "--out", tmp_path / "many.json")
        options = ["--cut", tmp_path / "many.json", "--by", "tag"]
        assert "these are the validation rows" in run("certify", tagged, *options, code=1).output
        rows = [line.split(",") for line in tagged.read_text().splitlines()]
        header, rows = rows[0], rows[1:]
        place = {name: header.index(name) for name in ("tag", "y", "p")}
        rng = np.random.default_rng(5)
        for row in rows:
            score = rng.random()
            row[place["p"]], row[place["y"]] = str(score), str(int(rng.random() < score**2))
        fresh = tmp_path / "new.csv"
        fresh.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
        cut = MultilabelCut.load(tmp_path / "many.json")
        tallies = []
        for label in cut.labels:
            of_label = [row for row in rows if row[place["tag"]] == str(label)]
            y, p = ([float(row[place[name]]) for row in of_label] for name in ("y", "p"))
            tallies.append(ScoreTally.from_scores(np.array(y) == 1, np.array(p)))
        assert str(certify(cut, tally=tallies)) in run("certify", fresh, *options).stdout
        document = json.loads(run("certify", fresh, *options, "--method", "uniform", "--format", "json").stdout)
        assert document["lower"] == pytest.approx(certify(cut, tally=tallies, method="uniform").lower)
        assert "resampled" in run("certify", fresh, *options, "--method", "bootstrap", code=1).output
        expected = check_label_drift(cut, tallies)
        code = 3 if expected.moved else 0
        document = json.loads(run("check", fresh, *options, "--format", "json", code=code).stdout)
        assert document["moved"] == expected.moved
        assert [one["prior"]["p_value"] for one in document["labels"]] == pytest.approx(
            [one.prior.p_value for one in expected.reports.values()]
        )
        assert "labels" in run("check", fresh, *options, code=code).stdout

    def test_check_goes_on_without_some_labels(self, tmp_path):
        """Labels without rows are not checked, rows of unknown labels are dropped; both are said, or are errors."""
        rng = np.random.default_rng(0)
        score = rng.random(1_500)
        truth, tag = (rng.random(1_500) < score**2).astype(int), np.repeat(["a", "b", "c", "d", "e"], 300)
        rows = [f"{y},{p},{name}" for y, p, name in zip(truth, score, tag, strict=True)]

        def saved(name, tags, renamed=""):
            lines = [line.replace(",e", f",{renamed}") if renamed else line for line in rows if line[-1] in tags]
            (tmp_path / name).write_text("\n".join(["y,p,tag", *lines]) + "\n")
            return tmp_path / name

        run("tune", saved("all.csv", "abcd"), "--by", "tag", "--out", tmp_path / "many.json")
        options = ["--cut", tmp_path / "many.json", "--by", "tag"]
        for new, unchecked in (("some.csv", ["d"]), ("fewer.csv", ["c", "d"])):
            tags = [one for one in "abcd" if one not in unchecked]
            file = saved(new, tags)
            found = run("check", file, *options)
            others = " and 1 other label" if len(unchecked) > 1 else ""
            assert f"{len(tags)} of 4 labels, each at" in found.stdout
            assert f"{unchecked[0]}{others}: not checked, no rows" in found.stdout
            assert "in the labels that could be checked (95 %" in found.stdout
            document = json.loads(run("check", file, *options, "--format", "json").stdout)
            assert document["not_checked"] == dict.fromkeys(unchecked, "no rows")
            assert [one["label"] for one in document["labels"]] == tags
            refused = run("check", file, *options, "--unknown", "error", code=1).output
            assert f"no rows of {len(unchecked)} of the cut's 4 labels, such as {unchecked[0]!r}" in refused
            assert "--unknown drop" in refused
            few = run("check", tmp_path / "all.csv", *options, "--reference", file)
            assert f"{unchecked[0]}{others}: not checked, no reference rows" in few.stdout
        new = saved("new.csv", "abde", "new")
        found = run("check", new, *options)
        assert f"300 of 1,200 rows of {new} have a label in 'tag' that is none of the cut's: they are" in found.stderr
        assert "c: not checked, no rows" in found.stdout
        assert found.stdout == run("check", saved("known.csv", "abd"), *options).stdout
        assert "rows of" in run("check", tmp_path / "all.csv", *options, "--reference", new).stderr
        refused = run("check", new, *options, "--unknown", "error", code=1).output
        assert f"1 label of {new} is not among the cut's 4 labels, such as 'new'" in refused
        assert "other.csv is known to the cut" in run("check", saved("other.csv", "e"), *options, code=1).output


class TestCertify:
    def test_fresh_rows(self, cut, tmp_path):
        fresh = draw(1_000, seed=1)
        printed = run("certify", save(tmp_path / "fresh.csv", *fresh), "--cut", cut).stdout
        assert str(certify(Cut.load(cut), *fresh)) in printed
        assert "these rows did not tune the cut" in printed

    def test_the_tuning_rows_are_refused(self, file, cut):
        assert "these are the validation rows" in run("certify", file, "--cut", cut, code=1).output
        document = json.loads(run("certify", file, "--cut", cut, "--method", "uniform", "--format", "json").stdout)
        assert 0 < document["lower"] < document["value"]

    def test_groups(self, cut, tmp_path):
        labels, scores = draw(800, seed=2)
        lines = [f"{int(y)},{s},{i // 4}" for i, (y, s) in enumerate(zip(labels, scores.tolist(), strict=True))]
        (tmp_path / "grouped.csv").write_text("y,p,patient\n" + "\n".join(lines) + "\n")
        options = ["--cut", cut, "--method", "bootstrap", "--groups", "patient", "--format", "json"]
        document = json.loads(run("certify", tmp_path / "grouped.csv", *options).stdout)
        expected = certify(Cut.load(cut), labels, scores, method="bootstrap", groups=np.arange(800) // 4)
        assert document["lower"] == pytest.approx(expected.lower)
        options += ["--resamples", "300", "--random-state", "5"]
        document = json.loads(run("certify", tmp_path / "grouped.csv", *options).stdout)
        asked = {"method": "bootstrap", "groups": np.arange(800) // 4, "resamples": 300, "random_state": 5}
        assert document["lower"] == pytest.approx(certify(Cut.load(cut), labels, scores, **asked).lower)

    def test_groups_of_many_labels(self, file, tmp_path):
        labels, scores = draw(1_200, seed=2)
        tags, patients = np.arange(1_200) % 3, np.arange(1_200) // 6
        pd.DataFrame({"y": labels.astype(int), "p": scores, "tag": tags, "patient": patients}).to_csv(
            tmp_path / "new.csv", index=False
        )
        then = draw(1_200, seed=3)
        pd.DataFrame({"y": then[0].astype(int), "p": then[1], "tag": tags}).to_csv(tmp_path / "then.csv", index=False)
        run("tune", tmp_path / "then.csv", "--by", "tag", "--out", tmp_path / "many.json")
        options = ["--cut", tmp_path / "many.json", "--by", "tag", "--groups", "patient"]
        document = json.loads(run("certify", tmp_path / "new.csv", *options, "--format", "json").stdout)
        loaded = MultilabelCut.load(tmp_path / "many.json")
        expected = certify(loaded, labels, scores, by=tags, groups=patients)
        assert document["lower"] == pytest.approx(expected.lower)
        assert any("groups" in one for one in document["assumptions"])
        said = run("certify", tmp_path / "new.csv", *options, "--method", "uniform", code=1).stderr
        assert "not independent, which --method uniform needs: use --method holdout" in said


class TestCheck:
    def test_weights(self, cut, tmp_path):
        labels, scores = draw(1_000, seed=1)
        times = np.random.default_rng(0).integers(1, 3, 1_000)
        pd.DataFrame({"y": labels.astype(int), "p": scores, "w": times}).to_csv(tmp_path / "new.csv", index=False)
        asked = ["check", tmp_path / "new.csv", "--cut", cut, "--weight", "w", "--format", "json"]
        document = json.loads(run(*asked, "--weights", "counts").stdout)
        fresh = ScoreTally.from_scores(labels, scores, sample_weight=times)
        expected = check_drift(Cut.load(cut), tally=fresh, weights="counts")
        assert document["rows"] == times.sum() == expected.rows
        assert document["value"]["p_value"] == pytest.approx(expected.value.p_value)
        assert "pass --weights counts if a weight of 2" in run(*asked, code=1).stderr
        assert "--weights importance says" in run(*asked, "--weights", "importance", code=1).stderr
        pd.DataFrame({"y": [0, 1] * 8, "p": [0.5, 0.25] * 8, "w": 1.5}).to_csv(tmp_path / "new.csv", index=False)
        assert "such as 1.5" in run(*asked, "--weights", "counts", code=1).stderr

    def test_no_change_is_code_0(self, cut, tmp_path):
        printed = run("check", save(tmp_path / "new.csv", *draw(1_000, seed=1)), "--cut", cut).stdout
        assert "No sign of a change" in printed
        assert "Smaller changes are found with --reference FILE: the validation rows" in printed
        assert max(map(len, printed.splitlines())) <= 110

    def test_a_change_is_code_3(self, cut, tmp_path):
        labels, scores = draw(1_000, seed=1)
        moved = save(tmp_path / "new.csv", labels & (np.arange(1_000) % 2 == 0), scores)
        printed = run("check", moved, "--cut", cut, code=3).stdout
        assert "statistically significant change" in printed
        assert "The best cut of these rows is" in printed
        document = json.loads(run("check", moved, "--cut", cut, "--format", "json", code=3).stdout)
        assert document["prior"]["moved"]
        assert document["best"]["schema"] == "surecut/cut"
        assert document["best"]["tuning"]["seen"] == []  # which would hold scores and classes of the new rows
        assert "--reference" not in printed
        assert Cut.from_dict(document["best"]).metric.name == "f1"

    def test_reference_rows(self, cut, tmp_path):
        reference = save(tmp_path / "then.csv", *draw(1_000, seed=3))
        new = save(tmp_path / "new.csv", *draw(1_000, seed=4))
        printed = run("check", new, "--cut", cut, "--reference", reference).stdout
        assert "beside 1,000 reference rows" in printed
        assert "--reference" not in printed


class TestMetrics:
    def test_every_metric_is_listed(self):
        printed = run("metrics").stdout
        for name in CATALOGUE:
            assert f"\n{name} " in "\n" + printed

    def test_constants_are_the_theorys(self):
        document = json.loads(run("metrics", "--prior", "0.25", "--optimum", "0.6", "--format", "json").stdout)
        by_name = {row["name"]: row for row in document["metrics"]}
        constants = CATALOGUE["f1"]().constants(0.25, 0.6)
        assert by_name["f1"]["C"] == constants.C
        assert by_name["f1"]["alpha"] == constants.alpha
        assert by_name["mcc"]["C"] is None

    def test_a_prior_that_is_none(self):
        assert "at least 1e-12 and below 1" in run("metrics", "--prior", "1", code=1).output


class TestDemo:
    def test_it_shows_a_table_and_saves_a_picture(self, tmp_path):
        picture = tmp_path / "picture.png"
        result = run("demo", "--out", picture)
        assert picture.read_bytes().startswith(b"\x89PNG")
        for name in demo.METRICS:
            assert name in result.output
        assert max(len(line) for line in result.output.splitlines()[:-1]) <= 80
        assert "picture.png" in result.output

    def test_it_judges_on_rows_that_neither_step_saw(self):
        story = demo.measure(splits=3)
        assert sum(story.sizes.values()) == 1797
        rows = {row.name: row for row in story.rows}
        assert rows["F2"].stable > rows["F2"].usual
        assert rows["F1"].cut.stability.best_value == story.tuning.best_cut("f1").value
        assert story.tuning.sample.rows == story.sizes["tune"]

    def test_a_mistake_gets_a_sentence_and_no_traceback(self, tmp_path):
        assert "there is no folder" in run("demo", "--out", tmp_path / "nowhere" / "picture.png", code=1).output


def test_debug_shows_the_traceback(tmp_path):
    result = runner.invoke(app, ["--debug", "tune", str(tmp_path / "no.csv")])
    assert isinstance(result.exception, FileNotFoundError)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tune", "--metrik", "f1"], "surecut: No such option"),  # how it is quoted depends on Click
        (["tune", "file.csv", "--json"], "surecut: No such option: --json, it is --format json here\n"),
        (["tune"], "surecut: Missing argument 'FILE'\nSee "),
        (["tun"], "surecut: No such command 'tun'"),
        (["study", "ran"], "surecut: No such command 'ran'"),
        (["certify", "file.csv"], "surecut: Missing option '--cut'"),
        (["tune", "file.csv", "--prior", "much"], "surecut: Invalid value for '--prior'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_option_that_does_not_exist_is_code_2(arguments, said):
    result = run(*arguments, code=2)
    assert result.stderr.startswith(said)
    assert "--help\n" in result.stderr


@pytest.mark.parametrize("command", [[], ["study"]])
def test_a_command_of_commands_alone_shows_its_help(command):
    result = runner.invoke(app, command)
    assert result.output.startswith("Usage: ")
    assert "Commands:" in result.output


COMMANDS = ["", "tune", "apply", "certify", "check", "metrics", "demo", "study", "study run", "study plot"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_fits_the_window_and_speaks_to_people(command, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    printed = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [*command.split(), "--help"]).stdout
    lines = printed.splitlines()
    examples = [line for line in lines if line.startswith("  surecut ")]
    assert max(len(line) for line in lines if line not in examples) < min(columns, 101)
    assert all(len(line) < 80 for line in examples)
    assert bool(examples) == (command not in ("", "study", "study run", "study plot"))
    for programmers_word in ("<", "TEXT", "FLOAT", "INTEGER", "BOOLEAN", "list[", "╭"):
        assert programmers_word not in re.sub("(fpr|rate|share)<=", "", printed)


def test_every_option_is_in_the_help():
    import typer

    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        printed = run(name, "--help").stdout
        for param in command.params:
            assert any(option in printed for option in param.opts) or param.param_type_name == "argument", param.name


def test_help_names_the_exit_codes():
    assert "3 check found a change" in " ".join(run("--help").output.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"], ["tune", "--help"]])
def test_help_and_version_load_nothing_heavy(arguments):
    code = (
        "import sys; sys.argv = ['surecut', *sys.argv[1:]]\n"
        "from surecut.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "heavy = {'sklearn', 'numba', 'scipy', 'pandas', 'matplotlib', 'duckdb', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_no_encoding_of_the_output_is_too_old(encoding):
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "surecut", "metrics"], capture_output=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"jaccard" in done.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is always full is Linux's")
@pytest.mark.parametrize("arguments", [["metrics"], ["metrics", "--format", "json"], ["tune", "--help"]])
def test_a_full_disk_behind_the_output_gets_a_sentence(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "surecut", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_replaced_while_it_is_read_gets_a_sentence(file, cut, tmp_path, monkeypatch):
    versions = iter(range(1_000))
    monkeypatch.setattr(Files, "_identified", lambda self: next(versions))
    for command in (["tune"], ["certify", "--cut", cut], ["apply", "--cut", cut, "--out", tmp_path / "out.csv"]):
        refused = run(command[0], file, *command[1:], code=1).output
        assert refused.startswith("surecut: the rows changed between two passes over them")
    assert not (tmp_path / "out.csv").exists()


def test_ctrl_c_gets_a_word_and_its_code(file, monkeypatch):
    from surecut.cli import files

    for stopped in (KeyboardInterrupt(), RuntimeError("Query interrupted")):

        def stop(*_, stopped=stopped, **__):
            raise stopped

        monkeypatch.setattr(files.Table, "column", stop)
        assert "surecut: stopped" in run("tune", file, code=130).output


def test_without_its_extra_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None\nfrom surecut.__main__ import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'surecut[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_apply_does_not_write_over_what_it_reads(file, cut):
    before = file.read_bytes()
    result = run("apply", file, "--cut", cut, "--score", "p", "--out", file, code=1)
    assert "is a file that is read" in result.output.replace("\n", " ")
    assert file.read_bytes() == before


def test_mistakes_of_names_are_said_once(file, cut, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = ["--out", "new.csv"]
    assert "there is no file nofile.json" in run("apply", file, "--cut", "nofile.json", *out, code=1).output
    assert "--out scores.csv is a file that is read: write" in run("tune", file.name, "--out", file.name, code=1).output
    assert "has a column 'y' already" in run("apply", file, "--cut", cut, *out, "--name", "Y", code=1).output
    assert "--debug goes before the command" in run("certify", file, "--cut", cut, "--debug", code=2).output
    promised = run("tune", file, "--by", "y", "--confidence", "0.9", code=1).output
    assert "on held-out rows with surecut certify" in promised


def test_rows_are_not_grouped_by_their_score(tmp_path):
    file = tmp_path / "tags.csv"
    file.write_text("y,p,tag\n1,0.9,a\n0,0.1,a\n1,0.8,b\n0,0.3,b\n")
    cut, told = tmp_path / "cuts.json", "'p' is the column of the score: rows cannot be grouped by it"
    run("tune", file, "--by", "tag", "--out", cut)
    for command in ("tune", "check", "certify", "apply"):
        given = [] if command == "tune" else ["--cut", cut]
        given += ["--out", tmp_path / "out.csv"] if command == "apply" else []
        result = run(command, file, "--score", "p", "--by", "P", *given, code=1)
        assert f"{told}, name another in --by" in result.output.replace("\n", " ")


def test_one_column_is_not_label_and_score(file):
    result = run("tune", file, "--label", "y", "--score", "y", code=1)
    assert "cannot be both the label and the score" in result.output.replace("\n", " ")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_groups_are_looked_up_by_value_whatever_is_written(tmp_path, ending):
    """Columns are copied to CSV as they are written, but 07 is the group 7 all the same."""
    (tmp_path / "rows.csv").write_text("y,p,tag\n1,0.75,7\n0,0.25,7\n1,0.5,8\n0,0.125,8\n")
    (tmp_path / "new.csv").write_text("p,tag\n0.60,07\n0.60,8\n0.60,9\n,7\n")
    out = tmp_path / f"out.{ending}"
    run("tune", tmp_path / "rows.csv", "--by", "tag", "--out", tmp_path / "cut.json")
    result = run("apply", tmp_path / "new.csv", "--cut", tmp_path / "cut.json", "--by", "tag", "--out", out)
    assert "note: 1 of 4 rows have no score in 'p': they are predicted negative" in result.stderr
    assert "note: 1 of 4 rows have a label in 'tag' that is none of the cut's" in result.stderr
    read = pd.read_csv(out, dtype=str) if ending == "csv" else pd.read_parquet(out)
    assert read["predicted"].astype(str).str.lower().tolist() == ["true", "true", "false", "false"]
    if ending == "csv":
        assert read["tag"].tolist() == ["07", "8", "9", "7"]
        assert read["p"].tolist()[:3] == ["0.60"] * 3


@pytest.mark.parametrize(
    ("command", "asked", "said"),
    [
        ("certify", ["--confidence", "2"], "--confidence must fulfil 0 < confidence < 1, such as 0.95, got 2.0"),
        ("certify", ["--method", "uniform", "--groups", "day"], "which --method uniform needs: use --method holdout"),
        ("certify", ["--weights", "counts"], "--weights says what --weight means: give both"),
        ("check", ["--confidence", "0"], "--confidence must fulfil 0 < confidence < 1, such as 0.95, got 0.0"),
        ("check", ["--looks", "0"], "--looks must be a whole number of at least 1, got 0"),
        ("check", ["--weights", "counts"], "--weights says what --weight means: give both"),
    ],
)
def test_options_of_promises_are_refused_before_rows_are_read(cut, tmp_path, command, asked, said):
    assert said in run(command, tmp_path / "there is no such file.csv", "--cut", cut, *asked, code=1).stderr
