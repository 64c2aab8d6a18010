"""What commands print: tables for people, plain text in a pipe, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surecut._plurals import counted
from surecut.constraints import listed
from surecut.decisions.saving import label_to_json, number_to_json
from surecut.decisions.wording import (
    amount,
    between,
    capitalized,
    label_text,
    positives_worth,
    range_text,
    tolerance_text,
    unsettled_text,
)
from surecut.metrics import CATALOGUE, NoTheoremError

if TYPE_CHECKING:
    from surecut.certificates.certificate import Certificate
    from surecut.certificates.drift import Change, DriftReport, LabelDrift
    from surecut.certificates.zone_drift import BandsDrift
    from surecut.cli.files import Rows
    from surecut.decisions.cut import Cut
    from surecut.decisions.multilabel import MultilabelCut
    from surecut.decisions.stability import Stability

WIDE = 10_000
"""Columns of a pipe: nothing is wrapped or cut off where a program reads."""


def console() -> Console:
    """Standard output: as wide as the terminal, or as wide as it takes."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=WIDE, no_color=True)


@contextmanager
def working(on: str) -> Iterator[None]:
    """Say on standard error what is being done, if a person looks."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield
        return
    with errors.status(on):
        yield


def as_json(document: Any) -> None:
    """Print a document as JSON, one field a line."""
    console().print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False), markup=False, soft_wrap=True)


def line(text: str, style: str | None = None) -> None:
    """Print a sentence; markup in it is text."""
    console().print(text, markup=False, style=style)


def notes(texts: Iterable[str]) -> None:
    """Say on standard error what a person should know of the input; the output stays what it is."""
    for text in texts:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"note: {text}", markup=False)


def table(headings: Sequence[str], cells: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print aligned columns without a frame; those in `left` hold text, the others numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, heading in enumerate(headings):
        justify: Any = "left" if position in left else "right"
        made.add_column(Text(heading), justify=justify, overflow="fold", no_wrap=position == 0 and len(headings) > 2)
    for row in cells:
        made.add_row(*map(Text, row))  # what stands in brackets is no markup
    out = console()
    if out.is_terminal:
        out.print(made)
        return
    with out.capture() as captured:
        out.print(made)
    for text in captured.get().splitlines():
        line(text.rstrip())  # a table pads its last column


def share(part: float, whole: float) -> str:
    """A share as text; a dash where it is undefined."""
    return f"{part / whole:.1%}" if whole else "–"


def number(value: float, digits: int = 4) -> str:
    """A number for people."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}e}"
    return f"{value:.{digits}f}"


def threshold(value: float) -> str:
    """A threshold for people, with as many digits as help."""
    return number(value) if math.isinf(value) else f"{value:.6g}"


def cut_cells(cut: Cut) -> list[str]:
    """Metric, threshold, value, precision, recall and share flagged of a cut, on its tuning rows."""
    confusion = cut.confusion if not cut.prior_given else cut.confusion.at_prior(cut.prior)
    return [
        cut.metric.name,
        threshold(cut.threshold),
        number(cut.value),
        share(confusion.tp, confusion.predicted_positives),
        share(confusion.tp, confusion.positives),
        accepted(cut),
    ]


def accepted(cut: Cut) -> str:
    """How many tuning rows a cut accepts, or how much weight, and which share that is at its prior."""
    at_prior = cut.confusion if not cut.prior_given else cut.confusion.at_prior(cut.prior)
    flagged = share(at_prior.predicted_positives, at_prior.total)
    there = " expected" if cut.prior_given else ""
    weighed = "weight " if cut.weighted else ""
    return f"{weighed}{amount(cut.confusion.predicted_positives)} ({flagged}{there})"


def rows(read: Rows, prior: float | None, constraint: Sequence[str] | None, confidence: float | None) -> None:
    """What was read, and for what it is tuned."""
    dropped = (
        f" ({counted(read.dropped, 'row')} without a value {'was' if read.dropped == 1 else 'were'} dropped)"
        if read.dropped
        else ""
    )
    line(
        f"{counted(len(read), 'row')}{dropped}, {read.positives / len(read):.2%} positive "
        f"({read.label} = {read.positive}); score in {read.score!r}"
        + ("; values are of the rows' weights" if "weight" in read.columns else "")
        + (f"; tuned for a share of {prior:g}" if prior is not None else "")
        + (f"; subject to {' and '.join(constraint)}" if constraint else "")
        + (f" with {100 * confidence:g} % confidence" if constraint and confidence else "")
        + "\n"
    )


def cuts(found: Sequence[Cut], certificates: Sequence[Certificate] = ()) -> None:
    """Cuts of one column of scores, and what is promised of them."""
    limits = [one.lower for one in certificates]
    limits = limits or [cut.lower_limit for cut in found if cut.lower_limit is not None]
    if not limits:
        table(CUT_HEADINGS, [cut_cells(cut) for cut in found])
        for cut in found:
            if cut.shrinkage:
                worth = f"a model of the scores ({cut.calibration}) worth {positives_worth(cut.shrinkage)} positives"
                line(f"\n{cut.metric.name}: drawn toward {worth}")
        stabilities(found)
        return
    sure = f"{100 * (found[0].confidence or 0):g} %"
    headings = [*CUT_HEADINGS[:3], f"new rows ({sure})", *CUT_HEADINGS[3:]]
    cells = []
    for cut, limit in zip(found, limits, strict=True):
        shown = cut_cells(cut)
        cells.append([*shown[:3], f"≥ {number(limit)}", *shown[3:]])
    table(headings, cells)
    stabilities(found)


def stabilities(found: Sequence[Cut]) -> None:
    """How settled the thresholds of stable cuts are, below the table of cuts; nothing for exact ones."""
    cells = []
    for cut in found:
        if (stability := cut.stability) is not None:
            best = f"{number(stability.best_value)} at {threshold(stability.best_threshold)}"
            loses = tolerance_text(stability).removeprefix("lose ")
            cells.append([cut.metric.name, spread(stability), with_signs(range_text(stability)), loses, best])
    if not cells:
        return
    line("\nStable thresholds, and where resamples of these rows put them:")
    table(("metric", "resampled (90 %)", "near-optimal", "and loses", "best here"), cells)
    for unsettled in dict.fromkeys(filter(None, map(unsettled_text, found))):
        line(f"\n{capitalized(unsettled)}.")


def with_signs(text: str) -> str:
    """The text of numbers with the signs that people write.

    >>> with_signs("(-inf, -0.5]")
    '(−∞, −0.5]'
    """
    return text.replace("-", "−").replace("inf", "∞")


def spread(stability: Stability | None, *, is_narrow: bool = False) -> str:
    """The range of 90 % of the resampled thresholds, as wide as can be read; a dash where there is none."""
    if stability is None:
        return "–"
    low, high = map(with_signs, between(*stability.spread))
    return f"{low}–{high}" if is_narrow and stability.spread[0] >= 0 else f"{low} to {high}"


def labels(cut: MultilabelCut, most: int = 20, worst: int = 5) -> None:
    """A cut of many labels: the sentence, the labels with the most positives, and the worst of the others."""
    line(str(cut) + "\n")
    has_spread = cut.stability is not None and cut.average == "macro"

    def show(shown: Iterable[Any]) -> None:
        cells = []
        for label in shown:
            one = cut[label]
            row = [label_text(label), *cut_cells(one)[1:], amount(one.confusion.positives)]
            cells.append([*row[:2], spread(one.stability, is_narrow=True), *row[2:]] if has_spread else row)
        headings = ["label", *CUT_HEADINGS[1:], "positives"]
        if has_spread:
            headings.insert(2, "resampled")
        table(headings, cells)

    by_positives = sorted(range(len(cut)), key=lambda i: -float(cut.confusion.positives[i]))
    frequent = [cut.labels[i] for i in by_positives[:most]]
    show(frequent)
    if len(cut) > most:
        line(f"… and {counted(len(cut) - most, 'label')} with fewer positives")
        known = set(frequent)
        if others := [label for label in cut.worst(worst + most) if label not in known][:worst]:
            line("\nThe worst of these, predicted too often or of the lowest value:")
            show(others)


def drift(report: DriftReport) -> None:
    """What has changed since a cut was tuned."""
    cut, sure = report.cut, f"{100 * report.confidence:g} %"
    line(f"{counted(report.rows, 'row')} at the cut {threshold(cut.threshold)}, beside {rows_then(report)}\n")
    changes({"positive": report.prior, cut.metric.name: report.value})
    line("")
    for constraint, value in report.constraints.items():
        line(f"{constraint}: it is {value:.4f} now")
    if report.prior.moved and not math.isnan(report.value_at_then_prior):
        line(f"At the old share of positives {cut.metric.name} would be {report.value_at_then_prior:.4f} now.")
    if report.best is not None:
        subject = f" subject to {listed(cut.constraints)}" if cut.constraints else ""
        line(
            f"The best cut of these rows{subject} is {threshold(report.best.threshold)}, with {cut.metric.name} "
            f"{report.best.value:.4f}; the cut in use has {report.value.now:.4f} on them."
        )
    if report.moved:
        line(f"There is a statistically significant change ({sure} confidence).", style="bold red")
    else:
        line(f"No sign of a change: chance alone can explain such differences ({sure} confidence).", style="bold green")
        suggest_reference(report)
    line(looks_text(report.looks))


def assumptions(listed: Iterable[str]) -> None:
    """Under what a promise holds."""
    line("\nIt holds if")
    for assumption in listed:
        line(f"- {assumption}")


def rows_then(report: DriftReport | BandsDrift) -> str:
    """With how many rows new ones were compared, and of which kind."""
    return counted(report.then_rows, "reference row" if report.has_reference else "validation row")


def changes(found: Mapping[str, Change]) -> None:
    """What quantities were and are; the share of positives first, as a percentage."""
    cells = []
    for position, (name, change) in enumerate(found.items()):
        shown = "{:.4f}" if position else "{:.2%}"
        then, now = (
            f"{shown.format(value)} ({shown.format(low)} to {shown.format(high)})"
            for value, (low, high) in ((change.then, change.then_limits), (change.now, change.now_limits))
        )
        cells.append([name, then, now, change.direction if change.moved else "no sign"])
    table(("", "then", "now", "verdict"), cells, left=(0, 1, 2, 3))


def label_drift(report: LabelDrift, most: int = 20) -> None:
    """Which labels have changed since their cuts were tuned."""
    moved, sure = report.moved_labels, f"{100 * report.confidence:g} %"
    checked, labels = len(report.reports), len(report.reports) + len(report.not_checked)
    some = "" if checked == labels else f"{checked:,} of "
    line(f"{some}{counted(labels, 'label')}, each at {report.each:.6g} confidence\n")
    cells = []
    for label in moved[:most]:
        one = report.reports[label]
        cells.append(
            [
                str(label),
                *(f"{change.then:.4f} → {change.now:.4f}" for change in (one.prior, one.value)),
                "–" if one.best is None else f"{threshold(one.cut.threshold)} → {threshold(one.best.threshold)}",
                " and ".join(
                    f"{name} {change.direction}"
                    for name, change in (("positives", one.prior), (one.cut.metric.name, one.value))
                    if change.moved
                ),
            ]
        )
    if cells:
        name = next(iter(report.reports.values())).cut.metric.name
        table(("label", "positive", name, "best cut", "verdict"), cells, left=(0, 1, 2, 3, 4))
        line(f"… and {counted(len(moved) - most, 'more label')}\n" if len(moved) > most else "")
    alike: dict[str, list[Any]] = {}
    for label, reason in report.not_checked.items():
        alike.setdefault(reason, []).append(label)
    for reason, (first, *others) in alike.items():
        more = f" and {counted(len(others), 'other label')}" if others else ""
        line(f"{label_text(first)}{more}: not checked, {reason}")
    if moved:
        some = f"{len(moved):,} of {counted(checked, 'label')} {'has' if len(moved) == 1 else 'have'}"
        line(f"{some} changed significantly ({sure} confidence for all labels together).", style="bold red")
    else:
        which = "any label" if checked == labels else f"the label{'s' if checked > 1 else ''} that could be checked"
        line(f"No sign of a change in {which} ({sure} confidence for all together).", style="bold green")
        suggest_reference(next(iter(report.reports.values())))
    line(looks_text(report.looks))


def suggest_reference(
    report: DriftReport | BandsDrift, rows: str = "the validation rows, or better held-out ones"
) -> None:
    """Say what would show smaller changes, where it was not given."""
    if not report.has_reference:
        line(f"Smaller changes are found with --reference FILE: {rows}.")


def looks_text(looks: int) -> str:
    """For how many looks the confidence is."""
    if looks > 1:
        return f"The confidence is that of {looks:,} looks together, each of which has an equal part of the error."
    return "The confidence is that of this one look: if you check again and again, say how often with --looks."


def label_drift_document(report: LabelDrift) -> dict[str, Any]:
    """The same for programs."""
    return {
        "moved": report.moved,
        "confidence": report.confidence,
        "looks": report.looks,
        "labels": [
            {"label": plain(label_to_json(label)), **drift_document(one)} for label, one in report.reports.items()
        ],
        "not_checked": {str(label): reason for label, reason in report.not_checked.items()},
    }


def drift_document(report: DriftReport) -> dict[str, Any]:
    """The same for programs."""
    return {
        "moved": report.moved,
        "confidence": report.confidence,
        "looks": report.looks,
        "rows": report.rows,
        "metric": report.cut.metric.name,
        "threshold": number_to_json(report.cut.threshold),
        "prior": plain(asdict(report.prior)),
        "value": plain(asdict(report.value)),
        "value_at_then_prior": plain(report.value_at_then_prior),
        "constraints": plain(report.constraints),
        "best": None if report.best is None else report.best.with_sample(seen=()).to_dict(),  # without scores of rows
    }


def plain(value: Any) -> Any:
    """Plain JSON values: tuples as lists, infinities as text, NaN as null."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return None if math.isnan(value) else number_to_json(value)
    return value


CUT_HEADINGS = ("metric", "threshold", "value", "precision", "recall", "flagged")


def catalogue(prior: float, optimum: float) -> list[dict[str, Any]]:
    """The metrics by name, with their formula and the paper's constants at a prior and a best value."""
    listed = []
    for name, make in CATALOGUE.items():
        metric = make()
        row: dict[str, Any] = {"name": name, "formula": (type(metric).__doc__ or "").strip().splitlines()[0]}
        try:
            constants = metric.constants(prior, optimum)
        except NoTheoremError:
            row |= {"gamma": None, "C": None, "alpha": None, "D": None}
        else:
            row |= {"gamma": constants.gamma, "C": constants.C, "alpha": constants.alpha, "D": constants.D}
        listed.append(row)
    return listed
