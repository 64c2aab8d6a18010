"""Bands of several groups of rows, which have the same zones and thresholds of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from surecut._inputs import as_scores, in_brief, require_same_length
from surecut._labels import label_parts
from surecut._plurals import counted
from surecut.decisions import html, saving, sql, wording
from surecut.decisions.bands import Bands, require_zone
from surecut.decisions.cut import positive_in

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class GroupedBands(saving.Saved):
    """The bands of each group of rows: of each language, site or model, in which scores mean something else.

    Attributes
    ----------
    groups
        The values of the column that groups rows; tuples where several columns do.
    bands
        The bands of each group, in this order. They have the same zones.

    Examples
    --------
    >>> import pandas
    >>> from surecut import tune_bands_frame
    >>> frame = pandas.DataFrame(
    ...     {"site": list("aaaabbbb"), "y": [0, 0, 1, 1] * 2, "p": [0.125, 0.25, 0.5, 0.75, 0.25, 0.5, 0.75, 1.0]}
    ... )
    >>> bands = tune_bands_frame(frame, label="y", score="p", by="site", gains={"no": 0, "ask": -0.5, "yes": (-2, 1)})
    >>> bands["a"].thresholds.tolist(), bands.predict([0.5, 0.5], ["a", "b"]).tolist()
    ([0.375, 0.375], ['yes', 'no'])
    """

    schema = saving.GROUPED_BANDS

    groups: tuple[Any, ...]
    bands: tuple[Bands, ...]

    @property
    def zones(self) -> tuple[str, ...]:
        """The names of the zones, from the lowest scores to the highest."""
        return self.bands[0].zones

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """Shape (groups, zones − 1): ascending in each group."""
        return np.array([one.thresholds for one in self.bands])

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of all validation rows in each zone."""
        counts = np.sum([one.confusion for one in self.bands], axis=(0, 2), dtype=float)
        return np.asarray(counts / counts.sum())

    @property
    def confidence(self) -> float | None:
        """The probability with which the conditions of all groups hold on new data together; None if only on these."""
        each = self.bands[0].confidence
        return None if each is None else max(0.0, float(f"{1 - len(self) * (1 - each):.12g}"))

    def each_confidence(self, confidence: float) -> float:
        """The confidence of what is promised of one group, where that is promised of all groups at once.

        >>> bands = GroupedBands(("a", "b"), ())
        >>> round(bands.each_confidence(0.9), 12)
        0.95
        """
        return 1 - (1 - confidence) / len(self)

    def numbers(self, groups: Sequence[Any]) -> NDArray[np.int64]:
        """Which group each row is of, by its position; −1 where it has no bands."""
        return np.array([self._position.get(key, -1) for key in _as_keys(groups)], dtype=np.int64)

    @property
    def weighted(self) -> bool:
        """Whether the validation rows had weights."""
        return self.bands[0].weighted

    @property
    def pos_label(self) -> Any:
        """The label that counts as positive; None where it is 1 or True."""
        return self.bands[0].pos_label

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __contains__(self, group: object) -> bool:
        return group in self._position

    def __getitem__(self, group: Any) -> Bands:
        """The bands of one group."""
        try:
            return self.bands[self._position[group]]
        except KeyError:
            known = ", ".join(map(repr, self.groups[:5])) + (", …" if len(self) > 5 else "")
            raise KeyError(f"{group!r} is not among the {counted(len(self), 'group')}: {known}") from None

    def positive_in(self, y_true: Any, pos_label: Any = None) -> Any:
        """Which label of new rows is positive: the one that is named, else that of the validation rows."""
        return positive_in(self, y_true, pos_label)

    def predict(
        self,
        scores: ArrayLike,
        groups: Sequence[Any],
        *,
        as_numbers: bool = False,
        missing: str = "error",
        unknown: str = "error",
    ) -> NDArray[Any]:
        """The zone of each score by the thresholds of its group; rows of other groups go to the zone `unknown`.

        `as_numbers` and `missing` are those of `Bands.predict`.
        """
        column, number = as_scores(scores, name="scores", may_be_empty=True), self.numbers(groups)
        require_same_length(scores=column, groups=number)
        if unknown != "error":
            require_zone(unknown, self.zones, "unknown", "error")
        elif (number < 0).any():
            such = in_brief(repr(_as_keys(groups)[int((number < 0).argmax())]))
            raise ValueError(
                f"{int((number < 0).sum()):,} rows are of a group that has no bands, such as {such}: tune on rows of "
                f"these groups, too, or name the zone that they go to, such as unknown={self._between!r}"
            )
        zones = np.zeros(len(column), dtype=np.int64)
        for position, bands in enumerate(self.bands):
            of_group = number == position
            if of_group.any():
                zones[of_group] = bands.predict(column[of_group], as_numbers=True, missing=missing)
        if unknown != "error":
            zones[number < 0] = self.zones.index(unknown)
        return zones if as_numbers else np.array(self.zones, dtype=object)[zones].astype(str)

    def to_sql(
        self,
        column: str,
        *,
        by: str | Sequence[str],
        dialect: str = "ansi",
        missing: str | None = None,
        unknown: str | None = None,
    ) -> str:
        """The bands as one SQL expression: the name of the row's zone.

        Rows without a score are null, or in the zone `missing`; rows of other groups are null, or in the zone
        `unknown`. `by` names the columns of the groups, `dialect` is one of those of `Cut.to_sql`.
        """
        require_zone(missing, self.zones, "missing")
        require_zone(unknown, self.zones, "unknown")
        known, columns = sql.find_dialect(dialect), (by,) if isinstance(by, str) else tuple(by)
        pairs = zip(self.group_parts(len(columns)), self.thresholds.tolist(), strict=True)
        names = [known.name(one) for one in columns]
        return sql.zone_case_by(known.name(column), names, pairs, self.zones, missing, unknown, known)

    def group_parts(self, columns: int) -> list[tuple[Any, ...]]:
        """Each group as the values of so many columns."""
        return label_parts(self.groups, columns, "the bands")

    @classmethod
    def _from_fields(cls, document: Any) -> Self:
        return cls(
            groups=tuple(saving.label_from_json(group) for group in saving.list_from_json(document["groups"])),
            bands=tuple(Bands._from_fields(one) for one in saving.list_from_json(document["bands"])),
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "groups": [saving.label_to_json(group) for group in self.groups],
            "bands": [one._fields() for one in self.bands],
        }

    def _check(self) -> None:
        """Raise where the parts of the bands contradict each other."""
        if not self.groups or len(self.groups) != len(self.bands):
            raise ValueError("expected bands for each group, and at least one group")
        if len(set(self.groups)) < len(self.groups):
            raise ValueError("a group occurs twice")
        for one in self.bands:
            one._check()
            if one.zones != self.zones:
                raise ValueError("its groups have different zones")
            first = self.bands[0]
            if one.confidence != first.confidence or one.conditions != first.conditions:
                raise ValueError("its groups have different conditions or confidences")
            if one.pos_label != first.pos_label or one.weighted != first.weighted:
                raise ValueError("its groups have different positive labels, or weights in some of them only")
        if len({len(group) if isinstance(group, tuple) else 0 for group in self.groups}) > 1:
            raise ValueError("its groups come from different numbers of columns")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupedBands):
            return NotImplemented
        return self.groups == other.groups and self.bands == other.bands

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __str__(self) -> str:
        return wording.grouped_bands_text(self)

    def __repr__(self) -> str:
        return f"<GroupedBands: {self}>"

    def _repr_html_(self) -> str:
        return html.grouped_bands_html(self)

    @property
    def _between(self) -> str:
        return self.zones[len(self.zones) // 2]

    @cached_property
    def _position(self) -> dict[Any, int]:
        return {group: i for i, group in enumerate(self.groups)}


def _as_keys(groups: Any) -> list[Any]:
    """The group of each row as plain values: of a column, or of tuples."""
    values = groups.to_list() if hasattr(groups, "to_list") else groups
    values = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [tuple(value) if isinstance(value, list) else value for value in values]
