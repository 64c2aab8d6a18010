"""The public edge: arrays as people have them in, checked arrays out.

Every message says what was expected, what came, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._missing import Missing
from surecut._warnings import AbsentPositiveWarning, warn_caller

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

EXACT_DIGITS = 15
"""Decimal numbers of so many digits have a float64 of their own."""

LARGEST_EXACT_INTEGER = 2**53
"""Integers beyond this have no float64 of their own, so that two scores could silently become one."""


@dataclass(frozen=True)
class Labels:
    """A column of labels as numbers, two of which mean something.

    `codes` is the user's own array where it is numeric, so that ten million labels are not copied; `positive` and
    `negative` are the two values in it. Rows with any other value are an error, found by `check` or, where a
    kernel reads all rows anyway, by the kernel. `absent` says so where `pos_label` is none of the labels.
    """

    codes: NDArray[Any]
    positive: Any
    negative: Any
    name: str = "y_true"
    absent: str = ""

    def __len__(self) -> int:
        return len(self.codes)

    def is_positive(self) -> NDArray[np.bool_]:
        return np.asarray(self.codes == self.positive)

    def check(self) -> None:
        """Raise unless every row holds one of the two values."""
        strangers = (self.codes != self.positive) & (self.codes != self.negative)
        if strangers.any():
            raise _not_binary(self.codes, self.name)


def as_labels(y: ArrayLike, *, pos_label: Any = None, name: str = "y_true", check: bool = True) -> Labels:
    """Labels out of anything array-like; which one is positive is known or must be said.

    Where `pos_label` does not occur, and one other label does, all rows are negative; several others are an error.
    """
    values = _as_column(y, name)
    if values.dtype == object and len(values) and all(isinstance(v, (bool, np.bool_)) for v in values):
        values = values.astype(bool)
    if values.dtype == bool and pos_label is None:
        return Labels(values.view(np.uint8), np.uint8(1), np.uint8(0), name)
    if values.dtype.kind not in "iuf":
        return _encoded_labels(values, pos_label, name)
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if values.dtype.itemsize > 8:
        values = values.astype(np.float64)
    positive = values.dtype.type(1 if pos_label is None else _numeric(pos_label, values, name))
    other = _first_other(values, positive)
    if other is None:
        labels = Labels(values, positive, positive, name)
    else:
        labels = Labels(values, positive, other, name)
        if pos_label is None and other not in (0, -1):
            labels.check()  # three classes or a missing label is the better message, where it is true
            raise ValueError(
                f"{name} holds the label {other!s}, and it is not known which label is positive: expected {{0, 1}}, "
                "{-1, 1} or booleans, or pass pos_label="
            )
        if pos_label is not None and not (values == positive).any():
            if ((values != other) & (values == values)).any():
                raise _absent(pos_label, np.unique(values).tolist(), name)
            labels.check()
            return replace(labels, absent=absence(pos_label, other, name))
    if check:
        labels.check()
    return labels


def warn_of_absence(absent: str) -> None:
    """Warn where no row is positive, and `absent` says why: the positive label may be misspelt."""
    if absent:
        warn_caller(f"{absent}: no row is positive, unless pos_label is misspelt", AbsentPositiveWarning)


def as_predictions(y_pred: ArrayLike, *, pos_label: Any = None, name: str = "y_pred") -> NDArray[np.bool_]:
    """Which rows are predicted positive: booleans, as a cut makes them, or labels like those of the truth."""
    values = _as_column(y_pred, name)
    if values.dtype == bool:
        return values
    if pos_label is None:
        return as_labels(values, name=name).is_positive()
    predicted = np.asarray(values == pos_label)
    others = _distinct(values[~predicted], name)
    if len(others) > 1 or any(map(_is_missing, others)):
        raise _too_many_classes(_distinct(values, name), name)
    return predicted


def as_scores(y_score: ArrayLike, name: str = "y_score") -> NDArray[Any]:
    """A column of scores in a dtype of their own (float16/32/64 or an integer); NaN is looked for elsewhere."""
    if hasattr(y_score, "tocsr"):
        raise ValueError(f"{name} is a sparse matrix: tune_thresholds takes one score per row and label")
    scores = _as_column(y_score, name, two_dimensional=_two_dimensional_scores)
    if scores.dtype == bool:
        return scores.view(np.uint8)
    if scores.dtype.kind in "iu":
        if scores.dtype.itemsize == 8:
            _require_exact_integers([int(scores.min()), int(scores.max())], name)
        return scores
    if scores.dtype.kind == "O":
        _require_exact_integers([value for value in scores.tolist() if isinstance(value, int)], name)
    if scores.dtype.kind == "f" and scores.dtype.itemsize <= 8:
        return scores
    try:
        if scores.dtype.kind in "mM":
            raise TypeError("turn dates and durations into numbers, of seconds, say")
        if scores.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        with np.errstate(over="ignore"):  # a long double beyond a double is told below
            doubles = scores.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = "text" if scores.dtype.kind in "US" else f"values of type {scores.dtype}"
        raise TypeError(f"{name} must be numbers, got {kind} ({error})") from None
    if scores.dtype.kind == "O":
        inexact = [value for value in scores.tolist() if not fits_double(value)]
    elif scores.dtype.kind == "f":
        inexact = scores[(doubles.astype(scores.dtype) != scores) & ~np.isnan(scores)].tolist()
    else:
        inexact = []
    if inexact:
        raise not_doubles(name, inexact[0], len(inexact))
    return doubles


def not_doubles(name: str, such: Any, count: int) -> ValueError:
    """What is wrong with scores that have more digits than a double."""
    return ValueError(
        f"{name} holds {count} numbers, such as {such!s}, that are no doubles, so that different scores could become "
        f"one: round them, to {EXACT_DIGITS} digits at most, or rank the scores"
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


def as_doubles(scores: NDArray[Any], room: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Scores as float64, each with its own value; +inf becomes the largest float of the scores' own dtype.

    A threshold of +inf means *predict nothing*, so that +inf scores are accepted by a finite threshold, and whoever
    compares in float32 must be able to hold it. What has to be converted is written to `room`, if there is any.
    """
    if scores.dtype == np.float64:
        return np.ascontiguousarray(scores)
    doubles = np.empty(scores.shape) if room is None else room
    np.copyto(doubles, scores)
    if scores.dtype in (np.float16, np.float32) and scores.max(initial=-np.inf) == np.inf:
        np.minimum(doubles, np.finfo(scores.dtype).max, out=doubles)
    return doubles


def require_no_nan(scores: NDArray[Any], name: str = "y_score", way_out: str = "drop or fill these rows") -> None:
    """Raise on NaN, saying how many and where the first one stands."""
    if scores.dtype.kind != "f":
        return
    missing = np.isnan(scores)
    if missing.any():
        raise ValueError(
            f"{name} holds NaN in {int(missing.sum())} of {len(scores)} rows, the first at position "
            f"{int(missing.argmax())}: a row without a score cannot be ranked; {way_out}"
        )


def check_missing(missing: str, *allowed: str) -> None:
    """Raise unless `missing` is one of the ways in which rows without a value can be treated."""
    if missing not in allowed:
        raise ValueError(f"missing must be {' or '.join(map(_in_double_quotes, allowed))}, got {missing!r}")


def _in_double_quotes(text: str) -> str:
    return f'"{text}"'


def without_missing(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, may_be_all: bool = False
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """The rows that have a label, a score and a weight; a `MissingRowsWarning` says how many have not.

    That no row is left is an error, unless they `may_be_all` that lack a value.
    """
    columns = [_as_column(y_true, "y_true"), _as_column(y_score, "y_score", _two_dimensional_scores)]
    columns += [] if sample_weight is None else [_as_column(sample_weight, "sample_weight")]
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
    if values.dtype.kind == "O":
        return np.array([_is_missing(value) for value in values.tolist()], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def as_weights(sample_weight: ArrayLike, rows: int, name: str = "sample_weight") -> NDArray[np.float64]:
    """Finite, non-negative weights, at least one of them positive, one per row."""
    weights = _as_column(sample_weight, name)
    try:
        weights = weights.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers ({error})") from None
    if len(weights) != rows:
        raise ValueError(f"{name} must hold one weight per row: {rows} rows, {len(weights)} weights")
    valid = (weights >= 0) & (weights < np.inf)
    if not valid.all():
        position = int(valid.argmin())
        raise ValueError(
            f"{name} must be finite and not negative, got {weights[position]!s} at position {position} "
            f"({int(rows - valid.sum())} such rows)"
        )
    if not weights.any():
        raise ValueError(f"{name} is zero in all {rows} rows: nothing is left to tune on")
    with np.errstate(over="ignore"):
        if np.isinf(weights.sum()):
            raise ValueError(
                f"{name} adds up to more than a float holds, got weights up to {weights.max():g}: scale it"
            )
    return weights


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


def plain_label(label: Any) -> Any:
    """A class label as a plain Python value; None for 1 and True, which are positive without being named."""
    plain = plain_value(label)
    return None if isinstance(plain, (bool, int, float)) and plain == 1 else plain


def require_same_length(**columns: Any) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"the columns must have one length: {listed} rows")


def _as_column(values: ArrayLike, name: str, two_dimensional: Any = None) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise ValueError(f"{name} is a masked array with {np.ma.count_masked(values)} masked values: drop these rows")  # type: ignore[no-untyped-call]
    if type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "to_numpy"):
        column = _from_pandas(values)
    else:
        try:
            column = np.asarray(values)
        except ValueError as error:
            raise ValueError(f"{name} must be one column of values, got a ragged sequence ({error})") from None
    if column.ndim == 0:
        raise ValueError(f"{name} must be one column of values, got a single {type(values).__name__}")
    if column.ndim > 1:
        message = two_dimensional(column, name) if two_dimensional else None
        raise ValueError(message or f"{name} must be one-dimensional, got an array of shape {column.shape}")
    if len(column) == 0:
        raise ValueError(f"{name} is empty: at least one row is needed")
    return column if column.dtype.isnative else column.astype(column.dtype.newbyteorder("="))


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


def _numeric(pos_label: Any, values: NDArray[Any], name: str) -> Any:
    if isinstance(pos_label, (bool, int, float, np.number, np.bool_)):
        try:
            if values.dtype.type(pos_label) == pos_label:
                return pos_label
        except (OverflowError, ValueError):
            pass  # a number that this dtype cannot hold
    raise _absent(pos_label, np.unique(values[:1000]).tolist(), name)


def _first_other(values: NDArray[Any], positive: Any) -> Any:
    """The first value that is not the positive one; looked for in pieces, since it usually stands near the top."""
    size = 1024
    start = 0
    while start < len(values):
        piece = values[start : start + size]
        different = piece != positive
        if different.any():
            return piece[different.argmax()]
        start, size = start + size, size * 4
    return None


def _encoded_labels(values: NDArray[Any], pos_label: Any, name: str) -> Labels:
    """Labels that are text, objects or booleans with an explicit positive: two codes in one byte."""
    if values.dtype.kind not in "bUSOT":
        raise TypeError(f"{name} must be numbers, booleans or text, got values of type {values.dtype}")
    if values.dtype.kind == "O":
        missing = missing_values(values)
        if missing.any():
            raise ValueError(
                f"{name} holds {int(missing.sum())} missing labels, the first at position {int(missing.argmax())}"
            )
    found = _distinct(values, name)
    if len(found) > 2:
        raise _too_many_classes(found, name)
    if pos_label is None:
        if values.dtype.kind == "O" and all(isinstance(v, (int, float, np.number)) for v in found):
            return as_labels(values.astype(np.float64), name=name)
        raise _unknown_positive(found, name)
    if pos_label not in found:
        if len(found) > 1 or not _is_of_kind(pos_label, found[0]):
            raise _absent(pos_label, found, name)
        no_row = np.zeros(len(values), dtype=np.uint8)
        return Labels(no_row, np.uint8(1), np.uint8(0), name, absence(pos_label, found[0], name))
    codes = np.asarray(values == pos_label).astype(np.uint8)
    return Labels(codes, np.uint8(1), np.uint8(0), name)


def _is_of_kind(pos_label: Any, found: Any) -> bool:
    """Whether a label could stand where another was found."""
    numbers = (bool, int, float, np.number, np.bool_)
    both_numbers = isinstance(pos_label, numbers) and isinstance(found, numbers)
    return both_numbers or isinstance(pos_label, type(found))


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, or pandas' NA, which refuses to be compared."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True


def _distinct(values: NDArray[Any], name: str) -> list[Any]:
    try:
        return list(np.unique(values).tolist())
    except TypeError:
        kinds = sorted({type(v).__name__ for v in values.tolist()})
        raise TypeError(f"{name} mixes labels of the types {_listed(kinds)}: make them of one type") from None


def _unknown_positive(found: list[Any], name: str) -> ValueError:
    if len(found) == 1:
        return ValueError(
            f"{name} holds the label {found[0]!r} only: say with pos_label= which label is positive, even if no row "
            "has it"
        )
    return ValueError(f"{name} holds the labels {_listed(found)}: say which one is positive with pos_label=")


def absence(pos_label: Any, found: Any, name: str) -> str:
    """What to say where no row has the positive label, and all have another."""
    found = found.item() if isinstance(found, np.generic) else found
    return f"pos_label={pos_label!r} is none of the labels in {name}, which are all {found!r}"


def _absent(pos_label: Any, found: list[Any], name: str) -> ValueError:
    return ValueError(f"pos_label={pos_label!r} is none of the labels in {name}, which are {_listed(found)}")


def _not_binary(codes: NDArray[Any], name: str) -> ValueError:
    if codes.dtype.kind == "f" and np.isnan(codes).any():
        missing = np.isnan(codes)
        return ValueError(
            f"{name} holds {int(missing.sum())} missing labels, the first at position {int(missing.argmax())}"
        )
    found = np.unique(codes).tolist()
    if len(found) == 2:
        return _unknown_positive(found, name)
    return _too_many_classes(found, name)


def _too_many_classes(found: list[Any], name: str) -> ValueError:
    return ValueError(
        f"{name} must hold two classes, found {len(found)}: {_listed(found)}. For more classes tune each against the "
        "rest: OneVsRestClassifier(PlugInClassifier(estimator)), or tune_threshold(y == c, scores[:, c]) for class c"
    )


def _listed(values: list[Any], most: int = 5) -> str:
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, …"


def _require_exact_integers(values: list[int], name: str) -> None:
    largest = max(map(abs, values), default=0)
    if largest > LARGEST_EXACT_INTEGER:
        raise ValueError(
            f"{name} holds the integer {largest}, beyond 2**53, where float64 cannot tell neighbours apart: rescale or "
            "rank the scores"
        )
