"""How smoothly the page's timeline moves in a real browser, on a trace of any size.

Serves a trace, opens it in Chromium, waits for the first whole picture, then pans and zooms with
wheel, drag and keys as a reader does, and tells how long frames took: from one to the next, and how
much of it was the page's own work. A browser without a GPU draws on the processor.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from playwright.sync_api import Page, sync_playwright

GOAL_MS = 1000 / 60
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
WATCH = """
const ask = window.requestAnimationFrame.bind(window);
window.frames_ = {apart: [], work: []};
let [last, spent] = [null, 0];
const tick = (now) => {
  if (last !== null) { frames_.apart.push(now - last); frames_.work.push(spent); }
  [last, spent] = [now, 0];
  ask(tick);
};
ask(tick);
window.requestAnimationFrame = (told) => ask((now) => {
  const begin = performance.now();
  told(now);
  spent += performance.now() - begin;
});
"""
"""Counts the screen's frames, whether the page draws or not, and how long its work took in each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", nargs="?", help="a trace to serve")
    parser.add_argument("--url", help="the address of a server that runs already")
    parser.add_argument("--seconds", type=float, default=4, help="for each move (default: 4)")
    options = parser.parse_args()
    if options.url:
        measure(options.url, options.seconds)
        return
    with serving(options.trace) as url:
        measure(url, options.seconds)


@contextmanager
def serving(*traces: str) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "selftime", "serve", "--port", "0", *traces]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - a pipe was asked for
            yield next(word for word in server.stdout.readline().split() if "://" in word)
        finally:
            server.terminate()


def measure(url: str, seconds: float) -> None:
    path = next(path for name in ("chromium", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.add_init_script(WATCH)
        for visit in ("first", "second"):  # the second finds the trace open
            bytes_ = received(page, lambda: open_(page, url))
            print(f"{visit} visit: whole picture after {drawn_after(page):,.0f} ms, {bytes_:,} B")
        print(f"\n{'move':<26}{'frames':>8}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}{'work p95':>10}")
        box = page.locator(".timeline-stage canvas").bounding_box()
        assert box is not None  # noqa: S101 - it was drawn
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        for name, move in MOVES.items():
            page.mouse.move(*middle)
            page.evaluate("frames_.apart.length = frames_.work.length = 0")
            move(page, middle, seconds)
            told = page.evaluate("frames_")
            apart, work = np.array(told["apart"]), np.array(told["work"])
            work = work[work > 0]  # the picture moved
            p50, p95, most = np.percentile(apart, (50, 95, 100))
            own = np.percentile(work, 95)
            print(f"{name:<26}{apart.size:>8}{p50:>9.1f}{p95:>9.1f}{most:>9.1f}{own:>10.1f}")
        browser.close()
    print(f"\nThe goal is 60 frames a second: {GOAL_MS:.1f} ms.")


def open_(page: Page, url: str) -> None:
    page.goto("about:blank")
    page.goto(f"{url.rstrip('/')}/#/timeline")
    while not page.evaluate("performance.getEntriesByName('timeline whole').length"):
        page.wait_for_timeout(20)


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
