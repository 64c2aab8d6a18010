"""Bands beside trying all combinations of thresholds, in exact fractions, by textbook formulas.

``python -m fuzz.bands --cases 1200`` compares so many cases of each kind, of which there are nine.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from surecut import ScoreTally, tune_bands, tune_bands_frame
from surecut.core.settings import using

KINDS = ("conditions", "weights", "prior", "budget", "inside", "gains", "grades", "ratio", "cut")

SMALL = (
    {"sort_below": 0, "group": 2, "first_bits": 2, "sorted_at_once": 0, "flat_share": 0},
    {"sort_below": 0, "group": 2, "first_bits": 3, "sorted_at_once": 2, "parts": 4, "rows_per_part": 2, "block": 4},
    {"sort_below": 0, "group": 2},
)
"""Sizes at which a handful of rows goes through every part of the search."""

REFUSED = ("distinct scores", "same score", "both classes", "no row is worth more than in")
IMPOSSIBLE = ("attainable", "no thresholds", "undefined", "no cut")


class Case(NamedTuple):
    """Rows, and the arguments of `tune_bands`; weights and levels are fractions of few digits."""

    y: Any
    score: Any
    weight: Any
    options: dict[str, Any]


class Zone(NamedTuple):
    """The weight of negatives and positives in a zone, and outside of it."""

    n: Fraction
    p: Fraction
    others: tuple[Fraction, Fraction]


QUANTITIES = {
    "ppv": lambda z: (z.p, z.p + z.n),
    "npv": lambda z: (z.n, z.p + z.n),
    "share": lambda z: (z.p + z.n, z.p + z.n + sum(z.others)),
    "recall": lambda z: (z.p, z.p + z.others[1]),
    "fnr": lambda z: (z.p, z.p + z.others[1]),
    "fpr": lambda z: (z.n, z.n + z.others[0]),
    "specificity": lambda z: (z.n, z.n + z.others[0]),
}

RATIOS = {
    "f1": ((2, 0, 0, 0), (2, 1, 1, 0)),
    "jaccard": ((1, 0, 0, 0), (1, 1, 1, 0)),
    "accuracy": ((1, 0, 0, 1), (1, 1, 1, 1)),
}


def fraction(number: Any) -> Fraction:
    return Fraction(str(number))


def is_met(condition: str, zone: Zone) -> bool:
    sense = ">=" if ">=" in condition else "<="
    name, level = condition.split(sense)
    part, whole = QUANTITIES[name](zone)
    if whole == 0:
        return True
    return part / whole >= fraction(level) if sense == ">=" else part / whole <= fraction(level)


class Cumulated(NamedTuple):
    """The distinct scores, descending, and the weight of each class that cuts accept: none, then down to each score."""

    scores: list[float]
    accepted: list[tuple[Fraction, Fraction]]

    @classmethod
    def of(cls, case: Case) -> Cumulated:
        weight = {score: [Fraction(0), Fraction(0)] for score in sorted(set(case.score[case.weight > 0]), reverse=True)}
        for y, score, one in zip(case.y, case.score, case.weight, strict=True):
            if one > 0:
                weight[score][y] += fraction(one)
        totals = [sum((pair[c] for pair in weight.values()), Fraction(0)) for c in (0, 1)]
        scale = [Fraction(1), Fraction(1)]
        if prior := case.options.get("prior"):
            scale = [(1 - fraction(prior)) / totals[0], fraction(prior) / totals[1]]
        accepted = [(Fraction(0), Fraction(0))]
        for pair in weight.values():
            accepted.append(tuple(accepted[-1][c] + pair[c] * scale[c] for c in (0, 1)))
        return cls(list(weight), accepted)

    def zones(self, edges: Sequence[int]) -> list[Zone]:
        """What is in each zone between edges, from the lowest zone to the highest."""
        (n, p), ends = self.accepted[-1], [len(self.scores), *edges[::-1], 0]
        inside = [
            tuple(self.accepted[low][c] - self.accepted[high][c] for c in (0, 1))
            for low, high in itertools.pairwise(ends)
        ]
        return [Zone(of_n, of_p, (n - of_n, p - of_p)) for of_n, of_p in inside]


def worth(case: Case, zones: list[Zone]) -> tuple[Fraction, ...] | None:
    """What is maximised, in the order in which it counts; None where it is undefined."""
    options = case.options
    gain = Fraction(0)
    for name, (negative, positive) in (options.get("gains") or {}).items():
        zone = zones[options["zones"].index(name)]
        gain += fraction(negative) * zone.n + fraction(positive) * zone.p
    if "metric" in options:
        above, below = RATIOS[options["metric"]]
        cells = zones[-1].p, zones[-1].n, zones[0].p, zones[0].n
        top, bottom = (
            sum((w * cell for w, cell in zip(side, cells, strict=True)), Fraction(0)) for side in (above, below)
        )
        return None if bottom == 0 else ((top + gain) / bottom,)
    if "gains" in options:
        return (gain,)
    errors = zones[0].p + zones[-1].n
    between = zones[1].n + zones[1].p if len(zones) == 3 else Fraction(0)
    names = options["zones"]
    inner = (
        len(zones) == 3 and names[1] in options["conditions"] and not {names[0], names[2]} <= set(options["conditions"])
    )
    if len(zones) <= 3:
        return (-errors,) if inner or len(zones) == 2 else (-between, -errors)
    free = [k for k, name in enumerate(options["zones"]) if name not in options["conditions"]]
    weights = [min((abs(k - one) for one in free), default=0) for k in range(len(zones))]
    return (sum((weight * (zone.n + zone.p) for weight, zone in zip(weights, zones, strict=True)), Fraction(0)),)


def oracle(case: Case, rows: Cumulated) -> tuple[int, ...] | None:
    """The best edges that meet the conditions, the highest first; of equal ones the highest."""
    names = case.options["zones"]
    best, found = None, None
    for edges in itertools.combinations_with_replacement(range(len(rows.accepted)), len(names) - 1):
        zones = rows.zones(edges)
        conditions = case.options.get("conditions") or {}
        if not all(is_met(one, zones[names.index(name)]) for name, some in conditions.items() for one in some):
            continue
        value = worth(case, zones)
        if value is not None and (best is None or value > best):
            best, found = value, edges
    return found


LEVELS = ["0", "0.1", "0.25", "0.4", "0.5", "0.6", "0.75", "0.8", "0.9", "1"]


def drawn(kind: str, seed: int) -> Case:
    """A case that is likely to be awkward: ties, thresholds that cross, budgets, empty zones, infinite scores."""
    random = np.random.default_rng([*kind.encode(), seed])
    size = int(random.integers(4, 14))
    score = random.choice([0.1, 0.25, 0.5, 0.5000001, 0.75, 1e300, -1e300, np.inf, -np.inf], size)
    if random.random() < 0.4:
        score = random.normal(size=size).round(1)
    y = (random.random(size) < 0.5).astype(int)
    if random.random() < 0.5:
        y = ((np.argsort(np.argsort(score)) + random.normal(size=size) * size / 4) > size / 2).astype(int)
    y[:2] = 0, 1
    weight = np.ones(size)
    options: dict[str, Any] = {"zones": ("no", "ask", "yes")}

    def condition(*names: str) -> str:
        name = str(random.choice(names))
        sense = ">=" if name in ("ppv", "npv", "recall", "specificity") else "<="
        return f"{name}{sense}{random.choice(LEVELS)}"

    def gain() -> tuple[float, float]:
        return float(random.integers(-5, 3)) / 2, float(random.integers(-5, 3)) / 2

    if kind == "grades":
        options["zones"] = ("low", "medium", "high", "urgent")
    elif kind == "cut":
        options["zones"] = ("no", "yes")
    first, *middle, last = options["zones"]
    outer = {
        last: [condition("ppv", "ppv", "recall", "fpr", "share")],
        first: [condition("npv", "npv", "fnr", "share")],
    }
    if kind in ("conditions", "weights", "prior", "cut"):
        options["conditions"] = outer
    if kind in ("budget", "gains"):
        options["conditions"] = {middle[0]: [condition("share", "fnr", "fpr")]}
        if random.random() < 0.5:
            options["conditions"] |= outer
    if kind == "inside":
        options["conditions"] = {middle[0]: [condition("ppv", "npv"), condition("share", "fnr", "npv")], **outer}
    if kind == "grades":
        options["conditions"] = {name: [condition("ppv", "share")] for name in (last, middle[1])}
    if kind in ("gains", "grades", "ratio") and (kind != "grades" or random.random() < 0.6):
        low, high = gain(), gain()
        steps = [(float(random.integers(-4, 1)) / 2, float(random.integers(0, 5)) / 2) for _ in options["zones"]]
        worth_of = np.cumsum(steps, axis=0) + np.array(low) * (random.random() < 0.5)
        options["gains"] = dict(zip(options["zones"], map(tuple, worth_of.tolist()), strict=True))
        if random.random() < 0.2:
            options["gains"] = {middle[0]: (-abs(high[0]), -abs(high[0]))}
    if kind == "ratio":
        options["metric"] = str(random.choice(list(RATIOS)))
        if random.random() < 0.5:
            options["conditions"] = outer
        if random.random() < 0.7 or "conditions" not in options:
            options["gains"] = {middle[0]: (-0.25, -0.25)}
    if kind in ("weights", "gains") and random.random() < 0.7:
        weight = random.integers(0, 5, size).astype(float) / random.choice([1, 4, 10])
        weight[:2] = 1
    if kind in ("prior", "grades", "inside") and random.random() < (1 if kind == "prior" else 0.3):
        options["prior"] = float(random.choice([0.125, 0.5, 0.75]))
    return Case(y, score, weight, options)


def reaches(score: float, threshold: float) -> bool:
    return threshold < np.inf and score >= threshold


def has_no_choice(case: Case) -> bool:
    """Whether gains are refused, since all rows would be in one zone."""
    options = case.options
    if "gains" not in options or "metric" in options:
        return False
    gains = [options["gains"].get(name, (0, 0)) for name in options["zones"]]
    for zone, (negative, positive) in enumerate(gains):
        is_best = all(negative >= n and positive >= p for n, p in gains)
        if is_best and options["zones"][zone] not in (options.get("conditions") or {}):
            return True
    return False


def tuned(case: Case, path: int) -> Any:
    """The bands by one of several ways to the same search."""
    weight = None if (case.weight == 1).all() else case.weight
    if path == 1:
        return tune_bands(tally=ScoreTally.from_scores(case.y, case.score, sample_weight=weight), **case.options)
    if path == 2:
        import pandas

        columns = {"y": case.y, "score": case.score} | ({} if weight is None else {"weight": weight})
        options = case.options | ({} if weight is None else {"weight": "weight"})
        return tune_bands_frame(pandas.DataFrame(columns), label="y", score="score", **options)
    if path >= 3:
        with using(**SMALL[path - 3]):
            return tune_bands(case.y, case.score, sample_weight=weight, **case.options)
    return tune_bands(case.y, case.score, sample_weight=weight, **case.options)


def compared(kind: str, seeds: Iterable[int]) -> Counter[str]:
    """How many cases were infeasible, had thresholds that cross, and empty zones; raises where bands are not best."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        case = drawn(kind, seed)
        counts["cases"] += 1
        present = case.weight > 0
        distinct = len(set(case.score[present].tolist()))
        refused = distinct < len(case.options["zones"]) or len(set(case.y[present].tolist())) < 2 or has_no_choice(case)
        rows = None if refused else Cumulated.of(case)
        expected = None if rows is None else oracle(case, rows)
        try:
            bands = tuned(case, seed % 6)
        except ValueError as error:
            known = REFUSED if refused else () if expected is not None else IMPOSSIBLE
            if not any(text in str(error) for text in known):
                raise AssertionError(f"{kind}/{seed}: {error}\n{case}") from error
            counts["refused" if refused else "infeasible"] += 1
            continue
        assert rows is not None, f"{kind}/{seed}: not refused\n{case}"
        found = tuple(sum(reaches(score, t) for score in rows.scores) for t in bands.thresholds.tolist()[::-1])
        assert found == expected, f"{kind}/{seed}: {found} instead of {expected}\n{case}\n{bands}"
        zone = bands.predict(case.score, as_numbers=True)
        inside = [[case.weight[(case.y == c) & (zone == k)].sum() for c in (0, 1)] for k in range(len(bands.zones))]
        np.testing.assert_allclose(bands.confusion, inside, rtol=1e-12)
        counts["crossed"] += len(set(bands.thresholds.tolist())) < len(bands.thresholds)
        counts["empty"] += bool((bands.confusion.sum(axis=1) == 0).any())
    return counts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz.bands", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_200, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")
    options = parser.parse_args(arguments)
    step = 50
    chunks = [
        (kind, range(start, min(start + step, options.first + options.cases)))
        for start in range(options.first, options.first + options.cases, step)
        for kind in KINDS
    ]
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    with ProcessPoolExecutor(2) as pool:
        for (kind, _), found in zip(chunks, pool.map(compared, *zip(*chunks, strict=True)), strict=True):
            counts[kind] += found
    columns = ("cases", "refused", "infeasible", "crossed", "empty")
    print(f"{'bands':12}" + "".join(f"{name:>12}" for name in columns))
    for kind, found in counts.items():
        print(f"{kind:12}" + "".join(f"{found[name]:12,}" for name in columns))
    print(f"{sum(found['cases'] for found in counts.values()):,} cases, 0 differences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
