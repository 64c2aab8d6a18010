"""Only rows that took part neither in training nor in tuning certify a cut, and weights mean what was said."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sklearn
from scipy import stats
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupShuffleSplit, RepeatedStratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

from surecut import (
    Cut,
    MultilabelCut,
    PlugInClassifier,
    ScoreTally,
    certify,
    tune_frame,
    tune_threshold,
    tune_thresholds,
)
from surecut.certificates.drift import check_drift
from surecut.core.settings import using
from surecut.metrics import Accuracy
from surecut.overlap import Overlap, overlap

RECOGNISED = r"tuned the cut|trained the model|pooled from folds"
UNDETERMINED = r"cannot be determined.*held_out=True"


def draw(rng, rows):
    score = 1 / (1 + np.exp(1.5 - 2 * rng.normal(size=rows)))
    return rng.random(rows) < score, score


@pytest.fixture(scope="module")
def tuned():
    return draw(np.random.default_rng(0), 1000)


@pytest.fixture(scope="module")
def other():
    return draw(np.random.default_rng(1), 1000)


# --- The validation rows, however they come back ---------------------------------------------------------------------


def one_more(y, s):
    return np.append(y, True), np.append(s, 0.123456789)


def one_less(y, s):
    return y[:-1], s[:-1]


def single(y, s):
    return y, s.astype(np.float32)


def three_digits(y, s):
    return y, np.round(s, 3)


def four_significant_digits(y, s):
    return y, np.array([float(f"{score:.4g}") for score in s])


def doubled(y, s):
    return np.repeat(y, 2), np.repeat(s, 2)


def subset(y, s):
    return y[::3], s[::3]


def half_and_others(y, s):
    others = draw(np.random.default_rng(5), 200)
    return np.concatenate((y[:200], others[0])), np.concatenate((s[:200], others[1]))


def half_precision(y, s):
    return y, s.astype(np.float16)


def rounded_and_one_other(y, s):
    return np.append(y, True), np.append(s.round(4), 0.123456789)


def scored_again(y, s):
    """A model that scores the same rows in another batch may differ in the last digits."""
    return y[::-1], s[::-1] * (1 + 1e-14)


VARIANTS = [
    one_more,
    one_less,
    single,
    three_digits,
    four_significant_digits,
    doubled,
    subset,
    half_and_others,
    half_precision,
    rounded_and_one_other,
    scored_again,
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.__name__)
def test_validation_rows_that_were_changed_a_little_are_recognised(variant, tuned, tmp_path):
    y, s = (column[:400] for column in tuned)
    cut = tune_threshold(y, s)
    cut.save(tmp_path / "cut.json")
    for one in (cut, Cut.load(tmp_path / "cut.json")):
        with pytest.raises(ValueError, match=RECOGNISED):
            certify(one, *variant(y, s))
        with pytest.raises(ValueError, match=RECOGNISED):
            certify(one, *variant(y, s), method="bootstrap")
    assert certify(cut, *variant(y, s), method="uniform").method == "uniform"


@pytest.mark.parametrize("variant", [single, three_digits], ids=lambda one: one.__name__)
def test_it_does_not_matter_which_side_was_rounded(variant, tuned):
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(tune_threshold(*variant(*tuned)), *tuned)


def test_a_weight_of_zero_does_not_make_rows_others(tuned):
    weight = np.ones(1000)
    weight[17] = 0
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(tune_threshold(*tuned), *tuned, sample_weight=weight, weights="counts")


def test_a_part_of_the_validation_rows_is_recognised(tuned, other):
    both = tuple(np.concatenate(columns) for columns in zip(tuned, other, strict=True))
    for part in (tuned, other):
        with pytest.raises(ValueError, match=RECOGNISED):
            certify(tune_threshold(*both), *part)


def test_the_very_rows_are_recognised_however_few_they_are():
    y, s = [0, 0, 1, 1], [0.125, 0.5, 0.375, 0.75]
    with pytest.raises(ValueError, match="validation rows"):
        certify(tune_threshold(y, s), y[::-1], s[::-1])


def test_rows_that_were_searched_are_recognised():
    rng = np.random.default_rng(3)
    y, s = draw(rng, 60_000)  # searched, not sorted
    cut = tune_threshold(y, s)
    assert len(cut.seen[0]) == 256
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(cut, y[1:], s[1:])
    assert certify(cut, *draw(rng, 5000)).lower < cut.value


@pytest.mark.parametrize("engine", ["pyarrow", "files", "dask"])
def test_rows_that_an_engine_read_or_counted_are_recognised(engine, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(4)
    y, s = draw(rng, 300_000 if engine != "dask" else 3000)  # in more than one batch
    frame = pandas.DataFrame({"y": y.astype(int), "s": s})
    if engine == "pyarrow":
        import pyarrow

        frame = pyarrow.Table.from_pandas(frame)
    elif engine == "files":
        frame.to_parquet(tmp_path / "rows.parquet")
        frame = str(tmp_path / "rows.parquet")
    else:
        frame = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
    cut = tune_frame(frame, label="y", score="s")
    assert len(cut.seen[0]) > 100
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(cut, y[1:], s[1:])
    assert certify(cut, *draw(rng, 3000)).lower < cut.value


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("head", [1 << 20, 1000], ids=["in memory", "in batches"])
def test_the_same_rows_in_any_order_make_the_same_cut(head, ties, tmp_path):
    """Engines read batches in any order, and workers finish in any order."""
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(5)
    y, s = draw(rng, 5000)
    s = np.where(s < 0.3, 0.0, s) if ties else s
    cuts = []
    for number in range(3):
        order = rng.permutation(5000)
        rows = pyarrow.table({"y": y[order], "s": s[order]})
        with using(head=head, batch=512):
            cuts.append(tune_frame(rows, label="y", score="s"))
        cuts[-1].save(tmp_path / f"{number}.json")
    assert len({(tmp_path / f"{number}.json").read_text() for number in range(3)}) == 1
    assert len(cuts[0].seen[0]) == 256
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(cuts[0], y[1:], s[1:])
    assert certify(cuts[0], *draw(rng, 3000)).rows == 3000


def test_a_method_that_is_chosen_for_a_picture_is_one_that_holds(tuned, other):
    plots = pytest.importorskip("surecut.plots")
    pytest.importorskip("matplotlib").use("agg")
    cut = tune_threshold(*tuned)
    assert plots.CertificateDisplay.from_cut(cut, *one_less(*tuned)).certificate.method == "uniform"
    assert plots.CertificateDisplay.from_cut(cut, *other).certificate.method == "holdout"


def test_a_drift_check_takes_changed_validation_rows_for_no_held_out_ones(tuned, other):
    cut, now = tune_threshold(*tuned), ScoreTally.from_scores(*other)
    changed = ScoreTally.from_scores(*one_less(*tuned))
    careful = check_drift(cut, tally=now, reference=changed).value.then_limits
    naive = check_drift(cut.with_sample(seen=()), tally=now, reference=changed).value.then_limits
    assert careful[0] < naive[0] < naive[1] < careful[1]


# --- Rows that trained the model -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(2400, n_features=20, n_informative=5, weights=[0.7], flip_y=0.1, random_state=1)
    return (X[:1200], y[:1200]), (X[1200:], y[1200:])


@pytest.mark.parametrize("cv", [5, 1 / 3])
@pytest.mark.parametrize("method", ["holdout", "uniform", "bootstrap"])
def test_a_models_scores_of_its_training_rows_are_recognised(cv, method, problem, tmp_path):
    (X, y), (new_X, new_y) = problem
    model = PlugInClassifier(LogisticRegression(), cv=cv, random_state=0).fit(X, y)
    scores = model.predict_proba(X)[:, 1]
    model.cut_.save(tmp_path / "cut.json")
    for cut in (model.cut_, Cut.load(tmp_path / "cut.json"), model.retarget("f2").cut_):
        for change in (slice(None), slice(1, None)):
            with pytest.raises(ValueError, match=r"trained the model.*kept|trained the model.*neither"):
                certify(cut, y[change], scores[change], method=method)
        with pytest.raises(ValueError, match="trained the model"):
            certify(cut, y, np.round(scores, 4), method=method)
        assert certify(cut, new_y, model.predict_proba(new_X)[:, 1], method=method).rows == 1200


def test_a_models_validation_rows_alone_certify_by_uniform(problem):
    (X, y), _ = problem
    model = PlugInClassifier(LogisticRegression(), cv=1 / 3, random_state=0).fit(X, y)
    (_, tune), *_ = model._splitter(y).split(X, y)
    scores = model.predict_proba(X[tune])[:, 1]
    assert certify(model.cut_, y[tune], scores, method="uniform").rows == 400
    with pytest.raises(ValueError, match="validation rows"):
        certify(model.cut_, y[tune], scores)


@pytest.mark.parametrize("method", ["holdout", "uniform", "bootstrap"])
@pytest.mark.parametrize("cv", [5, 1 / 3])
def test_a_tree_that_knows_its_training_rows_by_heart_is_not_certified_on_them(cv, method):
    """Its scores are 0 and 1, and so are those of other rows: nothing can be told, and that is said."""
    X, y = make_classification(2000, flip_y=0.2, weights=[0.7], random_state=0)
    tree = DecisionTreeClassifier(random_state=0)
    model = PlugInClassifier(tree, cv=cv, random_state=0).fit(X[:1000], y[:1000])
    with pytest.raises(ValueError, match="cannot be determined"):
        certify(model.cut_, y[:1000], model.predict_proba(X[:1000])[:, 1], method=method)
    assert certify(model.cut_, y[1000:], model.predict_proba(X[1000:])[:, 1], held_out=True).lower < 0.7


@pytest.mark.parametrize("levels", [1, 2, 5, 9])
def test_few_levels_ask_for_the_callers_word(levels, tuned):
    y, s = tuned[0], np.floor(levels * tuned[1])
    cut = tune_threshold(y, s)
    with pytest.raises(ValueError, match="cannot be determined"):
        certify(cut, y[1:], s[1:])


def test_a_fitted_model_says_nothing_of_its_training_rows(problem):
    (X, y), (new_X, new_y) = problem
    model = PlugInClassifier(LogisticRegression().fit(X, y), cv="prefit").fit(new_X, new_y)
    assert [sample.role for sample in model.cut_.seen] == ["validation"]


def test_other_rows_must_be_told_from_those_of_an_out_of_fold_cut(problem):
    (X, y), (new_X, new_y) = problem
    coarse = (X > 0)[:, :3].astype(float)
    model = PlugInClassifier(LogisticRegression(), cv=5).fit(coarse, y)
    new = new_y, model.predict_proba((new_X > 0)[:, :3].astype(float))[:, 1]
    for method in ("holdout", "uniform", "bootstrap"):
        with pytest.raises(ValueError, match=UNDETERMINED):
            certify(model.cut_, *new, method=method)
        assert certify(model.cut_, *new, method=method, held_out=True).rows == 1200
        with pytest.raises(ValueError, match="pooled from folds"):
            certify(model.cut_, *new, method=method, held_out=False)


def test_reference_rows_of_a_drift_check_did_not_train_the_model(problem):
    (X, y), (new_X, new_y) = problem
    model = PlugInClassifier(LogisticRegression(), cv=5).fit(X, y)
    seen = ScoreTally.from_scores(y, model.predict_proba(X)[:, 1])
    new = ScoreTally.from_scores(new_y, model.predict_proba(new_X)[:, 1])
    with pytest.raises(ValueError, match="reference rows trained the model"):
        check_drift(model.cut_, tally=new, reference=seen)


# --- Many labels -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labelled():
    _, Y = make_multilabel_classification(1200, n_features=12, n_classes=6, random_state=0)
    rng = np.random.default_rng(0)
    return Y, np.clip(Y * 0.3 + rng.random(Y.shape) * 0.7, 0, 1)


@pytest.mark.parametrize("average", ["macro", "micro", "samples"])
def test_the_validation_rows_of_many_labels_are_recognised(average, labelled, tmp_path):
    Y, S = (matrix[:600] for matrix in labelled)
    cut = tune_thresholds(Y, S, average=average)
    for suffix in ("json", "parquet"):
        cut.save(tmp_path / f"cut.{suffix}")
    for one in (cut, *(MultilabelCut.load(tmp_path / f"cut.{suffix}") for suffix in ("json", "parquet"))):
        twice = Y.repeat(2, axis=0), S.repeat(2, axis=0)
        for rows in ((Y[1:], S[1:]), (Y, S.astype(np.float32)), (Y, np.round(S, 3)), twice):
            with pytest.raises(ValueError, match=RECOGNISED):
                certify(one, *rows)
        assert certify(one, *(matrix[600:] for matrix in labelled)).rows == 600
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(cut[2], Y[1:, 2], S[1:, 2])


def test_tallies_and_sparse_matrices_of_many_labels_are_recognised(labelled):
    from scipy import sparse

    Y, S = (matrix[:600] for matrix in labelled)
    cut = tune_thresholds(sparse.csr_array(Y), sparse.csr_array(np.where(S > 0.2, S, 0)))
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(cut, sparse.csr_array(Y[1:]), sparse.csr_array(np.where(S > 0.2, S, 0)[1:]))
    cut = tune_thresholds(Y, S)
    tallies = [ScoreTally.from_scores(Y[1:, i], S[1:, i]) for i in range(6)]
    with pytest.raises(ValueError, match=RECOGNISED):
        certify(cut, tally=tallies)
    assert certify(cut, tally=tallies, method="uniform").lower < cut.value


def test_coarse_scores_of_many_labels_ask_for_the_callers_word(labelled):
    Y, S = labelled[0], np.round(labelled[1], 1)
    cut = tune_thresholds(Y[:600], S[:600])
    with pytest.raises(ValueError, match=UNDETERMINED):
        certify(cut, Y[600:], S[600:])
    said = certify(cut, Y[600:], S[600:], held_out=True)
    assert any("caller's word" in assumption for assumption in said.assumptions)


def test_training_rows_of_many_labels_are_recognised(labelled):
    X, Y = make_multilabel_classification(800, n_features=12, n_classes=4, random_state=0)
    for cv in (3, 1 / 3):
        inner = OneVsRestClassifier(LogisticRegression())
        model = PlugInClassifier(inner, cv=cv, random_state=0).fit(X[:400], Y[:400])
        for method in ("holdout", "uniform", "bootstrap"):
            with pytest.raises(ValueError, match="trained the model"):
                certify(model.cut_, Y[:400], model.predict_proba(X[:400]), method=method)
        assert certify(model.cut_, Y[400:], model.predict_proba(X[400:])).rows == 400


# --- Other rows, and the caller's word -------------------------------------------------------------------------------


def rounded(digits):
    return lambda s: np.round(s, digits)


KINDS = {
    "continuous": lambda s: s,
    "float32": lambda s: s.astype(np.float32),
    "three digits": rounded(3),
    "six digits": rounded(6),
    "many zeros": lambda s: np.where(s < 0.2, 0.0, s),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tuning", "certifying"), [(300, 300), (300, 2000), (2000, 300)])
def test_other_rows_are_hardly_ever_taken_for_seen_ones(kind, tuning, certifying):
    """At most one in two hundred draws; the simulations in `tests/guarantees` have more of them."""
    rng, repetitions, refused = np.random.default_rng(11), 40, 0
    for _ in range(repetitions):
        (y, s), (new_y, new_s) = draw(rng, tuning), draw(rng, certifying)
        seen = ScoreTally.from_scores(y, KINDS[kind](s)).sample.seen[0]
        refused += overlap(seen, {0: ScoreTally.from_scores(new_y, KINDS[kind](new_s))}) is not Overlap.NONE
    assert refused <= stats.binom.ppf(0.999, repetitions, 0.005)


def test_rows_of_a_few_levels_are_not_taken_for_seen_ones():
    """Scores as after isotonic regression: nearly all are tied, and the few that are not say nothing of chance."""
    rng = np.random.default_rng(1)
    for _ in range(400):
        levels, shares = np.sort(rng.random(30)), rng.dirichlet(np.full(30, 0.3))
        s, new_s = (rng.choice(levels, size=3000, p=shares) for _ in range(2))
        seen = ScoreTally.from_scores(rng.random(3000) < s, s).sample.seen[0]
        assert overlap(seen, {0: ScoreTally.from_scores(rng.random(3000) < new_s, new_s)}) is not Overlap.SHARED


@pytest.mark.parametrize("rows", [8, 16, 19])
def test_a_few_rows_without_ties_are_told_apart_or_recognised(rows, tuned, other):
    (y, s), (new_y, new_s) = tuned, other
    seen = ScoreTally.from_scores(y[:rows], s[:rows]).sample.seen[0]
    assert overlap(seen, {0: ScoreTally.from_scores(new_y[:rows], new_s[:rows])}) is Overlap.NONE
    assert overlap(seen, {0: ScoreTally.from_scores(y[1:rows], s[1:rows])}) is (
        Overlap.SHARED if rows > 10 else Overlap.UNKNOWN
    )


def test_scores_that_many_rows_share_say_nothing(other):
    """A score of 0 that most of the validation rows have and few of the new ones: others all the same."""
    rng = np.random.default_rng(2)
    y, s = draw(rng, 1000)
    new_y, new_s = other
    cut = tune_threshold(y, np.where(rng.random(1000) < 0.9, 0.0, s))
    assert certify(cut, new_y, np.where(rng.random(1000) < 0.01, 0.0, new_s)).rows == 1000


@pytest.mark.parametrize("method", ["holdout", "bootstrap"])
def test_coarse_scores_ask_for_the_callers_word(method, tuned, other):
    (y, s), (new_y, new_s) = tuned, other
    cut = tune_threshold(y, np.round(s, 1))
    new = new_y, np.round(new_s, 1)
    with pytest.raises(ValueError, match=UNDETERMINED):
        certify(cut, *new, method=method)
    certificate = certify(cut, *new, method=method, held_out=True)
    assert any("by the caller's word" in assumption for assumption in certificate.assumptions)
    assert certify(cut, *new, method="uniform").lower < certificate.lower  # valid on any rows, so it need not be told


def test_a_person_overrules_what_was_recognised(tuned):
    cut = tune_threshold(*tuned)
    certificate = certify(cut, *one_less(*tuned), held_out=True)
    assert certificate.method == "holdout"
    assert "these rows did not tune the cut" not in certificate.assumptions
    assert "these rows took part neither in training nor in tuning, by the caller's word" in certificate.assumptions


def test_a_person_says_that_rows_tuned_the_cut(tuned):
    cut = tune_threshold(*tuned)
    with pytest.raises(ValueError, match="validation rows"):
        certify(cut, *one_less(*tuned), held_out=False)
    corrected = certify(cut, *one_less(*tuned), held_out=False, method="bootstrap")
    assert corrected.lower == pytest.approx(certify(cut, *tuned, method="bootstrap").lower, abs=0.005)
    assert certify(cut, *tuned, held_out=False, method="uniform") == certify(cut, *tuned, method="uniform")
    with pytest.raises(ValueError, match="held_out= must be True, False or None"):
        certify(cut, *tuned, held_out="yes")


@pytest.mark.parametrize(
    "spoiled",
    [
        {"seen": None},
        {"seen": {"role": "validation"}},
        {"seen": [3]},
        {"seen": [{"role": "other", "scores": "0.5", "classes": "1"}]},
        {"seen": [{"role": "training", "scores": [0.5], "classes": "1"}]},
        {"seen": [{"role": "training", "scores": "0.5 0.6", "classes": "1"}]},
        {"seen": [{"role": "training", "scores": "nan", "classes": "1"}]},
        {"seen": [{"role": "training", "scores": "half", "classes": "1"}]},
        {"seen": [{"role": "training", "scores": "0.5", "classes": "2"}]},
        {"seen": [{"role": "training", "scores": "0.5", "classes": "1", "labels": "7"}]},
    ],
)
def test_a_file_with_a_spoiled_sample_is_refused(spoiled, tuned, tmp_path):
    path = tmp_path / "cut.json"
    tune_threshold(*tuned).save(path)
    document = json.loads(path.read_text())
    document["tuning"] |= spoiled
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is not a saved cut"):
        Cut.load(path)


def test_a_saved_sample_is_the_sample(tuned, tmp_path):
    cut = tune_threshold(*tuned)
    cut.save(tmp_path / "cut.json")
    (then,), (now,) = cut.seen, Cut.load(tmp_path / "cut.json").seen
    assert np.array_equal(then.scores, now.scores)
    assert np.array_equal(then.is_positive, now.is_positive)
    assert (tmp_path / "cut.json").stat().st_size < 10_000


# --- Splits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [None, 0.95])
def test_rows_that_train_do_not_tune(confidence, problem):
    X, y = problem[0]
    everything = np.arange(len(y))
    for split in ((everything, everything), (everything[:700], everything[600:]), (everything[:-5], [-1, -6])):
        with pytest.raises(ValueError, match="both train the model and tune"):
            PlugInClassifier(LogisticRegression(), cv=[split], confidence=confidence).fit(X, y)


def test_a_row_that_tunes_twice_certifies_nothing(problem):
    X, y = problem[0]
    split = np.arange(600), np.tile(np.arange(600, 1200), 2)
    with pytest.raises(ValueError, match="2 times"):
        PlugInClassifier(LogisticRegression(), cv=[split], confidence=0.95).fit(X, y)
    assert PlugInClassifier(LogisticRegression(), cv=[split]).fit(X, y).cut_.rows == 1200


def test_folds_that_are_repeated_still_tune(problem):
    X, y = problem[0]
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    assert PlugInClassifier(LogisticRegression(), cv=folds).fit(X, y).cut_.rows == 2400


def test_masks_are_splits_too(problem):
    X, y = problem[0]
    train = np.arange(1200) < 700
    assert PlugInClassifier(LogisticRegression(), cv=[(train, ~train)]).fit(X, y).cut_.rows == 500


def grouped_rows(rng, groups, size=10):
    """Rows of a group have the group's effect in common, which shifts both scores and labels."""
    group = np.repeat(np.arange(groups), size)
    effect = rng.normal(size=groups)[group]
    X = np.column_stack((rng.normal(size=len(group)) * 0.3 + effect, rng.normal(size=len(group))))
    y = (rng.normal(size=groups)[group] + effect > 0.3).astype(int)
    return X, y, group


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_stay_whole_and_are_what_is_certified(routing):
    X, y, group = grouped_rows(np.random.default_rng(0), 200)
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.5, random_state=0)
    model = PlugInClassifier(LogisticRegression(), cv=splitter, confidence=0.95, random_state=0)
    model.fit(X, y, groups=group)
    assert any("groups are a random sample" in assumption for assumption in model.certificate_.assumptions)
    assert not any("caller's word" in assumption for assumption in model.certificate_.assumptions)
    assert model.certificate_.rows == 750  # three quarters of the 100 groups that are kept from training
    assert model.cut_.rows == 250
    (_, tune), *_ = splitter.split(X, y, group)
    certifying = model._kept_aside(y[tune], group[tune])
    assert not set(group[tune][certifying]) & set(group[tune][~certifying])
    rows = tune[certifying]
    again = certify(model.cut_, y[rows], model.predict_proba(X[rows])[:, 1], groups=group[rows])
    assert again.lower == model.certificate_.lower


def test_groups_on_both_sides_of_a_split_are_refused(routing):
    X, y, group = grouped_rows(np.random.default_rng(0), 60)

    class Careless(GroupShuffleSplit):
        def split(self, X, y=None, groups=None):
            yield np.arange(0, 600, 2), np.arange(1, 600, 2)

    model = PlugInClassifier(LogisticRegression(), cv=Careless(n_splits=1), confidence=0.95)
    with pytest.raises(ValueError, match="60 groups have rows on both sides"):
        model.fit(X, y, groups=group)


def test_groups_with_a_constraint_or_weights_are_refused_before_anything_is_trained(routing):
    X, y, group = grouped_rows(np.random.default_rng(0), 60)
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.5, random_state=0)
    inner = LogisticRegression().set_fit_request(sample_weight=True)
    for parameters, weight in (({"constraint": "precision>=0.5"}, None), ({"weights": "counts"}, np.full(600, 2))):
        model = PlugInClassifier(inner, cv=splitter, confidence=0.95, **parameters)
        with pytest.raises(ValueError, match="cannot be certified here with"):
            model.fit(X, y, sample_weight=weight, groups=group)


# --- Weights ---------------------------------------------------------------------------------------------------------

COUNTS = r"weights='counts' if a weight of 2 means the row twice.*bootstrap"


@pytest.fixture(scope="module")
def euros(other):
    return np.where(other[0], np.random.default_rng(6).integers(1, 500, 1000), 5)


@pytest.mark.parametrize("method", ["holdout", "uniform"])
def test_whole_numbers_are_not_taken_for_counts(method, tuned, other, euros):
    cut = tune_threshold(*tuned)
    tally = ScoreTally.from_scores(*other, sample_weight=euros)
    for rows in ({"y_true": other[0], "y_score": other[1], "sample_weight": euros}, {"tally": tally}):
        with pytest.raises(ValueError, match=COUNTS):
            certify(cut, **rows, method=method)
        with pytest.raises(ValueError, match=r"importance.*bootstrap"):
            certify(cut, **rows, method=method, weights="importance")
        assert certify(cut, **rows, method=method, weights="counts").rows == euros.sum()
        for meaning in (None, "importance"):
            assert certify(cut, **rows, method="bootstrap", weights=meaning).rows == 1000


def test_counts_are_whole(tuned, other):
    cut = tune_threshold(*tuned)
    for method in ("holdout", "uniform", "bootstrap"):
        with pytest.raises(ValueError, match=r"not numbers of rows, such as 0\.5"):
            certify(cut, *other, sample_weight=np.full(1000, 0.5), weights="counts", method=method)
    halves = ScoreTally.from_scores(np.repeat(other[0], 4), np.repeat(other[1], 4), sample_weight=np.full(4000, 0.5))
    with pytest.raises(ValueError, match="not numbers of rows"):  # though their sums, 2 and 1, are whole
        certify(cut, tally=halves, weights="counts")
    with pytest.raises(ValueError, match="weights must be one of 'counts', 'importance'"):
        certify(cut, *other, weights="costs")


def test_weights_of_one_need_no_word(tuned, other):
    cut = tune_threshold(*tuned)
    plain = certify(cut, *other)
    assert certify(cut, *other, sample_weight=np.ones(1000)) == plain
    assert certify(cut, tally=ScoreTally.from_scores(*other, sample_weight=np.ones(1000))) == plain
    groups = np.arange(1000) // 4
    assert certify(cut, *other, sample_weight=np.ones(1000), groups=groups) == certify(cut, *other, groups=groups)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), "1,000 rows, 3 weights"),
        (np.ones((1000, 1)), "one-dimensional"),
        (1.0, "one column"),
        (np.ones(0), "empty"),
        (np.full(1000, np.nan), "finite"),
    ],
    ids=["too few", "two-dimensional", "a single number", "none", "nan"],
)
def test_weights_are_checked_before_those_of_one_are_left_out(weight, message, tuned, other, labelled):
    cut = tune_threshold(*tuned)
    for method in ("holdout", "uniform", "bootstrap"):
        with pytest.raises(ValueError, match=message):
            certify(cut, *other, sample_weight=weight, method=method)
    Y, S = labelled
    with pytest.raises(ValueError, match=f"{message}|600 rows"):
        certify(tune_thresholds(Y[:600], S[:600]), Y[600:], S[600:], sample_weight=weight)
    with pytest.raises(ValueError, match="either rows or their tally"):
        certify(cut, tally=ScoreTally.from_scores(*other), sample_weight=weight)


def test_weights_that_are_passed_as_their_meaning_are_an_error(tuned, other):
    for attempt in (
        lambda: certify(tune_threshold(*tuned), *other, weights=np.ones(1000)),
        lambda: tune_threshold(*tuned, weights=np.ones(1000)),
        lambda: PlugInClassifier(LogisticRegression(), weights=np.ones(1000)).fit(tuned[1][:, None], tuned[0]),
    ):
        with pytest.raises(TypeError, match="sample_weight="):
            attempt()


def test_counts_are_rows_by_every_method(tuned, other):
    cut = tune_threshold(*tuned)
    counts = np.random.default_rng(8).integers(1, 4, 1000)
    repeated = tuple(np.repeat(column, counts) for column in other)
    for method in ("holdout", "uniform", "bootstrap"):
        counted = certify(cut, *other, sample_weight=counts, weights="counts", method=method)
        assert counted == certify(cut, *repeated, method=method, held_out=None)


def test_constraints_are_not_promised_from_weights_that_nobody_explained(tuned, euros):
    promised = {"constraint": "precision>=0.5", "confidence": 0.9, "sample_weight": euros}
    with pytest.raises(ValueError, match=COUNTS):
        tune_threshold(*tuned, **promised)
    with pytest.raises(ValueError, match="importance"):
        tune_threshold(*tuned, **promised, weights="importance")
    cut = tune_threshold(*tuned, **promised, weights="counts")
    assert cut.rows == euros.sum()
    with pytest.raises(ValueError, match="validation rows"):
        certify(cut, *tuned, sample_weight=euros, weights="counts")
    with pytest.raises(ValueError, match="weights must be one of"):
        tune_threshold(*tuned, weights="rows")


def test_a_classifier_asks_what_its_weights_mean_before_it_trains(problem):
    X, y = problem[0]
    weight = np.random.default_rng(0).integers(1, 3, len(y))

    class NeverTrained(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError

    for meaning, message in ((None, COUNTS), ("importance", "importance"), ("rows", "weights must be one of")):
        with pytest.raises(ValueError, match=message):
            PlugInClassifier(NeverTrained(), cv=1 / 2, confidence=0.9, weights=meaning).fit(X, y, sample_weight=weight)
    model = PlugInClassifier(LogisticRegression(), cv=1 / 2, confidence=0.9, weights="counts", random_state=0)
    model.fit(X, y, sample_weight=weight)
    assert 450 < model.certificate_.rows < 900
    assert PlugInClassifier(LogisticRegression(), cv=1 / 2, confidence=0.9).fit(X, y, np.ones(len(y))).certificate_


def test_weights_of_many_labels_have_to_be_explained(labelled):
    Y, S = labelled
    cut = tune_thresholds(Y[:600], S[:600])
    weight = np.arange(600) % 3 + 1
    with pytest.raises(ValueError, match=COUNTS):
        certify(cut, Y[600:], S[600:], sample_weight=weight)
    with pytest.raises(ValueError, match="importance"):
        certify(cut, Y[600:], S[600:], sample_weight=weight, weights="importance", method="uniform")
    again = 600 + np.concatenate([np.flatnonzero(weight >= times) for times in (1, 2, 3)])  # copies stand apart
    repeated = certify(cut, Y[again], S[again], held_out=True)
    counted = certify(cut, Y[600:], S[600:], sample_weight=weight, weights="counts")
    assert (counted.lower, counted.rows) == (repeated.lower, repeated.rows)


def test_costs_in_whole_euros_would_break_the_promise_that_counts_keep():
    """Why a word is needed: limits that take costs for counts fail far more often than they say, and counts do not."""
    rng, repetitions, taken, kept = np.random.default_rng(9), 200, 0, 0
    cut = tune_threshold(*draw(rng, 500), metric=Accuracy())
    promised = {"weights": "counts", "confidence": 0.9, "held_out": True}

    def costs(s):
        return np.where(s > 0.6, 60, 1)

    y, s = draw(rng, 200_000)
    right = y == cut.predict(s)
    share_of_costs, share_of_rows = float(np.average(right, weights=costs(s))), float(right.mean())
    for _ in range(repetitions):
        y, s = draw(rng, 150)
        taken += certify(cut, y, s, sample_weight=costs(s), **promised).lower > share_of_costs
        rows, times = np.unique(np.column_stack((y, np.round(s, 2))), axis=0, return_counts=True)
        kept += certify(cut, rows[:, 0], rows[:, 1], sample_weight=times, **promised).lower > share_of_rows
    assert taken > stats.binom.ppf(0.999, repetitions, 0.1)
    assert kept <= stats.binom.ppf(0.999, repetitions, 0.1)


# --- At the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def run():
    testing = pytest.importorskip("typer.testing")
    pytest.importorskip("duckdb")
    from surecut.cli.app import app

    return lambda *arguments: testing.CliRunner(env={"NO_COLOR": "1"}).invoke(app, [str(one) for one in arguments])


def write(path, y, s, **more):
    columns = [y.astype(int), s, *more.values()]
    np.savetxt(
        path, np.column_stack(columns), delimiter=",", header=",".join(("y", "p", *more)), comments="", fmt="%.17g"
    )
    return path


def test_certify_takes_the_callers_word(run, tuned, other, tmp_path):
    cut = tmp_path / "cut.json"
    tune_threshold(tuned[0], np.round(tuned[1], 1)).save(cut)
    new = write(tmp_path / "new.csv", other[0], np.round(other[1], 1))
    options = (new, "--cut", cut, "--label", "y", "--score", "p")
    refused = run("certify", *options)
    assert refused.exit_code == 1
    assert "cannot be determined" in refused.output
    assert "--held-out; if they tuned the cut, use --method uniform and --not-held-out" in refused.output
    said = run("certify", *options, "--held-out")
    assert said.exit_code == 0
    assert "by the caller's word" in said.output
    assert run("certify", *options, "--method", "uniform", "--not-held-out").exit_code == 0


def test_tune_asks_what_weights_mean(run, tuned, euros, tmp_path):
    rows = write(tmp_path / "rows.csv", *tuned, w=euros)
    options = (rows, "--label", "y", "--score", "p", "--weight", "w", "--confidence", "0.9")
    refused = run("tune", *options)
    assert refused.exit_code == 1
    assert "--weights counts if a weight of 2 means the row twice" in refused.output
    assert run("tune", *options, "--weights", "counts").exit_code == 0
    assert "importance" in run("tune", *options, "--weights", "importance").output
    promised = " ".join(run("tune", *options, "--constraint", "precision>=0.5").output.split())
    assert "or use surecut certify --method bootstrap, which resamples weighted rows" in promised
    assert "give both" in run("tune", *options[:-2], "--weights", "counts").output


def test_the_certify_command_takes_weights(run, tuned, other, euros, tmp_path):
    cut = tune_threshold(*tuned)
    cut.save(tmp_path / "cut.json")
    rows = write(tmp_path / "rows.csv", *other, w=euros)
    options = (rows, "--cut", tmp_path / "cut.json", "--label", "y", "--score", "p", "--format", "json")
    refused = run("certify", *options, "--weight", "w")
    assert refused.exit_code == 1
    assert "--weights counts if a weight of 2 means the row twice" in " ".join(refused.output.split())
    for weights, method in (("counts", "holdout"), ("importance", "bootstrap")):
        said = run("certify", *options, "--weight", "w", "--weights", weights, "--method", method)
        expected = certify(cut, *other, sample_weight=euros, weights=weights, method=method)
        assert json.loads(said.stdout)["lower"] == pytest.approx(expected.lower, abs=1e-12)
    assert "give both" in run("certify", *options, "--weights", "counts").output
