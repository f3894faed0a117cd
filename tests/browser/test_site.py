"""The documents as a site: it is built without a warning, asks nothing of others, and is searched.

MkDocs checks the links and anchors of every page, and that `nav` has every page, while it builds.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

ROOT: Final = Path(__file__).parents[2]
LOADED: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
"""What a page loads by itself, beside `link`."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing of what is asked."""


class Loads(HTMLParser):
    """The addresses that a page asks for without a click."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        is_followed = tag == "link" and told.get("rel") not in {"prev", "next", "canonical"}
        self.found.append(told.get("href" if is_followed else LOADED.get(tag, "")) or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    running = Thread(target=server.serve_forever)
    running.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    running.join()
    server.server_close()


def test_every_page_is_in_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    pages = {page.relative_to(docs) for page in docs.rglob("*.md")}
    assert pages
    for page in pages:
        name = "index" if page.stem == "README" else page.stem
        assert (site / page.parent / f"{name}.html").is_file()


def test_no_page_loads_anything_of_another_server(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        loads = Loads()
        text = page.read_text(encoding="utf-8")
        loads.feed(text)
        assert any(loads.found) or 'http-equiv="refresh"' in text  # a former address
        assert [one for one in loads.found if "//" in one] == [], page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_shown(
    address: str, opened: Callable[..., Page], screenshot: Callable[[Page, str], None], scheme: str
) -> None:
    page = opened(f"{address}/tutorial.html", color_scheme=scheme)
    expect(page.locator("h1")).to_contain_text("Tutorial")
    screenshot(page, f"site-{scheme}")


def test_the_pages_are_searched(address: str, opened: Callable[..., Page]) -> None:
    page = opened(f"{address}/index.html")
    page.get_by_placeholder("Search").first.fill("slow_input")
    found = page.locator(".md-search-result__link").first
    expect(found).to_have_attribute("href", f"{address}/rules/slow_input.html?h=slow_input")


@pytest.mark.sweep
def test_a_narrow_page_does_not_scroll_sideways(address: str, opened: Callable[..., Page]) -> None:
    page = opened(f"{address}/differences.html", width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
