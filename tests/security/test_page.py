"""What an adversary wrote does nothing in a browser: no script, dialog or question elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page
from tests.security.adversary import HARM

from selftime.reports.html import as_html
from selftime.trace import Trace

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PANELS: Final = ("answer", "operators", "timeline", "flame", "lines", "health")
SHOWN: Final = """panel => {
  const main = document.querySelector("main");
  return main !== null && main.dataset.panel === panel &&
    main.querySelector(".waiting, [aria-busy=true]") === null && main.innerText.trim() !== "";
}"""
HARMED: Final = HARM.partition("=")[0]


class Alarm:
    """What a page did that it must not do."""

    def __init__(self, page: Page) -> None:
        self.heard: list[str] = []
        page.on("dialog", lambda dialog: self.heard.append(dialog.message))
        page.on("popup", lambda other: self.heard.append(other.url))
        page.on("download", lambda download: self.heard.append(download.url))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith(("file:///", "data:,", "about:", "blob:")):
            self.heard.append(url)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


def test_a_report_does_nothing_but_show(
    page: Page, traces: dict[str, Trace], tmp_path: Path
) -> None:
    alarm = Alarm(page)
    path = tmp_path / "report.html"
    path.write_text(as_html({"trace": traces["trace"]}), encoding="utf-8")
    page.goto(path.as_uri())
    for panel in PANELS:
        page.evaluate("hash => { location.hash = hash }", f"#/{panel}")
        page.wait_for_function(SHOWN, arg=panel)
        assert page.evaluate(HARMED) is None
        assert page.locator("main :is(iframe, img, object, embed, form, script)").count() == 0
        links = page.locator("main a").evaluate_all("all => all.map(a => a.protocol)")
        assert set(links) <= {"file:", "data:", "blob:"}
    assert alarm.heard == []
    assert page.url.startswith(path.as_uri())
