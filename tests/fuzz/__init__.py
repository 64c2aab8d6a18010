"""Differential fuzzing: every path of surecut to a cut, against the one oracle in exact fractions.

`make fuzz` runs it; `python -m fuzz --help` (with the tests on the path) says what can be asked of it.
"""
