"""Names in HTML: whatever labels, metrics and titles are called, the elements are those of a page with plain names."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from surecut import ScoreTally, certify, tune_bands, tune_threshold, tune_thresholds, tune_top_k
from surecut.metrics import LinearFractional

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "<!-- ",
    "]]></style><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;",
]


class Elements(HTMLParser):
    """The elements of a page, each with the names of its attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, *(name for name, _ in attributes)))


def rows():
    generator = np.random.default_rng(0)
    scores = generator.random((200, 2))
    return generator.random((200, 2)) < scores, scores


def pages(name):
    """All HTML of decisions in which a name occurs."""
    truth, scores = rows()
    own = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(1, 1, 1, 0), name=name)
    labels = np.where(truth[:, 0], name, "other")
    cut = tune_threshold(labels, scores[:, 0], metric=own, pos_label=name, constraint=(own, 0.1))
    cuts = tune_thresholds(truth, scores, labels=[name, "other"], metric=own, constraint=(own, 0.1))
    yield cut._repr_html_()
    yield cuts._repr_html_()
    zones = (f"{name}1", f"{name}2", f"{name}3")
    bands = tune_bands(
        labels, scores[:, 0], zones=zones, upper="ppv>=0.6", lower="npv>=0.6", gains={zones[1]: -0.1}, pos_label=name
    )
    yield bands._repr_html_()
    yield certify(cut, labels, scores[:, 0], method="uniform")._repr_html_()
    classes = tune_top_k(
        labels, scores, k=1, costs={name: [0, 1], "other": [2, 0], f"{name}!": 0.4}, classes=[name, "other"]
    )
    yield classes._repr_html_()
    tags = tune_top_k(truth, scores, k=1, labels=[name, "other"], metric=own)
    yield tags._repr_html_()
    pytest.importorskip("jinja2")
    from surecut.report import summarize, summarize_bands, summarize_labels, summarize_top_k, to_html

    tally = ScoreTally.from_scores(labels, scores[:, 0], pos_label=name)
    yield to_html(summarize(tally, cut=cut, title=name))
    yield to_html(summarize_labels(cuts, title=name))
    yield to_html(summarize_bands(bands, tally, title=name))
    yield to_html(summarize_top_k(classes, title=name))
    yield to_html(summarize_top_k(tags, title=name))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name):
    for page, plain in zip(pages(name), pages("plain"), strict=True):
        assert Elements(page).found == Elements(plain).found
        assert name not in page or not set(name) & set("<>&\"'")
