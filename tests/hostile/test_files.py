"""Writing files: what stands in the way, what is kept of the file that is replaced, and what a crash leaves."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from surecut import _files
from surecut._files import replaced, require_folder, write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and signals are POSIX's")


def mode(path):
    return path.stat().st_mode & 0o7777


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "cut.json"
    path.write_bytes(b"old")
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@posix
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o444, 0o755])
def test_a_new_file_has_the_permissions_of_the_one_that_it_replaces(old, permissions):
    old.chmod(permissions)
    write_whole(old, b"new")
    assert old.read_bytes() == b"new"
    assert mode(old) == permissions


@posix
def test_a_first_file_has_the_permissions_of_the_umask(tmp_path):
    previous = os.umask(0o027)
    try:
        write_whole(tmp_path / "new.json", b"new")
    finally:
        os.umask(previous)
    assert mode(tmp_path / "new.json") == 0o640


@posix
def test_owner_and_group_are_kept(old, monkeypatch):
    given = []
    monkeypatch.setattr(os, "chown", lambda path, owner, group: given.append((owner, group)))
    write_whole(old, b"new")
    assert given == [(old.stat().st_uid, old.stat().st_gid)]


@posix
@pytest.mark.parametrize(("group_is_kept", "expected"), [(True, 0o664), (False, 0o604)])
def test_another_group_is_not_given_the_permissions_of_the_old_one(old, monkeypatch, group_is_kept, expected):
    def chown(path, owner, group):
        if owner != -1 or not group_is_kept:
            raise PermissionError(errno.EPERM, "Operation not permitted")

    old.chmod(0o664)
    monkeypatch.setattr(os, "chown", chown)
    write_whole(old, b"new")
    assert mode(old) == expected


@posix
def test_a_file_is_private_until_it_is_finished(old):
    with replaced(old) as new:
        assert mode(new) == 0o600
        new.write_bytes(b"new")


@posix
def test_a_symbolic_link_is_followed_and_stays_one(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "real.json").write_bytes(b"old")
    (folder / "real.json").chmod(0o600)
    (tmp_path / "first.json").symlink_to(folder / "real.json")
    (tmp_path / "second.json").symlink_to("first.json")
    write_whole(tmp_path / "second.json", b"new")
    assert (tmp_path / "second.json").is_symlink()
    assert (tmp_path / "first.json").is_symlink()
    assert contents(folder) == {"real.json": b"new"}
    assert mode(folder / "real.json") == 0o600


@posix
def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path):
    (tmp_path / "link.json").symlink_to("new.json")
    write_whole(tmp_path / "link.json", b"new")
    assert (tmp_path / "new.json").read_bytes() == b"new"
    (tmp_path / "astray.json").symlink_to(tmp_path / "no" / "new.json")
    with pytest.raises(FileNotFoundError, match=r"astray\.json: it is a symbolic link, and there is no folder .*no$"):
        write_whole(tmp_path / "astray.json", b"new")


@posix
@pytest.mark.parametrize("target", ["loop.json", "other.json"])
def test_a_loop_of_links_is_told_in_a_sentence(tmp_path, target):
    (tmp_path / "loop.json").symlink_to(target)
    if target == "other.json":
        (tmp_path / "other.json").symlink_to("loop.json")
    for write in (require_folder, lambda path: write_whole(path, b"new")):
        with pytest.raises(
            OSError, match=r"cannot write .*loop\.json: it is a symbolic link that leads back to itself"
        ):
            write(tmp_path / "loop.json")


@posix
def test_a_command_says_that_links_form_a_loop(tmp_path):
    testing = pytest.importorskip("typer.testing")
    pytest.importorskip("duckdb")
    from surecut.cli.app import app

    table, loop = tmp_path / "rows.csv", tmp_path / "loop.json"
    table.write_text("label,score\n0,0.1\n1,0.9\n")
    loop.symlink_to(loop)
    for option in ("--out", "--report"):
        named = loop if option == "--out" else tmp_path / "loop.html"
        if option == "--report":
            named.symlink_to(named)
        result = testing.CliRunner().invoke(app, ["tune", str(table), option, str(named)])
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert "leads back to itself" in " ".join(result.output.split())


def test_a_folder_that_cannot_be_written_to_is_told(old, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied", "/some/.cut.json.x1y2")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(OSError, match=r"^cannot write .*cut\.json: Permission denied$"):
        write_whole(old, b"new")
    assert contents(old.parent) == {"cut.json": b"old"}


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_without_permission_is_told(old):
    old.parent.chmod(0o500)
    try:
        with pytest.raises(OSError, match=r"cut\.json: Permission denied"):
            write_whole(old, b"new")
    finally:
        old.parent.chmod(0o700)
    assert contents(old.parent) == {"cut.json": b"old"}


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(old, monkeypatch, step):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        """A file on a disk that is full."""

        def __init__(self, *_):
            self.write = full

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    if step == "write":
        monkeypatch.setattr(_files, "open", Full, raising=False)
    else:
        monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(old, b"new")
    assert contents(old.parent) == {"cut.json": b"old"}


@posix
@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_process_that_is_killed_leaves_the_old_file(old, step):
    script = f"""
import os, signal, sys
from pathlib import Path
from surecut._files import write_whole
os.{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_whole(Path(sys.argv[1]), b"new" * 1000)
"""
    ended = subprocess.run([sys.executable, "-c", script, str(old)], check=False, env=environment())
    assert ended.returncode == -signal.SIGKILL
    assert old.read_bytes() == b"old"
    write_whole(old, b"new")  # what is left of the other one is not in the way
    assert old.read_bytes() == b"new"


def environment():
    import surecut

    return {**os.environ, "PYTHONPATH": str(Path(surecut.__file__).parents[1])}


def test_long_names_can_be_written(tmp_path):
    path = tmp_path / ("a" * 240 + ".json")
    write_whole(path, b"new")
    assert contents(tmp_path) == {path.name: b"new"}
