"""Every pair of a path, a metric, a family of scores, weights, constraints and rows, in as few cases as are needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fuzz.measures import DRAWN, KINDS, Measure
from fuzz.paths import PATHS, SkippedError
from fuzz.running import Case, case_of, run
from fuzz.samples import ROWS, WEIGHTS, Wanted
from oracle import FAMILIES


class Way(NamedTuple):
    """A path in one of its variants. Those of an engine are drawn, all but its name, since engines are slow."""

    path: str
    variant: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.path, *(value.replace(" ", "_") for _, value in self.variant)])


def ways_of(name: str) -> list[Way]:
    path = PATHS[name]
    if path.engine:
        return [Way(name)]
    chosen = itertools.product(*(dict.fromkeys(values) for values in path.variants.values()))
    return [Way(name, tuple(zip(path.variants, values, strict=True))) for values in chosen]


WAYS = [way for name in PATHS for way in ways_of(name)]

AXES: dict[str, list[Any]] = {
    "way": WAYS,
    "metric": list(DRAWN),
    "family": list(FAMILIES),
    "weighing": list(WEIGHTS),
    "constraints": [kind for kind, senses in KINDS.items() if None not in senses or len(senses) > 2],
    "rows": list(ROWS),
}
"""What is varied. All pairs of values of two axes are tried, but for those in `EXCLUDED`."""


@cache
def example(metric: str) -> Measure:
    return DRAWN[metric][1](np.random.default_rng(0))


def never_monotone(metric: str, rows: str) -> bool:
    priors = {"usual": (0.2, 0.5, 0.8)}.get(rows, (0.0, 1.0))
    return not any(example(metric).is_monotone_at(prior) for prior in priors)


EXCLUDED: dict[str, tuple[str, str, Callable[[Any, str], bool]]] = {
    "the hull holds the best cuts of some metrics alone": (
        "way",
        "metric",
        lambda way, metric: PATHS[way.path].on_hull_only and not example(metric).on_hull,
    ),
    "a sketch needs bounds, which a function of a confusion has not": (
        "way",
        "metric",
        lambda way, metric: PATHS[way.path].bounded_only and not example(metric).bounded,
    ),
    "a mean over rows needs finite values": (
        "way",
        "metric",
        lambda way, metric: PATHS[way.path].finite_only and not example(metric).finite,
    ),
    "slow: an engine counts rows for the same rules, whatever the metric is": (
        "way",
        "metric",
        lambda way, metric: PATHS[way.path].engine,
    ),
    "slow: an engine is tried with the families that are drawn": (
        "way",
        "family",
        lambda way, family: PATHS[way.path].engine,
    ),
    "the path cannot hold such scores": ("way", "family", lambda way, family: family in PATHS[way.path].without),
    "the path is not taken with weights": (
        "way",
        "weighing",
        lambda way, weighing: not PATHS[way.path].weighted and weighing != "none",
    ),
    "the path takes no constraints": (
        "way",
        "constraints",
        lambda way, constraints: not PATHS[way.path].constrained and constraints != "none",
    ),
    "a prior that is given needs rows of both classes": (
        "way",
        "rows",
        lambda way, rows: PATHS[way.path].both_classes_only and rows != "usual",
    ),
    "the ratio is 0/0 at every cut of one class, or grows with errors: the request is refused": (
        "metric",
        "rows",
        never_monotone,
    ),
}
"""Pairs that are not tried, by the reason: two axes, and which pairs of their values."""

DRAWN_FOR_ENGINES = ("metric", "family")
Pair = tuple[tuple[str, Any], tuple[str, Any]]


@cache
def reason(first: str, one: Any, second: str, other: Any) -> str | None:
    """Why a pair is not tried; None if it is."""
    for text, (*axes, excludes) in EXCLUDED.items():
        if axes == [first, second] and excludes(one, other):
            return text
    return None


def all_pairs() -> Iterator[Pair]:
    """Pairs of values, those of large axes first."""
    for first, second in itertools.combinations(AXES, 2):
        for one, other in itertools.product(AXES[first], AXES[second]):
            yield (first, one), (second, other)


def pairs_of(case: dict[str, Any]) -> Iterator[Pair]:
    for first, second in itertools.combinations(AXES, 2):
        if first in case and second in case:
            yield (first, case[first]), (second, case[second])


def is_tried(pair: Pair) -> bool:
    (first, one), (second, other) = pair
    return reason(first, one, second, other) is None


@cache
def covering(seed: int = 0) -> list[dict[str, Any]]:
    """Cases, each a value of every axis, that have all pairs which are not excluded.

    Pair after pair that no case has yet: the other axes take the values that bring most pairs which are still missing.
    What an engine is not paired with is left to chance.
    """
    random = np.random.default_rng(seed)
    missing = dict.fromkeys(pair for pair in all_pairs() if is_tried(pair))
    cases = []
    while missing:
        case = dict(next(iter(missing)))
        for axis in AXES:
            if axis in case or ("way" in case and PATHS[case["way"].path].engine and axis in DRAWN_FOR_ENGINES):
                continue
            brought = {}
            for value in AXES[axis]:
                more = [pair for pair in pairs_of(case | {axis: value}) if (axis, value) in pair]
                if all(map(is_tried, more)) and not (axis == "way" and PATHS[value.path].engine):
                    brought[value] = sum(pair in missing for pair in more)
            best = [value for value, count in brought.items() if count == max(brought.values())]
            case[axis] = best[int(random.integers(len(best)))]
        for pair in pairs_of(case):
            missing.pop(pair, None)
        cases.append(case)
    return cases


ATTEMPTS = 60
"""So many rows are drawn at most to find some on which a metric of one's own does not grow with errors."""


def wanted_of(case: dict[str, Any]) -> tuple[str, Wanted]:
    way: Way = case["way"]
    return way.path, Wanted(**{axis: case[axis] for axis in case if axis != "way"}, variant=dict(way.variant))


def tried(case: dict[str, Any], seed: int = 0) -> tuple[Case, tuple[str, str] | None]:
    """A case of these values, and what differs from the oracle; LookupError where none says anything."""
    path, wanted = wanted_of(case)
    for index in range(ATTEMPTS):
        drawn = case_of(path, seed, index, 0, wanted)
        if drawn is not None:
            try:
                return drawn, run(drawn)
            except SkippedError:
                continue
    raise LookupError(f"no rows were found for {path}, {wanted}: exclude a pair of them, and say why")
