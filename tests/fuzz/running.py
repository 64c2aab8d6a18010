"""Cases drawn from a seed, run, and made small where they differ."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.measures import FUNCTIONS, KINDS, Condition, Measure, draw_condition, draw_measure
from fuzz.paths import PATHS, Data, SkippedError, check, number_of
from fuzz.samples import ANY, Wanted

OBJECTIVES = 6
"""So many metrics, with and without constraints, are tried on the same rows: drawing and trying thresholds is dear."""

MOST_DRAWN = 120
"""So many objectives are drawn at most to find one that a path takes and the caller asked for."""


@dataclass(frozen=True)
class Objective:
    """A metric and constraints, the `number`-th that was drawn for some rows."""

    number: int
    measure: Measure
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Case:
    """One path, one sample, one objective, and what of them was wanted."""

    path: str
    seed: int
    index: int
    objective: Objective
    data: Data
    wanted: Wanted = ANY

    @property
    def name(self) -> str:
        wanted = str(self.wanted)
        return f"{self.path}/{self.seed}/{self.index}/{self.objective.number}" + (f"?{wanted}" if wanted else "")


@dataclass(frozen=True)
class Difference:
    """What a path answers otherwise than the oracle."""

    case: str
    path: str
    kind: str
    what: str
    metric: str
    weighing: str
    rows: int


def draw_data(path: str, seed: int, index: int, wanted: Wanted = ANY) -> Data:
    return PATHS[path].drawn(np.random.default_rng([seed, index, number_of(path)]), wanted)


def draw_objective(
    path: str,
    seed: int,
    index: int,
    number: int,
    data: Data,
    metrics: set[str] | None = None,
    wanted: Wanted = ANY,
) -> Objective | None:
    """The objective of that number; None where the path does not take it, or its metric is not asked for."""
    taken = PATHS[path]
    random = np.random.default_rng([seed, index, number_of(path), number])
    measure = draw_measure(random, wanted.metric)
    if taken.refuses(measure) or (metrics and measure.name not in metrics):
        return None
    drawn = ("none", "none", "none", "one", "one", "several") if taken.constrained else ("none",)
    senses = KINDS[wanted.constraints or str(random.choice(drawn))]
    conditions = tuple(draw_condition(random, data.whole.attainable, sense) for sense in senses)
    return Objective(number, measure, conditions)


def cases(path: str, seed: int, index: int, metrics: set[str] | None = None) -> Iterator[Case]:
    """The cases of one sample."""
    data = draw_data(path, seed, index)
    wanted = OBJECTIVES
    for number in range(MOST_DRAWN if metrics else OBJECTIVES):
        objective = draw_objective(path, seed, index, number, data, metrics)
        if objective is not None:
            yield Case(path, seed, index, objective, data)
            wanted -= 1
        if not wanted:
            return


def case_named(name: str) -> Case:
    drawn, _, text = name.partition("?")
    path, seed, index, number = drawn.rsplit("/", 3)
    case = case_of(path, int(seed), int(index), int(number), Wanted.named(text))
    if case is None:
        raise ValueError(f"there is no case {name!r}: the path does not take that objective")
    return case


def case_of(path: str, seed: int, index: int, number: int, wanted: Wanted) -> Case | None:
    """One case; None where the path does not take its objective."""
    data = draw_data(path, seed, index, wanted)
    objective = draw_objective(path, seed, index, number, data, wanted=wanted)
    return None if objective is None else Case(path, seed, index, objective, data, wanted)


def run(case: Case) -> tuple[str, str] | None:
    """What differs, or None. RuntimeWarnings and unexpected exceptions are differences.

    A request that says nothing about the path raises `SkippedError`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return check(PATHS[case.path], case.data, case.objective.measure, case.objective.conditions)
        except SkippedError:
            raise
        except RuntimeWarning as warning:
            return "warning", f"RuntimeWarning: {warning} {_where(warning)}"
        except Exception as error:
            return f"raised {type(error).__name__}", f"{error} {_where(error)}"


def _where(error: BaseException) -> str:
    """The last place in surecut, and whether the fuzzer itself failed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/surecut/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"({last.filename.rpartition('/')[2]}:{last.lineno}{'' if ours else ', in the fuzzer'})"


def difference(case: Case) -> Difference | None:
    """The difference that a case shows."""
    found = run(case)
    if found is None:
        return None
    return Difference(
        case.name, case.path, *found, case.objective.measure.name, case.data.weighing, len(case.data.labels)
    )


def made_small(case: Case, seconds: float = 3.0) -> tuple[Case, tuple[str, str]]:
    """A smaller case with a difference of the same kind as this one has."""
    found = run(case)
    if found is None:
        raise ValueError(f"{case.name} shows no difference")
    return shrunken(case, found, seconds)


def shrunken(case: Case, found: tuple[str, str], seconds: float) -> tuple[Case, tuple[str, str]]:
    """A smaller case with a difference of the same kind: fewer constraints, no weights, fewer rows."""
    until = time.monotonic() + seconds

    def tried(smaller: Case) -> bool:
        nonlocal case, found
        if time.monotonic() > until or not len(smaller.data.labels):
            return False
        if smaller.data.weights is not None and not smaller.data.weights.any():
            return False
        try:
            now = run(smaller)
        except SkippedError:
            return False
        if now is None or now[0] != found[0] or "in the fuzzer" in now[1]:
            return False
        case, found = smaller, now
        return True

    for condition in case.objective.conditions:
        kept = tuple(one for one in case.objective.conditions if one is not condition)
        tried(replace(case, objective=replace(case.objective, conditions=kept)))
    if case.data.weights is not None:
        tried(replace(case, data=replace(case.data, weights=None, weighing="none")))
        tried(replace(case, data=replace(case.data, weights=np.ones(len(case.data.labels)))))
    step = max(1, len(case.data.labels) // 2)
    while step:
        start = 0
        while start < len(case.data.labels):
            if not tried(replace(case, data=case.data.without(np.arange(start, start + step)))):
                start += step
        step //= 2
    return case, found


def worked(
    path: str, seed: int, indices: range, metrics: set[str] | None = None
) -> tuple[str, Counter[str], list[Difference]]:
    """The cases of some samples: how many ran and how many were skipped, and the differences."""
    counted: Counter[str] = Counter()
    found: list[Difference] = []
    for index in indices:
        for case in cases(path, seed, index, metrics):
            try:
                one = difference(case)
            except SkippedError:
                counted["skipped"] += 1
                continue
            counted["runs"] += 1
            if one is not None:
                found.append(one)
    return path, counted, found


IMPORTS = """\
from types import SimpleNamespace
import numpy as np
from surecut import *
from surecut.constraints import RATES, Constraint
from surecut.metrics import *
from surecut.tuning.labels import tune_tallies
"""

SPARSE = """\
from scipy import sparse
stored = np.nonzero(scores > -np.inf)
scores = sparse.csr_array((scores[stored], stored), shape=scores.shape)"""


def snippet(case: Case, what: str) -> str:
    """The case as Python, with what is wrong about it; `PYTHONPATH=src:tests python` runs it."""
    data, objective = case.data, case.objective
    lines = [f"# {case.name}: {what}"]
    if objective.measure.name in FUNCTIONS:
        lines.append(f"from fuzz.measures import {objective.measure.name}")
    lines += [f"labels = np.array({data.labels.tolist()})", f"scores = {_written(data.scores)}"]
    if data.options.get("sparse"):
        lines.append(SPARSE)
    lines.append(f"weights = {None if data.weights is None else _written(data.weights)}")
    if data.groups is not None:
        lines.append(f"groups = np.array({data.groups.tolist()})")
    lines.append(f"metric = {objective.measure.code}")
    listed = ", ".join(condition.code for condition in objective.conditions)
    lines.append(f"constraint = {f'[{listed}]' if listed else None}")
    *statements, expression = PATHS[case.path].code(data).split("\n")
    called = [*statements, f"print({expression})"]
    if data.settings:
        lines += ["from fuzz.settings import shrunk", f"with shrunk({data.settings!r}):"]
        called = [f"    {line}" for line in called]
    return "\n".join([*lines, *called])


def _written(numbers: Any) -> str:
    plain = repr(np.asarray(numbers).tolist()).replace("inf", "np.inf")
    return f"np.array({plain}, dtype=np.{numbers.dtype})"
