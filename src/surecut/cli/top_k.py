"""What commands do with rules of k labels a row between reading a long table and printing."""

from __future__ import annotations

import csv
import difflib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import in_brief
from surecut._labels import listed
from surecut._matrices import is_sparse
from surecut._plurals import counted
from surecut.cli import top_k_tables
from surecut.cli.commands import columns_of
from surecut.cli.positives import TableError
from surecut.decisions.top_k import named
from surecut.sources.columns import LongColumns
from surecut.sources.long_tables import LongMatrices
from surecut.tuning.top_k_frame import class_codes_of, read_long_table, tune_matrices
from surecut.tuning.top_k_request import TopKRequest

if TYPE_CHECKING:
    from surecut.cli.files import Rows
    from surecut.decisions.top_k import TopK
    from surecut.report import TopKSummary


@dataclass(frozen=True)
class TopKOptions:
    """What the options of `tune` say of a long table, as they were typed."""

    top_k: int | None = None
    row: Sequence[str] = ()
    costs: Path | None = None
    reject_cost: float | None = None

    @property
    def are_given(self) -> bool:
        """Whether k labels a row are asked for; an option that goes with them needs `--top-k`."""
        if self.top_k is not None:
            return True
        given = {"--row": self.row, "--costs": self.costs, "--reject-cost": self.reject_cost is not None}
        if found := [option for option, value in given.items() if value]:
            raise ValueError(
                f"{found[0]} goes with --top-k, which says how many labels each row gets: --top-k 1 --row id"
            )
        return False

    def request(self, metrics: Sequence[str], by: Sequence[str], **options: Any) -> dict[str, Any]:
        """What is asked of `tune_top_k_frame`, looked at before anything is read."""
        for option, found in (("--row", self.row), ("--by", by)):
            if not found:
                what = "row" if option == "--row" else "label"
                raise ValueError(
                    f"--top-k takes a long table, with a line for each row and label: say with {option} which column "
                    f"names the {what} of a line. UNPIVOT (DuckDB) or melt (pandas) makes one of a wide table, which "
                    "has a column of scores for each label"
                )
        if metrics and self.has_costs:
            raise ValueError("--costs and --reject-cost are what the rule is best for: leave out --metric")
        metric = metrics[0] if len(metrics) == 1 else list(metrics) or "f1"
        request = {"metric": metric, "k": self.top_k, **options}
        TopKRequest.of(multiclass=self.top_k == 1, missing="error", **request)
        return request

    @property
    def has_costs(self) -> bool:
        """Whether actions have costs."""
        return self.costs is not None or self.reject_cost is not None


def refuse_other_options(given: dict[str, Any]) -> None:
    """Raise where an option is given that a rule of k labels a row does not have, and say why."""
    reasons = {
        "--constraint": "a rule of k labels a row is tuned for its metric alone",
        "--confidence": "certify says what the rule is worth on new rows",
        "--weights": "certify says what the rule is worth on new rows",
        "--prior": "give rows of each class the weight that they have in deployment, with --weight",
        "--upper, --lower, --condition, --gain and --zones": "zones are of one score",
        "--bands": "zones are of one score",
    }
    for option, reason in reasons.items():
        if given.get(option):
            raise ValueError(f"{option} cannot be used with --top-k: {reason}")


@dataclass(frozen=True)
class TunedTopK:
    """Rules of k labels a row, one for each metric, and what was read."""

    decisions: Sequence[TopK]
    matrices: LongMatrices
    read: Rows

    def show(self) -> None:
        """Print what was read, and each rule."""
        top_k_tables.read(self.matrices, self.read)
        for rule in self.decisions:
            top_k_tables.rule(rule)

    def document(self) -> dict[str, Any]:
        """The rules as JSON has them."""
        return {"lines": len(self.read), "rows": len(self.matrices), "rules": [one.to_dict() for one in self.decisions]}

    def summary(self, title: str) -> TopKSummary:
        """What the page shows: the first rule."""
        from surecut.report import summarize_top_k

        return summarize_top_k(self.decisions[0], title=title)


def tuned_top_k(rows: Rows, options: TopKOptions, request: dict[str, Any], missing: str, notes: list[str]) -> TunedTopK:
    """The rules of a long table, which is grouped by rows and then by labels."""
    matrices = matrices_of(rows, len(options.row), missing, notes)
    costs = None
    if options.costs is not None:
        costs = costs_of(options.costs, matrices.labels)
        notes += unmatched_actions(list(costs), matrices.labels)
    found = tune_matrices(matrices, costs=costs, reject_cost=options.reject_cost, **request)
    return TunedTopK(list(found.values()) if isinstance(found, dict) else [found], matrices, rows)


def matrices_of(rows: Rows, row_columns: int, missing: str, notes: list[str]) -> LongMatrices:
    """The long table of a file as matrices; what there is to say of it goes to the notes."""
    with _noted(notes):
        matrices = read_long_table(rows.relation, LongColumns(columns_of(rows), row_columns), missing)
    if without := matrices.pairs_without_a_score:
        pairs = f"{without:,} of {len(matrices) * len(matrices.labels):,} pairs of a row and a label"
        verb, they = ("has", "it is") if without == 1 else ("have", "they are")
        notes.append(f"{pairs} {verb} no line with a score: {they} never predicted")
    return matrices


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    """Warnings become notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [str(one.message) for one in caught]


def costs_of(path: Path, classes: Sequence[Any]) -> dict[Any, list[float]]:
    """What actions cost, from a CSV file: a line for each true class, a column for each action.

    The first line names the actions, and the first column the classes.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [[cell.strip() for cell in line] for line in csv.reader(file) if any(map(str.strip, line))]
    shape = f"{path} must hold a line for each true class and a column for each action, with their names before them"
    if len(lines) < 2 or len(lines[0]) < 2:
        raise TableError(f"{shape}, got {counted(len(lines), 'line')}")
    own = {str(one): one for one in classes}
    actions = [own.get(name, name) for name in lines[0][1:]]
    if len(set(actions)) < len(actions):
        raise TableError(f"{shape}, and names an action twice: {', '.join(lines[0][1:])}")
    found: dict[Any, list[float]] = {}
    for name, *cells in lines[1:]:
        if name not in own or own[name] in found:
            which = "twice" if name in own else f"and the classes are {', '.join(map(repr, list(own)[:20]))}"
            raise TableError(f"{path} names the class {in_brief(repr(name))}, {which}")
        if len(cells) != len(actions):
            raise TableError(f"{shape}: the class {name!r} has {counted(len(cells), 'cost')}")
        try:
            found[own[name]] = [float(cell) for cell in cells]
        except ValueError:
            raise TableError(f"{path} must hold numbers, got {in_brief(', '.join(cells))} for {name!r}") from None
    if lacking := [name for name, one in own.items() if one not in found]:
        raise TableError(f"{path} lacks the costs of the class {in_brief(repr(lacking[0]))}")
    return {action: [found[one][place] for one in classes] for place, action in enumerate(actions)}


def unmatched_actions(actions: Sequence[Any], classes: Sequence[Any]) -> list[str]:
    """What to say where an action is no class while a class is no action: one of them may be misspelt."""
    others = [str(one) for one in actions if one not in classes]
    lacking = [str(one) for one in classes if one not in actions]
    if not others or not lacking:
        return []
    near = [found[0] for one in others if (found := difflib.get_close_matches(one, lacking, n=1))]
    what = "is an action and no class" if len(others) == 1 else "are actions and no classes"
    meant = f" (did you mean {listed(near, 5)}?)" if near else ""
    never = "it is never predicted" if len(lacking) == 1 else "they are never predicted"
    return [f"{listed(others, 5)} {what}{meant}; no action is called {listed(lacking, 5)}, so {never}"]


# Rows for a saved rule


def rows_of_rule(
    matrices: LongMatrices, rule: TopK, file: str, notes: list[str], unknown: str = "error"
) -> tuple[Any, Any]:
    """Truths and scores of a file as `certify` and `check_drift` take them: columns are those of the rule.

    Labels that the rule does not know are an error, or dropped; of labels that the file has not, no row has a score.
    """
    position = {str(label): place for place, label in enumerate(rule.labels)}
    place = np.array([position.get(str(label), -1) for label in matrices.labels])
    others = [label for label, one in zip(matrices.labels, place.tolist(), strict=True) if one < 0]
    if len(others) == len(place):
        raise TableError(
            f"no label of {file} is known to the rule: the file has labels such as {in_brief(repr(others[0]))}, the "
            f"rule {in_brief(repr(rule.labels[0]))}; are these the column of --by and the file that you mean?"
        )
    if others:
        some = f"{counted(len(others), 'label')} of {file}, such as {in_brief(repr(others[0]))}"
        if unknown == "error":
            raise TableError(f"{some}, {'is' if len(others) == 1 else 'are'} unknown to the rule: remove their lines")
        notes.append(
            f"{some}: the rule does not know {'it' if len(others) == 1 else 'them'}, and their lines are dropped"
        )
    truth, scores = (_with_columns(one, place, len(rule)) for one in (matrices.truth, matrices.scores))
    codes = class_codes_of(LongMatrices(truth, scores, rule.labels, None)) if rule.is_multiclass else None
    if codes is not None:
        return named(rule.labels)[codes], scores
    if rule.is_multiclass:
        raise TableError(
            f"the rule is of rows with one class each: each row of {file} needs a score for each of its "
            f"{len(rule):,} classes, and one line that is true"
        )
    return truth, scores


def _with_columns(matrix: Any, place: Any, columns: int) -> Any:
    """A matrix with its columns at other places, dense as long as all of them are there."""
    known = np.flatnonzero(place >= 0)
    if not is_sparse(matrix) and len(known) == columns:
        found = np.empty((len(matrix), columns), dtype=matrix.dtype)
        found[:, place[known]] = matrix[:, known]
        return found
    from scipy import sparse

    if is_sparse(matrix):
        stored = sparse.coo_array(matrix)
        row, column = stored.coords
        values = stored.data
    else:
        row, column = (one.ravel() for one in np.indices(matrix.shape))
        values = matrix.ravel()
    kept = place[column] >= 0
    return sparse.csr_array((values[kept], (row[kept], place[column[kept]])), shape=(matrix.shape[0], columns))
