"""Limits of held-out rows beside the best known limits that hold for every sample size: bets on the rows.

A metric of rows that are worth A above and B below the bar, 0 ≤ A ≤ B ≤ 1, is E A / E B. "It is at most ψ" says that
A − ψB has no positive mean, on which one can bet. Three ways to bet: STaR-Bets (Voráček and Orabona 2025), hedged
capital with a predictable plug-in (Waudby-Smith and Ramdas 2024), and the option hedge of surecut, by which it bounds
means over rows. Metrics of counts have limits of their own, which are exact or nearly so.

    python benchmarks/yardsticks.py   # some ten minutes of one core

Written: ``results/yardsticks.md``: the mean of the value less its lower limit at 95 %, and how often the limit holds.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from certificates import Population, best_rates, draw_labels
from surecut.certificates.clusters import least_ratio
from surecut.certificates.limits import value_limit
from surecut.confusion import Confusion
from surecut.metrics import FBeta, Metric, Utility

RESULTS = Path(__file__).parent / "results"
ERROR = 0.05
SIZES = {100: 300, 375: 200, 1_500: 80, 7_500: 20}
"""Rows, and draws of each case."""

Rejects = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(A, B, ψ, rows that count) → whether ψ is rejected, of each draw; draws are columns."""


@dataclass(frozen=True)
class Case:
    """Draws of one kind: A and B of each row (rows, draws), the truth, and surecut's own limit of a draw's counts."""

    name: str
    above: np.ndarray
    below: np.ndarray
    truth: float
    own: np.ndarray | None = None
    """Limits from counts, on the scale of E A / E B; None where surecut bets."""


def by_star(above: np.ndarray, below: np.ndarray, value: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """STaR-Bets: the stake aims at what is still lacking, in the rows that are left."""
    target = np.log(1 / ERROR)
    wealth, squares = np.zeros(len(value)), np.zeros(len(value))
    won = np.zeros(len(value), dtype=bool)
    for row, (a, b) in enumerate(zip(above, below, strict=True)):
        seen, gain = row + 1e-4, a - value * b
        variance = np.minimum(squares / seen + (value + 1e-4) * rows / seen**2, 1e-3 + value * (1 - value))
        stake = np.sqrt(2 * np.maximum(target - wealth, 0) / (np.maximum(rows - seen, 0.5) * variance))
        wealth += np.log1p(np.minimum(stake, 1 / (value + 1e-3)) * gain)
        squares += gain**2
        won |= wealth >= target
    return won


def by_hedged_capital(above: np.ndarray, below: np.ndarray, value: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The lower side of hedged capital, with a predictable plug-in of the variance."""
    target = np.log(1 / ERROR)
    wealth, total, squares = np.zeros(len(value)), np.zeros(len(value)), np.full(len(value), 0.25)
    won = np.zeros(len(value), dtype=bool)
    for row, (a, b) in enumerate(zip(above, below, strict=True)):
        gain = a - value * b
        stake = np.minimum(np.sqrt(2 * target / (rows * squares / (row + 1))), 0.75 / (value + 1e-9))
        wealth += np.log1p(stake * gain)
        won |= wealth >= target
        total += gain + value
        squares += (gain + value - (0.5 + total) / (row + 2)) ** 2
    return won


def limits(rejects: Rejects, case: Case) -> np.ndarray:
    """The largest value that is rejected, by bisection."""
    rows = (case.below > 0).sum(axis=0)
    low, high = np.zeros(case.above.shape[1]), case.above.sum(axis=0) / case.below.sum(axis=0)
    for _ in range(13):
        middle = (low + high) / 2
        rejected = rejects(case.above, case.below, middle, rows)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return low


def by_option(case: Case) -> np.ndarray:
    columns = zip(case.above.T, case.below.T, strict=True)
    return np.array([least_ratio(a[b > 0], b[b > 0], 1.0, (0.0, 1.0), ERROR) for a, b in columns])


def of_counts(random: np.random.Generator, rows: int, draws: int) -> Iterator[Case]:
    """Metrics of counts, at the best threshold of known populations."""
    kinds: dict[str, tuple[Metric, list[float], list[float], Callable[[float], float]]] = {
        "F2": (FBeta(2), [1, 0, 0, 0], [1, 0.2, 0.8, 0], lambda value: value),
        "F0.5": (FBeta(0.5), [1, 0, 0, 0], [1, 0.8, 0.2, 0], lambda value: value),
        "cost 1 : 5": (Utility(fp=-1, fn=-5), [1, 0.8, 0, 1], [1, 1, 1, 1], lambda value: 1 + value / 5),
    }
    for name, (metric, above, below, scaled) in kinds.items():
        for prior in (0.5, 0.1):
            shares = best_rates(Population.of_prior(prior), metric)
            cells = random.choice(4, size=(rows, draws), p=shares / shares.sum())
            first = np.argsort(np.array(below)[cells] == 0, axis=0, kind="stable")  # rows that count come first
            cells = np.take_along_axis(cells, first, axis=0)
            counts = [np.bincount(column, minlength=4).astype(float) for column in cells.T]
            own = np.array([scaled(value_limit(metric, one, ERROR)) for one in counts])
            truth = scaled(float(metric.evaluate(Confusion(*shares))))
            yield Case(f"{name}, P = {prior:g}", np.array(above)[cells], np.array(below)[cells], truth, own)


def of_means(random: np.random.Generator, rows: int, draws: int) -> Iterator[Case]:
    """Means of bounded numbers, and ratios of means: rows of many labels."""
    shape = (rows, draws)
    for share in (0.5, 0.1, 0.02):
        yield Case(f"Bernoulli({share:g})", (random.random(shape) < share) * 1.0, np.ones(shape), share)
    yield Case("beta(2, 5)", random.beta(2, 5, shape), np.ones(shape), 2 / 7)
    for labels, correlation in ((10, 0.3), (100, 0.3)):
        drawn = [draw_labels(random, rows, labels, correlation) for _ in range(draws)]
        large = draw_labels(random, 200_000 // labels * 10, labels, correlation)
        tp, below = _counts(*large)
        columns = [_counts(*one) for one in drawn]
        both = np.array([one[0] for one in columns]).T, np.array([one[1] for one in columns]).T
        f1, truth = _own_f1(*both), float(_own_f1(tp, below).mean())
        yield Case(f"rows' own F1, {labels} labels", f1, np.ones(shape), truth)
        yield Case(f"micro Jaccard, {labels} labels", both[0] / labels, both[1] / labels, float(tp.sum() / below.sum()))


def _counts(truth: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """True positives, and labels that are there or predicted, of each row."""
    predicted = scores >= 0.3
    return (predicted & (truth == 1)).sum(axis=1), (predicted | (truth == 1)).sum(axis=1)


def _own_f1(tp: np.ndarray, either: np.ndarray) -> np.ndarray:
    return np.divide(2.0 * tp, either + tp, out=np.zeros(tp.shape), where=either > 0)


def line(case: Case, rows: int) -> tuple[list[str], float]:
    """A line of the table, and how much wider surecut's limit is than the best other one."""
    value = case.above.sum(axis=0) / case.below.sum(axis=0)
    option = by_option(case)
    found = [option if case.own is None else case.own, limits(by_star, case), limits(by_hedged_capital, case)]
    gaps = [float((value - one).mean()) for one in found]
    shown = [f"{gap:.4f} ({(one <= case.truth).mean():.3f})" for gap, one in zip(gaps, found, strict=True)]
    bet = "" if case.own is None else f"{float((value - option).mean()):.4f} ({(option <= case.truth).mean():.3f})"
    ratio = gaps[0] / min(gaps[1:])
    return [case.name, f"{rows:,}", f"{len(value)}", shown[0], bet, *shown[1:], f"{ratio:.2f}"], ratio


def main() -> None:
    header = ["", "rows", "draws", "surecut", "its option hedge", "STaR-Bets", "hedged capital", "surecut / best other"]
    lines, ratios = [], []
    for rows, draws in SIZES.items():
        random = np.random.default_rng(rows)
        for case in (*of_counts(random, rows, draws), *of_means(random, rows, draws)):
            shown, ratio = line(case, rows)
            lines.append(shown)
            ratios.append(ratio)
            print(" | ".join(shown), flush=True)
    table = [header, ["---"] * len(header), *lines]
    parts = [
        "# Limits of held-out rows beside bets on the rows",
        f"Written by `python benchmarks/yardsticks.py`. Python {platform.python_version()}, NumPy {np.__version__}.",
        "The mean of the value on the rows less its lower limit at 95 %; in brackets the share of draws in which the"
        " limit holds. All are valid for every sample size; smaller is better. Metrics of counts have limits of their"
        " own; means over rows are bounded by the option hedge. STaR-Bets is without its randomised last bet, hedged"
        " capital is its lower side. Both are implemented here, from their papers.",
        f"Within 5 % of the best other limit, or narrower, in {sum(ratio <= 1.05 for ratio in ratios)} of {len(ratios)}"
        f" cells; the largest ratio is {max(ratios):.2f}.",
        "\n".join("| " + " | ".join(cells) + " |" for cells in table),
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "yardsticks.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
