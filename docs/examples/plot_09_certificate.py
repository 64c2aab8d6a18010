"""
How far to trust a tuned value
==============================

The value of a cut on the validation rows is too good. A certificate says what holds on new rows: from rows kept
aside, or, with a wider margin, from the tuning rows themselves.
"""

import matplotlib.pyplot as plt
import numpy as np

from surecut import certify, tune_threshold
from surecut.plots import CertificateDisplay

rng = np.random.default_rng(4)


def rows(size):
    score = 1 / (1 + np.exp(1.5 - 2 * rng.normal(size=size)))
    return rng.random(size) < score, score


y_tune, s_tune = rows(1_000)
cut = tune_threshold(y_tune, s_tune, metric="f1")
print(cut)
print(certify(cut, y_tune, s_tune, method="uniform"))

# %%
# The band holds the true curve at every threshold at once, so that it does not matter that these rows chose the cut.

CertificateDisplay.from_predictions(y_tune, s_tune, metric="f1")
plt.show()

# %%
# Rows that were kept aside promise more.

y_fresh, s_fresh = rows(2_000)
certificate = certify(cut, y_fresh, s_fresh)
print(certificate)
for assumption in certificate.assumptions:
    print("-", assumption)

# %%
# Is it true? On a million new rows the value is

y_new, s_new = rows(1_000_000)
print(f"{cut.metric.score(y_new, cut.predict(s_new)):.4f}")
