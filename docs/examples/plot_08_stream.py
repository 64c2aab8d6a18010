"""
A stream of scores, a sketch per model and day
==============================================

Scores pass once and are gone; labels arrive with them. Every worker of a pool keeps a `ScoreSketch` for each model and
day, some hundred kilobytes each, whatever the traffic. Sketches travel as bytes and add up in any order: days to weeks,
workers to a whole. The cut of a week then needs no rows at all, and it comes with a bracket: no threshold was better on
these rows than its upper end.
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np

from surecut import ScoreSketch, tune_threshold

MODELS, DAYS, BATCH = ("old", "new"), range(7), 20_000


def batches_of(day):
    """What passes on one day: model, labels and scores, batch after batch."""
    random = np.random.default_rng(day)
    for _ in range(5):
        for model in MODELS:
            truth = random.random(BATCH) < 0.03
            margin = random.normal(-3 + (1.5 if model == "old" else 2.2) * truth, 1)
            yield model, truth, 1 / (1 + np.exp(-margin))


def work(day):
    """A worker sees one day's stream once, and hands over bytes."""
    sketches = defaultdict(ScoreSketch)
    for model, labels, scores in batches_of(day):
        sketches[model, day].update(labels, scores)
    return {key: sketch.to_bytes() for key, sketch in sketches.items()}


kept = {}
with ThreadPoolExecutor(2) as pool:
    for found in pool.map(work, DAYS):
        kept |= {key: ScoreSketch.from_bytes(content) for key, content in found.items()}

# %%
# The week's cut of each model, from seven sketches:

for model in MODELS:
    week = sum(kept[model, day] for day in DAYS)
    cut = week.best_cut("f1")
    print(f"{model}: {cut}")
    print(f"     {week}, {len(week.to_bytes()):,} bytes; no cut is better than {cut.upper:.4f}")

# %%
# Had the rows been kept, the exact cut would be this one:

rows = [(labels, scores) for day in DAYS for model, labels, scores in batches_of(day) if model == "new"]
labels, scores = map(np.concatenate, zip(*rows, strict=True))
print(tune_threshold(labels, scores))

# %%
# Day by day:

for model in MODELS:
    cuts = [kept[model, day].best_cut("f1") for day in DAYS]
    bracket = [cut.lower for cut in cuts], [cut.upper for cut in cuts]
    plt.fill_between(DAYS, *bracket, alpha=0.4, label=f"best F1, {model} model")
plt.xlabel("day")
plt.legend()
plt.show()
