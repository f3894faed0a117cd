"""What the page shows is in its address: a link shows it again, and so does going back."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

Address = Callable[[str], str]
Open = Callable[..., Page]
Show = Callable[..., None]


def names(page: Page) -> list[str]:
    page.wait_for_selector(".grid-body .grid-row")
    return page.locator(".grid-body .grid-row [role=rowheader]").all_inner_texts()


def test_a_link_says_order_search_and_columns(address: Address, opened: Open) -> None:
    page = opened(f"{address('many')}#/operators?sort=name&find=operator_01&cols=name,count")
    expect(page.get_by_role("searchbox")).to_have_value("operator_01")
    head = page.locator(".grid-head [role=columnheader]")
    expect(head).to_have_count(2)
    expect(head.first).to_have_attribute("aria-sort", "ascending")
    shown = names(page)
    assert shown[:3] == ["operator_0100", "operator_0101", "operator_0102"]
    page.reload()
    assert names(page) == shown


def test_a_search_is_written_to_the_address_and_is_one_step_of_the_history(
    address: Address, opened: Open, show: Show
) -> None:
    page = opened(address("many"))
    page.wait_for_selector("main")
    show(page, "health")
    show(page, "operators")
    page.get_by_role("searchbox").press_sequentially("operator_1999")
    page.wait_for_url("**/#/operators?find=operator_1999")
    expect(page.locator(".grid-body .grid-row")).to_have_count(1)
    page.go_back()
    expect(page.locator("main")).to_have_attribute("data-panel", "health")
    page.go_forward()
    expect(page.get_by_role("searchbox")).to_have_value("operator_1999")


def scrolled(page: Page) -> Any:
    return page.evaluate("document.querySelector('[data-scroll=grid]')?.scrollTop ?? null")


def test_going_back_finds_a_table_where_it_was_left(
    address: Address, opened: Open, show: Show, settle: Show
) -> None:
    page = opened(address("many"))
    page.wait_for_selector("main")
    show(page, "operators")
    page.evaluate("document.querySelector('[data-scroll=grid]').scrollTop = 12000")
    expect(page.locator("[data-row='505']")).to_be_visible()
    show(page, "health")
    show(page, "kernels")
    page.go_back()
    settle(page, "health")
    page.go_back()
    settle(page, "operators")
    expect(page.locator("[data-row='505']")).to_be_visible()
    page.wait_for_function(
        "document.querySelector('[data-scroll=grid]').scrollTop === 12000",
    )
    page.get_by_role("link", name="Operators", exact=True).click()
    settle(page, "operators")
    assert scrolled(page) is not None
    show(page, "health")
    show(page, "operators")
    assert scrolled(page) == 0


def test_small_moves_do_not_fill_the_history(address: Address, opened: Open, show: Show) -> None:
    page = opened(address("many"))
    page.wait_for_selector("main")
    show(page, "operators")
    before = page.evaluate("history.length")
    page.get_by_role("searchbox").press_sequentially("operator")
    page.wait_for_url("**find=operator")
    assert page.evaluate("history.length") == before


def test_a_link_right_after_a_small_move_is_followed(
    address: Address, opened: Open, show: Show, settle: Show
) -> None:
    page = opened(address("many"))
    page.wait_for_selector("main")
    show(page, "operators")
    page.evaluate(
        """() => {
          document.querySelector(".grid-sort").click();
          const until = performance.now() + 1000;
          while (performance.now() < until); // the move is to be written now, and before the event
          location.hash = "#/health";
        }"""
    )
    settle(page, "health")
    page.wait_for_timeout(500)
    expect(page.locator("main")).to_have_attribute("data-panel", "health")
    assert page.url.endswith("#/health")
