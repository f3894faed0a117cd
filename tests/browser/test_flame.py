"""The flame graph: its figures, its search, and the ways through it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from urllib.parse import parse_qs, urlsplit

import polars as pl
from playwright.sync_api import Page, Route, expect

from selftime.reports.export.folded_stacks import as_folded_stacks
from selftime.units import time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
View = Callable[..., pl.DataFrame]


def words(page: Page) -> dict[str, str]:
    """What the address says of the panel."""
    query = urlsplit(page.url).fragment.partition("?")[2]
    return {name: values[0] for name, values in parse_qs(query).items()}


def test_its_time_is_that_of_the_view(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    roots = view(recorded["cuda"], "flame").filter(depth=0)

    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")

    shown = page.locator(".flame-summary")
    expect(shown).to_contain_text(f"{time_text(sum(roots['total_time']))} device time")
    page.get_by_role("radio", name="host").click()
    host = view(recorded["cuda"], "flame", metric="host").filter(depth=0)
    expect(shown).to_contain_text(f"{time_text(sum(host['total_time']))} host time")


def test_arrows_walk_and_the_way_back_is_kept(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    table = view(recorded["cuda"], "flame")
    first, second = table["name"].head(2)
    assert table["parent"][1] == 0

    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")
    details = page.locator(".flame-name")
    page.locator(".icicle").focus()
    page.keyboard.press("ArrowDown")
    expect(details).to_contain_text(first)
    page.keyboard.press("ArrowDown")
    expect(details).to_contain_text(second)
    expect(page.locator(".flame-figures")).to_contain_text(time_text(table["total_time"][1]))
    page.keyboard.press("Enter")
    page.wait_for_url("**focus=1**")
    page.keyboard.press("Backspace")
    page.wait_for_url("**focus=0**")
    page.keyboard.press("Home")
    page.wait_for_function("() => !location.hash.includes('focus')")


def test_finer_detail_that_comes_late_moves_nobody(
    address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")
    held: list[Route] = []

    letting_go = Event()  # what is asked from then on is not held

    def hold(route: Route) -> None:
        if letting_go.is_set():
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/view/flame?**", hold)
    page.locator(".icicle").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**focus=1**")
    assert "detail" in words(page)
    page.keyboard.press("Backspace")
    page.wait_for_url("**focus=0**")
    expect(page.locator(".flame-summary")).to_contain_text("reading finer detail")
    letting_go.set()
    for route in held:
        route.continue_()
    expect(page.locator(".flame-summary")).not_to_contain_text("reading finer detail")
    assert words(page)["focus"] == "0"


def test_a_click_focuses_and_an_address_brings_it_back(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    name = view(recorded["cuda"], "flame")["name"][0]

    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")
    page.locator(".icicle").click(position={"x": 40, "y": 8})
    page.wait_for_url("**focus=0**")
    again = opened(page.url)
    settle(again, "flame")
    expect(again.locator(".flame-name")).to_contain_text(name)
    again.get_by_role("button", name="show all").click()
    again.wait_for_function("() => !location.hash.includes('focus')")


def test_a_narrow_focus_is_read_in_finer_detail(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    table = view(recorded["cuda"], "flame")
    narrow = table.filter(table["share"] < 0.3).row(0, named=True)

    page = opened(f"{address('cuda')}#/flame?at={narrow['id']}")
    settle(page, "flame")
    page.locator(".icicle").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**detail=**")
    expect(page.locator(".flame-summary")).not_to_contain_text("finer detail")

    detail = float(words(page)["detail"])
    assert detail < narrow["share"] / 1000
    finer = view(recorded["cuda"], "flame", min_share=detail)
    assert finer["name"][int(words(page)["focus"])] == narrow["name"]
    expect(page.locator(".flame-name")).to_contain_text(narrow["name"])


def test_the_tree_is_arranged_in_four_ways_beside_the_list_of_names(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    """Each arrangement shows the figures of the view, is in the address, and comes back by it."""
    path = recorded["cuda"]
    inverted = view(path, "flame", order="bottom_up")
    listed = view(path, "flame", order="flat").sort("self_time", descending=True)
    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")

    page.get_by_role("radio", name="bottom up").click()
    page.wait_for_url("**tree=bottom_up**")
    expect(page.locator(".flame-summary")).to_contain_text(f"in {inverted.height} nodes")
    page.locator(".icicle").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".flame-name")).to_contain_text(inverted["name"][0])
    expect(page.locator(".flame-figures")).to_contain_text("device self time")

    rows = page.locator(".flame-names-row[aria-selected]")
    expect(rows).to_have_count(listed.height)
    expect(rows.first).to_contain_text(time_text(listed["self_time"][0]))
    page.get_by_role("button", name="Total").click()
    page.wait_for_url("**sort=-total**")
    page.get_by_role("grid", name="Names by time").get_by_text("aten::linear").click()
    page.wait_for_url("**of=aten%3A%3Alinear**")
    callees = view(path, "flame", of="aten::linear")
    middle = page.locator(".flame-middle")
    expect(middle).to_contain_text(f"{time_text(callees['total_time'][0])} device time")
    expect(page.locator(".icicle")).to_have_count(2)
    page.locator(".icicle").first.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".flame-name")).to_contain_text("Linear_0")
    expect(page.locator(".flame-figures")).to_contain_text("device time of aten::linear")
    page.keyboard.press("Enter")
    page.wait_for_url("**focus=u1**")
    expect(page.locator("[aria-selected=true]")).to_contain_text("aten::linear")

    page.get_by_role("radio", name="in time").click()
    page.get_by_label("step").select_option("1")
    page.wait_for_url("**step=1**")
    again = opened(page.url)
    settle(again, "flame")
    timed = view(path, "flame", order="time", metric="host", step="1")
    expect(again.locator(".flame-summary")).to_contain_text(
        f"{time_text(sum(timed['self_time']))} host time in {timed.height} nodes"
    )
    expect(again.get_by_label("step")).to_have_value("1")


def test_a_row_of_a_table_leads_to_its_callers_and_callees(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    page = opened(f"{address('cuda')}#/operators?row=0")
    settle(page, "operators")
    page.get_by_role("link", name="Callers and callees").click()
    settle(page, "flame")
    found = words(page)
    callees = view(recorded["cuda"], "flame", of=found["of"], kind=found["kind"])
    expect(page.locator(".flame-middle")).to_contain_text(
        f"{time_text(callees['total_time'][0])} device time"
    )


def test_a_search_tells_what_the_matches_share(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    table = view(recorded["cuda"], "flame")
    hits = table.filter(table["name"].str.contains("sgemm"))
    share = sum(hits["total_time"]) / sum(table.filter(depth=0)["total_time"])

    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")
    page.keyboard.press("/")
    page.keyboard.type("SGEMM")
    expect(page.locator(".flame-found")).to_have_text(
        f"{hits.height} nodes match: {share:.1%} of the time".replace("%", " %")
    )


def test_folded_stacks_are_those_of_the_command_line(
    address: Address, opened: Open, settle: Settle, recorded: Mapping[str, Path], view: View
) -> None:
    table = view(recorded["cuda"], "flame")

    page = opened(f"{address('cuda')}#/flame")
    settle(page, "flame")
    with page.expect_download() as saved:
        page.get_by_role("button", name="folded stacks").click()

    assert saved.value.path().read_text(encoding="utf-8") == as_folded_stacks(table)


def test_what_is_lacking_is_said_with_the_flag(
    address: Address, opened: Open, settle: Settle
) -> None:
    page = opened(f"{address('many')}#/flame")
    settle(page, "flame")
    expect(page.locator(".missing-data")).to_contain_text("with_stack=True")
    page.get_by_role("radio", name="device").click()
    expect(page.locator("main")).to_contain_text("No device time was recorded")
    page.get_by_role("button", name="show host time").click()
    expect(page.locator(".flame-summary")).to_contain_text("host time")
