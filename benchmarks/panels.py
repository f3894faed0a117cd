"""How long every panel of the page takes on a large trace, in a real browser.

    python benchmarks/panels.py [--kinds training] [--sizes 1000]
    python benchmarks/panels.py --trace BEFORE.json [AFTER.json] [--panels flame compare]

The trace is in the cache, no answer is. One server opens it; then one tab goes from panel to panel
as a reader does, each for the first time, and once more. A panel is complete when the last answer
that it asked for has come and the page has stopped changing. With two traces the second is the one
that the first is compared with.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, sync_playwright
from sheets import Column, Table, add_format, show, table
from timeline_frames import FLAGS, serving
from traces import KINDS, add_options, trace

GOAL_S: Final = 2.0
"""A panel on a trace of 1 GB is to take less."""
QUIET_MS: Final = 1_000
"""The page has stopped changing when nothing has happened for so long, while nothing is asked."""
REST_MS: Final = 50
"""Between two looks at whether it has."""
COLUMNS: Final = (
    Column("panel", "panel"),
    Column("first_s", "first", "s"),
    Column("again_s", "again", "s"),
    Column("slowest", "slowest answer"),
    Column("slowest_s", "which took", "s"),
    Column("sent", "received", "bytes"),
)
WATCH: Final = """
window.asked_ = { open: 0, last: performance.now(), answers: [] };
const touch = () => { asked_.last = performance.now(); };
const fetch_ = window.fetch.bind(window);
window.fetch = async (address, ...rest) => {
  const begin = performance.now();
  asked_.open += 1;
  try {
    const answer = await fetch_(address, ...rest);
    const copy = answer.clone();
    const bytes = (await copy.arrayBuffer()).byteLength;
    const path = new URL(address.url ?? address, location.href).pathname;
    asked_.answers.push([path.replace(/^.*\\/api\\//, ""), performance.now() - begin, bytes]);
    return answer;
  } finally {
    asked_.open -= 1;
    touch();
  }
};
new MutationObserver(touch).observe(document, {
  subtree: true, childList: true, attributes: true, characterData: true,
});
const canvas_ = CanvasRenderingContext2D.prototype;
const fill_ = canvas_.fillRect;
canvas_.fillRect = function (...rest) { touch(); return fill_.apply(this, rest); };
"""
"""Notes when the page last changed: an answer, the document, or what is drawn on a canvas."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    add_format(parser)
    parser.add_argument("--trace", type=Path, nargs="+", help="measure these traces as they are")
    parser.add_argument("--panels", nargs="+", help="only these")
    options = parser.parse_args()
    if options.trace:
        named = [(options.trace, "own", options.trace[0].name)]
    else:
        named = [
            ([trace(kind, size)], f"{kind}-{size}", f"{size:,} MB: {KINDS[kind]}")
            for size in options.sizes
            for kind in options.kinds
        ]
    show([measured(*one, options.panels) for one in named], options.format)


def measured(paths: list[Path], key: str, title: str, panels: list[str] | None) -> Table:
    with opened(paths) as (page, address):
        page.goto(address)
        found = {"answer": complete(page, 0.0)}
        query = page.evaluate("location.hash.split('?')[1] ?? ''")
        names = panels or page.evaluate(
            "[...document.querySelectorAll('nav a[href^=\"#/\"]')]"
            ".map((link) => link.hash.replace(/^#\\//, '').replace(/\\?.*/, ''))"
        )
        for name in names:
            if name != "answer":
                found[name] = visit(page, f"#/{name}?{query}")
        again = {name: visit(page, f"#/{name}?{query}") for name in found}
    rows = [
        {**first, "panel": name, "again_s": again[name]["first_s"]} for name, first in found.items()
    ]
    about = {"megabytes": round(sum(path.stat().st_size for path in paths) / 1e6)}
    return table("panels", key, f"Panels of the page, {title}", COLUMNS, rows, about)


@contextmanager
def opened(paths: list[Path]) -> Iterator[tuple[Page, str]]:
    """An empty tab, and the address of a server that has read the traces but answered nothing."""
    browsers = ("chromium-headless-shell", "chromium", "google-chrome")
    program = next(found for name in browsers if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("SELFTIME_CACHE", folder)
        for path in paths:
            reading = [sys.executable, "-m", "selftime", "view", "steps", str(path)]
            subprocess.run(reading, check=True, capture_output=True)
        with serving(*map(str, paths)) as url, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.add_init_script(WATCH)
            yield page, url
            browser.close()


def visit(page: Page, panel: str) -> dict[str, Any]:
    """Goes to a panel, and tells when it was complete."""
    begin = page.evaluate(
        "(panel) => { asked_.answers.length = 0; asked_.last = performance.now();"
        " location.hash = panel; return performance.now(); }",
        panel,
    )
    return complete(page, begin)


def complete(page: Page, begin: float) -> dict[str, Any]:
    """Tells when the page was complete, for what the answers took since it began (ms)."""
    while not page.evaluate(f"asked_.open === 0 && performance.now() - asked_.last > {QUIET_MS}"):
        page.wait_for_timeout(REST_MS)
    told = page.evaluate("asked_")
    slowest = max(told["answers"], key=lambda answer: answer[1], default=("", None, 0))
    return {
        "first_s": (told["last"] - begin) / 1000,
        "slowest": slowest[0],
        "slowest_s": None if slowest[1] is None else slowest[1] / 1000,
        "sent": sum(answer[2] for answer in told["answers"]),
    }


if __name__ == "__main__":
    main()
