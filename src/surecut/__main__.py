"""The entry point of the command ``surecut``, and of ``python -m surecut``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without its extra, say what to install."""
    try:
        from surecut.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("surecut"):
            raise
        sys.exit(f"the surecut command needs {error.name}: pip install 'surecut[cli]'")
    app()


if __name__ == "__main__":
    main()
