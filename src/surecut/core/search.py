"""The exact best cut of each sample, without a look at most of the scores.

A source counts its rows at a first resolution. The rules say which entries may hide a better cut, or lie beside an edge
that may win and have ends that are no scores; the source refines these, and nothing else, until none is left. The
result is that of trying every score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from surecut.constraints import InfeasibleError, listed
from surecut.core import rules
from surecut.core.entries import both_classes
from surecut.core.keys import ordered_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries
    from surecut.core.rules import Objective, Placed, Verdict


RANGES = 1 << 12
"""Of more rows than are looked at score by score, at most one in so many share a range of scores."""


class Source(Protocol):
    """Where rows are. A source serves one search; `count` is called first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The scores' own dtype, in which thresholds are put."""

    @property
    def refines(self) -> bool:
        """Whether entries can be refined; otherwise the best edge and the largest bound are all that can be known."""

    @property
    def resolvable_rows(self) -> float:
        """How many rows may be looked at score by score only to say which level of a constraint is attainable."""

    def count(self, every: bool = False) -> Entries:
        """All rows, at a first resolution, or by every distinct score. Checks labels, scores and weights."""

    def refine(self, wide: Entries) -> Entries | None:
        """What some entries consist of: a sample for each of them, in their order.

        Entries that are one score or a single row come with exact ends. Some may be returned as they are, if others are
        refined. None where it is quicker to count all rows by every distinct score.
        """


class SourceChangedError(RuntimeError):
    """Two passes over the rows found different rows."""

    def __init__(self) -> None:
        super().__init__(
            "the rows changed between two passes over them: the source is being written to, or it is not deterministic "
            "(random numbers, a model that is scored lazily); persist it first (cache it, or write it to a file), and "
            "tune on that"
        )


class InfeasibleLabelError(InfeasibleError):
    """No cut of a label meets the constraint; `labels` is the number of such labels, of which this is the first."""

    def __init__(self, label: Any, reason: str, labels: int = 1) -> None:
        others = f" (and {labels - 1} other label{'s' if labels > 2 else ''})" if labels > 1 else ""
        super().__init__(f"label {label!r}{others}: {reason}")
        self.label, self.reason, self.labels = label, reason, labels


@dataclass(frozen=True)
class Found:
    """The entries at the end of a search, and the verdict on them."""

    entries: Entries
    objective: Objective
    verdict: Verdict
    dtype: np.dtype[Any]

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Whether each sample has a cut that can be chosen."""
        return np.asarray(self.verdict.best > -np.inf)

    @property
    def is_defined(self) -> bool:
        """Whether all samples have one; of one sample without arrays, since most calls ask for that."""
        best = self.verdict.best
        return bool(best[0] > -np.inf if len(best) == 1 else best.min(initial=0.0) > -np.inf)

    def placed(self) -> Placed:
        """The cut of each sample."""
        return rules.placed(self.entries, self.verdict.winner, self.dtype)


def search(source: Source, objectives: Sequence[Objective], names: Sequence[Any] | None = None) -> list[Found]:
    """The best cuts for each objective, from the same passes over the rows.

    Where the source has one sample, an objective that none of its cuts fulfils is an error. Where it has many, this is
    one for constraints; `names` are the samples' names in the message.
    """
    entries = source.count(every=not all(objective.can_be_bounded for objective in objectives))
    for objective in objectives:
        (objective.check if names is None else objective.check_each)(entries.totals)
    while True:
        verdicts = [rules.judge(entries, objective) for objective in objectives]
        unresolved = [verdict.unresolved for verdict in verdicts if not verdict.is_final]
        if not unresolved or not source.refines:
            break
        entries = refined(source, entries, reduce(np.logical_or, unresolved))
    found = [Found(entries, *pair, source.dtype) for pair in zip(objectives, verdicts, strict=True)]
    if source.refines:
        for one in found:
            if not one.is_defined:
                _require_feasible(source, one, names)
    return found


def resolved(
    source: Source, entries: Entries, share: int, thresholds: Sequence[float] = (), exact: bool = True
) -> Entries:
    """The rows that a source of one sample has counted, in few entries, whose ends are scores if they are `exact`.

    An entry is one score, or holds at most one in `share` rows, and no cut at one of the thresholds is inside it.
    """
    rows = int(entries.rows.sum())
    keys = ordered_keys(np.sort(np.asarray(thresholds, dtype=np.float64)))
    while True:
        inside = np.searchsorted(keys, entries.high, side="right") > np.searchsorted(keys, entries.low, side="right")
        todo = entries.is_wide & (inside | (both_classes(entries.rows) > rows // share))
        if exact:
            todo |= ~entries.exact
        if not todo.any():
            return entries
        entries = refined(source, entries, todo)


def refined(source: Source, entries: Entries, which: NDArray[np.bool_]) -> Entries:
    """The entries with some of them refined."""
    wide = entries[which]
    finer = source.refine(wide)
    if finer is None:
        every = source.count(every=True)
        if every.rows_by_class != entries.rows_by_class:
            raise SourceChangedError
        return every
    require_same_rows(finer, wide.rows)
    return entries.spliced(which, finer)


def require_same_rows(entries: Entries, before: NDArray[np.int64]) -> None:
    """Raise unless every sample has the rows, by class, that an earlier pass counted there."""
    if len(entries) == 0 or (np.diff(entries.starts) == 0).any():
        raise SourceChangedError
    if not np.array_equal(np.add.reduceat(entries.rows, entries.starts[:-1], axis=0), before):
        raise SourceChangedError


def _require_feasible(source: Source, found: Found, names: Sequence[Any] | None) -> None:
    objective = found.objective
    if found.defined.all() or (names is not None and not objective.constraints):
        return
    unmet = ~found.defined & objective.has_classes(found.entries.totals)
    if not unmet.any():
        return
    sample = int(unmet.argmax())
    entries = found.entries
    own = entries.of_sample(sample)
    if objective.constraints and own.rows.sum() > source.resolvable_rows:
        error: ValueError = InfeasibleError(f"no cut meets {listed(objective.constraints)}")
    else:
        own = source.count(every=True).of_sample(sample) if objective.constraints else own
        error = rules.infeasible(objective, own.edges, int(own.rows.sum()))
    raise error if names is None else InfeasibleLabelError(names[sample], str(error), int(unmet.sum()))
