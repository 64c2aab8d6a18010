"""What a decision was tuned on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surecut.overlap import RowSample


@dataclass(frozen=True)
class Sample:
    """What a decision remembers of its validation rows.

    Attributes
    ----------
    rows, weighted
        How many they were, and whether they had weights.
    fingerprint
        A name for them that does not depend on their order; empty where an engine counted them.
    out_of_fold
        Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing.
    pos_label
        The label that counts as positive; None where it is 1 or True itself.
    seen
        Some of the rows, to recognise them by.
    """

    rows: int = 0
    weighted: bool = False
    fingerprint: str = ""
    out_of_fold: bool = False
    pos_label: Any = None
    seen: tuple[RowSample, ...] = field(default=(), compare=False, repr=False)


def fingerprint(rows: int, checksum: int) -> str:
    """A name for a sample that does not depend on the order of its rows."""
    return f"{rows}-{checksum:016x}"
