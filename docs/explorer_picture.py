"""The pictures of the explorer, of a cut and of bands: `python docs/explorer_picture.py [path of Chromium]`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from made_by_commands import write_bands_page, write_explorer
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images"


def main(chromium: str) -> None:
    """Open each page, move a threshold a little, and take a picture."""
    folder = Path(tempfile.mkdtemp())
    write_explorer(folder / "explorer.html")
    write_bands_page(folder / "bands.html")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = opened(browser, folder / "explorer.html", width=1240, height=860, scale=1.25)
        move(page, "#slider", 24)
        page.screenshot(path=IMAGES / "explorer.png")
        page = opened(browser, folder / "bands.html", width=1120, height=780)
        move(page, "#slider-2", 12)
        page.screenshot(path=IMAGES / "bands.png")
        browser.close()


def opened(browser: Browser, file: Path, width: int, height: int, scale: float = 1.0) -> Page:
    """A page in a window of this size."""
    window = {"width": width, "height": height}
    page = browser.new_page(viewport=window, device_scale_factor=scale, color_scheme="light")
    page.goto(file.as_uri())
    return page


def move(page: Page, slider: str, steps: int) -> None:
    """Move a threshold up by the keyboard."""
    page.locator(slider).focus()
    for _ in range(steps):
        page.keyboard.press("ArrowRight")
    page.locator(slider).blur()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium") or sys.exit("no Chromium: pass its path"))
