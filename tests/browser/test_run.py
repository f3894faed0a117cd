"""The panel of the run: its parts, all steps in one picture, and the way to a recorded one."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.browser.test_panels import wrong
from tests.ledgers import EPOCH, MS, STARTUP, Step, write_ledger

from selftime.reports.html import as_html
from selftime.trace import Trace
from selftime.web.sources import read_trace

LONG: Final = "a kind of step " + "whose name is long " * 8
MANY: Final = [
    *(Step(10 + number % 5, recorded=7 <= number < 10) for number in range(2_000)),
    Step(400, line=9),
    *[Step(3, LONG)] * 30,
    Step(900, counted={"evaluation": 880}),
]

Open = Callable[..., Page]
Settle = Callable[[Page, str], None]
Served = Callable[..., str]
Screenshot = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ledgers, and a recording of three steps of one of them."""
    folder = tmp_path_factory.mktemp("runs")
    recorded = write_ledger(folder / "with" / "host_1_20260102-030405.run.jsonl", MANY)
    events = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1}
        | {"ts": 1_000 * at, "dur": 1_000 * (10 + number % 5)}
        for number, at in ((7, 0), (8, 12), (9, 25))
    ]
    begin = EPOCH + STARTUP + sum(10 + number % 5 for number in range(7)) * MS
    trace = {"schemaVersion": 1, "baseTimeNanoseconds": begin, "traceEvents": events}
    trace["selftime"] = {"ledger": recorded.name}
    path = recorded.with_name("host_1_20260102-030406.pt.trace.json")
    path.write_text(json.dumps(trace))
    write_ledger(folder / "alone" / "killed.run.jsonl", [Step(5)], whole=False, command=LONG)
    write_ledger(folder / "none" / "none.run.jsonl", [])
    return folder


@pytest.fixture
def run(opened: Open, settle: Settle, served: Served, runs: Path) -> Iterator[Callable[..., Page]]:
    def shown(name: str, words: str = "#/run", **how: int) -> Page:
        page = opened(served(runs / name) + words, **how)
        settle(page, "run")
        return page

    return shown  # type: ignore[return-value]  # pytest gives what the fixture returns


def test_parts_kinds_and_slow_steps_are_those_of_the_ledger(
    run: Callable[..., Page], screenshot: Screenshot
) -> None:
    page = run("with", height=1600)
    screenshot(page, "run")
    main = page.locator("main")
    for text in ("2,032 steps", "the 3 recorded stand for", "importing", "torch", "train.py:1"):
        expect(main).to_contain_text(text)
    kinds = page.locator("section[aria-label='Steps of the run'] tbody tr")
    expect(kinds).to_have_count(2)
    expect(kinds.first).to_contain_text("2,002")
    slow = page.locator("section[aria-label='Slow steps']")
    expect(slow).to_contain_text("2, which cost 1.3 s")
    expect(slow.locator("tbody tr").first).to_contain_text("evaluation")
    assert wrong(page) == []


def test_keys_walk_along_the_steps_and_a_recorded_one_leads_to_the_timeline(
    run: Callable[..., Page], settle: Settle
) -> None:
    page = run("with", height=1600)
    canvas = page.locator(".run-canvas")
    canvas.focus()
    canvas.press("n")
    expect(page.locator(".run-tip")).to_contain_text("slow")
    expect(page.locator(".run-tip")).to_contain_text("400 ms")
    canvas.press("Home")
    for _ in range(40):
        if "click to see it" in (page.locator(".run-tip").text_content() or ""):
            break
        canvas.press("ArrowRight")
    canvas.press("Enter")
    settle(page, "timeline")
    assert "from=0&" in page.url


def test_a_stretch_that_is_dragged_is_shown_alone(run: Callable[..., Page], settle: Settle) -> None:
    page = run("with", height=1600)
    box = page.locator(".run-canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 30, steps=3)
    page.mouse.up()
    page.wait_for_url("**zoom=*")
    settle(page, "run")
    page.get_by_role("button", name="show all").click()
    expect(page.get_by_role("button", name="show all")).to_have_count(0)


@pytest.mark.parametrize("name", ["with", "alone", "none"])
def test_a_narrow_window_is_enough(name: str, run: Callable[..., Page]) -> None:
    page = run(name, width=400)
    assert wrong(page) == []


def test_a_ledger_alone_opens_at_its_run(run: Callable[..., Page]) -> None:
    page = run("alone", "")
    expect(page.locator("main")).to_contain_text("The ledger has no end: the process was killed")
    expect(page.locator("main")).to_contain_text("1 step")
    expect(page.locator(".verdict")).to_have_count(0)
    page = run("none", "")
    expect(page.locator("main")).to_contain_text("No step was counted in this run")


def test_two_runs_are_compared_on_the_page(
    opened: Open, settle: Settle, served: Served, tmp_path: Path
) -> None:
    first = write_ledger(tmp_path / "before.run.jsonl", [Step(10 + n % 3) for n in range(100)])
    slower = [Step(20 + n % 3) for n in range(100)]
    second = write_ledger(tmp_path / "after.run.jsonl", [*slower, Step(1, "token")])
    page = opened(served(first, second) + "#/compare")
    settle(page, "compare")
    main = page.locator("main")
    expect(main).to_contain_text("Run: 1.6 s before, 2.6 s after")
    expect(page.locator("[aria-label='Parts of the run'] [role=row]")).to_have_count(5)
    told = page.locator("[aria-label='Steps of the run'] [role=row]")
    expect(told.nth(1)).to_contain_text("slower")
    expect(told.filter(has_text="token").first).to_contain_text("new")
    assert wrong(page) == []


def test_a_report_has_the_panel(opened: Open, settle: Settle, runs: Path, tmp_path: Path) -> None:
    [ledger] = (runs / "alone").iterdir()
    [trace] = (runs / "with").glob("*.json")
    traces: dict[str, Trace] = {path.name: read_trace(str(path)) for path in (ledger, trace)}
    path = tmp_path / "report.html"
    path.write_text(as_html(traces), encoding="utf-8")
    page = opened(path.as_uri())
    settle(page, "run")
    expect(page.locator("main")).to_contain_text("1 step")
    page.get_by_label("Worker").select_option(label="host_1_20260102-030406")
    page.locator("nav").get_by_role("link", name="Run", exact=True).click()
    settle(page, "run")
    expect(page.locator("main")).to_contain_text("2,032 steps")
    expect(page.locator(".run-canvas")).to_have_count(1)
