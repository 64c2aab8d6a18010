"""Decisions as a notebook shows them."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from surecut._plurals import counted
from surecut.constraints import listed
from surecut.decisions import class_wording
from surecut.decisions.class_changes import ClassChanges, quantity_of_labels
from surecut.decisions.wording import (
    amount,
    bands_value_text,
    best_text,
    between,
    conditions_text,
    label_text,
    range_text,
    rule_text,
    tolerance_text,
    unsettled_text,
)
from surecut.notebook import CELL, card

if TYPE_CHECKING:
    from surecut.confusion import Confusion
    from surecut.decisions.bands import Bands
    from surecut.decisions.cut import Cut
    from surecut.decisions.grouped_bands import GroupedBands
    from surecut.decisions.multilabel import MultilabelCut
    from surecut.decisions.top_k import TopK

ZONE_COLUMNS = ("zone", "negative", "positive", "share")

RIGHT, WRONG = "rgba(0,128,90,.16)", "rgba(205,90,10,.16)"


def cut_html(cut: Cut) -> str:
    """A cut: the rule, its value, its confusion, where it came from."""
    rule = "predict nothing" if cut.predicts_nothing else f"score ≥ {cut.threshold:.6g}"
    rule += " (stable)" if cut.stability is not None else ""
    lower, upper = cut.interval
    facts = {
        cut.metric.name: f"{cut.value:.4f} on the {cut.rows:,} validation rows",
        "equivalent": f"every threshold in ({lower:.6g}, {upper:.6g}]",
        "positive": ("" if cut.pos_label is None else f"{cut.pos_label!r}, ")
        + f"{cut.prior:.2%}"
        + (" (given)" if cut.prior_given else ""),
    }
    if cut.constraints:
        facts["subject to"] = listed(cut.constraints)
    if (stability := cut.stability) is not None:
        _, lower_quarter, _, upper_quarter, _ = stability.quantiles
        most, half = (" to ".join(between(*ends)) for ends in (stability.spread, (lower_quarter, upper_quarter)))
        facts["best"] = best_text(cut)
        facts["resampled"] = f"{most} in 90 % of {counted(stability.resamples, 'resample')}, {half} in half of them"
        facts["near-optimal"] = f"thresholds in {range_text(stability)} {tolerance_text(stability)}"
        if unsettled := unsettled_text(cut):
            facts["unsettled"] = unsettled
    return card(rule, facts.items(), _confusion(cut.confusion))


def labels_html(cut: MultilabelCut, most: int = 10) -> str:
    """A cut of many labels: the sentence, and the labels with the most positives."""
    shown = sorted(range(len(cut)), key=lambda i: -float(cut.confusion.positives[i]))[:most]
    names = ["label", "threshold", cut.metric.name, "positives"]
    stability = cut.stability if cut.average == "macro" else None
    if stability is not None:
        names.insert(2, "resampled (90 %)")

    def cells(i: int) -> list[str]:
        found = [f"{cut.thresholds[i]:.6g}", f"{cut.per_label[i]:.4f}", amount(cut.confusion.positives[i])]
        if stability is not None:
            one = stability[i]
            found.insert(1, "–" if one is None else " to ".join(between(*one.spread)))
        return found

    head = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><th style="{CELL};text-align:left;font-weight:normal">{escape(label_text(cut.labels[i]))}</th>'
        + "".join(f'<td style="{CELL}">{text}</td>' for text in cells(i))
        + "</tr>"
        for i in shown
    )
    more = f"<div>… and {counted(len(cut) - most, 'label')} with fewer positives</div>" if len(cut) > most else ""
    return card(str(cut), (), f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>{more}')


def bands_html(bands: Bands) -> str:
    """Bands: which scores are in which zone, what was asked for, the rows of each zone by class."""
    facts = {"rows": f"{bands.rows:,} validation rows"}
    if value := bands_value_text(bands):
        facts["value"] = value
    if conditions := conditions_text(bands):
        facts["conditions"] = conditions
    if bands.prior_given:
        facts["prior"] = f"{bands.prior:.2%} (given)"
    head = "".join(f'<th style="{CELL};font-weight:normal;opacity:.75">{name}</th>' for name in ZONE_COLUMNS)
    last = len(bands.zones) - 1
    rows = ""
    for zone, (name, (negatives, positives), share) in enumerate(
        zip(bands.zones, bands.confusion.tolist(), bands.shares.tolist(), strict=True)
    ):
        colours = [RIGHT if zone == 0 else WRONG if zone == last else "", WRONG if zone == 0 else ""]
        colours[1] = RIGHT if zone == last else colours[1]
        rows += (
            f'<tr><th style="{CELL};text-align:left;font-weight:normal">{escape(name)}</th>'
            + "".join(
                f'<td style="{CELL};background:{colour or "none"}">{amount(value)}</td>'
                for value, colour in zip((negatives, positives), colours, strict=True)
            )
            + f'<td style="{CELL}">{share:.1%}</td></tr>'
        )
    return card(
        rule_text(bands), facts.items(), f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>'
    )


def grouped_bands_html(bands: GroupedBands, most: int = 10) -> str:
    """Bands of groups: the thresholds and shares of the largest groups."""
    names = ("group", *(f"{zone} from" for zone in bands.zones[1:]), *bands.zones, "rows")
    head = "".join(f'<th style="{CELL};font-weight:normal;opacity:.75">{escape(name)}</th>' for name in names)
    largest = sorted(range(len(bands)), key=lambda i: -bands.bands[i].rows)[:most]
    rows = ""
    for i in largest:
        one = bands.bands[i]
        cells = [f"{threshold:.6g}" for threshold in one.thresholds.tolist()]
        cells += [f"{share:.1%}" for share in one.shares.tolist()] + [f"{one.rows:,}"]
        first = f'<th style="{CELL};text-align:left;font-weight:normal">{escape(label_text(bands.groups[i]))}</th>'
        rows += "<tr>" + first + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"
    more = f"<p>and {counted(len(bands) - most, 'group')} with fewer rows</p>" if len(bands) > most else ""
    return card(str(bands), (), f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>{more}')


def top_k_html(rule: TopK, most: int = 10) -> str:
    """A rule of k labels a row: its value, the labels that it changes most, and the confusion of a few classes."""
    facts = {"value": class_wording.value_text(rule)}
    known = {
        "search": class_wording.starts_text(rule),
        "bound": class_wording.bound_text(rule),
        "scores": class_wording.calibration_text(rule),
    }
    facts |= {name: text for name, text in known.items() if text}
    title = class_wording.rule_text(rule) + (" (stable)" if rule.stable else "")
    tables = _labels_table(rule, most) if set(rule.labels) & set(rule.actions) else ""
    if rule.matrix is not None and len(rule.actions) <= most:
        tables += '<div style="margin-top:.6em">rows by true class (down) and by what is predicted</div>'
        tables += _class_matrix(rule)
    return card(title, facts.items(), tables)


def _labels_table(rule: TopK, most: int) -> str:
    """The labels, or those that change most, before and after."""
    changes = ClassChanges.of(rule)
    chosen = list(range(len(rule))) if len(rule) <= most else changes.most(most)
    columns = {"predicted": changes.predicted, quantity_of_labels(rule): changes.value}
    columns |= {"recall": changes.recall, "precision": changes.precision}
    head = "".join(
        f'<th style="{CELL};font-weight:normal;opacity:.75">{escape(name)}</th>'
        for name in ("label", "positives", *columns)
    )
    rows = ""
    for i in chosen:
        rows += f'<tr><th style="{CELL};text-align:left;font-weight:normal">{escape(label_text(rule.labels[i]))}</th>'
        rows += f'<td style="{CELL}">{amount(rule.confusion.positives[i])}</td>'
        for name, values in columns.items():
            written = class_wording.percent if name == "predicted" else _number_or_dash
            before, after = map(written, values[:, i].tolist())
            rows += f'<td style="{CELL}"><span style="opacity:.6">{before} →</span> {after}</td>'
        rows += "</tr>"
    others = len(rule) - len(chosen)
    more = f"<div>… and {counted(others, 'label')} that change less</div>" if others else ""
    return f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>{more}'


def _class_matrix(rule: TopK) -> str:
    """Rows by true class and action; what is right in one colour, what is wrong in the other, by its share."""
    assert rule.matrix is not None
    head = "".join(
        f'<th style="{CELL};font-weight:normal;opacity:.75">{escape(label_text(action))}</th>'
        for action in rule.actions
    )
    rows = ""
    for label, counts in zip(rule.labels, rule.matrix.tolist(), strict=True):
        rows += f'<tr><th style="{CELL};text-align:left;font-weight:normal">{escape(label_text(label))}</th>'
        for action, count in zip(rule.actions, counts, strict=True):
            colour = RIGHT if action == label else WRONG if count else "none"
            rows += f'<td style="{CELL};background:{colour}">{amount(count)}</td>'
        rows += "</tr>"
    return f'<table style="border-collapse:collapse"><tr><td></td>{head}</tr>{rows}</table>'


def _number_or_dash(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _confusion(confusion: Confusion) -> str:
    def cell(value: float, colour: str) -> str:
        return f'<td style="{CELL};background:{colour}">{amount(value)}</td>'

    head = f'<th style="{CELL};font-weight:normal;opacity:.75">'
    return (
        '<table style="border-collapse:collapse">'
        f"<tr><td></td>{head}flagged</th>{head}not flagged</th></tr>"
        f"<tr>{head}positive</th>{cell(confusion.tp, RIGHT)}{cell(confusion.fn, WRONG)}</tr>"
        f"<tr>{head}negative</th>{cell(confusion.fp, WRONG)}{cell(confusion.tn, RIGHT)}</tr></table>"
    )
