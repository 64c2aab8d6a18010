"""Long tables on clusters: the rule of the matrices, and its predictions line by line."""

from __future__ import annotations

import numpy as np
import pytest

from surecut import apply_frame, tune_top_k, tune_top_k_frame

pandas = pytest.importorskip("pandas")

LABELS = ("cat", "dog", "fox")
COLUMNS = {"row": "id", "by": "animal", "label": "is_true", "score": "p"}


def draw(rows):
    """Classes, and scores with ties."""
    random = np.random.default_rng(0)
    scores = random.dirichlet([3, 2, 1], rows).round(2)
    return np.array([random.choice(3, p=(one + 0.05) / (one + 0.05).sum()) for one in scores]), scores


def long(truth, scores):
    """A long table in an order of its own."""
    columns = {"id": np.repeat(np.arange(len(scores)), 3), "animal": np.tile(LABELS, len(scores))}
    frame = pandas.DataFrame(columns | {"is_true": truth.ravel(), "p": scores.ravel()})
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


def check_rule(held, as_pandas, options):
    """The rule of classes, or of two tags, that a cluster finds and applies."""
    codes, scores = draw(60)
    is_of_classes = options["k"] == 1
    truth = np.eye(3, dtype=int)[codes] if is_of_classes else (scores > 0.3).astype(int)
    frame = held(long(truth, scores))
    found = tune_top_k_frame(frame, **COLUMNS, **options)
    if is_of_classes:
        expected = tune_top_k(np.array(LABELS)[codes], scores, **options)
        np.testing.assert_array_equal(found.matrix, expected.matrix)
    else:
        expected = tune_top_k(truth, scores, labels=LABELS, **options)
    assert (found.labels, found.value, found.fingerprint) == (expected.labels, expected.value, expected.fingerprint)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    applied = as_pandas(apply_frame(frame, found, row="id", by="animal", score="p")).sort_values(["id", "animal"])
    said = expected.predict(scores, as_="indicator")[:, :3]
    np.testing.assert_array_equal(applied["predicted"].to_numpy().astype(bool).reshape(-1, 3), said)


REQUESTS = ({"k": 1}, {"k": 1, "stable": True}, {"k": 1, "reject_cost": 0.3, "stable": True}, {"k": 2, "stable": True})


def test_spark_has_the_same_rule_and_predictions(spark):
    for options in REQUESTS:
        check_rule(spark.createDataFrame, lambda frame: frame.toPandas(), options)


def test_dask_has_the_same_rule_and_predictions(dask_frames):
    for options in REQUESTS:
        check_rule(lambda frame: dask_frames.from_pandas(frame, npartitions=3), lambda frame: frame.compute(), options)
