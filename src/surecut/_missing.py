"""Rows that lack a value, and what happens to them."""

from __future__ import annotations

from typing import NamedTuple

from surecut._plurals import counted
from surecut._warnings import MissingRowsWarning, warn_caller


class Missing(NamedTuple):
    """How many rows lack a score, a label, a weight or a group key; each row is counted once."""

    score: int = 0
    label: int = 0
    weight: int = 0
    key: int = 0

    def plus(self, other: Missing) -> Missing:
        return Missing(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def settle(self, policy: str, rows: int, may_be_all: bool = False) -> None:
        """Raise, or with `missing="drop"` warn, where rows were left out. `rows` is the number of all rows.

        If all rows lack a value, it is an error, unless they `may_be_all` that is left out of more.
        """
        found = [f"{count:,} without a {part}" for part, count in self._asdict().items() if count]
        if not found:
            return
        listed = f"{sum(self):,} of {counted(rows, 'row')} are null or NaN ({', '.join(found)})"
        if policy == "error":
            raise ValueError(f'{listed}: fill these rows, or leave them out with missing="drop"')
        if sum(self) == rows and not may_be_all:
            raise ValueError(f"{listed}: nothing is left to tune on")
        if policy == "drop":
            warn_caller(f"dropped rows: {listed}", MissingRowsWarning)
