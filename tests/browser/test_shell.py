"""The shell of the page: keys, colours, traces to choose from, and what it does when data fail."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import document, memory

Served = Callable[..., str]
Open = Callable[..., Page]
Show = Callable[..., None]
Panels = Callable[[Page], list[str]]


@pytest.fixture
def cuda(address: Callable[[str], str]) -> str:
    return address("cuda")


def test_g_and_a_letter_reach_every_panel(cuda: str, opened: Open, panels: Panels) -> None:
    page = opened(cuda)
    names = panels(page)
    letters = page.locator("nav a").evaluate_all(
        "links => links.map(link => link.getAttribute('aria-keyshortcuts'))"
    )
    assert len(set(letters)) == len(names)
    for name, keys in zip(names, letters, strict=True):
        for key in str(keys).split():
            page.keyboard.press(key)
        expect(page.locator("main")).to_have_attribute("data-panel", name)
    assert page.evaluate("document.activeElement.tagName") == "MAIN"


def test_tab_reaches_every_panel_and_enter_opens_it(
    cuda: str, opened: Open, panels: Panels
) -> None:
    page = opened(cuda)
    left = panels(page)
    page.get_by_role("button", name="All tables").click()
    page.locator(".brand").focus()
    for _ in range(len(left) + 12):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "document.activeElement.closest('nav a')?.hash.split('?')[0].slice(2)"
        )
        if focused in left:
            left.remove(focused)
    assert left == []
    page.locator("nav a").last.focus()
    page.keyboard.press("Enter")
    expect(page.locator("nav a").last).to_have_attribute("aria-current", "page")


def test_the_first_tab_skips_the_navigation(cuda: str, opened: Open) -> None:
    page = opened(cuda)
    page.wait_for_selector("main")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the panel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_the_sheet_of_keys_opens_and_closes(cuda: str, opened: Open) -> None:
    page = opened(cuda)
    page.wait_for_selector("main")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keys")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("this sheet")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    page.get_by_role("button", name="Keys").click()
    sheet.get_by_role("button", name="Close").click()
    expect(sheet).to_have_count(0)


def background(page: Page) -> Any:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_colours_follow_the_system_or_what_is_chosen(cuda: str, opened: Open) -> None:
    page = opened(cuda, color_scheme="light")
    page.wait_for_selector("main")
    light = background(page)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = background(page)
    assert dark != light
    button = page.get_by_role("button", name="Colours of the system")
    button.click()  # dark
    page.get_by_role("button", name="Dark colours;").click()  # light
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    page.wait_for_selector("main")
    assert background(page) == light


def test_a_frame_without_storage_shows_the_page(cuda: str, opened: Open) -> None:
    page = opened(cuda)
    page.add_init_script(
        """Object.defineProperty(window, "localStorage", {
            get() { throw new DOMException("denied", "SecurityError"); }
        });"""
    )
    page.reload()
    page.get_by_role("button", name="Colours of the system").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_one_word_says_whether_the_trace_can_be_trusted(
    address: Callable[[str], str], opened: Open, settle: Show
) -> None:
    page = opened(address("damaged"))
    word = page.locator("header .verdict")
    expect(word).to_contain_text("degraded")
    word.click()
    settle(page, "health")


def test_an_unknown_panel_is_told(cuda: str, opened: Open, settle: Show) -> None:
    page = opened(f"{cuda}#/nowhere")
    expect(page.get_by_role("alert")).to_have_text("There is no panel “nowhere”.")
    settle(page, "answer")


def test_a_trace_that_is_gone_is_told_and_no_other_is_shown(
    served: Served, recorded: Mapping[str, Path], opened: Open, settle: Show, tmp_path: Path
) -> None:
    shutil.copy(recorded["cpu"], tmp_path / "one.json")
    page = opened(f"{served(tmp_path)}#/operators?trace=0123456789ab")
    main = page.locator("main")
    expect(main).to_contain_text("The trace of this address is not here")
    expect(main).to_contain_text("0123456789ab")
    expect(main).not_to_contain_text("aten::")
    expect(page.locator("nav")).to_have_count(0)
    page.get_by_role("table", name="Traces").get_by_role("link", name="one.json").click()
    settle(page, "operators")
    expect(main).to_contain_text("aten::addmm")


def test_unrelated_traces_are_a_list_to_search(
    served: Served, recorded: Mapping[str, Path], opened: Open, settle: Show, tmp_path: Path
) -> None:
    for name in ("cpu", "cuda", "hostile"):
        shutil.copy(recorded[name], tmp_path / f"{name}.json")
    (tmp_path / "remembered.json").write_text(json.dumps(MEMORY_ALONE))
    page = opened(served(tmp_path))
    rows = page.get_by_role("table", name="Traces").locator("tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="Size").click()
    expect(page.get_by_role("columnheader", name="Size")).to_have_attribute(
        "aria-sort", "descending"
    )
    page.get_by_role("searchbox").fill("h100 CUDA")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("NVIDIA H100")
    rows.get_by_role("link").click()
    settle(page, "answer")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.locator("main")).to_contain_text("Compare with which trace?")
    page.get_by_role("link", name="4 traces").click()
    expect(rows.locator("[aria-current]")).to_have_text("cuda.json")
    page.reload()
    expect(rows.filter(has_text="cuda.json").locator("td").nth(1)).to_have_text("2")  # steps
    page.get_by_role("link", name="remembered.json").click()
    settle(page, "memory")
    page.get_by_role("link", name="Answer", exact=True).click()  # the landing is no cage
    settle(page, "answer")


MEMORY_ALONE = document([memory(10.0 * at, 512, 4096 * at, 512 * at, 1) for at in range(1, 9)])
"""Records of an allocator and nothing else, as in a snapshot."""


def test_the_navigation_folds_and_dims_what_has_nothing(
    address: Callable[[str], str], opened: Open, panels: Panels, settle: Show
) -> None:
    page = opened(address("cpu"))
    settle(page, "answer")
    fold = page.get_by_role("button", name="All tables")
    syncs = page.locator("nav a[href*='/syncs']")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(syncs).to_be_hidden()
    assert len(panels(page)) > 30
    kernels = page.get_by_role("link", name="Kernels", exact=True)
    expect(kernels).to_have_attribute("aria-description", re.compile("device activity: record on"))
    expect(kernels).to_have_attribute("title", re.compile("device activity: record on"))
    operators = page.get_by_role("link", name="Operators", exact=True)
    assert operators.get_attribute("title") is None
    expect(operators).to_have_attribute("aria-keyshortcuts", "g p")
    kernels.click()  # dim, and reached all the same
    settle(page, "kernels")
    page.keyboard.press("g")
    expect(syncs.locator("kbd")).to_be_visible()
    page.keyboard.press("Escape")
    expect(syncs).to_be_hidden()
    fold.click()
    page.reload()
    expect(syncs).to_be_visible()  # remembered
    fold.click()
    page.evaluate("location.hash = '#/syncs'")
    expect(syncs).to_be_visible()  # it is the panel that is shown
    expect(syncs).to_have_attribute("aria-current", "page")


def test_opening_a_trace_tells_how_far_it_is_and_can_be_left(
    cuda: str, opened: Open, settle: Show
) -> None:
    page = opened(cuda)
    page.route("**/api/contents?**", lambda _: None)  # a file that takes long
    told = {"progress": {"stage": "Reading the file", "done": 50 << 20, "total": 200 << 20}}
    page.route("**/api/progress?**", lambda route: route.fulfill(json=told))
    page.reload()
    main = page.locator("main")
    expect(main.get_by_role("status")).to_have_text("Reading the file: 50.0 MiB of 200 MiB …")
    expect(main.get_by_role("progressbar")).to_have_attribute("value", str(50 << 20))
    expect(page.locator("header .trace-name")).to_be_visible()
    main.get_by_role("button", name="Cancel").click()
    expect(main).to_contain_text("Opening was cancelled")
    page.unroute_all()
    main.get_by_role("button", name="Open it").click()
    settle(page, "answer")


def test_three_hundred_traces_are_chosen_by_run_worker_and_span(
    served: Served, recorded: Mapping[str, Path], opened: Open, tmp_path: Path
) -> None:
    for number in range(300):
        folder = tmp_path / f"run{number // 100}"
        folder.mkdir(exist_ok=True)
        time = 1_700_000_000_000 + number % 4
        shutil.copy(recorded["cpu"], folder / f"node_{number % 100 // 4}.{time}.pt.trace.json")
    page = opened(served(tmp_path))
    run = page.get_by_label("Run", exact=True)
    worker = page.get_by_label("Worker", exact=True)
    span = page.get_by_label("Span", exact=True)
    expect(run.locator("option")).to_have_count(3)
    expect(worker.locator("option")).to_have_count(25)
    expect(span.locator("option")).to_have_count(4)
    run.select_option(index=2)
    worker.select_option("node_7")
    span.select_option(index=3)
    expect(page.locator("header")).to_contain_text("node_7")
    address = page.url
    page.reload()
    expect(worker).to_have_value("node_7")
    expect(run).to_have_value("run2")
    assert page.url == address


def test_a_trace_that_comes_later_is_found(
    served: Served, recorded: Mapping[str, Path], opened: Open, tmp_path: Path
) -> None:
    shutil.copy(recorded["cpu"], tmp_path / "first.pt.trace.json")
    page = opened(served(tmp_path))
    expect(page.locator("header .trace-name")).to_have_text("first.pt.trace.json")
    shutil.copy(recorded["cuda"], tmp_path / "second.pt.trace.json")
    page.wait_for_timeout(3_100)  # the list is not asked for more often
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("header .picker option")).to_have_count(2)


def test_an_address_that_changes_while_the_page_begins_is_followed(
    cuda: str, opened: Open, settle: Show
) -> None:
    page = opened(cuda)
    page.add_init_script(
        """new MutationObserver((_, watching) => {
            if (document.querySelector("main") === null) return;
            watching.disconnect();
            location.hash = "#/kernels";
        }).observe(document, { childList: true, subtree: true });"""
    )
    page.reload()
    settle(page, "kernels")


def test_a_slow_answer_is_told_about_and_then_shown(
    cuda: str, opened: Open, panels: Panels, settle: Show
) -> None:
    page = opened(cuda)
    panels(page)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/view/kernels?**", hold)
    page.evaluate("location.hash = '#/kernels'")
    expect(page.locator("main").get_by_role("status")).to_contain_text("Reading")
    for route in held:
        route.continue_()
    settle(page, "kernels")


def test_a_panel_that_fails_leaves_the_others_alive(
    cuda: str, opened: Open, panels: Panels, show: Show, watch: Any
) -> None:
    page = opened(cuda)
    panels(page)
    show(page, "health")
    page.route("**/api/advice?**", lambda route: route.fulfill(json={"findings": None}))
    page.reload()
    page.evaluate("location.hash = '#/answer'")
    expect(page.locator("main")).to_contain_text("Answer failed")
    assert watch.seen  # the console has the whole of it
    watch.seen.clear()
    show(page, "health")
    expect(page.locator("main .failed")).to_have_count(0)


def test_a_server_that_is_gone_is_told_and_asked_again(
    cuda: str, opened: Open, panels: Panels, settle: Show, watch: Any
) -> None:
    page = opened(cuda)
    panels(page)
    page.route("**/api/view/copies?**", lambda route: route.abort())
    page.evaluate("location.hash = '#/copies'")
    expect(page.locator("main")).to_contain_text("is `selftime serve` still running?")
    page.unroute_all()
    watch.seen.clear()
    page.get_by_role("button", name="Try again").click()
    settle(page, "copies")
    expect(page.locator("main")).not_to_contain_text("cannot be shown")
