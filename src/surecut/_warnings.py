"""Warnings that point at the line of the user's own code which called the package."""

from __future__ import annotations

import sys
import warnings


class MissingRowsWarning(UserWarning):
    """Rows without a score, a label or a weight were left out, or predicted negative."""


class UnknownLabelWarning(UserWarning):
    """Rows have a label, or belong to a group, that the cut does not know: they were predicted negative."""


class AbsentPositiveWarning(UserWarning):
    """No row has the label that was named as the positive one: the rows may be like that, or it is misspelt."""


class ClassOrderWarning(UserWarning):
    """The columns of the scores fit the classes far better in another order than in the one that was given."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is not of this package, however deep inside it the caller is."""
    ours = (__name__.partition(".")[0], "functools")  # cached properties are called from there
    frame, level = sys._getframe(1), 2  # level 1 is this function
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ours:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
