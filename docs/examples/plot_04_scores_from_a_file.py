"""
Scores of a PyTorch model, from a file
======================================

surecut needs no model, only its scores. This example does not install PyTorch: it stands in for the line

.. code-block:: python

    numpy.save("logits.npy", model(inputs).squeeze(-1).detach().cpu().numpy())

with logits made by a generator. They are float32 and are not probabilities, and neither matters: the cut is put between
scores in their own dtype, and a strictly increasing map of the scores changes no prediction.
"""

import tempfile
from pathlib import Path

import numpy as np
from scipy.special import expit

from surecut import Cut, tune_threshold

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
logits = (2.0 * rng.normal(size=50_000) - 3.0).astype(np.float32)
np.save(folder / "logits.npy", logits)
np.save(folder / "labels.npy", rng.random(50_000) < expit(logits))

y_score, y_true = np.load(folder / "logits.npy"), np.load(folder / "labels.npy")
cut = tune_threshold(y_true, y_score, metric="f1")
print(cut)

# %%
# The same cut on probabilities predicts the same rows:

probabilities = expit(y_score.astype(np.float64))
on_probabilities = tune_threshold(y_true, probabilities, metric="f1")
assert (on_probabilities.predict(probabilities) == cut.predict(y_score)).all()

# %%
# Deploy it as a file, or as SQL next to a table of logits:

cut.save(folder / "cut.json")
assert Cut.load(folder / "cut.json") == cut
print(cut.to_sql("logit", dialect="spark"))
