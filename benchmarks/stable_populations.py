"""Populations whose class-conditional score distributions are known: the value of a threshold is computed.

``python benchmarks/stable_populations.py`` compares each with a million simulated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    "plateau": lambda: (Pieces((0.05, 0.3, 0.3, 0.35)), Pieces((0.5, 0.2, 0.2, 0.1))),
    "jump": lambda: (Pieces((0.2, 0.8)), Pieces((0.9, 0.1))),
    "stairs": lambda: (Pieces((0.05, 0.15, 0.3, 0.5)), Pieces((0.5, 0.3, 0.15, 0.05))),
    "tied": lambda: mapped(
        lambda z: np.clip(np.round(2 * z), -3, 6),
        lambda t: np.where(np.ceil(t) <= -3, -np.inf, np.where(np.ceil(t) > 6, np.inf, (np.ceil(t) - 0.5) / 2)),
    ),
    "cubed": lambda: mapped(
        lambda z: special.expit(z - 1) ** 3, lambda t: special.logit(np.cbrt(np.clip(t, 0, 1))) + 1
    ),
    "two peaks": lambda: (Pieces((0.05, 0.45, 0.05, 0.45), True), Pieces((0.45, 0.05, 0.45, 0.05), True)),
    "two peaks, continuous": lambda: (Pieces((0.05, 0.45, 0.05, 0.45)), Pieces((0.45, 0.05, 0.45, 0.05))),
}


def population(name: str, prior: float) -> Population:
    return Population(*PAIRS[name](), prior)


def metrics(prior: float) -> list[Metric]:
    """F1, F2, AM, kappa, MCC and a cost whose optimum is interior."""
    return [*map(get_metric, ("f1", "f2", "am", "kappa", "mcc")), Utility(fp=-1, fn=-(1 - prior) / prior)]


def main() -> None:
    for name in PAIRS:
        known = population(name, 0.5 if name.startswith("two") else 0.1)
        labels, scores = known.draw(np.random.default_rng(1), 1_000_000)
        for t in np.quantile(scores[labels], (0.2, 0.5, 0.8)):
            shares = [
                (scores[c] >= t).mean() - d.sf(t) for c, d in ((labels, known.positive), (~labels, known.negative))
            ]
            print(f"{name}: {t:.3f}", *(f"{float(s):+.4f}" for s in shares), flush=True)


if __name__ == "__main__":
    main()
