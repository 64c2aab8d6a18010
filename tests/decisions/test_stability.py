"""How settled thresholds are: the records, what is saved of them, and what is said of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from surecut import Cut, LabelStability, MultilabelCut, Stability, tune_threshold, tune_thresholds
from surecut.decisions.wording import between

ONE = Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.9, 0.3391)


def rows(size=400, labels=3):
    random = np.random.default_rng(0)
    scores = random.random((size, labels))
    return random.random((size, labels)) < scores**2, scores


def stable(size=400, **changed):
    """A cut with a record of a best threshold elsewhere."""
    truth, scores = rows(size)
    return replace(tune_threshold(truth[:, 0], scores[:, 0]), stability=replace(ONE, **changed))


def stable_labels(average="macro", **changed):
    cut = tune_thresholds(*rows(), labels=["a", "b", "c"], average=average)
    one = replace(ONE, **changed)
    parts = [one, None, replace(one, resamples=100)] if average == "macro" else [one] * 3
    return replace(cut, stability=LabelStability.joined(parts))


def test_joined_records_come_apart_again():
    parts = [ONE, None, replace(ONE, quantiles=(-math.inf, 0.1, 0.2, 0.3, math.inf))]
    joined = LabelStability.joined(parts)
    assert len(joined) == 3
    assert [joined[i] for i in range(3)] == parts
    assert joined.resamples.tolist() == [200, 0, 200]
    assert np.isnan(joined.quantiles[1]).all()
    assert joined == LabelStability.joined(parts)
    assert joined != LabelStability.joined([ONE] * 3)
    assert joined != "something else"


def test_a_cut_with_another_record_is_another_cut():
    cut = stable()
    assert cut == stable()
    assert hash(cut) == hash(stable())
    assert cut != stable(tolerance=0.009)
    assert cut != replace(cut, stability=None)
    cuts = stable_labels()
    assert cuts == stable_labels()
    assert cuts != stable_labels(tolerance=0.009)
    assert cuts != replace(cuts, stability=None)


@pytest.mark.parametrize("changed", [{}, {"quantiles": (-math.inf, 0.1, 0.2, 0.3, math.inf)}], ids=str)
def test_a_saved_cut_is_the_same(changed, tmp_path):
    cut = stable(**changed)
    cut.save(tmp_path / "cut.json")
    assert Cut.load(tmp_path / "cut.json") == cut
    assert Cut.from_dict(cut.to_dict()).stability == cut.stability


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_saved_cuts_of_labels_are_the_same(average, ending, tmp_path):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    cut, path = stable_labels(average), tmp_path / f"cut.{ending}"
    cut.save(path)
    found = MultilabelCut.load(path)
    assert found == cut
    assert found.stability == cut.stability


def test_exact_cuts_have_no_columns_for_it():
    cut = replace(stable_labels(), stability=None)
    assert "resamples" not in cut.to_dict()["per_label"][0]
    assert MultilabelCut.from_dict(cut.to_dict()).stability is None


def test_the_cut_of_a_label_has_its_record(tmp_path):
    cut = stable_labels()
    assert [cut[label].stability for label in cut] == [ONE, None, replace(ONE, resamples=100)]
    joined = MultilabelCut.from_cuts(cut.labels, [cut[label] for label in cut])
    assert joined.stability == cut.stability
    exact = [replace(cut[label], stability=None) for label in cut]
    assert MultilabelCut.from_cuts(cut.labels, exact).stability is None


@pytest.mark.parametrize("average", ["micro", "samples"])
def test_the_record_of_an_average_is_not_that_of_a_label(average, tmp_path):
    cut = stable_labels(average)
    assert cut["a"].stability is None
    cut["a"].save(tmp_path / "cut.json")
    record = LabelStability.joined([ONE, ONE, replace(ONE, tolerance=0.5)])
    with pytest.raises(ValueError, match="has one threshold, and its resamples differ by label"):
        replace(cut, stability=record).save(tmp_path / "cut.json")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"resamples": 0}, "at least 1 resample, got 0"),
        ({"quantiles": (0.1, 0.3, 0.2, 0.4, 0.5)}, "not ascending: 0.1, 0.3, 0.2"),
        ({"quantiles": (0.1, 0.2, math.nan, 0.4, 0.5)}, "not ascending: 0.1, 0.2, nan"),
        ({"near_optimal": (0.4, 0.3)}, r"is empty: \(0.4, 0.3]"),
        ({"near_optimal": (0.4, math.nan)}, r"is empty: \(0.4, nan]"),
        ({"tolerance": -0.1}, "must be finite and at least 0, got -0.1"),
        ({"tolerance": math.inf}, "must be finite and at least 0, got inf"),
        ({"best_value": 0.1}, r"above the best value, 0\.1"),
        ({"best_value": math.nan}, "is NaN"),
        ({"best_threshold": math.nan}, "is NaN"),
    ],
    ids=str,
)
def test_impossible_records_are_not_saved(changed, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        stable(**changed).save(tmp_path / "cut.json")
    if "resamples" not in changed:
        with pytest.raises(ValueError, match=rf"of the label 'a'.*{reason}"):
            stable_labels(**changed).save(tmp_path / "cut.json")
    assert not list(tmp_path.iterdir())


def test_records_of_other_shapes_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"expected 5 quantiles .* for 3"):
        replace(stable_labels(), stability=LabelStability.joined([ONE])).save(tmp_path / "cut.json")
    with pytest.raises(ValueError, match=r"expected 5 quantiles .* got 2"):
        stable(quantiles=(0.1, 0.2))


def test_the_best_value_may_differ_by_rounding(tmp_path):
    cut = stable()
    assert cut.stability is not None
    near = replace(cut.stability, best_value=float(np.nextafter(cut.value, -1)))
    replace(cut, stability=near).save(tmp_path / "cut.json")
    assert "no threshold is better here" in str(replace(cut, stability=near))


def test_a_cut_says_how_settled_it_is():
    said = str(stable())
    assert said.startswith("predict positive where score >= ")
    assert " (stable): f1 = " in said
    assert said.endswith(
        "accepted; the best here, 0.3391, reaches 0.9000; 90 % of resampled thresholds in 0.31 to 0.41; "
        "thresholds in (0.330, 0.380] lose at most 0.008"
    )
    assert "\n" not in said
    assert "stable" not in str(replace(stable(), stability=None))
    assert "lose nothing" in str(stable(tolerance=0.0))
    assert "the best here, predicting nothing, reaches" in str(stable(best_threshold=math.inf))


def test_a_cut_of_few_rows_says_so():
    cut = stable(60)
    count = cut.confusion.positives
    assert count < 50
    assert str(cut).endswith(f"; only {count} positives: the threshold is not settled, and its spread is a rough guess")
    assert "settled" not in str(replace(cut, stability=None))
    truth, scores = rows(60)
    flipped = replace(tune_threshold(~truth[:, 0], scores[:, 0]), stability=ONE)
    assert f"only {count} negatives: " in str(flipped)
    weighted = tune_threshold(truth[:, 0], scores[:, 0], sample_weight=np.full(60, 1000.0))
    assert f"only about {count} positives: " in str(replace(weighted, stability=ONE))


def test_cuts_of_labels_say_how_settled_they_are():
    assert str(stable_labels()).startswith("3 labels, each with a stable threshold of its own: macro f1 = ")
    assert "settled" not in str(stable_labels())
    micro = str(stable_labels("micro"))
    assert " (stable): micro f1 = " in micro
    assert micro.endswith("(90 % of resampled thresholds in 0.31 to 0.41)")
    few = tune_thresholds(*rows(60))
    assert str(replace(few, stability=LabelStability.joined([ONE, ONE, None]))).endswith(
        "(2 have fewer than 50 positives or negatives: not settled)"
    )
    tiny = replace(tune_thresholds(*rows(20), average="micro"), stability=LabelStability.joined([ONE] * 3))
    assert "fewer than 50 positives or negatives in all: not settled" in str(tiny)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.3, 0.3), ("0.3", "0.3")),
        ((-math.inf, math.inf), ("-inf", "inf")),
        ((math.inf, math.inf), ("inf", "inf")),
        ((-1e308, 1e308), ("-1e+308", "1e+308")),
        ((1e12, 1e12 + 1), ("1000000000000", "1000000000001")),
        ((0.5, float(np.nextafter(0.5, 1))), None),
        ((0.0, 5e-324), None),
    ],
)
def test_ends_of_ranges_are_told_apart(ends, text):
    low, high = between(*ends)
    assert (low != high) == (ends[0] != ends[1])
    assert text is None or (low, high) == text
