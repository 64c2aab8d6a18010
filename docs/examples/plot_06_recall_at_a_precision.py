"""
As much recall as a precision allows
====================================

*Find as many as you can, but nine alarms in ten must be right.* That is a constraint, and the exact search keeps it.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import InfeasibleError, ScoreTally

rng = np.random.default_rng(3)
score = 1 / (1 + np.exp(2 - 2.5 * rng.normal(size=20_000)))
label = rng.random(20_000) < score
tally = ScoreTally.from_scores(label, score)

cut = tally.best_cut("recall", constraint="precision>=0.9")
print(cut)

# %%
# Several conditions at once, and what happens when they cannot be met:

print(tally.best_cut("f1", constraint=["precision>=0.8", "predicted_positive_rate<=0.15"]))
try:
    tally.best_cut("recall", constraint=["recall>=0.9", "precision>=0.99"])
except InfeasibleError as error:
    print(error)

# %%
# The price of a promise: recall against the precision asked for.

levels = np.linspace(0.5, 0.97, 60)
recalls = [tally.best_cut("recall", constraint=("precision", level)).value for level in levels]
figure, ax = plt.subplots(layout="constrained")
ax.plot(levels, recalls)
ax.plot(0.9, cut.value, "o")
ax.set(xlabel="precision promised", ylabel="recall attained")
plt.show()
