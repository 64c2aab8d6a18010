"""Decisions as a notebook shows them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from surecut._plurals import counted
from surecut.constraints import listed
from surecut.decisions.wording import amount, label_text
from surecut.notebook import CELL, card

if TYPE_CHECKING:
    from surecut.confusion import Confusion
    from surecut.decisions.cut import Cut
    from surecut.decisions.multilabel import MultilabelCut

RIGHT, WRONG = "rgba(0,128,90,.16)", "rgba(205,90,10,.16)"


def cut_html(cut: Cut) -> str:
    """A cut: the rule, its value, its confusion, where it came from."""
    rule = "predict nothing" if cut.predicts_nothing else f"score ≥ {cut.threshold:.6g}"
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
    return card(rule, facts.items(), _confusion(cut.confusion))


def labels_html(cut: MultilabelCut, most: int = 10) -> str:
    """A cut of many labels: the sentence, and the labels with the most positives."""
    shown = sorted(range(len(cut)), key=lambda i: -float(cut.confusion.positives[i]))[:most]
    head = "".join(
        f'<th style="{CELL}">{escape(name)}</th>' for name in ("label", "threshold", cut.metric.name, "positives")
    )
    rows = "".join(
        f'<tr><th style="{CELL};text-align:left;font-weight:normal">{escape(label_text(cut.labels[i]))}</th>'
        f'<td style="{CELL}">{cut.thresholds[i]:.6g}</td><td style="{CELL}">{cut.per_label[i]:.4f}</td>'
        f'<td style="{CELL}">{amount(cut.confusion.positives[i])}</td></tr>'
        for i in shown
    )
    more = f"<div>… and {counted(len(cut) - most, 'label')} with fewer positives</div>" if len(cut) > most else ""
    return card(str(cut), (), f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>{more}')


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
