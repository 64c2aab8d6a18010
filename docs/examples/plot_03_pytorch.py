"""
PyTorch logits, without probabilities
=====================================

A network that ends in a logit and was trained by ``BCEWithLogitsLoss`` needs no sigmoid to be cut: a cut only asks
which score is higher. Tune on the logits, and compare the logits with the threshold where the network is deployed.

The network is PyTorch's where PyTorch is installed (``pip install torch``). It is too heavy for the build of these
pages: there, a network of the same shape and loss is trained by a few lines of NumPy.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from surecut import tune_threshold
from surecut.plots import MetricThresholdDisplay

try:
    import torch
except ModuleNotFoundError:
    torch = None

X, y = make_moons(9_000, noise=0.35, random_state=0)
rare = (y == 0) | (np.random.default_rng(0).random(len(y)) < 0.1)  # one in eleven is positive
X, y = X[rare].astype(np.float32), y[rare]
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, stratify=y, random_state=0)
X_tune, X_test, y_tune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0)


def torch_network(X, y, hidden=32, steps=400):
    """A small network, trained by PyTorch; returns the function from rows to logits."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    loss = torch.nn.BCEWithLogitsLoss()
    rows, truth = torch.from_numpy(X), torch.from_numpy(y).float()
    for _ in range(steps):
        optimizer.zero_grad()
        loss(network(rows)[:, 0], truth).backward()
        optimizer.step()

    def logits(rows):
        with torch.inference_mode():
            return network(torch.from_numpy(rows))[:, 0].numpy()

    return logits


def numpy_network(X, y, hidden=32, steps=400, rate=0.02):
    """The same shape, loss and optimizer (Adam), by hand."""
    random = np.random.default_rng(0)
    weights = [random.normal(size=(2, hidden)) / 2, np.zeros(hidden), random.normal(size=hidden) / 6, np.zeros(1)]
    means, squares = ([np.zeros_like(part) for part in weights] for _ in range(2))
    for step in range(1, steps + 1):
        inner = np.tanh(X @ weights[0] + weights[1])
        error = (1 / (1 + np.exp(-(inner @ weights[2] + weights[3]))) - y) / len(y)
        back = np.outer(error, weights[2]) * (1 - inner**2)
        gradients = [X.T @ back, back.sum(axis=0), inner.T @ error, error.sum(keepdims=True)]
        for part, gradient, mean, square in zip(weights, gradients, means, squares, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            part -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return lambda rows: np.tanh(rows @ weights[0] + weights[1]) @ weights[2] + weights[3]


logits = (numpy_network if torch is None else torch_network)(X_train, y_train)
print("trained by", "NumPy, since PyTorch is not installed" if torch is None else f"PyTorch {torch.__version__}")

# %%
# A logit of 0 is a probability of one half, the usual cut. F2 and Jaccard are best elsewhere:

cuts = tune_threshold(y_tune, logits(X_tune), metric=["f2", "jaccard"])
for name, cut in cuts.items():
    usual, tuned = (cut.metric.score(y_test, hit) for hit in (logits(X_test) >= 0, cut.predict(logits(X_test))))
    print(f"{name}: logit >= {cut.threshold:.3f}; on test rows {tuned:.3f}, at the usual cut {usual:.3f}")

# %%
# Probabilities would give the same predictions: the sigmoid does not change the order.

probabilities = 1 / (1 + np.exp(-logits(X_tune).astype(np.float64)))
same = tune_threshold(y_tune, probabilities, metric="f2")
print((same.predict(probabilities) == cuts["f2"].predict(logits(X_tune))).all())

# %%
# The test rows' curve, over logits:

display = MetricThresholdDisplay.from_cut(cuts["f2"], y_test, logits(X_test), name="F2 on test rows")
display.ax_.set_xlabel("threshold on the logit")
plt.show()

# %%
# Deploy it as a file, or as SQL next to a table of logits. The threshold is put in the logits' own dtype, so that
# float32 compares as it did here:

cuts["f2"].save(Path(tempfile.mkdtemp()) / "cut.json")
print(cuts["f2"].to_sql("logit", dialect="spark"))
