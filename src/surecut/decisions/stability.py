"""How settled thresholds are: where tuning puts them on resamples of the validation rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut.decisions import saving

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVELS = (5, 25, 50, 75, 95)
"""The quantiles of resampled thresholds that are kept, in percent."""

QUANTILES = tuple(f"resampled_{level}" for level in LEVELS)
"""Their columns in a table."""


@dataclass(frozen=True)
class Stability:
    """How settled a threshold is: where tuning puts it on resamples of the validation rows.

    Attributes
    ----------
    resamples
        The number of resamples.
    quantiles
        The 5, 25, 50, 75 and 95 % quantiles of the resamples' best thresholds, ascending; they may be infinite.
    near_optimal
        (lower, upper]: every threshold in it loses at most `tolerance` on the validation rows.
    tolerance
        How much that is, in units of the metric.
    best_value
        The most that any threshold is worth on the validation rows.
    best_threshold
        That threshold, the exact cut.

    Examples
    --------
    >>> stability = Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.795, 0.3391)
    >>> stability.spread
    (0.31, 0.41)
    """

    resamples: int
    quantiles: tuple[float, ...]
    near_optimal: tuple[float, float]
    tolerance: float
    best_value: float
    best_threshold: float

    def __post_init__(self) -> None:
        if len(self.quantiles) != len(LEVELS):
            raise ValueError(
                f"expected {len(LEVELS)} quantiles of resampled thresholds, those at {', '.join(map(str, LEVELS))} %, "
                f"got {len(self.quantiles)}"
            )

    @property
    def spread(self) -> tuple[float, float]:
        """The ends of the range that holds 90 % of the resampled thresholds."""
        return self.quantiles[0], self.quantiles[-1]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; infinities are text."""
        number = saving.number_to_json
        return {
            "resamples": self.resamples,
            "quantiles": [number(one) for one in self.quantiles],
            "near_optimal": [number(end) for end in self.near_optimal],
            "tolerance": number(self.tolerance),
            "best_value": number(self.best_value),
            "best_threshold": number(self.best_threshold),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Stability:
        """Read what `to_dict` wrote; anything else is a `ValueError` that says why."""
        document = saving.object_from_json(document)
        return cls(
            resamples=saving.count_from_json(document["resamples"]),
            quantiles=tuple(map(saving.number_from_json, saving.list_from_json(document["quantiles"]))),
            near_optimal=saving.interval_from_json(document["near_optimal"]),
            tolerance=saving.number_from_json(document["tolerance"]),
            best_value=saving.number_from_json(document["best_value"]),
            best_threshold=saving.number_from_json(document["best_threshold"]),
        )


@dataclass(frozen=True, eq=False)
class LabelStability:
    """How settled the thresholds of many labels are: a `Stability` for each, as arrays with a row per label.

    Attributes
    ----------
    resamples
        The number of resamples; 0 for a label that took a shared threshold and has none of its own: the rest of its
        row is NaN. Where all labels have one threshold, all rows are the same.
    quantiles
        Shape (labels, 5), the 5, 25, 50, 75 and 95 % quantiles of the resamples' best thresholds.
    near_optimal
        Shape (labels, 2): (lower, upper], every threshold in it loses at most `tolerance` on the validation rows.
    tolerance, best_value, best_threshold
        Those of each label, as in `Stability`.

    Examples
    --------
    >>> one = Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.795, 0.3391)
    >>> stability = LabelStability.joined([one, None])
    >>> stability.resamples, stability[0] == one, stability[1]
    (array([200,   0]), True, None)
    """

    resamples: NDArray[np.int64]
    quantiles: NDArray[np.float64]
    near_optimal: NDArray[np.float64]
    tolerance: NDArray[np.float64]
    best_value: NDArray[np.float64]
    best_threshold: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[Stability | None]) -> LabelStability:
        """Put the records of single labels together, None where a label has none."""
        nothing = Stability(0, (np.nan,) * len(LEVELS), (np.nan, np.nan), np.nan, np.nan, np.nan)
        rows = [nothing if part is None else part for part in parts]
        return cls(
            resamples=np.array([row.resamples for row in rows], dtype=np.int64),
            quantiles=np.array([row.quantiles for row in rows], dtype=float).reshape(-1, len(LEVELS)),
            near_optimal=np.array([row.near_optimal for row in rows], dtype=float).reshape(-1, 2),
            tolerance=np.array([row.tolerance for row in rows], dtype=float),
            best_value=np.array([row.best_value for row in rows], dtype=float),
            best_threshold=np.array([row.best_threshold for row in rows], dtype=float),
        )

    def __len__(self) -> int:
        """The number of labels."""
        return len(self.resamples)

    def __getitem__(self, i: int) -> Stability | None:
        """The record of the label at a position; None where it has none."""
        if not self.resamples[i]:
            return None
        lower, upper = self.near_optimal[i].tolist()
        return Stability(
            resamples=int(self.resamples[i]),
            quantiles=tuple(self.quantiles[i].tolist()),
            near_optimal=(lower, upper),
            tolerance=float(self.tolerance[i]),
            best_value=float(self.best_value[i]),
            best_threshold=float(self.best_threshold[i]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelStability):
            return NotImplemented
        names = [field.name for field in fields(self)]
        return all(np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in names)

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def columns(self) -> dict[str, list[Any]]:
        """The columns of a table with a row per label."""
        return {
            "resamples": self.resamples.tolist(),
            **{name: self.quantiles[:, i].tolist() for i, name in enumerate(QUANTILES)},
            "near_optimal_lower": self.near_optimal[:, 0].tolist(),
            "near_optimal_upper": self.near_optimal[:, 1].tolist(),
            "tolerance": self.tolerance.tolist(),
            "best_value": self.best_value.tolist(),
            "best_threshold": self.best_threshold.tolist(),
        }

    @classmethod
    def from_columns(cls, column: Callable[[str], Sequence[Any]]) -> LabelStability:
        """Read the columns of a table, each by its name; what is no number is a `ValueError`."""

        def numbers(*names: str) -> NDArray[np.float64]:
            read = [[saving.number_from_json(value) for value in column(name)] for name in names]
            return np.array(read, dtype=float).T

        return cls(
            resamples=np.array([saving.count_from_json(value) for value in column("resamples")], dtype=np.int64),
            quantiles=numbers(*QUANTILES),
            near_optimal=numbers("near_optimal_lower", "near_optimal_upper"),
            tolerance=numbers("tolerance")[:, 0],
            best_value=numbers("best_value")[:, 0],
            best_threshold=numbers("best_threshold")[:, 0],
        )
