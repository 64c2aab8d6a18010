"""tune_threshold as people call it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecut import ScoreTally, certify, get_metric, tune_threshold
from surecut.core import kernels
from surecut.core.settings import Settings
from surecut.metrics import FBeta, FunctionMetric, Tversky
from surecut.sources.arrays import ArraySource

LABELS = [1, 0, 1, 1, 0, 0, 1, 0]
SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]


def many_rows(size, seed=0):
    random = np.random.default_rng(seed)
    scores = random.normal(size=size)
    return (random.random(size) < 1 / (1 + np.exp(2 - 2 * scores))).astype(int), scores


# What a cut remembers


def test_a_cut_knows_where_it_came_from():
    cut = tune_threshold(LABELS, SCORES)
    assert cut.threshold == pytest.approx(0.55)
    assert cut.value == 0.75
    assert cut.metric == FBeta(1)
    assert (cut.confusion.tp, cut.confusion.fp, cut.confusion.fn, cut.confusion.tn) == (3, 1, 1, 3)
    assert cut.interval == (0.5, 0.6)
    assert (cut.prior, cut.prior_given, cut.constraints) == (0.5, False, ())
    assert (cut.rows, cut.weighted) == (8, False)
    assert cut.fingerprint == ScoreTally.from_scores(LABELS, SCORES).sample.fingerprint


def test_the_fingerprint_names_the_rows():
    cut = tune_threshold(LABELS, SCORES)
    assert cut.fingerprint == tune_threshold(LABELS[::-1], SCORES[::-1], metric="am").fingerprint
    assert cut.fingerprint != tune_threshold(LABELS, [*SCORES[:-1], 0.21]).fingerprint
    assert cut.fingerprint != tune_threshold([*LABELS[:-1], 1], SCORES).fingerprint
    assert cut.fingerprint != tune_threshold(LABELS[:-1], SCORES[:-1]).fingerprint


def test_weights_are_remembered():
    cut = tune_threshold(LABELS, SCORES, sample_weight=[1, 0, 2, 1, 1, 1, 1, 1])
    assert cut.weighted
    assert cut.rows == 7
    assert cut.confusion.tp == 4.0
    assert cut.prior == pytest.approx(5 / 8)


def test_what_is_passed_is_left_alone():
    labels, scores = many_rows(30_000)
    weights = np.random.default_rng(1).integers(0, 3, 30_000).astype(float)
    copies = labels.copy(), scores.copy(), weights.copy()
    for column in (labels, scores, weights):
        column.flags.writeable = False
    tune_threshold(labels, scores, sample_weight=weights)
    for column, copy in zip((labels, scores, weights), copies, strict=True):
        np.testing.assert_array_equal(column, copy)


# Several metrics


@pytest.mark.parametrize("size", [500, 30_000])
def test_several_metrics_are_tuned_in_the_same_passes(size, monkeypatch):
    labels, scores = many_rows(size)
    names = ["f1", "am", "mcc", "f2"]
    single = {name: tune_threshold(labels, scores, metric=name) for name in names}
    passes = []
    original = ArraySource.histogram

    def histogram(self):
        passes.append(len(self))
        return original(self)

    monkeypatch.setattr(ArraySource, "histogram", histogram)
    together = tune_threshold(labels, scores, metric=names)
    assert together == single
    assert list(together) == names
    assert passes == ([] if size < Settings().sort_below else [size])


def test_several_metrics_under_a_constraint():
    together = tune_threshold(LABELS, SCORES, metric=("f1", "recall"), constraint="precision>=0.6")
    for name, cut in together.items():
        assert cut == tune_threshold(LABELS, SCORES, metric=name, constraint="precision>=0.6")


def test_metrics_of_one_name_are_told_apart():
    cuts = tune_threshold(LABELS, SCORES, metric=[Tversky(1, 1), Tversky(0.5, 2), "f1"])
    assert list(cuts) == ["Tversky(alpha=1, beta=1)", "Tversky(alpha=0.5, beta=2)", "f1"]
    assert cuts["Tversky(alpha=1, beta=1)"].value == pytest.approx(0.6)


def test_a_list_of_one_is_still_a_dict():
    assert tune_threshold(LABELS, SCORES, metric=["f1"]) == {"f1": tune_threshold(LABELS, SCORES)}


def test_no_metric_at_all_is_refused():
    with pytest.raises(ValueError, match="metric is an empty list: name at least one metric"):
        tune_threshold(LABELS, SCORES, metric=[])


# Functions as metrics: every cut is tried


def rises_and_falls(confusion):
    """Not monotone: best where exactly three rows are accepted."""
    return -((confusion.tp + confusion.fp - 3) ** 2)


def with_conditions(confusion):
    """Written for single numbers."""
    if confusion.tp + confusion.fp == 0:
        return float("nan")
    return min(confusion.tp / (confusion.tp + confusion.fp), 0.7)


def more_false_positives(confusion):
    """Increases in FP, which no metric of the catalogue does."""
    return 2 * confusion.fp - confusion.tp


@pytest.mark.parametrize("function", [rises_and_falls, with_conditions, more_false_positives])
@pytest.mark.parametrize("weighted", [False, True])
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(-5, 5), st.integers(1, 3)), max_size=20).map(
        lambda rows: [(True, 3, 1), (False, 0, 2), (True, -1, 1), *rows]
    )
)
def test_a_function_is_tried_at_every_threshold(oracle, function, weighted, rows):
    labels, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    weights = weights.astype(float) if weighted else None

    def formula(tp, fp, fn, tn):
        value = function(type("Cells", (), {"tp": tp, "fp": fp, "fn": fn, "tn": tn}))
        return None if value != value else value

    value, attempt = oracle.best(oracle.attempts(labels, scores, weights), formula)
    cut = tune_threshold(labels, scores, metric=function, sample_weight=weights)
    assert cut.predict(scores).tolist() == attempt.predictions
    assert cut.value == pytest.approx(float(value))
    assert cut.metric == FunctionMetric(function, name=function.__name__)


def test_a_function_is_tried_at_every_threshold_of_many_rows():
    labels, scores = many_rows(Settings().sort_below + 10)
    cut = tune_threshold(labels, scores, metric=rises_and_falls)
    assert cut.predict(scores).sum() == 3
    assert cut.value == 0
    both = tune_threshold(labels, scores, metric=[rises_and_falls, "f1"])
    assert both["rises_and_falls"] == cut
    assert both["f1"] == tune_threshold(labels, scores)


def test_a_function_may_be_a_constraint():
    cut = tune_threshold(LABELS, SCORES, constraint=(rises_and_falls, 0))
    assert cut.predict(SCORES).sum() == 3
    assert list(map(str, cut.constraints)) == ["rises_and_falls>=0"]


def test_a_function_that_is_undefined_everywhere_is_refused():
    with pytest.raises(ValueError, match="nowhere is undefined at every cut of these 8 rows"):
        tune_threshold(LABELS, SCORES, metric=FunctionMetric(lambda confusion: confusion.tp * np.nan, name="nowhere"))


def test_a_division_by_zero_in_a_function_is_its_nan():
    """0/0 where nothing is predicted: undefined there, and neither a warning nor an error."""
    cut = tune_threshold(LABELS, SCORES, metric=lambda confusion: confusion.tp / (confusion.tp + confusion.fp))
    expected = tune_threshold(LABELS, SCORES, metric="precision")
    assert (cut.value, cut.interval) == (expected.value, expected.interval)


# Threads and processes


def test_threads_tune_at_the_same_time():
    labels, scores = many_rows(500_000)
    names = ["f1", "am", "kappa", "mcc"]
    tally = ScoreTally.from_scores(labels, scores)
    expected = [tally.best_cut(name) for name in names] * 2
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: tune_threshold(labels, scores, metric=name), names * 2))
    assert found == expected


FORK = """
import multiprocessing, os, sys
import numpy as np
from surecut import tune_threshold
from surecut.core.settings import using

random = np.random.default_rng(0)
scores = random.normal(size=500_000)
labels = (random.random(500_000) < 1 / (1 + np.exp(2 - 2 * scores))).astype(int)

def tuned():
    # so few rows are shared out among threads
    with using(kernels="compiled", cores=4, compiled_rows_per_worker=1 << 14):
        return tune_threshold(labels, scores).to_dict()

def child(queue):
    queue.put(tuned())

if __name__ == "__main__":
    mine = tuned()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    theirs = queue.get(timeout=300)
    process.join(300)
    assert "numba" in sys.modules or "--without-numba" in sys.argv
    assert process.exitcode == 0, process.exitcode
    assert theirs == mine, (theirs, mine)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, repr(tuned()["threshold"]).encode())
        os._exit(0)
    os.wait()
    assert float(os.read(reading, 100)) == mine["threshold"]
    print("agreed")
"""


@pytest.mark.skipif(
    not hasattr(os, "fork") or "fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform"
)
def test_a_forked_child_tunes_after_its_parent(tmp_path):
    """The parent's threads are gone in the child, and nothing waits for them."""
    script = tmp_path / "fork.py"
    script.write_text(FORK)
    arguments = [] if kernels.compiled() is not None else ["--without-numba"]
    result = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert result.stdout.strip() == "agreed", result.stderr


# Values are scikit-learn's


@pytest.mark.parametrize("size", [300, 25_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_the_score_of_the_predictions(metric, size, weighted):
    labels, scores = many_rows(size, seed=4)
    weights = np.random.default_rng(4).random(size) if weighted else None
    cut = tune_threshold(labels, scores, metric=metric, sample_weight=weights)
    score = get_metric(metric).score(labels, cut.predict(scores), sample_weight=weights)
    assert score == pytest.approx(cut.value, rel=1e-9, abs=1e-12)


def test_a_metric_that_is_asked_for_twice_is_one():
    labels, scores = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]
    assert list(tune_threshold(labels, scores, metric=["f1", "f1_score", "balanced_accuracy"])) == ["f1", "am"]
    both = ["utility(fp=-1, fn=-2)", "utility(fp=-2, fn=-1)", "f1"]
    assert len(tune_threshold(labels, scores, metric=both)) == 3


def test_a_confidence_without_constraints_promises_a_lower_limit():
    """Of the cut that a pilot sample chooses, from the other rows: higher than a limit for all thresholds."""
    random = np.random.default_rng(5)
    labels = random.random(800) < 0.3
    scores = random.normal(size=800) + labels
    cut = tune_threshold(labels, scores, confidence=0.9)
    plain = tune_threshold(labels, scores)
    assert cut.value <= plain.value
    assert cut.value == pytest.approx(get_metric("f1").score(labels, cut.predict(scores)))
    assert cut.confidence == 0.9
    assert certify(plain, labels, scores, method="uniform", confidence=0.9).lower < cut.lower_limit < cut.value
    assert cut.fingerprint == plain.fingerprint  # all rows took part: none of them can certify it again
    assert "at least" in str(cut)
    assert plain.lower_limit is None


def test_a_prior_is_that_of_the_tally():
    labels, scores = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    cut = tune_threshold(labels, scores, prior=0.05)
    assert cut == ScoreTally.from_scores(labels, scores).with_prior(0.05).best_cut("f1")
    assert cut.prior_given


def test_values_within_the_rounding_of_weighted_metrics_are_ties():
    """As README and docstring say: an F1 of 1e-24 ties with 0, and one of 1e-14 is better."""
    tied, better = (tune_threshold([1, 0], [0.25, 0.75], sample_weight=[weight, 1e12]) for weight in (1e-12, 1e-2))
    assert (tied.threshold, tied.value) == (np.inf, 0)
    assert (better.threshold, better.value) == (0.25, pytest.approx(2e-14))
