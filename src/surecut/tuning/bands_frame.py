"""Bands of a frame, where the frame is: in memory, in files, or in an engine; and of groups of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, overload

from surecut._inputs import in_brief
from surecut.certificates.weights import require_both, require_counts, whole_counts
from surecut.constraints import InfeasibleError
from surecut.core.tally import ScoreTally
from surecut.decisions.grouped_bands import GroupedBands
from surecut.sources.columns import Columns
from surecut.tuning.bands import find_bands
from surecut.tuning.bands_request import TRIAGE, BandsRequest, TableBandsOptions
from surecut.tuning.frame import engine_rows, opened, require_counted, rows_source
from surecut.tuning.tune import TalliedRows

if TYPE_CHECKING:
    from surecut.core.entries import Entries
    from surecut.decisions.bands import Bands
    from surecut.sources.labels import LabelSource
    from surecut.tuning.request import MetricLike
    from surecut.zones import ConditionsLike, Gain


@overload
def tune_bands_frame(
    frame: Any, *, label: str, score: str, by: None = ..., **options: Unpack[TableBandsOptions]
) -> Bands: ...
@overload
def tune_bands_frame(
    frame: Any, *, label: str, score: str, by: str | Sequence[str], **options: Unpack[TableBandsOptions]
) -> GroupedBands: ...
def tune_bands_frame(
    frame: Any,
    *,
    label: str,
    score: str,
    upper: ConditionsLike | None = None,
    lower: ConditionsLike | None = None,
    conditions: Mapping[str, ConditionsLike] | None = None,
    gains: Mapping[str, Gain] | None = None,
    zones: Sequence[str] = TRIAGE,
    metric: MetricLike | None = None,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    weights: str | None = None,
    pos_label: Any = None,
    confidence: float | None = None,
    prior: float | None = None,
    stable: bool = False,
    missing: str = "error",
    random_state: int | None = 0,
) -> Bands | GroupedBands:
    """Find the bands of a frame's rows, exactly: those of `tune_bands` on the collected columns.

    Parameters
    ----------
    frame, label, score, weight, missing
        As in `tune_frame`.
    by
        Names of columns that group the rows: each group has the same zones and thresholds of its own. A confidence is
        that of the conditions of all groups together, and a prior is refused. Each group needs rows of both classes,
        and as many distinct scores as there are zones.
    upper, lower, conditions, gains, zones, metric, weights, pos_label, confidence, prior, stable, random_state
        As in `tune_bands`. Distinct scores have to fit in memory with `metric`, and with a condition on the PPV or NPV
        of a zone between two others.

    Returns
    -------
    Bands
        With `by` a `GroupedBands`.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"fraud": [0, 0, 1, 0, 1, 1], "p": [0.125, 0.25, 0.375, 0.5, 0.625, 0.75]})
    >>> bands = tune_bands_frame(frame, label="fraud", score="p", upper="ppv>=0.9", lower="npv>=0.9")
    >>> bands.thresholds.tolist()
    [0.3125, 0.5625]
    """
    keys = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    request = BandsRequest.of(
        upper=upper,
        lower=lower,
        conditions=conditions,
        gains=gains,
        zones=zones,
        metric=metric,
        confidence=confidence,
        weights=weights,
        prior=prior,
        stable=stable,
        pos_label=pos_label,
        missing=missing,
        random_state=random_state,
        by=keys,
    )
    require_both(weights, weight is not None, "weight")
    return tune_bands_table(frame, Columns(score, label, weight, keys, pos_label), request)


def tune_bands_table(frame: Any, columns: Columns, request: BandsRequest) -> Bands | GroupedBands:
    """What `tune_bands_frame` does with a request."""
    with opened(frame) as rows:
        if not columns.by:
            source = rows_source(rows, columns, request)
            require_counted(rows, columns, request)
            return find_bands(source, request)
        from surecut.sources.engines import EngineGroups

        groups = EngineGroups(engine_rows(rows, columns, request))
        require_counted(rows, columns, request)
        return _of_groups(groups.collected(), groups.names, request)


def _of_groups(source: LabelSource, names: Sequence[Any], request: BandsRequest) -> GroupedBands:
    """The bands of each group, all of their conditions together with the confidence."""
    if request.confidence is not None:
        request = replace(request, confidence=1 - (1 - request.confidence) / len(names))
        if source.weighted:
            require_counts(request.weights, "a condition with confidence")
    found = []
    for block in source.blocks():
        entries, dtype = source.entries(block), source.dtype_of(block)
        named = zip(names[block], source.orders()[block], range(block.start, block.stop), strict=True)
        checksums = source.checksums()
        for position, (name, order, number) in enumerate(named):
            own = entries.of_sample(position)
            tally = ScoreTally(
                own.low,
                *_counts(own, request),
                dtype,
                int(checksums[number]) if len(checksums) else 0,
                order=order,
            )
            try:
                found.append(find_bands(TalliedRows(tally), request))
            except InfeasibleError as error:
                raise InfeasibleError(f"group {in_brief(repr(name))}: {error}") from None
            except ValueError as error:
                raise ValueError(f"group {in_brief(repr(name))}: {error}") from None
    if not len(source.checksums()):
        found = [bands.with_sample(fingerprint="") for bands in found]
    return GroupedBands(tuple(names), tuple(found))


def _counts(entries: Entries, request: BandsRequest) -> tuple[Any, Any, Any]:
    """Weight, rows and squared weights of a group's scores; numbers of rows where weights are such and it matters."""
    if not entries.weighted:
        return entries.rows, entries.rows, entries.rows
    if request.confidence is not None:
        counts = whole_counts(entries.weight)
        return counts, counts, counts
    return entries.weight, entries.rows, entries.weight
