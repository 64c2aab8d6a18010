"""How many rows bands leave to people, against the number of labelled rows, with and without a promise.

    python benchmarks/few_labels.py           # writes results/few_labels.md
    python benchmarks/few_labels.py --quick   # fewer samples, not written

Samples of `datasets.make_judged_answers` tune bands; a million other answers say what share of rows these bands leave
to people, and whether a condition is broken there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from paired import table
from stable_cache import RESULTS, command
from surecut import tune_bands
from surecut.datasets import JUDGE_SCORES, make_judged_answers

LABELLED = (50, 100, 200, 300, 500, 1_000, 2_000)
LOWER = ("npv>=0.8", "npv>=0.9")
UPPER = "ppv>=0.9"
CONFIDENCE = 0.9
OTHERS, SEED = 1_000_000, 1
"""The number of other answers, and the seed of the generator that draws them."""


@dataclass(frozen=True)
class Population:
    """Answers by score and class, negatives first: shape (scores, 2)."""

    counts: np.ndarray

    @classmethod
    def drawn(cls, size: int) -> Population:
        y_true, y_score, _ = make_judged_answers(size, random_state=np.random.default_rng([SEED]))
        scores = np.searchsorted(JUDGE_SCORES, y_score)
        return cls(np.bincount(2 * scores + y_true, minlength=2 * len(JUDGE_SCORES)).reshape(-1, 2))

    def look_up(self, zones: np.ndarray, level: float) -> tuple[float, bool]:
        """The share in the middle of three zones, given the zone of each score, and whether a condition is broken."""
        (no_negative, no_positive), ask, (yes_negative, yes_positive) = (
            self.counts[zones == zone].sum(axis=0).tolist() for zone in range(3)
        )
        broken = no_negative < level * (no_negative + no_positive)
        broken |= yes_positive < 0.9 * (yes_negative + yes_positive)
        return sum(ask) / float(self.counts.sum()), broken


def measured(size: int, lower: str, confidence: float | None, samples: int, population: Population) -> np.ndarray:
    """Shape (samples, 2): the share that is left to people, and whether a condition is broken."""
    found = []
    for seed in range(samples):
        y_true, y_score, _ = make_judged_answers(size, random_state=seed)
        bands = tune_bands(y_true, y_score, upper=UPPER, lower=lower, confidence=confidence)
        zones = bands.predict(JUDGE_SCORES, as_numbers=True)
        found.append(population.look_up(zones, float(lower.rpartition("=")[2])))
    return np.array(found, dtype=float)


def rows_of_table(lower: str, samples: int, population: Population) -> list[tuple[str, ...]]:
    rows = []
    for size in LABELLED:
        cells = [f"{size:,}"]
        for confidence in (None, CONFIDENCE):
            share, broken = measured(size, lower, confidence, samples, population).mean(axis=0)
            cells += [f"{share:.0%}", f"{broken:.0%}"]
        print(lower, *cells, sep="; ", flush=True)
        rows.append(tuple(cells))
    return rows


def best_share(lower: str, population: Population) -> float:
    """The share that is left to people with the thresholds that are best for the population."""
    scores, classes = np.repeat(JUDGE_SCORES, 2), np.tile([0, 1], len(JUDGE_SCORES))
    bands = tune_bands(classes, scores, sample_weight=population.counts.ravel(), upper=UPPER, lower=lower)
    return float(bands.shares[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer samples, no file")
    options = parser.parse_args()
    samples = 20 if options.quick else 300
    population = Population.drawn(OTHERS)
    header = ("labelled rows", "asked", "broken", f"asked, `confidence={CONFIDENCE}`", "broken")
    lines = []
    for lower in LOWER:
        best = best_share(lower, population)
        lines += [
            f"`upper={UPPER!r}, lower={lower!r}`; with the best thresholds of the population {best:.0%} are asked:",
            table(header, rows_of_table(lower, samples, population), words=0),
        ]
    lines.append(
        "*Asked* is the share of rows between the two thresholds, *broken* how often one of the two conditions does not"
        f" hold in the population: {OTHERS:,} other answers of `make_judged_answers`. Means of {samples} samples."
        f" Written by `{command()}`."
    )
    text = "\n\n".join(lines) + "\n"
    print(text)
    if not options.quick:
        (RESULTS / "few_labels.md").write_text(text)


if __name__ == "__main__":
    main()
