"""What commands do with bands between reading a file and printing: what was asked for, tuned, certified, checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from surecut._inputs import in_brief
from surecut._plurals import counted
from surecut.certificates.drift import check_drift
from surecut.cli import bands_tables
from surecut.cli.commands import LIKELY, columns_of, row_labels, tally_at
from surecut.cli.files import Arrays
from surecut.core.tally import ScoreTally
from surecut.core.zone_task import named
from surecut.decisions.bands import Bands
from surecut.tuning.bands_frame import tune_bands_table
from surecut.tuning.bands_request import TRIAGE, BandsRequest

if TYPE_CHECKING:
    from surecut.certificates.zone_drift import BandsDrift
    from surecut.cli.files import Rows
    from surecut.decisions.grouped_bands import GroupedBands
    from surecut.report import BandsSummary


@dataclass(frozen=True)
class ZoneOptions:
    """What the options of `tune` say of zones, as they were typed."""

    upper: Sequence[str] = ()
    lower: Sequence[str] = ()
    condition: Sequence[str] = ()
    gain: Sequence[str] = ()
    zones: str | None = None

    @property
    def are_given(self) -> bool:
        """Whether any of them is: then bands are asked for."""
        return bool(self.upper or self.lower or self.condition or self.gain or self.zones is not None)

    def request(self, metrics: Sequence[str], by: Sequence[str], **options: Any) -> BandsRequest:
        """What is asked for, validated."""
        if len(metrics) > 1:
            raise ValueError("--metric of bands is one ratio, of the rows that are decided: give it once")
        gains = dict(map(parse_gain, self.gain))
        if len(gains) < len(self.gain):
            raise ValueError(f"--gain is given twice for a zone: each of {', '.join(map(repr, gains))} has one")
        conditions: dict[str, list[str]] = {}
        for zone, condition in map(parse_condition, self.condition):
            conditions.setdefault(zone, []).append(condition)
        return BandsRequest.of(
            upper=list(self.upper) or None,
            lower=list(self.lower) or None,
            conditions=conditions,
            gains=gains or None,
            zones=TRIAGE if self.zones is None else [zone.strip() for zone in self.zones.split(",")],
            metric=metrics[0] if metrics else None,
            by=by,
            **options,
        )


def conditions_named(request: BandsRequest) -> list[str]:
    """The conditions with the names of their zones."""
    return [named(one, request.task.names) for one in request.task.conditions]


def refuse_options_of_cuts(
    constraint: Sequence[str] | None, shrinkage: float | str, average: str, has_page_of_groups: bool
) -> None:
    """Raise where an option is given that bands do not have, and say what they have instead."""
    if has_page_of_groups:
        raise ValueError("--report shows bands of one sample: leave out --by, or tune the rows of one group")
    if constraint:
        raise ValueError(
            "--constraint is for a cut: conditions on zones are --upper, --lower and --condition, such as --upper "
            f"{constraint[0]!r}"
        )
    if shrinkage != 0:
        raise ValueError("--shrinkage is for a cut: with bands --stable uses the same model of the scores")
    if average != "macro":
        raise ValueError(f"--average {average} is for a cut: with --by each group has bands of its own, leave it out")


def parse_condition(text: str) -> tuple[str, str]:
    """The zone and its condition.

    >>> parse_condition("ask: share<=0.2")
    ('ask', 'share<=0.2')
    """
    zone, _, condition = text.rpartition(":")
    if not zone.strip() or not condition.strip():
        raise ValueError(
            f'--condition must be "ZONE: CONDITION", such as "ask: share<=0.2", got {in_brief(repr(text))}'
        )
    return zone.strip(), condition.strip()


def parse_gain(text: str) -> tuple[str, float | tuple[float, float]]:
    """The zone, and what a row in it is worth: negative and positive ones, or any.

    >>> parse_gain("yes: -5, 1"), parse_gain("ask: -0.5")
    (('yes', (-5.0, 1.0)), ('ask', -0.5))
    """
    zone, _, numbers = text.rpartition(":")
    try:
        found = [float(number) for number in numbers.split(",")]
    except ValueError:
        found = []
    if not zone.strip() or len(found) not in (1, 2):
        raise ValueError(
            '--gain must be "ZONE: IF NEGATIVE, IF POSITIVE", such as "yes: -5, 1", or one number for both, such as '
            f'"ask: -0.5", got {in_brief(repr(text))}'
        )
    return zone.strip(), found[0] if len(found) == 1 else (found[0], found[1])


@dataclass(frozen=True)
class TunedBands:
    """Bands of one column of scores, or those of groups of rows; the rows' tally, which the page needs."""

    bands: Bands | GroupedBands
    tally: ScoreTally | None = None

    @property
    def decisions(self) -> Sequence[Bands | GroupedBands]:
        """What is saved."""
        return [self.bands]

    def show(self) -> None:
        """Print the tables."""
        if isinstance(self.bands, Bands):
            bands_tables.bands(self.bands)
        else:
            bands_tables.grouped_bands(self.bands)

    def document(self) -> dict[str, Any]:
        """The bands as JSON has them."""
        return {"bands": self.bands.to_dict()}

    def summary(self, title: str) -> BandsSummary:
        """What the page shows."""
        from surecut.report import summarize_bands

        if self.tally is None or not isinstance(self.bands, Bands):
            raise ValueError("the page needs bands of one sample, and a tally of its rows")
        return summarize_bands(self.bands, self.tally, confidence=self.bands.confidence or LIKELY, title=title)


def tuned_bands(rows: Rows, request: BandsRequest, has_page: bool) -> TunedBands:
    """The bands of all rows, or of each group of them."""
    request = replace(request, pos_label=rows.pos_label)
    bands = tune_bands_table(rows.relation, columns_of(rows), request)
    return TunedBands(bands, tally_at(rows, bands.thresholds.tolist()) if has_page else None)


# Groups


@dataclass(frozen=True)
class GroupsDrift:
    """What has changed in each group since its bands were tuned: the attributes are those of `LabelDrift`."""

    reports: dict[Any, BandsDrift]
    not_checked: dict[Any, str]
    confidence: float
    each: float
    looks: int = 1

    @property
    def moved(self) -> bool:
        """Whether any group has a statistically significant change."""
        return any(report.moved for report in self.reports.values())

    @property
    def broken(self) -> tuple[str, ...]:
        """The conditions that do not hold now in some group."""
        return tuple(dict.fromkeys(itertools.chain.from_iterable(one.broken for one in self.reports.values())))


def groups_of_rows(found: Arrays, bands: GroupedBands, file: str, hint: str = "") -> Any:
    """The group of each row of a file."""
    columns = len(bands.groups[0]) if isinstance(bands.groups[0], tuple) else 1
    return row_labels(found, bands, columns, file=file, hint=hint)


def rows_of_groups(found: Arrays, bands: GroupedBands, file: str, hint: str = "") -> Iterator[tuple[Any, Arrays]]:
    """Each group of bands with its rows, which may be none."""
    numbers = bands.numbers(groups_of_rows(found, bands, file, hint))
    for number, group in enumerate(bands):
        yield group, found.where(numbers == number)


def checked_groups(
    now: Arrays,
    then: Arrays | None,
    bands: GroupedBands,
    files: tuple[str, str],
    *,
    unknown: str,
    confidence: float,
    looks: int,
    **options: Any,
) -> GroupsDrift:
    """What has changed in each group, which has an equal part of the error; `files` hold the rows now and then.

    Groups without rows are not checked, or are an error.
    """
    each, hint = bands.each_confidence(confidence), "; --unknown drop leaves them out"
    before = {} if then is None else dict(rows_of_groups(then, bands, files[1], hint))
    reports, not_checked = {}, {}
    for group, rows in rows_of_groups(now, bands, files[0], hint):
        sides = {"rows": rows} | ({} if then is None else {"reference rows": before[group]})
        if lacking := next((name for name, one in sides.items() if not len(one.scores)), None):
            if unknown == "error":
                raise ValueError(
                    f"there are no {lacking} of the group {in_brief(repr(group))}: give some, or say --unknown drop to "
                    "check the other groups"
                )
            not_checked[group] = f"no {lacking}"
            continue
        reference = None if then is None else tally_of(before[group])
        with _of_group(group):
            reports[group] = check_drift(
                bands[group], tally=tally_of(rows), reference=reference, confidence=each, looks=looks, **options
            )
    if not reports:
        raise ValueError(f"none of {counted(len(bands), 'group')} can be checked: {next(iter(not_checked.values()))}")
    return GroupsDrift(reports, not_checked, confidence, each, looks)


def tally_of(rows: Arrays) -> ScoreTally:
    """The tally of rows in memory."""
    return ScoreTally.from_scores(rows.is_positive, rows.scores, sample_weight=rows.weights)


@contextmanager
def _of_group(group: Any) -> Iterator[None]:
    """An error says of which group it is."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"group {in_brief(repr(group))}: {error}") from None
