"""Exact search of one number of a rule at a time: a label's offset, or its gain, with all others as they are.

While the offset of a label grows, rows join it one after the other: each where the label overtakes the k-th best of the
row's other labels, its *rival*, which loses the row. So the best offset is found by one pass over the rows in the order
of their *margins*, the offsets at which they join. Rows in many bins of margins are counted by bin first, and only
bins that could hold a better offset are opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core import contests
from surecut.core.fixed_point import Rule
from surecut.core.label_rows import Counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from surecut.core.label_rows import LabelRows
    from surecut.label_objectives import LabelObjective

BETTER = 1e-11
"""A rule is better if its value is larger by more than this."""

BINS = 512

BINNED_ROWS = 8192
"""Fewer rows are sorted."""

ROWS_PER_CELL = 2
"""Rows are counted in bins if there are so many for each label and bin."""

MOST_ROUNDS = 30

CURVE_ROWS, FEWEST_CURVES = 1 << 16, 4
"""Rows of all gains of a label that are tried together; fewer gains than these are not worth it."""


class Flips(NamedTuple):
    """Rows that may join a label, and where.

    Attributes
    ----------
    place
        Where each row joins.
    rival
        The label that loses the row; `NO_LABEL` where none does.
    gained, lost
        Weight of the row if it has the label, and if it has the rival.
    weight
        Of the row.
    """

    place: NDArray[np.float64]
    rival: NDArray[np.int64]
    gained: NDArray[Any]
    lost: NDArray[Any]
    weight: NDArray[Any]

    def take(self, rows: Any) -> Flips:
        """Some of the rows."""
        return Flips(*(column[rows] for column in self))


class Joining(NamedTuple):
    """The rows that may join a label, the counts where none has, and where they do: where a·η + b is the threshold."""

    flips: Flips
    base: Counts
    beaten: contests.Beaten
    threshold: NDArray[np.float64]
    eta: NDArray[np.float64]


class Found(NamedTuple):
    """The best place of a label: rows whose margin is at most `place` join."""

    place: float
    value: float


class Sweep:
    """A rule on given rows, and the search of its numbers one after the other."""

    def __init__(self, rows: LabelRows, objective: LabelObjective, rule: Rule) -> None:
        self.rows, self.objective = rows, objective
        self.a, self.offsets = rule.a.copy(), rule.offsets.copy()
        self.gain = rows.affine(self.a, self.offsets)
        self.contest = contests.of(rows)
        self.counts = self._counted()
        self.value = objective.value(*self.counts)
        self._scales = bool((rows.eta >= 0).all())

    def run(self, lines: bool = False) -> Sweep:
        """Search label by label until no number can be improved; with `lines` nor a gain together with its offset."""
        labels = len(self.a)
        quiet = 0
        for _ in range(MOST_ROUNDS):
            for label in range(labels):
                improved = self._improve(label)
                if self._scales:
                    improved |= self._improve(label, by_gain=True)
                quiet = 0 if improved else quiet + 1
                if quiet >= labels:
                    if not (lines and self._any_line()):
                        return self
                    quiet = 0
        return self

    @property
    def rule(self) -> Rule:
        """The present rule."""
        return Rule(self.a.copy(), self.offsets.copy(), self.value)

    def best_of(self, label: int, by_gain: bool = False) -> Found:
        """The best place of a label's offset (or gain) with all others as they are, and the value there."""
        joining = self._joining(label, by_gain)
        return best_place(joining.flips, joining.base, label, self.objective)

    def _improve(self, label: int, by_gain: bool = False) -> bool:
        """Put a label's offset, or its gain, where it is best."""
        joining = self._joining(label, by_gain)
        if not len(joining.flips.place):
            return False
        found = best_place(joining.flips, joining.base, label, self.objective)
        if not found.value > self.value + BETTER:
            return False
        number = placed(joining.flips.place, found.place, by_gain)
        line = (number, self.offsets[label]) if by_gain else (self.a[label], number)
        return self._take(label, line, joining.beaten)

    def _any_line(self) -> bool:
        """Try other gains for each label, each with the offset that is best for it; all that matter if rows are few."""
        improved = False
        for label in range(len(self.a)):
            improved |= self._improve_line(label)
        return improved

    def _improve_line(self, label: int) -> bool:
        joining = self._joining(label, False)
        flips = joining.flips
        gains = other_gains(joining.threshold, joining.eta)
        if not len(gains):
            return False
        places = joining.threshold - gains[:, None] * joining.eta
        curve, place, value = _best_of_curves(places, flips, joining.base, label, self.objective)
        if not value > self.value + BETTER:
            return False
        return self._take(label, (float(gains[curve]), placed(places[curve], place, False)), joining.beaten)

    def _take(self, label: int, line: tuple[float, float], beaten: contests.Beaten) -> bool:
        """Give a label this gain and offset, if they are better in floating-point numbers too."""
        a, offset = line
        column = self.contest.column(label)
        with np.errstate(invalid="ignore"):
            gain = column.eta * a + offset
        gain = np.where(np.isinf(column.eta), column.eta, gain)
        counts = self._moved(label, beaten, beaten.joins(gain, label))
        value = self.objective.value(*counts)
        if not value > self.value + BETTER:
            return False
        self.a[label], self.offsets[label] = a, offset
        self.contest.write(self.gain, label, gain)
        self.counts, self.value = counts, value
        return True

    def _joining(self, label: int, by_gain: bool) -> Joining:
        """The rows that may join a label, and the counts where none of them has."""
        beaten = self.contest.against(self.gain, label)
        eta, threshold = self.contest.column(label).eta, beaten.gain
        present = beaten.joins(self.contest.gain_of(self.gain, label), label)
        moves = np.isfinite(eta) & np.isfinite(threshold)  # no number changes what infinities decide
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            if by_gain:
                moves &= eta > 0
                place = (threshold - self.offsets[label]) / eta
                always = np.where(moves, place <= 0, present)
                moves &= place > 0
            else:
                place = threshold - eta * self.a[label]
                always = present & ~moves
        counts = self._moved(label, beaten, always)
        weight, truth = self.contest.weight_of(label), self.contest.truth_of(label)
        flips = Flips(place, beaten.rival, truth * weight, beaten.truth * weight, weight)
        if not moves.all():
            flips, threshold, eta = flips.take(moves), threshold[moves], eta[moves]
        return Joining(flips, counts, beaten, threshold, eta)

    def _moved(self, label: int, beaten: contests.Beaten, joins: NDArray[np.bool_]) -> Counts:
        """The counts where just these rows are predicted to have the label, and the others their rivals."""
        present = beaten.joins(self.contest.gain_of(self.gain, label), label)
        changed = np.flatnonzero(present != joins)
        tp, predicted = self.counts.tp.copy(), self.counts.predicted.copy()
        if not len(changed):
            return Counts(tp, predicted)
        weight = self.contest.weight_of(label)[changed]
        sign = np.where(joins[changed], 1, -1) * weight
        own, rival = self.contest.truth_of(label)[changed], beaten.rival[changed]
        predicted[label] += sign.sum()
        tp[label] += (sign * own).sum()
        known = rival >= 0
        labels = len(tp)
        of_rival = beaten.truth[changed][known] * sign[known]
        kind = tp.dtype
        predicted = predicted - np.bincount(rival[known], sign[known], minlength=labels).astype(kind)
        tp = tp - np.bincount(rival[known], of_rival, minlength=labels).astype(kind)
        return Counts(tp, predicted)

    def _counted(self) -> Counts:
        return self.rows.counts(self.rows.choose(self.gain))


def best_place(flips: Flips, base: Counts, label: int, objective: LabelObjective) -> Found:
    """Where the value is best as rows join a label one after the other; the first such place."""
    start = Found(-np.inf, objective.value(*base))
    rows, labels = len(flips.place), len(base.tp)
    if not rows:
        return start
    if rows < BINNED_ROWS or rows < ROWS_PER_CELL * BINS * labels or not objective.can_be_bounded:
        return _better(start, _along(flips, base, label, objective))
    best = start
    for part, counts in _open_bins(flips, base, label, objective):
        best = _better(best, _along(part, counts, label, objective))
    return best


def _better(one: Found, other: Found) -> Found:
    if other.value > one.value + BETTER:
        return other
    return one


def _along(flips: Flips, base: Counts, label: int, objective: LabelObjective) -> Found:
    """The best place in the order of all these rows."""
    _, place, value = _best_of_curves(flips.place[None], flips, base, label, objective)
    return Found(place, value)


def _best_of_curves(
    places: NDArray[np.float64], flips: Flips, base: Counts, label: int, objective: LabelObjective
) -> tuple[int, float, float]:
    """The best place if the rows join at other places, shape (curves, rows): its curve, the place, the value."""
    order = np.argsort(places, axis=1)
    place = np.take_along_axis(places, order, axis=1)
    rival, gained, lost, weight = (column[order] for column in flips[1:])
    tp, predicted = base.tp[label] + np.cumsum(gained, axis=1), base.predicted[label] + np.cumsum(weight, axis=1)
    own = objective.terms(tp, predicted, np.full(place.shape, label))
    first = objective.terms(base.tp, base.predicted)
    rest = first.sum(axis=-1) - first[:, label]
    change = _change_of_rivals(rival, lost, weight, base, objective, first)
    sums = own + rest[:, None, None] + np.cumsum(change, axis=2)
    values = np.asarray(objective.combine(sums), dtype=float)
    values[:, :-1][place[:, 1:] == place[:, :-1]] = -np.inf  # rows that join at one place join together
    best = float(values.max())
    curve, position = np.unravel_index(int(np.argmax(values >= best - BETTER)), values.shape)
    return int(curve), float(place[curve, position]), float(values[curve, position])


def _change_of_rivals(
    rival: NDArray[np.int64],
    lost: NDArray[Any],
    weight: NDArray[Any],
    base: Counts,
    objective: LabelObjective,
    first: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What each row changes in the sums of terms when its rival loses it, along each curve."""
    curves, rows = rival.shape
    change = np.zeros((len(first), curves * rows))
    labels = len(base.tp)
    who = (rival + labels * np.arange(curves)[:, None] if curves > 1 else rival).reshape(-1)
    absent = rival.reshape(-1) < 0  # rows without a rival take nothing from a label
    who = np.where(absent, curves * labels, who)
    grouped = np.argsort(who.astype(np.int16) if curves * labels < 1 << 15 else who, kind="stable")
    grouped = grouped[: len(grouped) - np.count_nonzero(absent)]
    if len(grouped):
        who = who[grouped]
        starts = np.flatnonzero(np.concatenate(([True], who[1:] != who[:-1])))
        size = np.diff(np.append(starts, len(who)))
        who = who % labels
        taken = base.predicted[who] - _within(weight.reshape(-1)[grouped], starts, size)
        true = base.tp[who] - _within(lost.reshape(-1)[grouped], starts, size)
        after = objective.terms(true, taken, who)
        before = np.empty_like(after)
        before[:, 1:] = after[:, :-1]
        before[:, starts] = first[:, who[starts]]
        change[:, grouped] = after - before
    return change.reshape(len(first), curves, rows)


def _within(numbers: NDArray[Any], starts: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[Any]:
    """Cumulative sums that begin again at each start."""
    total = np.cumsum(numbers)
    before = np.where(starts > 0, total[starts - 1], 0)
    return np.asarray(total - np.repeat(before, size))


def _open_bins(flips: Flips, base: Counts, label: int, objective: LabelObjective) -> Iterator[tuple[Flips, Counts]]:
    """The bins of places that could hold a better one, each with the counts below it."""
    labels = len(base.tp)
    sample = np.sort(flips.place[:: max(1, len(flips.place) // 2048)])
    lowest, highest = sample[len(sample) // 200], sample[-1 - len(sample) // 200]
    scale = (BINS - 2) / (highest - lowest) if highest > lowest else 0.0
    number, weight, lost, gained = contests.binned(flips, float(lowest), float(scale), BINS, labels)
    taken, true, own = (np.cumsum(part, axis=0) for part in (weight, lost, gained))
    joined = taken.sum(axis=1) + np.cumsum(number)
    before = np.zeros(1, dtype=taken.dtype)
    predicted = base.predicted - np.concatenate((np.zeros((1, labels), dtype=taken.dtype), taken))
    tp = base.tp - np.concatenate((np.zeros((1, labels), dtype=true.dtype), true))
    tp[:, label] = base.tp[label] + np.concatenate((before, own))
    predicted[:, label] = base.predicted[label] + np.concatenate((before, joined))
    where = np.broadcast_to(np.arange(labels), tp.shape)
    edges = objective.terms(tp, predicted, where).sum(axis=-1)
    best_edge = float(np.max(objective.combine(edges)))
    bound_tp, bound_predicted = tp[:-1].copy(), predicted[1:] + (tp[:-1] - tp[1:])
    bound_tp[:, label] = tp[1:, label]
    bound_predicted[:, label] = predicted[:-1, label] + (tp[1:, label] - tp[:-1, label])
    bounds = objective.combine(objective.terms(bound_tp, bound_predicted, where[:-1]).sum(axis=-1))
    hiding = np.flatnonzero(np.asarray(bounds) >= best_edge - BETTER)
    bin_of = contests.bins_of(flips.place, float(lowest), float(scale), BINS)
    if len(hiding) > BINS // 4:
        yield flips, base
        return
    opened = np.zeros(BINS, dtype=bool)
    opened[hiding] = True
    rows = np.flatnonzero(opened[bin_of])
    rows = rows[np.argsort(bin_of[rows], kind="stable")]
    ends = np.searchsorted(bin_of[rows], hiding, side="right")
    for position, end, one in zip(np.concatenate(([0], ends[:-1])), ends, hiding, strict=True):
        if end > position:
            yield flips.take(rows[position:end]), Counts(tp[one], predicted[one])


def other_gains(threshold: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gains of a label to try, each with all offsets.

    The order in which rows join changes where two of them join together: at the slopes of the lines through two points
    (η, threshold). One gain between any two slopes is enough; of many rows some pairs are looked at.
    """
    rows = len(eta)
    pairs = rows * (rows - 1) // 2
    curves = CURVE_ROWS // max(rows, 1)
    if not rows or curves < FEWEST_CURVES:
        return np.empty(0)
    if pairs <= curves:
        one, other = np.triu_indices(rows, 1)
    else:
        one, other = np.random.default_rng(rows).integers(0, rows, (2, 4 * curves))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slopes = (threshold[one] - threshold[other]) / (eta[one] - eta[other])
    slopes = np.unique(slopes[(slopes > 0) & np.isfinite(slopes)])
    if not len(slopes):
        return np.array([1.0])
    slopes = slopes[np.unique(np.linspace(0, len(slopes) - 1, curves).astype(int))]
    return np.concatenate((slopes[:1] / 2, slopes[:-1] / 2 + slopes[1:] / 2, slopes[-1:] * 2))


def placed(places: NDArray[np.float64], place: float, is_gain: bool) -> float:
    """A number midway between the last row that joins and the first that does not."""
    joined = places <= place
    lower = float(places[joined].max()) if joined.any() else -np.inf
    upper = float(places[~joined].min()) if not joined.all() else np.inf
    if lower == -np.inf:
        lower = 0.0 if is_gain and upper > 0 else upper - max(1.0, abs(upper))
    if upper == np.inf:
        upper = lower + max(1.0, abs(lower))
    return lower / 2 + upper / 2
