"""Regret of stable cuts on known populations, beside the exact best cut of the sample.

    python benchmarks/stable.py              # 500 draws a cell
    python benchmarks/stable.py --blocks 1   # a first look: 100 draws
    python benchmarks/stable.py --report     # run nothing: the table of what is there

Blocks of draws are kept in surecut's cache: a run that was stopped goes on. Written: ``results/stable.md`` and
``results/stable_cells.csv``. Draws without a row of one class are redrawn; settings with fewer than 3 expected
positives are left out.
"""

from __future__ import annotations

import argparse
import hashlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import stats

import surecut
from stable_populations import PAIRS, metrics, population
from surecut import datasets, tune_threshold

RESULTS, BLOCK = Path(__file__).parent / "results", 100
SETTINGS = [
    (name, prior, rows)
    for name in PAIRS
    for prior in ((0.5,) if name.startswith("two") else (0.5, 0.1, 0.01))
    for rows in (60, 200, 1_000, 5_000, 50_000)
    if rows * prior >= 3
]
STABLE = {"shrinkage": "auto"}  # a stand-in until tune_threshold accepts stable=True
OPTIONS = {"exact": {}, "stable": STABLE}


def folder() -> Path:
    here, package = Path(__file__).parent, Path(surecut.__file__).parent
    sources = [here / "stable.py", here / "stable_populations.py", *sorted(package.glob("tuning/*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (*sources, *sorted(package.glob("core/**/*.py")))))
    return datasets.cache_folder() / "stable" / digest.hexdigest()[:12]


def block(setting: int, number: int, draws: int) -> np.ndarray:
    """(draws, metrics, candidates): regrets; kept in a file."""
    path = folder() / f"{setting}_{number}_{draws}.npy"
    if path.exists():
        return np.load(path)
    name, prior, rows = SETTINGS[setting]
    known, asked = population(name, prior), metrics(prior)
    random, best = np.random.default_rng([setting, number]), [known.optimum(metric) for metric in asked]
    found = np.empty((draws, len(asked), len(OPTIONS)))
    for draw in range(draws):
        labels, scores = known.draw(random, rows)
        for c, options in enumerate(OPTIONS.values()):
            cuts = list(tune_threshold(labels, scores, metric=asked, **options).values())
            found[draw, :, c] = [b - known.value(m, cut.threshold) for b, m, cut in zip(best, asked, cuts, strict=True)]
    if not found.min() >= -1e-9:
        raise ValueError(f"{SETTINGS[setting]}: a regret of {found.min()}: the optimum is not the best")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished.npy")
    np.save(unfinished, found)
    unfinished.rename(path)
    return found


def holm(p: np.ndarray, level: float = 0.05) -> np.ndarray:
    """Which hypotheses Holm's procedure rejects."""
    order = np.argsort(p)
    passed = np.logical_and.accumulate(p[order] <= level / (len(p) - np.arange(len(p))))
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = passed
    return rejected


def report(blocks: int, draws: int) -> None:
    rows, p = [], []
    for index, (name, prior, n) in enumerate(SETTINGS):
        paths = [folder() / f"{index}_{number}_{draws}.npy" for number in range(blocks)]
        parts = [np.load(path) for path in paths if path.exists()]
        if not parts:
            continue
        for m, regrets in zip(metrics(prior), np.concatenate(parts).swapaxes(0, 1), strict=True):
            exact, stable = regrets.mean(axis=0)
            d = regrets[:, 1] - 1.05 * regrets[:, 0]
            error = d.std(ddof=1) / np.sqrt(len(d))
            p.append(float(stats.norm.sf(d.mean() / error)) if error else float(d.mean() <= 0))
            rows.append((name, prior, n, m.name, len(d), exact, stable, error, p[-1]))
    rejected, pairs = holm(np.array(p)), np.array([row[5:7] for row in rows])
    ratio = pairs[pairs[:, 0] > 1e-9] @ [[0], [1]] / pairs[pairs[:, 0] > 1e-9][:, :1]
    (RESULTS / "stable_cells.csv").write_text(
        "population,prior,rows,metric,draws,exact,stable,error,p,rejected\n"
        + "".join(f'"{r[0]}",{",".join(map(str, r[1:]))},{bool(x)}\n' for r, x in zip(rows, rejected, strict=True))
    )
    (RESULTS / "stable.md").write_text(
        "# Regret of stable cuts on known populations\n\n"
        f"Written by `python benchmarks/stable.py --blocks {blocks} --draws {draws}`; stable is `{STABLE}`.\n\n"
        f"{len(rows)} cells; mean ratio {ratio.mean():.3f}; ratio of mean regrets "
        f"{pairs[:, 1].mean() / pairs[:, 0].mean():.3f}; above 1 in {(ratio > 1).sum()}; above 1.05 after Holm at 5 % "
        f"in {rejected.sum()}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--draws", type=int, default=BLOCK, help="draws in a block")
    parser.add_argument("--only", default="", help="populations whose name contains this")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not options.report:
        wanted = [(s, b) for b in range(options.blocks) for s in range(len(SETTINGS)) if options.only in SETTINGS[s][0]]
        with ProcessPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(block, s, b, options.draws) for s, b in wanted]:
                done.result()
    report(options.blocks, options.draws)


if __name__ == "__main__":
    main()
