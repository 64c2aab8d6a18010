"""A picture of k labels a row: what is predicted of each class, before and after tuning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut._inputs import in_brief
from surecut.decisions.class_changes import READABLE, ClassChanges, quantity_of_labels
from surecut.decisions.class_wording import baseline_text, shown_value, value_name
from surecut.decisions.wording import amount, label_text
from surecut.plots.axes import pyplot

if TYPE_CHECKING:
    from surecut.decisions.top_k import TopK

KINDS = ("confusion", "labels", "many labels")

TEXTS = 12
"""Of so many, each cell has its number of rows."""

LABELS = 40
"""Labels that are drawn one by one."""

BEFORE, AFTER = "#8a8f98", "#0b5cad"


@dataclass
class TopKDisplay:
    """A rule that predicts k labels a row, beside the k largest scores.

    Of classes the two confusion matrices, in shares of the true class. Of up to 40 labels how often each is predicted,
    and its value, before and after. Of more labels all values in descending order, and each value beside the one
    before.

    Attributes
    ----------
    rule
        The rule that is drawn.
    changes
        Each label before and after: see `surecut.TopK`.
    images_, texts_
        The confusion matrices, and the numbers in their cells.
    before_, after_, lines_
        Of other kinds: what is drawn of the largest scores and of the rule, in both axes, and what joins them.
    axes_, figure_
        Where `plot` has drawn.

    Examples
    --------
    >>> from surecut.plots import TopKDisplay
    >>> y, scores = ["a", "a", "a", "b"], [[0.75, 0.25], [0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]
    >>> display = TopKDisplay.from_predictions(y, scores)
    >>> [image.get_array().tolist() for image in display.images_]
    [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    """

    rule: TopK
    changes: ClassChanges = field(repr=False)
    images_: Any = field(default=None, init=False, repr=False)
    texts_: Any = field(default=None, init=False, repr=False)
    before_: Any = field(default=None, init=False, repr=False)
    after_: Any = field(default=None, init=False, repr=False)
    lines_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)

    def plot(self, axes: Any = None, *, kind: str | None = None, cmap: Any = "Blues") -> Self:
        """Draw what is predicted before and after.

        Parameters
        ----------
        axes
            Two axes to draw on; new ones unless given.
        kind
            ``"confusion"``, the two confusion matrices; ``"labels"``, each label by itself; ``"many labels"``, all
            values. Unless given, what is readable: matrices of up to 30 classes, and up to 40 labels by themselves.
        cmap
            The colours of confusion matrices: a colormap of matplotlib, or its name.
        """
        kind = self._usual_kind() if kind is None else kind
        if kind not in KINDS:
            raise ValueError(f"kind= must be one of {', '.join(KINDS)}, got {kind!r}")
        if kind == "confusion" and self.rule.matrix is None:
            raise ValueError("kind='confusion' needs rows of one class each: this rule has no matrix of classes")
        if axes is None:
            self.figure_, axes = pyplot().subplots(1, 2, figsize=self._size(kind), layout="constrained")
        self.axes_, self.figure_ = tuple(axes), axes[0].figure
        if kind == "confusion":
            self._draw_matrices(cmap)
        elif kind == "labels":
            self._draw_labels()
        else:
            self._draw_many()
        return self

    def _usual_kind(self) -> str:
        if self.rule.matrix is not None and max(self.rule.matrix.shape) <= READABLE:
            return "confusion"
        return "labels" if len(self.rule) <= LABELS else "many labels"

    def _size(self, kind: str) -> tuple[float, float]:
        if kind == "confusion":
            side = min(9.0, max(3.6, 1.6 + 0.42 * len(self.rule.actions)))
            return 2 * side + 0.4, side
        return (8, max(2.6, 1.2 + 0.24 * len(self.rule))) if kind == "labels" else (9, 4.2)

    def _draw_matrices(self, cmap: Any) -> None:
        rule = self.rule
        actions, classes = ([_tick(one) for one in names] for names in (rule.actions, rule.labels))
        self.images_, self.texts_ = [], []
        for ax, matrix, title in zip(self.axes_, (rule.baseline.matrix, rule.matrix), self._titles(), strict=True):
            counts = np.asarray(matrix, dtype=float)
            rows = counts.sum(axis=1, keepdims=True)
            shares = np.divide(counts, rows, out=np.zeros_like(counts), where=rows > 0)
            image = ax.imshow(shares, cmap=cmap, vmin=0, vmax=1)
            self.images_.append(image)
            if max(counts.shape) <= TEXTS:
                self.texts_ += [self._cell(image, i, j, value) for (i, j), value in np.ndenumerate(counts)]
            is_long = max(map(len, actions)) * len(actions) > 40
            ax.set_xticks(range(len(actions)), actions, parse_math=False, **({"rotation": 90} if is_long else {}))
            ax.set_yticks(range(len(classes)), classes, parse_math=False)
            ax.set(xlabel="predicted (colour: share of the class)", ylabel="true class")
            ax.set_title(title, fontsize="medium")

    def _cell(self, image: Any, i: int, j: int, count: float) -> Any:
        """Write a number of rows in its cell, in black or white, whichever can be read there."""
        share = image.get_array()[i, j]
        red, green, blue, _ = image.cmap(image.norm(share))
        colour = "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"
        return image.axes.text(j, i, amount(count), ha="center", va="center", color=colour, fontsize="small")

    def _titles(self) -> tuple[str, str]:
        rule = self.rule
        before, after = (shown_value(rule, one) for one in (rule.baseline.value, rule.value))
        return f"{baseline_text(rule)}: {value_name(rule)} {before:.4f}", f"tuned: {value_name(rule)} {after:.4f}"

    def _draw_labels(self) -> None:
        """Draw each label, the highest value on top: how often it is predicted, and its value."""
        values = self.changes.value
        order = np.argsort(np.nan_to_num(-values[1], nan=np.inf), kind="stable")
        rows = np.arange(len(order))
        left, right = self.axes_
        self.before_, self.after_, self.lines_ = [], [], []
        for ax, pair, name in (
            (left, 100 * self.changes.predicted, "predicted, % of the rows"),
            (right, values, f"{quantity_of_labels(self.rule)} of the label"),
        ):
            before, after = pair[:, order]
            self.lines_.append(ax.hlines(rows, before, after, color=AFTER, alpha=0.45))
            self.before_ += ax.plot(before, rows, "o", color=BEFORE, mfc="white", label=baseline_text(self.rule))
            self.after_ += ax.plot(after, rows, "o", color=AFTER, label="tuned")
            ax.set_yticks(rows, [_tick(self.rule.labels[i]) for i in order.tolist()], parse_math=False)
            if not ax.yaxis_inverted():
                ax.invert_yaxis()
            ax.set_xlabel(name)
        right.set_yticks(rows, [""] * len(rows))
        right.legend(loc="best", fontsize="small")
        left.set_title(self._titles()[1], fontsize="medium")

    def _draw_many(self) -> None:
        """Draw all values in descending order, and each beside the one before."""
        before, after = self.changes.value
        left, right = self.axes_
        name = quantity_of_labels(self.rule)
        self.before_, self.after_, self.lines_ = [], [], []
        for artists, values, colour, title in zip(
            (self.before_, self.after_), (before, after), (BEFORE, AFTER), self._titles(), strict=True
        ):
            known = np.sort(values[~np.isnan(values)])[::-1]
            artists += left.plot(np.arange(1, len(known) + 1), known, color=colour, label=title)
        left.set(xlabel="labels, the highest values first", ylabel=f"{name} of the label")
        left.legend(loc="best", fontsize="small")
        self.after_ += right.plot(before, after, ".", color=AFTER, alpha=0.5)
        ends = np.array([np.nanmin([before, after]), np.nanmax([before, after])])
        self.lines_ += right.plot(ends, ends, color="black", linewidth=0.8, linestyle="--")
        right.set(xlabel=f"{name} by {baseline_text(self.rule)}", ylabel=f"{name} of the tuned rule")

    @classmethod
    def from_top_k(cls, rule: TopK, *, axes: Any = None, kind: str | None = None, cmap: Any = "Blues") -> Self:
        """Draw a rule that is already tuned."""
        return cls(rule, ClassChanges.of(rule)).plot(axes, kind=kind, cmap=cmap)

    @classmethod
    def from_predictions(
        cls,
        Y_true: Any,
        Y_score: Any,
        *,
        k: int = 1,
        axes: Any = None,
        kind: str | None = None,
        cmap: Any = "Blues",
        **asked: Any,
    ) -> Self:
        """Tune a rule on labels and scores, and draw it.

        Parameters
        ----------
        Y_true, Y_score, k
            As in `tune_top_k`.
        axes, kind, cmap
            As in `plot`.
        **asked
            What else `tune_top_k` takes, such as `metric`, `costs` and `stable`.
        """
        from surecut.tuning.top_k import tune_top_k

        rule = tune_top_k(Y_true, Y_score, k=k, **asked)
        if isinstance(rule, dict):
            raise ValueError(f"a display shows one rule: name one metric, got {', '.join(rule)}")
        return cls.from_top_k(rule, axes=axes, kind=kind, cmap=cmap)


def _tick(label: Any) -> str:
    """A label beside an axis."""
    text = in_brief(label_text(label))
    return text if len(text) <= 18 else f"{text[:17]}…"
