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
from surecut.decisions.bands import Bands
from surecut.decisions.cut import Cut
from surecut.decisions.grouped_bands import GroupedBands
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.top_k import TopK
from surecut.overlap import TRAINING
from surecut.sources.applying import AppliedDecision, UnpredictedRows, applied_columns
from surecut.sources.columns import Columns, require_distinct
from surecut.sources.text_numbers import literal, quoted
from surecut.tuning.frame import require_counted, tally_table, tune_table
from surecut.tuning.request import Request
from surecut.tuning.tune import TalliedRows, tune

if TYPE_CHECKING:
    from surecut.cli.files import Arrays, Rows, Table
    from surecut.report import LabelsSummary, Summary
    from surecut.sources.applying import Decision, PredictedRows, Predictions

PREDICTED = "surecut: predicted"

LIKELY = 0.95
"""The confidence of a page's band, where none is asked for."""


@dataclass(frozen=True)
class TunedCuts:
    """Cuts of one column of scores, one for each metric; a certificate of each, where constraints are promised."""

    decisions: Sequence[Cut]
    certificates: Sequence[Certificate] = ()
    tally: ScoreTally | None = None
    confidence: float | None = None

    def show(self) -> None:
        """Print the table."""
        printing.cuts(self.decisions, self.certificates)

    def document(self) -> dict[str, Any]:
        """The cuts as JSON has them, with their certificates."""
        documents = [cut.to_dict() for cut in self.decisions]
        for document, certificate in zip(documents, self.certificates, strict=False):
            document["certificate"] = printing.plain(asdict(certificate))
        return {"cuts": documents}

    def summary(self, title: str) -> Summary:
        """What the page shows: it opens at the first cut."""
        from surecut.report import summarize

        if self.tally is None:
            raise ValueError("the page needs a tally of the rows")
        first, *others = self.decisions
        metrics = [cut.metric for cut in others]
        return summarize(self.tally, cut=first, metrics=metrics, confidence=self.confidence or LIKELY, title=title)


@dataclass(frozen=True)
class TunedLabels:
    """Cuts of many labels, one set for each metric, and the labels' tallies."""

    decisions: Sequence[MultilabelCut]
    tallies: Sequence[ScoreTally] = ()

    def show(self) -> None:
        """Print each set."""
        for cut in self.decisions:
            printing.labels(cut)

    def document(self) -> dict[str, Any]:
        """The cuts as JSON has them."""
        return {"cuts": [cut.to_dict() for cut in self.decisions]}

    def summary(self, title: str) -> LabelsSummary:
        """What the page shows: the first set."""
        from surecut.report import summarize_labels

        return summarize_labels(self.decisions[0], self.tallies, title=title)


def tuned_cuts(rows: Rows, request: Request, has_page: bool) -> TunedCuts:
    """The cut for each metric. A tally is made for the page, and for a certificate beside promised constraints."""
    request, columns = replace(request, pos_label=rows.pos_label), columns_of(rows)
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


def tally_to_certify(rows: Rows, cut: Cut | Bands) -> ScoreTally | None:
    """A tally of rows for ``method="uniform"`` without all rows in memory; None where the rows themselves are needed.

    They are where they have to be compared with the rows that the cut or its model has seen. Promised constraints of a
    cut from more rows than memory should hold were judged between ranges of scores: `tally_table` finds the same ones.
    """
    if cut.out_of_fold or any(sample.role == TRAINING for sample in cut.seen):
        return None
    thresholds = [cut.threshold] if isinstance(cut, Cut) else cut.thresholds.tolist()
    return tally_at(rows, thresholds)


def tally_at(rows: Rows, thresholds: Sequence[float]) -> ScoreTally:
    """A tally of rows that is exact at some thresholds."""
    request = Request.of("accuracy", pos_label=rows.pos_label)
    return tally_table(rows.relation, columns_of(rows), request, thresholds)


def tuned_by(rows: Rows, request: Request, has_page: bool) -> TunedLabels:
    """A cut for each group of rows, or one for all of them; and the groups' tallies, which the page needs."""
    request = replace(request, pos_label=rows.pos_label)
    cuts: Any = tune_table(rows.relation, columns_of(rows), request)
    return TunedLabels(cuts, label_tallies(rows.arrays(), cuts[0]) if has_page else ())


def columns_of(rows: Rows) -> Columns:
    """The columns of parsed rows."""
    return Columns("score", "label", "weight" if "weight" in rows.columns else None, rows.groups)


def _names(decision: MultilabelCut | GroupedBands | TopK) -> tuple[Sequence[Any], str, str]:
    """The labels of a cut, or the groups of bands; what one of them is called, and who has them."""
    if isinstance(decision, TopK):
        return decision.labels, "label", "rule"
    return (
        (decision.groups, "group", "bands") if isinstance(decision, GroupedBands) else (decision.labels, "label", "cut")
    )


def known_rows(
    found: Arrays, decision: MultilabelCut | GroupedBands, by: Sequence[str], file: str
) -> tuple[Arrays, list[str]]:
    """The rows of a file whose label or group the decision knows, if there are any, and what to say of the others."""
    names, noun, owner = _names(decision)
    known = {str(name) for name in names}
    is_known = np.array([str(name) in known for name in found.group_names], dtype=bool)[found.groups]
    dropped = len(is_known) - int(is_known.sum())
    if not dropped or dropped == len(is_known):
        return found, []
    columns = ", ".join(map(repr, by))
    some = f"{dropped:,} of {counted(len(is_known), 'row')} of {file} have a {noun} in {columns}"
    return found.where(is_known), [f"{some} that is none of {_possessive(owner)}: they are dropped"]


def _possessive(owner: str) -> str:
    """Whose labels, or groups, they are."""
    return f"the {owner}'" if owner.endswith("s") else f"the {owner}'s"


def label_tallies(found: Arrays, cut: MultilabelCut, file: str = "the file", hint: str = "") -> list[ScoreTally]:
    """A tally of each of a cut's labels, in their order, from rows that are grouped by label."""
    by = row_labels(found, cut, file=file, hint=hint)
    return TableRows.of(cut, found.is_positive, found.scores, by, found.weights).tallies()


def row_labels(
    found: Arrays,
    decision: MultilabelCut | GroupedBands,
    columns: int | None = None,
    *,
    file: str = "the file",
    hint: str = "",
) -> Any:
    """The label, or group, of each row as a decision has it, of rows that are grouped by columns that begin with it.

    Those that the decision does not know are an error; its `hint` says what else a command can do with their rows.
    """
    own, noun, owner = _names(decision)
    known = {str(name): name for name in own}
    names = [name if columns is None else _first(name, columns) for name in found.group_names]
    if unknown := sorted({str(name) for name in names} - set(known)):
        such = in_brief(repr(unknown[0]))
        if not any(str(name) in known for name in names):
            raise TableError(
                f"no {noun} of {file} is known to the {owner}: the file has {noun}s such as {such}, the {owner} "
                f"{in_brief(repr(str(own[0])))}; are these the column of --by and the file that you mean?"
            )
        some = f"{counted(len(unknown), noun)} of {file} {'is' if len(unknown) == 1 else 'are'}"
        raise TableError(
            f"{some} not among {_possessive(owner)} {counted(len(own), noun)}, such as {such}: remove these rows, or "
            f"tune on them too{hint}"
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


def apply_cut(
    table: Table,
    path: Path,
    out: Path,
    *,
    score: str | None,
    row: Sequence[str],
    by: Sequence[str],
    name: str,
    negative: str | None,
    missing: str | None,
    unknown: str | None,
) -> tuple[Predictions, PredictedRows | None]:
    """Copy a table with a column that says which rows are cut positive, or in which zone; return the numbers of rows.

    Of a rule of k labels a row they are those of lines, and those of rows come with them.

    The column holds true and false, or the cut's positive label and the `negative` one; of bands the names of zones.
    """
    decision = load_decision(path, by, row)
    unpredicted = UnpredictedRows.of(decision, missing, unknown)
    if negative is not None and not isinstance(decision, (Cut, MultilabelCut)):
        reason = "names of zones" if unpredicted.zones else "true where the label of a line is one of the k of its row"
        raise ValueError(
            f"--negative names the other label of a cut, and {path} holds {decision.schema.content}: leave it out, the "
            f"new column has {'the ' if unpredicted.zones else ''}{reason}"
        )
    rows_of = tuple(table.column(one, "row") for one in row)
    keys = tuple(table.column(one, "by") for one in by)
    column = table.column(score, "score", SCORE_NAMES, taken=(*rows_of, *keys))
    require_distinct((*rows_of, *keys), {"score": column}, TableError)
    positive = "1" if isinstance(decision, TopK) or decision.pos_label is None else str(decision.pos_label)
    if positive == negative:
        raise ValueError(f"{negative!r} is the cut's positive label: --negative names the other one")
    rows = table.with_score(column, (*rows_of, *keys), as_text=out.suffix.lower() in (".csv", ".tsv"))
    own = key_names((*rows_of, *keys))
    asked = applied_columns(decision, SCORE, own[: len(row)] or None, own[len(row) :] or None)
    applied = AppliedDecision.of(nw.from_native(rows), decision, asked, unpredicted)
    with table.files.reading():
        found = applied.counted()
        of_rows = applied.counted_rows(decision) if isinstance(decision, TopK) else None
    table.notes += [sentence for _, sentence in unpredicted.settle(found, column, keys)]
    predicted = quoted(PREDICTED)
    if negative is not None:
        predicted = f"CASE WHEN {predicted} THEN {literal(positive)} ELSE {literal(negative)} END"
    table.write({name: predicted}, applied.with_column(PREDICTED), out, sort=bool(keys))
    return found, of_rows


def positive_text(decision: Decision, asked: str | None) -> str | None:
    """Which label in a file is positive: the one that was asked for, or the decision's own."""
    own = None if isinstance(decision, TopK) else decision.pos_label
    return str(own) if asked is None and own is not None else asked


def load_decision(path: Path, by: Sequence[str] | None, row: Sequence[str] | None = None) -> Decision:
    """A saved cut, bands, or a rule of k labels a row.

    It is an error unless `by` names the columns of its labels or groups, and `row` those of its rows, and it has some.
    """
    kinds: tuple[type[Decision], ...] = (MultilabelCut, Bands, GroupedBands, TopK)
    kind = next((one for one in kinds if saving.is_saved_as(path, one.schema)), Cut)
    decision = kind.load(path)  # first: of a file that is absent, or no decision, the options are not to blame
    holds = f"{path} holds {kind.schema.content}"
    if isinstance(decision, TopK):
        if not row or not by:
            raise ValueError(
                f"{holds}: say with --row and --by which columns of a long table name the row and the label of a line"
            )
    elif row:
        raise ValueError(f"{holds}: leave out --row")
    if isinstance(decision, (Cut, Bands)):
        if by:
            raise ValueError(f"{holds}: leave out --by")
        return decision
    if not by:
        raise ValueError(f"{holds}: say with --by which column holds the {_names(decision)[1]}")
    _require_names(decision, path, len(by))
    return decision


def _require_names(decision: MultilabelCut | GroupedBands | TopK, path: Path, columns: int) -> None:
    """Raise unless labels, or groups, come from so many columns, and differ as text too: so files name them."""
    names, noun, owner = _names(decision)
    own = len(names[0]) if isinstance(names[0], tuple) else 1
    if columns != own:
        raise ValueError(
            f"the {noun}s of {path} come from {counted(own, 'column')}, such as {names[0]!r}: say --by as often, in "
            "the same order"
        )
    first = dict[str, Any]()
    for name in names:
        if (other := first.setdefault(str(name), name)) is not name:
            raise ValueError(
                f"the {noun}s {other!r} and {name!r} of {path} are the same text, so that a file cannot name one of "
                f"them: apply the {owner} from Python"
            )
