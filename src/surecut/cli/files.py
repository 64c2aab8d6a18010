"""The table that a command reads: which columns hold the label and the score, and the rows that have both.

`surecut.sources.files` reads the files. What is left to the command is to guess the names of columns, to read standard
input, to say what it found, and to write a copy.
"""

from __future__ import annotations

import difflib
import gzip
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut._files import replaced
from surecut._labels import LISTED, listed
from surecut.cli.positives import LINES, MORE_CLASSES, TableError, as_label, classes_of, label_value
from surecut.positive_class import require_positives
from surecut.sources.columns import is_nan_sql, require_distinct
from surecut.sources.files import Files
from surecut.sources.paths import files_of, is_same_file
from surecut.sources.text_numbers import literal, quoted

if TYPE_CHECKING:
    import duckdb
    from numpy.typing import NDArray

    from surecut.metrics import Metric

LABEL_NAMES = ("label", "labels", "y", "y_true", "target", "truth", "class", "actual", "outcome")
SCORE_NAMES = ("score", "scores", "p", "prob", "probability", "y_score", "y_prob", "proba", "pred_proba", "prediction")

WIDE = (
    ". Is this a wide table, with a column of scores for each label? UNPIVOT (DuckDB) or melt (pandas) makes a long "
    "one of it, with a line for each row and label"
)
"""What a table may be that lacks the columns of a long one."""

WRITERS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".parquet": "FORMAT parquet, COMPRESSION zstd",
    ".pq": "FORMAT parquet, COMPRESSION zstd",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}

SCORE, PLACE = "surecut: score", "surecut: place in the file"
"""Columns that are added to those of a file, and not written."""


class Arrays(NamedTuple):
    """Columns in memory; groups as positions among their names."""

    is_positive: NDArray[np.bool_]
    scores: NDArray[Any]
    weights: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None
    group_names: list[Any]

    def where(self, chosen: NDArray[np.bool_]) -> Arrays:
        """Some of the rows; groups without rows lose their names."""
        names, groups = self.group_names, self.groups
        if groups is not None:
            present, groups = np.unique(groups[chosen], return_inverse=True)
            names = [names[group] for group in present]
        weights = None if self.weights is None else self.weights[chosen]
        return Arrays(self.is_positive[chosen], self.scores[chosen], weights, groups, names)


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
    """A file, a pattern of files, a folder, a URL, or standard input (``-``), open for reading.

    Use it as a context manager: what it needs to keep is removed at the end.
    """

    def __init__(self, source: str) -> None:
        self.notes: list[str] = []
        self._absent = ""
        self._folder: str | None = None
        try:
            path = self._spooled() if source == "-" else source
            self.files = Files(path, name="standard input" if source == "-" else source, in_order=True)
        except BaseException:
            self._remove_folder()
            raise
        self.name, self.connection = self.files.name, self.files.connection

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def types(self) -> dict[str, str]:
        return self.files.types

    def column(
        self,
        asked: str | None,
        purpose: str,
        guesses: Iterable[str] = (),
        *,
        taken: Collection[str] = (),
        hint: str = "",
    ) -> str:
        """The file's own name of the column that was asked for: exactly, or but for case and blanks, or by position.

        One that is not asked for is the first of the `guesses` that is there, and not `taken` for another purpose. The
        `hint` says what else may be wrong where there is none.
        """
        known = [*self.types, *self.files.conflicts]
        if asked is None:
            plain = {_plain(name): name for name in known if name not in taken}
            named = [plain[guess] for guess in guesses if guess in plain]
            if not named:
                raise TableError(f"which column holds the {purpose}? Say --{purpose} NAME; {self._listed()}{hint}")
        else:
            alike = [name for name in known if _plain(name) == _plain(asked)]
            named = [asked] if asked in alike else alike
            if len(named) != 1:
                near = difflib.get_close_matches(_plain(asked), map(_plain, known), n=1)
                meant = f"did you mean {next(c for c in known if _plain(c) == near[0])!r}? " if near else ""
                raise TableError(f"{self.name} has no column {asked!r}: {meant}{self._listed()}{'' if near else hint}")
        self.files.require(named[:1])
        return named[0]

    def number(self, column: str) -> str:
        """SQL of a column as a number, with a note where its text has percent signs."""
        number = self.files.number(column)
        if number.in_percent:
            text = f"trim({quoted(column)})"
            (written,) = self.files.ask(f"any_value({text}) FILTER (ends_with({text}, '%'))")
            share = float(written.rstrip("% ").replace(",", ".")) / 100
            self.notes.append(
                f"column {column!r} holds percentages, read as shares: {written} is {share:.6g}, and so are thresholds"
            )
        return number.sql

    def is_positive(self, column: str, pos_label: str | None, is_long: bool = False) -> tuple[str, str, Any]:
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
        classes = classes_of(labels, pos_label, column, LINES if is_long else MORE_CLASSES)
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
        is_long: bool = False,
    ) -> Rows:
        """The rows with a label and a score, parsed; they are there as long as the table is open.

        It is an error if one of the `metrics` needs rows of the positive class, and none has the label that was named.
        Of a table that `is_long`, where rows consist of lines, all lines are there: see `read_long_table`.
        """
        hint = WIDE if is_long else ""
        asked = [] if groups is None else [groups] if isinstance(groups, str) else groups
        keys = {f"group_{position}": self.column(one, "by", hint=hint) for position, one in enumerate(asked)}
        require_distinct(list(keys.values()), {}, TableError)
        weights = {} if weight is None else {"weight": self.column(weight, "weight")}
        taken = [*keys.values(), *weights.values()]
        chosen = {
            "label": self.column(label, "label", LABEL_NAMES, taken=taken),
            "score": self.column(score, "score", SCORE_NAMES, taken=taken, hint=hint),
        }
        if chosen["label"] == chosen["score"]:
            raise TableError(f"{chosen['label']!r} cannot be both the label and the score: say --label and --score")
        chosen |= weights
        require_distinct(list(keys.values()), chosen, TableError)
        chosen |= keys
        self.files.keep(chosen.values())
        self.files.require_rows()
        truth, positive, positive_value = self.is_positive(chosen["label"], pos_label, is_long)
        require_positives(self._absent, metrics)
        parts = {"label": truth, "score": self.number(chosen["score"])}
        if weight is not None:
            parts["weight"] = self.number(chosen["weight"])
        parts |= {key: quoted(column) for key, column in keys.items()}
        listed = ", ".join(f"{sql} AS {part}" for part, sql in parts.items())
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW parsed AS SELECT {listed} FROM {self._from}")
        dropped = 0 if is_long else self._without_value(chosen, missing)
        is_there = " AND ".join(f"NOT {missing_sql(part, part == 'score')}" for part in parts) if dropped else "true"
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW complete AS SELECT * FROM parsed WHERE {is_there}")
        count, positives = self.files.ask("count(*), count(*) FILTER (label)", "complete")
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

    def with_score(self, score: str, keys: Sequence[str], *, as_text: bool) -> duckdb.DuckDBPyRelation:
        """All columns, and beside them the score as a number, the group keys, and the row's place in the file.

        The former are those that will be copied: `as_text` leaves them as they are written, 0.50 stays 0.50.
        """
        self.files.require()
        self.files.settle([score, *keys] if as_text else None)
        copied = [quoted(name) if as_text else f"{self.files.typed(name)} AS {quoted(name)}" for name in self.types]
        beside = {SCORE: self.number(score)} | dict(zip(key_names(keys), map(self.files.typed, keys), strict=True))
        added = [f"{sql} AS {quoted(name)}" for name, sql in beside.items()]
        place = f"row_number() OVER () AS {quoted(PLACE)}"
        return self.connection.sql(f"SELECT {', '.join([*copied, *added, place])} FROM {self._from}")

    def write(self, columns: dict[str, str], rows: duckdb.DuckDBPyRelation, out: Path, *, sort: bool) -> int:
        """Copy the table with further columns of `rows` to a file, whole or not at all; return the number of rows.

        Rows stay in their order; a join would disturb it, and then they have to be sorted.
        """
        added = {name.casefold() for name in columns}
        if clash := [name for name in self.types if name.casefold() in added]:
            raise TableError(f"{self.name} has a column {clash[0]!r} already: choose another name with --name")
        options = WRITERS.get(out.suffix.lower())
        if options is None:
            raise TableError(f"cannot write {out}: its ending must be one of {', '.join(WRITERS)}")
        import duckdb

        rows.create_view("copied", replace=True)
        listed = [*map(quoted, self.types), *(f"{sql} AS {quoted(name)}" for name, sql in columns.items())]
        query = f"SELECT {', '.join(listed)} FROM copied {f'ORDER BY {quoted(PLACE)}' if sort else ''}"
        with replaced(out) as new:
            try:
                # `new` is a temporary file already; one of DuckDB's own would stay behind after an error
                copy = f"COPY ({query}) TO {literal(str(new))} ({options}, USE_TMP_FILE false)"
                ((copied,),) = self.connection.execute(copy).fetchall()
                self.files.require_unchanged()
            except duckdb.IOException as error:
                reason = "no space is left there" if "No space left" in str(error) else str(error).splitlines()[0]
                raise OSError(f"cannot write {out}: {reason}") from None
            except duckdb.Error as error:
                raise self.files.explained(error) from error
        return int(copied)

    @property
    def _from(self) -> str:
        return self.files.sql

    def _without_value(self, chosen: dict[str, str], missing: str) -> int:
        """How many rows lack a value; an error unless they are to be dropped."""
        tests = [missing_sql(part, part == "score") for part in chosen]
        counted = ", ".join(f"count(*) FILTER ({test})" for test in [*tests, f"({' OR '.join(tests)})"])
        *each, either = self.files.ask(counted, "parsed")
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
        with gzip.open(path, "rb") if is_compressed else open(path, "rb") as file:
            start = file.read(64).lstrip(b"\xef\xbb\xbf \r\n\t")
        suffix = ".parquet" if start.startswith(b"PAR1") else ".jsonl" if start.startswith(b"{") else ".csv"
        suffix += ".gz" if is_compressed else ""
        os.rename(path, path + suffix)
        return path + suffix

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a result, since a half-read one blocks the connection."""
        with self.files.reading():
            return self.connection.execute(sql).fetchall()

    def _listed(self) -> str:
        return f"its columns are {listed(list(self.types), 12)}"


def require_apart(source: str, outputs: dict[str, Path], *others: Path) -> None:
    """Raise where a command would write over a file that it reads, or two results to one file.

    `source` is the user's file or pattern, `others` are read besides, and `outputs` are known by their options.
    """
    inputs = [*([] if source == "-" else files_of(source)), *map(str, others)]
    written: dict[str, Path] = {}
    for option, path in outputs.items():
        if same := next((one for one in inputs if is_same_file(one, path)), None):
            named = f"{option} {path} is a file that is read" + ("" if same == str(path) else f", {same}")
            raise TableError(f"{named}: write to another one")
        if same := next((other for other, one in written.items() if is_same_file(one, path)), None):
            raise TableError(f"{same} and {option} both write to {path}: give them different names")
        written[option] = path


def key_names(keys: Sequence[str]) -> list[str]:
    """The names of the group keys beside the columns of a file."""
    return [f"surecut: key {number}" for number in range(len(keys))]


def missing_sql(sql: str, is_number: bool) -> str:
    """SQL that is true where a value is missing; a score that is NaN is missing, too."""
    return f"({sql} IS NULL OR {is_nan_sql(f'CAST({sql} AS DOUBLE)')})" if is_number else f"({sql} IS NULL)"


def _plain(name: str) -> str:
    return name.strip().strip("\ufeff").lower()
