"""Calibration of many labels' scores on the validation rows: a curve per label, shrunk toward that of all labels.

A curve is sigmoid or beta, whichever family has the larger evidence; each label's is shrunk toward the curve of all
as far as the labels agree (empirical Bayes). Where the rows are evidence against the curves, these are corrected in
blocks of scores (`corrections`): all labels together, by the values of their curves, then each label by its scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from surecut.calibration.corrections import Atoms, Correction, corrections
from surecut.core.keys import scores_of_keys
from surecut.decisions.score_map import ScoreMap, features, sigmoid
from surecut.decisions.score_map import margin as margin_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.core.entries import Entries

LEAST_POSITIVES = 8
"""The own rows of a label with fewer are no evidence against its curve."""

NEGLIGIBLE = 0.01
"""Corrections that are less likely than this are left out."""

LABELS_AT_ONCE = 2048
"""Labels whose curves are fitted together; what they have in common is learnt from no more than these."""

FAMILIES = ("sigmoid", "beta")
"""Platt's curve, and the beta calibration, whose two ends have slopes of their own."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The scores of many labels in few groups each: finely at the top, where the cuts are, coarsely below.

    Attributes
    ----------
    starts
        Where each label's groups begin; one more than there are labels.
    scores
        A score from the middle of each group.
    negative, positive
        Weight of each class in it.
    lowest, highest
        The extreme scores of all.
    """

    starts: NDArray[np.int64]
    scores: NDArray[np.float64]
    negative: NDArray[np.float64]
    positive: NDArray[np.float64]
    lowest: float
    highest: float

    @classmethod
    def joined(cls, parts: list[Groups]) -> Groups:
        """The groups of several runs of labels as those of one."""
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(
            starts=np.concatenate(([0], np.cumsum(sizes))),
            scores=np.concatenate([part.scores for part in parts]),
            negative=np.concatenate([part.negative for part in parts]),
            positive=np.concatenate([part.positive for part in parts]),
            lowest=min(part.lowest for part in parts),
            highest=max(part.highest for part in parts),
        )

    def padded(self, labels: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Some labels' values as a matrix, one row per label, zeros behind the shorter ones."""
        sizes = self.starts[labels + 1] - self.starts[labels]
        position = np.arange(max(1, int(sizes.max(initial=0))))
        inside = position < sizes[:, None]
        padded = np.zeros(inside.shape)
        padded[inside] = values[(self.starts[labels][:, None] + position)[inside]]
        return padded


def grouped(entries: Entries) -> Groups:
    """Scores in few groups per label. Rows of one score are not divided: a group begins where a score does."""
    if not len(entries):
        none = np.zeros(0)
        return Groups(np.zeros_like(entries.starts), none, none, none, np.inf, -np.inf)
    above = np.concatenate(([0], np.cumsum(entries.rows.sum(axis=1))))  # rows before each score
    sizes = np.diff(above[entries.starts])
    edges = [
        (above[entries.starts[:-1]][sizes == size][:, None] + group_edges(size)).ravel()
        for size in np.unique(sizes[sizes > 0]).tolist()
    ]
    first = np.unique(np.searchsorted(above, np.concatenate(edges), side="right") - 1)
    middle = (above[first] + above[np.append(first[1:], len(entries))]) // 2
    by_class = np.add.reduceat(entries.weight.astype(float), first, axis=0)
    return Groups(
        starts=np.searchsorted(first, entries.starts),
        scores=scores_of_keys(entries.low[np.searchsorted(above, middle, side="right") - 1]),
        negative=by_class[:, 0],
        positive=by_class[:, 1],
        lowest=float(scores_of_keys(entries.low.min(keepdims=True))[0]),
        highest=float(scores_of_keys(entries.low.max(keepdims=True))[0]),
    )


def group_edges(entries: int) -> NDArray[np.int64]:
    """Where groups of so many sorted entries begin: singles at the top, then ever larger groups.

    >>> group_edges(5)
    array([0, 1, 2, 3, 4])
    >>> len(group_edges(100_000))
    215
    """
    singles = np.arange(min(entries, 64))
    if entries <= 64:
        return singles
    steps = int(np.ceil(np.log(entries / 64) / np.log(1.05)))
    return np.unique(np.concatenate((singles, (64 * 1.05 ** np.arange(steps)).astype(np.int64))))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of labels from their scores: a curve per label, in one of two families, and what corrects it.

    The scores of all labels are first put on one logit scale; a label's curve is linear in that logit (sigmoid), or
    in the logarithms of the two probabilities (beta). Where the rows are evidence against the curves, these are
    corrected in blocks: first all labels at once, by the values of their curves, then each label by its scores.
    """

    family: str
    is_probability: bool
    limits: tuple[float, float]
    slope: float
    intercept: float
    coefficients: NDArray[np.float64]
    of_all: Correction | None = None
    of_label: dict[int, Correction] = field(default_factory=dict)
    rejected_together: float = 0.0
    rejected_alone: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    """How likely it is that the curves, or a label's own curve, need their corrections."""

    @property
    def rejected(self) -> NDArray[np.float64]:
        """How likely it is of each label that its curve is wrong."""
        return 1 - (1 - self.rejected_together) * (1 - self.rejected_alone)

    def __str__(self) -> str:
        """The family, and which corrections are more likely than not."""
        labels, alone = len(self.rejected_alone), int((self.rejected_alone > 0.5).sum())
        told = ["all labels together"] if self.rejected_together > 0.5 else []
        told += [f"{alone} of {labels} labels" if labels > 1 else "its rows reject it"] if alone else []
        joint = "corrected: " if labels == 1 else "corrected for "
        return self.family + (f", {joint}{' and for '.join(told)}" if told else "")

    def probability(self, scores: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        """η̂ of scores, each of which belongs to a label; labels in ascending order."""
        eta = self.curve(scores, label)
        if self.of_all is not None:
            eta = self.of_all(eta, eta)
        for one in np.unique(label).tolist():
            if one in self.of_label:
                part = slice(*np.searchsorted(label, [one, one + 1]))
                eta[part] = self.of_label[one](scores[part], eta[part])
        return eta

    def curve(self, scores: NDArray[np.float64], label: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same without corrections."""
        features = _features(self.logit(scores), self.family)
        return sigmoid(np.einsum("nd,nd->n", features, self.coefficients[label]))

    @property
    def score_map(self) -> ScoreMap:
        """The curves, without corrections, as rules save them."""
        return ScoreMap(self.family, self.is_probability, self.limits, self.coefficients, self.slope, self.intercept)

    def logit(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores on the logit scale that the labels share."""
        return self.slope * margin_of(scores, self.is_probability, self.limits) + self.intercept


def calibrate(groups: Groups) -> Calibration:
    """The calibration under which the validation rows are most likely, in the family with the larger evidence."""
    if not len(groups.scores):  # a sparse matrix without a score: there is nothing to smooth
        labels = len(groups.starts) - 1
        line = np.tile([1.0, 0.0], (labels, 1))
        return Calibration(FAMILIES[0], False, (0.0, 0.0), 1.0, 0.0, line, rejected_alone=np.zeros(labels))
    is_probability = groups.lowest >= 0 and groups.highest <= 1
    limits = _limits(groups, is_probability)
    margin = margin_of(groups.scores, is_probability, limits)
    weight = groups.negative + groups.positive
    centre = np.average(margin, weights=weight)
    scale = np.sqrt(np.average((margin - centre) ** 2, weights=weight)) or 1.0
    pooled = np.stack((((margin - centre) / scale), np.ones_like(margin)), axis=-1)[None]
    ((slope, intercept),), _ = _fit(
        pooled, weight[None], groups.positive[None], np.array([1.0, 0.0]), np.diag([0.01, 0.01])
    )
    slope, intercept = float(slope / scale), float(intercept - slope * centre / scale)

    logit = slope * margin + intercept
    labels = len(groups.starts) - 1
    some = np.unique(np.linspace(0, labels - 1, min(labels, LABELS_AT_ONCE)).astype(np.int64))
    models = [_hierarchical(groups, some, logit, family) for family in FAMILIES]
    chosen = max(models, key=lambda model: model.evidence)
    coefficients = np.concatenate(
        [
            _fit(*_padded(groups, part, logit, chosen.family), chosen.mean, chosen.precision)[0]
            for part in np.array_split(np.arange(labels), max(1, -(-labels // LABELS_AT_ONCE)))
        ]
    )
    return _corrected(groups, Calibration(chosen.family, is_probability, limits, slope, intercept, coefficients))


def _corrected(groups: Groups, calibration: Calibration) -> Calibration:
    """The calibration with what its own rows have against it: all labels' rows at once, then each label's."""
    labels = len(groups.starts) - 1
    label = np.repeat(np.arange(labels), np.diff(groups.starts))
    eta = calibration.curve(groups.scores, label)
    if labels > 1 and len(eta):
        order = np.argsort(-eta, kind="stable")
        ordered = eta[order]
        (of_all,), evidence = corrections([Atoms.of(ordered, groups.negative[order], groups.positive[order], ordered)])
        together = float(_share_of_corrected(evidence)[0])
        of_all = of_all.weighed(together)
        calibration = replace(calibration, of_all=of_all, rejected_together=together)
        eta = of_all(eta, eta)
    rarer = np.minimum(*(np.bincount(label, w, minlength=labels) for w in (groups.positive, groups.negative)))
    enough = np.flatnonzero(rarer >= LEAST_POSITIVES)
    parts = [slice(groups.starts[one], groups.starts[one + 1]) for one in enough]
    found, evidence = corrections(
        [Atoms.of(groups.scores[part], groups.negative[part], groups.positive[part], eta[part]) for part in parts]
    )
    alone = np.zeros(labels)
    alone[enough] = _share_of_corrected(evidence)
    of_label = {
        one: correction.weighed(alone[one])
        for one, correction in zip(enough.tolist(), found, strict=True)
        if alone[one] > NEGLIGIBLE
    }
    return replace(calibration, of_label=of_label, rejected_alone=alone)


def _share_of_corrected(evidence: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely it is of each label that its curve needs correction, given how many labels' curves do."""
    share = 0.5
    weights = np.full(len(evidence), share)
    for _ in range(50):
        weights = sigmoid(evidence + np.log(share / (1 - share)))
        share = (weights.sum() + 1) / (len(weights) + 2)
    return weights


# --- The curves -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Hierarchy:
    """What the labels' curves have in common: coefficients are normal around a mean."""

    family: str
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]
    evidence: float


def _hierarchical(groups: Groups, labels: NDArray[np.int64], logit: NDArray[np.float64], family: str) -> _Hierarchy:
    """Mean and covariance of the labels' coefficients by expectation-maximisation, in Laplace's approximation."""
    features, weight, positive = _padded(groups, labels, logit, family)
    size = features.shape[-1]
    mean = np.append(np.ones(size - 1), 0.0)
    ((mean,), _) = _fit(
        features.reshape(1, -1, size), weight.reshape(1, -1), positive.reshape(1, -1), mean, 0.1 * np.eye(size)
    )
    covariance = np.diag(np.append(np.full(size - 1, 0.25), 1.0))
    expected = np.diag(np.append(np.full(size - 1, 0.05), 0.1))
    """Worth two labels, so that the covariance of few labels neither vanishes nor runs away."""
    coefficients = np.tile(mean, (len(labels), 1))
    for _ in range(20):
        precision = np.linalg.inv(covariance)
        coefficients, curvature = _fit(features, weight, positive, mean, precision, coefficients)
        mean = coefficients.mean(axis=0)
        distance = coefficients - mean
        scatter = distance.T @ distance + np.linalg.inv(curvature).sum(axis=0)
        new = (scatter + 2 * expected) / (len(labels) + 2)
        moved, covariance = np.abs(new - covariance).max(), new
        if moved < 0.01 * np.abs(new).max():
            break
    precision = np.linalg.inv(covariance)
    curve = np.einsum("lgd,ld->lg", features, coefficients)
    likelihood = (positive * curve - weight * np.logaddexp(0, curve)).sum()
    prior = 0.5 * (
        len(labels) * np.linalg.slogdet(precision)[1] - np.einsum("li,ij,lj->", distance, precision, distance)
    )
    evidence = likelihood + prior - 0.5 * np.linalg.slogdet(curvature)[1].sum()
    return _Hierarchy(family, mean, precision, float(evidence))


def _fit(
    features: NDArray[np.float64],
    weight: NDArray[np.float64],
    positive: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logistic regressions of many labels at once, coefficients drawn toward `mean`; and their curvatures."""
    coefficients = np.tile(mean, (len(features), 1)) if start is None else start
    for _ in range(50):
        probability = sigmoid((features @ coefficients[..., None])[..., 0])
        gradient = ((weight * probability - positive)[:, None] @ features)[:, 0]
        gradient += (coefficients - mean) @ precision
        spread = weight * np.maximum(probability * (1 - probability), 1e-12)
        curvature = (features * spread[..., None]).transpose(0, 2, 1) @ features + precision
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        step /= np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True) / 2)  # no leap where the curve is flat
        coefficients = coefficients - step
        if np.abs(step).max() < 1e-6:
            break
    return coefficients, curvature


def _padded(
    groups: Groups, labels: NDArray[np.int64], logit: NDArray[np.float64], family: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    features = _features(groups.padded(labels, logit), family)
    positive = groups.padded(labels, groups.positive)
    return features, groups.padded(labels, groups.negative) + positive, positive


def _features(logit: NDArray[np.float64], family: str) -> NDArray[np.float64]:
    return np.stack(np.broadcast_arrays(*features(logit, family)), axis=-1)


def _limits(groups: Groups, is_probability: bool) -> tuple[float, float]:
    """Within which scores a curve follows: outliers, and probabilities of 0 and 1, must not bend it."""
    scores = groups.scores
    if is_probability:
        inner = scores[(scores > 0) & (scores < 1)]
        distance = 0.5 * float(np.minimum(inner, 1 - inner).min(initial=0.5))
        return max(distance, 1e-15), min(1 - distance, 1 - 1e-15)
    finite = np.sort(scores[np.isfinite(scores)])
    if not len(finite):
        return 0.0, 0.0
    lower, upper = finite[[len(finite) // 100, -1 - len(finite) // 100]].tolist()
    reach = min(5 * (upper - lower), np.finfo(float).max / 4) if upper / 2 - lower / 2 < 1e307 else 0.0
    return max(float(finite[0]), lower - reach), min(float(finite[-1]), upper + reach)
