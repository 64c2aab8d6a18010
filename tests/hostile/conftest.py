"""Fixtures of the tests of this folder."""

from engines import java_options, spark  # noqa: F401
