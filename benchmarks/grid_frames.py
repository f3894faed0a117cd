"""How smoothly a table of 100,000 rows scrolls in a real browser, from its first row to its last.

Serves a trace, opens the table of its slices in Chromium and scrolls it at a steady pace. Tells how
long frames took: from one to the next. A browser without a GPU draws on the processor.
"""

import argparse
import shutil

import numpy as np
from playwright.sync_api import sync_playwright
from timeline_frames import FLAGS, GOAL_MS, serving

ROWS = 100_000
SCROLL = """
(seconds) => new Promise((done) => {
  const table = document.querySelector(".grid-scroller");
  const way = table.scrollHeight - table.clientHeight;
  const [begin, apart] = [performance.now(), []];
  let last = begin;
  const tick = () => {
    const now = performance.now();
    apart.push(now - last);
    last = now;
    table.scrollTop = way * Math.min(1, (now - begin) / (1000 * seconds));
    if (now - begin < 1000 * seconds) requestAnimationFrame(tick);
    else done({ apart, end: table.scrollTop + table.clientHeight, whole: table.scrollHeight });
  };
  requestAnimationFrame(tick);
})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", help="a trace of more than 100,000 slices")
    parser.add_argument("--seconds", type=float, nargs="+", default=[10, 30])
    options = parser.parse_args()
    with serving(options.trace) as url:
        measure(url, options.seconds)


def measure(url: str, paces: list[float]) -> None:
    path = next(path for name in ("chromium", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{url.rstrip('/')}/#/occurrences?top={ROWS}")
        page.wait_for_selector(".grid-row .grid-cell", timeout=120_000)
        page.wait_for_timeout(1_500)
        print(f"{'end to end in':<16}{'frames':>8}{'p50 ms':>9}{'p95 ms':>9}{'max ms':>9}")
        for seconds in paces:
            told = page.evaluate(SCROLL, seconds)
            if told["end"] < told["whole"] - 1:
                raise SystemExit("the table did not scroll to its end")
            p50, p95, most = np.percentile(told["apart"][1:], (50, 95, 100))
            count = len(told["apart"])
            print(f"{f'{seconds:g} s':<16}{count:>8}{p50:>9.1f}{p95:>9.1f}{most:>9.1f}")
            page.evaluate("document.querySelector('.grid-scroller').scrollTop = 0")
            page.wait_for_timeout(500)
        browser.close()
    print(f"\nThe goal is 60 frames a second: {GOAL_MS:.1f} ms.")


if __name__ == "__main__":
    main()
