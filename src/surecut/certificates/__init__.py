"""What can be promised of a cut: limits for new rows, constraints that hold there, and whether anything has moved.

`certifying` has `certify`, which chooses a method and refuses what it cannot promise. Each method is one file:
`holdout`, `uniform`, `theorem`, `bootstrap`; what it returns is in `certificate`. Beneath them are `confidence` (limits
of shares and of metrics), `counts` (what rows say of a cut), `priors` and `resampling`. `assurance` is for constraints,
`drift` the check after deployment. The public names are in `surecut`.

To add a method: write a file with a function that returns a `Certificate`, say in its docstring why the limits hold,
name it in `certifying.METHODS` and call it there, and simulate its coverage in ``tests/certificates/test_coverage.py``.
"""
