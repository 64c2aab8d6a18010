"""Which of a file's labels is the positive one."""

from __future__ import annotations

from typing import Any

POSITIVE_WORDS = ("1", "true", "t", "yes", "y", "positive", "pos")
NEGATIVE_WORDS = ("0", "-1", "false", "f", "no", "n", "negative", "neg")


class TableError(ValueError):
    """A file, or a column of it, is not what was asked for; the message says what to change."""


def positive_of(found: list[str], pos_label: str | None, column: str) -> str:
    """Which of the labels is positive: the one that was named, or the one that says so.

    If no row has the label that was named, and all have another one, they are all negative.
    """
    if pos_label is not None:
        for label in found:
            if label == pos_label.strip() or _same_number(label, pos_label):
                return label
        for label in found:
            if label.lower() == pos_label.strip().lower():
                return label
        for words in (POSITIVE_WORDS, NEGATIVE_WORDS):  # DuckDB reads yes and no as true and false
            if pos_label.strip().lower() in words:
                for label in found:
                    if label.lower() in words:
                        return label
        if len(found) == 1:
            return pos_label.strip()
        raise TableError(
            f"the positive label {pos_label!r} is none of those in column {column!r}, which are {some(found)}: is it "
            "misspelt? --pos-label names the positive one"
        )
    positives = [label for label in found if _word(label) in POSITIVE_WORDS]
    others = [label for label in found if _word(label) not in POSITIVE_WORDS]
    if len(positives) == 1 and all(_word(label) in NEGATIVE_WORDS for label in others):
        return positives[0]
    if not positives and all(_word(label) in NEGATIVE_WORDS for label in others) and len(found) == 1:
        return "1"  # every row is negative: the metric says what it thinks of that
    if len(found) == 1:
        raise TableError(
            f"column {column!r} holds the label {found[0]!r} only: say with --pos-label which label is positive, even "
            "if no row has it"
        )
    raise TableError(f"column {column!r} holds the labels {some(found)}: say which one is positive with --pos-label")


def _word(label: str) -> str:
    """A label as the words above have it: 1.0 is 1."""
    lowered = label.lower()
    return next((word for word in ("1", "0", "-1") if _same_number(lowered, word)), lowered)


def _same_number(first: str, second: str) -> bool:
    try:
        return float(first) == float(second)
    except ValueError:
        return False


def as_label(text: str, kind: str) -> Any:
    """The positive label as a cut keeps it: a number where labels are numbers; 1 and true need no name."""
    if _same_number(text, "1") or text.lower() == "true":
        return None
    if not _same_number(text, text):
        return text
    if "INT" in kind:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return float(text) if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL") else text


def some(values: list[str], most: int = 5) -> str:
    """Values for a message, not more than a few."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, …"
