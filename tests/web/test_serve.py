"""`selftime serve` as a process: its address, its end, its refusals."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from selftime.cli import app
from selftime.errors import SelftimeError
from selftime.reports.page_data.assets import assets

try:
    assets()
except SelftimeError as error:
    pytest.skip(str(error), allow_module_level=True)


@contextmanager
def serving(
    *words: str, program: tuple[str, ...] = ("-m", "selftime")
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A server, and the address that it printed."""
    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, *program, "serve", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("selftime is at http://"), line
            yield line.split()[3], process
        finally:
            process.kill()


def ask(address: str, path: str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, json.loads(body) if body.startswith(b"{") else body.decode()


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["serve", *words])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_it_serves_until_it_is_interrupted(write: Callable[..., Path]) -> None:
    with serving(str(write()), "--port", "0") as (address, process):
        assert urlsplit(address).hostname == "127.0.0.1"
        status, page = ask(address, "/")
        assert (status, page[:15]) == (200, "<!doctype html>")
        for absolute in ('="/', "='/", "=/", "://"):  # a proxy's prefix would be lost
            assert absolute not in page
        _, told = ask(address, "/api/traces")
        trace = told["traces"][0]["id"]
        status, page = ask(address, f"/api/view/operators?.trace={trace}")
        assert (status, page["total"]) == (200, 3)
        assert ask(address, "/api/traces", Host="evil.example")[0] == 421
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert (out, err) == ("", "")


# Advice on a large trace starts threads; here it does so when Python ends, which permits none then.
SLOW_ADVICE = """
import concurrent.futures.thread as pools
import threading, time
from selftime.analysis import concurrent_calls
from selftime.cli import main
from selftime.web import advice_answers

advise = advice_answers.advise

def advise_late(*args, **options):
    while not pools._shutdown:
        time.sleep(0.01)
    return advise(*args, **options)

advice_answers.advise = advise_late
concurrent_calls._MIN_SLICES_TO_USE_THREADS = 0
threading.Thread(target=lambda: (threading.main_thread().join(), time.sleep(1))).start()
main()
"""

# The library that makes the tables interrupts each thread in which it is at work.
ADVICE_WITHIN_TABLES = """
import numpy as np
import polars as pl
from selftime.cli import main
from selftime.web import advice_answers

def advise_for_ever(*args, **options):
    keys = pl.LazyFrame({"key": np.arange(200_000) % 1_000})
    while True:
        keys.join(keys.unique(), on="key").group_by("key").len().collect()

advice_answers.advise = advise_for_ever
main()
"""


@pytest.mark.parametrize("advice", [SLOW_ADVICE, ADVICE_WITHIN_TABLES], ids=["slow", "tables"])
def test_advice_that_the_interruption_breaks_off_prints_no_traceback(
    write: Callable[..., Path], tmp_path: Path, advice: str
) -> None:
    program = tmp_path / "advice.py"
    program.write_text(advice)
    with serving(str(write()), "--port", "0", program=(str(program),)) as (address, process):
        assert ask(address, "/api/traces")[0] == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert (out, err) == ("", "")


def test_an_open_address_prints_a_token(write: Callable[..., Path]) -> None:
    with serving(str(write()), "--port", "0", "--host", "0.0.0.0") as (address, _):  # noqa: S104 - what is tested
        url = urlsplit(address)
        assert len(url.query.removeprefix("token=")) >= 32
        here = f"http://127.0.0.1:{url.port}"
        assert ask(here, "/api/traces")[0] == 403
        assert ask(here, f"/api/traces?{url.query}")[0] == 200


@pytest.mark.parametrize(
    ("words", "is_asked"),
    [(("--host", "0.0.0.0", "--no-token"), False), (("--token",), True)],  # noqa: S104 - what is tested
)
def test_a_token_is_asked_for_or_not_as_the_user_says(
    write: Callable[..., Path], words: tuple[str, ...], is_asked: bool
) -> None:
    with serving(str(write()), "--port", "0", *words) as (address, _):
        url = urlsplit(address)
        assert bool(url.query) == is_asked
        here = f"http://127.0.0.1:{url.port}"
        assert ask(here, "/api/traces")[0] == (403 if is_asked else 200)
        assert ask(here, f"/api/traces?{url.query}")[0] == 200


def test_a_port_that_is_taken_is_told(write: Callable[..., Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1:{port}" in (told := refused(str(write()), "--port", port))
        assert "choose another `--port`" in told


def test_paths_that_hold_no_trace_are_told(tmp_path: Path) -> None:
    assert "no such file or folder" in refused(str(tmp_path / "nonesuch"))
    assert "holds no trace" in refused(str(tmp_path))


def test_an_address_that_is_not_ours_is_told(write: Callable[..., Path]) -> None:
    assert "cannot listen on 192.0.2.1" in refused(str(write()), "--host", "192.0.2.1")
    assert "cannot listen on nonesuch.invalid" in refused(
        str(write()), "--host", "nonesuch.invalid"
    )
