"""Tables in files, as strangers write them: labels, scores and weights out of CSV, TSV, Parquet and JSON lines.

DuckDB reads the file once and keeps the few columns that were asked for. What it leaves to us: which column was meant,
which label is positive, percentages and decimal commas as scores, and a message where none of that is clear.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from surecut._files import replaced
from surecut._labels import LISTED, listed
from surecut.cli.positives import TableError, as_label, classes_of, label_value
from surecut.positive_class import require_positives
from surecut.sources.columns import is_nan_sql
from surecut.sources.paths import described, files_of, is_same_file, names_sql, opened_parquet, own_columns
from surecut.sources.text_numbers import literal, quoted, text_numbers

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

    from surecut.metrics import Metric

LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "truth", "class", "actual", "outcome")
SCORE_NAMES = ("score", "scores", "p", "prob", "probability", "y_score", "y_prob", "proba", "pred_proba", "prediction")


READERS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SMALL = 4096
SAMPLED = 30_000
"""Lines of a CSV file: DuckDB guesses from some 20,000, and complains itself of a line further down."""
CSV_TYPES = ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR")
WRITERS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".pq": "FORMAT parquet, COMPRESSION zstd",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


class Arrays(NamedTuple):
    """Columns in memory; groups as positions among their names."""

    is_positive: NDArray[np.bool_]
    scores: NDArray[Any]
    weights: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None
    group_names: list[Any]


@dataclass(frozen=True)
class Rows:
    """Rows of an open table, parsed: `relation` has the columns label, score and, if asked for, weight and groups.

    DuckDB keeps them, on disk where they do not fit in memory; `arrays` fetches them. `positive` is the positive label
    as the file spells it, `pos_label` the same as a cut keeps it, and `notes` say what was read otherwise than it is
    written.
    """

    connection: duckdb.DuckDBPyConnection
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    label: str
    score: str
    positive: str
    pos_label: Any
    count: int
    positives: int
    dropped: int
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.count

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        return self.connection.sql(f"SELECT {', '.join(self.columns)} FROM complete")

    def arrays(self) -> Arrays:
        """The columns as arrays."""
        names: list[Any] = []
        columns = [column for column in self.columns if column not in self.groups]
        if self.groups:
            keys = ", ".join(self.groups)
            self.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE named AS SELECT {keys}, row_number() OVER (ORDER BY {keys}) - 1 AS code "
                f"FROM (SELECT DISTINCT {keys} FROM complete)"
            )
            found_names = self.connection.execute(f"SELECT {keys} FROM named ORDER BY code").fetchall()
            names = [name if len(name) > 1 else name[0] for name in found_names]
            same = " AND ".join(f"named.{key} = complete.{key}" for key in self.groups)
            columns.append(f"(SELECT code FROM named WHERE {same}) AS groups")
        found = self.connection.execute(f"SELECT {', '.join(columns)} FROM complete").fetchnumpy()
        return Arrays(
            is_positive=np.asarray(found["label"], dtype=bool),
            scores=np.asarray(found["score"]),
            weights=np.asarray(found["weight"], dtype=np.float64) if "weight" in found else None,
            groups=np.asarray(found["groups"], dtype=np.int64) if "groups" in found else None,
            group_names=names,
        )


class Table:
    """A file, a glob of files, or standard input (``-``), open for reading.

    Use it as a context manager: what it needs to keep is removed at the end. For copying, `as_text` leaves the columns
    of a CSV file as they are written, 0.50 stays 0.50, and `exact` looks at all rows before it settles their types.
    """

    def __init__(self, source: str, *, as_text: bool = False, exact: bool = False) -> None:
        self.connection = _connect()
        self.name = "standard input" if source == "-" else source
        self.notes: list[str] = []
        self._absent = ""
        self._folder: str | None = None
        self._is_kept = False
        try:
            self._files = [self._spooled()] if source == "-" else _files_of(source)
            self._reader = _reader_of(self._files, self.name)
            self._options = self._reading(as_text, exact)
            if self._reader != "parquet":
                self._options += own_columns(self.connection, f"read_{self._reader}", self._files, self._options)
            self._conflicts: dict[str, str] = {}
            self._parquet = ""
            self.types = self._open()
        except BaseException:
            self.__exit__()
            raise

    def _reading(self, as_text: bool, exact: bool) -> str:
        """The reader's options: CSV as text, or with types, of which BOOLEAN is none: yes and no stay as written.

        JSON is looked at as a whole before its types are settled: DuckDB rounds what does not fit further down.
        """
        if self._reader == "json":
            return f", sample_size = -1, maximum_sample_files = {len(self._files)}"
        if self._reader != "csv":
            return ""
        if as_text:
            return ", all_varchar = true"
        all_rows = ", sample_size = -1" + (", union_by_name = true" if len(self._files) > 1 else "") if exact else ""
        return f"{all_rows}, auto_type_candidates = [{', '.join(map(literal, CSV_TYPES))}]"

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def columns(self) -> list[str]:
        return list(self.types)

    def column(self, asked: str | None, purpose: str, guesses: Iterable[str] = ()) -> str:
        """The file's own name of the column that was asked for: exactly, or but for case and blanks, or by position."""
        if asked is None:
            plain = {_plain(name): name for name in self.columns}
            for guess in guesses:
                if guess in plain:
                    return plain[guess]
            raise TableError(f"which column holds the {purpose}? Say --{purpose} NAME; {self._listed()}")
        if asked in self._conflicts:
            raise TableError(self._conflicts[asked])
        if asked in self.types:
            return asked
        alike = [name for name in self.columns if _plain(name) == _plain(asked)]
        if len(alike) == 1:
            return alike[0]
        near = difflib.get_close_matches(_plain(asked), [_plain(name) for name in self.columns], n=1)
        hint = f"did you mean {next(c for c in self.columns if _plain(c) == near[0])!r}? " if near else ""
        raise TableError(f"{self.name} has no column {asked!r}: {hint}{self._listed()}")

    def number(self, column: str) -> str:
        """SQL of a column as a number: itself, or its text, which may have percent signs or decimal commas."""
        name = quoted(column)
        kind = self.types[column]
        if kind in ("FLOAT", "DOUBLE", "BOOLEAN") or "INT" in kind:
            return name
        if kind.startswith("DECIMAL"):
            return f"CAST({name} AS DOUBLE)"
        if kind != "VARCHAR":
            raise TableError(f"column {column!r} holds values of type {kind}, not numbers")
        try:
            numbers = text_numbers(column, lambda select: self._one(f"SELECT {select} FROM {self._from}"))
        except ValueError as error:
            raise TableError(str(error)) from None
        if numbers.in_percent:
            example = self._percentage(f"trim({name})")
            self.notes.append(f"column {column!r} holds percentages, read as shares: {example}")
        return numbers.sql

    def _percentage(self, text: str) -> str:
        """An example of what becomes of a percentage."""
        (written,) = self._one(f"SELECT any_value({text}) FROM {self._from} WHERE ends_with({text}, '%')")
        share = float(written.rstrip("% ").replace(",", ".")) / 100
        return f"{written} is {share:.6g}, and so are thresholds"

    def is_positive(self, column: str, pos_label: str | None) -> tuple[str, str, Any]:
        """SQL that is true where a label is positive, and null without one; the positive label as text and as value."""
        name, kind = quoted(column), self.types[column]
        text = f"trim(CAST({name} AS VARCHAR))"
        is_there = f"{name} IS NOT NULL AND {text} <> ''"
        if kind in ("FLOAT", "DOUBLE"):
            is_there += f" AND NOT {is_nan_sql(f'CAST({name} AS DOUBLE)')}"
        found = self._all(f"SELECT DISTINCT {text} FROM {self._from} WHERE {is_there} LIMIT {LISTED}")
        if not found:
            raise TableError(f"{self.name} has no rows with a label in column {column!r}: nothing to tune on")
        labels = {str(value): label_value(str(value), kind, column) for (value,) in sorted(found)}
        classes = classes_of(labels, pos_label, column)
        if classes.absent:
            self._absent = classes.absent
            self.notes.append(self._absent)
        spellings = [one for one, label in labels.items() if label == classes.positive] or [str(classes.positive)]
        is_positive = f"{text} IN ({', '.join(map(literal, spellings))})"
        return f"CASE WHEN {is_there} THEN {is_positive} END", spellings[0], classes.positive

    def rows(
        self,
        *,
        metrics: Iterable[Metric] = (),
        label: str | None = None,
        score: str | None = None,
        weight: str | None = None,
        groups: str | Sequence[str] | None = None,
        pos_label: str | None = None,
        missing: str = "error",
    ) -> Rows:
        """The rows with a label and a score, parsed; they are there as long as the table is open.

        It is an error if one of the `metrics` needs rows of the positive class, and none has the label that was named.
        """
        chosen = {
            "label": self.column(label, "label", LABEL_NAMES),
            "score": self.column(score, "score", SCORE_NAMES),
        }
        if chosen["label"] == chosen["score"]:
            raise TableError(f"{chosen['label']!r} cannot be both the label and the score: say --label and --score")
        if weight is not None:
            chosen["weight"] = self.column(weight, "weight")
        asked = [] if groups is None else [groups] if isinstance(groups, str) else groups
        keys = {f"group_{position}": self.column(one, "by") for position, one in enumerate(asked)}
        if len(set(keys.values())) < len(keys):
            raise TableError(f"a column groups the rows twice: {', '.join(map(repr, keys.values()))}")
        chosen |= keys
        with self._kept(chosen.values()):
            if not self._one(f"SELECT count(*) FROM {self._from}")[0]:
                raise TableError(f"{self.name} has no rows: {self._listed()}, and nothing below the header")
            truth, positive, positive_value = self.is_positive(chosen["label"], pos_label)
            require_positives(self._absent, metrics)
            parts = {"label": truth, "score": self.number(chosen["score"])}
            if weight is not None:
                parts["weight"] = self.number(chosen["weight"])
            parts |= {key: quoted(column) for key, column in keys.items()}
            listed = ", ".join(f"{sql} AS {part}" for part, sql in parts.items())
            self.connection.execute(f"CREATE OR REPLACE TEMP VIEW parsed AS SELECT {listed} FROM {self._from}")
        dropped = self._without_value(chosen, missing)
        is_there = " AND ".join(f"NOT {missing_sql(part, part == 'score')}" for part in parts) if dropped else "true"
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW complete AS SELECT * FROM parsed WHERE {is_there}")
        count, positives = self._one("SELECT count(*), count(*) FILTER (label) FROM complete")
        if not count:
            raise TableError(f"{self.name} has no row left with both a label and a score")
        return Rows(
            connection=self.connection,
            columns=tuple(parts),
            groups=tuple(keys),
            label=chosen["label"],
            score=chosen["score"],
            positive=positive,
            pos_label=as_label(positive_value),
            count=count,
            positives=positives,
            dropped=dropped,
            notes=tuple(self.notes),
        )

    def write(self, expressions: dict[str, str], out: Path, *, looks_up: bool = False) -> int:
        """Copy the whole table with further columns to a file, whole or not at all; return the number of rows.

        Rows stay in their order. An expression that `looks_up` in another table would disturb it, and they are sorted.
        """
        if self._conflicts:
            raise TableError(next(iter(self._conflicts.values())))
        self._require_same_columns()
        added = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in expressions.items())
        clash = [name for name in expressions if name in self.types]
        if clash:
            raise TableError(f"{self.name} has a column {clash[0]!r} already: choose another with --name")
        options = WRITERS.get(out.suffix.lower())
        if options is None:
            raise TableError(f"cannot write {out}: its ending must be one of {', '.join(WRITERS)}")
        query = f"SELECT *, {added} FROM {self._from}"
        if looks_up:
            place = quoted("surecut: place in the file")
            numbered = f"SELECT *, row_number() OVER () AS {place} FROM {self._from}"
            query = f"SELECT * EXCLUDE ({place}), {added} FROM ({numbered}) ORDER BY {place}"
        import duckdb

        with replaced(out) as new:
            try:
                ((rows,),) = self.connection.execute(f"COPY ({query}) TO {literal(str(new))} ({options})").fetchall()
            except duckdb.IOException as error:
                reason = "no space is left there" if "No space left" in str(error) else _first_line(error)
                raise OSError(f"cannot write {out}: {reason}") from None
            except duckdb.Error as error:
                raise self._unreadable(error) from None
        return int(rows)

    def _require_same_columns(self) -> None:
        """Raise where one of several files has a column that another has not: a copy would drop or add it."""
        if len(self._files) == 1 or self._reader == "parquet":
            return
        first, *others = self._files
        expected = self._columns_of(first)
        for other in others:
            found = self._columns_of(other)
            for has, lacks, columns in ((other, first, found - expected), (first, other, expected - found)):
                if columns:
                    raise TableError(f"{has} has a column {min(columns)!r}, and {lacks} has not: write them alike")

    def _columns_of(self, file: str) -> set[str]:
        options = re.sub(r", (union_by_name = true|maximum_sample_files = \d+)", "", self._options)
        return set(described(self.connection, f"read_{self._reader}({names_sql([file])}{options})"))

    def count(self, condition: str) -> int:
        """The number of rows for which a condition holds."""
        return int(self._one(f"SELECT count(*) FROM {self._from} WHERE {condition}")[0])

    @property
    def _from(self) -> str:
        if self._is_kept:
            return "kept"
        return self._parquet or f"read_{self._reader}({names_sql(self._files)}{self._options})"

    def _open(self) -> dict[str, str]:
        """Names and types of the columns; text where the reader's guess of a type or of the encoding fails."""
        import duckdb

        try:
            if self._reader == "parquet":
                opened = opened_parquet(self.connection, self._files)
                self._parquet, self._conflicts = opened.sql, opened.conflicts
                return opened.types
            found = self._described()
        except duckdb.Error as error:
            if self._reader == "csv" and "utf-8" in str(error):
                self._options += f", encoding = '{_encoding_of(self._files[0])}'"
                try:
                    return self._described()
                except duckdb.Error:
                    raise TableError(f"{self.name} is not encoded as UTF-8: save it as UTF-8") from None
            raise self._unreadable(error) from None
        # One column, or columns without names, is what the reader makes of lines that do not agree.
        is_whole_line = len(found) == 1 and any(mark in next(iter(found)) for mark in MARKS)
        if self._reader == "csv" and (is_whole_line or all(re.fullmatch(r"column\d+", name) for name in found)):
            self._require_even_lines(SAMPLED)
        return found

    def _unreadable(self, error: Exception) -> TableError:
        """What to say of a file that cannot be read: which line is to blame, if one is, or what the reader says."""
        if self._reader == "csv":
            try:
                self._require_even_lines()
            except TableError as uneven:
                return uneven
        if "Schema mismatch" in str(error) and len(self._files) > 1:
            told = " ".join(line.strip() for line in str(error).splitlines()[1:4])
            return TableError(
                f"the files that match {self.name} have different columns: choose a narrower pattern ({told})"
            )
        if self._reader == "parquet":
            return TableError(
                f"{self.name} is not a whole Parquet file; was its writing or copying broken off? {_first_line(error)}"
            )
        return TableError(f"cannot read {self.name} as {self._reader}: {_first_line(error)}")

    def _require_even_lines(self, most: int | None = None) -> None:
        """Raise where a line of a CSV file, or one of the first ones, has another number of fields than its header."""
        for path in self._files:
            if not path.endswith(".zst"):
                _require_even_lines(path, self.name if len(self._files) == 1 else path, most)

    def _described(self) -> dict[str, str]:
        return described(self.connection, self._from)

    @contextmanager
    def _kept(self, columns: Iterable[str]) -> Iterator[None]:
        """Some columns in memory, while they are looked at more than once."""
        import duckdb

        chosen = list(dict.fromkeys(columns))
        names = ", ".join(map(quoted, chosen))
        whole = [name for name in chosen if self._reader == "csv" and "INT" in self.types[name]]
        as_text = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in whole)
        source = f"read_csv({names_sql(self._files)}{self._options}, types = {{{as_text}}})" if whole else self._from
        try:
            try:
                self.connection.execute(f"CREATE OR REPLACE TEMP TABLE kept AS SELECT {names} FROM {source}")
                self._settle_integers(whole)
            except duckdb.Error:
                if self._reader != "csv" or "all_varchar" in self._options:
                    raise
                # a value further down is not of the type that the first rows promised: read text, and look again
                self._options = re.sub(r", auto_type_candidates = \[.*?\]", "", self._options) + ", all_varchar = true"
                self.connection.execute(f"CREATE OR REPLACE TEMP TABLE kept AS SELECT {names} FROM {self._from}")
                self.types = self._described()
        except duckdb.Error as error:
            raise self._unreadable(error) from None
        self._is_kept = True
        try:
            yield
        finally:
            self._is_kept = False

    def _settle_integers(self, columns: Iterable[str]) -> None:
        """Make integers of columns that look like them in the first rows; where they are not, text stays text.

        DuckDB would round what it finds further down.
        """
        for column in columns:
            name, text = quoted(column), f"trim({quoted(column)})"
            is_other = f"{text} <> '' AND TRY_CAST(regexp_extract({text}, '^[+-]?[0-9]+$') AS BIGINT) IS NULL"
            ((others,),) = self.connection.execute(f"SELECT count(*) FILTER ({is_other}) FROM kept").fetchall()
            if others:
                self.types[column] = "VARCHAR"
            else:
                number = f"TRY_CAST({text} AS BIGINT)"  # nothing where there are only blanks
                self.connection.execute(f"ALTER TABLE kept ALTER {name} SET DATA TYPE BIGINT USING {number}")
                self.types[column] = "BIGINT"

    def _without_value(self, chosen: dict[str, str], missing: str) -> int:
        """How many rows lack a value; an error unless they are to be dropped."""
        tests = [missing_sql(part, part == "score") for part in chosen]
        counted = ", ".join(f"count(*) FILTER ({test})" for test in [*tests, f"({' OR '.join(tests)})"])
        *each, either = self._one(f"SELECT {counted} FROM parsed")
        if either and missing == "error":
            lacking = ", ".join(f"{n:,} in {name!r}" for name, n in zip(chosen.values(), each, strict=True) if n)
            raise TableError(f"{self.name} has rows without a value: {lacking}. Fill them, or say --missing drop")
        return int(either)

    def _spooled(self) -> str:
        """Standard input as a file, since a table is read more than once."""
        self._folder = tempfile.mkdtemp(prefix="surecut-")
        path = os.path.join(self._folder, "stdin")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with open(path, "rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
        with _opened(path, is_compressed) as file:
            start = file.read(64).lstrip(b"\xef\xbb\xbf \r\n\t")
        suffix = ".parquet" if start.startswith(b"PAR1") else ".jsonl" if start.startswith(b"{") else ".csv"
        suffix += ".gz" if is_compressed else ""
        os.rename(path, path + suffix)
        return path + suffix

    def _one(self, sql: str) -> tuple[Any, ...]:
        (row,) = self._all(sql)
        return row

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a result, since a half-read one blocks the connection."""
        import duckdb

        try:
            return self.connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise self._unreadable(error) from None

    def _listed(self) -> str:
        return f"its columns are {listed(self.columns, 12)}"


def require_apart(source: str, outputs: dict[str, Path], *others: Path) -> None:
    """Raise where a command would write over a file that it reads, or two results to one file.

    `source` is the user's file or pattern, `others` are read besides, and `outputs` are known by their options.
    """
    inputs = [*([] if source == "-" else _files_of(source)), *map(str, others)]
    written: dict[str, Path] = {}
    for option, path in outputs.items():
        if same := next((one for one in inputs if is_same_file(one, path)), None):
            raise TableError(f"{option} {path} is a file that is read, {same}: write to another one")
        if same := next((other for other, one in written.items() if is_same_file(one, path)), None):
            raise TableError(f"{same} and {option} both write to {path}: give them different names")
        written[option] = path


def missing_sql(sql: str, is_number: bool) -> str:
    """SQL that is true where a value is missing; a score that is NaN is missing, too."""
    return f"({sql} IS NULL OR {is_nan_sql(f'CAST({sql} AS DOUBLE)')})" if is_number else f"({sql} IS NULL)"


def _connect() -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise ModuleNotFoundError("reading files needs duckdb: pip install 'surecut[files]'") from None
    connection = duckdb.connect(config={"temp_directory": tempfile.gettempdir()})
    connection.execute("SET enable_progress_bar = false")  # it would write into the output
    return connection


def _files_of(source: str) -> list[str]:
    if os.path.isdir(source):
        raise IsADirectoryError(f"{source} is a folder: write a pattern such as '{source.rstrip('/')}/*.parquet'")
    return files_of(source)


def _reader_of(files: list[str], name: str) -> str:
    for path in files:
        called = name if len(files) == 1 else path
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            raise TableError(f"{called} is empty")
        if os.path.isfile(path) and os.path.getsize(path) <= SMALL and not Path(path).read_bytes().strip():
            raise TableError(f"{called} holds blank lines only")
    suffixes = {os.path.splitext(path.lower().removesuffix(".gz").removesuffix(".zst"))[1] for path in files}
    for suffix in sorted(suffixes - READERS.keys()):
        raise TableError(f"{name} has the ending {suffix or '(none)'!r}; expected one of {', '.join(READERS)}")
    readers = {READERS[suffix] for suffix in suffixes}
    if len(readers) > 1:
        raise TableError(f"the files that match {name} are of different kinds: {', '.join(sorted(suffixes))}")
    return readers.pop()


def _require_even_lines(path: str, name: str, most: int | None) -> None:
    opened, encoding = _opened(path, path.endswith(".gz")), _encoding_of(path)
    with opened as file, io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="") as text:
        first = text.readline()
        mark = max(MARKS, key=first.count)
        lines = csv.reader(chain([first], text), delimiter=mark)
        try:
            expected = len(next(lines))
            for fields in islice(lines, most):
                if fields and len(fields) != expected:
                    raise TableError(
                        f"line {lines.line_num} of {name} has {_fields(len(fields))}, but its header has "
                        f"{_fields(expected)}, separated by {MARKS[mark]}: mend it, or quote a text that holds one"
                    )
        except csv.Error as error:
            raise TableError(f"cannot read {name} from line {lines.line_num} on: {error}") from None


def _opened(path: str, is_compressed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if is_compressed else open(path, "rb")


def _fields(number: int) -> str:
    return f"{number} field{'s' if number > 1 else ''}"


def _encoding_of(path: str) -> str:
    with open(path, "rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "latin-1"


def _plain(name: str) -> str:
    return name.strip().strip("\ufeff").lower()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
