"""Files as DuckDB opens them: which ones a path means, and one type for each column of them all.

DuckDB takes names for patterns, gives all files the types of the first, and rounds a number further down that does not
fit: 0.75 after twenty thousand whole numbers reads 1. Here a name means the file that has it, the types of many files
are compared, and whole numbers of a CSV file are read as text, in which nothing gets lost.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from surecut._inputs import LARGEST_EXACT_INTEGER
from surecut.sources.text_numbers import literal, quoted

BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
BITS |= {f"U{name}": bits for name, bits in BITS.items()}
"""DuckDB's integers."""

NOTHING = '"NULL"'
"""The type of a column without any value, as DuckDB calls it: every other type holds its values."""

Types = dict[str, str]
"""Names of columns and their types, as DuckDB calls them."""


def is_remote(path: str) -> bool:
    return "://" in path


def files_of(path: str) -> list[str]:
    """The files that a path means: the one of exactly this name, or all that match it as a pattern, in order.

    A folder means the Parquet files in it, at any depth. What lies on a server is for DuckDB to find.
    """
    if is_remote(path) or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        path = os.path.join(glob.escape(path), "**", "*.parquet")
    elif os.path.exists(path):
        return [path]  # a pipe
    found = sorted(one for one in glob.glob(path, recursive=True) if not os.path.isdir(one))
    if not found:
        raise FileNotFoundError(f"{'no file matches' if glob.has_magic(path) else 'there is no file'} {path}")
    return found


def names_sql(files: Iterable[str]) -> str:
    """Files as DuckDB takes them: none of their names is a pattern."""
    return f"[{', '.join(literal(one if is_remote(one) else glob.escape(one)) for one in files)}]"


def own_columns(connection: Any, reader: str, files: Sequence[str], options: str = "") -> str:
    """An option for DuckDB's reader that leaves folders such as ``day=1`` alone, where files have the column as well.

    Otherwise DuckDB puts what the folder says in the place of what the rows say.
    """
    folders = {part.partition("=")[0].casefold() for one in files for part in Path(one).parent.parts if "=" in part}
    if not folders:
        return ""
    alone = ", hive_partitioning = false"
    known = described(connection, f"{reader}({names_sql(files[:1])}{options}{alone})")
    return alone if folders & {name.casefold() for name in known} else ""


def is_same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file: by the same name, a link, or another way there."""
    one, other = Path(first), Path(second)
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


@dataclass(frozen=True)
class Opened:
    """Files as one table: what to select from, the columns' types, and what is wrong with columns that have none."""

    sql: str
    types: Types
    conflicts: dict[str, str]

    def require(self, columns: Iterable[str | None] | None = None) -> None:
        """Raise where one of these columns, or any at all, is not of one type in all files."""
        for column in self.conflicts if columns is None else columns:
            if column in self.conflicts:
                raise ValueError(self.conflicts[column])


def opened_parquet(connection: Any, files: Sequence[str]) -> Opened:
    """Parquet files as one table."""
    alone = own_columns(connection, "read_parquet", files)
    plain = f"read_parquet({names_sql(files)}{alone})"
    if len(files) == 1 and not is_remote(files[0]):
        return Opened(plain, described(connection, plain), {})
    facts = "file_name, name, type, type_length, num_children, converted_type, scale, precision, logical_type"
    schemas: dict[str, list[Any]] = {}
    for file, *column in connection.execute(f"SELECT {facts} FROM parquet_schema({names_sql(files)})").fetchall():
        schemas.setdefault(file, []).append(column)
    ordered = list(files) if set(files) == set(schemas) else list(schemas)
    runs = [list(run) for _, run in groupby(ordered, key=schemas.__getitem__)]
    sources = [f"read_parquet({names_sql(run)}{alone})" for run in runs]
    return _joined(runs, sources, [described(connection, source) for source in sources])


def opened_csv(connection: Any, files: Sequence[str], numbers: Iterable[str | None] = ()) -> Opened:
    """CSV files as one table; columns that should be `numbers` are doubles where they look like integers."""
    wanted = set(numbers)
    alone = own_columns(connection, "read_csv", files)

    def read(run: Sequence[str]) -> str:
        return f"read_csv({names_sql(run)}{alone})"

    guessed = {one: described(connection, read([one])) for one in files}
    for column in _mixed(guessed.values()):
        for one, types in guessed.items():
            if types.get(column) == "VARCHAR" and not _has_text(connection, read([one]), column):
                types[column] = NOTHING
    runs = [list(run) for _, run in groupby(files, key=lambda one: list(guessed[one].items()))]

    def exact(run: Sequence[str]) -> str:
        whole = [name for name, kind in guessed[run[0]].items() if kind in BITS]
        if not whole:
            return read(run)
        as_text = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in whole)
        replaced = ", ".join(f"{(_number if name in wanted else _integer)(name)} AS {quoted(name)}" for name in whole)
        return f"(SELECT * REPLACE ({replaced}) FROM read_csv({names_sql(run)}{alone}, types = {{{as_text}}}))"

    sources = [exact(run) for run in runs]
    blank = [{name: kind for name, kind in guessed[run[0]].items() if kind == NOTHING} for run in runs]
    found = [described(connection, source) | nothing for source, nothing in zip(sources, blank, strict=True)]
    return _joined(runs, sources, found)


def _mixed(found: Iterable[Types]) -> list[str]:
    """The columns that have several types, and are text in some file."""
    kinds: dict[str, set[str]] = {}
    for types in found:
        for name, kind in types.items():
            kinds.setdefault(name, set()).add(kind)
    return [name for name, several in kinds.items() if len(several) > 1 and "VARCHAR" in several]


def _has_text(connection: Any, source: str, column: str) -> bool:
    """Whether a column of text has any; DuckDB takes a column for text too if all of it is blank."""
    asked = f"SELECT 1 FROM {source} WHERE trim({quoted(column)}) <> '' LIMIT 1"
    return connection.execute(asked).fetchone() is not None


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


def _joined(runs: list[list[str]], sources: list[str], found: list[Types]) -> Opened:
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
                conflicts[column] = f"{has} has a column {column!r}, and {run[0]} has not"
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
    told = literal(f"{column} holds an integer beyond 2**53, where float64 cannot tell neighbours apart: ")
    return f"CASE WHEN {name} IS NULL OR {exact} THEN CAST({name} AS DOUBLE) ELSE error({told} || {name}) END"


def _number(column: str) -> str:
    """Text as a double; an integer that has no double of its own is an error."""
    text = f"trim({quoted(column)})"
    too_large = f"abs(CAST({text} AS DOUBLE)) >= {LARGEST_EXACT_INTEGER} AND regexp_full_match({text}, '[+-]?[0-9]+')"
    told = literal(f"{column} holds an integer beyond 2**53, where float64 cannot tell neighbours apart: ")
    return (
        f"CASE WHEN {text} = '' THEN NULL WHEN {too_large} THEN error({told} || {text}) ELSE CAST({text} AS DOUBLE) END"
    )


def _integer(column: str) -> str:
    """Text as an integer, which it was taken for from the first rows; anything else is an error, and not rounded."""
    text = f"trim({quoted(column)})"
    told = literal(f"column {column!r} holds integers in its first rows, but further down ")
    return (
        f"CASE WHEN {text} IS NULL OR {text} = '' THEN NULL "
        f"WHEN regexp_full_match({text}, '[+-]?[0-9]+') THEN CAST({text} AS BIGINT) ELSE error({told} || {text}) END"
    )
