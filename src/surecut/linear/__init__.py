"""Step 1 for linear models: any smooth loss, all labels trained together.

`surrogate` is the estimator, `training` the objective and its coordinates, `descent` the solver. The public name is in
`surecut`.
"""
