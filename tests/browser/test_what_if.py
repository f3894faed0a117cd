"""What if: a reader asks for changes, and the page tells the step after them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import selftime
from selftime.units import milliseconds_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
Keep = Callable[[Page, str], None]


def figure(page: Page, label: str) -> str:
    return page.locator(f".asked-figures div:has(dt:text-is('{label}')) dd").inner_text()


def test_changes_are_added_and_taken_back(
    address: Address, opened: Open, settle: Settle, screenshot: Keep
) -> None:
    page = opened(f"{address('cuda')}#/whatif")
    settle(page, "whatif")
    form = page.locator(".asked-form")
    expect(form.get_by_role("button", name="Add")).to_be_disabled()
    form.get_by_label("Pattern").fill("aten::*")
    form.get_by_label("Share that is left").fill("25")
    form.get_by_role("button", name="Add").click()
    expect(page.get_by_role("list", name="Changes")).to_contain_text("Scale aten::* to 25.0 %")
    expect(page.locator(".asked-figures")).to_contain_text("Predicted")
    form.get_by_label("Change").select_option("remove")
    form.get_by_label("Pattern").fill("syncs")
    form.get_by_label("Pattern").press("Enter")
    expect(page.locator(".asked-changes li")).to_have_count(2)
    expect(page.locator(".asked-change")).to_have_count(2)
    screenshot(page, "what_if")
    page.get_by_role("button", name="Without: Remove syncs").click()
    expect(page.locator(".asked-changes li")).to_have_count(1)
    assert "syncs" not in page.url


def test_what_matches_nothing_is_told_in_a_sentence(
    address: Address, opened: Open, settle: Settle
) -> None:
    changes = '[{"change": "remove", "pattern": "aten::nothing", "kept_share": 0}]'
    page = opened(f"{address('cuda')}#/whatif?changes={changes}")
    settle(page, "whatif")
    expect(page.get_by_role("alert")).to_contain_text("is named `aten::nothing`")


@pytest.mark.traces
def test_the_figures_are_those_of_python(
    real: Callable[[str], Path], address: Address, opened: Open, settle: Settle, screenshot: Keep
) -> None:
    name = "v100-2021-resnet50-workers0.pt.trace"
    trace = selftime.load(str(real(name)))
    assert isinstance(trace, selftime.Trace)
    found = selftime.what_if(trace, scale={"aten::conv*": 0.5}, remove=["data"])
    changes = (
        '[{"change": "scale", "pattern": "aten::conv*", "kept_share": 0.5},'
        ' {"change": "remove", "pattern": "data", "kept_share": 0}]'
    )
    page = opened(f"{address(name)}#/whatif?changes={changes}")
    settle(page, "whatif")
    expect(page.locator(".asked-figures")).to_be_visible()
    assert figure(page, "Predicted").startswith(milliseconds_text(found.predicted_ms))
    assert page.locator(".asked-change").count() == 2
    screenshot(page, "what_if_resnet")
