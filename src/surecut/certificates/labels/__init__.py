"""Certificates of cuts of many labels: what is independent are the rows, never the pairs of row and label.

`certifying` chooses the method and refuses; `rows` are checked rows, `values` what is averaged. One file per method:

- `holdout`: macro by `averages` (one bet on the mean itself, limits of the labels at error / m for the rest), micro by
  `clusters` (a row is a cluster of pairs), samples by a bet on the rows' values. From tallies alone, in which the rows
  are no longer together, by the labels' limits at error / m.
- `uniform`: the labels' bands at error / m, averaged.
- `theorem`: Theorem 3 for every label at error / m, averaged as Theorems 6 and 7 average.
- `bootstrap`: whole rows, or whole groups of them, are drawn again.
"""
