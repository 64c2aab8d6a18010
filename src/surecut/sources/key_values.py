"""Labels of a cut as values of the column that they are looked up in, whatever type holds it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut._labels import NUMBERS


def as_key(label: Any, kind: Any) -> Any:
    """A label in a type of narwhals, exactly; None where a column of this type cannot hold it.

    >>> as_key("7", nw.Int8()), as_key(1.0, nw.Int8()), as_key(1.5, nw.Int8()), as_key(300, nw.Int8())
    (7, 1, None, None)
    >>> as_key(float(2**60), nw.Int64()) == 2**60
    True
    >>> as_key(0.1, nw.Float32()), as_key(2**53 + 1, nw.Float64()), as_key(7, nw.String())
    (0.10000000149011612, None, '7')
    """
    if isinstance(kind, nw.Enum):
        return str(label) if str(label) in kind.categories else None
    if kind in (nw.String, nw.Categorical):
        return str(label)
    if kind == nw.Boolean:
        words = {"true": True, "false": False}
        return words.get(label.lower()) if isinstance(label, str) else _among(label, (False, True))
    if kind.is_integer():
        return _as_integer(label, kind)
    if kind.is_float():
        return _as_float(label, np.float32 if kind == nw.Float32 else np.float64)
    if kind == nw.Binary:
        return label if isinstance(label, bytes) else None
    if kind == nw.Decimal:
        return _number(label)
    if kind == nw.Date:
        return _as_date(label)
    if kind == nw.Datetime:
        return _as_time(label)
    return label


def unique_keys(labels: Sequence[tuple[Any, ...]], kinds: Sequence[Any]) -> dict[int, tuple[Any, ...]]:
    """Positions of the labels that some types hold, and their values; labels that become one match no row."""
    found: dict[tuple[Any, ...], int | None] = {}
    for position, label in enumerate(labels):
        key = tuple(as_key(part, kind) for part, kind in zip(label, kinds, strict=True))
        if all(part is not None for part in key):
            found[key] = None if key in found else position
    return {position: key for key, position in found.items() if position is not None}


def _among(label: Any, values: tuple[Any, ...]) -> Any:
    return next((value for value in values if isinstance(label, NUMBERS) and label == value), None)


def _number(label: Any) -> Decimal | None:
    """A number, or the text of one, as a decimal, as it is written; None where it is neither, or not finite."""
    is_text = isinstance(label, str) and "_" not in label
    if not is_text and not isinstance(label, NUMBERS):
        return None
    try:
        number = Decimal(int(label)) if isinstance(label, (bool, np.bool_)) else Decimal(str(label))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _as_integer(label: Any, kind: Any) -> int | None:
    number = Decimal(label) if isinstance(label, float) and math.isfinite(label) else _number(label)
    if number is None or number.adjusted() > 40 or number != number.to_integral_value():
        return None
    bits = int(str(kind).lstrip("UInt"))
    low, high = (0, 2**bits) if kind.is_unsigned_integer() else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return int(number) if low <= number < high else None


def _as_float(label: Any, dtype: Any) -> float | None:
    if isinstance(label, float) and math.isinf(label):
        return label
    number = _number(label)
    if number is None:
        return None
    with np.errstate(over="ignore"):
        value = dtype(float(number))
    is_same = float(value) == label or Decimal(str(value)) == number  # as it is held, or as it is written
    return float(value) + 0.0 if is_same else None  # −0 is 0


def _as_date(label: Any) -> datetime.date | None:
    try:
        label = datetime.date.fromisoformat(label) if isinstance(label, str) else label
    except ValueError:
        return None
    if isinstance(label, datetime.datetime):
        return label.date() if label.time() == datetime.time() else None
    return label if isinstance(label, datetime.date) else None


def _as_time(label: Any) -> datetime.datetime | None:
    try:
        label = datetime.datetime.fromisoformat(label) if isinstance(label, str) else label
    except ValueError:
        return None
    if isinstance(label, datetime.date) and not isinstance(label, datetime.datetime):
        return datetime.datetime.combine(label, datetime.time())
    return label if isinstance(label, datetime.datetime) else None
