"""What commands print of stable cuts, for people at 80 columns and for programs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("typer")
from rich.console import Console

from surecut import LabelStability, Stability, tune_threshold, tune_thresholds
from surecut.cli import printing

ONE = Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.9, 0.3391)


def rows(size=400, labels=3):
    random = np.random.default_rng(0)
    scores = random.random((size, labels))
    return random.random((size, labels)) < scores**2, scores


def stable(size=400, **changed):
    truth, scores = rows(size)
    return replace(tune_threshold(truth[:, 0], scores[:, 0]), stability=replace(ONE, **changed))


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns."""

    def console():
        return Console(highlight=False, width=80, force_terminal=True, color_system=None)

    monkeypatch.setattr(printing, "console", console)


def test_a_stable_cut_shows_its_spread_below_the_table(terminal, capsys):
    printing.cuts([stable()])
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 80
    assert printed[3] == "Stable thresholds, and where resamples of these rows put them:"
    assert " ".join(printed[4].split()) == "metric resampled (90 %) near-optimal and loses best here"
    assert " ".join(printed[5].split()) == "f1 0.31 to 0.41 (0.330, 0.380] at most 0.008 0.9000 at 0.3391"
    assert len(printed) == 6


def test_an_exact_cut_shows_none(capsys):
    printing.cuts([replace(stable(), stability=None)])
    assert "Stable" not in capsys.readouterr().out


def test_a_promised_cut_shows_its_spread_too(capsys):
    printing.cuts([replace(stable(), confidence=0.95, lower_limit=0.5)])
    printed = capsys.readouterr().out
    assert "≥ 0.5000" in printed
    assert "0.31 to 0.41" in printed


def test_few_rows_are_said_once(capsys):
    printing.cuts([stable(60), stable(60)])
    assert capsys.readouterr().out.count("the threshold is not settled, and its spread is a rough guess.") == 1


def test_infinite_ends_are_signs(capsys):
    printing.cuts(
        [stable(quantiles=(-np.inf, 0.1, 0.2, 0.3, np.inf), best_threshold=np.inf, near_optimal=(0.1, np.inf))]
    )
    assert "−∞ to ∞" in (printed := capsys.readouterr().out)
    assert "(0.1, ∞]" in printed
    assert "0.9000 at ∞" in printed


def test_labels_have_a_column_of_their_spread(terminal, capsys):
    cut = tune_thresholds(*rows(), labels=["a", "b", "c"])
    printing.labels(replace(cut, stability=LabelStability.joined([ONE, None, ONE])))
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 80
    table = [line.split() for line in printed[printed.index("") + 1 :]]
    assert table[0][:4] == ["label", "threshold", "resampled", "value"]
    assert {row[0]: row[2] for row in table[1:]} == {"a": "0.31–0.41", "b": "–", "c": "0.31–0.41"}
    printing.labels(cut)
    assert "resampled" not in capsys.readouterr().out


def test_programs_get_the_record(capsys):
    printing.as_json(stable().to_dict())
    found = json.loads(capsys.readouterr().out)
    assert found["stability"] == {
        "resamples": 200,
        "quantiles": [0.31, 0.34, 0.35, 0.37, 0.41],
        "near_optimal": [0.33, 0.38],
        "tolerance": 0.008,
        "best_value": 0.9,
        "best_threshold": 0.3391,
    }
