"""The command line as a person meets it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from surecut import demo
from surecut.cli import app

runner = CliRunner()


def test_demo_shows_a_table_and_saves_a_picture(tmp_path):
    picture = tmp_path / "picture.png"
    result = runner.invoke(app, ["demo", "--out", str(picture)], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    for name in demo.METRICS:
        assert name in result.output
    assert max(len(line) for line in result.output.splitlines()[:-1]) <= 80
    assert "picture.png" in result.output


def test_demo_judges_on_rows_that_neither_step_saw():
    story = demo.measure()
    assert sum(story.sizes.values()) == 1797
    rows = {row.name: row for row in story.rows}
    assert rows["F2"].tuned > rows["F2"].usual
    assert rows["F1"].cut == story.tuning.best_cut("f1")
    assert story.tuning.sample.rows == story.sizes["tune"]


def test_a_mistake_gets_a_sentence_and_no_traceback(tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path / "nowhere" / "picture.png")])
    assert result.exit_code == 1
    assert "there is no folder" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"]])
def test_help_and_version_load_nothing_heavy(arguments):
    code = (
        "import sys; sys.argv = ['surecut', *sys.argv[1:]]\n"
        "from surecut.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "heavy = {'sklearn', 'numba', 'scipy', 'pandas', 'matplotlib', 'duckdb'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_its_extra_the_command_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None\nfrom surecut.__main__ import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'surecut[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
