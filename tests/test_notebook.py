"""What a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from surecut import ScoreTally, certify, tune_threshold, tune_thresholds


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
