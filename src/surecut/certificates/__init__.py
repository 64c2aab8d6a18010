"""What can be promised of a cut: limits for new rows, constraints that hold there, and whether anything has moved.

`certifying` has `certify`, which chooses a method and refuses what it cannot promise. Each method is one file:
`holdout` (and `groups`, for rows that come in groups), `uniform`, `theorem`, `bootstrap`; what it returns is in
`certificate`. `labels` has the same for cuts of many labels. `promises` tells whether a cut's constraints hold on new
rows, `assurance` finds cuts whose constraints do, `drift` is the check after deployment.

Beneath them: `limits` has limits of a metric from counts of independent rows, `confidence` and `nuisance` those of
shares, `clusters` those of independent clusters of rows that depend on each other, `averages` those of a mean of many
labels; `cells` are what rows say of a cut, by cluster and label; `weights` says what weights mean; `priors` and
`resampling` are what they say. The public names are in `surecut`.

To add a method: write a file with a function that returns a `Certificate`, say in its docstring why the limits hold,
name it in `certifying.METHODS` and call it there, and simulate its coverage in ``tests/certificates/test_coverage.py``.
"""
