"""Saved decisions: versioned documents with a checksum, as JSON or Parquet, and the values that they hold."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from surecut._files import write_whole
from surecut._inputs import plain_value
from surecut._version import __version__
from surecut.confusion import Confusion
from surecut.constraints import RATES, Constraint, Rate
from surecut.label_objectives import MULTICLASS, MulticlassMetric
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
from surecut.overlap import samples_from_json
from surecut.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARQUET = ".parquet"

CELLS = ("tp", "fp", "fn", "tn")

TEXTS = ("label", "shared", "checksum")
"""The columns of a table that do not hold numbers."""

NESTING = 8
"""How deep tuples may be nested in a label."""

LONGEST = 300
"""So many characters of an error are shown: it may quote what a file holds."""

NOT_SIGNED = frozenset({"checksum", "certificate"})
"""What the checksum of a document does not cover: itself, and the certificate that the commands print beside a cut."""


class Savable(Protocol):
    """A decision that can be saved."""

    def _fields(self) -> dict[str, Any]:
        """Its parts as plain JSON values."""

    def _columns(self) -> dict[str, list[Any]] | None:
        """The columns of its table; None where it has none."""

    def _check(self) -> None:
        """Raise a `ValueError` where its parts contradict each other."""


Decision = TypeVar("Decision", bound=Savable)


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


CUT = Schema("surecut/cut", 6, "cut", "a single cut", "Cut")
MULTILABEL_CUT = Schema(
    "surecut/multilabel-cut", 6, "multilabel cut", "the cuts of many labels", "MultilabelCut", table="per_label"
)
BANDS = Schema("surecut/bands", 1, "bands file", "the thresholds between zones of one score", "Bands")
GROUPED_BANDS = Schema("surecut/grouped-bands", 1, "file of grouped bands", "the bands of groups", "GroupedBands")
TOP_K = Schema("surecut/top-k", 1, "top-k file", "a rule that predicts k labels a row", "TopK", table="per_label")
SCHEMAS = {schema.name: schema for schema in (CUT, MULTILABEL_CUT, BANDS, GROUPED_BANDS, TOP_K)}


class Saved:
    """A decision that is saved as a document of its schema."""

    schema: ClassVar[Schema]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all; as Parquet if it has many labels and the path ends in ``.parquet``.

        A file has a checksum of what it holds. A decision whose parts contradict each other, such as a threshold
        outside of its interval, is a `ValueError`.
        """
        self._check()
        save(path, self.schema, self._fields(), self._columns())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; anything else is a `ValueError` that says why, a file that was edited too."""
        return load(path, cls.schema, cls._from_fields)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; floats are written to the last bit, infinities as text."""
        return to_document(self.schema, self._fields(), self._columns())

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Read what `to_dict` wrote; anything else is a `ValueError` that says why."""
        return from_document(document, cls.schema, cls._from_fields)

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        raise NotImplementedError

    def _fields(self) -> dict[str, Any]:
        raise NotImplementedError

    def _columns(self) -> dict[str, list[Any]] | None:
        return None

    def _check(self) -> None:
        raise NotImplementedError


class SavedCutError(ValueError):
    """A file, or a document, is not a decision that this version of surecut saved."""


class OtherVersionError(SavedCutError):
    """A saved decision has another schema version."""


# Documents


def to_document(
    schema: Schema, fields: Mapping[str, Any], columns: Mapping[str, Sequence[Any]] | None = None
) -> dict[str, Any]:
    """Make plain JSON values of a decision's fields and of the columns of its table, one object per row."""
    document = _head(schema, fields, columns)
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


def load(path: str | os.PathLike[str], schema: Schema, make: Callable[[Any], Decision]) -> Decision:
    """Read a decision that `save` wrote; anything else is a `SavedCutError` that says why."""
    path = Path(path)
    content = path.read_bytes()
    if not content.strip():
        raise SavedCutError(f"{path} is not a saved {schema.kind}: it is empty")
    parse = _parse_parquet if path.suffix == PARQUET else _parse_json
    return _read(lambda: parse(content), schema, make, str(path))


def from_document(document: Any, schema: Schema, make: Callable[[Any], Decision]) -> Decision:
    """Read what `to_document` wrote; anything else is a `SavedCutError` that says why."""
    return _read(lambda: document, schema, make, "the document")


def _read(parse: Callable[[], Any], schema: Schema, make: Callable[[Any], Decision], name: str) -> Decision:
    """The decision in a document, whose checksum is verified; `name` is what messages call the document."""
    try:
        document = parse()
        _check_schema(document, schema, name)
        decision = make(document)
        if document["checksum"] != _checksum(schema, document, decision._columns()):
            raise ValueError(
                "its checksum does not match its content, so that it was changed or damaged after it was saved: tune "
                "and save it again"
            )
        decision._check()
        decision._fields()  # what is read can be saved again
    except OtherVersionError:
        raise
    except KeyError as error:
        raise SavedCutError(f"{name} is not a saved {schema.kind}: {error} is missing") from None
    except RecursionError:
        raise SavedCutError(f"{name} is not a saved {schema.kind}: its values are nested too deep") from None
    # Values of any type may stand anywhere, and numbers of any size: what they raise is not listed for each of them
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise SavedCutError(f"{name} is not a saved {schema.kind}: {str(error)[:LONGEST]}") from None
    return decision


def _check_schema(document: Any, schema: Schema, name: str) -> None:
    """Raise unless a document has this schema, in the version that is read."""
    found = document.get("schema") if isinstance(document, dict) else None
    if found != schema.name:
        other = SCHEMAS.get(found) if isinstance(found, str) else None
        hint = "" if other is None else f", and it holds {other.content}: {other.reader}.load reads it"
        raise ValueError(f'expected an object with "schema": "{schema.name}"{hint}')
    if document.get("schema_version") != schema.version:
        raise OtherVersionError(
            f"{name} was written by another version of surecut (schema {document.get('schema_version')!r:.20}, this "
            f"one reads {schema.version}): tune and save it again"
        )


def is_saved_as(path: Path, schema: Schema) -> bool:
    """Whether a file looks like a document of a schema; it is not read as one."""
    if path.suffix == PARQUET:
        return bool(schema.table) and path.is_file() and schema.name.encode() in _parquet_metadata(path)
    return path.is_file() and f'"{schema.name}"' in path.read_text("utf-8", errors="replace")


def column(table: Any, name: str) -> list[Any]:
    """One column of a table that was read: columns from Parquet, a list of objects from JSON."""
    if isinstance(table, Mapping):
        return list(table[name])
    return [object_from_json(row)[name] for row in list_from_json(table)]


def _head(schema: Schema, fields: Mapping[str, Any], columns: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
    head = {"schema": schema.name, "schema_version": schema.version, "surecut_version": __version__, **fields}
    return {**head, "checksum": _checksum(schema, head, columns)}


def _checksum(schema: Schema, document: Mapping[str, Any], columns: Mapping[str, Sequence[Any]] | None) -> str:
    """SHA-256 of a document's fields and of the columns of its table, whatever the spelling of numbers in a file."""
    head = {name: value for name, value in document.items() if name not in NOT_SIGNED and name != schema.table}
    digest = hashlib.sha256(_canonical(head))
    for name, values in (columns or {}).items():
        digest.update(name.encode())
        digest.update(_number_bytes(np.array(values)) if name not in TEXTS else _canonical(values))
    return digest.hexdigest()


def _canonical(value: Any) -> bytes:
    return json.dumps(_whole(value), sort_keys=True, separators=(",", ":")).encode()


def _whole(value: Any) -> Any:
    """A JSON value in which whole floats are integers: programs that copy JSON write 1 for 1.0."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number_bytes(array: NDArray[Any]) -> bytes:
    """The bytes of numbers: of integers where all of them are whole, else of doubles."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array)
        if not ((np.abs(array) < 2**53) & (array == np.floor(array))).all():
            return array.astype("<f8").tobytes()
    return array.astype("<i8").tobytes()


def _plain(value: Any) -> Any:
    return number_to_json(value) if isinstance(value, float) else value


def _parse_json(content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_constant)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"it is not JSON (it holds {name} as a number)")


def _to_parquet(schema: Schema, fields: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> bytes:
    pyarrow, parquet = _pyarrow()
    labels = [json.dumps(label, ensure_ascii=False) for label in columns["label"]]  # of different types
    table = pyarrow.table({**columns, "label": labels})
    buffer = io.BytesIO()
    head = json.dumps(_head(schema, fields, columns))
    parquet.write_table(table.replace_schema_metadata({schema.name: head}), buffer)
    return buffer.getvalue()


def _parquet_metadata(path: Path) -> Mapping[bytes, bytes]:
    """What a Parquet file says of itself; nothing where it is none."""
    pyarrow, parquet = _pyarrow()
    try:
        return parquet.read_schema(path).metadata or {}
    except (pyarrow.ArrowException, OSError, ValueError):
        return {}


def _parse_parquet(content: bytes) -> dict[str, Any]:
    pyarrow, parquet = _pyarrow()
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        metadata = file.schema_arrow.metadata or {}
        (schema,) = (schema for name, schema in SCHEMAS.items() if name.encode() in metadata)
        head = json.loads(metadata[schema.name.encode()], parse_constant=_no_constant)
        if file.metadata.num_rows > len(content):  # labels differ, so that each of them takes a byte and more
            raise ValueError
        columns = file.read().to_pydict()
        columns["label"] = [json.loads(label, parse_constant=_no_constant) for label in columns["label"]]
        return {**head, schema.table: columns}
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError):
        raise ValueError("it is not a Parquet file that surecut wrote") from None


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
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"expected a number, got {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"expected a number that fits a double, got {shown(value)}") from None


def finite_from_json(value: Any) -> float:
    """Read a finite number."""
    number = number_from_json(value)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {shown(value)}")
    return number


def optional_number(value: Any) -> float | None:
    """Read a number that may be null."""
    return None if value is None else number_from_json(value)


def share_from_json(value: Any) -> float:
    """Read a share: a prior, or a confidence."""
    number = number_from_json(value)
    if not 0 <= number <= 1:
        raise ValueError(f"expected a number between 0 and 1, got {shown(value)}")
    return number


def count_from_json(value: Any) -> int:
    """Read a number of rows."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"expected a number of rows, got {shown(value)}")
    return value


def flag_from_json(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def text_from_json(value: Any) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {shown(value)}")
    return value


def object_from_json(value: Any) -> dict[str, Any]:
    """Read an object."""
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {shown(value)}")
    return value


def list_from_json(value: Any) -> list[Any]:
    """Read a list."""
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {shown(value)}")
    return value


def shown(value: Any) -> str:
    """The beginning of a value, for messages."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, int) and not -(10**40) < value < 10**40:
        return "an integer of more than 40 digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def interval_from_json(value: Any) -> tuple[float, float]:
    """Read an interval."""
    if len(ends := list_from_json(value)) != 2:
        raise ValueError(f"expected the two ends of an interval, got {shown(value)}")
    return number_from_json(ends[0]), number_from_json(ends[1])


def confusion_from_json(cells: Any) -> Confusion:
    """Read a confusion matrix; integers stay integers."""
    cells = object_from_json(cells)
    confusion = Confusion(**{cell: cell_from_json(cells[cell], cell) for cell in CELLS})
    if not 0 < confusion.total < math.inf:
        raise ValueError("the sum of its confusion matrix must be positive and finite")
    return confusion


def confusions_to_columns(confusion: Confusion, prefix: str = "") -> dict[str, list[Any]]:
    """Write confusion matrices of labels as columns of a table; their names may begin with a prefix."""
    return {prefix + cell: np.asarray(getattr(confusion, cell)).tolist() for cell in CELLS}


def confusions_from_json(table: Any, prefix: str = "") -> Confusion:
    """Read the confusion matrices of a table's rows."""
    found = {}
    for cell in CELLS:
        values = [cell_from_json(value, cell) for value in column(table, prefix + cell)]
        found[cell] = np.array(values, dtype=np.float64 if any(isinstance(one, float) for one in values) else np.int64)
    return Confusion(**found)


def numbers_from_json(values: Any) -> NDArray[np.float64]:
    """Read a list of numbers, or a column of a table."""
    return np.array([number_from_json(one) for one in list_from_json(values)], dtype=float)


def matrix_from_json(rows: Any, read: Callable[[Any], Any], columns: int, message: str) -> NDArray[Any]:
    """Read a matrix, row by row; `message` says what is expected where a row has another length."""
    table = [[read(value) for value in list_from_json(row)] for row in list_from_json(rows)]
    if any(len(row) != columns for row in table):
        raise ValueError(message)
    is_float = any(isinstance(value, float) for row in table for value in row)
    return np.array(table, dtype=np.float64 if is_float else np.int64).reshape(-1, columns)


def sample_to_json(sample: Sample) -> dict[str, Any]:
    """Write what is known of the validation rows, but for their positive label."""
    return {
        "rows": sample.rows,
        "weighted": sample.weighted,
        "fingerprint": sample.fingerprint,
        "out_of_fold": sample.out_of_fold,
        "seen": [one.to_dict() for one in sample.seen],
    }


def sample_from_json(document: Any, pos_label: Any = None, labels: int = 1) -> Sample:
    """Read what `sample_to_json` wrote; `pos_label` is the positive label as it was saved."""
    document = object_from_json(document)
    return Sample(
        rows=count_from_json(document["rows"]),
        weighted=flag_from_json(document["weighted"]),
        fingerprint=text_from_json(document["fingerprint"]),
        out_of_fold=flag_from_json(document["out_of_fold"]),
        pos_label=label_from_json(pos_label),
        seen=samples_from_json(document["seen"], labels),
    )


def cell_from_json(value: Any, name: str = "a number of rows") -> float | int:
    """Read a count, or a sum of weights."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number, not negative, got {shown(value)}")
    if isinstance(value, int) and value >= 2**63:
        raise ValueError(f"{name} must fit 64 bits, got {shown(value)}")
    return value


def label_to_json(label: Any, nesting: int = NESTING) -> Any:
    """Write a label: tuples as lists, dates as text with their type."""
    label = plain_value(label)
    if isinstance(label, tuple) and nesting:
        return [label_to_json(part, nesting - 1) for part in label]
    if isinstance(label, float):
        return number_to_json(label) if math.isfinite(label) else {"float": str(label)}
    if isinstance(label, datetime.date):  # a datetime is one too
        return {"datetime" if isinstance(label, datetime.datetime) else "date": label.isoformat()}
    if label is None or isinstance(label, (str, bool, int)):
        return label
    raise TypeError(f"a label of type {type(label).__name__} cannot be saved: name labels by text, numbers or tuples")


def label_from_json(value: Any, nesting: int = NESTING) -> Any:
    """Read a label."""
    if isinstance(value, list) and nesting:
        return tuple(label_from_json(part, nesting - 1) for part in value)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        if kind in _TYPES and isinstance(text, str):
            return _TYPES[kind](text)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise ValueError(f"a label must be text, a number, a date, or a list of these, got {shown(value)}")


_TYPES: dict[str, Callable[[str], Any]] = {
    "float": number_from_json,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
}


def positive_to_json(pos_label: Any) -> Any:
    """Write the positive label, which is 1 where none was named."""
    return 1 if pos_label is None else label_to_json(pos_label)


def metric_to_dict(metric: Metric | MulticlassMetric, prior: float) -> dict[str, Any]:
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


def metric_from_dict(document: Any) -> Metric:
    """Read a metric: one of surecut's by its type, a custom one by its coefficients, or by its name alone.

    Coefficients that are functions of the prior, unless they are linear in it, are known at the saved prior only.
    """
    document = object_from_json(document)
    kind, name = text_from_json(document["type"]), text_from_json(document["name"])
    parameters = object_from_json(document["parameters"])
    ours = {type(make()).__name__: type(make()) for make in CATALOGUE.values()}
    ours |= {cls.__name__: cls for cls in WITH_PARAMETERS.values()}
    if cls := ours.get(kind):
        return cls(**{parameter: _exact(value) for parameter, value in parameters.items()})
    if kind == Rate.__name__ and name in RATES:
        return RATES[name]
    if kind == CellRatio.__name__:
        numerator, denominator = (
            tuple(map(_exact, list_from_json(parameters[side]))) for side in ("numerator", "denominator")
        )
        return CellRatio(numerator, denominator, name=name)  # type: ignore[arg-type]  # it counts the weights
    if kind == LinearFractional.__name__ and parameters:
        coefficients = {
            key: Affine(**{part: finite_from_json(value) for part, value in one.items()})
            if isinstance(one, dict)
            else _exact(one)
            for key, one in parameters.items()
        }
        return LinearFractional(**coefficients, name=name)
    if "coefficients" in document:
        known = object_from_json(document["coefficients"])
        prior = share_from_json(known["prior"])
        six = [finite_from_json(one) for side in ("a", "b") for one in list_from_json(known[side])]
        return LinearFractional(*(KnownAt(one, prior) for one in six), name=name)
    return UnknownMetric(name)


def label_metric_from_dict(document: Any) -> Metric | MulticlassMetric:
    """Read a metric of one label, or one of several classes."""
    document = object_from_json(document)
    ours = {type(make()).__name__: make for make in MULTICLASS.values()}
    make = ours.get(text_from_json(document["type"]))
    return metric_from_dict(document) if make is None else make()


def _exact(value: Any) -> float | int:
    """A finite number; integers stay integers."""
    finite_from_json(value)
    return value  # type: ignore[no-any-return]


def constraint_to_dict(constraint: Constraint, prior: float) -> dict[str, Any]:
    """Write a constraint, with its quantity's parameters and all digits of its level."""
    quantity = metric_to_dict(constraint.quantity, prior)
    return {"quantity": quantity, "sense": constraint.sense, "level": constraint.level}


def constraint_from_dict(document: Any) -> Constraint:
    """Read a constraint."""
    document = object_from_json(document)
    level, sense = finite_from_json(document["level"]), text_from_json(document["sense"])
    return Constraint(metric_from_dict(document["quantity"]), sense, level)


@dataclass(frozen=True)
class UnknownMetric(Metric):
    """A custom function, of which a saved decision knows the name only."""

    name: str

    def evaluate(self, confusion: Confusion) -> Any:
        raise ValueError(f"the saved decision was tuned for the function {self.name!r}, which a file cannot hold")
