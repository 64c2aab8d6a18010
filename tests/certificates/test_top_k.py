"""Certificates of rules of k labels a row: the same from every form of the rows, exact where they say so, and kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from guarantees.run import verdict
from guarantees.top_k import CONFIGURATIONS, ERROR, UNPROMISED, classes, costly, tags, tuned
from surecut import TopKCertificate, certify, check_drift, tune_top_k
from surecut.certificates import top_k_certificate, top_k_limits
from surecut.certificates.top_k_limits import MULTICLASS_AVERAGE, RuleRows, _least_mean, limits_of_labels, worth
from surecut.confusion import Confusion
from surecut.label_objectives import MULTICLASS, MulticlassKappa, MulticlassMCC
from surecut.metrics import CATALOGUE

NAMES = ("ant", "bee", "cat", "dog")
REGISTRY = [(name, None) for name in MULTICLASS] + [
    (name, average) for name in CATALOGUE for average in ("macro", "micro", "weighted")
]


def rows(seed, number=300):
    """Class names and scores of a model that is a little off; scores that no two rows share."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, size=number, p=(0.4, 0.3, 0.2, 0.1))
    scores = rng.normal(size=(number, 4)) + 1.5 * np.eye(4)[codes]
    scores = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return np.array(NAMES)[codes], scores


def indicators(y):
    return (y[:, None] == np.array(NAMES)).astype(int)


def numbers(found):
    return found.lower, found.upper, found.value, *found.recall.lower, *found.precision.upper


@pytest.fixture(scope="module")
def rule():
    return tune_top_k(*rows(0), k=1, metric="f1")


# --- Every metric from every form of the rows ---------------------------------------------------------------------


FORMS = {
    "indicators": lambda y, scores: (indicators(y), scores),
    "lists": lambda y, scores: (y.tolist(), scores.tolist()),
    "sparse indicators": lambda y, scores: (sparse.csr_array(indicators(y)), scores),
    "sparse": lambda y, scores: (sparse.csc_array(indicators(y)), sparse.csr_array(scores)),
    "frames": lambda y, scores: (
        pd.DataFrame(indicators(y), columns=list(NAMES))[["dog", "cat", "bee", "ant"]],
        pd.DataFrame(scores, columns=list(NAMES))[["bee", "ant", "dog", "cat"]],
    ),
    "class labels and a frame": lambda y, scores: (pd.Series(y), pd.DataFrame(scores, columns=list(NAMES))),
}


@pytest.mark.parametrize(("metric", "average"), REGISTRY, ids=str)
def test_every_metric_has_a_certificate(metric, average):
    rule = tune_top_k(*rows(0, 120), k=1, metric="accuracy")
    rule = replace(rule, **_measured(metric, average))
    found = certify(rule, *rows(1, 200))
    assert found.lower < found.value < found.upper
    assert found.confidence == 0.95
    assert metric in str(found) or found.metric in str(found)


def _measured(metric, average):
    """What is different in a rule that is best for another metric."""
    from surecut.tuning.top_k_request import TopKRequest

    options = {"shrinkage": 0.0, "stable": False, "missing": "error", "random_state": 0}
    request = TopKRequest.of(metric, k=1, average=average, multiclass=True, **options)
    ((found, named),) = request.metrics
    return {"metric": found, "average": named}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("metric", "average"), [("f1", "macro"), ("f1", "micro"), ("f1", "weighted"), ("gmean", None), ("kappa", None)]
)
def test_all_forms_of_the_same_rows_certify_alike(metric, average, form):
    rule = tune_top_k(*rows(0), k=1, metric=metric, average=average)
    plain, other = rows(1), FORMS[form](*rows(1))
    assert numbers(certify(rule, *other)) == pytest.approx(numbers(certify(rule, *plain)), abs=1e-9)


def test_counts_are_rows_and_rows_of_weight_zero_are_none(rule):
    y, scores = rows(1)
    times = np.random.default_rng(2).integers(0, 3, size=len(y))
    order = np.argsort(np.concatenate([np.arange(number) for number in times]), kind="stable")
    repeated = np.repeat(np.arange(len(y)), times)[order]
    expected = certify(rule, y[repeated], scores[repeated], held_out=True)
    found = certify(rule, y, scores, sample_weight=times, weights="counts")
    assert numbers(found) == pytest.approx(numbers(expected))
    assert found.rows == times.sum()
    without = certify(rule, y, scores, sample_weight=(times > 0).astype(float))
    assert numbers(without) == pytest.approx(numbers(certify(rule, y[times > 0], scores[times > 0])))


def test_missing_rows_can_be_left_out(rule):
    y, scores = rows(1)
    holes, lacking = scores.copy(), y.astype(object)
    holes[3, 1], lacking[5] = np.nan, None
    kept = np.setdiff1d(np.arange(len(y)), [3, 5])
    with pytest.raises(ValueError, match="NaN"):
        certify(rule, y, holes)
    with pytest.warns(UserWarning, match="rows"):
        found = certify(rule, lacking, holes, missing="drop")
    assert numbers(found) == numbers(certify(rule, y[kept], scores[kept]))


# --- Limits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["accuracy", "f1", "jaccard"])
def test_a_value_that_is_one_share_has_exact_limits(metric):
    rule = tune_top_k(*rows(0), k=1, metric=metric, average=None if metric == "accuracy" else "micro")
    y, scores = rows(1)
    found = certify(rule, y, scores)
    hits = int((rule.predict(scores) == y).sum())
    interval = stats.binomtest(hits, len(y)).proportion_ci(0.9, method="exact")
    ends = np.array([interval.low, interval.high])
    assert found.exact
    assert (found.lower, found.upper) == pytest.approx(tuple(ends / (2 - ends) if metric == "jaccard" else ends))


def test_limits_of_labels_are_those_of_shares_at_a_part_of_the_error(rule):
    y, scores = rows(1)
    found, predicted = certify(rule, y, scores), rule.predict(scores)
    for i, label in enumerate(NAMES):
        both = int(((y == label) & (predicted == label)).sum())
        for limits, whole in ((found.recall, (y == label).sum()), (found.precision, (predicted == label).sum())):
            assert limits.rows[i] == whole
            assert limits.value[i] == pytest.approx(both / whole)
            assert limits.lower[i] == pytest.approx(stats.beta.ppf(0.05 / 8, both, whole - both + 1))
            assert limits.upper[i] == pytest.approx(stats.beta.ppf(1 - 0.05 / 8, both + 1, whole - both))


def test_a_label_without_rows_is_not_known():
    rule = tune_top_k(*rows(0), k=1, metric="balanced_accuracy")
    y, scores = rows(1)
    kept = y != "dog"
    found = certify(rule, y[kept], scores[kept])
    assert "dog: recall is not known: no row here has it" in str(found)
    assert (found.recall.lower[3], found.recall.upper[3]) == (0, 1)
    assert found.lower <= 0.75
    assert found.assumptions[-1].startswith("of 1 label these rows lack a class")


def test_the_least_weighted_mean_is_at_a_corner():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, least = rng.normal(size=4), rng.random(4) * rng.integers(2, size=4)
        most = least + rng.random(4)
        corners = np.array(np.meshgrid(*zip(least, most, strict=True))).reshape(4, -1)
        tried = (values[:, None] * corners).sum(axis=0)[corners.sum(axis=0) > 0] / corners.sum(axis=0)[
            corners.sum(axis=0) > 0
        ]
        assert _least_mean(values, least, most) == pytest.approx(tried.min())


def test_kappa_is_at_most_mcc_where_it_is_positive():
    rng = np.random.default_rng(1)
    positive = 0
    for _ in range(500):
        table = rng.dirichlet(np.full(9, 0.3)).reshape(3, 3) + np.diag(rng.random(3))
        tp, positives, predicted = np.diag(table), table.sum(axis=1), table.sum(axis=0)
        total = table.sum()
        confusion = Confusion(tp, predicted - tp, positives - tp, total - positives - predicted + tp)
        kappa, mcc = (worth(one(), MULTICLASS_AVERAGE, confusion) for one in (MulticlassKappa, MulticlassMCC))
        positive += kappa > 0
        assert mcc >= kappa - 1e-12 or kappa <= 0
    assert positive > 100


def test_a_mean_cost_has_limits():
    found = certify(costly(), *classes().draw(np.random.default_rng(0), 300), held_out=True)
    assert -1 < found.lower < found.value < found.upper < 0
    assert f"the mean cost of a new row with this rule is at most {-found.lower:.4g}" in str(found)


def test_classes_that_are_no_actions_have_no_limits():
    y, scores = rows(0)
    rule = tune_top_k(y, scores, k=1, costs={"ant": [0, 1, 1, 1], "other": [0.8, 0, 0, 0]})
    found = certify(rule, *rows(1))
    assert found.labels == ("ant",)
    assert len(found.recall.lower) == len(found.precision.upper) == 1
    never = tune_top_k(y, scores, k=1, costs={"go": [0, 1, 1, 1], "stop": [0.8, 0, 0, 0]})
    alone = certify(never, *rows(1))
    assert alone.labels == ()
    assert len(str(alone).splitlines()) == 1
    assert "<th" not in alone._repr_html_().split("it holds if")[1].split("</table>")[1]


def test_a_row_is_predicted_k_labels_whatever_their_number():
    """The precision of a row is that of k labels, so that many others leave its limits as they are."""
    y, scores = rows(1, 400)
    few = tune_top_k(indicators(rows(0)[0]), rows(0)[1], k=2, metric="precision", average="micro")
    none = np.zeros((400, 500))
    many = replace(
        few,
        labels=tuple(range(504)),
        actions=tuple(range(504)),
        a=np.ones(504),
        offsets=np.concatenate((few.offsets, np.full(500, -100.0))),
        confusion=Confusion(*(np.concatenate((cell, np.zeros(500))) for cell in _cells(few.confusion))),
        shrinkage=np.zeros(504),
    )
    few = replace(few, a=np.ones(4))
    narrow, same = (
        certify(few, indicators(y), scores, held_out=True),
        certify(many, np.hstack((indicators(y), none)), np.hstack((scores, none)), held_out=True),
    )
    assert same.value == pytest.approx(narrow.value)
    assert (same.lower, same.upper) == pytest.approx((narrow.lower, narrow.upper))


def _cells(confusion):
    return confusion.tp, confusion.fp, confusion.fn, confusion.tn


@pytest.mark.parametrize(("metric", "average"), [("f1", "macro"), ("accuracy", None), ("gmean", None)])
def test_groups_are_what_is_independent(metric, average):
    rule = tune_top_k(*rows(0), k=1, metric=metric, average=average)
    y, scores = rows(1, 600)
    groups = np.repeat(np.arange(200), 3)
    alone, grouped = certify(rule, y, scores), certify(rule, y, scores, groups=groups)
    assert grouped.value == pytest.approx(alone.value)
    assert grouped.lower < grouped.value < grouped.upper
    assert not grouped.exact
    copied = certify(rule, np.repeat(y[:200], 3), np.repeat(scores[:200], 3, axis=0), groups=groups, held_out=True)
    once = certify(rule, y[:200], scores[:200], held_out=True)
    assert copied.upper - copied.lower > 0.8 * (once.upper - once.lower)  # three times the rows say no more


def test_kappa_of_groups_is_resampled():
    rule = tune_top_k(*rows(0), k=1, metric="kappa")
    options = {"groups": np.repeat(np.arange(200), 3)}
    with pytest.raises(ValueError, match="bootstrap"):
        certify(rule, *rows(1, 600), **options)
    found = certify(rule, *rows(1, 600), **options, method="bootstrap", resamples=200)
    assert found.lower < found.value < found.upper


@pytest.mark.parametrize(
    ("metric", "average"), [("f1", "macro"), ("f1", "weighted"), ("accuracy", None), ("mcc", None), ("f1", "micro")]
)
def test_the_bootstrap_is_near_the_spread_of_values(metric, average):
    rule = tuned(classes, 1, metric, average)
    rng, domain = np.random.default_rng(3), classes()
    found = certify(rule, *domain.draw(rng, 1500), method="bootstrap", resamples=400, held_out=True)
    values = []
    for _ in range(40):
        y, scores = domain.draw(rng, 1500)
        values.append(RuleRows(rule, np.eye(4)[y], rule.predict(scores, as_="positions")).value()[0])
    assert 2.2 < (found.upper - found.lower) / np.std(values) < 5
    assert "about" in str(found)


# --- Promises ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [one.name for one in CONFIGURATIONS if "60 rows" in one.name or "2 of 6" in one.name])
def test_promises_are_kept(name):
    """Notices limits that fail two times in five. Finer differences: `make test-guarantees`."""
    (one,) = (one for one in CONFIGURATIONS if one.name == name)
    rng = np.random.default_rng(5)
    failed = np.array([failed for _ in range(40) if (failed := one.fails(rng)) is not None])
    for failures in failed.sum(axis=0):
        assert verdict(int(failures), len(failed), one.error) == "kept"


def test_the_simulation_notices_a_certificate_of_validation_rows():
    rng = np.random.default_rng(6)
    failed = [bool(failed) for _ in range(25) if (failed := UNPROMISED.fails(rng)) is not None]
    assert verdict(sum(failed), len(failed), UNPROMISED.error) == "BROKEN"


def test_the_simulation_notices_limits_of_labels_that_do_not_hold_at_once(monkeypatch):
    monkeypatch.setattr(top_k_certificate, "limits_of_labels", lambda found, _: limits_of_labels(found, 4 * ERROR))
    (one,) = (one for one in CONFIGURATIONS if one.name == "top 1 of 4 classes: accuracy, 400 rows")
    rng = np.random.default_rng(7)
    failed = np.array([failed for _ in range(60) if (failed := one.fails(rng)) is not None])
    assert verdict(int(failed[:, 2].sum()), len(failed), one.error) == "BROKEN"


def test_the_simulation_notices_a_kappa_without_a_limit(monkeypatch):
    """A spoiled version: the estimate from pairs of rows, as if it had no error."""
    monkeypatch.setattr(top_k_limits, "least_ratio", lambda a, b, *_: float(a.sum() / b.sum()))
    (one,) = (one for one in CONFIGURATIONS if one.name == "top 1 of 4 classes: kappa, 400 rows")
    rng = np.random.default_rng(8)
    failed = np.array([failed for _ in range(30) if (failed := one.fails(rng)) is not None])
    assert verdict(int(failed[:, 0].sum()), len(failed), one.error) == "BROKEN"


# --- Which rows may certify ----------------------------------------------------------------------------------------


def test_rules_remember_their_validation_rows(rule):
    y, scores = rows(0)
    shuffled = np.random.default_rng(0).permutation(len(y))
    assert tune_top_k(y[shuffled], scores[shuffled], k=1).fingerprint == rule.fingerprint != ""
    assert tune_top_k(y[1:], scores[1:], k=1).fingerprint != rule.fingerprint
    for method in ("holdout", "bootstrap"):
        with pytest.raises(ValueError, match=f"validation rows of the rule.*{method}.*Use rows that were kept aside"):
            certify(rule, y[shuffled], scores[shuffled], method=method)
    for part in (slice(1, None), slice(0, 200)):
        with pytest.raises(ValueError, match="some of these rows tuned the rule"):
            certify(rule, y[part], scores[part].astype(np.float32))
    mixed = np.concatenate((y, rows(1)[0])), np.concatenate((scores, rows(1)[1]))
    with pytest.raises(ValueError, match="some of these rows tuned the rule"):
        certify(rule, *mixed)
    assert certify(rule, y, scores, held_out=True).assumptions[-1].endswith("by the caller's word")


@pytest.mark.parametrize("form", ["sparse", "frames"])
def test_validation_rows_are_recognised_in_every_form(form):
    given = FORMS[form](*rows(0))
    rule = tune_top_k(*given, k=2)
    assert rule.fingerprint
    with pytest.raises(ValueError, match="validation rows of the rule"):
        certify(rule, *given)
    certify(rule, *FORMS[form](*rows(1)))


def test_rules_of_pooled_scores_have_no_certificate_of_their_rows(rule):
    with pytest.raises(ValueError, match="pooled from folds"):
        certify(rule.with_sample(out_of_fold=True), *rows(0))


def test_rows_in_coarse_scores_need_a_word():
    rule = tuned(classes, 1, "f1", "macro")
    drawn = classes().draw(np.random.default_rng(9), 300)
    with pytest.raises(ValueError, match=r"cannot be determined.*tuning.*held_out=True"):
        certify(rule, *drawn)


# --- Refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "uniform"}, "has no limits for all rules.*method='holdout' on held-out rows"),
        ({"method": "theorem"}, "is of thresholds"),
        ({"tally": []}, "not tallies"),
        ({"by": ["ant"]}, "pass a matrix of scores"),
        ({"pos_label": 1}, "class labels, or an indicator matrix"),
        ({"weights": "counts"}, "give both"),
        ({"sample_weight": np.full(300, 0.5)}, "weights='counts'"),
        ({"sample_weight": np.full(300, 0.5), "weights": "counts"}, "weights='importance' and method='bootstrap'"),
        ({"sample_weight": np.full(300, 0.5), "weights": "importance"}, "bootstrap"),
        ({"groups": np.arange(299)}, "length"),
        ({"method": "bootstrap", "resamples": 10}, "at least 100"),
    ],
)
def test_what_is_not_possible_is_refused_with_the_way_out(rule, options, message):
    with pytest.raises(ValueError, match=message):
        certify(rule, *rows(1), **options)


def test_rows_that_do_not_fit_the_rule_are_refused(rule):
    y, scores = rows(1)
    with pytest.raises(ValueError, match=r"'eel'.*not among the rule's classes"):
        certify(rule, np.where(y == "ant", "eel", y), scores)
    with pytest.raises(ValueError, match="3 columns, but the rule has 4 labels"):
        certify(rule, y, scores[:, :3])
    with pytest.raises(ValueError, match="one length: got 299 and 300"):
        certify(rule, y[1:], scores)
    with pytest.raises(ValueError, match="needs rows: pass y_true and y_score"):
        certify(rule)
    several = indicators(y)
    several[0] = 1
    with pytest.raises(ValueError, match="one class each"):
        certify(replace(rule, **_measured("kappa", None)), several, scores)


def test_sorted_rows_are_refused(rule):
    y, scores = rows(1)
    order = np.argsort(y, kind="stable")
    with pytest.raises(ValueError, match="come sorted"):
        certify(rule, y[order], scores[order])
    exact = replace(rule, **_measured("accuracy", None))
    assert numbers(certify(exact, y[order], scores[order])) == numbers(certify(exact, y, scores))


def test_few_rows_are_not_resampled(rule):
    with pytest.raises(ValueError, match=r"needs 100 rows, got 60.*holdout"):
        certify(rule, *rows(1, 60), method="bootstrap")
    with pytest.raises(ValueError, match="25 rows that have each label"):
        certify(rule, *rows(1, 150), method="bootstrap")
    good = rows(1)[1].argmax(axis=1)
    plain = replace(rule, a=np.ones(4), offsets=np.zeros(4))
    with pytest.raises(ValueError, match="how rare mistakes are"):
        certify(plain, np.array(NAMES)[good], rows(1)[1], method="bootstrap")


def test_a_check_of_drift_says_what_to_do_instead(rule):
    with pytest.raises(TypeError, match="Certify the rule on held-out rows of then and on new ones"):
        check_drift(rule, *rows(1))


# --- How it is shown -----------------------------------------------------------------------------------------------


def test_it_is_said_in_words(rule):
    found = certify(rule, *rows(1))
    assert isinstance(found, TopKCertificate)
    assert found.labels == NAMES
    first, second, *lines = str(found).splitlines()
    assert first.startswith(f"With 95 % confidence the macro f1 of this rule on new rows is at least {found.lower:.4f}")
    assert second == "With 95 % confidence, on new rows, all at once:"
    assert lines[0].startswith(f"  ant: recall at least {found.recall.lower[0]:.4f} (")
    assert len(lines) == 4


def test_a_notebook_shows_a_table_of_labels_and_no_tags_of_theirs():
    y, scores = rows(0)
    names = np.array(["<b>", "bee", "cat", "dog"])
    renamed = names[np.searchsorted(NAMES, y)]
    found = certify(tune_top_k(renamed, scores, k=1), names[np.searchsorted(NAMES, rows(1)[0])], rows(1)[1])
    page = found._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>:" not in page
    assert page.count("<tr>") >= 5


def test_many_labels_are_not_all_printed():
    domain = tags(30)
    rule = tune_top_k(*domain.draw(np.random.default_rng(0), 200), k=2, metric="precision", average="micro")
    found = certify(rule, *domain.draw(np.random.default_rng(1), 200), held_out=True)
    assert len(found.recall.lower) == 30
    assert "… and 10 labels" in str(found)
