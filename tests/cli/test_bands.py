"""Bands in the command line, from tuning to checking."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from rich.console import Console

from commands import as_json, run, runner, said
from surecut import (
    Bands,
    GroupedBands,
    ScoreTally,
    apply_frame,
    certify,
    tune_bands,
    tune_bands_frame,
    tune_threshold,
    tune_thresholds,
)
from surecut.certificates.drift import check_drift
from surecut.cli import bands_tables, printing
from surecut.cli.app import app
from surecut.cli.bands import parse_condition, parse_gain
from surecut.decisions import saving
from surecut.decisions.stability import Stability

pytest.importorskip("duckdb", reason="files are read by DuckDB")

ASKED = ["--upper", "ppv>=0.8", "--lower", "npv>=0.9"]
KEYWORDS = {"upper": "ppv>=0.8", "lower": "npv>=0.9"}


def draw(size, seed=0, blurred=0.0):
    """Rows of two sites; of `blurred` ones the score says less."""
    random = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(1.5 - 2 * random.normal(size=size)))
    labels = random.random(size) < scores
    is_blurred = random.random(size) < blurred
    scores = np.where(is_blurred, random.random(size), scores)
    return pandas.DataFrame(
        {
            "y": labels.astype(int),
            "p": np.round(scores, 6),
            "site": random.choice(["bern", "zug"], size),
            "w": random.integers(1, 4, size),
        }
    )


@pytest.fixture(scope="module")
def rows():
    return draw(2_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("bands")
    rows.to_csv(folder / "rows.csv", index=False)
    draw(1_500, seed=1).to_csv(folder / "held_out.csv", index=False)
    draw(1_500, seed=2, blurred=0.7).to_csv(folder / "later.csv", index=False)
    tune_bands(rows["y"], rows["p"], **KEYWORDS).save(folder / "bands.json")
    tune_bands_frame(rows, label="y", score="p", by="site", **KEYWORDS).save(folder / "sites.json")
    tune_threshold(rows["y"], rows["p"]).save(folder / "cut.json")
    return folder


@pytest.fixture
def file(folder):
    return folder / "rows.csv"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns."""

    def console():
        return Console(highlight=False, width=80, force_terminal=True, color_system=None)

    monkeypatch.setattr(printing, "console", console)


class TestOptions:
    @pytest.mark.parametrize("text", ["ask: share<=0.2", "ask:share<=0.2", "  ask :  share<=0.2 "])
    def test_a_condition_names_its_zone(self, text):
        assert parse_condition(text) == ("ask", "share<=0.2")

    def test_a_zone_may_hold_a_colon(self):
        assert parse_condition("care: home: share<=0.2") == ("care: home", "share<=0.2")
        assert parse_gain("care: home: -1") == ("care: home", -1.0)

    @pytest.mark.parametrize("text", ["", "share<=0.2", ": share<=0.2", "ask:", "ask: "])
    def test_a_condition_without_a_zone_is_an_error(self, text):
        with pytest.raises(ValueError, match="--condition must be"):
            parse_condition(text)

    @pytest.mark.parametrize("text", ["", "1", ": 1", "yes", "yes:", "yes: x", "yes: 1, 2, 3", "yes: ,", "yes: 1,"])
    def test_a_malformed_gain_is_an_error(self, text):
        with pytest.raises(ValueError, match="--gain must be"):
            parse_gain(text)


class TestTune:
    @pytest.mark.parametrize(
        ("options", "keywords"),
        [
            (ASKED, KEYWORDS),
            (["--bands", *ASKED], KEYWORDS),
            ([*ASKED, "--upper", "share<=0.1"], {**KEYWORDS, "upper": ["ppv>=0.8", "share<=0.1"]}),
            ([*ASKED, "--condition", "ask: share<=0.4"], {**KEYWORDS, "conditions": {"ask": "share<=0.4"}}),
            (
                ["--condition", "no: npv>=0.9", "--condition", "no: recall<=0.3"],
                {"conditions": {"no": ["npv>=0.9", "recall<=0.3"]}},
            ),
            (
                ["--gain", "no: 0, -4", "--gain", "ask: -1", "--gain", "yes:-4,0"],
                {"gains": {"no": (0, -4), "ask": -1, "yes": (-4, 0)}},
            ),
            (["--metric", "f1", "--gain", "ask: -0.1"], {"metric": "f1", "gains": {"ask": -0.1}}),
            (
                ["--bands", "--metric", "jaccard", "--condition", "ask: share<=0.2"],
                {"metric": "jaccard", "conditions": {"ask": "share<=0.2"}},
            ),
            (["--zones", "low, high", "--upper", "ppv>=0.7"], {"zones": ("low", "high"), "upper": "ppv>=0.7"}),
            ([*ASKED, "--prior", "0.1"], {**KEYWORDS, "prior": 0.1}),
            ([*ASKED, "--confidence", "0.9"], {**KEYWORDS, "confidence": 0.9}),
            ([*ASKED, "--stable", "--random-state", "3"], {**KEYWORDS, "stable": True, "random_state": 3}),
            ([*ASKED, "--pos-label", "0"], {**KEYWORDS, "pos_label": 0}),
        ],
    )
    def test_the_bands_are_pythons(self, file, rows, options, keywords):
        document = as_json("tune", file, *options)
        assert document["rows"] == 2_000
        found, expected = Bands.from_dict(document["bands"]), tune_bands(rows["y"], rows["p"], **keywords)
        assert found.with_sample(pos_label=None, seen=()) == expected.with_sample(pos_label=None, seen=())

    def test_weights(self, file, rows):
        found = as_json("tune", file, *ASKED, "--weight", "w", "--weights", "counts", "--confidence", "0.9")["bands"]
        expected = tune_bands(
            rows["y"], rows["p"], **KEYWORDS, sample_weight=rows["w"], weights="counts", confidence=0.9
        )
        assert found["thresholds"] == expected.thresholds.tolist()
        assert "give both" in said("tune", file, *ASKED, "--weights", "counts")

    def test_groups(self, file, rows, tmp_path):
        run("tune", file, *ASKED, "--by", "site", "--out", tmp_path / "sites.json")
        found = GroupedBands.load(tmp_path / "sites.json")
        assert found == tune_bands_frame(rows, label="y", score="p", by="site", **KEYWORDS)
        assert GroupedBands.from_dict(as_json("tune", file, *ASKED, "--by", "site")["bands"]) == found

    def test_missing_rows(self, rows, tmp_path):
        table = rows.assign(p=rows["p"].where(rows.index > 3))
        table.to_csv(tmp_path / "rows.csv", index=False)
        assert "--missing drop" in said("tune", tmp_path / "rows.csv", *ASKED)
        found = as_json("tune", tmp_path / "rows.csv", *ASKED, "--missing", "drop")
        assert found["dropped"] == 4
        assert Bands.from_dict(found["bands"]).rows == 1_996

    def test_they_are_saved(self, file, rows, tmp_path):
        printed = run("tune", file, *ASKED, "--out", tmp_path / "bands.json").stdout
        found, expected = Bands.load(tmp_path / "bands.json"), tune_bands(rows["y"], rows["p"], **KEYWORDS)
        assert found.with_sample(seen=()) == expected.with_sample(seen=())
        assert f"bands saved: {tmp_path / 'bands.json'}" in printed

    @pytest.mark.parametrize("options", [[], ["--prior", "0.1"], ["--confidence", "0.9"], ["--weight", "w"]])
    def test_the_page(self, file, tmp_path, options):
        pytest.importorskip("jinja2")
        asked = ["tune", file, *ASKED, *options, "--report", tmp_path / "page.html", "--out"]
        assert "page saved" in run(*asked, tmp_path / "with.json").stdout
        assert '"zones":' in (tmp_path / "page.html").read_text(encoding="utf-8").replace('"zones" :', '"zones":')
        run("tune", file, *ASKED, *options, "--out", tmp_path / "without.json")
        assert (tmp_path / "with.json").read_bytes() == (tmp_path / "without.json").read_bytes()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--bands"], 'conditions such as --upper "ppv>=0.9", --lower "npv>=0.95", or gains such as --gain "no: 0'),
            (["--zones", "no,ask,yes"], "say what the zones are for"),
            ([*ASKED, "--constraint", "recall>=0.5"], "--constraint is for a cut: conditions on zones are --upper"),
            ([*ASKED, "--shrinkage", "auto"], "--stable uses the same model"),
            ([*ASKED, "--by", "site", "--average", "micro"], "each group has bands of its own"),
            ([*ASKED, "--by", "site", "--prior", "0.2"], "--prior is for one sample"),
            ([*ASKED, "--by", "site", "--report", "page.html"], "--report shows bands of one sample: leave out --by"),
            ([*ASKED, "--metric", "f1", "--metric", "f2"], "--metric of bands is one ratio"),
            (["--bands", "--metric", "f1"], 'costs, --gain "ask: '),
            ([*ASKED, "--metric", "kappa"], "kappa depends on the class totals"),
            (["--upper", "ppv>=0.5 and recall>=0.2"], "repeat the option: 'ppv>=0.5', 'recall>=0.2'"),
            (["--upper", "ppv>0.9"], "expected a constraint like"),
            (["--upper", "prevalence>=0.9"], "unknown quantity 'prevalence' of a zone"),
            (["--condition", "maybe: share<=0.2"], "there is no zone 'maybe': the zones are 'no', 'ask', 'yes'"),
            (["--condition", "share<=0.2"], '--condition must be "ZONE: CONDITION"'),
            (["--gain", "yes: much"], '--gain must be "ZONE: IF NEGATIVE, IF POSITIVE"'),
            (["--gain", "yes: nan"], "must be finite"),
            (["--gain", "yes: 1", "--gain", "yes: 2"], "--gain is given twice for a zone"),
            (["--gain", "no: -1, 1", "--gain", "yes: 1, -1"], "reverse --zones, or reverse the pairs of --gain"),
            (["--zones", "no", *ASKED], "at least two zones are needed"),
            (["--zones", "no,no", *ASKED], "a name of its own"),
            (["--zones", "no,,yes", *ASKED], "--zones must be the names"),
            (["--zones", ",".join(map(str, range(3_000))), *ASKED], "need at least as many distinct scores"),
            (["--upper", "ppv>=0.8", "--upper", "ppv<=0.2", "--upper", "share>=0.5"], "'yes'"),
            ([*ASKED, "--confidence", "0.9", "--stable"], "leave out --stable"),
            ([*ASKED, "--condition", "ask: share<=0.4", "--stable"], "joins them: leave out --stable"),
            (["--gain", "yes: -1, 1", "--confidence", "0.9"], "add --upper or --lower"),
        ],
    )
    def test_what_cannot_be_is_explained_and_nothing_is_written(self, file, tmp_path, options, message):
        assert message in said("tune", file, *options, "--out", tmp_path / "out.json")
        assert not list(tmp_path.iterdir())

    def test_one_class_is_an_error(self, rows, tmp_path):
        rows.assign(y=0).to_csv(tmp_path / "rows.csv", index=False)
        assert "bands need rows of both classes" in said("tune", tmp_path / "rows.csv", *ASKED, "--pos-label", "0")
        assert "bands need rows of both classes" in said("tune", tmp_path / "rows.csv", *ASKED)

    def test_bands_are_json(self, file, tmp_path):
        for groups in ([], ["--by", "site"]):
            message = said("tune", file, *ASKED, *groups, "--out", tmp_path / "bands.parquet")
            assert "bands are saved as JSON: give --out a name such as" in message


class TestPrinting:
    def test_zones_and_conditions(self, file, rows):
        bands, printed = tune_bands(rows["y"], rows["p"], **KEYWORDS), run("tune", file, *ASKED).stdout
        lines = [line.split() for line in printed.splitlines()]
        assert lines[2] == ["zone", "from", "score", "rows", "negative", "positive", "share"]
        (fp, tp), share = bands.confusion[2].tolist(), bands.shares[2]
        start = f"{bands.thresholds[1]:.6g}"
        assert lines[5] == [
            "yes",
            start,
            str(fp + tp),
            str(fp),
            str(tp),
            f"{share:.1%}",
            "ppv",
            f"{tp / (fp + tp):.4f}",
        ]
        assert "Conditions on these rows, and how often they fail on other rows (estimated):" in printed
        rates = [f"{rate:.0%}" for rate in bands.failure_rates]
        assert [line[-1] for line in lines[-3:]] == rates
        assert "subject to npv>=0.9 in 'no' and ppv>=0.8 in 'yes'" in printed

    def test_a_promise(self, file):
        printed = run("tune", file, *ASKED, "--confidence", "0.9").stdout
        assert "Conditions that hold on new rows, all at once, with 90 % confidence:" in printed
        assert "fails" not in printed
        assert "promised" not in printed
        printed = run("tune", file, "--upper", "ppv>=0.8", "--lower", "npv>=0.99", "--confidence", "0.9").stdout
        assert "Nothing could be promised of no: with more labels, or lower levels, it may be." in printed

    def test_an_empty_zone_has_no_start(self, terminal, capsys):
        bands_tables.bands(tune_bands([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], upper="ppv>=0.9", lower="npv>=0.9"))
        printed = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert printed[2][:3] == ["ask", "–", "0"]

    @pytest.mark.parametrize(
        "options",
        [
            ASKED,
            [*ASKED, "--stable"],
            [*ASKED, "--by", "site"],
            [*ASKED, "--prior", "0.1"],
            [*ASKED, "--weight", "w"],
            ["--gain", "no: 0, -4", "--gain", "yes: -4, 0", "--gain", "ask: -1", "--stable"],
        ],
    )
    def test_80_columns_are_enough(self, terminal, capsys, rows, file, options, tmp_path):
        run("tune", file, *options, "--out", tmp_path / "bands.json")
        found = (GroupedBands if "--by" in options else Bands).load(tmp_path / "bands.json")
        (bands_tables.grouped_bands if "--by" in options else bands_tables.bands)(found)
        printed = capsys.readouterr().out.splitlines()
        assert max(map(len, printed)) <= 80
        starts = [line.split("  ")[0] for line in printed if line.startswith(("no  ", "ask  ", "yes  ", "bern", "zug"))]
        assert len(starts) >= 2  # no cell of a table is on a line of its own
        assert not any(line.startswith(" ") for line in printed)

    def test_stable_bands_show_where_resamples_put_each_threshold(self, capsys, rows):
        bands = tune_bands(rows["y"], rows["p"], gains={"no": (0, -4), "ask": -1, "yes": (-4, 0)}, stable=True)
        assert all(isinstance(one, Stability) for one in bands.stability)
        bands_tables.bands(bands)
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        position = lines.index(["zone", "resampled", "(90", "%)", "near-optimal", "and", "loses", "best", "here"])
        assert [line[0] for line in lines[position + 1 :]] == ["ask", "yes"]

    def test_brackets_in_names_are_no_markup(self, file):
        printed = run("tune", file, "--zones", r"[/b],\[/b],[bold]", "--upper", "ppv>=0.8", "--by", "site").stdout
        assert r"\[/b] from" in printed
        assert "[bold] from" in printed


class TestApply:
    def test_the_column_holds_zones(self, folder, tmp_path):
        printed = run("apply", folder / "held_out.csv", "--cut", folder / "bands.json", "--out", tmp_path / "out.csv")
        table, bands = pandas.read_csv(tmp_path / "out.csv"), Bands.load(folder / "bands.json")
        assert table["predicted"].tolist() == bands.predict(table["p"]).tolist()
        counts = table["predicted"].value_counts()
        assert f"{counts['no']:,} no, {counts['ask']:,} ask, {counts['yes']:,} yes" in printed.stdout

    def test_groups(self, folder, tmp_path):
        out = tmp_path / "out.parquet"
        run("apply", folder / "held_out.csv", "--cut", folder / "sites.json", "--by", "site", "--out", out)
        table, bands = pandas.read_parquet(out), GroupedBands.load(folder / "sites.json")
        expected = apply_frame(table[["p", "site"]], bands, score="p", by="site")["predicted"]
        assert table["predicted"].tolist() == expected.tolist()

    def test_rows_without_a_score_or_of_another_group(self, folder, tmp_path):
        table = draw(6, seed=3).assign(site=["bern", "zug", "basel"] * 2)
        table.loc[[0, 3], "p"] = None
        table.to_csv(tmp_path / "new.csv", index=False)
        asked = ["apply", tmp_path / "new.csv", "--cut", folder / "sites.json", "--by", "site", "--out"]
        result = run(*asked, tmp_path / "out.csv")
        assert "they are in no zone" in result.stderr
        assert pandas.read_csv(tmp_path / "out.csv")["predicted"].isna().tolist() == [True, False, True] * 2
        run(*asked, tmp_path / "out.csv", "--missing", "ask", "--unknown", "no")
        found = pandas.read_csv(tmp_path / "out.csv")["predicted"]
        assert (found[0], found[2], found[5]) == ("ask", "no", "no")
        (tmp_path / "out.csv").unlink()
        assert "--missing ask" in said(*asked, tmp_path / "out.csv", "--missing", "error")
        assert "--unknown ask" in said(*asked, tmp_path / "out.csv", "--unknown", "error")
        assert "one of the zones 'no', 'ask', 'yes'" in said(*asked, tmp_path / "out.csv", "--missing", "negative")
        assert not (tmp_path / "out.csv").exists()

    def test_a_negative_label_is_for_cuts(self, folder, tmp_path):
        asked = ["apply", folder / "held_out.csv", "--cut", folder / "bands.json", "--out", tmp_path / "out.csv"]
        assert "--negative names the other label of a cut" in said(*asked, "--negative", "no")


class TestCertify:
    def test_it_is_pythons(self, folder):
        held_out = pandas.read_csv(folder / "held_out.csv")
        expected = certify(Bands.load(folder / "bands.json"), held_out["y"], held_out["p"], confidence=0.9)
        asked = ["certify", folder / "held_out.csv", "--cut", folder / "bands.json", "--confidence", "0.9"]
        document = as_json(*asked)
        assert [one["lower"] for one in document["zones"]] == [one.lower for one in expected.zones]
        assert [one["holds"] for one in document["conditions"]] == [one.holds for one in expected.conditions]
        printed = run(*asked).stdout
        for one in expected.zones:
            assert [one.zone, one.quantity, f"{one.value:.4f}", f"{one.lower:.4f}", f"{one.upper:.4f}"] in [
                line.split() for line in printed.splitlines()
            ]
        assert "It holds if" in printed

    def test_uniform_on_the_validation_rows(self, folder, rows, tmp_path):
        run("tune", folder / "rows.csv", *ASKED, "--confidence", "0.9", "--out", tmp_path / "sure.json")
        asked = ["certify", folder / "rows.csv", "--cut", tmp_path / "sure.json", "--confidence", "0.9"]
        document = as_json(*asked, "--method", "uniform")
        assert all(one["holds"] for one in document["conditions"])
        assert "too good" in said(*asked)

    def test_gains_have_limits(self, folder, tmp_path):
        run("tune", folder / "rows.csv", "--gain", "yes: -4, 1", "--gain", "ask: -0.1", "--out", tmp_path / "b.json")
        document = as_json("certify", folder / "held_out.csv", "--cut", tmp_path / "b.json")
        assert document["gain"]["lower"] < document["gain"]["value"] < document["gain"]["upper"]
        assert "gain" in run("certify", folder / "held_out.csv", "--cut", tmp_path / "b.json").stdout

    def test_groups_share_the_error(self, folder):
        held_out, bands = pandas.read_csv(folder / "held_out.csv"), GroupedBands.load(folder / "sites.json")
        asked = ["certify", folder / "held_out.csv", "--cut", folder / "sites.json", "--by", "site"]
        document = as_json(*asked)
        assert document["confidence"] == 0.95
        for one in document["groups"]:
            part = held_out[held_out["site"] == one["group"]]
            expected = certify(bands[one["group"]], part["y"], part["p"], confidence=0.975)
            assert [zone["lower"] for zone in one["zones"]] == [zone.lower for zone in expected.zones]
        printed = run(*asked).stdout
        assert "in all groups together with 95 % confidence" in printed
        assert max(map(len, printed.split("It holds if")[0].splitlines())) < 130

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--method", "bootstrap"], "--method bootstrap is for cuts: bands are certified by --method holdout"),
            (["--groups", "site"], "keep one row of each group"),
            (["--by", "site"], "leave out --by"),
        ],
    )
    def test_what_bands_do_not_have_is_explained(self, folder, options, message):
        assert message in said("certify", folder / "held_out.csv", "--cut", folder / "bands.json", *options)

    def test_groups_need_rows_of_each(self, folder, tmp_path):
        held_out = pandas.read_csv(folder / "held_out.csv")
        held_out[held_out["site"] == "zug"].to_csv(tmp_path / "zug.csv", index=False)
        held_out.assign(site="basel").to_csv(tmp_path / "basel.csv", index=False)
        asked = ["--cut", folder / "sites.json", "--by", "site"]
        assert "no rows of the group 'bern'" in said("certify", tmp_path / "zug.csv", *asked)
        assert "no group of" in said("certify", tmp_path / "basel.csv", *asked)
        many = ["certify", folder / "held_out.csv", "--cut", folder / "sites.json"]
        assert "say with --by which column holds the group" in said(*many)
        assert "come from 1 column" in said(*many, "--by", "site", "--by", "w")
        assert "keep one row of each group" in said(*many, "--by", "site", "--groups", "w")


class TestCheck:
    def test_it_is_pythons(self, folder):
        held_out, bands = pandas.read_csv(folder / "held_out.csv"), Bands.load(folder / "bands.json")
        expected = check_drift(bands, held_out["y"], held_out["p"])
        code = 3 if expected.moved or expected.broken else 0
        document = as_json("check", folder / "held_out.csv", "--cut", folder / "bands.json", code=code)
        assert document["prior"]["p_value"] == expected.prior.p_value
        assert {name: one["now"] for name, one in document["zones"].items()} == {
            name: one.now for name, one in expected.zones.items()
        }
        assert document["broken"] == list(expected.broken)

    def test_a_change_and_a_broken_condition(self, folder):
        asked = ["check", folder / "later.csv", "--cut", folder / "bands.json"]
        document = as_json(*asked, code=3)
        assert document["moved"]
        assert "ppv>=0.8 in 'yes'" in document["broken"]
        printed = run(*asked, code=3).stdout
        assert "does not hold" in printed
        assert "There is a statistically significant change (95 % confidence)." in printed
        reference = as_json(*asked, "--reference", folder / "held_out.csv", code=3)
        assert reference["zones"]["ppv of yes"]["then"] != document["zones"]["ppv of yes"]["then"]

    def test_a_broken_condition_alone_is_an_alarm(self, rows, tmp_path):
        """Bands whose condition never held: nothing has changed, and it does not hold."""
        document = tune_bands(rows["y"], rows["p"], upper="ppv>=0.8").to_dict()
        document["conditions"][0]["level"] = 0.999
        document["checksum"] = saving._checksum(saving.BANDS, document, None)
        Bands.from_dict(document).save(tmp_path / "bands.json")
        draw(3_000, seed=5).to_csv(tmp_path / "new.csv", index=False)
        asked = ["check", tmp_path / "new.csv", "--cut", tmp_path / "bands.json"]
        document = as_json(*asked, code=3)
        assert not document["moved"]
        assert document["broken"] == ["ppv>=0.999 in 'yes'"]
        assert "1 condition does not hold" in run(*asked, code=3).stdout

    def test_groups_share_the_error(self, folder, tmp_path):
        later, bands = pandas.read_csv(folder / "later.csv"), GroupedBands.load(folder / "sites.json")
        asked = ["--cut", folder / "sites.json", "--by", "site"]
        document = as_json("check", folder / "later.csv", *asked, "--looks", "4", code=3)
        assert document["looks"] == 4
        for one in document["groups"]:
            part = later[later["site"] == one["group"]]
            tally = ScoreTally.from_scores(part["y"], part["p"])
            expected = check_drift(bands[one["group"]], tally=tally, confidence=0.975, looks=4)
            assert one["confidence"] == 0.975
            assert one["zones"]["ppv of yes"]["p_value"] == expected.zones["ppv of yes"].p_value
        printed = run("check", folder / "later.csv", *asked, code=3).stdout
        assert "2 groups, each at 0.975 confidence" in printed
        later[later["site"] == "zug"].to_csv(tmp_path / "zug.csv", index=False)
        assert as_json("check", tmp_path / "zug.csv", *asked, code=3)["not_checked"] == {"bern": "no rows"}
        message = said("check", tmp_path / "zug.csv", *asked, "--unknown", "error")
        assert "say --unknown drop to check the other groups" in message
        reference = ["--reference", tmp_path / "zug.csv"]
        document = as_json("check", folder / "later.csv", *asked, *reference, code=3)
        assert document["not_checked"] == {"bern": "no reference rows"}

    def test_rows_of_other_groups_are_dropped(self, folder, tmp_path):
        later = pandas.read_csv(folder / "held_out.csv")
        later.loc[:9, "site"] = "basel"
        later.to_csv(tmp_path / "new.csv", index=False)
        result = runner.invoke(
            app, ["check", str(tmp_path / "new.csv"), "--cut", str(folder / "sites.json"), "--by", "site"]
        )
        assert "10 of 1,500 rows" in result.stderr
        assert "have a group in 'site' that is none of the bands': they are dropped" in " ".join(result.stderr.split())


class TestKinds:
    """A file is recognised by what it holds."""

    @pytest.mark.parametrize("command", ["apply", "certify", "check"])
    def test_kinds_that_do_not_fit(self, command, folder, tmp_path):
        out = ["--out", tmp_path / "out.csv"] if command == "apply" else []

        def message(cut, *options):
            return said(command, folder / "held_out.csv", "--cut", folder / cut, *options, *out)

        assert "holds the thresholds between zones of one score: leave out --by" in message(
            "bands.json", "--by", "site"
        )
        assert "holds the bands of groups: say with --by which column holds the group" in message("sites.json")
        assert "holds a single cut: leave out --by" in message("cut.json", "--by", "site")
        assert "there is no file" in message("none.json", "--by", "site")
        assert not (tmp_path / "out.csv").exists()

    def test_groups_of_the_same_text(self, rows, folder, tmp_path):
        half = tune_bands(rows["y"], rows["p"], **KEYWORDS)
        GroupedBands((1, "1"), (half, half)).save(tmp_path / "same.json")
        message = said("check", folder / "later.csv", "--cut", tmp_path / "same.json", "--by", "site")
        assert "are the same text" in message
        assert "apply the bands from Python" in message

    def test_cuts_of_labels_are_still_read(self, rows, folder, tmp_path):
        pair = np.column_stack([rows["y"], rows["y"]]), np.column_stack([rows["p"], rows["p"]])
        tune_thresholds(*pair, labels=["bern", "zug"]).save(tmp_path / "cuts.json")
        asked = ["check", folder / "held_out.csv", "--cut", tmp_path / "cuts.json"]
        assert "holds the cuts of many labels: say with --by which column holds the label" in said(*asked)
        assert "labels" in as_json(*asked, "--by", "site")
