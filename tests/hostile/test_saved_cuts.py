"""Files that are not what `save` wrote: damaged, edited, or made to do harm. One error says so, or nothing was lost."""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest

from surecut import Cut, LabelStability, MultilabelCut, Stability, TopK, tune_threshold, tune_thresholds, tune_top_k
from surecut.decisions import saving
from surecut.decisions.saving import SavedCutError
from surecut.metrics import Affine, LinearFractional, Tversky

MUTANTS = 400
"""Mutated files of each decision, in each way."""

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    3,
    0.25,
    -0.5,
    1e308,
    5e-324,
    2**63,
    -(2**70),
    10**399,
    "",
    "x",
    "nan",
    "inf",
    "-inf",
    "1_0",
    "0.5",
    "'; DROP TABLE scored; --",
    "\x00\x1b[31m",
    [],
    {},
    [0.5],
    [0, "0"],
    ["validation"],
    {"float": "nan"},
    {"date": "2024-13-01"},
    {"name": "f1", "type": "FBeta", "parameters": {"beta": 1e200}},
    {"name": "f1", "type": "FBeta", "parameters": {"beta": "x"}},
    {"name": "u", "type": "LinearFractional", "parameters": dict.fromkeys(("a0", "a1", "a2", "b0", "b1", "b2"), "x")},
    {"name": "z", "type": "CellRatio", "parameters": {"numerator": [1, 0, 0, 0], "denominator": [0, 0, 0, 0]}},
    {"tp": 0, "fp": 0, "fn": 0, "tn": 0},
    "@1e400@",
    "@-1e400@",
    "@NaN@",
    "@Infinity@",
    "@" + "7" * 5_000 + "@",
    "@" + "[" * 1_000 + "]" * 1_000 + "@",
    "@" + '{"a":' * 100_000 + "1" + "}" * 100_000 + "@",
]
"""What stands where something else should; between @ and @ as it is written."""


def rows(labels=1, seed=0):
    generator = np.random.default_rng(seed)
    scores = generator.random((40, labels))
    return generator.random((40, labels)) < scores, scores


def class_rows():
    truth, scores = rows(3)
    return (truth + scores).argmax(axis=1), scores / scores.sum(axis=1, keepdims=True)


def rejecting():
    """A rule of costs with an action more."""
    found = tune_top_k(*class_rows(), k=1, stable=True)
    costs = np.column_stack((1 - np.eye(3), np.full(3, 0.25)))
    matrix, before = (np.column_stack((one, np.zeros(3, int))) for one in (found.matrix, found.baseline.matrix))
    value, plain = (-float((one * costs).sum()) / 40 for one in (matrix, before))
    return replace(
        found,
        a=None,
        offsets=np.zeros(4),
        metric=None,
        average="cost",
        value=value,
        actions=(0, 1, 2, -1),
        cost_gains=-costs.T,
        costs=costs,
        matrix=matrix,
        baseline=replace(found.baseline, value=plain, matrix=before),
    )


def sample():
    truth, scores = rows()
    return truth[:, 0], scores[:, 0]


STABILITY = Stability(100, (float("-inf"), 0.25, 0.375, 0.5, float("inf")), (0.25, 0.5), 0.0625, 2.0, 0.3)


def stable(cut, *without):
    """A cut with a record of resampled thresholds, for all labels or all but some."""
    if isinstance(cut, Cut):
        return replace(cut, stability=STABILITY)
    parts = [None if i in without else STABILITY for i in range(len(cut))]
    return replace(cut, stability=LabelStability.joined(parts))


def net_gain(confusion):
    return 3 * confusion.tp - confusion.fp


DECISIONS = {
    "cut": lambda: tune_threshold(*sample()),
    "cut, weighted": lambda: tune_threshold(*sample(), sample_weight=np.linspace(0.1, 2, 40)),
    "cut, constrained": lambda: tune_threshold(*sample(), metric="recall", constraint=["precision>=0.5", "fpr<=0.9"]),
    "cut, promised": lambda: tune_threshold(*sample(), confidence=0.9),
    "cut at a prior": lambda: tune_threshold(*sample(), metric=Tversky(0.3, 0.7), prior=0.125),
    "cut of a function": lambda: tune_threshold(*sample(), metric=net_gain),
    "cut of coefficients": lambda: tune_threshold(
        *sample(), metric=LinearFractional(Affine(0, 1), 0, -1, lambda p: p, 1, 0, name="own")
    ),
    "cut that predicts nothing": lambda: tune_threshold([0, 0, 1, 0], [1, 2, 0, 3], metric="specificity"),
    "cuts": lambda: tune_thresholds(*rows(3), labels=["a", ("b", 2), 3.5]),
    "cuts, micro": lambda: tune_thresholds(*rows(3), average="micro", sample_weight=np.linspace(0.1, 2, 40)),
    "cuts, samples": lambda: tune_thresholds(*rows(3), average="samples"),
    "cut, stable": lambda: stable(tune_threshold(*sample())),
    "cuts, stable": lambda: stable(tune_thresholds(*rows(3)), 1),
    "cuts, stable, micro": lambda: stable(tune_thresholds(*rows(3), average="micro")),
    "cuts, shrunken": lambda: tune_thresholds(*rows(3), shrinkage=5.0),
    "top k": lambda: tune_top_k(*rows(3), k=2, labels=["a", ("b", 2), 3.5], shrinkage=5.0),
    "top k, classes": lambda: tune_top_k(*class_rows(), k=1, metric="kappa", sample_weight=np.linspace(0.1, 2, 40)),
    "top k, stable": lambda: tune_top_k(*class_rows(), k=1, stable=True),
    "top k, costs": lambda: rejecting(),
}


def text_of(document):
    """A document as JSON, in which texts between @ and @ stand as they are."""
    raw = []

    def marked(value):
        if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == "@":
            raw.append(value[1:-1])
            return f"@{len(raw) - 1}@"
        if isinstance(value, dict):
            return {name: marked(one) for name, one in value.items()}
        return [marked(one) for one in value] if isinstance(value, list) else value

    text = json.dumps(marked(document))
    for i, one in enumerate(raw):
        text = text.replace(f'"@{i}@"', one)
    return text


def places(value, path=()):
    """The paths of all values in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield from places(one, (*path, key))


def mutated(document, chance):
    """A document with one value changed, deleted, doubled, exchanged or of another sign."""
    document = copy.deepcopy(document)
    *path, key = chance.choice([place for place in places(document) if place])
    parent = document
    for step in path:
        parent = parent[step]
    old = parent[key]
    kind = chance.randrange(6)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(old))
    elif kind == 1:
        parent[f"{key}_"] = old
    elif kind == 2 and isinstance(old, (int, float)):
        parent[key] = chance.choice([-old, old * 2, old + 1, float(old), int(old), str(old)])
    elif kind == 3 and isinstance(old, str) and old:
        at = chance.randrange(len(old))
        parent[key] = old[:at] + chance.choice(["", "0", " ", "é", old[at] * 2]) + old[at + 1 :]
    elif kind == 4:
        other = document
        for step in chance.choice(list(places(document))):
            other = other[step]
        parent[key] = copy.deepcopy(other)
    else:
        parent[key] = copy.deepcopy(chance.choice(VALUES))
    return document


def damaged(content, chance):
    """Bytes with a bit flipped, or some of them lost, doubled or replaced."""
    at = chance.randrange(len(content))
    size = chance.choice([1, 1, 4, 64, len(content)])
    kind = chance.randrange(6)
    if kind < 3:
        return content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :]
    if kind == 3:
        return content[:at] + content[at + size :]
    if kind == 4:
        return content[: at + size] + content[at:]
    return content[:at] + chance.randbytes(min(size, 64)) + content[at + size :]


def loaded(cut, path):
    """The cut in a file, or None where the one error says that it is none."""
    try:
        return type(cut).load(path)
    except SavedCutError as error:
        said = str(error)
        assert said.startswith(f"{path} is not a saved ") or "was written by another version" in said
        assert "\n" not in said
        assert len(said) < 500
        return None


@pytest.mark.parametrize("name", DECISIONS)
def test_a_mutated_file_is_refused_or_equal(name, tmp_path):
    cut, path, chance = DECISIONS[name](), tmp_path / "cut.json", random.Random(name)
    cut.save(path)
    content, document = path.read_bytes(), json.loads(path.read_bytes())
    expected = type(cut).load(path).to_dict()
    equal = 0
    for turn in range(MUTANTS):
        path.write_bytes(damaged(content, chance) if turn % 2 else text_of(mutated(document, chance)).encode())
        found = loaded(cut, path)
        equal += found is not None
        assert found is None or found.to_dict() == expected
    assert equal < MUTANTS / 4


@pytest.mark.parametrize("name", [name for name in DECISIONS if name.startswith(("cuts", "top k"))])
def test_a_mutated_parquet_file_is_refused_or_equal(name, tmp_path):
    pytest.importorskip("pyarrow")
    cut, path, chance = DECISIONS[name](), tmp_path / "cut.parquet", random.Random(name)
    cut.save(path)
    content, expected = path.read_bytes(), type(cut).load(path).to_dict()
    for _ in range(MUTANTS):
        path.write_bytes(damaged(content, chance))
        found = loaded(cut, path)
        assert found is None or found.to_dict() == expected


@pytest.mark.parametrize("name", DECISIONS)
def test_a_forged_checksum_does_not_let_nonsense_in(name, tmp_path, monkeypatch):
    """What is read works, even where whoever wrote the file knows how checksums are made."""
    monkeypatch.setattr(saving, "_checksum", lambda *_: "forged")
    cut, path, chance = DECISIONS[name](), tmp_path / "cut.json", random.Random(name)
    document = json.loads(json.dumps(cut.to_dict()))
    for _ in range(MUTANTS):
        path.write_text(text_of(mutated(document, chance)))
        found = loaded(cut, path)
        if found is None:
            continue
        assert str(found)
        assert found._repr_html_()
        assert type(cut).from_dict(found.to_dict()).to_dict() == found.to_dict()
        if isinstance(found, Cut):
            lower, upper = found.interval
            assert lower < found.threshold <= upper or lower == found.threshold == upper
            assert found.predict([0.5]).shape == (1,)
            assert found.to_sql("score")
        elif isinstance(found, TopK):
            scores = np.full((2, len(found)), 0.5)
            assert found.predict(scores, as_="positions").shape == (2, found.k)
            if found.k == 1 and {type(one) for one in found.actions} == {int}:
                assert found.to_sql([str(i) for i in range(len(found))])
        else:
            assert found.predict(np.full((2, len(found)), 0.5)).shape == (2, len(found))
            assert all(found[label].rows >= 0 for label in found)


def test_a_mutated_parquet_table_is_refused_or_works(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(saving, "_checksum", lambda *_: "forged")
    cut, path, chance = DECISIONS["cuts"](), tmp_path / "cut.parquet", random.Random(0)
    cut.save(path)
    table = parquet.read_table(path)
    columns = table.to_pydict()
    for _ in range(300):
        name = chance.choice(list(columns))
        values = list(columns[name])
        value = chance.choice(
            [None, -1, 0, 2**62, 0.5, float("nan"), float("inf"), "", "x", "[[[", True, [1], {"a": 1}]
        )
        kind = chance.randrange(4)
        if kind == 0:
            mutant = {key: one for key, one in columns.items() if key != name}
        elif kind == 1:
            mutant = columns | {name: [value] * len(values)}
        elif kind == 2:
            mutant = {key: one * 2 for key, one in columns.items()}
        else:
            mutant = columns | {name: values[::-1]}
        parquet.write_table(pyarrow.table(mutant).replace_schema_metadata(table.schema.metadata), path)
        found = loaded(cut, path)
        assert found is None or (str(found) and found.predict(np.full((2, 3), 0.5)).shape == (2, 3))


def test_a_small_parquet_file_does_not_become_large(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    cut, path = DECISIONS["cuts"](), tmp_path / "cut.parquet"
    cut.save(path)
    table = parquet.read_table(path)
    many = pyarrow.concat_tables([table] * 200_000).combine_chunks()
    parquet.write_table(many.replace_schema_metadata(table.schema.metadata), path)
    assert path.stat().st_size < len(many)
    assert loaded(cut, path) is None


@pytest.mark.parametrize("name", ["cut", "cuts"])
def test_a_file_edited_by_hand_says_what_to_do(name, tmp_path):
    cut, path = DECISIONS[name](), tmp_path / "cut.json"
    document = cut.to_dict()
    place = document if name == "cut" else document["per_label"][0]
    lower = place["interval"][0] if name == "cut" else place["lower"]
    place["threshold"] = (lower + place["threshold"]) / 2  # makes the same predictions on the validation rows
    path.write_text(json.dumps(document))
    with pytest.raises(
        SavedCutError, match=r"cut\.json is not .*its checksum does not match.*: tune and save it again"
    ):
        type(cut).load(path)
    with pytest.raises(SavedCutError, match=r"^the document is not a saved .*checksum"):
        type(cut).from_dict(document)


def test_another_spelling_of_the_same_numbers_is_no_change(tmp_path):
    cut = tune_threshold([0, 1, 1], [0.0, 2.0, 3.0], sample_weight=[1.0, 2.0, 3.0])
    text = json.dumps(cut.to_dict(), indent=4, sort_keys=True)
    assert "1.0" in text
    (tmp_path / "cut.json").write_text(text.replace(".0,", ",").replace(".0\n", "\n"))
    assert Cut.load(tmp_path / "cut.json") == cut


def test_a_cut_that_a_command_printed_with_its_certificate_can_be_read():
    cut = DECISIONS["cut"]()
    assert Cut.from_dict(cut.to_dict() | {"certificate": {"lower": 0.5}}) == cut


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"threshold": 0.99}, r"the threshold is 0\.99, outside of its interval"),
        ({"interval": [0.9, 0.1]}, "outside of its interval"),
        ({"value": 0.75}, r"the value is 0\.75, but f1 of its confusion matrix is"),
        ({"prior": 0.01}, r"the prior is 0\.01, but the share of positives"),
        ({"prior": 1.5}, r"between 0 and 1, got 1\.5"),
        ({"confusion": {"tp": 0, "fp": 0, "fn": 0, "tn": 0}}, "must be positive and finite"),
    ],
    ids=str,
)
def test_parts_that_contradict_each_other_are_refused(change, reason, monkeypatch):
    document = DECISIONS["cut"]().to_dict() | change
    monkeypatch.setattr(saving, "_checksum", lambda *_: document["checksum"])
    with pytest.raises(SavedCutError, match=reason):
        Cut.from_dict(document)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"threshold": 0.999}, r"the threshold of the label 'a' is 0\.999, outside of its interval"),
        ({"value": 0.75}, r"the value of the label 'a' is 0\.75, but f1 of its"),
        ({"rows": 41}, "has 40 rows, but 41 were tuned on"),
        ({"label": 3.5}, "a label occurs twice"),
    ],
    ids=str,
)
def test_parts_of_labels_that_contradict_each_other_are_refused(change, reason, monkeypatch):
    document = DECISIONS["cuts"]().to_dict()
    document["per_label"][0] |= change
    monkeypatch.setattr(saving, "_checksum", lambda *_: document["checksum"])
    with pytest.raises(SavedCutError, match=reason):
        MultilabelCut.from_dict(document)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"resamples": 0}, "at least 1 resample"),
        ({"resamples": -1}, "expected a number of rows"),
        ({"quantiles": [0.1, 0.2, 0.3, 0.4]}, "expected 5 quantiles"),
        ({"quantiles": [0.1, 0.3, 0.2, 0.4, 0.5]}, "not ascending"),
        ({"quantiles": [0.1, 0.2, "nan", 0.4, 0.5]}, "not ascending"),
        ({"near_optimal": [0.5, 0.25]}, "near-optimal range is empty"),
        ({"near_optimal": [0.5]}, "two ends of an interval"),
        ({"tolerance": -1}, "must be finite and at least 0"),
        ({"tolerance": "inf"}, "must be finite and at least 0"),
        ({"best_value": 0}, "above the best value"),
        ({"best_threshold": "nan"}, "is NaN"),
    ],
    ids=str,
)
def test_impossible_records_of_resampled_thresholds_are_refused(change, reason, monkeypatch):
    document = DECISIONS["cut, stable"]().to_dict()
    document["stability"] |= change
    monkeypatch.setattr(saving, "_checksum", lambda *_: document["checksum"])
    with pytest.raises(SavedCutError, match=reason):
        Cut.from_dict(document)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"resampled_25": "inf"}, "of the label 0 are not ascending"),
        ({"near_optimal_upper": 0.0}, "near-optimal range of the label 0 is empty"),
        ({"tolerance": "nan"}, "the tolerance of the label 0 must be finite"),
        ({"best_value": 0.0}, "the value of the label 0 is .* above the best value"),
        ({"resamples": 1.5}, "expected a number of rows"),
    ],
    ids=str,
)
def test_impossible_records_of_labels_are_refused(change, reason, monkeypatch):
    document = DECISIONS["cuts, stable"]().to_dict()
    document["per_label"][0] |= change
    monkeypatch.setattr(saving, "_checksum", lambda *_: document["checksum"])
    with pytest.raises(SavedCutError, match=reason):
        MultilabelCut.from_dict(document)


def test_what_could_not_be_read_is_not_saved(tmp_path):
    cut, cuts = DECISIONS["cut"](), DECISIONS["cuts"]()
    with pytest.raises(ValueError, match="outside of its interval"):
        replace(cut, threshold=2.0).save(tmp_path / "cut.json")
    with pytest.raises(ValueError, match="the value is 2"):
        replace(cuts, value=2.0).save(tmp_path / "cut.json")
    assert not list(tmp_path.iterdir())


# Commands


def command(*arguments):
    """What a command says that cannot do its work: a sentence."""
    testing = pytest.importorskip("typer.testing")
    pytest.importorskip("duckdb")
    from surecut.cli.app import app

    result = testing.CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 1, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert result.output.startswith("surecut: ")
    return result.output


def commands(folder, cut, *by):
    """What the commands that read a cut say of one."""
    table = folder / "rows.csv"
    table.write_text("tag,label,score\n" + "".join(f"{i % 2},{i // 2 % 2},{i / 40}\n" for i in range(40)))
    yield command("apply", table, "--cut", cut, "--score", "score", "--out", folder / "out.csv", *by)
    rows = "--label", "label", "--score", "score", "--cut", cut
    yield command("certify", table, *rows, *by)
    yield command("check", table, *rows, *by)


BAD_FILES = {
    "empty": b"",
    "truncated": json.dumps(DECISIONS["cut"]().to_dict()).encode()[:-40],
    "nested": b'{"schema": "surecut/cut", "schema_version": 6, "threshold": ' + b"[" * 100_000,
    "huge": json.dumps(DECISIONS["cut"]().to_dict() | {"prior": 10**399}).encode(),
    "edited": json.dumps(DECISIONS["cut"]().to_dict() | {"threshold": 0.25}).encode(),
    "no text": bytes(range(256)),
}


@pytest.mark.parametrize("kind", BAD_FILES)
@pytest.mark.parametrize("ending", ["json", "parquet"])
def test_commands_say_in_a_sentence_that_a_file_is_no_cut(kind, ending, tmp_path):
    path = tmp_path / f"cut.{ending}"
    path.write_bytes(BAD_FILES[kind])
    by = ["--by", "tag"] if ending == "parquet" else []
    for said in commands(tmp_path, path, *by):
        assert "is not a saved " in said


def test_commands_refuse_labels_that_are_the_same_text(tmp_path):
    tune_thresholds(*rows(2), labels=[0, "0"]).save(tmp_path / "cut.json")
    for said in commands(tmp_path, tmp_path / "cut.json", "--by", "tag"):
        assert re.search(r"the labels 0 and '0' of .* are the same text", said.replace("\n", " "))
