"""The printed table and the page show labels that are predicted too often, however rare they are."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import tune_thresholds


@pytest.fixture
def cut():
    """30 labels with good scores, and a rare one with one score for all rows."""
    random = np.random.default_rng(0)
    scores = random.random((400, 31))
    truth = random.random((400, 31)) < scores
    truth[:, 30], scores[:, 30] = np.arange(400) == 7, 0.5
    return tune_thresholds(truth, scores, labels=[*(f"common {i}" for i in range(30)), "rare [1]"])


def test_the_table(cut, capsys):
    pytest.importorskip("rich")
    from surecut.cli import printing

    printing.labels(cut)
    out = capsys.readouterr().out
    assert "1 label flags nearly every row: 19.7 labels a row, the rows have 14.9" in out
    _, worst = out.split("The worst of these, predicted too often or of the lowest value:")
    assert worst.splitlines()[2].startswith("rare [1]")
    assert len(worst.strip().splitlines()) == 6


def test_a_short_table_shows_all_labels_once(capsys):
    pytest.importorskip("rich")
    from surecut.cli import printing

    printing.labels(tune_thresholds([[1, 0], [0, 1], [1, 0]], [[0.5, 0.2], [0.2, 0.7], [1.0, 0.5]]))
    assert "worst" not in capsys.readouterr().out


def test_the_page(cut, monkeypatch):
    pytest.importorskip("jinja2")
    from surecut.report import labels, summarize_labels, to_html

    monkeypatch.setattr(labels, "MOST", 12)
    summary = summarize_labels(cut)
    assert summary["worst"][0] == "rare [1]: f1 0.0050, 400 flagged, 1 positive"
    assert len(summary["labels"]) <= 12
    assert "rare [1]" in [label["name"] for label in summary["labels"]]
    page = to_html(summary)
    assert "Look at these first" in page
    assert "<li>rare [1]: f1 0.0050" in page
    assert "1 label flags nearly every row" in page
