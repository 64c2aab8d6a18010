"""Rules of k labels a row in the command line, from tuning to certifying."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from commands import as_json, run, said
from surecut import TopK, apply_frame, certify, tune_threshold, tune_top_k, tune_top_k_frame
from surecut.cli.positives import TableError
from surecut.cli.top_k import costs_of, unmatched_actions

pytest.importorskip("duckdb", reason="files are read by DuckDB")

CLASSES = ["cat", "dog", "fox"]
COLUMNS = {"row": "id", "by": "class", "label": "y", "score": "p"}
LONG = ["--row", "id", "--by", "class"]
COSTS = "true,cat,dog,fox,ask\ncat,0,1,1,0.4\ndog,1,0,1,0.4\nfox,5,5,0,0.4\n"


def draw(rows, seed=0):
    """Classes and scores."""
    random = np.random.default_rng(seed)
    scores = random.dirichlet([3, 2, 1], rows).round(4)
    return np.array([random.choice(3, p=(one + 0.05) / (one + 0.05).sum()) for one in scores]), scores


def table(rows, seed=0):
    """A long table in an order of its own."""
    codes, scores = draw(rows, seed)
    frame = pandas.DataFrame(
        {
            "id": np.repeat(np.arange(rows), 3),
            "class": np.tile(CLASSES, rows),
            "y": np.eye(3, dtype=int)[codes].ravel(),
            "p": scores.ravel(),
            "w": np.repeat(1 + np.arange(rows) % 2, 3),
        }
    )
    return frame.sample(frac=1, random_state=seed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("top_k")
    table(90).to_csv(folder / "long.csv", index=False)
    table(200, seed=1).to_csv(folder / "new.csv", index=False)
    (folder / "costs.csv").write_text(COSTS)
    tune_top_k_frame(table(90), **COLUMNS, k=1).save(folder / "rule.json")
    tune_threshold(table(90)["y"], table(90)["p"]).save(folder / "cut.json")
    return folder


def test_the_rule_is_that_of_the_frame(folder):
    out = folder / "saved.json"
    printed = run("tune", folder / "long.csv", "--top-k", 1, *LONG, "--out", out).stdout
    expected = tune_top_k_frame(table(90), **COLUMNS, k=1)
    assert TopK.load(out) == expected
    assert "90 rows with 3 labels in 270 lines, 33.33% true (y = 1); score in 'p'" in printed
    assert (
        f"macro f1 of 3 classes: {expected.value:.4f}; the largest score has {expected.baseline.value:.4f}" in printed
    )
    assert printed.splitlines()[4].split() == [
        "label",
        "a",
        "offset",
        "before",
        "after",
        "true",
        "recall",
        "precision",
        "f1",
    ]
    assert max(map(len, printed.splitlines()[:-1])) <= 80
    assert printed.splitlines()[-1] == f"rule saved: {out}"


def test_options_are_those_of_the_function(folder):
    found = as_json(
        "tune", folder / "long.csv", "--top-k", 1, *LONG, "--metric", "accuracy", "--metric", "f1", "--weight", "w"
    )
    assert (found["lines"], found["rows"]) == (270, 90)
    expected = tune_top_k_frame(table(90), **COLUMNS, k=1, metric=["accuracy", "f1"], weight="w")
    assert [one["value"] for one in found["rules"]] == [one.value for one in expected.values()]
    printed = run("tune", folder / "long.csv", "--top-k", 1, *LONG, "--metric", "accuracy").stdout
    of_classes = tune_top_k_frame(table(90), **COLUMNS, k=1, metric="accuracy")
    assert f"\naccuracy of 3 classes: {of_classes.value:.4f}; the largest score has " in printed
    found = as_json("tune", folder / "long.csv", "--top-k", 2, *LONG, "--average", "weighted", "--stable")
    expected = tune_top_k_frame(table(90), **COLUMNS, k=2, average="weighted", stable=True)
    assert found["rules"][0]["value"] == expected.value


def test_costs_are_read_from_a_file(folder):
    out = folder / "costs.json"
    printed = run(
        "tune", folder / "long.csv", "--top-k", 1, *LONG, "--costs", folder / "costs.csv", "--out", out
    ).stdout
    codes, scores = draw(90)
    costs = {"cat": [0, 1, 5], "dog": [1, 0, 5], "fox": [1, 1, 0], "ask": 0.4}
    expected = tune_top_k(np.array(CLASSES)[codes], scores, k=1, costs=costs)
    assert TopK.load(out).value == expected.value
    assert f"Cost of a row: {-expected.value:.4f}; without the rule {-expected.baseline.value:.4f}" in printed
    assert "Costs are compared by probabilities, which a curve of the scores (softmax) gives" in printed
    asking = next(line for line in printed.splitlines() if line.startswith("ask")).split()
    assert asking[2] == f"{expected.matrix[:, 3].sum() / 90:.1%}"
    assert as_json("tune", folder / "long.csv", "--top-k", 1, *LONG, "--reject-cost", 0.3)["rules"][0]["value"] == (
        tune_top_k(np.array(CLASSES)[codes], scores, k=1, reject_cost=0.3).value
    )


def test_the_page_and_a_table_are_saved(folder):
    page, out = folder / "page.html", folder / "rule.parquet"
    printed = run("tune", folder / "long.csv", "--top-k", 1, *LONG, "--report", page, "--out", out).stdout
    assert printed.splitlines()[-2:] == [f"rule saved: {out}", f"page saved: {page}"]
    assert TopK.load(out) == TopK.load(folder / "rule.json")
    assert "long.csv" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("true,cat\n", "must hold a line for each true class"),
        ("true,cat,dog\ncat,0,1\ndog,1,0\n", "lacks the costs of the class 'fox'"),
        ("true,cat,dog\ncat,0,1\nyak,1,0\n", "names the class 'yak', and the classes are 'cat', 'dog', 'fox'"),
        ("true,cat,dog\ncat,0,1\ncat,1,0\n", "names the class 'cat', twice"),
        ("true,cat,dog\ncat,0\n", "the class 'cat' has 1 cost"),
        ("true,cat,dog\ncat,0,much\n", "must hold numbers, got 0, much for 'cat'"),
        ("true,cat,cat\ncat,0,1\n", "names an action twice"),
    ],
)
def test_costs_that_are_no_matrix_are_refused(tmp_path, text, reason):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(TableError, match=reason):
        costs_of(path, CLASSES)


def test_lines_that_lack_a_value_are_named_and_dropped_with_a_note(tmp_path):
    frame = table(90)
    is_broken = (frame["id"] == 3) & (frame["y"] == 0)
    frame.assign(p=frame["p"].where(~is_broken)).to_csv(tmp_path / "long.csv", index=False)
    message = said("tune", tmp_path / "long.csv", "--top-k", 1, *LONG)
    assert "2 of 270 rows are null or NaN (2 without a score)" in message
    assert "--missing drop" in message
    found = run("tune", tmp_path / "long.csv", "--top-k", 1, *LONG, "--missing", "drop")
    assert "note: dropped rows: 2 of 270 rows are null or NaN" in found.stderr
    assert "89 rows with 3 labels" in found.stdout


def test_apply_adds_what_apply_frame_does(folder):
    out = folder / "predictions.csv"
    printed = run("apply", folder / "new.csv", "--cut", folder / "rule.json", *LONG, "--out", out).stdout
    assert printed == f"200 rows in 600 lines: 200 given a label; column 'predicted' in {out}\n"
    found = pandas.read_csv(out)
    new = pandas.read_csv(folder / "new.csv")
    expected = apply_frame(new, TopK.load(folder / "rule.json"), row="id", by="class", score="p")
    pandas.testing.assert_frame_equal(found, expected)


def test_certify_promises_what_the_function_does(folder):
    found = as_json("certify", folder / "new.csv", "--cut", folder / "rule.json", *LONG, "--method", "bootstrap")
    assert (found["rows"], found["method"]) == (200, "bootstrap")
    codes, scores = draw(200, seed=1)
    rule = TopK.load(folder / "rule.json")
    order = np.random.default_rng(0).permutation(200)  # of rows in order of their names
    expected = certify(rule, np.array(CLASSES)[codes][order], scores[order])
    found = as_json("certify", folder / "new.csv", "--cut", folder / "rule.json", *LONG)
    assert (found["value"], found["lower"]) == (expected.value, expected.lower)
    printed = run("certify", folder / "new.csv", "--cut", folder / "rule.json", *LONG).stdout.splitlines()
    headings = next(number for number, line in enumerate(printed) if line.startswith("label"))
    assert " ".join(printed[headings].split()) == "label rows recall at least predicted precision at least"
    first = printed[headings + 1].split()
    assert first[0] == "cat"
    assert [float(one) for one in first[2:4]] == [
        round(one, 4) for one in (expected.recall.value[0], expected.recall.lower[0])
    ]
    assert max(map(len, printed[headings : headings + 4])) <= 80
    message = said("certify", folder / "long.csv", "--cut", folder / "rule.json", *LONG)
    assert "these are the validation rows of the rule" in message


def test_labels_that_the_rule_does_not_know_are_refused(folder, tmp_path):
    new = pandas.read_csv(folder / "new.csv")
    new.assign(**{"class": new["class"].replace("fox", "yak")}).to_csv(tmp_path / "other.csv", index=False)
    message = said("certify", tmp_path / "other.csv", "--cut", folder / "rule.json", *LONG)
    assert "1 label of" in message
    assert "such as 'yak', is unknown to the rule" in message
    new.assign(**{"class": new["class"] + "s"}).to_csv(tmp_path / "other.csv", index=False)
    assert "no label of" in said("certify", tmp_path / "other.csv", "--cut", folder / "rule.json", *LONG)
    new.loc[new["class"] != "fox"].to_csv(tmp_path / "other.csv", index=False)
    message = said("certify", tmp_path / "other.csv", "--cut", folder / "rule.json", *LONG)
    assert "the rule is of rows with one class each" in message


def test_no_column_with_another_part_is_guessed(tmp_path):
    table(90).rename(columns={"y": "is_true", "p": "prob"}).to_csv(tmp_path / "long.csv", index=False)
    message = said("tune", tmp_path / "long.csv", "--top-k", 1, *LONG)
    assert "which column holds the label? Say --label NAME; its columns are" in message
    assert "UNPIVOT" not in message
    table(90).rename(columns={"y": "is_true", "w": "y"}).to_csv(tmp_path / "long.csv", index=False)
    assert "which column holds the label?" in said("tune", tmp_path / "long.csv", "--top-k", 1, *LONG, "--weight", "y")
    found = as_json("tune", tmp_path / "long.csv", "--top-k", 1, *LONG, "--label", "is_true")
    assert (found["label"], found["score"]) == ("is_true", "p")
    table(90).rename(columns={"class": "score"}).to_csv(tmp_path / "long.csv", index=False)
    by_score = ["--row", "id", "--by", "score"]
    assert as_json("tune", tmp_path / "long.csv", "--top-k", 1, *by_score, "--out", tmp_path / "rule.json")["rows"]
    run("apply", tmp_path / "long.csv", "--cut", tmp_path / "rule.json", *by_score, "--out", tmp_path / "out.csv")


def test_a_wide_table_is_named(tmp_path):
    codes, scores = draw(20)
    wide = pandas.DataFrame(scores, columns=["p_cat", "p_dog", "p_fox"]).assign(id=range(20), y=codes)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    message = said("tune", tmp_path / "wide.csv", "--top-k", 1, *LONG)
    assert "has no column 'class'" in message
    assert "UNPIVOT (DuckDB) or melt (pandas) makes a long one of it" in message
    message = said("tune", tmp_path / "wide.csv", "--top-k", 1, "--row", "id", "--by", "p_cat", "--label", "y")
    assert "which column holds the score?" in message
    assert "UNPIVOT (DuckDB)" in message
    table(20).to_csv(tmp_path / "long.csv", index=False)
    message = said("tune", tmp_path / "long.csv", "--top-k", 1, "--row", "id", "--by", "clas")
    assert "did you mean 'class'?" in message
    assert "UNPIVOT" not in message


def test_a_label_that_names_the_true_class_is_explained(folder, tmp_path):
    long = table(90)
    truth = long.loc[long["y"] == 1].set_index("id")["class"]
    long.assign(y=long["id"].map(truth)).to_csv(tmp_path / "long.csv", index=False)
    for command in (("tune", "--top-k", 1), ("certify", "--cut", folder / "rule.json")):
        message = said(command[0], tmp_path / "long.csv", *command[1:], *LONG)
        assert "column 'y' must hold two classes, found 3: 'cat', 'dog', 'fox'" in message
        assert "the label says whether the line's class is the true one: 1 in that line, 0 in the" in message
        assert "make one column per class" not in message


def test_a_misspelt_class_among_the_costs_is_noted(folder, tmp_path):
    (tmp_path / "costs.csv").write_text(COSTS.replace("true,cat,dog,fox", "true,cat,dog,foxx"))
    found = run("tune", folder / "long.csv", "--top-k", 1, *LONG, "--costs", tmp_path / "costs.csv")
    said_of = " ".join(found.stderr.split())
    assert "note: 'foxx', 'ask' are actions and no classes (did you mean 'fox'?); no action is called 'fox'" in said_of
    assert run("tune", folder / "long.csv", "--top-k", 1, *LONG, "--costs", folder / "costs.csv").stderr == ""
    assert unmatched_actions(["ok", "fruad"], ["fraud", "ok"]) == [
        "'fruad' is an action and no class (did you mean 'fraud'?); no action is called 'fraud', so it is never "
        "predicted"
    ]
    assert unmatched_actions(["ask"], [1, 2]) == [
        "'ask' is an action and no class; no action is called '1', '2', so they are never predicted"
    ]
    assert unmatched_actions([1], [1, 2]) == []


def test_apply_counts_rows_that_get_another_action(folder, tmp_path):
    rule = tune_top_k_frame(table(90), **COLUMNS, k=1, reject_cost=0.3)
    rule.save(tmp_path / "rule.json")
    _, scores = draw(200, seed=1)
    rejected = list(rule.predict(scores)).count("reject")
    assert 0 < rejected < 200
    printed = run(
        "apply", folder / "new.csv", "--cut", tmp_path / "rule.json", *LONG, "--out", tmp_path / "x.csv"
    ).stdout
    assert printed == (
        f"200 rows in 600 lines: {200 - rejected} given a class, {rejected} 'reject'; column 'predicted' in "
        f"{tmp_path / 'x.csv'}\n"
    )
    found = pandas.read_csv(tmp_path / "x.csv")
    assert (~found.groupby("id")["predicted"].any()).sum() == rejected
    rule = tune_top_k_frame(table(90), **COLUMNS, k=2)
    rule.save(tmp_path / "two.json")
    new = pandas.read_csv(folder / "new.csv")
    new["p"] = new["p"].where(new["id"] != 7)
    new.to_csv(tmp_path / "new.csv", index=False)
    printed = run(
        "apply", tmp_path / "new.csv", "--cut", tmp_path / "two.json", *LONG, "--out", tmp_path / "x.parquet"
    ).stdout
    assert printed.startswith("200 rows in 600 lines: 199 given 398 labels, 1 given none; column 'predicted' in ")


def test_pairs_without_a_line_are_counted(folder, tmp_path):
    long = table(90)
    fewer = long.loc[(long["y"] == 1) | (long["class"] != "cat")]
    fewer.to_csv(tmp_path / "long.csv", index=False)
    left_out = 270 - len(fewer)
    found = run("tune", tmp_path / "long.csv", "--top-k", 1, *LONG)
    note = f"note: {left_out} of 270 pairs of a row and a label have no line with a score: they are never predicted"
    assert note in " ".join(found.stderr.split())
    assert run("tune", folder / "long.csv", "--top-k", 1, *LONG).stderr == ""


def test_a_rule_saved_as_a_table_is_known(folder, tmp_path):
    TopK.load(folder / "rule.json").save(tmp_path / "rule.parquet")
    found = as_json("certify", folder / "new.csv", "--cut", tmp_path / "rule.parquet", *LONG)
    assert found["value"] == as_json("certify", folder / "new.csv", "--cut", folder / "rule.json", *LONG)["value"]
    table(5).to_parquet(tmp_path / "rows.parquet")
    message = said("certify", folder / "new.csv", "--cut", tmp_path / "rows.parquet", *LONG)
    assert "is not a saved cut: it is not a Parquet file that surecut wrote" in message


REFUSED = [
    (["tune", "long.csv", "--top-k", 1], "say with --row which column names the row of a line"),
    (["tune", "long.csv", "--top-k", 1, "--row", "id"], "say with --by which column names the label of a line"),
    (["tune", "long.csv", "--top-k", 0, *LONG], "--top-k must be a whole number of labels"),
    (["tune", "long.csv", "--top-k", 4, *LONG], "--top-k must be at most the number of labels, 3, got 4"),
    (["tune", "long.csv", *LONG], "--row goes with --top-k"),
    (["tune", "long.csv", "--costs", "costs.csv"], "--costs goes with --top-k"),
    (["tune", "long.csv", "--reject-cost", 0.3], "--reject-cost goes with --top-k"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--constraint", "fpr<=0.1"], "--constraint cannot be used with --top-k"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--confidence", 0.9], "--confidence cannot be used with --top-k"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--prior", 0.9], "--prior cannot be used with --top-k"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--upper", "ppv>=0.9"], "zones are of one score"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--bands"], "--bands cannot be used with --top-k"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--metric", "f1", "--reject-cost", 1], "leave out --metric"),
    (["tune", "long.csv", "--top-k", 2, *LONG, "--reject-cost", 1], "--top-k must be 1, got 2"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--average", "samples"], "--average must be one of"),
    (["tune", "long.csv", "--top-k", 1, "--row", "w", "--by", "class"], "repeat the row and label of another line"),
    (
        ["tune", "long.csv", "--top-k", 1, *LONG, "--weight", "p", "--score", "p"],
        "must be the same in all lines of a row",
    ),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--costs", "no.csv"], "there is no file"),
    (["tune", "long.csv", "--top-k", 1, *LONG, "--metric", "f1_macro"], "say --metric f1 --average macro"),
    (["tune", "long.csv", "--top-k", 1], "UNPIVOT (DuckDB) or melt (pandas)"),
    (["apply", "new.csv", "--cut", "no.json", *LONG, "--out", "x.csv"], "there is no file no.json"),
    (["apply", "new.csv", "--cut", "no.parquet", *LONG, "--out", "x.csv"], "there is no file no.parquet"),
    (["apply", "new.csv", "--cut", "no.json", "--by", "class", "--out", "x.csv"], "there is no file no.json"),
    (["apply", "new.csv", "--cut", "costs.csv", *LONG, "--out", "x.csv"], "costs.csv is not a saved cut"),
    (["certify", "new.csv", "--cut", "no.json", *LONG], "there is no file no.json"),
    (["certify", "new.csv", "--cut", "costs.csv", *LONG], "costs.csv is not a saved cut"),
    (["check", "new.csv", "--cut", "rule.json", *LONG], "certify the rule on held-out rows of then"),
    (["check", "new.csv", "--cut", "cut.json", "--row", "id"], "holds a single cut: leave out --row"),
    (["apply", "new.csv", "--cut", "rule.json", "--out", "x.csv"], "say with --row and --by which columns"),
    (["apply", "new.csv", "--cut", "rule.json", "--by", "class", "--out", "x.csv"], "say with --row and --by"),
    (["apply", "new.csv", "--cut", "cut.json", "--row", "id", "--out", "x.csv"], "holds a single cut: leave out --row"),
    (["apply", "new.csv", "--cut", "rule.json", *LONG, "--negative", "no", "--out", "x.csv"], "--negative names the"),
    (["certify", "new.csv", "--cut", "rule.json", "--by", "class"], "say with --row and --by which columns"),
    (["certify", "new.csv", "--cut", "rule.json", *LONG, "--groups", "w"], "--groups is for cuts and bands"),
    (["certify", "new.csv", "--cut", "rule.json", *LONG, "--method", "uniform"], "--method uniform has no limits"),
    (["check", "new.csv", "--cut", "rule.json", "--by", "class"], "certify the rule on held-out rows of then"),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_mistake_gets_a_sentence(folder, monkeypatch, arguments, reason):
    monkeypatch.chdir(folder)
    message = said(*arguments)
    assert reason in message
    assert not (folder / "x.csv").exists()
