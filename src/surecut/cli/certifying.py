"""What `certify` does between reading its file and printing: the certificate of a decision of each kind."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from surecut.certificates.certificate import Certificate
from surecut.certificates.certifying import certify
from surecut.certificates.top_k_certificate import TopKCertificate
from surecut.certificates.zone_certificate import BandsCertificate, GroupsCertificate
from surecut.cli import bands_tables, printing, top_k_tables
from surecut.cli.bands import groups_of_rows
from surecut.cli.commands import row_groups, row_labels, tally_to_certify
from surecut.cli.top_k import matrices_of, rows_of_rule
from surecut.decisions.bands import Bands
from surecut.decisions.cut import Cut
from surecut.decisions.grouped_bands import GroupedBands
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.top_k import TopK

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
    assert not isinstance(decision, TopK)  # see certified_rule
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


def certified_rule(
    rule: TopK, read: Rows, *, file: str, row_columns: int, missing: str, notes: list[str], **options: Any
) -> Promise:
    """The certificate of a rule of k labels a row from a long table, which is grouped by rows and then by labels."""
    matrices = matrices_of(read, row_columns, missing, notes).shuffled()  # ids may tell what rows hold
    y_true, y_score = rows_of_rule(matrices, rule, file, notes)
    return certify(rule, y_true, y_score, sample_weight=matrices.weight, **options)


def show(found: Promise) -> None:
    """Print it for people."""
    if isinstance(found, BandsCertificate):
        bands_tables.certificate(found)
    elif isinstance(found, GroupsCertificate):
        bands_tables.group_certificates(found)
    else:
        if isinstance(found, TopKCertificate):
            top_k_tables.certificate(found)
        else:
            printing.line(str(found))
        printing.assumptions(found.assumptions)


def document(found: Promise) -> Any:
    """The same for programs."""
    if isinstance(found, GroupsCertificate):
        return bands_tables.group_certificates_document(found)
    return printing.plain(asdict(found))
