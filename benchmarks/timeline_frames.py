"""How smoothly the page's timeline moves in a real browser, on a trace of any size.

    python benchmarks/timeline_frames.py TRACE [--beside SECOND] [--query SQL …]

Serves a trace, opens it in Chromium, waits for the first whole picture, then pans and zooms with
wheel, drag and keys as a reader does, and tells how long frames took: from one to the next, and how
much processor time the page's main thread took for each, which other programs do not change. With
a second trace or queries the same is done with each of them beside the trace, and with both. A
browser without a GPU draws on the processor.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import numpy as np
from frame_cpu import CATEGORIES, cpu_of_frames
from playwright.sync_api import Browser, Page, sync_playwright

GOAL_MS = 1000 / 60
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PATIENCE_MS = 600_000
WATCH = """
window.frames_ = [];
let last = null;
const tick = (now) => {
  if (last !== null) frames_.push(now - last);
  last = now;
  requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
"""
"""Counts the screen's frames, whether the page draws or not."""
STEP = """async (id) => {
  const answer = await fetch(`api/view/steps?${new URLSearchParams({ ".trace": id, ".rows": 1 })}`);
  return (await answer.json()).columns?.step?.values[0] ?? null;
}"""
"""The number of the first step of a trace."""
NAME = "{name:<26}"
HEAD = f"{NAME}{'frames':>8}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}"
CPU_HEAD = f"{'CPU p50':>9}{'CPU p95':>9}{'CPU max':>9}{'over':>8}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", help="a trace to serve")
    parser.add_argument("--beside", metavar="TRACE", help="a second trace, also served")
    parser.add_argument("--query", action="append", default=[], help="a query to show as a track")
    parser.add_argument("--seconds", type=float, default=4, help="for each move (default: 4)")
    parser.add_argument("--cases", nargs="+", help="only these")
    options = parser.parse_args()
    traces = [options.trace, *([options.beside] if options.beside else [])]
    with serving(*traces) as url:
        measure(url, options.query, options.seconds, options.cases)


@contextmanager
def serving(*traces: str) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "selftime", "serve", "--port", "0", *traces]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - a pipe was asked for
            yield next(word for word in server.stdout.readline().split() if "://" in word)
        finally:
            server.terminate()


def measure(url: str, queries: Sequence[str], seconds: float, only: list[str] | None) -> None:
    path = next(path for name in ("chromium", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        for case, words in cases(browser, url, queries).items():
            if only is None or case in only:
                measure_case(
                    browser, f"{url.rstrip('/')}/#/timeline?{urlencode(words)}", case, seconds
                )
        browser.close()
    print(
        f"\nThe goal is 60 frames a second, {GOAL_MS:.1f} ms. CPU is processor time of the page's"
        " main thread for a frame that draws the picture, with all that it does since the frame"
        " before; over counts the frames in which it is above the goal."
    )


def cases(browser: Browser, url: str, queries: Sequence[str]) -> dict[str, dict[str, str]]:
    """What stands beside the trace, as words of the address."""
    page = browser.new_page()
    page.goto(url)
    traces = page.evaluate("fetch('api/traces').then((answer) => answer.json())")["traces"]
    found: dict[str, dict[str, str]] = {"alone": {}}
    if len(traces) > 1:
        own, other = (page.evaluate(STEP, trace["id"]) for trace in traces[:2])
        align = "0" if own is None or other is None else f"step.{own}.{other}"
        found["second trace"] = {"beside": traces[1]["id"], "align": align, "compare": "0-1000000"}
    if queries:
        found["queries"] = {"track": ";\n".join(queries)}
    if len(found) > 2:
        found["both"] = {**found["second trace"], **found["queries"]}
    page.close()
    return found


def measure_case(browser: Browser, address: str, case: str, seconds: float) -> None:
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    page.add_init_script(WATCH)
    print(f"\n{case}")
    for visit in ("first", "second"):  # the second finds the trace open
        bytes_ = received(page, lambda: open_(page, address))
        print(f"{visit} visit: whole picture after {drawn_after(page):,.0f} ms, {bytes_:,} B")
    print(HEAD.format(name="move") + CPU_HEAD)
    box = page.locator(".timeline-stage canvas").bounding_box()
    assert box is not None  # noqa: S101 - it was drawn
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for name, move in MOVES.items():
        page.mouse.move(*middle)
        browser.start_tracing(page=page, categories=CATEGORIES)
        page.evaluate("frames_.length = 0")
        move(page, middle, seconds)
        apart = np.array(page.evaluate("frames_"))
        cpu = np.array(cpu_of_frames(json.loads(browser.stop_tracing())["traceEvents"]))
        print(f"{NAME.format(name=name)}{apart.size:>8}{spread(apart)}{spread(cpu)}{over(cpu)}")
    page.close()


def spread(ms: Any) -> str:
    return "".join(f"{one:>9.1f}" for one in np.percentile(ms, (50, 95, 100)))


def over(ms: Any) -> str:
    return f"{np.mean(ms > GOAL_MS):>8.1%}"


def open_(page: Page, address: str) -> None:
    page.goto("about:blank")
    page.goto(address)
    while not page.evaluate("performance.getEntriesByName('timeline whole').length"):
        page.wait_for_timeout(20)
    page.wait_for_load_state("networkidle", timeout=PATIENCE_MS)  # what is beside it comes later
    page.wait_for_selector(".timeline-stage[aria-busy=false]", timeout=PATIENCE_MS)


def drawn_after(page: Page) -> float:
    return float(page.evaluate("performance.getEntriesByName('timeline whole')[0].startTime"))


def received(page: Page, act: Callable[[], None]) -> int:
    """Bytes that came over the wire while something was done."""
    page.goto("about:blank")
    act()
    script = "performance.getEntriesByType('resource').reduce((n, one) => n + one.transferSize, 0)"
    return int(page.evaluate(script))


def zoom(page: Page, _: tuple[float, float], seconds: float) -> None:
    page.keyboard.down("Control")
    for turn in range(int(seconds * 40)):
        page.mouse.wheel(0, -60 if turn % 80 < 40 else 60)
        page.wait_for_timeout(16)
    page.keyboard.up("Control")


def wheel(page: Page, _: tuple[float, float], seconds: float) -> None:
    for turn in range(int(seconds * 40)):
        page.mouse.wheel(40 if turn % 80 < 40 else -40, 0)
        page.wait_for_timeout(16)


def drag(page: Page, middle: tuple[float, float], seconds: float) -> None:
    x, y = middle
    for turn in range(int(seconds)):
        page.mouse.move(x + 200, y)
        page.mouse.down()
        page.mouse.move(x - 200, y, steps=40)
        page.mouse.move(x + (100 if turn % 2 else 200), y, steps=40)
        page.mouse.up()


def keys(page: Page, _: tuple[float, float], seconds: float) -> None:
    for key in ("w", "d", "s", "a"):
        page.keyboard.down(key)
        page.wait_for_timeout(250 * seconds)
        page.keyboard.up(key)


def deep(page: Page, middle: tuple[float, float], seconds: float) -> None:
    """Pans where slices are as wide as their names."""
    page.keyboard.down("w")
    page.wait_for_timeout(2500)
    page.keyboard.up("w")
    wheel(page, middle, seconds)


MOVES = {
    "zoom by wheel, whole": zoom,
    "keys W D S A": keys,
    "pan by wheel, close": deep,
    "drag, close": drag,
    "zoom by wheel, close": zoom,
}


if __name__ == "__main__":
    main()
