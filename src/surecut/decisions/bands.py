"""Several thresholds on one score, and a zone between them for each action."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut._inputs import as_scores
from surecut._plurals import counted
from surecut.confusion import Confusion
from surecut.core.keys import reaches
from surecut.decisions import consistency, html, saving, sql, wording
from surecut.decisions.cut import positive_in
from surecut.decisions.stability import Stability
from surecut.metrics import Metric
from surecut.overlap import RowSample
from surecut.sample import Sample
from surecut.zones import Condition, find_quantity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Bands(saving.Saved):
    """Thresholds that divide a score into zones, tuned.

    Attributes
    ----------
    zones
        The names of the zones, from the lowest scores to the highest.
    thresholds
        Ascending, one fewer than zones. A score is in the highest zone whose threshold it reaches. +inf: nothing is
        above; −inf: nothing is below.
    confusion
        Shape (zones, 2): the validation rows in each zone, negatives first, as counts or as weights.
    intervals
        Shape (zones − 1, 2): with each threshold anywhere in its (lower, upper] validation rows stay in their zones.
    value
        What a row is worth on average, by `gains`; with a `metric`, the ratio. NaN where conditions alone were given.
    gains
        Shape (zones, 2): what a row in each zone is worth if it is negative, and if it is positive. None where
        conditions alone were given.
    metric
        The ratio that the highest and the lowest zone were tuned for; None where it is the sum of gains.
    conditions
        What the zones had to meet.
    confidence
        The probability with which all conditions hold on new data, at once. None where they hold on the validation rows
        only.
    failure_rates
        Where nothing is promised: how often each condition fails on other rows than those that bands were tuned on,
        estimated from the counts of the zones, in the order of `conditions`; last, how often any of them does. Empty
        where there are no conditions, or they are promised.
    prior
        The share of positives at which zones were evaluated: that of the validation rows, unless `prior_given`.
    stability
        How settled each threshold is, where bands are stable; otherwise empty.
    sample
        The validation rows: their number, whether they had weights, their fingerprint, which label is positive, …;
        each of these is also an attribute of the bands.

    Examples
    --------
    >>> from surecut import tune_bands
    >>> y_true, y_score = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> bands = tune_bands(y_true, y_score, upper="ppv>=0.9", lower="npv>=0.9")
    >>> bands.thresholds.tolist()
    [0.35, 0.55]
    >>> bands.predict([0.2, 0.45, 0.9]).tolist()
    ['no', 'ask', 'yes']
    """

    schema = saving.BANDS

    zones: tuple[str, ...]
    thresholds: NDArray[np.float64]
    confusion: NDArray[Any]
    intervals: NDArray[np.float64]
    value: float = math.nan
    gains: NDArray[np.float64] | None = None
    metric: Metric | None = None
    conditions: tuple[Condition, ...] = ()
    confidence: float | None = None
    failure_rates: tuple[float, ...] = ()
    prior: float = math.nan
    prior_given: bool = False
    stability: tuple[Stability | None, ...] = ()
    sample: Sample = field(default_factory=Sample)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of all validation rows in each zone (where a prior was given, of rows with that prior)."""
        weight = self._at_prior.sum(axis=1)
        return np.asarray(weight / weight.sum())

    @property
    def _at_prior(self) -> NDArray[np.float64]:
        counts = np.asarray(self.confusion, dtype=float)
        if not self.prior_given:
            return counts
        return np.asarray(counts / counts.sum(axis=0) * (1 - self.prior, self.prior))

    def value_of(self, zone: str, quantity: str) -> float:
        """A quantity of a zone on the validation rows, at the prior of the bands: NaN where it is 0/0.

        The quantities, such as ``"ppv"``, are those that conditions can bound.

        >>> from surecut import tune_bands
        >>> bands = tune_bands([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], gains={"ask": -1, "yes": (-1, 2)})
        >>> bands.value_of("yes", "ppv"), bands.value_of("no", "share")
        (0.75, 0.3333333333333333)
        """
        require_zone(zone, self.zones, "zone")
        (negatives, positives), (fp, tp) = self._at_prior.sum(axis=0), self._at_prior[self.zones.index(zone)]
        inside = Confusion(tp=float(tp), fp=float(fp), fn=float(positives - tp), tn=float(negatives - fp))
        return float(find_quantity(quantity).evaluate(inside))

    def may_hold_scores(self, zone: int) -> bool:
        """Whether any score is in a zone: none is between two thresholds that are equal, and none above +inf.

        >>> from surecut import tune_bands
        >>> bands = tune_bands([0, 1, 0, 1], [0.4, 0.3, 0.2, 0.1], upper="ppv>=0.9")
        >>> [bands.may_hold_scores(zone) for zone in range(3)]
        [True, False, False]
        """
        ends = [-math.inf, *self.thresholds.tolist(), math.inf]
        return bool(ends[zone] < ends[zone + 1])

    @property
    def rows(self) -> int:
        """The number of validation rows."""
        return self.sample.rows

    @property
    def weighted(self) -> bool:
        """Whether the validation rows had weights."""
        return self.sample.weighted

    @property
    def fingerprint(self) -> str:
        """A name for the validation rows that does not depend on their order; empty where an engine counted them."""
        return self.sample.fingerprint

    @property
    def out_of_fold(self) -> bool:
        """Whether the scores were pooled from folds, each with a model of its own: such rows can certify nothing."""
        return self.sample.out_of_fold

    @property
    def pos_label(self) -> Any:
        """The label that counts as positive; None where it is 1 or True."""
        return self.sample.pos_label

    @property
    def seen(self) -> tuple[RowSample, ...]:
        """Some of the validation rows, by which `certify` recognises them."""
        return self.sample.seen

    def with_sample(self, **facts: Any) -> Bands:
        """The same bands with other facts about their validation rows."""
        return replace(self, sample=replace(self.sample, **facts))

    def positive_in(self, y_true: Any, pos_label: Any = None) -> Any:
        """Which label of new rows is positive: the one that is named, else that of the validation rows."""
        return positive_in(self, y_true, pos_label)

    def predict(self, scores: ArrayLike, *, as_numbers: bool = False, missing: str = "error") -> NDArray[Any]:
        """The zone of each score: its name, or its position (0 is the lowest zone) with ``as_numbers=True``.

        A missing score (NaN, None, NA) is an error, or goes to the zone that `missing` names.

        >>> from surecut import tune_bands
        >>> bands = tune_bands([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], gains={"no": (0, -5), "ask": -1, "yes": (-5, 1)})
        >>> bands.predict([0.05, 0.375, 0.9]).tolist(), bands.predict([0.05, 0.9], as_numbers=True).tolist()
        (['no', 'ask', 'yes'], [0, 2])
        """
        column = as_scores(scores, name="scores", may_be_empty=True)
        absent = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
        numbers = np.zeros(len(column), dtype=np.int64)
        for threshold in self.thresholds.tolist():
            numbers += reaches(column, threshold)
        if missing != "error":
            require_zone(missing, self.zones, "missing", "error")
            numbers[absent] = self.zones.index(missing)
        elif absent.any():
            raise ValueError(
                f"scores has {counted(int(absent.sum()), 'missing value')}: drop or fill these rows, or name "
                f"the zone that they go to, such as missing={self.zones[len(self.zones) // 2]!r}"
            )
        return numbers if as_numbers else np.array(self.zones, dtype=object)[numbers].astype(str)

    def to_sql(self, column: str, dialect: str = "ansi", *, missing: str | None = None) -> str:
        """The bands as one SQL expression: the name of the row's zone.

        `dialect` is one of those of `Cut.to_sql`. Rows whose score is null or NaN are null, or in the zone that
        `missing` names.

        >>> from surecut import tune_bands
        >>> bands = tune_bands([0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75], gains={"yes": (-1, 1)}, zones=("no", "yes"))
        >>> print(bands.to_sql("p", "sqlite"))
        CASE WHEN ("p" IS NOT NULL AND CAST("p" AS REAL) >= 6.25e-01) THEN 'yes' WHEN ("p" IS NOT NULL) THEN 'no' END
        """
        require_zone(missing, self.zones, "missing")
        known = sql.find_dialect(dialect)
        return sql.zone_case(known.name(column), self.thresholds.tolist(), self.zones, missing, known)

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        tuning, confidence, gains = (document[name] for name in ("tuning", "confidence", "gains"))
        zones = tuple(map(saving.text_from_json, saving.list_from_json(document["zones"])))
        return cls(
            zones=zones,
            thresholds=_numbers(document["thresholds"]),
            confusion=_table(document["confusion"], saving.cell_from_json),
            intervals=np.array(
                [saving.interval_from_json(one) for one in saving.list_from_json(document["intervals"])]
            ),
            value=saving.number_from_json(document["value"]),
            gains=None if gains is None else _table(gains, saving.finite_from_json).astype(float),
            metric=None if document["metric"] is None else saving.metric_from_dict(document["metric"]),
            conditions=tuple(_condition(one, zones) for one in saving.list_from_json(document["conditions"])),
            confidence=None if confidence is None else saving.share_from_json(confidence),
            failure_rates=tuple(map(saving.share_from_json, saving.list_from_json(document["failure_rates"]))),
            prior=saving.share_from_json(document["prior"]),
            prior_given=saving.flag_from_json(document["prior_given"]),
            stability=tuple(
                None if one is None else Stability.from_dict(one)
                for one in saving.list_from_json(document["stability"])
            ),
            sample=saving.sample_from_json(tuning, document["pos_label"]),
        )

    def _fields(self) -> dict[str, Any]:
        number = saving.number_to_json
        return {
            "zones": list(self.zones),
            "thresholds": [number(one) for one in self.thresholds.tolist()],
            "intervals": [[number(end) for end in one] for one in self.intervals.tolist()],
            "pos_label": saving.positive_to_json(self.pos_label),
            "value": number(self.value),
            "gains": None if self.gains is None else self.gains.tolist(),
            "metric": None if self.metric is None else saving.metric_to_dict(self.metric, self.prior),
            "conditions": [
                {"zone": self.zones[one.zone], "quantity": one.quantity.name, "sense": one.sense, "level": one.level}
                for one in self.conditions
            ],
            "confidence": self.confidence,
            "failure_rates": list(self.failure_rates),
            "prior": self.prior,
            "prior_given": self.prior_given,
            "stability": [None if one is None else one.to_dict() for one in self.stability],
            "confusion": self.confusion.tolist(),
            "tuning": saving.sample_to_json(self.sample),
        }

    def _check(self) -> None:
        """Raise where the parts of the bands contradict each other."""
        count = len(self.zones)
        if count < 2 or len(set(self.zones)) < count or not all(self.zones):
            raise ValueError(f"expected two zones or more, each with a name of its own, got {listed_zones(self.zones)}")
        if self.thresholds.shape != (count - 1,) or self.intervals.shape != (count - 1, 2):
            raise ValueError(f"{count} zones have {count - 1} thresholds, each with an interval")
        if self.confusion.shape != (count, 2):
            raise ValueError(f"expected the rows of {count} zones by class")
        if self.gains is not None and self.gains.shape != (count, 2):
            raise ValueError(f"expected the gains of {count} zones by class")
        if "error" in self.zones:
            raise ValueError("a zone cannot be called 'error'")
        lowest, used = float(self.confusion[0].sum()), self.confusion.sum(axis=0)
        if self.thresholds[0] == -math.inf and lowest > 0:
            raise ValueError("no score is below its lowest threshold, and rows are in its lowest zone")
        if self.prior_given and not (0 < self.prior < 1 and used.all()):
            raise ValueError("a prior that was given is between 0 and 1, and needs rows of both classes")
        if self.confidence is not None and (not 0 < self.confidence < 1 or self.failure_rates):
            raise ValueError("a confidence is between 0 and 1, and with it there are no failure rates")
        if not (self.thresholds[:-1] <= self.thresholds[1:]).all():
            raise ValueError(f"thresholds must ascend, got {self.thresholds.tolist()}")
        inside = self.thresholds > -math.inf
        consistency.require_thresholds(self.thresholds[inside].tolist(), self.intervals[inside].tolist())
        total = float(self.confusion.sum())
        if not 0 < total < math.inf:
            raise ValueError("the number of rows in its zones must be positive and finite")
        if not self.weighted and total != self.rows:
            raise ValueError(f"its zones have {total:,.0f} rows, and it was tuned on {self.rows:,}")
        if self.failure_rates and len(self.failure_rates) != len(self.conditions) + 1:
            raise ValueError("expected a failure rate for each condition, and one for all of them")
        if self.stability and len(self.stability) != count - 1:
            raise ValueError(f"expected the stability of {count - 1} thresholds")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bands):
            return NotImplemented
        mine, theirs = (one.with_sample(seen=())._fields() for one in (self, other))  # as samples are compared
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __str__(self) -> str:
        return wording.bands_text(self)

    def __repr__(self) -> str:
        return f"<Bands: {self}>"

    def _repr_html_(self) -> str:
        return html.bands_html(self)


def listed_zones(zones: Sequence[str]) -> str:
    """Zones for messages."""
    return ", ".join(map(repr, zones))


def require_zone(name: str | None, zones: Sequence[str], option: str, *others: str) -> None:
    """Raise unless an option that says where rows go names a zone, or nothing."""
    if name is not None and name not in zones:
        also = "".join(f"{other!r} or " for other in others)
        raise ValueError(f"{option}= must be {also}one of the zones {listed_zones(zones)}, got {name!r}")


def _numbers(values: Any) -> NDArray[np.float64]:
    found = saving.numbers_from_json(values)
    if np.isnan(found).any():
        raise ValueError("one of its thresholds is NaN")
    return found


def _table(rows: Any, read: Any) -> NDArray[Any]:
    return saving.matrix_from_json(rows, read, 2, "expected two numbers for each zone, one of each class")


def _condition(document: Any, zones: Sequence[str]) -> Condition:
    document = saving.object_from_json(document)
    zone, sense = saving.text_from_json(document["zone"]), saving.text_from_json(document["sense"])
    if zone not in zones:
        raise ValueError(f"it has a condition on {zone!r}, which is none of its zones")
    quantity = find_quantity(saving.text_from_json(document["quantity"]))
    return Condition(quantity, sense, saving.finite_from_json(document["level"]), zones.index(zone))
