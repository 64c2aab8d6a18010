"""Text for people: numbers, labels, and the one line that a cut prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import in_brief
from surecut._plurals import counted
from surecut.averages import OVERPREDICTED
from surecut.confusion import Confusion
from surecut.constraints import Constraint, listed

if TYPE_CHECKING:
    from surecut.decisions.bands import Bands
    from surecut.decisions.cut import Cut
    from surecut.decisions.grouped_bands import GroupedBands
    from surecut.decisions.multilabel import MultilabelCut
    from surecut.decisions.stability import Stability
    from surecut.zones import Condition

FEW = 50
"""With fewer positives, or negatives, a threshold moves so much from sample to sample that its spread is a guess."""


def label_text(label: Any) -> str:
    """Write a label; the parts of one that comes from several columns are separated by commas."""
    return ", ".join(map(label_text, label)) if isinstance(label, tuple) else in_brief(str(label))


def capitalized(sentence: str) -> str:
    """Write a sentence with a capital first letter; the others stay as they are."""
    return sentence[:1].upper() + sentence[1:]


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


def between(low: float, high: float) -> tuple[str, str]:
    """Write the ends of a range, to two digits of its width.

    >>> between(0.30967, 0.41125), between(1000.0004, 1000.0011), between(0.25, math.inf), between(2e-9, 3e-9)
    (('0.31', '0.41'), ('1000.00040', '1000.00110'), ('0.25', 'inf'), ('2e-09', '3e-09'))
    """
    width, largest = high - low, max(abs(low), abs(high))
    if 0 < width and 1e-3 <= largest < 1e7:
        decimals = max(0, 1 - math.floor(math.log10(width)))
        return f"{low:.{decimals}f}", f"{high:.{decimals}f}"
    for digits in range(4, 17):
        ends = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if not 0 < width < math.inf or ends[0] != ends[1]:
            return ends
    return str(low), str(high)


def spread_text(stability: Stability) -> str:
    """Write where most of the resampled thresholds are."""
    return f"90 % of resampled thresholds in {' to '.join(between(*stability.spread))}"


def range_text(stability: Stability) -> str:
    """Write the near-optimal range.

    >>> from surecut.decisions.stability import Stability
    >>> range_text(Stability(200, (0.31, 0.34, 0.35, 0.37, 0.41), (0.33, 0.38), 0.008, 0.795, 0.3391))
    '(0.330, 0.380]'
    """
    return f"({', '.join(between(*stability.near_optimal))}]"


def tolerance_text(stability: Stability) -> str:
    """Write how much thresholds of the near-optimal range lose."""
    return f"lose at most {stability.tolerance:.2g}" if stability.tolerance else "lose nothing"


def best_text(cut: Cut) -> str:
    """Write what the best threshold is worth on the validation rows of a stable cut; empty for an exact cut."""
    if cut.stability is None:
        return ""
    best = cut.stability.best_threshold
    if cut.value >= cut.stability.best_value or cut.threshold == cut.stability.best_threshold:
        return "no threshold is better here"
    which = "predicting nothing" if best == math.inf else f"{best:.4g}"
    return f"the best here, {which}, reaches {cut.stability.best_value:.4f}"


def stability_text(cut: Cut) -> str:
    """Write how settled a threshold is, in one line; empty for an exact cut."""
    if cut.stability is None:
        return ""
    parts = [
        best_text(cut),
        spread_text(cut.stability),
        f"thresholds in {range_text(cut.stability)} {tolerance_text(cut.stability)}",
        unsettled_text(cut),
    ]
    return "; ".join(filter(None, parts))


def unsettled_text(cut: Cut) -> str:
    """Write that a stable cut has too few rows of a class for its spread to mean much; empty where it has enough."""
    positives, negatives = cut.confusion.positives, cut.confusion.negatives
    count = float(rarer_class(cut.confusion, cut.rows))
    if cut.stability is None or not count < FEW:
        return ""
    noun = "positive" if positives <= negatives else "negative"
    about = "about " if cut.weighted else ""
    return f"only {about}{counted(round(count), noun)}: the threshold is not settled, and its spread is a rough guess"


def rarer_class(confusion: Confusion, rows: Any) -> Any:
    """The number of rows of the rarer class; weights are scaled to the number of rows, infinite where it is unknown."""
    share = np.minimum(confusion.positives, confusion.negatives) / np.asarray(confusion.total, dtype=float)
    return np.where(np.asarray(rows) > 0, share * rows, np.inf)


def unsettled_labels_text(cut: MultilabelCut) -> str:
    """Write how many labels have too few rows of a class for a settled threshold; empty where there are none."""
    if cut.stability is None:
        return ""
    if cut.average != "macro":
        pooled = Confusion(*(getattr(cut.confusion, cell).sum() for cell in ("tp", "fp", "fn", "tn")))
        few = rarer_class(pooled, cut.rows.sum()) < FEW
        return f"fewer than {FEW} positives or negatives in all: not settled" if few else ""
    few = int(((rarer_class(cut.confusion, cut.rows) < FEW) & (cut.stability.resamples > 0)).sum())
    which = f"{few:,} {'has' if few == 1 else 'have'}" if len(cut) > 1 else "it has"
    return f"{which} fewer than {FEW} positives or negatives: not settled" if few else ""


def cut_text(cut: Cut) -> str:
    """Write a cut in one line."""
    given = " (given)" if cut.prior_given else ""
    smoothed = f" (shrinkage {positives_worth(cut.shrinkage)}, {cut.calibration})" if cut.shrinkage else ""
    what = "positive" if cut.pos_label is None else repr(cut.pos_label)
    action = "predict nothing" if cut.predicts_nothing else f"predict {what} where score >= {cut.threshold:.6g}"
    stable = "" if cut.stability is None else " (stable)"
    tail = f"; {stability_text(cut)}" if cut.stability is not None else ""
    limit = ""
    if cut.lower_limit is not None and cut.confidence is not None:
        limit = f" (at least {cut.lower_limit:.4f} on new data, {100 * cut.confidence:.4g} % confidence)"
    accepted = ("a weight of " if cut.weighted else "") + amount(cut.confusion.predicted_positives)
    return (
        f"{action}{stable}: {cut.metric.name} = {cut.value:.4f}{limit}{subject_to(cut.constraints, cut.confidence)} "
        f"on {counted(cut.rows, 'row')}, {cut.prior:.2%} {what}{given}, {accepted} accepted{smoothed}{tail}"
    )


def rule_text(bands: Bands) -> str:
    """Write which scores are in which zone; zones that no score is in are left out.

    >>> from surecut import tune_bands
    >>> rule_text(tune_bands([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], upper="ppv>=0.9", lower="npv>=0.9"))
    'no below 0.25, ask from 0.25, yes from 0.75'
    """
    starts = [-math.inf, *bands.thresholds.tolist()]
    parts = []
    for zone, start, end in zip(bands.zones, starts, [*starts[1:], math.inf], strict=True):
        if start < end:
            where = f"from {start:.6g}" if start > -math.inf else f"below {end:.6g}" if end < math.inf else "always"
            parts.append(f"{zone} {where}")
    return ", ".join(parts)


def zone_text(bands: Bands, zone: int) -> str:
    """Write how many validation rows are in a zone; of the outer ones also how many of them do not belong there.

    A row does not belong to the lowest zone if it is positive, nor to the highest one if it is negative.
    """
    negatives, positives = bands.confusion[zone].tolist()
    text = f"{amount(negatives + positives)} {bands.zones[zone]}"
    if zone == 0:
        text += f" ({amount(positives)} of them positive)"
    elif zone == len(bands.zones) - 1:
        text += f" ({amount(negatives)} of them negative)"
    return text


def conditions_text(bands: Bands) -> str:
    """Write what zones had to meet, and how sure that is."""
    if not bands.conditions:
        return ""
    if bands.confidence is not None:
        empty = _unpromised(bands)
        kept = [one for one in bands.conditions if one.zone not in empty]
        promise = f"on new data ({100 * bands.confidence:.4g} % confidence)"
        parts = [f"{conditions_listed(bands, kept)} {promise}"] if kept else []
        if lacking := [one for one in bands.conditions if one.zone in empty]:
            where = "" if kept else f" {promise}"
            zones = f"{_and_listed(bands, empty)} {'is' if len(empty) == 1 else 'are'} empty"
            parts.append(f"{conditions_listed(bands, lacking)} could not be promised{where}: {zones}")
        return "; ".join(parts)
    listed = conditions_listed(bands)
    if not bands.failure_rates:
        return f"{listed} on these rows"
    fails = "it fails" if len(bands.conditions) == 1 else "at least one fails"
    return f"{listed} on these rows; on other rows {fails} in about {100 * bands.failure_rates[-1]:.0f} % of cases"


def unpromised_text(bands: Bands) -> str:
    """Write which zones are empty since nothing could be promised of them; empty text where there are none."""
    empty = _unpromised(bands)
    return f"nothing could be promised of {_and_listed(bands, empty)}" if empty else ""


def _and_listed(bands: Bands, zones: Iterable[int]) -> str:
    return " and ".join(bands.zones[zone] for zone in zones)


def _unpromised(bands: Bands) -> list[int]:
    """The outer zones with promised conditions that are empty; conditions between are upper bounds, met by no rows."""
    outer = {0, len(bands.zones) - 1} if bands.confidence is not None else set()
    asked = outer & {one.zone for one in bands.conditions}
    return [zone for zone in sorted(asked) if not bands.confusion[zone].any()]


def conditions_listed(bands: Bands, conditions: Iterable[Condition] | None = None) -> str:
    """Write the conditions, or some of them, with the names of their zones."""
    some = bands.conditions if conditions is None else conditions
    return " and ".join(f"{one} in {bands.zones[one.zone]}" for one in some)


def bands_value_text(bands: Bands) -> str:
    """Write what the zones are worth; empty where conditions alone were given."""
    if bands.gains is None:
        return "" if bands.metric is None else f"{bands.metric.name} of decided rows = {bands.value:.4f}"
    if bands.metric is not None:
        return f"{bands.metric.name} of decided rows with gains = {bands.value:.4f}"
    return f"gain per row = {bands.value:.4g}"


def bands_text(bands: Bands) -> str:
    """Write bands in plain words."""
    rows = f"a weight of {amount(float(bands.confusion.sum()))}" if bands.weighted else counted(bands.rows, "row")
    zones = ", ".join(zone_text(bands, zone) for zone in range(len(bands.zones)))
    given = f"at a prior of {bands.prior:.2%}" if bands.prior_given else ""
    stable = " (stable)" if bands.stability else ""
    notes = filter(None, [f"of {rows} {zones}", bands_value_text(bands), given, conditions_text(bands)])
    return f"{rule_text(bands)}{stable}: {'; '.join(notes)}"


def grouped_bands_text(bands: GroupedBands) -> str:
    """Write the bands of groups in one line."""
    shares = ", ".join(f"{share:.1%} {zone}" for zone, share in zip(bands.zones, bands.shares.tolist(), strict=True))
    text = f"{counted(len(bands), 'group')}, each with thresholds of its own: {shares}"
    if not bands.bands[0].conditions:
        return text
    listed = conditions_listed(bands.bands[0])
    if bands.confidence is None:
        return f"{text}; {listed} in each group on these rows"
    return f"{text}; {listed} in every group on new data ({100 * bands.confidence:.4g} % confidence)"


def multilabel_text(cut: MultilabelCut) -> str:
    """Write the cuts of many labels in one line."""
    if (cut.rows == cut.rows[0]).all():
        rows = f"{counted(cut.rows[0], 'row')}{' each' if len(cut) > 1 else ''}"
    else:
        rows = f"{counted(cut.rows.sum(), 'row')} in all"
    stable = "stable " if cut.stability is not None else ""
    if cut.average == "macro":
        kind = f"{'each ' if len(cut) > 1 else ''}with a {stable}threshold of its own"
    else:
        kind = f"all predicted where score >= {cut.thresholds[0]:.6g}{' (stable)' if stable else ''}"
    if cut.average != "macro" and cut.thresholds[0] == math.inf:
        kind = "none ever predicted"
    notes = []
    if shared := cut.shared:
        notes.append(f"{len(shared)} took the shared threshold, {cut.shared_threshold:.6g}: {by_text(shared)}")
    if cut.average == "macro" and cut.left_out:
        notes.append(f"{cut.left_out} left out of the mean, where {cut.metric.name} is undefined")
    if too_many := _too_many_text(cut):
        notes.append(too_many)
    if cut.average != "macro" and cut.stability is not None and (pooled := cut.stability[0]):
        notes.append(spread_text(pooled))
    if unsettled := unsettled_labels_text(cut):
        notes.append(unsettled)
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
