"""The public edge: arrays as people have them in, checked arrays out.

Every message says what was expected, what came, and what to do.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._missing import Missing
from surecut._plurals import all_of, counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

EXACT_DIGITS = 15
"""Decimal numbers of so many digits have a float64 of their own."""

SHOWN = 80
"""Characters of a value that a message shows."""

DROP_OR_FILL = 'drop these rows (functions that tune, tally or certify do so with missing="drop") or fill them'
"""What to do about missing values."""

LARGEST_EXACT_INTEGER = 2**53
"""Integers beyond this have no float64 of their own, so that two scores could silently become one."""


def as_scores(y_score: ArrayLike, name: str = "y_score", may_be_empty: bool = False) -> NDArray[Any]:
    """A column of scores in a dtype of their own (float16/32/64 or an integer); NaN is looked for elsewhere."""
    if hasattr(y_score, "tocsr"):
        raise ValueError(f"{name} is a sparse matrix: tune_thresholds takes one score per row and label")
    scores = as_column(y_score, name, two_dimensional=_two_dimensional_scores, may_be_empty=may_be_empty)
    kind = scores.dtype.kind
    if kind == "f" and scores.dtype.itemsize <= 8:
        return scores
    if len(scores) == 0:
        return np.empty(0)
    if kind == "b":
        return scores.view(np.uint8)
    if kind in "iu":
        if scores.dtype.itemsize == 8:
            _require_exact_integers([int(scores.min()), int(scores.max())], name)
        return scores
    if kind == "O":
        _require_exact_integers([value for value in scores.tolist() if isinstance(value, int)], name)
    try:
        if kind in "mM":
            raise TypeError("turn dates and durations into numbers, of seconds, say")
        if kind == "c":
            raise TypeError("complex numbers have no order")
        with np.errstate(over="ignore"):  # a long double beyond a double is told below
            doubles = scores.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        found = "text" if kind in "US" else f"values of type {scores.dtype}"
        raise TypeError(f"{name} must be numbers, got {found} ({error})") from None
    if kind == "O":
        inexact = [value for value in scores.tolist() if not fits_double(value)]
    elif kind == "f":
        inexact = scores[(doubles.astype(scores.dtype) != scores) & ~np.isnan(scores)].tolist()
    else:
        inexact = []
    if inexact:
        raise not_doubles(name, inexact[0], len(inexact))
    return doubles


def not_doubles(name: str, such: Any, count: int) -> ValueError:
    """What is wrong with scores that have more digits than a double."""
    return ValueError(
        f"{name} holds {counted(count, 'number')}, such as {such!s}, with more digits than a double, so that "
        f"different scores could become one: round them, to {EXACT_DIGITS} digits at most, or rank the scores"
    )


def fits_double(value: Any) -> bool:
    """Whether a number of Python's own has a double to itself: up to 15 decimal digits, or the text of a double."""
    if isinstance(value, Decimal):
        return (
            not value.is_finite()
            or len(value.normalize().as_tuple().digits) <= EXACT_DIGITS
            or Decimal(float(value)) == value
            or Decimal(repr(float(value))) == value
        )
    return not isinstance(value, Fraction) or Fraction(float(value)) == value


def as_doubles(scores: NDArray[Any], buffer: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Scores as float64, each with its own value; +inf becomes the largest float of the scores' own dtype.

    A threshold of +inf means *predict nothing*, so that +inf scores are accepted by a finite threshold, and whoever
    compares in float32 must be able to hold it. What has to be converted is written to `buffer`, if there is any.
    """
    if scores.dtype == np.float64:
        return np.ascontiguousarray(scores)
    doubles = np.empty(scores.shape) if buffer is None else buffer
    np.copyto(doubles, scores)
    if scores.dtype in (np.float16, np.float32) and scores.max(initial=-np.inf) == np.inf:
        np.minimum(doubles, highest_of(scores.dtype), out=doubles)
    return doubles


def highest_of(dtype: np.dtype[Any]) -> float:
    """What +inf becomes in `as_doubles`; float64 keeps it."""
    return float(np.finfo(dtype).max) if dtype in (np.float16, np.float32) else np.inf


def require_no_nan(scores: NDArray[Any], name: str = "y_score", way_out: str = DROP_OR_FILL) -> None:
    """Raise on NaN, saying how many and where the first one stands."""
    if scores.dtype.kind != "f":
        return
    missing = np.isnan(scores)
    if number := np.count_nonzero(missing):
        raise ValueError(
            f"{name} holds NaN in {number:,} of {counted(len(scores), 'row')}, the first at position "
            f"{int(missing.argmax())}: a row without a score cannot be ranked; {way_out}"
        )


def check_missing(missing: str, *allowed: str) -> None:
    """Raise unless `missing` is one of the ways in which rows without a value can be treated."""
    _require_among("missing", missing, allowed)


def check_unknown(unknown: str, *allowed: str) -> None:
    """Raise unless `unknown` is one of the ways in which labels can be treated that only the rows or the cut have."""
    _require_among("unknown", unknown, allowed)


def _require_among(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(_in_double_quotes, allowed))}, got {value!r}")


def _in_double_quotes(text: str) -> str:
    return f'"{text}"'


def without_missing(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, may_be_all: bool = False
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """The rows that have a label, a score and a weight; a `MissingRowsWarning` says how many have not.

    That no row is left is an error, unless they `may_be_all` that lack a value.
    """
    columns = [as_column(y_true, "y_true"), as_column(y_score, "y_score", _two_dimensional_scores)]
    columns += [] if sample_weight is None else [as_column(sample_weight, "sample_weight")]
    require_same_length(**dict(zip(("y_true", "y_score", "sample_weight"), columns, strict=False)))
    gone = np.zeros(len(columns[0]), dtype=bool)
    counted = {}
    for part, column in zip(("label", "score", "weight"), columns, strict=False):
        lacking = missing_values(column) & ~gone
        counted[part], gone = int(lacking.sum()), gone | lacking
    Missing(**counted).settle("drop", len(gone), may_be_all)
    kept = [column[~gone] if gone.any() else column for column in columns]
    return kept[0], kept[1], kept[2] if len(kept) > 2 else None


def missing_values(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are NaN, None, NaT or NA."""
    if values.dtype.kind in "OT":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def as_weights(sample_weight: ArrayLike, rows: int, name: str = "sample_weight") -> NDArray[np.float64]:
    """Finite, non-negative weights, at least one of them positive, one per row."""
    weights = as_column(sample_weight, name)
    try:
        if weights.dtype.kind in "mM":
            raise TypeError("got dates or durations")
        weights = weights.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers ({error})") from None
    if len(weights) != rows:
        raise ValueError(
            f"{name} must hold one weight per row: {counted(rows, 'row')}, {counted(len(weights), 'weight')}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        total = weights.sum()
    if total < np.inf and weights.min() >= 0:  # NaN is neither
        if total > 0:
            return weights
        raise ValueError(f"{name} is zero in {all_of(rows, 'row')}: nothing is left to tune on")
    if not (weights.min() >= 0 and weights.max() < np.inf):
        valid = (weights >= 0) & (weights < np.inf)
        position = int(valid.argmin())
        raise ValueError(
            f"{name} must be finite and not negative, got {weights[position]!s} at position {position} "
            f"({counted(int(rows - valid.sum()), 'such row')})"
        )
    raise ValueError(f"{name} adds up to more than a float holds, got weights up to {weights.max():g}: scale it")


def plain_number(values: Any) -> Any:
    """A Python float for a result without dimensions; arrays as they are."""
    return float(values) if np.ndim(values) == 0 else values


def plain_name(name: str) -> str:
    """A name as the catalogues spell it: lower case, with underscores."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def plain_value(value: Any) -> Any:
    """A NumPy scalar as a plain Python value; anything else as it is."""
    if isinstance(value, np.datetime64):  # of nanoseconds, item() makes an integer
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def require_same_length(**columns: Any) -> None:
    if len(set(map(len, columns.values()))) > 1:
        lengths = {name: len(column) for name, column in columns.items()}
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"the columns must have one length: {listed} rows")


def as_column(values: ArrayLike, name: str, two_dimensional: Any = None, may_be_empty: bool = False) -> NDArray[Any]:
    if type(values) is np.ndarray:
        column = values
    elif isinstance(values, list):  # often of one score: the tests below would take longer than to predict it
        column = _as_array(values, name)
    elif np.ma.is_masked(values):
        masked = np.ma.count_masked(values)  # type: ignore[no-untyped-call]
        raise ValueError(f"{name} is a masked array with {counted(masked, 'masked value')}: drop these rows")
    elif type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "to_numpy"):
        column = _from_pandas(values)
    else:
        column = _as_array(values, name)
    if column.ndim != 1:
        if column.ndim == 0:
            raise ValueError(f"{name} must be one column of values, got a single {type(values).__name__}")
        message = two_dimensional(column, name) if two_dimensional else None
        raise ValueError(message or f"{name} must be one-dimensional, got an array of shape {column.shape}")
    if len(column) == 0 and not may_be_empty:
        raise ValueError(f"{name} is empty: at least one row is needed")
    return column if column.dtype.isnative else column.astype(column.dtype.newbyteorder("="))


def _as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be one column of values, got a ragged sequence ({error})") from None


def _from_pandas(values: Any) -> NDArray[Any]:
    """pandas' nullable columns hold pd.NA, which no NumPy dtype but object takes; a number's NA reads NaN."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in "iuf" and getattr(values, "hasnans", False):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values.to_numpy())


def _two_dimensional_scores(scores: NDArray[Any], name: str) -> str:
    if scores.shape[1] == 2:
        return (
            f"{name} has shape {scores.shape}, the two columns of predict_proba: pass the positive class's column, "
            f"{name}[:, 1]"
        )
    if scores.shape[1] == 1:
        return f"{name} has shape {scores.shape}: pass the column itself, {name}[:, 0] or {name}.ravel()"
    return f"{name} has shape {scores.shape}: tune_thresholds takes one column of scores per label"


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, or pandas' NA, which refuses to be compared."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _require_exact_integers(values: list[int], name: str) -> None:
    largest = max(map(abs, values), default=0)
    if largest > LARGEST_EXACT_INTEGER:
        raise ValueError(
            f"{name} holds the integer {largest}, beyond 2**53, where float64 cannot tell neighbours apart: rescale or "
            "rank the scores"
        )


def in_brief(text: str) -> str:
    """A value of the user's for a message: text may be of any length.

    >>> in_brief("spam"), len(in_brief("s" * 10**6))
    ('spam', 81)
    """
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
