"""Probabilities from scores: the map that a rule applies before it compares labels, saved with the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut.decisions import saving

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOFTMAX, SIGMOID, BETA = "softmax", "sigmoid", "beta"

FAMILIES = (SOFTMAX, SIGMOID, BETA)


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Probabilities of labels from the scores of a row.

    Scores are first put on a scale of their own, z: the logarithm (softmax) or the logit (sigmoid, beta) of scores that
    are probabilities; other scores as they are (softmax), or by their place between the limits.

    Attributes
    ----------
    family
        ``"softmax"``: one class a row, the probability of class j is proportional to exp(u_j z_j + v_j).
        ``"sigmoid"``: each label by itself, 1 / (1 + exp(−u_j z − v_j)). ``"beta"``: each label by itself, with two
        slopes, of ln p and of −ln(1 − p), where p is the sigmoid of z.
    is_probability
        Whether the scores are taken for probabilities.
    limits
        Scores beyond them count as these.
    slope, intercept
        The place of a score is multiplied by the first, then the second is added: what all labels share.
    coefficients
        Shape (labels, 2 or 3): u_j, or the two slopes, and v_j.
    """

    family: str
    is_probability: bool
    limits: tuple[float, float]
    coefficients: NDArray[np.float64]
    slope: float = 1.0
    intercept: float = 0.0

    def probabilities(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities of all labels, from a matrix of scores; a score of −inf has none, and stays −inf."""
        if self.family != SOFTMAX:
            columns = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
            return self.of_entries(scores, columns)
        logits = self.place(scores) * self.coefficients[:, 0] + self.coefficients[:, 1]
        absent = np.asarray(scores) == -np.inf
        logits[absent] = -np.inf
        highest = logits.max(axis=1, keepdims=True)
        logits -= np.where(highest == -np.inf, 0.0, highest)
        np.exp(logits, out=logits)
        total = logits.sum(axis=1, keepdims=True)
        logits /= np.where(total > 0, total, 1.0)
        logits[absent] = -np.inf
        return logits

    def of_entries(self, scores: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities of single entries, each by itself; `columns` are their labels."""
        place = features(self.place(scores), self.family)
        curve = sum(place[d] * self.coefficients[columns, d] for d in range(len(place)))
        return np.where(np.asarray(scores) == -np.inf, -np.inf, sigmoid(np.asarray(curve)))

    def place(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """z: the scores on a scale of their own."""
        scores = np.asarray(scores, dtype=np.float64)
        if self.family != SOFTMAX:
            place = margin(scores, self.is_probability, self.limits)
        else:
            clipped = np.clip(scores, *self.limits)
            place = np.log(clipped) if self.is_probability else clipped
        return np.asarray(self.slope * place + self.intercept)

    def to_dict(self, *, with_coefficients: bool = True) -> dict[str, Any]:
        """Plain JSON values; the coefficients of many labels may be saved elsewhere."""
        return {
            "family": self.family,
            "is_probability": self.is_probability,
            "limits": [saving.number_to_json(end) for end in self.limits],
            **({"coefficients": self.coefficients.tolist()} if with_coefficients else {}),
            "slope": self.slope,
            "intercept": self.intercept,
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Read what `to_dict` wrote."""
        document = saving.object_from_json(document)
        family = saving.text_from_json(document["family"])
        count = coefficients_of(family)
        rows = [
            [saving.finite_from_json(one) for one in saving.list_from_json(row)]
            for row in saving.list_from_json(document["coefficients"])
        ]
        if not rows or any(len(row) != count for row in rows):
            raise ValueError(f"a {family} map has {count} coefficients for each label")
        lower, upper = saving.interval_from_json(document["limits"])
        return cls(
            family,
            saving.flag_from_json(document["is_probability"]),
            (lower, upper),
            np.array(rows, dtype=float),
            saving.finite_from_json(document["slope"]),
            saving.finite_from_json(document["intercept"]),
        )

    def check(self, labels: int) -> None:
        """Raise unless it makes probabilities of the scores of so many labels."""
        if len(self.coefficients) != labels:
            raise ValueError(f"its map of scores has coefficients of {len(self.coefficients)} labels, not of {labels}")
        lower, upper = self.limits
        least, most = (0.0, 1.0) if self.is_probability else (-np.inf, np.inf)
        highest = upper <= most if self.family == SOFTMAX else upper < most
        if not (least < lower <= upper and highest):
            raise ValueError(f"the limits of its map of scores, {lower} and {upper}, are no limits of such scores")

    def __str__(self) -> str:
        return self.family


def coefficients_of(family: str) -> int:
    """How many coefficients a label has in maps of a family."""
    if family not in FAMILIES:
        raise ValueError(f"its map of scores must be one of {', '.join(FAMILIES)}, got {family!r}")
    return 3 if family == BETA else 2


def features(logit: NDArray[np.float64], family: str) -> tuple[Any, ...]:
    """What a curve is linear in."""
    if family == BETA:
        return -np.logaddexp(0, -logit), np.logaddexp(0, logit), 1.0
    return logit, 1.0


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(−x))."""
    from scipy.special import expit

    return np.asarray(expit(values))


def margin(scores: NDArray[np.float64], is_probability: bool, limits: tuple[float, float]) -> NDArray[np.float64]:
    """Scores on a scale of their own: the logit of probabilities, others by their place between the limits."""
    clipped = np.clip(scores, *limits)
    if is_probability:
        return np.asarray(np.log(clipped / (1 - clipped)))
    lower, upper = limits
    return np.asarray((clipped / 2 - lower / 2) / ((upper / 2 - lower / 2) or 1.0))  # halves do not overflow
