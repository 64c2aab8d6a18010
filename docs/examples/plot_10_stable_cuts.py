"""
Stable cuts: a threshold for new rows
=====================================

The best threshold of 300 validation rows is not the best threshold for new rows. ``stable=True`` looks for a threshold
that is good on new rows. Here the population is known, so that the regret of both can be computed.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from surecut import tune_threshold
from surecut.plots import MetricThresholdDisplay

rng = np.random.default_rng(0)


def chance(z):
    """The probability of a positive label at a feature z."""
    return 1 / (1 + np.exp(1.5 - 2 * z))


def rows(size):
    """Labels, and calibrated scores of a fixed model."""
    score = chance(rng.normal(size=size))
    return rng.random(size) < score, score


# %%
# The population: the feature is standard normal, and the F1 of each threshold follows from 100,000 of its quantiles.

scores = chance(norm.ppf((np.arange(100_000) + 0.5) / 100_000))
true_positives = scores[::-1].cumsum()[::-1]
accepted = np.arange(len(scores), 0, -1)
population_f1 = 2 * true_positives / (accepted + true_positives[0])


def f1_on_new_rows(threshold):
    return population_f1[min(np.searchsorted(scores, threshold), len(scores) - 1)]


# %%
# 200 samples of 300 rows, each with an exact and a stable cut. The regret is the F1 on new rows that is missing to the
# best threshold of the population.

thresholds = {"exact": [], "stable": []}
for _ in range(200):
    y_sample, s_sample = rows(300)
    thresholds["exact"].append(tune_threshold(y_sample, s_sample, metric="f1").threshold)
    thresholds["stable"].append(tune_threshold(y_sample, s_sample, metric="f1", stable=True).threshold)
regrets = {
    name: population_f1.max() - np.array([f1_on_new_rows(threshold) for threshold in found])
    for name, found in thresholds.items()
}
for name, regret in regrets.items():
    print(f"{name}: mean regret {regret.mean():.4f}, 95 % of samples below {np.quantile(regret, 0.95):.4f}")
less = regrets["exact"] - regrets["stable"]
print(f"difference: {less.mean():.4f} ± {less.std(ddof=1) / np.sqrt(len(less)):.4f} (standard error)")
print(f"less regret than the exact cut in {np.mean(less > 0):.0%} of the samples, more in {np.mean(less < 0):.0%}")

# %%
# The stable thresholds vary less, and their mean regret is smaller.

colours = {"exact": "tab:orange", "stable": "tab:blue"}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.hist(thresholds.values(), bins=np.linspace(0.1, 0.6, 26), color=colours.values(), label=list(thresholds))
left.axvline(scores[population_f1.argmax()], color="black", linestyle="--", label="best of the population")
left.set(xlabel="threshold", ylabel="samples of 300 rows")
left.legend()
for name, regret in regrets.items():
    right.plot(np.sort(regret), np.arange(1, len(regret) + 1) / len(regret), color=colours[name], label=name)
    right.axvline(regret.mean(), color=colours[name], linestyle=":", label=f"{name}, mean {regret.mean():.4f}")
right.set(xlabel="regret: F1 missing on new rows", ylabel="share of samples with at most this regret")
right.legend(loc="lower right")
plt.show()

# %%
# One sample: what a stable cut says. Its value is below the maximum on these rows. The bands hold 90 % and half of the
# thresholds of resamples; the bar at the top marks the thresholds that lose little on these rows.

y_sample, s_sample = rows(300)
cut = tune_threshold(y_sample, s_sample, metric="f1", stable=True)
print(str(cut).replace("; ", ";\n"))
MetricThresholdDisplay.from_predictions(y_sample, s_sample, cut=cut)
plt.show()

# %%
# On new rows both are worth less than on these rows. In a single sample either can be the better one; the difference
# is one of the mean over samples.

exact = tune_threshold(y_sample, s_sample, metric="f1")
for name, one in (("exact", exact), ("stable", cut)):
    print(f"{name}: {one.value:.4f} on the validation rows, {f1_on_new_rows(one.threshold):.4f} on new rows")
