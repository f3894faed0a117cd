"""What many tests share: real traces by name, each loaded once, and one browser.

Two browsers cannot run in one process.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from selftime import Trace, load

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

BROWSERS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is here. The first by name draws no window: it needs two thirds of the time."""
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")

FOLDER: Final = Path(
    os.environ.get("SELFTIME_TRACES", Path(__file__).parents[2] / "shared" / "traces")
)
"""The real traces."""

LARGE_BESIDE_ALIKE: Final = {
    "a100-2022-diff-control": "a100-2022-sampled-rank0",
    "a100-2022-diff-test": "a100-2022-sampled-rank0",
    "mi300-2025-resnet-ddp-recompute": "mi300-2025-bert-small",
    "mi300-2026-sglang-decode-graph-capture": "mi300-2026-sglang-decode-graph-replay",
    "v100-2021-resnet50-workers4.pt.trace": "v100-2021-resnet50-workers0.pt.trace",
}
"""Real traces with more than half of all events, and for each one of its device and recorder."""

ReadReal: TypeAlias = Callable[[str], Trace]


@pytest.fixture(scope="session")
def real_names(pytestconfig: pytest.Config) -> list[str]:
    """The names of all real traces; with `--sample` without the large ones that are like others."""
    if not FOLDER.is_dir():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    names = {path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz")}
    assert names >= LARGE_BESIDE_ALIKE.keys() | set(LARGE_BESIDE_ALIKE.values())
    return sorted(names - LARGE_BESIDE_ALIKE.keys() if pytestconfig.getoption("sample") else names)


@pytest.fixture(scope="session")
def real_files() -> Callable[[str], Path]:
    """The file of a real trace by its name."""

    def find(name: str) -> Path:
        if not FOLDER.is_dir():
            pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
        path = FOLDER / f"{name}.json.gz"
        assert path.is_file(), name
        return path

    return find


@pytest.fixture(scope="session")
def real(real_files: Callable[[str], Path]) -> ReadReal:
    """A real trace by its name."""

    @cache
    def read(name: str) -> Trace:
        trace = load(real_files(name))
        assert isinstance(trace, Trace)
        return trace

    return read


@pytest.fixture(scope="session")
def playwright() -> "Iterator[Playwright]":
    library = pytest.importorskip("playwright.sync_api")
    with library.sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: "Playwright") -> "Iterator[Browser]":
    """Debian's Chromium; each test has a profile of its own in it."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium here; install Debian's package `chromium-headless-shell`")
    browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
    yield browser
    browser.close()
