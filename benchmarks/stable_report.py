"""The report of `stable.py`, from the blocks that are there."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paired import LEVEL, Difference, holm, table
from stable_blocks import AUTO, FEWEST, MEAN, REFERENCES, RESAMPLES, Setting, path
from stable_cache import RESULTS, command, stable_call
from stable_populations import METRICS

MARGIN = 1.05
ZERO = 1e-9
"""A mean regret up to this counts as 0: a cell with such an exact cut has no ratio."""


@dataclass(frozen=True)
class Cell:
    """The regrets of a setting and metric, draw by draw."""

    setting: Setting
    metric: str
    regrets: dict[str, np.ndarray]

    def mean(self, column: str, draws: int | None = None) -> float:
        return float(self.regrets[column][:draws].mean())

    @property
    def draws(self) -> int:
        return len(self.regrets["exact"])

    @property
    def ratio(self) -> float:
        """Of the stable cut's regret to the exact one's; NaN where the latter is 0."""
        exact = self.mean("exact")
        return self.mean("stable") / exact if exact > ZERO else np.nan

    @property
    def margin(self) -> Difference:
        """How far the stable cut's regret stays below 1.05 times the exact one's."""
        return Difference.of(MARGIN * self.regrets["exact"], self.regrets["stable"])

    def __str__(self) -> str:
        return f"{self.setting.name}, P = {self.setting.prior}, n = {self.setting.rows:,}, {self.metric}"


def regrets(setting: Setting, column: str, blocks: int, draws: int) -> np.ndarray | None:
    """(draws, metrics), of the first blocks up to one that is missing."""
    parts = []
    for number in range(blocks):
        file = path(setting, number, draws, column)
        if not file.exists():
            break
        parts.append(np.load(file))
    return np.concatenate(parts) if parts else None


def cells(settings: Sequence[Setting], blocks: int, draws: int, referred: int) -> list[Cell]:
    found = []
    for setting in settings:
        wanted = dict.fromkeys(("exact", "stable"), blocks) | dict.fromkeys(REFERENCES, min(referred, blocks))
        columns = {name: regrets(setting, name, number, draws) for name, number in wanted.items()}
        there = {name: values for name, values in columns.items() if values is not None}
        if not {"exact", "stable"} <= there.keys():
            continue
        length = min(len(there["exact"]), len(there["stable"]))
        found += [
            Cell(setting, metric, {name: values[:length, m] for name, values in there.items()})
            for m, metric in enumerate(METRICS)
        ]
    return found


def means(found: Sequence[Cell], first: str, second: str) -> tuple[str, ...]:
    """Cells, both mean regrets ×1000, the mean of the ratios and the ratio of the means; on the draws of both."""
    pairs = np.array([[c.mean(name, len(c.regrets[second])) for name in (first, second)] for c in found])
    positive = pairs[pairs[:, 0] > ZERO]
    exact, other = pairs.mean(axis=0)
    ratios = (
        (f"{(positive[:, 1] / positive[:, 0]).mean():.3f}", f"{other / exact:.3f}") if len(positive) else ("–",) * 2
    )
    return (str(len(found)), f"{1000 * exact:.3f}", f"{1000 * other:.3f}", *ratios)


MEANS = ("cells", "exact", "stable", "mean of ratios", "ratio of means")
KEYS: dict[str, Callable[[Cell], object]] = {
    "population": lambda cell: cell.setting.name,
    "metric": lambda cell: cell.metric,
    "prior": lambda cell: cell.setting.prior,
    "rows": lambda cell: cell.setting.rows,
}


def breakdown(found: Sequence[Cell], title: str) -> str:
    key = KEYS[title]
    names = list(dict.fromkeys(map(key, found)))
    rows = [
        (f"{n:,}" if isinstance(n, int) else str(n), *means([c for c in found if key(c) == n], "exact", "stable"))
        for n in names
    ]
    return table((title, *MEANS), rows)


def references(found: Sequence[Cell]) -> list[str]:
    """Each of the other cuts beside exact and stable, on the cells and draws that it has."""
    rows = []
    for name in REFERENCES:
        there = [cell for cell in found if name in cell.regrets]
        sizes = list(dict.fromkeys(cell.setting.rows for cell in there))
        for size in (*sizes, *(["all"] if there else [])):
            part = [cell for cell in there if size in ("all", cell.setting.rows)]
            pairs = np.array(
                [[c.mean(x, len(c.regrets[name])) for x in ("exact", "stable", name)] for c in part], dtype=float
            )
            exact, stable, other = pairs.mean(axis=0)
            positive = pairs[pairs[:, 0] > ZERO]
            ratios = (positive[:, 1:] / positive[:, :1]).mean(axis=0) if len(positive) else [np.nan, np.nan]
            ahead = int((pairs[:, 1] <= pairs[:, 2]).sum())
            label = size if size == "all" else f"{size:,}"
            numbers = [f"{1000 * value:.3f}" for value in (exact, stable, other)]
            rows.append((name, label, *numbers, *(f"{r:.3f}" for r in ratios), f"{ahead} of {len(part)}"))
    if not rows:
        return []
    draws = sorted({len(cell.regrets[name]) for cell in found for name in REFERENCES if name in cell.regrets})
    header = (
        "cut",
        "rows",
        "exact",
        "stable",
        "this cut",
        "stable, ratio",
        "this cut, ratio",
        "stable at least as good",
    )
    return [
        "## Beside other cuts",
        f"Mean regrets ×1000 and means of ratios to the exact cut, on the first {' or '.join(map(str, draws))} draws of"
        f" a cell. *{MEAN}* is the arithmetic mean of the best thresholds of {RESAMPLES} bootstrap resamples (up to"
        f" {REFERENCES[MEAN].rows:,} rows); `{AUTO}` is tried on up to {REFERENCES[AUTO].rows:,} rows.",
        table(header, rows, words=2),
    ]


def report(settings: Sequence[Setting], blocks: int, draws: int, referred: int, *, written: bool) -> None:
    """Print the report; write it, and a line of each cell, where it is of all settings."""
    found = cells(settings, blocks, draws, referred)
    if not found:
        raise SystemExit("no block is there: run without --report")
    margins = [cell.margin for cell in found]
    rejected = holm([margin.p_below for margin in margins])
    ratios = np.array([cell.ratio for cell in found])
    exact, stable = (np.mean([cell.mean(name) for cell in found]) for name in ("exact", "stable"))
    zero = int(np.isnan(ratios).sum())
    complete = sum(cell.draws == blocks * draws for cell in found)
    worst = sorted(np.flatnonzero(~np.isnan(ratios)), key=lambda i: -ratios[i])[:10]
    worst += [i for i in np.flatnonzero(rejected) if i not in worst]
    lines = [
        "# Regret of stable cuts on known populations",
        f"Written by `{command()}`; *stable* is `tune_threshold(..., {stable_call()})`. Regret is the best value of the"
        " metric on the population less the value of the cut there, both computed from the known distributions"
        f" (`benchmarks/stable_populations.py`). Cells with fewer than {FEWEST} expected positives are left out; so are"
        " priors other than 0.5 of the populations with two peaks. Draws without a row of one class are redrawn. In the"
        " cost a false negative costs (1 − P) / 2P times a false positive. A metric counts 0 where it is 0/0.",
        f"{len(found)} cells of {min(c.draws for c in found)} to {max(c.draws for c in found)} draws"
        f" ({complete} complete, {len(settings) * len(METRICS) - len(found)} not run).",
        table(
            ("", "value"),
            [
                ("mean over cells of the ratio stable / exact", f"{np.nanmean(ratios):.3f}"),
                ("ratio of mean regrets", f"{stable / exact:.3f}"),
                ("cells with a ratio above 1", f"{int((ratios > 1).sum())}"),
                (f"cells with a ratio above {MARGIN}", f"{int((ratios > MARGIN).sum())}"),
                (
                    f"cells above {MARGIN} after Holm at {LEVEL:.0%} (paired t-test, one-sided)",
                    f"{int(rejected.sum())}",
                ),
                ("cells where the exact cut has no regret, compared by difference", f"{zero}"),
            ],
        ),
        "## By population, metric, prior and rows",
        "Mean regrets ×1000, over cells.",
        *(breakdown(found, title) for title in KEYS),
        *references(found),
        f"## The largest ratios, and all cells above {MARGIN} after Holm",
        table(
            ("cell", "exact", "stable", "ratio", f"p of ≤ {MARGIN}", "after Holm"),
            [
                (
                    str(found[i]),
                    f"{1000 * found[i].mean('exact'):.3f}",
                    f"{1000 * found[i].mean('stable'):.3f}",
                    f"{ratios[i]:.3f}",
                    f"{margins[i].p_below:.2g}",
                    "above" if rejected[i] else "–",
                )
                for i in worst
            ],
        ),
    ]
    text = "\n\n".join(lines) + "\n"
    print(text)
    if not written:
        return
    (RESULTS / "stable.md").write_text(text)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = ("mean_of_resamples", "shrunken")
    writer.writerow(
        ("population", "prior", "rows", "metric", "draws", "exact", "stable", "ratio", "error", "p", "rejected", *names)
    )
    for cell, margin, above in zip(found, margins, rejected, strict=True):
        numbers = (cell.mean("exact"), cell.mean("stable"), cell.ratio, margin.error, margin.p_below)
        others = [f"{cell.mean(name):.6g}" if name in cell.regrets else "" for name in REFERENCES]
        shown = [f"{number:.6g}" for number in numbers]
        writer.writerow((*cell.setting, cell.metric, cell.draws, *shown, bool(above), *others))
    (RESULTS / "stable_cells.csv").write_text(file.getvalue())
