"""The entry point of the command ``surecut``, and of ``python -m surecut``."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command line; without its extra, say what to install."""
    try:
        from surecut.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("surecut"):
            raise
        sys.exit(f"the surecut command needs {error.name}: pip install 'surecut[cli]'")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old encoding without ≥ or α is no reason to fail
    try:
        app()
    except OSError as error:  # of the output itself, such as a full disk behind a pipe
        sys.exit(f"surecut: cannot write the output: {error.strerror or error}")


if __name__ == "__main__":
    main()
