"""The documentation's settings. It builds offline, and a warning is an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import surecut  # noqa: E402

project = "surecut"
author = "The surecut developers"
project_copyright = author
version = release = surecut.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_made", "examples"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_extra_path = ["_made/extra"]
html_css_files = ["surecut.css"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the signatures are in the source; types of arrays and metrics would fill the page
numpydoc_show_class_members = False  # the class template lists them
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 60,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "surecut"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "surecut"},
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"*": [], "study/*": [], "api": ["sidebar-nav-bs"]}  # a page without pages below it needs no sidebar


def bars_are_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """In docstrings |f| is an absolute value, which reStructuredText takes for a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = re.sub(r"(``[^`]*``)|\|", lambda match: match.group(1) or r"\|", line)


def forget_removed_examples() -> None:
    """An example that was renamed or removed leaves its page behind, which would be in no table of contents."""
    for page in (HERE / "auto_examples").glob("plot_*.rst"):
        if not (HERE / "examples" / f"{page.stem}.py").exists():
            for left in page.parent.glob(f"{page.stem}.*"):
                left.unlink()


def setup(app: Any) -> None:
    """Make the pages that commands make: the explorer and the command line's help."""
    forget_removed_examples()
    from made_by_commands import write_all

    write_all(HERE / "_made")
    app.connect("autodoc-process-docstring", bars_are_bars)
