"""Which of a file's labels is the positive one: the rule of all labels, and words that say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

from surecut._labels import Classes, LabelRule, plain_label, wrong_type
from surecut.sources.column_types import BITS

POSITIVE_WORDS = ("true", "t", "yes", "y", "positive", "pos")
NEGATIVE_WORDS = ("false", "f", "no", "n", "negative", "neg")
WORDS = dict.fromkeys(POSITIVE_WORDS, 1) | dict.fromkeys(NEGATIVE_WORDS, 0)
"""Words in columns of text, and the numbers that they stand for."""

MORE_CLASSES = "Is it the score? For more classes make one column per class, 1 where the row is of this class"

LINES = (
    "Is it the score, or the class? In a long table the label says whether the line's class is the true one: 1 in that "
    "line, 0 in the row's other lines"
)


class TableError(ValueError):
    """A file, or a column of it, is not what was asked for; the message says what to change."""


def classes_of(
    labels: Mapping[str, Any], pos_label: str | None, column: str, more_classes: str = MORE_CLASSES
) -> Classes:
    """Which labels of a column are positive and negative: the one that was named, or the one that says so.

    `labels` are values by their text. In a column of text, words stand for numbers, unless two stand for the same.
    `more_classes` says what to do with more than two.

    >>> classes_of({"no": "no", "yes": "yes"}, None, "y")
    Classes(positive='yes', negative='no', absent='')
    >>> classes_of({"0": 0, "1": 1}, "no", "y")
    Classes(positive=0, negative=1, absent='')
    """
    named = None if pos_label is None else _meant(labels, pos_label.strip())
    rule = LabelRule(named, f"column {column!r}", "--pos-label", "the positive label ", more_classes)
    words = {_meaning(label): label for label in labels.values() if isinstance(label, str)}
    try:
        if named is None and len(words) == len(labels) and rule.is_known(*words):
            positive, negative, _ = rule.classes(words)
            return Classes(words.get(positive, "1"), words.get(negative))
        return rule.classes(labels.values())
    except (TypeError, ValueError) as error:
        raise TableError(str(error)) from None


def label_value(text: str, kind: str, column: str) -> Any:
    """A label as a value of its column's type, as DuckDB calls it."""
    if kind == "BOOLEAN":
        return text == "true"
    if kind in BITS:
        return int(text)
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return float(text)
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        raise TableError(str(wrong_type(f"column {column!r}", "dates or times")))
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
        raise TableError(str(wrong_type(f"column {column!r}", f"values of type {kind}")))
    return text


def as_label(label: Any) -> Any:
    """The positive label as a cut keeps it; 1 and true need no name, even as text."""
    return None if _is_same_number(label, 1) or str(label).lower() == "true" else plain_label(label)


def _meant(labels: Mapping[str, Any], asked: str) -> Any:
    """The label that a text names: literally, as a number, but for case, or as a word of the same meaning.

    If none of these is there, it is the text itself, as a number or a boolean where labels are.
    """
    ways: tuple[Callable[[str], bool], ...] = (
        lambda text: text == asked or _is_same_number(text, asked),
        lambda text: text.lower() == asked.lower(),
        lambda text: _is_same_word(text, asked),
    )
    for is_meant in ways:
        for text, label in labels.items():
            if is_meant(text):
                return label
    if any(isinstance(label, str) for label in labels.values()):
        return asked
    if asked.lower() in WORDS:
        return bool(WORDS[asked.lower()])
    for number in (int, float):
        with suppress(ValueError):
            return number(asked)
    return asked


def _meaning(text: str) -> int | None:
    """The number that a label stands for, if it is one of those that say which label is positive: 1.0 is 1."""
    number = next((number for number in (1, 0, -1) if _is_same_number(text, number)), None)
    return WORDS.get(text.lower(), number)


def _is_same_word(first: str, second: str) -> bool:
    """Whether both mean positive, or both negative; one of them is a word, since 0 and −1 are different labels."""
    meanings = _meaning(first), _meaning(second)
    if None in meanings or not {first.lower(), second.lower()} & WORDS.keys():
        return False
    return (meanings[0] == 1) == (meanings[1] == 1)


def _is_same_number(first: Any, second: Any) -> bool:
    try:
        return Decimal(first) == Decimal(second)
    except ArithmeticError:
        return False
