"""Text for people of rules that predict k labels a row: what they are worth, and what they do to each label."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from surecut._inputs import in_brief
from surecut._plurals import counted
from surecut.decisions.class_changes import ClassChanges, other_actions, quantity_of_labels
from surecut.decisions.wording import amount, positives_worth
from surecut.label_objectives import MULTICLASS_AVERAGE

if TYPE_CHECKING:
    from surecut.decisions.top_k import TopK

ALL = 10
"""So many labels are all listed."""

MOST_CHANGED = 5
"""Of more labels, those that change most."""

AGREEMENT = 1e-9
"""A value that is so near to its upper bound has reached it."""


def top_k_text(rule: TopK, listed: int = ALL) -> str:
    """Write what a rule is worth, and in a line for each label what it does to it."""
    return "\n".join([headline(rule), *(f"  {line}" for line in class_lines(rule, listed))])


def headline(rule: TopK) -> str:
    """Write a rule and its value in one line."""
    stable = " (stable)" if rule.stable else ""
    notes = [value_text(rule), starts_text(rule), bound_text(rule), calibration_text(rule)]
    return f"{rule_text(rule)}{stable}: {'; '.join(filter(None, notes))}"


def rule_text(rule: TopK) -> str:
    """Write which labels are predicted."""
    if rule.is_multiclass:
        what = f"one of {len(rule):,} classes a row"
    else:
        what = f"{rule.k:,} of {counted(len(rule), 'label')} a row"
    if rule.a is None:
        others = [one for one in rule.actions if one not in rule.labels]
        if len(others) == len(rule.actions):
            what = f"one of {len(others):,} actions a row"
        elif others:
            what += ", or " + ", ".join(in_brief(repr(one)) for one in others)
        return what + ", at the lowest expected cost"
    if is_plain(rule):
        return f"{what}, by the largest score"
    return f"{what}, by the largest a·{'score' if rule.calibration is None else 'probability'} + b"


def baseline_text(rule: TopK) -> str:
    """Write what is predicted without tuning."""
    matrix = rule.baseline.matrix
    if rule.costs is not None and matrix is not None and not set(rule.labels).issubset(rule.actions):
        return f"{in_brief(repr(rule.actions[int(matrix.sum(axis=0).argmax())]))} for all rows"
    return f"the largest score{'s' if rule.k > 1 else ''}"


def is_plain(rule: TopK) -> bool:
    """Whether a rule compares the scores themselves."""
    return rule.a is not None and rule.calibration is None and bool((rule.a == 1).all() and (rule.offsets == 0).all())


def value_name(rule: TopK) -> str:
    """Write what the value of a rule is."""
    if rule.metric is None:
        return "mean cost of a row"
    return rule.metric.name if rule.average == MULTICLASS_AVERAGE else f"{rule.average} {rule.metric.name}"


def shown_value(rule: TopK, value: float) -> float:
    """A value as it is shown: a cost without its minus."""
    return abs(value) if rule.metric is None and value == 0 else -value if rule.metric is None else value


def value_text(rule: TopK) -> str:
    """Write the value of a rule, and that of the largest scores."""
    value, before = (shown_value(rule, one) for one in (rule.value, rule.baseline.value))
    rows = f"a weight of {amount(float(np.asarray(rule.confusion.total)[0]))}" if rule.weighted else None
    instead = "" if is_plain(rule) else f", instead of {before:.4f} by {baseline_text(rule)}"
    return f"{value_name(rule)} = {value:.4f} on {rows or counted(rule.rows, 'row')}{instead}"


def starts_text(rule: TopK) -> str:
    """Write from how many starts the rule was searched, and how many of them reached its value."""
    if rule.starts <= 1:
        return ""
    agreed = "all" if rule.agreed == rule.starts else rule.agreed
    return f"the best of {rule.starts} starts ({agreed} of them reached it)"


def bound_text(rule: TopK) -> str:
    """Write whether a better rule of this kind could exist; empty where nothing is known of it."""
    if math.isnan(rule.upper_bound):
        return ""
    if rule.value >= rule.upper_bound - AGREEMENT:
        return "no rule of this kind is better on these rows"
    bound = shown_value(rule, rule.upper_bound)
    return f"no rule of this kind {'costs less than' if rule.metric is None else 'exceeds'} {bound:.4f} on these rows"


def calibration_text(rule: TopK) -> str:
    """Write how probabilities come from scores; empty where scores are compared as they are."""
    if rule.calibration is None:
        return ""
    text = f"probabilities from scores by {rule.calibration}"
    known = rule.shrinkage[np.isfinite(rule.shrinkage) & (rule.shrinkage > 0)]
    if not len(known):
        return text
    least, most = positives_worth(known.min()), positives_worth(known.max())
    return f"{text}, shrinkage {least if least == most else f'{least} to {most}'}"


def class_lines(rule: TopK, listed: int = ALL) -> list[str]:
    """Write in a line for each label what the rule does to it; of many labels those that change most."""
    changes = ClassChanges.of(rule)
    known = range(len(rule)) if set(rule.labels) & set(rule.actions) else ()
    is_short = len(known) <= listed
    chosen = known if is_short else changes.most(min(MOST_CHANGED, listed))
    lines = [class_text(rule, changes, i) for i in chosen]
    lines += [_action_text(action, *shares) for action, shares in other_actions(rule).items()]
    if not is_short:
        lines.append(_rest_text(rule, changes, chosen))
    return lines


def class_text(rule: TopK, changes: ClassChanges, i: int) -> str:
    """Write what a rule does to one label."""
    name = f"{'class' if rule.is_multiclass else 'label'} {in_brief(repr(rule.labels[i]))}"
    before, after = changes.predicted[:, i].tolist()
    quantities = {quantity_of_labels(rule): changes.value, "recall": changes.recall, "precision": changes.precision}
    facts = ", ".join(filter(None, (_both(name, *pair[:, i].tolist()) for name, pair in quantities.items())))
    if not before and not after:
        text = "is never predicted"
    elif not changes.moved[i]:
        text = f"is predicted for {percent(after)} of the rows, as before"
    elif before == after:
        text = f"is predicted for {percent(after)} of the rows, but not the same ones"
    else:
        text = f"is {_for(after)} instead of {_for(before, short=True)}"
    return f"{name} {text}{f'; {facts}' if facts else ''}"


def percent(share: float) -> str:
    """Write a share to three digits.

    >>> percent(0.0412), percent(1.0), percent(0.000123)
    ('4.12 %', '100 %', '0.0123 %')
    """
    return f"{100 * share:.3g} %"


def _action_text(action: Any, before: float, after: float) -> str:
    """Write how often an action that is no label is taken."""
    instead = "" if not before else ", as before" if before == after else f" instead of {percent(before)}"
    return f"{in_brief(repr(action))} {f'for {percent(after)} of the rows' if after else 'never'}{instead}"


def _for(share: float, short: bool = False) -> str:
    if short:
        return percent(share) if share else "never"
    return f"predicted for {percent(share)} of the rows" if share else "never predicted"


def _both(name: str, before: float, after: float) -> str:
    """A quantity before and after; what is undefined is left out."""
    texts = [f"{value:.2f}" for value in (before, after) if not math.isnan(value)]
    return f"{name} {' -> '.join(dict.fromkeys(texts))}" if texts else ""


def _rest_text(rule: TopK, changes: ClassChanges, listed: Any) -> str:
    """Write how many other labels are predicted more often, less often and as often; zeros are left out."""
    change = np.delete(changes.predicted[1] - changes.predicted[0], list(listed))
    more, less = int((change > 0).sum()), int((change < 0).sum())
    noun = "classes" if rule.is_multiclass else "labels"
    counts = {"more often": more, "less often": less, "as often as before": len(change) - more - less}
    how = [(how, count) for how, count in counts.items() if count]
    (first, count), *others = how
    if not others:
        return f"{len(change):,} other {noun} are predicted {first}"
    verb = "is" if count == 1 else "are"
    listed = [f"{count:,} {verb} predicted {first}", *(f"{count:,} {how}" for how, count in others)]
    return f"of {len(change):,} other {noun} {', '.join(listed)}"
