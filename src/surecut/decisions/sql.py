"""Thresholds as SQL expressions, in several dialects."""

from __future__ import annotations

import math
from typing import NamedTuple


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
    """

    double: str
    quote: str
    is_number: str = ""

    def name(self, column: str) -> str:
        """Quote the name of a column."""
        return self.quote + column.replace(self.quote, self.quote * 2) + self.quote


# NaN is the largest number in DuckDB, Postgres, Snowflake and Spark, and equals itself. In BigQuery it is IEEE 754's;
# MySQL and SQLite store none. Standard SQL has no word for it: −NaN is NaN, so that neither is at most 0, whichever way
# an engine compares it, and of every number one of the two is. DuckDB is asked twice, for the reason that
# `surecut.sources.columns.is_nan` gives.
DIALECTS = {
    "ansi": Dialect("DOUBLE PRECISION", '"', "(-{score} <= 0 OR {score} <= 0)"),
    "duckdb": Dialect("DOUBLE", '"', "NOT isnan({score}) AND exp(-abs({score})) <= 1"),
    "postgres": Dialect("DOUBLE PRECISION", '"', "{score} <> CAST('NaN' AS DOUBLE PRECISION)"),
    "snowflake": Dialect("DOUBLE", '"', "{score} <> CAST('NaN' AS DOUBLE)"),
    "sqlite": Dialect("REAL", '"'),
    "spark": Dialect("DOUBLE", "`", "NOT isnan({score})"),
    "bigquery": Dialect("FLOAT64", "`", "NOT IS_NAN({score})"),
    "mysql": Dialect("DOUBLE", "`"),
}


def find_dialect(name: str) -> Dialect:
    """Look up a dialect, in upper or lower case."""
    try:
        return DIALECTS[name.lower()]
    except KeyError:
        raise ValueError(f"unknown SQL dialect {name!r}: expected one of {', '.join(DIALECTS)}") from None


def reaches(expression: str, threshold: float, dialect: Dialect) -> str:
    """Write the condition that a score, an SQL expression, is at least a threshold: false where it is null or NaN.

    >>> reaches("p", 0.5, DIALECTS["sqlite"])
    '(p IS NOT NULL AND CAST(p AS REAL) >= 5e-01)'
    """
    if threshold == math.inf:
        return "FALSE"
    score = f"CAST({expression} AS {dialect.double})"
    conditions = [f"{expression} IS NOT NULL"]
    if threshold > -math.inf:
        conditions.append(f"{score} >= {_scientific(threshold)}")
    if dialect.is_number:
        conditions.append(dialect.is_number.format(score=score))
    return f"({' AND '.join(conditions)})"


def _scientific(number: float) -> str:
    """The shortest scientific form that reads back as the same double; engines take 0.5 for a decimal, 5e-01 not."""
    return next(text for digits in range(17) if float(text := f"{number:.{digits}e}") == number)
