"""What `certify` does between reading its file and printing: the certificate of a decision of each kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from surecut.certificates.certificate import Certificate
from surecut.certificates.certifying import certify
from surecut.certificates.zone_certificate import BandsCertificate, GroupsCertificate
from surecut.cli import bands_tables, printing
from surecut.cli.bands import groups_of_rows
from surecut.cli.commands import row_groups, row_labels, tally_to_certify
from surecut.decisions.bands import Bands
from surecut.decisions.cut import Cut
from surecut.decisions.grouped_bands import GroupedBands
from surecut.decisions.multilabel import MultilabelCut

if TYPE_CHECKING:
    from surecut.cli.files import Rows
    from surecut.sources.applying import Decision

Promise = Certificate | BandsCertificate | GroupsCertificate


def certified(
    decision: Decision, read: Rows, *, file: str, labels: int, has_clusters: bool, method: str, **options: Any
) -> Promise:
    """The certificate of a decision from the rows of a file.

    They are grouped by so many columns of `labels`, and then by one of clusters, if there is one; `options` are those
    of `certify`.
    """
    is_weighted = "weight" in read.columns
    if method == "uniform" and not read.groups and not is_weighted and isinstance(decision, (Cut, Bands)):
        tally = tally_to_certify(read, decision)
        if tally is not None:
            return certify(decision, tally=tally, method=method, **options)
    rows = read.arrays()
    options |= {"method": method, "groups": row_groups(rows) if has_clusters else None}
    if isinstance(decision, GroupedBands):
        by = groups_of_rows(rows, decision, file)
        return certify(decision, rows.is_positive, rows.scores, by=by, sample_weight=rows.weights, **options)
    by = row_labels(rows, decision, labels, file=file) if isinstance(decision, MultilabelCut) else None
    return certify(decision, rows.is_positive, rows.scores, by=by, sample_weight=rows.weights, **options)


def show(found: Promise) -> None:
    """Print it for people."""
    if isinstance(found, BandsCertificate):
        bands_tables.certificate(found)
    elif isinstance(found, GroupsCertificate):
        bands_tables.group_certificates(found)
    else:
        printing.line(str(found))
        printing.assumptions(found.assumptions)


def document(found: Promise) -> Any:
    """The same for programs."""
    if isinstance(found, GroupsCertificate):
        return bands_tables.group_certificates_document(found)
    return printing.plain(asdict(found))
