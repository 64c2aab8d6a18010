"""Run commands as a terminal of 80 columns would, and read what they say."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from surecut.cli.app import app

runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})


def run(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def said(*arguments, code=1):
    """The message of a command that fails, on one line."""
    return " ".join(run(*arguments, code=code).stderr.split())


def as_json(*arguments, code=0):
    return json.loads(run(*arguments, "--format", "json", code=code).stdout)
