"""What weights mean: how often a row is there, or how much it matters; and the errors where that is not known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import LARGEST_EXACT_INTEGER, as_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from surecut.core.tally import ScoreTally

WEIGHTS = ("counts", "importance")
"""What weights may mean: how often a row is there, or how much it matters."""


def frequencies(tally: ScoreTally, what: str, weights: str | None = None) -> ScoreTally:
    """The tally with weights that count rows as numbers of rows; other weights are refused.

    Whole numbers are no sign of counts: costs in whole euros are none. So `weights` has to say it, unless all are 1;
    a tally has no rows of weight 0.
    """
    if tally.weight is tally.rows:
        return tally
    sums, squares = tally.weight, tally.squares
    if np.array_equal(sums, tally.rows) and np.array_equal(squares, tally.rows):  # then all weights are 1
        return replace(tally, weight=tally.rows, squares=tally.rows)
    require_counts(weights, what)
    whole = all(np.array_equal(one, np.round(one)) for one in (sums, squares))
    # Of whole numbers the sum of squares is at least the sum, and both are odd or both even.
    if not whole or (squares < sums).any() or ((squares - sums) % 2).any():
        raise not_whole()
    require_countable(float(sums.sum()))
    counts = sums.astype(np.int64)
    return replace(tally, weight=counts, rows=counts, squares=counts)


def whole_counts(weight: NDArray[Any]) -> NDArray[np.int64]:
    """Sums of weights that count rows as numbers of rows."""
    if not np.array_equal(weight, np.round(weight)):
        raise not_whole()
    require_countable(float(weight.sum()))
    return weight.astype(np.int64)


def require_counts(weights: str | None, what: str) -> None:
    """Raise unless weights are said to be numbers of rows."""
    check_weights(weights)
    if weights == "importance":
        raise ValueError(
            f"{what} counts rows, and weights='importance' says that these weights are not numbers of rows: nothing is "
            "known of how large a weight can be. Leave the weights out, or use certify(method='bootstrap'), which "
            "resamples weighted rows"
        )
    if weights is None:
        raise ValueError(
            f"{what} counts rows, and it is not said what their weights mean: pass weights='counts' if a weight of 2 "
            "means the row twice; otherwise leave them out, or use certify(method='bootstrap'), which resamples "
            "weighted rows"
        )


def check_weights(weights: str | None) -> None:
    """Raise where the meaning of weights is none that we know."""
    if weights is not None and not isinstance(weights, str):
        raise TypeError(
            f"weights must be {' or '.join(map(repr, WEIGHTS))}, which says what weights mean, got "
            f"{type(weights).__name__}: the weights themselves are sample_weight="
        )
    if weights is not None and weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(map(repr, WEIGHTS))}, or None, got {weights!r}")


def require_both(weights: str | None, has_weights: bool, name: str = "sample_weight") -> None:
    """Raise where it is said what weights mean, and there are none; `name` is the option that holds them."""
    check_weights(weights)
    if weights is not None and not has_weights:
        raise ValueError(f"weights= says what {name}= means: give both, or leave it out")


def require_whole(sample_weight: NDArray[np.float64], weights: str | None) -> None:
    """Raise where weights are said to count rows, and are no whole numbers."""
    check_weights(weights)
    if weights == "counts" and not np.array_equal(sample_weight, np.round(sample_weight)):
        raise not_whole(float(sample_weight[sample_weight != np.round(sample_weight)][0]))
    if weights == "counts":
        require_countable(float(sample_weight.sum()))


def require_countable(total: float) -> None:
    """Raise where so many rows cannot be counted one by one."""
    if total > LARGEST_EXACT_INTEGER:
        raise ValueError(
            f"weights='counts' says how often each row is there, and the weights add up to {total:.4g} rows, more than "
            "2**53, beyond which numbers of rows are not exact: are they numbers of rows?"
        )


def not_whole(example: float | None = None) -> ValueError:
    """The error for counts that are none."""
    such = "" if example is None else f", such as {example:g}"
    return ValueError(
        f"weights='counts' says how often each row is there, and these weights are not numbers of rows{such}: if they "
        "say how much a row matters, pass weights='importance' and method='bootstrap'"
    )


def without_ones(sample_weight: ArrayLike | None, rows: int) -> NDArray[np.float64] | None:
    """The weights of so many rows, checked, or None where they are all 1 and say nothing."""
    if sample_weight is None:
        return None
    weights = as_weights(sample_weight, rows)
    return None if (weights == 1).all() else weights
