"""Numbers that a file holds as text, with decimal commas or percent signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from surecut._inputs import LARGEST_EXACT_INTEGER, in_brief
from surecut.decisions.sql import DIALECTS

DUCKDB = DIALECTS["duckdb"]

BEYOND_DOUBLES = ", beyond 2**53, where float64 cannot tell neighbours apart: rescale or rank the scores"
"""What is wrong with an integer that has no double of its own."""


class TextNumbers(NamedTuple):
    """How a column of text is read as numbers."""

    sql: str
    """A double in DuckDB's SQL, null where the text is empty."""
    in_percent: bool
    """Whether all numbers have a percent sign, and are divided by 100."""


def quoted(name: str) -> str:
    """A column's name in DuckDB's SQL."""
    return DUCKDB.name(name)


def literal(text: str) -> str:
    """A text in DuckDB's SQL."""
    return DUCKDB.literal(text)


def beyond_doubles_sql(text: str) -> str:
    """SQL that is true where a text is an integer that has no double of its own."""
    is_long = f"length({text}) > 15 AND NOT contains({text}, '.') AND regexp_full_match({text}, '[+-]?[0-9]+')"
    return f"({is_long} AND coalesce(abs(TRY_CAST({text} AS HUGEINT)) > {LARGEST_EXACT_INTEGER}, true))"


def text_numbers(column: str, ask: Callable[[str], tuple[Any, ...]]) -> TextNumbers:
    """Look at all of a column and say how to read it; a `ValueError` says which text is no number.

    `ask` selects some aggregates from the column's table.

    >>> import duckdb
    >>> table = duckdb.sql("SELECT unnest(['0,25', '1', ' 1e-3 ', '']) AS score")
    >>> found = text_numbers("score", lambda select: table.aggregate(select).fetchall()[0])
    >>> table.project(found.sql).fetchall()
    [(0.25,), (1.0,), (0.001,), (None,)]
    """
    name = quoted(column)
    text = f"trim({name})"
    bare = f"trim(rtrim({text}, '%'))"
    # DuckDB reads 1_100 as 1100, which may as well be a name
    number = f"CASE WHEN NOT contains({bare}, '_') THEN {bare} END"
    plain, comma = (f"TRY_CAST({one} AS DOUBLE)" for one in (number, f"replace({number}, ',', '.')"))
    is_filled = f"{name} IS NOT NULL AND {text} <> ''"
    has_comma = f"{is_filled} AND contains({bare}, ',')"
    # 3,185 may be a little more than three, or three thousand; 0,185 and 3,18 can only be the former
    says_decimal = f"{has_comma} AND NOT regexp_full_match({bare}, '[+-]?[1-9][0-9]{{0,2}},[0-9]{{3}}')"
    is_too_large = f"{is_filled} AND {beyond_doubles_sql(bare)}"
    rows, percents, plains, commas, other, decimals, written, points, pointed, too_large = ask(
        f"count(*) FILTER ({is_filled}), count(*) FILTER ({is_filled} AND ends_with({text}, '%')), "
        f"count({plain}) FILTER ({is_filled}), count({comma}) FILTER ({is_filled}), "
        f"any_value({name}) FILTER ({is_filled} AND {comma} IS NULL), "
        f"count(*) FILTER ({says_decimal}), any_value({name}) FILTER ({has_comma}), "
        f"count(*) FILTER ({is_filled} AND contains({bare}, '.')), any_value({name}) FILTER (contains({bare}, '.')), "
        f"any_value({bare}) FILTER ({is_too_large})"
    )
    if commas < rows:
        count = "1 row does" if rows - commas == 1 else f"{rows - commas:,} rows do"
        raise ValueError(f"column {column!r} must hold numbers, but {count} not, such as {in_brief(repr(other))}")
    if 0 < percents < rows:
        raise ValueError(f"column {column!r} has a percent sign in {percents} of {rows} rows only: make them alike")
    if plains < rows and (points or not decimals):
        beside = f", beside {pointed!r}" if points else ""
        raise ValueError(
            f"column {column!r} holds numbers such as {written!r}{beside}: is the comma a decimal one, or does it "
            "separate thousands? Write decimal points, and no marks between thousands"
        )
    if too_large is not None:
        raise ValueError(f"{column} holds the integer {too_large}{BEYOND_DOUBLES}")
    number = plain if plains == rows else comma
    return TextNumbers(f"CASE WHEN {is_filled} THEN {number} {'/ 100 ' if percents else ''}END", bool(percents))
