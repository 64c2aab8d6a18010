"""Where results are kept: each cell at once, then one table and a manifest."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surecut._files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from surecut.study.experiment import Cell, Row

RESULTS, MANIFEST, CELLS = "results.csv", "manifest.json", "cells"
REPETITIONS = ("repetition", "block", "model")
"""Parameters that only tell repetitions of the same apart."""


class StoreError(ValueError):
    """Results that are absent, or that belong to another run."""


@dataclass(frozen=True)
class Store:
    """The folder of one experiment.

    ``cells/`` holds one file per finished cell, so that a run that was stopped goes on where it was;
    ``results.csv`` is the table of all of them, ``manifest.json`` tells how it was made. The last two are enough to
    go on from, with the digits that the table has.
    """

    folder: Path

    def open(self, seed: int) -> None:
        """Make the folder, or see that it holds results of the same seed."""
        (self.folder / CELLS).mkdir(parents=True, exist_ok=True)
        mark = self.folder / CELLS / "seed"
        if mark.exists():
            held = mark.read_text().strip()
        else:
            held = str(self.manifest()["seed"]) if self._has_table else str(seed)
        if held != str(seed):
            raise StoreError(
                f"{self.folder} holds cells of seed {held}, and this run has seed {seed}: "
                "choose another --out, or remove the folder"
            )
        write_whole(mark, f"{seed}\n".encode())

    def only_in_table(self) -> list[dict[str, Any]]:
        """The cells that the table has and ``cells/`` has not, as `save` would have kept them.

        Notes
        -----
        A manifest has the computing time of all cells only: each is given an equal share of it.
        """
        if not self._has_table:
            return []
        manifest = self.manifest()
        share = manifest["seconds_of_computing"] / manifest["finished"]
        documents: dict[tuple[Any, ...], dict[str, Any]] = {}
        for record in self.table().to_dict("records"):
            cell = {name: record.pop(name) for name in manifest["parameters"]}
            if not self.is_done(cell):
                empty: dict[str, Any] = {"cell": cell, "seconds": share, "rows": []}
                documents.setdefault(tuple(cell.values()), empty)["rows"].append(record)
        return list(documents.values())

    def is_done(self, cell: Cell) -> bool:
        return self._path(cell).exists()

    def save(self, cell: Cell, rows: list[Row], seconds: float) -> None:
        """Keep what a cell measured: whole or not at all."""
        document = {"cell": dict(cell), "seconds": round(seconds, 3), "rows": rows}
        write_whole(self._path(cell), json.dumps(document).encode())

    def read(self, cell: Cell) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._path(cell).read_text())
        return document

    def write_table(self, cells: list[Cell], manifest: dict[str, Any]) -> None:
        """Put the finished cells, if any, into one table, in the order of the cells, and say how they were made."""
        import pandas as pd

        done = {self._path(cell) for cell in cells if self.is_done(cell)}
        documents = [self.read(cell) for cell in cells if self._path(cell) in done]
        if not documents:
            return
        rows = [document["cell"] | row for document in documents for row in document["rows"]]
        text = io.StringIO()
        pd.DataFrame(rows).to_csv(text, index=False, float_format="%.7g", lineterminator="\n")
        write_whole(self.folder / RESULTS, text.getvalue().encode())
        finished = {
            "cells": len(cells),
            "finished": len(documents),
            "seconds_of_computing": round(sum(document["seconds"] for document in documents), 1),
            "parameters": parameters_of(cells),
            "unfinished": unfinished(cells, [self._path(cell) in done for cell in cells]),
        }
        write_whole(self.folder / MANIFEST, (json.dumps(manifest | finished, indent=2) + "\n").encode())

    def table(self) -> pd.DataFrame:
        """The results."""
        import pandas as pd

        path = self.folder / RESULTS
        if not path.exists():
            raise StoreError(f"there are no results in {self.folder}: surecut study run {self.folder.name} first")
        return pd.read_csv(path, keep_default_na=False, na_values=["", "nan"])

    def manifest(self) -> dict[str, Any]:
        """How the results were made; empty where there are none."""
        path = self.folder / MANIFEST
        try:
            document: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        except ValueError as error:
            raise StoreError(f"{path} cannot be read: {error}") from None
        return document

    @property
    def _has_table(self) -> bool:
        return (self.folder / RESULTS).exists() and self.manifest().get("finished", 0) > 0

    def _path(self, cell: Cell) -> Path:
        name = ",".join(f"{key}={value}" for key, value in cell.items())
        return self.folder / CELLS / (re.sub(r"[^\w=,.+-]", "_", name) + ".json")


def parameters_of(cells: list[Cell]) -> dict[str, str]:
    """The values that each parameter takes.

    >>> parameters_of([{"n": 100, "block": 0}, {"n": 100, "block": 1}])
    {'n': '100', 'block': '0, 1'}
    """
    names = dict.fromkeys(name for cell in cells for name in cell)
    return {name: ", ".join(dict.fromkeys(str(cell[name]) for cell in cells)) for name in names}


def unfinished(cells: list[Cell], done: list[bool]) -> dict[str, str]:
    """How many repetitions are finished of what has not all of them.

    >>> unfinished([{"n": 100, "repetition": 0}, {"n": 100, "repetition": 1}], [True, False])
    {'n 100': '1 of 2'}
    """
    counts: dict[str, list[bool]] = {}
    for cell, is_done in zip(cells, done, strict=True):
        named = ", ".join(f"{name} {value}" for name, value in cell.items() if name not in REPETITIONS)
        counts.setdefault(named, []).append(is_done)
    return {named: f"{sum(these)} of {len(these)}" for named, these in counts.items() if not all(these)}
