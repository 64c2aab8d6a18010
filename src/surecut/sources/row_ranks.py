"""Which lines of a long table a rule of k labels a row predicts, in the engine of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from surecut.decisions.score_map import BETA, SOFTMAX, ScoreMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.decisions.top_k import TopK

ETA, GAIN, BEHIND, PLACE, RANK = "surecut_eta", "surecut_gain", "surecut_behind", "surecut_place", "surecut_rank"
PREDICTED = "surecut_predicted"
FARTHEST = 600.0
"""The exponential of a number below its negative is as good as 0, and an error in some engines."""


def numbers_of_labels(rule: TopK) -> list[NDArray[np.float64]]:
    """What has to be known of a label beside its lines, a column each: its place, its gains, its curve."""
    if rule.a is None:
        place = {action: float(number) for number, action in enumerate(rule.actions)}
        gains = [np.array([place.get(label, -1.0) for label in rule.labels]), *np.asarray(rule.cost_gains)]
    else:
        gains = [np.arange(len(rule), dtype=np.float64), rule.a, rule.offsets]
    return [*gains, *([] if rule.calibration is None else rule.calibration.coefficients.T)]


@dataclass(frozen=True)
class RankedLines:
    """The lines of a frame with the numbers of their labels.

    Each further column is computed in a step of its own, and so has values of one kind in all engines.

    Attributes
    ----------
    frame
        One of narwhals.
    rule
        What is predicted.
    rows
        The columns that name the row of a line.
    numbers
        Those of `numbers_of_labels`.
    """

    frame: Any
    rule: TopK
    rows: tuple[str, ...]
    numbers: Sequence[str]

    def predicted(self, score: Any, is_out: Any) -> tuple[Any, Any]:
        """The frame with further columns, and an expression of them: whether a line is predicted.

        `score` is that of a line, and `is_out` says which lines are never predicted, and do not count for others.
        """
        inside = nw.when(is_out).then(nw.lit(-math.inf)).otherwise(score)
        lines = self.frame.with_columns(**{ETA: inside})
        if lines.implementation.is_dask():  # it has no windows: each row comes to be in one part
            native = nw.to_native(lines)
            asked = self.rule, self.rows, self.numbers
            meta = native._meta.assign(**{PREDICTED: False})
            parts = native.shuffle(on=list(self.rows)).map_partitions(_predicted_part, *asked, meta=meta)
            return nw.from_native(parts), nw.col(PREDICTED)
        return self._of_lines(lines)

    def _of_lines(self, lines: Any) -> tuple[Any, Any]:
        """The same of lines with scores of their own."""
        lines = lines if self.rule.calibration is None else self._calibrated(lines, self.rule.calibration)
        if self.rule.a is None:
            return self._with_best_action(lines)
        a, b = map(nw.col, self.numbers[1:3])
        is_finite = nw.col(ETA).abs() < math.inf  # infinite scores stay so, whatever a is
        lines = lines.with_columns(**{GAIN: nw.when(is_finite).then(nw.col(ETA) * a + b).otherwise(nw.col(ETA))})
        known = nw.when(nw.col(self.numbers[0]).is_null()).then(nw.lit(math.inf)).otherwise(nw.col(self.numbers[0]))
        lines = lines.with_columns(**{BEHIND: nw.lit(0.0) - nw.col(GAIN), PLACE: known})
        return ranked(lines, self.rows), (nw.col(RANK) <= self.rule.k) & (nw.col(GAIN) > -math.inf)

    def _calibrated(self, lines: Any, score_map: ScoreMap) -> Any:
        """The lines with probabilities for scores; −inf stays."""
        curves = [nw.col(name) for name in self.numbers[len(self.numbers) - score_map.coefficients.shape[1] :]]
        is_out = nw.col(ETA) == -math.inf
        place = _place(nw.col(ETA), score_map)
        if score_map.family == SOFTMAX:
            logit = nw.when(is_out).then(nw.lit(-math.inf)).otherwise(place * curves[0] + curves[1])
            lines = lines.with_columns(**{GAIN: logit})
            lines = lines.with_columns(**{BEHIND: nw.col(GAIN).max().over(*self.rows)})
            lines = lines.with_columns(**{BEHIND: (nw.col(GAIN) - nw.col(BEHIND)).clip(-FARTHEST, 0.0)})
            share = nw.when(is_out).then(nw.lit(0.0)).otherwise(nw.col(BEHIND).exp())
            lines = lines.with_columns(**{GAIN: share})
            lines = lines.with_columns(**{BEHIND: nw.col(GAIN).sum().over(*self.rows)})
            eta = nw.col(GAIN) / nw.col(BEHIND)
        else:
            lines = lines.with_columns(**{GAIN: place})
            z = nw.col(GAIN)
            if score_map.family == BETA:
                curve = _log_sigmoid(z) * curves[0] - _log_sigmoid(z * -1.0) * curves[1] + curves[2]
            else:
                curve = z * curves[0] + curves[1]
            lines = lines.with_columns(**{GAIN: curve})
            below = (nw.col(GAIN).abs() * -1.0).clip(-FARTHEST, 0.0).exp()
            eta = nw.when(nw.col(GAIN) < 0.0).then(below).otherwise(nw.lit(1.0)) / (below + 1.0)
        return lines.with_columns(**{ETA: nw.when(is_out).then(nw.lit(-math.inf)).otherwise(eta)})

    def _with_best_action(self, lines: Any) -> tuple[Any, Any]:
        """The lines of the action of each row that gains most, where this is to predict their label."""
        actions = [f"surecut_action_{number}" for number in range(len(self.rule.actions))]
        is_in = nw.col(ETA) > -math.inf
        for name, gains, offset in zip(actions, self.numbers[1:], self.rule.offsets.tolist(), strict=False):
            share = nw.when(is_in).then(nw.col(ETA) * nw.col(gains)).otherwise(nw.lit(0.0))
            lines = lines.with_columns(**{name: share})
            lines = lines.with_columns(**{name: nw.col(name).sum().over(*self.rows) + offset})
        lines = lines.with_columns(**{GAIN: nw.max_horizontal(*actions)})
        best: Any = nw.lit(float(len(actions) - 1))
        for number in range(len(actions) - 2, -1, -1):
            is_best = nw.col(actions[number]) == nw.col(GAIN)
            best = nw.when(is_best).then(nw.lit(float(number))).otherwise(best)
        return lines.with_columns(**{RANK: best}), is_in & (nw.col(RANK) == nw.col(self.numbers[0]))


def ranked(lines: Any, rows: tuple[str, ...]) -> Any:
    """The lines with their rank in their row, from 1 on: by `BEHIND`, and of equal ones by `PLACE`."""
    if lines.implementation.is_pyarrow():  # it has no windows in an order
        return _ranked_in_memory(lines, rows)
    lines = lines.with_columns(nw.lit(1).alias(RANK))
    return lines.with_columns(nw.col(RANK).cum_sum().over(*rows, order_by=[BEHIND, PLACE]))


def _predicted_part(part: Any, rule: TopK, rows: tuple[str, ...], numbers: Sequence[str]) -> Any:
    """All lines of some rows, as Dask has them in memory, with what is predicted."""
    frame = nw.from_native(part, eager_only=True)
    lines, is_predicted = RankedLines(frame, rule, rows, numbers)._of_lines(frame)
    return part.assign(**{PREDICTED: nw.to_native(lines.select(is_predicted.alias(PREDICTED)))[PREDICTED].to_numpy()})


def _ranked_in_memory(lines: Any, rows: tuple[str, ...]) -> Any:
    ordered = lines.sort(*rows, BEHIND, PLACE)
    begins = np.zeros(len(ordered), dtype=bool)
    begins[:1] = True
    for name in rows:
        begins[1:] |= (ordered[name][1:].to_numpy() != ordered[name][:-1].to_numpy()).astype(bool)
    number = np.arange(len(ordered))
    rank = number - np.maximum.accumulate(np.where(begins, number, 0)) + 1
    return ordered.with_columns(nw.new_series(RANK, rank.astype(np.int64), backend=ordered.implementation))


def _place(score: Any, score_map: ScoreMap) -> Any:
    """`ScoreMap.place` as an expression."""
    lower, upper = score_map.limits
    clipped = nw.when(score < lower).then(nw.lit(float(lower))).otherwise(score)
    clipped = nw.when(clipped > upper).then(nw.lit(float(upper))).otherwise(clipped)
    if score_map.is_probability:
        scaled = clipped if score_map.family == SOFTMAX else clipped / (nw.lit(1.0) - clipped)
        clipped = scaled.log()
    elif score_map.family != SOFTMAX:
        clipped = (clipped / 2.0 - lower / 2) / ((upper / 2 - lower / 2) or 1.0)
    return clipped * score_map.slope + score_map.intercept


def _log_sigmoid(z: Any) -> Any:
    """−ln(1 + e^−z), where no power overflows."""
    below = nw.when(z < 0.0).then(z).otherwise(nw.lit(0.0))
    return below - ((z.abs() * -1.0).clip(-FARTHEST, 0.0).exp() + 1.0).log()
