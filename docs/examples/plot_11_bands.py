"""
Yes, no, ask a person
=====================

A language model judges 1,000 answers, and a person says which of them are right. Bands accept answers with a high
score, reject those with a low score, and leave the others to a person: here so that at least 90 % of the accepted
answers are right and at least 90 % of the rejected ones are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import tune_bands
from surecut.datasets import make_judged_answers
from surecut.plots import BandsDisplay

y_true, y_score, _ = make_judged_answers(1_000)
conditions = {"upper": "ppv>=0.9", "lower": "npv>=0.9"}
bands = {
    "on these rows": tune_bands(y_true, y_score, **conditions),
    "on new data": tune_bands(y_true, y_score, **conditions, confidence=0.9),
}
for name, found in bands.items():
    print(f"{name}: {found}".replace(": of", ":\n  of").replace("; ", ";\n  "))

# %%
# The scores have many ties. Without a promise each threshold is where its condition just holds on these rows.

figure, axes = plt.subplots(2, sharex=True, figsize=(8, 10), layout="constrained")
for ax, (name, found) in zip(axes, bands.items(), strict=True):
    BandsDisplay.from_predictions(y_true, y_score, found, ax=ax)
    ax.set_title(f"{conditions['upper']}, {conditions['lower']} {name}", pad=48)
    ax.set_xlabel("score of the judge")
plt.show()

# %%
# On 100,000 other answers: are the conditions met, and how many answers are left to a person?

y_new, score_new, source_new = make_judged_answers(100_000, random_state=1)
for name, found in bands.items():
    zone = found.predict(score_new)
    ppv, npv = y_new[zone == "yes"].mean(), 1 - y_new[zone == "no"].mean()
    print(f"{name}: PPV {ppv:.1%}, NPV {npv:.1%}, {np.mean(zone == 'ask'):.1%} left to a person")

# %%
# Bands can be tuned for costs instead. Here a wrong answer that is accepted costs 10, and a right one that is rejected
# 2. The more it costs to ask a person, the fewer answers are left to people.

costs = np.linspace(0.1, 2, 77)
priced = [tune_bands(y_true, y_score, gains={"no": (0, -2), "ask": -cost, "yes": (-10, 0)}) for cost in costs]
figure, ax = plt.subplots(layout="constrained")
ax.stackplot(
    costs,
    np.array([found.shares for found in priced]).T,
    labels=bands["on new data"].zones,
    colors=("tab:red", "tab:gray", "tab:green"),
    alpha=0.4,
    step="mid",
)
ax.set(xlabel="cost of asking a person", ylabel="share of the answers", xlim=(costs[0], costs[-1]), ylim=(0, 1))
ax.legend(loc="center right")
plt.show()
