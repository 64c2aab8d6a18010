"""
Several classes, some of them rare
==================================

Five classes, of which the rarest has one row in a hundred. The class with the largest probability is the best answer
for accuracy, and the rare classes are hardly ever predicted. ``tune_top_k`` finds the rule, the class with the largest
a·probability + b, that is best for the macro average of F1, which counts all classes alike.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import cross_val_predict

from surecut import tune_top_k
from surecut.plots import TopKDisplay

rng = np.random.default_rng(0)
classes = np.array(["fine", "scratched", "dented", "torn", "burnt"])
centres = rng.normal(size=(5, 4))


def parts(size):
    """Four measurements of each part, and what is wrong with it."""
    kind = rng.choice(5, size=size, p=[0.74, 0.15, 0.06, 0.04, 0.01])
    return centres[kind] + rng.normal(size=(size, 4)), classes[kind]


X, y = parts(3_000)
X_new, y_new = parts(40_000)
model = LogisticRegression()
scores = cross_val_predict(model, X, y, method="predict_proba", cv=5)  # of models that did not see the row
model.fit(X, y)

# %%
# The columns of the scores are those of the sorted classes, as scikit-learn has them. The stable rule is for new rows.
# What it does to each class is printed beside what the largest probability does.

rule = tune_top_k(y, scores, k=1, metric="f1", stable=True)
print(str(rule).replace("; ", ";\n    ").replace(", instead", ",\n    instead"))

# %%
# The confusion matrices of both on the 3,000 rows. More of the rare classes are found; the price is that more of the
# frequent ones are taken for them.

TopKDisplay.from_top_k(rule)
plt.show()

# %%
# On 40,000 new rows, beside the best rule of the tuning rows, and beside a model that is trained with weights. Such
# weights are a guess: they are made for balanced accuracy, and F1 is another metric.

probabilities = model.predict_proba(X_new)
balanced = LogisticRegression(class_weight="balanced").fit(X, y)
predictions = {
    "largest probability": model.classes_[probabilities.argmax(axis=1)],
    "class_weight='balanced'": balanced.predict(X_new),
    "tuned, exact": tune_top_k(y, scores, k=1, metric="f1").predict(probabilities),
    "tuned, stable": rule.predict(probabilities),
}
for name, predicted in predictions.items():
    macro, accuracy = f1_score(y_new, predicted, average="macro"), accuracy_score(y_new, predicted)
    print(f"{name:24} macro-F1 {macro:.4f}, accuracy {accuracy:.4f}")

# %%
# Each metric has a rule of its own, from the same scores.

metrics = ["accuracy", "kappa", "f1", "balanced_accuracy"]
for name, found in tune_top_k(y, scores, k=1, metric=metrics, stable=True).items():
    shares = np.array([np.mean(found.predict(probabilities) == label) for label in found.labels])
    print(f"{name:18}", ", ".join(f"{label} {share:.1%}" for label, share in zip(found.labels, shares, strict=True)))
print(f"{'true':18}", ", ".join(f"{label} {np.mean(y_new == label):.1%}" for label in rule.labels))
