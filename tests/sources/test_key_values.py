"""Labels of a cut as values of a key column: exactly, or not at all."""

from __future__ import annotations

import datetime
from decimal import Decimal

import narwhals.stable.v2 as nw
import pytest

from surecut import apply_frame, tune_frame
from surecut.sources.key_values import as_key

DAY = datetime.date(2026, 11, 18)
NOON = datetime.datetime(2026, 11, 18, 12)
MIDNIGHT = datetime.datetime(2026, 11, 18)


@pytest.mark.parametrize(
    ("label", "kind", "expected"),
    [
        ("0.50", nw.Decimal(), Decimal("0.50")),
        ("x", nw.Decimal(), None),
        (b"a", nw.Decimal(), None),
        (b"a", nw.Binary(), b"a"),
        ("a", nw.Binary(), None),
        (float("inf"), nw.Float64(), float("inf")),
        ("x", nw.Float64(), None),
        ("2026-11-18", nw.Date(), DAY),
        ("18.11.", nw.Date(), None),
        (MIDNIGHT, nw.Date(), DAY),
        (NOON, nw.Date(), None),
        (7, nw.Date(), None),
        ("2026-11-18T12:00", nw.Datetime(), NOON),
        ("noon", nw.Datetime(), None),
        (DAY, nw.Datetime(), MIDNIGHT),
        (NOON, nw.Datetime(), NOON),
        (7, nw.Datetime(), None),
        (datetime.time(12), nw.Time(), datetime.time(12)),
    ],
)
def test_a_label_is_a_value_of_the_column_or_none(label, kind, expected):
    assert as_key(label, kind) == expected


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_groups_of_a_data_set_are_those_of_its_table(tmp_path, suffix):
    pytest.importorskip("duckdb")
    pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    table = pa.table(
        {"y": [0, 1, 0, 1] * 3, "p": [i / 12 for i in range(12)], "g": ["a", "b", "c"] * 4, "other": [1] * 12}
    )
    dataset.write_dataset(table, tmp_path / "rows", format=suffix)
    found = tune_frame(dataset.dataset(tmp_path / "rows", format=suffix), label="y", score="p", by="g")
    expected = tune_frame(table, label="y", score="p", by="g")
    assert found.thresholds.tolist() == expected.thresholds.tolist()
    with pytest.raises(ValueError, match="there is no column 'h'"):
        tune_frame(dataset.dataset(tmp_path / "rows", format=suffix), label="y", score="p", by="h")


def test_pandas_categories_of_arrow_are_text():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    kind = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    frame = pd.DataFrame({"y": [0, 1] * 4, "p": [i / 8 for i in range(8)], "g": ["a"] * 4 + ["b"] * 4})
    cut = tune_frame(frame, label="y", score="p", by="g")
    applied = apply_frame(frame.astype({"g": kind}), cut, score="p", by="g")
    assert applied["predicted"].tolist() == apply_frame(frame, cut, score="p", by="g")["predicted"].tolist()
