"""What can be promised of a cut: limits for new rows, constraints that hold there, and whether anything has moved.

`certifying` has `certify`, and the table of methods. `evidence` makes of whatever is passed, for one label or for many,
what the methods take, and refuses rows that cannot certify. Each method is one file: `holdout`, `uniform`, `theorem`,
`bootstrap`; what it returns is in `certificate`. `promises` tells whether a cut's constraints hold on new rows,
`assurance` finds cuts whose constraints do, or that have a limit, `drift` is the check after deployment.

Beneath them: `limits` has limits of a metric from counts of independent rows, `confidence`, `nuisance` and `regions`
those of shares, `clusters` those of independent clusters of rows that depend on each other, `averages` and `joint_bets`
those of a mean of many labels, `quantities` those of what constraints bound. Where the same rows choose the cut:
`pilot` draws the rows that choose, `testing` tests several cuts with one error, `brackets` and `bands` have limits that
hold wherever the cut is. `rows` and `label_rows` are checked rows, `cells` their counts at a cut, by cluster and label;
`held_out` says which rows may certify, `weights` what weights mean, `priors` where the share of positives can be;
`resampling` draws rows again. The public names are in `surecut`.

To add a method: write a file with a function that makes a `Certificate` of an `Evidence`, say in its docstring why the
limits hold, add it to `certifying.METHODS`, and simulate its coverage in ``tests/certificates/test_coverage.py``.
"""
