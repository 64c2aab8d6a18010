"""
A scikit-learn pipeline that is good at F2
==========================================

Missing a tumour is worse than a second look. F2 says so. The model is trained once, as always; only its cut is tuned.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from surecut import PlugInClassifier
from surecut.plots import MetricThresholdDisplay

X, y = load_breast_cancer(return_X_y=True)
malignant = y == 0
X_train, X_test, y_train, y_test = train_test_split(X[:, :5], malignant, stratify=malignant, random_state=0)

model = make_pipeline(StandardScaler(), LogisticRegression())
usual = model.fit(X_train, y_train)
tuned = PlugInClassifier(model, metric="f2").fit(X_train, y_train)

for name, classifier in (("usual", usual), ("tuned", tuned)):
    predicted = classifier.predict(X_test)
    print(f"{name}: F2 {fbeta_score(y_test, predicted, beta=2):.3f}, recall {recall_score(y_test, predicted):.3f}")

# %%
# The cut was tuned on out-of-fold scores of the training rows. Here is where it stands on the test rows:

display = MetricThresholdDisplay.from_estimator(tuned, X_test, y_test)
display.ax_.axvline(0.5, color="grey", linestyle=":", label="usual cut")
display.ax_.legend()
plt.show()

# %%
# Another metric needs neither data nor training: the ROC hull of the tuning rows is kept.

for metric in ("f1", "f0.5", "am", "mcc"):
    print(f"{metric:>5}: threshold {tuned.retarget(metric).best_threshold_:.3f}")
