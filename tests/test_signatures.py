"""Options have one name, one default and one order, wherever they are accepted; elsewhere there is a reason."""

from __future__ import annotations

import inspect
import re
import typing
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

import surecut
from surecut.certificates.drift import check_label_drift
from surecut.cli.app import app
from surecut.tuning import request as requests
from surecut.tuning.labels import tune_tallies
from surecut.tuning.request import Request

DEFAULTS: dict[str, Any] = {
    "metric": "f1",
    "by": None,
    "average": "macro",
    "sample_weight": None,
    "weights": None,
    "groups": None,
    "pos_label": None,
    "constraint": None,
    "confidence": None,
    "prior": None,
    "shrinkage": 0.0,
    "stable": False,
    "zero_division": 0.0,
    "missing": "error",
    "unknown": "drop",
    "labels": None,
    "random_state": 0,
}
"""Every option that two entry points or more could have, in the order in which they stand, and its default."""

SPELLED = {"weight": "sample_weight"}
"""The name of a column, where rows are in a table."""


def command(name: str) -> Any:
    (found,) = (one for one in app.registered_commands if (one.name or one.callback.__name__) == name)
    return found.callback


ENTRY_POINTS = {
    "tune_threshold": surecut.tune_threshold,
    "tune_thresholds": surecut.tune_thresholds,
    "tune_frame": surecut.tune_frame,
    "tune_expected": surecut.tune_expected,
    "tune_tallies": tune_tallies,
    "tune_bands": surecut.tune_bands,
    "tune_bands_frame": surecut.tune_bands_frame,
    "tune_top_k": surecut.tune_top_k,
    "tune_top_k_frame": surecut.tune_top_k_frame,
    "tally_frame": surecut.tally_frame,
    "ScoreTally.from_scores": surecut.ScoreTally.from_scores,
    "ScoreSketch.update": surecut.ScoreSketch.update,
    "PlugInClassifier": surecut.PlugInClassifier,
    "certify": surecut.certify,
    "check_drift": surecut.check_drift,
    "check_label_drift": check_label_drift,
    "surecut tune": command("tune"),
    "surecut certify": command("certify"),
    "surecut check": command("check"),
}

ONE_LABEL = "there is one label"
THE_CUTS = "it is that of the cut"
THE_TALLYS = "the tally was made with it"
NO_CUT = "rows are counted, and no cut is asked for"
NOTHING_RANDOM = "nothing is drawn at random"
PROMISES = "rows that depend on each other matter to promises on held-out rows: certify"
UNWEIGHTED = "matrices and tallies promise something of rows without weights only; long tables take weights='counts'"
COUNTED = dict.fromkeys(
    [
        "metric",
        "average",
        "weights",
        "constraint",
        "confidence",
        "prior",
        "shrinkage",
        "stable",
        "zero_division",
        "random_state",
    ],
    NO_CUT,
)

OF_RULES = {
    "weights": "nothing is promised where a rule is tuned: certify it",
    "groups": PROMISES,
    "constraint": "a rule of k labels a row is tuned for its metric alone",
    "confidence": "nothing is promised where a rule is tuned: certify it",
    "prior": "of labels there are many: rows of each class can have the weight that they have in deployment",
    "zero_division": "there is no samples average",
    "unknown": "every label that the rows have is tuned",
}

OF_BANDS = {
    "average": "each group has thresholds of its own",
    "groups": PROMISES,
    "constraint": "conditions are on zones: upper, lower, conditions",
    "shrinkage": "stable=True uses the same model of the scores",
    "zero_division": "there is no samples average",
    "labels": "the columns `by` hold the groups",
    "unknown": "every group that the rows have is tuned",
}

ABSENT: dict[str, dict[str, str]] = {
    "tune_threshold": {
        "by": ONE_LABEL,
        "average": ONE_LABEL,
        "groups": PROMISES,
        "zero_division": "it is for the samples average of many labels",
        "labels": ONE_LABEL,
    },
    "tune_thresholds": {
        "by": "the columns are the labels",
        "weights": UNWEIGHTED,
        "groups": PROMISES,
    },
    "tune_frame": {
        "groups": PROMISES,
        "zero_division": "a long table has no samples average",
        "labels": "the columns `by` hold them",
    },
    "tune_expected": {
        "by": "the columns are the labels",
        "weights": "nothing is promised without labels",
        "groups": PROMISES,
        "pos_label": "there are no labels",
        "constraint": "without labels it would be met in expectation only",
        "confidence": "nothing is promised without labels",
        "prior": "probabilities have the class balance that they were calibrated for",
        "shrinkage": "it is without bound",
        "stable": "there are no labels to resample",
        "random_state": NOTHING_RANDOM,
    },
    "tune_tallies": {
        "by": "there is a tally of each label",
        "sample_weight": THE_TALLYS,
        "weights": UNWEIGHTED,
        "groups": PROMISES,
        "pos_label": THE_TALLYS,
        "prior": "it is for one cut",
        "zero_division": "tallies have no samples average",
        "missing": THE_TALLYS,
    },
    "tune_bands": {**OF_BANDS, "by": ONE_LABEL},
    "tune_bands_frame": OF_BANDS,
    "tune_top_k": {**OF_RULES, "by": "the columns are the labels", "pos_label": "the positives are ones"},
    "tune_top_k_frame": {**OF_RULES, "labels": "the columns `by` hold them"},
    "tally_frame": {**COUNTED, "by": NO_CUT, "groups": NO_CUT, "labels": ONE_LABEL},
    "ScoreTally.from_scores": {**COUNTED, "by": NO_CUT, "groups": NO_CUT, "labels": ONE_LABEL},
    "ScoreSketch.update": {**COUNTED, "by": NO_CUT, "groups": NO_CUT, "labels": ONE_LABEL},
    "PlugInClassifier": {
        "by": "the columns of y are the labels",
        "sample_weight": "it is a parameter of fit",
        "groups": "they go to the splitter, by metadata routing",
        "missing": "the estimator decides which rows it takes",
        "labels": "the columns of y name them",
    },
    "certify": dict.fromkeys(
        ["metric", "average", "constraint", "prior", "shrinkage", "stable", "zero_division", "labels"], THE_CUTS
    ),
    "check_drift": {
        **dict.fromkeys(
            ["metric", "average", "constraint", "prior", "shrinkage", "stable", "zero_division", "labels"], THE_CUTS
        ),
        "by": ONE_LABEL,
        "groups": "rows are compared by their counts, which need independent rows",
    },
    "surecut tune": {
        "groups": PROMISES,
        "zero_division": "a long table has no samples average",
        "labels": "the columns --by hold them",
    },
    "surecut certify": dict.fromkeys(
        ["metric", "average", "constraint", "prior", "shrinkage", "stable", "zero_division", "labels"], THE_CUTS
    ),
    "surecut check": {
        **dict.fromkeys(
            ["metric", "average", "constraint", "prior", "shrinkage", "stable", "zero_division", "labels"], THE_CUTS
        ),
        "groups": "rows are compared by their counts, which need independent rows",
    },
}
"""Where an entry point lacks an option, the reason."""
for one in ("tune_thresholds", "tune_frame", "tune_expected", "tune_tallies", "PlugInClassifier", "surecut tune"):
    ABSENT[one]["unknown"] = "every label that the rows have is tuned"
for one in ("tune_threshold", "tally_frame", "ScoreTally.from_scores", "ScoreSketch.update", "check_drift"):
    ABSENT[one]["unknown"] = ONE_LABEL
for one in ("certify", "surecut certify"):
    ABSENT[one]["unknown"] = "what is promised is an average of all labels of the cut"
ABSENT["check_label_drift"] = ABSENT["check_drift"] | dict.fromkeys(
    ["by", "sample_weight", "pos_label", "missing"], THE_TALLYS
)
del ABSENT["check_label_drift"]["unknown"]

OTHER_DEFAULTS = {
    ("PlugInClassifier", "average"): None,  # macro, if the target has a column per label
    ("tune_bands", "metric"): None,  # fewest rows between the outer zones, or the gains
    ("tune_bands_frame", "metric"): None,
    ("tune_top_k", "average"): None,  # macro, or that of a metric of several classes
    ("tune_top_k_frame", "average"): None,
    ("surecut tune", "average"): None,  # with --top-k the same, otherwise macro
    ("certify", "confidence"): 0.95,  # there is no certificate without
    ("check_drift", "confidence"): 0.95,
    ("check_label_drift", "confidence"): 0.95,
    ("surecut certify", "confidence"): 0.95,
    ("surecut check", "confidence"): 0.95,
    ("surecut tune", "metric"): None,  # f1; lists have no other default in Typer
    ("surecut tune", "shrinkage"): "0",  # a number or a word
}


def options_of(function: Any) -> dict[str, Any]:
    """The defaults of a function's options, by the one name, in its order."""
    found = inspect.signature(function).parameters
    defaults = {SPELLED.get(name, name): parameter.default for name, parameter in found.items()}
    defaults = {name: default.value if isinstance(default, Enum) else default for name, default in defaults.items()}
    return {name: default for name, default in defaults.items() if name in DEFAULTS}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_options_stand_in_one_order(name):
    known = [option for option in options_of(ENTRY_POINTS[name]) if name != "tune_tallies" or option != "labels"]
    assert known == sorted(known, key=list(DEFAULTS).index)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_options_have_one_default(name):
    for option, default in options_of(ENTRY_POINTS[name]).items():
        if default is not inspect.Parameter.empty:  # tune_tallies has to be told the labels
            assert default == OTHER_DEFAULTS.get((name, option), DEFAULTS[option]), option


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_option_is_accepted_or_there_is_a_reason(name):
    accepted = set(options_of(ENTRY_POINTS[name]))
    assert accepted | set(ABSENT[name]) == set(DEFAULTS)
    assert not accepted & set(ABSENT[name])


def test_the_table_knows_every_option_of_a_request():
    assert set(inspect.signature(Request.of).parameters) <= set(DEFAULTS)
    assert set(ABSENT) == set(ENTRY_POINTS)


def test_applying_a_frame_and_a_file_have_the_same_options_and_defaults():
    function, options = (
        {name: one.default for name, one in inspect.signature(entry).parameters.items()}
        for entry in (surecut.apply_frame, command("apply"))
    )
    files = {"context", "file", "out", "negative"}  # what is read, where it is written, and how
    assert [name for name in options if name not in files] == [name for name in function if name != "frame"]
    for name in ("by", "name", "missing", "unknown"):
        assert options[name] == function[name], name


def test_an_option_out_of_order_is_noticed():
    def wrong(*, prior: Any = None, metric: Any = "f1") -> None:
        """Prior before metric."""

    known = list(options_of(wrong))
    assert known != sorted(known, key=list(DEFAULTS).index)


@pytest.mark.parametrize("name", ["tune_threshold", "tune_thresholds", "tune_frame", "tune_expected", "tune_tallies"])
def test_overloads_have_the_parameters_of_the_function(name):
    function = ENTRY_POINTS[name]
    overloads = typing.get_overloads(function)
    assert len(overloads) == (4 if name == "tune_frame" else 2)
    for one in overloads:
        own = dict.fromkeys(inspect.signature(one).parameters)
        if own.pop("options", "absent") is None:  # **options: Unpack[...]
            shared = re.fullmatch(r"Unpack\[(\w+)\]", one.__annotations__["options"]).group(1)
            own |= dict.fromkeys(getattr(requests, shared).__annotations__)
        assert set(own) == set(inspect.signature(function).parameters)
        is_list = one.__annotations__["metric"].startswith("Sequence")
        assert one.__annotations__["return"].startswith("dict[str, ") == is_list
        assert "Any" not in one.__annotations__["return"]
    assert function.__annotations__["return"] != "Any"


Y, SCORES = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 3), np.arange(24.0).reshape(12, 2)
LONG = pd.DataFrame({"y": Y.ravel(), "p": SCORES.ravel(), "tag": [0, 1] * 12, "w": 1.0})
TALLIES = [surecut.ScoreTally.from_scores(Y[:, i], SCORES[:, i]) for i in range(2)]


class Untrained(BaseEstimator):
    """An estimator that must not be reached."""

    def fit(self, X: Any, y: Any) -> None:
        raise AssertionError("a request is validated before anything is trained")


REFUSING = {
    # Functions that refuse, each with rows of its own kind; the first four are of one label.
    "Request.of": lambda metric="f1", **options: Request.of(metric, **options),
    "tune_threshold": lambda **options: surecut.tune_threshold(Y[:, 0], SCORES[:, 0], **options),
    "tune_frame": lambda **options: surecut.tune_frame(LONG, label="y", score="p", **options),
    "PlugInClassifier": lambda **options: surecut.PlugInClassifier(Untrained(), cv=1 / 3, **options).fit(
        SCORES, Y[:, 0]
    ),
    "tune_thresholds": lambda **options: surecut.tune_thresholds(Y, SCORES, **options),
    "tune_frame by": lambda **options: surecut.tune_frame(LONG, label="y", score="p", by="tag", **options),
    "PlugInClassifier of labels": lambda **options: surecut.PlugInClassifier(Untrained(), cv=1 / 3, **options).fit(
        SCORES, Y
    ),
}
ONE = ["Request.of", "tune_threshold", "tune_frame", "PlugInClassifier"]
MANY = ["tune_thresholds", "tune_frame by", "PlugInClassifier of labels"]
LACKS = {"PlugInClassifier": {"missing"}, "PlugInClassifier of labels": {"missing"}, "tune_thresholds": {"weights"}}

CONFLICTS: list[tuple[list[str], dict[str, Any], str]] = [
    (ONE + MANY, {"shrinkage": 1, "constraint": "precision>=0.5"}, "not by smoothed ones"),
    (ONE[:3], {"shrinkage": 1, "confidence": 0.9}, "nothing to promise of a cut of smoothed labels"),
    (ONE + MANY, {"shrinkage": 1, "prior": 0.5}, "class balance"),
    (ONE + MANY, {"stable": True, "shrinkage": "auto"}, "fits a model of the scores itself"),
    (ONE[:3], {"stable": True, "confidence": 0.9}, "chooses its cuts from a pilot sample"),
    (MANY, {"stable": True, "confidence": 0.9, "constraint": "recall>=0.5"}, "chooses its cuts from a pilot sample"),
    (ONE[:1] + MANY[::2], {"stable": True, "average": "samples"}, "cannot be tuned with stable=True"),
    (ONE + MANY, {"stable": "yes"}, "stable= must be True or False"),
    (ONE + MANY, {"shrinkage": "often"}, "shrinkage= must be a number or 'auto'"),
    (ONE + MANY, {"confidence": 1.0}, "0 < confidence < 1"),
    (ONE + MANY, {"prior": 0}, "0 < prior < 1"),
    (ONE + MANY, {"weights": "twice"}, "weights must be one of"),
    (ONE + MANY, {"weights": "counts"}, "confidence=: give both"),
    (ONE[1:], {"weights": "counts", "confidence": 0.9}, "weight= means: give both"),
    (ONE + MANY, {"missing": "keep"}, "missing must be"),
    (ONE + MANY, {"constraint": "precision"}, "expected a constraint like"),
    (ONE[:3] + MANY[:2], {"metric": []}, "empty list"),
    (ONE[:1] + MANY, {"average": "mean"}, "average= must be one of"),
    (MANY, {"confidence": 0.9}, "confidence= of many labels is for constraints"),
    (MANY, {"confidence": 0.9, "constraint": "recall>=0.5", "average": "micro"}, "needs a cut of each label"),
    (MANY, {"prior": 0.9}, "prior= is for one cut"),
    (ONE[:1] + MANY[::2], {"average": "samples", "constraint": "recall>=0.5"}, "'samples' cannot be tuned under"),
    (ONE[:1] + MANY[::2], {"average": "samples", "shrinkage": "auto"}, "'samples' cannot be tuned with"),
    (["tune_frame by"], {"average": "samples"}, "neither long tables nor tallies have them so"),
    (["tune_frame"], {"average": "micro"}, "say with by= which column holds the label"),
    (ONE[:1] + MANY[::2], {"average": "samples", "zero_division": np.nan}, "zero_division= must be a finite number"),
    (ONE[:1] + MANY[::2], {"average": "samples", "zero_division": "warn"}, "zero_division= must be a finite number"),
]


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        pytest.param(name, options, reason, id=f"{name}-{'-'.join(options)}-{i}")
        for i, (names, options, reason) in enumerate(CONFLICTS)
        for name in names
        if not set(options) & LACKS.get(name, set())
    ],
)
def test_what_cannot_be_had_is_refused_with_one_reason_everywhere(name, options, reason):
    with pytest.raises(ValueError, match=reason):
        REFUSING[name](**options)


def test_tallies_have_no_samples_average():
    with pytest.raises(ValueError, match="neither long tables nor tallies have them so"):
        tune_tallies(TALLIES, "ab", average="samples")


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_several_metrics_give_a_dict_everywhere(average):
    several = {
        "tune_thresholds": surecut.tune_thresholds(Y, SCORES, metric=["f1", "am"], average=average),
        "tune_tallies": tune_tallies(TALLIES, [0, 1], metric=["f1", "am"], average=average),
        "tune_frame": surecut.tune_frame(LONG, label="y", score="p", by="tag", metric=["f1", "am"], average=average),
    }
    for found in several.values():
        assert list(found) == ["f1", "am"]
        assert found["am"].thresholds.tolist() == several["tune_thresholds"]["am"].thresholds.tolist()
    expected = surecut.tune_expected(SCORES / 24, metric=["f1", "am"], average=average)
    one = surecut.tune_expected(SCORES / 24, metric="am", average=average)
    assert expected["am"].thresholds.tolist() == one.thresholds.tolist()


def test_rows_without_a_value_are_dropped_everywhere():
    scores = SCORES.copy()
    scores[3, 1] = np.nan
    kept = np.arange(12) != 3
    with pytest.warns(surecut.MissingRowsWarning, match="1 without a score"):
        found = surecut.tune_thresholds(Y, scores, missing="drop")
    assert found.thresholds.tolist() == surecut.tune_thresholds(Y[kept], SCORES[kept]).thresholds.tolist()
    with pytest.warns(surecut.MissingRowsWarning, match="1 without a score"):
        found = surecut.tune_expected(scores / 24, missing="drop")
    assert found.thresholds.tolist() == surecut.tune_expected(SCORES[kept] / 24).thresholds.tolist()
    with pytest.warns(surecut.MissingRowsWarning, match="1 without a score"):
        tally = surecut.ScoreTally.from_scores(Y[:, 1], scores[:, 1], missing="drop")
    assert np.array_equal(tally.scores, surecut.ScoreTally.from_scores(Y[kept, 1], SCORES[kept, 1]).scores)
    with pytest.raises(ValueError, match="missing must be"):
        surecut.ScoreTally.from_scores(Y[:, 1], scores[:, 1], missing="keep")
