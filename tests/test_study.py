"""The study: cells saved at once and resumed, numbers that do not depend on jobs, figures and verdicts from results."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score
from typer.testing import CliRunner

from surecut import datasets, get_metric, tune_threshold
from surecut.cli.app import app
from surecut.datasets import Part
from surecut.population import FiniteDomain
from surecut.study import (
    NAMES,
    SCALES,
    alternatives,
    benchmarks,
    binary_benchmarks,
    classes,
    discrete,
    get_experiment,
    learners,
    logistic_model,
    multilabel_benchmarks,
    report,
    running,
)
from surecut.study.experiment import Claim, Estimate, Experiment, Finding, power
from surecut.study.store import Store, StoreError

cli = CliRunner()


def small(run, cells=4):
    """An experiment of a few cells."""
    return Experiment(
        name="discrete",
        title="a <small> one",
        section="none",
        cells=lambda scale: [{"n": n, "method": method} for n in range(cells) for method in ("a", "b")],
        run=run,
        figures=lambda table: {},
        claims=lambda table: [Claim("2 < 3 | always", Finding.HOLDS, str(Estimate.of(table.drawn)), "it does")],
        paired=("method",),
    )


@pytest.fixture
def with_small(monkeypatch):
    """Put a small experiment in the place of another."""

    def put(run, cells=4):
        for module in (running, report):
            monkeypatch.setattr(module, "get_experiment", lambda name: small(run, cells))

    return put


def draw(cell, generator):
    return [{"drawn": float(generator.random())}]


def run(out, **options):
    return running.run("discrete", out, **({"scale": "smoke", "seed": 0, "n_jobs": 1} | options))


def test_the_same_seed_gives_the_same_numbers_whatever_the_jobs(tmp_path):
    tables = [run(tmp_path / str(jobs), n_jobs=jobs).table() for jobs in (1, 2)]
    pd.testing.assert_frame_equal(*tables)
    assert len(tables[0]) > 50


def test_seeds_and_cells_decide_the_draws_and_paired_cells_share_them(tmp_path, with_small):
    with_small(draw)
    table = run(tmp_path / "one").table()
    assert table.groupby("n").drawn.nunique().eq(1).all()
    assert table.drawn.nunique() == 4
    assert not set(table.drawn) & set(run(tmp_path / "other", seed=1).table().drawn)


def test_a_stopped_run_loses_nothing_and_does_nothing_twice(tmp_path, with_small):
    ran = []

    def stop_at_the_fourth(cell, generator):
        ran.append((cell["n"], cell["method"]))
        if len(ran) == 4:
            raise KeyboardInterrupt
        return draw(cell, generator)

    with_small(stop_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    store = Store(tmp_path / "discrete")
    assert len(store.table()) == 3
    assert store.manifest()["finished"] == 3
    told = []
    run(tmp_path, tell=lambda *numbers: told.append(numbers))
    assert told[0] == (3, 8)
    assert told[-1] == (8, 8)
    assert len(ran) == 4 + 5
    with_small(draw)
    pd.testing.assert_frame_equal(store.table(), run(tmp_path / "at once").table())


def test_after_its_time_a_run_begins_no_cell(tmp_path, with_small):
    with_small(draw)
    none = running.run("discrete", tmp_path, scale="smoke", seed=0, n_jobs=1, minutes=0)
    assert none.manifest() == {}
    with pytest.raises(StoreError, match="there are no results"):
        none.table()
    assert len(run(tmp_path).table()) == 8


def partly(cell, generator):
    """Rows of several kinds of columns, one of them empty here and there."""
    word = "None" if cell["n"] else "a, b"
    rows = [{"part": part, "word": word, "drawn": generator.random() / 3, "fine": bool(part)} for part in range(2)]
    return [row | ({"often": generator.random() * 1e6} if cell["n"] % 2 else {}) for row in rows]


def test_a_folder_with_the_table_alone_is_gone_on_from(tmp_path, with_small):
    with_small(partly)
    whole = run(tmp_path / "at once")
    with_small(partly, cells=2)
    store = run(tmp_path)
    shutil.rmtree(store.folder / "cells")
    computing = {"seconds_of_computing": 12.0, "versions": store.manifest()["versions"] | {"numpy": "1.0"}}
    (store.folder / "manifest.json").write_text(json.dumps(store.manifest() | computing))
    ran = []

    def counted(cell, generator):
        ran.append((cell["n"], cell["method"]))
        return partly(cell, generator)

    with_small(counted)
    told = []
    run(tmp_path, tell=lambda *numbers: told.append(numbers))
    assert told[0] == (4, 8)
    assert ran == [(0, "a"), (0, "b"), *((n, method) for n in (2, 3) for method in "ab")]  # two checks, then the rest
    assert (store.folder / "results.csv").read_bytes() == (whole.folder / "results.csv").read_bytes()
    assert store.manifest()["seconds_of_computing"] == pytest.approx(12, abs=0.5)
    assert store.manifest()["versions"]["numpy"] == f"1.0, {np.__version__}"
    run(tmp_path)
    assert len(ran) == 6


@pytest.mark.parametrize("scale", ["smoke", "another"])
def test_a_table_that_is_not_reproduced_is_not_gone_on_from(tmp_path, with_small, scale):
    with_small(draw, cells=2)
    store = run(tmp_path)
    shutil.rmtree(store.folder / "cells")
    with_small(lambda cell, generator: [{"drawn": 2.0 if cell["method"] == "b" else float(generator.random())}])
    for _ in range(2):
        with pytest.raises(StoreError, match=r"other code.* at n 0, method b, drawn is 0\..* there and 2.0 here"):
            run(tmp_path, scale=scale)
    assert len(store.table()) == 4
    assert [path.name for path in (store.folder / "cells").iterdir()] == ["seed"]


def test_a_table_of_another_seed_is_not_gone_on_from(tmp_path, with_small):
    with_small(draw)
    store = run(tmp_path)
    shutil.rmtree(store.folder / "cells")
    with pytest.raises(StoreError, match="holds cells of seed 0, and this run has seed 1"):
        run(tmp_path, seed=1)
    assert len(store.table()) == 8
    (store.folder / "manifest.json").write_text("<<<<<<< HEAD")
    with pytest.raises(StoreError, match=r"manifest.json cannot be read"):
        run(tmp_path)


def test_cells_of_another_seed_are_not_mixed_in(tmp_path, with_small):
    with_small(draw)
    run(tmp_path)
    with pytest.raises(StoreError, match="holds cells of seed 0, and this run has seed 1"):
        run(tmp_path, seed=1)


def test_a_manifest_tells_how_results_were_made(tmp_path, with_small):
    with_small(draw)
    manifest = run(tmp_path, seed=7).manifest()
    assert manifest["seed"] == 7
    assert manifest["cells"] == manifest["finished"] == 8
    assert "surecut study run discrete --scale smoke --random-state 7" in manifest["command"]
    assert {"surecut", "python", "numpy", "scikit-learn"} <= set(manifest["versions"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_plain_and_named_apart(name, scale, tmp_path):
    cells = get_experiment(name).cells(scale)
    assert cells == json.loads(json.dumps(cells))
    store = Store(tmp_path)
    assert len({store._path(cell) for cell in cells}) == len(cells)


def test_an_unknown_experiment_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"'discreet': did you mean 'discrete'\? The names are discrete, "):
        get_experiment("discreet")
    result = cli.invoke(app, ["study", "run", "benchmark-multilabel"])
    assert result.exit_code == 1
    assert "did you mean 'multilabel-benchmarks'?" in result.output


@pytest.mark.parametrize("jobs", ["0", "-2"])
def test_no_processes_are_refused(jobs, tmp_path):
    result = cli.invoke(app, ["study", "run", "discrete", "--n-jobs", jobs, "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert f"or -1 for one per core, got {jobs}" in result.output
    assert not list(tmp_path.iterdir())


def test_estimates_print_as_many_digits_as_they_have():
    assert str(Estimate(0.123456, 0.00123)) == "0.1235 ± 0.0012"
    assert str(Estimate(1234.5, 12.3)) == "1234 ± 12"
    assert str(Estimate.of([0.25])) == "0.25"
    assert Estimate(1, 0.4).is_above(0)
    assert not Estimate(1, 0.6).is_above(0)
    assert Estimate(-1, 0.4).is_below(0)
    assert power([1, 10, 100], [7, 5, 0.5]) == pytest.approx(-1)


# discrete


@pytest.mark.parametrize("n", [20, 100, 1_000])
@pytest.mark.parametrize("metric", discrete.METRICS)
def test_tuning_many_domains_at_once_is_tune_threshold_on_each(n, metric):
    generator = np.random.default_rng(n)
    domain = FiniteDomain(1 / discrete.POINTS, generator.random((40, discrete.POINTS)))
    seen, positive = discrete.draw(domain, n, generator)
    sample = FiniteDomain(seen / n, positive / np.maximum(seen, 1))
    for surrogate, f in discrete.minimisers(*discrete.draw(domain, n, generator)).items():
        thresholds = discrete.tune(sample, metric, f)
        for row, threshold in enumerate(thresholds):
            scores = np.repeat(f[row], seen[row])
            labels = np.concatenate([np.arange(k) < p for k, p in zip(seen[row], positive[row], strict=True)])
            cut = tune_threshold(labels, scores, metric=metric)
            assert threshold == cut.threshold, surrogate


def test_the_empirical_minimisers_are_those_of_the_conventions():
    found = discrete.minimisers(np.array([[4, 4, 4, 0, 3]]), np.array([[1, 2, 4, 0, 0]]))
    np.testing.assert_allclose(found["logistic"], [np.log([1.5 / 3.5, 1, 9, 1, 0.5 / 3.5])])
    np.testing.assert_array_equal(found["hinge"], [[-1, 0, 1, 0, -1]])
    np.testing.assert_allclose(found["plain logistic"], [[np.log(1 / 3), 0, 1e300, 0, -1e300]])


def test_samples_of_the_discrete_model_have_the_right_means():
    domain = FiniteDomain(1 / discrete.POINTS, np.tile(np.linspace(0, 1, discrete.POINTS), (4_000, 1)))
    seen, positive = discrete.draw(domain, 100, np.random.default_rng(0))
    assert (seen.sum(axis=1) == 100).all()
    np.testing.assert_allclose(seen.mean(axis=0), 4, atol=0.2)
    np.testing.assert_allclose(positive.mean(axis=0), 4 * np.linspace(0, 1, discrete.POINTS), atol=0.2)


def test_theorem_two_holds_in_every_repetition_and_the_ratio_would_tell():
    measured = discrete.measure(200, 500, np.random.default_rng(0))
    for metric in discrete.METRICS:
        ratio = measured["logistic", f"{metric}_theorem2_ratio"]
        assert ratio.max() <= 1
        assert ratio.max() > 0.001
        tuned, best = measured["logistic", f"{metric}_regret"], measured["logistic", f"{metric}_tuning_cost"]
        assert (best >= -1e-12).all()
        assert (tuned >= best - 1e-12).all()


def test_blocks_pool_to_the_plain_mean_and_error():
    cells = [{"n": 100, "block": block, "repetitions": repetitions} for block, repetitions in enumerate((300, 700))]
    rows = [cell | row for cell in cells for row in discrete.run(cell, np.random.default_rng(cell["block"]))]
    pooled = discrete.pooled(pd.DataFrame(rows), "hinge", "f1_regret").iloc[0]
    values = np.concatenate(
        [
            discrete.measure(100, cell["repetitions"], np.random.default_rng(cell["block"]))["hinge", "f1_regret"]
            for cell in cells
        ]
    )
    assert pooled["mean"] == pytest.approx(values.mean())
    assert pooled["error"] == pytest.approx(values.std() / np.sqrt(1_000), rel=0.01)


# logistic-model


def test_training_sets_have_both_classes_in_both_parts():
    model = logistic_model.LogisticModel([0.1, 0.1], -3.5)
    X, y, draws = logistic_model.draw(model, 60, np.random.default_rng(0))
    assert X.shape == (60, 2)
    assert 0 < y[:40].sum() < 40
    assert 0 < y[40:].sum() < 20
    assert draws > 1


def test_the_svm_of_an_unbalanced_model_gives_up():
    generator = np.random.default_rng(0)
    X, y, _ = logistic_model.draw(logistic_model.LogisticModel([0.3, 0.3], -2), 1_000, generator)
    assert np.linalg.norm(learners.support_vector_machine(X, y, 0).weights) < logistic_model.PATHOLOGICAL
    assert np.linalg.norm(learners.logistic_regression(X, y, 0).weights) > 0.1
    assert np.isnan(logistic_model.rank_correlation(np.ones(5), np.arange(5)))


# binary benchmarks and alternatives


@pytest.fixture
def rows(monkeypatch):
    """A small data set in the place of mnist49."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((1_500, 4))
    y = (generator.random(1_500) < 1 / (1 + np.exp(1.5 - 2 * X[:, 0] - X[:, 1]))).astype(np.int8)
    monkeypatch.setattr(benchmarks, "binary_rows", lambda name: Part(X, y))
    monkeypatch.setitem(benchmarks.TEST_ROWS, "mnist49", 600)
    for module in (binary_benchmarks, alternatives):
        monkeypatch.setattr(module, "binary_names", lambda: ("mnist49",))
    return Part(X, y)


def test_a_split_takes_every_row_once(rows):
    split = benchmarks.random_split("mnist49", 900, np.random.default_rng(0))
    assert [len(part.y) for part in split] == [600, 300, 600]
    together = np.concatenate([part.X[:, 0] for part in split])
    np.testing.assert_array_equal(np.sort(together), np.sort(rows.X[:, 0]))
    with pytest.raises(ValueError, match="mnist49 has 900 rows beside its test set, and n is 901"):
        benchmarks.random_split("mnist49", 901, np.random.default_rng(0))


@pytest.mark.parametrize("learner", learners.BINARY)
def test_the_alternatives_do_what_their_papers_say(rows, learner):
    learn, tune, _ = benchmarks.random_split("mnist49", 900, np.random.default_rng(0))
    f1 = get_metric("f1")
    two_steps = alternatives.two_steps(learner, learn, tune, 0)
    best = f1.score(tune.y, two_steps.predict(tune.X))
    bisection = alternatives.bisection(learner, learn, tune, 0)
    sequence = alternatives.cost_sensitive_sequence(learner, learn, tune, 0)
    assert (two_steps.trainings, bisection.trainings, sequence.trainings) == (1, 1, 20)
    assert best - 0.05 < f1.score(tune.y, bisection.predict(tune.X)) <= best
    uncut = learners.BINARY[learner](learn.X, learn.y, 0)
    assert f1.score(tune.y, sequence.predict(tune.X)) >= f1.score(tune.y, uncut.score(tune.X) >= 0) - 1e-12


@pytest.mark.parametrize("experiment", [binary_benchmarks, alternatives], ids=lambda module: module.__name__)
def test_a_stand_in_is_named_as_what_it_is(rows, experiment):
    cells = [cell for cell in experiment.cells("smoke") if cell["n"] <= 900]
    run_one = experiment.EXPERIMENT
    table = pd.DataFrame([cell | row for cell in cells for row in run_one.run(cell, run_one.generator(cell, 0))])
    assert set(table.dataset) == {"mnist49"}
    claims = run_one.claims(table)
    assert run_one.figures(table)
    for claim in claims:
        if "gisette" in claim.text:
            assert claim.verdict is Finding.NOT_TESTABLE
            assert "mnist49" in claim.evidence


# multilabel benchmarks


def test_measures_are_scikit_learns():
    generator = np.random.default_rng(0)
    Y = (generator.random((60, 5)) < [0, 0.1, 0.3, 0.5, 0.9]).astype(np.int8)
    predicted = generator.random((60, 5)) < 0.4
    found = multilabel_benchmarks.measures(multilabel_benchmarks.confusion_of(Y, predicted))
    labels = [label for label in range(5) if 0 < Y[:, label].sum() < 60]
    assert len(labels) == 4
    assert found["macro_f1"] == pytest.approx(f1_score(Y, predicted, average="macro", zero_division=0))
    assert found["micro_f1"] == pytest.approx(f1_score(Y, predicted, average="micro"))
    by_label = [balanced_accuracy_score(Y[:, label], predicted[:, label]) for label in labels]
    assert found["macro_am"] == pytest.approx(np.mean(by_label))
    assert found["micro_am"] == pytest.approx(balanced_accuracy_score(Y.ravel(), predicted.ravel()))


@pytest.mark.parametrize("learner", learners.MULTILABEL)
def test_a_label_of_one_class_gets_a_constant_score(learner):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((60, 3))
    Y = np.column_stack([X[:, 0] > 0, np.zeros(60), np.ones(60)]).astype(np.int8)
    scores = learners.MULTILABEL[learner](X, Y, 0)(X)
    assert scores.shape == (60, 3)
    assert np.ptp(scores[:, 0]) > 0
    assert np.ptp(scores[:, 1:], axis=0).max() == 0
    assert scores[0, 1] < 0 < scores[0, 2]


# classes


@pytest.mark.parametrize("dataset", classes.SIZES)
def test_every_class_is_in_all_parts_and_classes_get_rarer(dataset):
    X, y, X_test, y_test, draws = classes.draw(dataset, 300, np.random.default_rng(0))
    assert (len(X), len(y), len(X_test)) == (300, 300, classes.TEST_ROWS[dataset])
    assert draws >= 1
    counts = np.bincount(y_test)
    assert counts[0] > 2 * counts[-1] > 0
    assert set(y[:200]) == set(y[200:]) == set(y_test)
    rows = {tuple(row) for row in X_test} & {tuple(row) for row in X}
    assert not rows


def test_ways_to_decide_are_what_they_are_called():
    generator = np.random.default_rng(0)
    y = generator.choice(3, 400, p=[0.6, 0.3, 0.1])
    logits = np.eye(3)[y] + generator.standard_normal((400, 3)) + np.log([0.6, 0.3, 0.1])
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    decided = {method: classes.decision(method, y, p)(p) for method in classes.METHODS}
    np.testing.assert_array_equal(decided[classes.ARGMAX], p.argmax(axis=1))
    thresholds = [tune_threshold(y == label, p[:, label], metric="f1").threshold for label in range(3)]
    np.testing.assert_array_equal(decided[classes.ONE_VS_REST], (p - thresholds).argmax(axis=1))
    values = {method: f1_score(y, found, average="macro") for method, found in decided.items()}
    assert max(values, key=lambda method: values[method]) == classes.EXACT
    assert len({tuple(found) for found in decided.values()}) == len(classes.METHODS)


def test_an_experiment_that_the_paper_has_not_is_named_so(tmp_path):
    listed = cli.invoke(app, ["study", "list"]).output
    assert "not in the paper; cells:" in listed
    assert "Not in the paper. Made by" in (COMMITTED / "report.md").read_text()


# from cells to the report


@pytest.mark.parametrize("name", ["discrete", "logistic-model", "multilabel-benchmarks", "classes"])
def test_an_experiment_from_cells_to_the_report(name, tmp_path, monkeypatch):
    if name == "multilabel-benchmarks":
        missing = [dataset for dataset in multilabel_benchmarks.SIZES if not datasets.is_present(dataset)]
        if missing:
            pytest.skip(f"the files of {', '.join(missing)} are not here: set SURECUT_DATA to their folder")
        quick = [cell for cell in multilabel_benchmarks.cells("smoke") if cell["dataset"] == "scene"]
        experiment = get_experiment(name)
        changed = Experiment(**{**vars(experiment), "cells": lambda scale: quick})
        for module in (running, report, sys.modules["surecut.study.commands"]):
            monkeypatch.setattr(module, "get_experiment", lambda _: changed)
    out = str(tmp_path)
    for arguments in (
        ["run", name, "--scale", "smoke", "--out", out],
        ["plot", name, "--out", out],
        ["report", "--out", out],
    ):
        result = cli.invoke(app, ["study", *arguments])
        assert result.exit_code == 0, result.output
    pictures = {path.suffix: path for path in (tmp_path / name).iterdir() if path.suffix in (".svg", ".png")}
    assert pictures[".png"].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in pictures[".svg"].read_bytes()
    page = (tmp_path / "report.md").read_text()
    assert f"surecut study run {name} --scale smoke --random-state 0" in page
    assert page.count("| **") >= 4


COMMITTED = Path(__file__).parent.parent / "docs" / "study"


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_results_have_figures_captions_and_verdicts(name):
    experiment, store = get_experiment(name), Store(COMMITTED / name)
    table, manifest = store.table(), store.manifest()
    assert list(experiment.figures(table)) == list(experiment.captions)
    assert all(
        (store.folder / f"{figure}.{kind}").exists() for figure in experiment.captions for kind in ("svg", "png")
    )
    found = table[list(manifest["parameters"])].drop_duplicates()
    assert len(found) == manifest["finished"]
    page = (COMMITTED / "report.md").read_text()
    for claim in experiment.claims(table):
        assert claim.rule
        assert f"| {claim.text} | **{claim.verdict.value}** | {claim.evidence}." in page


def test_a_rule_that_was_changed_is_told_with_what_it_said_before(tmp_path, with_small):
    claim = Claim("so", Finding.HOLDS, "1 ± 0.4", "above 0", first_rule="above 1: does not hold")
    lines = [sentences for _, sentences in report._measured(claim)]
    assert lines[1] == "Holds if above 0."
    assert lines[2] == "This rule was chosen after the numbers had been seen. Before: above 1: does not hold."


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), BrokenExecutor("a process was killed")], ids=["disk", "memory"]
)
def test_a_run_that_breaks_says_how_to_go_on(error, tmp_path, with_small):
    def full(cell, generator):
        raise error

    with_small(full)
    result = cli.invoke(app, ["study", "run", "discrete", "--scale", "smoke", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert str(error) in result.output
    assert "To go on: surecut study run discrete --scale smoke --random-state 0" in result.output.replace("\n", " ")


def test_the_axis_of_sizes_tells_where_repetitions_are_lacking():
    from surecut.study.figures import panels, sizes_axis

    table = pd.DataFrame(
        [
            (n, learner, r)
            for n, have in ((500, (3, 3)), (1_211, (3, 1)), (2_000, (2, 2)))
            for learner, k in zip("ab", have, strict=True)
            for r in range(k)
        ],
        columns=["n", "learner", "repetition"],
    )
    _, axes = panels(1, 1)
    sizes_axis(axes[0, 0], table)
    assert [label.get_text() for label in axes[0, 0].get_xticklabels()] == ["500", "1,211\n×1–3", "2k\n×2"]


def test_the_report_escapes_what_it_shows(tmp_path, with_small):
    with_small(draw)
    run(tmp_path)
    report.write_report(tmp_path)
    assert "a &lt;small&gt; one" in (tmp_path / "report.html").read_text()
    assert "2 < 3 \\| always" in (tmp_path / "report.md").read_text()


def test_the_list_names_every_experiment():
    result = cli.invoke(app, ["study", "list"])
    assert result.exit_code == 0
    assert all(name in result.output for name in NAMES)


@pytest.mark.parametrize("command", [["plot", "discrete"], ["report"]])
def test_without_results_one_is_told_to_run(command, tmp_path):
    result = cli.invoke(app, ["study", *command, "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "surecut study run" in result.output
    assert "Traceback" not in result.output


def test_an_interrupted_command_says_how_to_go_on(tmp_path, with_small):
    def interrupt(cell, generator):
        raise KeyboardInterrupt

    with_small(interrupt)
    result = cli.invoke(app, ["study", "run", "discrete", "--scale", "smoke", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "To go on: surecut study run discrete --scale smoke --random-state 0" in result.output.replace("\n", " ")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_that_writes_its_table(sent, tmp_path):
    command = ["study", "run", "discrete", "--scale", "quick", "--n-jobs", "2", "--out", str(tmp_path)]
    running_command = subprocess.Popen(
        [sys.executable, "-m", "surecut", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    cells = tmp_path / "discrete" / "cells"
    end = time.monotonic() + 120
    while len(list(cells.glob("*.json"))) < 1 and time.monotonic() < end:
        time.sleep(0.1)
    running_command.send_signal(sent)
    _, told = running_command.communicate(timeout=60)
    assert running_command.returncode == 130
    assert "To go on" in told
    assert 1 <= Store(tmp_path / "discrete").manifest()["finished"] < 20


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['surecut', 'study', 'run', '--help']\n"
        "from surecut.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "heavy = {'sklearn', 'scipy', 'pandas', 'matplotlib', 'joblib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_the_extra_the_study_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['joblib'] = None; sys.argv = ['surecut', 'study', 'run', 'discrete']\n"
        "from surecut.__main__ import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "pip install 'surecut[study]'" in done.stderr
    assert "Traceback" not in done.stderr
