"""Fixtures of the tests of this folder."""

from engines import (  # noqa: F401
    engine,
    engine_named,
    in_small_steps,
    make,
    same,
)
