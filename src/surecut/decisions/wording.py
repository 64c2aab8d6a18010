"""Text for people: numbers, labels, and the one line that a cut prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import in_brief
from surecut._plurals import counted
from surecut.averages import OVERPREDICTED
from surecut.constraints import Constraint, listed

if TYPE_CHECKING:
    from surecut.decisions.cut import Cut
    from surecut.decisions.multilabel import MultilabelCut


def label_text(label: Any) -> str:
    """Write a label; the parts of one that comes from several columns are separated by commas."""
    return ", ".join(map(label_text, label)) if isinstance(label, tuple) else in_brief(str(label))


def amount(value: float) -> str:
    """Write a count, or a sum of weights.

    >>> amount(1234567), amount(2.5)
    ('1,234,567', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def positives_worth(kappa: float) -> str:
    """Write a prior strength, in equivalent positives."""
    return f"{kappa:,.0f}" if kappa >= 100 else f"{kappa:.3g}"


def subject_to(constraints: Iterable[Constraint], confidence: float | None) -> str:
    """Write what a cut had to meet, and with which confidence; nothing where there is nothing to say."""
    constraints = tuple(constraints)
    subject = f" subject to {listed(constraints)}" if constraints else ""
    return f"{subject} ({100 * confidence:.4g} % confidence)" if constraints and confidence is not None else subject


def cut_text(cut: Cut) -> str:
    """Write a cut in one line."""
    given = " (given)" if cut.prior_given else ""
    smoothed = f" (shrinkage {positives_worth(cut.shrinkage)}, {cut.calibration})" if cut.shrinkage else ""
    what = "positive" if cut.pos_label is None else repr(cut.pos_label)
    action = "predict nothing" if cut.predicts_nothing else f"predict {what} where score >= {cut.threshold:.6g}"
    limit = ""
    if cut.lower_limit is not None and cut.confidence is not None:
        limit = f" (at least {cut.lower_limit:.4f} on new data, {100 * cut.confidence:.4g} % confidence)"
    accepted = ("a weight of " if cut.weighted else "") + amount(cut.confusion.predicted_positives)
    return (
        f"{action}: {cut.metric.name} = {cut.value:.4f}{limit}{subject_to(cut.constraints, cut.confidence)} "
        f"on {counted(cut.rows, 'row')}, {cut.prior:.2%} {what}{given}, {accepted} accepted{smoothed}"
    )


def multilabel_text(cut: MultilabelCut) -> str:
    """Write the cuts of many labels in one line."""
    if (cut.rows == cut.rows[0]).all():
        rows = f"{counted(cut.rows[0], 'row')}{' each' if len(cut) > 1 else ''}"
    else:
        rows = f"{counted(cut.rows.sum(), 'row')} in all"
    if cut.average == "macro":
        kind = "each with a threshold of its own" if len(cut) > 1 else "with a threshold of its own"
    else:
        kind = f"all predicted where score >= {cut.thresholds[0]:.6g}"
    if cut.average != "macro" and cut.thresholds[0] == math.inf:
        kind = "none ever predicted"
    notes = []
    if shared := cut.shared:
        notes.append(f"{len(shared)} took the shared threshold, {cut.shared_threshold:.6g}: {by_text(shared)}")
    if cut.average == "macro" and cut.left_out:
        notes.append(f"{cut.left_out} left out of the mean, where {cut.metric.name} is undefined")
    if too_many := _too_many_text(cut):
        notes.append(too_many)
    known = cut.shrinkage[np.isfinite(cut.shrinkage) & (cut.shrinkage > 0)]
    if len(known):
        least, most = positives_worth(known.min()), positives_worth(known.max())
        notes.append(f"shrinkage {least if least == most else f'{least} to {most}'}, {cut.calibration}")
    tail = f" ({'; '.join(notes)})" if notes else ""
    what = f"{'expected ' if cut.calibration == 'given' else ''}{cut.average} {cut.metric.name}"
    count = counted(len(cut), "label")
    return f"{count}, {kind}: {what} = {cut.value:.4f}{subject_to(cut.constraints, cut.confidence)} on {rows}{tail}"


def _too_many_text(cut: MultilabelCut) -> str:
    """Write which labels flag nearly every row, and how many labels a row is given; nothing where all is well."""
    flagging, (predicted, true) = cut.flags_nearly_all, cut.labels_per_row
    parts = []
    if flagging:
        parts.append(f"{len(flagging):,} {'labels flag' if len(flagging) > 1 else 'label flags'} nearly every row")
    if len(cut) > 1 and (0 < predicted >= OVERPREDICTED * true or (flagging and not math.isnan(predicted))):
        parts.append(f"{_mean_text(predicted)} labels a row, the rows have {_mean_text(true)}")
    return ": ".join(parts)


def _mean_text(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def by_text(texts: Mapping[Any, str], most: int = 5) -> str:
    """Write what is said of labels, each text with the first few labels that it is said of.

    >>> by_text({"a": "sigmoid", "b": "beta", "c": "sigmoid"})
    'sigmoid for a, c, beta for b'
    """
    by: dict[str, list[str]] = {}
    for label, text in texts.items():
        by.setdefault(text, []).append(in_brief(str(label)))
    return ", ".join(
        f"{text} for {', '.join(names[:most])}{f' and {len(names) - most:,} more' if len(names) > most else ''}"
        for text, names in by.items()
    )
