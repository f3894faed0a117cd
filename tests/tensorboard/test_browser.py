"""The tab in the real TensorBoard, in a real browser."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, FrameLocator, Page, expect

if TYPE_CHECKING:
    from tests.tensorboard.conftest import Logs

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PATIENCE_MS: Final = 60_000
"""TensorBoard and the first answer of a trace take their time on a busy machine."""
LOOKS_AGAIN_MS: Final = 30_000
"""On the page's clock; after this the tab has asked for later traces."""
LOOK_MS: Final = 500
"""On ours: TensorBoard looks into the folder once a second."""

Open = Callable[..., Page]


@contextmanager
def running(logdir: Path, *flags: str) -> Iterator[str]:
    """The address of a TensorBoard that runs for as long as the context."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
    server = subprocess.Popen(  # noqa: S603 - our own command
        [*command, *flags], env=environment, stderr=subprocess.PIPE, text=True
    )
    with server:
        try:
            assert server.stderr is not None
            said = ""
            for line in server.stderr:
                said += line
                if "Press CTRL+C" in line:
                    break
            addresses = [word for word in said.split() if word.startswith("http://localhost")]
            assert addresses, said
            yield addresses[-1]
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:  # TensorBoard may hang in its own handler
                server.kill()


class Seen:
    """What our frame complained of, and what it asked of others."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def _console(self, message: Any) -> None:
        is_ours = "/plugin/selftime" in message.location.get("url", "")
        if message.type in {"error", "warning"} and is_ours:
            self.complaints.append(message.text)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield page


def opened(page: Page) -> FrameLocator:
    """Our frame, after a click on our tab."""
    page.get_by_role("tab", name="selftime").click()
    return page.frame_locator("iframe[src*='name=selftime']")


@pytest.mark.parametrize("prefix", ["/some/prefix", ""])
@pytest.mark.sweep(1)
def test_the_tab_shows_a_trace(prefix: str, page: Page, logs: "Logs") -> None:
    logs.write("new/plugins/profile/run/gpu_2.4.pt.trace.json.gz")
    logs.write("old/host_1.9.pt.trace.json", age_s=600)
    with running(logs.root, f"--path_prefix={prefix}") as address:
        seen = Seen(page)
        page.goto(address)
        frame = opened(page)
        expect(frame.locator("nav a[aria-current=page]")).to_have_count(1)
        expect(frame.get_by_label("Run")).to_have_value("new/run")
        expect(frame.locator("body")).to_have_css("font-size", "13px")
        frame.locator("nav a[href*='#/operators']").click()
        expect(frame.locator("main")).to_contain_text("aten::mm")

        frame.get_by_label("Run").select_option("old")
        expect(frame.locator("main")).to_contain_text("aten::mm")

        expect(page).to_have_url(re.compile(r"#selftime&p\.selftime\.at=%23%2Foperators"))
        page.reload()  # as whoever is sent the link
        expect(frame.locator("main")).to_have_attribute("data-panel", "operators")
        expect(frame.get_by_label("Run")).to_have_value("old")
        expect(frame.locator("html")).to_have_attribute("data-theme", "light")
        page.locator("body").evaluate("body => body.classList.add('dark-mode')")
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
        host = address.split("/")[2]
        assert seen.complaints == []
        ours = [url for url in seen.asked if "/plugin/selftime/" in url]
        assert all(url.startswith(f"http://{host}{prefix}/data/plugin/selftime/") for url in ours)
        assert {url.split("/")[2] for url in seen.asked} == {host}


@pytest.mark.sweep
def test_a_later_trace_appears_beside_the_one_that_is_read(page: Page, logs: "Logs") -> None:
    logs.write("old/host_1.9.pt.trace.json", age_s=600)
    with running(logs.root) as address:
        page.clock.install()
        page.goto(address)
        frame = opened(page)
        expect(frame.locator(".trace-name")).to_have_text("host_1.9.pt.trace.json")
        logs.write("new/host_1.11.pt.trace.json", age_s=10)
        runs = frame.get_by_label("Run").locator("option")
        for _ in range(PATIENCE_MS // LOOK_MS):
            if runs.count() == 2:
                break
            page.clock.fast_forward(LOOKS_AGAIN_MS)
            page.wait_for_timeout(LOOK_MS)
        expect(runs).to_have_text(["new", "old"])
        expect(frame.get_by_label("Run")).to_have_value("old")


@pytest.mark.sweep
def test_nothing_to_show_shows_no_tab(page: Page, logs: "Logs") -> None:
    with running(logs.root) as address:
        page.goto(address)
        expect(page.get_by_text("No dashboards are active")).to_be_visible()
        expect(page.get_by_role("tab", name="selftime")).to_have_count(0)
