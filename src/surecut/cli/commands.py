"""What commands do between reading a file and printing: cuts from its rows, with their promises and their page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut.certificates.certificate import Certificate
from surecut.certificates.certifying import certify
from surecut.certificates.counts import require_whole
from surecut.cli import printing
from surecut.cli.files import SCORE, SCORE_NAMES, key_names
from surecut.cli.positives import TableError
from surecut.core.tally import ScoreTally
from surecut.decisions import saving
from surecut.decisions.cut import Cut
from surecut.decisions.multilabel import MultilabelCut
from surecut.sources.applying import AppliedCut, UnpredictedRows
from surecut.sources.columns import Columns
from surecut.sources.text_numbers import literal, quoted
from surecut.tuning.frame import tune_frame
from surecut.tuning.labels import tune_tallies
from surecut.tuning.request import Request
from surecut.tuning.tune import TalliedRows, tune

if TYPE_CHECKING:
    from surecut.cli.files import Arrays, Rows, Table
    from surecut.metrics import Metric
    from surecut.report import LabelsSummary, Summary
    from surecut.sources.applying import Predictions

PREDICTED = "surecut: predicted"

LIKELY = 0.95
"""The confidence of a page's band, where none is asked for."""


@dataclass(frozen=True)
class TunedCuts:
    """Cuts of one column of scores, one for each metric; with a confidence, a certificate of each."""

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


def tuned_cuts(
    rows: Rows,
    metrics: list[Metric],
    constraint: list[str] | None,
    confidence: float | None,
    prior: float | None,
    kappa: float | str,
    needs_tally: bool,
    weights: str | None = None,
) -> TunedCuts:
    """The cut for each metric; with a confidence, also what the very rows that tuned it promise of it."""
    if confidence is None and kappa == 0 and not needs_tally:
        return TunedCuts(_tuned_in_batches(rows, metrics, constraint, prior=prior))
    request = Request.of(
        metrics,
        constraint=constraint,
        confidence=confidence,
        weights=weights,
        prior=prior,
        shrinkage=kappa,
        pos_label=rows.pos_label,
    )
    found = rows.arrays()
    tally = ScoreTally.from_scores(found.is_positive, found.scores, sample_weight=found.weights)
    tally = replace(tally, pos_label=rows.pos_label)
    if found.weights is not None:
        require_whole(found.weights, weights)
    cuts = tune(TalliedRows(tally), request)
    if prior is not None:
        tally = tally.with_prior(prior)
    if confidence is None:
        return TunedCuts(cuts, tally=tally)
    promised: dict[str, Any] = {"confidence": confidence, "method": "uniform", "weights": weights}
    certificates = [certify(cut, tally=tally, **promised) for cut in cuts]
    return TunedCuts(cuts, certificates, tally, confidence)


def tuned_by(
    rows: Rows,
    metrics: list[Metric],
    average: str,
    constraint: list[str] | None,
    kappa: float | str,
    needs_tallies: bool,
) -> TunedLabels:
    """A cut for each group of rows, or one for all of them; it is the same with tallies, which the page needs."""
    if kappa == 0:
        by = rows.groups[0] if len(rows.groups) == 1 else rows.groups
        tuned: list[MultilabelCut] = _tuned_in_batches(rows, metrics, constraint, by=by, average=average)
        return TunedLabels(tuned, label_tallies(rows.arrays(), tuned[0]) if needs_tallies else ())
    found = rows.arrays()
    tallies = _tallies_by(found)
    asked: dict[str, Any] = {"average": average, "constraint": constraint, "shrinkage": kappa}
    cuts = [tune_tallies(tallies, found.group_names, metric=metric, **asked) for metric in metrics]
    return TunedLabels([cut.with_sample(pos_label=rows.pos_label) for cut in cuts], tallies)


def _tallies_by(found: Arrays) -> list[ScoreTally]:
    """A tally of each group's rows, in the order of the groups' names."""
    groups = np.asarray(found.groups)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(len(found.group_names) + 1))
    tallies = []
    for start, end in pairwise(starts):
        chosen = order[start:end]
        weights = None if found.weights is None else found.weights[chosen]
        tallies.append(ScoreTally.from_scores(found.is_positive[chosen], found.scores[chosen], sample_weight=weights))
    return tallies


def label_tallies(found: Arrays, cut: MultilabelCut) -> list[ScoreTally]:
    """A tally of each of a cut's labels, in their order, from rows that are grouped by label."""
    tallies = dict(zip(map(str, found.group_names), _tallies_by(found), strict=True))
    names = [str(label) for label in cut.labels]
    if unknown := sorted(set(tallies) - set(names)):
        raise TableError(f"{len(unknown):,} labels of the file are none of the cut's {len(cut):,}: {unknown[0]!r}")
    if lacking := [name for name in names if name not in tallies]:
        raise TableError(
            f"{len(lacking):,} of the cut's {len(cut):,} labels have no row in the file, such as {lacking[0]!r}: "
            "nothing can be said of their average"
        )
    return [tallies[name] for name in names]


def _tuned_in_batches(rows: Rows, metrics: list[Metric], constraint: list[str] | None, **options: Any) -> list[Any]:
    """A cut for each metric, without fetching the rows."""
    found: dict[str, Any] = tune_frame(
        rows.relation,
        label="label",
        score="score",
        weight="weight" if "weight" in rows.columns else None,
        metric=metrics,
        constraint=constraint,
        **options,
    )
    return [cut.with_sample(pos_label=rows.pos_label) for cut in found.values()]


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
    missing: str,
    unknown: str,
) -> Predictions:
    """Copy a table with a column that says which rows are cut positive; return the numbers of rows.

    The column holds true and false, or the cut's positive label and the `negative` one.
    """
    unpredicted = UnpredictedRows(missing, unknown)
    cut = MultilabelCut.load(path) if is_multilabel(path) else Cut.load(path)
    _require_keys(cut, path, by)
    column, keys = table.column(score, "score", SCORE_NAMES), tuple(table.column(one, "by") for one in by)
    positive = "1" if cut.pos_label is None else str(cut.pos_label)
    if positive == negative:
        raise ValueError(f"{negative!r} is the cut's positive label: --negative names the other one")
    rows = table.with_score(column, keys, as_text=out.suffix.lower() in (".csv", ".tsv"))
    applied = AppliedCut.of(nw.from_native(rows), cut, Columns(SCORE, SCORE, by=tuple(key_names(keys))))
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
        raise ValueError(f"{path} holds the cuts of {len(cut):,} labels: say with --by which column holds the label")
    columns = len(cut.labels[0]) if isinstance(cut.labels[0], tuple) else 1
    if len(by) != columns:
        raise ValueError(
            f"the labels of {path} come from {columns} columns, such as {cut.labels[0]!r}: say --by as often, in the "
            "same order"
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
    """A saved cut of many labels."""
    if not is_multilabel(path):
        raise ValueError(f"{path} holds a single cut: leave out --by")
    return MultilabelCut.load(path)
