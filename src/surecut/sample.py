"""What a decision was tuned on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._labels import plain_label
from surecut.overlap import RowSample

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """The validation rows of a decision.

    Attributes
    ----------
    rows
        Their number.
    weighted
        Whether they had weights.
    fingerprint
        A name for them that does not depend on their order; empty where an engine counted them.
    out_of_fold
        Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing.
    pos_label
        The label of the positive class; None where it is 1 or True.
    seen
        Some of the validation rows and, from a classifier, of the rows that trained its model: what `certify`
        recognises them by. Not compared: equal samples may keep different rows.

    Examples
    --------
    >>> Sample(rows=4, pos_label=1) == Sample(rows=4)
    True
    """

    rows: int = 0
    weighted: bool = False
    fingerprint: str = ""
    out_of_fold: bool = False
    pos_label: Any = None
    seen: tuple[RowSample, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos_label", plain_label(self.pos_label))


def checksum_of(fingerprint: str) -> int:
    """The checksum that a fingerprint holds; 0 where rows have none."""
    return int(fingerprint.rpartition("-")[2] or "0", 16)


def fingerprint(rows: int, checksum: int) -> str:
    """A name for rows that does not depend on their order."""
    return f"{rows}-{checksum:016x}"


def fingerprint_of_labels(rows: int, checksums: NDArray[np.uint64]) -> str:
    """A name for rows of many labels, from the checksum of each: it depends on the labels' order, not on the rows'."""
    odd = 2 * np.arange(len(checksums), dtype=np.uint64) + np.uint64(1)
    return fingerprint(rows, int((checksums * odd).sum()))
