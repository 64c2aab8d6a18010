"""How results show themselves in a notebook: small pieces of HTML that follow its light or dark style."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from surecut.constraints import listed
from surecut.decisions.wording import amount, label_text

if TYPE_CHECKING:
    from surecut.certificates.certificate import Certificate
    from surecut.confusion import Confusion
    from surecut.decisions.cut import Cut
    from surecut.decisions.multilabel import MultilabelCut

CELL = "padding:.15em .7em;text-align:right"
RIGHT, WRONG = "rgba(0,128,90,.16)", "rgba(205,90,10,.16)"


def cut_html(cut: Cut) -> str:
    """A cut: the rule, its value, its confusion, where it came from."""
    rule = "predict nothing" if cut.predicts_nothing else f"score ≥ {cut.threshold:.6g}"
    lower, upper = cut.interval
    facts = {
        cut.metric.name: f"{cut.value:.4f} on the {cut.rows:,} rows that tuned it",
        "equivalent": f"every threshold in ({lower:.6g}, {upper:.6g}]",
        "positive": ("" if cut.pos_label is None else f"{cut.pos_label!r}, ")
        + f"{cut.prior:.2%}"
        + (" (given)" if cut.prior_given else ""),
    }
    if cut.constraints:
        facts["subject to"] = listed(cut.constraints)
    return _card(rule, facts.items(), _confusion(cut.confusion))


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
    more = f"<div>… and {len(cut) - most:,} labels with fewer positives</div>" if len(cut) > most else ""
    return _card(str(cut), (), f'<table style="border-collapse:collapse"><tr>{head}</tr>{rows}</table>{more}')


def certificate_html(certificate: Certificate) -> str:
    """A certificate: the promise in words, its numbers, what it assumes."""
    facts = {"method": certificate.method + (" (exact)" if certificate.exact else "")}
    facts["limits"] = f"at least {certificate.lower:.4f}; at most {certificate.upper:.4f}"
    if certificate.regret_bound is not None:
        facts["regret"] = f"at most {certificate.regret_bound:.4f}"
    for number, assumption in enumerate(certificate.assumptions):
        facts["it holds if" if number == 0 else "\u00a0" * number] = assumption
    return _card(str(certificate), facts.items())


def _card(title: str, facts: Iterable[tuple[str, str]], more: str = "") -> str:
    rows = "".join(
        f'<tr><th style="{CELL};text-align:left;font-weight:normal;opacity:.75">{escape(name)}</th>'
        f'<td style="{CELL};text-align:left">{escape(text)}</td></tr>'
        for name, text in facts
    )
    return (
        '<div style="display:inline-block;border:1px solid rgba(128,128,128,.5);border-radius:.5em;padding:.6em .9em">'
        f'<b>{escape(title)}</b><table style="margin:.3em 0;border-collapse:collapse">{rows}</table>{more}</div>'
    )


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
