"""
A decision with costs
=====================

A missed fraud costs 100, a needless call 2, a fraud stopped saves nothing more. The best cut of *these* scores for
*these* costs is a utility's. One training serves all costs: they only move the cut.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import ScoreTally
from surecut.metrics import Utility

rng = np.random.default_rng(1)
score = 1 / (1 + np.exp(3.5 - 1.8 * rng.normal(size=50_000)))
fraud = rng.random(50_000) < score
tally = ScoreTally.from_scores(fraud, score)

costs = Utility(fp=-2, fn=-100)
cut = tally.best_cut(costs)
print(f"call from a score of {cut.threshold:.4f} on: cost per row {-cut.value:.3f}")
print(f"call nobody: {100 * tally.prior:.3f};  call everybody: {2 * (1 - tally.prior):.3f}")

# %%
# What if a call cost more? A tally answers at once, for every price.

prices = np.geomspace(0.2, 100, 60)
cuts = [tally.best_cut(Utility(fp=-price, fn=-100)) for price in prices]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogx(prices, [one.threshold for one in cuts])
left.semilogx(prices, prices / (prices + 100), "k:", label="price / (price + 100), the theory's")
left.set(xlabel="price of a call", ylabel="best threshold")
left.legend()
right.semilogx(prices, [-one.value for one in cuts])
right.set(xlabel="price of a call", ylabel="cost per row at the best cut")
plt.show()

# %%
# The scores here are true probabilities, so that the best threshold is where theory puts it, up to the sample's noise.
# With scores of a real model it need not be, and the tuned cut is still the best one.
