"""Counts in words: 1 row, 2 rows."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Write so many of something.

    >>> counted(1, "row"), counted(12345, "row"), counted(0, "missing label")
    ('1 row', '12,345 rows', '0 missing labels')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def all_of(number: int, noun: str) -> str:
    """Write all of something.

    >>> all_of(1, "row"), all_of(2, "row")
    ('the only row', 'all 2 rows')
    """
    return f"the only {noun}" if number == 1 else f"all {counted(number, noun)}"
