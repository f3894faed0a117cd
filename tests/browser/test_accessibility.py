"""axe-core finds nothing in any panel, in light and dark."""

import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page

AXE: Final = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
VIOLATIONS: Final = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    `${id}: ${html.slice(0, 200)} ${failureSummary}`));
}"""
OPENED_ROW: Final = ("operators", "?row=0")

Address = Callable[[str], str]
Show = Callable[..., None]
Panels = Callable[[Page], list[str]]
Open = Callable[..., Page]


@cache
def axe() -> str:
    if not AXE.is_file():
        pytest.skip(f"{AXE} is not there: `make test` installs it")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page) -> list[str]:
    found: list[str] = page.evaluate(VIOLATIONS)
    return found


@pytest.mark.parametrize(
    "shown",
    [
        ("cuda", "light", 1280),
        ("cuda", "dark", 1280),
        ("cuda", "light", 400),
        ("cpu", "dark", 400),
        ("hostile", "light", 1280),
        ("empty", "light", 1280),
        ("a100-2024-nccl-2ranks", "dark", 1280),
        ("h100-2025-vit", "light", 1280),
        ("v100-2021-resnet50-workers0.pt.trace", "dark", 1280),
        ("mi300-2025-resnet-ddp-recompute", "light", 1280),
    ],
    ids=lambda shown: "-".join(map(str, shown)),
)
@pytest.mark.sweep(1)
def test_axe_finds_nothing(
    shown: tuple[str, str, int],
    address: Address,
    opened: Open,
    panels: Panels,
    show: Show,
) -> None:
    kind, scheme, width = shown
    page = opened(address(kind), color_scheme=scheme, width=width)
    names = panels(page)
    page.evaluate(axe())
    amiss = {}
    for name, words in [*((name, "") for name in names), OPENED_ROW]:
        show(page, name, words)
        for closed in page.locator(".finding-toggle[aria-expanded=false]").all()[:1]:
            closed.click()
        if found := violations(page):
            amiss[name + words] = found
    page.keyboard.press("?")
    page.wait_for_selector("dialog, [role=dialog]")
    if found := violations(page):
        amiss["keys"] = found
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette [role=option]")
    if found := violations(page):
        amiss["palette"] = found
    assert amiss == {}


def test_axe_finds_nothing_where_no_trace_is_shown(
    recorded: Mapping[str, Path], served: Callable[..., str], opened: Open, tmp_path: Path
) -> None:
    for name in ("cpu", "cuda"):
        shutil.copy(recorded[name], tmp_path / f"{name}.json")
    page = opened(served(tmp_path), color_scheme="dark")
    page.get_by_role("button", name="Size").click()
    page.evaluate(axe())
    assert violations(page) == []
    page.evaluate("location.hash = '#/operators?trace=gone'")
    page.get_by_text("The trace of this address is not here").wait_for()
    assert violations(page) == []
