"""Rules of k labels a row as records: saved, compared, in SQL, printed, in notebooks."""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from surecut import Confusion, Cut, MultilabelCut, TopK, get_metric, tune_top_k
from surecut.decisions import saving
from surecut.decisions.class_changes import ClassChanges, other_actions, quantity_of_labels
from surecut.decisions.saving import UnknownMetric
from surecut.decisions.score_map import ScoreMap
from surecut.decisions.sql import DIALECTS
from surecut.decisions.top_k import Baseline
from surecut.label_objectives import MULTICLASS, label_objective
from surecut.metrics import Tversky
from surecut.sample import Sample


def classes(rows=300, size=3, seed=0, names="abcdefgh"):
    """True classes, the first ones frequent, and probabilities of them."""
    random = np.random.default_rng(seed)
    share = np.arange(size, 0, -1) ** 2
    y = random.choice(size, rows, p=share / share.sum())
    logits = random.normal(size=(rows, size)) + np.log(share)
    logits[np.arange(rows), y] += 1.2
    return np.array(list(names))[y], np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def indicators(rows=200, labels=12, seed=0):
    random = np.random.default_rng(seed)
    truth = random.random((rows, labels)) < np.linspace(0.05, 0.4, labels)
    return truth, random.random((rows, labels)) * 0.7 + 0.3 * truth


COSTS = [[0, 1, 5], [1, 0, 5], [10, 10, 0]]


@cache
def rejecting():
    return tune_top_k(*classes(), k=1, costs=COSTS, reject_cost=0.4)


def rule(**options):
    return tune_top_k(*classes(), k=1, **options)


MADE = {
    "macro": lambda: rule(),
    "micro": lambda: rule(average="micro"),
    "weighted average": lambda: rule(metric="recall", average="weighted"),
    "weights": lambda: rule(sample_weight=np.random.default_rng(0).random(300) + 0.1),
    "parameters": lambda: rule(metric=Tversky(0.3, 0.7)),
    "shrunken": lambda: rule(shrinkage=5.0),
    "stable": lambda: rule(stable=True),
    "costs": lambda: tune_top_k(*classes(), k=1, costs=COSTS),
    "costs, stable": lambda: tune_top_k(*classes(), k=1, costs=COSTS, stable=True),
    "reject": rejecting,
    "actions": lambda: tune_top_k(*classes(), k=1, costs={"wait": [0, 1, 5], "treat": [2, 1.5, 0.5]}),
    "labels": lambda: tune_top_k(*indicators(), k=3),
    "labels, shrunken": lambda: tune_top_k(*indicators(), k=3, shrinkage="auto"),
    "labels, undefined": lambda: tune_top_k(indicators()[0] * (np.arange(12) > 1), indicators()[1], k=2, metric="am"),
    "names": lambda: tune_top_k(*indicators(labels=3), k=2, labels=["a", ("b", 2), 3.5]),
    "bounded": lambda: replace(rule(), upper_bound=0.99),
    **{f"several classes: {name}": lambda name=name: rule(metric=name) for name in MULTICLASS},
}

RULES = {name: cache(make) for name, make in MADE.items()}
"""Rules are tuned once: they are immutable."""


# Saving


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_rules_are_saved_to_the_last_bit_and_read_again(name, ending, tmp_path):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    found = RULES[name]()
    found.save(tmp_path / f"rule.{ending}")
    again = TopK.load(tmp_path / f"rule.{ending}")
    assert again == found == TopK.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert type(again.metric) is type(found.metric)
    for part in ("a", "offsets", "cost_gains", "costs", "matrix", "per_label"):
        np.testing.assert_array_equal(getattr(again, part), getattr(found, part))
    np.testing.assert_array_equal(again.baseline.matrix, found.baseline.matrix)
    assert again.confusion == found.confusion
    assert again.baseline.confusion == found.baseline.confusion
    assert again.sample == found.sample
    assert str(again) == str(found)
    scores = indicators(labels=len(found))[1] if found.matrix is None else classes()[1]
    np.testing.assert_array_equal(again.predict(scores), found.predict(scores))


def test_every_part_decides_whether_rules_are_equal():
    found = rejecting()
    assert found == rejecting()
    for change in (
        {"offsets": found.offsets + 0.5},
        {"costs": found.costs + 1},
        {"value": found.value + 1e-9},
        {"starts": 4},
        {"upper_bound": 0.0},
        {"stable": True},
        {"calibration": replace(found.calibration, slope=2.0)},
        {"calibration": None},
        {"baseline": replace(found.baseline, value=-0.1)},
        {"matrix": found.matrix * 2},
        {"shrinkage": np.ones(3)},
        {"sample": Sample(rows=7)},
    ):
        assert replace(found, **change) != found
    assert found != "a rule"
    with pytest.raises(TypeError):
        hash(found)


def test_a_function_is_saved_by_its_name(tmp_path):
    def own(confusion):
        return confusion.tp / (confusion.tp + confusion.fp + 1)

    rule(metric=own).save(tmp_path / "rule.json")
    again = TopK.load(tmp_path / "rule.json")
    assert isinstance(again.metric, UnknownMetric)
    assert "macro own = " in str(again)
    assert again._repr_html_().count("– →") == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(k=9), "checksum|it predicts 9 of 3"),
        (lambda d: d.pop("baseline"), "'baseline' is missing"),
        (lambda d: d.update(average="mean"), "average must be one of macro"),
        (lambda d: d.update(metric={"name": "x", "type": 3, "parameters": {}}), "expected a text"),
        (lambda d: d["per_label"][0].update(a="nan"), "must be finite"),
        (lambda d: d["per_label"][0].pop("offset"), "'offset' is missing"),
        (lambda d: d["per_label"][0].update(label="b"), "labels that differ"),
        (lambda d: d["per_label"][0].update(tp=d["per_label"][0]["tp"] + 1), "do not count the same rows"),
        (lambda d: d["per_label"][0].update(baseline_tp=-1), "not negative"),
        (lambda d: d["per_label"][0].update(value=0.5), "the value of the label 'a' is 0.5, but"),
        (lambda d: d["per_label"][0].update(shrinkage=-1), "shrinkage"),
        (lambda d: d.update(value=2), "the value is 2.0, but the macro f1"),
        (lambda d: d["baseline"].update(value=0), "the value is 0.0, but"),
        (lambda d: d.update(upper_bound=0.1), "above its upper bound"),
        (lambda d: d.update(agreed=99), "99 of .* starts agree"),
        (lambda d: d["matrix"][0].append(0), "rows of a class by 3 actions"),
        (lambda d: d["matrix"][0].reverse(), "do not agree with the confusion matrix"),
        (lambda d: d["matrix"].pop(), "need k = 1, a row per class"),
        (lambda d: d["baseline"]["matrix"][0].reverse(), "do not agree with the confusion matrix"),
        (lambda d: d["tuning"].update(rows=7), "has 300 rows, but 7"),
        (lambda d: d.update(schema_version=99), "another version"),
        (lambda d: d.update(costs=[[1, 2, 3]]), "a metric, or costs"),
        (lambda d: d.update(calibration={"family": "spline"}), "map of scores must be one of"),
    ],
)
def test_a_document_that_was_edited_is_refused(change, message, monkeypatch):
    document = json.loads(json.dumps(RULES["macro"]().to_dict()))
    change(document)
    with pytest.raises(ValueError, match=r"."):
        TopK.from_dict(document)
    monkeypatch.setattr(saving, "_checksum", lambda *_: document["checksum"])
    with pytest.raises(ValueError, match=message):
        TopK.from_dict(document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["gains"].pop(), "gains of each action"),
        (lambda d: d["gains"][0].pop(), "expected 4 actions of 3 labels"),
        (lambda d: d["offsets"].append(0.0), "offsets of actions"),
        (lambda d: d["costs"][0].__setitem__(0, 1.0), "but rows cost"),
        (lambda d: d["actions"].__setitem__(0, "b"), "actions that differ"),
        (lambda d: d["calibration"].update(limits=[1.0, 0.5]), "are no limits of such scores"),
        (lambda d: d["calibration"].update(limits=[0.0, 1.0]), "are no limits of such scores"),
        (lambda d: d["calibration"].update(family="beta"), "'coefficient_3' is missing"),
        (lambda d: d.update(gains=None), "'a' is missing"),
    ],
)
def test_a_document_of_costs_that_was_edited_is_refused(change, message, monkeypatch):
    document = json.loads(json.dumps(rejecting().to_dict()))
    change(document)
    monkeypatch.setattr(saving, "_checksum", lambda *_: document["checksum"])
    with pytest.raises(ValueError, match=message):
        TopK.from_dict(document)


def test_contradictory_parts_are_not_written(tmp_path):
    found = RULES["macro"]()
    for wrong in (
        {"k": 0},
        {"a": found.a[:2]},
        {"offsets": np.array([0.0, np.inf, 0.0])},
        {"actions": ("a", "b", "d")},
        {"value": 1.0},
        {"metric": None},
        {"per_label": found.per_label[::-1]},
        {"confusion": found.baseline.confusion + found.baseline.confusion},
        {"baseline": replace(found.baseline, value=math.nan)},
        {"confusion": replace(found.confusion, fn=found.confusion.fn - found.confusion.fn.max() - 1)},
        {"matrix": found.matrix.T},
        {"shrinkage": np.ones(2)},
        {"calibration": ScoreMap("softmax", True, (1e-12, 1.0), np.ones((2, 2)))},
    ):
        with pytest.raises(ValueError, match=r"."):
            replace(found, **wrong).save(tmp_path / "rule.json")
        assert not list(tmp_path.iterdir())


def test_other_decisions_say_who_reads_them(tmp_path):
    RULES["macro"]().save(tmp_path / "rule.json")
    for other in (Cut, MultilabelCut):
        with pytest.raises(ValueError, match=r"it holds a rule that predicts k labels a row: TopK\.load reads it"):
            other.load(tmp_path / "rule.json")


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_saved_whatever_their_rounding(seed):
    random = np.random.default_rng(seed)
    found = tune_top_k(*classes(40, seed=seed), k=1, sample_weight=np.exp(random.normal(size=40)))
    for confusion in (found.confusion, found.baseline.confusion):
        assert min(np.min(getattr(confusion, cell)) for cell in ("tp", "fp", "fn", "tn")) >= 0
    assert TopK.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_a_file_of_many_labels_grows_with_their_number(tmp_path):
    labels, rows, random = 5000, 900, np.random.default_rng(0)
    positives, predicted = random.integers(1, 20, labels), random.integers(0, 20, labels)

    def counted():
        tp = random.integers(0, np.minimum(positives, predicted) + 1)
        fp = predicted - tp
        return Confusion(tp, fp, positives - tp, rows - positives - fp)

    objective = label_objective(get_metric("f1"), "macro", positives, rows)
    after, before = counted(), counted()
    names = tuple(f"tag {i}" for i in range(labels))
    found = TopK(
        labels=names,
        k=5,
        a=random.random(labels),
        offsets=random.normal(size=labels),
        value=objective.value(after.tp, predicted),
        metric=get_metric("f1"),
        average="macro",
        per_label=objective.of_labels(after.tp, predicted),
        confusion=after,
        baseline=Baseline(objective.value(before.tp, predicted), before),
        actions=names,
        calibration=ScoreMap("beta", True, (1e-9, 1 - 1e-9), random.normal(size=(labels, 3))),
        shrinkage=random.random(labels),
        sample=Sample(rows=rows),
    )
    found.save(tmp_path / "rule.json")
    assert TopK.load(tmp_path / "rule.json") == found
    assert (tmp_path / "rule.json").stat().st_size < 600 * labels
    assert len(str(found).splitlines()) == 7
    assert len(found._repr_html_()) < 20_000


# SQL


def said_by(connection, table, rule, dialect, kind="DOUBLE"):
    """What an engine makes of rows of scores."""
    names = ", ".join(f"s{i} {kind}" for i in range(table.shape[1]))
    connection.execute(
        f"CREATE OR REPLACE TABLE scored (i INTEGER, {names})"
        if dialect != "sqlite"
        else f"CREATE TABLE scored (i INTEGER, {names})"
    )
    holders = ", ".join("?" * (table.shape[1] + 1))
    values = [(i, *(None if one is None else float(one) for one in row)) for i, row in enumerate(table.tolist())]
    connection.executemany(f"INSERT INTO scored VALUES ({holders})", values)
    case = rule.to_sql([f"s{i}" for i in range(table.shape[1])], dialect)
    return [one for (one,) in connection.execute(f"SELECT {case} FROM scored ORDER BY i").fetchall()]


def hard_scores(found, random, rows=400):
    """Scores with ties, infinities and, of affine rules, with gains that are equal or nearly so."""
    grid = random.integers(0, 9, (rows, len(found))) / 8
    usual = random.random((rows, len(found)))
    extreme = np.where(
        random.random((rows, len(found))) < 0.4, random.choice([np.inf, -np.inf, 0, 1], (rows, len(found))), usual
    )
    parts = [grid, usual, extreme, np.full((1, len(found)), -np.inf), np.full((1, len(found)), np.inf)]
    if found.a is not None and found.calibration is None and (found.a > 0).all():
        level = random.random((rows, 1))
        tied = (level - found.offsets) / found.a
        parts += [tied, np.nextafter(tied, random.choice([-9, 9], tied.shape))]
    return np.concatenate(parts)


def affine(size, seed, zero=False):
    """A rule with any gains and offsets, dyadic for ties, or some gains of 0."""
    random = np.random.default_rng(seed)
    base = RULES["macro"]()
    a, offsets = random.integers(1, 9, size) / 4, random.integers(-4, 5, size) / 8
    if seed % 2:
        a, offsets = random.random(size) + 0.1, random.normal(size=size)
    if zero:
        a[::2] = 0.0
    names = tuple(f"c{i}" for i in range(size))
    return replace(base, labels=names, actions=names, a=a, offsets=offsets, matrix=np.zeros((size, size)))


@pytest.mark.parametrize("engine", ["duckdb", "ansi", "sqlite"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 20, 130])
@pytest.mark.parametrize("kind", ["dyadic", "any", "zero"])
def test_sql_gives_the_classes_of_predict(engine, size, kind):
    found = affine(size, seed=size * 2 + (kind == "any"), zero=kind == "zero")
    scores = hard_scores(found, np.random.default_rng(size), rows=60 if size > 50 else 400)
    expected = found.predict(scores).tolist()
    assert size > 50 or None in expected
    if engine == "sqlite":
        connection = sqlite3.connect(":memory:")
        said = said_by(connection, scores, found, "sqlite", "REAL")
    else:
        connection = pytest.importorskip("duckdb").connect()
        said = said_by(connection, scores, found, engine)
    connection.close()
    assert said == expected


def test_sql_may_have_a_thousand_classes():
    connection = pytest.importorskip("duckdb").connect()
    found = affine(1000, seed=3)
    scores = np.random.default_rng(0).random((20, 1000))
    assert said_by(connection, scores, found, "duckdb") == found.predict(scores).tolist()


def calibrated(family, is_probability, seed=0, size=5):
    random = np.random.default_rng(seed)
    found = affine(size, seed=1)
    limits = (1e-9, 1 - 1e-9) if is_probability else (-3.0, 4.0)
    width = 3 if family == "beta" else 2
    slope, intercept = (1.0, 0.0) if family == "softmax" else (1.5, -0.25)
    coefficients = random.normal(size=(size, width)) + ([1.0, 1.0, 0.0] if width == 3 else [2.0, 0.0])
    return replace(
        found,
        offsets=found.offsets / 8,
        calibration=ScoreMap(family, is_probability, limits, coefficients, slope, intercept),
    )


@pytest.mark.parametrize("family", ["softmax", "sigmoid", "beta"])
@pytest.mark.parametrize("is_probability", [True, False])
@pytest.mark.parametrize("wide", [False, True])
def test_sql_of_calibrated_scores(family, is_probability, wide):
    connection = pytest.importorskip("duckdb").connect()
    found = calibrated(family, is_probability)
    if wide:  # exponents that would overflow by themselves
        found = replace(found, calibration=replace(found.calibration, slope=300.0))
    scores = hard_scores(found, np.random.default_rng(1))
    if not is_probability:
        scores = scores * 6 - 3
    expected = found.predict(scores).tolist()
    assert len(set(expected)) > 2
    said = said_by(connection, scores, found, "duckdb")
    gains = np.sort(found.gain_of(scores), axis=1)
    clear = (gains[:, -2] == -np.inf) | (gains[:, -1] > gains[:, -2] + 1e-9)  # nearer gains differ by rounding
    assert clear.mean() > 0.5
    assert [one for one, known in zip(said, clear, strict=True) if known] == [
        one for one, known in zip(expected, clear, strict=True) if known
    ]


@pytest.mark.parametrize("family", ["softmax", "sigmoid", "beta"])
def test_ties_of_calibrated_scores_go_to_the_first_class(family):
    connection = pytest.importorskip("duckdb").connect()
    found = calibrated(family, True)
    alike = np.tile(found.calibration.coefficients[:1], (5, 1))
    found = replace(
        found, a=np.ones(5), offsets=np.full(5, 0.125), calibration=replace(found.calibration, coefficients=alike)
    )
    scores = np.random.default_rng(0).integers(1, 4, (200, 5)) / 4
    assert said_by(connection, scores, found, "duckdb") == found.predict(scores).tolist()


@pytest.mark.parametrize("name", ["costs", "reject"])
@pytest.mark.parametrize("calibrated", [True, False])
def test_sql_of_costs_gives_the_actions_of_predict(name, calibrated):
    connection = pytest.importorskip("duckdb").connect()
    found = RULES[name]()
    if not calibrated:
        found = replace(found, calibration=None)
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(3), 500)
    expected = found.predict(scores).tolist()
    assert set(expected) >= {*found.actions[1:]}
    assert said_by(connection, scores, found, "duckdb") == expected
    infinite = np.array([[0.5, np.inf, 0.1], [-np.inf, 0.2, 0.8]])
    said = said_by(connection, infinite, found, "duckdb")
    assert said == (found.predict(infinite).tolist() if calibrated else [None, None])


@pytest.mark.parametrize("dialect", ["duckdb", "ansi", "sqlite"])
def test_a_missing_score_gives_no_class(dialect):
    found = RULES["macro"]()
    scores = np.array([[0.5, None, 0.5], [None, None, None], [0.2, 0.3, 0.5]], dtype=object)
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        connection = pytest.importorskip("duckdb").connect()
        scores[1] = math.nan
    said = said_by(connection, scores, found, dialect, "REAL" if dialect == "sqlite" else "DOUBLE")
    assert said == [None, None, *found.predict(scores[2:].astype(float))]


@pytest.mark.parametrize("name", ["integers", "booleans"])
def test_classes_keep_their_type(name):
    connection = pytest.importorskip("duckdb").connect()
    y, scores = classes(size=2)
    values = {"integers": [7, -2], "booleans": [False, True]}[name]
    found = tune_top_k(np.where(y == "a", *values), scores, k=1)
    assert said_by(connection, scores, found, "duckdb") == found.predict(scores).tolist()
    with pytest.raises(ValueError, match=r"no column is called (-2|False): name the columns of the scores"):
        found.to_sql()


def test_columns_are_called_like_the_classes_unless_they_are_named():
    found = RULES["macro"]()
    assert found.to_sql() == found.to_sql(["a", "b", "c"])
    assert '"p_a"' in found.to_sql(["p_a", "p_b", "p_c"])
    with pytest.raises(ValueError, match="columns= must name a column for each of 3 labels, got 2"):
        found.to_sql(["p", "q"])
    with pytest.raises(ValueError, match="columns= must name a column for each of 3 labels, got 1"):
        found.to_sql("abc")
    with pytest.raises(ValueError, match="unknown SQL dialect 'oracle'"):
        found.to_sql(dialect="oracle")


def test_sql_of_several_labels_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"k = 1, and this rule predicts 3 labels for each: apply_frame takes a table"):
        RULES["labels"]().to_sql()


def test_classes_of_several_types_are_refused_in_sql():
    found = replace(RULES["macro"](), labels=("a", 2, "c"), actions=("a", 2, "c"))
    with pytest.raises(
        ValueError, match=r"labels of the column of the result are of several types, text .* and number \(2\)"
    ):
        found.to_sql(["a", "b", "c"])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["macro", "stable", "reject", "labels, shrunken"])
def test_expressions_can_be_parsed_in_every_dialect(dialect, name):
    sqlglot = pytest.importorskip("sqlglot")
    found = RULES[name]()
    if found.k > 1:
        found = replace(found, k=1)
    names = [f"it's {i}" for i in range(len(found))]
    (statement,) = sqlglot.parse(
        f"SELECT {found.to_sql(names, dialect)} FROM scored", dialect=dialect.replace("ansi", "")
    )
    (selected,) = statement.expressions
    assert isinstance(selected, sqlglot.exp.Case)
    assert {one.name for one in selected.find_all(sqlglot.exp.Column)} == set(names)


# Words


def test_it_says_what_it_does_to_each_class():
    y = np.array(["a"] * 6 + ["b"] * 3 + ["c"])
    scores = np.tile([0.5, 0.3, 0.1], (10, 1))
    scores[6:9] = [0.5, 0.45, 0.1]
    scores[9] = [0.5, 0.3, 0.4]
    found = tune_top_k(y, scores, k=1)
    never = "of the rows instead of never; f1 0.00 -> 1.00, recall 0.00 -> 1.00, precision 1.00"
    assert str(found).splitlines()[1:] == [
        "  class 'a' is predicted for 60 % of the rows instead of 100 %; f1 0.75 -> 1.00, recall 1.00, "
        "precision 0.60 -> 1.00",
        f"  class 'b' is predicted for 30 % {never}",
        f"  class 'c' is predicted for 10 % {never}",
    ]
    agreed = found.agreed if found.agreed < found.starts else "all"
    assert str(found).startswith(
        "one of 3 classes a row, by the largest a·score + b: macro f1 = 1.0000 on 10 rows, instead of 0.2500 by the "
        f"largest score; the best of {found.starts} starts ({agreed} of them reached it)"
    )
    assert repr(found) == f"<TopK: {str(found).splitlines()[0]}>"


def test_it_says_what_is_known_of_the_optimum_and_of_the_scores():
    found = replace(RULES["macro"](), starts=4, agreed=3, upper_bound=math.nan)
    assert "; the best of 4 starts (3 of them reached it)" in str(found)
    assert "; the best of 4 starts (all of them reached it)" in str(replace(found, agreed=4))
    assert "no rule" not in str(found)
    assert "; no rule of this kind is better on these rows" in str(replace(found, upper_bound=found.value))
    assert "; no rule of this kind exceeds 0.9876 on these rows" in str(replace(found, upper_bound=0.9876))
    assert " starts" not in str(replace(found, starts=1, agreed=1))
    stable = str(RULES["stable"]())
    assert "by the largest a·probability + b (stable): " in stable
    assert "probabilities from scores by softmax" in stable
    assert "by softmax, shrinkage 5\n" in str(RULES["shrunken"]())
    assert " on a weight of " in str(RULES["weights"]())
    plain = replace(found, a=np.ones(3), offsets=np.zeros(3))
    assert "by the largest score: " in str(plain)
    assert "instead of" not in str(plain).splitlines()[0]
    assert ": kappa = " in str(RULES["several classes: kappa"]())


def test_costs_are_said_without_a_minus():
    found = rejecting()
    first, *_, last = str(found).splitlines()
    assert (
        f"one of 3 classes a row, or 'reject', at the lowest expected cost: mean cost of a row = {-found.value:.4f}"
        in first
    )
    assert f"instead of {-found.baseline.value:.4f} by the largest score" in first
    share = found.matrix[:, 3].sum() / 300
    assert last == f"  'reject' for {100 * share:.3g} % of the rows"
    assert "no rule of this kind costs less than 0.1000" in str(replace(found, upper_bound=-0.1))
    assert "mean cost of a row = 0.0000" in str(replace(found, value=0.0))


def test_actions_that_are_no_classes_are_said():
    found = RULES["actions"]()
    always = found.actions[int(found.baseline.matrix.sum(axis=0).argmax())]
    lines = str(found).splitlines()
    assert lines[0].startswith("one of 2 actions a row, at the lowest expected cost: mean cost of a row = ")
    assert f" by {always!r} for all rows" in lines[0]
    shares = other_actions(found)
    assert shares.keys() == {"wait", "treat"}
    before, after = shares[always]
    assert before == 1
    assert f"  {always!r} for {100 * after:.3g} % of the rows instead of 100 %" in lines
    assert len(lines) == 3
    assert "positives" not in found._repr_html_()


def test_rows_without_a_class_are_in_no_column_of_the_matrix():
    y, scores = classes()
    scores[:5] = -np.inf
    found = tune_top_k(y, scores, k=1)
    assert found.matrix.sum() == 295
    assert TopK.from_dict(found.to_dict()) == found
    assert ClassChanges.of(found).predicted.sum(axis=1) == pytest.approx(295 / 300)


def test_of_many_labels_it_names_those_that_change_most():
    found = RULES["labels"]()
    lines = str(found).splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("3 of 12 labels a row, by the largest a·score + b: macro f1 = ")
    assert " by the largest scores; " in lines[0]
    changes = ClassChanges.of(found)
    moved = changes.moved[changes.most(5)]
    assert (np.diff(moved) <= 0).all()
    assert moved.min() >= np.delete(changes.moved, changes.most(5)).max()
    rest = np.delete(changes.predicted[1] - changes.predicted[0], changes.most(5))
    more, less = int((rest > 0).sum()), int((rest < 0).sum())
    assert more > 0 < less
    text = f"  of 7 other labels {more} {'is' if more == 1 else 'are'} predicted more often, {less} less often"
    alike = len(rest) - more - less
    assert lines[-1] == text + (f", {alike} as often as before" if alike else "")


def test_other_labels_that_all_change_alike_are_counted_once():
    found = RULES["labels"]()
    assert str(replace(found, baseline=replace(found.baseline, confusion=found.confusion))).endswith(
        "  7 other labels are predicted as often as before"
    )


def test_changes_are_those_of_the_confusions():
    found = RULES["macro"]()
    changes = ClassChanges.of(found)
    y, scores = classes()
    for row, predicted in enumerate((np.array(found.labels)[scores.argmax(axis=1)], found.predict(scores))):
        for i, label in enumerate(found.labels):
            of_class, chosen = y == label, predicted == label
            assert changes.predicted[row, i] == chosen.mean()
            assert changes.recall[row, i] == chosen[of_class].mean()
            assert changes.precision[row, i] == of_class[chosen].mean()
            expected = get_metric("f1").evaluate(Confusion.from_predictions(of_class, chosen))
            assert changes.value[row, i] == pytest.approx(expected)
    assert quantity_of_labels(found) == "f1"
    assert quantity_of_labels(rejecting()) == "recall"
    assert list(other_actions(rejecting())) == ["reject"]
    assert other_actions(RULES["labels"]()) == {}


def test_labels_that_stay_as_they_are_are_said_so():
    found = RULES["macro"]()
    same = replace(found, confusion=found.baseline.confusion)
    assert " of the rows, as before; f1 " in str(same)
    cells = found.confusion
    nothing = Confusion(
        *(
            np.where(np.arange(3) == 0, other, mine)
            for mine, other in ((cells.tp, 0), (cells.fp, 0), (cells.fn, cells.positives), (cells.tn, cells.negatives))
        )
    )
    never = str(replace(found, confusion=nothing))
    assert "class 'a' is never predicted instead of" in never
    assert "class 'a' is never predicted; f1 0.00" in str(
        replace(found, confusion=nothing, baseline=replace(found.baseline, confusion=nothing))
    )


# Notebooks


class Cells(HTMLParser):
    """The texts of the cells of all tables; unbalanced tags are an error."""

    def __init__(self, html):
        super().__init__()
        self.open, self.rows = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_notebooks_show_each_class_and_the_confusion_matrix():
    found = rejecting()
    rows = Cells(found._repr_html_()).rows
    assert ["", "a", "b", "c", "reject"] in rows
    for label, counts in zip(found.labels, found.matrix.tolist(), strict=True):
        assert [label, *map(str, counts)] in rows
    assert ["label", "positives", "predicted", "recall", "precision"] in rows
    macro = Cells(RULES["macro"]()._repr_html_()).rows
    assert ["label", "positives", "predicted", "f1", "recall", "precision"] in macro
    found = RULES["macro"]()
    value = ClassChanges.of(found).value[:, 1].tolist()
    assert next(row for row in macro if row[0] == "b")[3] == f"{value[0]:.3f} → {value[1]:.3f}"


def test_notebooks_show_few_of_many_labels():
    html = RULES["labels"]()._repr_html_()
    assert "… and 2 labels that change less" in html
    assert "rows by true class" not in html
    assert len(Cells(html).rows) < 20
