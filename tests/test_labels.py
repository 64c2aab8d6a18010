"""What a label is, wherever it is read: one rule, one confusion, one message."""

from __future__ import annotations

import datetime
import re
import warnings
from decimal import Decimal

import numpy as np
import pytest

from engines import in_small_steps  # noqa: F401
from surecut import (
    AbsentPositiveWarning,
    MissingRowsWarning,
    ScoreSketch,
    ScoreTally,
    get_metric,
    tune_frame,
    tune_threshold,
    tune_thresholds,
)
from surecut._labels import as_labels, plain_label_value
from surecut.cli.files import Table
from surecut.cli.positives import TableError

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
compute = pytest.importorskip("pyarrow.compute")
duckdb = pytest.importorskip("duckdb")

# Columns

NAN = float("nan")
SCORES = [0.125, 0.5, 0.375, 0.75, 0.25, 0.875]
TEXT, CATEGORY = pyarrow.string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
INT, UINT8, FLOAT, BOOLEAN = pyarrow.int64(), pyarrow.uint8(), pyarrow.float64(), pyarrow.bool_()
DECIMAL = pyarrow.decimal128(4, 1)

TRUTH = [False, True, False, True, True, True]
"""Which rows are positive, where a case says nothing else."""


def of(negative, positive):
    return [positive if is_positive else negative for is_positive in TRUTH]


def decimals(values):
    return [Decimal(value) for value in values]


TAKEN = {
    "integers": (of(0, 1), INT, None),
    "int8": (of(0, 1), pyarrow.int8(), None),
    "minus one": (of(-1, 1), INT, None),
    "one is named": (of(0, 1), INT, 1),
    "one is named as a float": (of(0, 1), INT, 1.0),
    "one is named as a Boolean": (of(0, 1), INT, True),
    "one is named by NumPy": (of(0, 1), INT, np.int8(1)),
    "one is named as a decimal": (of(0, 1), INT, Decimal(1)),
    "zero is named": (of(1, 0), INT, 0),
    "any integers": (of(3, -7), INT, -7),
    "integers beyond 2**53": (of(2**60, 2**60 + 1), INT, 2**60 + 1),
    "unsigned": (of(0, 1), UINT8, None),
    "unsigned, 200 is named": (of(7, 200), UINT8, 200),
    "floats": (of(0.0, 1.0), FLOAT, None),
    "floats, minus one": (of(-1.0, 1.0), FLOAT, None),
    "float32": (of(0.0, 1.0), pyarrow.float32(), None),
    "a float32 is named": (of(0.2, 0.1), pyarrow.float32(), 0.1),
    "any floats": (of(0.5, 2.5), FLOAT, 2.5),
    "floats of which one is infinite": (of(0.5, np.inf), FLOAT, np.inf),
    "minus zero": ([-0.0, 1.0, 0.0, 1.0, 1.0, 1.0], FLOAT, None),
    "minus zero is named": ([1.0, -0.0, 1.0, 0.0, 0.0, -0.0], FLOAT, -0.0),
    "Booleans": (of(False, True), BOOLEAN, None),
    "True is named": (of(False, True), BOOLEAN, True),
    "False is named": (of(True, False), BOOLEAN, False),
    "0 is named among Booleans": (of(True, False), BOOLEAN, 0),
    "text": (of("ham", "spam"), TEXT, "spam"),
    "text, named by NumPy": (of("ham", "spam"), TEXT, np.str_("spam")),
    "text of digits": (of("1", "2"), TEXT, "2"),
    "categories": (of("ham", "spam"), CATEGORY, "spam"),
    "decimals": (of(Decimal(0), Decimal(1)), DECIMAL, None),
    "decimals, minus one": (of(Decimal(-1), Decimal(1)), DECIMAL, None),
    "a decimal is named": (of(Decimal("0.2"), Decimal("0.1")), DECIMAL, Decimal("0.1")),
    "a decimal is named as a float": (of(Decimal("0.2"), Decimal("0.1")), DECIMAL, 0.1),
    "only positives": ([1] * 6, INT, None),
    "only the named label": (["spam"] * 6, TEXT, "spam"),
    "only True": ([True] * 6, BOOLEAN, None),
    "only zeros": ([0] * 6, INT, None),
    "only minus ones": ([-1] * 6, INT, None),
    "only False": ([False] * 6, BOOLEAN, None),
}
"""Labels that are read: values, their type, and `pos_label`."""

ABSENT = {
    "text": (["ham"] * 6, TEXT, "spam"),
    "categories": (["ham"] * 6, CATEGORY, "spam"),
    "integers": ([4] * 6, INT, 3),
    "zeros, one is named": ([0] * 6, INT, 1),
    "floats": ([0.5] * 6, FLOAT, 2.5),
    "Booleans": ([False] * 6, BOOLEAN, True),
    "Booleans, False is named": ([True] * 6, BOOLEAN, False),
    "Booleans, 2 is named": ([True] * 6, BOOLEAN, 2),
    "unsigned, minus one is named": ([0] * 6, UINT8, -1),
    "unsigned, 300 is named": ([255] * 6, UINT8, 300),
    "integers, a fraction is named": ([1] * 6, INT, 1.5),
    "decimals": (decimals([1] * 6), DECIMAL, 2),
}
"""All rows have one label, and another one is named: they are negative, with a warning."""

REFUSED = {
    "three integers": ([0, 1, 2, 1, 0, 1], INT, None, ValueError, "must hold two classes, found 3: 0, 1, 2"),
    "minus one, zero and one": ([0, 1, -1, 1, 0, 1], INT, None, ValueError, "must hold two classes, found 3: -1, 0, 1"),
    "three floats": ([0, 1, 0.5, 1, 0, 1], FLOAT, None, ValueError, "must hold two classes, found 3: 0.0, 0.5, 1.0"),
    "three decimals": (
        decimals([0, 1, 2] * 2),
        DECIMAL,
        None,
        ValueError,
        "must hold two classes, found 3: 0.0, 1.0, ",
    ),
    "three, one named": ([0, 1, 2, 1, 0, 1], INT, 2, ValueError, "must hold two classes, found 3: 0, 1, 2"),
    "three, none named": ([0, 1, 2, 1, 0, 1], INT, 7, ValueError, "must hold two classes, found 3: 0, 1, 2"),
    "three words": (list("abcabc"), TEXT, None, ValueError, "must hold two classes, found 3: 'a', 'b', 'c'"),
    "three words, one named": (list("abcabc"), TEXT, "a", ValueError, "must hold two classes, found 3: 'a', 'b', 'c'"),
    "three words, none named": (list("abcabc"), TEXT, "d", ValueError, "must hold two classes, found 3: 'a', 'b', 'c'"),
    "three categories": (list("abcabc"), CATEGORY, "a", ValueError, "must hold two classes, found 3: 'a', 'b', 'c'"),
    "two words": (of("ham", "spam"), TEXT, None, ValueError, "holds the labels 'ham', 'spam': say which one is pos"),
    "one word": (["ham"] * 6, TEXT, None, ValueError, "holds the label 'ham' only: say with "),
    "two categories": (of("ham", "spam"), CATEGORY, None, ValueError, "holds the labels 'ham', 'spam': say which one"),
    "one and two": (of(1, 2), INT, None, ValueError, "holds the labels 1, 2: say which one is positive"),
    "two and three": (of(2, 3), INT, None, ValueError, "holds the labels 2, 3: say which one is positive"),
    "minus one and zero": (of(-1, 0), INT, None, ValueError, "holds the labels -1, 0: say which one is positive"),
    "only twos": ([2] * 6, INT, None, ValueError, "holds the label 2 only: say with "),
    "fractions": (of(0.25, 0.5), FLOAT, None, ValueError, "holds the labels 0.25, 0.5: say which one is positive"),
    "an absent word": (
        of("ham", "spam"),
        TEXT,
        "eggs",
        ValueError,
        "not among the labels in NAME, which are 'ham', 's",
    ),
    "an absent category": (
        of("ham", "spam"),
        CATEGORY,
        "eggs",
        ValueError,
        "not among the labels in NAME, which are 'h",
    ),
    "an absent number": (of(2, 4), INT, 3, ValueError, "not among the labels in NAME, which are 2, 4"),
    "an absent fraction": (of(2, 4), INT, 2.5, ValueError, "not among the labels in NAME, which are 2, 4"),
    "minus one of unsigned": (of(0, 1), UINT8, -1, ValueError, "not among the labels in NAME, which are 0, 1"),
    "2 of Booleans": (of(False, True), BOOLEAN, 2, ValueError, "not among the labels in NAME, which are False, True"),
    "0.5 of Booleans": (
        of(False, True),
        BOOLEAN,
        0.5,
        ValueError,
        "not among the labels in NAME, which are False, True",
    ),
    "an absent decimal": (of(Decimal(2), Decimal(4)), DECIMAL, 3, ValueError, "labels in NAME, which are 2.0, 4.0"),
    "NaN is named": (
        of(0.0, 1.0),
        FLOAT,
        NAN,
        ValueError,
        "pos_label=nan is not among the labels in NAME, which are 0.0",
    ),
    "NaN is named, one label": (
        [0.0] * 6,
        FLOAT,
        NAN,
        ValueError,
        "pos_label=nan is not among the labels in NAME, whi",
    ),
    "text named, integers": (
        of(1, 2),
        INT,
        "2",
        ValueError,
        "pos_label='2' is not among the labels in NAME, which are",
    ),
    "text named, one integer": (
        [1] * 6,
        INT,
        "2",
        ValueError,
        "pos_label='2' is not among the labels in NAME, which are",
    ),
    "text named, Booleans": (
        of(False, True),
        BOOLEAN,
        "yes",
        ValueError,
        "pos_label='yes' is not among the labels in NA",
    ),
    "number named, text": (
        of("1", "2"),
        TEXT,
        2,
        ValueError,
        "pos_label=2 is not among the labels in NAME, which are '1",
    ),
    "number named, one word": (
        ["1"] * 6,
        TEXT,
        2,
        ValueError,
        "pos_label=2 is not among the labels in NAME, which are",
    ),
    "True named, text": (of("false", "true"), TEXT, True, ValueError, "pos_label=True is not among the labels in NAME"),
    "dates": ([datetime.date(2020, 1, 1)] * 6, pyarrow.date32(), None, TypeError, "must be numbers, booleans or text"),
    "timestamps": (
        [datetime.datetime(2020, 1, 1)] * 6,
        pyarrow.timestamp("us"),
        datetime.datetime(2020, 1, 1),
        TypeError,
        "NAME must be numbers, booleans or text, got dates or times",
    ),
}
"""Labels that are refused: values, their type, `pos_label`, the error and its words."""

MISSING = {
    "integers": ([0, None, 1, 1, 0, 1], INT, None),
    "floats": ([0.0, NAN, 1.0, 1.0, 0.0, 1.0], FLOAT, None),
    "floats, one is named": ([0.5, NAN, 1.0, 1.0, 0.5, 1.0], FLOAT, 0.5),
    "Booleans": ([False, None, True, True, False, True], BOOLEAN, None),
    "text": (["ham", None, "spam", "spam", "ham", "spam"], TEXT, "spam"),
    "categories": (["ham", None, "spam", "spam", "ham", "spam"], CATEGORY, "spam"),
    "decimals": ([Decimal(0), None, Decimal(1), Decimal(1), Decimal(0), Decimal(1)], DECIMAL, None),
}

# Readers

LABEL = "outcome"


def column(values, kind):
    """The labels as users hold them outside of frames."""
    return pyarrow.array(values, kind).to_pandas() if kind != INT or None in values else np.array(values)


def table_of(values, kind):
    """The rows as a table, of one group."""
    columns = {LABEL: pyarrow.array(values, kind), "score": pyarrow.array(SCORES[: len(values)], FLOAT)}
    return pyarrow.table(columns | {"group": ["g"] * len(values)})


def by_array(made):
    def tuned(values, kind, pos_label, folder, **options):
        return tune_threshold(made(values, kind), SCORES[: len(values)], pos_label=pos_label, **options)

    return tuned


def by_tally(values, kind, pos_label, folder, metric):
    return ScoreTally.from_scores(column(values, kind), SCORES[: len(values)], pos_label=pos_label).best_cut(metric)


def by_sketch(values, kind, pos_label, folder, metric, **options):
    sketch = ScoreSketch()
    sketch.update(column(values, kind), SCORES[: len(values)], pos_label=pos_label, **options)
    return sketch.best_cut(metric)


def by_matrix(values, kind, pos_label, folder, metric):
    truth, scores = np.asarray(column(values, kind))[:, None], np.array(SCORES[: len(values)])[:, None]
    return tune_thresholds(truth, scores, metric=metric, pos_label=pos_label, average="micro")


def by_frame(held, **always):
    def tuned(values, kind, pos_label, folder, **options):
        frame = held(table_of(values, kind), folder)
        return tune_frame(frame, label=LABEL, score="score", pos_label=pos_label, **always, **options)

    return tuned


def by_command(written):
    """The command line's own reading of files, where labels are named by text."""

    def tuned(values, kind, pos_label, folder, metric, missing="error"):
        named = None if pos_label is None else str(pos_label)
        with Table(str(written(table_of(values, kind), folder))) as table:
            asked = {"label": LABEL, "score": "score", "pos_label": named, "missing": missing}
            rows = table.rows(metrics=[get_metric(metric)], **asked)
            found = rows.arrays()
        for note in rows.notes:
            if "not among the labels" in note:
                warnings.warn(note, AbsentPositiveWarning, stacklevel=1)
        return tune_threshold(found.is_positive, found.scores, metric=metric)

    return tuned


def in_parquet(table, folder):
    parquet.write_table(table, folder / "rows.parquet")
    return folder / "rows.parquet"


def in_csv(table, folder):
    table.to_pandas().to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def in_ibis(table, folder):
    return pytest.importorskip("ibis").memtable(table)


BY_GROUP = {"by": "group", "average": "micro"}
READERS = {
    "arrays": by_array(column),
    "lists": by_array(lambda values, kind: values),
    "objects": by_array(lambda values, kind: np.array(values, dtype=object)),
    "tallies": by_tally,
    "sketches": by_sketch,
    "pandas": by_frame(lambda table, folder: table.to_pandas()),
    "pandas by group": by_frame(lambda table, folder: table.to_pandas(), **BY_GROUP),
    "polars": by_frame(lambda table, folder: polars.from_arrow(table)),
    "polars by group": by_frame(lambda table, folder: polars.from_arrow(table), **BY_GROUP),
    "polars lazy": by_frame(lambda table, folder: polars.from_arrow(table).lazy()),
    "pyarrow": by_frame(lambda table, folder: table),
    "duckdb": by_frame(lambda table, folder: duckdb.connect().from_arrow(table)),
    "duckdb by group": by_frame(lambda table, folder: duckdb.connect().from_arrow(table), **BY_GROUP),
    "ibis": by_frame(in_ibis),
    "parquet": by_frame(in_parquet),
    "csv": by_frame(in_csv),
    "matrix": by_matrix,
    "parquet, commands": by_command(in_parquet),
    "csv, commands": by_command(in_csv),
}


def is_of_another_kind(kind, pos_label):
    is_text = isinstance(pos_label, str)
    return pos_label is not None and is_text != (kind in (TEXT, CATEGORY))


def skip_what_a_reader_cannot_be_asked(reader, values, kind, pos_label):
    """Skip where the labels lose their type on the way to a reader, or the command line does not know any."""
    if reader.endswith("commands") and is_of_another_kind(kind, pos_label):
        pytest.skip("a text of the command line names labels of any type")
    if reader.startswith("csv") and kind == TEXT and values[0] is not None and values[0] in ("1", "false"):
        pytest.skip("a CSV file does not say that these are text")
    if reader == "csv, commands" and kind == BOOLEAN:
        pytest.skip("the command line keeps the words of a CSV file")
    if reader == "csv" and kind == BOOLEAN and isinstance(pos_label, str):
        pytest.skip("True and False of a CSV file are text where a text is asked for")


def cells(confusion):
    """TP, FP, FN, TN, of all groups together."""
    return tuple(int(np.sum(getattr(confusion, cell))) for cell in ("tp", "fp", "fn", "tn"))


def plain(message):
    """A message without what the column, the label and the option are called, and what to do with more classes."""
    message = re.sub(r"y_true|Y_true|column 'outcome'|outcome", "NAME", str(message))
    message = message.replace("the positive label ", "pos_label=").replace("--pos-label", "pos_label=")
    return re.sub(r"(found \d+: .*?)\. .*", r"\1", message)


# The law


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", TAKEN)
def test_every_reader_takes_the_same_labels(case, reader, tmp_path):
    values, kind, pos_label = TAKEN[case]
    skip_what_a_reader_cannot_be_asked(reader, values, kind, pos_label)
    truth = TRUTH if len(set(values)) > 1 else [values[0] == (1 if pos_label is None else pos_label)] * 6
    if reader == "matrix" and pos_label is None and -1 in values:
        with pytest.raises(ValueError, match="Y_true must hold 0 and 1"):
            by_matrix(values, kind, pos_label, tmp_path, "accuracy")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", AbsentPositiveWarning)
        cut = READERS[reader](values, kind, pos_label, tmp_path, metric="accuracy")
    assert cells(cut.confusion) == cells(tune_threshold(truth, SCORES, metric="accuracy").confusion)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", ABSENT)
def test_every_reader_takes_rows_without_the_named_label_as_negative(case, reader, tmp_path):
    values, kind, pos_label = ABSENT[case]
    skip_what_a_reader_cannot_be_asked(reader, values, kind, pos_label)
    if reader == "sketches":
        pytest.skip("a part of a stream may well lack the positive label")
    told = f"pos_label={pos_label!r} is not among the labels in NAME, which are all {plain_label_value(values[0])!r}"
    with pytest.warns(AbsentPositiveWarning) as found:
        cut = READERS[reader](values, kind, pos_label, tmp_path, metric="accuracy")
    assert [plain(one.message).partition(": no row")[0] for one in found] == [told]
    assert cells(cut.confusion) == (0, 0, 0, 6)
    if reader not in ("tallies", "matrix"):
        with pytest.raises(ValueError, match="f1 is undefined without rows of the positive class") as error:
            READERS[reader](values, kind, pos_label, tmp_path, metric="f1")
        assert told in plain(error.value)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", REFUSED)
def test_every_reader_refuses_the_same_labels_in_the_same_words(case, reader, tmp_path):
    values, kind, pos_label, expected, words = REFUSED[case]
    skip_what_a_reader_cannot_be_asked(reader, values, kind, pos_label)
    if reader == "matrix" and pos_label is None:
        expected, words = ValueError, "NAME must hold 0 and 1"
    elif reader.endswith("commands"):
        expected = TableError
    with pytest.raises(expected) as error:
        READERS[reader](values, kind, pos_label, tmp_path, metric="accuracy")
    assert type(error.value) is expected
    assert words in plain(error.value)
    if reader != "matrix":
        with pytest.raises(REFUSED[case][3]) as of_arrays:
            by_array(column)(values, kind, pos_label, tmp_path, metric="accuracy")
        assert plain(error.value) == plain(of_arrays.value)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", MISSING)
def test_every_reader_finds_missing_labels(case, reader, tmp_path):
    values, kind, pos_label = MISSING[case]
    words = "holds 1 missing label, the first at position 1|1 without a label|1 in 'outcome'|must hold 0 and 1.*nan"
    with pytest.raises(ValueError, match=words):
        READERS[reader](values, kind, pos_label, tmp_path, metric="accuracy")
    if reader not in ("tallies", "matrix"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cut = READERS[reader](values, kind, pos_label, tmp_path, metric="accuracy", missing="drop")
        truth, scores = [value == (pos_label or 1) for value in values[:1] + values[2:]], SCORES[:1] + SCORES[2:]
        assert cells(cut.confusion) == cells(tune_threshold(truth, scores, metric="accuracy").confusion)


def test_no_rows_are_refused(tmp_path):
    empty = pyarrow.table({LABEL: pyarrow.array([], INT), "score": pyarrow.array([], FLOAT)})
    for frame in (empty, empty.to_pandas(), polars.from_arrow(empty), polars.from_arrow(empty).lazy()):
        with pytest.raises(ValueError, match="the frame holds no rows: at least one is needed"):
            tune_frame(frame, label=LABEL, score="score")
    with pytest.raises(ValueError, match="y_true is empty: at least one row is needed"):
        tune_threshold([], [])


# What is met late, weighs nothing or is dropped


def many(labels, times=60):
    """A table of many rows; those with the given labels come last, without a weight, and without a `score`."""
    start = [0, 1] * times if isinstance(labels[0], int) else ["ham", "spam"] * times
    return pyarrow.table(
        {
            LABEL: start + labels,
            "score": pyarrow.array([*np.linspace(0, 1, len(start)), *[None] * len(labels)], FLOAT),
            "full": np.linspace(0, 1, len(start + labels)),
            "weight": [1.0] * len(start) + [0.0] * len(labels),
            "group": ["g"] * len(start + labels),
        }
    )


LARGE = {
    "pandas": (lambda table: table.to_pandas(), {}),
    "polars lazy": (lambda table: polars.from_arrow(table).lazy(), {}),
    "pyarrow": (lambda table: table, {}),
    "duckdb": (lambda table: duckdb.connect().from_arrow(table), {}),
    "duckdb by group": (lambda table: duckdb.connect().from_arrow(table), BY_GROUP),
    "ibis": (lambda table: pytest.importorskip("ibis").memtable(table), {}),
}


@pytest.mark.usefixtures("in_small_steps")
@pytest.mark.parametrize("reader", LARGE)
@pytest.mark.parametrize(("labels", "pos_label"), [([2], None), ([-1], None), ([7], 1), (["eggs"], "spam")], ids=str)
def test_a_third_label_counts_even_without_weight_but_not_on_a_dropped_row(labels, pos_label, reader):
    held, options = LARGE[reader]
    asked = {"label": LABEL, "pos_label": pos_label, "metric": "accuracy"} | options
    table = many(labels)
    with pytest.raises(ValueError, match="outcome must hold two classes, found 3"):
        tune_frame(held(table), score="full", weight="weight", **asked)
    with pytest.raises(ValueError, match="outcome must hold two classes, found 3"):
        tune_frame(held(table), score="full", **asked)
    with pytest.warns(MissingRowsWarning):
        cut = tune_frame(held(table), score="score", missing="drop", **asked)
    assert sum(cells(cut.confusion)) == 120


@pytest.mark.parametrize("reader", LARGE)
def test_a_named_label_on_rows_without_weight_is_not_absent(reader):
    held, options = LARGE[reader]
    table = many(["eggs"]).filter(compute.field(LABEL) != "spam")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cut = tune_frame(
            held(table), label=LABEL, score="full", weight="weight", pos_label="eggs", metric="accuracy", **options
        )
    assert cells(cut.confusion) == (0, 0, 0, 60)


# Words in files


@pytest.mark.parametrize(
    ("labels", "pos_label", "positive"),
    [
        (("no", "yes"), None, "yes"),
        (("N", "Y"), None, "Y"),
        (("neg", "pos"), None, "pos"),
        (("-1", "1"), None, "1"),
        (("no", "no"), None, "1"),
        (("no", "yes"), "no", "no"),
        (("no", "yes"), "0", "no"),
        (("0", "1"), "no", "0"),
        (("-1", "1"), "no", "-1"),
        (("Ham", "Spam"), "spam", "Spam"),
    ],
)
def test_words_name_the_positive_label_of_a_file(labels, pos_label, positive, tmp_path):
    (tmp_path / "rows.csv").write_text(f"y,p\n{labels[0]},0.25\n{labels[1]},0.75\n")
    with Table(str(tmp_path / "rows.csv")) as table:
        rows = table.rows(pos_label=pos_label)
        assert rows.positive == positive
        assert rows.arrays().is_positive.tolist() == [label == positive for label in labels]


@pytest.mark.parametrize(
    ("labels", "pos_label", "message"),
    [
        (("0", "1"), "-1", "the positive label -1 is not among the labels in column 'y', which are 0, 1"),
        (("0", "no"), None, "holds the labels '0', 'no': say which one is positive with --pos-label"),
        (("true", "yes"), None, "holds the labels 'true', 'yes': say which one is positive with --pos-label"),
        (("0", "0"), "fraud", "the positive label 'fraud' is not among the labels in column 'y', which are 0"),
    ],
)
def test_words_that_do_not_name_the_positive_label(labels, pos_label, message, tmp_path):
    (tmp_path / "rows.csv").write_text(f"y,p\n{labels[0]},0.25\n{labels[1]},0.75\n")
    with Table(str(tmp_path / "rows.csv")) as table, pytest.raises(TableError, match=re.escape(message)):
        table.rows(pos_label=pos_label)


# Arrays are not copied


@pytest.mark.parametrize("labels", [np.array([0, 1], np.int8), np.array([0.0, 1.0]), np.array([False, True])], ids=str)
@pytest.mark.parametrize("pos_label", [None, 0, 1])
def test_numbers_and_booleans_are_not_copied(labels, pos_label):
    found = as_labels(labels, pos_label=pos_label)
    assert np.shares_memory(found.codes, labels)
    assert found.is_positive().tolist() == [label == (1 if pos_label is None else pos_label) for label in labels]


# Types of DuckDB's own


@pytest.mark.parametrize("options", [{}, BY_GROUP], ids=["batches", "by group"])
@pytest.mark.parametrize(
    ("kind", "pos_label"),
    [("ENUM('a', 'b')", "a"), ("BLOB", b"a"), ("VARCHAR", "a")],
    ids=["enum", "blob", "text"],
)
def test_other_types_are_compared_by_value(kind, pos_label, options):
    labels = duckdb.connect().sql(
        f"SELECT (CASE WHEN i > 3 THEN 'a' ELSE 'b' END)::{kind} AS outcome, i / 8 AS score, 'g' AS \"group\" "
        "FROM range(8) AS t(i)"
    )
    cut = tune_frame(labels, label=LABEL, score="score", pos_label=pos_label, **options)
    assert cells(cut.confusion) == (4, 0, 0, 4)


@pytest.mark.parametrize("options", [{}, BY_GROUP], ids=["batches", "by group"])
@pytest.mark.parametrize("value", ["[i]", "TIME '10:00:00'", "INTERVAL 1 DAY"])
def test_other_types_are_refused(value, options):
    labels = duckdb.connect().sql(f"SELECT {value} AS outcome, i / 8 AS score, 'g' AS \"group\" FROM range(8) AS t(i)")
    with pytest.raises(TypeError, match="outcome must be numbers, booleans or text, got"):
        tune_frame(labels, label=LABEL, score="score", **options)
