"""Saved decisions: versioned documents, as JSON or Parquet, and the values that they hold."""

from __future__ import annotations

import datetime
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from surecut._files import write_whole
from surecut._inputs import plain_value
from surecut._version import __version__
from surecut.confusion import Confusion
from surecut.constraints import RATES, Constraint, Rate, make_constraint
from surecut.metrics import (
    CATALOGUE,
    WITH_PARAMETERS,
    Affine,
    CellRatio,
    KnownAt,
    LinearFractional,
    LinearFractionalMetric,
    Metric,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Decision = TypeVar("Decision")

PARQUET = ".parquet"


class Schema(NamedTuple):
    """A kind of document.

    Attributes
    ----------
    name, version
        What a document says of itself. Only this version is read.
    kind, content
        The kind and what it holds, in messages.
    reader
        The class that reads it.
    table
        The part that is a table, which can be saved as Parquet; empty where there is none.
    """

    name: str
    version: int
    kind: str
    content: str
    reader: str
    table: str = ""


CUT = Schema("surecut/cut", 4, "cut", "a single cut", "Cut")
MULTILABEL_CUT = Schema(
    "surecut/multilabel-cut", 4, "multilabel cut", "the cuts of many labels", "MultilabelCut", table="per_label"
)
SCHEMAS = {schema.name: schema for schema in (CUT, MULTILABEL_CUT)}


class OtherVersionError(ValueError):
    """A saved decision has another schema version."""

    def __init__(self, found: Any, expected: int) -> None:
        super().__init__(
            f"was written by another version of surecut (schema {found}, this one reads {expected}): tune and save it "
            "again"
        )


# Documents


def to_document(
    schema: Schema, fields: Mapping[str, Any], columns: Mapping[str, Sequence[Any]] | None = None
) -> dict[str, Any]:
    """Make plain JSON values of a decision's fields and of the columns of its table, one object per row."""
    document = _head(schema, fields)
    if columns is not None:
        names = list(columns)
        document[schema.table] = [
            {name: _plain(value) for name, value in zip(names, row, strict=True)}
            for row in zip(*columns.values(), strict=True)
        ]
    return document


def save(
    path: str | os.PathLike[str],
    schema: Schema,
    fields: Mapping[str, Any],
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Write a decision, whole or not at all: as Parquet if the path ends in ``.parquet``, else as JSON."""
    path = Path(path)
    if path.suffix != PARQUET:
        document = to_document(schema, fields, columns)
        text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_whole(path, text.encode())
    elif columns is None:
        raise ValueError(f"cannot write {path}: a {schema.kind} is saved as JSON, not as Parquet; call the file .json")
    else:
        write_whole(path, _to_parquet(schema, fields, columns))


def load(path: str | os.PathLike[str], schema: Schema, from_dict: Callable[[Any], Decision]) -> Decision:
    """Read a decision that `save` wrote; anything else is a `ValueError` that says why."""
    path = Path(path)
    try:
        return from_dict(_read_parquet(path) if path.suffix == PARQUET else _read_json(path))
    except OtherVersionError as error:
        raise ValueError(f"{path} {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is not a {schema.kind}: {reason}") from None


def check(document: Any, schema: Schema) -> None:
    """Raise unless a document has this schema, in the version that is read."""
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema.name:
        other = SCHEMAS.get(found) if isinstance(found, str) else None
        hint = "" if other is None else f", and it holds {other.content}: {other.reader}.load reads it"
        raise ValueError(f'expected an object with "schema": "{schema.name}"{hint}')
    if document.get("schema_version") != schema.version:
        raise OtherVersionError(document.get("schema_version"), schema.version)


def is_saved_as(path: Path, schema: Schema) -> bool:
    """Whether a file looks like a document of a schema; it is not read as one."""
    if path.suffix == PARQUET:
        return bool(schema.table)
    return path.is_file() and f'"{schema.name}"' in path.read_text("utf-8", errors="replace")


def column(table: Any, name: str) -> list[Any]:
    """One column of a table that was read: columns from Parquet, a list of objects from JSON."""
    return list(table[name]) if isinstance(table, Mapping) else [row[name] for row in table]


def _head(schema: Schema, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"schema": schema.name, "schema_version": schema.version, "surecut_version": __version__, **fields}


def _plain(value: Any) -> Any:
    return number_to_json(value) if isinstance(value, float) else value


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from None


def _to_parquet(schema: Schema, fields: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> bytes:
    pyarrow, parquet = _pyarrow()
    labels = [json.dumps(label, ensure_ascii=False) for label in columns["label"]]  # of different types
    table = pyarrow.table({**columns, "label": labels})
    buffer = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({schema.name: json.dumps(_head(schema, fields))}), buffer)
    return buffer.getvalue()


def _read_parquet(path: Path) -> dict[str, Any]:
    pyarrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
        metadata = table.schema.metadata or {}
        (schema,) = (schema for name, schema in SCHEMAS.items() if name.encode() in metadata)
        head = json.loads(metadata[schema.name.encode()])
        columns = table.to_pydict()
        columns["label"] = [json.loads(label) for label in columns["label"]]
    except (pyarrow.ArrowInvalid, KeyError, ValueError):
        raise ValueError("it is not a Parquet file that surecut wrote") from None
    return {**head, schema.table: columns}


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'surecut[files]', or save as JSON") from None
    return pyarrow, pyarrow.parquet


# Values


def number_to_json(number: float) -> float | str:
    """Write a number; infinities and NaN as text, which JSON has no numbers for."""
    return number if math.isfinite(number) else str(number)


def number_from_json(value: Any) -> float:
    """Read a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


def optional_number(value: Any) -> float | None:
    """Read a number that may be null."""
    return None if value is None else number_from_json(value)


def confusion_from_json(cells: Any) -> Confusion:
    """Read a confusion matrix; integers stay integers."""
    return Confusion(**{cell: _cell(cells[cell], cell) for cell in ("tp", "fp", "fn", "tn")})


def confusions_from_json(table: Any) -> Confusion:
    """Read the confusion matrices of a table's rows."""
    return Confusion(**{cell: _cells(column(table, cell), cell) for cell in ("tp", "fp", "fn", "tn")})


def _cell(value: Any, name: str) -> float | int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(f"{name} must be a number, not negative, got {value!r}")
    return value


def _cells(values: list[Any], name: str) -> NDArray[Any]:
    cells = np.array(values)
    if cells.dtype.kind not in "iuf" or not (cells >= 0).all():
        raise ValueError(f"{name} must be numbers, not negative")
    return cells


def label_to_json(label: Any) -> Any:
    """Write a label: tuples as lists, dates as text with their type."""
    label = plain_value(label)
    if isinstance(label, tuple):
        return [label_to_json(part) for part in label]
    if isinstance(label, float):
        return number_to_json(label) if math.isfinite(label) else {"float": str(label)}
    if isinstance(label, datetime.date):  # a datetime is one too
        return {"datetime" if isinstance(label, datetime.datetime) else "date": label.isoformat()}
    if label is None or isinstance(label, (str, bool, int)):
        return label
    raise TypeError(f"a label of type {type(label).__name__} cannot be saved: name labels by text, numbers or tuples")


def label_from_json(value: Any) -> Any:
    """Read a label."""
    if isinstance(value, list):
        return tuple(label_from_json(part) for part in value)
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _TYPES[kind](text)
    return value


_TYPES: dict[str, Callable[[str], Any]] = {
    "float": float,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
}


def positive_to_json(pos_label: Any) -> Any:
    """Write the positive label, which is 1 where none was named."""
    return 1 if pos_label is None else label_to_json(pos_label)


def metric_to_dict(metric: Metric, prior: float) -> dict[str, Any]:
    """Write a metric: its type and parameters, and its coefficients at the prior, for readers other than surecut."""
    document: dict[str, Any] = {
        "name": metric.name,
        "type": type(metric).__name__,
        "parameters": metric.parameters(),
    }
    if isinstance(metric, LinearFractionalMetric):
        a, b = metric.coefficients(prior)
        document["coefficients"] = {"a": list(a), "b": list(b), "prior": prior}
    return document


def metric_from_dict(document: dict[str, Any]) -> Metric:
    """Read a metric: one of surecut's by its type, a custom one by its coefficients, or by its name alone.

    Coefficients that are functions of the prior, unless they are linear in it, are known at the saved prior only.
    """
    ours = {type(make()).__name__: type(make()) for make in CATALOGUE.values()}
    ours |= {cls.__name__: cls for cls in WITH_PARAMETERS.values()}
    if cls := ours.get(document["type"]):
        return cls(**document["parameters"])
    name, parameters = str(document["name"]), document["parameters"]
    if document["type"] == Rate.__name__ and name in RATES:
        return RATES[name]
    if document["type"] == CellRatio.__name__:
        return LinearFractional.from_cells(**parameters, name=name)
    if document["type"] == LinearFractional.__name__ and parameters:
        coefficients = {key: Affine(**one) if isinstance(one, dict) else one for key, one in parameters.items()}
        return LinearFractional(**coefficients, name=name)
    if "coefficients" in document:
        a, b, prior = (document["coefficients"][key] for key in ("a", "b", "prior"))
        return LinearFractional(*(KnownAt(one, prior) for one in (*a, *b)), name=name)
    return UnknownMetric(str(document["name"]))


def constraint_to_dict(constraint: Constraint, prior: float) -> dict[str, Any]:
    """Write a constraint, with its quantity's parameters and all digits of its level."""
    quantity = metric_to_dict(constraint.quantity, prior)
    return {"quantity": quantity, "sense": constraint.sense, "level": constraint.level}


def constraint_from_dict(document: dict[str, Any]) -> Constraint:
    """Read a constraint."""
    level, sense = number_from_json(document["level"]), str(document["sense"])
    return make_constraint(metric_from_dict(document["quantity"]), sense, level)


@dataclass(frozen=True)
class UnknownMetric(Metric):
    """A custom function, of which a saved decision knows the name only."""

    name: str

    def evaluate(self, confusion: Confusion) -> Any:
        raise ValueError(f"the saved cut was tuned for the function {self.name!r}, which a file cannot hold")
