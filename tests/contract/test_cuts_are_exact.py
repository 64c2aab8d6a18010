"""Every path gives the cut of trying every threshold in exact arithmetic: corners in which that is hard.

Here stand the single cases, each with what it should give; `fuzz` compares all paths with the oracle on random ones.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from surecut import (
    Confusion,
    Constraint,
    Cut,
    InfeasibleError,
    MultilabelCut,
    ScoreSketch,
    ScoreTally,
    certify,
    get_metric,
    tune_frame,
    tune_threshold,
    tune_thresholds,
)
from surecut.core.settings import using
from surecut.metrics import AM, FBeta, GMean, HMean, LinearFractional, Precision, Tversky, Utility
from surecut.sources.sketch import CoarseSketchError
from surecut.tuning.labels import tune_tallies

NPV = LinearFractional.from_cells(numerator=(0, 0, 0, 1), denominator=(0, 0, 1, 1), name="npv")
TP_OVER_FP = LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(0, 1, 0, 0), name="tp/fp")
TN_OVER_FP = LinearFractional.from_cells(numerator=(0, 0, 0, 1), denominator=(0, 1, 0, 0), name="tn/fp")

FEW_BINS = {"grouped_bytes": 0, "shipped": 8, "shipped_by_group": 8, "shipped_each": 1, "engine_bins": 64}
"""Settings with which an engine counts few rows in bins, as it does millions."""


def best_by_trying(metric, labels, scores, allowed=lambda confusion: True):
    """The best value over all thresholds, and the highest threshold that reaches it."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    found = []
    for threshold in [math.inf, *sorted(set(scores.tolist()), reverse=True)]:
        accepted = scores >= threshold
        cells = [int(((accepted == a) & (labels == b)).sum()) for a, b in ((1, 1), (1, 0), (0, 1), (0, 0))]
        confusion = Confusion(cells[0], cells[1], cells[2], cells[3])
        value = float(metric.evaluate(confusion))
        if not math.isnan(value) and allowed(confusion):
            found.append((value, accepted.tolist()))
    best = max(value for value, _ in found)
    return next((value, accepted) for value, accepted in found if value >= best - 1e-12 * abs(best))


def overlapping(rows, seed=0, share=0.3):
    random = np.random.default_rng(seed)
    labels = (random.random(rows) < share).astype(int)
    return labels, random.normal(size=rows) + labels


# --- A ratio that is 0/0 is undefined, and equal values tie ----------------------------------------------------------


class TestOwnMetricsAreExact:
    def test_a_metric_of_cells_is_undefined_where_its_formula_is(self):
        cut = tune_threshold([1, 0, 1, 1, 1], [0, 0.2, 0.4, 0.6, 0.8], metric=NPV)
        assert cut.value == 0.5
        assert cut.predict([0, 0.2, 0.4, 0.6, 0.8]).tolist() == [False, False, True, True, True]

    def test_so_is_one_of_coefficients(self):
        npv = LinearFractional(lambda p: 1 - p, -1, 0, lambda p: 1 - p, -1, 1, name="npv")
        for positives in (1, 3, 7, 100, 9_999_999):
            everything = npv.evaluate(Confusion(tp=positives, fp=10_000_000 - positives, fn=0, tn=0))
            assert math.isnan(everything)
        assert tune_threshold([1, 0, 1, 1, 1], [0, 0.2, 0.4, 0.6, 0.8], metric=npv).value == 0.5

    @pytest.mark.parametrize("seed", range(5))
    def test_equal_values_tie_among_many_rows(self, seed):
        """The best NPV is 1 below the lowest positive: of the cuts there the highest wins."""
        labels, scores = overlapping(30_000, seed)
        cut = tune_threshold(labels, scores, metric=NPV)
        assert cut.value == 1
        assert cut.interval[1] == scores[labels == 1].min()

    def test_a_constraint_is_not_met_where_its_quantity_is_undefined(self):
        constraint = Constraint(NPV, ">=", 0.9)
        with pytest.raises(InfeasibleError, match=r"the highest npv attainable is 0\.5"):
            tune_threshold([1, 0, 1, 1, 1], [0, 0.2, 0.4, 0.6, 0.8], metric="recall", constraint=constraint)

    def test_decimal_weights_are_meant_as_they_are_written(self):
        cut = tune_threshold([1, 1, 1, 0], [0.5] * 4, metric=Utility(tp=0.1, fp=-0.3))
        assert cut.predicts_nothing
        assert cut.value == 0
        assert Utility(tp=0.1, fp=-0.3).evaluate(Confusion(tp=3_000_001, fp=1_000_000, fn=0, tn=0)) == float(
            Fraction(1, 10) / 4_000_001
        )

    def test_a_metric_of_cells_is_kept_by_a_file(self, tmp_path):
        metric = LinearFractional.from_cells(numerator=(0.1, 0, 0, 0.3), denominator=(0.1, 1, 1, 0.3), name="own")
        cut = tune_threshold(*overlapping(200), metric=metric)
        cut.save(tmp_path / "cut.json")
        assert Cut.load(tmp_path / "cut.json").metric == metric

    @pytest.mark.parametrize("cells", [(1, 0, 0), (1, 0, 0, math.nan), "abcd"])
    def test_four_finite_weights_are_needed(self, cells):
        with pytest.raises(ValueError, match="must be four finite weights"):
            LinearFractional.from_cells(numerator=cells, denominator=(1, 1, 1, 1))


class TestAClassThatIsAbsent:
    @pytest.mark.parametrize("metric", [HMean(), GMean(), AM()])
    @pytest.mark.parametrize("confusion", [Confusion(0, 3, 0, 4), Confusion(3, 0, 4, 0)])
    def test_makes_rates_of_it_undefined(self, metric, confusion):
        assert math.isnan(metric.evaluate(confusion))
        many = Confusion(*(np.array([cell, 1]) for cell in (confusion.tp, confusion.fp, confusion.fn, confusion.tn)))
        assert np.isnan(metric.evaluate(many)).tolist() == [True, False]

    def test_zero_division_decides_rows_without_labels(self):
        truth, scores = np.array([[1, 0], [0, 0], [1, 1]]), np.array([[0.9, 0.1], [0.2, 0.3], [0.8, 0.7]])
        values = [
            tune_thresholds(truth, scores, metric="hmean", average="samples", zero_division=filled).value
            for filled in (0.0, 1.0)
        ]
        assert values == [pytest.approx(1 / 3), pytest.approx(1)]


# --- Weights ---------------------------------------------------------------------------------------------------------


class TestWeights:
    @pytest.mark.parametrize("scale", [1e200, 1e-200, 1e300, 1e-300])
    @pytest.mark.parametrize("metric", ["am", "kappa", "gilbert", "mcc", "gmean", "f1", "accuracy"])
    def test_equal_weights_of_any_size_change_nothing(self, metric, scale):
        labels, scores = overlapping(60, seed=3)
        plain = tune_threshold(labels, scores, metric=metric)
        weighted = tune_threshold(labels, scores, metric=metric, sample_weight=np.full(60, scale))
        assert weighted.threshold == plain.threshold
        assert weighted.value == pytest.approx(plain.value, rel=1e-12)

    def test_weights_whose_sum_is_no_float_are_refused(self):
        with pytest.raises(ValueError, match="adds up to more than a float holds"):
            tune_threshold([0, 1], [0.1, 0.2], sample_weight=[1e308, 1e308])

    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize("metric", [AM(), NPV, Precision()], ids=str)
    def test_nothing_left_is_nothing_left_on_every_path(self, metric, seed):
        """Sums of the same weights in another order differ; a cell without rows is 0 all the same."""
        random = np.random.default_rng(seed)
        rows, labels = 40, 3
        truth = (random.random((rows, labels)) < 0.3).astype(int)
        truth[0], truth[1] = 1, 0
        scores = np.round(random.random((rows, labels)) + 0.3 * truth, 1)
        weight = random.random(rows) * 10.0 ** random.uniform(-6, 0, rows)
        dense = tune_thresholds(truth, scores, metric=metric, sample_weight=weight)
        alike = tune_thresholds(truth, sparse.csr_array(scores + 1), metric=metric, sample_weight=weight)
        frame = pd.DataFrame(
            {
                "y": truth.T.ravel(),
                "s": scores.T.ravel(),
                "w": np.tile(weight, labels),
                "label": np.repeat(np.arange(labels), rows),
            }
        )
        grouped = tune_frame(frame, label="y", score="s", weight="w", by="label", metric=metric)
        tallies = [ScoreTally.from_scores(truth[:, i], scores[:, i], sample_weight=weight) for i in range(labels)]
        summed = tune_tallies(tallies, range(labels), metric=metric)
        single = [tune_threshold(truth[:, i], scores[:, i], metric=metric, sample_weight=weight) for i in range(labels)]
        expected = np.column_stack([cut.predict(scores[:, i]) for i, cut in enumerate(single)])
        for cut in (dense, grouped, summed):
            assert np.array_equal(cut.predict(scores), expected)
            assert cut.per_label == pytest.approx([one.value for one in single], rel=1e-12)
        assert np.array_equal(alike.predict(sparse.csr_array(scores + 1)).toarray(), expected)
        assert alike.per_label == pytest.approx([one.value for one in single], rel=1e-12)

    @pytest.mark.parametrize("seed", range(10))
    def test_rows_without_a_score_count_with_their_weight(self, seed):
        """The oracle of a sparse matrix is the dense one, filled with −inf, of which all rows are rejected."""
        random = np.random.default_rng(seed)
        rows = 30
        truth = (random.random((rows, 2)) < 0.4).astype(int)
        scores = np.where(random.random((rows, 2)) < 0.5, 1 + np.round(random.random((rows, 2)), 1), -np.inf)
        weight = random.random(rows) * 10.0 ** random.uniform(-12, 0, rows)
        stored = sparse.csr_array(np.where(np.isneginf(scores), 0, scores))
        cut = tune_thresholds(truth, stored, metric="accuracy", sample_weight=weight)
        for i in range(2):
            finite = tune_threshold(truth[:, i], scores[:, i], metric="accuracy", sample_weight=weight)
            if finite.threshold > -np.inf:
                assert cut.per_label[i] == pytest.approx(finite.value, rel=1e-12)
            total = [cut.confusion.positives[i], cut.confusion.negatives[i]]
            assert total == pytest.approx([weight[truth[:, i] == 1].sum(), weight[truth[:, i] == 0].sum()], rel=1e-12)

    def test_a_constraint_by_group_is_met_where_it_should_be(self):
        random = np.random.default_rng(0)
        for _ in range(40):
            rows = 24
            frame = pd.DataFrame(
                {
                    "y": (random.random(rows) < 0.4).astype(int),
                    "s": np.round(random.random(rows), 1),
                    "w": random.random(rows),
                    "g": random.integers(0, 2, rows),
                }
            )
            if frame.groupby("g")["y"].nunique().min() < 2:
                continue
            cut = tune_frame(
                frame,
                label="y",
                score="s",
                weight="w",
                by="g",
                metric="recall",
                constraint=Constraint(NPV, "<=", 0.999),
            )
            for group, part in frame.groupby("g"):
                alone = tune_threshold(
                    part["y"],
                    part["s"],
                    sample_weight=part["w"],
                    metric="recall",
                    constraint=Constraint(NPV, "<=", 0.999),
                )
                assert np.array_equal(cut[group].predict(part["s"]), alone.predict(part["s"]))


# --- Metrics that are undefined at some cuts -------------------------------------------------------------------------


class TestUndefinedCorners:
    def test_labels_try_every_score_where_predicting_nothing_is_undefined(self):
        """TN/FP is 0/0 or x/0 until a negative is accepted: the best cut's lowest score is a negative's."""
        truth, scores = [0, 0, 1], [0.9, 0.5, 0.1]
        single = tune_threshold(truth, scores, metric=TN_OVER_FP)
        assert single.value == 1
        matrix = np.array(scores)[:, None]
        for given in (matrix, sparse.csr_array(matrix)):
            cut = tune_thresholds(np.array(truth)[:, None], given, metric=TN_OVER_FP)
            assert cut.per_label.tolist() == [1]
        tallies = [ScoreTally.from_scores(truth, scores)]
        assert tune_tallies(tallies, ["a"], metric=TN_OVER_FP).per_label.tolist() == [1]

    @pytest.mark.parametrize("metric", [NPV, TP_OVER_FP, TN_OVER_FP, Precision()], ids=str)
    @pytest.mark.parametrize("seed", range(20))
    def test_the_hull_holds_their_best_cuts(self, metric, seed):
        labels, scores = overlapping(12, seed, share=0.5)
        scores = np.round(scores, 1)
        if labels.min() == labels.max():
            labels[0] = 1 - labels[0]
        tally = ScoreTally.from_scores(labels, scores)
        best = tally.best_cut(metric)
        assert tally.hull.best_cut(metric) == best
        assert (best.value, best.predict(scores).tolist()) == best_by_trying(metric, labels, scores)

    @pytest.mark.parametrize("seed", range(10))
    def test_groups_in_bins_open_what_has_no_bound(self, seed):
        labels, scores = overlapping(400, seed)
        frame = pd.DataFrame({"y": labels, "s": np.round(scores, 2), "g": np.arange(400) % 3})
        for metric in (TP_OVER_FP, NPV):
            with using(**FEW_BINS):
                cut = tune_frame(frame, label="y", score="s", by="g", metric=metric)
            for group, part in frame.groupby("g"):
                value, accepted = best_by_trying(metric, part["y"], part["s"])
                assert cut[group].value == value
                assert cut[group].predict(part["s"]).tolist() == accepted

    @pytest.mark.parametrize("seed", range(10))
    def test_groups_in_bins_keep_the_tie_rule_under_a_constraint(self, seed):
        random = np.random.default_rng(seed)
        scores = np.round(random.random(300), 2)
        frame = pd.DataFrame({"y": (scores < 0.3).astype(int), "s": scores, "g": np.arange(300) % 2})
        rule = "predicted_positive_rate<=0.05"
        with using(**FEW_BINS):
            cut = tune_frame(frame, label="y", score="s", by="g", metric="precision", constraint=rule)
        for group, part in frame.groupby("g"):
            alone = tune_threshold(part["y"], part["s"], metric="precision", constraint=rule)
            assert cut[group].predict(part["s"]).tolist() == alone.predict(part["s"]).tolist()
            assert cut[group].interval == alone.interval

    @pytest.mark.parametrize("metric", [TP_OVER_FP, NPV, TN_OVER_FP, Precision()], ids=str)
    @pytest.mark.parametrize("seed", range(10))
    def test_the_bracket_of_a_sketch_holds_the_optimum(self, metric, seed):
        labels, scores = overlapping(200, seed)
        sketch = ScoreSketch(bits=1)
        sketch.update(labels, scores)
        cut, best = sketch.best_cut(metric), tune_threshold(labels, scores, metric=metric)
        assert cut.lower - 1e-12 <= best.value <= cut.upper + 1e-12

    def test_a_sketch_does_not_call_infeasible_what_a_cut_inside_a_bin_meets(self):
        """In one bin the highest score is a positive's: precision 1 is met inside, and at no edge."""
        labels, scores = [1, 0, 0, 0], [1.4, 1.3, 1.2, 1.1]
        assert tune_threshold(labels, scores, metric="recall", constraint="precision>=0.9").value == 1
        sketch = ScoreSketch(bits=1)
        sketch.update(labels, scores)
        with pytest.raises(CoarseSketchError, match=r"inside a bin may.*bits"):
            sketch.best_cut("recall", "precision>=0.9")
        with pytest.raises(InfeasibleError):  # which no cut at all meets
            sketch.best_cut("f1", "utility(fp=-1, fn=-1)>=1")


class TestInfiniteValues:
    @staticmethod
    def odds_ratio(confusion):
        return confusion.tp * confusion.tn / (confusion.fp * confusion.fn)

    @pytest.mark.filterwarnings("error")
    def test_infinity_is_the_best_value_and_the_highest_cut_with_it_wins(self):
        labels, scores = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        cut = tune_threshold(labels, scores, metric=self.odds_ratio)
        assert cut.value == math.inf
        assert cut.predict(scores).tolist() == [False] * 5 + [True]
        assert "= inf" in str(cut)
        assert Cut.from_dict(json.loads(json.dumps(cut.to_dict()))).value == math.inf

    @pytest.mark.filterwarnings("error")
    def test_for_labels_and_groups_too(self):
        labels, scores = np.array([0, 0, 1, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
        cut = tune_thresholds(labels[:, None], scores[:, None], metric=self.odds_ratio)
        assert cut.predict(scores[:, None])[:, 0].tolist() == [False] * 5 + [True]
        frame = pd.DataFrame({"y": labels, "s": scores, "g": 0})
        grouped = tune_frame(frame, label="y", score="s", by="g", metric=self.odds_ratio)
        assert grouped.predict(scores[:, None])[:, 0].tolist() == [False] * 5 + [True]

    @pytest.mark.filterwarnings("error")
    def test_minus_infinity_is_the_worst_value_but_one(self):
        cut = tune_threshold([0, 1], [0.1, 0.2], metric=lambda confusion: -math.inf)
        assert cut.value == -math.inf
        assert cut.predicts_nothing
        undefined_above = tune_threshold([0, 1], [0.1, 0.2], metric=lambda c: -math.inf if c.tp else math.nan)
        assert undefined_above.interval == (0.1, 0.2)

    def test_a_mean_over_rows_refuses_it(self):
        truth, scores = np.array([[1, 0], [1, 0]]), np.array([[0.9, 0.1], [0.8, 0.2]])
        with pytest.raises(ValueError, match="is infinite for some rows"):
            tune_thresholds(truth, scores, metric=lambda c: np.divide(1.0, c.fp), average="samples")


# --- Scores that a double does not hold ------------------------------------------------------------------------------


class TestScoresThatADoubleDoesNotHold:
    @pytest.mark.parametrize("unit", ["s", "ns"])
    @pytest.mark.parametrize("kind", ["M8", "m8"])
    def test_dates_and_durations_are_refused(self, kind, unit):
        scores = np.array([1, 2, "NaT"], dtype=f"{kind}[{unit}]")
        for some in (scores, scores[:2]):
            with pytest.raises(TypeError, match="turn dates and durations into numbers"):
                tune_threshold([0, 1, 1][: len(some)], some)

    @pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="long doubles are doubles on this machine")
    def test_long_doubles_that_differ_beyond_a_double_are_refused(self):
        one = np.longdouble(1)
        near = one + np.finfo(np.longdouble).eps
        with pytest.raises(ValueError, match="more digits than a double"):
            tune_threshold([0, 1], np.array([one, near]))
        assert tune_threshold([0, 1], np.array([one, 2 * one])).threshold == 1.5

    def test_decimals_of_up_to_15_digits_are_taken(self):
        scores = [Decimal("0.123456789012345"), Decimal("0.123456789012346"), Decimal("1e-30")]
        assert tune_threshold([0, 1, 0], scores).predict(np.array(scores)).tolist() == [False, True, False]
        with pytest.raises(ValueError, match=r"1 number, such as 0\.12345678901234567890,"):
            tune_threshold([0, 1], [Decimal("0.12345678901234567890"), Decimal("0.2")])
        assert tune_threshold([0, 1], list(map(Decimal, [0.1, 0.2]))).value == 1  # exactly doubles, of 55 digits

    def test_so_are_decimals_of_files_and_tables(self, tmp_path):
        fine, long = (
            pa.table({"y": [0, 1, 0], "s": pa.array([Decimal(one) for one in texts], pa.decimal128(38, 25))})
            for texts in (("0.1", "0.25", "0.000000000000000000125"), ("0.1", "0.1000000000000000000000001", "0.2"))
        )
        for table in (fine, long):
            path = tmp_path / "scores.parquet"
            pq.write_table(table, path)
            for frame in (table, str(path), polars.from_arrow(table).lazy()):
                if table is fine:
                    assert tune_frame(frame, label="y", score="s").threshold == pytest.approx(0.175)
                else:
                    with pytest.raises(ValueError, match=r"1 number, such as .* more digits than a double"):
                        tune_frame(frame, label="y", score="s")

    def test_in_matrices_too(self):
        scores = np.array([[Decimal("0.12345678901234567890")], [Decimal("0.2")]])
        with pytest.raises(ValueError, match="more digits than a double"):
            tune_thresholds([[0], [1]], scores)


# --- Constraints are kept as they are --------------------------------------------------------------------------------


class TestConstraintsAreKept:
    def test_to_the_last_bit(self, tmp_path):
        cut = tune_threshold(*overlapping(500), metric="recall", constraint="precision>=0.9999999")
        assert [str(one) for one in cut.constraints] == ["precision>=0.9999999"]
        cut.save(tmp_path / "cut.json")
        again = Cut.load(tmp_path / "cut.json")
        assert again.constraints == cut.constraints == (Constraint(Precision(), ">=", 0.9999999),)
        assert again == cut

    @pytest.mark.parametrize(
        "constraint",
        [
            Constraint(Tversky(0.3, 0.7), ">=", 0.2),
            Constraint(LinearFractional.from_cells(numerator=(1, 0, 0, 0), denominator=(1, 1, 1, 0)), ">=", 0.1),
            Constraint(FBeta(1.5), ">=", 0.1),
            "tversky(0.3, 0.7)>=0.2",
            "fpr<=0.9",
        ],
        ids=str,
    )
    def test_with_their_parameters_also_when_they_are_certified(self, constraint, tmp_path):
        cut = tune_threshold(*overlapping(400), metric="recall", constraint=constraint)
        cut.save(tmp_path / "cut.json")
        again = Cut.load(tmp_path / "cut.json")
        assert again.constraints == cut.constraints
        (promise,) = certify(again, *overlapping(400, seed=1)).constraints
        assert promise.constraint == str(cut.constraints[0])

    def test_of_many_labels(self, tmp_path):
        truth = np.column_stack([overlapping(300, seed)[0] for seed in (0, 1)])
        scores = np.column_stack([overlapping(300, seed)[1] for seed in (0, 1)])
        rule = Constraint(Tversky(0.3, 0.7), ">=", 0.1234567)
        cut = tune_thresholds(truth, scores, metric="recall", constraint=rule)
        for name in ("cut.json", "cut.parquet"):
            cut.save(tmp_path / name)
            again = MultilabelCut.load(tmp_path / name)
            assert again.constraints == (rule,)
            assert again[0].constraints == (rule,)

    def test_a_sense_that_is_none_is_refused(self, tmp_path):
        cut = tune_threshold(*overlapping(50), metric="recall", constraint="precision>=0.3")
        document = cut.to_dict()
        document["constraints"][0]["sense"] = "=="
        with pytest.raises(ValueError, match="must be >= or <="):
            Cut.from_dict(document)

    def test_text_and_objects_say_the_same(self):
        labels, scores = overlapping(100)
        rule = get_metric("utility(tp=1, fp=-2)")
        by_text = tune_threshold(labels, scores, metric="recall", constraint="utility(tp=1, fp=-2)>=0.01")
        assert by_text == tune_threshold(labels, scores, metric="recall", constraint=Constraint(rule, ">=", 0.01))


class TestSharedThresholds:
    def test_a_label_that_takes_the_shared_threshold_is_named_where_its_value_counts_0(self):
        stored = sparse.csr_array(([0.5], ([0], [1])), shape=(1, 2))
        assert tune_thresholds([[1, 1]], stored, metric="precision").shared == {
            0: "the metric is undefined at every cut"
        }

    def test_and_where_a_denominator_vanishes_at_all_of_its_cuts(self):
        metric = LinearFractional.from_cells(numerator=(0, 0, 0, 1), denominator=(0, 0, 1, 0), name="tn/fn")
        cut = tune_thresholds([[0, 0], [1, 0], [0, 0]], [[0.1, 0.2], [0.3, 0.4], [0.2, 0.6]], metric=metric)
        assert list(cut.shared) == [1]
        assert cut.thresholds[1] == cut.shared_threshold


class TestParametersOfAnyKind:
    """Metrics take what Python and NumPy call numbers, of any size, and are saved."""

    @pytest.mark.parametrize("scale", [1e14, 1e17, 1e19, 1e300, 1e-300])
    def test_a_ratio_does_not_depend_on_the_scale_of_its_weights(self, scale):
        labels, scores = overlapping(300)
        scaled = LinearFractional.from_cells(numerator=(scale, 0, 0, 0), denominator=(scale, scale, scale, 0))
        cut = tune_threshold(labels, scores, metric=scaled)
        assert (cut.value, cut.threshold) == pytest.approx(
            (lambda one: (one.value, one.threshold))(tune_threshold(labels, scores, metric="jaccard")), rel=1e-12
        )

    def test_so_do_whole_weights_beyond_64_bits(self):
        labels, scores = overlapping(300)
        large, small = (tune_threshold(labels, scores, metric=Utility(tp=k, fp=-k)) for k in (10**17, 1))
        assert large.threshold == small.threshold
        assert large.value == pytest.approx(1e17 * small.value, rel=1e-12)

    @pytest.mark.parametrize(
        "metric",
        [
            Utility(fp=np.int64(-2), fn=np.float32(-5)),
            FBeta(np.float32(2)),
            FBeta(np.int64(2)),
            Tversky(np.float32(0.5), np.int8(1)),
            Utility(fp=Fraction(-1, 3), fn=-1),
        ],
        ids=repr,
    )
    def test_numbers_of_other_kinds_are_taken_and_saved(self, metric, tmp_path):
        cut = tune_threshold(*overlapping(200), metric=metric)
        cut.save(tmp_path / "cut.json")
        assert Cut.load(tmp_path / "cut.json").metric == metric
        assert certify(cut, *overlapping(200, seed=1)).lower <= cut.value + 1

    @pytest.mark.parametrize("beta", [1e200, 1e-200, np.inf])
    def test_a_beta_whose_square_is_no_number_is_refused(self, beta):
        with pytest.raises(ValueError, match="beta must fulfil"):
            FBeta(beta)

    @pytest.mark.filterwarnings("error")
    def test_a_coefficient_is_asked_for_the_prior_of_the_rows_only_where_it_is_defined(self):
        labels, scores = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
        expected = tune_threshold(labels, scores, metric="jaccard")
        for prior in (lambda p: {True: p}[0 < p < 1], lambda p: p + 0 * np.log(p) * np.log(1 - p)):
            own = LinearFractional(prior, 0, -1, prior, 1, 0)
            assert tune_threshold(labels, scores, metric=own).value == expected.value

    def test_a_coefficient_that_bends_is_not_taken_for_a_line(self):
        bent = LinearFractional(lambda p: p if p >= 0.05 else 0.0, 0, 0, 1, 0, 0, name="bent")
        assert bent.value(fp=0.0, fn=0.0, prior=0.02) == 0
        assert bent.value(fp=0.0, fn=0.0, prior=0.5) == 0.5

    def test_parameters_of_constraints_are_spelled_in_full(self):
        labels, scores = overlapping(100)
        rule = Constraint(Tversky(1 / 3, 2 / 3), ">=", 0.1)
        by_text = tune_threshold(labels, scores, metric="recall", constraint=str(rule))
        assert by_text.constraints == (rule,)

    def test_a_function_gets_no_promise(self):
        with pytest.raises(ValueError, match="a function of which nothing is known"):
            tune_threshold(*overlapping(300), constraint=(lambda c: np.cos(c.fp), ">=", 0.0), confidence=0.95)
