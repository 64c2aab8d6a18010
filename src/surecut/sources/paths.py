"""Which files a path means, and of which kind they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from surecut.sources.text_numbers import literal

KINDS = {
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
"""How files are read, by their ending; CSV and JSON lines also with `.gz` or `.zst` behind it."""

AMBIGUOUS = (".txt", ".tab", ".json")
"""Endings of files that often stand beside tables: a folder means them only where it has nothing else."""

SMALL = 4096
"""Bytes up to which a file is looked at for being blank."""


def is_remote(path: str) -> bool:
    return "://" in path


def ending_of(path: str) -> str:
    """The ending that says how a file is read, in lower case, without that of its compression.

    >>> ending_of("rows.CSV.gz"), ending_of("https://example.com/rows.parquet?version=1")
    ('.csv', '.parquet')
    """
    plain = path.partition("?")[0] if is_remote(path) else path
    return os.path.splitext(plain.lower().removesuffix(".gz").removesuffix(".zst"))[1]


def files_of(path: str) -> list[str]:
    """The files that a path means: the one of exactly this name, or all that match it as a pattern, in order.

    A folder means the Parquet files in it, at any depth, or else its CSV or its JSON lines files. What lies on a server
    is for DuckDB to find.
    """
    if is_remote(path) or os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        return _files_in(path)
    found = _matching(path)
    if not found:
        shown = path if path.strip() else repr(path)
        raise FileNotFoundError(f"{'no file matches' if glob.has_magic(path) else 'there is no file'} {shown}")
    return found


def _matching(pattern: str) -> list[str]:
    """The files that match a pattern. ``**`` is this folder and all below it, but for hidden ones."""
    parts = pattern.replace(os.sep, "/").split("/")
    if "**" not in parts:
        return sorted(one for one in glob.glob(pattern) if not os.path.isdir(one))
    deep = parts.index("**")
    top, rest = "/".join([*parts[:deep], ""]), "/".join(parts[deep + 1 :]) or "*"
    inside = [one for start in (glob.glob(top) if top else [""]) for one in _folders(start, ())]
    return sorted({one for folder in inside for one in _matching(glob.escape(folder) + rest)})


def _folders(folder: str, above: tuple[str, ...]) -> Iterator[str]:
    """A folder and all below it. Links are followed, unless they lead back to a folder above: that has no end."""
    place = os.path.realpath(folder or ".")
    if place in above:
        return
    yield folder
    try:
        with os.scandir(folder or ".") as entries:
            below = sorted(one.name for one in entries if not one.name.startswith(".") and one.is_dir())
    except OSError:  # not ours to read, or gone
        return
    for name in below:
        yield from _folders(f"{folder}{name}/", (*above, place))


def _files_in(folder: str) -> list[str]:
    inside = _matching(os.path.join(glob.escape(folder), "**", "*"))
    known = [one for one in inside if ending_of(one) in KINDS]
    tables = [one for one in known if ending_of(one) not in AMBIGUOUS] or known
    if not tables:
        raise FileNotFoundError(f"there is no file to read in the folder {folder}: expected one of {', '.join(KINDS)}")
    by_kind: dict[str, list[str]] = {}
    for one in tables:
        by_kind.setdefault(KINDS[ending_of(one)], []).append(one)
    if len(by_kind) > 1 and "parquet" not in by_kind:
        raise ValueError(
            f"the folder {folder} holds both CSV and JSON lines files: choose by a pattern such as "
            f"'{os.path.join(folder, '*.csv')}'"
        )
    return by_kind.get("parquet") or tables


def kind_of(files: Sequence[str], name: str) -> str:
    """How files are read: as csv, json or parquet. `name` is what the user calls them all."""
    endings = {ending_of(one) for one in files}
    for ending in sorted(endings - KINDS.keys()):
        raise ValueError(f"{name} has the ending {ending or '(none)'!r}; expected one of {', '.join(KINDS)}")
    kinds = {KINDS[ending] for ending in endings}
    if len(kinds) > 1:
        raise ValueError(f"the files that match {name} are of different kinds: {', '.join(sorted(endings))}")
    for one in files:
        called = name if len(files) == 1 else one
        if os.path.isfile(one) and os.path.getsize(one) == 0:
            raise ValueError(f"{called} is empty")
        if os.path.isfile(one) and os.path.getsize(one) <= SMALL and not Path(one).read_bytes().strip():
            raise ValueError(f"{called} holds blank lines only")
    kind = kinds.pop()
    packed = [one for one in files if kind == "parquet" and one.lower().endswith((".gz", ".zst"))]
    if packed:
        raise ValueError(f"{packed[0]} is a Parquet file that was compressed once more: unpack it first")
    return kind


def names_sql(files: Iterable[str]) -> str:
    """Files as DuckDB takes them: none of their names is a pattern."""
    return f"[{', '.join(literal(one if is_remote(one) else glob.escape(one)) for one in files)}]"


def is_same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file: by the same name, a link, or another way there."""
    one, other = Path(first), Path(second)
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)  # of a loop of links, too
