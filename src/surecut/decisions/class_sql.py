"""A rule of one class a row as an SQL expression: gains of the classes, and a tournament between them.

SQL has no function for the place of the largest of several numbers. So the classes are halved again and again: the
largest gain of the first half is compared with that of the second one, and of equal ones the first half wins. Each gain
is written once for every level, so that the text grows with K·log K. The probabilities of a softmax have a common
denominator, which is left out: a·p + b is compared as a·e + b·(e + … + e), where e are the exponentials.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from surecut._plurals import counted
from surecut.decisions.score_map import BETA, SOFTMAX
from surecut.decisions.sql import double, lacks_score, require_one_kind, scientific

if TYPE_CHECKING:
    from surecut.decisions.score_map import ScoreMap
    from surecut.decisions.sql import Dialect
    from surecut.decisions.top_k import TopK

LARGEST = scientific(sys.float_info.max)

ARGUMENTS = 100
"""Functions take no more arguments than this: SQLite has such a limit."""

LARGEST_EXPONENT = 600.0
"""Where exponents differ by no more, none of the exponentials is 0 or infinite."""


def class_case(rule: TopK, columns: Sequence[str] | None, dialect: Dialect) -> str:
    """Write the class that a rule predicts of the scores in some columns; null where it predicts none."""
    require_one_kind("of the result", rule.actions)
    columns = _columns(rule, columns)
    names = [dialect.name(column) for column in columns]
    scores = [double(name, dialect) for name in names]
    gains = _gains(rule, scores, dialect)
    branches = [f"WHEN {lacks_score(name, dialect)} THEN NULL" for name in names]
    if rule.a is None and not _is_softmax(rule):
        branches += [f"WHEN ABS({score}) > {LARGEST} THEN NULL" for score in scores]
    elif rule.a is not None:
        branches.append(f"WHEN {_extreme(gains, dialect.greatest)} < -{LARGEST} THEN NULL")
    winner = _tournament(gains, [dialect.literal(action) for action in rule.actions], dialect)
    return f"CASE {' '.join(branches)} ELSE {winner} END"


def _columns(rule: TopK, columns: Sequence[str] | None) -> Sequence[str]:
    if columns is None:
        if others := [label for label in rule.labels if not isinstance(label, str)]:
            raise ValueError(f"no column is called {others[0]!r}: name the columns of the scores, columns=[...]")
        return rule.labels
    if isinstance(columns, str) or len(columns) != len(rule):
        count = 1 if isinstance(columns, str) else len(columns)
        raise ValueError(f"columns= must name a column for each of {counted(len(rule), 'label')}, got {count}")
    return columns


def _gains(rule: TopK, scores: Sequence[str], dialect: Dialect) -> list[str]:
    """What each action is worth; of a softmax times its denominator."""
    eta = list(scores)
    total = ""
    if rule.calibration is not None:
        eta = _probabilities(rule.calibration, scores, dialect)
        if _is_softmax(rule):
            total = f"({' + '.join(eta)})"
    offsets = [(offset, total) for offset in rule.offsets.tolist()]
    if rule.a is None:
        rows = np.asarray(rule.cost_gains).tolist()
        return [_sum([*zip(row, eta, strict=True), offset]) for row, offset in zip(rows, offsets, strict=True)]
    pairs = zip(rule.a.tolist(), eta, offsets, scores, strict=True)
    return [_of_infinite(a, _sum([(a, one), offset]), score, rule) for a, one, offset, score in pairs]


def _of_infinite(a: float, gain: str, score: str, rule: TopK) -> str:
    """The gain of a label, which is the score itself where that is infinite, or where a curve has no place for it."""
    if rule.calibration is None:
        return gain if a > 0 else f"CASE WHEN ABS({score}) <= {LARGEST} THEN {gain} ELSE {score} END"
    return f"CASE WHEN {score} >= -{LARGEST} THEN {gain} ELSE {score} END"


def _is_softmax(rule: TopK) -> bool:
    return rule.calibration is not None and rule.calibration.family == SOFTMAX


def _probabilities(score_map: ScoreMap, scores: Sequence[str], dialect: Dialect) -> list[str]:
    """What a map makes of scores; of a softmax the exponentials, relative to their largest one, or its limit."""
    places = [_place(score_map, score, dialect) for score in scores]
    numbers = score_map.coefficients.copy()
    ends = score_map.place(np.array(score_map.limits))[:, None] * numbers[:, 0] + numbers[:, -1]
    is_narrow = ends.max() - ends.min() < LARGEST_EXPONENT
    if score_map.family == SOFTMAX and is_narrow:
        numbers[:, -1] -= ends.max()
    curves = [_curve(score_map, place, row, dialect) for place, row in zip(places, numbers.tolist(), strict=True)]
    if score_map.family != SOFTMAX:
        return [f"(1e+00 / (1e+00 + {_exp(f'-{one}', dialect)}))" for one in curves]
    highest = "" if is_narrow else _extreme(curves, dialect.greatest)
    powers = [f"EXP({one})" if is_narrow else _exp(f"{one} - {highest}", dialect) for one in curves]
    pairs = zip(scores, powers, strict=True)
    return [f"(CASE WHEN {score} >= -{LARGEST} THEN {power} ELSE 0e+00 END)" for score, power in pairs]


def _place(score_map: ScoreMap, score: str, dialect: Dialect) -> str:
    """A score on a scale of its own, as `ScoreMap.place` has it."""
    lower, upper = score_map.limits
    place = f"{dialect.least}({dialect.greatest}({score}, {_number(lower)}), {_number(upper)})"
    if score_map.is_probability:
        place = f"LN({place})" if score_map.family == SOFTMAX else f"LN({place} / (1e+00 - {place}))"
    elif score_map.family != SOFTMAX:
        width = (upper / 2 - lower / 2) or 1.0
        place = f"(({place} / 2e+00 - {_number(lower / 2)}) / {scientific(width)})"
    return _sum([(score_map.slope, place), (score_map.intercept, "")])


def _curve(score_map: ScoreMap, place: str, coefficients: Sequence[float], dialect: Dialect) -> str:
    """The logit of a probability: linear in what `features` lists."""
    if score_map.family != BETA:
        slope, intercept = coefficients
        return _sum([(slope, place), (intercept, "")])
    one, other, intercept = coefficients
    softplus = f"LN(1e+00 + {_exp(f'-ABS({place})', dialect)})"
    below = f"({dialect.greatest}(-{place}, 0e+00) + {softplus})"
    above = f"({dialect.greatest}({place}, 0e+00) + {softplus})"
    return _sum([(-one, below), (other, above), (intercept, "")])


def _exp(exponent: str, dialect: Dialect) -> str:
    """The exponential of a number that may be too large or too small for one: Postgres has an error there."""
    end = scientific(LARGEST_EXPONENT)
    return f"EXP({dialect.least}({dialect.greatest}({exponent}, -{end}), {end}))"


def _sum(terms: Iterable[tuple[float, str]]) -> str:
    """Numbers times expressions, added up; an empty expression is 1.

    Every expression of this module can stand beside an operator: sums and products are in parentheses.
    """
    known = [(factor, expression) for factor, expression in terms if factor != 0]
    if len(known) == 1 and known[0][0] == 1 and known[0][1]:
        return known[0][1]
    parts = [
        _number(factor) if not expression else expression if factor == 1 else f"{_number(factor)} * {expression}"
        for factor, expression in known
    ]
    return f"({' + '.join(parts)})" if known else scientific(0.0)


def _tournament(gains: Sequence[str], literals: Sequence[str], dialect: Dialect) -> str:
    """The name of the largest gain, of equal ones the first."""
    if len(gains) == 1:
        return literals[0]
    middle = (len(gains) + 1) // 2
    first, second = (_extreme(half, dialect.greatest) for half in (gains[:middle], gains[middle:]))
    winners = [_tournament(gains[part], literals[part], dialect) for part in (slice(middle), slice(middle, len(gains)))]
    return f"CASE WHEN {first} >= {second} THEN {winners[0]} ELSE {winners[1]} END"


def _extreme(expressions: Sequence[str], function: str) -> str:
    """The largest, or smallest, of several numbers."""
    while len(expressions) > 1:
        groups = [expressions[start : start + ARGUMENTS] for start in range(0, len(expressions), ARGUMENTS)]
        expressions = [f"{function}({', '.join(group)})" if len(group) > 1 else group[0] for group in groups]
    return expressions[0]


def _number(value: float) -> str:
    return f"({scientific(value)})" if value < 0 else scientific(value)
