"""Types of columns in DuckDB, and one type for a column that has several in different files."""

from __future__ import annotations

from typing import Any, NamedTuple

from surecut._inputs import LARGEST_EXACT_INTEGER
from surecut.sources.text_numbers import BEYOND_DOUBLES, literal, quoted

BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
BITS |= {f"U{name}": bits for name, bits in BITS.items()}
"""DuckDB's integers."""

NOTHING = '"NULL"'
"""The type of a column without any value, as DuckDB calls it: every other type holds its values."""

Types = dict[str, str]
"""Names of columns and their types, as DuckDB calls them."""


class Opened(NamedTuple):
    """Files as one table: what to select from, the columns' types, and what is wrong with columns that have none."""

    sql: str
    types: Types
    conflicts: dict[str, str]


def described(connection: Any, source: str) -> Types:
    """Names and types of the columns."""
    return {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}


def common_type(first: str, second: str) -> str | None:
    """A type that holds all values of two others, as DuckDB calls them; None where there is none.

    >>> common_type("BIGINT", "DOUBLE"), common_type("BOOLEAN", "INTEGER"), common_type("FLOAT", "DECIMAL(3,1)")
    ('DOUBLE', 'INTEGER', 'DOUBLE')
    >>> common_type("TINYINT", "UTINYINT"), common_type("BIGINT", "VARCHAR")
    ('SMALLINT', None)
    >>> common_type(NOTHING, "VARCHAR")
    'VARCHAR'
    """
    if first == second or second == NOTHING:
        return first
    if first == NOTHING:
        return second
    if not (_is_number(first) and _is_number(second)):
        return None
    if any(kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL") for kind in (first, second)):
        return "DOUBLE"
    if "BOOLEAN" in (first, second):
        return second if first == "BOOLEAN" else first
    unsigned = [kind.startswith("U") for kind in (first, second)]
    if all(unsigned):
        return max(first, second, key=BITS.__getitem__)
    needed = max(BITS[kind] + is_unsigned for kind, is_unsigned in zip((first, second), unsigned, strict=True))
    return next((name for name, bits in BITS.items() if not name.startswith("U") and bits >= needed), "HUGEINT")


def _conflict(column: str, first: tuple[str, str], second: tuple[str, str]) -> str:
    """What to say of a column whose types have nothing in common; of each file its name and its type."""
    (one, kind), (other, other_kind) = first, second
    return (
        f"column {column!r} is of type {kind} in {one} and of type {other_kind} in {other}: write both with the same "
        "type, or read them one by one"
    )


def joined(runs: list[list[str]], sources: list[str], found: list[Types]) -> Opened:
    """Runs of files that are alike, one after the other, each column cast to what all of them have in common."""
    if len(runs) == 1:
        return Opened(sources[0], found[0], {})
    types: Types = {}
    conflicts: dict[str, str] = {}
    for column in dict.fromkeys(name for one in found for name in one):
        common: str | None = None
        for run, one in zip(runs, found, strict=True):
            if column not in one:
                has = next(run[0] for run, types_ in zip(runs, found, strict=True) if column in types_)
                conflicts[column] = f"{has} has a column {column!r}, and {run[0]} has not: write both alike"
                break
            widened = one[column] if common is None else common_type(common, one[column])
            if widened is None:
                typed = next(place for place, types_ in enumerate(found) if types_[column] != NOTHING)
                conflicts[column] = _conflict(column, (runs[typed][0], found[typed][column]), (run[0], one[column]))
                break
            common = widened
        if common is not None and column not in conflicts:
            types[column] = common
    selects = []
    for source, one in zip(sources, found, strict=True):
        columns = (f"{_cast(name, one[name], kind)} AS {quoted(name)}" for name, kind in types.items())
        selects.append(f"SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source}")
    return Opened(f"({' UNION ALL '.join(selects)})", types, conflicts)


def _is_number(kind: str) -> bool:
    return kind in BITS or kind in ("BOOLEAN", "FLOAT", "DOUBLE") or kind.startswith("DECIMAL")


def _cast(column: str, kind: str, wanted: str) -> str:
    """A column in another type; an integer that has no double of its own is an error."""
    name = quoted(column)
    if kind == wanted:
        return name
    if kind == NOTHING:
        return f"CAST(NULL AS {wanted})"
    if wanted != "DOUBLE" or BITS.get(kind, 0) < 64:
        return f"CAST({name} AS {wanted})"
    exact = f"{name} BETWEEN -{LARGEST_EXACT_INTEGER} AND {LARGEST_EXACT_INTEGER}"
    message = f"{literal(f'{column} holds the integer ')} || {name} || {literal(BEYOND_DOUBLES)}"
    return f"CASE WHEN {name} IS NULL OR {exact} THEN CAST({name} AS DOUBLE) ELSE error({message}) END"
