"""Thresholds as SQL expressions, in several dialects."""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

DOUBLED = {"'": "''"}
DOUBLED_AND_BACKSLASHES = {"'": "''", "\\": "\\\\"}
LIKE_IN_C = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r"}
"""How characters are written in a text."""


class Dialect(NamedTuple):
    """What differs between engines.

    Attributes
    ----------
    double
        The type of a double.
    quote
        The quotation mark around names.
    is_number
        The condition that a score is not NaN; empty where the engine stores none.
    in_text
        How characters are written in a text.
    in_name
        How characters are written in a name; empty where the quotation mark is doubled, and nothing else is escaped.
    before_backslash
        What stands before a text with a backslash, so that no setting of the engine changes its meaning.
    not_in_name
        What no name may contain, since nothing can escape it.
    text
        How a text is compared exactly.
    date, timestamp
        The types before a date and a date with a time, without a time zone; empty where the engine has text instead.
    greatest, least
        The functions that give the largest and the smallest of several numbers.
    """

    double: str
    quote: str
    is_number: str = ""
    in_text: Mapping[str, str] = DOUBLED
    in_name: Mapping[str, str] = {}
    before_backslash: str = ""
    not_in_name: str = "\0"
    text: str = "{text}"
    date: str = "DATE "
    timestamp: str = "TIMESTAMP "
    greatest: str = "GREATEST"
    least: str = "LEAST"

    def name(self, column: str) -> str:
        """Quote the name of a column."""
        _require_characters(column, "column", {"\0", self.not_in_name})
        escapes = self.in_name or {self.quote: self.quote * 2}
        return self.quote + _escaped(column, escapes) + self.quote

    def literal(self, value: Any) -> str:
        """Write a value: a text, a number, a boolean, a date or a time."""
        kind = _kind(value)
        if kind == "text":
            return self.text.format(text=self._quoted(value))
        if kind == "boolean":
            return "TRUE" if value else "FALSE"
        if kind == "number":
            return scientific(value) if isinstance(value, float) else str(value)
        if kind == "date":
            return f"{self.date}'{value.isoformat()}'"
        return f"{self.timestamp}'{value.isoformat(sep=' ')}'"

    def _quoted(self, text: str) -> str:
        _require_characters(text, "label", {"\0"})
        before = self.before_backslash if "\\" in text else ""
        return f"{before}'{_escaped(text, self.in_text)}'"


# NaN is the largest number in DuckDB, Postgres, Snowflake and Spark, and equals itself. In BigQuery it is IEEE 754's;
# MySQL and SQLite store none. Standard SQL has no word for it: −NaN is NaN, so that neither is at most 0, whichever way
# an engine compares it, and of every number one of the two is. DuckDB is asked twice, for the reason that
# `surecut.sources.columns.is_nan` gives. MySQL compares text without regard to case, unless it is binary.
#
# BigQuery and Spark read a doubled quote as two texts, and need escapes; in BigQuery names have the same ones. MySQL
# and Snowflake read both, and a doubled quote ends no text even where a setting takes the meaning from backslashes.
# Postgres has a setting that gives them one, except in E'...'. Spark replaces ${...} by its settings before it reads
# anything, in names too: $\{ is the same text, and no such reference.
DIALECTS = {
    "ansi": Dialect("DOUBLE PRECISION", '"', "(-{score} <= 0 OR {score} <= 0)"),
    "duckdb": Dialect("DOUBLE", '"', "NOT isnan({score}) AND exp(-abs({score})) <= 1"),
    "postgres": Dialect(
        "DOUBLE PRECISION",
        '"',
        "{score} <> CAST('NaN' AS DOUBLE PRECISION)",
        in_text=DOUBLED_AND_BACKSLASHES,
        before_backslash="E",
    ),
    "snowflake": Dialect("DOUBLE", '"', "{score} <> CAST('NaN' AS DOUBLE)", in_text=DOUBLED_AND_BACKSLASHES),
    "sqlite": Dialect("REAL", '"', date="", timestamp="", greatest="MAX", least="MIN"),
    "spark": Dialect("DOUBLE", "`", "NOT isnan({score})", in_text={**LIKE_IN_C, "{": "\\{"}, not_in_name="${"),
    "bigquery": Dialect(
        "FLOAT64",
        "`",
        "NOT IS_NAN({score})",
        in_text=LIKE_IN_C,
        in_name={**LIKE_IN_C, "`": "\\`"},
        timestamp="DATETIME ",
    ),
    "mysql": Dialect("DOUBLE", "`", in_text=DOUBLED_AND_BACKSLASHES, text="CAST({text} AS BINARY)"),
}


def find_dialect(name: str) -> Dialect:
    """Look up a dialect, in upper or lower case."""
    try:
        return DIALECTS[name.lower()]
    except KeyError:
        near = difflib.get_close_matches(name.lower(), DIALECTS, n=1)
        hint = f"did you mean {near[0]!r}? The names are" if near else "expected one of"
        raise ValueError(f"unknown SQL dialect {name!r}: {hint} {', '.join(DIALECTS)}") from None


def reaches(expression: str, threshold: float, dialect: Dialect) -> str:
    """Write the condition that a score, an SQL expression, is at least a threshold: false where it is null or NaN.

    >>> reaches("p", 0.5, DIALECTS["sqlite"])
    '(p IS NOT NULL AND CAST(p AS REAL) >= 5e-01)'
    """
    if threshold == math.inf:
        return "FALSE"
    return _of_a_score(expression, _at_least(expression, threshold, dialect), dialect)


def reaches_by(
    expression: str,
    columns: Sequence[str],
    thresholds: Iterable[tuple[tuple[Any, ...], float]],
    dialect: Dialect,
) -> str:
    """Write the condition that a score reaches the threshold of its label: false for other labels, null and NaN.

    A label is a tuple of values, one of each column.

    >>> print(reaches_by("p", ["tag"], [(("a",), 0.5), (("b",), 0.25), (("c",), 0.5)], DIALECTS["sqlite"]))
    (p IS NOT NULL AND CASE WHEN tag IN ('a', 'c') THEN CAST(p AS REAL) >= 5e-01 WHEN tag IN ('b') THEN CAST(p AS REAL)
    >= 2.5e-01 ELSE FALSE END)
    """
    reached = [(label, threshold) for label, threshold in thresholds if threshold < math.inf]
    if not reached:
        return "FALSE"
    for column, values in zip(columns, zip(*(label for label, _ in reached), strict=True), strict=True):
        require_one_kind(column, values)
    literals = [(tuple(map(dialect.literal, label)), threshold) for label, threshold in reached]
    branches = [
        f"WHEN {condition} THEN {_at_least(expression, threshold, dialect) or 'TRUE'}"
        for condition, threshold in _conditions(columns, literals)
    ]
    return _of_a_score(expression, f"CASE {' '.join(branches)} ELSE FALSE END", dialect)


def zone_case(
    expression: str, thresholds: Sequence[float], zones: Sequence[str], missing: str | None, dialect: Dialect
) -> str:
    """Write the zone of a score, an SQL expression: `missing`, or null, where it is null or NaN.

    Thresholds ascend, and are between the zones.
    """
    branches = []
    above = math.inf
    for zone, threshold in zip(zones[::-1], [*thresholds[::-1], -math.inf], strict=True):
        if threshold < above:  # otherwise no score is in the zone
            branches.append(f"WHEN {reaches(expression, threshold, dialect)} THEN {dialect.literal(zone)}")
        above = threshold
    return f"CASE {' '.join(branches)}{_otherwise(missing, dialect)} END"


def zone_case_by(
    expression: str,
    columns: Sequence[str],
    thresholds: Iterable[tuple[tuple[Any, ...], Sequence[float]]],
    zones: Sequence[str],
    missing: str | None,
    unknown: str | None,
    dialect: Dialect,
) -> str:
    """Write the zone of a score by the thresholds of its group: `unknown`, or null, in other groups.

    A group is a tuple of values, one of each column.
    """
    known = list(thresholds)
    for column, values in zip(columns, zip(*(group for group, _ in known), strict=True), strict=True):
        require_one_kind(column, values)
    branches = []
    for group, of_group in known:
        is_group = " AND ".join(
            f"{column} = {dialect.literal(value)}" for column, value in zip(columns, group, strict=True)
        )
        branches.append(f"WHEN {is_group} THEN {zone_case(expression, of_group, zones, missing, dialect)}")
    return f"CASE {' '.join(branches)}{_otherwise(unknown, dialect)} END"


def _otherwise(zone: str | None, dialect: Dialect) -> str:
    return "" if zone is None else f" ELSE {dialect.literal(zone)}"


def _conditions(
    columns: Sequence[str], literals: Iterable[tuple[tuple[str, ...], float]]
) -> Iterable[tuple[str, float]]:
    """Conditions on labels, each with a threshold. Labels of one column that share one are listed together."""
    if len(columns) > 1:  # a chain of ORs would nest as deep as there are labels, and engines have limits
        for label, threshold in literals:
            yield " AND ".join(f"{column} = {value}" for column, value in zip(columns, label, strict=True)), threshold
        return
    by_threshold: dict[float, list[str]] = {}
    for (value,), threshold in literals:
        by_threshold.setdefault(threshold, []).append(value)
    for threshold, values in by_threshold.items():
        yield f"{columns[0]} IN ({', '.join(values)})", threshold


def _of_a_score(expression: str, condition: str, dialect: Dialect) -> str:
    """A condition on a score, false where the score is null or NaN."""
    is_number = dialect.is_number.format(score=double(expression, dialect))
    return f"({' AND '.join(filter(None, (f'{expression} IS NOT NULL', condition, is_number)))})"


def lacks_score(expression: str, dialect: Dialect) -> str:
    """Write the condition that a score, an SQL expression, is null or NaN.

    >>> lacks_score("p", DIALECTS["sqlite"]), lacks_score("p", DIALECTS["spark"])
    ('p IS NULL', 'NOT (p IS NOT NULL AND NOT isnan(CAST(p AS DOUBLE)))')
    """
    if not dialect.is_number:
        return f"{expression} IS NULL"
    return f"NOT {_of_a_score(expression, '', dialect)}"


def _at_least(expression: str, threshold: float, dialect: Dialect) -> str:
    """The comparison of a score that is a number; empty where every number will do."""
    return "" if threshold == -math.inf else f"{double(expression, dialect)} >= {scientific(threshold)}"


def double(expression: str, dialect: Dialect) -> str:
    """Write a score as a double."""
    return f"CAST({expression} AS {dialect.double})"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


def _require_characters(text: str, what: str, refused: set[str]) -> None:
    """Raise where a name or a text cannot be written in SQL."""
    for characters in refused:
        if characters in text:
            raise ValueError(f"the {what} {text!r} cannot be written in SQL: it contains {characters!r}; rename it")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"the {what} {text!r} cannot be written in SQL: it is not valid Unicode; rename it")


def _kind(value: Any) -> str:
    """What a value is in SQL; a `ValueError` where there is no literal that means the same in all engines."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return "number"
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return "time"
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return "date"
    raise ValueError(
        f"the label {value!r} cannot be written in SQL: expected text, a finite number, a boolean, a date, or a time "
        "without a time zone"
    )


def require_one_kind(column: str, values: Iterable[Any]) -> None:
    """Raise where labels could not stand in one column: engines convert, or refuse, what is of another type."""
    kinds = {_kind(value): value for value in values}
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise ValueError(
            f"labels of the column {column} are of several types, {one} ({first!r}) and {other} ({second!r}): a column "
            "in SQL has one"
        )


def scientific(number: float) -> str:
    """The shortest scientific form that reads back as the same double; engines take 0.5 for a decimal, 5e-01 not."""
    return next(text for digits in range(17) if float(text := f"{number:.{digits}e}") == number)
