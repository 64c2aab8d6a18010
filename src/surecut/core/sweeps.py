"""Exact search of one number of a rule at a time: a label's offset, or its gain, with all others as they are.

While the offset of a label grows, rows join it one after the other. So the best offset is found by one pass over the
rows in the order in which they join. Many rows are counted in bins first, and only bins that could hold a better offset
are opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surecut.core.contests import Joining, binned, contest
from surecut.core.fixed_point import Rule
from surecut.core.kernels import run_starts
from surecut.core.label_rows import Counts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

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
"""Rows of all gains of a label that are tried together, unless these are fewer gains."""

DISTINCT = 1e-9
"""Gains are not tried if a·η is less than this beside the offsets: sums of the two would lose the order of the rows."""


class Found(NamedTuple):
    """The best place of a label: rows that join there or before do."""

    place: float
    value: float


class Sweep:
    """A rule on given rows, and the search of its numbers one after the other."""

    def __init__(self, rows: LabelRows, objective: LabelObjective, rule: Rule) -> None:
        self.rows, self.objective = rows, objective
        self.a, self.offsets = rule.a.copy(), rule.offsets.copy()
        self.contest = contest(rows, rows.affine(self.a, self.offsets))
        self._by_gain = bool((rows.eta >= 0).all())
        self._recount()

    def run(self, lines: int = 0, gains: bool = True) -> Sweep:
        """Search label by label until no number can be improved; without `gains` offsets alone.

        Then up to `lines` times gains are tried together with offsets, and the search goes on.
        """
        labels = len(self.a)
        quiet = 0
        for _ in range(MOST_ROUNDS):
            for label in range(labels):
                improved = self._improve(label)
                if gains and self._by_gain:
                    improved |= self._improve(label, by_gain=True)
                quiet = 0 if improved else quiet + 1
                if quiet >= labels:
                    lines -= 1
                    if lines < 0 or not self._any_line():
                        return self
                    quiet = 0
            self._recount()
        return self

    @property
    def rule(self) -> Rule:
        """The present rule."""
        return Rule(self.a.copy(), self.offsets.copy(), self.value)

    def best_of(self, label: int, by_gain: bool = False) -> Found:
        """The best place of a label's offset (or gain) with all others as they are, and the value there."""
        return best_place(self._joining(label, by_gain), label, self.objective, self.contest.module)

    def _recount(self) -> None:
        """Count again, so that errors of sums do not grow."""
        self.counts = self.rows.counts(self.rows.choose(self.contest.gain))
        self.value = self.objective.value(*self.counts)

    def _joining(self, label: int, by_gain: bool) -> Joining:
        return self.contest.joining(label, self.a[label], self.offsets[label], by_gain, self.counts)

    def _improve(self, label: int, by_gain: bool = False) -> bool:
        """Put a label's offset, or its gain, where it is best."""
        joining = self._joining(label, by_gain)
        if not len(joining.place):
            return False
        found = best_place(joining, label, self.objective, self.contest.module)
        if not found.value > self.value + BETTER:
            return False
        number = placed(joining.place, found.place, by_gain)
        return self._take(
            label, number if by_gain else self.a[label], self.offsets[label] if by_gain else number, joining
        )

    def _any_line(self) -> bool:
        """Try other gains for each label, each with the offset that is best for it; all that matter if rows are few."""
        improved = False
        for label in range(len(self.a)):
            improved |= self._improve_line(label)
        return improved

    def _improve_line(self, label: int) -> bool:
        joining = self._joining(label, False)
        if not len(joining.eta):
            return False
        gains = other_gains(joining.threshold, joining.eta)
        if self.contest.module is None or self.objective.ratios is None:
            places = joining.threshold - gains[:, None] * joining.eta
            curve, place, value = _best_of_curves(places, joining, label, self.objective)
            gain, found = float(gains[curve]), Found(place, value)
        else:
            gain, found = 0.0, Found(-np.inf, -np.inf)
            for one in gains.tolist():
                moved = joining._replace(place=joining.threshold - one * joining.eta)
                best = _along(moved, label, self.objective, self.contest.module)
                gain, found = (one, best) if best.value > found.value else (gain, found)
        if not found.value > self.value + BETTER:
            return False
        return self._take(label, gain, placed(joining.threshold - gain * joining.eta, found.place, False), joining)

    def _take(self, label: int, a: float, offset: float, joining: Joining) -> bool:
        """Give a label this gain and offset, if they are better in floating-point numbers too."""
        counts = joining.counts(label, a, offset)
        value = self.objective.value(*counts)
        if not value > self.value + BETTER:
            return False
        self.a[label], self.offsets[label] = a, offset
        self.contest.write(label, a, offset)
        self.counts, self.value = counts, value
        return True


def best_place(joining: Joining, label: int, objective: LabelObjective, module: ModuleType | None = None) -> Found:
    """Where the value is best as rows join a label one after the other; the first such place."""
    rows, labels = len(joining.place), len(joining.base.tp)
    if not rows:
        return Found(-np.inf, objective.value(*joining.base))
    if rows < BINNED_ROWS or rows < ROWS_PER_CELL * BINS * labels or not objective.can_be_bounded:
        return _along(joining, label, objective, module)
    parts = [_along(part, label, objective, module) for part in _open_bins(joining, label, objective, module)]
    best = Found(-np.inf, objective.value(*joining.base))
    for part in parts:
        best = part if part.value > best.value + BETTER else best
    return best


def _along(joining: Joining, label: int, objective: LabelObjective, module: ModuleType | None) -> Found:
    """The best place in the order of all these rows, or none of them."""
    if module is None or objective.ratios is None:
        nobody = objective.value(*joining.base)
        _, place, value = _best_of_curves(joining.place[None], joining, label, objective)
        return Found(place, value) if value > nobody + BETTER else Found(-np.inf, nobody)
    tp, predicted = joining.base.tp.copy(), joining.base.predicted.copy()
    order = np.argsort(joining.place)
    last, value = module.walk(order, *joining[:5], tp, predicted, label, objective.ratios, np.empty(len(tp)), BETTER)
    return Found(float(joining.place[last]) if last >= 0 else -np.inf, float(value))


def _best_of_curves(
    places: NDArray[np.float64], joining: Joining, label: int, objective: LabelObjective
) -> tuple[int, float, float]:
    """The best place if the rows join at other places, shape (curves, rows): its curve, the place, the value."""
    order = np.argsort(places, axis=1)
    place = np.take_along_axis(places, order, axis=1)
    columns: Any = [column[order] for column in joining[1:5]]
    rival, gained, lost, weight = columns
    base = joining.base
    tp, predicted = base.tp[label] + np.cumsum(gained, axis=1), base.predicted[label] + np.cumsum(weight, axis=1)
    own = objective.terms(tp, predicted, np.full(place.shape, label))
    first = objective.terms(base.tp, base.predicted)
    with np.errstate(invalid="ignore"):  # where a term is infinite the sums of the others are not known
        rest = first.sum(axis=-1) - first[:, label]
        change = _change_of_rivals(rival, lost, weight, base, objective, first)
        sums = own + rest[:, None, None] + np.cumsum(change, axis=2)
        values = np.asarray(objective.combine(sums), dtype=float)
    values = np.where(np.isnan(values), -np.inf, values)
    values[:, :-1][place[:, 1:] == place[:, :-1]] = -np.inf  # rows that join at one place join together
    best = float(values.max())
    curve, position = np.unravel_index(int(np.argmax(values >= best - BETTER)), values.shape)
    return int(curve), float(place[curve, position]), float(values[curve, position])


def _change_of_rivals(
    rival: NDArray[np.int64],
    lost: NDArray[np.float64],
    weight: NDArray[np.float64],
    base: Counts,
    objective: LabelObjective,
    first: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What each row changes in the sums of terms when its rival loses it, along each curve."""
    curves, rows = rival.shape
    labels = len(base.tp)
    who = (rival + labels * np.arange(curves)[:, None]).reshape(-1)
    grouped = np.argsort(who.astype(np.int16) if curves * labels < 1 << 15 else who, kind="stable")
    who = who[grouped]
    starts = run_starts(who)
    size = np.diff(np.append(starts, len(who)))
    who = who % labels
    taken = base.predicted[who] - _within(weight.reshape(-1)[grouped], starts, size)
    true = base.tp[who] - _within(lost.reshape(-1)[grouped], starts, size)
    after = objective.terms(true, taken, who)
    before = np.empty_like(after)
    before[:, 1:] = after[:, :-1]
    before[:, starts] = first[:, who[starts]]
    change = np.empty_like(after)
    change[:, grouped] = after - before
    return change.reshape(len(first), curves, rows)


def _within(numbers: NDArray[Any], starts: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[Any]:
    """Cumulative sums that begin again at each start."""
    total = np.cumsum(numbers)
    before = np.where(starts > 0, total[starts - 1], 0)
    return np.asarray(total - np.repeat(before, size))


def _open_bins(joining: Joining, label: int, objective: LabelObjective, module: ModuleType | None) -> Iterator[Joining]:
    """The bins of places that could hold a better one, neighbours together, each with the counts below it."""
    place, base = joining.place, joining.base
    labels = len(base.tp)
    sample = np.sort(place[:: max(1, len(place) // 2048)])
    lowest, highest = float(sample[len(sample) // 200]), float(sample[-1 - len(sample) // 200])
    with np.errstate(divide="ignore", over="ignore"):
        scale = float(np.float64(BINS - 2) / np.float64(highest - lowest))
    if not 0 < scale < np.inf:  # the places are equal, or so far apart that no bins divide them
        yield joining
        return
    bin_of, weight, lost, gained = binned(joining, lowest, scale, BINS, module)
    nothing = np.zeros((1, labels))
    taken, true = (np.concatenate((nothing, np.cumsum(part, axis=0))) for part in (weight, lost))
    predicted, tp = base.predicted - taken, base.tp - true
    tp[:, label] = base.tp[label] + np.concatenate(([0.0], np.cumsum(gained)))
    predicted[:, label] = base.predicted[label] + taken.sum(axis=1)
    where = np.broadcast_to(np.arange(labels), tp.shape)
    edges = objective.terms(tp, predicted, where).sum(axis=-1)
    best_edge = float(np.max(objective.combine(edges)))
    best_tp, fewest = tp[:-1].copy(), predicted[1:] + (tp[:-1] - tp[1:])
    best_tp[:, label] = tp[1:, label]
    fewest[:, label] = predicted[:-1, label] + (tp[1:, label] - tp[:-1, label])
    bounds = objective.combine(objective.terms(best_tp, fewest, where[:-1]).sum(axis=-1))
    hiding = np.asarray(bounds) >= best_edge - BETTER
    hiding &= np.bincount(bin_of, minlength=BINS) > 0
    if np.count_nonzero(hiding) > BINS // 4:
        yield joining
        return
    rows = np.flatnonzero(hiding[bin_of])
    rows = rows[np.argsort(bin_of[rows].astype(np.int16), kind="stable")]
    hidden = np.flatnonzero(hiding)
    first = hidden[np.concatenate(([True], np.diff(hidden) > 1))]  # of each run of neighbours
    ends = np.append(np.searchsorted(bin_of[rows], first)[1:], len(rows))
    for start, end, one in zip(np.concatenate(([0], ends[:-1])), ends, first, strict=True):
        yield joining.some(rows[start:end], Counts(tp[one], predicted[one]))


def other_gains(threshold: NDArray[np.float64], eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gains of a label to try, each with all offsets.

    The order in which rows join changes where two of them join together: at the slopes of the lines through two points
    (η, threshold). One gain between any two slopes is enough; of many rows some pairs are looked at.
    """
    rows = len(eta)
    pairs = rows * (rows - 1) // 2
    curves = max(FEWEST_CURVES, CURVE_ROWS // rows)
    if pairs <= curves:
        one, other = np.triu_indices(rows, 1)
    else:
        one, other = np.random.default_rng(rows).integers(0, rows, (2, 4 * curves))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slopes = (threshold[one] - threshold[other]) / (eta[one] - eta[other])
    least = DISTINCT * float(np.abs(threshold).max()) / (float(np.abs(eta).max()) or 1.0)
    slopes = np.unique(slopes[(slopes > least) & np.isfinite(slopes)])
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
