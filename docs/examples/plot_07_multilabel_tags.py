"""
Tags: a threshold for each label
================================

Twelve tags of very different frequency. Macro-F1 counts every tag alike, so that each needs a threshold of its own;
rare tags have few positives to tune on, and shrinkage helps them.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import tune_thresholds
from surecut.plots import MultilabelDisplay

rng = np.random.default_rng(0)
tags = ["news", "sport", "music", "film", "art", "food", "travel", "health", "law", "chess", "opera", "fencing"]
intercepts = np.linspace(-0.5, -5.0, len(tags))


def articles(size):
    margin = intercepts + 1.6 * rng.normal(size=(size, len(tags)))
    return rng.random(margin.shape) < 1 / (1 + np.exp(-margin)), margin


Y_tune, S_tune = articles(800)
Y_test, S_test = articles(20_000)


def macro_f1(Y, predicted):
    tp = (Y & predicted).sum(axis=0)
    return float(np.mean(2 * tp / np.maximum(Y.sum(axis=0) + predicted.sum(axis=0), 1)))


cuts = {
    "one threshold for all (micro)": tune_thresholds(Y_tune, S_tune, average="micro", labels=tags),
    "one for each (macro)": tune_thresholds(Y_tune, S_tune, average="macro", labels=tags),
    "one for each, shrunken": tune_thresholds(Y_tune, S_tune, average="macro", shrinkage="auto", labels=tags),
}
for name, cut in cuts.items():
    print(f"{name}: macro-F1 on new articles {macro_f1(Y_test, cut.predict(S_test)):.4f}")
usual = macro_f1(Y_test, S_test >= 0)
print(f"the usual cut at a probability of one half: {usual:.4f}")

# %%
# Thresholds and values of each tag. The rarer the tag, the more its value on the tuning rows flatters it.

MultilabelDisplay.from_cut(cuts["one for each (macro)"])
plt.show()

# %%
# A label without a single positive takes the threshold that all labels share, and the cut says so.

Y_tune[:, -1] = False
cut = tune_thresholds(Y_tune, S_tune, labels=tags)
print(cut)
print(cut.shared)
