"""What commands do between reading a file and printing: cuts from its rows, with their promises and their page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut._inputs import in_brief
from surecut._plurals import counted
from surecut.certificates.certificate import Certificate
from surecut.certificates.certifying import certify
from surecut.certificates.label_rows import TableRows
from surecut.cli import printing
from surecut.cli.files import SCORE, SCORE_NAMES, key_names
from surecut.cli.positives import TableError
from surecut.core.tally import ScoreTally
from surecut.decisions import saving
from surecut.decisions.cut import Cut
from surecut.decisions.multilabel import MultilabelCut
from surecut.overlap import TRAINING
from surecut.sources.applying import AppliedDecision, UnpredictedRows
from surecut.sources.columns import Columns, require_distinct
from surecut.sources.text_numbers import literal, quoted
from surecut.tuning.frame import require_counted, tally_table, tune_table
from surecut.tuning.request import Request
from surecut.tuning.tune import TalliedRows, tune

if TYPE_CHECKING:
    from surecut.cli.files import Arrays, Rows, Table
    from surecut.report import LabelsSummary, Summary
    from surecut.sources.applying import Predictions

PREDICTED = "surecut: predicted"

LIKELY = 0.95
"""The confidence of a page's band, where none is asked for."""


@dataclass(frozen=True)
class TunedCuts:
    """Cuts of one column of scores, one for each metric; a certificate of each, where constraints are promised."""

    cuts: Sequence[Cut]
    certificates: Sequence[Certificate] = ()
    tally: ScoreTally | None = None
    confidence: float | None = None

    def show(self) -> None:
        """Print the table."""
        printing.cuts(self.cuts, self.certificates)

    def documents(self) -> list[dict[str, Any]]:
        """The cuts as JSON has them, with their certificates."""
        documents = [cut.to_dict() for cut in self.cuts]
        for document, certificate in zip(documents, self.certificates, strict=False):
            document["certificate"] = printing.plain(asdict(certificate))
        return documents

    def summary(self, title: str) -> Summary:
        """What the page shows: it opens at the first cut."""
        from surecut.report import summarize

        if self.tally is None:
            raise ValueError("the page needs a tally of the rows")
        first, *others = self.cuts
        metrics = [cut.metric for cut in others]
        return summarize(self.tally, cut=first, metrics=metrics, confidence=self.confidence or LIKELY, title=title)


@dataclass(frozen=True)
class TunedLabels:
    """Cuts of many labels, one set for each metric, and the labels' tallies."""

    cuts: Sequence[MultilabelCut]
    tallies: Sequence[ScoreTally] = ()

    def show(self) -> None:
        """Print each set."""
        for cut in self.cuts:
            printing.labels(cut)

    def documents(self) -> list[dict[str, Any]]:
        """The cuts as JSON has them."""
        return [cut.to_dict() for cut in self.cuts]

    def summary(self, title: str) -> LabelsSummary:
        """What the page shows: the first set."""
        from surecut.report import summarize_labels

        return summarize_labels(self.cuts[0], self.tallies, title=title)


def tuned_cuts(rows: Rows, request: Request, has_page: bool) -> TunedCuts:
    """The cut for each metric. A tally is made for the page, and for a certificate beside promised constraints."""
    request, columns = replace(request, pos_label=rows.pos_label), _columns(rows)
    if request.confidence is None or not request.constraints:
        cuts: Any = tune_table(rows.relation, columns, request)
        if not has_page:
            return TunedCuts(cuts)
        tally = tally_table(rows.relation, columns, request, [cut.threshold for cut in cuts])
        tally = tally if request.prior is None else tally.with_prior(request.prior)
        return TunedCuts(cuts, (), tally, request.confidence)
    require_counted(rows.relation, columns, request)
    tally = tally_table(rows.relation, columns, request)
    cuts = tune(TalliedRows(tally), request)
    tally = tally if request.prior is None else tally.with_prior(request.prior)
    promised: dict[str, Any] = {"confidence": request.confidence, "method": "uniform", "weights": request.weights}
    certificates = [certify(cut, tally=tally, **promised) for cut in cuts]
    return TunedCuts(cuts, certificates, tally, request.confidence)


def tally_to_certify(rows: Rows, cut: Cut) -> ScoreTally | None:
    """A tally of rows for ``method="uniform"`` without all rows in memory; None where the rows themselves are needed.

    They are where they have to be compared with the rows that the cut or its model has seen. Promised constraints of a
    cut from more rows than memory should hold were judged between ranges of scores: `tally_table` finds the same ones.
    """
    if cut.out_of_fold or any(sample.role == TRAINING for sample in cut.seen):
        return None
    request = Request.of("accuracy", pos_label=rows.pos_label)
    return tally_table(rows.relation, _columns(rows), request, [cut.threshold])


def tuned_by(rows: Rows, request: Request, has_page: bool) -> TunedLabels:
    """A cut for each group of rows, or one for all of them; and the groups' tallies, which the page needs."""
    request = replace(request, pos_label=rows.pos_label)
    cuts: Any = tune_table(rows.relation, _columns(rows), request)
    return TunedLabels(cuts, label_tallies(rows.arrays(), cuts[0]) if has_page else ())


def _columns(rows: Rows) -> Columns:
    """The columns of parsed rows."""
    return Columns("score", "label", "weight" if "weight" in rows.columns else None, rows.groups)


def known_rows(found: Arrays, cut: MultilabelCut, by: Sequence[str], file: str) -> tuple[Arrays, list[str]]:
    """The rows of a file whose label is one of the cut's, if there are any, and what is to be said of the others."""
    known = {str(label) for label in cut.labels}
    is_known = np.array([str(name) in known for name in found.group_names], dtype=bool)[found.groups]
    dropped = len(is_known) - int(is_known.sum())
    if not dropped or dropped == len(is_known):
        return found, []
    labels = ", ".join(map(repr, by))
    some = f"{dropped:,} of {counted(len(is_known), 'row')} of {file} have a label in {labels}"
    return found.where(is_known), [f"{some} that is none of the cut's: they are dropped"]


def label_tallies(found: Arrays, cut: MultilabelCut, file: str = "the file", hint: str = "") -> list[ScoreTally]:
    """A tally of each of a cut's labels, in their order, from rows that are grouped by label."""
    by = row_labels(found, cut, file=file, hint=hint)
    return TableRows.of(cut, found.is_positive, found.scores, by, found.weights).tallies()


def row_labels(
    found: Arrays, cut: MultilabelCut, columns: int | None = None, *, file: str = "the file", hint: str = ""
) -> Any:
    """The cut's label of each row, from rows that are grouped by some columns, of which the first hold the label.

    Labels that the cut does not know are an error; its `hint` says what else a command can do with their rows.
    """
    known = {str(label): label for label in cut.labels}
    names = [name if columns is None else _first(name, columns) for name in found.group_names]
    if unknown := sorted({str(name) for name in names} - set(known)):
        such = in_brief(repr(unknown[0]))
        if not any(str(name) in known for name in names):
            raise TableError(
                f"no label of {file} is known to the cut: the file has labels such as {such}, the cut "
                f"{in_brief(repr(str(cut.labels[0])))}; are these the column of --by and the file that you mean?"
            )
        some = f"{counted(len(unknown), 'label')} of {file} {'is' if len(unknown) == 1 else 'are'}"
        raise TableError(
            f"{some} not among the cut's {counted(len(cut), 'label')}, such as {such}: remove these rows, or tune on "
            f"them too{hint}"
        )
    labels = np.empty(len(names), dtype=object)
    labels[:] = [known[str(name)] for name in names]
    return labels[found.groups].tolist()


def row_groups(found: Arrays) -> Any:
    """What the last of the columns holds by which rows are grouped, as numbers."""
    last = [name[-1] if isinstance(name, tuple) else name for name in found.group_names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(last))}
    return np.array([numbers[name] for name in last])[found.groups]


def _first(name: Any, columns: int) -> Any:
    """The label of so many columns out of a tuple of keys."""
    parts = name if isinstance(name, tuple) else (name,)
    return parts[0] if columns == 1 else parts[:columns]


def is_multilabel(path: Path) -> bool:
    """Whether a saved cut is one of many labels."""
    return saving.is_saved_as(path, saving.MULTILABEL_CUT)


def apply_cut(
    table: Table,
    path: Path,
    out: Path,
    *,
    score: str | None,
    by: Sequence[str],
    name: str,
    negative: str | None,
    missing: str | None,
    unknown: str | None,
) -> Predictions:
    """Copy a table with a column that says which rows are cut positive; return the numbers of rows.

    The column holds true and false, or the cut's positive label and the `negative` one.
    """
    cut = load_label_cut(path) if is_multilabel(path) else Cut.load(path)
    unpredicted = UnpredictedRows.of(cut, missing, unknown)
    _require_keys(cut, path, by)
    column, keys = table.column(score, "score", SCORE_NAMES), tuple(table.column(one, "by") for one in by)
    require_distinct(keys, {"score": column}, TableError)
    positive = "1" if cut.pos_label is None else str(cut.pos_label)
    if positive == negative:
        raise ValueError(f"{negative!r} is the cut's positive label: --negative names the other one")
    rows = table.with_score(column, keys, as_text=out.suffix.lower() in (".csv", ".tsv"))
    asked = Columns(SCORE, SCORE, by=tuple(key_names(keys)))
    applied = AppliedDecision.of(nw.from_native(rows), cut, asked, unpredicted)
    with table.files.reading():
        found = applied.counted()
    table.notes += [sentence for _, sentence in unpredicted.settle(found, column, keys)]
    predicted = quoted(PREDICTED)
    if negative is not None:
        predicted = f"CASE WHEN {predicted} THEN {literal(positive)} ELSE {literal(negative)} END"
    table.write({name: predicted}, applied.with_column(PREDICTED), out, sort=bool(keys))
    return found


def _require_keys(cut: Cut | MultilabelCut, path: Path, by: Sequence[str]) -> None:
    """Raise unless `by` names the columns that the labels of a cut come from."""
    if isinstance(cut, Cut):
        if by:
            raise ValueError(f"{path} holds a single cut: leave out --by")
        return
    if not by:
        raise ValueError(
            f"{path} holds the cuts of {counted(len(cut), 'label')}: say with --by which column holds the label"
        )
    columns = len(cut.labels[0]) if isinstance(cut.labels[0], tuple) else 1
    if len(by) != columns:
        raise ValueError(
            f"the labels of {path} come from {counted(columns, 'column')}, such as {cut.labels[0]!r}: say --by as "
            "often, in the same order"
        )


def positive_text(cut: Cut | MultilabelCut, asked: str | None) -> str | None:
    """Which label in a file is positive: the one that was asked for, or the cut's own."""
    return str(cut.pos_label) if asked is None and cut.pos_label is not None else asked


def load_cut(path: Path) -> Cut:
    """A saved cut of one label."""
    if is_multilabel(path):
        raise ValueError(f"{path} holds the cuts of many labels: say with --by which column holds the label")
    return Cut.load(path)


def load_label_cut(path: Path) -> MultilabelCut:
    """A saved cut of many labels, which differ as text too: that is how files name them."""
    if not is_multilabel(path):
        raise ValueError(f"{path} holds a single cut: leave out --by")
    cut, first = MultilabelCut.load(path), dict[str, Any]()
    for label in cut.labels:
        if (other := first.setdefault(str(label), label)) is not label:
            raise ValueError(
                f"the labels {other!r} and {label!r} of {path} are the same text, so that a file cannot name one of "
                "them: apply the cut from Python"
            )
    return cut
