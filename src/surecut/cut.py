"""A tuned threshold with its value and where it came from."""

from __future__ import annotations

import datetime
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._inputs import as_scores, check_missing, require_no_nan
from surecut.confusion import Confusion
from surecut.constraints import RATES, Constraint, Rate, listed, make_constraint
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
from surecut.overlap import RowSample, samples_from_json

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SCHEMA = "surecut/cut"
SCHEMA_VERSION = 3


class OtherVersionError(ValueError):
    """A saved cut has another schema version."""

    def __init__(self, found: Any, expected: int) -> None:
        super().__init__(
            f"was written by another version of surecut (schema {found}, this one reads {expected}): tune and save it "
            "again"
        )


@dataclass(frozen=True)
class Cut:
    """A threshold, tuned.

    Attributes
    ----------
    threshold
        `score >= threshold` is predicted positive. +inf predicts nothing, even where a score is +inf.
    value
        The metric's value on the rows that tuned the cut (at `prior`, where that was given).
    metric
        What the cut is best for.
    confusion
        Counts, or weights, of the tuning rows at this cut.
    interval
        (lower, upper]: every threshold in it makes the same predictions on the tuning rows. `lower` is the highest
        score rejected, `upper` the lowest accepted.
    prior
        The share of positives at which the metric was evaluated: the tuning rows' own, unless `prior_given`.
    constraints
        What the cut had to meet.
    confidence
        The probability with which the constraints hold on new rows; None where they hold on the tuning rows only.
    rows, weighted, fingerprint
        The tuning rows: their number, whether they had weights, and a name for them that does not depend on order
        (empty where an engine counted them).
    out_of_fold
        Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing.
    shrinkage
        κ: how many positives a calibrated model of the scores was worth in the tuning.
    calibration
        That model: "sigmoid" or "beta", and whether the rows refuted it, so that it was corrected.
    pos_label
        The label that True stands for; None where it is 1 or True itself.
    seen
        Some of the validation rows and, from a classifier, of the rows that trained its model: what `certify`
        recognises them by. No part of what makes two cuts equal.
    """

    threshold: float
    value: float
    metric: Metric
    confusion: Confusion
    interval: tuple[float, float]
    prior: float
    prior_given: bool = False
    constraints: tuple[Constraint, ...] = ()
    confidence: float | None = None
    rows: int = 0
    weighted: bool = False
    fingerprint: str = ""
    out_of_fold: bool = False
    shrinkage: float = 0.0
    calibration: str = ""
    pos_label: Any = None
    seen: tuple[RowSample, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pos_label", plain_label(self.pos_label))

    @property
    def predicts_nothing(self) -> bool:
        return self.threshold == math.inf

    def predict(self, scores: ArrayLike, *, missing: str = "error") -> NDArray[np.bool_]:
        """Which scores are cut positive.

        A missing score (NaN, None, NA) is an error, or with ``missing="negative"`` not predicted positive.

        >>> from surecut import tune_threshold
        >>> cut = tune_threshold([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
        >>> cut.predict([0.3, 0.9])
        array([ True,  True])
        >>> cut.predict([0.3, float("nan")], missing="negative")
        array([ True, False])
        """
        check_missing(missing, "error", "negative")
        column = as_scores(scores, name="scores")
        if missing == "error":
            require_no_nan(column, name="scores", way_out='drop or fill these rows, or pass missing="negative"')
        if self.predicts_nothing:
            return np.zeros(len(column), dtype=bool)
        return np.asarray(column.astype(np.float64, copy=False) >= self.threshold)

    def positive_in(self, y_true: Any, pos_label: Any = None) -> Any:
        """Which label of new rows is positive: the one that is named, else the cut's own.

        Booleans say it themselves, whatever the labels were that tuned the cut.
        """
        is_boolean = str(getattr(y_true, "dtype", "")).lower().startswith("bool") or (
            isinstance(y_true, (list, tuple)) and all(isinstance(label, (bool, np.bool_)) for label in y_true)
        )
        return self.pos_label if pos_label is None and not is_boolean else pos_label

    def to_sql(self, column: str, dialect: str = "ansi") -> str:
        """The cut as one SQL expression: true where the row is predicted positive.

        `dialect` is one of ansi, duckdb, postgres, snowflake, spark, bigquery, mysql, sqlite. The score is compared
        as a double. It is false, never null, where the score is null or NaN, which most engines hold for the largest
        number.

        >>> from surecut import tune_threshold
        >>> tune_threshold([0, 1], [0.25, 0.75]).to_sql("score", "spark")
        '(`score` IS NOT NULL AND CAST(`score` AS DOUBLE) >= 5e-01 AND NOT isnan(CAST(`score` AS DOUBLE)))'
        """
        quote = _dialect(dialect).quote
        return self.to_sql_of(quote + column.replace(quote, quote * 2) + quote, dialect)

    def to_sql_of(self, expression: str, dialect: str = "ansi") -> str:
        """The same for a score that is an SQL expression rather than a column."""
        if self.predicts_nothing:
            return "FALSE"
        known = _dialect(dialect)
        score = f"CAST({expression} AS {known.double})"
        conditions = [f"{expression} IS NOT NULL"]
        if self.threshold > -math.inf:
            conditions.append(f"{score} >= {_scientific(self.threshold)}")
        if known.is_number:
            conditions.append(known.is_number.format(score=score))
        return f"({' AND '.join(conditions)})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cut as JSON: whole or not at all."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_whole(Path(path), text.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Cut:
        """Read a cut that `save` wrote; anything else is refused with the reason."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a cut: it is not JSON ({error})") from None
        try:
            return cls.from_dict(document)
        except OtherVersionError as error:
            raise ValueError(f"{path} {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{path} is not a cut: {reason}") from None

    def to_dict(self) -> dict[str, Any]:
        """The cut as plain JSON values; floats are written to the last bit, infinities as text."""
        from surecut import __version__

        confusion = self.confusion
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "surecut_version": __version__,
            "threshold": number_to_json(self.threshold),
            "pos_label": 1 if self.pos_label is None else label_to_json(self.pos_label),
            "interval": [number_to_json(end) for end in self.interval],
            "value": number_to_json(self.value),
            "metric": metric_to_dict(self.metric, self.prior),
            "prior": self.prior,
            "prior_given": self.prior_given,
            "constraints": [constraint_to_dict(one, self.prior) for one in self.constraints],
            "confidence": self.confidence,
            "confusion": {"tp": confusion.tp, "fp": confusion.fp, "fn": confusion.fn, "tn": confusion.tn},
            "tuning": {
                "rows": self.rows,
                "weighted": self.weighted,
                "fingerprint": self.fingerprint,
                "out_of_fold": self.out_of_fold,
                "shrinkage": number_to_json(self.shrinkage),
                "calibration": self.calibration,
                "seen": [sample.to_dict() for sample in self.seen],
            },
        }

    @classmethod
    def from_dict(cls, document: Any) -> Cut:
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            many = isinstance(document, dict) and document.get("schema") == "surecut/multilabel-cut"
            hint = ", and it holds the cuts of many labels: MultilabelCut.load reads it" if many else ""
            raise ValueError(f'expected an object with "schema": "{SCHEMA}"{hint}')
        if document.get("schema_version") != SCHEMA_VERSION:
            raise OtherVersionError(document.get("schema_version"), SCHEMA_VERSION)
        lower, upper = document["interval"]
        cells, tuning = document["confusion"], document["tuning"]
        threshold = number_from_json(document["threshold"])
        if math.isnan(threshold):
            raise ValueError("its threshold is NaN")
        return cls(
            threshold=threshold,
            value=number_from_json(document["value"]),
            metric=metric_from_dict(document["metric"]),
            confusion=Confusion(**{cell: _number(cells[cell], cell) for cell in ("tp", "fp", "fn", "tn")}),
            interval=(number_from_json(lower), number_from_json(upper)),
            prior=float(document["prior"]),
            prior_given=bool(document["prior_given"]),
            constraints=tuple(map(constraint_from_dict, document["constraints"])),
            confidence=None if document["confidence"] is None else float(document["confidence"]),
            rows=int(tuning["rows"]),
            weighted=bool(tuning["weighted"]),
            fingerprint=str(tuning["fingerprint"]),
            out_of_fold=bool(tuning["out_of_fold"]),
            shrinkage=number_from_json(tuning["shrinkage"]),
            calibration=str(tuning["calibration"]),
            pos_label=label_from_json(document["pos_label"]),
            seen=samples_from_json(tuning["seen"]),
        )

    def __str__(self) -> str:
        subject = f" subject to {listed(self.constraints)}" if self.constraints else ""
        if self.confidence is not None:
            subject += f" ({100 * self.confidence:.4g} % confidence)"
        given = " (given)" if self.prior_given else ""
        smoothed = f" (shrinkage {positives_worth(self.shrinkage)}, {self.calibration})" if self.shrinkage else ""
        what = "positive" if self.pos_label is None else repr(self.pos_label)
        action = "predict nothing" if self.predicts_nothing else f"predict {what} where score >= {self.threshold:.6g}"
        accepted = ("a weight of " if self.weighted else "") + amount(self.confusion.predicted_positives)
        return (
            f"{action}: {self.metric.name} = {self.value:.4f}{subject} "
            f"on {self.rows:,} rows, {self.prior:.2%} {what}{given}, {accepted} accepted{smoothed}"
        )

    def __repr__(self) -> str:
        return f"<Cut: {self}>"

    def _repr_html_(self) -> str:
        from surecut.notebook import cut_html

        return cut_html(self)


def require_folder(path: Path) -> None:
    """Raise where a file cannot be written for want of its folder, or because it is one."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file to write, which then takes the place of `path`: a reader, or a crash, never meets half of it.

    A link stays one, and what is no file (a pipe, a device) is written to, not replaced.
    """
    require_folder(path)
    place = path.resolve()
    if place.exists() and not place.is_file():
        yield place
        return
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=place.suffix)
    os.close(handle)
    try:
        yield Path(temporary)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, never meets half of it."""
    with replaced(path) as new:
        try:
            with open(new, "wb") as file:
                file.write(content)
                file.flush()
                if new.is_file():
                    os.fsync(file.fileno())
        except OSError as error:
            raise OSError(f"cannot write {path}: {error.strerror or error}") from error


class _Dialect(NamedTuple):
    """An engine's double, its mark around names, and how it says that a score is not NaN (nothing where none is)."""

    double: str
    quote: str
    is_number: str = ""


# NaN is the largest number in DuckDB, Postgres, Snowflake and Spark, and equals itself. In BigQuery it is IEEE 754's;
# MySQL and SQLite store none. Standard SQL has no word for it: −NaN is NaN, so that neither is at most 0, whichever way
# an engine compares it, and of every number one of the two is. DuckDB is asked twice, for the reason that
# `surecut.frames.columns.is_nan` gives.
_DIALECTS = {
    "ansi": _Dialect("DOUBLE PRECISION", '"', "(-{score} <= 0 OR {score} <= 0)"),
    "duckdb": _Dialect("DOUBLE", '"', "NOT isnan({score}) AND exp(-abs({score})) <= 1"),
    "postgres": _Dialect("DOUBLE PRECISION", '"', "{score} <> CAST('NaN' AS DOUBLE PRECISION)"),
    "snowflake": _Dialect("DOUBLE", '"', "{score} <> CAST('NaN' AS DOUBLE)"),
    "sqlite": _Dialect("REAL", '"'),
    "spark": _Dialect("DOUBLE", "`", "NOT isnan({score})"),
    "bigquery": _Dialect("FLOAT64", "`", "NOT IS_NAN({score})"),
    "mysql": _Dialect("DOUBLE", "`"),
}


def _dialect(dialect: str) -> _Dialect:
    try:
        return _DIALECTS[dialect.lower()]
    except KeyError:
        raise ValueError(f"unknown SQL dialect {dialect!r}: expected one of {', '.join(_DIALECTS)}") from None


def _scientific(number: float) -> str:
    """The shortest scientific form that reads back as the same double; engines take 0.5 for a decimal, 5e-01 not."""
    return next(text for digits in range(17) if float(text := f"{number:.{digits}e}") == number)


def number_to_json(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def number_from_json(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"expected a number, got {value!r}")
    return float(value)


def _number(value: Any, name: str) -> float | int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(f"{name} must be a number, not negative, got {value!r}")
    return value


def label_to_json(label: Any) -> Any:
    """A label's name as plain JSON: tuples as lists, dates as text with their kind."""
    if isinstance(label, np.generic):
        label = label.item()
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
    """The name again."""
    if isinstance(value, list):
        return tuple(label_from_json(part) for part in value)
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _KINDS[kind](text)
    return value


_KINDS: dict[str, Callable[[str], Any]] = {
    "float": float,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
}


def label_text(label: Any) -> str:
    """A label for people; of several columns, its parts."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def amount(value: float) -> str:
    """A count, or a weight, for people."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def positives_worth(kappa: float) -> str:
    """How many positives a model is worth, for people."""
    return f"{kappa:,.0f}" if kappa >= 100 else f"{kappa:.3g}"


def plain_label(label: Any) -> Any:
    """A class's label as Python has it; None for 1 and True, which need no name."""
    plain = label.item() if isinstance(label, np.generic) else label
    return None if isinstance(plain, (bool, int, float)) and plain == 1 else plain


def metric_to_dict(metric: Metric, prior: float) -> dict[str, Any]:
    """Type and parameters, and the coefficients as numbers at the tuning prior, so that the file stands alone."""
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
    """One of surecut's metrics by its type; one's own by its coefficients, or by its name alone.

    Coefficients that are functions of the prior, unless they are linear in it, are known at the tuning prior only.
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
    """The constraint with its quantity's parameters, to the last bit of its level."""
    quantity = metric_to_dict(constraint.quantity, prior)
    return {"quantity": quantity, "sense": constraint.sense, "level": constraint.level}


def constraint_from_dict(document: dict[str, Any]) -> Constraint:
    """The constraint again."""
    level, sense = number_from_json(document["level"]), str(document["sense"])
    return make_constraint(metric_from_dict(document["quantity"]), sense, level)


@dataclass(frozen=True)
class UnknownMetric(Metric):
    """A function of one's own, of which a saved cut knows the name only."""

    name: str

    def evaluate(self, confusion: Confusion) -> Any:
        raise ValueError(f"the saved cut was tuned for the function {self.name!r}, which a file cannot hold")
