"""What is averaged: values of labels, of rows, of all counts together; and the certificate of an average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from surecut._plurals import counted
from surecut.averages import undefined_labels
from surecut.certificates.certificate import ONE_MODEL, Certificate
from surecut.confusion import Confusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from surecut.certificates.cells import ClusterCells
    from surecut.decisions.multilabel import MultilabelCut


def row_values(cut: MultilabelCut, cells: ClusterCells) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.asarray(cut.metric.evaluate(Confusion(*cells.pooled().T)), dtype=float)
    return np.where(np.isnan(values), cut.zero_division, values)


def average_certificate(
    cut: MultilabelCut,
    value: float,
    limits: tuple[float, float, float | None],
    rows: int,
    method: str,
    confidence: float,
    assumptions: Sequence[str],
    confusion: Confusion | None = None,
) -> Certificate:
    said = [*assumptions, ONE_MODEL]
    unknown = len(undefined_labels(cut.metric, cut.confusion if confusion is None else confusion))
    if unknown and cut.average == "macro":
        said.append(
            f"of {counted(unknown, 'label')} these rows lack a class: nothing is known there, and the worst is assumed"
        )
    return Certificate(
        lower=limits[0],
        upper=limits[1],
        regret_bound=limits[2],
        value=value,
        metric=f"{cut.average} {cut.metric.name}",
        threshold=None if cut.average == "macro" else float(cut.thresholds[0]),
        method=method,
        confidence=confidence,
        rows=rows,
        exact=False,
        assumptions=tuple(said),
    )
