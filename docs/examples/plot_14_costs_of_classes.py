"""
A cost matrix, and a person to ask
==================================

Photographs of mushrooms: to take a deadly one for a good one costs far more than the other way round. ``tune_top_k``
finds the cheapest rule for such costs, and *ask a person* is one more action with its own cost.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import tune_top_k
from surecut.plots import TopKDisplay

rng = np.random.default_rng(0)
classes = np.array(["deadly", "good", "inedible"])


def photographs(size):
    """Classes, and the scores of a model that is too sure of itself."""
    log_odds = np.log([0.05, 0.55, 0.4]) + 2 * rng.normal(size=(size, 3))
    probability = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    probability /= probability.sum(axis=1, keepdims=True)
    score = probability**1.5 / (probability**1.5).sum(axis=1, keepdims=True)
    return classes[rng.multinomial(1, probability).argmax(axis=1)], score


y, score = photographs(4_000)
y_new, score_new = photographs(50_000)

# %%
# What an action costs, for each true class in the order of the columns: deadly, good, inedible. ``stable=True`` takes
# the action of the least expected cost by calibrated probabilities, which are made of the scores first.

costs = {
    "deadly": [0, 1, 1],
    "good": [50, 0, 4],
    "inedible": [2, 1, 0],
    "ask a person": 0.6,
}
rule = tune_top_k(y, score, k=1, costs=costs, stable=True)
print(str(rule).replace("; ", ";\n    ").replace(", instead", ",\n    instead"))
TopKDisplay.from_top_k(rule)
plt.show()

# %%
# The mean cost on new photographs. To take the scores for probabilities, and the cheapest action by them, costs more.


def mean_cost(actions, prices):
    matrix = np.column_stack([np.broadcast_to(price, 3) for price in prices.values()])
    place = {action: column for column, action in enumerate(prices)}
    taken = np.array([place[action] for action in actions])
    return matrix[np.searchsorted(classes, y_new), taken].mean()


matrix = np.column_stack([np.broadcast_to(price, 3) for price in costs.values()])
untuned = np.array(list(costs))[(score_new @ matrix).argmin(axis=1)]
print(f"largest score: {mean_cost(classes[score_new.argmax(axis=1)], costs):.3f}")
print(f"scores taken for probabilities: {mean_cost(untuned, costs):.3f}")
print(f"tuned: {mean_cost(rule.predict(score_new), costs):.3f}")

# %%
# The cheaper a person is, the more is asked. Each point is a rule, tuned for another price of an answer.

prices = np.geomspace(0.05, 2, 25)
rules = [tune_top_k(y, score, k=1, costs={**costs, "ask a person": price}, stable=True) for price in prices]
actions = [found.predict(score_new) for found in rules]
asked = [np.mean(taken == "ask a person") for taken in actions]
total = [mean_cost(taken, {**costs, "ask a person": price}) for taken, price in zip(actions, prices, strict=True)]
errors = [mean_cost(taken, {**costs, "ask a person": 0}) for taken in actions]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogx(prices, 100 * np.array(asked), ".-")
left.set(xlabel="price of asking a person", ylabel="photographs that a person sees, %", ylim=0)
right.plot(100 * np.array(asked), errors, ".-", label="of errors")
right.plot(100 * np.array(asked), total, ".-", label="of errors and of people")
right.set(xlabel="photographs that a person sees, %", ylabel="mean cost of a new photograph", ylim=0)
right.legend()
plt.show()

# %%
# If all errors cost the same, ``reject_cost`` is enough: an error costs 1, and a row is rejected where the largest
# probability is below 1 − ``reject_cost``.

for price in (0.1, 0.2, 0.4):
    found = tune_top_k(y, score, k=1, reject_cost=price, stable=True)
    taken = found.predict(score_new)
    decided = taken != "reject"
    right_share = np.mean(taken[decided] == y_new[decided])
    print(f"reject_cost={price}: {1 - decided.mean():.1%} rejected, {right_share:.1%} of the others right")
