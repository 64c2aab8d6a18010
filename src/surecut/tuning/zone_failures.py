"""How often conditions on zones fail on other rows than those that bands were tuned on: by resampling.

Thresholds are tuned again on resamples, and conditions looked up on the rows themselves, which are to the resamples
what new data are to these. So the estimate knows that thresholds were chosen where a condition just holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from surecut.confusion import Confusion
from surecut.constraints import InfeasibleError
from surecut.core import rules
from surecut.core.entries import both_classes
from surecut.core.keys import scores_of_keys
from surecut.core.zone_search import best_edges, zones_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries
    from surecut.core.rules import Objective
    from surecut.core.zone_search import ZoneTask
    from surecut.zones import Condition

RESAMPLES = 200

RESOLUTION = 256
"""Ranges of scores that are drawn, of about as many rows each."""


class FailureRates(Sequence[float]):
    """How often each condition fails, in their order, and how often any of them does.

    The resamples take longer than to find the bands of many rows, so they are drawn when the rates are first asked for:
    when bands are printed, saved or compared.
    """

    def __init__(self, compute: Callable[[], tuple[float, ...]]) -> None:
        self._compute = compute

    @cached_property
    def _rates(self) -> tuple[float, ...]:
        return self._compute()

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[float, ...]: ...
    def __getitem__(self, index: int | slice) -> float | tuple[float, ...]:
        return self._rates[index]

    def __len__(self) -> int:
        return len(self._rates)

    def __eq__(self, other: object) -> bool:
        return self._rates == (other._rates if isinstance(other, FailureRates) else other)

    __hash__ = None  # type: ignore[assignment]  # it equals a tuple

    def __repr__(self) -> str:
        return repr(self._rates)


def failure_rates(
    entries: Entries, task: ZoneTask, random_state: Any, thresholds: NDArray[np.float64] | None = None
) -> Sequence[float]:
    """How often conditions fail.

    Of `thresholds` that were not chosen where a condition just holds, such as stable ones, it is how often the
    conditions fail on resamples.
    """
    if not task.conditions:
        return ()
    return FailureRates(partial(_rates, _coarse(entries), task, random_state, thresholds))


def _rates(
    coarse: Entries, task: ZoneTask, random_state: Any, thresholds: NDArray[np.float64] | None
) -> tuple[float, ...]:
    random = np.random.default_rng(random_state)
    if thresholds is not None:
        failed = _at(coarse, task, random, thresholds)
    else:
        failed = _together(coarse, task, random) if task.is_joint else _of_each(coarse, task, random)
    if not len(failed):
        return ()
    return tuple(np.append(failed.mean(axis=0), failed.any(axis=1).mean()).tolist())


def _coarse(entries: Entries) -> Entries:
    """The rows in fewer ranges."""
    if len(entries) <= RESOLUTION:
        return entries
    rows = np.cumsum(both_classes(entries.rows))
    ranges = np.searchsorted(rows, np.linspace(0, rows[-1], RESOLUTION + 1)[:-1], side="right")
    return entries.merged(np.unique(np.append(ranges, 0)).clip(0, len(entries) - 1))


def _drawn(entries: Entries, random: np.random.Generator) -> NDArray[Any]:
    """The weights of resamples: (resamples, entries, 2)."""
    rows = entries.rows.astype(float)
    counts = random.multinomial(int(rows.sum()), rows.ravel() / rows.sum(), size=RESAMPLES).reshape(-1, *rows.shape)
    if not entries.weighted:
        return counts
    return np.asarray(counts * (entries.weight / np.maximum(rows, 1)))


def _of_each(entries: Entries, task: ZoneTask, random: np.random.Generator) -> NDArray[np.bool_]:
    """Whether each condition fails after each resample, where every boundary is searched by itself: all at once."""
    weight = _drawn(entries, random)
    above = np.concatenate((np.zeros((len(weight), 1, 2), weight.dtype), np.cumsum(weight, axis=1)), axis=1)
    above = above[(above[:, -1] > 0).all(axis=1)]
    (fp, tp), (n, p) = np.moveaxis(above, 2, 0), np.moveaxis(above[:, -1:], 2, 0)
    drawn = Confusion(tp=tp.ravel(), fp=fp.ravel(), fn=(p - tp).ravel(), tn=(n - fp).ravel())
    edges = task.at_prior(entries.edges)

    def best(objective: Objective) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        values = objective.values(drawn).reshape(tp.shape)
        return rules.first_best(values), np.isfinite(values.max(axis=1))

    chosen, feasible = (np.stack(of_all) for of_all in zip(*map(best, task.objectives), strict=True))
    crossed = (np.diff(chosen, axis=0) > 0).any(axis=0) & feasible.all(axis=0)
    if task.aim.errors is not None and crossed.any():  # one cut meets the conditions of both, as in the bands
        together, is_met = best(task.of_cut(task.boundaries))
        chosen = np.where(crossed & is_met, together, chosen)
    failed = {}
    for boundary in task.boundaries:
        for one in task.at_cut(boundary):
            met = np.asarray(one.is_met(edges[chosen[boundary - 1]])) | ~feasible[boundary - 1]
            failed[_named(one)] = ~met
    return np.array([failed[_named(one)] for one in task.conditions]).T


def _named(condition: Condition) -> tuple[int, str, str, float]:
    """What a condition is called, whether it is one of a zone or of the cut at its boundary."""
    return condition.zone, condition.quantity.name, condition.sense, condition.level


def _at(
    entries: Entries, task: ZoneTask, random: np.random.Generator, thresholds: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether each condition fails on each resample at some thresholds."""
    edges = np.searchsorted(-scores_of_keys(entries.low), -thresholds, side="right").tolist()
    failed = []
    for weight in _drawn(entries, random):
        if (weight.sum(axis=0) > 0).all():
            zones = zones_at(replace(entries, rows=weight, weight=weight), task, edges)
            failed.append([not one.is_met(zones[one.zone]) for one in task.conditions])
    return np.array(failed, dtype=bool).reshape(-1, len(task.conditions))


def _together(entries: Entries, task: ZoneTask, random: np.random.Generator) -> NDArray[np.bool_]:
    """The same where boundaries are found together, resample after resample; none where nothing is feasible."""
    failed = []
    for weight in _drawn(entries, random):
        if not (weight.sum(axis=0) > 0).all():
            continue
        try:
            chosen = best_edges(replace(entries, rows=weight, weight=weight), task, explain=False)
        except InfeasibleError:
            continue
        zones = zones_at(entries, task, chosen)
        failed.append([not one.is_met(zones[one.zone]) for one in task.conditions])
    return np.array(failed, dtype=bool).reshape(-1, len(task.conditions))
