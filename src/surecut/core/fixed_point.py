"""Rules a·η + b whose gains are the slopes of their own confusion: a search by the Frank–Wolfe method.

At an optimum the k labels of a row are those that the metric's slopes favour (`LabelObjective.slopes`), and the slopes
are those of the confusion that the rule makes. Each round takes the rule of the slopes at the mean confusion of the
rounds before; the best rule of all rounds is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.label_rows import LabelRows
    from surecut.label_objectives import LabelObjective

ROUNDS = 50

QUIET_ROUNDS = 6
"""After so many rounds without a better rule the search ends."""

GAINED = 1e-6
"""A rule is better if its value is larger by more than this."""


class Rule(NamedTuple):
    """A rule a·η + b, and its value on the rows that it was searched on."""

    a: NDArray[np.float64]
    offsets: NDArray[np.float64]
    value: float


def fixed_point(rows: LabelRows, objective: LabelObjective, start: Rule) -> Rule:
    """The best rule of some rounds from a start."""
    best, a, offsets = start._replace(value=-np.inf), start.a, start.offsets
    tp, predicted = np.zeros(len(a)), np.zeros(len(a))
    quiet = 0
    for number in range(ROUNDS):
        found = rows.counts_of(a, offsets)
        value = objective.value(found.tp, found.predicted)
        quiet = 0 if value > best.value + GAINED else quiet + 1
        if value > best.value + GAINED:
            best = Rule(a, offsets, value)
        if quiet > QUIET_ROUNDS:
            break
        share = 2 / (number + 2)
        tp, predicted = (1 - share) * tp + share * found.tp, (1 - share) * predicted + share * found.predicted
        a, offsets = scaled(*objective.slopes(tp, predicted, rows.of_row))
    return best


def scaled(a: NDArray[np.float64], offsets: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same rule, with gains whose mean is one."""
    a = np.maximum(a, 0.0)
    mean = float(a.mean())
    return (a / mean, offsets / mean) if mean > 0 else (np.ones_like(a), np.zeros_like(offsets))


def usual_starts(rows: LabelRows) -> list[Rule]:
    """The labels with the largest scores, and with the largest scores relative to how frequent they are."""
    labels, total = len(rows.positives), float(rows.total)
    share = np.maximum(np.asarray(rows.positives, dtype=float) / total, rows.of_row / (total + rows.of_row))
    return [
        Rule(np.ones(labels), np.zeros(labels), np.nan),
        Rule(*scaled(1 / share, np.zeros(labels)), np.nan),
    ]


def random_starts(rows: LabelRows, number: int) -> list[Rule]:
    """Rules with gains and offsets that are drawn, the same ones for the same rows."""
    labels = len(rows.positives)
    finite = rows.eta[np.isfinite(rows.eta)]
    largest = float(np.abs(finite).max(initial=0)) or 1.0
    spread = largest * float((finite / largest).std()) if finite.size else 0.0  # squares could overflow
    draw = np.random.default_rng(0)
    return [
        Rule(np.exp(draw.normal(size=labels)), spread * draw.normal(size=labels), np.nan) for _ in range(max(0, number))
    ]
