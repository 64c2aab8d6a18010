"""Calibration of several classes' scores on the validation rows: one temperature, and a shift for each class.

The shifts are normal around 0, with a variance that the rows choose (empirical Bayes): where classes have few rows, or
where the scores are probabilities already, they stay near 0, and a class of a handful of rows is not moved by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surecut.decisions.score_map import SOFTMAX, ScoreMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LEAST = 1e-12
"""Probabilities below it count as this, or as half the smallest one that is not 0, if that is larger."""

MOST_WEIGHT = 1e9
"""Of rows that weigh more together no prior is felt, and the curvature of their likelihood would drown it."""

LEAST_SPREAD = 1e-300
"""Scores that differ by less are equal."""

NEWTON_STEPS, VARIANCE_STEPS = 25, 12

VALUES_AT_ONCE, LEAST_ROWS = 1 << 17, 512

FIRST_VARIANCE, LEAST_VARIANCE, LARGEST_VARIANCE = 0.1, 1e-4, 10.0

CALIBRATION_ROWS = 50_000
"""Of more rows, as many, evenly spread, are enough for a handful of numbers for each class."""


def calibrate_classes(
    scores: NDArray[np.float64], codes: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> ScoreMap:
    """The map under which the classes of the validation rows are most likely."""
    if len(scores) > CALIBRATION_ROWS:
        some = np.linspace(0, len(scores) - 1, CALIBRATION_ROWS).astype(np.int64)
        scores, codes, weight = scores[some], codes[some], None if weight is None else weight[some]
    is_probability = bool(
        scores.min() >= 0 and scores.max() <= 1 and np.allclose(scores.sum(axis=1), 1, rtol=0, atol=1e-3)
    )
    limits = _limits(scores, is_probability)
    place = np.clip(scores, *limits)
    if is_probability:
        place = np.log(place)
    size = np.ones(len(codes)) if weight is None else weight * min(1.0, MOST_WEIGHT / float(weight.sum()))
    centred = place - place.mean(axis=1, keepdims=True)
    spread = 1.0 if is_probability else _root_mean_square(centred)
    scale = 1 / spread if spread > LEAST_SPREAD else 1.0
    temperature, shifts = _fit(centred * scale, codes, size)
    coefficients = np.column_stack((np.full(scores.shape[1], temperature * scale), shifts))
    return ScoreMap(SOFTMAX, is_probability, limits, coefficients)


def _root_mean_square(values: NDArray[np.float64]) -> float:
    largest = float(np.abs(values).max(initial=0))
    return largest * float(np.sqrt(((values / largest) ** 2).mean())) if largest > 0 else 0.0  # squares could overflow


def _limits(scores: NDArray[np.float64], is_probability: bool) -> tuple[float, float]:
    if is_probability:
        positive = scores[scores > 0]
        return max(LEAST, 0.5 * float(positive.min())) if len(positive) < scores.size else LEAST, 1.0
    finite = scores[np.isfinite(scores)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def _fit(
    place: NDArray[np.float64], codes: NDArray[np.int64], weight: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """The temperature's inverse and the shifts, with the variance of the shifts of the largest likelihood."""
    parameters = np.zeros(1 + place.shape[1])  # ln of the slope, shifts
    variance = FIRST_VARIANCE
    for _ in range(VARIANCE_STEPS):
        parameters, curvature = _newton(place, codes, weight, parameters, variance)
        spread = np.diag(np.linalg.inv(curvature))[1:]
        found = float(np.clip(np.mean(parameters[1:] ** 2 + spread), LEAST_VARIANCE, LARGEST_VARIANCE))
        settled = abs(np.log(found / variance)) < 0.02
        variance = found
        if settled:
            break
    return float(np.exp(parameters[0])), parameters[1:]


def _newton(
    place: NDArray[np.float64],
    codes: NDArray[np.int64],
    weight: NDArray[np.float64],
    parameters: NDArray[np.float64],
    variance: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The most likely parameters for a variance, and the curvature there."""
    classes = place.shape[1]
    precision = np.append(0.1, np.full(classes, 1 / variance))
    counts = np.bincount(codes, weight, minlength=classes)
    own = float(weight @ place[np.arange(len(codes)), codes])
    for _ in range(NEWTON_STEPS):
        slope, shifts = float(np.exp(parameters[0])), parameters[1:]
        # Of the probabilities: their sums, and those of their products with each other and with the places
        sums, along, square = np.zeros(classes), 0.0, 0.0
        products, cross = np.zeros((classes, classes)), np.zeros(classes)
        for block in _blocks(len(codes), classes):
            part, size = place[block], weight[block]
            probability = _softmax(slope * part + shifts)
            weighed = probability * size[:, None]
            mean = np.einsum("ij,ij->i", probability, part)
            sums += weighed.sum(axis=0)
            products += weighed.T @ probability
            along += float(size @ mean)
            centred = weighed * (part - mean[:, None])
            cross += centred.sum(axis=0)
            square += float((centred * part).sum())
        gradient = np.append(slope * (along - own), sums - counts) + precision * parameters
        curvature = np.empty((classes + 1, classes + 1))
        curvature[1:, 1:] = np.diag(sums) - products
        curvature[0, 1:] = curvature[1:, 0] = slope * cross
        curvature[0, 0] = slope**2 * square
        curvature += np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        step /= max(1.0, float(np.abs(step).max()))
        parameters = parameters - step
        if np.abs(step).max() < 1e-6:
            break
    return parameters, curvature


def _blocks(rows: int, classes: int) -> Iterator[slice]:
    """Rows that stay in cache, and so few that matrix products need no threads."""
    size = max(LEAST_ROWS, VALUES_AT_ONCE // classes**2)
    return (slice(start, start + size) for start in range(0, rows, size))


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    logits = logits - logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    return np.asarray(logits / logits.sum(axis=1, keepdims=True))
