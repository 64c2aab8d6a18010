"""What scikit-learn calls our metrics, and what it calls metrics that no cut can improve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS = {
    "accuracy_score": "accuracy",
    "balanced_accuracy_score": "am",
    "cohen_kappa_score": "kappa",
    "f1_score": "f1",
    "fbeta_score": "fbeta",
    "jaccard_score": "jaccard",
    "matthews_corrcoef": "mcc",
    "precision_score": "precision",
    "recall_score": "recall",
}
"""scikit-learn's metric functions, as `make_scorer` takes them, and our names."""

_HARMLESS = {"zero_division", "labels"}
"""Parameters of these functions that change nothing about a binary cut."""

_DEFAULTS = {"normalize": True, "adjusted": False, "weights": None}
"""Parameters that change the metric, and the values at which they do not."""

_RANKING = "it judges the ranking of the scores, which no threshold changes"
_PROBABILITY = "it judges probabilities, which no threshold changes"
_REASONS = {
    "roc_auc": _RANKING,
    "average_precision": _RANKING,
    "top_k_accuracy": _RANKING,
    "d2_brier_score": _PROBABILITY,
    "d2_log_loss_score": _PROBABILITY,
    "neg_log_loss": _PROBABILITY,
    "neg_brier_score": _PROBABILITY,
    "log_loss": _PROBABILITY,
    "brier_score_loss": _PROBABILITY,
    "brier_score": _PROBABILITY,
}
_AVERAGES = {
    "_macro": "tune_thresholds, tune_top_k and PlugInClassifier",
    "_micro": "tune_thresholds, tune_top_k and PlugInClassifier",
    "_samples": "tune_thresholds and PlugInClassifier",
    "_weighted": "tune_top_k and PlugInClassifier",
}
"""How names of averages over labels end, and what takes these averages."""


def refusal(name: str) -> str | None:
    """Why a scikit-learn scorer's name cannot be tuned for, or None if there is nothing to say about it."""
    for known, reason in _REASONS.items():
        if name.removesuffix("_score") == known.removesuffix("_score") or name.startswith("roc_auc"):
            return f"{name!r} cannot be tuned by a cut: {reason}. Choose a metric of decisions, such as 'f1' or 'am'"
    if found := averaged(name):
        base, average = found
        return (
            f"{name!r} is an average over labels: it is written metric={base!r}, average={average!r}, in "
            f"{_AVERAGES[f'_{average}']}; for one label pass {base!r}"
        )
    return None


def averaged(name: str) -> tuple[str, str] | None:
    """The metric and the average in a scikit-learn scorer's name, such as f1_macro; None where it has no average.

    >>> averaged("f1_macro"), averaged("f1"), averaged("roc_auc_ovr_weighted")
    (('f1', 'macro'), None, None)
    """
    if name.startswith("roc_auc"):  # no average of it can be tuned
        return None
    return next(((name.removesuffix(one), one[1:]) for one in _AVERAGES if name.endswith(one)), None)


def unwrap(scorer: Callable[..., Any]) -> tuple[str, dict[str, Any]] | None:
    """Our name and parameters for `make_scorer(...)` or a function of sklearn.metrics; None for anything else."""
    function = getattr(scorer, "_score_func", scorer)
    bound_metric = getattr(function, "__self__", None)
    if function is scorer and not (getattr(function, "__module__", None) or "").startswith("sklearn.metrics"):
        return None
    name = getattr(function, "__name__", repr(function))
    if getattr(scorer, "_sign", 1) < 0:
        raise ValueError(f"the scorer of {name} has greater_is_better=False: a metric must be larger when better")
    if name not in FUNCTIONS:
        if bound_metric is not None:
            raise ValueError(f"pass the metric itself, {bound_metric!r}, instead of a scorer made of it")
        reason = refusal(name) or (
            f"the scorer of {name} is not one that surecut knows: pass a metric's name, or a function of a Confusion"
        )
        raise ValueError(reason)
    parameters = {key: value for key, value in getattr(scorer, "_kwargs", {}).items() if key not in _HARMLESS}
    if parameters.pop("average", "binary") != "binary":
        raise ValueError(f"the scorer of {name} averages over labels: call tune_thresholds or tune_top_k with average=")
    if "pos_label" in parameters:
        raise ValueError("the scorer holds pos_label: pass pos_label= to the function or classifier instead")
    if name == "fbeta_score":
        beta = parameters.pop("beta", None)
        if beta is None:
            raise ValueError("fbeta_score needs a beta: make_scorer(fbeta_score, beta=2), or the name 'f2'")
        _require_none_left(name, parameters)
        return "fbeta", {"beta": float(beta)}
    changed = {key: value for key, value in parameters.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}
    _require_none_left(name, changed)
    return FUNCTIONS[name], {}


def _require_none_left(name: str, parameters: dict[str, Any]) -> None:
    if parameters:
        raise ValueError(f"the scorer of {name} has parameters that change the metric: {parameters}")
