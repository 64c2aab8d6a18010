"""What commands print of bands: tables of zones, conditions and groups, and the same for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from surecut._plurals import counted
from surecut.cli.printing import (
    assumptions,
    changes,
    line,
    looks_text,
    number,
    plain,
    rows_then,
    share,
    spread,
    suggest_reference,
    table,
    threshold,
    with_signs,
)
from surecut.core.zone_task import named
from surecut.decisions.saving import label_to_json, number_to_json
from surecut.decisions.wording import (
    amount,
    bands_value_text,
    capitalized,
    label_text,
    range_text,
    tolerance_text,
    unpromised_text,
)

if TYPE_CHECKING:
    from surecut.certificates.zone_certificate import BandsCertificate, GroupsCertificate, ZoneLimit
    from surecut.certificates.zone_drift import BandsDrift
    from surecut.cli.bands import GroupsDrift
    from surecut.decisions.bands import Bands
    from surecut.decisions.grouped_bands import GroupedBands

MOST = 20
"""So many groups are shown."""


def bands(found: Bands) -> None:
    """The zones, what they are worth, their conditions, and how settled the thresholds are."""
    last = len(found.zones) - 1
    cells = []
    for zone, (negatives, positives) in enumerate(found.confusion.tolist()):
        right = {0: "npv", last: "ppv"}.get(zone)
        cells.append(
            [
                label_text(found.zones[zone]),
                start_text(found, zone),
                *map(amount, (negatives + positives, negatives, positives)),
                share(found.shares[zone], 1),
                "" if right is None else f"{right} {known(found.value_of(found.zones[zone], right))}",
            ]
        )
    rows = "weight" if found.weighted else "rows"
    shares = "expected share" if found.prior_given else "share"
    table(("zone", "from score", rows, "negative", "positive", shares, ""), cells)
    if value := bands_value_text(found):
        where = f"At a share of positives of {found.prior:g}" if found.prior_given else "On these rows"
        line(f"\n{where}: {value}")
    conditions(found)
    stabilities(found)


def start_text(found: Bands, zone: int) -> str:
    """From which score on rows are in a zone; a dash where no score is in it."""
    starts = [-math.inf, *found.thresholds.tolist(), math.inf]
    start, end = starts[zone : zone + 2]
    return "–" if start == end else threshold(start)


def known(value: float) -> str:
    """A number; a dash where there is none."""
    return "–" if math.isnan(value) else number(value)


def conditions(found: Bands) -> None:
    """What conditions are on these rows, and what is known of them on others."""
    if not found.conditions:
        return
    here = [
        [named(one, found.zones), known(found.value_of(found.zones[one.zone], one.quantity.name))]
        for one in found.conditions
    ]
    if found.confidence is not None:
        line(f"\nConditions that hold on new rows, all at once, with {100 * found.confidence:g} % confidence:")
        table(("condition", "here"), here)
        if unpromised := unpromised_text(found):
            line(f"\n{capitalized(unpromised)}: with more labels, or lower levels, it may be.")
        return
    line("\nConditions on these rows, and how often they fail on other rows (estimated):")
    rates = [f"{rate:.0%}" for rate in found.failure_rates] or ["–"] * len(here)
    cells = [[*row, rate] for row, rate in zip(here, rates, strict=False)]
    if len(here) > 1 and found.failure_rates:
        cells.append(["any of them", "", rates[-1]])
    table(("condition", "here", "fails"), cells)


def stabilities(found: Bands) -> None:
    """How settled the thresholds of stable bands are; nothing for exact ones."""
    cells = []
    for zone, stability in zip(found.zones[1:], found.stability, strict=False):
        if stability is not None:
            loses = tolerance_text(stability).removeprefix("lose ")
            best = threshold(stability.best_threshold)
            cells.append([label_text(zone), spread(stability), with_signs(range_text(stability)), loses, best])
    if cells:
        line("\nStable thresholds, and where resamples of these rows put them:")
        table(("zone", "resampled (90 %)", "near-optimal", "and loses", "best here"), cells)


def grouped_bands(found: GroupedBands) -> None:
    """The sentence, and of the groups with the most rows thresholds and shares."""
    line(str(found) + "\n")
    has_rates = any(one.failure_rates for one in found.bands)
    by_rows = sorted(found, key=lambda group: -found[group].rows)
    cells = []
    for group in by_rows[:MOST]:
        one = found[group]
        starts = [start_text(one, zone) for zone in range(1, len(one.zones))]
        rate = [f"{one.failure_rates[-1]:.0%}" if one.failure_rates else "–"] if has_rates else []
        cells.append(
            [label_text(group), *starts, *(share(part, 1) for part in one.shares.tolist()), amount(one.rows), *rate]
        )
    zones = [label_text(zone) for zone in found.zones]
    table(("group", *(f"{zone} from" for zone in zones[1:]), *zones, "rows", *["fails"] * has_rates), cells)
    if len(found) > MOST:
        line(f"… and {counted(len(found) - MOST, 'group')} with fewer rows")
    if has_rates:
        line("\nfails: how often not all conditions hold on other rows of the group (estimated)")


# Certificates


def certificate(found: BandsCertificate) -> None:
    """The limits of each zone, the conditions, and what must be true."""
    line(f"On new rows, each with {100 * found.confidence:g} % confidence, from {counted(found.rows, 'row')}:\n")
    table(("zone", "", "here", "at least", "at most"), list(map(limit_cells, limits(found))), left=(0, 1))
    if found.conditions:
        line(f"\nConditions, all at once with {100 * found.confidence:g} % confidence:")
        table(("condition", "here", "on new rows", "verdict"), promise_cells(found), left=(0, 2, 3))
    if found.note:
        line(f"\n{found.note}")
    assumptions(found.assumptions)


def limits(found: BandsCertificate) -> list[ZoneLimit]:
    """All limits, that of the gain last."""
    return [*found.zones, *([] if found.gain is None else [found.gain])]


def limit_cells(one: ZoneLimit) -> list[str]:
    """A limit in a table."""
    return [label_text(one.zone), one.quantity, *map(known, (one.value, one.lower, one.upper))]


def is_lower_bound(condition: str) -> bool:
    """Whether a condition has ``>=``, whatever its zone is called.

    >>> is_lower_bound("ppv>=0.9 in 'yes'"), is_lower_bound("share<=0.2 in '>=2 in ten'")
    (True, False)
    """
    return ">=" in condition.partition(" in ")[0]


def promise_cells(found: BandsCertificate) -> list[list[str]]:
    """What is promised of each condition, in a table."""
    cells = []
    for one in found.conditions:
        reaches = "at least" if is_lower_bound(one.constraint) else "at most"
        verdict = "holds" if one.holds else "not sure to hold"
        cells.append([one.constraint, known(one.value), f"{reaches} {number(one.limit)}", verdict])
    return cells


def group_certificates(found: GroupsCertificate) -> None:
    """The same for each group."""
    sure = f"{100 * found.confidence:g} %"
    each = next(iter(found.certificates.values()))
    line(
        f"On new rows of {counted(len(found.certificates), 'group')}, each limit in all groups together with {sure} "
        f"confidence, in one group with {100 * each.confidence:.6g} %:\n"
    )
    shown = list(found.certificates.items())[:MOST]
    cells = [[label_text(group), *limit_cells(limit)] for group, one in shown for limit in limits(one)]
    table(("group", "zone", "", "here", "at least", "at most"), cells, left=(0, 1, 2))
    if each.conditions:
        line(f"\nConditions, all at once with {sure} confidence:")
        cells = [[label_text(group), *row] for group, one in shown for row in promise_cells(one)]
        table(("group", "condition", "here", "on new rows", "verdict"), cells, left=(0, 1, 3, 4))
    if len(found.certificates) > MOST:
        line(f"… and {counted(len(found.certificates) - MOST, 'group')}: --format json has all of them")
    for note in dict.fromkeys(one.note for one in found.certificates.values() if one.note):
        line(f"\n{note}")
    assumptions(dict.fromkeys(text for one in found.certificates.values() for text in one.assumptions))


def group_certificates_document(found: GroupsCertificate) -> dict[str, Any]:
    """The same for programs."""
    return {
        "confidence": found.confidence,
        "groups": [
            {"group": plain(label_to_json(group)), **plain(asdict(one))} for group, one in found.certificates.items()
        ],
    }


# Drift


def drift(report: BandsDrift) -> None:
    """What has changed since bands were tuned, and whether their conditions hold."""
    starts = " and ".join(threshold(one) for one in report.bands.thresholds.tolist())
    line(f"{counted(report.rows, 'row')} in the zones from {starts}, beside {rows_then(report)}\n")
    changes({"positive": report.prior, **report.zones})
    if report.conditions:
        line(f"\nConditions now, all at once with {100 * report.confidence:g} % confidence:")
        table(("condition", "now", "on new rows", "verdict"), now_cells(report), left=(0, 2, 3))
    line("")
    verdict(report, report)


def now_cells(report: BandsDrift) -> list[list[str]]:
    """What each condition is now, in a table."""
    cells = []
    for name, one in report.conditions.items():
        reaches = "at most" if is_lower_bound(name) else "at least"
        limit = "–" if math.isnan(one.limit) else f"{reaches} {number(one.limit)}"
        cells.append([name, known(one.value), limit, "does not hold" if one.broken else "may hold"])
    return cells


def verdict(report: BandsDrift | GroupsDrift, one: BandsDrift, where: str = "") -> None:
    """Whether anything has moved, or is broken; `one` is any of the reports."""
    sure = f"{100 * report.confidence:g} % confidence"
    if report.moved:
        line(f"There is a statistically significant change ({sure}).", style="bold red")
    else:
        line(f"No sign of a change{where}: chance alone can explain such differences ({sure}).", style="bold green")
    if report.broken:
        broken = counted(len(report.broken), "condition")
        line(f"{broken} {'does' if len(report.broken) == 1 else 'do'} not hold ({sure}).", style="bold red")
    if not report.moved and not report.broken:
        suggest_reference(one, "held-out rows")
    line(looks_text(report.looks))


def group_drift(report: GroupsDrift) -> None:
    """The groups that have changed, or where a condition does not hold."""
    checked, groups = len(report.reports), len(report.reports) + len(report.not_checked)
    some = "" if checked == groups else f"{checked:,} of "
    line(f"{some}{counted(groups, 'group')}, each at {report.each:.6g} confidence\n")
    cells = []
    for group, one in report.reports.items():
        told = [f"{name} {change.direction}" for name, change in quantities(one).items() if change.moved]
        told += [f"{name} does not hold" for name in one.broken]
        if told:
            cells.append([label_text(group), f"{one.prior.then:.4f} → {one.prior.now:.4f}", ", ".join(told)])
    if cells:
        table(("group", "positive", "verdict"), cells[:MOST], left=(0, 1, 2))
        line(f"… and {counted(len(cells) - MOST, 'more group')}\n" if len(cells) > MOST else "")
    for group, reason in list(report.not_checked.items())[:MOST]:
        line(f"{label_text(group)}: not checked, {reason}")
    where = f" in the group{'s' if checked > 1 else ''} that could be checked" if report.not_checked else ""
    verdict(report, next(iter(report.reports.values())), where)


def quantities(report: BandsDrift) -> Mapping[str, Any]:
    """All that was compared."""
    return {"positive": report.prior, **report.zones}


def group_drift_document(report: GroupsDrift) -> dict[str, Any]:
    """The same for programs."""
    return {
        "moved": report.moved,
        "broken": list(report.broken),
        "confidence": report.confidence,
        "looks": report.looks,
        "groups": [
            {"group": plain(label_to_json(group)), **drift_document(one)} for group, one in report.reports.items()
        ],
        "not_checked": {label_text(group): reason for group, reason in report.not_checked.items()},
    }


def drift_document(report: BandsDrift) -> dict[str, Any]:
    """The same for programs."""
    return {
        "moved": report.moved,
        "broken": list(report.broken),
        "confidence": report.confidence,
        "looks": report.looks,
        "rows": report.rows,
        "thresholds": [number_to_json(one) for one in report.bands.thresholds.tolist()],
        "prior": plain(asdict(report.prior)),
        "zones": {name: plain(asdict(change)) for name, change in report.zones.items()},
        "conditions": {name: plain(asdict(one)) for name, one in report.conditions.items()},
    }
