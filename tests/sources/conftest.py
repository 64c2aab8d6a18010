"""Fixtures of the tests of this folder."""

from engines import (  # noqa: F401
    dask_frames,
    engine,
    engine_named,
    in_small_steps,
    java_options,
    make,
    same,
    shipped,
    spark,
)
