"""What can be promised of a cut: limits for new rows, constraints that hold there, and whether anything has moved.

`confidence` has the limits, `certifying` the four methods, `assurance` constraints, `bootstrap` resampling, `drift` the
check after deployment. The public names are in `surecut`.
"""
