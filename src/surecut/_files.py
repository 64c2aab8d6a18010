"""Writing files whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def require_folder(path: Path) -> None:
    """Raise where a file cannot be written: its folder does not exist, or the path is a folder or a loop of links."""
    if "\0" in str(path):
        raise OSError(f"cannot write {str(path)!r}: a name must not hold a null character")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    place = _place(path)
    if place.is_symlink():
        raise OSError(f"cannot write {path}: it is a symbolic link that leads back to itself")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: it is a symbolic link, and there is no folder {place.parent}")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a new file to write, which then replaces `path`: a file that is partially written is never seen there.

    The new file has the permissions of the one that it replaces, and its owner and group as far as the system lets;
    without one, those that the umask gives. A symbolic link stays a link: the file that it leads to is replaced. A pipe
    or a device is written to, not replaced.
    """
    require_folder(path)
    place = _place(path)
    if place.exists() and not place.is_file():
        yield place
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:100]}.", suffix=place.suffix[:20])
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from error
    os.close(handle)
    try:
        yield Path(temporary)
        os.chmod(temporary, _mode(temporary, place))
        os.replace(temporary, place)
    except BaseException:
        os.unlink(temporary)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once: neither a reader nor a crash leaves one that is partially written."""
    with replaced(path) as new:
        try:
            with open(new, "wb") as file:
                file.write(content)
                file.flush()
                if new.is_file():
                    os.fsync(file.fileno())
        except OSError as error:
            raise OSError(f"cannot write {path}: {error.strerror or error}") from error


def _place(path: Path) -> Path:
    """Where a path leads to; a symbolic link only if it leads back to itself."""
    return Path(os.path.realpath(path))


def _mode(new: str, old: Path) -> int:
    """The permissions of a new file that replaces an old one, after giving it the old one's owner and group."""
    try:
        known = old.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
    mode = known.st_mode & 0o777
    if not hasattr(os, "chown"):  # Windows
        return mode
    for owner, group in ((known.st_uid, known.st_gid), (-1, known.st_gid)):
        try:
            os.chown(new, owner, group)
            return mode
        except OSError:  # only root gives files away
            continue
    return mode & ~stat.S_IRWXG  # what its group might do is not for another one
