"""What a simulated guarantee is: a name, the error that it allows, and one draw of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Configuration:
    """A guarantee under simulation.

    Attributes
    ----------
    name
        What is simulated; also the seed of its draws.
    error
        The probability with which the guarantee may fail.
    fails
        One draw: whether the guarantee failed. None where it was refused, which does not count.
    """

    name: str
    error: float
    fails: Callable[[np.random.Generator], bool | None]
