"""What odd rows mean: the same to every function, every kind of table and every command.

`TABLE` says it, situation by situation; `docs/odd_rows.md` shows the same table. Each cell holds for all entry points
of its column: the same answer, or an error with the same reason.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from engines import IN_PROCESS
from surecut import (
    Cut,
    MissingRowsWarning,
    MultilabelCut,
    PlugInClassifier,
    ScoreSketch,
    ScoreTally,
    UnknownLabelWarning,
    apply_frame,
    certify,
    check_drift,
    tally_frame,
    tune_frame,
    tune_threshold,
    tune_thresholds,
)

pandas = pytest.importorskip("pandas")
nw = pytest.importorskip("narwhals.stable.v2")
for _library in ("polars", "pyarrow", "duckdb", "ibis", "sklearn"):
    pytest.importorskip(_library)
testing = pytest.importorskip("typer.testing")

DOCS = Path(__file__).parents[2] / "docs" / "odd_rows.md"

ROWS = pandas.DataFrame(
    {
        "label": [0, 0, 1, 1, 0, 0, 1, 1],
        "score": [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0],
        "weight": 1.0,
        "group": list("aaaabbbb"),
    }
)
ODD = 3
"""The row that is changed: a positive one of group a, at 0.5."""

WITHOUT = ROWS.drop(index=ODD).reset_index(drop=True)


def with_odd(**values):
    """The rows with other values in one of them."""
    columns = {name: list(ROWS[name]) for name in ROWS}
    for name, value in values.items():
        columns[name][ODD] = value
    frame = pandas.DataFrame(columns)
    return frame.astype({"label": "Int64"}) if "label" in values else frame


# What a cell says


@dataclass(frozen=True)
class Refused:
    """An error, whose message has these words."""

    text: str
    words: str


@dataclass(frozen=True)
class LeftOut:
    """An error by default; with `missing="drop"` the answer is that of the rows without this one."""

    text: str = "error, or left out"
    words: str = "NaN|null|missing|without a value|got nan"


@dataclass(frozen=True)
class Found:
    """An answer: (threshold, value) of a cut, thresholds by group, or how many rows are predicted positive."""

    text: str
    answer: object = None
    """None: the one that all entry points agree in."""


@dataclass(frozen=True)
class Negative:
    """Predicted negative by default, with a warning where rows are counted; an error on request."""

    text: str
    positives: int
    words: str


LEFT_OUT = LeftOut()
SAME = Found("not looked at")
NO_ROWS = Refused("error", "empty|no rows|holds no|one class or none")
TWO_CLASSES = Refused("error", "two classes|knows the classes 0, 1|0 and 1")
NO_POSITIVES = Refused("error: F1 is undefined", "undefined without rows of the positive class|one class or none")
UNKNOWN = Refused("error; `surecut check` leaves it out", "not among the cut's")
NO_SCORE = Negative("negative, or an error", 5, "no score|NaN in 1 of 8")
NO_GROUP = Negative("negative, or an error", 5, "none of the cut's")

COLUMNS = ("tune", "tune by group", "certify, check", "certify, check by group", "apply", "apply by group")

TABLE = {
    "a missing score": (with_odd(score=math.nan), LEFT_OUT, LEFT_OUT, LEFT_OUT, LEFT_OUT, NO_SCORE, NO_SCORE),
    "a missing label": (with_odd(label=None), LEFT_OUT, LEFT_OUT, LEFT_OUT, LEFT_OUT, SAME, SAME),
    "a missing weight": (with_odd(weight=math.nan), LEFT_OUT, LEFT_OUT, LEFT_OUT, LEFT_OUT, SAME, SAME),
    "a missing group": (with_odd(group=None), SAME, LEFT_OUT, SAME, LEFT_OUT, SAME, NO_GROUP),
    "an unknown group": (
        with_odd(group="new"),
        SAME,
        Found("a threshold of its own", {"a": 0.3125, "b": 0.8125, "new": 0.5}),
        SAME,
        UNKNOWN,
        SAME,
        NO_GROUP,
    ),
    "a third label": (with_odd(label=2), TWO_CLASSES, TWO_CLASSES, TWO_CLASSES, TWO_CLASSES, SAME, SAME),
    "no rows": (ROWS[:0], NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, Found("no predictions", 0), Found("no predictions", 0)),
    "all labels positive": (
        ROWS.assign(label=1),
        Found("the lowest score", (0.125, 1.0)),
        Found("the lowest score of each", {"a": 0.125, "b": 0.625}),
        Found("an answer"),
        Found("an answer"),
        SAME,
        SAME,
    ),
    "all labels negative": (
        ROWS.assign(label=0),
        NO_POSITIVES,
        NO_POSITIVES,
        NO_POSITIVES,
        Found("F1 counts as 0; nothing to check: an error"),
        SAME,
        SAME,
    ),
    "a group without positives": (
        ROWS.assign(label=[0, 0, 0, 0, 0, 0, 1, 1]),
        Found("an answer", (0.8125, 1.0)),
        Found("the threshold of all rows", {"a": 0.8125, "b": 0.8125}),
        Found("an answer"),
        Found("F1 counts as 0; not checked"),
        SAME,
        SAME,
    ),
    "one row": (
        ROWS[ODD : ODD + 1],
        Found("its score, if positive", (0.5, 1.0)),
        Found("its score, if positive", {"a": 0.5}),
        Found("an answer, hardly a limit"),
        None,
        Found("as any row", 1),
        Found("as any row", 1),
    ),
    "all scores equal": (
        ROWS.assign(score=0.5),
        Found("that score, or +∞", (0.5, 2 / 3)),
        Found("that score, or +∞", {"a": 0.5, "b": 0.5}),
        Found("an answer"),
        Found("an answer"),
        Found("as any row", 8),
        Found("as any row", 4),
    ),
    "a score of +∞": (
        with_odd(score=math.inf),
        Found("the highest score", (0.8125, 6 / 7)),
        Found("the highest score", {"a": 0.3125, "b": 0.8125}),
        Found("the highest score"),
        Found("the highest score"),
        Found("positive, unless the threshold is +∞", 6),
        Found("positive, unless the threshold is +∞", 4),
    ),
    "a score of −∞": (
        with_odd(score=-math.inf),
        Found("the lowest score", (0.8125, 2 / 3)),
        Found("the lowest score", {"a": 0.3125, "b": 0.8125}),
        Found("the lowest score"),
        Found("the lowest score"),
        Found("negative, unless the threshold is −∞", 5),
        Found("negative, unless the threshold is −∞", 3),
    ),
}
"""Situation → rows, and what they mean in each of `COLUMNS`; None is not compared. The metric is F1."""


# Entry points


def array(frame, column):
    values = frame[column]
    if column == "label" and not values.isna().any():
        return values.to_numpy(dtype=np.int64)
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def weights_of(frame, weighted):
    return {"sample_weight": array(frame, "weight")} if weighted else {}


def as_csv(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_json_lines(frame, folder):
    """Infinite numbers as Python writes them, Infinity; missing values as null."""
    path = folder / "rows.jsonl"
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


HELD = IN_PROCESS | {"csv": as_csv, "json lines": as_json_lines}

FILES = {"csv": as_csv, "json lines": as_json_lines, "parquet": IN_PROCESS["parquet"]}

FEWER = {"csv": as_csv}
"""Where one file stands for all: that files are read alike is another test's."""

RUNNER = testing.CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"})


def command(*arguments):
    """Run a command; its sentence is an error of the same type as the function's."""
    from surecut.cli.app import app

    result = RUNNER.invoke(app, [str(one) for one in arguments])
    if result.exit_code in (0, 3):
        return result.stdout
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1, result.output
    raise ValueError(result.stderr)


class Through:
    """A fitted classifier whose score is its only feature."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


def classifier():
    from sklearn.base import BaseEstimator, ClassifierMixin

    return type("Model", (Through, ClassifierMixin, BaseEstimator), {})().fit(None, None)


def of_cut(cut):
    return cut.threshold, cut.value


def of_groups(cut):
    return dict(zip(cut.labels, cut.thresholds.tolist(), strict=True))


COLUMN = {"label": "label", "score": "score"}
SAID = ("--label", "label", "--score", "score")


def tune_points(folder, weighted):
    """Every way to one cut: name → function of rows and of what happens to missing ones."""
    named = {"weight": "weight"} if weighted else {}
    asked = ("--weight", "weight") if weighted else ()

    def arrays(frame):
        return array(frame, "label"), array(frame, "score")

    def sketched(frame, missing):
        sketch = ScoreSketch()
        sketch.update(*arrays(frame), missing=missing, **weights_of(frame, weighted))
        cut = sketch.best_cut("f1")
        return pytest.approx(cut.threshold, rel=0.004), cut.lower  # an edge of its bins

    def classified(frame, missing):
        model = PlugInClassifier(classifier(), cv="prefit")
        return of_cut(
            model.fit(array(frame, "score")[:, None], array(frame, "label"), **weights_of(frame, weighted)).cut_
        )

    def commanded(write):
        def run(frame, missing):
            out = folder / "cut.json"
            command("tune", write(frame, folder), *SAID, *asked, "--missing", missing, "--out", out)
            return of_cut(Cut.load(out))

        return run

    yield (
        "tune_threshold",
        lambda frame, missing: of_cut(tune_threshold(*arrays(frame), missing=missing, **weights_of(frame, weighted))),
    )
    yield (
        "ScoreTally",
        lambda frame, missing: of_cut(
            ScoreTally.from_scores(*arrays(frame), missing=missing, **weights_of(frame, weighted)).best_cut("f1")
        ),
    )
    yield "ScoreSketch", sketched
    yield "PlugInClassifier", classified
    for name, held in HELD.items():
        yield (
            f"tune_frame of {name}",
            lambda frame, missing, held=held: of_cut(
                tune_frame(held(frame, folder), **COLUMN, **named, missing=missing)
            ),
        )
    yield (
        "tally_frame",
        lambda frame, missing: of_cut(tally_frame(frame, **COLUMN, **named, missing=missing).best_cut("f1")),
    )
    for name, write in FILES.items():
        yield f"surecut tune of {name}", commanded(write)


def group_points(folder, weighted):
    """Every way to a threshold per group."""
    named = {"weight": "weight"} if weighted else {}
    asked = ("--weight", "weight") if weighted else ()

    def commanded(write):
        def run(frame, missing):
            out = folder / "cuts.json"
            command("tune", write(frame, folder), *SAID, *asked, "--by", "group", "--missing", missing, "--out", out)
            return of_groups(MultilabelCut.load(out))

        return run

    for name, held in HELD.items():
        yield (
            f"tune_frame(by=) of {name}",
            lambda frame, missing, held=held: of_groups(
                tune_frame(held(frame, folder), **COLUMN, **named, by="group", missing=missing)
            ),
        )
    for name, write in FILES.items():
        yield f"surecut tune --by of {name}", commanded(write)


CUT = tune_threshold(ROWS["label"], ROWS["score"])
CUTS = tune_frame(ROWS, **COLUMN, by="group")


def judged_points(folder, weighted):
    """Every way to certify a cut, and to check it."""
    asked = ("--weight", "weight") if weighted else ()
    CUT.save(folder / "saved.json")
    saved = ("--cut", folder / "saved.json", "--format", "json", *SAID, *asked)

    def arrays(frame):
        return array(frame, "label"), array(frame, "score")

    def checked(frame, missing):
        report = check_drift(CUT, *arrays(frame), missing=missing, **weights_of(frame, weighted))
        return report.prior.p_value, report.value.p_value

    def checked_by_command(write):
        def run(frame, missing):
            found = json.loads(command("check", write(frame, folder), *saved, "--missing", missing))
            return found["prior"]["p_value"], found["value"]["p_value"]

        return run

    def certified_by_command(write, method, *more):
        def run(frame, missing):
            asked = (*saved, "--method", method, *more, "--missing", missing)
            return json.loads(command("certify", write(frame, folder), *asked))["lower"]

        return run

    for method, held_out in (("uniform", None), ("holdout", True)):
        more = ("--held-out",) if held_out else ()
        yield (
            f"certify {method}",
            "certify",
            lambda frame, missing, method=method, held_out=held_out: (
                certify(
                    CUT,
                    *arrays(frame),
                    method=method,
                    held_out=held_out,
                    missing=missing,
                    **weights_of(frame, weighted),
                ).lower
            ),
        )
        for name, write in FEWER.items():
            yield f"surecut certify {method} of {name}", "certify", certified_by_command(write, method, *more)
    yield "check_drift", "check", checked
    for name, write in FEWER.items():
        yield f"surecut check of {name}", "check", checked_by_command(write)


def judged_group_points(folder, weighted):
    """Every way to certify and to check the cuts of groups."""
    asked = ("--weight", "weight") if weighted else ()
    CUTS.save(folder / "saved.json")
    saved = ("--cut", folder / "saved.json", "--by", "group", "--format", "json", *SAID, *asked)

    def certified(frame, missing):
        columns = array(frame, "label"), array(frame, "score")
        options = {"by": frame["group"].to_numpy(dtype=object), "method": "uniform", "missing": missing}
        return certify(CUTS, *columns, **options, **weights_of(frame, weighted)).lower

    def certified_by_command(write):
        def run(frame, missing):
            asked = (*saved, "--method", "uniform", "--missing", missing)
            return json.loads(command("certify", write(frame, folder), *asked))["lower"]

        return run

    def checked_by_command(write):
        def run(frame, missing):
            known = ("--unknown", "error") if "new" in set(frame["group"]) else ()
            found = json.loads(command("check", write(frame, folder), *saved, *known, "--missing", missing))
            return [one["label"] for one in found["labels"]], sorted(found["not_checked"])

        return run

    yield "certify(by=)", "certify", certified
    for name, write in FEWER.items():
        yield f"surecut certify --by of {name}", "certify", certified_by_command(write)
        yield f"surecut check --by of {name}", "check", checked_by_command(write)


def collected(frame):
    """How many rows are predicted positive; the column is never null."""
    wrapped = nw.from_native(frame)
    wrapped = wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped
    flags = wrapped["predicted"].to_list()
    assert set(flags) <= {True, False}
    return sum(flags)


def apply_points(folder, by):
    """Every way to apply a cut: name → function of rows and of what rows that it cannot predict are."""
    cut, keys, asked = (CUTS, {"by": "group"}, ("--by", "group")) if by else (CUT, {}, ())
    cut.save(folder / "saved.json")

    def commanded(write):
        def run(frame, missing):
            out = folder / "predicted.parquet"
            how = ("--missing", missing, "--unknown", missing)
            command("apply", write(frame, folder), "--cut", folder / "saved.json", *asked, *how, "--out", out)
            return int(pandas.read_parquet(out)["predicted"].sum())

        return run

    if not by:
        yield "Cut.predict", lambda frame, missing: int(CUT.predict(array(frame, "score"), missing=missing).sum())
    for name, held in HELD.items():
        yield (
            f"apply_frame of {name}",
            lambda frame, missing, held=held: collected(
                apply_frame(held(frame, folder), cut, score="score", **keys, missing=missing, unknown=missing)
            ),
        )
    for name, write in FEWER.items():
        yield f"surecut apply of {name}", commanded(write)


# The laws


@pytest.fixture(autouse=True)
def _no_warnings_of_odd_rows():
    """They are tested where they arise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingRowsWarning)
        warnings.simplefilter("ignore", UnknownLabelWarning)
        yield


def cells(column):
    """The situations, with what they mean in a column."""
    position = COLUMNS.index(column)
    return [pytest.param(situation, *row[:1], row[1:][position], id=situation) for situation, row in TABLE.items()]


EXCEPTIONS = {
    ("PlugInClassifier", "all labels positive"): "scikit-learn's classifiers refuse one class",
    ("PlugInClassifier", "one row"): "scikit-learn's classifiers refuse one class",
    ("apply_frame of json lines", "no rows"): "without a row JSON lines have no columns",
}
"""Where an entry point refuses what the others take, and why."""


def assert_means(points, situation, frame, cell, expected_of):
    """Every entry point does what a cell says. `expected_of(frame)` is the answer of one of them, without options."""
    for name, ask in points:
        if (name, situation) in EXCEPTIONS:
            with pytest.raises(ValueError, match=r"one class or none|is empty"):
                ask(frame, "error")
            continue
        if isinstance(cell, Refused | LeftOut):
            with pytest.raises(ValueError, match=cell.words):
                ask(frame, "error")
        if isinstance(cell, Refused):
            continue
        if isinstance(cell, LeftOut) and name == "PlugInClassifier":
            continue  # it has no such option
        found = ask(frame, "drop" if isinstance(cell, LeftOut) else "error")
        if isinstance(cell, LeftOut):
            expected = expected_of(WITHOUT)
        elif isinstance(cell, Found) and cell.answer is not None:
            expected = cell.answer
        else:
            expected = expected_of(ROWS if cell is SAME else frame)
        assert found == expected, (name, situation, found, expected)


@pytest.mark.parametrize(("situation", "frame", "cell"), cells("tune"))
def test_tuning(situation, frame, cell, tmp_path):
    def expected(rows):
        cut = tune_threshold(rows["label"], rows["score"])
        return cut.threshold, cut.value

    assert_means(tune_points(tmp_path, situation == "a missing weight"), situation, frame, cell, expected)


@pytest.mark.parametrize(("situation", "frame", "cell"), cells("tune by group"))
def test_tuning_by_group(situation, frame, cell, tmp_path):
    def expected(rows):
        return of_groups(tune_frame(rows, **COLUMN, by="group"))

    assert_means(group_points(tmp_path, situation == "a missing weight"), situation, frame, cell, expected)


@pytest.mark.parametrize(("situation", "frame", "cell"), cells("certify, check"))
def test_certifying_and_checking(situation, frame, cell, tmp_path):
    points = list(judged_points(tmp_path, situation == "a missing weight"))
    for method in ("certify uniform", "certify holdout", "check"):
        alike = [(name, ask) for name, _, ask in points if method in name]
        assert alike
        first = alike[0][1]

        def expected(rows, first=first):
            return first(rows, "error")

        assert_means(alike, situation, frame, cell, expected)


@pytest.mark.parametrize(("situation", "frame", "cell"), cells("certify, check by group"))
def test_certifying_and_checking_by_group(situation, frame, cell, tmp_path):
    if cell is None:
        pytest.skip("a label without rows has tests of its own")
    points = list(judged_group_points(tmp_path, situation == "a missing weight"))
    for kind in ("certify", "check"):
        alike = [(name, ask) for name, one, ask in points if one == kind]
        first = alike[0][1]

        def expected(rows, first=first):
            return first(rows, "error")

        if (situation, kind) == ("all labels negative", "check"):
            for _, ask in alike:
                with pytest.raises(ValueError, match="none of the cut's 2 labels can be checked"):
                    ask(frame, "error")
        else:
            assert_means(alike, situation, frame, cell, expected)
    if situation == "a group without positives":
        checked = next(ask for name, kind, ask in points if kind == "check")
        assert checked(frame, "error")[1] == ["a"]


@pytest.mark.parametrize("by", [False, True], ids=["one cut", "by group"])
@pytest.mark.parametrize("situation", TABLE)
def test_applying(situation, by, tmp_path):
    frame, *row = TABLE[situation]
    cell = row[COLUMNS.index("apply by group" if by else "apply")]
    points = list(apply_points(tmp_path, by))
    if isinstance(cell, Negative):
        for name, ask in points:
            assert ask(frame, "negative") == (cell.positives if not by else 3), name
            with pytest.raises(ValueError, match=cell.words):
                ask(frame, "error")
        return
    assert_means(points, situation, frame, cell, lambda rows: 4 if by else 6)


@pytest.mark.parametrize("situation", ["a missing score", "a missing label", "a missing weight"])
def test_a_matrix_is_left_without_the_row(situation):
    """`tune_thresholds` has a column per label: a row that lacks one value lacks it for all labels."""
    frame = TABLE[situation][0]
    parts = [part for _, part in frame.groupby("group")]
    truth, scores = (np.column_stack([array(part, name) for part in parts]) for name in ("label", "score"))
    weighted = {"sample_weight": array(parts[0], "weight")} if situation == "a missing weight" else {}
    with pytest.raises(ValueError, match=r"NaN|nan"):
        tune_thresholds(truth, scores, **weighted)
    found = tune_thresholds(truth, scores, missing="drop", **weighted)
    expected = tune_thresholds(np.delete(truth, ODD, 0), np.delete(scores, ODD, 0))
    assert found.thresholds.tolist() == expected.thresholds.tolist()


def test_a_sparse_or_dense_matrix_without_rows_has_no_predictions():
    sparse = pytest.importorskip("scipy.sparse")
    assert CUT.predict([]).shape == (0,)
    assert CUTS.predict(np.empty((0, 2))).shape == (0, 2)
    assert CUTS.predict(sparse.csr_array((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match="scores is empty"):
        CUTS.predict(np.empty((2, 0)))


@pytest.mark.parametrize("groups", [["x", "x", "y", None] * 2, [1.0, 1.0, 2.0, math.nan] * 2], ids=["text", "numbers"])
def test_a_row_without_a_cluster_is_missing(groups):
    """`groups=` says which rows depend on each other: two rows without a group are not one group."""
    options = {"method": "holdout", "held_out": True}
    with pytest.raises(ValueError, match=r"2 of 8 rows are null or NaN \(2 without a key\)"):
        certify(CUT, ROWS["label"], ROWS["score"], groups=groups, **options)
    kept = [i for i in range(8) if i % 4 != 3]
    with pytest.warns(MissingRowsWarning, match="2 without a key"):
        found = certify(CUT, ROWS["label"], ROWS["score"], groups=groups, missing="drop", **options)
    rows = ROWS.loc[kept]
    assert found == certify(CUT, rows["label"], rows["score"], groups=[groups[i] for i in kept], **options)


def test_a_label_of_several_columns_may_lack_one():
    frame = ROWS.assign(part=1.0)
    cut = tune_frame(frame, **COLUMN, by=["group", "part"])
    by = [(key, part) for key, part in zip(frame["group"], frame["part"], strict=True)]
    by[ODD] = ("a", math.nan)
    with pytest.raises(ValueError, match="1 without a key"):
        certify(cut, frame["label"], frame["score"], by=by, method="uniform")
    with pytest.warns(MissingRowsWarning, match="1 without a key"):
        found = certify(cut, frame["label"], frame["score"], by=by, method="uniform", missing="drop")
    assert found.rows == 7


SPARK = ["a missing score", "a missing label", "a missing group", "no rows", "all labels negative", "a score of −∞"]


def test_spark_means_the_same(spark):
    """Some of the table: each query takes Spark a while."""
    types = "label bigint, score double, weight double, `group` string"

    def held(frame):
        keys = frame[["label", "weight", "group"]].astype(object)
        rows = keys.where(keys.notna(), None).assign(score=frame["score"])[list(frame)].to_numpy().tolist()
        return spark.createDataFrame([tuple(row) for row in rows], types)

    def tuned(frame, missing):
        return of_cut(tune_frame(held(frame), **COLUMN, missing=missing))

    def grouped(frame, missing):
        return of_groups(tune_frame(held(frame), **COLUMN, by="group", missing=missing))

    def expected(rows):
        cut = tune_threshold(rows["label"], rows["score"])
        return cut.threshold, cut.value

    for situation in SPARK:
        frame, tune, by_group, *_ = TABLE[situation]
        assert_means([("tune_frame of Spark", tuned)], situation, frame, tune, expected)
        assert_means(
            [("tune_frame(by=) of Spark", grouped)],
            situation,
            frame,
            by_group,
            lambda rows: of_groups(tune_frame(rows, **COLUMN, by="group")),
        )


# The documentation


def shown():
    """The table as the documentation has it."""
    yield "| rows | " + " | ".join(COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 1) + "|"
    for situation, (_, *row) in TABLE.items():
        yield f"| {situation} | " + " | ".join("see below" if cell is None else cell.text for cell in row) + " |"


def test_the_documentation_shows_the_table():
    expected = "\n".join(shown())
    text = DOCS.read_text(encoding="utf-8")
    found = re.search(r"^\| rows \|.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{DOCS.name} lacks:\n{expected}"
    assert found[0] == expected, f"{DOCS.name} should have:\n{expected}"
