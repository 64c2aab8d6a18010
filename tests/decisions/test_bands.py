"""Bands and the bands of groups as records: predicted, saved, printed, in SQL."""

from __future__ import annotations

import json
import re
import sqlite3

import numpy as np
import pytest

from surecut import Bands, Cut, GroupedBands, ScoreTally, tune_bands, tune_threshold

Y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
GAINS = {"no": (0, -4), "ask": -1, "yes": (-4, 0)}


@pytest.fixture
def bands():
    return tune_bands(Y, SCORES, upper="ppv>=0.9", lower="npv>=0.9")


def drawn(size, seed=0):
    random = np.random.default_rng(seed)
    y = random.random(size) < 0.4
    return y, np.where(y, random.beta(3, 1, size), random.beta(1, 3, size))


EVERY = {
    "conditions": {"upper": "ppv>=0.8", "lower": ["npv>=0.8", "fnr<=0.3"]},
    "gains": {"gains": GAINS},
    "metric": {"metric": "f1", "gains": {"ask": -0.2}},
    "grades": {
        "zones": ("low", "medium", "high", "urgent"),
        "conditions": {"urgent": "ppv>=0.9", "high": "share<=0.2"},
    },
    "cut": {"zones": ("no", "yes"), "upper": "recall>=0.9"},
    "prior": {"upper": "ppv>=0.5", "prior": 0.1},
    "weights": {"upper": "ppv>=0.8", "sample_weight": np.linspace(0.5, 1.5, 300)},
    "confidence": {"upper": "ppv>=0.7", "lower": "npv>=0.7", "confidence": 0.9},
    "stable": {"gains": GAINS, "stable": True},
    "empty": {"upper": "ppv>=0.999", "lower": "npv>=0.999", "confidence": 0.999},
}


@pytest.mark.parametrize("name", EVERY)
def test_bands_are_saved_to_the_last_bit_and_read_again(name, tmp_path):
    found = tune_bands(*drawn(300), **EVERY[name])
    found.save(tmp_path / "bands.json")
    again = Bands.load(tmp_path / "bands.json")
    assert again == found == Bands.from_dict(found.to_dict())
    assert again.thresholds.tolist() == found.thresholds.tolist()
    assert str(again) == str(found)
    assert again.conditions == found.conditions
    assert again.stability == found.stability


def test_text_labels_and_their_positive_one_are_saved(tmp_path):
    labels = np.where(Y == 1, "spam", "ham")
    found = tune_bands(labels, SCORES, gains=GAINS, pos_label="spam")
    found.save(tmp_path / "bands.json")
    assert Bands.load(tmp_path / "bands.json").pos_label == "spam"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(thresholds=[0.9, 0.1]), "checksum|ascend|interval"),
        (lambda d: d.update(zones=["no", "no", "yes"]), "a name of its own|checksum"),
        (lambda d: d.pop("conditions"), "'conditions' is missing"),
        (
            lambda d: d["conditions"].append({"zone": "far", "quantity": "ppv", "sense": ">=", "level": 0.5}),
            "none of its",
        ),
        (
            lambda d: d["conditions"].append({"zone": "no", "quantity": "luck", "sense": ">=", "level": 0.5}),
            "unknown quan",
        ),
        (lambda d: d.update(thresholds=["nan", 0.5]), "NaN"),
        (lambda d: d.update(confusion=[[1, 2, 3]]), "two numbers for each zone"),
        (lambda d: d.update(failure_rates=[2.0]), "between 0 and 1"),
        (lambda d: d.update(schema_version=99), "another version"),
        (lambda d: d["tuning"].update(rows=9), "checksum"),
    ],
)
def test_a_document_that_was_edited_is_refused(bands, change, message):
    document = json.loads(json.dumps(bands.to_dict()))
    change(document)
    with pytest.raises(ValueError, match=message):
        Bands.from_dict(document)


def test_other_decisions_say_who_reads_them(bands, tmp_path):
    bands.save(tmp_path / "bands.json")
    with pytest.raises(ValueError, match=r"it holds the thresholds between zones of one score: Bands\.load reads it"):
        Cut.load(tmp_path / "bands.json")
    tune_threshold(Y, SCORES).save(tmp_path / "cut.json")
    with pytest.raises(ValueError, match=r"it holds a single cut: Cut\.load reads it"):
        Bands.load(tmp_path / "cut.json")
    with pytest.raises(ValueError, match="saved as JSON, not as Parquet"):
        bands.save(tmp_path / "bands.parquet")


def test_contradictory_parts_are_not_written(bands, tmp_path):
    from dataclasses import replace

    for wrong in (
        {"thresholds": bands.thresholds[::-1]},
        {"thresholds": bands.thresholds[:1]},
        {"confusion": bands.confusion[:2]},
        {"confusion": bands.confusion * 2},
        {"failure_rates": (0.5,)},
        {"gains": np.zeros((2, 2))},
        {"stability": (None,)},
    ):
        with pytest.raises(ValueError, match=r"."):
            replace(bands, **wrong).save(tmp_path / "bands.json")
        assert not (tmp_path / "bands.json").exists()


def test_scores_are_in_the_highest_zone_whose_threshold_they_reach(bands):
    low, high = bands.thresholds
    scores = [-np.inf, np.nextafter(low, -1), low, np.nextafter(high, -1), high, np.inf]
    assert bands.predict(scores).tolist() == ["no", "no", "ask", "ask", "yes", "yes"]
    assert bands.predict(scores, as_numbers=True).tolist() == [0, 0, 1, 1, 2, 2]
    assert bands.predict([]).tolist() == []
    assert bands.predict(np.array([0.1, 0.9], dtype=np.float32)).tolist() == ["no", "yes"]


def test_a_missing_score_is_an_error_or_goes_where_it_is_told(bands):
    with pytest.raises(ValueError, match=r"scores has 1 missing value: .* such as missing='ask'"):
        bands.predict([0.1, np.nan])
    assert bands.predict([0.1, np.nan], missing="yes").tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="missing= must be 'error' or one of the zones 'no', 'ask', 'yes', got 'drop'"):
        bands.predict([0.1, 0.5], missing="drop")
    with pytest.raises(ValueError, match="missing= must be one of the zones"):
        bands.to_sql("p", missing="drop")


@pytest.mark.parametrize("name", EVERY)
def test_sql_gives_the_zones_of_predict(name):
    y, scores = drawn(300)
    found = tune_bands(y, scores, **EVERY[name])
    finite = found.thresholds[np.isfinite(found.thresholds)]
    asked = np.concatenate((scores, finite, np.nextafter(finite, -1), [np.inf, -np.inf]))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rows (p REAL)")
    connection.executemany("INSERT INTO rows VALUES (?)", [(float(one),) for one in asked])
    said = [zone for (zone,) in connection.execute(f"SELECT {found.to_sql('p', 'sqlite')} FROM rows")]
    assert said == found.predict(asked).tolist()
    missing = connection.execute(
        f"SELECT {found.to_sql('p', 'sqlite', missing=found.zones[0])} FROM (SELECT NULL AS p)"
    )
    assert missing.fetchone() == (found.zones[0],)
    assert connection.execute(f"SELECT {found.to_sql('p', 'sqlite')} FROM (SELECT NULL AS p)").fetchone() == (None,)


def test_zone_names_are_quoted_in_sql():
    found = tune_bands(Y, SCORES, zones=("it's", 'a "zone"'), gains={"it's": 0, 'a "zone"': (-1, 1)})
    said = (
        sqlite3.connect(":memory:").execute(f"SELECT {found.to_sql('p', 'sqlite')} FROM (SELECT 0.1 AS p)").fetchone()
    )
    assert said == ("it's",)


def test_it_prints_in_words(bands):
    assert str(bands).startswith(
        "no below 0.35, ask from 0.35, yes from 0.55: of 8 rows 3 no (0 of them positive), 2 ask, 3 yes (0 of them "
        "negative); npv>=0.9 in no and ppv>=0.9 in yes on these rows; on other rows at least one fails in about "
    )
    one = tune_bands(Y, SCORES, upper="ppv>=0.9")
    assert re.search(r"ppv>=0.9 in yes on these rows; on other rows it fails in about \d+ % of cases$", str(one))
    gained = tune_bands(Y, SCORES, gains=GAINS)
    assert "gain per row = -0.25" in str(gained)
    assert repr(gained) == f"<Bands: {gained}>"
    promised = tune_bands(*drawn(300), **EVERY["confidence"])
    assert "on new data (90 % confidence)" in str(promised)
    assert "at a prior of 10.00%" in str(tune_bands(*drawn(300), **EVERY["prior"]))
    assert "a weight of " in str(tune_bands(*drawn(300), **EVERY["weights"]))
    assert " (stable): " in str(tune_bands(*drawn(300), **EVERY["stable"]))


def test_nothing_in_a_zone_is_said_so():
    nothing = tune_bands(*drawn(300), **EVERY["empty"])
    assert str(nothing).startswith("ask always: of 300 rows 0 no (0 of them positive), 300 ask, 0 yes")
    assert set(nothing.predict([0.0, 1.0, np.inf, -np.inf])) == {"ask"}


@pytest.mark.parametrize("name", EVERY)
def test_notebooks_show_a_table_without_markup_of_names(name):
    options = dict(EVERY[name])
    html = tune_bands(*drawn(300), **options)._repr_html_()
    assert html.count("<tr>") >= len(options.get("zones", ("no", "ask", "yes")))
    hostile = tune_bands(Y, SCORES, zones=("<script>", "b"), gains={"b": (-1, 1)})._repr_html_()
    assert "<script>" not in hostile
    assert "&lt;script&gt;" in hostile


def test_shares_are_those_of_the_prior_that_was_given():
    y, scores = drawn(300)
    plain, given = tune_bands(y, scores, upper="ppv>=0.5"), tune_bands(y, scores, upper="ppv>=0.5", prior=0.1)
    zone = given.predict(scores, as_numbers=True)
    expected = [0.9 * (zone[~y] == k).mean() + 0.1 * (zone[y] == k).mean() for k in range(3)]
    np.testing.assert_allclose(given.shares, expected)
    assert plain.shares.sum() == pytest.approx(1)


def test_bands_of_one_sample_know_its_facts(bands):
    assert (bands.rows, bands.weighted, bands.out_of_fold) == (8, False, False)
    assert bands.fingerprint == tune_threshold(Y, SCORES).fingerprint
    assert bands == tune_bands(tally=ScoreTally.from_scores(Y, SCORES), upper="ppv>=0.9", lower="npv>=0.9")
    assert bands != "bands"
    with pytest.raises(TypeError):
        hash(bands)


# Groups


@pytest.fixture
def grouped():
    return GroupedBands(("a", "b"), (tune_bands(Y, SCORES, gains=GAINS), tune_bands(Y, SCORES + 1, gains=GAINS)))


def test_groups_are_saved_and_read_again(grouped, tmp_path):
    grouped.save(tmp_path / "bands.json")
    again = GroupedBands.load(tmp_path / "bands.json")
    assert again == grouped == GroupedBands.from_dict(grouped.to_dict())
    assert again["b"] == grouped["b"]
    with pytest.raises(ValueError, match=r"it holds the bands of groups: GroupedBands\.load reads it"):
        Bands.load(tmp_path / "bands.json")


def test_groups_that_contradict_each_other_are_refused(grouped, tmp_path):
    one, other = grouped.bands
    cut = tune_bands(Y, SCORES, zones=("no", "yes"), gains={"yes": (-1, 1)})
    for groups, bands, message in (
        (("a",), (one, other), "bands for each group"),
        ((), (), "at least one group"),
        (("a", "a"), (one, other), "occurs twice"),
        (("a", "b"), (one, cut), "different zones"),
    ):
        with pytest.raises(ValueError, match=message):
            GroupedBands(groups, bands).save(tmp_path / "bands.json")
    document = json.loads(json.dumps(grouped.to_dict()))
    document["bands"][0]["thresholds"][0] = 0.0
    with pytest.raises(ValueError, match="checksum"):
        GroupedBands.from_dict(document)


def test_rows_are_in_the_zones_of_their_group(grouped):
    assert grouped.predict([0.9, 0.9], ["a", "b"]).tolist() == ["yes", "no"]
    assert grouped.predict([0.9, 0.9], ["a", "c"], unknown="ask").tolist() == ["yes", "ask"]
    assert grouped.predict([np.nan], ["a"], missing="ask").tolist() == ["ask"]
    assert grouped.predict([0.9], ["b"], as_numbers=True).tolist() == [0]
    with pytest.raises(ValueError, match=r"1 rows are of a group that has no bands, such as 'c'.*unknown='ask'"):
        grouped.predict([0.9, 0.9], ["a", "c"])
    with pytest.raises(ValueError, match="unknown= must be 'error' or one of the zones"):
        grouped.predict([0.9], ["a"], unknown="drop")
    with pytest.raises(ValueError, match="length"):
        grouped.predict([0.9], ["a", "b"])


def test_groups_are_looked_up_and_printed(grouped):
    assert list(grouped) == ["a", "b"]
    assert len(grouped) == 2
    assert "a" in grouped
    assert grouped.thresholds.shape == (2, 2)
    assert grouped.confidence is None
    assert re.fullmatch(r"2 groups, each with thresholds of its own: .*% no, .*% ask, .*% yes", str(grouped))
    assert grouped._repr_html_().count("<tr>") == 3
    with pytest.raises(KeyError, match="'c' is not among the 2 groups: 'a', 'b'"):
        grouped["c"]


def test_sql_of_groups_gives_the_zones_of_predict(grouped):
    connection = sqlite3.connect(":memory:")
    case = grouped.to_sql("p", by="k", dialect="sqlite", unknown="ask")
    rows = [(0.05, "a"), (0.9, "a"), (0.9, "b"), (1.9, "b"), (0.9, "it's")]
    found = [connection.execute(f"SELECT {case} FROM (SELECT ? AS p, ? AS k)", row).fetchone()[0] for row in rows]
    scores, keys = zip(*rows, strict=True)
    assert found == grouped.predict(scores, keys, unknown="ask").tolist()
    with pytest.raises(ValueError, match="do not come from 2 columns"):
        grouped.to_sql("p", by=["k", "m"])
