"""The command palette: found by letters, gone to, set and done with the keys of editors."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
Keep = Callable[[Page, str], None]


def test_what_is_found_by_its_letters_is_opened(
    address: Address, opened: Open, settle: Settle, screenshot: Keep
) -> None:
    page = opened(f"{address('cuda')}#/answer")
    settle(page, "answer")
    field = page.get_by_role("combobox", name="Panel, name, step or command")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    field.fill("crp")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_contain_text("Critical path")
    expect(field).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
    page.keyboard.press("Enter")
    settle(page, "critical_path")
    page.get_by_role("button", name="Search").click()
    field.fill("aten")
    kind = page.get_by_text("operator", exact=True)
    operator = page.get_by_role("option").filter(has=kind).first
    operator.wait_for()
    screenshot(page, "palette")
    name = operator.locator(".palette-title").inner_text()
    operator.click()
    settle(page, "operators")
    expect(page.get_by_label("Search", exact=True)).to_have_value(name)
    page.keyboard.press("Control+k")
    field.fill(">dark")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(":root")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark colours")).to_be_visible()
    page.keyboard.press("Control+k")
    field.fill("table csv")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert saved.value.suggested_filename == "operators.csv"
    page.keyboard.press("Control+k")
    field.fill("choose columns")
    page.keyboard.press("Enter")
    expect(page.locator(".grid-columns")).to_be_visible()
    page.keyboard.press("Control+k")
    field.fill("no such thing at all")
    expect(page.locator(".palette")).to_contain_text("Nothing is called that")
    page.keyboard.press("Escape")
    expect(page.locator(".palette")).to_have_count(0)
