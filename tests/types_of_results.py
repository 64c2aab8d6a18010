"""What mypy concludes of the results of tuning; `make lint` checks this file, nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

from surecut import (
    Certificate,
    Cut,
    MultilabelCut,
    ScoreTally,
    certify,
    tally_frame,
    tune_expected,
    tune_frame,
    tune_threshold,
    tune_thresholds,
)
from surecut.metrics import FBeta


def one_label(y: Any, scores: Any) -> None:
    assert_type(tune_threshold(y, scores), Cut)
    assert_type(tune_threshold(y, scores, metric="f2", confidence=0.9), Cut)
    assert_type(tune_threshold(y, scores, metric=["f1", FBeta(2)]), dict[str, Cut])
    assert_type(certify(tune_threshold(y, scores), y, scores), Certificate)


def many_labels(Y: Any, scores: Any) -> None:
    assert_type(tune_thresholds(Y, scores), MultilabelCut)
    assert_type(tune_thresholds(Y, scores, metric=FBeta(2), average="micro"), MultilabelCut)
    assert_type(tune_thresholds(Y, scores, metric=["f1", "am"]), dict[str, MultilabelCut])
    assert_type(tune_expected(scores), MultilabelCut)
    assert_type(tune_expected(scores, metric=["f1", "am"]), dict[str, MultilabelCut])


def frames(frame: Any, by: str | None) -> None:
    assert_type(tune_frame(frame, label="y", score="p"), Cut)
    assert_type(tune_frame(frame, label="y", score="p", metric=["f1", "am"]), dict[str, Cut])
    assert_type(tune_frame(frame, label="y", score="p", by="tag"), MultilabelCut)
    assert_type(tune_frame(frame, label="y", score="p", by=["tag", "day"], metric="f1"), MultilabelCut)
    assert_type(tune_frame(frame, label="y", score="p", by="tag", metric=["f1", "am"]), dict[str, MultilabelCut])
    assert_type(tune_frame(frame, label="y", score="p", by=by), Cut | MultilabelCut)
    assert_type(tally_frame(frame, label="y", score="p"), ScoreTally)
