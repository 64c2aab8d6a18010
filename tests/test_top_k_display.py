"""TopKDisplay draws what a rule changes."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import tune_top_k
from surecut.decisions.class_changes import ClassChanges
from surecut.plots import TopKDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def close():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def rows(size=3, seed=0):
    random = np.random.default_rng(seed)
    share = np.arange(size, 0, -1) ** 2
    y = random.choice(size, 200, p=share / share.sum())
    logits = random.normal(size=(200, size)) + np.log(share)
    logits[np.arange(200), y] += 1.2
    return y, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def indicators(labels):
    random = np.random.default_rng(0)
    truth = random.random((100, labels)) < 0.2
    return truth, random.random((100, labels)) + 0.4 * truth


def test_confusion_matrices_before_and_after():
    display = TopKDisplay.from_predictions(*rows(), reject_cost=0.3)
    rule = display.rule
    for image, matrix in zip(display.images_, (rule.baseline.matrix, rule.matrix), strict=True):
        np.testing.assert_allclose(image.get_array(), matrix / matrix.sum(axis=1, keepdims=True))
    texts = [text.get_text() for text in display.texts_]
    assert texts == [str(count) for matrix in (rule.baseline.matrix, rule.matrix) for count in matrix.ravel()]
    assert [text.get_text() for text in display.axes_[1].get_xticklabels()] == ["0", "1", "2", "-1"]
    assert [text.get_text() for text in display.axes_[1].get_yticklabels()] == ["0", "1", "2"]
    assert display.axes_[0].get_title() == f"the largest score: mean cost of a row {-rule.baseline.value:.4f}"
    assert display.axes_[1].get_title() == f"tuned: mean cost of a row {-rule.value:.4f}"
    display.figure_.canvas.draw()


def test_texts_can_be_read_on_their_cells():
    display = TopKDisplay.from_predictions(*rows(), cmap="Greys")
    for image, texts in zip(display.images_, np.array_split(np.array(display.texts_), 2), strict=True):
        for share, text in zip(image.get_array().ravel(), texts, strict=True):
            assert text.get_color() == ("white" if share > 0.6 else "black") or 0.3 < share < 0.7


def test_labels_before_and_after():
    rule = tune_top_k(*indicators(12), k=3)
    display = TopKDisplay.from_top_k(rule)
    changes = ClassChanges.of(rule)
    order = np.argsort(-rule.per_label, kind="stable")
    for i, quantity in enumerate((100 * changes.predicted, changes.value)):
        np.testing.assert_array_equal(display.before_[i].get_xdata(), quantity[0, order])
        np.testing.assert_array_equal(display.after_[i].get_xdata(), quantity[1, order])
    shown = [text.get_text() for text in display.axes_[0].get_yticklabels()]
    assert shown == [str(label) for label in order.tolist()]
    assert display.axes_[0].yaxis_inverted()
    assert display.axes_[1].get_xlabel() == "f1 of the label"


def test_many_labels_are_sorted():
    rule = tune_top_k(*indicators(60), k=3, stable=True)
    display = TopKDisplay.from_top_k(rule)
    before, after = ClassChanges.of(rule).value
    np.testing.assert_array_equal(display.before_[0].get_ydata(), np.sort(before)[::-1])
    np.testing.assert_array_equal(display.after_[0].get_ydata(), np.sort(after)[::-1])
    np.testing.assert_array_equal(display.after_[1].get_xdata(), before)
    np.testing.assert_array_equal(display.after_[1].get_ydata(), after)
    assert f"tuned: macro f1 {rule.value:.4f}" in [one.get_text() for one in display.axes_[0].get_legend().get_texts()]


def test_what_is_drawn_can_be_chosen_and_where():
    import matplotlib.pyplot as plt

    rule = tune_top_k(*rows(), k=1)
    assert TopKDisplay.from_top_k(rule, kind="labels").images_ is None
    assert len(TopKDisplay.from_top_k(rule, kind="many labels").axes_) == 2
    _, axes = plt.subplots(1, 2)
    assert TopKDisplay.from_top_k(rule, axes=axes).axes_ == tuple(axes)
    with pytest.raises(ValueError, match="kind= must be one of confusion, labels, many labels, got 'roc'"):
        TopKDisplay.from_top_k(rule, kind="roc")
    with pytest.raises(ValueError, match="this rule has no matrix of classes"):
        TopKDisplay.from_top_k(tune_top_k(*indicators(5), k=2), kind="confusion")
    with pytest.raises(ValueError, match="a display shows one rule: name one metric, got f1, recall"):
        TopKDisplay.from_predictions(*rows(), metric=["f1", "recall"])


def test_names_are_no_formulas():
    y, scores = rows()
    display = TopKDisplay.from_predictions(np.array(["$x^2$", "$$", "a" * 40])[y], scores[:, [1, 0, 2]])
    display.figure_.canvas.draw()
    labels = [text.get_text() for text in display.axes_[0].get_yticklabels()]
    assert labels == ["$$", "$x^2$", f"{'a' * 17}…"]
