"""What `check` does between reading its files and printing: new rows beside those of a decision, of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surecut.certificates.drift import DriftReport, LabelDrift, check_drift, check_label_drift
from surecut.certificates.weights import require_whole
from surecut.certificates.zone_drift import BandsDrift
from surecut.cli import bands_tables, printing
from surecut.cli.bands import GroupsDrift, checked_groups, tally_of
from surecut.cli.commands import known_rows, label_tallies
from surecut.decisions import saving
from surecut.decisions.grouped_bands import GroupedBands
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.top_k import TopK

if TYPE_CHECKING:
    from surecut.cli.files import Arrays
    from surecut.sources.applying import Decision

Drift = DriftReport | LabelDrift | BandsDrift | GroupsDrift


def checked(
    decision: Decision,
    now: Arrays,
    then: Arrays | None,
    files: tuple[str, str],
    *,
    by: Sequence[str],
    unknown: str,
    weights: str | None,
    **options: Any,
) -> tuple[Drift, list[str]]:
    """What has changed since a decision was tuned, and what is to be said of the rows.

    `files` are the names of those with the rows now and then, `options` are those of `check_drift`.
    """
    for rows in (now, then):
        if rows is not None and rows.weights is not None:
            require_whole(rows.weights, weights)
    options["weights"] = weights
    assert not isinstance(decision, TopK)  # see require_watched
    if not isinstance(decision, (MultilabelCut, GroupedBands)):
        reference = None if then is None else tally_of(then)
        return check_drift(decision, tally=tally_of(now), reference=reference, **options), []
    notes: list[str] = []
    if unknown == "drop":
        now, notes = known_rows(now, decision, by, files[0])
        if then is not None:
            then, others = known_rows(then, decision, by, files[1])
            notes += others
    if isinstance(decision, GroupedBands):
        return checked_groups(now, then, decision, files, unknown=unknown, **options), notes
    hint = "; --unknown drop leaves them out"
    before = None if then is None else label_tallies(then, decision, files[1], hint)
    after = label_tallies(now, decision, files[0], hint)
    return check_label_drift(decision, after, reference=before, unknown=unknown, **options), notes


def require_watched(path: Path) -> None:
    """Raise where a decision is none that new rows are compared with."""
    if saving.is_saved_as(path, saving.TOP_K):
        raise ValueError(
            f"{path} holds {saving.TOP_K.content}, and check compares new rows with the counts of cuts and bands: "
            "certify the rule on held-out rows of then and on new ones, and compare what they promise"
        )


def is_alarm(found: Drift) -> bool:
    """Whether something has changed, or a condition of bands does not hold."""
    return found.moved or (isinstance(found, (BandsDrift, GroupsDrift)) and bool(found.broken))


def show(found: Drift) -> None:
    """Print it for people."""
    if isinstance(found, LabelDrift):
        printing.label_drift(found)
    elif isinstance(found, DriftReport):
        printing.drift(found)
    elif isinstance(found, BandsDrift):
        bands_tables.drift(found)
    else:
        bands_tables.group_drift(found)


def document(found: Drift) -> dict[str, Any]:
    """The same for programs."""
    if isinstance(found, LabelDrift):
        return printing.label_drift_document(found)
    if isinstance(found, DriftReport):
        return printing.drift_document(found)
    if isinstance(found, BandsDrift):
        return bands_tables.drift_document(found)
    return bands_tables.group_drift_document(found)
