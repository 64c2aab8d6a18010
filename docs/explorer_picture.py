"""The README's picture of the explorer: `python docs/explorer_picture.py [path of Chromium]`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from made_by_commands import write_explorer
from playwright.sync_api import sync_playwright

OUT = Path(__file__).parent / "images" / "explorer.png"


def main(chromium: str) -> None:
    """Open the page on the demo's data, move the cut a little, and take a picture."""
    page_file = Path(tempfile.mkdtemp()) / "page.html"
    write_explorer(page_file)
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 860}, device_scale_factor=1.25, color_scheme="light")
        page.goto(page_file.as_uri())
        page.locator("#slider").focus()
        for _ in range(24):
            page.keyboard.press("ArrowRight")
        page.locator("#slider").blur()
        page.screenshot(path=OUT)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium") or sys.exit("no Chromium: pass its path"))
