"""Many labels: averages, searches over all labels at once, shrinkage of cuts with few positives.

`averaging` has the functions that people call. `sources` knows where scores are (dense, sparse, tallied),
`search` and `bins` find the labels' cuts, `calibration`, `shrinkage` and `smoothing` draw them together. The public
names are in `surecut`.
"""
