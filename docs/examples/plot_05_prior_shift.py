"""
Another share of positives
==========================

Validation rows are often enriched: half positive, while one row in a hundred is where the model runs. If positives look
the same in both places, the best cut follows from the validation rows and the new share alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import ScoreTally

rng = np.random.default_rng(2)


def rows(size, prior):
    positive = rng.random(size) < prior
    return positive, rng.normal(loc=2.0 * positive, size=size)


y_tune, s_tune = rows(5_000, 0.5)
y_live, s_live = rows(200_000, 0.01)

enriched = ScoreTally.from_scores(y_tune, s_tune)
naive = enriched.best_cut("f1")
shifted = enriched.with_prior(0.01).best_cut("f1")
for name, cut in (("tuned as if half were positive", naive), ("tuned for one in a hundred", shifted)):
    value = cut.metric.score(y_live, cut.predict(s_live))
    print(f"{name}: threshold {cut.threshold:.2f}, F1 promised {cut.value:.3f}, F1 there {value:.3f}")

# %%
# The F1 curve at both shares, from the same 5,000 rows:

figure, ax = plt.subplots(layout="constrained")
for name, tally in (("half positive", enriched), ("one in a hundred", enriched.with_prior(0.01))):
    thresholds, values = tally.curve("f1")
    (line,) = ax.plot(thresholds[1:], values[1:], label=name)
    cut = tally.best_cut("f1")
    ax.plot(cut.threshold, cut.value, "o", color=line.get_color())
ax.set(xlabel="threshold", ylabel="F1")
ax.legend()
plt.show()
