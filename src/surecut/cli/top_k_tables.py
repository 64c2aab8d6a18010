"""What commands print of rules of k labels a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import in_brief
from surecut._plurals import counted
from surecut.certificates.certificate import confident
from surecut.certificates.top_k_certificate import value_sentence
from surecut.cli.printing import line, number, share, table, with_signs
from surecut.decisions.class_wording import baseline_text, bound_text, shown_value, value_name
from surecut.decisions.wording import capitalized, label_text
from surecut.label_objectives import MACRO, WEIGHTED

if TYPE_CHECKING:
    from surecut.certificates.top_k_certificate import TopKCertificate
    from surecut.cli.files import Rows
    from surecut.decisions.top_k import TopK
    from surecut.sources.applying import PredictedRows, Predictions
    from surecut.sources.long_tables import LongMatrices

MOST = 20
"""So many labels are shown."""


def read(matrices: LongMatrices, rows: Rows) -> None:
    """What was read."""
    of_labels = f"{counted(len(matrices), 'row')} with {counted(len(matrices.labels), 'label')}"
    line(
        f"{of_labels} in {counted(len(rows), 'line')}, {rows.positives / len(rows):.2%} true "
        f"({rows.label} = {rows.positive}); score in {rows.score!r}"
        + ("; values are of the rows' weights" if matrices.weight is not None else "")
    )


def rule(found: TopK) -> None:
    """What the rule is worth beside the largest scores, and what it does to each label."""
    largest = "largest score" if found.k == 1 else f"{found.k} largest scores"
    value, before = (number(shown_value(found, one)) for one in (found.value, found.baseline.value))
    if found.metric is None:
        line(f"\nCost of a row: {value}; without the rule {before}\n")
    else:
        verb = "has" if found.k == 1 else "have"
        line(f"\n{value_name(found)} of {_labels(found)}: {value}; the {largest} {verb} {before}\n")
    if found.a is None:
        actions(found)
    else:
        labels(found)
    if found.calibration is not None:
        what = "Costs are compared by" if found.a is None else "a and offset are for"
        line(f"\n{what} probabilities, which a curve of the scores ({found.calibration}) gives")
    if text := bound_text(found):
        line(f"\n{capitalized(text)}")


def predicted(lines: Predictions, found: PredictedRows) -> str:
    """What the rows of a table get, in words."""
    labels = lines.outcomes["predicted"]
    what = "a class" if found.actions else "a label" if labels == found.given else counted(labels, "label")
    said = [f"{found.given:,} given {what}"]
    said += [f"{number:,} {in_brief(repr(action))}" for action, number in found.actions.items()]
    said += [f"{found.without:,} given none"] if found.without else []
    return f"{counted(found.rows, 'row')} in {counted(lines.rows, 'line')}: {', '.join(said)}"


def certificate(found: TopKCertificate) -> None:
    """What is promised of a rule, and of each label."""
    line(value_sentence(found))
    recall, precision = found.recall, found.precision
    if recall is None or precision is None or not found.labels:
        return
    line(f"\n{confident(found)}, on new rows, all at once:\n")
    cells = []
    for i, label in enumerate(found.labels[:MOST]):
        shown = [label_text(label)]
        for limits in (recall, precision):
            is_known = not math.isnan(limits.value[i])
            shown += [f"{int(limits.rows[i]):,}", _known(limits.value[i]), number(limits.lower[i]) if is_known else "–"]
        cells.append(shown)
    table(("label", "rows", "recall", "at least", "predicted", "precision", "at least"), cells)
    if len(found.labels) > MOST:
        line(f"… and {counted(len(found.labels) - MOST, 'label')}, which --format json has")


def labels(found: TopK) -> None:
    """The labels that most rows have: their numbers, how often they are predicted, and what that is worth."""
    tp, fp, fn, tn = (np.asarray(getattr(found.confusion, cell), dtype=float) for cell in ("tp", "fp", "fn", "tn"))
    before = np.asarray(found.baseline.confusion.predicted_positives, dtype=float)
    has_value = found.average in (MACRO, WEIGHTED)
    assert found.a is not None
    cells = []
    for one in np.argsort(-(tp + fn), kind="stable")[:MOST].tolist():
        total = tp[one] + fp[one] + fn[one] + tn[one]
        cells.append(
            [
                label_text(found.labels[one]),
                with_signs(f"{found.a[one]:.4g}"),
                with_signs(f"{found.offsets[one]:.4g}"),
                share(before[one], total),
                share(tp[one] + fp[one], total),
                share(tp[one] + fn[one], total),
                share(tp[one], tp[one] + fn[one]),
                share(tp[one], tp[one] + fp[one]),
                *([_known(found.per_label[one])] if has_value else []),
            ]
        )
    headings = ["label", "a", "offset", "before", "after", "true", "recall", "precision"]
    table([*headings, *([found.metric.name if found.metric else ""] if has_value else [])], cells)
    if len(found) > MOST:
        line(f"… and {counted(len(found) - MOST, 'label')} that fewer rows have")
    line("\nbefore, after: how often it is predicted, by the largest scores and by the rule")


def actions(found: TopK) -> None:
    """The actions: how often each is chosen, and what it costs there."""
    assert found.matrix is not None
    assert found.baseline.matrix is not None
    assert found.costs is not None
    costs = np.asarray(found.costs, dtype=float)
    chosen, before = (np.asarray(one, dtype=float) for one in (found.matrix, found.baseline.matrix))
    cells = []
    for place, action in enumerate(found.actions):
        column: Any = chosen[:, place]
        correct = column[found.labels.index(action)] if action in found.labels else math.nan
        cells.append(
            [
                label_text(action),
                share(before[:, place].sum(), before.sum()),
                share(column.sum(), chosen.sum()),
                "–" if math.isnan(correct) else share(correct, column.sum()),
                _known(float(column @ costs[:, place]) / column.sum() if column.any() else math.nan),
            ]
        )
    table(("action", "before", "after", "precision", "cost of a row"), cells)
    line(f"\nbefore, after: how often it is chosen, by {baseline_text(found)} and by the rule")


def _labels(found: TopK) -> str:
    return f"{len(found):,} classes" if found.is_multiclass else counted(len(found), "label")


def _known(value: float) -> str:
    return "–" if math.isnan(value) else number(value)
