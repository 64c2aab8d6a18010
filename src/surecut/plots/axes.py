"""Where displays draw, with matplotlib loaded when it is first needed."""

from __future__ import annotations

from typing import Any


def axes_of(ax: Any) -> tuple[Any, Any]:
    """The axes to draw on and their figure; made by pyplot where none are given, as scikit-learn does."""
    if ax is None:
        _, ax = pyplot().subplots()
    return ax, ax.figure


def pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError:
        raise ModuleNotFoundError("displays need matplotlib: pip install 'surecut[plots]'") from None
    return plt
