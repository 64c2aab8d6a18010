"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def require_folder(path: Path) -> None:
    """Raise where a file cannot be written: its folder does not exist, or the path is a folder itself."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a new file to write, which then replaces `path`: a file that is partially written is never seen there.

    A link stays a link. A pipe or a device is written to, not replaced.
    """
    require_folder(path)
    place = path.resolve()
    if place.exists() and not place.is_file():
        yield place
        return
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=place.suffix)
    os.close(handle)
    try:
        yield Path(temporary)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
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
