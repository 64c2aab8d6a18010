"""What a label is: the values that a column of labels may hold, and which of them is positive.

`LabelRule` decides, from the distinct labels alone. Whoever reads labels (arrays here; Arrow batches, engines and files
elsewhere) asks it what to look for, encodes rows as positive or not, and hands it the distinct labels that it has met.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._inputs import DROP_OR_FILL, as_column, in_brief, is_missing, missing_values, plain_value
from surecut._plurals import counted
from surecut._warnings import AbsentPositiveWarning, warn_caller

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NUMBERS = (Real, Decimal, np.bool_)
"""Types of labels that are numbers; booleans are the numbers 0 and 1."""

SELF_EXPLANATORY = ({0, 1}, {-1, 1})
"""Labels that say which of them is positive; booleans equal the first pair."""

MORE_CLASSES = (
    "For more classes tune one rule of all: tune_top_k(y, scores, k=1) or PlugInClassifier(estimator); for one class c "
    "against the others tune_threshold(y == c, scores[:, c])"
)

LISTED = 1000
"""So many distinct labels are looked at to say what is wrong with them."""

POSITIVE, NEGATIVE, INVALID = np.uint8(1), np.uint8(0), np.uint8(2)
"""The codes of labels that are not numbers."""


class LabelKind(Enum):
    """What the labels of a column are; labels of different kinds are never equal."""

    NUMBER = "numbers"
    TEXT = "text"
    OTHER = "objects"


class Classes(NamedTuple):
    """The two labels of a column; `negative` is None where all rows are positive.

    `absent` says so where the positive label was named, and all rows have the other one.
    """

    positive: Any
    negative: Any
    absent: str = ""


@dataclass(frozen=True)
class LabelRule:
    """Which label is positive: `pos_label`, or without it 1 of {0, 1}, {−1, 1} and booleans.

    Numbers are compared by value, whatever type holds them: 1, 1.0, True and Decimal(1) are one label. `name`, `option`
    and `named` are what messages call the column, the parameter that names the positive label, and this label.

    >>> LabelRule().classes([-1, 1])
    Classes(positive=1, negative=-1, absent='')
    >>> LabelRule("spam", "y").classes(["ham"]).absent
    "pos_label='spam' is not among the labels in y, which are all 'ham'"
    >>> LabelRule(name="y").classes([1, 2])
    Traceback (most recent call last):
    ValueError: y holds the labels 1, 2: say which one is positive with pos_label=
    """

    pos_label: Any = None
    name: str = "y_true"
    option: str = "pos_label="
    named: str = "pos_label="
    more_classes: str = MORE_CLASSES

    def positive(self, kind: LabelKind) -> Any:
        """The label to look for in a column of a kind; None where no label of this kind is positive."""
        if self.pos_label is None:
            return 1 if kind is LabelKind.NUMBER else None
        label = plain_label_value(self.pos_label)
        is_number, is_text = isinstance(label, NUMBERS), isinstance(label, str)
        if is_missing(label) or is_number != (kind is LabelKind.NUMBER) or is_text != (kind is LabelKind.TEXT):
            return None
        return int(label) if isinstance(label, bool) else label

    def is_known(self, *labels: Any) -> bool:
        """Whether the positive one of these labels is known: it is named, or they say it."""
        zero_one, minus_one = SELF_EXPLANATORY
        return self.pos_label is not None or zero_one.issuperset(labels) or minus_one.issuperset(labels)

    def classes(self, found: Iterable[Any]) -> Classes:
        """Decide, from the distinct labels that there are, which one is positive, or raise. None of them is missing."""
        labels = _distinct(found)
        kind = kind_of(labels, self.name)
        if len(labels) > 2:
            number = str(len(labels)) if len(labels) < LISTED else f"{LISTED} or more"
            raise ValueError(
                f"{self.name} must hold two classes, found {number}: {listed(labels)}. {self.more_classes}"
            )
        if not self.is_known(*labels):
            raise self._unknown_positive(labels)
        positive = self.positive(kind)
        if self.pos_label is None or positive in labels:
            return Classes(positive, next((label for label in labels if label != positive), None))
        absent = f"{self.named}{in_brief(repr(self.pos_label))} is not among the labels in {self.name}, which are"
        if len(labels) > 1 or positive is None:
            raise ValueError(f"{absent} {listed(labels)}")
        return Classes(positive, labels[0], f"{absent} all {listed(labels)}")

    def _unknown_positive(self, labels: list[Any]) -> ValueError:
        if len(labels) == 1:
            return ValueError(
                f"{self.name} holds the label {listed(labels)} only: say with {self.option} which label is "
                "positive, even if no row has it"
            )
        return ValueError(
            f"{self.name} holds the labels {listed(labels)}: say which one is positive with {self.option}"
        )


USUAL = LabelRule()


@dataclass(frozen=True)
class Labels:
    """A column of labels as numbers, two of which mean something.

    `codes` is the user's own array where it is numeric, so that ten million labels are not copied; `positive` and
    `negative` are the two values in it. Rows with any other value are an error, found by `check` or, where a
    kernel reads all rows anyway, by the kernel. `absent` says so where `pos_label` is not among the labels.
    """

    codes: NDArray[Any]
    positive: Any
    negative: Any
    rule: LabelRule = field(default_factory=LabelRule)
    absent: str = ""

    def __len__(self) -> int:
        return len(self.codes)

    def is_positive(self) -> NDArray[np.bool_]:
        return np.asarray(self.codes == self.positive)

    def check(self) -> None:
        """Raise unless every row holds one of the two values."""
        valid = np.count_nonzero(self.codes == self.positive)
        if self.negative != self.positive:
            valid += np.count_nonzero(self.codes == self.negative)
        if valid < self.codes.size:
            self.classes()

    def classes(self) -> Classes:
        """What the rule says of all labels in the column."""
        _require_labels(self.codes, self.rule.name)
        return self.rule.classes(distinct_numbers(self.codes))


def as_labels(y: ArrayLike, *, pos_label: Any = None, name: str = "y_true", check: bool = True) -> Labels:
    """Labels out of anything array-like.

    With `check=False`, a third label or a missing one may be left for `Labels.check` to find.
    """
    rule = USUAL if pos_label is None and name == USUAL.name else LabelRule(pos_label, name)
    values = as_column(y, name)
    kind = values.dtype.kind
    if kind in "mM":
        raise wrong_type(name, "dates or times")
    if kind not in "biufUSOT":
        raise wrong_type(name, f"values of type {values.dtype}")
    if kind in "USOT":
        found = list(dict.fromkeys(values.tolist()))
        if any(map(is_missing, found)):
            _require_labels(values, name)
        if kind_of(found, name) is not LabelKind.NUMBER:
            classes = rule.classes(found)
            return Labels(
                np.asarray(values == classes.positive).astype(np.uint8), POSITIVE, NEGATIVE, rule, classes.absent
            )
        values = _numbers(values.tolist())
    if values.dtype == bool and pos_label is None:
        return Labels(values.view(np.uint8), POSITIVE, NEGATIVE, rule)
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        values = values.astype(np.float32 if values.dtype.itemsize < 4 else np.float64)
    return _numeric_labels(values, rule, check)


def warn_of_absence(absent: str) -> None:
    """Warn where no row is positive, and `absent` says why: the positive label may be misspelt."""
    if absent:
        warn_caller(f"{absent}: no row is positive, unless pos_label is misspelt", AbsentPositiveWarning)


def as_predictions(y_pred: ArrayLike, *, pos_label: Any = None, name: str = "y_pred") -> NDArray[np.bool_]:
    """Which rows are predicted positive: booleans, as a cut makes them, or labels like those of the truth."""
    values = as_column(y_pred, name)
    return values if values.dtype == bool else as_labels(values, pos_label=pos_label, name=name).is_positive()


def plain_label_value(label: Any) -> Any:
    """A label as a plain Python value: decimals and fractions are the nearest floats, float32 is as it is written."""
    if label is None:
        return None
    if isinstance(label, (np.float16, np.float32)):
        return as_written(np.array([label], dtype=np.float32))[0]
    plain = plain_value(label)
    return float(plain) if isinstance(plain, NUMBERS) and not isinstance(plain, (int, float)) else plain


def plain_label(label: Any) -> Any:
    """A class label as decisions keep it: a plain Python value; None for 1 and True, which need not be named."""
    if label is None:
        return None
    plain = plain_label_value(label)
    return None if isinstance(plain, NUMBERS) and plain == 1 else plain


def kind_of(found: Iterable[Any], name: str) -> LabelKind:
    """The kind of some labels; labels of several kinds, and dates, are an error."""
    types = {type(label) for label in found}
    if all(issubclass(one, NUMBERS) for one in types):
        return LabelKind.NUMBER
    if all(issubclass(one, str) for one in types):
        return LabelKind.TEXT
    if len(types) > 1:
        kinds = sorted(one.__name__ for one in types)
        raise TypeError(f"{name} mixes labels of the types {listed(kinds)}: make them of one type")
    if issubclass(types.pop(), (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)):
        raise wrong_type(name, "dates or times")
    return LabelKind.OTHER


def wrong_type(name: str, found: str) -> TypeError:
    """What to say of a column whose values cannot be labels."""
    return TypeError(f"{name} must be numbers, booleans or text, got {found}")


def stored(number: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a dtype holds it; None where it does not.

    >>> stored(1, np.dtype(np.uint8)), stored(-1, np.dtype(np.uint8)), stored(1.5, np.dtype(np.int64))
    (np.uint8(1), None, None)
    """
    if number == 1 and dtype.kind in "iufb":  # the usual positive label, which all of them hold
        return dtype.type(1)
    try:
        value = dtype.type(number)
        return value if value == number else None
    except (OverflowError, ValueError, TypeError):
        return None


def distinct_numbers(values: NDArray[Any]) -> list[Any]:
    """The distinct values of a numeric array, ascending; of float32 as they are written, 0.1 for 0.1."""
    if (values == values[0]).all():
        values = values[:1]
    return as_written(np.unique(values))


def as_written(values: NDArray[Any]) -> list[Any]:
    """Values as plain Python ones; those of float32 as they are written, 0.1 for 0.1."""
    return [float(str(value)) for value in values] if values.dtype == np.float32 else list(values.tolist())


def listed(values: list[Any], most: int = 5) -> str:
    """Values for a message, not more than a few."""
    shown = ", ".join(in_brief(repr(value)) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, …"


def _numeric_labels(values: NDArray[Any], rule: LabelRule, check: bool) -> Labels:
    """Labels that are numbers or booleans, as they are."""
    codes = values.view(np.uint8) if values.dtype == bool else values
    positive = stored(rule.positive(LabelKind.NUMBER), codes.dtype)
    if positive is None:  # no row has it
        absent = Labels(values, None, None, rule).classes().absent
        return Labels(np.zeros(len(values), dtype=np.uint8), POSITIVE, NEGATIVE, rule, absent)
    other = _first_other(codes, positive)
    labels = Labels(codes, positive, positive if other is None else other, rule)
    if other is not None and not (
        rule.is_known(positive, other) and (rule.pos_label is None or labels.is_positive().any())
    ):
        return replace(labels, absent=replace(labels, codes=values).classes().absent)
    if check:
        labels.check()
    return labels


def _first_other(values: NDArray[Any], positive: Any) -> Any:
    """The first value that is not the positive one; looked for in pieces, since it usually stands near the top."""
    for value in values[:4]:  # of a few, one usually is: quicker than arrays
        if value != positive:
            return value
    size = 1024
    start = 0
    while start < len(values):
        piece = values[start : start + size]
        different = piece != positive
        if different.any():
            return piece[different.argmax()]
        start, size = start + size, size * 4
    return None


def _numbers(values: list[Any]) -> NDArray[Any]:
    """Numbers of any type as an array of one."""
    array = np.array([plain_label_value(value) for value in values])
    return array.astype(np.float64) if array.dtype == object else array


def _distinct(found: Iterable[Any]) -> list[Any]:
    """Each label once, as a plain value, ascending where they have an order."""
    labels = list(dict.fromkeys(map(plain_label_value, found)))
    try:
        return sorted(labels)
    except TypeError:
        return labels


def _require_labels(values: NDArray[Any], name: str) -> None:
    """Raise where labels are missing, saying how many and where the first one stands."""
    missing = missing_values(values)
    if missing.any():
        raise ValueError(
            f"{name} holds {counted(int(missing.sum()), 'missing label')}, the first at position "
            f"{int(missing.argmax())}: {DROP_OR_FILL}"
        )


def label_parts(labels: Sequence[Any], columns: int, whose: str = "the cut") -> list[tuple[Any, ...]]:
    """Each label, or group, of a decision as the values of so many columns.

    >>> label_parts(["a", "b"], 1), label_parts([("a", 1)], 2)
    ([('a',), ('b',)], [('a', 1)])
    """
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    if any(len(label) != columns for label in parts):
        raise ValueError(f"labels of {whose}, such as {labels[0]!r}, do not come from {counted(columns, 'column')}")
    return [tuple(map(plain_value, label)) for label in parts]


class ClassCodes(NamedTuple):
    """A column of class labels: the position of each row's class, and the classes."""

    codes: NDArray[np.int64]
    classes: tuple[Any, ...]


def class_codes(
    y: ArrayLike,
    columns: int,
    classes: Iterable[Any] | None,
    name: str = "Y_true",
    unnamed: str = "which classes= does not name",
) -> ClassCodes:
    """Class labels of rows as positions among the classes, which belong to so many columns of scores.

    Without `classes` they are the distinct labels, sorted. `unnamed` says of other labels what they are.

    >>> class_codes(["b", "a", "b"], 2, None)
    ClassCodes(codes=array([1, 0, 1]), classes=('a', 'b'))
    """
    values = as_column(y, name)
    if values.dtype.kind not in "biufUSOT":
        raise wrong_type(name, "dates or times" if values.dtype.kind in "mM" else f"values of type {values.dtype}")
    _require_labels(values, name)
    found, codes = np.unique(np.asarray(values.tolist() if values.dtype.kind in "OT" else values), return_inverse=True)
    labels = _distinct(found.tolist())
    kind_of(labels, name)
    if isinstance(classes, (set, frozenset)):
        raise ValueError("classes= is a set, which has no order: pass a list, in the order of the columns")
    known = labels if classes is None else [plain_label_value(one) for one in classes]
    if len(set(known)) < len(known):
        raise ValueError(f"classes= names a class twice: {listed(known)}")
    if len(known) != columns:
        raise ValueError(
            f"Y_score has {counted(columns, 'column')}, and {name} holds {len(labels)} classes: {listed(labels)}; say "
            "with classes= which class each column is of"
            if classes is None
            else f"Y_score has {counted(columns, 'column')}, and classes= names {len(known)} classes"
        )
    position = {label: i for i, label in enumerate(known)}
    if lacking := [label for label in labels if label not in position]:
        raise ValueError(f"{name} holds {listed(lacking)}, {unnamed}: {listed(known)}")
    place = np.array([position[label] for label in labels], dtype=np.int64)
    return ClassCodes(place[codes.reshape(-1)], tuple(known))
