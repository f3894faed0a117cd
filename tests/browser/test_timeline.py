"""The timeline: ways through it, what it tells, and that it comes back as it was left."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from tests.browser.timeline_page import (
    canvas,
    heading,
    id_of,
    opened_timeline,
    settled,
    told,
    words,
)

import selftime
from selftime.units import count_text, time_text

Address = Callable[[str], str]
Open = Callable[..., Page]
Served = Callable[..., str]
Screenshot = Callable[[Page, str], None]
Timeline = Callable[..., Page]

WORK: Final = """
const ask = window.requestAnimationFrame.bind(window);
window.frames_ = {apart: [], work: []};
let [last, spent] = [null, 0];
const tick = now => {
  if (last !== null) { frames_.apart.push(now - last); frames_.work.push(spent); }
  [last, spent] = [now, 0];
  ask(tick);
};
ask(tick);
window.requestAnimationFrame = told => ask(now => {
  const begin = performance.now();
  told(now);
  spent += performance.now() - begin;
});
"""
"""Counts the screen's frames and how long the page's own work took in each."""


@pytest.fixture
def timeline(address: Address, opened: Open) -> Timeline:
    """The timeline of a recording, once all of its picture is there."""

    def open_(kind: str, query: str = "", **options: Any) -> Page:
        return opened_timeline(opened, address(kind), query, **options)

    return open_


def test_tracks_stand_beside_the_picture_and_fold(
    timeline: Timeline, screenshot: Screenshot
) -> None:
    page = timeline("cuda")
    names = page.locator(".timeline-title")

    expect(names.filter(has_text="stream 7").first).to_be_visible()
    expect(names.filter(has_text="main 9").first).to_be_visible()
    expect(names.filter(has_text="device 0 busy")).to_be_visible()
    before = names.count()
    page.get_by_role("button", name="Counters", exact=True).click()
    assert names.count() < before
    folded = words(page)["fold"]
    page.reload()
    settled(page)
    assert names.count() < before
    assert words(page)["fold"] == folded
    page.get_by_role("button", name="Counters", exact=True).click()
    expect(names).to_have_count(before)
    screenshot(page, "timeline")


def test_the_keyboard_goes_from_slice_to_slice(
    timeline: Timeline, recorded: Mapping[str, Path]
) -> None:
    linear = id_of(recorded["cuda"], "aten::linear")
    page = timeline("cuda", f"?slice={linear}")

    assert heading(page) == "aten::linear"
    page.keyboard.press("ArrowDown")
    expect(page.locator(".timeline-details h2")).not_to_have_text("aten::linear")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".timeline-details h2")).to_have_text("aten::linear")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".timeline-details h2")).to_have_text("ProfilerStep#0")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".timeline-details h2")).to_have_text("ProfilerStep#1")
    expect(page.locator("[aria-live=polite]").last).to_have_text("selected ProfilerStep#1")
    page.go_back()
    expect(page.locator(".timeline-details h2")).to_have_text("ProfilerStep#0")
    page.keyboard.press("Escape")
    expect(page.locator(".timeline-details")).to_have_count(0)


def test_without_a_choice_an_arrow_chooses_one(timeline: Timeline) -> None:
    page = timeline("cpu")
    page.keyboard.press("ArrowRight")

    expect(page.locator(".timeline-details h2")).to_be_visible()
    assert words(page)["slice"].isdigit()


def test_a_kernel_and_its_launch_lead_to_one_another(
    timeline: Timeline, recorded: Mapping[str, Path], screenshot: Screenshot
) -> None:
    kernel = id_of(recorded["cuda"], "sgemm_128x64_nn")
    page = timeline("cuda", f"?slice={kernel}")

    facts = told(page)
    assert facts["duration"] == "130 µs (130,500 ns)"
    assert facts["grid"] == "4,1,1"
    assert facts["launch"].startswith("cudaLaunchKernel")
    screenshot(page, "timeline-kernel")
    page.get_by_role("button", name="cudaLaunchKernel").click()
    expect(page.locator(".timeline-details h2")).to_have_text("cudaLaunchKernel")
    page.get_by_role("button", name="sgemm_128x64_nn").click()
    expect(page.locator(".timeline-details h2")).to_have_text("sgemm_128x64_nn")
    expect(page.get_by_role("link", name="in kernels")).to_have_attribute(
        "href", "#/kernels?find=sgemm_128x64_nn"
    )
    page.get_by_role("button", name="aten::addmm").click()
    page.get_by_role("button", name="aten::linear").click()
    work = page.locator(".timeline-work")
    expect(work.locator("h3")).to_contain_text("Device work 2, 140 µs busy")
    expect(work.locator("li")).to_contain_text(["Memcpy HtoD", "sgemm_128x64_nn"])
    page.locator(".timeline-stage canvas").focus()
    page.keyboard.press("k")
    seen = words(page)
    assert int(seen["from"]) < 10_000
    assert 170_500 < int(seen["to"]) < 200_000


def test_a_link_shows_the_same_again(timeline: Timeline, recorded: Mapping[str, Path]) -> None:
    kernel = id_of(recorded["cuda"], "elementwise_kernel")
    page = timeline("cuda", f"?from=300000&to=700000&slice={kernel}")

    assert heading(page) == "elementwise_kernel"
    assert {"from": "300000", "to": "700000", "slice": str(kernel)}.items() <= words(page).items()
    expect(page.locator(".timeline-status")).to_have_text(f"{time_text(400_000)} shown")


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.sweep(1)
def test_wheel_and_keys_move_the_picture(kind: str, timeline: Timeline) -> None:
    page = timeline(kind)
    box = canvas(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    whole = words(page)
    assert "from" not in whole
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    near = words(page, whole)
    length = int(near["to"]) - int(near["from"])
    page.mouse.wheel(120, 0)
    moved = words(page, near)
    assert int(moved["from"]) > int(near["from"])
    assert abs(int(moved["to"]) - int(moved["from"]) - length) <= 2
    page.keyboard.press("w", delay=200)
    close = words(page, moved)
    assert int(close["to"]) - int(close["from"]) < length
    page.keyboard.press("a", delay=200)
    earlier = words(page, close)
    assert int(earlier["from"]) < int(close["from"])
    page.keyboard.press("0")
    assert "from" not in words(page, earlier)


def test_a_click_chooses_what_is_drawn_there(timeline: Timeline) -> None:
    page = timeline("cuda", "?from=0&to=1000000")
    box = canvas(page)
    label = page.locator(".timeline-track", has_text="stream 7").filter(has_text="kernels")
    row = label.bounding_box()
    assert row is not None
    x = box["x"] + box["width"] * 0.465  # 350 us to 580.5 us of 1 ms
    page.mouse.move(x, row["y"] + 9)
    expect(page.locator(".timeline-tip")).to_contain_text("elementwise_kernel")
    expect(page.locator(".timeline-tip")).to_contain_text("230 µs")
    page.mouse.click(x, row["y"] + 9)
    assert heading(page) == "elementwise_kernel"


def test_the_search_counts_and_goes_through_its_finds(
    timeline: Timeline, recorded: Mapping[str, Path]
) -> None:
    page = timeline("cuda")
    page.keyboard.press("/")
    page.keyboard.type("LAUNCH")
    expect(page.locator(".find-told")).to_have_text("4")
    page.keyboard.press("Enter")
    expect(page.locator(".timeline-details h2")).to_have_text("cudaLaunchKernel")
    launches = [id_of(recorded["cuda"], "cudaLaunchKernel", number) for number in range(4)]
    assert words(page)["slice"] == str(launches[0])
    page.locator(".timeline-stage canvas").focus()
    page.keyboard.press("n")
    page.wait_for_url(f"**&slice={launches[1]}*")
    page.keyboard.press("Shift+N")
    page.wait_for_url(f"**&slice={launches[0]}*")
    assert words(page)["find"] == "LAUNCH"


def test_an_area_is_told_as_the_view_tells_it(
    timeline: Timeline, recorded: Mapping[str, Path], screenshot: Screenshot
) -> None:
    page = timeline("cuda")
    box = canvas(page)
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + box["height"] - 10, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.locator(".timeline-stats tbody tr").first.wait_for()
    span, _, chosen = words(page)["area"].partition(":")
    start, end = span.split("-")
    tracks = ",".join(key[1:] for key in chosen.split(".") if key.startswith("t"))
    trace = selftime.load(recorded["cuda"])
    assert isinstance(trace, selftime.Trace)
    table = trace.view("selection", start=int(start), end=int(end), tracks=tracks)
    shown = page.locator(".timeline-stats tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.innerText))"
    )
    assert len(shown) == table.height > 3
    for cells, row in zip(shown, table.iter_rows(named=True), strict=True):
        assert [cells[0], cells[1], cells[3]] == [
            time_text(row[name]) for name in ("self", "busy", "total")
        ]
        assert cells[4] == count_text(row["count"])
    screenshot(page, "timeline-area")
    page.get_by_role("button", name="by track").click()
    expect(page.locator(".timeline-stats tbody tr")).not_to_have_count(table.height)


def test_the_picture_as_a_table(timeline: Timeline) -> None:
    page = timeline("cpu")
    page.keyboard.press("t")
    rows = page.locator(".timeline-listing tbody tr")
    expect(rows.first).to_be_visible()
    assert rows.count() > 5
    rows.get_by_role("button", name="aten::addmm").first.click()
    assert heading(page) == "aten::addmm"


def test_the_sheet_lists_its_keys(timeline: Timeline) -> None:
    page = timeline("cpu")
    page.keyboard.press("?")

    expect(page.get_by_role("dialog")).to_contain_text("closer, farther, at the pointer")


@pytest.mark.parametrize("kind", ["hostile"])
def test_hostile_names_are_only_text(
    kind: str, timeline: Timeline, screenshot: Screenshot, recorded: Mapping[str, Path]
) -> None:
    trace = selftime.load(recorded[kind])
    assert isinstance(trace, selftime.Trace)
    page = timeline(kind)
    for row in range(0, trace.slices.height, 3):
        page.evaluate(f"location.hash = '#/timeline?slice={row}'")
        page.locator(".timeline-links").wait_for()
    screenshot(page, "timeline-hostile")
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.sweep(1)
def test_every_vendor_in_light_and_dark(
    scheme: str, timeline: Timeline, screenshot: Screenshot
) -> None:
    for kind in ("cpu", "rocm", "graphs", "bare", "damaged"):
        page = timeline(kind, color_scheme=scheme)
        screenshot(page, f"timeline-{kind}-{scheme}")


def test_an_empty_recording_says_so(address: Address, opened: Open) -> None:
    page = opened(f"{address('empty')}#/timeline")

    expect(page.locator("main")).to_contain_text("it holds no events")


LANES: Final = 20
EACH: Final = 50_000


@pytest.fixture(scope="session")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a million slices: kernels on streams, operators on threads."""
    path = tmp_path_factory.mktemp("million") / "million.pt.trace.json"
    lengths = np.random.default_rng(0).integers(1, 9, (LANES, EACH))
    starts = np.cumsum(lengths + 1, axis=1)
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [')
        for lane in range(LANES):
            kernel = lane % 2 == 0
            where = f'"cat":"{"kernel" if kernel else "cpu_op"}","pid":{0 if kernel else 7}'
            args = f'"device":0,"stream":{lane}' if kernel else ""
            file.writelines(
                f'{{"ph":"X",{where},"tid":{lane},"name":"work_{length}","ts":{start},'
                f'"dur":{length},"args":{{{args}}}}},\n'
                for start, length in zip(starts[lane].tolist(), lengths[lane].tolist(), strict=True)
            )
        file.write('{"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}}]}')
    return path


@pytest.mark.sweep
def test_a_million_slices_move_smoothly(
    million: Path, served: Served, opened: Open, screenshot: Screenshot
) -> None:
    """What frames took is kept as an artefact: machines differ, so it is told and not judged."""
    page = opened(f"{served(million)}#/health")
    sizes: list[int] = []
    page.add_init_script(WORK)
    page.on(
        "response",
        lambda answer: sizes.append(len(answer.body())) if "view/timeline" in answer.url else None,
    )
    page.evaluate("location.hash = '#/timeline'")
    page.reload()
    settled(page)
    box = canvas(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 200)
    page.evaluate("frames_.apart.length = frames_.work.length = 0")
    page.keyboard.down("Control")
    for turn in range(30):
        page.mouse.wheel(0, -160 if turn < 20 else 160)
    page.keyboard.up("Control")
    for turn in range(30):
        page.mouse.wheel(120 if turn < 20 else -120, 0)
    settled(page)
    frames = page.evaluate("frames_")
    screenshot(page, "timeline-million")

    apart, work = np.array(frames["apart"]), np.array(frames["work"])
    drawn = work[work > 0]
    kept = {
        "frames": int(apart.size),
        "apart_ms": dict(zip(("p50", "p95"), np.percentile(apart, (50, 95)).tolist(), strict=True)),
        "work_ms": dict(zip(("p50", "p95"), np.percentile(drawn, (50, 95)).tolist(), strict=True)),
    }
    path = Path(__file__).parents[2] / "build" / "screenshots" / "timeline-million.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    assert drawn.size > 20, "the picture did not move"
    assert max(sizes) < 5_000_000, "an answer is too large"
