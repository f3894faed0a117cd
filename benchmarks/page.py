"""How long the first paint of the page takes on a large trace, and how many bytes it costs.

Starts the server on a trace that is in the cache, and asks what the first paint asks: the page, its
script and style, the traces, the views, the advice, the overview, the timeline of the whole trace.
Questions that a browser asks at once are asked at once. Seconds are given as ratios to a run of
`selftime view overview` on the same trace as well: they vary less between machines.
"""

import argparse
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

GOAL_S: Final = 2.0
GOAL_MB: Final = 2.0
"""The first paint of a trace of 1 GB that is in the cache is to take less."""

ROUNDS: Final = (
    ("the page", ("",)),
    ("its files", ("app.js", "app.css")),
    ("what there is", ("api/traces", "api/views")),
    (
        "the answer",
        ("api/advice?.trace={0}", "api/view/health?.trace={0}", "api/view/overview?.trace={0}"),
    ),
    (
        "the timeline",
        (
            "api/view/timeline?.trace={0}&what=tracks",
            "api/view/timeline?.trace={0}&pixels=1200",
        ),
    ),
)
"""What is asked one after the other, each a few questions at once."""


class Answer(NamedTuple):
    """One answer: its bytes on the wire, headers and all, and its content."""

    sent: int
    seconds: float
    content: bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", type=Path, help="a large trace")
    parser.add_argument("-n", type=int, default=2, help="servers, one after the other (default: 2)")
    options = parser.parse_args()
    view = ["view", "overview", str(options.trace), "--format", "csv"]
    run(view)  # which puts the trace into the cache
    base = run(view)
    print(f"`selftime view overview`: {base:.2f} s\n")
    for number in range(options.n):
        print(f"server {number + 1}, {'nothing' if number == 0 else 'answers'} kept on disk")
        paint(options.trace, base)
    print(f"\nThe goal is {GOAL_S:.0f} s and {GOAL_MB:.0f} MB on a trace of 1 GB.")


def run(words: list[str]) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "selftime", *words]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


@contextmanager
def serving(trace: Path) -> Iterator[str]:
    """The address of a server, as `selftime serve` prints it."""
    command = [sys.executable, "-m", "selftime", "serve", str(trace), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            words = (process.stdout.readline() if process.stdout else "").split()
            yield words[3]
        finally:
            process.terminate()


def paint(trace: Path, base: float) -> None:
    begun = time.perf_counter()
    with serving(trace) as address:
        print(f"{'started':<48}{time.perf_counter() - begun:>8.2f} s")
        print(f"{'question':<48}{'s':>10}{'x overview':>12}{'kB':>10}")
        begun, sent, chosen = time.perf_counter(), 0, ""
        for name, questions in ROUNDS:
            with ThreadPoolExecutor(len(questions)) as pool:
                asked = [question.format(chosen) for question in questions]
                answers = list(pool.map(lambda path: ask(address, path), asked))
            for question, answer in zip(questions, answers, strict=True):
                row(question or "index.html", answer.seconds, base, answer.sent)
                if question == "api/traces":
                    chosen = msgspec.json.decode(answer.content)["traces"][0]["id"]
            sent += sum(answer.sent for answer in answers)
            row(f"  until {name} is here", time.perf_counter() - begun, base, sent)


def row(name: str, seconds: float, base: float, sent: int) -> None:
    print(f"{name:<48}{seconds:>10.2f}{seconds / base:>12.2f}{sent / 1e3:>10.0f}")


def ask(address: str, path: str) -> Answer:
    """One question, asked as a browser does; the content is not inflated."""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=600)
    headers = {} if path == "api/traces" else {"Accept-Encoding": "gzip"}
    connection.request("GET", f"/{path}", headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != http.HTTPStatus.OK:
        sys.exit(f"{path}: status {answer.status}: {content[:200]!r}")
    head = sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
    return Answer(head + len(content), time.perf_counter() - begin, content)


if __name__ == "__main__":
    main()
