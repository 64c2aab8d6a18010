"""Messages of the library are shown in the options of the command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer

import surecut
from surecut.cli.app import app
from surecut.cli.options import FLAGS, OPTIONS, in_options

KEYWORD = re.compile(r"(?<![\w.<>-])([a-z_]+)=(?!=)")

NO_OPTION = {
    # What messages name that no command sets, and why.
    "alpha": "a parameter of a metric",
    "beta": "a parameter of a metric",
    "fn": "a parameter of a metric",
    "fp": "a parameter of a metric",
    "name": "how parameters of a metric are written; apply has its own message",
    "negative_weight": "a parameter of a metric",
    "positive_weight": "a parameter of a metric",
    "greater_is_better": "of a scikit-learn scorer",
    "bands": "of BandsDisplay",
    "bits": "of ScoreSketch",
    "columns": "of TopK.to_sql",
    "cv": "of PlugInClassifier",
    "decision_function_shape": "of support vector machines",
    "refit": "of PlugInClassifier",
    "schema": "of a PyArrow data set",
    "n_samples": "of a data set that is drawn",
    "tally": "of functions that take rows or a tally; commands read rows",
    "style": "HTML",
    "value": "of MultilabelCut.at",
    "y_score": "of functions that take rows",
    "as_": "of TopK.predict",
    "classes": "of matrices; the labels of a long table are its own",
    "kind": "of TopKDisplay",
    "labels": "of matrices; the columns --by hold them",
    "randomised": "of populations of several classes",
    "keyword": "the documentation of the table itself",
    "zero_division": "of the samples average, which long tables do not have",
}


def named_keywords():
    """Every keyword that a text of the package names, outside of docstrings, and where."""
    folder = Path(surecut.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0] in ("study", "linear"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                for keyword in KEYWORD.findall(node.value):
                    yield keyword, f"{path.name}:{node.lineno}"


def test_every_keyword_that_a_message_names_has_an_option_or_a_reason():
    assert not {(keyword, where) for keyword, where in named_keywords() if keyword not in {*OPTIONS, *NO_OPTION}}


def test_the_table_holds_options_that_exist():
    commands = typer.main.get_command(app).commands
    exist = {option for command in commands.values() for param in command.params for option in param.opts}
    exist |= {option for command in commands.values() for param in command.params for option in param.secondary_opts}
    assert {*OPTIONS.values(), *FLAGS.values()} <= exist


@pytest.mark.parametrize("keyword", sorted(OPTIONS))
def test_a_keyword_is_shown_as_its_option(keyword):
    option = OPTIONS[keyword]
    assert in_options(f"pass {keyword}= too") == f"pass {option} too"
    assert in_options(f"({keyword}='some thing').") == f"({option} some thing)."
    assert in_options(f'leave {keyword}="word", or') == f"leave {option} word, or"
    assert in_options(f"leave {keyword}=0.5.") == f"leave {option} 0.5."
    assert in_options(f"{keyword} must be") == f"{keyword} must be"
    assert in_options(f"other_{keyword}=1") == f"other_{keyword}=1"


def test_flags_and_calls():
    assert in_options("say so: held_out=True; else held_out=False") == "say so: --held-out; else --not-held-out"
    assert in_options("or use certify(method='bootstrap')") == "or use surecut certify --method bootstrap"
    assert in_options("on held-out rows with certify(cut, ...)") == "on held-out rows with surecut certify"
    assert (
        in_options("pass a list, constraint=['fpr<=0.5', 'recall>=0.3']")
        == "repeat --constraint: --constraint 'fpr<=0.5' --constraint 'recall>=0.3'"
    )
    assert in_options("utility(fp=-2)") == "utility(fp=-2)"


def test_gains_and_conditions_of_zones():
    assert (
        in_options("gains={'no': (0, -10), \"don't\": -1}, or conditions={'ask': 'share<=0.2'}")
        == """--gain "no: 0, -10" --gain "don't: -1", or --condition "ask: share<=0.2\""""
    )
    assert in_options("gains={'}': 1}") == "--gain{'}': 1}"
    assert in_options("upper='ppv>=0.9'; leave stable=False") == '--upper "ppv>=0.9"; leave out --stable'
