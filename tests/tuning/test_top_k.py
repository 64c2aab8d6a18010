"""tune_top_k: values are those of scikit-learn, whatever the rows are; costs; what may be asked for."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics as sk

from surecut import ClassOrderWarning, TopK, get_metric, tune_thresholds, tune_top_k
from surecut.core.settings import using

CLASSES = np.array(["ant", "bee", "cat", "dog"])

SKLEARN = {
    ("f1", None): lambda y, p: sk.f1_score(y, p, average="macro"),
    ("f1", "weighted"): lambda y, p: sk.f1_score(y, p, average="weighted"),
    ("f1", "micro"): lambda y, p: sk.f1_score(y, p, average="micro"),
    ("precision", None): lambda y, p: sk.precision_score(y, p, average="macro", zero_division=0),
    ("recall", None): lambda y, p: sk.recall_score(y, p, average="macro"),
    ("jaccard", None): lambda y, p: sk.jaccard_score(y, p, average="macro"),
    ("accuracy", None): sk.accuracy_score,
    ("balanced_accuracy", None): sk.balanced_accuracy_score,
    ("kappa", None): sk.cohen_kappa_score,
    ("mcc", None): sk.matthews_corrcoef,
}


def drawn(size=400, seed=0, shift=1.0, share=(0.6, 0.25, 0.1, 0.05)):
    random = np.random.default_rng(seed)
    codes = random.choice(len(share), size, p=share)
    logits = random.normal(size=(size, len(share)))
    logits[np.arange(size), codes] += shift
    scores = np.exp(logits) * share
    return CLASSES[codes], scores / scores.sum(axis=1, keepdims=True)


def drawn_labels(size=300, labels=8, seed=0):
    random = np.random.default_rng(seed)
    truth = random.random((size, labels)) < np.linspace(0.05, 0.4, labels)
    return truth, random.normal(size=truth.shape) + truth


@pytest.mark.parametrize("options", [{}, {"stable": True}, {"shrinkage": "auto"}, {"shrinkage": 5}])
@pytest.mark.parametrize(("metric", "average"), SKLEARN)
def test_the_value_is_that_of_scikit_learn_for_what_is_predicted(metric, average, options):
    y, scores = drawn()
    rule = tune_top_k(y, scores, k=1, metric=metric, average=average, **options)
    predicted = rule.predict(scores)
    assert rule.value == pytest.approx(SKLEARN[metric, average](y, predicted), abs=1e-12)
    assert rule.baseline.value == pytest.approx(SKLEARN[metric, average](y, CLASSES[scores.argmax(axis=1)]), abs=1e-12)
    assert np.array_equal(rule.matrix, sk.confusion_matrix(y, predicted))
    if not options:
        assert rule.value >= rule.baseline.value
        assert 1 <= rule.agreed <= rule.starts


def test_the_geometric_mean_is_that_of_the_recalls_and_0_where_a_class_is_missed():
    y, scores = drawn()
    scores[:, 3] *= 1e-3
    rule = tune_top_k(y, scores, k=1, metric="gmean")
    recalls = sk.recall_score(y, rule.predict(scores), average=None)
    assert rule.value == pytest.approx(np.prod(recalls) ** (1 / 4))
    assert rule.baseline.value == 0
    assert rule.per_label == pytest.approx(recalls)


@pytest.mark.parametrize("k", [1, 2, 5, 8])
@pytest.mark.parametrize(("metric", "average"), [("f1", "macro"), ("f2", "weighted"), ("precision", "micro")])
def test_sparse_rows_that_store_all_scores_give_the_rule_of_dense_ones(k, metric, average):
    truth, scores = drawn_labels()
    dense = tune_top_k(truth, scores, k=k, metric=metric, average=average)
    stored = tune_top_k(
        sparse.csr_array(truth.astype(int)), sparse.csr_array(scores), k=k, metric=metric, average=average
    )
    assert dense.value == stored.value
    assert np.array_equal(dense.a, stored.a)
    assert np.array_equal(dense.offsets, stored.offsets)
    predicted = dense.predict(scores)
    assert (predicted.sum(axis=1) == k).all()
    assert np.array_equal(stored.predict(sparse.csr_array(scores)).toarray(), predicted)
    values = [get_metric(metric).score(truth[:, j], predicted[:, j]) for j in range(8)]
    assert dense.per_label == pytest.approx(values)
    if average == "macro":
        assert dense.value == pytest.approx(np.mean(values))


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_compiled_searches_give_the_value_of_those_in_numpy(metric):
    pytest.importorskip("numba")
    y, scores = drawn(3000, seed=3)
    truth, tags = drawn_labels(800, 12)
    found = []
    for kernels in ["numpy", "compiled"]:
        with using(kernels=kernels):
            found.append(
                (
                    tune_top_k(y, scores, k=1, metric=metric),
                    tune_top_k(truth, tags, k=3, metric=metric),
                    tune_top_k(y, scores, k=1, metric=metric, stable=True),
                )
            )
    for one, other in zip(*found, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"stable": True}])
def test_weights_of_two_are_rows_twice(options):
    y, scores = drawn(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    weighted = tune_top_k(y, scores, k=1, sample_weight=weight, **options)
    repeated = tune_top_k(np.repeat(y, weight), np.repeat(scores, weight, axis=0), k=1, **options)
    assert weighted.value == pytest.approx(repeated.value, abs=0.02)
    predicted = weighted.predict(scores)
    assert weighted.value == pytest.approx(sk.f1_score(y, predicted, average="macro", sample_weight=weight))
    assert weighted.matrix.sum() == weight.sum()


def test_the_same_rows_give_the_same_rule():
    y, scores = drawn(150)
    one, other = (tune_top_k(y, scores, k=1) for _ in range(2))
    assert np.array_equal(one.a, other.a)
    assert np.array_equal(one.offsets, other.offsets)


def test_a_rare_class_does_not_cost_a_stable_rule_the_others():
    """A class of .2 %: the best rule of the rows loses to the largest score on new rows, the stable one does not."""
    share = (0.75, 0.2, 0.048, 0.002)
    losses = []
    for seed in range(12):
        y, scores = drawn(1500, seed=seed, shift=2.0, share=share)
        new_y, new_scores = drawn(50_000, seed=1000 + seed, shift=2.0, share=share)

        def value(rule, new_y=new_y, new_scores=new_scores):
            return sk.f1_score(new_y, rule.predict(new_scores), average="macro")

        stable = value(tune_top_k(y, scores, k=1, stable=True, classes=CLASSES))
        exact = value(tune_top_k(y, scores, k=1, classes=CLASSES))
        plain = sk.f1_score(new_y, CLASSES[new_scores.argmax(axis=1)], average="macro")
        losses.append((stable - plain, stable - exact))
    above_plain, above_exact = np.mean(losses, axis=0)
    assert above_plain > 0
    assert above_exact > 0


COSTS = np.array([[0, 1, 1, 2], [2, 0, 1, 1], [9, 5, 0, 1], [20, 9, 3, 0.0]])


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"costs": COSTS},
        {"costs": COSTS, "reject_cost": 0.7},
        {"reject_cost": [0.1, 0.2, 0.3, 0.4]},
        {"costs": {"treat": [1, 1, 0, 0], "wait": [0, 0, 4, 9]}},
    ],
)
def test_the_value_of_costs_is_minus_the_mean_cost_of_what_is_predicted(options, stable):
    y, scores = drawn()
    rule = tune_top_k(y, scores, k=1, stable=stable, **options)
    actions = [rule.actions.index(one) for one in rule.predict(scores)]
    codes = np.searchsorted(CLASSES, y)
    assert rule.value == pytest.approx(-rule.costs[codes, actions].mean())
    assert rule.value >= rule.baseline.value
    assert rule.matrix.sum() == len(y)
    assert rule.gains.shape == (len(rule.actions), 4)
    assert rule.average == "cost"
    assert rule.a is None


def test_costs_of_the_cheapest_rule_are_not_above_those_of_bayes_rule():
    y, scores = drawn(300)
    exact, bayes = (tune_top_k(y, scores, k=1, costs=COSTS, stable=stable) for stable in (False, True))
    assert exact.value >= bayes.value
    assert not bayes.offsets.any()


def test_infinite_scores_decide_and_rows_without_scores_are_predicted_nothing():
    truth = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    scores = np.array([[np.inf, 1, 2], [0, 5, -np.inf], [-np.inf, -np.inf, -np.inf], [3, 2, 1]])
    rule = tune_top_k(truth, scores, k=1)
    assert rule.predict(scores, as_="positions").tolist() == [[0], [1], [-1], [0]]
    assert rule.confusion.fn.tolist() == [0, 0, 1]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_scale_and_type_of_scores(scale, dtype):
    if dtype == np.float32 and scale != 1:
        scale = scale ** (1 / 10)
    truth, scores = drawn_labels(60, 3)
    rule = tune_top_k(truth, (scores * scale).astype(dtype), k=1)
    assert np.isfinite(rule.offsets).all()
    assert rule.value >= rule.baseline.value
    predicted = rule.predict((scores * scale).astype(dtype))
    assert rule.value == pytest.approx(sk.f1_score(truth, predicted, average="macro"))


def test_one_row_and_one_label():
    assert tune_top_k([[1]], [[0.3]], k=1).value == 1
    assert tune_top_k(["a"], [[0.3, 0.1]], k=1, classes=["a", "b"], average="micro").value == 1


def test_several_metrics_give_a_dict():
    y, scores = drawn(100)
    rules = tune_top_k(y, scores, k=1, metric=["f1", "accuracy"])
    assert list(rules) == ["f1", "accuracy"]
    assert rules["accuracy"].average == "multiclass"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k= must be a whole number of labels, 1 or more, got 0"),
        ({"k": 1.5}, "k= must be a whole number"),
        ({"k": True}, "k= must be a whole number"),
        ({"k": 2}, "a row of one class is predicted one: k must be 1, got 2"),
        ({"average": "samples"}, "average= must be one of macro, micro, weighted, multiclass"),
        ({"average": "multiclass"}, "average='multiclass' has the metrics accuracy, balanced_accuracy"),
        ({"metric": []}, "metric is an empty list"),
        ({"metric": "f3x"}, "unknown metric"),
        ({"stable": True, "shrinkage": 1}, "leave shrinkage=0"),
        ({"costs": COSTS, "metric": "mcc"}, "leave metric and average out"),
        ({"costs": COSTS, "shrinkage": 1}, "shrinkage= has no meaning"),
        ({"costs": COSTS[:2]}, "a row per true class and a column per predicted one, 4 × 4"),
        ({"costs": {"a": 1}}, "two actions or more"),
        ({"costs": COSTS + np.inf}, "finite"),
        ({"reject_cost": [1, 2]}, "reject_cost must be a number, or one for each of the 4 classes"),
        ({"classes": ["a", "b"]}, "classes= names 2 classes"),
        ({"classes": ["ant", "bee", "cat", "cow"]}, "which classes= does not name"),
        ({"labels": ["a", "b", "c", "d"]}, "with class labels pass classes="),
        ({"missing": "ignore"}, "missing"),
        ({"random_state": -1}, "random_state="),
        ({"sample_weight": [1, 2]}, "sample_weight"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, message):
    y, scores = drawn(60)
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        tune_top_k(y, scores, **{"k": 1, **change})


def test_rows_that_do_not_fit_are_refused():
    y, scores = drawn(60)
    with pytest.raises(ValueError, match="one length"):
        tune_top_k(y[:-1], scores, k=1)
    with pytest.raises(ValueError, match="NaN"):
        tune_top_k(y, np.where(scores > 0.9, np.nan, scores), k=1)
    with pytest.raises(ValueError, match="say with classes= which class each column is of"):
        tune_top_k(y, scores[:, :3], k=1)
    with pytest.raises(ValueError, match="need rows of one class each"):
        tune_top_k(np.eye(4, dtype=int), np.eye(4), k=1, costs=COSTS)


@pytest.mark.parametrize("options", [{}, {"stable": True}, {"shrinkage": 3}])
def test_a_class_with_a_score_of_minus_infinity_is_not_predicted(options):
    y, scores = drawn(200)
    logs = np.log(scores)
    logs[::5, 0] = -np.inf
    rule = tune_top_k(y, logs, k=1, **options)
    assert not (rule.predict(logs)[::5] == "ant").any()
    assert rule.value == pytest.approx(sk.f1_score(y, rule.predict(logs), average="macro"))
    priced = tune_top_k(y, logs, k=1, costs=COSTS)
    assert np.isfinite(priced.value)
    assert priced.matrix.sum() == 200


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("metric", ["npv", "gmean", "mcc"])
def test_cells_that_are_0_up_to_the_rounding_of_weights_are_0(metric, average, tmp_path):
    random = np.random.default_rng(0)
    for _ in range(5):
        truth, scores, weight = random.random((20, 3)) < 0.4, random.normal(size=(20, 3)), random.random(20)
        rule = tune_top_k(truth, scores, k=3, metric=metric, average=average, sample_weight=weight)
        assert rule.value == 0  # all labels are predicted for all rows
        rule.save(tmp_path / "rule.json")
        assert TopK.load(tmp_path / "rule.json") == rule


@pytest.mark.parametrize("options", [{"stable": True}, {"metric": "kappa", "stable": True}])
def test_the_scale_of_large_weights_does_not_matter(options):
    y, scores = drawn()
    rules = [tune_top_k(y, scores, k=1, sample_weight=np.full(len(y), scale), **options) for scale in (1e6, 2.0**50)]
    assert rules[0].value == pytest.approx(rules[1].value, abs=1e-3)


def test_weights_that_add_up_to_little_are_searched_as_well_as_others():
    y, scores = drawn(size=3000)
    options = {"k": 1, "metric": "kappa", "stable": True}
    plain = tune_top_k(y, scores, **options)
    scaled = tune_top_k(y, scores, sample_weight=np.full(len(y), 1e-6), **options)
    assert scaled.value == pytest.approx(plain.value, abs=0.01)


def test_more_weight_than_any_prior_is_calibrated():
    y, scores = drawn()
    rule = tune_top_k(y, scores, k=1, stable=True, sample_weight=np.full(len(y), 1e200))
    assert rule.value > rule.baseline.value


def test_huge_scores_are_calibrated_as_those_of_one():
    y, scores = drawn()
    logits = np.log(scores)
    huge = tune_top_k(y, logits * 2.0**990, k=1, stable=True)
    assert huge.value == tune_top_k(y, logits, k=1, stable=True).value


def test_the_value_of_costs_does_not_cancel_beside_a_huge_cost(tmp_path):
    y, scores = drawn()
    costs = {name: 1e-3 * (CLASSES != name) for name in CLASSES} | {"never": 1e15}
    rule = tune_top_k(y, scores, k=1, costs=costs)
    assert rule.value == pytest.approx(-1e-3 * np.mean(y != rule.predict(scores)), rel=1e-12)
    rule.save(tmp_path / "rule.json")


def test_no_rows_are_told_apart_by_the_rounding_of_a_constant_cost():
    y, scores = drawn(size=60, shift=0.3)
    weight = 10.0 ** np.random.default_rng(0).uniform(-8, 8, len(y))
    rule = tune_top_k(y, scores, k=1, reject_cost=0.4, sample_weight=weight)
    assert np.abs(rule.cost_gains[-1]).max() < 1e6
    cost = np.where(rule.predict(scores) == "reject", 0.4, y != rule.predict(scores))
    assert rule.value == pytest.approx(-np.average(cost, weights=weight))


@pytest.mark.parametrize("metric", [lambda c: c.tp * c.tn / (c.fp * c.fn), lambda c: np.log(c.tp)])
def test_metrics_may_be_infinite(metric):
    y, scores = drawn(size=40)
    with np.errstate(all="raise", invalid="warn", divide="warn"):
        rule = tune_top_k(y, scores, k=1, metric=metric)
    assert rule.value >= rule.baseline.value


@pytest.mark.parametrize("seed", range(4))
def test_gains_beside_rejecting_are_no_rounding_errors(seed):
    """Else sums with the offsets lose the order of the rows, and other engines predict otherwise."""
    y, scores = drawn(1000, seed=seed)
    rule = tune_top_k(y, scores, k=1, reject_cost=0.3)
    gains = rule.gains @ scores[:100].T + rule.offsets[:, None]
    assert np.abs(rule.gains).max(axis=1).min() > 1e-6 * np.abs(gains).max()


def test_classes_in_another_order_than_the_columns_are_noticed():
    y, scores = drawn(400)
    wrong = np.roll(CLASSES, 1).tolist()
    with pytest.warns(
        ClassOrderWarning, match=r"'ant', 'bee', 'cat', 'dog': do classes= name the columns in their ord"
    ):
        tune_top_k(y, scores, k=1, classes=wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune_top_k(y, scores, k=1, classes=CLASSES)
        tune_top_k(y, scores[:, [3, 0, 1, 2]], k=1, classes=wrong)


def test_scores_that_say_nothing_do_not_ask_for_another_order():
    random = np.random.default_rng(0)
    y = random.choice(CLASSES, p=[0.9, 0.04, 0.03, 0.03], size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tune_top_k(y, random.random((300, 4)), k=1, classes=CLASSES)


class Model:
    """A fitted model, as far as messages know."""

    def predict(self, X):
        return X


@pytest.mark.parametrize("tune", [partial(tune_top_k, k=1), tune_thresholds])
def test_what_is_not_a_matrix_is_told_what_to_be(tune):
    y, scores = drawn(60)
    truth = (y[:, None] == CLASSES) * 1
    with pytest.raises(ValueError, match="are Y_true and Y_score swapped"):
        tune(scores, y)
    with pytest.raises(TypeError, match=r"Y_score must be a matrix, got Model: pass model.predict_proba\(X\)"):
        tune(truth, Model())
    for tags in ([["ant"], ["ant", "bee"]] * 30, [{"ant"}, {"bee"}] * 30, [["ant", "cat"]] * 60, [[1], [1, 2]] * 30):
        with pytest.raises(ValueError, match=r"MultiLabelBinarizer\(\).fit_transform\(Y_true\)"):
            tune(tags, scores)


def test_class_labels_are_sent_to_the_rule_of_classes():
    with pytest.raises(ValueError, match=r"for a column of class labels call tune_top_k\(y, scores, k=1\)"):
        tune_thresholds(*drawn(60))


def test_a_set_of_classes_has_no_order():
    y, scores = drawn(size=40)
    with pytest.raises(ValueError, match="has no order: pass a list"):
        tune_top_k(y, scores, k=1, classes=set(CLASSES.tolist()))


def test_classes_with_sparse_scores_are_predicted_as_classes():
    y, scores = drawn(100)
    stored = sparse.csr_array(np.where(scores > 0.05, scores, 0))
    rule = tune_top_k(y, stored, k=1)
    assert np.array_equal(rule.matrix, sk.confusion_matrix(y, rule.predict(stored)))
    assert rule.value == pytest.approx(sk.f1_score(y, rule.predict(stored), average="macro"))
    assert tune_top_k(y, sparse.csr_array(scores), k=1).value == tune_top_k(y, scores, k=1).value
