"""Regret of stable cuts on known populations, beside the exact best cut of the sample.

    python benchmarks/stable.py                          # 5 blocks of 100 draws a cell
    python benchmarks/stable.py --blocks 1               # a first look
    python benchmarks/stable.py --references 1           # also other cuts, on the draws of the first block
    python benchmarks/stable.py --report                 # run nothing: the table of what is there
    python benchmarks/stable.py --only 'normal|tied' --sizes 60,200   # a part, printed and not written

Blocks are kept in surecut's cache: a run that was stopped goes on, and an edit of the report discards nothing.
Written: ``results/stable.md`` and ``results/stable_cells.csv`` (`stable_report.py`).
"""

from __future__ import annotations

import argparse
import re
from concurrent.futures import ProcessPoolExecutor, as_completed

import stable_report
from stable_blocks import COLUMNS, REFERENCES, SETTINGS, SIZES, block


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--draws", type=int, default=100, help="draws in a block")
    parser.add_argument("--references", type=int, default=0, metavar="BLOCKS", help="blocks with the other cuts too")
    parser.add_argument("--only", default="", metavar="REGEX", help="populations whose name it is found in")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of rows, with commas")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    sizes = {int(size) for size in options.sizes.split(",")}
    chosen = [s for s in SETTINGS if s.rows in sizes and re.search(options.only, s.name)]
    if not options.report:
        work = [(s, b, options.draws, c) for b in range(options.blocks) for s in chosen for c in COLUMNS]
        work += [
            (setting, number, options.draws, name)
            for name, column in REFERENCES.items()
            for number in range(min(options.references, options.blocks, column.blocks))
            for setting in chosen
            if setting.rows <= column.rows
        ]
        with ProcessPoolExecutor(options.jobs) as pool:
            running = [pool.submit(block, *one) for one in work]
            for done, future in enumerate(as_completed(running), 1):
                future.result()
                if done % 50 == 0:
                    print(f"{done} of {len(work)} blocks", flush=True)
    complete = len(chosen) == len(SETTINGS)
    stable_report.report(chosen, options.blocks, options.draws, options.references, written=complete)


if __name__ == "__main__":
    main()
