"""The ranks of a job: who makes the others wait, the map of steps, ranks below one another."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from typer.testing import CliRunner

import selftime
from selftime.advice import advise
from selftime.cli import app
from selftime.reports.advice.account_sentence import job_parts_text, late_rank_text
from selftime.reports.page_data.job_account import JOB_ACCOUNT_TITLE
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.units import time_text

RANKS: Final = 4
STEPS: Final = 6
LATE: Final = 2

Open = Callable[..., Page]
Screenshot = Callable[[Page, str], None]
Settle = Callable[[Page, str], None]
Served = Callable[..., str]

HELD: Final = """() =>
  document.querySelector(".timeline-stage")?.getAttribute("aria-busy") === "false"
  && performance.getEntriesByName("timeline whole").length > 0"""


def written(folder: Path, **words: Any) -> Path:
    for rank, text in simulate_job(**words).traces.items():
        (folder / f"rank{rank}.pt.trace.json").write_bytes(text)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    late = RankDelay(LATE, 8_000_000, "data")
    return written(tmp_path_factory.mktemp("job"), ranks=RANKS, steps=STEPS, late=late)


@pytest.fixture
def job(folder: Path, served: Served, opened: Open, settle: Settle) -> Callable[..., Page]:
    """The page of the job, at one of its panels."""

    def open_(panel: str, words: str = "", **options: Any) -> Page:
        page = opened(f"{served(folder)}#/{panel}{words}", **options)
        settle(page, panel)
        return page

    return open_


def printed(folder: Path, view: str, *words: str) -> list[dict[str, Any]]:
    """A view as the command line prints it."""
    done = CliRunner().invoke(app, ["view", view, str(folder), "--format=json", *words])
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def params(page: Page) -> dict[str, str]:
    query = urlsplit(urlsplit(page.url).fragment).query
    return {name: values[0] for name, values in parse_qs(query).items()}


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (800, "dark")])
def test_the_panel_has_the_numbers_of_the_command_line(
    job: Callable[..., Page], folder: Path, screenshot: Screenshot, width: int, scheme: str
) -> None:
    page = job("distributed", width=width, height=1300, color_scheme=scheme)
    screenshot(page, f"distributed-{width}-{scheme}")
    [found] = [row for row in printed(folder, "stragglers") if row["straggler"]]
    card = page.locator(".job-verdict")
    expect(card).to_have_count(1)
    for text in (
        found["label"],
        found["verdict"],
        time_text(found["late"]),
        time_text(found["delayed_others"]),
    ):
        expect(card).to_contain_text(text)
    expect(page.locator(".job-state")).to_contain_text(f"{RANKS} of {RANKS} ranks")
    for row in printed(folder, "ranks"):
        shown = page.locator(".job-part", has_text=row["label"])
        for column in ("time", "late"):
            expect(shown).to_contain_text(time_text(row[column]))
    [row] = printed(folder, "collectives")
    exchange = page.locator(".job-collectives tbody tr")
    expect(exchange).to_contain_text(time_text(row["wait"]))
    expect(exchange).to_contain_text(time_text(row["transfer"]))
    expect(exchange).to_contain_text(f"{row['bus_bandwidth']:.1f} GB/s")
    over = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth"
    assert page.evaluate(over) <= 0


def test_what_a_step_of_each_rank_is_spent_on_stands_first(
    job: Callable[..., Page], folder: Path, screenshot: Screenshot
) -> None:
    page = job("distributed", width=400, height=1500)
    screenshot(page, "distributed-400-light")
    loaded = selftime.load(folder)
    said = advise(loaded, rules={}).job
    assert said is not None
    assert said.late is not None
    lead = page.locator(".job-lead")
    expect(lead).to_contain_text(job_parts_text(said))
    expect(lead).to_contain_text(late_rank_text(said.late))
    expect(page.locator(".job-part[data-late=true]")).to_have_count(1)
    expect(page.locator(".job-part[data-late=true]")).to_contain_text(said.late.rank)
    late = page.locator(".job-part", has_text=said.late.rank).locator(".job-bar > i").all()
    titles = {title.partition(":")[0] for i in late if (title := i.get_attribute("title"))}
    assert {"computing", "waiting for data"} <= titles
    order = page.locator(".job h2").all_inner_texts()
    assert order[0] == JOB_ACCOUNT_TITLE


def test_bars_of_collectives_stay_within_their_cells(job: Callable[..., Page]) -> None:
    """Waits and transfers are means over ranks, which together may exceed the time of one."""

    def lengthen(route: Route) -> None:
        answer = route.fetch().json()
        answer["columns"]["wait"]["values"] = [
            2 * time for time in answer["columns"]["time"]["values"]
        ]
        route.fulfill(json=answer)

    page = job("answer")
    page.route("**/api/view/collectives*", lengthen)
    page.goto(page.url.replace("#/answer", "#/distributed"))
    cell = page.locator(".job-collectives td.job-bar").first
    cell.wait_for()
    right = "e => [e, e.lastElementChild].map((one) => one.getBoundingClientRect().right)"
    outer, inner = cell.evaluate(right)
    assert inner <= outer + 1


def test_the_map_has_a_cell_for_each_rank_and_step_and_leads_there(
    job: Callable[..., Page], folder: Path, settle: Settle
) -> None:
    page = job("distributed", "?value=waited")
    canvas = page.locator(".job-map canvas")
    assert canvas.get_attribute("data-ranks") == str(RANKS)
    assert canvas.get_attribute("data-steps") == str(STEPS)
    canvas.focus()
    cells = {}
    for rank in range(RANKS):
        for _ in range(STEPS):
            page.keyboard.press("ArrowRight")
            tip = page.locator(".job-tip")
            cells[tip.locator("b").first.inner_text()] = tip.locator("b.number").inner_text()
        if rank < RANKS - 1:
            page.keyboard.press("ArrowDown")
            for _ in range(STEPS):
                page.keyboard.press("ArrowLeft")
            tip = page.locator(".job-tip")
            cells[tip.locator("b").first.inner_text()] = tip.locator("b.number").inner_text()
    rows = printed(folder, "ranks", "--by=step")
    assert cells == {f"{r['label']}, step {r['step']}": time_text(r["waited"]) for r in rows}
    page.keyboard.press("Enter")
    expect(page.locator(".job-cell")).to_contain_text(f"step {STEPS - 1}")
    page.keyboard.press("Enter")
    settle(page, "timeline")
    page.wait_for_function(HELD)
    shown = params(page)
    last = selftime.load(folder / f"rank{RANKS - 1}.pt.trace.json")
    assert isinstance(last, selftime.Trace)
    step = last.view("steps").row(-1, named=True)
    assert (int(shown["from"]), step["step"]) == (step["start"], STEPS - 1)
    expect(page.get_by_role("combobox", name="Worker")).to_have_value(f"rank{RANKS - 1}")


SCALES: Final = {"ns": 1.0, "µs": 1e3, "ms": 1e6}


def ends(page: Page) -> dict[str, tuple[float, str]]:
    """By rank: where the first collective of the picture ends, in pixels, and what is told."""
    box = page.locator(".timeline-stage canvas").bounding_box()
    assert box is not None
    span = params(page)
    scale = box["width"] / (int(span["to"]) - int(span["from"]))
    found = {}
    tip = page.locator(".timeline-tip", has_text="nccl")
    for stream in page.locator(".timeline-track", has_text="stream 20").all():
        point(page, stream, tip)
        facts = [fact.split() for fact in tip.locator("dd").all_inner_texts()[:3]]
        duration, _, start = (float(number) * SCALES[unit] for number, unit in facts)
        told = tip.locator(".timeline-tip-rank").inner_text()
        found[told.partition(";")[0]] = ((start + duration) * scale, told)
    return found


def point(page: Page, stream: Locator, tip: Locator) -> None:
    """Move over a track from the left until something is told."""
    line, box = stream.bounding_box(), page.locator(".timeline-stage canvas").bounding_box()
    assert line is not None
    assert box is not None
    for x in range(int(box["width"] * 0.3), int(box["width"]), 4):
        page.mouse.move(box["x"] + x, line["y"] + 10)
        if tip.count():
            return
    pytest.fail("nothing is told on this track")


def test_ranks_stand_below_one_another_by_one_clock(
    job: Callable[..., Page], screenshot: Screenshot
) -> None:
    page = job("timeline", "?from=58000000&to=89000000&with=1.2")
    page.wait_for_function(HELD)
    assert page.locator(".timeline-rank").all_inner_texts()[0] == "rank 0"
    found = ends(page)
    screenshot(page, "ranks-below-one-another")
    assert set(found) == {"rank 0", "rank 1", "rank 2"}
    xs = [x for x, _ in found.values()]
    assert max(xs) - min(xs) < 3  # durations are told with three digits
    for rank, (_, text) in found.items():
        others = [other for other in ("rank 0", "rank 1", "rank 2") if other != rank]
        assert f"the same one on {', '.join(others)}" in text


@pytest.mark.sweep
def test_ranks_are_chosen_and_a_slice_of_another_rank_is_told(
    job: Callable[..., Page], folder: Path, settle: Settle
) -> None:
    page = job("timeline", "?from=58000000&to=89000000")
    page.get_by_role("button", name="Ranks").click()
    page.get_by_label("rank 2").click()  # and not `check`: the page draws the box anew
    page.wait_for_function("location.hash.includes('with=2')")
    settle(page, "timeline")
    page.wait_for_function(HELD)
    streams = page.locator(".timeline-track", has_text="stream 20")
    expect(streams).to_have_count(2)
    point(page, streams.nth(1), page.locator(".timeline-tip", has_text="nccl"))
    page.mouse.down()
    page.mouse.up()
    details = page.locator(".timeline-details")
    expect(details).to_contain_text("rank 2 · kernel")
    page.wait_for_function("location.hash.includes('slice=')")
    number = int(params(page)["slice"])
    trace = selftime.load(folder / "rank2.pt.trace.json")
    assert isinstance(trace, selftime.Trace)
    name = trace.slices["name"].cast(str)[number % 2**32]
    assert number // 2**32 == 1
    expect(details.locator("h2")).to_contain_text(name[:40])


@pytest.mark.sweep
def test_a_report_carries_the_job(
    tmp_path: Path, opened: Open, settle: Settle, show: Callable[..., None]
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    report = tmp_path / "report.html"
    words = ["report", str(written(folder, ranks=2, steps=4)), "-o", str(report)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    page = opened(report.as_uri())  # it is what the page of a job opens with
    settle(page, "distributed")
    expect(page.locator(".job-none")).to_contain_text("No rank is named as a straggler")
    assert page.locator(".failed").count() == 0
    show(page, "timeline", "?with=1&from=1&to=30000000")
    page.wait_for_function(HELD)
    expect(page.locator(".timeline-rank").last).to_have_text("rank 1")


def test_what_the_job_would_take_is_switched_on(job: Callable[..., Page], folder: Path) -> None:
    page = job("distributed")
    switch = page.get_by_role("switch", name="slow ranks")
    outcome = page.get_by_role("group", name="The step of the job")
    expect(outcome).not_to_contain_text("with this")
    switch.check()
    expect(outcome).to_contain_text("with this")
    page.wait_for_function("() => location.hash.includes('without=')")
    [row] = [one for one in printed(folder, "job_what_if") if one["without"] == "slow ranks"]
    assert 0 < row["step_time_without_unknown_waits"] <= row["step_time"]
    page.reload()
    expect(page.get_by_role("switch", name="slow ranks")).to_be_checked()


def test_a_collective_tells_when_each_rank_came(job: Callable[..., Page], folder: Path) -> None:
    page = job("distributed")
    page.locator(".job-pick").first.click()
    chosen = page.get_by_role("article", name="The chosen collective")
    for rank in range(RANKS):
        expect(chosen).to_contain_text(f"rank {rank}")
    [most] = printed(folder, "collective_waits", "--top=1")
    page.wait_for_function("() => location.hash.includes('collective=')")
    assert params(page)["collective"] == str(most["number"])
    assert most["label"] == f"rank {LATE}"
    arrivals = [one for one in printed(folder, "arrivals") if one["number"] == most["number"]]
    [last] = [one for one in arrivals if one["last"]]
    assert (last["label"], last["wait"]) == (most["label"], 0)
    assert max(one["wait"] for one in arrivals) == most["wait"]
