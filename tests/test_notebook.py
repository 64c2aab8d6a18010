"""What a notebook shows."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from surecut import LabelStability, ScoreTally, Stability, certify, tune_threshold, tune_thresholds


class Text(HTMLParser):
    """The text of some HTML; unbalanced tags are an error."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize(
    ("cut", "shown"),
    [
        (
            tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75]),
            ["score ≥ 0.25", "0.8000 on the 4 validation rows"],
        ),
        (
            tune_threshold([0, 1], [0.1, 0.9], metric="specificity"),
            ["predict nothing", "1.0000 on the 2 validation"],
        ),
        (
            ScoreTally.from_scores([0, 1, 1], [0.1, 0.9, 0.2]).with_prior(0.25).best_cut("recall", "precision>=0.5"),
            ["25.00% (given)", "precision>=0.5"],
        ),
    ],
)
def test_a_cut(cut, shown):
    text = " ".join(Text(cut._repr_html_()).text)
    for part in shown:
        assert part in text


def test_a_certificate():
    rng = np.random.default_rng(0)
    scores = rng.random(600)
    labels = rng.random(600) < scores
    cut = tune_threshold(labels[:300], scores[:300])
    found = certify(cut, labels[300:], scores[300:])
    text = " ".join(Text(found._repr_html_()).text)
    assert f"at least {found.lower:.4f}" in text
    assert all(assumption in text for assumption in found.assumptions)
    tuned_here = certify(cut, labels[:300], scores[:300], method="uniform")
    assert f"at most {tuned_here.regret_bound:.4f}" in " ".join(Text(tuned_here._repr_html_()).text)


def test_a_cut_of_many_labels():
    rng = np.random.default_rng(0)
    scores = rng.random((50, 12))
    cut = tune_thresholds(rng.random((50, 12)) < scores, scores, labels=[f"<{i}>" for i in range(12)])
    html = cut._repr_html_()
    assert "<0>" not in html
    text = " ".join(Text(html).text)
    assert "… and 2 labels with fewer positives" in text
    assert str(cut) in text


def test_text_is_escaped():
    def nasty(confusion):
        return confusion.tp

    nasty.__name__ = "<img src=x>"
    assert "<img" not in tune_threshold([0, 1], [0.1, 0.9], metric=nasty)._repr_html_()


def test_a_stable_cut_shows_its_spread():
    one = Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.9, 0.3391)
    cut = replace(tune_threshold([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75]), stability=one)
    text = "|".join(Text(cut._repr_html_()).text)
    for shown in (
        "score ≥ 0.25 (stable)",
        "the best here, 0.3391, reaches 0.9000",
        "0.31 to 0.41 in 90 % of 200 resamples, 0.340 to 0.370 in half of them",
        "thresholds in (0.330, 0.380] lose at most 0.008",
        "only 2 positives: the threshold is not settled",
    ):
        assert shown in text
    assert "resampled" not in replace(cut, stability=None)._repr_html_()


def test_stable_cuts_of_labels_show_their_spread():
    one = Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.9, 0.3391)
    exact = tune_thresholds([[1, 0], [0, 1]], [[0.75, 0.5], [0.25, 1.0]])
    text = Text(replace(exact, stability=LabelStability.joined([one, None]))._repr_html_()).text
    assert text[text.index("label") :] == [
        *("label", "threshold", "resampled (90 %)", "f1", "positives"),
        *("0", "0.5", "0.31 to 0.41", "1.0000", "1"),
        *("1", "0.75", "–", "1.0000", "1"),
    ]
    assert "resampled" not in exact._repr_html_()
