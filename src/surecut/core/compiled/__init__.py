"""The kernels of `core.kernels`, the judge of `core.rules` for ratios of counts, and draws, compiled by numba.

- `rows`: the loops over rows of one sample. `columns`: those over columns of a matrix.
- `judging`: the judge, of entries and of sorted columns.
- `draws`: resampled counts. `contests`: what a label has to beat in each row.
- `kernels`: what calls them. `kernel`: how each is compiled.

They are written so that numba compiles them soon, because a process may call them only once: they call no function,
allocate nothing, take arrays in every form that they need them in (`.view` alone costs 0.3 s), and what an argument
of None makes unnecessary is left out.

No fastmath and no `parallel=True`: all passes over the rows must map alike, and threads come from the caller's pool.
"""

from surecut.core.compiled.contests import choose, choose_stored, count_in_bins, join, walk
from surecut.core.compiled.draws import draw_counts
from surecut.core.compiled.judging import judge
from surecut.core.compiled.kernels import CompiledKernels

__all__ = [
    "CompiledKernels",
    "choose",
    "choose_stored",
    "count_in_bins",
    "draw_counts",
    "join",
    "judge",
    "walk",
]
