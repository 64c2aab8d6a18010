"""What a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from surecut import ScoreTally, tune_threshold


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
            ["score ≥ 0.25", "0.8000 on the 4 rows that tuned it"],
        ),
        (tune_threshold([0, 1], [0.1, 0.9], metric="specificity"), ["predict nothing", "1.0000 on the 2 rows"]),
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


def test_text_is_escaped():
    def nasty(confusion):
        return confusion.tp

    nasty.__name__ = "<img src=x>"
    assert "<img" not in tune_threshold([0, 1], [0.1, 0.9], metric=nasty)._repr_html_()
