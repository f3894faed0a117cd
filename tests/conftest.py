"""One browser for all tests that look at a page: two of them cannot run in one process."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

BROWSERS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is here. The first by name draws no window: it needs two thirds of the time."""
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


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
