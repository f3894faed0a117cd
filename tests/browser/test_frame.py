"""The page in a frame that was written into another page, as notebooks have it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from selftime.cli import app

FRAME = """([html, sandbox]) => {
  const frame = document.createElement("iframe");
  if (sandbox !== null) frame.sandbox = sandbox;
  frame.srcdoc = html;
  frame.width = 1100;
  frame.height = 700;
  document.body.replaceChildren(frame);
}"""


@pytest.mark.parametrize("sandbox", ["allow-scripts", None])
@pytest.mark.sweep
def test_links_stay_within_the_frame(
    sandbox: str | None, recorded: Mapping[str, Path], opened: Callable[..., Page], tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", str(recorded["many"]), "-o", str(report)])
    assert done.exit_code == 0, done.output
    page = opened("about:blank")
    page.evaluate(FRAME, [report.read_text(encoding="utf-8"), sandbox])
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name="Operators", exact=True).click()
    expect(frame.locator("main")).to_have_attribute("data-panel", "operators")
    frame.get_by_role("searchbox").press_sequentially("operator_1999")
    expect(frame.locator(".grid-body .grid-row")).to_have_count(1)
    frame.get_by_role("button", name="All tables").click()
    frame.get_by_role("link", name="Health", exact=True).click()
    expect(frame.locator("main")).to_have_attribute("data-panel", "health")
    assert page.url == "about:blank"
