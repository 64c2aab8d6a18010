"""Populations whose class-conditional score distributions are known: the value of a threshold is computed.

``python benchmarks/stable_populations.py`` compares each with a million simulated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from surecut.confusion import Confusion
from surecut.metrics import Metric, Utility, get_metric


@dataclass(frozen=True)
class Pieces:
    """Piecewise uniform scores on [0, 1], [1, 2], …; with `atoms`, all of a piece at its left end."""

    mass: tuple[float, ...]
    atoms: bool = False

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        piece = random_state.choice(len(self.mass), size, p=np.array(self.mass)).astype(float)
        return piece if self.atoms else piece + random_state.random(size)

    def sf(self, t: Any) -> Any:
        ends = np.concatenate(([0.0], np.cumsum(self.mass)))
        at = np.clip(np.ceil(t) if self.atoms else t, 0, len(self.mass))
        return np.maximum(1 - np.interp(at, np.arange(len(ends)), ends), 0)

    def isf(self, q: Any) -> Any:
        ends = np.concatenate(([0.0], np.cumsum(self.mass)))
        return np.interp(1 - np.asarray(q), ends, np.arange(len(ends)))


@dataclass(frozen=True)
class Ramps:
    """Scores on [0, m] whose density is linear between its heights at 0, 1, …, m (in proportion)."""

    heights: tuple[float, ...]

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The density at the knots, and the distribution function there."""
        density = np.array(self.heights)
        below = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
        return density / below[-1], below / below[-1]

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        return self.isf(random_state.random(size))

    def sf(self, t: Any) -> Any:
        density, below = self._parts()
        t = np.clip(t, 0, len(density) - 1)
        piece = np.minimum(np.floor(t).astype(int), len(density) - 2)
        u, slope = t - piece, np.diff(density)[piece]
        return np.maximum(1 - (below[piece] + density[piece] * u + slope * u**2 / 2), 0)

    def isf(self, q: Any) -> Any:
        density, below = self._parts()
        p = 1 - np.asarray(q, dtype=float)
        piece = np.clip(np.searchsorted(below, p, side="right") - 1, 0, len(density) - 2)
        rest, slope = p - below[piece], np.diff(density)[piece]
        root = np.sqrt(np.maximum(density[piece] ** 2 + 2 * slope * rest, 0))
        return piece + np.clip(2 * rest / (density[piece] + root), 0, 1)


@dataclass(frozen=True)
class Mapped:
    """Scores after an increasing map. Of a map with levels, `inverse` gives the lowest score that reaches t."""

    base: Any
    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]

    def rvs(self, size: int, random_state: np.random.Generator) -> np.ndarray:
        return self.forward(self.base.rvs(size=size, random_state=random_state))

    def sf(self, t: Any) -> Any:
        return self.base.sf(self.inverse(t))

    def isf(self, q: Any) -> Any:
        return self.forward(self.base.isf(q))


@dataclass(frozen=True)
class Population:
    """The scores of positives and of negatives, and the share of positives."""

    positive: Any
    negative: Any
    prior: float

    def draw(self, random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of both classes: draws without one of them are redrawn."""
        while True:
            labels = random.random(rows) < self.prior
            if 0 < labels.sum() < rows:
                break
        scores = np.empty(rows)
        scores[labels] = self.positive.rvs(size=int(labels.sum()), random_state=random)
        scores[~labels] = self.negative.rvs(size=int((~labels).sum()), random_state=random)
        return labels, scores

    def value(self, metric: Metric, threshold: Any) -> Any:
        """NaN where the metric is 0/0."""
        t = np.asarray(threshold, dtype=float)
        tp, fp = self.prior * self.positive.sf(t), (1 - self.prior) * self.negative.sf(t)
        return metric.evaluate(Confusion(tp, fp, self.prior - tp, 1 - self.prior - fp))

    def optimum(self, metric: Metric) -> float:
        """The best threshold on a grid of both classes' quantiles, then refined beside the best grid points."""
        q = special.expit(np.linspace(-16, 16, 8_001))
        grid = np.unique(np.concatenate((self.positive.isf(q), self.negative.isf(q), np.arange(-12.0, 13.0))))
        values = np.nan_to_num(self.value(metric, grid), nan=-np.inf)
        best = float(values.max())
        for i in np.argsort(-values)[:20]:
            low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
            found = optimize.minimize_scalar(
                lambda t: -float(self.value(metric, t)), bounds=(low, high), method="bounded", options={"xatol": 1e-13}
            )
            best = max(best, -float(found.fun))
        return best


def normal(shift: float = 1.5, scale: float = 1.0) -> tuple[Any, Any]:
    return stats.norm(shift, scale), stats.norm(0, 1)


def mapped(forward: Callable[[Any], Any], inverse: Callable[[Any], Any]) -> tuple[Any, Any]:
    positive, negative = normal()
    return Mapped(positive, forward, inverse), Mapped(negative, forward, inverse)


PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "normal": normal,
    "normal, narrow positives": lambda: normal(1.5, 0.6),
    "lognormal": lambda: (stats.lognorm(0.7, scale=np.e), stats.lognorm(0.7)),
    "beta": lambda: (stats.beta(3, 1.5), stats.beta(1.5, 3)),
    # The likelihood ratio rises smoothly, is flat on [1, 2], and rises again.
    "plateau": lambda: (Ramps((0.02, 0.3, 0.3, 0.45)), Ramps((0.6, 0.2, 0.2, 0.05))),
    "jump": lambda: (Pieces((0.2, 0.8)), Pieces((0.9, 0.1))),
    "stairs": lambda: (Pieces((0.05, 0.15, 0.3, 0.5)), Pieces((0.5, 0.3, 0.15, 0.05))),
    "tied": lambda: mapped(
        lambda z: np.clip(np.round(2 * z), -3, 6),
        lambda t: np.where(np.ceil(t) <= -3, -np.inf, np.where(np.ceil(t) > 6, np.inf, (np.ceil(t) - 0.5) / 2)),
    ),
    "cubed": lambda: mapped(
        lambda z: special.expit(z - 1) ** 3, lambda t: special.logit(np.cbrt(np.clip(t, 0, 1))) + 1
    ),
    "miscalibrated": lambda: mapped(  # logits that are too large, and shifted
        lambda z: special.expit(3 * z + 2), lambda t: (special.logit(np.clip(t, 0, 1)) - 2) / 3
    ),
    "two peaks": lambda: (Pieces((0.05, 0.45, 0.05, 0.45), True), Pieces((0.45, 0.05, 0.45, 0.05), True)),
    "two peaks, continuous": lambda: (Pieces((0.05, 0.45, 0.05, 0.45)), Pieces((0.45, 0.05, 0.45, 0.05))),
}


def population(name: str, prior: float) -> Population:
    return Population(*PAIRS[name](), prior)


METRICS = ("f1", "f2", "am", "kappa", "mcc", "cost")


def metrics(prior: float) -> list[Metric]:
    """`METRICS`; in the cost a false negative costs (1 − P) / 2P times a false positive, for a prior P."""
    return [*map(get_metric, METRICS[:-1]), Utility(fp=-1, fn=-(1 - prior) / (2 * prior))]


@cache
def known(name: str, prior: float) -> tuple[Population, tuple[float, ...]]:
    """A population, and the best value of each metric."""
    found = population(name, prior)
    return found, tuple(found.optimum(metric) for metric in metrics(prior))


def main() -> None:
    for name in PAIRS:
        pair = population(name, 0.5 if name.startswith("two") else 0.1)
        labels, scores = pair.draw(np.random.default_rng(1), 1_000_000)
        for t in np.quantile(scores[labels], (0.2, 0.5, 0.8)):
            shares = [(scores[c] >= t).mean() - d.sf(t) for c, d in ((labels, pair.positive), (~labels, pair.negative))]
            print(f"{name}: {t:.3f}", *(f"{float(s):+.4f}" for s in shares), flush=True)


if __name__ == "__main__":
    main()
