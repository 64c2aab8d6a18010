"""
LightGBM with rare positives
============================

Boosting is trained by log loss, a proper loss. With one positive in twenty, 0.5 is a poor cut for F1, and reweighing
the classes in training spoils the probabilities. Leave the training alone and cut the scores.
"""

import lightgbm
import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from surecut import tune_threshold
from surecut.plots import MetricThresholdDisplay

X, y = make_classification(20_000, n_features=15, n_informative=6, weights=[0.95], flip_y=0.03, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
X_tune, X_test, y_tune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0)

model = lightgbm.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=1).fit(X_train, y_train)
tune_scores, test_scores = (model.predict_proba(part)[:, 1] for part in (X_tune, X_test))

cut = tune_threshold(y_tune, tune_scores, metric="f1")
print(cut)

# %%
# On test rows that neither step saw:

print(f"cut at 0.5: F1 = {f1_score(y_test, test_scores >= 0.5):.3f}")
print(f"tuned cut:  F1 = {f1_score(y_test, cut.predict(test_scores)):.3f}")
MetricThresholdDisplay.from_cut(cut, y_test, test_scores, name="F1 on test rows")
plt.show()
