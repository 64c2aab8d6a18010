"""Options have one name, one default and one order, wherever they are accepted."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import surecut
from surecut.cli.app import app
from surecut.tuning.request import Request

ORDER = [
    "metric",
    "by",
    "average",
    "sample_weight",
    "weight",
    "weights",
    "pos_label",
    "constraint",
    "confidence",
    "prior",
    "shrinkage",
    "zero_division",
    "missing",
    "labels",
    "random_state",
]
"""The order in which options stand."""

DEFAULTS: dict[str, Any] = {
    "metric": "f1",
    "by": None,
    "average": "macro",
    "sample_weight": None,
    "weight": None,
    "weights": None,
    "pos_label": None,
    "constraint": None,
    "confidence": None,
    "prior": None,
    "shrinkage": 0.0,
    "zero_division": 0.0,
    "missing": "error",
    "labels": None,
}

FUNCTIONS = {
    "tune_threshold": surecut.tune_threshold,
    "tune_thresholds": surecut.tune_thresholds,
    "tune_frame": surecut.tune_frame,
    "tune_expected": surecut.tune_expected,
    "tally_frame": surecut.tally_frame,
    "PlugInClassifier": surecut.PlugInClassifier,
    "ScoreTally.from_scores": surecut.ScoreTally.from_scores,
    "ScoreSketch.update": surecut.ScoreSketch.update,
}

NOT_HERE = {
    # Where a function lacks an option of the request, the reason.
    "tune_threshold": {"average", "zero_division"},  # one label
    "tune_thresholds": {"weights"},  # nothing is promised of many labels
    "tune_frame": {"zero_division"},  # a long table has no samples average
    "PlugInClassifier": {"missing"},  # the estimator decides
}

OTHER_DEFAULTS = {
    ("PlugInClassifier", "average"): None,  # macro, if the target has a column per label
}


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_stand_in_one_order(name):
    known = [option for option in parameters(FUNCTIONS[name]) if option in ORDER]
    assert known == sorted(known, key=ORDER.index)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_have_one_default(name):
    for option, parameter in parameters(FUNCTIONS[name]).items():
        if option in DEFAULTS and parameter.default is not inspect.Parameter.empty:
            assert parameter.default == OTHER_DEFAULTS.get((name, option), DEFAULTS[option]), option


@pytest.mark.parametrize("name", NOT_HERE)
def test_every_option_of_a_request_is_accepted_or_has_no_meaning(name):
    asked = set(parameters(Request.of)) - {"self"}
    assert asked - set(parameters(FUNCTIONS[name])) == NOT_HERE[name]


def test_the_command_has_the_options_of_the_functions():
    (command,) = (one for one in app.registered_commands if (one.name or one.callback.__name__) == "tune")
    options = parameters(command.callback)
    assert set(parameters(Request.of)) - {"zero_division"} <= set(options)
    known = [option for option in options if option in ORDER]
    assert known == sorted(known, key=ORDER.index)


def test_an_option_out_of_order_is_noticed():
    def wrong(*, prior: Any = None, metric: Any = "f1") -> None:
        """Prior before metric."""

    known = [option for option in parameters(wrong) if option in ORDER]
    assert known != sorted(known, key=ORDER.index)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shrinkage": 1, "constraint": "precision>=0.5"}, "not by smoothed ones"),
        ({"shrinkage": 1, "confidence": 0.9}, "nothing to promise of a cut of smoothed labels"),
        ({"shrinkage": 1, "prior": 0.5}, "class balance"),
        ({"confidence": 1.0}, "0 < confidence < 1"),
        ({"prior": 0}, "0 < prior < 1"),
        ({"weights": "twice"}, "weights must be one of"),
        ({"weights": "counts"}, "confidence=: give both"),
        ({"metric": []}, "empty list"),
        ({"average": "mean"}, "average= must be one of"),
        ({"average": "macro", "confidence": 0.9}, "confidence= is for one cut"),
        ({"average": "micro", "prior": 0.9}, "prior= is for one cut"),
        ({"average": "samples", "constraint": "recall>=0.5"}, "average='samples' cannot be tuned under"),
        ({"average": "samples", "shrinkage": "auto"}, "average='samples' cannot be tuned with"),
        ({"missing": "keep"}, "missing"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_reason(options, reason):
    with pytest.raises(ValueError, match=reason):
        Request.of(options.pop("metric", "f1"), **options)
