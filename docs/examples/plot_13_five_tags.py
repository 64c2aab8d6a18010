"""
Five tags for each document
===========================

A page has room for five tags. Those with the largest scores are mostly the frequent ones, and many tags are hardly ever
shown. ``tune_top_k`` with ``k=5`` predicts exactly five tags for each document, so that the macro average of F1 is
best: it counts a rare tag as much as a frequent one.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from surecut import tune_top_k
from surecut.plots import TopKDisplay

rng = np.random.default_rng(0)
tags = [f"tag {number}" for number in range(1, 201)]
prior = 0.3 / np.arange(1, len(tags) + 1)  # few tags are frequent, most are rare


def documents(size):
    """Tags, and the scores of the 40 candidates of each document: two sparse matrices."""
    log_odds = np.log(prior / (1 - prior)) - 0.5 + 1.4 * rng.normal(size=(size, len(tags)))
    probability = 1 / (1 + np.exp(-log_odds))
    candidate = probability >= np.sort(probability, axis=1)[:, [-40]]
    true = rng.random(probability.shape) < probability
    return sparse.csr_array(true.astype(np.int8)), sparse.csr_array(np.where(candidate, probability, 0))


Y_tune, S_tune = documents(3_000)
Y_new, S_new = documents(10_000)
print(f"{Y_tune.sum() / 3_000:.1f} tags a document; the rarest has {Y_tune.sum(axis=0).min()} of the 3,000 documents")

# %%
# An absent score is never predicted. With two hundred tags, many of them rare, the rule for new documents is the
# stable one.

rule = tune_top_k(Y_tune, S_tune, k=5, metric="f1", average="macro", stable=True, labels=tags)
print(str(rule).replace("; ", ";\n    ").replace(", instead", ",\n    instead"))

# %%
# The F1 of all tags, in descending order, and of each tag before and after.

TopKDisplay.from_top_k(rule)
plt.show()

# %%
# On new documents, for one, three and five tags: the macro average, and how many of the tags are shown
# for ten documents or more.


def macro_f1(Y, predicted):
    tp = (Y * predicted).sum(axis=0)
    return float(np.mean(2 * tp / np.maximum(Y.sum(axis=0) + predicted.sum(axis=0), 1)))


def k_largest(S, k):
    dense = S.toarray()
    largest = np.argsort(-dense, axis=1, kind="stable")[:, :k]
    shown = np.zeros(dense.shape, dtype=np.int8)
    np.put_along_axis(shown, largest, 1, axis=1)
    return sparse.csr_array(shown)


places = (1, 3, 5)
found = {"largest scores": [], "tuned": []}
for k in places:
    tuned = tune_top_k(Y_tune, S_tune, k=k, metric="f1", stable=True, labels=tags)
    for name, shown in (("largest scores", k_largest(S_new, k)), ("tuned", tuned.predict(S_new).astype(np.int8))):
        found[name].append(macro_f1(Y_new, shown))
        ever = np.mean(shown.sum(axis=0) >= 10)
        print(f"k = {k}, {name}: macro-F1 {found[name][-1]:.4f}, {ever:.0%} of the tags for ten documents or more")

figure, ax = plt.subplots(layout="constrained")
for name, values in found.items():
    ax.plot(places, values, "o-", label=name)
ax.set(xlabel="tags that are shown for each document", ylabel="macro-F1 on new documents", xticks=places, ylim=0)
ax.legend()
plt.show()
