"""What is asked of a tuning function: one object, validated once, whatever the rows are and wherever they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np

from surecut._inputs import check_missing
from surecut.averages import AVERAGES
from surecut.certificates.certificate import check_confidence
from surecut.certificates.weights import check_weights
from surecut.constraints import Constraint, ConstraintLike, parse_constraints
from surecut.core.rules import Objective
from surecut.metrics import Metric, get_metric
from surecut.tuning.shrinkage import check_shrinkage

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

PLAIN = {NoneType, str, int, float, bool}
"""Types of options by which a request is found again."""

MetricLike = str | Metric | Callable[..., Any]


class Options(TypedDict, total=False):
    """Options that do not change the type of a result, for the overloads of the tuning functions."""

    pos_label: Any
    constraint: ConstraintLike | Iterable[ConstraintLike] | None
    confidence: float | None
    prior: float | None
    shrinkage: float | str
    stable: bool
    missing: str
    random_state: int | None


class RowOptions(Options, total=False):
    """Those of `tune_threshold`."""

    sample_weight: ArrayLike | None
    weights: str | None


class LabelOptions(Options, total=False):
    """Those of `tune_thresholds`."""

    average: str
    sample_weight: ArrayLike | None
    zero_division: float
    labels: Iterable[Any] | None


class TableOptions(Options, total=False):
    """Those of `tune_frame`."""

    average: str
    weight: str | None
    weights: str | None


class RowsRequest(Protocol):
    """What sources of rows need to know of a request."""

    @property
    def metrics(self) -> Sequence[Metric]: ...
    @property
    def objectives(self) -> Sequence[Objective]: ...
    @property
    def missing(self) -> str: ...
    @property
    def weights(self) -> str | None: ...
    @property
    def pos_label(self) -> Any: ...


def check_options(
    confidence: float | None,
    weights: str | None,
    prior: float | None,
    stable: bool,
    missing: str,
    random_state: Any,
) -> None:
    """Raise where an option that every request has is none that we know."""
    check_missing(missing, "error", "drop")
    if confidence is not None:
        check_confidence(confidence)
    check_weights(weights)
    if weights is not None and confidence is None:
        raise ValueError("weights= says what weights mean to confidence=: give both, or leave it out")
    if prior is not None and not 0 < prior < 1:
        raise ValueError(f"prior= must fulfil 0 < prior < 1, got {prior}")
    if not isinstance(stable, (bool, np.bool_)):
        raise ValueError(f"stable= must be True or False, got {stable!r}")
    is_seed = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if random_state is not None and not (is_seed and random_state >= 0):
        raise ValueError(f"random_state= must be a whole number that is not negative, or None, got {random_state!r}")


@dataclass(frozen=True)
class Request:
    """A validated request. `Request.of` makes one from what a person writes.

    Attributes
    ----------
    metrics, is_list
        What cuts should be best for; and whether it was a list, which gives a dict.
    constraints
        What each cut must meet.
    average
        How many labels, or groups, are averaged; None where rows are of one label.
    confidence, weights
        The probability with which what is promised of a cut holds on new data, all of it together; and what weights
        mean.
    prior
        The class balance of the deployment, where it is not the sample's.
    shrinkage
        κ, or ``"auto"``.
    stable
        Whether cuts are for new rows, and not the best ones of the validation rows.
    zero_division
        What a row is worth in the samples average where the metric is 0/0.
    pos_label
        The label that counts as positive.
    missing
        ``"error"`` or ``"drop"``: what to do with rows without a label, a score or a weight.
    random_state
        The seed of resamples.
    """

    metrics: tuple[Metric, ...]
    is_list: bool = False
    constraints: tuple[Constraint, ...] = ()
    average: str | None = None
    confidence: float | None = None
    weights: str | None = None
    prior: float | None = None
    shrinkage: float | str = 0.0
    stable: bool = False
    zero_division: float = 0.0
    pos_label: Any = None
    missing: str = "error"
    random_state: Any = 0

    @classmethod
    def of(
        cls,
        metric: MetricLike | Sequence[MetricLike],
        *,
        constraint: ConstraintLike | Iterable[ConstraintLike] | None = None,
        average: str | None = None,
        confidence: float | None = None,
        weights: str | None = None,
        prior: float | None = None,
        shrinkage: float | str = 0.0,
        stable: bool = False,
        zero_division: float = 0.0,
        pos_label: Any = None,
        missing: str = "error",
        random_state: Any = 0,
    ) -> Request:
        """Validate what was asked for, by itself and together.

        >>> Request.of("f1", constraint="precision>=0.9").objectives[0].metric.name
        'f1'
        """
        options: Any = (
            metric,
            constraint,
            average,
            confidence,
            weights,
            prior,
            shrinkage,
            stable,
            zero_division,
            pos_label,
            missing,
            random_state,
        )
        return _of_plain(*options) if PLAIN.issuperset(map(type, options)) else cls._of(*options)

    @classmethod
    def _of(
        cls,
        metric: Any,
        constraint: Any,
        average: str | None,
        confidence: float | None,
        weights: str | None,
        prior: float | None,
        shrinkage: float | str,
        stable: bool,
        zero_division: float,
        pos_label: Any,
        missing: str,
        random_state: Any,
    ) -> Request:
        is_list = isinstance(metric, Sequence) and not isinstance(metric, str)
        asked: Any = metric if is_list else [metric]
        metrics = tuple(get_metric(one) for one in asked)
        if not metrics:
            raise ValueError("metric is an empty list: name at least one metric")
        if average is not None and average not in AVERAGES:
            raise ValueError(f"average= must be one of {', '.join(AVERAGES)}, got {average!r}")
        check_options(confidence, weights, prior, stable, missing, random_state)
        kappa = check_shrinkage(shrinkage)
        if isinstance(zero_division, str) or not math.isfinite(zero_division):
            raise ValueError(f"zero_division= must be a finite number, what a row is worth, got {zero_division!r}")
        constraints = parse_constraints(constraint)
        request = cls(
            metrics,
            is_list,
            constraints,
            average,
            confidence,
            weights,
            prior,
            kappa,
            bool(stable),
            float(zero_division),
            pos_label,
            missing,
            random_state,
        )
        request._check_together()
        return request

    @classmethod
    def of_table(
        cls,
        metric: MetricLike | Sequence[MetricLike],
        *,
        by: Sequence[Any] = (),
        average: str = "macro",
        **options: Any,
    ) -> Request:
        """The same for a long table, where a row is of one label, or group: the one that the columns `by` hold.

        >>> Request.of_table("f1", by=["tag"], average="micro").average, Request.of_table("f1").average
        ('micro', None)
        """
        if not by and average != "macro":
            raise ValueError(
                f"average={average!r} is for cuts of many labels: say with by= which column holds the label"
            )
        if average == "samples":
            raise ValueError(
                "average='samples' needs each row's labels together, and neither long tables nor tallies have them so: "
                "pass matrices to tune_thresholds, or use average='macro' or average='micro'"
            )
        return cls.of(metric, average=average if by else None, **options)

    def _check_together(self) -> None:
        """Raise where two options exclude each other, with the reason."""
        if self.shrinkage != 0:
            if self.constraints:
                raise ValueError(
                    "constraint= must be met by the labels themselves, not by smoothed ones: leave shrinkage=0"
                )
            if self.confidence is not None:
                raise ValueError(
                    "confidence= has nothing to promise of a cut of smoothed labels: leave shrinkage=0, or certify the "
                    "cut on held-out rows"
                )
            if self.prior is not None:
                raise ValueError(
                    "smoothed labels have the sample's own class balance: leave shrinkage=0, or leave out prior="
                )
            if self.average == "samples":
                raise ValueError("average='samples' cannot be tuned with shrinkage: leave shrinkage=0")
        if self.stable:
            if self.shrinkage != 0:
                raise ValueError("stable=True fits a model of the scores itself: leave shrinkage=0")
            if self.confidence is not None:
                raise ValueError(
                    "confidence= chooses its cuts from a pilot sample of the rows: leave out stable=True, or certify "
                    "the stable cut on held-out rows"
                )
            if self.average == "samples":
                raise ValueError(
                    "average='samples' cannot be tuned with stable=True: use average='macro' or average='micro'"
                )
        if self.average == "samples" and self.constraints:
            raise ValueError(
                "average='samples' cannot be tuned under a constraint=: use average='macro' or average='micro'"
            )
        if self.average is not None and self.prior is not None:
            raise ValueError("prior= is for one cut: labels have class balances of their own; tune each by itself")
        if self.average is not None and self.confidence is not None and self.average != "macro":
            raise ValueError(
                f"confidence= needs a cut of each label, and average={self.average!r} has one for all, whose rows "
                "depend on each other: use average='macro', or certify the cut on held-out rows with certify(cut, ...)"
            )
        if self.average is not None and self.confidence is not None and not self.constraints:
            raise ValueError(
                "confidence= of many labels is for constraints, which each label's cut keeps: add constraint=, or "
                "certify the thresholds on held-out rows with certify(cut, ...)"
            )

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """What each cut should be best for."""
        return tuple(Objective(metric, self.constraints, self.prior) for metric in self.metrics)

    def named(self, cuts: Sequence[Any]) -> Any:
        """The cut, or cuts of several metrics by name; in full where different metrics share a name."""
        if not self.is_list:
            return cuts[0]
        meant: dict[str, set[str]] = {}
        for metric in self.metrics:
            meant.setdefault(metric.name, set()).add(repr(metric))
        names = [repr(metric) if len(meant[metric.name]) > 1 else metric.name for metric in self.metrics]
        return dict(zip(names, cuts, strict=True))


@lru_cache(maxsize=256, typed=True)
def _of_plain(*options: Any) -> Request:
    """The request of plain options, kept because whoever tunes many small samples makes the same one each time."""
    return Request._of(*options)
