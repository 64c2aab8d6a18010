"""What the tests share: the metrics under contract, scores that are hard to search, and the oracle, as fixtures."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Models of a few hundred rows gain nothing by threads, and those of several test processes wait for each other: a fit
# took ten times as long. It is read when NumPy and scikit-learn are loaded, so it comes before them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

from oracle import FAMILIES, METRICS, Oracle, Sample, make_sample
from surecut.confusion import Confusion
from surecut.core import kernels as core_kernels
from surecut.core.settings import Settings, using
from surecut.core.threads import Background
from surecut.metrics import LinearFractionalMetric, Metric

hypothesis.settings.register_profile("surecut", deadline=None, max_examples=60)
hypothesis.settings.load_profile("surecut")

LINEAR_FRACTIONAL = {name: metric for name, metric in METRICS.items() if isinstance(metric, LinearFractionalMetric)}
ON_HULL = LINEAR_FRACTIONAL | {"mcc": METRICS["mcc"]}
WITH_THEOREM = {name: metric for name, metric in LINEAR_FRACTIONAL.items() if name not in ("precision", "npv")}


@pytest.fixture(scope="session", params=METRICS.values(), ids=METRICS)
def metric(request: pytest.FixtureRequest) -> Metric:
    """Every metric of the registry, and one of each family that has parameters."""
    return request.param


@pytest.fixture(scope="session", params=LINEAR_FRACTIONAL.values(), ids=LINEAR_FRACTIONAL)
def linear_fractional(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="session", params=WITH_THEOREM.values(), ids=WITH_THEOREM)
def with_theorem(request: pytest.FixtureRequest) -> Any:
    """The linear-fractional metrics whose denominator never vanishes."""
    return request.param


@pytest.fixture(scope="session", params=ON_HULL.values(), ids=ON_HULL)
def on_hull(request: pytest.FixtureRequest) -> Any:
    """The metrics whose best cut is a vertex of the ROC convex hull."""
    return request.param


@pytest.fixture(scope="session", params=[0.001, 0.1, 0.5, 0.7, 0.99])
def prior(request: pytest.FixtureRequest) -> float:
    return request.param


@pytest.fixture(scope="session", autouse=True)
def nothing_in_the_background() -> Iterator[None]:
    """Kernels are compiled where they are asked for: a thread that imports and compiles also changes the filters of
    warnings, which are the whole process's, while a test looks at its own."""

    def at_once(background: Background, piece: Callable[[], object]) -> None:
        with contextlib.suppress(Exception):
            piece()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Background, "submit", at_once)
        yield


@pytest.fixture(scope="session", params=["numpy", "compiled"])
def kernels_name(request: pytest.FixtureRequest) -> str:
    """Both sets of kernels by name, as the settings call them."""
    if request.param == "compiled" and core_kernels.compiled() is None:
        pytest.skip("numba is not installed")
    return request.param


@pytest.fixture(scope="session")
def kernels(kernels_name: str) -> Any:
    """Both sets of kernels, one after the other."""
    return core_kernels.available(0, Settings(kernels=kernels_name))


SMALL = {
    "sort_below": 0,
    "block": 16,
    "first_bits": 3,
    "group": 4,
    "sorted_at_once": 8,
    "sorted_share": 10**6,
    "flat_share": 0,
    "flat_bins": 2,
    "kept_rows": 1000,
    "parts": 16,
    "rows_per_part": 4,
}
"""Settings with which even a handful of rows is searched as if they were millions."""


@pytest.fixture(scope="session")
def searching() -> Callable[..., Any]:
    """A context in which a handful of rows is searched: in small blocks, in few first bins, by the kernels named."""

    @contextlib.contextmanager
    def context(kernels: str = "numpy", **sizes: int) -> Iterator[None]:
        with using(kernels=kernels, **(SMALL | sizes)):
            yield

    return context


@pytest.fixture(scope="session")
def small_settings() -> dict[str, int]:
    return SMALL


@pytest.fixture(scope="session", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def sample_of() -> Callable[..., Sample]:
    return make_sample


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture(scope="session")
def some_confusions() -> list[Confusion]:
    """Confusions in counts, with both classes, among them the corners of the box."""
    random = np.random.default_rng(7)
    drawn = [Confusion(*map(int, random.integers(1, 60, 4))) for _ in range(40)]
    corners = [Confusion(7, 0, 0, 13), Confusion(7, 13, 0, 0), Confusion(0, 13, 7, 0), Confusion(1, 0, 6, 13)]
    return drawn + corners


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB downloads nothing."""
    from surecut.sources import files

    connect = files.connected

    def connected(*options, **named):
        connection = connect(*options, **named)
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            connection.execute(f"SET {setting} = false")
        return connection

    monkeypatch.setattr(files, "connected", connected)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, for the pages."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pages are tested by Playwright, which is absent")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = os.environ.get("SURECUT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: install it, or set SURECUT_CHROMIUM to its path")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def load(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a summary as a person does, from disk; whatever the console says fails the test."""
    from surecut.report import save_html

    said: list[str] = []
    pages = []

    def opened(summary: Any, **settings: Any) -> Any:
        save_html(summary, tmp_path / "page.html")
        page = browser.new_page(**settings)
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request",
            lambda request: said.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
        )
        page.goto((tmp_path / "page.html").as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert said == []
