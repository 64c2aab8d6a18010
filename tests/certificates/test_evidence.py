"""Evidence is the same from whatever rows came in, and one label is the case of one."""

import numpy as np
import pytest
from scipy import sparse

from surecut import certify, tune_threshold, tune_thresholds
from surecut.certificates.cells import cells_of
from surecut.certificates.certifying import METHODS
from surecut.certificates.evidence import Asked, Evidence, evidence_of
from surecut.core.tally import ScoreTally


def draw(rng, rows, labels=3):
    scores = (rng.random((rows, 1)) + rng.random((rows, labels))) / 2
    return (rng.random((rows, labels)) < scores**2).astype(int), scores


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return draw(rng, 500), draw(rng, 800)


def column(rows):
    return rows[0][:, 0], rows[1][:, 0]


def matrix(rows):
    return rows[0][:, :1], rows[1][:, :1]


@pytest.mark.parametrize("method", ["holdout", "uniform"])
def test_one_label_says_the_same_as_a_tally_or_as_rows(samples, method):
    cut, rows = tune_threshold(*column(samples[0])), column(samples[1])
    asked = Asked(method=method, held_out=True)
    kinds = [
        evidence_of(cut, asked, *rows),
        evidence_of(cut, asked, tally=ScoreTally.from_scores(*rows)),
        evidence_of(cut, asked, *rows, sample_weight=np.ones(800)),
    ]
    predicted = cut.predict(rows[1])
    for evidence in kinds:
        assert evidence.number == 800
        assert not evidence.tuned_here
        assert evidence.average is evidence.cells is evidence.prior is None
        assert evidence.confusion.tp == [np.sum(predicted & (rows[0] == 1))]
        assert evidence.value == kinds[0].value


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_many_labels_say_the_same_as_matrices_tallies_or_a_long_table(samples, average):
    truth, scores = samples[1]
    cut = tune_thresholds(*samples[0], average=average)
    asked = Asked(held_out=True)
    labels, groups = np.tile(np.arange(3), 800), np.repeat(np.arange(800) // 4, 3)
    kinds = {
        "matrices": evidence_of(cut, asked, truth, scores),
        "sparse": evidence_of(cut, asked, sparse.csr_array(truth), sparse.csr_array(scores)),
        "counted": evidence_of(cut, Asked(method="uniform", held_out=True), truth, scores),
        "tallies": evidence_of(cut, asked, tally=list(map(ScoreTally.from_scores, truth.T, scores.T))),
        "table": evidence_of(cut, asked, truth.ravel(), scores.ravel(), by=labels),
        "groups": evidence_of(cut, asked, truth, scores, groups=groups[::3]),
        "table of groups": evidence_of(cut, asked, truth.ravel(), scores.ravel(), by=labels, groups=groups),
    }
    assert {name for name, one in kinds.items() if one.cells is None} == {"counted", "tallies", "table"}
    assert {name for name, one in kinds.items() if one.grouped} == {"groups", "table of groups"}
    assert len(kinds["matrices"].cells) == 800
    assert len(kinds["groups"].cells) == len(kinds["table of groups"].cells) == 200
    for name, evidence in kinds.items():
        assert evidence.average == average
        assert evidence.number == (2_400 if name == "table of groups" else 800)
        np.testing.assert_array_equal(cells_of(evidence.confusion), cells_of(kinds["matrices"].confusion))
        assert evidence.value == kinds["matrices"].value


def numbers(found):
    return found.lower, found.upper, found.regret_bound, found.value, found.rows


@pytest.mark.parametrize("metric", ["f1", "am", "jaccard"])
@pytest.mark.parametrize(("method", "average"), [("uniform", "macro"), ("theorem", "macro"), ("holdout", "micro")])
def test_one_label_is_the_case_of_one(samples, metric, method, average):
    """By limits of each label, or of clusters that are groups."""
    groups = np.arange(800) // 4 if method == "holdout" else None
    one = tune_threshold(*column(samples[0]), metric=metric)
    many = tune_thresholds(*matrix(samples[0]), metric=metric, average=average)
    options = {"method": method, "groups": groups, "held_out": True}
    assert numbers(certify(one, *column(samples[1]), **options)) == numbers(
        certify(many, *matrix(samples[1]), **options)
    )


def test_without_rows_it_is_what_the_cut_remembers(samples):
    cut = tune_thresholds(*samples[0])
    evidence = evidence_of(cut, Asked(method="theorem"))
    assert (evidence.number, evidence.confusion) == (500, cut.confusion)
    assert Evidence(tune_threshold(*column(samples[0]))).number == 500


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_one_label_and_many(samples, method):
    for tune, rows in ((tune_threshold, [column(some) for some in samples]), (tune_thresholds, samples)):
        found = certify(tune(*rows[0]), *rows[1], method=method, resamples=100)
        assert (found.method, found.lower < found.value < found.upper) == (method, True)


def test_rows_beside_their_tally_are_refused_for_one_label_and_for_many(samples):
    """Which of the two should certify could not be known."""
    rows = samples[1]
    tally = [ScoreTally.from_scores(truth, scores) for truth, scores in zip(rows[0].T, rows[1].T, strict=True)]
    for cut, given, counted in (
        (tune_threshold(*column(samples[0])), column(rows), tally[0]),
        (tune_thresholds(*samples[0]), rows, tally),
    ):
        for some in ({"y_true": given[0], "y_score": given[1]}, {"y_score": given[1]}):
            with pytest.raises(ValueError, match="pass either rows or their tally, not both"):
                certify(cut, **some, tally=counted)
