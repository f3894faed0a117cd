"""The page in a frame that was written into another page, as notebooks have it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from selftime.cli import app
from selftime.testing import sketch

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


VSCODE_POLICY = (
    "default-src 'none'; script-src https://*.example 'unsafe-inline' 'unsafe-eval'; "
    "style-src https://*.example 'unsafe-inline'; img-src https: http: data:; "
    "font-src https:; connect-src https:; child-src https: data:"
)
"""The policy of VS Code's notebooks, with its setting `notebook.experimental.enableCsp`."""


@pytest.mark.parametrize(
    ("html_attributes", "body_attributes", "policy", "is_dark"),
    [
        ("", 'class="vscode-body vscode-dark"', VSCODE_POLICY, True),
        ("", 'class="vscode-body vscode-light"', VSCODE_POLICY, False),
        ('theme="dark"', "", "", True),  # as Colab
    ],
)
def test_an_output_is_the_page_in_the_colours_of_its_notebook(
    html_attributes: str,
    body_attributes: str,
    policy: str,
    *,
    is_dark: bool,
    opened: Callable[..., Page],
) -> None:
    output = sketch("""
        a = aten::mm; line = train.py:7 main
        cpu 1 | aaa aaa
    """)._repr_html_()
    page = opened("about:blank", color_scheme="null")  # as the frame is told, not as the system is
    page.set_content(
        f"<!doctype html><html {html_attributes}><head><base href='https://none.example/'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"></head>'
        f"<body {body_attributes}></body></html>"
    )
    page.evaluate("html => { document.body.innerHTML = html; }", output)
    frame = page.frame_locator("iframe")
    frame.get_by_role("link", name="Operators", exact=True).click()
    expect(frame.locator("main")).to_have_attribute("data-panel", "operators")
    expect(frame.get_by_text("aten::mm").first).to_be_visible()
    dark = frame.locator("body").evaluate(
        "() => matchMedia('(prefers-color-scheme: dark)').matches"
    )
    assert dark is is_dark
