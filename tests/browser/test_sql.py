"""Queries in SQL in the page: written, answered, drawn, refused, cancelled."""

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
Keep = Callable[[Page, str], None]


def answered(page: Page) -> Locator:
    """The table of the result, when the process of the query has answered."""
    grid = page.get_by_role("grid", name="Result")
    grid.wait_for()
    return grid


def test_a_query_is_written_answered_and_drawn(
    address: Address, opened: Open, settle: Settle, screenshot: Keep
) -> None:
    page = opened(f"{address('cuda')}#/sql")
    settle(page, "sql")
    editor = page.get_by_label("Query in SQL")
    editor.fill("select name, count(*) as calls, sum(self) as self_ns\nfrom ")
    editor.press("End")
    page.keyboard.type("sli")
    expect(page.get_by_role("option", name="slices")).to_be_visible()
    editor.press("Tab")
    page.keyboard.type("\ngroup by name order by name")
    editor.press("Control+Enter")
    expect(answered(page)).to_contain_text("aten::")
    expect(answered(page)).to_contain_text("µs")
    assert "q=select+name" in page.url
    page.get_by_role("radio", name="Bars").click()
    expect(page.get_by_role("img", name="calls by name")).to_be_visible()
    page.get_by_label("Length").select_option("self_ns")
    page.wait_for_function("() => location.hash.includes('chart=bar%2Cname%2Cself_ns')")
    screenshot(page, "sql")
    page.reload()
    page.get_by_role("img", name="self_ns by name").wait_for()
    schema = page.get_by_role("complementary", name="Tables and views")
    schema.get_by_label("Find a table").fill("occupancy")
    editor.fill("select ")
    schema.get_by_role("button", name="occupancy").first.click()
    expect(editor).to_have_value("select occupancy")
    page.get_by_label("Examples").select_option(label="Which tables and views are there?")
    page.get_by_role("rowheader", name="account", exact=True).wait_for()


def test_a_query_without_a_result_says_why(address: Address, opened: Open, settle: Settle) -> None:
    page = opened(f"{address('cuda')}#/sql?q=select%20name%0Afrom%20slicez")
    settle(page, "sql")
    page.get_by_role("alert").wait_for()
    expect(page.get_by_role("alert")).to_contain_text("There is no table and no view slicez")
    expect(page.get_by_role("alert")).to_contain_text("(line 2, column 6)")
    expect(page.locator(".sql-editor [data-wrong]")).to_have_text("slicez")
    page.get_by_role("button", name="Go there").click()
    assert page.evaluate("() => getSelection().toString()") == "slicez"
    page.route("**/api/sql?**", lambda _route: None)  # an answer that takes for ever
    page.get_by_label("Query in SQL").fill("select 1")
    page.get_by_label("Query in SQL").press("Control+Enter")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("The query was cancelled")
