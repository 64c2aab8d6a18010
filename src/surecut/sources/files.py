"""Files that DuckDB reads as one table: CSV, JSON lines and Parquet, one or many, here or on a server.

DuckDB settles the types of a CSV file by its first rows, those of many files by the first file, and rounds what does
not fit: 0.75 after twenty thousand integers reads 1. Therefore CSV is read as text, and a column gets a type that all
its rows have; JSON lines are looked at as a whole, and numbers of several types read as text; the types of Parquet
files are compared.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surecut.core.search import SourceChangedError
from surecut.core.settings import settings
from surecut.sources.column_types import BITS, NOTHING, Opened, Types, described, joined
from surecut.sources.columns import not_numbers
from surecut.sources.paths import files_of, is_remote, kind_of, names_sql
from surecut.sources.text_numbers import (
    BEYOND_DOUBLES,
    TextNumbers,
    beyond_doubles_sql,
    literal,
    quoted,
    text_numbers,
)

if TYPE_CHECKING:
    import duckdb

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SNIFFED_LINES = 30_000
"""Lines of a CSV file: DuckDB finds its delimiter by some 20,000, and itself complains of a line further down."""
LONGEST_LINE = 2_000_000
"""Bytes of a line that DuckDB reads; Python's own limit is less."""
SAMPLED_ROWS = 2_000
"""Rows by which most columns are known not to be of a type."""
TEXT = "VARCHAR"
KEPT = "kept"
"""The table of rows that were read once."""


class Files:
    """The files that a path means, open for reading as one table.

    Parameters
    ----------
    path
        A file, a pattern of files, a folder, or a URL.
    name
        What messages call it, if not by its path.
    in_order
        Whether rows are to be read in the order in which they are written, which takes longer.

    Attributes
    ----------
    sql
        What to select from.
    types
        The columns' types. Those that are read as text are text until `settle` is called.
    conflicts
        What is wrong with columns that are not in all files, or of types that have nothing in common.
    """

    def __init__(self, path: str, *, name: str | None = None, in_order: bool = False) -> None:
        self.name = path if name is None else name
        self.files = files_of(path)
        self.kind = kind_of(self.files, self.name)
        self.connection = connected(in_order, limited=self.kind != "json")
        self._identities = self._identified()
        self._candidates: dict[str, list[str]] = {}
        self._typed: dict[str, str] = {}
        with self.reading():
            self._require_text()
            self._require_complete()
            self._table = self._without_renamed(self._opened())
        self.sql, self.conflicts = self._table.sql, self._table.conflicts
        self.types = dict(self._table.types)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what DuckDB and PyArrow say of a file that cannot be read into an error that names it."""
        import duckdb
        import pyarrow

        try:
            yield
        except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
            if str(error).startswith(self._refusal):
                raise
            raise self.explained(error) from error

    @property
    def _refusal(self) -> str:
        return f"cannot read {self.name}: "

    def explained(self, error: Exception) -> Exception:
        """What to say of files that cannot be read: which line is to blame, if one is, or what DuckDB says."""
        message = str(error)
        if message.startswith("Out of Memory"):
            return MemoryError(f"DuckDB has not enough memory, or space for temporary files, to read {self.name}")
        if "Arrow Appender" in message:
            return ValueError(
                f"a column of {self.name} that is needed holds texts of more than 2 GB in {settings().batch:,} rows: "
                "labels and groups have to be short"
            )
        if BEYOND_DOUBLES in message:
            sentence = next(line for line in message.splitlines() if BEYOND_DOUBLES in line)
            return ValueError(re.sub(r"^.*Error: ", "", sentence))
        if self.kind == "csv":
            try:
                self._require_even_lines()
            except ValueError as uneven:
                return uneven
            except (OSError, EOFError, zlib.error):  # it is no gzip file, or a part of one
                pass
        reason = " ".join(message.split("\n\n")[0].split())  # what follows are DuckDB's settings
        if "magic bytes" in message or "too small to be a Parquet file" in message:
            reason = f"it is not a complete Parquet file; was its writing or copying broken off? {reason}"
        if "GZIP" in message:  # as DuckDB spells it
            reason = f"it is not a complete gzip file; was its writing or copying broken off? {reason}"
        if any(map(is_remote, self.files)):
            reason = f"{reason} (DuckDB reads addresses such as https:// and s3:// by extensions that it downloads)"
        return OSError(f"{self._refusal}{reason}")

    def require(self, columns: Iterable[str | None] | None = None) -> None:
        """Raise where one of these columns, or any at all, is not of one type in all files."""
        for column in self.conflicts if columns is None else columns:
            if column in self.conflicts:
                raise ValueError(self.conflicts[column])

    def require_rows(self) -> None:
        """Raise where there is nothing but names of columns."""
        if not self.ask("count(*)")[0]:
            raise ValueError(f"{self.name} holds no rows, only the columns {', '.join(map(repr, self.types))}")

    def require_unchanged(self) -> None:
        """Raise where a file was replaced or written to since it was opened, unless its rows are kept.

        It is asked after the last pass. What is on servers cannot be asked.
        """
        if self.sql != KEPT and self._identified() != self._identities:
            raise SourceChangedError

    def _identified(self) -> list[tuple[int, ...] | None]:
        """What tells one version of each file from another; None of files that are not here."""
        return [_identity_of(file) for file in self.files]

    def keep(self, columns: Iterable[str]) -> None:
        """Read some columns once, and keep them: in memory, or in a temporary file of DuckDB if they do not fit."""
        chosen = list(dict.fromkeys(columns))
        names = ", ".join(map(quoted, chosen))
        with self.reading():
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {KEPT} AS SELECT {names} FROM {self._table.sql}")
        self.require_unchanged()
        self.sql, self.types = KEPT, dict(self._table.types)
        self.settle(chosen)
        for column, typed in self._typed.items():
            change = f"ALTER {quoted(column)} SET DATA TYPE {self.types[column]} USING {typed}"
            self.connection.execute(f"ALTER TABLE {KEPT} {change}")
        self._typed = {}

    def settle(self, columns: Iterable[str] | None = None) -> None:
        """Give columns that are read as text, some or all of them, a type that all their rows have."""
        candidates = {
            name: list(self._candidates[name])
            for name in (self.types if columns is None else columns)
            if name in self._candidates and self.types[name] == TEXT
        }
        for name, kind, count in self._of_other_types(candidates, f"(SELECT * FROM {self.sql} LIMIT {SAMPLED_ROWS})"):
            if count:
                candidates[name].remove(kind)
        while likely := {name: kinds[:1] for name, kinds in candidates.items() if kinds}:
            for name, kind, count in self._of_other_types(likely, self.sql):
                if not count:
                    self.types[name] = kind
                    self._typed[name] = f"TRY_CAST(trim({quoted(name)}) AS {kind})"
                    del candidates[name]
                else:
                    candidates[name].remove(kind)

    def _of_other_types(self, kinds: dict[str, list[str]], source: str) -> list[tuple[str, str, int]]:
        """Columns, types that they may have, and how many rows have another one."""
        asked = [(name, kind) for name, candidates in kinds.items() for kind in candidates]
        if not asked:
            return []
        counts = self.ask(", ".join(f"count(*) FILTER (NOT {_is_of_type(*one)})" for one in asked), source)
        return [(name, kind, count) for (name, kind), count in zip(asked, counts, strict=True)]

    def typed(self, column: str) -> str:
        """SQL of a column in the type that it has."""
        return self._typed.get(column, quoted(column))

    def number(self, column: str) -> TextNumbers:
        """SQL of a column as numbers: itself, or its text, which may have percent signs or decimal commas."""
        kind = self.types[column]
        if kind in (*BITS, "FLOAT", "DOUBLE", "BOOLEAN") or kind.startswith("DECIMAL"):
            return TextNumbers(self.typed(column), in_percent=False)
        if kind != TEXT:
            raise not_numbers(column, kind)
        return text_numbers(column, self.ask)

    def ask(self, select: str, source: str | None = None) -> tuple[Any, ...]:
        """Some aggregates of all rows."""
        with self.reading():
            (row,) = self.connection.execute(f"SELECT {select} FROM {source or self.sql}").fetchall()
        return tuple(row)

    def _opened(self) -> Opened:
        self._folders = _folder_columns(self.files)
        opened = self._opened_with("")
        if self._folders & {name.casefold() for name in opened.conflicts}:  # day=1 beside day=all
            return self._opened_with(", hive_types_autocast = false")
        return opened

    def _without_renamed(self, opened: Opened) -> Opened:
        """The same, with a conflict for columns whose names are the same but for case.

        DuckDB calls the second ``score`` of a file ``score_1``, so that the first one would be taken for it.
        """
        conflicts, known = dict(opened.conflicts), [*opened.types, *opened.conflicts]
        plain = {name.casefold() for name in known}
        suspects = [name for name in known if re.sub(r"(_\d+)+$", "", name.casefold()) in plain - {name.casefold()}]
        for file in self.files if suspects else ():
            written: dict[str, list[str]] = {}
            for name in self._written_names(file):
                written.setdefault(name.casefold(), []).append(name)
            for base, same in written.items():
                alike = [name for name in known if re.fullmatch(rf"{re.escape(base)}(_\d+)*", name.casefold())]
                if len(same) > 1 and len(alike) > 1:
                    reason = (
                        f"{self.name if len(self.files) == 1 else file} has {len(same)} columns with the same name, "
                        f"but for case: {', '.join(map(repr, sorted(same)))}. Rename all but one"
                    )
                    conflicts |= dict.fromkeys([*alike, *same], reason)
        types = {name: kind for name, kind in opened.types.items() if name not in conflicts}
        return opened._replace(types=types, conflicts=conflicts)

    def _written_names(self, file: str) -> list[str]:
        """The names of a file's columns as they are written."""
        if self.kind == "parquet":
            query = f"SELECT name FROM parquet_schema({names_sql([file])})"
        elif self.kind == "json":
            query = f"SELECT DISTINCT unnest(json_keys(json)) FROM read_json_objects({names_sql([file])})"
        else:
            options, _ = self._described_csv(file, ", all_varchar = true")
            source = self._source_of([file], f"{options}, header = false")
            (first,) = self.connection.execute(f"SELECT * FROM {source} LIMIT 1").fetchall()
            return [str(name).strip() for name in first]
        return [str(name) for (name,) in self.connection.execute(query).fetchall()]

    def _opened_with(self, options: str) -> Opened:
        if self.kind == "csv":
            return self._opened_csv(f"{options}, all_varchar = true")
        return self._opened_json(options) if self.kind == "json" else self._opened_parquet(options)

    def _opened_json(self, options: str) -> Opened:
        """What DuckDB takes for a common type of integers and fractions, or of signs, is read as text."""
        every = f", sample_size = -1, maximum_sample_files = {len(self.files)}"
        options += self._own_columns(options + every)
        types = described(self.connection, self._source_of(self.files, options + every))
        mixed = [name for name, kind in types.items() if kind in ("DOUBLE", "HUGEINT") and not self._is_folder(name)]
        self._candidates = {name: ["BIGINT", "DOUBLE"] for name in mixed}
        types |= dict.fromkeys(self._candidates, TEXT)
        own = (f"{literal(name)}: {literal(kind)}" for name, kind in types.items() if not self._is_folder(name))
        return Opened(self._source_of(self.files, f"{options}, columns = {{{', '.join(own)}}}"), types, {})

    def _opened_csv(self, options: str) -> Opened:
        if self._folders:
            options += self._own_columns(self._described_csv(self.files[0], options)[0])
        found = {one: self._described_csv(one, options) for one in self.files}
        runs = [list(run) for _, run in groupby(self.files, key=lambda one: (found[one][0], [*found[one][1].items()]))]
        sources = [self._source_of(run, found[run[0]][0]) for run in runs]
        opened = joined(runs, sources, [found[run[0]][1] for run in runs])
        self._candidates = {name: list(CANDIDATES) for name in opened.types if not self._is_folder(name)}
        return opened

    def _described_csv(self, file: str, options: str) -> tuple[str, Types]:
        """The columns of a file, and the options, with its encoding if that is not UTF-8."""
        import duckdb

        try:
            columns = described(self.connection, self._source_of([file], options))
        except duckdb.Error as error:
            if "utf-8" not in str(error) or "encoding" in options or is_remote(file):
                raise
            return self._described_csv(file, f"{options}, encoding = '{_encoding_of(file)}'")
        # One column, or columns without names, is what DuckDB makes of lines that do not agree.
        is_whole_line = len(columns) == 1 and any(mark in next(iter(columns)) for mark in DELIMITERS)
        if is_whole_line or all(re.fullmatch(r"column\d+", name) for name in columns):
            self._require_even_lines(SNIFFED_LINES)
        return options, columns

    def _is_folder(self, column: str) -> bool:
        return column.casefold() in self._folders

    def _opened_parquet(self, options: str) -> Opened:
        options += self._own_columns(options)
        if len(self.files) == 1 and not is_remote(self.files[0]):
            source = self._source_of(self.files, options)
            return Opened(source, described(self.connection, source), {})
        facts = "file_name, name, type, type_length, num_children, converted_type, scale, precision, logical_type"
        query = f"SELECT {facts} FROM parquet_schema({names_sql(self.files)})"
        schemas: dict[str, list[Any]] = {}
        for file, *column in self.connection.execute(query).fetchall():
            schemas.setdefault(file, []).append(column)
        ordered = self.files if set(self.files) == set(schemas) else list(schemas)
        runs = [list(run) for _, run in groupby(ordered, key=schemas.__getitem__)]
        sources = [self._source_of(run, options) for run in runs]
        found = []
        for run, source in zip(runs, sources, strict=True):
            # A column of PyArrow's type null is one of integers for DuckDB before 2.0
            nulls = {name for name, *_, logical_type in schemas[run[0]] if logical_type == "NullType()"}
            types = described(self.connection, source)
            found.append({name: NOTHING if name in nulls else kind for name, kind in types.items()})
        return joined(runs, sources, found)

    def _source_of(self, files: Sequence[str], options: str) -> str:
        return f"read_{self.kind}({names_sql(files)}{options})"

    def _own_columns(self, options: str) -> str:
        """An option that leaves folders such as ``day=1`` alone, where files have the column as well.

        Otherwise DuckDB puts what the folder says in the place of what the rows say.
        """
        if not self._folders:
            return ""
        alone = ", hive_partitioning = false"
        known = described(self.connection, self._source_of(self.files[:1], options + alone))
        if not self._folders & {name.casefold() for name in known}:
            return ""
        self._folders = set()
        return alone

    def _require_text(self) -> None:
        """Raise where a file of text by its name is a Parquet file by its first bytes."""
        for path in self.files if self.kind != "parquet" else ():
            if not is_remote(path) and os.path.isfile(path):
                with open(path, "rb") as file:
                    if file.read(4) == b"PAR1":
                        which = "it" if len(self.files) == 1 else path
                        raise OSError(f"{self._refusal}{which} is a Parquet file: let its name end in .parquet")

    def _require_complete(self) -> None:
        """Raise where a compressed file is broken off: DuckDB reads its first rows, and says nothing.

        It does so with zstd, and before 2.0 with gzip.
        """
        import duckdb

        unchecked = (".zst", ".gz") if int(duckdb.__version__.partition(".")[0]) < 2 else (".zst",)
        for path in self.files:
            if path.endswith(unchecked) and not is_remote(path):
                _require_complete(path)

    def _require_even_lines(self, most: int | None = None) -> None:
        """Raise where a line of a CSV file, or one of the first ones, has another number of fields than its header."""
        for path in self.files:
            if not is_remote(path) and not path.endswith(".zst"):
                _require_even_lines(path, self.name if len(self.files) == 1 else path, most)


CANDIDATES = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP")
"""Types that a column of a CSV file may have, if all its rows do; else it is text: yes and no stay as written."""


def _is_of_type(column: str, kind: str) -> str:
    """SQL that is true where a text is blank, or means the same in a type: nothing is rounded or cut off."""
    text = f"trim({quoted(column)})"
    value = f"TRY_CAST({text} AS {kind})"
    same = f"coalesce(CAST({value} AS VARCHAR) = replace({text}, 'T', ' '), false)"
    if kind == "BIGINT":
        same = f"{same} OR ({value} IS NOT NULL AND regexp_full_match({text}, '[+-]?[0-9]+'))"
    elif kind == "DOUBLE":
        same = f"{value} IS NOT NULL AND NOT contains({text}, '_') AND NOT {beyond_doubles_sql(text)}"
    return f"(coalesce({text}, '') = '' OR {same})"


def connected(in_order: bool = False, limited: bool = True) -> duckdb.DuckDBPyConnection:
    """A database in memory, with temporary files where the system has them, beyond a limit.

    The buffers of DuckDB's reader of JSON cannot be written to files: with many files they exceed a limit.
    """
    try:
        import duckdb
    except ModuleNotFoundError:
        raise ModuleNotFoundError("reading files needs duckdb: pip install 'surecut[files]'") from None
    connection = duckdb.connect(config={"temp_directory": tempfile.gettempdir()})
    if limited:
        connection.execute(f"SET memory_limit = '{settings().duckdb_memory}'")
    connection.execute(f"SET preserve_insertion_order = {str(in_order).lower()}")
    connection.execute("SET enable_progress_bar = false")  # it would write into the output
    return connection


def _folder_columns(files: Iterable[str]) -> set[str]:
    """The names of columns that folders such as ``day=1`` stand for."""
    return {part.partition("=")[0].casefold() for one in files for part in Path(one).parent.parts if "=" in part}


def _require_complete(path: str) -> None:
    import pyarrow

    codec = "zstd" if path.endswith(".zst") else "gzip"
    try:
        with pyarrow.CompressedInputStream(pyarrow.OSFile(path), codec) as file:
            while file.read(2**20):
                pass
    except OSError as error:
        raise OSError(f"it is not a complete {codec} file; was its writing or copying broken off? {error}") from error


def _require_even_lines(path: str, name: str, most: int | None) -> None:
    encoding = _encoding_of(path)
    with (gzip.open if path.endswith(".gz") else open)(
        path, "rt", encoding=encoding, errors="replace", newline=""
    ) as text:
        first = text.readline()
        mark = max(DELIMITERS, key=first.count)
        lines = csv.reader(chain([first], text), delimiter=mark)
        limit = csv.field_size_limit(LONGEST_LINE)
        try:
            expected = len(next(lines))
            for fields in islice(lines, most):
                if fields and len(fields) != expected:
                    raise ValueError(
                        f"line {lines.line_num} of {name} has {_fields(len(fields))}, but its header has "
                        f"{_fields(expected)}, separated by {DELIMITERS[mark]}: correct it, or quote a text with one"
                    )
        except csv.Error as error:
            raise ValueError(f"cannot read {name} from line {lines.line_num} on: {error}") from None
        finally:
            csv.field_size_limit(limit)


def _fields(number: int) -> str:
    return f"{number} field{'s' if number > 1 else ''}"


def _encoding_of(path: str) -> str:
    with open(path, "rb") as file:
        mark = file.read(2)
    if mark == b"\xfe\xff":
        raise ValueError(f"{path} is text in UTF-16, big-endian, which DuckDB does not read: save it as UTF-8")
    return "utf-16" if mark == b"\xff\xfe" else "latin-1"


def _identity_of(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
